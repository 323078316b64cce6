"""A report: one arm's run against its judgements, with all that is needed to check it, compare it and explain it.

Everything a reader relies on is recomputed from the rows when a report is read: metric values, summary, counts, the
digests, and the parts of the task key that rows determine. A report that was edited in one place does not load, but
for timing and the names of process and host, which a committed copy leaves out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import ValidationError, ValidationInfo, model_validator

from eval_core.errors import UNSET, Refused
from eval_core.files import atomic, refuse_special
from eval_core.reports.check import (
    check_digests,
    check_rows,
    check_summary,
    quality_of,
    rankings_digest,
    run_digest,
)
from eval_core.reports.models import Digests, ReportFields, ReportRow, Slice, Summary
from eval_core.scoring import metrics
from eval_core.scoring.memory import uncollected

if TYPE_CHECKING:
    from eval_core.faults import Described

SCHEMA = "report-v1"

#: Says to the model that the bytes are known, so that nothing needs to be recomputed.
_KNOWN = "known"


class Report(ReportFields):
    """One arm measured once."""

    def stripped(self) -> Report:
        """A copy without timing, process and host: what may be committed, byte for byte the same on any machine."""
        environment = self.environment.model_copy(update={"process": None, "host": None})
        return self.model_copy(update={"latency": None, "ingest": None, "environment": environment})

    @classmethod
    def sealed(cls, **fields: Any) -> Self:
        """Make a report of all its fields but `digests`, which are taken over the others."""
        draft = cls.model_construct(**fields)
        rankings = rankings_digest(draft.rows)
        quality = quality_of(draft)
        return cls(**fields, digests=Digests(rankings=rankings, quality=quality, run=run_digest(draft)))

    @model_validator(mode="after")
    def _holds(self, info: ValidationInfo) -> Self:
        if info.context == _KNOWN:
            return self
        check_rows(self)
        check_summary(self.summary, summarise(self.rows, self.measures))
        check_digests(self)
        return self


def summarise(rows: Iterable[ReportRow], measures: list[str]) -> Summary:
    """Means over scored rows, overall and by category in the order of first appearance."""
    scored = [row for row in rows if row.outcome == "scored"]
    groups: dict[str, list[ReportRow]] = {}
    for row in scored:
        if row.category:
            groups.setdefault(row.category, []).append(row)
    return Summary(
        overall=_slice(scored, measures),
        categories={name: _slice(members, measures) for name, members in groups.items()},
    )


def _slice(rows: list[ReportRow], measures: list[str]) -> Slice:
    tables = [row.metrics for row in rows]
    values = {name: metrics.mean([table[name] for table in tables]) for name in measures}
    return Slice(n=len(rows), metrics=values)


def dump(report: Report) -> bytes:
    """The bytes of a report's file: a line a field, a line a row, so that a diff shows which query moved."""
    value: dict[str, Any] = report.model_dump(mode="json", by_alias=True)
    rows: list[Mapping[str, Any]] = value.pop("rows")
    lines = [
        f' "{name}": {json.dumps(item, ensure_ascii=False, allow_nan=False)},' for name, item in value.items()
    ]
    body = ",\n".join("  " + json.dumps(_slim(row), ensure_ascii=False, allow_nan=False) for row in rows)
    return ("{\n" + "\n".join(lines) + '\n "rows": [\n' + body + "\n ]\n}\n").encode("utf-8")


def _slim(row: Mapping[str, Any]) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "candidates": None,
        "stable": True,
        "detail": "",
        "metrics": {},
        "ids": [],
        "judged": [],
    }
    return {name: item for name, item in row.items() if name not in usual or item != usual[name]}


def write_report(path: Path, report: Report) -> None:
    """Write a report, whole or not at all."""
    with atomic(path) as stream:
        stream.write(dump(report))


def read_report(path: Path, arm: str | None = None) -> Report:
    """Read a report and check everything in it.

    Raises:
        Refused: with a reason: `report-missing`, `report-malformed` (not JSON, cut short, not the schema, or at odds
            with its own rows), `report-of-another-arm`.
    """
    return parse_report(report_bytes(path), path, arm)


def report_bytes(path: Path) -> bytes:
    """What a report's file holds.

    Raises:
        Refused: `report-missing`.
    """
    try:
        refuse_special(path)
        return path.read_bytes()
    except FileNotFoundError as error:
        raise Refused("report-missing", "there is no such report", file=path) from error
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        raise Refused("report-missing", what, file=path) from error


def parse_report(raw: bytes, path: Path, arm: str | None = None, *, known: bool = False) -> Report:
    """Check the bytes of a report; see `read_report`.

    `known` says that their SHA-256 is one that was taken when they were checked: they are read, and not checked again.
    """
    try:
        with uncollected():
            report = Report.model_validate_json(raw, context=_KNOWN if known else None)
            if not known:
                json.loads(raw, object_pairs_hook=_distinct)
    except ValidationError as error:
        key, value, what = _told(raw, error)
        raise Refused("report-malformed", what, file=path, key=key, value=value) from error
    except (ValueError, OverflowError) as error:
        raise Refused("report-malformed", str(error), file=path) from error
    if arm is not None and report.arm != arm:
        what = f"is a report of arm {report.arm!r}, not of {arm!r}"
        raise Refused("report-of-another-arm", what, file=path)
    return report


def _told(raw: bytes, error: ValidationError) -> Described:
    from eval_core.faults import Described, first

    if not raw.strip():
        return Described(None, UNSET, "is empty")
    detail = error.errors(include_url=False)[0]
    if detail["type"] == "json_invalid":
        return Described(None, UNSET, f"is not whole JSON: {detail['ctx']['error']}; measure again")
    return first(error, Report)


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    """Refuse a table that names a key twice: parsers differ in which value they take, and people read the first."""
    if len(dict(pairs)) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {twice!r} is given twice in one table; measure again")
