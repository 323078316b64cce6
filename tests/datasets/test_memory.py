"""Holds the composition of datasets/memory, read with the standard library alone (promise A2)."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "datasets" / "memory"

RECORDS_BY_KIND = {
    "constraint": 5,
    "decision": 12,
    "environment": 11,
    "incident": 5,
    "preference": 5,
    "procedure": 12,
}
QUERIES_BY_CATEGORY = {"direct": 14, "indirect": 12, "pair": 16, "paraphrase": 13}


def read_lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


def read_judgements() -> list[tuple[str, str, str]]:
    header, *lines = (FOLDER / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()
    assert header == "query-id\tcorpus-id\tscore"
    rows = []
    for line in lines:
        query, document, score = line.split("\t")
        rows.append((query, document, score))
    return rows


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


FACTS = read_lines("corpus.jsonl")
QUERIES = read_lines("queries.jsonl")
JUDGEMENTS = read_judgements()
KIND_OF_FACT = {fact["_id"]: fact["metadata"]["kind"] for fact in FACTS}
JUDGED: dict[str, list[str]] = defaultdict(list)
for _query, _document, _score in JUDGEMENTS:
    JUDGED[_query].append(_document)
PAIRS = {tuple(sorted(documents)) for documents in JUDGED.values() if len(documents) > 1}


def test_there_are_50_facts_and_55_queries_with_unique_ids() -> None:
    """A2: the size of the set."""
    assert (len(FACTS), len(KIND_OF_FACT)) == (50, 50)
    assert (len(QUERIES), len({query["_id"] for query in QUERIES})) == (55, 55)


def test_ten_facts_are_recorded_twice_and_their_queries_are_judged_with_both_records() -> None:
    """A2: 10 deliberate paraphrases, recalled together. Three records of one fact, or a record in two pairs, fail."""
    assert len(PAIRS) == 10
    assert len({document for pair in PAIRS for document in pair}) == 20
    assert len(FACTS) - len(PAIRS) == 40


def test_a_record_of_a_pair_is_never_judged_without_the_other() -> None:
    """A2: repeated facts must be recalled together, by whichever query asks for them."""
    twins = {document for pair in PAIRS for document in pair}
    alone = [(query, documents) for query, documents in JUDGED.items() if len(documents) == 1]
    assert [(query, documents) for query, documents in alone if documents[0] in twins] == []


def test_the_two_records_of_a_pair_do_not_share_their_words() -> None:
    """A2: paraphrases, not copies: of the words of five letters or more, at most one in ten is in both records."""
    text = {fact["_id"]: fact["text"] for fact in FACTS}
    for first, second in PAIRS:
        one, other = ({word for word in words(text[name]) if len(word) >= 5} for name in (first, second))
        assert len(one & other) / len(one | other) <= 0.1, (first, second, one & other)


def test_kinds() -> None:
    """A2: the kinds that the filtered arm searches by, each with at least five facts."""
    assert Counter(KIND_OF_FACT.values()) == RECORDS_BY_KIND
    assert min(RECORDS_BY_KIND.values()) >= 5


def test_categories_and_source_of_the_queries() -> None:
    """A2: as the README states them; the pair queries are exactly those judged with two records."""
    assert Counter(query["metadata"]["category"] for query in QUERIES) == QUERIES_BY_CATEGORY
    assert {query["metadata"]["source"] for query in QUERIES} == {"written"}
    in_category = {query["_id"] for query in QUERIES if query["metadata"]["category"] == "pair"}
    assert in_category == {query for query, documents in JUDGED.items() if len(documents) == 2}


def test_every_judged_fact_has_the_kind_of_its_query() -> None:
    """A2: otherwise the filtered arm would hide an answer."""
    for query in QUERIES:
        kinds = {KIND_OF_FACT[document] for document in JUDGED[query["_id"]]}
        assert kinds == {query["metadata"]["kind"]}, query


def test_every_fact_is_asked_for_and_every_query_is_judged() -> None:
    """A2: no fact is mere filling, and no judgement points at something unknown."""
    assert {document for _, document, _ in JUDGEMENTS} == set(KIND_OF_FACT)
    assert {query for query, _, _ in JUDGEMENTS} == {query["_id"] for query in QUERIES}


def test_judgements_are_binary_sorted_and_given_once() -> None:
    """A2: one line a judgement, by query, then document."""
    pairs = [(query, document) for query, document, _ in JUDGEMENTS]
    assert pairs == sorted(set(pairs))
    assert {score for _, _, score in JUDGEMENTS} == {"1"}


@pytest.mark.parametrize("entries", [FACTS, QUERIES], ids=["facts", "queries"])
def test_no_text_is_there_twice(entries: list[dict[str, Any]]) -> None:
    """A2: neither letter case nor punctuation makes two texts different."""
    texts = Counter(" ".join(words(entry["text"])) for entry in entries)
    assert [text for text, count in texts.items() if count > 1 or not text] == []


def test_no_query_is_contained_in_a_fact() -> None:
    """A2: a query that quotes its answer leaks it."""
    facts = [f" {' '.join(words(fact['text']))} " for fact in FACTS]
    asked = {query["_id"]: f" {' '.join(words(query['text']))} " for query in QUERIES}
    assert [name for name, text in asked.items() if any(text in fact for fact in facts)] == []


def test_a_fact_is_one_to_three_sentences_without_a_title() -> None:
    """A2: short records, as a memory holds them."""
    for fact in FACTS:
        assert set(fact) == {"_id", "title", "text", "metadata"}
        assert fact["title"] == ""
        sentences = re.findall(r"[.!?](?=\s|$)", fact["text"])
        assert 1 <= len(sentences) <= 3, fact
        assert len(words(fact["text"])) <= 45, fact


def test_the_readme_states_the_composition_of_the_files() -> None:
    """A2: the tables by kind and by category are counted again."""
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    twice = Counter(KIND_OF_FACT[first] for first, _ in PAIRS)
    asked = Counter(query["metadata"]["kind"] for query in QUERIES)
    for kind, records in RECORDS_BY_KIND.items():
        assert f"| {kind} | {records} | {records - twice[kind]} | {twice[kind]} | {asked[kind]} |" in readme
    judged = Counter(query["metadata"]["category"] for query in QUERIES for _ in JUDGED[query["_id"]])
    for category, queries in QUERIES_BY_CATEGORY.items():
        assert f"| {category} | {queries} | {judged[category]} |" in readme


def test_the_dataset_file_names_its_source_and_headline() -> None:
    """A2: an inline corpus, judged by recall@10."""
    settings = tomllib.loads((FOLDER / "dataset.toml").read_text(encoding="utf-8"))
    assert (settings["name"], settings["licence"]) == ("memory", "MIT")
    assert settings["corpus"] == {"source": [{"name": "facts", "type": "inline"}]}
    assert settings["headline"] == f"recall@{settings['limit']}"
    assert max(settings["cutoffs"]) == settings["limit"] == 10
