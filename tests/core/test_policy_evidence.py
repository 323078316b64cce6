"""Evidence lines: what is written is read again, and whatever is altered anywhere in a line is noticed."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from core_support import Space
from evidence_support import hits, line
from report_support import Path_, at, leaves, put

from eval_core.errors import EvalError, Refused
from eval_core.policy.evidence import SHARED, Line, dump, line_of, parse_evidence, path_of, read_evidence
from eval_core.reports.report import Report

ROOT = Path(__file__).resolve().parents[2]
RUNS = [f"r{number}" for number in range(1, 5)]


def read(raw: bytes) -> tuple[Line, ...]:
    return parse_evidence(raw, "arm.jsonl")


def refused(raw: bytes) -> Refused:
    with pytest.raises(Refused) as caught:
        read(raw)
    return caught.value


# --- from a report ---


def test_a_line_holds_what_decides_the_score_of_each_row_of_its_report(sound: Report) -> None:
    """Every measure of the report follows from the line, which holds no text, no ranking and no timing."""
    made = line_of(sound)
    assert (made.n, made.headline, made.measures) == (sound.n, sound.dataset.headline, sound.measures)
    for name, mean in sound.summary.overall.metrics.items():
        assert made.mean(name) == pytest.approx(mean, abs=1e-12)
    for category, part in sound.summary.categories.items():
        assert made.categories[category] == part.n
        assert {name: made.mean(name, category) for name in part.metrics} == pytest.approx(part.metrics)
    assert made.quality == sound.digests.quality
    raw = dump([made])
    assert not any(row.text.encode() in raw for row in sound.rows if len(row.text) > 3)
    assert b"latency" not in raw and b"seconds" not in raw
    assert read(raw) == (made,)


# --- written and read ---


def differing() -> list[Line]:
    """Four runs: the third finds one query less, the fourth is as the first."""
    return [
        hits(9, 1, "r1", categories=["x", "y", ""] * 3),
        hits(9, 1, "r2", categories=["x", "y", ""] * 3, clean=False, ci_run="8812"),
        hits(9, 2, "r3", categories=["x", "y", ""] * 3),
        hits(9, 1, "r4", categories=["x", "y", ""] * 3, rankings="others"),
    ]


def test_lines_are_read_as_they_were_written_whatever_their_order() -> None:
    runs = differing()
    assert read(dump(runs)) == read(dump(runs[::-1])) == tuple(runs)
    assert dump(read(dump(runs))) == dump(runs)


def test_a_line_that_repeats_an_earlier_one_names_it_and_is_written_short() -> None:
    tables = [json.loads(text) for text in dump(differing()).splitlines()]
    assert [table.get("same") for table in tables] == [None, "r1", None, "r1"]
    for table in tables:
        assert ("same" in table) != any(name in table for name in SHARED)
        assert ("same" in table) != (table.keys() >= set(SHARED))


def test_sweeping_lines_from_the_front_leaves_the_digests_of_the_others() -> None:
    """`line` covers what a line says, however short it is written."""
    runs = differing()
    digests = {run.run_id: run.line for run in runs}
    for first in range(1, len(runs)):
        kept = read(dump(read(dump(runs))[first:]))
        assert {run.run_id: run.line for run in kept} == {
            run.run_id: digests[run.run_id] for run in runs[first:]
        }


def test_quality_is_of_what_was_measured_and_never_of_which_run() -> None:
    first, second, third, fourth = differing()
    assert first.quality == second.quality == fourth.quality != third.quality
    assert len({run.line for run in (first, second, third, fourth)}) == 4


# --- altered ---


def tables() -> list[dict[str, Any]]:
    return [json.loads(text) for text in dump(differing()).splitlines()]


def joined(values: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def others(leaf: Any) -> list[Any]:
    """Values of the same type, and of others, that are not the leaf."""
    match leaf:
        case bool():
            return [not leaf, None, int(leaf), str(leaf)]
        case int():
            return [leaf + 1, leaf - 1, str(leaf), None, leaf + 0.5, float(leaf) + 1]
        case str():
            return [leaf + "x", leaf[:-1] if leaf else "y", "0" * 64, None, 1]
    return ["x", 1, True]


def test_every_leaf_that_is_altered_alone_is_noticed() -> None:
    """B3: a number edited in evidence contradicts the rest of its line, in the whole line and in the short one."""
    sound = read(joined(tables()))
    passed = []
    for place, table in enumerate(tables()):
        for path in leaves(table):
            for new in others(at(table, path)):
                altered = tables()
                altered[place] = put(copy.deepcopy(table), path, new)
                try:
                    found = read(joined(altered))
                except Refused as error:
                    assert error.code in ("evidence-malformed", "evidence-contradicts")
                    assert error.details.line is not None
                    continue
                if found != sound:
                    passed.append((place, path, new))
    assert passed == []


def test_every_key_that_is_added_or_taken_away_is_noticed() -> None:
    """What is optional and at its usual value says the same when it is left out."""
    sound = read(joined(tables()))
    for place, table in enumerate(tables()):
        for path in [(), *containers(table)]:
            for change in (added, *(taken(key) for key in keys(at(table, path)))):
                altered = tables()
                change(at(altered[place], path))
                try:
                    assert read(joined(altered)) == sound, (place, path)
                except Refused:
                    continue


def test_a_short_line_that_holds_what_it_repeats_is_refused() -> None:
    """Else a reader of the file would see other numbers than the gate."""
    altered = tables()
    altered[1]["quality"] = altered[0]["quality"]
    assert "repeats run 'r1', and still holds quality" in refused(joined(altered)).message


def containers(value: Any, path: Path_ = ()) -> list[Path_]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [(*path, key) for key, part in inner if isinstance(part, dict | list)]
    return found + [deep for each in found for deep in containers(at(value, each[len(path) :]), each)]


def keys(value: Any) -> list[Any]:
    return list(value) if isinstance(value, dict) else list(range(len(value)))


def added(value: Any) -> None:
    if isinstance(value, dict):
        value["added"] = 1
    else:
        value.append(copy.deepcopy(value[-1]) if value else "added")


def taken(key: Any) -> Callable[[Any], None]:
    def change(value: Any) -> None:
        del value[key]

    return change


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda v: v.append(v[0]), "evidence-malformed", "the run is there twice"),
        (lambda v: v.pop(0), "evidence-contradicts", "names run 'r1', and no line above is of it"),
        (lambda v: v.reverse(), "evidence-contradicts", "no line above is of it"),
        (lambda v: v[0]["entries"].append(v[0]["entries"][0]), "evidence-contradicts", "hold a query twice"),
        (lambda v: v[0]["task"].update(limit=5), "evidence-contradicts", "cutoffs"),
        (lambda v: v[0]["set"].update(headline="recall@20"), "evidence-contradicts", "recall@20 looks at 20"),
        (
            lambda v: v[0]["set"].update(headline="recal"),
            "evidence-contradicts",
            "there is no measure 'recal'",
        ),
        (lambda v: v[0].update(run_id="../x"), "evidence-malformed", "run_id"),
        (lambda v: v[0].update(extra=1), "evidence-malformed", "extra: unknown key"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(
    change: Callable[[list[Any]], Any], code: str, words: str
) -> None:
    values = tables()
    change(values)
    error = refused(joined(values))
    assert error.code == code
    assert words in error.message
    assert error.message.startswith("arm.jsonl:")


@pytest.mark.parametrize(
    "raw", [b"{", b"[]", b"\xff", b"3", b'{"schema": "evidence-v2"}', b"\n", b"<<<<<<< HEAD\n"]
)
def test_what_is_no_evidence_is_malformed(raw: bytes) -> None:
    assert refused(raw).code == "evidence-malformed"


def test_ranks_that_cannot_be_are_refused_even_where_every_digest_fits() -> None:
    """The digests of an invented line fit; what no backend can have answered does not pass."""
    for answers, words in (
        ([[(1, 1), (1, 1)]], "a rank cannot be"),
        ([11], "a rank cannot be"),
        ([[(1, 0)]], "a rank cannot be"),
    ):
        assert words in refused(dump([line(answers)])).message


def test_evidence_that_is_absent_or_no_file_is_refused(tmp_path: Path) -> None:
    path = path_of(tmp_path, "arm")
    assert path == tmp_path / "evidence" / "arm.jsonl"
    with pytest.raises(EvalError) as caught:
        read_evidence(path)
    assert caught.value.code == "evidence-missing"
    path.mkdir(parents=True)
    with pytest.raises(EvalError) as caught:
        read_evidence(path)
    assert caught.value.code == "evidence-malformed"


# --- how large it is ---


def test_ten_runs_of_seven_arms_stay_within_150_kb(tmp_path: Path) -> None:
    """By arithmetic on real lines: 484 queries as those of memory are, and ten runs an arm that agree."""
    space = Space(tmp_path, lambda name, factory: None)
    space.arm("repetitions = 1", backend="bm25", dataset=str(ROOT / "datasets" / "memory"))
    made = line_of(space.measure())
    runs = [made.model_copy(update={"run_id": f"{made.run_id[:-1]}{number}"}) for number in range(10)]
    whole, *short = (len(text) for text in dump(runs).splitlines())
    entries = len(json.dumps(json.loads(dump(runs).splitlines()[0])["entries"], separators=(",", ":")))
    queries = 2 * 120 + 24 + 4 * 55
    size = queries * entries / made.n + 7 * (whole - entries + sum(short))
    assert size < 150_000
