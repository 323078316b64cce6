"""What `power` and `aa` tell: models, and what of them follows from counts and labels alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from pydantic import Field

from eval_core.models import Closed
from eval_core.scoring.metrics import Measure
from eval_core.scoring.statistics import ALPHA, binomial_above, mcnemar_loss, resolution
from eval_gate.policy import CATEGORY_QUERIES, MARGIN, TOLERANCE, derived_margin
from eval_gate.power.odds import FLIP_RATE, NOTHING, Odds, detectable, least, pmf
from eval_gate.verdict import Word

#: True drops that the rules are laid side by side at, in points, and the churn of unchanged code.
RULE_DROPS, RULE_CHURN = (10, 15, 20, 30), (0.01, 0.02)


class Resolved(Closed):
    """What so many queries can show. Lost is meant as wholly lost, with none gained."""

    n: int = Field(ge=0)
    one_query_points: float | None = Field(description="What one lost query moves a mean by.")
    significant: int = Field(description="Fewest lost queries that a test calls significant.")
    significant_points: float | None = Field(description="The same in points; null: n is smaller than that.")
    margin: int = Field(description="Misses that unchanged code exceeds at most once in 100 runs.")
    detectable_points: float | None = Field(
        description="True drop that loses more than the margin in 80 of 100 cases; null: none does."
    )
    floorable: bool = Field(description="Whether a category of this size gets floors.")


def resolved(n: int, flip_rate: float) -> Resolved:
    """What n queries can show where a share `flip_rate` of them flips between runs of unchanged code."""
    fewest = resolution(max(1, n)).queries
    allowed = derived_margin(n, flip_rate)
    return Resolved(
        n=n,
        one_query_points=100 / n if n else None,
        significant=fewest,
        significant_points=100 * fewest / n if n >= fewest else None,
        margin=allowed,
        detectable_points=detectable(n, allowed),
        floorable=n >= CATEGORY_QUERIES,
    )


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


class PolicyOdds(Closed):
    """P(fail) of an arm's policy, from the values of its baseline."""

    headline: str
    metrics: tuple[str, ...] = Field(description="The measures with floors.")
    margin: int
    max_net_lost: int
    max_drop: dict[str, float]
    tracked: bool
    flip_rate: float
    flip_rate_from: Literal["option", "floors", "assumed"]
    false_alarm: float
    drops: tuple[AtDrop, ...]
    exact: bool = Field(description="Computed, not simulated.")
    standard_error: float = Field(description="The most that a simulated share has; 0 where exact.")
    sentence: str


class Target(Closed):
    """What one set, as an arm asks it, can resolve."""

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


class RuleRow(Closed):
    """P(fail) of one way to judge lost and gained queries."""

    rule: str
    churn: tuple[AtRate, ...]
    drops: tuple[AtDrop, ...]


class Rules(Closed):
    """Four ways to judge, side by side on the same queries. Exact."""

    n: int
    hits: int
    recover: float | None = Field(
        description="Share of misses that recover; null: as much as the churn, 1% beside a drop."
    )
    rows: tuple[RuleRow, ...]


class Power(Closed):
    """What `eval-gate power --format json` prints."""

    schema_: Literal["power-v1"] = Field(default="power-v1", alias="schema")
    flip_rate: float = Field(description="Of unchanged code, as margins suppose it.")
    targets: tuple[Target, ...] = ()
    queries: Resolved | None = Field(default=None, description="Of --n queries.")
    rules: Rules | None = None


class MeasureFlips(Closed):
    """How often a query's value of a measure differed from the first run's."""

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
    text: str
    measure: str
    values: tuple[float, ...] = Field(description="Run by run.")


class JudgedRun(Closed):
    """One run, and what the present policy says of it; null: the arm has no floors."""

    run_id: str
    verdict: Word | None
    codes: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()


class PresentPolicy(Closed):
    """What the present policy makes of unchanged code."""

    margin: int
    failed: int = Field(description="Runs that did not pass.")
    share: float
    measure: str = Field(description="The measure that the policy holds and that flips most.")
    simulated: tuple[AtRate, ...] = Field(
        description="False alarm at that measure's rate, and at its upper bound."
    )
    exact: bool


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
    return tuple(AtDrop(points=points, fails=share) for points, share in shares.items())


def false_alarms(*found: Odds) -> tuple[AtRate, ...]:
    return tuple(AtRate(flip_rate=one.flip_rate, fails=one.false_alarm) for one in found)


