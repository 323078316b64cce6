"""One bar a measure (POLICY.md): values worked by hand, for each rule from which a bar can come."""

from __future__ import annotations

from typing import Any

import pytest
from evidence_support import hits, line

from eval_core.policy.arm import rounded_down, shown_floors
from eval_core.policy.bars import (
    Bar,
    Choices,
    bars,
    deepest_recall,
    default_drop,
    derived_margin,
    distinct,
    flip_rate,
    flips,
    margin_of,
    must_pass_lost,
    usual_measures,
)
from eval_core.policy.evidence import Line
from eval_core.policy.models import Budget

PLAIN, DRIFTS = Choices(), Choices(drifts=True)
NONE = Budget()


def bar(measure: str, choices: Choices, budget: Budget, *lines: Line, category: str | None = None) -> Bar:
    (found,) = [b for b in bars(choices, budget, lines) if (b.measure, b.category) == (measure, category)]
    return found


# --- the floor ---


@pytest.mark.parametrize(("misses", "allowed"), [([1], 3), ([0], 2), ([1, 0], 3), ([0, 2, 1], 4)], ids=str)
def test_k2_a_floor_is_the_worst_run_less_the_margin_in_misses(misses: list[int], allowed: int) -> None:
    """K2: n = 27, 26 of 27 hits, margin 2: 3 misses pass; 27 of 27: 2. Of several runs the worst counts."""
    runs = [hits(27, number, f"r{place}") for place, number in enumerate(misses)]
    assert shown_floors(PLAIN, runs).misses_allowed["hit@1"] == allowed
    found = bar("hit@1", PLAIN, NONE, *runs)
    assert (found.misses, found.rule) == (allowed, "floor")
    assert found.passes([1.0] * (27 - allowed) + [0.0] * allowed)
    assert not found.passes([1.0] * (26 - allowed) + [0.0] * (allowed + 1))


def test_k2_a_floor_of_a_mean_is_the_worst_run_less_the_margin_over_n() -> None:
    """K2: MRR 0.981 of 27 queries: 26 at rank 1 and one at rank 2; one query moves it by 1 / 27 at most."""
    run = line([1] * 26 + [2])
    assert run.mean("mrr") == pytest.approx(0.981, abs=5e-4)
    found = bar("mrr", PLAIN, NONE, run)
    assert found.lowest == pytest.approx(26.5 / 27 - 2 / 27, abs=1e-12)
    assert (found.rule, found.points) == ("floor", None)
    assert shown_floors(PLAIN, [run]).floors["mrr"] == 0.907407  # 0.9074074…, rounded down


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.8545454545, 0.854545),
        (0.6666666666, 0.666666),
        (0.5, 0.5),
        (1 / 3, 0.333333),
        (0.29, 0.29),
        (-0.01, -0.01),
    ],
)
def test_a_shown_floor_is_never_above_the_derived_one(value: float, shown: float) -> None:
    assert rounded_down(value) == shown


def test_the_example_of_policy_md() -> None:
    """memory-bm25: recall@10 0.890909 of 55, so that the drop of 2.0 points is tighter than the floor of 0.854545."""
    run = hits(55, 6, headline="recall@10")
    found = bar("recall@10", PLAIN, NONE, run)
    assert rounded_down(found.baseline) == 0.890909
    assert rounded_down(found.lowest) == 0.870909
    assert (found.rule, found.points, found.queries) == ("drop", 2.0, 1)
    assert shown_floors(PLAIN, [run]).floors["recall@10"] == 0.854545


# --- which rule is the tighter one ---

EIGHT = ["x"] * 4 + ["y"] * 4

