"""The bar: floors, budgets and baselines under `policy/`, read strictly, since a bar with a misspelt key is no bar."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue, model_validator

import eval_gate
from eval_core.errors import EvalError, Fault, Faults, Misuse, did_you_mean
from eval_core.files import read_text
from eval_core.models import NAME, Closed, parse_toml
from eval_core.reports.keys import TASK_PARTS
from eval_core.scoring import metrics

POLICY = Path("policy")
FLOORS, BUDGETS, BASELINES, EVIDENCE = "floors.toml", "budgets.toml", "baselines", "evidence"

#: Unrounded values are compared with this much room for the last bits.
TOLERANCE = 1e-9

#: The largest drop of recall@10 against the baseline, in points, where an arm's budget names no other.
DEFAULT_MAX_DROP: Mapping[str, float] = {"recall@10": 2.0}

#: Samples below which no bound on the 95th percentile holds at 95% confidence: 0.95^59 < 0.05.
LATENCY_SAMPLES = 59

#: Misses between the worst evidence and the floor, until enough runs exist to measure how much they differ.
MARGIN = 2

#: The share of unchanged runs that a derived margin may fail.
FALSE_ALARM = 0.01

#: Runs below which a margin is a convention and not a measurement.
SETTLED_RUNS = 10

#: Queries below which a category is told and not floored: one query would be more than five points.
CATEGORY_QUERIES = 20

#: What a policy may ask of every report beyond its own digests, and what it means.
REQUIREMENTS: Mapping[str, str] = {
    "head": "it was measured at the commit that is checked out",
    "clean": "it was measured on a tree without uncommitted changes",
    "class": "it was measured in the class of environment of the evidence",
    "provenance": "its provenance sidecar is there and fits it, and eval.toml",
    "every-arm": "no arm has a report and no floors",
}

#: More queries than any set has; beyond it arithmetic on a mistyped number would overflow.
MOST_QUERIES = 10**9


class Floor(Closed):
    """The lowest value that passes: whole misses for measures that are 0 or 1 a query, else an unrounded mean."""

    max_misses: int | None = Field(
        default=None, ge=0, le=MOST_QUERIES, description="For hit@k and all@k: the most misses that pass."
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

    run_id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")
    started: str
    digest: str = Field(description="The report's quality digest.")
    sha256: str = Field(
        pattern=r"^[0-9a-f]{64}$", description="Of the bytes of its copy, policy/evidence/ARM/RUN_ID.json."
    )
    commit: str | None = None
    class_: str = Field(alias="class")
    values: dict[str, float]
    categories: dict[str, dict[str, float]] = Field(
        default={}, description="Values of the floored measures in the floored categories."
    )


class CategoryFloors(Closed):
    """The floors of one category of queries."""

    n: int = Field(ge=1, description="Queries of the category that must be scored, exactly.")
    metrics: dict[str, Floor]


class ToldOdds(Closed):
    """What the floors catch and how often they cry wolf, as computed when they were written. Told, never graded."""

    flip_rate: Annotated[float, Field(ge=0, le=1)]
    false_alarm: Annotated[float, Field(ge=0, le=1)]
    detects_10_points: Annotated[float, Field(ge=0, le=1)]

    def __str__(self) -> str:
        return sentence(10, self.detects_10_points, self.false_alarm, self.flip_rate)


def sentence(points: int, detected: float, false_alarm: float, flip_rate: float) -> str:
    """`Detects a 10-point loss in 44% of cases; false alarm 0.2% if 1% of queries flip from run to run.`"""
    return (
        f"Detects a {points}-point loss in {percent(detected)} of cases; false alarm {percent(false_alarm)} "
        f"if {percent(flip_rate)} of queries flip from run to run."
    )


def percent(share: float) -> str:
    """A probability as a person reads it: never a plain 0% or 100% that it is not."""
    if 0 < share < 0.0005:
        return "<0.1%"
    if 0.995 <= share < 1:
        return ">99%"
    return f"{share:.1%}" if 0 < share < 0.0995 else f"{share:.0%}"


class ArmFloors(Closed):
    """One table `[arms."NAME"]` of floors.toml."""

    n: int = Field(ge=1, description="Queries that must be scored, exactly.")
    margin: int = Field(ge=0, description="Misses between the worst evidence and the floor.")
    margin_rule: Literal["fixed", "derived"] = Field(
        default="fixed", description="derived: the smallest that the flip rate fails at most 1 time in 100."
    )
    flip_rate: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None, description="With margin_rule = 'derived': the upper bound of the flip rate."
    )
    provisional: bool = Field(
        description="Whether the margin is a convention, not yet backed by enough runs."
    )
    tracked: bool = Field(default=False, description="Graded and told; it never fails the gate.")
    headline: str = Field(
        description="The set's headline measure: net losses and queries that must pass are counted in it."
    )
    corpus: Literal["pinned", "drifts"] = "pinned"
    documents: Annotated[tuple[int, ...], Field(min_length=2, max_length=2)] | None = Field(
        default=None, description="With corpus = 'drifts': fewest and most documents."
    )
    reason: str | None = Field(
        default=None, description="Why it was lowered, loosened, tracked or moved to another task."
    )
    odds: ToldOdds | None = None
    task: dict[str, JsonValue] = Field(description="The parts of the task key that a report must have.")
    metrics: dict[str, Floor]
    categories: dict[str, CategoryFloors] = Field(default={})
    evidence: tuple[Evidence, ...]

    @model_validator(mode="after")
    def _whole(self) -> ArmFloors:
        missing = [part for part in TASK_PARTS if part not in self.task]
        if missing:
            raise ValueError(f"task.{missing[0]} is missing; write floors with  eval-gate floor")
        if (self.corpus == "drifts") != (self.documents is not None):
            raise ValueError("documents = [fewest, most] goes with corpus = 'drifts', and with nothing else")
        if (self.margin_rule == "derived") != (self.flip_rate is not None):
            raise ValueError("flip_rate goes with margin_rule = 'derived', and with nothing else")
        return self


class Floors(Closed):
    """The whole of `policy/floors.toml`."""

    schema_: Literal["floors-v1"] = Field(alias="schema")
    min_gate: str | None = Field(
        default=None, pattern=r"^[0-9]+(\.[0-9]+)*$", description="An older gate exits 2."
    )
    require: tuple[Literal["head", "clean", "class", "provenance", "every-arm"], ...] = Field(
        default=(), description="What every report must show beyond its own digests."
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
    max_drop_everywhere: Annotated[float, Field(ge=0, le=100)] | None = Field(
        default=None,
        description="Largest drop of every measure, overall and in each category, in points.",
    )
    max_net_lost: Annotated[int, Field(ge=0)] | None = Field(
        default=None,
        description="Most queries lost of the headline measure, those gained taken off; the floors' margin.",
    )
    reason: str | None = Field(
        default=None, description="Why it allows more than is usual, or why the baseline became worse."
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
        there = path.parent.is_dir()
        raise Misuse(
            f"{path}: no floors, so there is nothing to gate on"
            if there
            else f"{path}: no floors, so there is nothing to gate on; there is no folder {str(path.parent)!r} here",
            reason="floors-missing",
            remedy="Measure twice, then propose them:  eval-gate floor"
            if there
            else "Run in the folder that holds policy/, or say --policy FOLDER; where there are no floors yet, measure "
            "twice, then propose them:  eval-gate floor",
        )
    text = read_text(path, "floors file")
    try:
        floors = parse_toml(text, Floors, path, "floors file")
    except Faults:
        # What a newer gate writes may not fit these models; that it is newer is then what there is to say.
        _check_gate(path, _written_min_gate(text))
        raise
    _check_gate(path, floors.min_gate)
    faults = [
        Fault(str(path), f"arms.{name!r}: a name is lower-case letters, digits, . _ -")
        for name in floors.arms
        if not is_name(name)
    ]
    faults += [
        Fault(str(path), f'arms."{name}".{fault}')
        for name, arm in floors.arms.items()
        if is_name(name)
        for fault in _arm_faults(arm)
    ]
    if faults:
        raise Faults(faults, consequence="nothing was graded")
    return floors


def is_name(text: str) -> bool:
    """Whether a text can be an arm's name: it becomes a file's."""
    # The pattern's `$` also matches before a last newline.
    return re.match(NAME, text) is not None and not text.endswith("\n")


def _written_min_gate(text: str) -> str | None:
    import tomllib

    written = tomllib.loads(text).get("min_gate")
    return written if isinstance(written, str) else None


def _check_gate(path: Path, min_gate: str | None) -> None:
    if min_gate is not None and _version(min_gate) > _version(eval_gate.__version__):
        raise Misuse(
            f"{path}: needs eval-gate {min_gate} or newer, and this is {eval_gate.__version__}",
            reason="gate-outdated",
            remedy="Update eval-gate; an older one might overlook what the floors ask for.",
        )


def _version(text: str) -> tuple[int, ...]:
    """The release numbers of a version, for comparing; none where it is no version."""
    match = re.match(r"[0-9]{1,9}(\.[0-9]{1,9})*", text)
    parts = [int(part) for part in match[0].split(".")] if match else []
    while parts and parts[-1] == 0:  # 1.0 is 1.0.0
        parts.pop()
    return tuple(parts)


def _arm_faults(arm: ArmFloors) -> list[str]:
    if arm.n > MOST_QUERIES or arm.margin > MOST_QUERIES:
        return [f"n and margin should be at most {MOST_QUERIES:,}"]
    faults = _setting_faults(arm)
    if len({evidence.class_ for evidence in arm.evidence}) > 1:
        faults.append("evidence: the runs are of more than one class")
    faults += _floor_faults(arm.metrics, [run.values for run in arm.evidence], arm.n, arm.margin)
    for name, category in arm.categories.items():
        values = [run.categories.get(name, {}) for run in arm.evidence]
        found = _floor_faults(category.metrics, values, category.n, arm.margin)
        if not category.metrics:
            found.append("metrics: there is no floor; restore it from git")
        if category.n > arm.n:
            found.append(f"n is {category.n}, and the arm has {arm.n} queries")
        faults += [f'categories."{name}".{fault}' for fault in found]
    for name in sorted({name for run in arm.evidence for name in run.categories} - arm.categories.keys()):
        faults.append(f'categories."{name}" has evidence and no floor; restore it from git')
    return faults


def _setting_faults(arm: ArmFloors) -> list[str]:
    """Settings that the others do not give, or that would loosen the bar without a word why."""
    faults = []
    if arm.provisional != (len(arm.evidence) < SETTLED_RUNS):
        faults.append(
            f"provisional = {str(arm.provisional).lower()}, and there are {len(arm.evidence)} evidence runs"
        )
    if arm.flip_rate is not None and (derived := derived_margin(arm.n, arm.flip_rate)) != arm.margin:
        faults.append(f"margin = {arm.margin}, and a flip rate of {arm.flip_rate!r} gives {derived}")
    said = bool((arm.reason or "").strip())
    if not said and arm.margin_rule == "fixed" and arm.margin > MARGIN:
        faults.append(f"margin = {arm.margin} is wider than {MARGIN}, and no reason says why")
    if arm.flip_rate is not None and len({run.digest for run in arm.evidence}) == 1:
        # Runs that cannot be told apart did not flip once, so their number gives the rate.
        from eval_core.scoring.statistics import flip_rate_upper

        bound = flip_rate_upper(0, arm.n * max(1, len(arm.evidence) - 1))
        if abs(arm.flip_rate - bound) > TOLERANCE:
            faults.append(f"flip_rate = {arm.flip_rate!r}, and runs that do not differ bound it at {bound!r}")
    if (
        arm.documents is not None
        and arm.documents[1] - arm.documents[0] > max(arm.documents[1] + arm.documents[0], 4) // 2
    ):
        faults.append(f"documents = {list(arm.documents)} is wider than half of them either way")
    if not said and arm.tracked:
        faults.append("tracked = true takes the arm out of the gate, and no reason says why")
    return faults


def usual_measures(headline: str, cutoffs: object) -> tuple[str, ...]:
    """What is floored where nobody says otherwise: the set's headline, hit@1, recall at the largest cut-off, mrr."""
    depths = [k for k in cutoffs if isinstance(k, int)] if isinstance(cutoffs, list) else []
    deep = [f"recall@{max(depths)}"] if depths else []
    held = {f"{family}@{k}" for family in metrics.AT_K for k in depths} | set(metrics.WHOLE)
    return tuple(name for name in dict.fromkeys((headline, "hit@1", *deep, "mrr")) if name in held)


