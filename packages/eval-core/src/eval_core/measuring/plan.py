"""An arm resolved against its set: what will be asked, of what, and the two keys that say so."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval_core import backend as backends
from eval_core.backend import Backend
from eval_core.config import OUTPUT, Arm, Workspace
from eval_core.errors import UNSET, CouldNot, Fault, Faults, Misuse, did_you_mean
from eval_core.files import canonical, digest_file
from eval_core.measuring.capabilities import lack, lacking
from eval_core.reconstruct.globs import glob_fault
from eval_core.reconstruct.lock import NO_RECIPE, Lock
from eval_core.reports.keys import SYSTEM_PARTS, TASK_PARTS, Key, task_digests
from eval_core.reports.models import LATENCY_SAMPLES
from eval_core.scoring import metrics
from eval_core.sets.dataset import CONSEQUENCE, Dataset, Query, load
from eval_core.sets.definition import Definition, check_cutoffs, read_definition
from eval_core.sets.drift import remember
from eval_core.sets.limits import Limits
from eval_core.sets.scan import scan

#: A larger corpus is not scanned for the limits of its set: that would cost more than indexing it.
SCANNED_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Plan:
    """An arm with everything resolved: what will be asked, of what, how often.

    Attributes:
        timed: whether times count: answers are warmed up and repeated.
        outside: says why a document cannot be an answer, at the moment that it is one; None: by the set alone.
    """

    name: str
    arm: Arm
    root: Path
    dataset: Dataset
    queries: tuple[Query, ...]
    limit: int
    cutoffs: tuple[int, ...]
    recipe: str
    limits: Limits | None = None
    timed: bool = True
    outside: Callable[[str], str | None] | None = None

    @property
    def headline(self) -> str:
        """The measure that floors are made for first."""
        return self.dataset.definition.headline_at(self.cutoffs)

    @property
    def repetitions(self) -> int:
        """Timed passes over the queries: at least 3, and so many that a small set has the samples of a p95."""
        if not self.timed:
            return 1
        return self.arm.repetitions or max(3, math.ceil(LATENCY_SAMPLES / max(1, len(self.queries))))

    def filter_for(self, query: Query) -> dict[str, str] | None:
        """The filter that goes with a query: its own values of the arm's `filter_from` keys."""
        wanted = {key: query.metadata[key] for key in self.arm.filter_from if key in query.metadata}
        return wanted or None

    def visible(self, document: str, query: Query) -> bool:
        """Whether the query can find the document: whether it is inside its scope, filter and time."""
        return self.dataset.visible(document, query, self.filter_for(query))

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
            "filter": sorted(set(self.arm.filter_from)),
            "scale": 0,
            "metrics": metrics.VERSION,
            "cutoffs": list(self.cutoffs),
        }
        return Key.of({name: parts[name] for name in TASK_PARTS})

    def system(self, backend: Backend, scoping: str) -> Key:
        """The system key of this arm served by `backend`.

        Raises:
            CouldNot: the backend cannot say what it is.
        """
        try:
            implementation = json.loads(canonical(dict(backend.describe())))
        except Exception as error:
            # Other people's code, as in searching: its fault costs this arm, and not the others.
            raise CouldNot(
                "backend-broken",
                f"describe() gives no table of JSON values: {type(error).__name__}: {error}",
                subject=f"backend {self.arm.backend!r}",
            ) from error
        parts = {
            "backend": self.arm.backend,
            "options": self.arm.options,
            "files": _files_named(self.arm.backend_options, self.root) | files_matched(self.arm, self.root),
            "scoping": scoping,
            "expand": self.arm.expand,
            "implementation": implementation,
        }
        return Key.of({name: parts[name] for name in SYSTEM_PARTS})


def _files_named(options: Any, root: Path) -> dict[str, str]:
    """SHA-256 of each file that an option names, from the workspace where relative: an adapter's code is its system."""
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
            if os.path.isfile(path):
                found[options] = digest_file(path)
    return found


def files_matched(arm: Arm, root: Path) -> dict[str, str]:
    """SHA-256 of each file that a glob of `options.files` matches, by its path from the workspace."""
    found = {path for glob in arm.files for path in root.glob(glob) if path.is_file()}
    return {path.relative_to(root).as_posix(): digest_file(path) for path in sorted(found)}


