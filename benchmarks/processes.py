"""Whole processes, start included: `--help`, and the gate, beside the smallest processes that they could be."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 21
ROOT = Path(__file__).resolve().parent.parent
MODEL = "from pydantic import BaseModel\nclass M(BaseModel):\n    a: int\n    b: str\nM(a=1, b='x')"


def run() -> list[tuple[str, ...]]:
    """Time each command in turn with its yardsticks, and quote medians and ratios of medians."""
    scripts = Path(sys.executable).parent
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "python: one pydantic model": [sys.executable, "-c", MODEL],
        "eval-core --help": [str(scripts / "eval-core"), "--help"],
        "eval-backends --help": [str(scripts / "eval-backends"), "--help"],
        "eval-gate --help": [str(scripts / "eval-gate"), "--help"],
        "eval-gate check, one arm of 55 queries": [str(scripts / "eval-gate"), "check", "memory-bm25"],
    }
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        _gated(place, scripts)
        timings: dict[str, list[float]] = {label: [] for label in commands}
        for _ in range(RUNS):
            for label, command in commands.items():
                began = time.perf_counter()
                subprocess.run(
                    command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True
                )
                timings[label].append(time.perf_counter() - began)
    medians = {label: statistics.median(values) for label, values in timings.items()}
    bare, model = medians["python -c pass"], medians["python: one pydantic model"]
    rows = [
        (label, f"{value * 1000:.0f}", f"{value / bare:.1f}", f"{value / model:.2f}")
        for label, value in medians.items()
    ]
    return [("process", "ms", "against python -c pass", "against one pydantic model"), *rows]


def _gated(place: Path, scripts: Path) -> None:
    """A workspace that passes its own floors, made by the commands that a user types."""
    shutil.copytree(ROOT / "datasets" / "memory", place / "datasets" / "memory")
    shutil.copy(ROOT / "eval.toml", place)
    environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ.get('PATH', '')}"}
    for words in (
        ("eval-core", "measure", "memory-bm25"),
        ("eval-core", "measure", "memory-bm25"),
        ("eval-gate", "floor", "memory-bm25", "--write"),
    ):
        subprocess.run(
            [str(scripts / words[0]), *words[1:]],
            cwd=place,
            env=environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )
