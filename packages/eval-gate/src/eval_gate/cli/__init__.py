"""The script `eval-gate`: floors out of measured runs, and a gate on them."""

from __future__ import annotations

import gc
from typing import NoReturn

import click

from eval_core.cli.app import Verbs, run
from eval_gate import __version__

_EPILOG = """\b
Examples:
  eval-gate floor memory-bm25             propose floors from measured runs, as a diff
  eval-gate floor --write                 write them, with the evidence they stand on
  eval-gate baseline --write              commit to the present reports as the baseline
  eval-gate check                         grade the reports of .eval/reports against policy/
  eval-gate power                         what the sets can resolve, and the odds of the floors
  eval-gate self-test                     whether the gate catches what it should

Exit codes: 0 passed, 1 no, 2 wrong usage or policy file, 3 could not.
"""


@click.group(
    cls=Verbs,
    table={
        "floor": ("eval_gate.cli.floor:floor", "Propose floors from two or more measured runs."),
        "baseline": ("eval_gate.cli.baseline:baseline", "Take the present reports as the baseline."),
        "check": ("eval_gate.cli.check:check", "Grade reports against floors, baselines and budgets."),
        "promote": ("eval_gate.cli.promote:promote", "Let a better arm take the default's place."),
        "power": ("eval_gate.cli.power:power", "Say what a set can resolve, and the odds of its floors."),
        "aa": ("eval_gate.cli.aa:aa", "Measure an arm again, unchanged: its flips and false alarms."),
        "self-test": (
            "eval_gate.cli.self_test:self_test",
            "Attack the gate with this workspace's own inputs.",
        ),
        "guard": ("eval_gate.cli.guard:guard", "Check that every judged path is a file of the commit."),
    },
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="eval-gate", message="%(prog)s %(version)s")
def cli() -> None:
    """Gate merges on measured retrieval quality.

    Judging opens no socket, starts nothing, imports no backend and writes nothing. Only floor, baseline and promote
    write the policy, and only with --write; aa and self-test measure.
    """


def main() -> NoReturn:
    """Run the script."""
    # The gate lives a tenth of a second; collecting cycles while it imports would be a twentieth of that.
    gc.disable()
    run(cli, "eval-gate")
