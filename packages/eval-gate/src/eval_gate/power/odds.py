"""The odds of the gate: how often a policy fails a system that got worse by so much, and one that did not change.

The model. A *true drop of d points* means that each query is lost with probability d / 100, independently: all its
values become 0. *Churn f* means that each query is lost with probability f. In both, each missed query recovers with a
probability of its own (f; 1% beside a drop): its values become the best that the run has of each measure, 1 as a rule.
A query is missed where its headline value is 0; one that is missed and does not recover can still lose what it has of
the other measures. Every bar, and every query that must pass, is then a bound on a sum over the queries that changed,
so that P(fail) is a sum of binomial terms where the queries have few distinct values, and simulated elsewhere.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eval_core.policy import TOLERANCE, ArmPolicy, must_pass_lost
from eval_core.scoring.statistics import SEED

#: True drops, in points.
DROPS = (5, 10, 15, 20)

#: Flip rates of unchanged code, where the runs of an arm differ in their rankings.
FLIP_RATES = (0.01, 0.03)

#: The share of missed queries that recover beside a drop.
RECOVER = 0.01

#: A false alarm above this gets a sentence of its own.
OFTEN = 0.10

#: Rounds of a simulation: at least the first, and up to five times as many while no more queries are drawn than the
#: second. An arm of 120 queries takes about a quarter of a second.
ROUNDS, DRAWS = 2_000, 1_200_000

#: Terms of the exact sum, beyond which it is simulated.
TERMS = 200_000

#: Binomial terms below this are left out of the exact sum; all of them together are below 1e-9.
NOTHING = 1e-15

Values = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Odds:
    """P(fail) of an arm's policy.

    Attributes:
        detects: by true drop in points.
        alarms: by flip rate of unchanged code; empty where the runs agree in every ranking.
        exact: whether they were computed, not simulated.
        standard_error: the most that any of them has; 0 where exact.
    """

    detects: Mapping[int, float]
    alarms: Mapping[float, float]
    exact: bool
    standard_error: float


def breaches(arm: ArmPolicy, values: Values) -> list[str]:
    """What of an arm's policy on quality these values fail, in words: bars, and queries that must pass.

    Args:
        arm: the policy.
        values: by measure of a bar, the value of each scored query, in the order of the baseline.
    """
    baseline = arm.baseline
    found = []
    for bar in arm.bars:
        column = values[bar.measure]
        if not bar.passes([column[place] for place in _places(arm, bar.category)]):
            named = bar.measure if bar.category is None else f"{bar.measure} of {bar.category}"
            found.append(f"{named} is below its bar, {bar.lowest:.4f}")
    marked = [entry.id for entry in baseline.scored if entry.must_pass]
    if marked:
        now = dict(zip((entry.id for entry in baseline.scored), values[baseline.headline], strict=True))
        lost = must_pass_lost(baseline, baseline.headline, now, marked)
        found += [f"query {query} must pass and lost" for query in lost]
    return found


def _places(arm: ArmPolicy, category: str | None) -> list[int]:
    entries = enumerate(arm.baseline.scored)
    return [place for place, entry in entries if category is None or entry.category == category]


# The same as bounds on what the changed queries cost.


@dataclass(frozen=True, slots=True)
class _Bound:
    """Fails where the costs of the changed queries sum to more than `most`.

    By place, what a query costs if it is lost, and if it recovers, which only missed ones do.
    """

    lost: Mapping[int, float]
    back: Mapping[int, float]
    most: float


def _bounds(arm: ArmPolicy, missed: Sequence[bool]) -> list[_Bound]:
    found = []
    for bar in arm.bars:
        column = arm.baseline.column(bar.measure)
        best = max(column) or 1.0
        places = _places(arm, bar.category)
        # Of hit@k and all@k `lowest` is what the misses leave, so that one bound does for both kinds of measure.
        room = math.fsum(column[place] for place in places) - len(places) * (bar.lowest - TOLERANCE)
        found.append(
            _Bound(
                lost={place: column[place] for place in places if column[place] > 0},
                back={place: column[place] - best for place in places if column[place] < best},
                most=room,
            )
        )
    # Each by itself: a query that recovers beside one that must pass makes nothing good.
    found += [
        _Bound({}, {place: -1.0}, -0.5) if missed[place] else _Bound({place: 1.0}, {}, 0.5)
        for place, entry in enumerate(arm.baseline.scored)
        if entry.must_pass
    ]
    return found


def odds_of(
    arm: ArmPolicy,
    *,
    drops: Sequence[int] = DROPS,
    flip_rates: Sequence[float] | None = None,
    recover: float | None = None,
    seed: int = SEED,
    rounds: int | None = None,
) -> Odds:
    """P(fail) of an arm's policy by the model above, from the values of its baseline.

    Args:
        arm: the policy, which has no faults.
        drops: true drops, in points.
        flip_rates: of unchanged code; 1% and 3% where the runs differ in their rankings, and none where they agree.
        recover: the share of missed queries that recover; see the model where None.
        seed, rounds: of the simulation, where there is one. With `rounds` it is always simulated.

    Raises:
        ValueError: a rate that is no probability.
    """
    if flip_rates is None:
        flip_rates = () if arm.runs_agree else FLIP_RATES
    beside = RECOVER if recover is None else recover
    # What is lost, by what recovers: rates that recover alike are worked out together.
    cases: dict[float, set[float]] = {}
    for rate, back in [(drop / 100, beside) for drop in drops] + [
        (rate, rate if recover is None else recover) for rate in flip_rates
    ]:
        if not (0 <= rate <= 1 and 0 <= back <= 1):
            raise ValueError(f"{rate!r} or {back!r} is no probability")
        cases.setdefault(back, set()).add(rate)
    missed = [value <= 0 for value in arm.baseline.column(arm.baseline.headline)]
    bounds = _bounds(arm, missed)
    every = max(ROUNDS, min(5 * ROUNDS, DRAWS // len(missed)))
    found: dict[tuple[float, float], float] = {}
    exact = True
    for back, rates in cases.items():
        shares = _exact(bounds, missed, sorted(rates), back) if rounds is None else None
        if shares is None:
            exact = False
            shares = _simulated(bounds, missed, sorted(rates), back, seed, rounds or every)
        found |= {(rate, back): share for rate, share in shares.items()}
    return Odds(
        detects={drop: found[drop / 100, beside] for drop in drops},
        alarms={rate: found[rate, rate if recover is None else recover] for rate in flip_rates},
        exact=exact,
        standard_error=0.0 if exact else 0.5 / math.sqrt(rounds or every),
    )


def _exact(
    bounds: Sequence[_Bound], missed: Sequence[bool], rates: Sequence[float], recover: float
) -> dict[float, float] | None:
    """By rate, the sum over how many queries of each kind are lost and recover; None where that has too many terms."""
    kinds: dict[tuple[tuple[float, ...], tuple[float, ...], bool], int] = {}
    for place, miss in enumerate(missed):
        lost = tuple(bound.lost.get(place, 0.0) for bound in bounds)
        back = tuple(bound.back.get(place, 0.0) for bound in bounds)
        kinds[lost, back, miss] = kinds.get((lost, back, miss), 0) + 1
    most = [bound.most for bound in bounds]
    found = {}
    for rate in reversed(rates):  # the one with the most terms first
        sums: dict[tuple[float, ...], float] = {(0.0,) * len(bounds): 1.0}
        for (lost, back, miss), number in kinds.items():
            kind = _outcomes(number, rate if any(lost) else 0.0, recover if miss else 0.0)
            if len(sums) * len(kind) * len(bounds) > TERMS:
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


def pmf(n: int, p: float, k: int) -> float:
    """P(X = k) for X ~ Bin(n, p), through logarithms so that nothing overflows."""
    if not 0 < p < 1:
        return float(k == (n if p else 0))
    ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(ways + k * math.log(p) + (n - k) * math.log1p(-p))


def _simulated(
    bounds: Sequence[_Bound],
    missed: Sequence[bool],
    rates: Sequence[float],
    recover: float,
    seed: int,
    rounds: int,
) -> dict[float, float]:
    """By rate, the share of rounds that fail. All rates see the same draws, so that P(fail) rises with the rate."""
    costs = [
        [(j, bound.lost[i]) for j, bound in enumerate(bounds) if i in bound.lost] for i in range(len(missed))
    ]
    gains = [
        [(j, bound.back[i]) for j, bound in enumerate(bounds) if i in bound.back] for i in range(len(missed))
    ]
    live = [i for i in range(len(missed)) if costs[i] or gains[i]]
    most = [bound.most for bound in bounds]
    highest = rates[-1]
    failed = [0] * len(rates)
    draw = random.Random(seed).random
    for _ in range(rounds):
        totals = [0.0] * len(bounds)
        lost: list[list[int]] = [[] for _ in rates]
        for place in live:
            chance = draw()
            if missed[place]:
                if chance < recover:
                    for which, gain in gains[place]:
                        totals[which] += gain
                    continue
                chance = (chance - recover) / (1 - recover)
            if chance < highest:
                lost[bisect_right(rates, chance)].append(place)
        for level, places in enumerate(lost):
            for place in places:
                for which, cost in costs[place]:
                    totals[which] += cost
            if any(total > bound for total, bound in zip(totals, most, strict=True)):
                # What is lost at one rate is lost at every higher one.
                for higher in range(level, len(rates)):
                    failed[higher] += 1
                break
    return {rate: count / rounds for rate, count in zip(rates, failed, strict=True)}


# In words.


def sentences(arm: ArmPolicy, odds: Odds) -> tuple[str, ...]:
    """The odds as `floor` and `power` say them: what is caught, and what unchanged code has to fear."""
    said = []
    if odds.detects:
        (first, share), *others = odds.detects.items()
        rest = "".join(f", of {drop} in {percent(caught)}" for drop, caught in others)
        said.append(f"Catches a loss of {first} points in {percent(share)} of cases{rest}.")
    if arm.runs_agree:
        said.append("Its runs agree in every ranking.")
    if odds.alarms:
        alarms = [
            f"in {percent(share)} of runs if {100 * rate:.3g}% of queries flip"
            for rate, share in odds.alarms.items()
        ]
        lead = "Unchanged" if arm.runs_agree else "Its runs differ in their rankings: unchanged"
        said.append(f"{lead} code fails {', '.join(alarms)}.")
    if not arm.runs_agree and max(odds.alarms.values(), default=0.0) > OFTEN:
        said.append(
            "More than one run in ten would fail for nothing: make the arm deterministic, or let more pass and say why "
            "(--margin, --max-drop)."
        )
    return tuple(said)


def percent(share: float) -> str:
    """A probability as a person reads it: never a plain 0% or 100% that it is not."""
    if 0 < share < 0.0005:
        return "<0.1%"
    if 0.995 <= share < 1:
        return ">99%"
    return f"{share:.1%}" if 0 < share < 0.0995 else f"{share:.0%}"
