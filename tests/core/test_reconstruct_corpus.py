"""Reconstructing: several sources make one corpus and its lock, whole or not at all, the same bytes every time."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval_core.errors import CouldNot, EvalError, Faults, Misuse
from eval_core.reconstruct import (
    Lock,
    overrides_from_environment,
    read_lock,
    recipe_digest,
    reconstruct,
    relevant_overrides,
    survey,
    write_lock,
)
from eval_core.sets.corpus import CorpusFile
from eval_core.sets.definition import Definition

LINES = (
    '{"_id": "fact-2", "text": "b", "title": "B", "metadata": {"kind": "fact"}}\n'
    '{"_id": "fact-1", "text": "a", "extra": 1}\n'
)


def definition(recipe: str, head: str = 'name = "kb"\nversion = "3"\n') -> Definition:
    return Definition.model_validate_json(json.dumps(tomllib.loads(head + recipe)))


def commit(path: Path, files: dict[str, str]) -> str:
    """A real repository at `path` with one commit of these files."""
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    who = "A <a@example.org> 1700000000 +0000"
    lines = [f"commit refs/heads/main\ncommitter {who}\ndata 1\nm\ndeleteall\n"]
    lines += [f"M 100644 inline {name}\ndata {len(text)}\n{text}\n" for name, text in files.items()]

    def git(*arguments: str, stdin: str = "") -> str:
        command = ["git", "-C", str(path), *arguments]
        done = subprocess.run(
            command, input=stdin, env=environment, capture_output=True, check=True, text=True
        )
        return done.stdout.strip()

    path.mkdir(parents=True, exist_ok=True)
    git("init", "-q", "-b", "main")
    git("fast-import", "--quiet", stdin="".join(lines))
    return git("rev-parse", "main")


def dataset(base: Path) -> tuple[Path, Definition, str]:
    """A dataset of three sources below `base`: inline, a repository beside it, a folder in it."""
    folder = base / "sets/kb"
    (folder / "drafts/.git").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(LINES)
    (folder / "drafts/d.md").write_text("draft")
    (folder / "drafts/x.bin").write_bytes(b"\0")
    name = commit(base / "notes", {"docs/a.md": "alpha", "docs/b.rst": "beta", "c.md": "gamma"})
    recipe = f"""
        [[corpus.source]]
        name = "facts"
        type = "inline"
        metadata = {{ kind = "note", scopes = ["all"] }}
        [[corpus.source]]
        name = "notes"
        type = "git"
        path = "../../notes"
        commit = "{name}"
        root = "docs"
        include = ["*.md"]
        [[corpus.source]]
        name = "drafts"
        type = "dir"
        path = "drafts"
        prefix = ""
    """
    return folder, definition(recipe), name


def build(folder: Path, wanted: Definition, out: Path, **overrides: Path) -> Lock:
    return reconstruct(folder, wanted, out, overrides=overrides, cache=out.parent / "cache")


# Worked by hand: keys sorted, no white space, an extra field in the metadata, the document's own metadata first.
EXPECTED = [
    '{"_id":"fact-2","metadata":{"kind":"fact","scopes":["all"]},"text":"b","title":"B"}',
    '{"_id":"fact-1","metadata":{"extra":1,"kind":"note","scopes":["all"]},"text":"a","title":""}',
    '{"_id":"notes/a.md","metadata":{"path":"notes/a.md"},"text":"alpha","title":"a.md"}',
    '{"_id":"d.md","metadata":{"path":"d.md"},"text":"draft","title":"d.md"}',
]


def test_sources_make_one_corpus_in_the_recipes_order(tmp_path: Path) -> None:
    """A2, K4: the corpus, and a lock that says what it was made of."""
    folder, wanted, name = dataset(tmp_path)
    lock = build(folder, wanted, tmp_path / "out")

    content = (tmp_path / "out/corpus.jsonl").read_bytes()
    assert content.decode() == "".join(line + "\n" for line in EXPECTED)
    by_id = sorted((json.loads(line)["_id"], hashlib.sha256(line.encode()).hexdigest()) for line in EXPECTED)
    total = hashlib.sha256("".join(f"{name}\n{digest}\n" for name, digest in by_id).encode()).hexdigest()
    tree = subprocess.run(
        ["git", "-C", str(tmp_path / "notes"), "rev-parse", "main^{tree}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert json.loads((tmp_path / "out/lock.json").read_text()) == {
        "schema": "lock-v1",
        "dataset": "kb",
        "version": "3",
        "documents": 4,
        "digest": total,
        "recipe": recipe_digest(wanted),
        "file_sha256": hashlib.sha256(content).hexdigest(),
        "pinned": False,
        "sources": [
            {
                "name": "facts",
                "type": "inline",
                "location": "corpus.jsonl",
                "pinned": True,
                "documents": 2,
                "bytes": 2,
                "skipped": skipped(),
            },
            {
                "name": "notes",
                "type": "git",
                "location": "../../notes",
                "pinned": True,
                "commit": name,
                "tree": tree,
                "documents": 1,
                "bytes": 5,
                "skipped": skipped(excluded=1),
            },
            {
                "name": "drafts",
                "type": "dir",
                "location": "drafts",
                "pinned": False,
                "documents": 1,
                "bytes": 5,
                "skipped": skipped(binary=1),
            },
        ],
    }
    assert read_lock(tmp_path / "out/lock.json") == lock
    assert len(CorpusFile(tmp_path / "out/corpus.jsonl")) == 4, "it can be read back"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["corpus.jsonl", "lock.json"]


def skipped(**counts: int) -> dict[str, Any]:
    none = dict.fromkeys(["symlink", "submodule", "special", "binary", "not-utf8", "excluded"], 0)
    return {**none, "oversize": [], **counts}


def outputs(out: Path) -> tuple[bytes, bytes]:
    return (out / "corpus.jsonl").read_bytes(), (out / "lock.json").read_bytes()


def test_the_same_recipe_gives_the_same_bytes_again_elsewhere_and_with_overrides(tmp_path: Path) -> None:
    """A2, K4: neither the place of the checkout nor an override leaves a trace."""
    here, wanted, _ = dataset(tmp_path / "here")
    there, same, _ = dataset(tmp_path / "some where/else")
    assert wanted == same
    build(here, wanted, tmp_path / "out")
    first = outputs(tmp_path / "out")
    build(here, wanted, tmp_path / "out")
    assert outputs(tmp_path / "out") == first
    build(there, wanted, tmp_path / "other out")
    assert outputs(tmp_path / "other out") == first
    (tmp_path / "here/notes").rename(tmp_path / "moved")
    told: list[str] = []
    reconstruct(
        here,
        wanted,
        tmp_path / "third",
        overrides={"notes": tmp_path / "moved"},
        cache=tmp_path / "cache",
        progress=told.append,
    )
    assert outputs(tmp_path / "third") == first
    assert told == [f"source 'notes': read from {tmp_path / 'moved'}, not from ../../notes"]


def absent_source(folder: Path) -> None:
    (folder / "drafts").rename(folder / "away")


def same_id(folder: Path) -> None:
    (folder / "corpus.jsonl").write_text(LINES + '{"_id": "d.md", "text": ""}\n')


def bad_line(folder: Path) -> None:
    (folder / "corpus.jsonl").write_text(LINES + "no json\n")


def emptied(folder: Path) -> None:
    (folder / "drafts/d.md").unlink()


@pytest.mark.parametrize("harm", [absent_source, same_id, bad_line, emptied])
def test_when_anything_fails_neither_file_is_touched(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    folder, wanted, _ = dataset(tmp_path)
    out = tmp_path / "out"
    build(folder, wanted, out)
    before = outputs(out), (out / "corpus.jsonl").stat().st_mtime_ns
    harm(folder)
    with pytest.raises(EvalError):
        build(folder, wanted, out)
    assert (outputs(out), (out / "corpus.jsonl").stat().st_mtime_ns) == before
    with pytest.raises(EvalError):
        build(folder, wanted, tmp_path / "fresh")
    assert list((tmp_path / "fresh").iterdir()) == []


def test_an_interruption_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, wanted, _ = dataset(tmp_path)

    def interrupt(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("eval_core.reconstruct.folder.entries", interrupt)
    with pytest.raises(KeyboardInterrupt):
        build(folder, wanted, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_the_lock_appears_after_the_corpus_that_it_describes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, wanted, _ = dataset(tmp_path)
    order = []
    replace = os.replace

    def watched(source: str, target: Path) -> None:
        order.append(target.name)
        replace(source, target)

    monkeypatch.setattr(os, "replace", watched)
    build(folder, wanted, tmp_path / "out")
    assert order == ["corpus.jsonl", "lock.json"]


def test_an_id_of_two_sources_is_a_fault_that_names_both(tmp_path: Path) -> None:
    folder, wanted, _ = dataset(tmp_path)
    same_id(folder)
    with pytest.raises(Faults) as caught:
        build(folder, wanted, tmp_path / "out")
    (fault,) = caught.value.faults
    assert (fault.file, fault.subject) == (str(folder / "dataset.toml"), "source 'drafts'")
    assert (
        fault.what == "gives the document 'd.md', and so does source 'facts'; give one of them another prefix"
    )


INLINE = '[[corpus.source]]\nname = "facts"\ntype = "inline"\n'


def test_all_faults_of_an_inline_corpus_are_told_with_their_lines(tmp_path: Path) -> None:
    lines = [
        '{"_id": "a", "text": "1"}',
        "nonsense",
        '{"_id": "a", "text": "2"}',
        '{"_id": "b"}',
        '{"_id": "c d", "text": ""}',
    ]
    path = tmp_path / "corpus.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(Faults) as caught:
        build(tmp_path, definition(INLINE), tmp_path / "out")
    assert [(fault.file, fault.line) for fault in caught.value.faults] == [
        (str(path), n) for n in (2, 3, 4, 5)
    ]
    assert caught.value.faults[1].what == "_id 'a' again (first at line 1)"


def test_many_faults_are_counted_and_the_first_named(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text("nonsense\n" * 50)
    with pytest.raises(Faults, match="20 faults; 31 more not shown; nothing was written"):
        build(tmp_path, definition(INLINE), tmp_path / "out")


def test_an_inline_source_may_have_a_prefix_and_no_other_place(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": ""}')
    build(tmp_path, definition(INLINE + 'prefix = "p"'), tmp_path / "out")
    assert [document.id for document in CorpusFile(tmp_path / "out/corpus.jsonl")] == ["p/a"]
    with pytest.raises(Misuse, match="is inline"):
        build(tmp_path, definition(INLINE), tmp_path / "out", facts=tmp_path)


def test_an_absent_or_empty_inline_corpus_raises(tmp_path: Path) -> None:
    """K4: a configured but absent source raises."""
    with pytest.raises(CouldNot, match=r"source 'facts': .*corpus\.jsonl does not exist"):
        build(tmp_path, definition(INLINE), tmp_path / "out")
    (tmp_path / "corpus.jsonl").write_text("\n")
    with pytest.raises(Faults, match="gave no documents"):
        build(tmp_path, definition(INLINE), tmp_path / "out")


def test_the_datasets_own_corpus_is_never_the_output(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text(LINES)
    with pytest.raises(Misuse, match="would be lost"):
        build(tmp_path, definition(INLINE), tmp_path / "x/..")
    assert (tmp_path / "corpus.jsonl").read_text() == LINES


def test_output_below_a_folder_source_is_not_read_again(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("a")
    wanted = definition('[[corpus.source]]\nname = "here"\ntype = "dir"\npath = "."\n')
    locks = [build(tmp_path, wanted, tmp_path / "built") for _ in range(2)]
    assert locks[0] == locks[1]
    assert locks[0].documents == 1


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ('include = ["docs/"]', "source 'd': the glob 'docs/' ends with a slash"),
        ('root = "/x"', "source 'd': root '/x'"),
        ('prefix = "a b"', "source 'd': prefix 'a b'"),
        ('prefix = "50%"', "source 'd': prefix '50%'"),
        ("metadata = { kind = 3 }", "source 'd': metadata.kind 3 is not a text"),
        ('metadata = { scopes = "x" }', "source 'd': metadata.scopes 'x' is not a list"),
    ],
)
def test_a_recipe_that_cannot_work_is_told_before_any_source_is_opened(
    tmp_path: Path, keys: str, part: str
) -> None:
    wanted = definition(f'[[corpus.source]]\nname = "d"\ntype = "dir"\npath = "absent"\n{keys}\n')
    with pytest.raises(Faults) as caught:
        build(tmp_path, wanted, tmp_path / "out")
    assert [fault.file for fault in caught.value.faults] == [str(tmp_path / "dataset.toml")]
    assert part in str(caught.value.faults[0])


def test_an_override_of_no_source_is_told_with_the_nearest(tmp_path: Path) -> None:
    folder, wanted, _ = dataset(tmp_path)
    with pytest.raises(
        Misuse, match=r"there is no source 'note'; did you mean 'notes'\?  \(sources: facts, notes"
    ):
        build(folder, wanted, tmp_path / "out", note=tmp_path)


def test_overrides_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """K4: a variable replaces the location; an empty one is not set."""
    monkeypatch.setenv("EVAL_SOURCE_LEARNING_NOTES", "../x")
    monkeypatch.setenv("EVAL_SOURCE_B", "")
    monkeypatch.setenv("EVAL_SOURCE_UNKNOWN", "y")
    assert overrides_from_environment(["learning-notes", "b", "c"]) == {"learning-notes": Path("../x")}
    with pytest.raises(
        Misuse, match=r"EVAL_SOURCE_LEARNING_NOTES: stands for .*'learning-notes' and 'learning\.notes'"
    ):
        overrides_from_environment(["learning-notes", "learning.notes"])


def test_an_override_by_hand_wins_over_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K4"""
    _, wanted, _ = dataset(tmp_path)
    monkeypatch.setenv("EVAL_SOURCE_NOTES", "environment")
    monkeypatch.setenv("EVAL_SOURCE_DRAFTS", "drafts")
    found = relevant_overrides([wanted, None, definition("")], {"notes": Path("hand")})
    assert found == {"notes": Path("hand"), "drafts": Path("drafts")}
    with pytest.raises(Misuse, match="no source 'notse'"):
        relevant_overrides([wanted], {"notse": Path("hand")})


