"""The verdict for a person: the answer first, then why, then what to do next; worst first."""

from __future__ import annotations

import textwrap
from collections.abc import Container

from eval_core.console import clip, count, paint, table, width
from eval_gate.verdict import ArmVerdict, Changed, Graded, Moved, Reason, Verdict

_ORDER = {"refused": 0, "fail": 1, "pass": 2}
_WORDS = {"refused": ("REFUSED", "red"), "fail": ("FAIL", "red"), "pass": ("PASS", "green")}

#: Columns that the text takes at most, but for a word (a path, a digest) that is longer by itself.
COLUMNS = 100

#: How many lost queries, and changed parts of a system, are shown of an arm.
SHOWN = 5


def terminal(verdict: Verdict) -> str:
    """The whole text, without a last newline."""
    arms = sorted(verdict.arms, key=lambda arm: (_ORDER[arm.verdict], arm.arm))
    bad = [arm for arm in arms if arm.verdict != "pass"]
    lines = [_head(verdict, len(bad))]
    for reason in verdict.reasons:
        lines += ["", *_reason(reason, " ")]
        if reason.remedy:
            lines += _wrapped(reason.remedy, " ")
    for arm in bad:
        lines += ["", *_explained(arm)]
    if arms:
        lines += ["", *_table(arms)]
    lines += _notes(verdict)
    lines += ["", *_next(verdict, bad)]
    return "\n".join(lines)


def _head(verdict: Verdict, bad: int) -> str:
    word, colour = _WORDS[verdict.verdict]
    total = count(len(verdict.arms), "arm")
    return f"{paint(word, colour)}  {total}" if not bad else f"{paint(word, colour)}  {bad} of {total}"


def _safe(text: str) -> str:
    """Texts of reports and policies come from others: what could steer the terminal is shown, never sent."""
    return clip(text, 2000)


def _wrapped(text: str, indent: str) -> list[str]:
    """A sentence over as many lines as it needs, the further ones set in; a command at its end stays in one piece."""
    safe = _safe(text)
    if width(safe) + len(indent) <= COLUMNS:
        return [indent + safe]
    lead, colon, command = safe.rpartition(":  ")
    if not colon:
        return _broken(safe, indent)
    return [*_broken(lead + ":", indent), f"{indent}  {command}"]


