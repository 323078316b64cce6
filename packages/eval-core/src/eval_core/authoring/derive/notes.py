"""Drafts from a folder of Markdown notes: what a heading promises its note tells, what a link says of its target."""

from __future__ import annotations

import functools
import posixpath
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval_core.authoring.derive.drafts import Draft, Origin, dropped_words, is_apart, merged, spread
from eval_core.authoring.derive.markdown import Heading, Link, Note, read_note
from eval_core.authoring.derive.result import Drafted, asked, samples
from eval_core.authoring.derive.wording import MARK, behind, draft, plain, refusal
from eval_core.authoring.sheet import claim_sheet, write_sheet
from eval_core.backend import Document
from eval_core.errors import CouldNot, Refused
from eval_core.reconstruct import folder
from eval_core.reconstruct.selection import Tally, documents
from eval_core.sets.definition import Folder
from eval_core.sets.folder import claim, seen_from, set_name, write_set
from eval_core.sets.words import words

#: What notes are called.
INCLUDE = ("**/*.md", "**/*.markdown")
_ENDINGS = (".md", ".markdown")

#: Words that a heading or an alias must have; a sentence must have more.
FEWEST = 2

#: Headings that say what part of a text it is and not what it is about.
_HEADINGS = (
    "about this note|additional information|additional notes|additional resources|advanced usage|basic usage|"
    "before you begin|best practices|breaking changes|code samples|common issues|example usage|external links|"
    "external resources|for example|frequently asked questions|further reading|future work|general notes|getting help|"
    "getting started|how it works|how to use|how to use it|in this section|key features|key points|known issues|"
    "known limitations|learn more|more information|more resources|my notes|next steps|open questions|other notes|"
    "other resources|quick start|read more|related links|related notes|related pages|related reading|release notes|"
    "search terms|see also|side notes|table of contents|tips and tricks|to do|to dos|usage notes|useful links|"
    "what is this|what next|what s next|work in progress"
)
GENERIC = frozenset(_HEADINGS.split("|"))


@dataclass(slots=True)
class _Gathered:
    drafts: list[Draft] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    places: dict[str, int] = field(default_factory=dict)


def derive_notes(
    path: Path, out: Path, *, name: str | None = None, limit: int | None = None, sheet: Path | None = None
) -> Drafted:
    """Write a drafted set about the Markdown notes of a folder; their ids are those that reconstructing the set gives.

    A heading, or a title or alias in the front matter, asks for its own note. A wiki link asks for its target by its
    alias or by the sentence that it begins; the note that holds that sentence is excluded from the answer, since it
    would be found by it and is not what is asked for.

    Args:
        path: the folder. It is read as it is now: its set is not pinned.
        out: the dataset folder to be.
        name: of the set and of its source; made of the folder's where it is not given.
        limit: how many drafts to keep, evenly spread; all where it is not given.
        sheet: where the drafts go in place of the set's queries: a CSV that is not there yet.

    Raises:
        Refused: there is nothing to draft from.
        Misuse: `out` is taken, the name is none, or there is no note.
        CouldNot: the folder cannot be read, or `out` not written.
    """
    place = claim(out)
    if sheet is not None:
        claim_sheet(sheet)
    name = set_name(name, path)
    table: dict[str, Any] = {
        "name": name,
        "type": "dir",
        "path": seen_from(place, path),
        "include": INCLUDE,
    }
    source = Folder.model_validate(table)
    tally = Tally()
    try:
        found = list(documents(source, folder.entries(source, place, path, (place,)), tally))
    except CouldNot as error:
        raise error.but(mend="give its place: --path DIR") from error
    gathered = _Gathered(places={document.title: number for number, document in enumerate(found)})
    known = _Known({document.title: document.id for document in found})
    notes = [(document, read_note(document.text)) for document in found]
    for document, note in notes:
        known.name(document, note)
    for document, note in notes:
        if is_apart(document.title):
            gathered.dropped["apart"] += len(note.headings) + len(note.names) + len(note.links)
        else:
            _take(document, note, known, gathered)
    drafts, many = merged(gathered.drafts)
    dropped = {key: gathered.dropped[key] for key in ("short", "generic", "cut", "listed", "named", "apart")}
    dropped |= {"many": many, "unresolved": gathered.dropped["unresolved"]}
    if not drafts:
        raise Refused(
            "no-drafts",
            f"there is nothing to draft from in {tally.documents:,} notes: no heading, title or link that says "
            f"something  ({', '.join(dropped_words(dropped)) or 'there are none'})",
            file=path,
        )
    drafts.sort(key=functools.partial(_place, gathered.places))
    kept = spread(drafts, limit)
    description = f"Drafts from headings and links of {name}; to be put in other words and reviewed."
    write_set(
        place,
        {"name": name, "version": "0", "description": description, "kind": "notes", "source": table},
        *asked(kept if sheet is None else ()),
    )
    if sheet is not None:
        write_sheet(sheet, kept, {document.id: document.text for document in found})
    return Drafted(
        name=name,
        folder=str(out),
        documents=tally.documents,
        queries=len(kept),
        sources=dict(sorted(Counter(one.source for one in kept).items())),
        sheet=None if sheet is None else str(sheet),
        found=len(drafts),
        dropped=dropped,
        samples=samples(kept),
    )


