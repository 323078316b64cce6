from __future__ import annotations

import json
import re
import shutil
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Space


def latest(space: Space) -> list[str]:
    """The two newest runs of the workspace as arguments."""
    return space.evidence()[-4:]


# ------------------------------------------------------------------------------------------- what is evidence


def test_no_floor_comes_from_one_run(bare: Space) -> None:
    """S5: one run is a dated measurement; the second makes a floor."""
    assert bare.measure().code == 0
    one = bare.gate("floor", "notes", "--write")
    assert one.code == 1
    assert "one run is a dated measurement with no noise under it" in one.err
    assert "eval-core measure notes" in one.err
    assert not bare.floors.exists()
    assert bare.measure().code == 0
    assert bare.gate("floor", "notes", "--write").code == 0
    assert bare.floors.exists()


def test_the_same_bytes_twice_are_one_run(bare: Space) -> None:
    """S5: grading a report again, or a copy of it under another name, is not measuring again."""
    assert bare.measure().code == 0
    copy = bare.root / "copy.json"
    shutil.copy(bare.report, copy)
    for first, second in ((bare.report, bare.report), (bare.report, copy)):
        done = bare.gate("floor", "notes", "--evidence", first, "--evidence", second)
        assert (done.code, "1 run is no floor" in done.err) == (1, True)
    shutil.copy(bare.report, bare.root / ".eval" / "history" / "notes" / "again.json")
    assert "1 run is no floor" in bare.gate("floor", "notes").err


def test_each_step_says_the_next(bare: Space) -> None:
    """S5: floors, then a baseline, then the gate; a mistyped arm is answered with the arms that were measured."""
    assert [bare.measure().code, bare.measure().code] == [0, 0]
    done = bare.gate("floor", "noets")
    assert done.code == 1
    assert "did you mean 'notes'?" in done.err
    proposed = bare.gate("floor", "notes")
    assert "eval-gate baseline" not in proposed.out
    written = bare.gate("floor", "notes", "--write")
    assert "Next: eval-gate baseline notes --write" in written.out
    assert "Make it:  eval-gate baseline notes --write" in bare.gate("check").out
    assert bare.gate("baseline", "notes", "--write").code == 0
    assert "Next:" not in bare.gate("floor", "notes", "--write").out


def test_nothing_measured_is_no_floor(bare: Space) -> None:
    assert bare.gate("floor").code == 2
    done = bare.gate("floor", "notes")
    assert (done.code, "no such report" in done.err) == (1, True)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (None, ""),
        (lambda report: report["task"]["parts"].update(limit=20), "another task than .* (limit differ)"),
        (lambda report: report["task"]["parts"].update(corpus="0"), "another task than .* (corpus differ)"),
        (
            lambda report: report["task"]["parts"].update(split="dev", recipe="0"),
            "another task than .* (split, recipe differ)",
        ),
        (
            lambda report: report["system"]["parts"].update(options={"k1": 2}),
            "another system than .* (options differ)",
        ),
        (lambda report: report["environment"].update({"class": "laptop"}), "measured in class 'laptop'"),
        (lambda report: report.update(resumed=True), "was resumed after an interruption"),
        (lambda report: report.update(index="cached"), "took its index from a cache"),
        (lambda report: report.update(run_id="../../../x"), "has an id that no measuring gives"),
    ],
)
def test_evidence_named_on_the_command_line_is_refused_for_what_it_is(
    space: Space, change: Any, told: str
) -> None:
    """S5: another task, system or place, a resumed run, a ready-made index: refused by name, and not left out."""
    if change is not None:
        space.forge(space.runs()[0], change)
    done = space.gate("floor", "notes", *space.evidence(), "--write")
    assert done.code == (1 if change else 0), done.err
    assert re.search(told.replace("(", r"\(").replace(")", r"\)"), done.err)
    assert not (space.root.parent / "x.json").exists()


def test_an_errored_run_is_no_evidence_when_named(space: Space) -> None:
    assert space.measure({"q03": "out of memory"}).code == 3
    done = space.gate("floor", "notes", *space.evidence())
    assert (done.code, "has 1 errored and 0 unscored rows" in done.err) == (1, True)


def test_an_errored_run_of_the_past_stands_in_nobodys_way(space: Space) -> None:
    """Left out of the history and told so; were it the newest, it would be refused."""
    assert space.measure({"q03": "out of memory"}).code == 3
    newest = space.gate("floor", "notes")
    assert (newest.code, "1 errored" in newest.err) == (1, True)
    assert space.measure().code == 0
    done = space.gate("floor", "notes", "--write")
    assert done.code == 0
    assert re.search(r"run '[^']+' is left out: it has 1 errored", done.err)
    assert len(tomllib.loads(space.floors.read_text())["arms"]["notes"]["evidence"]) == 3


