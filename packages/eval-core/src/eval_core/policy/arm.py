"""The policy of one arm: its choices, its budget and its evidence, and all that is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from eval_core.policy.bars import (
    TOLERANCE,
    Bar,
    Choices,
    bars,
    distinct,
    floor_of,
    margin_of,
    measures_held,
)
from eval_core.policy.eligibility import band
from eval_core.policy.evidence import Line
from eval_core.policy.models import (
    CATEGORY_QUERIES,
    P95_MS,
    SETTLED_RUNS,
    ArmFloors,
    Budget,
    CategoryFloors,
)

#: Decimals of the floors that are shown, rounded down.
DECIMALS = 6


@dataclass(frozen=True)
class ArmPolicy:
    """What one arm is held to.

    Attributes:
        name: the arm.
        floors: its table of floors.toml.
        budget: its table of budgets.toml, empty where there is none.
        lines: the runs that it cites, in the order of `floors.runs`.
        default_p95: whether 300 ms hold where the budget names no p95: not for services and the owner's lane.
    """

    name: str
    floors: ArmFloors
    budget: Budget = field(default_factory=lambda: Budget())
    lines: Sequence[Line] = ()
    default_p95: bool = True

    @property
    def baseline(self) -> Line:
        """The last of the runs."""
        return self.lines[-1]

    @cached_property
    def choices(self) -> Choices:
        """What people chose, without the numbers that follow."""
        return choices_of(self.floors)

    @cached_property
    def margin(self) -> int:
        """The margin in misses."""
        return margin_of(self.choices, self.lines)

    @cached_property
    def bars(self) -> tuple[Bar, ...]:
        """The bar of every measure that is held."""
        return bars(self.choices, self.budget, self.lines)

    @property
    def p95_ms(self) -> float | None:
        """The latency budget in milliseconds."""
        return self.budget.p95_ms or (P95_MS if self.default_p95 else None)

    @property
    def provisional(self) -> bool:
        """Whether the margin is a convention, not yet backed by enough runs."""
        return len(self.lines) < SETTLED_RUNS

    @property
    def documents(self) -> tuple[int, int] | None:
        """With a corpus that drifts: the fewest and the most documents that pass."""
        if self.floors.drift is None:
            return None
        return band(self.baseline.documents, self.floors.drift)


def choices_of(floors: ArmFloors) -> Choices:
    """What people chose for an arm."""
    return Choices(
        margin=floors.margin,
        drifts=floors.corpus == "drifts",
        measures=floors.measures,
        by_category=floors.by_category,
    )


class Shown(NamedTuple):
    """The fields of `ArmFloors` that follow from choices and runs, as the file shows them."""

    runs: tuple[str, ...]
    n: int
    floors: dict[str, float]
    misses_allowed: dict[str, int]
    categories: dict[str, CategoryFloors]


def shown_floors(choices: Choices, lines: Sequence[Line]) -> Shown:
    """What the file shows of these choices and runs."""
    baseline, margin = lines[-1], margin_of(choices, lines)
    categories = {}
    if choices.by_category:
        for name, n in baseline.categories.items():
            if n >= CATEGORY_QUERIES:
                means, misses = _floors(choices, lines, margin, name)
                categories[name] = CategoryFloors(n=n, floors=means, misses_allowed=misses)
    means, misses = _floors(choices, lines, margin, None)
    runs = tuple(line.run_id for line in lines)
    return Shown(runs, baseline.n, means, misses, categories)


def _floors(
    choices: Choices, lines: Sequence[Line], margin: int, category: str | None
) -> tuple[dict[str, float], dict[str, int]]:
    means: dict[str, float] = {}
    misses: dict[str, int] = {}
    runs = distinct(lines)
    for measure in measures_held(choices, lines[-1]):
        floor = floor_of(measure, runs, margin, category)
        if isinstance(floor, int):
            misses[measure] = floor
        else:
            means[measure] = rounded_down(floor)
    return means, misses


def rounded_down(value: float) -> float:
    """A floor as the file shows it: 6 decimals, never above the derived number."""
    scale: float = 10**DECIMALS
    whole: int = math.floor(value * scale + TOLERANCE)
    return whole / scale
