"""Floors out of measured runs: which runs are evidence, and how far below them a floor lies."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from eval_core import metrics
from eval_core.errors import Misuse, Refused, did_you_mean
from eval_core.keys import SYSTEM_PARTS, TASK_PARTS, differences
from eval_core.report import Report
from eval_gate.judge import headline
from eval_gate.policy import SETTLED_RUNS, ArmFloors, Evidence, Floor, derive_floor

#: Misses between the worst evidence and the floor, until enough runs exist to measure how much they differ.
MARGIN = 2

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def eligible(arm: str, reports: Iterable[Report], drifts: float | None = None) -> list[Report]:
    """The runs that may carry a floor, oldest first.

    Args:
        arm: its name.
        reports: runs of it; the same run twice counts once.
        drifts: for a corpus whose sources move, the share by which the number of documents may differ from the newest
            run's. The corpus digest may then differ, and nothing else.

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
    for report in found:
        problem = unfit(report) or unlike(report, found[-1], drifts)
        if problem is not None:
            raise Refused(
                f"{arm}: run {report.run_id!r} {problem.message}",
                reason=problem.reason,
                remedy=problem.remedy,
            )
    return found


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a run is no evidence: a sentence that goes on from "run ID", and its reason code."""

    message: str
    reason: str
    remedy: str | None = None


def unfit(report: Report) -> Problem | None:
    """What keeps a run from being evidence, whatever it is compared with."""
    health = report.health
    if not _RUN_ID.fullmatch(report.run_id):
        # It becomes a file's name below policy/evidence.
        return Problem("has an id that no measuring gives", "run-id-malformed")
    if health.errored or health.unscored:
        return Problem(
            f"has {health.errored} errored and {health.unscored} unscored rows",
            "evidence-errored",
            f"Mend the backend and measure again:  eval-core measure {report.arm}",
        )
    if not health.scored:
        return Problem(
            "scored no query", "evidence-errored", "Give the set queries that the backend can answer."
        )
    if report.resumed:
        return Problem(
            "was resumed after an interruption, so it is no evidence",
            "evidence-resumed",
            f"Measure it in one go:  eval-core measure {report.arm}",
        )
    if report.index != "built":
        return Problem(
            "took its index from a cache", "evidence-cached", "Measure with an index built in the run."
        )
    return None


def unlike(report: Report, newest: Report, drifts: float | None = None) -> Problem | None:
    """What keeps a run from standing beside the newest one: another task, system, class, or too far a drift."""
    exempt = {"corpus"} if drifts is not None else set()
    for key, order in (("task", TASK_PARTS), ("system", SYSTEM_PARTS)):
        ours, theirs = getattr(newest, key).parts, getattr(report, key).parts
        parts = [d.part for d in differences(ours, theirs, order) if key != "task" or d.part not in exempt]
        if parts:
            return Problem(
                f"measured another {key} than {newest.run_id!r} ({', '.join(parts)} differ)",
                f"evidence-{key}-differs",
                "Measure the present state at least twice, or name the runs with --evidence.",
            )
    if report.environment.class_ != newest.environment.class_:
        return Problem(
            f"was measured in class {report.environment.class_!r}, and {newest.run_id!r} in "
            f"{newest.environment.class_!r}",
            "evidence-class-differs",
            "A floor stands on runs of one kind of place: the one where the gate will run.",
        )
    if drifts is not None:
        low, high = band(newest.dataset.documents, drifts)
        if not low <= report.dataset.documents <= high:
            return Problem(
                f"had {report.dataset.documents} documents, and the band around {newest.run_id!r} is {low} to {high}",
                "evidence-corpus-size-differs",
                "Measure the present corpus at least twice, or widen --drifts.",
            )
    return None


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
    reason = (reason or "").strip() or None
    found = eligible(arm, reports, drifts)
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
        reason=reason or _kept_reason(previous, floors, n),
        task=last.task.parts,
        metrics=floors,
        evidence=tuple(evidence(report, chosen) for report in found),
    )
    _not_lowered(arm, made, previous, reason)
    return made


def _kept_reason(previous: ArmFloors | None, floors: Mapping[str, Floor], n: int) -> str | None:
    """A lowered floor keeps its reason for as long as it stands; one that is raised needs none."""
    same = previous is not None and (previous.metrics, previous.n) == (floors, n)
    return previous.reason if previous is not None and same else None


def band(documents: int, share: float) -> tuple[int, int]:
    """Fewest and most documents: within `share` of the count, at least one document wide each way."""
    room = max(1, math.floor(documents * share + 1e-9))
    return max(1, documents - room), documents + room


def evidence(report: Report, measures: Iterable[str]) -> Evidence:
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
