"""The readers: TREC and BEIR judgements, TREC runs and JSON lines; told by content, and every fault with its line."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scoring_support import (
    beir_qrels,
    cases,
    put,
    ranked_lines,
    refused,
    scored,
    trec_qrels,
    trec_run,
    values,
)

from eval_core.errors import Faults, Misuse
from eval_core.scoring.readers import read_qrels
from eval_core.scoring.readers import run as reader
from eval_core.scoring.readers import source as source_module
from eval_core.scoring.readers.source import opened

QRELS = {"q1": {"d1": 1, "d2": 0}, "q2": {"d3": 2}}
RUN = {"q1": {"d2": 2.0, "d1": 1.0}, "q2": {"d3": 0.5}}
LISTS = {"q1": ["d2", "d1"], "q2": ["d3"]}
FOUND = {"q1": {"mrr": 0.5}, "q2": {"mrr": 1.0}}

# -------------------------------------------------------------------------------------------- forms

RUN_FORMS: dict[str, str | bytes] = {
    "spaces": trec_run(RUN),
    "tabs": trec_run(RUN).replace(" ", "\t"),
    "tabs and spaces mixed": trec_run(RUN).replace(" Q0 ", "\tQ0 ").replace(" 7 ", " \t7  "),
    "columns padded": trec_run(RUN).replace(" ", "     "),
    "CRLF": trec_run(RUN, "\r\n"),
    "some lines with CRLF": trec_run(RUN).replace("\n", "\r\n", 1),
    "no last newline": trec_run(RUN).rstrip("\n"),
    "no last newline, CRLF": trec_run(RUN, "\r\n").rstrip(),
    "blank lines": "\n \n" + trec_run(RUN).replace("\n", "\n\n") + "\n\n",
    "space before and after": trec_run(RUN).replace("q", "  q").replace("\n", "  \n"),
    "the tag varies by line": trec_run(RUN).replace("tag", "one", 1),
    "byte order mark": b"\xef\xbb\xbf" + trec_run(RUN).encode(),
    "gzip": gzip.compress(trec_run(RUN).encode()),
    "gzip, byte order mark within": gzip.compress(b"\xef\xbb\xbf" + trec_run(RUN).encode()),
    "scientific notation": "q1 Q0 d2 1 2e0 t\nq1 Q0 d1 2 1.0E+0 t\nq2 Q0 d3 1 +.5 t\n",
    "infinite scores": "q1 Q0 d2 1 inf t\nq1 Q0 d1 2 -inf t\nq2 Q0 d3 1 -Infinity t\n",
    "lines of a query apart": "q1 Q0 d1 2 1.0 t\nq2 Q0 d3 1 0.5 t\nq1 Q0 d2 1 2.0 t\n",
    "JSON lines": ranked_lines(LISTS),
    "JSON lines, CRLF": ranked_lines(LISTS).replace("\n", "\r\n"),
    "JSON lines, no last newline": ranked_lines(LISTS).rstrip(),
    "JSON lines, blank lines": "\n" + ranked_lines(LISTS).replace("\n", "\n \n"),
    "JSON lines, byte order mark": b"\xef\xbb\xbf" + ranked_lines(LISTS).encode(),
    "JSON lines, gzip": gzip.compress(ranked_lines(LISTS).encode()),
    "JSON lines with more keys": '{"scores": [2.5, 1], "ids": ["d2", "d1"], "id": "q1"}\n{"id":"q2","ids":["d3"]}\n',
    "our own run": '{"schema": "run-v1", "run_id": "r"}\n'
    '{"id": "q1", "outcome": "scored", "ids": ["d2", "d1"], "latencies": [1.5]}\n'
    '{"id": "q2", "outcome": "scored", "ids": ["d3"], "latencies": []}\n',
}


@pytest.mark.parametrize("name", RUN_FORMS)
def test_a_run_is_read_in_every_form(tmp_path: Path, name: str) -> None:
    """A3: told by content, whatever the file's name."""
    assert values(scored(tmp_path, RUN_FORMS[name], trec_qrels(QRELS), ["mrr"])) == FOUND