def rules(
    n: int, hits: int, *, recover: float | None = None, allowed: int = MARGIN, budget: float = 2.0
) -> Rules:
    """Four rules side by side on n queries of which `hits` are found, exactly.

    A budget in points alone; the same, and a two-sided exact p below 5%; McNemar's one-sided mid-p below 5% alone; more
    net lost queries than a margin allows. L ~ Bin(hits, rate) are lost and G ~ Bin(n - hits, recover) gained.

    Args:
        n, hits: how many queries, and how many of them are found.
        recover: the share of misses that recover; where not given, the churn, and beside a drop 1%.
        allowed: the margin of the last rule.
        budget: points of the first two.

    Raises:
        ValueError: hits outside 0 … n, or a share outside 0 … 1.
    """
    if not 0 <= hits <= n or n < 1 or not 0 <= (recover or 0) <= 1:
        raise ValueError(
            f"{hits!r} hits of {n!r} queries, of whose misses a share {recover!r} recovers: cannot be"
        )

    def over(lost: int, gained: int) -> bool:
        return (lost - gained) * 100 / n > budget + TOLERANCE

    def certain(lost: int, gained: int) -> bool:
        return 2 * binomial_above(lost + gained, 0.5, max(lost, gained) - 1) < ALPHA

    table: dict[str, Callable[[int, int], bool]] = {
        f"drop over {budget:g} points": over,
        f"drop over {budget:g} points and p < {ALPHA:g}": lambda lost, gained: (
            over(lost, gained) and certain(lost, gained)
        ),
        f"McNemar mid-p < {ALPHA:g}": lambda lost, gained: mcnemar_loss(lost, gained) < ALPHA,
        f"net lost over {allowed}": lambda lost, gained: lost - gained > allowed,
    }

    def chance(rule: Callable[[int, int], bool], rate: float, gain: float) -> float:
        terms = []
        for gained in range(n - hits + 1):
            if (share := pmf(n - hits, gain, gained)) >= NOTHING:
                # A rule that fails some losses fails more of them too.
                fewest = least(hits + 1, _beside(rule, gained))
                terms.append(share * binomial_above(hits, rate, fewest - 1))
        return math.fsum(terms)

    rows = []
    for name, rule in table.items():
        churn = {rate: chance(rule, rate, rate if recover is None else recover) for rate in RULE_CHURN}
        gain = FLIP_RATE if recover is None else recover
        drops = {points: chance(rule, points / 100, gain) for points in RULE_DROPS}
        rates = tuple(AtRate(flip_rate=rate, fails=share) for rate, share in churn.items())
        rows.append(RuleRow(rule=name, churn=rates, drops=at_drops(drops)))
    return Rules(n=n, hits=hits, recover=recover, rows=tuple(rows))


def _beside(rule: Callable[[int, int], bool], gained: int) -> Callable[[int], bool]:
    return lambda lost: rule(lost, gained)


def expected(measure: Measure, grades: Sequence[int], candidates: int, limit: int) -> float:
    """What a uniformly random ranking scores on average on one query.

    With R relevant documents among N, each rank holds one with probability R / N, so recall@k is k / N and hit@k is
    1 - C(N - R, k) / C(N, k). Average precision follows from the ranks before one that is relevant: each of the i - 1
    holds another with probability (R - 1) / (N - 1).

    Args:
        measure: one of those that a report holds.
        grades: of the relevant documents, each at least 1.
        candidates: N, the documents that the query may find.
        limit: how many are asked for.

    Raises:
        ValueError: a measure of another family, or fewer candidates than relevant documents.
    """
    relevant = len(grades)
    if not 0 < relevant <= candidates:
        raise ValueError(f"{relevant} relevant documents among {candidates} cannot be ranked")
    k = measure.cutoff or limit
    depth = min(k, limit, candidates)
    share = relevant / candidates
    if measure.family == "recall":
        return depth / candidates
    if measure.family == "precision":
        return share * depth / k
    if measure.family == "hit":
        return 1 - _none_within(depth, relevant, candidates)
    if measure.family == "all":
        return math.prod(max(0, depth - i) / (candidates - i) for i in range(relevant))
    if measure.family == "mrr":
        none = [_none_within(rank, relevant, candidates) for rank in range(depth + 1)]
        return math.fsum((none[rank - 1] - none[rank]) / rank for rank in range(1, depth + 1))
    if measure.family == "map":
        others = (relevant - 1) / max(1, candidates - 1)
        return math.fsum((1 + (rank - 1) * others) / rank for rank in range(1, depth + 1)) / candidates
    if measure.family == "ndcg" and measure.gain == "lin" and measure.cutoff is not None:
        discounts = [1 / math.log2(rank + 1) for rank in range(1, max(k, depth) + 1)]
        ideal = math.fsum(map(math.prod, zip(sorted(grades, reverse=True), discounts, strict=False)))
        return sum(grades) / candidates * math.fsum(discounts[:depth]) / ideal
    raise ValueError(f"{measure}: what a random ranking scores is not known for it")


def _none_within(depth: int, relevant: int, candidates: int) -> float:
    """P(no relevant document in the top `depth`) of a random ranking."""
    return math.prod(max(0, candidates - depth - i) / (candidates - i) for i in range(relevant))
