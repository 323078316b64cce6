"""`eval-core compare`: reports or runs held against a first one, or search backends against each other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_core.cli.workspace import config_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eval_core.compare.models import Comparison, Entry
    from eval_core.errors import Refused
    from eval_core.scoring.metrics import Measure

_EPILOG = """\b
Examples:
  eval-core compare before.json after.json        two reports
  eval-core compare baseline:code-bm25 code-bm25  the baseline in policy/ and the newest report of an arm
  eval-core compare code-bm25 code-dense code-hybrid
                                                  each against the first
  eval-core compare a.trec b.jsonl --qrels test.tsv -m ndcg@10 -m "recall@100(rel=2)"
                                                  runs of any tool, scored against judgements
  eval-core compare --backends a,b --manifest M --root DIR --k 5
                                                  search backends over the files below a folder: names of backends
                                                  or of arms of eval.toml (arm:NAME where both have it)

A path is a path, of a report or of an arm's evidence, whose last run it is. Otherwise NAME stands for
.eval/reports/NAME.json (with --qrels: .eval/runs/NAME.jsonl), and baseline:NAME for the last run that the floors of
that arm stand on, in the folder of --config.

Queries are joined by id over those scored in both; the others are counted, and are in no figure. A report of another
task is refused, and what differs is named; a corpus that the floors let drift is crossed, with its changed documents
named. p is of McNemar's mid-p test for measures of 0 or 1 and of a sign-flip
randomisation test for others, two-sided, and adjusted by Holm over all arms and measures.

