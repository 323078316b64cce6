from __future__ import annotations

import shlex
import sys
import unicodedata
from pathlib import Path

import click
import pytest
from hypothesis import given, settings

sys.path.insert(0, str(Path(__file__).resolve().parent))

from render_support import (
    ODDS,
    failing,
    grade,
    hostile,
    lost,
    passing,
    reason,
    refused,
    significance,
    verdict,
)

from eval_gate.render import Place, terminal
from eval_gate.verdict import BarChange, Verdict


def shown(found: Verdict, place: Place | None = None) -> str:
    return click.unstyle(terminal(found, place))


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
        ([passing(), failing(tracked=True)], "PASS  1 arm, 1 tracked (1 not passing)"),
        ([failing(), passing("t", tracked=True)], "FAIL  1 of 1 arm, 1 tracked"),
    ],
)
def test_the_head_counts_the_arms_that_decide(arms: list[object], head: str) -> None:
    assert shown(verdict(*arms)).splitlines()[0] == head  # type: ignore[arg-type]


def test_an_arm_that_is_only_tracked_is_told_and_decides_nothing() -> None:
    out = shown(verdict(passing(), failing("watched", tracked=True)))
    assert "things · watched  FAIL  tracked: it decides nothing" in out
    assert "hit@1: 8 misses, and 3 are allowed    reason: floor-breached" in out
    assert "watched  fail (tracked)" in out
    assert out.endswith("Next: nothing; the bar holds.")


def test_those_that_decide_come_first_and_the_worst_of_them_first() -> None:
    watched = refused("a-watched", tracked=True)
    out = shown(verdict(watched, passing("b"), failing("c"), refused("d"), passing("e", tracked=True)))
    rows = [line.split()[0] for line in out.split(" arm ", 1)[1].splitlines()[1:6]]
    assert rows == ["d", "c", "b", "a-watched", "e"]
    explained = [
        out.index(f"{name}  {word}") for name, word in (("d", "REF"), ("c", "FAIL"), ("a-watched", "REF"))
    ]
    assert explained == sorted(explained)


def test_floors_of_categories_stand_with_the_arm_and_not_in_the_table() -> None:
    graded = (grade(), grade(category="plain"), grade(False, category="graph"))
    why = reason(message="hit@1 of graph: 8 misses, and 3 are allowed")
    lines = shown(
        verdict(failing(graded=graded, reasons=(why,)), passing("other", graded=graded[:2]))
    ).splitlines()
    assert "   by category: hit@1 of graph 8 > 3 misses !, hit@1 of plain 2 ≤ 3 misses" in lines
    (row,) = [line for line in lines if line.startswith(" bad ")]
    assert row.split() == ["bad", "fail", "27", "2", "≤", "3", "misses", "–"]
    assert sum("category" in line for line in lines) == 1


def test_a_measure_that_dropped_is_marked_and_its_category_is_not_mistaken_for_it() -> None:
    drop = "{}: 5.00 points below the baseline (0.9 → 0.85), and 2 are allowed"
    for named, marked in (("hit@1", True), ("hit@1 of graph", False)):
        why = reason(code="baseline-drop", message=drop.format(named))
        out = shown(verdict(failing(reasons=(why,), graded=(grade(), grade(category="graph")))))
        (row,) = [line for line in out.splitlines() if line.startswith(" bad ")]
        assert row.rstrip(" –").endswith("!") is marked
        assert f"hit@1 of graph 2 ≤ 3 misses{'' if marked else ' !'}" in out


@pytest.mark.parametrize(
    ("given_", "told", "is_chance"),
    [
        ({}, "hit@1 −4.5 points, 95% −9.1 to −0.2, p = 0.063 (mid-p McNemar): chance could explain it", True),
        ({"p": 0.0004}, "p < 0.001 (mid-p McNemar): more than chance explains", False),
        ({"p": 0.05}, "p = 0.05 (mid-p McNemar): chance could explain it", True),
        ({"resolvable": False, "p": 0.5}, "p = 0.5 (mid-p McNemar): unresolvable at n = 27", True),
        ({"test": "sign-flip", "p": 0.0123}, "p = 0.012 (sign flips): more than chance explains", False),
        ({"high": 0.002, "low": -0.0001}, "95% 0.0 to +0.2", True),
        (
            {"difference": 0.0, "low": 0.0, "high": 0.0, "p": 1.0},
            "hit@1 over all queries is what it was",
            True,
        ),
    ],
)
def test_chance_is_told_in_one_line_and_does_not_decide(
    given_: dict[str, object], told: str, is_chance: bool
) -> None:
    out = shown(verdict(failing(significance=significance(**given_))))
    (line,) = [line for line in out.splitlines() if told in line]
    assert width(line) <= 100
    assert ("Chance is told, never graded" in out) is is_chance
    assert out.startswith("FAIL")


