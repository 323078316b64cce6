"""The rules that grade an arm: one bar a measure, queries that must pass, latency; and what is only said."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from scipy import stats

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conftest import Space

Ranks = dict[str, "int | str | None"]


def lost(*numbers: int, rank: int | None = 2) -> Ranks:
    """These queries at a rank, the others at rank 1: at rank 2 a miss of hit@1, and none of recall@10."""
    return {f"q{number:02}": rank for number in numbers}


def barred(space: Space, *runs: Ranks, **choices: Any) -> None:
    """Measure these runs, and write the policy that they give, the last as the baseline."""
    for ranks in runs:
        assert space.measure(ranks).code == 0
    space.policy({"notes": space.reports()[-len(runs) :] if runs else space.reports()[-2:]}, **choices)


# ------------------------------------------------------------------------------------------------------ one bar


@pytest.mark.parametrize(("missed", "code"), [(3, None), (4, "baseline-drop")])
def test_a_slide_from_the_best_run_is_a_drop(bare: Space, missed: int, code: str | None) -> None:
    """A4: with evidence of 25 and 27 hits the floor allows four misses, and the baseline's rule three of its 27.

    The runs differ by two queries, so that the default drop is theirs and one query more.
    """
    barred(bare, lost(26, 27), {})
    assert bare.check().code == 0
    assert bare.measure(lost(*range(1, 1 + missed))).code == 0
    done = bare.check()
    (hits,) = [grade for grade in done.verdict["arms"][0]["graded"] if grade["measure"] == "hit@1"]
    assert (hits["misses_allowed"], hits["rule"], hits["floor"], hits["queries"]) == (3, "drop", 4.0, 3)
    reasons = done.verdict["arms"][0]["reasons"]
    assert [r["code"] for r in reasons if r["key"] == "hit@1"] == ([code] if code else [])


@pytest.mark.parametrize(("gained", "passed"), [(0, False), (1, False), (2, True)])
def test_what_is_gained_is_taken_off(bare: Space, gained: int, passed: bool) -> None:
    """A4: four are lost, and two may be; of the two that the baseline missed none, one or both are won."""
    barred(bare, lost(26, 27), lost(26, 27))
    assert bare.measure(lost(1, 2, 3, 4, *[26, 27][gained:])).code == 0
    graded = bare.check().verdict["arms"][0]["graded"]
    assert [grade["passed"] for grade in graded if grade["measure"] == "hit@1"] == [passed]


@pytest.mark.parametrize(
    ("budget", "missed", "code"),
    [
        ({"max_drop": {"hit@1": 4}}, 1, None),  # ⌊27 · 0.04⌋ = 1 query
        ({"max_drop": {"hit@1": 4}}, 2, "baseline-drop"),
        ({"max_drop": {"hit@1": 0}}, 0, None),
        ({"max_drop": {"hit@1": 0}}, 1, "baseline-drop"),
        # 12 queries' points, and the floor of two misses holds all the same.
        ({"max_drop": {"hit@1": 45}, "reasons": {"max_drop": "an experiment"}}, 2, None),
        ({"max_drop": {"hit@1": 45}, "reasons": {"max_drop": "an experiment"}}, 3, "floor-breached"),
        ({"max_drop_everywhere": 4}, 1, None),
        ({"max_drop_everywhere": 1}, 1, "baseline-drop"),
    ],
)
def test_the_tighter_of_floor_and_drop_is_the_bar(
    bare: Space, budget: dict[str, Any], missed: int, code: str | None
) -> None:
    """A4, M2: in the queries that it means, at the edge and one beyond; recall@10 is not touched at rank 2."""
    barred(bare, {}, {}, budgets={"notes": budget})
    assert bare.measure(lost(*range(1, 1 + missed))).code == 0
    done = bare.check()
    hits = [reason["code"] for reason in done.verdict["arms"][0]["reasons"] if reason["key"] == "hit@1"]
    assert hits == ([code] if code else [])


def test_where_floor_and_drop_are_one_bar_the_floor_is_named(bare: Space) -> None:
    """A4: a drop of two queries' points is the floor of two misses, and one rule is said for both."""
    barred(bare, {}, {}, budgets={"notes": {"max_drop": {"mrr": 200 / 27}}})
    assert bare.measure({"q01": None, "q02": None, "q03": None}).code == 0
    reasons = {reason["key"]: reason["code"] for reason in bare.check().verdict["arms"][0]["reasons"]}
    assert reasons["mrr"] == "floor-breached"