def test_a_run_on_a_tree_with_uncommitted_changes_is_no_evidence(space: Space) -> None:
    """K5: floors cite the commit that was measured, and of such a run no commit says what it was."""
    space.commit()
    for _ in range(2):
        assert space.measure().code == 0
    clean = latest(space)
    assert space.gate("floor", "notes", *clean, "--write").code == 0
    arm = tomllib.loads(space.floors.read_text())["arms"]["notes"]
    assert {run["commit"] for run in arm["evidence"]} == {space.git("rev-parse", "HEAD")}
    note = space.root / "scratch.txt"
    note.write_text("not told to git")
    assert space.measure().code == 0
    done = space.gate("floor", "notes", *latest(space))
    assert (done.code, "measured on a tree with uncommitted changes" in done.err) == (1, True)
    assert "Commit what was changed, then measure again:  eval-core measure notes" in done.err
    assert "uncommitted changes" in space.gate("floor", "notes").err
    # Of the past it stands in nobody's way.
    note.unlink()
    space.commit()
    assert space.measure().code == 0
    done = space.gate("floor", "notes", "--write")
    assert (done.code, "is left out: it was measured on a tree with uncommitted" in done.err) == (0, True)


def test_a_resumed_run_of_the_past_is_left_out(space: Space) -> None:
    space.forge(space.runs()[0], lambda report: report.update(resumed=True))
    done = space.gate("floor", "notes")
    assert (done.code, "1 run is no floor" in done.err) == (1, True)


def test_no_run_and_a_run_that_scored_nothing_are_no_evidence(space: Space) -> None:
    """S5: also where no script stands before it."""
    from eval_core.errors import Refused
    from eval_core.reports.report import read_report
    from eval_gate.floors.propose import derive, unfit

    with pytest.raises(Refused, match="no run has been measured") as refused:
        derive("notes", [])
    assert refused.value.reason == "no-run"
    report = read_report(space.report)
    assert unfit(report) is None
    empty = report.model_copy(update={"health": report.health.model_copy(update={"scored": 0})})
    problem = unfit(empty)
    assert problem is not None
    assert (problem.reason, problem.message) == ("evidence-errored", "scored no query")


def test_a_file_of_the_past_that_no_longer_reads_is_left_out(space: Space) -> None:
    (space.root / ".eval" / "history" / "notes" / "old.json").write_text('{"schema": "report-v1"}')
    done = space.gate("floor", "notes", "--write")
    assert done.code == 0
    assert re.search(r"left out: .*old\.json", done.err)
    assert len(tomllib.loads(space.floors.read_text())["arms"]["notes"]["evidence"]) == 2


def test_evidence_of_another_arm_is_refused(space: Space) -> None:
    space.forge(space.runs()[0], lambda report: report.update(arm="other"))
    done = space.gate("floor", "notes", *space.evidence())
    assert (done.code, "is a report of arm 'other'" in done.err) == (1, True)


@pytest.mark.parametrize("damage", ["", "{", '{"schema": "report-v1"}', None])
def test_evidence_that_is_no_report_is_refused(space: Space, damage: str | None) -> None:
    path = space.runs()[0]
    arguments = space.evidence()
    path.unlink() if damage is None else path.write_text(damage)
    done = space.gate("floor", "notes", *arguments)
    assert (done.code, str(path) in done.err) == (1, True)


# -------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("hits", [0, 1, 2])
def test_a_retriever_that_found_next_to_nothing_gets_no_floor(bare: Space, hits: int) -> None:
    """S5: a floor that a backend without answers would pass gates nothing."""
    for _ in range(2):
        assert bare.measure(bare.losing(27 - hits)).code == 0
    for measure in ("hit@1", "mrr", "recall@10"):
        done = bare.gate("floor", "notes", "--metric", measure)
        assert (done.code, "leaves nothing to gate on" in done.err) == (1, True), done.err


