"""The bar held against that of another branch: what is looser needs a new reason, and a run stays what it was."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from policy_support import floors_table, resealed

from eval_core.policy.arm import ArmPolicy
from eval_core.policy.evidence import Line
from eval_core.policy.models import ArmFloors, Budget
from eval_core.reports.provenance.configuration import Configured
from eval_gate.floors.difference import changes

if TYPE_CHECKING:
    from conftest import Space

Lines = list[Line]


# Two policies of an arm


@pytest.fixture(scope="module")
def lines(gated: Path, make: type[Space]) -> Lines:
    """Two runs of 27 queries, 26 of which have their document first and one second."""
    return make(gated).lines()


def arm(lines: Lines, budget: Budget | None = None, **choices: Any) -> ArmPolicy:
    """The policy that these runs and choices give."""
    floors = ArmFloors.model_validate_json(json.dumps(floors_table(lines, **choices)))
    return ArmPolicy("notes", floors, budget or Budget(), tuple(lines))


def ranked(lines: Lines, ranks: dict[int, int | None]) -> Lines:
    """The same runs with other ranks of some queries, and other ids."""

    def change(table: Any) -> None:
        table["run_id"] += "b"
        table["started"] = table["started"].replace("2026", "2027")
        for number, rank in ranks.items():
            table["entries"][number - 1]["judged"][0][2] = rank
            table["entries"][number - 1]["retrieved"] = rank

    return [resealed(line, change) for line in lines]


def moved(lines: Lines, **fields: Any) -> Lines:
    return [resealed(line, lambda table: table.update(fields)) for line in lines]


Table = tuple[dict[str, Any], dict[str, Any], list[tuple[str, str | None, str | None, bool]]]

CHOICES: list[Table] = [
    ({}, {}, []),
    ({}, {"margin": 3}, [("margin", "2", "3", True)]),
    ({"margin": 3}, {}, [("margin", "3", "2", False)]),
    ({}, {"by_category": True}, [("by_category", "False", "True", False)]),
    ({"by_category": True}, {}, [("by_category", "True", "False", True)]),
    ({}, {"corpus": "drifts", "drift": 0.1}, [("corpus", "pinned", "drifts", True)]),
    ({"corpus": "drifts", "drift": 0.1}, {}, [("corpus", "drifts", "pinned", False)]),
    (
        {"corpus": "drifts", "drift": 0.1},
        {"corpus": "drifts", "drift": 0.2},
        [("drift", "0.1", "0.2", True)],
    ),
    ({}, {"left_out": ["mrr"]}, [("mrr", "0.9074", None, True)]),
    ({"left_out": ["mrr"]}, {}, [("mrr", None, "0.9074", False)]),
    ({}, {"budget": Budget(p95_ms=301)}, [("p95_ms", "300", "301", True)]),
    ({}, {"budget": Budget(p95_ms=299)}, [("p95_ms", "300", "299", False)]),
    ({"budget": Budget(p95_ms=100)}, {}, [("p95_ms", "100", "300", True)]),
    ({}, {"budget": Budget(max_drop={"recall@10": 3})}, [("max_drop", "2", "3", True)]),
    ({"budget": Budget(max_drop={"recall@10": 1})}, {}, [("max_drop", "1", "2", True)]),
    ({"budget": Budget(max_drop={"mrr": 5})}, {}, [("max_drop", "5", None, True)]),
    ({}, {"budget": Budget(max_drop={"mrr": 5})}, [("max_drop", None, "5", False)]),
    ({}, {"budget": Budget(max_drop_everywhere=2)}, [("max_drop_everywhere", None, "2", False)]),
    ({"budget": Budget(max_drop_everywhere=2)}, {}, [("max_drop_everywhere", "2", None, True)]),
]


@pytest.mark.parametrize(("before", "after", "expected"), CHOICES)
def test_a_choice_that_lets_more_pass_is_looser(
    lines: Lines,
    before: dict[str, Any],
    after: dict[str, Any],
    expected: list[tuple[str, str | None, str | None, bool]],
) -> None:
    """A4: read from the marks of the fields; one change each, with no second one for the numbers that follow."""
    found = changes(arm(lines, **before), arm(lines, **after))
    assert [(c.key, c.before, c.after, c.looser) for c in found] == expected


def test_every_field_that_people_choose_is_in_that_table() -> None:
    """A new choice cannot be forgotten: its mark puts it here."""
    marked = {
        name
        for model in (ArmFloors, Budget)
        for name, field in model.model_fields.items()
        if isinstance(field.json_schema_extra, dict) and field.json_schema_extra.get("looser")
    }
    looser = {change[0] for _, _, expected in CHOICES for change in expected if change[3]}
    assert marked == looser - {"mrr"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        # q27 comes first: hit@1 from 1 miss to none, the floor from 3 to 2; recall@10 as it was.
        (
            lambda lines: ranked(lines, {27: 1}),
            [("floors", "hit@1", False), ("floors", "mrr", False), ("floors", "ndcg@10", False)],
        ),
        (
            lambda lines: ranked(lines, {1: 2}),
            [("floors", "hit@1", True), ("floors", "mrr", True), ("floors", "ndcg@10", True)],
        ),
        # A drop that is as wide as the runs differ: 1/27 between them, and one query.
        (lambda lines: [lines[0], *ranked(lines, {27: None})[1:]], [("floors", "recall@10", True)]),
        (lambda lines: moved(lines, started="2026-01-01T00:00:00.000Z"), [("floors", None, True)]),
        (lambda lines: moved(lines, repetitions=30), [("p95_ms", None, True)]),
    ],
)
def test_numbers_are_looser_where_the_bar_is_lower(
    lines: Lines, change: Callable[[Lines], Lines], expected: list[tuple[str, str | None, bool]]
) -> None:
    """A4: of the new runs under the old choices; and runs that are older than those that stand."""
    found = {(c.key, c.measure, c.looser) for c in changes(arm(lines), arm(change(lines)))}
    assert found >= set(expected)
    if not any(looser for *_, looser in expected):
        assert not any(looser for *_, looser in found)


def test_fewer_scored_queries_and_a_lost_one_that_must_pass_are_looser(lines: Lines) -> None:
    """K3: the task is the same, and a query is asked no more; K1: q01 falls from rank 1 to 5 of a graded headline."""

    def unscorable(table: Any) -> None:
        table["entries"][3].update(outcome="unscorable", retrieved=0)
        table["entries"][3]["judged"][0][2] = None
        table["health"].update(scored=26, unscorable=1)

    found = changes(arm(lines), arm([resealed(line, unscorable) for line in lines]))
    assert ("floors", "n = 27", "n = 26") in [(c.key, c.before, c.after) for c in found if c.looser]

    def marked(table: Any) -> None:
        table["set"]["headline"] = "mrr"
        table["entries"][0]["must_pass"] = True

    old = [resealed(line, marked) for line in lines]
    found = changes(arm(old), arm(ranked(old, {1: 5})))
    assert "q01 must pass" in [c.before for c in found if c.looser]


def test_into_the_class_that_gates_nothing_is_looser_and_out_of_it_is(lines: Lines) -> None:
    inside = moved(lines, **{"class": "ci"})
    assert [(c.key, c.looser) for c in changes(arm(lines), arm(inside))] == [("class", False)]
    assert [(c.key, c.looser) for c in changes(arm(inside), arm(lines))] == [("class", True)]


def test_an_old_reason_covers_no_new_choice(lines: Lines) -> None:
    """Issue 9: nor does the same sentence with another space, or one under another key."""
    before = arm(lines, margin=3, reasons={"margin": "it flips", "mrr": "x1"})
    for reasons, expected in (
        ({"margin": "it flips", "mrr": "new"}, None),
        ({"margin": "it  flips "}, None),
        ({"margin": "…"}, None),
        ({"margin": "it flips more"}, "it flips more"),
    ):
        (change,) = changes(before, arm(lines, margin=4, reasons=reasons))
        assert (change.key, change.reason) == ("margin", expected)


# Against a branch

RULES = 'schema = "promotion-rules-v1"\n[[rule]]\nover = "notes"\nconditions = [{{ check = "stable", {} }}]\n'


@pytest.fixture
def kept(space: Space) -> Space:
    """The workspace in git, as it passes, on a branch that began at main."""
    text = (space.root / "eval.toml").read_text()
    shutil.copy(Path(__file__).parents[2] / "policy" / "promotion.toml", space.root / "policy")
    (space.root / "eval.toml").write_text(text)
    space.commit()
    space.git("checkout", "-q", "-b", "side")
    return space


def against(space: Space, *arguments: str) -> Any:
    """The verdict against main, and only what the target gives."""
    return space.check("--target", "main", *arguments)


def invented(space: Space) -> None:
    """Two evidence lines of a retriever that finds less, with floors to match."""
    space.policy({"notes": ranked(space.lines(), {1: None, 2: None})})


def rewritten(space: Space) -> None:
    """Ranks of an old line, with every digest redone."""
    space.cite(lambda table: table["entries"][0]["judged"][0].__setitem__(2, None))


def old_reason(space: Space) -> None:
    """A margin whose reason stood there for something else."""
    space.policy(margin=3, reasons={"margin": "it flips"})
    space.git("checkout", "-q", "main")
    space.commit()
    space.git("checkout", "-q", "-B", "side")
    space.policy(margin=5, reasons={"margin": "it flips"})


def requires_less(space: Space) -> None:
    space.policy(require=["clean"])
    text = space.floors.read_text()
    space.floors.write_text(re.sub(r"(?m)^\[reasons\]\nrequire = .*\n", "", text))


def in_turn(*edits: Callable[[Space], object]) -> Callable[[Space], None]:
    def change(space: Space) -> None:
        for edit in edits:
            edit(space)

    return change


def weaker_rule(space: Space) -> None:
    path = space.root / "policy" / "promotion.toml"
    text = path.read_text()
    assert 'is = "higher"' in text
    path.write_text(text.replace('is = "higher"', 'is = "at-least-equal"'))


def fewer_runs(space: Space) -> None:
    path = space.root / "policy" / "promotion.toml"
    path.write_text(path.read_text().replace('  { check = "stable", runs = 2 },\n', "", 1))


def no_endpoint(space: Space) -> None:
    path = space.root / "policy" / "promotion.toml"
    text = path.read_text()
    path.write_text(text[: text.index("[[endpoint]]")])


def no_record(space: Space) -> None:
    """A promotion's record is deleted."""
    record = space.root / "policy" / "promotions" / "0001-notes.json"
    record.parent.mkdir()
    record.write_text("{}")
    space.git("checkout", "-q", "main")
    space.commit()
    space.git("checkout", "-q", "-B", "side")
    record.unlink()


