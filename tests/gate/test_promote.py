"""`eval-gate promote`: conditions told with their figures, evidence that counts, one change or none, no mixed state."""

# long because: one repository measured by the tools, and a case for each way that a promotion can be refused or cut off

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from promote_support import FIRST, REPOSITORY, SECOND, Stage, condition_of, rule, side, staged, view

from eval_core.contract import as_json, compare_backends
from eval_core.errors import Faults, Misuse
from eval_core.reports import provenance
from eval_core.reports.report import read_report
from eval_gate.policy import Budgets, Floors, read_budgets, read_floors
from eval_gate.promotion.change import default_text
from eval_gate.promotion.models import Promotion, PromotionRecord, read_rules
from eval_gate.promotion.rules import judge
from eval_gate.promotion.state import mixed

if TYPE_CHECKING:
    from conftest import Space

HIGHER = {"metric": "recall@10", "is": "higher"}
R5 = (
    {"check": "smoke"},
    {"metric": "any_relevant_at_k", "is": "at-least-equal"},
    {"metric": "mean_reciprocal_rank", "is": "at-least-equal"},
    {"metric": "missing_ground_truth", "is": "not-higher"},
    {"check": "stable", "runs": 2},
)


@pytest.fixture(scope="session")
def base(make: type[Space], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = tmp_path_factory.mktemp("promotion") / "stage"
    staged(make(root))
    return root


@pytest.fixture
def stage(base: Path, make: type[Space], tmp_path: Path) -> Stage:
    """Two arms measured at two commits, checked in, the reference baselined: the better one can be promoted."""
    shutil.copytree(base, tmp_path / "stage")
    return Stage(make(tmp_path / "stage"))


@pytest.fixture(scope="session")
def done_once(base: Path, make: type[Space], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = tmp_path_factory.mktemp("promoted") / "stage"
    shutil.copytree(base, root)
    Stage(make(root)).written()
    return root


@pytest.fixture
def promoted(done_once: Path, make: type[Space], tmp_path: Path) -> Stage:
    """The same after the better arm was promoted, and that was committed."""
    shutil.copytree(done_once, tmp_path / "promoted")
    return Stage(make(tmp_path / "promoted"))


def recall(path: Path, k: int = 10) -> list[float]:
    """recall@k of each query by the rows of a report, computed here."""
    values = []
    for row in json.loads(path.read_text())["rows"]:
        relevant = {judged["id"] for judged in row["judged"] if judged["grade"] > 0}
        values.append(len(relevant & set(row["ids"][:k])) / len(relevant))
    return values


# What is shown


def test_a_better_backend_is_proven_with_the_figures_of_every_run(stage: Stage) -> None:
    """A5: strictly higher recall@10 than the baselined BM25 reference, in both runs; nothing is written unasked."""
    before = stage.space.tree()
    value = stage.told("tuned", "--p95-ms", "1000")
    jsonschema.validate(value, Promotion.model_json_schema(by_alias=True), jsonschema.Draft202012Validator)
    assert (value["verdict"], value["exit_code"], value["over"]) == ("proven", 0, "bm25")
    assert [one["proven"] for one in value["conditions"]] == [True] * 4
    runs = condition_of(value, "recall@10 strictly higher")["runs"]
    assert [run["evidence"] for run in runs] == [FIRST, SECOND]
    for run in runs:
        ours, theirs = (recall(stage.root / run["evidence"] / f"{name}.json") for name in ("tuned", "plain"))
        assert run["n"] == 55
        assert run["candidate"] == pytest.approx(math.fsum(ours) / 55, abs=1e-12)
        assert run["incumbent"] == pytest.approx(math.fsum(theirs) / 55, abs=1e-12)
        assert run["difference"] == pytest.approx(run["candidate"] - run["incumbent"], abs=1e-12)
        assert run["difference"] > 0
        assert run["low"] < run["difference"] < run["high"]
        assert run["low"] < 0  # told, and not asked
    assert value["notes"] == [
        f"recall@10: higher, and chance can explain it: the 95% interval reaches to 0 in {FIRST}, {SECOND}"
    ]
    assert stage.space.tree() == before


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_people_see_both_figures_of_every_run_whatever_the_answer(stage: Stage, form: str) -> None:
    """A5: never only "no": equal recall is not strictly higher, and both figures are there to see it."""
    done = stage.promote("same", "--format", form)
    assert done.code == 1
    figure = math.fsum(recall(stage.root / FIRST / "plain.json")) / 55
    assert done.out.count(f"{figure:.4f}") == 4
    assert "does not hold in runs/1 and 1 more" in done.out
    assert "not proven" in done.out.lower().splitlines()[0]


def test_equal_recall_is_not_strictly_higher(stage: Stage) -> None:
    """A5: a tie leaves the incumbent."""
    value = stage.told("same")
    assert (value["verdict"], value["reasons"]) == ("not-proven", [])
    found = condition_of(value, "recall@10 strictly higher")
    assert not found["proven"]
    assert [run["difference"] for run in found["runs"]] == [0, 0]


def test_what_is_not_proven_is_not_written(stage: Stage) -> None:
    """A5: all of it or nothing."""
    before = stage.space.tree()
    done = stage.promote("same", "--p95-ms", "1000", "--write")
    assert done.code == 1
    assert stage.space.tree() == before


def test_a_reference_that_was_not_baselined_is_no_reference(stage: Stage) -> None:
    """A5: the BM25 reference is baselined first."""
    (stage.policy / "baselines" / "plain.json").unlink()
    found = condition_of(stage.told(), "the incumbent is baselined")
    assert not found["proven"]
    assert "no such baseline" in found["why"]


def test_a_measure_that_one_side_lacks_proves_nothing(stage: Stage) -> None:
    """R8: the candidate was measured to rank 5 only, and recall@10 is asked."""
    found = condition_of(stage.told("short"), "recall@10 strictly higher")
    assert not found["proven"]
    assert found["runs"][0]["candidate"] is None and found["runs"][0]["incumbent"] is not None
    assert "candidate of runs/1 without recall@10" in found["why"]


def test_more_runs_than_there_are_can_be_asked_for(stage: Stage) -> None:
    """R5: stability is over as many runs as the rule says."""
    asked = '{ metric = "mrr", is = "higher" }, { check = "stable", runs = 3 }'
    stage.rules(f'[[rule]]\nover = "plain"\nconditions = [{asked}]\n')
    value = stage.told()
    assert value["over"] == "plain"  # the arm's name goes before its backend's
    assert not condition_of(value, "stable over 3 consecutive runs")["proven"]


# Every condition of R5 false once, on sides made by hand: ranks of the one relevant document of each query.

GOOD = {"a": 1, "b": 2, "c": None}


@pytest.mark.parametrize(
    ("candidate", "incumbent", "more", "failing"),
    [
        (GOOD, GOOD, {}, []),
        ({"a": 1, "b": 2, "c": 9}, GOOD, {}, []),
        # One query fewer is found; the first rank of another makes up for it in the mean of reciprocal ranks.
        (
            {"a": 1, "b": None, "c": None},
            {"a": 2, "b": 3, "c": None},
            {},
            ["any_relevant_at_k at least equal"],
        ),
        ({"a": 1, "b": 3, "c": None}, GOOD, {}, ["mean_reciprocal_rank at least equal"]),
        (GOOD, GOOD, {"missing": 1}, ["missing_ground_truth not higher"]),
        ({"a": 1, "b": 2}, GOOD, {}, ["scores all that the incumbent does"]),
        (GOOD, GOOD, {"failed": 1}, ["the comparison smoke passes"]),
    ],
)
def test_each_condition_of_the_rule_decides(
    candidate: dict[str, int | None],
    incumbent: dict[str, int | None],
    more: dict[str, Any],
    failing: list[str],
) -> None:
    """R5: smoke, any_relevant_at_k, mean_reciprocal_rank and missing_ground_truth, each by itself."""
    views = [view(side("new", candidate, **more), side("old", incumbent), number) for number in (1, 2)]
    found = judge("new", "old", rule(*R5), views)
    assert [
        one.text for one in found.conditions if not one.proven and one.condition.check != "stable"
    ] == failing
    measured = [name for name in failing if "_" in name]
    stable = next(one for one in found.conditions if one.condition.check == "stable")
    assert stable.proven == (not measured)
    assert found.exit_code == (1 if failing else 0)


def test_what_holds_in_one_run_alone_is_not_stable() -> None:
    """R5: the second run says otherwise, and its figures are told."""
    better, worse = {"a": 1, "b": 1}, {"a": 1, "b": 4}
    views = [
        view(side("new", ranks), side("old", {"a": 1, "b": 2}), place)
        for place, ranks in ((1, better), (2, worse))
    ]
    found = judge("new", "old", rule(*R5), views)
    assert found.verdict == "not-proven"
    mrr = next(one for one in found.conditions if one.condition.metric == "mean_reciprocal_rank")
    assert [(run.candidate, run.incumbent, run.holds) for run in mrr.runs] == [
        (1.0, 0.75, True),
        (0.625, 0.75, False),
    ]
    stable = next(one for one in found.conditions if one.condition.check == "stable")
    assert (stable.proven, stable.why) == (False, "every measure holds in 1 of 2 runs")


@pytest.mark.parametrize(
    ("candidate", "incumbent", "told"),
    [
        ({"a": None, "b": None}, {"a": None, "b": None}, "both sides of runs/1 score zero on all queries"),
        ({}, {}, "no query was scored on both sides of runs/1"),
        ({"a": 1}, {"b": 1}, "no query was scored on both sides of runs/1"),
    ],
)
def test_evidence_that_shows_nothing_proves_nothing(
    candidate: dict[str, int | None], incumbent: dict[str, int | None], told: str
) -> None:
    """R8: zero is at least equal to zero, and no evidence."""
    views = [view(side("new", candidate), side("old", incumbent), number) for number in (1, 2)]
    found = judge("new", "old", rule(*R5), views, baselined="yes")
    assert found.exit_code == 1
    assert not any(one.proven for one in found.conditions)
    assert all(told in one.why for one in found.conditions)


def test_no_evidence_at_all_proves_nothing() -> None:
    """R8: no run could be read."""
    found = judge("new", "old", rule(*R5), [])
    assert found.exit_code == 1 and not any(one.proven for one in found.conditions)


def test_figures_are_compared_unrounded() -> None:
    """A5: rank 9,999 is strictly better than rank 10,000, and prints the same to four decimals."""
    sides = [side(name, {"q": rank}, limit=10_000) for name, rank in (("new", 9_999), ("old", 10_000))]
    views = [view(sides[0], sides[1], number) for number in (1, 2)]
    found = judge("new", "old", rule({"metric": "mrr", "is": "higher"}), views)
    assert found.verdict == "proven"
    run = found.conditions[1].runs[0]
    assert f"{run.candidate:.4f}" == f"{run.incumbent:.4f}" == "0.0001"
    back = judge(
        "old", "new", rule({"metric": "mrr", "is": "at-least-equal"}), [view(sides[1], sides[0], 1)] * 2
    )
    assert not back.conditions[1].proven


# What is evidence


def unlike_again(stage: Stage, folder: str) -> None:
    """Put the second run's reports in another folder, and commit them."""
    shutil.copytree(stage.root / SECOND, stage.root / folder)
    stage.space.commit(folder)


def other_commit(report: Any) -> None:
    report["environment"]["commit"] = "0" * 40


def dirty(report: Any) -> None:
    report["environment"]["dirty"] = True


def cached(report: Any) -> None:
    report["index"] = "cached"


def resumed(report: Any) -> None:
    report["resumed"] = True


def other_corpus(report: Any) -> None:
    report["task"]["parts"]["corpus"] = "0" * 64


def other_system(report: Any) -> None:
    report["system"]["parts"]["implementation"] = {"version": "another"}


def other_class(report: Any) -> None:
    report["environment"]["class"] = "desk"


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        (dirty, {"evidence-dirty"}),
        (cached, {"evidence-cached"}),
        (resumed, {"evidence-resumed"}),
        (other_commit, {"evidence-commit-differs", "evidence-commit-unknown"}),
        (other_corpus, {"evidence-task-differs"}),
        (other_system, {"evidence-system-differs"}),
        (other_class, {"evidence-class-differs"}),
    ],
)
def test_a_run_that_is_no_evidence_is_refused(
    stage: Stage, change: Callable[[Any], object], codes: set[str]
) -> None:
    """R5: what could carry no floor carries no promotion, and every condition is told all the same."""
    stage.forged("tuned", change)
    value = stage.told("tuned", "--p95-ms", "1000", "--write")
    assert {reason["code"] for reason in value["reasons"]} == codes
    found = condition_of(value, "recall@10 strictly higher")
    assert not found["proven"]
    assert [run["candidate"] is not None for run in found["runs"]] == [True, True]
    assert mixed(stage.config, stage.policy, *bar(stage)) == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (other_corpus, "evidence-task-differs"),
        (other_class, "evidence-class-differs"),
        (other_commit, "evidence-commit-unknown"),
    ],
)
def test_runs_of_another_state_do_not_stand_beside_each_other(
    stage: Stage, change: Callable[[Any], object], code: str
) -> None:
    """R5: each run may be sound in itself; two of different tasks or places do not show that a result is stable."""
    for name in ("tuned", "plain"):
        stage.forged(name, change)
    assert stage.codes() == [code]


