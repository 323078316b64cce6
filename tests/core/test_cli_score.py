"""`eval-core score`: what a person and a machine see, and how it ends."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import pytest
from core_support import Done, call
from scoring_support import put, ranked_lines, trec_qrels, trec_run

from eval_core.scoring.models import Score

RUN = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"b": 1.0, "a": 0.5}, "stranger": {"a": 1.0}}
QRELS = {"q2": {"a": 1}, "q1": {"a": 1}, "silent": {"x": 1}, "nothing": {"a": 0}}
NAMES = {"recall@5", "recall@10", "mrr", "ndcg@10", "map"}


def main() -> NoReturn:
    from eval_core.cli.app import run
    from eval_core.cli.score import score

    run(score, "eval-core score")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put(tmp_path, "run", trec_run(RUN) + "q1 Q0 a 9 0.1 t\n")
    put(
        tmp_path,
        "run",
        trec_run({"q1": RUN["q1"]}) + "q1 Q0 a 9 0.1 t\n" + trec_run({q: RUN[q] for q in ("q2", "stranger")}),
    )
    put(tmp_path, "lists", ranked_lines({q: list(s) for q, s in RUN.items()}))
    put(tmp_path, "qrels", trec_qrels(QRELS))
    return tmp_path


def score(folder: Path, *arguments: str, run: str = "run") -> Done:
    return call(main, "--run", run, "--qrels", "qrels", *arguments, where=folder)


def test_the_table_says_means_intervals_and_all_that_was_not_scored(folder: Path) -> None:
    done = score(folder, "-m", "mrr", "-m", "hit@1,ndcg@10")
    assert (done.code, done.err) == (0, "")
    rows = [line.split() for line in done.out.splitlines()]
    assert rows[0] == ["measure", "mean", "95%", "interval", "n", "mean", "of", "4"]
    assert [row[:2] + row[-2:] for row in rows[1:4]] == [
        ["mrr", "0.5000", "3", "0.3750"],
        ["hit@1", "0.3333", "3", "0.2500"],
        ["ndcg@10", "0.5436", "3", "0.4077"],
    ]
    counted = {line[:13].strip(): line[13:].split()[0] for line in done.out.splitlines()[5:13]}
    assert counted == {"scored": "3", "missing": "1", "unjudged": "1", "unscorable": "1"} | {
        "left out": "0",
        "duplicates": "1",
        "contradicted": "0",
        "tied": "0",
    }
    assert "they count 0 (silent)" in done.out
    assert "not in the mean (nothing)" in done.out
    assert "document ids, descending, as in trec_eval (--ties trec)" in done.out
    assert max(map(len, done.out.splitlines())) <= 100


def test_the_rule_for_ties_is_told_as_it_is(folder: Path) -> None:
    assert "ascending (--ties id)" in score(folder, "--ties", "id").out
    lists = score(folder, "--ties", "id", run="lists").out
    assert "--ties" not in lists
    assert "The order of each list is its ranking." in lists


def test_the_json_is_the_contract(folder: Path) -> None:
    """A3: the usual measures where none is named, and nothing but JSON on standard output."""
    done = score(folder, "--format", "json")
    value: dict[str, Any] = json.loads(done.out)
    Score.model_validate_json(done.out)
    assert (done.code, done.err) == (0, "")
    assert set(value["measures"]) == NAMES
    assert "queries" not in value
    assert value["counts"] == {
        "scored": 3,
        "missing": 1,
        "unjudged": 1,
        "unscorable": 1,
        "left_out": 0,
        "duplicates": 1,
        "skipped": 0,
        "contradicted": 0,
        "tied": 0,
    }
    assert (value["schema"], value["run"], value["qrels"]) == ("score-v1", "run", "qrels")
    assert (value["ties"], value["n"]) == ("trec", 3)
    assert value["measures"]["mrr"]["mean"] == 0.5
    assert 0 <= value["measures"]["mrr"]["low"] <= 0.5 <= value["measures"]["mrr"]["high"] <= 1


def test_each_query_in_json(folder: Path) -> None:
    done = score(folder, "--format", "json", "--per-query", "-m", "mrr,hit@1")
    Score.model_validate_json(done.out)
    assert list(json.loads(done.out)["queries"].items()) == [
        ("q2", {"mrr": 0.5, "hit@1": 0.0}),
        ("q1", {"mrr": 1.0, "hit@1": 1.0}),
        ("silent", {"mrr": 0.0, "hit@1": 0.0}),
    ]


def test_each_query_in_the_table(folder: Path) -> None:
    lines = score(folder, "--per-query", "-m", "mrr,hit@1").out.splitlines()
    assert [line.split() for line in lines[:5]] == [
        ["query", "mrr", "hit@1"],
        ["q2", "0.5000", "0.0000"],
        ["q1", "1.0000", "1.0000"],
        ["silent", "0.0000", "0.0000"],
        [],
    ]
    assert lines[5].split()[0] == "measure"


def test_csv_carries_any_id(tmp_path: Path) -> None:
    """Case 19: commas, quotes, letters of all alphabets."""
    names = ["a,b", 'say"so"', "früh", "=1+1"]
    put(tmp_path, "run", trec_run({q: {"d,1": 1.0} for q in names}))
    put(tmp_path, "qrels", trec_qrels({q: {"d,1": 1} for q in names}))
    done = score(tmp_path, "--format", "csv", "--per-query", "-m", "mrr,hit@1")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [row["query"] for row in rows] == ["", ""] + [q for q in names for _ in range(2)]
    assert [(r["measure"], r["value"], r["n"]) for r in rows[:2]] == [
        ("mrr", "1.0", "4"),
        ("hit@1", "1.0", "4"),
    ]
    assert {(r["value"], r["low"], r["high"], r["n"]) for r in rows[2:]} == {("1.0", "", "", "")}
    assert "duplicates" in done.err
    assert len(score(tmp_path, "--format", "csv", "-m", "mrr").out.splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("-m", "recal@5"), 2, "did you mean 'recall@5'?"),
        (
            ("-m", "recall@0"),
            2,
            "there is no measure 'recall@0'",
        ),  # 4 of those found: aborts the process elsewhere
        (("-m", "mrr,"), 2, "there is no measure ''"),
        (("--ties", "rank"), 2, "'rank' is not one of"),
        (("--qrels", "empty"), 2, "empty: holds no judgements"),  # 9 of those found: nan and exit 0 elsewhere
        (("--run", "empty"), 2, "empty: holds no ranking"),
        (("--run", "absent"), 2, "absent: there is no such run file"),
        (("--run", "."), 2, ".: is a folder; name a run file"),
        (("--run", "qrels", "--qrels", "run"), 2, "are --run and --qrels exchanged?"),
        (("--qrels", "other"), 2, "no query in common"),
    ],
)
def test_what_cannot_be_scored_ends_with_2_and_prints_no_number(
    folder: Path, arguments: tuple[str, ...], code: int, told: str
) -> None:
    put(folder, "empty", "")
    put(folder, "other", "elsewhere 0 a 1\n")
    for form in ("table", "json", "csv"):
        done = score(folder, *arguments, "--format", form)
        assert (done.code, done.out) == (code, "")
        assert told in done.err


def test_a_measure_named_twice_is_computed_once(folder: Path) -> None:
    value = json.loads(score(folder, "-m", "mrr, hit@1", "-m", "mrr", "--format", "json").out)
    assert list(value["measures"]) == ["mrr", "hit@1"]


def test_help_shows_examples(folder: Path) -> None:
    done = call(main, "--help", where=folder)
    assert done.code == 0
    assert "eval-core score --run bm25.trec --qrels" in done.out


def test_nothing_heavy_is_imported(folder: Path) -> None:
    """A start takes a few hundredths of a second; models, tables of rich and numpy would each double it."""
    code = (
        "import sys\n"
        "from eval_core.cli.score import score\n"
        "score(['--run', 'run', '--qrels', 'qrels', '--per-query'], standalone_mode=False)\n"
        "heavy = {'pydantic', 'rich', 'numpy', 'scipy', 'pytrec_eval', 'asyncio'}\n"
        "print('heavy:', sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("heavy: []\n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_told_on_a_terminal_once_it_takes_a_second(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from eval_core.cli import score as module

    clock = iter([0.0, *(n * 0.6 for n in range(1, 99))])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        with module._progress(Path("long/name.trec")) as tell:
            assert (tell is not None) == shown
            if tell is not None:
                tell(10, 200)
                assert stream.getvalue() == ""
                tell(100, 200)
                assert stream.getvalue() == "\rscore  name.trec  50%"
        assert stream.getvalue().endswith("\r" if shown else "")


ACTING = ("\x9b31mq", "\u202eq", "q\x1b[2J", "q\u2066")


@pytest.mark.parametrize("form", ["table", "json"])
def test_no_id_acts_on_the_terminal(tmp_path: Path, form: str) -> None:
    """Whoever reads the JSON gets the same ids."""
    put(tmp_path, "run", trec_run({q: {"d": 1.0} for q in ACTING}))
    put(tmp_path, "qrels", trec_qrels({q: {"d": 1} for q in ACTING}))
    done = score(tmp_path, "--format", form, "--per-query", "-m", "mrr")
    assert done.code == 0
    assert all(line.isprintable() for line in done.out.split("\n"))
    if form == "json":
        assert tuple(json.loads(done.out)["queries"]) == ACTING


def test_an_id_in_csv_is_as_it_is_but_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from eval_core.cli import score as module
    from eval_core.scoring.metrics import parse
    from eval_core.scoring.score import evaluate

    scores = evaluate({q: {"d": 1.0} for q in ACTING}, {q: {"d": 1} for q in ACTING}, [parse("mrr")])
    for stream, raw in ((io.StringIO(), True), (Terminal(), False)):
        monkeypatch.setattr(sys, "stdout", stream)
        text = module._csv([module._Scored("run", scores, scores.intervals())], True)
        assert all(line.isprintable() for line in text.split("\n")) is not raw
        if raw:
            assert [row["query"] for row in csv.DictReader(io.StringIO(text))][1:] == list(ACTING)
        else:
            assert "\\x9b31mq" in text


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_a_file_whose_name_is_not_utf8_is_scored(tmp_path: Path, form: str) -> None:
    name = os.fsdecode(b"r\xff\x1b")
    put(tmp_path, name, trec_run({"q": {"d": 1.0}}))
    put(tmp_path, "qrels", trec_qrels({"q": {"d": 1}}))
    done = score(tmp_path, "--format", form, run=name)
    assert done.code == 0
    assert done.out.encode()
    if form == "json":
        assert json.loads(done.out)["run"] == "r\\udcff\x1b"
