"""The verb `check`: what its verdict says, what it is asked wrongly, and that its exit code is the verdict."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Space


@pytest.mark.parametrize("form", ["table", "json"])
def test_a_program_that_fails_neither_passes_nor_breaches(
    space: Space, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """K3: a crash is 3, whatever the numbers would have said, and in every format."""

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("eval_gate.check.judge.judge", broken)
    done = space.gate("check", "--format", form)
    assert (done.code, done.out) == (3, "")
    assert "internal error, ZeroDivisionError: oops" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("form", ["table", "json", "markdown", "junit", "github"])
@pytest.mark.parametrize("lost", [0, 4])
def test_the_exit_code_is_the_verdict_in_every_format(space: Space, form: str, lost: int) -> None:
    """K3: what a job does with the code is its own; the audit looks at that."""
    assert space.measure(space.losing(lost)).code == 0
    assert space.gate("check", "--format", form).code == (1 if lost else 0)


def test_a_harness_that_crashed_leaves_nothing_to_grade(space: Space) -> None:
    """K3: measuring dies of its backend: neither its exit code nor what it leaves reads as a result."""
    (space.root / "adapter.py").write_text("raise SystemExit('no model here')\n")
    assert space.core("measure", "-q").code == 3
    assert space.check().codes == ["report-missing"]


def test_a_verdict_says_each_value_its_bar_and_what_it_was(space: Space) -> None:
    """K1: by measure the value, the bar and the rule that gives it, the baseline; and in words what breached.

    27 queries, all at rank 1 but q27 at rank 2; five are lost, one more than hit@1 ever missed.
    """
    assert space.measure({**space.losing(5), "q27": 2}).code == 0
    arm = space.check().verdict["arms"][0]
    graded = {grade["measure"]: grade for grade in arm["graded"]}
    hits, recall, mrr = (graded[name] for name in ("hit@1", "recall@10", "mrr"))
    assert (hits["value"], hits["misses"], hits["misses_allowed"]) == (21 / 27, 6, 3)
    assert (hits["rule"], hits["queries"], hits["lowest"]) == ("floor", 2, 24 / 27)
    assert (recall["value"], recall["rule"], recall["queries"]) == (22 / 27, "drop", 0)
    assert (recall["lowest"], recall["floor"], recall["points"]) == (0.98, 25 / 27, 2.0)
    assert (hits["baseline"], recall["baseline"], mrr["baseline"]) == (26 / 27, 1.0, 26.5 / 27)
    said = {reason["key"]: (reason["code"], reason["message"]) for reason in arm["reasons"]}
    assert said["recall@10"] == (
        "baseline-drop",
        "recall@10 = 0.8148: the bar is 0.9800, 2 points below the baseline's 1.0000",
    )
    assert said["hit@1"] == ("floor-breached", "hit@1 = 6: 3 misses are allowed")
    assert said["mrr"] == ("floor-breached", "mrr = 0.7963: the bar is 0.9074, its floor")
    assert arm["measure"] == "recall@10"
    assert [moved["query"] for moved in arm["lost"]] == ["q01", "q02", "q03", "q04", "q05"]
    first = arm["lost"][0]
    assert (first["document"], first["before"], first["after"], first["change"]) == ("d01", 1, None, -1.0)
    assert (arm["gained"], arm["runs_agree"], arm["provisional"]) == ([], True, True)


def test_round2_b10_a_pass_names_lost_and_gained_queries(space: Space) -> None:
    """B10: in the headline, where nothing fails: q01 fell to rank 2, and q27 rose to rank 1."""
    assert space.measure({"q01": 2}).code == 0
    done = space.check()
    assert done.code == 0
    arm = done.verdict["arms"][0]
    assert arm["measure"] == "hit@1"
    assert [(m["query"], m["before"], m["after"]) for m in arm["lost"]] == [("q01", 1, 2)]
    assert [(m["query"], m["before"], m["after"]) for m in arm["gained"]] == [("q27", 2, 1)]


@pytest.mark.parametrize(
    ("ranks", "low", "high", "said"),
    [
        # Nothing flipped: 1.96 √(2/29) / √29.
        ({"q27": 2}, -0.0956, 0.0956, "9.6 points of hit@1 (notes: −9.6 to +9.6)"),
        # One lost and one gained: 1.96 √(4/29) / √29.
        ({"q01": 2}, -0.1352, 0.1352, "13.5 points of hit@1 (notes: −13.5 to +13.5)"),
        # Five lost: −5/29 ± 1.96 √(7/29 − 25/29²) / √29, and p = 0.031, so that 0 is not within.
        (
            {"q01": 2, "q02": 2, "q03": 2, "q04": 2, "q05": 2, "q27": 2},
            -0.3399,
            -0.005,
            "34.0 points of hit@1",
        ),
    ],
)
def test_every_verdict_says_what_it_rules_out(
    space: Space, ranks: dict[str, int | str | None], low: float, high: float, said: str
) -> None:
    """M5: by the interval of 27 paired differences, one lost and one gained query added (Agresti and Min)."""
    assert space.measure(ranks).code == 0
    arm = space.check().verdict["arms"][0]
    held = arm["headline"]
    assert (held["metric"], held["low"], held["high"]) == (
        "hit@1",
        pytest.approx(low, abs=5e-5),
        pytest.approx(high, abs=5e-3),
    )
    assert held["excludes"] == pytest.approx(-100 * held["low"])
    assert (arm["significance"] is None) == (arm["verdict"] == "pass")
    for form in ("table", "markdown", "junit"):
        out = space.gate("check", "--format", form).out
        assert "At 95%, no loss above" in out and said in out.replace("`", "").replace("\n  ", " ")


def test_a_lost_query_says_where_nobody_judged_what_stands_above(space: Space) -> None:
    """Ten fillers stand where d01 was, and none is judged."""
    assert space.measure({**space.losing(5), "q27": 2}).code == 0
    arm = space.check().verdict["arms"][0]
    assert {(moved["metric"], moved["above"], moved["unjudged"]) for moved in arm["lost"]} == {
        ("recall@10", 10, 10)
    }
    lines = space.gate("check").out.splitlines()
    assert "   lost  q01  where is thing 1 kept  d01  rank 1 → –  10 of 10 above unjudged" in lines
    for form in ("markdown", "junit", "github"):
        out = space.gate("check", "--format", form).out
        assert "rank 1 → –  (10 of the 10 answers above are unjudged)" in out


def test_a_lost_query_below_a_judged_answer_is_not_marked(space: Space) -> None:
    """A filler stands above d01; d28, which stands above d05, is judged not to be right."""
    assert space.measure({"q01": 2, "q27": 2}, q05=["d28", "d05"]).code == 0
    arm = space.check().verdict["arms"][0]
    assert [(m["query"], m["above"], m["unjudged"]) for m in arm["lost"]] == [("q01", 1, 1), ("q05", 1, 0)]


def test_what_moved_is_a_relevant_document(space: Space) -> None:
    """d28 came from nowhere to rank 1 for q05, of which it is judged not to be the answer; d05 fell to rank 2."""
    assert space.measure({"q27": 2}, q05=["d28", "d05"]).code == 0
    (moved,) = space.check().verdict["arms"][0]["lost"]
    assert (moved["query"], moved["document"], moved["before"], moved["after"]) == ("q05", "d05", 1, 2)


def test_a_run_that_ranked_otherwise_in_a_repetition_passes_and_says_so(space: Space) -> None:
    """K6: only the first repetition is graded, so a verdict on a non-deterministic retriever says that it is one."""
    assert space.check().verdict["arms"][0]["warnings"] == []

    def unstable(report: dict[str, Any]) -> None:
        report["rows"][0]["stable"] = False
        report["health"]["unstable"] = 1

    space.forge(space.report, unstable)
    (warning,) = space.check().verdict["arms"][0]["warnings"]
    assert "non-deterministic: repetitions ranked 1 of 27 queries otherwise" in warning


def test_runs_that_rank_otherwise_are_said_to(space: Space) -> None:
    """The evidence ranks other fillers the second time: quality is equal, and the lists are not."""
    assert space.measure({"q27": 2}, q01=["d01", "d40"]).code == 0
    space.policy()
    assert space.check().verdict["arms"][0]["runs_agree"] is False


def test_a_verdict_rests_on_a_commit_and_on_a_branch_or_says_that_it_does_not(space: Space) -> None:
    """K5: what nothing was held against is said, whatever the verdict."""
    done = space.check()
    assert (done.code, done.verdict["commit"]) == (0, None)
    assert done.verdict["notes"] == [
        "verdict of your working tree: it was measured outside of git",
        "held against no branch; --target REV holds it against one",
    ]
    commit = space.commit()
    assert space.measure().code == 0
    done = space.check()
    assert (done.code, done.verdict["commit"]) == (0, commit)
    assert [note.partition(";")[0] for note in done.verdict["notes"]] == ["held against no branch"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["note"], "did you mean 'notes'"),
        (["--report", "notes"], "write ARM=FILE"),
        (["--report", "=x.json"], "write ARM=FILE"),
        (["--report", "note=x.json"], "did you mean 'notes'"),
        (["--report", "notes=a.json", "--report", "notes=b.json"], "has a report already"),
        (["notes", "--report", "zoo=a.json"], "not among the arms to grade"),
        (["--floors", "nowhere.toml"], "nowhere.toml: there are no floors"),
        (["--floors", "set"], "cannot be read"),
        (["--policy", "nowhere"], "there are no floors"),
        (["--config", "evl.toml"], "evl.toml"),
        (["--target", ""], "a variable that is not set"),
        (["--format", "yaml"], "yaml"),
    ],
)
def test_wrong_usage_exits_2_and_grades_nothing(space: Space, arguments: list[str], said: str) -> None:
    """B4, B16: a configuration that is named must be there, and an empty target is an unset variable."""
    done = space.gate("check", *arguments)
    assert (done.code, done.out, said in done.err) == (2, "", True), done.err


def test_an_arm_named_twice_is_graded_once(space: Space) -> None:
    assert [arm["arm"] for arm in space.check("notes", "notes").verdict["arms"]] == ["notes"]


@pytest.mark.parametrize("name", ["../x", "a/b", "A", "", "a b", "x\\n", "\\u0000", "\\u001b[31m"])
def test_an_arm_of_the_floors_has_the_name_of_a_file(space: Space, name: str) -> None:
    """Its name becomes a path, so that nothing outside the folders is read, and none of it steers a terminal."""
    text = space.floors.read_text()
    space.floors.write_text(text.replace('arms."notes"', f'arms."{name}"'))
    done = space.check()
    assert (done.code, done.out) == (2, "")
    assert "a name consists of lower-case letters" in done.err
    assert "\x1b" not in done.err
    assert "\0" not in done.err


def test_a_report_without_floors_is_shown_and_passes(space: Space) -> None:
    """A second arm that nobody gates yet does not stop the first."""
    space.twin("zoo")
    space.policy()
    (space.root / "policy" / "evidence" / "zoo.jsonl").unlink()
    done = space.check()
    assert (done.code, done.verdict["not_gated"]) == (0, ["zoo"])
    assert json.loads(space.sidecar.read_text())["predicate"]["arm"] == "notes"  # no arm of its own


def test_a_link_that_leads_nowhere_in_the_sets_folder_is_no_crash(space: Space) -> None:
    """A4: it is no file that was written since."""
    (space.root / "set" / "gone.jsonl").symlink_to("nowhere")
    done = space.check()
    assert (done.code, done.err) == (0, "")
