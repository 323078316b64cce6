"""The finding of a self-test for a person: survivors first and what to do, then all attacks, then the smallest
regressions; the last line says it all."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from eval_core.console import clip, count, paint, table
from eval_gate.selftest.models import Attacked, Control, Regression, SelfTest, Smallest, Survivor

_TITLES = {
    "caught": ("CAUGHT", "green"),
    "survived": ("SURVIVED", "red"),
    "control-failed": ("CONTROL FAILED", "red"),
    "could-not": ("COULD NOT", "red"),
}

#: Columns that a sentence takes at most.
COLUMNS = 100

#: Arms that a line names.
SHOWN = 4

#: What each regression is.
_WAYS = (
    ("easiest_first", "lost, rank 1 first", "query", "queries"),
    ("deepest_first", "lost, deepest first", "query", "queries"),
    ("deeper", "all hits lower", "rank", "ranks"),
)


def terminal(found: SelfTest) -> str:
    """The whole text, without a last newline."""
    word, colour = _TITLES[found.verdict]
    lines = [f"{paint(word, colour)}  {_lead(found)}"]
    if found.control:
        return "\n".join([*lines, "", *_controls(found.control), "", last(found)])
    for problem in found.problems:
        lines += ["", *_controls([problem])]
    for attack in _survived(found):
        lines += [
            "",
            f" {attack.kind}: {paint(attack.name, 'red')}   expected: {' or '.join(attack.expected)}",
        ]
        for one in attack.survivors[:SHOWN]:
            lines += _wrapped(f"{clip(one.arm, 40)}  {_said(one)}", "   ")
        if len(attack.survivors) > SHOWN:
            lines.append(f"   … {count(len(attack.survivors) - SHOWN, 'more arm')}")
        lines += _wrapped(attack.remedy, "   ")
    rows = [("kind", "attack", "arms", "caught", "reason"), *map(_row, _tried(found))]
    lines += ["", table(rows, right=(2, 3))]
    if found.regressions:
        lines += [
            "",
            " Smallest regressions that the policy catches",
            table(list(_regressions(found)), right=(2,)),
        ]
    lines += ["", *(line for note in _notes(found) for line in _wrapped(note, "")), last(found)]
    return "\n".join(lines)


def markdown(found: SelfTest) -> str:
    """The same for a step summary: the answer first, the tables folded."""
    word = _TITLES[found.verdict][0]
    lines = [f"### Self-test of the gate: {word.lower()}", "", f"{last(found)}", ""]
    for one in (*found.control, *found.problems):
        lines.append(f"- {_cell(one.arm or 'policy')}: {_cell(one.message)} (`{one.code}`)")
    for attack in _survived(found):
        arms = ", ".join(one.arm for one in attack.survivors)
        lines.append(f"- **{_cell(attack.name)}** survives on {_cell(arms)}. {_cell(attack.remedy)}")
    if found.attacks:
        lines += ["", "<details><summary>All attacks</summary>", ""]
        lines += _grid([("kind", "attack", "arms", "caught", "reason"), *map(_row, _tried(found))])
        lines += ["", "</details>"]
    if found.regressions:
        lines += ["", "<details><summary>Smallest regressions that the policy catches</summary>", ""]
        lines += [*_grid(list(_regressions(found))), "", "</details>"]
    lines += [f"- {_cell(note)}" for note in _notes(found)]
    return "\n".join(lines)


def last(found: SelfTest) -> str:
    """`N attacks on M arms, all caught`, or what keeps that from being said."""
    tried = [attack for attack in found.attacks if attack.arms]
    arms = count(len(found.arms), "arm")
    if found.control:
        return f"No attack was made on {arms}: what is refused as it is shows nothing."
    head = f"{count(len(tried), 'attack')} on {arms}"
    survived = len(_survived(found))
    end = f"{survived} not caught" if survived else "all caught"
    if found.problems:
        end += f", {count(len(found.problems), 'thing')} could not be run"
    return f"{head}, {end}."


def _lead(found: SelfTest) -> str:
    if found.control:
        return "the workspace does not pass its gate as it stands"
    survived = _survived(found)
    if survived:
        tried = sum(bool(attack.arms) for attack in found.attacks)
        return f"{count(len(survived), 'attack')} of {tried}"
    return "an untouched copy, or an attack, could not be run" if found.problems else "every attack, by name"


def _survived(found: SelfTest) -> list[Attacked]:
    return [attack for attack in found.attacks if attack.survivors]


def _tried(found: SelfTest) -> list[Attacked]:
    """Survivors first, then as they were made; what was tried nowhere is told below."""
    return sorted((one for one in found.attacks if one.arms), key=lambda one: not one.survivors)


def _row(attack: Attacked) -> tuple[str, ...]:
    codes = ", ".join(attack.codes)
    if attack.survivors:
        codes = "SURVIVED" + (f"; {codes}" if codes else "")
    return attack.kind, attack.name, str(attack.arms), str(attack.caught), codes


def _said(one: Survivor) -> str:
    return clip(one.message, 200) + (f"  ({', '.join(one.codes)})" if one.codes else "")


def _controls(found: Sequence[Control]) -> list[str]:
    lines = []
    for one in found:
        where = f"{clip(one.arm, 40)}: " if one.arm else ""
        message, *more = one.message.splitlines() or [""]
        lines += _wrapped(f"{where}{clip(message, 400)}    reason: {one.code}", " ")
        lines += [f"   {clip(line, 400)}" for line in more]
        if one.remedy:
            lines.append(f"   {clip(one.remedy, 400)}")
    return lines


def _regressions(found: SelfTest) -> Iterator[tuple[str, ...]]:
    yield "arm", "what", "smallest", "points", "rule"
    for one in found.regressions:
        for name, told, noun, plural in _WAYS:
            yield (clip(one.arm, 40), told, *_smallest(one, getattr(one, name), noun, plural))


def _smallest(one: Regression, smallest: Smallest, noun: str, plural: str) -> tuple[str, str, str]:
    if smallest.amount is None:
        return "none", "–", "all of it passes"
    points = "–" if smallest.points is None else f"{smallest.points:.1f}"
    rule = f"{smallest.code} {smallest.metric or ''}".strip()
    amount = (
        f"{smallest.amount} of {one.n} queries" if noun == "query" else count(smallest.amount, noun, plural)
    )
    return amount, points, rule


def _notes(found: SelfTest) -> list[str]:
    notes = list(found.notes)
    passes = {one.requirement: one for one in found.attacks if one.not_asked and one.requirement}
    if passes:
        names = "; ".join(one.name for one in found.attacks if one.not_asked)
        asked = ", ".join(f'"{need}"' for need in passes)
        notes.append(f"Not asked of the policy, so these pass: {names}.")
        notes.append(f"To ask it, in floors.toml:  require = [{asked}]")
    for attack in found.attacks:
        reasons = dict.fromkeys(one.why for one in attack.skipped)
        if reasons and not attack.arms and not attack.not_asked:
            notes.append(f"Not tried: {attack.name}: {'; '.join(reasons)}")
    return [clip(note, 400) for note in notes]


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        COLUMNS,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _grid(rows: Sequence[Sequence[str]]) -> list[str]:
    head, *body = [[_cell(cell) for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *body]
    return [f"| {' | '.join(line)} |" for line in lines]


def _cell(text: str) -> str:
    """A text that cannot end a cell or begin a tag."""
    safe = clip(" ".join(text.split()), 400).replace("\\", "\\\\").replace("|", "\\|")
    return safe.replace("&", "&amp;").replace("<", "&lt;")
