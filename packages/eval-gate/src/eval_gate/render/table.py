"""The verdict for a person at a terminal: the answer first, then why, then what to do next; worst first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eval_core.console import clip, count, paint, table, width
from eval_gate.render import words
from eval_gate.render.place import Place
from eval_gate.render.words import shown
from eval_gate.verdict import ArmVerdict, Changed, Graded, Moved, Reason, Verdict

_COLOURS = {"refused": "red", "fail": "red", "pass": "green"}

#: Columns that sentences and tables take at most; a command stands in one line, so that it can be copied.
COLUMNS = 100

#: How many lost queries, changed parts, categories and changes of the bar are shown of each.
SHOWN = 5


def terminal(verdict: Verdict, place: Place) -> str:
    """The whole text, without a last newline."""
    at = f" at {words.commit(verdict)}" if verdict.commit else ""
    lines = [f"{paint(words.WORDS[verdict.verdict], _COLOURS[verdict.verdict])}  {words.head(verdict)}{at}"]
    if verdict.reasons:
        lines += ["", *_reasons(verdict.reasons, " "), *_mends(verdict.reasons, " ")]
    for group in words.groups(verdict):
        lines += ["", *_group(group, place)]
    if passed := [arm for arm in words.ordered(verdict) if arm.verdict == "pass"]:
        lines += ["", *_table(passed)]
    lines += _bar(verdict)
    if notes := [*_notes(verdict)]:
        lines += ["", *notes]
    if steps := words.next_steps(verdict):
        lines.append("")
        for step in steps:
            lines += _step(step)
    return "\n".join(map(_inert, lines))


def _inert(line: str) -> str:
    """A line that begins with `::` is a command to the log of a GitHub job, however far it is set in."""
    text = line.lstrip()
    if not text.startswith("::"):
        return line
    return line[: max(0, len(line) - len(text) - 1)] + "\\" + text


def _cell(text: str, columns: int) -> str:
    return clip(shown(text, 4 * columns), columns)


def _wrapped(text: str, indent: str = "") -> list[str]:
    """A sentence over as many lines as it needs, the further ones set in."""
    lines, line = [], indent
    for word in text.split(" "):
        if line.strip() and width(line) + 1 + width(word) > COLUMNS:
            lines.append(line)
            line = f"{indent}  {word}"
        else:
            line += word if not line.strip() else f" {word}"
    return [*lines, line]


def _step(step: words.Step) -> list[str]:
    if width(step.sentence) + 2 + width(step.command) <= COLUMNS:
        return [f"{step.sentence}  {step.command}".rstrip()]
    return [step.sentence, f"  {step.command}"]


def _reasons(reasons: Sequence[Reason], indent: str) -> Iterator[str]:
    for reason in reasons:
        *lines, last = _wrapped(shown(reason.message), indent)
        code = f"reason: {shown(reason.code, 60)}"
        fits = width(last) + 4 + len(code) <= COLUMNS
        yield from [*lines, f"{last}    {code}"] if fits else [*lines, last, f"{indent}  {code}"]


def _mends(reasons: Sequence[Reason], indent: str) -> Iterator[str]:
    for mend in words.mends(reasons):
        yield f"{indent}{shown(mend)}"


# Arms that do not pass.


def _group(group: words.Group, place: Place) -> Iterator[str]:
    arm = group.first
    sets = list(dict.fromkeys(one.set for one in group.arms if one.set))
    names = ", ".join(_cell(one.arm, 40) for one in group.arms[: 2 * SHOWN])
    if len(group.arms) > 2 * SHOWN:
        names += f" and {len(group.arms) - 2 * SHOWN} more"
    lead = f"{_cell(', '.join(sets), 30)} · " if sets else ""
    refused = "  cannot be graded" if arm.verdict == "refused" else ""
    head = _wrapped(f"{lead}{names}", " ")
    head[-1] += f"  {paint(words.WORDS[arm.verdict], _COLOURS[arm.verdict])}{refused}"
    yield from head
    if arm.graded:
        yield from _breaches(arm)
    yield from _reasons([reason for reason in arm.reasons if not _is_breach(reason)], "   ")
    if arm.significance is not None:
        yield from _wrapped(words.chance(arm.significance, arm.n), "   ")
    yield from _changes(arm.system_changes, "   ", "system changed since the baseline: ")
    if arm.lost:
        yield from table([_moved(moved) for moved in arm.lost[:SHOWN]], indent="   ").split("\n")
        if len(arm.lost) > SHOWN:
            yield f"   … {len(arm.lost) - SHOWN} more:  {words.explain(arm, place)}"
    yield from _mends(arm.reasons, "   ")
    if len(group.arms) > 1 and words.mends(arm.reasons):
        yield "   The same for each of them."


def _is_breach(reason: Reason) -> bool:
    return reason.code in ("floor-breached", "baseline-drop")


def _breaches(arm: ArmVerdict) -> Iterator[str]:
    """Each measure against its bar, those below it first: value, bar, the rule it comes from, what it is in queries."""
    rows = []
    for grade in sorted(arm.graded, key=lambda grade: grade.passed)[: 4 * SHOWN]:
        code = "baseline-drop" if grade.rule != "floor" else "floor-breached"
        state = "passes" if grade.passed else f"reason: {code}"
        figures = words.against_bar(grade, decimals=4)
        rows.append(
            (_cell(words.measure(grade), 32), figures, words.rule(grade), words.allowance(grade), state)
        )
    yield from table(rows, indent="   ").split("\n")
    if len(arm.graded) > 4 * SHOWN:
        yield f"   … {len(arm.graded) - 4 * SHOWN} more measures:  --format json"
    if arm.lost or arm.gained:
        lost = count(len(arm.lost), "query", "queries")
        yield f"   {_cell(arm.measure or '', 40)}: {lost} lost, {len(arm.gained)} gained"


def _changes(changes: tuple[Changed, ...], indent: str, lead: str) -> Iterator[str]:
    for changed in changes[:SHOWN]:
        before, after = ("–" if v is None else _cell(repr(v), 30) for v in (changed.before, changed.after))
        yield from _wrapped(f"{lead}{_cell(changed.part, 60)} {before} → {after}", indent)
    if len(changes) > SHOWN:
        yield f"{indent}… {len(changes) - SHOWN} more parts changed"


def _moved(moved: Moved) -> tuple[str, ...]:
    return (
        "lost",
        _cell(moved.query, 14),
        _cell(moved.text, 38),
        _cell(moved.document, 18),
        words.ranks(moved),
    )


# All arms that were graded.


def _table(arms: list[ArmVerdict]) -> list[str]:
    """A row an arm, a column a measure, in the widest form that fits; at worst the measures stand below their arm."""
    rows = _rows(arms)
    lines = table(rows, right=(1,)).split("\n")
    if not _fits(lines):
        rows = _rows(arms, narrow=True)
        lines = [*table(rows, right=(1,)).split("\n"), *_allowances(arms)]
    if not _fits(lines):
        lines = _stacked(_rows(arms))
    for arm in arms:
        lines += _categories(arm)
    return lines


def _fits(lines: list[str]) -> bool:
    return max(map(width, lines)) <= COLUMNS


def _rows(arms: list[ArmVerdict], *, narrow: bool = False) -> list[list[str]]:
    """The cells of the table, its head first; `narrow` without allowances, and `misses` in the head alone."""
    overall = {arm.arm: {g.measure: g for g in arm.graded if g.category is None} for arm in arms}
    graded = {grade.measure: grade for several in overall.values() for grade in several.values()}
    heads = [
        _cell(measure, 30) + (" misses" if narrow and grade.misses is not None else "")
        for measure, grade in graded.items()
    ]
    rows = [["arm", "n", *heads, "p95 ms"]]
    for arm in arms:
        held = [overall[arm.arm].get(measure) for measure in graded]
        cells = [_graded(grade, narrow, number == 0) for number, grade in enumerate(held)]
        number = "–" if arm.n is None else _cell(str(arm.n), 12)
        rows.append([_cell(arm.arm, 32), number, *cells, words.latency(arm)])
    return rows


def _allowances(arms: list[ArmVerdict]) -> list[str]:
    """What the bar of the first measure allows in queries, where the table has no room for it."""
    held: dict[tuple[str, str], list[str]] = {}
    for arm in arms:
        grade = next((grade for grade in arm.graded if grade.category is None), None)
        if grade is not None and words.allowance(grade):
            held.setdefault((grade.measure, words.allowance(grade)), []).append(arm.arm)
    found = []
    for measure in dict.fromkeys(measure for measure, _ in held):
        said = (
            f"{'no query' if what == 'none' else what} of {', '.join(_cell(name, 32) for name in names[:SHOWN])}"
            + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
            for (of, what), names in held.items()
            if of == measure
        )
        found += _wrapped(f"May be lost of {_cell(measure, 30)}: {'; '.join(said)}.", " ")
    return found


def _stacked(rows: list[list[str]]) -> list[str]:
    first, *others = table([[row[0], row[1], row[-1]] for row in rows], right=(1,)).split("\n")
    lines = [first]
    for line, row in zip(others, rows[1:], strict=True):
        lines.append(line)
        cells = [f"{name} {cell}" for name, cell in zip(rows[0][2:-1], row[2:-1], strict=True) if cell != "–"]
        lines += _wrapped(",  ".join(cells), "     ") if cells else []
    return lines


def _graded(grade: Graded | None, narrow: bool = False, first: bool = False) -> str:
    """A value against its bar, marked where it does not reach it; of the first measure, what that is in queries."""
    if grade is None:
        return "–"
    mark = "" if grade.passed else " !"
    if narrow:
        return words.against_bar(grade, unit="") + mark
    return (
        words.against_bar(grade)
        + (f"  {words.allowance(grade)}" if first and words.allowance(grade) else "")
        + mark
    )


def _categories(arm: ArmVerdict) -> list[str]:
    """The bars of an arm's categories in one sentence, those that are breached first."""
    graded = sorted((g for g in arm.graded if g.category is not None), key=lambda grade: grade.passed)
    cells = [f"{_cell(words.measure(g), 60)} {_graded(g)}" for g in graded[: 2 * SHOWN]]
    if len(graded) > 2 * SHOWN:
        cells.append(f"and {len(graded) - 2 * SHOWN} more")
    return _wrapped(f"{_cell(arm.arm, 32)} by category: {', '.join(cells)}", " ") if cells else []


