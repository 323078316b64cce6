"""What a run scored: a value a query and measure, what was not scored, means and their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

from eval_core.scoring import metrics
from eval_core.scoring.metrics import Measure

if TYPE_CHECKING:
    from eval_core.scoring.statistics import Interval

#: What `ties` is where lists were ranked.
GIVEN = "given"

#: Up to so many queries an interval is drawn by the bootstrap.
DRAWN = 2000

_NORMAL = 1.959963984540054


class QueryScore(NamedTuple):
    """One query: a value a measure, (document, grade, rank or None) of each judged document, documents retrieved."""

    values: tuple[float, ...]
    judged: tuple[tuple[str, int, int | None], ...]
    retrieved: int


#: The values of a query, the rank of each of its judged documents or None, and how many were retrieved.
Found = tuple[tuple[float, ...], tuple[int | None, ...], int]


@dataclass(frozen=True)
class Scores:
    """What a run scored.

    `found` holds the queries that were scored, in the order of the judgements (`qrels`); those of `missing` are among
    them, with 0. They are the mean, but for a measure with a `rel`, in which only those with a document of that grade
    are, and with `zeros`: then every other judged query counts 0. `unjudged` counts queries of the run without
    judgements, `unscorable` lists queries without a relevant document, `left_out` queries that our own run did not
    answer, `duplicates` counts documents dropped as repeats, `skipped` queries whose own document was left out.
    `contradicted` lists queries of the mean whose rank column (or list) orders documents otherwise than their scores
    do, `tied` those with a judged document in a tie, which document ids decide. `ties` is `trec`, `id`, or `given` for
    ranked lists.
    """

    measures: tuple[Measure, ...]
    ties: str
    found: Mapping[str, Found]
    qrels: Mapping[str, Mapping[str, int]]
    missing: list[str]
    unjudged: int
    unscorable: list[str]
    left_out: list[str]
    duplicates: int
    contradicted: list[str]
    tied: list[str]
    skipped: int = 0
    zeros: bool = False

    @property
    def every(self) -> int:
        """How many queries could be in a mean: those scored, and the unscorable."""
        return len(self.found) + len(self.unscorable)

    @property
    def n(self) -> int:
        """How many queries are in the mean of a measure that takes every grade."""
        return self.every if self.zeros else len(self.found)

    @property
    def level(self) -> int:
        """The grade that a query needs a document of to be scored at all: the lowest that a measure asks for."""
        return min((measure.rel for measure in self.measures), default=1)

    def scorable(self, query: str, measure: Measure) -> bool:
        """Whether something is relevant to a scored query by this measure."""
        return measure.rel <= self.level or max(self.qrels[query].values()) >= measure.rel

    @cached_property
    def queries(self) -> dict[str, QueryScore]:
        """The queries that are in the mean, each with its judged documents; made when first asked for."""
        scored = {}
        for query, (values, ranks, retrieved) in self.found.items():
            grades = self.qrels[query]
            judged = tuple(zip(grades, grades.values(), ranks, strict=True))
            scored[query] = QueryScore(values, judged, retrieved)
        return scored

    def values(self, measure: Measure) -> list[float]:
        """A measure's values, a query each that is in its mean."""
        place = self.measures.index(measure)
        values = [found[0][place] for query, found in self.found.items() if self.scorable(query, measure)]
        return values + [0.0] * (self.every - len(values)) if self.zeros else values

    def mean(self, measure: Measure) -> float:
        """A measure's mean over the queries."""
        return metrics.mean(self.values(measure))

    def mean_with_unscorable(self, measure: Measure) -> float:
        """A measure's mean with 0 for each query to which nothing is relevant besides, as `trec_eval -c` has it."""
        return math.fsum(self.values(measure)) / self.every

    def advice(self) -> str:
        """What to do where scores contradict the ranks beside them, or all are in ties; empty where they do not."""
        answered = len(self.found) - len(self.missing)
        against = f"{len(self.contradicted):,} of {answered:,} queries"
        if self.contradicted and self.ties == GIVEN:
            return (
                f"scores beside the lists rise down the ranking in {against}, and the order of the lists decides: sort "
                "them if it is not the ranking"
            )
        lists = 'if the ranks are right, write lists in their order, {"id": QUERY, "ids": [DOCUMENT, ...]}'
        if self.contradicted:
            return (
                f"scores rise down the rank column in {against}, and scores decide: negate distances; {lists}"
            )
        if answered and len(self.tied) == answered:
            return f"are all scores equal? Every answered query has a judged document in a tie; {lists}"
        return ""

    def intervals(self) -> dict[str, Interval]:
        """The 95% interval of each measure's mean, by name.

        As `statistics.intervals` has it up to 2,000 queries. Beyond, the percentiles that the bootstrap only estimates
        by drawing are computed from the first four moments, by the expansion of Cornish and Fisher (1938): with so many
        queries it differs by less than the bootstrap does from seed to seed, and takes no time.
        """
        from eval_core.scoring import statistics

        table = {str(measure): self.values(measure) for measure in self.measures}
        judged = (self.qrels[query].values() for query in self.found if query in self.qrels)
        most = dict(zip(table, metrics.most(judged, self.measures), strict=True))
        found: dict[str, Interval] = {}
        # Those of the same queries are drawn together.
        for n in {len(values) for values in table.values()}:
            alike = {name: values for name, values in table.items() if len(values) == n}
            if n <= DRAWN:
                found |= statistics.intervals(alike, most)
                continue
            for name, values in alike.items():
                bounds = _expanded(values, most[name] or 1.0)
                found[name] = bounds or statistics.intervals({name: values}, most)[name]
        return {name: found[name] for name in table}


def _expanded(values: Sequence[float], most: float) -> Interval | None:
    """The 2.5th and 97.5th percentile of the mean of as many values drawn from these, widened to what so many values
    allow at least (`statistics.unseen`); None where all are 0 or the most there can be, which has Wilson's interval.

    z + skew (z² - 1) / 6 + kurtosis (z³ - 3z) / 24 - skew² (2z³ - 5z) / 36 standard errors from the mean, with the
    skewness / √n and the excess kurtosis / n of the values. Source: Cornish and Fisher 1938.
    """
    from eval_core.scoring.statistics import Interval, spanned

    levels = set(values)
    if levels <= {0.0, most}:
        return None
    n = len(values)
    middle = metrics.mean(values)
    if len(levels) == 1:
        return spanned(Interval(middle, middle), middle, n, most)
    apart = [value - middle for value in values]
    squares = list(map(mul, apart, apart))
    variance = math.fsum(squares) / n
    skew = math.fsum(map(mul, squares, apart)) / n / variance**1.5
    excess = math.fsum(map(mul, squares, squares)) / n / variance**2 - 3
    bounds = []
    for z in (-_NORMAL, _NORMAL):
        w = z + skew * (z * z - 1) / (6 * math.sqrt(n))
        w += (excess * (z**3 - 3 * z) / 24 - skew * skew * (2 * z**3 - 5 * z) / 36) / n
        bounds.append(min(max(middle + math.sqrt(variance / n) * w, min(levels)), max(levels)))
    return spanned(Interval(*bounds), middle, n, most)