def _broken(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        COLUMNS,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _reason(reason: Reason, indent: str) -> list[str]:
    lines = _wrapped(reason.message, indent)
    code = f"reason: {reason.code}"
    if width(lines[-1]) + 4 + len(code) <= COLUMNS:
        return [*lines[:-1], f"{lines[-1]}    {code}"]
    return [*lines, f"{indent}  {code}"]


def _name(arm: ArmVerdict) -> str:
    return f"{clip(arm.set, 30)} · {clip(arm.arm, 40)}" if arm.set else clip(arm.arm, 40)


def _explained(arm: ArmVerdict) -> list[str]:
    word, colour = _WORDS[arm.verdict]
    lines = [f" {_name(arm)}  {paint(word, colour)}{'' if arm.verdict == 'fail' else '  cannot be graded'}"]
    remedies: list[str] = []
    for reason in arm.reasons:
        lines += _reason(reason, "   ")
        if reason.remedy and reason.remedy not in remedies:
            remedies.append(reason.remedy)
    lines += _changes(arm.system_changes, "   ", "system changed since the baseline: ")
    if arm.lost or arm.gained:
        metric = (arm.lost or arm.gained)[0].metric
        lost = count(len(arm.lost), "query", "queries")
        lines.append(f"   {metric}: {lost} lost, {len(arm.gained)} gained")
        lines.append(table([_moved("lost", moved) for moved in arm.lost[:SHOWN]], indent="   "))
        if len(arm.lost) > SHOWN:
            lines.append(f"   … {len(arm.lost) - SHOWN} more")
    for remedy in remedies:
        lines += _wrapped(remedy, "   ")
    return [line for line in lines if line]


def _changes(changes: tuple[Changed, ...], indent: str, lead: str) -> list[str]:
    lines = []
    for changed in changes[:SHOWN]:
        before, after = (
            "–" if value is None else clip(repr(value), 30) for value in (changed.before, changed.after)
        )
        lines += _wrapped(f"{lead}{clip(changed.part, 60)} {before} → {after}", indent)
    if len(changes) > SHOWN:
        lines.append(f"{indent}… {len(changes) - SHOWN} more parts changed")
    return lines


def _moved(word: str, moved: Moved) -> tuple[str, ...]:
    before, after = (f"{rank}" if rank else "–" for rank in (moved.before, moved.after))
    return (
        word,
        clip(moved.query, 14),
        clip(moved.text, 38),
        clip(moved.document, 18),
        f"rank {before} → {after}",
    )


def _table(arms: list[ArmVerdict]) -> list[str]:
    """A row an arm and a column a measure; where that is too wide, the measures stand below their arm."""
    measures = list(dict.fromkeys(grade.metric for arm in arms for grade in arm.graded))
    heads = ("arm", "verdict", "n", *measures, "p95 ms")
    rows = []
    for arm in arms:
        dropped = {reason.metric for reason in arm.reasons if reason.code == "baseline-drop"}
        held = {grade.metric: _grade(grade, dropped) for grade in arm.graded}
        cells = (held.get(measure, "–") for measure in measures)
        rows.append((clip(arm.arm, 32), _word(arm), _n(arm), *cells, _latency(arm)))
    lines = table([heads, *rows], right=(2,)).split("\n")
    if max(map(width, lines)) <= COLUMNS:
        return lines
    short = [heads[:3] + heads[-1:], *(row[:3] + row[-1:] for row in rows)]
    first, *others = table(short, right=(2,)).split("\n")
    lines = [first]
    for line, arm in zip(others, arms, strict=True):
        lines.append(line)
        dropped = {reason.metric for reason in arm.reasons if reason.code == "baseline-drop"}
        graded = ",  ".join(f"{grade.metric} {_grade(grade, dropped)}" for grade in arm.graded)
        lines += _wrapped(graded, "     ")
    return lines


def _word(arm: ArmVerdict) -> str:
    return arm.verdict + (" (unbound)" if arm.unbound else "")


def _n(arm: ArmVerdict) -> str:
    return clip(str(arm.n), 12) if arm.n is not None else "–"


def _latency(arm: ArmVerdict) -> str:
    latency = f"{arm.p95_ms:.2f}" if arm.p95_ms is not None else "–"
    return latency if arm.budget_p95_ms is None else f"{latency} ≤ {arm.budget_p95_ms:g}"


def _grade(grade: Graded, dropped: Container[str | None]) -> str:
    """A value against its floor, marked where it breaches that or has dropped too far below the baseline."""
    mark = "" if grade.passed and grade.metric not in dropped else " !"
    if grade.max_misses is not None:
        return f"{grade.misses} {'≤' if grade.passed else '>'} {grade.max_misses} misses{mark}"
    return f"{grade.value:.3f} {'≥' if grade.passed else '<'} {grade.floor:.3f}{mark}"


def _notes(verdict: Verdict) -> list[str]:
    notes = []
    for arm in verdict.arms:
        if arm.verdict == "pass":  # of the others it was said above
            notes += _changes(
                arm.system_changes, "", f"{clip(arm.arm, 40)}: system changed since the baseline: "
            )
    for arm in verdict.arms:
        for warning in arm.warnings:
            notes += _wrapped(f"{clip(arm.arm, 40)}: {warning}.", "")
    if any(arm.provisional for arm in verdict.arms):
        notes.append("Floors are provisional: a fixed margin, until ten runs show how much they differ.")
    if any(arm.unbound for arm in verdict.arms):
        notes.append("Unbound: nothing ties these reports to their queries, labels or corpus.")
    if verdict.not_gated:
        names = ", ".join(clip(name, 40) for name in verdict.not_gated[: 2 * SHOWN])
        more = len(verdict.not_gated) - 2 * SHOWN
        notes += _wrapped(
            f"Not gated, for want of floors: {names}{f' and {more} more' if more > 0 else ''}.", ""
        )
    return ["", *notes] if notes else []


def _next(verdict: Verdict, bad: list[ArmVerdict]) -> list[str]:
    if not bad and not verdict.reasons:
        return ["Next: nothing; the bar holds."]
    failing = [arm for arm in bad if arm.verdict == "fail"]
    if not failing or len(failing) < len(bad) or verdict.reasons:
        return _wrapped(
            "Next: a refused arm is no pass. Do what its lines say first, then:  eval-core measure && eval-gate check",
            "",
        )
    if any(arm.unbound for arm in bad):
        return ["Next: mend the retriever, or move the floors in a reviewed commit that cites a run."]
    slow = [arm for arm in failing if any(reason.code == "latency-over-budget" for reason in arm.reasons)]
    lines = ["Next: mend the retriever."]
    names = " ".join(arm.arm for arm in failing if any(reason.metric for reason in arm.reasons))
    if names:
        lines[0] += " If the drop is meant, measure twice and move the bar in its own commit:"
        lines.append(f'  eval-gate floor {names} --reason "…" --write && eval-gate baseline {names} --write')
    if slow:
        names = " ".join(arm.arm for arm in slow)
        lines.append("A budget is moved in a reviewed commit too, to what was measured:")
        lines.append(f"  eval-gate baseline {names} --p95-ms … --write")
    return lines
