"""`eval-gate check`: reports and policy in, one verdict out."""

from __future__ import annotations

import atexit
import contextlib
import gc
from collections.abc import Collection, Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_core.cli.workspace import beside, config_option

if TYPE_CHECKING:
    from eval_core.policy import ArmPolicy, Policy
    from eval_core.reports.provenance.configuration import Configured
    from eval_gate.check import Checkout, Origins, Seen
    from eval_gate.verdict import ArmVerdict, Verdict

_EPILOG = """\b
Examples:
  eval-gate check                                grade .eval/reports against policy/
  eval-gate check memory-bm25                    one arm
  eval-gate check --format json                  the verdict for machines
  eval-gate check --format github --output markdown=summary.md --output junit=gate.xml
                                                 annotations of a job, and two files beside them
  eval-gate check --target origin/main           as on a pull request: nothing looser than there
  eval-gate check kb-paid --report kb-paid=snapshots/kb-paid.json
                                                 a report that the owner's lane measured
  eval-gate check --floors evals/thresholds.toml --report unfiltered=ci.json --allow-unbound
                                                 plain floors and another tool's report

\b
Git is started with --target and in class `ci` (CI or EVAL_ENV_CLASS) alone: there the reports must
be of the commit that is checked out, on a clean tree. Elsewhere your working tree is graded, and
the verdict says so.

A report can be forged by someone who rewrites it consistently: measure in the job that gates.

\b
Exit codes: 0 every arm passes; 1 a breach, or evidence that is missing, malformed
or cannot be graded; 2 wrong usage or policy file; 3 this program failed.
"""


@click.command(epilog=_EPILOG)
@click.argument("arms", nargs=-1, metavar="[ARM]...")
@beside("--policy", place="policy")
@beside("--reports", place=".eval/reports")
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
    help="Require it of every report, beside what the policy requires. Repeatable.",
)
@click.option(
    "--target", metavar="REV", help="Refuse a bar that is looser than at this commit, unless it says why."
)
@config_option("Reports must be of what it says of their arm; where there is one.")
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
    """Grade reports against the bars that evidence and choices give; exit 1 unless every arm passes."""
    from eval_core.policy import FLOORS

    # At its end the interpreter looks through all that is alive for cycles, a tenth of the time of one arm's check.
    # Nothing here waits to be collected: what is frozen is passed over, and the process just ends.
    atexit.register(gc.freeze)
    path = floors_path or policy / FLOORS
    places = _places(named, arms)
    plain = _is_plain(path)
    configured = None if plain else _configuration(config)
    files = _files(outputs, form, (config, policy, reports), path, places.values(), configured)
    if plain:
        if required or target is not None:
            raise click.UsageError(
                f"{path}: plain floors bind no report; --require and --target go with bound ones"
            )
        verdict = _unbound(path, arms, places, reports, allow_unbound)
    else:
        gate = _Gate(policy, path, config, configured, required, target)
        verdict = gate.verdict(arms, places, reports)
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


def _files(
    outputs: tuple[str, ...],
    form: str,
    inputs: Iterable[Path],
    floors: Path,
    named: Collection[Path],
    configured: Configured | None,
) -> dict[Path, str]:
    """Which file is to be written in which format; nothing that writes is imported where none is."""
    if not outputs:
        return {}
    from eval_core.files import refuse_input
    from eval_core.policy import FOLDER
    from eval_core.reports.provenance import sidecar
    from eval_gate.check import answering, sets
    from eval_gate.render.files import destinations

    files = destinations(outputs, form)
    read = [*inputs, floors, floors.parent / FOLDER, *named, *map(sidecar, named)]
    read += [*sets(configured).values(), *answering(configured)]
    for file in files:
        refuse_input("--output", file, read)
    return files


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
    from eval_core.errors import unknown_arm

    for name in (*arms, *places):
        if name not in known:
            raise unknown_arm(name, known, "there are no floors for arm", file=path)
    return tuple(dict.fromkeys(arms)) or tuple(known)


def _configuration(config: Path) -> Configured | None:
    """eval.toml, None where there is none."""
    if not config.exists():
        return None
    from eval_core.reports.provenance.configuration import configuration

    return configuration(config)