def test_a_commit_of_another_branch_is_not_of_this_history(stage: Stage) -> None:
    """R5: the commit exists, and what was measured there was never merged."""
    tree = stage.space.git("rev-parse", "HEAD^{tree}")
    strange = stage.space.git("commit-tree", tree, "-p", "HEAD~1", "-m", "never merged")
    for name in ("tuned", "plain"):
        stage.forged(name, lambda report: report["environment"].update(commit=strange))
    value = stage.told()
    assert [reason["code"] for reason in value["reasons"]] == ["evidence-commit-unknown"]
    assert strange[:12] in value["reasons"][0]["message"]


def test_the_order_of_the_commits_is_the_order_of_the_evidence(stage: Stage) -> None:
    """R5: consecutive runs: each at a commit that the next one's follows."""
    value = stage.told(evidence=(SECOND, FIRST))
    assert [reason["code"] for reason in value["reasons"]] == ["evidence-order"]
    assert "the wrong way round" in value["reasons"][0]["message"]


def test_one_run_twice_is_one_run(stage: Stage) -> None:
    """R5: two runs, and not two names for one, nor two copies of it."""
    assert set(stage.codes(evidence=(SECOND, SECOND))) == {"evidence-same-run"}
    unlike_again(stage, "runs/3")
    assert set(stage.codes(evidence=(SECOND, "runs/3"))) == {"evidence-same-run"}


def test_two_runs_at_one_commit_are_two_runs(stage: Stage) -> None:
    """R5: the same commit twice is allowed, with distinct run ids."""
    assert stage.space.core("measure", "-q", "plain", "tuned").code == 0
    shutil.copytree(stage.root / ".eval" / "reports", stage.root / "runs/3")
    assert stage.space.core("measure", "-q", "plain", "tuned").code == 0
    shutil.copytree(stage.root / ".eval" / "reports", stage.root / "runs/4")
    for name in ("runs/3", "runs/4"):
        # Measuring both left the first one's folder behind; both are of one clean commit, by their own account.
        stage.space.forge(stage.root / name / "tuned.json", lambda r: r["environment"].update(dirty=False))
        stage.space.forge(stage.root / name / "plain.json", lambda r: r["environment"].update(dirty=False))
    stage.space.commit("both")
    value = stage.told("tuned", "--p95-ms", "1000", evidence=("runs/3", "runs/4"))
    assert (value["verdict"], value["reasons"]) == ("proven", [])
    assert len({facts["commit"] for facts in value["evidence"]}) == 1


