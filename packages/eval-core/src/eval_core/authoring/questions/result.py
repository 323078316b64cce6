"""What `eval-core query add --format json` prints: what was added, what to look at, what to run next."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from eval_core.models import Closed


class AddedQuestion(Closed):
    """One question, as the set now has it."""

    id: str
    text: str
    relevant: dict[str, int] = Field(description="Grades by document id.")
    line: int = Field(ge=1, description="Where it stands in the file that it came from.")


class Added(Closed):
    """The questions of one call."""

    schema_: Literal["added-v1"] = Field(default="added-v1", alias="schema")
    name: str
    folder: str
    split: str
    source: str
    dry_run: bool = Field(description="Whether nothing was written.")
    before: int = Field(ge=0, description="Queries of the split, without the new ones.")
    queries: int = Field(ge=1, description="Queries of the split, with them.")
    added: tuple[AddedQuestion, ...] = Field(min_length=1)
    warnings: tuple[str, ...] = Field(
        default=(), description="What a person should look at, with file and line."
    )
    arms: tuple[str, ...] = Field(
        default=(), description="Arms of eval.toml that are asked the new questions."
    )
    next: tuple[str, ...] = Field(
        default=(), description="Commands that move their bar, once the set is committed."
    )
