"""The verdict as annotations of a GitHub job, on the lines of judgements, floors and files; then the decision.

GitHub shows ten errors, ten warnings and ten notices of a step, so that no more are written, and a notice says how many
were left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Literal, NamedTuple

from eval_core.policy import Budget
from eval_gate.render import words
from eval_gate.render.place import Place
from eval_gate.render.spots import Judgement, Spot, Spots
from eval_gate.render.words import shown
from eval_gate.verdict import ArmVerdict, Moved, Reason, Verdict

#: Annotations of a kind that GitHub shows of a step.
MOST = 10

#: Of the errors, how many are kept for lost queries, where there are so many.
LOST = 5

TITLE = "eval-gate"


class _Lost(NamedTuple):
    arm: ArmVerdict
    moved: Moved


def github(verdict: Verdict, place: Place) -> str:
    """The whole text, without a last newline: a command a line, then one line for a person."""
    spots = Spots(place)
    arms = words.ordered(verdict)
    bad = [arm for arm in arms if arm.verdict != "pass"]
    reasons = [*_reasons(verdict)]
    lost = _lost(bad, spots)
    of_reasons = reasons[: MOST - min(LOST, len(lost))]
    of_lost = lost[: MOST - len(of_reasons)]
    lines = [_reason(alike, reason, spots) for alike, reason in of_reasons]
    lines += _lost_lines(of_lost, spots)
    warnings = [*_looser(verdict, spots)]
    lines += warnings[:MOST]
    left = (
        (len(reasons) - len(of_reasons), "reasons"),
        (len(lost) - len(of_lost), "lost queries"),
        (len(warnings) - MOST, "warnings"),
    )
    if more := ", ".join(f"{number} more {what}" for number, what in left if number > 0):
        lines.append(_command("notice", None, TITLE, f"{more} without an annotation:  eval-gate check"))
    return "\n".join([*lines, _decision(verdict, bad)])


def _decision(verdict: Verdict, bad: list[ArmVerdict]) -> str:
    names = ", ".join(shown(arm.arm, 60) for arm in bad[:MOST])
    more = f" and {len(bad) - MOST} more" if len(bad) > MOST else ""
    return f"{words.WORDS[verdict.verdict]}  {words.head(verdict)}{f': {names}{more}' if names else ''}"


def _reasons(verdict: Verdict) -> Iterator[tuple[Sequence[ArmVerdict], Reason]]:
    """Those of the policy, then the first of every arm or group of arms, then their second, and so on."""
    yield from (((), reason) for reason in verdict.reasons)
    groups = ([(group.arms, reason) for reason in group.reasons] for group in words.groups(verdict))
    for turn in zip_longest(*groups):
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
        ranks = "; ".join(
            f"{shown(one.arm.arm, 60)}: {words.ranks(one.moved)}{words.unjudged(one.moved)}"
            for one in group[:5]
        )
        more = f"; and {len(group) - 5} more arms" if len(group) > 5 else ""
        moved = first.moved
        message = f"{shown(moved.metric, 40)} lost: {shown(moved.text, 200)}"
        message += f"\n{shown(moved.document, 200)}  {ranks}{more}"
        yield _command("error", spot, f"{TITLE}: query {shown(moved.query, 60)} lost", message)


def _reason(arms: Sequence[ArmVerdict], reason: Reason, spots: Spots) -> str:
    name = shown(arms[0].arm, 60) if arms else "policy"
    if len(arms) > 1:
        name += f" and {len(arms) - 1} more"
    spot = spots.reason(arms[0], reason) if arms else spots.policy()
    title = f"{TITLE}: {name} {words.WORDS[reason.word]}, {shown(reason.code, 60)}"
    mend = f"\n{shown(reason.mend, 1000)}" if reason.mend else ""
    means = f"\neval-core reason {shown(reason.code, 60)}"
    return _command("error", spot, title, shown(reason.message, 1000) + mend + means)


def _looser(verdict: Verdict, spots: Spots) -> Iterator[str]:
    for arm, changes in words.loosened(verdict).items():
        lines = [f"{words.bar_change(change)}  ({words.why(change)})" for change in changes[:MOST]]
        if len(changes) > MOST:
            lines.append(f"and {len(changes) - MOST} more")
        budgeted = all(change.key in Budget.model_fields for change in changes)
        spot = spots.policy() if arm is None else spots.budget(arm) if budgeted else spots.arm(arm)
        name = "" if arm is None else f" for {shown(arm, 60)}"
        title = f"{TITLE}: the bar is looser{name} than that of {shown(verdict.target or '', 60)}"
        yield _command("warning", spot, title, "\n".join(lines))


def _command(kind: Literal["error", "warning", "notice"], spot: Spot | None, title: str, message: str) -> str:
    """One workflow command. What is no part of its grammar is escaped as GitHub's own toolkit does."""
    properties = {"title": title}
    if spot is not None:
        line = {"line": str(spot.line)} if spot.line is not None else {}
        properties = {"file": shown(spot.file), **line, **properties}
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{kind} {listed}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
