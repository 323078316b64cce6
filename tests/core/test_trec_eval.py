"""Where a figure of trec_eval could be missed: its options, and runs whose scores and rank column disagree."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest
import pytrec_eval
from core_support import Done, call
from scoring_support import put, ranked_lines, scored, trec_qrels, trec_run, values

from eval_core.scoring.models import Score

NAMES = {
    "map": "map",
    "mrr": "recip_rank",
    "rprec": "Rprec",
    "ndcg": "ndcg",
    "precision@5": "P_5",
    "recall@5": "recall_5",
    "ndcg@5": "ndcg_cut_5",
    "map@5": "map_cut_5",
    "hit@1": "success_1",
    "hit@5": "success_5",
}
#: b and c are in a tie, in which trec_eval puts c first; q2 has no run, and to q3 nothing is relevant.
RUN = {"q1": {"a": 3.0, "b": 2.0, "c": 2.0, "d": 1.0}, "q3": {"a": 1.0}}
ORDER = {"q1": ["a", "c", "b", "d"], "q3": ["a"]}
QRELS = {"q1": {"a": 0, "b": 1, "d": 2, "e": 1}, "q2": {"x": 1}, "q3": {"a": 0}}
IDEAL = 2 + 1 / math.log2(3) + 1 / 2
WHOLE = {
    "map": (1 / 3 + 2 / 4) / 3,
    "mrr": 1 / 3,
    "rprec": 1 / 3,
    "ndcg": (1 / 2 + 2 / math.log2(5)) / IDEAL,
    "precision@5": 2 / 5,
    "recall@5": 2 / 3,
    "ndcg@5": (1 / 2 + 2 / math.log2(5)) / IDEAL,
    "map@5": (1 / 3 + 2 / 4) / 3,
    "hit@1": 0,
    "hit@5": 1,
}
CUT = WHOLE | {
    "map": 1 / 9,
    "ndcg": 1 / 2 / IDEAL,
    "precision@5": 1 / 5,
    "recall@5": 1 / 3,
    "ndcg@5": 1 / 2 / IDEAL,
    "map@5": 1 / 9,
}


def score(folder: Path, *arguments: str) -> Done:
    def main() -> NoReturn:
        from eval_core.cli.app import run
        from eval_core.cli.score import score

        run(score, "eval-core score")

    return call(main, "--run", "run", "--qrels", "qrels", *arguments, where=folder)


def compare(folder: Path, *arguments: str) -> Done:
    def main() -> NoReturn:
        from eval_core.cli.app import run
        from eval_core.cli.compare import compare

        run(compare, "eval-core compare")

    return call(main, *arguments, "--qrels", "qrels", where=folder)


def as_json(folder: Path, *arguments: str) -> dict[str, Any]:
    done = score(folder, "--format", "json", *arguments)
    Score.model_validate_json(done.out)
    value: dict[str, Any] = json.loads(done.out)
    return value


def lines(queries: Mapping[str, Sequence[tuple[str, object, float]]]) -> str:
    return "".join(f"{q} Q0 {d} {rank} {s} t\n" for q, found in queries.items() for d, rank, s in found)


@pytest.mark.parametrize("form", ["trec", "lists"])
@pytest.mark.parametrize(
    ("options", "by_hand"), [((), WHOLE), (("--depth", "3"), CUT), (("--depth", "9"), WHOLE)]
)
def test_round2_n6_the_figures_of_trec_eval_with_its_options(
    tmp_path: Path, form: str, options: tuple[str, ...], by_hand: dict[str, float]
) -> None:
    """N6: -q, -c and -M of trec_eval on a tie, a silent query, one to which nothing is relevant, and a cut."""
    put(tmp_path, "run", trec_run(RUN) if form == "trec" else ranked_lines(ORDER))
    put(tmp_path, "qrels", trec_qrels(QRELS))
    depth = int(options[1]) if options else 9
    cut = {q: {d: RUN[q][d] for d in found[:depth]} for q, found in ORDER.items()}
    theirs = pytrec_eval.RelevanceEvaluator(QRELS, set(NAMES.values())).evaluate(cut)
    found = as_json(tmp_path, "--per-query", "-m", ",".join(NAMES), *options)
    counts = {name: count for name, count in found["counts"].items() if count}
    assert counts == {"scored": 2, "missing": 1, "unscorable": 1} | ({"tied": 1} if form == "trec" else {})
    for ours, name in NAMES.items():
        assert math.isclose(theirs["q1"][name], by_hand[ours], abs_tol=1e-12)
        assert math.isclose(found["queries"]["q1"][ours], by_hand[ours], abs_tol=1e-12), ours
        assert found["queries"]["q2"][ours] == theirs["q3"][name] == 0
        means = found["measures"][ours]
        assert math.isclose(means["mean"], by_hand[ours] / 2, abs_tol=1e-12), ours
        # trec_eval -c divides by the number of judged queries.
        assert math.isclose(means["mean_with_unscorable"], by_hand[ours] / len(QRELS), abs_tol=1e-12), ours


def test_round2_n6_both_means_stand_where_they_differ(tmp_path: Path) -> None:
    """N6: 30 queries with their document first and one to which nothing is relevant: 1, and trec_eval's 30 / 31."""
    names = [f"q{n}" for n in range(31)]
    put(tmp_path, "run", lines({q: [("a", 1, 1.0)] for q in names}))
    put(tmp_path, "qrels", "".join(f"{q} 0 a {int(q != 'q30')}\n" for q in names))
    table = score(tmp_path, "-m", "mrr").out.splitlines()
    assert table[0].endswith("n  mean of 31")
    assert table[1].split()[1] == "1.0000"
    assert table[1].split()[-2:] == ["30", "0.9677"]
    assert " The unscorable count 0 in the mean of 31, as in trec_eval -c." in table
    mrr = as_json(tmp_path, "-m", "mrr")["measures"]["mrr"]
    assert (mrr["mean"], mrr["mean_with_unscorable"]) == (1, 30 / 31)
    put(tmp_path, "qrels", "".join(f"{q} 0 a 1\n" for q in names))
    assert "mean of" not in score(tmp_path, "-m", "mrr").out
    mrr = as_json(tmp_path, "-m", "mrr")["measures"]["mrr"]
    assert mrr["mean"] == mrr["mean_with_unscorable"] == 1


