"""The files of an audited repository: those of one commit, or of its working tree. Nothing outside of it is read."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from eval_core.reconstruct.tree import Tree, opened

#: Bytes of a file that are read; a reader that gets as many takes the file for too large.
MOST = 4_000_000

#: Entries of a folder that are listed.
MOST_ENTRIES = 10_000


class Files(Protocol):
    """Files by their paths, which have slashes and are relative to the top of the repository."""

    #: The commit that the files are of; None for a working tree.
    commit: str | None

    def read(self, path: str) -> bytes | None:
        """At most `MOST` bytes of a file; None where no regular file stands at the path. Links are not followed."""

    def folder(self, path: str) -> tuple[str, ...]:
        """The names of the files in a folder, sorted; none where there is no folder."""

    def below(self, path: str) -> Iterator[str]:
        """The paths of the files below a folder."""


class Committed:
    """The files of a commit, from git's objects."""

    def __init__(self, tree: Tree) -> None:
        self.commit: str | None = tree.commit
        self._tree = tree

    def read(self, path: str) -> bytes | None:
        name = _inside(path)
        return None if name is None else self._tree.read(name.encode("utf-8", "surrogateescape"), MOST)

    def folder(self, path: str) -> tuple[str, ...]:
        held = self._tree.folder(path.encode("utf-8", "surrogateescape"))
        files = (os.fsdecode(name) for name, kind in held.items() if kind == "file")
        return tuple(sorted(files))[:MOST_ENTRIES]

    def below(self, path: str) -> Iterator[str]:
        top = path.encode("utf-8", "surrogateescape").rstrip(b"/")
        for name in self._tree.files(MOST_ENTRIES * 10):
            if not top or name.startswith(top + b"/"):
                yield os.fsdecode(name)


class Working:
    """The files of a working tree, committed or not, without those of virtual environments, which nobody commits."""

    commit: str | None = None

    def __init__(self, top: Path) -> None:
        self._top = top

    def read(self, path: str) -> bytes | None:
        name = _inside(path)
        if name is None or not self._plain(name):
            return None
        try:
            with open(self._top / name, "rb") as file:
                return file.read(MOST)
        except OSError:
            return None

    def folder(self, path: str) -> tuple[str, ...]:
        with contextlib.suppress(OSError):
            if not path or self._plain(path, folder=True):
                held = [e.name for e in os.scandir(self._top / path) if e.is_file(follow_symlinks=False)]
                return tuple(sorted(held))[:MOST_ENTRIES]
        return ()

    def below(self, path: str) -> Iterator[str]:
        left = MOST_ENTRIES * 10
        for folder, folders, names in os.walk(self._top / path):
            folders[:] = sorted(
                name for name in folders
                if name != ".git" and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
            )  # fmt: skip
            for name in sorted(names):
                yield os.path.relpath(os.path.join(folder, name), self._top).replace(os.sep, "/")
                left -= 1
                if not left:
                    return

    def _plain(self, path: str, *, folder: bool = False) -> bool:
        """Whether the path leads to a regular file, or a folder, through no link."""
        here = self._top
        parts = path.split("/")
        for place, part in enumerate(parts):
            here = here / part
            try:
                mode = os.lstat(here).st_mode
            except (OSError, ValueError):
                return False
            last = place == len(parts) - 1
            if not last and os.path.exists(here / "pyvenv.cfg"):
                return False
            if not (stat.S_ISREG(mode) if last and not folder else stat.S_ISDIR(mode)):
                return False
        return True


@contextlib.contextmanager
def committed(place: Path, revision: str) -> Iterator[tuple[Committed, str]]:
    """The files of a commit of the repository at `place` or above it, and the folder of it that `place` is ("." for
    the top).

    Raises:
        CouldNot: there is no repository or no such commit.
    """
    with opened(place, revision) as tree:
        top = tree.work.resolve() if tree.work is not None else None
        yield Committed(tree), base_of(place, top)


def top_of(place: Path) -> Path:
    """The folder at or above `place` that has git's; `place` where none has."""
    here = place.resolve()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


def base_of(place: Path, top: Path | None) -> str:
    """The folder of a repository that a path names, relative to its top."""
    here = place.resolve()
    return here.relative_to(top).as_posix() if top is not None and here.is_relative_to(top) else "."


class Below:
    """The files below one folder of a repository, by their paths from there."""

    def __init__(self, files: Files, base: str) -> None:
        self.commit = files.commit
        self._files, self._base = files, base

    def read(self, path: str) -> bytes | None:
        name = _inside(path)
        return None if name is None else self._files.read(f"{self._base}/{name}")

    def folder(self, path: str) -> tuple[str, ...]:
        return self._files.folder(f"{self._base}/{path}".rstrip("/"))

    def below(self, path: str) -> Iterator[str]:
        for name in self._files.below(f"{self._base}/{path}".rstrip("/")):
            yield name.removeprefix(f"{self._base}/")


class Absent:
    """No files: a repository that is known by its name alone."""

    commit: str | None = None

    def read(self, path: str) -> bytes | None:
        return None

    def folder(self, path: str) -> tuple[str, ...]:
        return ()

    def below(self, path: str) -> Iterator[str]:
        return iter(())


def _inside(path: str) -> str | None:
    """The path without `.` and doubled slashes; None where it leaves the repository, or can be no path."""
    parts: list[str] = []
    if path.startswith("/") or "\0" in path:
        return None
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            if not parts:
                return None
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts) or None


__all__ = ["MOST", "Absent", "Below", "Committed", "Files", "Working", "committed"]
