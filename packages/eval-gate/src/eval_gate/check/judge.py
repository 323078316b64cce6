"""The judgement: reports and policy in, verdict out. Pure: no file, no clock, no network, nothing written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from eval_core.errors import EvalError
from eval_core.policy import ArmPolicy
from eval_core.policy.faults import faults
from eval_core.reports import Environment, Report, same_documents
from eval_gate.check import eligibility, rules
from eval_gate.check.changes import moved, system_changes
from eval_gate.check.eligibility import Read, Standing
from eval_gate.verdict import ArmVerdict, Reason, Verdict, Word

#: What a verdict rests on where no target was named.
NO_BRANCH = "held against no branch; --target REV holds it against one"


class Seen(NamedTuple):
    """A report that was looked at: whose, where it was measured, what is said of that, whether files changed since."""

    arm: str
    environment: Environment
    sayings: Sequence[str] = ()
    changed: bool = False


def judge(
    verdicts: Iterable[ArmVerdict],
    *,
    require: Iterable[str] = (),
    not_gated: Sequence[str] = (),
    retired: Iterable[str] = (),
    orphans: Sequence[str] = (),
    reasons: Sequence[Reason] = (),
    seen: Iterable[Seen] = (),
    notes: Sequence[str] = (),
) -> Verdict:
    """The whole verdict out of those of the arms, as `judge_arm` gives them.

    Args:
        verdicts: of every arm that is asked for. They are read first: `seen` may grow meanwhile.
        require: what the policy requires.
        not_gated: arms that have a report and no floors, to be shown.
        retired: arms that the policy says are gone.
        orphans: arms that have evidence and no floors.
        reasons: of the policy as a whole.
        seen: the reports that were looked at.
        notes: what the verdict does not rest on, beside the working tree.
    """
    arms, found = tuple(verdicts), [*reasons]
    found += [_deleted(name) for name in orphans if name not in retired]
    unheld = [name for name in not_gated if name not in retired]
    if unheld and "every-arm" in require:
        found.append(
            Reason(
                code="arm-not-gated",
                word="refused",
                subject=", ".join(unheld),
                what="measured, and without floors; the policy requires floors of every arm",
                mend=f"eval-gate floor {' '.join(unheld)} --measure --write",
            )
        )
    if not arms:
        found.append(
            Reason(
                code="policy-vacuous",
                word="refused",
                what="the floors file names no arm; a gate that looks at nothing cannot pass",
                mend="eval-gate floor --measure",
            )
        )
    words = {arm.verdict for arm in arms} | {reason.word for reason in found}
    word: Word = "refused" if "refused" in words else "fail" if "fail" in words else "pass"
    seen = tuple(seen)
    commits = {one.environment.commit for one in seen}
    classes = {one.environment.class_ for one in seen}
    dirty = {one.environment.dirty for one in seen}
    return Verdict(
        verdict=word,
        exit_code=0 if word == "pass" else 1,
        commit=commits.pop() if len(commits) == 1 else None,
        clean=None
        if not seen or None in dirty
        else True not in dirty and not any(one.changed for one in seen),
        class_=classes.pop() if len(classes) == 1 else None,
        arms=arms,
        reasons=tuple(found),
        not_gated=tuple(not_gated),
        notes=(*_working_tree(seen), *notes),
    )


def _deleted(name: str) -> Reason:
    return Reason(
        code="floors-deleted",
        word="refused",
        what="it has evidence and no floors; deleting floors must not let an arm pass",
        subject=name,
        mend=f'Restore its floors from git, or say that it is gone, in floors.toml:  [retired]  "{name}" = "why"',
    )


def _working_tree(seen: Sequence[Seen]) -> tuple[str, ...]:
    """One line for all that was measured elsewhere than at the commit that stands here."""
    arms: dict[str, list[str]] = {}
    for one in seen:
        for what in one.sayings:
            arms.setdefault(what, []).append(one.arm)
    if not arms:
        return ()
    said = [what if len(of) == len(seen) else f"{', '.join(of)}: {what}" for what, of in arms.items()]
    return (f"verdict of your working tree: {'; '.join(said)}",)


def judge_arm(
    name: str,
    arm: ArmPolicy | EvalError,
    report: Read,
    standing: Standing | None = None,
    refused: Sequence[Reason] = (),
    warnings: Sequence[str] = (),
) -> ArmVerdict:
    """Grade one arm. Where it cannot be graded, no measure of it is.

    Args:
        name: the arm.
        arm: its policy, or the error of reading its evidence.
        report: the measured report, or the error of reading it.
        standing: where the gate stands; nothing is required where None.
        refused: what was found already of the report's origin.
        warnings: what should be said besides.
    """
    standing = standing or Standing()
    broken = [arm] if isinstance(arm, EvalError) else faults(arm)
    wrong = [Reason.of(error) for error in broken]
    if isinstance(report, EvalError):
        reasons = (*wrong, eligibility.unreadable(report, name))
        return ArmVerdict(arm=name, verdict="refused", reasons=reasons)
    wrong += [*refused, *eligibility.unfit(report, standing.named), *eligibility.refusals(report, standing)]
    verdict = ArmVerdict(
        arm=name,
        set=report.dataset.name,
        verdict="refused",
        n=report.n,
        run_id=report.run_id,
        p95_ms=report.latency.p95 if report.latency else None,
        warnings=(*warnings, *_unstable(report)),
    )
    if isinstance(arm, EvalError) or not arm.lines:
        return verdict.model_copy(update={"reasons": tuple(wrong)})
    verdict = verdict.model_copy(
        update={
            "budget_p95_ms": arm.p95_ms,
            "system_changes": system_changes(arm.baseline, report),
            "evidence": arm.baseline.class_,
            "provisional": arm.provisional,
            "runs_agree": len({line.rankings for line in arm.lines}) == 1,
            "warnings": (*verdict.warnings, *_differences(arm, report)),
        }
    )
    wrong += eligibility.untimely(arm, report, standing)
    wrong += eligibility.incomparable(arm, report)
    if not broken:
        wrong += eligibility.lacking(arm, report)
    if wrong:
        return verdict.model_copy(update={"reasons": tuple(wrong)})
    return verdict.model_copy(update=_graded(arm, report, verdict.warnings))


def _graded(arm: ArmPolicy, report: Report, warnings: Sequence[str]) -> dict[str, object]:
    graded = rules.grades(arm.bars, report)
    reasons = [rules.breach(grade) for grade in graded if not grade.passed]
    reasons += rules.must_pass(arm, report)
    failing = next((reason.key for reason in reasons), None)
    reasons += rules.latency(arm, report)
    measure = failing or arm.baseline.headline
    lost, gained = moved(arm.baseline, report, measure)
    words = {reason.word for reason in reasons}
    headline = rules.significance(arm.baseline, report, arm.baseline.headline)
    explained = headline if failing == arm.baseline.headline else None
    if failing and explained is None:
        explained = rules.significance(arm.baseline, report, failing)
    said = (*rules.choices(arm), *rules.by_chance(arm), *rules.slack(arm, graded))
    return {
        "verdict": "refused" if "refused" in words else "fail" if words else "pass",
        "reasons": tuple(reasons),
        "graded": graded,
        "measure": measure,
        "lost": lost,
        "gained": gained,
        "significance": explained,
        "headline": headline,
        "warnings": (*warnings, *said),
    }


def _unstable(report: Report) -> tuple[str, ...]:
    if not (unstable := report.health.unstable):
        return ()
    ranked = f"repetitions ranked {unstable} of {report.n} queries otherwise"
    return (f"non-deterministic: {ranked}; the first is graded",)


def _differences(arm: ArmPolicy, report: Report) -> tuple[str, ...]:
    said = []
    before, now = arm.baseline.task, report.task.parts
    if before.get("recipe") != now.get("recipe") and same_documents(before, now):
        said.append("the recipe of the corpus changed, and its documents are those of the floors")
    if arm.documents is not None and not same_documents(before, now):
        low, high = arm.documents
        said.append(
            f"the corpus is not that of the floors: it may drift, with {low} to {high} documents "
            f"({report.dataset.documents} now)"
        )
    if report.environment.class_ not in {line.class_ for line in arm.lines}:
        said.append(
            f"measured in class {report.environment.class_!r}, and the floors stand on runs of class "
            f"{arm.baseline.class_!r}"
        )
    return tuple(said)
