"""`eval-core import records`: queries in a CSV, JSON or JSON-lines file, one a record, its fields named or guessed."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from eval_core.console import safe
from eval_core.errors import Misuse
from eval_core.imports.importer import CONSEQUENCE, Question, Reading
from eval_core.imports.tables import Row, read_table, shown
from eval_core.scoring.readers.columns import grade_of
from eval_core.scoring.readers.source import Listing
from eval_core.sets import encode_id
from eval_core.sets.corpus import decode_json

SUMMARY = "CSV, JSON or JSON lines with a query a record."

#: What fields are usually called, compared without case, spaces, hyphens and underscores. The first is its own name.
USUAL = {
    "query": "query question text querytext userquery prompt q",
    "id": "id queryid qid questionid caseid",
    "expected": "expected relevant expectedsources expectedfiles expecteddocs expectedids expecteddocids relevantdocs "
    "relevantids relevantdocids groundtruth groundtruthsources golddocs golddocids goldids docid docids corpusid "
    "documentid documentids sources source relevance",
    "grade": "grade grades score relevancegrade rel gain",
    "category": "category kind type querytype questiontype intent",
}

#: What a document and its grade are called where an expected document is a table.
_DOCUMENT = ("id", "doc", "doc_id", "document", "path", "source")
_GRADES = ("grade", "gain", "relevance", "score")

#: Words that judge, compared as field names are: one among few values makes a field look like a grade.
_JUDGING = (
    "bad poor fair ok okay good great excellent perfect relevant irrelevant nonrelevant notrelevant partial partly "
    "partiallyrelevant highlyrelevant correct incorrect wrong right yes no true false pass fail positive negative"
)

OPTIONS: Sequence[click.Option] = [
    *(
        click.Option(
            [f"--{role}"],
            metavar="FIELD",
            help=f"The field of the {what}; '' for none.  [default: by its usual names]",
        )
        for role, what in {
            "query": "query's text",
            "id": "query's id, without which they are q1, q2, …",
            "expected": "expected documents",
            "grade": "documents' grade, without which it is 1",
            "category": "query's category",
        }.items()
    ),
    click.Option(["--grades"], metavar="WORD=N,…", help="What grades in words mean: good=2,ok=1,bad=0."),
]


def read(
    path: Path,
    *,
    query: str | None = None,
    id: str | None = None,
    expected: str | None = None,
    grade: str | None = None,
    category: str | None = None,
    grades: str | None = None,
) -> Reading:
    """Read a file of records.

    Raises:
        Misuse: it cannot be read, a field is not there, is empty throughout, or cannot be told from another.
        Faults: records that are wrong, each at its line.
    """
    fault = Listing(path, CONSEQUENCE)
    table = read_table(path, fault)
    named = {"query": query, "id": id, "expected": expected, "grade": grade, "category": category}
    fields = _fields(path, table.rows, named) if table.rows else {}
    carried = {"category": fields["category"]} if "category" in fields else {}
    questions, dropped = collect(path, table.rows, fields, carried, fault, _grade_map(grades))
    dropped = {f"{key} (beside the records)": 1 for key in table.beside} | dropped
    graded = grade is not None or "grade" in fields
    graded = graded or any(one != 1 for asked in questions for one in asked.expected.values())
    doubts = [] if graded else list(_grades_unread(table.rows, fields))
    return Reading(questions, fields, dropped, warnings=doubts)


def _grades_unread(rows: Sequence[Row], fields: Mapping[str, str]) -> Iterator[str]:
    """A warning for each field that nothing reads and whose few values look like grades."""
    found: dict[str, set[str]] = {}
    for _, row in rows:
        for name in row.keys() - set(fields.values()):
            value = row[name]
            for one in value if isinstance(value, list) else [value]:
                if not _empty(one):
                    found.setdefault(name, set()).add(_word(one))
    for name, words in sorted(found.items()):
        numbers = all(re.fullmatch(r"-?([0-9](\.[0-9]+)?|10)", word) for word in words)
        judging = (
            len(words) > 1 if numbers else not {_plain(word) for word in words}.isdisjoint(_JUDGING.split())
        )
        if not judging or len(words) > 8 or any(len(word) > 30 for word in words):
            continue
        ordered = sorted(words)
        option = f"--grade {shlex.quote(name)}"
        if not all(re.fullmatch("-?[0-9]+", word) for word in words):
            option += f" --grades {shlex.quote(','.join(f'{word}=N' for word in ordered))}, with a number for each N"
        yield (
            f"{name!r} looks like a grade ({', '.join(ordered)}), and was not read: every row was taken as relevant. "
            f"To read it: {option}"
        )


def _grade_map(written: str | None) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in written.split(",") if written else ():
        word, sign, number = (piece.strip() for piece in part.rpartition("="))
        if not sign or not word or not re.fullmatch(r"[0-9]{1,9}", number) or word in found:
            what = "should be words with whole numbers, each once, such as good=2,ok=1,bad=0"
            raise Misuse("usage", what, key="--grades", value=written)
        found[word] = int(number)
    return found


def _fields(path: Path, rows: Sequence[Row], named: Mapping[str, str | None]) -> dict[str, str]:
    """The field of each role that has one: as named, else guessed."""
    known = Counter(name for _, row in rows for name, value in row.items())
    listed = safe(", ".join(known))
    found: dict[str, str] = {}
    for role, given in named.items():
        if given:
            if given not in known:
                raise Misuse(
                    "field-unclear",
                    f"no record has it  (fields: {listed})",
                    file=path,
                    key=f"--{role}",
                    value=given,
                )
            found[role] = given
    for role, given in named.items():
        if given is not None:
            continue
        usual = USUAL[role].split()
        alike = [name for name in known if _plain(name) in usual and name not in found.values()]
        alike = [name for name in alike if _plain(name) == usual[0]] or alike
        if len(alike) > 1:
            what = f"{safe(', '.join(alike))} could each be the {role}"
            raise Misuse("field-unclear", what, file=path, mend=f"Say which by --{role} FIELD.")
        if alike:
            found[role] = alike[0]
    for role in ("query", "expected"):
        if role not in found:
            what = f"no field is called as the {role} usually is  (fields: {listed})"
            raise Misuse("field-unclear", what, file=path, mend=f"Say which by --{role} FIELD.")
    return {role: found[role] for role in named if role in found}


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).casefold()


def collect(
    path: Path,
    rows: Sequence[Row],
    fields: Mapping[str, str],
    carried: Mapping[str, str],
    fault: Listing,
    grades: Mapping[str, int] = {},
) -> tuple[list[Question], dict[str, int]]:
    """The queries of records, and what is dropped. Records of one id, or of one text where there are no ids, are one.

    Args:
        fields: the fields of query, id, expected and grade.
        carried: by key of a query's metadata, its field.
        grades: what words for grades mean.

    Raises:
        Misuse: a field is empty in all records, or there is none.
        Faults: all that is wrong.
    """
    for name in dict.fromkeys([*fields.values(), *carried.values()]):
        if rows and all(_empty(row.get(name)) for _, row in rows):
            raise Misuse(
                "field-empty", f"the field is empty in all {len(rows):,} records", file=path, key=name
            )
    found: dict[str, Question] = {}
    dropped: Counter[str] = Counter()
    used = {*fields.values(), *carried.values()}
    for line, row in rows:
        dropped.update(name for name, value in row.items() if name not in used and not _empty(value))
        try:
            one = _question(line, row, fields, carried, found)
            for name, grade in _expected(row, fields, grades):
                if one.expected.setdefault(name, grade) != grade:
                    raise ValueError(f"judges {name!r} for {one.id!r} again, with another grade")
        except ValueError as error:
            fault(line, str(error))
    fault.stop()
    if not found:
        raise Misuse("file-vacuous", "holds no record", file=path)
    return list(found.values()), dict(dropped)


def _empty(value: object) -> bool:
    return value is None or value in ("", [], {}) or (isinstance(value, str) and not value.strip())


def _question(
    line: int,
    row: dict[str, Any],
    fields: Mapping[str, str],
    carried: Mapping[str, str],
    found: dict[str, Question],
) -> Question:
    """The query of a record, added to those found or the one of that id."""
    text = row.get(fields["query"])
    if not isinstance(text, str) or not text.strip():
        what = "is empty" if _empty(text) else f"{shown(text)} is not a text; write it in quotes"
        raise ValueError(f"{fields['query']} {what}")
    text = text.strip()
    key, name = text, f"q{len(found) + 1}"
    if "id" in fields:
        key = name = encode_id(_name(row.get(fields["id"]), fields["id"]))
    metadata = {meta: row[source] for meta, source in carried.items() if not _empty(row.get(source))}
    for meta, value in metadata.items():
        if meta != "tags" and not isinstance(value, str):
            raise ValueError(f"{carried[meta]} {shown(value)} is not a text; write it in quotes")
    one = found.setdefault(key, Question(name, text, {}, line, metadata))
    if (one.text, one.metadata) != (text, metadata):
        what = "text" if one.text != text else "category"
        raise ValueError(f"query {one.id!r} again with another {what} (first at line {one.line})")
    return one


def _name(value: object, what: str) -> str:
    """An id or a document's name: a text, or a whole number."""
    if type(value) is int:
        return str(value)
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise ValueError(
        f"{what} is empty" if _empty(value) else f"{what} {shown(value)} is not a text; write it in quotes"
    )


