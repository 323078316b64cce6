"""How small a regression of an arm the policy catches: queries lost one after another, hits a rank lower at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eval_core.reports.models import ReportRow
from eval_core.reports.report import Report
from eval_gate.selftest.bench import Bench, Outcome
from eval_gate.selftest.models import Regression, Smallest
from eval_gate.selftest.rebuild import deeper, fillers, found, lost, rebuilt


def regression(bench: Bench) -> Regression:
    """The smallest losses of one arm that fail its gate."""
    report = bench.report
    spare = fillers(report)
    hits = [(rank, row.id) for row in report.rows if (rank := found(row)) is not None]
    easiest = [name for _, name in sorted(hits)]
    deepest = [name for _, name in sorted(hits, key=lambda hit: (-hit[0], hit[1]))]
    limit = report.task.parts["limit"]
    most = limit if isinstance(limit, int) else report.cutoffs[-1]

    def without(order: Sequence[str]) -> Callable[[int], Report]:
        def worse(amount: int) -> Report:
            gone = set(order[:amount])
            return rebuilt(report, [lost(row, spare(row)) if row.id in gone else row for row in report.rows])

        return worse

    def lower(ranks: int) -> Report:
        def row_of(row: ReportRow) -> ReportRow:
            return deeper(row, ranks, spare(row), report.cutoffs[-1], most)

        return rebuilt(report, [row_of(row) for row in report.rows])

    return Regression(
        arm=bench.arm,
        n=report.n,
        one_query_points=100 / report.n,
        easiest_first=_smallest(bench, without(easiest), len(easiest)),
        deepest_first=_smallest(bench, without(deepest), len(deepest)),
        deeper=_smallest(bench, lower, most),
    )


def _smallest(bench: Bench, worse: Callable[[int], Report], most: int) -> Smallest:
    """The smallest amount that the gate does not pass, at most `most`.

    More of it is never better, so the amount is doubled until it fails and then halved in.
    """
    passes, amount = 0, 1
    fails: tuple[int, Outcome, Report] | None = None
    while amount <= most:
        outcome, report = _asked(bench, worse(amount))
        if outcome.exit_code != 0:
            fails = amount, outcome, report
            break
        passes, amount = amount, min(2 * amount, most) if amount < most else most + 1
    if fails is None:
        return Smallest(amount=None, points=None, metric=None, code=None)
    while fails[0] - passes > 1:
        middle = (passes + fails[0]) // 2
        outcome, report = _asked(bench, worse(middle))
        if outcome.exit_code != 0:
            fails = middle, outcome, report
        else:
            passes = middle
    amount, outcome, report = fails
    metric = outcome.metrics[0] if outcome.metrics else bench.report.dataset.headline
    before, after = (one.summary.overall.metrics.get(metric, 0.0) for one in (bench.report, report))
    return Smallest(amount=amount, points=(before - after) * 100, metric=metric, code=outcome.codes[0])


def _asked(bench: Bench, report: Report) -> tuple[Outcome, Report]:
    with bench.altered():
        bench.put_report(report)
        return bench.ask(), report
