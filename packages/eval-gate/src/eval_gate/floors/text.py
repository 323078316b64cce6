"""The text of floors.toml and budgets.toml, and of the plain form for other gates."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from eval_core.errors import Refused
from eval_core.policy import REQUIRED, ArmFloors, ArmPolicy, Budgets, Floors
from eval_gate.floors.chance import by_floor

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")

_FLOORS_HEAD = """\
# Written by eval-gate floor from measured runs; choices and reasons may be edited, numbers follow from policy/evidence.
# A change here is a change of the bar: a commit of its own.
"""
_BUDGETS_HEAD = "# Written by eval-gate floor: what must not be exceeded, where it is not what is usual.\n"


def floors_text(floors: Floors) -> str:
    """The text of a floors file: at most 12 lines an arm, and what is usual is not written, but for the margin."""
    lines = [_FLOORS_HEAD + f"schema = {_value(floors.schema_)}"]
    if floors.min_gate is not None:
        lines.append(f"min_gate = {_value(floors.min_gate)}")
    if floors.require != REQUIRED:
        lines.append(f"require = {_value(floors.require)}")
    lines += _table("reasons", floors.reasons) + _table("retired", floors.retired)
    for name, arm in floors.arms.items():
        lines += ["", f"[arms.{_quoted(name)}]", *_keys(_settings(arm))]
        lines += _table(f"arms.{_quoted(name)}.reasons", arm.reasons, apart=False)
    return "\n".join(lines) + "\n"


def _settings(arm: ArmFloors) -> dict[str, Any]:
    """What is written of an arm, in the order of its fields."""
    given: dict[str, Any] = arm.model_dump(mode="json", exclude={"reasons"}, exclude_defaults=True)
    return {"runs": given.pop("runs"), "n": given.pop("n"), "margin": arm.margin, **given}


def budgets_text(budgets: Budgets) -> str:
    """The text of a budgets file."""
    lines = [_BUDGETS_HEAD + f"schema = {_value(budgets.schema_)}"]
    for name, budget in budgets.arms.items():
        given = budget.model_dump(mode="json", exclude={"reasons"}, exclude_defaults=True)
        if given or budget.reasons:
            lines += ["", f"[arms.{_quoted(name)}]", *_keys(given)]
            lines += _table(f"arms.{_quoted(name)}.reasons", budget.reasons, apart=False)
    return "\n".join(lines) + "\n"


def _table(name: str, values: Mapping[str, str], *, apart: bool = True) -> list[str]:
    if not values:
        return []
    return [*([""] if apart else []), f"[{name}]", *_keys(values)]


def _keys(values: Mapping[str, Any]) -> list[str]:
    return [f"{_key(name)} = {_value(value)}" for name, value in values.items()]


def _value(value: Any) -> str:
    """A value as TOML writes it. JSON's texts, numbers and booleans are TOML's, but for DEL."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {_value(item)}" for name, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _value(name)


def _quoted(name: str) -> str:
    return _value(name)


def plain(arms: Iterable[ArmPolicy]) -> str:
    """The plain form: n and floors rounded down to two decimals, for gates that know nothing of tasks or evidence.

    A floor rounded down lets more through than the margin says: with 26 of 27 and two misses it is 0.88, and it takes
    a third new miss (23 of 27) to fail it. The native form counts misses and has no such gap.

    Raises:
        Refused: a floor rounds down to 0, which would pass anything.
    """
    lines = []
    for arm in arms:
        lines.append(f"# margin: {arm.margin} misses below the worst of these runs, rounded down")
        for run in arm.lines:
            values = ", ".join(f"{measure} {run.mean(measure):.4f}" for measure in arm.floors.measures)
            lines.append(f"#   {run.run_id}  {values}")
        lines += [f"[{_key(arm.name)}]", f"n = {arm.floors.n}"]
        for bar in arm.bars:
            if bar.floor is None or bar.category is not None:
                continue
            lowest = by_floor(bar)
            hundredths = math.floor(lowest * 100 + 1e-9)
            if hundredths <= 0:
                raise Refused(
                    "floor-vacuous",
                    f"its floor, {lowest:.4f}, is 0.00 in the plain form",
                    subject=arm.name,
                    key=bar.measure,
                    mend="Leave it out with --reason, or write the native form.",
                )
            lines.append(f"{_key(bar.measure)} = {hundredths / 100:.2f}")
        lines.append("")
    return "\n".join(lines)
