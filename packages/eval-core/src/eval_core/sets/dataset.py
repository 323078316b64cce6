"""A judged set in the BEIR layout: documents, queries and judgements, checked as one before anything is measured."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval_core.backend import Document
from eval_core.errors import CouldNot, Fault, Faults, Misuse, did_you_mean
from eval_core.files import BOM, BOM_FAULT, digest_file, unreadable
from eval_core.scoring import GRADE_RULE, grade_of
from eval_core.sets.copies import FEWEST, copies
from eval_core.sets.corpus import (
    CorpusFile,
    corpus_digest,
    document_digest,
    id_fault,
    lacking,
    read_json_lines,
    scopes_of,
)
from eval_core.sets.definition import Definition, read_definition
from eval_core.sets.faulty import named_in
from eval_core.sets.nearest import Nearest
from eval_core.sets.timeline import Timeline, read_timeline, time_fault
from eval_core.sets.words import blank, words

#: Query metadata that changes what is asked or how it is counted. All other metadata is a note.
MEANINGFUL = ("category", "source", "kind", "scope", "exclude", "time", "must_pass", "unanswerable")

CONSEQUENCE = "nothing was measured"

#: Queries that are named where they are counted.
NAMED = 5

#: What a moving source may bring about: a judgement or an exclusion of a document that is not there.
ABSENT = "document-unknown"


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked. `metadata` holds all of the file's; `meaning` only what counts."""

    id: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def meaning(self, keys: Iterable[str] = ()) -> dict[str, Any]:
        """The metadata with a meaning, with the further `keys` that an arm filters from."""
        return {key: self.metadata[key] for key in (*MEANINGFUL, *keys) if key in self.metadata}

    @property
    def scope(self) -> str | None:
        """The only scope that is searched; None: the whole corpus."""
        scope: str | None = self.metadata.get("scope")
        return scope

    @property
    def exclude(self) -> tuple[str, ...]:
        """Ids that are dropped from the answer before it is cut, such as the query's own document."""
        return tuple(self.metadata.get("exclude", ()))


@dataclass(frozen=True, slots=True)
class Dataset:
    """A loaded set: sound, and with the digests that the task key needs.

    `judgements` maps a query id to {document id: grade}. `attributes` holds, of documents that have them, the
    metadata keys asked for at loading and `scopes`. `empty` counts the documents without a text. `unscorable` are the
    queries without a positive judgement.
    """

    folder: Path
    name: str
    definition: Definition
    split: str
    queries: tuple[Query, ...]
    judgements: Mapping[str, Mapping[str, int]]
    corpus: CorpusFile
    documents: int
    corpus_digest: str
    ids: frozenset[str]
    attributes: Mapping[str, Mapping[str, Any]]
    timeline: Timeline | None
    side_digests: Mapping[str, str]
    unscorable: frozenset[str]
    empty: int = 0

    def visible(self, document: str, query: Query, filter_: Mapping[str, str] | None) -> bool:
        """Whether the document is inside the query's scope, filter and time."""
        attributes = self.attributes.get(document, {})
        if query.scope not in scopes_of(attributes):
            return False
        if filter_ and not Document(document, "", "", attributes).matches(filter_):
            return False
        return self.timeline is None or self.timeline.visible(document, query.metadata.get("time"))

    def blanks(self) -> list[str]:
        """Statements about what has no words: empty documents, and queries to score that no word is in. One text that
        most of them have is stated too, since it may be what a converter wrote in place of each.
        """
        from eval_core.console import clip, count

        told = []
        if self.empty:
            told.append(f"{self.empty:,} of {count(self.documents, 'document')} without a text")
        texts = {q.id: " ".join(words(q.text)) for q in self.queries if q.id not in self.unscorable}
        wordless = [name for name, text in texts.items() if not text]
        if wordless:
            named = ", ".join(wordless[:NAMED]) + ", …" * (len(wordless) > NAMED)
            told.append(f"{count(len(wordless), 'query', 'queries')} without a word: {named}")
        for text, equal in Counter(filter(None, texts.values())).most_common(1):
            if equal >= FEWEST and equal > len(texts) / 2:
                told.append(
                    f"{equal:,} of {count(len(texts), 'query', 'queries')} ask the same: {clip(text, 60)!r}"
                )
        return told