QRELS_FORMS: dict[str, str | bytes] = {
    "TREC": trec_qrels(QRELS),
    "TREC, tabs": trec_qrels(QRELS).replace(" ", "\t"),
    "TREC, mixed white space": trec_qrels(QRELS).replace(" 0 ", "\t0  "),
    "TREC, CRLF": trec_qrels(QRELS).replace("\n", "\r\n"),
    "TREC, blank lines": "\n" + trec_qrels(QRELS).replace("\n", "\n\n"),
    "TREC, no last newline": trec_qrels(QRELS).rstrip(),
    "TREC, signs": trec_qrels(QRELS).replace(" 2\n", " +2\n"),
    "BEIR": beir_qrels(QRELS),
    "BEIR, CRLF": beir_qrels(QRELS).replace("\n", "\r\n"),
    "BEIR, blank lines": "\n" + beir_qrels(QRELS).replace("\n", "\n\n"),
    "BEIR, byte order mark": b"\xef\xbb\xbf" + beir_qrels(QRELS).encode(),
    "BEIR, gzip": gzip.compress(beir_qrels(QRELS).encode()),
}


@pytest.mark.parametrize("name", QRELS_FORMS)
def test_judgements_are_read_in_every_form(tmp_path: Path, name: str) -> None:
    found = read_qrels(put(tmp_path, "qrels", QRELS_FORMS[name]))
    assert found == QRELS
    assert list(found) == ["q1", "q2"]


def test_judgements_of_a_query_may_lie_apart_and_its_first_line_places_it(tmp_path: Path) -> None:
    found = read_qrels(put(tmp_path, "qrels", "q2 0 a 1\nq1 0 b -1\nq2 0 c 0\n"))
    assert list(found.items()) == [("q2", {"a": 1, "c": 0}), ("q1", {"b": -1})]


@given(cases(), st.sampled_from([trec_qrels, beir_qrels]))
@settings(deadline=None, max_examples=60)
def test_judgements_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory,
    case: tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]],
    write: Callable[[dict[str, dict[str, int]]], str],
) -> None:
    judged = {q: {d: max(0, g) for d, g in grades.items()} for q, grades in case[1].items()}
    path = put(tmp_path_factory.getbasetemp(), "written", write(judged))
    assert read_qrels(path) == judged


# -------------------------------------------------------------------------------------------- faults

