"""What a person sees: aligned tables and sparing colour, which never carries meaning alone."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence

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


def clip(text: str, columns: int) -> str:
    """Cut a text to so many columns, with an ellipsis; control characters are shown, never sent to the terminal."""
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    if width(safe) <= columns:
        return safe
    out = ""
    for c in safe:
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
