"""`eval-core measure`: what a person sees, what a machine reads, what is refused, and the exit codes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from core_support import Space, Told, append

from eval_core.backend import BackendError, Reply
from eval_core.reports.report import read_report

ROOT = Path(__file__).resolve().parents[2]

#: Answers that are right, by query.
RIGHT = {f"thing {number}": [f"d{number}"] for number in range(1, 7)}
QUERIES = {f"q{number}": f"thing {number}" for number in range(1, 7)}


def schema(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(
        json.loads((ROOT / "schemas" / f"{name}.schema.json").read_text("utf-8"))
    )


# --------------------------------------------------------------------------------------------- what is seen


def test_the_table_has_a_line_an_arm_and_says_what_comes_next(shelves: Space) -> None:
    shelves.register("told", Told(RIGHT))
    shelves.arm(name="one")
    shelves.arm(name="two", backend="bm25")
    done = shelves.core("measure")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert re.fullmatch(r"reconstruct  things        8 documents   inline +sha256 [0-9a-f]{12}…", lines[0])
    assert lines[1] == ""
    assert lines[2].split() == [
        "set",
        "arm",
        "n",
        "recall@10",
        "ndcg@10",
        "hit@1",
        "mrr",
        "p95",
        "ms",
        "health",
    ]
    # Wilson's interval of 6 in 6 is 0.610 to 1: half of its width beside recall, the others plain.
    assert re.fullmatch(r" things +one +6 +1\.000 ±0\.195 +1\.000 +1\.000 +1\.000 +[0-9.]+ +ok", lines[3])
    assert re.fullmatch(r" things +two +6 +1\.000 ±0\.195 .* ok", lines[4])
    assert re.fullmatch(r" things: queries share [0-9]+% of their words with their targets, .*", lines.pop(8))
    assert lines[6:-1] == [
        "2 arms measured; reports in .eval/reports.",
        " things: one query is 16.7 points; a difference of fewer than 5 can be chance.",
        " things: limit 10 of a median of 8 candidates: a random ranking finds much of it.",
        " things: recall@10 is 1.000 for 6 of 6 queries: a better retriever cannot show it here; ask harder",
        "   queries.",
    ]
    assert lines[-1:] == [
        "Next: eval-gate floor --measure   measure twice and propose the bar (one run is no floor)",
    ]
    assert max(map(len, lines)) <= 100
    assert shelves.core("measure").out.splitlines()[-1].startswith("Next: eval-gate floor  ")
    (shelves.root / "policy").mkdir()
    (shelves.root / "policy" / "floors.toml").write_text("")
    assert shelves.core("measure").out.splitlines()[-1].startswith("Next: eval-gate check  ")


def test_what_did_not_go_well_is_said_with_its_reason(shelves: Space) -> None:
    """Harness health is a separate output, and errored rows never read as a finding: exit 3, the report is there."""
    broken = BackendError("timed out after 10 s")
    answers = {**RIGHT, "thing 2": broken, "thing 4": broken, "thing 5": broken, "thing 6": broken}
    shelves.register("told", Told(answers))
    shelves.arm()
    done = shelves.core("measure")
    assert done.code == 3
    assert " 4 errored" in done.out
    assert " arm  q2 errored: timed out after 10 s" in done.out
    assert " arm  … 1 more row in the report" in done.out
    assert "Next: mend what errored and measure again; a report with errored rows is no evidence." in done.out
    report = read_report(shelves.reports / "arm.json")
    assert (report.n, report.health.errored) == (2, 4)
    assert schema("report-v1").is_valid(json.loads((shelves.reports / "arm.json").read_text()))


def test_three_failures_in_a_row_exit_3_and_the_rest_is_left(shelves: Space) -> None:
    shelves.register("told", Told(dict.fromkeys(RIGHT, BackendError("no"))))
    shelves.arm()
    done = shelves.core("measure")
    assert done.code == 3
    assert "3 errored, 3 unscored" in done.out
    assert read_report(shelves.reports / "arm.json").health.unscored == 3


def test_a_backend_that_is_not_deterministic_is_told_and_is_no_failure(shelves: Space) -> None:
    turns = chain([["d1"], ["d1"], ["d2", "d1"]], repeat(["d1"]))
    shelves.register("told", Told({**RIGHT, "thing 1": lambda request: next(turns)}))
    shelves.arm()
    done = shelves.core("measure")
    assert done.code == 0
    assert "ok, 1 unstable" in done.out
    assert " arm  is non-deterministic: repetitions ranked 1 query otherwise" in done.out


CHUNKS = {f"thing {n}": [f"d{n}"] * 5 for n in range(1, 7)}
LONG = {f"thing {n}": [f"d{n}", *(f"d{m}" for m in range(1, 9) if m != n)] for n in range(1, 7)}
TIED = {f"thing {n}": Reply(["d8", f"d{n}", "d7"], [2, 1, 1]) for n in range(1, 7)}

#: Answers, the keys of the arm, what the health column says, and what is said below the table.
ALTERED: dict[str, tuple[dict[str, Any], str, str, str | None]] = {
    "a file's name for each chunk": (
        CHUNKS,
        "",
        "ok, 24 repeated",
        "repeats itself: 24 ids dropped beside 6 that are scored; does it answer the file's name for each chunk?",
    ),
    "more than k": (
        LONG,
        "limit = 3\ncutoffs = [1, 3]\n",
        "ok, 30 cut",
        "answers more than the k that is asked for: 30 ids cut off beside 18 that are scored",
    ),
    # d7 comes after each of d1 to d6 in the order of the ids; d8 is first by its score.
    "ties in order": (TIED, "", "ok", None),
    "ties out of order": (
        {
            text: Reply(list(reply.ids[:1]) + list(reply.ids[:0:-1]), reply.scores)
            for text, reply in TIED.items()
        },
        "",
        "ok, 6 reordered",
        "has equal scores in 6 answers: there the order is that of the ids",
    ),
    "one of many": ({**LONG, "thing 1": ["d1", *LONG["thing 1"]]}, "", "ok, 1 repeated", None),
}


@pytest.mark.parametrize("case", ALTERED)
def test_round2_n9_what_was_done_to_answers_is_seen(shelves: Space, case: str) -> None:
    """N9: what is dropped, cut or reordered stands in the health column and, where it is much, in words."""
    answers, keys, health, words = ALTERED[case]
    shelves.register("told", Told(answers))
    shelves.arm(keys)
    done = shelves.core("measure")
    assert done.code == 0
    (line,) = (line for line in done.out.splitlines() if line.startswith(" things  arm"))
    assert re.fullmatch(rf".* [0-9.]+  {health}", line)
    said = [line for line in done.out.splitlines() if line.startswith(" arm  ")]
    assert said == ([] if words is None else [f" arm  {words}"])


def test_round2_n9_reordered_answers_are_counted_in_the_report(shelves: Space) -> None:
    """N9: by the code of docs/reasons.md; nothing is counted where nothing was done."""
    for answers, counts in ((ALTERED["ties out of order"][0], {"ties-reordered": 6}), (TIED, {})):
        shelves.register("told", Told(answers))
        shelves.config.unlink(missing_ok=True)
        shelves.arm()
        assert shelves.core("measure").code == 0
        assert read_report(shelves.reports / "arm.json").health.counts == counts


def test_an_arm_that_cannot_be_measured_does_not_stop_the_others(shelves: Space) -> None:
    """Its earlier report is gone, so that nothing stale is graded; the others' are new."""

    class Absent(Told):
        def index(self, corpus: Any) -> None:
            from eval_core.errors import CouldNot

            raise CouldNot("backend-failed", "nobody listens on port 1")

    shelves.arm(name="first")
    shelves.arm(name="second", backend="other")
    shelves.register("told", Told(RIGHT))
    shelves.register("other", Told(RIGHT))
    assert shelves.core("measure").code == 0
    shelves.register("told", Absent(RIGHT))
    done = shelves.core("measure")
    assert done.code == 3
    assert done.err == "first: nobody listens on port 1\n"
    assert "1 arm measured" in done.out
    assert "Next:" not in done.out
    assert sorted(path.name for path in shelves.reports.iterdir()) == ["second.intoto.jsonl", "second.json"]
    assert [path.name for path in shelves.runs.glob("first*")] == ["first.partial"]
    told = json.loads(shelves.core("measure", "--format", "json").out)
    assert [(entry["arm"], entry["error"]) for entry in told["arms"]] == [
        ("first", "nobody listens on port 1"),
        ("second", None),
    ]
    assert schema("measurement-v1").is_valid(told)


