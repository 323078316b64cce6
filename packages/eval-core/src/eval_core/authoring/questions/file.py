"""A file of questions with their judgements, in JSON lines or CSV, read with every fault at its line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval_core.authoring.sheet import COLUMNS, KEEP, plain_cell
from eval_core.errors import Misuse, did_you_mean
from eval_core.files import unreadable
from eval_core.imports.tables import csv_rows
from eval_core.sets.corpus import id_fault, read_json_lines
from eval_core.sets.words import blank

#: What a question may say of itself.
KEYS = ("text", "relevant", "category", "kind", "scope", "exclude", "id")

#: Called with a line and what is wrong there.
Tell = Callable[[int, str], None]


@dataclass(frozen=True, slots=True)
class Question:
    """One question of the file, at the line where it begins. `relevant` is {document id: grade}.

    `id` is empty where the set gives one. `metadata` has the keys that the set will have, without its source.
    """

    line: int
    text: str
    relevant: Mapping[str, int]
    exclude: tuple[str, ...] = ()
    id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


def read_questions(path: Path, fault: Tell, *, sheet: bool = False) -> list[Question]:
    """Read the file; of a `sheet`, the rows that are kept.

    What is wrong with a question is told; the question comes all the same, so that the rest of it can be held against
    the set.

    Raises:
        Misuse: there is no such file, its name ends with neither `.jsonl` nor `.csv`, or it holds no question.
        CouldNot: it cannot be read.
    """
    if not path.is_file():
        raise Misuse("file-missing", "there is no such file", file=path)
    told = False

    def tell(line: int, message: str) -> None:
        nonlocal told
        told = True
        fault(line, message)

    ending = path.suffix.lower()
    if sheet and ending == ".csv":
        rows = _sheet(path, tell)
    elif ending in (".jsonl", ".ndjson") and not sheet:
        rows = read_json_lines(path, tell)
    elif ending == ".csv":
        rows = _csv(path, tell)
    else:
        what = "questions are JSON lines or CSV; name the file .jsonl or .csv"
        what = "a sheet is CSV; name the file .csv" if sheet else what
        raise Misuse("file-unknown", what, file=path)
    found = [_question(line, row, tell, sheet) for line, row in rows]
    if not found and not told:
        what = "keeps no question: each row says no" if sheet else "holds no question"
        raise Misuse("file-vacuous", what, file=path)
    return found


# ------------------------------------------------------------- CSV


def _csv(path: Path, fault: Tell) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a CSV file as tables, with the line that each begins at; empty cells are absent.

    Several documents in a cell stand apart by spaces or semicolons, and count grade 1.
    """
    rows = _rows(path, fault)
    line, header = next(rows, (1, []))
    if not header:
        fault(1, f"is empty; expected a header of {', '.join(KEYS)}")
    elif _columns(header, line, fault):
        for line, cells in rows:
            yield line, {key: _cell(key, cell) for key, cell in zip(header, cells, strict=False) if cell}


#: The columns of a sheet that are read, as a question calls them.
_OF_SHEET = {
    "question": "text",
    "relevant": "relevant",
    "category": "category",
    "exclude": "exclude",
    "origin": "origin",
}


def _sheet(path: Path, fault: Tell) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a sheet that are kept; see `eval_core.authoring.sheet`. Columns of one's own are passed over."""
    rows = _rows(path, fault)
    line, header = next(rows, (1, []))
    header = [name.casefold() for name in header]
    lacking = [name for name in ("keep", "question", "relevant") if header.count(name) != 1]
    if lacking:
        fault(line, f"has no column {lacking[0]!r}, or has it twice; a sheet has {', '.join(COLUMNS)}")
        return
    for line, cells in rows:
        row = dict(zip(header, map(plain_cell, cells), strict=False))  # empty cells at the end may be absent
        mark = row.get("keep", "")
        keep = KEEP.get(mark.casefold())
        if keep is None:
            fault(line, f"keep {mark!r} should be yes or no")
        elif keep:
            yield line, {key: _cell(key, row[name]) for name, key in _OF_SHEET.items() if row.get(name)}


