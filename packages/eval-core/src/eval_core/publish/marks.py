"""Marks in a page: the places of Markdown or HTML that hold a measured number or a table of them.

    <!-- metric memory-bm25 recall@10 -->0.891<!-- /metric -->             a number, three decimals
    <!-- metric memory-bm25[paraphrase] recall@10 .1% -->92.3%<!-- /metric -->   of a category, in another form
    <!-- metric from:gold.category_accuracy -->94.4<!-- /metric -->         out of another repository's file
    <!-- metrics memory-bm25 code-bm25: recall@10 mrr -->                   a table, on lines of its own
    <!-- /metrics -->

Reading is lexical, pure and linear in the page. What is surely code in Markdown (`eval_core.publish.code`) is an
example and no mark. Whatever else looks like a mark is one, or a fault: a claim must not escape by a typing error, nor
by standing where only some readers see code.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from eval_core.errors import Fault
from eval_core.publish import code

#: Decimals of a number where the mark does not say.
DEFAULT_FORM = ".3f"

_FORM = re.compile(r"\.[0-9][f%]")
_SUBJECT = r"[a-z0-9][a-z0-9._-]*(?:\[[^\]\r\n]+\])?"
_NUMBER = re.compile(rf"({_SUBJECT})[ \t]+(\S+)(?:[ \t]+(\S+))?")
_FROM = re.compile(r'from:((?:"[^"\r\n]*"|[^\s"])+)(?:[ \t]+(\S+))?')
_TABLE = re.compile(rf"({_SUBJECT}(?:[ \t]+{_SUBJECT})*)[ \t]*:[ \t]+(\S.*)")
# Whatever a browser hides, or a hand meant to be hidden, and the first word in it.
_LIKE = re.compile(r"<[!?](?P<lead>[^\w<>]*+)(?P<word>[^\W\d_]++)")
_TAG = re.compile(r"<!--[ \t]*+(?P<slash>/?)(?P<name>metrics?)(?=[ \t]|-->)")
_BLANK = re.compile(r"[ \t]*+")
_LINE_END = re.compile(r"\r\n|\n|\r")

_HELP = "write  metric ARM MEASURE [FORM]  or  metric from:KEY [FORM]"
_HELP_TABLE = "write  metrics ARM [ARM…]: MEASURE [MEASURE…] [FORM]"
_HELP_TAG = (
    "looks like a mark and is not one; write  <!-- metric … -->  and  <!-- /metric -->, in small letters and on one "
    "line, or begin a comment that is not a mark with another word"
)
_HELP_CODE = (
    "write a claim outside of code; and an example in a block whose ``` begin and end it at the margin, after a blank "
    "line, or in a `span` in a paragraph of plain text"
)


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
    #: The line end that it uses: that of its first line.
    newline: str = "\n"

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
    newline = _LINE_END.search(text)
    faults = tuple(sorted(reader.faults, key=_place))
    return Page(path, text, tuple(reader.marks), faults, newline[0] if newline else "\n")


def _place(fault: Fault) -> int:
    return fault.line or 0


class _Reader:
    """Walks the tags of one page, pairing what opens with what closes."""

    def __init__(self, path: Path, text: str, markdown: bool) -> None:
        self.path, self.text, self.markdown = path, text, markdown
        self.code = code.read(text) if markdown else code.Code()
        self.starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
        self._begins: dict[int, int] = {}
        self._found: dict[str, int] = {}
        self.marks: list[Mark] = []
        self.faults: list[Fault] = []
        self.open: _Tag | None = None

    def line(self, place: int) -> int:
        return bisect_right(self.starts, place)

    def fault(self, place: int, message: str) -> None:
        self.faults.append(Fault(message, code="mark-malformed", file=self.path, line=self.line(place)))

    def begins(self, line: int) -> int:
        """Where the first character of a line stands that is no blank; looked for once."""
        if line not in self._begins:
            blank = _BLANK.match(self.text, self.starts[line - 1])
            self._begins[line] = blank.end() if blank else 0
        return self._begins[line]

    def next(self, sign: str, place: int) -> int:
        """Where a sign stands next; the end of the page where it does not. Asked in order, each part is read once."""
        if self._found.get(sign, -1) < place:
            found = self.text.find(sign, place)
            self._found[sign] = found if found >= 0 else len(self.text)
        return self._found[sign]

    def tags(self) -> Iterator[_Tag]:
        """The comments that open or close a mark, outside of code."""
        told = False
        for like in _LIKE.finditer(self.text):
            if not _near(like["word"], "/" in like["lead"]):
                continue
            start = like.start()
            if self.code.is_sure(start):
                if not told and self.code.unclosed is not None and start > self.code.unclosed:
                    # It runs to the end of the page, and so would hide every claim there.
                    never = "this code fence is never closed, so that the marks after it would be overlooked"
                    self.fault(self.code.unclosed, never)
                    told = True
            elif (doubt := self.code.doubt(start)) is not None:
                self.fault(start, f"it is in doubt whether this mark is code: {doubt.why}; {_HELP_CODE}")
            elif (tag := self._tag(start)) is not None:
                yield tag

    def _tag(self, start: int) -> _Tag | None:
        """The mark's comment that begins at a place, or None and a fault."""
        tag = _TAG.match(self.text, start)
        if tag is None:
            self.fault(start, f"{self.text[start : start + 40].split(chr(10))[0]!r} {_HELP_TAG}")
            return None
        line = self.line(start)
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        close = self.next("-->", tag.end())
        if close >= end or self.next("<!--", tag.end()) < close:
            self.fault(start, "this mark has no end on its line; close it with -->")
            return None
        rest = self.text[tag.end() : close].strip()
        return _Tag(tag["slash"] == "/", tag["name"], rest, start, close + len("-->"))

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
            first, last = self.line(opened.start), self.line(tag.start)
            if not self.markdown:
                self.fault(opened.start, f"{written}: a table is Markdown; in HTML, mark each number")
                return
            alone = self.begins(first) == opened.start and self.begins(last) == tag.start
            if not alone or not re.match(r"[ \t]*+[\r\n]", body):
                self.fault(opened.start, f"{written}: a table's marks stand on lines of their own")
                return
            indent = self.text[self.starts[first - 1] : opened.start]
        elif re.search(r"[\r\n]", body):
            self.fault(opened.start, f"{written}: a number's mark closes on the line where it opens")
            return
        self.marks.append(Mark(target, start, end, self.line(opened.start), indent))


