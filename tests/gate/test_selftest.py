"""The self-test: a table of attacks, each caught by its own reason; and a gate without a guard, which it finds out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest

from eval_core.reports.report import read_report
from eval_gate import selftest
from eval_gate.cli.check import check
from eval_gate.selftest import Attack, Bench, attack_arm, attacks
from eval_gate.selftest.models import SelfTest
from eval_gate.selftest.rebuild import found, lost, rebuilt
from eval_gate.selftest.words import terminal

if TYPE_CHECKING:
    from conftest import Space

ATTACKS = list(attacks())


def _id(attack: Attack) -> str:
    rounds = [case for case in attack.cases.split() if not case.isdigit()]
    return " ".join([f"{attack.on}: {attack.name}", *(f"round2_{case}" for case in rounds)])


@pytest.fixture(scope="module")
def rich(gated: Path, make: type[Space], tmp_path_factory: pytest.TempPathFactory) -> Space:
    """A workspace of two arms that has all that an attack could be on: a category, a query that must pass, rankings of
    ten documents, a commit, and a policy that requires everything."""
    root = tmp_path_factory.mktemp("rich") / "space"
    shutil.copytree(gated, root, ignore=shutil.ignore_patterns(".eval", "policy"))
    space = make(root)
    fillers = [f"d{number}" for number in range(29, 38)]
    texts = {query["_id"]: query["text"] for query in space.queries()}
    space.set(
        {
            name: {"text": text, "metadata": {"category": "kept", "must_pass": name == "q01"}}
            for name, text in texts.items()
        }
    )
    answers = {name: [name.replace("q", "d"), *fillers] for name in texts}
    space.answer(None, **answers | {"q27": [fillers[0], "d27", *fillers[1:]]})
    configuration = root / "eval.toml"
    text = configuration.read_text()
    configuration.write_text(text + text.replace("notes", "zoo"))
    space.commit()
    for _ in range(2):
        done = space.core("measure", "-q")
        assert done.code == 0, done.err
    require = ["head", "clean", "provenance", "class", "every-arm"]
    space.policy({arm: space.reports(arm) for arm in ("notes", "zoo")}, by_category=True, require=require)
    return space


@pytest.fixture(scope="module")
def bench(rich: Space, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """The copy of that workspace, which passes."""
    bench = Bench(tmp_path_factory.mktemp("bench"), rich.root / "eval.toml", rich.root / "policy", check)
    bench.arm = "notes"
    for options in ((), ("--target", "HEAD"), ("notes",)):
        answer = bench.ask(*options)
        assert (answer.exit_code, [reason.message for reason in answer.reasons]) == (0, [])
    return bench


def contents(bench: Bench) -> dict[str, bytes | str]:
    """All that lies on a bench, but for the objects that git keeps, and what it has checked out."""
    files: dict[str, bytes | str] = {
        path.relative_to(bench.root).as_posix(): path.read_bytes()
        for path in bench.root.rglob("*")
        if path.is_file() and not path.is_symlink() and ".git" not in path.parts
    }
    return files | {
        "HEAD": bench.run_git("rev-parse", "HEAD"),
        "status": bench.run_git("status", "--porcelain"),
    }


@pytest.mark.parametrize("attack", ATTACKS, ids=_id)
def test_an_attack_is_caught_by_its_own_reason(bench: Bench, attack: Attack) -> None:
    """S3, S5, K3, A4: no attack leaves anything behind on which the next could lean."""
    before = contents(bench)
    result = attack_arm(bench, attack)
    assert result.outcome == "caught", f"{result.message} {result.codes}"
    assert contents(bench) == before


#: The first twenty, but for a swallowed exit code, which is the audit's; the second round, but for B10, which is no
#: edit but what a passing verdict lists; and the edits that need a target.
CASES = {
    *map(str, range(1, 20)),
    *("B1", "B2", "B3", "B4", "B5", "B6", "B8", "B9", "B11", "B12", "B13"),
    *("invented", "rewritten", "reordered", "drift", "old-reason", "require", "headline", "measure", "rules"),
    *("renamed", "deleted"),
}


def test_round2_the_table_covers_every_case() -> None:
    """K3: each known way to make a gate lie has an attack."""
    assert {case for attack in ATTACKS for case in attack.cases.split()} == CASES
    names = [(attack.on, attack.name) for attack in ATTACKS]
    assert len(names) == len(set(names))


# ------------------------------------------------------------------------------------------------- what the verb prints


def only(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Make these attacks alone."""
    chosen = [attack for attack in ATTACKS if attack.name in names]
    assert len({attack.name for attack in chosen}) == len(names)
    monkeypatch.setattr(selftest, "attacks", lambda: iter(chosen))


