"""`eval-core import`: files of other tools become sets, and what a set cannot carry is named."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from core_support import Space
from derive_support import content, queries

from eval_core.backend import Document
from eval_core.errors import Misuse
from eval_core.imports.corpus import Documents, Match
from eval_core.sets import Dataset, load

FILES = {
    "guide/install.md": "How to install it.",
    "guide/100% sure.md": "A name that is encoded in an id.",
    "backup.md": "How to keep a copy.",
    "install.md": "The short way.",
}
IDS = ["d1", "d2", "d3", "d4", "a,b", "x y"]

#: A query and its judgements, as most cases below have them.
ONE = {"q1": {"d1": 1}}


@pytest.fixture
def desk(space: Space) -> Space:
    """A folder of documents, `docs`, and a corpus of six, `corpus.jsonl`."""
    for name, text in FILES.items():
        put(space, f"docs/{name}", text)
    lines = [json.dumps({"_id": one.replace(" ", "%20"), "text": one}) + "\n" for one in IDS]
    (space.root / "corpus.jsonl").write_text("".join(lines))
    return space


def put(desk: Space, name: str, data: str | bytes) -> str:
    (desk.root / name).parent.mkdir(parents=True, exist_ok=True)
    (desk.root / name).write_bytes(data.encode() if isinstance(data, str) else data)
    return name


def import_(
    desk: Space, importer: str, path: str | Path, *options: str | Path, corpus: str = "corpus.jsonl"
) -> Any:
    """Import into `out`, which must load as a set: what --format json prints."""
    done = desk.core("import", importer, path, "--corpus", corpus, "-o", "out", "--format", "json", *options)
    assert done.code == 0, done.err
    assert desk.core("validate", "out").code == 0
    found = json.loads(done.out)
    assert found["queries"] == len(queries(desk.root / "out"))
    return found


def refused(desk: Space, importer: str, path: str, *options: str, code: int = 2) -> str:
    """The error of an import that writes nothing, with its exit code."""
    before = content(desk.root)
    done = desk.core("import", importer, path, "--corpus", "corpus.jsonl", "-o", "out", *options)
    assert (done.code, done.out) == (code, ""), done
    assert "Traceback" not in done.err and "internal error" not in done.err
    assert content(desk.root) == before
    assert not list(desk.root.glob(".out*"))
    return done.err


def qrels(desk: Space) -> dict[str, dict[str, int]]:
    """The judgements as they are written."""
    found: dict[str, dict[str, int]] = {}
    for row in (desk.root / "out" / "qrels" / "test.tsv").read_text().splitlines()[1:]:
        query, document, grade = row.split("\t")
        found.setdefault(query, {})[document] = int(grade)
    return found


RECORD = {"id": "q1", "query": "what?", "expected": ["d1"]}


def records(*changes: dict[str, Any] | str) -> str:
    """JSON lines of a sound record and others, each the sound one with changes."""
    return "".join((one if isinstance(one, str) else json.dumps(RECORD | one)) + "\n" for one in changes)


@pytest.mark.parametrize(
    ("name", "data", "options", "judged"),
    [
        ("a.csv", "\ufeffid,query,expected\r\nq1,what?,d1\r\n", [], ONE),
        ("a.csv", "id;query;expected\nq1;one, two;d1\n", [], ONE),
        ("a.tsv", "id\tquery\texpected\nq1\twhat?\td1\n", [], ONE),
        (
            "a.csv",
            'id,query,expected\nq1,"two\nlines, ""quoted""",d1\nq2,what?,d2\n',
            [],
            ONE | {"q2": {"d2": 1}},
        ),
        (
            "a.csv",
            "query,expected\nwhat?,d1\nwhat?,d2\nwho?,d3\n",
            [],
            {"q1": {"d1": 1, "d2": 1}, "q2": {"d3": 1}},
        ),
        ("a.csv", 'id,query,expected\nq1,what?,"[""d1"", ""d2""]"\n', [], {"q1": {"d1": 1, "d2": 1}}),
        ("a.csv", 'id,query,expected\nq1,what?,"a,b"\n', [], {"q1": {"a,b": 1}}),
        ("a.csv", "Query ID,User Query,gold_doc_ids\n7,what?,d1\n", [], {"7": {"d1": 1}}),
        ("a.csv", "id,question,text,expected\nq1,what?,no,d1\n", ["--query", "question"], ONE),
        ("a.csv", "id,query,expected,score\nq1,what?,d1,0.73\n", ["--grade", ""], ONE),
        (
            "a.csv",
            "id,query,expected,label\nq1,what?,d1,good\nq1,what?,d2,ok\nq1,what?,d3,bad\n",
            ["--grade", "label", "--grades", "good=2,ok=1,bad=0"],
            {"q1": {"d1": 2, "d2": 1, "d3": 0}},
        ),
        ("a.jsonl", records({}), [], ONE),
        ("a.txt", records({}, {"id": "q2"}), [], {"q1": {"d1": 1}, "q2": {"d1": 1}}),
        ("a.jsonl", records({}, {}), [], ONE),
        ("a.jsonl", records({"expected": ["x y", "x%20y"]}), [], {"q1": {"x%20y": 1}}),
        ("a.jsonl", records({"id": "a b%"}), [], {"a%20b%25": {"d1": 1}}),
        ("a.jsonl", records({"id": 7}), [], {"7": {"d1": 1}}),
        ("a.jsonl", records({"expected": {"d1": 2, "d2": 0}}), [], {"q1": {"d1": 2, "d2": 0}}),
        ("a.jsonl", records({"expected": [{"doc_id": "d1", "gain": 3}]}), [], {"q1": {"d1": 3}}),
        ("a.jsonl", records({"expected": ["d1", "d2"], "grade": [2, 0]}), [], {"q1": {"d1": 2, "d2": 0}}),
        ("a.json", json.dumps([RECORD]), [], ONE),
        ("a.json", json.dumps(RECORD), [], ONE),
        ("a.json", json.dumps({"q1": {"query": "what?", "expected": "d1"}}), [], ONE),
        ("a.json", json.dumps({"name": "n", "cases": [RECORD], "runs": [{"k": 1}]}), [], ONE),
        ("a.json.gz", gzip.compress(json.dumps([RECORD]).encode(), mtime=0), [], ONE),
        ("a.csv.gz", gzip.compress(b"id,query,expected\nq1,what?,d1\n", mtime=0), [], ONE),
    ],
)
def test_records_of_many_forms_are_read(
    desk: Space, name: str, data: str | bytes, options: list[str], judged: dict[str, dict[str, int]]
) -> None:
    import_(desk, "records", put(desk, name, data), *options)
    assert qrels(desk) == judged


