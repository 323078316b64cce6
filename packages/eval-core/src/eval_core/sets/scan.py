"""What the numbers of a set cannot show: overlap, leaks, near-duplicates, shares, and the smallest change it resolves.

Measured from texts and labels alone, in two passes over the corpus, in memory that grows with the judged documents and
not with the corpus. Words are those of `eval_core.sets.words`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from eval_core.backend import Document
from eval_core.scoring.statistics import resolution
from eval_core.sets.limits import Limits, NearDuplicate, Overlap
from eval_core.sets.words import words

#: Words in a row that make a place in a text recognisable.
SHINGLE = 5

#: Words that a query must have for its standing in a document to be called a leak; a name in a text is no leak.
LEAK_WORDS = 4

#: Share of shingles in common from which two documents count as nearly the same.
NEAR = 0.8

#: Ids that are named; the counts are whole.
NAMED = 20


def _shingles(tokens: Sequence[str], length: int = SHINGLE) -> set[int]:
    """Hashes of each run of `length` words; of the whole text where it is shorter."""
    if len(tokens) <= length:
        return {hash(tuple(tokens))} if tokens else set()
    return {hash(tuple(tokens[place : place + length])) for place in range(len(tokens) - length + 1)}


class _Asked:
    """A query as the scan needs it."""

    __slots__ = ("best", "documents", "excluded", "id", "tokens", "wanted")

    def __init__(self, name: str, text: str, relevant: Iterable[str], excluded: Iterable[str]) -> None:
        self.id = name
        self.tokens = words(text)
        self.wanted = set(self.tokens)
        self.documents = frozenset(relevant)
        self.excluded = frozenset(excluded)
        self.best = 0.0


Queries = Sequence[tuple[str, str, Mapping[str, object]]]
Judgements = Mapping[str, Mapping[str, int]]


def scan(documents: Iterable[Document], queries: Queries, judgements: Judgements) -> Limits:
    """Measure the limits of a set; see `look`."""
    return look(documents, queries, judgements)[0]


def look(
    documents: Iterable[Document], queries: Queries, judgements: Judgements
) -> tuple[Limits, tuple[NearDuplicate, ...]]:
    """Measure the limits of a set, and name the first near-duplicates.

    Args:
        documents: the corpus, iterated twice where a judged document has near-duplicates to be looked for, so it must
            be possible to iterate it again.
        queries: (id, text, metadata) of each query; `exclude`, `category` and `source` are read from the metadata.
        judgements: by query id, {document id: grade}; relevant is a grade of at least 1.
    """
    asked = []
    for name, text, metadata in queries:
        relevant = [document for document, grade in judgements.get(name, {}).items() if grade > 0]
        if relevant:
            excluded = metadata.get("exclude")
            asked.append(_Asked(name, text, relevant, excluded if isinstance(excluded, list | tuple) else ()))
    judged_by: dict[str, list[_Asked]] = {}
    for query in asked:
        for judged in query.documents:
            judged_by.setdefault(judged, []).append(query)
    openings: dict[tuple[str, ...], list[_Asked]] = {}
    for query in asked:
        if len(query.tokens) >= LEAK_WORDS:
            openings.setdefault(tuple(query.tokens[:LEAK_WORDS]), []).append(query)
    leaked: dict[str, None] = {}
    judged_shingles: dict[str, set[int]] = {}
    for document in documents:
        tokens = words(document.searchable)
        for query in judged_by.get(document.id, ()):
            if query.wanted:
                query.best = max(query.best, len(query.wanted.intersection(tokens)) / len(query.wanted))
        if openings:
            for query in _contained(tokens, openings):
                if document.id not in query.excluded:
                    leaked[query.id] = None
        if document.id in judged_by:
            judged_shingles[document.id] = _shingles(tokens)
    near = _near(documents, judged_shingles, judged_by)
    meta = {name: metadata for name, _, metadata in queries}
    limits = Limits(
        queries=len(asked),
        one_query_points=100 / len(asked) if asked else 0.0,
        smallest_change_points=resolution(len(asked)).points if asked else 0.0,
        overlap=_overlap(asked),
        sources=_shares(asked, meta, "source"),
        categories=_shares(asked, meta, "category"),
        leaks=len(leaked),
        leaked=tuple(sorted(leaked)[:NAMED]),
        near_duplicates=len({pair.judged for pair in near}),
    )
    return limits, tuple(near[:NAMED])


def _contained(tokens: Sequence[str], openings: Mapping[tuple[str, ...], list[_Asked]]) -> Iterable[_Asked]:
    """Queries whose words stand in a row in the tokens."""
    for place in range(len(tokens) - LEAK_WORDS + 1):
        for query in openings.get(tuple(tokens[place : place + LEAK_WORDS]), ()):
            if tokens[place : place + len(query.tokens)] == query.tokens:
                yield query


def _near(
    documents: Iterable[Document], judged: Mapping[str, set[int]], judged_by: Mapping[str, list[_Asked]]
) -> list[NearDuplicate]:
    """Documents that are nearly a judged one and are not judged for a query that judges it."""
    holders: dict[int, list[str]] = {}
    for name, shingles in judged.items():
        for shingle in shingles:
            holders.setdefault(shingle, []).append(name)
    found: list[NearDuplicate] = []
    for document in documents:
        own = _shingles(words(document.searchable))
        common = Counter(name for shingle in own for name in holders.get(shingle, ()))
        for name, shared in common.items():
            if name == document.id or shared < NEAR * (len(own) + len(judged[name]) - shared):
                continue
            found += [
                NearDuplicate(query=query.id, judged=name, unjudged=document.id)
                for query in judged_by[name]
                if document.id not in query.documents and document.id not in query.excluded
            ]
    return sorted(found, key=lambda pair: (pair.query, pair.judged, pair.unjudged))


def _overlap(asked: Sequence[_Asked]) -> Overlap:
    if not asked:
        return Overlap(mean=0.0, whole=0.0, none=0.0)
    shares = [query.best for query in asked]
    return Overlap(
        mean=sum(shares) / len(shares),
        whole=sum(share == 1.0 for share in shares) / len(shares),
        none=sum(share == 0.0 for share in shares) / len(shares),
    )


def _shares(asked: Sequence[_Asked], meta: Mapping[str, Mapping[str, object]], key: str) -> dict[str, int]:
    return dict(sorted(Counter(str(meta[query.id].get(key, "none")) for query in asked).items()))
