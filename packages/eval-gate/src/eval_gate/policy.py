"""The bar: floors, budgets and baselines under `policy/`, read strictly, since a bar with a misspelt key is no bar."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue, model_validator

import eval_gate
from eval_core import metrics
from eval_core.errors import EvalError, Fault, Faults, Misuse
from eval_core.keys import TASK_PARTS
from eval_core.models import Closed, read_toml

POLICY = Path("policy")
FLOORS, BUDGETS, BASELINES, EVIDENCE = "floors.toml", "budgets.toml", "baselines", "evidence"

#: Unrounded values are compared with this much room for the last bits.
TOLERANCE = 1e-9

#: A4: the largest drop of recall@10 against the baseline, in points, where the budget names no other.
DEFAULT_MAX_DROP: Mapping[str, float] = {"recall@10": 2.0}

#: Samples below which no bound on the 95th percentile holds at 95% confidence: 0.95^59 < 0.05.
LATENCY_SAMPLES = 59

#: Runs below which a margin is a convention and not a measurement.
SETTLED_RUNS = 10


class Floor(Closed):
    """The lowest value that passes: whole misses for measures that are 0 or 1 a query, else an unrounded mean."""

    max_misses: int | None = Field(
        default=None, ge=0, description="For hit@k and all@k: the most misses that pass."
    )
    floor: float | None = Field(
        default=None, le=1, description="For the others: the lowest mean that passes."
    )

    @model_validator(mode="after")
    def _one(self) -> Floor:
        if (self.max_misses is None) == (self.floor is None):
            raise ValueError("give one of max_misses and floor")
        return self


class Evidence(Closed):
    """A measured run that a floor stands on."""

    run_id: str
    started: str
    digest: str = Field(description="The report's quality digest.")
    commit: str | None = None
    class_: str = Field(alias="class")
    values: dict[str, float]


class ArmFloors(Closed):
    """One table `[arms."NAME"]` of floors.toml."""

    n: int = Field(ge=1, description="Queries that must be scored, exactly.")
    margin: int = Field(ge=0, description="Misses between the worst evidence and the floor.")
    provisional: bool = Field(
        description="Whether the margin is a convention, not yet backed by enough runs."
    )
    corpus: Literal["pinned", "drifts"] = "pinned"
    documents: Annotated[tuple[int, ...], Field(min_length=2, max_length=2)] | None = Field(
        default=None, description="With corpus = 'drifts': fewest and most documents."
    )
    reason: str | None = Field(default=None, description="Why it was lowered.")
    task: dict[str, JsonValue] = Field(description="The parts of the task key that a report must have.")
    metrics: dict[str, Floor]
    evidence: tuple[Evidence, ...]

    @model_validator(mode="after")
    def _whole(self) -> ArmFloors:
        missing = [part for part in TASK_PARTS if part not in self.task]
        if missing:
            raise ValueError(f"task.{missing[0]} is missing; write floors with  eval-gate floor")
        if (self.corpus == "drifts") != (self.documents is not None):
            raise ValueError("documents = [fewest, most] goes with corpus = 'drifts', and with nothing else")
        return self


class Floors(Closed):
    """The whole of `policy/floors.toml`."""

    schema_: Literal["floors-v1"] = Field(alias="schema")
    min_gate: str | None = Field(
        default=None, pattern=r"^[0-9]+(\.[0-9]+)*$", description="An older gate exits 2."
    )
    arms: dict[str, ArmFloors] = Field(default={})


class Budget(Closed):
    """The most that passes, for one arm."""

    p95_ms: float | None = Field(
        default=None, gt=0, description="95th percentile of the latency, milliseconds."
    )
    max_drop: dict[str, Annotated[float, Field(ge=0, le=100)]] | None = Field(
        default=None,
        description="Largest drop of a measure against the baseline, in points; recall@10 by 2.0.",
    )


class Budgets(Closed):
    """The whole of `policy/budgets.toml`."""

    schema_: Literal["budgets-v1"] = Field(alias="schema")
    arms: dict[str, Budget] = Field(default={})


def read_floors(path: Path) -> Floors:
    """Read `floors.toml` and check that it says what it seems to say.

    Raises:
        Misuse: absent, not TOML, or written for a newer gate.
        Faults: unknown keys, a measure that does not exist, a floor of the wrong form, or one that its own evidence
            and margin do not give.
    """
    if not path.exists():
        raise Misuse(
            f"{path}: no floors, so there is nothing to gate on",
            reason="floors-missing",
            remedy="Measure twice, then propose them:  eval-gate floor",
        )
    floors = read_toml(path, Floors, "floors file")
    if floors.min_gate is not None and _version(floors.min_gate) > _version(eval_gate.__version__):
        raise Misuse(
            f"{path}: needs eval-gate {floors.min_gate} or newer, and this is {eval_gate.__version__}",
            reason="gate-outdated",
            remedy="Update eval-gate; an older one might overlook what the floors ask for.",
        )
    faults = [
        Fault(str(path), f'arms."{name}".{fault}')
        for name, arm in floors.arms.items()
        for fault in _arm_faults(arm)
    ]
    if faults:
        raise Faults(faults, consequence="nothing was graded")
    return floors


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]+", text)[:3])


def _arm_faults(arm: ArmFloors) -> list[str]:
    faults = []
    for name, floor in arm.metrics.items():
        try:
            binary = metrics.is_binary(name)
        except EvalError as error:
            faults.append(f"metrics: {error}")
            continue
        if binary == (floor.max_misses is None):
            form = "max_misses (it is 0 or 1 a query)" if binary else "floor (it is a mean)"
            faults.append(f'metrics."{name}": needs {form}')
            continue
        values = [evidence.values.get(name) for evidence in arm.evidence]
        known = [value for value in values if value is not None]
        if not known or len(known) != len(values):
            faults.append(f'metrics."{name}": not every evidence run has a value for it')
            continue
        derived = derive_floor(name, min(known), arm.n, arm.margin)
        if not _same(floor, derived):
            faults.append(
                f'metrics."{name}" = {_told(floor)}, and the evidence with a margin of {arm.margin} gives '
                f"{_told(derived)}; floors are written by  eval-gate floor, never by hand"
            )
    return faults


def derive_floor(name: str, worst: float, n: int, margin: int) -> Floor:
    """The floor `margin` misses below the worst evidence.

    One query can move a mean by at most 1 / n, so a margin of m misses is m / n for every measure; for measures that
    are 0 or 1 a query it stays a whole number of misses, which no rounding can blur.
    """
    if metrics.is_binary(name):
        return Floor(max_misses=misses(worst, n) + margin)
    return Floor(floor=worst - margin / n)


def misses(mean: float, n: int) -> int:
    """How many of n queries a mean of zeros and ones missed."""
    return n - round(mean * n)


def _same(one: Floor, other: Floor) -> bool:
    if one.max_misses is not None or other.max_misses is not None:
        return one.max_misses == other.max_misses
    return one.floor is not None and other.floor is not None and abs(one.floor - other.floor) <= TOLERANCE


def _told(floor: Floor) -> str:
    return f"max_misses {floor.max_misses}" if floor.max_misses is not None else f"floor {floor.floor!r}"


def read_budgets(path: Path, floors: Floors) -> Budgets:
    """Read `budgets.toml`; none at all is no budgets.

    Raises:
        Misuse: not TOML.
        Faults: unknown keys, measures or arms.
    """
    if not path.exists():
        return Budgets(schema_="budgets-v1")
    budgets = read_toml(path, Budgets, "budgets file")
    faults = []
    for name, budget in budgets.arms.items():
        if name not in floors.arms:
            faults.append(Fault(str(path), f'arms."{name}" has a budget and no floors'))
        for measure in budget.max_drop or {}:
            try:
                metrics.parse(measure)
            except EvalError as error:
                faults.append(Fault(str(path), f'arms."{name}".max_drop: {error}'))
    if faults:
        raise Faults(faults, consequence="nothing was graded")
    return budgets
