"""What the forms of a verdict share: texts of others made harmless, the order of arms, the words for a finding."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from eval_core.console import count
from eval_gate.render import Place
from eval_gate.verdict import ArmVerdict, BarChange, Graded, Moved, Reason, Significance, Verdict

#: Characters that are shown of one text.
LONGEST = 2000

#: p below which a change is told as more than chance.
ALPHA = 0.05

WORDS = {"refused": "REFUSED", "fail": "FAIL", "pass": "PASS"}

CHANCE = (
    "Chance is told, never graded: a floor holds this set, not the population that its queries stand for."
)

PROVISIONAL = "Floors are provisional: a fixed margin, until ten runs show how much they differ."
UNBOUND = "Unbound: nothing ties these reports to their queries, labels or corpus."

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
    """Worst first; those that are only tracked after those that decide."""
    return sorted(verdict.arms, key=lambda arm: (arm.tracked, _ORDER[arm.verdict], arm.arm))


class Head(NamedTuple):
    """The decision: its word, how many arms it is about, and how many things make the bar looser than the target's."""

    word: str
    arms: str
    looser: int


def head(verdict: Verdict) -> Head:
    """`FAIL`, `1 of 4 arms, 1 tracked`: tracked arms are told apart, since they decide nothing."""
    gating = [arm for arm in verdict.arms if not arm.tracked]
    tracked = [arm for arm in verdict.arms if arm.tracked]
    bad = sum(arm.verdict != "pass" for arm in gating)
    arms = f"{bad} of {count(len(gating), 'arm')}" if bad else count(len(gating), "arm")
    if tracked:
        below = sum(arm.verdict != "pass" for arm in tracked)
        arms += f", {len(tracked)} tracked" + (f" ({below} not passing)" if below else "")
    return Head(WORDS[verdict.verdict], arms, sum(change.looser for change in verdict.bar))


def looser_than(head: Head, target: str) -> str:
    """`; the bar is looser than that of main in 2 places`, or nothing."""
    where = count(head.looser, "place")
    return f"; the bar is looser than that of {target} in {where}" if head.looser else ""


class Loosened(NamedTuple):
    """What makes the bar of one arm looser, or of the policy where the arm is None, and the reasons that are given."""

    arm: str | None
    changes: Sequence[BarChange]
    why: str


def loosened(verdict: Verdict) -> list[Loosened]:
    """What is looser, arm by arm. The reason of an arm's floors is that of its budget too."""
    groups: dict[str | None, list[BarChange]] = {}
    for change in verdict.bar:
        if change.looser:
            groups.setdefault(change.arm, []).append(change)
    found = []
    for arm, changes in groups.items():
        reasons = dict.fromkeys(shown(c.reason, 400) for c in changes if c.reason)
        why = f"reason: {'; '.join(reasons)}" if reasons else "no reason is given"
        found.append(Loosened(arm, changes, why))
    return found


def measure(grade: Graded) -> str:
    return grade.metric if grade.category is None else f"{grade.metric} of {grade.category}"


def against_floor(grade: Graded) -> str:
    """`3 ≤ 4 misses`, or `0.783 < 0.800`."""
    if grade.max_misses is not None:
        return f"{grade.misses} {'≤' if grade.passed else '>'} {grade.max_misses} misses"
    return f"{grade.value:.3f} {'≥' if grade.passed else '<'} {grade.floor:.3f}"


def holds(arm: ArmVerdict, grade: Graded) -> bool:
    """Whether a measure reaches its floor and has not dropped too far below the baseline."""
    lead = f"{measure(grade)}:"
    dropped = (reason.code == "baseline-drop" and reason.message.startswith(lead) for reason in arm.reasons)
    return grade.passed and not any(dropped)


def latency(arm: ArmVerdict) -> str:
    if arm.p95_ms is None or arm.budget_p95_ms is None:
        return "–" if arm.p95_ms is None else f"{arm.p95_ms:.2f}"
    sign = "≤" if arm.p95_ms <= arm.budget_p95_ms else ">"
    return f"{arm.p95_ms:.2f} {sign} {arm.budget_p95_ms:g}"


