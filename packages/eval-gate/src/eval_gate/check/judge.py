"""The judgement: reports and policy in, verdict out. Pure: no file, no clock, no network, nothing written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eval_core.errors import EvalError
from eval_core.reports.report import Report
from eval_gate.check import eligibility, grading
from eval_gate.check.changes import moved, system_changes
from eval_gate.check.eligibility import Asked, Read, refusal
from eval_gate.policy import DEFAULT_MAX_DROP, ArmFloors, Budget
from eval_gate.verdict import ArmVerdict, Reason, Verdict, Word


def judge(
    verdicts: Iterable[ArmVerdict],
    not_gated: tuple[str, ...] = (),
    orphans: tuple[str, ...] = (),
    asked: Asked | None = None,
    mixed: Sequence[Reason] = (),
) -> Verdict:
    """The whole verdict out of those of the arms, as `judge_arm` gives them.

    Args:
        verdicts: of every arm that is asked for.
        not_gated: arms that have a report and no floors, to be told.
        orphans: arms that have a baseline or evidence and no floors: their floors were deleted.
        asked: what the policy asks of every report; nothing where None.
        mixed: where eval.toml's defaults, the policy and the records of promotions do not agree.
    """
    asked = asked or Asked()
    arms = tuple(verdicts)
    reasons = [*mixed]
    reasons += [
        refusal(
            "floors-deleted",
            f"{name} has a baseline or evidence and no floors; deleting floors must not let an arm pass",
            "Restore its floors, or retire the arm whole: its baseline and evidence too.",
        )
        for name in orphans
    ]
    if not_gated and "every-arm" in asked.require:
        names = " ".join(not_gated)
        reasons.append(
            refusal(
                "arm-not-gated",
                f"{', '.join(not_gated)}: measured, and without floors; the policy asks for floors of every arm",
                f"Measure twice, then:  eval-gate floor {names} --write && eval-gate baseline {names} --write",
            )
        )
    gating = [arm for arm in arms if not arm.tracked]
    if not gating:
        what = "only tracks its arms" if arms else "names no arm"
        reasons.append(
            refusal(
                "policy-vacuous",
                f"the floors file {what}; a gate that looks at nothing cannot pass",
                "Propose floors:  eval-gate floor",
            )
        )
    words = {arm.verdict for arm in gating} | {reason.word for reason in reasons}
    word: Word = "refused" if "refused" in words else "fail" if "fail" in words else "pass"
    return Verdict(
        verdict=word,
        exit_code=0 if word == "pass" else 1,
        arms=arms,
        reasons=tuple(reasons),
        not_gated=not_gated,
    )


def judge_arm(
    name: str,
    floors: ArmFloors,
    budget: Budget,
    baseline: Read | None,
    report: Read,
    refused: Sequence[Reason] = (),
    asked: Asked | None = None,
    notes: Sequence[str] = (),
) -> ArmVerdict:
    """Grade one arm. Where it cannot be graded, no measure of it is.

    Args:
        name: the arm.
        floors: what must be reached.
        budget: what must not be exceeded.
        baseline: the committed report, or the error of reading it; None where there is none.
        report: the measured report, or the error of reading it.
        refused: what was found already: of the copies of the evidence that the floors cite, of the report's origin.
        asked: what the policy asks of every report; nothing where None.
        notes: what should be told besides.
    """
    if isinstance(report, EvalError):
        return ArmVerdict(
            arm=name,
            verdict="refused",
            reasons=(eligibility.unreadable(report, "Measure it:  eval-core measure " + name),),
            tracked=floors.tracked,
        )
    committed = baseline if isinstance(baseline, Report) else None
    drops = [*grading.drops(budget, committed, report), *grading.drops_everywhere(budget, committed, report)]
    refusals = [
        *eligibility.vacuous(name, floors),
        *refused,
        *eligibility.healthy(report),
        *eligibility.asked_for(asked or Asked(), floors, report),
        *eligibility.bound(floors, baseline, report),
    ]
    told = {reason.metric for reason in refusals if reason.metric}
    refusals += [reason for reason in drops if reason.word == "refused" and reason.metric not in told]
    verdict = ArmVerdict(
        arm=name,
        set=report.dataset.name,
        verdict="refused",
        n=report.n,
        run_id=report.run_id,
        reasons=tuple(refusals),
        p95_ms=report.latency.p95 if report.latency else None,
        budget_p95_ms=budget.p95_ms,
        system_changes=system_changes(committed, report),
        provisional=floors.provisional,
        tracked=floors.tracked,
        odds=_odds(floors),
        warnings=(*notes, *_warnings(floors, budget, report)),
    )
    if refusals:
        return verdict
    graded = tuple(grading.graded(floors, report, committed))
    reasons = [grading.breach(grade) for grade in graded if not grade.passed]
    reasons += [*drops, *grading.must_pass(floors, committed, report)]
    reasons += grading.latency(budget, committed, report)
    if not {reason.metric for reason in reasons} & {floors.headline}:
        reasons += grading.net_lost(floors, budget, committed, report)
    failing = next((reason.metric for reason in reasons if reason.metric), None)
    lost, gained = moved(committed, report, failing) if failing else ((), ())
    word: Word = "pass" if not reasons else "refused" if any(r.word == "refused" for r in reasons) else "fail"
    return verdict.model_copy(
        update={
            "verdict": word,
            "reasons": tuple(reasons),
            "graded": graded,
            "lost": lost,
            "gained": gained,
            "significance": grading.significance(committed, report, failing) if failing else None,
            "warnings": (*verdict.warnings, *grading.slack(floors, graded)),
        }
    )


def _odds(floors: ArmFloors) -> str | None:
    """What the floors catch, and how often they cry wolf."""
    if floors.odds is None:
        return None
    same = len({run.digest for run in floors.evidence}) == 1
    return f"{floors.odds}{' Its runs did not differ.' if same else ''}"


def _warnings(floors: ArmFloors, budget: Budget, report: Report) -> tuple[str, ...]:
    warnings = []
    if unstable := report.health.unstable:
        warnings.append(
            f"non-deterministic: repetitions ranked {unstable} of {report.n} queries otherwise; the first is graded"
        )
    if floors.corpus == "drifts" and report.task.parts.get("corpus") != floors.task.get("corpus"):
        low, high = floors.documents or (0, 0)
        warnings.append(
            f"the corpus is not that of the floors: it may drift, with {low} to {high} documents "
            f"({report.dataset.documents} now)"
        )
    for metric, points in DEFAULT_MAX_DROP.items():
        allowed = (budget.max_drop or {}).get(metric, points)
        if allowed > points:
            warnings.append(f"{metric} may fall by {allowed:g} points against the baseline, not {points:g}")
    if floors.evidence and report.environment.class_ not in {run.class_ for run in floors.evidence}:
        warnings.append(
            f"measured in class {report.environment.class_!r}, and the floors stand on runs of class "
            f"{floors.evidence[-1].class_!r}"
        )
    return tuple(warnings)
