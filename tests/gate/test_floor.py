"""`eval-gate floor`: which runs carry a bar, what is chosen, what needs a reason, and what is printed and written."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from policy_support import floors_table, resealed, updating

from eval_core.policy.arm import ArmPolicy
from eval_core.policy.files import parse_budgets, parse_floors
from eval_core.policy.models import ArmFloors, Budget, Budgets, CategoryFloors, Floors
from eval_gate.floors.text import budgets_text, floors_text, plain

if TYPE_CHECKING:
    from conftest import Space


def held(space: Space, arm: str = "notes") -> dict[str, Any]:
    """The table of an arm in floors.toml."""
    table: dict[str, Any] = tomllib.loads(space.floors.read_text())["arms"][arm]
    return table


def measured(space: Space, ranks: Mapping[str, int | str | None] | None = None) -> None:
    """Two new runs with these answers, and no other run beside them."""
    shutil.rmtree(space.root / ".eval", ignore_errors=True)
    for _ in range(2):
        assert space.measure(ranks).code == 0


# Which runs are evidence


def test_no_floor_comes_from_one_run(bare: Space) -> None:
    """S5: one run is a dated measurement; the second makes floors, and the gate passes."""
    assert bare.measure().code == 0
    one = bare.gate("floor", "notes", "--write")
    assert (one.code, "one run is a dated measurement" in one.err) == (1, True)
    assert "eval-gate floor notes --measure" in one.err
    assert not bare.floors.exists()
    assert bare.measure().code == 0
    assert bare.gate("floor", "notes", "--write").code == 0
    assert bare.check().code == 0


def test_the_same_bytes_twice_are_one_run(bare: Space) -> None:
    """S5: a copy of a report is not measuring again."""
    assert bare.measure().code == 0
    shutil.copy(bare.report, bare.root / ".eval" / "history" / "notes" / "again.json")
    assert "one run is" in bare.gate("floor", "notes").err
    for name in ("a", "b"):
        (bare.root / name / "reports").mkdir(parents=True)
        shutil.copy(bare.report, bare.root / name / "reports")
    assert "one run is" in bare.gate("floor", "--from", "a", "b").err


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda report: report["task"]["parts"].update(limit=20), "another task"),
        (lambda report: report["task"]["parts"].update(corpus="0"), "another task than run .*: corpus"),
        (lambda report: report["system"]["parts"].update(options={"k1": 2}), "another system .*: options"),
        (lambda report: report["environment"].update({"class": "laptop"}), "its class is 'laptop'"),
        (lambda report: report.update(resumed=True), "was resumed"),
        (lambda report: report.update(index="cached"), "index came from a cache"),
        (lambda report: report["environment"].update(dirty=True), "tree with uncommitted changes"),
    ],
)
def test_runs_that_are_named_are_refused_for_what_they_are(
    space: Space, change: Callable[[Any], object], code: str
) -> None:
    """S5, K5: another task, system or place, a dirty tree, a resumed run, a ready-made index: by name."""
    folders = uploads(space, space.runs())
    space.forge(folders[0] / "reports" / "notes.json", change)
    done = space.gate("floor", "--from", *folders)
    assert done.code == 1
    assert re.search(code, done.err)


def test_of_the_past_what_cannot_stand_beside_the_newest_run_is_left_out(space: Space) -> None:
    """An errored run, a file that no longer reads, a resumed run: left out and said; the newest itself is refused."""
    (space.root / ".eval" / "history" / "notes" / "old.json").write_text('{"schema": "report-v1"}')
    assert space.measure({"q03": "out of memory"}).code == 3
    assert "1 errored" in space.gate("floor", "notes").err
    assert space.measure().code == 0
    done = space.gate("floor", "notes", "--format", "json")
    assert done.code == 0
    assert "old.json" in done.err and "is left out: it has 1 errored" in done.err
    assert len(json.loads(done.out)["arms"]["notes"]["runs"]) == 3


def test_the_steps_from_nothing_to_a_gate(bare: Space) -> None:
    """A mistyped arm is answered with those that were measured; --measure does the rest in one step."""
    assert bare.gate("floor").code == 2
    bare.answer()
    done = bare.gate("floor", "--measure", "--write")
    assert (done.code, done.err.count("run ")) == (0, 2)
    assert "Wrote in policy: evidence/notes.jsonl and floors.toml." in done.out
    assert bare.check().code == 0
    assert "did you mean 'notes'?" in bare.gate("floor", "noets").err


@pytest.mark.parametrize(("count", "provisional"), [(2, True), (9, True), (10, False)])
def test_floors_are_provisional_until_ten_runs_stand_under_them(
    space: Space, count: int, provisional: bool
) -> None:
    """K2: with fewer, the margin is a convention. Ten runs are written though no number moved, since that did."""
    for number in range(2, count):
        path = space.root / ".eval" / "history" / "notes" / f"{number}.json"
        shutil.copy(space.runs()[0], path)
        space.forge(path, updating(run_id=f"run-{number}"))
    done = space.gate("floor", "--write")
    assert (done.code, "no number moved" in done.out) == (0, provisional)
    assert (len(held(space)["runs"]) == 10) is not provisional
    arm = space.check().verdict["arms"][0]
    assert (arm["verdict"], arm["provisional"]) == ("pass", provisional)


# What CI measured


def uploads(space: Space, reports: list[Path], ci: tuple[str | None, ...] = ("8812", "8813")) -> list[Path]:
    """Folders as two jobs upload them, each with one of the reports, of a CI run."""
    folders = []
    for number, path in enumerate(reports):
        place = space.root / f"eval-{number}" / "reports"
        place.mkdir(parents=True)
        shutil.copy(path, place / "notes.json")
        space.forge(place / "notes.json", updating("environment", ci_run=ci[number]))
        folders.append(place.parent)
    return folders


def zipped(folder: Path, prefix: str = "") -> Path:
    """The same as a zip file."""
    path = folder.with_suffix(".zip")
    with zipfile.ZipFile(path, "w") as archive:
        for file in folder.rglob("*.json"):
            archive.write(file, f"{prefix}{file.relative_to(folder)}")
    return path


@pytest.mark.parametrize(
    "form",
    [
        lambda folder: folder,
        zipped,
        lambda folder: zipped(folder, ".eval/"),
        lambda folder: folder / "reports",
        lambda folder: zipped(folder / "reports"),
    ],
)
def test_two_ci_runs_become_evidence_with_their_numbers(bare: Space, form: Callable[[Path], Path]) -> None:
    """Folders and zip files, with or without .eval/ and reports/, as a job's artefacts are downloaded."""
    assert [bare.measure().code, bare.measure().code] == [0, 0]
    first, second = map(form, uploads(bare, bare.runs()))
    done = bare.gate("floor", "--from", first, second, "--write")
    assert done.code == 0, done.err
    assert "(runs 8812, 8813)" in done.out
    assert [line.ci_run for line in bare.lines()] == ["8812", "8813"]


