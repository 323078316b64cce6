"""What the faulty lines of a file may have named, so that one line is not told again by all that needs it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path

from eval_core.sets.corpus import encode_id

#: A text or a number of JSON, also of a line that is broken elsewhere; longer ones are no ids.
_VALUE = re.compile(r'"((?:[^"\\]|\\.){1,500})"|(-?[0-9][0-9.]*)')


def named_in(path: Path, lines: Collection[int]) -> set[str]:
    """Every short text and number in these lines (from 1) of a file of JSON lines, as ids and in their encoded form."""
    if not lines:
        return set()
    found: set[str] = set()
    with path.open("rb") as stream:
        for number, raw in enumerate(stream, 1):
            if number in lines:
                for text, digits in _VALUE.findall(raw.decode("utf-8", "replace")):
                    name = _unescaped(text) if text else digits
                    found |= {name, encode_id(name)}
    return found


def _unescaped(text: str) -> str:
    try:
        name = str(json.loads(f'"{text}"'))
        name.encode()
    except ValueError:  # an escape that is none, a lone surrogate
        return text
    return name
