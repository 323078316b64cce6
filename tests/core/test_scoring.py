"""The engine: equal to trec_eval where that is defined, and a stated outcome for each case that scorers differ on."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scoring_support import (
    EVERY,
    MEASURES,
    Qrels,
    Run,
    assert_equal_to_trec_eval,
    beir_qrels,
    cases,
    put,
    ranked_lines,
    refused,
    scored,
    trec_qrels,
    trec_run,
    values,
)

from eval_core.errors import Misuse
from eval_core.measuring.run import ERRORED, SCORED, UNSCORABLE, UNSCORED, Row, trec_lines, write_run
from eval_core.scoring import metrics, statistics
from eval_core.scoring.metrics import parse
from eval_core.scoring.readers import run as reader
from eval_core.scoring.score import Scores, evaluate, score_files
from eval_core.sets.dataset import load

MRR = parse("mrr")
Case = tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]


def mrr(folder: Path, run: str, qrels: str, ties: str = "trec") -> dict[str, float]:
    return {q: found["mrr"] for q, found in values(scored(folder, run, qrels, [MRR], ties)).items()}


# -------------------------------------------------------------------------------------------- trec_eval


def apart(run: Run, seed: int) -> str:
    """The lines of a run in any order."""
    lines = trec_run(run).splitlines(keepends=True)
    random.Random(seed).shuffle(lines)
    return "".join(lines)


@given(cases(), st.integers(0, 99))
@settings(deadline=None, max_examples=250)
def test_equal_to_trec_eval_on_any_run(
    tmp_path_factory: pytest.TempPathFactory, case: Case, seed: int
) -> None:
    """A3, to 1e-12: ties, grades, negative ones, missing queries, any ids; in any order, and loaded."""
    run, qrels = case
    folder = tmp_path_factory.getbasetemp()
    grouped = scored(folder, trec_run(run), trec_qrels(qrels))
    assert_equal_to_trec_eval(grouped, run, qrels)
    assert scored(folder, apart(run, seed), trec_qrels(qrels)) == grouped
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_fast", lambda query, lines: None)
        assert scored(folder, trec_run(run), trec_qrels(qrels)) == grouped
    assert evaluate(run, qrels, MEASURES) == grouped


@given(cases())
@settings(deadline=None, max_examples=100)
def test_ranked_lists_score_as_the_scores_that_order_them(
    tmp_path_factory: pytest.TempPathFactory, case: Case
) -> None:
    run, qrels = case
    folder = tmp_path_factory.getbasetemp()
    lists = {
        query: [d for d, _ in sorted(scores.items(), key=lambda item: (item[1], item[0]), reverse=True)]
        for query, scores in run.items()
    }
    by_score = scored(folder, trec_run(run), trec_qrels(qrels))
    by_rank = scored(folder, ranked_lines(lists), trec_qrels(qrels))
    assert by_rank.queries == by_score.queries
    assert (by_rank.ties, by_score.ties) == ("given", "trec")
    assert evaluate(lists, qrels, MEASURES) == by_rank


def by_bm25(folder: Path, corpus: Path | None = None, depth: int = 100) -> tuple[dict[str, list[str]], Qrels]:
    from eval_backends.bm25 import BM25
    from eval_core.backend import Request

    loaded = load(folder, corpus=corpus)
    backend = BM25()
    backend.index(loaded.corpus)
    rankings = {}
    for query in loaded.queries:
        ids = backend.search(Request(query.text, depth + len(query.exclude))).ids
        rankings[query.id] = [d for d in ids if d not in query.exclude][:depth]
    backend.close()
    return rankings, loaded.judgements


def assert_equal_on(tmp_path: Path, rankings: dict[str, list[str]], qrels: Qrels, judgements: str) -> None:
    """As a TREC run and as ranked lists."""
    lines = trec_lines([Row(q, SCORED, ids) for q, ids in rankings.items()], "bm25")
    run = {q: {d: float(-rank) for rank, d in enumerate(ids, 1)} for q, ids in rankings.items()}
    found = scored(tmp_path, b"".join(line + b"\n" for line in lines), judgements)
    assert_equal_to_trec_eval(found, run, qrels)
    assert len(found.queries) - len(found.missing) > 20
    assert values(scored(tmp_path, ranked_lines(rankings), judgements)) == values(found)


ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["memory", "dedupe", "code"])
def test_equal_to_trec_eval_on_our_sets(tmp_path: Path, name: str) -> None:
    """A3, on bm25's rankings."""
    folder, built = ROOT / "datasets" / name, ROOT / ".eval" / "corpora" / name / "corpus.jsonl"
    corpus = folder / "corpus.jsonl"
    if not corpus.is_file():
        corpus = built
    if not corpus.is_file():
        pytest.skip(f"{name}: its corpus is not reconstructed here")
    rankings, qrels = by_bm25(folder, corpus)
    assert_equal_on(tmp_path, rankings, qrels, beir_qrels(qrels))


