"""How far below the evidence a floor lies: margins out of flips, floors that chance reaches, slack, and raising."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

import numpy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from eval_core.scoring.statistics import binomial_above, flip_rate_upper
from eval_gate.floors.chance import reached
from eval_gate.policy import LATENCY_SAMPLES, Floor, derived_margin

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Space
    from numpy.typing import NDArray

Ranks = dict[str, "int | str | None"]


def held(space: Space) -> dict[str, Any]:
    """The floors of the arm as they stand in the file."""
    arm: dict[str, Any] = tomllib.loads(space.floors.read_text())["arms"]["notes"]
    return arm


def upper(flips: int, trials: int) -> float:
    """Clopper and Pearson's one-sided upper bound at 95%, from the beta distribution."""
    return float(stats.beta.ppf(0.95, flips + 1, trials - flips))


def smallest(n: int, rate: float) -> int:
    """The smallest m with P(Bin(n, rate) > m) of at most 1%, by going through them."""
    return next(m for m in range(n + 1) if stats.binom.sf(m, n, rate) <= 0.01)


# ------------------------------------------------------------------------------------------------ out of flips


@given(st.integers(1, 600), st.floats(0, 1))
@example(27, 0.0)
@example(27, 1.0)
@example(1, 0.01)
@example(1, 0.0100001)
def test_a_derived_margin_is_the_smallest_that_chance_exceeds_once_in_a_hundred(n: int, rate: float) -> None:
    """K2: smallest m with P(Bin(n, f) > m) <= 1%, against scipy; one less would fail more often than that."""
    margin = derived_margin(n, rate)
    assert stats.binom.sf(margin, n, rate) <= 0.01 * (1 + 1e-9)
    assert margin == 0 or stats.binom.sf(margin - 1, n, rate) > 0.01 * (1 - 1e-9)


@given(st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n - 1), st.just(n))))
def test_the_bound_of_the_flip_rate_is_clopper_and_pearsons(pair: tuple[int, int]) -> None:
    """K2: also as it is defined: at that rate, so few flips are seen in 5% of cases."""
    flips, trials = pair
    rate = flip_rate_upper(flips, trials)
    assert rate == pytest.approx(upper(flips, trials), rel=1e-9)
    assert 1 - binomial_above(trials, rate, flips) == pytest.approx(0.05, rel=1e-6)


@pytest.mark.parametrize(
    ("runs", "flips", "trials"),
    [
        # Nothing flipped between two runs of 27: 1 - 0.05^(1/27) = 0.105, which is a margin of 7.
        ([{"q27": 2}, {"q27": 2}], 0, 27),
        # q01 was lost and came back: two flips of hit@1 and of mrr, none of recall@10, in 2 · 27 trials.
        ([{"q27": 2}, {"q27": 2, "q01": 2}, {"q27": 2}], 2, 54),
        # Each run is held against the one before it: q01, then q01 and q02, then q02.
        ([{}, {"q01": 2}, {"q02": 2}, {}], 4, 81),
        # From rank 2 to rank 3 nothing changes but mrr, which then is the measure that changes most.
        ([{"q27": 2}, {"q27": 3}, {"q27": 4}, {"q27": 2}], 3, 81),
        # Only recall@10: q27 leaves the ten that are asked for, so that hit@1 stays a miss.
        ([{"q27": 10}, {"q27": None}], 1, 27),
        ([{"q27": 2}] * 10, 0, 243),
    ],
)
def test_a_margin_is_derived_from_the_flips_of_the_evidence(
    bare: Space, runs: list[Ranks], flips: int, trials: int
) -> None:
    """K2: floors are measured, with run-to-run noise under them: flips counted by hand, bounds from scipy."""
    for ranks in runs:
        assert bare.measure(ranks).code == 0
    assert bare.gate("floor", "--margin", "derived", "--write").code == 0
    arm = held(bare)
    rate = upper(flips, trials)
    margin = smallest(27, rate)
    assert (arm["margin_rule"], arm["margin"]) == ("derived", margin)
    assert arm["flip_rate"] == pytest.approx(rate, rel=1e-9)
    assert arm["provisional"] is (len(runs) < 10)
    worst = max(sum(rank != 1 for rank in ranks.values()) for ranks in runs)
    assert arm["metrics"]["hit@1"] == {"max_misses": worst + margin}
    for name in ("recall@10", "mrr"):
        values = min(run["values"][name] for run in arm["evidence"])
        assert arm["metrics"][name]["floor"] == pytest.approx(values - margin / 27, abs=1e-12)
    assert bare.gate("baseline", "--write").code == 0
    assert bare.check().code == 0


