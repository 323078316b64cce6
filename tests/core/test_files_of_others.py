"""Rankings and judgements as others write them: one rule of grades and columns, and forms recognised before reading."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import pytrec_eval
from scoring_support import put, ranked_lines, refused, scored, trec_qrels, trec_run, values

from eval_core.errors import Misuse
from eval_core.scoring.metrics import parse
from eval_core.scoring.readers import read_qrels
from eval_core.scoring.score import score_files
from eval_core.sets import load

RUN = {"q1": {"d2": 2.0, "d1": 1.0}, "q2": {"d3": 0.5}}
QRELS = {"q1": {"d1": 1, "d2": 0}, "q2": {"d3": 2}}
FOUND = {"q1": {"mrr": 0.5}, "q2": {"mrr": 1.0}}

# -------------------------------------------------------------------------------------------- grades and columns

#: A judgement of d1 for q1 with its grade as it is written, behind one that is sound; and where a fault is told.
GRADED: dict[str, tuple[str, str]] = {
    "TREC": ("q0 0 d1 1\nq1 0 d1 %s\n", "qrels:2: "),
    "BEIR": ("query-id\tcorpus-id\tscore\nq0\td1\t1\nq1\td1\t%s\n", "qrels:3: "),
    "JSON lines": (
        '{"query-id": "q0", "corpus-id": "d1", "score": 1}\n'
        '{"query-id": "q1", "corpus-id": "d1", "score": %s}\n',
        "qrels:2: ",
    ),
    "JSON": ('{"q0": {"d1": 1},\n "q1": {"d1": %s}}', "qrels: query 'q1': the grade of 'd1' is "),
}


@pytest.mark.parametrize("form", GRADED)
@pytest.mark.parametrize(
    ("written", "grade"),
    [
        *(("0", 0), ("2", 2), ("-1", -1), ("1.0", 1), ("-2.00", -2), ("0.0", 0), ("123456789", 123456789)),
        *(("0.5", None), ("1.01", None), ("-0.5", None), ("1e0", None), ("1234567890", None)),
    ],
)
def test_round2_f1_a_grade_is_the_same_in_every_form(
    tmp_path: Path, form: str, written: str, grade: int | None
) -> None:
    """F1: below 0 is read and not relevant, 1.0 is 1, and 0.5 is refused at its place, never cut."""
    if form == "JSON" and written == "1e0":
        grade = 1  # a number of JSON has a value, and no spelling
    if form == "JSON lines" and written == "1e0":
        grade = 1
    text, place = GRADED[form]
    path = put(tmp_path, "qrels", text % written)
    if grade is not None:
        assert read_qrels(path) == {"q0": {"d1": 1}, "q1": {"d1": grade}}
        return
    told = refused(tmp_path, trec_run(RUN), text % written)
    assert place in told
    assert "a whole number of at most 9 digits; below 1 is not relevant" in told


def test_round2_f1_a_set_takes_the_same_grades(tmp_path: Path) -> None:
    """F1: a folder of BEIR's with grades -1 and 1.0 is a set; what is below 0 is judged and not relevant, as 0 is."""
    (tmp_path / "qrels").mkdir()
    put(tmp_path, "corpus.jsonl", '{"_id": "a", "text": "one"}\n{"_id": "b", "text": "two"}\n')
    put(tmp_path, "queries.jsonl", '{"_id": "q", "text": "which?"}\n')
    put(tmp_path / "qrels", "test.tsv", "query-id\tcorpus-id\tscore\nq\ta\t1.0\nq\tb\t-1\n")
    assert load(tmp_path).judgements == {"q": {"a": 1, "b": 0}}
    put(tmp_path / "qrels", "test.tsv", "query-id\tcorpus-id\tscore\nq\ta\t0.5\n")
    with pytest.raises(Misuse, match=r"test.tsv:2: grade '0.5' should be a whole number"):
        load(tmp_path)


TAGS = ("my run", "a b c d", "v2 final", "t 1 2 3", "é ü")


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("space", [" ", "\t", "  "])
@pytest.mark.parametrize("varied", [False, True])
def test_round2_f1_a_run_tag_may_have_several_words(
    tmp_path: Path, tag: str, space: str, varied: bool
) -> None:
    """F1: trec_eval reads the columns before the tag and one word of it, and ignores the rest of the line."""
    text = trec_run(RUN).replace("tag\n", f"{tag}\n").replace(" ", space)
    if varied:
        text = text.replace(f"{tag.replace(' ', space)}\n", "other\n", 1)
    assert values(scored(tmp_path, text, trec_qrels(QRELS), ["mrr"])) == FOUND


