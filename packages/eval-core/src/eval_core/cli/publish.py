"""`eval-core publish`: measured numbers into the marked places of pages, and the check that they still stand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_core.cli.workspace import beside, config_option

if TYPE_CHECKING:
    from eval_core.publish.models import Publication

_EPILOG = """\b
Examples:
  eval-core publish                          render README.md and docs/ from policy/
  eval-core publish --check                  change nothing; exit 1 where a page says another number
  eval-core publish --check --from ../classifier/evals/metrics.json docs/claims.md
                                             what a page says of another repository's numbers

\b
Marks, in Markdown or HTML:
  <!-- metric memory-bm25 recall@10 -->0.891<!-- /metric -->          .3f; or add .4f, .1%
  <!-- metric memory-bm25[paraphrase] n -->13<!-- /metric -->         of a category; n is a count
  <!-- metric from:gold.category_accuracy -->94.4<!-- /metric -->     out of the file of --from
  <!-- metrics memory-bm25 code-bm25: recall@10 mrr -->               a table, on lines of its own
  <!-- /metrics -->
What is surely code, a ``` block at the margin or a `span`, is an example, and left alone.

\b
Exit codes: 0 all pages say what was measured; 1 a number differs, its provenance is missing or
divergent, or there is no mark at all; 2 a mark that is malformed or asks for the unknown, a page
that cannot be read; 3 a page cannot be written.
"""


@click.command(epilog=_EPILOG)
@click.argument("pages", nargs=-1, type=click.Path(path_type=Path), metavar="[PAGE]...")
@click.option("--check", is_flag=True, help="Change nothing; exit 1 where a page says another number.")
@beside(
    "--policy",
    place="policy",
    text="The folder of floors and evidence: the last run that an arm's floors stand on is quoted.",
)
@click.option(
    "--from",
    "other",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Another repository's published values, JSON or TOML.",
)
@beside("--waivers", place="policy/waivers.toml")
@config_option()
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def publish(
    pages: tuple[Path, ...],
    check: bool,
    policy: Path,
    other: Path | None,
    waivers: Path,
    config: Path,
    form: str,
) -> int:
    """Put measured numbers into the marked places of pages; README.md and docs/ where none is named."""
    from datetime import UTC, datetime

    from eval_core.publish import publish as put
    from eval_core.publish import usual
    from eval_core.reports.waivers import read

    done = put(
        pages or usual(config.parent),
        check=check,
        policy=policy,
        config=config,
        waivers=read(waivers),
        other=other,
        today=datetime.now(UTC).date(),
    )
    if form == "json":
        click.echo(done.model_dump_json(by_alias=True, indent=1))
    else:
        click.echo(_text(done))
    return done.exit_code


def _text(done: Publication) -> str:
    from eval_core.console import clip, count, paint, table

    lines: list[str] = []
    moved = [mark for mark in done.marks if mark.state == "differs"]
    numbers, pages = count(done.numbers, "number"), count(len(done.pages), "page")
    if done.reasons:
        word = "differs" if {reason.code for reason in done.reasons} == {"publish-differs"} else "REFUSED"
        lines.append(f"{paint(word, 'red')}  {numbers} in {pages}; nothing was changed")
    elif done.checked:
        lines.append(f"{numbers} in {pages}: each is what was measured")
    else:
        lines.append(
            f"{numbers} in {pages}: {len(moved)} rendered anew, in {count(len(done.written), 'page')}"
        )
    rows = [
        (
            clip(f"{mark.page}:{mark.line}", 48),
            clip(mark.target, 40),
            clip(mark.written, 40) or "–",
            "→",
            clip(mark.given or "", 40) or "–",
        )
        for mark in moved
    ]
    lines += [table(rows)] if rows else []
    remedies: list[str] = []
    for reason in done.reasons:
        if reason.code != "publish-differs":
            lines.append(f" {clip(reason.message, 400)}    reason: {reason.code}")
        if reason.remedy and reason.remedy not in remedies:
            remedies.append(reason.remedy)
    for waived in done.waived:
        lines.append(f" waived  {waived.arm}  {waived.fingerprint}  {clip(waived.reason, 200)}")
        lines += [f"   {clip(finding, 400)}" for finding in waived.findings]
    lines += [f" note: {clip(warning, 200)}" for warning in done.warnings]
    lines += [f" {line}" for remedy in remedies for line in remedy.splitlines()]
    return "\n".join(lines)
