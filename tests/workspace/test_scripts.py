"""Every script answers at once: --help and --version import click and nothing heavy, and wrong usage exits 2."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS: dict[str, str] = {}
for pyproject in sorted(ROOT.glob("packages/*/pyproject.toml")):
    SCRIPTS |= tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]["scripts"]
VERSION = tomllib.loads((ROOT / "packages/eval-core/pyproject.toml").read_text(encoding="utf-8"))["project"][
    "version"
]
OURS = {"eval_core", "eval_backends", "eval_gate", "eval_tier", "longmemeval_convert"}

# Prints the top-level names of all modules loaded once the script has answered; argument 1 is module:attribute.
LOADED = """
import sys
from importlib import import_module
module, attribute = sys.argv.pop(1).split(":")
try:
    getattr(import_module(module), attribute)()
except SystemExit as done:
    assert done.code in (0, None), done.code
print("LOADED", *sorted({name.partition(".")[0] for name in sys.modules}))
"""


def call(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8", timeout=60
    )


def installed(script: str) -> str:
    path = shutil.which(script, path=str(Path(sys.executable).parent))
    assert path is not None, f"{script} is not installed beside {sys.executable}"
    return path


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_says_how_to_call_it(script: str) -> None:
    done = call(installed(script), "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: {script} ")


@pytest.mark.parametrize("script", SCRIPTS)
def test_version_is_a_name_and_a_number(script: str) -> None:
    done = call(installed(script), "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{script} {VERSION}\n", "")


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("arguments", [["--nonsense"], ["nonsense"]])
def test_wrong_usage_exits_2_and_says_so_on_stderr(script: str, arguments: list[str]) -> None:
    done = call(installed(script), *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nonsense" in done.stderr


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_loads_click_and_nothing_else(script: str) -> None:
    """No numpy, pydantic, rich, rank_bm25, tomlkit, nor any other third party's module."""
    bare = call(sys.executable, "-c", "import sys; print(*{name.partition('.')[0] for name in sys.modules})")
    done = call(sys.executable, "-c", LOADED, SCRIPTS[script], "--help")
    assert done.returncode == 0, done.stderr
    _, marker, loaded = done.stdout.rpartition("LOADED ")
    assert marker, done.stdout
    allowed = {"click", *OURS, *sys.stdlib_module_names, *bare.stdout.split()}
    assert set(loaded.split()) - allowed == set()
    assert "click" in loaded.split()
