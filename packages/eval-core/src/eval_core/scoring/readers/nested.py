"""Nested JSON, as Python tools write their dictionaries: a run `{query: {document: score}}` or `{query: [document, …]}`
in rank order, judgements `{query: {document: grade}}`; in one table, or one after another. The file is held whole."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from eval_core.errors import Misuse
from eval_core.scoring.readers.columns import GRADE_RULE, grade_of
from eval_core.scoring.readers.lists import decode_json, said
from eval_core.scoring.readers.source import opened

#: How a table over several lines begins; one that names a key of JSON lines is a broken line of those.
_BEGINS = re.compile(rb'\{\s*("(?!(?:id|ids|schema)")(?:[^"\\]|\\.)*"\s*:\s*[{\[].*)?')


def is_nested(first: bytes, table: dict[str, Any] | None) -> bool:
    """Whether a file with this first line holds nested JSON; `table` is the table that the line is, if it is one."""
    if table is None:
        return _BEGINS.fullmatch(first) is not None
    return (
        bool(table)
        and table.keys().isdisjoint({"id", "ids", "schema"})
        and all(isinstance(value, dict | list) for value in table.values())
    )


def rankings(path: Path) -> dict[str, Any]:
    """By query, the score of each document, or the documents in rank order.

    Raises:
        Misuse: what is no ranking, with its query.
    """
    with opened(path, "run") as source:
        found = _tables(path, b"".join(iter(source.read, b"")))
    for query, ranking in found.items():
        wrong = None
        if isinstance(ranking, dict):
            odd = next((d for d, score in ranking.items() if type(score) not in (int, float)), None)
            if odd is not None:
                wrong = f"the score of {odd!r} is {said(ranking[odd])}; expected a number"
        elif isinstance(ranking, list):
            ranking = found[query] = [str(name) if type(name) is int else name for name in ranking]
            odd = next((name for name in ranking if not isinstance(name, str)), None)
            if odd is not None or None in ranking:
                wrong = f"holds {said(odd)}, which is not a document id; write it as a text"
        else:
            wrong = f"expected {{document: score}} or [document, …], not {said(ranking)}"
        if wrong is None and "" in ranking:
            wrong = "holds an empty document id"
        if wrong is not None:
            raise Misuse("run-malformed", wrong, file=path, subject=f"query {query!r}")
    return found


def judgements(path: Path, data: bytes) -> dict[str, dict[str, int]]:
    """By query, the grade of each judged document.

    Raises:
        Misuse: what is no judgement, with its query.
    """
    found = _tables(path, data)
    for query, grades in found.items():
        wrong = None
        if not isinstance(grades, dict):
            wrong = f"expected {{document: grade}}, not {said(grades)}"
        else:
            numbers = {document: grade_of(grade) for document, grade in grades.items()}
            odd = next((document for document, number in numbers.items() if number is None), None)
            if odd is not None:
                wrong = f"the grade of {odd!r} is {said(grades[odd])}; it should be {GRADE_RULE}"
            elif "" in numbers:
                wrong = "judges an empty document id"
            found[query] = numbers
        if wrong is not None:
            what = f"{wrong}; if this is a run, --run and --qrels are exchanged"
            raise Misuse("judgements-malformed", what, file=path, subject=f"query {query!r}")
    return found


def _tables(path: Path, data: bytes) -> dict[str, Any]:
    """All tables of the file as one."""
    found: dict[str, Any] = {}
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Misuse(
            "file-malformed",
            f"not UTF-8: byte {data[error.start]:#04x}; save it as UTF-8",
            file=path,
            line=line,
        ) from error
    at = len(text) - len(text.lstrip())
    while at < len(text):
        line = text.count("\n", 0, at) + 1
        try:
            table, at = decode_json(text, at)
        except json.JSONDecodeError as error:
            raise Misuse(
                "file-malformed",
                f"not JSON: {error.msg} at column {error.colno}",
                file=path,
                line=error.lineno,
            ) from error
        except (ValueError, RecursionError) as error:
            told = "nested too deeply" if isinstance(error, RecursionError) else error
            raise Misuse("file-malformed", f"not JSON: {told}", file=path, line=line) from error
        if not isinstance(table, dict):
            raise Misuse(
                "file-malformed", f"expected a table by query, not {said(table)}", file=path, line=line
            )
        if isinstance(schema := table.get("schema"), str):
            raise Misuse("file-malformed", f"is a {schema}, and neither a run nor judgements", file=path)
        for query, value in table.items():
            if not query:
                raise Misuse("file-malformed", "a query id is empty", file=path, line=line)
            if query in found:
                raise Misuse(
                    "file-malformed", f"query {query!r} again; keep one of them", file=path, line=line
                )
            if "\\u" in text:
                _refuse_lone(path, query, value)
            found[query] = value
        at += len(text[at:]) - len(text[at:].lstrip())
    return found


def _refuse_lone(path: Path, query: str, value: Any) -> None:
    """Refuse half of a surrogate pair, which no file can hold."""
    try:
        "".join([query, *(name for name in value if isinstance(name, str))] if value else query).encode()
    except UnicodeEncodeError as error:
        what = "holds a lone surrogate escape (\\ud800 to \\udfff), which is not a character"
        raise Misuse("file-malformed", what, file=path, subject=f"query {query!a}") from error
