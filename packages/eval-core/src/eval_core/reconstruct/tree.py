"""The tree of one commit, asked path by path: what stands there in git's objects, whatever lies in a working tree.

Commit and trees are compared with the ids that name them. Contents of files are read only by `read`, so a partial
clone without them will do for the rest.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eval_core.errors import CouldNot
from eval_core.reconstruct.git import Objects
from eval_core.reconstruct.repository import Repository, find, reachable, resolved

Kind = Literal["file", "folder", "symlink", "submodule", "nothing"]

_SOURCE = "tree"
_TREE = re.compile(rb"tree ([0-9a-f]{40}(?:[0-9a-f]{24})?)\n")
_MODES: dict[bytes, Kind] = {b"40000": "folder", b"120000": "symlink", b"160000": "submodule"}

#: A listing stops after this many files: a small hostile store can name more than any memory holds.
MOST_FILES = 1_000_000


@dataclass(frozen=True, slots=True)
class Found:
    """What a path leads to. `at` is the path, or the part of it that is no folder and so ends the way."""

    kind: Kind
    at: bytes


class Tree:
    """The tree of one commit. Paths are bytes with slashes between their parts, relative to its top.

    `work` is the folder of the working tree, None for a bare repository.
    """

    def __init__(self, repository: Repository, objects: Objects, commit: str, top: str) -> None:
        self.commit = commit
        self.work = repository.folder.parent if repository.folder.name == ".git" else None
        self._repository = repository
        self._objects = objects
        self._top = top
        self._read: dict[str, dict[bytes, tuple[Kind, str]]] = {}

    def find(self, path: bytes) -> Found:
        """What stands at a path. Links are not followed: what lies behind one is `symlink`, with `at` before the path.

        Raises:
            CouldNot: a tree is damaged or not there.
        """
        return self._find(path)[0]

    def read(self, path: bytes, most: int | None = None) -> bytes | None:
        """The content of the file at a path, or its first `most` bytes; None where no file stands there.

        Raises:
            CouldNot: a tree or the file is damaged or not there.
        """
        found, name = self._find(path)
        if found.kind != "file":
            return None
        with _worded(self._repository, self.commit):
            return self._objects.expect(name, "blob", most)

    def folder(self, path: bytes) -> dict[bytes, Kind]:
        """What a folder holds, by name; nothing where no folder stands at the path.

        Raises:
            CouldNot: a tree is damaged or not there.
        """
        found, name = self._find(path)
        return (
            {part: kind for part, (kind, _) in self._entries(name).items()} if found.kind == "folder" else {}
        )

    def _find(self, path: bytes) -> tuple[Found, str]:
        """What stands at a path, and the id of its object."""
        kind: Kind = "folder"
        name = self._top
        parts = path.split(b"/") if path else []
        for depth, part in enumerate(parts):
            if kind != "folder":
                return Found(kind, b"/".join(parts[:depth])), name
            kind, name = self._entries(name).get(part, ("nothing", ""))
            if kind == "nothing":
                break
        return Found(kind, path), name

    def files(self, most: int = MOST_FILES) -> Iterator[bytes]:
        """The paths of its files, in no order that matters, at most so many.

        Raises:
            CouldNot: a tree is damaged or not there.
        """
        folders = [(b"", self._top)]
        while folders:
            prefix, tree = folders.pop()
            for part, (kind, name) in self._entries(tree).items():
                if kind == "folder":
                    folders.append((prefix + part + b"/", name))
                elif kind == "file":
                    yield prefix + part
                    most -= 1
                    if most <= 0:
                        return

    def is_of(self, place: Path) -> bool:
        """Whether the repository at `place`, or above it, is this one; a linked working tree of it is."""
        try:
            other = find(place, str(place), _SOURCE)
        except CouldNot:
            return False
        mine, theirs = _store(self._repository), _store(other)
        return mine is not None and mine == theirs

    def lies_in_work(self, path: bytes) -> bool:
        """Whether a file lies at the path in the working tree; never asked outside of it."""
        if self.work is None or {b"", b".", b".."} & set(path.split(b"/")):
            return False
        return os.path.isfile(self.work / os.fsdecode(path))

    def _entries(self, name: str) -> dict[bytes, tuple[Kind, str]]:
        found = self._read.get(name)
        if found is None:
            with _worded(self._repository, self.commit):
                found = self._read[name] = self._parsed(name)
        return found

    def _parsed(self, name: str) -> dict[bytes, tuple[Kind, str]]:
        """A tree object: for each entry its mode, a space, its name, a zero byte and the bytes of its id."""
        content = self._objects.expect(name, "tree")
        entries: dict[bytes, tuple[Kind, str]] = {}
        place = 0
        try:
            while place < len(content):
                space = content.index(b" ", place)
                end = content.index(b"\0", space)
                after = end + 1 + len(name) // 2
                mode = content[place:space].lstrip(b"0")
                entries[content[space + 1 : end]] = (_MODES.get(mode, "file"), content[end + 1 : after].hex())
                place = after
        except ValueError as error:
            raise self._repository.error("repository-damaged", f"object {name} is not a tree") from error
        return entries


@contextlib.contextmanager
def opened(place: Path, revision: str) -> Iterator[Tree]:
    """The tree of the commit that `revision` names in the repository at `place` or above it.

    Raises:
        CouldNot: there is no repository or no such commit, or it is damaged.
    """
    with _worded(None, revision):
        repository = find(place, str(place), _SOURCE)
    with _worded(repository, revision), repository.open("cat-file", "--batch") as running:
        objects = Objects(repository, running)
        try:
            found = objects.commit(revision)
        except CouldNot:
            if not _sound(repository):
                raise _unknown(repository, revision) from None
            raise
        if found is None:
            raise _unknown(repository, revision)
        commit, content = found
        top = _TREE.match(content)
        if top is None:
            raise repository.error("repository-damaged", f"commit {commit} names no tree")
        yield Tree(repository, objects, commit, top[1].decode())


def _sound(repository: Repository) -> bool:
    return repository.run("rev-parse", "--git-dir").returncode == 0


def _store(repository: Repository) -> Path | None:
    """The folder that all working trees of a repository share."""
    done = repository.run("rev-parse", "--git-common-dir")
    if done.returncode != 0:
        return None
    return (repository.folder.parent / os.fsdecode(done.stdout.removesuffix(b"\n"))).resolve()


def _unknown(repository: Repository, revision: str) -> CouldNot:
    def says(*question: str) -> bool:
        return repository.run("rev-parse", *question).stdout.strip() == b"true"

    where = reachable(repository)
    if not _sound(repository):
        return CouldNot("repository-damaged", f"{repository.label!r} is not a sound git repository")
    if resolved(repository, "HEAD") is None and revision == "HEAD":
        return CouldNot(
            "commit-absent",
            f"{repository.label!r} has no commit yet, so there is no tree to look in",
            mend=f"git -C {where} commit  makes the first one",
        )
    shallow = says("--is-shallow-repository")
    return CouldNot(
        "commit-absent",
        f"{repository.label!r} has no commit {revision!r}  ({'shallow clone?' if shallow else 'not fetched?'})",
        mend=f"git -C {where} fetch {'--unshallow ' if shallow else ''}origin",
    )


@contextlib.contextmanager
def _worded(repository: Repository | None, revision: str) -> Iterator[None]:
    """What the plumbing says of a source, said of a commit."""
    try:
        yield
    except CouldNot as error:
        if error.details.subject != f"source {_SOURCE!r}":
            raise
        code, what, mend = error.code, error.details.what, error.details.mend
        if repository is None:
            mend = "run it in a checkout, or name one: --repo DIR"
        elif "promisor remote" in what:  # git's own words
            mend = f"git -C {reachable(repository)} fetch --refetch --no-filter origin"
            code, what = "object-absent", f"{what}  (partial clone?)"
        raise CouldNot(code, what, subject=f"the tree of {revision!r}", mend=mend) from error
