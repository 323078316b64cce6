"""What a random ranking scores on average, in closed form, against the mean over all orders of a small corpus."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from statistics import fmean

import pytest
from evidence_support import line

from eval_core.policy.chance import expected, expected_mean, reached_on_average
from eval_core.scoring import metrics

MEASURES = (
    "recall@1", "recall@2", "recall@5", "recall_cap@2", "recall_cap@5", "precision@2", "precision@5", "rprec",
    "hit@1", "hit@3", "all@2", "all@3", "all@5", "mrr", "mrr@2", "map", "map@2", "ndcg", "ndcg@2", "ndcg@3",
    "ndcg@3(gain=exp)",
)  # fmt: skip


def by_force(measure: str, grades: Sequence[int], documents: int, limit: int) -> float:
    """The mean over every order of the documents, of which the first ones have the grades."""
    values = []
    for order in itertools.permutations(range(documents)):
        places = {document: rank for rank, document in enumerate(order[:limit], 1)}
        pairs = [(grade, places.get(document)) for document, grade in enumerate(grades)]
        values.append(metrics.score(pairs, [measure], min(limit, documents))[measure])
    return fmean(values)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    ("grades", "documents", "limit"),
    [([1], 5, 5), ([2, 1], 6, 3), ([1, 1, 1], 6, 4), ([3, 2, 1, 1], 6, 6), ([1, 1], 2, 5), ([1], 1, 1)],
    ids=str,
)
def test_chance_is_the_mean_over_all_orders(
    measure: str, grades: list[int], documents: int, limit: int
) -> None:
    parsed = metrics.parse(measure)
    found = expected(parsed, grades, documents, limit)
    assert found == pytest.approx(by_force(measure, grades, documents, limit), abs=1e-12)


def test_judged_has_no_closed_form_and_a_query_without_relevant_documents_scores_nothing() -> None:
    assert expected(metrics.parse("judged@5"), [1], 5, 5) is None
    assert expected(metrics.parse("mrr"), [], 5, 5) == 0.0


def test_the_mean_is_over_the_queries_of_the_slice_and_the_documents_that_each_may_find() -> None:
    """By hand: recall@10 is 10 / N; q000 may find 20 documents, q001 all of the 100."""
    run = line([1, 2], documents=100, categories=["x", "y"])
    narrow = run.entries[0].model_copy(update={"candidates": 20})
    run = run.model_copy(update={"entries": (narrow, run.entries[1])})
    assert expected_mean(run, "recall@10") == pytest.approx((10 / 20 + 10 / 100) / 2)
    assert expected_mean(run, "recall@10", "y") == pytest.approx(0.1)
    assert reached_on_average(run, "recall@10", 0.3)
    assert not reached_on_average(run, "recall@10", 0.301)
    assert not reached_on_average(run, "judged@10", 0.0)
