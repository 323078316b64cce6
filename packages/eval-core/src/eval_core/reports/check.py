"""What a report's rows determine, recomputed and held against what it says, so that no edited report is believed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from eval_core.files import digest
from eval_core.reports.entries import Entry, Fields, entries_digest, fields_digest, fields_of
from eval_core.reports.keys import digested_parts
from eval_core.scoring import metrics

if TYPE_CHECKING:
    from eval_core.reports.models import ReportFields, ReportRow, Slice, Summary

#: How far a stored value may be from the recomputed one: room for another platform's last bit, no more.
TOLERANCE = 1e-9


def rankings_digest(rows: Iterable[ReportRow]) -> str:
    """SHA-256 over id, outcome, ids and judgements of each row, in the order of the ids."""
    return digest(
        [
            [row.id, row.outcome, row.ids, sorted([(j.id, j.grade) for j in row.judged])]
            for row in sorted(rows, key=lambda row: row.id)
        ]
    )


def quality_digest(task: Mapping[str, Any], system: Mapping[str, Any], entries: Iterable[Entry]) -> str:
    """SHA-256 over the parts of the two keys and the entries: equal for two runs that cannot be told apart by quality,
    whichever run it was, wherever and whenever."""
    return digest([task, system, entries_digest(entries)])


def quality_of(report: ReportFields) -> str:
    """The quality digest that a report's keys and rows give."""
    return _quality(report, fields_of(report.rows, report.dataset.documents, report.cutoffs[-1]))


def _quality(report: ReportFields, fields: Iterable[Fields]) -> str:
    return digest([report.task.parts, report.system.parts, fields_digest(fields)])


def run_digest(report: ReportFields) -> str:
    """SHA-256 over what neither keys nor rankings hold: which run it was, of what arm and set, where, how whole, the
    intervals.

    Latency, ingest, process and host stand apart, since a committed copy is stripped of them.
    """
    table = {name: getattr(report, name) for name in ("arm", "run_id", "index", "resumed", "repetitions")}
    table |= {
        "dataset": report.dataset.model_dump(mode="json"),
        "environment": report.environment.model_dump(mode="json", by_alias=True),
        "health": report.health.model_dump(mode="json"),
        "statements": report.statements,
        "limits": report.limits,
        "saturation": report.saturation,
        "intervals": [
            report.summary.overall.intervals,
            {name: part.intervals for name, part in report.summary.categories.items()},
        ],
    }
    # A rank of a document of grade 0 leaves no trace in a measure, so it is held here.
    rows = [
        (row.id, row.candidates, row.stable, row.detail, [judged.rank for judged in row.judged])
        for row in report.rows
    ]
    return _run_digest(table, rows)


def run_digest_of(table: Mapping[str, Any]) -> str:
    """The same of a report in its JSON form, as a file holds it."""
    rows = [
        (
            row["id"],
            row.get("candidates"),
            row.get("stable", True),
            row.get("detail", ""),
            [j["rank"] for j in row.get("judged", ())],
        )
        for row in table["rows"]
    ]
    summary = table["summary"]
    intervals = [
        summary["overall"].get("intervals", {}),
        {name: part.get("intervals", {}) for name, part in summary.get("categories", {}).items()},
    ]
    return _run_digest({**table, "intervals": intervals}, rows)


def _run_digest(
    table: Mapping[str, Any], rows: list[tuple[str, int | None, bool, str, list[int | None]]]
) -> str:
    names = ("arm", "run_id", "dataset", "index", "resumed", "repetitions", "health", "statements")
    # 1 and 1.0 are one number in JSON, and tables are kept as they were written.
    numbers = [table.get("limits"), table.get("saturation"), table["intervals"]]
    limits = json.loads(json.dumps(numbers), parse_int=float)
    environment = {
        name: value for name, value in table["environment"].items() if name not in ("process", "host")
    }
    return digest([[table[name] for name in names], limits, environment, sorted(rows, key=itemgetter(0))])


