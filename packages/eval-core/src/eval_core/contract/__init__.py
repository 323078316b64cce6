"""The retrieval comparison contract: any number of backends over one manifest and one search root, as JSON.

A comparison carries what makes its figures checkable: digests of manifest and corpus, every ranked path, what errored.
Its figures are recomputed from its rows when it is read, so one that was edited in one place does not load.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from eval_core import backend as registry
from eval_core.config import CONFIG, Retriever, retrievers
from eval_core.contract.corpus import WORDS, place, search
from eval_core.contract.models import (
    Account,
    BackendReport,
    Comparison,
    ManifestFacts,
    Paths,
    SearchResult,
    Unanswered,
    alone,
    figures,
    measures,
    summed,
    verdict,
)
from eval_core.contract.render import as_json, as_markdown, as_table
from eval_core.errors import Fault, Faults, Misuse, Refused
from eval_core.files import digest_file, read_text
from eval_core.imports import Manifest, dataset_of, read_manifest
from eval_core.measuring import ask, observe, resolve
from eval_core.reconstruct.lock import NO_RECIPE
from eval_core.reconstruct.selection import shown
from eval_core.reports import Environment, Report
from eval_core.sets import CorpusFile, Dataset

__all__ = [
    "BackendReport",
    "Comparison",
    "as_json",
    "as_markdown",
    "as_table",
    "compare_backends",
    "read_comparison",
]


@dataclass(frozen=True, slots=True)
class _Task:
    """What is the same for every backend."""

    manifest: Manifest
    common: Mapping[str, Any]
    k: int
    root: Path
    dataset: Dataset
    environment: Environment
    paths: Mapping[str, str]
    missing: Mapping[str, Paths]
    unsearched: Mapping[str, Paths]

    def outside(self, document: str) -> str | None:
        """Why what was answered is no file below the root, or none of the corpus."""
        path = self.paths.get(document)
        where = place(self.root, document if path is None else path)
        if path is not None and where == "file":
            return None
        return WORDS[where] if path in (None, document) else f"({path}) {WORDS[where]}"


def compare_backends(
    manifest: Path,
    root: Path,
    backends: Sequence[str],
    k: int,
    *,
    config: Path = CONFIG,
) -> Comparison:
    """Put every query of a manifest to every backend, over the text files below a root.

    A result path that is absolute, holds `..`, leads out of the root, is a folder or is no file at the moment makes
    its query errored: it stands in `errors` with backend, query and path, and is in no mean.

    Args:
        manifest: of either form. Where it is relative, it is looked for below `root` first, then from here.
        root: the folder that is searched. Document ids are paths relative to it, percent-encoded as in any corpus.
        backends: specs of `retrievers`, in the order of the comparison; one that is named twice is compared once. Of an
            arm its backend, options and `expand` count, since its set is another.
        k: how many paths are asked for, at least 1.
        config: the eval.toml of the arms.

    Raises:
        Misuse: no such root, manifest or backend, k below 1, or nothing to search.
        Faults: the manifest is not sound, or its ground truth leads out of the root.
        CouldNot: the root cannot be read, or a backend cannot be made, cannot index or does not say what it is.
    """
    if k < 1:
        raise Misuse("k-malformed", "should be at least 1", key="k", value=k)
    notes: list[str] = []
    chosen = _chosen(backends, config, notes)
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
        facts, paths = search(root, found, corpus)
        missing, unsearched = _truth(read, found, real, set(paths.values()))
        dataset = dataset_of(read, CorpusFile(corpus), facts.sha256, paths, measures(k)[1])
        environment = observe(Path(temporary))  # it is in no comparison
        task = _Task(read, common, k, real, dataset, environment, paths, missing, unsearched)
        _note_limits(task, notes)
        reports = tuple(_report(task, one, notes) for one in chosen)
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


def _chosen(specs: Sequence[str], config: Path, notes: list[str]) -> list[Retriever]:
    """The retrievers to compare, each once."""
    chosen: dict[str, Retriever] = {}
    for one in retrievers(specs, config):
        kind = "arm" if one.is_arm else "backend"
        note = f"{kind} {one.name!r} was named more than once; it is compared once"
        if one.name in chosen and note not in notes:
            notes.append(note)
        chosen.setdefault(one.name, one)
    if not chosen:
        raise Misuse("backend-unknown", f"no backend was given  (installed: {', '.join(registry.names())})")
    return list(chosen.values())


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


def _report(task: _Task, one: Retriever, notes: list[str]) -> BackendReport:
    """Measure one retriever, and show its report in the form of the contract."""
    unfinished = task.dataset.corpus.path.with_name("partial")
    update = {"limit": task.k, "cutoffs": (task.k,), "select": {}}  # of the arm's own set
    made = resolve(one.workspace, one.name, one.arm.model_copy(update=update), task.dataset, NO_RECIPE)
    with contextlib.chdir(one.workspace.root):  # which options and commands are relative to
        made = replace(made, root=Path(), timed=False, outside=task.outside)
        found = ask(made, task.environment, unfinished)
    unfinished.unlink()
    notes += [f"{one.name}: {note}" for note in found.notes]
    return _view(task, one, found.report)


def _view(task: _Task, one: Retriever, report: Report) -> BackendReport:
    """What a report says, in the form of the contract."""
    hit, precision, reciprocal = measures(task.k)
    results: list[SearchResult] = []
    errors: list[Unanswered] = []
    for query, row in zip(task.manifest.queries, report.rows, strict=True):
        common: dict[str, Any] = {
            "id": row.id,
            "query": row.text,
            "missing_ground_truth": task.missing[row.id],
        }
        if row.outcome == "scored":
            ranks = sorted(judged.rank for judged in row.judged if judged.rank is not None)
            paths = tuple(task.paths[document] for document in row.ids)
            results.append(
                SearchResult(
                    **common,
                    backend=one.name,
                    intent=query.intent,
                    ground_truth=query.ground_truth,
                    unsearched_ground_truth=task.unsearched[row.id],
                    result_paths=paths,
                    hit_paths=tuple(paths[rank - 1] for rank in ranks),
                    any_relevant=row.metrics[hit] == 1,
                    precision_at_k=row.metrics[precision],
                    first_relevant_rank=ranks[0] if ranks else None,
                    reciprocal_rank=row.metrics[reciprocal],
                )
            )
        elif row.outcome != "unscorable":  # each query has ground truth
            message = f"backend {one.name!r}, query {row.id!r}: {row.detail}"
            errors.append(Unanswered(**common, outcome=row.outcome, message=message))
    system: dict[str, Any] = report.system.parts
    return BackendReport(
        **task.common,
        backend=one.name,
        **figures(results, errors),
        results=tuple(results),
        errors=tuple(errors),
        health=Account(**report.health.model_dump(include=set(Account.model_fields))),
        implementation=system["implementation"],
        system=system if one.is_arm else None,
    )


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
