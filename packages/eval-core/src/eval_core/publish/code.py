"""Where a Markdown page surely is code, and where it only may be: what decides whether a mark is an example.

Sure is what every reading of CommonMark (https://spec.commonmark.org) agrees on, and nothing else:

- a block between fences of three or more ` or ~ that stand at columns 0 to 3, with nothing of it left of its fence;
- a span between runs of as many backticks on one line, where every run before it in its paragraph is paired as well,
  and no escape, tag, formula or cell of a table could have taken a backtick away.

In a quotation, behind a list's marker, within HTML, or in text indented further, a fence is no sure one. Where two
readings would part for the rest of the page, nothing is sure from there on. One pass: the time is linear in the page.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

# What may stand before a block's beginning: indentation, signs of quotations and lists. Wider than any grammar of them.
_LEAD = r"[ \t>0-9.)*+-]*+"
# A fence of backticks has none after it on its line; a fence of tildes may have anything.
_FENCE = re.compile(rf"(?P<lead>{_LEAD})(?P<fence>`{{3,}}+(?=[^`\r\n]*+(?:[\r\n]|\Z))|~{{3,}}+)")
_CLOSE = re.compile(r"(?P<lead>[ \t>]*+)(?P<fence>`{3,}+|~{3,}+)[ \t]*+(?=[\r\n]|\Z)")
_HTML = re.compile(rf"(?:\[\^[^\]\r\n]*+\]:)?{_LEAD}(?=<)")
# HTML in which Markdown is not read until its own end, blank lines or not.
_RAW = re.compile(
    r"<(?:(?P<tag>pre|script|style|textarea)\b|(?P<sign>!--|\?|!\[CDATA\[|![a-z]))", re.IGNORECASE
)
_RAW_ENDS = {"!--": "-->", "?": "?>", "![cdata[": "]]>"}
_FRONT = re.compile(r"\ufeff?(?P<sign>---|\+\+\+)[ \t]*+(?=[\r\n])")
_SIGN = re.compile(r"`++|\\(?=`)|[<$]")
_RUN = re.compile(r"`++")
# A comment that holds no backtick cannot take one away.
_COMMENT = re.compile(r"<!--[^`<>\r\n]*+(?<=--)>")


class Doubt(NamedTuple):
    """A part of a page that may be code, and why it is not surely code."""

    start: int
    end: int
    why: str


@dataclass(slots=True)
class Code:
    """The code of a page, as places in its text; each list in order and without overlaps."""

    sure: list[tuple[int, int]] = field(default_factory=list)
    doubtful: list[Doubt] = field(default_factory=list)
    #: Where a fence stands that is never closed, so that the rest of the page is code.
    unclosed: int | None = None

    def is_sure(self, place: int) -> bool:
        """Whether a place is code for every reader."""
        found = bisect_right(self.sure, place, key=lambda part: part[0])
        return found > 0 and place < self.sure[found - 1][1]

    def doubt(self, place: int) -> Doubt | None:
        """The doubtful part that a place is in."""
        found = bisect_right(self.doubtful, place, key=lambda part: part.start)
        return self.doubtful[found - 1] if found and place < self.doubtful[found - 1].end else None


def read(text: str) -> Code:
    """Read a page once, from its first line to its last."""
    reader = _Reader(text)
    reader.read()
    return reader.code


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.code = text, Code()
        self.lines = _lines(text)
        #: The line from which on readings part, counted from 1.
        self.lost: int | None = None
        #: What ends the HTML, or what stands above the page, in which no Markdown is read.
        self.raw: re.Pattern[str] | None = None
        #: Since the last blank line: HTML has begun, or a backtick has been seen that may open or close anything.
        self.html = self.loose = False
        #: A fence that may be one and has not been closed: its line, place and run, and whether it is in such HTML.
        self.open: tuple[int, int, str, bool] | None = None

    def read(self) -> None:
        at = 0
        if self.text.startswith("\ufeff"):
            # Some readers drop a byte order mark, and then see what follows it begin its line.
            self.lines[0] = (1, self.lines[0][1])
            self.lost = 1 if _FENCE.match(self.text, 1) else None
        front = _FRONT.match(self.text)
        if front is not None:
            self.raw = re.compile(rf"\A{re.escape(front['sign'])}[ \t]*\Z")
            at = 1
        while at < len(self.lines):
            at = self.line(at)
        self.shut(len(self.text))

    def line(self, at: int) -> int:
        """Read a line, or the block that begins with it; the line to go on with."""
        start, end = self.lines[at]
        if not self.text[start:end].strip(" \t"):
            self.html = self.loose = False
            return at + 1
        fence = _FENCE.match(self.text, start)
        if fence is not None and self.lost is None and not fence["lead"].lstrip(" \t").startswith(">"):
            # In a quotation a fence ends with it at the latest; any other decides how the page is read below.
            after = self.block(at, fence)
            if after is not None:
                return after
            self.lost = at + 1
        self.markup(start, end)
        if self.open is not None:
            if _closes(_CLOSE.match(self.text, start), self.open[2]):
                self.shut(end)
                self.loose = True
            return at + 1
        if fence is not None:
            self.open, self.loose = (at + 1, start, fence["fence"], self.raw is not None), True
            return at + 1
        self.spans(start, end)
        return at + 1

    def block(self, at: int, fence: re.Match[str]) -> int | None:
        """The line after the block that a fence opens; None where readings of it part."""
        if fence["lead"].strip(" \t") or self.raw is not None or self.html:
            return None
        column = _width(fence["lead"])
        for below in range(at + 1, len(self.lines)):
            start, end = self.lines[below]
            line = self.text[start:end]
            if not line.strip(" \t"):
                continue
            width = _width(line[: len(line) - len(line.lstrip(" \t"))])
            if width < column:
                # It ends here if it is in a list, and does not if it is in none.
                return None
            closing = _CLOSE.match(self.text, start)
            if _closes(closing, fence["fence"]) and closing is not None and ">" not in closing["lead"]:
                if width <= max(3, column):
                    return self.closed(at, below + 1, end, column)
                if column:
                    return None
        if column <= 3:
            self.code.unclosed = fence.start("fence")
        return self.closed(at, len(self.lines), len(self.text), column)

    def closed(self, at: int, after: int, end: int, column: int) -> int:
        """Note a block from one line to before another."""
        start = self.lines[at][0]
        self.shut(start)
        self.loose = column > 3
        if column > 3:
            self.code.doubtful.append(
                Doubt(start, end, f"the code fence of line {at + 1} is indented by {column}")
            )
        else:
            self.code.sure.append((start, end))
        return after

    def shut(self, end: int) -> None:
        """End what a doubtful fence has opened."""
        if self.open is None:
            return
        line, start, *_ = self.open
        why = f"the code fence of line {line} is in a quotation, a list or HTML, or is indented more than its block"
        if self.lost is not None and self.lost < line:
            why = f"the code fence of line {self.lost} leaves open what is code below it"
        if start < end:
            self.code.doubtful.append(Doubt(start, end, why))
        self.open = None

    def markup(self, start: int, end: int) -> None:
        """See whether HTML begins or ends on a line."""
        if self.raw is None and (lead := _HTML.match(self.text, start, end)) is not None:
            self.html = True
            raw = _RAW.match(self.text, lead.end(), end)
            if raw is None:
                return
            sign = (raw["sign"] or "").lower()
            ending = f"</{raw['tag']}>" if raw["tag"] else _RAW_ENDS.get(sign, ">")
            self.raw, start = re.compile(re.escape(ending), re.IGNORECASE), raw.end()
        if self.raw is not None:
            self.html = True
            if self.raw.search(self.text[start:end]):
                self.raw = None
                if self.open is not None and self.open[3]:
                    self.shut(end)

    def spans(self, start: int, end: int) -> None:
        """The code spans of a line: sure ones up to the first doubt, and then what may be some."""
        place = start
        while self.lost is None and not self.loose and not self.html:
            sign = _SIGN.search(self.text, place, end)
            if sign is None:
                return
            comment = _COMMENT.match(self.text, sign.start(), end) if sign[0] == "<" else None
            ending = comment.end() if comment else _same(self.text, sign, end)
            # A cell of a table ends at its |, within backticks as well.
            if ending is None or (comment is None and self.text.find("|", sign.end(), ending) >= 0):
                self.loose, place = True, sign.start()
            else:
                place = ending
                if comment is None:
                    self.code.sure.append((sign.start(), ending))
        why = "a backtick of its paragraph has no partner on its line, or an escape, a tag, $ or | is among them"
        if self.lost is not None:
            why = f"the code fence of line {self.lost} leaves open what is code below it"
        elif self.html:
            why = "it is in HTML, where backticks are text"
        runs = list(_RUN.finditer(self.text, place, end))
        partner: dict[int, int] = {}
        last: dict[int, int] = {}
        for index in range(len(runs) - 1, -1, -1):
            length = len(runs[index][0])
            if length in last:
                partner[index] = last[length]
            last[length] = index
        index = 0
        while index < len(runs):
            other = partner.get(index, index)
            if other != index:
                self.code.doubtful.append(Doubt(runs[index].start(), runs[other].end(), why))
            index = other + 1


def _lines(text: str) -> list[tuple[int, int]]:
    """Where lines begin and end, their line ends left out: CommonMark's, and not Unicode's."""
    lines, at = [], 0
    for found in re.finditer(r"\r\n|\n|\r", text):
        lines.append((at, found.start()))
        at = found.end()
    return [*lines, (at, len(text))]


def _closes(closing: re.Match[str] | None, fence: str) -> bool:
    return closing is not None and closing["fence"][0] == fence[0] and len(closing["fence"]) >= len(fence)


def _width(lead: str) -> int:
    return len(lead.expandtabs(4))


def _same(text: str, run: re.Match[str], end: int) -> int | None:
    """The end of the next run of as many backticks; None where there is none, or this is no run."""
    if run[0][0] != "`":
        return None
    return next((m.end() for m in _RUN.finditer(text, run.end(), end) if len(m[0]) == len(run[0])), None)