@lru_cache(maxsize=1024)
def _near(word: str, closes: bool) -> bool:
    """Whether a comment's first word is a mark's name, or one by a slip of the hand; two slips where it closes."""
    given = word.lower()
    return any(
        abs(len(given) - len(name)) <= 2 and _slips(given, name) <= (2 if closes else 1)
        for name in ("metric", "metrics")
    )


def _slips(given: str, name: str) -> int:
    """How many letters were left out, put in, mistaken or changed with their neighbour (optimal string alignment)."""
    before, row = [0] * (len(name) + 1), list(range(len(name) + 1))
    for i, letter in enumerate(given, 1):
        older, before, row = before, row, [i]
        for j, wanted in enumerate(name, 1):
            least = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == name[j - 2] and given[i - 2] == wanted:
                least = min(least, older[j - 2] + 1)
            row.append(least)
    return row[-1]


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
    return f"{form!r} is not a form of a number; write .3f (decimals) or .1% (percent)"


def _way(key: str) -> tuple[str, ...] | None:
    """`gold.runs[0]."a.b"` as the names and places that it goes by; None where it is not written so."""
    part = r'"[^"]*"|[^\s."\[\]]+'
    if not re.fullmatch(rf"(?:{part})(?:\.(?:{part})|\[[0-9]{{1,9}}\])*", key):
        return None
    return tuple(found.strip('"') for found in re.findall(r'"[^"]*"|[^\s."\[\]]+', key))
