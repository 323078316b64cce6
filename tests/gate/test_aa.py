"""`eval-gate aa`: one arm measured again and again, for real: adapters that answer alike, otherwise, or not at all."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from scipy import stats

from eval_core.policy.files import read_policy
from eval_gate.power.models import Unchanged
from eval_gate.power.odds import odds_of

if TYPE_CHECKING:
    from conftest import Done, Space

# Answers from answers.json in odd processes, from others.json in even ones: counted in a file that no option names.
TURNING = """
import json, sys
from pathlib import Path
counter = Path("count")
count = int(counter.read_text()) + 1 if counter.exists() else 1
counter.write_text(str(count))
answers = json.load(open("answers.json" if count % 2 else "others.json", encoding="utf-8"))
for line in sys.stdin:
    query = json.loads(line)["query"]
    print(json.dumps({"ids": answers.get(query, [])}), flush=True)
"""


def aa(space: Space, *arguments: str) -> Done:
    return space.gate("aa", "notes", *arguments)


def said(done: Done, code: int = 0) -> Any:
    """The JSON of a call, held against the schema of its model."""
    assert done.code == code, done.err
    value = json.loads(done.out)
    jsonschema.validate(value, Unchanged.model_json_schema(by_alias=True), jsonschema.Draft202012Validator)
    assert value["exit_code"] == code
    return value


def turning(space: Space, lost: int) -> None:
    """An adapter that loses so many queries in every second run; its budget lets recall@10 fall."""
    (space.root / "adapter.py").write_text(TURNING)
    space.answer(space.losing(lost) | {"q27": 2})
    (space.root / "answers.json").rename(space.root / "others.json")
    space.answer()
    free = {"max_drop": {"recall@10": 100.0}, "reasons": {"max_drop": "a test"}}
    space.policy(budgets={"notes": free})


def measure(value: Any, name: str) -> Any:
    return next(one for one in value["measures"] if one["measure"] == name)


def test_an_arm_that_answers_alike_never_flips_and_passes(space: Space) -> None:
    before = space.runs()
    done = aa(space, "--runs", "3", "--format", "json")
    value = said(done)
    assert (value["arm"], value["set"], value["headline"]) == ("notes", "things", "hit@1")
    assert (value["n"], value["trials"], value["flipped"]) == (27, 54, [])
    for one in value["measures"]:
        assert (one["flips"], one["queries"], one["rate"]) == (0, 0, 0)
        # No flips in 54 trials: 1 - 0.05^(1/54); of 27 queries that flip so often, at most 5 in 99 of 100 runs.
        assert one["upper"] == pytest.approx(1 - 0.05 ** (1 / 54))
        assert one["margin"] == next(m for m in range(28) if stats.binom.sf(m, 27, one["upper"]) <= 0.01)
    assert [run["verdict"] for run in value["runs"]] == ["pass"] * 3
    held = value["policy"]
    assert (held["margin"], held["failed"], held["share"]) == (2, 0, 0)
    never, bound = held["false_alarms"]
    assert (never["flip_rate"], never["fails"]) == (0, 0)
    assert bound["flip_rate"] == pytest.approx(1 - 0.05 ** (1 / 54))
    assert 0 < bound["fails"] < 1
    # Each run is a measurement like any other: the history has it, and the newest report is the last one.
    new = space.runs()[len(before) :]
    assert [path.stem for path in new] == [run["run_id"] for run in value["runs"]]
    assert space.report.read_bytes() == new[-1].read_bytes()
    assert [line for line in done.err.splitlines() if "run" in line] == [
        f"notes: run {n} of 3" for n in (1, 2, 3)
    ]


def test_flips_are_counted_from_run_to_run(space: Space) -> None:
    """Runs 2 and 4 of 5 lose two queries: each comes and goes twice, 8 flips of hit@1 in 108 trials, of two queries."""
    turning(space, 2)
    value = said(aa(space, "--format", "json"))
    assert (value["n"], value["trials"]) == (27, 108)
    one = measure(value, "hit@1")
    assert (one["flips"], one["queries"]) == (8, 2)
    assert one["means"] == pytest.approx([26 / 27, 24 / 27, 26 / 27, 24 / 27, 26 / 27])
    assert one["rate"] == pytest.approx(8 / 108)
    # Clopper and Pearson, one-sided: the 95% quantile of Beta(flips + 1, trials - flips).
    assert one["upper"] == pytest.approx(stats.beta.ppf(0.95, 9, 100))
    assert one["margin"] == next(m for m in range(28) if stats.binom.sf(m, 27, one["upper"]) <= 0.01)
    assert measure(value, "recall@10")["means"] == pytest.approx([1, 25 / 27, 1, 25 / 27, 1])
    moved = [(one["query"], one["measure"], one["values"]) for one in value["flipped"]]
    assert moved == [(name, "hit@1", [1, 0, 1, 0, 1]) for name in ("q01", "q02")]
    # Two misses are within the margin; with the third, of the usual outcome, the floor of hit@1 just holds.
    assert [run["verdict"] for run in value["runs"]] == ["pass"] * 5
    assert value["policy"]["failed"] == 0


def test_a_policy_that_fails_unchanged_code_exits_1(space: Space) -> None:
    """Three lost in every second run, where the margin is two: 1 of 3 runs fails."""
    turning(space, 3)
    value = said(aa(space, "--runs", "3", "--format", "json"), 1)
    assert [run["verdict"] for run in value["runs"]] == ["pass", "fail", "pass"]
    failed = value["runs"][1]
    assert "floor-breached" in failed["codes"]
    assert "hit@1 = 4: 3 misses are allowed" in failed["messages"]
    held = value["policy"]
    assert (held["failed"], held["share"]) == (1, 1 / 3)
    assert held["measure"] in ("hit@1", "recall@10", "ndcg@10", "mrr")
    # The model's false alarm, at the rate and the bound of the measure that flips most.
    rates = [measure(value, held["measure"])[key] for key in ("rate", "upper")]
    odds = odds_of(read_policy(space.root / "policy").arm("notes"), drops=(), flip_rates=rates)
    assert held["false_alarms"] == [{"flip_rate": rate, "fails": odds.alarms[rate]} for rate in rates]


def test_a_person_reads_the_flips_the_verdict_and_what_to_do(space: Space) -> None:
    turning(space, 3)
    done = aa(space, "--runs", "2")
    assert done.code == 1
    rows = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "notes set things: 27 queries, 2 runs" in rows
    assert any(row.startswith("hit@1 0.8519 to 0.9630 3 of 27 3 11.11%") for row in rows)
    assert "q01 where is thing 1 kept hit@1 1 0" in rows
    assert "FAIL 1 of 2 runs of unchanged code do not pass the present policy" in rows
    assert any("flips cluster by query" in row for row in rows)
    assert any(row.startswith("Next: eval-gate floor notes --margin derived") for row in rows)


def test_its_runs_are_evidence_for_floors_whose_margin_explains_them(space: Space) -> None:
    turning(space, 3)
    assert aa(space, "--runs", "4").code == 1
    why = ("--reason", "margin=the adapter turns", "--reason", "floors=it always did")
    done = space.gate("floor", "notes", "--margin", "derived", *why, "--write")
    assert done.code == 0, done.err
    assert aa(space, "--runs", "2").code == 0
    value = said(aa(space, "--evidence", "--format", "json"))
    assert {run["verdict"] for run in value["runs"]} == {"pass"}


def test_the_runs_of_the_evidence_are_judged_without_measuring(space: Space) -> None:
    """The baseline finds three that the run before lost: 3 flips of 27, and each run is held to the bars of both."""
    for ranks in (space.losing(3) | {"q27": 2}, None):
        assert space.measure(ranks).code == 0
    space.policy()
    before = space.tree()
    value = said(aa(space, "--evidence", "--format", "json"))
    assert space.tree() == before
    assert [run["run_id"] for run in value["runs"]] == [line.run_id for line in space.lines()]
    one = measure(value, "hit@1")
    assert (one["flips"], one["queries"], value["trials"]) == (3, 3, 27)
    assert [(moved["query"], moved["text"]) for moved in value["flipped"]] == [
        (f"q0{n}", None) for n in (1, 2, 3)
    ]
    # What the runs differ by is within the drop that they widen, and the floors stand on the worst of them.
    assert [run["verdict"] for run in value["runs"]] == ["pass", "pass"]
    # A budget that is narrower fails the run that lost them.
    space.policy(budgets={"notes": {"max_drop": {"recall@10": 2.0}}})
    value = said(aa(space, "--evidence", "--format", "json"), 1)
    assert [run["verdict"] for run in value["runs"]] == ["fail", "pass"]
    assert value["runs"][0]["messages"] == ["recall@10 is below its bar, 0.9800"]


def test_evidence_that_does_not_carry_the_floors_is_refused(space: Space) -> None:
    space.edit(space.floors, "n = 27", "n = 26")
    done = aa(space, "--evidence")
    assert (done.code, done.out) == (1, "")
    assert "the last run scored 27 queries" in done.err


def test_an_arm_without_floors_is_measured_and_not_judged(space: Space) -> None:
    shutil.rmtree(space.root / "policy")
    value = said(aa(space, "--runs", "2", "--format", "json"))
    assert (value["policy"], [run["verdict"] for run in value["runs"]]) == (None, [None, None])
    assert value["notes"] == ["no floors for notes in policy, so no run was judged"]


@pytest.mark.parametrize("code", ["evidence-missing", "floor-not-derived"])
def test_a_run_that_cannot_be_graded_does_not_pass(space: Space, code: str) -> None:
    if code == "evidence-missing":
        space.evidence.unlink()
    else:
        space.edit(space.floors, "n = 27", "n = 26")
    value = said(aa(space, "--runs", "2", "--format", "json"), 1)
    assert [run["verdict"] for run in value["runs"]] == ["refused", "refused"]
    assert value["runs"][0]["codes"] == [code]
    assert (value["policy"]["failed"], value["policy"]["false_alarms"]) == (2, [])


def test_what_the_policy_requires_of_commits_is_no_noise(space: Space) -> None:
    """The tree here has no commit at all; whether unchanged code passes is asked of its quality."""
    space.policy(require=["head", "clean"])
    assert aa(space, "--runs", "2").code == 0


def errors(space: Space) -> None:
    space.answer({"q03": "the index is gone"})


def no_adapter(space: Space) -> None:
    (space.root / "adapter.py").write_text("raise SystemExit('no model here')")


def other_code(space: Space) -> None:
    """Each run finds another adapter than the one before."""
    path = space.root / "adapter.py"
    path.write_text(path.read_text() + "\nwith open('adapter.py', 'a') as own: own.write('#\\n')\n")


@pytest.mark.parametrize(
    ("change", "words", "runs"),
    [
        (errors, "measuring ended with code 3, and the first rows that errored are in .eval/reports", 1),
        (no_adapter, "no model here", 1),
        (other_code, "notes, run 2: the code did not stay unchanged: it measured another system than run", 2),
    ],
)
def test_where_measuring_fails_nothing_is_said_of_flips(
    space: Space, change: Callable[[Space], None], words: str, runs: int
) -> None:
    change(space)
    done = aa(space, "--runs", "4")
    assert (done.code, done.out) == (3, "")
    assert words in done.err
    assert done.err.count(" of 4\n") == runs


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("notes", "--runs", "1"), "--runs"),
        (("notes", "--runs", "0"), "--runs"),
        (("notes", "--runs", "two"), "--runs"),
        (("notes", "--runs", "2", "--evidence"), "--evidence takes the runs that there are"),
        (("nots", "--evidence"), "there are no floors for arm 'nots'; did you mean 'notes'?"),
        (("nots",), "no arm 'nots'; did you mean 'notes'?"),
        ((), "Missing argument 'ARM'"),
        (("notes", "--config", "none.toml"), "none.toml: there is no such file"),
        (("notes", "--format", "markdown"), "--format"),
    ],
)
def test_wrong_usage_measures_nothing(space: Space, arguments: tuple[str, ...], words: str) -> None:
    before = space.tree()
    done = space.gate("aa", *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert space.tree() == before


@pytest.mark.parametrize("broken", ["floors", "budgets"])
def test_a_broken_policy_is_found_before_anything_is_measured(space: Space, broken: str) -> None:
    space.policy(budgets={"notes": {}})
    path = space.floors if broken == "floors" else space.budgets
    path.write_text("strange = 1\n" + path.read_text())
    before = space.tree()
    done = aa(space)
    assert done.code == 2
    assert "strange" in done.err
    assert space.tree() == before


def test_a_set_that_cannot_be_measured_is_wrong_input(space: Space) -> None:
    space.rejudge(lambda rows: [*rows, "q01\td99\t1"])
    done = aa(space)
    assert done.code == 2
    assert "test.tsv:30" in done.err


def test_a_module_in_this_folder_does_not_stand_in_for_the_program(space: Space) -> None:
    (space.root / "eval_core").mkdir()
    (space.root / "eval_core" / "__init__.py").touch()
    (space.root / "eval_core" / "__main__.py").write_text("raise SystemExit('not the program')")
    assert aa(space, "--runs", "2").code == 0


def test_a_signal_stops_the_measurement_and_its_backend(space: Space) -> None:
    """A backend that hangs, and a SIGTERM to the script alone."""
    (space.root / "adapter.py").write_text(
        "import os, sys, time\nopen('pid', 'w').write(str(os.getpid()))\nsys.stdin.readline()\ntime.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-m", "eval_gate", "aa", "notes"],
        cwd=space.root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        pid = space.root / "pid"
        until = time.monotonic() + 30
        while process.poll() is None and not (pid.exists() and pid.read_text()):
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (3, b"")
    assert b"interrupted" in err
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    assert not list((space.root / ".eval" / "runs").glob("notes.jsonl"))


def test_help_says_what_is_written(space: Space) -> None:
    done = space.gate("aa", "--help")
    assert done.code == 0
    assert "eval-gate aa memory-bm25" in done.out
    assert ".eval/history/ARM" in done.out
