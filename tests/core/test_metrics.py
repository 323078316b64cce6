"""Measures: worked by hand, equal to trec_eval's, bounded, and monotone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from eval_core.errors import Misuse
from eval_core.scoring import metrics
from eval_core.sets.dataset import load

CUTOFFS = (1, 3, 5, 10)
NAMES = metrics.names(CUTOFFS)

# ndcg discounts by hand: 1/log2(rank + 1).
D1, D2, D3, D4 = 1.0, 1 / math.log2(3), 0.5, 1 / math.log2(5)

HAND: Mapping[str, tuple[list[tuple[int, int | None]], dict[str, float]]] = {
    "the only relevant document first": (
        [(1, 1)],
        {"recall@1": 1, "precision@1": 1, "hit@1": 1, "all@1": 1, "ndcg@1": 1, "mrr": 1, "map": 1}
        | {"precision@3": 1 / 3, "precision@10": 0.1},
    ),
    "at rank 2": (
        [(1, 2)],
        {"recall@1": 0, "hit@1": 0, "ndcg@1": 0, "recall@3": 1, "hit@3": 1, "all@3": 1, "ndcg@3": D2}
        | {"mrr": 1 / 2, "map": 1 / 2},
    ),
    "beyond the largest cut-off, within the limit": (
        [(1, 12)],
        {"recall@10": 0, "hit@10": 0, "ndcg@10": 0, "mrr": 1 / 12, "map": 1 / 12},
    ),
    "not retrieved": ([(1, None)], dict.fromkeys(metrics.names(CUTOFFS), 0)),
    # Recall is not hit, nor is it capped by k: one of four relevant in the top 1 is a quarter.
    "one of four relevant": (
        [(1, 1), (1, None), (1, None), (1, None)],
        {"recall@1": 1 / 4, "recall@10": 1 / 4, "hit@1": 1, "all@10": 0, "mrr": 1, "map": 1 / 4},
    ),
    # Average precision divides by all relevant, not by those found: 1 of 2 at rank 1 is 0.5.
    "one of two relevant at rank 1": ([(1, 1), (1, None)], {"map": 1 / 2, "ndcg@3": D1 / (D1 + D2)}),
    "two relevant at ranks 1 and 3": (
        [(1, 1), (1, 3)],
        {
            "recall@1": 1 / 2,
            "recall@3": 1,
            "precision@3": 2 / 3,
            "all@1": 0,
            "all@3": 1,
            "map": (1 + 2 / 3) / 2,
        }
        | {"ndcg@3": (D1 + D3) / (D1 + D2)},
    ),
    "graded, the better one second": (
        [(3, 2), (1, 1)],
        {"recall@1": 1 / 2, "ndcg@1": 1 / 3, "ndcg@3": (1 * D1 + 3 * D2) / (3 * D1 + 1 * D2), "mrr": 1},
    ),
    # The ideal is over all judgements, cut at k, and not over what was retrieved.
    "the ideal counts what was not retrieved": (
        [(2, 1), (2, None), (1, None)],
        {"ndcg@1": 1, "ndcg@3": 2 * D1 / (2 * D1 + 2 * D2 + 1 * D3)},
    ),
    "a document of grade 0 above is no gain": (
        [(0, 1), (1, 2)],
        {"hit@1": 0, "mrr": 1 / 2, "ndcg@3": D2, "map": 1 / 2},
    ),
    "only grade 0": ([(0, 1), (0, None)], dict.fromkeys(metrics.names(CUTOFFS), 0)),
    # Nothing relevant: all() of nothing would be true.
    "nothing judged": ([], dict.fromkeys(metrics.names(CUTOFFS), 0)),
}


@pytest.mark.parametrize("case", HAND)
def test_values_worked_by_hand(case: str) -> None:
    """A3: recall is found / relevant, MRR and nDCG as defined in the module."""
    pairs, expected = HAND[case]
    values = metrics.score(pairs, NAMES)
    assert list(values) == metrics.names(CUTOFFS)
    assert {name: values[name] for name in expected} == pytest.approx(expected, abs=1e-15)


def test_the_measures_of_cutoffs_in_their_order() -> None:
    assert metrics.names((1, 5)) == [
        *("recall@1", "recall@5", "precision@1", "precision@5", "hit@1", "hit@5", "all@1", "all@5"),
        *("ndcg@1", "ndcg@5", "mrr", "map"),
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("recall@10", ("recall", 10, "lin", 1)),
        ("recall_cap@100", ("recall_cap", 100, "lin", 1)),
        ("hit@1", ("hit", 1, "lin", 1)),
        ("rprec", ("rprec", None, "lin", 1)),
        ("mrr", ("mrr", None, "lin", 1)),
        ("mrr@10", ("mrr", 10, "lin", 1)),
        ("map", ("map", None, "lin", 1)),
        ("ndcg@10(gain=exp)", ("ndcg", 10, "exp", 1)),
    ],
)
def test_a_measure_is_a_value_that_prints_as_its_name(
    name: str, expected: tuple[str, int | None, str, int]
) -> None:
    """A3: parsed, printed and compared by name."""
    assert metrics.parse(name) == expected
    assert str(metrics.parse(name)) == name
    assert metrics.parse(name) == metrics.Measure(*expected)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("recal@10", "did you mean 'recall@10'?"),
        ("recal@5", "did you mean 'recall@5'?"),
        ("recall", "did you mean 'recall@10'?"),
        ("recall@0", "did you mean 'recall@10'?"),
        ("recall@05", ""),
        ("recall@-1", ""),
        ("recall@1.0", ""),
        ("recall@١", ""),
        ("rprec@10", "did you mean 'rprec'?"),
        ("nDCG@10", "did you mean 'ndcg@10'?"),
        ("ndcg@10(gain=expo)", "did you mean 'ndcg@10(gain=exp)'?"),
        ("recall@10(gain=exp)", ""),
        ("ndcg@10(gain=lin", ""),
        ("NDCG@10", "did you mean 'ndcg@10'?"),
        ("P_5", "did you mean 'precision@5'?"),
        ("RR@20", "did you mean 'mrr@20'?"),
        ("recip_rank", "did you mean 'mrr'?"),
        ("ndcg_cut_10", "did you mean 'ndcg@10'?"),
        ("", ""),
        ("recall@10\n", ""),
        # What is told as near is never refused in its turn.
        ("recall_1000000000", "did you mean 'recall@10'?"),
    ],
)
def test_another_name_is_no_measure_and_the_nearest_is_told(name: str, near: str) -> None:
    with pytest.raises(Misuse) as caught:
        metrics.parse(name)
    assert near in str(caught.value)
    assert "(known: recall@" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "binary"), [("hit@3", True), ("all@3", True), ("recall@1", False), ("mrr", False)]
)
def test_hit_and_all_are_counted_in_misses(name: str, binary: bool) -> None:
    assert metrics.is_binary(name) is binary


# --------------------------------------------------------------------------------------------- trec_eval

ORACLE = {"recall": "recall", "precision": "P", "hit": "success", "ndcg": "ndcg_cut"}


def oracle(ranking: Sequence[str], grades: Mapping[str, int], cutoffs: Sequence[int]) -> dict[str, float]:
    """trec_eval's values under our names. Scores fall strictly, and float32 holds them exactly."""
    at = ",".join(map(str, cutoffs))
    evaluator = pytrec_eval.RelevanceEvaluator(
        {"q": dict(grades)}, {*(f"{name}.{at}" for name in ORACLE.values()), "recip_rank", "map"}
    )
    run = {document: float(len(ranking) - place) for place, document in enumerate(ranking)}
    found: dict[str, Any] = evaluator.evaluate({"q": run})["q"]
    values = {f"{ours}@{k}": found[f"{theirs}_{k}"] for ours, theirs in ORACLE.items() for k in cutoffs}
    return values | {"mrr": found["recip_rank"], "map": found["map"]}


