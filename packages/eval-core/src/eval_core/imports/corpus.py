"""The corpus of an imported set, and which of its documents an expected name means."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from eval_core.backend import Document
from eval_core.errors import Fault, Faults, Misuse
from eval_core.imports.importer import CONSEQUENCE
from eval_core.reconstruct import CORPUS, corpus_of, reconstruct
from eval_core.reconstruct.globs import Globs
from eval_core.sets import CorpusFile, Definition, encode_id, read_definition
from eval_core.sets.folder import seen_from, set_name

Match = Literal["id", "path", "prefix", "substring"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a corpus is: its documents, and the recipe by which the set reads them where it does not hold them."""

    documents: Iterable[Document]
    source: Mapping[str, Any] | None = None
    file: Path | None = None


def locate(given: Path, include: tuple[str, ...], place: Path, beside: Path, path: Path) -> Place:
    """The corpus of --corpus: a `corpus.jsonl`, the one of a set's folder, or the files of a folder as they are.

    Args:
        include: globs of the files of a folder that are taken; all where there are none.
        place: the set to be, which its recipe is seen from.
        beside: an empty folder, in which the files of a folder become a `corpus.jsonl`.
        path: the file that is imported.

    Raises:
        Misuse: nothing is there, or the imported file or the set to be would be a document.
        CouldNot: the corpus of a set was not reconstructed, or cannot be read.
        Faults: lines that are no documents, or an id given twice.
    """
    if not given.exists():
        raise Misuse(
            "file-missing",
            "there is no such corpus, neither file nor folder",
            key="--corpus",
            value=str(given),
        )
    if given.is_file():
        return Place(_sound(given), file=given)
    if (given / CORPUS).exists() or (given / "dataset.toml").exists():
        file = corpus_of(given, read_definition(given), Path(".eval"))
        return Place(_sound(file), file=file)
    real = Path(os.path.realpath(given))
    mend = "Take the documents alone: --include '**/*.md', or whatever they are called."
    own_files = [
        f"{seen_from(real, place)}/{name}" for name in ("queries.jsonl", "qrels/test.tsv", "dataset.toml")
    ]
    if place.is_relative_to(real) and (not include or any(map(Globs(include).includes, own_files))):
        what = f"lies inside the corpus {given}, and would be searched as a part of it"
        raise Misuse("corpus-unclear", what, file=place, mend=mend)
    name, prefix = set_name(None, given), encode_id(real.name)
    source: dict[str, Any] = {"name": name, "type": "dir", "path": seen_from(place, given), "prefix": prefix}
    if include:
        source["include"] = include
    here = Definition.model_validate({"name": name, "corpus": {"source": ({**source, "path": str(real)},)}})
    reconstruct(place, here, beside, cache=beside)
    corpus = CorpusFile(beside / CORPUS)
    own = seen_from(real, path)
    if any(document.id == f"{prefix}/{encode_id(own)}" for document in corpus):
        raise Misuse("corpus-unclear", f"is itself a document of the corpus {given}", file=path, mend=mend)
    return Place(corpus, source, beside / CORPUS)


def _sound(file: Path) -> CorpusFile:
    """A corpus file that was read once and found whole."""
    faults: list[Fault] = []
    lines: dict[str, int] = {}

    def fault(line: int, what: str) -> None:
        faults.append(Fault(what, file=file, line=line))

    corpus = CorpusFile(file)
    for line, document in corpus.numbered(fault):
        if (first := lines.setdefault(document.id, line)) != line:
            fault(line, f"_id {document.id!r} again (first at line {first})")
    if not lines and not faults:
        fault(1, "holds no document")
    if faults:
        raise Faults(faults, consequence=CONSEQUENCE)
    return corpus


class Documents:
    """The ids of a corpus, looked up by the names that a file has for them.

    `prefix` is what the ids of a folder's files begin with, where names are paths below that folder.
    """

    def __init__(self, documents: Iterable[Document], match: Match, prefix: str | None = None) -> None:
        self.match = match
        self.prefix = prefix
        self.paths = {one.id: str(one.metadata.get("path", one.id)) for one in documents}
        self._found: dict[str, tuple[str, ...]] = {}

    def find(self, name: str) -> tuple[str, ...]:
        """The documents that a name means, in the corpus' order; the one of that very id, where there is one."""
        if name not in self._found:
            names = [name, encode_id(name)]
            if self.prefix is not None:
                names.append(f"{self.prefix}/{encode_id(name)}")
            exact = next((one for one in names if one in self.paths), None)
            self._found[name] = tuple(self._alike(name)) if exact is None else (exact,)
        return self._found[name]

    def _alike(self, name: str) -> Iterator[str]:
        if self.match == "path":
            name = re.sub(r"^(\./)+", "", name.replace("\\", "/"))
            ends = f"/{name}"
            yield from (one for one, path in self.paths.items() if path == name or path.endswith(ends))
        elif self.match != "id":
            for one, path in self.paths.items():
                if any(
                    text.startswith(name) if self.match == "prefix" else name in text for text in (one, path)
                ):
                    yield one

    def split(self, name: str) -> list[str]:
        """The parts of a name that is several, each found, with separators between; none where it is one name."""
        for sign in (r"\s*[;|\n]\s*", r"\s*,\s*", r"\s+"):
            parts = [part for part in re.split(sign, name) if part]
            if len(parts) > 1 and all(len(self.find(part)) == 1 for part in parts):
                return parts
        return []
