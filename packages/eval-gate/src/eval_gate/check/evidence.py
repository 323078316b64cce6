"""The evidence that floors cite, and the baseline, held byte for byte against what the floors say of them.

Inside `floors.toml` a floor and its evidence can be edited together so that they agree. The copies in
`policy/evidence/` are whole reports, checked when they were written; the floors hold the SHA-256 of each, so that an
edit would have to change the copy too, in a diff that shows what was measured; what they say of a run is held against
the head of its copy. A baseline is one of those copies.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from eval_core.errors import EvalError, Refused
from eval_core.files import refuse_special
from eval_core.reports.report import Report, parse_report
from eval_gate.policy import BASELINES, EVIDENCE, TOLERANCE, ArmFloors, Evidence
from eval_gate.verdict import Reason

#: Where the rows of a report begin: `eval_core.reports.report.dump` writes them last.
_ROWS = b',\n "rows": ['


def uncited(policy: Path, arm: str, floors: ArmFloors) -> list[Reason]:
    """Say which evidence of an arm has no copy, or another one than the floors say."""
    reasons = []
    for run in floors.evidence:
        path = policy / EVIDENCE / arm / f"{run.run_id}.json"
        code, message = "", ""
        try:
            raw = _bytes(path)
            if hashlib.sha256(raw).hexdigest() != run.sha256:
                code, message = "evidence-differs", "is another report than the floors stand on"
            elif problem := _misquoted(raw, run):
                code, message = "evidence-differs", problem
        except FileNotFoundError:
            code, message = "evidence-missing", "the floors stand on this run, and its copy is not there"
        except EvalError as error:
            code, message = "evidence-malformed", error.message.partition(": ")[2]
        except OSError as error:
            code, message = "evidence-malformed", f"cannot be read: {error.strerror or error}"
        if code:
            reasons.append(
                Reason(
                    code=code,
                    word="refused",
                    message=f"{path}: {message}",
                    remedy=f"Restore it from git, or measure twice and write both:  eval-gate floor {arm} --write",
                )
            )
    return reasons


def _misquoted(raw: bytes, run: Evidence) -> str | None:
    """What the floors say of a run otherwise than the head of its copy does: a floor follows from what they say."""
    try:
        head: dict[str, Any] = json.loads(raw.partition(_ROWS)[0] + b"}")
        environment, summary = head["environment"], head["summary"]
        said: list[tuple[str, Any, Any]] = [
            ("run_id", run.run_id, head["run_id"]),
            ("started", run.started, environment["started"]),
            ("digest", run.digest, head["digests"]["quality"]),
            ("commit", run.commit, environment["commit"]),
            ("class", run.class_, environment["class"]),
        ]
        slices = [("", run.values, summary["overall"])]
        slices += [
            (f" of {name}", table, summary["categories"][name]) for name, table in run.categories.items()
        ]
        for where, values, part in slices:
            said += [(f"{name}{where}", value, part["metrics"][name]) for name, value in values.items()]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "is no report that was copied here"
    for name, ours, theirs in said:
        if ours != theirs and not (isinstance(ours, float) and abs(ours - theirs) <= TOLERANCE):
            return f"has {name} = {theirs!r}, and the floors say {ours!r}"
    return None


def read_baseline(policy: Path, arm: str, floors: ArmFloors) -> Report | EvalError:
    """The committed baseline of an arm, or why it is none.

    Bytes that the floors know are read without checking them again. Others are checked in full, so that what is wrong
    with them can be said, and are refused all the same.
    """
    path = policy / BASELINES / f"{arm}.json"
    try:
        raw = _bytes(path)
        known = hashlib.sha256(raw).hexdigest() in {run.sha256 for run in floors.evidence}
        report = parse_report(raw, path, arm, known=known)
    except FileNotFoundError:
        return Refused(f"{path}: no such baseline", reason="baseline-missing")
    except OSError as error:
        return Refused(f"{path}: cannot be read: {error.strerror or error}", reason="baseline-malformed")
    except EvalError as error:
        return Refused(error.message, reason="baseline-malformed")
    if known:
        return report
    cited = report.run_id in {run.run_id for run in floors.evidence}
    return Refused(
        f"{path}: is not the copy of run {report.run_id} in {policy / EVIDENCE / arm}"
        if cited
        else f"{path}: is run {report.run_id}, none of the runs that the floors stand on",
        reason="baseline-differs" if cited else "policy-mixed",
        remedy=f"Restore it from git, or move both in one commit:  eval-gate floor {arm} --write && "
        f"eval-gate baseline {arm} --write",
    )


def measured(reports: Path) -> list[str]:
    """The arms that have a report in a folder, by name."""
    return sorted(path.stem for path in reports.glob("*.json"))


def _bytes(path: Path) -> bytes:
    refuse_special(path)
    return path.read_bytes()
