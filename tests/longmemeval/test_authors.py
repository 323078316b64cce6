"""Runs in the authors' figures: their definitions, written down a second time, on real and on synthetic rankings."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lme_support import Desk, conversion, judged, lines, record

from eval_core.scoring import metrics
from longmemeval_convert.authors import compare
from longmemeval_convert.documents import GOLDS
from longmemeval_convert.synth import Generator


def authors_dcg(relevances: Sequence[int]) -> float:
    """DCG as LongMemEval's repository defines it: rel₁ + Σ_{i≥2} relᵢ / log2(i)."""
    values = np.asarray(relevances, dtype=float)
    return (
        float(values[0] + np.sum(values[1:] / np.log2(np.arange(2, values.size + 1)))) if values.size else 0.0
    )


def authors_scores(ranking: Sequence[str], gold: Sequence[str], corpus: Sequence[str], k: int) -> list[float]:
    """recall_any, recall_all and ndcg_any at k, straight from their definitions."""
    top = set(ranking[:k])
    ideal = authors_dcg(sorted((int(name in gold) for name in corpus), reverse=True)[:k])
    return [
        float(any(name in top for name in gold)),
        float(all(name in top for name in gold)),
        authors_dcg([int(name in gold) for name in ranking[:k]]) / ideal if ideal else 0.0,
    ]


@given(st.sets(st.integers(1, 40), max_size=8), st.integers(0, 5), st.integers(1, 60))
def test_ndcg_authors_equals_their_definition(ranks: set[int], absent: int, k: int) -> None:
    ranking = [f"d{rank}" for rank in range(1, 41)]
    gold = [f"d{rank}" for rank in sorted(ranks)] + [f"x{number}" for number in range(absent)]
    pairs = [(1, rank) for rank in ranks] + [(1, None)] * absent
    ours = metrics.score(pairs, [f"ndcg_authors@{k}"], 40)[f"ndcg_authors@{k}"]
    corpus = ranking + gold[len(ranks) :]
    assert ours == pytest.approx(authors_scores(ranking, gold, corpus, k)[2], abs=1e-12)
    assert 0 <= ours <= 1


@pytest.mark.parametrize(
    ("ranks", "found"),
    [
        # Gold at ranks 2 and 4, by hand: (1 + 1/2) / (1 + 1) = 0.75, where the standard measure gives 0.651.
        ([2, 4], 0.75),
        ([1, 2], 1.0),
        ([2], 1.0),
        ([3], 1 / math.log2(3)),
        ([11], 0.0),
        # MemPalace: the ideal is over all gold. One of two at rank 1 is a half, and not 1.
        ([1, None], 0.5),
        ([], 0.0),
    ],
)
def test_ndcg_authors_by_hand(ranks: list[int | None], found: float) -> None:
    pairs = [(3, rank) for rank in ranks] + [(0, 5)]
    assert metrics.score(pairs, ["ndcg_authors@10"], 10)["ndcg_authors@10"] == pytest.approx(found, abs=1e-12)


def test_ndcg_authors_changes_no_report() -> None:
    """It is a family of its own: reports hold what they held, so that their version stays."""
    assert "ndcg_authors" not in (*metrics.AT_K, *metrics.WHOLE) and metrics.VERSION == "1"
    with pytest.raises(Exception, match="no measure 'ndcg_authors'"):
        metrics.parse("ndcg_authors")
    assert not metrics.is_binary("ndcg_authors@10")


class Published(NamedTuple):
    """Rankings by question: what was found, and what is gold."""

    found: dict[str, list[str]]
    gold: dict[str, list[str]]


def invented() -> tuple[Published, Published]:
    """Two systems in the published form, with sessions that come twice."""
    chance = random.Random(4)
    gold = {f"q{n}": [f"answer_{n}_{place}" for place in range(chance.randint(1, 4))] for n in range(80)}
    systems = []
    for reach in (3, 8):
        found = {}
        for name, wanted in gold.items():
            ranking = [f"x{place}" for place in chance.sample(range(50), 9)]
            for session in wanted:
                ranking.insert(chance.randint(0, reach), session)
            found[name] = [*ranking[:9], ranking[0]]
        systems.append(Published(found, gold))
    return systems[0], systems[1]


