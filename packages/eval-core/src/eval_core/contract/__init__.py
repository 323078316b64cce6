"""The retrieval comparison contract: any number of backends over one manifest and one search root, as JSON.

A comparison carries what makes its figures checkable: digests of manifest and corpus, every ranked path, what errored.
Its figures are recomputed from its rows when it is read, so one that was edited in one place does not load.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import chdir, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError

from eval_core import backend as registry
from eval_core.backend import Backend, Reply, Request
from eval_core.config import Spec, Workspace, spec
from eval_core.contract.corpus import EXCLUDE, INCLUDE, WORDS, place, search
from eval_core.contract.models import (
    Account,
    BackendReport,
    Comparison,
    ManifestFacts,
    Paths,
    SearchResult,
    Unanswered,
    alone,
    derived,
    figures,
    summed,
    verdict,
)
from eval_core.errors import CouldNot, EvalError, Fault, Faults, Misuse, Refused
from eval_core.files import canonical, digest_file, read_text
from eval_core.imports.manifest import Manifest, ManifestQuery, read_manifest
from eval_core.measuring.answers import Answer, vet
from eval_core.measuring.loop import GIVE_UP_AFTER, told_by
from eval_core.reconstruct.selection import shown
from eval_core.sets.corpus import CorpusFile

__all__ = [
    "BackendReport",
    "Comparison",
    "as_json",
    "as_markdown",
    "as_table",
    "compare_backends",
    "exit_code",
    "read_comparison",
]


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
    workspace: Workspace | None = None,
) -> Comparison:
    """Put every query of a manifest to every backend, over the text files below a root.

    A result path that is absolute, holds `..`, leads out of the root, is a folder or is no file at the moment makes
    its query errored: it stands in `errors` with backend, query and path, and is in no mean.

    Args:
        manifest: of either form. Where it is relative, it is looked for below `root` first, then from here.
        root: the folder that is searched. Document ids are paths relative to it, percent-encoded as in any corpus.
        backends: names of the registry or of arms, in the order of the comparison; one that is named twice is compared
            once. See `eval_core.config.spec`.
        k: how many paths are asked for, at least 1.
        include, exclude: globs below the root.
        workspace: whose arms may be named.

    Raises:
        Misuse: no such root, manifest or backend, k below 1, or nothing to search.
        Faults: the manifest is not sound, or its ground truth leads out of the root.
        CouldNot: the root cannot be read, or a backend cannot be made, cannot index or does not say what it is.
    """
    if k < 1:
        raise Misuse("k-malformed", "should be at least 1", key="k", value=k)
    notes: list[str] = []
    specs = _specs(backends, workspace, notes)
    if not root.is_dir():
        what = "is not a folder" if root.exists() else "there is no such folder"
        raise Misuse("root-missing", what, file=root, mend="Give the folder to search.")
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
        facts, paths = search(root, found, corpus, include, exclude)
        missing, unsearched = _truth(read, found, real, set(paths.values()))
        task = _Task(read, common, k, real, CorpusFile(corpus), paths, missing, unsearched)
        _note_limits(task, notes)
        reports = tuple(_report(task, one, notes) for one in specs)
    code, reason, why = verdict(reports, read.skipped)
    return Comparison(
        **common,
        backends=reports,
        **alone(reports),
        manifest=written,
        corpus=facts,
        health=summed(reports),
        notes=tuple(notes),
        exit_code=code,
        reason=reason,
        why=why,
    )


def _posix(path: Path) -> str:
    return shown(os.fsencode(path.as_posix()))


def _specs(given: Sequence[str], workspace: Workspace | None, notes: list[str]) -> list[Spec]:
    """The backends to compare, each with its options, of which a plain name gives none."""
    known = registry.names()
    specs: dict[str, Spec] = {}
    for text in given:
        found = spec(text.strip(), known, workspace)
        registry.load(found.backend)  # before anything is read, so that a slip is told at once
        note = f"backend {found.name!r} was named more than once; it is compared once"
        if found.name in specs and note not in notes:
            notes.append(note)
        specs.setdefault(found.name, found)
    if not specs:
        raise Misuse("backend-unknown", f"no backend was given  (installed: {', '.join(known)})")
    return list(specs.values())


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
                what = f"ground_truth {truth!r} {WORDS[where]}; name a file below it"
                faults.append(
                    Fault(what, code="ground-truth-outside", file=path, subject=f"query {query.id!r}")
                )
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


def _report(task: _Task, one: Spec, notes: list[str]) -> BackendReport:
    """Index the corpus with one backend and put every query to it, in the folder of the workspace whose arm it is."""
    with nullcontext() if one.root is None else chdir(one.root):
        return _asked_all(task, one, notes)


def _asked_all(task: _Task, one: Spec, notes: list[str]) -> BackendReport:
    name = one.name
    results: list[SearchResult] = []
    errors: list[Unanswered] = []
    counts = {"duplicates": 0, "excess": 0, "restarts": 0}
    backend = registry.make(one.backend, one.options)
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
            notes.append(f"backend {name!r} failed when it was closed: {told_by(error)}")
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
        what = f"cannot index: {told_by(error)}"
        raise CouldNot("backend-failed", what, subject=f"backend {name!r}") from error
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
        return WORDS[where] if path in (None, document) else f"({path}) {WORDS[where]}"

    try:
        reply = backend.search(Request(text=query.query, k=task.k, id=query.id))
        if not isinstance(reply, Reply):
            return f"the backend answered {type(reply).__name__}, not a Reply", False
        answer = vet(reply, task.k, (), outside)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # other people's code, as in measure
        # The boundary to other people's code: whatever it raises is a failed query, not a failed comparison.
        counts["restarts"] += getattr(error, "restarted", False) is True
        return told_by(error), isinstance(error, CouldNot)
    if isinstance(answer, Answer):
        counts["duplicates"] += answer.duplicates
        counts["excess"] += answer.excess
    return answer, False


def read_comparison(path: Path) -> Comparison:
    """Read a comparison's JSON, its figures recomputed from its rows.

    Raises:
        Misuse: there is no such file.
        Refused: it is no comparison, or not as it was made.
    """
    try:
        return Comparison.model_validate_json(read_text(path, "comparison"))
    except ValidationError as error:
        from eval_core.faults import first

        key, value, what = first(error, Comparison)
        raise Refused("comparison-malformed", what, file=path, key=key, value=value) from error


def as_json(comparison: Comparison) -> str:
    """The contract's JSON. What does not apply (first_relevant_rank on a miss, reason of a sound one) is left out."""
    from eval_core.console import as_json as shown

    return shown(comparison.model_dump(mode="json", by_alias=True, exclude_none=True))


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
