"""A report out of measured rows: each query's ranks and measures, counts, summary, intervals and digests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from eval_core.measuring.candidates import counter
from eval_core.measuring.plan import Plan
from eval_core.measuring.run import ERRORED, SCORED, UNSCORABLE, UNSCORED, Row
from eval_core.measuring.statements import by_chance, saturated
from eval_core.reports.keys import Key
from eval_core.reports.models import (
    REORDERED,
    Environment,
    Health,
    Ingest,
    Judged,
    Latency,
    ReportRow,
    SetFacts,
    Slice,
    Summary,
)
from eval_core.reports.report import Report, summarise
from eval_core.scoring import metrics, statistics
from eval_core.sets.dataset import Query
from eval_core.sets.limits import Saturation

#: Queries that a category needs to be given intervals.
FEWEST = 5

#: Decimals of an interval's bounds: more than it can mean, and the same on every platform.
DECIMALS = 6


def assemble(
    made: Plan,
    measured: Mapping[str, Row],
    *,
    run_id: str,
    task: Key,
    system: Key,
    environment: Environment,
    ingest: Ingest,
    resumed: bool = False,
    restarts: int = 0,
    statements: Sequence[str] = (),
) -> Report:
    """Make the report of an arm's rows, `measured` by query id."""
    candidates = counter(made)
    measures = metrics.names(made.cutoffs, made.headline)
    rows = tuple(_row(made, query, measured[query.id], candidates(query), measures) for query in made.queries)
    raw = list(measured.values())
    counts = {
        outcome: sum(row.outcome == outcome for row in raw)
        for outcome in (SCORED, ERRORED, UNSCORED, UNSCORABLE)
    }
    return Report.sealed(
        schema_="report-v1",
        arm=made.name,
        run_id=run_id,
        task=task,
        system=system,
        dataset=SetFacts(
            name=made.dataset.name,
            version=made.dataset.definition.version,
            documents=made.dataset.documents,
            queries=len(made.queries),
            headline=made.headline,
            moves=made.dataset.definition.moves,
        ),
        environment=environment,
        index="built",
        resumed=resumed,
        repetitions=made.repetitions,
        health=Health(
            scored=counts[SCORED],
            errored=counts[ERRORED],
            unscored=counts[UNSCORED],
            unscorable=counts[UNSCORABLE],
            duplicates=sum(row.duplicates for row in raw),
            excess=sum(row.excess for row in raw),
            restarts=restarts,
            unstable=sum(not row.stable for row in raw),
            counts={REORDERED: reordered} if (reordered := sum(row.reordered for row in raw)) else {},
        ),
        summary=bounded(rows, measures),
        latency=_latency([value for row in raw if row.outcome == SCORED for value in row.latencies]),
        ingest=ingest,
        limits=made.limits.model_dump(mode="json") if made.limits else None,
        saturation=_saturation(made.headline, rows),
        statements=(
            *made.dataset.definition.statements,
            *statements,
            *made.dataset.blanks(),
            *by_chance(made.limit, (row.candidates for row in rows if row.outcome == SCORED)),
            *saturated(made.headline, rows),
        ),
        rows=rows,
    )


def bounded(rows: Sequence[ReportRow], measures: list[str]) -> Summary:
    """The summary of rows with 95% intervals for each measure, overall and in categories of five queries or more."""
    summary = summarise(rows, measures)
    scored = [row for row in rows if row.outcome == SCORED]
    categories = {
        name: _bounded(part, [row for row in scored if row.category == name]) if part.n >= FEWEST else part
        for name, part in summary.categories.items()
    }
    return Summary(overall=_bounded(summary.overall, scored), categories=categories)


def _bounded(part: Slice, rows: Sequence[ReportRow]) -> Slice:
    if not rows:
        return part
    names = list(part.metrics)
    most = metrics.most(([j.grade for j in row.judged] for row in rows), list(map(metrics.parse, names)))
    table = {name: [row.metrics[name] for row in rows] for name in names}
    found = statistics.intervals(table, dict(zip(names, most, strict=True)))
    bounds = {name: (round(low, DECIMALS), round(high, DECIMALS)) for name, (low, high) in found.items()}
    return part.model_copy(update={"intervals": bounds})


def _saturation(headline: str, rows: Sequence[ReportRow]) -> dict[str, JsonValue] | None:
    values = [row.metrics[headline] for row in rows if headline in row.metrics]
    if not values:
        return None
    room = (1 - metrics.mean(values)) * 100
    whole = sum(value == 1 for value in values) / len(values)
    return Saturation(metric=headline, headroom_points=room, whole=whole).model_dump(mode="json")


def _latency(samples: list[float]) -> Latency | None:
    if not samples:
        return None
    return Latency(
        p50=metrics.percentile(samples, 0.50),
        p95=metrics.percentile(samples, 0.95),
        max=max(samples),
        samples=len(samples),
    )


def _row(made: Plan, query: Query, row: Row, candidates: int | None, measures: list[str]) -> ReportRow:
    grades = made.dataset.judgements.get(query.id, {})
    ranks = metrics.judged_ranks(row.ids, grades)
    judged = tuple(
        Judged(id=name, grade=grade, rank=ranks.get(name)) for name, grade in sorted(grades.items())
    )
    scored = row.outcome == SCORED
    ids = tuple(row.ids[: made.cutoffs[-1]]) if scored else ()
    return ReportRow(
        id=query.id,
        text=query.text,
        meta=query.meaning(made.arm.filter_from),
        outcome=row.outcome,
        ids=ids,
        judged=judged,
        metrics=metrics.score([(j.grade, j.rank) for j in judged], measures, len(ids)) if scored else {},
        candidates=candidates,
        stable=row.stable,
        detail=row.detail,
    )
