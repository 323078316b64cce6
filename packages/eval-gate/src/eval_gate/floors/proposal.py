"""What `eval-gate floor --format json` and `eval-gate baseline --format json` print."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from eval_core.models import Closed
from eval_gate.policy import ArmFloors


class Proposal(Closed):
    """Floors as they would stand, or stand now."""

    schema_: Literal["proposal-v1"] = Field(default="proposal-v1", alias="schema")
    file: str
    written: bool
    arms: dict[str, ArmFloors]


def proposal(path: Path, arms: Mapping[str, ArmFloors], *, written: bool) -> Proposal:
    """The proposal of some arms for a floors file."""
    return Proposal(file=str(path), written=written, arms=dict(arms))


class BaselineChange(Closed):
    """One arm's baseline, before and after: the values of each measure, null where there was none."""

    arm: str
    run_id: str
    values: dict[str, tuple[float | None, float]]


class BaselineProposal(Closed):
    """Baselines as they would stand, or stand now."""

    schema_: Literal["baseline-proposal-v1"] = Field(default="baseline-proposal-v1", alias="schema")
    written: bool
    arms: tuple[BaselineChange, ...]
