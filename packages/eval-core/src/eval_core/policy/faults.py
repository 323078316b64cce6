"""All that is wrong with an arm's policy: what its evidence does not give, and what nobody gave a reason for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eval_core.errors import Refused, did_you_mean
from eval_core.policy.arm import ArmPolicy, Shown, choices_of, shown_floors
from eval_core.policy.bars import TOLERANCE, default_drop, margin_of, usual_measures
from eval_core.policy.chance import reached_on_average
from eval_core.policy.eligibility import unfit, unlike
from eval_core.policy.evidence import Line
from eval_core.policy.models import MARGIN, P95_MS, REQUIRED, ArmFloors, Budget, CategoryFloors, Floors
from eval_core.scoring import metrics

#: How far a shown floor may be from the derived one.
SHOWN_WITHIN = 1e-6

RESTORE = "Restore it from git, or move the bar:  eval-gate floor {0} --measure --write"


def faults(arm: ArmPolicy) -> list[Refused]:
    """All that is wrong with an arm's policy: what its evidence does not give, and what nobody gave a reason for."""
    name, floors, lines = arm.name, arm.floors, arm.lines
    mend = RESTORE.format(name)
    if len({line.run_id for line in lines}) < 2:
        return [
            Refused("floors-without-evidence", "the floors stand on fewer than two measured runs", mend=mend)
        ]
    found = [*_order(lines, mend)]
    for line in lines:
        found += _unlike(line, lines[-1], floors, mend)
    if found:
        return found
    if floors.n != arm.baseline.n:
        what = f"the last run scored {arm.baseline.n} queries"
        found.append(Refused("floor-not-derived", what, key="n", value=floors.n, mend=mend))
    if (floors.corpus == "drifts") != (floors.drift is not None):
        what = "drift goes with corpus = 'drifts', and with nothing else"
        found.append(Refused("floor-not-derived", what, key="drift", value=floors.drift, mend=mend))
    if floors.corpus == "drifts" and not (arm.baseline.set and arm.baseline.set.moves):
        what = "no source of its corpus moves, so it cannot drift"
        found.append(Refused("corpus-pinned", what, key="corpus", value="drifts", mend=mend))
    found += _measures(floors, arm.baseline, mend)
    if found:
        return found
    found += _shown(floors, shown_floors(arm.choices, lines), mend)
    for key, what in reasons_needed(floors, arm.budget, lines).items():
        said = arm.budget.reasons if key in Budget.model_fields else floors.reasons
        if not says(said.get(key, "")):
            where = "budgets.toml" if key in Budget.model_fields else "floors.toml"
            mend_reason = (
                f'Say why:  eval-gate floor {name} --reason {key}="…" --write   (it is kept in {where})'
            )
            found.append(
                Refused("reason-missing", f"{what}, and no reason says why", key=key, mend=mend_reason)
            )
    found += _hollow(arm, mend)
    return found


def reasons_needed(floors: ArmFloors, budget: Budget, lines: Sequence[Line]) -> dict[str, str]:
    """What an arm's choices must give a reason for, by key, with what lets more pass than usual.

    `p95_ms`, `max_drop` and `max_drop_everywhere` are keys of budgets.toml, the others of floors.toml.
    """
    choices = choices_of(floors)
    needed: dict[str, str] = {}
    margin = margin_of(choices, lines)
    if margin > MARGIN:
        needed["margin"] = f"a margin of {margin} misses is wider than {MARGIN}"
    if floors.corpus == "drifts":
        needed["corpus"] = "its corpus may change"
    for name in usual_measures(lines[-1]):
        if name not in floors.measures:
            needed[name] = f"{name} has no floor"
    if budget.p95_ms is not None and budget.p95_ms > P95_MS:
        needed["p95_ms"] = f"a p95 of {budget.p95_ms:g} ms is more than {P95_MS:g}"
    for name, points in budget.max_drop.items():
        usual = default_drop(name, choices, lines, margin)
        if usual is not None and points > usual + TOLERANCE:
            needed["max_drop"] = f"{name} may fall by {points:g} points, not {usual:.4g}"
    return needed


def requirements_left_out(floors: Floors) -> list[Refused]:
    """What a policy usually requires and this one does not, where no reason says why."""
    missing = [name for name in REQUIRED if name not in floors.require]
    if not missing or says(floors.reasons.get("require", "")):
        return []
    mend = 'Require it again, or say why in floors.toml:  [reasons] require = "…"'
    what = f"{', '.join(missing)} is not required, and no reason says why"
    return [Refused("reason-missing", what, key="require", mend=mend)]


