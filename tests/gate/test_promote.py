"""`eval-gate promote`: conditions with their figures, evidence that counts, one change or none, no mixed state."""

# long because: one repository measured by the tools, and a case for each way that a promotion can be refused or cut off

from __future__ import annotations

import json
import math
import os
import random
import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from policy_support import resealed, updating
from promote_support import (
    REPOSITORY,
    Stage,
    condition_of,
    judged,
    rule,
    rule_text,
    side,
    staged,
)

from eval_core.contract import as_json, compare_backends, read_comparison
from eval_core.contract.models import Unanswered
from eval_core.errors import Faults, Misuse
from eval_core.policy.files import read_policy
from eval_core.policy.models import Budgets, Floors
from eval_gate.floors.propose import Standing, Wish, propose
from eval_gate.floors.write import policy_files
from eval_gate.promotion.change import default_text
from eval_gate.promotion.evidence import Arm, unsound
from eval_gate.promotion.models import Promotion, PromotionRecord, read_rules
from eval_gate.promotion.places import Places, operator_only
from eval_gate.promotion.state import Target, mixed

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
BUDGET = ("--p95-ms", "299")


@pytest.fixture(scope="session")
def base(make: type[Space], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = tmp_path_factory.mktemp("promotion") / "stage"
    staged(make(root))
    return root


@pytest.fixture
def stage(base: Path, make: type[Space], tmp_path: Path) -> Stage:
    """Arms measured at two commits, floored and checked in: the better one can be promoted."""
    shutil.copytree(base, tmp_path / "stage")
    return Stage(make(tmp_path / "stage"))


@pytest.fixture(scope="session")
def done_once(base: Path, make: type[Space], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = tmp_path_factory.mktemp("promoted") / "stage"
    shutil.copytree(base, root)
    done = Stage(make(root)).promote("tuned", *BUDGET, "--write")
    assert done.code == 0, done.out + done.err
    make(root).commit("Promote tuned over plain")
    return root


@pytest.fixture
def promoted(done_once: Path, make: type[Space], tmp_path: Path) -> Stage:
    """The same after the better arm was promoted, and that was committed."""
    shutil.copytree(done_once, tmp_path / "promoted")
    return Stage(make(tmp_path / "promoted"))


def recall(path: Path) -> float:
    """The mean recall@10 by the rows of a report, computed here."""
    values = []
    for row in json.loads(path.read_text())["rows"]:
        relevant = {judged["id"] for judged in row["judged"] if judged["grade"] > 0}
        values.append(len(relevant & set(row["ids"][:10])) / len(relevant))
    return math.fsum(values) / len(values)


# What is shown


def test_a_better_backend_is_proven_with_the_figures_of_every_run(stage: Stage) -> None:
    """A5: strictly higher recall@10 than the floored BM25 reference, in both runs; nothing is written unasked."""
    before = stage.space.tree()
    value = stage.answer("tuned", *BUDGET)
    jsonschema.validate(
        value,
        Promotion.model_json_schema(by_alias=True, mode="serialization"),
        jsonschema.Draft202012Validator,
    )
    assert (value["verdict"], value["over"], value["dataset"]) == ("proven", "bm25", "memory")
    assert [one["proven"] for one in value["conditions"]] == [True] * 4
    runs = condition_of(value, "recall@10 strictly higher")["runs"]
    pairs = list(zip(stage.space.runs("tuned"), stage.space.runs("plain"), strict=True))
    sides = ([run["run_id"] for run in value["evidence"][side]] for side in ("candidate", "incumbent"))
    assert [*zip(*sides, strict=True)] == [(ours.stem, theirs.stem) for ours, theirs in pairs]
    for run, (ours, theirs) in zip(runs, pairs, strict=True):
        assert run["n"] == 55
        assert run["candidate"] == pytest.approx(recall(ours), abs=1e-12)
        assert run["incumbent"] == pytest.approx(recall(theirs), abs=1e-12)
        assert 0 < run["difference"] == pytest.approx(recall(ours) - recall(theirs), abs=1e-12)
        assert run["low"] < run["difference"] < run["high"]
    assert stage.space.tree() == before


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_people_see_both_figures_of_every_run_whatever_the_answer(stage: Stage, form: str) -> None:
    """A5: equal recall is not strictly higher, both figures are there to see it, and nothing is written."""
    before = stage.space.tree()
    done = stage.promote("same", *BUDGET, "--write", "--format", form)
    assert done.code == 1
    assert done.out.count(f"{recall(stage.space.runs('plain')[0]):.4f}") == 4
    assert "not proven" in done.out.lower().splitlines()[0]
    assert stage.space.tree() == before


def test_a_reference_without_floors_is_no_reference(stage: Stage) -> None:
    """A5: the BM25 reference is baselined first."""
    stage.space.policy({"tuned": stage.space.lines("tuned")})
    stage.space.commit("without plain")
    value = stage.answer()
    assert [reason["code"] for reason in value["reasons"]] == ["arm-without-floors"]
    assert not condition_of(value, "the incumbent is baselined")["proven"]


def test_a_measure_that_one_side_lacks_proves_nothing(stage: Stage) -> None:
    """R8: the candidate was measured to rank 5 only, and the rule is about ndcg@10."""
    stage.rules(rule_text("plain", [{"metric": "ndcg@10", "is": "at-least-equal"}]))
    value = stage.answer("short")
    assert value["reasons"] == []  # other cut-offs are no other task
    found = condition_of(value, "ndcg@10 at least equal")
    assert not found["proven"]
    assert found["runs"][0]["candidate"] is None and found["runs"][0]["incumbent"] is not None
    assert "without ndcg@10" in found["why"]


def test_as_many_runs_are_needed_as_the_rule_says(stage: Stage) -> None:
    """R5: and the rule over the arm's name goes before that over its backend's."""
    stage.rules(rule_text("plain", [{"metric": "mrr", "is": "higher"}, {"check": "stable", "runs": 3}]))
    value = stage.answer()
    assert (value["over"], value["verdict"]) == ("plain", "not-proven")
    assert "3 are needed" in condition_of(value, "stable over 3 consecutive runs")["why"]


# Every condition of R5 false once: ranks of the one relevant document of each query.

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
    pair = side(candidate, **more), side(incumbent)
    found = judged(rule(*R5), pair, pair)
    unproven = [one.text for one in found.conditions if not one.proven]
    measured = ["stable over 2 consecutive runs"] if any("_" in name for name in failing) else []
    assert unproven == [*failing, *measured]
    assert found.exit_code == (1 if failing else 0)


def test_what_holds_in_one_run_alone_is_not_stable() -> None:
    """R5: the second run says otherwise, and its figures are shown."""
    old = side({"a": 1, "b": 2})
    found = judged(rule(*R5), (side({"a": 1, "b": 1}), old), (side({"a": 1, "b": 4}), old))
    assert found.verdict == "not-proven"
    mrr = next(one for one in found.conditions if one.condition.metric == "mean_reciprocal_rank")
    assert [(run.candidate, run.incumbent, run.holds) for run in mrr.runs] == [
        (1.0, 0.75, True),
        (0.625, 0.75, False),
    ]
    assert found.conditions[-1].why == "every measure holds in 1 of 2 runs"


@pytest.mark.parametrize(
    ("candidate", "incumbent", "why"),
    [
        ({"a": None, "b": None}, {"a": None, "b": None}, "both sides of run 1 score zero on all queries"),
        ({}, {}, "no query was scored on both sides of run 1"),
        ({"a": 1}, {"b": 1}, "no query was scored on both sides of run 1"),
    ],
)
def test_evidence_that_shows_nothing_proves_nothing(
    candidate: dict[str, int | None], incumbent: dict[str, int | None], why: str
) -> None:
    """R8: zero is at least equal to zero, and no evidence."""
    pair = side(candidate), side(incumbent)
    found = judged(rule(*R5), pair, pair)
    assert not any(one.proven for one in found.conditions)
    assert all(why in one.why for one in found.conditions)


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_runs_prove_nothing(count: int) -> None:
    """R5: whatever the rule asks for, one run is a dated measurement with no noise under it."""
    found = judged(rule(HIGHER), *[(side({"a": 1}), side({"a": None}))] * count)
    assert found.exit_code == 1 and not any(one.proven for one in found.conditions)


def test_figures_are_compared_unrounded() -> None:
    """A5: rank 9,999 is strictly better than rank 10,000, and prints the same to four decimals."""
    new, old = (side({"q": rank}, limit=10_000) for rank in (9_999, 10_000))
    found = judged(rule({"metric": "mrr", "is": "higher"}), (new, old), (new, old))
    assert found.verdict == "proven"
    run = found.conditions[1].runs[0]
    assert f"{run.candidate:.4f}" == f"{run.incumbent:.4f}" == "0.0001"
    back = judged(rule({"metric": "mrr", "is": "at-least-equal"}), (old, new), (old, new))
    assert back.verdict == "not-proven"


def test_a_difference_in_the_last_bits_is_no_difference() -> None:
    """A5: 1 / 100,000 is above 1 / 100,001 by 1e-10, as sums of floats are by chance."""
    new, old = (side({"q": rank}, limit=200_000) for rank in (100_000, 100_001))
    assert judged(rule({"metric": "mrr", "is": "higher"}), (new, old), (new, old)).verdict == "not-proven"
    equal = rule({"metric": "mrr", "is": "at-least-equal"})
    assert judged(equal, (old, new), (old, new)).verdict == "proven"


def test_a_measure_beyond_what_was_asked_for_is_not_there() -> None:
    """R8: five documents say nothing of recall@10."""
    new, old = side({"q": 1}, limit=5), side({"q": None}, limit=5)
    found = judged(rule(HIGHER), (new, old), (new, old))
    assert found.verdict == "not-proven" and found.conditions[1].runs[0].candidate is None


@pytest.mark.parametrize(("gained", "noted"), [(4, True), (6, False)])
def test_round2_n1_a_gain_that_chance_explains_is_noted(gained: int, noted: bool) -> None:
    """N1: of 10 queries 4 gained and none lost: by mid-p, 2 * (1 / 2^4) / 2 = 0.0625; with 6, 1 / 2^6 = 0.016."""
    queries = [f"q{number}" for number in range(10)]
    old = side({name: 1 if number >= gained else None for number, name in enumerate(queries)})
    new = side(dict.fromkeys(queries, 1))
    found = judged(rule({"metric": "hit@1", "is": "higher"}), (new, old), (new, old))
    assert found.verdict == "proven"
    assert [run.p for run in found.conditions[1].runs] == [pytest.approx(0.5**gained)] * 2
    said = "hit@1: higher, and chance can explain it in run 1, run 2"
    assert [note for note in found.notes if "chance" in note] == ([said] if noted else [])
    # 4/12 − 1.96 √(6/12 − 16/144) / √12 = −0.0195; of six, 6/12 − 1.96 √(8/12 − 1/4) / √12 is above 0.
    assert found.notes[-1] == f"at 95%, no loss above {2.0 if noted else 0.0} points of hit@1"
    assert [run.excludes for run in found.conditions[1].runs] == [
        pytest.approx(1.95 if noted else 0, abs=0.005)
    ] * 2


# What is evidence


@pytest.mark.parametrize("every", [False, True])
def test_round2_b14_another_recipe_of_the_same_documents_keeps_no_promotion(
    stage: Stage, every: bool
) -> None:
    """B14: whether one run of the candidate, or all of them, were measured with another recipe of the corpus."""
    stage.change_run("tuned", updating("task", recipe="0" * 64), every=every)
    assert stage.codes("tuned", *BUDGET) == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda line: line.update(clean=False), "evidence-dirty"),
        (lambda line: line.update(index="cached"), "evidence-cached"),
        (lambda line: line.update(resumed=True), "evidence-resumed"),
        (lambda line: line["task"].update(corpus="0" * 64), "evidence-task-differs"),
        (lambda line: line["system"].update(implementation={"version": "x"}), "evidence-system-differs"),
        (lambda line: line.update({"class": "desk"}), "evidence-class-differs"),
    ],
)
@pytest.mark.parametrize("arm", ["tuned", "plain"])
def test_a_run_that_carries_no_floor_carries_no_promotion(
    stage: Stage, change: Callable[[Any], object], code: str, arm: str
) -> None:
    """R5: either arm's; and every figure is shown all the same. A record that cites such a run is refused, too."""
    stage.change_run(arm, change)
    value = stage.answer("tuned", *BUDGET, "--write")
    assert code in {reason["code"] for reason in value["reasons"]}
    found = condition_of(value, "recall@10 strictly higher")
    assert not found["proven"] and all(run["candidate"] for run in found["runs"])
    assert code in {reason.code for reason in unsound(arm, stage.space.lines(arm))}


