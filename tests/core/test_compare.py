"""Comparisons: worked by hand, against scipy and by enumeration; mirrored, order-free, refused where tasks differ."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Mapping
from typing import Any

import pytest
from compare_support import (
    TASK,
    Ranks,
    asked,
    bounds,
    effect,
    entry,
    first,
    flipped,
    holm,
    listed,
    midp,
    only,
)
from core_support import Space, Told
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from eval_core.backend import BackendError
from eval_core.compare import compare, render
from eval_core.compare.models import Asked, Comparison, Entry, of_report
from eval_core.compare.tasks import TaskDiffers
from eval_core.errors import Misuse, Refused
from eval_core.reports.report import Report
from eval_core.scoring import metrics
from eval_core.scoring.metrics import parse

# Ten queries with one relevant document each. Rank 1 → 2 for four, 3 → 1 for one, deep → gone for one, the rest stay.
BEFORE: Mapping[str, Ranks] = {
    "q0": 1,
    "q1": 1,
    "q2": 1,
    "q3": 1,
    "q4": 3,
    "q5": 9,
    "q6": 1,
    "q7": 2,
    "q8": None,
    "q9": 4,
}
AFTER: Mapping[str, Ranks] = {**BEFORE, "q0": 2, "q1": 2, "q2": 2, "q3": 2, "q4": 1, "q5": None}


def held(
    before: Mapping[str, Ranks], after: Mapping[str, Ranks], *measures: str, **fields: Any
) -> Comparison:
    chosen = [parse(name) for name in measures]
    return compare([entry(before, "a.json", **fields), entry(after, "b.json", **fields)], chosen)


def refusal(*entries: Entry, measures: tuple[str, ...] = ()) -> Refused:
    with pytest.raises(Refused) as caught:
        compare(entries, [parse(name) for name in measures])
    assert caught.value.exit_code == 1
    return caught.value


# --------------------------------------------------------------------------------------------------- figures


def test_a_binary_measure_is_worked_by_hand() -> None:
    """hit@1: 5 of 10 before, 2 after: four lost, one gained. Mid-p: 2 (C(5,5)/32 + C(5,4)/64) = 7/32."""
    found = effect(only(held(BEFORE, AFTER)), "hit@1")
    assert (found.n, found.before, found.after) == (10, 0.5, 0.2)
    assert found.difference == pytest.approx(-0.3, abs=1e-15)
    assert (found.lost, found.gained, found.unchanged, found.test) == (4, 1, 5, "mcnemar-midp")
    assert found.p == pytest.approx(7 / 32, abs=1e-12)
    assert found.p == pytest.approx(midp(4, 1), abs=1e-12)
    assert bounds([-1.0] * 4 + [1.0] + [0.0] * 5, found.low, found.high)


def test_a_graded_measure_is_worked_by_hand() -> None:
    """mrr: four fall by 1/2, one rises by 2/3, one falls by 1/9; the mean falls by (2 - 2/3 + 1/9) / 10 = 13/90.

    With one lost and one gained added, twelve differences sum to -13/9 and their squares to 3 + 37/81, so that the
    interval is -13/108 ± 1.959964 √((280/81 / 12 - (13/108)²) / 12).
    """
    found = effect(only(held(BEFORE, AFTER)), "mrr")
    differences = [-0.5] * 4 + [2 / 3, -1 / 9] + [0.0] * 4
    assert found.difference == pytest.approx(-13 / 90, abs=1e-15)
    assert found.before == pytest.approx((5 + 1 / 3 + 1 / 9 + 1 / 2 + 1 / 4) / 10, abs=1e-15)
    assert found.after == pytest.approx(found.before - 13 / 90, abs=1e-15)
    assert (found.lost, found.gained, found.unchanged, found.test) == (5, 1, 4, "sign-flip")
    assert found.p == pytest.approx(flipped(differences), abs=1e-12)
    assert (found.low, found.high) == pytest.approx((-0.416306, 0.175565), abs=1e-6)


def test_several_relevant_documents_are_counted_each() -> None:
    """recall@5 of 4 relevant: 3 found before, 1 after; judged documents of grade 0 do not count."""
    found = held(
        {"q": {"0junk": 1, "a": 2, "b": 3, "c": 5, "d": 9}},
        {"q": {"0junk": 2, "a": 1, "b": 6, "c": None, "d": 9}},
        "recall@5",
        "recall@10",
    )
    assert [(e.before, e.after) for e in only(found).effects] == [(0.75, 0.25), (1.0, 0.75)]


def test_p_values_are_adjusted_over_arms_and_measures() -> None:
    """S3: Holm's over all that one call asks, or the best of many looks would pass for a finding."""
    measures = ("hit@1", "mrr", "recall@5")
    third = {**AFTER, "q9": 1, "q7": 1, "q8": 1}
    found = compare(
        [entry(BEFORE, "a.json"), entry(AFTER, "b.json"), entry(third, "c.json")],
        [parse(m) for m in measures],
    )
    assert [versus.side.label for versus in found.arms] == ["b", "c"]
    effects = [effect for versus in found.arms for effect in versus.effects]
    assert [e.measure for e in effects] == [*measures, *measures]
    assert [e.p_holm for e in effects] == pytest.approx(holm([e.p for e in effects]), abs=1e-12)
    # Each further arm is held against the first, and alone gives the same but for the adjustment.
    alone = compare([entry(BEFORE, "a.json"), entry(third, "c.json")], [parse(m) for m in measures])
    assert [(e.p, e.low, e.high) for e in only(alone).effects] == [(e.p, e.low, e.high) for e in effects[3:]]
    assert only(alone).queries == found.arms[1].queries