@pytest.mark.parametrize(
    "line",
    [
        "q1 Q0 d 2 2 1.0 t",  # an id with a space: its rank would be taken for its score
        "q1\tQ0\td 2\t2\t1.0\tt",
        "my q1 Q0 d2 2 1.0 t",
        "q1 Q0 a 1 2 2 1.0 t",
        "q1 Q0 d2 2 1.0 2 words",  # cannot be told from those
        "q1 Q0 d2 2 1.0 t\rq1 Q0 d3 3 0.5 t",
    ],
)
def test_round2_f1_an_id_with_a_space_is_not_taken_for_a_tag(tmp_path: Path, line: str) -> None:
    """F1: a number where the tag begins means that the columns are shifted: refused, with its line."""
    told = refused(tmp_path, f"q1 Q0 d1 1 2.0 t\n{line}\n", trec_qrels(QRELS))
    assert "run:2: expected 6 columns (query Q0 document rank score tag), found " in told
    assert "is there a space in an id?" in told


COMMENTED = """\
# a run of mine: 2 queries
  # with BM25, k1 = 1.2
q1 Q0 d2 7 2.0 tag
#q1 Q0 d9 1 99.0 tag
q1 Q0 d1 7 1.0 tag
# 1 2 3 4.0 t
q2 Q0 d3 7 0.5 tag
#
"""


@pytest.mark.parametrize("processes", [1, 3])
def test_round2_f1_comments_are_skipped(tmp_path: Path, processes: int) -> None:
    """F1: what begins with # is a comment, before, between and in the lines of a query, as in trec_eval; in runs and
    judgements of every form of lines."""
    qrels = "# mine\n" + trec_qrels(QRELS).replace("q2", "#q1 0 d2 1\n# 0 d 1\nq2")
    found = scored(tmp_path, COMMENTED, qrels, ["mrr"], processes=processes)
    assert (values(found), found.unjudged, found.missing) == (FOUND, 0, [])
    lists = "# mine\n" + ranked_lines({"q1": ["d2", "d1"], "q2": ["d3"]}).replace("\n", "\n# {\n")
    assert values(scored(tmp_path, lists, qrels, ["mrr"], processes=processes)) == FOUND


def test_round2_f1_a_query_id_that_begins_with_a_hash(tmp_path: Path) -> None:
    """F1: between tabs, as our own sets have it, and in JSON it is a query's id; in TREC's columns it is a comment."""
    run = ranked_lines({"#1": ["d1"]})
    beir = "# mine\nquery-id\tcorpus-id\tscore\n#1\td1\t1\n# a remark\n"
    for qrels in (beir, '{"#1": {"d1": 1}}', '{"query-id": "#1", "corpus-id": "d1", "score": 1}\n'):
        assert values(scored(tmp_path, run, qrels, ["mrr"])) == {"#1": {"mrr": 1.0}}
    assert refused(tmp_path, run, "#1 0 d1 1\n").startswith("qrels: holds no judgements")


def test_round2_f1_many_queries_with_comments_between_are_equal_to_trec_eval(tmp_path: Path) -> None:
    """F1: comments, a tag of two words, negative grades: each query as trec_eval has it, in one process or several."""
    run = {f"q{q}": {f"d{n}": float(n * q % 7) for n in range(20)} for q in range(1, 40)}
    qrels = {q: {f"d{n}": (n * len(q)) % 4 - 1 for n in range(9)} for q in run}
    text = "".join(f"# {q}\n" + trec_run({q: scores}).replace("tag", "my tag") for q, scores in run.items())
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"map", "ndcg"}).evaluate(run)
    for processes in (1, 4):
        found = values(scored(tmp_path, text, trec_qrels(qrels), ["map", "ndcg"], processes=processes))
        assert found.keys() == theirs.keys()
        for query, value in theirs.items():
            assert found[query] == pytest.approx(value, abs=1e-12)


# -------------------------------------------------------------------------------------------- forms

NESTED = json.dumps(RUN)
JUDGED = json.dumps(QRELS)

