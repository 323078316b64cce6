"""The script `eval-gate`: floors out of measured runs, and a gate on them."""

from __future__ import annotations

import gc
from typing import NoReturn

import click

from eval_core.cli.app import Verbs, run
from eval_gate import __version__

_EPILOG = """\b
Examples:
  eval-gate demo                          see the gate pass, fail and refuse, on a small set of its own
  eval-gate floor memory-bm25 --measure   measure twice, and propose the bar
  eval-gate floor --measure --write       write it, with the evidence it stands on
  eval-gate check                         grade the reports of .eval/reports against policy/
  eval-gate power                         what the sets can resolve, and the odds of the floors
  eval-gate self-test                     whether the gate catches what it should

Exit codes: 0 passed, 1 no, 2 wrong usage or policy file, 3 could not.
"""


@click.group(
    cls=Verbs,
    table={
        "floor": ("eval_gate.cli.floor:floor", "Move the bar: floors, baseline, budget and evidence."),
        "check": ("eval_gate.cli.check:check", "Grade reports against the bars that evidence gives."),
        "promote": ("eval_gate.cli.promote:promote", "Let a better arm take the default's place."),
        "power": ("eval_gate.cli.power:power", "Say what a set can resolve, and the odds of its floors."),
        "aa": ("eval_gate.cli.aa:aa", "Measure an arm again, unchanged: its flips and false alarms."),
        "self-test": (
            "eval_gate.cli.self_test:self_test",
            "Attack the gate with this workspace's own inputs.",
        ),
        "guard": ("eval_gate.cli.guard:guard", "Check that every judged path is a file of the commit."),
        "demo": ("eval_gate.cli.demo:demo", "See the gate work, on a small set of its own."),
    },
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="eval-gate", message="%(prog)s %(version)s")
def cli() -> None:
    """Gate merges on measured retrieval quality.

    Judging opens no socket, starts nothing, imports no backend and writes nothing. Only floor and promote write the
    policy, and only with --write; aa, self-test and floor --measure measure; demo works in a folder of its own.
    """


def main() -> NoReturn:
    """Run the script."""
    # The gate lives a tenth of a second; collecting cycles while it imports would be a twentieth of that.
    gc.disable()
    run(cli, "eval-gate")
