"""`eval-core validate`: all that is wrong with an input, found in one reading."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_core.cli.workspace import config_option

if TYPE_CHECKING:
    from eval_core.errors import EvalError
    from eval_core.reports.report import Report
    from eval_core.sets.dataset import Dataset
    from eval_core.sets.definition import Definition

_EPILOG = """\b
Examples:
  eval-core validate datasets/memory               a set: definition, corpus, queries, judgements of all splits
  eval-core validate datasets/memory --split test  of one split
  eval-core validate eval.toml                     a configuration
  eval-core validate .eval/reports/*.json          reports, recomputed from their rows, and their provenance
  eval-core validate policy/evidence/*.jsonl       evidence, recomputed line by line

Exit codes: 0 sound, 1 a report or evidence that does not hold, 2 a set or configuration with faults.
"""


@click.command(epilog=_EPILOG)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("--split", help="Of a set, qrels/SPLIT.tsv alone; all of them where it is not given.")
@config_option("The workspace: beside it, .eval holds the corpora.")
def validate(paths: tuple[Path, ...], split: str | None, config: Path) -> int:
    """Check sets, reports, evidence and eval.toml, and say everything that is wrong, with file and line."""
    from eval_core.console import count, utf8
    from eval_core.errors import EvalError
    from eval_core.faults import unmerged

    if split is not None and not any(path.is_dir() for path in paths):
        raise click.UsageError("--split goes with the folder of a set")
    worst = 0
    for path in paths:
        try:
            found = _check(path, split, config.parent)
        except EvalError as error:
            error = unmerged(error) or error
            click.echo(utf8(str(error) if _names(error, path) else f"{path}: {error}"))
            worst = max(worst, error.exit_code)
        else:
            for line in found:
                click.echo(utf8(f"{path}  sound: {line}"))
    if worst and len(paths) > 1:
        click.echo(f"{count(len(paths), 'input')} read.", err=True)
    return worst


def _names(error: EvalError, path: Path) -> bool:
    """Whether the error says by itself which file it is about: the one that was given, or one inside of it."""
    from eval_core.errors import Faults

    about = [fault.file for fault in error.faults] if isinstance(error, Faults) else [error.details.file]
    return any(file is not None and Path(file).is_relative_to(path) for file in about)


def _check(path: Path, split: str | None, root: Path) -> list[str]:
    from eval_core.errors import Misuse

    if not path.exists() and path.suffix != ".json":
        raise Misuse("file-missing", "there is no such file or folder", file=path)
    if (part := _part(path)) is not None:
        raise part
    if path.is_dir():
        return _set(path, split, root)
    if path.name == "dataset.toml":
        from eval_core.sets.definition import read_definition

        definition = read_definition(path.parent)
        return [f"definition of set {definition.name}"] if definition else []
    if path.suffix == ".toml":
        return [_configuration(path)]
    if path.name.endswith(_SIDECAR):
        return [_of_sidecar(path)]
    if path.suffix == ".jsonl" and path.parent.name == EVIDENCE:
        return [_evidence(path)]
    if path.suffix != ".json":
        _refuse_other(path)
    return [_report(path)]


def _part(path: Path) -> EvalError | None:
    """The error of a path that is a part of what is validated, with the command for the whole."""
    from eval_core.errors import Misuse

    folder = path.parent.parent if path.parent.name == "qrels" else path.parent
    named = path.name in _PARTS or path.parent.name == "qrels"
    if named and (folder / "queries.jsonl").exists():
        mend = f"eval-core validate {folder}" + (f" --split {path.stem}" if path.suffix == ".tsv" else "")
        what = "is a part of a set, which is validated by its folder"
        return Misuse("part-of-a-set", what, file=path, mend=mend)
    policy = path if (path / "floors.toml").exists() else path.parent
    if policy == path or (path.suffix == ".toml" and policy.name == "policy"):
        what, mend = (
            "is the policy, or a part of it, which the gate reads",
            f"eval-gate check --policy {policy}",
        )
        return Misuse("part-of-the-policy", what, file=path, mend=mend)
    if path.is_dir() and not any((path / name).exists() for name in ("dataset.toml", *_PARTS)):
        ending = "jsonl" if path.name == EVIDENCE else "json"
        if next(path.glob(f"*.{ending}"), None) is not None:
            what, mend = "is not a set; name its files", f"eval-core validate {path}/*.{ending}"
            return Misuse("not-validated", what, file=path, mend=mend)
    return None


def _refuse_other(path: Path) -> None:
    """Refuse what cannot be a report: a run, a text, a program.

    Raises:
        Misuse: always, but of a file that begins as a report does.
    """
    from eval_core.compare.sides import first_line, is_run
    from eval_core.errors import Misuse

    if is_run(path):
        mend = f"eval-core score --run {path} --qrels FILE"
        raise Misuse("not-validated", "is a run, which is checked where it is scored", file=path, mend=mend)
    if path.suffix == ".jsonl" or not first_line(path)[0].lstrip().startswith(b"{"):
        raise Misuse("not-validated", "is not what `validate` checks", file=path)


def _set(folder: Path, split: str | None, root: Path) -> list[str]:
    """Check a set, each of its splits, or the one that is named; a fault that several have is told once."""
    from eval_core.config import OUTPUT
    from eval_core.console import count
    from eval_core.errors import Fault, Faults
    from eval_core.sets.dataset import CONSEQUENCE, load, splits_of
    from eval_core.sets.definition import read_definition

    definition = read_definition(folder)
    corpus = _rebuilt(folder, definition, root / OUTPUT)
    faults: list[Fault] = []
    told: list[str] = []
    splits: list[str | None] = [split] if split is not None else [*splits_of(folder)]
    for name in splits or [None]:
        try:
            dataset = load(folder, split=name, corpus=corpus)
        except Faults as error:
            faults += error.faults
            continue
        parts = [
            *([f"split {name}"] if len(splits) > 1 else []),
            count(dataset.documents, "document"),
            count(len(dataset.queries), "query", "queries"),
            count(sum(map(len, dataset.judgements.values())), "judgement"),
            f"corpus sha256 {dataset.corpus_digest[:12]}…",
        ]
        told.append("; ".join([", ".join(parts), *_unjudged(dataset), *dataset.blanks()]))
    if faults:
        raise Faults(dict.fromkeys(faults), consequence=CONSEQUENCE)
    return told


#: What a set holds beside its definition.
_PARTS = ("corpus.jsonl", "queries.jsonl", "timeline.jsonl", "links.jsonl", "concepts.json", "qrels")

#: How the name of a report's provenance ends, and where evidence lies; said here, so that a set is validated without
#: what reads reports.
_SIDECAR, EVIDENCE = ".intoto.jsonl", "evidence"


def _evidence(path: Path) -> str:
    """Check each line of an evidence file: digests, counts, ranks."""
    from eval_core.console import count
    from eval_core.policy.evidence import read_evidence

    lines = read_evidence(path)
    return f"{count(len(lines), 'run')} of arm {path.stem}, each recomputed from its entries"


def _report(path: Path) -> str:
    """Check a report, its intervals, and the provenance that lies beside it."""
    import os

    from eval_core.console import count
    from eval_core.errors import UNSET, Misuse, Refused
    from eval_core.reports import provenance
    from eval_core.reports.report import parse_report, report_bytes

    raw = report_bytes(path)
    try:
        report = parse_report(raw, path)
    except Refused as error:
        if error.details.key == "schema" and error.details.value is UNSET:
            raise Misuse(
                "not-validated", "is JSON without a schema, so it is not a report", file=path
            ) from error
        raise
    _check_intervals(path, report)
    told = f"arm {report.arm}, {count(report.n, 'query', 'queries')} scored, run {report.run_id}"
    beside = provenance.sidecar(path)
    if os.path.lexists(beside):
        for finding in provenance.check(report, raw, beside):
            raise Refused(finding.code, finding.message, mend=f"eval-core measure {report.arm}")
        return told
    return f"{told}; no provenance beside it"


def _of_sidecar(path: Path) -> str:
    """Check a report by its provenance, which says nothing that does not follow from the report."""
    from eval_core.errors import Refused

    report = path.with_name(path.name.removesuffix(_SIDECAR) + ".json")
    if not report.exists():
        raise Refused("report-missing", f"is the provenance of {report}, which does not exist", file=path)
    return f"provenance of {report.name}: {_report(report)}"


def _check_intervals(path: Path, report: Report) -> None:
    """Hold a report's intervals against those that its rows give.

    Raises:
        Refused: the first that is missing, not theirs, or off by more than the last decimal.
    """
    from eval_core.errors import Refused
    from eval_core.measuring.assemble import DECIMALS, bounded

    right = bounded(report.rows, report.measures)
    slices = [("overall", report.summary.overall, right.overall)]
    slices += [
        (f"categories.{name}", part, right.categories[name])
        for name, part in report.summary.categories.items()
    ]
    for where, given, due in slices:
        for name in {**given.intervals, **due.intervals}:
            ours, theirs = given.intervals.get(name), due.intervals.get(name)
            if (
                ours
                and theirs
                and all(abs(a - b) < 2 * 10**-DECIMALS for a, b in zip(ours, theirs, strict=True))
            ):
                continue
            said, gives = (
                "none" if bounds is None else f"{bounds[0]:g} to {bounds[1]:g}" for bounds in (ours, theirs)
            )
            raise Refused(
                "report-malformed",
                f"the interval is {said}, and the rows give {gives}",
                file=path,
                key=f"summary.{where}.{name}",
                mend=f"eval-core measure {report.arm}",
            )


def _configuration(path: Path) -> str:
    """Check `eval.toml`, its backends and their options, and that its sets are there."""
    from eval_core.config import load_workspace
    from eval_core.console import count
    from eval_core.errors import Faults
    from eval_core.measuring.plan import backend_faults

    workspace = load_workspace(path)
    faults = backend_faults(workspace, workspace.arms)
    for name, arm in workspace.arms.items():
        if not workspace.dataset_folder(arm).is_dir():
            what = "there is no such dataset folder"
            faults.append(workspace.fault(name, "dataset", what, value=arm.dataset))
    if faults:
        raise Faults(faults)
    return count(len(workspace.arms), "arm")


def _unjudged(dataset: Dataset) -> list[str]:
    from eval_core.console import count

    unjudged = len(dataset.unscorable)
    return [f"{count(unjudged, 'query', 'queries')} without a positive judgement"] if unjudged else []


def _rebuilt(folder: Path, definition: Definition | None, output: Path) -> Path | None:
    """The corpus of a set that comes from sources elsewhere, rebuilt; None where it lies in the folder."""
    from eval_core.reconstruct import CORPUS, overrides_from_environment, reconstruct

    sources = definition.corpus.source if definition is not None and definition.corpus is not None else ()
    if definition is None or all(source.type == "inline" for source in sources):
        return None
    out = output / "corpora" / definition.name
    overrides = overrides_from_environment(source.name for source in sources)
    reconstruct(folder, definition, out, overrides=overrides, cache=output / "cache")
    return out / CORPUS
