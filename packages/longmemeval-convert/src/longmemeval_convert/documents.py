"""A question as lines of a set: its documents, its query and its judgements, under ids that do not tell the gold.

Document ids are numbers in the order of dates, so neither the order of the file nor a tie tells which are gold.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from eval_core.sets import encode_id
from longmemeval_convert.models import Choices
from longmemeval_convert.record import Question, Session, Turn

#: The two kinds of judgement: the sessions that the file names, or the rule of the authors' own evaluation.
GOLDS = ("answers", "authors")

#: By whether the text is of ASCII: escaping what is not takes the same form there, and a third of the time.
_ENCODERS = {
    ascii: json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=ascii)
    for ascii in (True, False)
}
_SURROGATE = re.compile("[\ud800-\udfff]")


class _Document(NamedTuple):
    id: str
    text: str
    metadata: dict[str, Any]
    session: Session
    turn: Turn | None


@dataclass(frozen=True, slots=True)
class Converted:
    """The lines of one question. `judged` maps a kind of judgement to ids of documents of grade 1."""

    query: bytes
    documents: Sequence[bytes]
    judged: dict[str, list[str]]
    names: bytes
    query_id: str
    empty_documents: int
    unjudged: int
    replaced: int


def convert_question(question: Question, number: int, choices: Choices) -> Converted:
    """Make the lines of a question.

    Args:
        number: of its record in the file, from 1: a sample has the ids of the whole.
    """
    opaque = choices.ids == "opaque"
    scope = f"q{number:04d}" if opaque else _part(question.id)
    ordered = sorted(
        question.sessions, key=lambda s: (s.date.iso, hashlib.sha256(s.id.encode("utf-8")).digest())
    )
    width = max(3, len(str(len(ordered))))
    prefixes = {
        session.id: f"{scope}/{place:0{width}d}" if opaque else f"{scope}/{_part(session.id)}"
        for place, session in enumerate(ordered, 1)
    }
    replaced = 0

    def line(value: dict[str, Any]) -> bytes:
        nonlocal replaced
        text = _ENCODERS[value.get("text", "").isascii()].encode(value)
        try:
            return text.encode("utf-8") + b"\n"
        except UnicodeEncodeError:
            text, count = _SURROGATE.subn("\ufffd", text)
            replaced += count
            return text.encode("utf-8") + b"\n"

    gold = set(question.gold) if not question.abstention else set()
    judged: dict[str, list[str]] = {kind: [] for kind in GOLDS}
    found: set[str] = set()
    lines: list[bytes] = []
    empty = 0
    for document in _documents(ordered, prefixes, scope, choices):
        empty += not document.text or document.text.isspace()
        lines.append(line({"_id": document.id, "text": document.text, "metadata": document.metadata}))
        if document.session.id in gold:
            for kind in GOLDS:
                if _relevant(document, kind):
                    judged[kind].append(document.id)
                    found.add(document.session.id)
    metadata: dict[str, Any] = {
        "scope": scope,
        "category": question.type,
        "asked": question.asked.iso,
        "asked_written": question.asked.written,
    }
    if question.abstention:
        metadata["abstention"] = True
    if not judged["answers"]:
        metadata["unanswerable"] = True
    return Converted(
        query=line({"_id": scope, "text": question.text, "metadata": metadata}),
        documents=lines,
        judged=judged,
        names=line(
            {"query": scope, "question_id": question.id, "documents": {v: k for k, v in prefixes.items()}}
        ),
        query_id=scope,
        empty_documents=empty,
        unjudged=len(gold - found),
        replaced=replaced,
    )


def _part(name: str) -> str:
    """An original id as a part of another: without the slash that stands between two."""
    return encode_id(name).replace("/", "%2F")


def _relevant(document: _Document, kind: str) -> bool:
    """Whether a document of a gold session is relevant.

    `answers`: the session is, or the turn that is marked as evidence. `authors`: as `run_retrieval.py` of LongMemEval
    has it, where a session counts if a turn of the user in it is marked, and a turn if it is the user's and marked.
    """
    if document.turn is not None:
        return bool(document.turn.evidence) and (kind == "answers" or document.turn.role == "user")
    return kind == "answers" or document.session.marked("user")


def _documents(
    sessions: Sequence[Session], prefixes: dict[str, str], scope: str, choices: Choices
) -> Iterator[_Document]:
    roles = ("user", "assistant") if choices.text == "all" else (choices.text,)
    after = "/" if choices.ids == "opaque" else "_"
    for session in sessions:
        metadata = {"scopes": [scope], "date": session.date.iso, "date_written": session.date.written}
        prefix = prefixes[session.id]
        if choices.granularity == "session":
            yield _Document(prefix, _text(session.turns, choices.text), metadata, session, None)
            continue
        for place, turn in enumerate(session.turns, 1):
            if turn.role in roles:
                text = _text((turn,), choices.text)
                yield _Document(
                    f"{prefix}{after}{place:03d}", text, metadata | {"role": turn.role}, session, turn
                )


def _text(turns: Sequence[Turn], whose: str) -> str:
    """The turns of the user joined by a space, as LongMemEval's authors index them; else a line `role: content` each.

    Blank turns have no line.
    """
    if whose == "user":
        return " ".join([turn.content for turn in turns if turn.role == "user"])
    return "\n".join(
        [
            f"{turn.role}: {turn.content}"
            for turn in turns
            if (whose == "all" or turn.role == whose) and not turn.blank
        ]
    )
