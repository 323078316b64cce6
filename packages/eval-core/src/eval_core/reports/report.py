"""A report: one arm's run against its judgements, with all that is needed to check it, compare it and explain it.

Everything a reader relies on is recomputed from the rows when a report is read: metric values, summary, counts, the
digests, and the parts of the task key that rows determine. A report that was edited in one place does not load, but
for timing and the names of process and host, which a committed copy leaves out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, JsonValue, ValidationError, ValidationInfo, model_validator

from eval_core.errors import Refused
from eval_core.files import atomic, refuse_special
from eval_core.models import Closed
from eval_core.reports.check import (
    check_digests,
    check_rows,
    check_summary,
    quality_digest,
    rankings_digest,
    run_digest,
)
from eval_core.reports.keys import Key
from eval_core.scoring import metrics
from eval_core.scoring.memory import uncollected

SCHEMA = "report-v1"

#: Says to the model that the bytes are known, so that nothing needs to be recomputed.
_KNOWN = "known"


class Judged(Closed):
    """A judged document of a query: its grade, and its rank from 1 within the limit (null: not retrieved)."""

    id: str
    grade: int = Field(ge=0)
    rank: int | None = Field(ge=1)


class ReportRow(Closed):
    """One query: what was asked, what came back down to the largest cut-off, and how it scored."""

    id: str
    text: str
    meta: dict[str, JsonValue] = Field(description="The query's metadata with a meaning.")
    outcome: Literal["scored", "errored", "unscored", "unscorable"]
    ids: tuple[str, ...] = ()
    judged: tuple[Judged, ...] = ()
    metrics: dict[str, float] = Field(default={})
    candidates: int | None = Field(
        default=None, ge=0, description="Documents that the query may find; null: not counted."
    )
    stable: bool = True
    detail: str = ""

    @property
    def category(self) -> str:
        """The query's category; empty where it has none."""
        return str(self.meta.get("category", ""))


class Health(Closed):
    """The harness's own account, apart from quality. Zero counts are kept: they are the finding."""

    scored: int = Field(ge=0)
    errored: int = Field(ge=0)
    unscored: int = Field(ge=0)
    unscorable: int = Field(ge=0)
    duplicates: int = Field(ge=0, description="Repeated ids dropped from answers.")
    excess: int = Field(ge=0, description="Ids beyond what was asked for, cut.")
    restarts: int = Field(ge=0, description="Times that the backend had to be started again.")
    unstable: int = Field(ge=0, description="Queries that a repetition ranked otherwise: non-deterministic.")

    @property
    def ok(self) -> bool:
        """Whether every query that can be scored was."""
        return self.errored == 0 and self.unscored == 0 and self.scored > 0


class Environment(Closed):
    """Where and when the run was made. `process` and `host` are null in a committed copy."""

    version: str
    started: str = Field(description="UTC, ISO 8601.")
    commit: str | None
    dirty: bool | None = Field(description="Whether the work tree had uncommitted changes; null without git.")
    class_: str = Field(alias="class", description="ci, local, or EVAL_ENV_CLASS.")
    ci_run: str | None = None
    process: int | None = None
    host: str | None = None
    python: str
    platform: str


class Latency(Closed):
    """Milliseconds a query, timed at the client from request to answer, over all repetitions; nearest rank."""

    p50: float = Field(ge=0)
    p95: float = Field(ge=0)
    max: float = Field(ge=0)
    samples: int = Field(ge=1)


class Ingest(Closed):
    """How long indexing took."""

    documents: int = Field(ge=0)
    seconds: float = Field(ge=0)


class Slice(Closed):
    """Means over the scored queries of a slice, and how far off they may be for other queries of the kind.

    Readers do not recompute the intervals, for which a gate's start-up has no time: `digests.run` covers them, and
    `eval-core validate` recomputes them.
    """

    n: int = Field(ge=0)
    metrics: dict[str, float]
    intervals: dict[str, tuple[float, float]] = Field(
        default={},
        description="95% intervals of the means: Wilson's for measures of 0s and 1s, else bootstrapped over "
        "queries. None in a category of fewer than five queries.",
    )


class Summary(Closed):
    """The whole set, and each category."""

    overall: Slice
    categories: dict[str, Slice] = Field(default={})


class SetFacts(Closed):
    """Which set it was."""

    name: str
    version: str
    documents: int = Field(ge=0)
    queries: int = Field(ge=0)
    headline: str


class Digests(Closed):
    """`rankings` covers id, outcome, ids and judgements of each row; `quality` adds the two keys; `run` covers what
    else was observed, timing, process and host apart."""

    rankings: str
    quality: str
    run: str