JSON holds every query that moved; --limit is for people. Exit codes: 0 compared, 1 refused, 2 wrong usage, 3 could
not.
"""

#: Options of one mode, told where they stand in another.
_OF_BACKENDS = ("manifest", "root", "k")
_OF_FILES = ("measures", "qrels", "ties", "everything", "limit")

_SHOWN = 20


@click.command(epilog=_EPILOG)
@click.argument("files", nargs=-1, metavar="BEFORE AFTER...")
@click.option(
    "-m",
    "--measure",
    "measures",
    multiple=True,
    metavar="MEASURE",
    help="What is compared, the first leading. Repeatable, or with commas.  [default: the set's headline, recall, "
    "ndcg, hit@1 and mrr]",
)
@click.option(
    "--qrels",
    type=click.Path(path_type=Path),
    help="The arguments are runs, scored against these judgements.",
)
@click.option(
    "--ties",
    type=click.Choice(["trec", "id"]),
    default="trec",
    show_default=True,
    help="The order of equal scores in TREC runs: by id descending, as trec_eval, or ascending.",
)
@click.option("--all", "everything", is_flag=True, help="List every query that moved.")
@click.option(
    "--limit", type=click.IntRange(0), default=_SHOWN, show_default=True, help="Queries to list of an arm."
)
@config_option()
@click.option(
    "--backends", metavar="A,B", help="Search backends or arms, compared over the queries of --manifest."
)
@click.option("--manifest", type=click.Path(path_type=Path), help="Queries with the files that answer them.")
@click.option(
    "--root", type=click.Path(path_type=Path), default=Path(), show_default=True, help="The folder to search."
)
@click.option("--k", type=click.IntRange(1), default=5, show_default=True, help="Files asked for a query.")
@click.option(
    "--format", "form", type=click.Choice(["table", "markdown", "json"]), default="table", show_default=True
)
@click.pass_context
def compare(
    context: click.Context,
    files: tuple[str, ...],
    measures: tuple[str, ...],
    qrels: Path | None,
    ties: str,
    everything: bool,
    limit: int,
    config: Path,
    backends: str | None,
    manifest: Path | None,
    root: Path,
    k: int,
    form: str,
) -> int:
    """Hold reports, or runs with judgements, against a first one, query by query."""
    given = [name for name in context.params if _said(context, name)]
    if backends is not None:
        if manifest is None:
            raise click.UsageError("--backends needs --manifest, the queries with the files that answer them")
        if files:
            raise click.UsageError(f"--backends takes no reports or runs, and {files[0]!r} is given")
        _together(context, given, _OF_FILES, "--backends")
        specs = [spec for part in backends.split(",") if (spec := part.strip())]
        return _backends(manifest, root, specs, k, config, form)
    for name in given:
        if name in _OF_BACKENDS:
            raise click.UsageError(f"{_flag(context, name)} goes with --backends A,B")
    if everything and "limit" in given:
        raise click.UsageError("--all lists every query and --limit the first few; give one of them")
    if "ties" in given and qrels is None:
        raise click.UsageError("--ties goes with --qrels: the ranks in a report are settled")
    if len(files) < 2:
        raise click.UsageError(
            "give two at least, before and after: reports, names of arms, or runs with --qrels"
        )
    return _files(files, measures, qrels, ties, None if everything else limit, config, form)


def _said(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def _flag(context: click.Context, name: str) -> str:
    return next(option.opts[-1] for option in context.command.params if option.name == name)


def _together(context: click.Context, given: Sequence[str], strange: Sequence[str], mode: str) -> None:
    for name in given:
        if name in strange:
            raise click.UsageError(f"{_flag(context, name)} does not go with {mode}")


def _backends(manifest: Path, root: Path, specs: list[str], k: int, config: Path, form: str) -> int:
    from eval_core import contract

    found = contract.compare_backends(manifest, root, specs, k, config=config)
    render = {"json": contract.as_json, "markdown": contract.as_markdown, "table": contract.as_table}[form]
    click.echo(render(found).removesuffix("\n"))
    return found.exit_code


def _files(
    files: Sequence[str],
    measures: Sequence[str],
    qrels: Path | None,
    ties: str,
    limit: int | None,
    config: Path,
    form: str,
) -> int:
    from eval_core.compare import compare as hold
    from eval_core.compare import render
    from eval_core.compare.sides import side_of
    from eval_core.errors import Refused
    from eval_core.scoring import spelling

    wanted = [spelling.read(name.strip()) for given in measures for name in given.split(",")]
    try:
        if qrels is None:
            entries = [side_of(name, config) for name in files]
        else:
            entries = [_run(name, config, qrels, wanted, ties) for name in files]
        found = hold(entries, wanted)
    except Refused as error:
        if form != "table":
            _print(_refusal(error), form, limit)
        raise
    if form == "table":
        click.echo(render.terminal(found, limit))
    else:
        _print(found, form, limit)
    return 0


def _print(found: Comparison, form: str, limit: int | None) -> None:
    from eval_core.compare import render
    from eval_core.console import as_json

    if form == "json":
        click.echo(as_json(found.model_dump(by_alias=True)))
    elif found.refused is not None:
        click.echo(render.refused_markdown(found))
    else:
        click.echo(render.markdown(found, limit))


def _refusal(error: Refused) -> Comparison:
    """A refusal as machines read it: also told on standard error, as every error is."""
    from eval_core.compare.models import Comparison, Refusal
    from eval_core.compare.tasks import TaskDiffers
    from eval_core.errors import sentence

    changed = error.changed if isinstance(error, TaskDiffers) else ()
    return Comparison(
        refused=Refusal(reason=error.code, message=sentence(error.details), differences=changed)
    )


def _run(name: str, config: Path, qrels: Path, measures: Sequence[Measure], ties: str) -> Entry:
    from eval_core.compare.models import of_run
    from eval_core.compare.sides import first_line, is_report, run_of
    from eval_core.errors import Misuse
    from eval_core.measuring.run import SCHEMA
    from eval_core.scoring.score import score_files

    path = run_of(name, config)
    if is_report(path):
        what = "is a report, and --qrels goes with runs; leave it out"
        raise Misuse("report-with-qrels", what, file=path)
    header = first_line(path)[1]
    scores = score_files(path, qrels, measures, ties)
    outcomes = _outcomes(path) if scores.left_out else {}
    return of_run(str(path), scores, header if header.get("schema") == SCHEMA else {}, outcomes)


def _outcomes(path: Path) -> dict[str, str]:
    """The outcome of each query of one of our own runs, which was read once and is sound."""
    import json

    from eval_core.scoring.readers.source import opened

    with opened(path, "run") as source:
        rows = [json.loads(line) for _, line in source.lines() if line.strip()]
    return {str(row["id"]): row["outcome"] for row in rows[1:]}
