"""What is written in the repository speaks of the project alone: no machine's paths, no registry's hosts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
READ = {".py", ".toml", ".txt", ".md", ".yml", ".yaml", ".json", ".cfg", ".ini", ".sh", ".in", ".typed", ""}
PASSED_OVER = {".git", ".nox", ".venv", ".eval", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"}
PASSED_OVER |= {".hypothesis", "build", "dist"}

# Split, so that this file does not hold what it looks for.
FOLDERS = ("root", "home", "Users", "work", "mnt", "opt")
PATHS = re.compile(rf"""(?<![\w.~}}\])*-])/(?:{"|".join(FOLDERS)})/\w|[A-Z]:\\+Users\\""")
NAMES = (r"pypi@\.(org|io)", r"python@hosted\.org", r"registry@\.npmjs", r"crates@\.io")
HOSTS = re.compile(r"\b(" + "|".join(NAMES).replace("@", "") + ")")


def written() -> Iterator[Path]:
    """Every text of the repository, but for judged sets and other tests' data, which are not written here."""
    for folder, inner, files in os.walk(ROOT):
        place = Path(folder)
        inner[:] = sorted(set(inner) - PASSED_OVER - ({"datasets"} if place == ROOT else set()))
        if "data" in inner and ROOT / "tests" in (place, *place.parents):
            inner.remove("data")
        yield from (place / name for name in sorted(files) if Path(name).suffix in READ)


def strange(text: str) -> list[str]:
    """The lines of `text` that name a place on someone's machine or a registry's host, each with its number."""
    lines = enumerate(text.splitlines(), start=1)
    return [f"{number}: {line.strip()}" for number, line in lines if PATHS.search(line) or HOSTS.search(line)]


def test_no_source_names_a_machine_or_a_registry() -> None:
    found = {}
    read = 0
    for path in written():
        read += 1
        if lines := strange(path.read_text(encoding="utf-8")):
            found[path.relative_to(ROOT).as_posix()] = lines
    assert read > 40, "the sources were not found"
    assert not found


@pytest.mark.parametrize(
    ("line", "is_strange"),
    [
        ("/ro" + "ot/notes.txt", True),
        ("open('/ho" + "me/someone/x')", True),
        ("C:\\Us" + "ers\\someone", True),
        ("https://py" + "pi.org/simple", True),
        (".nox/shared/bin/python", False),
        ("datasets/home/x", False),
        ("/usr/bin/env bash", False),
    ],
)
def test_a_machine_or_registry_is_recognised(line: str, is_strange: bool) -> None:
    assert bool(strange(line)) is is_strange


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a page outside of code and tables, with their numbers."""
    fenced = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("|"):
            yield number, line


def test_lines_of_markdown_are_at_most_120_characters() -> None:
    """So that a diff shows the sentence that changed. Code and tables are as wide as they are."""
    pages = [path for path in written() if path.suffix == ".md"]
    assert len(pages) > 15, "the pages were not found"
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in pages
        for number, line in prose(path.read_text(encoding="utf-8"))
        if len(line) > 120 and " " in line[:120].strip()
    ]
    assert not long
