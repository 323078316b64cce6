"""Drafts from a repository at a commit: what doc comments say of a function, and names that stand in one file."""

from __future__ import annotations

import functools
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval_core.authoring.derive import braces, lines, python
from eval_core.authoring.derive.drafts import Draft, Origin, dropped_words, is_apart, merged, spread
from eval_core.authoring.derive.result import Drafted, asked, samples
from eval_core.authoring.derive.symbols import Symbol, Unparsed
from eval_core.authoring.derive.wording import draft, first_sentence, paragraph, refusal
from eval_core.authoring.sheet import claim_sheet, first_line, write_sheet
from eval_core.backend import Document
from eval_core.errors import CouldNot, Fault, Faults, Refused
from eval_core.reconstruct import git
from eval_core.reconstruct.repository import find, resolved
from eval_core.reconstruct.selection import Tally, documents, selection_faults
from eval_core.sets.definition import Git
from eval_core.sets.folder import claim, seen_from, set_name, write_set

#: Names shorter than this are looked up by nobody.
SHORTEST_NAME = 3

#: What reads a file, by the ending of its name.
READERS: Mapping[str, Callable[[str], list[Symbol]]] = {
    ".py": python.read,
    ".pyi": python.read,
    ".go": lines.read_go,
    ".rb": lines.read_ruby,
    **{
        ending: functools.partial(braces.read, language=language)
        for ending, language in braces.LANGUAGES.items()
    },
}


@dataclass(slots=True)
class _Gathered:
    """What reading the files gave."""

    drafts: list[Draft] = field(default_factory=list)
    names: list[tuple[Symbol, Draft]] = field(default_factory=list)
    definers: dict[str, set[str]] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    unparsed: list[str] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)


def derive_code(
    repository: Path,
    commit: str,
    out: Path,
    *,
    name: str | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    root: str = "",
    limit: int | None = None,
    sheet: Path | None = None,
) -> Drafted:
    """Write a drafted set about the files of a commit; their ids are those that reconstructing the set gives.

    Args:
        repository: a checkout or a bare repository; it is read from its objects, and nothing of it is changed.
        commit: a commit's id, or a name for one; the recipe gets the full id.
        out: the dataset folder to be.
        name: of the set and of its source; made of the repository's folder where it is not given.
        include: globs below `root`; all files where there are none.
        exclude: globs below `root` of what is left out again.
        root: a folder of the repository.
        limit: how many drafts to keep, evenly spread; all where it is not given.
        sheet: where the drafts go in place of the set's queries: a CSV that is not there yet.

    Raises:
        Refused: there is nothing to draft from.
        Misuse, Faults: `out` is taken, the name is none, a glob or the root is wrong, or no file is left.
        CouldNot: repository or commit are not there or damaged, or `out` cannot be written.
    """
    place = claim(out)
    if sheet is not None:
        claim_sheet(sheet)
    name = set_name(name, repository)
    table: dict[str, Any] = {
        "name": name,
        "type": "git",
        "path": seen_from(place, repository),
        "commit": _full(repository, commit, name),
    }
    table |= {"include": tuple(include)} if include else {}
    table |= {"exclude": tuple(exclude)} if exclude else {}
    table |= {"root": root} if root else {}
    source = Git.model_validate(table)
    if faults := selection_faults(source):
        raise Faults(Fault(fault, key="--include, --exclude, --root") for fault in faults)
    tally = Tally()
    gathered = _Gathered()
    named = any(map(is_apart, (*include, f"{root}/")))
    try:
        with git.opened(source, place, repository.absolute(), place, lambda line: None) as (_, entries):
            for document in documents(source, entries, tally):
                _take(document, root, gathered, drafted=named or not is_apart(document.title))
    except CouldNot as error:
        raise _ours(error) from error
    found, dropped = _drafts(gathered)
    if not found:
        why = ", ".join(dropped_words(dropped, len(gathered.unparsed)))
        raise Refused(
            "no-drafts",
            f"there is nothing to draft from in {tally.documents:,} files: no doc comment that says something, "
            f"and no name that stands in one file  ({why or 'no file in a language that is read'})",
            file=repository,
        )
    kept = spread(found, limit)
    description = f"Drafts from doc comments and names of {name}; to be put in other words and reviewed."
    write_set(
        place,
        {"name": name, "version": "0", "description": description, "kind": "code", "source": table},
        *asked(kept if sheet is None else ()),
    )
    if sheet is not None:
        write_sheet(sheet, kept, gathered.texts)
    return Drafted(
        name=name,
        folder=str(out),
        commit=source.commit,
        documents=tally.documents,
        queries=len(kept),
        sources=dict(sorted(Counter(one.source for one in kept).items())),
        sheet=None if sheet is None else str(sheet),
        found=len(found),
        dropped=dropped,
        unparsed=tuple(gathered.unparsed),
        samples=samples(kept),
    )


