"""The verdict as GitHub Markdown, for a step summary or a comment: decision first, what follows from it, tables folded.

Whatever others wrote stands in code spans, where Markdown and GitHub see nothing: no table, link, HTML, mention,
reference or comment. Plain words and numbers stand as they are.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from eval_core.console import count
from eval_gate.render import words
from eval_gate.render.place import Place
from eval_gate.render.words import shown
from eval_gate.verdict import ArmVerdict, BarChange, Graded, Reason, Verdict

#: First line of every page, which shows nothing: a comment that has it can be found again and replaced.
MARKER = "<!-- eval-gate check -->"

#: Bytes that a page takes at most: a comment on GitHub holds 65,536 characters.
LONGEST = 60_000

#: Bytes after which no more arms are explained, so that the tables keep some room.
EXPLAINED = 36_000

#: Reasons, changed parts, remedies and bar changes that are told of each.
SHOWN = 10

#: Lost queries that are told of one arm.
LOST = 50

_CLOSING = 1_500


class _Page:
    """Blocks, as many as fit; what does not is counted, to be told at the end."""

    def __init__(self) -> None:
        self._blocks: list[str] = [MARKER]
        self._left = LONGEST - _CLOSING - len(MARKER)
        self._missing: dict[str, int] = {}

    @property
    def used(self) -> int:
        return LONGEST - _CLOSING - self._left

    def add(self, block: str, what: str, most: int = LONGEST) -> None:
        """Add a block with an empty line before it, where it fits; `what` names it if not."""
        size = len(block.encode()) + 2
        if size > self._left or self.used + size > most:
            self.miss(what)
            return
        self._blocks.append(block)
        self._left -= size

    def miss(self, what: str, number: int = 1) -> None:
        self._missing[what] = self._missing.get(what, 0) + number

    def fold(self, summary: str, fixed: Sequence[str], lines: Iterable[str], what: str) -> None:
        """Add lines folded behind a summary, which is HTML, as many as fit."""
        start, end = f"<details><summary>{summary}</summary>\n", "\n</details>"
        taken = [start, *fixed]
        room = self._left - sum(len(line.encode()) + 1 for line in (*taken, end)) - 2
        dropped = 0
        for line in lines:
            room -= len(line.encode()) + 1
            if room < 0:
                dropped += 1
            else:
                taken.append(line)
        if dropped:
            self.miss(what, dropped)
        if len(taken) > 1 + len(fixed):
            self.add("\n".join([*taken, end]), what)

    def text(self) -> str:
        if self._missing:
            gone = ", ".join(f"{number:,} {what}" for what, number in self._missing.items())
            everything = _code("eval-gate check --format json")
            self._blocks.append(f"Left out for length: {gone}. All of it: {everything}")
        return "\n\n".join(self._blocks)


def markdown(verdict: Verdict, place: Place) -> str:
    """The whole page, without a last newline, in at most `LONGEST` bytes of UTF-8."""
    page = _Page()
    arms = words.ordered(verdict)
    bad = [arm for arm in arms if arm.verdict != "pass"]
    which = f" ({_names(bad)})" if bad else ""
    head = _prose(words.head(verdict), inside=True)
    page.add(f"**{words.WORDS[verdict.verdict]}**: {head}{which}", "decision")
    if verdict.reasons:
        page.add("\n".join(_reasons(verdict.reasons)), "lists of reasons of the policy")
    for group in words.groups(verdict):
        page.add("\n".join(_explained(group)), "arms that do not pass", EXPLAINED)
    _bar(page, verdict)
    if steps := words.next_steps(verdict):
        lines = [f"- {_prose(step.sentence)} {_code(step.command)}".rstrip() for step in steps]
        page.add("\n".join(lines), "next steps")
    if arms:
        head_row, *rows = _table(arms)
        fixed = [_row(head_row), "|" + " --- |" * len(head_row)]
        page.fold(f"{count(len(arms), 'arm')}, bars and latency", fixed, map(_row, rows), "arms of the table")
    for arm in bad:
        if arm.lost:
            _lost(page, arm, place)
    said = [*words.notes(verdict, arms), *([words.MEANING] if verdict.verdict != "pass" else [])]
    page.fold("Notes", [], (f"- {_prose(note)}" for note in said), "notes")
    return page.text()


def _names(arms: Sequence[ArmVerdict]) -> str:
    names = ", ".join(_code(shown(arm.arm, 60)) for arm in arms[:SHOWN])
    return f"{names} and {len(arms) - SHOWN} more" if len(arms) > SHOWN else names


def _reasons(reasons: Sequence[Reason]) -> Iterator[str]:
    for reason in reasons[:SHOWN]:
        yield f"- {_prose(shown(reason.message, 600))} ({_code(shown(reason.code, 60))})"
    if (more := len(reasons) - SHOWN) > 0:
        yield f"- … {more} more reasons"
    for mend in words.mends(reasons)[:SHOWN]:
        yield f"- → {_code(shown(mend, 1000))}"


def _explained(group: words.Group) -> Iterator[str]:
    arm = group.arms[0]
    sets = ", ".join(_code(shown(name, 60)) for name in dict.fromkeys(one.set for one in group.arms) if name)
    name = f"**{words.WORDS[arm.verdict]}** {_names(group.arms)}{f' on {sets}' if sets else ''}"
    yield name + (", cannot be graded" if arm.verdict == "refused" else "")
    yield ""
    yield from _reasons(group.reasons)
    if group.named:
        yield "- The same for each of these arms, under its own name."
    if len(group.arms) == 1 and arm.graded:
        if arm.significance is not None:
            yield f"- {_prose(words.chance(arm.significance, arm.n))}"
        if arm.lost or arm.gained:
            yield f"- {_prose(words.movement(arm))}"
        for change in words.system_changes(arm, SHOWN):
            yield f"- {_prose(change)}"


def _bar(page: _Page, verdict: Verdict) -> None:
    """What is looser stands open, so that nobody overlooks it; what else changed is folded."""
    if verdict.target is None:
        return
    target = _code(shown(verdict.target, 80))
    if not verdict.bar:
        page.add(f"The bar is that of {target}.", "lines on the bar")
    if loose := words.loosened(verdict):
        page.add("\n".join(_loosened(loose, target)), "lists of what is looser")
    others = [change for change in verdict.bar if not change.looser]
    if others:
        changes = (f"- changed: {_prose(words.bar_change(change))}" for change in others)
        page.fold(f"What else of the bar changed ({len(others)})", [], changes, "changes of the bar")


def _loosened(loose: Mapping[str | None, Sequence[BarChange]], target: str) -> Iterator[str]:
    yield f"**The bar is looser** than that of {target}:"
    yield ""
    for changes in [*loose.values()][:SHOWN]:
        for change in changes[:SHOWN]:
            yield f"- looser: {_prose(words.bar_change(change))} ({_prose(words.why(change))})"
        if (more := len(changes) - SHOWN) > 0:
            yield f"- … {more} more of it"
    if (more := len(loose) - SHOWN) > 0:
        yield f"- … {more} more arms"


def _table(arms: Sequence[ArmVerdict]) -> Iterator[list[str]]:
    """Rows of cells: bars over all queries, a column a measure."""
    measures, graded = words.overall(arms)
    yield ["arm", "verdict", "n", *(_code(shown(measure, 60)) for measure in measures), "p95 ms"]
    for arm, grades in zip(arms, graded, strict=True):
        number = "–" if arm.n is None else shown(str(arm.n), 12)
        cells = [_graded(grades.get(measure)) for measure in measures]
        yield [_code(shown(arm.arm, 60)), arm.verdict, _figure(number), *cells, _figure(words.latency(arm))]


def _graded(grade: Graded | None) -> str:
    if grade is None:
        return "–"
    allowed = f" ({words.allowance(grade)})" if words.allowance(grade) else ""
    return words.against_bar(grade).replace("<", "&lt;") + allowed + ("" if grade.passed else " **!**")


def _figure(text: str) -> str:
    """A number of others: one of seven digits could be a commit."""
    return _code(text) if re.search(r"\d{7}", text) else text


def _row(cells: Sequence[str]) -> str:
    """A row of a table. Whether a backslash keeps a bar from ending its cell depends on what is before it, so that a
    bar that others wrote becomes a broken one."""
    return "| " + " | ".join(cell.replace("|", "¦") for cell in cells) + " |"


def _lost(page: _Page, arm: ArmVerdict, place: Place) -> None:
    summary = f"Lost queries of <code>{html.escape(shown(arm.arm, 60))}</code> ({len(arm.lost)})"
    lines = []
    for moved in arm.lost[:LOST]:
        texts = (shown(moved.query, 60), shown(moved.text, 160), shown(moved.document, 100))
        lines.append(f"- {' '.join(map(_code, texts))} {words.ranks(moved)}{words.unjudged(moved)}")
    if (more := len(arm.lost) - LOST) > 0:
        lines.append(f"- … {more} more: {_code(words.explain(arm, place))}")
    page.fold(summary, [], lines, "lost queries")


# Texts of others.


#: Words that mean nothing to Markdown or GitHub: letters, with a hyphen or an apostrophe inside; short numbers; a few
#: signs. A longer number, or letters from a to f alone, could be a commit.
_PLAIN = re.compile(
    r"""[("'“]?(?:(?:\d{1,3}-)?(?!\S*[a-f]{7})[^\W\d_]+(?:[-'’][^\W\d_]+)*|[-+−]?\d{1,6}(?:[.,]\d{1,6})?%?)[)"'”]?[.,;:]?[)]?"""
    r"|[→–—≤≥=<>…·]"
)


def _prose(text: str, inside: bool = False) -> str:
    """A sentence that may hold what others wrote: every word that could mean more than itself stands in code.

    `inside`: it does not begin a line, where a number would begin a list.
    """
    out: list[str] = []
    strange: list[str] = []

    def flush() -> None:
        if strange:
            joined = " ".join(strange)
            inner = joined.rstrip(".,;:") or joined
            out.append(_code(inner) + joined[len(inner) :])
            strange.clear()

    for word in text.split():
        if _PLAIN.fullmatch(word) and (inside or out or strange or not word[0].isdigit()):
            flush()
            out.append(html.escape(word, quote=False))
        else:
            strange.append(word)
    flush()
    return " ".join(out)


def _code(text: str) -> str:
    """A code span of one line, its fence longer than any run of backticks inside."""
    if not text:
        return ""
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") or (text[0] == text[-1] == " ") else ""
    return f"{fence}{pad}{text}{pad}{fence}"
