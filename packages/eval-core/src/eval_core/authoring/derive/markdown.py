"""A Markdown note read for its headings, its wiki links with the sentence around each, and its front matter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from eval_core.authoring.derive.wording import MARK, sentences


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading as it is written, markup included."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A wiki link.

    `target` is as it is written, without heading or block. `alias` is what is shown instead, empty where nothing is.
    `sentence` is what stands around it, `…` where the link itself is and other links as they are shown.
    """

    line: int
    target: str
    alias: str
    sentence: str


@dataclass(slots=True)
class Note:
    """What was found in a note. `names` are the title and aliases of its front matter, with their lines."""

    names: list[Heading] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)


_FENCE = re.compile(r"(?:[-*+]\s+|\d+[.)]\s+)?(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)$")
_ATX = re.compile(r" {0,3}#{1,6}(?:[ \t]+(?P<text>.*?))??(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?")
_QUOTE = re.compile(r" {0,3}(?:>\s?)+")
_DEFINITION = re.compile(r" {0,3}\[[^\]]+\]:\s")
_CELL = re.compile(r"(\[\[.*?\]\])|(?<!\\)\|")


@dataclass(slots=True)
class _Block:
    """Lines that are read as one text, and what they are: only a paragraph can turn out to be a heading."""

    lines: list[tuple[int, str]] = field(default_factory=list)
    paragraph: bool = True


def read_note(text: str) -> Note:
    """Read a note. Fenced and indented code, comments and link definitions are passed over; so are embeds (`![[…]]`),
    which show a note and do not speak of it."""
    note = Note()
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    body = _front_matter(lines, note)
    block = _Block()
    listed = False  # inside a list, what is indented is no code

    def flush() -> None:
        nonlocal block
        if block.lines:
            note.links += _links(block.lines)
        block = _Block()

    for number, line in _uncommented(_unfenced(lines, body)):
        quote = _QUOTE.match(line)
        inner = line[quote.end() :] if quote else line
        if not inner.strip():
            flush()
        elif heading := _ATX.match(inner):
            flush()
            if heading["text"]:
                note.headings.append(Heading(number, heading["text"]))
                note.links += _links([(number, heading["text"])])
            listed = False
        elif _UNDERLINE.match(inner) and block.lines and block.paragraph:
            note.headings.append(Heading(block.lines[0][0], " ".join(part for _, part in block.lines)))
            flush()
            listed = False
        elif not block.lines and not listed and re.match(r" {4}|\t", inner):
            continue
        elif _DEFINITION.match(inner):
            flush()
        elif inner.lstrip().startswith("|"):
            flush()
            for cell in _cells(inner):
                note.links += _links([(number, cell)])
        elif item := _ITEM.match(inner):
            flush()
            listed = True
            block = _Block([(number, inner[item.end() :].strip())], paragraph=False)
        else:
            if quote:
                block.paragraph = False
            if not block.lines and not inner.startswith((" ", "\t")):
                listed = False
            block.lines.append((number, inner.strip()))
    flush()
    return note


def _unfenced(lines: list[str], begin: int) -> Iterator[tuple[int, str]]:
    """The numbered lines outside of fenced code; where a fence stood, a blank one."""
    fence = ""
    for number, line in enumerate(lines[begin:], begin + 1):
        found = _FENCE.match(line.lstrip(" \t>"))
        if not fence and found:
            fence = found["marks"]
            yield number, ""
        elif fence:
            if found and found["marks"].startswith(fence) and not found["info"].strip():
                fence = ""
        else:
            yield number, line