def _full(repository: Path, commit: str, source: str) -> str:
    """The full id of a commit; what is none is told of when it is read."""
    if re.fullmatch("[0-9a-f]{64}|[0-9a-f]{40}", commit):
        return commit
    try:
        found = find(repository, str(repository), source)
    except CouldNot as error:
        raise _ours(error) from error
    full = resolved(found, f"{commit}^{{commit}}")
    if full is None:
        raise CouldNot(
            "commit-absent",
            f"there is no commit {commit!r}",
            file=repository,
            mend=f"git -C {shlex.quote(os.path.relpath(repository))} log --oneline",
        )
    return full


def _ours(error: CouldNot) -> CouldNot:
    """The error of reading a source, with the option that gives the place here."""
    return error.but(mend="give its place: --repo PATH") if error.code == "source-absent" else error


# ------------------------------------------------------------- files to drafts


def _take(document: Document, root: str, gathered: _Gathered, *, drafted: bool) -> None:
    """Read one file; where nothing is `drafted` from it, its names count all the same."""
    reader = READERS.get(os.path.splitext(document.title)[1].lower())
    if reader is None:
        return
    path = f"{root}/{document.title}" if root else document.title
    gathered.places[document.id] = len(gathered.places)
    gathered.texts[document.id] = first_line(document.text)
    try:
        symbols = reader(document.text)
    except Unparsed:
        gathered.unparsed.append(path)
        return
    for symbol in symbols:
        if symbol.defined:
            gathered.definers.setdefault(symbol.name, set()).add(document.id)
        if not symbol.public:
            continue
        if not drafted:
            gathered.dropped["apart"] += 1
            continue
        origin = Origin(path, symbol.line, symbol.qualified)
        if symbol.defined:
            name = Draft(symbol.qualified, "identifier", "identifier", (document.id,), (origin,))
            gathered.names.append((symbol, name))
        if symbol.doc:
            _document(symbol, document.id, origin, gathered)


def _document(symbol: Symbol, document: str, origin: Origin, gathered: _Gathered) -> None:
    """Draft from a doc comment."""
    text = draft(first_sentence(paragraph(symbol.doc)), (symbol.name, symbol.qualified))
    why = refusal(text)
    if why is None:
        gathered.drafts.append(Draft(text, "docstring", "semantic", (document,), (origin,)))
    else:
        gathered.dropped[why] += 1


def _drafts(gathered: _Gathered) -> tuple[list[Draft], dict[str, int]]:
    """All drafts in order of path and line, and how many were dropped for which reason."""
    semantic, many = merged(gathered.drafts)
    sole = [one for symbol, one in gathered.names if len(gathered.definers[symbol.name]) == 1]
    long = [one for one in sole if len(one.origins[0].name) >= SHORTEST_NAME]
    names, _ = merged(long)
    found = sorted([*semantic, *names], key=functools.partial(_place, gathered.places))
    dropped = {
        "short": gathered.dropped["short"] + len(sole) - len(long),
        "generic": gathered.dropped["generic"],
        "cut": gathered.dropped["cut"],
        "apart": gathered.dropped["apart"],
        "many": many,
        "ambiguous": len(gathered.names) - len(sole),
    }
    return found, dropped


def _place(places: Mapping[str, int], one: Draft) -> tuple[int, int, str, str]:
    return places[one.documents[0]], one.origins[0].line, one.source, one.text
