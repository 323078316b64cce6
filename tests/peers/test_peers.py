"""Where ranx and ir_measures agree with trec_eval, ours agrees with them. `nox -s peers` installs both."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from peers_support import Qrels, Run, Values, generated, of_ir_measures, of_ranx, ours, ranked_by_bm25

irm = pytest.importorskip("ir_measures", reason="ir_measures is installed by `nox -s peers`")
ranx = pytest.importorskip("ranx", reason="ranx is installed by `nox -s peers`")

# numba warns of casts in what ranx has it compile.
pytestmark = pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaTypeSafetyWarning")

DATASETS = Path(__file__).resolve().parents[2] / "datasets"
CUTOFFS = (1, 5, 10, 60)

#: Our names and ranx's.
RANX = {
    **{f"recall@{k}": f"recall@{k}" for k in CUTOFFS},
    **{f"precision@{k}": f"precision@{k}" for k in CUTOFFS},
    **{f"hit@{k}": f"hit_rate@{k}" for k in CUTOFFS},
    **{f"mrr@{k}": f"mrr@{k}" for k in CUTOFFS},
    **{f"map@{k}": f"map@{k}" for k in CUTOFFS},
    **{f"ndcg@{k}": f"ndcg@{k}" for k in CUTOFFS},
    **{f"ndcg@{k}(gain=exp)": f"ndcg_burges@{k}" for k in CUTOFFS},
    "mrr": "mrr",
    "map": "map",
    "ndcg": "ndcg",
    "rprec": "r-precision",
}

#: Our names and ir_measures's values.
GAINS = {grade: 2**grade - 1 for grade in range(1, 5)}
IR_MEASURES = {
    **{f"recall@{k}": irm.R @ k for k in CUTOFFS},
    **{f"precision@{k}": irm.P @ k for k in CUTOFFS},
    **{f"hit@{k}": irm.Success @ k for k in CUTOFFS},
    **{f"mrr@{k}": irm.RR @ k for k in CUTOFFS},
    **{f"map@{k}": irm.AP @ k for k in CUTOFFS},
    **{f"ndcg@{k}": irm.nDCG @ k for k in CUTOFFS},
    **{f"judged@{k}": irm.Judged @ k for k in CUTOFFS},
    "mrr": irm.RR,
    "map": irm.AP,
    "ndcg": irm.nDCG,
    "rprec": irm.Rprec,
    **{f"ndcg@{k}(gain=exp)": irm.nDCG(gains=GAINS) @ k for k in CUTOFFS},
}


def assert_equal(found: Values, expected: Values) -> None:
    assert list(found) == list(expected)
    for query, values in expected.items():
        assert found[query] == pytest.approx(values, abs=1e-12), query


def assert_equal_to_both(run: Run, qrels: Qrels) -> None:
    theirs = of_ranx(ranx, run, qrels, list(RANX.values()))
    under_our_names = {q: {name: values[RANX[name]] for name in RANX} for q, values in theirs.items()}
    assert_equal(ours(run, qrels, *RANX), under_our_names)
    assert_equal(ours(run, qrels, *IR_MEASURES), of_ir_measures(irm, run, qrels, IR_MEASURES))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_equal_on_generated_runs(seed: int) -> None:
    """A3, to 1e-12: no ties, no query unanswered; grades 0 to 4, cut-offs beyond the ranking."""
    assert_equal_to_both(*generated(seed))


@pytest.mark.parametrize(("name", "queries"), [("memory", 50), ("dedupe", 20)])
def test_equal_on_our_sets_ranked_by_bm25(name: str, queries: int) -> None:
    """A3, to 1e-12."""
    run, qrels = ranked_by_bm25(DATASETS / name, 100)
    assert len(run) >= queries
    assert_equal_to_both(run, qrels)


@pytest.mark.parametrize(("name", "queries"), [("cranfield", 200), ("cisi", 70), ("med", 30)])
def test_equal_on_published_sets_ranked_by_bm25(
    shared_data: Callable[[str], Path], name: str, queries: int
) -> None:
    """A3, to 1e-12."""
    run, qrels = ranked_by_bm25(shared_data(f"beir/{name}"), 100)
    assert len(run) >= queries
    assert_equal_to_both(run, qrels)


def test_an_unanswered_query_counts_0_as_in_ir_measures() -> None:
    run, qrels = generated(4)
    del run["q003"], run["q017"]
    assert_equal(ours(run, qrels, *IR_MEASURES), of_ir_measures(irm, run, qrels, IR_MEASURES))


def test_judged_divides_by_what_is_ranked_as_in_ir_measures() -> None:
    """judged@10 of two ranked documents, one of them judged, is a half and not a tenth."""
    run, qrels = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 0, "c": 1}}
    measures = {"judged@10": irm.Judged @ 10}
    assert (
        ours(run, qrels, "judged@10")
        == of_ir_measures(irm, run, qrels, measures)
        == {"q": {"judged@10": 0.5}}
    )
