"""How a bar differs from another one: the bar that stands, for `floor`, and that of a branch, for `check --target`.

One function, `changes`, says for an arm which of two policies lets more pass, and under which key that needs a reason.
Choices are compared by the `looser` marks of their fields; numbers by the bar that the new runs give under the old
choices, so that a wider margin is one change and worse runs are another.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from eval_core.policy import ArmFloors, ArmPolicy, Budget, Line, says
from eval_core.policy.bars import TOLERANCE, Bar, bars, default_drop, must_pass_lost
from eval_core.reports import TASK_PARTS, differences
from eval_gate.verdict import BarChange

#: Keys of reasons that are neither a field nor a measure: worse numbers, another task, another class, another lane.
EVENTS = ("floors", "task", "class", "lane")

#: The class in which a merge is gated.
GATING = "ci"

#: Parts of the task that are compared by what follows from them: documents by their digest, cut-offs by the measures.
_FOLLOWED = frozenset({"recipe", "cutoffs"})


def changes(before: ArmPolicy | None, after: ArmPolicy) -> list[BarChange]:
    """Everything in which two policies of an arm differ, with the new reason where one was given."""
    if before is None:
        return [
            BarChange(arm=after.name, key="floors", before=None, after=f"n = {after.floors.n}", looser=False)
        ]
    found = [
        *field_changes(ArmFloors, before.floors, after.floors, (before, after)),
        *field_changes(Budget, before.budget, after.budget, (before, after)),
        *_task(before, after),
        *_runs(before, after),
        *_numbers(before, after),
    ]
    return [
        change.model_copy(update={"arm": after.name, "reason": _reason(change.key, before, after)})
        for change in found
    ]


def reasons_of(policy: ArmPolicy, key: str) -> Mapping[str, str]:
    """The table in which the reason of a key stands: of budgets.toml for its fields, else of floors.toml."""
    return policy.budget.reasons if key in Budget.model_fields else policy.floors.reasons


def new_reason(key: str, before: Mapping[str, str], after: Mapping[str, str]) -> str | None:
    """The reason that stands under a key and did not stand there before; None where it is old or says nothing."""
    text = after.get(key, "")
    return text if says(text) and text.split() != before.get(key, "").split() else None


def _reason(key: str, before: ArmPolicy, after: ArmPolicy) -> str | None:
    return new_reason(key, reasons_of(before, key), reasons_of(after, key))


def field_changes(
    model: type[BaseModel], before: Any, after: Any, policies: tuple[ArmPolicy, ArmPolicy] | None = None
) -> Iterator[BarChange]:
    """The chosen fields of a table that differ, compared as their `looser` marks say.

    Args:
        model: of both tables.
        before, after: the tables.
        policies: of the arm, which know what holds where a field is not given.
    """
    for name, field in model.model_fields.items():
        mark = field.json_schema_extra
        direction = mark.get("looser") if isinstance(mark, dict) else None
        old, new = getattr(before, name), getattr(after, name)
        # A budget that neither of them names is the usual one, or none.
        if direction is None or (old == new and model is not Budget):
            continue
        if isinstance(old, dict):
            yield from _drops(name, old, new, policies)
            continue
        if policies is not None:
            old, new = (
                getattr(policy, name, value) for policy, value in zip(policies, (old, new), strict=True)
            )
        if direction == "higher":
            if model is not Budget and None in (old, new):
                continue  # a choice that does not apply on one side; another field says why
            looser = _number(new) > _number(old) + TOLERANCE
        elif direction == "fewer":
            looser = bool(set(old) - set(new))
        else:
            strict = mark["stricter"] if isinstance(mark, dict) and "stricter" in mark else field.default
            looser = old == strict != new
        if old != new:
            yield _change(name, _text(old), _text(new), looser)


def _number(value: float | None) -> float:
    """A budget that is not set bounds nothing."""
    return math.inf if value is None else value


def _drops(
    key: str,
    old: Mapping[str, float],
    new: Mapping[str, float],
    policies: tuple[ArmPolicy, ArmPolicy] | None,
) -> Iterator[BarChange]:
    """Drops by measure; where one is not named, the usual one holds, or none."""
    for measure in {**old, **new}:
        usual = [None if p is None else _usual_drop(p, measure) for p in policies or (None, None)]
        before, after = old.get(measure, usual[0]), new.get(measure, usual[1])
        if before != after:
            looser = _number(after) > _number(before) + TOLERANCE
            yield _change(key, _text(before), _text(after), looser, measure)


def _usual_drop(policy: ArmPolicy, measure: str) -> float | None:
    return default_drop(measure, policy.choices, policy.lines, policy.margin)


def _task(before: ArmPolicy, after: ArmPolicy) -> Iterator[BarChange]:
    old, new = before.baseline, after.baseline
    exempt = _FOLLOWED | ({"corpus"} if before.choices.drifts and after.choices.drifts else set())
    parts = [d.part for d in differences(old.task, new.task, TASK_PARTS) if d.part not in exempt]
    words = []
    if "query_ids" in parts:
        was, is_ = {entry.id for entry in old.entries}, {entry.id for entry in new.entries}
        words += [f"gone: {_some(sorted(was - is_))}"] if was - is_ else []
        words += [f"new: {_some(sorted(is_ - was))}"] if is_ - was else []
    if parts:
        yield _change("task", None, f"{', '.join(parts)} changed" + "".join(f"; {w}" for w in words), True)
    if old.headline != new.headline:
        yield _change("task", f"headline {old.headline}", f"headline {new.headline}", True)


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _runs(before: ArmPolicy, after: ArmPolicy) -> Iterator[BarChange]:
    old, new = before.baseline, after.baseline
    if old.class_ != new.class_:
        yield _change("class", old.class_, new.class_, old.class_ == GATING)
    if new.started < old.started:
        yield _change("floors", f"measured {old.started}", f"measured {new.started}", True)
    if before.p95_ms is not None and new.repetitions > old.repetitions:
        # Warm caches: each further repetition draws the percentile down.
        counts = [f"{one.repetitions} repetitions" for one in (old, new)]
        yield _change("p95_ms", counts[0], counts[1], True)
    if new.n < old.n and new.task.get("query_ids") == old.task.get("query_ids"):
        yield _change("floors", f"n = {old.n}", f"n = {new.n}", True)
    values = dict(zip((entry.id for entry in new.scored), new.column(old.headline), strict=True))
    must_pass = [entry.id for entry in old.scored if entry.must_pass]
    for query in must_pass_lost(old, old.headline, values, must_pass):
        yield _change("floors", f"{query} must pass", f"{query} is lost", True, old.headline)


def _numbers(before: ArmPolicy, after: ArmPolicy) -> Iterator[BarChange]:
    """Measures that have a floor on one side only, and bars that are others because the runs are."""
    there = {(bar.measure, bar.category): bar for bar in before.bars}
    here = {(bar.measure, bar.category): bar for bar in after.bars}
    for measure in before.floors.measures:
        if measure not in after.floors.measures:
            now = here.get((measure, None))
            yield _change(measure, words(there[measure, None]), words(now) if now else None, True, measure)
    for measure in after.floors.measures:
        if measure not in before.floors.measures:
            old = there.get((measure, None))
            yield _change(measure, words(old) if old else None, words(here[measure, None]), False, measure)
    dropped = set(before.floors.measures) - set(after.floors.measures)
    for key, bar in _bars_of(before, after.lines, dropped).items():
        old = there.get(key)
        if old is not None and abs(bar.lowest - old.lowest) > TOLERANCE:
            yield _change("floors", words(old), words(bar), bar.lowest < old.lowest, *key)
    for measure, category in there.keys() - _bars_of(before, after.lines, set()).keys():
        old = there[measure, category]
        if measure not in dropped:
            yield _change("floors", words(old), None, True, measure, category)


def _bars_of(
    before: ArmPolicy, lines: Sequence[Line], dropped: set[str]
) -> dict[tuple[str, str | None], Bar]:
    """The bars that these runs give under the choices that stood."""
    held = lines[-1].measures
    measures = [name for name in before.floors.measures if name in held and name not in dropped]
    drops = {name: drop for name, drop in before.budget.max_drop.items() if name in held}
    budget = before.budget.model_copy(update={"max_drop": drops})
    found = bars(dataclasses.replace(before.choices, measures=measures), budget, lines)
    return {(bar.measure, bar.category): bar for bar in found if bar.measure not in dropped}


def words(bar: Bar) -> str:
    """A bar as people read it: misses where it counts them, else the lowest mean."""
    if bar.misses is not None:
        return f"{bar.misses} {'miss' if bar.misses == 1 else 'misses'} allowed"
    return f"{bar.lowest:.4f}"


def _change(
    key: str,
    before: str | None,
    after: str | None,
    looser: bool,
    measure: str | None = None,
    category: str | None = None,
) -> BarChange:
    return BarChange(
        arm=None, key=key, measure=measure, category=category, before=before, after=after, looser=looser
    )


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, float):
        return f"{value:.6g}"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
