"""`eval-core show`: one report for a person, or a short block for each arm that has one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from eval_core.cli.workspace import config_option

if TYPE_CHECKING:
    from eval_core.compare.models import Entry
    from eval_core.policy import Line
    from eval_core.policy.figures import Part, RunFigures
    from eval_core.reports import Report

_EPILOG = """\b
Examples:
  eval-core show                        a short block for each arm of eval.toml that has a report
  eval-core show memory-bm25            the newest report of an arm, by category
  eval-core show .eval/history/memory-bm25/RUN.json
                                        any report, by its path
  eval-core show baseline:memory-bm25   the run that stands for the arm in policy/
  eval-core show memory-bm25 --format json
                                        every mean with its interval, for machines

A range is the 95% interval over other queries of the kind: Wilson's for measures of 0 or 1, else bootstrapped. In a
category of few queries it is wide. The exit code is 0 whatever the figures are: this shows, eval-gate judges.
"""

#: Measures that have room with their intervals, columns of each and of a category's name; categories that are shown.
MEASURES, CELL, NAMED, CATEGORIES = 4, 17, 14, 20


class _Shown(NamedTuple):
    """A run to show. A baseline has no report: its line holds no limits and no details of its rows."""

    figures: RunFigures
    line: Line
    report: Report | None
    entry: Entry
    #: What other verbs call it by: the arm's name, a path, or `baseline:ARM`.
    name: str


@click.command(epilog=_EPILOG)
@click.argument("arm", required=False)
@config_option()
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def show(arm: str | None, config: Path, form: str) -> int:
    """Show a report: figures by category, and what they cannot show. ARM is a name, a path, or baseline:NAME."""
    from eval_core.config import command, load_workspace

    missing: list[str] = []
    if arm is None:
        arms = load_workspace(config).arms
        missing = [name for name in arms if not (_reports(config) / f"{name}.json").exists()]
        shown = [_read(name, config) for name in arms if name not in missing]
        if not shown:
            raise _nothing(config)
    else:
        shown = [_read(arm, config)]
    if form == "json":
        from eval_core.policy.figures import Figures

        runs = tuple(one.figures for one in shown)
        click.echo(Figures(runs=runs).model_dump_json(by_alias=True, indent=1))
    elif len(shown) == 1:
        _print(_whole(shown[0], config))
        _print(_absent(missing))
    else:
        for one in shown:
            _print([*_head(one), *_table(one, ()), *_health(one), ""])
        one_arm = command("eval-core", "show", shown[0].name, config=config)
        _print([*_absent(missing), f"Next: {one_arm}   one arm, by category"])
    return 0


def _reports(config: Path) -> Path:
    from eval_core.config import OUTPUT

    return config.parent / OUTPUT / "reports"


def _nothing(config: Path) -> Exception:
    from eval_core.config import command
    from eval_core.errors import Refused

    mend = f"Measure first:  {command('eval-core', 'measure', config=config)}"
    return Refused("report-missing", "no arm of eval.toml has a report", file=_reports(config), mend=mend)


def _read(name: str, config: Path) -> _Shown:
    """The run that a name stands for.

    Raises:
        Refused, Misuse, Faults: there is no such report or baseline, or it cannot be believed.
    """
    from eval_core.compare.models import of_report
    from eval_core.compare.sides import BASELINE, baseline_of, report_of
    from eval_core.errors import Refused
    from eval_core.policy import line_of
    from eval_core.policy.figures import figures
    from eval_core.reports import read_report

    if name.startswith(BASELINE) and not Path(name).exists():
        arm = name.removeprefix(BASELINE)
        line, entry = baseline_of(arm, config)
        return _Shown(figures(line, arm, entry.path), line, None, entry, name)
    path, wanted = report_of(name, config)
    try:
        report = read_report(path, wanted)
    except Refused as error:
        raise error.but(mend=f"Measure it again:  eval-core measure {wanted or 'ARM'}") from error
    line = line_of(report)
    entry = of_report(str(path), report)
    return _Shown(figures(line, report.arm, str(path)), line, report, entry, name)


# --------------------------------------------------------------------------------------------- in words


def _print(lines: Iterator[str] | Sequence[str]) -> None:
    for line in lines:
        click.echo(line)


def _whole(one: _Shown, config: Path) -> Iterator[str]:
    from eval_core.cli.measure import limits_in_words, statements_in_words
    from eval_core.console import count

    categories = list(one.figures.categories)
    yield from _head(one)
    yield from _table(one, categories[:CATEGORIES])
    if (more := len(categories) - CATEGORIES) > 0:
        yield f" … {count(more, 'more category', 'more categories')}:  --format json"
    yield " Ranges are 95% intervals over other queries of the kind."
    yield ""
    yield from _health(one)
    if one.report is not None:
        yield from limits_in_words([one.report])
        yield from statements_in_words([one.report])
    else:
        for statement in one.line.statements:
            yield from _wrapped(statement)
    yield from _steps(one, config)


def _head(one: _Shown) -> Iterator[str]:
    from eval_core.console import clip, count

    line, what = one.line, "its baseline, " if one.report is None else ""
    queries, documents = count(one.figures.overall.n, "query", "queries"), count(line.documents, "document")
    names = f"{clip(one.figures.set, 30)} · {clip(one.figures.arm, 40)}"
    yield f"{names}   {what}{queries}, {documents}"
    tree = {None: "", True: ", clean", False: ", with uncommitted changes"}[line.clean]
    where = f"at {clip(line.commit[:7], 7)}" if line.commit else "outside git"
    yield f" measured {clip(line.started[:16].replace('T', ' '), 16)} UTC {where}{tree}, class {clip(line.class_, 20)}"


def _table(one: _Shown, categories: Sequence[str]) -> list[str]:
    """All queries, then these categories: each mean and its interval."""
    from eval_core.compare import usual
    from eval_core.console import clip, table

    measures = [str(measure) for measure in usual([one.entry], [])][:MEASURES]
    parts = [("all", one.figures.overall), *((name, one.figures.categories[name]) for name in categories)]
    rows = [(clip(name, NAMED), str(part.n), *_cells(part, measures)) for name, part in parts]
    return table([("", "n", *(clip(name, CELL) for name in measures)), *rows], right=(1,)).split("\n")


def _cells(part: Part, measures: Sequence[str]) -> Iterator[str]:
    for name in measures:
        score = part.measures.get(name)
        yield f"{score.mean:.3f} {score.low:.3f}–{score.high:.3f}" if score else "–"


def _health(one: _Shown) -> Iterator[str]:
    """What is not ok, and of the first few rows why."""
    from eval_core.cli.measure import health_words
    from eval_core.console import clip, paint

    if one.report is None or (words := health_words(one.report)) == "ok":
        return
    yield f" health: {paint(words, 'red')}"
    for row in [row for row in one.report.rows if row.detail][:3]:
        yield f"  {clip(row.id, 20)} {row.outcome}: {clip(' '.join(row.detail.split()), 60)}"


def _wrapped(text: str) -> list[str]:
    import textwrap

    from eval_core.console import safe

    return textwrap.wrap(safe(text), 100, initial_indent=" ", subsequent_indent="   ", break_on_hyphens=False)


def _absent(missing: Sequence[str]) -> Iterator[str]:
    if missing:
        yield from _wrapped(f"Without a report: {', '.join(missing)} (eval-core measure ARM)")


def _steps(one: _Shown, config: Path) -> Iterator[str]:
    """At most two commands that go on from here."""
    from eval_core.config import command
    from eval_core.explain import headline_of, missed

    arm, report = one.figures.arm, one.report
    if report is None:
        compare = command("eval-core", "compare", one.name, arm, config=config)
        yield f"Next: {compare}   hold the newest report against it"
        return
    if not report.health.ok:
        yield f"Next: mend what went wrong, then:  {command('eval-core', 'measure', arm, config=config)}"
        return
    if lowest := missed(one.entry, headline_of([one.entry], [])):
        are = "is" if len(lowest) == 1 else "are"
        explain = command("eval-core", "explain", one.name, "--missed", config=config)
        yield f"Next: {explain}   why {len(lowest)} of {one.figures.overall.n} queries {are} missed"
    if one.name == arm:
        yield from _bar(arm, config)


def _bar(arm: str, config: Path) -> Iterator[str]:
    """The verb of the gate that is next for an arm: where the policy cannot be read, none that would fail."""
    from eval_core.config import command
    from eval_core.errors import EvalError
    from eval_core.policy import FLOORS, POLICY, read_policy

    policy = config.parent / POLICY
    try:
        floored = (policy / FLOORS).exists() and arm in read_policy(policy).floors.arms
    except EvalError:
        return
    if floored:
        yield f"Next: {command('eval-gate', 'check', arm, config=config)}   hold it against its floors"
    else:
        floor = command("eval-gate", "floor", arm, "--measure", config=config)
        yield f"Next: {floor}   measure twice and propose the bar"