READ_RUNS: dict[str, str | bytes] = {
    "nested JSON": NESTED,
    "nested JSON over lines": json.dumps(RUN, indent=2),
    "nested JSON, indented from the second level": '{"q1": {\n"d2": 2, "d1": 1},\n"q2": {"d3": 1}}',
    "nested JSON, a table a query": "".join(json.dumps({q: scores}) + "\n" for q, scores in RUN.items()),
    "nested JSON of ranked lists": json.dumps({q: list(scores) for q, scores in RUN.items()}),
    "nested JSON, byte order mark, CRLF": b"\xef\xbb\xbf"
    + json.dumps(RUN, indent=1).replace("\n", "\r\n").encode(),
    "nested JSON, escapes": '{"q1": {"d\\u0032": 2, "d1": 1}, "q2": {"d3": 1}}',
}
READ_QRELS: dict[str, str | bytes] = {
    "nested JSON": JUDGED,
    "nested JSON over lines": json.dumps(QRELS, indent=2),
    "JSON lines as BEIR's": "".join(
        json.dumps({"query-id": q, "corpus-id": d, "score": float(grade)}) + "\n"
        for q, grades in QRELS.items()
        for d, grade in grades.items()
    ),
    "JSON lines as ir_datasets': ": "".join(
        json.dumps({"query_id": q, "doc_id": d, "relevance": grade, "iteration": "0"}) + "\n"
        for q, grades in QRELS.items()
        for d, grade in grades.items()
    ),
}


@pytest.mark.parametrize("name", READ_RUNS)
def test_round2_f2_nested_json_is_a_run(tmp_path: Path, name: str) -> None:
    """F2: what Python tools dump is read, whatever its lines."""
    assert values(scored(tmp_path, READ_RUNS[name], trec_qrels(QRELS), ["mrr"])) == FOUND


@pytest.mark.parametrize("name", READ_QRELS)
def test_round2_f2_json_is_read_as_judgements(tmp_path: Path, name: str) -> None:
    """F2: nested, or a table a judgement."""
    assert read_qrels(put(tmp_path, "qrels", READ_QRELS[name])) == QRELS


def zipped(content: bytes, *names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, content)
    return out.getvalue()


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zip": lambda data: zipped(data, "folder/", "folder/run.txt", "__MACOSX/._run.txt"),
}


@pytest.mark.parametrize("packing", PACKED)
@pytest.mark.parametrize("text", [trec_run(RUN), ranked_lines({"q1": ["d2", "d1"], "q2": ["d3"]}), NESTED])
def test_round2_f2_compressed_files_are_read(tmp_path: Path, packing: str, text: str) -> None:
    """F2: gzip, bz2, xz, and a zip of one file; told by their first bytes."""
    pack = PACKED[packing]
    found = scored(tmp_path, pack(text.encode()), pack(b"\xef\xbb\xbf" + trec_qrels(QRELS).encode()), ["mrr"])
    assert values(found) == FOUND


@pytest.mark.parametrize("packing", PACKED)
def test_round2_f2_what_is_compressed_and_broken_is_told_so(tmp_path: Path, packing: str) -> None:
    """F2: cut short, or changed within: never bytes quoted as bad UTF-8."""
    whole = PACKED[packing](trec_run({f"q{n}": {"d": 1 / (n + 1)} for n in range(999)}).encode())
    for broken in (
        whole[: len(whole) // 2],
        whole[: len(whole) // 3] + bytes(20) + whole[len(whole) // 3 + 20 :],
    ):
        for run, qrels in ((broken, trec_qrels(QRELS).encode()), (trec_run(RUN).encode(), broken)):
            told = refused(tmp_path, run, qrels)
            assert f"is not a whole {packing} file" in told or f"the {packing} file is cut short" in told


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (zipped(b"x", "a.txt", "b.txt"), "is a zip of 2 files (a.txt, b.txt, …)"),
        (zipped(b"x"), "is a zip of 0 files; a zip of one file is read"),
        (b"\x28\xb5\x2f\xfd" + bytes(90), "is a Zstandard file, which is not read"),
        (b"\x04\x22\x4d\x18" + bytes(90), "is a LZ4 file, which is not read"),
        (b"7z\xbc\xaf\x27\x1c" + bytes(90), "is a 7-Zip file, which is not read"),
        (b"PAR1\x15" + bytes(90), "is a Parquet file, which is not read"),
        (gzip.compress(b"run.txt".ljust(257, b"\0") + b"ustar"), "is a tar file, which is not read"),
    ],
)
def test_round2_f2_what_is_not_read_is_named(tmp_path: Path, content: bytes, told: str) -> None:
    """F2: as a run and as judgements."""
    assert told in refused(tmp_path, content, trec_qrels(QRELS))
    assert told in refused(tmp_path, trec_run(RUN), content)


