"""Published figures of floors, in the form that this gate writes and in the plain one."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Space

Ranks = dict[str, "int | str | None"]


def plain(space: Space, *runs: Ranks) -> str:
    """The plain floors of these runs, as the verb prints them."""
    for ranks in runs:
        assert space.measure(ranks).code == 0
    done = space.gate("floor", "notes", "--form", "plain")
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
    found = tomllib.loads(plain(bare, ranks, ranks))["notes"]
    assert {name: found[name] for name in ("n", *expected)} == {"n": 27, **expected}


def test_the_plain_floor_lets_24_of_27_through_and_stops_23(bare: Space) -> None:
    """K2's trap: rounded down to 0.88 the floor says two new misses and takes three, since 24 / 27 is 0.889."""
    path = bare.root / "plain.toml"
    lines = plain(bare, {"q27": 2}, {"q27": 2}).splitlines()
    wanted = ("[", "n = ", '"hit@1"')
    path.write_text("\n".join(line for line in lines if line.startswith(wanted)) + "\n")
    seen = {}
    for count in (2, 3, 4, 5):
        assert bare.measure(bare.losing(count)).code == 0
        seen[27 - count] = bare.check("--floors", path, "--allow-unbound").code
    assert seen == {25: 0, 24: 0, 23: 1, 22: 1}


@pytest.mark.parametrize(
    ("ranks", "allowed", "expected"),
    [({"q27": 2}, 3, {25: 0, 24: 0, 23: 1}), ({}, 2, {26: 0, 25: 0, 24: 1})],
)
def test_the_native_floor_fails_at_the_integer(
    bare: Space, ranks: Ranks, allowed: int, expected: dict[int, int]
) -> None:
    """K2: a floor of misses is a whole number, and one more miss fails it."""
    for _ in range(2):
        assert bare.measure(ranks).code == 0
    why = dict.fromkeys(("recall@10", "ndcg@10", "mrr"), "hit@1 is what is shown")
    bare.policy(measures=["hit@1"], reasons=why)
    assert tomllib.loads(bare.floors.read_text())["arms"]["notes"]["misses_allowed"] == {"hit@1": allowed}
    seen = {}
    for hits in expected:
        # At rank 2 recall@10, which keeps its drop, loses nothing.
        assert bare.measure(dict.fromkeys(bare.losing(27 - hits), 2)).code == 0
        done = bare.check()
        seen[hits] = done.code
        assert done.codes == (["floor-breached"] if done.code else [])
    assert seen == expected
