"""Ways to make a gate lie, by changing the policy: each on files, beside the untouched ones, which pass."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Space

pytestmark = pytest.mark.usefixtures("passes")


@pytest.mark.parametrize(
    ("above", "passes"),
    [
        (0.0, True),
        (1e-12, True),
        (9e-10, True),
        (2e-9, False),
        (1e-6, False),
        (0.0001, False),
        (-0.001, True),
    ],
)
def test_a_floor_is_compared_unrounded(space: Space, above: float, passes: bool) -> None:
    """K2's trap: a value is held against the floor as it is, with room for the last bits alone."""
    from eval_core.reports.report import read_report
    from eval_gate.check.judge import judge_arm
    from eval_gate.policy import Budget, Floor, read_floors

    report = read_report(space.report)
    floors = read_floors(space.floors).arms["notes"]
    moved = floors.model_copy(update={"metrics": {"mrr": Floor(floor=26.5 / 27 + above)}})
    verdict = judge_arm("notes", moved, Budget(), report, report)
    assert (verdict.verdict, [r.code for r in verdict.reasons]) == (
        ("pass", []) if passes else ("fail", ["floor-breached"])
    )


def baseline_of_another_set(space: Space) -> None:
    space.rewrite_documents(lambda lines: lines[:-1])
    for _ in range(2):
        assert space.measure().code == 0
    assert space.gate("floor", "notes", "--write", "--reason", "r", *space.evidence()[-4:]).code == 0


def baseline_of_fewer_queries(space: Space) -> None:
    """The same task, of which a backend could answer less: whole by its own account, and cited by the floors."""
    space.cite(space.unscorable)


def baseline_with_errors(space: Space) -> None:
    space.cite(lambda report: space.unscorable(report, "errored"))


def baseline_of_another_run(space: Space) -> None:
    assert space.measure().code == 0
    shutil.copy(space.report, space.baseline)


def both(space: Space) -> tuple[Path, Path]:
    """The copy that is the baseline, and the other."""
    one, other = space.copies()
    return (one, other) if one.read_bytes() == space.baseline.read_bytes() else (other, one)


@pytest.mark.parametrize(
    ("attack", "codes"),
    [
        (lambda space: space.baseline.unlink(), ["baseline-missing"]),
        (lambda space: space.baseline.write_text(""), ["baseline-malformed"]),
        (lambda space: space.baseline.write_text("{}"), ["baseline-malformed"]),
        (
            lambda space: space.alter(
                space.baseline, lambda r: r["summary"]["overall"]["metrics"].update({"mrr": 0})
            ),
            ["baseline-malformed"],
        ),
        (
            lambda space: space.forge(space.baseline, lambda report: report.update(arm="notes2")),
            ["baseline-malformed"],
        ),
        # An edit that is consistent within the baseline, a report that was not stripped, another run of the same.
        (
            lambda space: space.forge(
                space.baseline, lambda report: report["environment"].update(commit="0")
            ),
            ["baseline-differs"],
        ),
        (lambda space: shutil.copy(space.runs()[-1], space.baseline), ["baseline-differs"]),
        (lambda space: space.baseline.write_bytes(space.baseline.read_bytes() + b"\n"), ["baseline-differs"]),
        (baseline_of_another_run, ["policy-mixed"]),
        (baseline_of_another_set, ["policy-mixed"]),
        (baseline_with_errors, ["baseline-incomplete"]),
        (baseline_of_fewer_queries, ["baseline-incomplete"]),
    ],
)
def test_a_baseline_that_is_missing_or_of_another_task_is_refused(
    space: Space, attack: Callable[[Space], object], codes: list[str]
) -> None:
    """A4: without the committed baseline there is no drop to speak of, and no pass."""
    attack(space)
    done = space.check()
    assert (done.code, done.codes) == (1, codes), done.out
    assert done.verdict["arms"][0]["reasons"][0]["remedy"]


def test_any_of_the_cited_runs_may_be_the_baseline(space: Space) -> None:
    """A4: the control beside the attacks on it: what counts is that its bytes are those of a cited copy."""
    _, other = both(space)
    shutil.copy(other, space.baseline)
    assert space.check().code == 0


