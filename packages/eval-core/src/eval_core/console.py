"""What a person sees: aligned tables and sparing colour, which never carries meaning alone."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import click


def paint(text: str, colour: str) -> str:
    """Colour for a terminal. NO_COLOR is honoured here; a pipe gets none, since click.echo strips it there."""
    return text if os.environ.get("NO_COLOR") else click.style(text, fg=colour, bold=True)


def width(text: str) -> int:
    """How many terminal columns a text takes."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in click.unstyle(text)
    )


def safe(text: str) -> str:
    """A text in which control and bidirectional characters are shown, never sent to the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


_SECRET = re.compile(
    r"SECRET|TOKEN|PASSW|PASSPHRASE|CREDENTIAL|PRIVATE|(?:^|_)(?:AUTH|KEY|APIKEY|PAT)(?:$|_)|_PWD$",
    re.IGNORECASE,
)


def redacted(text: str) -> str:
    """A text of other people's code without the values of environment variables whose names say that they are secret,
    each replaced by its name. What is shorter than six characters is no secret, and stands in too many texts."""
    held = {value: name for name, value in os.environ.items() if len(value) >= 6 and _SECRET.search(name)}
    for value in sorted(held, key=len, reverse=True):
        text = text.replace(value, f"[{held[value]}]")
    return text


def some(names: Iterable[str], shown: int = 5) -> str:
    """The first few of them, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - shown:,} more" if len(listed) > shown else ""
    return ", ".join(listed[:shown]) + more


def utf8(text: str) -> str:
    """A text that UTF-8 can hold: the name of a file may have bytes that are none, which are then shown."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def as_json(value: Any) -> str:
    """JSON, indented by one, in which no character acts on a terminal: those that are not printed are escapes.

    A lone surrogate, which stands for a byte of a file's name and is no character, becomes the text of its escape.

    Raises:
        ValueError: a number is not finite.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1)
    return "\n".join(
        line if line.isprintable() else "".join(map(_escaped, line)) for line in text.split("\n")
    )


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    written = json.dumps(character)[1:-1]
    return "\\" + written if "\ud800" <= character <= "\udfff" else written


def clip(text: str, columns: int) -> str:
    """Cut a text to so many columns, with an ellipsis; control characters are shown, never sent to the terminal."""
    shown = safe(text)
    if width(shown) <= columns:
        return shown
    out = ""
    for c in shown:
        if width(out + c) > columns - 1:
            break
        out += c
    return out + "…"


def table(rows: Sequence[Sequence[str]], right: Sequence[int] = (), indent: str = " ") -> str:
    """Align rows in columns two spaces apart; the columns named in `right` align right."""
    if not rows:
        return ""
    columns = max(map(len, rows))
    widths = [max((width(row[i]) for row in rows if i < len(row)), default=0) for i in range(columns)]
    lines = []
    for row in rows:
        cells = []
        for i, cell in enumerate(row):
            gap = " " * (widths[i] - width(cell))
            cells.append(gap + cell if i in right else cell + gap)
        lines.append((indent + "  ".join(cells)).rstrip())
    return "\n".join(lines)


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 query`, `2 queries`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