@pytest.mark.parametrize("changed", [True, False])
def test_evidence_is_checked_in(stage: Stage, changed: bool) -> None:
    """R5: checked in as it is: neither a file beside the commit, nor one that was changed since."""
    path = stage.root / "runs/3"
    shutil.copytree(stage.root / SECOND, path)
    if changed:
        stage.space.commit("runs/3")
        for name in ("tuned", "plain"):
            stage.space.forge(
                path / f"{name}.json", lambda report: report.update(run_id=report["run_id"] + "x")
            )
    value = stage.told(evidence=(FIRST, "runs/3"))
    assert [reason["code"] for reason in value["reasons"]] == ["evidence-uncommitted"]
    assert ("not as it was committed" in value["reasons"][0]["message"]) is changed


def test_a_ci_run_stands_for_evidence_that_is_not_checked_in(stage: Stage) -> None:
    """R5: an equivalent reviewable CI artefact: the reports are of that CI run, and the record keeps its address."""
    run = "https://ci.example.org/things/runs/4711"
    path = stage.root / "runs/3"
    shutil.copytree(stage.root / SECOND, path)
    named = (FIRST, "runs/3")
    assert stage.codes("tuned", "--artefact", run, evidence=named) == ["evidence-not-ci"] * 2
    for name in ("tuned", "plain"):
        stage.space.forge(path / f"{name}.json", lambda report: report["environment"].update(ci_run="4711"))
    assert (
        stage.codes("tuned", "--artefact", run.replace("4711", "14711"), evidence=named)
        == ["evidence-not-ci"] * 2
    )
    done = stage.promote("tuned", "--artefact", run, "--p95-ms", "1000", "--write", evidence=named)
    assert done.code == 0, done.out
    record = json.loads((stage.policy / "promotions" / "0001-tuned.json").read_text())
    assert [facts.get("artefact") for facts in record["evidence"]] == [None, run]
    assert stage.promote("tuned", "--artefact", run).code == 2  # nothing is left for it to stand for
    for bad in ("ci.example.org/1", "https://me:secret@ci.example.org/1", "https://ci.example.org/\x1b[2J"):
        assert stage.promote("tuned", "--artefact", bad, evidence=named).code == 2


def test_two_sides_of_another_task_are_not_held_against_each_other(stage: Stage) -> None:
    """R5: the arm that filters was asked something easier."""
    value = stage.told("filtered")
    assert {reason["code"] for reason in value["reasons"]} == {"evidence-task-differs"}
    assert "filter" in value["reasons"][0]["message"]


def test_errored_rows_are_no_evidence(stage: Stage) -> None:
    """R8: what failed is no zero, and a run with it shows nothing."""

    def fail(report: Any) -> None:
        row = report["rows"][3]
        row.update(outcome="errored", ids=[], metrics={}, detail="it broke")
        for judged in row["judged"]:
            judged["rank"] = None
        report["health"].update(errored=1, scored=54)
        scored = [row["metrics"] for row in report["rows"] if row["outcome"] == "scored"]
        overall = report["summary"]["overall"]
        overall["n"] = 54
        overall["metrics"] = {name: math.fsum(v[name] for v in scored) / 54 for name in overall["metrics"]}
        for name, part in report["summary"]["categories"].items():
            rows = [
                r for r in report["rows"] if r["meta"].get("category") == name and r["outcome"] == "scored"
            ]
            part["n"] = len(rows)
            part["metrics"] = {
                m: math.fsum(r["metrics"][m] for r in rows) / len(rows) for m in part["metrics"]
            }

    stage.forged("tuned", fail)
    value = stage.told()
    assert [reason["code"] for reason in value["reasons"]] == ["evidence-errored"]
    assert not condition_of(value, "scores all that the incumbent does")["proven"]


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda path: path.unlink(), "evidence-missing"),
        (lambda path: path.write_text("{}"), "report-malformed"),
        (lambda path: path.write_text(path.read_text().replace('"n": 55', '"n": 54', 1)), "report-malformed"),
        (lambda path: shutil.copyfile(path.with_name("plain.json"), path), "report-of-another-arm"),
    ],
)
def test_evidence_that_does_not_load_is_told_beside_the_rest(
    stage: Stage, spoil: Callable[[Path], object], code: str
) -> None:
    """R5: the other run's figures are told; nothing is proven by one."""
    spoil(stage.root / SECOND / "tuned.json")
    value = stage.told()
    assert [reason["code"] for reason in value["reasons"]] == [code]
    assert [run["evidence"] for run in condition_of(value, "recall@10 strictly higher")["runs"]] == [FIRST]
    assert not any(one["proven"] for one in value["conditions"] if one["condition"].get("metric"))


def test_numbers_of_another_configuration_than_the_present_one_are_refused(stage: Stage) -> None:
    """A5: what is promoted is what was measured."""
    stage.space.edit(stage.config, '[arms."tuned"]\ndataset = "memory"\nbackend = "bm25"\n', TUNED_OTHERWISE)
    assert stage.codes() == ["provenance-diverges"] * 2


TUNED_OTHERWISE = '[arms."tuned"]\ndataset = "memory"\nbackend = "bm25"\noptions.k1 = 2.0\n'


# Comparisons of backends


@pytest.fixture
def compared(stage: Stage) -> Iterator[Callable[..., str]]:
    """Compare backends over two notes, and check the JSON in; its path."""
    notes = stage.root / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("apple pie")
    (notes / "b.md").write_text("banana bread")
    (notes / "c.md").write_text("nothing of the kind")
    queries = [
        {"id": "q1", "query": "apple", "ground_truth": ["a.md"]},
        {"id": "q2", "query": "banana", "ground_truth": ["b.md"]},
    ]
    (stage.root / "manifest.json").write_text(json.dumps({"id": "notes", "queries": queries}))
    stage.space.commit("notes")
    rules = "\n".join(f"  {{ {', '.join(f'{k} = {json.dumps(v)}' for k, v in one.items())} }}," for one in R5)
    stage.rules(f'[[rule]]\nover = "random"\nconditions = [\n{rules}\n]\n')

    def make(name: str, *backends: str, commit: bool = True) -> str:
        # Relative, as a person in the repository names them: the JSON says where it was read.
        before = Path.cwd()
        os.chdir(stage.root)
        try:
            found = compare_backends(Path("manifest.json"), Path("notes"), list(backends), 2)
        finally:
            os.chdir(before)
        (stage.root / name).write_text(as_json(found))
        if commit:
            stage.space.commit(name)
        return name

    yield make


def test_comparisons_of_backends_are_held_to_the_rule(stage: Stage, compared: Callable[..., str]) -> None:
    """R5: the figures are those of the comparison itself, and a backend needs no arm to be held to the rule."""
    runs = compared("1.json", "bm25", "random", "overlap"), compared("2.json", "bm25", "random", "overlap")
    value = stage.told("bm25", over="random", evidence=runs)
    assert value["verdict"] == "proven", value
    (whole,) = [
        b for b in json.loads((stage.root / "1.json").read_text())["backends"] if b["backend"] == "random"
    ]
    for name in ("any_relevant_at_k", "mean_reciprocal_rank", "missing_ground_truth"):
        run = next(one for one in value["conditions"] if one["condition"].get("metric") == name)["runs"][0]
        assert run["incumbent"] == whole[name]
    assert condition_of(value, "mean_reciprocal_rank at least equal")["runs"][0]["candidate"] == 1
    # Byte for byte the same, as backends are that answer alike each time: a reviewer is told.
    assert "byte for byte" in value["notes"][0]
    log = stage.space.git("log", "--format=%H", "-2").split()
    assert [facts["commit"] for facts in value["evidence"]] == log[::-1]