def test_a_baseline_that_was_never_read_is_a_missing_one(space: Space) -> None:
    """A4: whoever calls the judgement without one is refused, as the script would."""
    from eval_core.reports.report import read_report
    from eval_gate.check.judge import judge, judge_arm
    from eval_gate.policy import Budget, read_floors

    report = read_report(space.report)
    floors = read_floors(space.floors).arms["notes"]
    assert judge([judge_arm("notes", floors, Budget(), report, report)]).exit_code == 0
    verdict = judge([judge_arm("notes", floors, Budget(), None, report)])
    assert verdict.exit_code == 1
    assert [reason.code for reason in verdict.arms[0].reasons] == ["baseline-missing"]


def test_what_is_wrong_is_told_at_once_and_not_in_turns(space: Space) -> None:
    """A4: without a baseline the queries that came or went cannot be named, and are refused all the same."""
    space.put_queries(space.queries()[1:])
    space.rejudge(lambda rows: rows[1:])
    assert space.measure().code == 0
    assert space.check().codes == ["query-set-differs", "n-differs"]
    space.baseline.unlink()
    done = space.check()
    assert (done.code, done.codes) == (1, ["query-set-differs", "n-differs", "baseline-missing"])


@pytest.mark.parametrize(
    ("attack", "told"),
    [
        (lambda space: shutil.rmtree(space.root / "policy"), "no floors, so there is nothing to gate on"),
        (lambda space: space.floors.unlink(), "no floors, so there is nothing to gate on"),
        (lambda space: space.floors.write_text(""), "schema is missing"),
        (lambda space: space.floors.write_text("[arms"), "the floors file is not TOML"),
        (lambda space: space.floors.write_bytes(b"\xff"), "not UTF-8"),
        (lambda space: space.budgets.unlink(), "deleting it must not lift the budgets that it held"),
        (lambda space: space.budgets.write_text(""), "schema is missing"),
        (lambda space: space.budgets.write_text("schema = "), "the budgets file is not TOML"),
    ],
)
def test_a_policy_file_that_is_deleted_or_emptied_is_a_fault(
    space: Space, attack: Callable[[Space], object], told: str
) -> None:
    """S5, K3: no gate without floors, and no budget lifted by losing the file that held it."""
    attack(space)
    done = space.check()
    assert (done.code, done.out, told in done.err) == (2, "", True), done.err


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ('schema = "floors-v1"\n', ["policy-vacuous"]),
        ('schema = "floors-v1"\n[arms]\n', ["policy-vacuous"]),
    ],
)
def test_floors_of_no_arm_pass_nothing(space: Space, text: str, codes: list[str]) -> None:
    """S5: a gate that looks at nothing does not pass."""
    space.floors.write_text(text)
    done = space.check()
    assert (done.code, done.codes) == (1, ["floors-deleted", *codes])
    shutil.rmtree(space.baseline.parent)
    done = space.check()
    assert (done.code, done.codes) == (1, ["floors-deleted", *codes])  # its evidence is still there
    shutil.rmtree(space.root / "policy" / "evidence")
    done = space.check()
    assert (done.code, done.codes) == (1, codes)


def test_deleting_the_floors_of_one_arm_is_noticed_by_its_baseline(space: Space) -> None:
    """S5: of two arms the one that regressed is not let through by deleting its table."""
    text = space.floors.read_text()
    space.twin("zoo")
    evidence = space.root / "policy" / "evidence"
    assert [arm["arm"] for arm in space.check().verdict["arms"]] == ["notes", "zoo"]
    assert space.check().code == 0
    space.floors.write_text(text)
    done = space.check()
    assert (done.code, done.codes, done.verdict["not_gated"]) == (1, ["floors-deleted"], ["zoo"])
    assert space.check("--floors", space.floors).codes == [
        "floors-deleted"
    ]  # by its path it is the same file
    assert space.check("notes").code == 0
    (space.baseline.parent / "zoo.json").unlink()
    shutil.rmtree(evidence / "zoo")
    assert space.check().code == 0


def in_floors(old: str, new: str) -> Callable[[Space], None]:
    """Edit each line of floors.toml that begins with `old`."""

    def change(space: Space) -> None:
        lines = space.floors.read_text().splitlines(keepends=True)
        space.floors.write_text("".join(f"{new}\n" if line.startswith(old) else line for line in lines))

    return change


def first_copy(space: Space) -> Path:
    """A copy that is not the baseline: nothing but the floors speaks of it."""
    return both(space)[1]


