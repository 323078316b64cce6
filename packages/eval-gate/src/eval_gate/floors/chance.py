"""What a backend that understands nothing would score: a floor that chance reaches gates on nothing."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

from eval_core.policy import TOLERANCE, Bar, Line
from eval_core.reports import Entry
from eval_core.scoring import metrics

#: Random rankings of the whole set that are scored: at least the first, and of a small set as many more as keep the
#: second (queries scored) small.
ROUNDS, SCORED = 100, 12_000

#: The share of them that may reach a floor.
REACHED = 0.01

_SEED = 20261130


def reached(line: Line, bars: Iterable[Bar]) -> list[Bar]:
    """The bars whose floor a random ranking of the documents reaches more than once in a hundred times.

    The set is that of the run: its judgements and limit, and for each query the documents that it may find, which a
    filter or a scope can make few. Bars without a floor are passed over.
    """
    found: list[Bar] = []
    slices: dict[str | None, list[Bar]] = {}
    for bar in bars:
        if bar.floor is not None:
            slices.setdefault(bar.category, []).append(bar)
    for category, floored in slices.items():
        entries = [e for e in line.scored if category is None or e.category == category]
        passed = [0] * len(floored)
        rounds = max(ROUNDS, SCORED // max(1, len(entries)))
        for means in _rounds(entries, [bar.measure for bar in floored], line, rounds):
            for place, (bar, mean) in enumerate(zip(floored, means, strict=True)):
                passed[place] += mean >= by_floor(bar) - TOLERANCE
        found += [bar for bar, count in zip(floored, passed, strict=True) if count > REACHED * rounds]
    return found


def by_floor(bar: Bar) -> float:
    """The lowest mean that the floor alone lets pass."""
    floor = bar.floor or 0.0
    return floor if bar.misses is None else (bar.n - floor) / bar.n


def _rounds(entries: Sequence[Entry], names: Sequence[str], line: Line, rounds: int) -> Iterator[list[float]]:
    """Means over the entries of random rankings."""
    limit = int(str(line.task["limit"]))
    score = metrics.scorer([metrics.parse(name) for name in names])
    chance = random.Random(_SEED)
    judged = [
        ([grade for _, grade, _ in e.judged], line.documents if e.candidates is None else e.candidates)
        for e in entries
    ]
    for _ in range(rounds):
        tables = []
        for grades, documents in judged:
            ranks = _distinct(chance, len(grades), documents)
            pairs = [
                (grade, rank if rank <= limit else None) for grade, rank in zip(grades, ranks, strict=True)
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
