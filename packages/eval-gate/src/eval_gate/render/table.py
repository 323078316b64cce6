"""The verdict for a person at a terminal: the answer first, then why, then what to do next; worst first."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eval_core.console import clip, count, paint, table, width
from eval_gate.render import Place, words
from eval_gate.render.words import shown
from eval_gate.verdict import ArmVerdict, BarChange, Changed, Graded, Moved, Reason, Verdict

_COLOURS = {"refused": "red", "fail": "red", "pass": "green"}

#: Columns that the text takes at most, but for a word (a path, a digest) that is longer by itself.
COLUMNS = 100

#: How many lost queries, and changed parts of a system, are shown of an arm.
SHOWN = 5

#: How many arms' odds are told: those that matter most.
ODDS = 2


def terminal(verdict: Verdict, place: Place) -> str:
    """The whole text, without a last newline."""
    arms = words.ordered(verdict)
    bad = [arm for arm in arms if arm.verdict != "pass"]
    lines = [_head(verdict)]
    for reason in verdict.reasons:
        lines += ["", *_reason(reason, " ")]
        if reason.remedy:
            lines += _remedy(reason.remedy, " ")
    for arm in bad:
        lines += ["", *_explained(arm, place)]
    if arms:
        lines += ["", *_table(arms)]
    lines += _bar(verdict)
    lines += _notes(verdict, arms)
    lines += ["", *_next(verdict)]
    return "\n".join(map(_inert, lines))


def _inert(line: str) -> str:
    """A line that begins with `::` is a command to the log of a GitHub job, however far it is set in."""
    text = line.lstrip()
    if not text.startswith("::"):
        return line
    return line[: max(0, len(line) - len(text) - 1)] + "\\" + text


def _head(verdict: Verdict) -> str:
    head = words.head(verdict)
    target = "" if verdict.target is None else _cell(verdict.target, 40)
    return f"{paint(head.word, _COLOURS[verdict.verdict])}  {head.arms}{words.looser_than(head, target)}"


def _cell(text: str, columns: int) -> str:
    return clip(shown(text, 4 * columns), columns)


# Sentences and commands, in lines.


def _wrapped(text: str, indent: str = "") -> list[str]:
    """A sentence over as many lines as it needs, the further ones set in."""
    if width(text) + len(indent) <= COLUMNS:
        return [indent + text]
    lines = []
    line, room = "", COLUMNS - len(indent)
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if line.strip() and width(longer) > room:
            lines.append(line)
            line, room = word, COLUMNS - len(indent) - 2
        else:
            line = longer
    lines.append(line)
    return [f"{indent}{'  ' if number else ''}{line.strip()}" for number, line in enumerate(lines)]


def _remedy(text: str, indent: str) -> list[str]:
    """What to do: in one line where it fits, else the command in lines of its own, the rest wrapped around it."""
    safe = shown(text)
    if width(safe) + len(indent) <= COLUMNS:
        return [indent + safe]
    lead, command, rest = words.parts(safe)
    lines = _wrapped(lead, indent) if lead else []
    inner = indent + "  " if lead else indent
    if command:
        lines += _command(command, inner)
    if rest:
        lines += _wrapped(rest, indent + "  ")
    return lines


_WORD = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*'|["'])+""")


def _command(text: str, indent: str) -> list[str]:
    """A command in one line where it fits; else broken where a shell reads on: after `&&`, and before a backslash."""
    if width(text) + len(indent) <= COLUMNS:
        return [indent + text]
    lines = []
    first, *others = text.split(" && ")
    for number, part in enumerate((first, *others)):
        line = indent
        end = " &&" if number < len(others) else ""
        several = _WORD.findall(part)
        for place, word in enumerate(several):
            last = place == len(several) - 1
            room = COLUMNS - (len(end) if last else 2)
            if line.strip() and width(line) + 1 + width(word) > room:
                lines.append(line + " \\")
                line = indent + "  "
            line += (" " if line.strip() else "") + word
        lines.append(line + end)
    return lines


