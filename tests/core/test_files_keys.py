"""Files appear whole or not at all; digests are taken over one canonical form; keys name what differs."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from eval_core.errors import CouldNot, EvalError, Misuse
from eval_core.files import atomic, canonical, digest, digest_file, read_text, write_lines, write_text
from eval_core.reports.keys import SYSTEM_PARTS, TASK_PARTS, Difference, Key, differences, nested_differences
from eval_core.reports.report import read_report

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1, "a": [1, 2.5, None, True]}, '{"a":[1,2.5,null,true],"b":1}'),
        ({"é": "日本\n"}, '{"é":"日本\\n"}'),
        ((1, 2), "[1,2]"),
        ("\u2028", '"\u2028"'),
    ],
)
def test_the_canonical_form_is_compact_sorted_and_unescaped(value: Any, expected: str) -> None:
    assert canonical(value) == expected.encode()
    assert digest(value) == hashlib.sha256(expected.encode()).hexdigest()


@given(JSON)
def test_the_canonical_form_reads_back_and_is_a_fixed_point(value: Any) -> None:
    raw = canonical(value)
    assert canonical(json.loads(raw)) == raw
    assert b"\n" not in raw


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {"x": [float("-inf")]}, "\ud800", {"\udfff": 1}]
)
def test_what_json_in_utf8_cannot_hold_has_no_canonical_form(value: Any) -> None:
    with pytest.raises(ValueError):
        canonical(value)


def test_a_file_has_the_digest_of_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    assert digest_file(tmp_path / "f") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_file_is_written_whole_with_the_rights_of_any_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"
    write_text(path, "é\r\n")
    assert path.read_bytes() == "é\r\n".encode()
    write_lines(path, iter([b"a", b"b"]))
    assert path.read_bytes() == b"a\nb\n"
    before = os.umask(0o027)
    try:
        write_text(path, "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(path.parent) == ["file"]


@pytest.mark.parametrize("error", [ValueError("half way"), KeyboardInterrupt(), SystemExit(1)])
def test_what_stood_there_stays_when_writing_is_cut_short(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    with pytest.raises(type(error)), atomic(path) as stream:
        stream.write(b"half")
        raise error
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["file"]


def test_nothing_is_left_where_nothing_stood(tmp_path: Path) -> None:
    def lines() -> Any:
        yield b"one"
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError):
        write_lines(tmp_path / "file", lines())
    assert os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CouldNot) as caught:
        write_text(tmp_path / "file" / "below", "x")
    assert str(caught.value).startswith(f"{tmp_path / 'file' / 'below'}: cannot be written: ")
    assert caught.value.code == "cannot-write"


@pytest.mark.parametrize(
    ("raw", "told", "reason"),
    [
        (None, "there is no such policy", "file-missing"),
        (b"a = \xff", "the policy is not UTF-8 text (byte 4)", "file-malformed"),
        (b"\xef\xbb\xbfa = 1", "the policy begins with a byte order mark", "file-malformed"),
    ],
)
def test_a_text_that_cannot_be_read_is_told(
    tmp_path: Path, raw: bytes | None, told: str, reason: str
) -> None:
    path = tmp_path / "file"
    if raw is not None:
        path.write_bytes(raw)
    with pytest.raises(Misuse) as caught:
        read_text(path, "policy")
    assert str(caught.value).startswith(f"{path}: {told}")
    assert caught.value.code == reason


def test_a_folder_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="cannot be read"):
        read_text(tmp_path, "policy")


# --------------------------------------------------------------------------------------------- keys


def test_a_key_is_its_parts_whatever_their_order() -> None:
    """M7: a report carries its configuration."""
    one, other = Key.of({"a": 1, "b": [2]}), Key.of({"b": [2], "a": 1})
    assert one.sha256 == other.sha256 == hashlib.sha256(b'{"a":1,"b":[2]}').hexdigest()
    assert Key.of({"a": 1, "b": [3]}).sha256 != one.sha256


@pytest.mark.parametrize("change", [{"parts": {"a": 2}}, {"sha256": "0" * 64}, {"more": 1}])
def test_a_key_whose_digest_does_not_fit_does_not_load(change: dict[str, Any]) -> None:
    sound = Key.of({"a": 1}).model_dump()
    Key.model_validate(sound)
    with pytest.raises(ValidationError):
        Key.model_validate(sound | change)


def test_differences_are_named_in_order_unknown_parts_last() -> None:
    """M7: a comparison names each part that differs."""
    ours = {"split": "test", "queries": "x", "limit": 10, "zz": 1, "aa": 2}
    theirs = {"split": "test", "queries": "y", "limit": 20, "corpus": "c"}
    assert differences(ours, theirs) == [
        Difference("queries", "x", "y"),
        Difference("corpus", None, "c"),
        Difference("limit", 10, 20),
        Difference("aa", 2, None),
        Difference("zz", 1, None),
    ]
    assert differences(ours, dict(ours)) == []
    assert [d.part for d in differences({"expand": 1}, {"backend": 2}, SYSTEM_PARTS)] == ["backend", "expand"]


def test_the_parts_of_both_keys_are_those_of_the_contract() -> None:
    assert set(TASK_PARTS) >= {"queries", "query_ids", "judgements", "split", "corpus", "recipe", "timeline"}
    assert set(TASK_PARTS) >= {"links", "concepts", "limit", "filter", "scale", "metrics", "cutoffs"}
    assert set(SYSTEM_PARTS) >= {"backend", "options", "scoping", "expand"}


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ({"k1": 1, "b": 2}, {"k1": 3, "b": 2}, [Difference("options.k1", 1, 3)]),
        (
            {"a": {"b": 1}},
            {"a": {"b": 2, "c": 3}},
            [Difference("options.a.b", 1, 2), Difference("options.a.c", None, 3)],
        ),
        ({"a": [1, 2]}, {"a": [2, 1]}, [Difference("options.a", [1, 2], [2, 1])]),
        ({}, {}, []),
        (1, 2, [Difference("options", 1, 2)]),
    ],
)
def test_nested_differences_name_the_innermost_entries(
    ours: Any, theirs: Any, expected: list[Difference]
) -> None:
    assert nested_differences(ours, theirs, "options") == expected


@pytest.mark.parametrize("read", ["text", "report"])
def test_a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for(tmp_path: Path, read: str) -> None:
    """Reading it would wait for ever."""
    pipe = tmp_path / "file"
    os.mkfifo(pipe)
    with pytest.raises(EvalError, match="a pipe, a socket or a device"):
        read_text(pipe, "policy file") if read == "text" else read_report(pipe)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO])
def test_a_disk_that_is_full_while_a_file_is_written_is_no_fault_of_the_program(
    tmp_path: Path, number: int
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    with pytest.raises(CouldNot, match="cannot be written"), atomic(path) as stream:
        stream.write(b"half")
        raise OSError(number, os.strerror(number))
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["file"]
