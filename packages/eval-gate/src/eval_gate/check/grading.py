"""The grades of an arm: floors, queries that must pass, drops against the baseline, latency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eval_core.reports.models import ReportRow, Slice
from eval_core.reports.report import Report
from eval_core.scoring import metrics
from eval_gate.check.changes import some
from eval_gate.check.eligibility import BAR, CUTOFF, refusal
from eval_gate.policy import (
    DEFAULT_MAX_DROP,
    LATENCY_SAMPLES,
    TOLERANCE,
    ArmFloors,
    Budget,
    Floor,
    usual_measures,
)
from eval_gate.verdict import Graded, Reason, Significance


def graded(floors: ArmFloors, report: Report, baseline: Report | None) -> Iterator[Graded]:
    """Every floor against the report: those of the whole set, then those of its categories."""
    before = baseline.summary.overall if baseline else None
    for metric, floor in floors.metrics.items():
        yield _grade(metric, floor, report.summary.overall, report.rows, before)
    for name, category in floors.categories.items():
        rows = [row for row in report.rows if row.category == name]
        before = baseline.summary.categories.get(name) if baseline else None
        for metric, floor in category.metrics.items():
            grade = _grade(metric, floor, report.summary.categories[name], rows, before)
            yield grade.model_copy(update={"category": name})


def _grade(
    metric: str, floor: Floor, found: Slice, rows: Sequence[ReportRow], before: Slice | None
) -> Graded:
    value = found.metrics[metric]
    was = before.metrics.get(metric) if before else None
    if floor.max_misses is not None:
        missed = sum(row.metrics[metric] < 1 for row in rows if row.outcome == "scored")
        return Graded(
            metric=metric,
            value=value,
            floor=(found.n - floor.max_misses) / found.n,
            misses=missed,
            max_misses=floor.max_misses,
            baseline=was,
            passed=missed <= floor.max_misses,
        )
    bar = floor.floor if floor.floor is not None else 1.0
    return Graded(metric=metric, value=value, floor=bar, baseline=was, passed=value >= bar - TOLERANCE)


def breach(grade: Graded) -> Reason:
    if grade.max_misses is not None:
        told = f"{grade.misses} misses, and {grade.max_misses} are allowed"
    else:
        told = f"{grade.value:.4f}, and the floor is {grade.floor:.4f}"
    message = f"{_named(grade)}: {told}"
    return Reason(code="floor-breached", word="fail", message=message, metric=grade.metric)


def _named(grade: Graded) -> str:
    return grade.metric if grade.category is None else f"{grade.metric} of {grade.category}"


def must_pass(floors: ArmFloors, baseline: Report | None, report: Report) -> list[Reason]:
    """Queries that may lose nothing: those whose metadata says `must_pass`."""
    metric = floors.headline
    before = {row.id: row.metrics.get(metric, 0.0) for row in baseline.rows} if baseline else {}
    lost = []
    for row in report.rows:
        if row.meta.get("must_pass") is not True or row.outcome != "scored":
            continue
        value = row.metrics.get(metric, 0.0)
        if value <= 0 or value < before.get(row.id, 0.0) - TOLERANCE:
            lost.append(row.id)
    if not lost:
        return []
    which = f"query {lost[0]}" if len(lost) == 1 else f"{len(lost)} queries, {some(lost)},"
    return [
        Reason(
            code="must-pass-lost",
            word="fail",
            message=f"{metric}: {which} must pass and lost; none is allowed",
            remedy="Where a query need not pass any more, take must_pass off its line of queries.jsonl in a commit of "
            f'its own, measure twice, then:  eval-gate floor {report.arm} --reason "…" --write && '
            f"eval-gate baseline {report.arm} --write",
            metric=metric,
        )
    ]


def net_lost(floors: ArmFloors, budget: Budget, baseline: Report | None, report: Report) -> list[Reason]:
    """Queries lost of the headline measure, those gained taken off, beyond what the budget or the margin allows."""
    metric = floors.headline
    if baseline is None or metric not in baseline.summary.overall.metrics:
        return []
    allowed = floors.margin if budget.max_net_lost is None else budget.max_net_lost
    before, after = (r.summary.overall.metrics.get(metric, 0.0) for r in (baseline, report))
    net = (before - after) * report.n
    if net <= allowed + TOLERANCE * report.n:
        return []
    message = f"{metric}: {net:.4g} queries lost, net of those gained, against the baseline, and {allowed} are allowed"
    return [Reason(code="net-lost", word="fail", message=message, metric=metric)]


def drops(budget: Budget, baseline: Report | None, report: Report) -> list[Reason]:
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
                refusal(
                    "metric-missing",
                    f"{metric} is held against the baseline, and {lacking} lacks it",
                    CUTOFF,
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


def drops_everywhere(budget: Budget, baseline: Report | None, report: Report) -> Iterator[Reason]:
    """M2: every measure, over all queries and in every category, may fall by so much; none may come or go."""
    points = budget.max_drop_everywhere
    if baseline is None or points is None:
        return
    slices: dict[str | None, tuple[Slice, Slice]] = {None: (baseline.summary.overall, report.summary.overall)}
    before, after = baseline.summary.categories, report.summary.categories
    for name in sorted(before.keys() ^ after.keys()):
        where = "the report" if name in before else "the baseline"
        message = f"category {name!r} is held against the baseline, and {where} lacks it"
        yield refusal("category-missing", message, BAR.format(report.arm))
    slices |= {name: (before[name], after[name]) for name in before if name in after}
    for category, (old, new) in slices.items():
        for metric in old.metrics.keys() ^ new.metrics.keys():
            where = "the report" if metric in old.metrics else "the baseline"
            message = f"{metric} is held against the baseline, and {where} lacks it"
            if category is None:
                yield refusal("metric-missing", message, CUTOFF, metric=metric)
        for metric, value in new.metrics.items():
            drop = (old.metrics.get(metric, value) - value) * 100
            if drop > points + TOLERANCE:
                named = metric if category is None else f"{metric} of {category}"
                message = (
                    f"{named}: {drop:.2f} points below the baseline ({old.metrics[metric]:.4f} → {value:.4f}), "
                    f"and {points:g} are allowed everywhere"
                )
                yield Reason(code="baseline-drop", word="fail", message=message, metric=metric)


def latency(budget: Budget, baseline: Report | None, report: Report) -> list[Reason]:
    if budget.p95_ms is None:
        return []
    latency = report.latency
    if latency is None or latency.samples < LATENCY_SAMPLES:
        samples = latency.samples if latency else 0
        needed = -(-LATENCY_SAMPLES // max(1, report.n))
        return [
            refusal(
                "latency-not-measurable",
                f"{samples} samples; a bound on p95 needs {LATENCY_SAMPLES}",
                f"Set repetitions = {needed} for the arm, and measure again.",
            )
        ]
    if baseline is not None and baseline.repetitions != report.repetitions:
        # Later passes are answered from warm caches: more of them make the percentile smaller, and say nothing.
        return [
            refusal(
                "repetitions-differ",
                f"latency was measured over {report.repetitions} repetitions, and the baseline over "
                f"{baseline.repetitions}: the budget is for as many",
                f'Set repetitions back, or move the bar:  eval-gate floor {report.arm} --reason "…" --write && '
                f"eval-gate baseline {report.arm} --p95-ms … --write",
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


def slack(floors: ArmFloors, graded: Sequence[Graded]) -> Iterator[str]:
    """Floors that the report beats by more than the margin and two misses: they no longer hold anything."""
    loose = []
    for grade in graded:
        n = floors.n if grade.category is None else floors.categories[grade.category].n
        room = (grade.value - grade.floor) * n
        if room > floors.margin + 2 + TOLERANCE:
            loose.append(f"{_named(grade)} by {room:.1f} queries")
    if loose:
        yield (
            f"beats its floors by more than the margin and two: {', '.join(loose)}; raise them after another run"
        )


def significance(baseline: Report | None, report: Report, metric: str) -> Significance | None:
    if baseline is None:
        return None
    from eval_core.scoring.statistics import paired, resolution

    before = {row.id: row.metrics[metric] for row in baseline.rows if metric in row.metrics}
    pairs = [(before[r.id], r.metrics[metric]) for r in report.rows if r.id in before and metric in r.metrics]
    if not pairs:
        return None
    change = paired([b for b, _ in pairs], [a for _, a in pairs], metrics.is_binary(metric))
    return Significance(
        metric=metric,
        difference=change.difference,
        low=change.interval.low,
        high=change.interval.high,
        p=change.p,
        test=change.test,
        resolvable=abs(change.difference) * len(pairs) >= resolution(len(pairs)).queries - TOLERANCE,
    )


def headline(report: Report) -> tuple[str, ...]:
    """The measures that a set's floors are made for where nobody says otherwise; see `policy.usual_measures`."""
    return usual_measures(report.dataset.headline, list(report.cutoffs))
