"""What `eval-core import --format json` prints: what became a set, and what did not."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from eval_core.models import Closed

Reason = Literal["no-document", "no-match", "several-matches", "no-positive"]


class LeftOut(Closed):
    """A query that is not in the set."""

    id: str
    line: int = Field(ge=1, description="Of the imported file.")
    reason: Reason
    what: str


class Imported(Closed):
    """An imported set."""

    schema_: Literal["imported-v1"] = Field(default="imported-v1", alias="schema")
    name: str
    folder: str
    importer: str
    file: str
    fields: dict[str, str] = Field(description="Which field of the file was read as what.")
    match: Literal["id", "path", "prefix", "substring"] = Field(description="How documents were looked up.")
    truth: Literal["any", "all"] = Field(
        description="Whether one of several documents suffices: headline hit@1."
    )
    documents: int = Field(ge=1)
    queries: int = Field(ge=1)
    judgements: int = Field(ge=1)
    left_out: tuple[LeftOut, ...] = Field(default=(), description="Queries that are not in the set.")
    dropped: dict[str, int] = Field(
        default={}, description="What the set does not carry: fields and judgements, with how many there are."
    )
    warnings: tuple[str, ...] = Field(default=(), description="What was read, and may not be meant.")
