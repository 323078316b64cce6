"""Everything that is wrong with a judged set is told at once, with file and line."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from core_support import HEADER, lines, write_set
from dataset_support import DEFINITION, DOCUMENTS, JUDGEMENTS, QUERIES, faults, sound

from eval_core.errors import CouldNot, Faults, Misuse
from eval_core.sets.corpus import CorpusFile
from eval_core.sets.dataset import load
from eval_core.sets.definition import read_definition


def replaced(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / name
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, (name, old)
        path.write_bytes(text.replace(old, new).encode("utf-8", "surrogateescape"))

    return change


def added(name: str, line: str | bytes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / name
        raw = line if isinstance(line, bytes) else line.encode()
        path.write_bytes((path.read_bytes() if path.exists() else b"") + raw)

    return change


def document(**fields: Any) -> Callable[[Path], None]:
    return added("corpus.jsonl", json.dumps(fields) + "\n")


def query(**metadata: Any) -> Callable[[Path], None]:
    """A third query, soundly judged, with this metadata."""

    def change(folder: Path) -> None:
        added("queries.jsonl", json.dumps({"_id": "q3", "text": "t", "metadata": metadata}) + "\n")(folder)
        added("qrels/test.tsv", "q3\td1\t1\n")(folder)

    return change


def both(*changes: Callable[[Path], None]) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for one in changes:
            one(folder)

    return change


CORPUS_4 = "corpus.jsonl:4: "
QUERIES_3 = "queries.jsonl:3: "
QRELS_5 = "qrels/test.tsv:5: "

BROKEN: Mapping[str, tuple[Callable[[Path], None], str]] = {
    # Documents.
    "id twice": (document(_id="d1", text=""), CORPUS_4 + "_id 'd1' again (first at line 1)"),
    "no id": (document(text=""), CORPUS_4 + "has no '_id'"),
    "empty id": (document(_id="", text=""), CORPUS_4 + "_id is empty"),
    "id of a number": (document(_id=4, text=""), CORPUS_4 + "_id 4 is not a text; write it in quotes"),
    "id null": (document(_id=None, text=""), CORPUS_4 + "_id None is not a text"),
    "id with a space": (
        document(_id="a b", text=""),
        CORPUS_4 + "_id 'a b' holds white space or control characters; write it as 'a%20b'",
    ),
    "id with a tab": (document(_id="a\tb", text=""), CORPUS_4 + "_id 'a\\tb' holds white space"),
    "id with a line separator": (document(_id="a\u2028", text=""), CORPUS_4 + "_id 'a\\u2028' holds white"),
    "no text": (document(_id="d4"), CORPUS_4 + "has no 'text'"),
    "text of a number": (document(_id="d4", text=5), CORPUS_4 + "text 5 is not a text"),
    "title of a list": (document(_id="d4", text="", title=[]), CORPUS_4 + "title [] is not a text"),
    "metadata a list": (document(_id="d4", text="", metadata=[]), CORPUS_4 + "metadata [] is not a table"),
    "kind a number": (
        document(_id="d4", text="", metadata={"kind": 1}),
        CORPUS_4 + "metadata.kind 1 is not a text",
    ),
    "scopes a text": (
        document(_id="d4", text="", metadata={"scopes": "s"}),
        CORPUS_4 + "metadata.scopes 's' is not a list of names",
    ),
    "a list": (added("corpus.jsonl", "[]\n"), CORPUS_4 + "expected a JSON object, not a list"),
    "a text": (added("corpus.jsonl", '"d4"\n'), CORPUS_4 + "expected a JSON object, not a text"),
    "null": (added("corpus.jsonl", "null\n"), CORPUS_4 + "expected a JSON object, not null"),
    "cut short": (added("corpus.jsonl", '{"_id": "d4", "te'), CORPUS_4 + "not JSON: Unterminated string"),
    "two objects in a line": (
        added("corpus.jsonl", "{} {}\n"),
        CORPUS_4 + "not JSON: Extra data at column 4",
    ),
    "not UTF-8": (
        added("corpus.jsonl", b'{"_id": "\xe9"}\n'),
        CORPUS_4 + "not UTF-8: byte 0xe9 at column 10",
    ),
    "NaN": (
        added("corpus.jsonl", '{"_id": "d4", "text": "", "metadata": {"x": NaN}}\n'),
        CORPUS_4 + "not JSON: NaN is not a JSON number",
    ),
    "-Infinity": (
        added("corpus.jsonl", '{"x": -Infinity}\n'),
        CORPUS_4 + "not JSON: -Infinity is not a JSON",
    ),
    "number too large": (
        added("corpus.jsonl", '{"_id": "d4", "text": "", "metadata": {"x": 1e999}}\n'),
        CORPUS_4 + "not JSON: 1e999 is beyond double precision",
    ),
    "key twice": (
        added("corpus.jsonl", '{"_id": "d4", "text": "a", "text": "b"}\n'),
        CORPUS_4 + "not JSON: key 'text' is given twice",
    ),
    "key twice, deep": (
        added("corpus.jsonl", '{"_id": "d4", "text": "", "metadata": {"a": {"b": 1, "b": 1}}}\n'),
        CORPUS_4 + "not JSON: key 'b' is given twice",
    ),
    "lone surrogate": (
        added("corpus.jsonl", '{"_id": "d4", "text": "\\ud83d"}\n'),
        CORPUS_4 + "holds a lone surrogate escape",
    ),
    "nested without end": (added("corpus.jsonl", "[" * 100_000 + "\n"), CORPUS_4 + "nested too deeply"),
    "NUL": (added("corpus.jsonl", b"\0\n"), CORPUS_4 + "not JSON: Expecting value"),
    # Queries.
    "query id twice": (
        added("queries.jsonl", '{"_id": "q1", "text": "t"}\n'),
        QUERIES_3 + "_id 'q1' again (first at line 1)",
    ),
    "query id with a space": (
        added("queries.jsonl", '{"_id": "q 3", "text": "t"}\n'),
        QUERIES_3 + "_id 'q 3' holds white space",
    ),
    "query without text": (added("queries.jsonl", '{"_id": "q3"}\n'), QUERIES_3 + "has no 'text'"),
    "query text a list": (
        added("queries.jsonl", '{"_id": "q3", "text": []}\n'),
        QUERIES_3 + "text [] is not",
    ),
    "query metadata a text": (
        added("queries.jsonl", '{"_id": "q3", "text": "", "metadata": "m"}\n'),
        QUERIES_3 + "metadata 'm' is not a table",
    ),
    "query not judged": (
        added("queries.jsonl", '{"_id": "q3", "text": "t"}\n'),
        QUERIES_3 + "query 'q3' has no positive judgement; judge it, or mark it unanswerable",
    ),
    "query judged 0 alone": (
        both(added("queries.jsonl", '{"_id": "q3", "text": "t"}\n'), added("qrels/test.tsv", "q3\td1\t0\n")),
        QUERIES_3 + "query 'q3' has no positive judgement",
    ),
    "query empty": (
        both(added("queries.jsonl", '{"_id": "q3", "text": ""}\n'), added("qrels/test.tsv", "q3\td1\t1\n")),
        QUERIES_3 + "query 'q3' has an empty text; write it, or mark the query unanswerable",
    ),
    "query of white space": (
        both(
            added("queries.jsonl", '{"_id": "q3", "text": " \\n"}\n'), added("qrels/test.tsv", "q3\td1\t1\n")
        ),
        QUERIES_3 + "query 'q3' has an empty text",
    ),
    "query empty and not judged": (
        added("queries.jsonl", '{"_id": "q3", "text": ""}\n'),
        QUERIES_3 + "query 'q3' has an empty text",
    ),
    "unanswerable and judged": (
        query(unanswerable=True),
        QUERIES_3 + "query 'q3' is marked unanswerable and",
    ),
    "category a list": (query(category=["a"]), QUERIES_3 + "metadata.category ['a'] should be a text"),
    "category empty": (query(category=""), QUERIES_3 + "metadata.category '' should be a text"),
    "scope a list": (query(scope=["s"]), QUERIES_3 + "metadata.scope ['s'] should be one name"),
    "scope of nobody": (query(scope="s"), QUERIES_3 + "query 'q3' asks in scope 's', which no document has"),
    "exclude a text": (
        query(exclude="d2"),
        QUERIES_3 + "metadata.exclude 'd2' should be a list of document ids",
    ),
    "exclude of the unknown": (
        query(exclude=["d9"]),
        QUERIES_3 + "query 'q3' excludes 'd9', which is not in the corpus",
    ),
    "must_pass a text": (
        query(must_pass="yes"),
        QUERIES_3 + "metadata.must_pass 'yes' should be true or false",
    ),
    "time a number": (query(time=1), QUERIES_3 + "metadata.time 1 should be one of"),
    "time without timeline": (
        query(time={"as_of": 1}),
        QUERIES_3 + "metadata.time as_of 1 is outside the timeline (epochs 0 to 0)",
    ),
    # Judgements.
    "judges unknown document": (
        added("qrels/test.tsv", "q1\td9\t1\n"),
        QRELS_5 + "judges document 'd9', which is not in the corpus",
    ),
    "judges document with a space behind": (
        added("qrels/test.tsv", "q1\td2 \t1\n"),
        QRELS_5 + "judges document 'd2 ', which is not in the corpus",
    ),
    "judges for unknown query": (
        added("qrels/test.tsv", "q9\td1\t1\n"),
        QRELS_5 + "judges for query 'q9', which is not in queries.jsonl",
    ),
    "pair judged twice": (
        added("qrels/test.tsv", "q1\td1\t2\n"),
        QRELS_5 + "judges 'd1' for 'q1' again (first at line 2)",
    ),
    "grade 0.5": (added("qrels/test.tsv", "q1\td2\t0.5\n"), QRELS_5 + "grade '0.5' should be a whole number"),
    "grade a word": (
        added("qrels/test.tsv", "q1\td2\tyes\n"),
        QRELS_5 + "grade 'yes' should be a whole number",
    ),
    "grade empty": (added("qrels/test.tsv", "q1\td2\t\n"), QRELS_5 + "grade '' should be a whole number"),
    "grade of other digits": (
        added("qrels/test.tsv", "q1\td2\t\u0661\n"),
        QRELS_5 + "grade '\u0661' should be",
    ),
    "grade enormous": (
        added("qrels/test.tsv", "q1\td2\t9999999999\n"),
        QRELS_5 + "grade '9999999999' should",
    ),
    "two fields": (added("qrels/test.tsv", "q1\td2\n"), QRELS_5 + "expected 3 fields with tabs between"),
    "spaces for tabs": (
        added("qrels/test.tsv", "q1 d2 1\n"),
        QRELS_5 + "expected 3 fields with tabs between",
    ),
    "trec's four fields": (
        added("qrels/test.tsv", "q1\t0\td2\t1\n"),
        QRELS_5 + "expected 3 fields with tabs",
    ),
    "judgement not UTF-8": (
        added("qrels/test.tsv", b"q1\t\xff\t1\n"),
        QRELS_5 + "not UTF-8: byte 0xff at column 4",
    ),
    "header missing": (
        replaced("qrels/test.tsv", HEADER, ""),
        "qrels/test.tsv:1: expected the header 'query-id\\tcorpus-id\\tscore'",
    ),
    "header of another layout": (
        replaced("qrels/test.tsv", HEADER, "query\tdocument\tgrade\n"),
        "qrels/test.tsv:1: expected the header 'query-id\\tcorpus-id\\tscore'",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_one_thing_wrong_is_one_fault_at_its_line(tmp_path: Path, case: str) -> None:
    change, expected = BROKEN[case]
    change(sound(tmp_path / "set"))
    (found,) = faults(tmp_path / "set")
    assert found.startswith(expected)


@pytest.mark.parametrize("text", ["", " \n\t\u3000", "\u200b\u200d", "\ufeff", "\x00"])
@pytest.mark.parametrize("definition", [DEFINITION, None])
def test_round2_n8_an_empty_query_is_a_fault_unless_it_is_marked(
    text: str, definition: str | None, tmp_path: Path
) -> None:
    """N8: also in a plain BEIR folder, and where nothing is judged; one marked unanswerable is never put."""
    for name, metadata in (("bare", {}), ("marked", {"unanswerable": True})):
        queries = {**QUERIES, "q3": {"text": text, "metadata": metadata}}
        write_set(tmp_path / name, DOCUMENTS, queries, JUDGEMENTS, definition)
    told = "query 'q3' has an empty text; write it, or mark the query unanswerable"
    assert faults(tmp_path / "bare") == [QUERIES_3 + told]
    assert load(tmp_path / "marked").unscorable == {"q3"}


def test_round2_n8_a_query_of_operators_is_asked(tmp_path: Path) -> None:
    """N8: it has no word, and can be seen."""
    documents = {"d1": "a <=> b", "d2": "std::move"}
    judged = [("q1", "d1", 1), ("q2", "d2", 1)]
    write_set(tmp_path / "set", documents, {"q1": "<=>", "q2": "::"}, judged, DEFINITION)
    assert load(tmp_path / "set").unscorable == frozenset()


def first_line(name: str, text: str | bytes) -> Callable[[Path], None]:
    """Put another line in place of the first."""

    def change(folder: Path) -> None:
        path = folder / name
        raw = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(raw + b"\n" + path.read_bytes().split(b"\n", 1)[1])

    return change


#: A faulty line, on which judgements, exclusions, scopes and the timeline of the set below rely.
CASCADES: Mapping[str, tuple[Callable[[Path], None], str]] = {
    "document without text": (
        first_line("corpus.jsonl", '{"_id": "d1", "metadata": {"scopes": ["s"]}}'),
        "corpus.jsonl:1: has no 'text'",
    ),
    "document of another name": (
        first_line("corpus.jsonl", '{"id": "d1", "text": "t", "scopes": ["s"]}'),
        "corpus.jsonl:1: has no '_id'; rename 'id'",
    ),
    "document with a wrong scope": (
        first_line("corpus.jsonl", '{"_id": "d1", "text": "t", "metadata": {"scopes": "s"}}'),
        "corpus.jsonl:1: metadata.scopes 's'",
    ),
    "document cut short": (
        first_line("corpus.jsonl", '{"_id": "d1", "metadata": {"scopes": ["s"]}, "te'),
        "corpus.jsonl:1: not JSON",
    ),
    "document not UTF-8": (
        first_line("corpus.jsonl", b'{"_id": "d1", "text": "\xe9", "metadata": {"scopes": ["s"]}}'),
        "corpus.jsonl:1: not UTF-8",
    ),
    "query without text": (first_line("queries.jsonl", '{"_id": "q1"}'), "queries.jsonl:1: has no 'text'"),
    "query cut short": (first_line("queries.jsonl", '{"_id": "q1", "text": "t'), "queries.jsonl:1: not JSON"),
    "query with a wrong scope": (
        first_line("queries.jsonl", '{"_id": "q1", "text": "t", "metadata": {"scope": 1}}'),
        "queries.jsonl:1: metadata.scope 1",
    ),
    "query with a wrong time": (
        first_line("queries.jsonl", '{"_id": "q1", "text": "t", "metadata": {"time": "then"}}'),
        "queries.jsonl:1: metadata.time 'then'",
    ),
    "query with a wrong mark": (
        first_line("queries.jsonl", '{"_id": "q1", "text": "t", "metadata": {"unanswerable": "no"}}'),
        "queries.jsonl:1: metadata.unanswerable 'no'",
    ),
    "query marked in a wrong way": (
        replaced("queries.jsonl", '"unanswerable": true', '"unanswerable": "yes"'),
        "queries.jsonl:3: metadata.unanswerable 'yes'",
    ),
    "grade of a word": (replaced("qrels/test.tsv", "q2\td2\t1", "q2\td2\tyes"), "qrels/test.tsv:3: grade"),
    "two fields": (replaced("qrels/test.tsv", "q2\td2\t1", "q2\td2"), "qrels/test.tsv:3: expected 3 fields"),
    "spaces": (replaced("qrels/test.tsv", "q2\td2\t1", "q2 d2 1"), "qrels/test.tsv:3: expected 3 fields"),
    "judgement not UTF-8": (
        replaced("qrels/test.tsv", "q2\td2\t1", "q2\t\udcff\t1"),
        "qrels/test.tsv:3: not UTF-8",
    ),
}


@pytest.mark.parametrize("case", CASCADES)
def test_round2_n8_what_follows_from_a_faulty_line_is_not_told(case: str, tmp_path: Path) -> None:
    """N8: document d1 is judged, excluded, alone in its scope and superseded; query q2 has one judgement."""
    folder = write_set(
        tmp_path / "set",
        {"d1": {"text": "one", "metadata": {"scopes": ["s"]}}, "d2": "two", "d3": "three"},
        {
            "q1": {"text": "first", "metadata": {"scope": "s", "time": {"historical": True}}},
            "q2": {"text": "second", "metadata": {"exclude": ["d1"]}},
            "q3": {"text": "third", "metadata": {"unanswerable": True}},
        },
        [("q1", "d1", 1), ("q2", "d2", 1)],
        DEFINITION,
        timeline_jsonl='{"epoch": 1, "id": "d3", "supersedes": "d1"}\n',
    )
    assert load(folder).documents == 3
    change, expected = CASCADES[case]
    change(folder)
    (found,) = faults(folder)
    assert found.startswith(expected)


def test_round2_n8_what_no_faulty_line_names_is_told(tmp_path: Path) -> None:
    """N8: beside a faulty line an unknown document, query and scope are still missed."""
    folder = sound(tmp_path / "set")
    first_line("corpus.jsonl", '{"_id": "d1"}')(folder)
    added("queries.jsonl", '{"_id": "q3", "text": "t", "metadata": {"scope": "s"}}\n{"_id": "q4"}\n')(folder)
    added("qrels/test.tsv", "q1\td9\t1\nq9\td2\t1\nq3\td2\t1\nq4\td2\t1\n")(folder)
    assert [fault.partition(": ")[2][:40] for fault in faults(folder)] == [
        "has no 'text'",
        "has no 'text'",
        "judges document 'd9', which is not in th",
        "judges for query 'q9', which is not in q",
        "query 'q3' asks in scope 's', which no d",
    ]


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_byte_order_mark_is_named_and_hides_nothing_else(tmp_path: Path, name: str) -> None:
    path = sound(tmp_path / "set") / name
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert faults(tmp_path / "set") == [
        f"{name}:1: begins with a byte order mark; save it as UTF-8 without one"
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("corpus.jsonl", "corpus.jsonl:1: holds no document"),
        ("queries.jsonl", "qrels/test.tsv:2: judges for query 'q1', which is not in queries.jsonl"),
        ("qrels/test.tsv", "qrels/test.tsv:1: is empty; expected the header"),
    ],
)
@pytest.mark.parametrize("blank", ["", "\n \n"])
def test_an_empty_file_is_a_fault(tmp_path: Path, name: str, expected: str, blank: str) -> None:
    (sound(tmp_path / "set") / name).write_text(blank)
    assert any(fault.startswith(expected) for fault in faults(tmp_path / "set"))


def test_a_set_of_no_query_is_a_fault(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "set", DOCUMENTS, {}, [], DEFINITION)
    assert faults(folder) == ["queries.jsonl:1: holds no query of split 'test'"]


def test_all_faults_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    folder = sound(tmp_path / "set")
    cases = [
        "id twice",
        "judges unknown document",
        "unanswerable and judged",
        "NaN",
        "grade 0.5",
        "not UTF-8",
        "query id twice",
        "time a number",
    ]
    for case in cases:
        if case == "time a number":
            added("queries.jsonl", '{"_id": "q4", "text": "t", "metadata": {"time": 1}}\n')(folder)
        else:
            BROKEN[case][0](folder)
    with pytest.raises(Faults) as caught:
        load(folder)
    told = [str(fault).replace(f"{folder}/", "") for fault in caught.value.faults]
    assert [fault.partition(": ")[0] for fault in told] == [
        "corpus.jsonl:4",  # id twice
        "corpus.jsonl:5",  # NaN
        "corpus.jsonl:6",  # not UTF-8
        "qrels/test.tsv:7",  # grade 0.5
        "queries.jsonl:4",  # query id twice
        "queries.jsonl:5",  # time a number
        "qrels/test.tsv:5",  # judges unknown document
        "queries.jsonl:3",  # unanswerable and judged
    ]
    assert str(caught.value).endswith("\n8 faults; nothing was measured.")


@pytest.mark.parametrize(
    ("metadata", "files", "told"),
    [
        ({"scope": "b"}, {}, "'d1' relevant to 'q1', which is outside its scope or time"),
        ({"exclude": ["d1"]}, {}, "'d1' relevant to 'q1', which excludes it"),
        (
            {"time": {"as_of": 2}},
            {"timeline_jsonl": '{"epoch": 2, "ends": "d1"}\n'},
            "'d1' relevant to 'q1', which is outside its scope or time",
        ),
        (
            {},
            {"timeline_jsonl": '{"epoch": 2, "ends": "d1"}\n'},
            "'d1' relevant to 'q1', which is outside its scope or time",
        ),
    ],
    ids=["scope", "exclude", "time", "no longer there"],
)
def test_a_relevant_document_that_the_query_cannot_see_is_a_fault(
    tmp_path: Path, metadata: dict[str, Any], files: dict[str, str], told: str
) -> None:
    documents = {
        "d1": {"text": "", "metadata": {"scopes": ["a"]}},
        "d2": {"text": "", "metadata": {"scopes": ["b"]}},
    }
    queries = {"q1": {"text": "t", "metadata": metadata}}
    # A judgement of grade 0 outside is none: it says that the document is not wanted.
    folder = write_set(tmp_path / "set", documents, queries, [("q1", "d1", 1)], DEFINITION, **files)
    assert faults(folder) == [f"qrels/test.tsv:2: judges {told}"]
    write_set(folder, documents, queries, [("q1", "d1", 0), ("q1", "d2", 1)], DEFINITION)
    load(folder)


def test_a_query_without_judgement_is_a_fault_only_where_the_set_describes_itself(tmp_path: Path) -> None:
    queries = {**QUERIES, "q3": "nobody judged this"}
    plain = write_set(tmp_path / "plain", DOCUMENTS, queries, JUDGEMENTS)
    assert load(plain).unscorable == {"q3"}
    own = write_set(tmp_path / "own", DOCUMENTS, queries, JUDGEMENTS, DEFINITION)
    assert faults(own)[0].startswith("queries.jsonl:3: query 'q3' has no positive judgement")
    marked = {**QUERIES, "q3": {"text": "", "metadata": {"unanswerable": True}}}
    assert load(write_set(tmp_path / "own", DOCUMENTS, marked, JUDGEMENTS, DEFINITION)).unscorable == {"q3"}


def test_a_timeline_is_checked_with_the_rest(tmp_path: Path) -> None:
    folder = sound(tmp_path / "set")
    (folder / "timeline.jsonl").write_text('{"epoch": 0, "id": "d1"}\n{"epoch": 1, "id": "d9"}\n')
    found = faults(folder)
    assert found[0].startswith("timeline.jsonl:1: epoch 0 should be")
    assert found[1].startswith("timeline.jsonl:2: names document 'd9'")


def test_a_corpus_alone_stops_at_its_first_fault(tmp_path: Path) -> None:
    """A backend that reads a corpus by itself gets documents or an error, and never a part that looks whole."""
    path = tmp_path / "corpus.jsonl"
    path.write_text(lines({"d1": "one"}) + '{"_id": "d2"}\n' + lines({"d3": "three"}))
    with pytest.raises(Faults) as caught:
        list(CorpusFile(path))
    assert str(caught.value) == f"{path}:2: has no 'text'\n1 fault; nothing was done."
    with pytest.raises(CouldNot, match="cannot be read"):
        list(CorpusFile(tmp_path))
    path.write_text(lines(DOCUMENTS))
    corpus = CorpusFile(path, "notes")
    assert (len(corpus), corpus.kind, corpus.path) == (3, "notes", path)
    assert [document.id for document in corpus] == [document.id for document in corpus] == list(DOCUMENTS)


@pytest.mark.parametrize(
    ("text", "where", "told"),
    [
        ('name = "n"\nheadlin = "mrr"\n', ":2", "headlin: unknown key; did you mean 'headline'?"),
        ('name = "n"\n\n[corpus]\nsorce = []\n', ":4", "corpus.sorce: unknown key; did you mean 'source'?"),
        ('name = "Not A Name"\n', ":1", "name = 'Not A Name': should match"),
        ('version = "1"\n', "", "name: it is missing"),
        (
            'name = "n"\nlimit = 5\n',
            "",
            "cut-off 10 is past the limit 5; raise limit, or write cutoffs = [1, 5]",
        ),
        ('name = "n"\ncutoffs = [5, 1]\n', "", "cutoffs [5, 1] should rise, each given once"),
        ('name = "n"\ncutoffs = [1, 0]\n', ":2", "cutoffs[1] = 0: should be greater than or equal to 1"),
        ('name = "n"\ncutoffs = []\n', ":2", "cutoffs = []: should have at least 1 item"),
        ('name = "n"\nlimit = true\n', ":2", "limit = True: should be a valid integer"),
        ('name = "n"\nlimit = "10"\n', ":2", "limit = '10': should be a valid integer"),
    ],
)
def test_a_definition_that_does_not_fit_is_told_with_line_and_mend(
    tmp_path: Path, text: str, where: str, told: str
) -> None:
    sound(tmp_path / "set", definition=text)
    found = faults(tmp_path / "set")
    assert any(fault.startswith(f"dataset.toml{where}: {told}") for fault in found), found


def test_a_moving_source_that_lost_a_judged_document_is_no_fault_of_the_set(tmp_path: Path) -> None:
    """K5: the corpus may drift, and what is judged must be there; the set's own files are as they were."""
    folder = sound(
        tmp_path / "set", DEFINITION + '[[corpus.source]]\ntype = "dir"\nname = "n"\npath = "notes"\n'
    )
    corpus = tmp_path / "moved.jsonl"
    corpus.write_text(lines({"d1": "one", "d3": "three", "d4": "new"}))
    with pytest.raises(CouldNot) as caught:
        load(folder, corpus=corpus)
    assert (caught.value.code, caught.value.exit_code) == ("judged-document-absent", 3)
    assert "qrels/test.tsv:3: judges document 'd2', which is not in the corpus" in str(caught.value)
    # Something wrong with the set itself is told as such, and in a pinned set so is the absent document.
    added("qrels/test.tsv", "q9\td1\t1\n")(folder)
    with pytest.raises(Faults):
        load(folder, corpus=corpus)
    sound(tmp_path / "set", DEFINITION)
    with pytest.raises(Faults):
        load(tmp_path / "set", corpus=corpus)


def test_a_headline_that_is_no_measure_is_a_fault_of_the_definition(tmp_path: Path) -> None:
    (tmp_path / "dataset.toml").write_text('name = "n"\nheadline = "recal@10"\n', "utf-8")
    with pytest.raises(Faults, match="did you mean 'recall@10'"):
        read_definition(tmp_path)


def test_a_name_too_long_for_the_system_is_a_name_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="there is no such dataset folder"):
        load(tmp_path / ("d" * 5000))