@pytest.mark.parametrize(
    ("data", "options", "told"),
    [
        ("", (), "a.csv: holds nothing"),
        ("id,query,expected\n", (), "a.csv: holds no record"),
        ("[]", (), "a.csv: holds no record"),
        (b"id,query,expected\nq1,caf\xe9,d1\n", (), "a.csv:2: is not UTF-8: byte 0xe9; save it as UTF-8"),
        ("id,query,expected\n".encode("utf-16"), (), "is UTF-16"),
        (gzip.compress(records({}).encode(), mtime=0)[:-9], (), "the gzip file is cut short"),
        ("id,query,expected,id\nq1,what?,d1,q2\n", (), "a.csv:1: column 'id' is there twice"),
        (records({"query": "w" * 100_001}), (), "a.csv:1: query 'q1': query has more than 100,000 characters"),
        ("id,query,expected\nq1,what,ever,d1\n", (), "a.csv:2: has 4 cells and the header 3 columns"),
        ('id,query,expected\nq1,"what?,d1\n', (), "a.csv:2: not CSV: "),
        ("id,query,expected\nq1,,d1\nq2,who?,d1\n", (), "a.csv:2: query is empty"),
        ("id,query,expected\n,what?,d1\nq2,who?,d1\n", (), "a.csv:2: id is empty"),
        ("id,query,expected\nq1,what?,d1\nq1,who?,d1\n", (), "a.csv:3: query 'q1' again with another text"),
        ("id,query,expected,kind\nq1,what?,d1,a\nq1,what?,d2,b\n", (), "a.csv:3: query 'q1' again with another cat"),
        ("id,query,expected\nq1,,d1\nq2,,d1\n", (), "a.csv: query: the field is empty in all 2 records"),
        ("id,query,expected\nq1,what?,\n", (), "a.csv: expected: the field is empty in all 1 records"),
        ("id,query,expected,grade\nq1,what?,d1,\n", (), "a.csv: grade: the field is empty in all 1 records"),
        ("id,query,expected,grade\nq1,what?,d1,NaN\n", (), "a.csv:2: grade 'NaN' should be a whole number; say"),
        ("id,query,expected,grade\nq1,what?,d1,1.5\n", (), "a.csv:2: grade '1.5' should be a whole number; say"),
        (
            "id,query,expected,grade\nq1,what?,d1,so-so\n",
            ("--grades", "good=1"),
            "a.csv:2: grade 'so-so' is not in --grades  (good)",
        ),
        ("id,query,expected,grade\nq1,what?,d1,1\nq1,what?,d1,2\n", (), "a.csv:3: judges 'd1' for 'q1' again, with"),
        ("id,query,expected\nq1,what?,d1\n", ("--grades", "good"), "--grades = 'good': should be words with whole"),
        ("id,query,expected\nq1,what?,d1\n", ("--grade", "rank"), "--grade = 'rank': no record has it  (fields: id, q"),
        ("id,question,text,expected\nq1,what?,who?,d1\n", (), "question, text could each be the query\n  Say which by"),
        ("id,words,expected\nq1,what?,d1\n", (), "no field is called as the query usually is  (fields: id, words, e"),
        ("id,query,expected\nq1,what?,d1; d2\n", (), """a.csv:2: 'd1; d2' is 2 documents in one text; write ["d1", """),
        ("id,query,expected\nq1,what?,d1 d2\n", (), "'d1 d2' is 2 documents in one text; write"),
        ("id,query,expected\nq1,what?,d9\n", (), "a.csv:2: no query is left of 1; the first, 'q1': 'd9' is no "),
        (records("[1]"), (), "a.csv:1: [0] is no record; expected a table"),
        (records({"expected": [["d1"], ["d2"]]}), (), "a.csv:1: expected holds a list in a list; write one list"),
        (records({"expected": [True]}), (), "a.csv:1: expected True is not a text; write it in quotes"),
        (records({"query": 7}), (), "a.csv:1: query 7 is not a text; write it in quotes"),
        (records({"expected": ["d1"], "grade": [1, 2]}), (), "a.csv:1: has 2 grades for 1 documents"),
        (records({"grade": True}), (), "a.csv:1: grade True should be a whole number"),
        ('[{"id": "q1", "query": "w", "expected": "d1", "grade": NaN}]', (), "a.csv: not JSON: NaN is not a JSON"),
        ('[{"id": "q1", "id": "q2"}]', (), "a.csv: not JSON: key 'id' is given twice"),
        ('[{"id": "q1", "query": "\\ud800", "expected": "d1"}]', (), "a.csv: holds a lone surrogate escape"),
        ('[{"id": "q1",\n', (), "a.csv:2: is not JSON: "),
        ("[" * 100_000, (), "a.csv: nested too deeply"),
        ('[{"id": "q1", "query": "w", "expected": "d1"},\n 7]', (), "a.csv:2: [1] is no record; expected a table"),
        ('{"a": [{"x": 1}], "b": [{"x": 1}]}', (), "holds several lists of records (a, b); keep the one with the q"),
    ],
)  # fmt: skip
def test_records_that_are_wrong_are_refused_with_their_line(
    desk: Space, data: str | bytes, options: tuple[str, ...], told: str
) -> None:
    assert told in refused(desk, "records", put(desk, "a.csv", data), *options)