def retired_in_silence(space: Space) -> None:
    deleted(space)
    retire(space, "…")


def no_rules(space: Space) -> None:
    (space.root / "policy" / "promotion.toml").unlink()


def renamed(space: Space) -> None:
    space.floors.write_text(space.floors.read_text().replace('"notes"', '"memos"'))
    space.evidence.rename(space.evidence.with_name("memos.jsonl"))


def deleted(space: Space) -> None:
    """The whole arm: its floors and its evidence."""
    space.twin("zoo")
    text = space.floors.read_text()
    start, end = text.index('[arms."notes"]'), text.index('[arms."zoo"]')
    space.floors.write_text(text[:start] + text[end:])
    space.evidence.unlink()


def owned(space: Space) -> None:
    space.edit(space.root / "eval.toml", 'backend = "jsonl"', 'backend = "jsonl"\nlane = "owner"')


def another_headline(space: Space) -> None:
    """In the set and in the evidence."""
    space.policy({"notes": [resealed(x, lambda t: t["set"].update(headline="mrr")) for x in space.lines()]})


def left_out(space: Space) -> None:
    space.policy(left_out=["mrr"])


def reordered(space: Space) -> None:
    text = space.floors.read_text()
    first, second = (line.run_id for line in space.lines())
    space.floors.write_text(text.replace(f'"{first}", "{second}"', f'"{second}", "{first}"'))