def test_the_commits_that_checked_comparisons_in_are_their_order(
    stage: Stage, compared: Callable[..., str]
) -> None:
    """R5: a comparison names no commit and no run, so two need two check-ins, the oldest first."""
    runs = compared("1.json", "bm25", "random"), compared("2.json", "bm25", "random")
    assert stage.codes("bm25", over="random", evidence=runs[::-1]) == ["evidence-order"]
    again = compared("3.json", "bm25", "random", commit=False), compared("4.json", "bm25", "random")
    assert stage.codes("bm25", over="random", evidence=again) == ["evidence-same-run"]


def test_a_comparison_that_is_not_checked_in_needs_run_and_commit(
    stage: Stage, compared: Callable[..., str]
) -> None:
    """R5: the CI run that made it, and the commit that it searched."""
    runs = compared("1.json", "bm25", "random"), compared("2.json", "bm25", "random", commit=False)
    here, url = stage.space.git("rev-parse", "HEAD"), "https://ci.example.org/1"
    assert stage.codes("bm25", over="random", evidence=runs) == ["evidence-uncommitted"]
    assert stage.codes("bm25", "--artefact", url, over="random", evidence=runs) == ["evidence-commit-unknown"]
    assert stage.codes("bm25", "--artefact", f"{here[:12]}={url}", over="random", evidence=runs) == []


def test_comparisons_of_other_tasks_or_forms_do_not_stand_together(
    stage: Stage, compared: Callable[..., str]
) -> None:
    """R5: another corpus is another task, and reports are another form."""
    first = compared("1.json", "bm25", "random")
    (stage.root / "notes" / "d.md").write_text("date")
    second = compared("2.json", "bm25", "random")
    assert stage.codes("bm25", over="random", evidence=(first, second)) == ["evidence-task-differs"]
    for name in ("tuned", "plain"):
        shutil.copyfile(stage.root / SECOND / f"{name}.json", stage.root / SECOND / f"copy-{name}.json")
    value = stage.told("bm25", over="random", evidence=(first, SECOND))
    assert [reason["code"] for reason in value["reasons"]] == ["evidence-missing"]


def test_a_comparison_that_was_edited_or_lacks_a_side_is_refused(
    stage: Stage, compared: Callable[..., str]
) -> None:
    """R8: its figures are recomputed; one that was improved by hand does not load."""
    runs = compared("1.json", "bm25", "random"), compared("2.json", "bm25", "overlap")
    assert stage.codes("bm25", over="random", evidence=runs) == ["evidence-side-missing"]
    path = stage.root / "2.json"
    path.write_text(path.read_text().replace('"mean_reciprocal_rank": 1.0', '"mean_reciprocal_rank": 0.5'))
    assert stage.codes("bm25", over="random", evidence=runs) == ["evidence-malformed"]


def test_a_comparison_in_which_both_find_nothing_is_vacuous(
    stage: Stage, compared: Callable[..., str]
) -> None:
    """R8: a third backend that finds something does not make the two sides show anything."""
    (stage.root / "notes" / "c.md").rename(stage.root / "notes" / "zz.md")
    (stage.root / "manifest.json").write_text(
        json.dumps({"id": "notes", "queries": [{"id": "q", "query": "zebra", "ground_truth": ["zz.md"]}]})
    )
    runs = compared("1.json", "bm25", "overlap"), compared("2.json", "bm25", "overlap")
    stage.rules('[[rule]]\nover = "overlap"\nconditions = [{ metric = "mrr", is = "at-least-equal" }]\n')
    value = stage.told("bm25", over="overlap", evidence=runs)
    assert (value["verdict"], value["reasons"]) == ("not-proven", [])
    found = condition_of(value, "mrr at least equal")
    assert (found["proven"], found["runs"][0]["candidate"]) == (False, 0)
    assert "vacuous" in found["why"]


def test_an_arm_with_options_is_not_what_a_comparison_compared(
    stage: Stage, compared: Callable[..., str]
) -> None:
    """R5: backends are compared as they are; the arm by that name answers otherwise."""
    runs = compared("1.json", "bm25", "random"), compared("2.json", "bm25", "random")
    assert stage.codes("plain", over="random", evidence=runs) == ["evidence-system-differs"] * 2


def test_an_arm_is_promoted_on_comparisons_and_floored_on_its_history(
    stage: Stage, compared: Callable[..., str]
) -> None:
    """R5, A5: the floors stand on measured runs of the arm, since a comparison is no report."""
    runs = compared("1.json", "bm25", "random"), compared("2.json", "bm25", "random")
    done = stage.promote("tuned", "--p95-ms", "1000", "--write", over="random", evidence=runs)
    assert done.code == 0, done.out + done.err
    assert len(read_floors(stage.policy / "floors.toml").arms["tuned"].evidence) == 2
    assert stage.space.gate("check").code == 0


# An endpoint that only the operator knows


ENDPOINT = """
[[rule]]
over = "plain"
conditions = [{ metric = "recall@10", is = "higher" }]

[[endpoint]]
backend = "tuned"
environment = "RERANK_ENDPOINT"
documented = "docs/rerank.md"
fallback = "plain"
"""


def test_an_endpoint_of_the_operators_environment_is_refused_with_all_that_is_missing(stage: Stage) -> None:
    """R6: endpoint configuration, documented failure behaviour, and the same offline fallback, in the commit."""
    stage.rules(ENDPOINT)
    value = stage.told("tuned", "--p95-ms", "1000", "--write")
    assert value["verdict"] == "refused" and not value["written"]
    (reason,) = value["reasons"]
    assert reason["code"] == "endpoint-operator-only"
    assert "its endpoint is only the operator's RERANK_ENDPOINT" in reason["message"]
    for missing in ("options.endpoint", "docs/rerank.md", "options.fallback = 'plain'"):
        assert missing in reason["message"]
    # What it scored is told all the same.
    assert condition_of(value, "recall@10 strictly higher")["proven"]


@pytest.mark.parametrize(
    ("endpoint", "fallback", "document", "missing"),
    [
        ("http://rerank:8080", "plain", "It answers as plain does.", []),
        ("http://rerank:8080", "plain", "", ["docs/rerank.md"]),
        ("http://rerank:8080", "other", "It fails.", ["options.fallback"]),
        ("", "plain", "It fails.", ["options.endpoint"]),
        ("$RERANK_ENDPOINT", "plain", "It fails.", ["options.endpoint"]),
        ("$RERANK_ENDPOINT", "other", "", ["options.endpoint", "docs/rerank.md", "options.fallback"]),
    ],
)
def test_each_part_of_an_endpoint_is_looked_up_in_the_commit(
    stage: Stage, endpoint: str, fallback: str, document: str, missing: list[str]
) -> None:
    """R6: and not in the working tree: what is only written there is not yet there."""
    from eval_gate.promotion.evidence import Arm, operator_only
    from eval_gate.promotion.places import Places

    stage.rules(ENDPOINT)
    asked = read_rules(stage.policy / "promotion.toml").endpoint
    text = f'options.endpoint = "{endpoint}"\noptions.fallback = "{fallback}"\n'
    tuned = '[arms."tuned"]\ndataset = "memory"\nbackend = "bm25"\n'
    stage.space.edit(stage.config, tuned, tuned + text)
    (stage.root / "docs").mkdir()
    (stage.root / "docs" / "rerank.md").write_text(document)
    arm = Arm("tuned", {"backend": "bm25"})

    def found() -> list[str]:
        with Places.at(stage.root) as places:
            return [reason.message for reason in operator_only(asked, arm, "bm25", stage.config, places)]

    (before,) = found()
    assert all(part in before for part in ("options.endpoint", "docs/rerank.md", "options.fallback"))
    stage.space.commit("all of it")
    after = found()
    assert len(after) == bool(missing)
    for part in ("options.endpoint", "docs/rerank.md", "options.fallback"):
        assert (part in "".join(after)) is (part in missing)


