"""Where and when a run is made: commit, cleanliness, class, interpreter."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

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
    tree = uncommitted(root) if commit else None
    return Environment(
        version=eval_core.__version__,
        started=iso_now(),
        commit=commit or None,
        dirty=tree is None or tree.changed != () if inside else None,
        changed=tree.changed[:4] if tree is not None else (),
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

_STATUS = ("status", "--porcelain", "--ignore-submodules=none")


class Tree(NamedTuple):
    """How a tree differs from its commit, by paths from the top of the repository.

    Attributes:
        changed: files that are not as they are committed.
        absent: files that are committed and not here, as a sparse checkout leaves them out.
    """

    changed: tuple[str, ...]
    absent: tuple[str, ...] = ()


def uncommitted(root: Path) -> Tree | None:
    """How the tree around `root` differs from its commit; None where git does not say.

    What measuring writes is no part of what is measured, unless git tracks it, nor is the policy. Submodules are looked
    into, whatever the configuration says of them, and so are files that git was told not to look at, or to look at
    through a filter.
    """
    tracked = git(root, *_STATUS, "--untracked-files=no", "--", ":/", *_NOT_MEASURED)
    others = git(root, *_STATUS, "--untracked-files=normal", "--", ":/", ":(exclude).eval", *_NOT_MEASURED)
    unseen = _unseen(_top(root))
    if tracked is None or others is None or unseen is None:
        return None
    return Tree(tuple(dict.fromkeys((*_names(tracked), *_names(others), *unseen.changed))), unseen.absent)


def _names(status: str) -> list[str]:
    return [line[2:].strip() for line in status.splitlines()]


def _unseen(top: Path) -> Tree | None:
    """What `git status` may overlook in a repository and its submodules: it takes flags and filters at their word."""
    answers = git(top, "rev-parse", "--show-toplevel")
    listed = git(top, "ls-files", "-v", "-s", "-z")
    filtered = git(top, "ls-files", "-z", ":/", ":(exclude,top,attr:!filter)")
    if answers is None or listed is None or filtered is None:
        return None
    if Path(answers).resolve() != top.resolve():
        return Tree((f"{top / '.git'}, whose core.worktree is {answers}",))
    through = set(filtered.split("\0"))
    changed: list[str] = []
    absent: list[str] = []
    for entry in listed.split("\0"):
        head, _, name = entry.partition("\t")
        if not name:
            continue
        flag, mode, blob, _ = head.split()
        if mode == "160000":
            if not (top / name / ".git").exists():
                continue  # it was not fetched
            # The status of the whole asks each submodule with less care than we do.
            inner, status = _unseen(top / name), git(top / name, *_STATUS, "--untracked-files=normal")
            if inner is None or status is None:
                return None
            changed += [f"{name}/{path}" for path in (*_names(status), *inner.changed)]
            absent += [f"{name}/{path}" for path in inner.absent]
        # `S`: skip-worktree, as in a sparse checkout; a lower-case letter: assume-unchanged.
        elif flag == "S" or flag.islower() or name in through:
            if flag in "Ss" and not os.path.lexists(top / name):
                absent.append(name)
            elif not _is_blob(top / name, top, blob):
                changed.append(name)
    return Tree(tuple(changed), tuple(absent))


def _is_blob(path: Path, top: Path, blob: str) -> bool:
    """Whether a file holds what git has of it: the bytes, those with other line ends, or those that LFS points to."""
    import hashlib

    try:
        data = os.readlink(os.fsencode(path)) if path.is_symlink() else path.read_bytes()
    except OSError:
        return False
    algorithm = hashlib.sha1 if len(blob) == 40 else hashlib.sha256
    if blob in (
        algorithm(b"blob %d\0" % len(text) + text).hexdigest()
        for text in (data, data.replace(b"\r\n", b"\n"))
    ):
        return True
    pointer = git(top, "cat-file", "blob", blob) or ""
    return (
        pointer.startswith("version https://git-lfs.github.com/spec/")
        and f"oid sha256:{hashlib.sha256(data).hexdigest()}" in pointer.splitlines()
    )


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


#: What git looks at a file for, whatever its configuration says: all that tells of a change, and no other program.
_SETTINGS = tuple(
    word
    for setting in ("core.fsmonitor=false", "core.trustctime=true", "core.checkStat=default")
    for word in ("-c", setting)
)


def git(root: Path, *arguments: str) -> str | None:
    """What git answers, or None where it cannot: a run outside git is a run, and says so.

    Raises:
        CouldNot: `repository-owner`: git refuses to read a repository that another user owns.
    """
    import subprocess  # here and below: the gate asks for the class alone, and its start-up is a feature

    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *_SETTINGS, *arguments],
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=30,
            check=False,
            env={**environment, "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_REPLACE_OBJECTS": "1"},
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
