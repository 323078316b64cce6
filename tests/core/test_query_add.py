"""`eval-core query add`: questions that were really asked join a set after a review, or none of them does."""

# long because: one fixture set, and a case for each way that a question can fail its review
from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from core_support import INLINE, Space, append, lines, write_set
from derive_support import commit, content, judged, queries
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eval_core.authoring.questions.file import Question
from eval_core.authoring.questions.result import Added
from eval_core.authoring.questions.review import Present, next_ids
from eval_core.errors import CouldNot
from eval_core.sets.dataset import load

DOCUMENTS: dict[str, Any] = {
    "d1": {
        "text": "The signing key is changed every quarter.",
        "metadata": {"kind": "fact", "scopes": ["ops"]},
    },
    "d2": {"text": "Backups are tried twice a year.", "metadata": {"kind": "fact", "scopes": ["ops"]}},
    "d3": {"text": "Lunch is at noon.", "metadata": {"kind": "habit", "scopes": ["home"]}},
}
QUERIES: dict[str, Any] = {
    "q01": {"text": "How often is the key changed?", "metadata": {"source": "written"}},
    "q02": "when do we eat",
}
JUDGEMENTS = [("q01", "d1", 1), ("q02", "d3", 1)]
ASKED: dict[str, Any] = {"text": "who tries the backups?", "relevant": ["d2"]}


@pytest.fixture
def kb(space: Space) -> Space:
    """A small set with kinds and scopes, measured by no arm."""
    space.set(DOCUMENTS, QUERIES, JUDGEMENTS, INLINE, name="set")
    return space


def asked(kb: Space, *questions: Mapping[str, Any] | str, name: str = "asked.jsonl") -> Path:
    """Write a file of questions; a text is a line as it is."""
    path = kb.root / name
    path.write_text("".join((q if isinstance(q, str) else json.dumps(q)) + "\n" for q in questions), "utf-8")
    return path


def faults(kb: Space, *questions: Mapping[str, Any] | str, options: tuple[str, ...] = ()) -> list[str]:
    """What is wrong with questions, as `line  message`; nothing may have been written."""
    before = content(kb.root / "set")
    file = asked(kb, *questions)
    done = kb.core("query", "add", "set", file.name, *options)
    assert (done.code, done.out) == (2, ""), done
    assert content(kb.root / "set") == before
    *told, last = done.err.splitlines()
    assert last == f"{len(told)} fault{'s' * (len(told) != 1)}; nothing was added."
    return [line.removeprefix("asked.jsonl:") for line in told]


def test_real_agents_questions_are_appended_by_a_command_that_reviews_them(kb: Space) -> None:
    """A6: what is there stays byte for byte, the new questions come behind it, marked with who asked."""
    before = content(kb.root / "set")
    asked(
        kb,
        ASKED | {"category": "indirect"},
        {
            "text": "Is there a meal, and when?",
            "relevant": {"d3": 2, "d2": 0},
            "kind": "habit",
            "scope": "home",
        },
        {"text": "Whose job is the key?", "relevant": ["d1"], "exclude": ["d3"], "id": "mine"},
    )
    done = kb.core("query", "add", "set", "asked.jsonl")
    assert (done.code, done.err) == (0, "")
    after = content(kb.root / "set")
    assert {name for name in after if after[name] != before[name]} == {"queries.jsonl", "qrels/test.tsv"}
    assert after["queries.jsonl"] == before["queries.jsonl"] + (
        b'{"_id": "q3b3d58", "text": "who tries the backups?", '
        b'"metadata": {"category": "indirect", "source": "agent"}}\n'
        b'{"_id": "q69a819", "text": "Is there a meal, and when?", '
        b'"metadata": {"kind": "habit", "scope": "home", "source": "agent"}}\n'
        b'{"_id": "mine", "text": "Whose job is the key?", "metadata": {"exclude": ["d3"], "source": "agent"}}\n'
    )
    assert after["qrels/test.tsv"] == before["qrels/test.tsv"] + (
        b"q3b3d58\td2\t1\nq69a819\td3\t2\nq69a819\td2\t0\nmine\td1\t1\n"
    )
    dataset = load(kb.root / "set")
    assert [query.id for query in dataset.queries] == ["q01", "q02", "q3b3d58", "q69a819", "mine"]
    assert (
        done.out.splitlines()[0]
        == "query add  things   3 questions added, source agent: 2 → 5 queries in test"
    )


