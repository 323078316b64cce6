"""Intervals and tests, against scipy, exact enumeration and figures worked by hand; seeded, and blind to order."""

from __future__ import annotations

import itertools
import math
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from eval_core.scoring.statistics import (
    ENUMERATED,
    binomial_above,
    bootstrap,
    flip_rate_upper,
    holm,
    intervals,
    mcnemar,
    mcnemar_loss,
    paired,
    resolution,
    sign_flip,
    unseen,
    wilson,
)


def values(n: int, seed: int = 1) -> list[float]:
    """Recall as it is: half, thirds, whole and nothing."""
    chance = random.Random(seed)
    return [chance.choice([0.0, 1 / 3, 0.5, 1.0, 1.0]) for _ in range(n)]


# --------------------------------------------------------------------------------------------- Wilson


@pytest.mark.parametrize(("hits", "n", "low", "high"), [(27, 27, 0.875, 1.0), (26, 27, 0.817, 0.993)])
def test_wilson_at_the_figures_of_a_set_of_27(hits: int, n: int, low: float, high: float) -> None:
    found = wilson(hits, n)
    assert (round(found.low, 3), round(found.high, 3)) == (low, high)


@pytest.mark.parametrize("n", [1, 2, 5, 24, 27, 120, 10_000])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
def test_wilson_is_scipys(n: int, confidence: float) -> None:
    for hits in {0, 1, n // 3, n // 2, n - 1, n}:
        right = stats.binomtest(hits, n).proportion_ci(confidence, method="wilson")
        assert wilson(hits, n, confidence) == pytest.approx((right.low, right.high), abs=1e-12)


def test_wilson_touches_0_and_1_where_none_and_all_succeed_and_is_never_a_point() -> None:
    for n in range(1, 60):
        assert wilson(n, n).high == 1.0 > wilson(n, n).low > 0
        assert wilson(0, n).low == 0.0 < wilson(0, n).high < 1
        assert wilson(0, n) == pytest.approx((1 - wilson(n, n).high, 1 - wilson(n, n).low))


def test_wilson_covers_the_share_in_about_95_of_100_samples() -> None:
    """Exactly, over shares from 0.02 to 0.98 at n = 27: never far below, and 95% on average."""
    covered = []
    for share in [step / 100 for step in range(2, 99)]:
        inside = [hits for hits in range(28) if wilson(hits, 27).low <= share <= wilson(hits, 27).high]
        covered.append(sum(stats.binom.pmf(hits, 27, share) for hits in inside))
    assert min(covered) > 0.88
    assert 0.945 < sum(covered) / len(covered) < 0.965


# --------------------------------------------------------------------------------------------- bootstrap


@pytest.mark.parametrize(
    "column", [[0.0, 0.0, 0.5, 1.0, 1.0], [0.1, 0.2, 0.4, 0.8, 1.0, 1.0], [-0.5, 0.0, 0.0, 0.25, 1.0]]
)
def test_the_bootstrap_is_the_percentile_of_all_samples_there_are(column: list[float]) -> None:
    """All n^n samples; the rank of a bound among 1,000 of them is off by less than 0.015 (three deviations)."""
    n = len(column)
    means = sorted(sum(sample) / n for sample in itertools.product(column, repeat=n))

    def at(share: float) -> float:
        return means[min(len(means) - 1, int(share * len(means)))]

    (found,) = bootstrap([column])
    assert at(0.010) - 1e-9 <= found.low <= at(0.040) + 1e-9
    assert at(0.960) - 1e-9 <= found.high <= at(0.990) + 1e-9


@pytest.mark.parametrize("n", [24, 120])
def test_the_bootstrap_is_scipys_within_the_noise_of_its_draws(n: int) -> None:
    column = values(n)
    right = stats.bootstrap(
        (column,), lambda x, axis: x.mean(axis=axis), method="percentile", n_resamples=20_000, rng=5
    ).confidence_interval
    (found,) = bootstrap([column], resamples=20_000)
    assert found == pytest.approx((right.low, right.high), abs=0.03 * (right.high - right.low))


def test_the_bootstrap_covers_the_mean_in_about_95_of_100_samples() -> None:
    chance = random.Random(7)
    population = [0.0, 0.25, 0.5, 1.0]
    true = sum(population) / 4
    inside = 0
    for _ in range(400):
        (found,) = bootstrap([[chance.choice(population) for _ in range(40)]], resamples=399)
        inside += found.low <= true <= found.high
    assert 0.91 <= inside / 400 <= 0.975


def test_a_bound_is_the_25th_of_1000_means() -> None:
    """By hand from the one sequence of random numbers that Python promises."""
    column = [0.125 * place for place in range(9)]
    draw = random.Random(3).random
    means = sorted(sum(column[int(draw() * 9)] for _ in range(9)) / 9 for _ in range(1000))
    assert bootstrap([[-x for x in column]], seed=3) == [(-means[-25], -means[24])]
    assert bootstrap([column], seed=3) == [(means[24], means[-25])]


def test_the_same_values_give_the_same_bounds_on_every_version() -> None:
    """Not a digit moves with the version of Python or the platform: reports are byte-stable."""
    (found,) = bootstrap([[1.0, 0.5, 1 / 3, 0.0, 1.0, 1.0, 0.2, 0.75]])
    assert [round(bound, 6) for bound in found] == PINNED


PINNED = [0.354167, 0.84375]


@pytest.mark.parametrize("count", [2, 22])
def test_columns_share_the_draws_and_do_not_touch_one_another(count: int) -> None:
    columns = [values(30, seed) for seed in range(count)]
    assert bootstrap(columns) == [found for column in columns for found in bootstrap([column])]


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=12), st.randoms())
@settings(max_examples=60)
def test_order_changes_nothing_and_a_sign_mirrors(column: list[float], chance: random.Random) -> None:
    (found,) = bootstrap([column], resamples=99)
    shuffled = chance.sample(column, len(column))
    assert bootstrap([shuffled], resamples=99) == [found]
    assert bootstrap([[-x for x in shuffled]], resamples=99) == [(-found.high, -found.low)]
    assert min(column) <= found.low <= found.high <= max(column)


