"""`eval-core score`: runs and their judgements in, means with intervals out."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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
  eval-core score --run bm25.trec.gz --run dense.json --qrels qrels.txt -m nDCG@10 -m hit@1,RR@10
  eval-core score --run run.trec --qrels qrels.txt -l 2 --unscorable zero      trec_eval -c -l 2
  eval-core score --run run.trec --qrels qrels.txt -m ndcg@10,recall@100 -m "recall@100(rel=2)"
  zcat run.gz | eval-core score --run - --qrels qrels.txt --format json

A run is a TREC run file, a run of `eval-core measure`, lines {"id": QUERY, "ids": [DOCUMENT, ...]} in rank order, or
JSON {QUERY: {DOCUMENT: SCORE, ...}, ...}. Judgements are TREC or BEIR qrels, lines {"query-id": QUERY, "corpus-id":
DOCUMENT, "score": GRADE}, or JSON {QUERY: {DOCUMENT: GRADE, ...}, ...}. Each is told by its content, may be gzip, bz2,
xz or a zip of one file, and - is standard input. Lines that begin with # are comments.

Measures: recall@k, recall_cap@k, precision@k, rprec, hit@k, all@k, judged@k, mrr, map, ndcg, the last three with @k or
without; also by the names of trec_eval, ir_measures and ranx (P_5, RR@10, ndcg_cut.10, hit_rate@5). ndcg takes the
grade as its gain, whatever -l and rel= say, as in trec_eval.

A judged query that the run does not answer counts 0; in a run of `measure`, a query that was not scored is left out.
Queries without judgements are ignored; queries to which nothing is relevant are not in the mean, and the mean of
`trec_eval -c`, in which they count 0, stands beside it. All of them are counted, and JSON has their ids. Scores order a
TREC run, whatever its rank column says; they are compared in double precision, where trec_eval takes single.
"""


class _Scored(NamedTuple):
    """A run by the name that it was given, what it scored, and the interval of each measure."""

    run: str
    scores: Scores
    bounds: dict[str, Interval]


@click.command(epilog=_EPILOG)
@click.option(
    "--run",
    "runs",
    type=click.Path(path_type=Path),
    multiple=True,
    required=True,
    help="The rankings. Repeatable: several runs make one table.",
)
@click.option("--qrels", type=click.Path(path_type=Path), required=True, help="The judgements.")
@click.option(
    "-m",
    "--measure",
    "named",
    multiple=True,
    metavar="MEASURE",
    help=f"What to compute. Repeatable, or with commas.  [default: {DEFAULT}]",
)
@click.option(
    "-l",
    "--relevance",
    type=click.IntRange(1),
    default=1,
    metavar="GRADE",
    help="Documents are relevant from this grade on, as trec_eval -l: (rel=GRADE) for every measure without its own.",
)
@click.option(
    "--unscorable",
    type=click.Choice(["skip", "zero"]),
    default="skip",
    show_default=True,
    help="Queries to which nothing is relevant: not in the mean, or 0 as in trec_eval -c.",
)
@click.option(
    "--skip-own",
    is_flag=True,
    help="Leave out of each ranking the document whose id is the query's, as for ArguAna.",
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
    runs: tuple[Path, ...],
    qrels: Path,
    named: tuple[str, ...],
    relevance: int,
    unscorable: str,
    skip_own: bool,
    per_query: bool,
    ties: str,
    depth: int | None,
    form: str,
) -> int:
    """Score runs against judgements: each measure's mean, its 95% interval, and what was not scored."""
    from dataclasses import replace

    from eval_core.scoring.score import score_files

    files = [*runs, qrels]
    if files.count(Path("-")) > 1:
        raise click.UsageError("standard input can be one of the files, not two")
    if twice := next((run for run in runs if runs.count(run) > 1), None):
        raise click.UsageError(f"--run {twice} is given twice")
    measures = _measures(named or (DEFAULT,), relevance)
    table = []
    for run in runs:
        with _progress(run) as progress:
            scores = score_files(
                run, qrels, measures, ties, progress, ranks=False, depth=depth, skip_own=skip_own
            )
        scores = replace(scores, zeros=unscorable == "zero")
        table.append(_Scored(str(run), scores, scores.intervals()))
    if form == "json":
        click.echo(_json(table, qrels, per_query))
    elif form == "csv":
        click.echo(_csv(table, per_query), nl=False)
        click.echo(_counts(table), err=True)
    else:
        click.echo(_table(table, per_query))
    return 0


