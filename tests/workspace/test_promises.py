"""Every promise of a landed part is named, by its id, in the docstring or the name of a test that holds it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]

# The promises that landed parts claim. A part that lands adds its own.
# A: a backend-agnostic harness with a gate. K: measured floors gate the merge. M: retrieval over HTTP. R: comparison
# of retrievers. S: the ladder itself.
LANDED = frozenset(
    {
        "A1",
        "A2",
        "A3",
        "A4",
        "A5",
        "A6",
        "K1",
        "K2",
        "K3",
        "K4",
        "K5",
        "K6",
        "K7",
        "M2",
        "M5",
        "M7",
        "M8",
        "M9",
    }
    | {"R1", "R3", "R5", "R6", "R7", "R8", "S1", "S2", "S3", "S4", "S5", "S6"}
)


def named(source: str) -> Iterator[str]:
    """The promise ids that the tests of `source` name: functions called test_…, and classes of them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            words = [
                *re.findall(r"[A-Za-z0-9]+", ast.get_docstring(node) or ""),
                *node.name.upper().split("_"),
            ]
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            words = re.findall(r"[A-Za-z0-9]+", ast.get_docstring(node) or "")
        else:
            continue
        yield from (word for word in words if re.fullmatch(r"[AKMRS][0-9]{1,2}", word))


def test_every_landed_promise_is_named_by_a_test() -> None:
    here = Path(__file__).resolve()
    found: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        if path.resolve() != here:
            found.update(named(path.read_text(encoding="utf-8")))
    assert sorted(LANDED - found) == [], "no test names these"


@pytest.mark.parametrize(
    ("source", "ids"),
    [
        ("def test_x():\n    '''K2: 24 of 27 passes.'''", {"K2"}),
        ("def test_k2_figures(): ...", {"K2"}),
        ("async def test_x():\n    '''Holds A1 and A3.'''", {"A1", "A3"}),
        ("class TestGate:\n    '''S5'''", {"S5"}),
        ("def test_x():\n    '''SK2 and K2x are no ids, nor is K200.'''", set()),
        ("def helper():\n    '''A1'''", set()),
        ("# A1\nNAME = 'A1'", set()),
        ("'''A module that names A1.'''", set()),
    ],
)
def test_only_what_a_test_says_of_itself_counts(source: str, ids: set[str]) -> None:
    assert set(named(source)) == ids
