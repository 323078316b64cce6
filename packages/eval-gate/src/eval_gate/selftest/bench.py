"""The bench of a self-test: a copy of one arm's policy and report in a temporary folder, altered, graded, put back."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import shutil
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_core.errors import EvalError, Faults
from eval_core.files import canonical, digest
from eval_core.reports.check import rankings_digest, run_digest_of
from eval_core.reports.models import ReportRow
from eval_core.reports.provenance import sidecar, statement
from eval_core.reports.report import Report, dump, read_report
from eval_gate.policy import BASELINES, BUDGETS, EVIDENCE, FLOORS, ArmFloors, Budget, derive_floor
from eval_gate.verdict import Verdict

if TYPE_CHECKING:
    from click import Command

#: Exit code of a gate that failed itself, and the code that stands for it here.
CRASHED, INTERNAL = 3, "internal-error"


class Untried(Exception):
    """An attack that cannot be made of this arm, and why."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the gate said: exit code, (arm, code, message, remedy) of each reason, and the measures that they name."""

    exit_code: int
    reasons: tuple[tuple[str, str, str, str | None], ...]
    metrics: tuple[str, ...] = ()

    @property
    def codes(self) -> tuple[str, ...]:
        """The reason codes, each once, in order."""
        return tuple(dict.fromkeys(code for _, code, _, _ in self.reasons))

    @property
    def message(self) -> str:
        """The first reason's sentence; empty where it passed."""
        return self.reasons[0][2] if self.reasons else ""


def ask(check: Command, policy: Path, reports: Path, config: Path, arms: tuple[str, ...] = ()) -> Outcome:
    """Have `check`, the verb of eval-gate itself, grade, in this process, standing in the folder of the configuration.

    Whatever it raises is an outcome too: a gate that fails itself has neither passed nor refused.
    """
    words = [*arms, "--policy", str(policy), "--reports", str(reports), "--config", str(config)]
    words += ["--format", "json"]
    told = io.StringIO()
    try:
        # Not check.main(), which would make of Ctrl-C an exception like any other.
        with (
            contextlib.chdir(config.parent),
            contextlib.redirect_stdout(told),
            check.make_context("eval-gate check", words) as context,
        ):
            code = check.invoke(context)
        verdict = Verdict.model_validate_json(told.getvalue())
    except Faults as error:
        found = tuple(("", fault.reason, str(fault), error.remedy) for fault in error.faults)
        return Outcome(error.exit_code, found)
    except EvalError as error:
        return Outcome(error.exit_code, (("", error.reason, error.message, error.remedy),))
    except Exception as error:  # noqa: BLE001  # the gate's own fault, which is what a self-test is there to find
        return Outcome(CRASHED, (("", INTERNAL, f"{type(error).__name__}: {error}", None),))
    reasons = [("", one.code, one.message, one.remedy) for one in verdict.reasons]
    reasons += [
        (arm.arm, one.code, one.message, one.remedy)
        for arm in verdict.arms
        if not arm.tracked
        for one in arm.reasons
    ]
    named = [one.metric for arm in verdict.arms for one in arm.reasons if one.metric is not None]
    return Outcome(code if isinstance(code, int) else CRASHED, tuple(reasons), tuple(named))


