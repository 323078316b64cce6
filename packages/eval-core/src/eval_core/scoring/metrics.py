"""Measures of a ranking against graded judgements, as values; equal to trec_eval's where it has the measure.

Only the ranks of judged documents matter, so a query is scored from a handful of (grade, rank) pairs. Relevant means
grade >= 1. R is the number of relevant documents. Sums are taken in rank order in double precision.

=============  ==========================================================================  ====================
measure        definition                                                                  trec_eval's name
=============  ==========================================================================  ====================
recall@k       relevant documents in the top k / R                                         recall_k
recall_cap@k   relevant documents in the top k / min(k, R): 1 can always be reached        (none; BEIR's R_cap)
precision@k    relevant documents in the top k / k                                         P_k
rprec          relevant documents in the top R / R                                         Rprec
hit@k          1 if any relevant document is in the top k, else 0                          success_k
all@k          1 if every relevant document is in the top k, else 0                        (none)
judged@k       judged documents in the top k / documents in the top k                      (none)
mrr, mrr@k     1 / rank of the first relevant document (within k), else 0                  recip_rank
map, map@k     mean over all relevant documents of precision at their ranks, 0 if absent   map, map_cut_k
ndcg, ndcg@k   DCG / ideal DCG (at k); gain = grade, discount log2(rank + 1); the ideal    ndcg, ndcg_cut_k
               is over all judgements (Järvelin and Kekäläinen 2002, in trec_eval's form)
ndcg_authors   as LongMemEval's authors have it: ndcg@k with gain 1 and discount           (none)
@k             max(1, log2(rank)), so that ranks 1 and 2 weigh the same
=============  ==========================================================================  ====================

`ndcg@k(gain=exp)` takes 2^grade - 1 as the gain (Burges et al. 2005). `recall@k(rel=2)` takes documents of grade 2 or
more as relevant (trec_eval -l 2), and so does every measure but ndcg, whose gain is the grade, and judged@k. A new
measure is one function in `FAMILIES`.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from eval_core.errors import Misuse

#: Raised by one when any definition here changes: a part of the task key.
VERSION = "1"

#: What a report holds: these at each of its cut-offs, and these over the whole ranking.
AT_K = ("recall", "precision", "hit", "all", "ndcg")
WHOLE = ("mrr", "map")

#: The largest grade that an exponential gain can be made of in double precision.
MOST_EXPONENT = 1000


class Measure(NamedTuple):
    """One measure: `recall@10`, `ndcg@10(gain=exp)`, `mrr`, `recall@100(rel=2)`. Its text is its name.

    `rel` is the grade from which on a document is relevant; a measure whose gain is the grade has none.
    """

    family: str
    cutoff: int | None = None
    gain: str = "lin"
    rel: int = 1

    def __str__(self) -> str:
        at = "" if self.cutoff is None else f"@{self.cutoff}"
        gain = "" if self.gain == "lin" else f"(gain={self.gain})"
        return f"{self.family}{at}{gain}" + ("" if self.rel == 1 else f"(rel={self.rel})")

    @property
    def binary(self) -> bool:
        """Whether each query's value is 0 or 1, so that floors count misses and an interval is Wilson's."""
        return FAMILIES[self.family].binary


class Ranked(NamedTuple):
    """One query's ranking as the measures see it; ranks count from 1.

    `found` holds (rank, grade) of the relevant documents that were retrieved, by rank, and `places` their ranks alone;
    `ideal` the grades of all relevant documents, falling; `judged` the ranks of all judged documents that were
    retrieved, rising; `retrieved` counts the documents of the ranking.
    """

    found: Sequence[tuple[int, int]]
    places: Sequence[int]
    ideal: Sequence[int]
    judged: Sequence[int]
    retrieved: int

    def at(self, rel: int) -> Ranked:
        """The same with documents of that grade or more as the relevant ones."""
        found = [(rank, grade) for rank, grade in self.found if grade >= rel]
        ideal = [grade for grade in self.ideal if grade >= rel]
        return Ranked(found, [rank for rank, _ in found], ideal, self.judged, self.retrieved)


def ranked(pairs: Iterable[tuple[int, int | None]], retrieved: int) -> Ranked:
    """The view of a query from (grade, rank) of each judged document; the rank is None where it was not retrieved."""
    found, ideal, judged = [], [], []
    for grade, rank in pairs:
        if grade > 0:
            ideal.append(grade)
            if rank is not None:
                found.append((rank, grade))
        if rank is not None:
            judged.append(rank)
    found.sort()
    ideal.sort(reverse=True)
    judged.sort()
    return Ranked(found, [rank for rank, _ in found], ideal, judged, retrieved)


def _within(view: Ranked, k: int) -> int:
    """How many relevant documents stand in the top k."""
    return bisect_right(view.places, k)


def _recall(view: Ranked, k: int, gain: str) -> float:
    return _within(view, k) / len(view.ideal) if view.ideal else 0.0


def _recall_cap(view: Ranked, k: int, gain: str) -> float:
    return _within(view, k) / min(k, len(view.ideal)) if view.ideal else 0.0


def _precision(view: Ranked, k: int, gain: str) -> float:
    return _within(view, k) / k


def _rprec(view: Ranked, k: int, gain: str) -> float:
    return _recall(view, len(view.ideal), gain)


def _hit(view: Ranked, k: int, gain: str) -> float:
    return 1.0 if view.places and view.places[0] <= k else 0.0


def _all(view: Ranked, k: int, gain: str) -> float:
    return 1.0 if view.ideal and _within(view, k) == len(view.ideal) else 0.0


def _judged(view: Ranked, k: int, gain: str) -> float:
    shown = min(k, view.retrieved)
    return sum(rank <= k for rank in view.judged) / shown if shown else 0.0


def _mrr(view: Ranked, k: int, gain: str) -> float:
    return 1.0 / view.places[0] if view.places and view.places[0] <= k else 0.0


def _map(view: Ranked, k: int, gain: str) -> float:
    if not view.found:
        return 0.0
    total = 0.0
    for count, rank in enumerate(view.places, 1):
        if rank > k:
            break
        total += count / rank
    return total / len(view.ideal)


#: log2(rank + 1) by rank, for the ranks that are looked at most.
_DISCOUNT = [math.inf, *(math.log2(rank + 1) for rank in range(1, 1001))]


def _ndcg(view: Ranked, k: int, gain: str) -> float:
    if not view.found or view.found[0][0] > k:
        return 0.0
    exponential = gain == "exp"
    if exponential and view.ideal[0] > MOST_EXPONENT:
        raise OverflowError(f"a grade of {view.ideal[0]} has no exponential gain in double precision")
    got = best = 0.0
    for rank, grade in view.found:
        if rank > k:
            break
        discount = _DISCOUNT[rank] if rank <= 1000 else math.log2(rank + 1)
        got += ((2.0**grade - 1.0) if exponential else grade) / discount
    for rank, grade in enumerate(view.ideal, 1):
        if rank > k:
            break
        discount = _DISCOUNT[rank] if rank <= 1000 else math.log2(rank + 1)
        best += ((2.0**grade - 1.0) if exponential else grade) / discount
    return got / best


def _ndcg_authors(view: Ranked, k: int, gain: str) -> float:
    """DCG = rel₁ + Σ_{i=2..k} relᵢ / log2(i) with rel 0 or 1, divided by that of all relevant documents first.

    Source: `dcg` and `ndcg` of src/retrieval/eval_utils.py in github.com/xiaowu0162/LongMemEval; the first form of
    Järvelin and Kekäläinen 2002 with base 2, in which ranks below the base are not discounted.
    """
    got = math.fsum(_undiscounted(rank) for rank in view.places if rank <= k)
    return got / math.fsum(map(_undiscounted, range(1, min(k, len(view.ideal)) + 1))) if got else 0.0


def _undiscounted(rank: int) -> float:
    return 1.0 if rank <= 2 else 1.0 / math.log2(rank)


class Family(NamedTuple):
    """How the measures of one name are computed: `value(view, k, gain)`, where k is endless without a cut-off."""

    value: Callable[[Ranked, int, str], float]
    cutoff: str = "needed"  # or "optional", or "none"
    binary: bool = False
    gains: tuple[str, ...] = ("lin",)
    graded: bool = False  # takes grades, or judged documents of any grade: rel has no meaning


FAMILIES: Mapping[str, Family] = {
    "recall": Family(_recall),
    "recall_cap": Family(_recall_cap),
    "precision": Family(_precision),
    "rprec": Family(_rprec, cutoff="none"),
    "hit": Family(_hit, binary=True),
    "all": Family(_all, binary=True),
    "judged": Family(_judged, graded=True),
    "mrr": Family(_mrr, cutoff="optional"),
    "map": Family(_map, cutoff="optional"),
    "ndcg": Family(_ndcg, cutoff="optional", gains=("lin", "exp"), graded=True),
    "ndcg_authors": Family(_ndcg_authors),
}

#: Measures that are 0 or 1 for each query.
BINARY = tuple(name for name, family in FAMILIES.items() if family.binary)

#: Digits of a cut-off at most.
DIGITS = 9

_NAME = re.compile(r"([a-z_]+)(?:@([1-9][0-9]{0,8}))?(?:\(gain=([a-z]+)\))?")
_ENDLESS = 10**9


@lru_cache(maxsize=512)
def parse(name: str) -> Measure:
    """Read a measure's name as files of our own have it; `spelling.read` is for what a person types.

    Raises:
        Misuse: no such measure; the nearest is suggested.
    """
    match = _NAME.fullmatch(name)
    if match:
        measure = Measure(match[1], int(match[2]) if match[2] else None, match[3] or "lin")
        if fits(measure):
            return measure
    from eval_core.scoring.spelling import unknown

    raise unknown(name)


def fits(measure: Measure) -> bool:
    """Whether there is this measure: its family, with or without a cut-off, its gain, its grade."""
    family = FAMILIES.get(measure.family)
    if family is None:
        return False
    cut = {"needed": measure.cutoff is not None, "optional": True, "none": measure.cutoff is None}
    return cut[family.cutoff] and measure.gain in family.gains and (measure.rel == 1 or not family.graded)


def known(near: str) -> list[str]:
    """The measures that there are, at the cut-off that `near` holds, else at 10."""
    digits = re.search(r"[@_.]([1-9][0-9]*)", near)
    k = digits[1] if digits and len(digits[1]) <= DIGITS else "10"
    return [
        text
        for name, family in FAMILIES.items()
        for text in (
            *([name] if family.cutoff != "needed" else []),
            *([f"{name}@{k}"] if family.cutoff != "none" else []),
            *(f"{name}@{k}(gain={gain})" for gain in family.gains[1:]),
        )
    ]


def is_binary(name: str) -> bool:
    """Whether each query's value is 0 or 1."""
    return parse(name).binary


