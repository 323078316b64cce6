"""What a policy asks of every report: measured at HEAD, on a clean tree, where the evidence was, and of every arm."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eval_gate.check.head import head

if TYPE_CHECKING:
    from conftest import Done, Space


@pytest.fixture(scope="module")
def gated_in_git(
    gated: Path, make: Callable[[Path], Space], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The workspace in a repository of its own, measured at its commit."""
    root = tmp_path_factory.mktemp("git") / "space"
    shutil.copytree(gated, root)
    space = make(root)
    space.commit()
    assert space.measure().code == 0
    return root


@pytest.fixture
def committed(gated_in_git: Path, make: Callable[[Path], Space], tmp_path: Path) -> Iterator[Space]:
    """A copy of the workspace in git, which passes whatever is required."""
    shutil.copytree(gated_in_git, tmp_path / "space")
    yield make(tmp_path / "space")


def required(space: Space, name: str, where: str) -> Done:
    """Check with a requirement, from the floors or from the command line."""
    if where == "option":
        return space.check("--require", name)
    text = space.floors.read_text()
    space.floors.write_text(
        text.replace('schema = "floors-v1"', f'schema = "floors-v1"\nrequire = ["{name}"]')
    )
    done = space.check()
    space.floors.write_text(text)
    return done


def another_commit(space: Space) -> None:
    space.git("commit", "-q", "--allow-empty", "-m", "more")


def another_branch(space: Space) -> None:
    space.git("checkout", "-q", "-b", "side")
    another_commit(space)


def no_git(space: Space) -> None:
    shutil.rmtree(space.root / ".git")


def no_git_from_the_start(space: Space) -> None:
    no_git(space)
    assert space.measure().code == 0


def edited_while_measured(space: Space) -> None:
    adapter = space.root / "adapter.py"
    adapter.write_text(adapter.read_text() + "# tuned\n")
    assert space.measure().code == 0


def an_untracked_file(space: Space) -> None:
    (space.root / "notes.txt").write_text("not told to git")
    assert space.measure().code == 0


def an_ignored_file(space: Space) -> None:
    (space.root / ".eval" / "notes.txt").write_text("not told to git, and ignored")
    assert space.measure().code == 0


def committed_again(space: Space) -> None:
    another_commit(space)
    assert space.measure().code == 0


def another_arm(space: Space) -> None:
    space.twin("zoo")
    text = space.floors.read_text()
    space.floors.write_text(text[: text.index("[arms.zoo]")])
    shutil.rmtree(space.root / "policy" / "evidence" / "zoo")
    (space.baseline.parent / "zoo.json").unlink()


@pytest.mark.parametrize("where", ["floors", "option"])
@pytest.mark.parametrize(
    ("name", "change", "code", "told", "remedy"),
    [
        ("head", None, None, "", ""),
        ("head", committed_again, None, "", ""),
        # A report of this commit is of this commit, whatever else was not told to git.
        ("head", edited_while_measured, None, "", ""),
        ("head", another_commit, "commit-differs", "and HEAD is", "eval-core measure notes"),
        ("head", another_branch, "commit-differs", "and HEAD is", "eval-core measure notes"),
        ("head", no_git, "commit-differs", "and no commit can be read here", "eval-core measure notes"),
        (
            "head",
            no_git_from_the_start,
            "commit-differs",
            "it was measured at no commit, and no commit can be read here",
            "eval-core measure notes",
        ),
        ("clean", None, None, "", ""),
        ("clean", an_ignored_file, None, "", ""),
        ("clean", edited_while_measured, "tree-dirty", "with uncommitted changes", "Commit, then:"),
        ("clean", an_untracked_file, "tree-dirty", "with uncommitted changes", "Commit, then:"),
        ("clean", no_git_from_the_start, "tree-dirty", "on a tree without git", "Commit, then:"),
        ("every-arm", None, None, "", ""),
        (
            "every-arm",
            another_arm,
            "arm-not-gated",
            "zoo: measured, and without floors",
            "eval-gate floor zoo",
        ),
    ],
)
def test_what_a_policy_asks_for_is_held(
    committed: Space,
    name: str,
    change: Callable[[Space], None] | None,
    code: str | None,
    told: str,
    remedy: str,
    where: str,
) -> None:
    """A4, S5: a report of another commit, or of what no commit holds, says nothing about what would be merged.

    Without the requirement each passes, so that it is the requirement that refuses.
    """
    if change is not None:
        change(committed)
    assert committed.check().code == 0
    done = required(committed, name, where)
    assert (done.code, done.codes) == ((1, [code]) if code else (0, []))
    if code:
        verdict = done.verdict
        reasons: list[dict[str, str]] = [*verdict["reasons"], *verdict["arms"][0]["reasons"]]
        (reason,) = reasons
        assert told in reason["message"]
        assert remedy in reason["remedy"]
        assert verdict["verdict"] == "refused"


