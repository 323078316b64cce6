"""A file of rankings or judgements as bytes: plain or gzip by its first bytes, in chunks, every failure in words."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, cast

from eval_core.errors import Fault, Faults, Misuse
from eval_core.files import BOM, refuse_special

#: Bytes read at a time.
CHUNK = 1 << 20

#: Bytes of the longest line that is read: a million documents of a query are less.
LONGEST = 64 << 20

#: How many faults of a file are listed; the others are counted.
LISTED = 20

_GZIP = b"\x1f\x8b"

Progress = Callable[[int, int], None]


class Source:
    """An open file, or the bytes of it up to `stop`. What reads raises Misuse where it cannot be read to its end.

    `progress`, where given, is told (bytes read, bytes in all) of the file itself as it is read.
    """

    def __init__(
        self, path: Path, raw: IO[bytes], stream: IO[bytes], progress: Progress | None, stop: int | None
    ) -> None:
        self._path = path
        self._raw = raw
        self._stream = stream
        self._progress = progress
        self._size = path.stat().st_size if stop is None else stop
        self._left = None if stop is None else stop - raw.tell()

    def read(self, size: int = CHUNK) -> bytes:
        """So many bytes at most; none at the end."""
        if self._left is not None:
            size = min(size, self._left)
            self._left -= size
        with _told(self._path):
            data = self._stream.read(size)
        if self._progress is not None:
            self._progress(self._raw.tell(), self._size)
        return data

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """(line number from 1, line without its newline) to the end; the last line needs none."""
        number, held = 0, 0
        # A line of many chunks is put together once, at its end.
        pieces: list[bytes] = []
        while data := self.read():
            lines = data.split(b"\n")
            if len(lines) > 1:
                if pieces:
                    lines[0] = b"".join([*pieces, lines[0]])
                rest = lines.pop()
                yield from enumerate(lines, number + 1)
                number += len(lines)
                pieces, held = [], 0
            else:
                rest = data
            if rest:
                pieces.append(rest)
                held += len(rest)
            if held > LONGEST:
                raise self.too_long(number + 1)
        if pieces:
            yield number + 1, b"".join(pieces)

    def too_long(self, line: int | None = None) -> Misuse:
        """What to raise where a line goes on and on; `line` is its number, where that is known."""
        what = f"a line of more than {LONGEST >> 20} MB, which cannot be one of rankings or judgements"
        return Misuse("file-malformed", what, file=self._path, line=line)

    def first_line(self) -> bytes:
        """The first line that is not blank, without surrounding white space, of a file just opened; empty if none."""
        return next((line.strip() for _, line in self.lines() if line and not line.isspace()), b"")


@contextlib.contextmanager
def opened(
    path: Path, what: str, progress: Progress | None = None, span: tuple[int, int] | None = None
) -> Iterator[Source]:
    """Open a file past its byte order mark, decompressing where it is gzip; or only the bytes of `span` of a plain one.

    Args:
        what: names it in errors: "run", "qrels".

    Raises:
        Misuse: absent, a folder, a pipe or a device, or unreadable.
    """
    with contextlib.ExitStack() as stack:
        with _told(path, what):
            refuse_special(path)
            raw: IO[bytes] = stack.enter_context(path.open("rb"))
            stream = raw
            if is_gzip(raw):
                import gzip

                stream = cast("IO[bytes]", stack.enter_context(gzip.open(raw)))
            if stream.read(len(BOM)) != BOM:
                stream.seek(0)
            if span is not None and span[0]:
                raw.seek(span[0])
        yield Source(path, raw, stream, progress, span and span[1])


def refuse_other_text(path: Path, first: bytes) -> None:
    """Refuse a file that is text, but neither UTF-8 nor of lines; `first` is its first line.

    Raises:
        Misuse: it is UTF-16, or ends its lines with CR alone.
    """
    if first.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in first[:200]:
        raise Misuse("file-malformed", "is UTF-16, or not a text at all; save it as UTF-8", file=path)
    if b"\r" in first.strip():
        raise Misuse("file-malformed", "its lines end with CR alone; save it with LF or CRLF", file=path)


def is_gzip(raw: IO[bytes]) -> bool:
    """Whether a file just opened is gzip."""
    magic = raw.read(len(_GZIP))
    raw.seek(0)
    return magic == _GZIP


@contextlib.contextmanager
def _told(path: Path, what: str = "file") -> Iterator[None]:
    """Turn what reading can raise into words."""
    try:
        yield
    except FileNotFoundError as error:
        raise Misuse("file-missing", f"there is no such {what} file", file=path) from error
    except IsADirectoryError as error:
        told = f"is a folder; name a {what} file{_inside(path)}"
        raise Misuse("file-unreadable", told, file=path) from error
    except OSError as error:
        broken = error.errno is None  # what gzip raises
        told = "is not whole gzip" if broken else "cannot be read"
        raise Misuse("file-unreadable", f"{told}: {error.strerror or error}", file=path) from error
    except EOFError as error:
        raise Misuse("file-unreadable", "the gzip file is cut short; copy it again", file=path) from error
    except zlib.error as error:
        raise Misuse("file-unreadable", f"is not whole gzip: {error}", file=path) from error


def _inside(folder: Path) -> str:
    found = sorted(folder.glob("qrels/*.tsv"))
    return f", such as {found[0]}" if found else ""


class Listing:
    """Faults of one file: the first are kept, the others counted."""

    def __init__(self, path: Path, consequence: str = "nothing was scored") -> None:
        self.path = path
        self.consequence = consequence
        self.faults: list[Fault] = []
        self.more = 0

    def __call__(self, line: int, message: str) -> None:
        """One thing wrong, at a line."""
        if len(self.faults) < LISTED:
            self.faults.append(Fault(message, file=self.path, line=line))
        else:
            self.more += 1

    def error(self) -> Faults | None:
        """All of them; None where there are none."""
        if not self.faults:
            return None
        more = f"{self.more:,} more are not listed; " if self.more else ""
        return Faults(self.faults, consequence=f"{more}{self.consequence}")

    def stop(self) -> None:
        """Raise Faults where there are any."""
        if error := self.error():
            raise error


def decoded(line: int, raw: list[bytes], fault: Callable[[int, str], None]) -> list[str] | None:
    """Pieces of a line as UTF-8; None, and a fault, where one is not."""
    try:
        return [piece.decode("utf-8") for piece in raw]
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        fault(line, f"not UTF-8: byte {byte:#04x} in {shown(bytes(error.object))}; save it as UTF-8")
        return None


def shown(raw: bytes) -> str:
    """A piece of a line for a message: its first 60 characters."""
    value = raw.decode("utf-8", "backslashreplace").strip()
    return repr(value if len(value) <= 60 else value[:59] + "…")
