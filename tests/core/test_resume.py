"""A run that was cut short is gone on with: the same answers, none asked for twice, nothing mixed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from core_support import DOCUMENTS, QUERIES, RIGHT, Change, Space, outcomes, rewrite, told

from eval_core.backend import BackendError, Request
from eval_core.errors import Refused
from eval_core.measuring.partial import is_whole


def interrupted(space: Space, text: str = "repetitions = 2\n", at: str = "q4") -> None:
    """Measure and be interrupted at a query of the first pass."""
    seen = 0

    def stop(request: Request) -> Any:
        nonlocal seen
        seen += 1
        return KeyboardInterrupt() if seen == 2 else RIGHT[request.text]  # the first is the warm-up

    with pytest.raises(KeyboardInterrupt):
        space.measure(told(**{at: stop}), text=text)


def test_a_resumed_run_asks_only_what_is_missing_and_ends_like_a_whole_one(things: Space) -> None:
    interrupted(things)
    header = json.loads((things.runs / "arm.partial").read_text().splitlines()[0])
    backend = told()
    report = things.measure(backend, resume=True)
    asked = [request.id for request in backend.asked]
    assert asked == [*list(QUERIES)[:5], "q4", "q5", "q6", *QUERIES]
    assert report.resumed
    assert report.run_id == header["run_id"]
    assert report.statements[0] == "resumed after an interruption: whole, and no evidence for a floor"
    assert report.latency is not None
    assert report.latency.samples == 12
    whole = things.measure(told())
    assert not whole.resumed
    assert report.digests.rankings == whole.digests.rankings
    assert report.digests.quality == whole.digests.quality
    assert not (things.runs / "arm.partial").exists()


def test_what_was_counted_before_the_interruption_counts(things: Space) -> None:
    seen: list[str] = []

    def fail(request: Request) -> Any:
        seen.append(request.id)
        return BackendError("killed", restarted=True) if len(seen) == 2 else ["d2", "d2"]

    stop = iter([["d4"], KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        things.measure(told(q2=fail, q1=["d1", "d1"], q4=lambda r: next(stop)), text="repetitions = 1\n")
    report = things.measure(told(), resume=True)
    assert outcomes(report)["q2"] == "errored"
    assert (report.health.restarts, report.health.duplicates) == (1, 1)


@pytest.mark.parametrize(
    ("change", "text", "told_"),
    [
        (rewrite(queries={**QUERIES, "q1": "changed"}), "", "another task (queries differ)"),
        (rewrite(documents={**DOCUMENTS, "d8": "x"}), "", "another task (corpus differ)"),
        (None, "limit = 20\n", "another task (limit differ)"),
        (None, "options.k1 = 3\n", "another system (options differ)"),
    ],
)
def test_what_measured_something_else_is_not_resumed(
    things: Space, change: Change | None, text: str, told_: str
) -> None:
    interrupted(things, text="")
    if change is not None:
        change(things)
    before = (things.runs / "arm.partial").read_bytes()
    with pytest.raises(Refused) as caught:
        things.measure(told(), resume=True, text=text)
    assert f"{things.runs / 'arm.partial'}: the unfinished run had {told_}" in str(caught.value)
    assert "Measure without --resume to begin again." in str(caught.value)
    assert (things.runs / "arm.partial").read_bytes() == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[:-7],  # the line in flight
        lambda raw: raw + b'{"pass": 0, "id": "q4", "ids": ["d',
        lambda raw: raw + b"\x00" * 64 + b"\n",  # a power cut
        lambda raw: raw + b'{"pass": 0, "id": "q5"}\n',  # no answer in it
        lambda raw: raw + b'{"pass": "0", "id": 5}\nnonsense\n[]\n',
    ],
    ids=["cut", "torn", "zeros", "empty", "nonsense"],
)
def test_a_damaged_line_is_measured_again(things: Space, damage: Callable[[bytes], bytes]) -> None:
    interrupted(things)
    path = things.runs / "arm.partial"
    path.write_bytes(damage(path.read_bytes()))
    report = things.measure(told(), resume=True)
    assert report.resumed
    assert report.digests.rankings == things.measure(told()).digests.rankings


def test_a_torn_line_spoils_no_later_one(things: Space) -> None:
    """A run that is cut short, gone on with and cut short again asks for nothing twice but what was in flight."""
    interrupted(things, text="repetitions = 1\n")
    path = things.runs / "arm.partial"
    path.write_bytes(path.read_bytes()[:-7])  # q3's answer
    stop = iter([["d5"], KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        things.measure(told(q5=lambda request: next(stop)), resume=True)
    kept = [json.loads(line)["id"] for line in path.read_text().splitlines()[1:]]
    assert kept == ["q1", "q2", "q3", "q4"]
    backend = told()
    assert things.measure(backend, resume=True).n == 6
    assert [request.id for request in backend.asked[5:]] == ["q5", "q6"]


@pytest.mark.parametrize("raw", [b"", b'{"run_id": "x", "ta', b"\x00\x00"])
def test_an_unfinished_run_whose_header_is_lost_is_begun_again(things: Space, raw: bytes) -> None:
    things.runs.mkdir(parents=True)
    (things.runs / "arm.partial").write_bytes(raw)
    report = things.measure(told(), resume=True, text="")
    assert (report.resumed, report.n) == (False, 6)


def test_measuring_anew_sets_an_unfinished_run_aside(things: Space) -> None:
    interrupted(things)
    before = (things.runs / "arm.partial").read_bytes()
    report = things.measure(told())
    assert not report.resumed
    assert (things.runs / "arm.partial.old").read_bytes() == before


def test_resuming_nothing_measures(things: Space) -> None:
    report = things.measure(told(), resume=True, text="")
    assert (report.resumed, report.n) == (False, 6)


@pytest.mark.parametrize(
    "damage",
    [
        {"ids": 5},
        {"ids": ["d1", "d1"]},
        {"ids": [1, 2]},
        {"latency": "x"},
        {"latency": None},
        {"duplicates": "x"},
        {"reordered": None},
        {"scores": "zz"},
        {"scores": [1]},
    ],
)
def test_a_line_of_the_partial_run_that_holds_no_answer_is_measured_again(damage: dict[str, Any]) -> None:
    sound = {
        "pass": 0,
        "id": "q1",
        "ids": ["d1", "d2"],
        "scores": None,
        "duplicates": 0,
        "reordered": False,
        "excess": 0,
        "latency": 1.5,
    }
    assert is_whole(sound)
    assert not is_whole({**sound, **damage})
