"""Runs as JSON lines: ranked ids a query, in the order given; our own run-v1, and plain `{"id": q, "ids": [...]}`."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from eval_core.scoring.readers.columns import is_comment
from eval_core.scoring.readers.source import Source, decoded, shown

#: The schema that the first line of one of our own runs names, and the outcomes of its rows.
OWN = "run-v1"
SCORED = "scored"
OUTCOMES = (SCORED, "errored", "unscored", "unscorable")


class Answer(NamedTuple):
    """One query of a run: its documents by rank and as a set, how many repeats were dropped, the row's outcome, and
    whether scores beside the documents contradict their order."""

    query: str
    ids: Sequence[str]
    unique: set[str]
    duplicates: int = 0
    outcome: str = SCORED
    contradicted: bool = False


def is_own(first: bytes) -> bool:
    """Whether a run's first line is the header of one of our own: it names a schema."""
    return "schema" in (table_of(first) or ())


def table_of(line: bytes) -> dict[str, Any] | None:
    """The JSON table that a line is; None where it is none."""
    if not line.startswith(b"{"):
        return None
    try:
        record = _decoder.decode(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def answers(source: Source, fault: Callable[[int, str], None], own: bool | None = None) -> Iterator[Answer]:
    """Yield the queries of a run in the file's order. `own` says, of a later part of a file, whether it is of a run of
    ours; a whole file says so by its first line.

    `fault` is told of each line that is no ranking: not JSON or not UTF-8, NaN, no `id` or `ids`, an id that is neither
    a text nor a whole number, a query given twice.
    """
    seen: dict[str, int] = {}
    for number, raw in source.lines():
        try:
            line = raw.decode("utf-8")
            if own is False and (plain := _plain(raw, line)) is not None:
                if (first := seen.setdefault(plain.query, number)) == number:
                    yield plain
                    continue
                fault(number, f"query {plain.query!r} again (first at line {first}); keep one of them")
                continue
            # Most lines are a table and no white space around it: raw_decode does not look for any.
            record, end = _decoder.raw_decode(line) if line[:1] == "{" else ({}, -1)
            if end != len(line):
                record = _decoder.decode(line)
        except UnicodeDecodeError:
            decoded(number, [raw], fault)
            continue
        except (ValueError, RecursionError) as error:
            if raw and not raw.isspace() and not is_comment(raw):
                fault(number, f"not JSON: {_short(error)}: {shown(raw)}")
            continue
        if own is None:
            own = isinstance(record, dict) and "schema" in record
            if own:
                if record["schema"] != OWN:
                    fault(number, f"schema {said(record['schema'])} is not that of a run; expected {OWN!r}")
                    return
                continue
        answer = _answer(record, own, b"\\u" in raw)
        if isinstance(answer, str):
            fault(number, answer)
        elif (first := seen.setdefault(answer.query, number)) != number:
            fault(number, f"query {answer.query!r} again (first at line {first}); keep one of them")
        else:
            yield answer


#: How json.dumps begins a plain line, and what it puts between two ids, with white space or without.
_HEAD = re.compile(r'\{"id": ?"([^"]+)", ?"ids": ?\["')
_BETWEEN = ('", "', '","')

#: What JSON does not let stand in a text as it is.
_CONTROL = bytes(range(0x20))


def _plain(raw: bytes, line: str) -> Answer | None:
    """A line `{"id": "…", "ids": ["…", …]}` without escapes, told apart by its quotes instead of being parsed; None
    where anything is otherwise."""
    head = _HEAD.match(line)
    if (
        head is None
        or not line.endswith('"]}')
        or "\\" in line
        or len(raw.translate(None, _CONTROL)) != len(raw)
    ):
        return None
    body = line[head.end() : -3]
    for between in _BETWEEN:
        ids = body.split(between)
        # Every quote is one of those between two ids.
        if body.count('"') == 2 * (len(ids) - 1):
            answer = answer_of(head[1], ids)
            return None if "" in answer.unique else answer
    return None


def _answer(record: Any, own: bool, escaped: bool) -> Answer | str:
    """A line's ranking, or what is wrong with it."""
    if not isinstance(record, dict):
        return f'expected {{"id": …, "ids": […]}}, not {_kind(record)}'
    query, ids = record.get("id"), record.get("ids")
    outcome: Any = SCORED
    if type(query) is int:
        query = str(query)
    if not isinstance(query, str) or not query:
        return f"id {said(query)} should be a text" if "id" in record else f"has no 'id'{_keys(record)}"
    if own:
        outcome = record.get("outcome")
        if outcome not in OUTCOMES:
            return f"outcome {said(outcome)} should be one of {', '.join(OUTCOMES)}"
    if not isinstance(ids, list):
        return f"ids {said(ids)} should be a list" if "ids" in record else f"has no 'ids'{_keys(record)}"
    try:
        "".join(ids)
    except TypeError:
        odd = next((name for name in ids if type(name) not in (str, int)), None)
        if odd is not None or None in ids:
            return f"ids holds {said(odd)}, which is not a document id; write it as a text"
        ids = [str(name) for name in ids]
    if escaped and _lone("".join([query, *ids])):
        return "holds a lone surrogate escape (\\ud800 to \\udfff), which is not a character"
    answer = answer_of(query, ids, outcome)
    if "" in answer.unique:
        return "ids holds an empty document id"
    return answer._replace(contradicted=True) if _rises(record.get("scores")) else answer


def _rises(scores: Any) -> bool:
    """Whether scores in rank order rise anywhere; what is no list of numbers is not looked at."""
    try:
        return isinstance(scores, list) and scores != sorted(scores, reverse=True)
    except TypeError:
        return False


def _lone(text: str) -> bool:
    """Whether a text holds half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def said(value: object) -> str:
    """A value for a message: its beginning, however long or deep it is."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = short.maxlong = 60
    return short.repr(value)


def answer_of(query: str, ids: Sequence[str], outcome: str = SCORED) -> Answer:
    """An answer of ranked documents; of one that comes twice, the better place stands."""
    unique = set(ids)
    if len(unique) == len(ids):
        return Answer(query, ids, unique, 0, outcome)
    return Answer(query, list(dict.fromkeys(ids)), unique, len(ids) - len(unique), outcome)


def _keys(record: dict[str, Any]) -> str:
    return f"; its keys are {', '.join(map(repr, list(record)[:5]))}" if record else ""


def _kind(value: object) -> str:
    return {list: "a list", str: "a text", bool: "a truth value", type(None): "null"}.get(
        type(value), "a number"
    )


def _short(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at column {error.colno}"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {twice!r} is given twice")
    return table


_decoder = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_no_repeats)

#: The value that begins at a place of a text, and where it ends: without NaN, and without a key given twice.
decode_json = _decoder.raw_decode
