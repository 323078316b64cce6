"""What a backend that understands nothing would score: a floor that chance reaches gates on nothing."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence

from eval_core.reports.models import ReportRow
from eval_core.reports.report import Report
from eval_core.scoring import metrics
from eval_gate.policy import TOLERANCE, Floor, lowest

#: Random rankings of the whole set that are scored: at least the first, and of a small set as many more as keep the
#: second (queries scored) small.
ROUNDS, SCORED = 100, 12_000

#: The share of them that may reach a floor.
REACHED = 0.01

_SEED = 20261130


def reached(report: Report, floors: Mapping[str, Floor], category: str | None = None) -> list[str]:
    """The floors that a random ranking of the set's documents reaches more than once in a hundred times.

    The set is that of the report: its queries, judgements and limit, and for each query the documents that it may find,
    which a filter or a scope can make few.
    """
    rows = [
        row
        for row in report.rows
        if row.outcome == "scored" and (category is None or row.category == category)
    ]
    names = list(floors)
    passed = dict.fromkeys(names, 0)
    rounds = max(ROUNDS, SCORED // max(1, len(rows)))
    for means in _rounds(rows, names, report.dataset.documents, _limit(report), rounds):
        for name, mean in zip(names, means, strict=True):
            passed[name] += mean >= lowest(floors[name], len(rows)) - TOLERANCE
    return [name for name in names if passed[name] > REACHED * rounds]


def _limit(report: Report) -> int:
    limit = report.task.parts["limit"]
    return limit if isinstance(limit, int) else 1


def _rounds(
    rows: Sequence[ReportRow], names: Sequence[str], documents: int, limit: int, rounds: int
) -> Iterator[list[float]]:
    """Means over the rows of random rankings."""
    score = metrics.scorer([metrics.parse(name) for name in names])
    chance = random.Random(_SEED)
    judged = [([one.grade for one in row.judged], row.candidates or documents) for row in rows]
    for _ in range(rounds):
        tables = []
        for wanted, choice in judged:
            ranks = _distinct(chance, len(wanted), choice)
            pairs = [
                (grade, rank if rank <= limit else None) for grade, rank in zip(wanted, ranks, strict=True)
            ]
            tables.append(score(metrics.ranked(pairs, limit)))
        yield [metrics.mean(column) for column in zip(*tables, strict=True)]


def _distinct(chance: random.Random, count: int, documents: int) -> Iterable[int]:
    """Ranks of `count` different documents in a random order of all."""
    most = max(documents, count)
    ranks: dict[int, None] = {}
    while len(ranks) < count:
        ranks[int(chance.random() * most) + 1] = None
    return ranks
