"""What the gate says, in the form that machines read."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from eval_core.models import Closed

Word = Literal["pass", "fail", "refused"]


class Reason(Closed):
    """Why an arm does not pass. `refused` reasons say that it cannot be graded, `fail` reasons that it was."""

    code: str
    word: Literal["fail", "refused"]
    message: str
    remedy: str | None = None
    metric: str | None = None


class Graded(Closed):
    """One measure against its floor."""

    metric: str
    value: float
    floor: float = Field(description="The lowest mean that passes.")
    misses: int | None = Field(default=None, description="For measures that are 0 or 1 a query.")
    max_misses: int | None = None
    baseline: float | None = None
    passed: bool
    category: str | None = Field(default=None, description="null: over all queries.")


class Significance(Closed):
    """How much of a measure's change against the baseline chance explains. Told, never graded."""

    metric: str
    difference: float
    low: float = Field(description="95% interval of the difference, paired bootstrap.")
    high: float
    p: float = Field(description="Two-sided: mid-p McNemar for measures of 0 or 1, else sign-flip.")
    test: str
    resolvable: bool = Field(description="Whether so many lost queries can be told from chance at this n.")


class Moved(Closed):
    """A query whose value of the measure changed against the baseline."""

    query: str
    text: str
    document: str = Field(description="The judged document whose rank moved, or the first judged one.")
    before: int | None = Field(description="Its rank in the baseline; null: not retrieved.")
    after: int | None
    metric: str
    change: float


class Changed(Closed):
    """A part of the system that is not what the baseline had."""

    part: str
    before: JsonValue
    after: JsonValue


class ArmVerdict(Closed):
    """The verdict of one arm."""

    arm: str
    set: str = ""
    verdict: Word
    n: int | None = None
    run_id: str | None = None
    reasons: tuple[Reason, ...] = ()
    graded: tuple[Graded, ...] = ()
    p95_ms: float | None = None
    budget_p95_ms: float | None = None
    system_changes: tuple[Changed, ...] = ()
    lost: tuple[Moved, ...] = ()
    gained: tuple[Moved, ...] = ()
    significance: Significance | None = Field(default=None, description="Of the first measure that fails.")
    provisional: bool = False
    tracked: bool = Field(default=False, description="Graded and told; it does not decide.")
    unbound: bool = False
    odds: str | None = Field(default=None, description="What the floors catch, and how often they cry wolf.")
    warnings: tuple[str, ...] = ()


class BarChange(Closed):
    """One thing that the policy says otherwise than that of the target branch."""

    arm: str | None
    what: str
    before: str | None
    after: str | None
    looser: bool
    reason: str | None = None


class Verdict(Closed):
    """The whole verdict. `exit_code` is the script's."""

    schema_: Literal["verdict-v1"] = Field(default="verdict-v1", alias="schema")
    verdict: Word
    exit_code: Literal[0, 1]
    arms: tuple[ArmVerdict, ...]
    reasons: tuple[Reason, ...] = Field(default=(), description="Of the policy as a whole.")
    not_gated: tuple[str, ...] = Field(default=(), description="Arms with a report and no floors.")
    target: str | None = Field(default=None, description="The revision whose bar this one is held against.")
    bar: tuple[BarChange, ...] = Field(default=(), description="How the bar differs from the target's.")