# The change


def test_one_change_moves_default_floors_baseline_budget_and_record(stage: Stage) -> None:
    """A5: in one commit the gate moves to the better backend, and passes."""
    bar_before = stage.space.tree("policy")
    done = stage.promote("tuned", "--p95-ms", "1000", "--write")
    assert done.code == 0, done.out + done.err
    changed = stage.space.git("status", "--porcelain", "-uall").splitlines()
    names = {line[2:].strip() for line in changed}
    copies = {name for name in names if name.startswith("policy/evidence/tuned/")}
    assert len(copies) == 2
    record_name = "policy/promotions/0001-tuned.json"
    assert names - copies == {
        "eval.toml",
        "policy/floors.toml",
        "policy/budgets.toml",
        "policy/baselines/tuned.json",
        "policy/baselines/tuned.intoto.jsonl",
        record_name,
    }
    assert all(name in done.out for name in names - copies)
    # What produced the baseline is vouched for, as publishing asks.
    baseline = stage.policy / "baselines" / "tuned.json"
    report = read_report(baseline, "tuned")
    assert provenance.check(report, baseline.read_bytes(), provenance.sidecar(baseline)) == []
    # The configuration keeps its words, and gains one table.
    assert stage.config.read_text().startswith("# The arms of this repository.")
    assert "# hardly any weight for repeated terms" in stage.config.read_text()
    assert 'memory = "tuned"' in stage.config.read_text().partition("[default]")[2]
    # The incumbent's bar stands as it stood.
    assert read_floors(stage.policy / "floors.toml").arms["plain"].evidence
    assert (
        stage.space.tree("policy")["policy/baselines/plain.json"] == bar_before["policy/baselines/plain.json"]
    )

    raw = (stage.root / record_name).read_text()
    record = PromotionRecord.model_validate_json(raw)
    jsonschema.validate(json.loads(raw), PromotionRecord.model_json_schema(by_alias=True))
    assert (record.number, record.candidate, record.incumbent, record.dataset) == (
        1,
        "tuned",
        "plain",
        "memory",
    )
    assert "recall@10" in record.reason
    for facts in record.evidence:
        for name, digest in facts.files.items():
            assert hashlib.sha256((stage.root / name).read_bytes()).hexdigest() == digest
        assert facts.commit is not None and stage.space.git("cat-file", "-t", facts.commit) == "commit"
        assert set(facts.runs) == {"tuned", "plain"}
    assert {run.sha256 for run in record.floors} == {
        hashlib.sha256((stage.root / name).read_bytes()).hexdigest() for name in copies
    }
    assert all(one.proven for one in record.conditions)

    stage.space.commit("Promote tuned over plain")
    assert mixed(stage.config, stage.policy, *bar(stage)) == []
    check = stage.space.check()
    assert (check.code, check.codes) == (0, [])
    assert [arm["arm"] for arm in check.verdict["arms"]] == ["plain", "tuned"]
    assert stage.codes("tuned", "--p95-ms", "1000") == ["already-default"]


def test_the_default_is_what_can_be_replaced(promoted: Stage) -> None:
    """A5: a candidate is held against what stands, not against something weaker beside it."""
    assert promoted.codes("filtered", over="plain") == ["evidence-task-differs"] * 2 + ["not-the-default"]


@pytest.mark.parametrize(
    ("arguments", "standing", "code"),
    [
        ((), None, "budget-missing"),
        (("--p95-ms", "0.0001"), None, "latency-over-budget"),
        ((), 0.0001, "latency-over-budget"),
        ((), 1000.0, None),
        (("--p95-ms", "1000"), 0.0001, None),
    ],
)
def test_the_latency_budget_is_measured_again(
    stage: Stage, arguments: tuple[str, ...], standing: float | None, code: str | None
) -> None:
    """A5: floors without the budget would be half a promotion; one that stands must be met by the evidence."""
    if standing is not None:
        assert stage.space.gate("floor", "tuned", "--write").code == 0
        budgets = stage.policy / "budgets.toml"
        budgets.write_text(budgets.read_text() + f"\n[arms.tuned]\np95_ms = {standing!r}\n")
    before = stage.space.tree()
    done = stage.promote("tuned", *arguments, "--write", "--format", "json")
    assert [reason["code"] for reason in json.loads(done.out)["reasons"]] == ([code] if code else [])
    assert done.code == (1 if code else 0)
    assert (stage.space.tree() == before) is (code is not None)


def test_every_run_meets_the_budget_and_not_the_last_alone(stage: Stage) -> None:
    """A5: one slow run of two is told."""
    slow = {"p50": 2000.0, "p95": 2000.0, "max": 2000.0, "samples": 165}
    stage.forged("tuned", lambda report: report.update(latency=slow), FIRST)
    assert stage.codes("tuned", "--p95-ms", "1000", "--write") == ["latency-over-budget"]


def test_a_candidate_passes_the_gate_that_it_would_stand_under(stage: Stage) -> None:
    """A5: a query that must pass, and that the candidate misses, would fail the gate right after the promotion."""
    rows = json.loads((stage.root / FIRST / "tuned.json").read_text())["rows"]
    missed = next(row["id"] for row in rows if row["metrics"]["recall@10"] == 0)
    path = stage.root / "memory" / "queries.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["_id"] == missed:
            line.setdefault("metadata", {})["must_pass"] = True
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    runs = ("runs/3", "runs/4")
    for folder in runs:
        stage.space.commit(folder)
        assert stage.space.core("measure", "-q", "tuned", "plain").code == 0
        shutil.copytree(stage.root / ".eval" / "reports", stage.root / folder)
    stage.space.commit("measured")
    value = stage.told("tuned", "--p95-ms", "1000", "--write", evidence=runs)
    assert [reason["code"] for reason in value["reasons"]] == ["must-pass-lost"]


def test_a_stripped_copy_has_no_latency_to_bound(stage: Stage) -> None:
    """A5: the budget is re-measured: 59 samples, of the runs themselves."""
    for folder in (FIRST, SECOND):
        path = stage.root / folder / "tuned.json"
        stage.space.forge(path, lambda report: report.update(latency=None, ingest=None))
    stage.space.commit("stripped")
    value = stage.told("tuned", "--p95-ms", "1000", "--write")
    assert [reason["code"] for reason in value["reasons"]] == ["latency-not-measurable"]
    assert "59" in value["reasons"][0]["message"]


