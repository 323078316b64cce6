"""Ways to make a gate lie, by changing the policy: evidence, floors, budgets; each beside untouched files, which pass.

They are the forms at the edges; the attacks themselves are a table (test_selftest), and what a branch changes against
another one is in test_edits.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from policy_support import resealed

from eval_core.policy.evidence import Line, line_digest
from eval_core.reports.check import quality_digest

if TYPE_CHECKING:
    from conftest import Space

pytestmark = pytest.mark.usefixtures("passes")

Change = Callable[["Space"], object]


# ---------------------------------------------------------------------------------------------------- the evidence


def first_line(change: Callable[[Any], object]) -> Change:
    """Edit the first line of the evidence as text: no digest is redone."""

    def edit(space: Space) -> None:
        first, *others = space.evidence.read_text().splitlines(keepends=True)
        table = json.loads(first)
        change(table)
        space.evidence.write_text("".join([json.dumps(table) + "\n", *others]))

    return edit


def every_line(change: Callable[[Any], object]) -> Change:
    """Edit every line, and redo every digest."""
    return lambda space: space.put_lines(resealed(line, change) for line in space.lines())


def last_line(change: Callable[[Any], object]) -> Change:
    """Edit the last line, and redo every digest."""

    def edit(space: Space) -> None:
        *others, last = space.lines()
        space.put_lines([*others, resealed(last, change)])

    return edit


def beyond(line: Any) -> None:
    """A rank that is deeper than what was asked for, in an answer as long as that."""
    line["entries"][0].update(retrieved=None)
    rank(1000)(line)


def first_with(change: Callable[[Line], dict[str, Any]]) -> Change:
    """Change the first line, and redo the digests over all of it: those of a part are left."""

    def edit(space: Space) -> None:
        first, second = space.lines()
        first = first.model_copy(update=change(first))
        quality = quality_digest(first.task, first.system, first.entries)
        first = first.model_copy(update={"quality": quality})
        space.put_lines([first.model_copy(update={"line": line_digest(first)}), second])

    return edit


def another_query(line: Line) -> dict[str, Any]:
    """Of another query than the task says."""
    entry, *others = line.entries
    return {"entries": (entry.model_copy(update={"query": "0" * 32}), *others)}


def a_folder_in_its_place(space: Space) -> None:
    space.evidence.unlink()
    space.evidence.mkdir()


def a_pipe_in_its_place(space: Space) -> None:
    space.evidence.unlink()
    os.mkfifo(space.evidence)


def rank(value: int | None) -> Callable[[Any], None]:
    def change(line: Any) -> None:
        line["entries"][0]["judged"][0][2] = value

    return change


@pytest.mark.parametrize(
    ("attack", "code"),
    [
        (lambda space: shutil.rmtree(space.evidence.parent), "evidence-missing"),
        (lambda space: space.evidence.write_text(""), "evidence-missing"),
        (a_folder_in_its_place, "evidence-malformed"),
        (a_pipe_in_its_place, "evidence-malformed"),
        (lambda space: space.evidence.write_text("{"), "evidence-malformed"),
        (lambda space: space.evidence.write_bytes(b"\xff\n"), "evidence-malformed"),
        (first_line(lambda line: line.update(note="x")), "evidence-malformed"),
        # B3: what follows from the entries is recomputed, and so is what names the run.
        (first_line(rank(2)), "evidence-contradicts"),
        (first_line(lambda line: line["entries"].pop()), "evidence-contradicts"),
        (first_line(lambda line: line["entries"][0].update(category="x")), "evidence-contradicts"),
        (first_line(lambda line: line["task"].update(limit=20)), "evidence-contradicts"),
        (first_line(lambda line: line["system"].update(backend="bm25")), "evidence-contradicts"),
        (first_line(lambda line: line.update({"class": "ci"})), "evidence-contradicts"),
        (first_line(lambda line: line.update(clean=True)), "evidence-contradicts"),
        (first_line(lambda line: line.update(fingerprint="0" * 64)), "evidence-contradicts"),
        (first_line(lambda line: line["set"].update(headline="recall@10")), "evidence-contradicts"),
        (last_line(lambda line: line["set"].update(headline="hti@1")), "evidence-contradicts"),
        (first_with(another_query), "evidence-contradicts"),
        (first_with(lambda line: {"fingerprint": "0" * 64}), "evidence-contradicts"),
        (
            first_with(lambda line: {"health": line.health.model_copy(update={"scored": 26})}),
            "evidence-contradicts",
        ),
        (last_line(beyond), "evidence-contradicts"),
        # A sound line of something that is no evidence.
        (last_line(lambda line: line["task"].update(limit=20)), "evidence-task-differs"),
        (last_line(lambda line: line["set"].update(headline="recall@10")), "evidence-task-differs"),
    ],
)
def test_round2_b3_evidence_that_contradicts_itself_or_is_none_carries_no_floor(
    space: Space, attack: Change, code: str
) -> None:
    """B3, K5: each line is recomputed at every check, and is held to what evidence must be."""
    attack(space)
    done = space.check()
    assert (done.code, code in done.codes) == (1, True), done.codes
    arm = done.verdict["arms"][0]
    assert (arm["verdict"], arm["graded"]) == ("refused", [])


def worse(line: Any) -> None:
    """Twelve of 27 queries find nothing in this run."""
    for entry in line["entries"][:12]:
        entry["judged"][0][2] = None


def invented(space: Space) -> None:
    """The evidence is rewritten with its digests, and the floors are what then follows: it agrees with itself."""
    space.policy({"notes": [resealed(line, worse) for line in space.lines()]})


@pytest.mark.parametrize(
    ("attack", "codes"),
    [
        # B3: digests redone, floors as they were.
        (every_line(worse), {"floor-not-derived"}),
        (last_line(worse), {"floor-not-derived"}),
    ],
)
def test_round2_b3_floors_follow_from_the_evidence_that_stands(
    space: Space, attack: Change, codes: set[str]
) -> None:
    attack(space)
    done = space.check()
    assert (done.code, set(done.codes)) == (1, codes)
    reasons = done.verdict["arms"][0]["reasons"]
    assert any(reason["key"] == "misses_allowed.hit@1" for reason in reasons)
    assert all("eval-gate floor notes" in reason["mend"] for reason in reasons)


def test_round2_b3_a_consistent_forgery_is_held_against_no_branch_and_says_so(space: Space) -> None:
    """B3: what agrees with itself passes; only the job that measures, and a target, close that."""
    invented(space)
    assert space.measure(space.losing(4)).code == 0
    done = space.check()
    assert done.code == 0
    assert "held against no branch; --target REV holds it against one" in done.verdict["notes"]


def test_floors_that_chance_reaches_hold_nothing(bare: Space) -> None:
    """S5: ten documents, and ten are retrieved: recall@10 is 1.0 by any ranking."""
    documents = {f"d{number:02}": f"thing {number}" for number in range(1, 11)}
    queries = {f"q{number:02}": f"where is thing {number} kept" for number in range(1, 11)}
    bare.set(queries, documents, [(name, name.replace("q", "d"), 1) for name in queries])
    answers = {
        text: list(dict.fromkeys([name.replace("q", "d"), *documents])) for name, text in queries.items()
    }
    (bare.root / "answers.json").write_text(json.dumps(answers))
    for _ in range(2):
        assert bare.core("measure", "-q").code == 0
    bare.policy()
    done = bare.check()
    assert (done.code, done.codes) == (1, ["floor-vacuous"])
    assert (
        "a random ranking of the documents reaches its floor"
        in done.verdict["arms"][0]["reasons"][0]["message"]
    )


# ------------------------------------------------------------------------------------------------------ the floors


def in_floors(old: str, new: str) -> Change:
    def change(space: Space) -> None:
        text = space.floors.read_text()
        assert text.count(old) == 1, (old, text)
        space.floors.write_text(text.replace(old, new))

    return change


def choosing(**choices: Any) -> Change:
    """Floors that follow from these choices."""
    return lambda space: space.policy(**choices)


def one_run(space: Space) -> None:
    """The numbers are those of both runs, which are alike."""
    first, last = (line.run_id for line in space.lines())
    in_floors(f'"{first}", "{last}"', f'"{last}"')(space)


def cited_twice(space: Space) -> None:
    """The baseline is named once more, as if a third run stood under the floors."""
    last = space.lines()[-1].run_id
    in_floors(f'"{last}"', f'"{last}", "{last}"')(space)


def swapped(space: Space) -> None:
    """Of two runs that started at once, the one whose id comes later is the baseline, and not either of them."""
    first, second = space.lines()
    space.policy({"notes": [first, resealed(second, lambda line: line.update(started=first.started))]})
    one, other = sorted((first.run_id, second.run_id))
    in_floors(f'"{one}", "{other}"', f'"{other}", "{one}"')(space)


WHY = {"margin": "room for a rewrite"}


@pytest.mark.parametrize(
    ("attack", "codes"),
    [
        (in_floors('"hit@1" = 3', '"hit@1" = 4'), ["floor-not-derived"]),
        (in_floors('"hit@1" = 3', '"hit@1" = 2'), ["floor-not-derived"]),
        (in_floors('"mrr" = 0.907407', '"mrr" = 0.907405'), ["floor-not-derived"]),
        (in_floors('"mrr" = 0.907407', '"mrr" = 0.0'), ["floor-not-derived"]),
        (in_floors('"mrr" = 0.907407', '"mrr" = 0.9074074'), []),  # within 1e-6 of 0.9074074074…
        (in_floors('"mrr" = 0.907407', '"mrr" = 0.907407, "hit@1" = 0.8'), ["floor-not-derived"]),
        (in_floors('"mrr" = 0.907407', '"mrr" = 0.907407, "hti@1" = 0.8'), ["metric-missing"]),
        (in_floors('"hit@1" = 3', '"hit@1" = 3, "mrr" = 3'), ["floor-not-derived"]),
        (in_floors('"hit@1" = 3', '"hit@1" = 3, "hit@3" = 3'), ["metric-missing"]),
        (in_floors("n = 27", "n = 26"), ["floor-not-derived"]),
        (in_floors("n = 27", "n = 27\nmargin = 3"), ["floor-not-derived"] * 4 + ["reason-missing"]),
        (in_floors("n = 27", "n = 27\ndrift = 0.1"), ["floor-not-derived"]),
        (in_floors("n = 27", 'n = 27\ncorpus = "drifts"'), ["floor-not-derived", "corpus-pinned"]),
        (one_run, ["floors-without-evidence"]),
        (cited_twice, ["runs-misordered"]),
        (swapped, ["runs-misordered"]),
        # B2: what lets more pass, and follows: with a reason of its own, or not at all.
        (choosing(margin=3), ["reason-missing"]),
        (choosing(margin=3, reasons={"margin": " \u200b "}), ["reason-missing"]),
        (choosing(margin=3, reasons={"floors": "r"}), ["reason-missing"]),
        (choosing(margin=3, reasons=WHY), []),
        (choosing(margin=19, reasons=WHY), []),
        # recall@10 of 7 / 27 is more than the 10 of 40 documents that chance retrieves, and of 6 / 27 it is less.
        (choosing(margin=20, reasons=WHY), []),
        (choosing(margin=21, reasons=WHY), ["floor-vacuous"]),
        # One of 27 is missed at rank 1: 26 more are all of them.
        (choosing(margin=26, reasons=WHY), ["floor-vacuous"] * 4),
        (choosing(margin="derived", reasons=WHY), []),
        (choosing(corpus="drifts", drift=0.1, reasons={"corpus": "r"}), ["corpus-pinned"]),
        (choosing(left_out=["mrr"]), ["reason-missing"]),
        (choosing(left_out=["mrr"], reasons={"margin": "r"}), ["reason-missing"]),
        (choosing(left_out=["mrr"], reasons={"mrr": "hit@1 says it"}), []),
        (choosing(require=["head", "clean"], why={}), ["reason-missing"]),
        (choosing(require=["head", "clean"], why={"require": "another job looks at it"}), []),
        (choosing(budgets={"notes": {"p95_ms": 1e300}}), ["reason-missing"]),
        (choosing(budgets={"notes": {"p95_ms": 299}}), []),
        (choosing(budgets={"notes": {"max_drop": {"recall@10": 100}}}), ["reason-missing"]),
        (choosing(budgets={"notes": {"max_drop": {"hit@1": 100}}}), ["reason-missing"]),
        (choosing(budgets={"notes": {"max_drop": {"mrr": 100}}}), []),  # it has no drop by default
        (choosing(budgets={"notes": {"max_drop": {"recall@20": 1}}}), ["metric-missing"]),
    ],
)
def test_round2_b2_a_bar_that_was_moved_by_hand_is_refused(
    space: Space, attack: Change, codes: list[str]
) -> None:
    """B2, K2: a number is what the evidence gives; a choice that lets more pass says why, under its own key."""
    attack(space)
    done = space.check()
    assert (done.code, done.codes) == (1 if codes else 0, codes)
    verdict = done.verdict
    assert all(reason["mend"] for reason in (*verdict["reasons"], *verdict["arms"][0]["reasons"]))


def test_round2_b2_another_headline_is_another_bar(space: Space) -> None:
    """B2: in the set and measured so, it differs from the evidence; evidence of both is of two tasks."""
    space.edit(space.root / "set" / "dataset.toml", 'headline = "hit@1"', 'headline = "mrr"')
    assert space.measure().code == 0
    assert space.check().codes == ["headline-differs"]
    space.policy()
    assert space.check().codes == ["evidence-task-differs"]


@pytest.mark.parametrize("lost", ["floors", "all"])
def test_deleting_the_floors_of_an_arm_is_noticed_by_its_evidence(space: Space, lost: str) -> None:
    """S5: what the floors stood on is still in the policy; an arm that is gone says why."""
    space.twin("zoo")
    text = space.floors.read_text()
    space.floors.write_text(text[: text.index('[arms."notes"]' if lost == "all" else '[arms."zoo"]')])
    done = space.check()
    codes = ["floors-deleted"] if lost == "floors" else ["floors-deleted"] * 2 + ["policy-vacuous"]
    assert (done.code, done.codes) == (1, codes)
    assert "[retired]" in done.verdict["reasons"][0]["mend"]
    if lost == "floors":
        space.policy(retired={"zoo": "nobody asks it"})
        assert space.check().codes == []
        # An arm that is named, or another floors file beside it, is of some arms alone.
        space.policy()
        assert space.check("notes").codes == []
        shutil.copy(space.floors, space.floors.with_name("some.toml"))
        assert space.check("--floors", "policy/some.toml").codes == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"hit@1" = 3', '"hit@1" = 3.0', "misses_allowed"),
        ('"hit@1" = 3', '"hit@1" = true', "misses_allowed"),
        ('"mrr" = 0.907407', '"mrr" = nan', "finite"),
        ('"mrr" = 0.907407', '"mrr" = -inf', "finite"),
        ('"mrr" = 0.907407', '"mrr" = "0.9"', "floors"),
        ("floors = {", "floor = {", "did you mean 'floors'"),
        ("misses_allowed = {", "misses_allow = {", "did you mean 'misses_allowed'"),
        ("n = 27", "n = 27\nmargins = 3", "did you mean 'margin'"),
        ("n = 27", "n = 27\nmargin = -1", "margin"),
        ("n = 27", "n = 27\nmargin = 2.5", "margin"),
        ("n = 27", 'n = 27\nmargin = "guessed"', "margin"),
        ("n = 27", "n = 27\nmargin = 1000000001", "margin"),
        pytest.param("n = 27", f"n = 27\nmargin = 0x{'f' * 400}", "margin", id="a huge margin"),
        ("n = 27", "n = 27.0", "n"),
        ("n = 27", "n = 0", "greater than or equal to 1"),
        ("n = 27\n", "", "arms.notes.n: it is missing"),
        ("n = 27", 'n = 27\ncorpus = "open"', "'pinned' or 'drifts'"),
        ("n = 27", "n = 27\ndrift = 0.51", "less than or equal to 0.5"),
        ("n = 27", "n = 27\ndrift = 0", "greater than 0"),
        ("n = 27", "n = 27\ntracked = true", "tracked"),
        ('runs = ["', 'runs = ["../', "runs"),
        ('"floors-v2"', '"floors-v2"\nrequire = ["HEAD"]', "require"),
        ('"floors-v2"', '"floors-v2"\nrequired = ["head"]', "did you mean 'require'"),
        ('"floors-v2"', '"floors-v2"\nmin_gate = "99.0"', "needs eval-gate 99.0 or newer"),
        ('"floors-v2"', '"floors-v2"\nmin_gate = "0.1.0.1"', "needs eval-gate 0.1.0.1 or newer"),
        ('"floors-v2"', '"floors-v2"\nmin_gate = "newest"', "min_gate"),
        ('"floors-v2"', '"floors-v2"\nmin_gate = "1.0"\nfuture = true', "needs eval-gate 1.0 or newer"),
        ('"floors-v2"', '"floors-v3"', "floors-v2"),
        ('"floors-v2"', '"floors-v1"', "the first form of floors"),
        ('"floors-v2"', '"floors-v2"\n[retired]\nnotes = "gone"', "has floors, too"),
    ],
)
def test_a_floors_file_that_does_not_say_what_it_seems_to_is_a_fault(
    space: Space, old: str, new: str, said: str
) -> None:
    """K2, K3: a misspelt key is no key, no number is a text, and an old gate says that it is one."""
    in_floors(old, new)(space)
    done = space.check()
    assert (done.code, done.out, said in done.err) == (2, "", True), done.err


@pytest.mark.parametrize("version", ["0.1.0", "0.1", "0", "0.0.9", "0.1.0.0"])
def test_floors_of_an_older_gate_are_read(space: Space, version: str) -> None:
    in_floors('"floors-v2"', f'"floors-v2"\nmin_gate = "{version}"')(space)
    assert space.check().code == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[arms.note]\np95_ms = 300", "did you mean 'notes'"),
        ("[arms.notes]\np95 = 300", "did you mean 'p95_ms'"),
        ('[arms.notes]\np95_ms = "300"', "should be a valid number"),
        ("[arms.notes]\np95_ms = 0", "greater than 0"),
        ("[arms.notes]\np95_ms = nan", "finite"),
        ("[arms.notes]\np95_ms = inf", "finite"),
        ("[arms.notes]\np95_ms = true", "should be a valid number"),
        ("[arms.notes]\nmax_net_lost = 1", "max_net_lost"),
        ("[arms.notes]\nmax_drop_everywhere = -0.1", "greater than or equal to 0"),
        ("[arms.notes]\nmax_drop_everywhere = 101", "less than or equal to 100"),
        ("[arms.notes]\nmax_drop_everywhere = nan", "finite"),
        ('[arms.notes.max_drop]\n"recal@10" = 2', "did you mean 'recall@10'"),
        ('[arms.notes.max_drop]\n"recall@10" = -1', "greater than or equal to 0"),
        ('[arms.notes.max_drop]\n"recall@10" = nan', "finite"),
    ],
)
def test_a_budget_with_a_fault_is_a_fault_of_the_file(space: Space, text: str, said: str) -> None:
    """A4: a budget that does not say what it seems to say is no budget."""
    space.budgets.write_text(f'schema = "budgets-v2"\n{text}\n')
    done = space.check()
    assert (done.code, done.out, said in done.err) == (2, "", True), done.err