def drifting(space: Space) -> None:
    space.policy(corpus="drifts", drift=0.5, reasons={"corpus": "it follows a branch"})


def a_service(space: Space) -> None:
    """Its options give an address, and so the usual budget is lifted."""
    old = 'backend = "jsonl"'
    space.edit(space.root / "eval.toml", old, 'backend = "mine"\noptions.url = "http://x"')


@pytest.mark.parametrize("budget", ["", "[arms.notes]\np95_ms = 300\n"])
def test_round2_m8_latency_of_which_nothing_is_required_is_said(space: Space, budget: str) -> None:
    """M8: a lane takes the usual budget away, and no column without a bar is to look like one that held."""
    space.budgets.write_text('schema = "budgets-v2"\n' + budget)
    said = "no latency is required of it"
    assert said not in str(space.check().verdict["arms"][0]["warnings"])
    space.edit(space.root / "eval.toml", '"jsonl"', '"jsonl"\nlane = "owner"')
    assert space.core("measure", "-q", "notes").code == 0
    assert (said in str(space.check().verdict["arms"][0]["warnings"])) == (not budget)


@pytest.mark.parametrize("backend", ["jsonl", "mine"])
def test_an_address_in_a_command_line_lifts_no_budget(space: Space, backend: str) -> None:
    """M8: the line protocol answers here, whatever its command says."""
    from eval_gate.check import without_latency

    table = {"notes": {"backend": backend, "options": {"command": ["python", "http://x"]}}}
    plain = without_latency(Configured(space.root / "eval.toml", table))
    assert ("notes" in plain) == (backend == "mine")


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (invented, "bar-loosened"),
        (rewritten, "evidence-rewritten"),
        (old_reason, "bar-loosened"),
        (requires_less, "bar-loosened"),
        (weaker_rule, "promotion-rules-differ"),
        (fewer_runs, "promotion-rules-differ"),
        (no_rules, "promotion-rules-differ"),
        (no_endpoint, "promotion-rules-differ"),
        (no_record, "bar-loosened"),
        (retired_in_silence, "floors-deleted"),
        (renamed, "floors-deleted"),
        (deleted, "floors-deleted"),
        (owned, "bar-loosened"),
        (another_headline, "evidence-rewritten"),
        (left_out, "bar-loosened"),
        (reordered, "runs-misordered"),
        (drifting, "corpus-pinned"),
        (a_service, "bar-loosened"),
    ],
)
def test_round2_b13_an_edit_that_lets_more_pass_fails_against_the_target(
    kept: Space, edit: Callable[[Space], None], code: str
) -> None:
    """B13 and issue 9: each edit of policy/ by hand ends in exit 1, and says which kind it is."""
    done = against(kept)
    assert "bar-loosened" not in done.codes and done.verdict["bar"] == []
    edit(kept)
    done = against(kept)
    assert (done.code, code in done.codes) == (1, True), (done.codes, done.err)


