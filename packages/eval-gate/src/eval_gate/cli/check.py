"""`eval-gate check`: reports and policy in, one verdict out."""

from __future__ import annotations

import atexit
import contextlib
import gc
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from eval_gate.check.eligibility import Read
    from eval_gate.check.origin import Origin, Origins
    from eval_gate.verdict import ArmVerdict, Verdict

_EPILOG = """\b
Examples:
  eval-gate check                                grade .eval/reports against policy/
  eval-gate check memory-bm25                    one arm
  eval-gate check --format json                  the verdict for machines
  eval-gate check --format github --output markdown=summary.md --output junit=gate.xml
                                                 annotations of a job, and two files beside them
  eval-gate check --require head --require clean only what was measured at this commit, on a clean tree
  eval-gate check --target origin/main           and how the bar itself differs from that branch's
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
@click.option(
    "--require",
    "required",
    multiple=True,
    type=click.Choice(["head", "clean", "class", "provenance", "every-arm"]),
    help="Ask it of every report, beside what the policy asks. Repeatable.",
)
@click.option(
    "--target", metavar="REV", help="Also tell how the bar differs from that of this commit (starts git)."
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    default=Path("eval.toml"),
    show_default=True,
    help="Reports must be of what it says of their arm; where there is one.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "markdown", "junit", "github"]),
    default="table",
    show_default=True,
    help="Of what is printed; github: annotations of a job. The exit code is the same in all.",
)
@click.option(
    "--output",
    "outputs",
    multiple=True,
    metavar="[FORMAT=]FILE",
    help="Also write the verdict to a file, in the format that is printed or another. Repeatable.",
)
def check(
    arms: tuple[str, ...],
    policy: Path,
    reports: Path,
    floors_path: Path | None,
    named: tuple[str, ...],
    allow_unbound: bool,
    required: tuple[str, ...],
    target: str | None,
    config: Path,
    form: str,
    outputs: tuple[str, ...],
) -> int:
    """Grade reports against floors, baselines and budgets; exit 1 unless every arm passes."""
    from eval_gate.policy import FLOORS

    # At its end the interpreter looks through all that is alive for cycles, a tenth of the time of one arm's check.
    # Nothing here waits to be collected: what is frozen is passed over, and the process just ends.
    atexit.register(gc.freeze)
    path = floors_path or policy / FLOORS
    places = _places(named, arms)
    files = _files(outputs, form)
    if _is_plain(path):
        if required or target is not None:
            raise click.UsageError(
                f"{path}: plain floors bind no report; --require and --target go with bound ones"
            )
        verdict = _unbound(path, arms, places, reports, allow_unbound)
    else:
        # Naming the policy's own floors by their path is no other floors file.
        own = path.resolve() == (policy / FLOORS).resolve()
        verdict = _bound(path, policy, arms, places, reports, required, target, config, own=own)
    from eval_gate.render import Place, rendered

    place = Place(config, policy, path, reports, places)
    click.echo(rendered(form, verdict, place))
    if not files:
        return verdict.exit_code
    from eval_gate.render.files import write

    failed = write(files, verdict, place)
    for error in failed:
        click.echo(f"eval-gate: {error}", err=True)
    return 3 if failed else verdict.exit_code


def _files(outputs: tuple[str, ...], form: str) -> dict[Path, str]:
    """Which file is to be written in which format; nothing that writes is imported where none is."""
    if not outputs:
        return {}
    from eval_gate.render.files import asked

    return asked(outputs, form)


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
    path: Path,
    policy: Path,
    arms: tuple[str, ...],
    places: dict[str, Path],
    reports: Path,
    required: tuple[str, ...],
    target: str | None,
    config: Path,
    *,
    own: bool,
) -> Verdict:
    from eval_core.console import utf8
    from eval_gate.check.eligibility import Asked
    from eval_gate.check.evidence import measured, read_baseline, uncited
    from eval_gate.check.judge import judge, judge_arm
    from eval_gate.check.origin import Origins
    from eval_gate.policy import BASELINES, BUDGETS, EVIDENCE, Budget, read_budgets, read_floors
    from eval_gate.promotion.state import mixed

    floors = read_floors(path)
    budgets = read_budgets(policy / BUDGETS, floors)
    names = _selected(list(floors.arms), arms, places, path)
    require = frozenset((*floors.require, *required))
    head = None
    if "head" in require:
        from eval_gate.check.head import head as checked_out

        head = checked_out(Path())
    asked = Asked(require, head, frozenset(places))

    origins = Origins(policy, config, required="provenance" in require, arms=floors.arms, today=date.today())

    def arm(name: str) -> ArmVerdict:
        # One at a time: of fifty arms no more than one report is held.
        report, origin = _read(places.get(name, reports / f"{name}.json"), name, origins)
        return judge_arm(
            name,
            floors.arms[name],
            budgets.arms.get(name, Budget()),
            read_baseline(policy, name, floors.arms[name]),
            report,
            [*(uncited(policy, name, floors.arms[name]) if own else ()), *origin.reasons],
            asked,
            origin.notes,
        )

    parts = mixed(config, policy, floors, budgets) if own and not arms else []
    others = set(measured(reports)) - floors.arms.keys()
    # An arm that lost its floors has left a baseline or evidence behind.
    traces = {file.stem for file in (policy / BASELINES).glob("*.json")}
    traces |= {folder.parent.name for folder in (policy / EVIDENCE).glob("*/*.json")}
    orphans = sorted(map(utf8, traces - floors.arms.keys())) if own and not arms else []
    verdict = judge(map(arm, names), tuple(sorted(map(utf8, others))), tuple(orphans), asked, parts)
    if target is None:
        return verdict
    from eval_gate.floors.difference import against

    return verdict.model_copy(
        update={"target": target, "bar": against(policy, target, floors, budgets, config)}
    )


def _read(path: Path, arm: str, origins: Origins) -> tuple[Read, Origin]:
    from eval_core.errors import Refused
    from eval_core.reports.report import parse_report, report_bytes
    from eval_gate.check.origin import Origin

    try:
        raw = report_bytes(path)
        report = parse_report(raw, path, arm)
    except Refused as error:
        return error, Origin()
    return report, origins.of(report, raw, path)


def _is_plain(path: Path) -> bool:
    """Whether a floors file is of another tool: TOML without a `schema`. What is wrong with it is told elsewhere."""
    import tomllib

    from eval_core.files import refuse_special

    try:
        refuse_special(path)
        text = path.read_text(encoding="utf-8")
        # A native file says its schema before its first table. Reading on would parse every arm twice.
        with contextlib.suppress(tomllib.TOMLDecodeError):
            if "schema" in tomllib.loads(text.partition("\n[")[0]):
                return False
        table = tomllib.loads(text)
        return bool(table) and "schema" not in table
    except (OSError, ValueError, RecursionError):
        return False


def _unbound(
    path: Path, arms: tuple[str, ...], places: dict[str, Path], reports: Path, allowed: bool
) -> Verdict:
    from eval_core.errors import Misuse
    from eval_gate.check.plain import judge_plain, read_plain
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