def ours(ranking: Sequence[str], grades: Mapping[str, int], cutoffs: Sequence[int]) -> dict[str, float]:
    ranks = metrics.judged_ranks(ranking, grades)
    values = metrics.score(
        [(grade, ranks.get(document)) for document, grade in grades.items()], metrics.names(cutoffs)
    )
    return {name: value for name, value in values.items() if not name.startswith("all@")}


DOCUMENTS = [f"d{number}" for number in range(40)]


@st.composite
def judged_rankings(draw: st.DrawFn) -> tuple[list[str], dict[str, int]]:
    ranking = draw(st.lists(st.sampled_from(DOCUMENTS), min_size=1, max_size=30, unique=True))
    return ranking, draw(
        st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 4), min_size=1, max_size=20)
    )


@given(judged_rankings(), st.lists(st.integers(1, 35), min_size=1, max_size=4, unique=True).map(sorted))
def test_equal_to_trec_eval_on_any_ranking(
    case: tuple[list[str], dict[str, int]], cutoffs: list[int]
) -> None:
    """A3, to 1e-12: recall, precision, hit, nDCG, MRR and MAP, with grades, and k beyond the list."""
    assert ours(*case, cutoffs) == pytest.approx(oracle(*case, cutoffs), abs=1e-12)


def bm25_rankings(folder: Path, depth: int) -> tuple[dict[str, list[str]], Mapping[str, Mapping[str, int]]]:
    """Real rankings of a BEIR folder, by the BM25 backend."""
    from eval_backends.bm25 import BM25
    from eval_core.backend import Request

    loaded = load(folder)
    backend = BM25()
    backend.index(loaded.corpus)
    found = {query.id: list(backend.search(Request(query.text, depth)).ids) for query in loaded.queries}
    backend.close()
    return found, loaded.judgements