@pytest.mark.parametrize(
    ("edit", "key"),
    [
        (lambda space: space.policy(margin=3, reasons={"margin": "it flips"}), "margin"),
        (lambda space: space.policy(left_out=["mrr"], reasons={"mrr": "one is right"}), "mrr"),
        (
            lambda space: space.policy(
                {"notes": ranked(space.lines(), {1: 2})}, reasons={"floors": "q01 is disputed"}
            ),
            "floors",
        ),
        (lambda space: space.policy(require=["clean"], why={"require": "no git here"}), "require"),
        (
            in_turn(weaker_rule, lambda space: space.policy(why={"promotion": "one arm is left"})),
            "promotion",
        ),
        (in_turn(owned, lambda space: space.policy(reasons={"lane": "it costs money"})), "lane"),
        (in_turn(deleted, lambda space: retire(space)), "retired"),
    ],
)
def test_with_a_new_reason_it_is_shown_and_passes(
    kept: Space, edit: Callable[[Space], object], key: str
) -> None:
    """A4: what is meant is said, and stands in the verdict."""
    edit(kept)
    done = against(kept)
    assert not {"bar-loosened", "promotion-rules-differ", "floors-deleted"} & set(done.codes), done.out
    shown = {change["key"]: change for change in done.verdict["bar"] if change["looser"]}
    assert shown[key]["reason"]


def retire(space: Space, why: str = "it is gone") -> None:
    text = space.floors.read_text()
    head, _, rest = text.partition("\n[arms")
    space.floors.write_text(f'{head}\n[retired]\nnotes = "{why}"\n\n[arms{rest}')