@pytest.mark.parametrize(
    ("path", "corpus", "told", "code"),
    [
        ("none.csv", "corpus.jsonl", "there is no such records file", 2),
        ("docs", "corpus.jsonl", "is a folder; name a records file", 2),
        ("a.csv", "none", "--corpus = 'none': there is no such corpus", 2),
        ("a.csv", "twice.jsonl", "twice.jsonl:2: _id 'd1' again (first at line 1)", 2),
        ("a.csv", "empty.jsonl", "empty.jsonl:1: holds no document", 2),
        ("a.csv", "broken.jsonl", "broken.jsonl:1: not JSON: ", 2),
        ("a.csv", "recipe", "the corpus of 'recipe' is not built yet", 3),
        ("docs/a.csv", "docs", "docs/a.csv: is itself a document of the corpus docs", 2),
    ],
)
def test_files_that_do_not_fit_are_refused(desk: Space, path: str, corpus: str, told: str, code: int) -> None:
    for name in ("a.csv", "docs/a.csv"):
        put(desk, name, "id,query,expected\nq1,what?,d1\n")
    put(desk, "twice.jsonl", '{"_id": "d1", "text": "a"}\n{"_id": "d1", "text": "b"}\n')
    put(desk, "empty.jsonl", "\n")
    put(desk, "broken.jsonl", "d1\n")
    (desk.root / "recipe").mkdir()
    put(
        desk,
        "recipe/dataset.toml",
        'name = "recipe"\n[[corpus.source]]\nname = "s"\ntype = "dir"\npath = "."\n',
    )
    assert told in refused(desk, "records", path, "--corpus", corpus, code=code)


def test_entities_of_topics_are_read(desk: Space) -> None:
    put(desk, "qrels", "1 0 d1 1\n")
    put(desk, "topics", "<top><num>1<title>R&amp;D &lt;here&gt; &ampersand</top>")
    import_(desk, "trec", "topics", "--qrels", "qrels")
    assert queries(desk.root / "out")[0]["text"] == "R&D <here> &ampersand"


def test_a_set_inside_its_corpus_is_no_part_of_it(desk: Space) -> None:
    put(desk, "a.jsonl", records({"expected": "backup.md"}))
    inside = ("--corpus", "docs", "-o", "docs/sets/s")
    assert "docs/sets/s: lies inside the corpus docs, and would be" in refused(
        desk, "records", "a.jsonl", *inside
    )
    for glob in ("**/*", "**/*.tsv", "sets/**"):
        globs = ("--include", "**/*.md", "--include", glob)
        assert "lies inside the corpus docs" in refused(desk, "records", "a.jsonl", *inside, *globs)
    for _ in range(2):
        done = desk.core("import", "records", "a.jsonl", *inside, "--include", "**/*.md", "--force")
        assert " 4 documents" in done.out, done.err


def test_what_is_not_in_the_set_is_named_by_id_and_line(desk: Space) -> None:
    """A query is kept where each document that it expects is one of the corpus; negatives that are nowhere go alone."""
    rows = (
        {"id": "kept", "expected": ["./backup.md"], "note": "n"},
        {"id": "two", "expected": ["backup.md", "install.md"]},
        {"id": "gone", "expected": ["backup.md", "gone.md"]},
        {"id": "open", "expected": []},
        {"id": "no", "expected": {"backup.md": 0}},
        {"id": "minus", "expected": {"guide\\install.md": 1, "backup.md": -2, "gone.md": 0}, "note": "n"},
    )
    path = put(desk, "a.jsonl", records(*rows))
    found = import_(desk, "records", path, corpus="docs")
    assert qrels(desk) == {
        "kept": {"docs/backup.md": 1},
        "minus": {"docs/guide/install.md": 1, "docs/backup.md": 0},
    }
    assert [(one["id"], one["line"], one["reason"]) for one in found["left_out"]] == [
        ("two", 2, "several-matches"),
        ("gone", 3, "no-match"),
        ("open", 4, "no-document"),
        ("no", 5, "no-positive"),
    ]
    assert found["dropped"] == {
        "note": 2,
        "grade below 0, written as 0": 1,
        "judgement below 1 of what is not one document": 1,
    }
    done = desk.core("import", "records", path, "--corpus", "docs", "-o", "out", "--force")
    assert done.code == 0
    assert " left out  4 of 6 queries\n" in done.out
    assert (
        "   a.jsonl:2  two   'install.md' is 2 documents: docs/guide/install.md, docs/install.md\n"
        in done.out
    )
    assert "   a.jsonl:3  gone  'gone.md' is no document of the corpus\n" in done.out
    assert " dropped   note (2), grade below 0, written as 0 (1), judgement below 1" in done.out
    assert done.out.endswith("\nNext: eval-core validate out\n")


@pytest.mark.parametrize(
    ("match", "name", "found"),
    [
        ("id", "n/guide/install.md", ["n/guide/install.md"]),
        ("id", "install.md", []),
        ("path", "guide/install.md", ["n/guide/install.md"]),
        ("path", ".\\guide\\install.md", ["n/guide/install.md"]),
        ("path", "install.md", ["n/guide/install.md", "n/install.md"]),
        ("path", "stall.md", []),
        ("path", "guide/100% sure.md", ["n/guide/100%25%20sure.md"]),
        ("path", "n/install.md", ["n/install.md"]),
        ("path", "other/n/install.md", []),
        ("prefix", "n/gui", ["n/guide/install.md", "n/guide/100%25%20sure.md"]),
        ("prefix", "n/guide/100% s", ["n/guide/100%25%20sure.md"]),
        ("substring", "guide/i", ["n/guide/install.md"]),
        ("substring", "N/GUIDE", []),
    ],
)
def test_a_name_means_the_documents_that_it_fits(match: Match, name: str, found: list[str]) -> None:
    paths = {f"n/{one}".replace("%", "%25").replace(" ", "%20"): f"n/{one}" for one in FILES}
    corpus = [Document(one, "", "", {"path": path}) for one, path in paths.items()]
    assert list(Documents(corpus, match).find(name)) == found


@pytest.mark.parametrize(("option", "headline"), [("--any", "hit@1"), ("--all", None)])
def test_any_of_truth_has_the_headline_hit_at_1(desk: Space, option: str, headline: str | None) -> None:
    import_(desk, "records", put(desk, "a.jsonl", records({"expected": ["d1", "d2"]})), option)
    assert loaded(desk).definition.headline == headline


def loaded(desk: Space) -> Dataset:
    return load(desk.root / "out")


GOLD = """\
queries:
  - id: q-01
    kind: libraries
    query: "How do I install it?"
    expected_sources:
      - guide/install.md
      - backup.md
    tags: [adversarial]
  - {id: q-02, kind: notes, query: where are copies kept, expected_sources: [docs/backup.md], pair: p1}
"""


