"""What the forms of a verdict share: texts of others made harmless, the order of arms, the words for a finding."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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
MEANING = "What a reason means: eval-core reason CODE"

#: Codes of a measure below its bar.
BREACHES = frozenset({"floor-breached", "baseline-drop"})

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
    """`1 of 4 arms at 3f2c91a, clean, class ci`: how many do not pass, or how many do, and where they were measured."""
    bad = sum(arm.verdict != "pass" for arm in verdict.arms)
    arms = count(len(verdict.arms), "arm")
    where = [f"{bad} of {arms}" if bad else arms]
    if verdict.commit:
        where[0] += f" at {shown(verdict.commit, 64)[:7]}"
    if verdict.clean:
        where.append("clean")
    if verdict.class_:
        where.append(f"class {shown(verdict.class_, 40)}")
    return ", ".join(where)


class Group(NamedTuple):
    """What is wrong with an arm, or is the same for several arms that cannot be graded.

    `named`: what to do names the arm, so that it stands for the first of several.
    """

    arms: Sequence[ArmVerdict]
    reasons: Sequence[Reason]
    named: bool = False


def groups(verdict: Verdict) -> list[Group]:
    """The findings, worst first: an arm that was graded stands by itself, one refusal of several arms is said once."""
    alone: list[Group] = []
    refusals: dict[object, list[tuple[ArmVerdict, Reason]]] = {}
    for arm in ordered(verdict):
        if arm.verdict == "refused" and not arm.graded and arm.reasons:
            times: Counter[object] = Counter()  # of one arm, two runs may have the same fault
            for reason in arm.reasons:
                same = reason.code, reason.what, reason.key, repr(reason.value), reason.category
                refusals.setdefault((same, times[same]), []).append((arm, reason))
                times[same] += 1
        elif arm.verdict != "pass":
            alone.append(Group((arm,), arm.reasons))
    several: dict[tuple[str, ...], Group] = {}
    for found in refusals.values():
        arms = [arm for arm, _ in found]
        names = tuple(arm.arm for arm in arms)
        _, before, named = several.get(names, Group(arms, ()))
        common = _common([reason for _, reason in found])
        named = named or len({reason.mend for _, reason in found}) > 1
        several[names] = Group(arms, before if common in before else (*before, common), named)
    return sorted([*several.values(), *alone], key=lambda group: _ORDER[group.arms[0].verdict])


def _common(reasons: Sequence[Reason]) -> Reason:
    """One reason for several arms, without the file or subject in which they differ."""
    first = reasons[0]
    if len({reason.message for reason in reasons}) == 1:
        return first
    return first.model_copy(update={"file": None, "line": None, "subject": None})


def measure(grade: Graded) -> str:
    """`recall@10`, or `recall@10 of lexical`."""
    return grade.measure if grade.category is None else f"{grade.measure} of {grade.category}"


def against_bar(grade: Graded, decimals: int = 3, unit: str = " misses") -> str:
    """`53 ≤ 55 misses`, or `0.783 < 0.800`, with as many decimals as tell a breach."""
    if grade.misses is not None:
        return f"{grade.misses} {'≤' if grade.passed else '>'} {grade.misses_allowed}{unit}"
    for places in range(decimals, 7):  # seven digits could be a commit
        value, bar = f"{grade.value:.{places}f}", f"{grade.lowest:.{places}f}"
        if grade.passed or value != bar:
            break
    return f"{value} {'≥' if grade.passed else '<'} {bar}"


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


def held_by(arms: Iterable[ArmVerdict]) -> str | None:
    """Which rule holds what, in one sentence: the measures held by another rule than their floor are named."""
    graded = [(arm, grade) for arm in arms for grade in arm.graded]
    others: dict[str, list[str]] = {}
    for arm, grade in graded:
        if grade.rule != "floor":
            others.setdefault(f"{rule(grade)} ({shown(measure(grade), 60)})", []).append(arm.arm)
    if not graded:
        return None
    but = "; ".join(f"{what} of {names(of)}" for what, of in others.items())
    return f"Each bar is a floor, but for {but}." if but else "Each bar is a floor."


def breach(grade: Graded) -> str:
    """The code of a measure that is below its bar."""
    return "floor-breached" if grade.rule == "floor" else "baseline-drop"


def names(several: Sequence[str], most: int = 5) -> str:
    """`a, b, c and 4 more`."""
    more = f" and {len(several) - most} more" if len(several) > most else ""
    return ", ".join(shown(name, 60) for name in several[:most]) + more


def latency(arm: ArmVerdict) -> str:
    """`2.0 ≤ 300`, in milliseconds."""
    if arm.p95_ms is None:
        return "–"
    if arm.budget_p95_ms is None:
        return f"{arm.p95_ms:.1f}"
    return f"{arm.p95_ms:.1f} {'≤' if arm.p95_ms <= arm.budget_p95_ms else '>'} {arm.budget_p95_ms:g}"


def chance(found: Significance, n: int | None) -> str:
    """How much of a change chance explains, in one line."""
    if found.difference == 0 and found.p == 1:
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


def _points(share: float) -> str:
    text = f"{share * 100:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def ranks(moved: Moved) -> str:
    """`rank 2 → –`: before and after, a dash where it was not retrieved."""
    before, after = (f"{rank}" if rank else "–" for rank in (moved.before, moved.after))
    return f"rank {before} → {after}"


def unjudged(moved: Moved, *, short: bool = False) -> str:
    """That nobody judged answers which stand above a lost document now; empty where all of them are judged."""
    if not moved.unjudged:
        return ""
    if short:
        return f"{moved.unjudged} of {moved.above} above unjudged"
    answers, verb = count(moved.above, "answer"), "is" if moved.unjudged == 1 else "are"
    return f"  ({moved.unjudged} of the {answers} above {verb} unjudged)"


def movement(arm: ArmVerdict) -> str:
    """`hit@1: 7 queries lost, 1 gained`, and how many may be lost."""
    lost = count(len(arm.lost), "query", "queries")
    said = f"{shown(arm.measure or '', 40)}: {lost} lost, {len(arm.gained)} gained"
    bar = next((g for g in arm.graded if g.measure == arm.measure and g.category is None), None)
    return said if bar is None else f"{said}, {max(0, bar.queries) or 'none'} may be lost"


def notes(verdict: Verdict, rules: Iterable[ArmVerdict]) -> Iterator[str]:
    """What else should be known, a sentence each.

    Args:
        verdict: the whole.
        rules: arms whose rules are named.
    """
    graded = [arm for arm in verdict.arms if arm.graded]
    if held := held_by(rules):
        yield held
    moved = [arm for arm in graded if arm.lost or arm.gained]
    for arm in moved:
        if arm.verdict == "pass":  # the others are explained by themselves
            lost = f" ({names([one.query for one in arm.lost])})" if arm.lost else ""
            queries = count(len(arm.lost), "query", "queries")
            where = f"{shown(arm.arm, 60)}, {shown(arm.measure or '', 40)}"
            yield f"{where}: {queries} lost{lost}, {len(arm.gained)} gained."
    if rules_out := excluded(graded):
        yield rules_out
    still = ["No query was lost or gained against the baselines."] if graded and not moved else []
    if said := " ".join([*still, *_agreement(graded)]):
        yield said
    warned: dict[str, list[str]] = {}
    for arm in verdict.arms:
        changes = [] if arm.graded and arm.verdict != "pass" else system_changes(arm)
        for warning in (*changes, *arm.warnings[:10]):
            warned.setdefault(warning, []).append(arm.arm)
    for warning, arms in warned.items():
        yield f"{names(arms)}: {shown(warning, 600)}."
    if any(arm.significance is not None and arm.significance.p >= ALPHA for arm in verdict.arms):
        yield CHANCE
    if any(arm.provisional for arm in graded):
        yield PROVISIONAL
    if any(arm.unbound for arm in verdict.arms):
        yield UNBOUND
    if verdict.not_gated:
        yield f"Not gated, without floors: {names(verdict.not_gated, 10)}."
    for note in verdict.notes:
        yield f"{shown(note[:1].upper() + note[1:], 600)}."


def excluded(arms: Iterable[ArmVerdict]) -> str | None:
    """What the verdict rules out, in one sentence: the largest loss of each arm's headline that its interval holds."""
    alike: dict[tuple[str, str], list[str]] = {}
    for arm in arms:
        if (found := arm.headline) is not None:
            loss = f"{found.excludes:.1f} points of {shown(found.metric, 40)}"
            bounds = f"{_points(found.low)} to {_points(found.high)}"
            alike.setdefault((loss, bounds), []).append(arm.arm)
    if not alike:
        return None
    losses = [f"{loss} ({names(of)}: {bounds})" for (loss, bounds), of in alike.items()]
    more = f" and {len(losses) - 10} more" if len(losses) > 10 else ""
    return f"At 95%, no loss above {', '.join(losses[:10])}{more}."


