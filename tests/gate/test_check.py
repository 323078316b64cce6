from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Space


def test_a_program_that_fails_neither_passes_nor_breaches(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K3: a crash is 3, whatever the numbers would have said."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("eval_gate.check.judge.judge", broken)
    done = space.check()
    assert (done.code, done.out) == (3, "")
    assert "internal error, ZeroDivisionError: oops" in done.err
    assert "Traceback" not in done.err


def test_a_verdict_says_each_value_its_floor_and_what_it_was(space: Space) -> None:
    """K1: per measure the value, the floor, the baseline; and in words what breached."""
    assert space.measure({**space.losing(5), "q27": 2}).code == 0
    arm = space.check().verdict["arms"][0]
    hits, recall, mrr = arm["graded"]
    assert (hits["value"], hits["misses"], hits["max_misses"], hits["floor"]) == (21 / 27, 6, 3, 24 / 27)
    assert (hits["baseline"], recall["baseline"], mrr["baseline"]) == (26 / 27, 1.0, 26.5 / 27)
    assert (recall["value"], recall["misses"], recall["max_misses"]) == (22 / 27, None, None)
    assert [reason["message"] for reason in arm["reasons"]] == [
        "hit@1: 6 misses, and 3 are allowed",
        "recall@10: 0.8148, and the floor is 0.9259",
        "mrr: 0.7963, and the floor is 0.9074",
        "recall@10: 18.52 points below the baseline (1.0000 → 0.8148), and 2 are allowed",
    ]
    assert [moved["query"] for moved in arm["lost"]] == ["q01", "q02", "q03", "q04", "q05"]
    first = arm["lost"][0]
    assert (first["document"], first["before"], first["after"]) == ("d01", 1, None)
    assert [moved["change"] for moved in arm["lost"]] == [-1.0] * 5
    assert arm["gained"] == []


def test_what_moved_is_a_relevant_document(space: Space) -> None:
    """d28 came from nowhere to rank 1 for q05, of which it is judged not to be the answer; d05 fell to rank 2."""
    assert space.measure({**space.losing(4), "q27": 2}, q05=["d28", "d05"]).code == 0
    moved = {row["query"]: row for row in space.check().verdict["arms"][0]["lost"]}
    assert (moved["q05"]["document"], moved["q05"]["before"], moved["q05"]["after"]) == ("d05", 1, 2)


def test_a_baseline_without_the_measure_tells_no_losses(space: Space) -> None:
    """Its cut-offs were others: the floor is breached all the same, and nothing can be named."""
    text = (space.root / "eval.toml").read_text()
    assert space.gate("floor", "--write", "--metric", "hit@5", "--reason", "r").code == 0
    known = hashlib.sha256(space.baseline.read_bytes()).hexdigest()
    (space.root / "eval.toml").write_text(text.replace('"jsonl"', '"jsonl"\ncutoffs = [1, 10]'))
    assert space.measure().code == 0
    space.baseline.write_bytes(space.report.read_bytes())
    (space.root / "eval.toml").write_text(text)
    floors = space.floors.read_text()
    runs = [line for line in floors.splitlines() if line.startswith("run_id")]
    other = json.loads(space.baseline.read_bytes())["run_id"]
    # Another floors file than the policy's own: its evidence has no copies to be held against.
    elsewhere = space.root / "floors.toml"
    floors = floors.replace(known, hashlib.sha256(space.baseline.read_bytes()).hexdigest())
    elsewhere.write_text(floors.replace(runs[-1], f'run_id = "{other}"'))
    space.budgets.write_text('schema = "budgets-v1"\n[arms.notes.max_drop]\n"recall@10" = 100\n')
    for lost, code, codes in ((2, 0, []), (3, 1, ["floor-breached"])):
        assert space.measure(space.losing(lost)).code == 0
        done = space.check("--floors", elsewhere)
        assert (done.code, done.codes) == (code, codes)
        arm = done.verdict["arms"][0]
        assert (arm["lost"], arm["gained"], arm["graded"][0]["baseline"]) == ([], [], None)


def test_a_run_that_ranked_otherwise_in_a_repetition_passes_and_is_told(space: Space) -> None:
    """K6: only the first repetition is graded, so a verdict on a non-deterministic retriever says that it is one."""
    assert space.check().verdict["arms"][0]["warnings"] == []

    def unstable(report: dict[str, Any]) -> None:
        report["rows"][0]["stable"] = False
        report["health"]["unstable"] = 1

    space.forge(space.report, unstable)
    (warning,) = space.check().verdict["arms"][0]["warnings"]
    assert "non-deterministic: repetitions ranked 1 of 27 queries otherwise" in warning
    assert "non-deterministic" in space.gate("check").out


def test_gains_are_told_beside_losses(space: Space) -> None:
    assert space.measure({**space.losing(4), "q27": 1, "q09": 3}).code == 0
    arm = space.check().verdict["arms"][0]
    assert [moved["query"] for moved in arm["lost"]] == ["q01", "q02", "q03", "q04", "q09"]
    assert [(moved["query"], moved["before"], moved["after"]) for moved in arm["gained"]] == [("q27", 2, 1)]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["note"], "did you mean 'notes'"),
        (["--report", "notes"], "write ARM=FILE"),
        (["--report", "=x.json"], "write ARM=FILE"),
        (["--report", "note=x.json"], "did you mean 'notes'"),
        (["--report", "notes=a.json", "--report", "notes=b.json"], "has a report already"),
        (["notes", "--report", "zoo=a.json"], "not among the arms to grade"),
        (["--floors", "nowhere.toml"], "nowhere.toml: no floors"),
        (["--floors", "set"], "cannot be read"),
        (["--policy", "nowhere"], "no floors"),
        (["--format", "yaml"], "yaml"),
    ],
)
def test_wrong_usage_exits_2_and_grades_nothing(space: Space, arguments: list[str], told: str) -> None:
    done = space.gate("check", *arguments)
    assert (done.code, done.out, told in done.err) == (2, "", True), done.err


def test_an_arm_named_twice_is_graded_once(space: Space) -> None:
    assert [arm["arm"] for arm in space.check("notes", "notes").verdict["arms"]] == ["notes"]


@pytest.mark.parametrize("name", ["../x", "a/b", "A", "", "a b", "x\\n", "\\u0000", "\\u001b[31m"])
def test_an_arm_of_the_floors_has_the_name_of_a_file(space: Space, name: str) -> None:
    """Its name becomes a path, so that nothing outside the folders is read, and none of it steers a terminal."""
    text = space.floors.read_text()
    space.floors.write_text(text.replace("arms.notes", f'arms."{name}"'))
    done = space.check()
    assert (done.code, done.out) == (2, "")
    assert "a name is lower-case letters" in done.err
    assert "\x1b" not in done.err
    assert "\0" not in done.err