def _uncommented(numbered: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines without `<!-- … -->`. One that is left open is a comment where it begins its line; elsewhere it is
    more likely to be shown than meant."""
    open_ = False
    for number, line in numbered:
        if open_:
            _, mark, line = line.partition("-->")
            if not mark:
                continue
            open_ = False
        line = re.sub(r"<!--.*?-->", "", line)
        open_ = line.lstrip().startswith("<!--")
        yield number, "" if open_ else line


def _cells(row: str) -> Iterator[str]:
    """The cells of a table's row; a bar inside a link divides none."""
    begin = 0
    for mark in _CELL.finditer(row):
        if mark[1] is None:
            yield row[begin : mark.start()].strip()
            begin = mark.end()
    yield row[begin:].strip()


# ------------------------------------------------------------- front matter

_KEY = re.compile(r"(title|alias|aliases)\s*:\s*(.*)$", re.IGNORECASE)


def _front_matter(lines: list[str], note: Note) -> int:
    """Take title and aliases; return how many lines the front matter is.

    A reading of one-line values and plain lists; what YAML can say beyond that is passed over.
    """
    if not lines or lines[0].rstrip() != "---":
        return 0
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), 0)
    key = ""
    for number, line in enumerate(lines[1:end], 2):
        if found := _KEY.match(line):
            key, value = found[1].lower(), found[2].strip()
            if key == "title":
                parts = [value]
            elif value.startswith("[") and value.endswith("]"):
                parts = value[1:-1].split(",")
            else:
                parts = value.split(",") if not value.startswith(('"', "'")) else [value]
            note.names += [Heading(number, name) for part in parts if (name := _scalar(part))]
        elif key in ("alias", "aliases") and (item := re.match(r"\s*-\s+(.*)$", line)):
            if name := _scalar(item[1]):
                note.names.append(Heading(number, name))
        elif line.strip() and not line.startswith((" ", "\t", "#")):
            key = ""
    return end + 1 if end else 0


def _scalar(value: str) -> str:
    """A YAML scalar as a text; block scalars, anchors and tables are none."""
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1].strip()
    return "" if value.startswith(("|", ">", "&", "*", "{", "[", "!")) else value.split(" #", 1)[0].strip()


# ------------------------------------------------------------- links

_LINK = re.compile(r"(?P<embed>!?)\[\[(?P<inside>[^\[\]]+)\]\]")
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(?P<code>.+?)(?<!`)\1(?!`)")
_MARK = re.compile("\ue000(\\d+)\ue001")


def _links(lines: list[tuple[int, str]]) -> Iterator[Link]:
    """The links of one block of text."""
    text, starts = "", []
    for _, line in lines:
        text += " " if text else ""
        starts.append(len(text))
        text += line
    if "[[" not in text:
        return
    text = re.sub("[\ue000\ue001]", " ", text)
    # What is code shows how a link is written, and is none.
    masked = _SPAN.sub(lambda span: span[0].replace("[", "\ue000").replace("]", "\ue000"), text)
    found = list(_LINK.finditer(masked))
    marked, done = "", 0
    for number, link in enumerate(found):
        marked += f"{text[done : link.start()]}\ue000{number}\ue001"
        done = link.end()
    marked += text[done:]
    around = {
        int(mark[1]): marked[begin:end]
        for begin, end in sentences(marked)
        for mark in _MARK.finditer(marked[begin:end])
    }
    shown = [_parts(link["inside"]) for link in found]
    for number, link in enumerate(found):
        target, alias = shown[number]
        if link["embed"] or not target:
            continue
        place = sum(1 for start in starts if start <= link.start()) - 1
        yield Link(lines[place][0], target, alias, _spoken(around.get(number, ""), number, found, shown))


def _parts(inside: str) -> tuple[str, str]:
    """Target and alias of `target#heading|alias`; a heading behind the alias is taken off too."""
    target, _, alias = inside.partition("|")
    target = re.sub(r"#.*$", "", target).strip().rstrip("\\").strip()
    return target, re.sub(r"(?<=\S)#(?=\w).*$", "", alias).strip()


def _spoken(sentence: str, own: int, found: list[re.Match[str]], shown: list[tuple[str, str]]) -> str:
    """A sentence without its own link, and with the others as a reader sees them; embeds are not seen in it."""

    def other(mark: re.Match[str]) -> str:
        number = int(mark[1])
        if number == own:
            return f" {MARK} "
        if found[number]["embed"]:
            return " "
        target, alias = shown[number]
        return alias or re.sub(r"[-_]+", " ", target.rstrip("/").rpartition("/")[2].removesuffix(".md"))

    # What was made bold or italic by itself leaves no marks behind.
    sentence = re.sub(rf"([*_]{{1,3}})(\ue000{own}\ue001)\1", r"\2", sentence)
    return " ".join(_MARK.sub(other, sentence).split())
