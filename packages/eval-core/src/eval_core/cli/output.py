"""Standard output whose reader may go away: what a command found out stays its exit code."""

from __future__ import annotations

import codecs
import io
import os
import sys

#: What is written for a sign that the encoding of the output lacks. Other letters are escaped as in JSON.
TWINS = {
    "−": "-",
    "–": "-",
    "…": "...",
    "→": "->",
    "≥": ">=",
    "≤": "<=",
    "≠": "!=",
    "±": "+/-",
    "·": "-",
    "×": "x",
}


class Patient(io.RawIOBase):
    """Writes to a file descriptor; once nobody reads it any more, what is written is dropped.

    Without it the exit code of `eval-gate check | head` would depend on who is faster.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, data: bytes | bytearray | memoryview, /) -> int:  # type: ignore[override]  # any buffer
        try:
            return os.write(self._descriptor, data)
        except BrokenPipeError:
            drop(self._descriptor)
            return len(data)


def drop(descriptor: int = 1) -> None:
    """Drop what is still to be written to a descriptor that takes no more."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, descriptor)
    os.close(devnull)


def twins(error: UnicodeError) -> tuple[str, int]:
    """What stands for characters that cannot be encoded: an output in another encoding is still an output."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    piece = error.object[error.start : error.end]
    return "".join(TWINS.get(one) or _escaped(one) for one in piece), error.end


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def install() -> None:
    """Put it in the place of `sys.stdout`; a standard output that was closed becomes one that drops everything."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # open until the process ends
        return
    if not isinstance(sys.stdout, io.TextIOWrapper):
        return  # captured by whoever runs us in their process
    sys.stdout.flush()
    codecs.register_error("eval-twins", twins)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(Patient(sys.stdout.fileno())),
        encoding=sys.stdout.encoding,
        errors="eval-twins" if sys.stdout.errors == "strict" else sys.stdout.errors,
        line_buffering=sys.stdout.line_buffering,
    )