@pytest.mark.parametrize(
    ("n", "lost", "gained", "finding"),
    [
        (30, 0, 0, "same"),
        (30, 12, 0, "lower"),
        (30, 0, 12, "higher"),
        (30, 4, 0, "unresolvable"),  # 4 of 30, and 5 are the fewest that could be told from chance
        (30, 3, 3, "unresolvable"),
        (30, 9, 4, "unclear"),
        (4, 4, 0, "unresolvable"),
    ],
)
def test_a_difference_is_called_what_it_is(n: int, lost: int, gained: int, finding: str) -> None:
    """S3: a difference that the set cannot resolve is called so, and never a finding."""
    names = [f"q{number:02}" for number in range(n)]
    before = {name: 2 if place < gained else 1 for place, name in enumerate(names)}
    after = {
        name: 1 if place < gained else 2 if place < gained + lost else 1 for place, name in enumerate(names)
    }
    versus = only(held(before, after, "hit@1"))
    assert versus.finding == versus.effects[0].finding == finding
    assert (versus.effects[0].lost, versus.effects[0].gained) == (lost, gained)
    assert (versus.effects[0].p <= 0.05) is (finding in ("lower", "higher"))


def test_a_small_fall_of_many_queries_is_not_called_unresolvable() -> None:
    """Six of sixty fall from rank 2 to 3: 1.7 points of mrr, below the 8.3 of five lost queries, and p = 2/64. Beside a
    second measure that is 2/32 after Holm: no finding, and nothing that the set could not show either."""
    names = [f"q{number:02}" for number in range(60)]
    before = dict.fromkeys(names, 2)
    after = {**before, **dict.fromkeys(names[:6], 3)}
    alone = effect(only(held(before, after, "mrr")), "mrr")
    beside = effect(only(held(before, after, "mrr", "hit@1")), "mrr")
    assert alone.difference == pytest.approx(-1 / 60, abs=1e-15)
    assert (alone.p, alone.p_holm, alone.finding) == (2 / 64, 2 / 64, "lower")
    assert (beside.p, beside.p_holm, beside.finding) == (2 / 64, 2 / 32, "unclear")


def test_what_the_set_can_resolve_is_told() -> None:
    """5 wholly lost queries are the fewest that count: 2 (1/2)^5 (1 - 1/2) = 1/32. Of 4 queries nothing can be told."""
    able = only(held(BEFORE, AFTER)).resolves
    assert (able.n, able.queries, able.points, able.possible) == (10, 5, 50.0, True)
    assert midp(5, 0) <= 0.05 < midp(4, 0)
    # 80% power: P(Bin(10, d) >= 5) = 0.8.
    assert stats.binom.sf(4, 10, (able.detectable or math.nan) / 100) == pytest.approx(0.8, abs=1e-9)
    few = only(held({"q1": 1}, {"q1": 2})).resolves
    assert (few.possible, few.detectable) == (False, None)


def test_identical_runs_differ_by_nothing() -> None:
    """Difference 0 and p = 1, not NaN."""
    versus = only(held(BEFORE, BEFORE))
    assert versus.identical and versus.finding == "same" and not versus.queries
    for e in versus.effects:
        assert (e.difference, e.p, e.p_holm, e.lost, e.gained) == (0, 1, 1, 0, 0)
        assert e.low == -e.high < 0  # other queries may differ


