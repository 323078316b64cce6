"""What `power` and `aa` print, as models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from eval_core.models import Closed
from eval_core.policy import Bar
from eval_gate.verdict import Word


class Resolved(Closed):
    """What so many queries can show. Lost is meant as wholly lost, with none gained."""

    n: int = Field(ge=0)
    one_query_points: float | None = Field(description="What one lost query moves a mean by.")
    significant: int = Field(description="Fewest lost queries that a test calls significant.")
    significant_points: float | None = Field(description="The same in points; null: n is smaller than that.")
    margin: int = Field(description="Misses that unchanged code exceeds at most once in 100 runs.")
    detectable_points: float | None = Field(
        description="True drop that loses more than the margin in 80 of 100 cases; null: there is no such drop."
    )
    floorable: bool = Field(description="Whether a category of this size gets floors.")


class Chance(Closed):
    """A measure of the set, and what a random ranking of its documents scores on average."""

    measure: str
    binary: bool = Field(description="Whether each query's value is 0 or 1, so that a floor counts misses.")
    random: float = Field(ge=0, le=1)


class AtDrop(Closed):
    """P(fail) at a true drop."""

    points: int
    fails: float = Field(ge=0, le=1)


class AtRate(Closed):
    """P(fail) of unchanged code whose queries flip at a rate."""

    flip_rate: float = Field(ge=0, le=1)
    fails: float = Field(ge=0, le=1)


class ArmBar(Closed):
    """What one measure of an arm must reach."""

    measure: str
    category: str | None = Field(default=None, description="null: over all queries.")
    n: int
    baseline: float
    lowest: float = Field(description="The lowest mean that passes.")
    misses_allowed: int | None = Field(default=None, description="For measures that are 0 or 1 a query.")
    rule: Literal["floor", "drop", "everywhere"] = Field(description="Which rule gives the bar.")
    queries: int = Field(
        description="Queries that the baseline answers and that may be lost, none being gained."
    )


class PolicyOdds(Closed):
    """The bars of an arm, and P(fail) of them all, from the values of its baseline."""

    margin: int
    bars: tuple[ArmBar, ...]
    runs: int = Field(description="That the floors stand on.")
    runs_agree: bool = Field(description="Whether they agree in every ranking.")
    drops: tuple[AtDrop, ...]
    false_alarms: tuple[AtRate, ...] = Field(
        description="Where the runs differ in their rankings, or --flip-rate is given."
    )
    exact: bool = Field(description="Computed, not simulated.")
    standard_error: float = Field(description="The most that a simulated share has; 0 where exact.")
    sentences: tuple[str, ...]


class Target(Closed):
    """What one set, as an arm measures it, can resolve."""

    name: str
    arm: bool = Field(description="Whether the name is an arm's; else it is a folder.")
    set: str
    split: str
    filter: tuple[str, ...] = Field(default=(), description="Query metadata that filters.")
    documents: int
    unscorable: int = Field(description="Queries without a positive judgement, left out.")
    must_pass: int = Field(description="Queries that may lose nothing.")
    overall: Resolved
    categories: dict[str, Resolved]
    measures: tuple[Chance, ...]
    policy: PolicyOdds | None = None
    note: str | None = Field(default=None, description="Why there are no odds of a policy.")


class Power(Closed):
    """What `eval-gate power --format json` prints."""

    schema_: Literal["power-v1"] = Field(default="power-v1", alias="schema")
    flip_rate: float = Field(
        description="Of unchanged code, as the margins of `overall` and `categories` suppose it."
    )
    targets: tuple[Target, ...] = ()


class MeasureFlips(Closed):
    """How often a query's value of a measure was not what it was in the run before."""

    measure: str
    means: tuple[float, ...] = Field(description="Run by run.")
    flips: int
    queries: int = Field(description="Different queries that flipped.")
    rate: float
    upper: float = Field(
        description="One-sided 95% bound of the rate; optimistic, since flips cluster by query."
    )
    margin: int = Field(description="Misses that a run exceeds at most once in 100 at that bound.")


class Flipped(Closed):
    """A query whose value of the measure was not the same in all runs."""

    query: str
    text: str | None = Field(description="null: evidence keeps no texts.")
    measure: str
    values: tuple[float, ...] = Field(description="Run by run.")


class JudgedRun(Closed):
    """One run, and what the present policy says of it; null: the arm has no floors."""

    run_id: str
    verdict: Word | None
    codes: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()


class PresentPolicy(Closed):
    """What the present policy makes of unchanged code. What follows from bars is absent where every run is refused."""

    failed: int = Field(description="Runs that did not pass.")
    share: float
    margin: int | None = None
    measure: str | None = Field(default=None, description="The measure with a bar that flips most.")
    false_alarms: tuple[AtRate, ...] = Field(
        default=(), description="By the model, at that measure's rate and at its upper bound."
    )
    exact: bool = Field(default=True, description="Computed, not simulated.")


class Unchanged(Closed):
    """What `eval-gate aa --format json` prints."""

    schema_: Literal["aa-v1"] = Field(default="aa-v1", alias="schema")
    arm: str
    set: str
    headline: str
    n: int = Field(description="Queries scored in every run.")
    trials: int = Field(description="n × (runs - 1).")
    runs: tuple[JudgedRun, ...]
    measures: tuple[MeasureFlips, ...]
    flipped: tuple[Flipped, ...]
    policy: PresentPolicy | None = None
    notes: tuple[str, ...] = ()
    exit_code: Literal[0, 1]


def at_drops(shares: Mapping[int, float]) -> tuple[AtDrop, ...]:
    """P(fail) by true drop."""
    return tuple(AtDrop(points=points, fails=share) for points, share in shares.items())


def at_rates(shares: Mapping[float, float]) -> tuple[AtRate, ...]:
    """P(fail) by flip rate."""
    return tuple(AtRate(flip_rate=rate, fails=share) for rate, share in shares.items())


def arm_bar(bar: Bar) -> ArmBar:
    """A bar as it is printed."""
    return ArmBar(
        measure=bar.measure,
        category=bar.category,
        n=bar.n,
        baseline=bar.baseline,
        lowest=bar.lowest,
        misses_allowed=bar.misses,
        rule=bar.rule,
        queries=bar.queries,
    )