@pytest.mark.parametrize("name", ["cranfield", "cisi", "med"])
def test_equal_to_trec_eval_on_published_sets(
    tmp_path: Path, shared_data: Callable[[str], Path], name: str
) -> None:
    """A3, on bm25's rankings of classic collections, whose judgements are read as they were published."""
    folder = shared_data(f"beir/{name}")
    rankings, qrels = by_bm25(folder)
    assert_equal_on(tmp_path, rankings, qrels, (folder / "qrels" / "test.tsv").read_text("utf-8"))


@pytest.mark.parametrize("system", ["bm25", "dense"])
def test_equal_to_trec_eval_on_rankings_with_repeats(
    tmp_path: Path, shared_data: Callable[[str], Path], system: str
) -> None:
    """M9: 470 questions of two published systems; sessions come twice in a list, and the first place stands."""
    path = shared_data(f"longmemeval/rankings_{system}_n500.json")
    rows = [r for r in json.loads(path.read_text("utf-8"))["results"] if not r["abstention"]]
    lists = {r["question_id"]: r["retrieved_sessions"] for r in rows}
    qrels = {r["question_id"]: dict.fromkeys(r["evidence_sessions"], 1) for r in rows}
    firsts = {q: list(dict.fromkeys(ids)) for q, ids in lists.items()}
    repeats = sum(map(len, lists.values())) - sum(map(len, firsts.values()))
    assert (len(rows), repeats > 100) == (470, True)
    found = scored(tmp_path, ranked_lines(lists), trec_qrels(qrels))
    assert found.duplicates == repeats
    run = {q: {d: float(-rank) for rank, d in enumerate(ids, 1)} for q, ids in firsts.items()}
    assert_equal_to_trec_eval(found, run, qrels)
    # In a TREC run the repeats have lower scores, and are dropped alike.
    repeated = "".join(
        f"{q} Q0 {d} {rank} {-rank} t\n" for q, ids in lists.items() for rank, d in enumerate(ids, 1)
    )
    again = scored(tmp_path, repeated, trec_qrels(qrels))
    assert (again.queries, again.duplicates) == (found.queries, repeats)
    # What that system published as recall is whether any evidence was found, in percent, repeats left in.
    first = math.fsum(r["recall"]["1"] for r in rows) / len(rows)
    assert scored(tmp_path, ranked_lines(lists), trec_qrels(qrels), ["hit@1"]).mean(parse("hit@1")) == first


# -------------------------------------------------------------------------------------------- reported cases

TIED = "q Q0 d1 1 1 t\nq Q0 d2 2 1 t\nq Q0 d3 3 1 t\n"


@pytest.mark.parametrize(("ties", "expected"), [("trec", 1.0), ("id", 1 / 3)])
def test_equal_scores_are_ordered_by_document_id_whatever_the_file_says(
    tmp_path: Path, ties: str, expected: float
) -> None:
    """M5, cases 1, 3 and 12: a constant scorer gains nothing by listing the right one first, or by rank."""
    for lines in (TIED, "".join(reversed(TIED.splitlines(keepends=True)))):
        found = scored(tmp_path, lines, "q 0 d3 1\n", ["map", "mrr"], ties)
        assert values(found) == {"q": {"map": expected, "mrr": expected}}
        assert found.ties == ties


