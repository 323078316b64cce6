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


#: Paths of what says how something was tested or has changed, and not what it is.
_TESTS = r"(?:^|/)(?:(?:[\w.-]*[._-])?tests?|testdata|__tests__|fixtures)/"
_CODE = re.compile(
    rf"{_TESTS}|(?:^|/)(?:testing|specs?)/"
    r"|(?:^|/)(?:conftest|tests?|test_[^/]*|[^/]*(?:[._-](?:tests?|spec)|(?-i:(?<=[a-z0-9])Tests?)))\.\w+$",
    re.IGNORECASE,
)
_LOG = r"(?:^|/)(?:changelogs?|changes|release[-_ ]?notes|whats[-_ ]?new"
_PROSE = re.compile(
    rf"{_TESTS}|{_LOG}|changelog\.d|newsfragments)/|{_LOG}|history|news|releases)(?:[-_.]?v?[\d.x]+)?\.\w+$",
    re.IGNORECASE,
)


def is_apart(path: str) -> bool:
    """Whether a file, or what a glob names, is of tests or a change log: a source of drafts only where it is asked for.

    Prose about tests is no test (`npm-test.md`), and code about changes is no change log (`history.py`).
    """
    prose = path.lower().endswith((".md", ".markdown"))
    return (_PROSE if prose else _CODE).search(path) is not None


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
    "listed": "links within a line or a row",
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
