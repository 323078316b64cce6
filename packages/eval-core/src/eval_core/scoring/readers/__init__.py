"""Rankings and judgements in the forms of others: which form a file has, and its judgements read.

A form is recognised before anything is read, by the first line that is neither blank nor a comment. Runs are TREC's
lines, JSON lines or nested JSON (`run`, `lists`, `nested`); judgements are TREC's lines (query, a column that is
ignored, document, grade), BEIR's three fields with tabs between under the header `query-id corpus-id score`, the same
as JSON lines, or nested JSON. What a grade and a column are is told in `columns`. A file may be compressed, begin with
a byte order mark, end its lines with CRLF, lack the last newline and hold blank lines. An id is what stands between:
any UTF-8 text.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from eval_core.errors import Misuse
from eval_core.scoring.readers import nested
from eval_core.scoring.readers.columns import (
    BEIR_HEADER,
    GRADE_RULE,
    grade_of,
    is_comment,
    is_judgement,
    is_run_line,
)
from eval_core.scoring.readers.lists import table_of
from eval_core.scoring.readers.source import Listing, Progress, decoded, opened, refuse_other_text, shown

Form = Literal["trec", "jsonl", "nested"]

#: The keys of a judgement in JSON lines: BEIR's, and those of ir_datasets.
_KEYS = (("query-id", "corpus-id", "score"), ("query_id", "doc_id", "relevance"))

#: ASCII white space, which is what separates TREC's columns.
_SPACES = (b" ", b"\t", b"\r", b"\v", b"\f")


def form(path: Path) -> tuple[Form, bytes]:
    """Which form a run file has, by its first line, and that line.

    Raises:
        Misuse: the file cannot be read, is empty, holds judgements, or has a form that is known and not read.
    """
    with opened(path, "run") as source:
        first = source.first_line()
    words = first.split()
    if not words:
        raise Misuse("run-empty", "holds no ranking", file=path)
    # CR is white space in a run's columns and between the parts of JSON.
    table = table_of(first)
    if not is_run_line(words, first) and table is None:
        refuse_other_text(path, first)
        _refuse_list(path, first, "score")
    if first == BEIR_HEADER or is_judgement(words) or (table is not None and _keys(table)):
        what = f"holds judgements and not a run ({shown(first)}); are --run and --qrels exchanged?"
        raise Misuse("run-malformed", what, file=path)
    if _is_three(words):
        what = (
            f"has three columns ({shown(first)}), as runs of MS MARCO (query, document, rank) and judgements without "
            "their header have; expected six, query Q0 document rank score tag"
        )
        mend = """Where the third is a rank, write  awk '{ print $1, "Q0", $2, $3, -$3, "run" }'"""
        raise Misuse("run-malformed", what, file=path, mend=mend)
    if nested.is_nested(first, table):
        return "nested", first
    # A query id may begin with a brace, too; then the line has a run's columns, and is no JSON.
    lines = table is not None or (first.startswith(b"{") and not is_run_line(words, first))
    return ("jsonl" if lines else "trec"), first


def _refuse_list(path: Path, first: bytes, number: str) -> None:
    if first.startswith(b"["):
        what = f"is a list in JSON; expected {{query: {{document: {number}}}}}, or a table a line"
        raise Misuse("file-malformed", what, file=path)


def _is_three(words: list[bytes]) -> bool:
    """Whether these are three columns, the last a number."""
    try:
        return len(words) == 3 and not words[0].startswith(b"{") and float(words[2]) is not None
    except ValueError:
        return False


def _keys(table: dict[str, Any]) -> tuple[str, str, str] | None:
    """The keys by which a table in JSON lines is a judgement; None where it is none."""
    return next((keys for keys in _KEYS if table.keys() >= set(keys)), None)


def read_qrels(path: Path, progress: Progress | None = None) -> dict[str, dict[str, int]]:
    """Read judgements: by query, in the file's order, the grade of each judged document; below 1 is not relevant.

    Raises:
        Faults: a line with another number of columns, a grade that is no whole number, an id that is empty or not
            UTF-8, pairs judged twice. The first 20 are listed, the others counted.
        Misuse: the file cannot be read, holds no judgements, or is a run.
    """
    with opened(path, "qrels", progress) as source:
        data = b"".join(iter(source.read, b""))
    first = _first(data)
    words, table = first.split(), table_of(first)
    if not is_run_line(words, first) and not is_judgement(words):
        refuse_other_text(path, first)
        _refuse_list(path, first, "grade")
    lines = table is not None and _keys(table) is not None
    whole = nested.is_nested(first, table)
    json_run = first.startswith(b"{") and not is_judgement(words) and not lines and not whole
    if is_run_line(words, first) or json_run:
        what = f"holds a run and not judgements ({shown(first)}); are --run and --qrels exchanged?"
        raise Misuse("judgements-malformed", what, file=path)
    if whole:
        found = nested.judgements(path, data)
    else:
        kind: _Kind = "jsonl" if lines else "beir" if first == BEIR_HEADER else "trec"
        found = _regular(data, kind) or _exact(data, kind, path)
    if not found:
        raise Misuse("judgements-empty", "holds no judgements", file=path)
    return found


def _first(data: bytes) -> bytes:
    """The first line that is neither blank nor a comment."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        line = data[start:end].strip()
        if line and not is_comment(line):
            return line
        start = end + 1
    return b""


