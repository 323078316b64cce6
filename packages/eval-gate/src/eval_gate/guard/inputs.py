"""What the guard looks at: the files that a manifest or a set judges relevant, as paths of one repository.

A file of a pinned source is looked up in the commit that the source pins, whatever became of it since. The commit that
is guarded is for manifests, and for sources that move.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import unquote_to_bytes

from eval_core.errors import Fault, Faults, Misuse
from eval_core.files import BOM, unreadable
from eval_core.imports import read_manifest
from eval_core.reconstruct.globs import Globs
from eval_core.reconstruct.tree import Tree
from eval_core.scoring import GRADE_RULE, grade_of
from eval_core.sets import HEADER, Archive, CorpusFile, Definition, Folder, Git, encode_id, read_definition

Form = Literal["search-eval", "legacy", "dataset"]


@dataclass(frozen=True, slots=True)
class Judged:
    """The files that one manifest or set judges: by path from the repository's top, the queries that want it.

    `pinned` holds the commit of each path that a source pins; the others are looked up in the guarded commit.
    `elsewhere` counts judged documents that are no files of this repository. `unread` counts keys that were passed
    over, `skipped` entries without a path.
    """

    name: str
    form: Form
    id: str
    queries: int
    paths: Mapping[bytes, tuple[str, ...]]
    pinned: Mapping[bytes, str] = field(default_factory=dict)
    elsewhere: int = 0
    skipped: int = 0
    unread: int = 0


def read_judged(path: Path, tree: Tree, root: bytes, at: Callable[[str], Tree]) -> Judged:
    """Read a manifest, whose paths are relative to `root`, or the folder of a set.

    Args:
        path: of the manifest or set.
        tree: of the guarded commit.
        root: the folder that the paths of manifests are relative to.
        at: the tree of another commit of the same repository.

    Raises:
        Faults: all that is wrong with its content, with file and line.
        Misuse: it is not there, or is neither.
        CouldNot: a file of it cannot be read.
    """
    return _set(path, tree, at) if path.is_dir() else _manifest(path, root)


def _manifest(path: Path, root: bytes) -> Judged:
    if path.suffix == ".toml":
        what = f"is not a manifest; name a set by its folder: {path.parent}"
        raise Misuse("file-malformed", what, file=path)
    manifest = read_manifest(path)
    wanted: dict[bytes, list[str]] = {}
    for query in manifest.queries:
        for truth in query.ground_truth:
            wanted.setdefault(_below(root, truth.encode()), []).append(query.id)
    return Judged(
        name=str(path),
        form=manifest.form,
        id=manifest.id,
        queries=len(manifest.queries),
        paths={name: tuple(queries) for name, queries in wanted.items()},
        skipped=manifest.skipped,
        unread=sum(manifest.unread.values()),
    )


def _set(folder: Path, tree: Tree, at: Callable[[str], Tree]) -> Judged:
    definition = read_definition(folder)
    positive = _positive(folder)
    owners = _Owners(folder, definition, tree, at)
    paths: dict[bytes, tuple[str, ...]] = {}
    pinned: dict[bytes, str] = {}
    elsewhere = 0
    faults = []
    for document, judgement in positive.items():
        try:
            found = owners.file(document)
        except ValueError as error:
            faults.append(Fault(str(error), file=judgement.file, line=judgement.line))
            continue
        if found is None:
            elsewhere += 1
            continue
        path, commit = found
        paths[path] = (*paths.get(path, ()), *judgement.queries)
        if commit is not None:
            pinned[path] = commit
    if faults:
        raise Faults(faults)
    return Judged(
        name=str(folder),
        form="dataset",
        id=definition.name if definition else folder.resolve().name,
        queries=len({query for judgement in positive.values() for query in judgement.queries}),
        paths=paths,
        pinned=pinned,
        elsewhere=elsewhere,
    )


class _Owners:
    """Which source of a set's recipe a document comes from, as far as its id tells, and from which file.

    An id is the source's prefix, a slash, and the percent-encoded path below its root. Where several sources have the
    longest prefix that fits, those count whose globs take the path, and among them the one that has the file.
    """

    def __init__(
        self, folder: Path, definition: Definition | None, tree: Tree, at: Callable[[str], Tree]
    ) -> None:
        sources = definition.corpus.source if definition and definition.corpus else ()
        self._tree = tree
        self._at = at
        self._sources = [source for source in sources if source.type != "inline"]
        self._ours = {
            source.name
            for source in sources
            if source.type == "git" and source.path is not None and tree.is_of(folder / source.path)
        }
        self._inline: frozenset[str] = frozenset()
        if self._ours and len(self._sources) < len(sources):
            # An id of the set's own file can look like one of a repository's; only the file tells them apart.
            prefixes = [source.prefix for source in sources if source.type == "inline"]
            ids = [document.id for document in CorpusFile(folder / "corpus.jsonl")]
            self._inline = frozenset(
                f"{prefix}/{name}" if prefix else name for prefix in prefixes for name in ids
            )

    def file(self, document: str) -> tuple[bytes, str | None] | None:
        """The file of this repository that a document is, from the top, and the commit that its source pins, None where
        it moves; None for a document from elsewhere.

        Raises:
            ValueError: the id is one that no file of the repository gives; with the mend.
        """
        if not self._ours or document in self._inline:
            return None
        fitting = [source for source in self._sources if document.startswith(_lead(source))]
        longest = max((len(_lead(source)) for source in fitting), default=0)
        fitting = [source for source in fitting if len(_lead(source)) == longest]
        name = unquote_to_bytes(document[longest:])
        decoded = name.decode("utf-8", "surrogateescape")
        fitting = [source for source in fitting if _takes(source, decoded)] or fitting
        paths = [
            (_below(source.root.encode(), name), source.commit if isinstance(source, Git) else None)
            for source in fitting
            if source.name in self._ours
        ]
        there = [
            (path, commit)
            for path, commit in paths
            if (self._at(commit) if commit else self._tree).find(path).kind == "file"
        ]
        if there and encode_id(decoded) != document[longest:]:
            written = document[:longest] + encode_id(decoded)
            raise ValueError(f"judges document {document!r}, an id that no file has; write it as {written!r}")
        if there:
            return there[0]
        return paths[0] if paths and len(paths) == len(fitting) else None


def _lead(source: Git | Archive | Folder) -> str:
    """What the ids of a source's documents begin with."""
    prefix = source.name if source.prefix is None else source.prefix
    return f"{prefix}/" if prefix else ""


