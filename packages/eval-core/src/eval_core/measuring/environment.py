"""Where and when a run is made: commit, cleanliness, class, interpreter."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import eval_core
from eval_core.errors import CouldNot
from eval_core.reports.models import Environment

#: Variables that name a CI run, the first that is set.
_CI_RUNS = ("GITHUB_RUN_ID", "CI_PIPELINE_ID", "CI_JOB_ID", "BUILD_ID")


def observe(root: Path) -> Environment:
    """Describe this process and the git work tree that `root` is in.

    Raises:
        CouldNot: `repository-owner`: git refuses to read a repository that another user owns.
    """
    import platform
    import socket

    commit = git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    inside = commit or git(root, "rev-parse", "--is-inside-work-tree") == "true"
    # Before the first commit everything is uncommitted, and what git does not say of a commit counts so.
    dirty = uncommitted(root) != [] if commit else True
    return Environment(
        version=eval_core.__version__,
        started=iso_now(),
        commit=commit or None,
        dirty=dirty if inside else None,
        class_=environment_class(),
        ci_run=next((os.environ[name] for name in _CI_RUNS if os.environ.get(name)), None),
        process=os.getpid(),
        host=socket.gethostname(),
        python=platform.python_version(),
        platform=f"{platform.system()}-{platform.machine()}",
    )


#: The files that the gate keeps in policy/, as globs of git. Anything else there may decide what is measured.
KEPT = (
    *("floors.toml", "budgets.toml", "promotion.toml", "waivers.toml"),
    *("evidence/*.jsonl", "promotions/[0-9][0-9][0-9][0-9]-*.json"),
)

#: What lies beside eval.toml and decides nothing of what is measured.
_NOT_MEASURED = tuple(f":(exclude,glob)policy/{name}" for name in KEPT)


def uncommitted(root: Path) -> list[str] | None:
    """The files of the tree around `root` that are not as they are committed; None where git does not say.

    What measuring writes is no part of what is measured, unless git tracks it, nor is the policy. Submodules are looked
    into, whatever the configuration says of them, and so are files that git was told not to look at.
    """
    status = ("status", "--porcelain", "--ignore-submodules=none")
    tracked = git(root, *status, "--untracked-files=no", "--", ":/", *_NOT_MEASURED)
    others = git(root, *status, "--untracked-files=normal", "--", ":/", ":(exclude).eval", *_NOT_MEASURED)
    flags = git(root, "ls-files", "-v", "-z", "--full-name", ":/")
    top = git(root, "rev-parse", "--show-toplevel")
    if tracked is None or others is None or flags is None or top is None:
        return None
    # `S`: skip-worktree, as in a sparse checkout; a lower-case letter: assume-unchanged.
    unseen = [line[2:] for line in flags.split("\0") if line[:1] == "S" or line[:1].islower()]
    said = dict.fromkeys(line[2:].strip() for line in f"{tracked}\n{others}".splitlines() if line)
    return [*said, *_changed(Path(top), unseen)]


def _changed(top: Path, names: list[str]) -> list[str]:
    """The files among these, by their path from the top, that stand on disk with other content than their entry."""
    there = [name for name in names if os.path.lexists(top / name)]
    if not there:
        return []
    staged = git(top, "ls-files", "-s", "-z", "--", *(f":(top,literal){name}" for name in there)) or ""
    entries = {
        name: head.split()[1] for head, _, name in (e.partition("\t") for e in staged.split("\0") if e)
    }
    return [name for name in there if git(top, "hash-object", "--", name) != entries.get(name)]


def environment_class() -> str:
    """`EVAL_ENV_CLASS` where it is set, else `ci` where `CI` is set to anything but a no, else `local`."""
    named = os.environ.get("EVAL_ENV_CLASS", "").strip()
    if named:
        return named
    return "local" if os.environ.get("CI", "").strip().lower() in ("", "0", "false", "no") else "ci"


def iso_now() -> str:
    """The time in UTC, as reports have it: `2026-11-30T11:54:47.123Z`."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_run_id() -> str:
    """A fresh id that sorts by time: `20261130T115447Z-1f3a9c2e`."""
    import secrets

    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


def git(root: Path, *arguments: str) -> str | None:
    """What git answers, or None where it cannot: a run outside git is a run, and says so.

    Raises:
        CouldNot: `repository-owner`: git refuses to read a repository that another user owns.
    """
    import subprocess  # here and below: the gate asks for the class alone, and its start-up is a feature

    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(root), "-c", "core.fsmonitor=false", *arguments],
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=30,
            check=False,
            env={**environment, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode == 128 and "safe.directory" in done.stderr:
        import shlex

        top = _top(root)
        raise CouldNot(
            "repository-owner",
            "git reads no repository that another user owns, so no commit says what is measured",
            file=top,
            mend=f"git config --global --add safe.directory {shlex.quote(str(top))}",
        )
    return done.stdout.strip() if done.returncode == 0 else None


def _top(root: Path) -> Path:
    """The folder around `root` that holds .git."""
    root = root.resolve()
    return next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
