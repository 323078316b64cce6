"""The verdict as annotations of a GitHub job, on the lines of judgements, floors and files; then the decision.

GitHub shows ten errors, ten warnings and ten notices of a step, so that no more are written, and a notice says how many
were left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Literal, NamedTuple

from eval_gate.render import Place, words
from eval_gate.render.spots import Judgement, Spot, Spots
from eval_gate.render.words import shown
from eval_gate.verdict import ArmVerdict, BarChange, Moved, Reason, Verdict

#: Annotations of a kind that GitHub shows of a step.
MOST = 10

#: Of the errors, how many are kept for lost queries, where there are so many.
LOST = 5

TITLE = "eval-gate"

#: What of the bar is written in budgets.toml.
_BUDGETED = ("p95_ms", "max_drop", "max_net_lost")


class _Lost(NamedTuple):
    arm: ArmVerdict
    moved: Moved


def github(verdict: Verdict, place: Place) -> str:
    """The whole text, without a last newline: a command a line, then one line for a person."""
    spots = Spots(place)
    arms = words.ordered(verdict)
    bad = [arm for arm in arms if arm.verdict != "pass" and not arm.tracked]
    reasons = [*_reasons(verdict, bad)]
    lost = _lost(bad, spots)
    of_reasons = reasons[: MOST - min(LOST, len(lost))]
    of_lost = lost[: MOST - len(of_reasons)]
    lines = [_reason(arm, reason, spots) for arm, reason in of_reasons]
    lines += _lost_lines(of_lost, spots)
    warnings = [*_looser(verdict, spots), *_tracked(arms, spots)]
    lines += warnings[:MOST]
    left = (
        (len(reasons) - len(of_reasons), "reasons"),
        (len(lost) - len(of_lost), "lost queries"),
        (len(warnings) - MOST, "warnings"),
    )
    if told := ", ".join(f"{number} more {what}" for number, what in left if number > 0):
        lines.append(_command("notice", None, TITLE, f"{told} without an annotation:  eval-gate check"))
    return "\n".join([*lines, _decision(verdict, bad)])


def _decision(verdict: Verdict, bad: list[ArmVerdict]) -> str:
    head = words.head(verdict)
    names = ", ".join(shown(arm.arm, 60) for arm in bad[:MOST])
    more = f" and {len(bad) - MOST} more" if len(bad) > MOST else ""
    loose = words.looser_than(head, shown(verdict.target or "", 60))
    return f"{head.word}  {head.arms}{f': {names}{more}' if names else ''}{loose}"


def _reasons(verdict: Verdict, bad: list[ArmVerdict]) -> Iterator[tuple[ArmVerdict | None, Reason]]:
    """Those of the policy, then the first of every arm, then their second, and so on."""
    yield from ((None, reason) for reason in verdict.reasons)
    for turn in zip_longest(*([(arm, reason) for reason in arm.reasons] for arm in bad)):
        yield from (pair for pair in turn if pair is not None)


def _lost(bad: list[ArmVerdict], spots: Spots) -> list[list[_Lost]]:
    """Lost queries, those of every arm in turn; what several arms lost at one judgement is one."""
    groups: dict[tuple[str, str, str], list[_Lost]] = {}
    for turn in zip_longest(*([_Lost(arm, moved) for moved in arm.lost] for arm in bad)):
        for one in turn:
            if one is not None:
                groups.setdefault(spots.same(_judgement(one)), []).append(one)
    return list(groups.values())


def _judgement(lost: _Lost) -> Judgement:
    return Judgement(lost.arm.arm, lost.moved.query, lost.moved.document)


def _lost_lines(several: list[list[_Lost]], spots: Spots) -> Iterator[str]:
    found = spots.judgements(_judgement(group[0]) for group in several)
    for group in several:
        first = group[0]
        spot = found.get(_judgement(first)) or spots.arm(first.arm.arm)
        told = "; ".join(f"{shown(one.arm.arm, 60)}: {words.ranks(one.moved)}" for one in group[:5])
        more = f"; and {len(group) - 5} more arms" if len(group) > 5 else ""
        moved = first.moved
        message = f"{shown(moved.metric, 40)} lost: {shown(moved.text, 200)}"
        message += f"\n{shown(moved.document, 200)}  {told}{more}"
        yield _command("error", spot, f"{TITLE}: query {shown(moved.query, 60)} lost", message)


def _reason(arm: ArmVerdict | None, reason: Reason, spots: Spots) -> str:
    name = "policy" if arm is None else shown(arm.arm, 60)
    spot = spots.policy() if arm is None else spots.reason(arm, reason)
    title = f"{TITLE}: {name} {words.WORDS[reason.word]}, {shown(reason.code, 60)}"
    message = shown(reason.message, 1000)
    return _command(
        "error", spot, title, message + (f"\n{shown(reason.remedy, 1000)}" if reason.remedy else "")
    )


def _looser(verdict: Verdict, spots: Spots) -> Iterator[str]:
    for arm, changes, why in words.loosened(verdict):
        told = []
        for change in changes[:MOST]:
            before, after = (
                "–" if value is None else shown(value, 100) for value in (change.before, change.after)
            )
            told.append(f"{shown(change.what, 100)}: {before} → {after}")
        if len(changes) > MOST:
            told.append(f"and {len(changes) - MOST} more")
        spot = _bar_spot(arm, changes, spots)
        name = "" if arm is None else f" for {shown(arm, 60)}"
        title = f"{TITLE}: the bar is looser{name} than that of {shown(verdict.target or '', 60)}"
        yield _command("warning", spot, title, "\n".join([*told, why]))


def _bar_spot(arm: str | None, changes: Sequence[BarChange], spots: Spots) -> Spot:
    if arm is None:
        return spots.policy()
    budgeted = all(change.what.startswith(_BUDGETED) for change in changes)
    return spots.budget(arm) if budgeted else spots.arm(arm)


def _tracked(arms: list[ArmVerdict], spots: Spots) -> Iterator[str]:
    for arm in arms:
        if arm.tracked and arm.verdict != "pass":
            first = arm.reasons[0] if arm.reasons else None
            spot = spots.arm(arm.arm) if first is None else spots.reason(arm, first)
            message = "" if first is None else shown(first.message, 1000)
            more = f"\nand {len(arm.reasons) - 1} more reasons" if len(arm.reasons) > 1 else ""
            title = f"{TITLE}: {shown(arm.arm, 60)}, tracked, is {arm.verdict}"
            yield _command("warning", spot, title, (message or arm.verdict) + more)


def _command(kind: Literal["error", "warning", "notice"], spot: Spot | None, title: str, message: str) -> str:
    """One workflow command. What is no part of its grammar is escaped as GitHub's own toolkit does."""
    properties = {"title": title}
    if spot is not None:
        line = {"line": str(spot.line)} if spot.line is not None else {}
        properties = {"file": shown(spot.file), **line, **properties}
    told = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{kind} {told}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