def test_a_corpus_that_moves_may_differ_between_runs(stage: Stage) -> None:
    """K5: as in floors; a pinned one may not."""
    old, new = stage.space.lines("tuned")
    for moves, codes in ((True, []), (False, ["evidence-task-differs"])):
        old, new = (resealed(line, updating("set", moves=moves)) for line in (old, new))
        other = resealed(old, lambda table: table["task"].update(corpus="0" * 64))
        assert [reason.code for reason in unsound("tuned", [other, new])] == codes


def test_a_run_that_is_cited_twice_is_one_run(stage: Stage) -> None:
    """R5: two runs, and not two names for one."""
    line = stage.space.lines("tuned")[0]
    assert [reason.code for reason in unsound("tuned", [line, line])] == ["evidence-same-run"]


@pytest.mark.parametrize(
    ("candidate", "change", "code", "word"),
    [
        ("filtered", None, "evidence-task-differs", "filter"),
        ("tuned", lambda line: line["task"].update(corpus="0" * 64), "evidence-task-differs", "corpus"),
        ("tuned", lambda line: line.update({"class": "desk"}), "evidence-class-differs", "'desk'"),
    ],
)
def test_two_sides_of_another_state_are_not_held_against_each_other(
    stage: Stage, candidate: str, change: Callable[[Any], object] | None, code: str, word: str
) -> None:
    """R5: the arm that filters was asked something easier; and each arm may be sound in itself."""
    if change is not None:
        stage.change_run(candidate, change, every=True)
    reasons = stage.answer(candidate)["reasons"]
    assert [reason["code"] for reason in reasons] == [code] * 2
    assert word in reasons[0]["message"]


