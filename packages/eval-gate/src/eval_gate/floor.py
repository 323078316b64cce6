"""Floors out of measured runs: which runs are evidence, how far below them a floor lies, and the file of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import eval_gate
from eval_core import metrics
from eval_core.errors import Misuse, Refused, did_you_mean
from eval_core.keys import SYSTEM_PARTS, differences
from eval_core.report import Report
from eval_gate.judge import headline
from eval_gate.policy import SETTLED_RUNS, ArmFloors, Evidence, Floor, derive_floor

#: Misses between the worst evidence and the floor, until enough runs exist to measure how much they differ.
MARGIN = 2


def eligible(arm: str, reports: Iterable[Report]) -> list[Report]:
    """The runs that may carry a floor, oldest first.

    Raises:
        Refused: fewer than two distinct runs, a run that is not whole, or runs that did not measure the same thing.
    """
    runs = {report.run_id: report for report in reports}
    found = sorted(runs.values(), key=lambda report: (report.environment.started, report.run_id))
    if len(found) < 2:
        raise Refused(
            f"{arm}: {len(found)} run is no floor: one run is a dated measurement with no noise under it"
            if found
            else f"{arm}: no run has been measured",
            reason="one-run" if found else "no-run",
            remedy=f"Measure in another run, then try again:  eval-core measure {arm}",
        )
    first = found[0]
    for report in found:
        who = f"{arm}: run {report.run_id}"
        if not report.health.ok:
            raise Refused(
                f"{who} has {report.health.errored} errored and {report.health.unscored} unscored rows",
                reason="evidence-errored",
            )
        if report.resumed:
            raise Refused(
                f"{who} was resumed after an interruption, so it is no evidence", reason="evidence-resumed"
            )
        if report.index != "built":
            raise Refused(f"{who} took its index from a cache", reason="evidence-cached")
        for key, order in (("task", None), ("system", SYSTEM_PARTS)):
            ours, theirs = getattr(first, key).parts, getattr(report, key).parts
            parts = [
                d.part for d in (differences(ours, theirs, order) if order else differences(ours, theirs))
            ]
            if parts:
                raise Refused(
                    f"{who} measured another {key} than {first.run_id} ({', '.join(parts)} differ)",
                    reason=f"evidence-{key}-differs",
                    remedy="Measure the present state at least twice, or name the runs with --evidence.",
                )
        if report.environment.class_ != first.environment.class_:
            raise Refused(
                f"{who} was measured in class {report.environment.class_!r}, and {first.run_id} in "
                f"{first.environment.class_!r}",
                reason="evidence-class-differs",
                remedy="A floor stands on runs of one kind of place: the one where the gate will run.",
            )
    return found


def derive(
    arm: str,
    reports: Iterable[Report],
    *,
    margin: int = MARGIN,
    measures: Sequence[str] = (),
    drifts: float | None = None,
    previous: ArmFloors | None = None,
    reason: str | None = None,
) -> ArmFloors:
    """Derive an arm's floors from measured runs.

    Args:
        arm: its name.
        reports: the runs; every one must be evidence.
        margin: misses below the worst evidence.
        measures: what to floor; the set's headline, hit@1, recall at the largest cut-off and mrr where not given.
        drifts: for a corpus whose sources move, the share by which the number of documents may differ.
        previous: the floors that stand now; lowering one of them needs a reason.
        reason: why floors are lowered; kept in the file.

    Raises:
        Refused: the evidence does not carry a floor, the floor would pass anything, or it is lowered without a reason.
        Misuse: a measure that the reports do not hold.
    """
    found = eligible(arm, reports)
    last = found[-1]
    chosen = tuple(measures) or headline(last)
    held = last.summary.overall.metrics
    for name in chosen:
        metrics.parse(name)
        if name not in held:
            raise Misuse(
                f"{arm}: its reports have no {name}{did_you_mean(name, held)}  (cut-offs: {list(last.cutoffs)})",
                reason="metric-missing",
            )
    n = last.n
    floors: dict[str, Floor] = {}
    for name in chosen:
        worst = min(report.summary.overall.metrics[name] for report in found)
        floor = derive_floor(name, worst, n, margin)
        if (floor.max_misses is not None and floor.max_misses >= n) or (
            floor.floor is not None and floor.floor <= 0
        ):
            raise Refused(
                f"{arm}: {name} is {worst:.4f} at n = {n}, and a margin of {margin} misses leaves nothing to gate on",
                reason="floor-vacuous",
                remedy="Floor other measures with --metric, or improve the retriever first.",
            )
        floors[name] = floor
    made = ArmFloors(
        n=n,
        margin=margin,
        provisional=len(found) < SETTLED_RUNS,
        corpus="pinned" if drifts is None else "drifts",
        documents=None if drifts is None else band(last.dataset.documents, drifts),
        reason=reason,
        task=last.task.parts,
        metrics=floors,
        evidence=tuple(_evidence(report, chosen) for report in found),
    )
    _not_lowered(arm, made, previous, reason)
    return made


def band(documents: int, share: float) -> tuple[int, int]:
    """Fewest and most documents: within `share` of the count, at least one document wide each way."""
    room = max(1, math.floor(documents * share + 1e-9))
    return max(1, documents - room), documents + room


def _evidence(report: Report, measures: Iterable[str]) -> Evidence:
    return Evidence(
        run_id=report.run_id,
        started=report.environment.started,
        digest=report.digests.quality,
        commit=report.environment.commit,
        class_=report.environment.class_,
        values={name: report.summary.overall.metrics[name] for name in measures},
    )


def _not_lowered(arm: str, made: ArmFloors, previous: ArmFloors | None, reason: str | None) -> None:
    if previous is None or reason:
        return
    for name, old in previous.metrics.items():
        new = made.metrics.get(name)
        if new is None:
            raise Refused(
                f"{arm}: the floor of {name} would be dropped",
                reason="lowered-without-reason",
                remedy=f'Keep it with --metric "{name}", or say why with --reason "…".',
            )
        before, after = lowest(old, previous.n), lowest(new, made.n)
        if after < before - 1e-9:
            raise Refused(
                f"{arm}: the floor of {name} would fall from {before:.4f} to {after:.4f}",
                reason="lowered-without-reason",
                remedy='If the loss is meant, say why: --reason "…". It is kept in the file.',
            )


def lowest(floor: Floor, n: int) -> float:
    """The lowest mean that passes."""
    return (n - floor.max_misses) / n if floor.max_misses is not None else floor.floor or 0.0


def render(text: str, arms: Mapping[str, ArmFloors]) -> str:
    """Put arms into the text of a floors file, leaving the other arms and their comments as they stand."""
    import tomlkit

    document = tomlkit.parse(text)
    if not text.strip():
        document.add(tomlkit.comment("Written by eval-gate floor from measured runs."))
        document.add(
            tomlkit.comment("A change here is a change of the bar: a commit of its own, that names the runs.")
        )
    document["schema"] = "floors-v1"
    document["min_gate"] = eval_gate.__version__
    if "arms" not in document:
        document["arms"] = tomlkit.table(is_super_table=True)
    table: Any = document["arms"]
    for name, arm in arms.items():
        table[name] = _table(arm)
    return tomlkit.dumps(document)


def _table(arm: ArmFloors) -> Any:
    import tomlkit

    table = tomlkit.table()
    table["n"] = arm.n
    table["margin"] = arm.margin
    table["provisional"] = arm.provisional
    table["corpus"] = arm.corpus
    if arm.documents is not None:
        table["documents"] = list(arm.documents)
    if arm.reason:
        table["reason"] = arm.reason
    floors = tomlkit.table()
    for name, floor in arm.metrics.items():
        inline = tomlkit.inline_table()
        if floor.max_misses is not None:
            inline["max_misses"] = floor.max_misses
        else:
            inline["floor"] = floor.floor
        floors[name] = inline
    table["metrics"] = floors
    task = tomlkit.table()
    for part, value in arm.task.items():
        task[part] = value
    table["task"] = task
    runs = tomlkit.aot()
    for run in arm.evidence:
        entry = tomlkit.table()
        for key, value in run.model_dump(by_alias=True, exclude_none=True).items():
            if key != "values":
                entry[key] = value
        values = tomlkit.inline_table()
        values.update(run.values)
        entry["values"] = values
        runs.append(entry)
    table["evidence"] = runs
    return table


def plain(arms: Mapping[str, ArmFloors]) -> str:
    """The plain form: n and floors rounded down to two decimals, for gates that know nothing of tasks or evidence.

    A floor rounded down lets more through than the margin says: with 26 of 27 and two misses it is 0.88, and it takes
    a third new miss (23 of 27) to fail it. The native form counts misses and has no such gap.
    """
    lines = []
    for name, arm in arms.items():
        worst = ", ".join(run.run_id for run in arm.evidence)
        lines += [f"# margin: {arm.margin} misses below the worst of {worst}", f"[{name}]", f"n = {arm.n}"]
        for metric, floor in arm.metrics.items():
            key = metric if metric.isalnum() else f'"{metric}"'
            lines.append(f"{key} = {math.floor(lowest(floor, arm.n) * 100 + 1e-9) / 100:.2f}")
        lines.append("")
    return "\n".join(lines)


def proposed_text(path: Path, arms: Mapping[str, ArmFloors]) -> tuple[str, str]:
    """(text now, text with the arms put in) of a floors file."""
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    return before, render(before, arms)
