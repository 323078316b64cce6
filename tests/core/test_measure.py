"""Measuring an arm: what is asked of a backend, what comes of each of its answers, and what is counted."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core_support import (
    DEFINITION,
    DOCUMENTS,
    JUDGEMENTS,
    QUERIES,
    RIGHT,
    Space,
    Told,
    detail,
    outcomes,
    told,
)

from eval_core.backend import BackendError, Reply, Request
from eval_core.errors import CouldNot, Faults, Misuse
from eval_core.reports.report import read_report

# --------------------------------------------------------------------------------------------- what is asked


def test_each_query_is_asked_and_scored(things: Space) -> None:
    backend = told(q2=["d7", "d2"], q3=["d7"], q4=[])
    report = things.measure(backend, text="repetitions = 2\n")
    assert [(row.id, row.outcome, row.ids) for row in report.rows] == [
        ("q1", "scored", ("d1",)),
        ("q2", "scored", ("d7", "d2")),
        ("q3", "scored", ("d7",)),
        ("q4", "scored", ()),  # no documents: an answer, which counts 0
        ("q5", "scored", ("d5",)),
        ("q6", "scored", ("d6",)),
    ]
    overall = report.summary.overall
    assert (report.n, overall.n) == (6, 6)
    assert overall.metrics["recall@10"] == pytest.approx(4 / 6)
    assert overall.metrics["hit@1"] == pytest.approx(3 / 6)
    assert overall.metrics["mrr"] == pytest.approx(3.5 / 6)
    assert (report.health.scored, report.health.ok) == (6, True)
    assert report.dataset.model_dump() == {
        "name": "things",
        "version": "1",
        "documents": 8,
        "queries": 6,
        "headline": "recall@10",
        "moves": False,
    }
    assert backend.indexed == [list(DOCUMENTS)]
    assert read_report(things.reports / "arm.json", "arm") == report


def test_a_request_says_what_the_harness_knows(things: Space) -> None:
    """A1: text, k, and the set's kind."""
    backend = told()
    things.measure(backend, text="limit = 7\ncutoffs = [1, 7]\nrepetitions = 1\n")
    assert backend.asked[-1] == Request("query 6", 7, "memory", "q6")


def test_the_first_queries_warm_the_backend_up_unscored_and_every_repetition_asks_all(things: Space) -> None:
    backend = told()
    report = things.measure(backend, text="repetitions = 3\n")
    assert [request.id for request in backend.asked] == [*list(QUERIES)[:5], *list(QUERIES) * 3]
    assert report.repetitions == 3
    assert report.latency is not None
    assert report.latency.samples == 18


def test_latency_is_taken_at_the_client_over_all_repetitions(things: Space) -> None:
    """A3: p50, p95 and maximum a query, end to end."""
    import time

    def slow(request: Request) -> list[str]:
        time.sleep(0.03 if request.id == "q1" else 0)
        return RIGHT[request.text]

    report = things.measure(Told(dict.fromkeys(RIGHT, slow)), text="repetitions = 2\n")
    assert report.latency is not None
    assert report.latency.p50 < 15 < 29 < report.latency.p95 <= report.latency.max < 5000
    row = json.loads((things.runs / "arm.jsonl").read_text().splitlines()[1])
    assert len(row["latencies"]) == 2
    assert report.ingest is not None
    assert report.ingest.documents == 8


def test_a_backend_is_made_anew_for_the_index_and_closed(things: Space) -> None:
    """S5: the index of a measured number is built in the run."""
    backend = told()
    made = []

    def factory(**options: Any) -> Told:
        made.append(options)
        return backend

    things.register("told", factory)
    report = things.measure(text="options.k1 = 2\n")
    assert made[-1] == {"k1": 2}
    assert backend.closed == len(made)
    assert report.index == "built"


def test_the_set_decides_limit_and_cutoffs_unless_the_arm_does(things: Space) -> None:
    things.set(DOCUMENTS, QUERIES, JUDGEMENTS, DEFINITION + "limit = 4\ncutoffs = [2, 4]\n")
    backend = told()
    report = things.measure(backend, text="")
    assert (backend.asked[0].k, report.cutoffs) == (4, (2, 4))
    report = things.measure(backend, text="limit = 6\n")
    assert (backend.asked[-1].k, report.cutoffs) == (6, (2, 4))
    report = things.measure(backend, text="cutoffs = [3]\n")
    assert (backend.asked[-1].k, report.cutoffs) == (4, (3,))
    assert "recall@3" in report.summary.overall.metrics
    with pytest.raises(Faults) as caught:
        things.measure(backend, text="limit = 3\n")
    told_ = 'arms."arm".limit: cut-off 4 is past the limit 3; raise limit, or write cutoffs = [2, 3]'
    assert f"{things.config}:4: {told_}" in str(caught.value)