def test_evidence_is_checked_in_or_of_a_ci_run(stage: Stage) -> None:
    """R5: a line that HEAD lacks is evidence where it names a CI run, which can be reviewed."""
    lines = {arm: stage.space.lines(arm) for arm in ("plain", "tuned")}
    again = [
        resealed(line, lambda table: table.update(run_id=table["run_id"] + "x")) for line in lines["tuned"]
    ]
    stage.space.policy({**lines, "tuned": again})
    assert stage.codes() == ["evidence-uncommitted"] * 2
    ci = [resealed(line, lambda table: table.update(ci_run="4711", commit="0" * 40)) for line in again]
    stage.space.policy({**lines, "tuned": ci})
    assert stage.promote("tuned", *BUDGET, "--write").code == 0
    record = PromotionRecord.model_validate_json(stage.record.read_bytes())
    assert [run.line for run in record.evidence.candidate] == [line.line for line in ci]
    assert stage.mixed() == []


def test_what_ci_uploaded_moves_evidence_floors_budget_and_default_as_one(stage: Stage) -> None:
    """R5, A5: two CI runs that can be reviewed stand for evidence that is checked in; one commit moves all of it."""
    stage.space.floors.unlink()
    places = []
    for number in (1, 2):
        for arm in ("plain", "tuned"):
            path = stage.root / f"ci{number}" / "reports" / f"{arm}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(stage.space.runs(arm)[number - 1], path)
            stage.space.forge(path, updating("environment", **{"ci_run": f"88{number}", "class": "ci"}))
        places += ["--from", f"ci{number}"]
    shutil.rmtree(stage.root / ".eval")  # nobody measured here
    assert stage.codes("tuned", *places, "--write") == ["floors-deleted"] * 2
    shutil.rmtree(stage.policy / "evidence")
    stage.space.commit("nothing is floored")
    assert stage.codes("tuned", *places[:2], "--write") == ["one-run"] * 2
    done = stage.promote("tuned", *places, "--write")
    assert done.code == 0, done.out + done.err
    changed = {
        line[2:].strip() for line in stage.space.git("status", "--porcelain", "-uall", "policy").splitlines()
    }
    files = (
        "evidence/plain.jsonl",
        "evidence/tuned.jsonl",
        "floors.toml",
        "budgets.toml",
        "promotions/0001-tuned.json",
    )
    assert changed == {f"policy/{name}" for name in files}
    assert all(name in done.out for name in changed) and 'memory = "tuned"' in stage.config.read_text()
    record = PromotionRecord.model_validate_json(stage.record.read_bytes())
    for arm, runs in (("tuned", record.evidence.candidate), ("plain", record.evidence.incumbent)):
        lines = stage.space.lines(arm)
        assert [line.ci_run for line in lines] == ["881", "882"]
        assert [line.line for line in lines] == [run.line for run in runs]
    assert stage.mixed() == []


def test_a_policy_outside_of_the_repository_is_not_checked_in(stage: Stage, tmp_path: Path) -> None:
    """R5: wherever it lies, HEAD does not have it."""
    shutil.copytree(stage.policy, tmp_path / "elsewhere")
    assert stage.codes("tuned", "--policy", tmp_path / "elsewhere") == ["evidence-uncommitted"] * 4


@pytest.mark.parametrize("merged", [True, False])
def test_a_commit_of_another_branch_is_not_of_this_history(stage: Stage, merged: bool) -> None:
    """R5: the commit exists, and what was measured there was never merged; or there was no commit."""
    tree = stage.space.git("rev-parse", "HEAD^{tree}")
    strange = stage.space.git("commit-tree", tree, "-p", "HEAD~1", "-m", "never merged") if merged else None
    stage.change_run("plain", lambda line: line.update(commit=strange))
    (reason,) = stage.answer()["reasons"]
    assert reason["code"] == "evidence-commit-unknown"
    assert (strange[:12] if strange else "no commit") in reason["message"]


# Comparisons of backends


@pytest.fixture
def compared(stage: Stage) -> Callable[..., tuple[str, ...]]:
    """Compare backends over three notes, and check the JSON in; the arguments that name it."""
    notes = stage.root / "notes"
    notes.mkdir()
    for name, text in {"a": "apple pie", "b": "banana bread", "c": "nothing of the kind"}.items():
        (notes / f"{name}.md").write_text(text)
    queries = [
        {"id": "q1", "query": "apple", "ground_truth": ["a.md"]},
        {"id": "q2", "query": "banana", "ground_truth": ["b.md"]},
    ]
    (stage.root / "manifest.json").write_text(json.dumps({"id": "notes", "queries": queries}))
    (stage.policy / "promotions").mkdir()
    stage.rules(rule_text("random", R5))
    stage.space.commit("notes")

    def compare(name: str, *backends: str, commit: bool = True) -> tuple[str, ...]:
        # Relative, as a person in the repository names them: the JSON says where it was read.
        before = Path.cwd()
        os.chdir(stage.root)
        try:
            found = compare_backends(Path("manifest.json"), Path("notes"), list(backends), 2)
        finally:
            os.chdir(before)
        path = f"policy/promotions/{name}"
        (stage.root / path).write_text(as_json(found))
        if commit:
            stage.space.commit(name)
        return "--comparison", path

    return compare