@pytest.mark.parametrize(
    ("ci", "code"),
    [(("8812", "8812"), "of CI run 8812, as run"), (("8812", None), "names no CI run")],
)
def test_one_ci_run_twice_or_none_is_refused(bare: Space, ci: tuple[str, str | None], code: str) -> None:
    """S5: two jobs of one run are no second measurement; class ci without a run cannot be looked up."""
    assert [bare.measure().code, bare.measure().code] == [0, 0]
    folders = uploads(bare, bare.runs(), ci)
    for folder in folders:
        report = folder / "reports" / "notes.json"
        bare.forge(report, lambda report: report["environment"].update({"class": "ci"}))
    done = bare.gate("floor", "--from", *folders)
    assert (done.code, code in done.err) == (1, True), done.err


def test_measured_in_ci_here_and_now_a_run_may_lack_its_number_and_says_so(
    bare: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    bare.answer()
    done = bare.gate("floor", "--measure")
    assert (done.code, "class ci, and not of two CI runs" in done.out) == (0, True), done.err


def damaged(path: Path, change: Callable[[zipfile.ZipFile], None]) -> None:
    with zipfile.ZipFile(path, "a") as archive:
        change(archive)


def link(archive: zipfile.ZipFile) -> None:
    info = zipfile.ZipInfo("reports/other.json")
    info.external_attr = 0o120777 << 16
    archive.writestr(info, "/etc/passwd")


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (lambda archive: archive.writestr("../reports/x.json", "{}"), 1, "lies outside of it"),
        (lambda archive: archive.writestr("/etc/x.json", "{}"), 1, "lies outside of it"),
        (lambda archive: archive.writestr(".eval/reports/notes.json", "{}"), 1, "twice"),
        (link, 1, "is a link"),
        (lambda archive: archive.writestr("reports/other.json", '{"schema":'), 1, "not whole JSON"),
    ],
)
def test_a_zip_file_is_read_with_care(
    space: Space, change: Callable[[zipfile.ZipFile], None], code: int, message: str
) -> None:
    """Path tricks, links, a member twice, and what is no report, are refused."""
    first, second = map(zipped, uploads(space, space.runs()))
    damaged(second, change)
    done = space.gate("floor", "--from", first, second)
    assert (done.code, message in done.err) == (code, True), done.err