def test_values_of_any_size_are_bounded_alike() -> None:
    column = values(20)
    (plain,) = bootstrap([column])
    (points,) = bootstrap([[100 * value for value in column]])
    assert points == pytest.approx([100 * bound for bound in plain], rel=1e-9)
    assert bootstrap([[0.3] * 7, [0.0] * 7, [-2.5] * 7]) == [(0.3, 0.3), (0.0, 0.0), (-2.5, -2.5)]
    assert bootstrap([]) == []


def test_more_confidence_and_fewer_queries_widen() -> None:
    def width(n: int, confidence: float) -> float:
        (found,) = bootstrap([values(n)], confidence=confidence)
        return found.high - found.low

    assert width(30, 0.5) < width(30, 0.9) < width(30, 0.99)
    assert width(200, 0.95) < width(30, 0.95)


# --------------------------------------------------------------------------------------------- a table of measures


def test_measures_of_0_and_1_have_wilsons_interval_and_the_others_the_bootstraps() -> None:
    graded = values(27)
    hits = [1.0] * 26 + [0.0]
    table = {"hit@1": hits, "mrr": graded, "all@5": [0.0] * 27, "recall@5": hits, "map": graded[::-1]}
    found = intervals(table)
    assert list(found) == list(table)
    assert found["hit@1"] == found["recall@5"] == wilson(26, 27)
    assert found["all@5"] == wilson(0, 27)
    assert found["mrr"] == found["map"] == bootstrap([graded])[0]


@pytest.mark.parametrize("hits", [0, 9, 14])
def test_a_measure_of_nothing_or_the_most_there_can_be_is_bounded_as_its_share(hits: int) -> None:
    """precision@5 with one relevant document a query is 0 or 0.2: a fifth of hit@5, also where all are found."""
    shares = [1.0] * hits + [0.0] * (14 - hits)
    found = intervals({"hit@5": shares, "precision@5": [share / 5 for share in shares]}, {"precision@5": 0.2})
    assert found["hit@5"] == wilson(hits, 14)
    assert found["precision@5"] == pytest.approx([bound / 5 for bound in wilson(hits, 14)])
    assert intervals({}) == {}