def test_comparisons_of_backends_are_held_to_the_rule(
    stage: Stage, compared: Callable[..., tuple[str, ...]]
) -> None:
    """R5: the figures are those of the comparison itself, and a backend needs no arm to be held to the rule."""
    runs = *compared("1.json", "bm25", "random", "overlap"), *compared("2.json", "bm25", "random", "overlap")
    value = stage.answer("bm25", *runs, over="random")
    assert value["verdict"] == "proven", value
    backends = json.loads((stage.policy / "promotions" / "1.json").read_text())["backends"]
    (whole,) = [backend for backend in backends if backend["backend"] == "random"]
    for one in value["conditions"]:
        if metric := one["condition"].get("metric"):
            assert one["runs"][0]["incumbent"] == whole[metric]
    # Byte for byte the same, as backends are that answer alike each time: a reviewer is told.
    assert "byte for byte" in value["notes"][0]
    log = stage.space.git("log", "--format=%H", "-2").split()
    assert [one["commit"] for one in value["evidence"]["comparisons"]] == log[::-1]
    assert (
        stage.promote("bm25", *runs, "--write", over="random").code == 2
    )  # there is no arm to be the default


def _outside(stage: Stage) -> None:
    shutil.move(stage.policy / "promotions" / "2.json", stage.root / "2.json")


def _other_corpus(stage: Stage) -> None:
    (stage.root / "notes" / "d.md").write_text("date")


@pytest.mark.parametrize(
    ("backends", "commit", "prepare", "code"),
    [
        (("bm25", "random"), False, None, "evidence-uncommitted"),
        (("bm25", "random"), True, _other_corpus, "evidence-task-differs"),
        (("bm25", "overlap"), True, None, "evidence-side-missing"),
    ],
)
def test_a_comparison_that_is_no_evidence_is_refused(
    stage: Stage,
    compared: Callable[..., tuple[str, ...]],
    backends: tuple[str, ...],
    commit: bool,
    prepare: Callable[[Stage], None] | None,
    code: str,
) -> None:
    """R5, R8: not checked in, of another corpus, without the incumbent."""
    first = compared("1.json", "bm25", "random")
    if prepare is not None:
        prepare(stage)
    second = compared("2.json", *backends, commit=commit)
    assert stage.codes("bm25", *first, *second, over="random") == [code]


def test_two_comparisons_of_one_check_in_are_one(
    stage: Stage, compared: Callable[..., tuple[str, ...]]
) -> None:
    """R5: a comparison names no run, so two need two check-ins; and one lies below policy/promotions."""
    runs = *compared("1.json", "bm25", "random", commit=False), *compared("2.json", "bm25", "random")
    assert stage.codes("bm25", *runs, over="random") == ["evidence-same-run"]
    shutil.copyfile(stage.policy / "promotions" / "2.json", stage.root / "3.json")
    stage.space.commit("elsewhere")
    assert stage.codes("bm25", *runs[:2], "--comparison", "3.json", over="random") == ["evidence-uncommitted"]


def test_a_comparison_that_was_edited_does_not_load(
    stage: Stage, compared: Callable[..., tuple[str, ...]]
) -> None:
    """R8: its figures are recomputed; one that was improved by hand is refused."""
    runs = *compared("1.json", "bm25", "random"), *compared("2.json", "bm25", "random")
    path = stage.policy / "promotions" / "2.json"
    path.write_text(path.read_text().replace('"mean_reciprocal_rank": 1.0', '"mean_reciprocal_rank": 0.5'))
    stage.space.commit("edited")
    assert stage.codes("bm25", *runs, over="random") == ["evidence-malformed"]


def _failed(side: Any) -> Any:
    row = side.results[0]
    lost = Unanswered(id=row.id, query=row.query, outcome="errored", message="no")
    return side.model_copy(update={"results": side.results[1:], "errors": (lost,)})


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (_failed, "evidence-errored"),
        (lambda s: s.model_copy(update={"implementation": {"version": "x"}}), "evidence-system-differs"),
        (lambda s: s.model_copy(update={"results": s.results * 2}), "evidence-malformed"),
    ],
)
def test_each_side_of_a_comparison_is_evidence(
    stage: Stage,
    compared: Callable[..., tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Any], Any],
    code: str,
) -> None:
    """R5, R8: no failed query, one system in all of them, and each query once."""
    runs = *compared("1.json", "bm25", "random"), *compared("2.json", "bm25", "random")

    def read(path: Path) -> Any:
        found = read_comparison(path)
        first, *others = found.backends
        return (
            found.model_copy(update={"backends": (change(first), *others)})
            if path.name == "2.json"
            else found
        )

    monkeypatch.setattr("eval_core.contract.read_comparison", read)
    assert stage.codes("bm25", *runs, over="random") == [code]


def test_one_backend_is_not_held_against_itself(
    stage: Stage, compared: Callable[..., tuple[str, ...]]
) -> None:
    """R5: two arms of one backend differ by their options, which a comparison does not have."""
    runs = *compared("1.json", "bm25", "random"), *compared("2.json", "bm25", "random")
    stage.rules(rule_text("bm25", R5))
    reasons = stage.answer("tuned", *runs, over="filtered")["reasons"]
    assert [reason["code"] for reason in reasons] == ["evidence-system-differs"] * 2
    assert "are both its backend 'bm25'" in reasons[0]["message"]


def test_an_arm_with_options_is_not_what_a_comparison_compared(
    stage: Stage, compared: Callable[..., tuple[str, ...]]
) -> None:
    """R5: backends are compared as they are; the arm by that name answers otherwise."""
    runs = *compared("1.json", "bm25", "random"), *compared("2.json", "bm25", "random")
    assert stage.codes("plain", *runs, over="random") == ["evidence-system-differs"] * 2