def test_a_dry_run_does_all_but_the_writing(kb: Space) -> None:
    before = content(kb.root / "set")
    asked(kb, ASKED)
    done = kb.core("query", "add", "set", "asked.jsonl", "--dry-run", "--source", "people")
    assert done.code == 0
    assert "1 question would be added, source people: 2 → 3 queries in test" in done.out
    assert content(kb.root / "set") == before


def test_json_is_the_contract(kb: Space) -> None:
    kb.arm()
    asked(kb, "", ASKED | {"text": "Backups are tried twice a year"}, name="a.ndjson")
    done = kb.core("query", "add", "set", "a.ndjson", "--format", "json", "--dry-run")
    found = Added.model_validate_json(done.out)
    assert found.model_dump(by_alias=True, exclude={"next"}) == {
        "schema": "added-v1",
        "name": "things",
        "folder": "set",
        "split": "test",
        "source": "agent",
        "dry_run": True,
        "before": 2,
        "queries": 3,
        "added": (
            {"id": "q1592cf", "text": "Backups are tried twice a year", "relevant": {"d2": 1}, "line": 2},
        ),
        "warnings": ("a.ndjson:2: stands word for word in 'd2': 'Backups are tried twice a year'",),
        "arms": ("arm",),
    }


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("text,relevant\nwho tries the backups?,d2\n", [("q3b3d58", "who tries the backups?", ["d2"])]),
        (
            'id,relevant,text\r\nx,d1 d2,"why, and\nwhen?"\r\n\r\n,d1;d3 ; ,who?\r\n',
            [("x", "why, and\nwhen?", ["d1", "d2"]), ("q1d8176", "who?", ["d1", "d3"])],
        ),
        ("\ufefftext,relevant,kind,exclude\nwho?,d3,habit,d1;d2,\n", [("q1d8176", "who?", ["d3"])]),
    ],
)
def test_questions_come_as_csv_too(kb: Space, text: str, rows: list[tuple[str, str, list[str]]]) -> None:
    (kb.root / "a.csv").write_bytes(text.encode())
    done = kb.core("query", "add", "set", "a.csv")
    assert (done.code, done.err) == (0, "")
    truth = judged(kb.root / "set")
    assert [(q["_id"], q["text"], truth[q["_id"]]) for q in queries(kb.root / "set")[2:]] == rows