def test_ids_are_compared_as_bytes(tmp_path: Path) -> None:
    """Cases 1 and 19: not as numbers, not by any alphabet, and only whole."""
    falling = ["🙂", "文", "é", "z", "e\u0301", "a,b", "a", "Z", "9", "10", "1.0", "1", "01"]
    run = "".join(f"q Q0 {d} 1 0 t\n" for d in sorted(falling))
    for place, document in enumerate(falling, 1):
        assert mrr(tmp_path, run, f"q 0 {document} 1\n") == {"q": 1 / place}
        assert mrr(tmp_path, run, f"q 0 {document} 1\n", "id") == {"q": 1 / (len(falling) + 1 - place)}


def test_one_relevant_document_has_one_rank_in_all_measures(tmp_path: Path) -> None:
    """Case 2, and 2 of those found: with ties, MAP is MRR, and nDCG sees the same rank."""
    for relevant, rank in (("d3", 1), ("d2", 2), ("d1", 3)):
        (found,) = values(scored(tmp_path, TIED, f"q 0 {relevant} 1\n", ["map", "mrr", "ndcg@3"])).values()
        assert found == pytest.approx({"map": 1 / rank, "mrr": 1 / rank, "ndcg@3": 1 / math.log2(rank + 1)})


@pytest.mark.parametrize("empty", [{}, {"d1": 0}, {"d1": -1, "d2": 0}])
def test_a_query_without_a_relevant_document_is_listed_and_not_in_the_mean(empty: dict[str, int]) -> None:
    """Cases 4 and 22: nothing is neither a perfect answer nor a wrong one."""
    for run in ({"q1": {"d1": 1.0}, "q2": {"d1": 1.0}}, {"q1": {"d1": 1.0}}):
        found = evaluate(run, {"q1": {"d1": 1}, "q2": empty}, [*EVERY, parse("all@1")])
        assert (list(found.queries), found.unscorable, found.missing) == (["q1"], ["q2"], [])
        assert found.mean(MRR) == found.mean(parse("all@1")) == 1


def test_the_better_ranked_of_two_occurrences_stands_and_the_other_is_counted(tmp_path: Path) -> None:
    """Cases 5 and 13, and 10 of those found: recall 2.0 and nDCG 2.13 elsewhere."""
    run = "q Q0 x 1 3 t\nq Q0 a 2 1 t\nq Q0 a 3 2 t\nq Q0 b 4 1.5 t\nq Q0 a 5 -5 t\n"
    for lines in (run, "".join(reversed(run.splitlines(keepends=True)))):
        found = scored(tmp_path, lines, "q 0 a 1\nq 0 b 1\n", ["recall@3", "ndcg@3", "mrr", "map"])
        assert found.queries["q"].judged == (("a", 1, 2), ("b", 1, 3))
        assert (found.queries["q"].retrieved, found.duplicates) == (3, 2)
    for listed in (["a", "a"], ["a", "a", "a"]):
        found = scored(tmp_path, ranked_lines({"q": listed}), "q 0 a 1\n", ["recall@5", "ndcg@5", "map"])
        assert values(found) == {"q": {"recall@5": 1.0, "ndcg@5": 1.0, "map": 1.0}}
        assert (found.duplicates, found.queries["q"].retrieved) == (len(listed) - 1, 1)
        assert found == evaluate({"q": listed}, {"q": {"a": 1}}, found.measures)


def test_scores_of_numpy_are_scores() -> None:
    """Case 6."""
    run: Any = {"q": {"a": np.float32(0.5), "b": np.float64(0.75), "c": 1}}
    assert evaluate(run, {"q": {"b": 1}}, [MRR]).mean(MRR) == 0.5


def test_the_same_call_twice_gives_the_same() -> None:
    """Case 8: nothing is kept between calls, and nothing given is changed."""
    run, qrels = {"q": {"a": 1.0, "b": 2.0}}, {"q": {"a": 1}, "r": {"b": 2}}
    first = evaluate(run, qrels, MEASURES)
    assert evaluate(run, qrels, MEASURES) == first
    assert (run, qrels) == ({"q": {"a": 1.0, "b": 2.0}}, {"q": {"a": 1}, "r": {"b": 2}})


