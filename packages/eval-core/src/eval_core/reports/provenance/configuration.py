"""A measured run held against what `eval.toml` says now: numbers of another configuration are divergent.

Read with `tomllib` and not with the models of `config`, since the gate does it at every start.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from eval_core.errors import Misuse
from eval_core.files import digest_file, read_text
from eval_core.reports.provenance import DIVERGES, NOTHING, Change, Finding, changes, fingerprint_of, told
from eval_core.reports.report import Report

#: What holds where neither the arm nor its set says. The models of `definition` say the same, and a test compares them.
DEFAULTS: Mapping[str, Any] = {"limit": 10, "cutoffs": [1, 5, 10]}


class Run(NamedTuple):
    """What a configuration is held against, of a report or of a line of evidence.

    Attributes:
        arm: its name.
        set: the set's name.
        task: the parts of the task key.
        system: the parts of the system key.
        fingerprint: of what produced it.
        metas: what is still known of its queries' metadata.
    """

    arm: str
    set: str
    task: Mapping[str, Any]
    system: Mapping[str, Any]
    fingerprint: str
    metas: Iterable[Mapping[str, Any]] = ()

    @classmethod
    def of(cls, report: Report) -> Run:
        """The run of a report."""
        task, system = report.task.parts, report.system.parts
        metas = [row.meta for row in report.rows]
        return cls(report.arm, report.dataset.name, task, system, fingerprint_of(report), metas)


def against_config(
    run: Run,
    arm: Mapping[str, Any],
    definition: Mapping[str, Any] | None = None,
    root: Path | None = None,
) -> list[Finding]:
    """Say where a run was produced otherwise than an arm is configured now; nothing where it was not.

    Whether `select` was wider when it was measured is not told here, but by the queries of the task key.

    Args:
        run: of the arm.
        arm: the arm's table of eval.toml, as TOML gives it; it need not be valid.
        definition: the table of the set's dataset.toml, empty where it has none: what holds where the arm does not
            say its limit and cut-offs. None: not known, and then those are not compared.
        root: the folder of eval.toml. Where given, the files that options name by a relative path are digested, and
            must be those that answered.
    """
    task, system = run.task, run.system
    pairs: list[Change] = [
        ("backend", system.get("backend"), arm.get("backend", NOTHING)),
        ("options", system.get("options"), arm.get("options", {})),
        ("expand", system.get("expand"), arm.get("expand", False)),
        ("filter_from", task.get("filter"), _names(arm.get("filter_from", []))),
    ]
    for key in ("limit", "cutoffs"):
        if key in arm:
            pairs.append((key, task.get(key), arm[key]))
        elif definition is not None:
            pairs.append((key, task.get(key), definition.get(key, DEFAULTS[key])))
    if "split" in arm:
        pairs.append(("split", task.get("split"), arm["split"]))
    if definition and "name" in definition:
        pairs.append(("dataset", run.set, definition["name"]))
    found = [change for name, before, now in pairs for change in changes(before, now, name)]
    found += _selection(run.metas, arm.get("select", {}))
    found += _files(system.get("files"), root) if root is not None else []
    if not found:
        return []
    message = f"{run.arm}: was produced otherwise than eval.toml says now: {told(found)}"
    return [Finding(DIVERGES, message, run.fingerprint)]


def _names(value: Any) -> Any:
    """`filter_from` as the task key has it: order and repetition mean nothing."""
    strings = isinstance(value, list) and all(isinstance(name, str) for name in value)
    return sorted(set(value)) if strings else value


def _selection(metas: Iterable[Mapping[str, Any]], select: Any) -> Iterator[Change]:
    """The queries that the arm does not select now, by what is still known of their metadata."""
    for key, values in select.items() if isinstance(select, Mapping) else ():
        if not isinstance(values, list):
            continue
        for meta in metas:
            if key in meta and meta[key] not in values:
                yield f"select.{key}", meta[key], values
                break


def _files(files: Any, root: Path) -> Iterator[Change]:
    for name, before in files.items() if isinstance(files, Mapping) else ():
        path = Path(name)
        # An absolute path is another machine's; what lies in the workspace is what the repository answers with.
        if not path.is_absolute() and (now := _digest_of(root / path)) != before:
            yield f'file "{name}"', before, NOTHING if now is None else now


def _digest_of(path: Path) -> str | None:
    try:
        return digest_file(path) if path.is_file() else None
    except OSError:
        return None


class Configured(NamedTuple):
    """`eval.toml` as it stands, read without its models, since a gate's start-up is a feature."""

    path: Path
    arms: Mapping[str, Any]
    default: Mapping[str, Any] = {}

    def against(self, run: Report | Run) -> list[Finding]:
        """Hold a run against its arm here; see `against_config`."""
        if not isinstance(run, Run):
            run = Run.of(run)
        arm = self.arms.get(run.arm)
        if not isinstance(arm, Mapping):
            message = f"{self.path}: has no arm {run.arm!r}, so nothing says how its numbers are produced"
            return [Finding(DIVERGES, message, run.fingerprint)]
        root, dataset = self.path.parent, arm.get("dataset")
        definition = _definition(root / dataset / "dataset.toml") if isinstance(dataset, str) else None
        return against_config(run, arm, definition, root)


def configuration(path: Path) -> Configured:
    """Read the arms of `eval.toml`.

    Raises:
        Misuse: there is no such file, it is not TOML, or it has no table of arms.
    """
    table = _toml(read_text(path, "configuration"), path, "configuration")
    arms, default = table.get("arms"), table.get("default", {})
    if not isinstance(arms, Mapping):
        raise Misuse("file-malformed", "has no [arms.NAME]", file=path)
    return Configured(path, arms, default if isinstance(default, Mapping) else {})


def _definition(path: Path) -> Mapping[str, Any] | None:
    """The table of a dataset.toml: empty in a plain BEIR folder, None where there is no folder or it is not TOML."""
    if not path.exists():
        return {} if path.parent.is_dir() else None
    try:
        return _toml(read_text(path, "dataset definition"), path, "dataset definition")
    except Misuse:
        return None


def _toml(text: str, path: Path, what: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError, OverflowError) as error:
        raise Misuse("file-malformed", f"the {what} is not TOML: {error}", file=path) from error
