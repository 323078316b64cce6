from __future__ import annotations

import json
import shutil
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Space


def set_latency(space: Space, p95: float, samples: int = 81) -> None:
    """Put a latency into the report: what a test cannot measure reliably, it states."""

    def change(report: Any) -> None:
        report["latency"] = {"p50": p95, "p95": p95, "max": p95, "samples": samples}

    space.restate(change)


def budget(space: Space, text: str) -> None:
    space.budgets.write_text(f'schema = "budgets-v1"\n[arms.notes]\n{text}\n')


# ------------------------------------------------------------------------------------------------ becoming one


def test_a_baseline_is_an_explicit_act(space: Space) -> None:
    """A4: nothing is written without --write, and measuring or grading never writes one."""
    shutil.rmtree(space.baseline.parent)
    before = space.tree("policy")
    assert space.measure().code == 0
    assert space.check().codes == ["baseline-missing"]
    done = space.gate("baseline")
    assert (done.code, "Nothing was written; --write applies it." in done.out) == (0, True)
    assert space.tree("policy") == before
    assert space.gate("baseline", "--write").code == 0
    assert space.check().code == 0


def test_a_baseline_holds_quality_alone_and_is_the_same_bytes_each_time(space: Space) -> None:
    """M8: no latency, ingest rate, process or host; rewriting it changes no byte."""
    held = json.loads(space.baseline.read_text())
    assert (held["latency"], held["ingest"]) == (None, None)
    assert (held["environment"]["process"], held["environment"]["host"]) == (None, None)
    whole = json.loads(space.report.read_text())
    assert (held["run_id"], held["rows"], held["task"]) == (whole["run_id"], whole["rows"], whole["task"])
    assert whole["latency"] is not None
    before = space.baseline.read_bytes()
    set_latency(space, 12.5)
    space.alter(space.report, lambda report: report["environment"].update(process=1, host="elsewhere"))
    assert space.gate("baseline", "--write").code == 0
    assert space.baseline.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (None, ""),
        (lambda space: space.measure(space.losing(4)), "hit@1: 4 misses, and 3 are allowed"),
        (lambda space: space.measure({"q03": "broken"}), "1 rows errored"),
        (
            lambda space: space.forge(space.report, lambda report: report.update(resumed=True)),
            "resumed after an interruption",
        ),
        (lambda space: space.report.unlink(), "no such report"),
        (lambda space: space.report.write_text("{"), "not whole JSON"),
        (lambda space: space.floors.unlink(), "no floors, so there is nothing to gate on"),
        (lambda space: space.floors.write_text('schema = "floors-v1"\n'), "names no arm"),
        (lambda space: space.budgets.write_text("schema = 1"), "schema = 1"),
    ],
)
def test_a_report_that_would_not_pass_becomes_no_baseline(space: Space, change: Any, told: str) -> None:
    """A4: a baseline passes its own floors, is whole, and was measured in one go."""
    if change is not None:
        change(space)
    before = space.tree("policy")
    done = space.gate("baseline", "--write")
    assert (done.code == 0) == (change is None), done.err
    assert told in done.err
    assert done.code in (0, 1, 2)
    assert space.tree("policy") == before


def test_an_unknown_arm_is_named_with_the_nearest(space: Space) -> None:
    done = space.gate("baseline", "note")
    assert (done.code, "did you mean 'notes'" in done.err) == (2, True)


def test_a_baseline_is_one_of_the_runs_that_the_floors_stand_on(space: Space) -> None:
    """A5: floors and baseline move together. A worse system within the floors cannot become the bar by itself."""
    worse = {"q27": 2, "q09": 2}
    assert space.measure(worse).code == 0
    assert space.check().code == 0
    done = space.gate("baseline", "--write")
    assert (done.code, "is none of the runs that the floors stand on" in done.err) == (1, True)
    space.baseline.write_bytes(space.report.read_bytes())
    assert space.check().codes == ["policy-mixed"]
    assert space.measure(worse).code == 0
    assert space.gate("floor", "--write", "--reason", "meant").code == 0
    assert space.gate("baseline", "--write").code == 0
    assert space.check().code == 0


