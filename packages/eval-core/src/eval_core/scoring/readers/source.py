"""A file of rankings or judgements as bytes: plain or compressed by its first bytes, in chunks, failures in words."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO, NamedTuple, cast

from eval_core.errors import Fault, Faults, Misuse
from eval_core.files import BOM, refuse_special
from eval_core.scoring.readers.columns import is_comment

#: Bytes read at a time.
CHUNK = 1 << 20

#: Bytes of the longest line that is read: a million documents of a query are less.
LONGEST = 64 << 20

#: How many faults of a file are listed; the others are counted.
LISTED = 20

#: What stands for standard input, which is held whole: it is read more than once.
STDIN = Path("-")

#: How files begin that are compressed and read, and others that are only named: these are not text.
_READ = {
    rb"\x1f\x8b": "gzip",
    rb"BZh[1-9]1AY&SY": "bz2",
    rb"\xfd7zXZ\x00": "xz",
    rb"PK(\x03\x04|\x05\x06)": "zip",
}
_NAMED = {
    rb"\x28\xb5\x2f\xfd": "Zstandard",
    rb"\x04\x22\x4d\x18": "LZ4",
    rb"7z\xbc\xaf\x27\x1c": "7-Zip",
    rb"PAR1\x15": "Parquet",
    rb"(?s).{256}\x00ustar": "tar",
}

Progress = Callable[[int, int], None]


class Source:
    """An open file, or the bytes of it up to `stop`. What reads raises Misuse where it cannot be read to its end.

    `progress`, where given, is told (bytes read, bytes in all) of the file itself as it is read.
    """

    def __init__(
        self, path: Path, raw: IO[bytes], packed: _Packed, progress: Progress | None, stop: int | None
    ) -> None:
        self._path = path
        self._raw = raw
        self._packed = packed
        self._stream = packed.stream
        self._progress = progress
        self._size = _size(path) if stop is None else stop
        self._left = None if stop is None else stop - raw.tell()

    def read(self, size: int = CHUNK) -> bytes:
        """So many bytes at most; none at the end."""
        if self._left is not None:
            size = min(size, self._left)
            self._left -= size
        with _told(self._path, "file", self._packed):
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
        """The first line that is neither blank nor a comment, without surrounding white space, of a file just opened;
        empty if there is none."""
        lines = (line.strip() for _, line in self.lines())
        return next((line for line in lines if line and not is_comment(line)), b"")


@contextlib.contextmanager
def opened(
    path: Path, what: str, progress: Progress | None = None, span: tuple[int, int] | None = None
) -> Iterator[Source]:
    """Open a file past its byte order mark, decompressed; or only the bytes of `span` of a plain one.

    Args:
        what: names it in errors: "run", "qrels".

    Raises:
        Misuse: absent, a folder, a pipe or a device, unreadable, or in a form that is not read.
    """
    with contextlib.ExitStack() as stack:
        with _told(path, what):
            if path == STDIN:
                raw: IO[bytes] = io.BytesIO(_standard_input())
            else:
                refuse_special(path)
                raw = stack.enter_context(path.open("rb"))
        packing = _packing(raw)
        with _told(path, what, _Packed(raw, packing)):
            packed = _unpacked(path, raw, packing, stack)
        with _told(path, what, packed):
            head = packed.stream.read(512)
            if named := next((name for magic, name in _NAMED.items() if re.match(magic, head)), ""):
                told = f"is a file of {named}, which is not read; unpack it to text first"
                raise Misuse("file-unreadable", told, file=path)
            packed.stream.seek(len(BOM) if head.startswith(BOM) else 0)
            if span is not None and span[0]:
                raw.seek(span[0])
        yield Source(path, raw, packed, progress, span and span[1])


class _Packed(NamedTuple):
    """The bytes of a file, what it is compressed with ("" for nothing), and what else than OSError reading raises."""

    stream: IO[bytes]
    name: str
    errors: tuple[type[Exception], ...] = ()


def _unpacked(path: Path, raw: IO[bytes], name: str, stack: contextlib.ExitStack) -> _Packed:
    """The bytes that are compressed in a file just opened; the file's own where it is not compressed."""
    if name == "gzip":
        import gzip

        return _Packed(cast("IO[bytes]", stack.enter_context(gzip.open(raw))), name, (zlib.error,))
    if name == "bz2":
        import bz2

        return _Packed(cast("IO[bytes]", stack.enter_context(bz2.open(raw))), name)
    if name == "xz":
        import lzma

        return _Packed(cast("IO[bytes]", stack.enter_context(lzma.open(raw))), name, (lzma.LZMAError,))
    if name == "zip":
        import zipfile

        # RuntimeError: a password is needed. NotImplementedError: packed in a way that Python does not know.
        errors = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)
        try:
            archive = stack.enter_context(zipfile.ZipFile(raw))
            members = [one for one in archive.infolist() if not one.is_dir()]
            # What macOS adds beside each file.
            members = [one for one in members if not one.filename.startswith("__MACOSX/")]
            if len(members) != 1:
                first = f" ({', '.join(one.filename for one in members[:3])}, …)" if members else ""
                what = f"is a zip of {len(members)} files{first}; a zip of one file is read, so take that one out"
                raise Misuse("file-unreadable", what, file=path)
            return _Packed(stack.enter_context(archive.open(members[0])), name, errors)
        except errors as error:
            raise OSError(str(error)) from error
    return _Packed(raw, name)


