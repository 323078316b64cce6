"""The records of a LongMemEval file, one by one: any layout of JSON, in memory that the largest record bounds."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import hashlib
import json
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from eval_core.errors import UNSET, Misuse
from eval_core.files import refuse_special

#: The name that stands for standard input.
STDIN = "-"

#: Bytes read at a time, at least.
CHUNK = 1 << 20

#: Characters of the longest record that is read. The longest of the releases has 6 million.
LONGEST = 64 << 20

#: Characters by which a file of another kind is known.
_HEAD = 4096

#: What may be left of a literal, a number or an escape at the end of a file that was cut.
_CUT = re.compile(r"[-+.\w\\]*[ \t\r\n]*")

_SPACE = re.compile(r"[ \t\r\n]*")
_GZIP = b"\x1f\x8b"

#: Is told (bytes read of the file as it lies there, its size or None).
Progress = Callable[[int, int | None], None]


class Place(NamedTuple):
    """Where a record stands: the file, its number from 1, and the byte at which it begins."""

    file: str
    number: int
    byte: int

    @property
    def subject(self) -> str:
        """What an error about it is about."""
        return f"record {self.number} at byte {self.byte}"

    def fault(
        self, what: str, *, key: str | None = None, value: Any = UNSET, mend: str | None = None
    ) -> Misuse:
        """The error of a record that does not hold what it should."""
        return Misuse(
            "record-invalid", what, file=self.file, subject=self.subject, key=key, value=value, mend=mend
        )


class Source:
    """An open file: its decompressed bytes in chunks, counted and digested; what cannot be read is a Misuse."""

    def __init__(self, name: str, raw: IO[bytes], size: int | None, progress: Progress | None) -> None:
        self.name = name
        self.bytes = 0
        self._raw = raw
        self._size = size
        self._progress = progress
        self._digest = hashlib.sha256()
        self._position = 0
        peeked = cast(Any, raw).peek(2)[:2]
        #: Whether the bytes are compressed.
        self.compressed = peeked == _GZIP
        self._stream: Any = gzip.GzipFile(fileobj=raw) if self.compressed else raw

    def read(self, size: int) -> bytes:
        """So many bytes, fewer only at the end."""
        pieces = []
        with _worded(self.name):
            # Piece by piece: one call for all of it would not notice Ctrl-C while a pipe is filled slowly.
            while size and (piece := self._stream.read1(size)):
                pieces.append(piece)
                size -= len(piece)
        data = b"".join(pieces)
        self.bytes += len(data)
        self._digest.update(data)
        if self._progress is not None:
            if self._size is not None and self.compressed:
                self._progress(self._raw.tell(), self._size)
            else:
                self._progress(self.bytes, None if self.compressed else self._size)
        return data

    @property
    def sha256(self) -> str:
        """The digest of the bytes read, decompressed."""
        return self._digest.hexdigest()


@contextlib.contextmanager
def opened(path: str, progress: Progress | None = None, name: str | None = None) -> Iterator[Source]:
    """Open a file, or standard input where `path` is `-`; gzip is told by its first bytes. Errors call it `name`.

    Raises:
        Misuse: it is absent, a folder, a pipe by name, or unreadable.
    """
    if path == STDIN:
        yield Source("standard input", sys.stdin.buffer, None, progress)
        return
    with contextlib.ExitStack() as stack:
        with _worded(path):
            refuse_special(Path(path))
            raw = stack.enter_context(open(path, "rb"))
            source = Source(name or path, raw, Path(path).stat().st_size, progress)
        yield source


@contextlib.contextmanager
def _worded(name: str) -> Iterator[None]:
    """Turn what reading can raise into words."""
    try:
        yield
    except FileNotFoundError as error:
        raise Misuse("file-missing", "there is no such file", file=name) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Misuse("download-incomplete", f"is not whole gzip: {error}", file=name) from error
    except OSError as error:
        raise Misuse("file-unreadable", f"cannot be read: {error.strerror or error}", file=name) from error


class Forbidden(ValueError):
    """What JSON's grammar lets through, or Python's reader does, and no record may hold."""


def _constant(name: str) -> Any:
    raise Forbidden(f"{name} is not a JSON number")


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Forbidden(f"key {twice!r} is given twice")
    return table


#: Reads a JSON value strictly: NaN and a key given twice are errors.
DECODER = json.JSONDecoder(parse_constant=_constant, object_pairs_hook=_table)


class Records:
    """The records of a source, in its order: (place, table).

    Text is decoded piece by piece, and a record that is not complete yet is tried again with more text. Where records
    begin on lines of their own, the line that closes one is waited for; elsewhere as much is read as the largest so far
    had. So each is parsed little more than once, and hardly more text is held than the largest record.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0
        self._base = 0  # the byte of the file at which _text begins
        self._ended = False
        self._broken: Misuse | None = None
        self._largest = 0
        self._closing = ""
        self._number = 0

    def __iter__(self) -> Iterator[tuple[Place, dict[str, Any]]]:
        """Yield all records.

        Raises:
            Misuse: at the first byte that is not of an array of tables; records before it were yielded.
        """
        self._begin()
        while True:
            self._number += 1
            character = self._next()
            if character == "]" and self._number == 1:
                raise Misuse("file-vacuous", "holds no question", file=self._source.name)
            if character != "{":
                raise self._malformed(f"expected a record, found {character!r}", self._at)
            place = Place(self._source.name, self._number, self._byte(self._at))
            yield place, self._record()
            character = self._next()
            if character == "]":
                break
            if character != ",":
                raise self._malformed(f"expected ',' or ']' after the record, found {character!r}", self._at)
            self._at += 1
        self._at += 1
        if character := self._next(at_end=True):
            raise self._malformed(f"the array has ended, and {character!r} follows", self._at)

    def _record(self) -> dict[str, Any]:
        line = self._text.rfind("\n", 0, self._at) + 1
        self._closing = (
            f"\n{self._text[line : self._at]}}}" if line and not self._text[line : self._at].strip() else ""
        )
        while True:
            self._await_closing()
            try:
                value, end = DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                # Cut off by the end of what was read: an escape or a literal at its very end, or a text without end.
                endless = error.msg.startswith("Unterminated string")
                if (endless or error.pos > len(self._text) - 12) and self._more():
                    continue
                if endless or _CUT.fullmatch(self._text, error.pos):
                    raise self._incomplete() from error
                raise self._malformed(f"not JSON: {error.msg}", error.pos) from error
            except RecursionError as error:
                raise self._malformed("nested too deeply", self._at) from error
            except ValueError as error:  # Forbidden, or a number of thousands of digits
                raise self._malformed(str(error), self._at) from error
            else:
                self._largest = max(self._largest, end - self._at)
                self._at = end
                return cast("dict[str, Any]", value)

    def _await_closing(self) -> None:
        """Read to the line that closes the record; it may stand elsewhere, or nowhere, so only so far."""
        looked = self._at
        while self._closing and self._text.find(self._closing, looked) < 0:
            held = len(self._text) - self._at
            if held > 2 * self._largest + CHUNK or not self._more():
                return
            looked = max(held - len(self._closing), 0)

    def _begin(self) -> None:
        """Pass over a byte order mark and the opening bracket.

        Raises:
            Misuse: it is not a JSON array; what it is instead is said where that can be told.
        """
        while self._broken is None and len(self._text) < _HEAD and self._more():
            pass
        if self._text.startswith("\ufeff"):
            self._at = 1
        if not self._next(at_end=True):
            raise Misuse("file-vacuous", "is empty", file=self._source.name)
        head = self._text[self._at : self._at + _HEAD]
        refuse_other_files(self._source.name, head)
        if head[0] != "[":
            raise self._malformed(f"expected a JSON array, found {head[:20]!r}", self._at)
        self._at += 1

    def _next(self, at_end: bool = False) -> str:
        """The next character that is not white space; "" at the end of the file, where that is allowed."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                if at_end:
                    return ""
                raise self._incomplete()

    def _more(self) -> bool:
        """Read on; False at the end of the file."""
        if self._broken is not None:
            raise self._broken.but(subject=f"record {max(self._number, 1)}")
        if self._ended:
            return False
        held = len(self._text) - self._at
        if held > LONGEST:
            raise self._malformed(f"longer than {LONGEST >> 20} million characters", self._at)
        size = CHUNK
        if not self._closing:
            size = max(CHUNK, held) if held > self._largest else CHUNK + self._largest - held
        self._base = self._byte(self._at)
        self._text, self._at = self._text[self._at :], 0
        data = self._source.read(size)
        self._ended = not data
        begins = self._source.bytes - len(data) - len(self._decoder.getstate()[0])
        try:
            text = self._decoder.decode(data, final=self._ended)
        except UnicodeDecodeError as error:
            whole = bytes(error.object)
            text = whole[: error.start].decode("utf-8")
            what = f"not UTF-8: byte {whole[error.start]:#04x} at byte {begins + error.start}"
            if whole.startswith((b"\xff\xfe", b"\xfe\xff")):
                what = "is UTF-16; save it as UTF-8"
            elif self._ended:
                what = "the file ends inside a character"
            self._broken = Misuse("file-malformed", what, file=self._source.name)
        del data
        self._text += text
        return True

    def _byte(self, at: int) -> int:
        """The byte of the file at which a character of the text stands."""
        return self._base + (at if self._text.isascii() else len(self._text[:at].encode("utf-8")))

    def _malformed(self, what: str, at: int) -> Misuse:
        subject = f"record {max(self._number, 1)} at byte {self._byte(at)}"
        return Misuse("file-malformed", what, file=self._source.name, subject=subject)

    def _incomplete(self) -> Misuse:
        if self._broken is not None:
            return self._broken.but(subject=f"record {max(self._number, 1)}")
        return Misuse(
            "download-incomplete",
            f"the file ends after {self._source.bytes} bytes, inside the array",
            file=self._source.name,
            subject=f"record {max(self._number, 1)} at byte {self._byte(self._at)}",
        )


def refuse_other_files(name: str, head: str) -> None:
    """Refuse what is known to be saved in the place of a LongMemEval file; `head` is the beginning of its text.

    Raises:
        Misuse: a web page, a Git LFS pointer, LongMemEval-V2, JSON lines.
    """
    if head.startswith("<"):
        what = "is a web page (HTML) and not the data: the download answered with an error or a sign-in page"
        raise Misuse("download-incomplete", what, file=name)
    if head.startswith("version https://git-lfs"):
        size = re.search(r"^size (\d+)", head, re.MULTILINE)
        what = f"is a Git LFS pointer, in the place of {size[1] if size else 'the'} bytes of data"
        raise Misuse("download-incomplete", what, file=name, mend="Fetch the file itself: git lfs pull")
    if not head.startswith("{"):
        return
    if re.match(r'\{\s*"[^"]*"\s*:\s*\[\s*["\]]', head) or re.search(
        r'"(trajectory_id|eval_function|environment|domain)"\s*:', head
    ):
        what = "is of LongMemEval-V2: screens and actions of agents, without judgements of what to retrieve"
        raise Misuse("format-unsupported", what, file=name)
    if '"question_id"' in head or '"haystack_' in head:
        raise Misuse(
            "file-malformed",
            "holds one record after another and not a JSON array of them",
            file=name,
            mend="Put them into one array, such as with  jq -s .",
        )
    raise Misuse("file-malformed", "is a JSON table; a LongMemEval file is an array of records", file=name)