def _rows(path: Path, fault: Tell) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file. A byte order mark is passed over: spreadsheets write one unasked."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        fault(line, f"not UTF-8: byte {raw[error.start]:#04x}")
        return
    yield from csv_rows(text, fault)


def _columns(header: list[str], line: int, fault: Tell) -> bool:
    """Whether the header can be read by."""
    problems = [_unknown(name) for name in header if name not in KEYS]
    problems += [f"column {name!r} is there twice" for name in KEYS if header.count(name) > 1]
    problems += [f"has no column {name!r}" for name in ("text", "relevant") if name not in header]
    for problem in problems:
        fault(line, problem)
    return not problems


def _cell(key: str, cell: str) -> Any:
    if key == "origin":
        return cell.splitlines()
    return [part for part in re.split(r"[\s;]+", cell) if part] if key in ("relevant", "exclude") else cell


# ------------------------------------------------------------- one question


def _unknown(key: str) -> str:
    return f"unknown key {key!r}{did_you_mean(key, KEYS)}  (known: {', '.join(KEYS)})"


def _question(line: int, row: Mapping[str, Any], fault: Tell, sheet: bool) -> Question:
    """The question of a row, without what is wrong with it; all of that is told."""
    before: list[str] = [_unknown(key) for key in row if key not in KEYS and not (sheet and key == "origin")]
    text = row.get("text")
    if not isinstance(text, str):
        before.append(
            f"has no {'question' if sheet else 'text'!r}" if text is None else f"text {text!r} is not a text"
        )
        text = ""
    elif blank(text):
        before.append(f"text {text!r} is empty")
    relevant, wrong = _relevant(row.get("relevant"))
    before += wrong
    exclude = row.get("exclude")
    exclude = [] if exclude is None else exclude
    if not isinstance(exclude, list) or not all(isinstance(name, str) for name in exclude):
        before.append(f"exclude {exclude!r} is not a list of document ids")
        exclude = []
    before += [f"judges {name!r} relevant and excludes it" for name in exclude if relevant.get(name, 0) > 0]
    metadata: dict[str, Any] = {}
    for key in ("category", "kind", "scope"):
        value = row.get(key)
        if value is not None and not (isinstance(value, str) and value):
            before.append(f"{key} {value!r} should be a text")
        elif value is not None:
            metadata[key] = value
    name = row.get("id")
    if name is not None and (problem := id_fault(name)):
        before.append(problem.replace("_id", "id", 1))
        name = None
    for problem in before:
        fault(line, problem)
    if exclude:
        metadata["exclude"] = list(dict.fromkeys(exclude))
    if sheet and "origin" in row:
        metadata["origin"] = row["origin"]
    return Question(line, text.strip(), relevant, tuple(dict.fromkeys(exclude)), name or "", metadata)


def _relevant(given: object) -> tuple[dict[str, int], list[str]]:
    """{document id: grade} and what is wrong with it."""
    if given is None or given == [] or given == {}:
        return {}, ["has no 'relevant'; name the documents that answer it"]
    if isinstance(given, list):
        wrong = [f"relevant {name!r} is not a document id" for name in given if not isinstance(name, str)]
        names = [name for name in given if isinstance(name, str)]
        wrong += [f"names {name!r} relevant twice" for name in dict.fromkeys(names) if names.count(name) > 1]
        return dict.fromkeys(names, 1), wrong
    if not isinstance(given, dict):
        return {}, [f"relevant {given!r} should be a list of document ids, or a table of their grades"]
    wrong = [
        f"grade {grade!r} of {name!r} should be a whole number of at least 0"
        for name, grade in given.items()
        if isinstance(grade, bool) or not isinstance(grade, int) or not 0 <= grade <= 999_999_999
    ]
    if not wrong and not any(given.values()):
        wrong.append("has no document of a grade above 0; name one that answers it")
    # Where a grade is wrong, its document can still be looked up.
    return (dict.fromkeys(given, 1) if wrong else dict(given)), wrong
