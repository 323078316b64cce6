"""The limits of a set and the room that an arm leaves, as a report carries them."""

from __future__ import annotations

from pydantic import Field

from eval_core.models import Closed


class Overlap(Closed):
    """Share of a query's distinct words that stand in its relevant documents, the best of them."""

    mean: float = Field(ge=0, le=1)
    whole: float = Field(
        ge=0, le=1, description="Share of queries all of whose words stand in one relevant document."
    )
    none: float = Field(
        ge=0, le=1, description="Share of queries that share no word with any relevant document."
    )
    others: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Mean over queries of the mean share of their words that stands in another document of their "
        "scope; null: there is no other.",
    )

    def sentence(self) -> str:
        """It in words; the share with other documents is what that with the targets is held against."""
        told = f"queries share {self.mean:.0%} of their words with their targets"
        return told if self.others is None else f"{told}, {self.others:.0%} with other documents"


class NearDuplicate(Closed):
    """A judged document and an unjudged one that is nearly the same text."""

    query: str
    judged: str
    unjudged: str


class Saturation(Closed):
    """How much room an arm leaves to a better one."""

    metric: str
    headroom_points: float = Field(ge=0, description="From its mean to 1, in points.")
    whole: float = Field(ge=0, le=1, description="Share of queries that cannot score higher.")


class Limits(Closed):
    """The limits of a set, measured from its texts and labels alone."""

    queries: int = Field(ge=0, description="Queries with a positive judgement.")
    one_query_points: float = Field(
        ge=0, description="What one query, wholly lost, moves a mean by, in points."
    )
    smallest_change_points: float = Field(
        ge=0,
        description="Five queries wholly lost: fewer can differ by chance (McNemar's mid-p, two-sided, 5%).",
    )
    overlap: Overlap
    sources: dict[str, int] = Field(default={}, description="Queries by `source`.")
    categories: dict[str, int] = Field(default={}, description="Queries by `category`.")
    leaks: int = Field(
        ge=0,
        description="Queries of four words or more that stand word for word in a document that they can find.",
    )
    leaked: tuple[str, ...] = ()
    near_duplicates: int = Field(
        ge=0,
        description="Judged documents with a near-duplicate that is not judged and that their queries can find.",
    )
