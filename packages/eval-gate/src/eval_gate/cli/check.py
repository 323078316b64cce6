"""`eval-gate check`: reports and policy in, one verdict out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from eval_core.report import Report
    from eval_gate.judge import Read
    from eval_gate.verdict import Verdict

_EPILOG = """\b
Examples:
  eval-gate check                                grade .eval/reports against policy/
  eval-gate check memory-bm25                    one arm
  eval-gate check --format json                  the verdict for machines
  eval-gate check --floors evals/thresholds.toml --report unfiltered=ci.json --allow-unbound
                                                 plain floors and another tool's report

A report can be forged by someone who rewrites it consistently: measure in the job that gates.

\b
Exit codes: 0 every arm passes; 1 a breach, or evidence that is missing, malformed
or cannot be graded; 2 wrong usage or policy file; 3 this program failed.
"""


@click.command(epilog=_EPILOG)
@click.argument("arms", nargs=-1, metavar="[ARM]...")
@click.option("--policy", type=click.Path(path_type=Path), default=Path("policy"), show_default=True)
@click.option("--reports", type=click.Path(path_type=Path), default=Path(".eval/reports"), show_default=True)
@click.option(
    "--floors",
    "floors_path",
    type=click.Path(path_type=Path),
    help="Another floors file than POLICY/floors.toml.",
)
@click.option(
    "--report", "named", multiple=True, metavar="ARM=FILE", help="Where an arm's report lies. Repeatable."
)
@click.option(
    "--allow-unbound", is_flag=True, help="Grade plain floors and reports that nothing ties to a task."
)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def check(
    arms: tuple[str, ...],
    policy: Path,
    reports: Path,
    floors_path: Path | None,
    named: tuple[str, ...],
    allow_unbound: bool,
    form: str,
) -> int:
    """Grade reports against floors, baselines and budgets; exit 1 unless every arm passes."""
    from eval_gate.policy import FLOORS

    path = floors_path or policy / FLOORS
    places = _places(named, arms)
    if _is_plain(path):
        verdict = _unbound(path, arms, places, reports, allow_unbound)
    else:
        # Naming the policy's own floors by their path is no other floors file.
        own = path.resolve() == (policy / FLOORS).resolve()
        verdict = _bound(path, policy, arms, places, reports, own=own)
    if form == "json":
        click.echo(verdict.model_dump_json(by_alias=True, indent=1))
    else:
        from eval_gate.render import terminal

        click.echo(terminal(verdict))
    return verdict.exit_code


def _places(named: tuple[str, ...], arms: tuple[str, ...]) -> dict[str, Path]:
    places: dict[str, Path] = {}
    for item in named:
        arm, equals, file = item.partition("=")
        if not equals or not arm or not file:
            raise click.UsageError(f"--report {item!r}: write ARM=FILE")
        if arm in places:
            raise click.UsageError(f"--report {item!r}: {arm!r} has a report already, {str(places[arm])!r}")
        if arms and arm not in arms:
            raise click.UsageError(
                f"--report {item!r}: {arm!r} is not among the arms to grade: {', '.join(arms)}"
            )
        places[arm] = Path(file)
    return places


def _selected(
    known: list[str], arms: tuple[str, ...], places: dict[str, Path], path: Path
) -> tuple[str, ...]:
    from eval_core.errors import Misuse, did_you_mean

    for name in (*arms, *places):
        if name not in known:
            raise Misuse(
                f"{path}: no floors for arm {name!r}{did_you_mean(name, known)}  (arms: {', '.join(known) or 'none'})",
                reason="arm-unknown",
            )
    return tuple(dict.fromkeys(arms)) or tuple(known)


def _bound(
    path: Path, policy: Path, arms: tuple[str, ...], places: dict[str, Path], reports: Path, *, own: bool
) -> Verdict:
    from eval_gate.evidence import uncited
    from eval_gate.judge import judge
    from eval_gate.policy import BASELINES, BUDGETS, EVIDENCE, read_budgets, read_floors
    from eval_gate.verdict import utf8

    floors = read_floors(path)
    budgets = read_budgets(policy / BUDGETS, floors)
    names = _selected(list(floors.arms), arms, places, path)
    found = {name: _read(places.get(name, reports / f"{name}.json"), name) for name in names}
    baselines = {name: _read(policy / BASELINES / f"{name}.json", name) for name in names}
    broken = {name: uncited(policy, name, floors.arms[name]) for name in names} if own else {}
    others = {file.stem for file in reports.glob("*.json")} - floors.arms.keys()
    # An arm that lost its floors has left a baseline or evidence behind.
    traces = {file.stem for file in (policy / BASELINES).glob("*.json")}
    traces |= {folder.parent.name for folder in (policy / EVIDENCE).glob("*/*.json")}
    orphans = sorted(map(utf8, traces - floors.arms.keys())) if own and not arms else []
    return judge(
        floors, budgets, baselines, found, names, tuple(sorted(map(utf8, others))), tuple(orphans), broken
    )


def _read(path: Path, arm: str) -> Read:
    from eval_core.errors import Refused
    from eval_core.report import read_report

    try:
        report: Report = read_report(path, arm)
    except Refused as error:
        return error
    return report


def _is_plain(path: Path) -> bool:
    """Whether a floors file is of another tool: TOML without a `schema`. What is wrong with it is told elsewhere."""
    import tomllib

    from eval_core.files import refuse_special

    try:
        refuse_special(path)
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        return bool(table) and "schema" not in table
    except (OSError, ValueError, RecursionError):
        return False


def _unbound(
    path: Path, arms: tuple[str, ...], places: dict[str, Path], reports: Path, allowed: bool
) -> Verdict:
    from eval_core.errors import Misuse
    from eval_gate.unbound import judge_plain, read_plain
    from eval_gate.verdict import Verdict, Word

    if not allowed:
        raise Misuse(
            f"{path}: plain floors (no schema) are tied to no task, so their verdict is unbound",
            reason="unbound",
            remedy="Say --allow-unbound to grade them all the same, or write bound floors:  eval-gate floor --write",
        )
    plain = read_plain(path)
    names = _selected(list(plain), arms, places, path)
    verdicts = tuple(
        judge_plain(name, plain[name], places.get(name, reports / f"{name}.json")) for name in names
    )
    words = {verdict.verdict for verdict in verdicts}
    word: Word = "refused" if "refused" in words else "fail" if "fail" in words else "pass"
    return Verdict(verdict=word, exit_code=0 if word == "pass" else 1, arms=verdicts)
