"""Where peers are known not to agree with trec_eval, with one another, or with themselves, and what ours does.

Each test shows a row of docs/peers.md on the installed versions: when a peer mends one, the test fails and the page
is due. Those about files read the same file with both. `nox -s peers` installs the peers.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from peers_support import Qrels, Run, letter, ours, scored, scored_files

from eval_core.errors import Misuse
from eval_core.scoring.metrics import parse
from eval_core.scoring.statistics import paired, sign_flip

irm = pytest.importorskip("ir_measures", reason="ir_measures is installed by `nox -s peers`")
ranx = pytest.importorskip("ranx", reason="ranx is installed by `nox -s peers`")
pytrec_eval = pytest.importorskip("pytrec_eval")

pytestmark = pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaTypeSafetyWarning")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "peers.md"
PERFECT: Qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
ONE: Qrels = {"q": {"a": 1}}
TIED: Run = {"q": {"a": 1.0, "b": 1.0, "c": 1.0}}
DUPLICATED = "q Q0 a 1 3.0 r\nq Q0 b 2 2.0 r\nq Q0 a 3 1.0 r\n"


def mrr(run: Run, qrels: Qrels) -> float:
    """Our mean reciprocal rank."""
    return scored(run, qrels, "mrr").mean(parse("mrr"))


def trec(run: Run, qrels: Qrels, measure: str = "recip_rank") -> dict[str, float]:
    """pytrec_eval's value for each query that it returns."""
    rows = pytrec_eval.RelevanceEvaluator(qrels, {measure}).evaluate(run)
    return {query: row[measure] for query, row in rows.items()}


def run_python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=120)


# --------------------------------------------------------------------------------------------- which query is which


def test_ranx_pairs_the_queries_of_dictionaries_by_position() -> None:
    """Both queries are answered perfectly, in the other order: every value is 0, without a word."""
    run = {"q2": {"b": 1.0}, "q1": {"a": 1.0}}
    assert ranx.evaluate(PERFECT, run, ["recall@5", "ndcg@5", "mrr"]) == {
        "recall@5": 0,
        "ndcg@5": 0,
        "mrr": 0,
    }
    assert ranx.evaluate(ranx.Qrels(PERFECT), ranx.Run(run), "mrr") == 1
    assert mrr(run, PERFECT) == 1


def test_pytrec_eval_leaves_an_unanswered_query_out_of_the_mean() -> None:
    """One of two queries is not answered: a mean over what is returned is 1."""
    run = {"q1": {"a": 1.0}}
    assert trec(run, PERFECT) == {"q1": 1}
    assert irm.calc_aggregate([irm.RR], PERFECT, run) == {irm.RR: 0.5}
    found = scored(run, PERFECT, "mrr")
    assert (found.mean(parse("mrr")), found.missing) == (0.5, ["q2"])


@pytest.mark.parametrize("run", [{"q1": {"a": 1.0}}, {"q1": {"a": 1.0}, "q2": {"b": 1.0}, "q3": {"c": 1.0}}])
def test_ranx_takes_no_other_set_of_queries(run: Run) -> None:
    """AssertionError; `make_comparable` mends it for Run and Qrels, and is not heeded for dictionaries."""
    with pytest.raises(AssertionError, match="query ids do not match"):
        ranx.evaluate(ranx.Qrels(PERFECT), ranx.Run(run), "mrr")
    with pytest.raises(AssertionError, match="query ids do not match"):
        ranx.evaluate(PERFECT, run, "mrr", make_comparable=True)
    mended = ranx.evaluate(ranx.Qrels(PERFECT), ranx.Run(run), "mrr", make_comparable=True)
    assert mrr(run, PERFECT) == mended


def test_pytrec_eval_and_ir_measures_differ_on_a_query_without_judgements() -> None:
    """`q2: {}` is dropped by one and counts 0 in the other; ours leaves it out and names it."""
    qrels: Qrels = {"q1": {"a": 1}, "q2": {}}
    run = {"q1": {"a": 1.0}, "q2": {"b": 1.0}}
    assert trec(run, qrels) == {"q1": 1}
    assert irm.calc_aggregate([irm.RR], qrels, run) == {irm.RR: 0.5}
    found = scored(run, qrels, "mrr")
    assert (list(found.queries), found.unscorable) == (["q1"], ["q2"])


