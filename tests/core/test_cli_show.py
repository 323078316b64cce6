"""`eval-core show`: a report for a person, what follows from it for a machine, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from core_support import DOCUMENTS, JUDGEMENTS, QUERIES, Space, told, write_policy

from eval_core.backend import BackendError
from eval_core.console import width
from eval_core.reports.report import read_report

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = jsonschema.Draft202012Validator(
    json.loads((ROOT / "schemas" / "figures-v1.schema.json").read_text("utf-8"))
)
CATEGORIES = {
    "q1": "wide",
    "q2": "wide",
    "q3": "wide",
    "q4": "wide",
    "q5": "narrow",
    "q6": "a" * 40 + "\x1b[31m",
}
DEFINITION = (
    'name = "things"\nkind = "memory"\nheadline = "hit@1"\n[[corpus.source]]\ntype = "inline"\nname = "own"\n'
)


@pytest.fixture
def shown(space: Space) -> Space:
    """An arm that is measured: all is found at rank 1, but for q4, which finds nothing."""
    queries = {
        name: {"text": text, "metadata": {"category": CATEGORIES[name]}} for name, text in QUERIES.items()
    }
    space.set(DOCUMENTS, queries, JUDGEMENTS, DEFINITION)
    space.register("told", told(q4=[]))
    space.arm(name="one")
    assert space.core("measure").code == 0
    return space


def machine(space: Space, *arguments: str | Path) -> Any:
    done = space.core("show", *arguments, "--format", "json")
    assert (done.code, done.err) == (0, "")
    value = json.loads(done.out)
    SCHEMA.validate(value)
    return value["runs"]


def follow(space: Space, line: str) -> None:
    """A printed next step ends well when it is followed."""
    step = re.fullmatch(r"Next: eval-core (.+?)   .*", line)
    assert step is not None, line
    assert space.core(*step[1].split()).code == 0


# The bounds are those of scipy.stats.binomtest(k, n).proportion_ci(method="wilson").
WILSON = {(5, 6): (0.4364972, 0.9699466), (3, 4): (0.3006418, 0.9544127), (1, 1): (0.2065493, 1.0)}


def test_means_have_intervals_overall_and_in_categories_of_any_size(shown: Space) -> None:
    (run,) = machine(shown, "one")
    assert list(run["categories"]) == ["wide", "narrow", CATEGORIES["q6"]]
    parts = [
        ((5, 6), run["overall"]),
        ((3, 4), run["categories"]["wide"]),
        ((1, 1), run["categories"]["narrow"]),
    ]
    for (found, n), part in parts:
        score = part["measures"]["hit@1"]
        assert part["n"] == n
        assert score["mean"] == pytest.approx(found / n)
        assert (score["low"], score["high"]) == pytest.approx(WILSON[found, n], abs=1e-6)
    # Where the report has intervals itself, they are these.
    summary = read_report(shown.reports / "one.json").summary.overall
    for name, score in run["overall"]["measures"].items():
        assert score["mean"] == pytest.approx(summary.metrics[name])
        assert (score["low"], score["high"]) == pytest.approx(summary.intervals[name], abs=1e-6)


def test_a_person_reads_what_when_how_sure_and_what_next(shown: Space) -> None:
    done = shown.core("show", "one")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "things · one   6 queries, 8 documents"
    assert re.fullmatch(r" measured \d{4}-\d\d-\d\d \d\d:\d\d UTC outside git, class \w+", lines[1])
    assert lines[2].split() == ["n", "hit@1", "recall@10", "ndcg@10", "mrr"]
    assert re.match(r" all +6  0\.833 0\.436–0\.970  0\.833 0\.436–0\.970  ", lines[3])
    assert re.match(r" wide +4  0\.750 0\.301–0\.954  ", lines[4])
    assert re.match(r" narrow +1  1\.000 0\.207–1\.000  ", lines[5])
    assert re.match(r" a{13}… +1  1\.000 ", lines[6])  # what would act on the terminal is cut or shown
    assert " things: one query is 16.7 points; a difference of fewer than 5 can be chance." in lines
    steps = [line for line in lines if line.startswith("Next: ")]
    assert steps == lines[-2:]
    assert steps[0] == "Next: eval-core explain one --missed   why 1 of 6 queries is missed"
    assert steps[1] == "Next: eval-gate floor one --measure   measure twice and propose the bar"
    assert max(map(width, lines)) <= 100
    follow(shown, steps[0])


def test_the_limits_are_said_as_measure_says_them(shown: Space) -> None:
    measured = [line for line in shown.core("measure").out.splitlines() if line.startswith(" things:")]
    assert measured
    assert [line for line in shown.core("show", "one").out.splitlines() if line in measured] == measured


@pytest.mark.parametrize(("dirty", "words"), [(False, "clean"), (True, "with uncommitted changes")])
def test_the_commit_is_named_and_whether_the_tree_was_clean(shown: Space, dirty: bool, words: str) -> None:
    git = ["git", "-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false"]
    (shown.root / ".gitignore").write_text(".eval/\n")
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *arguments], cwd=shown.root, check=True)
    head = subprocess.run(
        [*git, "rev-parse", "HEAD"], cwd=shown.root, check=True, capture_output=True, text=True
    )
    if dirty:
        (shown.root / "stray").write_text("")
    shown.core("measure")
    assert f" UTC at {head.stdout[:7]}, {words}, class" in shown.core("show", "one").out


def test_health_is_said_where_it_is_not_ok_with_its_reason_and_leads_the_next_steps(shown: Space) -> None:
    shown.register("told", told(q4=BackendError("timed out")))
    assert shown.core("measure").code == 3
    done = shown.core("show", "one")
    assert done.code == 0
    assert " health: 1 errored\n  q4 errored: timed out\n" in done.out
    assert done.out.splitlines()[-1] == "Next: mend what went wrong, then:  eval-core measure one"
    assert machine(shown, "one")[0]["overall"]["n"] == 5
    shown.register("told", told(**dict.fromkeys(QUERIES, BackendError("timed out"))))
    shown.core("measure")
    assert re.search(r"^ all +0  –", shown.core("show", "one").out, re.MULTILINE)
    assert machine(shown, "one")[0]["overall"] == {"n": 0, "measures": {}}


def test_a_baseline_is_shown_from_its_evidence(shown: Space) -> None:
    """Figures follow from the line alone: those of the report that it is of."""
    write_policy(shown.root / "policy", {"one": [shown.measure(), shown.measure()]})
    (report,), (baseline,) = machine(shown, "one"), machine(shown, "baseline:one")
    assert baseline["path"] == "policy/evidence/one.jsonl"
    assert (baseline["overall"], baseline["categories"]) == (report["overall"], report["categories"])
    lines = shown.core("show", "baseline:one").out.splitlines()
    assert lines[0] == "things · one   its baseline, 6 queries, 8 documents"
    follow(shown, lines[-1])
    last = shown.core("show", "one").out.splitlines()[-1]
    assert last == "Next: eval-gate check one   hold it against its floors"


def test_without_an_arm_each_one_has_a_block_and_one_alone_is_shown_whole(shown: Space) -> None:
    alone = shown.core("show")
    assert (alone.code, alone.out) == (0, shown.core("show", "one").out)
    shown.arm(name="two")
    shown.arm(name="three")
    assert shown.core("measure", "two").code == 0
    done = shown.core("show")
    lines = done.out.splitlines()
    assert [line for line in lines if " · " in line] == [
        "things · one   6 queries, 8 documents",
        "things · two   6 queries, 8 documents",
    ]
    assert " Without a report: three (eval-core measure ARM)" in lines
    assert "wide" not in done.out
    assert [run["arm"] for run in machine(shown)] == ["one", "two"]
    follow(shown, lines[-1])


def test_a_report_is_found_by_its_path_and_from_another_folder(shown: Space, tmp_path: Path) -> None:
    shutil.copy(shown.reports / "one.json", tmp_path / "old.json")
    (run,) = machine(shown, "../old.json")
    assert run["path"] == "../old.json"
    assert "eval-gate" not in shown.core("show", "../old.json").out  # the gate reads the arm's newest report
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = shown.core("show", "one", "--config", "../space/eval.toml", where=elsewhere)
    assert done.code == 0
    assert shown.core("show", "../old.json", where=elsewhere).code == 0  # a path needs no eval.toml
    steps = [line for line in done.out.splitlines() if line.startswith("Next: ")]
    assert all("--config ../space/eval.toml" in step for step in steps)
    step = steps[0]
    assert (
        shown.core(*step.removeprefix("Next: eval-core ").partition("   ")[0].split(), where=elsewhere).code
        == 0
    )


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["two"], 1, ".eval/reports/two.json: there is no such report\n  eval-core measure two"),
        (["onn"], 2, "there is neither a report nor an arm 'onn'; did you mean 'one'?"),
        (["bad"], 1, "Measure it again:  eval-core measure bad"),
        (["baseline:one"], 2, "policy/floors.toml"),
        (["--config", "other.toml"], 2, "other.toml: there is no such file"),
        (["none/", "--config", "none/eval.toml"], 2, "none/eval.toml: there is no such file"),
    ],
)
def test_what_cannot_be_shown_is_one_error_with_its_mend(
    shown: Space, arguments: list[str], code: int, message: str
) -> None:
    shown.arm(name="two")
    shown.arm(name="bad")
    (shown.reports / "bad.json").write_text("{")
    done = shown.core("show", *arguments)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert done.err.startswith("eval-core: ")


def test_before_anything_was_measured_the_first_step_is_named(shown: Space) -> None:
    shutil.rmtree(shown.root / ".eval")
    done = shown.core("show")
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines() == [
        "eval-core: .eval/reports: no arm of eval.toml has a report",
        "  Measure first:  eval-core measure",
    ]
