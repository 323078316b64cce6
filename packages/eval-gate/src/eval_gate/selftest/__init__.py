"""The self-test: alter copies of a workspace's own inputs in every known way, and see that the present policy notices.

Each attack stands beside its control: the untouched copy, which passes. An attack is caught when the gate does not
pass and says why by a reason that names it; a refusal for another reason counts as a survival, since it means that
the guard that should have spoken is gone. Nothing of the workspace is changed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_core.config import Workspace, load_workspace
from eval_core.errors import Misuse, did_you_mean
from eval_core.reports.report import read_report
from eval_gate.policy import BUDGETS, FLOORS, TOLERANCE, Budget, lowest, read_budgets, read_floors
from eval_gate.selftest.attack import Attack
from eval_gate.selftest.bench import CRASHED, Bench, Outcome, Untried, ask, make_bench
from eval_gate.selftest.catalogue import attacks
from eval_gate.selftest.measuring import Measuring, processors
from eval_gate.selftest.models import (
    KINDS,
    About,
    Attacked,
    Control,
    Kind,
    Regression,
    SelfTest,
    Skipped,
    Survivor,
)
from eval_gate.selftest.processes import Processes
from eval_gate.selftest.smallest import regression

if TYPE_CHECKING:
    from click import Command

#: Told of what is being done: a word for it, how much is done, how much there is.
Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class _Tally:
    """What becomes of one attack on the arms."""

    kind: Kind
    name: str
    expected: tuple[str, ...]
    remedy: str
    requirement: str | None = None
    arms: int = 0
    caught: int = 0
    codes: dict[str, None] = field(default_factory=dict)
    survivors: list[Survivor] = field(default_factory=list)
    not_asked: list[str] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    def judged(self, arm: str, outcome: Outcome, named: str | None = None) -> None:
        """Count what the gate made of it."""
        self.arms += 1
        wanted = [
            code
            for _, code, message, _ in outcome.reasons
            if code in self.expected and (named is None or named in message)
        ]
        if outcome.exit_code in (1, 2) and wanted:
            self.caught += 1
            self.codes[wanted[0]] = None
            return
        if outcome.exit_code == 0:
            message = outcome.message or "the gate passed"
        else:
            message = f"the gate said no, and not for this: {outcome.message}"
        codes = outcome.codes if outcome.exit_code else ()
        self.survivors.append(Survivor(arm=arm, codes=codes, message=message))

    def made(self) -> Attacked:
        """The finding."""
        return Attacked(
            kind=self.kind,
            name=self.name,
            expected=self.expected,
            arms=self.arms,
            caught=self.caught,
            codes=tuple(self.codes),
            survivors=tuple(self.survivors),
            not_asked=tuple(self.not_asked),
            requirement=self.requirement,
            skipped=tuple(self.skipped),
            remedy=self.remedy,
        )


@dataclass(slots=True)
class _Found:
    """Everything that a self-test finds, as it finds it."""

    tallies: dict[tuple[Kind, str], _Tally] = field(default_factory=dict)
    regressions: list[Regression] = field(default_factory=list)
    problems: list[Control] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def tally(self, about: About, requirement: str | None = None) -> _Tally:
        kind, name, expected, remedy = about
        return self.tallies.setdefault((kind, name), _Tally(kind, name, expected, remedy, requirement))

    def told(self, about: About, arm: str, what: Outcome | str) -> None:
        tally = self.tally(about)
        if isinstance(what, str):
            tally.skipped.append(Skipped(arm=arm, why=what))
        else:
            tally.judged(arm, what)

    def problem(self, arm: str, code: str, message: str) -> None:
        self.problems.append(Control(arm=arm, code=code, message=message))


def self_test(
    arms: tuple[str, ...],
    config: Path,
    policy: Path,
    *,
    check: Command,
    quick: bool,
    progress: Progress = lambda *_: None,
) -> SelfTest:
    """Attack the gate of some arms, else of all that gate.

    Args:
        arms: by name; those that are only tracked never fail, and are left out.
        config: the workspace's eval.toml; its reports are those below `.eval` beside it.
        policy: the folder of the policy.
        check: the verb `eval-gate check`, which grades.
        quick: leave out what measures.
        progress: told what is done.

    Raises:
        Misuse, Faults: the policy or the configuration is none, or an arm has no floors.
    """
    config, policy = config.absolute(), policy.absolute()
    workspace = None if quick else load_workspace(config)
    reports = config.parent / ".eval" / "reports"
    floors = read_floors(policy / FLOORS)
    budgets = read_budgets(policy / BUDGETS, floors)
    for name in arms:
        if name not in floors.arms:
            known = ", ".join(floors.arms) or "none"
            raise Misuse(
                f"{policy / FLOORS}: no floors for arm {name!r}{did_you_mean(name, floors.arms)}  (arms: {known})",
                reason="arm-unknown",
            )
    gating = [n for n, arm in floors.arms.items() if not arm.tracked and (not arms or n in arms)]
    control = ask(check, policy, reports, config, arms)
    if control.exit_code != 0 or not gating:
        return _not_sound(control, tuple(gating), quick)
    found = _Found()
    with tempfile.TemporaryDirectory(prefix="self-test-") as name:
        folder = Path(name).resolve()
        benches = _benches(folder, check, config, policy, reports, gating, budgets.arms)
        gradings = _run(found, benches, folder, workspace, progress)
    skipped = [n for n in floors.arms if floors.arms[n].tracked and (not arms or n in arms)]
    if skipped:
        found.notes.append(f"tracked only, so they never fail, and are not attacked: {', '.join(skipped)}")
    if quick:
        found.notes.append("--quick: what measures was left out: altered sets for real, and null backends")
    return _joined(found, tuple(gating), quick, 1 + gradings)


def _not_sound(control: Outcome, gating: tuple[str, ...], quick: bool) -> SelfTest:
    """The workspace does not pass as it is, so that no refusal would show anything."""
    told = tuple(
        Control(arm=arm, code=code, message=message, remedy=remedy)
        for arm, code, message, remedy in control.reasons
    ) or (Control(arm="", code="policy-vacuous", message="no arm that was named gates anything"),)
    crashed = control.exit_code == CRASHED
    return SelfTest(
        verdict="could-not" if crashed else "control-failed",
        exit_code=3 if crashed else 1,
        arms=gating,
        quick=quick,
        gradings=1,
        control=told,
    )


def _benches(
    folder: Path,
    check: Command,
    config: Path,
    policy: Path,
    reports: Path,
    gating: list[str],
    budgets: Mapping[str, Budget],
) -> dict[str, Bench]:
    import tomllib

    floors = read_floors(policy / FLOORS)
    table: dict[str, Any] = tomllib.loads((policy / FLOORS).read_text(encoding="utf-8"))
    benches = {}
    for name in gating:
        place = folder / "benches" / name
        place.mkdir(parents=True)
        known = {other: reports / f"{other}.json" for other in floors.arms if other != name}
        others = {other: path for other, path in known.items() if path.exists()}
        benches[name] = make_bench(
            *(name, check, place, config, policy, reports, table, floors.arms[name]),
            budgets.get(name, Budget()),
            others,
        )
    return benches


def _run(
    found: _Found, benches: dict[str, Bench], folder: Path, workspace: Workspace | None, progress: Progress
) -> int:
    """Attack every bench, beside it measure; how often the gate was asked."""
    tried = list(attacks())
    total = len(benches) * (len(tried) + 1)
    done = 0
    processes = Processes(processors())
    measuring = None
    try:
        if workspace is not None:
            measuring = Measuring(workspace, folder / "copies", processes, found.told, found.problem)
            measuring.begin(benches)
            total += len(processes)
        sound = []
        for bench in benches.values():
            outcome = bench.ask()
            if outcome.exit_code != 0:
                found.problem(
                    bench.arm, outcome.codes[0], f"an untouched copy does not pass: {outcome.message}"
                )
                continue
            sound.append(bench)
            for attack in tried:
                processes.pump()
                progress(bench.arm, done := done + 1, total)
                _attack(found, bench, attack)
            found.regressions.append(regression(bench))
            done += 1
        if measuring is not None:

            def ended() -> None:
                nonlocal done
                progress("measuring", done := done + 1, total)

            processes.done = ended
            measuring.finish()
    finally:
        processes.stop()
    return sum(bench.gradings for bench in benches.values())


def _attack(found: _Found, bench: Bench, attack: Attack) -> None:
    tally = found.tally(About(attack.kind, attack.name, attack.expected, attack.remedy), attack.requirement)
    with bench.altered():
        try:
            named = attack.act(bench)
        except Untried as why:
            tally.skipped.append(Skipped(arm=bench.arm, why=str(why)))
            return
        outcome = bench.ask()
        if outcome.exit_code == 0:
            if attack.requirement is not None and attack.requirement not in bench.require:
                tally.not_asked.append(bench.arm)
                return
            if attack.worse and _cost(bench) <= _room(bench):
                why_not = "it costs less than the policy allows to lose"
                tally.skipped.append(Skipped(arm=bench.arm, why=why_not))
                return
    tally.judged(bench.arm, outcome, named)


def _cost(bench: Bench) -> float:
    """What the altered report lost of the measure that lost most, in queries."""
    before, after = bench.report.summary.overall, read_report(bench.report_path).summary.overall
    return max((before.metrics[name] - after.metrics[name]) * before.n for name in after.metrics)


def _room(bench: Bench) -> float:
    """How many queries the report may lose before the first of its floors is breached, and before the last is."""
    values, n = bench.report.summary.overall.metrics, bench.floors.n
    room = [(values[name] - lowest(floor, n)) * n for name, floor in bench.floors.metrics.items()]
    return max([bench.floors.margin, *room]) + TOLERANCE * n


def _joined(found: _Found, arms: tuple[str, ...], quick: bool, gradings: int) -> SelfTest:
    told = sorted(found.tallies.values(), key=lambda tally: KINDS.index(tally.kind))
    made = tuple(tally.made() for tally in told)
    survived = any(one.survivors for one in made)
    failed = bool(found.problems) or not any(one.arms for one in made)
    return SelfTest(
        verdict="survived" if survived else "could-not" if failed else "caught",
        exit_code=1 if survived else 3 if failed else 0,
        arms=arms,
        quick=quick,
        gradings=gradings,
        attacks=made,
        regressions=tuple(found.regressions),
        problems=tuple(found.problems),
        notes=tuple(found.notes),
    )
