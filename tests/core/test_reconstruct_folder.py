"""A folder source: the files as they are now, links not followed, nothing of git's or of these tools' own."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_core.backend import Document
from eval_core.errors import CouldNot, Misuse
from eval_core.reconstruct import folder
from eval_core.reconstruct.lock import Oversize, Skipped
from eval_core.reconstruct.selection import Entry, Tally, documents, selection_faults, shown
from eval_core.sets.corpus import encode_id, id_fault
from eval_core.sets.definition import Folder


def source(**keys: Any) -> Folder:
    return Folder.model_validate_json(json.dumps({"name": "notes", "type": "dir", "path": "notes", **keys}))


def read(
    dataset: Path, override: Path | None = None, leave_out: tuple[Path, ...] = (), **keys: Any
) -> tuple[list[Document], Skipped]:
    tally = Tally()
    wanted = source(**keys)
    found = list(documents(wanted, folder.entries(wanted, dataset, override, leave_out), tally))
    return found, tally.skipped()


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes"
    path.mkdir()
    return path


def write(base: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_bytes(content)


def titles(found: list[Document]) -> list[str]:
    return [document.title for document in found]


def test_files_are_read_in_byte_order_of_their_paths(notes: Path, tmp_path: Path) -> None:
    """A2: the order is git's, whatever the file system lists first."""
    names = ["a/z", "a.b", "a0", "B", "é", "a b", "deep/er/x"]
    write(notes, dict.fromkeys(names, b"text"))
    (notes / os.fsdecode(b"\xff")).write_bytes(b"text")
    (notes / "empty").mkdir()
    found, skipped = read(tmp_path)
    assert titles(found) == ["B", "a b", "a.b", "a/z", "a0", "deep/er/x", "é", "%FF"]
    assert found[1] == Document("notes/a%20b", "a b", "text", {"path": "notes/a b"})
    assert skipped == Skipped()


def test_links_are_not_followed_and_special_files_not_opened(notes: Path, tmp_path: Path) -> None:
    write(tmp_path, {"secret/s.md": b"secret", "notes/a.md": b"a", "notes/b.bin": b"\0", "notes/c": b"\xff"})
    (notes / "big").write_bytes(b"x" * 11)
    (notes / "up").symlink_to(tmp_path / "secret")
    (notes / "file").symlink_to(tmp_path / "secret/s.md")
    (notes / "loop").symlink_to(notes)
    (notes / "dangling").symlink_to("nowhere")
    os.mkfifo(notes / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(notes)  # a socket's path may not be long
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)
        found, skipped = read(tmp_path, max_bytes=10)
    assert titles(found) == ["a.md"]
    assert skipped == Skipped(
        symlink=4, special=2, binary=1, not_utf8=1, oversize=(Oversize(path="big", bytes=11),)
    )


def test_what_git_and_these_tools_keep_is_left_out_at_any_depth(notes: Path, tmp_path: Path) -> None:
    write(notes, {".git/config": b"x", "sub/.git": b"gitdir: x", ".eval/corpora/n/corpus.jsonl": b"{}"})
    write(notes, {"sub/.eval/x": b"x", "a.md": b"a", ".github/b.yml": b"b", "sub/.gitignore": b"c"})
    write(notes, {"made/corpus.jsonl": b"{}", "kept/made/x.md": b"x"})
    found, skipped = read(tmp_path, leave_out=(notes / "made", tmp_path / "absent"))
    assert titles(found) == [".github/b.yml", "a.md", "kept/made/x.md", "sub/.gitignore"]
    assert skipped == Skipped()


def test_root_and_override(notes: Path, tmp_path: Path) -> None:
    """K4: an override replaces the configured location."""
    write(notes, {"docs/a.md": b"configured", "x.md": b"x"})
    write(tmp_path, {"else/where/docs/b.md": b"override"})
    found, _ = read(tmp_path, root="docs", prefix="")
    assert found == [Document("a.md", "a.md", "configured", {"path": "a.md"})]
    found, _ = read(tmp_path, tmp_path / "else/where", root="docs", prefix="")
    assert found == [Document("b.md", "b.md", "override", {"path": "b.md"})]


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"path": "gone"}, "'gone' does not exist"),
        ({"path": "notes/file"}, "'notes/file' is not a folder"),
        ({"root": "gone"}, "root 'gone' is not a folder of 'notes'"),
        ({"root": "link"}, "root 'link' is not a folder of 'notes'"),
        ({"root": "link/inner"}, "root 'link/inner' is not a folder of 'notes'"),
    ],
)
def test_an_absent_folder_raises(notes: Path, tmp_path: Path, keys: dict[str, Any], why: str) -> None:
    """K4: a configured but absent source raises."""
    write(notes, {"file": b"x"})
    (tmp_path / "elsewhere/inner").mkdir(parents=True)
    (notes / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CouldNot, match=f"source 'notes': {why}") as caught:
        read(tmp_path, **keys)
    assert (caught.value.code, caught.value.exit_code) == ("source-absent", 3)