def test_a_measure_that_is_the_same_for_every_query_may_be_higher_for_the_next() -> None:
    """By hand: z² = 3.8415 further queries, all 0 or all 1, take an mrr of 0.5 over 50 to 25 / 53.8415 = 0.4643 and to
    28.8415 / 53.8415 = 0.5357. Where it can be no more than 0.5, that is the upper bound."""
    assert intervals({"mrr": [0.5] * 50})["mrr"] == pytest.approx((0.46433, 0.53567), abs=1e-5)
    assert intervals({"mrr": [0.5] * 50}, {"mrr": 0.5})["mrr"] == pytest.approx((0.46433, 0.5), abs=1e-5)
    assert intervals({"mrr": [0.5] * 40 + [0.0] * 10})["mrr"].high > 0.4


@pytest.mark.parametrize("level", [0.0, 1 / 3, 0.5, 1.0])
@pytest.mark.parametrize("n", [5, 27, 200])
def test_an_interval_moves_little_where_a_value_moves_little(level: float, n: int) -> None:
    even = intervals({"ndcg@10": [level] * n})["ndcg@10"]
    other = level + (0.01 if level < 1 else -0.01)
    odd = intervals({"ndcg@10": [level] * (n - 1) + [other]})["ndcg@10"]
    assert odd == pytest.approx(even, abs=0.01)
    assert even == pytest.approx(unseen(level, n))
    assert even.high - even.low == pytest.approx(wilson(0, n).high)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
@settings(max_examples=60)
def test_no_interval_is_narrower_than_wilsons_where_nothing_varies(column: list[float]) -> None:
    low, high = intervals({"map": column})["map"]
    middle, n = math.fsum(column) / len(column), len(column)
    assert 0 <= low <= middle <= high <= 1
    assert high - low >= wilson(n, n).high - wilson(n, n).low - 1e-12


# --------------------------------------------------------------------------------------------- McNemar


@pytest.mark.parametrize(("gained", "lost"), [(0, 4), (1, 6), (2, 8), (3, 9)])
def test_losses_that_are_significant_one_sided(gained: int, lost: int) -> None:
    assert mcnemar_loss(lost, gained) < 0.05 <= mcnemar_loss(lost - 1, gained)


@pytest.mark.parametrize(
    ("lost", "gained", "p"),
    [(5, 0, 1 / 32), (4, 0, 1 / 16), (1, 0, 0.5), (0, 1, 0.5), (2, 1, 2 * (4 / 8 - 3 / 16)), (7, 7, 1.0)],
)
def test_the_two_sided_mid_p_by_hand(lost: int, gained: int, p: float) -> None:
    assert mcnemar(lost, gained) == pytest.approx(p, abs=1e-15)


def test_mid_p_is_that_of_scipys_binomial() -> None:
    for lost, gained in itertools.product([0, 1, 2, 3, 10, 45, 700], repeat=2):
        if lost == gained == 0:
            continue
        n, most = lost + gained, max(lost, gained)
        one = stats.binom.sf(lost - 1, n, 0.5) - stats.binom.pmf(lost, n, 0.5) / 2
        two = 2 * stats.binom.sf(most - 1, n, 0.5) - stats.binom.pmf(most, n, 0.5)
        assert mcnemar_loss(lost, gained) == pytest.approx(one, rel=1e-10)
        assert mcnemar(lost, gained) == pytest.approx(two, rel=1e-10)


def test_p_is_1_where_nothing_differs_never_0_and_the_same_the_other_way_round() -> None:
    assert mcnemar(0, 0) == mcnemar_loss(0, 0) == 1.0
    assert 0 < mcnemar(100_000, 0) < 1e-300
    for lost, gained in itertools.product(range(8), repeat=2):
        assert 0 < mcnemar(lost, gained) == mcnemar(gained, lost) <= 1
        if lost or gained:
            assert mcnemar_loss(lost, gained) + mcnemar_loss(gained, lost) == pytest.approx(1)