def finding(space: Space, *arguments: str) -> tuple[int, Any]:
    """Exit code and finding."""
    done = space.gate("self-test", "--format", "json", *arguments)
    assert done.out, done.err
    return done.code, json.loads(done.out)


def shown(value: Any) -> str:
    """The finding as a person sees it, without colour."""
    for reason in value["control"]:
        reason.pop("message", None)  # it follows from the other fields
    return click.unstyle(terminal(SelfTest.model_validate_json(json.dumps(value))))


def outcomes(value: Any, outcome: str) -> list[str]:
    return [result["attack"] for result in value["results"] if result["outcome"] == outcome]


def test_every_arm_is_attacked_and_the_workspace_is_left_as_it_was(rich: Space) -> None:
    """S3, S5, K1: what concerns the policy as a whole is tried once, all else on each arm."""
    before = rich.tree()
    code, value = finding(rich)
    assert rich.tree() == before
    assert (code, value["verdict"], value["exit_code"], value["arms"]) == (0, "caught", 0, ["notes", "zoo"])
    assert {result["outcome"] for result in value["results"]} == {"caught"}
    whole = sum(attack.whole for attack in ATTACKS)
    assert len(value["results"]) == 2 * len(ATTACKS) - whole
    assert [one["arm"] for one in value["smallest"]] == ["notes", "zoo"]
    assert shown(value).splitlines()[-1] == f"{len(ATTACKS)} attacks on 2 arms, all caught."


def test_every_format_says_the_same(rich: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "the report is empty", "the arm has no floor")
    for form in ("table", "markdown"):
        done = rich.gate("self-test", "zoo", "--format", form)
        assert (done.code, done.err) == (0, "")
        assert "2 attacks on 1 arm, all caught." in done.out
        assert "floors-vacuous" in done.out


