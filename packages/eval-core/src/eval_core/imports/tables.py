"""Records of a CSV, JSON or JSON-lines file, told apart by content, each with the line at which it begins."""

from __future__ import annotations

import csv
import datetime
import io
import json
import reprlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from eval_core.errors import Misuse
from eval_core.files import BOM
from eval_core.imports.manifest import lines_of
from eval_core.scoring.readers.source import opened, refuse_other_text
from eval_core.sets.corpus import decode_json, json_lines

#: What the list of records is called, where a JSON table holds several lists.
LISTS = ("queries", "questions", "cases", "examples", "records", "items", "tests", "data")


#: Bytes of the longest line, and characters of the longest text, that is read: no query is so long.
LONGEST = 16 << 20


class _Short(reprlib.Repr):
    """Dates as they are written."""

    def repr_date(self, value: datetime.date, level: int) -> str:
        return value.isoformat()

    repr_datetime = repr_date


def shown(value: object) -> str:
    """A value in a message: its first 100 characters, however large or deep it is."""
    short = _Short()
    short.maxlevel, short.maxstring = 2, 80
    text = short.repr(value)
    return text if len(text) <= 100 else f"{text[:99]}…"


Tell = Callable[[int, str], None]
Row = tuple[int, dict[str, Any]]


class Table(NamedTuple):
    """The records of a file, and the keys beside them at the top of a JSON file, which nothing reads."""

    rows: list[Row]
    beside: tuple[str, ...] = ()


def read_bytes(path: Path, what: str) -> bytes:
    """A whole file, plain or gzip, without its byte order mark. `what` names it in errors.

    Raises:
        Misuse: absent, a folder, damaged, UTF-16, empty, of two byte order marks, or with an endless line.
    """
    pieces: list[bytes] = []
    held = 0
    with opened(path, what) as source:
        for piece in iter(source.read, b""):
            first, *more = piece.split(b"\n", 1)
            if held + len(first) > LONGEST:
                line = 1 + sum(before.count(b"\n") for before in pieces)
                told = f"a line of more than {LONGEST >> 20} MB; write each record on lines of its own"
                raise Misuse("file-malformed", told, file=path, line=line)
            held = len(piece) - piece.rindex(b"\n") - 1 if more else held + len(first)
            pieces.append(piece)
    data = b"".join(pieces)
    if data.startswith(BOM):
        told = "begins with two byte order marks; save it as UTF-8 without any"
        raise Misuse("file-malformed", told, file=path, line=1)
    first = data.lstrip().split(b"\n", 1)[0]
    if not first:
        raise Misuse("file-vacuous", "holds nothing", file=path)
    refuse_other_text(path, first)
    return data


def utf8(data: bytes, path: Path) -> str:
    """The text of a file's bytes.

    Raises:
        Misuse: they are not UTF-8; with the line.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"is not UTF-8: byte {data[error.start]:#04x}; save it as UTF-8"
        raise Misuse("file-malformed", what, file=path, line=line) from error


def read_table(path: Path, fault: Tell) -> Table:
    """Read the records of a file. `fault` is told of each record or line that is none.

    JSON is a list of tables, a table of tables (whose keys become `id` where a record has none), a table around one
    list of tables, or one table. In CSV, the separator is the one of comma, semicolon, tab and
    bar that splits the header into most columns.

    Raises:
        Misuse: the file cannot be read, or holds no records.
    """
    data = read_bytes(path, "records")
    if data.lstrip()[:1] not in (b"{", b"["):
        rows = csv_rows(utf8(data, path), fault)
        _, header = next(rows, (1, []))
        twice = next((name for name in header if name and header.count(name) > 1), None)
        if twice is not None:
            raise Misuse("file-malformed", f"column {twice!r} is there twice", file=path, line=1)
        return Table([(line, dict(zip(header, cells, strict=False))) for line, cells in rows])
    text = utf8(data, path)
    many = ".jsonl" in path.suffixes or ".ndjson" in path.suffixes
    try:
        value = None if many else decode_json(text)
    except json.JSONDecodeError as error:
        many = error.msg == "Extra data" and text.lstrip()[:1] == "{"
        if not many:
            what = f"is not JSON: {error.msg} at column {error.colno}"
            raise Misuse("file-malformed", what, file=path, line=error.lineno) from error
    except ValueError as error:
        raise Misuse("file-malformed", str(error), file=path) from error
    if many:
        return Table(list(json_lines(enumerate(data.split(b"\n"), 1), fault)))
    return _json(value, text, path, fault)


def _json(value: Any, text: str, path: Path, fault: Tell) -> Table:
    beside: tuple[str, ...] = ()
    places: list[tuple[str, Any]]
    if isinstance(value, dict) and value and all(isinstance(one, dict) for one in value.values()):
        places = [(key, {"id": key} | one) for key, one in value.items()]
    else:
        within = ""
        if isinstance(value, dict):
            lists = [key for key, one in value.items() if _is_records(one)]
            usual = [key for key in lists if key in LISTS]
            if len(lists) > 1 and len(usual) != 1:
                what = f"holds several lists of records ({', '.join(lists)}); keep the one with the queries"
                raise Misuse("file-malformed", what, file=path)
            if lists:
                within = lists[0] if len(lists) == 1 else usual[0]
                beside = tuple(key for key in value if key != within)
                value = value[within]
            else:
                value = [value]
        places = [(f"{within}[{number}]", one) for number, one in enumerate(value)]
    lines = lines_of(text)
    rows = []
    for place, one in places:
        if isinstance(one, dict):
            rows.append((lines.get(place, 1), one))
        else:
            fault(lines.get(place, 1), f'{place} is no record; expected a table such as {{"query": …}}')
    return Table(rows, beside)


def _is_records(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def csv_rows(text: str, fault: Tell) -> Iterator[tuple[int, list[str]]]:
    """The rows of CSV text, the header first, each with the line at which it begins; cells without white space around.

    `fault` is told of a row with more cells than the header, and of what is not CSV, where reading ends.
    """
    lines = io.StringIO(text, newline="")
    first = next((line for line in text.splitlines() if line.strip()), "")
    # The reader takes no cell of more than 131,072 characters; a header is told by less.
    begins = [first[:65_536]]
    separator = max(",;\t|", key=lambda sign: len(next(csv.reader(begins, delimiter=sign), [])))
    reader = csv.reader(lines, delimiter=separator, strict=True)
    columns: int | None = None
    while True:
        line = reader.line_num + 1
        try:
            cells = [cell.strip() for cell in next(reader)]
        except StopIteration:
            return
        except csv.Error as error:
            fault(line, f"not CSV: {error}")
            return
        if not any(cells):
            continue
        if columns is None:
            columns = len(cells)
            unseen = [
                name for name in cells if any(not (sign.isprintable() or sign.isspace()) for sign in name)
            ]
            if unseen:
                fault(line, f"column {shown(unseen[0])} holds a character that is not seen; delete it")
                return
        if any(cells[columns:]):
            what = f"has {len(cells)} cells and the header {columns} columns"
            fault(line, f"{what}; put a text with {_NAMES[separator]} in quotes")
            continue
        yield line, cells


_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
