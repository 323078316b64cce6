"""`eval-gate floor`: a proposal of floors as a diff, and on request the file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_gate.cli.types import SHARE
from eval_gate.cli.types import margin as margin_of
from eval_gate.cli.types import reason as reason_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from eval_core.errors import EvalError
    from eval_core.reports.report import Report
    from eval_gate.policy import ArmFloors

_EPILOG = """\b
Examples:
  eval-gate floor                               every arm that has a report, as a diff of policy/floors.toml
  eval-gate floor memory-bm25 --write           write it, with the evidence it stands on
  eval-gate floor memory-bm25 --margin derived  as many misses as the runs' own flips explain
  eval-gate floor memory-bm25 --by-category     a floor for each category of 20 queries or more too
  eval-gate floor notes --drifts 0.1 --write    a corpus that follows a branch: documents within 10%
  eval-gate floor memory-bm25 --evidence a.json --evidence b.json
  eval-gate floor memory-bm25 --form plain      a plain table, rounded down, for another gate

Evidence is two or more runs of one task and one system. Where --evidence names none, it is every whole run of
.eval/history/ARM that measured what the newest report did, in the same kind of place, on a clean tree.

What an arm's floors say of margin, categories, tracking and drift stays unless an option says otherwise. A bar that is
loosened, or moved to another task, needs --reason; so do floors for an arm whose own were deleted.

