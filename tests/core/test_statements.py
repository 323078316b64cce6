"""What a report says of itself in words, and where a person reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from core_support import Space, Told, write_policy

from eval_core.measuring.statements import by_chance, saturated
from eval_core.policy.evidence import line_of
from eval_core.reports.models import ReportRow
from eval_core.reports.report import read_report


def row(number: int, **metrics: float) -> ReportRow:
    values = {name.replace("_at_", "@"): value for name, value in metrics.items()}
    return ReportRow(id=f"q{number}", text="t", meta={}, outcome="scored", metrics=values)


def rows(n: int, full: int, first: int, **more: float) -> list[ReportRow]:
    """Of n queries, `full` with a recall of 1, and `first` of them at rank 1."""
    return [
        row(i, recall_at_10=float(i < full), hit_at_1=float(i < first), mrr=1.0 if i < first else 0.5, **more)
        for i in range(n)
    ]


CANNOT = "a better retriever cannot show it here"


@pytest.mark.parametrize(
    ("scored", "told"),
    [
        (
            rows(55, 55, 30),
            f"recall@10 is 1.000 for 55 of 55 queries: {CANNOT}; look at hit@1 or a smaller limit",
        ),
        # By McNemar's mid-p, four queries that all rise can be chance (0.063), and five cannot (0.031).
        (
            rows(55, 51, 30),
            f"recall@10 is 1.000 for 51 of 55 queries: {CANNOT}; look at hit@1 or a smaller limit",
        ),
        (rows(55, 50, 30), None),
        (rows(6, 6, 6), f"recall@10 is 1.000 for 6 of 6 queries: {CANNOT}; ask harder queries"),
        (rows(4, 2, 1), None),
        ([], None),
        (
            [row(i, recall_at_10=1.0, mrr=0.5) for i in range(5)],
            f"recall@10 is 1.000 for 5 of 5 queries: {CANNOT}; look at mrr or a smaller limit",
        ),
    ],
    ids=["all", "all but four", "all but five", "first as well", "half of few", "nothing scored", "no hit@1"],
)
def test_round2_n5_a_measure_that_cannot_rise_is_said(scored: list[ReportRow], told: str | None) -> None:
    """N5: where fewer queries can still rise than a difference needs, the report says so, and where there is room."""
    assert saturated("recall@10", scored) == ([] if told is None else [told])


def test_round2_n5_measure_and_the_report_say_that_a_set_is_saturated(shelves: Space) -> None:
    """N5: recall 1.000 on each of six queries, the first of them at rank 2."""
    answers = {f"thing {number}": [f"d{number}"] for number in range(1, 7)}
    shelves.register("told", Told({**answers, "thing 1": ["d2", "d1"]}))
    shelves.arm()
    done = shelves.core("measure")
    said = f"recall@10 is 1.000 for 6 of 6 queries: {CANNOT}; look at hit@1 or a smaller limit"
    assert said in read_report(shelves.reports / "arm.json").statements
    assert f" things: {said}." in " ".join(done.out.split()).replace(" things:", "\n things:")
    assert max(map(len, done.out.splitlines())) <= 100


@pytest.mark.parametrize(
    ("limit", "candidates", "middle"),
    [
        (10, [18], "18"),
        (10, [20], "20"),
        (10, [21], None),
        (10, [5, 18, 400], "18"),
        (10, [5, 6, 30, 400], "18"),
        (10, [5, 6, 31, 400], "18.5"),
        (10, [50, 60], None),
        (10, [None, 12], "12"),
        (10, [None], None),
        (10, [], None),
        (3, [2], "2"),
    ],
)
def test_a_limit_of_half_the_candidates_is_said(
    limit: int, candidates: list[int | None], middle: str | None
) -> None:
    """A6: half of the median or more."""
    said = f"limit {limit} of a median of {middle} candidates: a random ranking finds much of it"
    assert by_chance(limit, candidates) == ([] if middle is None else [said])


def test_measure_the_report_and_inspect_say_what_chance_finds(shelves: Space) -> None:
    """A6: eight documents, of which the one arm asks for ten, the other for three."""
    shelves.arm("limit = 3\ncutoffs = [3]\n", name="few", backend="bm25")
    shelves.arm(name="many", backend="bm25")
    said = "limit 10 of a median of 8 candidates: a random ranking finds much of it"
    assert f"\n many: {said}.\n" in shelves.core("measure").out
    assert said in read_report(shelves.reports / "many.json").statements
    assert not [s for s in read_report(shelves.reports / "few.json").statements if "candidates" in s]
    assert f"\n {said}\n" in shelves.core("inspect", "set").out


SESSIONS = "session retrieval, not a LongMemEval score"
TWO = f'name = "things"\nstatements = ["{SESSIONS}", "of <few> words"]\n'


def test_what_a_set_states_is_said_wherever_its_numbers_are(shelves: Space) -> None:
    """A6: dataset.toml's statements: in each report, in measure, inspect, a comparison, and the evidence."""
    (shelves.root / "set" / "dataset.toml").write_text(TWO, "utf-8")
    shelves.arm(name="one", backend="bm25")
    shelves.arm("options.k1 = 2.0\n", name="two", backend="bm25")
    out = shelves.core("measure").out
    assert f"\n things: {SESSIONS}.\n things: of <few> words.\n" in out
    assert f"\n {SESSIONS}\n of <few> words\n" in shelves.core("inspect", "set").out
    one, two = (read_report(shelves.reports / f"{name}.json") for name in ("one", "two"))
    assert one.statements[:2] == two.statements[:2] == (SESSIONS, "of <few> words")
    compared = json.loads(shelves.core("compare", "one", "two", "--format", "json").out)
    assert compared["statements"][:2] == [SESSIONS, "of <few> words"]
    assert line_of(one).statements == one.statements