def test_an_arm_is_compared_with_its_options(stage: Stage, compared: Callable[..., tuple[str, ...]]) -> None:
    """R5: two arms of one backend, each with its own options, until eval.toml says something else."""
    runs = *compared("1.json", "plain", "tuned"), *compared("2.json", "plain", "tuned")
    stage.rules(rule_text("tuned", R5))
    assert "evidence-system-differs" not in stage.codes("plain", *runs, over="tuned")
    config = stage.root / "eval.toml"
    config.write_text(config.read_text().replace("options.k1 = 0.001  #", "options.k1 = 0.002  #"))
    reasons = stage.answer("plain", *runs, over="tuned")["reasons"]
    assert [reason["message"].count("another value for options of arm 'plain'") for reason in reasons][
        :2
    ] == [1, 1]


def test_an_arm_without_floors_is_not_promoted_by_comparisons(
    stage: Stage, compared: Callable[..., tuple[str, ...]]
) -> None:
    """A5: a default has floors."""
    runs = *compared("1.json", "bm25", "random"), *compared("2.json", "bm25", "random")
    stage.space.policy({"plain": stage.space.lines("plain")})
    assert stage.codes("tuned", *runs, over="random") == ["arm-without-floors"]


def test_an_arm_is_promoted_on_comparisons_and_stands_on_its_floors(
    stage: Stage, compared: Callable[..., tuple[str, ...]]
) -> None:
    """R5, A5: and check derives the conditions from the comparisons again."""
    runs = *compared("1.json", "bm25", "random"), *compared("2.json", "bm25", "random")
    done = stage.promote("tuned", *runs, *BUDGET, "--write", over="random")
    assert done.code == 0, done.out + done.err
    assert stage.mixed() == []
    (stage.policy / "promotions" / "1.json").write_text("{}")
    (message,) = stage.mixed()
    assert "not there as the record cites it" in message


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
PARTS = ("options.endpoint", "docs/rerank.md", "options.fallback")


def test_an_endpoint_of_the_operators_environment_is_refused_with_all_that_is_missing(stage: Stage) -> None:
    """R6: endpoint configuration, documented failure behaviour, and the same offline fallback, in the commit."""
    stage.rules(ENDPOINT)
    value = stage.answer("tuned", *BUDGET, "--write")
    (reason,) = value["reasons"]
    assert (reason["code"], value["written"]) == ("endpoint-operator-only", False)
    assert "RERANK_ENDPOINT" in reason["message"] and all(part in reason["message"] for part in PARTS)
    # What it scored is shown all the same.
    assert condition_of(value, "recall@10 strictly higher")["proven"]


@pytest.mark.parametrize(
    ("endpoint", "fallback", "document", "missing"),
    [
        ("http://rerank:8080", "plain", "It answers as plain does.", ()),
        ("http://rerank:8080", "plain", "", PARTS[1:2]),
        ("http://rerank:8080", "other", "It fails.", PARTS[2:]),
        ("", "plain", "It fails.", PARTS[:1]),
        ("$RERANK_ENDPOINT", "plain", "It fails.", PARTS[:1]),
        ("$RERANK_ENDPOINT", "other", "", PARTS),
    ],
)
def test_each_part_of_an_endpoint_is_looked_up_in_the_commit(
    stage: Stage, endpoint: str, fallback: str, document: str, missing: tuple[str, ...]
) -> None:
    """R6: and not in the working tree: what is only written there is not yet there."""
    stage.rules(ENDPOINT)
    endpoints = read_rules(stage.policy / "promotion.toml").endpoint
    text = f'options.endpoint = "{endpoint}"\noptions.fallback = "{fallback}"\n'
    tuned = '[arms."tuned"]\ndataset = "memory"\nbackend = "bm25"\n'
    stage.space.edit(stage.config, tuned, tuned + text)
    (stage.root / "docs").mkdir()
    (stage.root / "docs" / "rerank.md").write_text(document)

    def lacking() -> tuple[str, ...]:
        with Places.at(stage.root) as places:
            found = [*operator_only(endpoints, Arm("tuned", {"backend": "bm25"}), stage.config, places)]
        return tuple(part for part in PARTS if part in "".join(reason.message for reason in found))

    assert lacking() == PARTS
    stage.space.commit("all of it")
    assert lacking() == missing


# The change


def test_one_commit_moves_the_default_its_budget_and_the_record(stage: Stage) -> None:
    """A5: beside the floors and the evidence that stand; the gate moves to the better backend, and passes."""
    done = stage.promote("tuned", *BUDGET, "--write")
    assert done.code == 0, done.out + done.err
    changed = {line[2:].strip() for line in stage.space.git("status", "--porcelain", "-uall").splitlines()}
    assert changed == {"eval.toml", "policy/budgets.toml", "policy/promotions/0001-tuned.json"}
    assert all(name in done.out for name in changed)
    assert stage.config.read_text().startswith("# The arms of this repository.")
    assert 'memory = "tuned"' in stage.config.read_text().partition("[default]")[2]
    policy = read_policy(stage.policy)
    assert policy.budgets.arms["tuned"].p95_ms == 299

    jsonschema.validate(
        json.loads(stage.record.read_text()), PromotionRecord.model_json_schema(by_alias=True)
    )
    record = PromotionRecord.model_validate_json(stage.record.read_bytes())
    assert (record.number, record.candidate, record.incumbent, record.dataset) == (
        1,
        "tuned",
        "plain",
        "memory",
    )
    assert record.reason.startswith("recall@10 0.8455 → 0.8909")
    for arm, runs in (("tuned", record.evidence.candidate), ("plain", record.evidence.incumbent)):
        assert [(run.run_id, run.line) for run in runs] == [
            (ln.run_id, ln.line) for ln in stage.space.lines(arm)
        ]

    stage.space.commit("Promote tuned over plain")
    assert stage.mixed() == []
    check = stage.space.check()
    assert (check.code, check.codes) == (0, [])
    assert stage.codes("tuned", *BUDGET) == ["already-default"]


def test_the_default_is_what_can_be_replaced(promoted: Stage) -> None:
    """A5: a candidate is held against what stands, by itself where none is named, not against something weaker."""
    assert promoted.answer("same", over=None)["incumbent"] == "tuned"
    assert promoted.codes("same", over="plain") == ["not-the-default"]


