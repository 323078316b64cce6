"""Retrieval-comparison manifests: queries, and for each the files of a repository that answer it."""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import Field

from eval_core.errors import UNSET, Fault, Faults, Misuse
from eval_core.files import read_text
from eval_core.imports.importer import Question, Reading
from eval_core.models import Closed
from eval_core.sets import CorpusFile, Dataset, Definition, Query, encode_id
from eval_core.sets.corpus import decode_json

if TYPE_CHECKING:
    import click

SUMMARY = "A manifest of a retrieval comparison: {id, queries: [{id, query, intent, ground_truth}]}."

OPTIONS: Sequence[click.Option] = []

#: The folders that a manifest may name without the `.agents/` that they lie below.
SURFACES = (
    "learnings",
    "patterns",
    "findings",
    "research",
    "compiled",
    "plans",
    "brainstorm",
    "council",
    "design",
    "wiki",
)

#: What a legacy array, which has no id, is called.
LEGACY_ID = "legacy-search-eval"

#: The forms that are read, as a message shows them.
FORMS = (
    '{"id": …, "queries": [{"id": …, "query": …, "ground_truth": [PATH, …]}]}'
    '  or  [{"query": …, "relevant": [PATH, …]}]'
)


class ManifestQuery(Closed):
    """One query. `ground_truth` holds cleaned paths, relative to the search root, in the file's order."""

    id: str = Field(min_length=1)
    query: str = Field(min_length=1)
    intent: str = ""
    ground_truth: tuple[str, ...] = Field(min_length=1)


class Manifest(Closed):
    """A manifest as it is used, whichever form it was written in."""

    id: str = Field(min_length=1)
    description: str = ""
    queries: tuple[ManifestQuery, ...]
    form: Literal["search-eval", "legacy"] = "search-eval"
    skipped: int = Field(
        default=0, ge=0, description="Entries of a legacy array without a relevant path, left out."
    )
    unread: dict[str, int] = Field(
        default={},
        description="Keys that mean nothing here, such as queries[].notes, and how often they stand.",
    )


def clean(path: str) -> str:
    """The path as it is looked up: without `.` and empty parts, below `.agents/` where it begins with a surface.

    Cleaning what was cleaned changes nothing.

    Raises:
        ValueError: it is empty or absolute, or holds a `..` part, a backslash or a zero character; with the mend.
    """
    if "\\" in path:
        raise ValueError("holds a backslash; write slashes between the parts")
    if "\0" in path:
        raise ValueError("holds a zero character, which no path has")
    if path.startswith("/") or re.match(r"[A-Za-z]:/", path):
        raise ValueError("is absolute; write it relative to the search root")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ValueError("holds '..'; write it relative to the search root, without going up")
    if not "".join(parts).strip():
        raise ValueError("is empty; name a file")
    return "/".join([".agents", *parts] if parts[0] in SURFACES else parts)


def read_manifest(path: Path) -> Manifest:
    """Read a manifest of either form: `{id, description?, queries: [{id, query, intent?, ground_truth}]}`, or the
    legacy array `[{query, relevant, category?}]`, whose queries are q1, q2, … by their place in the array.

    Keys of other names are passed over and counted in `unread`, since published manifests carry notes of their own.
    Where a required key is missing, the fault names the one that looks like a slip of it. An entry of a legacy array
    with an empty `relevant` is left out and counted; a query of the newer form without ground truth is a fault.

    Raises:
        Faults: everything that is wrong with its content, each with file, line and place (`queries[3].query`).
        Misuse: absent, not UTF-8, not JSON, or of neither form.
    """
    return parse_manifest(read_text(path, "manifest"), path)


def parse_manifest(text: str, path: Path) -> Manifest:
    """Read the text of a manifest; see `read_manifest`. `path` is for the messages."""
    value = _decoded(text, path)
    reading = _Reading()
    ours = isinstance(value, dict) and ("queries" in value or ("id" in value and "cases" not in value))
    if not ours and not isinstance(value, list):
        raise Misuse("manifest-form-unknown", _stranger(value), file=path, mend=f"The known forms:  {FORMS}")
    manifest = _manifest(value, reading)
    if manifest is None:
        lines = lines_of(text)
        raise Faults(
            Fault(
                one.what,
                code="manifest-invalid",
                file=path,
                line=lines.get(one.place, 1),
                key=one.key or None,
                value=one.value,
            )
            for one in reading.faults
        )
    return manifest


