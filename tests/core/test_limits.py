"""What a set's numbers cannot show, measured from its texts and labels alone."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from core_support import Space
from hypothesis import given
from hypothesis import strategies as st

from eval_core.backend import Document
from eval_core.sets.dataset import Query, load
from eval_core.sets.limits import Limits
from eval_core.sets.scan import look, scan
from eval_core.sets.words import words

LONG = "one two three four five six seven eight nine ten eleven twelve"


def limits(
    documents: Mapping[str, str],
    queries: Sequence[tuple[str, str, Mapping[str, object]]],
    judgements: Mapping[str, Mapping[str, int]],
) -> Limits:
    corpus = [Document(name, "", text) for name, text in documents.items()]
    return scan(corpus, [Query(*query) for query in queries], judgements)


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
    found, near = look(corpus, [Query("q", "x")], {"q": {"d": 1}})
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


# --------------------------------------------------------------------------------------------- what a query can find


def plainly(
    documents: Sequence[Document], queries: Sequence[Query], judgements: Mapping[str, Mapping[str, int]]
) -> tuple[list[str], list[tuple[str, str, str]], float | None]:
    """The definitions, read aloud: every query against every document of its scope, and every pair of documents."""
    leaked, near, others = [], [], []
    for query in queries:
        relevant = {name for name, grade in judgements.get(query.id, {}).items() if grade > 0}
        if not relevant:
            continue
        can_find = [
            d for d in documents if query.scope is None or query.scope in d.metadata.get("scopes", ())
        ]
        own = words(query.text)
        row = f" {' '.join(own)} "
        kept = [d for d in can_find if d.id not in query.exclude]
        if len(own) >= 4 and any(row in f" {' '.join(words(d.text))} " for d in kept):
            leaked.append(query.id)
        shares = [
            len(set(own) & set(words(d.text))) / len(set(own)) for d in kept if d.id not in relevant and own
        ]
        if [d for d in kept if d.id not in relevant]:
            others.append(sum(shares) / len(shares) if shares else 0.0)
        for judged in (d for d in can_find if d.id in relevant):
            for other in kept:
                a, b = runs(judged.text), runs(other.text)
                if other.id not in relevant and len(a & b) >= 0.8 * len(a | b) and a & b:
                    near.append((query.id, judged.id, other.id))
    return sorted(leaked), sorted(near), sum(others) / len(others) if others else None


def runs(text: str) -> set[tuple[str, ...]]:
    tokens = words(text)
    return {tuple(tokens[i : i + 5]) for i in range(max(1, len(tokens) - 4))} if tokens else set()


def variants(seed: int) -> tuple[list[Document], list[Query], dict[str, dict[str, int]]]:
    """Texts with copies that differ in more and more words, in scopes that overlap; some queries are quotations."""
    chance = random.Random(seed)
    documents: list[Document] = []
    for base in range(8):
        text = [f"w{chance.randrange(60)}" for _ in range(chance.choice((3, 6, 20, 40, 120)))]
        for copy in range(4):
            changed = list(text)
            for _ in range(copy * len(text) // 60 + chance.randrange(2)):
                changed[chance.randrange(len(changed))] = f"w{chance.randrange(60)}"
            scopes = chance.choice(([], ["a"], ["b"], ["a", "b"], ["c"]))
            documents.append(Document(f"{base}.{copy}", "", " ".join(changed), {"scopes": scopes}))
    queries, judgements = [], {}
    for number in range(12):
        scope = chance.choice((None, "a", "b"))
        seen = [d for d in documents if scope is None or scope in d.metadata["scopes"]]
        quoted = chance.choice(seen).text.split()
        start = chance.randrange(len(quoted))
        metadata: dict[str, object] = {"scope": scope} if scope else {}
        if chance.random() < 0.3:
            metadata["exclude"] = [chance.choice(seen).id]
        query = Query(f"q{number}", " ".join(quoted[start : start + 6]), metadata)
        queries.append(query)
        fit = [d.id for d in seen if d.id not in query.exclude]
        judgements[query.id] = dict.fromkeys(chance.sample(fit, min(2, len(fit))), 1)
    return documents, queries, judgements


@pytest.mark.parametrize("seed", range(30))
def test_round2_n4_limits_are_those_of_what_each_query_can_find(seed: int) -> None:
    """N4: near-duplicates, leaks and shares of words are those that a plain search in each query's scope gives."""
    documents, queries, judgements = variants(seed)
    found, near = look(documents, queries, judgements)
    leaked, pairs, others = plainly(documents, queries, judgements)
    assert found.leaked == tuple(leaked)
    assert [(pair.query, pair.judged, pair.unjudged) for pair in near] == pairs[:20]
    assert found.near_duplicates == len({judged for _, judged, _ in pairs})
    assert found.overlap.others == pytest.approx(others)


