"""The odds of the gate: how often a policy fails a system that did not change, and one that got worse by so much.

The model. A *true drop of d points* means that each query is lost with probability d / 100, independently: all its
values become 0. *Churn f* means that each found query is lost with probability f. In both, each missed query recovers
with a probability of its own (f where not given): its values become the best that the run has of each measure, 1 as a
rule. A query is missed where its headline value is 0; one that is missed and does not recover can still lose what it
has of the other measures. Every rule of a policy on quality is then a bound on a sum over the queries that changed,
so that P(fail) is a sum of binomial terms where the queries have few distinct values, and simulated elsewhere.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eval_core.scoring.metrics import mean
from eval_core.scoring.statistics import POWER, SEED, binomial_above
from eval_gate.policy import DEFAULT_MAX_DROP, TOLERANCE, ArmFloors, Budget, Floor, ToldOdds, sentence

if TYPE_CHECKING:
    from eval_core.reports.report import Report

#: True drops that are told, in points.
DROPS = (5, 10, 15, 20, 25, 30)

#: The flip rate that is supposed where none was measured.
FLIP_RATE = 0.01

#: Rounds of a simulation: at least the first, and up to five times as many while no more queries are drawn than the
#: second. An arm of 120 queries takes about a quarter of a second.
ROUNDS, DRAWS = 2_000, 1_200_000

#: Terms of the exact sum, beyond which it is simulated.
TERMS = 200_000

#: Binomial terms below this are left out of the exact sum; all of them together are below 1e-9.
NOTHING = 1e-15

Values = Mapping[str, Sequence[float]]
Places = Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Odds:
    """P(fail) of a policy: for unchanged code whose queries flip at `flip_rate`, and by true drop in points.

    `exact` says that they were computed, not simulated; `standard_error` is the most that any of them has.
    """

    false_alarm: float
    detects: Mapping[int, float]
    flip_rate: float
    exact: bool
    standard_error: float


def line(odds: Odds) -> str:
    """The odds as one sentence, as the verdict says it."""
    drop = 10 if 10 in odds.detects else min(odds.detects)
    return sentence(drop, odds.detects[drop], odds.false_alarm, odds.flip_rate)


def told(odds: Odds) -> ToldOdds:
    """The odds as floors keep them."""
    return ToldOdds(
        flip_rate=odds.flip_rate,
        false_alarm=round(odds.false_alarm, 6),
        detects_10_points=round(odds.detects[10], 6),
    )


# The rule of a policy on simulated values, in step with judge.


def fails(
    after: Values,
    before: Values,
    floors: ArmFloors,
    budget: Budget,
    headline: str,
    *,
    must_pass: Collection[int] = (),
    categories: Places | None = None,
) -> bool:
    """Whether the policy's rules on quality fail these values.

    Args:
        after: by measure, a value a query.
        before: the baseline's, of the same queries in the same order.
        floors, budget: the policy.
        headline: the measure that lost queries are counted on.
        must_pass: the places of queries that may lose nothing.
        categories: by category, the places of its queries.

    Raises:
        ValueError: no queries, no values of a measure that the policy names, or not as many as there are queries.
    """
    n = _checked(before, floors, budget, headline)
    if _checked(after, floors, budget, headline) != n:
        raise ValueError(f"{n} queries before and {len(after[headline])} after cannot be compared")
    slices = {name: list(places) for name, places in (categories or {}).items()}
    everyone = list(range(n))
    for name, floor in floors.metrics.items():
        if _breached(after[name], everyone, floor):
            return True
    for category, part in floors.categories.items():
        for name, floor in part.metrics.items():
            if _breached(after[name], slices.get(category, []), floor):
                return True
    for name, points in _drops(budget, before).items():
        if _drop(before[name], after[name], everyone) > points + TOLERANCE:
            return True
    if budget.max_drop_everywhere is not None:
        for name in before:
            for places in (everyone, *slices.values()):
                if _drop(before[name], after[name], places) > budget.max_drop_everywhere + TOLERANCE:
                    return True
    if _drop(before[headline], after[headline], everyone) / 100 * n > _net(floors, budget) + TOLERANCE * n:
        return True
    was, now = before[headline], after[headline]
    return any(now[place] <= 0 or now[place] < was[place] - TOLERANCE for place in must_pass)


def _breached(values: Sequence[float], places: Sequence[int], floor: Floor) -> bool:
    chosen = [values[place] for place in places]
    if floor.max_misses is not None:
        return sum(value < 1 for value in chosen) > floor.max_misses
    return mean(chosen) < (floor.floor or 0.0) - TOLERANCE


def _drop(before: Sequence[float], after: Sequence[float], places: Sequence[int]) -> float:
    return (mean([before[place] for place in places]) - mean([after[place] for place in places])) * 100


def _net(floors: ArmFloors, budget: Budget) -> int:
    return floors.margin if budget.max_net_lost is None else budget.max_net_lost


def _drops(budget: Budget, values: Values) -> dict[str, float]:
    """The measures held against the baseline; the usual ones only where the set is measured that deep."""
    usual = {name: points for name, points in DEFAULT_MAX_DROP.items() if name in values}
    return {**usual, **(budget.max_drop or {})}


def _checked(values: Values, floors: ArmFloors, budget: Budget, headline: str) -> int:
    named = [headline, *floors.metrics, *(budget.max_drop or {})]
    named += [name for part in floors.categories.values() for name in part.metrics]
    for name in named:
        if name not in values:
            raise ValueError(f"{name} is held by the policy, and there are no values of it")
    n = len(values[headline])
    for name, column in values.items():
        if len(column) != n or not n:
            raise ValueError(f"{name} has {len(column)} values, and {headline} has {n}; each query needs one")
    return n


# The same rules as bounds on what the changed queries cost.


@dataclass(frozen=True, slots=True)
class _Rule:
    """Fails where the costs of the changed queries sum to more than `most`: by place, if lost and if recovered."""

    lost: Mapping[int, float]
    back: Mapping[int, float]
    most: float


def _rules(
    values: Values,
    floors: ArmFloors,
    budget: Budget,
    headline: str,
    must_pass: Collection[int],
    slices: Places,
) -> list[_Rule]:
    n = len(values[headline])
    everyone = range(n)
    missed = frozenset(place for place in everyone if values[headline][place] <= 0)

    def cost(name: str, places: Sequence[int], most: Callable[[float, int], float]) -> _Rule:
        column = values[name]
        best = max(column) or 1.0
        return _Rule(
            lost={place: column[place] for place in places if column[place] > 0},
            back={
                place: column[place] - best for place in places if place in missed and column[place] < best
            },
            most=most(math.fsum(column[place] for place in places), len(places)),
        )

    def floored(name: str, places: Sequence[int], floor: Floor) -> _Rule:
        if floor.max_misses is not None:
            allowed = floor.max_misses
            # Values are 0 or 1: what is lost is missed.
            return cost(name, places, lambda total, n: allowed - (n - total) + TOLERANCE)
        lowest = floor.floor or 0.0
        return cost(name, places, lambda total, n: total - n * (lowest - TOLERANCE))

    def dropped(name: str, places: Sequence[int], points: float) -> _Rule:
        return cost(name, places, lambda total, n: n * (points + TOLERANCE) / 100)

    found = [floored(name, everyone, floor) for name, floor in floors.metrics.items()]
    for category, part in floors.categories.items():
        found += [floored(name, slices.get(category, ()), floor) for name, floor in part.metrics.items()]
    found += [dropped(name, everyone, points) for name, points in _drops(budget, values).items()]
    if budget.max_drop_everywhere is not None:
        points = budget.max_drop_everywhere
        found += [dropped(name, places, points) for name in values for places in (everyone, *slices.values())]
    found.append(cost(headline, everyone, lambda total, n: _net(floors, budget) + TOLERANCE * n))
    # Each by itself: a query that recovers beside one that must pass makes nothing good.
    found += [
        _Rule({}, {place: -1.0}, -0.5) if place in missed else _Rule({place: 1.0}, {}, 0.5)
        for place in must_pass
    ]
    return found


def odds(
    values: Values,
    floors: ArmFloors,
    budget: Budget,
    headline: str,
    *,
    flip_rate: float,
    drops: Sequence[int] = DROPS,
    recover: float | None = None,
    must_pass: Collection[int] = (),
    categories: Places | None = None,
    seed: int = SEED,
    rounds: int | None = None,
) -> Odds:
    """P(fail) of a policy by the model above, from a run's own values, the same run being the baseline.

    Args:
        values: by measure, a value a query; queries in one order.
        floors, budget: the policy.
        headline: the measure that lost queries are counted on.
        flip_rate: churn of unchanged code, for the false alarm.
        drops: true drops, in points.
        recover: the share of missed queries that recover; `flip_rate` where not given.
        must_pass, categories: places of queries, as for `fails`.
        seed, rounds: of the simulation, where there is one. With `rounds` given, it is always simulated.

    Raises:
        ValueError: as `fails`, or a rate that is no probability.
    """
    recover = flip_rate if recover is None else recover
    shares = {drop: drop / 100 for drop in drops}
    for share in (flip_rate, recover, *shares.values()):
        if not 0 <= share <= 1:
            raise ValueError(
                f"{share!r} is no probability; rates lie within 0 … 1, drops within 0 … 100 points"
            )
    n = _checked(values, floors, budget, headline)
    rules = _rules(values, floors, budget, headline, must_pass, categories or {})
    missed = [value <= 0 for value in values[headline]]
    rates = sorted({flip_rate, *shares.values()})
    found = _exact(rules, missed, rates, recover) if rounds is None else None
    exact = found is not None
    if found is None:
        rounds = rounds or max(ROUNDS, min(5 * ROUNDS, DRAWS // n))
        found = _simulated(rules, missed, rates, recover, seed, rounds)
    return Odds(
        false_alarm=found[flip_rate],
        detects={drop: found[share] for drop, share in shares.items()},
        flip_rate=flip_rate,
        exact=exact,
        standard_error=0.0 if exact else 0.5 / math.sqrt(rounds or 1),
    )


def _exact(
    rules: Sequence[_Rule], missed: Sequence[bool], rates: Sequence[float], recover: float
) -> dict[float, float] | None:
    """By rate, the sum over how many queries of each kind are lost and recover; None where that has too many terms."""
    kinds: dict[tuple[tuple[float, ...], tuple[float, ...], bool], int] = {}
    for place, miss in enumerate(missed):
        lost = tuple(rule.lost.get(place, 0.0) for rule in rules)
        back = tuple(rule.back.get(place, 0.0) for rule in rules)
        kinds[lost, back, miss] = kinds.get((lost, back, miss), 0) + 1
    most = [rule.most for rule in rules]
    found = {}
    for rate in reversed(rates):  # the one with the most terms first
        sums: dict[tuple[float, ...], float] = {(0.0,) * len(rules): 1.0}
        for (lost, back, miss), number in kinds.items():
            kind = _outcomes(number, rate if any(lost) else 0.0, recover if miss else 0.0)
            if len(sums) * len(kind) * len(rules) > TERMS:
                return None
            after: dict[tuple[float, ...], float] = {}
            for state, so_far in sums.items():
                for (gone, come), share in kind.items():
                    # Rounded, so that sums that are equal on paper are one.
                    key = tuple(
                        round(a + gone * b + come * c, 12) for a, b, c in zip(state, lost, back, strict=True)
                    )
                    after[key] = after.get(key, 0.0) + so_far * share
            sums = after
        found[rate] = math.fsum(
            share
            for state, share in sums.items()
            if any(cost > bound for cost, bound in zip(state, most, strict=True))
        )
    return {rate: min(1.0, share) for rate, share in found.items()}


def _outcomes(number: int, rate: float, recover: float) -> dict[tuple[int, int], float]:
    """The probability of (lost, recovered) among so many queries of a kind."""
    found = {}
    for come in range(number + 1 if recover else 1):
        first = pmf(number, recover, come)
        if first < NOTHING:
            continue
        for gone in range(number - come + 1 if rate else 1):
            share = first * pmf(number - come, rate, gone)
            if share >= NOTHING:
                found[gone, come] = share
    return found


def _simulated(
    rules: Sequence[_Rule],
    missed: Sequence[bool],
    rates: Sequence[float],
    recover: float,
    seed: int,
    rounds: int,
) -> dict[float, float]:
    """By rate, the share of rounds that fail. All rates see the same draws, so that P(fail) rises with the rate."""
    costs = [
        [(j, rule.lost[i]) for j, rule in enumerate(rules) if i in rule.lost] for i in range(len(missed))
    ]
    gains = [
        [(j, rule.back[i]) for j, rule in enumerate(rules) if i in rule.back] for i in range(len(missed))
    ]
    live = [i for i in range(len(missed)) if costs[i] or gains[i]]
    most = [rule.most for rule in rules]
    highest = rates[-1]
    failed = [0] * len(rates)
    draw = random.Random(seed).random
    for _ in range(rounds):
        totals = [0.0] * len(rules)
        lost: list[list[int]] = [[] for _ in rates]
        for place in live:
            chance = draw()
            if missed[place]:
                if chance < recover:
                    for rule, gain in gains[place]:
                        totals[rule] += gain
                    continue
                chance = (chance - recover) / (1 - recover)
            if chance < highest:
                lost[bisect_right(rates, chance)].append(place)
        for level, places in enumerate(lost):
            for place in places:
                for rule, cost in costs[place]:
                    totals[rule] += cost
            if any(total > bound for total, bound in zip(totals, most, strict=True)):
                # What is lost at one rate is lost at every higher one.
                for higher in range(level, len(rates)):
                    failed[higher] += 1
                break
    return {rate: count / rounds for rate, count in zip(rates, failed, strict=True)}


def of_report(report: Report, floors: ArmFloors, budget: Budget, *, flip_rate: float) -> Odds:
    """The odds of a policy from the rows of a report, which is taken for the baseline.

    Raises:
        ValueError: the report scored no query, or lacks a measure that the policy holds.
    """
    rows = [row for row in report.rows if row.outcome == "scored"]
    values = {name: [row.metrics[name] for row in rows] for name in report.summary.overall.metrics}
    categories: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        if row.category:
            categories.setdefault(row.category, []).append(place)
    must_pass = [place for place, row in enumerate(rows) if row.meta.get("must_pass") is True]
    return odds(
        values,
        floors,
        budget,
        floors.headline,
        flip_rate=flip_rate,
        must_pass=must_pass,
        categories=categories,
    )


# Of n queries alone.


def detectable(n: int, margin: int, power: float = POWER) -> float | None:
    """The least true drop, in points, with P(Bin(n, d / 100) > margin) >= power; None where no drop has it."""
    if n <= margin:
        return None
    low, high = 0.0, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if binomial_above(n, middle, margin) >= power else (middle, high)
    return 100 * high


def least(high: int, holds: Callable[[int], bool]) -> int:
    """The least of 0 … high - 1 for which a rising condition holds; high where none does."""
    low = 0
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def pmf(n: int, p: float, k: int) -> float:
    """P(X = k) for X ~ Bin(n, p), through logarithms so that nothing overflows."""
    if not 0 < p < 1:
        return float(k == (n if p else 0))
    ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(ways + k * math.log(p) + (n - k) * math.log1p(-p))