def _takes(source: Git | Archive | Folder, path: str) -> bool:
    globs = Globs(source.include, source.exclude)
    return globs.includes(path) and not globs.excludes(path)


def _below(root: bytes, path: bytes) -> bytes:
    return root + b"/" + path if root else path


@dataclass(frozen=True, slots=True)
class _Judgement:
    file: Path
    line: int
    queries: list[str]


def _positive(folder: Path) -> dict[str, _Judgement]:
    """The documents with a positive judgement in any split, with their queries, in the order of the files."""
    files = sorted((folder / "qrels").glob("*.tsv"))
    if not files:
        what = "is neither a manifest nor a set; a set has judgements in qrels/SPLIT.tsv"
        raise Misuse("dataset-missing", what, file=folder)
    found: dict[str, _Judgement] = {}
    faults: list[Fault] = []
    for file in files:
        try:
            raw = file.read_bytes().removeprefix(BOM)
        except OSError as error:
            raise unreadable(file, error) from error
        lines = [(number, line) for number, line in enumerate(raw.split(b"\n"), 1) if line.strip()]
        for place, (number, line) in enumerate(lines):
            fields = line.decode("utf-8", "surrogateescape").rstrip("\r").split("\t")
            if place == 0 and tuple(fields) == HEADER:
                continue
            problem = _fault(fields)
            if problem:
                faults.append(Fault(problem, file=file, line=number))
            elif (grade_of(fields[2]) or 0) > 0:
                queries = found.setdefault(fields[1], _Judgement(file, number, [])).queries
                if fields[0] not in queries:
                    queries.append(fields[0])
    if faults:
        raise Faults(faults)
    return found


def _fault(fields: list[str]) -> str | None:
    if len(fields) != len(HEADER):
        return f"expected 3 fields with tabs between ({', '.join(HEADER)}), found {len(fields)}"
    if grade_of(fields[2]) is None:
        return f"grade {fields[2]!r} should be {GRADE_RULE}"
    if any("\udc80" <= character <= "\udcff" for field in fields for character in field):
        return "not UTF-8"
    return None
