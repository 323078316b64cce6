"""`eval-core score`: a run and its judgements in, means with intervals out."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from eval_core.scoring.metrics import Measure
    from eval_core.scoring.readers.source import Progress
    from eval_core.scoring.score import Scores
    from eval_core.scoring.statistics import Interval

DEFAULT = "recall@5,recall@10,mrr,ndcg@10,map"

_EPILOG = """\b
Examples:
  eval-core score --run bm25.trec --qrels datasets/memory/qrels/test.tsv
  eval-core score --run .eval/runs/memory-bm25.jsonl --qrels datasets/memory/qrels/test.tsv
  eval-core score --run run.gz --qrels qrels.txt -m ndcg@10 -m hit@1,mrr@10
  eval-core score --run run.trec --qrels qrels.txt --per-query --format csv > scores.csv

A run is a TREC run file, a run of `eval-core measure`, or lines {"id": QUERY, "ids": [DOCUMENT, ...]} in rank order.
Judgements are TREC or BEIR qrels. Each is told by its content and may be gzip.

A judged query that the run does not answer counts 0; in a run of `measure`, a query that was not scored is left out.
Queries without judgements are ignored; queries without a document of grade 1 or more are not in the mean, and the mean
of `trec_eval -c`, in which they count 0, stands beside it. All of them are counted. Scores order a TREC run, whatever
its rank column says; they are compared in double precision, where trec_eval takes single.
"""


@click.command(epilog=_EPILOG)
@click.option("--run", "run", type=click.Path(path_type=Path), required=True, help="The rankings.")
@click.option("--qrels", type=click.Path(path_type=Path), required=True, help="The judgements.")
@click.option(
    "-m",
    "--measure",
    "named",
    multiple=True,
    metavar="MEASURE",
    help=f"What to compute. Repeatable, or with commas.  [default: {DEFAULT}]",
)
@click.option("--per-query", is_flag=True, help="A row a query, too.")
@click.option(
    "--ties",
    type=click.Choice(["trec", "id"]),
    default="trec",
    show_default=True,
    help="Equal scores: by document id descending, as trec_eval, or ascending.",
)
@click.option(
    "--depth",
    type=click.IntRange(1),
    metavar="N",
    help="Cut each ranking at N documents, as trec_eval -M.  [default: its end]",
)
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True
)
def score(
    run: Path, qrels: Path, named: tuple[str, ...], per_query: bool, ties: str, depth: int | None, form: str
) -> int:
    """Score a run against judgements: each measure's mean, its 95% interval, and what was not scored."""
    from eval_core.scoring.score import score_files

    if run == qrels == Path("-"):
        raise click.UsageError("standard input can be the run or the judgements, not both")
    measures = _measures(named or (DEFAULT,))
    with _progress(run) as progress:
        scores = score_files(run, qrels, measures, ties, progress, ranks=False, depth=depth)
    bounds = scores.intervals()
    if form == "json":
        click.echo(_json(scores, bounds, run, qrels, per_query))
    elif form == "csv":
        click.echo(_csv(scores, bounds, per_query), nl=False)
        click.echo(_counts(scores), err=True)
    else:
        click.echo(_table(scores, bounds, per_query))
    return 0


def _measures(named: tuple[str, ...]) -> list[Measure]:
    from eval_core.scoring.metrics import parse

    texts = [text.strip() for given in named for text in given.split(",")]
    return list(dict.fromkeys(parse(text) for text in texts))


@contextlib.contextmanager
def _progress(run: Path) -> Iterator[Progress | None]:
    """Percent of the run's bytes on a terminal, once it takes more than a second."""
    if not sys.stderr.isatty():
        yield None
        return
    from eval_core.console import clip

    began = time.monotonic()
    shown, name = "", clip(run.name, 40)

    def tell(done: int, size: int) -> None:
        nonlocal shown
        text = f"\rscore  {name}  {100 * done // max(size, 1)}%"
        if text != shown and time.monotonic() - began > 1:
            shown = text
            click.echo(text, err=True, nl=False)

    try:
        yield tell
    finally:
        if shown:
            click.echo("\r" + " " * len(shown) + "\r", err=True, nl=False)


def counts(scores: Scores) -> dict[str, int]:
    """What was scored and what was not."""
    return {
        "scored": scores.n,
        "missing": len(scores.missing),
        "unjudged": scores.unjudged,
        "unscorable": len(scores.unscorable),
        "left_out": len(scores.left_out),
        "duplicates": scores.duplicates,
        "contradicted": len(scores.contradicted),
        "tied": len(scores.tied),
    }


