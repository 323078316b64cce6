"""What `eval-gate self-test` finds, in the form that machines read."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from eval_core.models import Closed
from eval_gate.verdict import Reason

#: What an attack changes. `set` and `answers`: a sound report of another set, or of worse answers.
On = Literal["report", "evidence", "floors.toml", "budgets.toml", "set", "answers", "eval.toml", "policy"]

#: `caught`: the gate gave the attack's own reason. `not-required`: it passed, and the policy does not require what
#: would catch it. `skipped`: the attack cannot be made of this arm.
Outcome = Literal["caught", "survived", "not-required", "skipped"]


class Result(Closed):
    """One attack on one arm."""

    attack: str
    on: On
    arm: str
    expected: tuple[str, ...] = Field(description="Reason codes, any of which names the attack.")
    outcome: Outcome
    codes: tuple[str, ...] = Field(default=(), description="The gate's reasons; empty: it passed.")
    message: str = Field(default="", description="What the gate said, or why the attack was skipped.")
    requirement: str | None = Field(default=None, description="What the policy has to require to catch it.")


class Smallest(Closed):
    """The smallest loss of one arm that its bar catches: found queries that find nothing any more, rank 1 first."""

    arm: str
    n: int
    queries: int | None = Field(description="How many; null: even the loss of all of them passes.")
    points: float | None = Field(
        default=None, description="What it takes from the measure that fails, in points."
    )
    measure: str | None = None
    rule: Literal["floor", "drop", "everywhere"] | None = None


class SelfTest(Closed):
    """The whole finding. `exit_code` is the script's."""

    schema_: Literal["self-test-v2"] = Field(default="self-test-v2", alias="schema")
    verdict: Literal["caught", "survived", "control-failed"]
    exit_code: Literal[0, 1]
    arms: tuple[str, ...]
    control: tuple[Reason, ...] = Field(
        default=(), description="Why the untouched copy does not pass; then there were no attacks."
    )
    results: tuple[Result, ...] = ()
    smallest: tuple[Smallest, ...] = ()

    @property
    def survivors(self) -> list[Result]:
        """The attacks that were not caught."""
        return [result for result in self.results if result.outcome == "survived"]
