"""The script `longmemeval-convert`: a downloaded LongMemEval file to a judged set, and what goes with it."""

from __future__ import annotations

import os
from typing import NoReturn

import click

from eval_core.cli.app import Verbs, run
from longmemeval_convert import __version__

__all__ = ["cli", "main"]

_EPILOG = """\b
Examples:
  longmemeval-convert longmemeval_s_cleaned.json -o lme-s >> eval.toml
                                            a set, and arms for it; then  eval-core measure --lane owner
  longmemeval-convert identify FILE         which release it is, and what is in it
  longmemeval-convert authors RUN --set lme-s
                                            a run in the figures of LongMemEval's authors, beside ours

Exit codes: 0 done, 1 no, 2 wrong usage or input file, 3 could not.
"""


class _ConvertByDefault(Verbs):
    """What begins with no verb, and not with one that is mistyped, is for `convert`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.table, "-h", "--help", "--version"):
            from eval_core.errors import did_you_mean

            if os.path.exists(args[0]) or not did_you_mean(args[0], self.table):
                args = ["convert", *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=_ConvertByDefault,
    table={
        "convert": (
            "longmemeval_convert.cli.convert:convert",
            "Convert a file to a set (the verb where none is given).",
        ),
        "identify": ("longmemeval_convert.cli.convert:identify", "Say which release a file is."),
        "synth": ("longmemeval_convert.cli.synth:synth", "Write a synthetic file in the format."),
        "authors": (
            "longmemeval_convert.cli.authors:authors",
            "Score a run as LongMemEval's authors do, beside our measures.",
        ),
    },
    subcommand_metavar="[VERB] [ARG]...",
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="longmemeval-convert", message="%(prog)s %(version)s")
def cli() -> None:
    """Convert a LongMemEval file, which you download yourself, to a set that eval-core measures.

    What is measured is retrieval of sessions or turns; it is not a LongMemEval score.
    """


def main() -> NoReturn:
    """Run the script."""
    run(cli, "longmemeval-convert")
