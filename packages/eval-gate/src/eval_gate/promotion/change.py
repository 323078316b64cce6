"""The one change that a promotion makes: default, floors, evidence, baseline, budget and record, all or nothing."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_core.errors import Misuse, Refused
from eval_core.reports.report import Report, dump
from eval_gate.check.grading import latency
from eval_gate.floors.write import with_sidecar, write_all
from eval_gate.policy import (
    BASELINES,
    BUDGETS,
    EVIDENCE,
    FLOORS,
    MARGIN,
    ArmFloors,
    Budget,
    read_budgets,
    read_floors,
)
from eval_gate.promotion.models import FileChange, FloorRun, Promotion, PromotionRecord, Rule
from eval_gate.promotion.state import RECORDS, next_number
from eval_gate.reasons import says, unless_deleted

if TYPE_CHECKING:
    from eval_core.config import Workspace


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person asks of a promotion: the latency budget, None for the one that stands, and why."""

    p95_ms: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """The bytes of every file, in the order in which they take their names, and what each says in words.

    Whatever is cut off leaves the old default, or what the gate refuses: the budget comes before the floors that it
    goes with, the floors before the baseline that they need, the record before the default that it explains.
    """

    files: Mapping[Path, bytes]
    told: tuple[FileChange, ...]
    record: Path


def plan(
    found: Promotion,
    rule: Rule,
    runs: Sequence[Report],
    workspace: Workspace,
    dataset: str,
    policy: Path,
    wanted: Wanted,
    head: str,
) -> Change:
    """Work out the change for a promotion that is proven.

    Args:
        found: what was proven.
        rule: by which.
        runs: the candidate's runs that its floors will stand on.
        workspace: eval.toml, of which the candidate is an arm.
        dataset: the key of its default that moves.
        policy: the policy's folder.
        wanted: budget and reason.
        head: the commit in which the evidence was looked up.

    Raises:
        Refused: the runs carry no floor, or the budget is missing, not measurable or not met.
        Misuse: a file cannot be edited, or the reason says nothing.
    """
    from eval_core.reports import provenance
    from eval_gate.floors.baseline import check
    from eval_gate.floors.propose import derive
    from eval_gate.floors.text import budgets_text, floors_text, present

    name = found.candidate
    if wanted.reason is not None and not says(wanted.reason):
        raise Misuse(
            f"--reason {wanted.reason!r} says nothing",
            reason="usage",
            remedy="Say in words why, or leave it out.",
        )
    held = read_floors(policy / FLOORS) if (policy / FLOORS).exists() else None
    stands = held.arms.get(name) if held else None
    if stands is None:
        unless_deleted(policy, name, wanted.reason)
    p95_ms = _budget(name, runs, policy, held is not None, wanted.p95_ms)
    floors = derive(name, runs, _wish(stands, wanted.reason), stands)
    last = max(runs, key=lambda report: (report.environment.started, report.run_id))
    check(last, floors, p95_ms)

    copies = {report.run_id: dump(report.stripped()) for report in runs}
    baseline = policy / BASELINES / f"{name}.json"
    number = next_number(policy / RECORDS)
    record = policy / RECORDS / f"{number:04}-{name}.json"
    before = _default(workspace, dataset)
    written = PromotionRecord(
        number=number,
        candidate=name,
        incumbent=found.incumbent,
        dataset=dataset,
        reason=wanted.reason or _reason(found),
        head=head,
        rule=rule,
        conditions=found.conditions,
        evidence=found.evidence,
        floors=tuple(
            FloorRun(run_id=run.run_id, started=run.started, sha256=run.sha256) for run in floors.evidence
        ),
        p95_ms=p95_ms,
    )
    files = {policy / EVIDENCE / name / f"{run_id}.json": content for run_id, content in copies.items()}
    files |= {
        policy / BUDGETS: budgets_text(present(policy / BUDGETS), {name: p95_ms}).encode(),
        policy / FLOORS: floors_text(present(policy / FLOORS), {name: floors}).encode(),
        **with_sidecar(baseline, last.stripped()),
        record: (written.model_dump_json(by_alias=True, indent=1, exclude_none=True) + "\n").encode(),
        workspace.path: default_text(workspace.path, dataset, name),
    }
    told = {
        workspace.path: f'[default] "{dataset}" = "{name}"  (was {before!r})'
        if before
        else f'[default] "{dataset}" = "{name}"',
        policy / FLOORS: f"[arms.{name}] {_floors_words(floors)}, on {len(runs)} runs",
        policy / EVIDENCE / name: f"copies of those runs: {', '.join(copies)}",
        baseline: f"run {last.run_id}",
        provenance.sidecar(baseline): "what produced it",
        policy / BUDGETS: f"[arms.{name}] p95_ms = {p95_ms:g}  ({_p95_words(runs)})",
        record: f"{name} over {found.incumbent}, with the figures and digests of the evidence",
    }
    return Change(files, tuple(FileChange(file=str(path), what=what) for path, what in told.items()), record)


