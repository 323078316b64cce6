"""GitHub's expression language: read into a tree, and evaluated over values of which some are not known."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from eval_tier.workflow.models import Truth

#: GitHub refuses expressions that are longer or deeper than these.
LENGTH, DEPTH = 21_000, 50
STATUS = frozenset({"success", "always", "cancelled", "failure"})
#: More combinations of possible values than these are not tried.
COMBINATIONS = 64

_TOKEN = re.compile(
    r"\s*(?:(?P<number>-?(?:0x[0-9a-fA-F]+|0o[0-7]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+)(?![\w.]))"
    r"|(?P<text>'(?:[^']|'')*')|(?P<name>[A-Za-z_][A-Za-z0-9_-]*)|(?P<sign>&&|\|\||==|!=|<=|>=|[!<>().,\[\]*]))"
)
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|0o[0-7]+|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")

#: A node is a tuple of its kind and its parts: ("value", x), ("path", root, parts), ("call", name, nodes),
#: ("not", node), ("and" | "or", nodes), ("compare", sign, left, right). A part of a path is a text, "*", or a node.
Node = tuple[Any, ...]


class NotRead(Exception):
    """A text is not an expression that GitHub would take; the message says why."""


class Whole:
    """An object of a context, such as `github.event.pull_request`: true, and equal to nothing else."""


WHOLE = Whole()


@dataclass(frozen=True, slots=True)
class Value:
    """What an expression comes to.

    Attributes:
        values: all that it can be; empty where they cannot be listed.
        kind: "known" for one value, "varies" from one pull request to the next, or "unknown".
        truth: what it comes to as a condition.
        why: the reason, as the end of "it depends on …".
        same: a name for the value where it cannot be listed: two values of one name are equal.
        unlike: names of the values that it never equals.
        prefix, suffix: what a text that cannot be listed begins and ends with.
        digits: between the prefix and the suffix stand digits alone.
    """

    values: tuple[Any, ...] = ()
    kind: str = "known"
    truth: Truth = "unknown"
    why: str = ""
    same: str = ""
    unlike: tuple[str, ...] = ()
    prefix: str = ""
    suffix: str = ""
    digits: bool = False


def known(value: Any) -> Value:
    """A value of which everything is known."""
    return Value((value,), "known", "true" if truthy(value) else "false")


def among(values: Sequence[Any], kind: str, why: str) -> Value:
    """One of `values`, by pull request (`varies`) or by what cannot be read (`unknown`)."""
    found = {truthy(value) for value in values}
    truth: Truth = "varies" if kind == "varies" else "unknown"
    if len(found) == 1:
        truth = "true" if found.pop() else "false"
    return Value(tuple(values), kind, truth, why)


def some(kind: str, why: str, truth: Truth | None = None, **more: Any) -> Value:
    """A value that cannot be listed; `truth` where it is known all the same to be set, or not to be."""
    return Value((), kind, truth or ("varies" if kind == "varies" else "unknown"), why, **more)


def both(left: Value, right: Value) -> Value:
    """`left && right`: where some pull requests surely fail one side, they fail the whole."""
    if left.truth == "false":
        return left
    if left.truth == "true":
        return right
    if right.truth == "false":
        return some("unknown", right.why, "false")
    if right.truth == "true":
        return some(left.truth, left.why)
    first = right if left.truth == "unknown" and right.truth == "varies" else left
    return some(first.truth, first.why)


def either(left: Value, right: Value) -> Value:
    """`left || right`: what cannot be read may let all of them pass."""
    if left.truth == "true":
        return left
    if left.truth == "false":
        return right
    if right.truth == "true":
        return some("unknown", right.why, "true")
    if right.truth == "false":
        return some(left.truth, left.why)
    first = right if left.truth == "varies" and right.truth == "unknown" else left
    return some(first.truth, first.why)


def opposite(value: Value) -> Value:
    """`!value`."""
    if value.truth in ("true", "false"):
        return known(value.truth == "false")
    return among((False, True), value.truth, value.why)


# ---- reading -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def parse(text: str) -> Node:
    """The tree of an expression. Raises NotRead."""
    if len(text) > LENGTH:
        raise NotRead(f"the condition has more than {LENGTH:,} characters")
    return _Parser(text).whole()


def status_called(node: Node) -> bool:
    """Whether a status function is called anywhere, so that `success()` is not implied."""
    if node[0] == "call" and node[1] in STATUS:
        return True
    inner = (part for each in node[1:] for part in (each if isinstance(each, list) else (each,)))
    return any(status_called(part) for part in inner if isinstance(part, tuple))


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        self.at, self.depth, place, end = 0, 0, 0, len(text.rstrip())
        while place < end:
            found = _TOKEN.match(text, place)
            if found is None:
                raise NotRead(f"the condition cannot be read from {text[place : place + 20]!r} on")
            self.tokens.append((str(found.lastgroup), found.group(str(found.lastgroup))))
            place = found.end()

    def whole(self) -> Node:
        node = self.chain("or")
        if self.at < len(self.tokens):
            raise NotRead(f"the condition cannot be read from {self.tokens[self.at][1][:20]!r} on")
        return node

    def take(self, *signs: str) -> str:
        if (
            self.at < len(self.tokens)
            and self.tokens[self.at][0] == "sign"
            and self.tokens[self.at][1] in signs
        ):
            self.at += 1
            return self.tokens[self.at - 1][1]
        return ""

    def need(self, sign: str) -> None:
        if not self.take(sign):
            raise NotRead(f"the condition lacks a {sign!r}")

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > DEPTH:
            raise NotRead(f"the condition is nested more than {DEPTH} deep")

    def chain(self, kind: str) -> Node:
        self.deeper()
        below = partial(self.chain, "and") if kind == "or" else partial(self.compared, ("==", "!="))
        nodes = [below()]
        while self.take("||" if kind == "or" else "&&"):
            nodes.append(below())
        self.depth -= 1
        return nodes[0] if len(nodes) == 1 else (kind, nodes)

    def compared(self, signs: tuple[str, ...]) -> Node:
        below = partial(self.compared, ("<", "<=", ">", ">=")) if "==" in signs else self.negated
        node, before = below(), self.depth
        while sign := self.take(*signs):
            self.deeper()
            node = ("compare", sign, node, below())
        self.depth = before
        return node

    def negated(self) -> Node:
        if self.take("!"):
            self.deeper()
            node = ("not", self.negated())
            self.depth -= 1
            return node
        return self.postfix()

    def postfix(self) -> Node:
        node = self.primary()
        parts: list[Any] = []
        while sign := self.take(".", "["):
            if self.take("*"):
                parts.append("*")
            elif sign == ".":
                parts.append(self.name().lower())
            else:
                inner = self.chain("or")
                parts.append(inner[1].lower() if inner[0] == "value" and isinstance(inner[1], str) else inner)
            if sign == "[":
                self.need("]")
        if node[0] == "path":
            return ("path", node[1], parts)
        return ("path", node, parts) if parts else node

    def name(self) -> str:
        if self.at >= len(self.tokens) or self.tokens[self.at][0] != "name":
            raise NotRead("the condition lacks a name")
        self.at += 1
        return self.tokens[self.at - 1][1]

    def primary(self) -> Node:
        if self.take("("):
            node = self.chain("or")
            self.need(")")
            # Kept apart from a context, whose path must not go on behind the bracket.
            return node if node[0] != "path" else ("and", [node])
        if self.at >= len(self.tokens):
            raise NotRead("the condition ends too early")
        kind, text = self.tokens[self.at]
        if kind == "number":
            self.at += 1
            return ("value", number(text))
        if kind == "text":
            self.at += 1
            return ("value", text[1:-1].replace("''", "'"))
        name = self.name().lower()
        if self.take("("):
            nodes: list[Node] = []
            if not self.take(")"):
                nodes.append(self.chain("or"))
                while self.take(","):
                    nodes.append(self.chain("or"))
                self.need(")")
            return ("call", name, nodes)
        words = {"true": True, "false": False, "null": None, "nan": math.nan, "infinity": math.inf}
        return ("value", words[name]) if name in words else ("path", name, [])


# ---- values --------------------------------------------------------------------------------------------------------


def truthy(value: Any) -> bool:
    """Whether GitHub counts a value as true: not for false, 0, NaN, null and the empty text."""
    return isinstance(value, Whole | list | dict) or (bool(value) and value == value)


def number(value: Any) -> float:
    """A value as a number, NaN where it is none."""
    if value is None or value == "":
        return 0.0
    if isinstance(value, bool | int | float):
        return float(value)
    text = value.strip() if isinstance(value, str) else "x"
    if not text:
        return 0.0
    if not _NUMBER.fullmatch(text.removeprefix("-") if text.startswith("-0x") else text):
        return math.nan
    return float(int(text, 0)) if text[:2] in ("0x", "0o") or text.startswith("-0x") else float(text)


def written(value: Any) -> str:
    """A value as a text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(int(value)) if math.isfinite(value) and value == int(value) else str(value)
    if isinstance(value, str):
        return value
    raise NotRead("the condition takes an object or list for a text")


