"""Measurements in processes of their own, a few at a time, none of which is left behind."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

#: How long a measurement that is told to stop may take to stop its backend, in seconds.
PATIENCE = 20

#: How often it is looked whether one has ended, in seconds.
_PAUSE = 0.02


@dataclass(slots=True)
class Process:
    """One call of `eval-core measure` in a folder."""

    folder: Path
    command: list[str]
    code: int | None = None
    running: subprocess.Popen[bytes] | None = None
    errors: IO[bytes] | None = None

    def words(self) -> str:
        """What it said on standard error, its last lines."""
        path = self.folder / "self-test-errors"
        lines = (
            path.read_text(encoding="utf-8", errors="replace").strip().splitlines() if path.exists() else []
        )
        return "\n".join(lines[-8:])


@dataclass(slots=True)
class Processes:
    """A queue of measurements, `most` of which run at a time. `done` is told of each that ended."""

    most: int
    done: Callable[[], None] = lambda: None
    _waiting: list[Process] = field(default_factory=list)
    _running: list[Process] = field(default_factory=list)

    def measure(self, folder: Path, arm: str, sources: Sequence[str]) -> Process:
        """Queue the measurement of an arm of the workspace in `folder`."""
        # -P: what lies in this folder must not stand in for the program, as it cannot for the script eval-core.
        command = [sys.executable, "-P", "-m", "eval_core", "measure", arm, "--quiet", "--format", "json"]
        command += ["--lane", "all"]
        command += [word for source in sources for word in ("--source", source)]
        process = Process(folder, command)
        self._waiting.append(process)
        return process

    def __len__(self) -> int:
        return len(self._waiting) + len(self._running)

    def pump(self) -> None:
        """See which have ended, and start as many others."""
        for process in [one for one in self._running if one.running and one.running.poll() is not None]:
            self._ended(process)
        while self._waiting and len(self._running) < self.most:
            self._start(self._waiting.pop(0))

    def finish(self) -> None:
        """Run all to their end."""
        while len(self):
            self.pump()
            time.sleep(_PAUSE)

    def _start(self, process: Process) -> None:
        # A copy holds links to the workspace's folders: no byte code is written there, and nothing is fetched.
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PIP_NO_INDEX": "1"}
        process.errors = (process.folder / "self-test-errors").open("wb")
        process.running = subprocess.Popen(
            process.command,
            cwd=process.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=process.errors,
        )
        self._running.append(process)

    def _ended(self, process: Process) -> None:
        if process.running is not None:
            process.code = process.running.wait()
        if process.errors is not None:
            process.errors.close()
        self._running.remove(process)
        self.done()

    def stop(self) -> None:
        """End what still runs: let it unwind, which stops its backend; killed outright it could not."""
        self._waiting.clear()
        for process in self._running:
            if process.running is not None:
                process.running.terminate()
        for process in list(self._running):
            if process.running is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.running.wait(timeout=PATIENCE)
                process.running.kill()
            self._ended(process)