def resolve(workspace: Workspace, name: str, arm: Arm, dataset: Dataset, recipe: str) -> Plan:
    """Resolve an arm against its loaded set.

    Raises:
        Faults: cut-offs past the limit, a selection that leaves no query, a filter from what no query has, or one that
            hides a positive judgement.
    """
    limit = arm.limit if arm.limit is not None else dataset.definition.limit
    cutoffs = arm.cutoffs if arm.cutoffs is not None else dataset.definition.cutoffs
    faults: list[Fault] = []

    def fault(key: str, what: str, value: object = UNSET, code: str = "input-invalid") -> None:
        faults.append(workspace.fault(name, key, what, value=value, code=code))

    try:
        check_cutoffs(cutoffs, limit)
    except ValueError as error:
        fault("limit" if arm.cutoffs is None else "cutoffs", str(error), code="cutoffs-invalid")
    else:
        if problem := metrics.headline_problem(dataset.definition.headline_at(cutoffs), cutoffs, limit):
            key = "limit" if arm.limit is not None else "cutoffs"
            fault(
                key,
                f"the headline of {dataset.definition.name} cannot be measured: {problem}",
                code="cutoffs-invalid",
            )
    for glob in arm.files:
        if wrong := glob_fault(glob):
            fault("options.files", wrong)
        elif not any(path.is_file() for path in workspace.root.glob(glob)):
            fault("options.files", f"the glob {glob!r} matches no file below {str(workspace.root)!r}")
    known = {key for query in dataset.queries for key in query.metadata}
    for key in arm.select:
        if key not in known:
            fault("select", f"no query has {key!r}{did_you_mean(key, known)}", arm.select)
    absent: set[str] = set()
    for key in arm.filter_from:
        if key not in known:
            # The arm would measure without a filter, and look like one with it.
            fault("filter_from", f"no query has {key!r}{did_you_mean(key, known)}", list(arm.filter_from))
        elif not any(key in has for has in dataset.attributes.values()):
            what = f"no document has {key!r}, so that it would hide all of them from the queries that have it"
            fault("filter_from", what, list(arm.filter_from))
            absent.add(key)
    queries = tuple(query for query in dataset.queries if _selected(query, arm))
    if not queries and dataset.queries and not faults:
        fault("select", f"leaves none of {len(dataset.queries)} queries", arm.select, "no-query")
    made = Plan(name, arm, workspace.root, dataset, queries, limit, cutoffs, recipe)
    for query in queries:
        wanted = {key: value for key, value in (made.filter_for(query) or {}).items() if key not in absent}
        for key, value in wanted.items():
            if not isinstance(value, str):
                fault("filter_from", f"{key!r} of query {query.id!r} is {value!r}, which is not a text")
        if not wanted or not all(isinstance(value, str) for value in wanted.values()):
            continue
        for document, grade in dataset.judgements.get(query.id, {}).items():
            if grade > 0 and not dataset.visible(document, query, wanted):
                has = dataset.attributes.get(document, {})
                fault(
                    "filter_from",
                    f"hides {document!r}, which is judged relevant to {query.id!r}: the query asks for {wanted!r} "
                    f"and the document has { ({key: has.get(key) for key in wanted})!r}",
                )
    if faults:
        raise Faults(faults, consequence=CONSEQUENCE)
    return made


def backend_faults(workspace: Workspace, arms: Mapping[str, Arm]) -> list[Fault]:
    """Say, with the line of eval.toml, which arms name a backend that is not there, that does not take their options or
    that cannot do what they ask of it.

    A backend that is there and fails is left to measuring, where it costs its own arm alone.
    """
    faults: list[Fault] = []
    for name, arm in arms.items():
        try:
            backend = backends.make(arm.backend, arm.backend_options)
            for key, capability in lacking(
                arm, workspace.dataset_folder(arm), frozenset(backend.capabilities)
            ):
                value = getattr(arm, key)
                value = list(value) if isinstance(value, tuple) else value
                what = lack(arm, capability)
                faults.append(workspace.fault(name, key, what, value=value, code="capability-missing"))
            with contextlib.suppress(Exception):
                backend.close()  # nothing was done with it; measuring tells of one that cannot be closed
        except Misuse as error:
            of_backend = error.code in ("backend-unknown", "backend-ambiguous")
            key, option = ("backend", None) if of_backend else ("options", error.details.key)
            faults.append(workspace.fault(name, key, error.message, code=error.code, at=option))
        except CouldNot:
            continue
    return faults


def _selected(query: Query, arm: Arm) -> bool:
    return all(query.metadata.get(key) in values for key, values in arm.select.items())


def _sources(definition: Definition | None) -> list[str]:
    recipe = definition.corpus if definition is not None else None
    return [source.name for source in recipe.source] if recipe is not None else []


def known_sources(workspace: Workspace, arms: Mapping[str, Arm]) -> list[str]:
    """The names of the sources of the arms' sets, for overrides.

    Raises:
        Faults, Misuse: a definition cannot be read.
    """
    folders = {workspace.dataset_folder(arm): None for arm in arms.values()}
    return list(dict.fromkeys(name for folder in folders for name in _sources(read_definition(folder))))