All that is asked for is written, or nothing: where one arm is refused, the last line floors the others.
"""


@click.command(epilog=_EPILOG)
@click.argument("arms", nargs=-1, metavar="[ARM]...")
@click.option("--policy", type=click.Path(path_type=Path), default=Path("policy"), show_default=True)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path(".eval"),
    show_default=True,
    help="Where measuring wrote.",
)
@click.option(
    "--evidence",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A report to stand on. Repeatable; one arm.",
)
@click.option("--metric", "measures", multiple=True, metavar="MEASURE", help="What to floor. Repeatable.")
@click.option(
    "--margin",
    callback=margin_of,
    metavar="MISSES|derived",
    help="Misses below the worst evidence, or derived: from how much the runs differ.  [default: 2]",
)
@click.option(
    "--by-category/--overall", default=None, help="Floor every category of 20 queries or more, too."
)
@click.option(
    "--track/--gate", "tracked", default=None, help="Grade and tell, but never fail; needs --reason."
)
@click.option("--drifts", type=SHARE, help="The corpus moves: documents may differ by this share.")
@click.option(
    "--reason",
    callback=reason_of,
    help="Why the bar is loosened, or another task measured; kept in the file.",
)
@click.option("--form", type=click.Choice(["native", "plain"]), default="native", show_default=True)
@click.option("--write", is_flag=True, help="Write the floors and copies of the evidence.")
@click.option(
    "--format", "output_format", type=click.Choice(["diff", "json"]), default="diff", show_default=True
)
@click.pass_context
def floor(
    context: click.Context,
    arms: tuple[str, ...],
    policy: Path,
    output: Path,
    evidence: tuple[Path, ...],
    measures: tuple[str, ...],
    margin: int | str | None,
    by_category: bool | None,
    tracked: bool | None,
    drifts: float | None,
    reason: str | None,
    form: str,
    write: bool,
    output_format: str,
) -> int:
    """Propose floors: the worst of two or more measured runs, less a margin counted in misses."""
    from eval_core.errors import EvalError, did_you_mean
    from eval_core.scoring import metrics
    from eval_gate.check.evidence import measured
    from eval_gate.floors.propose import Wish, derive
    from eval_gate.floors.text import floors_text, plain, present
    from eval_gate.policy import (
        BASELINES,
        BUDGETS,
        FLOORS,
        MARGIN,
        Budget,
        Budgets,
        Floors,
        is_name,
        read_budgets,
        read_floors,
    )
    from eval_gate.reasons import unless_deleted

    if form == "plain" and write:
        raise click.UsageError("--form plain is printed, not written; redirect it to the file of your choice")
    known = measured(output / "reports")
    names = tuple(dict.fromkeys(arms) or known)
    if not names:
        raise click.UsageError(f"no report in {output / 'reports'}; measure first:  eval-core measure")
    for name in names:
        if not is_name(name):
            raise click.UsageError(
                f"arm {name!r}: a name is lower-case letters, digits, . _ -{did_you_mean(name, known)}"
            )
    if evidence and len(names) != 1:
        raise click.UsageError("--evidence goes with one arm")
    for measure in measures:
        metrics.parse(measure)
    path = policy / FLOORS
    bound = read_floors(path) if path.exists() and form == "native" else Floors(schema_="floors-v1")
    previous = bound.arms
    has_budgets = form == "native" and (policy / BUDGETS).exists()
    budgets = read_budgets(policy / BUDGETS, bound) if has_budgets else Budgets(schema_="budgets-v1")
    runs = {}
    made = {}
    refused: dict[str, EvalError] = {}
    for name in names:
        stands = previous.get(name)
        if margin is None:
            derived = stands is not None and stands.margin_rule == "derived"
            misses = None if derived else stands.margin if stands is not None else MARGIN
        else:
            misses = margin if isinstance(margin, int) else None
        share = drifts if drifts is not None else _drift(stands)
        wish = Wish(
            margin=misses,
            measures=measures or (tuple(stands.metrics) if stands is not None else ()),
            by_category=by_category if by_category is not None else bool(stands and stands.categories),
            tracked=tracked if tracked is not None else bool(stands and stands.tracked),
            drifts=share,
            reason=reason,
            budget=budgets.arms.get(name, Budget()),
        )
        try:
            if stands is None and form == "native":
                unless_deleted(policy, name, reason)
            runs[name] = _runs(name, output, evidence, share)
            made[name] = derive(name, runs[name], wish, stands)
            if form == "plain":
                plain({name: made[name]})
        except EvalError as error:
            made.pop(name, None)
            refused[name] = error
    if refused:
        raise _told(refused, made, context)
    if form == "plain":
        click.echo(plain(made), nl=False)
        return 0
    before = present(path)
    after = floors_text(before, made)
    if write:
        _write(policy, path, after, made, runs)
    if output_format == "json":
        from eval_gate.floors.proposal import proposal

        click.echo(proposal(path, made, written=write).model_dump_json(by_alias=True, indent=1))
    else:
        _diff(path, before, after)
        verb = (
            f"Wrote {path} and the evidence beside it" if write else "Nothing was written; --write applies it"
        )
        click.echo(f"{verb}. A change of the bar is a commit of its own, that names the runs.")
        bare = [name for name in made if not (policy / BASELINES / f"{name}.json").exists()]
        if write and bare:
            click.echo(
                f"Next: eval-gate baseline {' '.join(bare)} --write    what later reports are compared with"
            )
    return 0


def _told(refused: Mapping[str, EvalError], made: Iterable[str], context: click.Context) -> EvalError:
    """All that is refused in one error, with the code and the reason of the first; of one arm alone, its own."""
    from eval_core.errors import CouldNot, Misuse, Refused

    first, *more = refused.values()
    others = list(made)
    if not more and not others:
        return first
    kind = next(one for one in (Misuse, CouldNot, Refused) if one.exit_code == first.exit_code)
    count = f"{len(refused)} of {len(refused) + len(others)} arms {'are' if more else 'is'} refused"
    return kind(
        "\n".join([*map(str, refused.values()), f"{count}; nothing was written."]),
        reason=first.reason,
        remedy=f"The others can be floored:  {_command(others, context)}" if others else None,
    )


def _command(arms: Iterable[str], context: click.Context) -> str:
    """The command line that floors some arms, with the options that were given."""
    import shlex

    from click.core import ParameterSource

    words = ["eval-gate", "floor", *arms]
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if not isinstance(parameter, click.Option) or not given or name in {"write", "output_format"}:
            continue
        value = context.params[name]
        if parameter.is_flag:
            words.append(parameter.opts[0] if value else parameter.secondary_opts[0])
            continue
        for one in value if parameter.multiple else (value,):
            words += [parameter.opts[0], str(one)]
    writes = [] if context.params["form"] == "plain" else ["--write"]
    return shlex.join([*words, *writes])


def _drift(stands: ArmFloors | None) -> float | None:
    """The share that the present band of documents lies around its middle; None for a pinned corpus."""
    if stands is None or stands.documents is None:
        return None
    low, high = stands.documents
    return (high - low) / (high + low)


def _runs(arm: str, output: Path, evidence: tuple[Path, ...], drifts: float | None) -> list[Report]:
    """The runs to stand on: those named, else the newest and every run of the history that can stand beside it."""
    from eval_core.errors import Refused
    from eval_core.reports.report import read_report
    from eval_gate.floors.propose import unfit, unlike

    if evidence:
        return [read_report(path, arm) for path in evidence]
    newest = _newest(arm, output / "reports")
    found = []
    for path in sorted((output / "history" / arm).glob("*.json")):
        # What is past must not stand in the way: runs of an earlier state are expected, and a file that no longer
        # reads or a run that failed is left out, and told.
        try:
            report = read_report(path, arm)
        except Refused as error:
            click.echo(f"{arm}: left out: {error.message}", err=True)
            continue
        if report.run_id == newest.run_id or unlike(report, newest, drifts) is not None:
            continue
        problem = unfit(report)
        if problem is not None:
            click.echo(f"{arm}: run {report.run_id!r} is left out: it {problem.message}", err=True)
        else:
            found.append(report)
    return [*found, newest]


def _newest(arm: str, reports: Path) -> Report:
    from eval_core.errors import Refused, did_you_mean
    from eval_core.reports.report import read_report
    from eval_gate.check.evidence import measured

    path = reports / f"{arm}.json"
    if not path.exists():
        known = measured(reports)
        raise Refused(
            f"{path}: no such report{did_you_mean(arm, known)}  (arms with one: {', '.join(known) or 'none'})",
            reason="report-missing",
            remedy=f"Measure it twice, then try again:  eval-core measure {arm}",
        )
    return read_report(path, arm)


def _write(
    policy: Path, path: Path, text: str, made: Iterable[str], runs: Mapping[str, list[Report]]
) -> None:
    from eval_core.reports.report import dump
    from eval_gate.floors.text import budgets_text
    from eval_gate.floors.write import write_all
    from eval_gate.policy import BUDGETS, EVIDENCE

    # The floors last: copies that no floors cite leave the old bar, or are refused where there was none.
    files = {
        policy / EVIDENCE / name / f"{report.run_id}.json": dump(report.stripped())
        for name in made
        for report in runs[name]
    }
    if not (policy / BUDGETS).exists() and not path.exists():
        # That there are no budgets is said by a file, so that losing the file cannot say it.
        files[policy / BUDGETS] = budgets_text("", {}).encode()
    files[path] = text.encode()
    write_all(files)


def _diff(path: Path, before: str, after: str) -> None:
    import difflib

    from eval_core.console import paint

    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"a/{path}", f"b/{path}", lineterm=""
    )
    shown = False
    for line in lines:
        shown = True
        colour = "green" if line.startswith("+") else "red" if line.startswith("-") else None
        click.echo(paint(line, colour) if colour else line)
    if not shown:
        click.echo(f"{path} already says so.")
