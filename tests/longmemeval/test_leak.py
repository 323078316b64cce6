"""What a system under test is given does not tell the gold, and measuring many scopes leaves nothing behind."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from lme_support import Desk, lines, peak, record, telling

from longmemeval_convert.synth import Generator

#: A system that keeps all that it is given: its corpus, its requests, and its process id.
SPY = """
import json, os, sys
with open(sys.argv[2], "a") as log:
    log.write(json.dumps({"pid": os.getpid(), "corpus": open(sys.argv[1]).read(), "at": sys.argv[1]}) + "\\n")
    for line in sys.stdin:
        log.write(json.dumps({"request": line}) + "\\n")
        print(json.dumps({"ids": []}), flush=True)
"""


def synthetic(questions: int, fillers: tuple[int, int] = (6, 7)) -> bytes:
    return "".join(Generator("s", 3, questions, fillers).chunks()).encode()


def originals(data: bytes) -> set[str]:
    """Every id of a file."""
    names: set[str] = set()
    for value in json.loads(data):
        names |= {value["question_id"], *value["haystack_session_ids"]}
    return names


@pytest.mark.parametrize("options", [[], ["--granularity", "turn", "--text", "all", "--gold", "authors"]])
def test_leak_no_file_of_a_set_holds_an_original_id(desk: Desk, options: list[object]) -> None:
    """M9: gbrain and hindsight put answer_… into what they index; here it is in no file of the set."""
    data = synthetic(40)
    folder = desk.set(data, *options)
    ids = originals(data)
    assert len(ids) > 250
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) == 6
    for path in files:
        held = path.read_bytes()
        assert telling(held) == [], path
        assert [name for name in ids if name.encode() in held] == [], path
    beside = (desk.root / "set.ids.jsonl").read_bytes()
    assert telling(beside) == ["answer_", "_abs"], "the map is beside the set"
    assert {n for one in lines(desk.root / "set.ids.jsonl") for n in one["documents"].values()} < ids


def test_leak_no_request_and_no_file_that_a_backend_is_given_tells_the_gold(desk: Desk) -> None:
    data = synthetic(6)
    desk.set([*json.loads(data), record("x_abs")])
    (desk.root / "spy.py").write_text(SPY)
    log = desk.root / "log.jsonl"
    command = ["{python}", "spy.py", "{corpus}", str(log)]
    desk.write(
        f'[arms."spy"]\ndataset = "set"\nsplit = "test"\nbackend = "jsonl"\nrepetitions = 1\n'
        f"options.command = {json.dumps(command)}\n".encode(),
        "eval.toml",
    )
    done = desk.core("measure", "-q")
    assert done.code == 0, done.err
    seen = lines(log)
    assert telling(log.read_bytes()) == []
    assert [name for name in originals(data) if name in log.read_text()] == []
    started = [one for one in seen if "pid" in one]
    assert len(started) == 6, "one a scope that is asked in"
    for one in started:
        scopes = {json.loads(line)["_id"].split("/")[0] for line in one["corpus"].splitlines()}
        assert len(scopes) == 1
        assert not Path(one["at"]).exists()
        with pytest.raises(ProcessLookupError):
            os.kill(one["pid"], 0)


def test_leak_of_500_scopes_nothing_is_left_and_memory_is_that_of_50(desk: Desk) -> None:
    """M9: an index a scope, built and dropped."""
    peaks = []
    for questions in (50, 500):
        folder = desk.root / str(questions)
        temporary = folder / "tmp"
        temporary.mkdir(parents=True)
        here = Desk(folder)
        here.write(synthetic(questions))
        done = here.convert("lme.json", "-o", "set")
        assert done.code == 0, done.err
        (folder / "eval.toml").write_text(done.out)
        before = here.left()
        arm = "longmemeval-other-session-user-bm25"
        peaks.append(peak("eval_core.cli", "measure", "-q", arm, where=folder, TMPDIR=str(temporary)))
        assert list(temporary.iterdir()) == []
        assert here.left() == sorted([*before, ".eval"])
        kept = {path.name.split(".", 1)[1] for path in (folder / ".eval").rglob("*.*") if path.is_file()}
        assert kept <= {"json", "jsonl", "trec", "intoto.jsonl"}
        report = json.loads(next((folder / ".eval" / "reports").glob("*bm25.json")).read_bytes())
        n = questions - questions * 30 // 500
        assert report["summary"]["overall"]["n"] == n
        assert f"{n} indexes, one a scope: one question each, no warm-up" in report["statements"]
    # A report of ten times the rows, and the limits of a set of ten times the texts: no index is among what is held.
    assert peaks[1] < 2 * peaks[0], peaks
