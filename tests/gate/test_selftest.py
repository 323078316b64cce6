"""The self-test: the present policy catches every attack by name, and a gate without one of its guards is found out."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest

from eval_core.reports.report import read_report
from eval_gate.selftest.bench import Untried
from eval_gate.selftest.models import SelfTest
from eval_gate.selftest.processes import Processes
from eval_gate.selftest.rebuild import deeper, found, lost, rebuilt
from eval_gate.selftest.render import terminal
from eval_gate.selftest.set import SetFiles

if TYPE_CHECKING:
    from conftest import Done, Space

ROOT = Path(__file__).resolve().parents[2]

#: The attacks of a policy that has everything an attack could be on, by hand, with the code that must name each.
MUST_BE_NAMED = {
    ("report", "the report is missing"): "report-missing",
    ("report", "the report is empty"): "report-malformed",
    ("report", "the report is cut short"): "report-malformed",
    ("report", "another arm's report in its place"): "report-of-another-arm",
    ("report", "a copy of the baseline in its place"): "report-stripped",
    ("report", "a copy of the evidence in its place"): "report-stripped",
    ("report", "NaN as a mean"): "report-malformed",
    ("report", "Infinity as a mean"): "report-malformed",
    ("report", "true as a mean"): "report-malformed",
    ("report", '"0.95" as a mean'): "report-malformed",
    ("report", "-1 as a mean"): "report-malformed",
    ("report", "1.5 as a mean"): "report-malformed",
    ("report", "n as a float"): "report-malformed",
    ("report", "n as a text"): "report-malformed",
    ("report", "the summary edited"): "report-malformed",
    ("report", "a row dropped, all else kept"): "report-malformed",
    ("report", "a document twice in a ranking"): "report-malformed",
    ("report", "an index taken from a cache"): "index-cached",
    ("policy", "the floors file is deleted"): "floors-missing",
    ("policy", "the floors file is emptied"): "policy-vacuous",
    ("policy", "the arm's floors are deleted"): "floors-deleted",
    ("policy", "the arm has no floor"): "floors-vacuous",
    ("policy", "the floors of a category are deleted"): "input-invalid",
    ("policy", "a measure is misspelt"): "input-invalid",
    ("policy", "a floor of 0"): "input-invalid",
    ("policy", "floors of one run"): "floors-without-evidence",
    ("policy", "evidence edited"): "evidence-differs",
    ("policy", "a worse baseline under its name"): "baseline-differs",
    ("policy", "a baseline of another run"): "policy-mixed",
    ("policy", "the budgets file is deleted"): "budgets-missing",
    ("set", "the queries that fail are deleted"): "query-set-differs",
    ("set", "an easy query is added"): "query-set-differs",
    ("set", "labels become what was returned"): "judgements-differ",
    ("set", "a query that must pass need not"): "queries-differ",
    ("set", "documents are dropped"): "corpus-differs",
    ("set", "the texts of two documents are swapped"): "corpus-differs",
    ("set", "twice as many documents asked for"): "limit-differs",
    ("set", "the cut-offs that floors need are gone"): "metric-missing",
    ("rankings", "rankings shuffled"): "floor-breached",
    ("rankings", "rankings emptied"): "floor-breached",
    ("rankings", "the queries that fail are errored"): "rows-errored",
    ("rankings", "a query that must pass is lost"): "must-pass-lost",
    ("rankings", "answers twice as slow as the budget"): "latency-over-budget",
    ("rankings", "too few samples for the budget"): "latency-not-measurable",
    ("measured", "the queries that fail are deleted"): "query-set-differs",
    ("measured", "an easy query is added"): "query-set-differs",
    ("measured", "labels become what was returned"): "judgements-differ",
    ("measured", "a document is dropped"): "corpus-differs",
    ("measured", "the texts of two documents are swapped"): "corpus-differs",
    ("measured", "twice as many documents asked for"): "limit-differs",
    ("measured", "too few samples for the budget"): "latency-not-measurable",
    ("measured", "eval.toml changed after measuring"): "provenance-diverges",
    ("null", "random backend"): "floor-breached",
    ("null", "popularity backend"): "floor-breached",
    ("null", "empty backend"): "floor-breached",
    ("null", "labels shuffled"): "judgements-differ",
    ("null", "floors made on shuffled labels"): "floor-vacuous",
}


def run(space: Space, *arguments: str) -> Done:
    """Run the verb."""
    return space.gate("self-test", *arguments)


def finding(space: Space, *arguments: str) -> tuple[int, Any]:
    """Exit code and finding."""
    done = run(space, "--format", "json", *arguments)
    assert done.out, done.err
    value = json.loads(done.out)
    assert value["exit_code"] == done.code
    return done.code, value


def shown(value: Any) -> str:
    """The finding as a person sees it, on a terminal without colour."""
    return click.unstyle(terminal(SelfTest.model_validate_json(json.dumps(value))))


def survivors(value: Any) -> list[str]:
    return [attack["name"] for attack in value["attacks"] if attack["survivors"]]


@pytest.fixture
def rich(bare: Space) -> Space:
    """A workspace whose policy asks for all that one can: a category, a query that must pass, latency, rankings of
    ten documents, a commit."""
    fillers = [f"d{number}" for number in range(29, 38)]
    texts = {query["_id"]: query["text"] for query in bare.queries()}
    bare.set(
        {
            name: {"text": text, "metadata": {"category": "kept", "must_pass": name == "q01"}}
            for name, text in texts.items()
        }
    )
    others = {name: [name.replace("q", "d"), *fillers] for name in texts}
    others["q27"] = [fillers[0], "d27", *fillers[1:]]
    bare.answer(None, **others)
    bare.commit()
    for _ in range(2):
        assert bare.core("measure", "-q").code == 0
    assert bare.gate("floor", "--write", "--by-category").code == 0
    assert bare.gate("baseline", "--write").code == 0
    bare.budgets.write_text('schema = "budgets-v1"\n[arms.notes]\np95_ms = 5000.0\n')
    bare.edit(
        bare.floors,
        'schema = "floors-v1"',
        'schema = "floors-v1"\nrequire = ["head", "clean", "class", "provenance", "every-arm"]',
    )
    assert bare.check().codes == []
    return bare


def stats(space: Space) -> dict[str, tuple[int, int, int]]:
    return {
        str(path): (path.lstat().st_mtime_ns, path.lstat().st_ino, path.lstat().st_size)
        for path in [space.root, *space.root.rglob("*")]
    }


def test_every_attack_is_caught_by_the_reason_that_names_it(rich: Space) -> None:
    """S3, S5, K3: on a policy that asks for everything, all are tried, those for real too, and none survives.

    The workspace is as it was, to the byte and to the time of each file.
    """
    before, times = rich.tree(), stats(rich)
    code, value = finding(rich)
    assert (rich.tree(), stats(rich)) == (before, times)
    assert (code, value["verdict"], survivors(value), value["problems"]) == (0, "caught", [], [])
    attacks = {(one["kind"], one["name"]): one for one in value["attacks"]}
    assert (
        MUST_BE_NAMED.items()
        <= {key: one["codes"][0] for key, one in attacks.items() if one["codes"]}.items()
    )
    untried = [one["name"] for one in value["attacks"] if one["arms"] != 1 or one["caught"] != 1]
    # There is no other arm, and the one category is the whole set.
    assert untried == ["another arm's report, renamed by hand", "a smaller n"]


def only(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Try these attacks alone, those for real too."""
    from eval_gate import selftest
    from eval_gate.selftest import catalogue, real

    tried = [attack for attack in catalogue.attacks() if attack.name in names]
    monkeypatch.setattr(selftest, "attacks", lambda: iter(tried))
    chosen = tuple(one for one in real.REAL if one.name in names)
    monkeypatch.setattr("eval_gate.selftest.measuring.REAL", chosen)


