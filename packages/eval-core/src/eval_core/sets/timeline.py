"""`timeline.jsonl`: when each document came and went, in epochs, and what a query about a time can see.

Every version lies in the corpus under its own id. A document that the timeline does not list is there from epoch 0.
A version is valid from its epoch until it is superseded or ends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval_core.sets.corpus import read_json_lines
from eval_core.sets.nearest import Nearest

Time = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """Valid in `start <= epoch < end`; no `end` means still valid."""

    start: int = 0
    end: int | None = None


_ALWAYS = Span()


@dataclass(frozen=True, slots=True)
class Timeline:
    """The spans of the documents that are not simply there from the start."""

    spans: Mapping[str, Span]
    last: int = 0

    def visible(self, document: str, time: Time | None) -> bool:
        """Whether a query about `time` may find the document; `None` asks for what is valid now."""
        span = self.spans.get(document, _ALWAYS)
        if time is None:
            return span.end is None
        if "as_of" in time:
            epoch = time["as_of"]
            return span.start <= epoch and (span.end is None or epoch < span.end)
        if "between" in time:
            first, last = time["between"]
            return span.start <= last and (span.end is None or span.end > first)
        return True

    @property
    def final(self) -> bool:
        """Whether every document is valid now, so that the final state is the whole corpus."""
        return all(span.end is None for span in self.spans.values())


def _is_epoch(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def time_fault(time: object, last: int) -> str | None:
    """Say what is wrong with a query's `time`, or None."""
    forms = 'one of {"as_of": 2}, {"between": [1, 3]}, {"historical": true}'
    if not isinstance(time, dict) or len(time) != 1:
        return f"time {time!r} should be {forms}"
    (form, value), *_ = time.items()
    if form == "as_of" and _is_epoch(value):
        return (
            None if 0 <= value <= last else f"time as_of {value} is outside the timeline (epochs 0 to {last})"
        )
    if form == "between" and isinstance(value, list) and len(value) == 2 and all(map(_is_epoch, value)):
        if value[0] >= value[1]:
            return f"time between {value} should rise"
        return None if value[0] >= 0 else f"time between {value} begins before epoch 0"
    if form == "historical" and value is True:
        return None
    return f"time {time!r} should be {forms}"


def read_timeline(path: Path, ids: Collection[str], fault: Callable[[int, str], None]) -> Timeline:
    """Read a timeline, telling `fault` (line, message) of everything wrong.

    A line is `{"epoch": e, "id": new, "supersedes": old}` (either of the last two may be left out: a document that
    comes, or ends with `{"epoch": e, "ends": old}`), with e at least 1.
    """
    nearest = Nearest(lambda: ids)
    starts: dict[str, int] = {}
    ends: dict[str, int] = {}
    end_lines: dict[str, int] = {}
    for number, value in read_json_lines(path, fault):
        unknown = sorted(set(value) - {"epoch", "id", "supersedes", "ends"})
        if unknown:
            fault(number, f"unknown key {unknown[0]!r}  (known: epoch, id, supersedes, ends)")
            continue
        epoch = value.get("epoch")
        if not isinstance(epoch, int) or isinstance(epoch, bool) or epoch < 1:
            fault(number, f"epoch {epoch!r} should be a whole number of at least 1")
            continue
        new, old, gone = value.get("id"), value.get("supersedes"), value.get("ends")
        if (new is None) == (gone is None):
            fault(number, "give one of 'id' (a document that comes) and 'ends' (one that goes)")
            continue
        if gone is not None and old is not None:
            fault(number, "'supersedes' goes with 'id', not with 'ends'")
            continue
        named = [name for name in (new, old, gone) if name is not None]
        strange = [name for name in named if not isinstance(name, str) or name not in ids]
        if strange:
            near = nearest.hint(strange[0]) if isinstance(strange[0], str) else ""
            fault(number, f"names document {strange[0]!r}, which is not in the corpus{near}")
            continue
        if new is not None:
            if new in starts:
                fault(number, f"document {new!r} comes again (first at epoch {starts[new]})")
                continue
            starts[new] = epoch
        leaving = old if old is not None else gone
        if leaving is not None:
            if leaving == new:
                fault(number, f"document {new!r} supersedes itself")
            elif leaving in ends:
                fault(number, f"document {leaving!r} ends again (first at epoch {ends[leaving]})")
            else:
                ends[leaving], end_lines[leaving] = epoch, number
    for name, epoch in ends.items():
        if epoch <= starts.get(name, 0):
            fault(
                end_lines[name],
                f"document {name!r} ends at epoch {epoch}, not after it came at {starts.get(name, 0)}",
            )
    spans = {name: Span(starts.get(name, 0), ends.get(name)) for name in starts.keys() | ends.keys()}
    return Timeline(spans, max([0, *starts.values(), *ends.values()]))
