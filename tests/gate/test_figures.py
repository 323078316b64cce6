from __future__ import annotations

import math
import tomllib
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_core.reports.keys import TASK_PARTS
from eval_gate.check.plain import read_plain
from eval_gate.floors.text import plain, rounded_down
from eval_gate.policy import ArmFloors, Evidence, Floor, derive_floor, lowest, misses

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Space

Ranks = dict[str, "int | str | None"]


def floored(space: Space, *runs: Ranks, measures: str = "hit@1 recall@10 mrr", form: str = "plain") -> str:
    for ranks in runs:
        assert space.measure(ranks).code == 0
    names = [word for measure in measures.split() for word in ("--metric", measure)]
    done = space.gate("floor", "notes", "--form", form, *names)
    assert done.code == 0, done.err
    return done.out


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        # 26 of 27 and two misses: 24 / 27 = 0.888…; 26.5 / 27 = 0.981, less 2 / 27 = 0.907…
        ({"q27": 2}, {"hit@1": 0.88, "recall@10": 0.92, "mrr": 0.90}),
        # 27 of 27 and two misses: 25 / 27 = 0.925…
        ({}, {"hit@1": 0.92, "recall@10": 0.92, "mrr": 0.92}),
        # 26 of 27, the other nowhere: 24 / 27 for all three.
        ({"q27": None}, {"hit@1": 0.88, "recall@10": 0.88, "mrr": 0.88}),
    ],
)
def test_the_plain_form_gives_the_published_figures(
    bare: Space, ranks: Ranks, expected: dict[str, float]
) -> None:
    """K2: 26 of 27 and two misses → 0.88, 27 of 27 → 0.92, an mrr of 0.981 → 0.90."""
    assert tomllib.loads(floored(bare, ranks, ranks)) == {"notes": {"n": 27, **expected}}


def test_a_floor_counts_from_the_worst_run_and_cites_every_run(bare: Space) -> None:
    """K2: floors are the operating point minus a margin, each with the evidence it came from."""
    for ranks in ({}, bare.losing(2), bare.losing(1)):
        assert bare.measure(ranks).code == 0
    out = bare.gate("floor", "notes", "--form", "plain", "--metric", "hit@1").out
    assert tomllib.loads(out)["notes"]["hit@1"] == 0.85  # 25 of 27, less two: 23 / 27 = 0.851…
    ids = [path.stem for path in (bare.root / ".eval" / "history" / "notes").glob("*.json")]
    assert len(ids) == 3
    assert all(run in out for run in ids)
    assert all(value in out for value in ("1.0000", "0.9259", "0.9630"))


def test_the_plain_floor_lets_24_of_27_through_and_stops_23(bare: Space) -> None:
    """K2's trap: rounded down to 0.88 the floor says two new misses and takes three, since 24 / 27 is 0.889."""
    path = bare.root / "plain.toml"
    path.write_text(floored(bare, {"q27": 2}, {"q27": 2}, measures="hit@1"))
    seen = {}
    for count in (2, 3, 4, 5):
        assert bare.measure(bare.losing(count)).code == 0
        seen[27 - count] = bare.check("--floors", path, "--allow-unbound").code
    assert seen == {25: 0, 24: 0, 23: 1, 22: 1}


@pytest.mark.parametrize(
    ("ranks", "allowed", "expected"),
    [
        ({"q27": 2}, 3, {25: 0, 24: 0, 23: 1}),
        ({}, 2, {26: 0, 25: 0, 24: 1}),
    ],
)
def test_the_native_floor_fails_at_the_integer(
    bare: Space, ranks: Ranks, allowed: int, expected: dict[int, int]
) -> None:
    """K2: a floor of misses is a whole number, and one more miss fails it."""
    floored(bare, ranks, ranks, measures="hit@1", form="native")
    assert bare.gate("floor", "--write", "--metric", "hit@1").code == 0
    assert tomllib.loads(bare.floors.read_text())["arms"]["notes"]["metrics"] == {
        "hit@1": {"max_misses": allowed}
    }
    assert bare.gate("baseline", "--write").code == 0
    bare.budgets.write_text('schema = "budgets-v1"\n[arms.notes.max_drop]\n"recall@10" = 100\n')
    seen = {}
    for hits in expected:
        assert bare.measure(bare.losing(27 - hits)).code == 0
        done = bare.check()
        seen[hits] = done.code
        assert done.codes == (["floor-breached"] if done.code else [])
    assert seen == expected


@pytest.mark.parametrize("hits", range(3, 28))
def test_a_margin_of_two_takes_exactly_three_new_misses(hits: int) -> None:
    """K2: "two misses of margin" is true of every operating point, whatever its decimals."""
    floor = derive_floor("hit@1", hits / 27, 27, 2)
    assert floor == Floor(max_misses=27 - hits + 2)
    assert misses((hits - 2) / 27, 27) <= (floor.max_misses or 0) < misses((hits - 3) / 27, 27)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_misses_are_counted_back_from_any_mean(pair: tuple[int, int]) -> None:
    missed, n = pair
    assert misses((n - missed) / n, n) == missed


@given(st.integers(1, 100_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_rounding_down_is_that_of_exact_fractions(pair: tuple[int, int]) -> None:
    """K2: the plain form is rounded down: never above the floor, and less than a hundredth below it."""
    passing, n = pair
    exact = Fraction(passing, n)
    floor = Floor(max_misses=n - passing)
    assert rounded_down(lowest(floor, n)) == math.floor(exact * 100)


@given(st.integers(1, 1000), st.integers(0, 40), st.floats(0, 1, allow_subnormal=False))
def test_a_mean_is_rounded_down_with_room_for_the_last_bits_alone(n: int, margin: int, worst: float) -> None:
    floor = derive_floor("mrr", worst, n, margin).floor
    assert floor is not None
    exact = Fraction(floor)
    got = Fraction(rounded_down(floor), 100)
    assert got <= exact + Fraction(1, 10**11)
    assert exact - got < Fraction(1, 100)
    # One query moves a mean by 1 / n at most, so the margin is worth as many misses in every measure.
    assert abs(exact - (Fraction(worst) - Fraction(margin, n))) < Fraction(1, 10**12)


@given(
    st.lists(
        st.tuples(st.from_regex(r"[a-z0-9][a-z0-9._-]{0,12}", fullmatch=True), st.integers(3, 500)),
        min_size=1,
        max_size=4,
        unique_by=lambda pair: pair[0],
    )
)
def test_what_the_plain_form_prints_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, arms: list[tuple[str, int]]
) -> None:
    """Whatever the names of the arms, dots and digits included, the plain reader takes what the tool prints."""
    floors = {name: _floors(n) for name, n in arms}
    path: Path = tmp_path_factory.mktemp("plain") / "plain.toml"
    path.write_text(plain(floors))
    table = read_plain(path)
    assert {name: arm["n"] for name, arm in table.items()} == dict(arms)
    for name, n in arms:
        assert table[name]["hit@1"] == math.floor(Fraction(n - 1, n) * 100) / 100


def _floors(n: int) -> ArmFloors:
    run = Evidence(run_id="r1", started="", digest="", sha256="0" * 64, class_="ci", values={"hit@1": 1.0})
    return ArmFloors(
        n=n,
        margin=1,
        provisional=True,
        headline="hit@1",
        task=dict.fromkeys(TASK_PARTS, "none"),
        metrics={"hit@1": Floor(max_misses=1)},
        evidence=(run,),
    )