def _decoded(text: str, path: Path) -> Any:
    try:
        return decode_json(text)
    except json.JSONDecodeError as error:
        what = f"the manifest is not JSON: {error.msg} at column {error.colno}"
        raise Misuse("file-malformed", what, file=path, line=error.lineno) from error
    except ValueError as error:
        raise Misuse("file-malformed", f"the manifest is unsound: {error}", file=path) from error


def _stranger(value: object) -> str:
    if isinstance(value, dict) and "cases" in value:
        return (
            "is a retrieval-bench file (cases with expected names): "
            "they name documents beside it, not paths of a repository"
        )
    if isinstance(value, dict):
        keys = ", ".join(_shown(key) for key in list(value)[:6]) or "none"
        return f"is not a manifest of a retrieval comparison (its keys: {keys})"
    return f"is not a manifest of a retrieval comparison, but {_shown(value)}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


class _Wrong(NamedTuple):
    """One thing wrong: the place that its line is found by, the key that it is about, what stands there."""

    place: str
    key: str
    value: object
    what: str


class _Reading:
    """Takes values out of decoded JSON and gathers what is wrong with them, each at its place."""

    def __init__(self) -> None:
        self.faults: list[_Wrong] = []
        self.unread: Counter[str] = Counter()

    def fault(self, place: str, key: str, what: str) -> None:
        self.faults.append(_Wrong(place, key, UNSET, what))

    def wrong(self, place: str, value: object, what: str) -> None:
        self.faults.append(_Wrong(place, place, value, what))

    def table(self, value: object, place: str, known: Iterable[str]) -> dict[str, Any] | None:
        """The value as a table; keys of it that are not known are counted."""
        if not isinstance(value, dict):
            self.wrong(place, value, "should be a table")
            return None
        for key in value:
            if key not in known:
                self.unread[_inside(re.sub(r"\[\d+\]", "[]", place), key)] += 1
        return value

    def rows(self, table: Mapping[str, Any], key: str, place: str, known: Iterable[str]) -> list[Any] | None:
        """A required list."""
        if self._missing(table, key, place, known):
            return None
        if not isinstance(table[key], list):
            self.wrong(_inside(place, key), table[key], "should be a list")
            return None
        rows: list[Any] = table[key]
        return rows

    def text(
        self, table: Mapping[str, Any], key: str, place: str, known: Iterable[str], *, required: bool = True
    ) -> str:
        """A text; one that is not required may be null. Where it is wrong, a stand-in, and the fault is kept."""
        value = table.get(key)
        if not required and value is None:
            return ""
        if self._missing(table, key, place, known):
            return ""
        if not isinstance(value, str):
            self.wrong(_inside(place, key), value, "should be a text")
            return ""
        if required and not value.strip():
            self.wrong(_inside(place, key), value, "is empty")
        return value

    def _missing(self, table: Mapping[str, Any], key: str, place: str, known: Iterable[str]) -> bool:
        if key in table:
            return False
        close = difflib.get_close_matches(key, [name for name in table if name not in known], n=1)
        hint = f"; is {_shown(close[0])} a slip of it?" if close else ""
        self.fault(place, _inside(place, key), f"it is missing{hint}")
        return True

    def paths(self, rows: Iterable[object], place: str) -> tuple[str, ...]:
        """The cleaned paths of a list."""
        found: dict[str, str] = {}
        for number, written in enumerate(rows):
            here = f"{place}[{number}]"
            if not isinstance(written, str):
                self.wrong(here, written, "should be a path")
                continue
            try:
                path = clean(written)
            except ValueError as error:
                self.wrong(here, written, str(error))
                continue
            first = found.setdefault(path, here)
            if first != here:
                self.wrong(here, written, f"is judged again (first at {first})")
        return tuple(found)


_TOP = ("id", "description", "queries")
_QUERY = ("id", "query", "intent", "ground_truth")
_ENTRY = ("query", "relevant", "category")


