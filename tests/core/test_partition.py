"""Views of a corpus: everything, one scope, what is valid now; read at their offsets, written only when asked for."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from core_support import Judgement, write_set

from eval_core.measuring.partition import Partitions
from eval_core.sets.corpus import CorpusFile
from eval_core.sets.dataset import Dataset, load


def scoped(text: str, *scopes: str) -> dict[str, Any]:
    return {"text": text, "metadata": {"scopes": list(scopes)}}


DOCUMENTS = {
    "a1": scoped("é", "a"),
    "b1": scoped("two", "b"),
    "ab": scoped("three", "a", "b"),
    "free": "four",
}


def asked(text: str, **metadata: Any) -> dict[str, Any]:
    return {"text": text, "metadata": metadata}


def dataset(folder: Path, queries: Mapping[str, Any], judgements: list[Judgement], **files: str) -> Dataset:
    return load(
        write_set(folder / "set", DOCUMENTS, queries, judgements, 'name = "n"\nkind = "notes"\n', **files)
    )


IN_SCOPES = (
    {"q1": asked("t", scope="a"), "q2": asked("t", scope="b"), "q3": asked("t"), "q4": asked("t", scope="a")},
    [("q1", "a1", 1), ("q2", "b1", 1), ("q3", "free", 1), ("q4", "ab", 1)],
)


def views(found: Partitions) -> list[tuple[list[str], list[str]]]:
    return [([d.id for d in view], [query.id for query in queries]) for view, queries in found]


def test_without_scopes_there_is_one_index_of_the_file_itself(tmp_path: Path) -> None:
    loaded = dataset(tmp_path, {"q": "t"}, [("q", "a1", 1)])
    found = Partitions(loaded, list(loaded.queries), frozenset())
    assert (found.scoping, len(found)) == ("none", 1)
    ((view, queries),) = list(found)
    assert view.path == loaded.corpus.path
    assert (view.kind, len(view), [query.id for query in queries]) == ("notes", 4, ["q"])


def test_a_backend_without_scopes_gets_one_index_a_scope(tmp_path: Path) -> None:
    loaded = dataset(tmp_path, *IN_SCOPES)
    found = Partitions(loaded, list(loaded.queries), frozenset({"filter"}))
    assert (found.scoping, len(found)) == ("index-per-scope", 3)
    assert views(found) == [
        (["a1", "ab"], ["q1", "q4"]),
        (["b1", "ab"], ["q2"]),
        (["a1", "b1", "ab", "free"], ["q3"]),
    ]


def test_a_backend_with_scopes_gets_one_index(tmp_path: Path) -> None:
    loaded = dataset(tmp_path, *IN_SCOPES)
    found = Partitions(loaded, list(loaded.queries), frozenset({"scope"}))
    assert (found.scoping, views(found)) == ("filter", [(list(DOCUMENTS), ["q1", "q2", "q3", "q4"])])


def test_only_the_scopes_that_are_asked_are_indexed(tmp_path: Path) -> None:
    loaded = dataset(tmp_path, *IN_SCOPES)
    found = Partitions(loaded, [query for query in loaded.queries if query.id == "q2"], frozenset())
    assert views(found) == [(["b1", "ab"], ["q2"])]


TIMELINE = '{"epoch": 1, "id": "b1", "supersedes": "a1"}\n{"epoch": 2, "ends": "free"}\n'


@pytest.mark.parametrize(
    ("capabilities", "indexed"),
    [(frozenset[str](), ["b1", "ab"]), (frozenset({"temporal"}), ["a1", "b1", "ab", "free"])],
)
def test_a_backend_without_time_indexes_the_final_state(
    tmp_path: Path, capabilities: frozenset[str], indexed: list[str]
) -> None:
    """A backend that knows no epochs sees what is valid now."""
    loaded = dataset(tmp_path, {"q": "t"}, [("q", "b1", 1)], timeline_jsonl=TIMELINE)
    assert views(Partitions(loaded, list(loaded.queries), capabilities)) == [(indexed, ["q"])]


def test_a_scope_too_holds_the_final_state_only(tmp_path: Path) -> None:
    loaded = dataset(tmp_path, {"q": asked("t", scope="a")}, [("q", "ab", 1)], timeline_jsonl=TIMELINE)
    assert views(Partitions(loaded, list(loaded.queries), frozenset())) == [(["ab"], ["q"])]


def test_a_part_of_a_corpus_is_a_file_where_a_backend_reads_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    loaded = dataset(tmp_path, *IN_SCOPES)
    paths: list[Path] = []
    for view, _ in Partitions(loaded, list(loaded.queries), frozenset()):
        assert not any(path.exists() for path in paths)  # that of the scope before is gone
        if len(view) == 4:
            assert view.path == loaded.corpus.path
            continue
        paths.append(view.path)
        assert view.path == paths[-1]  # written once
        written = [document.id for document in CorpusFile(view.path)]
        assert written == [document.id for document in view]
        assert not written or "é" in view.path.read_text("utf-8") or "a1" not in written
    assert len(paths) == 2
    assert list(tmp_path.glob("eval-corpus-*")) == []


def test_an_interrupted_run_leaves_no_part_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    loaded = dataset(tmp_path, *IN_SCOPES)
    with (
        pytest.raises(KeyboardInterrupt),
        contextlib.closing(iter(Partitions(loaded, list(loaded.queries), frozenset()))) as indexes,
    ):
        for view, _ in indexes:
            assert view.path.exists()
            raise KeyboardInterrupt
    assert list(tmp_path.glob("eval-corpus-*")) == []


def test_documents_are_read_at_their_places_whatever_stands_between(tmp_path: Path) -> None:
    loaded = dataset(tmp_path, *IN_SCOPES)
    path = loaded.corpus.path
    path.write_bytes(b"\r\n  \n" + path.read_bytes().replace(b"\n", b"\r\n\n"))
    again = load(loaded.folder)
    assert views(Partitions(again, list(again.queries), frozenset()))[0] == (["a1", "ab"], ["q1", "q4"])
    ((view, _), *_rest) = Partitions(again, list(again.queries), frozenset({"scope"}))
    assert [document.text for document in view] == ["é", "two", "three", "four"]
    assert [document.id for document in view] == [document.id for document in view]  # as often as one likes


def test_a_corpus_that_changes_meanwhile_is_noticed(tmp_path: Path) -> None:
    loaded = dataset(tmp_path, *IN_SCOPES)
    ((view, _), *_rest) = Partitions(loaded, list(loaded.queries), frozenset({"scope"}))
    loaded.corpus.path.write_text(json.dumps({"_id": "a b", "text": "t"}) + "\n")
    with pytest.raises(RuntimeError, match="changed while it was being measured"):
        list(view)