def test_the_variants_hold_what_they_are_made_to_show() -> None:
    """A6: copies on either side of the threshold, in and out of scope, and quotations: else they would show nothing."""
    kinds = [plainly(*variants(seed)) for seed in range(30)]
    assert sum(len(near) for _, near, _ in kinds) > 50
    assert sum(len(leaked) for leaked, _, _ in kinds) > 50
    everywhere = [
        plainly(documents, [Query(q.id, q.text, {"exclude": list(q.exclude)}) for q in queries], judgements)
        for documents, queries, judgements in map(variants, range(30))
    ]
    assert sum(len(near) for _, near, _ in everywhere) > sum(len(near) for _, near, _ in kinds) + 50


@pytest.mark.parametrize("name", ["memory", "dedupe"])
def test_the_limits_of_a_set_without_scopes_are_those_of_a_plain_search(name: str) -> None:
    """A6: on the sets of this repository."""
    dataset = load(Path(__file__).resolve().parents[2] / "datasets" / name)
    found, near = look(dataset.corpus, dataset.queries, dataset.judgements)
    leaked, pairs, others = plainly(list(dataset.corpus), dataset.queries, dataset.judgements)
    assert (list(found.leaked), [(p.query, p.judged, p.unjudged) for p in near]) == (leaked, pairs)
    assert found.overlap.others == pytest.approx(others)


TWIN = {"text": LONG, "metadata": {"kind": "note"}}

#: By what parts two equal texts: the documents, the query's metadata, other files, keys of the arm.
PARTED: dict[str, tuple[dict[str, object], dict[str, object], dict[str, str], str]] = {
    "scope": (
        {"d": {**TWIN, "metadata": {"scopes": ["a"]}}, "twin": {**TWIN, "metadata": {"scopes": ["b"]}}},
        {"scope": "a"},
        {},
        "",
    ),
    "scope of one alone": (
        {"d": {**TWIN, "metadata": {"scopes": ["a"]}}, "twin": TWIN},
        {"scope": "a"},
        {},
        "",
    ),
    "filter": (
        {"d": TWIN, "twin": {**TWIN, "metadata": {"kind": "plan"}}},
        {"kind": "note"},
        {},
        'filter_from = ["kind"]',
    ),
    "time": (
        {"d": TWIN, "twin": TWIN},
        {},
        {"timeline_jsonl": '{"epoch": 1, "id": "d", "supersedes": "twin"}\n'},
        "",
    ),
}


@pytest.mark.parametrize("by", PARTED)
def test_round2_n4_a_text_that_the_query_cannot_find_is_no_near_duplicate(by: str, space: Space) -> None:
    """N4: parted by scope, by the arm's filter or by time, the twin of a judged document is not in its way."""
    documents, metadata, files, keys = PARTED[by]
    for name, told in (("set", metadata), ("whole", {})):
        query = {"text": "what is it", "metadata": told}
        own = documents if name == "set" else {"d": TWIN, "twin": TWIN}
        space.set(own, {"q": query}, [("q", "d", 1)], name=name, **(files if name == "set" else {}))
    space.arm(keys, backend="bm25")
    space.arm(name="whole", backend="bm25", dataset="whole")
    parted, whole = (made.limits for made in space.plans())
    assert parted is not None
    assert whole is not None
    assert (parted.near_duplicates, whole.near_duplicates) == (0, 1)