def test_a_new_waiver_is_shown_with_its_own_reason(kept: Space) -> None:
    """S4: what it lets pass stands in the verdict."""
    text = f'[[waiver]]\narm = "notes"\nfingerprint = "{"a" * 64}"\nreason = "an old index"\n'
    (kept.root / "policy" / "waivers.toml").write_text(text)
    (change,) = against(kept).verdict["bar"]
    assert (change["key"], change["looser"], change["reason"]) == ("waivers", True, "an old index")


def test_round2_b16_a_branch_that_changed_nothing_is_not_blamed_for_the_targets_moves(kept: Space) -> None:
    """B16: main tightened its floors, the branch adds a file; that main moved is the sentence."""
    kept.git("checkout", "-q", "main")
    kept.policy(margin=1)
    kept.commit("tighter")
    kept.git("checkout", "-q", "side")
    (kept.root / "README").write_text("hello")
    kept.commit("a file")
    done = against(kept)
    assert not {"bar-loosened", "floors-deleted"} & set(done.codes)
    assert done.verdict["bar"] == []
    assert any("changes nothing of the bar; main has moved" in note for note in done.verdict["notes"])
    # What it does loosen is held against both.
    kept.policy(margin=3)
    assert "bar-loosened" in against(kept).codes


def test_a_branch_that_tightens_less_than_main_did_loosens_nothing(kept: Space) -> None:
    """B16: it began at a margin of 3 and takes 2; main went to 1 meanwhile."""
    kept.git("checkout", "-q", "main")
    kept.policy(margin=3, reasons={"margin": "it flips"})
    kept.commit("wider")
    kept.git("branch", "-f", "side")
    kept.policy(margin=1)
    kept.commit("tighter")
    kept.git("checkout", "-q", "side")
    kept.policy(margin=2)
    assert "bar-loosened" not in against(kept).codes


@pytest.mark.parametrize("absent", ["the policy", "the arm"])
def test_what_the_merge_base_has_not_is_held_against_the_target_alone(kept: Space, absent: str) -> None:
    """A4: a branch that began before the policy did, or before the arm, hides nothing that it loosens."""
    kept.git("checkout", "-q", "main")
    sound = kept.floors.read_text()
    if absent == "the arm":
        head, _, _ = sound.partition("[arms.")
        kept.floors.write_text(head + "[arms]\n")
        kept.git("rm", "-q", "--cached", "policy/evidence/notes.jsonl")
    else:
        kept.git("rm", "-rq", "--cached", "policy")
        kept.floors.unlink()
    kept.git("commit", "-qam", "before")
    kept.git("branch", "-f", "side")
    kept.floors.write_text(sound)
    kept.commit("the bar")
    kept.git("symbolic-ref", "HEAD", "refs/heads/side")
    kept.policy(margin=9)
    kept.commit("another bar")
    done = against(kept)
    assert "bar-loosened" in done.codes, done.out
    assert not any("changes nothing" in note for note in done.verdict["notes"])


def broken_on_main(space: Space, how: str) -> str:
    """The evidence of `notes` is gone, or does not read, at main; what it was."""
    sound = space.evidence.read_text()
    space.git("checkout", "-q", "main")
    space.evidence.unlink() if how == "gone" else space.evidence.write_text("{")
    space.commit("broken")
    return sound


@pytest.mark.parametrize("how", ["gone", "malformed"])
def test_an_arm_whose_evidence_the_target_lost_is_not_new(kept: Space, how: str) -> None:
    """A4: nothing can be held against it there, so that whoever restores it says so."""
    sound = broken_on_main(kept, how)
    kept.git("branch", "-f", "side")
    kept.git("checkout", "-q", "side")
    kept.evidence.write_text(sound)
    done = against(kept)
    assert (done.code, "bar-loosened" in done.codes) == (1, True)
    assert "n = 27, whose evidence cannot be read → n = 27" in done.out
    kept.policy(reasons={"floors": "its evidence is restored"})
    done = against(kept)
    assert "bar-loosened" not in done.codes
    assert [change["reason"] for change in done.verdict["bar"]] == ["its evidence is restored"]