# --------------------------------------------------------------------------------------------- sign flips


@pytest.mark.parametrize("differing", [2, 5, 6, 9, ENUMERATED])
def test_few_differences_are_enumerated_as_scipy_does(differing: int) -> None:
    chance = random.Random(differing)
    differences = [chance.choice([-0.5, 0.1, 1 / 3, 0.7, 1.0]) for _ in range(differing)]
    right = stats.permutation_test(
        (differences,), lambda x, axis: x.sum(axis=axis), permutation_type="samples", n_resamples=math.inf
    ).pvalue
    assert sign_flip([*differences, *[0.0] * 20]) == pytest.approx(right, abs=1e-12)


@pytest.mark.parametrize(("lost", "p"), [(1, 1.0), (4, 0.125), (5, 0.0625), (6, 0.03125)])
def test_losses_of_one_sign_by_hand(lost: int, p: float) -> None:
    """2 / 2^d, whatever their sizes."""
    assert sign_flip([-0.1 * (place + 1) for place in range(lost)] + [0.0] * 9) == p


def test_sums_that_are_equal_on_paper_are_equal() -> None:
    """0.1 + 0.2 - 0.3 is 0 on paper and 5.6e-17 in double precision: every pattern is as extreme."""
    assert sign_flip([0.1, 0.2, -0.3]) == 1.0
    assert sign_flip([0.1, 0.2, 0.3]) == 0.25
    # Two thirds less a third twice is 0 on paper, whichever way the thirds are rounded.
    thirds = [-1, -1, 2, 3]
    patterns = [sum(map(int.__mul__, thirds, signs)) for signs in itertools.product([1, -1], repeat=4)]
    right = sum(abs(total) >= 3 for total in patterns) / 16
    assert sign_flip([value / 3 for value in thirds]) == right < 1


@pytest.mark.parametrize("differing", [16, 60])
def test_many_differences_are_sampled_within_the_noise_of_the_rounds(differing: int) -> None:
    """60 equal sizes have the binomial's p; 16 of any size are enumerated by scipy."""
    if differing == 60:
        differences = [-1.0] * 38 + [1.0] * 22
        right = 2 * stats.binom.sf(37, 60, 0.5)
    else:
        chance = random.Random(16)
        differences = [chance.uniform(-0.7, 1.0) for _ in range(16)]
        right = stats.permutation_test(
            (differences,),
            lambda x, axis: x.sum(axis=axis),
            permutation_type="samples",
            n_resamples=math.inf,
            batch=8192,
        ).pvalue
    assert 0.01 < right < 0.9
    assert sign_flip(differences) == pytest.approx(right, abs=4 * math.sqrt(right * (1 - right) / 10_000))


def test_the_seed_is_honoured() -> None:
    chance = random.Random(2)
    differences = [chance.uniform(-0.8, 1.0) for _ in range(40)]
    assert sign_flip(differences, seed=1) == sign_flip(differences, seed=1)
    assert len({sign_flip(differences, seed=seed) for seed in range(6)}) > 1
    column = values(40)
    assert bootstrap([column], seed=1) == bootstrap([column], seed=1)
    assert len({bootstrap([column], seed=seed)[0] for seed in range(6)}) > 1


def test_a_sampled_p_is_never_0_and_counts_the_observed_pattern() -> None:
    assert sign_flip([-1.0] * 40) == 1 / 10_001
    assert sign_flip([-1.0] * 40, rounds=99) == 1 / 100
    assert sign_flip([0.0] * 3) == 1.0


def test_the_sign_flip_test_keeps_its_level() -> None:
    """Of 400 pairs of arms that are alike, about 20 are called different at 5%; 33 is three deviations more."""
    chance = random.Random(11)
    found = [
        sign_flip([chance.gauss(0, 1) * (chance.random() < 0.5) for _ in range(40)], rounds=199)
        for _ in range(400)
    ]
    assert 7 <= sum(p <= 0.05 for p in found) <= 33


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.2, 1 / 3, 0.7]), min_size=1, max_size=30), st.randoms())
@settings(max_examples=40)
def test_p_is_the_same_in_every_order_and_the_other_way_round(
    differences: list[float], chance: random.Random
) -> None:
    p = sign_flip(differences, rounds=99)
    shuffled = chance.sample(differences, len(differences))
    assert sign_flip([-x for x in shuffled], rounds=99) == sign_flip(shuffled, rounds=99) == p
    assert 0 < p <= 1


