"""Values of another repository's published file, each as that file writes it (SYSTEMS S6)."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from typing import Any

from eval_core.errors import EvalError, Refused, did_you_mean
from eval_core.files import read_text
from eval_core.publish.marks import Asserted


class Figure(str):
    """A number, in the spelling of its file: `0.930` stays that."""


def read(path: Path) -> Any:
    """Read a JSON file, or a TOML file by its name's end, with its numbers as `Figure`.

    Raises:
        Refused: `from-missing`, or `from-malformed`.
    """
    try:
        text = read_text(path, "file of published values")
    except EvalError as error:
        code = "from-missing" if error.reason in ("file-missing", "file-unreadable") else "from-malformed"
        raise Refused(error.message, reason=code) from error
    try:
        if path.suffix.lower() == ".toml":
            return tomllib.loads(text, parse_float=Figure)
        return json.loads(
            text, parse_float=Figure, parse_int=Figure, parse_constant=Figure, object_pairs_hook=_distinct
        )
    except (ValueError, RecursionError, OverflowError) as error:
        raise Refused(f"{path}: cannot be read: {error}", reason="from-malformed") from error


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"key {next(n for n in names if names.count(n) > 1)!r} is given twice in one table")
    return table


def value(table: Any, target: Asserted, path: Path) -> str:
    """The text that belongs into a mark.

    Raises:
        Refused: `key-unknown`, or `value-unfit` (a table, a list, true, null, NaN, or a text that would break a mark).
    """
    here = table
    for step, name in enumerate(target.way):
        inner: Any = None
        known: list[str] = []
        if isinstance(here, dict):
            known = list(here)
            inner = here.get(name)
        elif isinstance(here, list):
            known = [str(place) for place in range(len(here))]
            inner = here[int(name)] if name in known else None
        if name not in known:
            where = ".".join(target.way[:step]) or "the file"
            raise Refused(f"{path}: no {name!r} in {where}{did_you_mean(name, known)}", reason="key-unknown")
        here = inner
    return _text(here, target, path)


def _text(found: Any, target: Asserted, path: Path) -> str:
    def unfit(why: str) -> Refused:
        return Refused(f"{path}: {target.key} {why}", reason="value-unfit")

    if isinstance(found, Figure) or (isinstance(found, int) and not isinstance(found, bool)):
        number = float(found) if isinstance(found, str) or abs(found) < 10**300 else math.inf
        if not math.isfinite(number):
            raise unfit(f"is {found}, and not a finite number")
        return str(found) if target.form is None else format(number, target.form)
    if not isinstance(found, str):
        kinds = {dict: "a table", list: "a list", bool: "true or false", type(None): "null"}
        raise unfit(f"is {kinds.get(type(found), type(found).__name__)}, and not a number or a text")
    if target.form is not None:
        raise unfit(f"is a text, {found[:40]!r}, which has no form {target.form}")
    if (
        not found.strip()
        or found != found.strip()
        or not found.isprintable()
        or "<!--" in found
        or "-->" in found
    ):
        raise unfit(f"is a text that no mark can hold: {found[:40]!r}")
    return found
