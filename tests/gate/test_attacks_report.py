"""What lies in the place of a report, in further forms than the table of attacks has (test_selftest), and reports of
answers that are odd, measured for real; each beside the untouched files, which pass."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Space

pytestmark = pytest.mark.usefixtures("passes")


def report_becomes(text: str) -> Callable[[Space], None]:
    def change(space: Space) -> None:
        space.report.write_text(text)

    return change


def a_folder(space: Space) -> None:
    space.report.unlink()
    space.report.mkdir()


@pytest.mark.parametrize(
    ("attack", "code"),
    [
        (lambda space: shutil.rmtree(space.report.parent), "report-missing"),
        (a_folder, "report-missing"),
        (report_becomes("null"), "report-malformed"),
        (report_becomes("[]"), "report-malformed"),
        (report_becomes("{}"), "report-malformed"),
        (report_becomes('{"summary": {"overall": {"n": 27, "hit@1": 1.0, "mrr": 1.0}}}'), "report-malformed"),
        (lambda space: space.report.write_bytes(b"\xff\xfe"), "report-malformed"),
    ],
)
def test_what_is_no_report_is_refused(space: Space, attack: Callable[[Space], object], code: str) -> None:
    """K3: a missing or malformed report is a failure, or deleting a file would be a way through."""
    attack(space)
    done = space.check()
    assert (done.code, done.codes) == (1, [code])
    assert done.verdict["arms"][0]["graded"] == []


def overall(report: Any) -> Any:
    return report["summary"]["overall"]


def sets(place: str, value: object) -> Callable[[Any], object]:
    """Put a value at a dotted place of a report."""
    *path, last = place.split(".")

    def change(report: Any) -> None:
        for name in path:
            report = report[int(name)] if isinstance(report, list) else report[name]
        report[last] = value

    return change


@pytest.mark.parametrize(
    ("place", "value"),
    [
        *[("summary.overall.metrics.hit@1", value) for value in (None, [1.0])],
        *[("summary.overall.n", value) for value in (26, 28, True, None)],
        ("summary.overall.metrics", {}),
        ("summary.overall.metrics.recal@1", 1.0),
        ("rows", []),
        ("rows.26.judged.0.rank", 1),
        ("rows.26.id", "q26"),
        ("rows.0.outcome", "errored"),
        ("health.errored", -1),
        ("schema", "report-v2"),
    ],
)
def test_a_report_edited_by_hand_does_not_agree_with_its_rows(
    space: Space, place: str, value: object
) -> None:
    """K3: a summary says what its rows give, and a row what its ranks give."""
    space.alter(space.report, sets(place, value))
    done = space.check()
    assert (done.code, done.codes) == (1, ["report-malformed"])


@pytest.mark.parametrize("lost", [3, 4])
def test_an_errored_query_is_neither_dropped_nor_scored_0(space: Space, lost: int) -> None:
    """K3's trap: an error is no zero, which the margin could swallow, and no query less, which the mean could."""
    assert space.measure(dict.fromkeys(list(space.losing(lost)), "out of memory")).code == 3
    done = space.check()
    assert (done.code, done.codes) == (1, ["rows-errored"])
    assert "out of memory" in done.verdict["arms"][0]["reasons"][0]["message"]


def test_an_answer_of_nothing_is_scored_and_counts_as_a_miss(space: Space) -> None:
    assert space.measure({"q27": 2}, q01=[], q02=[]).code == 0
    assert space.check().codes == ["baseline-drop"]
    assert space.check().verdict["arms"][0]["n"] == 27


def test_repeated_ids_add_nothing(space: Space) -> None:
    """A ranking that names the right document ten times has found it once."""
    assert space.measure({"q27": 2}, q01=["d01"] * 10).code == 0
    report = json.loads(space.report.read_text())
    assert (report["rows"][0]["ids"], report["health"]["duplicates"]) == (["d01"], 9)
    assert max(report["rows"][0]["metrics"].values()) == 1.0
    assert space.check().code == 0


def test_a_set_whose_queries_became_unscorable_is_not_graded_on_the_rest(space: Space) -> None:
    rows = space.queries()
    rows[0]["metadata"] = {"unanswerable": True}
    space.put_queries(rows)
    space.rejudge(lambda rows: rows[1:])
    assert space.measure().code == 0
    assert space.check().codes == ["queries-differ", "judgements-differ", "n-differs"]


def test_a_backend_that_can_be_asked_less_is_not_graded_on_the_rest(space: Space) -> None:
    """K3: n is exact; that a capability was lost is told."""
    space.forge(space.report, space.unscorable)
    done = space.check()
    assert (done.code, done.codes) == (1, ["n-differs"])
    mend = done.verdict["arms"][0]["reasons"][0]["mend"]
    assert 'eval-gate floor notes --measure --reason task="…" --write' in mend
    assert done.verdict["arms"][0]["reasons"][0]["message"] == (
        "26 queries were scored, and the floors are for exactly 27; 1 are unscorable, the first, q04: needs a filter"
    )


def test_a_frozen_snapshot_is_graded_where_it_lies(space: Space) -> None:
    """K6: what is too dear for every pull request is measured elsewhere, committed and graded."""
    frozen = space.root / "evals" / "frozen.json"
    frozen.parent.mkdir()
    shutil.move(space.report, frozen)
    shutil.move(space.sidecar, frozen.with_name("frozen.intoto.jsonl"))
    assert space.check().codes == ["report-missing"]
    assert space.check("--report", f"notes={frozen}").code == 0
    space.alter(frozen, lambda report: overall(report)["metrics"].update({"hit@1": 1.0}))
    assert space.check("--report", f"notes={frozen}").codes == ["report-malformed"]
