"""An archive source: one wheel with the pinned digest, fetched by pip or given, read in place and never trusted."""

from __future__ import annotations

import hashlib
import io
import json
import stat
import struct
import subprocess
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from eval_core.backend import Document
from eval_core.errors import CouldNot, Faults, Misuse
from eval_core.reconstruct import archive
from eval_core.reconstruct.lock import Oversize, Skipped
from eval_core.reconstruct.selection import State, Tally, documents
from eval_core.sets.definition import Archive

NAME = "beacon_notes-1.2-py3-none-any.whl"


def member(name: str, mode: int = 0o100644, method: int = zipfile.ZIP_DEFLATED) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
    info.external_attr = mode << 16
    info.compress_type = method
    info.create_system = 3
    return info


def packed(members: Sequence[tuple[zipfile.ZipInfo | str, bytes]]) -> bytes:
    """The bytes of a zip file with these members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for info, content in members:
            made.writestr(member(info) if isinstance(info, str) else info, content)
    return out.getvalue()


def wheel(files: dict[str, bytes]) -> bytes:
    """A wheel that pip takes."""
    info = "beacon_notes-1.2.dist-info"
    return packed(
        [
            *files.items(),
            (
                f"{info}/METADATA",
                b"Metadata-Version: 2.1\nName: beacon-notes\nVersion: 1.2\nRequires-Python: >=99\n",
            ),
            (
                f"{info}/WHEEL",
                b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            ),
            (f"{info}/RECORD", b""),
        ]
    )


PLAIN = wheel({"beacon/__init__.py": b"'beacon'\n", "beacon/retry.py": b"def retry(): ...\n"})


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def source(content: bytes = PLAIN, **keys: Any) -> Archive:
    pins = {"package": "beacon-notes", "version": "1.2", "sha256": sha256(content)}
    return Archive.model_validate_json(json.dumps({"name": "beacon", "type": "archive", **pins, **keys}))


@dataclass(frozen=True)
class Read:
    state: State
    documents: list[Document]
    skipped: Skipped
    told: list[str]


def read(wanted: Archive, cache: Path, override: Path | None = None) -> Read:
    told: list[str] = []
    tally = Tally()
    with archive.opened(wanted, override, cache, told.append) as (state, entries):
        found = list(documents(wanted, entries, tally))
    return Read(state, found, tally.skipped(), told)


def read_bytes(content: bytes, tmp_path: Path, **keys: Any) -> Read:
    """Read these bytes as a wheel that is on this machine."""
    path = tmp_path / NAME
    path.write_bytes(content)
    return read(source(content, **keys), tmp_path / "cache", path)


@pytest.fixture
def no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for the only index there is."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    return shelf


def test_a_wheel_is_fetched_by_pip_checked_and_kept(
    no_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A2: pinned by digest; once it is here, no index is asked again. What Python it is made for is no matter."""
    (no_index / NAME).write_bytes(PLAIN)
    trap = tmp_path / "here"
    trap.mkdir()
    (trap / "pip.py").write_text("raise SystemExit('not the pip that was meant')")
    monkeypatch.chdir(trap)
    cache = tmp_path / "cache"

    found = read(source(root="beacon", metadata={"kind": "code"}), cache)

    assert found.state == State(pinned=True, sha256=sha256(PLAIN))
    assert found.documents == [
        Document(
            "beacon/__init__.py", "__init__.py", "'beacon'\n", {"path": "beacon/__init__.py", "kind": "code"}
        ),
        Document(
            "beacon/retry.py", "retry.py", "def retry(): ...\n", {"path": "beacon/retry.py", "kind": "code"}
        ),
    ]
    assert found.told == ["source 'beacon': fetching the wheel of beacon-notes==1.2"]
    kept = cache / "archives" / f"{sha256(PLAIN)}.whl"
    assert [path for path in cache.rglob("*") if path.is_file()] == [kept]

    (no_index / NAME).unlink()
    again = read(source(root="beacon"), cache)
    assert (len(again.documents), again.told) == (2, [])

    altered = bytearray(PLAIN)
    altered[len(altered) // 2] ^= 1
    kept.write_bytes(altered)
    with pytest.raises(CouldNot, match=r"was not used\n  rm .*  \(it is fetched again\)") as caught:
        read(source(root="beacon"), cache)
    assert (caught.value.code, caught.value.exit_code) == ("archive-digest-differs", 3)


def test_without_a_registry_there_is_one_clear_error(no_index: Path, tmp_path: Path) -> None:
    """K4: a configured but absent source raises."""
    with pytest.raises(CouldNot, match=r"the wheel of beacon-notes==1.2 could not be fetched: ") as caught:
        read(source(), tmp_path / "cache")
    assert (caught.value.code, caught.value.exit_code) == ("source-absent", 3)
    assert caught.value.mend == "if the wheel is on this machine: EVAL_SOURCE_BEACON=PATH before the command"
    assert str(caught.value).count("\n") == 1
    assert not (tmp_path / "cache").exists()


def test_an_index_that_does_not_answer_is_told(
    no_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with pytest.raises(CouldNot, match="no package index answered") as caught:
        read(source(), tmp_path / "cache")
    assert str(caught.value).count("\n") == 1


def test_another_wheel_of_that_name_in_the_registry_is_refused(no_index: Path, tmp_path: Path) -> None:
    (no_index / NAME).write_bytes(wheel({"beacon/__init__.py": b"other"}))
    with pytest.raises(CouldNot, match="does not have the pinned sha256") as caught:
        read(source(), tmp_path / "cache")
    assert caught.value.code == "archive-digest-differs"
    assert not (tmp_path / "cache").exists()


def test_what_pip_brings_is_checked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pip that does not check, here one that only copies, changes nothing."""

    def careless(command: tuple[str, ...], **keys: Any) -> subprocess.CompletedProcess[bytes]:
        target = Path(command[command.index("--dest") + 1])
        target.mkdir()
        (target / NAME).write_bytes(wheel({"beacon/__init__.py": b"other"}))
        return subprocess.CompletedProcess(command, 0, b"", b"")

    monkeypatch.setattr(subprocess, "run", careless)
    with pytest.raises(CouldNot, match=f"{NAME} has sha256"):
        read(source(), tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_an_override_is_a_wheel_or_a_folder_with_it_and_must_have_the_digest(tmp_path: Path) -> None:
    """K4: an override replaces the configured location, and the digest must still match."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    cache = tmp_path / "cache"
    with pytest.raises(CouldNot, match="none of 0 wheels"):
        read(source(), cache, shelf)
    (shelf / "other-1.0-py3-none-any.whl").write_bytes(b"other")
    with pytest.raises(CouldNot, match=r"none of 1 wheel in .* has the pinned sha256"):
        read(source(), cache, shelf)
    path = shelf / "renamed.whl"
    path.write_bytes(PLAIN)
    for place in (path, shelf):
        assert [document.title for document in read(source(include=["*/*.py"]), cache, place).documents] == [
            "beacon/__init__.py",
            "beacon/retry.py",
        ]
    path.write_bytes(PLAIN + b"\0")
    with pytest.raises(CouldNot, match="was not used") as caught:
        read(source(), cache, path)
    assert caught.value.code == "archive-digest-differs"
    with pytest.raises(CouldNot, match="does not exist"):
        read(source(), cache, tmp_path / "nowhere")
    assert not cache.exists()


def test_members_are_sorted_and_what_is_no_file_is_skipped(tmp_path: Path) -> None:
    content = packed(
        [
            ("b/", b""),
            ("b/z.py", b"z"),
            (member("b/link", stat.S_IFLNK | 0o777), b"/etc/passwd"),
            (member("b/pipe", stat.S_IFIFO | 0o644), b""),
            (member("plain", 0), b"no mode"),
            (member("stored.txt", method=zipfile.ZIP_STORED), b"stored"),
            ("b/é x.txt", b"e"),
            ("a.bin", b"a\0"),
            ("latin", b"\xe9"),
            ("B.txt", b"B"),
            ("big", b"x" * 101),
        ]
    )
    found = read_bytes(content, tmp_path, prefix="", max_bytes=100)
    assert [document.id for document in found.documents] == [
        "B.txt",
        "b/z.py",
        "b/é%20x.txt",
        "plain",
        "stored.txt",
    ]
    assert found.skipped == Skipped(
        symlink=1, special=1, binary=1, not_utf8=1, oversize=(Oversize(path="big", bytes=101),)
    )


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../up",
        "a/../b",
        "./a",
        "a//b",
        "back\\slash",
        "C:/x",
        "C:x",
        "..",
        "a/.",
        "nul\0x",
        "/",
        "../d/",
    ],
)
def test_a_member_with_a_name_that_leads_elsewhere_is_a_fault(tmp_path: Path, name: str) -> None:
    info = member("placeholder")
    info.filename = info.orig_filename = name
    with pytest.raises(Faults, match="whose name") as caught:
        read_bytes(packed([("good.py", b"x"), (info, b"")]), tmp_path)
    assert [fault.file for fault in caught.value.faults] == [str(tmp_path / NAME)]


