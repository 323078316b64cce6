"""What the tests of comparisons share: entries out of ranks, and independent ways to their statistics."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from scipy import stats

from eval_core.compare.models import Asked, Comparison, Effect, Entry, Moved, Versus
from eval_core.reports.keys import TASK_PARTS, Key

#: A query's ranks: of its only relevant document, of several by name, or its outcome where it was not scored.
Ranks = int | None | str | Mapping[str, int | None]

TASK: Mapping[str, Any] = dict.fromkeys(TASK_PARTS, "none") | {
    "limit": 10,
    "filter": [],
    "cutoffs": [1, 5, 10],
}


def asked(name: str, ranks: Ranks, **fields: Any) -> Asked:
    """One query: its relevant document is `d-NAME`, or several are named, those that begin with 0 of grade 0."""
    if isinstance(ranks, str):
        table: Mapping[str, int | None] = {f"d-{name}": None}
    else:
        table = ranks if isinstance(ranks, Mapping) else {f"d-{name}": ranks}
    judged = tuple((document, 0 if document[0] == "0" else 1, rank) for document, rank in table.items())
    outcome: Any = ranks if isinstance(ranks, str) else "scored"
    return Asked(outcome, judged, 10, f"text of {name}", **fields)


def entry(
    ranks: Mapping[str, Ranks],
    path: str = "a.json",
    task: Mapping[str, Any] | None = None,
    system: Mapping[str, Any] | None = None,
    categories: Mapping[str, str] | None = None,
    **fields: Any,
) -> Entry:
    """A report of these ranks; `task` and `system` are parts that are not the usual ones."""
    given: dict[str, Any] = {
        "kind": "report",
        "arm": path.removesuffix(".json"),
        "task": Key.of({**TASK, **(task or {})}),
        "system": Key.of({"backend": "told", "options": {}, **(system or {})}),
        "limit": 10,
        "shown": 10,
        "cutoffs": (1, 5, 10),
        "headline": "hit@1",
    }
    kinds = categories or {}
    queries = {
        name: asked(name, rank, meta={"category": kinds[name]} if name in kinds else {})
        for name, rank in ranks.items()
    }
    return Entry(path=path, queries=queries, **{**given, **fields})


def only(found: Comparison) -> Versus:
    """The one arm that was held against the first."""
    (versus,) = found.arms
    return versus


def effect(versus: Versus, measure: str) -> Effect:
    """What became of a measure."""
    return next(effect for effect in versus.effects if effect.measure == measure)


def listed(versus: Versus) -> list[tuple[str, str]]:
    """The queries that moved, in their order."""
    return [(moved.query, moved.change) for moved in versus.queries]


def first(moved: Moved) -> tuple[str, int | None, int | None]:
    """The document that is shown of a query, and its ranks."""
    document = moved.documents[0]
    return document.id, document.before, document.after


# ------------------------------------------------------------------------------- independent implementations


def midp(lost: int, gained: int) -> float:
    """McNemar's mid-p value, from scipy's binomial distribution."""
    n, most = lost + gained, max(lost, gained)
    if lost == gained:
        return 1.0
    tail = stats.binom.sf(most, n, 0.5) + stats.binom.pmf(most, n, 0.5) / 2
    return float(min(1.0, 2 * tail))


def flipped(differences: Sequence[float]) -> float:
    """The p value of the sign-flip test, by going through every pattern of signs of what differs."""
    moved = [value for value in differences if value]
    observed = abs(math.fsum(moved))
    patterns = list(itertools.product((1, -1), repeat=len(moved)))
    extreme = [
        abs(math.fsum(s * d for s, d in zip(signs, moved, strict=True))) >= observed - 1e-9
        for signs in patterns
    ]
    return sum(extreme) / len(patterns)


def holm(values: Sequence[float]) -> list[float]:
    """Holm's adjusted values by their definition: max over the not larger ones of (how many are not smaller) p."""
    ranks = {place: order for order, place in enumerate(sorted(range(len(values)), key=lambda i: values[i]))}
    return [
        max(
            min(1.0, (len(values) - ranks[other]) * values[other])
            for other in ranks
            if ranks[other] <= ranks[place]
        )
        for place in range(len(values))
    ]


def resampled(differences: Iterable[float]) -> list[tuple[float, float]]:
    """The exact bootstrap distribution of a mean of few kinds of differences: each mean with the chance to be at or
    below it, rising. By convolution: the sum of n draws."""
    kinds = Counter(differences)
    n = kinds.total()
    sums: dict[float, float] = {0.0: 1.0}
    for _ in range(n):
        more: dict[float, float] = {}
        for (total, chance), (value, times) in itertools.product(sums.items(), kinds.items()):
            key = round(total + value, 9)
            more[key] = more.get(key, 0.0) + chance * times / n
        sums = more
    means = sorted(sums)
    return [
        (total / n, reached)
        for total, reached in zip(means, itertools.accumulate(sums[total] for total in means), strict=True)
    ]


def bounds(differences: Sequence[float], low: float, high: float) -> bool:
    """Whether [low, high] cuts 2.5% off each end of the exact bootstrap distribution, give or take what 1,000 samples
    blur (three standard errors: 1.5%)."""
    cumulated = resampled(differences)

    def at_most(value: float) -> float:
        return max((reached for mean, reached in cumulated if mean <= value + 1e-9), default=0.0)

    def below(value: float) -> float:
        return max((reached for mean, reached in cumulated if mean < value - 1e-9), default=0.0)

    return below(low) <= 0.04 and at_most(low) >= 0.01 and below(high) <= 0.99 and at_most(high) >= 0.96


# ------------------------------------------------------------------------------------------ runs of two systems

#: What two systems returned: by query, what answers it, and the ranked documents of each, repeats included.
Rankings = Mapping[str, tuple[list[str], list[str], list[str]]]


def write_runs(folder: Path, rankings: Rankings) -> tuple[Path, Path, Path]:
    """Write judgements, the first system's run as TREC lines and the second's as JSON lines."""
    qrels, before, after = folder / "qrels.txt", folder / "before.trec", folder / "after.jsonl"
    with qrels.open("w") as judged, before.open("w") as trec, after.open("w") as rows:
        for query, (wanted, ours, theirs) in rankings.items():
            judged.writelines(f"{query} 0 {document} 1\n" for document in wanted)
            trec.writelines(f"{query} Q0 {d} {rank} {1 / rank} before\n" for rank, d in enumerate(ours, 1))
            rows.write(json.dumps({"id": query, "ids": theirs}) + "\n")
    return before, after, qrels


def values(rankings: Rankings, side: int, measure: str) -> dict[str, Fraction]:
    """hit@k, recall@k and mrr of each query by their definitions, a repeated document counted once, exactly."""
    found = {}
    family, _, cutoff = measure.partition("@")
    for query, row in rankings.items():
        ranking = list(dict.fromkeys(row[side + 1]))
        ranks = [ranking.index(document) + 1 for document in row[0] if document in ranking]
        within = [rank for rank in ranks if rank <= int(cutoff or len(ranking))]
        found[query] = {
            "hit": Fraction(bool(within)),
            "recall": Fraction(len(within), len(row[0])),
            "mrr": Fraction(1, min(within)) if within else Fraction(0),
        }[family]
    return found