def test_a_bar_that_would_be_lowered_needs_a_reason(stage: Stage) -> None:
    """A5: the candidate's own floors are not loosened on the way."""
    # `same` has floors already, from runs that were better: those of `tuned`, under its name.
    for folder in (FIRST, SECOND):
        path = stage.root / ".eval" / "try" / folder
        path.mkdir(parents=True)
        shutil.copyfile(stage.root / folder / "tuned.json", path / "same.json")
        stage.space.forge(path / "same.json", lambda report: report.update(arm="same"))
    evidence = [
        word for folder in (FIRST, SECOND) for word in ("--evidence", f".eval/try/{folder}/same.json")
    ]
    assert stage.space.gate("floor", "same", *evidence, "--write").code == 0
    stage.rules('[[rule]]\nover = "plain"\nconditions = [{ metric = "recall@10", is = "at-least-equal" }]\n')
    before = stage.space.tree()
    assert stage.codes("same", "--p95-ms", "1000", "--write") == ["lowered-without-reason"]
    assert stage.space.tree() == before
    assert stage.promote("same", "--p95-ms", "1000", "--write", "--reason", "a simpler one").code == 0
    record = json.loads((stage.policy / "promotions" / "0001-same.json").read_text())
    assert (
        record["reason"] == read_floors(stage.policy / "floors.toml").arms["same"].reason == "a simpler one"
    )


def test_whatever_is_cut_off_for_good_leaves_the_old_default_or_is_refused(
    stage: Stage, make: type[Space], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A5: a machine that stops between two names. The candidate is never gated without its budget, and never the
    default without its record."""
    files: dict[Path, bytes] = {}
    with monkeypatch.context() as patch:
        patch.setattr("eval_gate.promotion.change.write_all", files.update)
        assert stage.promote("tuned", "--p95-ms", "1000", "--write").code == 0
    names = [name.as_posix() for name in files]
    passing = []
    for count in range(len(files) + 1):
        root = tmp_path / str(count)
        shutil.copytree(stage.root, root)
        for name, content in list(files.items())[:count]:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content)
        if make(root).check().code == 0:
            passing.append(names[count - 1] if count else "nothing")
    # With its baseline the candidate is gated like any other arm, and the default is still the old one.
    assert passing == ["nothing", "policy/baselines/tuned.json", "eval.toml"]
    assert names.index("policy/budgets.toml") < names.index("policy/baselines/tuned.json")


def test_deleted_floors_are_no_way_to_a_lower_bar(stage: Stage) -> None:
    """A5: floors that were taken out by hand are not made anew by a promotion without a word."""
    assert stage.space.gate("floor", "tuned", "--write").code == 0
    cut_table(stage.policy / "floors.toml", "arms.tuned")
    before = stage.space.tree()
    assert stage.codes("tuned", "--p95-ms", "1000", "--write") == ["floors-deleted"]
    nothing = stage.promote("tuned", "--p95-ms", "1000", "--write", "--reason", "\u200b")
    assert nothing.code == 2 and "says nothing" in nothing.err
    assert stage.space.tree() == before
    assert stage.promote("tuned", "--p95-ms", "1000", "--write", "--reason", "new queries").code == 0
    assert bar(stage)[0].arms["tuned"].reason == "new queries"


@pytest.mark.parametrize("fatal", [1, 5, 8])
def test_a_change_that_is_cut_off_leaves_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, fatal: int
) -> None:
    """A5: all or none: interrupted at whichever file takes its name, everything is as before."""
    before = stage.space.tree()
    taken = 0
    replace = os.replace

    def cut(source: Any, target: Any) -> None:
        nonlocal taken
        taken += 1
        if taken == fatal:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", cut)
    done = stage.promote("tuned", "--p95-ms", "1000", "--write")
    assert done.code == 3
    assert taken >= fatal
    assert stage.space.tree() == before


def test_a_full_disk_shows_before_anything_takes_its_name(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A5: the temporary files are synced first."""
    before = stage.space.tree()
    names = []
    count = 0
    sync, replace = os.fsync, os.replace

    def full(handle: int) -> None:
        nonlocal count
        count += 1
        if count == 8:  # the last of eight files
            raise OSError(28, "No space left on device")
        sync(handle)

    def take(source: Any, target: Any) -> None:
        names.append(target)
        replace(source, target)

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr(os, "replace", take)
    assert stage.promote("tuned", "--p95-ms", "1000", "--write").code == 3
    assert names == []
    assert stage.space.tree() == before


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("[arms.a]\r\nx = 1\r\n", None),
        (
            '[default]\n"s/b" = "b" # kept\n"s/a" = "z"\n\n[arms.a]\n',
            '[default]\n"s/b" = "b" # kept\n"s/a" = "a"\n\n[arms.a]\n',
        ),
        ('default = { "s/a" = "z" }\n[arms.a]\n', 'default = { "s/a" = "a" }\n[arms.a]\n'),
    ],
)
def test_the_default_is_the_only_thing_that_changes_in_the_configuration(
    tmp_path: Path, text: str, made: str | None
) -> None:
    """A5: comments, order and line ends stay."""
    path = tmp_path / "eval.toml"
    path.write_bytes(text.encode())
    after = default_text(path, "s/a", "a").decode()
    assert tomllib.loads(after)["default"]["s/a"] == "a"
    assert after.startswith(text) if made is None else after == made


def test_an_arm_that_is_none_cannot_become_the_default(stage: Stage, compared: Callable[..., str]) -> None:
    """A5: a backend without an arm has nothing to be floored."""
    runs = compared("1.json", "bm25", "random"), compared("2.json", "bm25", "random")
    done = stage.promote("bm25", "--write", over="random", evidence=runs)
    assert done.code == 2
    assert "eval.toml has no arm 'bm25'" in done.err


@pytest.mark.parametrize(
    ("candidate", "more", "evidence", "told"),
    [
        ("plain", (), (FIRST, SECOND), "cannot take its own place"),
        ("tuned", (), (FIRST,), "stands on 2 runs or more"),
        ("tuned", ("--dataset", "other"), (FIRST, SECOND), "is an arm of 'memory'"),
        ("Tuned", (), (FIRST, SECOND), "a name is lower-case letters"),
        ("tuned", ("--rules", "none.toml"), (FIRST, SECOND), "no rules"),
    ],
)
def test_wrong_usage_is_told(
    stage: Stage, candidate: str, more: tuple[str, ...], evidence: tuple[str, ...], told: str
) -> None:
    """R5: exit 2, and nothing judged."""
    done = stage.promote(candidate, *more, evidence=evidence)
    assert (done.code, done.out) == (2, "")
    assert told in done.err


def test_without_a_repository_nothing_is_checked_in(stage: Stage) -> None:
    """R5: exit 3: evidence is looked up in the tree of HEAD."""
    shutil.rmtree(stage.root / ".git")
    done = stage.promote()
    assert done.code == 3
    assert "tree of HEAD" in done.err


# The rules


def test_the_rules_of_this_repository_are_read() -> None:
    """R5, A5, R6: over bm25 and over local-lexical, and the reranker's endpoint."""
    rules = read_rules(REPOSITORY / "policy" / "promotion.toml")
    over = {one.over: [condition.text for condition in one.conditions] for one in rules.rule}
    assert "recall@10 strictly higher" in over["bm25"]
    assert over["local-lexical"] == [
        "the comparison smoke passes",
        "any_relevant_at_k at least equal",
        "mean_reciprocal_rank at least equal",
        "missing_ground_truth not higher",
        "stable over 2 consecutive runs",
    ]
    assert [one.backend for one in rules.endpoint] == ["rerank-llamacpp"]


