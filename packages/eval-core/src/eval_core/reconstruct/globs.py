"""Globs over paths with slashes, as regular expressions: `**` crosses folders, `*` and `?` do not."""

from __future__ import annotations

import re
from collections.abc import Iterable


def glob_fault(pattern: str) -> str | None:
    """Say why a glob could never match a file, or None.

    Paths are relative, without empty, `.` or `..` parts, so a glob that asks for one of these is a slip.
    """
    parts = pattern.split("/")
    if not pattern:
        return "the glob '' matches nothing; leave it out"
    if pattern.endswith("/"):
        return f"the glob {pattern!r} ends with a slash and matches no file; write {pattern + '**'!r}"
    if pattern.startswith("/"):
        return f"the glob {pattern!r} begins with a slash; globs are relative, write {pattern.lstrip('/')!r}"
    odd = next((part for part in parts if part in ("", ".", "..")), None)
    if odd is not None:
        return f"the glob {pattern!r} has the part {odd!r}, which no path has; write it without"
    return None


def translate(pattern: str) -> str:
    """The regular expression that matches, as a whole, the paths that `pattern` matches.

    `**` as a whole part stands for any number of folders, none included; as the last part, for everything below.
    `*` is any run of characters but `/`, the empty one included, `?` one character but `/`, and `[a-z]` or `[!a-z]`
    one of a set, never `/`. A `]` right after the opening (or after `!`) is a member; an unclosed `[` is a plain
    character. Letters differ by case, and a leading dot is a character like any other.
    """
    parts = pattern.split("/")
    out: list[str] = []
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        if part == "**":
            if last:
                out.append(".+")
            elif place == 0 or parts[place - 1] != "**":  # `**/**` says no more than `**`
                out.append("(?:[^/]+/)*")
        else:
            out.append(_part(part) + ("" if last else "/"))
    return f"(?s:{''.join(out)})"


def _part(part: str) -> str:
    """The expression for one part, which holds no slash."""
    out: list[str] = []
    place = 0
    while place < len(part):
        character = part[place]
        place += 1
        if character == "*":
            if not out or out[-1] != "[^/]*":
                out.append("[^/]*")
        elif character == "?":
            out.append("[^/]")
        elif character == "[" and (end := part.find("]", place + 1 + part.startswith("!", place))) > 0:
            out.append(_set(part[place:end]))
            place = end + 1
        else:
            out.append(re.escape(character))
    return "".join(out)


def _set(body: str) -> str:
    """The expression for the inside of `[...]`."""
    negated = body.startswith("!")
    body = body[negated:]
    members: list[str] = []
    place = 0
    while place < len(body):
        low = body[place]
        if body[place + 1 : place + 2] == "-" and place + 2 < len(body):
            high = body[place + 2]
            if low <= high:  # `z-a` is an empty range
                members.append(f"{re.escape(low)}-{re.escape(high)}")
            place += 3
        else:
            members.append(re.escape(low))
            place += 1
    if not members:
        return "[^/]" if negated else "(?!)"
    # A range such as `+-9` reaches over the slash; the slash stays out all the same.
    return f"(?!/)[{'^' if negated else ''}{''.join(members)}]"


class Globs:
    """Include and exclude globs: a path is taken if any include and no exclude matches it."""

    def __init__(self, include: Iterable[str], exclude: Iterable[str] = ()) -> None:
        self._include = _any(include)
        self._exclude = _any(exclude)

    def includes(self, path: str) -> bool:
        """Whether any include matches."""
        return self._include.fullmatch(path) is not None

    def excludes(self, path: str) -> bool:
        """Whether any exclude matches."""
        return self._exclude.fullmatch(path) is not None


def _any(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)) or "(?!)")
