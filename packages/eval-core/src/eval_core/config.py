"""`eval.toml`: the arms of a workspace, each one backend configuration measured on one set."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, JsonValue, field_validator, model_validator

from eval_core.errors import UNSET, EvalError, Fault, Faults, Misuse, did_you_mean, unknown_arm
from eval_core.files import read_text
from eval_core.models import NAME, Closed, line_in, read_toml
from eval_core.sets.definition import check_cutoffs

#: Where measuring writes and every reader looks, below the workspace.
OUTPUT = Path(".eval")

CONFIG = Path("eval.toml")


#: Metadata of a query that say by themselves which documents it may find.
_BY_ITSELF = ("scope", "time", "exclude")


class Arm(Closed):
    """One table `[arms."NAME"]`."""

    dataset: str = Field(description="The dataset folder, relative to eval.toml.", min_length=1)
    backend: str = Field(description="A backend's name, as `eval-backends list` shows it.", min_length=1)
    options: dict[str, JsonValue] = Field(
        default={},
        description="Passed to the backend, but for `files`: globs of files, relative to eval.toml, whose contents are "
        "a part of the system, such as what a command imports.",
    )
    split: str | None = Field(default=None, description="qrels/SPLIT.tsv; the only one, or test.")
    limit: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        default=None, description="How many documents are asked for; the dataset's."
    )
    cutoffs: Annotated[tuple[Annotated[int, Field(ge=1, le=10_000)], ...], Field(min_length=1)] | None = (
        Field(default=None, description="The k of the measures, rising; the dataset's.")
    )
    filter_from: tuple[str, ...] = Field(
        default=(), description="Query metadata that filters: documents must have the same value."
    )
    select: dict[str, tuple[str, ...]] = Field(
        default={}, description="Query metadata values to measure on, such as { category = ['graph'] }."
    )
    expand: bool = Field(default=False, description="Ask the backend to expand its answer.")
    repetitions: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        default=None, description="Timed passes over the queries: 3, or as many as give a p95 its samples."
    )
    lane: Literal["pull-request", "owner"] = Field(
        default="pull-request", description="owner: measured only when asked for by name or by --lane owner."
    )

    @property
    def backend_options(self) -> dict[str, JsonValue]:
        """The options that the backend gets."""
        return {name: value for name, value in self.options.items() if name != "files"}

    @property
    def files(self) -> tuple[str, ...]:
        """The globs of files whose contents are a part of the system."""
        globs = self.options.get("files", [])
        return tuple(map(str, globs)) if isinstance(globs, list) else ()

    @field_validator("options")
    @classmethod
    def _globs(cls, options: dict[str, JsonValue]) -> dict[str, JsonValue]:
        globs = options.get("files", [])
        if not isinstance(globs, list) or not all(isinstance(glob, str) for glob in globs):
            raise ValueError(f"files = {globs!r}: give a list of globs such as ['lib/**/*.mjs']")
        return options

    @field_validator("filter_from")
    @classmethod
    def _filters(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        if own := [key for key in keys if key in _BY_ITSELF]:
            what = f"{own[0]!r} is no filter: a query's {own[0]} applies by itself, to every backend; leave it out"
            raise ValueError(what)
        return keys

    @model_validator(mode="after")
    def _cutoffs_within_limit(self) -> Arm:
        if self.cutoffs is not None and self.limit is not None:
            check_cutoffs(self.cutoffs, self.limit)
        return self


Texts = tuple[Annotated[str, Field(min_length=1)], ...]


class Audit(Closed):
    """What `eval-tier audit` is told of a repository: a table `[audit]`, here or in policy/fleet.toml.

    A declaration is looked for in the files; what rests on one is said to be declared.
    """

    measure: Texts = Field(
        default=(), description="Commands that measure, as they are typed: `python eval.py`."
    )
    gate: Texts = Field(default=(), description="Commands that grade what was measured and fail on a breach.")
    floors: Texts = Field(default=(), description="The files that hold the floors (TOML, JSON or YAML).")
    inputs: Texts = Field(default=(), description="The files of the judged queries, and other inputs in git.")
    mode: Literal["measure", "snapshot"] = Field(
        default="measure",
        description="snapshot: the gate grades a committed snapshot, which another job measures anew.",
    )
    provenance: Texts = Field(default=(), description="Files that say what produced the graded numbers.")
    publish: Texts = Field(
        default=(), description="Commands that fail where an outward number is another one."
    )
    jobs: Texts = Field(
        default=(),
        description="FILE:JOB, a job of a CI file of another forge, such as `.gitlab-ci.yml:gate`.",
    )
    states: dict[str, Annotated[str, Field(min_length=1)]] = Field(
        default={},
        description="By rule, why it holds where no file can show it: T202 = 'runs 18 and 21, both of CI'.",
    )


class EvalFile(Closed):
    """The whole of `eval.toml`."""

    arms: dict[str, Arm] = Field(min_length=1)
    audit: Audit | None = Field(default=None, description="What the audit of this repository is told.")
    default: dict[str, str] = Field(
        default={},
        description="By dataset folder, the arm that answers by default; `eval-gate promote` moves it.",
    )


@dataclass(frozen=True, slots=True)
class Workspace:
    """A loaded `eval.toml`: `root` is its folder, which datasets and options are relative to."""

    root: Path
    path: Path
    arms: dict[str, Arm]
    default: Mapping[str, str] = field(default_factory=dict)

    def output(self, kind: str) -> Path:
        """The folder for `corpora`, `runs` or `reports`."""
        return self.root / OUTPUT / kind

    def dataset_folder(self, arm: Arm) -> Path:
        """Where the arm's dataset lies."""
        return self.root / arm.dataset

    def line(self, arm: str, *keys: str) -> int | None:
        """The line of an arm, or of a key of it, in `eval.toml`; None where the file is not there to be read."""
        try:
            return line_in(read_text(self.path, "configuration"), ["arms", arm, *keys])
        except Misuse:
            return None

    def fault(
        self,
        arm: str,
        key: str,
        what: str,
        *,
        value: Any = UNSET,
        code: str = "input-invalid",
        at: str | None = None,
    ) -> Fault:
        """A fault of an arm's key, at its line; `at` is a key inside of it that the line is of."""
        line = self.line(arm, *key.split("."), *([] if at is None else [at]))
        return Fault(what, code=code, file=self.path, line=line, key=f'arms."{arm}".{key}', value=value)

    def chosen(self, names: tuple[str, ...], lane: str | None = "pull-request") -> dict[str, Arm]:
        """The arms called by name, else all of the lane (`None`: every lane), in the file's order.

        Raises:
            Misuse: a name that is no arm.
        """
        for name in names:
            if name not in self.arms:
                raise unknown_arm(name, self.arms, file=self.path)
        if names:
            return {name: arm for name, arm in self.arms.items() if name in names}
        return {name: arm for name, arm in self.arms.items() if lane is None or arm.lane == lane}