@pytest.mark.parametrize(("hits", "floored"), [(3, False), (5, False), (6, True), (7, True)])
def test_a_floor_that_a_random_ranking_reaches_is_refused(bare: Space, hits: int, floored: bool) -> None:
    """S5: of 27 queries over 40 documents, chance puts 4 or more at rank 1 in 0.5% of cases, and 3 or more in 3%.

    P(Bin(27, 1/40) >= 3) = 0.030 and P(... >= 4) = 0.005, so that a floor of 3 hits, which 5 give, is refused.
    """
    for _ in range(2):
        assert bare.measure(bare.losing(27 - hits)).code == 0
    done = bare.gate("floor", "notes", "--metric", "hit@1", "--write")
    assert (done.code == 0) is floored, done.err
    assert bare.floors.exists() is floored
    if not floored:
        assert "is what a random ranking of the 40 documents reaches too" in done.err
        assert "Floor a measure at a smaller k with --metric, or improve the retriever first." in done.err


def test_a_plain_floor_that_rounds_down_to_nothing_is_refused() -> None:
    from eval_core.errors import Refused
    from eval_core.reports.keys import TASK_PARTS
    from eval_gate.floors.text import plain
    from eval_gate.policy import ArmFloors, Floor

    task: dict[str, Any] = dict.fromkeys(TASK_PARTS, "none")
    for allowed, rounds_to_nothing in ((297, False), (298, True)):  # 3 / 300 = 0.01, 2 / 300 = 0.006…
        floors = {"hit@1": Floor(max_misses=allowed)}
        arm = ArmFloors(
            n=300, margin=2, provisional=True, headline="mrr", task=task, metrics=floors, evidence=()
        )
        if rounds_to_nothing:
            with pytest.raises(Refused, match=r"is 0\.00 in the plain form"):
                plain({"notes": arm})
        else:
            assert "0.01" in plain({"notes": arm})


def test_lowering_a_floor_needs_a_reason_that_stays_in_the_file(space: Space) -> None:
    """K5: a change of the bar says why, cites its runs, and keeps saying it while it stands."""
    for _ in range(2):
        assert space.measure({"q01": None, "q27": 2}).code == 0
    before = space.tree("policy")
    worse = latest(space)
    done = space.gate("floor", "notes", *worse, "--write")
    assert (done.code, "hit@1 would fall from 0.8889 to 0.8519" in done.err) == (1, True)
    assert space.tree("policy") == before
    assert space.gate("floor", "notes", *worse, "--write", "--reason", "q01 is disputed").code == 0
    arm = tomllib.loads(space.floors.read_text())["arms"]["notes"]
    assert arm["reason"] == "q01 is disputed"
    assert [run["run_id"] for run in arm["evidence"]] == [path.stem for path in space.runs()[-2:]]
    lowered = space.floors.read_bytes()
    assert space.gate("floor", "notes", *worse, "--write").code == 0
    assert space.floors.read_bytes() == lowered
    for _ in range(2):
        assert space.measure({}).code == 0
    assert space.gate("floor", "notes", *latest(space), "--write").code == 0
    assert "reason" not in tomllib.loads(space.floors.read_text())["arms"]["notes"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--margin", "3"], "a margin of 3 misses is wider than 2"),
        (["--metric", "hit@1", "--metric", "mrr"], "the floor of recall@10 would be dropped"),
    ],
)
def test_a_wider_margin_and_a_dropped_measure_lower_the_bar(
    space: Space, arguments: list[str], told: str
) -> None:
    done = space.gate("floor", "notes", *arguments)
    assert (done.code, told in done.err) == (1, True)
    assert space.gate("floor", "notes", *arguments, "--reason", "r").code == 0


@pytest.mark.parametrize(("count", "provisional"), [(2, True), (9, True), (10, False), (11, False)])
def test_floors_are_provisional_until_ten_runs_stand_under_them(
    space: Space, count: int, provisional: bool
) -> None:
    """K2: with fewer, the margin is a convention and not a measurement of how much runs differ."""
    named = []
    for number in range(count):
        path = space.root / f"{number}.json"
        shutil.copy(space.report, path)
        space.forge(path, called(f"run-{number}"))
        named += ["--evidence", str(path)]
    assert space.gate("floor", "notes", "--write", *named).code == 0
    assert tomllib.loads(space.floors.read_text())["arms"]["notes"]["provisional"] is provisional
    assert space.check().codes == ["policy-mixed"]  # the baseline is a run that they stand on no more
    assert space.gate("baseline", "--write").code == 0
    done = space.check()
    assert (done.code, done.verdict["arms"][0]["provisional"]) == (0, provisional)
    assert ("Floors are provisional" in space.gate("check").out) is provisional


