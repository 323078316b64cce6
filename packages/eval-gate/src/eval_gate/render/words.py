"""What the forms of a verdict share: texts of others made harmless, the order of arms, the words for a finding."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from eval_core.console import count
from eval_gate.render.place import Place
from eval_gate.verdict import ArmVerdict, BarChange, Graded, Moved, Reason, Significance, Verdict

#: Characters that are shown of one text.
LONGEST = 2000

#: p below which a change is more than chance explains.
ALPHA = 0.05

WORDS = {"refused": "REFUSED", "fail": "FAIL", "pass": "PASS"}

CHANCE = (
    "Chance is shown and never graded: a floor holds this set, not the population that its queries stand for."
)
PROVISIONAL = "Floors are provisional: a fixed margin, until ten runs show how much they differ."
UNBOUND = "Unbound: nothing ties these reports to their queries, labels or corpus."
REASONS = "docs/reasons.md"

_ORDER = {"refused": 0, "fail": 1, "pass": 2}
_TESTS = {"mcnemar-midp": "mid-p McNemar", "sign-flip": "sign flips"}


def shown(text: str, most: int = LONGEST) -> str:
    """A text of others in one line: what could steer a reader is shown by its escape, what is too long is cut.

    `##[` begins a command in the log of a GitHub job, wherever it stands in a line, so it is broken up.
    """
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: most + 1])
    safe = safe.replace("##[", "##\\[")
    return safe if len(safe) <= most else safe[: most - 1] + "…"


def argument(name: str) -> str:
    """A name as one word of a command line."""
    return shlex.quote(shown(name, 200))


def ordered(verdict: Verdict) -> list[ArmVerdict]:
    """The arms, worst first."""
    return sorted(verdict.arms, key=lambda arm: (_ORDER[arm.verdict], arm.arm))


def head(verdict: Verdict) -> str:
    """`1 of 4 arms`: how many do not pass, or how many do."""
    bad = sum(arm.verdict != "pass" for arm in verdict.arms)
    arms = count(len(verdict.arms), "arm")
    return f"{bad} of {arms}" if bad else arms


def commit(verdict: Verdict) -> str:
    """The commit that the reports were measured at, short; empty where it is not one."""
    return shown(verdict.commit, 64)[:7] if verdict.commit else ""


class Group(NamedTuple):
    """Arms that do not pass for the same reasons, told once."""

    arms: Sequence[ArmVerdict]

    @property
    def first(self) -> ArmVerdict:
        return self.arms[0]


def groups(verdict: Verdict) -> list[Group]:
    """The arms that do not pass; those that are refused for the same reasons stand together."""
    found: dict[object, list[ArmVerdict]] = {}
    for arm in ordered(verdict):
        if arm.verdict == "refused":
            same: object = tuple((r.code, r.what, r.key, r.value, r.category) for r in arm.reasons)
            found.setdefault(same, []).append(arm)
        elif arm.verdict == "fail":
            found[arm.arm] = [arm]
    return [Group(arms) for arms in found.values()]


def measure(grade: Graded) -> str:
    """`recall@10`, or `recall@10 of lexical`."""
    return grade.measure if grade.category is None else f"{grade.measure} of {grade.category}"


def against_bar(grade: Graded, decimals: int = 3, unit: str = " misses") -> str:
    """`53 ≤ 55 misses`, or `0.783 < 0.800`."""
    if grade.misses is not None:
        return f"{grade.misses} {'≤' if grade.passed else '>'} {grade.misses_allowed}{unit}"
    sign = "≥" if grade.passed else "<"
    return f"{grade.value:.{decimals}f} {sign} {grade.lowest:.{decimals}f}"


def allowance(grade: Graded) -> str:
    """What a bar on a mean allows in whole queries: `2 q.`, or `none`."""
    if grade.misses is not None:
        return ""
    return f"{grade.queries} q." if grade.queries > 0 else "none"


def rule(grade: Graded) -> str:
    """The rule that a bar comes from, in words."""
    if grade.rule == "floor":
        return "its floor"
    where = " everywhere" if grade.rule == "everywhere" else ""
    return f"{grade.points:.4g} points below the baseline{where}"


def held_by(verdict: Verdict) -> str | None:
    """Which rule holds what, in one sentence: the measures held by another rule than their floor are named."""
    others: dict[str, list[str]] = {}
    graded = [(arm, grade) for arm in verdict.arms if arm.verdict == "pass" for grade in arm.graded]
    for arm, grade in graded:
        if grade.rule != "floor":
            others.setdefault(f"{rule(grade)} ({shown(measure(grade), 60)})", []).append(shown(arm.arm, 60))
    if not graded:
        return None
    if not others:
        return "Each bar is a floor."
    said = "; ".join(f"{what} of {', '.join(arms[:5])}{_more(arms, 5)}" for what, arms in others.items())
    return f"Each bar is a floor, but for {said}."


def _more(names: Sequence[str], most: int) -> str:
    return f" and {len(names) - most} more" if len(names) > most else ""


def latency(arm: ArmVerdict) -> str:
    """`2.0 ≤ 300`, in milliseconds."""
    if arm.p95_ms is None:
        return "–"
    if arm.budget_p95_ms is None:
        return f"{arm.p95_ms:.1f}"
    return f"{arm.p95_ms:.1f} {'≤' if arm.p95_ms <= arm.budget_p95_ms else '>'} {arm.budget_p95_ms:g}"


def chance(found: Significance, n: int | None) -> str:
    """How much of a change chance explains, in one line."""
    if found.difference == found.low == found.high == 0:
        return f"{shown(found.metric, 40)} over all queries is what it was in the baseline"
    points, low, high = (_points(value) for value in (found.difference, found.low, found.high))
    p = "p < 0.001" if found.p < 0.001 else f"p = {found.p:.2g}"
    test = _TESTS.get(found.test, shown(found.test, 20))
    if found.p < ALPHA:
        says = "more than chance explains"
    elif found.resolvable:
        says = "chance could explain it"
    else:
        says = "unresolvable at " + ("this n" if n is None else f"n = {n:,}")
    return f"{shown(found.metric, 40)} {points} points, 95% {low} to {high}, {p} ({test}): {says}"


def is_chance(arm: ArmVerdict) -> bool:
    """Whether chance could explain what failed."""
    return arm.significance is not None and arm.significance.p >= ALPHA


def _points(share: float) -> str:
    text = f"{share * 100:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def ranks(moved: Moved) -> str:
    """`rank 2 → –`: before and after, a dash where it was not retrieved."""
    before, after = (f"{rank}" if rank else "–" for rank in (moved.before, moved.after))
    return f"rank {before} → {after}"


def movements(verdict: Verdict) -> Iterator[str]:
    """What arms that pass lost and gained against their baselines; the others are explained by themselves."""
    moved = [arm for arm in verdict.arms if arm.verdict == "pass" and (arm.lost or arm.gained)]
    if not moved and verdict.verdict == "pass":
        yield "No query was lost or gained against the baselines."
    for arm in moved:
        named = ", ".join(shown(one.query, 40) for one in arm.lost[:5])
        lost = f" ({named}{_more([one.query for one in arm.lost], 5)})" if arm.lost else ""
        yield (
            f"{shown(arm.arm, 60)}, {shown(arm.measure or '', 40)}: {count(len(arm.lost), 'query', 'queries')} lost"
            f"{lost}, {len(arm.gained)} gained."
        )


def agreement(verdict: Verdict) -> str | None:
    """Whether the runs that the floors stand on agree."""
    known = [arm for arm in verdict.arms if arm.runs_agree is not None]
    differ = [shown(arm.arm, 60) for arm in known if not arm.runs_agree]
    if not known:
        return None
    if not differ:
        return "Each arm's evidence runs agree in every ranking."
    return f"Evidence runs differ in their rankings: {', '.join(differ[:5])}{_more(differ, 5)}."


def loosened(verdict: Verdict) -> dict[str | None, list[BarChange]]:
    """What is looser than in the target, by arm; None is the policy as a whole."""
    found: dict[str | None, list[BarChange]] = {}
    for change in verdict.bar:
        if change.looser:
            found.setdefault(change.arm, []).append(change)
    return found


def bar_change(change: BarChange) -> str:
    """`memory-bm25  floors, recall@10: 0.871 → 0.851`."""
    what = change.key if change.measure in (None, change.key) else f"{change.key}, {change.measure}"
    what += f" of {change.category}" if change.category else ""
    before, after = ("–" if value is None else shown(value, 120) for value in (change.before, change.after))
    lead = "" if change.arm is None else f"{shown(change.arm, 60)}  "
    return f"{lead}{shown(what, 120)}: {before} → {after}"


def why(change: BarChange) -> str:
    """The reason of a looser bar, or that there is none."""
    return f"reason: {shown(change.reason, 400)}" if change.reason else "no new reason is given"


def mends(reasons: Sequence[Reason]) -> list[str]:
    """What to do, each once."""
    return list(dict.fromkeys(reason.mend for reason in reasons if reason.mend))


def explain(arm: ArmVerdict, place: Place) -> str:
    """The command that shows every lost query."""
    command = f"eval-core explain {argument(place.report(arm.arm).as_posix())} --lost"
    if place.policy.as_posix() != "policy":
        command += f" --policy {argument(place.policy.as_posix())}"
    return command


class Step(NamedTuple):
    """What to do now: a sentence, and the command that does it, where there is one."""

    sentence: str
    command: str = ""


def next_steps(verdict: Verdict) -> list[Step]:
    """What to do now."""
    bad = [arm for arm in ordered(verdict) if arm.verdict != "pass"]
    if not bad and not verdict.reasons:
        return []
    failing = [arm for arm in bad if arm.verdict == "fail"]
    if not failing or len(failing) < len(bad) or verdict.reasons:
        return [Step("Do what the lines above say, then:", "eval-core measure && eval-gate check")]
    if any(arm.unbound for arm in bad):
        return [Step("Mend the retriever, or move the floors in a reviewed commit that cites a run.")]
    steps = []
    if names := " ".join(argument(arm.arm) for arm in failing if not _is_slow(arm) or len(arm.reasons) > 1):
        command = f'eval-gate floor {names} --from A.zip B.zip --reason floors="…" --write'
        steps.append(Step("If the drop is intended, move the bar in a commit of its own:", command))
    if names := " ".join(argument(arm.arm) for arm in failing if _is_slow(arm)):
        command = f'eval-gate floor {names} --p95-ms … --reason p95_ms="…" --write'
        steps.append(Step("If the latency is intended, move the budget:", command))
    return steps or [Step("Mend the retriever.")]


def _is_slow(arm: ArmVerdict) -> bool:
    return any(reason.code == "latency-over-budget" for reason in arm.reasons)
