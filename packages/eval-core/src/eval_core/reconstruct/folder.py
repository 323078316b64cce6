"""The files of a folder as they are now: links not followed, what git and these tools keep for themselves left out."""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn

from eval_core.errors import CouldNot
from eval_core.reconstruct.overrides import elsewhere
from eval_core.reconstruct.selection import Entry
from eval_core.sets.definition import Folder

#: Left out at any depth and not counted: no part of what the folder is about, and ours changes as it is read.
_OWN = (b".git", b".eval")


def entries(
    source: Folder, folder: Path, override: Path | None, leave_out: Iterable[Path]
) -> Iterator[Entry]:
    """Yield the files of a source's folder below its root, in byte order of their paths relative to the folder.

    Args:
        folder: the dataset's, which `path` is relative to.
        override: a folder to read instead.
        leave_out: folders that are written while this one is read.

    Raises:
        CouldNot: the folder, its root or a file cannot be read.
    """
    label = source.path if override is None else str(override)
    base = os.fsencode(folder / source.path if override is None else override)
    if not os.path.isdir(base):
        what = "is not a folder" if os.path.lexists(base) else "does not exist"
        raise _absent(source, f"{label!r} {what}", f"give its place: {elsewhere(source.name)}")
    start = base
    for part in source.root.encode().split(b"/") if source.root else ():
        start = os.path.join(start, part)
        if os.path.islink(start) or not os.path.isdir(start):
            raise _absent(
                source, f"root {source.root!r} is not a folder of {label!r}  (links are not followed)"
            )
    avoid = {identity for place in leave_out if (identity := _identity(os.fsencode(place)))}
    below = len(os.path.join(base, b""))
    for full in sorted(_walk(source, start, avoid), key=_slashed):
        path = _slashed(full)[below:]
        try:
            status = os.lstat(full)
        except OSError as error:
            _unreadable(source, error)
        if stat.S_ISLNK(status.st_mode):
            yield Entry(path, "symlink")
        elif stat.S_ISREG(status.st_mode):
            yield Entry(path, "file", status.st_size, functools.partial(_read, source, full))
        else:
            yield Entry(path, "special")


def _walk(source: Folder, start: bytes, avoid: set[tuple[int, int]]) -> Iterator[bytes]:
    """The full paths of all that is no folder, links to folders included, in no order."""

    def failed(error: OSError) -> None:
        _unreadable(source, error)

    for here, folders, files in os.walk(start, onerror=failed):
        deeper = []
        for name in folders:
            full = os.path.join(here, name)
            if os.path.islink(full):
                yield full
            elif name not in _OWN and _identity(full) not in avoid:
                deeper.append(name)
        folders[:] = deeper
        # A worktree or submodule has a file `.git`.
        yield from (os.path.join(here, name) for name in files if name not in _OWN)


def _slashed(path: bytes) -> bytes:
    return path.replace(os.sep.encode(), b"/") if os.sep != "/" else path


def _identity(path: bytes) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _read(source: Folder, path: bytes, most: int) -> bytes:
    """At most `most` bytes of a file; a link or pipe that has taken its place meanwhile is neither followed nor
    waited for."""
    flags = (
        os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    )
    try:
        with open(os.open(path, flags), "rb") as stream:
            return stream.read(most)
    except OSError as error:
        _unreadable(source, error)


def _unreadable(source: Folder, error: OSError) -> NoReturn:
    name = os.fsdecode(error.filename) if error.filename is not None else "a file"
    raise _absent(source, f"{name!r} cannot be read: {error.strerror or error}") from error


def _absent(source: Folder, what: str, mend: str | None = None) -> CouldNot:
    return CouldNot("source-absent", what, subject=f"source {source.name!r}", mend=mend)
