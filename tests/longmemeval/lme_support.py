"""What the tests of longmemeval_convert share: records written by hand, and the script run in this process."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

#: Texts that no file of a set may hold, since they tell which documents are gold.
TELLING = ("answer_", "_abs", "has_answer")


class Done(NamedTuple):
    """How a script ended."""

    code: int
    out: str
    err: str


class Input(io.TextIOWrapper):
    """Standard input that holds some bytes."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BufferedReader(io.BytesIO(data)))


def call(main: Callable[[], object], *arguments: object, where: Path, data: bytes = b"") -> Done:
    """Run a script's `main` in this process, in the folder `where`, with `data` on its standard input."""
    out, err = io.StringIO(), io.StringIO()
    before, handler, stdin = sys.argv, signal.getsignal(signal.SIGTERM), sys.stdin
    sys.argv, sys.stdin = ["script", *map(str, arguments)], Input(data)
    code: object = "did not exit"
    try:
        with contextlib.chdir(where), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as done:
        code = done.code
    finally:
        sys.argv, sys.stdin = before, stdin
        signal.signal(signal.SIGTERM, handler)
    assert isinstance(code, int), code
    return Done(code, out.getvalue(), err.getvalue())


class Desk:
    """A folder in which the scripts are run."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def convert(self, *arguments: object, data: bytes = b"") -> Done:
        """Run longmemeval-convert."""
        from longmemeval_convert.cli import main

        return call(main, *arguments, where=self.root, data=data)

    def core(self, *arguments: object) -> Done:
        """Run eval-core."""
        from eval_core.cli import main

        return call(main, *arguments, where=self.root)

    def write(self, value: Any, name: str = "lme.json", **layout: Any) -> Path:
        """Write records, or bytes as they are."""
        path = self.root / name
        path.write_bytes(value if isinstance(value, bytes) else json.dumps(value, **layout).encode())
        return path

    def set(self, value: Any, *options: object) -> Path:
        """The set of these records, known to be sound."""
        self.write(value)
        done = self.convert("lme.json", "-o", "set", "--force", *options)
        assert done.code == 0, done.err
        sound = self.core("validate", "set")
        assert sound.code == 0, sound.out
        return self.root / "set"

    def left(self) -> list[str]:
        """What stands in the folder."""
        return sorted(path.name for path in self.root.iterdir())


#: Runs `main` of a module and prints the peak memory of the process in kB: what the system reports of a child is never
#: less than its parent's.
PEAK = """
import sys
from importlib import import_module
try:
    import_module(sys.argv.pop(1)).main()
finally:
    held = open("/proc/self/status").read()
    print("PEAK", held.split("VmHWM:")[1].split()[0])
"""


def peak(module: str, *arguments: object, where: Path, **environment: str) -> int:
    """The peak memory in kB of a script that succeeds; the test is skipped where the system does not tell."""
    if not Path("/proc/self/status").exists():
        pytest.skip("there is no /proc/self/status here")
    done = subprocess.run(
        [sys.executable, "-c", PEAK, module, *map(str, arguments)],
        cwd=where,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout.rpartition("PEAK ")[2])


def turn(role: str, content: str, mark: bool | None = None) -> dict[str, Any]:
    """A turn; without a mark it has no has_answer."""
    return {"role": role, "content": content} | ({} if mark is None else {"has_answer": mark})


def record(name: str = "e47becba", **changes: Any) -> dict[str, Any]:
    """A sound record of three sessions, of which the last by date is the evidence."""
    return {
        "question_id": name,
        "question_type": "single-session-user",
        "question": "Which city did I book?",
        "question_date": "2024/03/01 (Fri) 10:00",
        "answer": "Lisbon",
        "answer_session_ids": ["answer_1"],
        "haystack_dates": ["2024/02/20 (Tue) 12:15", "2024/02/10 (Sat) 09:00", "2024/02/14 (Wed) 18:30"],
        "haystack_session_ids": ["answer_1", "ultrachat_1", "sharegpt_aB_0"],
        "haystack_sessions": [
            [turn("user", "I booked Lisbon.", True), turn("assistant", "Take a map.", False)],
            [
                turn("user", "How wet is dough?"),
                turn("assistant", "Seventy percent."),
                turn("user", "Thanks."),
            ],
            [turn("assistant", "Stretch.")],
        ],
        **changes,
    }


def lines(path: Path) -> list[Any]:
    """The values of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def judged(folder: Path, split: str = "test") -> list[tuple[str, str]]:
    """The pairs that a split judges."""
    rows = (folder / "qrels" / f"{split}.tsv").read_text("utf-8").splitlines()
    return [(query, document) for query, document, _ in (row.split("\t") for row in rows[1:])]


def conversion(folder: Path) -> Any:
    """What conversion.json holds."""
    return json.loads((folder / "conversion.json").read_bytes())


def telling(data: bytes) -> list[str]:
    """Which of the telling texts some bytes hold."""
    return [text for text in TELLING if text.encode() in data]
