"""`eval-core measure`: arms in, a run and a report each, and one table."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_core.cli.workspace import config_option

if TYPE_CHECKING:
    from eval_core.config import Workspace
    from eval_core.measuring.loop import Progress
    from eval_core.measuring.plan import Plan
    from eval_core.reports.report import Report

_EPILOG = """\b
Examples:
  eval-core measure                          every arm of the pull-request lane
  eval-core measure memory-bm25              one arm by name
  eval-core measure --resume                 go on where a killed run stopped
  eval-core measure --source notes=../notes  with another place for a source
  eval-core measure --format json            for machines

Writes .eval/reports/ARM.json (the newest), .eval/history/ARM/RUN.json (each one: evidence for a floor) and
.eval/runs/ARM.jsonl and .trec. Exit 3 if an arm could not be measured or a row errored; its report is written all
the same.
"""


@click.command(epilog=_EPILOG)
@click.argument("arms", nargs=-1, metavar="[ARM]...")
@click.option(
    "--lane",
    type=click.Choice(["pull-request", "owner", "all"]),
    default="pull-request",
    show_default=True,
    help="Which arms to measure where none is named.",
)
@click.option(
    "--resume", is_flag=True, help="Go on with unfinished runs. Such a run is no evidence for a floor."
)
@click.option(
    "--source", "sources", multiple=True, metavar="NAME=PATH", help="Another place for a source. Repeatable."
)
@config_option()
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("-q", "--quiet", is_flag=True, help="No progress on the terminal.")
def measure(
    arms: tuple[str, ...],
    lane: str,
    resume: bool,
    sources: tuple[str, ...],
    config: Path,
    form: str,
    quiet: bool,
) -> int:
    """Measure arms of eval.toml: each query to its backend, timed, scored against the judgements."""
    from eval_core.cli.reconstruct import lock_line, parse_sources
    from eval_core.config import load_workspace
    from eval_core.errors import CouldNot, EvalError, Faults
    from eval_core.measuring.environment import git
    from eval_core.measuring.loop import discard
    from eval_core.measuring.loop import measure as measure_arm
    from eval_core.measuring.measurement import Measured, Measurement, measured
    from eval_core.measuring.plan import backend_faults, known_sources, prepare
    from eval_core.reconstruct import check_overrides

    workspace = load_workspace(config)
    chosen = workspace.chosen(arms, None if lane == "all" else lane)
    if not chosen:
        raise click.UsageError(f"no arm of {config} is in the lane {lane!r}; name one, or say --lane all")
    overrides = parse_sources(sources)
    entries: list[Measured] = []
    reports: list[Report] = []
    notes: list[str] = []
    with _from(workspace) as here:
        with contextlib.suppress(Faults):  # told below, with everything else
            check_overrides(overrides, known_sources(here, chosen))
        # A repository that git refuses to read is said once, and before anything is removed.
        git(here.root, "rev-parse", "HEAD")
        for name in chosen:
            # From here on, an arm's report is the one that this call makes, or there is none.
            discard(name, here.output("runs"), here.output("reports"))
        try:
            plans = prepare(
                here,
                chosen,
                overrides,
                told=lambda lock: click.echo(lock_line(lock), err=form == "json"),
                found=backend_faults(here, chosen),
            )
        except CouldNot:
            if len({arm.dataset for arm in chosen.values()}) > 1:
                click.echo("Nothing was measured. Arms of the other sets can be, by name.", err=True)
            raise
        for made in plans:
            try:
                with _progress(made, quiet) as progress:
                    report = measure_arm(
                        made,
                        here.output("runs"),
                        here.output("reports"),
                        here.output("history"),
                        resume=resume,
                        progress=progress,
                    )
            except KeyboardInterrupt:
                click.echo(
                    f"\n{made.name}: interrupted; go on with  {_again(arms, lane, config)}\n"
                    "  A resumed run can be read and compared; to gate or to floor, measure in one go.",
                    err=True,
                )
                raise
            except EvalError as error:
                if error.exit_code != 3:
                    raise
                notes.append(f"{made.name}: {error}")
                entries.append(Measured(arm=made.name, set=made.dataset.name, error=str(error)))
                continue
            reports.append(report)
            entries.append(measured(report, str(workspace.output("reports") / f"{made.name}.json")))
    if form == "json":
        click.echo(Measurement(arms=tuple(entries)).model_dump_json(by_alias=True, indent=1))
    else:
        _show(workspace, reports, notes)
    for note in notes:
        click.echo(note, err=True)
    return 0 if all(entry.ok for entry in entries) else 3


def _again(arms: tuple[str, ...], lane: str, config: Path) -> str:
    """The command line that goes on with what was interrupted."""
    from eval_core.config import command

    words = [*arms, *(["--lane", lane] if lane != "pull-request" else []), "--resume"]
    return command("eval-core", "measure", *words, config=config)


@contextlib.contextmanager
def _from(workspace: Workspace) -> Iterator[Workspace]:
    """Work from the workspace's folder, since datasets, options and commands are relative to it."""
    from eval_core.config import Workspace

    with contextlib.chdir(workspace.root):
        yield Workspace(Path(), Path(workspace.path.name), workspace.arms)


