"""Baselines: which report may become one, what it changes, and the latency budget that may come with it."""

from __future__ import annotations

import contextlib
from pathlib import Path

from eval_core.errors import Refused
from eval_core.reports.report import Report, dump, read_report
from eval_gate.check.eligibility import is_evidence
from eval_gate.check.evidence import uncited
from eval_gate.check.grading import headline
from eval_gate.check.judge import judge_arm
from eval_gate.floors.proposal import BaselineChange
from eval_gate.floors.propose import evidence
from eval_gate.policy import EVIDENCE, TOLERANCE, ArmFloors, Budget


def check(report: Report, floors: ArmFloors, p95_ms: float | None) -> None:
    """Refuse a report that the floors, or the budget that should come with it, would not pass.

    Raises:
        Refused: with the reason that the gate would give.
    """
    # Graded as if it were evidence: what is wrong with its numbers is told before where it comes from.
    trial = floors.model_copy(update={"evidence": (*floors.evidence, evidence(report, floors.metrics))})
    verdict = judge_arm(report.arm, trial, Budget(p95_ms=p95_ms), report, report)
    if verdict.verdict != "pass":
        reason = verdict.reasons[0]
        raise Refused(
            f"{report.arm}: {reason.message}; a baseline must pass its own floors",
            reason=reason.code,
            remedy=reason.remedy,
        )
    if not is_evidence(report, floors):
        raise Refused(
            f"{report.arm}: run {report.run_id} is none of the runs that the floors stand on",
            reason="policy-mixed",
            remedy=f"Move both in one commit:  eval-gate floor {report.arm} --write && "
            f"eval-gate baseline {report.arm} --write",
        )


def cited(policy: Path, report: Report, floors: ArmFloors) -> Report:
    """The copy of the evidence that becomes the baseline in a report's place: its own, or that of an equal run.

    Raises:
        Refused: no copy of it is there, or it is not what the floors stand on.
    """
    own = [run for run in floors.evidence if run.run_id == report.run_id]
    equal = [run for run in floors.evidence if run.digest == report.digests.quality]
    run = (own or equal)[0]
    path = policy / EVIDENCE / report.arm / f"{run.run_id}.json"
    broken = [reason for reason in uncited(policy, report.arm, floors) if str(path) in reason.message]
    if broken:
        raise Refused(broken[0].message, reason=broken[0].code, remedy=broken[0].remedy)
    return read_report(path, report.arm)


def not_worse(report: Report, path: Path, floors: ArmFloors) -> None:
    """Refuse a baseline that has less than the standing one, where the floors do not say why.

    Raises:
        Refused: of any measure, overall or in a category, it has less, and the floors hold no reason.
    """
    from eval_gate.floors.difference import means

    if floors.reason or not path.is_file():
        return
    before, after = means(path.read_bytes()), means(dump(report))
    fallen = [key for key, value in before.items() if after.get(key, 0.0) < value - TOLERANCE]
    if fallen:
        worst = max(fallen, key=lambda key: before[key] - after.get(key, 0.0))
        raise Refused(
            f"{report.arm}: the baseline would have {worst} = {after.get(worst, 0.0):.4f}, and has {before[worst]:.4f}"
            + (f"; {len(fallen) - 1} more measures would fall" if len(fallen) > 1 else ""),
            reason="worse-without-reason",
            remedy=f'If that is meant, say why, with the floors:  eval-gate floor {report.arm} --reason "…" --write',
        )


def change(report: Report, path: Path) -> BaselineChange:
    """What taking the report as the baseline at `path` changes, in the measures that matter first."""
    before: dict[str, float] = {}
    # A baseline that is absent or does not load is replaced; the gate says so by itself.
    with contextlib.suppress(Refused):
        before = read_report(path, report.arm).summary.overall.metrics
    after = report.summary.overall.metrics
    return BaselineChange(
        arm=report.arm,
        run_id=report.run_id,
        values={name: (before.get(name), after[name]) for name in headline(report)},
    )
