"""Whether `eval.toml`'s defaults, the policy and the promotion records agree: a promotion is there whole or not.

Part of every check, so nothing is read beyond what must be, and no model is built.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from eval_core.console import utf8
from eval_gate.check.eligibility import refusal
from eval_gate.policy import BASELINES, BUDGETS, FLOORS, Budgets, Floors
from eval_gate.verdict import Reason

#: Where records lie below the policy's folder; `models.RECORDS` is the same.
RECORDS = "promotions"

_NAME = re.compile(r"([0-9]{4,9})-.+\.json")


def mixed(config: Path, policy: Path, floors: Floors, budgets: Budgets) -> list[Reason]:
    """A5: say which piece of a promotion is missing, for each dataset that has a default or a record.

    The arm that is the default must have floors that gate, a baseline and a latency budget; where the dataset has
    promotion records, the newest must name it as the candidate, and the floors must stand on a run of that record or on
    a later one, so that an older bar cannot be put back below a newer default.

    Args:
        config: eval.toml; one that is absent, or does not read, has no default.
        policy: the policy's folder.
        floors, budgets: what it holds.
    """
    defaults = _defaults(config)
    found = records(policy / RECORDS)
    if not defaults and not found:
        return []
    newest: dict[PurePosixPath, tuple[Path, Any]] = {}
    reasons = []
    for before, path in zip([None, *found], found, strict=False):
        record = _record(path)
        if record is None:
            reasons.append(_reason(f"{path}: is no promotion record", "Restore it from git."))
            continue
        if before is not None and _number(before) == _number(path):
            message = f"{before} and {path} have one number, so neither is the newest"
            reasons.append(
                _reason(
                    message, "Two promotions met: keep the one that was merged first, and repeat the other."
                )
            )
        newest[PurePosixPath(record["dataset"])] = (path, record)
    for dataset, (path, record) in newest.items():
        if dataset not in {PurePosixPath(name) for name in defaults}:
            named = f"{path} promotes {record['candidate']!r} for {str(dataset)!r}"
            message = f"{named}, and {config} names no default for it"
            reasons.append(_reason(message, "Restore [default] of eval.toml from git."))
    for name, arm in defaults.items():
        lacking = [*_lacking(arm, policy, floors, budgets)]
        last = newest.get(PurePosixPath(name))
        if last is not None:
            lacking += _unrecorded(arm, *last, floors)
        if lacking:
            message = f"{config}: {arm!r} is the default for {name!r}, and {'; '.join(lacking)}"
            reasons.append(
                _reason(
                    message,
                    "A promotion moves default, floors, baseline and budget in one commit: restore what is missing, or "
                    f"promote again:  eval-gate promote {arm} --over … --write",
                )
            )
    return reasons


def _reason(message: str, remedy: str) -> Reason:
    return refusal("promotion-mixed", utf8(message), remedy)


def _defaults(config: Path) -> dict[str, str]:
    """The arm that is the default by dataset. What is wrong with eval.toml is told by what measures."""
    try:
        table = tomllib.loads(config.read_text(encoding="utf-8")).get("default", {})
    except (OSError, ValueError, RecursionError):
        return {}
    held = table if isinstance(table, dict) else {}
    return {name: arm if isinstance(arm, str) else repr(arm) for name, arm in held.items()}


def records(folder: Path) -> list[Path]:
    """The records in a folder, oldest first."""
    numbered = [
        (int(match[1]), path) for path in folder.glob("*.json") if (match := _NAME.fullmatch(path.name))
    ]
    return [path for _, path in sorted(numbered)]


def next_number(folder: Path) -> int:
    """The number of the next record."""
    found = records(folder)
    return _number(found[-1]) + 1 if found else 1


def _number(path: Path) -> int:
    return int(path.name.partition("-")[0])


def _record(path: Path) -> Mapping[str, Any] | None:
    try:
        record = json.loads(path.read_bytes())
        runs = [(run["run_id"], run["started"], run["sha256"]) for run in record["floors"]]
        texts = [record["dataset"], record["candidate"], *(text for run in runs for text in run)]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    sound = record.get("schema") == "promotion-record-v1" and runs and all(isinstance(t, str) for t in texts)
    return record if sound else None


def _lacking(arm: str, policy: Path, floors: Floors, budgets: Budgets) -> Iterator[str]:
    held = floors.arms.get(arm)
    if held is None:
        yield f"has no floors in {policy / FLOORS}"
    elif held.tracked:
        yield f"is only tracked in {policy / FLOORS}, so nothing gates it"
    # os.path says no where a name is too long for a file; Path would raise.
    if not os.path.exists(policy / BASELINES / f"{arm}.json"):
        yield f"has no baseline in {policy / BASELINES}"
    budget = budgets.arms.get(arm)
    if budget is None or budget.p95_ms is None:
        yield f"has no p95_ms in {policy / BUDGETS}"


def _unrecorded(arm: str, path: Path, record: Mapping[str, Any], floors: Floors) -> Iterator[str]:
    if record["candidate"] != arm:
        yield f"{path}, the newest record for it, promotes {record['candidate']!r}"
        return
    held = floors.arms.get(arm)
    if held is None:
        return
    promoted = {run["sha256"] for run in record["floors"]}
    last = max(run["started"] for run in record["floors"])
    if not any(run.sha256 in promoted or run.started > last for run in held.evidence):
        yield f"its floors stand on older runs than {path}, and on none of those that it names"