def published(find: Callable[[str], Path]) -> tuple[Published, Published]:
    systems = []
    for name in ("bm25", "dense"):
        rows = json.loads(find(f"longmemeval/rankings_{name}_n500.json").read_bytes())["results"]
        rows = [row for row in rows if not row["abstention"]]
        systems.append(
            Published(
                {row["question_id"]: row["retrieved_sessions"] for row in rows},
                {row["question_id"]: row["evidence_sessions"] for row in rows},
            )
        )
    return systems[0], systems[1]


def as_set(desk: Desk, gold: Mapping[str, Sequence[str]], unmarked: set[str]) -> Path:
    """A set of these questions, under original ids; the user's turns of `unmarked` are not marked."""
    records = []
    for name, wanted in gold.items():
        ids = [*wanted, "other"]
        sessions = [
            [{"role": "user", "content": "x", "has_answer": name not in unmarked}] for _ in wanted
        ] + [[{"role": "user", "content": "y"}]]
        dates = ["2024/03/01 (Fri) 10:00"] * len(ids)
        histories: dict[str, Any] = {
            "haystack_session_ids": ids,
            "haystack_dates": dates,
            "haystack_sessions": sessions,
        }
        records.append(record(name, answer_session_ids=list(wanted), **histories))
    return desk.set(records, "--ids", "original")


def check(desk: Desk, system: Published, unmarked: set[str]) -> dict[str, Any]:
    """Hold every figure of `authors` against the definitions; a repeated session counts where it comes first."""
    folder = as_set(desk, system.gold, unmarked)
    rows = [
        {"id": name, "ids": [f"{name}/{session}" for session in dict.fromkeys(found)]}
        for name, found in system.found.items()
    ]
    run = desk.root / "run.jsonl"
    run.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = compare(run, folder)
    assert (result.wide_n, result.narrow_n) == (len(system.gold), len(system.gold) - len(unmarked))
    assert result.cutoffs == (1, 3, 5, 10)
    for place, k in enumerate(result.cutoffs):
        wide, narrow = [], []
        for name, ids in system.found.items():
            ranking = list(dict.fromkeys(ids))
            # Their gold: the sessions with evidence of the user's.
            gold = [] if name in unmarked else system.gold[name]
            scores = authors_scores(ranking, gold, [*dict.fromkeys([*ranking, *gold])], k)
            wide.append(scores)
            if gold:
                narrow.append(scores)
        for means, figures in (
            (np.mean(narrow, axis=0), result.narrow),
            (np.mean(wide, axis=0), result.wide),
        ):
            assert [
                figures[name][place] for name in ("recall_any", "recall_all", "ndcg_any")
            ] == pytest.approx(list(means), abs=1e-12)
        hits = [
            any(
                g in dict.fromkeys(system.found[n]) and [*dict.fromkeys(system.found[n])].index(g) < k
                for g in gold
            )
            for n, gold in system.gold.items()
        ]
        assert result.ours["hit"][place] == pytest.approx(float(np.mean(hits)), abs=1e-12)
    return {
        "any": result.narrow["recall_any"],
        "all": result.narrow["recall_all"],
        "recall": result.ours["recall"],
    }


def test_real_rankings_have_the_authors_figures(shared_data: Callable[[str], Path], desk: Desk) -> None:
    """M9: on 470 questions, as two systems answered them; any and all order the systems the other way round."""
    systems = published(shared_data)
    bm25, dense = (check(desk, system, set()) for system in systems)
    # Of the first ten sessions: 0.9617 and 0.9723 hold any of the gold, 0.8404 and 0.8234 all of it.
    assert bm25["any"][3] < dense["any"][3] and bm25["all"][3] > dense["all"][3]
    # As they were published: of the first five turns, which may be of one session.
    first = [{n: set(ids[:5]) for n, ids in system.found.items()} for system in systems]
    gold = systems[0].gold
    for reduce, wanted in ((any, [0.932, 0.947]), (all, [0.736, 0.664])):
        means = [np.mean([reduce(g in top[n] for g in gold[n]) for n in gold]) for top in first]
        assert [round(float(mean), 3) for mean in means] == wanted