def names(cutoffs: Sequence[int], headline: str | None = None) -> list[str]:
    """The measures that a report holds for these cut-offs, in their order, and the headline wherever it is none."""
    found = [f"{family}@{k}" for family in AT_K for k in cutoffs] + list(WHOLE)
    return found if headline is None or headline in found else [*found, headline]


def headline_problem(headline: str, cutoffs: Sequence[int], limit: int) -> str | None:
    """Why a headline cannot be measured: there is no such measure, or its cut-off is beyond limit or rows."""
    try:
        measure = parse(headline)
    except Misuse as error:
        return error.message
    if measure.cutoff is None:
        return None
    if measure.cutoff > limit:
        return f"{headline} looks at {measure.cutoff} documents, and the limit is {limit}"
    if measure.family == "judged" and measure.cutoff > cutoffs[-1]:
        return f"{headline} needs a cut-off of {measure.cutoff}, and the largest is {cutoffs[-1]}"
    return None


def scorer(measures: Sequence[Measure]) -> Callable[[Ranked], list[float]]:
    """A function from a query's view to a value in [0, 1] for each of `measures`, in their order.

    All values are 0 where nothing is relevant, but for judged@k.
    """
    steps = [(FAMILIES[m.family].value, m.cutoff or _ENDLESS, m.gain) for m in measures]

    def values(view: Ranked) -> list[float]:
        return [value(view, k, gain) for value, k, gain in steps]

    rels = [m.rel for m in measures]
    if set(rels) <= {1}:
        return values

    def by_grade(view: Ranked) -> list[float]:
        views = {rel: view if rel == 1 else view.at(rel) for rel in set(rels)}
        return [value(views[rel], k, gain) for rel, (value, k, gain) in zip(rels, steps, strict=True)]

    return by_grade


