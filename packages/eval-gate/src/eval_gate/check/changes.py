"""What differs between a report and its baseline, by name: queries, labels, system, ranks."""

from __future__ import annotations

from eval_core.policy import TOLERANCE, Line
from eval_core.reports import Entry, Judged, Report, ReportRow
from eval_core.reports.keys import (
    SYSTEM_PARTS,
    Difference,
    differences,
    nested_differences,
    query_digest,
)
from eval_core.scoring import metrics
from eval_gate.verdict import Changed, Moved

#: Parts of the task that are shown by their values; the others are digests.
_PLAIN = ("limit", "split", "kind", "filter", "scale", "metrics")

#: How many queries or documents are named.
_NAMED = 5


def in_words(difference: Difference, report: Report, baseline: Line) -> str:
    """How a part of the task differs, by name where the baseline's entries tell; empty where nothing does."""
    if difference.part in _PLAIN:
        return f": {_short(difference.theirs)} now, {_short(difference.ours)} in the baseline"
    before = {entry.id: entry for entry in baseline.entries}
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
            return _listed([old.id for old, row in both if old.query != query_digest(row.text, row.meta)])
        case "judgements":
            return _listed([old.id + what for old, row in both if (what := _relabelled(old, row))])
        case "corpus" if baseline.documents != report.dataset.documents:
            return f" ({report.dataset.documents} documents now, {baseline.documents} in the baseline)"
    return ""


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _listed(names: list[str]) -> str:
    return f": {some(names)}" if names else ""


def _relabelled(old: Entry, row: ReportRow) -> str:
    """The documents of a query that have another grade now, none where there is none."""
    before = {document: grade for document, grade, _ in old.judged}
    after = {judged.id: judged.grade for judged in row.judged}
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return f" ({some(changed)})" if changed else ""


def some(names: list[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def system_changes(baseline: Line, report: Report) -> tuple[Changed, ...]:
    """The innermost parts of the system that are not what the baseline had."""
    return tuple(
        Changed(part=inner.part, before=inner.ours, after=inner.theirs)
        for part in differences(baseline.system, report.system.parts, SYSTEM_PARTS)
        for inner in nested_differences(part.ours, part.theirs, part.part)
    )


def moved(baseline: Line, report: Report, measure: str) -> tuple[tuple[Moved, ...], tuple[Moved, ...]]:
    """Queries that lost or gained of a measure against the baseline, those that changed most first."""
    before = dict(zip((entry.id for entry in baseline.scored), baseline.column(measure), strict=True))
    rows = [row for row in report.rows if row.outcome == "scored" and row.id in before]
    changes = [(row.metrics[measure] - before[row.id], row) for row in rows]
    changes = [(change, row) for change, row in changes if abs(change) > TOLERANCE]
    if not changes:
        return (), ()
    entries = {entry.id: entry for entry in baseline.scored}
    found = [_move(entries[row.id], row, measure, change) for change, row in changes]
    found.sort(key=lambda m: (-round(abs(m.change), 9), m.query))
    return tuple(m for m in found if m.change < 0), tuple(m for m in found if m.change > 0)


def _move(old: Entry, new: ReportRow, measure: str, change: float) -> Moved:
    ranks = {document: rank for document, _, rank in old.judged}
    nowhere = 10**9

    def distance(judged: Judged) -> int:
        return abs((ranks.get(judged.id) or nowhere) - (judged.rank or nowhere))

    most = max((judged for judged in new.judged if judged.grade > 0), key=distance)
    places, cutoff = [judged.rank for judged in new.judged], metrics.parse(measure).cutoff
    above, unjudged = metrics.unjudged_above(places, len(new.ids), cutoff, most.rank)
    return Moved(
        query=new.id,
        text=new.text,
        document=most.id,
        before=ranks.get(most.id),
        after=most.rank,
        metric=measure,
        change=change,
        above=above,
        unjudged=unjudged,
    )
