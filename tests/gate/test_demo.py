"""The demonstration: the real gate passes, fails and refuses, in a folder that is kept, whatever git is told."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from eval_core import backend
from eval_core.console import width
from eval_core.errors import CouldNot
from eval_gate.check import eligibility, rules
from eval_gate.demo import run

if TYPE_CHECKING:
    from conftest import Space

BIN = str(Path(sys.executable).parent)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A clean home with a hostile git: it signs, runs a hook that fails, and knows nobody."""
    home = tmp_path / "home"
    hooks = home / "hooks"
    hooks.mkdir(parents=True)
    for name in ("pre-commit", "commit-msg", "post-checkout", "reference-transaction"):
        (hooks / name).write_text("#!/bin/sh\nexit 1\n")
        (hooks / name).chmod(0o755)
    configuration = home / "hostile"
    configuration.write_text(
        "[commit]\n gpgsign = true\n[gpg]\n program = /bin/false\n[init]\n defaultBranch = odd/name\n"
        f"[core]\n hooksPath = {hooks}\n autocrlf = true\n[user]\n useConfigOnly = true\n"
    )
    dropped = ("GIT_", "EVAL_", "XDG_", "PYTEST", "COV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return kept | {
        "HOME": str(home),
        "GIT_CONFIG_GLOBAL": str(configuration),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "TMPDIR": str(tmp_path),
    }