def assert_equal_on(folder: Path, depth: int) -> None:
    rankings, judgements = bm25_rankings(folder, depth)
    cutoffs = (1, 5, 10, depth)
    compared = 0
    for name, grades in judgements.items():
        if rankings[name]:
            expected = oracle(rankings[name], grades, cutoffs)
            assert ours(rankings[name], grades, cutoffs) == pytest.approx(expected, abs=1e-12), name
            compared += 1
    assert compared > 50


def test_equal_to_trec_eval_on_cranfield(shared_data: Callable[[str], Path]) -> None:
    """A3, on 225 real queries, ranked by BM25, 225 judgements of grade 0 among them."""
    assert_equal_on(shared_data("beir/cranfield"), 100)


def test_equal_to_trec_eval_on_the_memory_set() -> None:
    """A3, on our own queries, ranked by BM25."""
    assert_equal_on(Path(__file__).resolve().parents[2] / "datasets" / "memory", 10)


# --------------------------------------------------------------------------------------------- properties


@given(judged_rankings())
def test_every_measure_lies_between_0_and_1(case: tuple[list[str], dict[str, int]]) -> None:
    ranking, grades = case
    ranks = metrics.judged_ranks(ranking, grades)
    for value in metrics.score([(g, ranks.get(d)) for d, g in grades.items()], NAMES).values():
        assert 0 <= value <= 1


@given(judged_rankings(), st.data())
def test_a_relevant_document_that_moves_up_lowers_nothing(
    case: tuple[list[str], dict[str, int]], data: st.DataObject
) -> None:
    """Past a document that is no more relevant than it."""
    ranking, grades = case
    if len(ranking) < 2:
        return
    place = data.draw(st.integers(1, len(ranking) - 1))
    above, mover = ranking[place - 1], ranking[place]
    if grades.get(mover, 0) < grades.get(above, 0):
        above, mover = mover, above  # then it stands right, and the other order is the worse one
    worse = [*ranking[: place - 1], above, mover, *ranking[place + 1 :]]
    better = [*ranking[: place - 1], mover, above, *ranking[place + 1 :]]

    def values(order: list[str]) -> dict[str, float]:
        ranks = metrics.judged_ranks(order, grades)
        return metrics.score([(g, ranks.get(d)) for d, g in grades.items()], NAMES)

    before, after = values(worse), values(better)
    for name in before:
        if name.startswith(("ndcg", "recall", "precision", "hit", "all")) or grades.get(above, 0) == 0:
            assert after[name] >= before[name] - 1e-12, name