def a_folder_in_its_place(space: Space) -> None:
    path = first_copy(space)
    path.unlink()
    path.mkdir()


def a_pipe_in_its_place(space: Space) -> None:
    path = first_copy(space)
    path.unlink()
    os.mkfifo(path)


def no_report_that_the_floors_know(space: Space) -> None:
    """Its bytes are those that floors.toml gives the SHA-256 of, and they are no report."""
    path = first_copy(space)
    known = hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_text('{"schema": "report-v1"}')
    space.edit(space.floors, known, hashlib.sha256(path.read_bytes()).hexdigest())


def another_value_in_the_copy(space: Space) -> None:
    """Its digest is put right in floors.toml, and what the floors say of the run is not."""
    path = first_copy(space)
    known = hashlib.sha256(path.read_bytes()).hexdigest()
    text = path.read_text()
    path.write_text(text.replace('"mrr": 0.9814814814814815', '"mrr": 0.5', 1))
    assert path.read_text() != text
    space.edit(space.floors, known, hashlib.sha256(path.read_bytes()).hexdigest())


def lower_a_value_with_its_floor(space: Space) -> None:
    """Consistent inside floors.toml: one evidence value and the floor that follows from it."""
    table = tomllib.loads(space.floors.read_text())["arms"]["notes"]
    value, floor = table["evidence"][0]["values"]["mrr"], table["metrics"]["mrr"]["floor"]
    text = space.floors.read_text().replace(f"mrr = {value!r}", "mrr = 0.5", 1)
    space.floors.write_text(text.replace(repr(floor), repr(0.5 - 2 / 27)))


@pytest.mark.parametrize(
    ("attack", "code"),
    [
        (lambda space: None, None),
        (lower_a_value_with_its_floor, "evidence-differs"),
        (in_floors("digest", 'digest = "0"'), "evidence-differs"),
        (in_floors("started", 'started = "2026-11-30T00:00:00.000Z"'), "evidence-differs"),
        (in_floors("class", 'class = "elsewhere"'), "evidence-differs"),
        (in_floors("sha256", f'sha256 = "{"0" * 64}"'), "evidence-differs"),
        (another_value_in_the_copy, "evidence-differs"),
        (no_report_that_the_floors_know, "evidence-differs"),
        (lambda space: first_copy(space).unlink(), "evidence-missing"),
        (lambda space: shutil.rmtree(space.root / "policy" / "evidence"), "evidence-missing"),
        (lambda space: first_copy(space).write_text("{}"), "evidence-differs"),
        (lambda space: first_copy(space).write_text("{"), "evidence-differs"),
        (lambda space: first_copy(space).write_bytes(b"\xff"), "evidence-differs"),
        (
            lambda space: first_copy(space).write_bytes(first_copy(space).read_bytes() + b" "),
            "evidence-differs",
        ),
        (lambda space: shutil.copy(space.runs()[0], first_copy(space)), "evidence-differs"),
        (a_folder_in_its_place, "evidence-malformed"),
        (a_pipe_in_its_place, "evidence-malformed"),
    ],
)
def test_evidence_that_is_not_what_lies_beside_the_floors_carries_none(
    space: Space, attack: Callable[[Space], None], code: str | None
) -> None:
    """K5: a change of a floor cites a run; what floors.toml says of a run is held against the copy of its report."""
    attack(space)
    done = space.check()
    assert done.code == (0 if code is None else 1)
    assert code is None or code in done.codes
    assert all(reason["remedy"] for reason in done.verdict["arms"][0]["reasons"])


def drop_a_floor(space: Space) -> None:
    lines = space.floors.read_text().splitlines(keepends=True)
    space.floors.write_text("".join(line for line in lines if not line.startswith("mrr = {")))


@pytest.mark.parametrize(
    ("attack", "told"),
    [
        (
            in_floors("provisional", "provisional = false"),
            "provisional = false, and there are 2 evidence runs",
        ),
        (drop_a_floor, '"mrr" has evidence and no floor'),
        (
            lambda space: space.floors.write_text(
                space.floors.read_text().replace('class = "', 'class = "x', 1)
            ),
            "the runs are of more than one class",
        ),
    ],
)
def test_floors_that_contradict_themselves_do_not_load(
    space: Space, attack: Callable[[Space], None], told: str
) -> None:
    """K2: what the tool writes agrees with itself; an edit that does not is named."""
    assert space.check().code == 0
    attack(space)
    done = space.check()
    assert (done.code, told in done.err) == (2, True), done.err


