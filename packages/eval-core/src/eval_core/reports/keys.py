"""The two keys: what was asked (task) and what answered (system), as named parts under one digest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, JsonValue, model_validator

from eval_core.files import digest

#: Parts of the task key, in the order in which differences are told. `none` stands for a part that a set does not have.
TASK_PARTS = (
    "query_ids",
    "queries",
    "judgements",
    "split",
    "kind",
    "corpus",
    "recipe",
    "timeline",
    "links",
    "concepts",
    "limit",
    "filter",
    "scale",
    "metrics",
    "cutoffs",
)

#: Parts of the system key.
SYSTEM_PARTS = ("backend", "options", "files", "scoping", "expand", "implementation")


class Key(BaseModel):
    """A table of named parts and the SHA-256 over its canonical form.

    A key whose digest does not fit its parts does not load.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", defer_build=True)

    parts: dict[str, JsonValue]
    sha256: str

    @model_validator(mode="after")
    def _holds(self) -> Key:
        if self.sha256 != digest(self.parts):
            raise ValueError("sha256 is not the digest of the parts")
        return self

    @classmethod
    def of(cls, parts: Mapping[str, Any]) -> Key:
        """Make a key of JSON values."""
        table = dict(parts)
        return cls(parts=table, sha256=digest(table))


class Difference(NamedTuple):
    """A part that differs. `None` where a side does not have it."""

    part: str
    ours: Any
    theirs: Any


def differences(
    ours: Mapping[str, Any], theirs: Mapping[str, Any], order: tuple[str, ...] = TASK_PARTS
) -> list[Difference]:
    """Name each part in which two keys differ, in `order`, unknown parts last."""
    names = [*order, *sorted((set(ours) | set(theirs)) - set(order))]
    return [
        Difference(name, ours.get(name), theirs.get(name))
        for name in names
        if ours.get(name) != theirs.get(name)
    ]


def task_differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[Difference]:
    """Name each part in which two tasks differ. Equal documents are equal from wherever they came: a recipe counts only
    where the corpus differs, too."""
    alike = same_documents(ours, theirs)
    return [d for d in differences(ours, theirs) if not (alike and d.part == "recipe")]


def same_documents(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    """Whether two tasks are of the same documents, whatever recipe gave them."""
    return ours.get("corpus") is not None and ours.get("corpus") == theirs.get("corpus")


def nested_differences(ours: Any, theirs: Any, prefix: str = "") -> list[Difference]:
    """Name the innermost table entries in which two parts differ, such as `options.k1`."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        found: list[Difference] = []
        for name in sorted(set(ours) | set(theirs)):
            dotted = f"{prefix}.{name}" if prefix else str(name)
            found += nested_differences(ours.get(name), theirs.get(name), dotted)
        return found
    return [] if ours == theirs else [Difference(prefix, ours, theirs)]


def task_digests(
    queries: Iterable[tuple[str, str, Mapping[str, Any]]], judgements: Iterable[tuple[str, Mapping[str, int]]]
) -> dict[str, str]:
    """The parts of the task key that a reader recomputes from a report's rows.

    Args:
        queries: (id, text, metadata with a meaning) of each query that is put.
        judgements: (query id, {document id: grade}) of each of them; an unjudged query counts as having none.
    """
    return digested_parts(
        ((name, query_digest(text, meaning)) for name, text, meaning in queries), judgements
    )


#: Hexadecimal digits of a query's digest: 128 bits.
DIGITS = 32


def query_digest(text: str, meaning: Mapping[str, Any]) -> str:
    """The digest of a query's text and of its metadata with a meaning."""
    return digest([text, dict(meaning)])[:DIGITS]


def digested_parts(
    queries: Iterable[tuple[str, str]], judgements: Iterable[tuple[str, Mapping[str, int]]]
) -> dict[str, str]:
    """The same of (id, digest) of each query; see `query_digest`."""
    asked = sorted(queries)
    return {
        "query_ids": digest([name for name, _ in asked]),
        "queries": digest(asked),
        "judgements": digest(
            [[name, sorted(grades.items())] for name, grades in sorted(judgements) if grades]
        ),
    }
