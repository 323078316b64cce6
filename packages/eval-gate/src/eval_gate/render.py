"""The verdict for a person: the answer first, then why, then what to do next; worst first."""

from __future__ import annotations

from eval_core.console import clip, count, paint, table
from eval_gate.verdict import ArmVerdict, Graded, Moved, Verdict

_ORDER = {"refused": 0, "fail": 1, "pass": 2}
_WORDS = {"refused": ("REFUSED", "red"), "fail": ("FAIL", "red"), "pass": ("PASS", "green")}

#: Lost queries that are shown in full.
SHOWN = 5


def terminal(verdict: Verdict) -> str:
    """The whole text, without a last newline."""
    arms = sorted(verdict.arms, key=lambda arm: (_ORDER[arm.verdict], arm.arm))
    bad = [arm for arm in arms if arm.verdict != "pass"]
    lines = [_head(verdict, len(bad))]
    for reason in verdict.reasons:
        lines += ["", f" {reason.message}    reason: {reason.code}"] + (
            [f" {reason.remedy}"] if reason.remedy else []
        )
    for arm in bad:
        lines += ["", *_explained(arm)]
    if arms:
        lines += ["", table([_COLUMNS, *map(_row, arms)], right=(2,))]
    lines += _notes(verdict)
    lines += ["", _next(verdict, bad)]
    return "\n".join(lines)


def _head(verdict: Verdict, bad: int) -> str:
    word, colour = _WORDS[verdict.verdict]
    total = count(len(verdict.arms), "arm")
    return f"{paint(word, colour)}  {total}" if not bad else f"{paint(word, colour)}  {bad} of {total}"


def _name(arm: ArmVerdict) -> str:
    return f"{clip(arm.set, 30)} · {clip(arm.arm, 40)}" if arm.set else clip(arm.arm, 40)


def _explained(arm: ArmVerdict) -> list[str]:
    word, colour = _WORDS[arm.verdict]
    lines = [f" {_name(arm)}  {paint(word, colour)}{'' if arm.verdict == 'fail' else '  cannot be graded'}"]
    remedies: list[str] = []
    for reason in arm.reasons:
        lines.append(f"   {reason.message}    reason: {reason.code}")
        if reason.remedy and reason.remedy not in remedies:
            remedies.append(reason.remedy)
    for changed in arm.system_changes:
        before, after = (clip(repr(value), 30) for value in (changed.before, changed.after))
        lines.append(f"   system changed since the baseline: {changed.part}  {before} → {after}")
    if arm.lost or arm.gained:
        metric = (arm.lost or arm.gained)[0].metric
        lost = count(len(arm.lost), "query", "queries")
        lines.append(f"   {metric}: {lost} lost, {len(arm.gained)} gained")
        lines.append(table([_moved("lost", moved) for moved in arm.lost[:SHOWN]], indent="   "))
        if len(arm.lost) > SHOWN:
            lines.append(f"   … {len(arm.lost) - SHOWN} more")
    lines += [f"   {remedy}" for remedy in remedies]
    return [line for line in lines if line]


def _moved(word: str, moved: Moved) -> tuple[str, ...]:
    before, after = (f"{rank}" if rank else "–" for rank in (moved.before, moved.after))
    return (
        word,
        clip(moved.query, 16),
        clip(moved.text, 44),
        clip(moved.document, 20),
        f"rank {before} → {after}",
    )


_COLUMNS = ("arm", "verdict", "n", "graded", "p95 ms")


def _row(arm: ArmVerdict) -> tuple[str, ...]:
    latency = f"{arm.p95_ms:.2f}" if arm.p95_ms is not None else "–"
    if arm.budget_p95_ms is not None:
        latency += f" ≤ {arm.budget_p95_ms:g}"
    return (
        clip(arm.arm, 32),
        arm.verdict + (" (unbound)" if arm.unbound else ""),
        str(arm.n) if arm.n is not None else "–",
        "  ".join(map(_grade, arm.graded)) or "–",
        latency,
    )


def _grade(grade: Graded) -> str:
    mark = "" if grade.passed else " !"
    if grade.max_misses is not None:
        return f"{grade.metric} {grade.value:.3f} ({grade.misses}/{grade.max_misses} misses){mark}"
    return f"{grade.metric} {grade.value:.3f} ≥ {grade.floor:.3f}{mark}"


def _notes(verdict: Verdict) -> list[str]:
    notes = []
    if any(arm.provisional for arm in verdict.arms):
        notes.append("Floors are provisional: a fixed margin, until ten runs show how much they differ.")
    if any(arm.unbound for arm in verdict.arms):
        notes.append("Unbound: nothing ties these reports to their queries, labels or corpus.")
    if verdict.not_gated:
        notes.append(f"Not gated, for want of floors: {', '.join(verdict.not_gated)}.")
    return ["", *notes] if notes else []


def _next(verdict: Verdict, bad: list[ArmVerdict]) -> str:
    if not bad and not verdict.reasons:
        return "Next: nothing; the bar holds."
    graded = [arm.arm for arm in bad if arm.verdict == "fail"]
    if graded and len(graded) == len(bad):
        if any(arm.unbound for arm in bad):
            return "Next: mend the retriever, or move the floors in a reviewed commit that cites a run."
        names = " ".join(graded)
        return (
            "Next: mend the retriever. If the drop is intended, measure twice and move the bar in a reviewed commit:\n"
            f'  eval-gate floor {names} --reason "…"'
        )
    return "Next: a refused arm is not a pass. Do what its lines say, then:  eval-core measure && eval-gate check"
