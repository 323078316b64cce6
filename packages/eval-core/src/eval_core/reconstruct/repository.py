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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from eval_core.errors import CouldNot

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

_SECRET = re.compile(r"(?<=://)[^/@\s]*:[^/@\s]*@")


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
        return ["git", "--no-replace-objects", f"--git-dir={self.folder}", *settings, *arguments]

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
    def open(self, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], str]]]:
        """Start one git command with pipes to its input and output; stopped at the end in any case.

        Yields the process and a function that gives the last line of what it complained.
        """
        with tempfile.TemporaryFile() as errors, git_needed():
            process = subprocess.Popen(
                self.command(*arguments),
                env=environment(),
                cwd=self.folder.parent,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )

            def complaint() -> str:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=5)
                errors.seek(0)
                return last_line(errors.read())

            try:
                yield process, complaint
            finally:
                if process.poll() is None:
                    process.kill()
                process.communicate()  # closes the pipes and waits

    def error(self, what: str, reason: str, remedy: str | None = None) -> CouldNot:
        """A failure of this repository's source."""
        return CouldNot(f"cannot reconstruct source {self.source!r}: {what}", reason=reason, remedy=remedy)


@contextlib.contextmanager
def git_needed() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        if error.filename != "git":
            raise
        raise CouldNot("git is not installed, and a git source needs it", reason="git-missing") from error


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
    """The url without a user name and password, which belong in no lock and no message."""
    return _SECRET.sub("", url)


def last_line(raw: bytes) -> str:
    lines = [line for line in raw.decode("utf-8", "replace").splitlines() if line.strip()]
    return public_url(lines[-1].strip()) if lines else "no reason given"


def find(path: Path, label: str, source: str) -> Repository:
    """Find the repository at `path` or above it: a checkout, a folder of one, or a bare repository.

    A repository above the folder that was named must belong to the owner of that folder or to this user: anyone may
    put one into a shared folder. One that is named itself is read whoever owns it.

    Raises:
        CouldNot: there is none.
    """
    remedy = f"give its place: --source {source}=PATH"
    try:
        named = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise CouldNot(
            f"cannot reconstruct source {source!r}: {label!r} does not exist",
            reason="source-absent",
            remedy=remedy,
        ) from error
    for folder in (named, *named.parents):
        found = _git_directory(folder)
        if found is None:
            continue
        if folder != named and not _same_owner(found, named):
            raise CouldNot(
                f"cannot reconstruct source {source!r}: {label!r} is no git repository, and the one above it, "
                f"{str(folder)!r}, belongs to another user",
                reason="repository-untrusted",
                remedy=f"if that is the one: --source {source}={shlex.quote(str(folder))}",
            )
        return Repository(found, label, source, named)
    raise CouldNot(
        f"cannot reconstruct source {source!r}: {label!r} is no git repository",
        reason="source-absent",
        remedy=remedy,
    )


def _git_directory(folder: Path) -> Path | None:
    if (folder / ".git").exists():
        return folder / ".git"
    bare = (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()
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
