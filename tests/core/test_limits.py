"""What a set's numbers cannot show, measured from its texts and labels alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_core.backend import Document
from eval_core.sets.limits import Limits
from eval_core.sets.scan import look, scan

LONG = "one two three four five six seven eight nine ten eleven twelve"


def limits(
    documents: Mapping[str, str],
    queries: Sequence[tuple[str, str, Mapping[str, object]]],
    judgements: Mapping[str, Mapping[str, int]],
) -> Limits:
    corpus = [Document(name, "", text) for name, text in documents.items()]
    return scan(corpus, queries, judgements)


def test_overlap_is_the_share_of_the_querys_distinct_words_in_its_best_target() -> None:
    """A6: by hand: q1 has 2 of its 4 words in d1 and 1 in d2; q2 has both; q3 none."""
    found = limits(
        {"d1": "red Apples grow", "d2": "red pears", "d3": "plums"},
        [
            ("q1", "do red apples fly", {"category": "a", "source": "docstring"}),
            ("q2", "PEARS, red pears!", {"category": "a", "source": "agent"}),
            ("q3", "cherry", {"category": "b", "source": "agent"}),
        ],
        {"q1": {"d1": 1, "d2": 2}, "q2": {"d2": 1}, "q3": {"d3": 1}},
    )
    assert found.overlap.mean == pytest.approx((0.5 + 1.0 + 0.0) / 3)
    assert found.overlap.whole == pytest.approx(1 / 3)
    assert found.overlap.none == pytest.approx(1 / 3)
    assert found.sources == {"agent": 2, "docstring": 1}
    assert found.categories == {"a": 2, "b": 1}


def test_words_of_an_unjudged_or_irrelevant_document_do_not_count_as_overlap() -> None:
    found = limits(
        {"d1": "nothing", "d2": "apples", "d3": "apples"}, [("q", "apples", {})], {"q": {"d1": 1, "d2": 0}}
    )
    assert found.overlap.mean == 0.0


@pytest.mark.parametrize(
    ("queries", "one", "five"), [(1, 100.0, 500.0), (24, 100 / 24, 500 / 24), (120, 100 / 120, 500 / 120)]
)
def test_the_smallest_change_is_five_queries(queries: int, one: float, five: float) -> None:
    """A6: by McNemar's mid-p, two-sided, four queries that are all lost have 1 / 2^4 = 0.0625, five have 0.03125."""
    found = limits(
        {"d": "x"}, [(f"q{i}", "x", {}) for i in range(queries)], {f"q{i}": {"d": 1} for i in range(queries)}
    )
    assert found.queries == queries
    assert found.one_query_points == pytest.approx(one)
    assert found.smallest_change_points == pytest.approx(five)


@pytest.mark.parametrize(
    ("query", "metadata", "leaks"),
    [
        ("four five six seven", {}, 1),
        ("Four, FIVE: six-seven?", {}, 1),
        ("four five six eight", {}, 0),
        ("five six seven", {}, 0),
        (LONG, {}, 1),
        ("twelve thirteen fourteen fifteen", {}, 0),
        ("four five six seven", {"exclude": ["d"]}, 0),
    ],
)
def test_a_query_that_stands_word_for_word_in_a_document_is_a_leak(
    query: str, metadata: Mapping[str, object], leaks: int
) -> None:
    """A6: of four words or more, and not in the document that the query itself was taken from."""
    found = limits({"d": f"before {LONG} after", "e": "other"}, [("q", query, metadata)], {"q": {"e": 1}})
    assert found.leaks == leaks
    assert found.leaked == (("q",) if leaks else ())


def test_a_near_duplicate_of_a_judged_document_that_is_not_judged_is_named() -> None:
    """A6: of 12 words, 8 runs of five; a changed last word leaves 7 of 9 in common, 0.78; the same text 1."""
    documents = {
        "d": LONG,
        "same": LONG.upper(),
        "almost": LONG.replace("twelve", "dozen"),
        "other": "one two three",
    }
    corpus = [Document(name, "", text) for name, text in documents.items()]
    found, near = look(corpus, [("q", "x", {})], {"q": {"d": 1}})
    assert [(pair.judged, pair.unjudged) for pair in near] == [("d", "same")]
    assert found.near_duplicates == 1
    judged = limits(documents, [("q", "x", {})], {"q": {"d": 1, "same": 1}})
    assert judged.near_duplicates == 0
    excluded = limits(documents, [("q", "x", {"exclude": ["same"]})], {"q": {"d": 1}})
    assert excluded.near_duplicates == 0


def test_a_set_without_a_positive_judgement_has_limits_of_zero() -> None:
    found = limits({"d": "x"}, [("q", "x", {})], {})
    assert (found.queries, found.one_query_points, found.overlap.mean) == (0, 0.0, 0.0)


WORDS = st.lists(st.sampled_from("abcde"), min_size=1, max_size=12).map(" ".join)


@given(st.lists(WORDS, min_size=1, max_size=6), st.lists(WORDS, min_size=1, max_size=5))
def test_leaks_are_what_a_plain_search_finds(texts: list[str], queries: list[str]) -> None:
    found = limits(
        {f"d{i}": text for i, text in enumerate(texts)},
        [(f"q{i}", query, {}) for i, query in enumerate(queries)],
        {f"q{i}": {"d0": 1} for i in range(len(queries))},
    )
    leaks = sum(
        len(query.split()) >= 4 and any(f" {query} " in f" {text} " for text in texts) for query in queries
    )
    assert found.leaks == leaks
