"""Manifests of a retrieval comparison: both forms read into one model, every fault told at its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_core.errors import EvalError, Faults, Misuse, sentence
from eval_core.imports.manifest import SURFACES, Manifest, ManifestQuery, clean, parse_manifest, read_manifest

PLACE = Path("manifest.json")


def parse(value: object) -> Manifest:
    return parse_manifest(json.dumps(value), PLACE)


def query(**keys: Any) -> dict[str, Any]:
    return {"id": "q1", "query": "how", "ground_truth": ["a.md"]} | keys


def told(value: object) -> list[str]:
    """The faults of a manifest, without their file and line."""
    with pytest.raises(Faults) as caught:
        parse(value)
    return [sentence(replace(fault, file=None)) for fault in caught.value.faults]


def test_the_newer_form() -> None:
    """R7"""
    found = parse(
        {
            "id": "notes",
            "description": "Ours.",
            "queries": [
                query(
                    ground_truth=["./docs//a b.md", "learnings/é.md", ".agents/plans/x.md"], intent="process"
                ),
                query(id="q2", intent=None),
            ],
        }
    )
    assert found == Manifest(
        id="notes",
        description="Ours.",
        queries=(
            ManifestQuery(
                id="q1",
                query="how",
                intent="process",
                ground_truth=("docs/a b.md", ".agents/learnings/é.md", ".agents/plans/x.md"),
            ),
            ManifestQuery(id="q2", query="how", ground_truth=("a.md",)),
        ),
    )


def test_the_legacy_array_is_named_and_numbered_by_place() -> None:
    """R7: an entry without a path is left out, counted, and keeps its number."""
    found = parse(
        [
            {"query": "one", "relevant": ["wiki/a.md"], "category": "x"},
            {"query": "none of ours", "relevant": []},
            {"query": "three", "relevant": ["b.md"]},
        ]
    )
    assert (found.id, found.form, found.skipped) == ("legacy-search-eval", "legacy", 1)
    assert [(one.id, one.intent, one.ground_truth) for one in found.queries] == [
        ("q1", "x", (".agents/wiki/a.md",)),
        ("q3", "", ("b.md",)),
    ]


def test_other_keys_are_counted_and_passed_over() -> None:
    found = parse(
        {"id": "n", "owner": "x", "queries": [query(notes=1), query(id="q2", notes=2, ground_truths=[])]}
    )
    assert found.unread == {"owner": 1, "queries[].notes": 2, "queries[].ground_truths": 1}
    assert parse([{"query": "a", "relevant": ["a"], "notes": 1}]).unread == {"[].notes": 1}


def test_a_manifest_without_queries_is_read() -> None:
    """R7: it is for the guard to refuse a manifest that holds nothing."""
    assert parse({"id": "n", "queries": []}).queries == ()
    assert parse([]).queries == ()


@pytest.mark.parametrize("surface", SURFACES)
def test_a_surface_lies_below_agents(surface: str) -> None:
    assert clean(f"./{surface}/a.md") == f".agents/{surface}/a.md"
    assert clean(surface) == f".agents/{surface}"
    assert clean(f"docs/{surface}/a.md") == f"docs/{surface}/a.md"
    assert clean(f"{surface}.md") == f"{surface}.md"


@pytest.mark.parametrize(
    ("path", "mend"),
    [
        ("", "is empty"),
        ("./", "is empty"),
        ("  ", "is empty"),
        ("/etc/passwd", "is absolute"),
        ("//host/x", "is absolute"),
        ("C:/x", "is absolute"),
        ("..", "holds '..'"),
        ("a/../../b", "holds '..'"),
        ("a/../b", "holds '..'"),
        ("a\\b", "holds a backslash"),
        ("a\0b", "holds a zero character"),
    ],
)
def test_a_path_that_could_lead_out_is_refused(path: str, mend: str) -> None:
    """R7, R3: at its place in the file."""
    with pytest.raises(ValueError, match=mend):
        clean(path)
    [message] = told({"id": "n", "queries": [query(ground_truth=["a.md", path])]})
    assert message.startswith(f"queries[0].ground_truth[1] = {path!r}: {mend}")
    [message] = told([{"query": "a", "relevant": [path]}])
    assert message.startswith(f"[0].relevant[0] = {path!r}: {mend}")


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        ({"id": "n"}, ["queries: it is missing"]),
        ({"queries": []}, ["id: it is missing"]),
        ({"ids": "n", "queries": []}, ["id: it is missing; is 'ids' a slip of it?"]),
        ({"id": 3, "queries": {}}, ["id = 3: should be a text", "queries = {}: should be a list"]),
        ({"id": " ", "queries": []}, ["id = ' ': is empty"]),
        ({"id": "n", "queries": [7]}, ["queries[0] = 7: should be a table"]),
        (
            {"id": "n", "description": 1, "queries": [query(intent=True)]},
            ["description = 1: should be a text", "queries[0].intent = True: should be a text"],
        ),
        (
            {"id": "n", "queries": [{"id": "q1", "query": "x", "ground_truths": ["a"]}]},
            ["queries[0].ground_truth: it is missing; is 'ground_truths' a slip of it?"],
        ),
        (
            {"id": "n", "queries": [query(), query(ground_truth=[]), query(id="", query=None)]},
            [
                "queries[1].ground_truth: is empty; name the files that answer it, or drop the query",
                "queries[1].id = 'q1': is the id of queries[0] too",
                "queries[2].id = '': is empty",
                "queries[2].query = None: should be a text",
            ],
        ),
        (
            {"id": "n", "queries": [query(ground_truth=["a.md", 1, None, "./a.md"])]},
            [
                "queries[0].ground_truth[1] = 1: should be a path",
                "queries[0].ground_truth[2] = None: should be a path",
                "queries[0].ground_truth[3] = './a.md': is judged again (first at queries[0].ground_truth[0])",
            ],
        ),
        ({"id": "n", "queries": [query(ground_truth="a.md")]}, ["queries[0].ground_truth = 'a.md': should be a list"]),
        (
            [{"query": "a", "relevent": []}, 1, {"query": "b", "relevant": None}],
            [
                "[0].relevant: it is missing; is 'relevent' a slip of it?",
                "[1] = 1: should be a table",
                "[2].relevant = None: should be a list",
            ],
        ),
    ],
)  # fmt: skip
def test_every_fault_is_told_at_its_place(value: object, messages: list[str]) -> None:
    assert told(value) == messages


def test_a_fault_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(
        '{\n "id": "n", "note": "a \\"brace\\" } , [",\n "queries": [\n'
        '  {"id": "q1", "query": "x",\n   "ground_truth": ["a",\n    "../b"]},\n'
        '  {"id": "q1", "ground_truth": []}\n ]\n}\n'
    )
    with pytest.raises(Faults) as caught:
        read_manifest(path)
    assert [(fault.file, fault.line, fault.key) for fault in caught.value.faults] == [
        (str(path), 6, "queries[0].ground_truth[1]"),
        (str(path), 7, "queries[1].query"),
        (str(path), 7, "queries[1].ground_truth"),
        (str(path), 7, "queries[1].id"),
    ]


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ({"cases": [{"query": "ci", "expected": ["ci.md"]}]}, "retrieval-bench"),
        ({"id": "x", "cases": []}, "retrieval-bench"),
        ({"qs": []}, "its keys: 'qs'"),
        ({}, "its keys: none"),
        ("text", "but 'text'"),
        (None, "but None"),
    ],
)
def test_another_form_is_refused_with_those_that_are_read(value: object, word: str) -> None:
    with pytest.raises(Misuse) as caught:
        parse(value)
    assert caught.value.code == "manifest-form-unknown"
    assert word in caught.value.message
    assert '"ground_truth"' in str(caught.value)
    assert '"relevant"' in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        (b"", ":1: the manifest is not JSON"),
        (b'{"id": "n",\n"queries": [}', ":2: the manifest is not JSON"),
        (b'{"id": "n", "id": "m", "queries": []}', "'id' is given twice"),
        (b'[{"query": "a", "relevant": ["a"], "x": NaN}]', "NaN"),
        (b"\xff", "not UTF-8"),
        (b"\xef\xbb\xbf[]", "byte order mark"),
        (b'[{"query": "\\ud800", "relevant": ["a"]}]', "lone surrogate"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[" + b"9" * 5000 + b"]", "not JSON"),
    ],
)
def test_what_is_not_json_is_refused(tmp_path: Path, raw: bytes, word: str) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(raw)
    with pytest.raises(Misuse, match=word):
        read_manifest(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="no such manifest"):
        read_manifest(tmp_path / "m.json")


KEYS = st.sampled_from(
    ["id", "query", "queries", "ground_truth", "relevant", "intent", "category", "cases", "x"]
)
LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=4)
PATHS = st.text(st.sampled_from("a./\\ \n%é\0:[") | st.characters(codec="utf-8"), max_size=8)
VALUES = st.recursive(
    LEAVES | PATHS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
ROWS = st.fixed_dictionaries(
    {}, optional={"id": LEAVES, "query": LEAVES, "ground_truth": st.lists(PATHS), "relevant": st.lists(PATHS)}
)
SHAPED = st.lists(ROWS) | st.fixed_dictionaries({"id": st.text(max_size=3), "queries": st.lists(ROWS)})


@settings(max_examples=150, deadline=None)
@given(text=(VALUES | SHAPED).map(json.dumps) | st.text(max_size=30))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    """R7: never a traceback; what is read holds clean paths, and every fault has a line of the file."""
    try:
        found = parse_manifest(text, PLACE)
    except Faults as error:
        for fault in error.faults:
            assert 1 <= (fault.line or 0) <= text.count("\n") + 1
        return
    except EvalError as error:
        assert error.exit_code == 2
        return
    assert len({one.id for one in found.queries}) == len(found.queries)
    for one in found.queries:
        assert one.query.strip()
        assert one.ground_truth
        for path in one.ground_truth:
            assert clean(path) == path
            assert not {"", ".", ".."} & set(path.split("/"))


@settings(max_examples=100, deadline=None)
@given(value=VALUES, indent=st.none() | st.integers(0, 2))
def test_every_value_has_its_line(value: Any, indent: int | None) -> None:
    """Against a plain walk: printed one value a line, the n-th line holds the n-th opening or scalar."""
    from eval_core.imports.manifest import lines_of

    text = json.dumps(value, indent=indent)
    found = lines_of(text)
    places: list[str] = []

    def walk(inner: object, place: str) -> None:
        places.append(place)
        if isinstance(inner, list):
            for number, item in enumerate(inner):
                walk(item, f"{place}[{number}]")
        elif isinstance(inner, dict):
            for key, item in inner.items():
                walk(item, f"{place}.{key}" if place else key)

    walk(value, "")
    assert list(found) == places
    assert list(found.values()) == sorted(found.values())
    lines = text.split("\n")
    if isinstance(value, list) and indent is not None:
        assert [json.loads(lines[found[f"[{n}]"] - 1].strip().rstrip(",")) for n, item in enumerate(value)
                if not isinstance(item, list | dict)] == [
            item for item in value if not isinstance(item, list | dict)
        ]  # fmt: skip


def test_published_manifests(shared_data: Callable[[str], Path]) -> None:
    """R1, R7: the manifest and the legacy array of agentops are read whole; its benchmark is of neither form."""
    folder = shared_data("agentops/retrieval-bench")
    found = read_manifest(folder / "search-eval-manifest.json")
    assert (found.id, len(found.queries), found.unread) == ("retrieval-ratchet-fallback-v1", 4, {})
    legacy = read_manifest(folder / "eval-queries.json")
    assert (len(legacy.queries), legacy.skipped) == (17, 3)
    assert all(path.startswith(".agents/learnings/") for one in legacy.queries for path in one.ground_truth)
    with pytest.raises(Misuse, match="retrieval-bench"):
        read_manifest(folder / "benchmark.json")
