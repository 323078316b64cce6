"""The errors a person can meet, one class for each exit code.

=========  ====  ==========================================================================
class      exit  meaning
=========  ====  ==========================================================================
Refused       1  no: a breach, a refused floor, evidence missing or that cannot be graded
Misuse        2  wrong usage, configuration, dataset or policy file
CouldNot      3  could not: source absent, backend or service failed, rows errored
=========  ====  ==========================================================================

An error is a code of `eval_core.reasons` with fields: where (file, line), of what (subject, key, value, category), what
is wrong, and the mend. They become a sentence in `sentence`, and nowhere else; nothing reads a sentence again.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Self


class _Unset:
    """Its one value survives copies and other processes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSET"

    def __reduce__(self) -> str:
        return "UNSET"


#: The value of an error that is not about a value.
UNSET: Final[Any] = _Unset()

Where = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What an error is about.

    Attributes:
        code: an entry of `eval_core.reasons`.
        what: what is wrong, as a clause: "there is no such report".
        file: the file in which it is wrong.
        line: its line in the file, from 1.
        subject: the arm, run, query, source or other thing that it concerns.
        key: the key, option or measure.
        value: what stands there, or was measured; UNSET where it is not about a value.
        category: the category of queries that it is about.
        bar: what the value had to reach, or to stay below.
        mend: what to do about it.
    """

    code: str
    what: str
    file: str | None = None
    line: int | None = None
    subject: str | None = None
    key: str | None = None
    value: Any = UNSET
    category: str | None = None
    bar: float | None = None
    mend: str | None = None


def sentence(details: Details) -> str:
    """The one place where fields become a sentence: `FILE:LINE: SUBJECT: KEY of CATEGORY = VALUE: WHAT`."""
    lead = []
    if details.file is not None:
        lead.append(details.file if details.line is None else f"{details.file}:{details.line}")
    if details.subject is not None:
        lead.append(details.subject)
    if details.key is not None:
        named = details.key if details.category is None else f"{details.key} of {details.category}"
        lead.append(named if details.value is UNSET else f"{named} = {_shown(details.value)}")
    elif details.value is not UNSET:
        lead.append(_shown(details.value))
    return ": ".join([*lead, details.what])


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


class EvalError(Exception):
    """A failure that is explained to the user in words, never by a traceback. `Details` explains the fields."""

    exit_code = 3

    def __init__(
        self,
        code: str,
        what: str,
        *,
        file: Where | None = None,
        line: int | None = None,
        subject: str | None = None,
        key: str | None = None,
        value: Any = UNSET,
        category: str | None = None,
        bar: float | None = None,
        mend: str | None = None,
    ) -> None:
        super().__init__(code, what)
        self.details = Details(
            code=code,
            what=what,
            file=None if file is None else os.fspath(file),
            line=line,
            subject=subject,
            key=key,
            value=value,
            category=category,
            bar=bar,
            mend=mend,
        )

    @property
    def code(self) -> str:
        """The stable code for machines: an entry of `eval_core.reasons`."""
        return self.details.code

    @property
    def message(self) -> str:
        """What is wrong, in one sentence, without the mend."""
        return sentence(self.details)

    @property
    def mend(self) -> str | None:
        """What to do about it: what was given, else what the register says of the code."""
        if self.details.mend is not None:
            return self.details.mend
        from eval_core.reasons import REASONS

        entry = REASONS.get(self.code)
        return entry.mend or None if entry else None

    def but(self, **fields: Any) -> Self:
        """The same error with other fields: raise it in the place of one that a caller knows more about."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.details = replace(self.details, **fields)
        return other

    def __str__(self) -> str:
        return self.message if self.mend is None else f"{self.message}\n  {self.mend}"


class Refused(EvalError):
    """The answer is no (exit 1)."""

    exit_code = 1


class Misuse(EvalError):
    """Wrong usage, configuration, dataset or policy file (exit 2)."""

    exit_code = 2


class CouldNot(EvalError):
    """The work could not be done (exit 3)."""

    exit_code = 3