def test_a_gold_set_keeps_kinds_and_tags(desk: Space) -> None:
    """K1: kinds are what results are told by and what an arm filters from; any of the sources suffices."""
    found = import_(desk, "gold", put(desk, "gold.yaml", GOLD), corpus="docs")
    assert [(one["_id"], one["metadata"]) for one in queries(desk.root / "out")] == [
        ("q-01", {"category": "libraries", "kind": "libraries", "tags": ["adversarial"]}),
        ("q-02", {"category": "notes", "kind": "notes"}),
    ]
    assert qrels(desk) == {
        "q-01": {"docs/guide/install.md": 1, "docs/backup.md": 1},
        "q-02": {"docs/backup.md": 1},
    }
    assert (found["truth"], found["match"], found["dropped"]) == ("any", "path", {"pair": 1})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("queries: [", "gold.yaml:1: is not YAML: "),
        ("a: b: c", "gold.yaml:1: is not YAML: mapping values are not allowed here"),
        ("name: x", "gold.yaml: is no gold set; expected  queries: ["),
        ("- d1", "gold.yaml:1: 'd1' is no entry; expected {id, kind"),
        ("- {id: a, id: b, query: w, expected_sources: [d1]}", "gold.yaml:1: key 'id' is given twice"),
        ("\n- {id: a, query: no, expected_sources: [d1]}", "gold.yaml:2: query False is not a text; write it in"),
        ("- {id: 2024-01-01, query: w, expected_sources: [d1]}", "gold.yaml:1: id 2024-01-01 is not a text"),
        ("- {id: a, query: w, expected_sources: [d1], tags: x}", "gold.yaml:1: tags 'x' should be a list of texts"),
        ("- {id: a, query: w, expected_sources: []}", "expected_sources: the field is empty in all 1 records"),
        ("- !!python/object/apply:os.getcwd []", "gold.yaml:1: is not YAML: "),
        ("[" * 5_000, "nested too deeply"),
        ("- {? [a] : b}", "gold.yaml"),
        ("- [{id: a}]", "gold.yaml:1: [{'id': 'a'}] is no entry"),
        (f"- {{id: a, query: {'w' * 100_001}, expected_sources: [d1]}}", "query has more than 100,000"),
    ],
)  # fmt: skip
def test_a_gold_set_that_is_wrong_is_refused(desk: Space, text: str, told: str) -> None:
    assert told in refused(desk, "gold", put(desk, "gold.yaml", text))


