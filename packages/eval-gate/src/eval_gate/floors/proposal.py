"""What `eval-gate floor --format json` prints."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from eval_core.models import Closed
from eval_core.policy import ArmFloors, Budget
from eval_gate.verdict import BarChange


class RunFacts(Closed):
    """One of the runs that the floors stand on."""

    run_id: str
    started: str
    commit: str | None
    class_: str = Field(alias="class")
    ci_run: str | None


class BarMove(Closed):
    """A bar, and what the baseline has of its measure, before and now; null where there was none."""

    measure: str
    category: str | None
    n: int
    before: float | None
    now: float
    bar_before: float | None
    bar: float = Field(description="The lowest mean that passes.")
    misses_before: int | None = Field(default=None, description="Of hit@k and all@k: queries that miss.")
    misses: int | None = None
    allowed_before: int | None = Field(default=None, description="Of hit@k and all@k: misses that pass.")
    allowed: int | None = None
    rule: Literal["floor", "drop", "everywhere"]
    queries: int = Field(
        description="Queries that the baseline answers and that may be lost, none being gained."
    )


class QueryMove(Closed):
    """A query whose headline value differs from the baseline that stood, and the judged document that moved most."""

    query: str
    document: str
    before: int | None = Field(description="Its rank; null: not retrieved.")
    after: int | None


class ArmProposal(Closed):
    """The policy of one arm as it would stand, or stands now."""

    moved: bool = Field(description="false: no number moved, so that nothing is written.")
    runs: tuple[RunFacts, ...]
    runs_agree: bool = Field(description="Whether the runs agree in every ranking.")
    floors: ArmFloors
    budget: Budget
    p95_ms: float | None = Field(description="The latency budget that holds.")
    bars: tuple[BarMove, ...]
    changes: tuple[BarChange, ...]
    lost: tuple[QueryMove, ...] = ()
    gained: tuple[QueryMove, ...] = ()
    odds: tuple[str, ...] = Field(default=(), description="What the bar catches, in words.")


class Proposal(Closed):
    """The policy as it would stand, or stands now."""

    schema_: Literal["floor-proposal-v2"] = Field(default="floor-proposal-v2", alias="schema")
    policy: str
    written: tuple[str, ...] = Field(default=(), description="The files that were written or removed.")
    notes: tuple[str, ...] = ()
    arms: dict[str, ArmProposal]
