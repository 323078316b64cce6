"""What is held beside the floors, and what is only told: net losses, tracked arms, warnings, significance."""

from __future__ import annotations

import itertools
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from scipy import stats

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from conftest import Space

Ranks = dict[str, "int | str | None"]


def lost(*numbers: int, rank: int | None = 2) -> Ranks:
    """These queries at a rank, the others at rank 1: at rank 2 a miss of hit@1, and none of recall@10."""
    return {f"q{number:02}": rank for number in numbers}


def rule(space: Space, text: str) -> None:
    space.budgets.write_text(f'schema = "budgets-v1"\n[arms.notes]\n{text}\n')


def floored(space: Space, *runs: Ranks, options: Sequence[str] = ()) -> None:
    """Measure these runs, floor all of them, and take the last as the baseline."""
    for ranks in runs:
        assert space.measure(ranks).code == 0
    for arguments in (("floor", "--write", *options), ("baseline", "--write")):
        done = space.gate(*arguments)
        assert done.code == 0, done.err


# ------------------------------------------------------------------------------------------------ net of the gained


@pytest.mark.parametrize(
    ("budget", "ranks", "net"),
    [
        ("", lost(1, 2), None),
        # Floors below the worst run allow four misses; the baseline had none, and the margin is two.
        ("", lost(1, 2, 3), 3),
        ("", lost(1, 2, 3, 4), 4),
        ("max_net_lost = 3", lost(1, 2, 3), None),
        ("max_net_lost = 3", lost(1, 2, 3, 4), 4),
        ("max_net_lost = 1", lost(1, 2), 2),
        ("max_net_lost = 0", lost(1), 1),
        ("max_net_lost = 0", {}, None),
        ("max_net_lost = 27", lost(1, 2, 3, 4), None),
    ],
)
def test_queries_lost_against_the_baseline_are_counted(
    bare: Space, budget: str, ranks: Ranks, net: int | None
) -> None:
    """A4: with evidence of 25 and 27 hits the floor allows four misses, and a slide from the best of them is told."""
    floored(bare, lost(26, 27), {})
    if budget:
        rule(bare, budget)
    assert bare.check().code == 0
    assert bare.measure(ranks).code == 0
    done = bare.check()
    assert (done.code, done.codes) == ((0, []) if net is None else (1, ["net-lost"]))
    if net is not None:
        allowed = budget.rpartition(" ")[2] or "2"
        (reason,) = done.verdict["arms"][0]["reasons"]
        assert reason["message"] == (
            f"hit@1: {net} queries lost, net of those gained, against the baseline, and {allowed} are allowed"
        )
        assert len(done.verdict["arms"][0]["lost"]) == net


@pytest.mark.parametrize(("gained", "codes"), [(0, ["net-lost"]), (1, ["net-lost"]), (2, [])])
def test_what_is_gained_is_taken_off(bare: Space, gained: int, codes: list[str]) -> None:
    """A4: four are lost; of the two that the baseline missed none, one or both are won."""
    floored(bare, lost(*range(20, 28)), lost(26, 27))
    still = [26, 27][gained:]
    assert bare.measure(lost(1, 2, 3, 4, *still)).code == 0
    done = bare.check()
    assert (done.code, done.codes) == (1 if codes else 0, codes)


# ---------------------------------------------------------------------------------------------------- only tracked


def held(space: Space) -> dict[str, Any]:
    arm: dict[str, Any] = tomllib.loads(space.floors.read_text())["arms"]["notes"]
    return arm


def test_an_arm_is_tracked_with_a_reason_that_stays(space: Space) -> None:
    """S5: it takes the arm out of the gate, so it says why for as long as it does."""
    before = space.floors.read_bytes()
    done = space.gate("floor", "--track", "--write")
    assert (done.code, "it would be tracked only, and no longer gate" in done.err) == (1, True)
    assert '--reason "…"' in done.err
    assert space.floors.read_bytes() == before
    assert space.gate("floor", "--track", "--reason", "an experiment", "--write").code == 0
    assert (held(space)["tracked"], held(space)["reason"]) == (True, "an experiment")
    tracked = space.floors.read_bytes()
    assert space.gate("floor", "--write").code == 0
    assert space.floors.read_bytes() == tracked
    assert space.gate("floor", "--gate", "--write").code == 0
    assert space.floors.read_bytes() == before


