"""What the tests of provenance and publishing share: this repository's memory set, measured for good."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core_support import Done, call, write_policy

from eval_core.cli import main
from eval_core.cli.app import run
from eval_core.cli.publish import publish as command
from eval_core.policy.evidence import Line, path_of
from eval_core.policy.files import read_baseline
from eval_core.reports.report import Report, parse_report

MEMORY = Path(__file__).resolve().parents[2] / "datasets" / "memory"

EVAL_TOML = """\
[arms."plain"]
dataset = "memory"
backend = "bm25"

[arms."kind"]
dataset = "memory"
backend = "bm25"
filter_from = ["kind"]
options.k1 = 1.2
"""


class Desk:
    """A workspace of two arms: reports with their provenance in `kept`, and the policy that stands on them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.page = root / "README.md"
        self.waivers = root / "policy" / "waivers.toml"
        self.config = root / "eval.toml"
        self.policy = root / "policy"

    def report(self, arm: str = "plain") -> Path:
        """Where a report lies."""
        return self.root / "kept" / f"{arm}.json"

    def sidecar(self, arm: str = "plain") -> Path:
        """Where its provenance lies."""
        return self.root / "kept" / f"{arm}.intoto.jsonl"

    def evidence(self, arm: str = "plain") -> Path:
        """Where the evidence of an arm lies."""
        return path_of(self.policy, arm)

    def line(self, arm: str = "plain") -> Line:
        """The baseline of an arm."""
        return read_baseline(self.policy, arm)

    def stand(self) -> None:
        """Let the policy stand on the reports as they are kept."""
        write_policy(self.policy, {arm: [self.read(arm)[0]] for arm in ("plain", "kind")})

    def read(self, arm: str = "plain") -> tuple[Report, bytes]:
        """A report, with its bytes."""
        raw = self.report(arm).read_bytes()
        return parse_report(raw, self.report(arm), arm), raw

    def alter(self, path: Path, change: Callable[[Any], object]) -> None:
        """Change what a JSON file holds, in place."""
        value = json.loads(path.read_bytes())
        change(value)
        path.write_text(json.dumps(value, ensure_ascii=False), "utf-8")

    def core(self, *arguments: str | Path) -> Done:
        """Run eval-core here."""
        return call(main, *arguments, where=self.root)

    def publish(self, *arguments: str | Path) -> Done:
        """Run `eval-core publish` here."""
        return call(lambda: run(command, "eval-core publish"), *arguments, where=self.root)

    def told(self, *arguments: str | Path) -> Any:
        """What `publish --format json` prints, which is on standard output for exit codes 0 and 1."""
        done = self.publish("--format", "json", *arguments)
        assert done.code in (0, 1), done.err
        value = json.loads(done.out)
        assert value["exit_code"] == done.code
        return value

    def codes(self, *arguments: str | Path) -> list[str]:
        """The reason codes of that."""
        return [reason["code"] for reason in self.told(*arguments)["reasons"]]


def measured(root: Path) -> Desk:
    """Measure both arms in an empty folder, and keep the reports as they are."""
    desk = Desk(root)
    shutil.copytree(MEMORY, root / "memory")
    desk.config.write_text(EVAL_TOML)
    done = desk.core("measure", "-q")
    assert done.code == 0, done.err
    shutil.copytree(root / ".eval" / "reports", root / "kept")
    desk.stand()
    return desk