GOOD_RULE = '[[rule]]\nover = "x"\nconditions = [{ metric = "mrr", is = "higher" }]\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (GOOD_RULE.replace("over", "ovr"), "unknown key rule[0].ovr; did you mean 'over'?"),
        (GOOD_RULE.replace("mrr", "mean_reciprocal_rang"), "did you mean 'mean_reciprocal_rank'?"),
        (GOOD_RULE.replace("mrr", "recal@10"), "no such measure 'recal@10'; did you mean 'recall@10'?"),
        (GOOD_RULE.replace('"higher"', '"lower"'), "should be 'higher', 'at-least-equal' or 'not-higher'"),
        (GOOD_RULE.replace(', is = "higher"', ""), "goes with metric"),
        (GOOD_RULE.replace('metric = "mrr", is = "higher"', 'check = "smoke"'), "none compares a measure"),
        (
            GOOD_RULE.replace('metric = "mrr", is = "higher"', 'check = "smoke", runs = 2'),
            "runs goes with check",
        ),
        (
            GOOD_RULE.replace('metric = "mrr", is = "higher"', 'check = "stable", runs = 1'),
            "greater than or equal to 2",
        ),
        (GOOD_RULE.replace("mrr", "missing_ground_truth"), "none compares a measure of quality"),
        (
            GOOD_RULE.replace('mrr", is = "higher"', 'missing_ground_truth", is = "not-higher"'),
            "none compares a measure of quality",
        ),
        (
            GOOD_RULE.replace('mrr", is = "higher"', 'recall@10", is = "not-higher"'),
            "promotion.toml:4  conditions: 'recall@10' is a measure of quality, and 'not-higher' asks for one that "
            'is worse; write { metric = "recall@10", is = "at-least-equal" }',
        ),
        (
            GOOD_RULE.replace("[{", '[{ metric = "any_relevant_at_k", is = "not-higher" }, {'),
            "'any_relevant_at_k' is a measure of quality",
        ),
        (
            GOOD_RULE.replace("[{", '[{ metric = "missing_ground_truth", is = "higher" }, {'),
            "promotion.toml:4  conditions: 'missing_ground_truth' is a count of which fewer is better, and 'higher' "
            'asks for more; write { metric = "missing_ground_truth", is = "not-higher" }',
        ),
        (GOOD_RULE + GOOD_RULE, "over = 'x' stands in two rules; join them"),
        ('[[rule]]\nover = "x"\nconditions = []\n', "should have at least 1 item"),
        (
            GOOD_RULE
            + '[[endpoint]]\nbackend = "b"\nenvironment = "E"\ndocumented = "../x"\nfallback = "f"\n',
            "write it relative to the repository's top",
        ),
    ],
)
def test_a_rule_that_says_something_else_than_it_seems_to_is_a_fault(
    tmp_path: Path, text: str, told: str
) -> None:
    """R5: rules are data, and a misspelt rule would be no rule."""
    path = tmp_path / "promotion.toml"
    path.write_text(f'schema = "promotion-rules-v1"\n{text}')
    with pytest.raises(Faults) as caught:
        read_rules(path)
    assert told in str(caught.value)
    assert f"{path}:" in str(caught.value)


def test_an_incumbent_without_a_rule_is_told_those_that_there_are(stage: Stage) -> None:
    """R5: no rule is no permission."""
    stage.rules('[[rule]]\nover = "bm26"\nconditions = [{ metric = "mrr", is = "higher" }]\n')
    done = stage.promote()
    assert done.code == 2
    assert "no rule for promoting over 'plain' or 'bm25'" in done.err and "rules over: bm26" in done.err


def test_rules_that_are_absent_are_said_to_be(tmp_path: Path) -> None:
    """R5: without rules nothing is promoted."""
    with pytest.raises(Misuse, match="no rules"):
        read_rules(tmp_path / "promotion.toml")


# A mixed state


def bar(stage: Stage) -> tuple[Floors, Budgets]:
    floors = read_floors(stage.policy / "floors.toml")
    return floors, read_budgets(stage.policy / "budgets.toml", floors)


def cut_table(path: Path, head: str) -> None:
    """Take a table of a TOML file out, and those below it."""
    kept, inside = [], False
    for line in path.read_text().splitlines():
        if line.startswith("["):
            inside = line.strip("[").startswith(head)
        if not inside:
            kept.append(line)
    path.write_text("\n".join(kept) + "\n")


def restore(*names: str) -> Callable[[Stage], None]:
    """Put files back as they were before the promotion."""

    def put_back(stage: Stage) -> None:
        stage.space.git("checkout", "-q", "HEAD~1", "--", *names)

    return put_back


def back(stage: Stage) -> None:
    """The default goes back by hand, and everything else stays."""
    text = stage.config.read_text().replace('memory = "tuned"', 'memory = "plain"')
    stage.config.write_text(text)
    budgets = stage.policy / "budgets.toml"
    budgets.write_text(budgets.read_text() + "\n[arms.plain]\np95_ms = 1000.0\n")


def older(stage: Stage) -> None:
    """The floors are of runs that no record names, from before it."""
    path = stage.policy / "promotions" / "0001-tuned.json"
    value = json.loads(path.read_text())
    for run in value["floors"]:
        run.update(sha256="0" * 64, started="2099-01-01T00:00:00.000Z")
    path.write_text(json.dumps(value))


def twice(stage: Stage) -> None:
    """Two branches promoted, and were merged."""
    folder = stage.policy / "promotions"
    shutil.copyfile(folder / "0001-tuned.json", folder / "0001-other.json")


def unfloored(stage: Stage) -> None:
    """Without floors, and so without a budget to have."""
    for name in ("floors.toml", "budgets.toml"):
        cut_table(stage.policy / name, "arms.tuned")


def tracked(stage: Stage) -> None:
    """The default's floors no longer gate."""
    path = stage.policy / "floors.toml"
    head, arm, rest = path.read_text().partition("[arms.tuned]\n")
    path.write_text(f'{head}{arm}tracked = true\nreason = "later"\n{rest}')


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (unfloored, "has no floors"),
        (lambda stage: (stage.policy / "baselines" / "tuned.json").unlink(), "has no baseline"),
        (restore("policy/budgets.toml"), "has no p95_ms"),
        (restore("eval.toml"), "names no default for it"),
        (back, "the newest record for it, promotes 'tuned'"),
        (older, "stand on older runs"),
        (tracked, "is only tracked"),
        (twice, "have one number"),
        (
            lambda stage: (stage.policy / "promotions" / "0001-tuned.json").write_text("{}"),
            "is no promotion record",
        ),
    ],
)
def test_a_mixed_state_says_which_piece_is_missing(
    promoted: Stage, change: Callable[[Stage], object], told: str
) -> None:
    """A5: default, floors, baseline, budget and record move together, or the gate refuses."""
    assert mixed(promoted.config, promoted.policy, *bar(promoted)) == []
    change(promoted)
    (reason,) = mixed(promoted.config, promoted.policy, *bar(promoted))
    assert (reason.code, reason.word) == ("promotion-mixed", "refused")
    assert told in reason.message


def test_a_bar_that_is_raised_after_a_promotion_is_not_mixed(promoted: Stage) -> None:
    """A5: later runs carry later floors; the record says how the default came to be, not what the bar is for ever."""
    for _ in range(2):
        assert promoted.space.core("measure", "-q", "tuned").code == 0
    runs = sorted(
        (promoted.root / ".eval" / "history" / "tuned").glob("*.json"), key=lambda path: path.stat().st_mtime
    )
    evidence = [word for path in runs[-2:] for word in ("--evidence", str(path))]
    assert promoted.space.gate("floor", "tuned", *evidence, "--write").code == 0
    cited = {run.run_id for run in bar(promoted)[0].arms["tuned"].evidence}
    assert cited == {path.stem for path in runs[-2:]}
    assert mixed(promoted.config, promoted.policy, *bar(promoted)) == []


def test_a_default_without_a_record_needs_its_bar(stage: Stage) -> None:
    """A5: the reference comes first, written by hand, with floors, baseline and budget."""
    stage.config.write_text(stage.config.read_text() + '\n[default]\nmemory = "plain"\n')
    (reason,) = mixed(stage.config, stage.policy, *bar(stage))
    assert reason.message.endswith(
        "'plain' is the default for 'memory', and has no p95_ms in " + str(stage.policy / "budgets.toml")
    )
    budgets = stage.policy / "budgets.toml"
    budgets.write_text(budgets.read_text() + "\n[arms.plain]\np95_ms = 1000.0\n")
    assert mixed(stage.config, stage.policy, *bar(stage)) == []


