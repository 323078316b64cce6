"""The text of policy files: put floors and budgets into what stands there, comments and other arms untouched."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import eval_gate
from eval_core.errors import Misuse, Refused
from eval_gate.policy import ArmFloors, lowest

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def floors_text(text: str, arms: Mapping[str, ArmFloors]) -> str:
    """Put arms into the text of a floors file, leaving the other arms and all comments as they stand.

    Raises:
        Misuse: the text is so arranged that it cannot be edited.
    """
    import tomlkit

    document = _parse(text)
    if not text.strip():
        document.add(tomlkit.comment("Written by eval-gate floor from measured runs."))
        document.add(
            tomlkit.comment("A change here is a change of the bar: a commit of its own, that names the runs.")
        )
    _put(document, "schema", "floors-v1")
    _put(document, "min_gate", eval_gate.__version__)
    if "arms" not in document:
        document["arms"] = tomlkit.table(is_super_table=True)
    tables: Any = document["arms"]
    wanted = {name: _values(arm) for name, arm in arms.items()}
    for name, values in wanted.items():
        if name in tables:
            _update(tables[name], values)
        else:
            tables[name] = _table(values)
    made = tomlkit.dumps(document)
    before = tomllib.loads(text).get("arms", {})
    if tomllib.loads(made)["arms"] != {**before, **wanted}:
        raise _odd()
    return made


def _parse(text: str) -> TOMLDocument:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise _odd() from error


def _odd() -> Misuse:
    return Misuse(
        "the policy file is so arranged that it cannot be edited without harm",
        reason="file-malformed",
        remedy="Keep each arm's tables together, headers first, as eval-gate writes them.",
    )


def _values(arm: ArmFloors) -> dict[str, Any]:
    """An arm as its tables hold it: settings, then metrics, task and evidence."""
    values: dict[str, Any] = json.loads(arm.model_dump_json(by_alias=True, exclude_none=True))
    for run in values["evidence"]:
        _drop_usual(run, categories={})
    _drop_usual(values, categories={}, tracked=False)
    return {
        **{name: v for name, v in values.items() if name not in _TABLES},
        **{t: values[t] for t in _TABLES if t in values},
    }


_TABLES = ("odds", "metrics", "categories", "task", "evidence")


def _drop_usual(table: dict[str, Any], **usual: Any) -> None:
    """Leave out what a reader would take anyway."""
    for name, value in usual.items():
        if table.get(name) == value:
            del table[name]


def _table(values: Mapping[str, Any]) -> Any:
    import tomlkit

    table = tomlkit.table()
    for name, value in values.items():
        if name == "evidence":
            table[name] = _evidence(value)
        elif isinstance(value, dict):
            table[name] = inner = tomlkit.table()
            for key, entry in value.items():
                inner[key] = _inline(entry)
        else:
            table[name] = value
    return table


def _update(table: Any, values: Mapping[str, Any]) -> None:
    """Make a table say what it should, touching only what differs."""
    for name in [name for name in table if name not in values]:
        del table[name]
    for name, value in values.items():
        if name == "evidence":
            if name not in table or table[name].unwrap() != value:
                _replace_evidence(table, value)
        elif isinstance(value, dict) and name in table:
            for key in [key for key in table[name] if key not in value]:
                del table[name][key]
            for key, entry in value.items():
                _put(table[name], key, entry)
        elif isinstance(value, dict):
            table[name] = _table({name: value})[name]
        else:
            _put(table, name, value)


def _put(table: Any, name: str, value: Any) -> None:
    held = table.get(name)
    if held is None or (held.unwrap() if hasattr(held, "unwrap") else held) != value:
        table[name] = _inline(value)


def _inline(value: Any) -> Any:
    import tomlkit

    if not isinstance(value, dict):
        return value
    inline = tomlkit.inline_table()
    inline.update(value)
    return inline


def _evidence(runs: Iterable[Mapping[str, Any]]) -> Any:
    import tomlkit

    array = tomlkit.aot()
    for run in runs:
        entry = tomlkit.table()
        for key, value in run.items():
            entry[key] = _inline(value)
        array.append(entry)
    return array


def _replace_evidence(table: Any, runs: Iterable[Mapping[str, Any]]) -> None:
    """Put other runs in, and keep the comments that follow the old ones: they speak of the next table."""
    from tomlkit.items import AoT

    trailing: list[Any] = []
    held = table.get("evidence")
    body = held.body[-1].value.body if isinstance(held, AoT) and held.body else []
    while body and body[-1][0] is None:
        trailing.insert(0, body.pop()[1])
    made = _evidence(runs)
    if trailing and made.body:
        for item in trailing:
            made.body[-1].value.body.append((None, item))
    table["evidence"] = made


def plain(arms: Mapping[str, ArmFloors]) -> str:
    """The plain form: n and floors rounded down to two decimals, for gates that know nothing of tasks or evidence.

    A floor rounded down lets more through than the margin says: with 26 of 27 and two misses it is 0.88, and it takes
    a third new miss (23 of 27) to fail it. The native form counts misses and has no such gap.

    Raises:
        Refused: a floor rounds down to 0, which would pass anything.
    """
    lines = []
    for name, arm in arms.items():
        lines.append(f"# margin: {arm.margin} misses below the worst of these runs, rounded down")
        for run in arm.evidence:
            values = ", ".join(f"{metric} {value:.4f}" for metric, value in run.values.items())
            lines.append(f"#   {run.run_id}  {values}")
        lines += [f"[{_key(name)}]", f"n = {arm.n}"]
        for metric, floor in arm.metrics.items():
            hundredths = rounded_down(lowest(floor, arm.n))
            if hundredths <= 0:
                raise Refused(
                    f"{name}: the floor of {metric}, {lowest(floor, arm.n):.4f}, is 0.00 in the plain form",
                    reason="floor-vacuous",
                    remedy="Floor other measures with --metric, or write the native form.",
                )
            lines.append(f"{_key(metric)} = {hundredths / 100:.2f}")
        lines.append("")
    return "\n".join(lines)


def rounded_down(value: float) -> int:
    """Whole hundredths at or below a value; a value within 1e-11 of the next counts as that one."""
    return math.floor(value * 100 + 1e-9)


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else json.dumps(name)


def budgets_text(text: str, p95_ms: Mapping[str, float]) -> str:
    """The text of a budgets file with a latency budget put in for some arms, the rest as it stands."""
    import tomlkit

    document = _parse(text)
    if not text.strip():
        document.add(tomlkit.comment("What must not be exceeded, for the arms that it names."))
    _put(document, "schema", "budgets-v1")
    if p95_ms and "arms" not in document:
        document["arms"] = tomlkit.table(is_super_table=True)
    for name, limit in p95_ms.items():
        tables: Any = document["arms"]
        if name not in tables:
            tables[name] = tomlkit.table()
        _put(tables[name], "p95_ms", limit)
    return tomlkit.dumps(document)


def present(path: Path) -> str:
    """The text of a policy file that was read and found sound already; empty where there is none."""
    return path.read_text(encoding="utf-8") if path.exists() else ""