def test_deleting_floors_and_baseline_of_one_arm_is_noticed_by_its_evidence(space: Space) -> None:
    """S5: what the floors stood on is still in the policy."""
    shutil.copytree(space.root / "policy" / "evidence" / "notes", space.root / "policy" / "evidence" / "zoo")
    assert space.check().codes == ["floors-deleted"]
    shutil.rmtree(space.root / "policy" / "evidence" / "zoo")
    assert space.check().code == 0


def between(text: str, start: str, end: str) -> str:
    """The text without what stands from `start` to before `end`."""
    return text[: text.index(start)] + text[text.index(end) :]


@pytest.mark.parametrize(
    ("change", "code", "codes"),
    [
        # All measures taken away, and all evidence but one run.
        (lambda text: between(text, '"hit@1" = {max', "[arms.notes.task]"), 1, ["floors-vacuous"]),
        # The newer of the two is the baseline, which the floors then know nothing of.
        (
            lambda text: text[: text.rindex("[[arms.notes.evidence]]")],
            1,
            ["floors-without-evidence", "policy-mixed"],
        ),
    ],
)
def test_floors_that_hold_nothing_are_vacuous(
    space: Space, change: Callable[[str], str], code: int, codes: list[str]
) -> None:
    """S5: an arm without a floor, or with floors that stand on one run, is refused."""
    space.floors.write_text(change(space.floors.read_text()))
    done = space.check()
    assert (done.code, done.codes) == (code, codes)


