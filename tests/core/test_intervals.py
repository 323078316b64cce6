"""The intervals of a report: which there are, how they are shown, and that no edited one is believed."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from core_support import Space, Told
from report_support import PATH, at, put, refused

from eval_core.reports.check import run_digest, run_digest_of
from eval_core.reports.models import Slice, Summary
from eval_core.reports.report import Report, dump, parse_report, read_report, write_report
from eval_core.scoring import metrics
from eval_core.scoring.statistics import bootstrap, wilson

ROOT = Path(__file__).resolve().parents[2]

#: Twelve queries: seven of category x, four of y and one of neither. Each has one relevant document, q1 two.
NAMES = [f"q{number:02}" for number in range(1, 13)]


def category(name: str) -> dict[str, Any]:
    place = NAMES.index(name)
    return {} if place == 11 else {"category": "x" if place < 7 else "y"}


@pytest.fixture
def mixed(space: Space) -> Space:
    """q01 finds one of its two, q02 to q08 theirs at rank 1, q09 and q10 at rank 2, q11 and q12 nothing."""
    documents = {f"d{number:02}": "t" for number in range(1, 15)}
    space.set(
        documents,
        {name: {"text": name, "metadata": category(name)} for name in NAMES},
        [(name, name.replace("q", "d"), 1) for name in NAMES] + [("q01", "d14", 1)],
        'name = "things"\nheadline = "hit@1"\n[[corpus.source]]\ntype = "inline"\nname = "own"\n',
    )
    answers = {name: [name.replace("q", "d"), "d13"] for name in NAMES[:8]}
    answers |= {name: ["d13", name.replace("q", "d")] for name in NAMES[8:10]}
    space.register("told", Told(answers))
    space.arm("cutoffs = [1, 5]\n")
    return space


def measured(space: Space) -> Report:
    assert space.core("measure").code == 0
    return read_report(space.reports / "arm.json")


def rounded(bounds: tuple[float, float]) -> tuple[float, float]:
    return round(bounds[0], 6), round(bounds[1], 6)


# --------------------------------------------------------------------------------------------- which there are


def test_every_measure_has_an_interval_overall_and_in_categories_of_five_or_more(mixed: Space) -> None:
    report = measured(mixed)
    names = metrics.names(report.cutoffs)
    overall, parts = report.summary.overall, report.summary.categories
    assert (overall.n, parts["x"].n, parts["y"].n) == (12, 7, 4)
    assert list(overall.intervals) == list(parts["x"].intervals) == names
    assert parts["y"].intervals == {}
    for part in (overall, parts["x"]):
        for name, (low, high) in part.intervals.items():
            assert 0 <= low <= part.metrics[name] <= high <= 1
            assert low < high


def test_they_are_wilsons_for_hits_and_the_bootstraps_for_graded_measures(mixed: Space) -> None:
    """By hand: hit@1 for 8 of 12, all@5 for 9 (q01 finds one of two), recall@5 0.5 once, 1 nine times, 0 twice."""
    found = measured(mixed).summary.overall.intervals
    assert found["hit@1"] == rounded(wilson(8, 12))
    assert found["hit@5"] == rounded(wilson(10, 12))
    assert found["all@5"] == rounded(wilson(9, 12))
    assert found["recall@5"] == rounded(bootstrap([[0.5, *[1.0] * 9, 0.0, 0.0]])[0])
    assert found["mrr"] == rounded(bootstrap([[1.0] * 8 + [0.5] * 2 + [0.0] * 2])[0])


def test_precision_of_queries_with_one_relevant_document_is_bounded_as_a_share_of_what_it_can_be(
    mixed: Space,
) -> None:
    """precision@5 is at most 0.2 where each query has one relevant document, and 0.4 where one has two."""
    assert measured(mixed).summary.overall.intervals["precision@5"][1] <= 0.4
    path = mixed.root / "set" / "qrels" / "test.tsv"
    path.write_text(path.read_text("utf-8").replace("q01\td14\t1\n", ""), "utf-8")
    found = measured(mixed).summary.overall.intervals
    low, high = wilson(10, 12)
    assert found["hit@5"] == rounded((low, high))
    assert found["precision@5"] == rounded((low / 5, high / 5))


def test_two_measurements_have_the_same_intervals_to_the_byte(mixed: Space) -> None:
    first, second = measured(mixed), measured(mixed)
    assert first.run_id != second.run_id
    assert first.summary == second.summary
    assert re.findall(rb' "summary": .*', dump(first)) == re.findall(rb' "summary": .*', dump(second))
    assert parse_report(dump(first.stripped()), PATH).summary == first.summary


def test_the_order_of_the_queries_does_not_matter(mixed: Space) -> None:
    before = measured(mixed).summary.overall.intervals
    path = mixed.root / "set" / "queries.jsonl"
    path.write_text("".join(reversed(path.read_text("utf-8").splitlines(keepends=True))), "utf-8")
    assert measured(mixed).summary.overall.intervals == before


def test_where_nothing_was_scored_there_is_no_interval(space: Space) -> None:
    space.set({"d": "t"}, {"q": "t"}, [("q", "d", 1)], "name = 'things'\n")
    space.arm()
    report = space.measure(Told({"t": RuntimeError("it broke")}))
    assert (report.n, report.summary.overall.intervals) == (0, {})


def test_a_report_with_intervals_fits_the_committed_schema(mixed: Space) -> None:
    schema = json.loads((ROOT / "schemas" / "report-v1.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate(json.loads(dump(measured(mixed))))


# --------------------------------------------------------------------------------------------- as shown


def test_the_table_shows_half_the_width_beside_recall_alone(mixed: Space) -> None:
    report = measured(mixed)
    low, high = report.summary.overall.intervals["recall@5"]
    done = mixed.core("measure")
    (line,) = [line for line in done.out.splitlines() if line.startswith(" things  arm")]
    assert f"  {9.5 / 12:.3f} ±{(high - low) / 2:.3f}  " in line
    assert line.count("±") == 1
    assert " things: 13 judged documents with an unjudged near-duplicate (limits in the report)." in done.out
    assert max(map(len, done.out.splitlines())) <= 100


# --------------------------------------------------------------------------------------------- as believed


def test_an_interval_that_is_altered_taken_away_or_added_is_refused(mixed: Space) -> None:
    report = measured(mixed)
    value = json.loads(dump(report))
    assert run_digest(report) == run_digest_of(value) == value["digests"]["run"]
    altered = []
    for path in (("overall",), ("categories", "x")):
        given = at(value, ("summary", *path, "intervals"))
        low, high = given["mrr"]
        for bounds in (
            {**given, "mrr": [low + 0.001, high]},
            {**given, "mrr": [high, low]},
            {name: given[name] for name in given if name != "hit@1"},
            {**given, "hit@9": [0.1, 0.2]},
            {},
        ):
            altered.append(put(value, ("summary", *path, "intervals"), bounds))
    altered.append(put(value, ("summary", "categories", "y", "intervals"), {"mrr": [0.2, 0.9]}))
    new = copy.deepcopy(value)
    del new["summary"]["overall"]["intervals"]
    altered.append(new)
    for new in altered:
        assert refused(new).startswith("digests.run is not the digest of the rest: arm, run, set, ")
    for bad in ([0.1], [0.1, 0.2, 0.3], [0.1, True], [0.1, "0.2"], [0.1, float("nan")], 0.1, None):
        assert "intervals.mrr" in refused(put(value, ("summary", "overall", "intervals", "mrr"), bad))


def resealed(report: Report, overall: Slice) -> Report:
    """The report with another summary of all rows, put together anew so that its digests are right."""
    fields = {name: getattr(report, name) for name in Report.model_fields if name != "digests"}
    summary = Summary(overall=overall, categories=report.summary.categories)
    return Report.sealed(**{**fields, "summary": summary})


def test_a_forged_interval_with_digests_to_match_is_found_by_validate(mixed: Space) -> None:
    """Readers do not recompute intervals, so `validate` does, and says what the rows give."""
    report = measured(mixed)
    path = mixed.reports / "arm.json"
    assert mixed.core("validate", path).code == 0
    overall = report.summary.overall
    low, high = overall.intervals["mrr"]
    forged = overall.model_copy(update={"intervals": {**overall.intervals, "mrr": (0.7, 0.8)}})
    write_report(path, resealed(report, forged))
    assert read_report(path).summary.overall.intervals["mrr"] == (0.7, 0.8)
    done = mixed.core("validate", path)
    assert done.code == 1
    told = f"summary.overall.mrr: the interval is 0.7 to 0.8, and the rows give {low:g} to {high:g}"
    assert told in done.out
    assert "eval-core measure arm" in done.out


@pytest.mark.parametrize("kept", [(), ("mrr",)])
def test_a_report_without_its_intervals_does_not_validate(mixed: Space, kept: tuple[str, ...]) -> None:
    report = measured(mixed)
    overall = report.summary.overall
    left = {name: overall.intervals[name] for name in kept}
    path = mixed.reports / "arm.json"
    write_report(path, resealed(report, overall.model_copy(update={"intervals": left})))
    done = mixed.core("validate", path)
    assert done.code == 1
    assert "recall@1: the interval is none, and the rows give " in done.out


def test_an_interval_that_no_row_gives_does_not_validate(mixed: Space) -> None:
    report = measured(mixed)
    overall = report.summary.overall
    more = {**overall.intervals, "hit@9": (0.1, 0.2)}
    path = mixed.reports / "arm.json"
    write_report(path, resealed(report, overall.model_copy(update={"intervals": more})))
    done = mixed.core("validate", path)
    assert done.code == 1
    assert "hit@9: the interval is 0.1 to 0.2, and the rows give none" in done.out


def test_reading_a_report_loads_no_statistics(mixed: Space) -> None:
    """A gate's start-up is a feature: what makes intervals is not loaded to read them."""
    measured(mixed)
    code = (
        "import sys, pathlib; from eval_core.reports.report import read_report; "
        "read_report(pathlib.Path(sys.argv[1])); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(mixed.reports / "arm.json")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "eval_core.reports.report" in done.stdout.split()
    assert not {"eval_core.scoring.statistics", "eval_core.measuring.assemble", "numpy", "scipy"} & set(
        done.stdout.split()
    )
