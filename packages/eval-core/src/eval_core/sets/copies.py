"""Documents that are a copy of the queries: a golden file that lies in the repository that is searched."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from html import unescape
from typing import TYPE_CHECKING, Any, NamedTuple

from eval_core.backend import Document
from eval_core.sets.corpus import scopes_of
from eval_core.sets.phrases import LEAK_WORDS, Phrases
from eval_core.sets.words import words

if TYPE_CHECKING:
    from eval_core.sets.dataset import Dataset, Query

#: Different queries that a document has to hold; a page that happens to quote fewer is only a leak.
FEWEST = 5

#: How JSON writes what a text cannot hold or need not: by code, or by a letter.
_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|([bfnrt"/\\]))')


class Copy(NamedTuple):
    """A document, and how many of the set's different queries of four words or more it holds."""

    line: int
    document: str
    held: int
    queries: int

    def sentence(self) -> str:
        """What is wrong with it."""
        return (
            f"document {self.document!r} holds {self.held} of {self.queries} queries of {LEAK_WORDS} words or more "
            "word for word and is relevant to none of them: it is a copy of the queries; leave it out of the corpus, "
            "or let the queries exclude it"
        )


def copies(dataset: Dataset, numbered: Iterable[tuple[int, Document]], longest: int) -> Iterator[Copy]:
    """Find the documents that hold, word for word, at least `FEWEST` queries and more than half of those of
    `LEAK_WORDS` words or more, as different texts that can find the document and neither exclude it nor are answered by
    it.

    Args:
        dataset: with its queries and judgements.
        numbered: (line, document) of its corpus.
        longest: the most characters of a document; the corpus is read only where one can hold so much.
    """
    asked: dict[str, list[Query]] = {}
    for query in dataset.queries:
        if len(tokens := words(query.text)) >= LEAK_WORDS:
            asked.setdefault(" ".join(tokens), []).append(query)
    needed = max(FEWEST, len(asked) // 2 + 1)
    # A document that holds them is as long as the shortest of them together, or half, since folding case can lengthen.
    shortest = sum(sorted(map(len, asked))[:needed]) / 2
    by_scope = Counter(scope for several in asked.values() for scope in {query.scope for query in several})

    def reached(metadata: Mapping[str, Any]) -> bool:
        return sum(by_scope[scope] for scope in scopes_of(metadata)) >= needed

    if longest < shortest or not any(reached(dataset.attributes.get(name, {})) for name in dataset.ids):
        return
    phrases = Phrases({text: text.split() for text in asked})
    for line, document in numbered:
        if len(document.searchable) < shortest or not reached(document.metadata):
            continue
        found: set[str] = set()
        for text in {document.searchable, _plain(document.searchable)}:
            tokens = words(text)
            found.update(phrases.within(tokens, set(tokens)))
        held = sum(any(_reaches(dataset, document.id, query) for query in asked[text]) for text in found)
        if held >= needed:
            yield Copy(line, document.id, held, len(asked))


def _plain(text: str) -> str:
    """The text without the escapes of JSON and the entities of HTML; a control character is a space."""
    return unescape(
        _ESCAPE.sub(lambda at: chr(int(at[1], 16)) if at[1] else at[2] if at[2] in '"/\\' else " ", text)
    )


def _reaches(dataset: Dataset, document: str, query: Query) -> bool:
    relevant = dataset.judgements.get(query.id, {}).get(document, 0) > 0
    return not relevant and document not in query.exclude and dataset.visible(document, query, None)