def test_queries_and_judgements_are_paired_by_id_and_not_by_place(things: Space) -> None:
    things.set(DOCUMENTS, dict(reversed(list(QUERIES.items()))), JUDGEMENTS[::2] + JUDGEMENTS[1::2])
    report = things.measure(told(q1=["d7"]), text="")
    assert [row.id for row in report.rows] == list(QUERIES)[::-1]
    assert [row.metrics["mrr"] for row in report.rows] == [1, 1, 1, 1, 1, 0]


def test_k_larger_than_the_corpus_is_no_fault(things: Space) -> None:
    report = things.measure(told(q1=list(DOCUMENTS)), text="limit = 500\ncutoffs = [100, 500]\n")
    assert report.rows[0].ids == tuple(DOCUMENTS)
    assert report.rows[0].metrics["precision@100"] == 1 / 100
    assert report.rows[0].metrics["recall@500"] == 1


def test_the_own_document_is_excluded_before_the_cut(space: Space) -> None:
    """A2: in a set of duplicates a query is a title of the corpus; its own document takes no place."""
    space.set(
        DOCUMENTS,
        {"q1": {"text": "thing 1", "metadata": {"exclude": ["d1"]}}, "q2": "thing 2"},
        [("q1", "d4", 1), ("q2", "d2", 1)],
    )
    backend = Told({"thing 1": ["d1", "d2", "d3", "d4"], "thing 2": ["d2", "d3", "d4", "d5"]})
    report = space.measure(backend, text="limit = 3\ncutoffs = [3]\n")
    assert {request.id: request.k for request in backend.asked} == {"q1": 4, "q2": 3}
    assert [row.ids for row in report.rows] == [("d2", "d3", "d4"), ("d2", "d3", "d4")]
    assert report.rows[0].metrics["recall@3"] == 1
    assert report.health.excess == 1


def test_bm25_measures_the_memory_set_with_and_without_its_kinds() -> None:
    """K1: two arms over one set, unfiltered and filtered by kind; filtering can only help where all that is judged
    passes the filter."""
    from eval_core.config import load_workspace
    from eval_core.measuring.loop import measure
    from eval_core.measuring.plan import prepare

    root = Path(__file__).resolve().parents[2]
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(root):
        workspace = load_workspace(Path("eval.toml"))
        arms = workspace.chosen(("memory-bm25", "memory-bm25-kind"))
        out = Path(name)
        reports = [measure(made, out, out, out) for made in prepare(workspace, arms)]
    plain, by_kind = (report.summary.overall.metrics for report in reports)
    assert [report.n for report in reports] == [55, 55]
    assert all(report.health.ok and not report.health.unstable for report in reports)
    assert 0.5 < plain["recall@10"] < by_kind["recall@10"] < 1
    assert plain["mrr"] < by_kind["mrr"]
    for report in reports:
        shares = [part.n for part in report.summary.categories.values()]
        assert sum(shares) == 55


def test_a_real_command_is_measured_like_any_backend(things: Space) -> None:
    """A1: any command, one process over the whole measurement, with the same figures as in process."""
    (things.root / "adapter.py").write_text(
        "import json, sys\n"
        "open('started', 'a').write('x')\n"
        "for line in sys.stdin:\n"
        "    query = json.loads(line)['query']\n"
        "    print(json.dumps({'ids': ['d' + query[-1]]}), flush=True)\n"
    )
    things.config.unlink(missing_ok=True)
    things.arm("options.command = ['{python}', 'adapter.py']\n", backend="jsonl")
    with contextlib.chdir(things.root):
        report = things.measure()
    assert report.summary.overall.metrics["recall@1"] == 1
    assert (report.health.restarts, (things.root / "started").read_text()) == (0, "x")
    assert things.measure(told(), text="").digests.rankings == report.digests.rankings
    assert sys.executable not in json.dumps(report.system.parts)  # as written, before {python} is filled in


def test_progress_is_told_of_every_answer(things: Space) -> None:
    from eval_core.measuring.loop import measure

    things.register("told", told())
    things.arm("repetitions = 2\n")
    (made,) = things.plans()
    steps: list[tuple[int, int]] = []
    measure(made, things.runs, things.reports, things.history, progress=lambda *step: steps.append(step))
    assert steps == [(number, 12) for number in range(1, 13)]


# --------------------------------------------------------------------------------------------- outcomes