def test_peers_count_a_query_with_nothing_relevant_as_0() -> None:
    """Only grade 0 is judged: no ranking could score above 0, yet it lowers their mean. Ours leaves it out, by name."""
    qrels: Qrels = {"q1": {"a": 1}, "q2": {"b": 0}}
    run = {"q1": {"a": 1.0}, "q2": {"b": 1.0}}
    assert trec(run, qrels) == {"q1": 1, "q2": 0}
    assert irm.calc_aggregate([irm.RR], qrels, run) == {irm.RR: 0.5}
    assert ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), "mrr") == 0.5
    found = scored(run, qrels, "mrr")
    assert (found.mean(parse("mrr")), found.unscorable) == (1, ["q2"])


def test_ir_measures_prints_nan_for_no_judgements_and_exits_0(tmp_path: Path) -> None:
    run, qrels = tmp_path / "run.trec", tmp_path / "qrels.trec"
    run.write_text("q Q0 a 1 3.0 r\n", encoding="ascii")
    qrels.write_text("", encoding="ascii")
    done = run_python("-W", "ignore", "-m", "ir_measures", str(qrels), str(run), "nDCG")
    assert (done.returncode, done.stdout) == (0, "nDCG\tnan\n")
    with pytest.raises(Misuse):
        scored_files(run, qrels)


# --------------------------------------------------------------------------------------------- ties and scores


def test_ir_measures_breaks_ties_in_two_ways_in_one_call() -> None:
    """nDCG@3 by document id descending, RR@3 ascending: c is first for the one and third for the other."""
    found = irm.calc_aggregate([irm.nDCG @ 3, irm.RR @ 3, irm.RR], {"q": {"c": 1}}, TIED)
    assert found == {irm.nDCG @ 3: 1, irm.RR @ 3: pytest.approx(1 / 3), irm.RR: 1}
    assert ours(TIED, {"q": {"c": 1}}, "ndcg@3", "mrr@3", "mrr")["q"] == {"ndcg@3": 1, "mrr@3": 1, "mrr": 1}


def test_ir_measures_breaks_ties_for_judged_otherwise_than_for_precision() -> None:
    """Of a and b, tied, a is judged: it is in the top 1 of Judged@1 and not of P@1."""
    run = {"q": {"a": 1.0, "b": 1.0}}
    assert irm.calc_aggregate([irm.Judged @ 1, irm.P @ 1], ONE, run) == {irm.Judged @ 1: 1, irm.P @ 1: 0}
    assert ours(run, ONE, "judged@1", "precision@1")["q"] == {"judged@1": 0, "precision@1": 0}


def test_ranx_loses_the_order_of_equal_scores() -> None:
    """Of 40 equal documents, neither the given order nor that of the ids; a Run and a dictionary differ."""
    run = {"q": {letter(number): 1.0 for number in range(40)}}
    first: Qrels = {"q": {letter(0): 1}}
    by_run = round(1 / ranx.evaluate(ranx.Qrels(first), ranx.Run(run), "mrr"))
    by_dictionary = round(1 / ranx.evaluate(first, run, "mrr"))
    assert by_run != by_dictionary
    assert {by_run, by_dictionary}.isdisjoint({1, 40})
    assert 1 / mrr(run, first) == pytest.approx(40), "document id descending, as trec_eval"
    assert trec(run, first) == {"q": 1 / 40}


def test_pytrec_eval_ties_scores_that_single_precision_cannot_tell_apart() -> None:
    """trec_eval holds scores in single precision: 16777217 and 16777216 tie, and the document ids decide."""
    run = {"q": {"a": 16777217.0, "b": 16777216.0}}
    assert trec(run, ONE) == {"q": 0.5}
    assert irm.calc_aggregate([irm.RR, irm.RR @ 10], ONE, run) == {irm.RR: 0.5, irm.RR @ 10: 1}
    assert mrr(run, ONE) == 1, "double precision tells them apart"