class _Collector:
    """Gathers the faults of one file after another."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def at(self, path: Path) -> Callable[[int, str], None]:
        return lambda line, message: self.add(path, line, message)

    def add(self, path: Path, line: int, what: str, code: str = "input-invalid") -> None:
        self.faults.append(Fault(what, code=code, file=path, line=line))

    def named(self, path: Path) -> set[str]:
        """What the faulty lines of a file of JSON lines may have named, and is therefore not missed elsewhere."""
        about = str(path)
        return named_in(path, {fault.line for fault in self.faults if fault.file == about and fault.line})


def load(
    folder: Path,
    *,
    split: str | None = None,
    corpus: Path | None = None,
    keys: Iterable[str] = (),
    begins: bool = False,
) -> Dataset:
    """Load and check a dataset folder.

    Args:
        folder: the BEIR layout, with or without `dataset.toml`.
        split: the judgements to take, `qrels/SPLIT.tsv`; the only one, or `test`, where it is not given.
        corpus: the reconstructed `corpus.jsonl`; the folder's own where it is not given.
        keys: document metadata to remember, for arms that filter.
        begins: the set may have no query and no judgement yet.

    Raises:
        Faults: everything wrong with all of its files, with file and line.
        Misuse: the folder or a file is missing.
    """
    if not os.path.isdir(folder):
        beside = folder.parent
        near = did_you_mean(
            str(folder), [str(beside / p.name) for p in beside.iterdir()] if os.path.isdir(beside) else ()
        )
        raise Misuse("dataset-missing", f"there is no such dataset folder{near}", file=folder)
    definition = read_definition(folder)
    plain = definition is None
    definition = definition or Definition(name=_plain_name(folder))
    collector = _Collector()
    corpus_path = corpus or folder / "corpus.jsonl"
    for path, what in ((corpus_path, "corpus"), (folder / "queries.jsonl", "queries")):
        if not os.path.isfile(path) and not (begins and what == "queries"):
            what = f"there is no such file; a dataset needs its {what}"
            raise Misuse("dataset-missing", what, file=path)
    documents = _read_corpus(corpus_path, tuple(keys), collector)
    doubtful = _Doubtful(documents=collector.named(corpus_path))
    timeline = None
    if (folder / "timeline.jsonl").is_file():
        timeline = read_timeline(
            folder / "timeline.jsonl",
            documents.lines.keys() | doubtful.documents,
            collector.at(folder / "timeline.jsonl"),
        )
    split = split or ("test" if begins and not splits_of(folder) else _only_split(folder))
    qrels_path = folder / "qrels" / f"{split}.tsv"
    judgements: dict[str, dict[str, int]] = {}
    places: dict[tuple[str, str], int] = {}
    if not begins or splits_of(folder):
        judgements, places, doubtful.judged = _read_qrels(qrels_path, collector)
    queries: list[Query] = []
    query_lines: dict[str, int] = {}
    if not begins or (folder / "queries.jsonl").is_file():
        queries, query_lines = _read_queries(folder / "queries.jsonl", timeline, collector)
    doubtful.queries = collector.named(folder / "queries.jsonl")
    elsewhere = _judged_elsewhere(folder, split)
    queries = [query for query in queries if query.id in judgements or query.id not in elsewhere]
    dataset = Dataset(
        folder=folder,
        name=definition.name,
        definition=definition,
        split=split,
        queries=tuple(queries),
        judgements=judgements,
        corpus=CorpusFile(corpus_path, definition.kind),
        documents=len(documents.lines),
        empty=documents.empty,
        corpus_digest=corpus_digest(documents.digests.items()),
        ids=frozenset(documents.lines),
        attributes=documents.attributes,
        timeline=timeline,
        side_digests={name: _side(folder / file) for name, file in _SIDE_FILES.items()},
        unscorable=frozenset(
            q.id for q in queries if not any(g > 0 for g in judgements.get(q.id, {}).values())
        ),
    )
    _check_judgements(dataset, qrels_path, places, doubtful, collector)
    _check_queries(dataset, query_lines, plain, doubtful, collector)
    for copy in copies(dataset, dataset.corpus.numbered(lambda line, message: None), documents.longest):
        collector.add(corpus_path, copy.line, copy.sentence(), "queries-in-corpus")
    if not queries and not collector.faults and not begins:
        collector.at(folder / "queries.jsonl")(1, f"holds no query of split {split!r}")
    if collector.faults:
        faults = Faults(collector.faults, consequence=CONSEQUENCE)
        if _moves(definition) and all(fault.code == ABSENT for fault in collector.faults):
            # The set is as it was; it is the source that moved on, and nothing in the set's files is wrong.
            raise CouldNot("judged-document-absent", faults.details.what)
        raise faults
    return dataset


def _moves(definition: Definition) -> bool:
    sources = definition.corpus.source if definition.corpus else ()
    return any(
        source.type == "dir" or (source.type == "git" and source.branch is not None) for source in sources
    )


_SIDE_FILES = {"timeline": "timeline.jsonl", "links": "links.jsonl", "concepts": "concepts.json"}


def _side(path: Path) -> str:
    return digest_file(path) if os.path.isfile(path) else "none"


def _plain_name(folder: Path) -> str:
    name = "".join(
        c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in folder.resolve().name.lower()
    )
    return name.lstrip("._-") or "dataset"


@dataclass(slots=True)
class _Documents:
    lines: dict[str, int] = field(default_factory=dict)
    digests: dict[str, bytes] = field(default_factory=dict)
    attributes: dict[str, dict[str, Any]] = field(default_factory=dict)
    longest: int = 0
    empty: int = 0


@dataclass(slots=True)
class _Doubtful:
    """What faulty lines may have named: documents and their scopes, queries, and queries that are judged."""

    documents: set[str]
    queries: set[str] = field(default_factory=set)
    judged: set[str] = field(default_factory=set)


def _read_corpus(path: Path, keys: tuple[str, ...], collector: _Collector) -> _Documents:
    found = _Documents()
    fault = collector.at(path)
    wanted = ("scopes", *keys)
    for line, document in CorpusFile(path).numbered(fault):
        first = found.lines.setdefault(document.id, line)
        if first != line:
            fault(line, f"_id {document.id!r} again (first at line {first})")
            continue
        found.digests[document.id] = document_digest(document)
        found.empty += blank(document.searchable)
        found.longest = max(found.longest, len(document.searchable))
        kept = {key: document.metadata[key] for key in wanted if key in document.metadata}
        if kept:
            found.attributes[document.id] = kept
    if not found.lines and not collector.faults:
        fault(1, "holds no document")
    return found


_QUERY_TYPES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "category": (lambda v: isinstance(v, str) and bool(v), "a text"),
    "source": (lambda v: isinstance(v, str) and bool(v), "a text"),
    "kind": (lambda v: isinstance(v, str) and bool(v), "a text"),
    "scope": (lambda v: isinstance(v, str) and bool(v), "one name"),
    "exclude": (
        lambda v: isinstance(v, list) and all(isinstance(i, str) for i in v),
        "a list of document ids",
    ),
    "must_pass": (lambda v: isinstance(v, bool), "true or false"),
    "unanswerable": (lambda v: isinstance(v, bool), "true or false"),
}


def _read_queries(
    path: Path, timeline: Timeline | None, collector: _Collector
) -> tuple[list[Query], dict[str, int]]:
    queries: list[Query] = []
    lines: dict[str, int] = {}
    fault = collector.at(path)
    for number, value in read_json_lines(path, fault):
        problem = lacking("_id", value) if "_id" not in value else id_fault(value["_id"])
        text, metadata = value.get("text"), value.get("metadata")
        metadata = {} if metadata is None else metadata
        if problem is None and not isinstance(text, str):
            problem = lacking("text", value) if text is None else f"text {text!r} is not a text"
        if problem is None and not isinstance(metadata, dict):
            problem = f"metadata {metadata!r} is not a table"
        if problem is not None or not isinstance(text, str):
            fault(number, problem or "has no 'text'")
            continue
        name = value["_id"]
        if name in lines:
            fault(number, f"_id {name!r} again (first at line {lines[name]})")
            continue
        lines[name] = number
        for key, (fits, form) in _QUERY_TYPES.items():
            if key in metadata and not fits(metadata[key]):
                fault(number, f"metadata.{key} {metadata[key]!r} should be {form}")
                metadata = {k: v for k, v in metadata.items() if k != key}
        if "time" in metadata:
            wrong = time_fault(metadata["time"], timeline.last if timeline else 0)
            if wrong:
                fault(number, f"metadata.{wrong}")
                metadata = {k: v for k, v in metadata.items() if k != "time"}
        queries.append(Query(name, text, metadata))
    return queries, lines


def splits_of(folder: Path) -> list[str]:
    """The splits that a set has judgements of, sorted."""
    return sorted(path.stem for path in (folder / "qrels").glob("*.tsv"))


def _only_split(folder: Path) -> str:
    splits = splits_of(folder)
    if not splits:
        raise Misuse("dataset-missing", "holds no judgements; expected qrels/test.tsv", file=folder / "qrels")
    return splits[0] if len(splits) == 1 else "test"


HEADER = ("query-id", "corpus-id", "score")


def _read_qrels(
    path: Path, collector: _Collector
) -> tuple[dict[str, dict[str, int]], dict[tuple[str, str], int], set[str]]:
    """Judgements by query, the line of each, and the queries that faulty lines may judge."""
    if not os.path.isfile(path):
        splits = splits_of(path.parent.parent)
        near = f"{did_you_mean(path.stem, splits)}  (splits: {', '.join(splits) or 'none'})"
        raise Misuse("split-unknown", f"there is no such split{near}", file=path)
    judgements: dict[str, dict[str, int]] = {}
    places: dict[tuple[str, str], int] = {}
    doubtful: set[str] = set()
    fault = collector.at(path)
    header_seen = False
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    if raw.startswith(BOM):
        fault(1, BOM_FAULT)
        raw = raw[len(BOM) :]
    for number, line in enumerate(raw.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            fields = line.decode("utf-8").rstrip("\r").split("\t")
        except UnicodeDecodeError as error:
            fault(number, f"not UTF-8: byte {line[error.start]:#04x} at column {error.start + 1}")
            doubtful.add(line.split()[0].decode("utf-8", "replace"))
            continue
        if not header_seen:
            header_seen = True
            if tuple(fields) == HEADER:
                continue
            fault(number, f"expected the header {chr(9).join(HEADER)!r}")
            if len(fields) != 3 or grade_of(fields[2]) is None:
                continue
        if len(fields) != 3:
            fault(
                number,
                f"expected 3 fields with tabs between (query-id, corpus-id, score), found {len(fields)}",
            )
            doubtful.add(line.decode().split()[0])
            continue
        query, document, written = fields
        if (grade := grade_of(written)) is None:
            fault(number, f"grade {written!r} should be {GRADE_RULE}")
            doubtful.add(query)
            continue
        first = places.setdefault((query, document), number)
        if first != number:
            fault(number, f"judges {document!r} for {query!r} again (first at line {first})")
            continue
        # Below 0 is not relevant, as 0 is: reports and evidence know no grade below.
        judgements.setdefault(query, {})[document] = max(grade, 0)
    if not header_seen:
        fault(1, f"is empty; expected the header {chr(9).join(HEADER)!r} and judgements")
    return judgements, places, doubtful


def _judged_elsewhere(folder: Path, split: str) -> set[str]:
    """Query ids that other splits judge: BEIR keeps the queries of all splits in one file."""
    found: set[str] = set()
    for path in (folder / "qrels").glob("*.tsv"):
        if path.stem != split and os.path.isfile(path):
            found |= {line.split("\t", 1)[0] for line in path.read_text("utf-8", "replace").splitlines()[1:]}
    return found


def _check_judgements(
    dataset: Dataset,
    path: Path,
    places: Mapping[tuple[str, str], int],
    doubtful: _Doubtful,
    collector: _Collector,
) -> None:
    fault = collector.at(path)
    nearest = Nearest(lambda: dataset.ids)
    by_id = {query.id: query for query in dataset.queries}
    known = {None, *_scopes(dataset)}  # a scope that no document has is a fault of its own, told once
    for (query_id, document), line in places.items():
        query = by_id.get(query_id)
        if query is None and query_id not in doubtful.queries:
            fault(line, f"judges for query {query_id!r}, which is not in queries.jsonl")
        if document not in dataset.ids:
            if document not in doubtful.documents:
                hint = nearest.hint(document)
                told = f"judges document {document!r}, which is not in the corpus{hint}"
                collector.add(path, line, told, ABSENT)
        elif query is not None and dataset.judgements[query_id][document] > 0:
            if document in query.exclude:
                fault(line, f"judges {document!r} relevant to {query_id!r}, which excludes it")
            elif (
                query.scope in known
                and query_id not in doubtful.queries
                and not dataset.visible(document, query, None)
            ):
                fault(
                    line, f"judges {document!r} relevant to {query_id!r}, which is outside its scope or time"
                )


def _check_queries(
    dataset: Dataset,
    lines: Mapping[str, int],
    plain: bool,
    doubtful: _Doubtful,
    collector: _Collector,
) -> None:
    path = dataset.folder / "queries.jsonl"
    fault = collector.at(path)
    nearest = Nearest(lambda: dataset.ids)
    scopes = _scopes(dataset)
    known = scopes | doubtful.documents
    for query in dataset.queries:
        line = lines[query.id]
        unanswerable = query.metadata.get("unanswerable", False)
        unsure = query.id in doubtful.queries or query.id in doubtful.judged
        if query.id not in dataset.unscorable and unanswerable:
            fault(
                line,
                f"query {query.id!r} is marked unanswerable and has a positive judgement; drop one of them",
            )
        if blank(query.text) and not unanswerable:
            if query.id not in doubtful.queries:
                fault(line, f"query {query.id!r} has an empty text; write it, or mark the query unanswerable")
        elif query.id in dataset.unscorable and not unanswerable and not plain and not unsure:
            fault(line, f"query {query.id!r} has no positive judgement; judge it, or mark it unanswerable")
        for document in query.exclude:
            if document not in dataset.ids and document not in doubtful.documents:
                # A moving source that loses such a document loses what the set was made on, like a judged one.
                hint = nearest.hint(document)
                told = f"query {query.id!r} excludes {document!r}, which is not in the corpus{hint}"
                collector.add(path, line, told, ABSENT)
        if query.scope is not None and query.scope not in known:
            near = did_you_mean(query.scope, scopes)
            fault(line, f"query {query.id!r} asks in scope {query.scope!r}, which no document has{near}")


def _scopes(dataset: Dataset) -> set[str]:
    """The scopes that documents are in."""
    found = {scope for has in dataset.attributes.values() for scope in scopes_of(has)}
    return {scope for scope in found if scope is not None}
