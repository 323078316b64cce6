"""The retrieval comparison contract: any number of backends over one manifest and one search root, as JSON.

A comparison carries what makes its figures checkable: digests of manifest and corpus, every ranked path, what errored.
Its figures are recomputed from its rows when it is read, so one that was edited in one place does not load.
"""

# long because: the models recompute their figures with the functions that made them, so both stand in one place.

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, JsonValue, ValidationError, model_validator

from eval_core import backend as registry
from eval_core import metrics
from eval_core.backend import Backend, BackendError, Reply, Request
from eval_core.corpus import CorpusFile, corpus_digest, document_line
from eval_core.definition import Folder
from eval_core.errors import CouldNot, EvalError, Fault, Faults, Misuse, Refused
from eval_core.files import canonical, digest_file, read_text
from eval_core.manifest import Manifest, ManifestQuery, read_manifest
from eval_core.measure import GIVE_UP_AFTER
from eval_core.models import Closed
from eval_core.reconstruct import folder
from eval_core.reconstruct.lock import Skipped
from eval_core.reconstruct.selection import Entry, Tally, documents, selection_faults, shown
from eval_core.vet import Answer, vet

_TEXT = "md markdown mdx rst adoc org txt tex"
_CODE = (
    "py pyi go rs c h cc cpp hpp cs java kt scala swift js jsx mjs cjs ts tsx vue rb php pl lua r jl hs ml ex exs erl "
    "clj el sh bash zsh fish ps1 sql proto graphql tf nix zig css html toml yaml yml"
)
#: What is searched where nothing else is said: Markdown, plain text, source. JSON is not: manifests, reports and
#: query logs hold the queries word for word.
INCLUDE = tuple(
    ["**/README", "**/LICENSE", "**/Makefile", "**/Dockerfile"]
    + [f"**/*.{suffix}" for suffix in f"{_TEXT} {_CODE}".split()]
)
#: Folders that version control and tools keep; `.git` and `.eval` are never looked into.
EXCLUDE = tuple(
    f"**/{name}/**"
    for name in (".hg", ".svn", ".jj", ".bzr", "node_modules", "__pycache__", ".venv", ".tox", ".nox")
)

Paths = tuple[str, ...]
Reason = Literal["comparison-vacuous", "queries-errored"]


class SearchResult(Closed):
    """One query put to one backend. Paths have slashes and are relative to the search root."""

    id: str
    backend: str
    query: str
    intent: str = ""
    ground_truth: Paths = Field(min_length=1)
    missing_ground_truth: Paths = Field(default=(), description="No file stands there: counted as a miss.")
    unsearched_ground_truth: Paths = Field(
        default=(), description="A file stands there and is not in the corpus: no backend can return it."
    )
    result_paths: Paths = Field(description="In rank order, at most k.")
    hit_paths: Paths = Field(description="The result paths that are ground truth.")
    any_relevant: bool
    precision_at_k: float = Field(ge=0, le=1, description="Hits / min(|ground truth|, k), not / k.")
    first_relevant_rank: int | None = Field(default=None, ge=1, description="From 1; left out on a miss.")
    reciprocal_rank: float = Field(ge=0, le=1, description="1 / first_relevant_rank, 0 on a miss.")


class Unanswered(Closed):
    """A query that a backend did not answer soundly: in no mean, and never a zero."""

    id: str
    query: str
    outcome: Literal["errored", "unscored"] = Field(description="unscored: not asked, the backend is gone.")
    message: str
    missing_ground_truth: Paths = ()


class Account(Closed):
    """How the asking went, apart from quality."""

    scored: int = Field(default=0, ge=0)
    errored: int = Field(default=0, ge=0)
    unscored: int = Field(default=0, ge=0)
    duplicates: int = Field(default=0, ge=0, description="Repeated ids dropped from answers.")
    excess: int = Field(default=0, ge=0, description="Ids beyond k, cut.")
    restarts: int = Field(default=0, ge=0, description="Times that the backend had to be started again.")


