"""Marks in a page: the places of Markdown or HTML that hold a measured number or a table of them.

    <!-- metric memory-bm25 recall@10 -->0.891<!-- /metric -->             a number, three decimals
    <!-- metric memory-bm25[paraphrase] recall@10 .1% -->92.3%<!-- /metric -->   of a category, in another form
    <!-- metric from:gold.category_accuracy -->94.4<!-- /metric -->         out of another repository's file
    <!-- metrics memory-bm25 code-bm25: recall@10 mrr -->                   a table, on lines of its own
    <!-- /metrics -->

Reading is lexical and pure. What a reader of the page sees as code, a fenced block or a span on one line, is an
example and no mark. Whatever else looks like a mark and is none is a fault: a claim must not escape by a typing error.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from eval_core.errors import Fault

#: Decimals of a number where the mark does not say.
DEFAULT_FORM = ".3f"

_FORM = re.compile(r"\.[0-9][f%]")
_SUBJECT = r"[a-z0-9][a-z0-9._-]*(?:\[[^\]\r\n]+\])?"
_NUMBER = re.compile(rf"({_SUBJECT})[ \t]+(\S+)(?:[ \t]+(\S+))?")
_FROM = re.compile(r'from:((?:"[^"\r\n]*"|[^\s"])+)(?:[ \t]+(\S+))?')
_TABLE = re.compile(rf"({_SUBJECT}(?:[ \t]+{_SUBJECT})*)[ \t]*:[ \t]+(\S.*)")
# From left to right, what comes first counts: the line that opens a fenced block (in a quotation or a list as well, and
# not with a backtick after backticks), a comment, a run of backticks, the beginning of a comment that never ends.
_TOKEN = re.compile(
    r"(?:(?<=[\r\n])|\A)[ \t>]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*[ \t>]*(?P<fence>`{3,}(?![^\r\n]*`)|~{3,})[^\r\n]*"
    r"|<!--(?P<comment>.*?)-->|(?P<span>`+)|(?P<open><!--)",
    re.DOTALL,
)
_TAG = re.compile(r"\s*(/?)(metrics?)(?=\s|$)(.*)", re.DOTALL)
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|$)")

_HELP = "write  metric ARM MEASURE [FORM]  or  metric from:KEY [FORM]"
_HELP_TABLE = "write  metrics ARM [ARM…]: MEASURE [MEASURE…] [FORM]"


@dataclass(frozen=True, slots=True)
class Number:
    """One number: a measure of an arm or of one of its categories."""

    arm: str
    category: str | None
    measure: str
    form: str | None

    @property
    def subject(self) -> str:
        """The arm, with its category."""
        return self.arm if self.category is None else f"{self.arm}[{self.category}]"

    def __str__(self) -> str:
        return f"{self.subject} {self.measure}"


@dataclass(frozen=True, slots=True)
class Asserted:
    """One value out of a file: the names and places on the way to it."""

    key: str
    way: tuple[str, ...]
    form: str | None

    def __str__(self) -> str:
        return f"from:{self.key}"


@dataclass(frozen=True, slots=True)
class Table:
    """A row an arm, a column a measure."""

    cells: tuple[tuple[Number, ...], ...]

    def __str__(self) -> str:
        return (
            f"{' '.join(row[0].subject for row in self.cells)}: {' '.join(c.measure for c in self.cells[0])}"
        )


Target = Number | Asserted | Table


@dataclass(frozen=True, slots=True)
class Mark:
    """A place of a page, `start` to `end` in its text, and what belongs there. `line` counts from 1; `indent` is what
    stands before a table's mark on its line."""

    target: Target
    start: int
    end: int
    line: int
    indent: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A page as it was read, line ends included, with its marks and what is wrong with them."""

    path: Path
    text: str
    marks: tuple[Mark, ...]
    faults: tuple[Fault, ...]

    @property
    def newline(self) -> str:
        """The line end that it uses: that of its first line."""
        found = re.search(r"\r\n|\n|\r", self.text)
        return found[0] if found else "\n"

    def written(self, mark: Mark) -> str:
        """What stands in a mark now, without the white space around it."""
        return self.text[mark.start : mark.end].strip()


@dataclass(frozen=True, slots=True)
class _Tag:
    closes: bool
    name: str
    rest: str
    start: int
    end: int


def find(path: Path, text: str) -> Page:
    """Find the marks of a page."""
    markdown = path.suffix.lower() not in (".html", ".htm")
    reader = _Reader(path, text, markdown)
    for tag in reader.tags():
        reader.take(tag)
    reader.finish()
    return Page(path, text, tuple(reader.marks), tuple(sorted(reader.faults, key=_place)))


def _place(fault: Fault) -> int:
    return int(fault.where.rpartition(":")[2])


class _Reader:
    """Walks the tags of one page, pairing what opens with what closes."""

    def __init__(self, path: Path, text: str, markdown: bool) -> None:
        self.path, self.text, self.markdown = path, text, markdown
        self.starts = [match.start() for match in _LINE.finditer(text)]
        self.marks: list[Mark] = []
        self.faults: list[Fault] = []
        self.open: _Tag | None = None

    def line(self, place: int) -> int:
        return bisect_right(self.starts, place)

    def fault(self, place: int, message: str) -> None:
        self.faults.append(Fault(f"{self.path}:{self.line(place)}", message, "mark-malformed"))

    def tags(self) -> Iterator[_Tag]:
        """The comments that open or close a mark, outside code."""
        at = 0
        while (token := _TOKEN.search(self.text, at)) is not None:
            at = token.end()
            if token["fence"] is not None:
                at = self._after_block(token) if self.markdown else token.end("fence")
            elif token["span"] is not None:
                at = self._after_span(token) if self.markdown else at
            elif token["open"] is not None:
                if _TAG.match(self.text[at : at + 80]):
                    self.fault(token.start(), "this mark has no end; close it with -->")
            elif (tag := _TAG.fullmatch(token["comment"])) is not None:
                yield _Tag(tag[1] == "/", tag[2], tag[3].strip(), token.start(), at)

    def _after_block(self, token: re.Match[str]) -> int:
        """The place after a fenced block: a line of its own closes it, with at least as many of the same sign."""
        fence = token["fence"]
        closing = rf"[\r\n][ \t>]*{fence[0]}{{{len(fence)},}}[ \t]*(?=[\r\n]|\Z)"
        closed = re.compile(closing).search(self.text, token.end())
        if closed is not None:
            return closed.end()
        if re.search(r"<!--\s*/?metrics?\s", self.text[token.end() :]):
            # In Markdown it runs to the end of the page, and so would hide every claim there.
            told = "this code fence is never closed, so that the marks after it would be overlooked"
            self.fault(token.start("fence"), told)
        return len(self.text)

    def _after_span(self, token: re.Match[str]) -> int:
        """The place after a code span that begins here and ends on its line, or after its backticks where none does."""
        run, end = token["span"], re.compile(r"[\r\n]|\Z").search(self.text, token.end())
        rest = self.text[token.end() : end.start() if end else len(self.text)]
        close = re.search(rf"(?<!`){run}(?!`)", rest)
        return token.end() + close.end() if close else token.end()

    def take(self, tag: _Tag) -> None:
        """Take the next tag in order."""
        if tag.closes:
            opened, self.open = self.open, None
            if opened is None:
                self.fault(tag.start, f"<!-- /{tag.name} --> closes nothing")
            elif tag.rest:
                self.fault(tag.start, f"<!-- /{tag.name} {tag.rest} -->: write  /{tag.name}  alone")
            elif opened.name != tag.name:
                where = self.line(opened.start)
                self.fault(
                    tag.start,
                    f"<!-- /{tag.name} --> closes the {opened.name} of line {where}; write  /{opened.name}",
                )
            else:
                self._close(opened, tag)
            return
        if self.open is not None:
            self._unclosed(f", and another opens on line {self.line(tag.start)}")
        self.open = tag

    def finish(self) -> None:
        """Take the end of the page."""
        if self.open is not None:
            self._unclosed("")

    def _unclosed(self, more: str) -> None:
        if self.open is not None:
            name = self.open.name
            self.fault(
                self.open.start, f"<!-- {name} {self.open.rest} --> is not closed by <!-- /{name} -->{more}"
            )

    def _close(self, opened: _Tag, tag: _Tag) -> None:
        written = f"<!-- {opened.name} {opened.rest} -->"
        target = parse(opened.name, opened.rest)
        if isinstance(target, str):
            self.fault(opened.start, f"{written}: {target}")
            return
        start, end, indent = opened.end, tag.start, ""
        body = self.text[start:end]
        if isinstance(target, Table):
            indent = self.text[self.starts[self.line(opened.start) - 1] : opened.start]
            below = self.text[self.starts[self.line(tag.start) - 1] : tag.start]
            if not self.markdown:
                self.fault(opened.start, f"{written}: a table is Markdown; in HTML, mark each number")
                return
            if indent.strip() or below.strip() or not re.match(r"[ \t]*[\r\n]", body):
                self.fault(opened.start, f"{written}: a table's marks stand on lines of their own")
                return
        elif re.search(r"[\r\n]", body):
            self.fault(opened.start, f"{written}: a number's mark closes on the line where it opens")
            return
        self.marks.append(Mark(target, start, end, self.line(opened.start), indent))


def parse(name: str, rest: str) -> Target | str:
    """What a mark asks for, or what is wrong with how it asks."""
    if name == "metrics":
        return _table(rest)
    if rest.startswith("from:"):
        match = _FROM.fullmatch(rest)
        way = _way(match[1]) if match else None
        if match is None or way is None:
            return _HELP
        return _bad_form(match[2]) or Asserted(match[1], way, match[2])
    match = _NUMBER.fullmatch(rest)
    if match is None:
        return _HELP
    return _bad_form(match[3]) or _number(match[1], match[2], match[3])


def _number(subject: str, measure: str, form: str | None) -> Number:
    arm, bracket, category = subject.partition("[")
    return Number(arm, category.removesuffix("]") if bracket else None, measure, form)


def _table(rest: str) -> Table | str:
    match = _TABLE.fullmatch(rest)
    if match is None:
        return _HELP_TABLE
    measures = match[2].split()
    form = measures.pop() if measures[-1].startswith(".") else None
    if not measures:
        return _HELP_TABLE
    subjects = re.findall(_SUBJECT, match[1])
    cells = tuple(tuple(_number(subject, measure, form) for measure in measures) for subject in subjects)
    return _bad_form(form) or Table(cells)


def _bad_form(form: str | None) -> str:
    if form is None or _FORM.fullmatch(form):
        return ""
    return f"{form!r} is no form of a number; write .3f (decimals) or .1% (percent)"


def _way(key: str) -> tuple[str, ...] | None:
    """`gold.runs[0]."a.b"` as the names and places that it goes by; None where it is not written so."""
    part = r'"[^"]*"|[^\s."\[\]]+'
    if not re.fullmatch(rf"(?:{part})(?:\.(?:{part})|\[[0-9]{{1,9}}\])*", key):
        return None
    return tuple(found.strip('"') for found in re.findall(r'"[^"]*"|[^\s."\[\]]+', key))
