"""An arm resolved against its set: what will be asked, of what, and the two keys that say so."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval_core import metrics
from eval_core.backend import Backend
from eval_core.config import Arm, Workspace
from eval_core.dataset import CONSEQUENCE, Dataset, Query, load
from eval_core.definition import Definition, check_cutoffs, read_definition
from eval_core.errors import Fault, Faults, Misuse
from eval_core.files import digest_file
from eval_core.keys import SYSTEM_PARTS, TASK_PARTS, Key, task_digests
from eval_core.reconstruct.lock import NO_RECIPE, Lock


@dataclass(frozen=True, slots=True)
class Plan:
    """An arm with everything resolved: what will be asked, of what, how often."""

    name: str
    arm: Arm
    root: Path
    dataset: Dataset
    queries: tuple[Query, ...]
    limit: int
    cutoffs: tuple[int, ...]
    recipe: str

    def filter_for(self, query: Query) -> dict[str, str] | None:
        """The filter that goes with a query: its own values of the arm's `filter_from` keys."""
        wanted = {key: query.metadata[key] for key in self.arm.filter_from if key in query.metadata}
        return wanted or None

    def task(self) -> Key:
        """The task key of this arm."""
        dataset = self.dataset
        parts: dict[str, Any] = {
            **task_digests(
                ((query.id, query.text, query.meaning(self.arm.filter_from)) for query in self.queries),
                ((query.id, dataset.judgements.get(query.id, {})) for query in self.queries),
            ),
            "split": dataset.split,
            "kind": dataset.definition.kind,
            "corpus": dataset.corpus_digest,
            "recipe": self.recipe,
            **dataset.side_digests,
            "limit": self.limit,
            "filter": list(self.arm.filter_from),
            "scale": 0,
            "metrics": metrics.VERSION,
            "cutoffs": list(self.cutoffs),
        }
        return Key.of({name: parts[name] for name in TASK_PARTS})

    def system(self, backend: Backend, scoping: str) -> Key:
        """The system key of this arm served by `backend`."""
        parts = {
            "backend": self.arm.backend,
            "options": self.arm.options,
            "files": _files_named(self.arm.options, self.root),
            "scoping": scoping,
            "expand": self.arm.expand,
            "implementation": dict(backend.describe()),
        }
        return Key.of({name: parts[name] for name in SYSTEM_PARTS})


def _files_named(options: Any, root: Path) -> dict[str, str]:
    """SHA-256 of each file that an option names by its path from the workspace: an adapter's own code is its system."""
    found: dict[str, str] = {}
    if isinstance(options, Mapping):
        for value in options.values():
            found |= _files_named(value, root)
    elif isinstance(options, list | tuple):
        for value in options:
            found |= _files_named(value, root)
    elif isinstance(options, str) and options and "\0" not in options and len(options) < 4096:
        path = root / options
        with contextlib.suppress(OSError):
            if not os.path.isabs(options) and path.is_file():
                found[options] = digest_file(path)
    return found


def plan(workspace: Workspace, name: str, arm: Arm, dataset: Dataset, recipe: str) -> Plan:
    """Resolve an arm against its loaded set.

    Raises:
        Misuse: cut-offs past the limit, or a selection that leaves no query.
        Faults: a positive judgement that the arm's own filter would hide.
    """
    where = f'{workspace.path}: arms."{name}"'
    limit = arm.limit if arm.limit is not None else dataset.definition.limit
    cutoffs = arm.cutoffs if arm.cutoffs is not None else dataset.definition.cutoffs
    try:
        check_cutoffs(cutoffs, limit)
    except ValueError as error:
        raise Misuse(f"{where}: {error}", reason="cutoffs-invalid") from error
    queries = tuple(query for query in dataset.queries if _selected(query, arm))
    if not queries:
        raise Misuse(
            f"{where}.select = {arm.select!r} leaves none of {len(dataset.queries)} queries",
            reason="no-query",
        )
    made = Plan(name, arm, workspace.root, dataset, queries, limit, cutoffs, recipe)
    faults = [
        Fault(
            where,
            f"filter_from hides {document!r}, which is judged relevant to {query.id!r}: "
            f"the query asks for {wanted!r} and the document has "
            f"{ ({key: dataset.attributes.get(document, {}).get(key) for key in wanted})!r}",
        )
        for query in queries
        if (wanted := made.filter_for(query))
        for document, grade in dataset.judgements.get(query.id, {}).items()
        if grade > 0 and not dataset.visible(document, query, wanted)
    ]
    for query in queries:
        for key, value in (made.filter_for(query) or {}).items():
            if not isinstance(value, str):
                faults.append(
                    Fault(
                        where, f"filter_from {key!r}: query {query.id!r} has {value!r}, which is not a text"
                    )
                )
    if faults:
        raise Faults(faults, consequence=CONSEQUENCE)
    return made


def _selected(query: Query, arm: Arm) -> bool:
    return all(query.metadata.get(key) in values for key, values in arm.select.items())


def _sources(definition: Definition | None) -> list[str]:
    recipe = definition.corpus if definition is not None else None
    return [source.name for source in recipe.source] if recipe is not None else []


def prepare(
    workspace: Workspace,
    arms: Mapping[str, Arm],
    overrides: Mapping[str, Path] | None = None,
    told: Callable[[Lock], None] = lambda lock: None,
) -> list[Plan]:
    """Reconstruct and load the sets of some arms, each once, and resolve the arms against them.

    Every fault of every set is found before anything is measured.

    Raises:
        Faults, Misuse: what is wrong with the sets or the arms.
        CouldNot: a source is absent, or has lost a judged document.
    """
    from eval_core.reconstruct import check_overrides, overrides_from_environment, reconstruct

    definitions = {
        folder: read_definition(folder)
        for folder in {workspace.dataset_folder(a): None for a in arms.values()}
    }
    sources = {folder: _sources(definition) for folder, definition in definitions.items()}
    known = list(dict.fromkeys(name for names in sources.values() for name in names))
    check_overrides(overrides or {}, known)
    chosen = {**overrides_from_environment(known), **(overrides or {})}
    corpora: dict[Path, tuple[Path | None, str]] = {}
    names: dict[str, Path] = {}
    for folder, definition in definitions.items():
        corpora[folder] = (None, NO_RECIPE)
        if definition is None or definition.corpus is None:
            continue
        taken = names.setdefault(definition.name, folder)
        if taken != folder:
            raise Misuse(
                f"{taken} and {folder} are both called {definition.name!r}; rename one", reason="name-taken"
            )
        out = workspace.output("corpora") / definition.name
        lock = reconstruct(
            folder,
            definition,
            out,
            overrides={name: path for name, path in chosen.items() if name in sources[folder]},
            cache=workspace.output("cache"),
        )
        told(lock)
        corpora[folder] = (out / "corpus.jsonl", lock.recipe)
    loaded: dict[tuple[Path, str | None, tuple[str, ...]], Dataset] = {}
    faults: list[Fault] = []
    plans: list[Plan] = []
    for name, arm in arms.items():
        folder = workspace.dataset_folder(arm)
        key = (folder, arm.split, arm.filter_from)
        try:
            if key not in loaded:
                loaded[key] = load(folder, split=arm.split, corpus=corpora[folder][0], keys=arm.filter_from)
            plans.append(plan(workspace, name, arm, loaded[key], corpora[folder][1]))
        except Faults as error:
            faults += [fault for fault in error.faults if fault not in faults]
    if faults:
        raise Faults(faults, consequence=CONSEQUENCE)
    return plans
