"""`eval-core inspect`: what a set is made of, what it cannot show, and how far simple rankers get on it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_core.cli.workspace import config_option

if TYPE_CHECKING:
    from eval_core.authoring.inspect import Extreme, Inspection, Ranker

_EPILOG = """\b
Examples:
  eval-core inspect datasets/memory                        counts, samples, limits
  eval-core inspect datasets/memory --headroom             and what simple rankers score
  eval-core inspect datasets/memory --headroom --into datasets/memory/README.md
                                                           the table, between the marks in a page
  eval-core inspect datasets/memory --format json          for machines

--into replaces what stands between the lines <!-- headroom --> and <!-- /headroom -->; with --check it only says
whether that is what is made now, and exits 1 where it is not.
"""

OPEN, CLOSE = "<!-- headroom -->", "<!-- /headroom -->"


@click.command(epilog=_EPILOG)
@click.argument("dataset", type=click.Path(path_type=Path))
@config_option("The workspace: beside it, .eval holds the corpora.")
@click.option("--split", help="qrels/SPLIT.tsv; the only one, or test.")
@click.option("--headroom", is_flag=True, help="Also measure random, popularity, overlap and bm25.")
@click.option("--samples", type=click.IntRange(0, 100), default=3, show_default=True, help="Queries to show.")
@click.option(
    "--source", "sources", multiple=True, metavar="NAME=PATH", help="Another place for a source. Repeatable."
)
@click.option(
    "--into", type=click.Path(path_type=Path), help="Put the headroom table into this page. With --headroom."
)
@click.option(
    "--check", is_flag=True, help="With --into: change nothing, exit 1 if the page's table is another."
)
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "markdown"]), default="table", show_default=True
)
def inspect(
    dataset: Path,
    config: Path,
    split: str | None,
    headroom: bool,
    samples: int,
    sources: tuple[str, ...],
    into: Path | None,
    check: bool,
    form: str,
) -> int:
    """Say what a set is made of and what its numbers cannot show."""
    from eval_core.authoring.inspect import inspect_set
    from eval_core.cli.reconstruct import parse_sources

    if into is not None and not headroom:
        raise click.UsageError("--into takes the headroom table; say --headroom too")
    if check and into is None:
        raise click.UsageError("--check goes with --into PAGE")
    found = inspect_set(
        dataset, split, parse_sources(sources), headroom=headroom, samples=samples, config=config
    )
    if into is not None:
        place = _put(into, markdown(found.headroom), check)
        click.echo(f"{into}: the headroom table of {found.name} {place}", err=form == "json")
        if form != "json":
            return 0
    if form == "json":
        click.echo(found.model_dump_json(by_alias=True, indent=1))
    elif form == "markdown":
        click.echo(markdown(found.headroom) if headroom else _text(found))
    else:
        click.echo(_text(found))
    return 0


def _put(page: Path, table: str, check: bool) -> str:
    from eval_core.errors import Misuse, Refused
    from eval_core.files import read_text, write_text

    text = read_text(page, "page")
    marked = re.compile(re.escape(OPEN) + r".*?" + re.escape(CLOSE), re.DOTALL)
    if len(marked.findall(text)) != 1:
        what = f"should hold the lines {OPEN} and {CLOSE} once; the table goes between them"
        raise Misuse("marks-missing", what, file=page)
    after = marked.sub(lambda _: f"{OPEN}\n{table}\n{CLOSE}", text)
    if check and after != text:
        raise Refused("page-stale", "its headroom table is out of date", file=page)
    if not check:
        write_text(page, after)
    return "is what is made now" if check else "is in place"


def markdown(rankers: tuple[Ranker, ...]) -> str:
    """The headroom table for a page."""
    lines = ["| ranker | n | rank 1 | recall@k | mrr | ndcg@k |", "|---|---|---|---|---|---|"]
    for ranker in rankers:
        values = (ranker.rank_1, ranker.recall, ranker.mrr, ranker.ndcg)
        lines.append(
            f"| {ranker.name} | {ranker.n} | " + " | ".join(f"{value:.3f}" for value in values) + " |"
        )
    return "\n".join(lines)


def _text(found: Inspection) -> str:
    from eval_core.console import clip, count, table

    lines = [
        f"{found.name}  version {found.version}, kind {found.kind or 'none'}, split {found.split}",
        f" {count(found.documents, 'document')}, {count(found.queries, 'query', 'queries')}, "
        f"{count(found.judgements, 'judgement')}, corpus sha256 {found.corpus[:12]}…",
    ]
    for title, shares in (
        ("category", found.limits.categories),
        ("source", found.limits.sources),
        ("kind", found.kinds),
    ):
        if shares:
            lines.append(f" by {title}: " + ", ".join(f"{name} {number}" for name, number in shares.items()))
    lines.append("")
    lines.append(
        table([("", "words", "id", "text"), *(_extreme(item) for item in found.extremes)], right=(1,))
    )
    if found.samples:
        lines += [
            "",
            *(
                f" {clip(s.id, 16)}  {clip(s.text, 70)}  → {clip(', '.join(s.judged), 60)}"
                for s in found.samples
            ),
        ]
    limits = found.limits
    lines += [
        "",
        "What its numbers cannot show",
        *(f" {text}" for text in found.statements),
        f" one query, wholly lost, is {limits.one_query_points:.1f} points; fewer than five lost can be chance "
        f"({limits.smallest_change_points:.1f} points)",
        f" {limits.overlap.sentence()}",
        f" {limits.overlap.whole:.0%} of the queries share all of their words with a target, "
        f"{limits.overlap.none:.0%} none",
        f" leaks: {count(limits.leaks, 'query', 'queries')} word for word in a document"
        + (f" ({', '.join(limits.leaked[:5])})" if limits.leaked else ""),
        f" near-duplicates: {count(limits.near_duplicates, 'judged document')} with an unjudged one"
        + (
            f" ({', '.join(clip(p.unjudged, 40) for p in found.near_duplicates[:3])})"
            if found.near_duplicates
            else ""
        ),
    ]
    if found.headroom:
        rows = [("ranker", "n", "rank 1", "recall", "mrr", "ndcg")]
        rows += [
            (r.name, str(r.n), f"{r.rank_1:.3f}", f"{r.recall:.3f}", f"{r.mrr:.3f}", f"{r.ndcg:.3f}")
            for r in found.headroom
        ]
        lines += ["", f"Headroom, at k = {found.cutoffs[-1]}", table(rows, right=range(1, 6))]
        lines += [f" {ranker.name}: {text}" for ranker in found.headroom for text in ranker.statements]
    return "\n".join(lines)


def _extreme(item: Extreme) -> tuple[str, ...]:
    from eval_core.console import clip

    return (item.what, str(item.words), clip(item.id, 40), clip(item.text, 44))