def test_nobody_agrees_where_a_score_is_no_number(tmp_path: Path) -> None:
    """Of a (NaN), b (1) and c (0.5), a is relevant: last, or first, by the peer and by the measure."""
    run = {"q": {"a": math.nan, "b": 1.0, "c": 0.5}}
    assert trec(run, ONE) == {"q": pytest.approx(1 / 3)}
    assert irm.calc_aggregate([irm.RR, irm.RR @ 3], ONE, run) == {irm.RR: pytest.approx(1 / 3), irm.RR @ 3: 1}
    assert ranx.evaluate(ranx.Qrels(ONE), ranx.Run(run), "mrr") == pytest.approx(1 / 3)
    assert ranx.evaluate(ONE, run, "mrr") == 1
    written, qrels = tmp_path / "run.trec", tmp_path / "qrels.trec"
    written.write_text("q Q0 a 1 nan r\nq Q0 b 2 1 r\n", encoding="ascii")
    qrels.write_text("q 0 a 1\n", encoding="ascii")
    with pytest.raises(Misuse, match=r"run\.trec:1"):
        scored_files(written, qrels)


# --------------------------------------------------------------------------------------------- documents


def test_a_document_twice_moves_down_in_two_peers_and_stops_the_third(tmp_path: Path) -> None:
    """a at ranks 1 and 3: the last line wins in ir_measures and ranx; pytrec_eval stops without a word."""
    run, qrels = tmp_path / "run.trec", tmp_path / "qrels.trec"
    run.write_text(DUPLICATED, encoding="ascii")
    qrels.write_text("q 0 a 1\n", encoding="ascii")
    with pytest.raises(AssertionError) as stopped:
        pytrec_eval.parse_run(DUPLICATED.splitlines())
    assert str(stopped.value) == ""
    assert irm.calc_aggregate([irm.RR], ONE, irm.read_trec_run(str(run))) == {irm.RR: 0.5}
    answered = ranx.Run.from_file(str(run))
    assert ranx.evaluate(ranx.Qrels(ONE), answered, "mrr") == 0.5
    found = scored_files(run, qrels)
    assert (found.mean(parse("mrr")), found.duplicates) == (1, 1)


def test_ranx_knows_documents_by_a_rounded_hash() -> None:
    """Hashes are held in double precision: two integers above 2^53 are one document, found at rank 1, not 2."""
    above, sought = 2**53, 2**53 + 1
    assert ranx.evaluate({"q": {sought: 1}}, {"q": {above: 2.0, sought: 1.0}}, "mrr") == 1
    assert mrr({"q": {str(above): 2.0, str(sought): 1.0}}, {"q": {str(sought): 1}}) == 0.5


def test_ir_measures_judged_divides_by_zero_where_nothing_was_retrieved() -> None:
    """An empty ranking: ZeroDivisionError for the whole call; 0 for that query in ours."""
    run: Run = {"q1": {"a": 1.0}, "q2": {}}
    with pytest.raises(ZeroDivisionError):
        irm.calc_aggregate([irm.Judged @ 5], PERFECT, run)
    assert ours(run, PERFECT, "judged@5") == {"q1": {"judged@5": 1}, "q2": {"judged@5": 0}}


def test_ranx_reads_no_run_in_which_nothing_was_retrieved() -> None:
    """ValueError of max(); ours counts each of the queries 0, and says in words that a run answers nothing."""
    silent: Run = {"q1": {}, "q2": {}}
    nothing: Run = {}
    for run in (silent, nothing):
        with pytest.raises(ValueError, match="max"):
            ranx.Run(run)
    assert mrr(silent, PERFECT) == 0
    with pytest.raises(Misuse, match="answers no query"):
        mrr(nothing, PERFECT)


# --------------------------------------------------------------------------------------------- cut-offs


@pytest.mark.skipif(sys.platform == "win32", reason="SIGABRT is of POSIX systems")
@pytest.mark.parametrize(
    "call",
    [
        "import pytrec_eval; pytrec_eval.RelevanceEvaluator({'q': {'a': 1}}, {'recall_0'}).evaluate({'q': {'a': 1.0}})",
        "import ir_measures as i; i.calc_aggregate([i.R @ 0], {'q': {'a': 1}}, {'q': {'a': 1.0}})",
    ],
    ids=["pytrec_eval", "ir_measures"],
)
def test_a_cut_off_of_0_aborts_the_process(call: str) -> None:
    """SIGABRT, which no `except` catches; for ours, it is no measure."""
    done = run_python("-c", f"try:\n    {call}\nexcept BaseException:\n    pass")
    assert done.returncode == -6
    assert "Negative cutoff" in done.stderr
    with pytest.raises(Misuse, match="did you mean"):
        parse("recall@0")


