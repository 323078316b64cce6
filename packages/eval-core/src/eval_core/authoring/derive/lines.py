"""Go and Ruby, whose definitions begin a line of their own and whose doc comments are the lines right above."""

from __future__ import annotations

import re
from collections.abc import Sequence

from eval_core.authoring.derive.symbols import Symbol

_GO = re.compile(
    r"func\s+(?:\(\s*(?:\w+\s+)?\*?(?P<receiver>\w+)(?:\[[^\]]*\])?\s*\)\s*)?(?P<function>\w+)\s*[\[(]"
    r"|type\s+(?P<type>\w+)[\s\[]"
)
_GO_DIRECTIVE = re.compile(r"//(?:go:|nolint|lint:|line |export |\s*\+build)")


def read_go(text: str) -> list[Symbol]:
    """Functions, methods and types of Go source. A doc comment is one that begins with the name, as Go has it, or with
    an article and the name; public is what begins with a capital."""
    found: list[Symbol] = []
    lines = text.replace("\r\n", "\n").split("\n")
    block = False
    for place, line in enumerate(lines):
        if block or line.startswith("/*"):
            block = "*/" not in line
            continue
        match = _GO.match(line)
        if match is None:
            continue
        name, receiver = match["function"] or match["type"], match["receiver"]
        doc = _above(lines, place, "//", _GO_DIRECTIVE)
        if not re.match(rf"(?:(?:An?|The)\s+)?{re.escape(name)}\b", doc):
            doc = ""
        public = name[:1].isupper() and (receiver is None or receiver[:1].isupper())
        found.append(Symbol(name, f"{receiver}.{name}" if receiver else name, place + 1, doc, public))
    return found


_RUBY = re.compile(
    r"(?P<indent>\s*)(?:(?P<private>private|protected|private_class_method|public)\b\s*)?"
    r"(?:(?P<scope>class|module)\s+(?P<type>[A-Z]\w*(?:::[A-Z]\w*)*)|def\s+(?P<self>self\.)?(?P<method>\w+[?!=]?))?"
)
_RUBY_NOISE = re.compile(r"\s*#\s*(?:rubocop:|frozen_string_literal|encoding|typed:|-\*-|!|:nodoc:)")


def read_ruby(text: str) -> list[Symbol]:
    """Classes, modules and methods of Ruby source, with the comment lines right above each.

    Scopes are read from the indentation, as Ruby is written; methods after a bare `private` are not public.
    """
    found: list[Symbol] = []
    lines = text.replace("\r\n", "\n").split("\n")
    scopes: list[tuple[int, str]] = []
    hidden: set[int] = set()  # depths at which a bare `private` has been met
    skipping = False
    for place, line in enumerate(lines):
        if line.startswith("=begin") or skipping:
            skipping = not line.startswith("=end")
            continue
        match = _RUBY.match(line)
        if match is None or not line.strip() or line.lstrip().startswith("#"):
            continue
        indent = len(match["indent"].expandtabs())
        named = match["type"] or match["method"]
        if named is None and match["private"] is None:
            continue
        while scopes and scopes[-1][0] >= indent:
            hidden.discard(len(scopes))
            scopes.pop()
        if named is None:
            if not line[match.end() :].strip():
                (hidden.discard if match["private"] == "public" else hidden.add)(len(scopes))
            continue
        outer = "::".join(name for _, name in scopes)
        doc = _above(lines, place, "#", _RUBY_NOISE)
        if match["type"]:
            name = match["type"].rpartition("::")[2]
            found.append(
                Symbol(name, f"{outer}::{match['type']}" if outer else match["type"], place + 1, doc)
            )
            scopes.append((indent, match["type"]))
            continue
        public = (
            not named.startswith("_") and match["private"] in (None, "public") and len(scopes) not in hidden
        )
        mark = "." if match["self"] else "#"
        found.append(Symbol(named, f"{outer}{mark}{named}" if outer else named, place + 1, doc, public))
    return found


def _above(lines: Sequence[str], place: int, mark: str, noise: re.Pattern[str]) -> str:
    """The text of the comment lines right above a line; beyond a blank line they are about another thing."""
    taken: list[str] = []
    while place > 0 and lines[place - 1].lstrip().startswith(mark):
        place -= 1
        if not noise.match(lines[place]):
            taken.append(lines[place].lstrip()[len(mark) :].strip())
    return "\n".join(reversed(taken))
