"""A git repository and the commands run on it: none looks for another one, reads the user's settings or runs a hook.

A repository is data here, and may be hostile. Git is told which one it is, so it neither looks for one nor asks whose
it is; what a repository's configuration could make it run is switched off or out of reach of the plumbing used here.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from eval_core.errors import CouldNot
from eval_core.reconstruct.overrides import elsewhere

#: Variables of the caller that say how to reach a server; the others say which repository or configuration to use.
_KEPT = re.compile(r"GIT_(EXEC_PATH|SSL_\w+|SSH|SSH_COMMAND|SSH_VARIANT|ASKPASS)")

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "protocol.ext.allow=never",
    "gc.auto=0",
    "maintenance.auto=false",
    "init.defaultBranch=main",
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=30",
)

#: Seconds that git may take for one object.
PATIENCE = 60.0

# Over http a name alone can be a token; over ssh it is the account that everyone uses.
_SECRET = re.compile(r"(https?://)[^/@\s]*@|(://)[^/@\s]*:[^/@\s]*@")


#: How git and the servers that it asks begin an error.
_ERRORS = ("fatal:", "ERROR", "error:")

#: What git says after a helper program failed, whatever the reason.
_UNREAD = "fatal: Could not read from remote repository"


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository for one source.

    `folder` is its git directory, or the file that points to it, absolute. `label` is how the person knows it, and
    `at` the folder that they named, None for a fetched copy.
    """

    folder: Path
    label: str
    source: str
    at: Path | None = None

    def command(self, *arguments: str) -> list[str]:
        """The argument list of one git command on this repository."""
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        return ["git", f"--git-dir={self.folder}", *settings, *arguments]

    def run(self, *arguments: str, protocols: tuple[str, ...] = ()) -> subprocess.CompletedProcess[bytes]:
        """Run one git command to its end, whatever its exit code."""
        with git_needed():
            return subprocess.run(
                self.command(*arguments),
                env=environment(protocols),
                cwd=self.folder.parent,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )

    @contextlib.contextmanager
    def open(self, *arguments: str) -> Iterator[Running]:
        """Start one git command with pipes to its input and output; stopped at the end in any case."""
        with tempfile.TemporaryFile() as errors, git_needed():
            process = subprocess.Popen(
                self.command(*arguments),
                env=environment(),
                cwd=self.folder.parent,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
            running = Running(process, errors)
            try:
                yield running
            finally:
                running.stop()

    def error(self, code: str, what: str, mend: str | None = None) -> CouldNot:
        """A failure of this repository's source."""
        return CouldNot(code, what, subject=f"source {self.source!r}", mend=mend)


class Running:
    """A git process with pipes to its `input` and output, and a guard over each wait for an answer."""

    def __init__(self, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
        if process.stdin is None or process.stdout is None:
            raise TypeError("the process was started without pipes")
        self.input = process.stdin
        self.output = process.stdout
        self._process = process
        self._errors = errors
        self._waiting: float | None = None
        self._silent = False
        self._over = threading.Event()
        self._guard = threading.Thread(target=self._watch, daemon=True)
        self._guard.start()

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Around what waits for the process. Git announces an object's length and then serves what it has: of one
        that was cut off the rest never comes, and the process stays up."""
        self._waiting = time.monotonic()
        try:
            yield
        finally:
            self._waiting = None

    def _watch(self) -> None:
        while not self._over.wait(PATIENCE / 4):
            since = self._waiting
            if since is not None and time.monotonic() - since > PATIENCE:
                self._silent = True
                self._process.kill()
                return

    def ended(self) -> int:
        """Wait for its end; the exit code."""
        return self._process.wait()

    def complaint(self) -> str:
        """Why it failed, once it has; see the function of this name."""
        if self._silent:
            return f"no answer within {PATIENCE:g} seconds, as when an object is cut off"
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        self._errors.seek(0)
        return complaint(self._errors.read())

    def stop(self) -> None:
        """End it, whatever it is doing."""
        self._over.set()
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()  # closes the pipes and waits
        self._guard.join()


@contextlib.contextmanager
def git_needed() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        if error.filename != "git":
            raise
        raise CouldNot("git-missing", "git is not installed, and a git source needs it") from error


def environment(protocols: tuple[str, ...] = ()) -> dict[str, str]:
    """The environment of a git process: the caller's, without what would choose another repository, configuration or
    content, and with `protocols` as the only ones that may be spoken."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or _KEPT.fullmatch(k)}
    kept.setdefault("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")
    return {
        **kept,
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_ALLOW_PROTOCOL": ":".join(protocols),
    }


def public_url(url: str) -> str:
    """The url without password or token, which belong in no lock and no message."""
    return _SECRET.sub(lambda match: match[1] or match[2], url)


def complaint(raw: bytes) -> str:
    """The line of git's standard error that says why it failed: its first error, since advice follows it."""
    lines = [line.strip() for line in raw.decode("utf-8", "replace").splitlines() if line.strip()]
    if not lines:
        return "no reason given"
    marked = [place for place, line in enumerate(lines) if line.startswith(_ERRORS)]
    place = marked[0] if marked else len(lines) - 1
    if place and lines[place].startswith(_UNREAD):
        place -= 1  # ssh has said why before
    return public_url(lines[place])


def find(path: Path, label: str, source: str) -> Repository:
    """Find the repository at `path` or above it: a checkout, a folder of one, or a bare repository.

    A repository above the folder that was named must belong to the owner of that folder or to this user: anyone may
    put one into a shared folder. One that is named itself is read whoever owns it.

    Raises:
        CouldNot: there is none.
    """
    subject, mend = f"source {source!r}", f"give its place: {elsewhere(source)}"
    try:
        named = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise CouldNot("source-absent", f"{label!r} does not exist", subject=subject, mend=mend) from error
    for folder in (named, *named.parents):
        found = _git_directory(folder)
        if found is None:
            continue
        if folder != named and not _same_owner(found, named):
            raise CouldNot(
                "repository-untrusted",
                f"{label!r} is not a git repository, and the one above it, {str(folder)!r}, belongs to another user",
                subject=subject,
                mend=f"if that is the one: {elsewhere(source, str(folder))}",
            )
        return Repository(found, label, source, named)
    raise CouldNot("source-absent", f"{label!r} is not a git repository", subject=subject, mend=mend)


def _git_directory(folder: Path) -> Path | None:
    # os.path says no where a folder cannot be looked into; Path would raise.
    if os.path.exists(folder / ".git"):
        return folder / ".git"
    bare = os.path.isfile(folder / "HEAD") and all(
        os.path.isdir(folder / name) for name in ("objects", "refs")
    )
    return folder if bare else None


def _same_owner(found: Path, named: Path) -> bool:
    if sys.platform == "win32":
        return True
    return found.stat().st_uid in (os.geteuid(), named.stat().st_uid)


def resolved(repository: Repository, name: str) -> str | None:
    """The id that a full name stands for, or None."""
    if not repository.folder.exists():
        return None
    result = repository.run("rev-parse", "--verify", "--quiet", "--end-of-options", name)
    return result.stdout.decode("ascii", "replace").strip() if result.returncode == 0 else None


def reachable(repository: Repository) -> str:
    """The repository as the reader's shell reaches it from where they are."""
    at = repository.at or repository.folder
    try:
        near = os.path.relpath(at)
    except ValueError:  # another drive
        near = str(at)
    return shlex.quote(min(near, str(at), key=len))
