from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# The helpers are a module of this folder, which the importlib mode of pytest does not find by itself.
sys.path.insert(0, str(Path(__file__).resolve().parent))

from core_support import DEFINITION, DOCUMENTS, INLINE, JUDGEMENTS, KINDS, QUERIES, Space
from report_support import measured

from eval_core import backend as backends
from eval_core.reports.report import Report, dump


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Any], None]:
    """Make a factory known as a backend of a name, beside those that are installed."""
    known: dict[str, Any] = {}
    load = backends.load
    monkeypatch.setattr(backends, "load", lambda name: known[name] if name in known else load(name))
    return known.__setitem__


@pytest.fixture
def space(tmp_path: Path, register: Callable[[str, Any], None]) -> Space:
    """An empty workspace in a folder of its own."""
    root = tmp_path / "space"
    root.mkdir()
    return Space(root, register)


@pytest.fixture
def things(space: Space) -> Space:
    """Six queries over eight documents, and no arm yet."""
    space.set(DOCUMENTS, QUERIES, JUDGEMENTS, DEFINITION)
    return space


@pytest.fixture
def kinds(space: Space) -> Space:
    """Queries that know the kind of what they look for."""
    space.set(
        {name: {"text": "t", "metadata": {"kind": kind}} for name, kind in KINDS.items()},
        {
            "q1": {"text": "query 1", "metadata": {"kind": "note", "category": "x"}},
            "q2": {"text": "query 2", "metadata": {"kind": "plan", "category": "y"}},
            "q3": {"text": "query 3", "metadata": {"category": "y"}},
        },
        [("q1", "d1", 1), ("q2", "d2", 1), ("q3", "d3", 1)],
    )
    return space


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A small report with everything in it, measured once."""
    known: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backends, "load", known.__getitem__)
        return measured(Space(tmp_path_factory.mktemp("space"), known.__setitem__))


@pytest.fixture
def value(sound: Report) -> Any:
    """The JSON of that report."""
    return json.loads(dump(sound))


@pytest.fixture
def shelves(space: Space) -> Space:
    """A set that bm25 answers rightly: query qN is about document dN."""
    documents = {f"d{number}": f"thing {number} on shelf {number}" for number in range(1, 9)}
    queries = {f"q{number}": f"thing {number}" for number in range(1, 7)}
    space.set(documents, queries, [(f"q{number}", f"d{number}", 1) for number in range(1, 7)], INLINE)
    return space