def test_ranks_may_move_and_the_measure_stay() -> None:
    """The headline is the same; that documents moved is told, and the runs are not called identical."""
    versus = only(held({"q1": 2, "q2": 9}, {"q1": 3, "q2": 9}))
    assert (versus.finding, versus.identical, listed(versus)) == ("same", False, [("q1", "moved")])


# ----------------------------------------------------------------------------------------------------- joining


def test_only_queries_scored_in_both_are_compared() -> None:
    """S3: errored, unscored and unscorable rows are counted apart and nothing is imputed."""
    before = {**BEFORE, "q6": "errored", "q7": "unscorable", "only-before": 1}
    after = {**AFTER, "q7": "unscorable", "q8": "unscored"}
    versus = only(held(before, after))
    assert versus.n == 7
    assert {(u.before, u.after): u.queries for u in versus.unjoined} == {
        ("errored", "scored"): ("q6",),
        ("unscorable", "unscorable"): ("q7",),
        ("scored", "unscored"): ("q8",),
        ("scored", "absent"): ("only-before",),
    }
    alone = {name: rank for name, rank in BEFORE.items() if name not in ("q6", "q7", "q8")}
    clean = only(held(alone, {name: AFTER[name] for name in alone}))
    assert [(e.before, e.after, e.p) for e in versus.effects] == [
        (e.before, e.after, e.p) for e in clean.effects
    ]


@pytest.mark.parametrize("outcome", ["errored", "unscored"])
def test_failed_rows_never_read_as_a_finding(outcome: str) -> None:
    """S3: whatever the figures are, a run with errored rows is no finding; a lacking capability is."""
    names = [f"q{number:02}" for number in range(20)]
    before, after = dict.fromkeys(names, 1), dict.fromkeys(names, 2)
    assert only(held(before, after)).finding == "lower"
    versus = only(held(before, {**after, "q03": outcome}))
    assert {versus.finding, *(e.finding for e in versus.effects)} == {"none"}
    assert only(held(before, {**after, "q03": "unscorable"})).finding == "lower"


def test_nothing_in_common_is_refused() -> None:
    error = refusal(entry({"q1": 1, "q2": "errored"}, "a.json"), entry({"q1": "errored", "q2": 1}, "b.json"))
    assert error.code == "no-common-query"
    assert "no query was scored in both a.json and b.json" in str(error)
    assert "1 errored before and scored after, 1 scored before and errored after" in str(error)


def test_one_side_alone_is_no_comparison() -> None:
    with pytest.raises(Misuse, match="two at least"):
        compare([entry(BEFORE)])


@pytest.mark.parametrize(
    ("measure", "rank", "above", "said"),
    [
        ("hit@1", 2, 1, "1 of 1 above unjudged"),
        ("hit@1", None, 1, "1 of 1 above unjudged"),
        ("recall@5", None, 5, "5 of 5 above unjudged"),
        ("mrr", None, 10, "10 of 10 above unjudged"),
        ("ndcg@5", 3, 2, "2 of 2 above unjudged"),
    ],
)
def test_a_lost_query_says_how_many_answers_above_nobody_judged(
    measure: str, rank: int | None, above: int, said: str
) -> None:
    found = held({"q": 1, "r": None}, {"q": rank, "r": 1}, measure)
    lost, gained = only(found).queries
    assert (lost.above, lost.unjudged, gained.unjudged) == (above, above, 0)
    assert said in render.terminal(found) and said in render.markdown(found)


# -------------------------------------------------------------------------------------------------------- task

PARTS: Mapping[str, Any] = {
    "split": "dev",
    "kind": "other",
    "corpus": "0" * 64,
    "recipe": "1" * 64,
    "timeline": "2" * 64,
    "links": "3" * 64,
    "concepts": "4" * 64,
    "limit": 20,
    "filter": ["kind"],
    "scale": 1000,
    "metrics": "2",
    "queries_of_tomorrow": 1,
}


# The recipe differs where the corpus does, too: below.
@pytest.mark.parametrize("part", [part for part in PARTS if part != "recipe"])
def test_another_task_is_refused_by_the_name_of_the_part(part: str) -> None:
    """M7: a comparison refuses sets or parameters that differ, and names each with both values."""
    error = refusal(entry(BEFORE, "a.json"), entry(BEFORE, "b.json", task={part: PARTS[part]}))
    assert isinstance(error, TaskDiffers)
    assert error.code == "task-differs"
    (changed,) = error.changed
    assert (changed.part, changed.before, changed.after) == (part, TASK.get(part), PARTS[part])
    assert part in str(error) and "a and b answered different tasks" in str(error)