@pytest.mark.parametrize(
    ("arguments", "standing", "codes"),
    [
        ((), None, []),
        (("--p95-ms", "0.0001"), None, ["latency-over-budget"]),
        ((), 0.0001, ["latency-over-budget"]),
        ((), 299, []),
        (("--p95-ms", "299.5"), 299, ["bar-loosened"]),
        (("--p95-ms", "299.5", "--reason", "a larger index"), 299, []),
        (("--p95-ms", "301"), None, ["bar-loosened"]),
        (("--p95-ms", "301", "--reason", "two passes"), None, []),
    ],
)
def test_the_latency_budget_is_measured_again(
    stage: Stage, arguments: tuple[str, ...], standing: float | None, codes: list[str]
) -> None:
    """A5: a default's budget is written, met by the last measurement, and has a reason where it is more than usual."""
    if standing is not None:
        (stage.policy / "budgets.toml").write_text(
            f'schema = "budgets-v2"\n[arms."tuned"]\np95_ms = {standing}\nmax_drop."mrr" = 3.0\n'
        )
    before = stage.space.tree()
    assert stage.codes("tuned", *arguments, "--write") == codes
    assert (stage.space.tree() == before) is bool(codes)
    if not codes:
        budget = read_policy(stage.policy).budgets.arms["tuned"]
        assert budget.p95_ms == float(arguments[1] if arguments else standing or 300)
        assert budget.max_drop == ({"mrr": 3.0} if standing else {})
        said = json.loads(stage.record.read_text())["reason"]
        assert said == arguments[-1] if "--reason" in arguments else said.startswith("recall@10 ")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda report: report.update(latency=None, ingest=None), "latency-not-measurable"),
        (lambda report: report["environment"].update(dirty=True), "evidence-dirty"),
        (lambda report: report["system"]["parts"].update(options={"k1": 2.0}), "evidence-system-differs"),
    ],
)
def test_the_budget_is_that_of_what_is_promoted(
    stage: Stage, change: Callable[[Any], object], code: str
) -> None:
    """A5: 59 samples, of the system that the evidence measured."""
    stage.space.forge(stage.root / ".eval" / "reports" / "tuned.json", change)
    assert stage.codes("tuned", *BUDGET, "--write") == [code]


