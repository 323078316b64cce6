"""`eval-gate floor`: a proposal of floors as a diff, and on request the file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_gate.cli.types import SHARE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from eval_core.report import Report

_EPILOG = """\b
Examples:
  eval-gate floor                               every arm that has a report, as a diff of policy/floors.toml
  eval-gate floor memory-bm25 --write           write it, with the evidence it stands on
  eval-gate floor notes --drifts 0.1 --write    a corpus that follows a branch: documents within 10%
  eval-gate floor memory-bm25 --evidence a.json --evidence b.json
  eval-gate floor memory-bm25 --form plain      a plain table, rounded down, for another gate

Evidence is two or more runs of one task and one system. Where --evidence names none, it is every whole run of
.eval/history/ARM that measured what the newest report did, in the same kind of place.
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
    type=click.IntRange(0, 1000),
    default=2,
    show_default=True,
    help="Misses below the worst evidence.",
)
@click.option("--drifts", type=SHARE, help="The corpus moves: documents may differ by this share.")
@click.option("--reason", help="Why a floor is lowered; kept in the file.")
@click.option("--form", type=click.Choice(["native", "plain"]), default="native", show_default=True)
@click.option("--write", is_flag=True, help="Write the floors and copies of the evidence.")
@click.option(
    "--format", "output_format", type=click.Choice(["diff", "json"]), default="diff", show_default=True
)
def floor(
    arms: tuple[str, ...],
    policy: Path,
    output: Path,
    evidence: tuple[Path, ...],
    measures: tuple[str, ...],
    margin: int,
    drifts: float | None,
    reason: str | None,
    form: str,
    write: bool,
    output_format: str,
) -> int:
    """Propose floors: the worst of two or more measured runs, less a margin counted in misses."""
    from eval_core.errors import did_you_mean
    from eval_gate.floor import derive
    from eval_gate.policy import BASELINES, FLOORS, is_name, read_floors
    from eval_gate.policy_text import floors_text, plain, present

    if form == "plain" and write:
        raise click.UsageError("--form plain is printed, not written; redirect it to the file of your choice")
    measured = tuple(sorted(path.stem for path in (output / "reports").glob("*.json")))
    names = tuple(dict.fromkeys(arms)) or measured
    if not names:
        raise click.UsageError(f"no report in {output / 'reports'}; measure first:  eval-core measure")
    for name in names:
        if not is_name(name):
            raise click.UsageError(
                f"arm {name!r}: a name is lower-case letters, digits, . _ -{did_you_mean(name, measured)}"
            )
    if evidence and len(names) != 1:
        raise click.UsageError("--evidence goes with one arm")
    path = policy / FLOORS
    previous = read_floors(path).arms if path.exists() and form == "native" else {}
    runs = {name: _runs(name, output, evidence, drifts) for name in names}
    made = {
        name: derive(
            name,
            runs[name],
            margin=margin,
            measures=measures,
            drifts=drifts,
            previous=previous.get(name),
            reason=reason,
        )
        for name in names
    }
    if form == "plain":
        click.echo(plain(made), nl=False)
        return 0
    before = present(path)
    after = floors_text(before, made)
    if write:
        _write(policy, path, after, made, runs)
    if output_format == "json":
        from eval_gate.proposal import proposal

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


def _runs(arm: str, output: Path, evidence: tuple[Path, ...], drifts: float | None) -> list[Report]:
    """The runs to stand on: those named, else the newest and every run of the history that can stand beside it."""
    from eval_core.errors import Refused
    from eval_core.report import read_report
    from eval_gate.floor import unfit, unlike

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
    from eval_core.report import read_report

    path = reports / f"{arm}.json"
    if not path.exists():
        known = sorted(other.stem for other in reports.glob("*.json"))
        raise Refused(
            f"{path}: no such report{did_you_mean(arm, known)}  (arms with one: {', '.join(known) or 'none'})",
            reason="report-missing",
            remedy=f"Measure it twice, then try again:  eval-core measure {arm}",
        )
    return read_report(path, arm)


def _write(
    policy: Path, path: Path, text: str, made: Iterable[str], runs: Mapping[str, list[Report]]
) -> None:
    from eval_core.files import write_text
    from eval_core.report import write_report
    from eval_gate.policy import BUDGETS, EVIDENCE
    from eval_gate.policy_text import budgets_text

    for name in made:
        for report in runs[name]:
            write_report(policy / EVIDENCE / name / f"{report.run_id}.json", report.stripped())
    if not (policy / BUDGETS).exists():
        # That there are no budgets is said by a file, so that losing the file cannot say it.
        write_text(policy / BUDGETS, budgets_text("", {}))
    write_text(path, text)


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
