"""Intervals of means, and tests of the difference between two arms, over queries: seeded, and without numpy.

==================  ===========================================================================================
what                how, and from where
==================  ===========================================================================================
share of 0s and 1s  Wilson's score interval (Wilson 1927)
any other mean      percentile bootstrap over queries (Efron 1979; Efron and Tibshirani 1993, chapter 13), and `unseen`
lost and gained     McNemar's test with the mid-p value (McNemar 1947; Fagerland, Lydersen and Laake 2013)
mean difference     randomisation by flipping signs (Fisher 1935; Smucker, Allan and Carterette 2007); its interval with
                    one query lost and one gained added (Agresti and Min 2005)
several p values    step-down correction (Holm 1979)
rate of rare flips  one-sided upper bound (Clopper and Pearson 1934)
==================  ===========================================================================================

Queries are the unit of sampling: an interval speaks of other queries of the same kind, not of other runs of these.
Random numbers come from `random.Random(seed).random()` alone, the one sequence that Python promises to keep, and sums
are exact (of whole numbers, or `math.fsum`), so that the same values give the same bytes on every platform.
"""

# long because: intervals and tests share their exact sums, their draws and their sources.

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from operator import getitem
from typing import Literal, NamedTuple

from eval_core.scoring.metrics import mean

#: Where the random numbers start, in every report.
SEED = 20261130

#: Bootstrap samples: the 25th lowest and highest of 1,000 means bound 95%.
RESAMPLES = 1000

#: Random sign patterns of a sign-flip test: p is never below 1 / 10,001, and 0.05 is told to within 0.004.
ROUNDS = 10_000

#: Up to so many differing queries all sign patterns are gone through: 2^13 up to mirror images, no dearer than ROUNDS.
ENUMERATED = 14

#: The level of the tests, two-sided.
ALPHA = 0.05

#: How surely a loss is found that `resolution` calls detectable.
POWER = 0.8

#: Differences of a query within this are none: room for the last bits of another platform.
TOLERANCE = 1e-9

#: Values are summed as whole multiples of their largest magnitude / 2^BITS.
_BITS = 40
_ONE = 1 << _BITS


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


class Change(NamedTuple):
    """What happened to a measure from one arm to another, over the same n queries.

    `difference` is after - before, in the measure's unit; `interval` bounds it at 95%; `p` is two-sided. `lost`,
    `gained` and `unchanged` count queries whose value fell, rose and stayed.
    """

    n: int
    before: float
    after: float
    difference: float
    interval: Interval
    p: float
    test: Literal["mcnemar-midp", "sign-flip"]
    lost: int
    gained: int
    unchanged: int


class Resolution(NamedTuple):
    """The smallest change that n queries can show, as McNemar's mid-p test sees it.

    `queries` is the fewest wholly lost queries, with none gained, that are significant, and `points` what they move a
    mean by: above 100 where there are fewer queries than that. `detectable` is the loss, in points, that is found in
    80% of cases; nan where none is.
    """

    n: int
    queries: int
    points: float
    detectable: float