@pytest.mark.parametrize(
    ("run", "qrels", "told"),
    [
        ({}, {"q": {"a": 1}}, "the run: answers no query"),
        ({"q": {"a": 1.0}}, {}, "the judgements: no query is judged"),
        ({"q": {"a": 1.0}}, {"r": {"a": 1}}, "has no query in common"),
        ({"q": {"a": 1.0}}, {"q": {"a": 0}}, "no query has a document of grade 1 or more"),
        ({"q": {"a": 1.0}}, {"q": {"a": 0}, "r": {"a": 1}}, "answers no query that can be scored"),
        ({"q": {"a": math.nan}}, {"q": {"a": 1}}, "query 'q': the score of 'a' is NaN"),
        ({"q": {"a": math.inf, "b": -math.inf, "c": math.nan}}, {"q": {"a": 1}}, "the score of 'c' is NaN"),
        ({"q": {1: 1.0}}, {"q": {"1": 1}}, "document ids should be texts"),
        ({"q": [1]}, {"q": {"1": 1}}, "document ids should be texts"),
        ({"q": "abc"}, {"q": {"a": 1}}, "a list of document ids is expected, not a text"),
    ],
)
def test_nothing_to_score_is_an_error_and_never_a_value(run: Any, qrels: Any, told: str) -> None:
    """Cases 9 and 11, R8: neither nan nor 0."""
    with pytest.raises(Misuse) as caught:
        evaluate(run, qrels, [MRR])
    assert told in str(caught.value)
    assert caught.value.exit_code == 2


def test_infinities_are_scores() -> None:
    assert evaluate({"q": {"a": -math.inf, "b": math.inf}}, {"q": {"a": 1}}, [MRR]).mean(MRR) == 0.5


def test_no_query_in_common_is_refused_with_an_id_of_each(tmp_path: Path) -> None:
    told = refused(tmp_path, "1 Q0 a 1 1 t\n", "q1 0 a 1\n")
    assert told.startswith(
        "run: has no query in common with qrels that can be scored: the run has '1', the judgements"
    )


def test_queries_that_only_one_side_has_are_counted(tmp_path: Path) -> None:
    """Cases 10, 16 and 20: unjudged queries are no zeros, unanswered ones are."""
    run = trec_run({"stranger": {"a": 1.0}, "q1": {"a": 1.0}, "another": {"b": 1.0}})
    found = scored(tmp_path, run, "q2 0 a 1\nq1 0 a 1\nq0 0 b 1\n", ["mrr", "judged@5"])
    assert values(found) == {
        "q2": {"mrr": 0.0, "judged@5": 0.0},
        "q1": {"mrr": 1.0, "judged@5": 1.0},
        "q0": {"mrr": 0.0, "judged@5": 0.0},
    }
    assert list(found.queries) == ["q2", "q1", "q0"]
    assert (found.missing, found.unjudged) == (["q2", "q0"], 2)
    assert found.queries["q2"] == ((0.0, 0.0), (("a", 1, None),), 0)
    assert found.mean(MRR) == pytest.approx(1 / 3)


def test_queries_are_joined_by_their_ids(tmp_path: Path) -> None:
    """1 of those found: pairing by position scores two perfect answers 0."""
    assert (
        evaluate({"q2": {"b": 1.0}, "q1": {"a": 1.0}}, {"q1": {"a": 1}, "q2": {"b": 1}}, [MRR]).mean(MRR) == 1
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [("16777216", "16777217"), ("1e300", "1.0000000000000002e300"), ("0.1", "0.10000000000000002")],
)
def test_scores_are_compared_in_double_precision(tmp_path: Path, first: str, second: str) -> None:
    """3 of those found: in single precision they tie, and the id would decide."""
    assert mrr(tmp_path, f"q Q0 b 1 {first} t\nq Q0 a 2 {second} t\n", "q 0 a 1\n") == {"q": 1.0}
    assert mrr(tmp_path, f"q Q0 b 1 {second} t\nq Q0 a 2 {first} t\n", "q 0 b 1\n", "id") == {"q": 1.0}


def test_numbers_that_are_equal_tie_however_they_are_written(tmp_path: Path) -> None:
    assert mrr(tmp_path, "q Q0 a 1 1e1 t\nq Q0 b 2 10.0 t\nq Q0 c 3 010 t\n", "q 0 c 1\n") == {"q": 1.0}
    assert mrr(tmp_path, "q Q0 a 1 -0.0 t\nq Q0 b 2 0 t\n", "q 0 a 1\n") == {"q": 0.5}


