"""`eval-gate aa`: one arm again and again, unchanged: how much it flips, and what the policy makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_core.cli.workspace import beside, config_option

if TYPE_CHECKING:
    from eval_core.policy import Policy
    from eval_gate.power import Unchanged
    from eval_gate.power.aa import Held

_EPILOG = """\b
Examples:
  eval-gate aa memory-bm25                five runs of unchanged code, judged by the policy
  eval-gate aa memory-bm25 --runs 10      enough for floors that are no longer provisional
  eval-gate aa memory-bm25 --evidence     the runs that its floors stand on; nothing is measured
  eval-gate aa memory-bm25 --format json  for machines

Each run is  eval-core measure ARM  in a process of its own, and leaves what that leaves: its report in
.eval/history/ARM (evidence for a floor), the last one in .eval/reports too. Nothing else is written.

The policy judges each run for quality and latency (a run of the evidence for quality alone); what it requires of
commits and provenance is left to check.

\b
Exit codes: 0 said; 1 a run of unchanged code does not pass the present policy; 2 wrong usage,
configuration or policy file; 3 measuring failed.
"""


@click.command(epilog=_EPILOG)
@click.argument("arm")
@click.option("--runs", type=click.IntRange(2, 1000), help="How often to measure.  [default: 5]")
@click.option(
    "--evidence", is_flag=True, help="Take the runs that the arm's floors stand on; measure nothing."
)
@config_option()
@beside("--policy", place="policy")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def aa(arm: str, runs: int | None, evidence: bool, config: Path, policy: Path, form: str) -> int:
    """Measure an arm RUNS times without a change: its flip rate, the margin that follows, and false alarms."""
    if evidence and runs is not None:
        raise click.UsageError("--evidence takes the runs that there are, and --runs measures anew")
    found = _evidence(arm, policy) if evidence else _measured(arm, runs or 5, config, policy)
    if form == "json":
        click.echo(found.model_dump_json(by_alias=True, indent=1))
    else:
        from eval_gate.power import aa_text

        click.echo("\n".join(aa_text(found)))
    return found.exit_code


def _evidence(arm: str, folder: Path) -> Unchanged:
    from eval_core.errors import unknown_arm
    from eval_core.policy import FLOORS, read_policy
    from eval_gate.power import of_evidence

    policy = read_policy(folder)
    if arm not in policy.floors.arms:
        raise unknown_arm(arm, policy.floors.arms, "there are no floors for arm", file=folder / FLOORS)
    return of_evidence(policy.arm(arm))


def _measured(arm: str, runs: int, config: Path, folder: Path) -> Unchanged:
    from eval_core.config import load_workspace
    from eval_core.policy import FLOORS, read_policy
    from eval_core.reports.provenance.configuration import configuration
    from eval_gate.check import without_latency
    from eval_gate.power import measured_again, of_reports

    workspace = load_workspace(config)
    workspace.chosen((arm,))
    held: Held = None
    drift = None
    if (folder / FLOORS).exists():
        policy = read_policy(folder, plain=without_latency(configuration(config)))
        if arm in policy.floors.arms:
            held, drift = _held(policy, arm), policy.floors.arms[arm].drift
    reports = measured_again(workspace, arm, runs, drift, lambda text: click.echo(text, err=True))
    return of_reports(arm, held, reports, folder)


def _held(policy: Policy, arm: str) -> Held:
    from eval_core.errors import Refused

    try:
        return policy.arm(arm)
    except Refused as error:
        return error
