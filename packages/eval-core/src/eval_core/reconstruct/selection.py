"""From the files of a source to documents: which are taken, which are skipped and counted, what each becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from eval_core.backend import Document
from eval_core.errors import Misuse
from eval_core.reconstruct.globs import Globs, glob_fault
from eval_core.reconstruct.lock import Oversize, Skipped
from eval_core.sets.corpus import encode_id
from eval_core.sets.definition import Archive, Folder, Git

#: A file with a zero byte within this many first bytes is binary, as git has it.
BINARY_WINDOW = 8000


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that a source lists. Sources list in byte order of `path`.

    `path` has slashes between its parts and is relative to the source. `size` in bytes is what the source declares.
    `read(most)` gives the content, at most `most` bytes of it.
    """

    path: bytes
    kind: Literal["file", "symlink", "submodule", "special"]
    size: int = 0
    read: Callable[[int], bytes] = lambda most: b""


@dataclass(frozen=True, slots=True)
class State:
    """The state that a source was found at."""

    pinned: bool
    commit: str | None = None
    tree: str | None = None
    sha256: str | None = None


@dataclass(slots=True)
class Tally:
    """What became of a source's files, counted as they pass."""

    seen: int = 0
    documents: int = 0
    bytes: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    oversize: list[Oversize] = field(default_factory=list)

    def skip(self, reason: str) -> None:
        """Count one file that is left out."""
        self.counts[reason] = self.counts.get(reason, 0) + 1

    def skipped(self) -> Skipped:
        """The counts, as the lock holds them."""
        return Skipped(**self.counts, oversize=tuple(self.oversize))


def shown(path: bytes) -> str:
    """The path as text; a byte that is not UTF-8 stands as `%XX`, nothing else is escaped."""
    return "".join(
        encode_id(character) if "\ud800" <= character <= "\udfff" else character
        for character in path.decode("utf-8", "surrogateescape")
    )


def prefixed(prefix: str, name: str) -> str:
    """`prefix/name`, or the name alone where the prefix is empty."""
    return f"{prefix}/{name}" if prefix else name


def selection_faults(source: Git | Archive | Folder) -> list[str]:
    """What is wrong with a source's `root` and globs, before any file is looked at."""
    faults = [fault for glob in (*source.include, *source.exclude) if (fault := glob_fault(glob))]
    if source.root and any(part in ("", ".", "..") for part in source.root.split("/")):
        faults.append(
            f"root {source.root!r} is not a plain path; write folder/folder, without . and .. or outer slashes"
        )
    return faults


def documents(source: Git | Archive | Folder, entries: Iterable[Entry], tally: Tally) -> Iterator[Document]:
    """Yield the documents of a source's files, in their order, and count the rest in `tally`.

    An id is the prefix, a slash, and the percent-encoded path below the root; the title is that path, the text the
    file's as it is, and the metadata `path` the id without its encoding.

    Raises:
        Misuse: no document came out. A corpus built from nothing would pass every check that follows.
    """
    root = source.root.encode() + b"/" if source.root else b""
    prefix = source.name if source.prefix is None else source.prefix
    globs = Globs(source.include, source.exclude)
    for entry in entries:
        if not entry.path.startswith(root):
            continue
        tally.seen += 1
        below = entry.path[len(root) :]
        text = _text(entry, below, globs, source.max_bytes, tally)
        if text is None:
            continue
        name = encode_id(below.decode("utf-8", "surrogateescape"))
        title = shown(below)
        metadata = {"path": prefixed(prefix, title), **source.metadata}
        yield Document(prefixed(prefix, name), title, text, metadata)
    if tally.documents == 0:
        raise _nothing(source, tally)


def _text(entry: Entry, below: bytes, globs: Globs, max_bytes: int, tally: Tally) -> str | None:
    """The text of a file that is taken, counted; or None once the reason is counted."""
    path = below.decode("utf-8", "surrogateescape")
    if globs.excludes(path):
        tally.skip("excluded")
        return None
    if entry.kind != "file":
        # A link or a submodule may stand for a whole folder, so the include globs, which name files, say nothing.
        tally.skip(entry.kind)
        return None
    if not globs.includes(path):
        tally.skip("excluded")
        return None
    if entry.size > max_bytes:
        tally.oversize.append(Oversize(path=shown(below), bytes=entry.size))
        return None
    content = entry.read(max_bytes + 1)
    if len(content) > max_bytes:
        # It grew, or declared less than it holds; how much more is not worth reading.
        tally.oversize.append(Oversize(path=shown(below), bytes=len(content)))
        return None
    if b"\0" in content[:BINARY_WINDOW]:
        tally.skip("binary")
        return None
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        tally.skip("not_utf8")
        return None
    tally.documents += 1
    tally.bytes += len(content)
    return text


def _nothing(source: Git | Archive | Folder, tally: Tally) -> Misuse:
    if tally.seen == 0:
        where = f"below its root {source.root!r}" if source.root else "in it"
        why = f"there is no file {where}"
    elif tally.counts.get("excluded", 0) == tally.seen:
        but = f" (or exclude {list(source.exclude)} took them out)" if source.exclude else ""
        why = f"include {list(source.include)} matched none of {_files(tally.seen)}{but}"
    else:
        why = f"all of {_files(tally.seen)} were skipped: {summary(tally.skipped())}"
    return Misuse("source-empty", f"gave no documents: {why}", subject=f"source {source.name!r}")


def _files(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"


def summary(skipped: Skipped) -> str:
    """What was skipped, in words, what is most surprising first; an empty text where nothing was."""
    words = (
        ("symlink", "symlinks", skipped.symlink),
        ("submodule", "submodules", skipped.submodule),
        ("special file", "special files", skipped.special),
        ("binary", "binaries", skipped.binary),
        ("not UTF-8", "not UTF-8", skipped.not_utf8),
        ("too large", "too large", len(skipped.oversize)),
        ("left out by globs", "left out by globs", skipped.excluded),
    )
    return ", ".join(f"{count:,} {one if count == 1 else many}" for one, many, count in words if count)