class BackendReport(Closed):
    """One backend over all queries. Means are over the scored ones, 0 where there is none: see `health`."""

    id: str = Field(description="The manifest's.")
    backend: str
    manifest_path: str
    search_root: str
    queries: int = Field(ge=0, description="Of the manifest.")
    k: int = Field(ge=1)
    hits: int = Field(ge=0, description="Queries with a ground-truth path in the top k.")
    missing_ground_truth: int = Field(ge=0, description="Summed over the queries: repeats count.")
    any_relevant_at_k: float = Field(ge=0, le=1, description="Hits / scored queries.")
    avg_precision_at_k: float = Field(ge=0, le=1, description="Mean of precision_at_k.")
    mean_reciprocal_rank: float = Field(ge=0, le=1)
    results: tuple[SearchResult, ...]
    errors: tuple[Unanswered, ...] = ()
    health: Account
    implementation: dict[str, JsonValue] = Field(default={}, description="What the backend says it is.")

    @property
    def rows(self) -> tuple[SearchResult | Unanswered, ...]:
        """What became of each query, those without a sound answer last."""
        return (*self.results, *self.errors)

    @model_validator(mode="after")
    def _figures_are_of_the_rows(self) -> BackendReport:
        for row in self.results:
            sound = len(set(row.result_paths)) == len(row.result_paths) <= self.k
            wanted = {"backend": self.backend, **derived(row.ground_truth, row.result_paths, self.k)}
            if not sound or any(getattr(row, name) != value for name, value in wanted.items()):
                raise ValueError(
                    f"{self.backend}: the figures of query {row.id!r} are not those of its paths"
                )
        if any(getattr(self, n) != value for n, value in figures(self.results, self.errors).items()):
            raise ValueError(f"{self.backend}: the figures are not those of the results")
        outcomes = [row.outcome for row in self.errors]
        counts = (len(self.results), outcomes.count("errored"), outcomes.count("unscored"))
        health = self.health
        if counts != (health.scored, health.errored, health.unscored) or sum(counts) != self.queries:
            raise ValueError(f"{self.backend}: the counts are not those of the results")
        return self


class ManifestFacts(Closed):
    """Which manifest it was."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    form: Literal["search-eval", "legacy"]
    skipped: int = Field(ge=0, description="Entries of a legacy array without a relevant path, left out.")
    unread: dict[str, int] = Field(default={}, description="Keys that mean nothing here.")


class CorpusFacts(Closed):
    """What was searched: the text files below the root, without the manifest."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="The corpus digest.")
    documents: int = Field(ge=1)
    bytes: int = Field(ge=0)
    skipped: Skipped
    unnamable: int = Field(default=0, ge=0, description="Files whose name is not UTF-8, left out.")


class Comparison(Closed):
    """What `as_json` prints. Of one backend it has that backend's fields at the top too, as the single-backend form
    has them."""

    schema_: Literal["retrieval-comparison-v1"] = Field(default="retrieval-comparison-v1", alias="schema")
    id: str
    manifest_path: str = Field(description="Where it was read: from the working folder, or absolute.")
    search_root: str = Field(description="As it was given.")
    queries: int = Field(ge=0)
    k: int = Field(ge=1)
    backends: tuple[BackendReport, ...] = Field(min_length=1)
    backend: str | None = Field(default=None, description="This and the next six: of one backend only.")
    hits: int | None = None
    missing_ground_truth: int | None = None
    any_relevant_at_k: float | None = None
    avg_precision_at_k: float | None = None
    mean_reciprocal_rank: float | None = None
    results: tuple[SearchResult, ...] | None = None
    manifest: ManifestFacts
    corpus: CorpusFacts
    health: Account = Field(description="Summed over the backends.")
    notes: tuple[str, ...] = ()
    exit_code: Literal[0, 1, 3] = Field(description="The script's. 1: no evidence; 3: queries errored.")
    reason: Reason | None = None
    why: str | None = Field(default=None, description="The reason in words.")

    @model_validator(mode="after")
    def _one_task_and_one_verdict(self) -> Comparison:
        asked = _asked(self.backends[0])
        for report in self.backends:
            if _asked(report) != asked or any(getattr(report, n) != getattr(self, n) for n in _COMMON):
                raise ValueError(f"{report.backend}: was asked something else than the comparison says")
        if len({report.backend for report in self.backends}) != len(self.backends):
            raise ValueError("a backend stands twice")
        only = _only(self.backends)
        if any(getattr(self, name) != only.get(name) for name in _SINGLE):
            raise ValueError("the fields of a single backend are not those of the only one")
        if self.health != _summed(self.backends):
            raise ValueError("health is not the sum of the backends'")
        if (self.exit_code, self.reason, self.why) != verdict(self.backends, self.manifest.skipped):
            raise ValueError("exit_code, reason and why are not those of the backends")
        return self


