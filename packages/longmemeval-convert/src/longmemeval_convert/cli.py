"""The script `longmemeval-convert`: so far it can say what it will be, and its version."""

from __future__ import annotations

from typing import NoReturn

import click

from eval_core.cli.app import run
from longmemeval_convert import __version__


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
def command() -> None:
    """Convert LongMemEval and LoCoMo files to judged sets.

    This version has no commands yet.
    """
    raise click.UsageError(
        f"longmemeval-convert {__version__} has no commands yet, only --help and --version."
    )


def main() -> NoReturn:
    """Run the script and exit: 0 for --help and --version, 2 for anything else."""
    run(command, "longmemeval-convert")