def _place(places: Mapping[str, int], one: Draft) -> tuple[int, int, str, str]:
    return places[one.origins[0].path], one.origins[0].line, one.source, one.text


# ------------------------------------------------------------- notes to drafts


def _take(document: Document, note: Note, known: _Known, gathered: _Gathered) -> None:
    """Draft from one note. A heading that is the name of another note is for that note to ask for."""
    for source, headings in (("heading", note.headings), ("title", note.names)):
        for heading in headings:
            text = _heading(heading)
            named = known.named(text)
            if _name(text) == _name(_stem(document.title)) or (named and document.id not in named):
                gathered.dropped["named"] += 1
            elif why := _refused(text):
                gathered.dropped[why] += 1
            else:
                origin = Origin(document.title, heading.line, "")
                gathered.drafts.append(Draft(text, source, source, (document.id,), (origin,)))
    drafted: set[int] = set()
    for link in note.links:
        beside = [_shown(other) for other in note.links if other.line == link.line and other is not link]
        if link.line in drafted:
            gathered.dropped["listed"] += 1
        elif _link(link, beside, document, known, gathered):
            drafted.add(link.line)


def _shown(link: Link) -> str:
    """A link as a reader of the note sees it."""
    return link.alias or re.sub(r"[-_]+", " ", _stem(link.target))


def _stem(path: str) -> str:
    return posixpath.splitext(posixpath.basename(path))[0]


def _name(text: str) -> tuple[str, ...]:
    """What makes two names the same, however they are joined."""
    return tuple(part for word in words(text) for part in word.split("_") if part)


def _heading(heading: Heading) -> str:
    """A heading without markup, number, anchor and colon."""
    text = re.sub(r"\[\[(?:[^\[\]|]*\|)?([^\[\]]*)\]\]", r"\1", heading.text)
    text = re.sub(r"\s+(?:\{#[^{}]*\}|\^[\w-]+)\s*$", "", plain(text))
    text = re.sub(
        r"^(?:(?:phase|step|part|chapter|stage)\s+(?:\d+|[ivx]+)\s*[:.)–—-]\s*)",
        "",
        text,
        flags=re.IGNORECASE,
    )
    text = re.sub(r"^(?:\d+(?:\.\d+)*[.)]?\s+|[^\w\"'“‘(\[@/.<#]+)", "", text)
    return text.rstrip(" :.,;")


def _refused(text: str) -> str | None:
    return "generic" if " ".join(words(text)) in GENERIC else refusal(text, FEWEST)


def _link(link: Link, beside: Sequence[str], document: Document, known: _Known, gathered: _Gathered) -> bool:
    """Draft from a link: by its alias, unless that is no more than the target's name, else by the sentence that it
    begins, where that says more than the links `beside` it. Whether there is a draft."""
    target = known.resolve(document.title, link.target)
    if target is None:
        gathered.dropped["unresolved"] += 1
        return False
    if target == document.id:
        return False
    alias = draft(link.alias)
    last = words(re.sub(r"[-_]", " ", posixpath.splitext(posixpath.basename(link.target))[0]))
    if alias and words(alias) != last and _refused(alias) is None:
        text, why = alias, None
    else:
        text = rest = behind(link.sentence)
        for other in beside:
            rest = rest.replace(other, " ")
        within = any(character.isalnum() for character in link.sentence.partition(MARK)[0])
        why = "listed" if within else refusal(text) or (refusal(rest) and "listed")
    if why is not None:
        gathered.dropped[why] += 1
        return False
    origin = Origin(document.title, link.line, f"[[{link.target}]]")
    gathered.drafts.append(Draft(text, "link", "link", (target,), (origin,), (document.id,)))
    return True


class _Known:
    """The notes by path and by name, as links name them."""

    def __init__(self, ids: Mapping[str, str]) -> None:
        self._ids = ids
        self._named: dict[tuple[str, ...], list[str]] = {}
        self._by_name: dict[str, list[str]] = {}
        for path in ids:
            self._by_name.setdefault(posixpath.basename(path).casefold(), []).append(path)

    def name(self, document: Document, note: Note) -> None:
        """Remember what a note is called: by its file, its first heading, its title and its aliases."""
        for text in (_stem(document.title), *map(_heading, (*note.headings[:1], *note.names))):
            self._named.setdefault(_name(text), []).append(document.id)

    def named(self, text: str) -> list[str]:
        """The notes that are called so."""
        return self._named.get(_name(text), [])

    def resolve(self, note: str, target: str) -> str | None:
        """The id of the note that a link means: one of the same folder, else the only one anywhere whose path ends so.

        `.md` is understood; a leading slash means the notes' own folder; case counts only between several.
        """
        names = [target] if target.casefold().endswith(_ENDINGS) else [target + ending for ending in _ENDINGS]
        for name in names:
            near = "" if name.startswith("/") else posixpath.dirname(note)
            path = posixpath.normpath(posixpath.join(near, name.lstrip("/")))
            if path in self._ids:
                return self._ids[path]
        for name in names:
            if name.startswith(("/", "./", "../")):
                continue
            alike = self._by_name.get(posixpath.basename(name).casefold(), [])
            tail = f"/{posixpath.normpath(name)}"
            for fold in (str, str.casefold):
                ending = [path for path in alike if fold(f"/{path}").endswith(fold(tail))]
                if len(ending) == 1:
                    return self._ids[ending[0]]
                if ending:
                    return None
        return None
