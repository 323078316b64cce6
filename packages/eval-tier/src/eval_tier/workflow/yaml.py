"""One YAML file as nodes with lines: no value is converted, so `on` stays a text, and a hostile file ends in faults."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from eval_tier.workflow.models import Defect, Place

MAX_BYTES = 1_000_000
MAX_NODES = 20_000
MAX_TEXT = 2_000_000
MAX_DEPTH = 100

_BRACKET = re.compile(r"[\[\]{}]")
_COMPACT = re.compile(rf"(?:[-?:][ \t]+){{{MAX_DEPTH}}}")
_TAG = "tag:yaml.org,2002:"
_TEXT, _SEQUENCE, _MAPPING, _NULL, _MERGE = (_TAG + n for n in ("str", "seq", "map", "null", "merge"))
_SPECIAL = {"": _NULL, "~": _NULL, "null": _NULL, "Null": _NULL, "NULL": _NULL, "<<": _MERGE}
_KNOWN = frozenset(
    _TAG + name
    for name in (
        *("map", "seq", "str", "null", "bool", "int", "float", "timestamp", "merge", "value"),
        *("binary", "set", "omap", "pairs"),
    )
)


@dataclass(frozen=True, slots=True)
class Document:
    """The mapping at the top, acyclic and small once unrolled; None where nothing of the file was read."""

    root: MappingNode | None
    faults: tuple[Defect, ...] = ()


def has_c_loader() -> bool:
    """Whether PyYAML was built with libyaml; without it the same files are read, about ten times slower."""
    return hasattr(yaml, "CSafeLoader")


class _Loader(yaml.CSafeLoader if has_c_loader() else yaml.SafeLoader):  # type: ignore[misc]
    """PyYAML's composer, which asks of a plain value only whether it is null: what else it is, each reader knows."""

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:
        """Nothing resolves by the path to a node."""

    def ascend_resolver(self) -> None:
        """Nothing resolves by the path to a node."""

    def resolve(self, kind: type[Node], value: Any, implicit: Any) -> str:
        if kind is not ScalarNode:
            return _SEQUENCE if kind is SequenceNode else _MAPPING
        if implicit[0] and value in _SPECIAL:
            return _SPECIAL[value]
        return _TEXT


