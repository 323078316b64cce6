"""The bar's own diff: what a change does to the bar that it is graded by, told against another commit."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eval_core.reports.keys import TASK_PARTS
from eval_gate.floors.difference import changes
from eval_gate.policy import ArmFloors, Budget, Budgets, CategoryFloors, Floor, Floors

if TYPE_CHECKING:
    from conftest import Space


# ------------------------------------------------------------------------------------------ every kind of change

TASK: dict[str, Any] = {**dict.fromkeys(TASK_PARTS, "none"), "cutoffs": [1, 10]}


def arm(**other: Any) -> ArmFloors:
    """Floors of 50 queries, two of which may be missed."""
    usual: dict[str, Any] = {
        "n": 50,
        "margin": 2,
        "provisional": True,
        "headline": "hit@1",
        "task": TASK,
        "metrics": {"hit@1": Floor(max_misses=10), "mrr": Floor(floor=0.75)},
        "evidence": (),
    }
    return ArmFloors(**usual | other)


def category(misses: int, n: int = 20) -> dict[str, CategoryFloors]:
    return {"lexical": CategoryFloors(n=n, metrics={"hit@1": Floor(max_misses=misses)})}


def drifting(low: int, high: int) -> dict[str, Any]:
    return {"corpus": "drifts", "documents": (low, high)}


Change = tuple[str | None, str, str | None, str | None, bool]


def told(
    before: ArmFloors | None, after: ArmFloors | None, budgets: tuple[Budget | None, Budget | None]
) -> list[Change]:
    """What differs between two policies of one arm."""
    floors = [Floors(schema_="floors-v1", arms={"notes": one} if one else {}) for one in (before, after)]
    held = [Budgets(schema_="budgets-v1", arms={"notes": one} if one else {}) for one in budgets]
    return [
        (change.arm, change.what, change.before, change.after, change.looser)
        for change in changes((floors[0], held[0]), (floors[1], held[1]))
    ]


NONE = (None, None)
P95, DROP, NET = Budget(p95_ms=300), Budget(max_drop={"recall@10": 1, "mrr": 5}), Budget(max_net_lost=1)


@pytest.mark.parametrize(
    ("before", "after", "budgets", "expected"),
    [
        (arm(), arm(), NONE, []),
        # What a floor stands on, and why, is no part of the bar.
        (arm(), arm(provisional=False, reason="r"), NONE, []),
        (None, arm(), NONE, [("floors", None, "n = 50", False), ("max_net_lost", None, "2", False)]),
        (arm(), None, NONE, [("floors", "n = 50", None, True), ("max_net_lost", "2", None, True)]),
        (
            arm(),
            arm(metrics={"hit@1": Floor(max_misses=11), "mrr": Floor(floor=0.75)}),
            NONE,
            [("floor of hit@1", "0.8000", "0.7800", True)],
        ),
        (
            arm(),
            arm(metrics={"hit@1": Floor(max_misses=9), "mrr": Floor(floor=0.75)}),
            NONE,
            [("floor of hit@1", "0.8000", "0.8200", False)],
        ),
        (
            arm(),
            arm(metrics={"hit@1": Floor(max_misses=10), "mrr": Floor(floor=0.7499)}),
            NONE,
            [("floor of mrr", "0.7500", "0.7499", True)],
        ),
        (
            arm(),
            arm(metrics={"hit@1": Floor(max_misses=10)}),
            NONE,
            [("floor of mrr", "0.7500", None, True)],
        ),
        (
            arm(metrics={"hit@1": Floor(max_misses=10)}),
            arm(),
            NONE,
            [("floor of mrr", None, "0.7500", False)],
        ),
        # As many misses of fewer queries are a lower floor, and of more a higher one.
        (arm(), arm(n=40), NONE, [("n", "50", "40", True), ("floor of hit@1", "0.8000", "0.7500", True)]),
        (arm(), arm(n=100), NONE, [("n", "50", "100", False), ("floor of hit@1", "0.8000", "0.9000", False)]),
        (arm(), arm(margin=3), NONE, [("margin", "2", "3", True), ("max_net_lost", "2", "3", True)]),
        (arm(), arm(margin=1), NONE, [("margin", "2", "1", False), ("max_net_lost", "2", "1", False)]),
        (arm(), arm(tracked=True), NONE, [("tracked", "False", "True", True)]),
        (arm(tracked=True), arm(), NONE, [("tracked", "True", "False", False)]),
        (arm(), arm(**drifting(36, 44)), NONE, [("corpus", "pinned", "drifts", True)]),
        (arm(**drifting(36, 44)), arm(), NONE, [("corpus", "drifts", "pinned", False)]),
        (
            arm(**drifting(36, 44)),
            arm(**drifting(36, 45)),
            NONE,
            [("documents", "(36, 44)", "(36, 45)", True)],
        ),
        (
            arm(**drifting(36, 44)),
            arm(**drifting(37, 44)),
            NONE,
            [("documents", "(36, 44)", "(37, 44)", False)],
        ),
        (
            arm(),
            arm(task={**TASK, "limit": 20, "corpus": "x"}),
            NONE,
            [("task", None, "corpus, limit changed", False)],
        ),
        (
            arm(categories=category(2)),
            arm(categories=category(3)),
            NONE,
            [("floor of hit@1 of lexical", "0.9000", "0.8500", True)],
        ),
        (
            arm(categories=category(2)),
            arm(categories=category(2, n=40)),
            NONE,
            [("floor of hit@1 of lexical", "0.9000", "0.9500", False)],
        ),
        (arm(), arm(categories=category(2)), NONE, [("floor of hit@1 of lexical", None, "0.9000", False)]),
        (arm(categories=category(2)), arm(), NONE, [("floor of hit@1 of lexical", "0.9000", None, True)]),
        (arm(), arm(), (None, P95), [("p95_ms", None, "300.0", False)]),
        (arm(), arm(), (P95, None), [("p95_ms", "300.0", None, True)]),
        (arm(), arm(), (P95, Budget(p95_ms=301)), [("p95_ms", "300.0", "301.0", True)]),
        (arm(), arm(), (P95, Budget(p95_ms=299)), [("p95_ms", "300.0", "299.0", False)]),
        # Naming another drop loosens or tightens the usual one of 2 points of recall@10.
        (
            arm(),
            arm(),
            (None, DROP),
            [("max_drop of recall@10", "2.0", "1.0", False), ("max_drop of mrr", None, "5.0", False)],
        ),
        (
            arm(),
            arm(),
            (DROP, None),
            [("max_drop of recall@10", "1.0", "2.0", True), ("max_drop of mrr", "5.0", None, True)],
        ),
        (arm(), arm(), (None, Budget(max_drop={"recall@10": 2.0})), []),
        (
            arm(),
            arm(),
            (Budget(max_drop_everywhere=2), Budget(max_drop_everywhere=3)),
            [("max_drop_everywhere", "2.0", "3.0", True)],
        ),
        (arm(), arm(), (Budget(max_drop_everywhere=2), None), [("max_drop_everywhere", "2.0", None, True)]),
        (arm(), arm(), (None, NET), [("max_net_lost", "2", "1", False)]),
        (arm(), arm(), (NET, None), [("max_net_lost", "1", "2", True)]),
        # A number in the budget holds whatever the margin is.
        (arm(), arm(margin=3), (NET, NET), [("margin", "2", "3", True)]),
    ],
)
def test_every_change_of_the_bar_is_told_and_what_is_looser_says_so(
    before: ArmFloors | None,
    after: ArmFloors | None,
    budgets: tuple[Budget | None, Budget | None],
    expected: list[tuple[str, str | None, str | None, bool]],
) -> None:
    """A4: a floor lowered in the change that needs it lowered is green, so that it must be told."""
    assert told(before, after, budgets) == [("notes", *change) for change in expected]


def test_requirements_that_come_and_go_are_told() -> None:
    old = Floors(schema_="floors-v1", require=("head", "clean"), arms={"notes": arm()})
    new = Floors(schema_="floors-v1", require=("clean", "every-arm"), arms={"notes": arm()})
    budgets = Budgets(schema_="budgets-v1")
    assert [
        (change.arm, change.what, change.before, change.after, change.looser)
        for change in changes((old, budgets), (new, budgets))
    ] == [(None, "require", "head", None, True), (None, "require", None, "every-arm", False)]


# --------------------------------------------------------------------------------------------- against a commit


@pytest.fixture
def kept(space: Space) -> Space:
    """The workspace in git, as it passes."""
    space.commit()
    return space


def lowered(space: Space) -> None:
    """The bar comes down by the tools, with a reason, in the change that needs it."""
    for _ in range(2):
        assert space.measure({**space.losing(4), "q27": 2}).code == 0
    latest = space.evidence()[-4:]
    assert space.gate("floor", "notes", "--write", "--reason", "four are disputed", *latest).code == 0
    assert space.gate("baseline", "--write").code == 0


def test_a_bar_lowered_with_the_regression_that_needs_it_is_green_and_told(kept: Space) -> None:
    """A4: the verdict passes, and names each floor that fell, from what to what, and why."""
    assert kept.check("--target", "HEAD").verdict["bar"] == []
    lowered(kept)
    plain = kept.check()
    assert (plain.code, plain.verdict["target"], plain.verdict["bar"]) == (0, None, [])
    done = kept.check("--target", "HEAD")
    assert done.code == 0
    assert done.verdict["target"] == "HEAD"
    assert [
        (change["arm"], change["what"], change["before"], change["after"], change["looser"], change["reason"])
        for change in done.verdict["bar"]
    ] == [
        ("notes", "floor of hit@1", "0.8889", "0.7407", True, "four are disputed"),
        ("notes", "floor of recall@10", "0.9259", "0.7778", True, "four are disputed"),
        ("notes", "floor of mrr", "0.9074", "0.7593", True, "four are disputed"),
        *[("notes", "baseline", "recall@1 0.9630", "0.8148 and 16 more fell", True, "four are disputed")],
    ]
    kept.commit()
    assert kept.check("--target", "HEAD").verdict["bar"] == []
    assert len(kept.check("--target", "HEAD~1").verdict["bar"]) == 4


def test_a_failing_verdict_tells_the_bar_too(kept: Space) -> None:
    kept.budgets.write_text('schema = "budgets-v1"\n[arms.notes]\np95_ms = 300\n')
    assert kept.measure(kept.losing(6)).code == 0
    done = kept.check("--target", "main")
    assert (done.code, [change["what"] for change in done.verdict["bar"]]) == (1, ["p95_ms"])


def test_a_policy_that_the_target_has_none_of_is_all_new(kept: Space) -> None:
    """A4: the first floors of a repository come in a change too, and so does a policy that was moved away; which of
    the two it is, a person sees."""
    kept.git("rm", "-rq", "--cached", "policy")
    kept.git("commit", "-q", "-m", "without a policy")
    done = kept.check("--target", "HEAD")
    assert done.code == 0
    found = [(change["what"], change["looser"]) for change in done.verdict["bar"]]
    assert found == [("policy", True)]
    assert "new here; HEAD has none at policy" in done.verdict["bar"][0]["after"]


def at_the_top(space: Space) -> Path:
    return space.root


def in_a_folder(space: Space) -> Path:
    """The workspace lies below the top of its repository."""
    top = space.root.parent / "top"
    top.mkdir()
    shutil.rmtree(space.root / ".git")
    shutil.move(space.root, top / "evals")
    outer = type(space)(top)
    outer.commit()
    return top / "evals"


def linked(space: Space) -> Path:
    """The workspace is a linked work tree of its repository."""
    space.git("worktree", "add", "-q", "-b", "side", "../side")
    shutil.copytree(space.root / ".eval", space.root.parent / "side" / ".eval")
    return space.root.parent / "side"


def submodule(space: Space) -> Path:
    """The workspace is a submodule of another repository."""
    outer = type(space)(space.root.parent / "outer")
    outer.root.mkdir()
    outer.commit()
    outer.git("submodule", "add", "-q", str(space.root), "inner")
    shutil.copytree(space.root / ".eval", outer.root / "inner" / ".eval")
    return outer.root / "inner"


@pytest.mark.parametrize("arrange", [at_the_top, in_a_folder, linked, submodule])
@pytest.mark.parametrize("by_path", [False, True])
def test_the_policy_is_found_in_the_commit_wherever_it_lies(
    kept: Space, arrange: Callable[[Space], Path], by_path: bool
) -> None:
    """A4: at the top, in a folder, in a linked work tree and in a submodule; named from here or by its whole path."""
    place = arrange(kept)
    space = type(kept)(place)
    assert space.check("--target", "HEAD").verdict["bar"] == []
    space.budgets.write_text('schema = "budgets-v1"\n[arms.notes]\np95_ms = 300\n')
    where = ("--policy", place / "policy") if by_path else ()
    done = space.check("--target", "HEAD", *where)
    assert [change["what"] for change in done.verdict["bar"]] == ["p95_ms"]


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("floors", "schema = ", "HEAD:policy/floors.toml: cannot be held against the bar here"),
        ("floors", 'schema = "floors-v9"\n', "HEAD:policy/floors.toml: cannot be held against the bar here"),
        ("budgets", "[arms", "HEAD:policy/budgets.toml: cannot be held against the bar here"),
        ("budgets", b"\xff", "HEAD:policy/budgets.toml: cannot be held against the bar here"),
    ],
)
def test_a_target_whose_policy_does_not_read_is_named(
    kept: Space, file: str, text: str | bytes, told: str
) -> None:
    """A4: nothing is held against it, and that is no pass."""
    path: Path = getattr(kept, file)
    sound = path.read_bytes()
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    kept.commit()
    path.write_bytes(sound)
    assert kept.check().code == 0
    done = kept.check("--target", "HEAD")
    assert (done.code, done.out, told in done.err) == (2, "", True), done.err


def test_a_target_that_is_nowhere_could_not_be_read(kept: Space) -> None:
    """A4: no such commit, or no repository at all: the gate could not do what it was asked, and does not pass."""
    done = kept.check("--target", "nowhere")
    assert (done.code, done.out) == (3, "")
    assert "nowhere" in done.err
    shutil.rmtree(kept.root / ".git")
    done = kept.check("--target", "HEAD")
    assert (done.code, done.out, "Traceback" in done.err) == (3, "", False), done.err


def test_a_policy_outside_of_the_repository_has_no_target(kept: Space) -> None:
    shutil.move(kept.root / "policy", kept.root.parent / "policy")
    other = ("--policy", kept.root.parent / "policy")
    assert kept.check(*other).code == 0
    done = kept.check(*other, "--target", "HEAD")
    assert done.code in (2, 3)
    assert done.out == ""


@pytest.mark.parametrize("revision", ["", "--output=x", "HEAD:policy", "a b", "\x1b[31m"])
def test_a_target_is_a_revision_and_never_an_option_of_git(kept: Space, revision: str) -> None:
    done = kept.check("--target", revision)
    assert (done.code in (2, 3), done.out) == (True, ""), done.err
    assert "\x1b" not in done.err
    assert not (kept.root / "x").exists()