def test_a_resumed_run_is_not_graded(space: Space) -> None:
    """S5: part of it was answered by another process, perhaps by another retriever."""
    space.forge(space.report, lambda report: report.update(resumed=True))
    assert space.check().codes == ["report-resumed"]


def test_what_a_new_baseline_changes_is_shown(space: Space) -> None:
    assert [space.measure({}).code, space.measure({}).code] == [0, 0]
    assert space.gate("floor", "--write").code == 0
    out = space.gate("baseline").out
    assert [line.split() for line in out.splitlines() if "→" in line] == [
        ["hit@1", "0.9630", "→", "1.0000", "changed"],
        ["recall@10", "1.0000", "→", "1.0000"],
        ["mrr", "0.9815", "→", "1.0000", "changed"],
    ]
    told = json.loads(space.gate("baseline", "--format", "json").out)
    assert told["written"] is False
    assert told["arms"][0]["values"]["hit@1"] == [26 / 27, 1.0]


# ---------------------------------------------------------------------------------------- drops of a measure


@pytest.fixture(scope="session")
def fifty(gated: Path, make: Callable[[Path], Space], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace of 50 queries, so that one is 2.0 points, gated with room to fall; reports of 1 and 2 misses."""
    root = tmp_path_factory.mktemp("fifty") / "space"
    shutil.copytree(gated, root, ignore=shutil.ignore_patterns("policy", ".eval"))
    space = make(root)
    queries = {f"q{number:02}": f"where is thing {number} kept" for number in range(1, 51)}
    documents = {f"d{number:02}": f"thing {number}" for number in range(1, 63)}
    space.set(queries, documents, [(name, name.replace("q", "d"), 1) for name in queries])
    others = [f"d{number}" for number in range(51, 61)]
    for lost in (0, 0, 1, 2):
        answers = {
            text: others if int(name[1:]) <= lost else [name.replace("q", "d")]
            for name, text in queries.items()
        }
        (root / "answers.json").write_text(json.dumps(answers))
        assert space.core("measure", "-q").code == 0
        shutil.copy(space.report, root / f"{lost}.json")
    room = ("--margin", "9", "--reason", "room to fall")
    assert space.gate("floor", "notes", "--write", *room, *space.evidence()[:4]).code == 0
    shutil.copy(root / "0.json", space.report)
    assert space.gate("baseline", "--write").code == 0
    return root


@pytest.fixture
def falling(fifty: Path, space: Space) -> Space:
    """A copy of the workspace of 50 queries."""
    shutil.rmtree(space.root)
    shutil.copytree(fifty, space.root)
    return space


@pytest.mark.parametrize(
    ("more", "code", "codes"),
    [(False, 0, []), (True, 1, ["baseline-drop"])],
)
def test_a_fall_of_recall_at_10_by_two_points_passes_and_by_more_fails(
    falling: Space, more: bool, code: int, codes: list[str]
) -> None:
    """A4: the gate exits 1 if recall@10 drops by more than 2.0 points against the committed baseline."""
    done = falling.check("--report", f"notes={2 if more else 1}.json")
    assert (done.code, done.codes) == (code, codes)
    if more:
        reason = done.verdict["arms"][0]["reasons"][0]
        assert reason["message"] == (
            "recall@10: 4.00 points below the baseline (1.0000 → 0.9600), and 2 are allowed"
        )
        assert [moved["query"] for moved in done.verdict["arms"][0]["lost"]] == ["q01", "q02"]


@pytest.mark.parametrize(
    ("text", "code", "codes"),
    [
        ("", 1, ["baseline-drop"]),
        ("max_drop = {}", 1, ["baseline-drop"]),
        ('max_drop = { "mrr" = 50 }', 1, ["baseline-drop"]),
        ('max_drop = { "recall@10" = 4 }', 0, []),
        ('max_drop = { "recall@10" = 3.9999 }', 1, ["baseline-drop"]),
        ('max_drop = { "recall@10" = 4, "mrr" = 3 }', 1, ["baseline-drop"]),
        ('max_drop = { "recall@10" = 0 }', 1, ["baseline-drop"]),
        ('max_drop = { "recall@10" = 4, "recall@3" = 4 }', 1, ["metric-missing"]),
    ],
)
def test_a_budget_sets_the_drop_of_the_measures_that_it_names(
    falling: Space, text: str, code: int, codes: list[str]
) -> None:
    """A4: naming another measure, or none, does not lift the rule on recall@10."""
    budget(falling, text)
    done = falling.check("--report", "notes=2.json")
    assert (done.code, done.codes) == (code, codes)


@pytest.mark.parametrize(
    ("before", "after", "falls"),
    [
        (1.0, 0.98, False),
        (0.9, 0.88, False),  # 2.0000000000000018 in doubles
        (0.31, 0.29, False),
        (0.98, 1.0, False),
        (1.0, 0.98 - 1e-12, False),
        (1.0, 0.98 - 1e-10, True),
        (1.0, 0.9799, True),
    ],
)
def test_a_drop_is_compared_unrounded(before: float, after: float, falls: bool) -> None:
    """A4: 2.0 points are 2.0 points up to the last bits of a double, and no more."""
    from eval_gate.check.grading import drops as _drops
    from eval_gate.policy import Budget

    class Stub:
        def __init__(self, value: float) -> None:
            self.summary = type("S", (), {"overall": type("O", (), {"metrics": {"recall@10": value}})})

    reasons = _drops(Budget(), Stub(before), Stub(after))  # type: ignore[arg-type]
    assert [reason.code for reason in reasons] == (["baseline-drop"] if falls else [])


def test_measuring_less_deep_does_not_lift_the_rule(space: Space) -> None:
    """A4: floors that do not name recall@10 leave it held against the baseline; a report without it is refused."""
    assert space.gate("floor", "--write", "--metric", "hit@1", "--reason", "r").code == 0
    assert space.check().code == 0
    space.edit(space.root / "eval.toml", '"jsonl"', '"jsonl"\ncutoffs = [1, 5]\nlimit = 10')
    assert space.measure().code == 0
    done = space.check()
    assert (done.code, done.codes) == (1, ["metric-missing"])
    told = done.verdict["arms"][0]["reasons"][0]["message"]
    assert told == "recall@10 is held against the baseline, and the report lacks it"
    # An arm that was never measured that deep has no such rule.
    shutil.rmtree(space.root / "policy")
    shutil.rmtree(space.root / ".eval")
    for _ in range(2):
        assert space.measure().code == 0
    assert space.gate("floor", "--write", "--metric", "hit@1").code == 0
    assert space.gate("baseline", "--write").code == 0
    assert space.check().code == 0


# ------------------------------------------------------------------------------------------------- latency


@pytest.mark.parametrize(
    ("p95", "samples", "code", "codes"),
    [
        (299.9, 81, 0, []),
        (300.0, 81, 0, []),
        (300.1, 81, 1, ["latency-over-budget"]),
        (300.0, 59, 0, []),
        (1.0, 58, 1, ["latency-not-measurable"]),
        (1.0, 1, 1, ["latency-not-measurable"]),
    ],
)
def test_p95_is_held_against_a_budget_where_there_are_samples_for_it(
    space: Space, p95: float, samples: int, code: int, codes: list[str]
) -> None:
    """A4: p95 over the budget fails, equal passes, and below 59 samples there is no bound to speak of."""
    budget(space, "p95_ms = 300")
    set_latency(space, p95, samples)
    done = space.check()
    assert (done.code, done.codes) == (code, codes)
    if codes == ["latency-not-measurable"]:
        message = done.verdict["arms"][0]["reasons"][0]["message"]
        assert message == f"{samples} samples; a bound on p95 needs 59"
    word = "pass" if not codes else "refused" if codes == ["latency-not-measurable"] else "fail"
    assert (done.verdict["verdict"], done.verdict["arms"][0]["verdict"]) == (word, word)


def test_too_few_samples_say_how_many_repetitions_it_takes(space: Space) -> None:
    budget(space, "p95_ms = 300")
    space.edit(space.root / "eval.toml", '"jsonl"', '"jsonl"\nrepetitions = 2')
    assert space.measure().code == 0
    done = space.check()
    assert done.codes == ["latency-not-measurable"]
    assert done.verdict["arms"][0]["reasons"][0]["remedy"].startswith("Set repetitions = 3")
    space.edit(space.root / "eval.toml", "repetitions = 2", "repetitions = 3")
    assert space.measure().code == 0
    assert space.check().code == 0


def test_a_report_without_latency_meets_no_budget(space: Space) -> None:
    """A frozen or stripped report can be graded where it is named, but not against a budget for a time that it does
    not hold."""
    shutil.copy(space.baseline, space.report)
    space.sidecar.unlink()
    named = ("--report", f"notes={space.report}")
    assert space.check(*named).code == 0
    budget(space, "p95_ms = 300")
    assert space.check(*named).codes == ["latency-not-measurable"]


def test_a_committed_copy_in_the_place_of_a_measurement_is_refused(space: Space) -> None:
    """K3: copying the baseline over the report that should be graded would pass for ever."""
    assert space.check().code == 0
    shutil.copy(space.baseline, space.report)
    assert space.check().codes == ["provenance-subject-differs", "report-stripped"]
    space.sidecar.unlink()
    done = space.check()
    assert (done.code, done.codes) == (1, ["report-stripped"])
    assert "eval-core measure notes" in done.verdict["arms"][0]["reasons"][0]["remedy"]


def test_an_arm_without_a_budget_may_take_its_time(space: Space) -> None:
    """M8: latency is reported, and asserted only where a budget asks for it."""
    set_latency(space, 1e6)
    done = space.check()
    assert (done.code, done.verdict["arms"][0]["p95_ms"]) == (0, 1e6)


def test_a_budget_is_written_beside_what_stands_there(space: Space) -> None:
    space.budgets.write_text(
        '# ours\nschema = "budgets-v1"\n\n[arms.notes]  # by hand\nmax_drop = { "mrr" = 5 }  # kept\n'
    )
    assert space.gate("baseline", "--p95-ms", "250", "--write").code == 0
    text = space.budgets.read_text()
    assert all(comment in text for comment in ("# ours", "# by hand", "# kept"))
    assert tomllib.loads(text) == {
        "schema": "budgets-v1",
        "arms": {"notes": {"max_drop": {"mrr": 5}, "p95_ms": 250.0}},
    }
    assert space.gate("baseline", "--p95-ms", "250", "--write").code == 0
    assert space.budgets.read_text() == text
    assert space.check().code == 0


@pytest.mark.parametrize("value", ["nan", "inf", "0", "-1", "soon"])
def test_a_budget_is_a_positive_number(space: Space, value: str) -> None:
    before = space.tree("policy")
    done = space.gate("baseline", "--p95-ms", value, "--write")
    assert (done.code, "--p95-ms" in done.err) == (2, True), done.err
    assert space.tree("policy") == before


def test_a_budget_that_the_report_does_not_meet_is_refused(space: Space) -> None:
    set_latency(space, 20)
    before = space.tree("policy")
    done = space.gate("baseline", "--p95-ms", "19", "--write")
    assert (done.code, "p95 is 20.000 ms, and the budget is 19 ms" in done.err) == (1, True)
    assert space.tree("policy") == before