def test_whatever_is_cut_off_for_good_leaves_the_old_default_or_is_refused(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A5: a machine that stops between two names: never the default without its record and budget."""
    files: dict[Path, bytes] = {}
    with monkeypatch.context() as patch:
        patch.setattr("eval_gate.floors.write.write_all", files.update)
        assert stage.promote("tuned", *BUDGET, "--write").code == 0
    passing = [stage.mixed() == []]
    for name, content in files.items():
        path = stage.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        passing.append(stage.mixed() == [])
    assert [path.name for path in files] == ["budgets.toml", "0001-tuned.json", "eval.toml"]
    assert passing == [True, True, False, True]


@pytest.mark.parametrize("fatal", [1, 2, 3])
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
    assert stage.promote("tuned", *BUDGET, "--write").code == 3
    assert taken >= fatal
    assert stage.space.tree() == before


@pytest.mark.parametrize(
    ("text", "edited"),
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
    tmp_path: Path, text: str, edited: str | None
) -> None:
    """A5: comments, order and line ends stay."""
    path = tmp_path / "eval.toml"
    path.write_bytes(text.encode())
    after = default_text(path, "s/a", "a").decode()
    assert tomllib.loads(after)["default"]["s/a"] == "a"
    assert after.startswith(text) if edited is None else after == edited


@pytest.mark.parametrize(
    ("candidate", "over", "more", "message"),
    [
        ("plain", "plain", (), "cannot take its own place"),
        ("tuned", None, (), "no default yet"),
        ("Tuned", "plain", (), "a name is lower-case letters"),
        ("tuned", "Plain", (), "a name is lower-case letters"),
        ("tunes", "plain", (), "did you mean 'tuned'"),
        ("tuned", "plane", (), "did you mean 'plain'"),
        ("strange", "plain", ("--write",), "no arm 'strange'"),
        ("tuned", "plain", ("--policy", "nowhere"), "no floors"),
        ("tuned", "plain", ("--reason", "\u200b", "--write", *BUDGET), "says nothing"),
    ],
)
def test_wrong_usage_is_refused(
    stage: Stage, candidate: str, over: str | None, more: tuple[str, ...], message: str
) -> None:
    """R5: exit 2, and nothing judged."""
    done = stage.promote(candidate, *more, over=over)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_without_a_repository_nothing_is_checked_in(stage: Stage) -> None:
    """R5: exit 3: evidence is looked up in the tree of HEAD."""
    shutil.rmtree(stage.root / ".git")
    assert stage.promote().code == 3


# The rules


def test_the_rules_of_this_repository_are_read() -> None:
    """R5, A5, R6: over bm25 and over local-lexical, and the reranker's endpoint."""
    rules = read_rules(REPOSITORY / "policy" / "promotion.toml")
    over = {one.over: [condition.text for condition in one.conditions] for one in rules.rule}
    assert "recall@10 strictly higher" in over["bm25"]
    assert over["local-lexical"] == [condition.text for condition in rule(*R5).conditions]
    assert [one.backend for one in rules.endpoint] == ["rerank-llamacpp"]


GOOD_RULE = '[[rule]]\nover = "x"\nconditions = [{ metric = "mrr", is = "higher" }]\n'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mrr", "mrrr", "mrrr"),
        ("mrr", "any_relevant_at", "did you mean 'any_relevant_at_k'"),
        ('"higher"', '"lower"', "is"),
        ("over", "for", "for"),
        ('metric = "mrr", ', "", "give one of metric and check"),
        (', is = "higher"', "", "goes with metric"),
        ('metric = "mrr", is = "higher"', 'check = "smoke"', "none compares a measure"),
        ('metric = "mrr", is = "higher"', 'check = "smoke", runs = 2', "runs goes with check"),
        ('metric = "mrr", is = "higher"', 'check = "stable", runs = 1', "greater than or equal to 2"),
        (
            'mrr", is = "higher"',
            'missing_ground_truth", is = "not-higher"',
            "none compares a measure of quality",
        ),
        (
            'mrr", is = "higher"',
            'recall@10", is = "not-higher"',
            "promotion.toml:4: conditions: 'recall@10' is a measure of quality, and 'not-higher' asks for one that "
            'is worse; write { metric = "recall@10", is = "at-least-equal" }',
        ),
        ("[{", '[{ metric = "any_relevant_at_k", is = "not-higher" }, {', "is a measure of quality"),
        (
            "[{",
            '[{ metric = "missing_ground_truth", is = "higher" }, {',
            "promotion.toml:4: conditions: 'missing_ground_truth' is a count of which fewer is better, and 'higher' "
            'asks for more; write { metric = "missing_ground_truth", is = "not-higher" }',
        ),
        (GOOD_RULE, GOOD_RULE + GOOD_RULE, "over = 'x': it stands in two rules; join them"),
        ('[{ metric = "mrr", is = "higher" }]', "[]", "should have at least 1 item"),
        (
            GOOD_RULE,
            GOOD_RULE
            + '[[endpoint]]\nbackend = "b"\nenvironment = "E"\ndocumented = "../x"\nfallback = "f"\n',
            "write it relative to the repository's top",
        ),
    ],
)
def test_a_rule_that_says_something_else_than_it_seems_to_is_a_fault(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    """R5: rules are data, and a misspelt rule would be no rule."""
    path = tmp_path / "promotion.toml"
    path.write_text('schema = "promotion-rules-v1"\n' + GOOD_RULE.replace(old, new, 1))
    with pytest.raises(Faults) as caught:
        read_rules(path)
    assert message in str(caught.value) and f"{path}:" in str(caught.value)


def test_no_rule_is_no_permission(stage: Stage) -> None:
    """R5: an incumbent without a rule is told those that there are; without rules nothing is promoted."""
    stage.rules('[[rule]]\nover = "bm26"\nconditions = [{ metric = "mrr", is = "higher" }]\n')
    done = stage.promote()
    assert done.code == 2
    assert "no rule for promoting over 'plain' or 'bm25'" in done.err and "rules over: bm26" in done.err
    with pytest.raises(Misuse, match="no rules"):
        read_rules(stage.policy / "none.toml")


# A mixed state


def restore(*names: str) -> Callable[[Stage], None]:
    """Put files back as they were before the promotion."""

    def change(stage: Stage) -> None:
        stage.space.git("checkout", "-q", "HEAD~1", "--", *names)

    return change


def back(stage: Stage) -> None:
    """The default goes back by hand, and everything else stays."""
    stage.config.write_text(stage.config.read_text().replace('memory = "tuned"', 'memory = "plain"'))
    budgets = stage.policy / "budgets.toml"
    budgets.write_text(budgets.read_text() + '\n[arms."plain"]\np95_ms = 299\n')


def unfloored(stage: Stage) -> None:
    (stage.policy / "budgets.toml").unlink()
    stage.space.policy({"plain": stage.space.lines("plain")})


def older(stage: Stage) -> None:
    """The floors stand on runs from before those that the record cites, which are still there."""
    lines = stage.space.lines("tuned")
    before = [
        resealed(line, updating(run_id=f"old{n}", started=f"2001-01-01T00:00:0{n}.000Z"))
        for n, line in enumerate(lines)
    ]
    stage.space.policy({"tuned": before, "plain": stage.space.lines("plain")})
    stage.space.put_lines([*before, *lines], "tuned")


def recorded(change: Callable[[Any], object]) -> Callable[[Stage], None]:
    """Change the record."""
    return lambda stage: stage.space.alter(stage.record, change)


def unclean(stage: Stage) -> None:
    """The record cites, as it is, a run of a tree with uncommitted changes."""
    first, last = stage.space.lines("plain")
    first = resealed(first, lambda line: line.update(clean=False))
    stage.space.put_lines([first, last], "plain")
    stage.space.alter(stage.record, lambda r: r["evidence"]["incumbent"][0].update(line=first.line))


def swapped(record: Any) -> None:
    """It cites, as the better arm's, runs that are worse."""
    record["evidence"]["incumbent"] = record["evidence"]["candidate"]
    record["incumbent"] = "tuned"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (unfloored, "has no floors"),
        (restore("eval.toml"), "names no default for it"),
        (lambda stage: (stage.policy / "budgets.toml").unlink(), "has no p95_ms"),
        (back, "the newest record for it, promotes 'tuned'"),
        (older, "stand on older runs"),
        (lambda stage: shutil.copyfile(stage.record, stage.record.with_name("0001-x.json")), "the number of"),
        (lambda stage: stage.record.write_text("{}"), "number"),
        (
            lambda stage: stage.space.put_lines(stage.space.lines("plain")[1:], "plain"),
            "as the record cites it",
        ),
        (recorded(lambda r: r["evidence"]["candidate"][0].update(line="0" * 64)), "as the record cites it"),
        (unclean, "uncommitted changes"),
        (recorded(swapped), "does not prove: recall@10 strictly higher"),
        (recorded(lambda r: r["evidence"]["incumbent"].pop()), "2 are needed"),
        (recorded(lambda r: r["rule"]["conditions"].pop(1)), "none compares a measure of quality"),
        (recorded(lambda r: r["rule"].update(over="random")), "its rule is over 'random'"),
        (recorded(lambda r: r.update(candidate="../tuned")), "candidate"),
    ],
)
def test_a_mixed_state_says_which_piece_is_missing(
    promoted: Stage, change: Callable[[Stage], object], message: str
) -> None:
    """A5: default, floors, evidence, budget and record move together, and the record's conditions are derived again."""
    assert promoted.mixed() == []
    change(promoted)
    found = promoted.mixed()
    assert any(message in one for one in found), found


def test_a_record_that_the_target_lacks_is_held_to_its_rules(promoted: Stage) -> None:
    """R5: a weaker rule in the branch that promotes proves nothing, and neither does a weaker incumbent."""
    rules = read_rules(promoted.policy / "promotion.toml")
    other = rules.model_copy(update={"rule": rules.rule[1:]})
    assert promoted.mixed(Target(rules, (), {"memory": "plain"})) == []
    assert promoted.mixed(Target(other, (promoted.record.name,), {"memory": "tuned"})) == []
    (message,) = promoted.mixed(Target(other))
    assert "not one of the target's" in message
    (message,) = promoted.mixed(Target(rules, (), {"memory": "filtered"}))
    assert "'filtered' is the default there" in message
    second = promoted.record.with_name("0002-same.json")
    shutil.copyfile(promoted.record, second)
    promoted.space.alter(second, lambda r: r.update(number=2, candidate="same", incumbent="tuned"))
    found = promoted.mixed(Target(rules, (), {"memory": "plain"}))
    assert not any("the default there" in message for message in found)


