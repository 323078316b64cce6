"""Loading a judged set: the BEIR layout as it is, its files and splits, and the digests that tell sets apart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from core_support import HEADER, write_set
from dataset_support import DEFINITION, DOCUMENTS, JUDGEMENTS, QUERIES, sound
from hypothesis import given
from hypothesis import strategies as st

from eval_core.errors import Misuse
from eval_core.sets.corpus import corpus_digest, document_digest, encode_id, id_fault, parse_document
from eval_core.sets.dataset import load

# --------------------------------------------------------------------------------------------- a set as it is


def test_a_plain_beir_folder_loads_as_it_is(tmp_path: Path) -> None:
    loaded = load(sound(tmp_path / "Some Set", definition=None))
    assert (loaded.name, loaded.split, loaded.documents) == ("some-set", "test", 3)
    assert [(query.id, query.text) for query in loaded.queries] == [("q1", "first"), ("q2", "second")]
    assert loaded.judgements == {"q1": {"d1": 1}, "q2": {"d2": 2, "d3": 0}}
    assert loaded.definition.cutoffs == (1, 5, 10)
    assert (loaded.timeline, loaded.unscorable) == (None, frozenset())
    assert loaded.side_digests == {"timeline": "none", "links": "none", "concepts": "none"}


@pytest.mark.parametrize(
    ("name", "documents", "queries", "judgements", "zeros", "empty", "unscorable"),
    [
        ("cranfield", 1400, 225, 1837, 225, 2, 0),
        ("cisi", 1460, 112, 3114, 0, 0, 36),
        ("med", 1033, 30, 696, 0, 0, 0),
    ],
)
def test_published_collections_load_as_they_are(
    shared_data: Callable[[str], Path],
    name: str,
    documents: int,
    queries: int,
    judgements: int,
    zeros: int,
    empty: int,
    unscorable: int,
) -> None:
    """Counts as published, taken with grep and wc; the set of our own below has each of these traits."""
    loaded = load(shared_data(f"beir/{name}"))
    grades = [grade for judged in loaded.judgements.values() for grade in judged.values()]
    assert loaded.name == name
    assert (loaded.documents, len(loaded.queries), len(grades)) == (documents, queries, judgements)
    assert grades.count(0) == zeros
    assert sum(not document.searchable.strip() for document in loaded.corpus) == empty
    assert len(loaded.unscorable) == unscorable


def test_empty_documents_zero_grades_and_unjudged_queries_are_loaded_and_counted(tmp_path: Path) -> None:
    folder = write_set(
        tmp_path / "set",
        {"d1": {"title": "", "text": ""}, "d2": {"title": None, "text": "two"}, "d3": "three"},
        {"q1": "a", "q2": "b", "q3": "c", "q4": "d"},
        [("q1", "d1", 2), ("q1", "d2", 0), ("q2", "d3", 0), ("q4", "d3", 1)],
    )
    loaded = load(folder)
    assert [document.searchable for document in loaded.corpus] == ["", "two", "three"]
    # q2 has a judgement and none is positive; q3 has none at all: neither can be scored, and neither is a 0.
    assert loaded.unscorable == {"q2", "q3"}
    assert loaded.judgements["q1"] == {"d1": 2, "d2": 0}


def test_line_ends_of_windows_and_blank_lines_are_no_fault(tmp_path: Path) -> None:
    folder = sound(tmp_path / "set")
    digest = load(folder).corpus_digest
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        path = folder / name
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n") + b"\r\n \r\n")
    loaded = load(folder)
    assert loaded.corpus_digest == digest
    assert loaded.judgements["q2"] == {"d2": 2, "d3": 0}


def test_a_last_line_without_newline_counts(tmp_path: Path) -> None:
    folder = sound(tmp_path / "set")
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        path = folder / name
        path.write_bytes(path.read_bytes().rstrip(b"\n"))
    loaded = load(folder)
    assert (loaded.documents, len(loaded.queries), loaded.judgements["q2"]) == (3, 2, {"d2": 2, "d3": 0})


def test_fields_beyond_the_layout_are_kept_as_metadata(tmp_path: Path) -> None:
    """Published sets carry more fields, such as `url`; a value that `metadata` names too is metadata's."""
    document = parse_document(
        {"_id": "d", "text": "t", "url": "u", "year": 1, "metadata": {"year": 2, "kind": "note"}}
    )
    assert not isinstance(document, str)
    assert document.metadata == {"url": "u", "year": 2, "kind": "note"}


@pytest.mark.parametrize(
    "name", ["a,b", "a#b", "päth/to/file.md", "x" * 500, "-1", "%20", "a\\b", "'", "日本"]
)
def test_ids_of_paths_and_odd_characters_are_ids(tmp_path: Path, name: str) -> None:
    folder = write_set(tmp_path / "set", {name: "t"}, {name: "q"}, [(name, name, 1)], DEFINITION)
    loaded = load(folder)
    assert loaded.ids == {name}
    assert loaded.judgements == {name: {name: 1}}


@given(st.text(min_size=1))
def test_any_name_can_be_encoded_into_an_id(name: str) -> None:
    try:
        encoded = encode_id(name)
    except UnicodeEncodeError:  # a surrogate that stands for no byte names no file
        return
    assert id_fault(encoded) is None


# --------------------------------------------------------------------------------------------- files and splits