def test_a_measure_is_not_rounded_before_it_is_compared(bare: Space) -> None:
    """K3: mrr of (27 - 3/4 - 6/7 - 9/10) / 27 = 0.90714, where the floor is 24.5 / 27 = 0.90741: both are 0.907."""
    barred(bare, {"q27": 2}, {"q27": 2})
    assert bare.measure({"q01": 4, "q02": 7, "q03": 10}).code == 0
    done = bare.check()
    reason = next(r for r in done.verdict["arms"][0]["reasons"] if r["key"] == "mrr")
    assert (reason["code"], reason["value"], round(reason["bar"], 4)) == ("floor-breached", 0.9071, 0.9074)


def test_round2_b8_a_set_without_recall_at_10_has_a_rule_for_its_recall(bare: Space) -> None:
    """B8: with limit 5, one query that is found no more is 3.7 points of recall@5, and A4 allows two."""
    config = bare.root / "eval.toml"
    bare.edit(config, '"jsonl"', '"jsonl"\nlimit = 5\ncutoffs = [1, 5]')
    barred(bare, {}, {})
    assert bare.check().code == 0
    assert bare.measure(lost(1, rank=None)).code == 0
    done = bare.check()
    graded = {grade["measure"]: grade["rule"] for grade in done.verdict["arms"][0]["graded"]}
    assert graded == {"recall@5": "drop", "hit@1": "floor", "mrr": "floor"}
    (reason,) = done.verdict["arms"][0]["reasons"]
    assert (done.code, reason["code"], reason["key"]) == (1, "baseline-drop", "recall@5")


@pytest.mark.parametrize(("headline", "held"), [("rprec", "rprec"), ("mrr@10", "mrr@10"), ("ndcg", "ndcg")])
def test_round2_b9_a_headline_of_no_cutoff_is_measured_and_held(
    bare: Space, headline: str, held: str
) -> None:
    """B9: it was left out of reports, and so of floors, without a word."""
    bare.edit(bare.root / "set" / "dataset.toml", 'headline = "hit@1"', f'headline = "{headline}"')
    barred(bare, {}, {})
    assert bare.measure(lost(*range(1, 8))).code == 0
    done = bare.check()
    assert held in [grade["measure"] for grade in done.verdict["arms"][0]["graded"]]
    assert held in [reason["key"] for reason in done.verdict["arms"][0]["reasons"]]


@pytest.mark.parametrize(
    ("ranks", "names"),
    [
        ({}, None),
        ({"q02": 3}, None),  # not marked
        (
            {"q01": 2},
            "query q01 must pass and lost",
        ),  # rank 1 to 2: found still, and less than the baseline had
        ({"q01": None, "q03": None}, "2 queries, q01, q03, must pass and lost"),
    ],
)
def test_a_query_that_must_pass_loses_nothing(bare: Space, ranks: Ranks, names: str | None) -> None:
    """M2: though the margin would swallow it, and by the baseline's own value, not by 0 alone."""
    bare.edit(bare.root / "set" / "dataset.toml", 'headline = "hit@1"', 'headline = "mrr"')
    rows = bare.queries()
    for number in (0, 2):
        rows[number]["metadata"] = {"must_pass": True}
    bare.put_queries(rows)
    barred(bare, {}, {})
    assert bare.measure(ranks).code == 0
    reasons = bare.check().verdict["arms"][0]["reasons"]
    said = [reason["what"] for reason in reasons if reason["code"] == "must-pass-lost"]
    assert said == ([names] if names else [])


# ------------------------------------------------------------------------------------------------------ latency


def timed(space: Space, p95: float, samples: int = 81) -> None:
    space.restate(lambda report: report["latency"].update(p95=p95, max=p95 + 1, samples=samples))


