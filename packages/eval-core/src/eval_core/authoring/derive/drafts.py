"""Drafts as they are gathered: put in order, the same ones merged, and so many taken as are wanted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from eval_core.authoring.similarity import same

#: A draft that so many documents answer is about none of them; one more and it is dropped.
MOST_DOCUMENTS = 3


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a draft comes from: `path:line` and what stands there."""

    path: str
    line: int
    name: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class Draft:
    """A query that nobody has looked at: its text, the documents that it may be about, and where it comes from.

    `exclude` are documents that hold the very sentence and are no answer.
    """

    text: str
    source: str
    category: str
    documents: tuple[str, ...]
    origins: tuple[Origin, ...]
    exclude: tuple[str, ...] = ()


#: Files that say what was tested or changed, and not what is: folders of theirs, and names.
_APART = re.compile(
    r"(?:^|/)(?:(?:[\w.-]*[_-])?tests?|testing|testdata|__tests__|specs?|fixtures|conftest\.py|changelogs?|changes|"
    r"release[-_ ]?notes|whats[-_ ]?new|newsfragments)(?=/|$)"
    r"|(?:^|/)(?:test_[^/]*|[^/]*(?:[._-](?:tests?|spec)|(?-i:(?<=[a-z0-9])Tests?)))\.\w+$"
    r"|(?:^|/)(?:changelog|changes|history|news|release[-_ ]?notes|whats[-_ ]?new)(?:[-_.]?v?[\d.x]+)?\.\w+$",
    re.IGNORECASE,
)


def is_apart(path: str) -> bool:
    """Whether a file is a test or a change log, from which nothing is drafted; it is a document all the same."""
    return _APART.search(path) is not None


def merged(drafts: Iterable[Draft]) -> tuple[list[Draft], int]:
    """Drafts of one source with the same words made one with all their documents, in order of the first.

    Returns:
        the drafts, and how many were dropped because more than `MOST_DOCUMENTS` documents answer them.
    """
    groups: dict[tuple[str, str], list[Draft]] = {}
    for draft in drafts:
        groups.setdefault((draft.source, same(draft.text)), []).append(draft)
    kept: list[Draft] = []
    dropped = 0
    for members in groups.values():
        documents = tuple(dict.fromkeys(name for member in members for name in member.documents))
        if len(documents) > MOST_DOCUMENTS:
            dropped += 1
            continue
        excluded = dict.fromkeys(name for member in members for name in member.exclude)
        first = members[0]
        kept.append(
            Draft(
                first.text,
                first.source,
                first.category,
                documents,
                tuple(dict.fromkeys(origin for member in members for origin in member.origins)),
                tuple(name for name in excluded if name not in documents),
            )
        )
    return kept, dropped


def spread(drafts: Sequence[Draft], limit: int | None) -> list[Draft]:
    """At most `limit` drafts, evenly spread over their order, of each source its share.

    Sources are taken apart, since doc comment and name of one function stand side by side: every second of all would
    be of one source alone. Shares are rounded by largest remainder, ties by the source's name.
    """
    if limit is None or len(drafts) <= limit:
        return list(drafts)
    places: dict[str, list[int]] = {}
    for place, draft in enumerate(drafts):
        places.setdefault(draft.source, []).append(place)
    share = {source: divmod(limit * len(found), len(drafts)) for source, found in places.items()}
    rest = limit - sum(whole for whole, _ in share.values())
    by_remainder = sorted(share, key=lambda source: (-share[source][1], source))
    taken: list[int] = []
    for source, found in places.items():
        wanted = share[source][0] + (source in by_remainder[:rest])
        taken += [found[step * len(found) // wanted] for step in range(wanted)]
    return [drafts[place] for place in sorted(taken)]


#: Why something became no draft, in words.
REASONS = {
    "short": "too short",
    "generic": "too generic",
    "cut": "ending in the middle of a sentence",
    "apart": "in tests and change logs",
    "listed": "links that stand in a row",
    "named": "the same as a note's name",
    "many": f"said of more than {MOST_DOCUMENTS} documents",
    "ambiguous": "names that stand in several files",
    "unresolved": "links that lead to no note, or to several",
}


def dropped_words(dropped: Mapping[str, int], unparsed: int = 0) -> Iterator[str]:
    """The counts in words, those that are not zero."""
    yield from (f"{count:,} {REASONS[reason]}" for reason, count in dropped.items() if count)
    if unparsed:
        yield f"{unparsed:,} that do not parse"
