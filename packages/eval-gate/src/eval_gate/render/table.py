"""The verdict for a person at a terminal: the answer first, then why, then what to do next; worst first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eval_core.console import clip, paint, table, width
from eval_gate.render import words
from eval_gate.render.place import Place
from eval_gate.render.words import shown
from eval_gate.verdict import ArmVerdict, Graded, Moved, Reason, Verdict, Word

#: Columns that sentences and tables take at most; a command stands in one line, so that it can be copied.
COLUMNS = 100

#: How many lost queries, changed parts, categories and changes of the bar are shown of each.
SHOWN = 5


def terminal(verdict: Verdict, place: Place) -> str:
    """The whole text, without a last newline."""
    lines = [f"{_word(verdict.verdict)}  {words.head(verdict)}"]
    if verdict.reasons:
        lines += ["", *_reasons(verdict.reasons, " "), *_mends(verdict.reasons, " ")]
    for group in words.groups(verdict):
        lines += ["", *_group(group, place)]
    passed = [arm for arm in words.ordered(verdict) if arm.verdict == "pass"]
    if passed:
        lines += ["", *_table(passed)]
    lines += _bar(verdict)
    notes = [line for note in words.notes(verdict, passed) for line in _wrapped(note)]
    if verdict.verdict != "pass":
        notes.append(words.MEANING)
    if notes:
        lines += ["", *notes]
    if steps := words.next_steps(verdict):
        lines.append("")
        for step in steps:
            lines += _step(step)
    return "\n".join(map(_inert, lines))


def _word(word: Word) -> str:
    return paint(words.WORDS[word], "green" if word == "pass" else "red")


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
    arm = group.arms[0]
    sets = ", ".join(dict.fromkeys(one.set for one in group.arms if one.set))
    *lines, head = _wrapped(
        f"{f'{_cell(sets, 30)} · ' if sets else ''}{words.names([a.arm for a in group.arms], 10)}", " "
    )
    yield from lines
    yield f"{head}  {_word(arm.verdict)}{'  cannot be graded' if arm.verdict == 'refused' else ''}"
    if arm.graded:
        yield from _breaches(arm)
    yield from _reasons([reason for reason in group.reasons if not _is_breach(reason, arm)], "   ")
    if len(group.arms) == 1 and arm.graded:
        if arm.significance is not None:
            yield from _wrapped(words.chance(arm.significance, arm.n), "   ")
        for change in words.system_changes(arm, SHOWN):
            yield from _wrapped(change, "   ")
        if arm.lost:
            yield from _lost(arm.lost[:SHOWN])
        if (more := len(arm.lost) - SHOWN) > 0:
            yield f"   … {more} more:  {words.explain(arm, place)}"
    yield from _mends(group.reasons, "   ")
    if group.named:
        yield "   The same for each of these arms, under its own name."


def _is_breach(reason: Reason, arm: ArmVerdict) -> bool:
    """Whether a reason is told by the row of its measure."""
    graded = [(grade.measure, grade.category) for grade in arm.graded]
    return reason.code in words.BREACHES and (reason.key, reason.category) in graded


def _breaches(arm: ArmVerdict) -> Iterator[str]:
    """Each measure against its bar, those below it first: value, bar, the rule it comes from, what it is in queries."""
    rows = []
    for grade in sorted(arm.graded, key=lambda grade: grade.passed)[: 4 * SHOWN]:
        state = "passes" if grade.passed else f"reason: {words.breach(grade)}"
        figures = words.against_bar(grade, decimals=4)
        name = _cell(words.measure(grade), 32)
        rows.append((name, figures, words.rule(grade), words.allowance(grade), state))
    lines = table(rows, indent="   ").split("\n")
    if max(map(width, lines)) > COLUMNS:
        lines = [line for row in rows for line in _wrapped("  ".join(filter(None, row)), "   ")]
    yield from lines
    if (more := len(arm.graded) - 4 * SHOWN) > 0:
        yield f"   … {more} more measures:  --format json"
    if arm.lost or arm.gained:
        yield f"   {words.movement(arm)}"


def _lost(several: Sequence[Moved]) -> list[str]:
    """A line a lost query; texts and names give way where the lines would be too long."""
    wide, narrow = (
        table([_moved(moved, *widths) for moved in several], indent="   ").split("\n")
        for widths in ((38, 18), (22, 14))
    )
    return wide if _fits(wide) else narrow


def _moved(moved: Moved, text: int, document: int) -> tuple[str, ...]:
    return (
        "lost",
        _cell(moved.query, 14),
        _cell(moved.text, text),
        _cell(moved.document, document),
        words.ranks(moved),
        words.unjudged(moved, short=True),
    )


# All arms that were graded.


def _table(arms: list[ArmVerdict]) -> list[str]:
    """A row an arm, a column a measure, in the widest form that fits; at worst the measures stand below their arm."""
    lines = table(_rows(arms), right=(1,)).split("\n")
    if not _fits(lines):
        lines = [*table(_rows(arms, narrow=True), right=(1,)).split("\n"), *_allowances(arms)]
    if not _fits(lines):
        lines = _stacked(_rows(arms))
    return [*lines, *(line for arm in arms for line in _categories(arm))]


def _fits(lines: list[str]) -> bool:
    return max(map(width, lines)) <= COLUMNS


def _rows(arms: list[ArmVerdict], *, narrow: bool = False) -> list[list[str]]:
    """The cells of the table, its head first; `narrow` without allowances, and `misses` in the head alone."""
    measures, graded = words.overall(arms)
    binary = {name for grades in graded for name, grade in grades.items() if grade.misses is not None}
    heads = [_cell(name, 30) + (" misses" if narrow and name in binary else "") for name in measures]
    rows = [["arm", "n", *heads, "p95 ms"]]
    for arm, grades in zip(arms, graded, strict=True):
        cells = [_graded(grades.get(name), narrow, name == measures[0]) for name in measures]
        number = "–" if arm.n is None else _cell(str(arm.n), 12)
        rows.append([_cell(arm.arm, 32), number, *cells, words.latency(arm)])
    return rows


def _allowances(arms: list[ArmVerdict]) -> list[str]:
    """What the bar of the first measure allows in queries, where the table has no room for it."""
    measures, graded = words.overall(arms)
    held: dict[str, list[str]] = {}
    for arm, grades in zip(arms, graded, strict=True):
        if measures and (grade := grades.get(measures[0])) and (allowed := words.allowance(grade)):
            held.setdefault("no query" if allowed == "none" else allowed, []).append(arm.arm)
    said = "; ".join(f"{allowed} of {words.names(names)}" for allowed, names in held.items())
    return _wrapped(f"May be lost of {_cell(measures[0], 30)}: {said}.", " ") if held else []


def _stacked(rows: list[list[str]]) -> list[str]:
    first, *others = table([[row[0], row[1], row[-1]] for row in rows], right=(1,)).split("\n")
    lines = [first]
    for line, row in zip(others, rows[1:], strict=True):
        cells = [f"{name} {cell}" for name, cell in zip(rows[0][2:-1], row[2:-1], strict=True) if cell != "–"]
        lines += [line, *(_wrapped(",  ".join(cells), "     ") if cells else [])]
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


# How the bar differs from that of the target.


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
