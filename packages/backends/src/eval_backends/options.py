"""Checks of the options that an arm gives a backend: each refusal names the option, the value and the mend."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NoReturn

from eval_core.errors import Misuse, did_you_mean


def refuse(backend: str, option: str, value: object, mend: str) -> NoReturn:
    """Raise the Misuse of a wrong option value; `mend` says what to write instead."""
    raise Misuse("option-invalid", mend, subject=f"backend {backend!r}", key=option, value=value)


def number(backend: str, option: str, value: object, low: float, high: float) -> float:
    """Return `value` as a float from `low` to `high`, both included.

    Raises:
        Misuse: it is no number (`True` is none), NaN, or out of range.
    """
    mend = f"give a number from {low:g} to {high:g}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse(backend, option, value, mend)
    # Compared before it is converted, since an integer can be too large for a float. NaN fails every comparison.
    if not low <= value <= high:
        refuse(backend, option, value, mend)
    return float(value)


def whole(backend: str, option: str, value: object, low: int, high: int) -> int:
    """Return `value`, an integer from `low` to `high`, both included.

    Raises:
        Misuse: it is no integer (`True` and `1.0` are none) or out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        refuse(backend, option, value, f"give a whole number from {low} to {high}")
    return value


def flag(backend: str, option: str, value: object) -> bool:
    """`true` or `false`.

    Raises:
        Misuse: it is neither.
    """
    if not isinstance(value, bool):
        refuse(backend, option, value, "give true or false")
    return value


def choice(backend: str, option: str, value: object, known: Collection[str]) -> str:
    """Return `value`, one of the texts of `known`.

    Raises:
        Misuse: it is another value; the nearest known one is suggested.
    """
    if not isinstance(value, str) or value not in known:
        near = did_you_mean(value, known) if isinstance(value, str) else ""
        refuse(backend, option, value, f"not known{near}  (known: {', '.join(sorted(known))})")
    return value


def texts(backend: str, option: str, value: object, mend: str) -> tuple[str, ...]:
    """Return `value`, a list or tuple of texts, as a tuple.

    Raises:
        Misuse: it is one text, no list, or holds something that is no text.
    """
    if isinstance(value, str) or not isinstance(value, Sequence):
        refuse(backend, option, value, mend)
    for item in value:
        if not isinstance(item, str):
            refuse(backend, option, value, f"{item!r} is not a text; {mend}")
    return tuple(value)
