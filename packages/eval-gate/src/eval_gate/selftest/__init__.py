"""The self-test: make every known attack on a copy of a workspace's own inputs, and see that its gate notices.

Beside the attacks stands their control, the untouched copy, which passes. Nothing of the workspace is changed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eval_core.errors import unknown_arm
from eval_gate.selftest import reports
from eval_gate.selftest.bench import Answer, Bench, Untried
from eval_gate.selftest.catalogue import Attack, attacks
from eval_gate.selftest.models import Outcome, Result, SelfTest, Smallest
from eval_gate.verdict import Reason

if TYPE_CHECKING:
    from click import Command

__all__ = ["Attack", "Bench", "SelfTest", "attack_arm", "attacks", "self_test"]

#: What is being done: a word for it, how much is done, how much there is.
Progress = Callable[[str, int, int], None]


def self_test(
    arms: tuple[str, ...],
    config: Path,
    policy: Path,
    *,
    check: Command,
    progress: Progress = lambda *_: None,
) -> SelfTest:
    """Attack the gate of some arms, or of all.

    Args:
        arms: by name.
        config: the workspace's eval.toml; its reports are those below `.eval` beside it.
        policy: the folder of the policy.
        check: the verb `eval-gate check`, which grades.
        progress: what is called with what is being done.

    Raises:
        Misuse, Faults: the policy or the configuration cannot be read, or an arm has no floors.
    """
    with tempfile.TemporaryDirectory(prefix="self-test-") as folder:
        root = Path(folder).resolve() / "workspace"
        root.mkdir()
        bench = Bench(root, config.absolute(), policy.absolute(), check)
        names = _selected(arms, list(bench.files.floors.arms), policy)
        control = _control(bench, arms)
        if control.exit_code != 0:
            failed = SelfTest(
                verdict="control-failed", exit_code=1, arms=names, control=tuple(control.reasons)
            )
            return failed
        results, losses, table = [], [], list(attacks())
        for arm in names:
            bench.arm = arm
            for done, attack in enumerate(table):
                if arm == names[0] or not attack.whole:
                    progress(arm, done, len(table))
                    results.append(attack_arm(bench, attack))
            losses.append(_smallest(bench))
    survived = any(result.outcome == "survived" for result in results)
    return SelfTest(
        verdict="survived" if survived else "caught",
        exit_code=1 if survived else 0,
        arms=names,
        results=tuple(results),
        smallest=tuple(losses),
    )


def _selected(arms: Sequence[str], known: Sequence[str], policy: Path) -> tuple[str, ...]:
    for name in arms:
        if name not in known:
            raise unknown_arm(name, known, "there are no floors for arm", file=policy)
    return tuple(dict.fromkeys(arms)) or tuple(known)


def _control(bench: Bench, arms: Sequence[str]) -> Answer:
    """Whether the untouched copy passes, both by itself and on a pull request."""
    answer = bench.ask(*arms)
    return bench.ask(*arms, "--target", "HEAD") if bench.git and answer.exit_code == 0 else answer


def attack_arm(bench: Bench, attack: Attack) -> Result:
    """Make an attack on the arm of the bench, ask the gate, and put everything back."""

    def result(outcome: Outcome, message: str = "", codes: Sequence[str] = ()) -> Result:
        return Result(
            attack=attack.name,
            on=attack.on,
            arm=bench.arm,
            expected=attack.codes,
            outcome=outcome,
            codes=tuple(dict.fromkeys(codes)),
            message=message,
            requirement=attack.requires,
        )

    if attack.target and not bench.git:
        return result("skipped", "git is not installed")
    options = [*([] if attack.whole else [bench.arm]), *(["--target", "HEAD"] if attack.target else [])]
    with bench.altered():
        try:
            named = attack.act(bench)
        except Untried as why:
            return result("skipped", str(why))
        answer = bench.answer(*options)
    codes = [reason.code for reason in answer.reasons]
    own = [reason for reason in answer.reasons if reason.code in attack.codes]
    if named:
        own = [reason for reason in own if _names(reason, str(named))]
    if answer.exit_code in (1, 2) and own:
        return result("caught", own[0].message, codes)
    if answer.exit_code == 0:
        if attack.requires is not None and attack.requires not in bench.files.floors.require:
            return result("not-required", "the policy does not require it")
        return result("survived", "the gate passed", codes)
    said = answer.reasons[0].message if answer.reasons else f"exit {answer.exit_code}"
    return result("survived", f"the gate said no, but for another reason: {said}", codes)


def _names(reason: Reason, named: str) -> bool:
    """Whether a reason is about what was attacked."""
    return any(named in (text or "") for text in (reason.key, reason.subject, reason.category, reason.file))


def _smallest(bench: Bench) -> Smallest:
    n = bench.report.n
    try:
        queries, report, bar = reports.smallest(bench)
    except Untried:
        return Smallest(arm=bench.arm, n=n, queries=None)
    before, after = (one.summary.overall.metrics[bar.measure] for one in (bench.report, report))
    points = (before - after) * 100
    return Smallest(arm=bench.arm, n=n, queries=queries, points=points, measure=bar.measure, rule=bar.rule)
