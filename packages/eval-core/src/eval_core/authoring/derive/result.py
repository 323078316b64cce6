"""What `eval-core derive --format json` prints: what was drafted, what was not and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from eval_core.authoring.derive.drafts import Draft
from eval_core.models import Closed
from eval_core.sets import Query


class DraftSample(Closed):
    """One draft, with the documents that are judged relevant to it."""

    id: str
    source: str
    text: str
    documents: tuple[str, ...]
    origin: tuple[str, ...] = Field(description="`path:line name`, of each place that it comes from.")


class Drafted(Closed):
    """A drafted set."""

    schema_: Literal["drafted-v1"] = Field(default="drafted-v1", alias="schema")
    name: str
    folder: str
    commit: str | None = Field(default=None, description="That the documents are read at; none for a folder.")
    documents: int = Field(ge=0, description="In the corpus that reconstructing gives.")
    queries: int = Field(ge=1)
    sources: dict[str, int] = Field(description="Drafts by `source`.")
    found: int = Field(ge=1, description="Drafts before `--limit`.")
    dropped: dict[str, int] = Field(
        default={}, description="What became no draft, by reason; zero counts are told."
    )
    unparsed: tuple[str, ...] = Field(default=(), description="Files that do not parse.")
    sheet: str | None = Field(
        default=None, description="The sheet that holds the drafts in place of the set."
    )
    samples: tuple[DraftSample, ...] = Field(description="Evenly spread.")


def draft_id(number: int) -> str:
    """`d0001` for the first."""
    return f"d{number:04d}"


def asked(drafts: Sequence[Draft]) -> tuple[list[Query], dict[str, dict[str, int]]]:
    """Drafts as the queries of a set, with what is judged relevant to each; their ids are given here."""
    queries = []
    for number, draft in enumerate(drafts, 1):
        metadata: dict[str, Any] = {"category": draft.category, "source": draft.source}
        if draft.exclude:
            metadata["exclude"] = list(draft.exclude)
        metadata["origin"] = [str(origin) for origin in draft.origins]
        queries.append(Query(draft_id(number), draft.text, metadata))
    judged = {draft_id(n): dict.fromkeys(draft.documents, 1) for n, draft in enumerate(drafts, 1)}
    return queries, judged


def samples(drafts: list[Draft], count: int = 5) -> tuple[DraftSample, ...]:
    """Evenly spread drafts, the first among them."""
    step = max(1, len(drafts) // count)
    return tuple(
        DraftSample(
            id=draft_id(place + 1),
            source=drafts[place].source,
            text=drafts[place].text,
            documents=drafts[place].documents,
            origin=tuple(map(str, drafts[place].origins)),
        )
        for place in range(0, len(drafts), step)[:count]
    )
