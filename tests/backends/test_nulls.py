"""Rankers that understand nothing: each does what its name says, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from eval_backends.nulls import Overlap, Popularity, Random
from eval_core.backend import Backend, Document, Request, make
from eval_core.errors import Misuse


class Documents(list[Document]):
    """A corpus in memory."""

    kind = "test"
    path = Path("nowhere")


def corpus(*texts: str) -> Documents:
    return Documents(
        Document(f"d{number}", "", text, {"kind": "odd" if number % 2 else "even"})
        for number, text in enumerate(texts)
    )


def asked(backend: Backend, documents: Documents, text: str, k: int = 10, **more: Any) -> Sequence[str]:
    backend.index(documents)
    return backend.search(Request(text, k, **more)).ids


TEXTS = ("red apples grow", "red pears", "plums", "red red red", "")


def test_overlap_counts_shared_distinct_words_and_returns_nothing_that_shares_none() -> None:
    """By hand: d0 shares red and apples, d1 and d3 share red, the others none; equal ones stand in id order."""
    assert asked(Overlap(), corpus(*TEXTS), "do red apples RED") == ["d0", "d1", "d3"]
    assert asked(Overlap(), corpus(*TEXTS), "cherry") == []
    assert asked(Overlap(), corpus(*TEXTS), "") == []


def test_popularity_gives_every_query_the_same_documents() -> None:
    """By hand: red stands in 3 documents, each other word in 1: d0 = 3 + 1 + 1, d1 = 3 + 1, d3 = 3, d2 = 1, d4 = 0."""
    for query in ("red", "plums", "", "anything else"):
        assert asked(Popularity(), corpus(*TEXTS), query) == ["d0", "d1", "d3", "d2", "d4"]


def test_random_is_the_same_for_a_seed_and_differs_by_seed_and_query() -> None:
    documents = corpus(*(f"text {number}" for number in range(40)))
    one = asked(Random(), documents, "query")
    assert one == asked(Random(seed=0), Documents(reversed(documents)), "query")
    assert one != asked(Random(seed=1), documents, "query")
    assert one != asked(Random(), documents, "another query")


def test_random_puts_each_document_first_about_equally_often() -> None:
    """Of 2,000 queries over 4 documents each is first 500 times on average, with a standard deviation of 19.4."""
    backend = Random()
    backend.index(corpus("a", "b", "c", "d"))
    first = [backend.search(Request(f"query {number}", 1)).ids[0] for number in range(2000)]
    assert all(abs(first.count(f"d{number}") - 500) < 5 * 19.4 for number in range(4))


@pytest.mark.parametrize("name", ["random", "popularity", "overlap"])
def test_each_is_found_by_name_honours_filters_and_cuts_at_k(name: str) -> None:
    backend = make(name, {})
    whole = asked(backend, corpus(*["same words here"] * 9), "same words", k=9)
    assert len(whole) == 9
    assert asked(backend, corpus(*["same words here"] * 9), "same words", k=4) == whole[:4]
    odd = asked(backend, corpus(*["same words here"] * 9), "same words", filter={"kind": "odd"})
    assert sorted(odd) == ["d1", "d3", "d5", "d7"]
    assert odd == [document for document in whole if document in odd]
    backend.close()
    backend.close()


@pytest.mark.parametrize("seed", [True, "1", 1.0, -1])
def test_a_seed_that_is_no_whole_number_is_refused(seed: object) -> None:
    with pytest.raises(Misuse, match="seed"):
        make("random", {"seed": seed})
