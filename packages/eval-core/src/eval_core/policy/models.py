"""`floors.toml` and `budgets.toml`: what people choose, and the numbers that follow, shown for the reader.

A field says by its `looser` mark in which direction it lets more pass; what asks for a reason, and what a branch
loosened, is read from these marks and from nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from eval_core.models import Closed
from eval_core.policy.evidence import RUN_ID

FLOORS_SCHEMA, BUDGETS_SCHEMA = "floors-v2", "budgets-v2"

#: Misses between the worst run and the floor, where nobody chooses otherwise.
MARGIN = 2

#: A4: how far recall@10 may fall below the baseline, in points.
DROP = 2.0

#: A4: the budget of an arm that has no other, in milliseconds.
P95_MS = 300.0

#: Runs from which a margin can be measured; fewer make it a convention.
SETTLED_RUNS = 10

#: Queries that a category needs to be floored: with fewer, one query is more than five points.
CATEGORY_QUERIES = 20

#: The widest drift of a corpus: half of its documents either way.
MOST_DRIFT = 0.5

#: More queries than any set has; beyond it arithmetic on a mistyped number would overflow.
MOST_QUERIES = 10**9

#: What a policy may require of every report, and what it means.
REQUIREMENTS: Mapping[str, str] = {
    "head": "it was measured at the commit that is checked out, or one that differs in the policy alone",
    "clean": "it was measured on a tree without uncommitted changes",
    "provenance": "its provenance sidecar is there and fits it, and eval.toml",
    "class": "it was measured in the class of environment of the evidence",
    "every-arm": "every arm that was measured has floors",
}

Requirement = Literal["head", "clean", "provenance", "class", "every-arm"]

#: What is required unless the file says otherwise.
REQUIRED: tuple[Requirement, ...] = ("head", "clean", "provenance")


def choice(looser: Literal["higher", "fewer", "other"]) -> dict[str, Any]:
    """The mark of a field that people choose: `higher` numbers, `fewer` members, or any `other` value let more pass."""
    return {"looser": looser}


def shown() -> dict[str, Any]:
    """The mark of a field that lets nothing pass: it follows from the evidence, says why, or holds tables."""
    return {"looser": None}


Reasons = dict[str, Annotated[str, Field(min_length=1)]]


class CategoryFloors(Closed):
    """The floors of one category of queries, as they follow from the evidence."""

    n: int = Field(ge=1, le=MOST_QUERIES, json_schema_extra=shown())
    floors: dict[str, float] = Field(default={}, json_schema_extra=shown())
    misses_allowed: dict[str, int] = Field(default={}, json_schema_extra=shown())


class ArmFloors(Closed):
    """One table `[arms."NAME"]` of floors.toml."""

    runs: tuple[Annotated[str, Field(pattern=RUN_ID)], ...] = Field(
        description="The runs that the floors stand on, by start; the last is the baseline.",
        json_schema_extra=shown(),
    )
    n: int = Field(
        ge=1, le=MOST_QUERIES, description="Queries that must be scored, exactly.", json_schema_extra=shown()
    )
    margin: Annotated[int, Field(ge=0, le=MOST_QUERIES)] | Literal["derived"] = Field(
        default=MARGIN,
        description="Misses between the worst run and the floor; `derived`: as many as the runs' own flips explain.",
        json_schema_extra=choice("higher"),
    )
    corpus: Literal["pinned", "drifts"] = Field(
        default="pinned",
        description="`drifts`: the sources of the corpus move, and its documents may change.",
        json_schema_extra=choice("other"),
    )
    drift: Annotated[float, Field(gt=0, le=MOST_DRIFT)] | None = Field(
        default=None,
        description="With corpus = 'drifts': how far the number of documents may be from the baseline's, as a share.",
        json_schema_extra=choice("higher"),
    )
    by_category: bool = Field(
        default=False,
        description=f"Whether categories of at least {CATEGORY_QUERIES} queries have floors, too.",
        json_schema_extra=choice("other") | {"stricter": True},
    )
    floors: dict[str, float] = Field(
        default={},
        description="By measure, the lowest mean that passes: shown to 6 decimals.",
        json_schema_extra=shown(),
    )
    misses_allowed: dict[str, int] = Field(
        default={}, description="Of hit@k and all@k: the most misses that pass.", json_schema_extra=shown()
    )
    categories: dict[str, CategoryFloors] = Field(default={}, json_schema_extra=shown())
    reasons: Reasons = Field(
        default={},
        description="By key: why a choice lets more pass than its default, why a measure is left out, or why the bar "
        "(`floors`), the task (`task`) or the class of the evidence (`class`) was changed.",
        json_schema_extra=shown(),
    )

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that have a floor."""
        return (*self.floors, *self.misses_allowed)


class Floors(Closed):
    """The whole of floors.toml."""

    schema_: Literal["floors-v2"] = Field(alias="schema", json_schema_extra=shown())
    min_gate: str | None = Field(
        default=None,
        pattern=r"^[0-9]+(\.[0-9]+)*$",
        description="An older gate exits 2.",
        json_schema_extra=shown(),
    )
    require: tuple[Requirement, ...] = Field(
        default=REQUIRED,
        description="What every report must show beyond its own digests.",
        json_schema_extra=choice("fewer"),
    )
    reasons: Reasons = Field(
        default={}, description="By key: why less is required than usual.", json_schema_extra=shown()
    )
    retired: dict[str, Annotated[str, Field(min_length=1)]] = Field(
        default={},
        description="Arms that are gone, and why: their evidence may lie on.",
        json_schema_extra=shown(),
    )
    arms: dict[str, ArmFloors] = Field(default={}, json_schema_extra=shown())


class Budget(Closed):
    """One table `[arms."NAME"]` of budgets.toml."""

    p95_ms: Annotated[float, Field(gt=0)] | None = Field(
        default=None,
        description=f"Most milliseconds at the 95th percentile; {P95_MS:g} where there is none, but for services.",
        json_schema_extra=choice("higher"),
    )
    max_drop: dict[str, Annotated[float, Field(ge=0, le=100)]] = Field(
        default={},
        description="By measure, how far it may fall below the baseline, in points.",
        json_schema_extra=choice("higher"),
    )
    max_drop_everywhere: Annotated[float, Field(ge=0, le=100)] | None = Field(
        default=None,
        description="How far every measure may fall, overall and in each category, in points.",
        json_schema_extra=choice("higher"),
    )
    reasons: Reasons = Field(
        default={}, description="By key: why it allows more than is usual.", json_schema_extra=shown()
    )


class Budgets(Closed):
    """The whole of budgets.toml."""

    schema_: Literal["budgets-v2"] = Field(alias="schema")
    arms: dict[str, Budget] = Field(default={})