def _measures(named: tuple[str, ...], relevance: int) -> list[Measure]:
    from eval_core.scoring.metrics import fits
    from eval_core.scoring.spelling import read

    texts = [text.strip() for given in named for text in given.split(",")]
    found = []
    for measure in map(read, texts):
        at = measure._replace(rel=relevance)
        found.append(at if measure.rel == 1 and fits(at) else measure)
    return list(dict.fromkeys(found))


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
        "scored": len(scores.found),
        "missing": len(scores.missing),
        "unjudged": scores.unjudged,
        "unscorable": len(scores.unscorable),
        "left_out": len(scores.left_out),
        "duplicates": scores.duplicates,
        "skipped": scores.skipped,
        "contradicted": len(scores.contradicted),
        "tied": len(scores.tied),
    }


def _ids(scores: Scores) -> dict[str, list[str]]:
    """The queries that are counted, where it is queries that the judgements name."""
    return {
        "missing": scores.missing,
        "unscorable": scores.unscorable,
        "left_out": scores.left_out,
        "contradicted": scores.contradicted,
        "tied": scores.tied,
    }


def _rows(scores: Scores) -> Iterator[tuple[str, list[float | None]]]:
    """By query, in the order of the judgements, a value a measure; None where the query is not in its mean."""
    unscorable = set(scores.unscorable) if scores.zeros else ()
    for query in scores.qrels:
        if query in scores.found:
            values = zip(scores.measures, scores.found[query][0], strict=True)
            yield (
                query,
                [
                    value if scores.zeros or scores.scorable(query, measure) else None
                    for measure, value in values
                ],
            )
        elif query in unscorable:
            yield query, [0.0] * len(scores.measures)


def _json(table: Sequence[_Scored], qrels: Path, per_query: bool) -> str:
    from eval_core.console import as_json

    values = [_one_json(one, qrels, per_query) for one in table]
    return as_json(values[0] if len(values) == 1 else {"schema": "scores-v1", "runs": values})


def _one_json(one: _Scored, qrels: Path, per_query: bool) -> dict[str, object]:
    scores = one.scores
    value: dict[str, object] = {
        "schema": "score-v1",
        "run": one.run,
        "qrels": str(qrels),
        "ties": scores.ties,
        "n": scores.n,
        "counts": counts(scores),
        "ids": _ids(scores),
        "measures": {
            str(measure): {
                "mean": scores.mean(measure),
                "mean_with_unscorable": scores.mean_with_unscorable(measure),
                **one.bounds[str(measure)]._asdict(),
                "n": len(scores.values(measure)),
            }
            for measure in scores.measures
        },
    }
    if per_query:
        names = list(map(str, scores.measures))
        value["queries"] = {
            query: {name: v for name, v in zip(names, values, strict=True) if v is not None}
            for query, values in _rows(scores)
        }
    return value


def _csv(table: Sequence[_Scored], per_query: bool) -> str:
    """A row a measure; with queries, a row a query and measure, the means being those of no query. Of several runs, the
    run is the first column.

    Ids are given as they are, but for a terminal, on which none may act.
    """
    import csv
    import io

    from eval_core.console import safe

    shown = safe if sys.stdout.isatty() else str
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    several = len(table) > 1
    rows.writerow((*(["run"] if several else []), "query", "measure", "value", "low", "high", "n"))
    for run, scores, bounds in table:
        first = [shown(run)] if several else []
        for measure in scores.measures:
            n = len(scores.values(measure))
            rows.writerow((*first, "", measure, scores.mean(measure), *bounds[str(measure)], n))
        for query, values in _rows(scores) if per_query else ():
            for measure, value in zip(scores.measures, values, strict=True):
                if value is not None:
                    rows.writerow((*first, shown(query), measure, value, "", "", ""))
    return out.getvalue()