# How the bar differs from that of the target, and what else should be known.


def _bar(verdict: Verdict) -> list[str]:
    if verdict.target is None:
        return []
    target = _cell(verdict.target, 60)
    if not verdict.bar:
        return ["", *_wrapped(f"The bar is that of {target}.")]
    loose = [change for changes in words.loosened(verdict).values() for change in changes]
    others = [change for change in verdict.bar if not change.looser]
    head = f"The bar against that of {target}: {len(loose)} looser, {len(others)} otherwise changed"
    lines = ["", *_wrapped(head)]
    for change in [*loose, *others][: 2 * SHOWN]:
        mark = f"looser   {words.bar_change(change)}  ({words.why(change)})"
        lines += _wrapped(mark if change.looser else f"changed  {words.bar_change(change)}", " ")
    if (more := len(verdict.bar) - 2 * SHOWN) > 0:
        lines.append(f" … {more} more:  --format json")
    return lines


def _notes(verdict: Verdict) -> Iterator[str]:
    graded = any(arm.graded for arm in verdict.arms)
    for sentence in (words.held_by(verdict), *words.movements(verdict), words.agreement(verdict)):
        if sentence is not None and graded:
            yield from _wrapped(sentence)
    for arm in verdict.arms:
        if arm.verdict == "pass":  # of the others it was said above
            yield from _changes(
                arm.system_changes, "", f"{_cell(arm.arm, 40)}: system changed since the baseline: "
            )
    warned: dict[str, list[str]] = {}
    for arm in verdict.arms:
        for warning in arm.warnings:
            warned.setdefault(warning, []).append(arm.arm)
    for warning, names in warned.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield from _wrapped(f"{_cell(names[0], 40)}{more}: {shown(warning)}.")
    if any(words.is_chance(arm) for arm in verdict.arms):
        yield from _wrapped(words.CHANCE)
    if graded and any(arm.provisional for arm in verdict.arms):
        yield words.PROVISIONAL
    if any(arm.unbound for arm in verdict.arms):
        yield words.UNBOUND
    if verdict.not_gated:
        names = [_cell(name, 40) for name in verdict.not_gated[: 2 * SHOWN]]
        further = len(verdict.not_gated) - len(names)
        yield from _wrapped(
            f"Not gated, without floors: {', '.join(names)}{f' and {further} more' if further else ''}."
        )
    for note in verdict.notes:
        yield from _wrapped(f"{shown(note[:1].upper() + note[1:])}.")
    if verdict.verdict != "pass":
        yield f"What a reason means: {words.REASONS}"
