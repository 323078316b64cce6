"""Which documents of a corpus that moves changed between two runs, as far as this machine measured both."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eval_core.console import some
from eval_core.files import write_text
from eval_core.sets.corpus import CorpusFile, corpus_digest, document_digest

#: Where the digests of documents lie, below `.eval`: a file a corpus, named by its digest.
FOLDER = "documents"

_DIGITS = 16


def remember(corpus: Path, output: Path) -> None:
    """Keep the digest of each document of a corpus, which nothing gives again once its sources have moved on."""
    digests = {
        document.id: document_digest(document)
        for _, document in CorpusFile(corpus).numbered(lambda line, message: None)
    }
    path = _path(output, corpus_digest(digests.items()))
    if not path.exists():
        write_text(path, "".join(f"{name}\t{one.hex()[:_DIGITS]}\n" for name, one in sorted(digests.items())))


def _path(output: Path, digest: str) -> Path:
    return output / FOLDER / f"{digest}.tsv"


def changed_documents(output: Path, before: object, after: object) -> str:
    """What became of the documents between two corpora, by their digests, in words."""
    ours, theirs = (_documents(_path(output, str(digest))) for digest in (before, after))
    if ours is None or theirs is None:
        return "which documents is not known here, where not both were measured"
    groups = {
        "changed": [name for name in ours if name in theirs and ours[name] != theirs[name]],
        "new": [name for name in theirs if name not in ours],
        "gone": [name for name in ours if name not in theirs],
    }
    return "; ".join(f"{len(names):,} {word}: {some(names)}" for word, names in groups.items() if names)


def _documents(path: Path) -> Mapping[str, str] | None:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return dict(line.split("\t", 1) for line in lines if "\t" in line)