def test_the_memory_set_is_attacked_for_real(
    tmp_path: Path, make: type[Space], monkeypatch: pytest.MonkeyPatch
) -> None:
    """S5: the set of this repository, with a policy made of runs here: null backends do not reach its floors, and
    floors are not made on labels that say nothing."""
    space = make(tmp_path)
    shutil.copytree(ROOT / "datasets" / "memory", tmp_path / "memory")
    (tmp_path / "eval.toml").write_text(
        '[arms.plain]\ndataset = "memory"\nbackend = "bm25"\n'
        '[arms.kind]\ndataset = "memory"\nbackend = "bm25"\nfilter_from = ["kind"]\n'
    )
    for _ in range(2):
        assert space.core("measure", "-q").code == 0
    # Of the dozen documents of one kind a random ranking puts most into its top ten.
    refused = space.gate("floor", "kind", "--write")
    assert (refused.code, "documents that a query may find reaches too" in refused.err) == (1, True)
    assert space.gate("floor", "kind", "--metric", "hit@1", "--metric", "mrr", "--write").code == 0
    assert space.gate("floor", "plain", "--write").code == 0
    assert space.gate("baseline", "--p95-ms", "300", "--write").code == 0
    nulls = ("random backend", "popularity backend", "empty backend", "labels shuffled")
    only(monkeypatch, "an easy query is added", "rankings shuffled", *nulls)
    code, value = finding(space)
    assert (code, value["verdict"], value["arms"], value["problems"]) == (0, "caught", ["kind", "plain"], [])
    arms = {(one["kind"], one["name"]): one["arms"] for one in value["attacks"]}
    # One arm a set is measured; the others are attacked where they lie.
    assert (arms["null", "random backend"], arms["set", "an easy query is added"]) == (1, 2)
    assert arms["null", "floors made on shuffled labels"] == 1
    assert [one["arm"] for one in value["regressions"]] == ["kind", "plain"]


