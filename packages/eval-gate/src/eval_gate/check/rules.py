"""The rules that grade an arm, each written once: bars, queries that must pass, latency; and what is only said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eval_core.policy import (
    TOLERANCE,
    ArmPolicy,
    Bar,
    Budget,
    Line,
    must_pass_lost,
    reached_on_average,
    reasons_needed,
)
from eval_core.reports import Report
from eval_core.reports.models import LATENCY_SAMPLES
from eval_core.scoring import metrics
from eval_gate.check.changes import some
from eval_gate.check.eligibility import RUNS
from eval_gate.verdict import Graded, Reason, Significance

#: Queries beyond the margin by which a floor may be beaten before it no longer holds anything.
SLACK = 2


def grades(bars: Sequence[Bar], report: Report) -> tuple[Graded, ...]:
    """Every bar against the report, which has its measures and categories."""
    return tuple(_grade(bar, report) for bar in bars)


def _grade(bar: Bar, report: Report) -> Graded:
    values = [
        row.metrics[bar.measure]
        for row in report.rows
        if row.outcome == "scored" and (bar.category is None or row.category == bar.category)
    ]
    return Graded(
        measure=bar.measure,
        category=bar.category,
        n=bar.n,
        value=metrics.mean(values),
        lowest=bar.lowest,
        misses=None if bar.misses is None else sum(value < 1 for value in values),
        misses_allowed=bar.misses,
        rule=bar.rule,
        floor=bar.floor,
        points=bar.points,
        baseline=bar.baseline,
        queries=bar.queries,
        passed=bar.passes(values),
    )


def breach(grade: Graded) -> Reason:
    """Why a measure that is below its bar fails, by the rule that gives the bar."""
    drop = ""
    if grade.rule != "floor":
        where = " everywhere" if grade.rule == "everywhere" else ""
        drop = f"{grade.points:.4g} points below the baseline's {grade.baseline:.4f}{where}"
    value: float = round(grade.value, 4) if grade.misses is None else grade.misses
    if grade.misses is None:
        what = f"the bar is {grade.lowest:.4f}, {drop or 'its floor'}"
    else:
        what = f"{grade.misses_allowed} misses are allowed" + (f", {drop}" if drop else "")
    return Reason(
        code="baseline-drop" if drop else "floor-breached",
        word="fail",
        what=what,
        key=grade.measure,
        value=value,
        category=grade.category,
        bar=grade.lowest if grade.misses_allowed is None else grade.misses_allowed,
    )


def must_pass(arm: ArmPolicy, report: Report) -> Iterator[Reason]:
    """Queries that may lose nothing: those whose metadata says `must_pass`."""
    measure = arm.baseline.headline
    marked = [row.id for row in report.rows if row.meta.get("must_pass") is True]
    if not marked:
        return
    values = {row.id: row.metrics[measure] for row in report.rows if row.outcome == "scored"}
    lost = must_pass_lost(arm.baseline, measure, values, marked)
    if lost:
        runs = RUNS.get(arm.baseline.class_, "--measure")
        which = f"query {lost[0]}" if len(lost) == 1 else f"{len(lost)} queries, {some(lost)},"
        yield Reason(
            code="must-pass-lost",
            word="fail",
            what=f"{which} must pass and lost",
            key=measure,
            mend="Where a query need not pass any more, take must_pass off its line of queries.jsonl in a commit of "
            f'its own, then:  eval-gate floor {arm.name} {runs} --reason task="…" --write',
        )


def latency(arm: ArmPolicy, report: Report) -> Iterator[Reason]:
    """The 95th percentile against its budget."""
    budget, found = arm.p95_ms, report.latency
    if budget is None:
        return
    samples = found.samples if found else 0
    if found is None or samples < LATENCY_SAMPLES:
        needed = -(-LATENCY_SAMPLES // max(1, report.n))
        yield Reason(
            code="latency-not-measurable",
            word="refused",
            what=f"there are {samples} samples, and a bound on p95 needs {LATENCY_SAMPLES}",
            key="p95_ms",
            mend=f"Set repetitions = {needed} for the arm, or leave it out, and measure again.",
        )
    elif arm.baseline.repetitions != report.repetitions:
        # Later passes are answered from warm caches: more of them make the percentile smaller, and say nothing.
        yield Reason(
            code="repetitions-differ",
            word="refused",
            what=f"latency was measured over {report.repetitions} repetitions, and the baseline over "
            f"{arm.baseline.repetitions}: the budget is for as many",
            key="p95_ms",
            mend=f"Set repetitions back, or move the bar:  eval-gate floor {arm.name} --measure --write",
        )
    elif found.p95 > budget:
        yield Reason(
            code="latency-over-budget",
            word="fail",
            what=f"the budget is {budget:g} ms",
            key="p95_ms",
            value=round(found.p95, 3),
            bar=budget,
        )


def slack(arm: ArmPolicy, graded: Sequence[Graded]) -> Iterator[str]:
    """Floors that the report beats by more than the margin and two misses: they no longer hold anything."""
    loose = []
    for grade in graded:
        if grade.floor is None:
            continue
        lowest = grade.floor if grade.misses is None else (grade.n - grade.floor) / grade.n
        room = (grade.value - lowest) * grade.n
        if room > arm.margin + SLACK + TOLERANCE:
            named = grade.measure if grade.category is None else f"{grade.measure} of {grade.category}"
            loose.append(f"{named} by {room:.1f} queries")
    if loose:
        yield f"beats its floors by more than the margin and two: {', '.join(loose)}; raise them after another run"


def choices(arm: ArmPolicy) -> Iterator[str]:
    """What lets more pass than is usual, each with the reason that is given for it."""
    for key, what in reasons_needed(arm.floors, arm.budget, arm.lines).items():
        held = arm.budget.reasons if key in Budget.model_fields else arm.floors.reasons
        yield f"{what}: {held[key]}"
    if arm.p95_ms is None:
        yield "no latency is required of it, as of the owner's lane and of services: p95_ms in budgets.toml does"


def by_chance(arm: ArmPolicy) -> Iterator[str]:
    """Drops of measures without a floor that a random ranking passes on average."""
    reached = [
        f"{bar.measure} ({bar.lowest:.4f})"
        for bar in arm.bars
        if bar.floor is None
        and bar.category is None
        and reached_on_average(arm.baseline, bar.measure, bar.lowest)
    ]
    if reached:
        yield f"a random ranking of the documents reaches the bar of {', '.join(reached)} on average"


def significance(baseline: Line, report: Report, measure: str) -> Significance | None:
    """How much of the change of a measure chance explains."""
    from eval_core.scoring.statistics import paired, resolution

    before = dict(zip((entry.id for entry in baseline.scored), baseline.column(measure), strict=True))
    pairs = [(before[r.id], r.metrics[measure]) for r in report.rows if r.id in before and r.metrics]
    if not pairs:
        return None
    change = paired([b for b, _ in pairs], [a for _, a in pairs])
    return Significance(
        metric=measure,
        difference=change.difference,
        low=change.interval.low,
        high=change.interval.high,
        p=change.p,
        test=change.test,
        resolvable=abs(change.difference) * len(pairs) >= resolution(len(pairs)).queries - TOLERANCE,
    )
