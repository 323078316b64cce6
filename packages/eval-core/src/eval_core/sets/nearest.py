"""The document or file that a name may have meant which is not among those that there are."""

from __future__ import annotations

import difflib
import heapq
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable
from urllib.parse import unquote

#: For so many names a like name is looked for by its letters, among so many; the others have only the same file name.
_ASKED, _COMPARED = 25, 20_000

#: How a chunk of a document is called: `x.md#2`, `x.md#some-heading`, `x.md::3`.
_CHUNK = re.compile(r"(?:#|::)[\w-]+$")


class Nearest:
    """Finds what a missing id or path may have meant, by the file's name: with spaces or percent-encoded, of a chunk,
    in another case or Unicode form, with a leading `./` or backslashes, or in another folder; else by a like name.

    Args:
        known: gives the names that there are; called at the first question.
    """

    def __init__(self, known: Callable[[], Iterable[str]]) -> None:
        self._known = known
        self._names: dict[str, list[str]] | None = None
        self._left = _ASKED

    def to(self, given: str) -> str | None:
        """The likest name, or None."""
        if self._names is None:
            names = defaultdict(list)
            for name in sorted(self._known()):
                names[_file(_plain(name))].append(name)
            self._names = dict(names)
        plain = _plain(given)
        same = self._names.get(_file(plain), [])
        if not same and self._left > 0 and len(self._names) <= _COMPARED:
            self._left -= 1
            for name in difflib.get_close_matches(_file(plain), self._names, n=1, cutoff=0.75):
                same = self._names[name]
        return _likest(plain, same)

    def hint(self, given: str) -> str:
        """`; did you mean 'x'?`, or an empty text: the end of a message."""
        near = self.to(given)
        return f"; did you mean {near!r}?" if near is not None else ""


def _plain(name: str) -> str:
    """A name as its document is called, without what only some tools write."""
    plain = unquote(name, errors="surrogateescape").replace("\\", "/").removeprefix("./")
    return _CHUNK.sub("", unicodedata.normalize("NFC", plain))


def _file(plain: str) -> str:
    return plain.rpartition("/")[2].casefold()


def _likest(plain: str, others: list[str]) -> str | None:
    parts = set(plain.split("/"))
    # Some names stand in every folder; only those that share most of the way are compared by their letters.
    few = heapq.nlargest(50, others, key=lambda other: (len(parts & set(_plain(other).split("/"))), other))
    return max(
        few, key=lambda other: difflib.SequenceMatcher(None, plain, _plain(other)).ratio(), default=None
    )
