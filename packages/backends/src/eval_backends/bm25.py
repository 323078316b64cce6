"""BM25 on the `rank-bm25` library: the lexical reference that a better retriever has to beat.

The library's inverse document frequency, its empty-corpus handling and its choice of what to return are replaced:

=====================================  ================================================================
rank-bm25 0.2.2 by itself              here
=====================================  ================================================================
no document, or none with a token:     every query is answered with nothing
ZeroDivisionError
a term in half the documents or more   idf is always positive (see `idf`)
has an idf of zero or below, which is
then replaced by a share of the mean
idf, itself negative at times; in a
corpus of two every score is 0
a query of no known token returns      nothing is returned
arbitrary documents
a query matches documents that hold    a document is returned only if it holds a token of the query,
none of its tokens, with score 0       so an empty document never is
equal scores come in an order that     equal scores come in ascending order of the document ids, and
depends on numpy's sort                are ordered before the cut: the first 3 of 20 are the answer to 3
every document is a candidate          only documents that hold a token of the query, and pass its filter,
                                       are; idf and mean length stay those of the whole corpus
=====================================  ================================================================

Repeated query tokens count as often as they are written, as in the library.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from eval_backends import options
from eval_core.backend import BackendError, Corpus, Document, Reply, Request
from eval_core.errors import CouldNot
from eval_core.sets.words import version as words_version
from eval_core.sets.words import words

if TYPE_CHECKING:
    from numpy.typing import NDArray


def whitespace(text: str) -> list[str]:
    """The text split at white space, case and punctuation kept."""
    return text.split()


TOKENIZERS: Mapping[str, Callable[[str], list[str]]] = {"words": words, "whitespace": whitespace}


def idf(documents: int, holding: int) -> float:
    """Inverse document frequency of a term that `holding` of `documents` hold: ln(1 + (N − df + 0.5) / (df + 0.5)).

    The Robertson–Spärck Jones weight without relevance information (Robertson and Zaragoza, "The Probabilistic
    Relevance Framework: BM25 and Beyond", 2009, section 3) with 1 added inside the logarithm, as Lucene's
    BM25Similarity does, so that it is above zero even for a term of every document.
    """
    return math.log1p((documents - holding + 0.5) / (holding + 0.5))


class BM25:
    """BM25Okapi of `rank-bm25` over title and text, with the faults in this module's table mended.

    score(d, q) = Σ over the tokens t of q of idf(t) · f(t, d) · (k1 + 1) / (f(t, d) + k1 · (1 − b + b · |d| / avgdl)),
    f the count of t in d, |d| the tokens of d, avgdl their mean over all documents, empty ones included.

    Options: `k1` (0.001 to 1000) dampens repeated terms, `b` (0 to 1) is the share of length normalisation,
    `tokenizer` is "words" or "whitespace".

    Raises:
        Misuse: an option has a wrong type or is out of range.
    """

    #: A filter removes documents before they are scored.
    capabilities = frozenset({"filter"})

    def __init__(self, k1: float = 1.5, b: float = 0.75, tokenizer: str = "words") -> None:
        # At k1 = 0 the library divides 0 by 0 for a document that lacks one of the terms; at extremes it overflows.
        self._k1 = options.number("bm25", "k1", k1, 0.001, 1000.0)
        self._b = options.number("bm25", "b", b, 0.0, 1.0)
        self._tokenizer = options.choice("bm25", "tokenizer", tokenizer, TOKENIZERS)
        self._tokenize = TOKENIZERS[self._tokenizer]
        self._clear()

    def _clear(self) -> None:
        self._indexed = False
        self._engine: Any = None
        self._documents: list[Document] = []
        self._postings: dict[str, NDArray[Any]] = {}
        self._id_order: Any = None

    def describe(self) -> Mapping[str, Any]:
        """The library with its version, the formula of idf, the tokenizer, its version, and the parameters."""
        from importlib.metadata import version

        return {
            "library": f"rank-bm25 {version('rank-bm25')}",
            "idf": "ln(1 + (N - df + 0.5) / (df + 0.5))",
            "tokenizer": self._tokenizer,
            **({"words": words_version()} if self._tokenize is words else {}),
            "k1": self._k1,
            "b": self._b,
        }

    def index(self, corpus: Corpus) -> None:
        """Tokenize and count the corpus; the texts themselves are not kept.

        Raises:
            CouldNot: an id comes twice.
        """
        import numpy as np

        self._clear()
        engine = _engine_class()
        try:
            self._engine = engine(self._read(corpus), k1=self._k1, b=self._b)
        except ZeroDivisionError:
            # The library takes the mean length of no documents.
            if self._documents:
                raise
        else:
            # The library makes an array of this list for every query; from an array that is a plain copy. At b = 1 it
            # would divide 0 by 0 for an empty document, which is never returned and may as well have a length of 1.
            self._engine.doc_len = np.maximum(self._engine.doc_len, 1)
        ids = [document.id for document in self._documents]
        self._id_order = np.empty(len(ids), dtype=np.int64)
        self._id_order[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
        self._indexed = True

    def _read(self, corpus: Corpus) -> Iterator[list[str]]:
        """Yield each document's tokens, and note its id and metadata on the way."""
        seen: set[str] = set()
        for document in corpus:
            if document.id in seen:
                what = f"the corpus has the document id {document.id!r} twice"
                raise CouldNot("id-repeated", what, subject="bm25")
            seen.add(document.id)
            self._documents.append(Document(document.id, "", "", document.metadata))
            yield self._tokenize(document.searchable)

    def search(self, request: Request) -> Reply:
        """Answer with ids and scores, at most `request.k`, best first.

        Raises:
            BackendError: nothing is indexed.
        """
        if not self._indexed:
            raise BackendError("bm25: search before index")
        if not self._documents:
            return Reply([], [])
        tokens = [token for token in self._tokenize(request.text) if token in self._engine.idf]
        if not tokens:
            return Reply([], [])
        candidates = self._candidates(tokens, request.filter)
        if not candidates:
            return Reply([], [])
        if 2 * len(candidates) > len(self._documents):
            # The library is faster at all documents than at most of them, and gives each the same score.
            scores = self._engine.get_scores(tokens)[candidates]
        else:
            scores = self._engine.get_batch_scores(tokens, candidates)
        return self._ranked(candidates, scores, request.k)

    def _candidates(self, tokens: list[str], wanted: Mapping[str, str] | None) -> list[int]:
        """Places of the documents that hold one of the tokens and pass the filter, ascending."""
        import numpy as np

        holding = np.zeros(len(self._documents), dtype=bool)
        for token in dict.fromkeys(tokens):
            holding[self._holding(token)] = True
        places: list[int] = np.flatnonzero(holding).tolist()
        if wanted:
            places = [place for place in places if self._documents[place].matches(wanted)]
        return places

    def _holding(self, token: str) -> NDArray[Any]:
        """Places of the documents that hold the token, looked up when it is first asked: most words never are."""
        import numpy as np

        if token not in self._postings:
            places = [place for place, held in enumerate(self._engine.doc_freqs) if token in held]
            self._postings[token] = np.asarray(places)
        return self._postings[token]

    def _ranked(self, candidates: list[int], scored: Any, k: int) -> Reply:
        """The best `k`, by score falling, then by id rising."""
        import numpy as np

        places, scores = np.asarray(candidates), np.asarray(scored)
        if len(scores) > 4 * k:
            # All that reach the k-th best score stay, so ties at the cut are still there to be ordered.
            keep = scores >= np.partition(scores, len(scores) - k)[len(scores) - k]
            places, scores = places[keep], scores[keep]
        best = np.lexsort((self._id_order[places], -scores))[:k]
        return Reply([self._documents[place].id for place in places[best].tolist()], scores[best].tolist())

    def close(self) -> None:
        """Free the index; a later `index` makes a new one."""
        self._clear()


def _engine_class() -> Any:
    """BM25Okapi with `idf` of this module in place of its own, and words counted in C, which is half the time of an
    index. Made when needed: the library imports numpy."""
    from rank_bm25 import BM25Okapi

    class Okapi(BM25Okapi):  # type: ignore[misc]  # published without types
        def _initialize(self, corpus: Iterable[list[str]]) -> Mapping[str, int]:
            """Count each document's words; how many documents hold each."""
            holding: Counter[str] = Counter()
            for tokens in corpus:
                held = Counter(tokens)
                self.doc_len.append(len(tokens))
                self.doc_freqs.append(held)
                holding.update(held.keys())
            self.corpus_size = len(self.doc_len)
            self.avgdl = sum(self.doc_len) / self.corpus_size
            return holding

        def _calc_idf(self, nd: Mapping[str, int]) -> None:
            weights = {holding: idf(self.corpus_size, holding) for holding in set(nd.values())}
            self.idf = {token: weights[holding] for token, holding in nd.items()}

    return Okapi