@dataclass(slots=True)
class Bench:
    """One gating arm's files below `folder`, and what they hold untouched.

    `check` is the verb that grades, `config` the workspace's own eval.toml, and `others` are the reports of other arms.
    """

    arm: str
    check: Command
    config: Path
    folder: Path
    floors: ArmFloors
    budget: Budget
    require: frozenset[str]
    report: Report
    baseline: Report
    others: dict[str, Path]
    gradings: int = 0
    _before: dict[Path, bytes | None] = field(default_factory=dict)

    @property
    def policy(self) -> Path:
        return self.folder / "policy"

    @property
    def floors_path(self) -> Path:
        return self.policy / FLOORS

    @property
    def budgets_path(self) -> Path:
        return self.policy / BUDGETS

    @property
    def baseline_path(self) -> Path:
        return self.policy / BASELINES / f"{self.arm}.json"

    @property
    def report_path(self) -> Path:
        return self.folder / "reports" / f"{self.arm}.json"

    def copies(self) -> list[Path]:
        """The copies of the evidence, in the order in which the floors cite them."""
        return [self.policy / EVIDENCE / self.arm / f"{run.run_id}.json" for run in self.floors.evidence]

    def ask(self, config: Path | None = None, reports: Path | None = None) -> Outcome:
        """Grade what lies here now, or the reports of another folder beside another configuration."""
        self.gradings += 1
        found = ask(self.check, self.policy, reports or self.report_path.parent, config or self.config)
        # Where the copy lies is of no interest to who reads what the gate said.
        short = tuple(
            (arm, code, message.replace(f"{self.folder}{os.sep}", ""), remedy)
            for arm, code, message, remedy in found.reasons
        )
        return dataclasses.replace(found, reasons=short)

    # What attacks do.

    def put(self, path: Path, raw: bytes | None) -> None:
        """Write a file of the bench, or remove it."""
        if path not in self._before:
            self._before[path] = path.read_bytes() if path.exists() else None
        if raw is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(raw)

    @contextlib.contextmanager
    def altered(self) -> Iterator[None]:
        """Put every file back at the end."""
        try:
            yield
        finally:
            for path, raw in self._before.items():
                if raw is None:
                    path.unlink(missing_ok=True)
                else:
                    path.write_bytes(raw)
            self._before.clear()

    def put_report(self, report: Report, path: Path | None = None) -> None:
        """Write a sound report in the place of the arm's, with the provenance that goes with it."""
        place, raw = path or self.report_path, dump(report)
        self.put(place, raw)
        self.put(sidecar(place), canonical(statement(report, raw)) + b"\n")

    def edit_report(self, change: Callable[[Any], object]) -> None:
        """Change the values of the report's file by hand: no digest follows."""
        value = json.loads(self.report_path.read_bytes())
        change(value)
        self.put(self.report_path, json.dumps(value).encode())

    def forge_report(self, change: Callable[[Any], object]) -> None:
        """Change the values of the report's file, and make the digests follow: only what they say of each other is
        wrong then."""

        def redigested(value: Any) -> None:
            change(value)
            rankings = rankings_digest(
                ReportRow.model_validate_json(json.dumps(row)) for row in value["rows"]
            )
            keys = [value[key]["sha256"] for key in ("task", "system")]
            value["digests"] |= {
                "rankings": rankings,
                "quality": digest([*keys, rankings]),
                "run": run_digest_of(value),
            }

        self.edit_report(redigested)

    def edit_floors(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the table of the floors file."""
        self._edit(self.floors_path, change)

    def edit_arm(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the arm's own table of the floors file."""
        self.edit_floors(lambda table: change(table["arms"][self.arm]))

    def edit_budgets(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the table of the budgets file."""
        self._edit(self.budgets_path, change)

    def _edit(self, path: Path, change: Callable[[dict[str, Any]], object]) -> None:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        change(table)
        self.put(path, toml(table))


def toml(table: dict[str, Any]) -> bytes:
    """A table as the bytes of a TOML file."""
    import tomlkit

    return tomlkit.dumps(table).encode()


def derived(arm: dict[str, Any]) -> None:
    """Make the floors of an arm's table follow from what it says of evidence and margin."""
    slices = [("", arm), *arm.get("categories", {}).items()]
    for name, part in slices:
        runs = [run["values"] if not name else run["categories"][name] for run in arm["evidence"]]
        for metric in part["metrics"]:
            worst = min(values[metric] for values in runs)
            floor = derive_floor(metric, worst, part["n"], arm["margin"])
            part["metrics"][metric] = floor.model_dump(exclude_none=True)


def make_bench(
    arm: str,
    check: Command,
    folder: Path,
    config: Path,
    policy: Path,
    reports: Path,
    table: dict[str, Any],
    floors: ArmFloors,
    budget: Budget,
    others: dict[str, Path],
) -> Bench:
    """Copy what one arm is graded on. `table` is the floors file as TOML gives it; of its arms this one is kept.

    Raises:
        EvalError: what the gate passed a moment ago cannot be read any more.
    """
    place = folder / "policy"
    shutil.copytree(policy, place, ignore=shutil.ignore_patterns(BASELINES, EVIDENCE))
    for kind in (BASELINES, EVIDENCE):
        (place / kind).mkdir()
    shutil.copy(policy / BASELINES / f"{arm}.json", place / BASELINES)
    shutil.copytree(policy / EVIDENCE / arm, place / EVIDENCE / arm)
    (place / FLOORS).write_bytes(toml({**table, "arms": {arm: table["arms"][arm]}}))
    bench = Bench(
        arm=arm,
        check=check,
        config=config,
        folder=folder,
        floors=floors,
        budget=budget,
        require=frozenset(table.get("require", ())),
        report=read_report(reports / f"{arm}.json", arm),
        baseline=read_report(policy / BASELINES / f"{arm}.json", arm),
        others=others,
    )
    bench.report_path.parent.mkdir()
    for path in (reports / f"{arm}.json", sidecar(reports / f"{arm}.json")):
        if path.exists():
            shutil.copy(path, bench.report_path.parent)
    bench.edit_budgets(lambda held: _only(held, arm))
    bench._before.clear()  # that is the untouched state
    return bench


def _only(budgets: dict[str, Any], arm: str) -> None:
    """A budget of an arm without floors is a fault, so that those of the others go with their floors."""
    budgets["arms"] = {name: held for name, held in budgets.get("arms", {}).items() if name == arm}
