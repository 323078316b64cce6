"""Records are read the same whatever the layout and however the bytes come, and every error has its place."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lme_support import record

from longmemeval_convert import stream
from longmemeval_convert.stream import Records, Source

VALUE = [
    record("a", question='naïve 20 °C 😀 {\n"}] \\ '),
    record("b"),
    record("c", extra=[[], {}, None, 1.5]),
]

LAYOUTS: dict[str, bytes] = {
    "one line": json.dumps(VALUE).encode(),
    "no spaces": json.dumps(VALUE, separators=(",", ":")).encode(),
    "indent 0": json.dumps(VALUE, indent=0).encode(),
    "indent 4": json.dumps(VALUE, indent=4).encode(),
    "tabs": json.dumps(VALUE, indent="\t").encode(),
    "CRLF": json.dumps(VALUE, indent=4).replace("\n", "\r\n").encode(),
    "CR": json.dumps(VALUE, indent=4).replace("\n", "\r").encode(),
    "raw UTF-8": json.dumps(VALUE, indent=4, ensure_ascii=False).encode(),
    "byte order mark": b"\xef\xbb\xbf" + json.dumps(VALUE, indent=2, ensure_ascii=False).encode(),
    "a record a line": b"[\n" + b",\n".join(json.dumps(one).encode() for one in VALUE) + b"\n]\n",
    "comma first": b"\n  ["
    + b"\n  , ".join(json.dumps(one, indent=2).encode() for one in VALUE)
    + b"\n\n  ] \t",
    # The lines that close a record do not stand where the line that opened it did.
    "mixed": b"[\n    " + b",\n        ".join(json.dumps(one).encode() for one in VALUE) + b"]",
}


def read(data: bytes) -> list[tuple[Any, dict[str, Any]]]:
    return list(Records(Source("lme.json", io.BufferedReader(io.BytesIO(data)), len(data), None)))


@pytest.mark.parametrize("chunk", [1, 7, 100, 1 << 20])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_records(
    layout: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "CHUNK", chunk)
    monkeypatch.setattr(stream, "_HEAD", 1)  # or all of it would be read at once
    data = LAYOUTS[layout]
    found = read(data)
    assert [value for _, value in found] == VALUE
    for number, (place, _) in enumerate(found, 1):
        assert place.number == number
        begins = data[place.byte :].decode()
        assert begins[0] == "{" and begins[1:].lstrip().startswith('"question_id"')


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.dictionaries(
            st.text(max_size=5),
            st.recursive(
                st.none()
                | st.booleans()
                | st.integers()
                | st.floats(allow_nan=False, allow_infinity=False)
                | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
                lambda inner: (
                    st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
                ),
                max_leaves=8,
            ),
            max_size=4,
        ),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([None, 0, 1, 4, "\t"]),
    st.booleans(),
    st.integers(1, 60),
)
def test_any_array_of_tables_is_read_as_json_reads_it(
    value: Any, indent: Any, ascii_: bool, chunk: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "CHUNK", chunk)
        patch.setattr(stream, "_HEAD", 1)
        try:
            data = json.dumps(value, indent=indent, ensure_ascii=ascii_).encode()
        except UnicodeEncodeError:
            return
        assert [one for _, one in read(data)] == json.loads(data)


def test_a_record_is_parsed_little_more_than_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where records begin on lines of their own, and where all is one line."""
    monkeypatch.setattr(stream, "CHUNK", 1000)
    many = [record(f"{number:08x}", question="word " * 700) for number in range(60)]
    parsed = 0

    class Counting:
        @staticmethod
        def raw_decode(text: str, at: int) -> tuple[Any, int]:
            nonlocal parsed
            try:
                value, end = json.JSONDecoder().raw_decode(text, at)
            except json.JSONDecodeError:
                parsed += len(text) - at
                raise
            parsed += end - at
            return value, end

    monkeypatch.setattr(stream, "DECODER", Counting)
    for indent, least in ((4, 1.05), (None, 1.6)):
        parsed = 0
        data = json.dumps(many, indent=indent).encode()
        assert len(read(data)) == 60
        assert parsed < least * len(data)