def _agreement(arms: Sequence[ArmVerdict]) -> Iterator[str]:
    """Whether the runs that the floors stand on agree."""
    known = [arm for arm in arms if arm.runs_agree is not None]
    differ = [arm.arm for arm in known if not arm.runs_agree]
    if differ:
        yield f"Evidence runs differ in their rankings: {names(differ)}."
    elif known:
        yield "Each arm's evidence runs agree in every ranking."


def system_changes(arm: ArmVerdict, most: int = 5) -> Iterator[str]:
    """What is not what it was in the system, a part each."""
    for changed in arm.system_changes[:most]:
        before, after = ("–" if v is None else shown(repr(v), 60) for v in (changed.before, changed.after))
        yield f"system changed since the baseline: {shown(changed.part, 60)} {before} → {after}"
    if (more := len(arm.system_changes) - most) > 0:
        yield f"… {more} more parts of the system changed"


def overall(arms: Iterable[ArmVerdict]) -> tuple[list[str], list[dict[str, Graded]]]:
    """The measures that are held over all queries, and each arm's grades by measure: a table's columns and rows."""
    rows = [{grade.measure: grade for grade in arm.graded if grade.category is None} for arm in arms]
    return list(dict.fromkeys(measure for row in rows for measure in row)), rows


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
    # The baseline is looked for beside eval.toml.
    which = "--lost" if place.policy == place.config.parent / "policy" else "--missed"
    config = place.config.as_posix()
    beside = f" --config {argument(config)}" if config != "eval.toml" else ""
    return f"eval-core explain {argument(place.report(arm.arm).as_posix())} {which}{beside}"


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
    steps = []
    if len(failing) < len(bad) or verdict.reasons:
        steps.append(Step("Do what the lines above say, then:", "eval-core measure && eval-gate check"))
    if any(arm.unbound for arm in failing):
        return [*steps, Step("Mend the retriever, or move the floors in a reviewed commit that cites a run.")]
    if names := " ".join(argument(arm.arm) for arm in failing if not _is_slow(arm) or len(arm.reasons) > 1):
        runs = "--from A.zip B.zip" if {arm.evidence for arm in failing} == {"ci"} else "--measure"
        command = f'eval-gate floor {names} {runs} --reason floors="…" --write'
        steps.append(Step("If the drop is intended, move the bar in a commit of its own:", command))
    if names := " ".join(argument(arm.arm) for arm in failing if _is_slow(arm)):
        command = f'eval-gate floor {names} --p95-ms … --reason p95_ms="…" --write'
        steps.append(Step("If the latency is intended, move the budget:", command))
    return steps or [Step("Mend the retriever.")]


def _is_slow(arm: ArmVerdict) -> bool:
    return any(reason.code == "latency-over-budget" for reason in arm.reasons)
