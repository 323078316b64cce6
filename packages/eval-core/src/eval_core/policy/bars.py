"""The bar of each measure: the tighter of its floor and the largest drop below the baseline (one function, here).

- *floor*: the worst of the runs, less margin / n; whole misses for hit@k and all@k.
- *drop*: the baseline, less the largest drop in points. recall@10 (or the deepest recall held in its place) of a pinned
  arm may fall by 2.0 points (A4); any other headline, and every default drop of a drifting arm, by the larger of 2.0
  points and the margin; where the runs differ in their rankings, by at least as much as they do, and one query. Other
  measures have no drop unless budgets.toml names one.
- *everywhere*: `max_drop_everywhere`, for every measure, overall and in each category (M2).

`check`, `power`, `aa`, the self-test and promotion all ask `bars`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from eval_core.policy.evidence import Line
from eval_core.policy.models import CATEGORY_QUERIES, DROP, MARGIN, Budget
from eval_core.scoring import metrics

#: Unrounded values are compared with this much room for the last bits.
TOLERANCE = 1e-9

#: The share of unchanged runs that a derived margin may fail.
FALSE_ALARM = 0.01

Rule = Literal["floor", "drop", "everywhere"]


@dataclass(frozen=True, slots=True)
class Choices:
    """What people chose for an arm, without any number that follows from it.

    `measures` are those with a floor; None: the usual ones, less those of `left_out`.
    """

    margin: int | Literal["derived"] = MARGIN
    drifts: bool = False
    measures: Sequence[str] | None = None
    left_out: frozenset[str] = frozenset()
    by_category: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """What one measure must reach, over all queries or in one category.

    Attributes:
        measure: its name.
        category: None over all queries.
        n: queries scored in the slice.
        lowest: the lowest mean that passes, unrounded; compared with a tolerance of 1e-9.
        misses: of hit@k and all@k, the most misses that pass; None for others.
        rule: which rule is the tighter one, the floor where they are equal.
        baseline: the mean of the baseline.
        floor: what the floor alone allows, None where there is none: a mean, or misses.
        points: the largest drop below the baseline in points, None where there is none.
    """

    measure: str
    category: str | None
    n: int
    lowest: float
    misses: int | None
    rule: Rule
    baseline: float
    floor: float | None
    points: float | None

    @property
    def queries(self) -> int:
        """How many queries that the baseline answered wholly may be lost, none being gained."""
        if self.misses is not None:
            return self.misses - (self.n - round(self.baseline * self.n))
        return max(0, math.floor((self.baseline - self.lowest) * self.n + TOLERANCE * self.n))

    def passes(self, values: Sequence[float]) -> bool:
        """Whether the values of the slice's queries pass.

        Args:
            values: a value a query, `n` of them.
        """
        if self.misses is not None:
            return sum(value < 1 for value in values) <= self.misses
        return metrics.mean(values) >= self.lowest - TOLERANCE


def usual_measures(baseline: Line) -> tuple[str, ...]:
    """What is held where nobody says otherwise: recall@10 or the deepest recall, the headline, ndcg@10, hit@1, mrr."""
    held = set(baseline.measures)
    wanted = (deepest_recall(baseline), baseline.headline, "ndcg@10", "hit@1", "mrr")
    return tuple(name for name in dict.fromkeys(wanted) if name in held)


def deepest_recall(baseline: Line) -> str:
    """recall@10, or recall at the largest cut-off of a run that has no cut-off of 10."""
    return f"recall@{10 if 10 in baseline.cutoffs else baseline.cutoffs[-1]}"


def measures_held(choices: Choices, baseline: Line) -> tuple[str, ...]:
    """The measures that have a floor."""
    if choices.measures is not None:
        return tuple(choices.measures)
    return tuple(name for name in usual_measures(baseline) if name not in choices.left_out)


def distinct(lines: Iterable[Line]) -> list[Line]:
    """One line of each quality, the last of each: others say nothing new of any measure."""
    return list({line.quality: line for line in lines}.values())


def margin_of(choices: Choices, lines: Sequence[Line]) -> int:
    """The margin in misses: the chosen one, or as many as unchanged code exceeds at most once in a hundred runs."""
    if choices.margin != "derived":
        return choices.margin
    return derived_margin(lines[-1].n, flip_rate(lines, measures_held(choices, lines[-1])))


def derived_margin(n: int, rate: float, alarm: float = FALSE_ALARM) -> int:
    """The smallest m with P(Bin(n, rate) > m) of at most `alarm`."""
    from eval_core.scoring.statistics import binomial_above

    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if binomial_above(n, rate, middle) <= alarm else (middle + 1, high)
    return low


def flip_rate(lines: Sequence[Line], measures: Iterable[str]) -> float:
    """The upper bound (95%) of the rate at which a query's value changes between two runs, of the measure that changes
    most. Flips cluster by query, so it is optimistic."""
    from eval_core.scoring.statistics import flip_rate_upper

    most = max((len(flips(lines, name)) for name in measures), default=0)
    return flip_rate_upper(most, lines[-1].n * max(1, len(lines) - 1))


def flips(lines: Sequence[Line], measure: str) -> list[str]:
    """The queries whose value of a measure is not what it was in the run before, once for each time."""
    found = []
    for before, after in pairwise(lines):
        if before.quality == after.quality:
            continue
        was = dict(zip((e.id for e in before.scored), before.column(measure), strict=True))
        now = zip((e.id for e in after.scored), after.column(measure), strict=True)
        found += [query for query, value in now if query in was and abs(value - was[query]) > TOLERANCE]
    return found


def floor_of(measure: str, runs: Sequence[Line], margin: int, category: str | None = None) -> float | int:
    """The floor alone: the worst of the runs less the margin; misses for hit@k and all@k, else a mean.

    One query moves a mean by at most 1 / n, so a margin of m misses is m / n of any measure.
    """
    if metrics.is_binary(measure):
        return max(run.misses(measure, category) for run in runs) + margin
    n = len(runs[-1].values(measure, category))
    return min(run.mean(measure, category) for run in runs) - margin / n


def default_drop(measure: str, choices: Choices, lines: Sequence[Line], margin: int) -> float | None:
    """The largest drop of a measure in points where budgets.toml names none; None: it has no drop."""
    baseline = lines[-1]
    recall = deepest_recall(baseline)
    if measure not in (recall, baseline.headline):
        return None
    wide = max(DROP, 100 * margin / baseline.n)
    points = DROP if measure == recall and not choices.drifts else wide
    if len({line.rankings for line in lines}) > 1:
        means = [line.mean(measure) for line in distinct(lines)]
        points = max(points, 100 * (max(means) - min(means)) + 100 / baseline.n)
    return points


def bars(choices: Choices, budget: Budget, lines: Sequence[Line]) -> tuple[Bar, ...]:
    """The bar of every measure that is held, over all queries first.

    Args:
        choices: of the arm.
        budget: of the arm.
        lines: the runs that its floors stand on, by start; the last is the baseline.

    Raises:
        Misuse: a measure that is none.
        ValueError: no lines.
    """
    if not lines:
        raise ValueError("a bar needs at least one run")
    baseline, runs = lines[-1], distinct(lines)
    margin = margin_of(choices, lines)
    held = measures_held(choices, baseline)
    everywhere = budget.max_drop_everywhere
    slices: dict[str | None, bool] = {None: True}
    for name, n in baseline.categories.items():
        floored = choices.by_category and n >= CATEGORY_QUERIES
        if floored or everywhere is not None:
            slices[name] = floored
    found = []
    for category, floored in slices.items():
        drops: dict[str, float | None] = {}
        if category is None:
            named = (deepest_recall(baseline), baseline.headline)
            drops = {name: default_drop(name, choices, lines, margin) for name in named}
            drops |= budget.max_drop
        measures = [*held, *drops, *(baseline.measures if everywhere is not None else ())]
        for measure in dict.fromkeys(measures):
            floor = floor_of(measure, runs, margin, category) if floored and measure in held else None
            bar = _bar(measure, category, baseline, floor, drops.get(measure), everywhere, runs, margin)
            if bar is not None:
                found.append(bar)
    return tuple(found)


def _bar(
    measure: str,
    category: str | None,
    baseline: Line,
    floor: float | None,
    drop: float | None,
    everywhere: float | None,
    runs: Sequence[Line],
    margin: int,
) -> Bar | None:
    values = baseline.values(measure, category)
    if not values:
        return None
    n, mean = len(values), metrics.mean(values)
    points = min((p for p in (drop, everywhere) if p is not None), default=None)
    rule: Rule = "everywhere" if points is not None and points != drop else "drop"
    if floor is None and points is None:
        return None
    if metrics.is_binary(measure):
        missed = sum(value < 1 for value in values)
        # A drop named for a measure without a floor stands on the worst run, as a floor would.
        allowed = [floor_of(measure, runs, margin, category) if floor is None and drop is not None else floor]
        by_drop = None if points is None else missed + math.floor(n * points / 100 + TOLERANCE)
        allowed.append(by_drop)
        most = min(int(value) for value in allowed if value is not None)
        if by_drop is None or most < by_drop or most == floor:
            rule = "floor"
        return Bar(measure, category, n, (n - most) / n, most, rule, mean, floor, points)
    by_points = None if points is None else mean - points / 100
    lowest = max(value for value in (floor, by_points) if value is not None)
    if by_points is None or lowest > by_points or (floor is not None and floor > by_points - TOLERANCE):
        rule = "floor"
    return Bar(measure, category, n, lowest, None, rule, mean, floor, points)


def must_pass_lost(
    baseline: Line, measure: str, values: Mapping[str, float], must_pass: Iterable[str]
) -> list[str]:
    """The queries that may lose nothing and did.

    Args:
        baseline: what they are compared with.
        measure: the headline.
        values: of the run that is judged, by scored query.
        must_pass: the queries that may lose nothing.
    """
    was = dict(zip((e.id for e in baseline.scored), baseline.column(measure), strict=True))
    return [
        query
        for query in must_pass
        if query in values and (values[query] <= 0 or values[query] < was.get(query, 0.0) - TOLERANCE)
    ]