class Report(Closed):
    """One arm measured once."""

    schema_: Literal["report-v1"] = Field(alias="schema")
    arm: str
    run_id: str = Field(min_length=1, description="Fresh at measuring; re-scoring copies it.")
    task: Key
    system: Key
    dataset: SetFacts
    environment: Environment
    index: Literal["built", "cached"]
    resumed: bool = False
    repetitions: int = Field(ge=0)
    health: Health
    summary: Summary
    latency: Latency | None = None
    ingest: Ingest | None = None
    # Tables here and models in eval_core.sets.limits: the gate never reads them, and its start-up is a feature.
    limits: dict[str, JsonValue] | None = Field(
        default=None, description="What the set's numbers cannot show (limits-v1); null: not measured."
    )
    saturation: dict[str, JsonValue] | None = Field(
        default=None, description="The room that the arm leaves to a better one (saturation-v1)."
    )
    statements: tuple[str, ...] = ()
    digests: Digests
    rows: tuple[ReportRow, ...]

    @property
    def cutoffs(self) -> tuple[int, ...]:
        """The k of its measures, rising."""
        return cutoffs_of(self.task)

    @property
    def n(self) -> int:
        """How many queries were scored."""
        return self.summary.overall.n

    def stripped(self) -> Report:
        """A copy without timing, process and host: what may be committed, byte for byte the same on any machine."""
        environment = self.environment.model_copy(update={"process": None, "host": None})
        return self.model_copy(update={"latency": None, "ingest": None, "environment": environment})

    @classmethod
    def sealed(cls, **fields: Any) -> Self:
        """Make a report of all its fields but `digests`, which are taken over the others."""
        draft = cls.model_construct(**fields)
        rankings = rankings_digest(draft.rows)
        quality = quality_digest(draft.task, draft.system, rankings)
        return cls(**fields, digests=Digests(rankings=rankings, quality=quality, run=run_digest(draft)))

    @model_validator(mode="after")
    def _holds(self, info: ValidationInfo) -> Self:
        if info.context == _KNOWN:
            return self
        check_rows(self)
        check_summary(self.summary, summarise(self.rows, self.cutoffs))
        check_digests(self)
        return self


def cutoffs_of(task: Key) -> tuple[int, ...]:
    """The cut-offs of a task key.

    Raises:
        ValueError: they are no rising list of whole numbers of at least 1 within the limit.
    """
    cutoffs, limit = task.parts.get("cutoffs"), task.parts.get("limit")
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise ValueError(f"task.parts.limit {limit!r} should be a whole number of at least 1")
    whole = isinstance(cutoffs, list) and all(isinstance(k, int) and not isinstance(k, bool) for k in cutoffs)
    if not isinstance(cutoffs, list) or not cutoffs or not whole:
        raise ValueError(f"task.parts.cutoffs {cutoffs!r} should be a list of whole numbers")
    found: list[int] = [k for k in cutoffs if isinstance(k, int)]
    if found != sorted(set(found)) or found[0] < 1 or found[-1] > limit:
        raise ValueError(
            f"task.parts.cutoffs {cutoffs!r} should rise from 1 at least to the limit {limit} at most"
        )
    return tuple(found)


def summarise(rows: Iterable[ReportRow], cutoffs: tuple[int, ...]) -> Summary:
    """Means over scored rows, overall and by category in the order of first appearance."""
    scored = [row for row in rows if row.outcome == "scored"]
    groups: dict[str, list[ReportRow]] = {}
    for row in scored:
        if row.category:
            groups.setdefault(row.category, []).append(row)
    measures = metrics.names(cutoffs)
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
        raise Refused(f"{path}: no such report", reason="report-missing") from error
    except OSError as error:
        raise Refused(
            f"{path}: cannot be read: {error.strerror or error}", reason="report-missing"
        ) from error


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
        raise Refused(f"{path}: {_told(raw, error)}", reason="report-malformed") from error
    except (ValueError, OverflowError) as error:
        raise Refused(f"{path}: {error}", reason="report-malformed") from error
    if arm is not None and report.arm != arm:
        raise Refused(
            f"{path}: is a report of arm {report.arm!r}, not of {arm!r}", reason="report-of-another-arm"
        )
    return report


def _told(raw: bytes, error: ValidationError) -> str:
    if not raw.strip():
        return "is empty"
    detail = error.errors(include_url=False, include_context=False)[0]
    if detail["type"] == "json_invalid":
        where = detail["msg"].removeprefix("Invalid JSON: ")
        return f"is not whole JSON: {where}; measure again"
    from eval_core.faults import first_fault

    return first_fault(error, Report)


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    """Refuse a table that names a key twice: parsers differ in which value they take, and people read the first."""
    if len(dict(pairs)) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {twice!r} is given twice in one table; measure again")