@pytest.mark.parametrize(
    ("budget", "p95", "samples", "code"),
    [
        (None, 300.0, 81, None),
        (None, 360.0, 81, "latency-over-budget"),
        (None, 1.0, 59, None),
        (None, 1.0, 58, "latency-not-measurable"),
        ({"p95_ms": 20}, 20.0, 81, None),
        ({"p95_ms": 20}, 20.1, 81, "latency-over-budget"),
        ({"p95_ms": 400, "reasons": {"p95_ms": "a cross-encoder"}}, 360.0, 81, None),
    ],
)
def test_round2_b12_p95_has_a_budget_whether_one_is_written_or_not(
    space: Space, budget: dict[str, Any] | None, p95: float, samples: int, code: str | None
) -> None:
    """B12, A4: 300 ms by default; and 59 samples, of which the slowest bounds the 95th percentile."""
    space.policy(budgets=None if budget is None else {"notes": budget})
    timed(space, p95, samples)
    done = space.check()
    assert (done.code, done.codes) == (1 if code else 0, [code] if code else [])


@pytest.mark.parametrize("line", ['lane = "owner"', 'options.url = "https://search.example"'])
def test_a_service_and_the_owners_lane_have_no_budget_unless_it_is_written(space: Space, line: str) -> None:
    """M8: what answers over a network is compared by hand; a budget that someone writes holds."""
    less: dict[str, Any] = {"require": [], "why": {"require": "what is shown is a budget"}}
    space.policy(**less)
    backend = "far" if "url" in line else "jsonl"
    space.edit(space.root / "eval.toml", '"jsonl"', f'"{backend}"\n{line}')

    def far(report: Any) -> None:
        report["system"]["parts"]["backend"] = "far"
        report["system"]["parts"]["options"]["url"] = "https://search.example"

    if "url" in line:
        space.forge(space.report, far)
    timed(space, 360.0)
    assert "latency-over-budget" not in space.check().codes
    space.policy(**less, budgets={"notes": {"p95_ms": 300}})
    assert "latency-over-budget" in space.check().codes


def test_more_repetitions_do_not_dilute_the_latency(space: Space) -> None:
    """A3: later passes are answered from warm caches, so that the budget is for as many as the baseline had."""
    space.edit(space.root / "eval.toml", '"jsonl"', '"jsonl"\nrepetitions = 9')
    assert space.measure().code == 0
    assert space.check().codes == ["repetitions-differ"]


# -------------------------------------------------------------------------------------------------- what is said


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"max_drop": {"recall@10": 2}}, []),
        ({"max_drop": {"mrr": 50}}, []),
        (
            {"max_drop": {"recall@10": 2.5}, "reasons": {"max_drop": "a trial"}},
            ["recall@10 may fall by 2.5 points, not 2: a trial"],
        ),
    ],
)
def test_a_rule_that_was_loosened_is_said_each_time(
    space: Space, budget: dict[str, Any], said: list[str]
) -> None:
    """A4: what lets more pass than is usual does not fade from sight, nor does its reason."""
    space.policy(budgets={"notes": budget})
    done = space.check()
    assert (done.code, done.verdict["arms"][0]["warnings"]) == (0, said)


@pytest.mark.parametrize(("missed", "slack"), [(7, False), (6, True)])
def test_floors_that_hold_nothing_any_more_are_said(bare: Space, missed: int, slack: bool) -> None:
    """K2: eleven misses are allowed; a floor is slack where it is beaten by more than the margin of two and two."""
    worst = lost(*range(1, 10))
    barred(bare, worst, worst)
    assert bare.measure(lost(*range(1, 1 + missed))).code == 0
    warnings = [warning for warning in bare.check().verdict["arms"][0]["warnings"] if "hit@1 by" in warning]
    assert [f"hit@1 by {11 - missed}.0 queries" in warning for warning in warnings] == [True] * slack