def test_every_part_that_differs_is_named() -> None:
    """M7."""
    error = refusal(entry(BEFORE, "a.json"), entry(BEFORE, "b.json", task=PARTS))
    assert isinstance(error, TaskDiffers)
    assert {changed.part for changed in error.changed} == set(PARTS)
    assert "000000000000…" in str(error) and "10 → 20" in str(error)


def test_a_third_of_another_task_is_refused_too() -> None:
    """M7: each is held to the first."""
    error = refusal(
        entry(BEFORE, "a.json"), entry(BEFORE, "b.json"), entry(BEFORE, "c.json", task={"split": "dev"})
    )
    assert "a and c answered different tasks" in str(error)


def test_cutoffs_may_differ() -> None:
    """The usual measures are then at the largest that both have."""
    found = compare(
        [
            entry(BEFORE, "a.json"),
            entry(AFTER, "b.json", task={"cutoffs": [5, 7]}, cutoffs=(5, 7), headline="mrr"),
        ]
    )
    assert [e.measure for e in only(found).effects] == ["hit@1", "recall@5", "ndcg@5", "mrr"]
    assert found.headline == "hit@1"
    assert any("different headline measures: hit@1, mrr" in note for note in only(found).notes)


def rows(part: str, before: Any, after: Any) -> tuple[Entry, Entry]:
    """Two entries that differ in the rows, and so in the digest of `part`."""
    ours, theirs = entry(BEFORE, "a.json"), entry(BEFORE, "b.json", task={part: "f" * 64})
    ours.queries["q3"], theirs.queries["q3"] = before, after  # type: ignore[index]  # dicts, here
    return ours, theirs


@pytest.mark.parametrize(
    ("part", "before", "after", "told"),
    [
        (
            "judgements",
            asked("q3", {"a": 1, "b": 2}),
            asked("q3", {"a": 1, "0b": 2}),
            "q3 (grade of '0b': – → 0)",
        ),
        (
            "judgements",
            asked("q3", {"a": 1}),
            asked("q3", {"a": 1, "new": 2}),
            "q3 (grade of 'new': – → 1)",
        ),
        (
            "queries",
            asked("q3", 1),
            asked("q3", 1, meta={"scope": "s"}),
            "q3 (scope: – → 's')",
        ),
    ],
)
def test_a_query_judged_or_asked_otherwise_is_refused_by_name(
    part: str, before: Any, after: Any, told: str
) -> None:
    """M7: the queries are named, with what differs."""
    error = refusal(*rows(part, before, after))
    assert error.code == "task-differs"
    assert told in str(error)


def test_a_part_of_the_queries_is_joined_on_the_common_ones() -> None:
    """An arm may select queries: the rest is counted, and it is said."""
    part = {name: AFTER[name] for name in ("q0", "q4", "q5")}
    digests = {"query_ids": "a" * 64, "queries": "b" * 64, "judgements": "c" * 64}
    for sides in (
        (entry(BEFORE, "a.json"), entry(part, "b.json", task=digests)),
        (entry(part, "b.json", task=digests), entry(BEFORE, "a.json")),
    ):
        versus = only(compare(sides))
        assert versus.n == 3
        (rest,) = versus.unjoined
        assert set(rest.queries) == BEFORE.keys() - part.keys()
        assert {rest.before, rest.after} == {"scored", "absent"}
        (note,) = (note for note in versus.notes if "was asked" in note)
        assert "3 are common" in note


def test_queries_that_came_and_went_are_another_set() -> None:
    """M7: a renamed query would leave the comparison in silence."""
    after = {**{name: rank for name, rank in AFTER.items() if name != "q0"}, "new": 1}
    error = refusal(entry(BEFORE, "a.json"), entry(after, "b.json", task={"query_ids": "a" * 64}))
    assert "only before: q0; only after: new" in str(error)


def test_a_refusal_does_not_steer_the_terminal() -> None:
    """Ids are other people's."""
    odd = "q\x1b[31m\u2028"
    error = refusal(entry({odd: 1}, "a.json"), entry({"q": 1}, "b\r.json", task={"query_ids": "a" * 64}))
    assert "\x1b" not in str(error) and "\r" not in str(error) and len(str(error).splitlines()) == 3
    assert r"only before: q\x1b[31m\u2028; only after: q" in str(error)


