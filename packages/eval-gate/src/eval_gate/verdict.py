"""What the gate says, in the form that machines read."""

from __future__ import annotations

import math
from typing import Literal, Self

from pydantic import Field, JsonValue, computed_field, model_validator

from eval_core.console import utf8
from eval_core.errors import UNSET, Details, EvalError, sentence
from eval_core.models import Closed

Word = Literal["pass", "fail", "refused"]


class Reason(Closed):
    """Why an arm does not pass. `refused` reasons say that it cannot be graded, `fail` reasons that it was.

    The fields are those of `eval_core.errors.Details`; `code` is an entry of docs/reasons.md.
    """

    code: str
    word: Literal["fail", "refused"]
    what: str
    file: str | None = None
    line: int | None = None
    subject: str | None = None
    key: str | None = Field(default=None, description="The measure or key that it is about.")
    value: JsonValue = None
    category: str | None = None
    bar: float | None = None
    mend: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_its_sentence(cls, value: object) -> object:
        """The sentence that a verdict's JSON holds follows from the fields, so it is not read."""
        return {k: v for k, v in value.items() if k != "message"} if isinstance(value, dict) else value

    @computed_field  # type: ignore[prop-decorator]  # pydantic's own form of a property that is dumped
    @property
    def message(self) -> str:
        """What is wrong, in one sentence."""
        value = UNSET if self.value is None else self.value
        return sentence(
            Details(
                code=self.code,
                what=self.what,
                file=self.file,
                line=self.line,
                subject=self.subject,
                key=self.key,
                value=value,
                category=self.category,
            )
        )

    @classmethod
    def of(cls, error: EvalError | Details, word: Literal["fail", "refused"] = "refused") -> Self:
        """The reason that an error or a fault gives."""
        d = error.details if isinstance(error, EvalError) else error
        value = None if d.value is UNSET else d.value
        if (
            not isinstance(value, str | int | float | bool | None)
            or value in (math.inf, -math.inf)
            or value != value
        ):
            value = str(value)  # JSON has no NaN and no infinity
        return cls(
            code=d.code,
            word=word,
            what=utf8(d.what),
            file=_text(d.file),
            line=d.line,
            subject=_text(d.subject),
            key=_text(d.key),
            value=utf8(value) if isinstance(value, str) else value,
            category=_text(d.category),
            bar=d.bar,
            mend=_text(error.mend),
        )


def _text(text: str | None) -> str | None:
    """The name of a file may have bytes that no text has."""
    return None if text is None else utf8(text)


class Graded(Closed):
    """One measure against its bar."""

    measure: str
    category: str | None = Field(default=None, description="null: over all queries.")
    n: int
    value: float
    lowest: float = Field(description="The lowest mean that passes.")
    misses: int | None = Field(default=None, description="For measures that are 0 or 1 a query.")
    misses_allowed: int | None = None
    rule: Literal["floor", "drop", "everywhere"] = Field(description="Which rule gives the bar.")
    floor: float | None = Field(default=None, description="What the floor alone allows: a mean, or misses.")
    points: float | None = Field(default=None, description="The largest drop below the baseline, in points.")
    baseline: float | None = None
    queries: int = Field(
        description="Queries that the baseline answers and that may be lost, none being gained."
    )
    passed: bool


def excluded(low: float) -> float:
    """The loss beyond which a 95% interval of a change holds nothing, in points, from its lower end."""
    return max(0.0, -100 * low)


class Significance(Closed):
    """How much of a measure's change against the baseline chance explains. Told, never graded."""

    metric: str
    difference: float
    low: float = Field(description="95% interval of the difference, over the same queries.")
    high: float
    p: float = Field(description="Two-sided: mid-p McNemar for measures of 0 or 1, else sign-flip.")
    test: str
    resolvable: bool = Field(description="Whether so many lost queries can be told from chance at this n.")

    @computed_field(description="No loss larger than this, in points, at 95%: the lower end of the interval.")  # type: ignore[prop-decorator]
    @property
    def excludes(self) -> float:
        return excluded(self.low)


class Moved(Closed):
    """A query whose value of the measure changed against the baseline."""

    query: str
    text: str
    document: str = Field(description="The judged document whose rank moved, or the first judged one.")
    before: int | None = Field(description="Its rank in the baseline; null: not retrieved.")
    after: int | None
    metric: str
    change: float
    above: int = Field(
        default=0, description="Answers that stand above it now, down to the measure's cut-off."
    )
    unjudged: int = Field(default=0, description="Those of them that nobody judged: it may be no loss.")


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
    measure: str | None = Field(
        default=None,
        description="What lost and gained are counted in: the first that fails, else the headline.",
    )
    lost: tuple[Moved, ...] = ()
    gained: tuple[Moved, ...] = ()
    significance: Significance | None = Field(default=None, description="Of the first measure that fails.")
    headline: Significance | None = Field(
        default=None, description="Of the headline over all queries, whatever the verdict; null: not graded."
    )
    evidence: str | None = Field(
        default=None, description="Of what class the runs are that its floors stand on."
    )
    provisional: bool = False
    runs_agree: bool | None = Field(
        default=None, description="Whether the evidence runs agree in every ranking."
    )
    unbound: bool = False
    warnings: tuple[str, ...] = ()


class BarChange(Closed):
    """One thing that the policy says otherwise than that of the target branch."""

    arm: str | None
    key: str = Field(
        description="The choice, measure or file; a looser one needs a new reason under this key."
    )
    measure: str | None = Field(default=None, description="Where it is about the number of one measure.")
    category: str | None = None
    before: str | None
    after: str | None
    looser: bool
    reason: str | None = Field(default=None, description="The new reason that was given for it.")


class Verdict(Closed):
    """The whole verdict. `exit_code` is the script's."""

    schema_: Literal["verdict-v2"] = Field(default="verdict-v2", alias="schema")
    verdict: Word
    exit_code: Literal[0, 1]
    commit: str | None = Field(
        default=None, description="What the reports were measured at, where it is one commit."
    )
    clean: bool | None = Field(
        default=None,
        description="Whether every report is of a clean tree that stands here unchanged; null where one was measured "
        "outside of git.",
    )
    class_: str | None = Field(
        default=None, alias="class", description="Of what class the reports are, where it is one."
    )
    arms: tuple[ArmVerdict, ...]
    reasons: tuple[Reason, ...] = Field(default=(), description="Of the policy as a whole.")
    not_gated: tuple[str, ...] = Field(default=(), description="Arms with a report and no floors.")
    target: str | None = Field(default=None, description="The revision whose bar this one is held against.")
    bar: tuple[BarChange, ...] = Field(default=(), description="How the bar differs from the target's.")
    notes: tuple[str, ...] = Field(
        default=(),
        description="What the verdict does not rest on: a working tree, no branch to be held against.",
    )