def test_an_absent_override_raises_though_the_configured_folder_is_there(notes: Path, tmp_path: Path) -> None:
    """K4"""
    write(notes, {"a.md": b"a"})
    with pytest.raises(CouldNot, match="does not exist"):
        read(tmp_path, tmp_path / "nowhere")


@pytest.mark.parametrize("becomes", ["a link", "nothing"])
def test_a_file_that_is_exchanged_or_gone_meanwhile_is_an_error(
    notes: Path, tmp_path: Path, becomes: str
) -> None:
    write(notes, {"a.md": b"a", "b.md": b"b"})
    wanted = source()

    def exchanged() -> Iterator[Entry]:
        for entry in folder.entries(wanted, tmp_path, None, ()):
            if entry.path == b"b.md":
                (notes / "b.md").unlink()
                if becomes == "a link":
                    (notes / "b.md").symlink_to("a.md")
            yield entry

    found = []
    with pytest.raises(CouldNot, match=r"b\.md' cannot be read"):
        for document in documents(wanted, exchanged(), Tally()):
            found.append(document.title)
    assert found == ["a.md"]


def test_a_file_that_grew_past_the_limit_is_left_out() -> None:
    tally = Tally()
    entries = [Entry(b"a", "file", 3, lambda most: b"x" * most), Entry(b"b", "file", 1, lambda most: b"y")]
    found = list(documents(source(max_bytes=10), entries, tally))
    assert titles(found) == ["b"]
    assert tally.skipped() == Skipped(oversize=(Oversize(path="a", bytes=11),))
    assert (tally.documents, tally.bytes) == (1, 1)


def test_a_folder_without_files_is_an_error(notes: Path, tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="gave no documents: there is no file in it"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ({"root": "/a"}, "root '/a' is not a plain path"),
        ({"root": "a/"}, "root 'a/' is not a plain path"),
        ({"root": "."}, "root '.' is not a plain path"),
        ({"root": "a/../b"}, "root 'a/../b' is not a plain path"),
        ({"include": ["docs/"]}, "write 'docs/**'"),
        ({"exclude": ["/docs/*"]}, "begins with a slash"),
    ],
)
def test_a_root_or_glob_that_fits_no_path_is_told(keys: dict[str, Any], part: str) -> None:
    assert [fault for fault in selection_faults(source(**keys)) if part in fault]


names = st.binary(min_size=1, max_size=12).filter(lambda name: b"\0" not in name and b"/" not in name)


@given(names, names)
def test_two_paths_never_share_an_id(one: bytes, other: bytes) -> None:
    ids = [encode_id(name.decode("utf-8", "surrogateescape")) for name in (one, other)]
    assert (ids[0] == ids[1]) is (one == other)
    assert id_fault(ids[0]) is None


@given(st.text(min_size=1, max_size=12))
def test_an_id_can_be_decoded_again(name: str) -> None:
    from urllib.parse import unquote

    assert unquote(encode_id(name)) == name


@pytest.mark.parametrize(
    ("one", "other"),
    [(b"%20", b" "), (b"\xff", b"%FF"), (b"\xc2\xa0", b"\xa0"), (b"\xc3\xbf", b"\xff"), (b"%25", b"%")],
)
def test_names_that_look_alike_when_encoded_stay_apart(one: bytes, other: bytes) -> None:
    found = [
        document.id
        for document in documents(
            source(), [Entry(path, "file", 1, lambda most: b"x") for path in (one, other)], Tally()
        )
    ]
    assert len(set(found)) == 2


@pytest.mark.parametrize(
    ("path", "text"), [(b"a b\n%", "a b\n%"), (b"\xe9t\xc3\xa9", "%E9té"), ("日本".encode(), "日本")]
)
def test_a_title_escapes_only_what_is_no_text(path: bytes, text: str) -> None:
    assert shown(path) == text