def test_a_selected_query_judged_otherwise_is_refused() -> None:
    """M7."""
    part = entry(
        {"q0": {"d-q0": 1, "more": 2}}, "b.json", task={"query_ids": "a" * 64, "judgements": "b" * 64}
    )
    error = refusal(entry(BEFORE, "a.json"), part)
    assert isinstance(error, TaskDiffers)
    assert [changed.part for changed in error.changed] == ["judgements"]
    assert "q0 (grade of 'more': – → 1)" in str(error)


# ---------------------------------------------------------------------------------------------------- measures


@pytest.mark.parametrize(
    ("fields", "measures"),
    [
        ({}, ["hit@1", "recall@10", "ndcg@10", "mrr"]),
        ({"headline": "ndcg@10"}, ["ndcg@10", "recall@10", "hit@1", "mrr"]),
        ({"cutoffs": (5, 8)}, ["hit@1", "recall@8", "ndcg@8", "mrr"]),
        (
            {"headline": "recall@50"},
            ["recall@10", "ndcg@10", "hit@1", "mrr"],
        ),  # past the limit, which is told
        ({"headline": None, "cutoffs": (), "limit": None}, ["recall@10", "ndcg@10", "hit@1", "mrr"]),
        ({"headline": None, "cutoffs": (), "limit": 4}, ["recall@4", "ndcg@4", "hit@1", "mrr"]),
    ],
)
def test_the_usual_measures(fields: Any, measures: list[str]) -> None:
    found = held(BEFORE, AFTER, **fields)
    assert [e.measure for e in only(found).effects] == measures
    assert found.headline == measures[0]
    told = [note for note in only(found).notes if "reaches past the limit of 10" in note]
    assert bool(told) is (fields.get("headline") == "recall@50")


@pytest.mark.parametrize(
    "measure",
    [
        *("recall@3", "recall_cap@2", "precision@7", "rprec", "hit@4", "all@2", "judged@9", "mrr@3"),
        *("map", "map@2", "ndcg", "ndcg@3", "ndcg@6(gain=exp)"),
    ],
)
def test_any_measure_is_computed_from_the_ranks(measure: str) -> None:
    """Also those that no report stores."""
    before = {f"q{n}": {"a": n, "b": n + 3, "c": None, "0d": n + 1} for n in range(1, 5)}
    after = {f"q{n}": {"a": n + 1, "b": None, "c": n, "0d": 10} for n in range(1, 5)}
    found = effect(only(held(before, after, measure)), measure)
    for given_, value in ((before, found.before), (after, found.after)):
        wanted = [
            metrics.score([(int(d[0] != "0"), r) for d, r in table.items()], [measure], 10)[measure]
            for table in given_.values()
        ]
        assert value == metrics.mean(wanted)


@pytest.mark.parametrize(
    ("measure", "fields", "told"),
    [
        ("recall@11", {}, "a asked for 10 documents a query"),
        ("judged@6", {"shown": 5}, "the rows of a hold the ids down to rank 5"),
    ],
)
def test_what_the_ranks_do_not_tell_is_refused(measure: str, fields: Any, told: str) -> None:
    sides = entry(BEFORE, "a.json", **fields), entry(AFTER, "b.json", **fields)
    error = refusal(*sides, measures=(measure,))
    assert error.code == "cutoff-beyond-limit"
    assert told in str(error)


def test_a_gain_that_no_number_holds_is_refused() -> None:
    ours, theirs = entry({"q": 1}, "a.json"), entry({"q": 1}, "b.json")
    for side in (ours, theirs):
        side.queries["q"] = Asked("scored", (("d", 2000, 1),), 1)  # type: ignore[index]
    assert refusal(ours, theirs, measures=("ndcg@5(gain=exp)",)).code == "measure-undefined"


# ---------------------------------------------------------------------------------------------- queries that moved


def test_lost_come_first_and_the_worst_drop_of_all() -> None:
    before: Mapping[str, Ranks] = {"a": 1, "b": 1, "c": 5, "d": None, "e": 2, "f": 6, "g": 7, "h": 3}
    after: Mapping[str, Ranks] = {"a": 2, "b": None, "c": 1, "d": 2, "e": 2, "f": 6, "g": 7, "h": 4}
    versus = only(held(before, after, "mrr"))
    # mrr: b falls by 1, a by 1/2, h by 1/12; c rises by 4/5, d by 1/2.
    assert listed(versus) == [("b", "lost"), ("a", "lost"), ("h", "lost"), ("c", "gained"), ("d", "gained")]
    assert [first(moved) for moved in versus.queries[:2]] == [("d-b", 1, None), ("d-a", 1, 2)]
    assert versus.queries[0].text == "text of b"
    # hit@1: equal drops by how far the document fell; then those that moved and are no hit on either side.
    versus = only(held(before, after, "hit@1"))
    assert listed(versus) == [("b", "lost"), ("a", "lost"), ("c", "gained"), ("d", "moved"), ("h", "moved")]