@pytest.mark.parametrize("reason", ["", 'reason = "   "\n', 'reason = "an experiment"\n'])
def test_a_word_that_takes_an_arm_out_by_hand_needs_a_reason_too(space: Space, reason: str) -> None:
    """S5: written into the file by itself it is a fault of the file."""
    space.twin("zoo")
    space.edit(space.floors, "[arms.notes]\n", f"[arms.notes]\ntracked = true\n{reason}")
    done = space.check()
    if "experiment" in reason:
        assert done.code == 0
        assert [arm["tracked"] for arm in done.verdict["arms"]] == [True, False]
    else:
        assert (done.code, "tracked = true takes the arm out of the gate" in done.err) == (2, True), done.out


@pytest.mark.parametrize("state", ["passes", "fails", "is refused"])
def test_a_tracked_arm_is_graded_and_told_and_decides_nothing(space: Space, state: str) -> None:
    """K1: beside an arm that gates; and the same state of that arm does decide."""
    space.twin("zoo")
    assert space.gate("floor", "notes", "--track", "--reason", "an experiment", "--write").code == 0
    assert space.check().code == 0
    path = space.report
    if state == "fails":
        assert space.measure(space.losing(6)).code == 0
    elif state == "is refused":
        path.write_text("{")
    done = space.check()
    word = {"passes": "pass", "fails": "fail", "is refused": "refused"}[state]
    assert (done.code, done.verdict["verdict"]) == (0, "pass")
    assert [(arm["arm"], arm["verdict"]) for arm in done.verdict["arms"]] == [
        ("notes", word),
        ("zoo", "pass"),
    ]
    assert bool(done.codes) is (state != "passes")
    assert space.gate("floor", "notes", "--gate", "--write", *space.evidence()[:4]).code == 0
    assert space.check().code == (0 if state == "passes" else 1)


def test_a_policy_that_only_tracks_gates_nothing(space: Space) -> None:
    """S5: a gate that looks at nothing does not pass, however well it is told about."""
    assert space.gate("floor", "--track", "--reason", "an experiment", "--write").code == 0
    done = space.check()
    assert (done.code, done.codes) == (1, ["policy-vacuous"])
    (reason,) = done.verdict["reasons"]
    assert "only tracks its arms" in reason["message"]
    assert "eval-gate floor" in reason["remedy"]


# -------------------------------------------------------------------------------------------------------- warnings


@pytest.mark.parametrize(
    ("budget", "warning"),
    [
        ("", None),
        ('max_drop = { "recall@10" = 2 }', None),
        ('max_drop = { "recall@10" = 1 }', None),
        ('max_drop = { "mrr" = 50 }', None),
        ('max_drop = { "recall@10" = 2.5 }', "recall@10 may fall by 2.5 points against the baseline, not 2"),
        ('max_drop = { "recall@10" = 100 }', "recall@10 may fall by 100 points against the baseline, not 2"),
    ],
)
def test_a_rule_that_was_loosened_is_told_each_time(space: Space, budget: str, warning: str | None) -> None:
    """A4: a drop that a budget allows beyond the usual does not fade from sight."""
    rule(space, budget)
    done = space.check()
    assert done.code == 0
    assert done.verdict["arms"][0]["warnings"] == ([warning] if warning else [])
    assert not warning or warning in space.gate("check").out


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
    assert space.check().verdict["arms"][0]["significance"] is None
    assert space.measure(ranks).code == 0
    done = space.check()
    assert (done.code, "floor-breached" in done.codes) == (1, True)
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


def test_a_significant_loss_within_the_bar_passes(space: Space) -> None:
    """A4: nor does it fail what the floors allow: the same five losses under floors with room for them."""
    room = ("--margin", "6", "--reason", "room")
    assert space.gate("floor", "--write", *room).code == 0
    assert space.measure(lost(1, 2, 3, 4, 5, 27)).code == 0
    done = space.check()
    assert (done.code, done.verdict["arms"][0]["significance"]) == (0, None)


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
    assert space.gate("floor", "--write", "--metric", "mrr", "--reason", "r").code == 0
    ranks: Ranks = {"q01": 2, "q02": 3, "q03": 4, "q04": 5, "q05": 8, "q06": 10, "q07": 10}
    assert space.measure(ranks).code == 0
    told = space.check().verdict["arms"][0]["significance"]
    differences = [1 / int(str(rank)) - 1 for rank in ranks.values()] + [0.5]
    assert (told["metric"], told["test"]) == ("mrr", "sign-flip")
    assert told["p"] == pytest.approx(sign_flips(differences), abs=1e-12)
    assert told["difference"] == pytest.approx(sum(differences) / 27, abs=1e-12)