def test_what_the_policy_does_not_require_is_said_and_fails_nothing(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3: to look at commits and trees is the policy's choice; that it does not look is said."""
    space.policy(require=[])
    names = ("a report of another commit", "measured on a dirty tree", "no provenance", "the report is empty")
    only(monkeypatch, *names)
    code, value = finding(space)
    assert (code, value["verdict"]) == (0, "caught")
    assert outcomes(value, "not-required") == list(names[:3])
    assert "Not required by the policy, so these pass: no provenance (provenance)" in shown(value)


def test_an_attack_that_an_arm_offers_no_ground_for_is_said(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(
        monkeypatch,
        "a query that must pass is lost",
        "the arm is deleted, evidence and all",
        "the report is empty",
    )
    code, value = finding(space)
    assert (code, outcomes(value, "skipped")) == (
        0,
        ["a query that must pass is lost", "the arm is deleted, evidence and all"],
    )
    assert "Not made: the arm is deleted, evidence and all (it is the only arm)" in shown(value)


def test_without_git_nothing_is_held_against_a_branch(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "the arm is renamed", "the report is empty")
    monkeypatch.setattr("shutil.which", lambda name: None)
    code, value = finding(space)
    assert (code, outcomes(value, "caught"), outcomes(value, "skipped")) == (
        0,
        ["the report is empty"],
        ["the arm is renamed"],
    )


def test_the_bench_is_a_repository_of_its_own_whatever_the_environment_says(
    space: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K3: in a hook of git, GIT_DIR names the repository of the workspace."""
    head = space.commit()
    monkeypatch.setenv("GIT_DIR", str(space.root / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(space.root / ".git" / "index"))
    (tmp_path / "bench").mkdir()
    bench = Bench(tmp_path / "bench", space.root / "eval.toml", space.root / "policy", check)
    assert bench.run_git("rev-parse", "HEAD") != head
    monkeypatch.undo()
    assert (space.git("rev-parse", "HEAD"), space.git("status", "--porcelain")) == (head, "")


@pytest.mark.parametrize(
    ("budget", "queries", "measure", "rule"),
    [
        # 1 query of 27 is 3.7 points of recall@10, and 2.0 are allowed.
        ({}, 1, "recall@10", "drop"),
        # With 26 of 27 at rank 1, hit@1 may miss 2 more; so may recall@10, of which 27 of 27 are found.
        ({"max_drop": {"recall@10": 100.0}, "reasons": {"max_drop": "a test"}}, 3, "recall@10", "floor"),
    ],
)
def test_the_smallest_loss_is_what_arithmetic_gives(
    space: Space,
    monkeypatch: pytest.MonkeyPatch,
    budget: dict[str, Any],
    queries: int,
    measure: str,
    rule: str,
) -> None:
    """S3: how many queries, how many points, and by which rule."""
    only(monkeypatch, "one query more is lost than the bar allows")
    space.policy(budgets={"notes": budget})
    code, value = finding(space)
    (one,) = value["smallest"]
    assert code == 0
    assert (one["n"], one["queries"], one["measure"], one["rule"]) == (27, queries, measure, rule)
    assert one["points"] == pytest.approx(100 * queries / 27)
    assert f"{queries} of 27" in shown(value)


# -------------------------------------------------------------------------------------------------- what is no finding


def test_a_workspace_that_does_not_pass_is_not_attacked(space: Space) -> None:
    """S3: without a control no refusal shows anything."""
    space.report.unlink()
    code, value = finding(space)
    assert (code, value["verdict"], value["results"]) == (1, "control-failed", [])
    assert [reason["code"] for reason in value["control"]] == ["report-missing"]
    assert shown(value).startswith("CONTROL FAILED")
    assert "reason: report-missing" in shown(value)


def fails(*words: object, **named: object) -> None:
    raise ZeroDivisionError("out of order")


def interrupted(*words: object, **named: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("broken", "says"), [(fails, "internal error, ZeroDivisionError"), (interrupted, "interrupted")]
)
def test_a_gate_that_fails_itself_is_no_finding(
    space: Space, monkeypatch: pytest.MonkeyPatch, broken: Callable[..., None], says: str
) -> None:
    """K3: exit 3 never reads as a breach."""
    monkeypatch.setattr("eval_gate.check.judge.judge_arm", broken)
    done = space.gate("self-test")
    assert (done.code, done.out, says in done.err) == (3, "", True), done.err


@pytest.mark.parametrize(
    ("arguments", "change", "says"),
    [
        ([], lambda space: space.floors.unlink(), "there are no floors, so there is nothing to gate on"),
        (["note"], lambda space: None, "did you mean 'notes'?"),
    ],
)
def test_a_policy_or_an_arm_that_is_not_there_is_misuse(
    space: Space, arguments: list[str], change: Callable[[Space], object], says: str
) -> None:
    """S5: no self-test without floors."""
    change(space)
    done = space.gate("self-test", *arguments)
    assert (done.code, says in done.err) == (2, True), done.err


# ---------------------------------------------------------------------------------------------- a gate without a guard


def without(place: str, result: object = ()) -> Callable[[pytest.MonkeyPatch], None]:
    """A gate one of whose guards says nothing."""
    return lambda monkeypatch: monkeypatch.setattr(place, lambda *words, **named: result)


def ignoring(*parts: str) -> Callable[[pytest.MonkeyPatch], None]:
    """A gate that does not look at some parts of the task."""
    from eval_core.reports.keys import task_differences
    from eval_gate.check import eligibility

    return lambda monkeypatch: monkeypatch.setattr(
        eligibility,
        "task_differences",
        lambda *words: [d for d in task_differences(*words) if d.part not in parts],
    )


def believing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate that takes the digest of a line as it is written."""
    monkeypatch.setattr("eval_core.policy.evidence.line_digest", lambda line: line.line)


def forgiving(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate that breaches nothing."""
    from eval_gate.check import rules

    grades = rules.grades
    monkeypatch.setattr(
        rules,
        "grades",
        lambda *words: tuple(one.model_copy(update={"passed": True}) for one in grades(*words)),
    )


FAULTS, ELIGIBLE, TARGET = "eval_core.policy.faults", "eval_gate.check.eligibility", "eval_gate.floors.target"

#: What is broken, and the attacks that get through then.
GUARDS: list[tuple[Callable[[pytest.MonkeyPatch], None], list[str]]] = [
    (
        without("eval_core.reports.report.check_summary"),
        ["-1 as a mean", "a mean is missing", "the mean edited"],
    ),
    (
        without("eval_core.reports.report.check_rows"),
        ["every value edited to 1", "a headline that no row has"],
    ),
    (without("eval_core.reports.report.check_digests"), ["another arm's report, renamed by hand"]),
    (without("eval_core.policy.evidence._contradiction", None), ["a rank is edited"]),
    (
        without("eval_core.policy.evidence._counts", None),
        ["the health of a run is edited, its digest redone"],
    ),
    (believing, ["the commit of a run is edited"]),
    (
        without(f"{FAULTS}.unfit"),
        ["a run on a dirty tree", "a run that was resumed", "a run with a cached index", "a run with errors"],
    ),
    (
        without(f"{FAULTS}.unlike"),
        ["a run of another class", "a run of fewer queries", "a run of another system"],
    ),
    (without(f"{FAULTS}._order"), ["the runs are reordered"]),
    (without(f"{FAULTS}._measures"), ["the arm has no floor", "a measure is misspelt"]),
    (
        without(f"{FAULTS}._shown"),
        [
            "a floor is lowered by hand",
            "a floor is rounded",
            "a floor of 0",
            "the floors of a category are deleted",
        ],
    ),
    (
        without(f"{FAULTS}._hollow"),
        ["a run that found nothing, floors to match", "a margin of the whole set, with a reason"],
    ),
    (
        without(f"{FAULTS}.reasons_needed", {}),
        ["a floor is deleted", "a wider margin", "any latency is allowed", "any drop is allowed"],
    ),
    (without("eval_core.policy.requirements_left_out"), ["less is required"]),
    (
        without(f"{ELIGIBLE}.unfit"),
        [
            "resumed after an interruption",
            "an index taken from a cache",
            "a committed copy without process and timing",
            "the queries that fail are errored",
            "the queries that fail are not asked",
        ],
    ),
    (
        without(f"{ELIGIBLE}.untimely"),
        ["a report from before the evidence", "measured in another class of place"],
    ),
    (
        without(f"{ELIGIBLE}.misplaced"),
        [
            "a report of another commit",
            "git tracks the report",
            "the tree changed after measuring",
            "a changed file that git was told not to look at",
            "measured on a dirty tree",
        ],
    ),
    (
        ignoring("query_ids"),
        [
            "the queries that fail are deleted",
            "an easy query is added",
            "a query that fails becomes an easy one",
        ],
    ),
    (ignoring("judgements"), ["labels become what was returned", "one more document is called relevant"]),
    (ignoring("corpus"), ["documents are dropped", "the texts of two documents are swapped"]),
    (forgiving, ["one query more is lost than the bar allows", "rankings are cut to one document"]),
    (without("eval_gate.check.rules.must_pass"), ["a query that must pass is lost"]),
    (
        without("eval_gate.check.rules.latency"),
        [
            "answers are twice as slow as the budget",
            "too few samples for the budget",
            "more repetitions, from warm caches",
        ],
    ),
    (without(f"{TARGET}.changes"), ["two invented runs that are worse", "an old reason for a wider margin"]),
    (without(f"{TARGET}._Here.rewritten"), ["an old run rewritten, digests redone"]),
]


@pytest.mark.parametrize(("broken", "through"), GUARDS, ids=[through[0] for _, through in GUARDS])
def test_a_gate_without_a_guard_is_found_out(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    broken: Callable[[pytest.MonkeyPatch], None],
    through: list[str],
) -> None:
    """S3: where a guard is gone, the attacks that it stands against survive, and no others."""
    some = [attack for attack in ATTACKS if attack.name in (*through, "the report is cut short")]
    broken(monkeypatch)
    survived = [attack.name for attack in some if attack_arm(bench, attack).outcome == "survived"]
    assert sorted(survived) == sorted(through)


def test_a_refusal_for_another_reason_is_no_catch(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3: a query less is noticed by its count, too, which must not hide that nobody looks at which it was."""
    ignoring("query_ids")(monkeypatch)
    (attack,) = [one for one in ATTACKS if one.name == "the queries that fail are deleted"]
    result = attack_arm(bench, attack)
    assert (result.outcome, "n-differs" in result.codes) == ("survived", True)
    assert result.message.startswith("the gate said no, but for another reason: ")


def test_a_refusal_of_something_else_is_no_catch(bench: Bench) -> None:
    """S3: the reason is the attack's own where it also names what was attacked."""
    (attack,) = [one for one in ATTACKS if one.name == "a wider margin"]

    def beside(bench: Bench) -> str:
        attack.act(bench)
        return "a measure that is not there"

    assert attack_arm(bench, attack).outcome == "caught"
    assert attack_arm(bench, replace(attack, act=beside)).outcome == "survived"


def test_an_arm_is_attacked_though_another_one_does_not_pass(
    rich: Space, make: type[Space], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K6: a report that lies elsewhere keeps no other arm from being attacked."""
    shutil.copytree(rich.root, tmp_path / "space")
    space = make(tmp_path / "space")
    (space.report.parent / "zoo.json").unlink()
    only(monkeypatch, "the report is empty", "the arm is deleted")
    assert finding(space)[0] == 1
    code, value = finding(space, "notes")
    assert (code, value["arms"], len(outcomes(value, "caught"))) == (0, ["notes"], 2)


def test_an_attack_on_which_the_gate_fails_itself_is_no_catch(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K3: an uncaught exception is 3, which never reads as a breach."""
    monkeypatch.setattr("eval_gate.check.judge.judge_arm", fails)
    result = attack_arm(bench, ATTACKS[1])
    assert (result.outcome, result.codes) == ("survived", ("internal-error",))


def test_what_survives_is_named_first_and_fails(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3: a survivor is exit 1."""
    only(monkeypatch, "the report is empty", "resumed after an interruption")
    without(f"{ELIGIBLE}.unfit")(monkeypatch)
    code, value = finding(space)
    assert (code, value["verdict"]) == (1, "survived")
    assert outcomes(value, "survived") == ["resumed after an interruption"]
    lines = shown(value).splitlines()
    assert lines[0].startswith("SURVIVED")
    assert "resumed after an interruption" in lines[2]
    assert lines[-1] == "2 attacks on 1 arm, 1 not caught."
    assert "survives on notes" in space.gate("self-test", "--format", "markdown").out


# ------------------------------------------------------------------------------------------------------------ the parts


def test_a_report_that_is_built_again_of_its_own_rows_is_the_same(rich: Space) -> None:
    """K3: the control of all attacks on rows: nothing but what is altered differs."""
    report = read_report(rich.report)
    again = rebuilt(report)
    assert (again.digests.quality, again.digests.rankings, again.rows) == (
        report.digests.quality,
        report.digests.rankings,
        report.rows,
    )
    assert again.summary.overall.metrics == report.summary.overall.metrics


def test_a_lost_query_finds_nothing_and_keeps_its_other_documents(rich: Space) -> None:
    row = read_report(rich.report).rows[26]  # q27: d27 at rank 2, below d29
    assert (row.ids[:3], found(row)) == (("d29", "d27", "d30"), 2)
    gone = lost(row)
    assert (gone.ids[:2], found(gone), len(gone.ids)) == (("d29", "d30"), None, len(row.ids) - 1)
