"""What a random ranking of the documents scores on average, in closed form: a bar that chance reaches holds nothing.

With N documents that a query may find and R relevant ones among them, a rank holds a given document with probability
1 / N. recall@k is then k / N on average; the number of relevant documents in the top k is hypergeometric, so that
hit@k is 1 - C(N - R, k) / C(N, k) and all@k is C(N - R, k - R) / C(N, k); the first relevant document stands at rank r
with probability C(N - r, R - 1) / C(N, R), whence mrr; and DCG is a sum of means, whence ndcg.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from eval_core.policy.evidence import Line
from eval_core.scoring import metrics
from eval_core.scoring.metrics import Measure


def reached_on_average(line: Line, measure: str, lowest: float, category: str | None = None) -> bool:
    """Whether random rankings of the documents of a run's queries reach a bar on average.

    False for a measure without a closed form (map, judged@k): `eval-gate floor` simulates those.
    """
    expected = expected_mean(line, measure, category)
    return expected is not None and expected >= lowest - 1e-9


def expected_mean(line: Line, measure: str, category: str | None = None) -> float | None:
    """The mean of a measure that random rankings have on average, None where it has no closed form here."""
    parsed = metrics.parse(measure)
    limit = int(str(line.task["limit"]))
    shapes = Counter(
        (tuple([grade for _, grade, _ in entry.judged if grade > 0]), entry.candidates)
        for entry in line.scored
        if category is None or entry.category == category
    )
    total = 0.0
    for (grades, candidates), queries in shapes.items():
        documents = line.documents if candidates is None else candidates
        value = expected(parsed, sorted(grades, reverse=True), documents, limit)
        if value is None:
            return None
        total += queries * value
    return total / max(1, shapes.total())


def expected(measure: Measure, grades: Sequence[int], documents: int, limit: int) -> float | None:
    """The mean of a measure over all orders of `documents`, of which `grades` are relevant, cut at `limit`.

    None where it has no closed form here.
    """
    relevant = len(grades)
    total = max(documents, relevant)
    if not relevant:
        return 0.0
    k = min(measure.cutoff or limit, limit, total)
    match measure.family:
        case "recall":
            return k / total
        case "rprec":
            return min(relevant, limit) / total
        case "recall_cap":
            return k * relevant / total / min(measure.cutoff or relevant, relevant)
        case "precision":
            return k * relevant / total / (measure.cutoff or k)
        case "hit":
            return 1 - _ratio(total - relevant, total, k)
        case "all":
            # C(N - R, k - R) / C(N, k) is the product of (k - i) / (N - i) for i below R.
            return math.prod((k - i) / (total - i) for i in range(relevant)) if k >= relevant else 0.0
        case "mrr":
            left, value = 1.0, 0.0  # left: no relevant document above
            for rank in range(1, k + 1):
                share = min(1.0, relevant / (total - rank + 1))
                value += left * share / rank
                left *= 1 - share
            return value
        case "ndcg":
            gains = [2.0**grade - 1 if measure.gain == "exp" else float(grade) for grade in grades]
            deep = measure.cutoff or total
            best = math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains[:deep], 1))
            mean = math.fsum(gains) / total
            return math.fsum(mean / math.log2(rank + 1) for rank in range(1, k + 1)) / best
    return None


def _ratio(fewer: int, total: int, k: int) -> float:
    """C(fewer, k) / C(total, k)."""
    return math.prod((fewer - i) / (total - i) for i in range(k)) if fewer >= k else 0.0