@pytest.mark.parametrize("how", ["gone", "malformed"])
def test_what_the_target_lost_is_held_against_the_merge_base(kept: Space, how: str) -> None:
    """A4: a branch that began before is neither blamed for it, nor lets more pass in its shadow."""
    broken_on_main(kept, how)
    kept.git("checkout", "-q", "side")
    done = against(kept)
    assert ("bar-loosened" in done.codes, done.verdict["bar"]) == (False, [])
    kept.policy(margin=9)
    done = against(kept)
    loosened = [reason for reason in done.verdict["reasons"] if reason["code"] == "bar-loosened"]
    assert [reason["key"] for reason in loosened] == ["margin"]


def test_a_reason_is_new_to_the_merge_base_too(kept: Space) -> None:
    """B13, B16: main took a margin back, and its reason with it; the branch began before, and widens under that one."""
    kept.git("checkout", "-q", "main")
    kept.policy(margin=3, reasons={"margin": "it flips"})
    kept.commit("wider")
    kept.git("branch", "-f", "side")
    kept.policy()
    kept.commit("as it was")
    kept.git("checkout", "-q", "side")
    kept.policy(margin=5, reasons={"margin": "it flips"})
    assert "bar-loosened" in against(kept).codes
    kept.policy(margin=5, reasons={"margin": "it flips more"})
    assert "bar-loosened" not in against(kept).codes


def test_a_run_of_the_merge_base_is_not_rewritten_either(kept: Space) -> None:
    """B13: main stands on later runs by now, and no longer holds those that the branch says otherwise."""
    kept.git("checkout", "-q", "main")
    later = [
        resealed(line, lambda table: table.update(run_id=table["run_id"] + "x")) for line in kept.lines()
    ]
    kept.policy({"notes": later})
    kept.commit("measured again")
    kept.git("checkout", "-q", "side")
    assert "evidence-rewritten" not in against(kept).codes
    rewritten(kept)
    assert "evidence-rewritten" in against(kept).codes


def test_the_requirements_of_the_target_hold_too(kept: Space) -> None:
    """POLICY: the union of both, with a reason for fewer, too."""
    kept.git("checkout", "-q", "main")
    kept.policy(require=["head", "clean", "provenance", "every-arm"])
    kept.commit("every arm")
    kept.git("checkout", "-q", "-B", "side")
    kept.policy(require=["clean"], why={"require": "later"})
    shutil.copy(kept.report, kept.report.with_name("other.json"))
    assert "arm-not-gated" in against(kept).codes


def test_a_policy_that_the_target_has_none_of_is_all_new(kept: Space) -> None:
    """The first floors of a repository come in a change too, and so does the second form of a policy."""
    for text in (None, 'schema = "floors-v1"\n'):
        sound = kept.floors.read_text()
        kept.git("rm", "-rq", "--cached", "policy/floors.toml")
        if text is not None:
            kept.floors.write_text(text)
            kept.git("add", "-f", "policy/floors.toml")
        kept.git("commit", "-q", "-m", "without")
        kept.floors.write_text(sound)
        done = kept.check("--target", "HEAD")
        assert [(change["key"], change["looser"]) for change in done.verdict["bar"]] == [("policy", False)]
        assert "bar-loosened" not in done.codes
        kept.commit()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("floors.toml", 'schema = "floors-v2"\nx = 1\n'),
        ("budgets.toml", "[arms"),
        ("promotion.toml", RULES.format("is = ['higher']")),
        ("promotion.toml", RULES.format("runs = inf")),
    ],
)
def test_a_target_whose_policy_does_not_read_is_named(kept: Space, path: str, text: str) -> None:
    """A4: nothing is held against it, and that is no pass."""
    file = kept.root / "policy" / path
    sound = file.read_bytes() if file.exists() else None
    file.write_text(text)
    kept.commit()
    file.unlink() if sound is None else file.write_bytes(sound)
    done = kept.check("--target", "HEAD")
    assert (done.code, done.out, f"HEAD:{path}" in done.err.replace("policy/", "")) == (2, "", True), done.err