def test_the_recipes_digest() -> None:
    """Formatting and written-out defaults are no change; a pin, an order, a glob are."""
    other = '[[corpus.source]]\nname = "d"\ntype = "dir"\npath = "d"\n'
    plain = recipe_digest(definition(INLINE + other))
    assert recipe_digest(definition(INLINE + other + 'include = ["**"]\nmax_bytes = 1048576\n')) == plain
    assert recipe_digest(definition(INLINE + other, 'name = "x"\n')) == plain
    table = '{"source":[{"name":"facts","type":"inline"},{"name":"d","path":"d","type":"dir"}]}'
    assert plain == hashlib.sha256(table.encode()).hexdigest(), (
        "a key added to recipes later changes no digest"
    )
    changed = [
        other + INLINE,
        INLINE,
        INLINE + other + 'include = ["*"]\n',
        INLINE + other.replace('"d"\n', '"e"\n'),
    ]
    assert len({plain, *(recipe_digest(definition(recipe)) for recipe in changed)}) == 5
    assert recipe_digest(definition("")) == recipe_digest(None) == "none"


def test_a_set_without_recipe_is_surveyed_and_not_built(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text(LINES)
    lock = survey(tmp_path, "plain")
    assert (lock.documents, lock.recipe, lock.sources) == (2, "none", ())
    assert lock.file_sha256 == hashlib.sha256(LINES.encode()).hexdigest()
    assert lock.digest == build(tmp_path, definition(INLINE), tmp_path / "out").digest != lock.file_sha256
    with pytest.raises(Misuse, match="has no recipe"):
        build(tmp_path, definition(""), tmp_path / "out")
    (tmp_path / "corpus.jsonl").unlink()
    with pytest.raises(CouldNot, match="no such corpus"):
        survey(tmp_path, "plain")


def test_a_lock_is_read_as_it_was_written_and_nothing_else_is(tmp_path: Path) -> None:
    folder, wanted, _ = dataset(tmp_path)
    lock = build(folder, wanted, tmp_path / "out")
    path = tmp_path / "lock.json"
    write_lock(path, lock)
    assert path.read_bytes() == (tmp_path / "out/lock.json").read_bytes()
    table = json.loads(path.read_text())
    changes: list[tuple[dict[str, Any], str]] = [
        ({"documents": "4"}, "documents = '4'"),
        ({"document": 4}, "did you mean 'documents'?"),
        ({"schema": "lock-v2"}, "schema"),
        ({"digest": "x"}, "digest"),
        ({"recipe": "nonesuch"}, "recipe"),
    ]
    for change, part in changes:
        path.write_text(json.dumps({**table, **change}))
        with pytest.raises(Faults) as caught:
            read_lock(path)
        assert part in str(caught.value)
    path.write_text("{")
    with pytest.raises(Faults):
        read_lock(path)
    with pytest.raises(Misuse, match="no such lock"):
        read_lock(tmp_path / "absent.json")


def test_the_corpus_is_streamed(tmp_path: Path) -> None:
    """Forty megabytes of documents pass through a few."""
    import tracemalloc

    (tmp_path / "notes").mkdir()
    for number in range(40):
        (tmp_path / f"notes/{number}").write_bytes(b"%02d" % number * 500_000)
    wanted = definition('[[corpus.source]]\nname = "d"\ntype = "dir"\npath = "notes"\n')
    tracemalloc.start()
    try:
        build(tmp_path, wanted, tmp_path / "out")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (tmp_path / "out/corpus.jsonl").stat().st_size > 40_000_000
    assert peak < 12_000_000