def _floor_faults(
    floors: Mapping[str, Floor], runs: list[dict[str, float]], n: int, margin: int
) -> list[str]:
    """What is wrong with floors by measure, given the values of the runs that they stand on."""
    faults = []
    held = {name for values in runs for name in values} if floors else set()
    for name in sorted(held - floors.keys()):
        faults.append(f'metrics: "{name}" has evidence and no floor; floors are written by  eval-gate floor')
    for name, floor in floors.items():
        try:
            binary = metrics.is_binary(name)
        except EvalError as error:
            faults.append(f"metrics: {error}")
            continue
        if binary == (floor.max_misses is None):
            form = "max_misses (it is 0 or 1 a query)" if binary else "floor (it is a mean)"
            faults.append(f'metrics."{name}": needs {form}')
            continue
        known = [values[name] for values in runs if name in values]
        if not known or len(known) != len(runs):
            faults.append(f'metrics."{name}": not every evidence run has a value for it')
            continue
        if not all(0 <= value <= 1 for value in known):
            faults.append(f'evidence: a value of "{name}" is not between 0 and 1')
            continue
        derived = derive_floor(name, min(known), n, margin)
        if not _same(floor, derived):
            aspired = lowest(floor, n) > min(known) + TOLERANCE
            faults.append(
                f'metrics."{name}" = {_told(floor)}'
                f"{', which is above what was measured' if aspired else ''}, and the evidence with a margin of "
                f"{margin} gives {_told(derived)}; restore it, since floors are written by  eval-gate floor  and "
                "never by hand"
            )
    return faults


