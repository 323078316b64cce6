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
from eval_core.imports.tables import Row, read_bytes, shown, utf8
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
        """A safe loader that tells of keys given twice, and of values that are none at their line."""

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            keys = Counter(str(key.value) for key, _ in node.value)
            for key, times in keys.items():
                if times > 1:
                    fault(node.start_mark.line + 1, f"key {key!r} is given twice")
            made: dict[Any, Any] = super().construct_mapping(node, deep)
            return made

        def construct_object(self, node: Any, deep: bool = False) -> Any:
            try:
                return super().construct_object(node, deep)
            except (ValueError, OverflowError) as error:
                if not isinstance(node, yaml.ScalarNode):
                    raise
                kind = "a date" if node.tag.endswith("timestamp") else "a number"
                what = f"{shown(node.value)} reads as {kind} and is none; write it in quotes"
                raise yaml.constructor.ConstructorError(None, None, what, node.start_mark) from error

    try:
        loader = Loader(utf8(read_bytes(path, "gold set"), path))
        node = loader.get_single_node()
        value = None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = f"is not YAML: {getattr(error, 'problem', None) or error}"
        raise Misuse("file-malformed", what, file=path, line=mark.line + 1 if mark else None) from error
    except (RecursionError, ValueError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Misuse("file-malformed", f"is not YAML that can be read: {why}", file=path) from error
    beside = [str(key) for key in value if key != "queries"] if isinstance(value, dict) else []
    entries = value.get("queries") if isinstance(value, dict) else value
    if not isinstance(entries, list):
        what = "is no gold set; expected  queries: [{id, kind, query, expected_sources, tags}, …]"
        raise Misuse("file-malformed", what, file=path)
    inner = (
        node if isinstance(value, list) else next(held for key, held in node.value if key.value == "queries")
    )
    rows: list[Row] = []
    for place, one in zip(inner.value, entries, strict=True):
        line = place.start_mark.line + 1
        if not isinstance(one, dict):
            fault(line, f"{shown(one)} is no entry; expected {{id, kind, query, expected_sources, tags}}")
            continue
        tags = one.get("tags") or []
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            fault(line, f"tags {shown(tags)} should be a list of texts")
        rows.append((line, {str(key): held for key, held in one.items()}))
    return rows, beside