def test_the_four_outcomes_are_counted_apart(space: Space) -> None:
    """Nothing is imputed: only scored rows are in a mean, and every count is there, zeros too."""
    queries = {**QUERIES, "q7": {"text": "when", "metadata": {"time": {"as_of": 1}}}, "q8": "nobody knows"}
    space.set(
        DOCUMENTS,
        queries,
        [*JUDGEMENTS, ("q7", "d7", 1)],
        timeline_jsonl='{"epoch": 1, "id": "d8"}\n',
    )
    broken = BackendError("no")
    report = space.measure(told(q3=broken, q4=broken, q5=broken), text="")
    assert outcomes(report) == {
        **dict.fromkeys(("q1", "q2"), "scored"),
        **dict.fromkeys(("q3", "q4", "q5"), "errored"),
        "q6": "unscored",
        **dict.fromkeys(("q7", "q8"), "unscorable"),
    }
    health = report.health.model_dump()
    assert health == {
        "scored": 2,
        "errored": 3,
        "unscored": 1,
        "unscorable": 2,
        "duplicates": 0,
        "excess": 0,
        "restarts": 0,
        "unstable": 0,
        "counts": {},
    }
    assert not report.health.ok
    assert (report.n, report.summary.overall.metrics["recall@10"]) == (2, 1.0)
    assert detail(report, "q7") == (
        "the backend 'told' lacks 'temporal', which metadata.time of its queries asks for"
    )
    assert detail(report, "q8") == "no positive judgement"
    assert detail(report, "q6") == "not asked: 3 failures in a row, the last: no"
    assert report.latency is not None
    assert report.latency.samples == 2  # once the backend is given up, there is no further pass


def test_an_unjudged_query_is_not_a_zero_in_the_mean(space: Space) -> None:
    space.set(DOCUMENTS, {"q1": "query 1", "q2": "unjudged"}, [("q1", "d1", 1), ("q2", "d2", 0)])
    report = space.measure(told(), text="")
    assert (report.n, report.health.unscorable) == (1, 1)
    assert report.summary.overall.metrics["recall@1"] == 1
    assert report.health.ok  # nothing that can be scored is missing


def test_a_set_of_which_nothing_can_be_scored_is_no_success(space: Space) -> None:
    space.set(DOCUMENTS, QUERIES, [("q1", "d1", 0)])
    report = space.measure(told(), text="")
    assert (report.n, report.health.ok, report.latency) == (0, False, None)
    assert set(report.summary.overall.metrics.values()) == {0.0}


class Strange(Exception):
    """An exception with nothing to say."""

    def __str__(self) -> str:
        return ""


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (BackendError("timed out"), "timed out"),
        (BackendError(""), "BackendError, without a word"),
        (ValueError("odd"), "ValueError: odd"),
        (KeyError("x"), "KeyError: 'x'"),
        (Strange(), "Strange, without a word"),
        (AssertionError(), "AssertionError, without a word"),
        (RecursionError("deep"), "RecursionError: deep"),
        (MemoryError(), "MemoryError, without a word"),
        (StopIteration(), "StopIteration, without a word"),
        (SystemExit(3), "SystemExit: 3"),
        (Misuse("usage", "not here"), "Misuse: not here"),
        (OSError(5, "gone"), "OSError: [Errno 5] gone"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "UnicodeDecodeError: 'utf-8' codec can't decode"),
        (BackendError("\udcff"), "\\udcff"),
        (BackendError("x" * 10_000), "x" * 4000 + "…"),
        ("d1", "the backend answered str, not a Reply"),
        (None, "the backend answered NoneType, not a Reply"),
        (("d1",), "the backend answered tuple, not a Reply"),
        (Reply(None), "ids None are not a list"),  # type: ignore[arg-type]
        (Reply([["d1"]]), "id ['d1'] is not a text"),  # type: ignore[list-item]
        (Reply(["d1"], [float("nan")]), "score nan is not a finite number"),
        (Reply(["d1", "d2"], [1, 2]), "scores rise from 1.0 to 2.0"),
        (["d1", "elsewhere"], "id 'elsewhere' is not in the corpus"),
        (lambda request: Reply(name for name in [1 / 0]), "ZeroDivisionError: "),  # type: ignore[arg-type]
    ],
    ids=lambda value: None if callable(value) else repr(value)[:40],
)
def test_whatever_a_backend_does_is_an_errored_row_and_the_others_are_scored(
    things: Space, answer: Any, expected: str
) -> None:
    """A1: each has a defined outcome."""
    backend = told()
    backend.answers[QUERIES["q3"]] = answer if callable(answer) else lambda request: answer
    report = things.measure(backend, text="repetitions = 2\n")
    assert outcomes(report) == {**dict.fromkeys(QUERIES, "scored"), "q3": "errored"}
    assert detail(report, "q3").startswith(expected)
    assert report.rows[2].ids == ()
    assert report.rows[2].metrics == {}
    assert report.n == 5
    # The report can be written and read, whatever the backend said.
    assert read_report(things.reports / "arm.json") == report