@pytest.mark.parametrize(
    ("margin", "codes"),
    [(2, []), (25, []), (26, ["floors-vacuous"]), (27, ["floors-vacuous"] * 3), (40, ["floors-vacuous"] * 3)],
)
def test_a_margin_of_the_whole_set_gates_nothing(space: Space, margin: int, codes: list[str]) -> None:
    """S5: floors that agree with their evidence, and that a backend which finds nothing would pass.

    One of 27 queries is missed at rank 1, so that a margin of 26 allows all of them to be; a mean reaches 0 with 27.
    """
    text = space.floors.read_text().replace("margin = 2", f'margin = {margin}\nreason = "r"')
    text = text.replace("max_misses = 3", f"max_misses = {1 + margin}")
    text = text.replace("0.9259259259259259", repr(1 - margin / 27))
    space.floors.write_text(text.replace("0.9074074074074074", repr(26.5 / 27 - margin / 27)))
    done = space.check()
    assert (done.code, done.codes) == (1 if codes else 0, codes)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"hit@1" = {max_misses = 3}', '"hit@1" = {max_misses = 4}', "gives max_misses 3; restore it"),
        ('"hit@1" = {max_misses = 3}', '"hit@1" = {max_misses = 27}', "gives max_misses 3; restore it"),
        ('"hit@1" = {max_misses = 3}', '"hit@1" = {floor = 0.88}', "needs max_misses (it is 0 or 1 a query)"),
        ('"hit@1" = {max_misses = 3}', '"hit@1" = {max_misses = 3.0}', "should be a valid integer"),
        ('"hit@1" = {max_misses = 3}', '"hit@1" = {max_misses = true}', "should be a valid integer"),
        ('"hit@1" = {max_misses = 3}', '"hit@1" = {max_misses = -1}', "greater than or equal to 0"),
        ('"hit@1" = {max_misses = 3}', '"hit@1" = {}', "give one of max_misses and floor"),
        ('"hit@1" = {max_misses = 3}', '"hit@1" = {max_miss = 3}', "did you mean 'max_misses'"),
        ('"hit@1" = {max_misses = 3}', '"hti@1" = {max_misses = 3}', "no such measure 'hti@1'; did you mean"),
        ('"hit@1" = {max_misses = 3}', '"hit@3" = {max_misses = 3}', "not every evidence run has a value"),
        ("mrr = {floor = 0.9074074074074074}", "mrr = {floor = 0.90}", "gives floor 0.9074074074074074"),
        ("mrr = {floor = 0.9074074074074074}", "mrr = {floor = 0.0}", "gives floor 0.9074074074074074"),
        ("mrr = {floor = 0.9074074074074074}", "mrr = {floor = nan}", "should be a finite number"),
        ("mrr = {floor = 0.9074074074074074}", "mrr = {floor = -inf}", "should be a finite number"),
        ("mrr = {floor = 0.9074074074074074}", 'mrr = {floor = "0.9"}', "should be a valid number"),
        ("mrr = {floor = 0.9074074074074074}", "mrr = {max_misses = 3}", "needs floor (it is a mean)"),
        ("margin = 2", "margin = 3", "margin = 3 is wider than 2, and no reason says why"),
        ("margin = 2", 'margin = 3\nreason = ""', "margin = 3 is wider than 2, and no reason says why"),
        ("margin = 2", 'margin = 3\nreason = "r"', "with a margin of 3 gives"),
        ('margin_rule = "fixed"', 'margin_rule = "derived"', "flip_rate goes with margin_rule = 'derived'"),
        (
            'margin_rule = "fixed"',
            'margin_rule = "derived"\nflip_rate = 0.5',
            "margin = 2, and a flip rate of 0.5",
        ),
        ('margin_rule = "fixed"', "flip_rate = 0.0", "flip_rate goes with margin_rule = 'derived'"),
        ('margin_rule = "fixed"', 'margin_rule = "guessed"', "'fixed' or 'derived'"),
        ("provisional = true", "provisional = true\ntracked = true", "tracked = true takes the arm out"),
        ('schema = "floors-v1"', 'schema = "floors-v1"\nrequire = ["HEAD"]', "require"),
        ('schema = "floors-v1"', 'schema = "floors-v1"\nrequired = ["head"]', "did you mean 'require'"),
        ("sha256 = ", "sha265 = ", "did you mean 'sha256'"),
        ("sha256 = ", 'sha256 = "0"\nx = ', "sha256"),
        (
            "[arms.notes.task]",
            '[arms.notes.categories."x"]\nn = 28\nmetrics = { "hit@1" = { max_misses = 3 } }\n\n[arms.notes.task]',
            "not every evidence run has a value for it",
        ),
        ("margin = 2", "margin = -1", "greater than or equal to 0"),
        ("n = 27", "n = 26", "the evidence with a margin of 2 gives"),
        ("n = 27", "n = 27.0", "should be a valid integer"),
        ("n = 27", "n = 1000000001", "n and margin should be at most 1,000,000,000"),
        ("margin = 2", "margin = 1000000001", "n and margin should be at most 1,000,000,000"),
        pytest.param("margin = 2", f"margin = 0x{'f' * 400}", "n and margin", id="a huge margin"),
        ("n = 27", "n = 0", "greater than or equal to 1"),
        ("n = 27\n", "", "n is missing"),
        ("provisional = true", "provisional = 1", "should be a valid boolean"),
        ("provisional = true", "provisonal = true", "did you mean 'provisional'"),
        ('corpus = "pinned"', 'corpus = "drifts"', "documents = [fewest, most] goes with corpus = 'drifts'"),
        ('corpus = "pinned"', 'corpus = "open"', "'pinned' or 'drifts'"),
        ('min_gate = "0.1.0"', 'min_gate = "99.0"', "needs eval-gate 99.0 or newer"),
        ('min_gate = "0.1.0"', 'min_gate = "0.1.0.1"', "needs eval-gate 0.1.0.1 or newer"),
        ('min_gate = "0.1.0"', 'min_gate = "newest"', "min_gate"),
        ('min_gate = "0.1.0"', 'min_gate = "1.0"\nfuture = true', "needs eval-gate 1.0 or newer"),
        ('schema = "floors-v1"', 'schema = "floors-v2"', "floors-v1"),
        ('schema = "floors-v1"', "", "plain floors (no schema) are tied to no task"),
        ("limit = 10\n", "", "task.limit is missing"),
    ],
)
def test_a_bar_that_was_moved_by_hand_is_a_fault_of_the_file(
    space: Space, old: str, new: str, told: str
) -> None:
    """K2, K3: a floor is what its evidence and margin give; a misspelt key is no key; an old gate says so."""
    text = space.floors.read_text()
    assert old in text, text
    space.floors.write_text(text.replace(old, new, 1))
    done = space.check()
    assert (done.code, done.out, told in done.err) == (2, "", True), done.err


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("mrr", "-0.5", 'a value of "mrr" is not between 0 and 1'),
        ("mrr", "1.5", 'a value of "mrr" is not between 0 and 1'),
        ('"hit@1"', "1e308", 'a value of "hit@1" is not between 0 and 1'),
        ("mrr", "0", "gives floor -0.074"),
        ("mrr", '"1.0"', "should be a valid number"),
        ("mrr", "nan", "finite"),
    ],
)
def test_evidence_holds_what_a_run_can_measure(space: Space, name: str, value: str, told: str) -> None:
    """K2: the values that a floor stands on are shares."""
    lines = space.floors.read_text().splitlines()
    for place, line in enumerate(lines):
        if line.startswith("values = "):
            lines[place] = re.sub(rf"{re.escape(name)} = [0-9.]+", f"{name} = {value}", line)
            assert lines[place] != line
    space.floors.write_text("\n".join(lines) + "\n")
    done = space.check()
    assert (done.code, done.out, told in done.err) == (2, "", True), done.err


