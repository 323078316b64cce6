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

from eval_core.errors import EvalError, Fault, Faults, Misuse, Refused, did_you_mean
from eval_core.files import read_text, refuse_special
from eval_core.policy import MOST_QUERIES, TOLERANCE
from eval_core.scoring import metrics
from eval_gate.check.rules import breach
from eval_gate.verdict import ArmVerdict, Graded, Reason, Word

Plain = Mapping[str, Mapping[str, Any]]

#: Keys of an arm's table that are no floors.
_SETTINGS = ("n", "aliases")


def read_plain(path: Path) -> Plain:
    """Read a plain floors file: tables of an arm with `n`, floors by measure, and optionally `aliases`.

    `aliases = { "recall@1" = "hit@1" }` says that a floor's name, as its reports have it, means another measure here.

    Raises:
        Misuse: absent or not TOML.
        Faults: no arm, an arm without n or without floors, or a value that is no number in [0, 1].
    """
    text = read_text(path, "floors file")
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also a number of thousands of digits
        raise Misuse("file-malformed", f"the floors file is not TOML: {error}", file=path) from error
    faults = [Fault(fault, file=path) for arm, floors in table.items() for fault in _faults(arm, floors)]
    if not table:
        faults.append(Fault("it names no arm; a gate that looks at nothing cannot pass", file=path))
    if faults:
        raise Faults(faults, consequence="nothing was graded")
    return table


def _faults(arm: str, floors: object) -> list[str]:
    if not isinstance(floors, dict):
        return [f"{arm!r} = {_shown(floors)}: expected a table [{arm}] with n and floors"]
    faults = []
    n = floors.get("n")
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= MOST_QUERIES:
        faults.append(f"{arm!r}.n = {_shown(n)}: should be a whole number of at least 1")
    values = _floors(floors)
    if not values:
        faults.append(f"{arm!r} has no floor; whatever it scored would pass")
    for name, value in values.items():
        faults += [f"{arm!r}.{fault}" for fault in _measure_faults(name)]
        if not _is_share(value):
            faults.append(f"{arm!r}.{name!r} = {_shown(value)}: should be a number between 0 and 1")
        elif value == 0:
            faults.append(f"{arm!r}.{name!r} = 0: a floor of nothing passes everything")
    aliases = floors.get("aliases", {})
    if not isinstance(aliases, dict):
        return [*faults, f"{arm!r}.aliases = {_shown(aliases)}: should be a table of name = measure"]
    for name, meant in aliases.items():
        if name not in values:
            faults.append(f"{arm!r}.aliases names {name!r}, which has no floor{did_you_mean(name, values)}")
        if not isinstance(meant, str):
            faults.append(f"{arm!r}.aliases.{name!r} = {_shown(meant)}: should be the name of a measure")
        else:
            faults += [f"{arm!r}.aliases.{fault}" for fault in _measure_faults(meant)]
    return faults


def _measure_faults(name: str) -> list[str]:
    try:
        metrics.parse(name)
    except EvalError as error:
        return [f"{name!r}: {error}"]
    return []


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, or tables in tables without end
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:59] + "…"


def _floors(arm: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arm.items() if name not in _SETTINGS}


def _is_share(value: object) -> bool:
    """A number, and not `true`, `"0.95"`, NaN, infinity, or outside [0, 1]."""
    return (
        not isinstance(value, bool)
        and isinstance(value, int | float)
        and 0 <= value <= 1  # first: a whole number may be too large for isfinite
        and math.isfinite(value)
    )


def read_summary(path: Path, arm: str) -> tuple[Mapping[str, Any], bool]:
    """The values of a report by name, with `n`, and whether the report is one of ours.

    Of another tool's it is the table `summary.overall`, or the whole object, as it stands; ours is checked whole.

    Raises:
        Refused: absent, not whole JSON, without such a table, or ours and unsound.
    """
    try:
        refuse_special(path)
        raw = path.read_bytes()
    except FileNotFoundError as error:
        raise Refused("report-missing", "there is no such report", file=path) from error
    except (OSError, ValueError) as error:  # ValueError: an arm's name that can be no file's
        raise Refused("report-missing", f"it cannot be read: {error}", file=path) from error
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        what = "it is empty" if not raw.strip() else f"it is not whole JSON: {error}"
        raise Refused("report-malformed", what, file=path) from error
    if isinstance(value, dict) and "schema" in value:
        return _ours(raw, path, arm), True
    summary = value.get("summary", value) if isinstance(value, dict) else None
    overall = summary.get("overall", summary) if isinstance(summary, dict) else None
    if not isinstance(overall, dict):
        raise Refused("report-malformed", "it has no table summary.overall", file=path)
    return overall, False


def _ours(raw: bytes, path: Path, arm: str) -> Mapping[str, Any]:
    from eval_core.reports import parse_report

    report = parse_report(raw, path, arm)
    if report.health.errored or report.health.unscored:
        raise Refused(
            "rows-errored",
            f"{report.health.errored} rows errored and {report.health.unscored} were not asked",
            file=path,
            mend="A run with errored rows is no finding. Mend the backend and measure again.",
        )
    return {"n": report.n, **report.summary.overall.metrics}


def judge_plain(arm: str, floors: Mapping[str, Any], report: Path) -> ArmVerdict:
    """Grade one arm of a plain floors file."""
    try:
        overall, ours = read_summary(report, arm)
    except EvalError as error:
        return ArmVerdict(arm=arm, verdict="refused", reasons=(Reason.of(error),), unbound=True)
    refusals: list[Reason] = []
    n = overall.get("n")
    whole = n if isinstance(n, int) and not isinstance(n, bool) else None
    if whole is None or whole != floors["n"]:
        refusals.append(_no("n-differs", f"n is {_shown(n)}, and the floors are for exactly {floors['n']}"))
    aliases: Mapping[str, str] = floors.get("aliases", {})
    graded: list[Graded] = []
    for name, floor in _floors(floors).items():
        meant = aliases.get(name, name)
        key = meant if ours else name
        if key not in overall:
            hint = did_you_mean(key, [known for known in overall if known != "n"])
            refusals.append(_no("metric-missing", f"the report lacks it{hint}", key))
        elif not _is_share(overall[key]):
            what = f"it is {_shown(overall[key])}, which is no number between 0 and 1"
            refusals.append(_no("metric-invalid", what, key))
        else:
            graded.append(_grade(meant, float(overall[key]), float(floor), floors["n"]))
    if refusals:
        return ArmVerdict(arm=arm, verdict="refused", n=whole, reasons=tuple(refusals), unbound=True)
    breaches = tuple(breach(grade) for grade in graded if not grade.passed)
    word: Word = "fail" if breaches else "pass"
    return ArmVerdict(arm=arm, verdict=word, n=whole, reasons=breaches, graded=tuple(graded), unbound=True)


def _grade(measure: str, value: float, floor: float, n: int) -> Graded:
    return Graded(
        measure=measure,
        n=n,
        value=value,
        lowest=floor,
        rule="floor",
        floor=floor,
        queries=0,
        passed=value >= floor - TOLERANCE,
    )


def _no(code: str, what: str, key: str | None = None) -> Reason:
    return Reason(code=code, word="refused", what=what, key=key)
