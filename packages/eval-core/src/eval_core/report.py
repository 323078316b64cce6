"""A report: one arm's run against its judgements, with all that is needed to check it, compare it and explain it.

Everything a reader relies on is recomputed from the rows when a report is read: metric values, summary, counts, the
digests, and the parts of the task key that rows determine. A report that was edited in one place does not load.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, JsonValue, ValidationError, model_validator

from eval_core import metrics
from eval_core.errors import Refused
from eval_core.files import atomic, digest
from eval_core.keys import Key, task_digests
from eval_core.models import Closed, first_fault

SCHEMA = "report-v1"

#: How far a stored value may be from the recomputed one: room for another platform's last bit, no more.
TOLERANCE = 1e-9


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
    """Means over the scored queries of a slice."""

    n: int = Field(ge=0)
    metrics: dict[str, float]


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
    """`rankings` covers id, outcome, ids and judgements of each row; `quality` adds the two keys."""

    rankings: str
    quality: str


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

    @model_validator(mode="after")
    def _holds(self) -> Self:
        check_rows(self)
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
    values = {name: metrics.mean([row.metrics[name] for row in rows]) for name in measures}
    return Slice(n=len(rows), metrics=values)


def rankings_digest(rows: Iterable[ReportRow]) -> str:
    """SHA-256 over id, outcome, ids and judgements of each row, in the order of the ids."""
    return digest(
        [
            [row.id, row.outcome, list(row.ids), sorted([j.id, j.grade] for j in row.judged)]
            for row in sorted(rows, key=lambda row: row.id)
        ]
    )


def quality_digest(task: Key, system: Key, rankings: str) -> str:
    """SHA-256 over the two keys and the rankings digest: equal for two runs that cannot be told apart by quality."""
    return digest([task.sha256, system.sha256, rankings])


def check_rows(report: Report) -> None:
    """Recompute everything that the rows determine.

    Raises:
        ValueError: the first thing that does not agree.
    """
    cutoffs = report.cutoffs
    limit = report.task.parts["limit"]
    if not isinstance(limit, int):
        raise ValueError(f"task.parts.limit {limit!r} should be a whole number")
    measures = metrics.names(cutoffs)
    expected = set(measures)
    seen: set[str] = set()
    counts = dict.fromkeys(("scored", "errored", "unscored", "unscorable"), 0)
    for row in report.rows:
        if row.id in seen:
            raise ValueError(f"rows hold query {row.id!r} twice")
        seen.add(row.id)
        counts[row.outcome] += 1
        _check_ranking(row, cutoffs[-1], limit)
        if row.outcome != "scored":
            if row.metrics or row.ids:
                raise ValueError(f"row {row.id!r} is {row.outcome} and still holds ids or metrics")
            continue
        values = metrics.score([(judged.grade, judged.rank) for judged in row.judged], cutoffs)
        if row.metrics.keys() != expected:
            odd = sorted(row.metrics.keys() ^ expected)
            raise ValueError(f"row {row.id!r}: metrics differ from those of the cut-offs: {', '.join(odd)}")
        given = row.metrics
        for name, value in values.items():
            if abs(given[name] - value) > TOLERANCE:
                raise ValueError(f"row {row.id!r}: {name} is {given[name]!r}, and its ranks give {value!r}")
    for outcome, count in counts.items():
        if getattr(report.health, outcome) != count:
            raise ValueError(
                f"health.{outcome} is {getattr(report.health, outcome)}, and the rows give {count}"
            )
    unstable = sum(not row.stable for row in report.rows)
    if report.health.unstable != unstable:
        raise ValueError(f"health.unstable is {report.health.unstable}, and the rows give {unstable}")
    if report.dataset.queries != len(report.rows):
        raise ValueError(
            f"dataset.queries is {report.dataset.queries}, and there are {len(report.rows)} rows"
        )
    _check_summary(report.summary, summarise(report.rows, cutoffs))
    parts = task_digests(
        ((row.id, row.text, row.meta) for row in report.rows),
        ((row.id, {judged.id: judged.grade for judged in row.judged}) for row in report.rows),
    )
    for part, digested in parts.items():
        if report.task.parts.get(part) != digested:
            raise ValueError(f"task.parts.{part} is not the digest of the rows")
    rankings = rankings_digest(report.rows)
    if report.digests.rankings != rankings:
        raise ValueError("digests.rankings is not the digest of the rows")
    if report.digests.quality != quality_digest(report.task, report.system, rankings):
        raise ValueError("digests.quality is not the digest of the keys and rankings")


def _check_ranking(row: ReportRow, depth: int, limit: int) -> None:
    ids = row.ids
    if len(ids) > depth:
        raise ValueError(f"row {row.id!r} holds {len(ids)} ids, more than the largest cut-off {depth}")
    places = {document: rank for rank, document in enumerate(ids, 1)}
    if len(places) != len(ids):
        raise ValueError(f"row {row.id!r} holds a document twice")
    ranks: set[int] = set()
    judged_ids: set[str] = set()
    for judged in row.judged:
        if judged.id in judged_ids:
            raise ValueError(f"row {row.id!r} judges {judged.id!r} twice")
        judged_ids.add(judged.id)
        rank = judged.rank
        shown = places.get(judged.id)
        if rank is not None and (rank in ranks or rank > limit or (rank > len(ids) and len(ids) < depth)):
            raise ValueError(f"row {row.id!r}: rank {rank} of {judged.id!r} cannot be")
        if rank is not None:
            ranks.add(rank)
        if shown != (rank if rank is not None and rank <= len(ids) else None):
            raise ValueError(f"row {row.id!r}: {judged.id!r} is given rank {rank}, and stands at {shown}")
    exclude = row.meta.get("exclude")
    if isinstance(exclude, list) and not places.keys().isdisjoint(e for e in exclude if isinstance(e, str)):
        raise ValueError(f"row {row.id!r} holds a document that its query excludes")


def _check_summary(given: Summary, found: Summary) -> None:
    slices: list[tuple[str, Slice | None, Slice | None]] = [("overall", given.overall, found.overall)]
    for name in {**given.categories, **found.categories}:
        slices.append((f"categories.{name}", given.categories.get(name), found.categories.get(name)))
    for where, ours, theirs in slices:
        if ours is None or theirs is None:
            raise ValueError(f"summary.{where} is not a category of the rows")
        if ours.n != theirs.n:
            raise ValueError(f"summary.{where}.n is {ours.n}, and the rows give {theirs.n}")
        if ours.metrics.keys() != theirs.metrics.keys():
            odd = sorted(ours.metrics.keys() ^ theirs.metrics.keys())
            raise ValueError(f"summary.{where}: metrics differ from those of the rows: {', '.join(odd)}")
        for measure, value in theirs.metrics.items():
            if not math.isclose(ours.metrics[measure], value, rel_tol=0, abs_tol=TOLERANCE):
                raise ValueError(
                    f"summary.{where}.{measure} is {ours.metrics[measure]!r}, and the rows give {value!r}"
                )


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
    usual: dict[str, Any] = {"stable": True, "detail": "", "metrics": {}, "ids": [], "judged": []}
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
    try:
        raw = path.read_bytes()
    except FileNotFoundError as error:
        raise Refused(f"{path}: no such report", reason="report-missing") from error
    except OSError as error:
        raise Refused(
            f"{path}: cannot be read: {error.strerror or error}", reason="report-missing"
        ) from error
    return parse_report(raw, path, arm)


def parse_report(raw: bytes, path: Path, arm: str | None = None) -> Report:
    """Check the bytes of a report; see `read_report`."""
    try:
        report = Report.model_validate_json(raw)
    except ValidationError as error:
        raise Refused(f"{path}: {_told(raw, error)}", reason="report-malformed") from error
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
    return first_fault(error, Report)
