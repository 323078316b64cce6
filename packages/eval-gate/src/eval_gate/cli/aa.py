"""`eval-gate aa`: one arm measured again and again, unchanged: how much it flips, and what the policy makes of it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

if TYPE_CHECKING:
    from eval_core.config import Workspace
    from eval_core.reports.report import Report
    from eval_gate.policy import ArmFloors, Budget
    from eval_gate.power.models import Flipped, JudgedRun, MeasureFlips, PresentPolicy, Unchanged

_EPILOG = """\b
Examples:
  eval-gate aa memory-bm25                five runs of unchanged code, judged by the policy
  eval-gate aa memory-bm25 --runs 10      enough for floors that are no longer provisional
  eval-gate aa memory-bm25 --format json  for machines

Each run is  eval-core measure ARM  in a process of its own, and leaves what that leaves: its report in
.eval/history/ARM (evidence for a floor), the last one in .eval/reports too. Nothing else is written.

The policy judges each run for quality and latency; what it requires of commits and provenance is left to check.

\b
Exit codes: 0 told; 1 a run of unchanged code does not pass the present policy; 2 wrong usage,
configuration or policy file; 3 measuring failed.
"""

#: Flipped queries that a person is shown; JSON has all of them.
SHOWN = 10

#: How long a measurement that is told to stop may take to stop its backend, in seconds.
PATIENCE = 20


@click.command(epilog=_EPILOG)
@click.argument("arm")
@click.option(
    "--runs", type=click.IntRange(2, 1000), default=5, show_default=True, help="How often to measure."
)
@click.option("--config", type=click.Path(path_type=Path), default=Path("eval.toml"), show_default=True)
@click.option("--policy", type=click.Path(path_type=Path), default=Path("policy"), show_default=True)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def aa(arm: str, runs: int, config: Path, policy: Path, form: str) -> int:
    """Measure an arm RUNS times without a change: its flip rate, the margin that follows, and false alarms."""
    from eval_core.config import load_workspace
    from eval_gate.policy import BUDGETS, FLOORS, Budget, read_budgets, read_floors

    workspace = load_workspace(config)
    workspace.chosen((arm,))
    held: tuple[ArmFloors, Budget] | None = None
    if (policy / FLOORS).exists():
        floors = read_floors(policy / FLOORS)
        budgets = read_budgets(policy / BUDGETS, floors)
        if arm in floors.arms:
            held = floors.arms[arm], budgets.arms.get(arm, Budget())
    reports = []
    for number in range(1, runs + 1):
        click.echo(f"{arm}: run {number} of {runs}", err=True)
        reports.append(_measured(workspace, arm))
        _same(arm, reports[0], reports[-1], drifts=held is not None and held[0].corpus == "drifts")
    found = _joined(arm, reports, held, policy)
    click.echo(found.model_dump_json(by_alias=True, indent=1) if form == "json" else "\n".join(_text(found)))
    return found.exit_code


def _measured(workspace: Workspace, arm: str) -> Report:
    """Measure once, in a process of its own."""
    from eval_core.errors import CouldNot, Misuse
    from eval_core.reports.report import read_report

    # -P: what lies in this folder must not stand in for the program, as it cannot for the script eval-core.
    command = [sys.executable, "-P", "-m", "eval_core", "measure", arm, "--quiet", "--format", "json"]
    command += ["--config", str(workspace.path)]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            _, told = process.communicate()
        except BaseException:
            _stop(process)
            raise
    words = told.decode("utf-8", "replace").strip()
    if process.returncode == 2:
        raise Misuse(f"{arm}: cannot be measured\n{words}", reason="measure-misused")
    path = workspace.output("reports") / f"{arm}.json"
    if process.returncode != 0:
        ended = f"measuring ended with code {process.returncode}"
        rows = f"the first rows that errored are in {path}" if path.exists() else "there is no report"
        raise CouldNot(
            f"{arm}: {ended}, and {rows}" + (f"\n{words}" if words else ""),
            reason="measure-failed",
            remedy=f"Mend it, until this ends with 0:  eval-core measure {arm}",
        )
    return read_report(path, arm)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Let it unwind, which stops its backend; killed outright it could not."""
    # A Ctrl-C in the terminal has reached it too. A second signal would cut its unwinding short.
    for patience, step in ((1, process.terminate), (PATIENCE, process.kill)):
        try:
            process.communicate(timeout=patience)
            return
        except subprocess.TimeoutExpired:
            step()