@pytest.mark.parametrize(
    ("run", "qrels", "told"),
    [
        ("q1\td1\t1\nq1\td2\t2\n", JUDGED, "run: has three columns ('q1\\td1\\t1'), as runs of MS MARCO"),
        ("q1 d1 12.5\n", JUDGED, "expected six, query Q0 document rank score tag"),
        (trec_run(RUN), "q1 d1 1\n", "qrels:1: expected 4 columns (query 0 document grade), found 3"),
        (trec_run(RUN), "q1 0 d1 1 ann\n", "qrels:1: expected 4 columns (query 0 document grade), found 5"),
        (trec_run(RUN), "q1 0 d1 1 ann\n", "keep one grade a pair: the median or the highest"),
        # Swapped, in every form.
        (
            f"[{NESTED}]",
            JUDGED,
            "run: is a list in JSON; expected {query: {document: score}}, or a table a line",
        ),
        (trec_run(RUN), '[{"q": 1}]', "qrels: is a list in JSON; expected {query: {document: grade}}"),
        (next(iter(READ_QRELS.values())), NESTED, "the grade of 'd3' is 0.5; it should be a whole number"),
        (trec_run(RUN), NESTED, "if this is a run, --run and --qrels are exchanged"),
        (READ_QRELS["JSON lines as BEIR's"], JUDGED, "holds judgements and not a run"),
        (trec_run(RUN), ranked_lines({"q1": ["d1"]}), "are --run and --qrels exchanged?"),
        (trec_run(RUN), '{"q1": ["d1"]}', "if this is a run, --run and --qrels are exchanged"),
        # Nested JSON that is none.
        ('{"q1": {"d1": 1}', JUDGED, "run:1: not JSON: Expecting ',' delimiter"),
        ('{"q1": {"d1": NaN}}', JUDGED, "run:1: not JSON: NaN is not a JSON number"),
        ('{"q1": {"d1": 1, "d1": 2}}', JUDGED, "run:1: not JSON: key 'd1' is given twice"),
        ('{"q1": {"d1": 1}}\n{"q1": {"d2": 1}}', JUDGED, "run:2: query 'q1' again"),
        ('{"q1": {"d1": "high"}}', JUDGED, "run: query 'q1': the score of 'd1' is 'high'; expected a number"),
        ('{"q1": {"d1": true}}', JUDGED, "run: query 'q1': the score of 'd1' is True; expected a number"),
        ('{"q1": [["d1", 1.5]]}', JUDGED, "run: query 'q1': holds ['d1', 1.5], which is not a document id"),
        ('{"q1": {"": 1}}', JUDGED, "run: query 'q1': holds an empty document id"),
        ('{"": {"d1": 1}}', JUDGED, "run:1: a query id is empty"),
        ('{"q1": {"\\ud800": 1}}', JUDGED, "run: query 'q1': holds a lone surrogate escape"),
        ('{"q1": {"d1": 1}, "q2": {"x": "1"}}', JUDGED, "run: query 'q2': the score of 'x' is '1'"),
        (b'{"q1":\n {"\xff": 1}}', JUDGED, "not UTF-8: byte 0xff"),
        (
            '{\n "schema": "report-v1", "x": {}}',
            JUDGED,
            "run: is a report-v1, and neither a run nor judgements",
        ),
        (
            trec_run(RUN),
            '{"query-id": "q1", "corpus-id": "d", "score": 1}\n{"a": 1}\n',
            "qrels:2: expected a table",
        ),
        (
            trec_run(RUN),
            '{"query-id": "q1", "corpus-id": null, "score": 1}\n',
            "qrels:1: an id should be a text",
        ),
    ],
)
def test_round2_f2_a_form_is_told_before_its_lines(
    tmp_path: Path, run: str | bytes, qrels: str, told: str
) -> None:
    """F2: what a file is, where it is wrong, and what would make it right."""
    assert told in refused(tmp_path, run, qrels)