def test_ranx_takes_a_cut_off_of_0_for_none() -> None:
    """recall@0 is the recall of the whole ranking."""
    run = {"q": {"x": 2.0, "a": 1.0}}
    assert ranx.evaluate(ONE, run, "recall@0") == 1
    with pytest.raises(Misuse, match="did you mean"):
        parse("recall@0")


# --------------------------------------------------------------------------------------------- comparing runs


def test_ranx_randomisation_does_not_heed_its_seed() -> None:
    """Twenty calls with one seed give several p values; ours gives one."""
    import numpy
    from ranx.statistical_tests import fisher_randomization_test

    before = numpy.linspace(0, 1, 50)
    after = numpy.linspace(0.02, 0.99, 50)[::-1].copy()
    assert len({float(fisher_randomization_test(before, after, 1000, 0.01, 42)[0]) for _ in range(20)}) > 1
    differences = [float(difference) for difference in after - before]
    assert len({sign_flip(differences, seed=42, rounds=1000) for _ in range(20)}) == 1


def test_ranx_randomisation_gives_a_p_value_of_0() -> None:
    """The observed order is not counted among the permutations: p = 0 claims what no sample can show."""
    import numpy
    from ranx.statistical_tests import fisher_randomization_test

    assert fisher_randomization_test(numpy.ones(50), numpy.zeros(50), 1000, 0.01, 42)[0] == 0
    assert sign_flip([-1.0] * 50, rounds=1000) == 1 / 1001


def test_ranx_compares_runs_by_their_names_alone() -> None:
    """Of two runs of one name, one is dropped without a word; two equal runs have p = NaN."""
    qrels = ranx.Qrels({f"q{number}": {"a": 1} for number in range(6)})
    found = ranx.Run({f"q{number}": {"a": 2.0, "b": 1.0} for number in range(6)}, name="x")
    missed = ranx.Run({f"q{number}": {"a": 1.0, "b": 2.0} for number in range(6)}, name="x")
    assert ranx.compare(qrels, [found, missed], ["mrr"]).results == {"x": {"mrr": 0.5}}
    found.name, missed.name = "x", "y"
    missed.run = found.run
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scipy may speak of 0 / 0
        comparison = ranx.compare(qrels, [found, missed], ["mrr"]).comparisons
    assert math.isnan(comparison[frozenset(("x", "y"))]["mrr"]["p_value"])
    assert paired([1.0] * 6, [1.0] * 6).p == 1


# --------------------------------------------------------------------------------------------- reading


def test_ranx_reads_no_data_frame_of_pandas_3() -> None:
    """Columns of text are no longer of dtype object."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"q_id": ["q"], "doc_id": ["a"], "score": [1.0]})
    with pytest.raises(AssertionError, match="dtype must be `object`"):
        ranx.Run.from_df(frame)


def test_pytrec_eval_takes_no_scores_of_numpy() -> None:
    """A numpy float32 is a TypeError that does not say which; ours takes what is a number."""
    import numpy

    score: Any = numpy.float32(1)
    with pytest.raises(TypeError, match="Unable to extract"):
        trec({"q": {"a": score}}, ONE)
    assert mrr({"q": {"a": score}}, ONE) == 1


# --------------------------------------------------------------------------------------------- the page


def test_the_page_holds_what_is_shown_here() -> None:
    """docs/peers.md names every test of this file, no other, and the versions that are installed."""
    text = PAGE.read_text(encoding="utf-8")
    shown = {name for name in globals() if name.startswith("test_") and not name.startswith("test_the_page")}
    assert set(re.findall(r"`(test_\w+)`", text)) == shown
    for peer in ("ir-measures", "pytrec-eval-terrier", "ranx"):
        assert f"{peer} {version(peer)}" in text, f"the page is of another version of {peer}"
