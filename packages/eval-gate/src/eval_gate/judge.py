"""The judgement: reports and policy in, verdict out. Pure: no file, no clock, no network, nothing written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eval_core import metrics
from eval_core.errors import EvalError
from eval_core.keys import Difference, differences
from eval_core.report import Report
from eval_gate.changes import moved, system_changes, told
from eval_gate.policy import (
    DEFAULT_MAX_DROP,
    LATENCY_SAMPLES,
    TOLERANCE,
    ArmFloors,
    Budget,
    Budgets,
    Floor,
    Floors,
)
from eval_gate.verdict import ArmVerdict, Graded, Reason, Verdict, Word, utf8

#: A report or baseline that was read, or why it could not be.
Read = Report | EvalError

#: Reason code, and what happened, for each part of the task that differs. Cut-offs may differ: the policy's measures
#: need only be among the report's.
TASK_REASONS: Mapping[str, tuple[str, str]] = {
    "query_ids": ("query-set-differs", "the set of queries changed"),
    "queries": ("queries-differ", "the text or meaning of queries changed"),
    "judgements": ("judgements-differ", "judgements were changed"),
    "split": ("split-differs", "another split was measured"),
    "kind": ("kind-differs", "the set's kind changed"),
    "corpus": ("corpus-differs", "the corpus changed: documents came, went or were edited"),
    "recipe": ("recipe-differs", "the recipe of the corpus changed"),
    "timeline": ("timeline-differs", "the timeline changed"),
    "links": ("links-differ", "the links changed"),
    "concepts": ("concepts-differ", "the concepts changed"),
    "limit": ("limit-differs", "another number of documents was asked for"),
    "filter": ("filter-differs", "the arm filters otherwise"),
    "scale": ("scale-differs", "the set was scaled otherwise"),
    "metrics": ("metric-definitions-differ", "the measures are defined otherwise"),
}

_CUTOFF = "Measure with the cut-off again: cutoffs in eval.toml or dataset.toml."

#: What to do about a task that is not the floors': the two ways, and every command of the second.
_BAR = (
    "If the change is not meant, take it back. If it is, commit it by itself, measure twice, and move the bar:  "
    "eval-gate floor {0} --write && eval-gate baseline {0} --write"
)


def judge(
    floors: Floors,
    budgets: Budgets,
    baselines: Mapping[str, Read],
    reports: Mapping[str, Read],
    arms: tuple[str, ...] = (),
    not_gated: tuple[str, ...] = (),
    orphans: tuple[str, ...] = (),
    uncited: Mapping[str, Sequence[Reason]] = {},
) -> Verdict:
    """Grade the arms of a policy, all of them or those named.

    Args:
        floors: what must be reached.
        budgets: what must not be exceeded.
        baselines: by arm, the committed report, or the error of reading it.
        reports: by arm, the measured report, or the error of reading it.
        arms: a selection; empty means every arm that has floors.
        not_gated: arms that have a report and no floors, to be told.
        orphans: arms that have a baseline or evidence and no floors: their floors were deleted.
        uncited: by arm, what is wrong with the copies of the evidence that its floors cite.
    """
    verdicts = [
        judge_arm(
            name,
            floors.arms[name],
            budgets.arms.get(name, Budget()),
            baselines.get(name),
            reports[name],
            uncited.get(name, ()),
        )
        for name in (arms or floors.arms)
    ]
    reasons = [
        _refusal(
            "floors-deleted",
            f"{name} has a baseline or evidence and no floors; deleting floors must not let an arm pass",
            "Restore its floors, or retire the arm whole: its baseline and evidence too.",
        )
        for name in orphans
    ]
    if not verdicts:
        reasons.append(
            _refusal(
                "policy-vacuous",
                "the floors file names no arm; a gate that looks at nothing cannot pass",
                "Propose floors:  eval-gate floor",
            )
        )
    words = {verdict.verdict for verdict in verdicts} | {reason.word for reason in reasons}
    word: Word = "refused" if "refused" in words else "fail" if "fail" in words else "pass"
    return Verdict(
        verdict=word,
        exit_code=0 if word == "pass" else 1,
        arms=tuple(verdicts),
        reasons=tuple(reasons),
        not_gated=not_gated,
    )


def judge_arm(
    name: str,
    floors: ArmFloors,
    budget: Budget,
    baseline: Read | None,
    report: Read,
    uncited: Sequence[Reason] = (),
) -> ArmVerdict:
    """Grade one arm. Where it cannot be graded, no measure of it is."""
    if isinstance(report, EvalError):
        return ArmVerdict(
            arm=name,
            verdict="refused",
            reasons=(_unreadable(report, "Measure it:  eval-core measure " + name),),
        )
    committed = baseline if isinstance(baseline, Report) else None
    drops = _drops(budget, committed, report)
    refusals = [*_vacuous(floors), *uncited, *_healthy(report), *_bound(floors, baseline, report)]
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
        warnings=_warnings(report),
    )
    if refusals:
        return verdict
    graded = tuple(_grade(metric, floor, report, committed) for metric, floor in floors.metrics.items())
    reasons = [_breach(grade) for grade in graded if not grade.passed]
    reasons += drops + _latency(budget, report)
    failing = next((reason.metric for reason in reasons if reason.metric), None)
    lost, gained = moved(committed, report, failing) if failing else ((), ())
    word: Word = "pass" if not reasons else "refused" if any(r.word == "refused" for r in reasons) else "fail"
    return verdict.model_copy(
        update={"verdict": word, "reasons": tuple(reasons), "graded": graded, "lost": lost, "gained": gained}
    )


def _refusal(code: str, message: str, remedy: str | None = None, metric: str | None = None) -> Reason:
    return Reason(code=code, word="refused", message=message, remedy=remedy, metric=metric)


def _unreadable(error: EvalError, remedy: str) -> Reason:
    return _refusal(error.reason, utf8(error.message), error.remedy or remedy)


def _vacuous(floors: ArmFloors) -> list[Reason]:
    reasons = []
    if not floors.metrics:
        reasons.append(_refusal("floors-vacuous", "the arm has no floor; whatever it scored would pass"))
    if len({evidence.run_id for evidence in floors.evidence}) < 2:
        reasons.append(
            _refusal("floors-without-evidence", "the floors stand on fewer than two measured runs")
        )
    for name, floor in floors.metrics.items():
        if (floor.max_misses is not None and floor.max_misses >= floors.n) or (
            floor.floor is not None and floor.floor <= 0
        ):
            reasons.append(
                _refusal("floors-vacuous", f"the floor of {name} passes a backend that finds nothing")
            )
    return reasons


def _bound(floors: ArmFloors, baseline: Read | None, report: Report) -> list[Reason]:
    """Everything that must be equal for the numbers to mean the same."""
    committed = baseline if isinstance(baseline, Report) else None
    reasons = _task_reasons(floors, floors.task, report, committed)
    if floors.documents is not None:
        low, high = floors.documents
        if not low <= report.dataset.documents <= high:
            reasons.append(
                _refusal(
                    "corpus-size-differs",
                    f"{report.dataset.documents} documents, and the band is {low} to {high}",
                    _BAR.format(report.arm),
                )
            )
    for name in floors.metrics:
        if name not in report.summary.overall.metrics:
            reasons.append(
                _refusal(
                    "metric-missing",
                    f"the report has no {name}: its cut-offs are {list(report.cutoffs)}",
                    _CUTOFF,
                    metric=name,
                )
            )
    if baseline is None:
        reasons.append(
            _refusal(
                "baseline-missing",
                "no baseline is committed for the arm",
                f"eval-gate baseline {report.arm} --write",
            )
        )
    elif isinstance(baseline, EvalError):
        reasons.append(
            _unreadable(_as_baseline(baseline), f"Make it:  eval-gate baseline {report.arm} --write")
        )
    else:
        between = [d.part for d in _task_differences(floors, floors.task, baseline.task.parts)]
        if between:
            reasons.append(
                _refusal(
                    "policy-mixed",
                    f"floors and baseline were measured on different tasks ({', '.join(between)})",
                    "Move both in one commit:  eval-gate floor --write && eval-gate baseline --write",
                )
            )
        elif not baseline.health.ok or baseline.n != floors.n:
            reasons.append(
                _refusal(
                    "baseline-incomplete",
                    f"the baseline scored {baseline.n} of {floors.n} queries",
                    f"Make it:  eval-gate baseline {report.arm} --write",
                )
            )
        elif not is_evidence(baseline, floors):
            reasons.append(
                _refusal(
                    "policy-mixed",
                    f"the baseline, run {baseline.run_id}, is none of the runs that the floors stand on",
                    f"Move both in one commit:  eval-gate floor {report.arm} --write && "
                    f"eval-gate baseline {report.arm} --write",
                )
            )
    return reasons


def is_evidence(baseline: Report, floors: ArmFloors) -> bool:
    """Whether the baseline is one of the floors' runs, or cannot be told from one by quality.

    Otherwise a baseline of a worse system could be taken by itself, and then another, down to the floor.
    """
    return any(
        run.run_id == baseline.run_id or run.digest == baseline.digests.quality for run in floors.evidence
    )


def _as_baseline(error: EvalError) -> EvalError:
    code = "baseline-missing" if error.reason == "report-missing" else "baseline-malformed"
    return EvalError(error.message, reason=code, remedy=error.remedy)


def _task_differences(
    floors: ArmFloors, ours: Mapping[str, Any], theirs: Mapping[str, Any]
) -> list[Difference]:
    exempt = {"cutoffs", "corpus"} if floors.corpus == "drifts" else {"cutoffs"}
    return [difference for difference in differences(ours, theirs) if difference.part not in exempt]


def _task_reasons(
    floors: ArmFloors, wanted: Mapping[str, Any], report: Report, baseline: Report | None
) -> list[Reason]:
    found = _task_differences(floors, wanted, report.task.parts)
    reasons = []
    parts = {difference.part for difference in found}
    for difference in found:
        # A query that came or went changes the texts and judgements with it: one cause, told once.
        if "query_ids" in parts and difference.part in ("queries", "judgements"):
            continue
        code, message = TASK_REASONS.get(
            difference.part, (f"{difference.part}-differs", f"{difference.part} differs")
        )
        reasons.append(_refusal(code, message + told(difference, report, baseline), _BAR.format(report.arm)))
    # Rows that failed are told as that; what they leave of n follows from it.
    asked = report.n + report.health.errored + report.health.unscored
    if asked != floors.n:
        message = f"{report.n} queries were scored, and the floors are for exactly {floors.n}"
        dropped = next((row for row in report.rows if row.outcome == "unscorable"), None)
        if dropped is not None:
            message += (
                f"; {report.health.unscorable} are unscorable, the first, {dropped.id}: {dropped.detail}"
            )
        reasons.append(_refusal("n-differs", message, _BAR.format(report.arm)))
    return reasons


def _healthy(report: Report) -> list[Reason]:
    health = report.health
    reasons = []
    if health.errored or health.unscored:
        row = next(row for row in report.rows if row.outcome in ("errored", "unscored"))
        counts = f"{health.errored} rows errored and {health.unscored} were not asked"
        reasons.append(
            _refusal(
                "rows-errored",
                f"{counts}; the first, {row.id}: {row.detail}",
                "A run with errored rows is no finding. Mend the backend and measure again.",
            )
        )
    if report.resumed:
        reasons.append(
            _refusal(
                "report-resumed",
                "the run was resumed after an interruption: part of it was answered by another process",
                f"A graded number is measured in one run:  eval-core measure {report.arm}",
            )
        )
    if report.index != "built":
        reasons.append(
            _refusal("index-cached", "the index was taken from a cache, not built in the run that is graded")
        )
    return reasons


def _warnings(report: Report) -> tuple[str, ...]:
    unstable = report.health.unstable
    if not unstable:
        return ()
    return (
        f"non-deterministic: repetitions ranked {unstable} of {report.n} queries otherwise; the first is graded",
    )


def _grade(metric: str, floor: Floor, report: Report, baseline: Report | None) -> Graded:
    value = report.summary.overall.metrics[metric]
    before = baseline.summary.overall.metrics.get(metric) if baseline else None
    if floor.max_misses is not None:
        missed = sum(row.metrics[metric] < 1 for row in report.rows if row.outcome == "scored")
        return Graded(
            metric=metric,
            value=value,
            floor=(report.n - floor.max_misses) / report.n,
            misses=missed,
            max_misses=floor.max_misses,
            baseline=before,
            passed=missed <= floor.max_misses,
        )
    lowest = floor.floor if floor.floor is not None else 1.0
    return Graded(
        metric=metric, value=value, floor=lowest, baseline=before, passed=value >= lowest - TOLERANCE
    )


def _breach(grade: Graded) -> Reason:
    if grade.max_misses is not None:
        told = f"{grade.misses} misses, and {grade.max_misses} are allowed"
    else:
        told = f"{grade.value:.4f}, and the floor is {grade.floor:.4f}"
    return Reason(code="floor-breached", word="fail", message=f"{grade.metric}: {told}", metric=grade.metric)


def _drops(budget: Budget, baseline: Report | None, report: Report) -> list[Reason]:
    """Falls below the baseline. A budget adds measures to the rule on recall@10, or names it to set another drop."""
    if baseline is None:
        return []
    reasons = []
    named = budget.max_drop or {}
    for metric, points in {**DEFAULT_MAX_DROP, **named}.items():
        before, after = (r.summary.overall.metrics.get(metric) for r in (baseline, report))
        if before is None and after is None and metric not in named:
            continue  # the set is not measured that deep
        if before is None or after is None:
            lacking = " and ".join(
                who for who, value in (("the report", after), ("the baseline", before)) if value is None
            )
            reasons.append(
                _refusal(
                    "metric-missing",
                    f"{metric} is held against the baseline, and {lacking} lacks it",
                    _CUTOFF,
                    metric=metric,
                )
            )
            continue
        drop = (before - after) * 100
        if drop > points + TOLERANCE:
            message = f"{metric}: {drop:.2f} points below the baseline ({before:.4f} → {after:.4f})"
            allowed = f"{points:g} are allowed"
            reasons.append(
                Reason(code="baseline-drop", word="fail", message=f"{message}, and {allowed}", metric=metric)
            )
    return reasons


def _latency(budget: Budget, report: Report) -> list[Reason]:
    if budget.p95_ms is None:
        return []
    latency = report.latency
    if latency is None or latency.samples < LATENCY_SAMPLES:
        samples = latency.samples if latency else 0
        needed = -(-LATENCY_SAMPLES // max(1, report.n))
        return [
            _refusal(
                "latency-not-measurable",
                f"{samples} samples; a bound on p95 needs {LATENCY_SAMPLES}",
                f"Set repetitions = {needed} for the arm, and measure again.",
            )
        ]
    if latency.p95 > budget.p95_ms:
        return [
            Reason(
                code="latency-over-budget",
                word="fail",
                message=f"p95 is {latency.p95:.3f} ms, and the budget is {budget.p95_ms:g} ms",
            )
        ]
    return []


def headline(report: Report) -> tuple[str, ...]:
    """The measures that a set's floors are made for first: its headline, hit@1, recall at the largest cut-off, mrr."""
    wanted = dict.fromkeys((report.dataset.headline, "hit@1", f"recall@{report.cutoffs[-1]}", "mrr"))
    held = set(metrics.names(report.cutoffs))
    return tuple(name for name in wanted if name in held)
