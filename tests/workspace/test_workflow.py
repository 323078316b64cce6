"""The workflow of docs/ci.md, run step by step in fresh clones of a small repository."""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent))

from test_pages import ROOT, Place, arm, fences, repository

(TEXT,) = [fence.text for fence in fences(ROOT / "docs/ci.md") if fence.language == "yaml"]
WORKFLOW: dict[str, Any] = yaml.safe_load(TEXT)
STEPS: list[dict[str, Any]] = WORKFLOW["jobs"]["gate"]["steps"]


@dataclass
class Forge:
    """Runs the workflow on branches of a repository, each time in a fresh clone."""

    origin: Path
    runs: int = 8811

    def job(self, branch: str, base: str = "") -> tuple[list[int], str, Path]:
        """The exit codes of what it ran, all that was printed with the summary, and what was uploaded."""
        self.runs += 1
        place = Place(self.origin.parent / f"runner-{self.runs}")
        place.root.mkdir()
        artifact = self.origin.parent / f"eval-{self.runs}"
        values = {"${{ github.base_ref }}": base, "${{ github.run_id }}": str(self.runs)}
        summary = place.root.parent / f"summary-{self.runs}.md"
        codes: list[int] = []
        said = ""
        for step in STEPS:
            assert step.get("if", "always()") == "always()"
            if any(codes) and "if" not in step:
                continue
            uses, run, given = step.get("uses", ""), step.get("run", ""), step.get("with", {})
            if uses.startswith("actions/checkout@"):
                assert given["fetch-depth"] == 0
                place.must(f"git clone -q file://{self.origin} . && git checkout -q --detach origin/{branch}")
            elif uses.startswith("actions/upload-artifact@"):
                assert given["include-hidden-files"] is True
                shutil.copytree(place.root / given["path"], artifact)
                assert values[given["name"].removeprefix("eval-")] == str(self.runs)
            elif run and not run.startswith("pip install"):
                env = {name: values.get(value, value) for name, value in step.get("env", {}).items()}
                numbered = {
                    "CI": "true",
                    "GITHUB_RUN_ID": str(self.runs),
                    "GITHUB_STEP_SUMMARY": str(summary),
                }
                done = place.run(run, **numbered, **env)
                codes.append(done.returncode)
                said += done.stdout + done.stderr
        return codes, said + (summary.read_text() if summary.exists() else ""), artifact


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    """A forge with a repository as README leaves it before its bar is set."""
    place = repository(tmp_path)
    place.add("eval.toml", arm("notes-mine"))
    place.add(".gitignore", ".eval/\n")
    place.must("git add . && git commit -qm begin && git clone -q --bare . ../origin.git")
    place.must("git remote add origin ../origin.git && git fetch -q && git branch -q -u origin/main")
    return Forge(tmp_path / "origin.git")


def test_round2_s13_the_workflow_of_the_page_gates(forge: Forge) -> None:
    """S13: red without a bar, whose evidence two of its runs upload; green; red for a worse retriever, and where
    the bar is gone."""
    own = Place(forge.origin.parent / "own")
    first, second = forge.job("main"), forge.job("main")
    assert (first[0], second[0]) == ([0, 2], [0, 2])
    own.must(f"eval-gate floor --from {first[2]} {second[2]} --write")
    own.must("git add policy && git commit -qm bar && git push -q origin main")
    codes, said, _ = forge.job("main")
    assert codes == [0, 0], said
    assert "PASS" in said
    own.must("git checkout -q -b same && git commit -q --allow-empty -m same && git push -q origin same")
    codes, said, _ = forge.job("same", base="main")
    assert codes == [0, 0], said
    assert "PASS" in said
    worse = (own.root / "adapter.py").read_text().replace("in shared[:", "in shared[1:")
    (own.root / "adapter.py").write_text(worse)
    own.must("git checkout -q -b worse && git commit -qam worse && git push -q origin worse")
    codes, said, _ = forge.job("worse", base="main")
    assert codes == [0, 1], said
    assert "FAIL" in said
    own.must("git rm -rq policy && git commit -qm without && git push -q origin worse")
    assert forge.job("worse", base="main")[0] == [0, 2]


def test_the_install_step_names_the_packages_that_there_are() -> None:
    (run,) = [step["run"] for step in STEPS if "pip install" in step.get("run", "")]
    assert re.fullmatch(r"git\+https://\S+@[0-9a-f]{40}", WORKFLOW["env"]["LADDER"])
    named = dict(re.findall(r'"([\w-]+) @ \$LADDER#subdirectory=([\w/-]+)"', run))
    assert run.count('"') == 2 * len(named) == 6
    for name, folder in named.items():
        project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert project["name"] == name
