"""What a policy requires of every report, and what a person at work is told instead of being refused."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from policy_support import resealed

from eval_gate.check.head import head

if TYPE_CHECKING:
    from conftest import Space

Change = Callable[["Space"], object]


@pytest.fixture(scope="module")
def gated_in_git(
    gated: Path, make: Callable[[Path], Space], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The workspace in a repository of its own, measured at its commit, the policy committed."""
    root = tmp_path_factory.mktemp("git") / "space"
    shutil.copytree(gated, root)
    space = make(root)
    space.commit()
    for _ in range(2):
        assert space.measure().code == 0
    space.policy()
    space.commit("policy")
    assert space.measure().code == 0
    return root


@pytest.fixture
def committed(gated_in_git: Path, make: Callable[[Path], Space], tmp_path: Path) -> Iterator[Space]:
    """A copy of the workspace in git, which passes whatever is required."""
    shutil.copytree(gated_in_git, tmp_path / "space")
    yield make(tmp_path / "space")


def another_commit(space: Space) -> None:
    space.edit(space.root / "eval.toml", '[arms."notes"]', '# tuned\n[arms."notes"]')
    space.commit("more")


def empty_commit(space: Space) -> None:
    space.git("commit", "-q", "--allow-empty", "-m", "more")


def policy_alone(space: Space) -> None:
    space.policy(require=["head", "clean", "provenance"])
    space.commit("the bar")


def code_beside_the_policy(path: str) -> Change:
    def change(space: Space) -> None:
        (space.root / path).parent.mkdir(parents=True, exist_ok=True)
        (space.root / path).write_text("print('found')\n")
        space.git("add", "-f", path)
        space.commit("an adapter")

    return change


def other_code_on_disk(path: str) -> Change:
    def change(space: Space) -> None:
        code_beside_the_policy(path)(space)
        (space.root / path).write_text("print('something else')\n")
        assert space.measure().code == 0

    return change


def a_report_tracked_through_a_link(space: Space) -> None:
    """The tests' .gitignore names a folder, so a link in its place is committed, too."""
    (space.root / ".eval").rename(space.root / "policy" / "evidence" / "c")
    (space.root / ".eval").symlink_to("policy/evidence/c")
    space.commit("a report")


def an_index_that_git_cannot_read(space: Space) -> None:
    index = space.root / ".git" / "index"
    index.write_bytes(index.read_bytes()[:10])


def no_git(space: Space) -> None:
    shutil.rmtree(space.root / ".git")


def never_in_git(space: Space) -> None:
    no_git(space)
    assert space.measure().code == 0


def edited_while_measured(space: Space) -> None:
    adapter = space.root / "adapter.py"
    adapter.write_text(adapter.read_text() + "# tuned\n")
    assert space.core("measure", "-q", "notes").code == 0


def an_untracked_file(space: Space) -> None:
    (space.root / "notes.txt").write_text("not told to git")
    assert space.measure().code == 0


def an_ignored_file(space: Space) -> None:
    (space.root / ".eval" / "notes.txt").write_text("not told to git, and ignored")
    assert space.measure().code == 0


def a_query_deleted_since(space: Space) -> None:
    space.put_queries(space.queries()[1:])
    later = space.report.stat().st_mtime_ns + 10**9
    os.utime(space.root / "set" / "queries.jsonl", ns=(later, later))


def a_tracked_report(space: Space) -> None:
    space.git("add", "-f", str(space.report))
    space.git("commit", "-q", "-m", "a report")


