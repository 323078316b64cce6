"""Sound reports of something else: rows altered, and everything that follows from them made to follow, as an honest
measurement of the altered thing would have it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from eval_core.reports.keys import Key, task_digests
from eval_core.reports.models import Judged, ReportRow, cutoffs_of
from eval_core.reports.report import Report, summarise
from eval_core.scoring import metrics


def rebuilt(
    report: Report,
    rows: Iterable[ReportRow] | None = None,
    parts: Mapping[str, Any] | None = None,
    documents: int | None = None,
    **fields: Any,
) -> Report:
    """A report that holds, of other rows, another task or other fields.

    Args:
        report: what it is like otherwise.
        rows: their metric values are taken anew from the ranks of the judged documents.
        parts: of the task key; those that the rows give are recomputed.
        documents: how many the corpus is said to hold.
        fields: any others of the report, such as `environment`.
    """
    kept = tuple(report.rows if rows is None else rows)
    table = {**report.task.parts, **(parts or {})}
    table |= task_digests(
        ((row.id, row.text, row.meta) for row in kept),
        ((row.id, {judged.id: judged.grade for judged in row.judged}) for row in kept),
    )
    task = Key.of(table)
    cutoffs = cutoffs_of(task)
    made = tuple(_scored(row, cutoffs) for row in kept)
    counts = {
        name: sum(row.outcome == name for row in made)
        for name in ("scored", "errored", "unscored", "unscorable")
    }
    facts: dict[str, Any] = {"queries": len(made)}
    if documents is not None:
        facts["documents"] = documents
    values: dict[str, Any] = {
        name: getattr(report, name) for name in Report.model_fields if name != "digests"
    }
    values |= {
        "task": task,
        "rows": made,
        "health": report.health.model_copy(
            update={**counts, "unstable": sum(not row.stable for row in made)}
        ),
        "dataset": report.dataset.model_copy(update=facts),
        "summary": summarise(made, cutoffs),
    }
    return Report.sealed(**{**values, **fields})


def _scored(row: ReportRow, cutoffs: tuple[int, ...]) -> ReportRow:
    if row.outcome != "scored":
        judged = tuple(one.model_copy(update={"rank": None}) for one in row.judged)
        return row.model_copy(update={"ids": (), "judged": judged, "metrics": {}})
    ids = row.ids[: cutoffs[-1]]
    pairs = [(judged.grade, judged.rank) for judged in row.judged]
    values = metrics.score(pairs, metrics.names(cutoffs), len(ids))
    return row.model_copy(update={"ids": ids, "metrics": values})


def answered(row: ReportRow, ids: Sequence[str], beyond: Mapping[str, int] | None = None) -> ReportRow:
    """A row that was answered with these ids; `beyond` are ranks of judged documents below them."""
    places = {name: rank for rank, name in enumerate(ids, 1)} | dict(beyond or {})
    judged = tuple(one.model_copy(update={"rank": places.get(one.id)}) for one in row.judged)
    return row.model_copy(update={"ids": tuple(ids), "judged": judged})


def relabelled(row: ReportRow, grades: Mapping[str, int]) -> ReportRow:
    """A row with other judgements; what was returned stays."""
    places = {name: rank for rank, name in enumerate(row.ids, 1)}
    judged = tuple(
        Judged(id=name, grade=grade, rank=places.get(name)) for name, grade in sorted(grades.items())
    )
    return row.model_copy(update={"judged": judged})


def found(row: ReportRow) -> int | None:
    """The rank of the first relevant document; None where none was returned, or the row was not scored."""
    ranks = [one.rank for one in row.judged if one.grade > 0 and one.rank is not None]
    return min(ranks) if ranks and row.outcome == "scored" else None


def fillers(report: Report) -> Callable[[ReportRow], list[str]]:
    """What could stand in a row in the place of what it loses: documents of other rows that it neither holds, judges
    nor excludes."""
    pool = list(dict.fromkeys(name for row in report.rows for name in row.ids))

    def of(row: ReportRow) -> list[str]:
        exclude = row.meta.get("exclude")
        barred = {*row.ids, *(one.id for one in row.judged)}
        barred |= {name for name in exclude if isinstance(name, str)} if isinstance(exclude, list) else set()
        return [name for name in pool if name not in barred]

    return of


def lost(row: ReportRow, spare: Sequence[str]) -> ReportRow:
    """The row with every relevant document gone from its answer, other documents in their place."""
    relevant = {one.id for one in row.judged if one.grade > 0}
    kept = [name for name in row.ids if name not in relevant]
    return answered(row, [*kept, *spare[: len(row.ids) - len(kept)]])


def deeper(row: ReportRow, ranks: int, spare: Sequence[str], depth: int, limit: int) -> ReportRow:
    """The row with everything so many ranks lower, other documents above it; judged ones beyond the limit are gone."""
    if row.outcome != "scored":
        return row
    above = spare[:ranks]
    # With too few other documents there is nothing to fill the place with: what is left moves up.
    ids = [*above, *row.ids][:depth]
    beyond = {
        one.id: one.rank + len(above)
        for one in row.judged
        if one.rank is not None and len(ids) == depth and depth < one.rank + len(above) <= limit
    }
    return answered(row, ids, beyond)
