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


#: The key under which a table's line is kept: no text, so that no file has it.
_LINE = object()


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
        """A safe loader that keeps the line of each table, and tells of keys given twice."""

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            keys = Counter(str(key.value) for key, _ in node.value)
            for key, times in keys.items():
                if times > 1:
                    fault(node.start_mark.line + 1, f"key {key!r} is given twice")
            return {**super().construct_mapping(node, deep), _LINE: node.start_mark.line + 1}

    try:
        value = yaml.load(utf8(read_bytes(path, "gold set"), path), Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = f"is not YAML: {getattr(error, 'problem', None) or error}"
        raise Misuse("file-malformed", what, file=path, line=mark.line + 1 if mark else None) from error
    except (RecursionError, ValueError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Misuse("file-malformed", f"is not YAML that can be read: {why}", file=path) from error
    beside = [str(key) for key in value if key not in ("queries", _LINE)] if isinstance(value, dict) else []
    entries = value.get("queries") if isinstance(value, dict) else value
    if not isinstance(entries, list):
        what = "is no gold set; expected  queries: [{id, kind, query, expected_sources, tags}, …]"
        raise Misuse("file-malformed", what, file=path)
    rows: list[Row] = []
    line = 1
    for one in entries:
        if not isinstance(one, dict):
            fault(line, f"{shown(one)} is no entry; expected {{id, kind, query, expected_sources, tags}}")
            continue
        line = one[_LINE]
        tags = one.get("tags") or []
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            fault(line, f"tags {shown(tags)} should be a list of texts")
        rows.append((line, {str(key): inner for key, inner in one.items() if key is not _LINE}))
    return rows, beside
