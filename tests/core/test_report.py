"""A report: what it holds, how it is written and stripped, and what is no report."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from report_support import PATH, at, leaves, put, refused

from eval_core.errors import Refused
from eval_core.reports.check import run_digest, run_digest_of
from eval_core.reports.report import Report, dump, parse_report, read_report, summarise

ROOT = Path(__file__).resolve().parents[2]


# --------------------------------------------------------------------------------------------- as it is


def test_the_sample_holds_what_the_tests_need(sound: Report) -> None:
    assert sound.health.model_dump() == {
        "scored": 4,
        "errored": 3,
        "unscored": 1,
        "unscorable": 1,
        "duplicates": 1,
        "excess": 0,
        "restarts": 0,
        "unstable": 1,
        "counts": {},
    }
    assert list(sound.summary.categories) == ["x", "y"]
    deep = next(row for row in sound.rows if row.id == "deep")
    assert (deep.ids, [judged.rank for judged in deep.judged]) == (("d01", "d02", "d03"), [4, 5])
    assert deep.meta == {"category": "y", "exclude": ["d12"]}
    assert sound.dataset.headline == "hit@1"


def test_a_report_is_read_as_it_was_written(sound: Report) -> None:
    assert parse_report(dump(sound), PATH, "arm") == sound
    assert parse_report(json.dumps(json.loads(dump(sound)), indent=3).encode(), PATH) == sound
    assert dump(parse_report(dump(sound), PATH)) == dump(sound)


def test_a_report_is_a_line_a_field_and_a_line_a_row(sound: Report) -> None:
    """So that a diff of two committed copies shows which query moved."""
    lines = dump(sound).decode().splitlines()
    assert sum(line.startswith('  {"id": ') for line in lines) == len(sound.rows)
    assert lines[0] == "{"
    assert lines[1] == ' "schema": "report-v1",'
    assert dump(sound).endswith(b"\n ]\n}\n")


def test_a_report_carries_its_configuration(value: Any) -> None:
    """M7: the set and its digest, backend, options, cut-offs, limit, repetitions, scale."""
    assert value["dataset"]["name"] == "things"
    assert re.fullmatch("[0-9a-f]{64}", value["task"]["parts"]["corpus"])
    assert (value["task"]["parts"]["limit"], value["task"]["parts"]["cutoffs"]) == (6, [1, 3])
    assert (value["task"]["parts"]["scale"], value["repetitions"]) == (0, 2)
    assert (value["system"]["parts"]["backend"], value["system"]["parts"]["options"]) == ("told", {})
    assert value["system"]["parts"]["implementation"] == {"told": 1}


def test_a_report_of_another_arm_is_told_apart(sound: Report) -> None:
    with pytest.raises(Refused, match="is a report of arm 'arm', not of 'other'") as caught:
        parse_report(dump(sound), PATH, "other")
    assert caught.value.code == "report-of-another-arm"


def test_a_missing_report_is_missing(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="there is no such report") as caught:
        read_report(tmp_path / "none.json")
    assert (caught.value.code, caught.value.exit_code) == ("report-missing", 1)
    with pytest.raises(Refused, match="cannot be read"):
        read_report(tmp_path)


def test_a_stripped_copy_is_without_timing_and_machine_and_the_same_bytes_each_time(sound: Report) -> None:
    """M8: a baseline holds quality only. Two copies that differ in timing and machine alone are one."""
    stripped = sound.stripped()
    assert parse_report(dump(stripped), PATH) == stripped
    assert (stripped.latency, stripped.ingest) == (None, None)
    assert (stripped.environment.process, stripped.environment.host) == (None, None)
    table = json.loads(dump(sound))
    table["latency"].update(p50=1.0, p95=2.0, max=3.0)
    table["ingest"]["seconds"] = 9.0
    table["environment"].update(process=1, host="elsewhere")
    other = parse_report(json.dumps(table).encode(), PATH)
    assert other != sound
    assert dump(other.stripped()) == dump(stripped) == dump(stripped.stripped())
    assert not re.search(rb'"(p50|p95|seconds)"', dump(stripped))


def test_the_summary_is_that_of_the_scored_rows(sound: Report) -> None:
    """Rows worked by hand: the means are over four scored rows, by category over those that have one."""
    overall = sound.summary.overall
    # graded: 0 at 1 (d02 has grade 0), d01 at 2, d11 nowhere; deep: d04 at 4; turning: d01 at 1; nothing: nothing.
    assert overall.n == 4
    assert overall.metrics["recall@1"] == pytest.approx((0 + 0 + 1 + 0) / 4)
    assert overall.metrics["recall@3"] == pytest.approx((1 / 2 + 0 + 1 + 0) / 4)
    assert overall.metrics["mrr"] == pytest.approx((1 / 2 + 1 / 4 + 1 + 0) / 4)
    assert sound.summary.categories["x"].n == 2
    assert sound.summary.categories["x"].metrics["mrr"] == pytest.approx((1 / 2 + 1) / 2)
    # A reader recomputes all of it but the intervals.
    plain = summarise(reversed(sound.rows), sound.measures)
    assert plain.overall == overall.model_copy(update={"intervals": {}})
    assert plain.categories == sound.summary.categories


def test_real_output_fits_the_committed_schemas(sound: Report) -> None:
    schema = json.loads((ROOT / "schemas" / "report-v1.schema.json").read_text("utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    for report in (sound, sound.stripped()):
        validator.validate(json.loads(dump(report)))
    broken = json.loads(dump(sound))
    broken["health"]["scored"] = "4"
    assert not validator.is_valid(broken)


# --------------------------------------------------------------------------------------------- what is none


def test_a_report_that_is_cut_short_anywhere_is_refused(sound: Report) -> None:
    """At every byte but the last, which is a newline."""
    raw = dump(sound)
    for end in range(len(raw) - 1):
        with pytest.raises(Refused) as caught:
            parse_report(raw[:end], PATH)
        assert caught.value.code == "report-malformed"
    assert parse_report(raw[:-1], PATH) == sound


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"{", "is not whole JSON: EOF while parsing an object at line 1 column 1; measure again"),
        (b"[]", "[]: should be an object"),
        (b"null", "None: should be an object"),
        (b"{}", "schema: it is missing"),
        (b"\xff\xfe{}", "is not whole JSON: "),
        (b"\x00", "is not whole JSON: "),
        (b"[" * 100_000, "is not whole JSON: "),
    ],
)
def test_what_is_no_report_is_refused(raw: bytes, expected: str) -> None:
    assert refused(raw).lstrip().startswith(expected)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('"n": 4, ', '"n": 5, "n": 4, ', "n"),
        (' "arm": "arm"', ' "arm": "other", "arm": "arm"', "arm"),
        ('{"id": "graded"', '{"id": "other", "id": "graded"', "id"),
        (' "resumed": false', ' "resumed": true, "resumed": false', "resumed"),
        (' "resumed": false', ' "resumed": false, "resumed": false', "resumed"),
    ],
)
def test_a_key_that_is_named_twice_is_refused(sound: Report, old: str, new: str, key: str) -> None:
    """Parsers take the last, people read the first: a report that says two things says neither."""
    text = dump(sound).decode()
    assert text.count(old) >= 1
    assert refused(text.replace(old, new, 1).encode()) == (
        f"key {key!r} is given twice in one table; measure again"
    )


def test_whole_numbers_written_without_a_point_say_the_same(sound: Report, value: Any) -> None:
    whole = [
        path for path in leaves(value) if isinstance(at(value, path), float) and at(value, path).is_integer()
    ]
    assert len(whole) > 10
    for path in whole:
        value = put(value, path, int(at(value, path)))
    assert parse_report(json.dumps(value).encode(), PATH) == sound


def test_the_run_digest_of_the_file_is_that_of_the_report(sound: Report, value: Any) -> None:
    assert run_digest(sound) == run_digest_of(value) == value["digests"]["run"]


def test_a_report_is_sealed_over_what_it_is_made_of(sound: Report) -> None:
    """A report that is put together anew, as in scoring a run again, has its digests from its fields."""
    fields = {name: getattr(sound, name) for name in Report.model_fields if name != "digests"}
    assert Report.sealed(**fields) == sound
    again = Report.sealed(**{**fields, "run_id": "another"})
    assert again.digests.rankings == sound.digests.rankings
    assert again.digests.quality == sound.digests.quality
    assert again.digests.run != sound.digests.run
    assert parse_report(dump(again), PATH) == again


def test_a_report_with_limits_of_an_earlier_version_is_accepted(sound: Report) -> None:
    """Fields that went, the overlap by category and the pairs of near-duplicates, are read and not missed."""
    fields = {name: getattr(sound, name) for name in Report.model_fields if name != "digests"}
    pair = {"query": "q", "judged": "d01", "unjudged": "d02"}
    before = {
        **(sound.limits or {}),
        "overlap_by": {"category=x": {"mean": 0.5}},
        "near_duplicate_pairs": [pair],
    }
    old = Report.sealed(**{**fields, "limits": before})
    assert parse_report(dump(old), PATH) == old