@pytest.mark.parametrize("processes", [1, 3])
@pytest.mark.parametrize(
    ("ranks", "scores", "contradicted", "tied"),
    [
        ((1, 2, 3), (3, 2, 1), False, False),
        ((0, 1, 2), (3, 2, 1), False, False),
        ((3, 1, 2), (1, 3, 2), False, False),  # lines in another order
        ((1, 2, 3), (1, 2, 3), True, False),  # distances
        ((0, 1, 2), (3, 1, 2), True, False),
        ((3, 1, 2), (3, 1, 2), True, False),
        ((3, 1, 2), (3, 2, 1), True, False),
        ((10, 9, 100), (2, 1, 3), True, False),  # numbers, not texts
        ((1, 2, 3), (1, 1, 1), False, True),
        ((1, 2, 3), (2, 2, 1), False, True),
        ((1, 2, 3), (1, 2, 2), True, False),  # those in the tie are not judged
        ((7, 7, 7), (1, 2, 3), False, False),  # a column that orders nothing
        ((1, 1, 2), (1, 2, 1), False, True),
        (("x", "y", "z"), (1, 2, 3), False, False),
    ],
)
@pytest.mark.parametrize("repeat", [False, True])
def test_round2_n3_queries_whose_ranks_and_scores_disagree_are_listed(
    tmp_path: Path,
    ranks: tuple[object, ...],
    scores: tuple[float, ...],
    contradicted: bool,
    tied: bool,
    repeat: bool,
    processes: int,
) -> None:
    """N3: listed are queries of the mean whose rank column contradicts the scores, or with a judged document in a
    tie. The scores decide, as in trec_eval."""
    found = list(zip("abc", ranks, scores, strict=True))
    worse = [("a", ranks[0], scores[0])] if repeat else []
    run: dict[str, list[tuple[str, object, float]]] = {
        "q2": [("a", 1, 2.0), ("b", 2, 1.0)],
        "stranger": found,
        "none": found,
        "q1": [*found, *worse],  # last, and so in another process's part
    }
    qrels = "q1 0 a 1\nq2 0 a 1\nsilent 0 a 1\nnone 0 a 0\n"
    got = scored(tmp_path, lines(run), qrels, ["mrr"], processes=processes)
    assert (got.contradicted, got.tied) == (["q1"] * contradicted, ["q1"] * tied)
    assert got.duplicates == int(repeat)
    plain = {"q1": {d: float(s) for d, _, s in found}}
    theirs = pytrec_eval.RelevanceEvaluator({"q1": {"a": 1}}, {"recip_rank"}).evaluate(plain)
    assert values(got)["q1"]["mrr"] == theirs["q1"]["recip_rank"]