@pytest.mark.parametrize("where", ["floors", "option"])
def test_a_class_that_is_asked_for_is_that_of_the_evidence(
    committed: Space, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S5: floors of one kind of place say nothing of another; where it is not asked for, it is told."""
    assert required(committed, "class", where).code == 0
    assert committed.check().verdict["arms"][0]["warnings"] == []
    monkeypatch.setenv("EVAL_ENV_CLASS", "elsewhere")
    assert committed.measure().code == 0
    told = committed.check()
    assert told.code == 0
    (warning,) = told.verdict["arms"][0]["warnings"]
    assert warning.startswith("measured in class 'elsewhere', and the floors stand on runs of class ")
    done = required(committed, "class", where)
    assert (done.code, done.codes) == (1, ["class-differs"])
    reason = done.verdict["arms"][0]["reasons"][0]
    assert "measured in class 'elsewhere'" in reason["message"]
    assert "EVAL_ENV_CLASS" in reason["remedy"]


def test_requirements_add_up_and_are_told_at_once(committed: Space) -> None:
    """A4: what the command line asks for comes to what the policy asks for, and takes nothing away."""
    edited_while_measured(committed)
    another_commit(committed)
    committed.edit(committed.floors, 'schema = "floors-v1"', 'schema = "floors-v1"\nrequire = ["head"]')
    assert committed.check().codes == ["commit-differs"]
    assert committed.check("--require", "clean").codes == ["commit-differs", "tree-dirty"]
    assert committed.check("--require", "head").codes == ["commit-differs"]


def test_a_named_snapshot_is_held_to_what_is_asked_too(committed: Space) -> None:
    """K6: naming a report lets a committed copy be graded, and lifts no requirement."""
    named = ("--report", f"notes={committed.report}")
    assert committed.check(*named, "--require", "head", "--require", "clean").code == 0
    another_commit(committed)
    assert committed.check(*named, "--require", "head").codes == ["commit-differs"]


def test_plain_floors_bind_nothing_that_could_be_required(committed: Space) -> None:
    plain = committed.root / "plain.toml"
    plain.write_text(committed.gate("floor", "--form", "plain").out)
    assert committed.check("--floors", plain, "--allow-unbound").code == 0
    for option in (("--require", "head"), ("--target", "main")):
        done = committed.check("--floors", plain, "--allow-unbound", *option)
        assert (done.code, "plain floors bind no report" in done.err) == (2, True)


def test_the_provenance_beside_a_report_is_no_arm(committed: Space) -> None:
    """S4: what measuring writes beside a report is not taken for one."""
    assert (committed.report.parent / "notes.intoto.jsonl").exists()
    assert committed.check("--require", "every-arm").verdict["not_gated"] == []
    assert committed.gate("floor").code == 0


# ------------------------------------------------------------------------------------------ the commit checked out


@pytest.fixture
def repository(make: Callable[[Path], Space], tmp_path: Path) -> Space:
    """A repository of two commits."""
    space = make(tmp_path / "repository")
    space.root.mkdir()
    space.commit("one")
    space.commit("two")
    return space


def git(where: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=where, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def detached(space: Space) -> Path:
    space.git("checkout", "-q", "--detach", "HEAD~1")
    return space.root


def at_a_tag(space: Space) -> Path:
    space.git("tag", "-a", "v1", "-m", "v1", "HEAD~1")
    space.git("checkout", "-q", "v1")
    return space.root


def packed(space: Space) -> Path:
    space.git("pack-refs", "--all")
    assert not (space.root / ".git" / "refs" / "heads" / "main").exists()
    return space.root


def moved_since_packed(space: Space) -> Path:
    space.git("pack-refs", "--all")
    space.git("commit", "-q", "--allow-empty", "-m", "three")
    assert (space.root / ".git" / "refs" / "heads" / "main").exists()
    return space.root


def slashed(space: Space) -> Path:
    space.git("checkout", "-q", "-b", "side/of/things", "HEAD~1")
    return space.root


def slashed_and_packed(space: Space) -> Path:
    slashed(space)
    space.git("pack-refs", "--all")
    return space.root


def below(space: Space) -> Path:
    folder = space.root / "a" / "b"
    folder.mkdir(parents=True)
    return folder


def linked(space: Space) -> Path:
    space.git("worktree", "add", "-q", "-b", "other", "../other", "HEAD~1")
    return space.root.parent / "other"


def linked_and_packed(space: Space) -> Path:
    linked(space)
    return packed(space).parent / "other"


def linked_and_detached(space: Space) -> Path:
    space.git("worktree", "add", "-q", "--detach", "../other", "HEAD~1")
    return space.root.parent / "other"


def submodule(space: Space) -> Path:
    outer = type(space)(space.root.parent / "outer")
    outer.root.mkdir()
    outer.commit()
    outer.git("submodule", "add", "-q", str(space.root), "inner")
    outer.commit()
    return outer.root / "inner"


def around_a_submodule(space: Space) -> Path:
    return submodule(space).parent


def of_64_digits(space: Space) -> Path:
    shutil.rmtree(space.root / ".git")
    space.git("init", "-q", "-b", "main", "--object-format=sha256")
    space.git("commit", "-q", "--allow-empty", "-m", "one")
    return space.root


def symbolic(space: Space) -> Path:
    space.git("symbolic-ref", "refs/heads/alias", "refs/heads/main")
    space.git("symbolic-ref", "HEAD", "refs/heads/alias")
    return space.root


@pytest.mark.parametrize(
    "arrange",
    [
        lambda space: space.root,
        below,
        detached,
        at_a_tag,
        packed,
        moved_since_packed,
        slashed,
        slashed_and_packed,
        linked,
        linked_and_packed,
        linked_and_detached,
        submodule,
        around_a_submodule,
        of_64_digits,
        symbolic,
    ],
)
def test_the_commit_is_the_one_that_git_names(repository: Space, arrange: Callable[[Space], Path]) -> None:
    """A4: read from files alone, it is what `git rev-parse HEAD` says."""
    place = arrange(repository)
    assert head(place) == git(place, "rev-parse", "HEAD")


def unborn(space: Space) -> None:
    space.git("checkout", "-q", "--orphan", "empty")


def gone(space: Space) -> None:
    (space.root / ".git" / "refs" / "heads" / "main").unlink()


def head_becomes(data: bytes) -> Callable[[Space], None]:
    def change(space: Space) -> None:
        (space.root / ".git" / "HEAD").write_bytes(data)

    return change


def round_and_round(space: Space) -> None:
    (space.root / ".git" / "refs" / "heads" / "main").write_text("ref: refs/heads/main\n")


def git_elsewhere(space: Space) -> None:
    shutil.rmtree(space.root / ".git")
    (space.root / ".git").write_text("gitdir: ../nowhere\n")


def outside(space: Space) -> None:
    (space.root / "commit").write_text("0" * 40)
    head_becomes(b"ref: refs/../../commit\n")(space)


@pytest.mark.parametrize(
    "damage",
    [
        lambda space: shutil.rmtree(space.root / ".git"),
        unborn,
        gone,
        head_becomes(b""),
        head_becomes(b"\xff\xfe"),
        head_becomes(b"ref: \n"),
        head_becomes(b"0" * 39),
        head_becomes(b"main\n"),
        head_becomes(b"ref: refs/heads/\0\n"),
        round_and_round,
        git_elsewhere,
        outside,
    ],
)
def test_a_commit_that_cannot_be_read_is_none(repository: Space, damage: Callable[[Space], None]) -> None:
    """A4: then no report is of it: a requirement that cannot be held refuses."""
    assert head(repository.root) is not None
    damage(repository)
    assert head(repository.root) is None