def wilson(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval of a share: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n).

    Source: Wilson 1927, JASA 22. It never leaves [0, 1], and is no point where all or none succeed.

    Raises:
        ValueError: n is below 1, successes outside 0 … n, or a confidence outside (0, 1).
    """
    if not 0 <= successes <= n or n < 1:
        raise ValueError(
            f"an interval of {successes!r} successes in {n!r} trials needs 0 <= successes <= n, n >= 1"
        )
    z = _normal(confidence)
    share, square = successes / n, z * z / n
    middle = (share + square / 2) / (1 + square)
    half = z * math.sqrt(share * (1 - share) / n + square / (4 * n)) / (1 + square)
    return Interval(
        0.0 if successes == 0 else max(0.0, middle - half), 1.0 if successes == n else min(1.0, middle + half)
    )


@lru_cache(maxsize=16)
def _normal(confidence: float) -> float:
    """The z with a share `confidence` of the standard normal distribution within ±z."""
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence of {confidence!r} should lie between 0 and 1")
    low, high = 0.0, 40.0
    while (z := (low + high) / 2) not in (low, high):
        low, high = (z, high) if math.erfc(z / math.sqrt(2)) > 1 - confidence else (low, z)
    return z


def bootstrap(
    columns: Sequence[Sequence[float]],
    *,
    seed: int = SEED,
    resamples: int = RESAMPLES,
    confidence: float = 0.95,
) -> list[Interval]:
    """Percentile bootstrap of the mean of each column: n values are drawn with replacement, `resamples` times.

    The interval runs from the k-th lowest to the k-th highest mean, k = ⌊(resamples + 1)(1 - confidence) / 2⌋ and at
    least 1. All columns share the draws, so that more of them cost little. A column is sorted first: neither the order
    of the queries nor the other columns matter. Negated values give the mirrored interval. A column without spread
    gives a point. With few or lopsided queries the interval is somewhat too narrow.

    Source: Efron 1979, Annals of Statistics 7; Efron and Tibshirani 1993, An Introduction to the Bootstrap, 13.3.

    Args:
        columns: of each measure one value a query, all of the same number of queries.

    Raises:
        ValueError: columns that are empty, of unequal length or not finite, or resamples or confidence out of range.
    """
    if resamples < 1 or not 0 < confidence < 1:
        raise ValueError(
            f"resamples {resamples!r} should be at least 1, confidence {confidence!r} within (0, 1)"
        )
    if not columns:
        return []
    n = len(columns[0])
    # A value is a whole multiple of its column's unit. Those of all columns that a draw hits are one whole number, side
    # by side in fields that n of them cannot overflow, each raised by 2^BITS so that none is negative: one exact
    # addition sums all columns at once.
    width = _BITS + 1 + n.bit_length()
    packed = [0] * n
    units, mirrored = [], []
    for place, column in enumerate(columns):
        unit, steps = _steps(column)
        if len(column) != n:
            raise ValueError(f"columns of {n} and {len(column)} values are not of the same queries")
        steps.sort()
        mirror = [-step for step in reversed(steps)]
        units.append(unit)
        mirrored.append((mirror > steps) - (mirror < steps))
        packed = [
            row + ((_ONE + step) << (place * width))
            for row, step in zip(packed, max(mirror, steps), strict=True)
        ]
    draw = random.Random(seed).random
    sums = [sum([packed[int(draw() * n)] for _ in repeat(None, n)]) for _ in range(resamples)]
    rank = max(1, math.floor((resamples + 1) * (1 - confidence) / 2 + 1e-9))
    mask = (1 << width) - 1
    found = []
    for place, (column, unit, way) in enumerate(zip(columns, units, mirrored, strict=True)):
        totals = sorted([((total >> (place * width)) & mask) - n * _ONE for total in sums])
        low, high = (total / (n * _ONE) * unit for total in (totals[rank - 1], totals[-rank]))
        if way > 0:
            low, high = -high, -low
        elif way == 0:  # values that are their own mirror image: so is their interval
            low, high = (low - high) / 2, (high - low) / 2
        # A rounded step must not put a bound outside what was observed.
        least, most = min(column), max(column)
        found.append(Interval(min(max(low, least), most) + 0.0, min(max(high, least), most) + 0.0))  # no -0.0
    return found


def _steps(values: Sequence[float]) -> tuple[float, list[int]]:
    """Values as whole multiples of their largest magnitude / 2^BITS, and that magnitude: their sums are exact."""
    _usable(values)
    unit = max(map(abs, values)) or 1.0
    return unit, [round(value / unit * _ONE) for value in values]


def unseen(middle: float, n: int, most: float = 1.0) -> Interval:
    """The least interval that n values allow of a mean of values in [0, `most`], however alike they are.

    Wilson's interval is (n p + z²/2 ± z √(n p(1-p) + z²/4)) / (n + z²). Where its variance p(1-p) is 0, there remains
    n · middle / (n + z²) to (n · middle + z² · most) / (n + z²), or what z² = 3.84 further queries make of the
    mean where all are 0, or all the most there can be. At a mean of 0 and of `most` it is Wilson's own interval.
    """
    share = wilson(0, n).high
    low = (1 - share) * middle
    return Interval(low, min(low + share * most, most))


def spanned(found: Interval, middle: float, n: int, most: float = 1.0) -> Interval:
    """An interval, widened to what n values allow at least (see `unseen`)."""
    least = unseen(middle, n, most)
    return Interval(min(found.low, least.low), max(found.high, least.high))


def intervals(
    table: Mapping[str, Sequence[float]], most: Mapping[str, float] | None = None
) -> dict[str, Interval]:
    """The 95% interval of each measure's mean, by name: Wilson's for 0s and 1s, the bootstrap's for the rest.

    Which of them is decided by the values: on queries with one relevant document each, recall@k is hit@k, and is
    bounded alike. In the place of 1 stands `most`: precision@k is there 0 or 1/k, cannot be more, and is bounded by 1/k
    of hit@k. An mrr that is 1/2 for every query could be 1 for the next, and is no share of 1/2.

    Resampling shows only values that were seen: no width at all where every query scores the same, and hardly any where
    one of fifty differs by a little. So a bootstrapped interval is made to hold that of `unseen`.

    Args:
        table: a value of at least 0 a query by the measure's name. Columns of the same values are computed once.
        most: the largest value that a measure can take for any of these queries, by its name; 1 where it is not told.

    Raises:
        ValueError: columns that are empty, of unequal length or not finite, or a value below 0.
    """
    for name, values in table.items():
        _usable(values)
        if min(values) < 0:
            raise ValueError(f"{name} is {min(values)!r} for a query: a measure is at least 0")
    columns = {name: tuple(sorted(values)) for name, values in table.items()}
    if len({len(column) for column in columns.values()}) > 1:
        raise ValueError("measures of one slice should have a value for the same queries")
    tops = {name: max((most or {}).get(name) or 1.0, column[-1]) for name, column in columns.items()}
    # One bootstrap for all columns, of which those of the same values are one.
    graded = dict.fromkeys(
        column for name, column in columns.items() if not all(value in (0, tops[name]) for value in column)
    )
    drawn = dict(zip(graded, bootstrap(list(graded)), strict=True))
    found = {}
    for name, column in columns.items():
        n, top = len(column), tops[name]
        if all(value in (0, top) for value in column):
            low, high = wilson(sum(value > 0 for value in column), n)
            found[name] = Interval(low * top, high * top)
        else:
            found[name] = spanned(drawn[column], mean(column), n, top)
    return found


def mcnemar(lost: int, gained: int) -> float:
    """The two-sided mid-p value of McNemar's test: 2 P(X >= m) - P(X = m), X ~ Bin(lost + gained, ½), m the larger.

    It is 1 where as many are lost as gained (and where none are), and never 0. The mid-p keeps its level in practice
    where the exact test is far too careful, and needs no chi-squared approximation.

    Source: Fagerland, Lydersen and Laake 2013, BMC Medical Research Methodology 13:91; they give a tie of k pairs
    1 - P(X = k/2) / 2, where the doubled tail used here gives 1.

    Raises:
        ValueError: a count is negative.
    """
    p = mcnemar_loss(max(lost, gained), min(lost, gained))
    return 1.0 if lost == gained else min(1.0, 2 * p)


def mcnemar_loss(lost: int, gained: int) -> float:
    """The one-sided mid-p value that more is lost than gained: P(X >= lost) - ½ P(X = lost), X ~ Bin(lost + gained, ½).

    It is 1 where nothing differs, and never 0. Source: as `mcnemar`.

    Raises:
        ValueError: a count is negative.
    """
    if lost < 0 or gained < 0:
        raise ValueError(f"{lost} queries lost and {gained} gained: a count is at least 0")
    n = lost + gained
    if n == 0:
        return 1.0
    p = (binomial_above(n, 0.5, lost - 1) + binomial_above(n, 0.5, lost)) / 2
    return max(p, math.ulp(0.0))


def sign_flip(differences: Sequence[float], *, seed: int = SEED, rounds: int = ROUNDS) -> float:
    """The two-sided p value of a mean difference, by randomisation: the share of sign patterns at least as extreme.

    Were the two arms alike, each query's difference would as soon have had the other sign. Only queries that differ
    matter. Where there are at most 14, every pattern is gone through (the least p is then 2 / 2^d for d of them); else
    `rounds` random patterns, and p = (extreme + 1) / (rounds + 1). It is 1 where nothing differs, never 0, and the same
    with the arms exchanged and in every order of the queries.

    Source: Fisher 1935, The Design of Experiments, section 21; Smucker, Allan and Carterette 2007, CIKM; for the + 1,
    Phipson and Smyth 2010.

    Raises:
        ValueError: no differences, one that is not finite, or fewer rounds than 1.
    """
    if rounds < 1:
        raise ValueError(f"rounds {rounds!r} should be at least 1")
    _, signed = _steps(differences)
    # Sums that are equal on paper are equal here to within a step a term.
    observed = abs(sum(signed)) - len(signed)
    # By size: neither the order of the queries nor which arm came first matters.
    steps = sorted([abs(step) for step in signed if step])
    if not steps:
        return 1.0
    if len(steps) <= ENUMERATED:
        sums = steps[:1]  # the other sign of the first gives the mirror images
        for step in steps[1:]:
            sums = [total + step for total in sums] + [total - step for total in sums]
        return sum(abs(total) >= observed for total in sums) / len(sums)
    # The signed sums of eight differences at a time, by the byte that holds their signs: a byte looks one up.
    tables = []
    for start in range(0, len(steps), 8):
        table = [0]
        for step in steps[start : start + 8]:
            table = [total + step for total in table] + [total - step for total in table]
        tables.append(table * (256 // len(table)))
    draw = random.Random(seed).random
    words = range(-(-len(tables) // 6))
    extreme = 0
    for _ in range(rounds):
        # The upper 48 of the 53 bits of a random number.
        signs = b"".join([int(draw() * 281474976710656.0).to_bytes(6, "little") for _ in words])
        extreme += abs(sum(map(getitem, tables, signs))) >= observed
    return (extreme + 1) / (rounds + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """p values adjusted for being several, in their order: the i-th lowest of m times m - i + 1, made rising.

    Rejecting those at most 0.05 errs in at most 5 of 100 families of true nulls, whatever their dependence. None gives
    none. Source: Holm 1979, Scandinavian Journal of Statistics 6.

    Raises:
        ValueError: a value outside [0, 1].
    """
    for p in p_values:
        if not 0 <= p <= 1:
            raise ValueError(f"{p!r} is not a p value: it should lie within [0, 1]")
    adjusted = [0.0] * len(p_values)
    reached = 0.0
    for done, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        reached = max(reached, min(1.0, (len(p_values) - done) * p_values[place]))
        adjusted[place] = reached
    return adjusted


def paired(before: Sequence[float], after: Sequence[float]) -> Change:
    """What happened to a measure over the same queries: the effect, its interval, and the p value of its test.

    The interval is `paired_interval`'s. The test is McNemar's mid-p where each value of both sides is 0 or 1, whatever
    the measure is called, so that equal values have equal tests; and the sign-flip test elsewhere. A query's difference
    within 1e-9 is none.

    Args:
        before: a value a query.
        after: the same measure of the same queries, in the same order.

    Raises:
        ValueError: sequences that are empty, of unequal length or not finite.
    """
    _usable(before)
    _usable(after)
    if len(before) != len(after):
        raise ValueError(f"{len(before)} values before and {len(after)} after are not of the same queries")
    binary = _zeros_and_ones(before) and _zeros_and_ones(after)
    differences = [
        0.0 if abs(new - old) <= TOLERANCE else new - old for old, new in zip(before, after, strict=True)
    ]
    lost = sum(value < 0 for value in differences)
    gained = sum(value > 0 for value in differences)
    p = mcnemar(lost, gained) if binary else sign_flip(differences)
    return Change(
        n=len(differences),
        before=mean(before),
        after=mean(after),
        difference=mean(differences),
        interval=paired_interval(differences, p, max(*before, *after) or 1.0),
        p=p,
        test="mcnemar-midp" if binary else "sign-flip",
        lost=lost,
        gained=gained,
        unchanged=len(differences) - lost - gained,
    )


def paired_interval(differences: Sequence[float], p: float, most: float = 1.0) -> Interval:
    """The 95% interval of a mean difference over queries: never a point, and never at odds with the p beside it.

    One query that lost `most` and one that gained it are added, and the interval is the normal one of the n + 2
    differences. So few queries flip from one arm to another that an interval of the observed flips alone is far too
    narrow: the bootstrap's covers 39% to 65% where 2% of 24 or 55 queries are lost, and this one 93% and more, in the
    simulation of the tests. Where the test tells a change from chance (p of at most 0.05) the interval ends at 0 at the
    latest, and where it does not, the interval holds 0.

    Source: Agresti and Min 2005, Statistics in Medicine 24, for 0 and 1; here of graded differences, too.

    Args:
        differences: after - before of each query.
        p: of the two-sided test of the same differences.
        most: the largest value that the measure has for any of the queries.

    Raises:
        ValueError: there are no differences, or one is not finite.
    """
    _usable(differences)
    n = len(differences) + 2
    observed = mean(differences)
    middle = math.fsum(differences) / n
    square = (math.fsum(value * value for value in differences) + 2 * most * most) / n
    half = _normal(0.95) * math.sqrt(max(0.0, square - middle * middle) / n)
    low, high = max(-most, min(middle - half, observed)), min(most, max(middle + half, observed))
    if p > ALPHA:
        return Interval(min(low, 0.0), max(high, 0.0))
    return Interval(low, min(high, 0.0)) if observed < 0 else Interval(max(low, 0.0), high)


@lru_cache(maxsize=64)
def resolution(n: int) -> Resolution:
    """The smallest change that n queries can show by McNemar's mid-p test, two-sided at 5%.

    `queries` is the fewest lost, with none gained, that it calls significant: 5, since 2 (1/2^5 - ½ 1/2^5) = 0.031, and
    0.063 with 4. `detectable` supposes that each query is lost with one probability d and none is gained: the least d,
    as points, with P(Bin(n, d) >= queries) >= 0.8. Gains beside the losses make either larger, and so does a graded
    measure: the sign-flip test needs 6 queries that fell.

    Raises:
        ValueError: n is below 1.
    """
    if n < 1:
        raise ValueError(f"{n!r} queries resolve nothing: there should be at least 1")
    queries = next(lost for lost in range(1, 64) if mcnemar(lost, 0) <= ALPHA)
    detectable = math.nan
    if n >= queries:
        detectable = 100 * _least(lambda share: binomial_above(n, share, queries - 1) >= POWER)
    return Resolution(n, queries, 100 * queries / n, detectable)


def binomial_above(n: int, p: float, m: int) -> float:
    """P(X > m) for X ~ Bin(n, p), to double precision in its upper tail too.

    The terms are built from the largest outwards by their ratios and divided by their sum, so that nothing overflows
    and no logarithm of a factorial is needed. Below about 1e-300 the answer is 0.

    Raises:
        ValueError: n is negative, or p outside [0, 1].
    """
    if n < 0 or not 0 <= p <= 1:
        raise ValueError(f"there is no binomial distribution with n {n!r} and p {p!r}")
    if m < 0:
        return 1.0
    if m >= n or p == 0:
        return 0.0
    if p == 1:
        return 1.0
    mode = min(n, math.floor((n + 1) * p))
    odds = p / (1 - p)
    above: list[float] = []
    below: list[float] = []
    weight = 1.0
    for k in range(mode, n + 1):
        if weight == 0:
            break
        (above if k > m else below).append(weight)
        weight *= (n - k) / (k + 1) * odds
    weight = 1.0
    for k in range(mode, 0, -1):
        weight *= k / (n - k + 1) / odds
        if weight == 0:
            break
        (above if k - 1 > m else below).append(weight)
    tail = math.fsum(above)
    return tail / math.fsum([*above, *below])


def flip_rate_upper(flips: int, trials: int, confidence: float = 0.95) -> float:
    """The one-sided upper bound of a rate: the p with P(Bin(trials, p) <= flips) = 1 - confidence.

    With no flips it is 1 - (1 - confidence)^(1 / trials). Source: Clopper and Pearson 1934, Biometrika 26.

    Raises:
        ValueError: trials below 1, flips outside 0 … trials, or a confidence outside (0, 1).
    """
    if not 0 <= flips <= trials or trials < 1 or not 0 < confidence < 1:
        raise ValueError(
            f"{flips!r} flips in {trials!r} trials at confidence {confidence!r}: give 0 <= flips <= trials, "
            "trials >= 1 and a confidence within (0, 1)"
        )
    if flips == trials:
        return 1.0
    if flips == 0:
        return -math.expm1(math.log(1 - confidence) / trials)
    return _least(lambda p: binomial_above(trials, p, flips) >= confidence)


def _least(holds: Callable[[float], bool]) -> float:
    """The least share in [0, 1] for which a rising condition holds, to the last bit; it holds at 1."""
    low, high = 0.0, 1.0
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _zeros_and_ones(values: Sequence[float]) -> bool:
    return all(value in (0, 1) for value in values)


def _usable(values: Sequence[float]) -> None:
    """Refuse what has no mean.

    Raises:
        ValueError: no values, or one that is not finite.
    """
    if not values:
        raise ValueError("there are no values: nothing was scored, so there is nothing to bound or to test")
    if not all(map(math.isfinite, values)):
        odd = next(value for value in values if not math.isfinite(value))
        raise ValueError(f"{odd!r} among the values is not a number to take a mean of; score again")