RUN_FAULTS: dict[str, tuple[str | bytes, str]] = {
    # Case 18: a malformed line is never taken.
    "five columns": (
        "q1 Q0 d1 1 2.0 t\nq1 Q0 d2 1.0 t\n",
        "run:2: expected 6 columns (query Q0 document rank score",
    ),
    "seven columns": ("q1 Q0 d1 1 2.0 t\nq1 Q0 d 2 2 1.0 t\n", "run:2: expected 6 columns"),
    # One column too few, then one too many: in number they make up for each other, and as numbers, too.
    "two faults that make up for each other": (
        "q Q0 17 1 t\nq Q0 23 5 2 3.0 t\n",
        "run:1: expected 6 columns",
    ),
    "an empty rank": ("q1 Q0 d1 1 2.0 t\nq1 Q0 d2  1.0 t\n", "run:2: expected 6 columns"),
    **{
        f"other white space, {space!r}, in an id": (
            f"q1 Q0 d1 1 2.0 t\nq1 Q0 d{space}2 2 1.0 t\n",
            "run:2: expected 6 columns",
        )
        for space in "\t\r\v\f"
    },
    "a space in an id, with tabs": (
        "q1\tQ0\td1\t1\t2.0\tt\nq1\tQ0\td 2\t2\t1.0\tt\n",
        "run:2: expected 6 columns",
    ),
    "not a number": ("q1 Q0 d1 1 high t\n", "run:1: score 'high' should be a number"),
    "a number as Python writes it": ("q1 Q0 d1 1 1_0 t\n", "run:1: score '1_0' should be a number"),
    "digits that are not ASCII": ("q1 Q0 d1 1 ١ t\n", "run:1: score '١' should be a number"),
    "hexadecimal": ("q1 Q0 d1 1 0x1p3 t\n", "run:1: score '0x1p3' should be a number"),
    "NaN": (
        "q1 Q0 d1 1 2.0 t\nq1 Q0 d2 1 NaN t\n",
        "run:2: score 'NaN' should be a number such as 12.5; mend the",
    ),
    "-nan": ("q1 Q0 d1 1 -nan t\n", "run:1: score '-nan' should be a number"),
    "NaN among infinities": ("q1 Q0 d1 1 inf t\nq1 Q0 d2 1 -inf t\nq1 Q0 d3 1 nan t\n", "run:3: score 'nan'"),
    "NaN for a query that is not judged": ("q1 Q0 d1 1 1 t\nq9 Q0 d2 1 nan t\n", "run:2: score 'nan'"),
    "NaN of a repeat": ("q1 Q0 d1 1 1 t\nq1 Q0 d1 1 nan t\n", "run:2: score 'nan'"),
    "in a file with its queries apart": (
        "q1 Q0 d1 1 1 t\nq2 Q0 d1 1 1 t\nq1 Q0 d2 1 x t\n",
        "run:3: score 'x' should be a number",
    ),
    "not UTF-8": (b"q1 Q0 d1 1 2.0 t\nq1 Q0 d\xff 1 1.0 t\n", "run:2: not UTF-8: byte 0xff"),
    "UTF-16": (
        "q1 Q0 d1 1 2.0 t\n".encode("utf-16"),
        "run: is UTF-16, or not a text at all; save it as UTF-8",
    ),
    "UTF-16 without a mark": (
        "q1 Q0 d1 1 2.0 t\n".encode("utf-16-be"),
        "run: is UTF-16, or not a text at all",
    ),
    "JSON, UTF-16": (ranked_lines(LISTS).encode("utf-16"), "run: is UTF-16, or not a text at all"),
    "carriage returns alone": (
        "q1 Q0 d1 1 2.0 t\rq1 Q0 d2 1 1.0 t\r",
        "run: its lines end with CR alone; save it with LF or CRLF",
    ),
    "JSON, carriage returns alone": (
        ranked_lines(LISTS).replace("\n", "\r"),
        "run: its lines end with CR alone",
    ),
    "judgements, TREC": (trec_qrels(QRELS), "run: holds judgements and not a run"),
    "judgements, BEIR": (beir_qrels(QRELS), "run: holds judgements and not a run"),
    "judgements further down": ("q1 Q0 d1 1 2.0 t\nq1 0 d1 1\n", "are --run and --qrels exchanged?"),
    "empty": ("", "run: holds no ranking"),
    "blank": ("\n \n", "run: holds no ranking"),
    "one JSON list": ('["d1"]\n', "run: is a list in JSON"),
    "a table without ids": ('{"q1": 1.0}\n', "run:1: has no 'id'; its keys are 'q1'"),
    "a broken table": ('{"id": "q1", "ids": [\n"d1"]}\n', "run:1: not JSON: "),
    "a broken line": ('{"id": "q1", "ids": ["d1"]}\n{"id": "q2", "ids": [\n', "run:2: not JSON: "),
    "a list as a line": (
        '{"id": "q1", "ids": ["d1"]}\n[1]\n',
        'run:2: expected {"id": …, "ids": […]}, not a list',
    ),
    "more behind a table": ('{"id": "q1", "ids": ["d1"]} {}\n', "run:1: not JSON: Extra data at column"),
    "no ids": ('{"id": "q1", "documents": []}\n', "run:1: has no 'ids'; its keys are 'id', 'documents'"),
    "ids is a text": ('{"id": "q1", "ids": "d1"}\n', "run:1: ids 'd1' should be a list"),
    "a fraction as an id": (
        '{"id": "q1", "ids": ["d1", 1.5]}\n',
        "run:1: ids holds 1.5, which is not a document id",
    ),
    "null as an id": (
        '{"id": "q1", "ids": ["d1", null]}\n',
        "run:1: ids holds None, which is not a document id",
    ),
    "true as an id": ('{"id": "q1", "ids": [true]}\n', "run:1: ids holds True, which is not a document id"),
    "a list as an id": (
        '{"id": "q1", "ids": [["d1"]]}\n',
        "run:1: ids holds ['d1'], which is not a document id",
    ),
    "an empty id": ('{"id": "q1", "ids": ["d1", ""]}\n', "run:1: ids holds an empty document id"),
    "true as a query": ('{"id": true, "ids": []}\n', "run:1: id True should be a text"),
    "NaN in JSON": (
        '{"id": "q1", "ids": ["d1"], "scores": [NaN]}\n',
        "run:1: not JSON: NaN is not a JSON number",
    ),
    "a key twice": ('{"id": "q1", "ids": ["d1"], "ids": []}\n', "run:1: not JSON: key 'ids' is given twice"),
    "a lone surrogate": ('{"id": "q1", "ids": ["\\ud800"]}\n', "run:1: holds a lone surrogate escape"),
    "a lone surrogate beside a number": (
        '{"id": "q1", "ids": [1, "\\ud800"]}\n',
        "run:1: holds a lone surrogate escape",
    ),
    "nested deeply": (f'{{"id": "q1", "ids": [{"[" * 400}{"]" * 400}]}}\n', "which is not a document id"),
    "nested more deeply": (f'{{"id": "q1", "ids": [{"[" * 3000}{"]" * 3000}]}}\n', "run:1: "),
    "a query twice": (
        ranked_lines(LISTS) + ranked_lines({"q1": []}),
        "run:3: query 'q1' again (first at line 1)",
    ),
    "JSON, not UTF-8": (b'{"id": "q1", "ids": ["\xff"]}\n', "run:1: not UTF-8: byte 0xff"),
    "another schema": (
        '{"schema": "report-v1"}\n',
        "run:1: schema 'report-v1' is not that of a run; expected 'run-v1'",
    ),
    "an outcome that is none": (
        '{"schema": "run-v1"}\n{"id": "q1", "outcome": "done", "ids": []}\n',
        "run:2: outcome 'done' should be one of scored, errored, unscored, unscorable",
    ),
    "gzip cut short": (gzip.compress(trec_run(RUN).encode() * 99)[:-12], "run: the gzip file is cut short"),
    "gzip damaged": (b"\x1f\x8b\x08\x00garbage that is no deflate", "run: is not a whole gzip file"),
    "not gzip after all": (b"\x1f\x8bno", "run: the gzip file is cut short"),
}


