"""The script `eval-backends`: what is installed, and any of it as a command that speaks JSON lines."""

from __future__ import annotations

from typing import NoReturn

import click

from eval_backends import __version__
from eval_core.cli.app import Verbs, run

command = Verbs(
    name="eval-backends",
    help="Retrievers to measure, and adapters to retrievers elsewhere.",
    epilog="\b\nExamples:\n"
    "  eval-backends list\n"
    '  echo \'{"query": "retry delays", "k": 3}\' | eval-backends serve bm25 --corpus corpus.jsonl',
    context_settings={"help_option_names": ["-h", "--help"]},
    table={
        "list": ("eval_backends.listing:list_", "List the installed backends and what each can do."),
        "serve": ("eval_backends.serve:serve", "Answer requests in JSON lines with a backend."),
    },
)
command = click.version_option(__version__, message="%(prog)s %(version)s")(command)


def main() -> NoReturn:
    """Run the script and exit with a code of the contract in `eval_core.errors`."""
    run(command, "eval-backends")
