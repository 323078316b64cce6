"""The verdict at a terminal: the answer first, one number a measure with its rule, and nothing that steers."""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given, settings

sys.path.insert(0, str(Path(__file__).resolve().parent))

from render_support import (
    failing,
    grade,
    hostile,
    lost,
    mean,
    passing,
    reason,
    refused,
    significance,
    verdict,
)

from eval_gate.render import Place, rendered
from eval_gate.verdict import ArmVerdict, BarChange, Verdict


def shown(found: Verdict, place: Place | None = None) -> str:
    return click.unstyle(rendered("table", found, place or Place()))


def width(line: str) -> int:
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line
    )


@pytest.mark.parametrize(
    ("arms", "head"),
    [
        ([passing()], "PASS  1 arm"),
        ([passing(), failing()], "FAIL  1 of 2 arms"),
        ([passing(), failing(), refused()], "REFUSED  2 of 3 arms"),
    ],
)
def test_the_answer_comes_first(arms: list[ArmVerdict], head: str) -> None:
    assert shown(verdict(*arms)).splitlines()[0] == head
    where: dict[str, Any] = {"commit": "3f2c91a" + "0" * 33, "clean": True, "class_": "ci"}
    assert shown(verdict(*arms, **where)).splitlines()[0] == f"{head} at 3f2c91a, clean, class ci"


def test_an_arm_that_passes_shows_one_number_a_measure_and_what_it_means_in_queries() -> None:
    """B8: and every verdict names the rule that holds each measure."""
    several = (mean(), grade(), mean(measure="ndcg@10", rule="floor", queries=2))
    out = shown(verdict(passing(graded=several, p95_ms=2.04, budget_p95_ms=300.0)))
    assert out.splitlines()[2:4] == [
        " arm    n  recall@10            hit@1         ndcg@10        p95 ms",
        " good  27  0.940 ≥ 0.930  none  2 ≤ 3 misses  0.940 ≥ 0.930  2.0 ≤ 300",
    ]
    assert "Each bar is a floor, but for 2 points below the baseline (recall@10) of good." in out
    assert "Each bar is a floor." in shown(verdict(passing()))
    everywhere = grade(rule="everywhere", points=5.0)
    assert "5 points below the baseline everywhere (hit@1) of good." in shown(
        verdict(passing(graded=(everywhere,)))
    )


def test_round2_b10_what_was_lost_and_gained_is_said_whatever_the_verdict() -> None:
    """B10: a passing verdict that hid lost queries read as if there were none."""
    assert "No query was lost or gained against the baselines." in shown(verdict(passing()))
    out = shown(verdict(passing(lost=tuple(map(lost, range(1, 8))), gained=(lost(9),))))
    assert "good, hit@1: 7 queries lost (q01, q02, q03, q04, q05 and 2 more), 1 gained." in out


def test_a_failing_arm_shows_every_measure_with_its_rule_and_what_was_lost() -> None:
    drop = reason(code="baseline-drop", key="recall@10", value=0.9, what="the bar is 0.93")
    arm = failing(
        graded=(grade(), mean(False)),
        reasons=(drop,),
        evidence="ci",
        measure="recall@10",
        lost=tuple(map(lost, range(1, 8))),
        gained=(lost(8),),
        significance=significance(),
    )
    lines = shown(verdict(arm)).splitlines()
    assert lines[2] == " things · bad  FAIL"
    assert lines[3:5] == [
        "   recall@10  0.9000 < 0.9300  2 points below the baseline  none  reason: baseline-drop",
        "   hit@1      2 ≤ 3 misses     its floor                          passes",
    ]
    assert "   recall@10: 7 queries lost, 1 gained, none may be lost" in lines
    assert "   lost  q01  where is thing 1  d01  rank 1 → –" in lines
    assert "   … 2 more:  eval-core explain .eval/reports/bad.json --lost" in lines
    assert lines[-1].endswith('eval-gate floor bad --from A.zip B.zip --reason floors="…" --write')
    named = Place(policy=Path("bars"), named={"bad": Path("ci run/bad.json")})
    assert "… 2 more:  eval-core explain 'ci run/bad.json' --missed" in shown(verdict(arm), named)


def test_bars_of_categories_stand_below_the_table() -> None:
    graded = (grade(), grade(category="plain"), grade(category="graph"))
    lines = shown(verdict(passing(graded=graded))).splitlines()
    assert " good by category: hit@1 of plain 2 ≤ 3 misses, hit@1 of graph 2 ≤ 3 misses" in lines


def test_a_breach_shows_as_many_decimals_as_tell_it() -> None:
    assert "0.92999 < 0.93000" in shown(verdict(failing(graded=(mean(False, value=0.92999),))))


def test_round2_s8_what_is_the_same_for_several_arms_is_said_once() -> None:
    """S8: one set that changed is one finding with the arms that it concerns, whatever else is wrong with them."""
    names = [f"memory-{number}" for number in range(4)]
    other = refused("other", set="code")
    more = reason("refused", "rows-errored", "1 row errored")
    arms = (*map(refused, names), other.model_copy(update={"reasons": (*other.reasons, more)}))
    lines = shown(verdict(*arms)).splitlines()
    assert lines[2:7] == [
        " things, code · memory-0, memory-1, memory-2, memory-3, other  REFUSED  cannot be graded",
        "   the set of queries changed: 26 now, 27 in the baseline    reason: query-set-differs",
        "",
        " code · other  REFUSED  cannot be graded",
        "   1 row errored    reason: rows-errored",
    ]


