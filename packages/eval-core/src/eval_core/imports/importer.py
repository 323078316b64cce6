"""What an importer is: the protocol of the entry-point group `eval.importers`, and what its reading gives.

An importer is a module or an object with three names, registered under the format that it reads:

    [project.entry-points."eval.importers"]
    records = "eval_core.imports.records"

- `SUMMARY`, a line for `eval-core import --help`;
- `OPTIONS`, the click options that it takes beside those of every import (--corpus, --match, --any, --name, …);
- `read(path, **options)`, which reads the file at PATH and returns a `Reading`. It finds all that is wrong with the
  file, raises it as one `Faults` with lines, and writes nothing.

The rest is the same for all: expected documents are looked up in the corpus, and one function writes the set. A format
whose files are too large to be held registers a click command instead, which reads FILE and writes the set itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import click

from eval_core.backend import Document

GROUP = "eval.importers"

#: What a fault of the input leads to.
CONSEQUENCE = "nothing was imported"


@dataclass(frozen=True, slots=True)
class Question:
    """A query as the file has it. `expected` maps documents, named as the file names them, to grades: 0 and below are
    judged and not relevant. `line` is where it begins."""

    id: str
    text: str
    expected: dict[str, int]
    line: int
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file holds.

    Attributes:
        fields: which field of the file was read as what.
        dropped: what a set cannot carry, in words, with how often it is there.
        any_of: whether one of several documents suffices, where nobody says so by --any or --all.
        warnings: what was read, and may not be meant.
        paths: whether documents are named by their paths below the folder that is the corpus.
        documents: the corpus, where the file holds it; iterated several times. None where --corpus names it.
    """

    questions: Sequence[Question]
    fields: Mapping[str, str] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    any_of: bool = False
    paths: bool = False
    documents: Iterable[Document] | None = None
    warnings: Sequence[str] = ()


class Importer(Protocol):
    """What stands in the group. `read` takes each of OPTIONS by its name as a keyword."""

    @property
    def SUMMARY(self) -> str: ...

    @property
    def OPTIONS(self) -> Sequence[click.Option]: ...

    @property
    def read(self) -> Any: ...


def load(name: str) -> Importer | click.Command:
    """The importer of a format, or the command that does it all.

    Raises:
        Misuse: there is none, or several packages have one.
        CouldNot: it cannot be imported.
    """
    from eval_core.backend import plugin

    found: Importer | click.Command = plugin(GROUP, "importer", name)
    return found
