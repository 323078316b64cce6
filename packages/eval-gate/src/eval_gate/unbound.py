"""Floors and reports of other tools: a plain table, and a summary that nothing vouches for.

They are graded as *unbound*, and only when asked for: nothing ties such a report to its queries, labels or corpus, so
the verdict says only what the numbers say.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval_core import metrics
from eval_core.errors import EvalError, Fault, Faults, Misuse, Refused, did_you_mean
from eval_core.files import read_text
from eval_gate.policy import TOLERANCE
from eval_gate.verdict import ArmVerdict, Graded, Reason, Word

Plain = Mapping[str, Mapping[str, Any]]


def is_plain(text: str) -> bool:
    """Whether TOML text is a plain floors table: no `schema`."""
    try:
        return "schema" not in tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False


def read_plain(path: Path) -> Plain:
    """Read a plain floors file: tables of an arm with `n`, floors by measure, and optionally `aliases`.

    Raises:
        Misuse: absent or not TOML.
        Faults: no arm, an arm without n or without floors, or a value that is no number in [0, 1].
    """
    text = read_text(path, "floors file")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Misuse(f"{path}: the floors file is not TOML: {error}", reason="file-malformed") from error
    faults = []
    for arm, floors in table.items():
        if not isinstance(floors, dict):
            faults.append(Fault(str(path), f"{arm} = {floors!r}: expected a table [{arm}] with n and floors"))
            continue
        n = floors.get("n")
        if not isinstance(n, int) or isinstance(n, bool) or n < 1:
            faults.append(Fault(str(path), f"{arm}.n = {n!r}: should be a whole number of at least 1"))
        values = _floors(floors)
        if not values:
            faults.append(Fault(str(path), f"[{arm}] has no floor; whatever it scored would pass"))
        for name, value in values.items():
            try:
                metrics.parse(name)
            except EvalError as error:
                faults.append(Fault(str(path), f'{arm}."{name}": {error}'))
            if not _is_share(value):
                faults.append(
                    Fault(str(path), f'{arm}."{name}" = {value!r}: should be a number between 0 and 1')
                )
            elif value == 0:
                faults.append(Fault(str(path), f'{arm}."{name}" = 0: a floor of nothing passes everything'))
        aliases = floors.get("aliases", {})
        if not isinstance(aliases, dict):
            faults.append(
                Fault(str(path), f"{arm}.aliases = {aliases!r}: should be a table of name = measure")
            )
    if not table:
        faults.append(Fault(str(path), "names no arm; a gate that looks at nothing cannot pass"))
    if faults:
        raise Faults(faults, consequence="nothing was graded")
    return table


def _floors(arm: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arm.items() if name not in ("n", "aliases")}


def _is_share(value: object) -> bool:
    """A number, and not `true`, `"0.95"`, NaN, infinity, or outside [0, 1]."""
    return (
        not isinstance(value, bool)
        and isinstance(value, int | float)
        and math.isfinite(value)
        and 0 <= value <= 1
    )


def read_summary(path: Path) -> Mapping[str, Any]:
    """The table `summary.overall` (or the whole object) of a report without a schema.

    Raises:
        Refused: absent, not whole JSON, or without such a table.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise Refused(f"{path}: no such report", reason="report-missing") from error
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{path}: is not whole JSON: {error}", reason="report-malformed") from error
    summary = value.get("summary", value) if isinstance(value, dict) else None
    overall = summary.get("overall", summary) if isinstance(summary, dict) else None
    if not isinstance(overall, dict):
        raise Refused(f"{path}: has no table summary.overall", reason="report-malformed")
    return overall


def judge_plain(arm: str, floors: Mapping[str, Any], report: Path) -> ArmVerdict:
    """Grade one arm of a plain floors file."""
    try:
        overall = read_summary(report)
    except EvalError as error:
        reason = Reason(code=error.reason, word="refused", message=error.message)
        return ArmVerdict(arm=arm, verdict="refused", reasons=(reason,), unbound=True)
    refusals: list[Reason] = []
    n = overall.get("n")
    if not isinstance(n, int) or isinstance(n, bool) or n != floors["n"]:
        refusals.append(_no("n-differs", f"n is {n!r}, and the floors are for exactly {floors['n']}"))
    aliases: Mapping[str, str] = floors.get("aliases", {})
    graded: list[Graded] = []
    for name, floor in _floors(floors).items():
        shown = aliases.get(name, name)
        if name not in overall:
            hint = did_you_mean(name, [key for key in overall if key != "n"])
            refusals.append(_no("metric-missing", f"the report has no {name}{hint}"))
        elif not _is_share(overall[name]):
            refusals.append(
                _no("metric-invalid", f"{name} is {overall[name]!r}, which is no number between 0 and 1")
            )
        else:
            value = float(overall[name])
            graded.append(
                Graded(metric=shown, value=value, floor=float(floor), passed=value >= floor - TOLERANCE)
            )
    whole = n if isinstance(n, int) and not isinstance(n, bool) else None
    if refusals:
        return ArmVerdict(arm=arm, verdict="refused", n=whole, reasons=tuple(refusals), unbound=True)
    breaches = tuple(
        Reason(
            code="floor-breached",
            word="fail",
            message=f"{g.metric}: {g.value:.4f}, and the floor is {g.floor:.4f}",
            metric=g.metric,
        )
        for g in graded
        if not g.passed
    )
    word: Word = "fail" if breaches else "pass"
    return ArmVerdict(arm=arm, verdict=word, n=whole, reasons=breaches, graded=tuple(graded), unbound=True)


def _no(code: str, message: str) -> Reason:
    return Reason(code=code, word="refused", message=message)
