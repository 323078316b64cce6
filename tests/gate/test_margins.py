"""How far below the evidence a floor lies: margins out of flips, floors that chance reaches, and raising."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

import numpy
import pytest
from scipy import stats

from eval_core.policy.bars import Bar
from eval_gate.floors.chance import reached

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Space
    from numpy.typing import NDArray

Ranks = dict[str, "int | str | None"]

#: The measures beside hit@1, left out.
HIT_ALONE = ["--reason", "recall@10=x", "--reason", "ndcg@10=x", "--reason", "mrr=x"]


def held(space: Space) -> dict[str, Any]:
    """The floors of the arm as they stand in the file."""
    arm: dict[str, Any] = tomllib.loads(space.floors.read_text())["arms"]["notes"]
    return arm


def reciprocal(rank: int | str | None) -> float:
    assert not isinstance(rank, str)
    return 1 / rank if rank else 0.0


def smallest(n: int, rate: float) -> int:
    """The smallest m with P(Bin(n, rate) > m) of at most 1%, by going through them."""
    return next(m for m in range(n + 1) if stats.binom.sf(m, n, rate) <= 0.01)


@pytest.mark.parametrize(
    ("runs", "flips", "trials"),
    [
        # Nothing flipped between two runs of 27: 1 - 0.05^(1/27) = 0.105, which is a margin of 7.
        ([{"q27": 2}, {"q27": 2}], 0, 27),
        # q01 was lost and came back: two flips of hit@1 and of mrr, none of recall@10, in 2 · 27 trials.
        ([{"q27": 2}, {"q27": 2, "q01": 2}, {"q27": 2}], 2, 54),
        # Each run is held against the one before it: q01, then q01 and q02, then q02.
        ([{}, {"q01": 2}, {"q02": 2}, {}], 4, 81),
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
    margin = smallest(27, float(stats.beta.ppf(0.95, flips + 1, trials - flips)))
    why = ["--reason", "margin=as many as flip"] if margin > 2 else []
    done = bare.gate("floor", "--margin", "derived", "--write", *why)
    assert done.code == 0, done.err
    arm = held(bare)
    worst = max(sum(rank != 1 for rank in ranks.values()) for ranks in runs)
    assert (arm["margin"], arm["misses_allowed"]) == ("derived", {"hit@1": worst + margin})
    lowest = min(sum(reciprocal(ranks.get(f"q{n:02}", 1)) for n in range(1, 28)) / 27 for ranks in runs)
    assert arm["floors"]["mrr"] == pytest.approx(lowest - margin / 27, abs=1.1e-6)
    assert bare.check().code == 0


def test_a_derived_margin_stays_one_until_another_is_asked_for(bare: Space) -> None:
    """K2: more runs under it make it smaller; its reason stays as long as it does; a number takes its place."""
    for _ in range(2):
        assert bare.measure().code == 0
    done = bare.gate("floor", "--margin", "derived", "--write")
    assert (done.code, "a margin of 7 misses is wider than 2" in done.err) == (1, True)
    assert bare.gate("floor", "--margin", "derived", "--write", "--reason", "margin=two runs").code == 0
    for _ in range(8):
        assert bare.measure().code == 0
    assert bare.gate("floor", "--write").code == 0
    assert (held(bare)["margin"], held(bare)["misses_allowed"]) == ("derived", {"hit@1": 3})
    assert held(bare)["reasons"] == {"margin": "two runs"}
    assert bare.gate("floor", "--margin", "1", "--write").code == 0
    assert held(bare)["margin"] == 1


def test_a_margin_that_leaves_nothing_says_where_it_comes_from(bare: Space) -> None:
    """S5: two runs bound the flips so loosely that a weak retriever gets no floor; the way out is named."""
    for _ in range(2):
        assert bare.measure(bare.losing(20)).code == 0
    done = bare.gate("floor", "--margin", "derived", "--reason", "margin=x", *HIT_ALONE)
    assert (done.code, "7 misses (derived from the flips of the runs) leaves nothing" in done.err) == (
        1,
        True,
    )
    assert "take a fixed margin: --margin 2" in done.err
    assert bare.gate("floor", "--margin", "2", *HIT_ALONE).code == 0


@pytest.mark.parametrize("value", ["-1", "2.0", "1001", "derive", "", "२"])
def test_a_margin_is_a_number_of_misses_or_derived(space: Space, value: str) -> None:
    done = space.gate("floor", "--margin", value)
    assert (done.code, "neither a number of misses from 0 to 1000 nor 'derived'" in done.err) == (2, True)


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
    """S5: a random order of 12 documents has the right one among the first ten in 10 of 12 cases. The way out that is
    named floors the other measures, and the gate then passes."""
    few_documents(bare, documents, hits)
    reaches = stats.binom.sf(hits - 2 - 1, 27, 10 / documents)
    assert reaches > 0.03 if refused else reaches < 0.002
    done = bare.gate("floor", "--write")
    assert (done.code == 1) is refused, done.err
    if refused:
        assert f"a random ranking of the {documents} documents reaches its floor" in done.err
        assert '--reason recall@10="…"' in done.err
        assert not bare.floors.exists()
        assert bare.gate("floor", "--reason", "recall@10=few documents", "--write").code == 0
    assert bare.check().code == 0


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
    line = space.lines()[-1]
    ranks = numpy.random.default_rng(7).integers(1, 41, (50_000, 27))
    for value, expected in zip(numpy.quantile(gain(ranks).mean(axis=1), [0.94, 0.9998]), (1, 0), strict=True):
        bar = Bar(name, None, 27, float(value), None, "floor", 1.0, float(value), None)
        assert len(reached(line, [bar])) == expected


def test_a_bar_is_raised_after_two_better_runs_of_the_present_system(space: Space) -> None:
    """K2: a better system is one measurement first, then a proposal; what was there before fails the new bar."""
    before = held(space)
    space.edit(space.root / "eval.toml", '"jsonl"', '"jsonl"\noptions.timeout = 9')
    assert space.measure({}).code == 0
    assert space.gate("floor").code == 1
    assert space.measure({}).code == 0
    done = space.gate("floor")
    assert (done.code, held(space)) == (0, before)
    assert space.gate("floor", "--write").code == 0
    assert held(space)["misses_allowed"] == {"hit@1": 2}
    assert space.check().code == 0
    space.edit(space.root / "eval.toml", "options.timeout = 9", "options.timeout = 10")
    assert space.measure(space.losing(3)).code == 0
    assert space.check().code == 1


def test_a_better_run_of_the_same_system_raises_nothing_by_itself(space: Space) -> None:
    """K2: floors lie below the worst run that there is, not the best. The runs differ now, so that recall@10 may fall
    by a query, which is more than 2.0 points of 27: looser, and said."""
    assert space.measure({}).code == 0
    done = space.gate("floor", "--write")
    assert (done.code, "recall@10: 0.9800 before, 0.9630 now" in done.err) == (1, True)
    assert space.gate("floor", "--write", "--reason", "floors=the index is random").code == 0
    assert (held(space)["misses_allowed"], len(held(space)["runs"])) == ({"hit@1": 3}, 3)