def test_all_lost_queries_are_a_command_away() -> None:
    arm = failing(lost=tuple(map(lost, range(1, 8))))
    out = shown(verdict(arm))
    assert "hit@1: 7 queries lost, 0 gained" in out
    assert "   … 2 more:  eval-core explain .eval/reports/bad.json --lost\n" in out
    named = Place(policy=Path("bars"), named={"bad": Path("ci run/bad.json")})
    command = "eval-core explain 'ci run/bad.json' --lost --against bars/baselines/bad.json"
    assert f"… 2 more:  {command}\n" in shown(verdict(arm), named)


def test_the_odds_that_matter_are_told_once_each() -> None:
    arms = [passing(f"a{number}", odds=ODDS.format(f"{number}0%")) for number in range(5, 9)]
    arms += [passing("twin", odds=ODDS.format("50%")), failing(odds=ODDS.format("99%"))]
    lines = [line for line in shown(verdict(*arms)).splitlines() if "Detects" in line or "odds" in line]
    assert lines[0].startswith("bad: Detects a 10-point loss in 99% of cases; ")
    assert lines[1].startswith("a5 and 1 more: Detects a 10-point loss in 50% of cases; ")
    assert lines[2:] == ["… the odds of 3 more policies:  --format json"]


def change(arm: str | None, what: str, looser: bool, why: str | None = None) -> BarChange:
    return BarChange(arm=arm, what=what, before="2", after="4", looser=looser, reason=why)


def test_what_is_looser_comes_first_with_its_reason() -> None:
    bar = (
        change("a", "n", False),
        change("a", "margin", True, "the set is small"),
        change("b", "p95_ms", True),
        change("a", "max_net_lost", True),
    )
    lines = shown(verdict(passing("a"), passing("b"), target="main", bar=bar)).splitlines()
    assert lines[0] == "PASS  2 arms; the bar is looser than that of main in 3 places"
    start = lines.index("The bar against that of main: 3 looser, 1 otherwise changed")
    assert lines[start + 1 : start + 7] == [
        " looser   a  margin: 2 → 4",
        " looser   a  max_net_lost: 2 → 4",
        "         reason: the set is small",
        " looser   b  p95_ms: 2 → 4",
        "         no reason is given",
        " changed  a  n: 2 → 4",
    ]
    assert "The bar is that of main." in shown(verdict(passing(), target="main"))
    many = tuple(change("a", f"floor of recall@{k}", True) for k in range(1, 15))
    out = shown(verdict(passing("a"), target="main", bar=many))
    assert (out.count("looser   a"), " … 4 more:  --format json" in out) == (10, True)


HEX = "0123456789abcdef" * 4
REMEDIES = {
    f"Measure what eval.toml says now:  eval-core measure X   (or waive exactly this in policy/waivers.toml: "
    f"fingerprint {HEX})": ["eval-core measure X"],
    f"eval-core measure X   (or waive exactly this in policy/waivers.toml: fingerprint {HEX})": [
        "eval-core measure X"
    ],
    "If the change is not meant, take it back. If it is, commit it by itself, measure twice, and move the bar:  "
    'eval-gate floor notes --reason "…" --write && eval-gate baseline notes --write': [
        'eval-gate floor notes --reason "…" --write && eval-gate baseline notes --write'
    ],
}


@pytest.mark.parametrize("remedy", REMEDIES)
def test_a_wide_remedy_is_broken_around_its_command(remedy: str) -> None:
    why = reason("refused", "provenance-diverges", "it differs", remedy=remedy)
    lines = [line.strip() for line in shown(verdict(refused(reasons=(why,)))).splitlines()]
    for command in REMEDIES[remedy]:
        assert command in lines
    assert max(map(width, lines)) <= 100
    assert "".join(remedy.split()) in "".join("".join(lines).split())


def test_a_command_that_is_too_wide_can_still_be_pasted() -> None:
    """Broken where a shell reads on, and never inside quotes: read back, it is the same words."""
    names = " ".join(f"memory-bm25-kind-{number}" for number in range(12))
    command = f"eval-gate floor {names} --reason 'two  words' --write && eval-gate baseline {names} --write"
    why = reason("refused", "policy-mixed", "it is mixed", remedy=f"Move both:  {command}")
    lines = shown(verdict(refused(reasons=(why,)))).splitlines()
    start = next(number for number, line in enumerate(lines) if line.strip().startswith("eval-gate floor"))
    taken = []
    for line in lines[start:]:
        taken.append(line)
        if not line.endswith((" \\", "&&")):
            break
    assert len(taken) > 2
    assert max(map(width, lines)) <= 100
    assert shlex.split("\n".join(taken).replace("\\\n", "")) == shlex.split(command)


@settings(max_examples=40, deadline=None)
@given(hostile())
def test_no_text_of_others_steers_a_terminal_or_the_log_of_a_job(found: Verdict) -> None:
    """K3: no control character, no direction, and no line that a GitHub job would take for a command."""
    out = shown(found)
    assert {c for c in out if not c.isprintable()} <= {"\n"}
    assert [line for line in out.split("\n") if line.lstrip().startswith("::") or "##[" in line] == []
    assert out.startswith({"pass": "PASS", "fail": "FAIL", "refused": "REFUSED"}[found.verdict])