def test_a_drop_that_chance_reaches_is_said_and_not_refused(bare: Space) -> None:
    """A4: recall@10 over ten documents is 1.0 by any ranking; left out of the floors, it keeps its drop."""
    documents = {f"d{number:02}": f"thing {number}" for number in range(1, 11)}
    queries = {f"q{number:02}": f"where is thing {number} kept" for number in range(1, 11)}
    bare.set(queries, documents, [(name, name.replace("q", "d"), 1) for name in queries])

    def answers(**others: list[str]) -> None:
        import json

        found = {
            text: others.get(name, [name.replace("q", "d"), *documents]) for name, text in queries.items()
        }
        rows = {text: list(dict.fromkeys(ids)) for text, ids in found.items()}
        (bare.root / "answers.json").write_text(json.dumps(rows))

    answers()
    for _ in range(2):
        assert bare.core("measure", "-q").code == 0
    bare.policy(left_out=["recall@10"], reasons={"recall@10": "ten documents"})
    done = bare.check()
    assert (done.code, done.codes) == (0, [])
    assert any(
        "a random ranking of the documents reaches the bar of recall@10 (0.9800) on average" in warning
        for warning in done.verdict["arms"][0]["warnings"]
    )
    answers(q01=["d02"])
    assert bare.core("measure", "-q").code == 0
    assert "baseline-drop" in bare.check().codes


# ---------------------------------------------------------------------------------------------------- significance


@pytest.mark.parametrize(
    ("ranks", "counts"),
    [
        (lost(1, 2, 3, 27), (3, 0)),
        (lost(1, 2, 3, 4, 27), (4, 0)),
        (lost(1, 2, 3, 4, 5, 27), (5, 0)),
        (lost(1, 2, 3, 4, 5), (5, 1)),
        (lost(*range(1, 13)), (12, 1)),
    ],
)
def test_significance_is_shown_and_decides_nothing(
    space: Space, ranks: Ranks, counts: tuple[int, int]
) -> None:
    """A4: McNemar's mid-p by scipy's binomial; three losses fail with p = 0.125 as twelve do with 0.002."""
    why = dict.fromkeys(("ndcg@10", "mrr"), "hit@1 is what is shown")
    space.policy(measures=["hit@1", "recall@10"], reasons=why)
    assert space.check().verdict["arms"][0]["significance"] is None
    assert space.measure(ranks).code == 0
    done = space.check()
    assert (done.code, done.codes) == (1, ["floor-breached"])
    told = done.verdict["arms"][0]["significance"]
    down, up = counts
    n = down + up
    one_sided = stats.binom.sf(down - 1, n, 0.5) - 0.5 * stats.binom.pmf(down, n, 0.5)
    assert (told["metric"], told["test"]) == ("hit@1", "mcnemar-midp")
    assert told["p"] == pytest.approx(2 * one_sided, rel=1e-12)
    assert told["difference"] == pytest.approx((up - down) / 27, abs=1e-12)
    assert told["low"] <= told["difference"] <= told["high"]
    # Five lost of however many is the least that the test calls significant: 2 · (1/32 - 1/64) = 0.031.
    assert told["resolvable"] is (down - up >= 5)


def sign_flips(differences: Iterable[float]) -> float:
    """Two-sided p of a mean difference, by going through all signs of what is not 0."""
    values = [value for value in differences if value]
    observed = abs(sum(values))
    patterns = [
        abs(sum(sign * value for sign, value in zip(signs, values, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(values))
    ]
    return sum(total >= observed - 1e-12 for total in patterns) / len(patterns)


def test_significance_of_a_mean_is_that_of_flipped_signs(space: Space) -> None:
    """A4: for mrr, by enumeration: seven fall by different amounts and one rises by a half."""
    why = dict.fromkeys(("ndcg@10", "hit@1", "recall@10"), "mrr is what is shown")
    space.policy(
        measures=["mrr"],
        reasons=why,
        budgets={"notes": {"max_drop": {"hit@1": 100}, "reasons": {"max_drop": "mrr is what is shown"}}},
    )
    ranks: Ranks = {"q01": 2, "q02": 3, "q03": 4, "q04": 5, "q05": 8, "q06": 10, "q07": 10}
    assert space.measure(ranks).code == 0
    told = space.check().verdict["arms"][0]["significance"]
    differences = [1 / int(str(rank)) - 1 for rank in ranks.values()] + [0.5]
    assert (told["metric"], told["test"]) == ("mrr", "sign-flip")
    assert told["p"] == pytest.approx(sign_flips(differences), abs=1e-12)
    assert told["difference"] == pytest.approx(sum(differences) / 27, abs=1e-12)