def _wish(stands: ArmFloors | None, reason: str | None) -> Any:
    """What `eval-gate floor` would ask by itself, but for tracking: a default gates."""
    from eval_gate.floors.propose import Wish

    if stands is None:
        return Wish(margin=MARGIN, reason=reason)
    drifts = None
    if stands.documents is not None:
        low, high = stands.documents
        drifts = (high - low) / (high + low)
    return Wish(
        margin=None if stands.margin_rule == "derived" else stands.margin,
        measures=tuple(stands.metrics),
        by_category=bool(stands.categories),
        drifts=drifts,
        reason=reason,
    )


def _budget(name: str, runs: Sequence[Report], policy: Path, floored: bool, given: float | None) -> float:
    """The latency budget, met by every run, each with enough samples to bound it."""
    p95_ms = given
    if p95_ms is None and floored and (policy / BUDGETS).exists():
        budget = read_budgets(policy / BUDGETS, read_floors(policy / FLOORS)).arms.get(name)
        p95_ms = budget.p95_ms if budget else None
    if p95_ms is None:
        raise Refused(
            f"{name}: no latency budget stands for it, and a promotion moves the budget too ({_p95_words(runs)})",
            reason="budget-missing",
            remedy="Say what must not be exceeded: --p95-ms MILLISECONDS.",
        )
    for report in runs:
        for reason in latency(Budget(p95_ms=p95_ms), None, report):
            remedy = reason.remedy
            if report.latency is None:
                remedy = (
                    "Keep the reports as measure wrote them, with their timing: a stripped copy has none."
                )
            raise Refused(f"{name}: run {report.run_id}: {reason.message}", reason=reason.code, remedy=remedy)
    return p95_ms


def _p95_words(runs: Sequence[Report]) -> str:
    values = [f"{report.latency.p95:.2f}" if report.latency else "not timed" for report in runs]
    return f"p95 measured: {', '.join(values)} ms"


def _floors_words(floors: ArmFloors) -> str:
    words = (
        f"{name} {f'{floor.max_misses} misses' if floor.max_misses is not None else f'{floor.floor:.4f}'}"
        for name, floor in floors.metrics.items()
    )
    return ", ".join(words)


def _reason(found: Promotion) -> str:
    """Why, where nobody said: the first measure that was compared."""
    for one in found.conditions:
        if one.condition.metric is not None and one.runs:
            run = one.runs[-1]
            if run.incumbent is not None and run.candidate is not None:
                return (
                    f"{one.condition.metric} {run.incumbent:.4f} → {run.candidate:.4f} over {found.incumbent}"
                )
    return f"every condition over {found.incumbent} is proven"


def _default(workspace: Workspace, dataset: str) -> str | None:
    return workspace.default.get(dataset)


def default_text(path: Path, dataset: str, arm: str) -> bytes:
    """The bytes of eval.toml with one default put in, everything else as it stands.

    Raises:
        Misuse: the file is so arranged that it cannot be edited.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    text = path.read_bytes().decode("utf-8")
    wanted = tomllib.loads(text)
    wanted.setdefault("default", {})[dataset] = arm
    try:
        document = tomlkit.parse(text)
        if "default" not in document:
            made = tomlkit.table()
            made.comment("By dataset, the arm that answers; moved by eval-gate promote, with its floors.")
            document["default"] = made
        table: Any = document["default"]
        table[dataset] = arm
        edited = tomlkit.dumps(document)
        same = tomllib.loads(edited) == wanted
    except (TOMLKitError, tomllib.TOMLDecodeError):
        same = False
    if not same:
        raise Misuse(
            f"{path}: is so arranged that its default cannot be edited without harm",
            reason="file-malformed",
            remedy=f'Write the table yourself, then promote again:  [default]  {json.dumps(dataset)} = "…"',
        )
    return edited.encode("utf-8")


def write(files: Mapping[Path, bytes]) -> None:
    """Write all files of a change or none, in order; see `floors.write.write_all`."""
    write_all(files)