@pytest.mark.parametrize("name", RUN_FAULTS)
def test_a_run_that_is_none_is_refused_with_its_line(tmp_path: Path, name: str) -> None:
    """M7: exit 2, never a value."""
    content, expected = RUN_FAULTS[name]
    assert expected in refused(tmp_path, content, trec_qrels(QRELS))


QRELS_FAULTS: dict[str, tuple[str | bytes, str]] = {
    # Case 17: 0.5 is never cut to 0.
    "a fraction": ("q1 0 d1 1\nq1 0 d2 0.5\n", "qrels:2: grade '0.5' should be a whole number"),
    "a fraction of nothing": ("q1 0 d1 .0\n", "qrels:1: grade '.0' should be a whole number"),
    "as Python writes it": ("q1 0 d1 1_0\n", "qrels:1: grade '1_0' should be a whole number"),
    "not ASCII": ("q1 0 d1 ١\n", "qrels:1: grade '١' should be a whole number"),
    "a word": ("q1 0 d1 yes\n", "qrels:1: grade 'yes' should be a whole number"),
    "endless": (f"q1 0 d1 {'9' * 5000}\n", "should be a whole number of at most 9 digits"),
    "three columns": (
        "q1 0 d1 1\nq1 d2 1\n",
        "qrels:2: expected 4 columns (query 0 document grade), found 3",
    ),
    "BEIR without its header": (
        "q1\td1\t1\n",
        "BEIR judgements begin with the header 'query-id\\tcorpus-id\\tscore'",
    ),
    "five columns": ("q1 0 d 1 1\n", "qrels:1: expected 4 columns"),
    "two faults that make up for each other": ("q 0 17 1 5\nq 0 1\n", "qrels:1: expected 4 columns"),
    "an empty column": ("q  d 1\nq 0 e 1\n", "qrels:1: expected 4 columns"),
    # Case 15: a repeat would be counted twice in the ideal.
    "a pair judged twice": (
        "q1 0 d1 1\nq1 0 d2 1\nq1 0 d1 1\n",
        "qrels:3: judges 'd1' for 'q1' again (first at line 1)",
    ),
    "apart": ("q1 0 d1 1\nq2 0 d1 1\nq1 0 d1 2\n", "qrels:3: judges 'd1' for 'q1' again (first at line 1)"),
    "BEIR, a pair judged twice": (
        beir_qrels(QRELS) + "q2\td3\t2\n",
        "qrels:5: judges 'd3' for 'q2' again (first at line 4)",
    ),
    "BEIR, a fraction": (
        "query-id\tcorpus-id\tscore\nq1\td1\t-0.5\n",
        "qrels:2: grade '-0.5' should be a whole number of at most 9 digits; below 1 is not relevant",
    ),
    "BEIR, two fields": (
        "query-id\tcorpus-id\tscore\nq1\td1\n",
        "qrels:2: expected 3 fields with tabs between",
    ),
    "BEIR, an empty id": ("query-id\tcorpus-id\tscore\nq1\t\t1\n", "qrels:2: an id is empty"),
    "not UTF-8": (b"q1 0 d\xe9 1\n", "qrels:1: not UTF-8: byte 0xe9"),
    "a run": (trec_run(RUN), "qrels: holds a run and not judgements"),
    "JSON lines": (ranked_lines(LISTS), "qrels: holds a run and not judgements"),
    "UTF-16": ("q1 0 d1 1\n".encode("utf-16"), "qrels: is UTF-16, or not a text at all; save it as UTF-8"),
    "carriage returns alone": ("q1 0 d1 1\rq1 0 d2 1\r", "qrels: its lines end with CR alone"),
    "BEIR, carriage returns alone": (
        beir_qrels(QRELS).replace("\n", "\r"),
        "qrels: its lines end with CR alone",
    ),
    # Found while measuring peers, 9: never nan and exit 0.
    "empty": ("", "qrels: holds no judgements"),
    "a header alone": ("query-id\tcorpus-id\tscore\n", "qrels: holds no judgements"),
}