def _expected(
    row: Mapping[str, Any], fields: Mapping[str, str], grades: Mapping[str, int]
) -> list[tuple[str, int]]:
    """The expected documents of a record with their grades."""
    name = fields["expected"]
    value = row.get(name)
    if isinstance(value, str) and value.strip().startswith("["):
        with contextlib.suppress(ValueError):  # a name may begin so
            value = decode_json(value)
    if _empty(value):
        return []
    if isinstance(value, dict) and not any(key in value for key in _DOCUMENT):
        value = [{"id": document, "grade": grade} for document, grade in value.items()]
    several: list[Any] = value if isinstance(value, list) else [value]
    given: object = row.get(fields["grade"]) if "grade" in fields else 1
    if isinstance(given, list) and len(given) != len(several):
        raise ValueError(f"has {len(given)} grades for {len(several)} documents")
    found = []
    for place, one in enumerate(several):
        if isinstance(one, list):
            raise ValueError(f"{name} holds a list in a list; write one list of documents")
        mark = given[place] if isinstance(given, list) else given
        if isinstance(one, dict):
            mark = next((one[key] for key in _GRADES if key in one), mark)
            one = next((one[key] for key in _DOCUMENT if key in one), None)
        found.append((_name(one, name), _grade(mark, grades)))
    return found


def _word(value: object) -> str:
    """A grade as it is written; empty where it can be none."""
    if isinstance(value, str):
        return value.strip()
    return json.dumps(value) if isinstance(value, int | float | None) else ""


def _grade(value: object, grades: Mapping[str, int]) -> int:
    word = _word(value)
    if grades:
        if word not in grades:
            raise ValueError(f"grade {shown(value)} is not in --grades  ({', '.join(grades)})")
        return grades[word]
    if (grade := grade_of(word)) is None:
        raise ValueError(
            f"grade {shown(value)} should be a whole number; say what words mean by --grades good=2,ok=1,bad=0"
        )
    return grade
