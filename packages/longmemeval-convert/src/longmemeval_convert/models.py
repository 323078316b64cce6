"""What a conversion chose, counted and found: `conversion.json`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from eval_core.models import Closed

Variant = Literal["oracle", "s", "m", "other"]


class Choices(Closed):
    """What the user chose; a set is made of the file and of these alone."""

    granularity: Literal["session", "turn"] = Field(default="session", description="What a document is.")
    text: Literal["user", "all", "assistant"] = Field(
        default="user", description="Whose turns a document holds."
    )
    gold: Literal["answers", "authors"] = Field(
        default="answers", description="Which judgements are the split test; the others have their own name."
    )
    ids: Literal["opaque", "original"] = "opaque"
    types: tuple[str, ...] = Field(default=(), description="Types of question to take; none: all.")
    sample: int | None = Field(default=None, ge=1, description="How many questions to take, stratified.")
    seed: int = 0


class Origin(Closed):
    """The file that was converted."""

    bytes: int = Field(description="Its size, decompressed.")
    sha256: str = Field(description="Of its bytes, decompressed.")
    release: str = Field(
        description="A published file, by its digest; edited: their questions, in other bytes; or unknown."
    )
    variant: Variant = Field(description="By its content: oracle where histories hold the evidence alone.")
    questions: int
    types: dict[str, int]
    abstention: int


class Counts(Closed):
    """What was counted in the questions that were taken."""

    questions: int
    types: dict[str, int]
    abstention: int = Field(description="Questions that their history does not answer.")
    without_evidence: int = Field(description="Others without any judgement: never asked.")
    without_user_evidence: int = Field(
        description="Answerable questions of which no turn of the user is marked as evidence."
    )
    late_evidence: int = Field(description="Questions with evidence dated after the question.")
    whole_number_answers: int
    sessions: int = Field(description="Distinct ones, a question each.")
    turns: int
    documents: int
    candidates: float = Field(description="Documents a question, their median.")
    empty_sessions: int = Field(description="Without a turn that is not blank.")
    empty_documents: int = Field(description="Without text: nothing finds them.")
    blank_turns: int
    duplicates_merged: int = Field(description="Sessions that a history holds again.")
    unjudged: int = Field(description="Evidence sessions without a judged document.")
    unmarked: int = Field(
        description="Evidence sessions with a turn that does not say whether it is evidence."
    )
    surrogates_replaced: int = Field(description="Halves of surrogate pairs, written as U+FFFD.")


class Denominators(Closed):
    """Questions that each kind of judgement scores; None where the file does not mark evidence."""

    answers: int
    authors: int | None


class Conversion(Closed):
    """A conversion, as it is written beside the set."""

    schema_: Literal["conversion-v1"] = Field(alias="schema")
    name: str
    choices: Choices
    origin: Origin
    counts: Counts
    denominators: Denominators
    statements: tuple[str, ...] = Field(description="What every reader of a number should know.")
