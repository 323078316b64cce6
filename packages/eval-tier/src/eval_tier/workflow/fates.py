"""What becomes of a failure that a script keeps in a variable: how its tests and exits use the value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node


class Unsure(str):
    """Why a failure may be lost, where it is not known whether it is."""

    __slots__ = ()


#: What may end a block early, or change what holds for the rest of it.
STEERS = re.compile(r"\b(?:exit|return|exec|eval|trap|set|source|break|continue)\b|(?:^|[;\n&|({]\s*)\.\s")

#: What a script has of the status of the statement before, and of the first part of a pipeline before.
STATUS = ("?", "PIPESTATUS[0]")

_MARKED = re.compile(r"([A-Za-z_]\w*)=[\"']?(\w+)[\"']?")
_COUNTED = re.compile(
    r"(?:let\s+)?\(?\(?\s*([A-Za-z_]\w*)\s*(?:\+\+|\+=\s*1)\s*\)?\)?|([A-Za-z_]\w*)=\$\(\(\s*\$?\{?\2\}?\s*\+\s*1\s*\)\)"
)


def text_of(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def kept(node: Node, status: str | None) -> tuple[str, str | None] | None:
    """The variable in which a statement notes a failure, and its value; None for a value that is not known but not 0.

    `status` is that of `STATUS` which is still the failure's.
    """
    if node.type not in ("variable_assignment", "compound_statement", "command"):
        return None
    text = text_of(node)
    if status is not None and (found := re.fullmatch(rf"([A-Za-z_]\w*)={used(status)}", text)):
        return found[1], None
    if found := _MARKED.fullmatch(text):
        return found[1], found[2]
    if found := _COUNTED.fullmatch(text):
        return found[1] or found[2], None
    return None


def mentions(text: str, name: str) -> bool:
    """Whether a text uses the variable `name`; `?` is the status of what went before."""
    if name in STATUS:
        return re.search(used(name), text) is not None
    return re.search(rf"\$\{{?{name}\b|\(\([^()]*\b{name}\b", text) is not None


def used(name: str) -> str:
    """The pattern of a use of a variable."""
    if name == "?":
        return r"\"?(?:\$\?|\$\{\?\})\"?"
    if name in STATUS:
        return rf"\"?\$\{{{re.escape(name)}\}}\"?"
    return rf"\"?(?:\${name}|\$\{{{name}(?::?-\w*)?\}})\"?"


def asked(text: str, name: str, value: str | None) -> bool | None:
    """Whether a condition is true when `name` has the value of a failure (None: some value but 0); None if unknown."""
    text = " ".join(text.split())
    if text.startswith("! "):
        inner = asked(text[2:], name, value)
        return None if inner is None else not inner
    variable = used(name)
    if value in ("true", "false") and re.fullmatch(variable, text):
        return value == "true"
    if found := re.fullmatch(r"\(\( ?(.*?) ?\)\)", text):
        bare = re.sub(r"^\$", "", found[1])
        if found := re.fullmatch(rf"{re.escape(name)}(?: ?(!=|>|==) ?0)?", bare):
            return _number(value, found[1] != "==")
        return None
    found = re.fullmatch(r"\[\[? (.*) \]\]?|test (.*)", text)
    if found is None:
        return None
    inside = found[1] or found[2]
    if found := re.fullmatch(rf"(-n|-z) {variable}", inside):
        return found[1] == "-n" if value != "" else found[1] == "-z"
    found = re.fullmatch(rf"{variable} (-ne|-gt|!=|-eq|=|==) [\"']?(\w+)[\"']?", inside)
    if found is None:
        return None
    sign, other = found[1], found[2]
    if other == "0":
        return _number(value, sign in ("-ne", "-gt", "!="))
    if value is None:
        return None
    if sign in ("!=", "=", "=="):
        return (value != other) == (sign == "!=")
    if not (value.isdigit() and other.isdigit()):
        return None
    left, right = int(value), int(other)
    return left > right if sign == "-gt" else (left == right) == (sign == "-eq")


def _number(value: str | None, differs: bool) -> bool | None:
    """The answer of a comparison with 0."""
    if value is None or (value.isdigit() and int(value)):
        return differs
    if value.isdigit():
        return not differs
    return None


def summed(text: str, name: str) -> bool:
    """Whether an exit code is a sum in which a failure that is kept in `name` counts."""
    found = re.fullmatch(r"\"?\$\(\((.*)\)\)\"?", text)
    return found is not None and re.fullmatch(
        rf"\s*(?:\$?\{{?\w+\}}?\s*[+|]\s*)*\$?\{{?{re.escape(name)}\}}?\s*(?:[+|]\s*\$?\{{?\w+\}}?\s*)*", found[1]
    ) is not None  # fmt: skip
