"""What the tests of reports share: one with everything in it, and ways to alter it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from core_support import Space, Told

from eval_core.backend import BackendError, Request
from eval_core.errors import Refused
from eval_core.reports.report import Report, parse_report

PATH = Path("report.json")


def measured(space: Space) -> Report:
    """A small report with everything in it: each outcome, categories, grades, exclusions, a rank beyond the cut-off.

    The queries of scope s have an index of their own, measured last, where the backend is given up.
    """
    in_scope = {"scope": "s"}
    names = [f"d{number:02}" for number in range(1, 13)]
    space.set(
        {**dict.fromkeys(names, "t"), "d01": {"text": "t", "metadata": {"scopes": ["s"]}}},
        {
            "graded": {"text": "a", "metadata": {"category": "x", "kind": "k", "note": "not kept"}},
            "deep": {"text": "b", "metadata": {"category": "y", "exclude": ["d12"]}},
            "turning": {"text": "c", "metadata": {"category": "x"}},
            "nothing": "d",
            "broken": {"text": "e", "metadata": {"must_pass": True, **in_scope}},
            "broken2": {"text": "f", "metadata": in_scope},
            "broken3": {"text": "g", "metadata": in_scope},
            "late": {"text": "h", "metadata": in_scope},
            "unjudged": {"text": "i", "metadata": {"unanswerable": True}},
        },
        [
            ("graded", "d01", 2),
            ("graded", "d02", 0),
            ("graded", "d11", 1),
            ("deep", "d05", 0),  # at rank 5, beyond the cut-off of 3, and of grade 0: in no measure
            ("deep", "d04", 1),
            *((query, "d01", 1) for query in ("turning", "nothing", "broken", "broken2", "broken3", "late")),
            ("unjudged", "d01", 0),
        ],
        'name = "things"\nversion = "3"\nkind = "k"\nheadline = "hit@1"\n',
    )
    turns = iter([["d01", "d02"], ["d01", "d02"], ["d02", "d01"]])
    broken = BackendError("it broke")

    def turning(request: Request) -> list[str]:
        return next(turns)

    answers = {
        "a": ["d02", "d01", "d03", "d03"],
        "b": names[:6],
        "c": turning,
        "d": [],
        "e": broken,
        "f": broken,
    }
    return space.measure(
        Told({**answers, "g": broken}), text="limit = 6\ncutoffs = [1, 3]\nrepetitions = 2\n"
    )


def refused(value: Any, arm: str | None = None) -> str:
    """The reason why the report is not believed, in words."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    with pytest.raises(Refused) as caught:
        parse_report(raw, PATH, arm)
    assert caught.value.code == "report-malformed"
    assert caught.value.exit_code == 1
    message: str = caught.value.message
    assert message.startswith("report.json: ")
    return message.removeprefix("report.json: ")


Path_ = tuple[str | int, ...]


def at(value: Any, path: Path_) -> Any:
    for part in path:
        value = value[part]
    return value


def put(value: Any, path: Path_, new: Any) -> Any:
    changed = copy.deepcopy(value)
    at(changed, path[:-1])[path[-1]] = new
    return changed


def leaves(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from leaves(inner, (*path, place))
    else:
        yield path