@pytest.mark.parametrize("name", QRELS_FAULTS)
def test_judgements_that_are_none_are_refused_with_their_line(tmp_path: Path, name: str) -> None:
    content, expected = QRELS_FAULTS[name]
    assert expected in refused(tmp_path, trec_run(RUN), content)


@pytest.mark.parametrize(
    ("run", "qrels", "more"),
    [
        ("q1 Q0 d1 x\n" * 20, "q1 0 d1 1\n", ""),
        ("q1 Q0 d1 x\n" * 523, "q1 0 d1 1\n", "503 more are not listed; "),
        ('{"id": "q1"}\n' * 24, "q1 0 d1 1\n", "4 more are not listed; "),
        (trec_run(RUN), "q1 0 x\n" * 21, "1 more are "),
    ],
)
def test_twenty_faults_are_listed_and_the_others_counted(
    tmp_path: Path, run: str, qrels: str, more: str
) -> None:
    with pytest.raises(Faults) as caught:
        scored(tmp_path, run, qrels)
    assert len(caught.value.faults) == 20
    assert f"20 faults; {more}" in str(caught.value)
    assert str(caught.value).endswith("nothing was scored.")


@pytest.mark.parametrize("which", ["run", "qrels"])
def test_what_is_no_file_is_refused(tmp_path: Path, which: str) -> None:
    """A pipe would be waited for, a device would never end."""
    paths = {"run": put(tmp_path, "run", trec_run(RUN)), "qrels": put(tmp_path, "qrels", trec_qrels(QRELS))}
    (tmp_path / "set" / "qrels").mkdir(parents=True)
    put(tmp_path / "set" / "qrels", "test.tsv", beir_qrels(QRELS))
    os.mkfifo(tmp_path / "pipe")
    for name, told in {
        "absent": f"no such {which} file",
        "set": "is a folder",
        "pipe": "a pipe, a socket or a device, and not a file",
        "/dev/zero": "a pipe, a socket or a device",
    }.items():
        with pytest.raises(Misuse, match=told) as caught:
            score(**{**paths, which: tmp_path / name})
        assert caught.value.exit_code == 2
    with pytest.raises(Misuse, match=r"name a \w+ file, such as .*set/qrels/test.tsv"):
        score(**{**paths, which: tmp_path / "set"})


