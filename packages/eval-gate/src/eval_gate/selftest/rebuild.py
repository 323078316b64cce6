"""Sound reports of something else: rows altered, and all that follows from them made to follow, as an honest
measurement of the altered thing would have it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eval_core.reports import Judged, Key, Report, ReportRow, cutoffs_of, summarise, task_digests
from eval_core.scoring import metrics


def rebuilt(
    report: Report,
    rows: Iterable[ReportRow] | None = None,
    parts: Mapping[str, Any] | None = None,
    facts: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Report:
    """A report of other rows, of another task or with other fields.

    Args:
        report: what it is like otherwise.
        rows: their values are taken anew from the ranks of the judged documents.
        parts: of the task key; those that the rows give are recomputed.
        facts: of the set, such as `documents` or `headline`.
        fields: others of the report, such as `environment`.
    """
    kept = tuple(report.rows if rows is None else rows)
    table = {**report.task.parts, **(parts or {})}
    table |= task_digests(
        ((row.id, row.text, row.meta) for row in kept),
        ((row.id, {judged.id: judged.grade for judged in row.judged}) for row in kept),
    )
    dataset = report.dataset.model_copy(update={"queries": len(kept), **(facts or {})})
    cutoffs = cutoffs_of(table)
    measures = metrics.names(cutoffs, dataset.headline)
    scored = tuple(_scored(row, measures, cutoffs[-1]) for row in kept)
    outcomes = ("scored", "errored", "unscored", "unscorable")
    counts = {name: sum(row.outcome == name for row in scored) for name in outcomes}
    counts["unstable"] = sum(not row.stable for row in scored)
    values: dict[str, Any] = {n: getattr(report, n) for n in Report.model_fields if n != "digests"}
    values |= {
        "task": Key.of(table),
        "rows": scored,
        "health": report.health.model_copy(update=counts),
        "dataset": dataset,
        "summary": summarise(scored, measures),
    }
    return Report.sealed(**{**values, **fields})


def _scored(row: ReportRow, measures: Sequence[str], depth: int) -> ReportRow:
    if row.outcome != "scored":
        judged = tuple(one.model_copy(update={"rank": None}) for one in row.judged)
        return row.model_copy(update={"ids": (), "judged": judged, "metrics": {}})
    ids = row.ids[:depth]
    pairs = [(judged.grade, judged.rank) for judged in row.judged]
    return row.model_copy(update={"ids": ids, "metrics": metrics.score(pairs, measures, len(ids))})


def answered(row: ReportRow, ids: Sequence[str]) -> ReportRow:
    """A row that was answered with these ids; judged documents below what it shows keep their ranks, where it is as
    long as before."""
    places = {name: rank for rank, name in enumerate(ids, 1)}
    if len(ids) == len(row.ids):
        places |= {j.id: j.rank for j in row.judged if j.rank is not None and j.rank > len(ids)}
    judged = tuple(one.model_copy(update={"rank": places.get(one.id)}) for one in row.judged)
    return row.model_copy(update={"ids": tuple(ids), "judged": judged})


def relabelled(row: ReportRow, grades: Mapping[str, int]) -> ReportRow:
    """A row with other judgements; what was returned stays."""
    places = {name: rank for rank, name in enumerate(row.ids, 1)}
    judged = (Judged(id=name, grade=grade, rank=places.get(name)) for name, grade in sorted(grades.items()))
    return row.model_copy(update={"judged": tuple(judged)})


def found(row: ReportRow) -> int | None:
    """The rank of the first relevant document; None where there is none, or the row was not scored."""
    ranks = [one.rank for one in row.judged if one.grade > 0 and one.rank is not None]
    return min(ranks) if ranks and row.outcome == "scored" else None


def lost(row: ReportRow) -> ReportRow:
    """The row without any relevant document in its answer."""
    relevant = {one.id for one in row.judged if one.grade > 0}
    judged = tuple(j.model_copy(update={"rank": None}) if j.grade > 0 else j for j in row.judged)
    kept = [name for name in row.ids if name not in relevant]
    return answered(row.model_copy(update={"judged": judged}), kept)