def compose(file: str, raw: bytes) -> Document:
    """Read one document whose top is a mapping.

    A duplicate key is a fault that leaves the file readable (its last value is read): the forge refuses such a file,
    so whoever relies on it must look at the faults. Every other fault is `whole`.
    """

    def refused(what: str, line: int | None = None) -> Document:
        return Document(None, (Defect(Place(file, line), what, whole=True),))

    if len(raw) > MAX_BYTES:
        return refused(f"the file has {len(raw):,} bytes; at most {MAX_BYTES:,} are read")
    try:
        source = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return refused("the file is not UTF-8", raw.count(b"\n", 0, error.start) + 1)
    if _COMPACT.search(source) or _brackets(source) > MAX_DEPTH:
        return refused(f"the file nests more than {MAX_DEPTH} levels")
    try:
        root = yaml.compose(source, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        if error.context == "expected a single document in the stream":
            return refused("the file has several documents; one is read", mark.line + 1 if mark else None)
        return refused(f"not YAML: {error.problem or error.context}", mark.line + 1 if mark else None)
    except (yaml.YAMLError, ValueError):
        return refused("not YAML that can be read")
    except RecursionError:
        return refused(f"the file nests more than {MAX_DEPTH} levels")
    if root is None:
        return refused("the file is empty")
    if not isinstance(root, MappingNode):
        return refused("the top of the file is not a mapping", line(root))
    faults: list[Defect] = []
    for what, node, whole in _faults(root):
        fault = Defect(Place(file, line(node)), what, whole=whole)
        if fault.whole:
            return Document(None, (fault,))
        faults.append(fault)
    return Document(root, tuple(faults))


def _brackets(source: str) -> int:
    """The deepest nesting of brackets, those inside texts counted too: an upper bound of flow nesting."""
    if source.count("[") + source.count("{") <= MAX_DEPTH:
        return 0
    depth = deepest = 0
    for match in _BRACKET.finditer(source):
        depth = depth + 1 if match[0] in "[{" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest


def _faults(root: Node) -> Iterator[tuple[str, Node, bool]]:
    """What is wrong below a node, found in one walk that unrolls aliases within the budget."""
    count = size = 0
    path: set[int] = set()
    stack: list[Node | int] = [root]  # a number is the id of a node that ends there
    while stack:
        node = stack.pop()
        if isinstance(node, int):
            path.discard(node)
            continue
        count += 1
        if node.tag not in _KNOWN:
            yield f"the tag {node.tag!r} is unknown", node, True
            return
        kind, value = type(node), node.value
        if kind is ScalarNode:
            size += len(value)
            if size > MAX_TEXT:
                yield f"more than {MAX_TEXT:,} characters once aliases are unrolled", node, True
                return
            continue
        name = id(node)
        if name in path:
            yield "an alias contains itself", node, True
            return
        if count + len(value) > MAX_NODES:
            yield f"more than {MAX_NODES:,} nodes once aliases are unrolled", node, True
            return
        if len(path) >= MAX_DEPTH:
            yield f"the file nests more than {MAX_DEPTH} levels", node, True
            return
        path.add(name)
        stack.append(name)
        if kind is SequenceNode:
            stack += value
            continue
        seen: set[str] = set()
        for key, held in value:
            if type(key) is ScalarNode:
                text = key.value
                if text in seen and text != "<<":
                    yield f"duplicate key {text!r}", key, False
                seen.add(text)
                count += 1
                size += len(text)
            else:
                stack.append(key)
            stack.append(held)


def line(node: Node) -> int:
    """The line, from 1, on which a node begins."""
    return int(node.start_mark.line) + 1


def entries(node: Node | None) -> dict[str, tuple[Node, Node]]:
    """The key and value nodes of a mapping by key, merge keys (`<<`) applied; empty for anything else."""
    if not isinstance(node, MappingNode):
        return {}
    own: dict[str, tuple[Node, Node]] = {}
    merged: dict[str, tuple[Node, Node]] = {}
    for key, value in node.value:
        if not isinstance(key, ScalarNode):
            continue
        if key.tag == _MERGE:
            for source in value.value if isinstance(value, SequenceNode) else (value,):
                merged = {**entries(source), **merged}
        else:
            own[key.value] = (key, value)
    return {**merged, **own} if merged else own


def fields(node: Node | None) -> dict[str, Node]:
    """The values of a mapping by key, merge keys (`<<`) applied; empty for anything else."""
    if not isinstance(node, MappingNode):
        return {}
    held = {key.value: value for key, value in node.value if isinstance(key, ScalarNode)}
    return held if "<<" not in held else {key: value for key, (_, value) in entries(node).items()}


def get(node: Node | None, key: str) -> Node | None:
    """The value of one key; None where it is absent or the node is no mapping."""
    return fields(node).get(key)


def text(node: Node | None) -> str | None:
    """The text of a scalar as written (`null` and an empty value are ""); None for anything else."""
    if not isinstance(node, ScalarNode):
        return None
    return "" if node.tag == _NULL else str(node.value)


def texts(node: Node | None) -> tuple[str, ...] | None:
    """A text or a list of texts; None for anything else."""
    if isinstance(node, ScalarNode):
        return (str(node.value),) if text(node) else ()
    if isinstance(node, SequenceNode) and all(isinstance(item, ScalarNode) for item in node.value):
        return tuple(str(item.value) for item in node.value)
    return None


def script_line(node: Node) -> int:
    """The line on which the content of a text begins: the next one for the block forms `|` and `>`."""
    return line(node) + (getattr(node, "style", None) in ("|", ">"))