# ------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ({"text": "who?", "relevant": ["d33"]}, ["document 'd33' is not in the corpus; did you mean 'd3'?"]),
        (
            {"text": "who?", "relevant": ["d1"], "exclude": ["zzz"]},
            ["document 'zzz' is not in the corpus"],
        ),
        ({"text": " \t", "relevant": ["d1"]}, ["text ' \\t' is empty"]),
        ({"relevant": ["d1"]}, ["has no 'text'"]),
        ({"text": 5, "relevant": ["d1"]}, ["text 5 is not a text"]),
        ({"text": "who?"}, ["has no 'relevant'; name the documents that answer it"]),
        ({"text": "who?", "relevant": []}, ["has no 'relevant'; name the documents that answer it"]),
        (
            {"text": "who?", "relevant": {"d1": 0}},
            ["has no document of a grade above 0; name one that answers it"],
        ),
        ({"text": "who?", "relevant": "d1"}, ["relevant 'd1' should be a list of document ids, or a table"]),
        ({"text": "who?", "relevant": ["d1", "d1"]}, ["names 'd1' relevant twice"]),
        (
            {"text": "who?", "relevant": {"d1": True, "d2": -1, "d3": 1.0}},
            ["grade True of 'd1'", "grade -1 of 'd2'", "grade 1.0 of 'd3'"],
        ),
        ({"text": "who?", "relevant": {"d1": 10**9}}, ["grade 1000000000 of 'd1' should be a whole number"]),
        ({"text": "who?", "relevant": ["d1"], "exclude": ["d1"]}, ["judges 'd1' relevant and excludes it"]),
        (
            {"text": "who?", "relevant": ["d1"], "exclude": "d1"},
            ["exclude 'd1' is not a list of document ids"],
        ),
        ({"text": "who?", "relevant": ["d1"], "id": "q01"}, ["id 'q01' is taken in the set; leave it out"]),
        ({"text": "who?", "relevant": ["d1"], "id": "a b"}, ["id 'a b' holds white space"]),
        ({"text": "who?", "relevant": ["d1"], "id": 3}, ["id 3 is not a text"]),
        ({"text": "who?", "relevant": ["d1"], "kind": ""}, ["kind '' should be a text"]),
        ({"text": "who?", "relevant": ["d1"], "category": ["x"]}, ["category ['x'] should be a text"]),
        ({"text": "who?", "relevant": ["d1"], "knd": "x"}, ["unknown key 'knd'; did you mean 'kind'?"]),
        (
            {"text": "who?", "relevant": ["d1"], "kind": "habit"},
            ["kind 'habit': 'd1' is judged relevant and has"],
        ),
        (
            {"text": "who?", "relevant": ["d1"], "scope": "home"},
            ["judges 'd1' relevant, which is outside its scope"],
        ),
        (
            {"text": "who?", "relevant": ["d1"], "scope": "hme"},
            ["scope 'hme': no document has it; did you mean 'home'?"],
        ),
        (
            {"text": "WHEN do\twe eat ?!", "relevant": ["d3"]},
            ["text 'WHEN do\\twe eat ?!' is asked already, by 'q02'"],
        ),
        (
            {"text": "Is the key changed how often?", "relevant": ["d1"]},
            ["text 'Is the key changed how often?' has 100% of its words in common with 'q01' of the set"],
        ),
        ("{", ["not JSON: "]),
        ("[]", ["expected a JSON object, not a list"]),
        ('{"text": "a", "text": "b", "relevant": ["d1"]}', ["not JSON: key 'text' is given twice"]),
        ('{"text": "\\ud800", "relevant": ["d1"]}', ["holds a lone surrogate escape"]),
    ],
)
def test_what_is_wrong_with_a_question_is_said_with_its_line(
    kb: Space, question: Mapping[str, Any] | str, told: list[str]
) -> None:
    found = faults(kb, ASKED, question)
    assert [line.startswith(f"2: {want}") for line, want in zip(found, told, strict=True)] == [True] * len(
        told
    ), found


def test_every_fault_of_a_file_is_told_at_once_in_order_of_line(kb: Space) -> None:
    found = faults(
        kb,
        {"text": "", "relevant": {"d7": True}, "id": "q02"},
        "nonsense",
        ASKED,
        {"text": "who tries the backups", "relevant": ["d2"], "id": "a", "scope": "no", "kind": "habit"},
        {"text": "Backups: who tries the?", "relevant": ["d2"], "id": "a"},
    )
    assert [line.partition(": ")[0] for line in found] == ["1", "1", "1", "1", "2", "4", "4", "4", "5", "5"]
    assert any(
        line.startswith("4: text 'who tries the backups' is asked already, by line 3") for line in found
    )
    assert any(line.startswith("5: id 'a' again (first at line 4)") for line in found)
    assert any("has 100% of its words in common with line 3" in line for line in found)


def test_nearly_the_same_words_are_taken_where_that_is_meant(kb: Space) -> None:
    words = "one two three four five six seven eight nine"
    asked(kb, ASKED | {"text": words}, ASKED | {"text": f"{words} ten"})
    assert kb.core("query", "add", "set", "asked.jsonl").code == 2, "9 of 10 words are 0.9"
    done = kb.core("query", "add", "set", "asked.jsonl", "--allow-similar")
    assert done.code == 0, done.err
    asked(kb, ASKED | {"text": words.upper()})
    assert kb.core("query", "add", "set", "asked.jsonl", "--allow-similar").code == 2, "the same is the same"
    eight = words.removesuffix(" nine")
    kb.set(DOCUMENTS, QUERIES, JUDGEMENTS, INLINE, name="set")
    asked(kb, ASKED | {"text": eight}, ASKED | {"text": words})
    assert kb.core("query", "add", "set", "asked.jsonl").code == 0, "8 of 9 words are less"