def test_an_interrupt_is_no_answer(things: Space) -> None:
    with pytest.raises(KeyboardInterrupt):
        things.measure(told(q3=KeyboardInterrupt()), text="")
    assert things.left() == ["runs/arm.partial"]


def test_failures_that_are_not_in_a_row_do_not_end_a_run(things: Space) -> None:
    broken = BackendError("no")
    report = things.measure(told(q1=broken, q2=broken, q4=broken, q5=broken), text="repetitions = 2\n")
    assert [row.outcome for row in report.rows] == ["errored", "errored", "scored"] * 2


def test_a_backend_that_is_gone_for_good_is_not_asked_again(things: Space) -> None:
    backend = told(q2=CouldNot("backend-failed", "the service hung up"))
    report = things.measure(backend, text="")
    assert [row.outcome for row in report.rows] == ["scored", "errored", *["unscored"] * 4]
    assert detail(report, "q3") == "not asked: the backend is gone: the service hung up"
    assert [request.id for request in backend.asked] == [
        "q1",
        "q2",
        "q1",
        "q2",
    ]  # the warm-up ended there, too


def test_a_row_that_errors_in_a_repetition_is_errored(things: Space) -> None:
    """A retriever that fails now and then is not measured by the times that it did not."""
    count = 0

    def sometimes(request: Request) -> Any:
        nonlocal count
        count += 1
        return BackendError("flaky") if count == 3 else ["d2"]  # the warm-up, the first pass, the second

    report = things.measure(told(q2=sometimes), text="repetitions = 3\n")
    assert outcomes(report)["q2"] == "errored"
    assert detail(report, "q2") == "repetition 2: flaky"
    assert count == 3


def test_rankings_that_change_between_repetitions_are_reported(things: Space) -> None:
    """The first pass is scored; that another ranked otherwise is told."""
    turns: Iterator[list[str]] = iter([["d2"], ["d2", "d3"], ["d3", "d2"], ["d2", "d3"]])
    report = things.measure(told(q2=lambda request: next(turns)), text="repetitions = 3\n")
    assert report.rows[1].ids == ("d2", "d3")
    assert [row.stable for row in report.rows] == [True, False, True, True, True, True]
    assert report.health.unstable == 1


def test_restarts_duplicates_and_excess_are_counted(things: Space) -> None:
    backend = told(
        q1=["d1", "d1", "d1"],
        q2=["d2", *(f"d{number}" for number in (1, 3, 4, 5))],
        q6=BackendError("killed", restarted=True),
    )
    report = things.measure(backend, text="limit = 3\ncutoffs = [3]\nrepetitions = 1\n")
    assert (report.health.duplicates, report.health.excess, report.health.restarts) == (2, 2, 1)
    assert report.rows[1].ids == ("d2", "d1", "d3")


def test_a_restart_in_the_warm_up_is_counted_and_ends_it(things: Space) -> None:
    first = True

    def once(request: Request) -> Any:
        nonlocal first
        fail, first = first, False
        return BackendError("cold", restarted=True) if fail else ["d1"]

    backend = told(q1=once)
    report = things.measure(backend, text="repetitions = 1\n")
    assert report.health.restarts == 1
    assert report.health.ok
    assert [request.id for request in backend.asked] == ["q1", *QUERIES]


def test_numbers_and_texts_of_numpy_are_measured_and_written(things: Space) -> None:
    ids, scores = np.array(["d1", "d2"]), np.array([2, 1], dtype=np.float32)
    report = things.measure(told(q1=lambda request: Reply(ids, scores)), text="")  # type: ignore[arg-type]
    assert report.rows[0].ids == ("d1", "d2")
    assert read_report(things.reports / "arm.json") == report


def test_ties_are_ordered_by_id_before_they_are_scored(things: Space) -> None:
    """M5: a backend that scores everything alike is not rewarded for putting the answer first."""
    every = [f"d{number}" for number in (6, 5, 4, 3, 2, 1)]
    report = things.measure(Told(dict.fromkeys(RIGHT, lambda request: Reply(every, [1.0] * 6))), text="")
    assert {row.ids for row in report.rows} == {("d1", "d2", "d3", "d4", "d5", "d6")}
    assert [row.judged[0].rank for row in report.rows] == [1, 2, 3, 4, 5, 6]


def test_each_category_has_its_own_mean(space: Space) -> None:
    """A category that collapses is not hidden by the mean over all."""
    queries = {
        name: {"text": text, "metadata": {"category": "hard" if name in ("q5", "q6") else "easy"}}
        for name, text in QUERIES.items()
    }
    space.set(DOCUMENTS, queries, JUDGEMENTS)
    report = space.measure(told(q5=[], q6=[]), text="")
    means = {name: (part.n, part.metrics["recall@1"]) for name, part in report.summary.categories.items()}
    assert means == {"easy": (4, 1.0), "hard": (2, 0.0)}