@pytest.mark.parametrize(("scope", "leaks"), [("a", 0), ("b", 1), (None, 1)])
def test_round2_n4_a_leak_is_in_a_document_that_the_query_can_find(scope: str | None, leaks: int) -> None:
    """N4: the same words in another scope tell the retriever nothing."""
    documents = [
        Document("a", "", "nothing", {"scopes": ["a"]}),
        Document("ab", "", "no more", {"scopes": ["a", "b"]}),
        Document("b", "", LONG, {"scopes": ["b"]}),
        Document("free", "", "nor this"),
    ]
    query = Query("q", "two three four five", {} if scope is None else {"scope": scope})
    assert scan(documents, [query], {"q": {"ab": 1}}).leaks == leaks


def test_a_document_is_cut_into_words_once_and_only_where_a_query_can_find_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """N4: what a scan costs: its words are most of it."""
    counted: list[str] = []

    def counting(text: str) -> list[str]:
        counted.append(text)
        return words(text)

    monkeypatch.setattr("eval_core.sets.scan.words", counting)
    documents = [Document(f"d{n}", "", f"text {n}", {"scopes": ["a" if n < 3 else "b"]}) for n in range(6)]
    scan(documents, [Query("q", "query", {"scope": "a"})], {"q": {"d1": 1}})
    assert sorted(counted) == ["query", "text 0", "text 1", "text 2"]


def test_the_mean_share_of_words_with_other_documents() -> None:
    """N5: by hand: of q1's four words, d2 holds 1, d3 2, d4 none, d1 is its target: 3/12. q2 excludes d4, and d1 and d3
    hold 1 and 0 of its two: 1/4."""
    found = limits(
        {"d1": "do red apples", "d2": "red pears", "d3": "apples fly", "d4": "nothing"},
        [("q1", "do red apples fly", {}), ("q2", "red pears", {"exclude": ["d4"]})],
        {"q1": {"d1": 1}, "q2": {"d2": 1}},
    )
    assert found.overlap.others == pytest.approx((3 / 12 + 1 / 4) / 2)


def test_a_document_that_is_excluded_and_out_of_scope_is_not_among_the_others() -> None:
    """N5: by hand: in scope a, beside its target, d2 holds one of the two words; d3 and d4 are of another scope."""
    scopes = {"d1": "a", "d2": "a", "d3": "b", "d4": "b"}
    documents = [Document(name, "", "red pears", {"scopes": [scope]}) for name, scope in scopes.items()]
    documents[1] = Document("d2", "", "red plums", {"scopes": ["a"]})
    query = Query("q", "red pears", {"scope": "a", "exclude": ["d3", "d4"]})
    assert scan(documents, [query], {"q": {"d1": 1}}).overlap.others == 1 / 2


def test_memory_follows_the_largest_scope_and_not_their_number() -> None:
    """A scope a question, as chat histories have them: what is kept of a scope is freed behind its last document."""

    def peak(scopes: int) -> int:
        def documents() -> Iterator[Document]:
            for number in range(scopes * 2):
                text = " ".join(f"{number}x{word}" for word in range(2000))
                yield Document(f"d{number}", "", text, {"scopes": [f"s{number // 2}"]})

        class Corpus:
            def __iter__(self) -> Iterator[Document]:
                return documents()

        queries = [Query(f"q{n}", "x", {"scope": f"s{n}"}) for n in range(scopes)]
        tracemalloc.start()
        scan(Corpus(), queries, {f"q{n}": {f"d{2 * n}": 1} for n in range(scopes)})
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(40) < 3 * peak(4)


def test_where_there_is_no_other_document_there_is_no_share() -> None:
    assert limits({"d": "x"}, [("q", "x", {})], {"q": {"d": 1}}).overlap.others is None


def test_round2_n4_changes_that_lie_together_hide_no_near_duplicate() -> None:
    """N4: a look at the middle of a text rules it out: by hand, 204 words are 200 runs of five; 40 more words in their
    middle break 4 of them and add 44, so that 196 of 244 are in common, 0.803; 50 leave 196 of 254, 0.772."""
    text = [f"w{number}" for number in range(204)]
    more = [f"x{number}" for number in range(50)]
    documents = [
        Document(name, "", " ".join(text[:102] + more[:length] + text[102:]))
        for name, length in (("d", 0), ("near", 40), ("far", 50))
    ]
    _, near = look(documents, [Query("q", "x")], {"q": {"d": 1}})
    assert [pair.unjudged for pair in near] == ["near"]
