"""What the numbers of a set cannot show: overlap, leaks, near-duplicates, shares, and the smallest change it resolves.

Measured from texts and labels alone. A document counts for a query only where the query can find it. The corpus is
read twice: for the documents that queries name, then for the others; each is cut into words once, and only where a
query can find it. Memory grows with the documents that are named, by eight bytes a word, and not with the corpus; what
more a scope takes is freed behind its last document.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from eval_core.backend import Document
from eval_core.scoring.statistics import resolution
from eval_core.sets.corpus import scopes_of
from eval_core.sets.dataset import Query
from eval_core.sets.limits import Limits, NearDuplicate, Overlap
from eval_core.sets.phrases import Phrases
from eval_core.sets.words import words

#: Words in a row that make a place in a text recognisable.
SHINGLE = 5

#: Share of shingles in common from which two documents count as nearly the same.
NEAR = 0.8

#: Ids that are named; the counts are whole.
NAMED = 20

#: Shingles below which a text is not worth a look at a part of it.
SHORT = 16

Visible = Callable[[str, Query], bool]


def _shingles(tokens: Sequence[str], length: int = SHINGLE) -> set[int]:
    """Hashes of each run of `length` words; of the whole text where it is shorter."""
    if len(tokens) <= length:
        return {hash(tuple(tokens))} if tokens else set()
    return set(map(hash, zip(*(tokens[place:] for place in range(length)), strict=False)))


class _Asked:
    """A query as the scan needs it."""

    __slots__ = ("best", "excluded", "named", "query", "relevant", "tokens", "wanted")

    def __init__(self, query: Query, relevant: Iterable[str]) -> None:
        self.query = query
        self.tokens = words(query.text)
        self.wanted = frozenset(self.tokens)
        self.relevant = frozenset(relevant)
        self.excluded = frozenset(query.exclude)
        self.best = 0.0
        #: Of each document that it names, how many of its words that holds.
        self.named: dict[str, int] = {}


@dataclass(slots=True)
class _Scope:
    """What is gathered for the queries of one scope, or for those without one."""

    asked: dict[str, _Asked]
    phrases: Phrases
    words: frozenset[str]
    documents: int = 0
    holding: Counter[str] = field(default_factory=Counter)
    judged_by: dict[str, list[_Asked]] = field(default_factory=dict)
    #: Documents still to be compared with those that are judged, and these by their shingles while there are some.
    left: int = 0
    by_shingle: dict[int, list[str]] | None = None

    @classmethod
    def of(cls, several: Sequence[_Asked]) -> _Scope:
        found = cls(
            {asked.query.id: asked for asked in several},
            Phrases({asked.query.id: asked.tokens for asked in several}),
            frozenset().union(*(asked.wanted for asked in several)),
        )
        for asked in several:
            for document in asked.relevant:
                found.judged_by.setdefault(document, []).append(asked)
        return found

    def share_of_others(self, asked: _Asked) -> float | None:
        """The mean share of the query's words in a document that it can find and does not name."""
        others = self.documents - len(asked.named)
        if others < 1 or not asked.wanted:
            return None if others < 1 else 0.0
        held = sum(self.holding[word] for word in asked.wanted) - sum(asked.named.values())
        return held / (others * len(asked.wanted))


class _Scan:
    """The state of one scan."""

    def __init__(self, several: Sequence[_Asked], visible: Visible) -> None:
        self.visible = visible
        self.leaked: set[str] = set()
        self.near: list[NearDuplicate] = []
        self.shingles: dict[str, array[int]] = {}
        self.naming: dict[str, list[_Asked]] = {}
        by_scope: dict[str | None, list[_Asked]] = {}
        for asked in several:
            by_scope.setdefault(asked.query.scope, []).append(asked)
            for document in asked.relevant | asked.excluded:
                self.naming.setdefault(document, []).append(asked)
        self.scopes = {name: _Scope.of(members) for name, members in by_scope.items()}

    def scopes_with(self, document: Document) -> list[_Scope]:
        """Those whose queries can find the document."""
        return [self.scopes[name] for name in scopes_of(document.metadata) if name in self.scopes]

    def take_named(self, document: Document, scopes: Iterable[_Scope]) -> None:
        """Gather a document that a query judges relevant or excludes."""
        tokens = self.gather(document, scopes)
        for asked in self.naming[document.id]:
            if asked.query.scope not in scopes_of(document.metadata):
                continue  # excluded, and out of reach all the same
            shared = len(asked.wanted.intersection(tokens))
            asked.named[document.id] = shared
            if document.id in asked.relevant and asked.wanted:
                asked.best = max(asked.best, shared / len(asked.wanted))
        self.shingles[document.id] = array("q", _shingles(tokens))

    def gather(self, document: Document, scopes: Iterable[_Scope]) -> list[str]:
        """Count the words of queries that a document holds, and find the leaks; the words of the document."""
        tokens = words(document.searchable)
        for scope in scopes:
            held = scope.words.intersection(tokens)
            scope.documents += 1
            scope.holding.update(held)
            for name in scope.phrases.within(tokens, held):
                asked = scope.asked[name]
                if document.id not in asked.excluded and self.visible(document.id, asked.query):
                    self.leaked.add(name)
        return tokens

    def by_shingle(self, scope: _Scope) -> dict[int, list[str]]:
        """The judged documents of a scope by their shingles."""
        if scope.by_shingle is None:
            scope.by_shingle = {}
            for name in scope.judged_by:
                for shingle in self.shingles.get(name, ()):
                    scope.by_shingle.setdefault(shingle, []).append(name)
        return scope.by_shingle

    def compare(self, document: Document, tokens: Sequence[str], scopes: Iterable[_Scope]) -> None:
        """Find the judged documents of which this is nearly the same and, for a query that judges them, not judged."""
        own: Collection[int] | None = self.shingles.get(document.id)
        for scope in scopes:
            by_shingle = self.by_shingle(scope)
            scope.left -= 1
            if scope.left == 0:
                scope.by_shingle = None
            if own is None and _differs(tokens, by_shingle):
                continue
            own = _shingles(tokens) if own is None else own
            common = Counter(name for shingle in own for name in by_shingle.get(shingle, ()))
            for name, shared in common.items():
                if name == document.id or shared < NEAR * (len(own) + len(self.shingles[name]) - shared):
                    continue
                self.near += [
                    NearDuplicate(query=asked.query.id, judged=name, unjudged=document.id)
                    for asked in scope.judged_by[name]
                    if document.id not in asked.relevant
                    and document.id not in asked.excluded
                    and self.visible(document.id, asked.query)
                ]