def test_all_bad_members_are_told_at_once(tmp_path: Path) -> None:
    method = member("packed.bin", method=zipfile.ZIP_BZIP2)
    with pytest.warns(UserWarning, match="Duplicate name"):
        content = packed([("../a", b""), ("/b", b""), ("twice", b"1"), ("twice", b"2"), (method, b"x")])
    with pytest.raises(Faults) as caught:
        read_bytes(content, tmp_path)
    told = "\n".join(fault.what for fault in caught.value.faults)
    for part in ("'../a'", "'/b'", "'twice' more than once", "'packed.bin', compressed by method 12"):
        assert part in told
    assert len(caught.value.faults) == 4


def patched(content: bytes, local: tuple[int, bytes], central: tuple[int, bytes]) -> bytes:
    """Overwrite bytes at an offset of the first local header and of the first central one."""
    out = bytearray(content)
    for signature, (offset, new) in ((b"PK\3\4", local), (b"PK\1\2", central)):
        start = out.index(signature) + offset
        out[start : start + len(new)] = new
    return bytes(out)


def test_an_encrypted_member_is_a_fault(tmp_path: Path) -> None:
    content = patched(packed([("a.py", b"x")]), (6, b"\1\0"), (8, b"\1\0"))
    with pytest.raises(Faults, match=r"the encrypted member 'a\.py'"):
        read_bytes(content, tmp_path)


