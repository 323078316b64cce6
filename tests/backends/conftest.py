from __future__ import annotations

import json
import os
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from eval_backends.jsonl import JsonLines
from eval_core.corpus import CorpusFile

# An adapter that answers every query with its own process id, and runs BODY instead for the query "bad".
ADAPTER = """
import json, os, signal, subprocess, sys, time

def raw(data):
    view = memoryview(data)
    while view:
        view = view[os.write(1, view):]

def reply(value):
    raw(json.dumps(value).encode() + b"\\n")

HEAD
for line in sys.stdin:
    request = json.loads(line)
    if request["query"] != "bad":
        reply({"ids": [str(os.getpid())]})
        continue
BODY
"""


@pytest.fixture
def corpus(tmp_path: Path) -> Callable[..., CorpusFile]:
    """Write a corpus of (id to text) or (id to fields) and return it."""

    def write(documents: Mapping[str, str | Mapping[str, Any]], kind: str = "memory") -> CorpusFile:
        path = tmp_path / "corpus.jsonl"
        lines = [
            {"_id": name} | ({"text": fields} if isinstance(fields, str) else dict(fields))
            for name, fields in documents.items()
        ]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return CorpusFile(path, kind)

    return write


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    """Write an adapter and return its path: `body` is what it does at the query "bad", `head` at its start."""

    def write(body: str = "pass", head: str = "") -> str:
        path = tmp_path / "adapter.py"
        source = ADAPTER.replace("HEAD", textwrap.dedent(head))
        path.write_text(source.replace("BODY", textwrap.indent(textwrap.dedent(body), "    ")))
        return str(path)

    return write


@pytest.fixture
def adapter(
    script: Callable[..., str], corpus: Callable[..., CorpusFile]
) -> Iterator[Callable[..., JsonLines]]:
    """Make an indexed `jsonl` backend of an adapter script; it is closed at the end."""
    made: list[JsonLines] = []

    def make(body: str = "pass", head: str = "", **options: Any) -> JsonLines:
        # -S -E: a plain interpreter starts in half the time.
        backend = JsonLines(["{python}", "-S", "-E", script(body, head), "{corpus}"], **options)
        made.append(backend)
        backend.index(corpus({"d1": "text"}))
        return backend

    yield make
    for backend in made:
        backend.close()


@pytest.fixture
def installed(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Install a distribution of one module with entry points; return the environment of a process that sees it."""
    folder = tmp_path / "site"

    def install(name: str, points: Mapping[str, str], source: str) -> dict[str, str]:
        about = folder / f"{name}-1.2.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        lines = ["[eval.backends]", *(f"{point} = {target}" for point, target in points.items())]
        (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
        (folder / f"{name}.py").write_text(textwrap.dedent(source))
        return os.environ | {"PYTHONPATH": str(folder), "PYTHONWARNINGS": "error"}

    return install


def _descriptors() -> set[str]:
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
        except FileNotFoundError:  # the listing itself
            continue
    return found


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """After the test: no child process, not even a dead one, and no open file that was not there before."""
    linux = sys.platform == "linux"
    before = _descriptors() if linux else set()
    yield
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    if linux:
        assert _descriptors() - before == set()


@pytest.fixture
def dies() -> Callable[[int], bool]:
    """Say whether a process that is no child of ours ends within two seconds."""

    def check(pid: int) -> bool:
        deadline = time.monotonic() + 2
        while _running(pid):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    return check


def _running(pid: int) -> bool:
    if sys.platform == "linux":
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return False
        return state not in "ZX"  # an orphan may stay a zombie where nothing collects it
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
