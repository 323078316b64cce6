"""Writes docs/reasons.md from the register of reasons, `eval_core.reasons`; `--check` only compares."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from eval_core.reasons import GROUPS, Entry

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reasons.md"

_HEAD = """\
<!-- Made by tools/reasons.py from eval_core.reasons; change it there and run  nox -s schemas -- --write -->

# Reasons

Every error and every verdict carries one of these codes. Codes are stable; the words around them may change.
The exit code says what kind of answer it is: 1 no, 2 wrong usage or input, 3 could not be done; 0 is only counted.
"""


def generate() -> str:
    """The page: an index by heading, then every code below an anchor of its name."""
    lines = [_HEAD]
    for heading, group in GROUPS.items():
        links = ", ".join(f"[{code}](#{code})" for code in group)
        lines += _wrapped(f"- {heading}: {links}", "  ")
    for group in GROUPS.values():
        for code, entry in group.items():
            lines += _section(code, entry)
    return "\n".join(lines) + "\n"


def _section(code: str, entry: Entry) -> Iterator[str]:
    yield from ("", f"## {code}", "", f"{entry.title}. Exit {entry.exit}.", "", *_wrapped(entry.meaning))
    if entry.mend:
        yield from ("", *_wrapped(f"What to do: {entry.mend}"))


def _wrapped(text: str, indent: str = "") -> list[str]:
    """Lines of at most 116 characters, broken at spaces alone."""
    return textwrap.wrap(text, 116, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def main(arguments: list[str]) -> int:
    """Write the page, or with `--check` say whether it is up to date; 1 where it is not."""
    wanted = generate()
    if "--check" not in arguments:
        PAGE.write_text(wanted, encoding="utf-8")
        print(f"{sum(map(len, GROUPS.values()))} reasons written")
        return 0
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != wanted:
        print("docs/reasons.md is out of date; run  nox -s schemas -- --write", file=sys.stderr)
        return 1
    print("docs/reasons.md is up to date")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