RANKED = {"q1": [("a", 1, 0.1), ("b", 2, 0.2), ("c", 3, 0.3)], "q2": [("a", 1, 0.1), ("b", 2, 0.2)]}


@pytest.mark.parametrize(
    ("run", "count", "told"),
    [
        (lines(RANKED), "contradicted", "scores rise down the rank column in 2 of 2 queries"),
        (
            lines({q: [(d, rank, 1) for d, rank, _ in found] for q, found in RANKED.items()}),
            "tied",
            "are all scores equal? Every answered query has a judged document in a tie",
        ),
    ],
    ids=["distances", "equal"],
)
def test_round2_n3_a_person_is_told_what_to_do(tmp_path: Path, run: str, count: str, told: str) -> None:
    """N3: MRR 0.4167 where the ranks say 1.0, told by score and compare; what is advised gives 1.0."""
    put(tmp_path, "run", run)
    put(tmp_path, "qrels", "q1 0 a 1\nq2 0 a 1\n")
    table = score(tmp_path, "-m", "mrr").out
    assert "mrr      0.4167" in table
    assert next(line.split()[1] for line in table.splitlines() if line.split()[:1] == [count]) == "2"
    assert told in " ".join(table.split())
    assert max(map(len, table.splitlines())) <= 100
    assert as_json(tmp_path, "-m", "mrr")["counts"][count] == 2
    assert told in score(tmp_path, "-m", "mrr", "--format", "csv").err.replace("\n ", "")
    put(tmp_path, "lists", ranked_lines({q: [d for d, _, _ in found] for q, found in RANKED.items()}))
    notes = " ".join(compare(tmp_path, "run", "lists", "-m", "mrr").out.split())
    assert f"before {told}" in notes.replace(" note ", " ")
    assert "after scores" not in notes
    put(tmp_path, "run", lines({q: [(d, n, -s) for d, n, s in found] for q, found in RANKED.items()}))
    for name in ("run", "lists"):
        put(tmp_path, "run", (tmp_path / name).read_text())
        table = score(tmp_path, "-m", "mrr").out
        assert "mrr      1.0000" in table
        assert "Note:" not in table


@pytest.mark.parametrize(
    ("scores", "contradicted"),
    [
        ([3, 2, 1], 0),
        ([1, 1, 1], 0),
        ([1, 2, 3], 1),
        ([3, 1, 2], 1),
        (None, 0),
        ("none", 0),
        ([1, "2", 3], 0),
    ],
)
def test_round2_n3_lists_with_scores_that_rise_are_told(
    tmp_path: Path, scores: object, contradicted: int
) -> None:
    """N3: in JSON lines the order decides, whatever the scores beside it; a list that was not sorted is told."""
    put(tmp_path, "run", json.dumps({"id": "q", "ids": ["a", "b", "c"], "scores": scores}) + "\n")
    put(tmp_path, "qrels", "q 0 a 1\n")
    found = as_json(tmp_path, "-m", "mrr")
    assert (found["counts"]["contradicted"], found["counts"]["tied"]) == (contradicted, 0)
    assert found["measures"]["mrr"]["mean"] == 1
    told = (
        "scores beside the lists rise down the ranking in 1 of 1 queries, and the order of the lists decides"
    )
    assert (told in " ".join(score(tmp_path).out.split())) == bool(contradicted)