# --------------------------------------------------------------------------------------------- Holm


@pytest.mark.parametrize(
    ("given", "adjusted"),
    [
        ([], []),
        ([0.03], [0.03]),
        # Sorted: 0.005 × 4, 0.01 × 3, 0.03 × 2, and 0.04 × 1, which may not be below the one before.
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.6, 0.5, 1.0], [1.0, 1.0, 1.0]),
        ([0.02, 0.02, 0.02], [0.06, 0.06, 0.06]),
    ],
)
def test_holm_by_hand(given: list[float], adjusted: list[float]) -> None:
    assert holm(given) == pytest.approx(adjusted)


# --------------------------------------------------------------------------------------------- two arms


def test_a_binary_change_by_hand() -> None:
    """Six of ten before; four lost, one gained: three after.

    With one more lost and one more gained, twelve differences sum to -3 and their squares to 7, so that the interval is
    -1/4 ± 1.959964 √((7/12 - 1/16) / 12).
    """
    before = [1.0] * 6 + [0.0] * 4
    after = [0.0] * 4 + [1.0, 1.0] + [1.0] + [0.0] * 3
    change = paired(before, after)
    assert (change.n, change.before, change.after) == (10, 0.6, 0.3)
    assert (change.lost, change.gained, change.unchanged) == (4, 1, 5)
    assert change.difference == pytest.approx(-0.3)
    assert (change.test, change.p) == ("mcnemar-midp", mcnemar(4, 1))
    assert change.interval == pytest.approx((-0.658326, 0.158326), abs=1e-6)


def test_a_graded_change_by_hand() -> None:
    change = paired([0.5, 1.0, 1 / 3, 0.0], [1.0, 1.0, 0.2, 0.0])
    assert (change.lost, change.gained, change.unchanged, change.test) == (1, 1, 2, "sign-flip")
    assert change.difference == pytest.approx((0.5 + 0.2 - 1 / 3) / 4)
    assert change.p == 1.0  # of (+0.5, -0.13): |0.37| or 0.63 either way


@pytest.mark.parametrize(("n", "lost", "p"), [(5, 5, 0.03125), (20, 5, 0.03125), (55, 6, 0.015625)])
def test_round2_n1_equal_values_have_one_test_whatever_the_measure_is_called(
    n: int, lost: int, p: float
) -> None:
    """N1: recall@10 of one document a query is hit@10; by mid-p, 2 (1/2^lost) / 2. One graded value more asks for flips
    of signs: 2/2^lost."""
    after = [0.0] * lost + [1.0] * (n - lost)
    change = paired([1.0] * n, after)
    assert change.test == "mcnemar-midp"
    assert change.p == pytest.approx(p)
    assert change.interval.high <= 0
    graded = paired([1.0] * n + [0.5], [*after, 0.5])
    assert graded.test == "sign-flip"
    assert graded.p == pytest.approx(2 * p)


def test_where_nothing_differs_others_still_may() -> None:
    """The last bits of another platform are no difference; the interval is ± 1.959964 √(2 · 0.5² / 4 / 4)."""
    change = paired([0.1 + 0.2, 0.5], [0.3, 0.5])
    assert (change.difference, change.p) == (0.0, 1.0)
    assert change.interval == pytest.approx((-0.346476, 0.346476), abs=1e-6)
    assert (change.lost, change.gained, change.unchanged) == (0, 0, 2)