def test_the_margins_of_27_queries_worked_by_hand() -> None:
    """K2: P(Bin(27, 0.105) > 6) is 1.9% and P(> 7) 0.5%; ten runs without a flip leave 1.2%, and a margin of 2."""
    rate = 1 - 0.05 ** (1 / 27)
    assert rate == pytest.approx(0.1050, abs=5e-5)
    assert [round(100 * binomial_above(27, rate, m), 1) for m in (6, 7)] == [1.9, 0.5]
    assert derived_margin(27, rate) == 7
    assert derived_margin(27, 1 - 0.05 ** (1 / 243)) == 2
    assert derived_margin(27, 0.0) == 0


def test_a_derived_margin_stays_one_until_another_is_asked_for(bare: Space) -> None:
    """K2: more runs under it make it smaller; a number puts a fixed one in its place."""
    for _ in range(2):
        assert bare.measure().code == 0
    assert bare.gate("floor", "--margin", "derived", "--write").code == 0
    assert held(bare)["margin"] == 7
    for _ in range(8):
        assert bare.measure().code == 0
    assert bare.gate("floor", "--write").code == 0
    arm = held(bare)
    assert (arm["margin_rule"], arm["margin"], arm["provisional"]) == ("derived", 2, False)
    assert bare.gate("floor", "--margin", "1", "--write").code == 0
    arm = held(bare)
    assert (arm["margin_rule"], arm["margin"], "flip_rate" in arm) == ("fixed", 1, False)
    assert bare.gate("floor", "--write").code == 0
    assert held(bare)["margin"] == 1


def test_a_margin_that_leaves_nothing_says_where_it_comes_from(bare: Space) -> None:
    """S5: two runs bound the flips so loosely that a weak retriever gets no floor; the way out is named."""
    for _ in range(2):
        assert bare.measure(bare.losing(20)).code == 0
    done = bare.gate("floor", "--margin", "derived", "--metric", "hit@1")
    assert (done.code, "(derived from a flip rate of at most 0.105) leaves nothing" in done.err) == (1, True)
    assert "Measure more runs, or take a fixed margin: --margin 2." in done.err
    assert bare.gate("floor", "--margin", "2", "--metric", "hit@1").code == 0


@pytest.mark.parametrize("value", ["-1", "2.0", "two", "1001", "derive", "", "२"])
def test_a_margin_is_a_number_of_misses_or_derived(space: Space, value: str) -> None:
    done = space.gate("floor", "--margin", value)
    assert (done.code, "neither a number of misses from 0 to 1000 nor 'derived'" in done.err) == (2, True)


@pytest.mark.parametrize(("margin", "reason", "code"), [("2", False, 0), ("3", False, 1), ("3", True, 0)])
def test_a_margin_wider_than_the_usual_says_why(bare: Space, margin: str, reason: bool, code: int) -> None:
    """K2: the first floors of an arm too: a bar so low that nothing fails it must not come without a word."""
    for _ in range(2):
        assert bare.measure().code == 0
    why = ["--reason", "the index is random"] if reason else []
    done = bare.gate("floor", "--margin", margin, "--write", *why)
    assert done.code == code
    if code:
        assert "a margin of 3 misses is wider than 2" in done.err
        assert '--reason "…"' in done.err
    elif reason:
        assert held(bare)["reason"] == "the index is random"


# ------------------------------------------------------------------------------------------ what chance reaches


def few_documents(space: Space, documents: int, hits: int) -> None:
    """27 queries over so few documents; of ten asked for, the judged one is there for so many queries, first."""
    names = [f"d{number:02}" for number in range(1, documents + 1)]
    queries = {f"q{number:02}": f"where is thing {number} kept" for number in range(1, 28)}
    wanted = {name: names[number % documents] for number, name in enumerate(queries)}
    space.set(
        queries, dict.fromkeys(names, "a thing"), [(name, document, 1) for name, document in wanted.items()]
    )
    answers = {}
    for number, (name, text) in enumerate(queries.items()):
        others = [other for other in names if other != wanted[name]]
        answers[text] = others[:10] if number >= hits else [wanted[name], *others[:9]]
    (space.root / "answers.json").write_text(json.dumps(answers))
    for _ in range(2):
        assert space.core("measure", "-q").code == 0


