"""`eval-core import trec`: the topics of a test collection with its judgements (qrels)."""

from __future__ import annotations

import html
import html.entities
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from eval_core.errors import Faults, Misuse
from eval_core.imports.importer import CONSEQUENCE, Question, Reading
from eval_core.imports.tables import LONGEST, read_bytes, utf8
from eval_core.scoring.readers import read_qrels
from eval_core.scoring.readers.source import Listing
from eval_core.sets import encode_id

SUMMARY = "TREC topics (<top><num><title>, or id TAB text a line) with their qrels."

OPTIONS: Sequence[click.Option] = [
    click.Option(
        ["--qrels"],
        type=click.Path(path_type=Path),
        required=True,
        help="The judgements: query 0 document grade, or BEIR's three columns.",
    )
]

_TAG = re.compile(r"<(/?)(num|title|desc|narr)>", re.IGNORECASE)
#: With its semicolon: "AT&T" and "?a=1&copy=2" are written as they are.
_ENTITY = re.compile(r"&(#[0-9]+;|#[xX][0-9a-fA-F]+;|\w+;)")
_LABEL = re.compile(r"\s*(number|topic)\s*:", re.IGNORECASE)


def read(path: Path, *, qrels: Path) -> Reading:
    """Read topics and their judgements. A topic without judgement has no expected document.

    Raises:
        Misuse, Faults: a file cannot be read, or is not of these forms; each fault at its line.
    """
    fault = Listing(path, CONSEQUENCE)
    text = utf8(read_bytes(path, "topics"), path)
    dropped: dict[str, int] = {}
    first = text.lstrip()
    topics = list(_sgml(text, fault, dropped) if first[:1] == "<" else _lines(text, fault))
    found: dict[str, tuple[int, str]] = {}
    for line, name, title in topics:
        if name in found:
            fault(line, f"topic {name!r} again (first at line {found[name][0]})")
            continue
        found[name] = line, title
        if not title:
            fault(line, f"topic {name!r} has no text")
    fault.stop()
    if not found:
        what = "holds no topic; expected <top> <num> … <title> … </top>, or id TAB text a line"
        raise Misuse("file-malformed", what, file=path)
    try:
        judged = read_qrels(qrels)
    except Faults as error:
        raise Faults(error.faults, consequence=CONSEQUENCE) from error
    if strangers := len(judged.keys() - found.keys()):
        dropped["judged query without a topic"] = strangers
    questions = [
        Question(encode_id(name), title, judged.get(name, {}), line) for name, (line, title) in found.items()
    ]
    return Reading(questions, {"qrels": str(qrels)}, dropped)


def _lines(text: str, fault: Listing) -> Iterator[tuple[int, str, str]]:
    """Topics a line: id, tab, text."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        name, tab, title = line.partition("\t")
        if tab and name.strip():
            yield number, name.strip(), " ".join(title.split())
        else:
            fault(number, f"expected id TAB text, found {line.strip()[:60]!r}")


def _sgml(text: str, fault: Listing, dropped: dict[str, int]) -> Iterator[tuple[int, str, str]]:
    """Topics between <top> and </top>; a field ends where the next tag begins, with an end tag or without."""
    for match in re.finditer(r"(<top>|\A)(.*?)(?=<top>|\Z)", text, re.IGNORECASE | re.DOTALL):
        line = text.count("\n", 0, match.start()) + 1
        body, *rest = re.split("</top>", match[2], maxsplit=1, flags=re.IGNORECASE)
        if not match[1]:
            body, rest = "", [match[2]]
        elif not rest:
            fault(line, "topic has no </top>")
            continue
        if stray := _TAG.search(rest[0]):
            line = text.count("\n", 0, match.end() - len(rest[0]) + stray.start()) + 1
            fault(line, f"{stray[0]} is in no topic; begin each with <top>")
        if not match[1]:
            continue
        if len(body) > LONGEST:
            fault(line, f"a topic of more than {LONGEST >> 20} MB")
            continue
        parts: dict[str, str] = {}
        tags = list(_TAG.finditer(body))
        for tag, after in zip(tags, [*(tag.start() for tag in tags[1:]), len(body)], strict=True):
            name = tag[2].lower()
            if not tag[1] and name in parts:
                again = line + body.count("\n", 0, tag.start())
                fault(
                    again, f"topic {parts.get('num', '')!r} has a second <{name}>; end each topic with </top>"
                )
            elif not tag[1]:
                written = _ENTITY.sub(_character, body[tag.end() : after])
                parts[name] = " ".join(_LABEL.sub("", written, 1).split())
        for name in ("desc", "narr"):
            if parts.get(name):
                dropped[name] = dropped.get(name, 0) + 1
        if parts.get("num"):
            yield line, parts["num"], parts.get("title", "")
        else:
            fault(line, "topic has no <num>")


def _character(entity: re.Match[str]) -> str:
    """What an entity stands for; itself where no such is known."""
    name = entity[1]
    return html.unescape(entity[0]) if name[0] == "#" or name in html.entities.html5 else entity[0]