def typed(environment: dict[str, str], where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the real command."""
    return subprocess.run(
        [sys.executable, "-m", "eval_gate", "demo", *arguments],
        cwd=where,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
    )


def blocks(output: str) -> list[tuple[str, list[str]]]:
    """Each command that was shown, with the lines below it, down to the next."""
    found = []
    for part in re.split(r"^\$ ", output, flags=re.MULTILINE)[1:]:
        command, *lines = part.splitlines()
        found.append((command, lines))
    return found


def test_three_verdicts_in_one_screen_and_the_same_by_hand(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """K2, K3: a pass, a loss that fails, a deleted query that is refused."""
    done = typed(environment, tmp_path, "--into", "it")
    assert done.returncode == 0, done.stderr
    lines = (done.stdout + done.stderr).splitlines()
    assert len(lines) <= 40
    assert max(map(width, lines)) <= 100
    gate = [(command, shown) for command, shown in blocks(done.stdout) if "eval-gate check" in command]
    (_, passed), (_, failed), (_, refused) = gate
    assert re.fullmatch(r"PASS  1 arm at [0-9a-f]{7}, clean, class local", passed[0])
    assert failed[0].startswith("FAIL  1 of 1 arm")
    losses = [line for line in failed if line.startswith("   lost  ")]
    assert re.fullmatch(
        r"   lost  q06  why redis and not memcached\? +n06  rank 1 → –  3 of 3 above unjudged", losses[0]
    )
    assert refused[0].startswith("REFUSED  1 of 1 arm")
    assert any("gone: q06    reason: query-set-differs" in line for line in refused)
    assert "Look around:  cd it" in lines
    # By hand, with the hostile configuration in force, each command prints what the demonstration showed below it.
    for command, shown in blocks(done.stdout):
        hand = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path / "it", env=environment, capture_output=True, encoding="utf-8"
        )
        if command.startswith("git add policy"):
            continue  # the bar stands: there is nothing to commit
        count = int(match[1]) if (match := re.search(r"head -(\d+)$", command)) else 0
        expected = [re.sub(r"[0-9a-f]{7}", "COMMIT", line) for line in shown[:count]]
        if "floor" in command:
            expected = [f"{expected[0]}; no number moved"]
        assert [re.sub(r"[0-9a-f]{7}", "COMMIT", line) for line in hand.stdout.splitlines()] == expected
        assert hand.returncode == 0, hand.stderr
    for command in ("git diff --quiet HEAD", "git commit -q --allow-empty -m 'by hand'"):
        assert subprocess.run(["sh", "-c", command], cwd=tmp_path / "it", env=environment).returncode == 0


def test_without_into_a_fresh_folder_is_kept_and_named(tmp_path: Path, environment: dict[str, str]) -> None:
    """In CI too, where the gate would refuse the changed tree that it grades here."""
    done = typed(environment | {"CI": "true"}, tmp_path, "--format", "json")
    value = json.loads(done.stdout)
    schema = Path(__file__).resolve().parents[2] / "schemas" / "demo-v1.schema.json"
    jsonschema.Draft202012Validator(json.loads(schema.read_text("utf-8"))).validate(value)
    assert [
        (step["expected"], step["verdict"], step["exit_code"], step["ok"]) for step in value["steps"]
    ] == [
        ("pass", "pass", 0, True),
        ("fail", "fail", 1, True),
        ("refused", "refused", 1, True),
    ]
    assert value["steps"][1]["lost"] == ["q06", "q16"]
    folder = Path(value["folder"])
    assert folder.parent == tmp_path
    assert sorted(path.name for path in folder.iterdir()) == [
        *(".eval", ".git", ".gitignore", "eval.toml", "notes", "policy")
    ]


def _graded(passed: bool) -> Callable[[pytest.MonkeyPatch], None]:
    grade = rules._grade

    def breaks(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(rules, "_grade", lambda *words: grade(*words).model_copy(update={"passed": passed}))

    return breaks


def _loss(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("eval_gate.check.judge.moved", lambda *_: ((), ()))


def _reason(patch: pytest.MonkeyPatch) -> None:
    whole = eligibility.incomparable
    patch.setattr(
        eligibility,
        "incomparable",
        lambda *words: [r.model_copy(update={"code": "n-differs"}) for r in whole(*words)][:1],
    )


def _set(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(eligibility, "incomparable", lambda *_: iter(()))


@pytest.mark.parametrize(
    ("breakage", "said"),
    [
        (_graded(False), "Nothing was changed. Expected was pass, and the gate said fail (baseline-drop, "),
        (
            _graded(True),
            "The retriever was made worse. Expected was fail, and the gate said pass (no reason).",
        ),
        (_loss, "The retriever was made worse. Expected was fail, and the gate said fail (baseline-drop)."),
        (_reason, "The query q06 was deleted. Expected was refused, and the gate said refused (n-differs)."),
        (_set, "The query q06 was deleted. Expected was refused, and the gate said pass (no reason)."),
    ],
)
def test_a_gate_without_a_guard_is_found_out(
    make: type[Space],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    breakage: Callable[[pytest.MonkeyPatch], None],
    said: str,
) -> None:
    """K3: it judges what the gate says, and prints no text of its own in its place."""
    breakage(monkeypatch)
    done = make(tmp_path).gate("demo", "--into", "it")
    assert done.code == 1
    assert f"NOT CAUGHT  {said}" in done.out
    assert "as it should be" not in done.out


@pytest.mark.parametrize(
    ("name", "what"), [("note.txt", "is not empty: it holds 'note.txt'"), (None, "is a file")]
)
def test_a_folder_that_holds_something_is_refused_and_left(
    make: type[Space], tmp_path: Path, name: str | None, what: str
) -> None:
    into = tmp_path / "it"
    held = into / name if name else into
    held.parent.mkdir(exist_ok=True)
    held.write_text("mine")
    done = make(tmp_path).gate("demo", "--into", "it")
    assert (done.code, done.out) == (2, "")
    assert what in done.err
    assert "--into" in done.err
    assert held.read_text() == "mine"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [held]


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), CouldNot("git-failed", "no"), RuntimeError("no")])
def test_what_fails_or_is_interrupted_leaves_nothing(
    make: type[Space], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool, error: BaseException
) -> None:
    def fails(*_: Any) -> None:
        raise error

    into = tmp_path / "it"
    if there:
        into.mkdir()
    monkeypatch.setattr(run._Workspace, "check", fails)
    assert make(tmp_path).gate("demo", "--into", "it").code == 3
    assert list(tmp_path.rglob("*")) == ([into] if there else [])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_one_leaves_no_workspace(
    tmp_path: Path, environment: dict[str, str], number: signal.Signals
) -> None:
    into = tmp_path / "it"
    command = [sys.executable, "-m", "eval_gate", "demo", "--into", "it"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while not list(into.glob(".eval-gate-demo-*/policy/floors.toml")) and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(number)
        process.communicate()
    assert process.returncode == (3 if number == signal.SIGTERM else -signal.SIGKILL)
    if number == signal.SIGTERM:
        assert not into.exists()
    else:
        assert [path.name[:16] for path in into.iterdir()] == [".eval-gate-demo-"]
        assert typed(environment, tmp_path, "--into", "it").returncode == 2


def test_without_git_or_bm25_it_says_so_and_makes_nothing(
    make: type[Space], tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = typed(environment | {"PATH": ""}, tmp_path, "--into", "it")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.splitlines() == [
        "eval-gate: git is not installed, and floors stand on runs of a commit",
        "  Install git.",
    ]
    monkeypatch.setattr(backend, "names", list)
    missing = make(tmp_path).gate("demo", "--into", "it")
    assert (missing.code, missing.out) == (3, "")
    assert missing.err.startswith("eval-gate: there is no backend 'bm25'")
    assert "packages/backends" in missing.err
    assert not (tmp_path / "it").exists()


def test_the_set_is_sound(make: type[Space]) -> None:
    """What is shipped passes the checks that everyone's set has to pass, without a remark."""
    done = make(run.WORKSPACE).core("validate", "notes", "eval.toml")
    assert done.code == 0, done.err
