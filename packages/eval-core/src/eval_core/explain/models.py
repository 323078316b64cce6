"""What `eval-core explain --format json` prints: for each query, where its judged documents stand and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, JsonValue

from eval_core.models import Closed

#: What became of a judged document.
Status = Literal[
    "within",  # retrieved at or above the cut-off
    "below",  # retrieved, below the cut-off
    "not-retrieved",  # not among what was asked for
    "filtered",  # the arm's filter hides it from the query
    "out-of-scope",
    "excluded",
    "not-visible",  # superseded, ended or not yet there at the query's time
    "absent",  # not in the corpus that was measured
    "not-scored",  # the row is errored, unscored or unscorable
]

#: What became of a document that a condition hides, by the condition.
STATUS_OF: Mapping[str, Status] = {
    "exclude": "excluded",
    "scope": "out-of-scope",
    "filter": "filtered",
    "time": "not-visible",
}


class Hidden(Closed):
    """Why a query cannot find a document: what it asks for, and what the document has."""

    by: Literal["exclude", "scope", "filter", "time"]
    key: str = Field(description="The metadata key, such as `kind` for a filter from it.")
    asked: JsonValue
    has: JsonValue


class Shown(Closed):
    """A document as it is shown. `shares` and `text` are null where the corpus that was measured is not there."""

    id: str
    rank: int | None = Field(default=None, ge=1)
    score: float | None = Field(default=None, description="The backend's, where the run file has it.")
    shares: tuple[str, ...] | None = Field(
        default=None, description="Words that it shares with the query, the rarest first."
    )
    text: str | None = Field(default=None, description="Title and text; an excerpt without --full.")


class JudgedDocument(Shown):
    """A judged document: what became of it, and what stands above it."""

    grade: int = Field(ge=0)
    before: int | None = Field(default=None, ge=1, description="Its rank in the baseline; null: not there.")
    status: Status
    hidden: tuple[Hidden, ...] = ()
    in_corpus: bool | None = Field(
        default=None, description="Whether it is in the corpus as it is now; null: no corpus to look in."
    )
    outranked: int | None = Field(
        default=None,
        ge=0,
        description="Documents not judged relevant that stand above it; of one not retrieved, all that were.",
    )
    outranked_by: tuple[str, ...] = Field(default=(), description="The first few of them.")
    own: tuple[str, ...] = Field(default=(), description="Words of its own, not the query's; see own_by.")


class ExplainedQuery(Closed):
    """One query: what it scored, where its judged documents stand, and what stands above the lowest in question."""

    id: str
    text: str
    meta: dict[str, JsonValue]
    outcome: Literal["scored", "errored", "unscored", "unscorable"]
    detail: str = Field(default="", description="Why the row is not scored.")
    value: float | None = Field(description="The headline measure; null: not scored.")
    before: float | None = Field(default=None, description="The same in the baseline.")
    words: tuple[str, ...] = Field(description="The query's distinct words, in its order.")
    retrieved: int | None = Field(
        ge=0, description="How many documents came back; null: the report does not say."
    )
    judged: tuple[JudgedDocument, ...]
    above: tuple[Shown, ...] = ()

    @property
    def astray(self) -> tuple[JudgedDocument, ...]:
        """The relevant documents in question: those not within the cut-off; where all are within it and the query
        still scores below 1, those that others outrank."""
        return astray(self.judged, self.value)


def astray(judged: tuple[JudgedDocument, ...], value: float | None) -> tuple[JudgedDocument, ...]:
    """See `ExplainedQuery.astray`."""
    relevant = [document for document in judged if document.grade > 0 and document.status != "not-scored"]
    outside = tuple(document for document in relevant if document.status != "within")
    if outside or value is None or value >= 1:
        return outside
    return tuple(document for document in relevant if document.outranked)


class Explanation(Closed):
    """All queries of one call."""

    schema_: Literal["explanation-v1"] = Field(default="explanation-v1", alias="schema")
    arm: str
    report: str = Field(description="The report's path.")
    run_id: str
    headline: str = Field(description="The measure that queries are told to be lost or missed by.")
    cutoff: int = Field(ge=1, description="The k that a document is within or below.")
    limit: int = Field(ge=1, description="How many documents were asked for.")
    n: int = Field(ge=0, description="Queries scored.")
    mean: float = Field(description="The headline measure over them.")
    corpus: Literal["same", "differs", "absent"] = Field(
        description="The corpus at hand: the one that was measured, another, or none. Only the first is quoted."
    )
    baseline: str | None = Field(default=None, description="The baseline's path.")
    baseline_mean: float | None = None
    own_by: Literal["rarest", "most-frequent"] | None = Field(
        default=None,
        description="Order of `own`: by how few documents of the corpus hold a word, or by how often the text repeats "
        "it (a corpus too large to be counted); null: no corpus.",
    )
    lost: tuple[str, ...] | None = Field(default=None, description="Query ids, worst first; null: not asked.")
    missed: tuple[str, ...] | None = Field(default=None, description="The same.")
    notes: tuple[str, ...] = Field(default=(), description="What limits this explanation.")
    queries: tuple[ExplainedQuery, ...]