def called(run: str) -> Any:
    """The change that makes a report one of another run."""
    return lambda report: report.update(run_id=run)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--metric", "recal@1"], "did you mean 'recall@1'"),
        (["--metric", "recall@3"], "no recall@3; did you mean 'recall@"),
        (["--margin", "-1"], "--margin"),
        (["--drifts", "nan"], "not a finite number"),
        (["--drifts", "1.5"], "--drifts"),
        (["--form", "plain", "--write"], "printed, not written"),
        (["other", "--evidence", "x.json"], "--evidence goes with one arm"),
        (["../notes"], "a name is lower-case letters"),
        (["notes\n"], "a name is lower-case letters"),
    ],
)
def test_wrong_usage_exits_2(space: Space, arguments: list[str], told: str) -> None:
    done = space.gate("floor", "notes", *arguments)
    assert (done.code, told in done.err) == (2, True), done.err


# ---------------------------------------------------------------------------------------------- what is written


def test_a_floor_is_proposed_as_a_diff_and_written_on_request(bare: Space) -> None:
    for _ in range(2):
        assert bare.measure().code == 0
    before = bare.tree()
    done = bare.gate("floor")
    assert done.code == 0
    assert '+"hit@1" = {max_misses = 3}' in done.out
    assert "Nothing was written; --write applies it" in done.out
    assert bare.tree() == before
    assert bare.gate("floor", "--form", "plain").code == 0
    assert bare.tree() == before
    done = bare.gate("floor", "--write")
    assert (done.code, "Wrote policy/floors.toml and the evidence beside it" in done.out) == (0, True)
    assert "already says so" not in done.out
    written = {path for path, data in bare.tree().items() if data is not None} - before.keys()
    copies = {f"policy/evidence/notes/{path.name}" for path in bare.runs()}
    assert written == {"policy/floors.toml", "policy/budgets.toml", *copies}


def test_writing_again_changes_no_byte(space: Space) -> None:
    """Nor does it touch the budgets that stand there."""
    assert space.gate("baseline", "--write", "--p95-ms", "300").code == 0
    before = space.tree("policy")
    assert b"p95_ms = 300" in (before["policy/budgets.toml"] or b"")
    done = space.gate("floor", "--write")
    assert (done.code, "already says so" in done.out) == (0, True)
    assert space.tree("policy") == before
    assert space.gate("floor", "notes", "notes", "--write").code == 0
    assert space.tree("policy") == before


def test_writing_keeps_comments_and_other_arms(space: Space) -> None:
    """Every comment stays where it stands: above, inside and below the arm that is written anew."""
    text = space.floors.read_text()
    arm = text[text.index("[arms.notes]") :]
    assert arm.startswith("[arms.notes]\nn = 27\n")
    text = (
        text.replace('schema = "floors-v1"', 'schema = "floors-v1"  # the form')
        .replace("[arms.notes]\nn = 27\n", "# about notes\n[arms.notes]\nn = 27  # counted by hand\n")
        .replace("mrr = {floor", "# the mean\nmrr = {floor")
    )
    others = arm.replace("arms.notes", 'arms."zoo.old"')
    space.floors.write_text(f"{text}\n# about zoo\n{others}\n# the end\n")
    for _ in range(2):
        assert space.measure({}).code == 0
    assert space.gate("floor", "notes", *latest(space), "--write").code == 0
    after = space.floors.read_text()
    for comment in (
        "# the form",
        "# about notes",
        "# counted by hand",
        "# the mean",
        "# about zoo",
        "# the end",
    ):
        assert after.count(comment) == 1, comment
    assert re.search(r'# about zoo\n\[arms\."zoo\.old"\]\n', after)
    assert after.endswith("\n# the end\n")
    table = tomllib.loads(after)["arms"]
    assert table["zoo.old"] == tomllib.loads(others)["arms"]["zoo.old"]
    assert table["notes"]["metrics"]["hit@1"] == {"max_misses": 2}
    assert [run["run_id"] for run in table["notes"]["evidence"]] == [path.stem for path in space.runs()[-2:]]


def dotted(text: str) -> str:
    """The same file with the arm's settings as dotted keys at the top."""
    head = re.search(r"\[arms\.notes\]\n((?:\w+ = .*\n)+)", text)
    assert head is not None
    keys = "".join(f"arms.notes.{line}\n" for line in head[1].splitlines())
    return text.replace(head[0], "").replace("min_gate", keys + "min_gate")


