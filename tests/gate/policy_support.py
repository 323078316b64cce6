"""A policy of the second form, written from measured reports without the verb that is under test."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from eval_core.files import digest
from eval_core.policy.arm import shown_floors
from eval_core.policy.bars import Choices
from eval_core.policy.evidence import Line, dump, line_digest, line_of, path_of
from eval_core.policy.models import REQUIRED
from eval_core.reports.check import quality_digest
from eval_core.reports.keys import digested_parts
from eval_core.reports.provenance import producer_of
from eval_core.reports.report import Report


def write_policy(
    folder: Path,
    runs: Mapping[str, Sequence[Report | Line]],
    *,
    arms: Mapping[str, Mapping[str, Any]] | None = None,
    budgets: Mapping[str, Mapping[str, Any]] | None = None,
    require: Sequence[str] | None = None,
    retired: Mapping[str, str] | None = None,
    why: Mapping[str, str] | None = None,
    **choices: Any,
) -> None:
    """Write floors.toml, budgets.toml and evidence/ARM.jsonl.

    Args:
        folder: `policy/`.
        runs: by arm, the runs that its floors stand on, as reports or as lines.
        arms: by arm, choices that are its own; see `floors_table`.
        budgets: by arm, its table of budgets.toml; there is no such file where None.
        require: the requirements; those of the model where None.
        retired: arms that are gone, and why.
        why: reasons of the file as a whole.
        choices: of every arm.
    """
    head: dict[str, Any] = {"schema": "floors-v2"}
    if require is not None:
        head["require"] = list(require)
        if not set(REQUIRED) <= set(require):
            why = {"require": "not for this test"} if why is None else why
    text = _keys(head)
    for name, table in (("reasons", why), ("retired", retired)):
        if table:
            text += f"\n[{name}]\n{_keys(table)}"
    (folder / "evidence").mkdir(parents=True, exist_ok=True)
    for arm, several in runs.items():
        lines = [run if isinstance(run, Line) else line_of(run) for run in several]
        path_of(folder, arm).write_bytes(dump(lines))
        text += arm_text(arm, floors_table(lines, **{**choices, **(arms or {}).get(arm, {})}))
    (folder / "floors.toml").write_text(text, encoding="utf-8")
    if budgets is not None:
        text = _keys({"schema": "budgets-v2"})
        text += "".join(arm_text(arm, table) for arm, table in budgets.items())
        (folder / "budgets.toml").write_text(text, encoding="utf-8")


def floors_table(
    lines: Sequence[Line],
    *,
    margin: int | str = 2,
    corpus: str = "pinned",
    drift: float | None = None,
    by_category: bool = False,
    measures: Sequence[str] | None = None,
    left_out: Iterable[str] = (),
    reasons: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The table of one arm: what is chosen, and what follows from its runs."""
    lines = sorted(lines, key=lambda line: (line.started, line.run_id))
    choices = Choices(margin, corpus == "drifts", measures, frozenset(left_out), by_category)  # type: ignore[arg-type]  # tests also write margins that are none
    shown = shown_floors(choices, lines)
    table: dict[str, Any] = {"runs": list(shown.runs), "n": shown.n}
    if margin != 2:
        table["margin"] = margin
    if corpus != "pinned":
        table["corpus"] = corpus
    if drift is not None:
        table["drift"] = drift
    if by_category:
        table["by_category"] = True
    table |= {
        name: value for name, value in zip(("floors", "misses_allowed"), shown[2:4], strict=True) if value
    }
    if shown.categories:
        table["categories"] = {name: part.model_dump() for name, part in shown.categories.items()}
    if reasons:
        table["reasons"] = dict(reasons)
    return table


def arm_text(arm: str, table: Mapping[str, Any]) -> str:
    """The text of a table `[arms."NAME"]`."""
    reasons = table.get("reasons")
    text = f'\n[arms."{arm}"]\n' + _keys({name: value for name, value in table.items() if name != "reasons"})
    return text + (f'[arms."{arm}".reasons]\n{_keys(reasons)}' if reasons else "")


def _keys(table: Mapping[str, Any]) -> str:
    return "".join(f"{_key(name)} = {_value(value)}\n" for name, value in table.items())


def _key(name: str) -> str:
    return name if name.replace("_", "").isalnum() else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(name)} = {_value(item)}" for name, item in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


def updating(*place: str, **fields: Any) -> Callable[[Any], None]:
    """A change for `resealed`, `forge` and `alter`: these fields of the table in this place get these values."""

    def change(table: Any) -> None:
        for key in place:
            table = table[key]
        table.update(fields)

    return change


def resealed(line: Line, change: Callable[[Any], object] | None = None) -> Line:
    """A line that was changed in its JSON form, with every digest redone: a sound line of something else."""
    table = line.model_dump(mode="json", by_alias=True)
    if change is not None:
        change(table)
    line = Line.model_validate_json(json.dumps(table))
    parts = digested_parts(
        ((entry.id, entry.query) for entry in line.entries),
        ((entry.id, {document: grade for document, grade, _ in entry.judged}) for entry in line.entries),
    )
    task = {**line.task, **parts}
    line = line.model_copy(
        update={
            "task": task,
            "quality": quality_digest(task, line.system, line.entries),
            "fingerprint": digest(producer_of(line.version, task, line.system)),
        }
    )
    return line.model_copy(update={"line": line_digest(line)})
