"""`eval-gate baseline`: the present reports become what later ones are compared with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_gate.cli.types import POSITIVE

if TYPE_CHECKING:
    from eval_core.reports.report import Report

_EPILOG = """\b
Examples:
  eval-gate baseline                            what would change, arm by arm
  eval-gate baseline --write                    write policy/baselines/ARM.json, stripped of timing
  eval-gate baseline memory-bm25 --p95-ms 300 --write
                                                and a latency budget, refused if the report does not meet it
"""


@click.command(epilog=_EPILOG)
@click.argument("arms", nargs=-1, metavar="[ARM]...")
@click.option("--policy", type=click.Path(path_type=Path), default=Path("policy"), show_default=True)
@click.option("--reports", type=click.Path(path_type=Path), default=Path(".eval/reports"), show_default=True)
@click.option(
    "--p95-ms",
    type=POSITIVE,
    help="Also a budget for the 95th percentile of latency.",
)
@click.option("--write", is_flag=True, help="Write the baselines.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def baseline(
    arms: tuple[str, ...], policy: Path, reports: Path, p95_ms: float | None, write: bool, form: str
) -> int:
    """Take the present reports as the baseline of arms that have floors. A new baseline is an explicit commit."""
    from eval_core.errors import Misuse, did_you_mean
    from eval_core.reports.report import read_report
    from eval_gate.floors.baseline import change, check, cited, not_worse
    from eval_gate.floors.proposal import BaselineProposal
    from eval_gate.floors.text import budgets_text, present
    from eval_gate.policy import BASELINES, BUDGETS, FLOORS, read_budgets, read_floors

    floors = read_floors(policy / FLOORS)
    if (policy / BUDGETS).exists():
        read_budgets(policy / BUDGETS, floors)
    for name in arms:
        if name not in floors.arms:
            raise Misuse(
                f"{policy / FLOORS}: no floors for arm {name!r}{did_you_mean(name, floors.arms)}",
                reason="arm-unknown",
                remedy=f"Floors come first:  eval-gate floor {name} --write",
            )
    names = tuple(dict.fromkeys(arms)) or tuple(floors.arms)
    if not names:
        raise Misuse(
            f"{policy / FLOORS}: names no arm, so there is nothing to take a baseline of",
            reason="policy-vacuous",
            remedy="Floors come first:  eval-gate floor --write",
        )
    found: dict[str, Report] = {}
    for name in names:
        report = read_report(reports / f"{name}.json", name)
        check(report, floors.arms[name], p95_ms)
        not_worse(report, policy / BASELINES / f"{name}.json", floors.arms[name])
        found[name] = report
    changes = tuple(change(report, policy / BASELINES / f"{name}.json") for name, report in found.items())
    before = present(policy / BUDGETS)
    after = budgets_text(before, {} if p95_ms is None else dict.fromkeys(names, p95_ms))
    if write:
        from eval_gate.floors.write import with_sidecar, write_all

        # The budgets first: an arm with its new baseline and not yet its budget would pass without one.
        files = {policy / BUDGETS: after.encode()} if after != before else {}
        for name, report in found.items():
            committed = cited(policy, report, floors.arms[name])
            files |= with_sidecar(policy / BASELINES / f"{name}.json", committed)
        write_all(files)
    if form == "json":
        click.echo(BaselineProposal(written=write, arms=changes).model_dump_json(by_alias=True, indent=1))
        return 0
    from eval_core.console import clip, table

    for item in changes:
        click.echo(f"{item.arm}  run {clip(item.run_id, 60)}")
        rows = [
            (name, "–" if old is None else f"{old:.4f}", "→", f"{new:.4f}", "" if old == new else "changed")
            for name, (old, new) in item.values.items()
        ]
        click.echo(table(rows, indent="  "))
    if p95_ms is not None:
        click.echo(f"{policy / BUDGETS}: p95 at most {p95_ms:g} ms for {', '.join(names)}")
    where = policy / BASELINES
    click.echo(
        f"Wrote {where}. Commit policy/ by itself, naming the runs.\n"
        "Next: eval-core measure && eval-gate check    in the job that is already required"
        if write
        else "Nothing was written; --write applies it."
    )
    return 0