def check_rows(report: ReportFields) -> None:
    """Recompute ranks, metric values and counts.

    Raises:
        ValueError: the first thing that does not agree.
    """
    cutoffs = report.cutoffs
    limit = report.task.parts["limit"]
    if not isinstance(limit, int):
        raise ValueError(f"task.parts.limit {limit!r} should be a whole number")
    measures = report.measures
    expected, score = set(measures), metrics.scorer([metrics.parse(name) for name in measures])
    seen: set[str] = set()
    counts = dict.fromkeys(("scored", "errored", "unscored", "unscorable"), 0)
    # Most queries have few judgements, so most rows score like one before.
    scores: dict[tuple[tuple[int, int | None], ...], dict[str, float]] = {}
    for row in report.rows:
        if row.id in seen:
            raise ValueError(f"rows hold query {row.id!r} twice")
        seen.add(row.id)
        counts[row.outcome] += 1
        _check_ranking(row, cutoffs[-1], limit)
        if row.outcome != "scored":
            if row.metrics or row.ids or any(judged.rank is not None for judged in row.judged):
                raise ValueError(f"row {row.id!r} is {row.outcome} and still holds ids, ranks or metrics")
            continue
        pairs = tuple([(judged.grade, judged.rank) for judged in row.judged])
        values = scores.get(pairs)
        if values is None:
            values = scores[pairs] = dict(
                zip(measures, score(metrics.ranked(pairs, len(row.ids))), strict=True)
            )
        given = row.metrics
        if given == values:
            continue
        if given.keys() != expected:
            odd = sorted(given.keys() ^ expected)
            raise ValueError(f"row {row.id!r}: metrics differ from those of the cut-offs: {', '.join(odd)}")
        for name, value in values.items():
            if abs(given[name] - value) > TOLERANCE:
                raise ValueError(f"row {row.id!r}: {name} is {given[name]!r}, and its ranks give {value!r}")
    for outcome, count in counts.items():
        if getattr(report.health, outcome) != count:
            raise ValueError(
                f"health.{outcome} is {getattr(report.health, outcome)}, and the rows give {count}"
            )
    unstable = sum(not row.stable for row in report.rows)
    if report.health.unstable != unstable:
        raise ValueError(f"health.unstable is {report.health.unstable}, and the rows give {unstable}")
    if report.dataset.queries != len(report.rows):
        raise ValueError(
            f"dataset.queries is {report.dataset.queries}, and there are {len(report.rows)} rows"
        )


def _check_ranking(row: ReportRow, depth: int, limit: int) -> None:
    ids = row.ids
    if len(ids) > depth:
        raise ValueError(f"row {row.id!r} holds {len(ids)} ids, more than the largest cut-off {depth}")
    places = dict(zip(ids, range(1, len(ids) + 1), strict=True))
    if len(places) != len(ids):
        raise ValueError(f"row {row.id!r} holds a document twice")
    ranks: set[int] = set()
    judged_ids: set[str] = set()
    for judged in row.judged:
        if judged.id in judged_ids:
            raise ValueError(f"row {row.id!r} judges {judged.id!r} twice")
        judged_ids.add(judged.id)
        rank = judged.rank
        shown = places.get(judged.id)
        if rank is not None and (rank in ranks or rank > limit or (rank > len(ids) and len(ids) < depth)):
            raise ValueError(f"row {row.id!r}: rank {rank} of {judged.id!r} cannot be")
        if rank is not None:
            ranks.add(rank)
        if shown != (rank if rank is not None and rank <= len(ids) else None):
            raise ValueError(f"row {row.id!r}: {judged.id!r} is given rank {rank}, and stands at {shown}")
    exclude = row.meta.get("exclude")
    if isinstance(exclude, list) and not places.keys().isdisjoint(e for e in exclude if isinstance(e, str)):
        raise ValueError(f"row {row.id!r} holds a document that its query excludes")


def check_summary(given: Summary, found: Summary) -> None:
    """Hold a report's summary against the one that its rows give.

    Raises:
        ValueError: the first thing that does not agree.
    """
    slices: list[tuple[str, Slice | None, Slice | None]] = [("overall", given.overall, found.overall)]
    for name in {**given.categories, **found.categories}:
        slices.append((f"categories.{name}", given.categories.get(name), found.categories.get(name)))
    for where, ours, theirs in slices:
        if ours is None or theirs is None:
            whose = "the rows" if theirs is None else "the summary"
            raise ValueError(f"summary.{where} is not a category of {whose}")
        if ours.n != theirs.n:
            raise ValueError(f"summary.{where}.n is {ours.n}, and the rows give {theirs.n}")
        if ours.metrics.keys() != theirs.metrics.keys():
            odd = sorted(ours.metrics.keys() ^ theirs.metrics.keys())
            raise ValueError(f"summary.{where}: metrics differ from those of the rows: {', '.join(odd)}")
        for measure, value in theirs.metrics.items():
            if not math.isclose(ours.metrics[measure], value, rel_tol=0, abs_tol=TOLERANCE):
                raise ValueError(
                    f"summary.{where}.{measure} is {ours.metrics[measure]!r}, and the rows give {value!r}"
                )


def check_digests(report: ReportFields) -> None:
    """Hold the digests of a report, and those in its task key, against what they are taken over.

    Raises:
        ValueError: the first that does not agree.
    """
    fields = fields_of(report.rows, report.dataset.documents, report.cutoffs[-1])
    parts = digested_parts(
        ((name, query) for name, query, *_ in fields),
        ((row.id, {judged.id: judged.grade for judged in row.judged}) for row in report.rows),
    )
    for part, digested in parts.items():
        if report.task.parts.get(part) != digested:
            raise ValueError(f"task.parts.{part} is not the digest of the rows")
    rankings = rankings_digest(report.rows)
    if report.digests.rankings != rankings:
        raise ValueError("digests.rankings is not the digest of the rows")
    if report.digests.quality != _quality(report, fields):
        raise ValueError("digests.quality is not the digest of the keys and rows")
    if report.digests.run != run_digest(report):
        raise ValueError(
            "digests.run is not the digest of the rest: arm, run, set, environment, health, intervals, rows"
        )