def derived_margin(n: int, flip_rate: float, alarm: float = FALSE_ALARM) -> int:
    """The smallest m with P(Bin(n, flip_rate) > m) of at most `alarm`: what unchanged runs lose almost never."""
    from eval_core.scoring.statistics import binomial_above

    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if binomial_above(n, flip_rate, middle) <= alarm else (middle + 1, high)
    return low


def lowest(floor: Floor, n: int) -> float:
    """The lowest mean that passes."""
    return (n - floor.max_misses) / n if floor.max_misses is not None else floor.floor or 0.0


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
    """Read `budgets.toml`.

    Raises:
        Misuse: absent (to have no budget is said by a file without arms, or deleting it would lift them), not TOML.
        Faults: unknown keys, measures or arms.
    """
    if not path.exists():
        raise Misuse(
            f"{path}: no budgets file; deleting it must not lift the budgets that it held",
            reason="budgets-missing",
            remedy='Restore it. Where there never was one, a file with the line  schema = "budgets-v1"  says so.',
        )
    budgets = parse_toml(read_text(path, "budgets file"), Budgets, path, "budgets file")
    faults = []
    for name, budget in budgets.arms.items():
        if name not in floors.arms:
            hint = did_you_mean(name, floors.arms)
            faults.append(Fault(str(path), f"arms.{name!r} has a budget and no floors{hint}"))
        for measure in budget.max_drop or {}:
            try:
                metrics.parse(measure)
            except EvalError as error:
                faults.append(Fault(str(path), f"arms.{name!r}.max_drop: {error}"))
    if faults:
        raise Faults(faults, consequence="nothing was graded")
    return budgets