def _table(runs: Sequence[_Scored], per_query: bool) -> str:
    from eval_core.console import clip, table

    several = len(runs) > 1
    # Where a run is one of several, its name is the second column.
    names = [[clip(one.run, 40)] if several else [] for one in runs]
    titles = ["run"] if several else []
    measures = runs[0].scores.measures
    parts = []
    if per_query:
        rows = [("query", *titles, *map(str, measures))]
        for name, one in zip(names, runs, strict=True):
            rows += [
                (clip(query, 40), *name, *("" if value is None else f"{value:.4f}" for value in values))
                for query, values in _rows(one.scores)
            ]
        parts += [table(rows, right=range(1 + several, len(rows[0]))), ""]
    every = runs[0].scores.every
    beside = any(len(one.scores.values(measure)) < one.scores.every for one in runs for measure in measures)
    means = [("measure", *titles, "mean", "95% interval", "n", *([f"mean of {every:,}"] if beside else []))]
    for measure in measures:
        for name, one in zip(names, runs, strict=True):
            low, high = one.bounds[str(measure)]
            row = (str(measure), *name, f"{one.scores.mean(measure):.4f}", f"{low:.4f} to {high:.4f}")
            n = f"{len(one.scores.values(measure)):,}"
            other = [f"{one.scores.mean_with_unscorable(measure):.4f}"] if beside else []
            means.append((*row, n, *other))
    right = [column + several for column in (1, 3, 4)]
    parts += [table(means, right=right), "", _counts(runs)]
    return "\n".join(parts)


def _counts(runs: Sequence[_Scored]) -> str:
    """What was scored and what was not: of one run a line a count, of several a line a run."""
    import textwrap

    from eval_core.console import clip, table

    scores = runs[0].scores
    if len(runs) == 1:
        told, means = counts(scores), "count 0" if scores.zeros else "not in the mean"
        kinds = [
            ("scored", "queries"),
            ("missing", "judged, absent from the run: they count 0" + _some(scores.missing)),
            ("unjudged", "in the run without judgements: ignored"),
            (
                "unscorable",
                f"without a document of grade {scores.level} or more: {means}" + _some(scores.unscorable),
            ),
            ("left_out", "not scored in the run itself: not in the mean" + _some(scores.left_out)),
            ("duplicates", "documents dropped as repeats; the better place stands"),
            *(
                [("skipped", "with their own document among the answers: left out")]
                if told["skipped"]
                else []
            ),
            (
                "contradicted",
                "with scores that contradict the ranks beside them" + _some(scores.contradicted),
            ),
            ("tied", "with a judged document in a tie, which document ids decide" + _some(scores.tied)),
        ]
        lines = [(name.replace("_", " "), f"{told[name]:,}", text) for name, text in kinds]
        remarks = [table(lines, right=(1,))]
    else:
        each = [counts(one.scores) for one in runs]
        shown = [
            name for name in each[0] if name in ("scored", "missing") or any(told[name] for told in each)
        ]
        rows = [("run", *(name.replace("_", " ") for name in shown))]
        rows += [
            (clip(one.run, 40), *(f"{told[name]:,}" for name in shown))
            for one, told in zip(runs, each, strict=True)
        ]
        remarks = [table(rows, right=range(1, len(shown) + 1))]
    remarks += dict.fromkeys(_ORDER[one.scores.ties] for one in runs)
    if scores.zeros and scores.unscorable:
        remarks.append(" The unscorable count 0, as in trec_eval -c (--unscorable zero).")
    elif scores.unscorable:
        remarks.append(f" The unscorable count 0 in the mean of {scores.every:,}, as in trec_eval -c.")
    if not scores.zeros and len({len(scores.values(measure)) for measure in scores.measures}) > 1:
        remarks.append(" Where n is smaller, rel= leaves queries without a relevant document.")
    for one in runs:
        if advice := one.scores.advice():
            lead = "" if len(runs) == 1 else f"{clip(one.run, 40)}: "
            told_lines = textwrap.wrap(
                f"Note: {lead}{advice}.", 98, initial_indent=" ", subsequent_indent="  "
            )
            remarks += told_lines
    return "\n".join(remarks)


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