_COMMON = ("id", "manifest_path", "search_root", "queries", "k")
_SINGLE = (
    *("backend", "hits", "missing_ground_truth", "any_relevant_at_k", "avg_precision_at_k"),
    *("mean_reciprocal_rank", "results"),
)


def derived(truth: Sequence[str], paths: Sequence[str], k: int) -> dict[str, Any]:
    """What follows from the ranked paths of one query.

    precision_at_k is hits / min(|ground truth|, k), not hits / k: one relevant file, found, is 1 and not 1 / k.
    reciprocal_rank is 1 / the rank of the first relevant path of the top k, else 0.
    """
    ranks = [rank for rank, path in enumerate(paths, 1) if path in truth]
    return {
        "hit_paths": tuple(paths[rank - 1] for rank in ranks),
        "any_relevant": bool(ranks),
        "precision_at_k": len(ranks) / min(len(truth), k),
        "first_relevant_rank": ranks[0] if ranks else None,
        "reciprocal_rank": 1 / ranks[0] if ranks else 0.0,
    }


def figures(results: Sequence[SearchResult], errors: Sequence[Unanswered]) -> dict[str, Any]:
    """The figures of one backend: means over its results, 0 where there is none."""
    hits = sum(1 for row in results if row.any_relevant)
    return {
        "hits": hits,
        "missing_ground_truth": sum(len(row.missing_ground_truth) for row in results)
        + sum(len(row.missing_ground_truth) for row in errors),
        "any_relevant_at_k": hits / len(results) if results else 0.0,
        "avg_precision_at_k": metrics.mean([row.precision_at_k for row in results]),
        "mean_reciprocal_rank": metrics.mean([row.reciprocal_rank for row in results]),
    }


def verdict(
    reports: Sequence[BackendReport], skipped: int = 0
) -> tuple[Literal[0, 1, 3], Reason | None, str | None]:
    """Exit code, reason and the reason in words: 3 where a query errored, 1 where nothing was shown, else 0."""
    bad = [f"{r.backend}: {len(r.errors)} of {r.queries}" for r in reports if r.errors]
    if bad:
        return 3, "queries-errored", f"queries without a sound answer ({'; '.join(bad)})"
    first = reports[0]
    if not first.queries:
        left = f" ({skipped} without ground truth left out)" if skipped else ""
        return 1, "comparison-vacuous", f"no query ran: the manifest holds none{left}"
    if any(report.hits for report in reports):
        return 0, None, None
    why = f"every backend scores zero; queries: {first.queries}"
    if first.missing_ground_truth:
        total = sum(len(row.ground_truth) for row in first.results)
        why += f"; {first.missing_ground_truth} of {total} ground-truth paths do not exist"
    return 1, "comparison-vacuous", why


def _asked(report: BackendReport) -> list[tuple[str, str, Paths]]:
    """What every backend was asked alike."""
    return sorted((row.id, row.query, row.missing_ground_truth) for row in report.rows)


def _only(reports: Sequence[BackendReport]) -> dict[str, Any]:
    return {name: getattr(reports[0], name) for name in _SINGLE} if len(reports) == 1 else {}


def _summed(reports: Sequence[BackendReport]) -> Account:
    return Account(**{name: sum(getattr(r.health, name) for r in reports) for name in Account.model_fields})


Place = Literal["file", "absolute", "dotted", "absent", "outside", "not-a-file"]

_WORDS: dict[Place, str] = {
    "file": "is a file that is not in the corpus",
    "absolute": "is absolute",
    "dotted": "holds '..'",
    "absent": "does not exist below the search root",
    "outside": "leads out of the search root",
    "not-a-file": "is no file",
}


def place(root: Path, path: str) -> Place:
    """What a path relative to `root`, itself resolved, leads to now; links are followed to their ends."""
    if os.path.isabs(path):
        return "absolute"
    if ".." in path.split("/"):
        return "dotted"
    try:
        real = (root / path).resolve(strict=True)
        if not real.is_relative_to(root):
            return "outside"
        return "file" if real.is_file() else "not-a-file"
    except (OSError, RuntimeError, ValueError):  # absent, a loop of links, no name of a file
        return "absent"


