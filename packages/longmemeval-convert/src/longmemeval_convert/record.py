"""One record of a LongMemEval file as a question with its sessions; what does not fit is an error with its place."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from eval_core.errors import UNSET
from longmemeval_convert.stream import DECODER, Place

#: In the id of a question that the history does not answer, and nowhere else.
ABSTENTION = "_abs"

ROLES = ("user", "assistant")

_DATE = re.compile(r"(\d{4})/(\d\d)/(\d\d) \((?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\) (\d\d):(\d\d)", re.ASCII)


class Turn(NamedTuple):
    """One message. `evidence` is its has_answer: True, False, or None where it is absent or null."""

    role: str
    content: str
    evidence: bool | None

    @property
    def blank(self) -> bool:
        """Whether it says nothing."""
        return not self.content or self.content.isspace()


class Date(NamedTuple):
    """A moment without a time zone: as ISO 8601 has it, and as it is written in the file."""

    iso: str
    written: str


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation of the history."""

    id: str
    date: Date
    turns: tuple[Turn, ...]

    def marked(self, role: str | None = None) -> bool:
        """Whether a turn, or one of this role, is marked as evidence."""
        return any(turn.evidence and role in (None, turn.role) for turn in self.turns)


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its history: `sessions` are distinct, in the file's order, and `gold` are ids among them.

    `merged` counts sessions that came again with the same turns, `whole_number` says that the answer is one.
    """

    id: str
    type: str
    text: str
    asked: Date
    sessions: tuple[Session, ...]
    gold: tuple[str, ...]
    merged: int
    whole_number: bool

    @property
    def abstention(self) -> bool:
        """Whether the history does not answer it."""
        return ABSTENTION in self.id

    @property
    def evidence(self) -> list[Session]:
        """The sessions that answer it."""
        return [session for session in self.sessions if session.id in set(self.gold)]


_FIELDS = ("question_id", "question_type", "question", "question_date", "answer_session_ids")
_PARALLEL = ("haystack_session_ids", "haystack_dates", "haystack_sessions")


def identity(record: dict[str, Any], place: Place) -> tuple[str, str]:
    """The id and the type of a record.

    Raises:
        Misuse: they are missing, empty, or not texts.
    """
    for key in (*_FIELDS, *_PARALLEL):
        if key not in record:
            v2 = {"trajectory_id", "eval_function", "environment", "domain"} & record.keys()
            hint = "; it looks like a record of LongMemEval-V2, which is another format" if v2 else ""
            raise place.fault(f"it is missing{hint}", key=key)
    return _name(record["question_id"], "question_id", place), _name(
        record["question_type"], "question_type", place
    )


def question(record: dict[str, Any], place: Place) -> Question:
    """Read and check a record.

    Raises:
        Misuse: the first thing that is wrong with it.
    """
    name, kind = identity(record, place)
    ids, dates, histories = (_list(record[key], key, place) for key in _PARALLEL)
    if not len(ids) == len(dates) == len(histories):
        lengths = f"{len(ids)} ids, {len(dates)} dates and {len(histories)} sessions"
        raise place.fault(f"the parallel lists have {lengths}", key="haystack_session_ids")
    if not ids:
        raise place.fault("the history is empty", key="haystack_sessions")
    sessions: dict[str, Session] = {}
    for number, (given, date, turns) in enumerate(zip(ids, dates, histories, strict=True)):
        session = Session(
            _name(given, f"haystack_session_ids[{number}]", place),
            _date(date, f"haystack_dates[{number}]", place),
            _turns(turns, f"haystack_sessions[{number}]", place),
        )
        first = sessions.setdefault(session.id, session)
        if first.turns != session.turns:
            what = "is given twice, with different turns"
            raise place.fault(what, key=f"haystack_session_ids[{number}]", value=session.id)
        if session.date < first.date:
            sessions[session.id] = session
    gold = dict.fromkeys(
        _name(given, f"answer_session_ids[{number}]", place)
        for number, given in enumerate(_list(record["answer_session_ids"], "answer_session_ids", place))
    )
    for given in gold:
        if given not in sessions:
            raise place.fault("is not a session of the history", key="answer_session_ids", value=given)
    text = record["question"]
    if not isinstance(text, str) or not text.strip():
        raise place.fault("should be a text that is not blank", key="question", value=text)
    answer = record.get("answer")
    if isinstance(answer, bool | list | dict):
        raise place.fault("should be a text or a number", key="answer", value=answer)
    return Question(
        id=name,
        type=kind,
        text=text,
        asked=_date(record["question_date"], "question_date", place),
        sessions=tuple(sessions.values()),
        gold=tuple(gold),
        merged=len(ids) - len(sessions),
        whole_number=isinstance(answer, int),
    )


def _list(value: Any, key: str, place: Place) -> list[Any]:
    if not isinstance(value, list):
        raise place.fault("should be a list", key=key, value=value)
    return value


def _name(value: Any, key: str, place: Place) -> str:
    """A text that can be written anywhere."""
    if not isinstance(value, str) or not value:
        raise place.fault("should be a text that is not empty", key=key, value=value)
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise place.fault("holds half of a surrogate pair, which is not a character", key=key, value=value)
    return value


def _date(value: Any, key: str, place: Place) -> Date:
    """A date such as `2023/05/30 (Tue) 23:40`; never now, whatever stands there."""
    match = _DATE.fullmatch(value) if isinstance(value, str) else None
    try:
        if match is not None:
            year, month, day, hour, minute = map(int, match.groups())
            return Date(datetime(year, month, day, hour, minute).isoformat(timespec="minutes"), value)
    except ValueError:
        pass
    raise place.fault("should be a date such as '2023/05/30 (Tue) 23:40'", key=key, value=value)


def _turns(value: Any, key: str, place: Place) -> tuple[Turn, ...]:
    turns = []
    for number, given in enumerate(_list(_unpacked(value, key, place), key, place)):
        if isinstance(given, str):
            given = _unpacked(given, f"{key}[{number}]", place)
        try:
            role, content = given["role"], given["content"]
            evidence = given.get("has_answer")
        except (TypeError, KeyError, AttributeError) as error:
            what = "should be a table with role and content"
            raise place.fault(what, key=f"{key}[{number}]", value=given) from error
        if type(content) is not str:
            raise place.fault("should be a text", key=f"{key}[{number}].content", value=content)
        if role not in ROLES:
            raise place.fault("should be user or assistant", key=f"{key}[{number}].role", value=role)
        if evidence is not None and type(evidence) is not bool:
            raise place.fault("should be true or false", key=f"{key}[{number}].has_answer", value=evidence)
        turns.append(Turn(role, content, evidence))
    return tuple(turns)


def _unpacked(value: Any, key: str, place: Place) -> Any:
    """What a text of JSON holds, which copies that went through tables of texts have; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return DECODER.decode(value)
    except (ValueError, RecursionError) as error:
        what = error.msg if isinstance(error, json.JSONDecodeError) else str(error) or UNSET
        raise place.fault(f"is a text, and not one of JSON: {what}", key=key, value=value) from error
