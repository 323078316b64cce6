"""What a report says of itself in words: what its figures cannot show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from eval_core.reports.models import ReportRow
from eval_core.scoring.statistics import resolution


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