def test_a_finding_of_several_arms_keeps_what_they_share_and_says_that_the_mend_is_that_of_one() -> None:
    def gone(name: str) -> ArmVerdict:
        file, mend = f"{name}.json", f"Measure it:  eval-core measure {name}"
        return refused(
            name, reasons=(reason("refused", "report-missing", "there is none", file=file, mend=mend),)
        )

    out = shown(verdict(gone("a"), gone("b")))
    assert "   there is none    reason: report-missing\n   Measure it:  eval-core measure a\n" in out
    assert "   The same for each of these arms, under its own name.\n" in out
    alone = shown(verdict(gone("a")))
    assert ("a.json: there is none" in alone, "The same for" in alone) == (True, False)


def test_two_runs_with_one_fault_are_two_findings_of_their_arm() -> None:
    runs = tuple(
        reason("refused", "evidence-dirty", "the tree was dirty", subject=f"run {n}") for n in (1, 2)
    )
    out = shown(verdict(refused(reasons=runs)))
    assert ("run 1: the tree" in out, "run 2: the tree" in out) == (True, True)


def test_each_reason_has_its_code_its_mend_once_and_the_page_that_explains_it() -> None:
    reasons = [reason("refused", f"code-{n}", f"it differs {n}", mend="Take it back.") for n in range(3)]
    lines = shown(verdict(refused(reasons=tuple(reasons)))).splitlines()
    assert "   it differs 2    reason: code-2" in lines
    assert lines.count("   Take it back.") == 1
    assert "What a reason means: eval-core reason CODE" in lines
    again = "Do what the lines above say, then:  eval-core measure && eval-gate check"
    assert lines[-1] == again
    *_, first, _, way_on = shown(verdict(refused(), failing())).splitlines()
    assert (first, "eval-gate floor bad --measure" in way_on) == (again, True)


@pytest.mark.parametrize(
    ("given_", "said", "is_chance"),
    [
        ({}, "hit@1 −4.5 points, 95% −9.1 to −0.2, p = 0.063 (mid-p McNemar): chance could explain it", True),
        ({"p": 0.0004}, "p < 0.001 (mid-p McNemar): more than chance explains", False),
        ({"p": 0.05}, "p = 0.05 (mid-p McNemar): chance could explain it", True),
        ({"resolvable": False, "p": 0.5}, "p = 0.5 (mid-p McNemar): unresolvable at n = 27", True),
        ({"test": "sign-flip", "p": 0.0123}, "p = 0.012 (sign flips): more than chance explains", False),
        (
            {"difference": 0.0, "low": 0.0, "high": 0.0, "p": 1.0},
            "hit@1 over all queries is what it was",
            True,
        ),
    ],
)
def test_chance_is_shown_in_one_line_and_does_not_decide(
    given_: dict[str, Any], said: str, is_chance: bool
) -> None:
    out = shown(verdict(failing(significance=significance(**given_))))
    (line,) = [line for line in out.splitlines() if said in line]
    assert width(line) <= 100
    assert ("Chance is shown and never graded" in out) is is_chance
    assert out.startswith("FAIL")


def test_what_the_verdict_does_not_rest_on_is_a_line_each() -> None:
    notes = (
        "verdict of your working tree: it was measured on a tree with uncommitted changes",
        "held against no branch",
    )
    lines = shown(verdict(passing(runs_agree=False), notes=notes, not_gated=("new",))).splitlines()
    assert "Verdict of your working tree: it was measured on a tree with uncommitted changes." in lines
    assert "Held against no branch." in lines
    still = "No query was lost or gained against the baselines."
    assert f"{still} Evidence runs differ in their rankings: good." in lines
    assert "Not gated, without floors: new." in lines


def change(arm: str | None, key: str, looser: bool, why: str | None = None) -> BarChange:
    return BarChange(arm=arm, key=key, before="2", after="4", looser=looser, reason=why)


def test_what_is_looser_comes_first_with_its_reason() -> None:
    bar = (
        change("a", "n", False),
        change("a", "margin", True, "the set is small"),
        change("b", "p95_ms", True),
    )
    lines = shown(verdict(passing("a"), passing("b"), target="main", bar=bar)).splitlines()
    start = lines.index("The bar against that of main: 2 looser, 1 otherwise changed")
    assert lines[start + 1 : start + 4] == [
        " looser   a  margin: 2 → 4  (reason: the set is small)",
        " looser   b  p95_ms: 2 → 4  (no new reason is given)",
        " changed  a  n: 2 → 4",
    ]
    assert "The bar is that of main." in shown(verdict(passing(), target="main"))
    many = tuple(change("a", f"recall@{k}", True) for k in range(1, 15))
    out = shown(verdict(passing("a"), target="main", bar=many))
    assert (out.count("looser   a"), " … 4 more:  --format json" in out) == (10, True)


@settings(max_examples=40, deadline=None)
@given(hostile())
def test_no_text_of_others_steers_a_terminal_or_the_log_of_a_job(found: Verdict) -> None:
    """K3: no control character, no direction, and no line that a GitHub job would take for a command."""
    out = shown(found)
    assert {c for c in out if not c.isprintable()} <= {"\n"}
    assert [line for line in out.split("\n") if line.lstrip().startswith("::") or "##[" in line] == []
    assert out.startswith({"pass": "PASS", "fail": "FAIL", "refused": "REFUSED"}[found.verdict])
