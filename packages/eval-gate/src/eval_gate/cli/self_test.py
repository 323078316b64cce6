"""`eval-gate self-test`: attack the gate with this workspace's own inputs, and see that every attack is caught."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_core.cli.workspace import beside, config_option

if TYPE_CHECKING:
    from eval_gate.selftest import Progress

_EPILOG = """\b
Examples:
  eval-gate self-test                    every arm that has floors
  eval-gate self-test memory-bm25        one arm
  eval-gate self-test --format markdown  for a step summary

Copies of the reports, the policy and eval.toml are altered in a temporary folder and graded by the
present policy; nothing of the workspace is changed, and nothing is measured. An attack is caught when
the gate says no for the attack's own reason. What the policy does not require is said, and does not
survive: see --require of eval-gate check.

\b
Exit codes: 0 every attack was caught; 1 one survived, or the untouched copy does not pass; 2 wrong
usage, configuration or policy file; 3 something could not be done.
"""


@click.command(epilog=_EPILOG)
@click.argument("arms", nargs=-1, metavar="[ARM]...")
@config_option()
@beside("--policy", place="policy")
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "markdown"]), default="table", show_default=True
)
def self_test(arms: tuple[str, ...], config: Path, policy: Path, form: str) -> int:
    """Attack the gate with copies of this workspace's inputs; exit 1 if an attack survives."""
    from eval_gate import selftest
    from eval_gate.cli.check import check

    # Off where the gate lives a tenth of a second; a thousand gradings would keep what they are done with.
    gc.enable()
    with _progress() as progress:
        found = selftest.self_test(arms, config, policy, check=check, progress=progress)
    if form == "json":
        click.echo(found.model_dump_json(by_alias=True, indent=1))
    else:
        from eval_gate.selftest import words

        click.echo(words.markdown(found) if form == "markdown" else words.terminal(found))
    return found.exit_code


@contextlib.contextmanager
def _progress() -> Iterator[Progress]:
    """A line on a terminal that is gone at the end; nothing in a pipe or a log."""
    if not sys.stderr.isatty():
        yield lambda what, done, total: None
        return
    from eval_core.console import clip

    def show(what: str, done: int, total: int) -> None:
        click.echo(f"\r\x1b[2Kself-test  {done}/{total}  {clip(what, 50)}", nl=False, err=True)

    try:
        yield show
    finally:
        click.echo("\r\x1b[2K", nl=False, err=True)
