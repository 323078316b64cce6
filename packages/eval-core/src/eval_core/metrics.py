"""Measures of a ranking against graded judgements, equal to trec_eval's where it has the measure.

Only the ranks of judged documents matter, so a query is scored from a handful of (grade, rank) pairs. Relevant means
grade >= 1. Sums are taken in rank order in double precision.

===========  ============================================================================  =====================
measure      definition                                                                    trec_eval's name
===========  ============================================================================  =====================
recall@k     relevant documents in the top k / all relevant documents                      recall_k
precision@k  relevant documents in the top k / k                                           P_k
hit@k        1 if any relevant document is in the top k, else 0                            success_k
all@k        1 if every relevant document is in the top k, else 0                          (none)
mrr          1 / rank of the first relevant document within the limit, else 0              recip_rank
ndcg@k       DCG / ideal DCG at k; gain = grade, discount log2(rank + 1); the ideal is     ndcg_cut_k
             over all judgements (Järvelin and Kekäläinen 2002, in trec_eval's form)
map          mean over all relevant documents of precision at their ranks, 0 where absent  map
===========  ============================================================================  =====================
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from eval_core.errors import Misuse, did_you_mean

#: Raised by one when any definition here changes: a part of the task key.
VERSION = "1"

AT_K = ("recall", "precision", "hit", "all", "ndcg")
WHOLE = ("mrr", "map")

#: Measures that are 0 or 1 for each query, so that floors count misses.
BINARY = ("hit", "all")

_NAME = re.compile(r"([a-z]+)(?:@([1-9][0-9]*))?")


def parse(name: str) -> tuple[str, int | None]:
    """Split a measure's name into family and cut-off.

    Raises:
        Misuse: no such measure; the nearest is suggested.
    """
    match = _NAME.fullmatch(name)
    if match:
        family, cutoff = match[1], match[2]
        if family in AT_K and cutoff is not None:
            return family, int(cutoff)
        if family in WHOLE and cutoff is None:
            return family, None
    known = [f"{family}@{match[2] if match and match[2] else 10}" for family in AT_K] + list(WHOLE)
    raise Misuse(
        f"no such measure {name!r}{did_you_mean(name, known)}  (known: {', '.join(known)})",
        reason="measure-unknown",
    )


def is_binary(name: str) -> bool:
    """Whether each query's value is 0 or 1."""
    return parse(name)[0] in BINARY


def names(cutoffs: Sequence[int]) -> list[str]:
    """The measures that a report holds for these cut-offs, in their order."""
    return [f"{family}@{k}" for family in AT_K for k in cutoffs] + list(WHOLE)


def judged_ranks(ids: Sequence[str], grades: Mapping[str, int]) -> dict[str, int]:
    """Ranks from 1 of the judged documents in a ranking without duplicates."""
    return {document: rank for rank, document in enumerate(ids, 1) if document in grades}


def score(pairs: Iterable[tuple[int, int | None]], cutoffs: Sequence[int]) -> dict[str, float]:
    """Score one query.

    Args:
        pairs: (grade, rank) of each judged document; the rank counts from 1 and is None where it was not retrieved.
        cutoffs: the k of the measures, rising.

    Returns:
        A value in [0, 1] for each of `names(cutoffs)`. All are 0 where nothing is relevant.
    """
    judged = list(pairs)
    relevant = [(rank, grade) for grade, rank in judged if grade > 0]
    found = sorted((rank, grade) for rank, grade in relevant if rank is not None)
    total = len(relevant)
    ideal = sorted((grade for _, grade in relevant), reverse=True)
    values: dict[str, float] = {}
    at: list[int] = []
    for k in cutoffs:
        count = 0
        for rank, _ in found:
            if rank > k:
                break
            count += 1
        at.append(count)
    for k, count in zip(cutoffs, at, strict=True):
        values[f"recall@{k}"] = count / total if total else 0.0
    for k, count in zip(cutoffs, at, strict=True):
        values[f"precision@{k}"] = count / k
    for k, count in zip(cutoffs, at, strict=True):
        values[f"hit@{k}"] = 1.0 if count else 0.0
    for k, count in zip(cutoffs, at, strict=True):
        values[f"all@{k}"] = 1.0 if total and count == total else 0.0
    for k, count in zip(cutoffs, at, strict=True):
        best = _dcg(enumerate(ideal[:k], 1))
        values[f"ndcg@{k}"] = _dcg(found[:count]) / best if best else 0.0
    values["mrr"] = 1.0 / found[0][0] if found else 0.0
    values["map"] = math.fsum(n / rank for n, (rank, _) in enumerate(found, 1)) / total if total else 0.0
    return values


def _dcg(ranked: Iterable[tuple[int, int]]) -> float:
    total = 0.0
    for rank, grade in ranked:
        total += grade / math.log2(rank + 1)
    return total


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean, exactly rounded; 0 where there is nothing.

    Exact rounding makes it independent of the order of the queries.
    """
    return math.fsum(values) / len(values) if values else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile: the smallest value with at least `share` of the samples at or below it.

    Raises:
        ValueError: no samples, or a share outside (0, 1].
    """
    if not values or not 0 < share <= 1:
        raise ValueError("a percentile needs samples and a share in (0, 1]")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)]