@pytest.mark.parametrize("name", ["x" * 5000, "a\\u0000b", "../x"])
def test_a_default_of_a_name_that_no_file_has_is_refused_and_no_crash(tmp_path: Path, name: str) -> None:
    """A5: the gate reads any TOML."""
    (tmp_path / "eval.toml").write_text(f'[default]\n"d" = "{name}"\n')
    empty = Floors(schema_="floors-v1"), Budgets(schema_="budgets-v1")
    (reason,) = mixed(tmp_path / "eval.toml", tmp_path / "policy", *empty)
    assert reason.code == "promotion-mixed"


@pytest.mark.parametrize("text", ["", "[arms", "default = 3", "\udcff"])
def test_a_configuration_without_defaults_is_no_matter_of_the_gate(tmp_path: Path, text: str) -> None:
    """A5: what is wrong with eval.toml is told by what measures."""
    config = tmp_path / "eval.toml"
    config.write_bytes(text.encode("utf-8", "surrogateescape"))
    empty = Floors(schema_="floors-v1"), Budgets(schema_="budgets-v1")
    assert mixed(config, tmp_path / "policy", *empty) == []
    assert mixed(tmp_path / "none.toml", tmp_path / "policy", *empty) == []


# Published rankings


def answers(ranked: dict[str, list[str]]) -> str:
    return json.dumps({f"question {query}": list(dict.fromkeys(ids)) for query, ids in ranked.items()})


ADAPTER = """
import json, sys
answers = json.load(open(sys.argv[1], encoding="utf-8"))
for line in sys.stdin:
    print(json.dumps({"ids": answers.get(json.loads(line)["query"], [])}), flush=True)
"""


def held_to_the_rules(
    space: Space, truth: dict[str, list[str]], bm25: dict[str, list[str]], dense: dict[str, list[str]]
) -> None:
    """Measure both systems twice, and hold each to R5's rule over the other; every figure is computed here as well."""
    root = space.root
    (root / "set" / "qrels").mkdir(parents=True)
    documents = sorted({name for table in (truth, bm25, dense) for ids in table.values() for name in ids})
    lines = {
        "corpus.jsonl": [{"_id": name, "text": name} for name in documents],
        "queries.jsonl": [{"_id": query, "text": f"question {query}"} for query in truth],
    }
    for name, rows in lines.items():
        (root / "set" / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    pairs = [(query, name) for query, ids in truth.items() for name in dict.fromkeys(ids)]
    judged = "".join(f"{query}\t{name}\t1\n" for query, name in pairs)
    (root / "set" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    (root / "adapter.py").write_text(ADAPTER)
    text = ""
    for name, ranked in (("lexical", bm25), ("dense", dense)):
        (root / f"{name}.json").write_text(answers(ranked))
        text += f'[arms.{name}]\ndataset = "set"\nbackend = "jsonl"\nrepetitions = 1\n'
        text += f'options.command = ["{{python}}", "-S", "-E", "adapter.py", "{name}.json"]\n\n'
    (root / "eval.toml").write_text(text)
    (root / "policy").mkdir()
    rules = "\n".join(
        f"  {{ {', '.join(f'{k} = {json.dumps(v)}' for k, v in one.items())} }}," for one in (*R5, HIGHER)
    )
    tables = "".join(
        f'[[rule]]\nover = "{over}"\nconditions = [\n{rules}\n]\n' for over in ("lexical", "dense")
    )
    (root / "policy" / "promotion.toml").write_text(f'schema = "promotion-rules-v1"\n{tables}')
    for folder in (FIRST, SECOND):
        space.commit(folder)
        done = space.core("measure", "-q")
        assert done.code == 0, done.err
        shutil.copytree(root / ".eval" / "reports", root / folder)
    space.commit("runs")
    stage = Stage(space)
    for candidate, incumbent in (("dense", "lexical"), ("lexical", "dense")):
        value = stage.told(candidate, "--p95-ms", "10000", over=incumbent)
        tables_of = {"dense": dense, "lexical": bm25}
        wanted = {name: figures(truth, tables_of[name]) for name in (candidate, incumbent)}
        verdicts = []
        for one in value["conditions"]:
            metric = one["condition"].get("metric")
            if metric is None:
                continue
            ours, theirs = wanted[candidate][metric], wanted[incumbent][metric]
            for run in one["runs"]:
                assert run["candidate"] == pytest.approx(ours, abs=1e-12)
                assert run["incumbent"] == pytest.approx(theirs, abs=1e-12)
                assert run["difference"] == pytest.approx(ours - theirs, abs=1e-12)
                assert metric == "missing_ground_truth" or run["n"] == len(truth)
            kind = one["condition"]["is"]
            holds = {"higher": ours > theirs, "at-least-equal": ours >= theirs, "not-higher": ours <= theirs}[
                kind
            ]
            assert one["proven"] is holds
            verdicts.append(holds)
        assert len(verdicts) == 4
        assert value["verdict"] == ("proven" if all(verdicts) else "not-proven")


def figures(truth: dict[str, list[str]], ranked: dict[str, list[str]]) -> dict[str, float]:
    """The measures by their definitions, over the first ten of each answer without its repeats."""
    found: dict[str, list[float]] = {"any_relevant_at_k": [], "mean_reciprocal_rank": [], "recall@10": []}
    for query, wanted in truth.items():
        ids = list(dict.fromkeys(ranked[query]))[:10]
        ranks = [place for place, name in enumerate(ids, 1) if name in wanted]
        found["any_relevant_at_k"].append(1.0 if ranks else 0.0)
        found["mean_reciprocal_rank"].append(1 / ranks[0] if ranks else 0.0)
        found["recall@10"].append(len(ranks) / len(set(wanted)))
    return {name: sum(values) / len(values) for name, values in found.items()} | {"missing_ground_truth": 0}


def test_real_rankings_of_longmemeval_are_held_to_the_rules(
    shared_data: Callable[[str], Path], make: type[Space], tmp_path: Path
) -> None:
    """R5: 470 questions as two published systems answered them, dense over BM25 and BM25 over dense."""
    tables: list[dict[str, list[str]]] = []
    truth: dict[str, list[str]] = {}
    for system in ("bm25", "dense"):
        results = json.loads(shared_data(f"longmemeval/rankings_{system}_n500.json").read_text("utf-8"))[
            "results"
        ]
        usable = [result for result in results if not result["abstention"]]
        tables.append({result["question_id"]: result["retrieved_sessions"] for result in usable})
        truth = {result["question_id"]: result["evidence_sessions"] for result in usable}
    assert len(truth) == 470
    held_to_the_rules(make(tmp_path), truth, *tables)


def test_rankings_made_here_are_held_to_the_rules(make: type[Space], tmp_path: Path) -> None:
    """R5: the same on rankings of two invented systems, of which the second is better."""
    chance = random.Random(11)
    truth, tables = {}, ({}, {})  # type: tuple[dict[str, list[str]], tuple[dict[str, list[str]], dict[str, list[str]]]]
    for number in range(60):
        wanted = [f"s{number}-{place}" for place in range(chance.randint(1, 3))]
        truth[f"q{number}"] = wanted
        for table, depth in zip(tables, (14, 6), strict=True):
            ranked = [f"x{place}" for place in chance.sample(range(40), 10)]
            for name in wanted:
                ranked.insert(chance.randint(0, depth), name)
            table[f"q{number}"] = ranked[:10]
    held_to_the_rules(make(tmp_path), truth, *tables)