def _differs(tokens: Sequence[str], by_shingle: Mapping[int, object]) -> bool:
    """Whether a quarter of a text, from its middle, shows already that it is nearly none of those with the shingles.

    Of n shingles, a near-duplicate has at least `NEAR` n in common with the other: not more than the rest is missing.
    """
    count = len(tokens) - SHINGLE + 1
    if count < SHORT:
        return False
    middle = _shingles(tokens[count * 3 // 8 : count * 5 // 8 + SHINGLE])
    return len(middle - by_shingle.keys()) > (1 - NEAR) * count + 1e-9


def scan(
    documents: Iterable[Document],
    queries: Sequence[Query],
    judgements: Mapping[str, Mapping[str, int]],
    visible: Visible = lambda document, query: True,
) -> Limits:
    """Measure the limits of a set; see `look`."""
    return look(documents, queries, judgements, visible)[0]


def look(
    documents: Iterable[Document],
    queries: Sequence[Query],
    judgements: Mapping[str, Mapping[str, int]],
    visible: Visible = lambda document, query: True,
) -> tuple[Limits, tuple[NearDuplicate, ...]]:
    """Measure the limits of a set, and name the first near-duplicates.

    Args:
        documents: the corpus, iterated twice.
        queries: those that are put.
        judgements: by query id, {document id: grade}; relevant is a grade of at least 1.
        visible: whether a query can find a document of its scope: its filter and its time.
    """
    asked = []
    for query in queries:
        relevant = [document for document, grade in judgements.get(query.id, {}).items() if grade > 0]
        if relevant:
            asked.append(_Asked(query, relevant))
    found = _Scan(asked, visible)
    if asked:
        for document in documents:
            scopes = found.scopes_with(document)
            for scope in scopes:
                scope.left += 1
            if document.id in found.naming:
                found.take_named(document, scopes)
        for document in documents:
            scopes = found.scopes_with(document)
            if scopes:
                named = document.id in found.naming
                found.compare(document, [] if named else found.gather(document, scopes), scopes)
    near = sorted(found.near, key=lambda pair: (pair.query, pair.judged, pair.unjudged))
    limits = Limits(
        queries=len(asked),
        one_query_points=100 / len(asked) if asked else 0.0,
        smallest_change_points=resolution(len(asked)).points if asked else 0.0,
        overlap=_overlap(asked, found.scopes),
        sources=_shares(asked, "source"),
        categories=_shares(asked, "category"),
        leaks=len(found.leaked),
        leaked=tuple(sorted(found.leaked)[:NAMED]),
        near_duplicates=len({pair.judged for pair in near}),
    )
    return limits, tuple(near[:NAMED])


def _overlap(asked: Sequence[_Asked], scopes: Mapping[str | None, _Scope]) -> Overlap:
    if not asked:
        return Overlap(mean=0.0, whole=0.0, none=0.0)
    shares = [query.best for query in asked]
    others = [scopes[query.query.scope].share_of_others(query) for query in asked]
    known = [share for share in others if share is not None]
    return Overlap(
        mean=sum(shares) / len(shares),
        whole=sum(share == 1.0 for share in shares) / len(shares),
        none=sum(share == 0.0 for share in shares) / len(shares),
        others=sum(known) / len(known) if known else None,
    )


def _shares(asked: Sequence[_Asked], key: str) -> dict[str, int]:
    return dict(sorted(Counter(str(query.query.metadata.get(key, "none")) for query in asked).items()))
