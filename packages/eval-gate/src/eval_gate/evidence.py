"""The evidence that floors cite, held against the copies of it in `policy/evidence/`.

Inside `floors.toml` a floor and its evidence can be edited together so that they agree. The copies are whole
reports: an edit would have to change both, in a diff that shows what was measured.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from eval_core.errors import EvalError
from eval_core.files import read_text
from eval_gate.policy import EVIDENCE, TOLERANCE, ArmFloors, Evidence
from eval_gate.verdict import Reason


def uncited(policy: Path, arm: str, floors: ArmFloors) -> list[Reason]:
    """Say which evidence of an arm has no copy, or another one than the floors say."""
    reasons = []
    for run in floors.evidence:
        path = policy / EVIDENCE / arm / f"{run.run_id}.json"
        problem = _problem(path, run)
        if problem is not None:
            code, message = problem
            reasons.append(
                Reason(
                    code=code,
                    word="refused",
                    message=f"{path}: {message}",
                    remedy=f"Restore it from git, or measure twice and write both:  eval-gate floor {arm} --write",
                )
            )
    return reasons


def _problem(path: Path, run: Evidence) -> tuple[str, str] | None:
    # Its own digests are not recomputed here: that is done when it becomes evidence, and costs what a report costs.
    try:
        table = json.loads(read_text(path, "evidence"))
        means: dict[str, Any] = table["summary"]["overall"]["metrics"]
        there = (table["run_id"], table["digests"]["quality"], table["environment"]["class"])
        values = {name: float(means[name]) for name in run.values}
    except EvalError as error:
        return (
            "evidence-missing" if error.reason == "file-missing" else "evidence-malformed"
        ), error.message.partition(": ")[2]
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return "evidence-malformed", "is no report that was copied here"
    if there != (run.run_id, run.digest, run.class_):
        return "evidence-differs", "is another run than the floors say"
    for name, value in run.values.items():
        if not abs(values[name] - value) <= TOLERANCE:
            return "evidence-differs", f"has {name} = {values[name]!r}, and the floors say {value!r}"
    return None