def ignoring(*parts: str) -> Callable[[pytest.MonkeyPatch], None]:
    """A gate that does not look at some parts of the task."""
    from eval_gate.check import eligibility

    true = eligibility._task_differences

    def change(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            eligibility, "_task_differences", lambda *words: [d for d in true(*words) if d.part not in parts]
        )

    return change


def without(place: str, result: object = ()) -> Callable[[pytest.MonkeyPatch], None]:
    """A gate one of whose guards says nothing."""

    def change(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(place, lambda *words, **named: result)

    return change


def always_passing(monkeypatch: pytest.MonkeyPatch) -> None:
    from eval_gate.check import grading

    true = grading.graded
    monkeypatch.setattr(
        grading, "graded", lambda *words: [one.model_copy(update={"passed": True}) for one in true(*words)]
    )


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        (
            ignoring("query_ids"),
            [
                "the queries that fail are deleted",
                "an easy query is added",
                "a query that fails becomes an easy one",
            ],
        ),
        (ignoring("judgements"), ["labels become what was returned", "one more document is called relevant"]),
        (
            ignoring("corpus"),
            ["documents are dropped", "the texts of two documents are swapped"],
        ),
        (without("eval_core.reports.report.check_summary"), ["the summary edited"]),
        (
            without("eval_gate.check.eligibility.asked_for"),
            ["a copy of the baseline in its place", "a copy of the evidence in its place"],
        ),
        (
            without("eval_gate.check.eligibility.healthy"),
            [
                "resumed after an interruption",
                "an index taken from a cache",
                "the queries that fail are errored",
                "the queries that fail are not asked",
            ],
        ),
        (
            without("eval_gate.check.evidence.uncited"),
            ["evidence misquoted, floors to match", "evidence edited"],
        ),
        (
            without("eval_gate.policy._floor_faults"),
            ["one floor is deleted", "a measure is misspelt", "a floor is lowered by hand", "a floor of 0"],
        ),
        (always_passing, ["rankings emptied"]),
    ],
)
def test_a_gate_without_a_guard_is_found_out(
    space: Space,
    monkeypatch: pytest.MonkeyPatch,
    broken: Callable[[pytest.MonkeyPatch], None],
    named: list[str],
) -> None:
    """S3: the control of the self-test itself: where one guard is gone, it fails, and names what gets through."""
    only(monkeypatch, "the report is missing", *named)
    assert finding(space, "--quick")[0] == 0
    broken(monkeypatch)
    code, value = finding(space, "--quick")
    assert (code, value["verdict"]) == (1, "survived")
    assert survivors(value) == named
    text = shown(value)
    assert text.startswith("SURVIVED")
    assert named[0] in text.split("\n kind ")[0]
    assert text.endswith(f"{len(survivors(value))} not caught.")


