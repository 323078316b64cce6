"""`eval-core import gold`: YAML gold sets of `{id, kind, query, expected_sources, tags}`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from eval_core.errors import CouldNot, Misuse
from eval_core.imports.importer import CONSEQUENCE, Reading
from eval_core.imports.records import collect
from eval_core.imports.tables import LONGEST, Row, read_bytes, shown, utf8
from eval_core.scoring.readers.source import Listing

SUMMARY = "A YAML gold set: {id, kind, query, expected_sources, tags}."

OPTIONS: Sequence[click.Option] = []

_FIELDS = {"query": "query", "id": "id", "expected": "expected_sources"}

#: A kind is the category that results are told by, and what an arm may filter from.
_CARRIED = {"category": "kind", "kind": "kind", "tags": "tags"}


def read(path: Path) -> Reading:
    """Read a gold set: a list, or a table with the list `queries`. Any of the expected sources suffices.

    Raises:
        CouldNot: PyYAML is not installed.
        Misuse, Faults: it is not YAML of that form; each fault at its line.
    """
    fault = Listing(path, CONSEQUENCE)
    rows, beside = _rows(path, fault)
    seen = {name for _, row in rows for name in row}
    carried = {key: name for key, name in _CARRIED.items() if name in seen}
    questions, dropped = collect(path, rows, _FIELDS, carried, fault)
    fields = _FIELDS | ({"category": "kind"} if "category" in carried else {})
    return Reading(
        questions, fields, {f"{key} (beside the queries)": 1 for key in beside} | dropped, any_of=True
    )


def _rows(path: Path, fault: Listing) -> tuple[list[Row], list[str]]:
    """The entries with their lines, and the keys beside `queries`."""
    try:
        import yaml
    except ImportError as error:
        what, mend = "YAML is read by PyYAML, which is not installed", "pip install pyyaml"
        raise CouldNot("extra-missing", what, file=path, mend=mend) from error

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # PyYAML is published without types
        """A safe loader that tells of keys given twice, and where a value cannot be read."""

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            keys = Counter(str(key.value) for key, _ in node.value)
            for key, times in keys.items():
                if times > 1:
                    fault(node.start_mark.line + 1, f"key {key!r} is given twice")
            found: dict[Any, Any] = super().construct_mapping(node, deep)
            return found

        def construct_object(self, node: Any, deep: bool = False) -> Any:
            if not isinstance(node, yaml.ScalarNode):
                return super().construct_object(node, deep)
            if len(node.value) > LONGEST:
                what = f"a text of more than {LONGEST >> 20} MB"
                raise yaml.constructor.ConstructorError(None, None, what, node.start_mark)
            try:
                value = super().construct_object(node, deep)
                str(value)  # an integer may have more digits than can be written
            except (ArithmeticError, AttributeError, LookupError, ValueError) as error:
                what = (
                    f"{shown(node.value)} cannot be read as {node.tag.rpartition(':')[2]}; write it in quotes"
                )
                raise yaml.constructor.ConstructorError(None, None, what, node.start_mark) from error
            return value

    text = utf8(read_bytes(path, "gold set"), path)
    line, value = 1, None
    try:
        loader = Loader(text)
        try:
            root = loader.get_single_node()
            if root is not None:
                value = loader.construct_document(root)
        finally:
            line = loader.line + 1
    except yaml.reader.ReaderError as error:
        what = f"is not YAML: character {error.character:#06x} is not allowed"
        line = text.count("\n", 0, error.position) + 1
        raise Misuse("file-malformed", what, file=path, line=line) from error
    except yaml.YAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else line
        raise Misuse("file-malformed", f"is not YAML: {error.problem}", file=path, line=line) from error
    except RecursionError as error:
        what = "is not YAML that can be read: nested too deeply"
        raise Misuse("file-malformed", what, file=path, line=line) from error
    beside = [str(key) for key in value if key != "queries"] if isinstance(value, dict) else []
    entries = value.get("queries") if isinstance(value, dict) else value
    if not isinstance(entries, list):
        what = "is no gold set; expected  queries: [{id, kind, query, expected_sources, tags}, …]"
        raise Misuse("file-malformed", what, file=path)
    held = root
    if isinstance(value, dict):
        held = next(inner for key, inner in reversed(root.value) if key.value == "queries")
    rows: list[Row] = []
    for node, one in zip(held.value, entries, strict=True):
        line = node.start_mark.line + 1
        if not isinstance(one, dict):
            fault(line, f"{shown(one)} is no entry; expected {{id, kind, query, expected_sources, tags}}")
            continue
        tags = one.get("tags") or []
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            fault(line, f"tags {shown(tags)} should be a list of texts")
        rows.append((line, {str(key): inner for key, inner in one.items()}))
    return rows, beside
