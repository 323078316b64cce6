"""How often unchanged code fails its policy, over real runs of one arm: those of its evidence, or measured anew."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from eval_core.config import Workspace
from eval_core.errors import CouldNot, EvalError, Misuse
from eval_core.policy import TOLERANCE, ArmPolicy, Line, derived_margin, flips, line_of, unlike
from eval_core.policy.faults import faults
from eval_core.reports import Report, read_report
from eval_core.scoring.statistics import flip_rate_upper
from eval_gate.power.models import Flipped, JudgedRun, MeasureFlips, PresentPolicy, Unchanged, at_rates
from eval_gate.power.odds import breaches, odds_of
from eval_gate.verdict import Reason, Word

#: How long a measurement that is told to stop may take to stop its backend, in seconds.
PATIENCE = 20

#: The policy of an arm, the error of reading its evidence, or None: it has no floors.
Held = ArmPolicy | EvalError | None


def measured_again(
    workspace: Workspace, arm: str, runs: int, drift: float | None, note: Callable[[str], None]
) -> list[Report]:
    """Measure an arm so many times, each in a process of its own.

    Args:
        workspace: with the arm in it.
        arm: its name.
        runs: how often.
        drift: the share by which a corpus that moves may change meanwhile.
        note: hears of each run.

    Raises:
        Misuse: it cannot be measured.
        CouldNot: measuring failed, or something changed between the runs.
    """
    found: list[Report] = []
    for number in range(1, runs + 1):
        note(f"{arm}: run {number} of {runs}")
        report = _measured(workspace, arm)
        found.append(report)
        for problem in unlike(line_of(report), line_of(found[0]), drift):
            raise CouldNot(
                "changed-meanwhile",
                f"the code did not stay unchanged: {problem.what}",
                subject=f"{arm}, run {number}",
                mend="Leave the workspace alone while it is measured.",
            )
    return found


def _measured(workspace: Workspace, arm: str) -> Report:
    # -P: what lies in this folder must not stand in for the program, as it cannot for the script eval-core.
    command = [sys.executable, "-P", "-m", "eval_core", "measure", arm, "--quiet", "--format", "json"]
    command += ["--config", str(workspace.path)]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            _, errors = process.communicate()
        except BaseException:
            _stop(process)
            raise
    words = errors.decode("utf-8", "replace").strip()
    if process.returncode == 2:
        raise Misuse("measure-misused", f"it cannot be measured\n{words}", subject=arm)
    path = workspace.output("reports") / f"{arm}.json"
    if process.returncode != 0:
        rows = f"the first rows that errored are in {path}" if path.exists() else "there is no report"
        ended = f"measuring ended with code {process.returncode}, and {rows}"
        raise CouldNot(
            "measure-failed",
            f"{ended}\n{words}" if words else ended,
            subject=arm,
            mend=f"Mend it, until this ends with 0:  eval-core measure {arm}",
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


def of_reports(arm: str, held: Held, reports: Sequence[Report], policy: Path) -> Unchanged:
    """What runs that were measured say, each judged for quality and latency as `check` does.

    Raises:
        CouldNot: no query was scored in every run.
    """
    from eval_gate.check import judge_arm

    judged = []
    for report in reports:
        if held is None:
            judged.append(JudgedRun(run_id=report.run_id, verdict=None))
            continue
        verdict = judge_arm(arm, held, report)
        judged.append(_judged(report.run_id, verdict.verdict, verdict.reasons))
    texts = {row.id: row.text for row in reports[0].rows}
    notes = [f"no floors for {arm} in {policy}, so no run was judged"] if held is None else []
    return _joined(arm, held, list(map(line_of, reports)), judged, texts, notes)


def of_evidence(arm: ArmPolicy) -> Unchanged:
    """What the runs say that the floors of an arm stand on, each judged for quality alone.

    Raises:
        Refused: the policy has faults, the first of them.
        CouldNot: no query was scored in every run.
    """
    for fault in faults(arm):
        raise fault
    judged = []
    for line in arm.lines:
        failed = breaches(arm, {bar.measure: line.column(bar.measure) for bar in arm.bars})
        judged.append(
            JudgedRun(run_id=line.run_id, verdict="fail" if failed else "pass", messages=tuple(failed))
        )
    note = f"the floors stand on these runs; those that are measured anew say more:  eval-gate aa {arm.name}"
    return _joined(arm.name, arm, arm.lines, judged, {}, [note])


def _judged(run: str, verdict: Word, reasons: Sequence[Reason]) -> JudgedRun:
    return JudgedRun(
        run_id=run,
        verdict=verdict,
        codes=tuple(reason.code for reason in reasons),
        messages=tuple(reason.message for reason in reasons),
    )


def _joined(
    arm: str,
    held: Held,
    lines: Sequence[Line],
    judged: Sequence[JudgedRun],
    texts: Mapping[str, str],
    notes: Sequence[str],
) -> Unchanged:
    first = lines[0]
    in_all = set.intersection(*({entry.id for entry in line.scored} for line in lines))
    common = [entry.id for entry in first.scored if entry.id in in_all]
    if not common:
        raise CouldNot("no-query-scored", "no query was scored in every run", subject=arm)
    measures = [_flips(name, lines, len(common)) for name in first.measures]
    if len({str(line.task.get("corpus")) for line in lines}) > 1:
        notes = [*notes, "the corpus changed between the runs: what its drift flips is counted too"]
    return Unchanged(
        arm=arm,
        set=first.set.name if first.set else "",
        headline=first.headline,
        n=len(common),
        trials=len(common) * (len(lines) - 1),
        runs=tuple(judged),
        measures=tuple(measures),
        flipped=tuple(_flipped(measures, lines, common, texts)),
        policy=None if held is None else _present(held, measures, judged),
        notes=tuple(notes),
        exit_code=1 if any(run.verdict not in ("pass", None) for run in judged) else 0,
    )


def _flips(name: str, lines: Sequence[Line], n: int) -> MeasureFlips:
    moved, trials = flips(lines, name), n * (len(lines) - 1)
    upper = flip_rate_upper(len(moved), trials)
    return MeasureFlips(
        measure=name,
        means=tuple(line.mean(name) for line in lines),
        flips=len(moved),
        queries=len(set(moved)),
        rate=len(moved) / trials,
        upper=upper,
        margin=derived_margin(n, upper),
    )


def _flipped(
    measures: Sequence[MeasureFlips], lines: Sequence[Line], queries: Sequence[str], texts: Mapping[str, str]
) -> Iterator[Flipped]:
    """Every query that flipped, by the headline where that did, else by the first measure that did."""
    headline = lines[0].headline
    names = sorted((one.measure for one in measures if one.flips), key=lambda name: name != headline)
    tables = {
        name: [
            dict(zip((entry.id for entry in line.scored), line.column(name), strict=True)) for line in lines
        ]
        for name in names
    }
    for query in queries:
        for name, runs in tables.items():
            values = tuple(run[query] for run in runs)
            if max(values) - min(values) > TOLERANCE:
                yield Flipped(query=query, text=texts.get(query), measure=name, values=values)
                break


def _present(
    held: ArmPolicy | EvalError, measures: Sequence[MeasureFlips], judged: Sequence[JudgedRun]
) -> PresentPolicy:
    failed = sum(run.verdict != "pass" for run in judged)
    found = PresentPolicy(failed=failed, share=failed / len(judged))
    if isinstance(held, EvalError) or faults(held):
        return found  # and every run is refused for it
    names = {bar.measure for bar in held.bars}
    worst = max((one for one in measures if one.measure in names), key=lambda one: one.flips)
    rates = (worst.rate, worst.upper)
    odds = odds_of(held, drops=(), flip_rates=rates)
    return found.model_copy(
        update={
            "margin": held.margin,
            "measure": worst.measure,
            "false_alarms": at_rates(odds.alarms),
            "exact": odds.exact,
        }
    )
