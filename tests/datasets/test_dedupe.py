"""Holds the composition of datasets/dedupe, read with the standard library alone (promise A2)."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter, defaultdict
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "datasets" / "dedupe"

TITLES_BY_KIND = {"bug": 80, "docs": 5, "feature": 27}
GROUPS_BY_SIZE = {2: 12, 3: 6, 4: 2}
QUERIES_BY_GROUP_SIZE = {2: 12, 3: 8, 4: 4}


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


TITLES = read_lines("corpus.jsonl")
QUERIES = read_lines("queries.jsonl")
JUDGEMENTS = read_judgements()
README = (FOLDER / "README.md").read_text(encoding="utf-8")
TEXT = {title["_id"]: title["text"] for title in TITLES}
KIND = {title["_id"]: title["metadata"]["kind"] for title in TITLES}
OWN = {query["_id"]: query["metadata"]["exclude"] for query in QUERIES}
JUDGED: dict[str, list[str]] = defaultdict(list)
for _query, _document, _score in JUDGEMENTS:
    JUDGED[_query].append(_document)
#: A query's group is its own document and all that is judged relevant to it.
GROUP_ASKED = {name: frozenset(own) | frozenset(JUDGED[name]) for name, own in OWN.items()}
GROUPS = set(GROUP_ASKED.values())
GROUPED = {document for group in GROUPS for document in group}


def test_there_are_112_titles_and_24_queries_with_unique_numbered_ids() -> None:
    """A2: the size of the set."""
    assert [title["_id"] for title in TITLES] == [f"i{number:03}" for number in range(1, 113)]
    assert [query["_id"] for query in QUERIES] == [f"q{number:02}" for number in range(1, 25)]


def test_a_query_is_a_title_of_the_corpus_and_excludes_that_document_alone() -> None:
    """A2: "its own document is excluded": the text is equal to the letter, and no other title has it."""
    for query in QUERIES:
        assert query["metadata"]["exclude"] == [name for name, text in TEXT.items() if text == query["text"]]
        assert len(query["metadata"]["exclude"]) == 1, query


def test_no_query_is_judged_with_its_own_document() -> None:
    """A2: a title is no duplicate of itself."""
    assert [name for name in OWN if set(OWN[name]) & set(JUDGED[name])] == []


def test_groups_of_two_to_four_do_not_overlap() -> None:
    """A2: the truth is groups. Two queries of one group that disagree about it would make two that overlap."""
    assert Counter(len(group) for group in GROUPS) == GROUPS_BY_SIZE
    assert len(GROUPED) == sum(size * count for size, count in GROUPS_BY_SIZE.items())


def test_categories_sources_and_how_often_groups_are_asked() -> None:
    """A2: a group of two is a pair; each group is asked for once or twice, by different reports."""
    assert Counter(len(group) for group in GROUP_ASKED.values()) == QUERIES_BY_GROUP_SIZE
    assert max(Counter(GROUP_ASKED.values()).values()) == 2
    for query in QUERIES:
        category = "pair" if len(GROUP_ASKED[query["_id"]]) == 2 else "group"
        assert query["metadata"] == {"category": category, "exclude": OWN[query["_id"]], "source": "written"}


def test_kinds_and_that_a_group_has_one() -> None:
    """A2: as the README counts them."""
    assert Counter(KIND.values()) == TITLES_BY_KIND
    assert [group for group in GROUPS if len({KIND[document] for document in group}) > 1] == []


def test_judgements_are_binary_sorted_given_once_and_of_known_ids() -> None:
    """A2: one line a judgement, by query, then document."""
    pairs = [(query, document) for query, document, _ in JUDGEMENTS]
    assert pairs == sorted(set(pairs))
    assert {score for _, _, score in JUDGEMENTS} == {"1"}
    assert {query for query, _ in pairs} == set(OWN)
    assert {document for _, document in pairs} <= set(TEXT)


def test_reports_of_a_group_do_not_share_their_words() -> None:
    """A2: worded differently: of the words of four letters or more, at most three in ten are in both reports."""
    for group in GROUPS:
        for first, second in combinations(sorted(group), 2):
            one, other = ({word for word in words(TEXT[name]) if len(word) >= 4} for name in (first, second))
            assert len(one & other) / len(one | other) <= 0.3, (TEXT[first], TEXT[second])


def test_neighbours_that_are_no_duplicates_mislead_word_matching() -> None:
    """A2: near-duplicates. Each query shares a word with one; at least six share most words with one of them."""
    misled = []
    for query, group in GROUP_ASKED.items():
        (own,) = OWN[query]
        asked = set(words(TEXT[own]))
        shared = {name: len(asked & set(words(text))) for name, text in TEXT.items() if name != own}
        stranger = max(count for name, count in shared.items() if name not in group)
        assert stranger >= 1, query
        if stranger > max(shared[name] for name in group if name != own):
            misled.append(query)
    assert len(misled) >= 6


def test_order_and_ids_do_not_reveal_the_groups() -> None:
    """A2: no two reports of a group stand side by side, nor do two queries that ask for one group."""
    group_of = {document: group for group in GROUPS for document in group}
    assert [pair for pair in pairwise(TEXT) if group_of.get(pair[0], 0) == group_of.get(pair[1], 1)] == []
    assert [pair for pair in pairwise(GROUP_ASKED) if GROUP_ASKED[pair[0]] == GROUP_ASKED[pair[1]]] == []


@pytest.mark.parametrize("entries", [TITLES, QUERIES], ids=["titles", "queries"])
def test_no_text_is_there_twice(entries: list[dict[str, Any]]) -> None:
    """A2: neither letter case nor punctuation makes two texts different."""
    texts = Counter(" ".join(words(entry["text"])) for entry in entries)
    assert [text for text, count in texts.items() if count > 1 or not text] == []


def test_no_query_is_contained_in_another_title() -> None:
    """A2: a query that quotes its answer leaks it."""
    padded = {name: f" {' '.join(words(text))} " for name, text in TEXT.items()}
    for (own,) in OWN.values():
        assert [name for name in padded if name != own and padded[own] in padded[name]] == []


def test_a_document_is_one_line_of_at_most_20_words() -> None:
    """A2: titles as a tracker lists them, in `text`."""
    for title in TITLES:
        assert set(title) == {"_id", "title", "text", "metadata"}
        assert (title["title"], set(title["metadata"])) == ("", {"kind"})
        assert title["text"] == title["text"].strip() and "\n" not in title["text"]
        assert 3 <= len(words(title["text"])) <= 20, title


def test_the_readme_states_the_composition_of_the_files() -> None:
    """A2: both tables are counted again."""
    grouped = Counter(KIND[document] for document in GROUPED)
    asked = Counter(KIND[own] for (own,) in OWN.values())
    groups = Counter(KIND[min(group)] for group in GROUPS)
    for kind, titles in TITLES_BY_KIND.items():
        alone = titles - grouped[kind]
        assert f"| {kind} | {titles} | {groups[kind]} | {grouped[kind]} | {alone} | {asked[kind]} |" in README
    for size, count in GROUPS_BY_SIZE.items():
        queries = QUERIES_BY_GROUP_SIZE[size]
        category = "pair" if size == 2 else "group"
        row = f"| {size} | {count} | {size * count} | {queries} | {queries * (size - 1)} | {category} |"
        assert row in README
    assert f"| **all** | 112 | {len(GROUPS)} | {len(GROUPED)} | {112 - len(GROUPED)} | 24 |" in README
    assert f"| **all** | {len(GROUPS)} | {len(GROUPED)} | 24 | {len(JUDGEMENTS)} | |" in README


def test_the_readme_quotes_its_example_as_it_is() -> None:
    """A2: three judged titles, three that are not, and the query they are quoted for."""
    (query, asked), *more = re.findall(r"`(q\d\d)  ([^`]+)`", README)
    quoted = re.findall(r"^- `(i\d\d\d)` \*(.+)\*$", README, flags=re.MULTILINE)
    assert more == [] and asked == TEXT[OWN[query][0]]
    assert [(name, text) for name, text in quoted if TEXT[name] != text] == []
    assert [name in JUDGED[query] for name, _ in quoted] == [True] * 3 + [False] * 3
    assert len(JUDGED[query]) == 3


def test_the_dataset_file_names_its_source_and_headline() -> None:
    """A2: an inline corpus, judged by recall@10."""
    settings = tomllib.loads((FOLDER / "dataset.toml").read_text(encoding="utf-8"))
    assert (settings["name"], settings["kind"], settings["licence"]) == ("dedupe", "dedupe", "MIT")
    assert settings["corpus"] == {"source": [{"name": "titles", "type": "inline"}]}
    assert settings["cutoffs"] == [1, 5, 10]
    assert settings["limit"] == 10
    assert settings["headline"] == "recall@10"
