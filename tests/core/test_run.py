"""A run on disk: JSON lines of what was returned, and a TREC run file that every tool reads in our order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import pytrec_eval
from core_support import Space, Told
from hypothesis import given
from hypothesis import strategies as st

from eval_core.errors import Faults
from eval_core.measuring.run import (
    ERRORED,
    SCORED,
    UNSCORABLE,
    UNSCORED,
    Row,
    read_run,
    trec_lines,
    write_run,
)

ROWS = [
    Row("q1", SCORED, ("d1", "d2"), (2.0, 1.0), [0.5, 0.25], duplicates=1, excess=2),
    Row("q2", SCORED, (), None, [0.5]),
    Row("q3", SCORED, ("d2",), None, [1.0, 2.0], stable=False),
    Row("q4", ERRORED, detail="it broke"),
    Row("q5", UNSCORED, detail="not asked"),
    Row("q6", UNSCORABLE, detail="no positive judgement"),
]


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write_run(path, {"run_id": "r", "arm": "a"}, ROWS)
    header, rows = read_run(path)
    assert header == {"schema": "run-v1", "run_id": "r", "arm": "a"}
    assert rows == [
        {"id": "q1", "outcome": "scored", "ids": ["d1", "d2"], "scores": [2.0, 1.0], "latencies": [0.5, 0.25]}
        | {"duplicates": 1, "excess": 2},
        {"id": "q2", "outcome": "scored", "ids": [], "latencies": [0.5]},
        {"id": "q3", "outcome": "scored", "ids": ["d2"], "latencies": [1.0, 2.0], "stable": False},
        {"id": "q4", "outcome": "errored", "ids": [], "latencies": [], "detail": "it broke"},
        {"id": "q5", "outcome": "unscored", "ids": [], "latencies": [], "detail": "not asked"},
        {"id": "q6", "outcome": "unscorable", "ids": [], "latencies": [], "detail": "no positive judgement"},
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", ":1: expected a run's header with schema 'run-v1'"),
        ('{"schema": "run-v2"}\n', ":1: expected a run's header with schema 'run-v1'"),
        ('{"id": "q1"}\n', ":1: expected a run's header"),
        ('{"schema": "run-v1"}\n{"id": "q1", "ids": [\n', ":2: not JSON: "),
        ('{"schema": "run-v1"}\n[]\n', ":2: expected a JSON object, not a list"),
        ('{"schema": "run-v1"}\n{"id": "q1", "scores": [NaN]}\n', ":2: not JSON: NaN is not a JSON number"),
    ],
)
def test_what_is_no_run_is_a_fault(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(text)
    with pytest.raises(Faults) as caught:
        read_run(path)
    assert str(caught.value.faults[0]).startswith(f"{path}{fault}")


def test_only_scored_rows_are_in_a_trec_run() -> None:
    assert [line.decode() for line in trec_lines(ROWS, "arm")] == [
        "q1 Q0 d1 1 -1 arm",
        "q1 Q0 d2 2 -2 arm",
        "q3 Q0 d2 1 -1 arm",
    ]


@given(
    st.lists(st.sampled_from([f"d{number}" for number in range(60)]), min_size=1, unique=True),
    st.integers(0, 59),
)
def test_trec_eval_sees_our_order_whatever_it_does_with_ties(ranking: list[str], relevant: int) -> None:
    """M5: scores fall strictly, although the backend's were all equal."""
    lines = [
        line.decode().split() for line in trec_lines([Row("q", SCORED, ranking, [1.0] * len(ranking))], "a")
    ]
    run = {document: float(score) for _, _, document, _, score, _ in lines}
    judged = f"d{relevant}"
    found = pytrec_eval.RelevanceEvaluator({"q": {judged: 1}}, {"recip_rank"}).evaluate({"q": run})
    assert found["q"]["recip_rank"] == (1 / (ranking.index(judged) + 1) if judged in ranking else 0)


def test_measuring_writes_both(space: Space) -> None:
    """The run holds ids down to the limit, the report down to the largest cut-off; both carry the keys."""
    names = [f"d{number:02}" for number in range(1, 16)]
    space.set(dict.fromkeys(names, "t"), {"q1": "a", "q2": "b"}, [("q1", "d12", 1), ("q2", "d01", 1)])
    report = space.measure(Told({"a": names, "b": ["d01"]}), text="limit = 12\nrepetitions = 2\n")
    header, rows = read_run(space.runs / "arm.jsonl")
    assert (header["run_id"], header["arm"]) == (report.run_id, "arm")
    assert header["task"] == report.task.model_dump()
    assert header["system"] == report.system.model_dump()
    assert header["environment"]["class"] == report.environment.class_
    assert [(row["id"], len(row["ids"]), len(row["latencies"])) for row in rows] == [
        ("q1", 12, 2),
        ("q2", 1, 2),
    ]
    assert rows[0]["excess"] == 3
    assert [len(row.ids) for row in report.rows] == [10, 1]
    # Beyond the largest cut-off, within the limit: the rank is kept, and mrr and map count it.
    assert report.rows[0].judged[0].rank == 12
    assert report.rows[0].metrics["mrr"] == pytest.approx(1 / 12)
    trec = (space.runs / "arm.trec").read_text().splitlines()
    assert trec == [f"q1 Q0 {name} {rank} {-rank} arm" for rank, name in enumerate(names[:12], 1)] + [
        "q2 Q0 d01 1 -1 arm"
    ]
    assert json.loads((space.runs / "arm.jsonl").read_text().splitlines()[0])["schema"] == "run-v1"