@dataclass(frozen=True, slots=True)
class _Task:
    """What is the same for every backend."""

    manifest: Manifest
    common: Mapping[str, Any]
    k: int
    root: Path
    corpus: CorpusFile
    paths: Mapping[str, str]
    missing: Mapping[str, Paths]
    unsearched: Mapping[str, Paths]


def compare_backends(
    manifest: Path,
    root: Path,
    backends: Sequence[str],
    k: int,
    *,
    include: Sequence[str] = INCLUDE,
    exclude: Sequence[str] = EXCLUDE,
) -> Comparison:
    """Put every query of a manifest to every backend, over the text files below a root.

    A result path that is absolute, holds `..`, leads out of the root, is a folder or is no file at the moment makes
    its query errored: it stands in `errors` with backend, query and path, and is in no mean.

    Args:
        manifest: of either form. Where it is relative, it is looked for below `root` first, then from here.
        root: the folder that is searched. Document ids are paths relative to it, percent-encoded as in any corpus.
        backends: names of the registry, in the order of the comparison; one that is named twice is compared once.
        k: how many paths are asked for, at least 1.
        include, exclude: globs below the root.

    Raises:
        Misuse: no such root, manifest or backend, k below 1, or nothing to search.
        Faults: the manifest is not sound, or its ground truth leads out of the root.
        CouldNot: the root cannot be read, or a backend cannot be made, cannot index or does not say what it is.
    """
    if k < 1:
        raise Misuse(f"k = {k!r}: should be at least 1", reason="k-malformed")
    notes: list[str] = []
    specs = _specs(backends, notes)
    if not root.is_dir():
        what = "is no folder" if root.exists() else "no such folder"
        raise Misuse(f"{root}: {what}; give the folder to search", reason="root-missing")
    found = _manifest_at(manifest, root, notes)
    read = read_manifest(found)
    written = ManifestFacts(
        sha256=digest_file(found), form=read.form, skipped=read.skipped, unread=read.unread
    )
    common: dict[str, Any] = {
        "id": read.id,
        "manifest_path": _posix(found),
        "search_root": _posix(root),
        "queries": len(read.queries),
        "k": k,
    }
    real = root.resolve()
    with tempfile.TemporaryDirectory(prefix="eval-compare-") as temporary:
        corpus = Path(temporary) / "corpus.jsonl"
        facts, paths = _search(root, found, corpus, include, exclude)
        missing, unsearched = _truth(read, found, real, set(paths.values()))
        task = _Task(read, common, k, real, CorpusFile(corpus), paths, missing, unsearched)
        _note_limits(task, notes)
        reports = tuple(_report(task, name, options, notes) for name, options in specs)
    code, reason, why = verdict(reports, read.skipped)
    return Comparison(
        **common,
        backends=reports,
        **_only(reports),
        manifest=written,
        corpus=facts,
        health=_summed(reports),
        notes=tuple(notes),
        exit_code=code,
        reason=reason,
        why=why,
    )


def _posix(path: Path) -> str:
    return shown(os.fsencode(path.as_posix()))


def _specs(given: Sequence[str], notes: list[str]) -> list[tuple[str, dict[str, Any]]]:
    """The backends to compare, each with its options, of which a plain name gives none."""
    known = registry.names()
    specs: dict[str, dict[str, Any]] = {}
    for text in given:
        name = text.strip()
        name = name.lower() if name not in known and name.lower() in known else name
        registry.load(name)  # before anything is read, so that a slip is told at once
        note = f"backend {name!r} was named more than once; it is compared once"
        if name in specs and note not in notes:
            notes.append(note)
        specs.setdefault(name, {})
    if not specs:
        raise Misuse(f"no backend is named  (installed: {', '.join(known)})", reason="backend-unknown")
    return list(specs.items())


def _manifest_at(manifest: Path, root: Path, notes: list[str]) -> Path:
    below = root / manifest  # the manifest itself where it is absolute
    if not below.exists() and manifest.exists():
        return manifest
    with suppress(OSError):
        if not below.samefile(manifest):
            notes.append(
                f"{_posix(below)} was read; {_posix(manifest)} in the working folder is another file"
            )
    return below