def says(text: str) -> bool:
    """Whether a text has a letter or a digit in it: spaces, and characters that nobody sees, are no reason."""
    return any(character.isalnum() for character in text)


def _order(lines: Sequence[Line], mend: str) -> Iterator[Refused]:
    ids = [line.run_id for line in lines]
    order = [line.run_id for line in sorted(lines, key=lambda line: (line.started, line.run_id))]
    if ids != order or len(set(ids)) != len(ids):
        what = f"the runs should be in the order of their start, each once: {', '.join(dict.fromkeys(order))}"
        yield Refused("runs-misordered", what, key="runs", mend=mend)


def _unlike(line: Line, baseline: Line, floors: ArmFloors, mend: str) -> Iterator[Refused]:
    """What keeps a cited run from being evidence for these floors, by itself or beside the baseline."""
    for problem in (*unfit(line), *unlike(line, baseline, floors.drift)):
        yield Refused(problem.code, problem.what, subject=f"run {line.run_id}", mend=problem.mend or mend)


def _measures(floors: ArmFloors, baseline: Line, mend: str) -> Iterator[Refused]:
    """Floors of measures that no run has, or in the wrong table."""
    if not floors.measures:
        yield Refused("floors-vacuous", "the arm has no floor; whatever it scored would pass", mend=mend)
    for table, binary in ((floors.floors, False), (floors.misses_allowed, True)):
        for measure in table:
            name = "misses_allowed" if binary else "floors"
            if measure not in baseline.measures:
                what = f"the runs hold no such measure{did_you_mean(measure, baseline.measures)}"
                yield Refused("metric-missing", what, key=f"{name}.{measure}", mend=mend)
            elif metrics.is_binary(measure) != binary:
                what = "it is 0 or 1 a query, so its misses are counted" if not binary else "it is a mean"
                other = "floors" if binary else "misses_allowed"
                yield Refused(
                    "floor-not-derived", f"{what}; it belongs to {other}", key=f"{name}.{measure}", mend=mend
                )


def _shown(floors: ArmFloors, derived: Shown, mend: str) -> Iterator[Refused]:
    """Numbers of the file that the evidence does not give."""
    for name in sorted(floors.categories.keys() ^ derived.categories.keys()):
        what = (
            "floors by category hold it, and it is missing"
            if name in derived.categories
            else "nothing asks for it"
        )
        yield Refused("floor-not-derived", what, key=f"categories.{name}", mend=mend)
    slices: list[tuple[str | None, ArmFloors | CategoryFloors, Shown | CategoryFloors]] = [
        (None, floors, derived)
    ]
    slices += [
        (name, floors.categories[name], part)
        for name, part in derived.categories.items()
        if name in floors.categories
    ]
    for category, here, there in slices:
        if here.n != there.n:
            what = f"the last run scored {there.n} queries"
            yield Refused(
                "floor-not-derived", what, key="n", value=here.n, category=category, bar=there.n, mend=mend
            )
        for table, ours, theirs in (
            ("floors", here.floors, there.floors),
            ("misses_allowed", here.misses_allowed, there.misses_allowed),
        ):
            for measure in dict.fromkeys((*theirs, *ours)):
                value, wanted = ours.get(measure), theirs.get(measure)
                if value is None or wanted is None or abs(value - wanted) > SHOWN_WITHIN:
                    what = "the evidence gives none" if wanted is None else f"the evidence gives {wanted!r}"
                    key = f"{table}.{measure}"
                    yield Refused(
                        "floor-not-derived",
                        what,
                        key=key,
                        value=value,
                        category=category,
                        bar=wanted,
                        mend=mend,
                    )


def _hollow(arm: ArmPolicy, mend: str) -> Iterator[Refused]:
    """Bars that a backend that finds nothing passes, or that a random ranking reaches on average.

    A drop without a floor is left: recall@10 that chance reaches keeps A4's drop, and the verdict says so.
    """
    for bar in arm.bars:
        if bar.floor is None:
            continue
        lowest = (bar.n - bar.floor) / bar.n if bar.misses is not None else bar.floor
        if lowest <= TOLERANCE:
            what = f"its floor, {lowest:.4f}, passes a backend that finds nothing"
        elif reached_on_average(arm.baseline, bar.measure, lowest, bar.category):
            what = f"a random ranking of the documents reaches its floor, {lowest:.4f}, on average"
        else:
            continue
        leave_out = f'Leave it out:  eval-gate floor {arm.name} --reason {bar.measure}="…" --write'
        yield Refused(
            "floor-vacuous", what, key=bar.measure, category=bar.category, bar=lowest, mend=leave_out
        )
