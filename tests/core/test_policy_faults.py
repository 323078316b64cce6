"""All that is wrong with an arm's policy: what its evidence does not give, and what nobody gave a reason for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from evidence_support import hits, line

from eval_core.errors import Refused
from eval_core.policy.arm import ArmPolicy, shown_floors
from eval_core.policy.bars import Choices
from eval_core.policy.eligibility import band, unfit, unlike
from eval_core.policy.evidence import Line
from eval_core.policy.faults import faults, reasons_needed, requirements_left_out, says
from eval_core.policy.models import ArmFloors, Budget, CategoryFloors, Floors

RUNS = [hits(27, 1, "r1"), hits(27, 0, "r2")]


def floors_of(*lines: Line, **chosen: Any) -> ArmFloors:
    """What floors.toml holds of these choices and runs."""
    choices = Choices(
        margin=chosen.get("margin", 2),
        drifts=chosen.get("corpus") == "drifts",
        measures=chosen.pop("measures", None),
        left_out=frozenset(chosen.pop("left_out", ())),
        by_category=chosen.get("by_category", False),
    )
    return ArmFloors(**{**shown_floors(choices, lines)._asdict(), **chosen})


def found(floors: ArmFloors, *lines: Line, budget: Budget | None = None) -> list[Refused]:
    return faults(ArmPolicy("arm", floors, budget or Budget(), lines))


def codes(floors: ArmFloors, *lines: Line, budget: Budget | None = None) -> list[tuple[str, str | None]]:
    return [(fault.code, fault.details.key) for fault in found(floors, *lines, budget=budget)]


def test_what_follows_from_its_runs_has_no_fault() -> None:
    assert found(floors_of(*RUNS), *RUNS) == []


@pytest.mark.parametrize(
    ("edit", "code", "key"),
    [
        ({"n": 26}, "floor-not-derived", "n"),
        ({"floors": {"mrr": 0.5}}, "floor-not-derived", "floors.mrr"),
        ({"floors": {"recal@10": 0.5}}, "metric-missing", "floors.recal@10"),
        ({"floors": {"hit@1": 0.5}}, "floor-not-derived", "floors.hit@1"),
        ({"misses_allowed": {"mrr": 4}}, "floor-not-derived", "misses_allowed.mrr"),
        ({"misses_allowed": {"hit@1": 4}}, "floor-not-derived", "misses_allowed.hit@1"),
        ({"floors": {}, "misses_allowed": {}}, "floors-vacuous", None),
        ({"categories": {"x": CategoryFloors(n=20)}}, "floor-not-derived", "categories.x"),
        ({"by_category": True}, None, None),  # there is no category
        ({"drift": 0.1}, "floor-not-derived", "drift"),
        ({"corpus": "drifts"}, "floor-not-derived", "drift"),
        ({"corpus": "drifts", "drift": 0.1}, "corpus-pinned", "corpus"),
    ],
)
def test_an_edited_number_is_refused(edit: dict[str, Any], code: str | None, key: str | None) -> None:
    """B2, B3: numbers that follow are derived again; each edit is named by its key."""
    floors = ArmFloors(**{**floors_of(*RUNS).model_dump(exclude={"categories"}), **edit})
    assert (code, key) in codes(floors, *RUNS) if code else codes(floors, *RUNS) == []


def test_a_floor_is_compared_within_a_millionth() -> None:
    floors = floors_of(*RUNS)
    for off, fits in ((0.9e-6, True), (-0.9e-6, True), (1.1e-6, False), (-1.1e-6, False)):
        edited = floors.model_copy(update={"floors": {**floors.floors, "mrr": floors.floors["mrr"] + off}})
        assert (found(edited, *RUNS) == []) == fits


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([hits(27, 1, "r1")], "floors-without-evidence"),
        ([hits(27, 1, "r1"), hits(27, 1, "r1")], "floors-without-evidence"),
        ([hits(27, 0, "r2"), hits(27, 1, "r1")], "runs-misordered"),
        ([hits(27, 1, "r1", clean=False), hits(27, 0, "r2")], "evidence-dirty"),
        ([hits(27, 1, "r1", resumed=True), hits(27, 0, "r2")], "evidence-resumed"),
        ([hits(27, 1, "r1", index="cached"), hits(27, 0, "r2")], "evidence-cached"),
        ([hits(27, 1, "r1", system={"options": {"k1": 2}}), hits(27, 0, "r2")], "evidence-system-differs"),
        ([hits(27, 1, "r1", task={"corpus": "x"}), hits(27, 0, "r2")], "evidence-task-differs"),
        ([hits(27, 1, "r1", headline="mrr"), hits(27, 0, "r2")], "evidence-task-differs"),
        ([hits(26, 1, "r1"), hits(27, 0, "r2")], "evidence-task-differs"),
        ([hits(27, 1, "r1", **{"class": "local"}), hits(27, 0, "r2")], "evidence-class-differs"),
    ],
)
def test_runs_that_are_no_evidence_are_refused(lines: list[Line], code: str) -> None:
    """K2, LADDER corollary 1: two runs at least, whole, clean, of one task, system and class, in their order."""
    assert code in {fault.code for fault in found(floors_of(*RUNS), *lines)}


def test_a_run_whose_cleanliness_nobody_knows_is_no_dirty_one() -> None:
    assert list(unfit(hits(9, 0, clean=None))) == []


# --- reasons ---

MOVES = [hits(27, 1, "r1", moves=True), hits(27, 0, "r2", moves=True)]


@pytest.mark.parametrize(
    ("floors", "budget", "keys"),
    [
        (floors_of(*RUNS), Budget(), []),
        (floors_of(*RUNS, margin=1), Budget(), []),
        (floors_of(*RUNS, margin=3), Budget(), ["margin"]),
        (floors_of(*RUNS, left_out=["mrr", "hit@1"]), Budget(), ["hit@1", "mrr"]),
        (floors_of(*MOVES, corpus="drifts", drift=0.1), Budget(), ["corpus"]),
        (floors_of(*RUNS), Budget(p95_ms=300.0), []),
        (floors_of(*RUNS), Budget(p95_ms=300.5), ["p95_ms"]),
        (floors_of(*RUNS), Budget(p95_ms=1e300), ["p95_ms"]),
        (floors_of(*RUNS), Budget(max_drop={"recall@10": 2.0}), ["max_drop"]),
        (floors_of(*RUNS), Budget(max_drop={"mrr": 50.0}), []),  # a rule more, whatever it allows
        (floors_of(*RUNS), Budget(max_drop_everywhere=50.0), []),
    ],
)
def test_each_choice_that_lets_more_pass_needs_a_reason_of_its_own(
    floors: ArmFloors, budget: Budget, keys: list[str]
) -> None:
    """B2. The runs differ by one query, so the default drop of recall@10 is 2 / 27, which is 7.4 points."""
    lines = MOVES if floors.corpus == "drifts" else RUNS
    wide = budget.max_drop.get("recall@10")
    if wide:
        assert list(reasons_needed(floors, budget, lines)) == []
        budget, keys = Budget(max_drop={"recall@10": 7.5}), ["max_drop"]
    assert list(reasons_needed(floors, budget, lines)) == keys
    missing = {
        fault.details.key for fault in found(floors, *lines, budget=budget) if fault.code == "reason-missing"
    }
    assert missing == set(keys)
    said = dict.fromkeys(keys, "because")
    with_reasons = floors.model_copy(update={"reasons": said}), budget.model_copy(update={"reasons": said})
    assert found(with_reasons[0], *lines, budget=with_reasons[1]) == []


@pytest.mark.parametrize(
    ("text", "enough"), [("", False), (" ", False), ("\u200b", False), ("…", False), ("x", True)]
)
def test_a_reason_says_something(text: str, enough: bool) -> None:
    assert says(text) == enough
    floors = floors_of(*RUNS, margin=3, reasons={"margin": text} if text else {})
    assert (found(floors, *RUNS) == []) == enough


def test_a_requirement_that_is_left_out_needs_a_reason() -> None:
    usual = Floors(schema_="floors-v2")
    assert requirements_left_out(usual) == []
    fewer = Floors(schema_="floors-v2", require=("provenance",))
    (fault,) = requirements_left_out(fewer)
    assert (fault.code, fault.details.key) == ("reason-missing", "require")
    assert "head, clean is not required" in fault.message
    assert requirements_left_out(fewer.model_copy(update={"reasons": {"require": "no git here"}})) == []


# --- bars that hold nothing ---


@pytest.mark.parametrize(
    ("lines", "measure", "words"),
    [
        # 3 of 27 found: 24 misses and a margin of 2 leave one; of 2 found, none.
        ([hits(27, 25, "r1"), hits(27, 25, "r2")], "mrr", "passes a backend that finds nothing"),
        # 10 of 20 documents are found by chance: recall@10 0.5 on average.
        ([hits(20, 8, f"r{n}", documents=20) for n in (1, 2)], "recall@10", "a random ranking"),
    ],
)
def test_a_floor_that_nothing_or_chance_passes_is_refused(
    lines: list[Line], measure: str, words: str
) -> None:
    """ATTACKS 7, 11: a bar that a retriever of nothing passes is forever green."""
    faults = [fault for fault in found(floors_of(*lines), *lines) if fault.details.key == measure]
    assert [fault.code for fault in faults] == ["floor-vacuous"]
    assert words in faults[0].message
    assert f"--reason {measure}=" in (faults[0].mend or "")


def test_a_floor_just_above_chance_holds() -> None:
    lines = [hits(20, 5, f"r{n}", documents=20) for n in (1, 2)]  # 15 of 20 less 2 is 0.65, chance 0.5
    assert not [f for f in found(floors_of(*lines), *lines) if f.details.key == "recall@10"]


# --- drift ---


@pytest.mark.parametrize(
    ("documents", "share", "low", "high"),
    [(100, 0.1, 90, 110), (50, 0.1, 45, 55), (3, 0.1, 2, 4), (1, 0.5, 1, 2), (70, 0.3, 49, 91)],
)
def test_the_band_of_a_drifting_corpus(documents: int, share: float, low: int, high: int) -> None:
    """In whole documents, one at least either way: 0.3 of 70 is 21, though 70 * 0.3 is a hair below."""
    assert band(documents, share) == (low, high)


@pytest.mark.parametrize(("documents", "fits"), [(89, False), (90, True), (110, True), (111, False)])
def test_a_run_of_another_corpus_stands_within_the_band(documents: int, fits: bool) -> None:
    here = hits(27, 1, "r1", documents=documents, task={"corpus": "x"})
    newest = hits(27, 1, "r2", documents=100)
    problems = [problem.code for problem in unlike(here, newest, 0.1)]
    assert problems == ([] if fits else ["evidence-corpus-size-differs"])
    assert [problem.code for problem in unlike(here, newest)] == ["evidence-task-differs"]


FACTS: dict[str, Callable[[ArmPolicy], object]] = {
    "provisional": lambda arm: arm.provisional is True,
    "runs agree": lambda arm: arm.runs_agree is False,
    "baseline": lambda arm: arm.baseline.run_id == "r2",
    "p95": lambda arm: arm.p95_ms == 300.0,
    "documents": lambda arm: arm.documents is None,
    "margin": lambda arm: arm.margin == 2,
}


@pytest.mark.parametrize("fact", FACTS)
def test_an_arms_policy_says(fact: str) -> None:
    assert FACTS[fact](ArmPolicy("arm", floors_of(*RUNS), Budget(), RUNS))


def test_services_have_no_default_budget_and_ten_runs_are_settled() -> None:
    """M8."""
    plain = ArmPolicy("arm", floors_of(*RUNS), Budget(), RUNS, default_p95=False)
    assert plain.p95_ms is None
    assert ArmPolicy("arm", floors_of(*RUNS), Budget(p95_ms=5.0), RUNS, default_p95=False).p95_ms == 5.0
    assert not ArmPolicy("arm", floors_of(*RUNS), Budget(), RUNS * 5).provisional
    drifting = ArmPolicy("arm", floors_of(*MOVES, corpus="drifts", drift=0.1), Budget(), MOVES)
    assert drifting.documents == (900, 1100)
    assert line([1]).documents == 1000
