"""What a person meets at work: merge conflicts, a set that begins, uncommitted files."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from core_support import call

from eval_core.authoring.questions.file import Question
from eval_core.authoring.questions.review import Present, next_ids
from eval_core.cli import main

MARKS = "<<<<<<< HEAD\n{ours}\n=======\n{theirs}\n>>>>>>> topic\n"
CORPUS = '{"_id": "a.md", "text": "rotate the key"}\n{"_id": "b.md", "text": "the cache"}\n'
QUERIES = '{"_id": "q1", "text": "who rotates?"}\n'
QRELS = "query-id\tcorpus-id\tscore\nq1\ta.md\t1\n"
FILES = {
    "set/corpus.jsonl": CORPUS,
    "set/queries.jsonl": QUERIES,
    "set/qrels/test.tsv": QRELS,
    "set/dataset.toml": 'name = "set"\n',
    "eval.toml": '[arms."a"]\ndataset = "set"\nbackend = "bm25"\n',
    "policy/floors.toml": 'schema = "floors-v2"\n',
    "run.trec": "q1 Q0 a.md 1 1.0 t\n",
    "gold.csv": "question,expected\nwho rotates?,a.md\n",
}
READERS = {
    "set/corpus.jsonl": ("validate", "set"),
    "set/queries.jsonl": ("validate", "set"),
    "set/qrels/test.tsv": ("measure",),
    "set/dataset.toml": ("inspect", "set"),
    "eval.toml": ("measure",),
    "policy/floors.toml": ("publish", "--check", "README.md"),
    "run.trec": ("score", "--run", "run.trec", "--qrels", "set/qrels/test.tsv"),
}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "README.md").write_text("<!-- metric a recall@10 -->1.000<!-- /metric -->\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", READERS)
def test_round2_s12_a_file_that_git_could_not_merge_says_so(desk: Path, name: str) -> None:
    """S12: one message for every form, with the line of the marks and what to do."""
    text = FILES[name]
    (desk / name).write_text(text + MARKS.format(ours=text.splitlines()[-1], theirs="x"))
    done = call(main, *READERS[name], where=desk)
    told = done.out + done.err
    line = text.count("\n") + 1
    assert re.search(rf"{re.escape(name)}:{line}: holds the marks of a merge conflict", told), told
    assert ("move the bar" in told) == name.startswith("policy") and done.code == 2
    assert "Traceback" not in told and told.count("merge conflict") == 1


def test_round2_s12_a_first_question_begins_the_set(desk: Path) -> None:
    """S12: a set without queries takes its first ones, with the header of its judgements."""
    (desk / "set" / "queries.jsonl").unlink()
    (desk / "set" / "qrels" / "test.tsv").unlink()
    (desk / "asked.jsonl").write_text('{"text": "who rotates the keys?", "relevant": ["a.md"]}\n')
    assert call(main, "query", "add", "set", "asked.jsonl", "--dry-run", where=desk).code == 0
    assert not (desk / "set" / "queries.jsonl").exists()
    assert call(main, "query", "add", "set", "asked.jsonl", where=desk).code == 0
    (query,) = [json.loads(line) for line in (desk / "set" / "queries.jsonl").read_text().splitlines()]
    assert (
        desk / "set" / "qrels" / "test.tsv"
    ).read_text() == f"query-id\tcorpus-id\tscore\n{query['_id']}\ta.md\t1\n"
    assert "sound" in call(main, "validate", "set", where=desk).out


def test_round2_s12_two_branches_choose_two_ids_for_two_questions() -> None:
    """S12: an id follows from the words, not from how many there are."""
    held = Present({"q54": "x", "q55": "y"}, frozenset({"q54", "q55"}))
    one, other = Question(1, "who rotates the keys?", {}), Question(1, "where is the cache?", {})
    ours, theirs = next_ids(held, [one])[0], next_ids(held, [other])[0]
    assert ours != theirs and next_ids(held, [other, one]) == [theirs, ours]
    assert re.fullmatch(r"q[0-9][0-9a-f]{5}", ours)
    taken = Present(held.texts, frozenset({ours}))
    assert next_ids(taken, [one])[0].startswith(ours) and len(next_ids(taken, [one])[0]) == len(ours) + 1


def test_round2_s16_uncommitted_files_are_named(desk: Path) -> None:
    """S16: a report names the first files that no commit holds."""
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True)
    for name in ("log.txt", "set/notes.txt"):
        (desk / name).write_text("x")
    assert call(main, "measure", where=desk).code == 0
    held = json.loads(next((desk / ".eval" / "reports").glob("*.json")).read_text())["environment"]
    assert held["dirty"] is True and held["changed"] == ["log.txt", "set/notes.txt"]
