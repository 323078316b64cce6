"""Rankings and judgements as others write them: one rule of grades and columns, and forms recognised before reading."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import math
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
import pytrec_eval
from core_support import Done, call
from scoring_support import put, ranked_lines, refused, scored, trec_qrels, trec_run, values

from eval_core.errors import Misuse
from eval_core.scoring.metrics import parse
from eval_core.scoring.models import Score, ScoreTable
from eval_core.scoring.readers import read_qrels
from eval_core.scoring.score import score_files
from eval_core.scoring.spelling import read
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


def test_round2_f1_no_query_is_lost_between_two_comments(tmp_path: Path) -> None:
    """F1: the lines of a query lie between comments that the search for the end of a block may take for one block."""
    for size in range(1, 40):
        run = {
            "q0": dict.fromkeys("abcdefghijklmnopqrst", 1.0),
            "q1": {f"d{n}": 1.0 for n in range(size)},
            "q2": {"d0": 1.0},
        }
        first, second, third = (trec_run({query: scores}) for query, scores in run.items())
        text = f"{first}# a\n{second}# {'b' * 60}\n{third}"
        found = scored(tmp_path, text, "q0 0 t 1\nq1 0 d0 1\nq2 0 d0 1\n", ["recall@99"])
        assert (found.missing, found.mean(parse("recall@99"))) == ([], 1), size


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
        (b"\x28\xb5\x2f\xfd" + bytes(90), "is a file of Zstandard, which is not read"),
        (b"\x04\x22\x4d\x18" + bytes(90), "is a file of LZ4, which is not read"),
        (b"7z\xbc\xaf\x27\x1c" + bytes(90), "is a file of 7-Zip, which is not read"),
        (b"PAR1\x15" + bytes(90), "is a file of Parquet, which is not read"),
        (
            gzip.compress(b"run.txt".ljust(257, b"\0") + b"ustar", mtime=0),
            "is a file of tar, which is not read",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
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
        ('{"\\ud800": {"d1": 1}}', JUDGED, "run: query '\\ud800': holds a lone surrogate escape"),
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
            "qrels:2: judges 'd1' for 'q0' again (first at line 1), one of 100 lines that judge a pair again",
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


# -------------------------------------------------------------------------------------------- names of measures

#: Names by others' documentation, and the measure of ours that each is.
SPELLED = {
    # trec_eval and pytrec_eval
    "P_5": "precision@5",
    "P.5": "precision@5",
    "recall_10": "recall@10",
    "recall.1000": "recall@1000",
    "ndcg_cut_10": "ndcg@10",
    "ndcg_cut.10": "ndcg@10",
    "map_cut_5": "map@5",
    "success_1": "hit@1",
    "recip_rank": "mrr",
    "Rprec": "rprec",
    "map": "map",
    "ndcg": "ndcg",
    # ir_measures
    "nDCG@10": "ndcg@10",
    "nDCG": "ndcg",
    "P@5": "precision@5",
    "R@100": "recall@100",
    "AP": "map",
    "AP@10": "map@10",
    "RR": "mrr",
    "RR@10": "mrr@10",
    "MRR@10": "mrr@10",
    "Success@5": "hit@5",
    "Judged@10": "judged@10",
    "P(rel=2)@5": "precision@5(rel=2)",
    "RR(rel=2)@10": "mrr@10(rel=2)",
    "AP(rel=2)": "map(rel=2)",
    "nDCG(dcg='exp-log2')@10": "ndcg@10(gain=exp)",
    "nDCG(dcg='log2')": "ndcg",
    # ranx
    "hit_rate@5": "hit@5",
    "r-precision": "rprec",
    "ndcg_burges@10": "ndcg@10(gain=exp)",
    "mrr@10": "mrr@10",
    # BEIR and MTEB
    "NDCG@10": "ndcg@10",
    "MAP@100": "map@100",
    "Recall@100": "recall@100",
    "R_cap@100": "recall_cap@100",
    "recall_at_100": "recall@100",
    "ndcg_at_10": "ndcg@10",
    "mrr_at_10": "mrr@10",
    "hit_rate_at_5": "hit@5",
    # ours
    **{name: name for name in ("recall@100(rel=2)", "rprec(rel=3)", "all@5(rel=2)", "ndcg@5(gain=exp)")},
}


@pytest.mark.parametrize("name", SPELLED)
def test_round2_f3_a_measure_is_taken_by_the_names_of_others(name: str) -> None:
    """F3: and printed by ours; in a file of our own the right name is told."""
    assert str(read(name)) == SPELLED[name]
    if name == SPELLED[name]:
        return
    with pytest.raises(Misuse) as caught:
        parse(name)
    told = "rel= is for the commands" if "rel=" in name else f"did you mean {SPELLED[name]!r}?"
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "ERR@20",
            "nERR@10",
            "bpref",
            "infAP",
            "rbp",
            "RBP(p=0.8)",
            "gm_map",
            "G",
            "binG",
            "iprec_at_recall_0.10",
        ),
        *(
            "11pt_avg",
            "set_F",
            "set_P",
            "num_rel_ret",
            "utility",
            "alpha_nDCG@10",
            "IPrec@0.1",
            "SDCG@10",
            "INST",
        ),
        *(
            "hits@10",
            "f1@5",
            "dcg@10",
            "Hole@10",
            "Accuracy@1",
            "Rndcg",
            "ndcg_rel",
            "Rprec_mult_0.20",
            "Compat",
        ),
    ],
)
def test_round2_f3_a_measure_of_others_is_named_as_one(name: str) -> None:
    """F3: with the list of ours and no suggestion, which would be another number."""
    for take in (read, parse):
        with pytest.raises(Misuse) as caught:
            take(name)
        assert caught.value.code == "measure-unknown"
        assert str(caught.value).startswith(
            f"{name!r} is a measure that is not computed here  (known: recall@"
        )
        assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize("name", sorted(pytrec_eval.supported_measures))
def test_round2_f3_no_measure_of_trec_eval_is_unknown(name: str) -> None:
    """F3: each is ours by another name, or named as one that is not computed."""
    try:
        assert str(read(f"{name}_5" if name in ("P", "recall", "success", "ndcg_cut", "map_cut") else name))
    except Misuse as error:
        assert "is a measure that is not computed here" in str(error)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("recal@10", "did you mean 'recall@10'?"),
        ("precison@5", "did you mean 'precision@5'?"),
        ("hti@1", "did you mean 'hit@1'?"),
        ("ndgc@10", "did you mean 'ndcg@10'?"),
        ("P", "did you mean 'precision@10'?"),
        ("recall_at", "did you mean 'recall@10'?"),
        ("recall@100(rel=0)", "did you mean 'recall@100'?"),
        ("ndcg@10(rel=2)", "did you mean 'ndcg@10'?"),
        ("judged@10(rel=2)", "did you mean 'judged@10'?"),
        *(
            (name, "(known: recall@")
            for name in ("mar", "mrk@10", "mapp", "gain@5", "fprec", "udcg@10", "@10", "")
        ),
    ],
)
def test_round2_f3_a_suggestion_is_the_same_measure_misspelt(name: str, told: str) -> None:
    """F3: of names that are only spelt alike none is suggested."""
    with pytest.raises(Misuse) as caught:
        read(name)
    assert told in str(caught.value)
    assert ("did you mean" in told) == ("did you mean" in str(caught.value))


def test_round2_f3_the_table_has_our_names(tmp_path: Path) -> None:
    """F3: whatever was typed, for score and compare; the same measure by two names is one row."""
    put(tmp_path, "run", trec_run(RUN))
    put(tmp_path, "qrels", JUDGED)
    done = score(tmp_path, "-m", "nDCG@10,P_5,ndcg_cut_10,recip_rank", "--format", "json")
    assert list(json.loads(done.out)["measures"]) == ["ndcg@10", "precision@5", "mrr"]


# -------------------------------------------------------------------------------------------- levels and options

GRADED_QRELS = {
    "q1": {"a": 1, "b": 2, "c": 3, "d": 0},
    "q2": {"a": 1, "b": 1},  # nothing of grade 2
    "q3": {"x": 2},  # not in the run
    "q4": {"a": 0, "b": -1},  # nothing relevant
    "q5": {"a": 2, "q5": 1},
}
GRADED_RUN = {
    "q1": {"a": 5.0, "d": 4.0, "b": 3.0, "u": 2.0, "c": 1.0},
    "q2": {"a": 2.0, "b": 1.0},
    "q4": {"a": 1.0},
    "q5": {"q5": 9.0, "u": 8.0, "a": 7.0},
}
LEVELS = {
    "map": "map",
    "mrr": "recip_rank",
    "rprec": "Rprec",
    "precision@3": "P_3",
    "recall@3": "recall_3",
    "hit@1": "success_1",
    "map@3": "map_cut_3",
    "ndcg": "ndcg",
    "ndcg@3": "ndcg_cut_3",
}
#: By hand for rel=2 and q1, whose relevant documents b and c stand at ranks 3 and 5.
BY_HAND = {
    "map": (1 / 3 + 2 / 5) / 2,
    "mrr": 1 / 3,
    "rprec": 0,
    "precision@3": 1 / 3,
    "recall@3": 1 / 2,
    "hit@1": 0,
    "map@3": 1 / 3 / 2,
}


def score(folder: Path, *arguments: str, run: str = "run") -> Done:
    def main() -> NoReturn:
        from eval_core.cli.app import run as start
        from eval_core.cli.score import score as command

        start(command, "eval-core score")

    return call(main, "--run", run, "--qrels", "qrels", *arguments, where=folder)


def graded(folder: Path, *arguments: str, form: str = "trec") -> dict[str, Any]:
    lists = {q: [d for d, _ in sorted(s.items(), key=lambda one: -one[1])] for q, s in GRADED_RUN.items()}
    put(folder, "run", trec_run(GRADED_RUN) if form == "trec" else ranked_lines(lists))
    put(folder, "qrels", trec_qrels(GRADED_QRELS))
    done = score(folder, "--format", "json", "--per-query", *arguments)
    assert done.code == 0, done.err
    Score.model_validate_json(done.out)
    value: dict[str, Any] = json.loads(done.out)
    return value


@pytest.mark.parametrize("form", ["trec", "lists"])
@pytest.mark.parametrize("level", [1, 2, 3])
def test_round2_f4_a_relevance_level_is_trec_evals(tmp_path: Path, form: str, level: int) -> None:
    """F4: -l of trec_eval for each query and, with the queries to which nothing is relevant as 0, for the mean of -c;
    ndcg takes grades and heeds no level."""
    theirs = pytrec_eval.RelevanceEvaluator(
        GRADED_QRELS, set(LEVELS.values()), relevance_level=level
    ).evaluate(GRADED_RUN)
    options = ("-l", str(level), "--unscorable", "zero", "-m", ",".join(LEVELS))
    found = graded(tmp_path, *options, form=form)
    for ours, name in LEVELS.items():
        shown = ours if level == 1 or ours.startswith("ndcg") else f"{ours}(rel={level})"
        for query, values_ in theirs.items():
            assert found["queries"][query][shown] == pytest.approx(values_[name], abs=1e-12), (query, ours)
        if level == 2 and ours in BY_HAND:
            assert theirs["q1"][name] == pytest.approx(BY_HAND[ours], abs=1e-12)
        # -c: all five, of which q3 has no ranking.
        mean = math.fsum(values_[name] for values_ in theirs.values()) / 5
        measure = found["measures"][shown]
        assert measure["n"] == 5
        assert measure["mean"] == measure["mean_with_unscorable"] == pytest.approx(mean, abs=1e-12)
    assert (found["n"], found["ids"]["missing"], found["ids"]["unscorable"]) == (5, ["q3"], ["q4"])


def test_round2_f4_each_measure_has_the_queries_to_which_something_is_relevant(tmp_path: Path) -> None:
    """F4: q2 has nothing of grade 2, and a mean does not depend on which measures are asked for beside it."""
    alone = graded(tmp_path, "-m", "recall@3(rel=2)")
    beside = graded(tmp_path, "-m", "recall@3,recall@3(rel=2),ndcg@3")
    assert alone["measures"]["recall@3(rel=2)"] == beside["measures"]["recall@3(rel=2)"]
    # q1 1/2, q3 0, q5 1
    assert alone["measures"]["recall@3(rel=2)"]["mean"] == pytest.approx(1.5 / 3)
    assert alone["measures"]["recall@3(rel=2)"]["mean_with_unscorable"] == pytest.approx(1.5 / 5)
    assert (alone["n"], alone["ids"]["unscorable"]) == (3, ["q2", "q4"])
    assert [beside["measures"][name]["n"] for name in beside["measures"]] == [4, 3, 4]
    assert beside["ids"]["unscorable"] == ["q4"]
    assert "recall@3(rel=2)" not in beside["queries"]["q2"]
    table = score(tmp_path, "-m", "recall@3,recall@3(rel=2)", "--per-query").out
    assert "Where n is smaller, rel= leaves queries without a relevant document." in table
    assert next(line.split() for line in table.splitlines() if line.split()[:1] == ["q2"]) == ["q2", "1.0000"]
    row = next(line.split() for line in table.splitlines() if line.split()[:1] == ["recall@3(rel=2)"])
    assert row[-2:] == ["3", "0.3000"]
    assert "without a document of grade 2 or more" in score(tmp_path, "-m", "mrr", "-l", "2").out
    refusal = score(tmp_path, "-m", "mrr,recall@3(rel=4)")
    assert (refusal.code, refusal.out) == (2, "")
    assert "recall@3(rel=4): no query has a document of grade 4 or more" in refusal.err


def test_round2_f4_compare_leaves_out_the_same_queries(tmp_path: Path) -> None:
    """F4: the means of compare at a level are those of score."""
    value = graded(tmp_path, "-m", "recall@3(rel=2)")
    put(tmp_path, "other", trec_run({q: {"a": 1.0} for q in GRADED_QRELS}))

    def main() -> NoReturn:
        from eval_core.cli.app import run
        from eval_core.cli.compare import compare

        run(compare, "eval-core compare")

    options = ("-m", "R(rel=2)@3,recall@3", "--format", "json")
    done = call(main, "run", "other", "--qrels", "qrels", *options, where=tmp_path)
    effects = json.loads(done.out)["arms"][0]["effects"]
    assert [(one["measure"], one["n"]) for one in effects] == [("recall@3(rel=2)", 3), ("recall@3", 4)]
    assert effects[0]["before"] == pytest.approx(value["measures"]["recall@3(rel=2)"]["mean"])


@pytest.mark.parametrize("form", ["trec", "lists"])
@pytest.mark.parametrize("processes", [1, 2])
def test_round2_f4_a_querys_own_document_is_left_out(tmp_path: Path, form: str, processes: int) -> None:
    """F4: as of ArguAna, where each query is a document of the corpus: ranks behind it move up, and it is counted."""
    found = graded(tmp_path, "--skip-own", "-m", "mrr,precision@3,ndcg@1", form=form)
    assert found["counts"]["skipped"] == 1
    without = {q: {d: s for d, s in scores.items() if d != q} for q, scores in GRADED_RUN.items()}
    names = {"mrr": "recip_rank", "precision@3": "P_3", "ndcg@1": "ndcg_cut_1"}
    theirs = pytrec_eval.RelevanceEvaluator(GRADED_QRELS, set(names.values())).evaluate(without)
    for query in ("q1", "q2", "q5"):
        for ours, name in names.items():
            assert found["queries"][query][ours] == pytest.approx(theirs[query][name], abs=1e-12)
    assert found["queries"]["q5"]["mrr"] == 1 / 2
    assert graded(tmp_path, "-m", "mrr", form=form)["queries"]["q5"]["mrr"] == 1
    assert "with their own document among the answers: left out" in score(tmp_path, "--skip-own").out
    several = score_files(
        tmp_path / "run", tmp_path / "qrels", [parse("mrr")], processes=processes, skip_own=True
    )
    assert several.skipped == 1


def test_round2_f4_own_document_in_a_tie(tmp_path: Path) -> None:
    """F4: what is left out takes no place among its equals."""
    run = "q Q0 q 1 2 t\nq Q0 z 2 2 t\nq Q0 a 3 2 t\n"
    found = scored(tmp_path, run, "q 0 a 1\n", ["mrr"])
    assert values(found) == {"q": {"mrr": 1 / 3}}
    found = score_files(tmp_path / "run", tmp_path / "qrels", [parse("mrr")], skip_own=True)
    assert values(found) == {"q": {"mrr": 1 / 2}}


def test_round2_f4_several_runs_are_one_table(tmp_path: Path) -> None:
    """F4: in every format; one run alone prints what it printed."""
    graded(tmp_path)
    put(tmp_path, "lists", ranked_lines({"q1": ["b", "c"], "q9": ["a"]}))
    alone = [json.loads(score(tmp_path, "--format", "json", run=run).out) for run in ("run", "lists")]
    done = score(tmp_path, "--run", "lists", "--format", "json")
    ScoreTable.model_validate_json(done.out)
    assert json.loads(done.out) == {"schema": "scores-v1", "runs": alone}
    table = score(tmp_path, "--run", "lists", "-m", "mrr,hit@1", "--per-query").out
    lines = [line.split() for line in table.splitlines()]
    assert lines[0] == ["query", "run", "mrr", "hit@1"]
    assert ["q1", "lists", "1.0000", "1.0000"] in lines
    assert [line[:2] for line in lines if line[:1] in (["mrr"], ["hit@1"])] == [
        *(["mrr", "run"], ["mrr", "lists"], ["hit@1", "run"], ["hit@1", "lists"])
    ]
    assert ["lists", "4", "3", "1", "1"] in lines  # scored, missing, unjudged, unscorable
    rows = list(
        csv.DictReader(io.StringIO(score(tmp_path, "--run", "lists", "-m", "mrr", "--format", "csv").out))
    )
    assert [(row["run"], row["measure"], row["n"]) for row in rows] == [
        ("run", "mrr", "4"),
        ("lists", "mrr", "4"),
    ]
    twice = score(tmp_path, "--run", "run")
    assert (twice.code, "--run run is given twice" in twice.err) == (2, True)


def test_round2_f4_json_names_the_queries_that_it_counts(tmp_path: Path) -> None:
    """F4: the ids of each count that is of queries of the judgements."""
    found = graded(tmp_path, "-m", "mrr")
    assert {name: len(ids) for name, ids in found["ids"].items()} == {
        name: found["counts"][name] for name in found["ids"]
    }
    assert (found["ids"]["missing"], found["ids"]["unscorable"]) == (["q3"], ["q4"])