TABLE: dict[str, tuple[Choices, Budget, list[Line], str, str | None, float, int | None, str]] = {
    # what: (choices, budget, runs, measure, category, lowest mean, misses, rule)
    "pinned, few queries": (PLAIN, NONE, [hits(27, 1)], "recall@10", None, 26 / 27 - 0.02, None, "drop"),
    "pinned, many queries": (PLAIN, NONE, [hits(200, 10)], "recall@10", None, 0.95 - 0.01, None, "floor"),
    "pinned, 100 queries: floor and drop are one": (
        PLAIN, NONE, [hits(100, 10)], "recall@10", None, 0.88, None, "floor",
    ),
    "drifting, few queries: as wide as the margin": (
        DRIFTS, NONE, [hits(27, 1)], "recall@10", None, 24 / 27, None, "floor",
    ),
    "drifting, many queries: 2.0 points": (DRIFTS, NONE, [hits(200, 0)], "recall@10", None, 0.99, None, "floor"),
    "another headline": (
        PLAIN, NONE, [line([1] * 26 + [2], headline="mrr")], "mrr", None, 26.5 / 27 - 2 / 27, None, "floor",
    ),
    "no margin: the headline keeps 2.0 points": (
        Choices(margin=0), NONE, [line([1] * 99 + [2], headline="mrr")], "mrr", None, 0.995, None, "floor",
    ),
    "ndcg has no drop": (PLAIN, NONE, [hits(27, 1)], "ndcg@10", None, 24 / 27, None, "floor"),
    "a wider margin leaves the drop": (
        Choices(margin=9), NONE, [hits(55, 6)], "recall@10", None, 49 / 55 - 0.02, None, "drop",
    ),
    "no cut-off of 10: the deepest recall takes its place": (
        PLAIN, NONE, [hits(27, 2, cutoffs=(1, 5), limit=5, headline="hit@1")], "recall@5", None, 25 / 27 - 0.02,
        None, "drop",
    ),
    "recall@10 beside a deeper one": (
        PLAIN, NONE, [hits(27, 1, cutoffs=(10, 50), limit=50)], "recall@10", None, 26 / 27 - 0.02, None, "drop",
    ),
    "left out, recall@10 keeps its drop": (
        Choices(left_out=frozenset({"recall@10"})), NONE, [hits(27, 1)], "recall@10", None, 26 / 27 - 0.02, None,
        "drop",
    ),
    # Runs that differ: means of 26/27 and 25/27, so 1/27 apart, and one query more.
    "runs that differ widen the drop": (
        PLAIN, NONE, [hits(27, 2, "r1"), hits(27, 1, "r2")], "recall@10", None, 26 / 27 - 2 / 27, None, "drop",
    ),
    "runs that differ where nobody judged leave one query": (
        PLAIN, NONE, [hits(27, 1, "r1"), hits(27, 1, "r2", rankings="other")], "recall@10", None, 25 / 27, None,
        "drop",
    ),
    # budgets.toml.
    "a tighter drop is named": (
        PLAIN, Budget(max_drop={"mrr": 1.0}), [hits(27, 1)], "mrr", None, 26 / 27 - 0.01, None, "drop",
    ),
    "a wider drop is named": (
        PLAIN, Budget(max_drop={"recall@10": 50.0}), [hits(27, 1)], "recall@10", None, 24 / 27, None, "floor",
    ),
    "misses by a drop: 10 of 100 and 1 point": (
        PLAIN, Budget(max_drop={"hit@1": 1.0}), [hits(100, 10)], "hit@1", None, 0.89, 11, "drop",
    ),
    "misses by a drop: 10 of 100 and 2.9 points are 2 queries": (
        PLAIN, Budget(max_drop={"hit@1": 2.9}), [hits(100, 10)], "hit@1", None, 0.88, 12, "floor",
    ),
    "misses of a worse run": (
        PLAIN, Budget(max_drop={"hit@1": 5.0}), [hits(100, 13, "r1"), hits(100, 10, "r2")], "hit@1", None, 0.85, 15,
        "floor",
    ),
    "a drop of what has no floor stands on the worst run": (
        PLAIN, Budget(max_drop={"all@5": 9.0}), [hits(100, 10)], "all@5", None, 0.88, 12, "floor",
    ),
    # M2.
    "everywhere, over all": (
        PLAIN, Budget(max_drop_everywhere=1.0), [hits(27, 1)], "recall@10", None, 26 / 27 - 0.01, None, "everywhere",
    ),
    "everywhere, of a measure without a floor": (
        PLAIN, Budget(max_drop_everywhere=1.0), [hits(27, 1)], "map", None, 26 / 27 - 0.01, None, "everywhere",
    ),
    "everywhere, in a category of four": (
        PLAIN, Budget(max_drop_everywhere=30.0), [hits(8, 1, categories=EIGHT)], "recall@10", "y", 0.75 - 0.3, None,
        "everywhere",
    ),
    "everywhere, misses in a category of four": (
        PLAIN, Budget(max_drop_everywhere=30.0), [hits(8, 1, categories=EIGHT)], "hit@1", "y", 0.5, 2, "everywhere",
    ),
    # Categories of 20 queries have floors where that is chosen, and no default drop.
    "a category's floor": (
        Choices(by_category=True), NONE, [hits(40, 1, categories=["x"] * 20 + ["y"] * 20)], "recall@10", "y",
        19 / 20 - 2 / 20, None, "floor",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", TABLE)
def test_the_bar_is_the_tighter_of_floor_and_drop(what: str) -> None:
    choices, budget, runs, measure, category, lowest, misses, rule = TABLE[what]
    found = bar(measure, choices, budget, *runs, category=category)
    assert found.lowest == pytest.approx(lowest, abs=1e-9)
    assert (found.misses, found.rule) == (misses, rule)


def test_round2_b8_a_set_without_recall_at_10_has_a_drop_all_the_same() -> None:
    """B8: limit 5, headline hit@1, n = 27: hit@1 0.926 → 0.889 is within its floor, recall@5 1.000 → 0.944 is not."""
    shape: dict[str, Any] = {"cutoffs": (1, 5), "limit": 5, "headline": "hit@1"}
    # Four queries are worse: one is found at 2, and three lose one of their two documents.
    both, half = [[(1, 1), (1, 2)]] * 3, [[(1, 1), (1, None)]] * 3
    baseline = line([*both, *[1] * 22, *[2] * 2], **shape)
    worse = line([*half, *[1] * 21, *[2] * 3], "r2", **shape)
    assert [round(run.mean("hit@1"), 3) for run in (baseline, worse)] == [0.926, 0.889]
    assert [round(run.mean("recall@5"), 3) for run in (baseline, worse)] == [1.0, 0.944]
    held = {b.measure: b for b in bars(PLAIN, NONE, [baseline])}
    assert list(held) == ["recall@5", "hit@1", "mrr"]
    assert held["hit@1"].misses == 2 + 2
    assert held["hit@1"].points == pytest.approx(100 * 2 / 27)
    assert held["hit@1"].passes(worse.values("hit@1"))
    assert not held["recall@5"].passes(worse.values("recall@5"))
    assert (held["recall@5"].rule, held["recall@5"].points) == ("drop", 2.0)


def test_a_category_of_fewer_than_20_has_no_floor() -> None:
    run = hits(39, 1, categories=["x"] * 20 + ["y"] * 19)
    assert {b.category for b in bars(Choices(by_category=True), NONE, [run])} == {None, "x"}
    assert {b.category for b in bars(PLAIN, NONE, [run])} == {None}
    assert {b.category for b in bars(PLAIN, Budget(max_drop_everywhere=2), [run])} == {None, "x", "y"}


@pytest.mark.parametrize(
    ("headline", "cutoffs", "held"),
    [
        ("recall@10", (1, 5, 10), ("recall@10", "ndcg@10", "hit@1", "mrr")),
        ("hit@1", (1, 5), ("recall@5", "hit@1", "mrr")),
        ("rprec", (5, 10), ("recall@10", "rprec", "ndcg@10", "mrr")),
        ("mrr@10", (3,), ("recall@3", "mrr@10", "mrr")),
    ],
)
def test_what_is_held_where_nobody_says_otherwise(
    headline: str, cutoffs: tuple[int, ...], held: tuple[str, ...]
) -> None:
    run = hits(27, 1, headline=headline, cutoffs=cutoffs, limit=10)
    assert usual_measures(run) == held
    assert deepest_recall(run) == held[0]


# --- runs that differ ---


def test_a_derived_margin_is_what_unchanged_code_exceeds_once_in_a_hundred_runs() -> None:
    """P(Bin(n, rate) > m) ≤ 1%: by scipy, which the product does not use."""
    from scipy.stats import binom

    for n, rate in ((27, 0.01), (55, 0.03), (120, 0.1), (300, 0.002)):
        expected = int(binom.ppf(0.99, n, rate))
        assert derived_margin(n, rate) == expected
        assert binom.sf(expected, n, rate) <= 0.01 < binom.sf(expected - 1, n, rate)


def test_flips_are_counted_between_runs_that_follow_each_other() -> None:
    """q2 is lost, then found again: two flips; the rate is bounded over n queries and two transitions."""
    from scipy.stats import beta

    runs = [hits(20, 0, "r1"), hits(20, 1, "r2"), hits(20, 0, "r3")]
    assert flips(runs, "hit@1") == ["q019", "q019"]
    assert flips(runs[::2], "hit@1") == []
    # Clopper and Pearson's upper bound of 2 in 40.
    assert flip_rate(runs, ["hit@1", "mrr"]) == pytest.approx(float(beta.ppf(0.95, 3, 38)))
    assert margin_of(Choices(margin="derived"), runs) == derived_margin(20, flip_rate(runs, ["hit@1"]))
    assert margin_of(Choices(margin=5), runs) == 5


def test_runs_of_one_quality_are_one() -> None:
    runs = [hits(20, 0, "r1"), hits(20, 0, "r2"), hits(20, 1, "r3")]
    assert [run.run_id for run in distinct(runs)] == ["r2", "r3"]


def test_the_drop_of_another_measure_is_none() -> None:
    run = hits(27, 1)
    assert default_drop("mrr", PLAIN, [run], 2) is None
    assert default_drop("recall@10", PLAIN, [run], 2) == 2.0
    assert default_drop("recall@10", DRIFTS, [run], 2) == pytest.approx(200 / 27)


def test_a_bar_needs_a_run() -> None:
    with pytest.raises(ValueError, match="at least one run"):
        bars(PLAIN, NONE, [])


# --- must_pass ---


@pytest.mark.parametrize(("value", "lost"), [(1.0, False), (0.5, True), (0.0, True), (None, False)], ids=str)
def test_a_query_that_may_lose_nothing_loses_where_it_scores_less_or_nothing(
    value: float | None, lost: bool
) -> None:
    baseline = line([1, 2])
    values = {} if value is None else {"q000": value}
    assert must_pass_lost(baseline, "mrr", values, ["q000"]) == (["q000"] if lost else [])


def test_a_must_pass_query_that_never_found_anything_does_not_pass() -> None:
    assert must_pass_lost(line([None]), "mrr", {"q000": 0.0}, ["q000"]) == ["q000"]
