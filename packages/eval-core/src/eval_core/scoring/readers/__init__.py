"""Judgements as TREC and BEIR write them (qrels), and which form a run file has.

TREC's lines have four columns with white space between (query, a column that is ignored, document, grade); BEIR's have
three fields with tabs between, under the header `query-id corpus-id score`. A file may be gzip, begin with a byte order
mark, end its lines with CRLF, lack the last newline and hold blank lines. An id is what stands between: any UTF-8 text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from eval_core.errors import Misuse
from eval_core.scoring.readers.lists import is_record
from eval_core.scoring.readers.source import Listing, Progress, decoded, opened, refuse_other_text, shown

BEIR_HEADER = b"query-id\tcorpus-id\tscore"

_GRADE = re.compile(r"[+-]?[0-9]{1,9}")

#: ASCII white space, which is what separates TREC's columns.
_SPACES = (b" ", b"\t", b"\r", b"\v", b"\f")


def form(path: Path) -> tuple[Literal["trec", "jsonl"], bytes]:
    """Which form a run file has, by its first line, and that line.

    Raises:
        Misuse: the file cannot be read, is empty, or holds judgements.
    """
    with opened(path, "run") as source:
        first = source.first_line()
    words = first.split()
    if not words:
        raise Misuse("run-empty", "holds no ranking", file=path)
    # CR is white space in a run's columns and between the parts of JSON.
    record = first.startswith(b"{") and is_record(first)
    if not is_trec(words) and not record:
        refuse_other_text(path, first)
    if first == BEIR_HEADER or _is_judgement(words):
        what = f"holds judgements and not a run ({shown(first)}); are --run and --qrels exchanged?"
        raise Misuse("run-malformed", what, file=path)
    # A query id may begin with a brace, too; then the line has a run's columns, and is no JSON.
    lines = record or (first.startswith(b"{") and not is_trec(words))
    return ("jsonl" if lines else "trec"), first


def is_trec(words: list[bytes]) -> bool:
    """Whether these are the six columns of a run's line."""
    try:
        return len(words) == 6 and float(words[4]) is not None
    except ValueError:
        return False


def _is_judgement(words: list[bytes]) -> bool:
    return len(words) == 4 and words[3].lstrip(b"+-").isdigit()


def read_qrels(path: Path, progress: Progress | None = None) -> dict[str, dict[str, int]]:
    """Read judgements: by query, in the file's order, the grade of each judged document.

    Grades are whole numbers. Below 1 means judged and not relevant; BEIR's begin at 0, as a dataset's do.

    Raises:
        Faults: a line with another number of columns, a grade that is no whole number, an id that is empty or not
            UTF-8, a pair judged twice. The first 20 are listed, the others counted.
        Misuse: the file cannot be read, holds no judgements, or is a run.
    """
    with opened(path, "qrels", progress) as source:
        data = b"".join(iter(source.read, b""))
    first = data.lstrip().split(b"\n", 1)[0].strip()
    words = first.split()
    if not is_trec(words) and not _is_judgement(words):
        refuse_other_text(path, first)
    if is_trec(words) or (first.startswith(b"{") and not _is_judgement(words)):
        what = f"holds a run and not judgements ({shown(first)}); are --run and --qrels exchanged?"
        raise Misuse("judgements-malformed", what, file=path)
    beir = first == BEIR_HEADER
    found = _regular(data, beir)
    if found is None:
        fault = Listing(path)
        found = _exact(data, beir, fault)
        fault.stop()
    if not found:
        raise Misuse("judgements-empty", "holds no judgements", file=path)
    return found


def _regular(data: bytes, beir: bool) -> dict[str, dict[str, int]] | None:
    """The judgements of a file whose lines all have the same single separator; None where anything is unusual.

    One split for all, then verified by counting: a newline at the end of every last column and nowhere else.
    """
    data = data.replace(b"\r\n", b"\n")
    if not data.endswith(b"\n"):
        data += b"\n"
    if beir:
        data = data[data.index(b"\n") + 1 :]
    columns = 3 if beir else 4
    after = b"\t" if beir or b" " not in data else b" "
    if any(space in data for space in _SPACES if space != after):
        return None
    try:
        between = after.decode()
        cells = data.decode("utf-8").replace("\n", "\n" + between).split(between)
    except UnicodeDecodeError:
        return None
    cells.pop()
    queries, documents, grades = (
        cells[0::columns],
        cells[columns - 2 :: columns],
        cells[columns - 1 :: columns],
    )
    n = len(grades)
    if len(cells) != columns * n or data.count(b"\n") != n or "".join(grades).count("\n") != n:
        return None
    if not (all(queries) and all(documents) and all(cells[1::columns])):
        return None
    numbers: dict[str, int] = {}
    for cell in set(grades):
        grade = cell.removesuffix("\n")
        if not _GRADE.fullmatch(grade) or (beir and int(grade) < 0):
            return None
        numbers[cell] = int(grade)
    found: dict[str, dict[str, int]] = {}
    query, judged = "", {}
    for named, document, cell in zip(queries, documents, grades, strict=True):
        if named != query:
            query, judged = named, found.setdefault(named, {})
        judged[document] = numbers[cell]
    return found if sum(map(len, found.values())) == n else None


def _exact(data: bytes, beir: bool, fault: Callable[[int, str], None]) -> dict[str, dict[str, int]]:
    """The judgements line by line; `fault` is told of each line that is none."""
    found: dict[str, dict[str, int]] = {}
    lines: dict[tuple[str, str], int] = {}
    form = "query 0 document grade"
    columns, named, least = 4, "4 columns", -(10**9)
    if beir:
        form, columns, named, least = "query-id corpus-id score", 3, "3 fields with tabs between", 0
    headed = not beir
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line or line.isspace():
            continue
        if not headed:
            headed = True
            continue
        raw = line.removesuffix(b"\r").split(b"\t") if beir else line.split()
        cells = decoded(number, raw, fault)
        if cells is None:
            continue
        if len(cells) != columns:
            hint = (
                ""
                if beir or len(cells) != 3
                else f"; BEIR judgements begin with the header {BEIR_HEADER.decode()!r}"
            )
            fault(number, f"expected {named} ({form}), found {len(cells)}: {shown(line)}{hint}")
            continue
        query, document, grade = cells[0], cells[-2], cells[-1]
        if not query or not document:
            fault(number, f"an id is empty: {shown(line)}")
        elif not _GRADE.fullmatch(grade) or int(grade) < least:
            should = "a whole number" + (" of at least 0" if beir else "") + " of at most 9 digits"
            fault(number, f"grade {grade!r} should be {should}; below 1 is not relevant")
        elif (first := lines.setdefault((query, document), number)) != number:
            fault(
                number, f"judges {document!r} for {query!r} again (first at line {first}); keep one of them"
            )
        else:
            found.setdefault(query, {})[document] = int(grade)
    return found
