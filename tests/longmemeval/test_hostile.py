"""What is not a sound LongMemEval file ends in one clear error with its place, exit 2, and leaves nothing."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lme_support import Desk, record, turn

from longmemeval_convert import stream
from longmemeval_convert.synth import Generator

SOUND = json.dumps([record("a"), record("b")], indent=4).encode()
SECOND = SOUND.index(b"{", SOUND.index(b"\n    },"))


def second(change: Callable[[bytes], bytes]) -> bytes:
    """The sound file with its second record changed."""
    return SOUND[:SECOND] + change(SOUND[SECOND:])


# What a file holds, and what its error says.
FILES: dict[str, tuple[bytes, list[str]]] = {
    "empty": (b"", ["lme.json: is empty"]),
    "white space": (b" \r\n\t ", ["lme.json: is empty"]),
    "no question": (b"[ ]", ["holds no question"]),
    "truncated": (SOUND[:-100], [f"record 2 at byte {SECOND}", "the file ends after", "Download it again"]),
    "truncated between": (SOUND[: SECOND - 5], ["record 2 at byte", "the file ends after"]),
    "truncated before the bracket": (SOUND.rstrip(b"\n]"), ["the file ends after", "inside the array"]),
    "truncated in a character": ('[{"a": "é'.encode()[:-1], ["record 1", "the file ends inside a character"]),
    "web page": (b"<!DOCTYPE html>\n<html>Sign in", ["is a web page (HTML)"]),
    "web page with a mark": (b"\xef\xbb\xbf\r\n<html>", ["is a web page (HTML)"]),
    "LFS pointer": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:d6f2\nsize 277383467\n",
        ["is a Git LFS pointer, in the place of 277383467 bytes", "git lfs pull"],
    ),
    "V2 haystacks": (b'{"q-web": ["t1", "t2"]}', ["is of LongMemEval-V2"]),
    "V2 questions": (b'{"id": "q", "domain": "web", "question": "?"}\n{}', ["is of LongMemEval-V2"]),
    "V2 in an array": (b'[{"id": "q", "domain": "web"}]', ["record 1 at byte 1", "LongMemEval-V2"]),
    "JSON lines": (json.dumps(record()).encode() + b"\n", ["one record after another", "jq -s ."]),
    "a table": (b'{"data": 1}', ["is a JSON table"]),
    "a text": (b'"hello"', ["expected a JSON array, found"]),
    "zip": (b"PK\x03\x04\x14\x00", ["expected a JSON array, found 'PK"]),
    "UTF-16": (SOUND.decode().encode("utf-16"), ["is UTF-16; save it as UTF-8"]),
    "cut gzip": (gzip.compress(SOUND * 9)[:-20], ["is not whole gzip"]),
    "not UTF-8": (
        second(lambda b: b.replace(b"Lisbon", b"Lisb\xff", 1)),
        ["record 2", "not UTF-8: byte 0xff at byte "],
    ),
    "NaN": (
        second(lambda b: b.replace(b'"Lisbon"', b"NaN", 1)),
        [f"record 2 at byte {SECOND}", "NaN is not a JSON"],
    ),
    "infinity": (
        second(lambda b: b.replace(b'"Lisbon"', b"-Infinity", 1)),
        ["record 2", "-Infinity is not a JSON"],
    ),
    "a key twice": (
        second(lambda b: b.replace(b'"question":', b'"question": "?", "question":', 1)),
        ["record 2", "key 'question' is given twice"],
    ),
    "a raw newline": (
        second(lambda b: b.replace(b"booked", b"boo\nked", 1)),
        ["record 2", "Invalid control character"],
    ),
    "a wrong word at the end": (b'[{"a": trux}]', ["record 1 at byte 7", "not JSON: Expecting value"]),
    "a wrong bracket at the end": (b'[{"a": 1]', ["record 1 at byte 8", "Expecting ',' delimiter"]),
    "cut in a word": (b'[{"a": tru', ["record 1 at byte 1", "the file ends after 10 bytes"]),
    "cut in an escape": (b'[{"a": "\\ud83d\\u1', ["record 1 at byte 1", "the file ends after"]),
    "no comma": (
        SOUND.replace(b"\n    },", b"\n    }", 1),
        ["record 1", "expected ',' or ']' after the record"],
    ),
    "a comma too many": (SOUND.rstrip(b"\n]") + b",\n]", ["record 3", "expected a record, found ']'"]),
    "something after": (SOUND + b" []", ["the array has ended, and '[' follows"]),
    "no table": (b"[1, 2]", ["record 1 at byte 1", "expected a record, found '1'"]),
    "nested arrays": (b'[{"a": ' + b"[" * 1_000_000, ["record 1 at byte 1", "nested too deeply"]),
    "nested tables": (b"[" + b'{"a":' * 1_000_000, ["record 1 at byte 1", "nested too deeply"]),
    "nested at the top": (b"[" * 1_000_000, ["record 1 at byte 1", "expected a record, found '['"]),
    "a long number": (b'[{"a": ' + b"9" * 5000 + b"}]", ["record 1 at byte 1", "digits"]),
    "nested in a text": (
        json.dumps([record(haystack_sessions=["[" * 100_000, [], []])]).encode(),
        ["haystack_sessions[0]", "is a text, and not one of JSON"],
    ),
}


def refused(desk: Desk, words: list[str], *options: object) -> None:
    """Convert lme.json: one error of these words, exit 2, nothing left behind."""
    before = desk.left()
    done = desk.convert("lme.json", "-o", "set", *options)
    assert (done.code, done.out) == (2, ""), done
    for word in words:
        assert word in done.err, (word, done.err)
    assert done.err.startswith("longmemeval-convert: lme.json: ")
    assert "Traceback" not in done.err and done.err.count("\n") <= 2
    assert desk.left() == before


@pytest.mark.parametrize("name", FILES)
def test_hostile_files_end_in_one_error(desk: Desk, name: str) -> None:
    data, words = FILES[name]
    desk.write(data)
    refused(desk, words)
    identified = desk.convert("identify", "lme.json")
    assert (identified.code, identified.out) == (2, "")


def without(key: str) -> dict[str, Any]:
    value = record("b")
    del value[key]
    return value


TURNS = record()["haystack_sessions"]

# A second record that is not sound, and what its error says.
RECORDS: dict[str, tuple[dict[str, Any], list[str]]] = {
    **{f"without {key}": (without(key), [f"{key}: it is missing"]) for key in record() if key != "answer"},
    "an id that is none": (record(None), ["question_id = None: should be a text"]),  # type: ignore[arg-type]
    "an id again": (record("a"), ["question_id = 'a': is the question of record 1 again"]),
    "half a surrogate in an id": (record("b\ud83d"), ["half of a surrogate pair"]),
    "a blank question": (record("b", question=" "), ["question = ' ': should be a text that is not blank"]),
    "an answer that is a list": (record("b", answer=["x"]), ["answer = ['x']: should be a text or a number"]),
    "an answer that is true": (record("b", answer=True), ["should be a text or a number"]),
    "unequal lists": (
        record("b", haystack_dates=["2024/02/20 (Tue) 12:15"]),
        ["haystack_session_ids: the parallel lists have 3 ids, 1 dates and 3 sessions"],
    ),
    "an empty history": (
        record("b", haystack_dates=[], haystack_session_ids=[], haystack_sessions=[]),
        ["the history is empty"],
    ),
    "no list": (record("b", haystack_dates="x"), ["haystack_dates = 'x': should be a list"]),
    "unknown gold": (
        record("b", answer_session_ids=["answer_2"]),
        ["= 'answer_2': is not a session of the history"],
    ),
    "two sessions of one id": (
        record("b", haystack_session_ids=["answer_1", "answer_1", "c"]),
        ["haystack_session_ids[1] = 'answer_1': is given twice, with different turns"],
    ),
    "a turn that is a number": (
        record("b", haystack_sessions=[[1], [], []]),
        ["haystack_sessions[0][0] = 1"],
    ),
    "a turn without content": (
        record("b", haystack_sessions=[[], [{"role": "user"}], []]),
        ["haystack_sessions[1][0]", "should be a table with role and content"],
    ),
    "content that is null": (
        record("b", haystack_sessions=[[], [turn("user", None)], []]),  # type: ignore[arg-type]
        ["haystack_sessions[1][0].content = None: should be a text"],
    ),
    "another role": (
        record("b", haystack_sessions=[[], [turn("system", "x")], []]),
        ["haystack_sessions[1][0].role = 'system': should be user or assistant"],
    ),
    "a mark that is a text": (
        record("b", haystack_sessions=[[turn("user", "x") | {"has_answer": "true"}], [], []]),
        ["haystack_sessions[0][0].has_answer = 'true': should be true or false"],
    ),
    "a text that is no JSON": (
        record("b", haystack_sessions=[["{'role'"], [], []]),
        ["is a text, and not one of JSON"],
    ),
}
# ReMe #107 took now for a date that it could not read; others dropped the time of day.
BAD_DATES = [
    *(None, 1, "", "2023-05-30", "2023/05/30 23:40", "2023/02/30 (Tue) 23:40", "2023/05/30 (Tue) 24:00"),
    *("2023/05/30 (Xyz) 23:40", "2023/05/30 (Tue) 23:40:00", "２０２３/05/30 (Tue) 23:40"),
]
for bad in BAD_DATES:
    words = [f" = {bad!r}: should be a date such as '2023/05/30 (Tue) 23:40'"]
    RECORDS[f"question dated {bad!r}"] = (record("b", question_date=bad), ["question_date", *words])
    dates = [*record()["haystack_dates"][:2], bad]
    RECORDS[f"session dated {bad!r}"] = (record("b", haystack_dates=dates), ["haystack_dates[2]", *words])


@pytest.mark.parametrize("name", RECORDS)
def test_hostile_records_are_named_with_index_and_byte(desk: Desk, name: str) -> None:
    """M9: nothing is guessed, cut or passed over: a record that is not sound is an error with its number and byte."""
    value, words = RECORDS[name]
    desk.write([record("a"), value], indent=4)
    refused(desk, [f"record 2 at byte {SECOND}", *words])


@pytest.mark.parametrize(
    ("value", "options", "words"),
    [
        ([record()], ["--types", "multi-sesion"], ["--types = 'multi-sesion'", "no question of this type"]),
        ([record()], ["--sample", 2], ["--sample = 2: there are only 1 questions"]),
        ([record("x_abs")], [], ["no document of the chosen questions is judged"]),
        (
            [record(haystack_sessions=[[turn("user", "x")], [], []])],
            ["--granularity", "turn"],
            ["no turn is marked as evidence", "--granularity session"],
        ),
        (
            [record(haystack_sessions=[[turn("assistant", "x", True)], [], []])],
            ["--gold", "authors"],
            ["no turn of the user is marked", "Leave out --gold authors"],
        ),
    ],
)
def test_hostile_choices_leave_nothing(
    desk: Desk, value: Any, options: list[object], words: list[str]
) -> None:
    desk.write(value)
    done = desk.convert("lme.json", "-o", "set", *options)
    assert (done.code, done.out) == (2, "")
    for word in words:
        assert word in done.err
    assert desk.left() == ["lme.json"]


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_hostile_bytes_never_crash_the_converter(desk: Desk, data: st.DataObject) -> None:
    """Garbage, a sound file cut anywhere, and one with a byte or a piece changed: a set, or one error and no folder."""
    at = data.draw(st.integers(0, len(SOUND)))
    garbage = data.draw(st.binary(max_size=40))
    raw = data.draw(
        st.sampled_from(
            [garbage, SOUND[:at], SOUND[:at] + garbage + SOUND[at + 1 :], b"[" + garbage, SOUND + garbage]
        )
    )
    desk.write(raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "_HEAD", data.draw(st.sampled_from([1, 4096])))
        patch.setattr(stream, "CHUNK", data.draw(st.sampled_from([5, 64, 1 << 20])))
        done = desk.convert("lme.json", "-o", "set", "--force")
    if done.code:
        assert done.code == 2, done.err
        assert done.err.count("lme.json") == 1 and "internal error" not in done.err
        assert "set" not in desk.left() or (desk.root / "set" / "corpus.jsonl").exists()
    else:
        assert desk.core("validate", "set").code == 0


def test_hostile_endless_records_are_refused_before_memory_runs_out(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "LONGEST", 1 << 20)
    monkeypatch.setattr(stream, "CHUNK", 1 << 16)
    desk.write(b'[{"question_id": "' + b"a" * (3 << 20))
    refused(desk, ["record 1 at byte 1", "longer than 1 million characters"])
    desk.write(b'[{"a": [' + b"1, " * (1 << 20))
    refused(desk, ["record 1 at byte 1", "longer than 1 million characters"])


def test_hostile_standard_input_is_named_so(desk: Desk) -> None:
    for options in ([], ["--sample", 1]):
        done = desk.convert("-", "-o", "set", *options, data=SOUND[:-100])
        assert done.code == 2 and done.err.startswith(
            "longmemeval-convert: standard input: record 2 at byte "
        )
        assert desk.left() == []


def test_hostile_synthetic_files_cut_short_name_the_record(desk: Desk) -> None:
    text = "".join(Generator("s", 1, 3, (6, 6)).chunks())
    third = text.rindex("\n    {\n") + 5
    desk.write(text[:-50].encode())
    refused(desk, [f"record 3 at byte {third}", "the file ends after"])


def test_hostile_paths(desk: Desk) -> None:
    """A folder, nothing, a mistyped verb."""
    for words, said in (
        (["nothing.json", "-o", "set"], "nothing.json: there is no such file"),
        (["identfy", "lme.json"], "did you mean 'identify'?"),
        ([".", "-o", "set"], "cannot be read: Is a directory"),
    ):
        done = desk.convert(*words)
        assert (done.code, done.out) == (2, "") and said in done.err, done
