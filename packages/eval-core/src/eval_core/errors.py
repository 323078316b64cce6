"""The errors a person can meet, one class for each exit code.

=========  ====  ==========================================================================
class      exit  meaning
=========  ====  ==========================================================================
Refused       1  no: a breach, a refused floor, evidence missing or that cannot be graded
Misuse        2  wrong usage, configuration, dataset or policy file
CouldNot      3  could not: source absent, backend or service failed, rows errored
=========  ====  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class EvalError(Exception):
    """A failure that is explained to the user in words, never by a traceback.

    `reason` is a stable code for machines; `remedy`, where given, is what to do next.
    """

    exit_code = 3

    def __init__(self, message: str, *, reason: str = "failed", remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return self.message if self.remedy is None else f"{self.message}\n  {self.remedy}"


class Refused(EvalError):
    """The answer is no (exit 1)."""

    exit_code = 1


class Misuse(EvalError):
    """Wrong usage, configuration, dataset or policy file (exit 2)."""

    exit_code = 2


class CouldNot(EvalError):
    """The work could not be done (exit 3)."""

    exit_code = 3


class Fault(NamedTuple):
    """One thing wrong with an input file: where (`file` or `file:line`) and what, with the mend."""

    where: str
    message: str
    reason: str = "input-invalid"

    def __str__(self) -> str:
        return f"{self.where}  {self.message}"


class Faults(Misuse):
    """All that is wrong with the input, found in one reading. Every fault is listed."""

    def __init__(self, faults: Iterable[Fault], *, consequence: str = "nothing was done") -> None:
        self.faults: Sequence[Fault] = tuple(faults)
        count = len(self.faults)
        noun = "fault" if count == 1 else "faults"
        lines = [str(fault) for fault in self.faults]
        super().__init__("\n".join([*lines, f"{count} {noun}; {consequence}."]), reason="input-invalid")


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the closest known name, or an empty string."""
    import difflib

    close = difflib.get_close_matches(given, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