def prepare(
    workspace: Workspace,
    arms: Mapping[str, Arm],
    overrides: Mapping[str, Path] | None = None,
    told: Callable[[Lock], None] = lambda lock: None,
    found: Iterable[Fault] = (),
) -> list[Plan]:
    """Reconstruct and load the sets of some arms, each once, and resolve the arms against them.

    Args:
        workspace: where they stand.
        arms: which.
        overrides: other places for sources, by name.
        told: hears of each lock as it is made.
        found: faults that are known already, such as those of the backends; they are told with the rest.

    Every fault of every set and arm is found before anything is measured.

    Raises:
        Faults: what is wrong with the sets or the arms.
        Misuse: an override that fits no source, or two sets of one name.
        CouldNot: a source is absent, or has lost a judged document.
    """
    from eval_core.reconstruct import check_overrides, overrides_from_environment

    faults = _Gathered(found)
    definitions: dict[Path, Definition | None] = {}
    for folder in {workspace.dataset_folder(arm): None for arm in arms.values()}:
        with faults:
            definitions[folder] = read_definition(folder)
    known = list(dict.fromkeys(name for one in definitions.values() for name in _sources(one)))
    check_overrides(overrides or {}, known)
    chosen = {**overrides_from_environment(known), **(overrides or {})}
    corpora: dict[Path, tuple[Path | None, str]] = {}
    names: dict[str, Path] = {}
    try:
        for folder, definition in definitions.items():
            corpora[folder] = (None, NO_RECIPE)
            if definition is None or definition.corpus is None:
                continue
            taken = names.setdefault(definition.name, folder)
            if taken != folder:
                raise Misuse(
                    "dataset-name-twice",
                    f"has the name {definition.name!r}, as {taken} does; give one of them another name",
                    file=folder,
                )
            if not all(source.type == "inline" for source in definition.corpus.source):
                # Without its corpus the set cannot be read on. One of inline documents alone is read as it lies.
                del corpora[folder]
            with faults:
                corpora[folder] = _corpus(workspace, folder, definition, chosen, told)
        loaded: dict[tuple[Path, str | None, tuple[str, ...]], Dataset] = {}
        scanned: dict[object, Limits | None] = {}
        plans: list[Plan] = []
        for name, arm in arms.items():
            folder = workspace.dataset_folder(arm)
            if folder not in corpora:
                continue
            corpus, recipe = corpora[folder]
            key = (folder, arm.split, arm.filter_from)
            with faults.of(workspace, name):
                if key not in loaded:
                    loaded[key] = load(folder, split=arm.split, corpus=corpus, keys=arm.filter_from)
                made = resolve(workspace, name, arm, loaded[key], recipe)
                asked = (key, tuple(query.id for query in made.queries))
                if asked not in scanned:
                    scanned[asked] = _limits(made)
                plans.append(dataclasses.replace(made, limits=scanned[asked]))
    except CouldNot as error:
        # What can be mended here comes before what is missing elsewhere.
        if faults.found:
            raise Faults(faults.found, consequence=CONSEQUENCE) from error
        raise
    if faults.found:
        raise Faults(faults.found, consequence=CONSEQUENCE)
    return plans


def _limits(made: Plan) -> Limits | None:
    """The limits of what is asked, unless the corpus is too large to be scanned for them."""
    if made.dataset.corpus.path.stat().st_size > SCANNED_BYTES:
        return None
    return scan(made.dataset.corpus, made.queries, made.dataset.judgements, made.visible)


def _corpus(
    workspace: Workspace,
    folder: Path,
    definition: Definition,
    overrides: Mapping[str, Path],
    told: Callable[[Lock], None],
) -> tuple[Path, str]:
    """Rebuild a set's corpus: its file, and the digest of the recipe."""
    from eval_core.reconstruct import reconstruct

    own = _sources(definition)
    out = workspace.output("corpora") / definition.name
    lock = reconstruct(
        folder,
        definition,
        out,
        overrides={name: path for name, path in overrides.items() if name in own},
        cache=workspace.output("cache"),
    )
    told(lock)
    if not lock.pinned:
        remember(out / "corpus.jsonl", workspace.root / OUTPUT)
    return out / "corpus.jsonl", lock.recipe


class _Gathered:
    """Gathers the faults of one `with` block after another, each once."""

    def __init__(self, found: Iterable[Fault]) -> None:
        self.found: list[Fault] = list(found)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, Faults):
            return False
        self.found += [fault for fault in error.faults if fault not in self.found]
        return True

    @contextlib.contextmanager
    def of(self, workspace: Workspace, arm: str) -> Iterator[None]:
        """Gather, and place at the arm's line what is wrong with the files that the arm names."""
        keys = {"split-unknown": "split", "dataset-missing": "dataset"}
        with self:
            try:
                yield
            except Misuse as error:
                if error.code not in keys:
                    raise
                raise Faults(
                    [workspace.fault(arm, keys[error.code], error.message, code=error.code)]
                ) from error
