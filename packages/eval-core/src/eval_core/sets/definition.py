"""`dataset.toml`: what a set is called, what it is for, and from which pinned sources its corpus is rebuilt."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue, field_validator, model_validator

from eval_core.errors import EvalError
from eval_core.models import NAME, Closed, read_toml
from eval_core.scoring import metrics

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

#: Files larger than this are left out of a corpus and named in the lock.
MAX_BYTES = 1 << 20


class _Source(Closed):
    name: str = Field(pattern=NAME, description="What the source is called, in the lock and in overrides.")
    prefix: str | None = Field(
        default=None,
        description="Put before each document id, with a slash; the source's name where it is not given.",
    )
    metadata: dict[str, JsonValue] = Field(
        default={}, description="Added to the metadata of all its documents."
    )

    @property
    def moves(self) -> bool:
        """Whether another moment may give other documents."""
        return False

    @field_validator("prefix")
    @classmethod
    def _plain(cls, value: str | None) -> str | None:
        if value is not None and (value.startswith("/") or value.endswith("/")):
            raise ValueError(f"prefix {value!r} begins or ends with a slash; write it without")
        return value


class _Files(_Source):
    include: tuple[str, ...] = Field(
        default=("**",),
        description="Globs below `root`; `**` crosses folders. A file is taken if any matches.",
    )
    exclude: tuple[str, ...] = Field(
        default=(), description="Globs below `root` that leave a file out again."
    )
    root: str = Field(default="", description="A folder of the source; it is stripped from the ids.")
    max_bytes: int = Field(
        default=MAX_BYTES, ge=1, description="Larger files are left out, and named in the lock."
    )


class Inline(_Source):
    """The documents of the dataset's own `corpus.jsonl`, with the ids that they have there."""

    type: Literal["inline"]


class Git(_Files):
    """The files of one commit, read from git's objects and never from a working tree."""

    type: Literal["git"]
    url: str | None = Field(default=None, description="Where to fetch from.")
    path: str | None = Field(
        default=None, description="A repository on this machine, relative to the dataset."
    )
    commit: str | None = Field(default=None, description="The full commit id: 40 or 64 hexadecimal digits.")
    branch: str | None = Field(
        default=None, description="A branch instead: it moves, and is reported unpinned."
    )

    @property
    def moves(self) -> bool:
        """Whether it is a branch."""
        return self.commit is None

    @model_validator(mode="after")
    def _one_of_each(self) -> Git:
        if (self.url is None) == (self.path is None):
            raise ValueError(f"source {self.name!r}: give one of url and path")
        if (self.commit is None) == (self.branch is None):
            raise ValueError(f"source {self.name!r}: give one of commit and branch")
        if self.commit is not None and not _COMMIT.fullmatch(self.commit):
            raise ValueError(
                f"source {self.name!r}: commit {self.commit!r} is not a full commit id of 40 or 64 hexadecimal digits"
            )
        for option in (self.url, self.path, self.branch):
            if option is not None and (not option or option.startswith("-")):
                raise ValueError(f"source {self.name!r}: {option!r} cannot be a url, path or branch")
        return self


class Archive(_Files):
    """The files of one wheel of a package registry, pinned by its digest."""

    type: Literal["archive"]
    package: str = Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")
    version: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.!+_-]*$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Folder(_Files):
    """The files of a folder as they are now: reported unpinned."""

    type: Literal["dir"]
    path: str = Field(description="Relative to the dataset.", min_length=1)

    @property
    def moves(self) -> bool:
        """A folder is as it is now."""
        return True


Source = Annotated[Inline | Git | Archive | Folder, Field(discriminator="type")]


class Recipe(Closed):
    """Several sources make one corpus, in this order."""

    source: tuple[Source, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _distinct(self) -> Recipe:
        names = [source.name for source in self.source]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"sources share the name {sorted(twice)[0]!r}; give each its own")
        return self


class Definition(Closed):
    """A dataset's own description of itself."""

    name: str = Field(pattern=NAME)
    version: str = "1"
    description: str = ""
    licence: str = ""
    kind: str = Field(
        default="", description="Sent to a backend with each query, such as `memory` or `code`."
    )
    cutoffs: tuple[Annotated[int, Field(ge=1, le=10_000)], ...] = Field(default=(1, 5, 10), min_length=1)
    limit: int = Field(default=10, ge=1, le=10_000, description="How many documents are asked for.")
    headline: str | None = Field(
        default=None,
        description="The measure that floors are made for first; recall@10, or recall at the largest cut-off below it.",
    )
    statements: tuple[str, ...] = Field(
        default=(),
        description="What every report, comparison and published table of the set says of it, a sentence each.",
    )
    corpus: Recipe | None = None

    @field_validator("statements")
    @classmethod
    def _sentences(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            if not text.strip() or not text.isprintable():
                raise ValueError(f"statements: {text!r} should be a sentence on one line")
        return value

    @field_validator("headline")
    @classmethod
    def _a_measure(cls, value: str | None) -> str | None:
        try:
            if value is not None:
                metrics.parse(value)
        except EvalError as error:
            raise ValueError(f"headline: {error}") from error
        return value

    @model_validator(mode="after")
    def _within_limit(self) -> Definition:
        check_cutoffs(self.cutoffs, self.limit)
        if self.headline and (problem := metrics.headline_problem(self.headline, self.cutoffs, self.limit)):
            raise ValueError(f"headline {self.headline!r}: {problem}")
        return self

    def headline_at(self, cutoffs: tuple[int, ...]) -> str:
        """The headline measure of an arm with these cut-offs."""
        return self.headline or f"recall@{10 if 10 in cutoffs else cutoffs[-1]}"

    @property
    def moves(self) -> bool:
        """Whether a source of the corpus moves: a branch, a folder."""
        return self.corpus is not None and any(source.moves for source in self.corpus.source)


def check_cutoffs(cutoffs: tuple[int, ...], limit: int) -> None:
    """Refuse cut-offs that do not rise or that reach past the limit.

    Raises:
        ValueError: with the mend.
    """
    if list(cutoffs) != sorted(set(cutoffs)):
        raise ValueError(f"cutoffs {list(cutoffs)} should rise, each given once")
    if cutoffs[-1] > limit:
        fits = [k for k in cutoffs if k < limit] + [limit]
        raise ValueError(
            f"cut-off {cutoffs[-1]} is past the limit {limit}; raise limit, or write cutoffs = {fits}"
        )


def read_definition(folder: Path) -> Definition | None:
    """Read `dataset.toml`, or return None in a plain BEIR folder.

    Raises:
        Misuse, Faults: it is not TOML or does not fit.
    """
    path = folder / "dataset.toml"
    return read_toml(path, Definition, "dataset definition") if os.path.exists(path) else None