@pytest.mark.parametrize(
    ("measure", "before", "after", "document"),
    [
        # 2 → 4 is the larger move; 10 → 11 left the top 10, and lost the query.
        ("recall@10", {"near": 2, "edge": 10}, {"near": 4, "edge": 11}, "edge"),
        ("mrr", {"near": 1, "deep": 9}, {"near": 5, "deep": None}, "near"),
        ("hit@1", {"one": 1, "two": 2}, {"one": 3, "two": 2}, "one"),
        # One came in and another went out; the query gained, by the first.
        ("mrr", {"in": None, "out": 4}, {"in": 1, "out": None}, "in"),
        ("recall@5", {"x": 3, "y": None, "z": None}, {"x": None, "y": 1, "z": 2}, "y"),
        ("judged@2", {"rel": 5, "0junk": 1}, {"rel": 5, "0junk": 3}, "0junk"),
    ],
)
def test_the_document_that_explains_the_change_is_shown_first(
    measure: str, before: Ranks, after: Ranks, document: str
) -> None:
    versus = only(held({"q": before}, {"q": after}, measure, limit=20, shown=20))
    assert versus.queries[0].documents[0].id == document


def test_documents_that_did_not_move_are_left_out() -> None:
    versus = only(held({"q": {"a": 1, "b": 2, "0c": 3}}, {"q": {"a": 1, "b": 4, "0c": 2}}, "ndcg@5"))
    assert [document.id for document in versus.queries[0].documents] == ["b"]


def test_categories_have_their_own_figures() -> None:
    """A category that collapsed is seen though the mean hides it."""
    categories = {**dict.fromkeys(("q0", "q1", "q4"), "x"), **dict.fromkeys(("q2", "q9"), "y")}
    versus = only(held(BEFORE, AFTER, categories=categories))
    table = {c.category: (c.n, c.before, c.after, c.lost, c.gained, c.moved) for c in versus.categories}
    assert table == {"x": (3, 2 / 3, 1 / 3, 2, 1, 0), "y": (2, 0.5, 0.0, 1, 0, 0)}
    assert [c.difference for c in versus.categories] == pytest.approx([-1 / 3, -0.5], abs=1e-15)


# ------------------------------------------------------------------------------------------------ what is said


def test_the_system_is_shown_where_it_differs() -> None:
    after = entry(AFTER, "b.json", system={"options": {"k1": 0.9, "b": 1}, "backend": "bm25"})
    before = entry(BEFORE, "a.json", system={"options": {"k1": 1.2, "b": 1}})
    changed = only(compare([before, after])).system
    assert changed is not None
    assert [(c.part, c.before, c.after) for c in changed] == [
        ("backend", "told", "bm25"),
        ("options.k1", 1.2, 0.9),
    ]
    assert only(held(BEFORE, AFTER)).system == ()
    assert only(compare([entry(BEFORE, "a.json", system=None), after])).system != ()


def test_the_same_run_twice_is_told() -> None:
    ours, theirs = entry(BEFORE, "a.json", run_id="r1"), entry(BEFORE, "b.json", run_id="r1")
    versus = only(compare([ours, theirs]))
    assert versus.same_run
    assert "both are of run r1: the same run twice" in versus.notes
    assert not only(compare([ours, entry(BEFORE, "b.json", run_id="r2")])).same_run
    assert not only(held(BEFORE, BEFORE)).same_run  # runs that do not say which they are


def test_arms_of_one_name_are_told_apart_by_their_paths() -> None:
    sides = [
        entry(BEFORE, "old/x.json", arm="x"),
        entry(AFTER, "new/x.json", arm="x"),
        entry(AFTER, "y.json"),
        entry(BEFORE, "old/x.json", arm="x"),
    ]
    found = compare(sides)
    assert found.before is not None
    labels = [found.before.label, *(versus.side.label for versus in found.arms)]
    assert labels == ["old/x.json (1)", "new/x.json", "y", "old/x.json (2)"]


# ------------------------------------------------------------------------------------------------- properties