def test_without_pyyaml_the_extra_is_named(desk: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert refused(desk, "gold", put(desk, "gold.yaml", GOLD), code=3) == (
        "eval-core: gold.yaml: YAML is read by PyYAML, which is not installed\n  pip install pyyaml\n"
    )


TOPICS = """\

<top>

<num> Number: 301
<title> International
Organized Crime

<desc> Description:
Identify organizations.

<narr> Narrative:
A relevant document names one.

</top>
<top><num>302</num><title>Topic: AT&T</title></Top>
<top><num> Number: 303 <title> Unjudged </top>
"""
QRELS = "301 0 d1 2\n301 0 d2 0\n301 0 nowhere 0\n302 0 d3 1\n302 0 d4 -1\n400 0 d1 1\n"


@pytest.mark.parametrize(
    "topics", [TOPICS, "301\tInternational  Organized Crime\r\n\n302\tAT&T\r\n303\tUnjudged\r\n"]
)
@pytest.mark.parametrize(
    "judged", [QRELS, "query-id\tcorpus-id\tscore\n301\td1\t2\n301\td2\t0\n302\td3\t1\n302\td4\t0\n"]
)
def test_trec_topics_are_joined_with_their_judgements(desk: Space, topics: str, judged: str) -> None:
    found = import_(desk, "trec", put(desk, "topics", topics), "--qrels", put(desk, "qrels", judged))
    texts = {one["_id"]: one["text"] for one in queries(desk.root / "out")}
    assert texts == {"301": "International Organized Crime", "302": "AT&T"}
    assert qrels(desk) == {"301": {"d1": 2, "d2": 0}, "302": {"d3": 1, "d4": 0}}
    assert [(one["id"], one["reason"]) for one in found["left_out"]] == [("303", "no-document")]
    dropped = {"desc": 1, "narr": 1} if topics == TOPICS else {}
    if judged == QRELS:
        dropped["judged query without a topic"] = 1
        dropped |= {"grade below 0, written as 0": 1, "judgement below 1 of what is not one document": 1}
    assert found["dropped"] == dropped


@pytest.mark.parametrize(
    ("topics", "judged", "told"),
    [
        ("<top><num>1<title>a", QRELS, "topics:1: topic has no </top>"),
        ("<top><title>a</top>", QRELS, "topics:1: topic has no <num>"),
        ("<top><num>1</top>", QRELS, "topics:1: topic '1' has no text"),
        ("1\ta\n1\tb\n", QRELS, "topics:2: topic '1' again (first at line 1)"),
        (
            "<top><num>1<title>a</top><top><num>1<title>b</top>",
            QRELS,
            "topics:1: topic '1' again (first at line 1)",
        ),
        ("1 a\n", QRELS, "topics:1: expected id TAB text, found '1 a'"),
        ('<topics><topic number="1"/></topics>', QRELS, "topics: holds no topic; expected <top> <num>"),
        (b"1\tcaf\xe9\n", QRELS, "topics:1: is not UTF-8: byte 0xe9"),
        (b"", QRELS, "topics: holds nothing"),
        ("1\ta\n", "301 0 d1\n", "qrels:1: expected 4 columns"),
        ("1\ta\n", QRELS, "topics:1: no query is left of 1; the first, '1': expects no document"),
    ],
)
def test_trec_files_that_are_wrong_are_refused(
    desk: Space, topics: str | bytes, judged: str, told: str
) -> None:
    error = refused(desk, "trec", put(desk, "topics", topics), "--qrels", put(desk, "qrels", judged))
    assert told in error
    assert "nothing was scored" not in error


def test_a_manifest_of_either_form_is_imported_with_its_lines(desk: Space) -> None:
    """R1: the ids and files that a comparison takes; a file that is not in the corpus leaves its query out."""
    queries_of = [
        {
            "id": "a",
            "query": "keep a copy?",
            "intent": "care",
            "ground_truth": ["./backup.md", "guide/install.md"],
        },
        {"id": "b", "query": "gone?", "ground_truth": ["gone.md"]},
    ]
    manifest = {"id": "m", "description": "d", "queries": queries_of, "notes": 1}
    found = import_(desk, "manifest", put(desk, "m.json", json.dumps(manifest, indent=1)), corpus="docs")
    assert qrels(desk) == {"a": {"docs/backup.md": 1, "docs/guide/install.md": 1}}
    assert queries(desk.root / "out")[0]["metadata"] == {"category": "care"}
    assert (found["truth"], found["dropped"]) == ("any", {"notes": 1, "description": 1})
    assert [(one["id"], one["line"], one["reason"]) for one in found["left_out"]] == [("b", 14, "no-match")]

    entries = [{"query": "x", "relevant": []}, {"query": "how?", "relevant": ["install.md"], "category": "k"}]
    text = "\n" + json.dumps(entries)
    found = import_(desk, "manifest", put(desk, "m.json", text), "--force", corpus="docs")
    assert qrels(desk) == {"q2": {"docs/install.md": 1}}
    assert found["dropped"] == {"queries without a relevant path": 1}
    wrong = put(desk, "m.json", '[{"query": "x",\n"relevant": [""]}]')
    assert "m.json:2: [0].relevant[0] = '': is empty" in refused(desk, "manifest", wrong, "--force")


EACH = [
    ("records", "a.jsonl", records({"expected": ["backup.md"]}, {"id": "q2", "expected": ["gone.md"]}), []),
    ("gold", "gold.yaml", GOLD, []),
    ("manifest", "m.json", '[{"query": "crime", "relevant": ["backup.md"]}]', []),
    ("trec", "topics", "301\tcrime\n", ["--qrels", "qrels"]),
]


@pytest.mark.parametrize(("importer", "name", "data", "options"), EACH)
def test_importing_twice_gives_the_same_bytes(
    desk: Space, importer: str, name: str, data: str, options: list[str]
) -> None:
    put(desk, "qrels", "301 0 backup.md 1\n")
    put(desk, name, data)
    import_(desk, importer, name, *options, corpus="docs")
    first = content(desk.root / "out")
    import_(desk, importer, name, *options, "--force", corpus="docs")
    assert content(desk.root / "out") == first
    assert set(first) == {"dataset.toml", "queries.jsonl", "qrels/test.tsv"}


def test_a_corpus_file_is_written_in_its_one_form_and_keeps_its_digest(desk: Space) -> None:
    source = '{"text": "t", "_id": "d1", "url": "u"}\n'
    put(desk, "other.jsonl", source)
    import_(desk, "records", put(desk, "a.jsonl", records({})), corpus="other.jsonl")
    assert (desk.root / "out" / "corpus.jsonl").read_text() == (
        '{"_id":"d1","metadata":{"url":"u"},"text":"t","title":""}\n'
    )
    assert (
        load(desk.root / "out", corpus=desk.root / "other.jsonl").corpus_digest == loaded(desk).corpus_digest
    )
    found = import_(desk, "records", "a.jsonl", "--force", "--name", "again", corpus="out")
    assert (found["name"], found["documents"]) == ("again", 1)


def test_a_set_appears_whole_or_not_at_all(desk: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """--force replaces a set and nothing else; what was there comes back where the new one cannot be put."""
    put(desk, "a.jsonl", records({}))
    import_(desk, "records", "a.jsonl")
    assert "replace the set with --force" in refused(desk, "records", "a.jsonl")
    put(desk, "out/notes.txt", "mine")
    assert "out: holds notes.txt, which is no part of an imported set" in refused(
        desk, "records", "a.jsonl", "--force"
    )
    (desk.root / "out" / "notes.txt").unlink()
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if self.name == "new-out":
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    put(desk, "a.jsonl", records({"query": "another"}))
    assert "No space left on device" in refused(desk, "records", "a.jsonl", "--force", code=3)
    assert queries(desk.root / "out")[0]["text"] == "what?"


def test_an_importer_of_another_package_stands_where_the_built_in_ones_do(
    desk: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its options join those of every import, and its file may hold the documents."""
    site = desk.root / "site"
    info = site / "thing-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[eval.importers]\nthing = thing_importer\nlame = lame_importer\n")
    (site / "lame_importer.py").write_text("import no_such_module_anywhere\n")
    (site / "thing_importer.py").write_text(
        "import click\n"
        "from eval_core.backend import Document\n"
        "from eval_core.imports import Question, Reading\n"
        "SUMMARY = 'Things.'\n"
        "OPTIONS = [click.Option(['--times'], type=int, default=1)]\n"
        "def read(path, *, times):\n"
        "    text = path.read_text().strip()\n"
        "    return Reading([Question('q', text * times, {'d': 1}, 1)], documents=[Document('d', '', text)])\n"
    )
    monkeypatch.syspath_prepend(site)
    put(desk, "file", "ab\n")
    done = desk.core("import", "thing", "file", "-o", "out", "--times", "2")
    assert done.code == 0, done.err
    assert [one["text"] for one in queries(desk.root / "out")] == ["abab"]
    assert desk.core("validate", "out").code == 0
    done = desk.core("import", "--help")
    assert re.search("thing +Things.", done.out)
    assert re.search("lame +importer 'lame': is installed but", done.out)
    assert desk.core("import", "lame", "file", "-o", "x").code == 3
    unknown = desk.core("import", "recrods", "file", "-o", "x")
    assert (unknown.code, "did you mean 'records'?" in unknown.err) == (2, True)
    assert "holds its own documents" in refused(desk, "thing", "file", "--force")
    none = desk.core("import", "records", put(desk, "a.jsonl", records({})), "-o", "x")
    assert (none.code, "Name them: --corpus FILE or FOLDER." in none.err) == (2, True)


PAGE = Path(__file__).resolve().parents[2] / "docs" / "import.md"


def test_the_commands_of_the_page_run_on_the_files_that_it_shows(desk: Space) -> None:
    text = PAGE.read_text("utf-8")
    for name, held in re.findall(r"^`([\w./]+)`\n```\w*\n(.*?)^```$", text, re.M | re.S):
        put(desk, name, held)
    commands = re.findall(r"^\$ eval-core (import .*)\n((?:(?!\$|```).*\n)*)", text, re.M)
    assert {command.split()[1] for command, _ in commands} == {"records", "gold", "manifest", "trec"}
    for command, printed in commands:
        done = desk.core(*shlex.split(command))
        assert (done.code, done.out.strip()) == (0, printed.strip()), done.err


# ------------------------------------------------------------- what others published
# The cases above hold small files of ours in the same forms; these take the published files as they are.


def test_published_cases_beside_their_documents_need_no_line_of_glue(
    desk: Space, shared_data: Callable[[str], Path]
) -> None:
    bench = shared_data("agentops/retrieval-bench")
    corpus = str(bench)
    assert "is itself a document of the corpus" in refused(
        desk, "records", str(bench / "benchmark.json"), "--corpus", corpus
    )
    found = import_(desk, "records", bench / "benchmark.json", "--include", "*.md", corpus=corpus)
    assert (found["queries"], found["judgements"], found["documents"]) == (6, 15, 17)
    assert found["dropped"] == {"split": 6, "labels": 6, "best_id": 6, "expected_section": 1}
    assert qrels(desk)["q6"] == {"retrieval-bench/queue-evidence.md": 1}


def test_published_queries_of_documents_that_are_not_there_are_named(
    desk: Space, shared_data: Callable[[str], Path]
) -> None:
    """Five of the twenty are about the two files that were published with them."""
    bench = shared_data("agentops/retrieval-bench")
    for path in (bench / "ground-truth").iterdir():
        put(desk, f"docs/learnings/{path.name}", path.read_bytes())
    found = import_(desk, "records", bench / "eval-queries.json", corpus="docs")
    assert (found["queries"], len(found["left_out"])) == (5, 15)
    empty = {
        f"q{n}"
        for n, one in enumerate(json.loads((bench / "eval-queries.json").read_text()), 1)
        if not one["relevant"]
    }
    assert {one["id"] for one in found["left_out"] if one["reason"] == "no-document"} == empty
    assert {one["reason"] for one in found["left_out"] if one["id"] not in empty} == {"no-match"}
    assert (found["left_out"][0]["id"], found["left_out"][0]["line"]) == ("q1", 2)


def test_a_published_set_with_graded_documents_in_tables(
    desk: Space, shared_data: Callable[[str], Path]
) -> None:
    path = shared_data("memcastle/core.json")
    value = json.loads(path.read_text())
    rows = [(one["id"], one["content"]) for one in value["documents"]]
    rows += [(one["new_id"], one["content"]) for one in value["supersessions"]]
    put(desk, "all.jsonl", "".join(json.dumps({"_id": name, "text": text}) + "\n" for name, text in rows))
    found = import_(desk, "records", path, corpus="all.jsonl")
    assert qrels(desk) == {
        one["id"]: {doc["doc"]: doc["grade"] for doc in one["relevant"]} for one in value["queries"]
    }
    assert found["dropped"]["temporal"] == sum("temporal" in one for one in value["queries"])
    assert found["dropped"]["filter"] == sum("filter" in one for one in value["queries"])


@pytest.mark.parametrize("name", ["cisi", "cranfield", "med"])
def test_published_judgements_are_kept_to_the_last(
    desk: Space, shared_data: Callable[[str], Path], name: str
) -> None:
    source = shared_data(f"beir/{name}")
    texts = {one["_id"]: " ".join(one["text"].split()) for one in queries(source)}
    put(desk, "topics.tsv", "".join(f"{query}\t{text}\n" for query, text in texts.items()))
    import_(desk, "trec", "topics.tsv", "--qrels", source / "qrels" / "test.tsv", corpus=str(source))
    theirs = load(source)
    kept = {query: dict(judged) for query, judged in theirs.judgements.items() if any(judged.values())}
    assert qrels(desk) == kept
    assert loaded(desk).corpus_digest == theirs.corpus_digest


@pytest.mark.parametrize("held", ["qrels/dev.tsv", "notes.md"])
def test_force_never_takes_what_an_import_does_not_write(desk: Space, held: str) -> None:
    """Another split of a set is somebody's work, as any other file is."""
    put(desk, "a.jsonl", records({}))
    import_(desk, "records", "a.jsonl")
    other = desk.root / "out" / held
    other.write_text("kept\n")
    assert f"holds {held}" in refused_with(desk, "a.jsonl")
    assert other.read_text() == "kept\n"


def test_an_import_never_replaces_what_it_reads(desk: Space) -> None:
    put(desk, "a.jsonl", records({}))
    import_(desk, "records", "a.jsonl")
    before = (desk.root / "out" / "queries.jsonl").read_bytes()
    assert "which this command reads, and would be replaced" in refused_with(desk, "out/queries.jsonl")
    assert (desk.root / "out" / "queries.jsonl").read_bytes() == before


def refused_with(desk: Space, path: str) -> str:
    done = desk.core("import", "records", path, "--corpus", "corpus.jsonl", "-o", "out", "--force")
    assert done.code == 2, done.out
    return done.err


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("long.csv", "x" * 140_000 + ",query\n", "not CSV"),
        ("half.yaml", 'queries:\n  - {id: a, query: "a\\ud800b", expected_sources: [d1]}\n', "surrogate"),
        (
            "bomb.yaml",
            "a: &a0 [x]\n"
            + "".join(f"b{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))
            + "queries: *a8\n",
            "is no entry",
        ),
        (
            "tags.yaml",
            "a: &a0 [x]\n"
            + "".join(f"b{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))
            + "queries:\n  - {id: a, query: what, expected_sources: [d1], tags: *a8}\n",
            "should be a list of texts",
        ),
    ],
    ids=lambda value: value if len(value) < 12 else "",
)
def test_what_is_endless_ends_in_one_error(desk: Space, name: str, data: str, said: str) -> None:
    put(desk, name, data)
    importer = "gold" if name.endswith("yaml") else "records"
    message = refused(desk, importer, name)
    assert said in message
    assert len(message) < 4000


def entry(changes: str, query: str = "what?") -> str:
    """A gold set of one entry, whose fifth line is `changes`."""
    return f"queries:\n  - id: a\n    query: {query}\n    expected_sources: [d1]\n    {changes}\n"


HALF = "holds half of a surrogate pair, which is no character"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (entry(r'tags: ["x\ud800"]'), f"query 'a': tags {HALF}"),
        (entry(r'kind: "x\udfff"'), f"query 'a': kind {HALF}"),
        (entry("kind: k", r'"\ud800"'), f"query 'a': query {HALF}"),
        (entry("").replace("d1", r'"\ud800"'), f"query 'a': expected_sources {HALF}"),
    ],
)
def test_half_of_a_surrogate_pair_is_refused_with_its_query_and_field(
    desk: Space, text: str, told: str
) -> None:
    assert refused(desk, "gold", put(desk, "gold.yaml", text)).startswith(f"gold.yaml:2: {told}\n")


def test_a_half_in_metadata_of_another_importer_is_refused(
    desk: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Metadata may be of any depth, and their keys are written too."""
    from eval_core.imports import records as reader
    from eval_core.imports.importer import Question, Reading

    for metadata in ({"a": [{"b": "\ud800"}]}, {"\ud800": 1}, {"a": {"\ud800": 1}}):
        reading = Reading([Question("q1", "what?", {"d1": 1}, 7, metadata)])
        monkeypatch.setattr(reader, "read", lambda path, reading=reading, **options: reading)
        error = refused(desk, "records", put(desk, "a.csv", "x"))
        assert error.startswith("a.csv:7: query 'q1': ") and HALF in error


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (entry("pair: 2024-13-01"), "gold.yaml:5: is not YAML: '2024-13-01' cannot be read as timestamp; write it"),
        (entry("pair: " + "9" * 9_000), "gold.yaml:5: is not YAML: '999"),
        (entry("kind: 0x" + "f" * 9_000), "gold.yaml:5: is not YAML: '0xfff"),
        (entry("pair: !!int x"), "gold.yaml:5: is not YAML: 'x' cannot be read as int"),
        (entry("pair: !!float x"), "gold.yaml:5: is not YAML: 'x' cannot be read as float"),
        (entry("pair: !!bool x"), "gold.yaml:5: is not YAML: 'x' cannot be read as bool"),
        (entry("pair: !!timestamp x"), "gold.yaml:5: is not YAML: 'x' cannot be read as timestamp"),
        (entry('pair: "\x07"'), "gold.yaml:5: is not YAML: character 0x0007 is not allowed\n"),
        (entry("pair: " + "[" * 5_000), "gold.yaml:5: is not YAML that can be read: nested too deeply"),
        (entry("kind: 2024-01-01"), "gold.yaml:2: kind 2024-01-01 is not a text; write it in quotes"),
        (entry("kind: {a: 1}"), "gold.yaml:2: kind {'a': 1} is not a text"),
        (entry("tags: {a: {b: 1}}"), "gold.yaml:2: tags {'a': {'b': 1}} should be a list of texts"),
        (entry("").replace("[d1]", "{d1: {b: 1}}"), "gold.yaml:2: grade {'b': 1} should be a whole number"),
        (entry("").replace("[d1]", "{d1: 2024-01-01}"), "gold.yaml:2: grade 2024-01-01 should be a whole number"),
        (entry("\n  - d1"), "gold.yaml:6: 'd1' is no entry"),
    ],
    ids=lambda text: text[-40:],
)  # fmt: skip
def test_a_fault_of_yaml_has_its_line_and_no_words_of_python(desk: Space, text: str, told: str) -> None:
    error = refused(desk, "gold", put(desk, "gold.yaml", text))
    assert told in error
    assert "object at" not in error and "set_int" not in error and "month" not in error


def test_a_value_in_a_message_is_short_however_it_nests() -> None:
    from eval_core.imports.tables import shown

    for value in ([["x" * 99] * 9] * 9, [{"k" * 99: ["v" * 99] * 9}] * 9, dict.fromkeys(range(9), "v" * 99)):
        assert len(shown(value)) == 100
    assert shown([["d1"], 7]) == "[['d1'], 7]"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems take no such name")
def test_a_file_whose_name_is_not_utf_8_is_imported(desk: Space) -> None:
    name = os.fsdecode(b"caf\xe9.jsonl")
    import_(desk, "records", put(desk, name, records({})))
    assert "caf\\\\udce9.jsonl" in (desk.root / "out" / "dataset.toml").read_text()


@pytest.mark.parametrize(
    ("importer", "name", "before", "text", "after", "told"),
    [
        ("records", "a.csv", "id,query,expected\nq1,", "{}", ",d1\n", "a.csv:2: a line of more than 1 MB"),
        ("records", "a.jsonl", '\n{"query": "', "{}", '", "expected": "d1"}\n', "a.jsonl:2: a line of more than 1 MB"),
        ("records", "a.json", '{"query": "', "{}", '", "expected": "d1"}', "a.json:1: a line of more than 1 MB"),
        ("gold", "a.yaml", "queries:\n- query: ", "{}", "\n  expected_sources: [d1]\n", "a.yaml:2: a line of more th"),
        ("gold", "a.yaml", "queries:\n- id: a\n  query: |", "\n   {}", "\n", "a.yaml:3: is not YAML: a text of more"),
        ("trec", "topics", "301\t", "{}", "\n", "topics:1: a line of more than 1 MB"),
        ("trec", "topics", "\n<top><num>301<title>", "{}\n", "</top>", "topics:2: a topic of more than 1 MB"),
    ],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_a_text_without_end_is_refused_in_every_form(
    desk: Space,
    monkeypatch: pytest.MonkeyPatch,
    importer: str,
    name: str,
    before: str,
    text: str,
    after: str,
    told: str,
) -> None:
    """What is read is bounded before it is held: a line in all forms, and a text of many lines."""
    from eval_core.imports import gold, tables, trec

    for module in (gold, tables, trec):
        monkeypatch.setattr(module, "LONGEST", 1 << 20)
    put(desk, "qrels", "301 0 d1 1\n")
    parts = 3 if "\n" in text else 1
    put(desk, name, before + text.format("x" * ((1 << 20) // parts + 1)) * parts + after)
    options = ["--qrels", "qrels"] if importer == "trec" else []
    assert told in refused(desk, importer, name, *options)


def test_a_line_as_long_as_the_bound_is_read(desk: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line begins anywhere in what is read at once, and is counted to its end."""
    from eval_core.imports import tables

    monkeypatch.setattr(tables, "LONGEST", 2 << 20)
    for begins in (0, 1, (1 << 20) - 1, 1 << 20):
        put(desk, "a", b" " * begins + b"\n" + b"x" * (2 << 20) + b"\ny")
        assert len(tables.read_bytes(desk.root / "a", "records")) == begins + (2 << 20) + 3
        put(desk, "a", b" " * begins + b"\n" + b"x" * ((2 << 20) + 1) + b"\ny")
        with pytest.raises(Misuse, match="more than 2 MB"):
            tables.read_bytes(desk.root / "a", "records")


@pytest.mark.parametrize(
    ("topics", "told"),
    [
        ("<top><num>301<title>a <num>302<title>b</top>", ["topics:1: topic '301' has a second <num>", "<title>"]),
        ("<top><num>301\n<title>a\n<title>b</top>", ["topics:3: topic '301' has a second <title>"]),
        ("<top><num>1<title>a</top><top><num>1<title>b</top>", ["topics:1: topic '1' again (first at line 1)"]),
        ("<top><num>1<title>a</top>\n<num>2<title>b</top>", ["topics:2: <num> is in no topic; begin each with <top>"]),
        ("<!-- -->\n<num>2<title>b</top><top><num>1<title>a</top>", ["topics:2: <num> is in no topic"]),
    ],
)  # fmt: skip
def test_no_topic_is_lost(desk: Space, topics: str, told: list[str]) -> None:
    put(desk, "qrels", "301 0 d1 1\n1 0 d1 1\n")
    error = refused(desk, "trec", put(desk, "topics", topics), "--qrels", "qrels")
    assert all(one in error for one in told)


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("R &amp; D", "R & D"),
        ("a &lt;num&gt; tag", "a <num> tag"),
        ("caf&eacute; caf&#233; caf&#xE9;", "café café café"),
        ("two&nbsp; words", "two words"),
        ("&amp;lt;", "&lt;"),
        ("AT&T, ?a=1&copy=2, &nothing;", "AT&T, ?a=1&copy=2, &nothing;"),
    ],
)
def test_entities_of_a_topic_are_the_characters_that_they_stand_for(
    desk: Space, written: str, asked: str
) -> None:
    put(desk, "qrels", "301 0 d1 1\n")
    topic = f"<top><num>301<title>{written}</top>"
    import_(desk, "trec", put(desk, "topics", topic), "--qrels", "qrels")
    assert [one["text"] for one in queries(desk.root / "out")] == [asked]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("\ufeff\ufeffid,query,expected\nq1,what?,d1\n", "a.csv:1: begins with two byte order marks; save it"),
        ('\ufeff\ufeff{"query": "what?", "expected": "d1"}\n', "a.csv:1: begins with two byte order marks"),
        ('\ufeff"\ufeffid",query,expected\nq1,what?,d1\n', r"a.csv:1: column '\ufeffid' holds a character that is not"),
        ("id,\x01query,expected\nq1,what?,d1\n", r"a.csv:1: column '\x01query' holds a character that is not seen"),
        ("\nid,query\u200b,expected\nq1,what?,d1\n", r"a.csv:2: column 'query\u200b' holds a character that is not"),
        ('{"\\ufeffquery": "what?", "expected": "d1"}', r"(fields: \ufeffquery, expected)"),
        ('{"query": "w", "sou\\trce": "d1", "docid": "d1", "doc\\u0009id": "d2"}', r"docid, doc\tid could each be the"),
    ],
)  # fmt: skip
def test_characters_of_a_field_name_that_are_not_seen_are_shown(desk: Space, data: str, told: str) -> None:
    assert told in refused(desk, "records", put(desk, "a.csv", data))


