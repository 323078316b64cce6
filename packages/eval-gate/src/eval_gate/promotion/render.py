"""A promotion for a person: on a terminal and as Markdown, the answer first in both. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath

from eval_core.console import clip, paint, table
from eval_gate.promotion.models import Figures, Promotion, Tested
from eval_gate.verdict import Reason

_COLOURS = {"proven": "green", "not-proven": "red", "refused": "yellow"}
_HEADS = ("condition", "proven", "run", "candidate", "incumbent", "difference", "95% interval")


def terminal(found: Promotion) -> str:
    """The whole text, without a last newline."""
    word = paint(found.verdict.upper().replace("-", " "), _COLOURS[found.verdict])
    lines = [f"{word}  {clip(_title(found), 200)}", ""]
    rows: list[tuple[str, ...]] = [_HEADS]
    for one in found.conditions:
        rows += _rows(one)
    lines.append(table([[clip(cell, 60) for cell in row] for row in rows], right=(3, 4, 5)))
    whys = [f" {one.text}: {clip(one.why, 400)}" for one in found.conditions if not one.proven]
    if whys:
        lines += ["", "Not proven:", *whys]
    if found.reasons:
        lines += ["", "Refused:"]
        for reason in found.reasons:
            lines.append(f" {clip(reason.message, 1000)}    reason: {reason.code}")
            lines += [f"   {clip(reason.mend, 400)}"] if reason.mend else []
    lines += ["", "Evidence:", *(f" {clip(line, 400)}" for line in _evidence(found))]
    lines += [f" {clip(note, 400)}" for note in found.notes]
    if found.changes:
        lines += ["", "Written:" if found.written else "Would be written:"]
        lines.append(table([(change.file, clip(change.what, 200)) for change in found.changes]))
    return "\n".join([*lines, "", *_next(found)])


def _title(found: Promotion) -> str:
    on = f" on {found.dataset}" if found.dataset else ""
    return f"{found.candidate} over {found.incumbent}{on}, by the rule over {found.over!r}"


def _rows(one: Tested) -> Iterator[tuple[str, ...]]:
    word = "yes" if one.proven else "no"
    if not one.runs:
        yield one.text, word, "", "", "", "", clip(one.why, 44)
    for place, run in enumerate(one.runs):
        yield "" if place else one.text, "" if place else word, *_cells(place + 1, run)


def _cells(number: int, run: Figures) -> tuple[str, ...]:
    whole = run.low is None and run.candidate is not None and run.candidate == int(run.candidate)

    def shown(value: float | None, sign: str = "") -> str:
        return "–" if value is None else f"{value:{sign}.0f}" if whole else f"{value:{sign}.4f}"

    bounds = "" if run.low is None or run.high is None else f"{run.low:+.4f} to {run.high:+.4f}"
    mark = "" if run.holds else " !"
    return f"{number}{mark}", shown(run.candidate), shown(run.incumbent), shown(run.difference, "+"), bounds


def _evidence(found: Promotion) -> Iterator[str]:
    for arm, runs in (
        (found.candidate, found.evidence.candidate),
        (found.incumbent, found.evidence.incumbent),
    ):
        for run in runs:
            where = (
                f"CI run {run.ci_run}"
                if run.ci_run
                else f"at {run.commit[:12] if run.commit else 'no commit'}"
            )
            yield f"{arm}  run {run.run_id}, {where}, line {run.line[:12]}…"
    for paper in found.evidence.comparisons:
        yield f"{paper.file}  checked in by {paper.commit[:12]}, sha256 {paper.sha256[:12]}…"


def _next(found: Promotion) -> list[str]:
    if found.written:
        # The record lies two folders below, beside it the floors and the evidence, where these are new as well.
        policy = PurePath(found.record or "").parent.parent
        message = f"Promote {found.candidate} over {found.incumbent}"
        return [
            "Next: commit it as it is, in one commit; a part of it is refused by  eval-gate check.",
            f'  git add {policy} {found.changes[0].file} && git commit -m "{message}"',
        ]
    if found.verdict == "proven" and found.changes:
        return ["Nothing was written; --write applies it, all or nothing, to be committed in one commit."]
    if found.verdict == "proven":
        return [
            "Nothing can be written: the candidate is not an arm of eval.toml, so there is no default to move to it."
        ]
    if found.verdict == "refused":
        return ["Nothing was written. Mend what is refused, then try again."]
    return ["Nothing was written. The incumbent stays."]


def markdown(found: Promotion) -> str:
    """The whole page, without a last newline."""
    word = found.verdict.replace("-", " ")
    lines = [f"## Promotion: {word}", "", f"**{_plain(_title(found))}**", ""]
    lines += _piped(_HEADS, (row for one in found.conditions for row in _rows(one)))
    whys = [f"- {_plain(one.text)}: {_plain(one.why)}" for one in found.conditions if not one.proven]
    if whys:
        lines += ["", "Not proven:", "", *whys]
    if found.reasons:
        lines += ["", "Refused:", "", *map(_item, found.reasons)]
    lines += ["", "<details><summary>Evidence</summary>", ""]
    lines += [f"- {_plain(line)}" for line in (*_evidence(found), *found.notes)]
    lines += ["", "</details>"]
    if found.changes:
        lines += ["", "Written:" if found.written else "Would be written:", ""]
        lines += _piped(("file", "change"), ((change.file, change.what) for change in found.changes))
    return "\n".join(lines)


def _item(reason: Reason) -> str:
    mend = f" {_plain(reason.mend)}" if reason.mend else ""
    return f"- `{reason.code}` {_plain(reason.message)}.{mend}"


def _piped(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    named = list(heads)
    lines = ["| " + " | ".join(named) + " |", "|" + "---|" * len(named)]
    return lines + ["| " + " | ".join(_plain(cell) for cell in row) + " |" for row in rows]


def _plain(text: str) -> str:
    """A text that Markdown shows as it is."""
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", clip(text, 2000))