def test_a_member_that_declares_too_much_is_not_unpacked(tmp_path: Path) -> None:
    """The declared size is enough to leave it out: this one could not be unpacked at all."""
    content = packed([("big.txt", b"x" * 5000), ("a.txt", b"a")])
    broken = bytearray(content)
    start = broken.index(b"big.txt") + 7
    broken[start : start + 4] = b"\xff\xff\xff\xff"
    found = read_bytes(bytes(broken), tmp_path, prefix="", max_bytes=4999)
    assert [document.id for document in found.documents] == ["a.txt"]
    assert found.skipped.oversize == (Oversize(path="big.txt", bytes=5000),)
    with pytest.raises(Faults, match=r"the damaged member 'big\.txt'"):
        read_bytes(bytes(broken), tmp_path, prefix="", max_bytes=5000)


def test_a_bomb_that_declares_little_is_stopped(tmp_path: Path) -> None:
    """100 MB in 100 KB, declared as 10 bytes: no more than that is taken, and it does not fit its checksum."""
    content = packed([("bomb.txt", b"x" * 100_000_000)])
    small = struct.pack("<L", 10)
    with pytest.raises(Faults, match=r"the damaged member 'bomb\.txt'"):
        read_bytes(patched(content, (22, small), (24, small)), tmp_path)


def damages() -> list[Any]:
    flipped = bytearray(packed([(member("a.py", method=zipfile.ZIP_STORED), b"text")]))
    flipped[flipped.index(b"text")] ^= 1
    other = patched(packed([("a.py", b"text")]), (30, b"b"), (46, b"a"))
    unicode = packed([("é.py", b"text")]).replace("é".encode(), b"\xff\xff")
    return [
        pytest.param(b"", id="empty"),
        pytest.param(b"no zip at all", id="no-zip"),
        pytest.param(PLAIN[:-30], id="cut-off"),
        pytest.param(bytes(flipped), id="checksum"),
        pytest.param(other, id="two-names"),
        pytest.param(unicode, id="name-not-utf8"),
    ]


@pytest.mark.parametrize("content", damages())
def test_a_damaged_archive_is_a_fault_even_where_it_is_the_pinned_one(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(Faults):
        read_bytes(content, tmp_path)


def test_an_empty_archive_gives_no_documents(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="gave no documents: there is no file in it"):
        read_bytes(packed([]), tmp_path)