def _compare(sign: str, left: Any, right: Any) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        a: Any = left.upper()
        b: Any = right.upper()
    elif isinstance(left, list | dict | Whole) and isinstance(right, list | dict | Whole):
        raise NotRead("the condition compares an object or list with another")
    else:
        a, b = number(left), number(right)
    return bool({"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[sign])


def _contains(where: Any, what: Any) -> bool:
    if isinstance(where, list):
        return any(_compare("==", item, what) for item in where if not isinstance(item, list | dict))
    return written(what).lower() in written(where).lower()


def _format(pattern: Any, *values: Any) -> str:
    size = 0

    def put(found: re.Match[str]) -> str:
        nonlocal size
        if found[0] in ("{{", "}}"):
            return found[0][0]
        if not found[1] or int(found[1]) >= len(values):
            raise NotRead("format() asks for a value that is not given")
        size += len(written(values[int(found[1])]))
        if size > LENGTH:
            raise NotRead("format() makes too long a text")
        return written(values[int(found[1])])

    return re.sub(r"\{\{|\}\}|\{(\d{0,4})\}", put, written(pattern))


def _from_json(text: Any) -> Any:
    try:
        return json.loads(written(text))
    except (ValueError, RecursionError):
        raise NotRead("fromJSON() is given what is not JSON") from None


def _to_json(value: Any) -> str:
    if isinstance(value, Whole | list | dict):
        raise NotRead("toJSON() is given an object or list")
    return json.dumps(value)


def _join(items: Any, between: Any = ",") -> str:
    if not isinstance(items, list):
        return written(items)
    if len(items) * len(written(between)) > LENGTH:
        raise NotRead("join() makes too long a text")
    return written(between).join(map(written, items))


_FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "contains": (_contains, 2, 2),
    "startswith": (lambda text, start: written(text).lower().startswith(written(start).lower()), 2, 2),
    "endswith": (lambda text, end: written(text).lower().endswith(written(end).lower()), 2, 2),
    "format": (_format, 1, 100),
    "fromjson": (_from_json, 1, 1),
    "tojson": (_to_json, 1, 1),
    "join": (_join, 1, 2),
}


def _spread(function: Callable[..., Any], inputs: Sequence[Value]) -> Value:
    """What a function gives over every combination of what its inputs can be."""
    doubtful = sorted(
        (v for v in inputs if v.kind != "known"), key=lambda v: v.kind
    )  # "unknown" before "varies"
    kind, why = (doubtful[0].kind, doubtful[0].why) if doubtful else ("known", "")
    size = math.prod(len(value.values) for value in inputs)
    if not 0 < size <= COMBINATIONS:
        return some(kind if doubtful else "unknown", why or "a value that can be too much")
    results = [function(*values) for values in itertools.product(*(value.values for value in inputs))]
    if not doubtful or (all(isinstance(r, bool) for r in results) and len(set(results)) == 1):
        return known(results[0])
    return among(results, kind, why)


def _possible(value: Value, text: str) -> bool:
    """Whether a text of which beginning and end are known can be `text`."""
    inner = text[len(value.prefix) : len(text) - len(value.suffix)]
    fits = text.startswith(value.prefix) and text.endswith(value.suffix)
    return fits and len(text) >= len(value.prefix + value.suffix) and (not value.digits or inner.isdecimal())


def _certain(name: str, value: Value, text: str) -> bool | None:
    """The answer of a comparison or function over a text of which beginning and end are known; None for no answer."""
    text = text.lower()
    if name in ("==", "!="):
        empty = text == "" and value.truth == "true"
        return name == "!=" if empty or not _possible(value, text) else None
    if name == "startswith":
        return True if value.prefix.startswith(text) else None if text.startswith(value.prefix) else False
    if name == "endswith":
        return True if value.suffix.endswith(text) else None if text.endswith(value.suffix) else False
    if text and (text in value.prefix or text in value.suffix):
        return True
    return (
        False if value.digits and re.sub(r"\d+", "1", text) not in f"{value.prefix}1{value.suffix}" else None
    )


def _applied(name: str, function: Callable[..., Any], inputs: Sequence[Value]) -> Value:
    first = inputs[0] if inputs else known(None)
    if len(inputs) == 2:
        second = inputs[1]
        if name in ("==", "!="):
            if first.same and first.same == second.same:
                return known(name == "==")
            if first.same in second.unlike or second.same in first.unlike:
                return known(name == "!=")
            first, second = (second, first) if first.values else (first, second)
            if first.same in ("repository", "fork") and second.values == (None,):
                return known(name == "!=")  # a text with a slash is no number, as null is
        if not first.values and second.values and all(isinstance(v, str) for v in second.values):
            told = (
                {_certain(name, first, v) for v in second.values} if name in (*_TEXTS, "==", "!=") else {None}
            )
            if len(told) == 1 and (answer := told.pop()) is not None:
                return known(answer)
    return _spread(function, inputs)


_TEXTS = ("contains", "startswith", "endswith")


def evaluate(
    node: Node, look: Callable[[str, Sequence[str]], Value], status: Callable[[str], Value]
) -> Value:
    """What an expression comes to.

    Args:
        look: the value at the path of a context; "*" stands for all of its items.
        status: the value of a status function.

    Raises NotRead for a function that GitHub does not have, a wrong number of inputs, or a type that does not fit.
    """
    match node:
        case ("value", value):
            return known(value)
        case ("not", inner):
            return opposite(evaluate(inner, look, status))
        case ("and" | "or" as kind, nodes):
            result = evaluate(nodes[0], look, status)
            for each in nodes[1:]:
                result = (both if kind == "and" else either)(result, evaluate(each, look, status))
            return result
        case ("compare", sign, left, right):
            return _applied(
                sign, partial(_compare, sign), [evaluate(each, look, status) for each in (left, right)]
            )
        case ("call", name, nodes):
            return _called(name, [evaluate(each, look, status) for each in nodes], status)
        case ("path", str() as root, parts):
            if all(isinstance(part, str) for part in parts):
                return look(root, parts)
            return some("unknown", f"a value of `{root}` that is named by another")
        case ("path", inner, parts):
            return _item(evaluate(inner, look, status), parts)
    raise NotRead("the condition has a part that is not understood")


def _called(name: str, inputs: Sequence[Value], status: Callable[[str], Value]) -> Value:
    if name in STATUS:
        return status(name)
    if name == "hashfiles":
        return some("varies", "the files that hashFiles() finds")
    if name not in _FUNCTIONS:
        raise NotRead(f"the condition calls {name}(), which is not a function of GitHub's")
    function, low, high = _FUNCTIONS[name]
    if not low <= len(inputs) <= high:
        raise NotRead(f"the condition calls {name}() with {len(inputs)} values")
    return _applied(name, function, inputs)


def _item(value: Value, parts: Iterable[Any]) -> Value:
    if value.kind != "known" or len(value.values) != 1:
        return some("varies" if value.kind == "varies" else "unknown", value.why)
    here = value.values[0]
    for part in parts:
        if (
            isinstance(part, tuple)
            and part[0] == "value"
            and isinstance(part[1], float)
            and isinstance(here, list)
        ):
            here = here[int(part[1])] if 0 <= part[1] < len(here) else None
        elif isinstance(part, str) and part != "*" and isinstance(here, dict):
            here = next((item for key, item in here.items() if key.lower() == part), None)
        else:
            return some("unknown", "an item of a value that is not followed")
    return known(here)