@pytest.mark.parametrize(
    ("gone", "told"),
    [
        ("corpus.jsonl", "corpus.jsonl: there is no such file; a dataset needs its corpus"),
        ("queries.jsonl", "queries.jsonl: there is no such file; a dataset needs its queries"),
        ("qrels/test.tsv", "qrels: holds no judgements; expected qrels/test.tsv"),
    ],
)
def test_a_missing_file_is_named(tmp_path: Path, gone: str, told: str) -> None:
    folder = sound(tmp_path / "set")
    (folder / gone).unlink()
    with pytest.raises(Misuse) as caught:
        load(folder)
    assert str(caught.value) == f"{folder}/{told}"


def test_a_missing_folder_is_named_with_the_nearest(tmp_path: Path) -> None:
    sound(tmp_path / "memory")
    with pytest.raises(Misuse) as caught:
        load(tmp_path / "memroy")
    near = str(tmp_path / "memory")
    assert (
        str(caught.value) == f"{tmp_path / 'memroy'}: there is no such dataset folder; did you mean {near!r}?"
    )


def test_an_unknown_split_is_named_with_the_nearest(tmp_path: Path) -> None:
    folder = sound(tmp_path / "set")
    (folder / "qrels" / "train.tsv").write_text(HEADER + "q1\td1\t1\n")
    with pytest.raises(Misuse) as caught:
        load(folder, split="tset")
    assert "tset.tsv: there is no such split; did you mean 'test'?  (splits: test, train)" in str(
        caught.value
    )
    assert caught.value.code == "split-unknown"


def test_a_split_has_the_queries_that_it_judges(tmp_path: Path) -> None:
    """BEIR keeps the queries of all splits in one file: those that another split judges are not this one's."""
    folder = write_set(tmp_path / "set", DOCUMENTS, {**QUERIES, "q3": "third"}, JUDGEMENTS)
    (folder / "qrels" / "train.tsv").write_text(HEADER + "q3\td1\t1\nq1\td3\t1\n")
    assert [query.id for query in load(folder).queries] == ["q1", "q2"]
    train = load(folder, split="train")
    assert [query.id for query in train.queries] == ["q1", "q3"]
    assert (train.split, train.judgements["q1"]) == ("train", {"d3": 1})


def test_the_only_split_is_taken_whatever_its_name(tmp_path: Path) -> None:
    folder = sound(tmp_path / "set")
    (folder / "qrels" / "test.tsv").rename(folder / "qrels" / "dev.tsv")
    assert load(folder).split == "dev"


# --------------------------------------------------------------------------------------------- digests


def test_the_corpus_digest_is_what_its_definition_says(tmp_path: Path) -> None:
    """SHA-256 over (id, digest of the canonical document), sorted by id; worked with the standard library alone."""
    documents = {"b": {"title": "B", "text": "é", "metadata": {"z": 1, "a": [2]}}, "a": "one"}
    folder = write_set(tmp_path / "set", documents, {"q": "t"}, [("q", "a", 1)])
    canonical = {
        "a": '{"_id":"a","metadata":{},"text":"one","title":""}',
        "b": '{"_id":"b","metadata":{"a":[2],"z":1},"text":"é","title":"B"}',
    }
    total = hashlib.sha256()
    for name, text in canonical.items():
        total.update(f"{name}\n{hashlib.sha256(text.encode()).hexdigest()}\n".encode())
    assert load(folder).corpus_digest == total.hexdigest()


def test_order_spacing_and_escapes_do_not_change_the_corpus_digest(tmp_path: Path) -> None:
    folder = sound(tmp_path / "set")
    before = load(folder).corpus_digest
    path = folder / "corpus.jsonl"
    turned = [
        json.dumps(json.loads(line), indent=None, sort_keys=True) for line in path.read_text().splitlines()
    ]
    path.write_text("\n\n".join(reversed(turned)).replace("one", "\\u006fne"))
    assert load(folder).corpus_digest == before


@pytest.mark.parametrize(
    "changed",
    [
        {**DOCUMENTS, "d1": "One"},
        {**DOCUMENTS, "d1": {"text": "one", "title": "t"}},
        {**DOCUMENTS, "d1": {"text": "one", "metadata": {"kind": "k"}}},
        {**DOCUMENTS, "d4": "four"},
        {"d1": "two", "d2": "one", "d3": "three"},
        {"d1": "one", "d2": "two", "d03": "three"},
    ],
    ids=["text", "title", "metadata", "one more", "texts swapped", "another id"],
)
def test_any_change_of_a_document_changes_the_corpus_digest(tmp_path: Path, changed: dict[str, Any]) -> None:
    before = load(sound(tmp_path / "set")).corpus_digest
    after = write_set(tmp_path / "other", changed, {"q": "t"}, [("q", "d1", 1)])
    assert load(after).corpus_digest != before


@given(
    st.lists(st.tuples(st.text("ab", min_size=1, max_size=3), st.text(max_size=5)), unique_by=lambda t: t[0])
)
def test_the_corpus_digest_depends_on_nothing_but_ids_and_documents(pairs: list[tuple[str, str]]) -> None:
    def digest(given: list[tuple[str, str]]) -> str:
        found = []
        for name, text in given:
            parsed = parse_document({"_id": name, "text": text})
            assert not isinstance(parsed, str)
            found.append((name, document_digest(parsed)))
        return corpus_digest(found)

    assert digest(pairs) == digest(pairs[::-1])