def test_a_bar_that_is_raised_after_a_promotion_is_not_mixed(promoted: Stage) -> None:
    """A5: later runs carry later floors; the record says how the default came to be, and what it cites is not swept."""
    lines = promoted.space.lines("tuned")
    later = [
        resealed(line, updating(run_id=f"new{n}", started=f"2999-01-01T00:00:0{n}.000Z"))
        for n, line in enumerate(lines)
    ]
    policy = read_policy(promoted.policy)
    arm = propose("tuned", later, Wish(), Standing(policy.arm("tuned"), answers=True)).after
    for path, content in policy_files(policy, {"tuned": arm}).items():
        path.write_bytes(content)
    assert [line.run_id for line in promoted.space.lines("tuned")] == [
        *(ln.run_id for ln in lines),
        "new0",
        "new1",
    ]
    assert read_policy(promoted.policy).floors.arms["tuned"].runs == ("new0", "new1")
    assert promoted.mixed() == []


def test_a_default_without_a_record_needs_its_bar(stage: Stage) -> None:
    """A5: the reference comes first, written by hand, with floors, evidence and budget."""
    stage.config.write_text(stage.config.read_text() + '\n[default]\nmemory = "plain"\n')
    (message,) = stage.mixed()
    assert "'plain' is the default for 'memory', and has no p95_ms in" in message
    (stage.policy / "budgets.toml").write_text('schema = "budgets-v2"\n[arms."plain"]\np95_ms = 299\n')
    assert stage.mixed() == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('[default]\n"d" = "' + "x" * 5000 + '"\n', 1),
        ('[default]\n"d" = "a\\u0000b"\n', 1),
        ('[default]\n"d" = 3\n', 1),
        ("", 0),
        ("[arms", 0),
        ("default = 3", 0),
        ("\udcff", 0),
        (None, 0),
    ],
)
def test_any_configuration_is_judged_without_a_crash(tmp_path: Path, text: str | None, count: int) -> None:
    """A5: what is wrong with eval.toml is reported by what measures."""
    from eval_core.policy.files import Policy

    config = tmp_path / "eval.toml"
    if text is not None:
        config.write_bytes(text.encode("utf-8", "surrogateescape"))
    empty = Policy(tmp_path / "policy", Floors(schema_="floors-v2"), Budgets(schema_="budgets-v2"))
    assert [reason.code for reason in mixed(config, empty)] == ["promotion-mixed"] * count


# Published rankings

ADAPTER = """
import json, sys
answers = json.load(open(sys.argv[1], encoding="utf-8"))
for line in sys.stdin:
    print(json.dumps({"ids": answers.get(json.loads(line)["query"], [])}), flush=True)
"""

Ranked = dict[str, list[str]]


def held_to_the_rules(space: Space, truth: Ranked, tables: dict[str, Ranked]) -> None:
    """Measure two systems twice, and hold each to R5's rule over the other; every figure is computed here as well."""
    root = space.root
    (root / "set" / "qrels").mkdir(parents=True)
    documents = sorted(
        {name for table in (truth, *tables.values()) for ids in table.values() for name in ids}
    )
    lines = {
        "corpus.jsonl": [{"_id": name, "text": name} for name in documents],
        "queries.jsonl": [{"_id": query, "text": f"question {query}"} for query in truth],
    }
    for name, rows in lines.items():
        (root / "set" / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    judgements = "".join(
        f"{query}\t{name}\t1\n" for query, ids in truth.items() for name in dict.fromkeys(ids)
    )
    (root / "set" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judgements)
    (root / "adapter.py").write_text(ADAPTER)
    text = ""
    for name, ranked in tables.items():
        answers = {f"question {query}": list(dict.fromkeys(ids)) for query, ids in ranked.items()}
        (root / f"{name}.json").write_text(json.dumps(answers))
        text += f'[arms.{name}]\ndataset = "set"\nbackend = "jsonl"\nrepetitions = 1\n'
        text += f'options.command = ["{{python}}", "-S", "-E", "adapter.py", "{name}.json"]\n\n'
    (root / "eval.toml").write_text(text)
    (root / "policy").mkdir()
    stage = Stage(space)
    stage.rules("".join(rule_text(over, (*R5, HIGHER)) for over in tables))
    space.commit("systems")
    for _ in range(2):
        done = space.core("measure", "-q")
        assert done.code == 0, done.err
    space.policy({name: space.reports(name) for name in tables})
    space.commit("floors")
    figures = {name: figures_of(truth, ranked) for name, ranked in tables.items()}
    first, second = tables
    for candidate, incumbent in ((first, second), (second, first)):
        value = stage.answer(candidate, over=incumbent)
        verdicts = []
        for one in value["conditions"]:
            metric = one["condition"].get("metric")
            if metric is None:
                continue
            ours, theirs = figures[candidate][metric], figures[incumbent][metric]
            for run in one["runs"]:
                assert run["candidate"] == pytest.approx(ours, abs=1e-12)
                assert run["incumbent"] == pytest.approx(theirs, abs=1e-12)
                assert run["n"] == len(truth)
            kinds = {"higher": ours > theirs, "at-least-equal": ours >= theirs, "not-higher": ours <= theirs}
            assert one["proven"] is kinds[one["condition"]["is"]]
            verdicts.append(one["proven"])
        assert len(verdicts) == 4
        assert value["verdict"] == ("proven" if all(verdicts) else "not-proven")


def figures_of(truth: Ranked, ranked: Ranked) -> dict[str, float]:
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
    tables: dict[str, Ranked] = {}
    truth: Ranked = {}
    for system in ("bm25", "dense"):
        path = shared_data(f"longmemeval/rankings_{system}_n500.json")
        usable = [
            result for result in json.loads(path.read_text("utf-8"))["results"] if not result["abstention"]
        ]
        tables[system] = {result["question_id"]: result["retrieved_sessions"] for result in usable}
        truth = {result["question_id"]: result["evidence_sessions"] for result in usable}
    assert len(truth) == 470
    held_to_the_rules(make(tmp_path), truth, tables)


def test_invented_rankings_are_held_to_the_rules(make: type[Space], tmp_path: Path) -> None:
    """R5: the same on rankings of two invented systems, of which the second is better."""
    chance = random.Random(11)
    truth: Ranked = {}
    tables: dict[str, Ranked] = {"worse": {}, "better": {}}
    for number in range(60):
        wanted = truth[f"q{number}"] = [f"s{number}-{place}" for place in range(chance.randint(1, 3))]
        for table, depth in zip(tables.values(), (14, 6), strict=True):
            ranked = [f"x{place}" for place in chance.sample(range(40), 10)]
            for name in wanted:
                ranked.insert(chance.randint(0, depth), name)
            table[f"q{number}"] = ranked[:10]
    held_to_the_rules(make(tmp_path), truth, tables)
