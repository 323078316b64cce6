"""The script `eval-tier`: which repository sits at which tier of the ladder."""

from __future__ import annotations

import gc
from typing import NoReturn

import click

from eval_core.cli.app import Verbs, run
from eval_tier import __version__

_EPILOG = """\b
Examples:
  eval-tier audit                      this repository, or the fleet of policy/fleet.toml
  eval-tier audit ~/src/*              several checkouts, by the files of their commits
  eval-tier why .                      what keeps it from the next tier, and where
  eval-tier snapshot OWNER/REPO        what its default branch requires, read from the forge
  eval-tier rules                      every rule, with its tier

Exit codes: 0 placed, at or above the bar; 1 below, undetermined or not whole; 2 wrong usage; 3 could not.
"""


@click.group(
    cls=Verbs,
    table={
        "audit": ("eval_tier.cli.audit:audit", "Place repositories by their evidence."),
        "why": ("eval_tier.cli.audit:why", "Say what keeps one repository from the next tier."),
        "snapshot": ("eval_tier.cli.snapshot:snapshot", "Read what a repository's branch requires."),
        "rules": ("eval_tier.cli.audit:rules", "List the rules, or explain one."),
    },
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="eval-tier", message="%(prog)s %(version)s")
def cli() -> None:
    """Audit repositories: which sits at which tier of the ladder, by evidence that a reader can point at.

    Files are read from git's objects; nothing of an audited repository is run. Only snapshot opens a connection.
    """


def main() -> NoReturn:
    """Run the script."""
    # Nearly all that an audit makes lives as long as its repository; looking for cycles would be a tenth of the time.
    gc.set_threshold(100_000, 50, 50)
    run(cli, "eval-tier")