class Fault(Details):
    """One thing wrong with an input, of which there may be several: `Faults` raises them together."""

    __slots__ = ()

    def __init__(
        self,
        what: str,
        *,
        code: str = "input-invalid",
        file: Where | None = None,
        line: int | None = None,
        subject: str | None = None,
        key: str | None = None,
        value: Any = UNSET,
        category: str | None = None,
        bar: float | None = None,
        mend: str | None = None,
    ) -> None:
        super().__init__(
            code=code,
            what=what,
            file=None if file is None else os.fspath(file),
            line=line,
            subject=subject,
            key=key,
            value=value,
            category=category,
            bar=bar,
            mend=mend,
        )

    def __str__(self) -> str:
        return sentence(self) if self.mend is None else f"{sentence(self)}\n  {self.mend}"


#: Faults of one kind that are listed, and kinds of which any are.
LISTED, KINDS = 3, 20

#: What differs between faults of one kind: what is quoted, and numbers.
_PARTICULAR = re.compile(r"""'(?:[^'\\]|\\.)*'(?!\w)|"(?:[^"\\]|\\.)*"|\d[\d.,]*|; did you mean.*""")


def _kind(fault: Fault) -> tuple[str | None, ...]:
    """What faults that are wrong in the same way have in common."""
    what = re.sub(r"…(?:, …)+", "…", _PARTICULAR.sub("…", fault.what))
    return fault.file, fault.code, fault.subject, fault.key, what


def listed(faults: Sequence[Fault]) -> list[str]:
    """The lines of a list of faults: the first few of each kind in their order, and how many more there are of it."""
    kinds = Counter(map(_kind, faults))  # in the order of their first
    shown = dict.fromkeys(list(kinds)[:KINDS], 0)
    lines: list[str] = []
    for fault in faults:
        kind = _kind(fault)
        if shown.get(kind, LISTED) < LISTED:
            shown[kind] += 1
            lines.append(str(fault))
            if shown[kind] == LISTED < kinds[kind]:
                lines.append(f"  … and {kinds[kind] - LISTED:,} more of this kind")
    hidden = sum(list(kinds.values())[KINDS:])
    return [*lines, f"… and {hidden:,} of other kinds"] if hidden else lines


class Faults(Misuse):
    """All that is wrong with the input, found in one reading: each in `faults`, the first of each kind in the text."""

    def __init__(self, faults: Iterable[Fault], *, consequence: str = "nothing was done") -> None:
        self.faults: Sequence[Fault] = tuple(faults)
        count = len(self.faults)
        noun = "fault" if count == 1 else "faults"
        lines = listed(self.faults)
        super().__init__("input-invalid", "\n".join([*lines, f"{count:,} {noun}; {consequence}."]))

    def __reduce__(self) -> tuple[Any, ...]:
        return (_faults_of, (self.faults, self.details))

    @property
    def capped(self) -> bool:
        """Whether the text leaves some of them out."""
        return len(listed(self.faults)) != len(self.faults)

    def as_table(self) -> dict[str, Any]:
        """All of them, for machines: `faults-v1`."""
        rows = [{item.name: getattr(fault, item.name) for item in fields(Details)} for fault in self.faults]
        for row in rows:
            if not isinstance(row["value"], str | int | bool):
                row["value"] = None if row["value"] is UNSET else str(row["value"])
        return {"schema": "faults-v1", "faults": rows}

    @property
    def mend(self) -> str | None:
        """None: each fault has its own."""
        return self.details.mend


def _faults_of(faults: Sequence[Fault], details: Details) -> Faults:
    found = Faults(faults)
    found.details = details
    return found


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the closest known name, or an empty string."""
    import difflib

    close = difflib.get_close_matches(given, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def unknown_arm(
    name: str,
    known: Iterable[str],
    what: str = "there is no arm",
    *,
    file: Where | None = None,
    mend: str | None = None,
) -> Misuse:
    """The error of a name that is no arm: `what` and the name, the closest of the known arms, and all of them."""
    arms = list(dict.fromkeys(known))
    told = f"{what} {name!r}{did_you_mean(name, arms)}  (arms: {', '.join(arms) or 'none'})"
    return Misuse("arm-unknown", told, file=file, mend=mend)