def test_a_target_that_looks_like_an_option_is_wrong_usage(kept: Space) -> None:
    done = kept.check("--target", "--output=x")
    assert (done.code, "begins with a dash" in done.err) == (2, True), done.err


@pytest.mark.parametrize("wrong", ["runs = 'two'", "runs = inf", "is = ['higher']"])
def test_promotion_rules_of_wrong_types_are_wrong_usage(kept: Space, wrong: str) -> None:
    """A4: with a target or without one, whether anything was promoted or not."""
    (kept.root / "policy" / "promotion.toml").write_text(RULES.format(wrong))
    for arguments in ((), ("--target", "main")):
        done = kept.check(*arguments)
        assert (done.code, done.out, "promotion.toml" in done.err) == (2, "", True), done.err


@pytest.mark.parametrize("name", ["", "floors.toml", "budgets.toml", "evidence", "evidence/notes.jsonl"])
def test_a_policy_that_lies_elsewhere_is_refused_where_a_branch_is_held(kept: Space, name: str) -> None:
    """A4: a link in the place of the policy would let its files change where nothing is held against them."""
    kept.budgets.write_text('schema = "budgets-v2"\n')
    path = kept.root / "policy" / name
    path.rename(kept.root / "elsewhere")
    path.symlink_to(kept.root / "elsewhere")
    kept.commit()
    done = against(kept)
    assert (done.code, "policy-linked" in done.codes) == (1, True), done.out
    assert "policy-linked" not in kept.check().codes


def test_a_target_that_is_nowhere_could_not_be_read(kept: Space) -> None:
    """A4: no such commit, or no repository at all."""
    done = kept.check("--target", "nowhere")
    assert (done.code, done.out, "nowhere" in done.err) == (3, "", True)
    shutil.rmtree(kept.root / ".git")
    done = kept.check("--target", "HEAD")
    assert (done.code, done.out, "Traceback" in done.err) == (3, "", False)


def test_round2_b16_a_shallow_clone_is_told_which_refspec_to_fetch(kept: Space, make: type[Space]) -> None:
    """B16: after `clone --depth 1` of a branch no plain fetch brings origin/main; followed, the mend does."""
    kept.commit()
    place = kept.root.parent / "clone"
    kept.git("clone", "-q", "--depth", "1", "--branch", "side", f"file://{kept.root}", str(place))
    clone = make(place)
    shutil.copytree(kept.root / ".eval", place / ".eval")
    done = clone.check("--target", "origin/main")
    assert done.code == 3
    mend = next(line.strip() for line in done.err.splitlines() if line.strip().startswith("git fetch"))
    assert mend == "git fetch --unshallow origin +refs/heads/main:refs/remotes/origin/main"
    clone.git(*mend.split()[1:])
    assert clone.check("--target", "origin/main").code != 3


@pytest.mark.parametrize("arrange", ["folder", "worktree"])
def test_the_policy_is_found_in_the_commit_wherever_it_lies(
    kept: Space, make: type[Space], arrange: str
) -> None:
    """A4: below the top of its repository, and in a linked work tree."""
    if arrange == "folder":
        shutil.rmtree(kept.root / ".git")
        top = kept.root.parent / "top"
        top.mkdir()
        shutil.move(kept.root, top / "evals")
        make(top).commit()
        place = top / "evals"
    else:
        kept.git("worktree", "add", "-q", "-b", "other", "../other")
        place = kept.root.parent / "other"
        shutil.copytree(kept.root / ".eval", place / ".eval")
    there = make(place)
    assert there.check("--target", "HEAD").verdict["bar"] == []
    there.budgets.write_text('schema = "budgets-v2"\n[arms.notes]\np95_ms = 200\n')
    assert [c["key"] for c in there.check("--target", "HEAD").verdict["bar"]] == ["p95_ms"]


@pytest.mark.parametrize("revision", ["--output=x", "HEAD:policy", "a b", "\x1b[31m"])
def test_a_target_is_a_revision_and_never_an_option_of_git(kept: Space, revision: str) -> None:
    done = kept.check("--target", revision)
    assert (done.code in (2, 3), done.out) == (True, ""), done.err
    assert "\x1b" not in done.err
    assert not (kept.root / "x").exists()
