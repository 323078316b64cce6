"""What a report says of itself in words: what its figures cannot show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from eval_core.reports.models import ReportRow
from eval_core.scoring.statistics import resolution


def by_chance(limit: int, candidates: Iterable[int | None]) -> list[str]:
    """That a random ranking finds much, where the limit is half or more of what there is to choose from.

    Args:
        limit: documents that are asked for.
        candidates: documents that each query may find; None where that was not counted.
    """
    counted = [number for number in candidates if number is not None]
    if not counted or limit < (middle := median(counted)) / 2:
        return []
    return [f"limit {limit} of a median of {middle:g} candidates: a random ranking finds much of it"]


def saturated(headline: str, rows: Iterable[ReportRow]) -> list[str]:
    """That a better retriever cannot show it, where fewer queries can still rise than a difference needs."""
    scored = [row.metrics for row in rows if row.metrics]
    n, full = len(scored), _full(headline, scored)
    if full <= n / 2 or n - full >= resolution(n).queries:
        return []
    roomy = [name for name in ("hit@1", "mrr") if name in scored[0] and _full(name, scored) < full]
    mend = f"look at {roomy[0]} or a smaller limit" if roomy else "ask harder queries"
    return [f"{headline} is 1.000 for {full} of {n} queries: a better retriever cannot show it here; {mend}"]


def _full(name: str, scored: Sequence[Mapping[str, float]]) -> int:
    return sum(metrics[name] == 1 for metrics in scored)