@contextlib.contextmanager
def _progress(made: Plan, quiet: bool) -> Iterator[Progress | None]:
    """A bar on a terminal; nothing in a pipe or a log."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("measure      {task.description}"),
        BarColumn(30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True, no_color=bool(os.environ.get("NO_COLOR"))),
        transient=True,
    )
    with bar:
        task = bar.add_task(f"{made.dataset.name} · {made.name}", total=len(made.queries) * made.repetitions)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _show(workspace: Workspace, reports: list[Report], notes: list[str]) -> None:
    from eval_core.console import count, table

    if reports:
        depths = {report.cutoffs[-1] for report in reports}
        # One depth is said once, above the column; several are said in each cell.
        depth = depths.pop() if len(depths) == 1 else None
        head = ("set", "arm", "n", *(f"{name}@{depth}" if depth else name for name in _DEEP), "hit@1", "mrr")
        click.echo()
        click.echo(
            table(
                [(*head, "p95 ms", "health"), *(_line(r, depth) for r in reports)],
                right=range(2, len(head) + 1),
            )
        )
        click.echo()
        for report in reports:
            _details(report)
        click.echo(f"{count(len(reports), 'arm')} measured; reports in {workspace.output('reports')}.")
        for line in (*limits_in_words(reports), *statements_in_words(reports), *_perfect(reports)):
            click.echo(line)
    if not notes:
        click.echo(_next(workspace, reports))


def limits_in_words(reports: list[Report]) -> Iterator[str]:
    """What the numbers of each set cannot show, in a line or two."""
    from eval_core.console import count
    from eval_core.scoring.statistics import resolution
    from eval_core.sets.limits import Limits

    for name, report in {report.dataset.name: report for report in reports if report.n}.items():
        if report.limits is None:
            yield f" {name}: one query is {100 / report.n:.1f} points."
            continue
        limits = Limits.model_validate_json(json.dumps(report.limits))
        step = f"{limits.one_query_points:.1f} points"
        fewest = resolution(report.n).queries
        yield f" {name}: one query is {step}; a difference of fewer than {fewest} can be chance."
        yield f" {name}: {limits.overlap.sentence()}."
        if limits.leaks:
            leaks = count(limits.leaks, "query", "queries")
            yield f" {name}: {leaks} word for word in a document (limits in the report)."
        if limits.near_duplicates:
            judged = count(limits.near_duplicates, "judged document")
            yield f" {name}: {judged} with an unjudged near-duplicate (limits in the report)."


def statements_in_words(reports: list[Report]) -> Iterator[str]:
    """What the reports say of themselves: of the set what all of its arms say, of an arm what it says alone."""
    import textwrap

    from eval_core.console import safe

    by_set: dict[str, dict[str, list[str]]] = {}
    for report in reports:
        for text in report.statements:
            by_set.setdefault(report.dataset.name, {}).setdefault(text, []).append(report.arm)
    arms = Counter(report.dataset.name for report in reports)
    for name, texts in by_set.items():
        for text, sayers in texts.items():
            whose = name if len(sayers) == arms[name] else ", ".join(sayers)
            yield textwrap.fill(
                f"{whose}: {safe(text)}" + "." * (not text.endswith(".")),
                WIDTH,
                initial_indent=" ",
                subsequent_indent="   ",
                break_long_words=False,
                break_on_hyphens=False,
            )


#: Columns of what is printed below the table.
WIDTH = 98


def _perfect(reports: list[Report]) -> Iterator[str]:
    """Arms behind the line protocol that answered every query perfectly: their command can read the judgements."""
    for report in reports:
        values = report.summary.overall.metrics
        deepest = f"recall@{report.cutoffs[-1]}"
        if report.system.parts.get("backend") == "jsonl" and values.get(deepest) == values.get("hit@1") == 1:
            yield (
                f" {report.arm}: every query answered perfectly; see 'What no gate can prevent' in "
                "docs/backends/jsonl-protocol.md."
            )


_DEEP = ("recall", "ndcg")


def _line(report: Report, common: int | None) -> tuple[str, ...]:
    overall = report.summary.overall
    values, depth = overall.metrics, report.cutoffs[-1]

    def shown(name: str) -> str:
        if name not in values or not report.n:
            return "–"
        # One column bounds its value, for the scale of them all: half the width of the 95% interval.
        bounds = overall.intervals.get(name) if name.startswith("recall@") else None
        return f"{values[name]:.3f}" + (f" ±{(bounds[1] - bounds[0]) / 2:.3f}" if bounds else "")

    return (
        report.dataset.name,
        report.arm,
        str(report.n),
        *(("" if common else f"@{depth} ") + shown(f"{name}@{depth}") for name in _DEEP),
        shown("hit@1"),
        shown("mrr"),
        f"{report.latency.p95:.2f}" if report.latency else "–",
        health_words(report),
    )


def health_words(report: Report) -> str:
    """`ok`, or what is not, in words; and what was dropped from answers, cut off them, or put into another order."""
    from eval_core.reports.models import REORDERED

    health = report.health
    parts = [f"{value} {name}" for name in ("errored", "unscored") if (value := getattr(health, name))]
    parts = parts or (["ok"] if health.scored else ["nothing scored"])
    parts += [
        f"{value} {name}"
        for name in ("unscorable", "unstable", "restarts")
        if (value := getattr(health, name))
    ]
    altered = (
        (health.duplicates, "repeated"),
        (health.excess, "cut"),
        (health.counts.get(REORDERED, 0), "reordered"),
    )
    parts += [f"{value:,} {word}" for value, word in altered if value]
    return ", ".join(parts)


def _details(report: Report) -> None:
    """Say why rows are not scored, the first few."""
    from eval_core.console import clip, count

    bad = [row for row in report.rows if row.outcome in ("errored", "unscored")]
    for row in bad[:3]:
        click.echo(f" {report.arm}  {row.id} {row.outcome}: {clip(' '.join(row.detail.split()), 160)}")
    if len(bad) > 3:
        click.echo(f" {report.arm}  … {count(len(bad) - 3, 'more row')} in the report")
    for why, number in Counter(row.detail for row in report.rows if row.outcome == "unscorable").items():
        click.echo(f" {report.arm}  {count(number, 'query', 'queries')} unscorable: {clip(why, 160)}")
    if report.health.unstable:
        moved = count(report.health.unstable, "query", "queries")
        click.echo(f" {report.arm}  is non-deterministic: repetitions ranked {moved} otherwise")
    for line in _altered(report):
        click.echo(f" {report.arm}  {line}")


#: Share of what was answered from which it is said in words that it was dropped, cut or put into another order.
MUCH = 0.1


def _altered(report: Report) -> Iterator[str]:
    """Say what was done to the answers, where it is much."""
    from eval_core.console import count
    from eval_core.reports.models import REORDERED

    health, kept = report.health, sum(len(row.ids) for row in report.rows)
    left = f"beside {kept:,} that are scored"
    if health.duplicates > MUCH * kept:
        repeats = count(health.duplicates, "id")
        yield f"repeats itself: {repeats} dropped {left}; does it answer the file's name for each chunk?"
    if health.excess > MUCH * kept:
        yield f"answers more than the k that is asked for: {count(health.excess, 'id')} cut off {left}"
    tied = health.counts.get(REORDERED, 0)
    if tied > MUCH * health.scored:
        yield f"has equal scores in {count(tied, 'answer')}: there the order is that of the ids"


def _next(workspace: Workspace, reports: list[Report]) -> str:
    from eval_core.config import command

    if any(
        not (health.scored or health.errored or health.unscored) for health in (r.health for r in reports)
    ):
        return "Next: mend why no query could be scored and measure again; a report without a score is no evidence."
    if any(not report.health.ok for report in reports):
        return "Next: mend what errored and measure again; a report with errored rows is no evidence."
    if any(report.resumed for report in reports):
        return "Next: measure once more, in one go: a resumed run is whole, and neither evidence nor graded."
    if (workspace.root / "policy" / "floors.toml").exists():
        check = command("eval-gate", "check", config=workspace.path)
        return f"Next: {check}          grade them against policy/"
    history = workspace.output("history")
    if any(len(list((history / report.arm).glob("*.json"))) < 2 for report in reports):
        floor = command("eval-gate", "floor", "--measure", config=workspace.path)
        return f"Next: {floor}   measure twice and propose the bar (one run is no floor)"
    floor = command("eval-gate", "floor", config=workspace.path)
    return f"Next: {floor}          propose the bar from the runs in .eval/history"