def test_a_refusal_for_another_reason_is_no_catch(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3: a query less is noticed by its count too, which must not hide that nobody looks at which it was."""
    only(monkeypatch, "the queries that fail are deleted")
    ignoring("query_ids")(monkeypatch)
    _, value = finding(space, "--quick")
    (deleted,) = [one for one in value["attacks"] if one["name"] == "the queries that fail are deleted"]
    (survivor,) = deleted["survivors"]
    assert survivor["codes"] == ["queries-differ", "judgements-differ", "n-differs"]
    assert survivor["message"].startswith("the gate said no, and not for this: ")


def test_what_the_policy_does_not_require_is_told_and_fails_nothing(space: Space) -> None:
    """S3: to look at commits and trees is the policy's choice; that it does not look is said."""
    code, value = finding(space, "--quick")
    asked = {one["name"]: one["requirement"] for one in value["attacks"] if one["not_asked"]}
    assert code == 0
    assert asked == {
        "a report of another commit": "head",
        "measured on a dirty tree": "clean",
        "measured in another class of place": "class",
        "no provenance": "provenance",
        "an arm without floors": "every-arm",
    }
    out = shown(value)
    assert 'require = ["every-arm", "head", "clean", "class", "provenance"]' in out


def test_a_workspace_that_does_not_pass_is_told_first(space: Space) -> None:
    """S3: without a control no refusal shows anything."""
    space.report.unlink()
    code, value = finding(space)
    assert (code, value["verdict"], value["attacks"]) == (1, "control-failed", [])
    assert [(one["arm"], one["code"]) for one in value["control"]] == [("notes", "report-missing")]
    out = shown(value)
    assert out.startswith("CONTROL FAILED")
    assert "reason: report-missing" in out


def test_a_gate_that_fails_itself_is_neither_a_pass_nor_a_catch(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K3: exit 3 of the gate never reads as a breach."""

    def fails(*words: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr("eval_gate.check.judge.judge_arm", fails)
    code, value = finding(space, "--quick")
    assert (code, value["verdict"], value["control"][0]["code"]) == (3, "could-not", "internal-error")


def test_an_interruption_is_no_finding(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """K3: Ctrl-C in the middle of a grading ends the self-test; it is not something that the gate said."""

    def interrupted(*words: object) -> None:
        raise KeyboardInterrupt

    only(monkeypatch, "the report is empty")
    monkeypatch.setattr("eval_gate.check.judge.judge_arm", interrupted)
    done = run(space, "--quick")
    assert (done.code, done.out, "interrupted" in done.err) == (3, "", True)


def worse_answers(space: Space) -> None:
    space.answer(space.losing(20))


def no_answers(space: Space) -> None:
    (space.root / "answers.json").unlink()


@pytest.mark.parametrize(
    ("change", "code"), [(worse_answers, "floor-breached"), (no_answers, "measure-failed")]
)
def test_an_untouched_copy_that_cannot_be_measured_again_is_a_failure_to_test(
    space: Space, monkeypatch: pytest.MonkeyPatch, change: Callable[[Space], None], code: str
) -> None:
    """S3: the report passes, and what answers now does not: an attack that is refused then shows nothing."""
    only(monkeypatch, "an easy query is added")
    change(space)
    exit_code, value = finding(space)
    assert (exit_code, value["verdict"]) == (3, "could-not")
    assert value["problems"][0]["code"] == code
    # What starts no process was tried all the same.
    assert next(one["arms"] for one in value["attacks"] if one["name"] == "an easy query is added") == 1
    assert not [one for one in value["attacks"] if one["kind"] == "measured" and one["arms"]]


@pytest.mark.parametrize(
    ("budget", "easiest", "deepest", "rule"),
    [
        # 1 query of 27 is 3.7 points of recall@10, and 2.0 are allowed.
        ("", 1, 1, "baseline-drop"),
        # Without that rule: 26 of 27 at rank 1 is 1 miss, 2 more are allowed; so is recall@10 of 27 of 27.
        ('max_drop = {"recall@10" = 100}', 3, 3, "floor-breached"),
        ('max_drop = {"recall@10" = 8}', 3, 3, "floor-breached"),
        # Net lost is counted in hit@1, of which q27, at rank 2, has none to lose.
        ('max_drop = {"recall@10" = 100}\nmax_net_lost = 0', 1, 2, "net-lost"),
    ],
)
def test_the_smallest_regression_is_what_arithmetic_gives(
    space: Space, monkeypatch: pytest.MonkeyPatch, budget: str, easiest: int, deepest: int, rule: str
) -> None:
    """S3: how many queries, how many points, and by which rule."""
    only(monkeypatch, "the report is missing")
    space.budgets.write_text(f'schema = "budgets-v1"\n[arms.notes]\n{budget}\n')
    _, value = finding(space, "--quick")
    (regression,) = value["regressions"]
    assert (regression["n"], regression["one_query_points"]) == (27, pytest.approx(100 / 27))
    assert (regression["easiest_first"]["amount"], regression["deepest_first"]["amount"]) == (
        easiest,
        deepest,
    )
    assert regression["easiest_first"]["code"] == rule
    assert regression["easiest_first"]["points"] == pytest.approx(100 * easiest / 27)
    assert (regression["deeper"]["amount"], regression["deeper"]["code"]) == (1, "floor-breached")


def test_several_arms_are_attacked_each(space: Space) -> None:
    """K1: of two arms each has its own floors, and each is attacked; one that is only tracked is not."""
    space.twin("zoo")
    code, value = finding(space, "--quick")
    assert (code, value["arms"]) == (0, ["notes", "zoo"])
    renamed = [one for one in value["attacks"] if one["name"] == "another arm's report, renamed by hand"]
    assert (renamed[0]["arms"], renamed[0]["caught"]) == (2, 2)
    assert finding(space, "--quick", "zoo")[1]["arms"] == ["zoo"]
    text = space.floors.read_text()
    head, _, zoo = text.partition("[arms.zoo]\n")
    space.floors.write_text(f'{head}[arms.zoo]\ntracked = true\nreason = "new"\n{zoo}')
    code, value = finding(space, "--quick")
    assert (code, value["arms"]) == (0, ["notes"])
    assert value["notes"][0] == "tracked only, so they never fail, and are not attacked: zoo"


def test_every_format_says_the_same(space: Space) -> None:
    code, value = finding(space, "--quick")
    tried = sum(one["arms"] > 0 for one in value["attacks"])
    for form in ("table", "markdown"):
        done = run(space, "--quick", "--format", form)
        assert (done.code, done.err) == (code, "")
        assert f"{tried} attacks on 1 arm, all caught." in done.out
    text = shown(value)
    assert text.splitlines()[-1] == f"{tried} attacks on 1 arm, all caught."
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize(
    ("arguments", "change", "told"),
    [
        (["--quick"], lambda space: space.floors.unlink(), "no floors, so there is nothing to gate on"),
        (["--quick", "note"], lambda space: None, "did you mean 'notes'?"),
        ([], lambda space: (space.root / "eval.toml").unlink(), "eval.toml: no such file"),
    ],
)
def test_a_policy_or_configuration_that_is_none_is_misuse(
    space: Space, arguments: list[str], change: Callable[[Space], object], told: str
) -> None:
    """S5: no self-test without floors."""
    change(space)
    done = run(space, *arguments)
    assert (done.code, told in done.err) == (2, True), done.err


def test_a_null_backend_that_is_not_installed_is_told(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3: what was not tried is counted."""
    only(monkeypatch, "random backend", "popularity backend")
    monkeypatch.setattr("eval_core.backend.names", lambda: ["jsonl"])
    _, value = finding(space)
    skipped = {
        one["name"]: one["skipped"] for one in value["attacks"] if one["kind"] == "null" and not one["arms"]
    }
    assert set(skipped) == {"random backend", "popularity backend"}
    assert skipped["random backend"] == [{"arm": "notes", "why": "the backend 'random' is not installed"}]
    assert "Not tried: random backend: the backend 'random' is not installed" in shown(value)


# ---------------------------------------------------------------- the parts


def test_a_report_that_is_built_again_of_its_own_rows_is_the_same(space: Space) -> None:
    """K3: the control of all attacks on rows: nothing but what is altered differs."""
    report = read_report(space.report)
    again = rebuilt(report)
    assert (again.digests.quality, again.rows) == (report.digests.quality, report.rows)
    assert again.summary.overall.metrics == report.summary.overall.metrics


def test_losing_and_lowering_move_what_is_judged_and_nothing_else(space: Space) -> None:
    report = read_report(space.report)
    row = report.rows[26]  # q27: d27 at rank 2, below d29
    assert (row.ids, found(row)) == (("d29", "d27"), 2)
    gone = lost(row, ["d30", "d31"])
    assert (gone.ids, found(gone)) == (("d29", "d30"), None)
    lower = deeper(row, 3, ["a", "b", "c", "d"], depth=10, limit=10)
    assert (lower.ids, found(lower)) == (("a", "b", "c", "d29", "d27"), 5)
    # Cut at the depth that is shown, its rank is known down to the limit.
    assert found(deeper(row, 3, ["a", "b", "c"], depth=4, limit=10)) == 5
    assert found(deeper(row, 3, ["a", "b", "c"], depth=4, limit=4)) is None


def test_shuffled_labels_are_those_of_another_query_that_may_have_them(tmp_path: Path) -> None:
    """S5: same filter and scope, never its own, never what it excludes."""
    own = tmp_path / "own"
    (own / "qrels").mkdir(parents=True)
    kinds = {f"q{number}": "ab"[number % 2] for number in range(12)}
    lines = [{"_id": name, "text": name, "metadata": {"kind": kind}} for name, kind in kinds.items()]
    lines[0]["metadata"] = {"kind": "a", "exclude": ["d6"]}
    (own / "queries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    head = "query-id\tcorpus-id\tscore\n"
    (own / "qrels" / "test.tsv").write_text(head + "".join(f"q{n}\td{n}\t1\n" for n in range(12)))
    files = SetFiles.linked(own, tmp_path / "copy", "test")
    before = files.judgements()
    files.shuffle_labels(["kind"])
    after = files.judgements()
    moved = {name: next(iter(held)).replace("d", "q") for name, held in after.items()}
    assert after != before
    assert all(kinds[name] == kinds[other] for name, other in moved.items())
    assert "d6" not in after["q0"]
    assert sorted(moved.values()) == sorted(kinds)
    assert (own / "qrels" / "test.tsv").read_text().startswith(head + "q0\td0\t1\n")
    (own / "qrels" / "test.tsv").write_text(head + "".join(f"q{n}\td0\t1\n" for n in range(12)))
    with pytest.raises(Untried, match="too few"):
        SetFiles.linked(own, tmp_path / "other", "test").shuffle_labels([])


def test_a_measurement_that_fails_is_told_in_its_own_words(tmp_path: Path) -> None:
    processes = Processes(most=2)
    process = processes.measure(tmp_path, "notes", [])
    processes.finish()
    assert (process.code, "eval.toml: no such file" in process.words()) == (2, True)


def test_no_measurement_is_left_behind(tmp_path: Path) -> None:
    """K3: stopped in the middle, as by Ctrl-C, what runs ends and what waits never starts."""
    processes = Processes(most=1)
    first, second = (processes.measure(tmp_path, "notes", []) for _ in range(2))
    first.command = [sys.executable, "-c", "import time; time.sleep(600)"]
    processes.pump()
    assert (first.running is not None, second.running) == (True, None)
    processes.stop()
    assert (first.code, second.running, len(processes)) == (-signal.SIGTERM, None, 0)


def test_a_bench_is_put_back_after_each_attack(space: Space, tmp_path: Path) -> None:
    """S3: one attack must not lean on what another has left."""
    from eval_gate.cli.check import check
    from eval_gate.policy import Budget, read_floors
    from eval_gate.selftest.bench import make_bench
    from eval_gate.selftest.catalogue import attacks

    floors = read_floors(space.floors)
    bench = make_bench(
        "notes",
        folder=tmp_path / "bench",
        check=check,
        config=space.root / "eval.toml",
        policy=space.root / "policy",
        reports=space.report.parent,
        table={"schema": "floors-v1", "arms": {"notes": _table(space)}},
        floors=floors.arms["notes"],
        budget=Budget(),
        others={},
    )
    before = _files(bench.folder)
    for attack in attacks():
        with bench.altered():
            try:
                attack.act(bench)
            except Untried:
                continue
            assert _files(bench.folder) != before, attack.name
        assert _files(bench.folder) == before, attack.name


def _table(space: Space) -> Any:
    import tomllib

    return tomllib.loads(space.floors.read_text())["arms"]["notes"]


def _files(folder: Path) -> dict[str, bytes]:
    return {
        os.path.relpath(path, folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