def _same(arm: str, first: Report, report: Report, *, drifts: bool) -> None:
    """Runs of one task and one system, or what differs between them is no noise."""
    from eval_core.errors import CouldNot
    from eval_core.reports.keys import SYSTEM_PARTS, TASK_PARTS, differences

    parts = [d.part for d in differences(first.task.parts, report.task.parts, TASK_PARTS)]
    parts = [part for part in parts if not (drifts and part == "corpus")]
    parts += [d.part for d in differences(first.system.parts, report.system.parts, SYSTEM_PARTS)]
    if parts:
        raise CouldNot(
            f"{arm}: {', '.join(parts)} changed between the first run and this one, so the code was not unchanged",
            reason="changed-meanwhile",
            remedy="Leave the workspace alone while it is measured.",
        )


def _joined(
    arm: str, reports: Sequence[Report], held: tuple[ArmFloors, Budget] | None, policy: Path
) -> Unchanged:
    from eval_core.errors import CouldNot
    from eval_gate.power.models import Unchanged

    first = reports[0]
    tables = [{row.id: row.metrics for row in report.rows if row.outcome == "scored"} for report in reports]
    common = [row.id for row in first.rows if all(row.id in table for table in tables)]
    if not common:
        raise CouldNot(f"{arm}: no query was scored in every run", reason="nothing-scored")
    measures = [_flips(name, tables, common) for name in first.summary.overall.metrics]
    judged = [_judged(report, arm, held, policy) for report in reports]
    failed = any(run.verdict not in ("pass", None) for run in judged)
    code: Literal[0, 1] = 1 if failed and not (held and held[0].tracked) else 0
    notes = []
    if held is None:
        notes.append(f"no floors for {arm} in {policy}, so no run was judged")
    elif held[0].tracked:
        notes.append("the arm is tracked only, so no run fails the gate")
    if len({report.task.parts.get("corpus") for report in reports}) > 1:
        notes.append("the corpus changed between the runs: what its drift flips is counted too")
    texts = {row.id: row.text for row in first.rows}
    return Unchanged(
        arm=arm,
        set=first.dataset.name,
        headline=first.dataset.headline,
        n=len(common),
        trials=len(common) * (len(reports) - 1),
        runs=tuple(judged),
        measures=tuple(measures),
        flipped=tuple(_flipped(first.dataset.headline, measures, tables, common, texts)),
        policy=_present(first, measures, judged, held),
        notes=tuple(notes),
        exit_code=code,
    )


def _flips(
    name: str, tables: Sequence[Mapping[str, Mapping[str, float]]], queries: Sequence[str]
) -> MeasureFlips:
    """Queries whose value is not what it was in the run before."""
    from eval_core.scoring import metrics
    from eval_core.scoring.statistics import flip_rate_upper
    from eval_gate.floors.propose import flips
    from eval_gate.policy import derived_margin
    from eval_gate.power.models import MeasureFlips

    moved = flips([{query: table[query] for query in queries} for table in tables], name)
    trials = len(queries) * (len(tables) - 1)
    upper = flip_rate_upper(len(moved), trials)
    return MeasureFlips(
        measure=name,
        means=tuple(metrics.mean([table[query][name] for query in queries]) for table in tables),
        flips=len(moved),
        queries=len(set(moved)),
        rate=len(moved) / trials,
        upper=upper,
        margin=derived_margin(len(queries), upper),
    )


def _flipped(
    headline: str,
    measures: Sequence[MeasureFlips],
    tables: Sequence[Mapping[str, Mapping[str, float]]],
    queries: Sequence[str],
    texts: Mapping[str, str],
) -> list[Flipped]:
    """Every query that flipped, by the headline where that did, else by the first measure that did."""
    from eval_gate.policy import TOLERANCE
    from eval_gate.power.models import Flipped

    names = dict.fromkeys((headline, *(one.measure for one in measures)))
    found = []
    for query in queries:
        for name in names:
            values = tuple(table[query][name] for table in tables if name in table[query])
            if values and max(values) - min(values) > TOLERANCE:
                found.append(Flipped(query=query, text=texts[query], measure=name, values=values))
                break
    return found


def _judged(report: Report, arm: str, held: tuple[ArmFloors, Budget] | None, policy: Path) -> JudgedRun:
    from eval_gate.check.evidence import read_baseline
    from eval_gate.check.judge import judge_arm
    from eval_gate.power.models import JudgedRun

    if held is None:
        return JudgedRun(run_id=report.run_id, verdict=None)
    floors, budget = held
    verdict = judge_arm(arm, floors, budget, read_baseline(policy, arm, floors), report)
    return JudgedRun(
        run_id=report.run_id,
        verdict=verdict.verdict,
        codes=tuple(reason.code for reason in verdict.reasons),
        messages=tuple(reason.message for reason in verdict.reasons),
    )