def _manifest(value: Any, reading: _Reading) -> Manifest | None:
    """The manifest of a table or of a legacy array; None where `reading` holds faults."""
    legacy = isinstance(value, list)
    name, description, rows = LEGACY_ID, "", value
    known: Sequence[str] = _ENTRY
    within, judged, intention = "", "relevant", "category"
    if not legacy:
        reading.table(value, "", _TOP)
        name = reading.text(value, "id", "", _TOP)
        description = reading.text(value, "description", "", _TOP, required=False)
        rows = reading.rows(value, "queries", "", _TOP) or ()
        within, known, judged, intention = "queries", _QUERY, "ground_truth", "intent"
    queries: list[ManifestQuery] = []
    first: dict[str, str] = {}
    skipped = 0
    for number, row in enumerate(rows):
        place = f"{within}[{number}]"
        table = reading.table(row, place, known)
        if table is None:
            continue
        query = f"q{number + 1}" if legacy else reading.text(table, "id", place, known)
        text = reading.text(table, "query", place, known)
        intent = reading.text(table, intention, place, known, required=False)
        paths = reading.rows(table, judged, place, known)
        here = f"{place}.{judged}"
        truth = reading.paths(paths or (), here)
        if paths == [] and not legacy:
            reading.fault(here, here, "is empty; name the files that answer it, or drop the query")
        skipped += paths == []
        if query and first.setdefault(query, place) != place:
            reading.wrong(f"{place}.id", query, f"is the id of {first[query]} too")
        if truth and not reading.faults:
            queries.append(ManifestQuery(id=query, query=text, intent=intent, ground_truth=truth))
    if reading.faults:
        return None
    return Manifest(
        id=name,
        description=description,
        queries=tuple(queries),
        form="legacy" if legacy else "search-eval",
        skipped=skipped,
        unread=dict(reading.unread),
    )


def read(path: Path) -> Reading:
    """Read a manifest for `eval-core import`: any of its files suffices, as in a comparison.

    Raises:
        Faults, Misuse: as `read_manifest`.
    """
    text = read_text(path, "manifest")
    manifest = parse_manifest(text, path)
    lines = lines_of(text)
    legacy = manifest.form == "legacy"
    questions = []
    for number, query in enumerate(manifest.queries):
        place = f"[{int(query.id[1:]) - 1}]" if legacy else f"queries[{number}]"
        expected = dict.fromkeys(query.ground_truth, 1)
        metadata = {"category": query.intent} if query.intent else {}
        questions.append(Question(query.id, query.query, expected, lines[place], metadata))
    judged, intention = ("relevant", "category") if legacy else ("ground_truth", "intent")
    fields = {"query": "query", "expected": judged, "category": intention}
    without = {"queries without a relevant path": manifest.skipped} if manifest.skipped else {}
    described = {"description": 1} if manifest.description else {}
    return Reading(questions, fields, manifest.unread | described | without, any_of=True, paths=True)


def dataset_of(
    manifest: Manifest, corpus: CorpusFile, digest: str, documents: Iterable[str], headline: str
) -> Dataset:
    """The manifest as a set over a corpus.

    What it judges need not be there, which a set on disk could not hold: such a file is a miss.

    Args:
        digest: of the corpus.
        documents: the ids of the corpus, percent-encoded paths.
    """
    ids = frozenset(documents)
    return Dataset(
        folder=corpus.path.parent,
        name=manifest.id,
        definition=Definition.model_construct(name=manifest.id, headline=headline),
        split="test",
        queries=tuple(Query(query.id, query.query) for query in manifest.queries),
        judgements={one.id: {encode_id(path): 1 for path in one.ground_truth} for one in manifest.queries},
        corpus=corpus,
        documents=len(ids),
        corpus_digest=digest,
        ids=ids,
        attributes={},
        timeline=None,
        side_digests=dict.fromkeys(("timeline", "links", "concepts"), "none"),
        unscorable=frozenset(),
    )


def _inside(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s"\[\]{}:,]+')


@dataclass(slots=True)
class _Frame:
    """An open list or table, and the place that is being read in it."""

    place: str
    is_list: bool
    number: int = 0
    key: str = ""

    def here(self) -> str:
        return f"{self.place}[{self.number}]" if self.is_list else _inside(self.place, self.key)


def lines_of(text: str) -> dict[str, int]:
    """The line of every value of a sound JSON text, by its place. Read only once there is a fault to point at."""
    found: dict[str, int] = {}
    frames: list[_Frame] = []
    naming = False
    line, reached = 1, 0
    for token in _TOKEN.finditer(text):
        line += text.count("\n", reached, token.start())
        reached = token.start()
        mark = token[0]
        if mark in ("}", "]"):
            frames.pop()
            naming = False
        elif mark == ",":
            frames[-1].number += 1
            naming = not frames[-1].is_list
        elif mark == ":":
            naming = False
        elif naming:
            frames[-1].key = json.loads(mark)
        else:
            place = frames[-1].here() if frames else ""
            found[place] = line
            if mark in ("{", "["):
                frames.append(_Frame(place, is_list=mark == "["))
                naming = mark == "{"
    return found