@given(
    st.lists(st.tuples(*[st.sampled_from([0.0, 0.2, 1 / 3, 0.5, 1.0])] * 2), min_size=1, max_size=25),
    st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_exchanging_the_arms_mirrors_the_change(pairs: list[tuple[float, float]], binary: bool) -> None:
    before, after = ([round(pair[side]) if binary else pair[side] for pair in pairs] for side in (0, 1))
    there, back = paired(before, after), paired(after, before)
    assert (there.before, there.after, there.difference) == (back.after, back.before, -back.difference)
    assert (there.lost, there.gained, there.unchanged) == (back.gained, back.lost, back.unchanged)
    assert there.interval == (-back.interval.high, -back.interval.low)
    assert (there.p, there.test) == (back.p, back.test)
    assert paired(before[::-1], after[::-1]) == there


@pytest.mark.parametrize("graded", [False, True], ids=["lost", "graded"])
@pytest.mark.parametrize("n", [24, 55, 120])
@pytest.mark.parametrize("share", [0.02, 0.04, 0.08])
def test_round2_n1_an_interval_of_a_change_covers_it(n: int, share: float, graded: bool) -> None:
    """N1: at least 0.90 of the intervals hold the true change, where few queries are lost; each agrees with its p."""
    chance = random.Random(f"{n} {share} {graded}")
    losses = (0.25, 0.5, 1.0) if graded else (1.0,)
    true = -share * sum(losses) / len(losses)
    held, samples = 0, 400 if graded else 1000
    for _ in range(samples):
        after = [1.0 - chance.choice(losses) if chance.random() < share else 1.0 for _ in range(n)]
        change = paired([1.0] * n, after)
        low, high = change.interval
        assert low < high
        assert (low <= 0 <= high) if change.p > 0.05 else high <= 0
        held += low <= true <= high
    assert held / samples >= 0.90


# --------------------------------------------------------------------------------------------- what n resolves


@pytest.mark.parametrize(("n", "points"), [(5, 100.0), (24, 500 / 24), (27, 500 / 27), (120, 500 / 120)])
def test_five_lost_queries_are_the_fewest_that_cannot_be_chance(n: int, points: float) -> None:
    """A6: the smallest change that a set can resolve; and the loss that is found in 80% of cases, by scipy."""
    found = resolution(n)
    assert (found.n, found.queries) == (n, 5)
    assert found.points == pytest.approx(points)
    assert mcnemar(5, 0) <= 0.05 < mcnemar(4, 0)
    assert stats.binom.sf(4, n, found.detectable / 100) == pytest.approx(0.8, abs=1e-9)
    assert found.detectable >= found.points or n == 5


def test_too_few_queries_resolve_nothing() -> None:
    for n in range(1, 5):
        assert resolution(n).points > 100
        assert math.isnan(resolution(n).detectable)


@pytest.mark.parametrize(("n", "points"), [(27, 23.6), (55, 11.9), (120, 5.5)])
def test_the_loss_that_is_found_in_80_of_100_cases(n: int, points: float) -> None:
    chance = random.Random(n)
    assert resolution(n).detectable == pytest.approx(points, abs=0.05)
    rounds = 4000
    found = sum(
        mcnemar(sum(chance.random() < points / 100 for _ in range(n)), 0) <= 0.05 for _ in range(rounds)
    )
    assert found / rounds == pytest.approx(0.8, abs=0.025)


# --------------------------------------------------------------------------------------------- binomials


@pytest.mark.parametrize("p", [0.001, 0.05, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("n", [1, 5, 60])
def test_the_upper_tail_is_exact(n: int, p: float) -> None:
    """Against whole fractions."""
    share = Fraction(p)
    terms = [math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]
    for m in range(-1, n + 1):
        assert binomial_above(n, p, m) == pytest.approx(float(sum(terms[m + 1 :])), rel=1e-13, abs=1e-300)


def test_the_upper_tail_of_many_is_scipys() -> None:
    for n, p, m in [(10_000, 0.01, 140), (10_000, 0.5, 4000), (100_000, 0.3, 30_500), (1000, 0.9, 10)]:
        assert binomial_above(n, p, m) == pytest.approx(stats.binom.sf(m, n, p), rel=1e-9)
    assert (binomial_above(0, 0.5, 0), binomial_above(9, 0.0, 0), binomial_above(9, 1.0, 8)) == (0, 0, 1)


@pytest.mark.parametrize(
    ("n", "rate", "margin"),
    [(27, 0.005, 1), (27, 0.01, 2), (27, 0.02, 3), (27, 0.05, 5), (55, 0.01, 3), (120, 0.01, 4)],
)
def test_margins_of_flips_at_1_percent(n: int, rate: float, margin: int) -> None:
    assert next(m for m in range(n) if binomial_above(n, rate, m) <= 0.01) == margin


@pytest.mark.parametrize(("runs", "rate"), [(2, 0.105), (5, 0.027), (10, 0.012)])
def test_the_bound_of_a_rate_without_flips_at_27_queries(runs: int, rate: float) -> None:
    trials = 27 * (runs - 1)
    assert round(flip_rate_upper(0, trials), 3) == rate
    assert flip_rate_upper(0, trials) == pytest.approx(1 - 0.05 ** (1 / trials))


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_bound_of_a_rate_is_clopper_and_pearsons(confidence: float) -> None:
    for flips, trials in [(0, 1), (0, 500), (1, 27), (3, 108), (26, 27), (27, 27)]:
        right = 1.0 if flips == trials else stats.beta.ppf(confidence, flips + 1, trials - flips)
        assert flip_rate_upper(flips, trials, confidence) == pytest.approx(right, rel=1e-9)


# --------------------------------------------------------------------------------------------- what is refused


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: wilson(1, 0), "needs 0 <= successes <= n"),
        (lambda: wilson(3, 2), "3 successes in 2 trials"),
        (lambda: wilson(1, 2, 1.0), "confidence of 1.0 should lie between 0 and 1"),
        (lambda: bootstrap([[]]), "there are no values"),
        (lambda: bootstrap([[1.0, NAN]]), "nan among the values"),
        (lambda: bootstrap([[1.0], [1.0, 2.0]]), "columns of 1 and 2 values"),
        (lambda: bootstrap([[1.0]], resamples=0), "resamples 0 should be at least 1"),
        (lambda: bootstrap([[1.0]], confidence=NAN), "confidence nan within"),
        (lambda: intervals({"hit@1": []}), "there are no values"),
        (lambda: intervals({"hit@1": [NAN]}), "nan among the values"),
        (lambda: intervals({"mrr": [-0.5]}), "mrr is -0.5 for a query"),
        (lambda: intervals({"hit@1": [1.0], "mrr": [1.0, 0.0]}), "a value for the same queries"),
        (lambda: mcnemar(-1, 2), "a count is at least 0"),
        (lambda: mcnemar(-1, -1), "a count is at least 0"),
        (lambda: mcnemar_loss(2, -1), "a count is at least 0"),
        (lambda: sign_flip([]), "there are no values"),
        (lambda: sign_flip([INF]), "inf among the values"),
        (lambda: sign_flip([1.0], rounds=0), "rounds 0 should be at least 1"),
        (lambda: holm([0.5, NAN]), "nan is not a p value"),
        (lambda: holm([1.5]), "1.5 is not a p value"),
        (lambda: paired([], []), "there are no values"),
        (lambda: paired([1.0], [1.0, 0.0]), "1 values before and 2 after"),
        (lambda: paired([NAN], [1.0]), "nan among the values"),
        (lambda: resolution(0), "0 queries resolve nothing"),
        (lambda: binomial_above(-1, 0.5, 0), "no binomial distribution"),
        (lambda: binomial_above(5, NAN, 0), "no binomial distribution"),
        (lambda: flip_rate_upper(3, 2), "3 flips in 2 trials"),
        (lambda: flip_rate_upper(0, 0), "0 flips in 0 trials"),
    ],
)
def test_what_cannot_be_is_refused_in_words(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()


def loaded(module: str) -> Sequence[str]:
    code = f"import sys, {module}; print(*sys.modules)"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()


def test_nothing_heavy_is_loaded() -> None:
    assert not {"numpy", "scipy", "pydantic", "statistics"} & set(loaded("eval_core.scoring.statistics"))
