"""What a comparison searches: the text files below a root, and where a path below it leads."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from eval_core.contract.models import CorpusFacts
from eval_core.errors import Misuse
from eval_core.reconstruct import folder
from eval_core.reconstruct.selection import Entry, Tally, documents
from eval_core.sets.corpus import corpus_digest, document_line
from eval_core.sets.definition import Folder

_TEXT = "md markdown mdx rst adoc org txt tex"
_CODE = (
    "py pyi go rs c h cc cpp hpp cs java kt scala swift js jsx mjs cjs ts tsx vue rb php pl lua r jl hs ml ex exs erl "
    "clj el sh bash zsh fish ps1 sql proto graphql tf nix zig css html toml yaml yml"
)
#: What is searched where nothing else is said: Markdown, plain text, source. JSON is not: manifests, reports and
#: query logs hold the queries word for word.
INCLUDE = tuple(
    ["**/README", "**/LICENSE", "**/Makefile", "**/Dockerfile"]
    + [f"**/*.{suffix}" for suffix in f"{_TEXT} {_CODE}".split()]
)
#: Folders that version control and tools keep; `.git` and `.eval` are never looked into.
EXCLUDE = tuple(
    f"**/{name}/**"
    for name in (".hg", ".svn", ".jj", ".bzr", "node_modules", "__pycache__", ".venv", ".tox", ".nox")
)

Place = Literal["file", "absolute", "dotted", "absent", "outside", "not-a-file"]

WORDS: dict[Place, str] = {
    "file": "is a file that is not in the corpus",
    "absolute": "is absolute",
    "dotted": "holds '..'",
    "absent": "does not exist below the search root",
    "outside": "leads out of the search root",
    "not-a-file": "is not a file",
}


def place(root: Path, path: str) -> Place:
    """What a path relative to `root`, itself resolved, leads to now; links are followed to their ends."""
    if os.path.isabs(path):
        return "absolute"
    if ".." in path.split("/"):
        return "dotted"
    try:
        real = (root / path).resolve(strict=True)
        if not real.is_relative_to(root):
            return "outside"
        return "file" if real.is_file() else "not-a-file"
    except (OSError, RuntimeError, ValueError):  # absent, a loop of links, no name of a file
        return "absent"


def search(root: Path, manifest: Path, corpus: Path) -> tuple[CorpusFacts, dict[str, str]]:
    """Write the text files below the root to `corpus`. Returns what they are, and by document id their paths."""
    source = Folder(type="dir", name="root", path=".", prefix="", include=INCLUDE, exclude=EXCLUDE)
    own = os.path.relpath(os.path.realpath(manifest), os.path.realpath(root)).replace(os.sep, "/")
    tally = Tally()
    unnamable = 0

    def entries() -> Iterator[Entry]:
        nonlocal unnamable
        for entry in folder.entries(source, root, None, ()):
            try:
                path = entry.path.decode()
            except UnicodeDecodeError:
                unnamable += 1
                continue
            if path != own:  # it holds the queries word for word
                yield entry

    digests: dict[str, bytes] = {}
    paths: dict[str, str] = {}
    with corpus.open("wb") as stream:
        try:
            for document in documents(source, entries(), tally):
                line = document_line(document)
                stream.write(line + b"\n")
                digests[document.id] = hashlib.sha256(line).digest()
                paths[document.id] = document.metadata["path"]
        except Misuse as error:
            what = f"there is no text to search: {error.details.what}"
            raise Misuse("corpus-empty", what, file=root) from error
    facts = CorpusFacts(
        sha256=corpus_digest(digests.items()),
        documents=tally.documents,
        bytes=tally.bytes,
        skipped=tally.skipped(),
        unnamable=unnamable,
    )
    return facts, paths
