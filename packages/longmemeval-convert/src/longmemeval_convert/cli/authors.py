"""`longmemeval-convert authors`: a run as LongMemEval's authors score it, beside our measures."""

from __future__ import annotations

from pathlib import Path

import click

_EPILOG = """\b
Examples:
  longmemeval-convert authors .eval/runs/longmemeval-s-session-user-bm25.jsonl --set lme-s
  longmemeval-convert authors run.trec --set lme-s

Their recall_any is our hit, their recall_all our all: neither is recall, the share that was found. Their ndcg_any does
not discount rank 2. One of their scripts leaves out questions without evidence of the user's, the other does not and
counts recall_all 1 for each.
"""


@click.command(epilog=_EPILOG)
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--set", "folder", type=click.Path(path_type=Path), required=True, help="The converted set.")
def authors(run: Path, folder: Path) -> int:
    """Print a run in the figures of LongMemEval's authors, under both of their denominators, and in ours."""
    from eval_core.console import table
    from longmemeval_convert.authors import compare

    found = compare(run, folder)
    rows = [("measure", "n", *(f"@{k}" for k in found.cutoffs))]
    for owner, n, figures in (
        ("theirs", found.narrow_n, found.narrow),
        ("theirs", found.wide_n, found.wide),
        ("ours", found.wide_n, found.ours),
    ):
        rows += [
            (f"{owner}  {name}", str(n), *(f"{v:.4f}" for v in values)) for name, values in figures.items()
        ]
    click.echo(table(rows, right=range(1, len(rows[0]))))
    click.echo()
    if found.missing:
        click.echo(f" {found.missing} judged questions are absent from the run: they count 0.")
    for statement in found.statements:
        click.echo(f" {statement}")
    return 0
