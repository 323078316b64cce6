"""Views of a set's corpus: one index of everything, or one a scope; of every version, or of what is valid now."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

from eval_core.backend import Document
from eval_core.files import write_lines
from eval_core.sets.corpus import document_line, parse_document, scopes_of
from eval_core.sets.dataset import Dataset, Query


class View:
    """Some documents of a `corpus.jsonl`, read at their offsets, so that a small scope of a large file is cheap.

    `path` is written to a temporary file when a backend asks for it, and removed with `stack`.
    """

    def __init__(
        self, source: Path, kind: str, offsets: list[int], stack: ExitStack, *, whole: bool = False
    ) -> None:
        self._source = source
        self._kind = kind
        self._offsets = offsets
        self._stack = stack
        self._path: Path | None = source if whole else None

    @property
    def kind(self) -> str:
        return self._kind

    @property
    def path(self) -> Path:
        if self._path is None:
            folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="eval-corpus-"))
            self._path = Path(folder) / "corpus.jsonl"
            write_lines(self._path, (document_line(document) for document in self))
        return self._path

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[Document]:
        with self._source.open("rb") as stream:
            for offset in self._offsets:
                stream.seek(offset)
                document = parse_document(json.loads(stream.readline()))
                if isinstance(document, str):
                    raise RuntimeError(f"{self._source} changed while it was being measured: {document}")
                yield document


def _offsets(
    source: Path, keep: Callable[[Document], bool], scopes: Collection[str | None]
) -> dict[str | None, list[int]]:
    """Where the documents begin that the queries of each scope can find."""
    groups: dict[str | None, list[int]] = {}
    offset = 0
    with source.open("rb") as stream:
        for line in stream:
            if not line.isspace():
                document = parse_document(json.loads(line))
                if isinstance(document, Document) and keep(document):
                    for scope in scopes_of(document.metadata):
                        if scope in scopes:
                            groups.setdefault(scope, []).append(offset)
            offset += len(line)
    return groups


class Partitions:
    """The indexes that a set needs for a backend, and which queries each of them answers.

    `scoping` is a part of the system key: `none` (no query has a scope), `filter` (the backend honours scopes within
    one index) or `index-per-scope`; the two score differently.
    """

    def __init__(self, dataset: Dataset, queries: list[Query], capabilities: frozenset[str]) -> None:
        self._dataset = dataset
        scoped = any(query.scope is not None for query in queries)
        self.scoping = "none" if not scoped else "filter" if "scope" in capabilities else "index-per-scope"
        self._final_only = (
            dataset.timeline is not None and not dataset.timeline.final and "temporal" not in capabilities
        )
        self._groups: dict[str | None, list[Query]] = {}
        for query in queries:
            scope = query.scope if self.scoping == "index-per-scope" else None
            self._groups.setdefault(scope, []).append(query)

    def __len__(self) -> int:
        return len(self._groups)

    def _keep(self, document: Document) -> bool:
        timeline = self._dataset.timeline
        return not self._final_only or timeline is None or timeline.visible(document.id, None)

    def __iter__(self) -> Generator[tuple[View, list[Query]]]:
        """Yield (documents, queries), an index each. The documents' file is gone once the next is asked for."""
        source = self._dataset.corpus.path
        kind = self._dataset.corpus.kind
        offsets = _offsets(source, self._keep, self._groups)
        for scope, queries in self._groups.items():
            with ExitStack() as stack:
                whole = scope is None and not self._final_only
                yield View(source, kind, offsets.get(scope, []), stack, whole=whole), queries