def test_floors_without_any_evidence_are_a_fault_of_the_file(space: Space) -> None:
    """K2: each floor has the evidence that it came from."""
    text = space.floors.read_text()
    space.floors.write_text(
        text[: text.index("[[arms.notes.evidence]]")].replace("n = 27", "evidence = []\nn = 27", 1)
    )
    done = space.check()
    assert (done.code, "not every evidence run has a value for it" in done.err) == (2, True), done.err


@pytest.mark.parametrize("part", ["query_ids", "queries", "judgements", "corpus", "limit", "metrics"])
def test_a_task_rewritten_in_the_floors_alone_is_refused(space: Space, part: str) -> None:
    """A4: floors, baseline and report say the same task, or nothing is graded."""
    lines = space.floors.read_text().splitlines()
    start = lines.index("[arms.notes.task]")
    place = next(i for i, line in enumerate(lines) if i > start and line.startswith(f"{part} = "))
    lines[place] = f"{part} = 11" if part == "limit" else f'{part} = "0"'
    space.floors.write_text("\n".join(lines) + "\n")
    done = space.check()
    assert (done.code, done.codes[-1]) == (1, "policy-mixed")
    assert len(done.codes) == 2
    assert not done.verdict["arms"][0]["reasons"][0]["message"].endswith(": ")


@pytest.mark.parametrize("version", ["0.1.0", "0.1", "0", "0.0.9", "0.1.0.0"])
def test_floors_of_an_older_gate_are_read(space: Space, version: str) -> None:
    space.edit(space.floors, 'min_gate = "0.1.0"', f'min_gate = "{version}"')
    assert space.check().code == 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[arms.note]\np95_ms = 300", "did you mean 'notes'"),
        ("[arms.notes]\np95 = 300", "did you mean 'p95_ms'"),
        ('[arms.notes]\np95_ms = "300"', "should be a valid number"),
        ("[arms.notes]\np95_ms = 0", "greater than 0"),
        ("[arms.notes]\np95_ms = nan", "finite"),
        ("[arms.notes]\np95_ms = inf", "finite"),
        ("[arms.notes]\np95_ms = true", "should be a valid number"),
        ("[arms.notes]\nmax_net_lost = -1", "greater than or equal to 0"),
        ("[arms.notes]\nmax_net_lost = 1.5", "should be a valid integer"),
        ("[arms.notes]\nmax_net_lots = 1", "did you mean 'max_net_lost'"),
        ("[arms.notes]\nmax_drop_everywhere = -0.1", "greater than or equal to 0"),
        ("[arms.notes]\nmax_drop_everywhere = 101", "less than or equal to 100"),
        ("[arms.notes]\nmax_drop_everywhere = nan", "finite"),
        ('[arms.notes.max_drop]\n"recal@10" = 2', "did you mean 'recall@10'"),
        ('[arms.notes.max_drop]\n"recall@10" = -1', "greater than or equal to 0"),
        ('[arms.notes.max_drop]\n"recall@10" = nan', "finite"),
    ],
)
def test_a_budget_with_a_fault_is_a_fault_of_the_file(space: Space, text: str, told: str) -> None:
    """A4: a budget that does not say what it seems to say is no budget."""
    space.budgets.write_text(f'schema = "budgets-v1"\n{text}\n')
    done = space.check()
    assert (done.code, done.out, told in done.err) == (2, "", True), done.err
