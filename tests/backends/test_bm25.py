"""BM25: equal to two independent computations, and right where the library by itself is not."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from eval_backends.bm25 import BM25, idf, whitespace
from eval_core.backend import Backend, BackendError, Document, Reply, Request, make
from eval_core.errors import CouldNot, Misuse
from eval_core.sets.corpus import CorpusFile

FACTS = {
    "f1": "the vpn is deferred until the second quarter",
    "f2": "deploys go out on tuesday and never on friday",
    "f3": "the forge listens on loopback only",
    "f4": "on friday the vpn vpn vpn is down",
    "f5": "",
    "f6": "sandboxed home for the agents",
}


class Held:
    """A corpus in memory."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents

    @property
    def kind(self) -> str:
        return ""

    @property
    def path(self) -> Path:
        return Path(tempfile.gettempdir()) / "absent.jsonl"

    def __len__(self) -> int:
        return len(self._documents)

    def __iter__(self) -> Any:
        return iter(self._documents)


def indexed(texts: Mapping[str, str], **options: Any) -> BM25:
    backend = BM25(**options)
    backend.index(Held([Document(name, "", text) for name, text in texts.items()]))
    return backend


def scored(reply: Reply) -> dict[str, float]:
    assert reply.scores is not None
    return dict(zip(reply.ids, reply.scores, strict=True))


def by_hand(texts: Mapping[str, str], query: str, k1: float, b: float) -> dict[str, float]:
    """The formula, a loop over documents in a loop over query tokens, of every document that holds one of them."""
    split = {name: text.split() for name, text in texts.items()}
    mean = sum(map(len, split.values())) / len(split)
    out = {}
    for name, tokens in split.items():
        if not set(tokens) & set(query.split()):
            continue
        total = 0.0
        for word in query.split():
            holding = sum(word in other for other in split.values())
            weight = math.log(1 + (len(split) - holding + 0.5) / (holding + 0.5))
            count = tokens.count(word)
            total += weight * count * (k1 + 1) / (count + k1 * (1 - b + b * len(tokens) / mean))
        out[name] = total
    return out


@pytest.mark.parametrize(
    "query", ["vpn", "friday vpn", "the vpn", "on on friday", "vpn unheard", "loopback the"]
)
@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (0.9, 0.4), (2, 1), (0.001, 0)])
def test_scores_are_those_of_the_formula(query: str, k1: float, b: float) -> None:
    assert scored(indexed(FACTS, k1=k1, b=b).search(Request(query, 10))) == pytest.approx(
        by_hand(FACTS, query, k1, b), rel=1e-12
    )


def test_scores_are_the_librarys_own_with_its_own_idf() -> None:
    """The library is the oracle: the same tokens, the same idf, bit for bit the same scores."""
    library = BM25Okapi([text.split() for text in FACTS.values()])
    backend = indexed(FACTS)
    backend._engine.idf = library.idf
    for query in ("friday vpn", "the vpn vpn", "loopback agents"):
        expected = {
            name: score
            for name, score, text in zip(
                FACTS, library.get_scores(query.split()), FACTS.values(), strict=True
            )
            if set(text.split()) & set(query.split())
        }
        assert scored(backend.search(Request(query, 10))) == expected


def test_scores_are_the_librarys_own_with_our_idf() -> None:
    library = BM25Okapi([text.split() for text in FACTS.values()])
    library.idf = {
        word: math.log(1 + (6 - holding + 0.5) / (holding + 0.5))
        for word in library.idf
        if (holding := sum(word in text.split() for text in FACTS.values()))
    }
    every = dict(zip(FACTS, library.get_scores(["the", "vpn", "friday"]), strict=True))
    reply = scored(indexed(FACTS).search(Request("the vpn friday", 10)))
    assert reply == pytest.approx({name: score for name, score in every.items() if score > 0}, rel=1e-12)
    assert list(reply) == sorted(reply, key=lambda name: (-every[name], name))


def test_a_score_worked_on_paper() -> None:
    """Two documents of three tokens, one holding the term once: ln 2 · 1 · 2.5 / (1 + 1.5) = ln 2."""
    assert scored(indexed({"a": "x y z", "b": "u v w"}).search(Request("x", 5))) == pytest.approx(
        {"a": math.log(2)}
    )


# ------------------------------------------------------------------ where the library is wrong by itself


@pytest.mark.parametrize(
    "texts", [{}, {"a": ""}, {"a": "", "b": " \n", "c": "…"}], ids=["no document", "empty", "no word"]
)
def test_a_corpus_without_words_answers_nothing(texts: dict[str, str]) -> None:
    """The library divides by zero."""
    with pytest.raises(ZeroDivisionError):
        BM25Okapi([text.split() if text.isalpha() else [] for text in texts.values()])
    assert indexed(texts).search(Request("anything", 5)) == Reply([], [])