def score(run: Path, qrels: Path) -> None:
    from eval_core.scoring.metrics import parse
    from eval_core.scoring.score import score_files

    score_files(run, qrels, [parse("mrr")])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path, "run", trec_run(RUN))
    path.chmod(0)
    with pytest.raises(Misuse, match="cannot be read: Permission denied"):
        score(path, put(tmp_path, "qrels", trec_qrels(QRELS)))


# -------------------------------------------------------------------------------------------- blocks

Expected = list[tuple[bytes, dict[bytes, float]]]


def blocks(path: Path) -> Expected:
    with opened(path, "run") as source:
        return [(block.query, block.scores) for block in reader.grouped(source)]


@given(
    st.lists(
        st.tuples(st.sampled_from(["q", "q1", "q10", "q1\u00e9", "Q0"]), st.integers(1, 9)),
        max_size=5,
        unique_by=lambda p: p[0],
    ),
    st.integers(1, 90),
    st.sampled_from(["\n", "\r\n", "\n\n", "\n \t\n"]),
    st.booleans(),
)
@settings(deadline=None, max_examples=150)
def test_blocks_are_found_wherever_the_file_is_cut(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[tuple[str, int]], chunk: int, end: str, last: bool
) -> None:
    """Queries that are beginnings of one another, read some bytes at a time."""
    run = {q: {f"d{n}": float(-n) for n in range(size)} for q, size in sizes}
    content = trec_run(run, end)
    path = put(tmp_path_factory.getbasetemp(), "cut", content if last else content.rstrip())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "CHUNK", chunk)
        found = blocks(path)
    assert found == [(q.encode(), {d.encode(): s for d, s in scores.items()}) for q, scores in run.items()]


def slowly(query: bytes, lines: bytes) -> reader.Block | None:
    try:
        return reader._slow(query, lines)
    except (reader.Malformed, reader.Ungrouped):
        return None


REGULAR = b"".join(b"q1 Q0 d%d %d %.2f run\n" % (n * 7 % 11, n, 9 - n / 2) for n in range(6))


#: What is put into a block, anywhere.
PIECES = [
    *(b"", b" ", b"  ", b"\n", b"\n\n", b"\t", b"\r", b"\v", b"\f", b"\x1c", b"\x00", b"\xff", "é".encode()),
    *(b"_", b"n", b"N", b"nan", b"inf", b"-", b"+", b"e", b"0", b".", b" 1", b"q2"),
    *(b" run\nq1 Q0 ", b"q1 Q0 ", b" run\n", b"\nq1"),
]


def test_a_usual_block_is_read_fast() -> None:
    """Or the next test would compare nothing."""
    for lines in (
        REGULAR,
        REGULAR.replace(b" ", b"\t"),
        REGULAR.replace(b"\n", b"\r\n"),
        REGULAR[: REGULAR.index(b"\n") + 1],
        REGULAR.replace(b" 1 8.50", b" 9 8.50"),
        b"".join(reversed(REGULAR.splitlines(keepends=True))),
    ):
        found = reader._fast(b"q1", lines)
        assert found is not None
        assert found == slowly(b"q1", lines)


