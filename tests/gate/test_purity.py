"""The gate reads and judges: it opens no connection, starts nothing, writes nothing, and imports little."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Space

# Runs a script with every way out closed: what it tries to open, start or write ends it with code 99. Prints the
# names of all loaded modules to the file descriptor in LOADED.
SEALED = """
import os, sys
loaded = int(os.environ.pop("LOADED"))
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CLOSED = ("socket.", "subprocess.", "os.exec", "os.posix_spawn", "os.fork", "os.system", "os.spawn", "os.remove",
          "os.rename", "os.mkdir", "os.rmdir", "os.chmod", "os.chown", "os.link", "os.symlink", "os.truncate",
          "os.utime", "shutil.", "tempfile.", "ftplib.", "http.", "urllib.", "smtplib.", "sqlite3.", "webbrowser.",
          "ctypes.")
def guard(event, arguments):
    if event.startswith(CLOSED) or (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES):
        os.write(2, f"TRIED {event} {arguments!r}\\n".encode())
        os._exit(99)
sys.addaudithook(guard)
sys.argv = ["script", *sys.argv[1:]]
code = 98
try:
    BODY
except SystemExit as done:
    code = done.code
sys.stdout.flush()
os.write(loaded, " ".join(sorted(sys.modules)).encode())
sys.exit(code)
"""
GATE = "from eval_gate.cli import main; main()"


def sealed(space: Space, *arguments: str, body: str = GATE) -> tuple[int, str, set[str]]:
    """Run in a process of its own, sealed, with no git and no other program on its path."""
    read, write = os.pipe()
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV", "GIT_"))
    }
    environment |= {"PATH": "", "LOADED": str(write)}
    try:
        done = subprocess.run(
            [sys.executable, "-B", "-c", SEALED.replace("BODY", body), *arguments],
            cwd=space.root,
            env=environment,
            pass_fds=[write],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        os.close(write)
        write = -1
        with os.fdopen(read, closefd=False) as stream:
            modules = set(stream.read().split())
    finally:
        os.close(read)
        if write >= 0:
            os.close(write)
    return done.returncode, done.stdout + done.stderr, modules


def stats(space: Space) -> dict[str, tuple[int, int, int]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.stat().st_ino, path.stat().st_size)
        for path in [space.root, *space.root.rglob("*")]
    }


@pytest.mark.parametrize(
    ("state", "code"),
    [("pass", 0), ("fail", 1), ("refused", 1), ("no policy", 2)],
)
def test_a_check_touches_nothing_outside_itself(space: Space, state: str, code: int) -> None:
    """K3: pure and offline: no socket, no process, no file opened to write; no byte and no time of a file changes."""
    if state == "fail":
        assert space.measure(space.losing(5)).code == 0
    elif state == "refused":
        space.report.write_text("{")
    elif state == "no policy":
        space.floors.unlink()
    before, times = space.tree(), stats(space)
    for path in (space.root / "policy").rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    for arguments in (["check"], ["check", "--format", "json"]):
        done, output, _ = sealed(space, *arguments)
        assert done == code, output
    assert space.tree() == before
    assert stats(space) == times
    for path in (space.root / "policy").rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.mark.parametrize(
    ("body", "tried"),
    [
        (GATE, "TRIED"),
        ("import socket; socket.socket()", "TRIED socket.__new__"),
        ("import subprocess; subprocess.run(['true'])", "TRIED subprocess.Popen"),
        ("open('x', 'w')", "TRIED open"),
    ],
)
def test_the_seal_would_notice(space: Space, body: str, tried: str) -> None:
    """K3: writing a floor, a connection, a process or a file ends the sealed process: the test above can fail."""
    for _ in range(2):
        assert space.measure({"q27": 3}).code == 0
    done, output, _ = sealed(space, "floor", "--reason", "floors=again", "--write", body=body)
    assert (done, tried in output) == (99, True), output


def test_a_bar_is_proposed_without_writing(space: Space) -> None:
    """K3, A4: without --write no verb writes."""
    done, output, _ = sealed(space, "floor")
    assert done == 0, output


OURS = {
    "eval_core",
    "eval_core.cli",
    "eval_core.cli.app",
    "eval_core.cli.output",
    "eval_core.cli.workspace",
    "eval_core.console",
    "eval_core.errors",
    "eval_core.files",
    "eval_core.measuring",
    "eval_core.measuring.environment",
    "eval_core.models",
    "eval_core.policy",
    "eval_core.policy.arm",
    "eval_core.policy.bars",
    "eval_core.policy.chance",
    "eval_core.policy.eligibility",
    "eval_core.policy.evidence",
    "eval_core.policy.faults",
    "eval_core.policy.files",
    "eval_core.policy.models",
    "eval_core.reports",
    "eval_core.reports.check",
    "eval_core.reports.entries",
    "eval_core.reports.keys",
    "eval_core.reports.models",
    "eval_core.reports.provenance",
    "eval_core.reports.provenance.configuration",
    "eval_core.reports.report",
    "eval_core.scoring",
    "eval_core.scoring.memory",
    "eval_core.scoring.metrics",
    "eval_core.scoring.statistics",
    "eval_gate",
    "eval_gate.check",
    "eval_gate.check.changes",
    "eval_gate.check.checkout",
    "eval_gate.check.eligibility",
    "eval_gate.check.head",
    "eval_gate.check.judge",
    "eval_gate.check.origin",
    "eval_gate.check.rules",
    "eval_gate.cli",
    "eval_gate.cli.check",
    "eval_gate.render",
    "eval_gate.render.place",
    "eval_gate.render.table",
    "eval_gate.render.words",
    "eval_gate.verdict",
}
THIRD_PARTY = {
    "annotated_types",
    "click",
    "pydantic",
    "pydantic_core",
    "typing_extensions",
    "typing_inspection",
}


def test_a_check_loads_little(space: Space) -> None:
    """K3: no backend, no numpy, no rich, no TOML writer, nothing of measuring: the light set of modules is listed."""
    done, output, loaded = sealed(space, "check")
    assert done == 0, output
    _, _, bare = sealed(space, body="pass")
    extra = loaded - bare
    ours = {name for name in extra if name.startswith("eval_")}
    assert ours - OURS == set(), "one more module of ours on the gate's path"
    tops = {name.partition(".")[0] for name in extra if not name.startswith(("eval_", "_"))}
    assert tops - THIRD_PARTY - sys.stdlib_module_names == set()
    heavy = {"asyncio", "concurrent", "http", "multiprocessing", "sqlite3", "ssl", "unittest", "xml"}
    assert heavy & tops == set()


@pytest.mark.parametrize("state", ["pass", "fail", "refused"])
def test_statistics_are_loaded_where_an_arm_is_graded(space: Space, state: str) -> None:
    """K3: a refusal needs none; the random rankings of floors are never on the gate's path."""
    if state == "fail":
        assert space.measure(space.losing(5)).code == 0
    elif state == "refused":
        space.report.write_text("{")
    _, output, loaded = sealed(space, "check")
    assert state == "pass" or state.upper() in output
    assert ("eval_core.scoring.statistics" in loaded) is (state != "refused")
    assert loaded & {
        "eval_gate.floors.chance",
        "eval_gate.power.odds",
        "eval_gate.floors.propose",
        "eval_gate.floors.difference",
        "eval_gate.floors.target",
        "eval_gate.promotion.state",
        "random",
    } <= {"random"}


def test_git_is_started_in_class_ci_and_with_a_target_alone(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K3: the commit that is checked out is read from files; the help says where git is started."""
    space.commit()
    assert space.measure().code == 0
    done, output, loaded = sealed(space, "check", "--require", "head", "--format", "json")
    assert done == 0, output
    assert "working tree" not in output
    assert "subprocess" not in loaded
    done, output, _ = sealed(space, "check", "--target", "HEAD")
    assert done in (3, 99), output
    monkeypatch.setenv("EVAL_ENV_CLASS", "ci")
    done, output, _ = sealed(space, "check")
    assert done == 99, output
    assert "TRIED subprocess" in output
    assert "Git is started with --target and in class `ci`" in " ".join(
        space.gate("check", "--help").out.split()
    )


def test_nothing_looks_for_plugins(space: Space) -> None:
    """K3: entry points are never read on the gate's path, neither ours nor another library's."""
    forbid = (
        "import importlib.metadata as m; "
        "m.entry_points = m.distributions = m.distribution = lambda *a, **k: os._exit(97); "
    )
    done, output, _ = sealed(space, "check", body=forbid + GATE)
    assert done == 0, output
    done, output, _ = sealed(space, body=forbid + "from eval_core.backend import names; names()")
    assert done == 97, output
