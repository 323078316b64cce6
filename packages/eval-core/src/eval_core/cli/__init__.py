"""The script `eval-core`: reconstruct a judged set and measure retrieval on it."""

from __future__ import annotations

from typing import NoReturn

import click

from eval_core import __version__
from eval_core.cli.app import Verbs, run

__all__ = ["cli", "main"]

_EPILOG = """\b
Examples:
  eval-core measure                     every arm of eval.toml, one table
  eval-core measure memory-bm25         one arm by name
  eval-core show memory-bm25            its report: figures by category, and what they cannot show
  eval-core reconstruct datasets/code   rebuild a corpus from its pinned sources
  eval-core inspect datasets/memory     what a set is made of, and what it cannot show
  eval-core query add datasets/memory new.jsonl --source agent
                                        append reviewed questions
  eval-core validate datasets/memory    all that is wrong with a set, with file and line

Exit codes: 0 done, 1 no, 2 wrong usage or input file, 3 could not.
"""


@click.group(
    cls=Verbs,
    table={
        "reconstruct": (
            "eval_core.cli.reconstruct:reconstruct",
            "Rebuild corpora from their pinned sources.",
        ),
        "measure": ("eval_core.cli.measure:measure", "Measure arms and write a run and a report for each."),
        "show": (
            "eval_core.cli.show:show",
            "Show a report to a person: figures by category, limits, health.",
        ),
        "score": ("eval_core.cli.score:score", "Score a run against judgements: TREC, JSONL or BEIR files."),
        "compare": (
            "eval_core.cli.compare:compare",
            "Hold reports or runs against a first one, query by query.",
        ),
        "explain": (
            "eval_core.cli.explain:explain",
            "Say why a query was lost: ranks, causes, texts side by side.",
        ),
        "inspect": (
            "eval_core.cli.inspect:inspect",
            "Say what a set is made of and what its numbers cannot show.",
        ),
        "publish": (
            "eval_core.cli.publish:publish",
            "Put measured numbers into marked pages, or check them.",
        ),
        "validate": (
            "eval_core.cli.validate:validate",
            "Say all that is wrong with a set, a report or eval.toml.",
        ),
        "derive": (
            "eval_core.cli.derive:derive",
            "Draft a set from doc comments, names, headings and links.",
        ),
        "query": ("eval_core.cli.query:query", "Add reviewed questions to a set."),
        "import": (
            "eval_core.cli.imports:import_",
            "Turn judged queries in another tool's file into a set.",
        ),
        "reason": ("eval_core.cli.reason:reason", "Say what a reason code means, and what to do."),
    },
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="eval-core", message="%(prog)s %(version)s")
def cli() -> None:
    """Rebuild a judged set from pinned sources and measure retrieval on it, so that the number can be trusted.

    The order is reconstruct, measure (more than once), floor, gate; the last two are eval-gate's.
    """


def main() -> NoReturn:
    """Run the script."""
    run(cli, "eval-core")
