"""What the tests of scoring share: run files and judgements written from tables, and trec_eval as the oracle."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytrec_eval
from hypothesis import strategies as st

from eval_core.errors import Misuse
from eval_core.scoring.metrics import Measure, parse
from eval_core.scoring.score import Scores, score_files

Run = Mapping[str, Mapping[str, float]]
Qrels = Mapping[str, Mapping[str, int]]

NAMES = (
    "recall@1",
    "recall@5",
    "precision@3",
    "hit@3",
    "rprec",
    "mrr",
    "map",
    "map@5",
    "ndcg",
    "ndcg@1",
    "ndcg@5",
)
MEASURES: tuple[Measure, ...] = tuple(map(parse, NAMES))
#: Of the same measures, trec_eval's names.
THEIRS = (
    *("recall_1", "recall_5", "P_3", "success_3", "Rprec", "recip_rank", "map", "map_cut_5"),
    *("ndcg", "ndcg_cut_1", "ndcg_cut_5"),
)
_ASKED = {"recall.1,5", "P.3", "success.3", "Rprec", "recip_rank", "map", "map_cut.5", "ndcg", "ndcg_cut.1,5"}
EVERY = tuple(map(parse, (*NAMES, "all@5", "judged@5", "recall_cap@3", "mrr@2", "ndcg@5(gain=exp)")))


def trec_run(run: Run, end: str = "\n") -> str:
    """A TREC run file, in the order of the table; the rank column is nonsense on purpose."""
    return "".join(
        f"{query} Q0 {document} 7 {score!r} tag{end}"
        for query, scores in run.items()
        for document, score in scores.items()
    )


def trec_qrels(qrels: Qrels) -> str:
    return "".join(f"{q} 0 {d} {grade}\n" for q, grades in qrels.items() for d, grade in grades.items())


def beir_qrels(qrels: Qrels) -> str:
    rows = (f"{q}\t{d}\t{grade}\n" for q, grades in qrels.items() for d, grade in grades.items())
    return "query-id\tcorpus-id\tscore\n" + "".join(rows)


def ranked_lines(lists: Mapping[str, Sequence[Any]]) -> str:
    return "".join(
        json.dumps({"id": q, "ids": list(ids)}, ensure_ascii=False) + "\n" for q, ids in lists.items()
    )


def put(folder: Path, name: str, content: str | bytes) -> Path:
    """Write a file of that name, and give its path."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def scored(
    folder: Path,
    run: str | bytes,
    qrels: str | bytes,
    measures: Iterable[Measure | str] = MEASURES,
    ties: str = "trec",
    processes: int | None = None,
) -> Scores:
    """Score the text of a run file against that of judgements."""
    wanted = [parse(m) if isinstance(m, str) else m for m in measures]
    return score_files(
        put(folder, "run", run), put(folder, "qrels", qrels), wanted, ties, processes=processes
    )


def refused(folder: Path, run: str | bytes, qrels: str | bytes, measures: Iterable[str] = ("mrr",)) -> str:
    """Why it is not scored, without the folder's name; always exit 2."""
    with pytest.raises(Misuse) as caught:
        scored(folder, run, qrels, measures)
    assert caught.value.exit_code == 2
    return str(caught.value).replace(f"{folder}/", "")


def values(scores: Scores) -> dict[str, dict[str, float]]:
    """By query, by measure."""
    names = list(map(str, scores.measures))
    return {q: dict(zip(names, found.values, strict=True)) for q, found in scores.queries.items()}


def trec_eval(run: Run, qrels: Qrels) -> dict[str, dict[str, float]]:
    """trec_eval's values under our names, of the queries that have a relevant document; 0 where the run is silent.

    Only for scores that single precision holds.
    """
    judged = {q: dict(grades) for q, grades in qrels.items() if any(grade > 0 for grade in grades.values())}
    answered = {q: dict(scores) for q, scores in run.items() if q in judged and scores}
    found = pytrec_eval.RelevanceEvaluator(judged, _ASKED).evaluate(answered) if answered else {}
    zeros = dict.fromkeys(THEIRS, 0.0)
    return {
        q: {ours: found.get(q, zeros)[theirs] for ours, theirs in zip(NAMES, THEIRS, strict=True)}
        for q in judged
    }


def assert_equal_to_trec_eval(scores: Scores, run: Run, qrels: Qrels) -> None:
    """Query by query and in the mean, to 1e-12."""
    expected, found = trec_eval(run, qrels), values(scores)
    assert list(found) == list(expected)
    for query, theirs in expected.items():
        for name, value in theirs.items():
            assert math.isclose(found[query][name], value, rel_tol=0, abs_tol=1e-12), (query, name)
    for measure in MEASURES:
        mean = math.fsum(theirs[str(measure)] for theirs in expected.values()) / len(expected)
        assert math.isclose(scores.mean(measure), mean, rel_tol=0, abs_tol=1e-12), measure


# Ids that look like numbers, that are beginnings of one another, and that are not ASCII.
_DOCUMENTS = [*(f"d{n}" for n in range(12)), "1", "01", "10", "é", "e\u0301", "文", "a,b", "🙂", "Z", "~"]
_QUERIES = ["q1", "q10", "q2", "1", "frage-ü", "q", "{q}"]
# Multiples of a quarter, few of them, so that ties are many and single precision holds each.
_SCORES = st.one_of(st.integers(-3, 3).map(lambda n: n / 4), st.integers(-4000, 4000).map(lambda n: n / 4))


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """A run and judgements with a query in common that can be scored."""
    grades = st.dictionaries(st.sampled_from(_DOCUMENTS), st.integers(-2, 4), min_size=1, max_size=12)
    scores = st.dictionaries(st.sampled_from(_DOCUMENTS), _SCORES, min_size=1, max_size=22)
    qrels = draw(st.dictionaries(st.sampled_from(_QUERIES), grades, min_size=1, max_size=6))
    run = draw(st.dictionaries(st.sampled_from([*_QUERIES, "stranger"]), scores, max_size=7))
    query, document = draw(st.sampled_from(sorted(qrels))), draw(st.sampled_from(_DOCUMENTS))
    qrels[query][document] = draw(st.integers(1, 3))
    run.setdefault(query, {})[draw(st.sampled_from(_DOCUMENTS))] = draw(_SCORES)
    return run, qrels