@pytest.mark.parametrize("query", ["", "   ", "?!", "unheard", "unheard of words"])
def test_a_query_without_a_known_word_answers_nothing(query: str) -> None:
    """The library returns documents for these."""
    assert BM25Okapi([text.split() for text in FACTS.values()]).get_top_n(query.split(), list(FACTS), 3)
    assert indexed(FACTS).search(Request(query, 5)) == Reply([], [])


@pytest.mark.parametrize(
    ("texts", "query"),
    [
        ({"a": "vpn down", "b": "forge up"}, "vpn"),  # a corpus of two
        ({"a": "vpn", "b": "vpn vpn", "c": "vpn x"}, "vpn"),  # in every document
        ({"a": "vpn", "b": "forge", "c": "vpn x", "d": "y"}, "vpn"),  # in half
        ({"a": "vpn"}, "vpn"),  # a corpus of one
    ],
)
def test_a_frequent_word_still_counts(texts: dict[str, str], query: str) -> None:
    """The library's idf is zero or below for these, so its scores order nothing or order backwards."""
    assert BM25Okapi([text.split() for text in texts.values()]).idf[query] <= 0
    reply = scored(indexed(texts).search(Request(query, 5)))
    assert set(reply) == {name for name, text in texts.items() if query in text.split()}
    assert all(score > 0 for score in reply.values())


def test_more_of_a_word_that_is_everywhere_ranks_higher() -> None:
    texts = {"a": "vpn x x", "b": "vpn vpn x", "c": "vpn vpn vpn"}
    assert indexed(texts).search(Request("vpn", 3)).ids == ["c", "b", "a"]


def test_idf_is_above_zero_and_falls() -> None:
    values = [idf(1_000_000, holding) for holding in (1, 10, 500_000, 999_999, 1_000_000)]
    assert all(value > 0 for value in values)
    assert values == sorted(values, reverse=True)


def test_only_documents_that_hold_a_query_word_are_returned() -> None:
    assert set(indexed(FACTS).search(Request("loopback friday", 99)).ids) == {"f2", "f3", "f4"}


def test_a_repeated_query_word_counts_again() -> None:
    once, twice = (
        scored(indexed(FACTS).search(Request(query, 1)))["f3"] for query in ("forge", "forge forge")
    )
    assert twice == pytest.approx(2 * once)


# ------------------------------------------------------------------ order


def test_ties_are_in_id_order_before_the_cut() -> None:
    texts = dict.fromkeys(("d", "b", "e", "a", "c", "ä", "Z"), "same words") | {"z": "other"}
    backend = indexed(texts)
    assert backend.search(Request("same", 20)).ids == ["Z", "a", "b", "c", "d", "e", "ä"]
    for k in range(1, 8):
        assert backend.search(Request("same", k)).ids == ["Z", "a", "b", "c", "d", "e", "ä"][:k]


texts_and_query = st.tuples(
    st.dictionaries(
        st.text("abcxyz09", min_size=1, max_size=3),
        st.lists(st.sampled_from("pqrst"), max_size=6).map(" ".join),
        max_size=30,
    ),
    st.lists(st.sampled_from("pqrstu"), max_size=4).map(" ".join),
)


@settings(max_examples=150, deadline=None)
@given(texts_and_query, st.randoms(use_true_random=False))
def test_any_corpus_is_ranked_by_the_formula_whatever_its_order(
    case: tuple[dict[str, str], str], random: Any
) -> None:
    texts, query = case
    reply = indexed(texts).search(Request(query, 20))
    expected = by_hand(texts, query, 1.5, 0.75) if texts else {}
    assert reply.scores is not None
    assert scored(reply) == pytest.approx({name: expected[name] for name in reply.ids}, rel=1e-12)
    assert len(reply.ids) == min(20, len(expected))
    pairs = [(-score, name) for name, score in zip(reply.ids, reply.scores, strict=True)]
    assert pairs == sorted(pairs)
    left_out = expected.keys() - set(reply.ids)
    assert all(expected[name] <= reply.scores[-1] * (1 + 1e-12) for name in left_out)

    shuffled = list(texts.items())
    random.shuffle(shuffled)
    assert indexed(dict(shuffled)).search(Request(query, 20)) == reply


@settings(max_examples=100, deadline=None)
@given(texts_and_query, st.integers(1, 20))
def test_the_answer_to_a_smaller_k_is_a_prefix(case: tuple[dict[str, str], str], k: int) -> None:
    texts, query = case
    backend = indexed(texts)
    whole, part = backend.search(Request(query, 20)), backend.search(Request(query, k))
    assert whole.scores is not None
    assert part == Reply(list(whole.ids)[:k], list(whole.scores)[:k])


# ------------------------------------------------------------------ filters


