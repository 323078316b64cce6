"""What `eval-core publish --format json` prints: each mark, what it says and what its source gives."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from eval_core.models import Closed

State = Literal["equal", "differs", "refused"]


class Mark(Closed):
    """One mark of a page. A table is one mark."""

    page: str
    line: int = Field(ge=1, description="Of the mark; of the first differing line in a table.")
    target: str = Field(description="What it asks for: arm and measure, or a key of the file.")
    written: str = Field(description="What stood there; of a table, its first differing line, or nothing.")
    given: str | None = Field(description="What its source gives; null where that is refused.")
    state: State


class Refusal(Closed):
    """Why what the pages claim does not stand."""

    code: str
    message: str
    remedy: str | None = None


class Waived(Closed):
    """Numbers of divergent provenance that a waiver lets stand."""

    arm: str
    fingerprint: str
    reason: str
    findings: tuple[str, ...] = Field(description="What the waiver covers.")


class Publication(Closed):
    """One call."""

    schema_: Literal["publish-v1"] = Field(default="publish-v1", alias="schema")
    checked: bool = Field(description="Whether it was --check, which changes nothing.")
    exit_code: Literal[0, 1]
    pages: tuple[str, ...] = Field(description="The pages that were read.")
    written: tuple[str, ...] = Field(default=(), description="The pages that were rewritten.")
    numbers: int = Field(ge=0, description="How many values the marks hold, each cell of a table counted.")
    marks: tuple[Mark, ...]
    reasons: tuple[Refusal, ...] = ()
    waived: tuple[Waived, ...] = ()
    warnings: tuple[str, ...] = ()