def inline(text: str) -> str:
    """The same file with the evidence as one array of inline tables."""
    start = text.index("[[arms.notes.evidence]]")
    runs = [
        ", ".join(line for line in block.strip().splitlines())
        for block in text[start:].split("[[arms.notes.evidence]]")[1:]
    ]
    array = "evidence = [" + ", ".join("{" + run + "}" for run in runs) + "]\n"
    return text[:start].replace("[arms.notes.odds]", array + "\n[arms.notes.odds]")


def scattered(text: str) -> str:
    """The same file with another arm's table between the arm's own."""
    arm = text[text.index("[arms.notes]") :]
    return text.replace("[arms.notes.task]", arm.replace("arms.notes", "arms.zoo") + "\n[arms.notes.task]")


@pytest.mark.parametrize("arrange", [dotted, inline, scattered])
def test_a_file_arranged_by_hand_is_edited_rightly_or_left_alone(space: Space, arrange: Any) -> None:
    text = arrange(space.floors.read_text())
    space.floors.write_text(text)
    before = tomllib.loads(text)["arms"]
    assert space.check("notes").code == 0
    for _ in range(2):
        assert space.measure({}).code == 0
    done = space.gate("floor", "notes", "--write", *latest(space))
    after = tomllib.loads(space.floors.read_text())["arms"]
    if done.code == 0:
        assert after["notes"]["metrics"]["hit@1"] == {"max_misses": 2}
        assert {**after, "notes": None} == {**before, "notes": None}
        assert space.gate("baseline", "notes", "--write").code == 0
        assert space.check("notes").code == 0
    else:
        assert (done.code, "cannot be edited without harm" in done.err) == (2, True), done.err
        assert space.floors.read_text() == text


def test_copies_of_evidence_hold_no_time_taken_process_or_host(space: Space) -> None:
    """K5, M8: what is committed is stripped of timing; the rest of a report is there."""
    copies = space.root / "policy" / "evidence" / "notes"
    assert {path.name for path in copies.iterdir()} == {path.name for path in space.runs()}
    for original in space.runs():
        kept, whole = json.loads((copies / original.name).read_text()), json.loads(original.read_text())
        assert (kept["latency"], kept["ingest"]) == (None, None)
        assert (kept["environment"]["process"], kept["environment"]["host"]) == (None, None)
        assert kept["rows"] == whole["rows"]
        assert kept["digests"] == whole["digests"]
        assert whole["latency"]["samples"] == 81
        assert whole["environment"]["process"] is not None


def test_a_proposal_for_machines_is_what_is_written(space: Space) -> None:
    before = space.tree()
    proposed = json.loads(space.gate("floor", "--format", "json").out)
    assert space.tree() == before
    assert (proposed["written"], proposed["file"]) == (False, "policy/floors.toml")
    held = tomllib.loads(space.floors.read_text())["arms"]["notes"]
    assert (
        proposed["arms"]["notes"]["metrics"]["hit@1"]["max_misses"] == held["metrics"]["hit@1"]["max_misses"]
    )
    assert proposed["arms"]["notes"]["task"] == held["task"]
    assert json.loads(space.gate("floor", "--format", "json", "--write").out)["written"] is True


def test_each_arm_has_its_own_floors(bare: Space) -> None:
    """K1: several arms over one set, each with its own operating point, evidence and verdict."""
    text = (bare.root / "eval.toml").read_text()
    other = text.replace('"notes"', '"notes-strict"').replace("adapter.py", "strict.py")
    (bare.root / "eval.toml").write_text(text + other)
    adapter = (bare.root / "adapter.py").read_text()
    (bare.root / "strict.py").write_text(adapter.replace("answers.json", "strict.json"))
    bare.answer(bare.losing(6))
    shutil.copy(bare.root / "answers.json", bare.root / "strict.json")
    for _ in range(2):
        assert bare.measure({}).code == 0
    assert bare.gate("floor", "--write").code == 0
    assert bare.gate("baseline", "--write").code == 0
    arms = tomllib.loads(bare.floors.read_text())["arms"]
    assert {name: arm["metrics"]["hit@1"] for name, arm in arms.items()} == {
        "notes": {"max_misses": 2},
        "notes-strict": {"max_misses": 8},
    }
    assert bare.check().code == 0
    # What the strict arm may miss, the other may not.
    assert bare.measure(bare.losing(6)).code == 0
    verdict = bare.check().verdict
    assert {arm["arm"]: arm["verdict"] for arm in verdict["arms"]} == {
        "notes": "fail",
        "notes-strict": "pass",
    }
    assert bare.check("notes-strict").code == 0
    assert bare.check("notes").code == 1