def state(arm: ArmVerdict) -> str:
    """The arm's word for a table, with what else decides how it counts."""
    marks = [mark for mark, is_so in (("tracked", arm.tracked), ("unbound", arm.unbound)) if is_so]
    return arm.verdict + (f" ({', '.join(marks)})" if marks else "")


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
    return arm.significance is not None and arm.significance.p >= ALPHA


def _points(share: float) -> str:
    text = f"{share * 100:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def ranks(moved: Moved) -> str:
    before, after = (f"{rank}" if rank else "–" for rank in (moved.before, moved.after))
    return f"rank {before} → {after}"


def remedies(reasons: Sequence[Reason]) -> list[str]:
    """What to do, each once."""
    return list(dict.fromkeys(reason.remedy for reason in reasons if reason.remedy))


class Remedy(NamedTuple):
    """A remedy in its parts: a sentence, a command, and what may stand after it."""

    lead: str
    command: str
    rest: str


_COMMAND = re.compile(r"(eval-|git )")


def parts(text: str) -> Remedy:
    """Take a remedy apart: `sentence:  command   (what else)`, of which any part may be absent."""
    main, gap, rest = text.partition("   ")
    lead, colon, command = main.rpartition(":  ")
    if not colon and not _COMMAND.match(main):
        return Remedy(text, "", "")
    return Remedy(lead + colon.rstrip(), command, rest.strip() if gap else "")


def explain(arm: ArmVerdict, place: Place) -> str:
    """The command that tells of every lost query."""
    report = argument(place.report(arm.arm).as_posix())
    command = f"eval-core explain {report} --lost"
    if place.policy.as_posix() != "policy":
        command += f" --against {argument((place.policy / 'baselines' / f'{arm.arm}.json').as_posix())}"
    return command


_DETECTS = re.compile(r"in [<>]?([0-9.]+)% of")


def odds(arms: Sequence[ArmVerdict]) -> list[tuple[str, list[str]]]:
    """The distinct odds with the arms that have them: those of failing arms first, then what is caught least."""

    def caught(text: str) -> float:
        found = _DETECTS.search(text)
        return float(found[1]) if found else 100.0

    held: dict[str, list[ArmVerdict]] = {}
    for arm in arms:
        if arm.odds is not None:
            held.setdefault(arm.odds, []).append(arm)
    several = sorted(
        held.items(),
        key=lambda item: (all(a.tracked or a.verdict == "pass" for a in item[1]), caught(item[0])),
    )
    return [(text, [arm.arm for arm in alike]) for text, alike in several]


def next_steps(verdict: Verdict) -> list[str]:
    """What to do now: sentences, with the command of each after a colon and two spaces."""
    bad = [arm for arm in ordered(verdict) if arm.verdict != "pass" and not arm.tracked]
    if not bad and not verdict.reasons:
        return ["nothing; the bar holds."]
    failing = [arm for arm in bad if arm.verdict == "fail"]
    if not failing or len(failing) < len(bad) or verdict.reasons:
        again = "a refused arm is no pass. Do what its lines say first, then"
        return [f"{again}:  eval-core measure && eval-gate check"]
    if any(arm.unbound for arm in bad):
        return ["mend the retriever, or move the floors in a reviewed commit that cites a run."]
    steps = ["mend the retriever."]
    names = " ".join(argument(arm.arm) for arm in failing if any(reason.metric for reason in arm.reasons))
    if names:
        steps[0] += (
            " If the drop is meant, measure twice and move the bar in its own commit:  "
            f'eval-gate floor {names} --reason "…" --write && eval-gate baseline {names} --write'
        )
    slow = [arm for arm in failing if any(reason.code == "latency-over-budget" for reason in arm.reasons)]
    if slow:
        names = " ".join(argument(arm.arm) for arm in slow)
        moved = "A budget is moved in a reviewed commit too, to what was measured"
        steps.append(f"{moved}:  eval-gate baseline {names} --p95-ms … --write")
    return steps