def test_a_heading_of_two_lines_is_a_column(desk: Space) -> None:
    import_(desk, "records", put(desk, "a.csv", 'id,"user\nquery",expected\u00a0\nq1,what?,d1\n'))
    assert qrels(desk) == ONE


def rows(*values: object) -> str:
    """A query and document a value, which stands in the field `verdict`."""
    return records(*({"id": f"q{n}", "verdict": value} for n, value in enumerate(values)))


@pytest.mark.parametrize(
    ("values", "option"),
    [
        (("good", "bad", "good"), "--grade verdict --grades bad=N,good=N, with"),
        (("Not relevant",), "--grade verdict --grades 'Not relevant=N', with"),
        (("meh", "ok", "", None), "--grade verdict --grades meh=N,ok=N, with"),
        ((2, 0, 1), "--grade verdict"),
        (("-1", "3"), "--grade verdict"),
        (([1, 0], [1]), "--grade verdict"),
        ((0.5, 1), "--grade verdict --grades 0.5=N,1=N, with"),
        ((True, False), "--grade verdict --grades false=N,true=N, with"),
    ],
    ids=str,
)
def test_a_grade_that_is_not_read_is_warned_of(desk: Space, values: tuple[object, ...], option: str) -> None:
    [warning] = import_(desk, "records", put(desk, "a.jsonl", rows(*values)))["warnings"]
    assert warning.startswith("'verdict' looks like a grade (")
    assert "was not read: every row was taken as relevant. To read it: " + option in warning
    done = desk.core("import", "records", "a.jsonl", "--corpus", "corpus.jsonl", "-o", "out", "--force")
    assert f" warning   {warning}\n" in done.out


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (rows("kim", "ada"), []),
        (rows(1, 1), []),
        (rows(2023, 2024), []),
        (rows(*range(9)), []),
        (rows({"good": 1}), []),
        (rows("good", "a whole sentence, as a remark has it"), []),
        (rows("good", "bad"), ["--grade", ""]),
        (rows("good", "bad"), ["--grade", "verdict", "--grades", "good=1,bad=1"]),
        (records({"expected": {"d1": 2}, "verdict": "good"}), []),
        (rows("good", "bad"), ["--category", "verdict"]),
        (records({"grade": 1, "verdict": "good"}), []),
    ],
)
def test_a_field_that_is_no_grade_is_not_warned_of(desk: Space, data: str, options: list[str]) -> None:
    assert import_(desk, "records", put(desk, "a.jsonl", data), *options)["warnings"] == []