def test_json_is_the_contract(shelves: Space) -> None:
    shelves.register("told", Told(RIGHT))
    shelves.arm()
    done = shelves.core("measure", "--format", "json")
    assert done.code == 0
    assert done.err.startswith("reconstruct  things")  # what is no finding goes to standard error
    value = json.loads(done.out)
    schema("measurement-v1").validate(value)
    (entry,) = value["arms"]
    report = read_report(shelves.reports / "arm.json")
    assert (entry["arm"], entry["set"], entry["n"], entry["run_id"]) == ("arm", "things", 6, report.run_id)
    assert (shelves.root / entry["report"]).samefile(shelves.reports / "arm.json")
    assert entry["metrics"] == report.summary.overall.metrics
    lock = json.loads((shelves.root / ".eval/corpora/things/lock.json").read_text())
    schema("lock-v1").validate(lock)
    # The same exit code in every format.
    shelves.register("told", Told({}, ()))
    shelves.register("told", Told(dict.fromkeys(RIGHT, BackendError("no"))))
    assert shelves.core("measure", "--format", "json").code == shelves.core("measure").code == 3


def test_a_pipe_gets_neither_colour_nor_progress(shelves: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    shelves.register("told", Told(RIGHT))
    shelves.arm()
    done = shelves.core("measure")
    assert "\x1b" not in done.out + done.err
    assert done.err == ""


def test_a_terminal_sees_progress_and_no_colour_where_none_is_wanted(shelves: Space) -> None:
    """On a real pseudo-terminal: the bar is drawn on standard error and gone at the end."""
    import pty

    shelves.arm("repetitions = 1\n", backend="bm25")

    def shown(*words: str, **environment: str) -> str:
        main, side = pty.openpty()
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "eval_core", "measure", *words],
                cwd=shelves.root,
                stdout=subprocess.DEVNULL,
                stderr=side,
                env={**os.environ, "TERM": "xterm-256color", **environment},
            )
            os.close(side)
            drawn = b""
            with contextlib.suppress(OSError):  # Linux ends a terminal without a writer with EIO
                while piece := os.read(main, 4096):
                    drawn += piece
            assert process.wait() == 0
        finally:
            os.close(main)
        return drawn.decode()

    assert "things · arm" in shown()
    plain = shown(NO_COLOR="1")
    assert "things · arm" in plain
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", plain)
    assert shown("--quiet") == ""


