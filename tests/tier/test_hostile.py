"""An audited repository is hostile input: each ends in an error finding or unknown, soon and small, the rest judged."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tier_support import CI, NOW, REQUIRED, commit, finding, placed, put, settings, whole, workflow

from eval_tier.evidence.files import Working
from eval_tier.evidence.repository import Evidence
from eval_tier.evidence.settings import read_settings
from eval_tier.models import Finding
from eval_tier.placement import place
from eval_tier.render import as_markdown, as_table, one
from eval_tier.rules import findings, registered
from eval_tier.rules.base import Rule

BOMB = "a: &a [x, x]\n" + "".join(
    f"k{n}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(12)
)
HOSTILE = {
    "bomb": BOMB.encode(),
    "cycle": b"on: pull_request\njobs: &a\n  x: *a\n",
    "brackets": b"[" * 100_000,
    "braces": b"{a: " * 50_000,
    "huge": b"on: push\n# " + b"x" * 50_000_000,
    "binary": bytes(range(256)) * 100,
    "documents": b"on: push\n---\non: push\n",
    "tag": b"on: !!python/object/apply:os.system ['true']\n",
    "empty": b"",
    "list": b"- on\n",
    "twice": b"on: push\non: pull_request\njobs: {}\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_one_hostile_workflow_is_one_error_and_the_rest_is_judged(tmp_path: Path, name: str) -> None:
    files = whole() | {".github/workflows/x.yml": HOSTILE[name]}
    began = time.process_time()
    found = placed(tmp_path, files, snapshot=settings("other"))
    assert time.process_time() - began < 5  # a hang, not a measure of speed
    assert [one for one in found.faults if one.startswith(".github/workflows/x.yml")]
    assert finding(found, "T204").outcome == "proven"


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the peak of memory is read from /proc")
@pytest.mark.parametrize("name", ["huge", "bomb", "brackets"])
def test_memory_is_bounded_in_the_whole_command(tmp_path: Path, name: str) -> None:
    commit(put(tmp_path, whole() | {".github/workflows/x.yml": HOSTILE[name]}))
    code = "from eval_tier.cli import main\ntry:\n main()\nfinally:\n print(open('/proc/self/status').read())"
    done = subprocess.run(
        [sys.executable, "-c", code, "audit", "."], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert int(re.search(r"VmHWM:\s+(\d+) kB", done.stdout)[1]) < 100_000  # type: ignore[index]


class Breaks(Rule):
    id, tier, title = "T999", 1, "it breaks"

    def check(self, evidence: Evidence) -> Finding:
        raise RuntimeError("no\x1b[31m")


def test_a_broken_rule_is_an_error_and_the_others_are_asked(tmp_path: Path) -> None:
    put(tmp_path, whole())
    held = place(Evidence("it", Working(tmp_path)), (*registered(), Breaks()))
    broken = finding(held, "T999")
    assert broken.outcome == "error" and "RuntimeError" in broken.what
    assert len(held.findings) == len(registered()) + 1 and held.mechanism == 0
    assert "\x1b" not in as_table([held], NOW, "").replace("\x1b[0m", "").replace("\x1b[31m\x1b[1m", "")


def test_links_out_of_the_repository_are_not_followed(tmp_path: Path) -> None:
    inside = put(
        tmp_path / "in", {name: data for name, data in whole().items() if not name.startswith(".github")}
    )
    put(tmp_path / "out", {"ci.yml": workflow().encode()})
    (inside / ".github").mkdir()
    os.symlink(tmp_path / "out", inside / ".github" / "workflows")
    held = read_settings(REQUIRED, "s.json", NOW)
    found = place(Evidence("it", Working(inside), settings=held), registered())
    assert found.effect == 0
    os.unlink(inside / ".github" / "workflows")
    (inside / ".github" / "workflows").mkdir()
    os.symlink(tmp_path / "out" / "ci.yml", inside / CI)
    assert place(Evidence("it", Working(inside), settings=held), registered()).effect == 0
    files = Working(inside)
    assert (
        files.read("../out/ci.yml") is None
        and files.read("/etc/passwd") is None
        and files.read("a\0b") is None
    )


def test_names_and_texts_act_on_no_terminal_and_no_page(tmp_path: Path) -> None:
    name = "x\x1b[31m\n<script>|`"
    steps = "      - run: \"eval-gate check '\\e[31m<b>|`' || true\"\n      - run: eval-core measure\n"
    put(tmp_path, whole() | {CI: workflow(steps).encode()})
    held = place(Evidence(name, Working(tmp_path)), registered())
    for text in (as_table([held], NOW, ""), as_markdown([held]), one(held)):
        assert "\x1b[31m<" not in text and "\n<script>" not in text
    assert "<script>" not in as_markdown([held]) and "<b>" not in as_markdown([held])


def test_a_rule_sees_no_exception_of_a_workflow_of_garbage(tmp_path: Path) -> None:
    garbage = """on: {pull_request: [1, {a: b}]}
jobs:
  a: [1]
  b: {steps: {x: y}, needs: {z: 1}}
  c: {steps: [[1], 2, {run: [1]}, {uses: {a: b}}]}
  d: {uses: 7, strategy: {matrix: {a: {b: c}}}}
"""
    put(tmp_path, whole() | {CI: garbage.encode()})
    held = findings(Evidence("it", Working(tmp_path)), registered())
    assert "error" not in {one.outcome for one in held}