def arms_in(config: Path) -> list[str]:
    """The arms of eval.toml, for a message; none of a file that is absent or has faults."""
    try:
        return list(load_workspace(config).arms)
    except EvalError:
        return []


def command(*words: str, config: Path) -> str:
    """A command line for the workspace of `config`, as it is typed in the current folder."""
    return shlex.join([*words, *(["--config", str(config)] if config != CONFIG else [])])


def missing(path: Path) -> Misuse:
    """The error for an eval.toml that is not there."""
    mend = "Run in the folder that holds eval.toml, or say --config FILE."
    return Misuse("config-missing", "there is no such file", file=path, mend=mend)


def load_workspace(path: Path = CONFIG) -> Workspace:
    """Read `eval.toml`.

    Raises:
        Misuse: there is none, or it is not TOML.
        Faults: it does not fit; every fault is listed, with its line.
    """
    if not os.path.exists(path):
        raise missing(path)
    content = read_toml(path, EvalFile, "configuration")
    workspace = Workspace(path.parent, path, dict(content.arms), dict(content.default))
    strange = [name for name in content.arms if not re.fullmatch(NAME.strip("^$"), name)]
    if strange:
        raise Faults(
            Fault(
                "a name consists of lower-case letters, digits, and . _ -",
                file=path,
                line=workspace.line(name),
                key=f"arms.{name!r}",
            )
            for name in strange
        )
    if wrong := list(_default_faults(workspace)):
        raise Faults(wrong)
    return workspace