def _reason(reason: Reason, indent: str) -> list[str]:
    lines = _wrapped(shown(reason.message), indent)
    code = f"reason: {shown(reason.code, 60)}"
    if width(lines[-1]) + 4 + len(code) <= COLUMNS:
        return [*lines[:-1], f"{lines[-1]}    {code}"]
    return [*lines, f"{indent}  {code}"]


# What is wrong with an arm.


def _name(arm: ArmVerdict) -> str:
    return f"{_cell(arm.set, 30)} · {_cell(arm.arm, 40)}" if arm.set else _cell(arm.arm, 40)


def _explained(arm: ArmVerdict, place: Place) -> list[str]:
    head = f" {_name(arm)}  {paint(words.WORDS[arm.verdict], _COLOURS[arm.verdict])}"
    head += "  cannot be graded" if arm.verdict == "refused" else ""
    lines = [head + ("  tracked: it decides nothing" if arm.tracked else "")]
    for reason in arm.reasons:
        lines += _reason(reason, "   ")
    lines += _categories(arm)
    if arm.significance is not None:
        lines += _wrapped(words.chance(arm.significance, arm.n), "   ")
    lines += _changes(arm.system_changes, "   ", "system changed since the baseline: ")
    if arm.lost or arm.gained:
        metric = shown((arm.lost or arm.gained)[0].metric, 40)
        lost = count(len(arm.lost), "query", "queries")
        lines.append(f"   {metric}: {lost} lost, {len(arm.gained)} gained")
        lines += table([_moved("lost", moved) for moved in arm.lost[:SHOWN]], indent="   ").split("\n")
        if len(arm.lost) > SHOWN:
            lines += _remedy(f"… {len(arm.lost) - SHOWN} more:  {words.explain(arm, place)}", "   ")
    for remedy in words.remedies(arm.reasons):
        lines += _remedy(remedy, "   ")
    return [line for line in lines if line]


def _categories(arm: ArmVerdict) -> list[str]:
    """The floors of its categories in one sentence, those that it breaches first."""
    graded = sorted(
        (grade for grade in arm.graded if grade.category is not None), key=lambda grade: grade.passed
    )
    told = [f"{_cell(words.measure(grade), 60)} {_grade(arm, grade)}" for grade in graded[: 2 * SHOWN]]
    if len(graded) > 2 * SHOWN:
        told.append(f"and {len(graded) - 2 * SHOWN} more")
    return _wrapped(f"by category: {', '.join(told)}", "   ") if told else []


def _changes(changes: tuple[Changed, ...], indent: str, lead: str) -> list[str]:
    lines = []
    for changed in changes[:SHOWN]:
        before, after = (
            "–" if value is None else _cell(repr(value), 30) for value in (changed.before, changed.after)
        )
        lines += _wrapped(f"{lead}{_cell(changed.part, 60)} {before} → {after}", indent)
    if len(changes) > SHOWN:
        lines.append(f"{indent}… {len(changes) - SHOWN} more parts changed")
    return lines


def _moved(word: str, moved: Moved) -> tuple[str, ...]:
    texts = _cell(moved.query, 14), _cell(moved.text, 38), _cell(moved.document, 18)
    return (word, *texts, words.ranks(moved))


# All arms.


def _table(arms: list[ArmVerdict]) -> list[str]:
    """A row an arm and a column a measure; where that is too wide, the measures stand below their arm."""
    overall = {arm.arm: [grade for grade in arm.graded if grade.category is None] for arm in arms}
    measures = list(dict.fromkeys(grade.metric for graded in overall.values() for grade in graded))
    heads = ("arm", "verdict", "n", *(_cell(measure, 30) for measure in measures), "p95 ms")
    rows = []
    for arm in arms:
        held = {grade.metric: _grade(arm, grade) for grade in overall[arm.arm]}
        cells = (held.get(measure, "–") for measure in measures)
        number = "–" if arm.n is None else _cell(str(arm.n), 12)
        rows.append((_cell(arm.arm, 32), words.state(arm), number, *cells, words.latency(arm)))
    lines = table([heads, *rows], right=(2,)).split("\n")
    if max(map(width, lines)) <= COLUMNS:
        return lines
    short = [heads[:3] + heads[-1:], *(row[:3] + row[-1:] for row in rows)]
    first, *others = table(short, right=(2,)).split("\n")
    lines = [first]
    for line, arm in zip(others, arms, strict=True):
        lines.append(line)
        graded = ",  ".join(f"{_cell(g.metric, 30)} {_grade(arm, g)}" for g in overall[arm.arm])
        lines += _wrapped(graded, "     ") if graded else []
    return lines