def test_a_cut_off_beyond_the_list_adds_nothing(tmp_path: Path) -> None:
    """5 of those found. precision@k divides by k all the same."""
    found = scored(
        tmp_path, TIED, "q 0 d2 1\nq 0 x 1\n", ["recall@1000", "precision@1000", "ndcg@1000", "judged@1000"]
    )
    ideal = 1 + 1 / math.log2(3)
    assert found.queries["q"].values == pytest.approx((0.5, 0.001, 1 / math.log2(3) / ideal, 1 / 3))


def test_average_precision_divides_by_all_relevant(tmp_path: Path) -> None:
    """6 of those found, and case 20: what was not retrieved counts, in the ideal too."""
    found = scored(tmp_path, "q Q0 a 1 1 t\n", "q 0 a 1\nq 0 b 1\n", ["map", "ndcg@5"])
    assert found.queries["q"].values == pytest.approx((0.5, 1 / (1 + 1 / math.log2(3))))


def test_recall_is_plain_and_its_capped_form_has_a_name_of_its_own() -> None:
    """Case 24: one of a hundred relevant documents, at k = 1."""
    qrels = {"q": {f"d{n}": 1 for n in range(100)}}
    measures = (parse("recall@1"), parse("recall_cap@1"))
    assert evaluate({"q": ["d7"]}, qrels, measures).queries["q"].values == (0.01, 1.0)


def test_an_empty_ranking_is_an_answer_that_scores_nothing(tmp_path: Path) -> None:
    found = scored(tmp_path, ranked_lines({"q1": [], "q2": ["a"]}), "q1 0 a 1\nq2 0 a 1\n", ["mrr"])
    assert found.mean(MRR) == 0.5
    assert (found.missing, found.queries["q1"].retrieved) == ([], 0)
    assert evaluate({"q1": {}, "q2": {"a": 1.0}}, {"q1": {"a": 1}, "q2": {"a": 1}}, [MRR]).mean(MRR) == 0.5


def test_a_whole_number_in_json_is_its_decimal_text(tmp_path: Path) -> None:
    lines = '{"id": 7, "ids": [12, "x", 3, 12]}\n'
    found = scored(tmp_path, lines, "7 0 3 1\n", ["mrr"])
    assert (values(found), found.duplicates) == ({"7": {"mrr": 1 / 3}}, 1)
    assert values(scored(tmp_path, '{"id": "07", "ids": [1]}\n', "07 0 1 1\n", ["mrr"])) == {
        "07": {"mrr": 1.0}
    }


def test_escapes_in_json_are_the_characters_they_name(tmp_path: Path) -> None:
    lines = '{"id": "fr\\u00e4ge", "ids": ["\\ud83d\\ude42", "a\\/b"]}\n'
    assert values(scored(tmp_path, lines, "fräge 0 a/b 1\n", ["mrr"])) == {"fräge": {"mrr": 0.5}}


def test_rows_of_our_own_run_that_were_not_scored_are_left_out_and_never_zeros(tmp_path: Path) -> None:
    """S3: corollary 4. A judged query without a row was not attempted: in a foreign run it would count 0."""
    rows = [
        Row("q1", SCORED, ("a",), None, [0.5]),
        Row("q2", SCORED, ()),
        Row("q3", ERRORED, detail="it broke"),
        Row("q4", UNSCORED),
        Row("q5", UNSCORABLE),
        Row("q7", SCORED, ("a",)),
        Row("stranger", ERRORED),
    ]
    path = tmp_path / "own.jsonl"
    write_run(path, {"run_id": "r", "arm": "arm"}, rows)
    qrels = put(tmp_path, "qrels", "".join(f"q{n} 0 a {int(n != 7)}\n" for n in range(1, 8)))
    found = score_files(path, qrels, [MRR])
    assert values(found) == {"q1": {"mrr": 1.0}, "q2": {"mrr": 0.0}}
    assert found.left_out == ["q3", "q4", "q5", "q6"]
    assert (found.missing, found.unscorable, found.unjudged, found.ties) == ([], ["q7"], 1, "given")