@pytest.mark.parametrize(
    ("name", "text", "code", "told"),
    [
        ("a.csv", "text,relevnt\nwho?,d1\n", 2, "a.csv:1: unknown key 'relevnt'; did you mean 'relevant'?"),
        ("a.csv", "text:relevant\nwho?:d1\n", 2, "a.csv:1: has no column 'text'"),
        ("a.csv", "text,relevant,text\n", 2, "a.csv:1: column 'text' is there twice"),
        ("a.csv", "text,relevant\nwho, or what,d1\n", 2, "a.csv:2: has 3 cells and the header 2 columns"),
        ("a.csv", 'text,relevant\n"x\ny",d1\nwho?,\n', 2, "a.csv:4: has no 'relevant'"),
        ("a.csv", 'text,relevant\n"who?,d1\n', 2, "a.csv:2: not CSV: "),
        ("a.csv", "", 2, "a.csv:1: is empty; expected a header of text, relevant, "),
        ("a.csv", "text,relevant\n", 2, "a.csv: holds no question"),
        ("a.jsonl", "\n\n", 2, "a.jsonl: holds no question"),
        ("a.txt", "who?", 2, "a.txt: questions are JSON lines or CSV"),
        ("none.jsonl", None, 2, "none.jsonl: there is no such file"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(
    kb: Space, name: str, text: str | None, code: int, told: str
) -> None:
    before = content(kb.root / "set")
    if text is not None:
        (kb.root / name).write_bytes(text.encode())
    done = kb.core("query", "add", "set", name)
    assert (done.code, done.out) == (code, "")
    assert told in done.err
    assert content(kb.root / "set") == before


def test_bytes_that_are_no_text_have_their_line(kb: Space) -> None:
    (kb.root / "a.csv").write_bytes(b"text,relevant\nwho?,d1\nwh\xff,d1\n")
    assert "a.csv:3: not UTF-8: byte 0xff" in kb.core("query", "add", "set", "a.csv").err


@pytest.mark.parametrize("source", ["", " "])
def test_nobody_is_no_source(kb: Space, source: str) -> None:
    asked(kb, ASKED)
    done = kb.core("query", "add", "set", "asked.jsonl", "--source", source)
    assert (done.code, "--source is empty; say who asked" in done.err) == (2, True)


# ------------------------------------------------------------- what to look at


def test_a_question_that_stands_in_a_document_is_shown(kb: Space) -> None:
    """Four words or more; a document that it excludes does not count, one that is not judged is told apart."""
    asked(
        kb,
        {"text": "LUNCH is at noon?", "relevant": ["d2"]},
        {"text": "key is changed every", "relevant": ["d1"]},
        {"text": "lunch at noon", "relevant": ["d3"]},
        {"text": "backups are tried twice", "relevant": ["d1"], "exclude": ["d2"]},
        {"text": "unch is at noo", "relevant": ["d1"]},
    )
    done = kb.core("query", "add", "set", "asked.jsonl", "--format", "json")
    assert Added.model_validate_json(done.out).warnings == (
        "asked.jsonl:1: stands word for word in 'd3', not judged relevant: 'LUNCH is at noon?'",
        "asked.jsonl:2: stands word for word in 'd1': 'key is changed every'",
    )


# ------------------------------------------------------------- ids


@pytest.mark.parametrize(
    ("present", "given", "found"),
    [
        # sha256 of "x" begins with 2d711642b726.
        (["q54", "q55"], ["", ""], ["q2d7116", "q2d71164"]),
        (["q001", "q009"], ["", "q011", ""], ["q2d7116", "q011", "q2d71164"]),
        (["1", "225"], [""], ["2d7116"]),
        (["case-a-7", "case-a-9", "b-90"], [""], ["case-a-2d7116"]),
        (["alpha", "beta"], [""], ["q2d7116"]),
        (["alpha", "beta", "q2d7116"], ["", "q2"], ["q2d71164", "q2"]),
        (["5f3", "a12", "b7", "c0"], [""], ["q2d7116"]),
        ([], [""], ["q2d7116"]),
    ],
)
def test_an_id_follows_the_words_and_the_set(present: list[str], given: list[str], found: list[str]) -> None:
    taken = Present(dict.fromkeys(present, ""), frozenset(present))
    questions = [Question(line, "x", {"d1": 1}, id=name) for line, name in enumerate(given)]
    assert next_ids(taken, questions) == found


def test_an_id_of_another_split_is_taken(kb: Space) -> None:
    (kb.root / "set/qrels/dev.tsv").write_text("query-id\tcorpus-id\tscore\nq03\td1\t1\nq3b3d58\td1\t1\n")
    append(kb.root / "set/queries.jsonl", lines({"q03": "one of another split"}))
    asked(kb, ASKED)
    assert kb.core("query", "add", "set", "asked.jsonl", "--split", "test").code == 0
    found = [query["_id"] for query in queries(kb.root / "set")]
    assert found == ["q01", "q02", "q03", "q3b3d580"], "q3b3d58 is judged there, and asked nowhere"
    asked(kb, {"text": "who is it then?", "relevant": ["d1"], "id": "q03"})
    assert "id 'q03' is taken" in kb.core("query", "add", "set", "asked.jsonl").err
    asked(kb, {"text": "One of another split", "relevant": ["d1"]})
    assert "is asked already, by 'q03'" in kb.core("query", "add", "set", "asked.jsonl").err


# ------------------------------------------------------------- the files


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("closed", [True, False])
def test_what_is_there_is_kept_and_line_ends_are_the_files_own(kb: Space, end: bytes, closed: bool) -> None:
    paths = [kb.root / "set/queries.jsonl", kb.root / "set/qrels/test.tsv"]
    for path in paths:
        raw = path.read_bytes().replace(b"\n", end)
        path.write_bytes(raw if closed else raw.removesuffix(end))
    before = [path.read_bytes() for path in paths]
    asked(kb, ASKED)
    assert kb.core("query", "add", "set", "asked.jsonl").code == 0
    for path, was in zip(paths, before, strict=True):
        raw = path.read_bytes()
        assert raw.startswith(was)
        assert raw.endswith(end)
        assert raw.count(b"\n") == raw.count(end) == was.count(end) + 1 + (not closed)
    assert len(load(kb.root / "set").queries) == 3


def test_a_link_to_a_file_stays_one(kb: Space) -> None:
    real = kb.root / "elsewhere.jsonl"
    (kb.root / "set/queries.jsonl").rename(real)
    (kb.root / "set/queries.jsonl").symlink_to(real)
    asked(kb, ASKED)
    assert kb.core("query", "add", "set", "asked.jsonl").code == 0
    assert (kb.root / "set/queries.jsonl").is_symlink()
    assert len(real.read_text().splitlines()) == 3


class Failing:
    """Stands for a rename of which the ones named by number fail."""

    def __init__(self, *numbers: int, error: BaseException | None = None) -> None:
        self.numbers, self.calls = numbers, 0
        self.error = error or OSError(28, "No space left on device")
        self.replace = os.replace

    def __call__(self, source: Any, target: Any) -> None:
        self.calls += 1
        if self.calls in self.numbers:
            raise self.error
        self.replace(source, target)


@pytest.mark.parametrize("number", [1, 2])
def test_where_one_file_cannot_be_put_in_place_neither_is(
    kb: Space, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(kb.root / "set")
    asked(kb, ASKED)
    failing = Failing(number)
    monkeypatch.setattr("os.replace", failing)
    done = kb.core("query", "add", "set", "asked.jsonl")
    monkeypatch.undo()
    assert done.code == 3
    assert "cannot be written: No space left on device; nothing was added" in done.err
    assert content(kb.root / "set") == before
    assert failing.calls == [1, 3][number - 1], "what had taken its place was put back"


def test_an_interruption_between_the_two_leaves_the_set_as_it_was(
    kb: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(kb.root / "set")
    asked(kb, ASKED)
    monkeypatch.setattr("os.replace", Failing(2, error=KeyboardInterrupt()))
    assert kb.core("query", "add", "set", "asked.jsonl").code == 3
    monkeypatch.undo()
    assert content(kb.root / "set") == before


def test_a_file_that_cannot_be_put_back_is_named_with_the_mend(
    kb: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(kb, ASKED)
    monkeypatch.setattr("os.replace", Failing(2, 3))
    done = kb.core("query", "add", "set", "asked.jsonl")
    monkeypatch.undo()
    assert done.code == 3
    assert "queries.jsonl: holds 1 new lines whose judgements could not be written" in done.err
    assert "Remove its last 1 lines" in done.err


def test_a_file_that_another_process_changed_meanwhile_is_left_to_it(
    kb: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(kb, ASKED)
    path = kb.root / "set/qrels/test.tsv"

    def slow(*arguments: Any, **options: Any) -> Any:
        append(path, "q01\td2\t1\n")
        return load(*arguments, **options)

    monkeypatch.setattr("eval_core.authoring.questions.append.load", slow)
    done = kb.core("query", "add", "set", "asked.jsonl")
    assert done.code == 3
    assert (
        "was changed while the questions were reviewed; nothing was added\n  Run the command again"
        in done.err
    )
    assert path.read_text().endswith("q01\td2\t1\n")
    assert len(queries(kb.root / "set")) == 2


def test_a_set_that_is_not_sound_gets_nothing(kb: Space) -> None:
    append(kb.root / "set/qrels/test.tsv", "q09\td1\t1\n")
    before = content(kb.root / "set")
    asked(kb, ASKED)
    done = kb.core("query", "add", "set", "asked.jsonl")
    assert done.code == 2
    assert "set/qrels/test.tsv:4: judges for query 'q09', which is not in queries.jsonl" in done.err
    assert content(kb.root / "set") == before


# ------------------------------------------------------------- where the corpus is


def test_a_plain_beir_folder_takes_questions(space: Space) -> None:
    space.set(DOCUMENTS, QUERIES, JUDGEMENTS)
    asked(space, ASKED)
    assert space.core("query", "add", "set", "asked.jsonl").code == 0
    assert len(load(space.root / "set").queries) == 3


def test_a_set_with_sources_is_held_against_its_reconstructed_corpus(space: Space) -> None:
    """A2: its documents are those of the pinned commit, and a corpus of another recipe is none of it."""
    sha = commit(space.root / "lib", {"a b.md": "How to begin.", "sub/c.md": "How to end."})
    recipe = f'[[corpus.source]]\nname = "lib"\ntype = "git"\npath = "../lib"\ncommit = "{sha}"\n'
    space.set({}, {"q1": "how is it begun"}, [("q1", "lib/a%20b.md", 1)], f'name = "kb"\n{recipe}')
    (space.root / "set/corpus.jsonl").unlink()
    asked(space, {"text": "how does it end", "relevant": ["lib/C.md"]})
    done = space.core("query", "add", "set", "asked.jsonl")
    assert done.code == 3
    assert "the corpus of 'kb' is not built yet\n  eval-core reconstruct set" in done.err
    assert space.core("reconstruct", "set").code == 0
    done = space.core("query", "add", "set", "asked.jsonl")
    assert "document 'lib/C.md' is not in the corpus; did you mean 'lib/sub/c.md'?" in done.err
    asked(space, {"text": "how does it end", "relevant": ["lib/sub/c.md"]})
    assert space.core("query", "add", "set", "asked.jsonl").code == 0
    append(space.root / "set/dataset.toml", 'exclude = ["sub/**"]\n')
    asked(space, {"text": "is there another one", "relevant": ["lib/sub/c.md"]})
    done = space.core("query", "add", "set", "asked.jsonl")
    assert done.code == 3
    assert "was built by another recipe" in done.err


@pytest.mark.parametrize("extra", ['prefix = "p"\n', '[corpus.source.metadata]\nscopes = ["all"]\n'])
def test_inline_documents_that_a_recipe_changes_are_reconstructed_first(space: Space, extra: str) -> None:
    prefix = "p/" if "prefix" in extra else ""
    judgements = [(query, prefix + document, grade) for query, document, grade in JUDGEMENTS]
    space.set(DOCUMENTS, QUERIES, judgements, INLINE + extra)
    asked(space, ASKED | {"relevant": [f"{prefix}d2"]})
    assert space.core("query", "add", "set", "asked.jsonl").code == 3
    assert space.core("reconstruct", "set").code == 0
    assert space.core("query", "add", "set", "asked.jsonl").code == 0


def test_a_set_that_is_not_there_is_named(space: Space) -> None:
    space.set(DOCUMENTS, QUERIES, JUDGEMENTS)
    asked(space, ASKED)
    done = space.core("query", "add", "sett", "asked.jsonl")
    assert done.code == 2
    assert "sett: there is no such dataset folder; did you mean 'set'?" in done.err


# ------------------------------------------------------------- what to make anew


def test_the_commands_that_move_the_bar_are_said(kb: Space) -> None:
    kb.arm(name="one")
    kb.arm(name="two", text='split = "test"')
    kb.arm(name="other", dataset="other")
    kb.arm(name="dev", text='split = "dev"')
    kb.arm(name="chosen", text='select = { category = ["graph"] }')
    asked(kb, ASKED)
    done = kb.core("query", "add", "set", "asked.jsonl", "--dry-run")
    assert done.code == 0, done.err
    assert [line.strip() for line in done.out.splitlines() if line.startswith("  eval-")] == [
        "eval-gate floor one two --measure --reason 'task=1 question added, source agent'",
        "eval-gate floor one two --reason 'task=1 question added, source agent' --write",
    ]
    asked(kb, ASKED | {"category": "graph"})
    done = kb.core("query", "add", "../space/set", kb.root / "asked.jsonl", "--format", "json")
    assert Added.model_validate_json(done.out).arms == ("one", "two", "chosen")


def test_without_an_arm_nothing_is_to_be_made_anew(kb: Space) -> None:
    asked(kb, ASKED)
    assert "No eval.toml is here" in kb.core("query", "add", "set", "asked.jsonl", "--dry-run").out
    kb.arm(dataset="other")
    assert "No arm of eval.toml asks these questions" in kb.core("query", "add", "set", "asked.jsonl").out


def test_a_workspace_elsewhere_is_named_by_its_file(kb: Space, tmp_path: Path) -> None:
    kb.arm()
    file = asked(kb, ASKED)
    done = kb.core("query", "add", kb.root / "set", file, "--config", kb.config, where=tmp_path)
    assert done.code == 0
    assert f"until the bar is moved in {kb.root}:\n" in done.out
    assert "\n  git add set\n  git commit -m '1 question added, source agent'\n" in done.out
    done = kb.core("query", "add", kb.root / "set", file, "--config", "no.toml", where=tmp_path)
    assert (done.code, "no.toml: there is no such file" in done.err) == (2, True)


def test_a_document_that_an_arms_filter_would_hide_is_a_fault(space: Space) -> None:
    """As measuring would fault it, but before it is in the set."""
    documents = {"d1": {"text": "one", "metadata": {"category": "x"}}, "d2": "two"}
    space.set(documents, {"q1": {"text": "which", "metadata": {"category": "x"}}}, [("q1", "d1", 1)])
    asked(space, {"text": "who?", "relevant": ["d2"], "category": "x"})
    assert space.core("query", "add", "set", "asked.jsonl", "--dry-run").code == 0
    space.arm(text='filter_from = ["category"]', backend="bm25")
    done = space.core("query", "add", "set", "asked.jsonl")
    assert done.code == 2
    assert (
        "asked.jsonl:1: category 'x': 'd2' is judged relevant and has category None; a filter would hide it"
        in done.err
    )


def test_round2_s2_the_commands_that_are_said_move_the_bar(shelves: Space) -> None:
    """A6, S2: the gate refuses the grown set, and the commands that are printed, followed as they are, are enough."""
    eval_gate = pytest.importorskip("eval_gate.cli")
    import shlex
    import subprocess

    from core_support import call

    def run(command: str) -> int:
        script, *arguments = shlex.split(command)
        if script == "git":
            identity = ["-c", "user.name=n", "-c", "user.email=n@example.org"]
            return subprocess.run(["git", *identity, *arguments], cwd=shelves.root, check=False).returncode
        main = {"eval-core": _core, "eval-gate": eval_gate.main}[script]
        return call(main, *arguments, where=shelves.root).code

    # So many that no random ranking reaches the floors.
    names = [f"{number:02}" for number in range(1, 61)]
    documents = {f"d{name}": f"thing {name} on shelf {name}" for name in names}
    judged = [(f"q{name}", f"d{name}", 1) for name in names[:20]]
    shelves.set(documents, {f"q{name}": f"thing {name}" for name in names[:20]}, judged, INLINE)
    shelves.arm(backend="bm25")
    (shelves.root / ".gitignore").write_text(".eval\n")
    first = ["git init -q", "git add .", "git commit -qm set", "eval-gate floor arm --measure --write"]
    grade = ["git add policy", "git commit -qm policy", "eval-core measure arm", "eval-gate check"]
    assert [run(command) for command in (*first, *grade)] == [0] * 8
    asked(shelves, {"text": "what is on shelf 30", "relevant": ["d30"]})
    done = shelves.core("query", "add", "set", "asked.jsonl", "--format", "json")
    (shelves.root / "asked.jsonl").unlink()
    *commit, propose, write = Added.model_validate_json(done.out).next
    assert [run(command) for command in commit] == [0, 0]
    assert [run("eval-core measure arm"), run("eval-gate check")] == [0, 1]
    assert [run(command) for command in (propose, write, *grade)] == [0] * 6


def _core() -> None:
    from eval_core.cli import main

    main()


# ------------------------------------------------------------- always


TEXTS = [
    "who?",
    "what is tried twice a year",
    "is there a meal",
    "Why is the key changed",
    "the reason for lunch",
    "x y z",
]
GOOD: list[dict[str, Any]] = [
    {"relevant": ["d1"]},
    {"relevant": ["d2", "d3"]},
    {"relevant": {"d1": 2, "d3": 0}, "kind": "fact"},
    {"relevant": ["d3"], "scope": "home", "exclude": ["d1"]},
    {"relevant": ["d2"], "id": "n"},
    {"relevant": ["d2"], "id": "q05", "category": "c"},
]
BAD: list[dict[str, Any]] = [
    {"text": ""},
    {"text": "WHO"},
    {"text": "When do we eat"},
    {"text": "is the key changed why"},
    {"relevant": []},
    {"relevant": ["d4"]},
    {"relevant": {"d1": -1}},
    {"relevant": {"d1": True}},
    {"id": "q01"},
    {"id": "a b"},
    {"scope": "ops"},
    {"kind": "habit"},
    {"exclude": ["d2"]},
    {"knd": "x"},
]
ROWS = st.lists(
    st.tuples(st.sampled_from(TEXTS), st.sampled_from(GOOD), st.sampled_from([{}] * 30 + BAD)),
    min_size=1,
    max_size=4,
    unique_by=lambda row: row[0],
).map(lambda rows: [{"text": text, **good, **bad} for text, good, bad in rows])


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """The set as it was at first, each time in a folder of its own."""
    return lambda: write_set(tmp_path_factory.mktemp("kb") / "set", DOCUMENTS, QUERIES, JUDGEMENTS, INLINE)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS, st.booleans())
def test_either_nothing_is_added_or_the_set_loads_with_all_of_it(
    pristine: Callable[[], Path], questions: list[dict[str, Any]], similar: bool
) -> None:
    """A6: whatever is asked, no half of it is ever in the set, and what was there is there."""
    from eval_core.authoring.questions.add import add_questions
    from eval_core.errors import Faults

    folder = pristine()
    before = content(folder)
    file = folder.parent / "asked.jsonl"
    file.write_text("".join(json.dumps(question) + "\n" for question in questions))
    try:
        found = add_questions(folder, file, "agent", output=folder.parent, allow_similar=similar)
    except Faults:
        assert content(folder) == before
        return
    except CouldNot as error:
        raise AssertionError("nothing is absent here") from error
    dataset = load(folder)
    assert len(dataset.queries) == len(QUERIES) + len(questions) == found.queries
    after = content(folder)
    assert all(after[name].startswith(raw) for name, raw in before.items())
    assert after.keys() == before.keys()
    for added, question in zip(found.added, questions, strict=True):
        assert set(dataset.judgements[added.id]) == set(question["relevant"])