def _search(
    root: Path, manifest: Path, corpus: Path, include: Sequence[str], exclude: Sequence[str]
) -> tuple[CorpusFacts, dict[str, str]]:
    """Write the text files below the root to `corpus`. Returns what they are, and by document id their paths."""
    source = Folder(
        type="dir", name="root", path=".", prefix="", include=tuple(include), exclude=tuple(exclude)
    )
    if faults := selection_faults(source):
        raise Misuse("\n".join(faults), reason="glob-malformed")
    own = os.path.relpath(os.path.realpath(manifest), os.path.realpath(root)).replace(os.sep, "/")
    tally = Tally()
    unnamable = 0

    def entries() -> Iterator[Entry]:
        nonlocal unnamable
        for entry in folder.entries(source, root, None, ()):
            try:
                path = entry.path.decode()
            except UnicodeDecodeError:
                unnamable += 1
                continue
            if path != own:  # it holds the queries word for word
                yield entry

    digests: dict[str, bytes] = {}
    paths: dict[str, str] = {}
    with corpus.open("wb") as stream:
        try:
            for document in documents(source, entries(), tally):
                line = document_line(document)
                stream.write(line + b"\n")
                digests[document.id] = hashlib.sha256(line).digest()
                paths[document.id] = document.metadata["path"]
        except Misuse as error:
            why = error.message.partition(": ")[2]
            raise Misuse(f"{root}: there is no text to search: {why}", reason="corpus-empty") from error
    facts = CorpusFacts(
        sha256=corpus_digest(digests.items()),
        documents=tally.documents,
        bytes=tally.bytes,
        skipped=tally.skipped(),
        unnamable=unnamable,
    )
    return facts, paths


def _truth(
    manifest: Manifest, path: Path, root: Path, held: set[str]
) -> tuple[dict[str, Paths], dict[str, Paths]]:
    """By query, the ground truth where no file stands, and that of files which are not in the corpus.

    Raises:
        Faults: ground truth that leads out of the root, each path of it.
    """
    missing: dict[str, Paths] = {}
    unsearched: dict[str, Paths] = {}
    faults: list[Fault] = []
    for query in manifest.queries:
        places = {truth: place(root, truth) for truth in query.ground_truth}
        missing[query.id] = tuple(truth for truth, where in places.items() if where != "file")
        unsearched[query.id] = tuple(t for t, where in places.items() if where == "file" and t not in held)
        for truth, where in places.items():
            if where == "outside":
                told = f"query {query.id!r}: ground_truth {truth!r} {_WORDS[where]}; name a file below it"
                faults.append(Fault(str(path), told, "ground-truth-outside"))
    if faults:
        raise Faults(faults, consequence="nothing was compared")
    return missing, unsearched


def _note_limits(task: _Task, notes: list[str]) -> None:
    if task.k >= len(task.paths):
        notes.append(f"k = {task.k} reaches all of the corpus ({len(task.paths)}): any order of it is a hit")
    if outside := sorted({path for paths in task.unsearched.values() for path in paths}):
        notes.append(
            "no backend can return this ground truth, which is not in the corpus (globs, a link, binary, too large): "
            + ", ".join(outside)
        )