class _Gate:
    """A policy, and what stands around it."""

    def __init__(
        self,
        folder: Path,
        floors: Path,
        config: Path,
        configured: Configured | None,
        required: tuple[str, ...],
        target: str | None,
    ) -> None:
        from eval_core.measuring import environment_class
        from eval_core.policy import read_policy
        from eval_gate.check import without_latency

        self.folder, self.floors, self.config, self.configured = folder, floors, config, configured
        self.target = _revision(target)
        self.strict = self.target is not None or environment_class() == "ci"
        self.policy: Policy = read_policy(folder, floors, plain=without_latency(configured))
        self.require = frozenset((*self.policy.floors.require, *required))
        if (folder / "promotion.toml").exists():
            from eval_gate.promotion import RULES, read_rules

            read_rules(folder / RULES)

    def verdict(self, arms: tuple[str, ...], places: dict[str, Path], reports: Path) -> Verdict:
        """Grade the arms, all of the policy where none is named."""
        from eval_core.console import utf8
        from eval_core.policy import FLOORS, requirements_left_out
        from eval_gate.check.judge import NO_BRANCH, judge
        from eval_gate.verdict import Reason

        known = self.policy.floors.arms
        names = _selected(list(known), arms, places, self.floors)
        reasons = [Reason.of(error) for error in requirements_left_out(self.policy.floors)]
        if self.strict:
            from eval_gate.check import linked

            reasons += linked(self.folder, self.floors)
        held = None
        if self.target is not None:
            from eval_gate.floors import against
            from eval_gate.promotion import parse_rules

            held = against(self.policy, self.target, self.config, parse_rules)
            reasons += held.reasons
            self.require |= held.require
        # Another floors file beside it is of some of its arms.
        whole = self.floors.name == FLOORS and not arms
        # Most workspaces promote nothing, and need not read how.
        if whole and ((self.folder / "promotions").exists() or (self.configured and self.configured.default)):
            from eval_gate.promotion import Target, mixed

            branch = Target.of(held.promotions) if held and held.promotions else None
            reasons += mixed(self.config, self.policy, branch)
        seen: list[Seen] = []
        verdict = judge(
            self._graded(names, places, reports, seen),
            require=self.require,
            not_gated=sorted(utf8(path.stem) for path in reports.glob("*.json") if path.stem not in known),
            retired=self.policy.floors.retired,
            orphans=[utf8(name) for name in self.policy.traces() if name not in known] if whole else [],
            reasons=reasons,
            seen=seen,
            notes=held.notes if held else (NO_BRANCH,),
        )
        return verdict.model_copy(update={"target": self.target, "bar": held.changes if held else ()})

    def _graded(
        self, names: tuple[str, ...], places: dict[str, Path], reports: Path, seen: list[Seen]
    ) -> Iterator[ArmVerdict]:
        from eval_gate.check import Checkout, Origins, owned, sets

        origins = Origins(
            self.folder,
            self.configured,
            required="provenance" in self.require,
            arms=self.policy.floors.arms,
            today=date.today(),
        )
        checkout = Checkout(
            self.config.parent,
            self.require,
            strict=self.strict,
            owned=owned(self.configured),
            policy=self.policy.folder,
            sets=sets(self.configured),
        )
        # One at a time: of fifty arms no more than one report is held.
        for name in names:
            path = places.get(name, reports / f"{name}.json")
            yield self._arm(name, path, name in places, origins, checkout, seen)

    def _arm(
        self, name: str, path: Path, named: bool, origins: Origins, checkout: Checkout, seen: list[Seen]
    ) -> ArmVerdict:
        from eval_core.errors import Refused
        from eval_core.reports import parse_report, report_bytes
        from eval_gate.check import Seen, judge_arm, sayings

        arm: ArmPolicy | Refused
        try:
            arm = self.policy.arm(name)
        except Refused as error:
            arm = error
        try:
            raw = report_bytes(path)
            report = parse_report(raw, path, name)
        except Refused as error:
            return judge_arm(name, arm, error)
        origin = origins.of(report, raw, path)
        evidence = () if isinstance(arm, Refused) else arm.lines
        standing = checkout.standing(report, path, named, evidence)
        seen.append(Seen(name, report.environment, sayings(report, standing), bool(standing.changed)))
        return judge_arm(name, arm, report, standing, origin.reasons, origin.notes)


def _revision(target: str | None) -> str | None:
    if target is not None and target.startswith("-"):
        raise click.UsageError(f"--target {target!r}: it begins with a dash, as no revision does")
    if target is None or target.strip():
        return target
    from eval_core.errors import Misuse

    raise Misuse(
        "target-empty",
        "it is empty, as a variable that is not set gives it",
        key="--target",
        mend="Set the variable, or leave --target out where there is no branch to be held against.",
    )


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
    from eval_gate.check import judge_plain, read_plain
    from eval_gate.verdict import Verdict, Word

    if not allowed:
        raise Misuse(
            "unbound",
            "plain floors (no schema) are tied to no task, so their verdict is unbound",
            file=path,
            mend="Say --allow-unbound to grade them all the same, or write bound floors:  eval-gate floor --write",
        )
    plain = read_plain(path)
    names = _selected(list(plain), arms, places, path)
    verdicts = tuple(
        judge_plain(name, plain[name], places.get(name, reports / f"{name}.json")) for name in names
    )
    words = {verdict.verdict for verdict in verdicts}
    word: Word = "refused" if "refused" in words else "fail" if "fail" in words else "pass"
    return Verdict(verdict=word, exit_code=0 if word == "pass" else 1, arms=verdicts)
