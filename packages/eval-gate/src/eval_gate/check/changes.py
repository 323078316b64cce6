"""What differs between a report and the committed baseline, told by name: queries, labels, system, ranks."""

from __future__ import annotations

from eval_core.reports.keys import SYSTEM_PARTS, Difference, differences, nested_differences
from eval_core.reports.models import Judged, ReportRow
from eval_core.reports.report import Report
from eval_gate.policy import TOLERANCE
from eval_gate.verdict import Changed, Moved

#: Parts of the task that are told by their values; the others are digests.
_PLAIN = ("limit", "split", "kind", "filter", "scale", "metrics")


def told(difference: Difference, report: Report, baseline: Report | None) -> str:
    """Say how a part of the task differs, by name where the baseline's rows tell; empty where nothing does."""
    if difference.part in _PLAIN:
        return f": {_short(difference.theirs)} now, {_short(difference.ours)} in the floors"
    if baseline is None:
        return ""
    before = {row.id: row for row in baseline.rows}
    after = {row.id: row for row in report.rows}
    both = [(before[name], after[name]) for name in before if name in after]
    match difference.part:
        case "query_ids":
            parts = [f"{len(after)} now, {len(before)} in the baseline"]
            gone, new = sorted(before.keys() - after.keys()), sorted(after.keys() - before.keys())
            parts += [f"gone: {some(gone)}"] if gone else []
            parts += [f"new: {some(new)}"] if new else []
            return ": " + "; ".join(parts)
        case "queries":
            return _listed([old.id for old, row in both if (old.text, old.meta) != (row.text, row.meta)])
        case "judgements":
            return _listed([old.id for old, row in both if _labels(old) != _labels(row)])
        case "corpus" if baseline.dataset.documents != report.dataset.documents:
            return (
                f" ({report.dataset.documents} documents now, {baseline.dataset.documents} in the baseline)"
            )
    return ""


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _listed(names: list[str]) -> str:
    return f": {some(names)}" if names else ""


def _labels(row: ReportRow) -> dict[str, int]:
    return {judged.id: judged.grade for judged in row.judged}


def some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def system_changes(baseline: Report | None, report: Report) -> tuple[Changed, ...]:
    """Name the innermost parts of the system that are not what the baseline had."""
    if baseline is None:
        return ()
    return tuple(
        Changed(part=inner.part, before=inner.ours, after=inner.theirs)
        for part in differences(baseline.system.parts, report.system.parts, SYSTEM_PARTS)
        for inner in nested_differences(part.ours, part.theirs, part.part)
    )


def moved(
    baseline: Report | None, report: Report, metric: str
) -> tuple[tuple[Moved, ...], tuple[Moved, ...]]:
    """Queries that lost or gained of a measure against the baseline, the most first."""
    if baseline is None or metric not in baseline.summary.overall.metrics:
        return (), ()
    before = {row.id: row for row in baseline.rows if row.outcome == "scored"}
    found = []
    for row in report.rows:
        old = before.get(row.id)
        if old is None or row.outcome != "scored":
            continue
        change = row.metrics[metric] - old.metrics[metric]
        if abs(change) > TOLERANCE:
            found.append(_move(old, row, metric, change))
    found.sort(key=lambda m: (-round(abs(m.change), 9), m.query))
    return tuple(m for m in found if m.change < 0), tuple(m for m in found if m.change > 0)


def _move(old: ReportRow, new: ReportRow, metric: str, change: float) -> Moved:
    ranks = {judged.id: judged.rank for judged in old.judged}
    nowhere = 10**9

    def distance(judged: Judged) -> int:
        return abs((ranks.get(judged.id) or nowhere) - (judged.rank or nowhere))

    most = max((judged for judged in new.judged if judged.grade > 0), key=distance)
    return Moved(
        query=new.id,
        text=new.text,
        document=most.id,
        before=ranks.get(most.id),
        after=most.rank,
        metric=metric,
        change=change,
    )