def _report(task: _Task, name: str, options: Mapping[str, Any], notes: list[str]) -> BackendReport:
    """Index the corpus with one backend and put every query to it."""
    results: list[SearchResult] = []
    errors: list[Unanswered] = []
    counts = {"duplicates": 0, "excess": 0, "restarts": 0}
    backend = registry.make(name, options)
    try:
        implementation = _indexed(backend, name, task)
        failures, gone = 0, ""
        for query in task.manifest.queries:
            asked = not gone
            answer, lost = _ask(backend, query, task, counts) if asked else (gone, False)
            missing = task.missing[query.id]
            if isinstance(answer, Answer):
                failures = 0
                paths = [task.paths[document] for document in answer.ids]
                results.append(
                    SearchResult(
                        id=query.id,
                        backend=name,
                        query=query.query,
                        intent=query.intent,
                        ground_truth=query.ground_truth,
                        missing_ground_truth=missing,
                        unsearched_ground_truth=task.unsearched[query.id],
                        result_paths=tuple(paths),
                        **derived(query.ground_truth, paths, task.k),
                    )
                )
                continue
            failures += 1
            if asked and (lost or failures >= GIVE_UP_AFTER):
                gone = f"not asked, the backend was given up: {answer}"
            errors.append(
                Unanswered(
                    id=query.id,
                    query=query.query,
                    outcome="errored" if asked else "unscored",
                    message=f"backend {name!r}, query {query.id!r}: {answer}",
                    missing_ground_truth=missing,
                )
            )
    finally:
        try:
            backend.close()
        except Exception as error:  # noqa: BLE001  # other people's code, and its answers stand
            notes.append(f"backend {name!r} failed when it was closed: {_words(error)}")
    outcomes = [row.outcome for row in errors]
    return BackendReport(
        **task.common,
        backend=name,
        **figures(results, errors),
        results=tuple(results),
        errors=tuple(errors),
        health=Account(
            scored=len(results),
            errored=outcomes.count("errored"),
            unscored=outcomes.count("unscored"),
            **counts,
        ),
        implementation=implementation,
    )


def _indexed(backend: Backend, name: str, task: _Task) -> dict[str, JsonValue]:
    """Make the corpus searchable, and return what the backend says it is."""
    try:
        implementation: dict[str, JsonValue] = json.loads(canonical(dict(backend.describe())))
        if task.manifest.queries:
            backend.index(task.corpus)
    except EvalError:
        raise
    except Exception as error:
        raise CouldNot(f"backend {name!r} cannot index: {_words(error)}", reason="backend-failed") from error
    return implementation


def _ask(
    backend: Backend, query: ManifestQuery, task: _Task, counts: dict[str, int]
) -> tuple[Answer | str, bool]:
    """The sound answer to one query, or why there is none; and whether the backend is gone for good."""

    def outside(document: str) -> str | None:
        path = task.paths.get(document)
        where = place(task.root, document if path is None else path)
        if path is not None and where == "file":
            return None
        return _WORDS[where] if path in (None, document) else f"({path}) {_WORDS[where]}"

    try:
        reply = backend.search(Request(text=query.query, k=task.k, id=query.id))
        if not isinstance(reply, Reply):
            return f"the backend answered {type(reply).__name__}, not a Reply", False
        answer = vet(reply, task.k, (), outside)
    except (Exception, SystemExit) as error:  # noqa: BLE001
        # The boundary to other people's code: whatever it raises is a failed query, not a failed comparison.
        counts["restarts"] += getattr(error, "restarted", False) is True
        return _words(error), isinstance(error, CouldNot)
    if isinstance(answer, Answer):
        counts["duplicates"] += answer.duplicates
        counts["excess"] += answer.excess
    return answer, False


def _words(error: BaseException) -> str:
    """What an exception says, as a text that every file can hold."""
    told = str(error).encode("utf-8", "backslashreplace").decode()[:4000].strip()
    own = isinstance(error, BackendError | EvalError) and told
    return told if own else f"{type(error).__name__}: {told or 'without a word'}"


def read_comparison(path: Path) -> Comparison:
    """Read a comparison's JSON, its figures recomputed from its rows.

    Raises:
        Misuse: there is no such file.
        Refused: it is no comparison, or not as it was made.
    """
    try:
        return Comparison.model_validate_json(read_text(path, "comparison"))
    except ValidationError as error:
        from eval_core.complaints import first_fault

        raise Refused(f"{path}: {first_fault(error, Comparison)}", reason="comparison-malformed") from error


def as_json(comparison: Comparison) -> str:
    """The contract's JSON. What does not apply (first_relevant_rank on a miss, reason of a sound one) is left out."""
    return comparison.model_dump_json(by_alias=True, exclude_none=True, indent=1)


def as_table(comparison: Comparison) -> str:
    """The comparison for a terminal."""
    from eval_core.contract.render import terminal

    return terminal(comparison)


def as_markdown(comparison: Comparison) -> str:
    """The comparison for a page or a pull request."""
    from eval_core.contract.render import markdown

    return markdown(comparison)


def exit_code(comparison: Comparison) -> int:
    """0 evidence; 1 none, `comparison-vacuous`; 3 queries errored."""
    return comparison.exit_code
