"""`eval-gate demo`: see the gate pass, fail and refuse, on a small set of its own."""

from __future__ import annotations

import contextlib
import io
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from eval_gate.demo import Demo

_EPILOG = """\b
Examples:
  eval-gate demo                 in a temporary folder, which is kept
  eval-gate demo --into demo     in a folder of your choice, new or empty
  eval-gate demo --format json   the three verdicts, for machines

20 notes and 16 questions are committed, bm25 is measured twice, and the bar is set. The gate then passes what is
unchanged, fails a worse retriever, and refuses a set in which the failing query was deleted. Each command is shown
as you would type it in the folder; what is printed below it is its own output.

\b
Exit codes: 0 all three verdicts are what they should be; 1 one is not; 2 wrong usage; 3 git or a
backend is missing, or a command failed.
"""


@click.command(epilog=_EPILOG)
@click.option("--into", type=click.Path(path_type=Path), help="The folder to work in, new or empty.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def demo(into: Path | None, form: str) -> int:
    """See the gate work, on a small set of its own."""
    from eval_core.cli import cli as core
    from eval_gate.cli import cli as gate
    from eval_gate.demo import run_demo

    verbs = {"eval-core": core, "eval-gate": gate}
    if form == "json":
        with contextlib.redirect_stdout(io.StringIO()):
            found = run_demo(into, verbs)
        click.echo(found.model_dump_json(by_alias=True, indent=1))
    else:
        found = run_demo(into, verbs)
        _print_end(found)
    return 0 if found.ok else 1


def _print_end(found: Demo) -> None:
    click.echo()
    for one in found.steps:
        if not one.ok:
            said = f"{one.verdict} ({', '.join(one.reasons) or 'no reason'})"
            click.echo(f"NOT CAUGHT  {one.what} Expected was {one.expected}, and the gate said {said}.")
    if found.ok:
        click.echo(f"Passed, failed, refused: each as it should be, in {found.seconds:.1f} s.")
    click.echo(f"Look around:  cd {shlex.quote(found.folder)}")
    click.echo("Your own search: write a set like notes/, name your retriever in eval.toml, commit, then")
    click.echo("  eval-gate floor --measure --write        and in CI:  eval-core measure && eval-gate check")
