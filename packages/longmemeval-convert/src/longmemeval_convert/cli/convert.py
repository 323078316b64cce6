"""`longmemeval-convert convert` and `identify`: a set out of a file, and what a file is."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from longmemeval_convert.models import Conversion, Origin
    from longmemeval_convert.stream import Progress

_EPILOG = """\b
FILE may be gzip; - is standard input. The set is a scope a question, with two splits of judgements:
  answers   the sessions that the file names as evidence: 470 questions of a release
  authors   as LongMemEval's own retrieval evaluation has it: those with a turn of the user that is
            marked as evidence, 419 questions
One of them is the split test. Questions of abstention are kept, and never asked.

\b
What is printed belongs into eval.toml. The original ids are beside OUT, in OUT.ids.jsonl.
"""

#: Where a file is of no use as a measure of retrieval.
_ORACLE = (
    "WARNING: this is the oracle file, whatever it is called: its histories hold the evidence alone. "
    "Retrieval cannot fail on it, and its figures say nothing. Take the file S or M."
)


@click.command(epilog=_EPILOG)
@click.argument("file")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="The folder of the set.")
@click.option(
    "--granularity",
    type=click.Choice(["session", "turn"]),
    default="session",
    show_default=True,
    help="What a document is.",
)
@click.option(
    "--text",
    type=click.Choice(["user", "all", "assistant"]),
    default="user",
    show_default=True,
    help="Whose turns a document holds. user: as the authors index it.",
)
@click.option(
    "--gold",
    type=click.Choice(["answers", "authors"]),
    default="answers",
    show_default=True,
    help="Which judgements are the split test.",
)
@click.option(
    "--ids",
    type=click.Choice(["opaque", "original"]),
    default="opaque",
    show_default=True,
    help="Original ids of sessions tell which are gold.",
)
@click.option("--types", metavar="TYPE,...", help="Take questions of these types alone.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Take N questions, stratified by type.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the sample.")
@click.option("--force", is_flag=True, help="Replace OUT, once the new set is whole.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def convert(
    file: str,
    out: Path | None,
    granularity: str,
    text: str,
    gold: str,
    ids: str,
    types: str | None,
    sample: int | None,
    seed: int,
    force: bool,
    quiet: bool,
) -> int:
    """Convert a LongMemEval file to a set of documents, queries and judgements."""
    from longmemeval_convert.convert import convert as made_of
    from longmemeval_convert.convert import names_of
    from longmemeval_convert.models import Choices
    from longmemeval_convert.stream import opened

    if out is None:
        with opened(file):  # the file first: what is not there may not be meant as one
            raise click.UsageError("Missing option '-o' / '--out'.")
    choices = Choices.model_validate(
        {
            "granularity": granularity,
            "text": text,
            "gold": gold,
            "ids": ids,
            "types": tuple(sorted({kind.strip() for kind in types.split(",")})) if types else (),
            "sample": sample,
            "seed": seed,
        }
    )
    with _progress("convert", quiet) as progress:
        found = made_of(file, out, choices, force=force, progress=progress)
    if found.origin.variant == "oracle":
        click.echo(_ORACLE, err=True)
    click.echo(_arms(found, out))
    if ids == "opaque":
        click.echo(f"The original ids are in {names_of(out)}.", err=True)
    return 0


@click.command()
@click.argument("file")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def identify(file: str, quiet: bool) -> int:
    """Read a file to its end, and say which release it is and what is in it."""
    from longmemeval_convert.convert import survey

    with _progress("identify", quiet) as progress:
        found = survey(file, progress)
    if found.variant == "oracle":
        click.echo(_ORACLE, err=True)
    click.echo(_origin(found))
    return 0


def _origin(origin: Origin) -> str:
    from eval_core.console import safe, table

    releases = {"unknown": "unknown", "edited": "edited: the questions of a release, in other bytes"}
    sizes = {"s": "S", "m": "M", "oracle": "oracle", "other": "none of S, M, oracle"}
    rows = [
        ("release", releases.get(origin.release, origin.release)),
        ("by its content", sizes[origin.variant]),
        ("bytes", f"{origin.bytes:,}"),
        ("sha256", origin.sha256),
        ("questions", f"{origin.questions:,}, {origin.abstention:,} of them of abstention"),
        *((f"  {safe(kind)}", f"{number:,}") for kind, number in origin.types.items()),
    ]
    return table(rows)


def _arms(found: Conversion, out: Path) -> str:
    """Arms for eval.toml, below what the set is in comments."""
    import json

    from eval_core.console import safe, utf8
    from longmemeval_convert.documents import GOLDS

    counts, origin = found.counts, found.origin
    said = [
        f"{found.name}: {counts.questions:,} questions, {counts.documents:,} documents, "
        f"{counts.candidates:,.0f} a question (median)",
        f"From {origin.bytes:,} bytes, release {origin.release}, sha256 {origin.sha256[:12]}…",
        *(
            f"{what}: {number:,}"
            for what, number in {
                "Of abstention, never asked": counts.abstention,
                "Sessions that came again in a history, merged": counts.duplicates_merged,
                "Documents without text, which nothing finds": counts.empty_documents,
                "Evidence sessions without a judged document": counts.unjudged,
                "Questions with evidence dated after them": counts.late_evidence,
            }.items()
            if number
        ),
        *found.statements,
    ]
    gold = found.choices.gold
    other = next(kind for kind in GOLDS if kind != gold)
    n = found.denominators.model_dump()
    lines = [f"# {safe(line)}" for line in said]
    for kind, split, ending in ((gold, "test", ""), (other, other, f"-{other}")):
        if not n[kind]:
            continue
        lines += [
            "",
            f"# n = {n[kind]}",
            f'[arms."{found.name}{ending}-bm25"]',
            f"dataset = {json.dumps(utf8(os.fspath(out)), ensure_ascii=False)}",
            f'split = "{split}"',
            'backend = "bm25"',
            'lane = "owner"',
            "repetitions = 1",
        ]
    return "\n".join(lines)


@contextlib.contextmanager
def _progress(verb: str, quiet: bool) -> Iterator[Progress | None]:
    """On a terminal: how much is read, how fast, and how long it will take, a few times a second."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    began = last = time.monotonic()
    shown = 0

    def tell(done: int, size: int | None) -> None:
        nonlocal last, shown
        now = time.monotonic()
        if now - last < 0.2:
            return
        last = now
        rate = done / (now - began)
        text = f"{verb}  {done / 1e6:,.0f} MB  {rate / 1e6:,.0f} MB/s"
        if size:
            left = max(size - done, 0) / rate
            text = f"{verb}  {100 * done // size}%  {done / 1e6:,.0f} of {size / 1e6:,.0f} MB"
            text += f"  {rate / 1e6:,.0f} MB/s  {left:,.0f} s left"
        click.echo(f"\r{text:<{shown}}", err=True, nl=False)
        shown = len(text)

    try:
        yield tell
    finally:
        if shown:
            click.echo("\r" + " " * shown + "\r", err=True, nl=False)