def _json(scores: Scores, bounds: dict[str, Interval], run: Path, qrels: Path, per_query: bool) -> str:
    from eval_core.console import as_json

    names = list(map(str, scores.measures))
    value: dict[str, object] = {
        "schema": "score-v1",
        "run": str(run),
        "qrels": str(qrels),
        "ties": scores.ties,
        "n": scores.n,
        "counts": counts(scores),
        "measures": {
            str(measure): {
                "mean": scores.mean(measure),
                "mean_with_unscorable": scores.mean_with_unscorable(measure),
                **bounds[str(measure)]._asdict(),
            }
            for measure in scores.measures
        },
    }
    if per_query:
        value["queries"] = {
            name: dict(zip(names, values, strict=True)) for name, (values, _, _) in scores.found.items()
        }
    return as_json(value)


def _csv(scores: Scores, bounds: dict[str, Interval], per_query: bool) -> str:
    """A row a measure; with queries, a row a query and measure, the means being those of no query.

    Ids are given as they are, but for a terminal, on which none may act.
    """
    import csv
    import io

    from eval_core.console import safe

    shown = safe if sys.stdout.isatty() else str
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(("query", "measure", "value", "low", "high", "n"))
    for measure in scores.measures:
        rows.writerow(("", measure, scores.mean(measure), *bounds[str(measure)], scores.n))
    if per_query:
        for name, (values, _, _) in scores.found.items():
            for measure, value in zip(scores.measures, values, strict=True):
                rows.writerow((shown(name), measure, value, "", "", ""))
    return out.getvalue()


def _table(scores: Scores, bounds: dict[str, Interval], per_query: bool) -> str:
    from eval_core.console import clip, table

    n = scores.n
    parts = []
    if per_query:
        rows = [("query", *map(str, scores.measures))]
        rows += [
            (clip(name, 40), *(f"{value:.4f}" for value in values))
            for name, (values, _, _) in scores.found.items()
        ]
        parts += [table(rows, right=range(1, len(rows[0]))), ""]
    means: list[tuple[str, ...]] = [("measure", "mean", "95% interval", "n")]
    for measure in scores.measures:
        low, high = bounds[str(measure)]
        means.append((str(measure), f"{scores.mean(measure):.4f}", f"{low:.4f} to {high:.4f}", f"{n:,}"))
    if scores.unscorable:
        others = [f"{scores.mean_with_unscorable(measure):.4f}" for measure in scores.measures]
        head = f"mean of {n + len(scores.unscorable):,}"
        means = [(*row, other) for row, other in zip(means, (head, *others), strict=True)]
    parts += [table(means, right=(1, 3, 4)), "", _counts(scores)]
    return "\n".join(parts)


def _counts(scores: Scores) -> str:
    import textwrap

    from eval_core.console import table

    told = counts(scores)
    rows = [
        ("scored", "queries"),
        ("missing", "judged, absent from the run: they count 0" + _some(scores.missing)),
        ("unjudged", "in the run without judgements: ignored"),
        ("unscorable", "without a document of grade 1 or more: not in the mean" + _some(scores.unscorable)),
        ("left_out", "not scored in the run itself: not in the mean" + _some(scores.left_out)),
        ("duplicates", "documents dropped as repeats; the better place stands"),
        ("contradicted", "with scores that contradict the ranks beside them" + _some(scores.contradicted)),
        ("tied", "with a judged document in a tie, which document ids decide" + _some(scores.tied)),
    ]
    lines = [(name.replace("_", " "), f"{told[name]:,}", text) for name, text in rows]
    remarks = [_ORDER[scores.ties]]
    if scores.unscorable:
        every = scores.n + len(scores.unscorable)
        remarks.append(f" The unscorable count 0 in the mean of {every:,}, as in trec_eval -c.")
    if advice := scores.advice():
        remarks += textwrap.wrap(f"Note: {advice}.", 98, initial_indent=" ", subsequent_indent="  ")
    return "\n".join([table(lines, right=(1,)), *remarks])


_ORDER = {
    "trec": " Equal scores are in the order of document ids, descending, as in trec_eval (--ties trec).",
    "id": " Equal scores are in the order of document ids, ascending (--ties id).",
    "given": " The order of each list is its ranking.",
}


def _some(queries: list[str]) -> str:
    """The first of them."""
    from eval_core.console import clip

    if not queries:
        return ""
    named = ", ".join(clip(query, 16) for query in queries[:3])
    return f" ({named}{', …' if len(queries) > 3 else ''})"
