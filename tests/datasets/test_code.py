"""The composition of datasets/code, read with the standard library alone; and its truths, in the rebuilt corpus."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "datasets" / "code"
PACKAGES = ("ladder", "networkx", "rich", "werkzeug", "jinja2")

Query = dict[str, object]


@pytest.fixture(scope="module")
def queries() -> list[Query]:
    return [json.loads(line) for line in (FOLDER / "queries.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def judgements() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    lines = (FOLDER / "qrels" / "test.tsv").read_text("utf-8").splitlines()
    assert lines[0] == "query-id\tcorpus-id\tscore"
    for line in lines[1:]:
        query, document, score = line.split("\t")
        assert score == "1"
        assert document not in found.setdefault(query, set())
        found[query].add(document)
    return found


def meta(query: Query, key: str) -> str:
    metadata = query["metadata"]
    assert isinstance(metadata, dict)
    return str(metadata[key])


def test_it_has_80_semantic_queries_and_40_identifier_lookups(queries: list[Query]) -> None:
    """A2: 120 queries: 80 derived from doc comments, 40 identifier lookups; A6: each says its source."""
    assert Counter((meta(q, "category"), meta(q, "source")) for q in queries) == {
        ("semantic", "docstring"): 80,
        ("identifier", "identifier"): 40,
    }
    assert [q["_id"] for q in queries] == [f"c{number:03d}" for number in range(1, 121)]


def test_each_of_the_five_sources_is_asked_about_24_times(queries: list[Query]) -> None:
    """A2: five sources, each with 16 semantic queries and 8 lookups."""
    counts = Counter((meta(q, "package"), meta(q, "category")) for q in queries)
    assert counts == {(p, c): n for p in PACKAGES for c, n in (("semantic", 16), ("identifier", 8))}


def test_every_source_is_pinned() -> None:
    """A2: a commit read from git objects, and archives by digest."""
    recipe = tomllib.loads((FOLDER / "dataset.toml").read_text("utf-8"))["corpus"]["source"]
    assert [source["name"] for source in recipe] == list(PACKAGES)
    assert [source["type"] for source in recipe] == ["git", *["archive"] * 4]
    assert all(re.fullmatch(r"[0-9a-f]{40}", source["commit"]) for source in recipe[:1])
    assert all(re.fullmatch(r"[0-9a-f]{64}", source["sha256"]) for source in recipe[1:])


def test_the_truth_is_a_file_of_the_package_asked_about(
    queries: list[Query], judgements: dict[str, set[str]]
) -> None:
    """A2: the truth is a file; several where several are right, and never more than three."""
    assert set(judgements) == {q["_id"] for q in queries}
    for query in queries:
        truth = judgements[str(query["_id"])]
        assert 1 <= len(truth) <= 3
        assert any(document.startswith(meta(query, "package") + "/") for document in truth)
        assert all(document.endswith(".py") for document in truth)


def test_no_two_queries_ask_the_same(queries: list[Query]) -> None:
    texts = [re.sub(r"\W+", " ", str(q["text"]).lower()).strip() for q in queries]
    assert len(set(texts)) == len(texts)
    semantic = [meta(q, "origin") for q in queries if meta(q, "category") == "semantic"]
    assert len(set(semantic)) == len(semantic)


def test_round2_d4_semantic_queries_have_the_shapes_that_people_give_them(queries: list[Query]) -> None:
    """D4: most are questions of ordinary length; some are pasted errors, a few words, a whole story."""
    texts = [str(query["text"]) for query in queries if meta(query, "category") == "semantic"]
    lengths = [len(text.split()) for text in texts]
    assert all(3 <= length <= 35 for length in lengths)
    pasted = [text for text in texts if re.match(r"[\w.]+Error: ", text)]
    short, long = sum(length <= 3 for length in lengths), sum(length >= 28 for length in lengths)
    assert (len(pasted), short, long) == (5, 3, 2)
    assert not [text for text in texts if re.search(r"\bour (set|arm|gate|floors|report)s?\b", text)]