@given(judged_rankings(), st.randoms())
def test_the_order_of_the_judgements_does_not_matter(
    case: tuple[list[str], dict[str, int]], random: Any
) -> None:
    ranking, grades = case
    ranks = metrics.judged_ranks(ranking, grades)
    pairs = [(grade, ranks.get(document)) for document, grade in grades.items()]
    before = metrics.score(pairs, NAMES)
    random.shuffle(pairs)
    assert metrics.score(pairs, NAMES) == before


@given(judged_rankings())
def test_what_is_asked_deeper_does_not_change_the_shallow_measures(
    case: tuple[list[str], dict[str, int]],
) -> None:
    """k = 3 is a prefix of k = 20: a measure at 3 needs nothing below rank 3."""
    ranking, grades = case
    whole, short = (ours(order, grades, (1, 3)) for order in (ranking, ranking[:3]))
    for name in whole:
        if "@" in name:
            assert whole[name] == short[name]


# --------------------------------------------------------------------------------------------- means, percentiles


def test_a_mean_does_not_depend_on_the_order() -> None:
    values = [0.1] * 10 + [1e16, 1.0, -1e16]
    assert metrics.mean(values) == metrics.mean(values[::-1]) == pytest.approx(2 / 13)
    assert metrics.mean([]) == 0


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([1.0], 0.5, 1),
        ([2.0, 1.0], 0.5, 1),  # the smaller: half of the samples lie at or below it
        ([3.0, 1.0, 2.0], 0.5, 2),
        ([float(n) for n in range(1, 21)], 0.95, 19),
        ([float(n) for n in range(1, 22)], 0.95, 20),
        ([float(n) for n in range(1, 101)], 0.95, 95),
        ([float(n) for n in range(1, 101)], 0.07, 7),  # 0.07 * 100 is 7.000000000000001
        ([1.0, 2.0], 1.0, 2),
        ([1.0, 2.0], 0.001, 1),
    ],
)
def test_a_percentile_is_the_nearest_rank(values: list[float], share: float, expected: float) -> None:
    assert metrics.percentile(values, share) == expected


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=200), st.integers(1, 100))
def test_a_percentile_is_the_smallest_sample_that_covers_its_share(values: list[float], percent: int) -> None:
    found = metrics.percentile(values, percent / 100)
    assert found in values
    assert sum(v <= found for v in values) * 100 >= percent * len(values)
    assert sum(v < found for v in values) * 100 < percent * len(values)


@pytest.mark.parametrize(
    ("values", "share"), [([], 0.5), ([1.0], 0), ([1.0], 1.1), ([1.0], -1), ([1.0], math.nan)]
)
def test_a_percentile_of_nothing_or_beyond_all_is_refused(values: list[float], share: float) -> None:
    with pytest.raises(ValueError, match="needs samples"):
        metrics.percentile(values, share)


@pytest.mark.parametrize(
    ("judged", "retrieved", "cutoff", "rank", "expected"),
    [
        ([1], 10, 10, 1, (0, 0)),
        ([4], 10, 10, 4, (3, 3)),
        ([2, 4, None], 10, 10, 4, (3, 2)),
        ([1, 2, 3], 10, 3, None, (3, 0)),
        ([12], 20, 10, 12, (10, 10)),
        ([], 4, 10, None, (4, 4)),
        ([1], 7, None, None, (7, 6)),
        ([], 0, 10, None, (0, 0)),
    ],
)
def test_the_unjudged_answers_above_a_document_are_counted(
    judged: list[int | None], retrieved: int, cutoff: int | None, rank: int | None, expected: tuple[int, int]
) -> None:
    assert metrics.unjudged_above(judged, retrieved, cutoff, rank) == expected
