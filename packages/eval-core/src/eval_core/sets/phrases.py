"""Which of some texts stand word for word in another: what a leak is, and what a copy of the queries is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set

#: Words that a query must have for its standing in a document to be called a leak; a name in a text is no leak.
LEAK_WORDS = 4


class Phrases:
    """Texts of `LEAK_WORDS` words or more, by name; each is looked for only where its rarest word stands."""

    def __init__(self, texts: Mapping[str, Sequence[str]]) -> None:
        self._texts = {
            name: (set(words), _row(words)) for name, words in texts.items() if len(words) >= LEAK_WORDS
        }
        common = Counter(word for words, _ in self._texts.values() for word in words)
        self._by_word: dict[str, list[str]] = {}
        for name, (words, _) in self._texts.items():
            rarest = min(words, key=lambda word: (common[word], -len(word), word))
            self._by_word.setdefault(rarest, []).append(name)

    def __len__(self) -> int:
        return len(self._texts)

    def within(self, words: Sequence[str], held: Set[str]) -> list[str]:
        """The names of those whose words stand in a row in `words`; `held` are all words of them that stand in it."""
        likely = [
            name
            for word in held & self._by_word.keys()
            for name in self._by_word[word]
            if self._texts[name][0] <= held
        ]
        if not likely:
            return []
        row = _row(words)
        return [name for name in likely if self._texts[name][1] in row]


def _row(words: Sequence[str]) -> str:
    # No word holds a space, so that words are found whole.
    return f" {' '.join(words)} "
