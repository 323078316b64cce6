from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from eval_backends.jsonl import JsonLines
from eval_core.sets.corpus import CorpusFile

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


# A module of somebody else's backends. The classes print wherever they can and fail in every way they may.
NOISY = """
    import os, subprocess, sys
    from eval_core.backend import BackendError, Reply
    from eval_core.errors import CouldNot

    print("printed at import")

    class Noisy:
        capabilities = frozenset()

        def __init__(self, fail=""):
            self.fail = fail
            print("printed when made")

        def describe(self):
            return {}

        def index(self, corpus):
            print("kind", corpus.kind)
            if self.fail == "index":
                raise CouldNot("backend-failed", "the model is not there")
            if self.fail == "index-error":
                raise BackendError("the store is down")

        def search(self, request):
            print("printed by search")
            os.write(1, b"written to 1\\n")
            subprocess.run([sys.executable, "-c", "print('said by a child', repr(input()))"], stderr=subprocess.DEVNULL)
            match request.text:
                case "error":
                    raise BackendError("no answer to this")
                case "fault":
                    raise ValueError("a fault")
                case "gone":
                    raise CouldNot("backend-failed", "the service has gone away")
                case "nan":
                    return Reply(["a"], [float("nan")])
            return Reply((request.kind,))

        def close(self):
            print("closed")

    def broken():
        raise TypeError("never called")

    class Odd:
        capabilities = {"fliter"}

    not_callable = 7
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
def facts(corpus: Callable[..., CorpusFile]) -> CorpusFile:
    """Five facts, one of them empty."""
    return corpus(
        {
            "f1": {"text": "the vpn is deferred until the second quarter", "metadata": {"kind": "decision"}},
            "f2": {"text": "deploys go out on tuesday and never on friday", "metadata": {"kind": "rule"}},
            "f3": {"text": "the forge listens on loopback only", "metadata": {"kind": "rule"}},
            "f4": {"text": "", "metadata": {"kind": "rule"}},
            "f5": {"text": "Über den Größenwahn: „vpn“ and C++", "metadata": {"kind": "fact"}},
        }
    )


@pytest.fixture
def run() -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Run the script on arguments, with what is sent to it and in which environment."""

    def call(
        arguments: Sequence[str], sent: bytes = b"", environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "eval_backends", *arguments]
        return subprocess.run(command, input=sent, capture_output=True, timeout=60, env=environment)

    return call


@pytest.fixture
def installed(tmp_path: Path) -> Callable[[Mapping[str, str]], dict[str, str]]:
    """Install the distribution `noisy` with some entry points; return the environment of a process that sees it."""

    def install(points: Mapping[str, str]) -> dict[str, str]:
        folder = tmp_path / "site"
        about = folder / "noisy-1.2.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: noisy\nVersion: 1.2\n")
        lines = ["[eval.backends]", *(f"{point} = {target}" for point, target in points.items())]
        (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
        (folder / "noisy.py").write_text(textwrap.dedent(NOISY))
        (folder / "noisy_exit.py").write_text("raise SystemExit('needs a licence')")
        path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
        # Unbuffered output would hide that what is printed late could land among the replies.
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        return inherited | {"PYTHONPATH": path, "PYTHONWARNINGS": "error"}

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