RANK = st.none() | st.integers(1, 12)
#: No two documents stand at one rank.
RANKS = st.tuples(RANK, RANK, RANK).filter(
    lambda t: len({r for r in t if r}) == sum(r is not None for r in t)
)
QUERY = RANKS.map(lambda ranks: dict(zip(("a", "b", "0c"), ranks, strict=True))) | st.sampled_from(
    ["errored", "unscorable"]
)
PAIRS = st.lists(st.tuples(QUERY, QUERY), min_size=1, max_size=12).filter(
    lambda pairs: any(not isinstance(a, str) and not isinstance(b, str) for a, b in pairs)
)
MEASURES = tuple(parse(name) for name in ("ndcg@5", "hit@1", "mrr", "recall@10", "judged@3"))


def sides(pairs: list[tuple[Any, Any]]) -> tuple[Entry, Entry]:
    names = [f"q{number}" for number in range(len(pairs))]
    categories = {name: "xyz"[place % 3] for place, name in enumerate(names)}
    before, after = ({name: pair[side] for name, pair in zip(names, pairs, strict=True)} for side in (0, 1))
    return (
        entry(before, "a.json", categories=categories, limit=12, shown=12),
        entry(after, "b.json", categories=categories, limit=12, shown=12),
    )


@settings(deadline=None, max_examples=40)
@given(PAIRS)
def test_exchanging_the_sides_mirrors_everything(pairs: list[tuple[Any, Any]]) -> None:
    ours, theirs = sides(pairs)
    there, back = only(compare([ours, theirs], MEASURES)), only(compare([theirs, ours], MEASURES))
    mirror = {"lost": "gained", "gained": "lost", "moved": "moved", "lower": "higher", "higher": "lower"}
    for one, two in zip(there.effects, back.effects, strict=True):
        assert (one.before, one.after, one.lost, one.gained) == (two.after, two.before, two.gained, two.lost)
        assert (one.difference, one.p, one.p_holm) == (-two.difference, two.p, two.p_holm)
        assert (one.low, one.high) == pytest.approx((-two.high, -two.low), abs=1e-12)
        assert mirror.get(one.finding, one.finding) == two.finding
    for word, other in (("lost", "gained"), ("gained", "lost"), ("moved", "moved")):
        ahead = [m for m in there.queries if m.change == word]
        behind = [m for m in back.queries if m.change == other]
        assert [(m.query, m.before, m.after, m.difference) for m in ahead] == [
            (m.query, m.after, m.before, -m.difference) for m in behind
        ]
        assert [[(d.id, d.before, d.after) for d in m.documents] for m in ahead] == [
            [(d.id, d.after, d.before) for d in m.documents] for m in behind
        ]
    assert [(u.before, u.after, u.queries) for u in there.unjoined] == sorted(
        (u.after, u.before, u.queries) for u in back.unjoined
    )
    assert [(c.n, c.before, c.after, c.difference, c.lost, c.gained, c.moved) for c in there.categories] == [
        (c.n, c.after, c.before, -c.difference, c.gained, c.lost, c.moved) for c in back.categories
    ]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(QUERY, QUERY), min_size=15, max_size=25), st.integers(0, 2**32))
def test_the_order_of_rows_changes_nothing(pairs: list[tuple[Any, Any]], seed: int) -> None:
    ours, theirs = sides([*pairs, ({"a": 1}, {"a": 2}), ({"a": 3}, {"a": 1}), ({"a": 1}, {"a": None})])
    chance = random.Random(seed)

    def shuffled(side: Entry) -> Entry:
        items = list(side.queries.items())
        chance.shuffle(items)
        turned = {name: dataclasses.replace(row, judged=tuple(reversed(row.judged))) for name, row in items}
        return dataclasses.replace(side, queries=turned)

    assert compare([ours, theirs], MEASURES) == compare([shuffled(ours), shuffled(theirs)], MEASURES)


@settings(deadline=None, max_examples=40)
@given(PAIRS)
def test_counts_and_bounds_agree_with_the_queries(pairs: list[tuple[Any, Any]]) -> None:
    versus = only(compare(sides(pairs), MEASURES))
    for e in versus.effects:
        assert e.lost + e.gained + e.unchanged == e.n == versus.n
        assert -1 <= e.low <= e.difference + 1e-9 and e.difference - 1e-9 <= e.high <= 1
        assert 0 < e.p <= e.p_holm <= 1
    words = [moved.change for moved in versus.queries]
    assert (words.count("lost"), words.count("gained")) == (versus.effects[0].lost, versus.effects[0].gained)
    assert words == sorted(words, key=["lost", "gained", "moved"].index)
    assert versus.n + sum(len(u.queries) for u in versus.unjoined) == len(pairs)
    assert sum(c.n for c in versus.categories) == versus.n


