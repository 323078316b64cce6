"""`lock.json`: which sources a corpus was made of, at which state, what was skipped, and the digests of the result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from eval_core.errors import Fault, Faults
from eval_core.faults import first
from eval_core.files import digest, read_text, write_text
from eval_core.models import Closed
from eval_core.sets.definition import Definition

#: The recipe's digest of a set whose corpus is taken as it lies on disk.
NO_RECIPE = "none"

_DIGEST = r"^[0-9a-f]{64}$"


class Oversize(Closed):
    """A file left out because it is larger than the source's `max_bytes`."""

    path: str = Field(description="Below the source's root.")
    bytes: int = Field(ge=0)


class Skipped(Closed):
    """What a source holds below its root and the corpus does not, counted by reason."""

    symlink: int = Field(default=0, ge=0)
    submodule: int = Field(default=0, ge=0)
    special: int = Field(default=0, ge=0, description="Sockets, pipes and devices.")
    binary: int = Field(default=0, ge=0, description="Files with a zero byte in their first 8000.")
    not_utf8: int = Field(default=0, ge=0, alias="not-utf8")
    excluded: int = Field(default=0, ge=0, description="Left out by the globs.")
    oversize: tuple[Oversize, ...] = ()


class LockedSource(Closed):
    """One source at the state that was read."""

    name: str
    type: Literal["inline", "git", "archive", "dir"]
    location: str = Field(description="As the recipe has it: an override's place is a machine's own matter.")
    pinned: bool = Field(description="Whether the recipe names this state and no other.")
    branch: str | None = None
    commit: str | None = None
    tree: str | None = Field(default=None, description="The id of the commit's tree.")
    sha256: str | None = Field(default=None, description="Of the archive.")
    documents: int = Field(ge=0)
    bytes: int = Field(ge=0, description="Of the documents' texts, in UTF-8.")
    skipped: Skipped = Skipped()


class Lock(Closed):
    """What was reconstructed. The same recipe gives the same lock, byte for byte, on every machine."""

    schema_: Literal["lock-v1"] = Field(default="lock-v1", alias="schema")
    dataset: str
    version: str
    documents: int = Field(ge=0)
    digest: str = Field(
        pattern=_DIGEST, description="SHA-256 over id and digest of each document, sorted by id."
    )
    recipe: str = Field(
        pattern=rf"{_DIGEST}|^{NO_RECIPE}$", description="SHA-256 of the canonical recipe, or `none`."
    )
    file_sha256: str = Field(pattern=_DIGEST, description="Of the bytes of corpus.jsonl.")
    pinned: bool = Field(description="Whether every source is.")
    sources: tuple[LockedSource, ...] = ()


def recipe_digest(definition: Definition | None) -> str:
    """SHA-256 of the canonical recipe, 64 hexadecimal digits; `none` where there is no recipe.

    Values equal to their defaults do not count, so that writing a default out is no change of the recipe.
    """
    if definition is None or definition.corpus is None:
        return NO_RECIPE
    return digest(definition.corpus.model_dump(mode="json", exclude_defaults=True))


def lock_text(lock: Lock) -> str:
    """The file's text: JSON with the model's order of keys, absent values left out, one newline at the end."""
    table = lock.model_dump(mode="json", by_alias=True, exclude_none=True)
    return json.dumps(table, indent=2, ensure_ascii=False) + "\n"


def write_lock(path: Path, lock: Lock) -> None:
    """Write a lock atomically.

    Raises:
        CouldNot: the folder cannot be written.
    """
    write_text(path, lock_text(lock))


def read_lock(path: Path) -> Lock:
    """Read a lock.

    Raises:
        Misuse: it is absent or not UTF-8.
        Faults: it is not JSON or does not fit.
    """
    text = read_text(path, "lock")
    try:
        return Lock.model_validate_json(text)
    except ValidationError as error:
        key, value, what = first(error, Lock)
        raise Faults(
            [Fault(what, file=path, key=key, value=value)], consequence="the lock was not used"
        ) from error