@pytest.mark.parametrize(
    ("documents", "hits", "refused"),
    [
        (12, 27, True),  # a floor of 25, which ten of twelve documents reach in 15% of cases
        (13, 27, True),  # in 3.4%
        (16, 27, False),  # in 0.04%
        (16, 23, True),  # a floor of 21 is reached in 7.1%
        (40, 23, False),
    ],
)
def test_a_floor_of_recall_over_few_documents_is_one_that_chance_reaches(
    bare: Space, documents: int, hits: int, refused: bool
) -> None:
    """S5: a random order of 12 documents has the right one among the first ten in 10 of 12 cases."""
    few_documents(bare, documents, hits)
    reaches = stats.binom.sf(hits - 2 - 1, 27, 10 / documents)
    assert reaches > 0.03 if refused else reaches < 0.002
    done = bare.gate("floor", "--metric", "recall@10", "--write")
    assert (done.code == 1) is refused, done.err
    if refused:
        assert f"is what a random ranking of the {documents} documents reaches too" in done.err
        assert "Floor a measure at a smaller k with --metric" in done.err
        assert not bare.floors.exists()
    # The same runs carry a floor of what chance does not reach: one document in so many at rank 1.
    assert bare.gate("floor", "--metric", "hit@1", "--reason", "not recall").code == 0


@pytest.mark.parametrize(
    ("name", "gain"),
    [
        ("recall@10", lambda rank: rank <= 10),
        ("mrr", lambda rank: (rank <= 10) / rank),
        ("ndcg@10", lambda rank: (rank <= 10) / numpy.log2(rank + 1)),
    ],
)
def test_chance_is_what_random_rankings_score(
    space: Space, name: str, gain: Callable[[NDArray[Any]], NDArray[Any]]
) -> None:
    """S5: a floor at the mean that 6% of random rankings exceed is reached, one that 0.02% exceed is not.

    One document of 40 is right for each of 27 queries, so that its rank is any from 1 to 40: simulated apart.
    """
    from eval_core.reports.report import read_report

    report = read_report(space.report)
    ranks = numpy.random.default_rng(7).integers(1, 41, (50_000, 27))
    low, high = numpy.quantile(gain(ranks).mean(axis=1), [0.94, 0.9998])
    assert reached(report, {name: Floor(floor=float(low))}) == [name]
    assert reached(report, {name: Floor(floor=float(high))}) == []


# ------------------------------------------------------------------------------------------- slack and raising


@pytest.mark.parametrize(("misses", "slack"), [(7, False), (4, False), (3, False), (2, True), (0, True)])
def test_floors_that_a_report_beats_by_far_are_told(bare: Space, misses: int, slack: bool) -> None:
    """K2: floors of 5 misses and a margin of 2 allow 7; beaten by more than the margin and two, so by 5, they hold
    little: told, and no failure."""
    for _ in range(2):
        assert bare.measure(dict.fromkeys(list(bare.losing(5)), 2)).code == 0
    for verb in ("floor", "baseline"):
        assert bare.gate(verb, "--write").code == 0
    assert bare.measure(dict.fromkeys(list(bare.losing(misses)), 2)).code == 0
    done = bare.check()
    assert done.code == 0
    warnings = done.verdict["arms"][0]["warnings"]
    assert len(warnings) == slack
    if slack:
        assert warnings[0].startswith("beats its floors by more than the margin and two: hit@1 by ")
        assert f"hit@1 by {7 - misses}.0 queries" in warnings[0]
        assert "raise them" in bare.gate("check").out


def test_a_bar_is_raised_after_two_better_runs_of_the_present_system(space: Space) -> None:
    """K2: a better system is one measurement first, then a proposal; the reason of a bar that is passed goes."""
    before = held(space)
    space.edit(space.root / "eval.toml", '"jsonl"', '"jsonl"\noptions.timeout = 9')
    assert space.measure({}).code == 0
    done = space.gate("floor")
    assert (done.code, "one run is a dated measurement" in done.err) == (1, True)
    assert space.measure({}).code == 0
    done = space.gate("floor")
    assert done.code == 0
    assert '-"hit@1" = {max_misses = 3}' in done.out
    assert '+"hit@1" = {max_misses = 2}' in done.out
    assert held(space) == before
    assert space.gate("floor", "--write").code == 0
    assert space.check().codes == ["policy-mixed"]
    assert space.gate("baseline", "--write").code == 0
    assert space.check().code == 0
    # The system that was there before is held to the new bar.
    space.edit(space.root / "eval.toml", "options.timeout = 9", "options.timeout = 10")
    assert space.measure(space.losing(3)).code == 0
    assert "floor-breached" in space.check().codes


def test_a_better_run_of_the_same_system_raises_nothing_by_itself(space: Space) -> None:
    """K2: floors lie below the worst run that there is, not the best."""
    assert space.measure({}).code == 0
    assert space.measure({}).code == 0
    assert space.gate("floor", "--write").code == 0
    assert (held(space)["metrics"]["hit@1"], len(held(space)["evidence"])) == ({"max_misses": 3}, 4)


def test_a_bound_on_p95_takes_59_samples() -> None:
    """A4: with 58 the largest of them lies below the 95th percentile in more than 5% of cases."""
    assert 0.95**59 < 0.05 <= 0.95**58
    assert LATENCY_SAMPLES == 59