@pytest.mark.parametrize("verb", ["measure", "validate"])
def test_help_has_examples(shelves: Space, verb: str) -> None:
    for flag in ("--help", "-h"):
        done = shelves.core(verb, flag)
        assert done.code == 0
        assert len(re.findall(rf"\n +eval-core {verb} ", done.out)) >= 3
        assert done.out.startswith(f"Usage: eval-core {verb}")


# --------------------------------------------------------------------------------------------- where and which


def test_it_runs_from_anywhere_with_the_configuration_named(shelves: Space, tmp_path: Path) -> None:
    shelves.arm(backend="bm25")
    before = Path.cwd()
    done = shelves.core("measure", "--config", shelves.config, where=tmp_path)
    assert done.code == 0
    assert f"reports in {shelves.reports}." in done.out
    assert (shelves.reports / "arm.json").exists()
    assert not (tmp_path / ".eval").exists()
    assert Path.cwd() == before
    value = json.loads(
        shelves.core("measure", "--config", "space/eval.toml", "--format", "json", where=tmp_path).out
    )
    assert value["arms"][0]["report"] == "space/.eval/reports/arm.json"


def test_another_place_for_a_source_is_read_from_where_the_command_runs(
    shelves: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K4: an override replaces the configured place, and a relative one is the current folder's."""
    source = 'name = "things"\n[[corpus.source]]\ntype = "dir"\nname = "notes"\npath = "absent"\n'
    shelves.set(
        {}, QUERIES, [("q1", "notes/a.md", 1)] + [(f"q{n}", "notes/b.md", 1) for n in range(2, 7)], source
    )
    shelves.arm(backend="bm25")
    done = shelves.core("measure")
    assert done.code == 3
    assert "absent" in done.err
    assert not shelves.reports.exists()
    for name in ("a.md", "b.md"):
        (tmp_path / "elsewhere").mkdir(exist_ok=True)
        (tmp_path / "elsewhere" / name).write_text("thing 1")
    config = ("measure", "--config", "space/eval.toml")
    assert shelves.core(*config, "--source", "notes=elsewhere", where=tmp_path).code == 0
    monkeypatch.setenv("EVAL_SOURCE_NOTES", str(tmp_path / "elsewhere"))
    assert shelves.core("measure").code == 0
    done = shelves.core("measure", "--source", "nots=elsewhere")
    assert done.code == 2
    assert "did you mean 'notes'?" in done.err


def test_a_judged_document_that_is_gone_exits_3(shelves: Space) -> None:
    """K5: the set is sound and its source has moved on."""
    source = 'name = "things"\n[[corpus.source]]\ntype = "dir"\nname = "notes"\npath = "notes"\n'
    shelves.set({}, {"q1": "thing"}, [("q1", "notes/a.md", 1), ("q1", "notes/b.md", 1)], source)
    notes = shelves.root / "set" / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("thing")
    (notes / "b.md").write_text("thing")
    shelves.arm(backend="bm25")
    assert shelves.core("measure").code == 0
    (notes / "b.md").unlink()
    done = shelves.core("measure")
    assert done.code == 3
    assert "qrels/test.tsv:3: judges document 'notes/b.md', which is not in the corpus" in done.err
    assert "Judge what took its place, or pin the source." in done.err
    assert not (shelves.reports / "arm.json").exists()


def test_lanes_and_names_choose_the_arms(shelves: Space) -> None:
    """An arm of the owner's lane is measured only when asked for."""
    shelves.arm(name="free", backend="bm25")
    shelves.arm('lane = "owner"\n', name="paid", backend="bm25")

    def arms(*words: str) -> list[str]:
        done = shelves.core("measure", "--format", "json", *words)
        assert done.code == 0
        return [entry["arm"] for entry in json.loads(done.out)["arms"]]

    assert arms() == ["free"]
    assert arms("--lane", "owner") == ["paid"]
    assert arms("--lane", "all") == ["free", "paid"]
    assert arms("paid") == ["paid"]
    shelves.config.unlink()
    shelves.arm('lane = "owner"\n', name="paid", backend="bm25")
    done = shelves.core("measure")
    assert done.code == 2
    assert "no arm of eval.toml is in the lane 'pull-request'; name one, or say --lane all" in done.err


# --------------------------------------------------------------------------------------------- what is refused


def arm_with(text: str, backend: str = "bm25") -> Callable[[Space], tuple[str, ...]]:
    def prepare(space: Space) -> tuple[str, ...]:
        space.arm(text, name="bad", backend=backend)
        return ()

    return prepare


def broken_set(space: Space) -> tuple[str, ...]:
    append(space.root / "set/queries.jsonl", '{"_id": "q1", "text": "again"}\n')
    return ()


def no_config(space: Space) -> tuple[str, ...]:
    space.config.unlink()
    return ()


MISUSE: dict[str, tuple[Callable[[Space], tuple[str, ...]], str]] = {
    "unknown arm": (
        lambda space: ("god",),
        "eval.toml: there is no arm 'god'; did you mean 'good'?  (arms: good)",
    ),
    "unknown backend": (
        arm_with("", backend="bm52"),
        "eval.toml:7: arms.\"bad\".backend: there is no backend 'bm52'; did you mean 'bm25'?  (installed: ",
    ),
    "unknown option": (
        arm_with("options.tokeniser = 'words'"),
        "eval.toml:8: arms.\"bad\".options: backend 'bm25': tokeniser: there is no such option; did you mean 'tok",
    ),
    "value of an option": (
        arm_with("options.tokenizer = 'word'"),
        "eval.toml:8: arms.\"bad\".options: backend 'bm25': tokenizer = 'word'",
    ),
    "missing option": (
        arm_with("", backend="jsonl"),
        "eval.toml:5: arms.\"bad\".options: backend 'jsonl': command: the option is required",
    ),
    "unknown key": (arm_with("limt = 3"), "eval.toml:8: arms.bad.limt: unknown key; did you mean 'limit'?"),
    "wrong type": (arm_with("limit = '3'"), "eval.toml:8: arms.bad.limit = '3': should be a valid integer"),
    "not finite": (
        arm_with("options.k1 = inf"),
        "eval.toml:8: arms.bad.options.k1 = inf: should be a finite",
    ),
    "cannot expand": (
        arm_with("expand = true"),
        "eval.toml:8: arms.\"bad\".expand = True: the backend 'bm25' lacks 'expand'",
    ),
    "no configuration": (
        no_config,
        "eval.toml: there is no such file\n  Run in the folder that holds eval.toml",
    ),
    "unknown split": (
        arm_with("split = 'tst'"),
        "eval.toml:8: arms.\"bad\".split: set/qrels/tst.tsv: there is no such split; did you mean 'test'?",
    ),
    "cut-offs past the limit": (
        arm_with("limit = 4"),
        'eval.toml:8: arms."bad".limit: cut-off 10 is past the limit 4; raise limit, or write cutoffs = [1, 4]',
    ),
    "fault in the set": (broken_set, "set/queries.jsonl:7: _id 'q1' again (first at line 1)"),
    "unknown option of the script": (
        lambda space: ("--resum",),
        "No such option '--resum'. Did you mean '--resume'?",
    ),
    "unknown lane": (
        lambda space: ("--lane", "night"),
        "'night' is not one of 'pull-request', 'owner', 'all'",
    ),
    "source of no form": (lambda space: ("--source", "notes"), "--source = 'notes': write NAME=PATH"),
}


@pytest.mark.parametrize("case", MISUSE)
def test_wrong_usage_exits_2_says_where_and_measures_nothing(shelves: Space, case: str) -> None:
    """Not even the arm that is sound, which stands first."""
    shelves.arm(name="good", backend="bm25")
    prepare, told = MISUSE[case]
    words = prepare(shelves)
    done = shelves.core("measure", *words)
    assert done.code == 2
    assert told in done.err
    assert "arms measured" not in done.out
    assert not shelves.history.exists()
    assert not any(name.startswith(("runs/", "reports/")) for name in shelves.left())


def test_an_unknown_verb_is_told_with_the_nearest(shelves: Space) -> None:
    done = shelves.core("mesure")
    assert done.code == 2
    assert "there is no verb 'mesure'; did you mean 'measure'?" in done.err


def test_a_failure_of_the_program_is_3_and_never_a_breach(
    shelves: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An uncaught exception reads neither as a no nor as a pass."""
    shelves.arm(backend="bm25")

    def fail(*arguments: object, **options: object) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("eval_core.measuring.plan.prepare", fail)
    done = shelves.core("measure")
    assert done.code == 3
    assert "internal error, RuntimeError: a fault of ours" in done.err
    assert "EVAL_TRACEBACK=1 shows where" in done.err
    monkeypatch.setenv("EVAL_TRACEBACK", "1")
    done = shelves.core("measure")
    assert done.code == 3
    assert "Traceback" in done.err


def test_a_reader_that_goes_away_is_no_fault_of_the_program(shelves: Space) -> None:
    """`eval-core … | head`: the exit code is what was found out, and nothing is said about the reader."""
    shelves.arm(backend="bm25")
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "eval_core", "validate", "set", "eval.toml"],
            cwd=shelves.root,
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=60,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_source_that_is_misspelt_leaves_the_reports_as_they_are(shelves: Space) -> None:
    """Wrong usage measures nothing and removes nothing."""
    shelves.arm(backend="bm25")
    assert shelves.core("measure").code == 0
    before = (shelves.root / ".eval/reports/arm.json").read_bytes()
    done = shelves.core("measure", "--source", "nots=elsewhere")
    assert done.code == 2
    assert "there is no source 'nots'" in done.err
    assert (shelves.root / ".eval/reports/arm.json").read_bytes() == before


def test_a_source_that_is_away_leaves_the_other_sets_to_be_measured_by_name(shelves: Space) -> None:
    """K4: an absent source raises; A2: what does not need it is measured all the same."""
    shelves.arm(backend="bm25")
    away = shelves.root / "away"
    shutil.copytree(shelves.root / "set", away)
    (away / "dataset.toml").write_text(
        'name = "away"\n[[corpus.source]]\nname = "n"\ntype = "dir"\npath = "../nowhere"\n', "utf-8"
    )
    shelves.arm(name="two", backend="bm25", dataset="away")
    done = shelves.core("measure")
    assert done.code == 3
    assert "source 'n'" in done.err
    assert "Arms of the other sets can be, by name." in done.err
    assert shelves.core("measure", "arm").code == 0


def test_an_arm_of_which_nothing_was_scored_shows_no_values(shelves: Space) -> None:
    """Nothing is imputed, not even a zero in a table."""
    answers = 'import sys\nfor line in sys.stdin: print(\'{"ids": ["stranger"]}\', flush=True)'
    (shelves.root / "stranger.py").write_text(answers, "utf-8")
    shelves.arm('options.command = ["{python}", "stranger.py"]', backend="jsonl")
    done = shelves.core("measure")
    assert done.code == 3
    line = next(line for line in done.out.splitlines() if line.startswith(" things"))
    assert line.split()[2:8] == ["0", "–", "–", "–", "–", "–"]


ADAPTER = """
import json, sys
for line in sys.stdin:
    number = json.loads(line)["query"].split()[-1]
    print(json.dumps({"ids": [f"d{number}"] if number != WRONG else []}), flush=True)
"""


@pytest.mark.parametrize(("backend", "wrong", "said"), [("jsonl", "", 1), ("jsonl", "3", 0), ("told", "", 0)])
def test_round2_b7_a_perfect_score_through_the_line_protocol_is_pointed_out(
    shelves: Space, backend: str, wrong: str, said: int
) -> None:
    """B7: a command can read the judgements, which nothing can close but isolation; so its page is named."""
    shelves.register("told", Told(RIGHT))
    (shelves.root / "adapter.py").write_text(ADAPTER.replace("WRONG", repr(wrong)))
    text = 'options.command = ["{python}", "-S", "-E", "adapter.py"]' if backend == "jsonl" else ""
    shelves.config.unlink(missing_ok=True)
    shelves.arm(text, name="perfect", backend=backend)
    done = shelves.core("measure")
    assert done.code == 0, done.err
    assert (
        done.out.count(" perfect: every query answered perfectly; see 'What no gate can prevent' in docs/")
        == said
    )
