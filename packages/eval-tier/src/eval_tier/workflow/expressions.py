"""GitHub's expression language over values that may be open: a condition comes to true, false, varies or unknown."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from eval_tier.workflow.models import Truth

MAX_DEPTH = 50
MAX_LENGTH = 20_000


class Unreadable(Exception):
    """An expression that is not of the language, or too deep; its text says what."""


@dataclass(frozen=True, slots=True)
class Open:
    """A value that is not known. `truth`: whether it is truthy all the same, as `unknown || true` is."""

    kind: Literal["varies", "unknown"]
    why: str
    truth: bool | None = None


@dataclass(frozen=True, slots=True)
class Symbol:
    """A value of unknown text that equals itself alone, such as the name of this repository."""

    name: str


#: What a context such as `("github", "event_name")` comes to; names are in lower case.
Lookup = Callable[[tuple[str, ...]], Any]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>-?(?:0x[0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?))|(?P<text>'(?:[^']|'')*')"
    r"|(?P<name>[A-Za-z_][\w-]*)|(?P<sign>&&|\|\||==|!=|<=|>=|[!<>()\[\].,*]))"
)


def tokens(source: str) -> list[tuple[str, str]]:
    if len(source) > MAX_LENGTH:
        raise Unreadable(f"it is longer than {MAX_LENGTH:,} characters")
    found: list[tuple[str, str]] = []
    at = 0
    source = source.rstrip()
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise Unreadable(f"it is no expression at {source[at : at + 20]!r}")
        found.append((str(match.lastgroup), match[match.lastgroup or 0]))
        at = match.end()
    return found


def truth_of(value: Any) -> Truth:
    if isinstance(value, Open):
        return value.kind if value.truth is None else "true" if value.truth else "false"
    if isinstance(value, float | int) and not isinstance(value, bool):
        return "false" if value == 0 or math.isnan(value) else "true"
    return "false" if value is None or value is False or value == "" else "true"


def evaluate(source: str, lookup: Lookup, status: Callable[[str], Any]) -> Any:
    """The value of an expression.

    Args:
        lookup: the value of a context by its lower-case parts.
        status: the value of `success`, `failure`, `always` and `cancelled`.

    Raises:
        Unreadable: the text is no expression, or too deep.
    """
    parser = _Parser(tokens(source), lookup, status)
    value = parser.either(0)
    if parser.at != len(parser.tokens):
        raise Unreadable(f"it goes on at {parser.tokens[parser.at][1]!r}")
    return value


class _Parser:
    def __init__(self, found: list[tuple[str, str]], lookup: Lookup, status: Callable[[str], Any]) -> None:
        self.tokens, self.lookup, self.status, self.at = found, lookup, status, 0

    def sign(self, *wanted: str) -> str | None:
        if (
            self.at < len(self.tokens)
            and self.tokens[self.at][0] == "sign"
            and self.tokens[self.at][1] in wanted
        ):
            self.at += 1
            return self.tokens[self.at - 1][1]
        return None

    def expect(self, wanted: str) -> None:
        if not self.sign(wanted):
            raise Unreadable(f"{wanted!r} is missing")

    def either(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise Unreadable(f"it nests more than {MAX_DEPTH} levels")
        value = self.both(depth)
        while self.sign("||"):
            value = _or(value, self.both(depth))
        return value

    def both(self, depth: int) -> Any:
        value = self.equal(depth)
        while self.sign("&&"):
            value = _and(value, self.equal(depth))
        return value

    def equal(self, depth: int) -> Any:
        value = self.order(depth)
        while sign := self.sign("==", "!="):
            value = compare(sign, value, self.order(depth))
        return value

    def order(self, depth: int) -> Any:
        value = self.single(depth)
        while sign := self.sign("<=", ">=", "<", ">"):
            value = compare(sign, value, self.single(depth))
        return value

    def single(self, depth: int) -> Any:
        negations = 0
        while self.sign("!"):
            negations += 1
        value = self.atom(depth)
        for _ in range(negations):
            value = negate(value)
        return value

    def atom(self, depth: int) -> Any:
        if self.sign("("):
            value = self.either(depth + 1)
            self.expect(")")
            return self.members(value, depth)
        if self.at >= len(self.tokens) or self.tokens[self.at][0] == "sign":
            raise Unreadable("an operand is missing")
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "text":
            return text[1:-1].replace("''", "'")
        if kind == "number":
            return float(int(text, 16)) if "x" in text.lower() else float(text)
        name = text.lower()
        if self.sign("("):
            given: list[Any] = []
            while not self.sign(")"):
                if given:
                    self.expect(",")
                given.append(self.either(depth + 1))
            if name in ("success", "failure", "always", "cancelled"):
                return self.status(name)
            return self.members(_call(name, given), depth)
        if name in ("true", "false", "null", "nan", "infinity"):
            return {"true": True, "false": False, "null": None, "nan": math.nan, "infinity": math.inf}[name]
        return self.context(name, depth)

    def context(self, name: str, depth: int) -> Any:
        parts, known = [name], True
        while sign := self.sign(".", "["):
            part = self.part(sign, depth)
            known = known and isinstance(part, str)
            parts.append(str(part).lower())
        return self.lookup(tuple(parts)) if known else Open("unknown", f"on the value of {name}")

    def members(self, value: Any, depth: int) -> Any:
        while sign := self.sign(".", "["):
            part = self.part(sign, depth)
            if isinstance(value, Open):
                continue
            if isinstance(value, dict) and isinstance(part, str):
                value = value.get(part)
            elif isinstance(value, list) and isinstance(part, float) and 0 <= part < len(value):
                value = value[int(part)]
            else:
                value = Open("unknown", "on a member of a computed value")
        return value

    def part(self, sign: str, depth: int) -> Any:
        if sign == "[":
            part = "*" if self.sign("*") else self.either(depth + 1)
            self.expect("]")
            return part
        if self.sign("*"):
            return "*"
        if self.at >= len(self.tokens) or self.tokens[self.at][0] != "name":
            raise Unreadable("a name is missing after '.'")
        self.at += 1
        return self.tokens[self.at - 1][1]


def _and(left: Any, right: Any) -> Any:
    a, b = truth_of(left), truth_of(right)
    if not isinstance(left, Open):
        return right if a == "true" else left
    if b == "false" or a == "false":
        return Open(left.kind, left.why, False)
    if a == "true":
        return right if isinstance(right, Open) else Open(left.kind, left.why, b == "true")
    return _weaker(left, right) if isinstance(right, Open) and b != "true" else Open(left.kind, left.why)


def _or(left: Any, right: Any) -> Any:
    a, b = truth_of(left), truth_of(right)
    if not isinstance(left, Open):
        return left if a == "true" else right
    if a == "true" or b == "true":
        return Open(left.kind, left.why, True)
    if a == "false":
        return right if isinstance(right, Open) else Open(left.kind, left.why, False)
    return _weaker(left, right) if isinstance(right, Open) and b != "false" else Open(left.kind, left.why)


def _weaker(left: Open, right: Open) -> Open:
    return right if right.kind == "unknown" and left.kind == "varies" else Open(left.kind, left.why)


def negate(value: Any) -> Any:
    if isinstance(value, Open):
        return Open(value.kind, value.why, None if value.truth is None else not value.truth)
    return truth_of(value) == "false"


def _number(value: Any) -> float:
    if value is None or value == "":
        return 0.0
    if isinstance(value, str):
        try:
            return float(int(value, 16)) if value.lower().startswith("0x") else float(value)
        except ValueError:
            return math.nan
    return float(value) if isinstance(value, bool | int | float) else math.nan


def compare(sign: str, left: Any, right: Any) -> Any:
    """Compare as GitHub does: texts without regard to case, values of different kinds as numbers."""
    for value in (left, right):
        if isinstance(value, Open):
            other = right if value is left else left
            return Open(_weaker(value, other).kind if isinstance(other, Open) else value.kind, value.why)
    if isinstance(left, Symbol) or isinstance(right, Symbol):
        if sign in ("==", "!=") and isinstance(left, Symbol) and isinstance(right, Symbol):
            return (left == right) == (sign == "==")
        name = left.name if isinstance(left, Symbol) else right.name
        if None in (left, right) or "" in (left, right):
            return sign == "!="
        return Open("unknown", f"on the name of {name}")
    if isinstance(left, str) and isinstance(right, str):
        a: Any = left.lower()
        b: Any = right.lower()
    elif isinstance(left, dict | list) or isinstance(right, dict | list):
        return Open("unknown", "on a comparison of lists")
    else:
        a, b = _number(left), _number(right)
    return {"==": a == b, "!=": a != b, "<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b}[sign]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _call(name: str, given: list[Any]) -> Any:
    if name == "hashfiles":
        return Open("varies", "on the files of the pull request")
    opened = [value for value in given if isinstance(value, Open)]
    if opened:
        return next(
            (Open("unknown", v.why) for v in opened if v.kind == "unknown"), Open("varies", opened[0].why)
        )
    if any(isinstance(value, Symbol) for value in given):
        return Open("unknown", f"on {name}() of a name that is not known")
    try:
        return _FUNCTIONS[name](*given)
    except KeyError:
        raise Unreadable(f"the function {name!r} is not known") from None
    except (TypeError, ValueError, IndexError, RecursionError):
        return Open("unknown", f"on what {name}() gives")


def _contains(where: Any, what: Any) -> bool:
    if isinstance(where, list):
        return any(compare("==", item, what) is True for item in where)
    return _text(what).lower() in _text(where).lower()


def _format(pattern: str, *given: Any) -> str:
    if len(pattern) * sum(len(_text(value)) + 1 for value in given) > 100 * MAX_LENGTH:
        raise ValueError("the text would be too long")
    return re.sub(r"\{\{|\}\}|\{(\d+)\}", lambda m: _text(given[int(m[1])]) if m[1] else m[0][0], pattern)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "contains": _contains,
    "startswith": lambda where, what: _text(where).lower().startswith(_text(what).lower()),
    "endswith": lambda where, what: _text(where).lower().endswith(_text(what).lower()),
    "format": _format,
    "fromjson": lambda text: json.loads(text, parse_int=float),
    "tojson": lambda value: json.dumps(value, indent=2),
    "join": lambda items, by=",": (
        _text(by).join(map(_text, items)) if isinstance(items, list) else _text(items)
    ),
}
