"""The commit that is checked out, read from the files of git, since the gate starts no process."""

from __future__ import annotations

import re
from pathlib import Path

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


def head(place: Path) -> str | None:
    """The commit that HEAD names in the repository around `place`; None where there is none that can be read.

    Branches are read from their files or from packed-refs, of a linked work tree as of a main one. A repository that
    keeps its refs otherwise (reftable) is not read.
    """
    for folder in (place.resolve(), *place.resolve().parents):
        git = folder / ".git"
        if git.exists():
            return _resolved(git)
    return None


def _resolved(git: Path) -> str | None:
    try:
        if git.is_file():  # a linked work tree, or a submodule
            target = git.read_text(encoding="utf-8").strip().removeprefix("gitdir:").strip()
            git = (git.parent / target).resolve()
        named = (git / "HEAD").read_text(encoding="utf-8").strip()
        common = git
        if (git / "commondir").is_file():
            common = (git / (git / "commondir").read_text(encoding="utf-8").strip()).resolve()
        for _ in range(5):  # a symbolic ref may name another
            if _COMMIT.fullmatch(named):
                return named
            named = _ref(git, common, named.removeprefix("ref:").strip())
    except (OSError, ValueError):
        pass
    return None


def _ref(git: Path, common: Path, name: str) -> str:
    """What a ref holds: a commit, or another ref.

    Raises:
        OSError: there is no such ref.
    """
    if ".." in name.split("/") or not name.startswith("refs/"):
        raise FileNotFoundError(name)
    for folder in (git, common):
        if (folder / name).is_file():
            return (folder / name).read_text(encoding="utf-8").strip()
    for line in (common / "packed-refs").read_text(encoding="utf-8").splitlines():
        commit, _, other = line.partition(" ")
        if other == name:
            return commit
    raise FileNotFoundError(name)