def unjudged_above(
    judged: Iterable[int | None], retrieved: int, cutoff: int | None, rank: int | None
) -> tuple[int, int]:
    """How many answers stand above a document, down to a cut-off, and how many of those nobody judged.

    Args:
        judged: the rank of each judged document of the query, None where it was not retrieved.
        retrieved: how many documents the ranking holds.
        cutoff: None: as deep as it goes.
        rank: the document's, None where it was not retrieved.
    """
    above = min(retrieved, cutoff or retrieved, retrieved if rank is None else rank - 1)
    return above, above - sum(place is not None and place <= above for place in judged)


def judged_ranks(ids: Sequence[str], grades: Mapping[str, int]) -> dict[str, int]:
    """Ranks from 1 of the judged documents in a ranking without duplicates."""
    return {document: rank for rank, document in enumerate(ids, 1) if document in grades}


def score(
    pairs: Iterable[tuple[int, int | None]], measures: Sequence[str], retrieved: int = 0
) -> dict[str, float]:
    """Score one query.

    Args:
        pairs: (grade, rank) of each judged document; the rank counts from 1 and is None where it was not retrieved.
        measures: their names.
        retrieved: how many documents the ranking holds; judged@k alone needs it.

    Returns:
        A value in [0, 1] for each measure, by name.
    """
    values = scorer([parse(name) for name in measures])(ranked(pairs, retrieved))
    return dict(zip(measures, values, strict=True))


def most(judgements: Iterable[Iterable[int]], measures: Sequence[Measure]) -> list[float]:
    """The largest value that each measure can take for any of some queries: that of the best ranking there is.

    With one relevant document a query, precision@10 is at most 0.1.

    Args:
        judgements: of each query the grades of its judged documents.
    """
    values = scorer(measures)
    best = [0.0] * len(measures)
    for grades in {tuple(sorted(given, reverse=True)) for given in judgements}:
        view = ranked(((grade, rank) for rank, grade in enumerate(grades, 1)), len(grades))
        best = list(map(max, best, values(view)))
    return best


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