def test_the_page_shows_what_real_rankings_give(shared_data: Callable[[str], Path]) -> None:
    """The table of docs/longmemeval.md, each figure counted here."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "longmemeval.md").read_text("utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:1] == "|"
    ]
    table = {
        cells[0].split(" (")[0]: cells[1:] for cells in rows if len(cells) == 4 and cells[0] != "measure"
    }
    table.pop("---")
    systems = published(shared_data)
    gold = systems[0].gold
    for name, (*shown, ahead) in table.items():
        means = []
        for system in systems:
            values = []
            for question, ids in system.found.items():
                wanted, top = gold[question], set(ids[:5])
                ranking = list(dict.fromkeys(ids))
                if name.endswith("turns"):
                    values.append(
                        float((any if name.startswith("any") else all)(one in top for one in wanted))
                    )
                    continue
                family, k = name.split("@")
                ranks = [ranking.index(one) + 1 if one in ranking else None for one in wanted]
                within = [rank for rank in ranks if rank is not None and rank <= int(k)]
                values.append(
                    {
                        "hit": float(bool(within)),
                        "all": float(len(within) == len(wanted)),
                        "recall": len(within) / len(wanted),
                        "ndcg": sum(1 / math.log2(rank + 1) for rank in within)
                        / sum(1 / math.log2(rank + 1) for rank in range(1, min(len(wanted), int(k)) + 1)),
                        "ndcg_authors": authors_scores(ranking, wanted, [*{*ranking, *wanted}], int(k))[2],
                    }[family]
                )
            means.append(float(np.mean(values)))
        assert shown == [f"{mean:.4f}" for mean in means], name
        assert ahead == ("BM25" if means[0] > means[1] else "dense"), name
    assert len(table) == 10


def test_invented_rankings_have_the_authors_figures(desk: Desk) -> None:
    """The same on rankings made here, with questions whose evidence is the assistant's: the two denominators."""
    for system in invented():
        check(desk, system, {"q3", "q7", "q11"})


def test_the_two_denominators_of_a_release(desk: Desk) -> None:
    """419 and 470: all of nothing is 1 there, and nowhere else."""
    desk.write("".join(Generator("oracle", 5, 500).chunks()).encode())
    assert desk.convert("lme.json", "-o", "set").code == 0
    folder = desk.root / "set"
    assert conversion(folder)["denominators"] == {"answers": 470, "authors": 419}
    assert {
        kind: len({q for q, _ in judged(folder, split)})
        for kind, split in zip(GOLDS, ("test", "authors"), strict=True)
    } == {
        "answers": 470,
        "authors": 419,
    }
    # A system that finds nothing.
    run = desk.root / "run.jsonl"
    queries = [one["_id"] for one in lines(folder / "queries.jsonl")]
    run.write_text("".join(json.dumps({"id": name, "ids": []}) + "\n" for name in queries))
    done = desk.convert("authors", run, "--set", "set")
    assert done.code == 0, done.err
    table = [line.split() for line in done.out.splitlines() if line]
    assert table[0] == ["measure", "n", "@1", "@3", "@5", "@10"]
    assert ["theirs", "recall_all", "419", *["0.0000"] * 4] in table
    assert ["theirs", "recall_all", "470", *["0.1085"] * 4] in table  # 51 / 470
    assert ["theirs", "recall_any", "470", *["0.0000"] * 4] in table
    assert ["ours", "all", "470", *["0.0000"] * 4] in table
    assert "session retrieval, not a LongMemEval score" in done.out


def test_authors_names_what_it_cannot_score(desk: Desk) -> None:
    bare = [[{"role": "user", "content": "x"}], [], []]
    desk.set([record(haystack_sessions=bare)])
    run = desk.root / "run.jsonl"
    run.write_text('{"id": "q0001", "ids": ["q0001/003"]}\n')
    done = desk.convert("authors", run, "--set", "set")
    assert done.code == 2 and "does not mark the user's evidence" in done.err
    done = desk.convert("authors", run, "--set", ".")
    assert done.code == 2 and "conversion.json: there is no such conversion" in done.err
    (desk.root / "set" / "conversion.json").write_text("{}")
    done = desk.convert("authors", run, "--set", "set")
    assert done.code == 2 and "is not a conversion of this version" in done.err
    desk.set([record(), record("b")])
    assert "1 judged questions are absent" in desk.convert("authors", run, "--set", "set").out