def test_our_own_run_without_a_scored_row_is_no_finding(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    write_run(path, {"run_id": "r"}, [Row("q1", ERRORED), Row("q2", UNSCORED)])
    with pytest.raises(Misuse, match=r"no query was answered \(2 errored, unscored or unscorable\)"):
        score_files(path, put(tmp_path, "qrels", "q1 0 a 1\nq2 0 a 1\n"), [MRR])


@pytest.mark.parametrize("document", ["a", "not-retrieved"])
def test_a_grade_too_large_for_an_exponential_gain_is_one_clear_error(tmp_path: Path, document: str) -> None:
    qrels = f"q 0 a 1\nq 0 {document}x 5000\n"
    told = refused(tmp_path, "q Q0 a 1 1 t\n", qrels, ["mrr", "ndcg@5(gain=exp)"])
    assert told.startswith(
        f"ndcg@5(gain=exp): the grade 5000 of '{document}x' for 'q' has no exponential gain"
    )
    assert "use ndcg@5, or smaller grades" in told
    assert "\n" not in told
    assert scored(tmp_path, "q Q0 a 1 1 t\n", qrels, ["ndcg@5"]).mean(parse("ndcg@5")) < 1e-3
    most = scored(tmp_path, "q Q0 a 1 1 t\n", "q 0 a 1000\n", ["ndcg@5(gain=exp)"])
    assert most.queries["q"].values == (1.0,)


def test_a_rule_for_ties_that_is_none_is_refused() -> None:
    with pytest.raises(Misuse, match="ties = 'rank': should be one of trec, id"):
        evaluate({"q": ["a"]}, {"q": {"a": 1}}, [MRR], "rank")


# -------------------------------------------------------------------------------------------- properties


def shuffled(table: dict[str, dict[str, Any]], seed: int) -> dict[str, dict[str, Any]]:
    chance = random.Random(seed)
    rows = [(q, chance.sample(list(inner.items()), len(inner))) for q, inner in table.items()]
    return {q: dict(inner) for q, inner in chance.sample(rows, len(rows))}


@given(cases(), st.integers(0, 99), st.sampled_from(["trec", "id"]))
@settings(deadline=None, max_examples=150)
def test_every_measure_is_in_0_to_1_and_no_order_matters(case: Case, seed: int, ties: str) -> None:
    run, qrels = case
    found = evaluate(run, qrels, EVERY, ties)
    assert all(0 <= value <= 1 for query in found.queries.values() for value in query.values)
    other = evaluate(shuffled(run, seed), shuffled(qrels, seed), EVERY, ties)
    assert values(other) == values(found)
    assert [other.mean(m) for m in EVERY] == [found.mean(m) for m in EVERY]
    assert other.intervals() == found.intervals()


@given(cases(), st.data())
@settings(deadline=None, max_examples=150)
def test_a_relevant_document_that_moves_up_lowers_nothing(case: Case, data: st.DataObject) -> None:
    """Past documents that are no more relevant."""
    run, qrels = case
    query = data.draw(st.sampled_from([q for q in run if any(g > 0 for g in qrels.get(q, {}).values())]))
    grades = qrels[query]
    relevant = [d for d in run[query] if grades.get(d, 0) > 0]
    if not relevant:
        return
    document = data.draw(st.sampled_from(relevant))
    above = [
        s for d, s in run[query].items() if s >= run[query][document] and grades.get(d, 0) > grades[document]
    ]
    limit = min(above, default=1e6)
    higher = (run[query][document] + min(limit, run[query][document] + data.draw(st.integers(0, 50)))) / 2
    before = evaluate(run, qrels, EVERY)
    after = evaluate({**run, query: {**run[query], document: higher}}, qrels, EVERY)
    for measure, old, new in zip(
        EVERY, before.queries[query].values, after.queries[query].values, strict=True
    ):
        assert new >= old - 1e-12, measure


@given(st.lists(st.sampled_from("abcdefgh"), max_size=12), st.data())
@settings(deadline=None, max_examples=150)
def test_a_repeat_raises_nothing(
    tmp_path_factory: pytest.TempPathFactory, ids: list[str], data: st.DataObject
) -> None:
    """Whatever is said again, wherever, what was said before is scored."""
    grades = data.draw(st.dictionaries(st.sampled_from("abcdefghi"), st.integers(0, 3), min_size=1))
    grades["i"] = 1
    once = list(dict.fromkeys(ids))
    before = evaluate({"q": once}, {"q": grades}, EVERY)
    after = evaluate({"q": ids}, {"q": grades}, EVERY)
    assert (after.queries, after.duplicates) == (before.queries, len(ids) - len(once))
    if ids:
        lines = "".join(f"q Q0 {d} 1 {-place} t\n" for place, d in enumerate(ids))
        found = scored(tmp_path_factory.getbasetemp(), lines, trec_qrels({"q": grades}), EVERY)
        assert (found.queries, found.duplicates) == (after.queries, after.duplicates)


def test_what_a_query_says_gives_its_values_again(tmp_path: Path) -> None:
    """Recomputation from (grade, rank) gives what was scored."""
    run = {"q": {"a": 2.0, "b": 2.0, "c": 1.0, "d": 0.0}}
    found = evaluate(run, {"q": {"b": 2, "d": 1, "c": 0, "x": 1}}, EVERY).queries["q"]
    assert found.judged == (("b", 2, 1), ("d", 1, 4), ("c", 0, 3), ("x", 1, None))
    again = metrics.score([(g, r) for _, g, r in found.judged], list(map(str, EVERY)), found.retrieved)
    assert tuple(again.values()) == found.values


# -------------------------------------------------------------------------------------------- intervals


def scores_of(table: dict[str, list[float]], grades: tuple[int, ...] = (1,)) -> Scores:
    rows = zip(*table.values(), strict=True)
    return Scores(
        measures=tuple(map(parse, table)),
        ties="trec",
        found={f"q{n}": (row, (), 1) for n, row in enumerate(rows)},
        qrels={
            f"q{n}": {f"d{place}": grade for place, grade in enumerate(grades)}
            for n in range(len(next(iter(table.values()))))
        },
        missing=[],
        unjudged=0,
        unscorable=[],
        left_out=[],
        duplicates=0,
        contradicted=[],
        tied=[],
    )


def test_intervals_of_many_queries_are_what_the_bootstrap_would_draw() -> None:
    """The expansion stays within what the bootstrap's own seed moves; other columns are as in statistics: with one
    relevant document a query, precision@2 is 0 or the most it can be."""
    chance = random.Random(5)
    n = 4000
    table = {
        "mrr": [1 / chance.randint(1, 10) for _ in range(n)],
        "map": [chance.random() ** 9 for _ in range(n)],
        "ndcg@5": [chance.choice((0.0,) * 98 + (0.5, 0.25)) for _ in range(n)],
        "hit@1": [float(chance.random() < 0.3) for _ in range(n)],
        "ndcg": [0.25] * n,
        "all@5": [0.0] * n,
        "precision@2": [chance.choice((0.0, 0.5)) for _ in range(n)],
    }
    found = scores_of(table).intervals()
    drawn = [statistics.bootstrap(list(table.values())[:3], seed=seed) for seed in range(2)]
    for place, name in enumerate(["mrr", "map", "ndcg@5"]):
        width = found[name].high - found[name].low
        for side in (0, 1):
            bounds = [draw[place][side] for draw in drawn]
            assert min(bounds) - 0.06 * width <= found[name][side] <= max(bounds) + 0.06 * width, (name, side)
    for name in ("hit@1", "ndcg", "all@5", "precision@2"):
        assert found[name] == statistics.intervals({name: table[name]}, {"precision@2": 0.5})[name]
    assert found["ndcg"].high > 0.25


def test_what_a_measure_can_be_at_most_is_read_from_the_judgements() -> None:
    """precision@5 of 0.2 for all: with one relevant document a query that is the most, with two it is not."""
    table = {"precision@5": [0.2] * 14}
    assert scores_of(table).intervals()["precision@5"].high == 0.2
    assert scores_of(table, (1, 2, 0)).intervals()["precision@5"].high > 0.23
    assert metrics.most(
        [[1], [0, 2]], [parse(name) for name in ("precision@5", "recall@5", "judged@5", "mrr")]
    ) == [
        0.2,
        1.0,
        1.0,
        1.0,
    ]
    assert metrics.most([[1, 1, 1, 2], [0]], [parse("recall@1"), parse("ndcg@1"), parse("all@1")]) == [
        0.25,
        1.0,
        0.0,
    ]


def test_intervals_of_few_queries_are_those_of_statistics() -> None:
    table = {"mrr": [0.5, 1.0, 0.25, 0.0], "hit@1": [0.0, 1.0, 0.0, 0.0]}
    assert scores_of(table).intervals() == statistics.intervals(table)