# -------------------------------------------------------------------------------------------- measured reports


def measured(things: Space, name: str, answers: Mapping[str, Any], text: str = "") -> Report:
    things.register("told", Told({f"query {query[1:]}": answer for query, answer in answers.items()}))
    things.config.unlink(missing_ok=True)
    return things.measure(text=f"repetitions = 1\nlimit = 4\ncutoffs = [1, 3]\n{text}")


def test_measured_reports_are_compared(things: Space) -> None:
    """Recomputed values equal those that the reports hold, and each row's outcome is kept."""
    right: dict[str, Any] = {f"q{n}": [f"d{n}"] for n in range(1, 7)}
    before = measured(things, "a", {**right, "q6": BackendError("no")})
    after = measured(things, "b", {**right, "q1": ["d8", "d1"], "q2": ["d8", "d7", "d6", "d2"], "q3": []})
    found = only(compare([of_report("a.json", before), of_report("b.json", after)]))
    assert found.finding == "none"
    assert [(u.before, u.after, u.queries) for u in found.unjoined] == [("errored", "scored", ("q6",))]
    assert found.n == 5
    for e in found.effects:
        wanted = [row.metrics for row in after.rows if row.id != "q6"]
        if e.measure in before.rows[0].metrics:
            assert e.after == metrics.mean([values[e.measure] for values in wanted])
        assert e.before == 1.0
    assert {m.query: first(m) for m in found.queries} == {
        "q1": ("d1", 1, 2),
        "q2": ("d2", 1, 4),
        "q3": ("d3", 1, None),
    }
    assert not found.same_run and found.system == ()


def test_what_makes_a_report_doubtful_is_noted(things: Space, sound: Report) -> None:
    clean = measured(things, "a", {"q1": ["d1"]})
    environment = clean.environment.model_copy(update={"dirty": True, "class_": "owner", "version": "9"})
    odd = clean.model_copy(
        update={
            "environment": environment,
            "index": "cached",
            "run_id": "other",
            "statements": ("session retrieval, not a LongMemEval score",),
            "dataset": clean.dataset.model_copy(update={"name": "things-2", "version": "7"}),
            "health": clean.health.model_copy(update={"unstable": 2}),
        }
    )
    clean = clean.model_copy(
        update={"environment": clean.environment.model_copy(update={"dirty": False, "class_": "ci"})}
    )
    found = compare([of_report("a.json", clean), of_report("b.json", odd)])
    assert found.statements == (*clean.statements, "session retrieval, not a LongMemEval score")
    notes = "\n".join(only(found).notes)
    for words in (
        "after was measured from a work tree with uncommitted changes",
        "after was measured on an index taken from a cache",
        "after is non-deterministic: queries that a repetition ranked otherwise: 2",
        "another environment class: ci before, owner after",
        "another version of eval-core: ",
        "the set has another name: things before, things-2 after",
        "the set has another version: ",
    ):
        assert words in notes, notes
    assert "before was measured" not in notes


def test_selected_arms_are_joined_and_other_parameters_refused(things: Space) -> None:
    """M7, with the keys that measuring makes: a selection is joined, another limit is refused."""
    right: dict[str, Any] = {f"q{n}": [f"d{n}"] for n in range(1, 7)}
    things.set(
        {f"d{n}": f"thing {n}" for n in range(1, 9)},
        {f"q{n}": {"text": f"query {n}", "metadata": {"category": "xy"[n % 2]}} for n in range(1, 7)},
        [(f"q{n}", f"d{n}", 1) for n in range(1, 7)],
    )
    whole = of_report("a.json", measured(things, "a", right))
    part = of_report("b.json", measured(things, "b", right, 'select = { category = ["x"] }'))
    versus = only(compare([whole, part]))
    assert (versus.n, [len(u.queries) for u in versus.unjoined]) == (3, [3])
    things.config.unlink()
    other = of_report("c.json", things.measure(text="repetitions = 1\nlimit = 5\ncutoffs = [1, 3]\n"))
    error = refusal(whole, other)
    assert isinstance(error, TaskDiffers)
    assert [(c.part, c.before, c.after) for c in error.changed] == [("limit", 4, 5)]