def a_report_of_an_older_commit(space: Space) -> None:
    """B1: the arm is taken out of the measured lane, and the report of the last good commit lies on."""
    space.edit(space.root / "eval.toml", '"jsonl"', '"jsonl"\nlane = "owner"')
    (space.root / "adapter.py").write_text("raise SystemExit('broken')\n")
    space.commit("broken")
    assert space.core("measure", "-q").code != 1


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (lambda space: None, None, None),
        (empty_commit, None, "and HEAD is"),
        (policy_alone, None, "and HEAD is"),
        (an_ignored_file, None, None),
        (another_commit, "commit-differs", "and HEAD is"),
        (code_beside_the_policy("policy/adapter.py"), "commit-differs", "and HEAD is"),
        (code_beside_the_policy("policy/evidence/tune.py"), "commit-differs", "and HEAD is"),
        (code_beside_the_policy("policy/promotions/tune.json"), "commit-differs", "and HEAD is"),
        (other_code_on_disk("policy/evidence/tune.py"), "tree-dirty", "on a tree with uncommitted changes"),
        (other_code_on_disk(".eval/tune.py"), "tree-dirty", "on a tree with uncommitted changes"),
        (a_report_tracked_through_a_link, "commit-differs report-tracked", "and HEAD is"),
        (an_index_that_git_cannot_read, "tree-unseen report-tracked", None),
        (no_git, "commit-differs tree-unseen", "no commit can be read here"),
        (never_in_git, "commit-differs tree-dirty", "it was measured outside of git"),
        (edited_while_measured, "tree-dirty", "on a tree with uncommitted changes"),
        (an_untracked_file, "tree-dirty", "on a tree with uncommitted changes"),
        (a_query_deleted_since, "tree-changed", "the tree changed after it was measured: set/queries.jsonl"),
        (a_tracked_report, "commit-differs report-tracked", "and HEAD is"),
        (a_report_of_an_older_commit, "commit-differs", "its lane is 'owner'"),
    ],
)
def test_round2_b1_a_report_is_of_what_stands_here_or_it_is_said(
    committed: Space, change: Change, code: str | None, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B1, A4: in class `ci` what was measured elsewhere is refused; a person at work is answered, in one line."""
    change(committed)
    done = committed.check()
    notes = [note for note in done.verdict["notes"] if note.startswith("verdict of your working tree")]
    codes = [code for code in done.codes if code not in ("provenance-diverges", "queries-differ")]
    assert codes == []
    assert (len(notes), said is None or said in notes[0]) == (0 if said is None else 1, True), notes
    monkeypatch.setenv("EVAL_ENV_CLASS", "ci")
    done = committed.check()
    codes = [code for code in done.codes if code != "provenance-diverges"]
    assert codes == (code.split() if code else [])
    assert done.code == (1 if done.codes else 0)
    if code:
        reason = done.verdict["arms"][0]["reasons"][-1]
        assert "eval-core measure notes" in reason["mend"] or reason["code"] == "report-tracked"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ('"lib/adapter.py"', "tree-changed"),  # what it imports lies beside it
        ('"adapter.py"', "tree-changed"),
        ('"-m", "adapter"', "tree-changed"),
        ('"own/adapter.py"', None),
    ],
)
def test_round2_b5_what_is_left_out_beside_the_command_is_a_change_and_else_is_said(
    committed: Space, command: str, code: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B5: an adapter imports what lies beside it, so that a file that is not here decides; a sparse checkout of a
    large repository is no fault."""
    monkeypatch.setenv("EVAL_ENV_CLASS", "ci")
    for folder in ("lib", "own"):
        (committed.root / folder).mkdir()
        shutil.copy(committed.root / "adapter.py", committed.root / folder)
    (committed.root / "lib" / "tune.py").write_text("BAD = True\n")
    committed.edit(committed.root / "eval.toml", '"-E", "adapter.py"', f'"-E", {command}')
    committed.edit(committed.root / "eval.toml", '"-S", ', "" if "-m" in command else '"-S", ')
    committed.edit(committed.root / "eval.toml", '"-E", ', "" if "-m" in command else '"-E", ')
    committed.commit("a library")
    committed.git("update-index", "--skip-worktree", "lib/tune.py")
    (committed.root / "lib" / "tune.py").unlink()
    assert committed.measure().code == 0
    done = committed.check()
    assert done.codes == ([code] if code else [])
    said = str(done.verdict["arms"][0]["reasons"] if code else done.verdict["notes"])
    assert "lib/tune.py" in said


@pytest.mark.parametrize("policy", ["policy", "po[l]icy"])
def test_round2_b1_a_report_of_another_commit_is_said_where_the_policy_alone_differs(
    committed: Space, policy: str
) -> None:
    """B1: a commit of the bar needs no new measurement, and the verdict says what it rests on."""
    (committed.root / "policy").rename(committed.root / policy)
    committed.commit("moved")
    assert committed.measure().code == 0
    text = committed.root / policy / "waivers.toml"
    text.write_text("")
    committed.commit("the bar")
    done = committed.check("--policy", policy, "--target", "HEAD")
    assert done.codes == []
    assert "they differ in the policy alone" in done.verdict["notes"][0]


def test_a_target_requires_what_ci_does(committed: Space) -> None:
    """B1: with a target named, a local run answers as the merge will."""
    assert committed.check("--target", "HEAD").codes == []
    another_commit(committed)
    assert committed.check("--target", "HEAD").codes == ["commit-differs"]


def test_only_what_is_required_is_refused(committed: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """K5: a policy that asks for less, with its reason, is answered, and what it lets pass is said."""
    committed.policy(require=["head"], why={"require": "the tree is generated"})
    monkeypatch.setenv("EVAL_ENV_CLASS", "ci")
    edited_while_measured(committed)
    done = committed.check()
    assert done.codes == []
    assert "uncommitted changes" in done.verdict["notes"][0]
    assert committed.check("--require", "clean").codes == ["tree-dirty"]


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        (another_commit, []),  # an ancestor, and nothing in its keys changed
        (edited_while_measured, ["tree-dirty"]),
        (
            lambda space: space.edit(space.root / "eval.toml", '"adapter.py"', '"adapter.py", "-v"'),
            ["provenance-diverges"],
        ),
        (lambda space: space.git("commit", "-q", "--amend", "-m", "other"), []),  # the same tree
        (
            lambda space: (
                space.edit(space.root / "eval.toml", '[arms."notes"]', '# tuned\n[arms."notes"]'),
                space.git("commit", "-q", "--amend", "-a", "-m", "other"),
            ),
            ["commit-differs"],
        ),
    ],
)
def test_a_snapshot_of_the_owners_lane_is_of_an_ancestor(
    committed: Space, change: Change, codes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """K6: what is too dear for a pull request is named; its commit is in this history, its keys are as they were."""
    committed.edit(committed.root / "eval.toml", '"jsonl"', '"jsonl"\nlane = "owner"')
    committed.commit("owner")
    assert committed.core("measure", "-q", "notes").code == 0
    monkeypatch.setenv("EVAL_ENV_CLASS", "ci")
    assert committed.check().codes == []
    change(committed)
    assert committed.check("--report", f"notes={committed.report}").codes == codes


@pytest.mark.parametrize("strict", [False, True])
def test_a_class_that_is_required_is_that_of_the_evidence(
    committed: Space, strict: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S5: floors of one kind of place say nothing of another; where it is not required, it is said."""
    required = ("--require", "class") if strict else ()
    assert committed.check(*required).verdict["arms"][0]["warnings"] == []
    monkeypatch.setenv("EVAL_ENV_CLASS", "elsewhere")
    assert committed.measure().code == 0
    done = committed.check(*required)
    (warning,) = done.verdict["arms"][0]["warnings"]
    assert warning.startswith("measured in class 'elsewhere', and the floors stand on runs of class 'local'")
    assert done.codes == (["class-differs"] if strict else [])
    if strict:
        assert "EVAL_ENV_CLASS" in done.verdict["arms"][0]["reasons"][0]["mend"]


def test_every_arm_that_was_measured_needs_floors_where_that_is_required(committed: Space) -> None:
    """K1: `every-arm`; an arm that the policy says is gone needs none."""
    committed.twin("zoo")
    committed.policy()
    evidence = committed.evidence.with_name("zoo.jsonl")
    assert committed.check().codes == ["floors-deleted"]
    evidence.unlink()
    assert committed.check().codes == []
    done = committed.check("--require", "every-arm")
    assert done.codes == ["arm-not-gated"]
    assert "eval-gate floor zoo" in done.verdict["reasons"][0]["mend"]
    committed.policy(require=["head", "clean", "provenance", "every-arm"], retired={"zoo": "nobody asks it"})
    assert committed.check().codes == []


@pytest.mark.parametrize("required", [True, False])
def test_round2_b4_provenance_that_cannot_be_looked_at_is_refused(committed: Space, required: bool) -> None:
    """B4: eval.toml moved away takes half of provenance with it; nobody is to overlook that."""
    committed.policy(require=["provenance"] if required else [], why={"require": "a trial"})
    (committed.root / "eval.toml").rename(committed.root / "evl.toml")
    done = committed.check()
    assert (done.code, done.codes) == ((1, ["provenance-unseen"]) if required else (0, []))
    assert committed.check("--config", "evl.toml").codes == []
    committed.sidecar.unlink()
    assert committed.check("--config", "evl.toml").codes == (["provenance-missing"] if required else [])


def test_round2_b6_latency_that_was_edited_needs_its_provenance(committed: Space) -> None:
    """B6: no digest of a report covers its timing; the sidecar does, and is required by default."""
    committed.alter(committed.report, lambda report: report["latency"].update(p95=1.0))
    assert committed.check().codes == ["provenance-subject-differs"]
    committed.sidecar.unlink()
    assert committed.check().codes == ["provenance-missing"]


def test_a_repository_of_another_owner_is_named_with_its_mend(
    committed: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B1: git's refusal is no absence of git: the mend is one line of its configuration."""
    monkeypatch.setenv("EVAL_ENV_CLASS", "ci")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    real = subprocess.run

    def owned(command: list[str], **options: Any) -> Any:
        options["env"] = {**options["env"], "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
        return real(command, **options)

    monkeypatch.setattr(subprocess, "run", owned)
    done = committed.check()
    assert (done.code, "safe.directory" in done.err) == (3, True), done.err


def test_a_waiver_of_an_arm_that_is_not_there_is_a_mistake(committed: Space) -> None:
    """S4: misspelt, it would cover nothing, and nobody would see why."""
    text = f'[[waiver]]\narm = "note"\nfingerprint = "{"0" * 64}"\nreason = "x"\n'
    (committed.root / "policy" / "waivers.toml").write_text(text)
    done = committed.check()
    assert (done.code, "did you mean 'notes'" in done.err) == (2, True)


def test_what_git_was_told_to_overlook_is_dirt(committed: Space) -> None:
    """S5: a file that counts as unchanged by decree is measured all the same."""
    committed.git("update-index", "--assume-unchanged", "eval.toml")
    committed.edit(committed.root / "eval.toml", '"jsonl"', '"jsonl"\nrepetitions = 4')
    assert committed.measure().code == 0
    assert "uncommitted changes" in committed.check().verdict["notes"][0]


def test_the_policy_and_what_measuring_writes_are_no_dirt(
    committed: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S5: a bar can be moved and measured under before it is committed; other files there may be what is measured."""
    monkeypatch.setenv("EVAL_ENV_CLASS", "ci")
    (committed.root / "policy" / "waivers.toml").write_text("")
    assert committed.measure().code == 0
    assert committed.check().codes == []
    (committed.root / "policy" / "adapter.py").write_text("x")
    assert committed.check().codes == ["tree-changed"]


@pytest.mark.parametrize(("before", "codes"), [(1, ["report-stale"]), (0, [])])
def test_a_report_that_is_older_than_the_evidence_is_stale(
    space: Space, before: int, codes: list[str]
) -> None:
    """K3: it was not measured for this gate, however sound it is; one that started with it was."""
    first = min(line.started for line in space.lines())
    started = f"{int(first[:4]) - before}{first[4:]}"
    space.forge(space.report, lambda report: report["environment"].update(started=started))
    done = space.check()
    assert done.codes == codes
    # A snapshot that is named on purpose may be old.
    assert space.check("--report", f"notes={space.report}").codes == []


@pytest.mark.parametrize("named", [False, True])
def test_what_a_report_calls_its_commit_is_no_option_of_git(
    committed: Space, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVAL_ENV_CLASS", "ci")
    committed.edit(committed.root / "eval.toml", '"jsonl"', '"jsonl"\nlane = "owner"')
    committed.forge(committed.report, lambda report: report["environment"].update(commit="--output=written"))
    words = ("--report", f"notes={committed.report}") if named else ()
    assert "commit-differs" in committed.check(*words).codes
    assert not (committed.root / "written").exists()


def from_the_future(space: Space) -> None:
    """The evidence stays what it is, and seems to be measured years later."""
    later = [
        resealed(
            line,
            lambda table: table.update(started=f"{int(table['started'][:4]) + 70}{table['started'][4:]}"),
        )
        for line in space.lines()
    ]
    space.policy({"notes": later})
    space.commit("the clock ran ahead")
    assert space.measure().code == 0


@pytest.mark.parametrize("where", ["local", "ci"])
def test_round2_s9_commits_are_compared_before_times(
    committed: Space, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S9: a report of HEAD, clean, is of what stands here, when the clock of the evidence ran ahead, too."""
    monkeypatch.setenv("EVAL_ENV_CLASS", where)
    from_the_future(committed)
    done = committed.check()
    assert (done.code, done.codes) == (0, [])


def of_an_unknown_commit(space: Space) -> None:
    space.cite(lambda line: line.update(commit="5e1f" * 10))
    space.commit("squashed")
    assert space.measure().code == 0


def of_a_dirty_tree(space: Space) -> None:
    space.edit(space.root / "adapter.py", "import json, sys", "import json, sys  # tuned")
    assert space.measure().code == 0


@pytest.mark.parametrize(
    ("where", "change"), [("ci", of_an_unknown_commit), ("ci", of_a_dirty_tree), ("local", of_a_dirty_tree)]
)
def test_round2_s9_where_the_time_decides_a_clock_ahead_is_named(
    committed: Space, where: str, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S9: to measure again is no remedy then, and what is printed is one."""
    monkeypatch.setenv("EVAL_ENV_CLASS", where)
    from_the_future(committed)
    change(committed)
    done = committed.check()
    (stale,) = [r for r in done.verdict["arms"][0]["reasons"] if r["code"] == "report-stale"]
    assert "which is in the future: the clock here says 20" in stale["what"]
    committed.git("checkout", "-q", ".")
    command = stale["mend"].partition("eval-gate ")[2].replace('"…"', "the clock ran ahead")
    words = command.replace("floors=the clock ran ahead", "floors=the_clock").split()
    said = committed.gate(*[word.replace("the_clock", "the clock ran ahead") for word in words])
    assert said.code == 0, said.err
    committed.commit("measured again")
    assert committed.measure().code == 0
    assert committed.check().codes == []


def test_plain_floors_bind_nothing_that_could_be_required(committed: Space) -> None:
    plain = committed.root / "plain.toml"
    plain.write_text('[notes]\nn = 27\n"hit@1" = 0.88\n')
    assert committed.check("--floors", plain, "--allow-unbound").code == 0
    for option in (("--require", "head"), ("--target", "main")):
        done = committed.check("--floors", plain, "--allow-unbound", *option)
        assert (done.code, "plain floors bind no report" in done.err) == (2, True)


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


def no_ref(space: Space) -> None:
    """A file of git that holds a commit and is no ref."""
    (space.root / ".git" / "ORIG_HEAD").write_text("0" * 40)
    head_becomes(b"ref: ORIG_HEAD\n")(space)


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
        no_ref,
    ],
)
def test_a_commit_that_cannot_be_read_is_none(repository: Space, damage: Callable[[Space], None]) -> None:
    """A4: then no report is of it: a requirement that cannot be held refuses."""
    assert head(repository.root) is not None
    damage(repository)
    assert head(repository.root) is None
