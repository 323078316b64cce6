"""Why a judged document stands where it does: each cause on a set that has it alone, and a real measured one."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from core_support import INLINE, QUERIES, Space, Told, told

from eval_core import explain as explaining
from eval_core.backend import BackendError, Reply
from eval_core.compare.models import of_line, of_report
from eval_core.config import Arm
from eval_core.explain import explain, hidden
from eval_core.explain.choose import headline_of, lost, missed
from eval_core.explain.models import Explanation, JudgedDocument
from eval_core.measuring.plan import Plan
from eval_core.policy.evidence import line_of
from eval_core.reports.models import Judged, ReportRow
from eval_core.reports.report import Report, read_report
from eval_core.scoring.metrics import parse
from eval_core.sets.dataset import load

ROOT = Path(__file__).resolve().parents[2]
REPORT = Path(".eval/reports/arm.json")


def explained(space: Space, report: Report, *queries: str, **asked: Any) -> Explanation:
    return explain(report, REPORT, queries=queries, workspace=space.workspace(), **asked)


def by_id(found: Explanation, query: str | None = None) -> dict[str, JudgedDocument]:
    """The judged documents of a query, the only one unless it is named."""
    (one,) = (q for q in found.queries if query in (None, q.id))
    return {document.id: document for document in one.judged}


# --------------------------------------------------------------------------------------------- a real set


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> tuple[Space, Report]:
    """datasets/memory measured with bm25."""
    space = Space(tmp_path_factory.mktemp("memory"), lambda name, factory: None)
    space.arm("repetitions = 1", backend="bm25", dataset=str(ROOT / "datasets" / "memory"))
    return space, space.measure()


def test_every_document_of_a_measured_set_is_told_as_its_rank_says(memory: tuple[Space, Report]) -> None:
    space, report = memory
    found = explained(space, report, *(row.id for row in report.rows))
    assert (found.corpus, found.own_by, found.notes) == ("same", "rarest", ())
    texts = {
        line["_id"]: line["text"]
        for line in map(json.loads, (ROOT / "datasets/memory/corpus.jsonl").read_text("utf-8").splitlines())
    }
    seen = set()
    for row, query in zip(report.rows, found.queries, strict=True):
        asked = set(re.findall(r"\w+", row.text.lower()))
        for document in query.judged:
            judged = next(j for j in row.judged if j.id == document.id)
            assert document.rank == judged.rank
            assert document.status == ("not-retrieved" if judged.rank is None else "within")
            assert document.in_corpus is True
            assert document.shares is not None
            assert set(document.shares) == asked & set(re.findall(r"\w+", texts[document.id].lower()))
            assert not set(document.own) & asked
            assert (document.score is None) == (document.rank is None)
            seen.add(document.status)
        ranks = [shown.rank for shown in query.above]
        assert ranks == sorted(ranks, key=lambda rank: rank or 0)
        assert not {shown.id for shown in query.above} & {d.id for d in query.judged if d.grade}
    assert seen == {"within", "not-retrieved"}


def test_a_query_that_shares_no_word_with_its_target(memory: tuple[Space, Report]) -> None:
    """By eye: "why don't we use semver?" and the fact on calendar versions have no word in common."""
    space, report = memory
    found = explained(space, report, "q22")
    (query,) = found.queries
    assert query.words == ("why", "don", "t", "we", "use", "semver")
    (document,) = query.judged
    assert (document.id, document.status, document.shares) == ("fact-23", "not-retrieved", ())
    # bm25 returns only documents that hold a word of the query.
    assert query.retrieved == document.outranked == len(report.rows[21].ids) < 10
    assert document.outranked_by == report.rows[21].ids[:3]
    assert all(shown.shares for shown in query.above)


# --------------------------------------------------------------------------------------------- one cause each


def ranked(space: Space, answer: Any, judged: dict[str, int], arm: str = "", **meta: Any) -> Report:
    """A query over d1 … d8, answered as given; every other query is answered rightly."""
    documents = {f"d{n}": {"title": f"title {n}", "text": f"thing {n}"} for n in range(1, 9)}
    space.set(
        documents,
        {**QUERIES, "q1": {"text": "query 1", "metadata": meta}},
        [
            *(("q1", name, grade) for name, grade in judged.items()),
            *((f"q{n}", f"d{n}", 1) for n in range(2, 7)),
        ],
        'name = "things"\nheadline = "recall@3"\n',
    )
    return space.measure(told(q1=answer), text=f"repetitions = 1\nlimit = 6\ncutoffs = [1, 3]\n{arm}")


def test_below_the_cut_off_and_not_retrieved_are_told_apart(space: Space) -> None:
    """A relevant document above another outranks nothing: those that are not relevant do."""
    report = ranked(space, ["d1", "d2", "d3", "d4", "d5"], {"d1": 2, "d4": 1, "d7": 1, "d3": 0, "d8": 0})
    found = explained(space, report, "q1")
    assert (found.headline, found.cutoff, found.limit) == ("recall@3", 3, 6)
    told = {d.id: (d.status, d.rank, d.outranked, d.outranked_by) for d in found.queries[0].judged}
    assert told == {
        "d1": ("within", 1, 0, ()),
        "d4": ("below", 4, 2, ("d2", "d3")),
        "d7": ("not-retrieved", None, 3, ("d2", "d3", "d5")),
        "d3": ("within", 3, 1, ("d2",)),
        "d8": ("not-retrieved", None, 3, ("d2", "d3", "d5")),
    }
    (query,) = found.queries
    assert [d.id for d in query.judged] == ["d1", "d4", "d7", "d3", "d8"], "relevant first, by grade and rank"
    assert [d.id for d in query.astray] == ["d4", "d7"]
    assert [(d.id, d.rank) for d in query.above] == [("d2", 2), ("d3", 3), ("d5", 5)]
    assert query.retrieved == 5
    assert query.value == pytest.approx(1 / 3)


def test_the_report_alone_tells_less_where_its_cut_off_is_above_the_limit(space: Space) -> None:
    """Without the run file, ranks past the largest cut-off are known of judged documents alone."""
    report = ranked(space, ["d2", "d3", "d5", "d4", "d1"], {"d1": 1, "d7": 1})
    (space.runs / "arm.jsonl").unlink()
    found = explained(space, report, "q1")
    documents = by_id(found)
    assert (documents["d1"].status, documents["d1"].outranked) == ("below", 4)
    assert documents["d1"].outranked_by == ("d2", "d3", "d5")
    assert (documents["d7"].status, documents["d7"].outranked) == ("not-retrieved", None)
    assert found.queries[0].retrieved is None


def test_a_headline_that_reaches_past_the_limit_of_the_other_report_gives_way(space: Space) -> None:
    """recall@10 of three documents is no recall@10: recall at the depth that both have stands in its place."""
    space.set(
        {f"d{n}": f"text {n}" for n in range(1, 9)},
        {"q1": QUERIES["q1"]},
        [("q1", "d1", 1), ("q1", "d7", 1)],
        'name = "things"\n',
    )
    report = space.measure(told(q1=["d1"]), text="repetitions = 1\nlimit = 10\ncutoffs = [1, 3, 10]\n")
    short = space.measure(told(q1=["d1"]), text="repetitions = 1\nlimit = 3\ncutoffs = [1, 3]\n")
    found = explained(space, report, "q1", want_missed=True, baseline=of_report("old.json", short))
    assert (found.headline, found.cutoff, found.limit) == ("recall@3", 3, 10)
    assert found.notes == (
        "the sets name different headline measures: recall@10, recall@3; the first is taken",
        "the set's headline measure recall@10 reaches past the limit of 3; recall@3 stands in its place",
        "the baseline was asked something else: limit, cutoffs differ",
    )
    assert found.queries[0].value == 0.5


def test_a_query_that_has_all_it_wants_has_nothing_astray(space: Space) -> None:
    found = explained(space, ranked(space, ["d2", "d1"], {"d1": 1}), "q1")
    assert by_id(found)["d1"].outranked_by == ("d2",)
    assert (found.queries[0].value, found.queries[0].astray, found.queries[0].above) == (1.0, (), ())


CAPABLE = ("filter", "scope", "temporal")
TIMELINE = '{"epoch": 1, "id": "new", "supersedes": "old"}\n{"epoch": 3, "id": "late"}\n'
CAUSES: dict[str, tuple[str, dict[str, Any], str, Any, Any]] = {
    # document: (status, the query's metadata, further keys of the arm, what is asked, what the document has)
    "plan": ("filtered", {"kind": "note"}, 'filter_from = ["kind"]', "note", "plan"),
    "bare": ("filtered", {"kind": "note"}, 'filter_from = ["kind"]', "note", None),
    "other": ("out-of-scope", {"scope": "s"}, "", "s", ["t"]),
    "unscoped": ("out-of-scope", {"scope": "s"}, "", "s", []),
    "gone": ("excluded", {"exclude": ["gone"]}, "", ["gone"], "gone"),
    "old": ("not-visible", {}, "", None, {"from": 0, "to": 1}),
    "late": ("not-visible", {"time": {"as_of": 2}}, "", {"as_of": 2}, {"from": 3, "to": None}),
    "new": ("not-visible", {"time": {"as_of": 0}}, "", {"as_of": 0}, {"from": 1, "to": None}),
}


@pytest.mark.parametrize("document", CAUSES)
def test_what_a_query_may_not_find_is_no_failure_of_the_ranking(space: Space, document: str) -> None:
    """A judged document (of grade 0: a relevant one would not load) outside filter, scope, time or by exclusion."""
    status, meta, arm, asked, has = CAUSES[document]
    metadata = {"plan": {"kind": "plan"}, "other": {"scopes": ["t"]}}.get(document, {})
    good = {"text": "t", "metadata": {"kind": "note", "scopes": ["s"]}}
    documents = {
        document: {"text": "t", "metadata": metadata},
        "good": good,
        "new": "t",
        "old": "t",
        "late": "t",
    }
    documents[document] = {"text": "t", "metadata": metadata}
    space.set(
        documents,
        {"q": {"text": "q", "metadata": meta}, "other": {"text": "o", "metadata": {"kind": "note"}}},
        [("q", "good", 1), ("q", document, 0), ("other", "good", 1)],
        timeline_jsonl=TIMELINE,
    )
    report = space.measure(Told({"q": ["good"], "o": ["good"]}, CAPABLE), text=arm)
    found = explained(space, report, "q")
    told = by_id(found)[document]
    assert told.status == status
    (reason,) = told.hidden
    assert (reason.asked, reason.has) == (asked, has)
    assert by_id(found)["good"].hidden == ()
    if document == "plan":
        # What the arm filtered by when it was measured holds, whatever eval.toml says by now.
        space.config.unlink()
        space.arm()
        assert by_id(explained(space, report, "q"))["plan"].status == "filtered"


def test_reasons_are_given_exactly_where_measuring_hides_a_document(tmp_path: Path, space: Space) -> None:
    """Every document against every query of a set in which scopes, kinds and times cross."""
    kinds: tuple[dict[str, Any], ...] = ({}, {"kind": "note"}, {"kind": "plan"})
    scopes: tuple[dict[str, Any], ...] = ({}, {"scopes": ["s"]}, {"scopes": ["s", "t"]})
    documents: dict[str, Any] = {
        f"d{n}": {"text": "t", "metadata": {**kind, **scope}}
        for n, (kind, scope, _) in enumerate(itertools.product(kinds, scopes, range(3)))
    }
    times: tuple[dict[str, Any], ...] = (
        {},
        {"time": {"as_of": 1}},
        {"time": {"between": [1, 2]}},
        {"time": {"historical": True}},
    )
    asked: tuple[dict[str, Any], ...] = ({}, {"scope": "s"}, {"scope": "t"})
    metas = list(itertools.product(kinds[:2], asked, times))
    queries: dict[str, Any] = {
        f"q{n}": {"text": "q", "metadata": {**a, **b, **c}} for n, (a, b, c) in enumerate(metas)
    }
    timeline = "".join(
        json.dumps({"epoch": 1, "ends": name}) + "\n" + json.dumps({"epoch": 2, "id": other}) + "\n"
        for name, other in zip(list(documents)[1::3], list(documents)[2::3], strict=True)
    )
    unanswerable = {
        name: {**query, "metadata": {**query["metadata"], "unanswerable": True}}
        for name, query in queries.items()
    }
    folder = space.set(documents, unanswerable, [("q0", "d0", 0)], INLINE, timeline_jsonl=timeline)
    dataset = load(folder, keys=("kind",))
    plan = Plan(
        "arm", Arm(dataset="d", backend="b", filter_from=("kind",)), tmp_path, dataset, (), 10, (10,), "none"
    )
    counts = {True: 0, False: 0}
    for query in dataset.queries:
        row = ReportRow(id=query.id, text=query.text, meta=query.meaning(("kind",)), outcome="scored")
        for document in documents:
            visible = dataset.visible(document, query, plan.filter_for(query))
            assert visible == (not hidden(row, document, plan)), (query, document)
            counts[visible] += 1
    assert min(counts.values()) > 100, counts


def test_a_judged_document_that_the_measured_corpus_never_had(space: Space) -> None:
    """Loading a set refuses it, so such a report was not made by measuring; it is told all the same."""
    report = ranked(space, ["d2"], {"d1": 1})
    first = report.rows[0]
    rows = (
        first.model_copy(update={"judged": (*first.judged, Judged(id="d9", grade=0, rank=None))}),
        *report.rows[1:],
    )
    found = explained(space, report.model_copy(update={"rows": rows}), "q1")
    assert {d.id: (d.status, d.in_corpus) for d in found.queries[0].judged} == {
        "d1": ("not-retrieved", True),
        "d9": ("absent", False),
    }


def test_rows_that_were_not_scored_tell_their_reason(space: Space) -> None:
    """S3: harness health apart: an errored row is no finding, and its documents are not called lost."""
    report = ranked(space, BackendError("timed out after 10 s"), {"d1": 1})
    found = explained(space, report, "q1")
    (query,) = found.queries
    assert (query.outcome, query.detail, query.value) == ("errored", "timed out after 10 s", None)
    assert by_id(found)["d1"].status == "not-scored"
    assert (query.astray, query.above, query.retrieved) == ((), (), None)
    assert explained(space, report, want_missed=True).notes == (
        "not among the missed: 1 errored or unscored, such as 'q1'",
    )


def test_an_unscorable_row_tells_its_reason(kinds: Space) -> None:
    time = {"time": {"historical": True}}
    kinds.set(
        {"d1": "t"}, {"q1": {"text": "t", "metadata": time}, "q2": "t"}, [("q1", "d1", 1), ("q2", "d1", 1)]
    )
    report = kinds.measure(Told({}), text="")
    (query,) = explained(kinds, report, "q1").queries
    assert query.outcome == "unscorable"
    assert query.detail == "the backend 'told' lacks 'temporal', which metadata.time of its queries asks for"


# --------------------------------------------------------------------------------------------- the corpus at hand


def test_a_corpus_that_was_edited_since_is_not_quoted(space: Space) -> None:
    """It is said loudly, and only what the report tells by itself is told; a judged document that is gone is named."""
    report = ranked(space, ["d2", "d3", "d5", "d4"], {"d1": 1, "d4": 1})
    corpus = space.root / "set" / "corpus.jsonl"
    kept = [line for line in corpus.read_text("utf-8").splitlines() if '"d1"' not in line]
    corpus.write_text("\n".join(kept) + "\n", "utf-8")
    found = explained(space, report, "q1")
    assert (found.corpus, found.own_by) == ("differs", None)
    (note,) = found.notes
    assert re.match(
        r"CORPUS DIFFERS: .*corpus\.jsonl is not what was measured \(sha256 \w{12}… now, \w{12}… then\)", note
    )
    assert note.endswith("run  eval-core measure arm")
    assert str(report.task.parts["corpus"])[:12] in note
    documents = by_id(found)
    assert (documents["d1"].status, documents["d1"].in_corpus) == ("not-retrieved", False)
    assert (documents["d4"].status, documents["d4"].in_corpus) == ("below", True)
    shown = [*documents.values(), *found.queries[0].above]
    assert all(document.text is None and document.shares is None for document in shown)
    assert found.queries[0].above[0].score is None


def test_a_corpus_that_is_broken_since_is_named_with_its_line(space: Space) -> None:
    report = ranked(space, ["d2"], {"d1": 1})
    with (space.root / "set" / "corpus.jsonl").open("a", encoding="utf-8") as stream:
        stream.write("{\n")
    found = explained(space, report, "q1")
    assert found.corpus == "differs"
    assert "corpus.jsonl:9: not JSON" in found.notes[0]


def test_a_timeline_that_was_edited_since_decides_nothing(space: Space) -> None:
    documents = {"old": "t", "new": "t"}
    folder = space.set(
        documents,
        {"q": "q"},
        [("q", "new", 1), ("q", "old", 0)],
        timeline_jsonl=TIMELINE.split("\n")[0] + "\n",
    )
    report = space.measure(Told({"q": ["new"]}), text="")
    assert by_id(explained(space, report, "q"))["old"].status == "not-visible"
    (folder / "timeline.jsonl").unlink()
    found = explained(space, report, "q")
    assert found.notes[0].startswith("TIMELINE DIFFERS: ")
    assert (found.corpus, by_id(found)["old"].status) == ("same", "not-retrieved")


def test_without_a_corpus_it_says_what_to_run(space: Space) -> None:
    space.set({"d1": "red", "d2": "blue"}, {"q": "red"}, [("q", "p/d1", 1)], INLINE + 'prefix = "p"\n')
    report = space.measure(Told({"red": ["p/d2"]}), text="")
    assert by_id(explained(space, report, "q"))["p/d1"].text == "red"
    (space.root / ".eval" / "corpora" / "things" / "corpus.jsonl").unlink()
    found = explained(space, report, "q")
    assert found.corpus == "absent"
    (note,) = found.notes
    assert note.startswith("explained from the report alone, without texts: ")
    assert f"run  eval-core reconstruct {space.root / 'set'}" in note
    document = by_id(found)["p/d1"]
    assert (document.status, document.in_corpus, document.outranked_by) == ("not-retrieved", None, ("p/d2",))


def test_without_the_arm_or_its_set_the_report_is_explained_alone(space: Space) -> None:
    report = ranked(space, ["d2", "d1"], {"d1": 1})
    space.config.write_text('[arms."another"]\ndataset = "set"\nbackend = "bm25"\n', "utf-8")
    assert "there is no arm 'arm' in " in explained(space, report, "q1").notes[0]
    found = explain(report, REPORT, queries=["q1"])
    assert "say --config FILE" in found.notes[0]
    assert by_id(found)["d1"].rank == 2
    space.config.write_text('[arms."arm"]\ndataset = "nowhere"\nbackend = "bm25"\n', "utf-8")
    assert "nowhere/corpus.jsonl: cannot be read" in explained(space, report, "q1").notes[0]


@pytest.mark.parametrize(
    ("change", "scores"),
    [
        (lambda text: text, [3.0, 1.5]),
        (lambda text: re.sub(r'"run_id":"[^"]+"', '"run_id":"another"', text), [None, None]),
        (lambda text: text.replace('"ids": ["d2", "d1"]', '"ids": ["d3", "d1"]'), [None, None]),
        (lambda text: text.replace("[3.0, 1.5]", "[3.0]"), [None, None]),
        (lambda text: text.replace("[3.0, 1.5]", '[3.0, "x"]'), [None, None]),
        (lambda text: text.replace("[3.0, 1.5]", f"[{10**400}, 1.5]"), [None, None]),
    ],
    ids=["as it was", "another run", "other ids", "too few scores", "no number", "too large"],
)
def test_scores_come_from_the_run_file_of_this_very_run(
    space: Space, change: Callable[[str], str], scores: list[float | None]
) -> None:
    report = ranked(space, Reply(["d2", "d1"], [3.0, 1.5]), {"d1": 1, "d2": 0})
    path = space.runs / "arm.jsonl"
    path.write_text(change(path.read_text("utf-8")), "utf-8")
    documents = by_id(explained(space, report, "q1"))
    assert [documents["d2"].score, documents["d1"].score] == scores
    assert [documents["d2"].rank, documents["d1"].rank] == [1, 2]


def test_a_run_file_that_cannot_be_read_costs_the_scores_alone(space: Space) -> None:
    report = ranked(space, ["d2", "d1"], {"d1": 1})
    (space.runs / "arm.jsonl").write_text("{}\n", "utf-8")
    found = explained(space, report, "q1")
    assert "no scores: " in found.notes[0]
    assert by_id(found)["d1"].rank == 2


def test_a_report_that_names_a_path_for_its_arm_is_not_followed(space: Space) -> None:
    report = ranked(space, Reply(["d2", "d1"], [3.0, 1.5]), {"d1": 1})
    (space.runs / "arm.jsonl").rename(space.root / "away.jsonl")
    found = explained(space, report.model_copy(update={"arm": "../../away"}), "q1")
    assert by_id(found)["d1"].score is None


# --------------------------------------------------------------------------------------------- words and texts


def test_words_are_told_rarest_first(space: Space) -> None:
    """By hand: of the query's words d1 has `delay` (in 1 document) and `the` (in 3); of its own, `jitter` stands
    twice in it and `backoff` once, both in no other, and `common` in two."""
    space.set(
        {"d1": "The common jitter: jitter, delay 42 a backoff", "d2": "the common retry", "d3": "the retry"},
        {"q": "the retry delay"},
        [("q", "d1", 1)],
    )
    found = explained(space, space.measure(Told({"the retry delay": ["d2", "d3"]}), text=""), "q")
    document = by_id(found)["d1"]
    assert document.shares == ("delay", "the")
    assert document.own == ("jitter", "backoff", "common")
    assert [(d.id, d.shares) for d in found.queries[0].above] == [
        ("d2", ("retry", "the")),
        ("d3", ("retry", "the")),
    ]


def test_a_large_corpus_is_not_counted_and_that_is_said(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explaining, "SCANNED_BYTES", 10)
    space.set({"d1": "rare many many", "d2": "many"}, {"q": "x"}, [("q", "d1", 1)])
    found = explained(space, space.measure(Told({}), text=""), "q")
    assert (found.own_by, by_id(found)["d1"].own) == ("most-frequent", ("many", "rare"))


def test_an_excerpt_shows_the_rarest_word_in_common(space: Space) -> None:
    filler = " ".join(f"word{n}" for n in range(300))
    space.set({"d1": f"the {filler} needle {filler}", "d2": "the"}, {"q": "the needle"}, [("q", "d1", 1)])
    report = space.measure(Told({"the needle": ["d2"]}), text="")
    text = by_id(explained(space, report, "q"))["d1"].text or ""
    assert text.startswith("…")
    assert text.endswith("…")
    assert 0 < text.index(" needle ") < 100
    assert len(text) <= explaining.EXCERPT + 2
    assert by_id(explained(space, report, "q", full=True))["d1"].text == f"the {filler} needle {filler}"


# --------------------------------------------------------------------------------------------- lost and missed


def test_what_a_baseline_scores_better_is_lost_and_the_worst_comes_first(space: Space) -> None:
    """By hand, recall@3 then and now: q1 1 → 1/2, q2 1 → 1, q3 0 → 1, q4 1 → 0; q5 is not scored any more."""
    judged = {"d1": 1, "d7": 1}
    before = ranked(space, ["d1", "d7"], judged)
    space.measure(told(q1=["d1", "d7"], q3=[]))
    before = read_report(space.reports / "arm.json")
    after = space.measure(told(q1=["d1", "d2", "d3", "d7"], q4=[], q5=BackendError("no")))
    was, now = of_report("old.json", before), of_report("new.json", after)
    headline = headline_of([now], [])
    assert lost(now, was, headline) == ["q4", "q1", "q5"]
    assert lost(was, was, headline) == []
    found = explained(space, after, want_lost=True, baseline=of_report("old.json", before))
    assert found.lost == ("q4", "q1", "q5")
    assert [(q.id, q.before, q.value) for q in found.queries] == [
        ("q4", 1.0, 0.0),
        ("q1", 1.0, 0.5),
        ("q5", 1.0, None),
    ]
    assert (by_id(found, "q1")["d7"].before, by_id(found, "q1")["d7"].rank) == (2, 4)
    assert found.baseline_mean == pytest.approx(5 / 6)
    kept = of_line("policy/evidence/arm.jsonl", "arm", line_of(before))
    assert explained(space, after, want_lost=True, baseline=kept).queries == found.queries
    assert found.mean == pytest.approx(3.5 / 5)
    assert found.notes == ()


def test_what_else_differs_from_the_baseline_is_said(space: Space) -> None:
    before = ranked(space, ["d1"], {"d1": 1})
    after = ranked(
        space, ["d2"], {"d1": 1}, 'options = { depth = 2 }\nselect = { category = ["x"] }', category="x"
    )
    found = explained(space, after, want_lost=True, baseline=of_report("old.json", before))
    assert found.notes == (
        "the baseline was asked something else: query_ids, queries, judgements differ",
        "system changed since the baseline: options.depth unset → 2",
        "5 of the baseline's queries are not in the report: 'q2', 'q3', 'q4', …",
    )


@pytest.mark.parametrize(
    ("headline", "expected"),
    [
        # Of two relevant documents: `both` within 3, `one` (the other at rank 4), `low` both below, `none`.
        ("recall@3", ["low", "none", "one"]),
        ("hit@3", ["low", "none"]),
        ("mrr@3", ["low", "none"]),
        ("mrr", ["none", "low"]),
        ("all@3", ["low", "none", "one"]),
        ("hit@1", ["low", "none", "one"]),
    ],
)
def test_a_query_is_missed_where_the_cut_off_holds_too_little(
    space: Space, headline: str, expected: list[str]
) -> None:
    """Where one relevant document is enough (hit, mrr), one within the cut-off is no miss."""
    space.set(
        {f"d{n}": "t" for n in range(1, 9)},
        {name: name for name in ("both", "one", "low", "none")},
        [(name, document, 1) for name in ("both", "one", "low", "none") for document in ("d1", "d2")],
        f'name = "s"\nheadline = "{headline}"\n',
    )
    answers = {
        "both": ["d1", "d2"],
        "one": ["d3", "d1", "d4", "d2"],
        "low": ["d3", "d4", "d5", "d1", "d2"],
        "none": ["d3", "d4", "d5"],
    }
    report = space.measure(Told(answers), text="limit = 6\ncutoffs = [1, 3]\n")
    assert missed(of_report("a.json", report), parse(headline)) == expected
    assert explained(space, report, want_missed=True).missed == tuple(expected)


def test_queries_that_are_named_come_first_and_none_comes_twice(space: Space) -> None:
    report = ranked(space, ["d2"], {"d1": 1})
    found = explained(space, report, "q3", "q3", want_missed=True)
    assert [query.id for query in found.queries] == ["q3", "q1"]