def _size(path: Path) -> int:
    return len(_standard_input()) if path == STDIN else path.stat().st_size


def _standard_input() -> bytes:
    """All of standard input, read once.

    Raises:
        OSError: it is closed.
    """
    if sys.stdin is None:
        raise OSError("standard input is closed")
    return _read_once(sys.stdin.buffer)


@lru_cache(maxsize=1)
def _read_once(stream: IO[bytes]) -> bytes:
    return stream.read()


def refuse_other_text(path: Path, first: bytes) -> None:
    """Refuse a file that is text, but neither UTF-8 nor of lines; `first` is its first line.

    Raises:
        Misuse: it is UTF-16, or ends its lines with CR alone.
    """
    if first.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in first[:200]:
        raise Misuse("file-malformed", "is UTF-16, or not a text at all; save it as UTF-8", file=path)
    if b"\r" in first.strip():
        raise Misuse("file-malformed", "its lines end with CR alone; save it with LF or CRLF", file=path)


def is_packed(raw: IO[bytes]) -> bool:
    """Whether a file just opened is compressed."""
    return bool(_packing(raw))


def _packing(raw: IO[bytes]) -> str:
    """The name of what a file just opened is compressed with; empty where it is plain."""
    head = raw.read(16)
    raw.seek(0)
    return next((name for magic, name in _READ.items() if re.match(magic, head)), "")


@contextlib.contextmanager
def _told(path: Path, what: str, packed: _Packed | None = None) -> Iterator[None]:
    """Turn what reading can raise into words."""
    name, errors = (packed.name, packed.errors) if packed else ("", ())
    try:
        yield
    except FileNotFoundError as error:
        raise Misuse("file-missing", f"there is no such {what} file", file=path) from error
    except IsADirectoryError as error:
        told = f"is a folder; name a {what} file{_inside(path)}"
        raise Misuse("file-unreadable", told, file=path) from error
    except OSError as error:
        broken = name and error.errno is None  # what decompressing raises
        told = f"is not a whole {name} file" if broken else "cannot be read"
        raise Misuse("file-unreadable", f"{told}: {error.strerror or error}", file=path) from error
    except EOFError as error:
        raise Misuse("file-unreadable", f"the {name} file is cut short; copy it again", file=path) from error
    except errors as error:
        raise Misuse("file-unreadable", f"is not a whole {name} file: {error}", file=path) from error


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
