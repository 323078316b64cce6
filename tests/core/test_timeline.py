"""A timeline: when each document came and went, and what a query about a time can see."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_core.sets.timeline import Span, Timeline, read_timeline, time_fault

IDS = {"a", "b", "c", "d"}


def read(folder: Path, text: str) -> tuple[Timeline, list[str]]:
    path = folder / "timeline.jsonl"
    path.write_text(text, encoding="utf-8")
    faults: list[str] = []
    return read_timeline(path, IDS, lambda line, message: faults.append(f"{line} {message}")), faults


def test_versions_come_are_superseded_and_end(tmp_path: Path) -> None:
    timeline, faults = read(
        tmp_path,
        '{"epoch": 1, "id": "b", "supersedes": "a"}\n'
        '{"epoch": 3, "id": "c", "supersedes": "b"}\n'
        '{"epoch": 4, "ends": "c"}\n',
    )
    assert faults == []
    assert timeline.spans == {"a": Span(0, 1), "b": Span(1, 3), "c": Span(3, 4)}
    assert (timeline.last, timeline.final) == (4, False)


# a is there from 0 to 2, b from 2 to 4, c from 3 on; d is not listed, so it was always there.
SPANS = Timeline({"a": Span(0, 2), "b": Span(2, 4), "c": Span(3)}, last=4)


@pytest.mark.parametrize(
    ("time", "visible"),
    [
        (None, "cd"),  # now: what has no end
        ({"as_of": 0}, "ad"),
        ({"as_of": 1}, "ad"),
        ({"as_of": 2}, "bd"),  # the epoch of a change shows the new version
        ({"as_of": 3}, "bcd"),
        ({"as_of": 4}, "cd"),
        ({"between": [0, 1]}, "ad"),
        ({"between": [1, 2]}, "abd"),  # from <= b and to > a
        ({"between": [2, 3]}, "bcd"),
        ({"between": [3, 9]}, "bcd"),
        ({"historical": True}, "abcd"),
    ],
)
def test_what_a_time_can_see(time: Mapping[str, Any] | None, visible: str) -> None:
    assert [name for name in "abcd" if SPANS.visible(name, time)] == list(visible)


@given(
    st.integers(0, 6),
    st.one_of(st.none(), st.integers(1, 4)),
    st.integers(0, 8),
    st.integers(0, 8),
)
def test_as_of_and_between_agree_with_walking_through_the_epochs(
    start: int, length: int | None, first: int, last: int
) -> None:
    timeline = Timeline({"x": Span(start, None if length is None else start + length)}, last=20)
    alive = {epoch for epoch in range(30) if start <= epoch and (length is None or epoch < start + length)}
    assert timeline.visible("x", {"as_of": first}) == (first in alive)
    if first < last:
        assert timeline.visible("x", {"between": [first, last]}) == bool(alive & set(range(first, last + 1)))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"epoch": 1, "id": "a", "when": 2}', "1 unknown key 'when'  (known: epoch, id, supersedes, ends)"),
        ('{"id": "a"}', "1 epoch None should be a whole number of at least 1"),
        ('{"epoch": 0, "id": "a"}', "1 epoch 0 should be a whole number of at least 1"),
        ('{"epoch": true, "id": "a"}', "1 epoch True should be a whole number of at least 1"),
        ('{"epoch": 1.0, "id": "a"}', "1 epoch 1.0 should be a whole number of at least 1"),
        ('{"epoch": "1", "id": "a"}', "1 epoch '1' should be a whole number of at least 1"),
        ('{"epoch": 1}', "1 give one of 'id' (a document that comes) and 'ends' (one that goes)"),
        ('{"epoch": 1, "id": "a", "ends": "b"}', "1 give one of 'id' (a document that comes) and 'ends'"),
        ('{"epoch": 1, "ends": "a", "supersedes": "b"}', "1 'supersedes' goes with 'id', not with 'ends'"),
        ('{"epoch": 1, "id": "z"}', "1 names document 'z', which is not in the corpus"),
        ('{"epoch": 1, "id": ["a"]}', "1 names document ['a'], which is not in the corpus"),
        ('{"epoch": 1, "id": "a", "supersedes": "z"}', "1 names document 'z', which is not in the corpus"),
        ('{"epoch": 1, "id": "a"}\n{"epoch": 2, "id": "a"}', "2 document 'a' comes again (first at epoch 1)"),
        (
            '{"epoch": 1, "ends": "a"}\n{"epoch": 2, "ends": "a"}',
            "2 document 'a' ends again (first at epoch 1)",
        ),
        ('{"epoch": 1, "id": "a", "supersedes": "a"}', "1 document 'a' supersedes itself"),
        (
            '{"epoch": 3, "id": "a"}\n{"epoch": 3, "ends": "a"}',
            "2 document 'a' ends at epoch 3, not after it came at 3",
        ),
        (
            '{"epoch": 1, "id": "b", "supersedes": "a"}\n{"epoch": 2, "id": "a"}',
            "1 document 'a' ends at epoch 1, not after it came at 2",
        ),
        ("{", "1 not JSON: "),
    ],
)
def test_a_line_that_makes_no_sense_is_a_fault(tmp_path: Path, text: str, fault: str) -> None:
    _, faults = read(tmp_path, text)
    assert len(faults) == 1
    assert faults[0].startswith(fault)


@pytest.mark.parametrize(
    "time",
    [{"as_of": 0}, {"as_of": 4}, {"between": [0, 1]}, {"between": [3, 99]}, {"historical": True}],
)
def test_a_time_of_the_three_forms_is_sound(time: dict[str, Any]) -> None:
    assert time_fault(time, last=4) is None


@pytest.mark.parametrize(
    ("time", "told"),
    [
        ({"as_of": 5}, "as_of 5 is outside the timeline (epochs 0 to 4)"),
        ({"as_of": -1}, "as_of -1 is outside"),
        ({"as_of": True}, "should be one of"),
        ({"as_of": "2026-01-01"}, "should be one of"),
        ({"between": [2, 2]}, "should rise"),
        ({"between": [3, 1]}, "should rise"),
        ({"between": [-1, 1]}, "begins before epoch 0"),
        ({"between": [1]}, "should be one of"),
        ({"between": [1, 2.0]}, "should be one of"),
        ({"historical": False}, "should be one of"),
        ({"as_of": 1, "historical": True}, "should be one of"),
        ({}, "should be one of"),
        ({"now": True}, "should be one of"),
        (3, "should be one of"),
    ],
)
def test_any_other_time_is_told_with_the_forms(time: object, told: str) -> None:
    found = time_fault(time, last=4)
    assert found is not None
    assert told in found
