"""Rankers that understand nothing: what a set is worth is how far a real retriever is above them.

`random` orders the documents by chance, `popularity` gives every query the same documents, `overlap` counts the words
that query and document share. A sound set tells a retriever from each of them, and a sound gate fails them.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eval_backends import options
from eval_core.backend import Corpus, Document, Reply, Request
from eval_core.sets.words import words


class _Kept:
    """Keeps the documents and honours filters; a ranker gives each a score, best first, equal ones in id order."""

    capabilities: frozenset[str] = frozenset({"filter"})

    def __init__(self) -> None:
        self._documents: list[Document] = []

    def describe(self) -> Mapping[str, Any]:
        """What answers: this ranker, in this form."""
        return {"null": type(self).__name__.lower(), "version": 1}

    def close(self) -> None:
        """Free the documents; may be called twice."""
        self._documents = []

    def _allowed(self, request: Request) -> Iterable[int]:
        for number, document in enumerate(self._documents):
            if request.filter is None or document.matches(request.filter):
                yield number

    def _best(self, scored: Iterable[tuple[float, int]], k: int) -> Reply:
        best = heapq.nsmallest(k, ((-score, self._documents[number].id) for score, number in scored))
        return Reply([name for _, name in best], [-score for score, _ in best])

    def _keep(self, corpus: Corpus) -> list[Document]:
        # Only what filters need is held: ids and metadata.
        texts = list(corpus)
        self._documents = [Document(document.id, "", "", document.metadata) for document in texts]
        return texts


class Random(_Kept):
    """Documents in an order drawn anew for each query from the seed: the same on every machine and in every run."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self._seed = options.whole("random", "seed", seed, 0, 2**63 - 1)

    def index(self, corpus: Corpus) -> None:
        """Keep the ids."""
        self._keep(corpus)

    def search(self, request: Request) -> Reply:
        """Order the documents by a digest of seed, query and id: no state, so no order of asking changes it."""
        prefix = f"{self._seed}\n{request.text}\n"
        scored = (
            (
                int.from_bytes(
                    hashlib.sha256(f"{prefix}{self._documents[n].id}".encode()).digest()[:6], "big"
                )
                / 2**48,
                n,
            )
            for n in self._allowed(request)
        )
        return self._best(scored, request.k)


class Popularity(_Kept):
    """The same documents for every query: those that share the most distinct words with the rest of the corpus."""

    def __init__(self) -> None:
        super().__init__()
        self._scores: Sequence[float] = ()

    def index(self, corpus: Corpus) -> None:
        """Score each document by the documents that its distinct words stand in, summed."""
        own = [set(words(document.searchable)) for document in self._keep(corpus)]
        holding = Counter(word for one in own for word in one)
        self._scores = [float(sum(holding[word] for word in one)) for one in own]

    def search(self, request: Request) -> Reply:
        """The most popular documents that pass the filter."""
        return self._best(((self._scores[n], n) for n in self._allowed(request)), request.k)


class Overlap(_Kept):
    """Documents by how many of the query's distinct words they hold; those that hold none are not returned."""

    def __init__(self) -> None:
        super().__init__()
        self._words: list[frozenset[str]] = []

    def index(self, corpus: Corpus) -> None:
        """Keep the distinct words of each document."""
        self._words = [frozenset(words(document.searchable)) for document in self._keep(corpus)]

    def search(self, request: Request) -> Reply:
        """Count shared words."""
        wanted = frozenset(words(request.text))
        shared = ((float(len(wanted & self._words[n])), n) for n in self._allowed(request))
        return self._best((pair for pair in shared if pair[0] > 0), request.k)