def test_a_published_table_carries_what_its_arms_state(shelves: Space) -> None:
    """A6: below the table, with the arms that state it; nothing of it acts as markup."""
    (shelves.root / "set" / "dataset.toml").write_text(TWO, "utf-8")
    shelves.arm(name="one", backend="bm25")
    shelves.arm("limit = 3\ncutoffs = [3]\n", name="two", backend="bm25")
    assert shelves.core("measure").code == 0
    reports = {name: [read_report(shelves.reports / f"{name}.json")] for name in ("one", "two")}
    write_policy(shelves.root / "policy", reports)
    page = shelves.root / "README.md"
    page.write_text("<!-- metrics one two: mrr -->\n<!-- /metrics -->\n", "utf-8")
    assert shelves.core("publish").code == 0
    text = page.read_text("utf-8")
    assert (
        f"| two | 1.000 |\n\none, two: {SESSIONS}.\n\none, two: of &lt;few&gt; words.\n\none: limit 10 of"
        in text
    )
    assert shelves.core("publish", "--check").code == 0
    page.write_text(text.replace("session retrieval", "retrieval"), "utf-8")
    assert shelves.core("publish", "--check").code == 1


@pytest.mark.parametrize("value", ['"one"', '[""]', '[" "]', '["two\\nlines"]', "[1]"])
def test_a_statement_is_a_sentence_on_one_line(shelves: Space, value: str) -> None:
    """A6: each is printed as a line of its own."""
    (shelves.root / "set" / "dataset.toml").write_text(f'name = "things"\nstatements = {value}\n', "utf-8")
    done = shelves.core("validate", "set")
    assert done.code == 2
    assert done.out.startswith("set/dataset.toml:2: statements")


def test_round2_n8_what_has_no_words_is_counted_where_a_set_is_looked_at(shelves: Space) -> None:
    """N8: two of eight documents without a text, one without width; a title is one. Two queries without a word."""
    documents = {f"d{number}": f"thing {number}" for number in range(1, 6)}
    blank = {"d6": "\u200b", "d7": " \n", "d8": {"title": "thing 8", "text": ""}}
    queries = {"q1": "thing 1", "q2": "?!", "q3": "…", "q4": {"text": "", "metadata": {"unanswerable": True}}}
    shelves.set(
        {**documents, **blank}, queries, [(f"q{n}", f"d{n}", 1) for n in (1, 2, 3)], 'name = "things"\n'
    )
    shelves.arm(backend="bm25")
    counts = ("2 of 8 documents without a text", "2 queries without a word: q2, q3")
    assert f"; {counts[0]}; {counts[1]}\n" in shelves.core("validate", "set").out
    assert f"\n {counts[0]}\n {counts[1]}\n" in shelves.core("inspect", "set").out
    assert f" things: {counts[0]}.\n things: {counts[1]}.\n" in shelves.core("measure").out
    assert read_report(shelves.reports / "arm.json").statements[:2] == counts


@pytest.mark.parametrize("equal", [5, 4])
def test_round2_n8_one_text_for_most_queries_is_stated(shelves: Space, equal: int) -> None:
    """N8: `nan` is what a converter writes that read the wrong column; of fewer than five, nothing is said."""
    queries = {**{f"q{n}": "NaN" for n in range(equal)}, **{f"r{n}": f"thing {n}" for n in range(3)}}
    shelves.set({"d": "thing"}, queries, [(name, "d", 1) for name in queries], 'name = "things"\n')
    told = shelves.core("validate", "set").out
    assert ("; 5 of 8 queries ask the same: 'nan'\n" in told) == (equal == 5)


def test_round2_n5_inspect_says_it_of_each_ranker(shelves: Space, tmp_path: Path) -> None:
    """N5: with its headroom."""
    text = shelves.core("inspect", "set", "--headroom").out
    assert f" bm25: recall@10 is 1.000 for 6 of 6 queries: {CANNOT}; ask harder queries" in text
    found = json.loads(shelves.core("inspect", "set", "--headroom", "--format", "json").out)
    assert CANNOT in found["headroom"][-1]["statements"][-1]


def test_round2_n5_shared_words_are_held_against_other_documents(shelves: Space) -> None:
    """N5: "thing 1" has both of its words in its target, and one of them in each of the seven others."""
    shelves.arm(backend="bm25")
    said = "queries share 100% of their words with their targets, 50% with other documents"
    assert f" things: {said}.\n" in shelves.core("measure").out
    assert f" {said}\n" in shelves.core("inspect", "set").out
