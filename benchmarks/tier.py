"""Auditing many repositories, beside the least that reading them could be.

`python -m benchmarks.tier FOLDER` is the yardstick: two git processes a repository, and `yaml.compose` with the C
loader over the same workflows.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

#: Workflows of a repository; the first one is its gate.
WORKFLOWS = 10

_GATE = """on: [pull_request, merge_group]
jobs:
  gate:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: python scripts/eval_retrieval.py
      - run: python scripts/eval_gate.py
"""
_OTHER = """name: job {number} of {name}
on:
  pull_request:
    branches: [main]
  push:
    branches: [main]
permissions:
  contents: read
jobs:
  build:
    runs-on: ubuntu-latest
    strategy:
      matrix:
        python: ["3.11", "3.12", "3.13"]
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: ${{{{ matrix.python }}}}
      - name: install
        run: |
          python -m pip install --upgrade pip
          pip install -e .[test]
      - name: test
        env:
          MODE: ci
        run: |
          set -euo pipefail
          pytest -q --junitxml=report.xml | tee log-{name}.txt
      - if: always()
        uses: actions/upload-artifact@v4
        with:
          name: report-${{{{ matrix.python }}}}
          path: report.xml
  publish:
    needs: [build]
    if: github.event_name == 'push'
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: twine upload dist/{name}-{number}.whl
"""
_DECLARED = """audit.measure = ["python scripts/eval_retrieval.py"]
audit.gate = ["python scripts/eval_gate.py"]
audit.floors = ["floors.toml"]
audit.inputs = ["gold.jsonl"]
audit.states = { T202 = "two runs", T208 = "it refuses them" }
"""


def run() -> list[tuple[str, ...]]:
    """Audit 1, 100 and 1,000 repositories of ten workflows."""
    script = str(Path(sys.executable).parent / "eval-tier")
    rows: list[tuple[str, ...]] = [
        ("repositories", "what", "CPU s", "seconds", "peak MB", "CPU, of the yardstick's")
    ]
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for count in (1, 100, 1_000):
            folder = place / str(count)
            for number in range(count):
                make(folder / f"r{number:04}")
            fleet = "".join(f'[[repository]]\npath = "r{number:04}"\n{_DECLARED}' for number in range(count))
            (folder / "fleet.toml").write_text(f'schema = "fleet-v1"\n{fleet}')
            least = timed(place, [sys.executable, "-m", "benchmarks.tier", str(folder)])
            ours = timed(place, [script, "audit", "--fleet", str(folder / "fleet.toml"), "--format", "json"])
            for what, cost in (("git and yaml.compose", least), ("eval-tier audit", ours)):
                ratio = f"{cost['cpu'] / least['cpu']:.2f}"
                shown = (f"{cost['cpu']:.2f}", f"{cost['wall']:.2f}", f"{cost['peak'] / 1e6:.0f}")
                rows.append((f"{count:,}", what, *shown, ratio))
    return rows


def make(folder: Path) -> None:
    """A repository with a gate, floors and nine more workflows."""
    workflows = folder / ".github" / "workflows"
    workflows.mkdir(parents=True)
    (workflows / "gate.yml").write_text(_GATE)
    for number in range(1, WORKFLOWS):
        (workflows / f"w{number}.yml").write_text(_OTHER.format(number=number, name=folder.name))
    (folder / "floors.toml").write_text('[all]\nn = 27\n"recall@1" = 0.88\n')
    (folder / "gold.jsonl").write_text('{"query": "who?", "expected": "a.md"}\n')
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words], cwd=folder, check=True
        )


def timed(place: Path, command: list[str]) -> dict[str, float]:
    """Wall, CPU and peak memory of a whole process with its children."""
    timer = Path(__file__).with_name("timed.py")
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(timer), str(place / "out"), *command],
        stdout=subprocess.PIPE,
        check=False,
    )
    cost: dict[str, float] = json.loads(done.stdout)
    return cost


def yardstick(folder: Path) -> None:
    """Read what an audit must read, and nothing else."""
    import yaml

    for repository in sorted(path for path in folder.iterdir() if path.is_dir()):
        for words in (("rev-parse", "HEAD"), ("ls-tree", "-r", "HEAD")):
            subprocess.run(["git", *words], cwd=repository, check=True, stdout=subprocess.DEVNULL)
        for file in sorted((repository / ".github" / "workflows").iterdir()):
            yaml.compose(file.read_text(), Loader=yaml.CSafeLoader)


if __name__ == "__main__":
    yardstick(Path(sys.argv[1]))