@given(
    st.lists(
        st.tuples(
            st.integers(0, len(REGULAR)),
            st.integers(0, 3),
            st.sampled_from(PIECES),
        ),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([b" ", b"\t"]),
)
@settings(deadline=None, max_examples=1500)
def test_whatever_is_done_to_a_block_the_fast_way_takes_it_as_the_slow_one_or_leaves_it(
    edits: list[tuple[int, int, bytes]], space: bytes
) -> None:
    """The fast way never takes what a reading line by line would not."""
    lines = REGULAR.replace(b" ", space)
    for place, cut, new in edits:
        lines = lines[:place] + new + lines[place + cut :]
    if not lines.endswith(b"\n"):
        lines += b"\n"
    query = (lines.split(None, 1) or [b""])[0]
    if not lines.split(b"\n", 1)[0].split():
        return
    found = reader._fast(query, lines)
    if found is not None:
        assert found == slowly(query, lines)


def test_a_file_grouped_by_query_is_never_held(tmp_path: Path) -> None:
    """40 times the file takes no more memory: one query at a time."""
    import tracemalloc

    def peak(queries: int) -> int:
        content = "".join(f"q{q} Q0 d{n} {n} {200 - n}.0 run\n" for q in range(queries) for n in range(200))
        path = put(tmp_path, "large", content)
        tracemalloc.start()
        try:
            with opened(path, "run") as source:
                for _ in reader.grouped(source):
                    pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "CHUNK", 1 << 14)
        assert peak(800) < peak(20) * 2


# -------------------------------------------------------------------------------------------- several processes


def test_a_run_shared_among_processes_scores_the_same(tmp_path: Path) -> None:
    """Parts end between queries; every count and rank is the same."""
    from eval_core.scoring import shared

    run = {f"q{q}": {f"d{n}": float(n * q % 7) for n in range(20)} for q in range(30)}
    qrels = {f"q{q}": {f"d{q % 20}": 1, "d3": 2} for q in range(3, 40)}
    own = '{"schema": "run-v1"}\n' + "".join(
        json.dumps({"id": q, "outcome": "errored" if q == "q29" else "scored", "ids": [*ids, "d1"]}) + "\n"
        for q, ids in run.items()
    )
    for content, kind in (
        (trec_run(run), "trec"),
        (ranked_lines({q: list(s) for q, s in run.items()}), "jsonl"),
        (own, "jsonl"),
    ):
        alone = scored(tmp_path, content, trec_qrels(qrels), processes=1)
        assert len(alone.missing) == (0 if content == own else 10)
        for processes in (2, 3, 7):
            spans = shared.parts(tmp_path / "run", kind, processes)
            assert len(spans) == processes
            raw = content.encode()
            for start, _ in spans[1:]:
                assert raw[:start].splitlines()[-1].split()[0] != raw[start:].split()[0] or kind == "jsonl"
                assert raw[start - 1 : start] == b"\n"
            assert scored(tmp_path, content, trec_qrels(qrels), processes=processes) == alone
    assert alone.left_out == [f"q{q}" for q in range(29, 40)]
    assert alone.duplicates == 30


@pytest.mark.parametrize("processes", [1, 2, 4])
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("q3 Q0 d9 1 9.5 t\n", None),  # a query again, far from its other lines
        ("q29 Q0 x 1 nan t\n", "run:301: score 'nan'"),
        ("q30 Q0 x\n", "run:301: expected 6 columns"),
    ],
)
def test_what_is_unusual_in_a_part_is_told_as_if_it_were_whole(
    tmp_path: Path, processes: int, line: str, expected: str | None
) -> None:
    run = {f"q{q}": {f"d{n}": float(-n) for n in range(10)} for q in range(30)}
    qrels = trec_qrels({"q3": {"d9": 1}, "q4": {"d1": 1}})
    if expected is None:
        found = scored(tmp_path, trec_run(run) + line, qrels, ["mrr"], processes=processes)
        assert values(found) == {"q3": {"mrr": 1.0}, "q4": {"mrr": 0.5}}
        assert found.duplicates == 1
    else:
        with pytest.raises(Faults) as caught:
            scored(tmp_path, trec_run(run) + line, qrels, ["mrr"], processes=processes)
        assert str(caught.value.faults[0]).replace(f"{tmp_path}/", "").startswith(expected)