def test_a_zip_file_is_bounded(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = map(zipped, uploads(space, space.runs()))
    for name, message in (("MOST_MEMBERS", "members"), ("MOST_BYTES", "larger"), ("MOST_ALL", "larger")):
        with monkeypatch.context() as patch:
            patch.setattr(f"eval_gate.floors.sources.{name}", 0)
            done = space.gate("floor", "--from", first, second)
        assert (done.code, message in done.err) == (1, True), done.err


@pytest.mark.parametrize(("name", "code"), [("nowhere", 2), ("eval.toml", 2), ("set", 2)])
def test_a_path_that_holds_no_reports_is_wrong_usage(space: Space, name: str, code: int) -> None:
    done = space.gate("floor", "--from", name)
    assert (done.code, name in done.err) == (code, True), done.err


# What is refused


@pytest.mark.parametrize(("hits", "floored"), [(0, False), (2, False), (5, False), (6, True)])
def test_a_floor_that_a_random_ranking_reaches_is_refused(bare: Space, hits: int, floored: bool) -> None:
    """S5: of 27 queries over 40 documents, chance puts 4 or more at rank 1 in 0.5% of cases, and 3 or more in 3%.

    P(Bin(27, 1/40) >= 3) = 0.030 and P(... >= 4) = 0.005, so that a floor of 3 hits, which 5 give, is refused. The
    other measures, which find the document further down, are left out.
    """
    measured(
        bare, {name: 1 if place < hits else 11 for place, name in enumerate(f"q{n:02}" for n in range(1, 28))}
    )
    others = ["--reason", "recall@10=x", "--reason", "ndcg@10=x", "--reason", "mrr=x"]
    done = bare.gate("floor", "notes", *others, "--write")
    assert (done.code == 0) is floored, done.err
    assert bare.floors.exists() is floored
    if not floored:
        assert "notes: hit@1: " in done.err
        assert "No measure would be left: measure a better retriever" in done.err


def test_a_measure_is_left_out_with_its_own_reason_and_stays_out(space: Space) -> None:
    """round 2, B2: recall@10 keeps A4's drop; --metric takes it in again."""
    done = space.gate("floor", "--reason", "recall@10=ten of forty", "--write")
    assert done.code == 0, done.err
    assert "recall@10" not in held(space)["floors"]
    assert held(space)["reasons"] == {"recall@10": "ten of forty"}
    assert space.check().code == 0
    graded = {one["measure"]: one["rule"] for one in space.check().verdict["arms"][0]["graded"]}
    assert graded["recall@10"] == "drop"
    before = space.floors.read_bytes()
    measured(space)
    assert space.gate("floor", "--write").code == 0
    assert space.floors.read_bytes() == before
    assert space.gate("floor", "--metric", "recall@10", "--write").code == 0
    assert ("recall@10" in held(space)["floors"], "reasons" in held(space)) == (True, False)


@pytest.mark.parametrize(
    ("options", "key", "file"),
    [
        (["--margin", "3"], "margin", "floors"),
        (["--p95-ms", "301"], "p95_ms", "budgets"),
        (["--max-drop", "recall@10=2.1"], "max_drop", "budgets"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_round2_b2_each_looser_choice_needs_its_own_reason(
    space: Space, options: list[str], key: str, file: str, first: bool
) -> None:
    """B2: from the first floors on, and kept beside the choice; a reason under another key does not do."""
    if first:
        shutil.rmtree(space.root / "policy")
    before = space.tree("policy")
    bare = space.gate("floor", *options, "--write")
    assert (bare.code, f'--reason {key}="…"' in bare.err) == (1, True), bare.err
    other = space.gate("floor", *options, "--reason", "task=another", "--write")
    assert other.code == 1
    assert space.tree("policy") == before
    assert space.gate("floor", *options, "--reason", f"{key}=a slow machine", "--write").code == 0
    table = tomllib.loads(getattr(space, file).read_text())["arms"]["notes"]
    assert table["reasons"] == {key: "a slow machine"}
    assert space.check().code == 0


@pytest.mark.parametrize("text", ["", "  ", "\u200b", "-", "…"])
def test_round2_b2_a_reason_says_something(space: Space, text: str) -> None:
    """B2: what nobody can read is no reason."""
    done = space.gate("floor", "--margin", "3", "--reason", f"margin={text}")
    assert (done.code, "says nothing" in done.err) == (2, True), done.err


def test_a_reason_that_nothing_needs_is_refused_with_the_keys_that_there_are(space: Space) -> None:
    done = space.gate("floor", "--reason", "margin=because")
    assert (done.code, "needs no reason" in done.err, "p95_ms" in done.err) == (2, True, True)
    done = space.gate("floor", "--reason", "margni=because")
    assert (done.code, "did you mean 'margin'" in done.err) == (2, True), done.err


@pytest.mark.parametrize(
    "options", [("--reason", "margni=because"), ("--metric", "recal@1"), ("--max-drop", "recal@1=3")]
)
def test_a_name_that_no_run_can_hold_is_refused_before_any_is_measured(
    space: Space, options: tuple[str, str]
) -> None:
    done = space.gate("floor", "--measure", *options)
    assert (done.code, "did you mean" in done.err, "run 1 of 2" in done.err) == (2, True, False), done.err


def test_lower_numbers_need_a_reason_that_stays_while_they_stand(space: Space) -> None:
    """K5: a change of the bar says why, and keeps saying it; a bar that is raised needs none."""
    measured(space, {"q01": None, "q27": 2})
    before = space.tree("policy")
    done = space.gate("floor", "--write")
    assert (done.code, '--reason floors="…"' in done.err) == (1, True)
    assert space.tree("policy") == before
    assert space.gate("floor", "--write", "--reason", "floors=q01 is disputed").code == 0
    assert held(space)["reasons"] == {"floors": "q01 is disputed"}
    assert held(space)["misses_allowed"] == {"hit@1": 4}
    # What else is moved leaves it.
    assert space.gate("floor", "--write", "--p95-ms", "200").code == 0
    assert held(space)["reasons"] == {"floors": "q01 is disputed"}
    # The same reason again is no new one.
    measured(space, {"q01": None, "q02": None, "q27": 2})
    assert space.gate("floor", "--write", "--reason", "floors=q01 is disputed").code == 1
    measured(space, {})
    assert space.gate("floor", "--write").code == 0
    assert (held(space)["misses_allowed"], "reasons" in held(space)) == ({"hit@1": 2}, False)


def without_the_last(space: Space) -> None:
    """q27 and its label are deleted."""
    space.put_queries(space.queries()[:-1])
    space.rejudge(lambda rows: [row for row in rows if not row.startswith("q27")])


def relabelled(space: Space) -> None:
    space.rejudge(lambda rows: [row.replace("d28\t0", "d28\t1") for row in rows])


def another_headline(space: Space) -> None:
    space.edit(space.root / "set" / "dataset.toml", '"hit@1"', '"mrr"')


@pytest.mark.parametrize(
    ("change", "others"),
    [(without_the_last, []), (relabelled, ["--reason", "floors=two are right now"]), (another_headline, [])],
)
def test_another_task_needs_a_reason(
    space: Space, change: Callable[[Space], None], others: list[str]
) -> None:
    """A4: a query that is deleted, a label, the headline: under `task`, beside what else gets looser."""
    change(space)
    measured(space, {})
    done = space.gate("floor", "--write", *others)
    assert (done.code, '--reason task="…"' in done.err) == (1, True), done.err
    done = space.gate("floor", "--write", *others, "--reason", "task=the set is another")
    assert done.code == 0, done.err
    assert held(space)["reasons"]["task"] == "the set is another"


def test_a_run_is_one_run(space: Space) -> None:
    """A4: two reports of one id that differ, and a run that the evidence holds otherwise, are refused."""
    first, second = uploads(space, space.runs())
    run = space.lines()[-1].run_id
    report = first / "reports" / "notes.json"
    space.forge(report, lambda report: report.update(run_id=run))
    done = space.gate("floor", "--from", first, second)
    assert (done.code, "say different things" in done.err) == (1, True), done.err
    older, newer = space.lines()
    space.put_lines([resealed(older, lambda table: table.update(ci_run="7")), newer])
    done = space.gate("floor", "--margin", "1", "--write")
    assert (done.code, "says something else of this run" in done.err) == (1, True), done.err


def test_a_retired_arm_that_is_floored_again_is_retired_no_more(space: Space) -> None:
    """The file would not read with both."""
    space.floors.write_text('schema = "floors-v2"\n[retired]\nnotes = "gone"\n')
    space.evidence.unlink()
    done = space.gate("floor", "--write")
    assert done.code == 0, done.err
    assert "retired" not in tomllib.loads(space.floors.read_text())


def test_the_same_numbers_of_another_class_are_written(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """S17 the other way round: evidence of the class that gates takes the place of what was measured elsewhere."""
    monkeypatch.setenv("CI", "true")
    space.answer()
    assert space.gate("floor", "--measure", "--write").code == 0
    assert {line.class_ for line in space.lines()} == {"ci"}


def test_another_class_than_ci_needs_a_reason(space: Space) -> None:
    """LADDER: a number measured where the gate will not run carries no floor; into class ci needs none."""
    lines = [
        resealed(line, lambda t: t.update({"class": "ci", "ci_run": t["run_id"]})) for line in space.lines()
    ]
    space.policy({"notes": lines})
    measured(space, {})
    done = space.gate("floor", "--write")
    assert (done.code, '--reason class="…"' in done.err) == (1, True), done.err
    assert space.gate("floor", "--write", "--reason", "class=CI is gone").code == 0
    assert held(space)["reasons"] == {"class": "CI is gone"}


@pytest.mark.parametrize("gone", ["table", "evidence"])
def test_floors_that_were_deleted_are_made_anew_only_with_a_reason(space: Space, gone: str) -> None:
    """K5: or deleting them would be the way to a lower bar without a word."""
    if gone == "evidence":
        space.evidence.unlink()
    else:
        space.floors.write_text('schema = "floors-v2"\n')
    measured(space, space.losing(4))
    done = space.gate("floor", "--write")
    assert (done.code, "were deleted" in done.err) == (1, True), done.err
    assert space.gate("floor", "--write", "--reason", "floors=another retriever").code == 0
    assert held(space)["reasons"] == {"floors": "another retriever"}


def test_a_query_that_must_pass_and_never_did_gets_no_floors(bare: Space) -> None:
    """S5: zero tolerance for what was never there would fail for ever, so it is said at once."""
    bare.set(
        {q["_id"]: {"text": q["text"], "metadata": {"must_pass": q["_id"] == "q27"}} for q in bare.queries()}
    )
    measured(bare)
    done = bare.gate("floor")
    assert (done.code, "q27 must pass" in done.err) == (1, True), done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--metric", "recal@1"], "did you mean 'recall@1'"),
        (["--metric", "recall@3"], "no such measure; did you mean 'recall@"),
        (["--margin", "-1"], "--margin"),
        (["--drifts", "nan"], "not a finite number"),
        (["--drifts", "1.5"], "--drifts"),
        (["--max-drop", "mrr"], "MEASURE=POINTS"),
        (["--reason", "because"], "KEY="),
        (["--form", "plain", "--write"], "printed, not written"),
        (["--measure", "--from", "x"], "two sources of runs"),
        (["../notes"], "a name is lower-case letters"),
    ],
)
def test_wrong_usage_exits_2(space: Space, options: list[str], message: str) -> None:
    done = space.gate("floor", *options)
    assert (done.code, message in done.err) == (2, True), done.err


# What is written and printed


def test_27_queries_worked_by_hand(bare: Space) -> None:
    """K2: 26 of 27 at rank 1 and a margin of 2: 24 of 27 pass and 23 fail; the plain form says 0.88, 0.92, 0.90."""
    measured(bare)
    assert bare.gate("floor", "--write").code == 0
    table = held(bare)
    # recall@10 1 - 2/27; mrr (26 + 1/2 - 2) / 27; ndcg@10 (26 + 1/log2(3) - 2) / 27.
    assert table["floors"] == {"recall@10": 0.925925, "ndcg@10": 0.912256, "mrr": 0.907407}
    assert table["misses_allowed"] == {"hit@1": 3}
    done = bare.gate("floor", "--form", "plain")
    floors = tomllib.loads(done.out)["notes"]
    assert {name: floors[name] for name in ("hit@1", "recall@10", "mrr")} == {
        "hit@1": 0.88,
        "recall@10": 0.92,
        "mrr": 0.90,
    }
    for misses, code in ((3, 0), (4, 1)):
        assert bare.measure(dict.fromkeys([f"q{n:02}" for n in range(1, misses + 1)], 2)).code == 0
        assert bare.check().code == code


def test_a_plain_floor_that_rounds_down_to_nothing_is_refused(space: Space) -> None:
    """S5: of 27 hits, a margin of 26 leaves 0.03, and of 27 nothing; 2 misses more than there are hits."""
    lines = tuple(space.lines())
    for margin, sound in ((25, True), (26, False)):
        floors = ArmFloors.model_validate_json(
            json.dumps(floors_table(lines, margin=margin, measures=["hit@1"]))
        )
        if sound:
            assert '"hit@1" = 0.03' in plain([ArmPolicy("notes", floors, Budget(), lines)])
        else:
            with pytest.raises(Exception, match=r"is 0\.00 in the plain form"):
                plain([ArmPolicy("notes", floors, Budget(), lines)])


def test_fifteen_queries_get_floors_baseline_and_budget_in_one_step(bare: Space) -> None:
    """A small set passes at once, its p95 bounded by the passes that measure takes of it; a second arm without floors
    is shown as not gated."""
    queries = {q["_id"]: q["text"] for q in bare.queries()[:15]}
    bare.set(queries, judgements=[(name, name.replace("q", "d"), 1) for name in queries])
    bare.answer()
    assert bare.gate("floor", "--measure", "--write").code == 0
    done = bare.check()
    assert (done.code, done.verdict["arms"][0]["budget_p95_ms"]) == (0, 300)
    shutil.copy(bare.report, bare.report.with_name("other.json"))
    done = bare.check()
    assert (done.code, done.verdict["not_gated"]) == (0, ["other"])


def test_round2_s17_where_no_number_moved_nothing_is_written(space: Space) -> None:
    """S17: a re-baseline of the same numbers says so; the evidence that stands goes on being cited."""
    before = space.tree("policy")
    measured(space)
    done = space.gate("floor", "--write")
    assert (done.code, "Nothing was written: no number moved." in done.out) == (0, True)
    assert space.tree("policy") == before


def test_round2_s14_evidence_that_nothing_cites_goes_with_the_write_that_stops_citing_it(
    space: Space,
) -> None:
    """S14: of this arm alone, and what a promotion record cites stays."""
    first, second = space.lines()
    (space.root / "policy" / "promotions").mkdir()
    record = {"evidence": [{"run_id": first.run_id, "line": first.line}]}
    (space.root / "policy" / "promotions" / "0001-notes.json").write_text(json.dumps(record))
    other = space.evidence.with_name("other.jsonl")
    shutil.copy(space.evidence, other)
    kept = other.read_bytes()
    measured(space, {})
    assert space.gate("floor", "--write").code == 0
    found = [line.run_id for line in space.lines()]
    assert found == [first.run_id, *held(space)["runs"]]
    assert second.run_id not in found
    assert other.read_bytes() == kept


def test_round2_s8_four_arms_are_a_screen(bare: Space) -> None:
    """S8: no digest, and no more than 12 lines an arm in the file."""
    text = (bare.root / "eval.toml").read_text()
    (bare.root / "eval.toml").write_text("".join(text.replace("notes", f"arm-{n}") for n in range(4)))
    bare.answer()
    done = bare.gate("floor", "--measure", "--write")
    assert done.code == 0, done.err
    assert len(done.out.splitlines()) <= 40
    assert not re.search("[0-9a-f]{32}", done.out + bare.floors.read_text())
    assert max(len(part.splitlines()) for part in bare.floors.read_text().split("\n\n")[1:]) <= 12


def test_a_move_is_printed_before_and_now_with_its_queries(space: Space) -> None:
    """What moved, in a table and by name; for machines the same."""
    measured(space, {"q01": None})
    done = space.gate("floor", "--reason", "floors=q01 is disputed")
    assert done.code == 0, done.err
    assert re.search(r"recall@10 +1\.000 +0\.963 +0\.980 +0\.943", done.out)
    assert re.search(r"hit@1 +1 miss +1 miss +3 +3", done.out)
    assert "1 lost: q01 (d01, rank 1 → –)" in done.out
    assert "1 gained: q27 (d27, rank 2 → 1)" in done.out
    assert re.search(r"5 points in \d+%", done.out)
    assert "looser: recall@10" in done.out and "(q01 is disputed)" in done.out
    proposed = json.loads(space.gate("floor", "--format", "json", "--reason", "floors=x1").out)
    assert (proposed["schema"], proposed["written"]) == ("floor-proposal-v2", [])
    arm = proposed["arms"]["notes"]
    assert [move["query"] for move in arm["lost"]] == ["q01"]
    assert arm["floors"]["misses_allowed"] == {"hit@1": 3}


@pytest.mark.parametrize(
    "floors",
    [
        Floors(schema_="floors-v2"),
        Floors(
            schema_="floors-v2",
            min_gate="0.1.0",
            require=("clean",),
            reasons={"require": 'a "quoted" reason\n\\ \x7f of é 理由'},
            retired={"old.arm": "gone"},
            arms={
                "a-1": ArmFloors(
                    runs=("r1", "r2"),
                    n=27,
                    margin="derived",
                    corpus="drifts",
                    drift=0.1,
                    by_category=True,
                    floors={"recall@10": 0.5, "mrr": 1e-06},
                    misses_allowed={"hit@1": 3},
                    categories={"a b": CategoryFloors(n=20, floors={"mrr": 0.25})},
                    reasons={"margin": "it flips", "recall@10": "x"},
                ),
                "b": ArmFloors(runs=("r1", "r2"), n=1),
            },
        ),
    ],
)
def test_what_is_written_reads_as_it_was(floors: Floors) -> None:
    """And says no requirement that is usual."""
    text = floors_text(floors)
    assert parse_floors(text, Path("floors.toml")) == floors
    assert ("require" in text) is bool(floors.arms)
    budgets = Budgets(
        schema_="budgets-v2",
        arms={
            name: Budget(p95_ms=301, max_drop={"recall@10": 2.5}, reasons={"p95_ms": "slow"})
            for name in floors.arms
        },
    )
    assert parse_budgets(budgets_text(budgets), Path("budgets.toml"), floors) == budgets


def test_each_arm_has_its_own_floors_and_others_stay(space: Space) -> None:
    """K1: several arms, each with its own operating point; moving one leaves the other's table as it is."""
    space.twin("zoo")
    before = held(space, "zoo")
    measured(space, {})
    assert space.gate("floor", "notes", "--write").code == 0
    assert held(space)["misses_allowed"] == {"hit@1": 2}
    assert held(space, "zoo") == {**before, "margin": 2}  # which is always written


def test_the_default_arm_has_its_budget_written(space: Space) -> None:
    """A5: an arm that answers by default says what it may take."""
    text = (space.root / "eval.toml").read_text()
    (space.root / "eval.toml").write_text(f'{text}\n[default]\n"set" = "notes"\n')
    assert space.gate("floor", "--write").code == 0
    assert tomllib.loads(space.budgets.read_text())["arms"]["notes"] == {"p95_ms": 300.0}
