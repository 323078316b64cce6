"""What `eval-core score --format json` prints; the command itself writes it without these."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from eval_core.models import Closed


class ScoreCounts(Closed):
    """What was scored and what was not. Zero counts are kept: they are the finding."""

    scored: int = Field(ge=1, description="Queries that were scored; the missing are among them.")
    missing: int = Field(ge=0, description="Judged queries that the run does not answer: they count 0.")
    unjudged: int = Field(ge=0, description="Queries of the run without judgements: ignored.")
    unscorable: int = Field(
        ge=0,
        description="Queries without a document of grade 1 or more, or of the lowest rel that is asked for: not in the "
        "mean, or 0 with --unscorable zero.",
    )
    left_out: int = Field(
        ge=0, description="Rows of our own run that are errored, unscored or unscorable, or not there."
    )
    duplicates: int = Field(ge=0, description="Documents dropped as repeats; the better place stands.")
    skipped: int = Field(ge=0, description="Queries whose own document was left out, with --skip-own.")
    contradicted: int = Field(
        ge=0,
        description="Queries whose rank column orders documents otherwise than their scores, which decide; of ranked "
        "lists, whose scores rise down the list, which decides.",
    )
    tied: int = Field(
        ge=0, description="Queries with a judged document in a tie: the order there is that of document ids."
    )


class ScoreIds(Closed):
    """The ids of queries that are counted, in the order of the judgements."""

    missing: tuple[str, ...]
    unscorable: tuple[str, ...]
    left_out: tuple[str, ...]
    contradicted: tuple[str, ...]
    tied: tuple[str, ...]


class Estimate(Closed):
    """A measure's mean over the scored queries, and its 95% interval."""

    mean: float = Field(ge=0, le=1)
    low: float = Field(ge=0, le=1)
    high: float = Field(ge=0, le=1)


class MeasureScore(Estimate):
    """Of a run, beside it trec_eval's own mean."""

    mean_with_unscorable: float = Field(
        ge=0, le=1, description="The mean with 0 for each unscorable query besides, as trec_eval -c has it."
    )
    n: int = Field(ge=1, description="Queries in this mean: fewer where rel= leaves some nothing relevant.")


class Score(Closed):
    """A run scored against judgements."""

    schema_: Literal["score-v1"] = Field(alias="schema")
    run: str
    qrels: str
    ties: Literal["trec", "id", "given"] = Field(
        description="Order of equal scores: by document id, descending (trec) or ascending; given: ranked lists."
    )
    n: int = Field(ge=1, description="Queries in the mean of a measure that takes every grade.")
    counts: ScoreCounts
    ids: ScoreIds
    measures: dict[str, MeasureScore]
    queries: dict[str, dict[str, float]] | None = Field(
        default=None,
        description="By query, in the order of the judgements: a value a measure. With --per-query.",
    )


class ScoreTable(Closed):
    """Several runs scored against the same judgements, in the order in which they were given."""

    schema_: Literal["scores-v1"] = Field(alias="schema")
    runs: tuple[Score, ...] = Field(min_length=2)