def _grade(arm: ArmVerdict, grade: Graded) -> str:
    """A value against its floor, marked where it breaches that or has dropped too far below the baseline."""
    return words.against_floor(grade) + ("" if words.holds(arm, grade) else " !")


# How the bar differs from that of the target.


def _bar(verdict: Verdict) -> list[str]:
    if verdict.target is None:
        return []
    target = _cell(verdict.target, 60)
    if not verdict.bar:
        return ["", *_wrapped(f"The bar is that of {target}.")]
    others = [change for change in verdict.bar if not change.looser]
    loose = len(verdict.bar) - len(others)
    lines = [
        "",
        *_wrapped(f"The bar against that of {target}: {loose} looser, {len(others)} otherwise changed"),
    ]
    left = 2 * SHOWN
    for _, changes, why in words.loosened(verdict):
        if left > 0:
            for change in changes[:left]:
                lines += _wrapped(_change(change, "looser"), " ")
            lines += _wrapped(why, "         ")
        left -= len(changes)
    for change in others[: max(0, left)]:
        lines += _wrapped(_change(change, "changed"), " ")
    if (more := len(verdict.bar) - 2 * SHOWN) > 0:
        lines.append(f" … {more} more:  --format json")
    return lines


def _change(change: BarChange, word: str) -> str:
    arm = "" if change.arm is None else f"{_cell(change.arm, 40)}  "
    before, after = ("–" if value is None else _cell(value, 60) for value in (change.before, change.after))
    return f"{word:<7}  {arm}{_cell(change.what, 60)}: {before} → {after}"


# What else should be known, and what to do.


def _notes(verdict: Verdict, arms: list[ArmVerdict]) -> list[str]:
    notes = []
    for arm in verdict.arms:
        if arm.verdict == "pass":  # of the others it was said above
            lead = f"{_cell(arm.arm, 40)}: system changed since the baseline: "
            notes += _changes(arm.system_changes, "", lead)
    warned: dict[str, list[str]] = {}
    for arm in verdict.arms:
        for warning in arm.warnings:
            warned.setdefault(warning, []).append(arm.arm)
    for warning, alike in warned.items():
        more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
        notes += _wrapped(f"{_cell(alike[0], 40)}{more}: {shown(warning)}.")
    if any(words.is_chance(arm) for arm in verdict.arms):
        notes.append(words.CHANCE)
    if any(arm.provisional for arm in verdict.arms):
        notes.append(words.PROVISIONAL)
    if any(arm.unbound for arm in verdict.arms):
        notes.append(words.UNBOUND)
    if verdict.not_gated:
        names = ", ".join(_cell(name, 40) for name in verdict.not_gated[: 2 * SHOWN])
        further = len(verdict.not_gated) - 2 * SHOWN
        tail = f" and {further} more" if further > 0 else ""
        notes += _wrapped(f"Not gated, for want of floors: {names}{tail}.")
    notes += _odds(arms)
    return ["", *notes] if notes else []


def _odds(arms: list[ArmVerdict]) -> Iterator[str]:
    several = words.odds(arms)
    for text, names in several[:ODDS]:
        alike = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield from _wrapped(f"{_cell(names[0], 40)}{alike}: {shown(text, 400)}")
    if (more := len(several) - ODDS) > 0:
        yield f"… the odds of {count(more, 'more policy', 'more policies')}:  --format json"


def _next(verdict: Verdict) -> list[str]:
    first, *others = words.next_steps(verdict)
    return [line for step in (f"Next: {first}", *others) for line in _remedy(step, "")]