def test_a_filter_removes_documents_and_changes_no_score(corpus: Callable[..., CorpusFile]) -> None:
    """K1: a kind-filtered arm: idf stays that of the whole corpus, so what is left has the scores it had."""
    kinds = {"f1": "decision", "f2": "rule", "f3": "rule", "f4": "decision", "f5": "rule", "f6": "fact"}
    backend = BM25()
    backend.index(
        corpus({name: {"text": text, "metadata": {"kind": kinds[name]}} for name, text in FACTS.items()})
    )
    every = scored(backend.search(Request("the vpn on friday", 10)))
    some = scored(backend.search(Request("the vpn on friday", 10, filter={"kind": "rule"})))
    assert some == {name: score for name, score in every.items() if kinds[name] == "rule"}
    assert set(some) == {"f2", "f3"}
    assert backend.search(Request("the vpn", 10, filter={"kind": "unheard"})) == Reply([], [])
    assert backend.search(Request("the vpn", 10, filter={})) == backend.search(Request("the vpn", 10))


def test_a_filter_is_applied_before_the_cut(corpus: Callable[..., CorpusFile]) -> None:
    fields = {f"a{n}": {"text": "vpn", "metadata": {"kind": "rule"}} for n in range(9)}
    backend = BM25()
    backend.index(
        corpus({**fields, "z": {"text": "a long text about the vpn", "metadata": {"kind": "fact"}}})
    )
    assert backend.search(Request("vpn", 1, filter={"kind": "fact"})).ids == ["z"]


# ------------------------------------------------------------------ words


def test_whitespace_keeps_case_and_punctuation() -> None:
    assert whitespace(" The VPN,\n deferred.") == ["The", "VPN,", "deferred."]
    assert indexed({"a": "The VPN", "b": "the vpn"}, tokenizer="whitespace").search(
        Request("VPN", 2)
    ).ids == ["a"]


def test_one_character_queries_are_answered() -> None:
    backend = indexed({"a": "written in C++", "b": "written in R", "c": "written in C"})
    assert [backend.search(Request(query, 3)).ids for query in ("C++", "r", "c")] == [["a"], ["b"], ["c"]]


def test_the_title_is_searched(corpus: Callable[..., CorpusFile]) -> None:
    backend = BM25()
    backend.index(corpus({"a": {"title": "Retry delays", "text": "jitter"}, "b": "other"}))
    assert backend.search(Request("retry", 5)).ids == ["a"]


# ------------------------------------------------------------------ options and life


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"k1": True}, r"k1 = True: give a number from 0\.001 to 1000"),
        ({"k1": "1.5"}, r"k1 = '1\.5': give a number"),
        ({"k1": math.nan}, r"k1 = nan: give a number"),
        ({"k1": 0}, r"k1 = 0: give a number"),
        ({"k1": 10**400}, r"k1 = 1000"),
        ({"k1": None}, r"k1 = None"),
        ({"b": 1.01}, r"b = 1\.01: give a number from 0 to 1"),
        ({"b": -0.1}, r"b = -0\.1"),
        ({"b": math.inf}, r"b = inf"),
        (
            {"tokenizer": "word"},
            r"tokenizer = 'word': not known; did you mean 'words'\?  \(known: whitespace, words\)",
        ),
        ({"tokenizer": ["words"]}, r"tokenizer = \['words'\]: not known"),
    ],
)
def test_a_wrong_option_is_refused_with_its_value(options: dict[str, Any], said: str) -> None:
    with pytest.raises(Misuse, match=said) as caught:
        BM25(**options)
    assert caught.value.code == "option-invalid"


def test_it_is_found_by_name_and_is_a_backend() -> None:
    backend = make("bm25", {"k1": 2})
    assert isinstance(backend, Backend)
    assert isinstance(backend, BM25)
    assert backend.capabilities == {"filter"}


def test_it_says_what_it_is() -> None:
    about = dict(BM25().describe())
    assert re.fullmatch(r"rank-bm25 \d+(\.\d+)+", about.pop("library"))
    assert re.fullmatch(r"2 \(regex [\d.]+\)", about.pop("words"))
    assert "words" not in BM25(tokenizer="whitespace").describe()
    assert about == {"idf": "ln(1 + (N - df + 0.5) / (df + 0.5))", "tokenizer": "words", "k1": 1.5, "b": 0.75}
    assert BM25(k1=1).describe() == BM25(k1=1.0).describe() != BM25().describe()


def test_it_answers_only_between_index_and_close() -> None:
    backend = BM25()
    with pytest.raises(BackendError, match="before index"):
        backend.search(Request("vpn", 1))
    backend.index(Held([Document("a", "", "vpn")]))
    backend.index(Held([Document("b", "", "vpn")]))
    assert backend.search(Request("vpn", 9)).ids == ["b"]
    backend.close()
    backend.close()
    with pytest.raises(BackendError, match="before index"):
        backend.search(Request("vpn", 1))


def test_an_id_that_comes_twice_is_refused() -> None:
    with pytest.raises(CouldNot, match="document id 'a' twice"):
        BM25().index(Held([Document("a", "", "x"), Document("a", "", "y")]))


def test_an_error_of_the_corpus_is_not_taken_for_an_empty_one() -> None:
    class Failing(Held):
        def __iter__(self) -> Any:
            yield Document("a", "", "x")
            raise ZeroDivisionError("the corpus's own")

    with pytest.raises(ZeroDivisionError, match="own"):
        BM25().index(Failing([]))