@pytest.mark.parametrize(
    ("qrels", "told"),
    [
        ("q1 a1 d1 1\nq1 a2 d1 0\n", "qrels:2: judges 'd1' for 'q1' again (first at line 1); keep one grade"),
        (
            "".join(f"q{n} {who} d1 {n % 2}\n" for n in range(50) for who in ("a", "b", "c")),
            "qrels:2: judges 'd1' for 'q0' again (first at line 1), and so do 99 more lines for theirs",
        ),
    ],
)
def test_round2_f2_several_annotators_are_one_fault(tmp_path: Path, qrels: str, told: str) -> None:
    """F2: one sentence, with what would aggregate them."""
    found = refused(tmp_path, trec_run(RUN), qrels)
    assert told in found
    assert "keep one grade a pair: of several annotators the median or the highest" in found
    assert "1 fault;" in found


def test_round2_f2_what_is_advised_for_three_columns_makes_a_file_that_is_read(tmp_path: Path) -> None:
    """F2: the printed commands, followed."""
    run = put(tmp_path, "run", "q1\td2\t1\nq1\td1\t2\nq2\td3\t1\n")
    qrels = put(tmp_path, "qrels", "q1 d1 1\nq1 d2 0\nq2 d3 2\n")
    told = {}
    for path in (run, qrels):
        with pytest.raises(Misuse) as caught:
            score_files(run, put(tmp_path, "sound", JUDGED), [parse("mrr")]) if path is run else read_qrels(
                path
            )
        program = str(caught.value).split("awk '")[1].split("'")[0]
        told[path.name] = subprocess.run(["awk", program, str(path)], capture_output=True, check=True).stdout
    assert values(scored(tmp_path, told["run"], told["qrels"], ["mrr"])) == FOUND


@pytest.mark.parametrize("which", ["run", "qrels"])
@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress])
def test_round2_f2_standard_input_is_read_for_one_of_the_two(
    tmp_path: Path, which: str, pack: Callable[[bytes], bytes]
) -> None:
    """F2: `-` for the run or the judgements; both cannot be."""
    texts = {"run": trec_run(RUN), "qrels": trec_qrels(QRELS)}
    for name, text in texts.items():
        put(tmp_path, name, text)
    command = [sys.executable, "-m", "eval_core", "score", "-m", "mrr", "--format", "json"]

    def done(**named: str) -> subprocess.CompletedProcess[bytes]:
        options = [part for name in texts for part in (f"--{name}", named.get(name, name))]
        return subprocess.run(
            [*command, *options], cwd=tmp_path, input=pack(texts[which].encode()), capture_output=True
        )

    found = json.loads(done(**{which: "-"}).stdout)
    assert (found[which], found["measures"]["mrr"]["mean"]) == ("-", 0.75)
    both = done(run="-", qrels="-")
    assert (both.returncode, b"standard input" in both.stderr) == (2, True)


def test_round2_f2_a_fault_of_standard_input_has_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F2: it is read again for the words, as a file is."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"q1 Q0 d1 1 2 t\nq1 Q0 d2 1 x t\n")))
    with pytest.raises(Misuse, match="-:2: score 'x' should be a number"):
        score_files(Path("-"), put(tmp_path, "qrels", JUDGED), [parse("mrr")])


def test_round2_f2_compare_takes_the_forms_that_score_takes(tmp_path: Path) -> None:
    """F2: nested JSON over lines is no report."""
    put(tmp_path, "a.json", json.dumps(RUN, indent=2))
    put(tmp_path, "b.trec.xz", lzma.compress(trec_run(RUN).encode()))
    put(tmp_path, "qrels", JUDGED)
    command = [
        sys.executable,
        "-m",
        "eval_core",
        "compare",
        "a.json",
        "b.trec.xz",
        "--qrels",
        "qrels",
        "--format",
        "json",
    ]
    done = subprocess.run([*command, "-m", "mrr"], cwd=tmp_path, capture_output=True, check=True)
    effect = json.loads(done.stdout)["arms"][0]["effects"][0]
    assert (effect["n"], effect["before"], effect["after"]) == (2, 0.75, 0.75)
