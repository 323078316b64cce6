"""The ways in, nox and make and CI, are all there, say what they do, and agree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BY_DEFAULT = {"lint", "types", "schemas", "tests"}
ON_REQUEST = {"reconstruct", "measure", "gate", "selftest", "peers", "wheels", "bench"}


def call(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    # Run from within make, the outer make's flags would reach the inner one.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "NOX"))}
    return subprocess.run(
        command, cwd=ROOT, env=inherited | environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        encoding="utf-8", timeout=60,
    )  # fmt: skip


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = shutil.which("make")
    assert path is not None, "make is not installed"
    return call(path, *arguments)


def test_every_session_is_there_and_explains_itself() -> None:
    done = call(sys.executable, "-m", "nox", "--list")
    assert done.returncode == 0, done.stderr
    listed = re.findall(r"^[*-] (\w+)(?: -> (.*))?$", done.stdout, re.MULTILINE)
    assert {name for name, _ in listed} >= BY_DEFAULT | ON_REQUEST
    assert not [name for name, description in listed if not description]


def test_nox_alone_checks_and_tests() -> None:
    done = call(sys.executable, "-m", "nox", "--list")
    assert set(re.findall(r"^\* (\w+)", done.stdout, re.MULTILINE)) == BY_DEFAULT


def test_make_alone_lists_every_target() -> None:
    done = make()
    assert done.returncode == 0
    assert re.findall(r"^  make (\w+) +\S", done.stdout, re.MULTILINE) == [
        "help",
        "measure",
        "test",
        "gate",
        "clean",
    ]


@pytest.mark.parametrize(
    ("python", "says"),
    [
        ("no-such-python", "no 'no-such-python' here"),
        ("{old}", "is too old, 3.11 or newer"),
        ("{bare}", "without venv or pip"),
    ],
)
def test_make_says_in_one_line_what_python_it_needs(python: str, says: str, tmp_path: Path) -> None:
    """Stand-ins: this Python, claiming to be an older one, and without its venv package."""
    for name, change in (
        ("old", "sys.version_info = (3, 10, 9)"),
        ("bare", "sys.modules['ensurepip'] = None"),
    ):
        stand_in = tmp_path / name
        stand_in.write_text(
            f"""#!/bin/sh
            test "$1" = -V && echo Python 3.x && exit
            test "$1" = -c && exec '{sys.executable}' -c "import sys; {change}; exec(sys.argv[1])" "$2"
            echo "called with $*" >&2; exit 1
            """,
            encoding="utf-8",
        )
        stand_in.chmod(0o755)
    # A tree of its own: the target is up to date in this one.
    for name in ("Makefile", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    given = python.format(old=tmp_path / "old", bare=tmp_path / "bare")
    done = make("-C", str(tmp_path), "--no-print-directory", "test", f"PYTHON={given}")
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if "***" not in line]
    assert len(lines) == 1
    assert says in lines[0]
    assert not (tmp_path / ".venv").exists()


def test_ci_runs_what_a_person_runs() -> None:
    """K4: measuring and gating happen inside the one job that is required."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    steps = re.findall(r"^(?:make|\.venv/bin/python -m nox -s) (\w+)", script, re.MULTILINE)
    assert steps == ["test", "gate", "tests", "selftest", "peers", "wheels"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert re.findall(r"^ +run: (\S+)$", workflow, re.MULTILINE) == [".ci/run", "|"]
    assert "continue-on-error" not in workflow


def test_tools_and_packages_agree_on_the_oldest_python() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    core = tomllib.loads((ROOT / "packages/eval-core/pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert core["requires-python"] == ">=3.11"
    assert tools["mypy"]["python_version"] == "3.11"
    assert tools["ruff"]["target-version"] == "py311"