def test_one_query_cannot_be_parted_and_compressed_runs_are_not(tmp_path: Path) -> None:
    from eval_core.scoring import shared

    one = trec_run({"q1": {f"d{n}": float(n) for n in range(50)}})
    assert len(shared.parts(put(tmp_path, "one", one), "trec", 4)) == 1
    many = trec_run({f"q{q}": {"d": 1.0} for q in range(50)})
    assert len(shared.parts(put(tmp_path, "gz", gzip.compress(many.encode())), "trec", 4)) == 1
    assert len(shared.parts(put(tmp_path, "many", many), "trec")) == 1  # too small to be worth it


@pytest.mark.parametrize("line", ['{"id": "q01", "ids": [ 5 ]}', '{ "id":"q01", "ids":[\r5 ] }'])
def test_a_first_line_of_json_with_six_words_is_json(tmp_path: Path, line: str) -> None:
    """Its fifth word is a number, as in a run's line; and CR is white space of JSON."""
    found = scored(tmp_path, line + "\n" + '{"id": "q02", "ids": [7]}\n', "q01 0 5 1\nq02 0 5 1\n", ["mrr"])
    assert values(found) == {"q01": {"mrr": 1.0}, "q02": {"mrr": 0.0}}


def test_a_query_id_that_begins_with_a_brace_is_no_json(tmp_path: Path) -> None:
    assert values(scored(tmp_path, '{"q Q0 d 1 0.5 t\n', '{"q 0 d 1\n', ["mrr"])) == {'{"q': {"mrr": 1.0}}


def test_lines_are_the_same_wherever_the_chunks_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"one\n\ntwo and more\nthree"
    path = put(tmp_path, "run", content)
    whole = list(enumerate(content.split(b"\n"), 1))
    for size in range(1, len(content) + 2):
        with opened(path, "run") as source:
            read = source.read
            monkeypatch.setattr(source, "read", lambda size=size, read=read: read(size))
            assert list(source.lines()) == whole


class Endless:
    """A file without a newline, which counts what is copied of it."""

    def __init__(self, chunks: int) -> None:
        self.left = chunks

    def __call__(self, size: int = 0) -> bytes:
        self.left -= 1
        return b"x" * 1000 if self.left >= 0 else b""


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (b"x" * 5000, "run:1: "),
        (b"q1 Q0 d1 1 2.0 t\n" + b"x" * 5000 + b"\n", "run: "),
        (b'{"id":"q1","ids":["d1"]}\n' + b"[" * 5000, "run:2: "),
    ],
    ids=["the first", "of a TREC run", "of JSON lines"],
)
def test_a_line_that_goes_on_and_on_is_no_line_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, where: str
) -> None:
    """It is refused as soon as it is too long, and not held."""
    for module in (source_module, reader):
        monkeypatch.setattr(module, "LONGEST", 2000)
        monkeypatch.setattr(module, "CHUNK", 500)
    read = source_module.Source.read
    monkeypatch.setattr(source_module.Source, "read", lambda self, size=500: read(self, min(size, 500)))
    told = refused(tmp_path, content, trec_qrels(QRELS))
    assert told.startswith(f"{where}a line of more than ")
    assert told.endswith(" MB, which cannot be one of rankings or judgements")


def test_a_long_line_is_put_together_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time grows with its length and not with the square of it: 32 MB in chunks of 1 kB, copied twice, not 16,000
    times."""
    path = put(tmp_path, "run", b"")
    with opened(path, "run") as source:
        monkeypatch.setattr(source, "read", Endless(32_000))
        began = time.process_time()
        ((number, line),) = source.lines()
    assert (number, len(line)) == (1, 32_000_000)
    assert time.process_time() - began < 5
