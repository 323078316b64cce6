"""Small repositories to audit: a whole one of our own data, edits of it, and the settings of its branch."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from eval_core.config import Audit
from eval_tier.cli import main
from eval_tier.evidence.files import Working
from eval_tier.evidence.repository import Evidence
from eval_tier.evidence.settings import read_settings, sealed
from eval_tier.models import Finding, Placement
from eval_tier.placement import place
from eval_tier.rules import registered

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
ARM = "dedupe-bm25"
CI = ".github/workflows/ci.yml"

STEPS = """\
      - uses: actions/checkout@v4
      - run: eval-core measure
      - run: eval-gate check
      - run: eval-core publish --check README.md
"""
ON = "on:\n  pull_request:\n  merge_group:\n"
JOB = "  gate:\n    runs-on: ubuntu-latest\n"


def workflow(steps: str = STEPS, *, on: str = ON, job: str = JOB, more: str = "") -> str:
    """A workflow with the one job `gate`."""
    return f"{on}jobs:\n{job}    steps:\n{steps}{more}"


def whole() -> dict[str, bytes]:
    """The files of a repository at tier 3 by mechanism: one arm of this repository, with its bar and evidence."""
    folder = ROOT / "datasets" / "dedupe"
    files = {p.relative_to(ROOT).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    floors = (ROOT / "policy" / "floors.toml").read_text()
    table = floors.split(f'[arms."{ARM}"]')[1].split("\n[", 1)[0]
    files["policy/floors.toml"] = f'schema = "floors-v2"\n\n[arms."{ARM}"]{table}'.encode()
    files[f"policy/evidence/{ARM}.jsonl"] = (ROOT / "policy" / "evidence" / f"{ARM}.jsonl").read_bytes()
    files["eval.toml"] = f'[arms."{ARM}"]\ndataset = "datasets/dedupe"\nbackend = "bm25"\n'.encode()
    files["README.md"] = b"Recall is <!-- metric dedupe-bm25 recall@10 -->0.799<!-- /metric -->.\n"
    files[CI] = workflow().encode()
    return files


#: A repository of none of our tools, after the published notes agent: measures, grades, declares both.
FOREIGN: dict[str, bytes] = {
    "evals/gold.jsonl": b'{"query": "who?", "expected": "a.md"}\n',
    "evals/thresholds.toml": b'[unfiltered]\nn = 27\n"recall@1" = 0.88\nmrr = 0.9\n',
    "scripts/eval_gate.py": b"raise SystemExit(0)\n",
    CI: workflow(
        "      - uses: actions/checkout@v4\n"
        "      - run: uv run python scripts/eval_retrieval.py --json\n"
        "      - run: uv run python scripts/eval_gate.py\n"
    ).encode(),
}
DECLARED = Audit(
    measure=("python scripts/eval_retrieval.py",),
    gate=("python scripts/eval_gate.py",),
    floors=("evals/thresholds.toml",),
    inputs=("evals/gold.jsonl",),
    states={
        "T202": "two runs of CI, of August and September",
        "T208": "the script refuses rows with an error",
    },
)


def settings(
    *required: str,
    app: int | None = 15368,
    admins: bool = True,
    queue: bool = False,
    observed: str = "2026-11-30T09:00:00Z",
    branch: str = "main",
) -> bytes:
    """A snapshot of a branch on which classic protection requires these checks."""
    checks = [{"context": name, "app_id": app} for name in required]
    protection = {
        "required_status_checks": {"contexts": list(required), "checks": checks},
        "enforce_admins": {"enabled": admins},
    }
    rules: list[dict[str, Any]] = []
    if queue:
        rules.append({"type": "merge_queue", "ruleset_id": 5, "parameters": {}})
    answers = {
        "/repos/o/r": {"id": 77, "default_branch": branch},
        f"/repos/o/r/branches/{branch}": {"name": branch, "protected": True},
        f"/repos/o/r/branches/{branch}/protection": protection,
        f"/repos/o/r/rules/branches/{branch}?per_page=100": rules,
        "/repos/o/r/rulesets/5": {"name": "five", "enforcement": "active", "bypass_actors": []},
    }
    calls = [{"path": path, "status": 200, "etag": None, "body": body} for path, body in answers.items()]
    fields = {
        "schema": "snapshot-v1", "repository": "o/r", "branch": branch, "forge": "github", "forge_version": None,
        "tool": "eval-tier 0.1.0", "observed": observed, "calls": calls, "settings": None,
    }  # fmt: skip
    return json.dumps(sealed(fields)).encode()


REQUIRED = settings("gate")


class Done(NamedTuple):
    code: int
    out: str
    err: str


def tier(folder: Path, *words: str | Path) -> Done:
    """`eval-tier` as it is typed in a folder, in this process."""
    out, err, given = io.StringIO(), io.StringIO(), sys.argv
    handler = signal.getsignal(signal.SIGTERM)
    sys.argv = ["eval-tier", *map(str, words)]
    code: object = "did not exit"
    try:
        with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as done:
        code = done.code
    finally:
        sys.argv = given
        signal.signal(signal.SIGTERM, handler)
    assert isinstance(code, int) and "internal error" not in err.getvalue(), err.getvalue()
    return Done(code, out.getvalue(), err.getvalue())


def tier_process(folder: Path, *words: str | Path) -> Done:
    """`eval-tier` in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "eval_tier", *map(str, words)], cwd=folder, capture_output=True, text=True,
        env=os.environ | {"NO_COLOR": "1"}, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert "Traceback" not in done.stderr and "internal error" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def put(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def commit(folder: Path) -> Path:
    """The folder as a git repository of one commit."""
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
            cwd=folder,
            check=True,
            capture_output=True,
        )
    return folder


def placed(
    folder: Path, files: Mapping[str, bytes], *, snapshot: bytes | None = None, audit: Audit | None = None
) -> Placement:
    """Where a repository of these files sits."""
    put(folder, files)
    held = None if snapshot is None else read_settings(snapshot, "s.json", NOW)
    return place(Evidence("it", Working(folder), audit=audit, settings=held), registered())


def finding(placement: Placement, rule: str) -> Finding:
    return next(one for one in placement.findings if one.rule == rule)