def _present(
    report: Report,
    measures: Sequence[MeasureFlips],
    judged: Sequence[JudgedRun],
    held: tuple[ArmFloors, Budget] | None,
) -> PresentPolicy | None:
    from eval_gate.policy import DEFAULT_MAX_DROP
    from eval_gate.power.models import PresentPolicy, false_alarms
    from eval_gate.power.odds import of_report

    if held is None:
        return None
    floors, budget = held
    names = {report.dataset.headline, *floors.metrics, *DEFAULT_MAX_DROP, *(budget.max_drop or {})}
    worst = max((one for one in measures if one.measure in names), key=lambda one: one.flips, default=None)
    failed = sum(run.verdict != "pass" for run in judged)
    found = []
    # A policy that holds what the runs do not have refuses them, which is told above.
    with contextlib.suppress(ValueError):
        if worst is not None:
            found = [of_report(report, floors, budget, flip_rate=rate) for rate in (worst.rate, worst.upper)]
    return PresentPolicy(
        margin=floors.margin,
        failed=failed,
        share=failed / len(judged),
        measure=worst.measure if worst is not None else report.dataset.headline,
        simulated=false_alarms(*found),
        exact=all(one.exact for one in found),
    )


# The text for a person.


def _text(found: Unchanged) -> list[str]:
    from eval_core.console import clip, count, table

    queries = count(found.n, "query", "queries")
    lines = [f"{clip(found.arm, 60)}  set {clip(found.set, 60)}: {queries}, {len(found.runs)} runs", ""]
    moving = [one for one in found.measures if one.flips or one.measure == found.headline]
    rows = [("measure", "mean", "flips", "queries", "rate", "at most", "margin")]
    for one in moving:
        low, high = min(one.means), max(one.means)
        mean = f"{low:.4f}" if high - low < 1e-9 else f"{low:.4f} to {high:.4f}"
        counts = (f"{one.flips} of {found.trials}", str(one.queries), f"{one.rate:.2%}", f"{one.upper:.2%}")
        rows.append((one.measure, mean, *counts, str(one.margin)))
    lines += [table(rows, right=range(2, 7)), ""]
    still = len(found.measures) - len(moving)
    if still:
        lines.append(f" {count(still, 'other measure')} did not flip once.")
    lines.append(
        " The bound is optimistic: flips cluster by query. The margin is what a run exceeds once in 100 at it."
    )
    if found.flipped:
        shown = [("query", "text", "measure", "run by run")]
        for moved in found.flipped[:SHOWN]:
            values = clip(" ".join(f"{value:.3g}" for value in moved.values), 60)
            shown.append((clip(moved.query, 24), clip(moved.text, 36), moved.measure, values))
        lines += ["", table(shown)]
        if len(found.flipped) > SHOWN:
            lines.append(f" … {len(found.flipped) - SHOWN} more; --format json lists all")
    lines += ["", *_policy_text(found)]
    return lines + [f"Note: {note}" for note in found.notes] + _next(found)


def _policy_text(found: Unchanged) -> list[str]:
    from eval_core.console import clip, paint
    from eval_gate.policy import percent

    held = found.policy
    if held is None:
        return []
    word = paint("FAIL", "red") if held.failed else paint("PASS", "green")
    lines = [
        f"{word}  {held.failed} of {len(found.runs)} runs of unchanged code do not pass the present policy"
    ]
    for run in found.runs:
        for message in run.messages[:3]:
            lines.append(f" {run.run_id}: {clip(message, 200)}")
    if held.simulated:
        rate, upper = held.simulated
        lines.append(
            f" Its false alarm by the model: {percent(rate.fails)} at the measured rate of {held.measure} "
            f"({rate.flip_rate:.2%}), {percent(upper.fails)} at its bound ({upper.flip_rate:.2%})."
        )
    return lines


def _next(found: Unchanged) -> list[str]:
    derived = f"eval-gate floor {found.arm} --margin derived"
    if found.policy is None:
        return [f"Next: {derived}    floors from these runs"]
    if found.policy.failed:
        return [f"Next: {derived}    a margin that these runs explain, or make the arm deterministic"]
    return ["Next: nothing; the runs are in .eval/history as evidence."]
