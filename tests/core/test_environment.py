"""Where and when a run was made, and what a terminal shows."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from core_support import DEFINITION, DOCUMENTS, JUDGEMENTS, QUERIES, Space

from eval_core.console import clip, count, paint, table, width
from eval_core.errors import CouldNot
from eval_core.measuring.environment import environment_class, new_run_id, observe


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither CI nor a class of one's own."""
    for name in (
        "CI",
        "EVAL_ENV_CLASS",
        "GITHUB_RUN_ID",
        "CI_PIPELINE_ID",
        "CI_JOB_ID",
        "BUILD_ID",
        "NO_COLOR",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("ci", "named", "expected"),
    [
        (None, None, "local"),
        ("true", None, "ci"),
        ("1", None, "ci"),
        ("", None, "local"),
        ("false", None, "local"),
        ("0", None, "local"),
        ("No", None, "local"),
        ("true", "bench-box", "bench-box"),
        ("true", "  ", "ci"),
    ],
)
def test_the_class_of_an_environment(
    monkeypatch: pytest.MonkeyPatch, ci: str | None, named: str | None, expected: str
) -> None:
    """A number measured where the gate will not run is not eligible: the report says where."""
    if ci is not None:
        monkeypatch.setenv("CI", ci)
    if named is not None:
        monkeypatch.setenv("EVAL_ENV_CLASS", named)
    assert environment_class() == expected


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository that git takes for another user's, by a switch of its own tests."""
    real = shutil.which("git")
    subprocess.run(["git", "init", "-q", tmp_path / "a repository"], check=True)
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "git"
    script.write_text(f'#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec {real} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path / "a repository"


def test_a_repository_of_another_user_is_not_read_as_no_repository(foreign: Path) -> None:
    """POLICY: git's refusal is named with its mend; followed, the mend lets the tree be read."""
    (foreign / "sub").mkdir()
    with pytest.raises(CouldNot) as caught:
        observe(foreign / "sub")
    error = caught.value
    assert (error.code, error.details.file) == ("repository-owner", str(foreign))
    assert error.mend == f"git config --global --add safe.directory '{foreign}'"
    subprocess.run(shlex.split(error.mend), check=True)
    assert observe(foreign / "sub").dirty is True


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a repository away")
def test_a_repository_that_was_given_away_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("SUDO_UID", raising=False)
    root = tmp_path / "given"
    subprocess.run(["git", "init", "-q", root], check=True)
    for path in (root, *root.rglob("*")):
        os.chown(path, 12345, 12345)
    with pytest.raises(CouldNot, match="another user owns"):
        observe(root)


def test_measure_says_once_that_git_does_not_read_the_repository(foreign: Path) -> None:
    space = Space(foreign, lambda name, factory: None)
    space.set(DOCUMENTS, QUERIES, JUDGEMENTS, DEFINITION)
    for name in ("one", "two"):
        space.arm("repetitions = 1", name=name, backend="bm25")
    done = space.core("measure")
    assert (done.code, done.err.count("another user owns")) == (3, 1)
    assert done.err.splitlines()[-1].strip() == f"git config --global --add safe.directory '{foreign}'"


def test_run_ids_are_distinct_and_sort_by_time() -> None:
    found = [new_run_id() for _ in range(50)]
    assert len(set(found)) == 50
    assert all(re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{8}", name) for name in found)


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, env=environment)


def test_the_commit_and_whether_it_is_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (observe(tmp_path).commit, observe(tmp_path).dirty) == (None, None)
    git(tmp_path, "init", "-q")
    assert observe(tmp_path).commit is None  # no commit yet
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-qm", "one")
    found = observe(tmp_path)
    assert re.fullmatch("[0-9a-f]{40}", found.commit or "")
    assert found.dirty is False
    (tmp_path / "new").write_text("")
    assert observe(tmp_path).dirty is True
    # A hook's GIT_DIR points elsewhere than the work tree that is measured.
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert observe(tmp_path).commit == found.commit


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """A repository whose commit has `bad`, 4 bytes, in lib/tune.py; its first commit had `good`."""
    root = tmp_path / "repository"
    (root / "lib").mkdir(parents=True)
    git(root, "init", "-q")
    for content in ("good", "bad!"):
        (root / "lib" / "tune.py").write_text(content)
        git(root, "add", ".")
        git(root, "commit", "-qm", content)
    return root


def tune(root: Path, content: str = "good") -> None:
    (root / "lib" / "tune.py").write_text(content)


def flagged(flag: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        git(root, "update-index", flag, "lib/tune.py")
        tune(root)

    return change


def assumed_and_removed(root: Path) -> None:
    git(root, "update-index", "--assume-unchanged", "lib/tune.py")
    (root / "lib" / "tune.py").unlink()


def elsewhere(root: Path) -> None:
    git(root, "clone", "-q", ".", "../clone")
    git(root, "config", "core.worktree", str(root.parent / "clone"))
    tune(root)


def filtered(root: Path) -> None:
    (root / ".git" / "info" / "attributes").write_text("lib/tune.py filter=x\n")
    git(root, "config", "filter.x.clean", "sed s/good/bad!/")
    tune(root)
    git(root, "add", "lib/tune.py")


def touched(root: Path) -> None:
    path = root / "lib" / "tune.py"
    os.utime(path, (1_000_000_000, 1_000_000_000))
    git(root, "config", "core.trustctime", "false")
    git(root, "config", "core.checkStat", "minimal")
    git(root, "update-index", "--refresh")
    time.sleep(1.1)  # git compares whole seconds
    tune(root)
    os.utime(path, (1_000_000_000, 1_000_000_000))


def replaced(root: Path) -> None:
    git(root, "replace", "HEAD", "HEAD~1")
    git(root, "read-tree", "HEAD")
    git(root, "checkout-index", "-fa")


def replaced_tree(root: Path) -> None:
    git(root, "replace", "HEAD^{tree}", "HEAD~1^{tree}")
    git(root, "read-tree", "HEAD")
    git(root, "checkout-index", "-fa")


@pytest.mark.parametrize(
    "change",
    [
        flagged("--skip-worktree"),
        flagged("--assume-unchanged"),
        assumed_and_removed,
        elsewhere,
        filtered,
        touched,
        replaced,
        replaced_tree,
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_round2_b5_what_stands_on_disk_decides_and_not_what_git_was_told(
    good: Path, change: Callable[[Path], None], inside: bool
) -> None:
    """B5: flags, filters, stat data, another work tree and replaced objects hide a change from `git status`; in a
    submodule, too."""
    outer, repository = good, good
    if inside:
        outer = good.parent / "outer"
        outer.mkdir()
        git(outer, "init", "-q")
        repository = outer / "sub"
        shutil.copytree(good, repository, symlinks=True)
        git(outer, "add", "sub")
        git(outer, "commit", "-qm", "one")
    assert observe(outer).dirty is False
    change(repository)
    assert observe(outer).dirty is True


def line_ends(root: Path) -> None:
    (root / ".gitattributes").write_text("* text=auto eol=crlf\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "line ends")
    tune(root, "one\ntwo\n")
    git(root, "commit", "-qam", "lines")
    (root / "lib" / "tune.py").unlink()
    git(root, "checkout", "-q", ".")
    assert (root / "lib" / "tune.py").read_bytes() == b"one\r\ntwo\r\n"


def flagged_line_ends(root: Path) -> None:
    line_ends(root)
    git(root, "update-index", "--assume-unchanged", "lib/tune.py")


def large_file(root: Path) -> None:
    """What git-lfs does, as its specification has it: the blob is a pointer, the file what it points to."""
    digest = hashlib.sha256(b"large").hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize 5\n"
    (root / ".gitattributes").write_text("lib/* filter=lfs -text\n")
    (root / ".git" / "pointer").write_text(pointer)
    git(root, "config", "filter.lfs.clean", "cat .git/pointer")
    tune(root, "large")
    git(root, "add", ".")
    git(root, "commit", "-qm", "large")


def sparse(root: Path) -> None:
    git(root, "sparse-checkout", "set", "--no-cone", "/*", "!/lib/")
    assert not (root / "lib").exists()


@pytest.mark.parametrize("change", [line_ends, flagged_line_ends, large_file, sparse])
def test_round2_b5_an_honest_checkout_is_clean(good: Path, change: Callable[[Path], None]) -> None:
    """B5: what git converts for everyone is no change, nor what a sparse checkout leaves out of the tree."""
    change(good)
    assert observe(good).dirty is False
    (good / "new.py").write_text("")
    assert observe(good).dirty is True


def test_round2_b5_a_submodule_is_looked_into(tmp_path: Path) -> None:
    """B5: `ignore = all` hides a submodule from `git status`, and not from us."""
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    for folder in (inner, outer):
        folder.mkdir()
        git(folder, "init", "-q")
        (folder / "file").write_text("one")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", "one")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "sub")
    git(outer, "config", "-f", ".gitmodules", "submodule.sub.ignore", "all")
    git(outer, "add", ".")
    git(outer, "commit", "-qm", "two")
    assert observe(outer).dirty is False
    (outer / "sub" / "file").write_text("two")
    assert observe(outer).dirty is True


def test_without_git_a_run_is_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("BUILD_ID", "77")
    found = observe(tmp_path)
    assert (found.commit, found.dirty, found.ci_run, found.process) == (None, None, "77", os.getpid())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found.started)


# --------------------------------------------------------------------------------------------- console


def test_columns_are_as_wide_as_what_a_terminal_shows() -> None:
    rows = [("a", "1"), ("日本", "22"), ("e\u0301", "333"), (paint("b", "red"), "4")]
    lines = table(rows, right=[1]).splitlines()
    assert {width(line) for line in lines} == {1 + 4 + 2 + 3}
    assert table([]) == ""
    assert table([("a", ""), ("b",)]) == " a\n b"


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("日本語", 5, "日本…"),
        ("a\x1b[31mb\n", 20, "a\\x1b[31mb\\n"),
        ("\u202eabc", 20, "\\u202eabc"),
        ("", 3, ""),
    ],
)
def test_a_text_from_elsewhere_is_cut_and_can_do_nothing_to_the_terminal(
    text: str, columns: int, expected: str
) -> None:
    assert clip(text, columns) == expected


def test_colour_is_left_out_where_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert paint("no", "red") != "no"
    monkeypatch.setenv("NO_COLOR", "1")
    assert paint("no", "red") == "no"


@pytest.mark.parametrize(
    ("number", "words", "expected"),
    [
        (1, ("query", "queries"), "1 query"),
        (0, ("query", "queries"), "0 queries"),
        (1234, ("arm",), "1,234 arms"),
    ],
)
def test_counts_are_words(number: int, words: tuple[str, ...], expected: str) -> None:
    assert count(number, *words) == expected