class Retriever(NamedTuple):
    """What a command is told to search with: an arm of eval.toml, or a backend as it is, without options.

    `workspace.root` is the folder that its options are relative to.
    """

    name: str
    arm: Arm
    workspace: Workspace
    is_arm: bool


def retrievers(specs: Iterable[str], config: Path = CONFIG) -> list[Retriever]:
    """The retrievers that are named, in their order: `arm:NAME`, `backend:NAME`, or a name, which is that of a backend
    or else of an arm. Neither case nor white space around it matters. An arm that shares its name with a
    backend is called `arm:NAME` in what is returned, too.

    Raises:
        Misuse: a name that is neither, or both; an arm is asked for, and there is no eval.toml.
        Faults: eval.toml does not fit.
        CouldNot: the backend cannot be imported.
    """
    workspace = load_workspace(config) if os.path.exists(config) else None
    return [_retriever(spec.strip(), workspace, config) for spec in specs]


def _retriever(spec: str, workspace: Workspace | None, config: Path) -> Retriever:
    from eval_core import backend as backends

    kind, _, name = spec.partition(":")
    if kind not in ("arm", "backend"):
        kind, name = "", spec
    known, arms = backends.names(), workspace.arms if workspace else {}
    if name not in known and name.lower() in (*known, *arms):
        name = name.lower()
    if not kind and name in arms and name in known:
        what = f"{name!r} is the name of a backend and of an arm of {config}"
        raise Misuse("retriever-ambiguous", what, mend=f"Write arm:{name} or backend:{name}.")
    if kind == "arm" or (not kind and name in arms):
        if workspace is None:
            raise missing(config)
        if name not in arms:
            raise unknown_arm(name, arms, file=config)
        return Retriever(f"arm:{name}" if name in known else name, arms[name], workspace, True)
    try:
        backends.load(name)
    except Misuse as error:
        if kind or not arms or error.code != "backend-unknown":
            raise
        hint = did_you_mean(name, [*known, *arms])
        what = f"there is no backend {name!r}{hint}  (backends: {', '.join(known)}; arms: {', '.join(arms)})"
        raise Misuse("backend-unknown", what) from error
    arm = Arm(dataset=".", backend=name)
    return Retriever(name, arm, Workspace(Path(), config, {name: arm}), False)


def same_folder(one: str, other: str) -> bool:
    """Whether two dataset folders are written for the same one: `./sets/a/` is `sets/a`."""
    return PurePosixPath(one) == PurePosixPath(other)


def _default_faults(workspace: Workspace) -> Iterator[Fault]:
    """Defaults that are no arm of their dataset, and datasets that have two."""
    text = read_text(workspace.path, "configuration") if workspace.default else ""
    seen: dict[PurePosixPath, str] = {}
    for dataset, name in workspace.default.items():
        line = line_in(text, ["default", dataset])
        first = seen.setdefault(PurePosixPath(dataset), dataset)
        of_it = [arm for arm, table in workspace.arms.items() if same_folder(table.dataset, dataset)]
        listed = f"  (arms of it: {', '.join(of_it) or 'none'})"
        if first != dataset:
            what = f"is the same folder as default.{first!r}; keep one of them"
            yield Fault(what, file=workspace.path, line=line, key=f"default.{dataset!r}")
        elif name not in workspace.arms:
            hint = did_you_mean(name, workspace.arms)
            what = f"there is no such arm{hint}{listed}"
            yield Fault(what, file=workspace.path, line=line, key=f"default.{dataset!r}", value=name)
        elif name not in of_it:
            other = workspace.arms[name].dataset
            what = f"is an arm of {other!r}, not of it{listed}"
            yield Fault(what, file=workspace.path, line=line, key=f"default.{dataset!r}", value=name)
