"""Values of another repository's published file, each as that file writes it (SYSTEMS S6)."""

from __future__ import annotations

import json
import math
import re
import tomllib
from pathlib import Path
from typing import Any

from eval_core.errors import EvalError, Refused, did_you_mean
from eval_core.files import read_text
from eval_core.publish.marks import Asserted

#: What foreign text may be, so that it is no markup in any page: plain short words.
_WORDS = re.compile(r"[A-Za-z0-9.,%+_-]+(?: [A-Za-z0-9.,%+_-]+)*")
_LONGEST = 60
# A page makes a link of it, though it has no sign of one.
_LINK = re.compile(r"\bwww\.", re.IGNORECASE)
_ALLOWED = f"only a number, or words of letters, digits, . , % + - _ (at most {_LONGEST} signs, no www.) is published"


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
        code = "from-missing" if error.code in ("file-missing", "file-unreadable") else "from-malformed"
        raise Refused(code, error.details.what, file=error.details.file) from error
    try:
        if path.suffix.lower() == ".toml":
            return tomllib.loads(text, parse_float=Figure)
        return json.loads(
            text, parse_float=Figure, parse_int=Figure, parse_constant=Figure, object_pairs_hook=_distinct
        )
    except (ValueError, RecursionError, OverflowError) as error:
        raise Refused("from-malformed", f"cannot be read: {error}", file=path) from error


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"key {next(n for n in names if names.count(n) > 1)!r} is given twice in one table")
    return table


def value(table: Any, target: Asserted, path: Path) -> str:
    """The text that belongs into a mark.

    Raises:
        Refused: `key-unknown`, or `value-unfit` (a table, a list, true, null, NaN, or a text that is
            more than plain short words, and so might be markup).
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
            what = f"there is no {name!r} in {where}{did_you_mean(name, known)}"
            raise Refused("key-unknown", what, file=path)
        here = inner
    return _text(here, target, path)


def _text(found: Any, target: Asserted, path: Path) -> str:
    def unfit(why: str) -> Refused:
        return Refused("value-unfit", why, file=path, key=target.key)

    if isinstance(found, Figure) or (isinstance(found, int) and not isinstance(found, bool)):
        number = float(found) if isinstance(found, str) or abs(found) < 10**300 else math.inf
        if not math.isfinite(number):
            raise unfit(f"is {str(found)[:40]}, and not a finite number")
        if target.form is not None:
            return format(number, target.form)
        if len(str(found)) > _LONGEST:
            raise unfit(f"is {str(found)[:40]!r}…, and longer than {_LONGEST} signs; give a form, as .3f")
        return str(found)
    if not isinstance(found, str):
        kinds = {dict: "a table", list: "a list", bool: "true or false", type(None): "null"}
        raise unfit(f"is {kinds.get(type(found), type(found).__name__)}, and not a number or a text")
    if target.form is not None:
        raise unfit(f"is a text, {found[:40]!r}, which has no form {target.form}")
    if not _WORDS.fullmatch(found) or len(found) > _LONGEST or _LINK.search(found):
        raise unfit(f"is a text that no mark can hold: {found[:40]!r}; {_ALLOWED}")
    return found
