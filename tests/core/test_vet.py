"""What a backend answered: made sound and counted, or told why it is an error."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_core.backend import Reply
from eval_core.measuring.answers import Answer, vet

CORPUS = {f"d{number}" for number in range(30)}


def outside(document: str) -> str | None:
    return None if document in CORPUS else "is not in the corpus"


def check(ids: Any, scores: Any = None, limit: int = 3, exclude: tuple[str, ...] = ()) -> Answer | str:
    return vet(Reply(ids, scores), limit, exclude, outside)


@pytest.mark.parametrize(
    ("ids", "scores", "exclude", "expected"),
    [
        ([], None, (), Answer((), None, 0, 0)),
        ([], [], (), Answer((), (), 0, 0)),
        (["d1", "d2"], None, (), Answer(("d1", "d2"), None, 0, 0)),
        (("d1",), (2,), (), Answer(("d1",), (2.0,), 0, 0)),
        # A repeated id: the first stands, and none can count twice.
        (["d1", "d1", "d2", "d1"], None, (), Answer(("d1", "d2"), None, 2, 0)),
        (["d1", "d1", "d2"], [3, 2, 1], (), Answer(("d1", "d2"), (3.0, 1.0), 1, 0)),
        # More than was asked for: cut and counted, duplicates apart.
        (["d1", "d2", "d3", "d4", "d5"], None, (), Answer(("d1", "d2", "d3"), None, 0, 2)),
        (["d1", "d1", "d2", "d3", "d4"], None, (), Answer(("d1", "d2", "d3"), None, 1, 1)),
        # Excluded ids go before the cut, so that limit documents are left; they were asked for on top.
        (["d0", "d1", "d2", "d3"], None, ("d0",), Answer(("d1", "d2", "d3"), None, 0, 0)),
        (["d1", "d2", "d3", "d4"], None, ("d0",), Answer(("d1", "d2", "d3"), None, 0, 0)),
        (["d1", "d2", "d3", "d4", "d5"], None, ("d0",), Answer(("d1", "d2", "d3"), None, 0, 1)),
        # Equal scores stand in the order of their ids, whatever the backend made of them, before the cut.
        (["d3", "d2", "d1"], [1, 1, 1], (), Answer(("d1", "d2", "d3"), (1.0, 1.0, 1.0), 0, 0, True)),
        (["d9", "d8", "d7", "d1"], [2, 1, 1, 1], (), Answer(("d9", "d1", "d7"), (2.0, 1.0, 1.0), 0, 1, True)),
        (["d1", "d1", "d2"], [1, 1, 1], (), Answer(("d1", "d2"), (1.0, 1.0), 1, 0)),
        (["d2", "d10"], [1, 1], (), Answer(("d10", "d2"), (1.0, 1.0), 0, 0, True)),
        (["d2", "d1"], [0.0, -0.0], (), Answer(("d1", "d2"), (-0.0, 0.0), 0, 0, True)),
        # Without scores, the order is the backend's.
        (["d3", "d1", "d2"], None, (), Answer(("d3", "d1", "d2"), None, 0, 0)),
        (["d1", "d2"], [-1, -2], (), Answer(("d1", "d2"), (-1.0, -2.0), 0, 0)),
    ],
)
def test_an_answer_is_made_sound(ids: Any, scores: Any, exclude: tuple[str, ...], expected: Answer) -> None:
    """A1: duplicates and over-long lists. M5: equal scores are ordered by document id before scoring."""
    assert check(ids, scores, exclude=exclude) == expected


@pytest.mark.parametrize(
    ("ids", "scores", "told"),
    [
        (["d1", "d2"], [1, 2], "scores rise from 1.0 to 2.0; the best comes first"),
        (["d1", "d2"], [1, math.nan], "score nan is not a finite number"),
        (["d1"], [math.inf], "score inf is not a finite number"),
        (["d1"], [-math.inf], "score -inf is not a finite number"),
        (["d1"], [10**400], "score 1000"),
        (["d1"], [True], "score True is not a finite number"),
        (["d1"], ["1.0"], "score '1.0' is not a finite number"),
        (["d1"], [None], "score None is not a finite number"),
        (["d1"], [1j], "score 1j is not a finite number"),
        (["d1"], [Decimal(1)], "score Decimal('1') is not a finite number"),
        (["d1"], [], "1 ids with 0 scores"),
        (["d1"], [2, 1], "1 ids with 2 scores"),
        (["d1"], 1.0, "scores 1.0 are not a list"),
        (["d1"], "1", "scores '1' are not a list"),
        (["d1", "elsewhere"], None, "id 'elsewhere' is not in the corpus"),
        (["d1", "d2", "d3", "d4", "elsewhere"], None, "id 'elsewhere' is not in the corpus"),
        (["d1", "D1"], None, "id 'D1' is not in the corpus"),
        ([1], None, "id 1 is not a text"),
        ([None], None, "id None is not a text"),
        ([["d1"]], None, "id ['d1'] is not a text"),
        ([{"id": "d1"}], None, "id {'id': 'd1'} is not a text"),
        ([b"d1"], None, "id b'd1' is not a text"),
        ([-1], None, "id -1 is not a text"),
        ("d1", None, "ids 'd1' are not a list"),
        (None, None, "ids None are not a list"),
        (7, None, "ids 7 are not a list"),
    ],
)
def test_an_answer_that_cannot_be_meant_is_an_error(ids: Any, scores: Any, told: str) -> None:
    """A1: garbage has a defined outcome."""
    found = check(ids, scores)
    assert isinstance(found, str)
    assert found.startswith(told)


@pytest.mark.parametrize(
    "number", [np.float32(1.5), np.float64(1.5), np.float16(1.5), np.int64(1), Fraction(3, 2)]
)
def test_numbers_of_other_libraries_are_numbers(number: Any) -> None:
    answer = check(["d1"], [number])
    assert isinstance(answer, Answer)
    assert answer.scores == (float(number),)
    assert type(answer.scores[0]) is float


def test_arrays_are_lists() -> None:
    answer = check(np.array(["d2", "d1"]), np.array([2.0, 1.0], dtype=np.float32))
    assert answer == Answer(("d2", "d1"), (2.0, 1.0), 0, 0)


def test_scores_that_single_precision_cannot_tell_apart_are_ties() -> None:
    """16777217 is 16777216 in float32: the order of the backend would be chance, so it is that of the ids."""
    scores = np.array([16777217, 16777216], dtype=np.float32)
    answer = check(["d2", "d1"], scores)
    assert isinstance(answer, Answer)
    assert answer.ids == ("d1", "d2")
    double = check(["d2", "d1"], [16777217.0, 16777216.0])
    assert isinstance(double, Answer)
    assert double.ids == ("d2", "d1")


@given(
    st.lists(st.tuples(st.sampled_from(sorted(CORPUS)), st.integers(-3, 3)), max_size=40),
    st.integers(1, 12),
    st.lists(st.sampled_from(sorted(CORPUS)), max_size=4, unique=True),
    st.booleans(),
)
def test_a_sound_answer_is_always_distinct_short_ordered_and_accounted_for(
    pairs: list[tuple[str, int]], limit: int, exclude: list[str], scored: bool
) -> None:
    pairs = sorted(pairs, key=lambda pair: -pair[1])
    ids = [name for name, _ in pairs]
    scores = [score for _, score in pairs] if scored else None
    answer = check(ids, scores, limit, tuple(exclude))
    assert isinstance(answer, Answer)
    assert len(set(answer.ids)) == len(answer.ids) <= limit
    assert not set(answer.ids) & set(exclude)
    assert answer.duplicates == len(ids) - len(set(ids))
    assert answer.excess == max(0, len(set(ids)) - limit - len(exclude))
    firsts = list(dict.fromkeys(ids))
    if answer.scores is None:
        # A subsequence of the answer: nothing is reordered.
        places = [firsts.index(name) for name in answer.ids]
        assert places == sorted(places)
    else:
        keys = [(-score, name) for name, score in zip(answer.ids, answer.scores, strict=True)]
        assert keys == sorted(keys)
        best = {name: max(s for n, s in pairs if n == name) for name in answer.ids}
        assert list(answer.scores) == [best[name] for name in answer.ids]
    if len(set(ids) - set(exclude)) >= limit and answer.excess == 0:
        assert len(answer.ids) == limit


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.integers(1, 10))
def test_a_shorter_answer_is_the_beginning_of_a_longer_one(scores: list[int], limit: int) -> None:
    """However ties are broken, k = 3 is a prefix of k = 20."""
    ids = sorted(CORPUS)[: len(scores)]
    scores.sort(reverse=True)
    short, long = check(ids, scores, limit), check(ids, scores, 20)
    assert isinstance(short, Answer)
    assert isinstance(long, Answer)
    assert short.ids == long.ids[:limit]


@given(st.permutations([f"d{number}" for number in range(6)]))
def test_a_backend_that_scores_all_alike_gains_nothing_by_its_order(ids: list[str]) -> None:
    expected = check(sorted(ids), [1.0] * 6)
    assert isinstance(expected, Answer)
    assert check(ids, [1.0] * 6) == replace(expected, reordered=ids != sorted(ids))