_Kind = Literal["trec", "beir", "jsonl"]


def _regular(data: bytes, kind: _Kind) -> dict[str, dict[str, int]] | None:
    """The judgements of a file whose lines all have the same single separator; None where anything is unusual.

    One split for all, then verified by counting: a newline at the end of every last column and nowhere else.
    """
    if kind == "jsonl" or data.startswith(b"#") or b"\n#" in data:
        return None
    beir = kind == "beir"
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
        grade = grade_of(cell.removesuffix("\n"))
        if grade is None:
            return None
        numbers[cell] = grade
    found: dict[str, dict[str, int]] = {}
    query, judged = "", {}
    for named, document, cell in zip(queries, documents, grades, strict=True):
        if named != query:
            query, judged = named, found.setdefault(named, {})
        judged[document] = numbers[cell]
    return found if sum(map(len, found.values())) == n else None


def _exact(data: bytes, kind: _Kind, path: Path) -> dict[str, dict[str, int]]:
    """The judgements line by line.

    Raises:
        Faults: each line that is none, and the pairs that are judged again, together at the first of them.
    """
    fault = Listing(path)
    found: dict[str, dict[str, int]] = {}
    lines: dict[tuple[str, str], int] = {}
    again: list[tuple[int, str, str]] = []
    headed = kind != "beir"
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line or line.isspace():
            continue
        if not headed:
            headed = line.strip() == BEIR_HEADER
            continue
        cells = _cells(number, line, kind, fault)
        if cells is None:
            continue
        query, document, written = cells
        grade = grade_of(written)
        if not query or not document:
            fault(number, f"an id is empty: {shown(line)}")
        elif grade is None:
            fault(number, f"grade {written!r} should be {GRADE_RULE}")
        elif lines.setdefault((query, document), number) != number:
            again.append((number, query, document))
        else:
            found.setdefault(query, {})[document] = grade
    if again:
        number, query, document = again[0]
        more = f", one of {len(again):,} lines that judge a pair again" if len(again) > 1 else ""
        fault(
            number,
            f"judges {document!r} for {query!r} again (first at line {lines[query, document]}){more}; keep one grade a "
            "pair: of several annotators the median or the highest",
        )
    fault.stop()
    return found


#: What a line of judgements has, by its form: how many columns, and which.
_EXPECTED = {
    "trec": (4, "4 columns (query 0 document grade)"),
    "beir": (3, "3 fields with tabs between (query-id corpus-id score)"),
}


def _cells(
    number: int, line: bytes, kind: _Kind, fault: Callable[[int, str], None]
) -> tuple[str, str, object] | None:
    """The query, the document and the grade of a line; None for a comment, and after a fault."""
    raw = line.removesuffix(b"\r").split(b"\t") if kind == "beir" else line.split()
    if is_comment(line) and (kind != "beir" or len(raw) != 3):
        return None
    if kind == "jsonl":
        if decoded(number, [line], fault) is None:
            return None
        table = table_of(line)
        keys = None if table is None else _keys(table)
        if table is None or keys is None:
            fault(number, f"expected a table with {', '.join(map(repr, _KEYS[0]))}: {shown(line)}")
            return None
        query, document, grade = (table[key] for key in keys)
        # A whole number as an id is its decimal text, as everywhere.
        query, document = (str(one) if type(one) is int else one for one in (query, document))
        if isinstance(query, str) and isinstance(document, str):
            return query, document, grade
        fault(number, f"an id should be a text: {shown(line)}")
        return None
    cells = decoded(number, raw, fault)
    if cells is None:
        return None
    columns, named = _EXPECTED[kind]
    if len(cells) == columns:
        return cells[0], cells[-2], cells[-1]
    hint = ""
    if kind == "trec" and len(cells) == 3:
        hint = (
            f"; BEIR judgements begin with the header {BEIR_HEADER.decode()!r}, others get their fourth column by  "
            "awk '{ print $1, 0, $2, $3 }'"
        )
    elif kind == "trec" and len(cells) == 5:
        hint = "; drop the fifth, and where it names annotators, keep one grade a pair: the median or the highest"
    fault(number, f"expected {named}, found {len(cells)}: {shown(line)}{hint}")
    return None
