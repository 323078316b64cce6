"""What `eval-gate demo` finds, in the form that machines read."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from eval_core.models import Closed
from eval_gate.verdict import Word


class Step(Closed):
    """One call of the gate, and what it should have said."""

    what: str = Field(description="What was done before.")
    expected: Word
    verdict: Word
    exit_code: int
    reasons: tuple[str, ...] = Field(description="Reason codes.")
    lost: tuple[str, ...] = Field(description="The queries that were lost.")
    ok: bool = Field(description="Whether it is the verdict that was expected, for the reason that was.")


class Demo(Closed):
    """The whole demonstration."""

    schema_: Literal["demo-v1"] = Field(default="demo-v1", alias="schema")
    folder: str = Field(description="The workspace, which is kept.")
    seconds: float = Field(ge=0)
    steps: tuple[Step, ...]

    @property
    def ok(self) -> bool:
        """Whether the gate caught what it should, and nothing else."""
        return all(one.ok for one in self.steps)
