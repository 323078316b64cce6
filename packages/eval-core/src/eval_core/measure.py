"""Measuring: one arm's queries put to its backend, timed at the client, into a run and a report.

Rows are appended to `ARM.partial` as they come, so that a killed run can go on; the run and the report appear whole at
the end or not at all.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval_core import backend as backends
from eval_core import metrics
from eval_core.backend import Backend, BackendError, Reply, Request
from eval_core.dataset import Query
from eval_core.environment import new_run_id, observe
from eval_core.errors import CouldNot, Misuse
from eval_core.files import write_lines
from eval_core.keys import Key
from eval_core.partial import Partial
from eval_core.partition import Partitions, View
from eval_core.plan import Plan
from eval_core.report import (
    Digests,
    Environment,
    Health,
    Ingest,
    Judged,
    Latency,
    Report,
    ReportRow,
    SetFacts,
    quality_digest,
    rankings_digest,
    summarise,
    write_report,
)
from eval_core.run import ERRORED, SCORED, UNSCORABLE, UNSCORED, Row, trec_lines, write_run
from eval_core.vet import vet

#: Failures in a row after which the rest is left unscored: the backend is gone, and each more may cost a timeout.
GIVE_UP_AFTER = 3

#: Queries put once, untimed and unscored, before each index is measured.
WARM_UP = 5

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class _Tally:
    """What is counted while measuring."""

    restarts: int = 0
    in_a_row: int = 0
    gone: str = ""
    documents: int = 0
    ingest_seconds: float = 0.0
    rows: dict[str, Row] = field(default_factory=dict)

    def failed(self, row: Row, detail: str) -> None:
        row.outcome, row.detail = ERRORED, detail
        row.ids, row.scores = (), None
        self.in_a_row += 1
        if self.in_a_row >= GIVE_UP_AFTER:
            self.gone = f"not asked: {GIVE_UP_AFTER} failures in a row, the last: {detail}"


def measure(
    made: Plan,
    runs: Path,
    reports: Path,
    history: Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Measure one arm and write `runs/ARM.jsonl`, `runs/ARM.trec`, `reports/ARM.json` and `history/ARM/RUN_ID.json`.

    Errored and unscored rows are in the report, which is written all the same.

    Raises:
        Misuse: the backend does not take the options, or lacks what the arm asks of it.
        Refused: the unfinished run that should be resumed measured something else.
        CouldNot: the backend cannot be made or cannot index; the partial run stays.
    """
    first = backends.make(made.arm.backend, made.arm.options)
    with contextlib.closing(first):
        capabilities = first.capabilities
        if made.arm.expand and "expand" not in capabilities:
            raise Misuse(
                f'arms."{made.name}": expand = true, and backend {made.arm.backend!r} cannot expand',
                reason="capability-missing",
            )
        askable = [query for query in made.queries if not _unscorable(made, query, capabilities)]
        partitions = Partitions(made.dataset, askable, capabilities)
        task, system = made.task(), made.system(first, partitions.scoping)
    environment = observe(made.root)
    header = {"run_id": new_run_id(), "arm": made.name, "task": task.parts, "system": system.parts}
    # What an earlier run left under the arm's name must never be graded as this one; it stays in the history.
    (reports / f"{made.name}.json").unlink(missing_ok=True)
    partial = Partial(runs / f"{made.name}.partial", header, resume)
    tally = _Tally()
    tally.rows = {
        query.id: Row(query.id, UNSCORABLE, detail=_unscorable(made, query, capabilities) or "")
        for query in made.queries
    }
    for query in askable:
        tally.rows[query.id] = Row(query.id, UNSCORED)
    total = len(askable) * made.arm.repetitions
    try:
        steps = 0
        for scope, view, queries in partitions:
            for _ in _measure_index(made, scope, view, queries, partitions.scoping, tally, partial):
                steps += 1
                if progress is not None:
                    progress(steps, total)
    except BaseException:
        partial.close()
        raise
    report = _report(made, tally, task, system, environment, partial, len(partitions))
    run_header = {
        "run_id": report.run_id,
        "arm": made.name,
        "task": task.model_dump(),
        "system": system.model_dump(),
        "environment": environment.model_dump(by_alias=True),
    }
    write_run(runs / f"{made.name}.jsonl", run_header, tally.rows.values())
    write_lines(runs / f"{made.name}.trec", trec_lines(tally.rows.values(), made.name))
    write_report(history / made.name / f"{report.run_id}.json", report)
    write_report(reports / f"{made.name}.json", report)
    partial.discard()
    return report


def _unscorable(made: Plan, query: Query, capabilities: frozenset[str]) -> str | None:
    if query.id in made.dataset.unscorable:
        return "no positive judgement"
    if made.filter_for(query) and "filter" not in capabilities:
        return "needs a filter, which the backend does not have"
    if "time" in query.metadata and "temporal" not in capabilities:
        return "is about a time, which the backend does not know"
    return None


def _measure_index(
    made: Plan,
    scope: str | None,
    view: View,
    queries: list[Query],
    scoping: str,
    tally: _Tally,
    partial: Partial,
) -> Iterator[None]:
    """Index one view and ask its queries in `repetitions` passes; yields after each answer."""
    passes = made.arm.repetitions
    todo = {(p, query.id) for p in range(passes) for query in queries} - partial.done.keys()
    if todo and not tally.gone:
        with contextlib.closing(backends.make(made.arm.backend, made.arm.options)) as backend:
            began = time.perf_counter()
            backend.index(view)
            tally.ingest_seconds += time.perf_counter() - began
            tally.documents += len(view)
            requests = {query.id: _request(made, query, scoping) for query in queries}
            for query in queries[:WARM_UP]:
                with contextlib.suppress(BackendError, CouldNot):
                    backend.search(requests[query.id])
            yield from _passes(made, queries, requests, backend, tally, partial)
    else:
        yield from _passes(made, queries, {}, None, tally, partial)


def _request(made: Plan, query: Query, scoping: str) -> Request:
    return Request(
        text=query.text,
        k=made.limit + len(query.exclude),
        kind=made.dataset.definition.kind,
        id=query.id,
        scope=query.metadata.get("scope") if scoping == "filter" else None,
        filter=made.filter_for(query),
        time=query.metadata.get("time"),
        expand=made.arm.expand,
    )


def _passes(
    made: Plan,
    queries: list[Query],
    requests: Mapping[str, Request],
    backend: Backend | None,
    tally: _Tally,
    partial: Partial,
) -> Iterator[None]:
    for number in range(made.arm.repetitions):
        for query in queries:
            row = tally.rows[query.id]
            earlier = partial.done.get((number, query.id))
            if earlier is not None:
                _take(row, number, earlier, tally)
            elif tally.gone:
                if row.outcome == UNSCORED:
                    row.detail = tally.gone
            elif backend is not None and row.outcome != ERRORED:
                _ask(made, query, requests[query.id], number, backend, row, tally, partial)
            yield


def _ask(
    made: Plan,
    query: Query,
    request: Request,
    number: int,
    backend: Backend,
    row: Row,
    tally: _Tally,
    partial: Partial,
) -> None:
    failure, reply = "", None
    began = time.perf_counter_ns()
    try:
        reply = backend.search(request)
        elapsed = (time.perf_counter_ns() - began) / 1e6
    except BackendError as error:
        failure = str(error)
        tally.restarts += error.restarted
    except CouldNot as error:
        failure = str(error)
        tally.in_a_row = GIVE_UP_AFTER  # gone for good: there is nothing to try again
    except Exception as error:  # noqa: BLE001
        # The boundary to other people's code: whatever a backend raises is a failed row, not a failed harness.
        failure = f"{type(error).__name__}: {error}"
    record: dict[str, Any] = {"id": query.id}
    if not failure and reply is not None:
        answer = _vet(made, query, request, reply)
        if isinstance(answer, str):
            failure = answer
        else:
            record |= {
                "ids": answer.ids,
                "scores": answer.scores,
                "duplicates": answer.duplicates,
                "excess": answer.excess,
                "latency": elapsed,
            }
    if failure:
        record["error"] = failure
    _take(row, number, record, tally)
    partial.add(number, record)


def _vet(made: Plan, query: Query, request: Request, reply: object) -> Any:
    if not isinstance(reply, Reply):
        return f"the backend answered {type(reply).__name__}, not a Reply"
    dataset = made.dataset
    narrow = bool(dataset.attributes) or dataset.timeline is not None

    def outside(document: str) -> str | None:
        if document not in dataset.ids:
            return "is not in the corpus"
        if narrow and not dataset.visible(document, query, request.filter):
            return "is outside the query's scope, filter or time"
        return None

    return vet(reply, made.limit, query.exclude, outside)


def _take(row: Row, number: int, record: Mapping[str, Any], tally: _Tally) -> None:
    """Fold one answer into its row: the first pass is scored, the others are timed and held against it."""
    if "error" in record:
        repeat = f"repetition {number + 1}: " if number else ""
        tally.failed(row, repeat + str(record["error"]))
        return
    tally.in_a_row = 0
    if row.outcome == ERRORED:
        return
    ids = tuple(record["ids"])
    if row.outcome == UNSCORED:
        row.outcome, row.ids, row.detail = SCORED, ids, ""
        row.scores = record["scores"]
        row.duplicates, row.excess = record["duplicates"], record["excess"]
    elif row.ids != ids:
        row.stable = False
    row.latencies.append(record["latency"])


def _report(
    made: Plan,
    tally: _Tally,
    task: Key,
    system: Key,
    environment: Environment,
    partial: Partial,
    indexes: int,
) -> Report:
    rows = tuple(_report_row(made, query, tally.rows[query.id]) for query in made.queries)
    raw = list(tally.rows.values())
    counts = {
        outcome: sum(row.outcome == outcome for row in raw)
        for outcome in (SCORED, ERRORED, UNSCORED, UNSCORABLE)
    }
    samples = [value for row in raw if row.outcome == SCORED for value in row.latencies]
    rankings = rankings_digest(rows)
    statements = []
    if partial.resumed:
        statements.append("resumed after an interruption: whole, and no evidence for a floor")
    if indexes > 1:
        statements.append(f"{indexes} indexes, one a scope")
    return Report(
        schema_="report-v1",
        arm=made.name,
        run_id=partial.run_id,
        task=task,
        system=system,
        dataset=SetFacts(
            name=made.dataset.name,
            version=made.dataset.definition.version,
            documents=made.dataset.documents,
            queries=len(made.queries),
            headline=made.dataset.definition.headline,
        ),
        environment=environment,
        index="built",
        resumed=partial.resumed,
        repetitions=made.arm.repetitions,
        health=Health(
            scored=counts[SCORED],
            errored=counts[ERRORED],
            unscored=counts[UNSCORED],
            unscorable=counts[UNSCORABLE],
            duplicates=sum(row.duplicates for row in raw),
            excess=sum(row.excess for row in raw),
            restarts=tally.restarts,
            unstable=sum(not row.stable for row in raw),
        ),
        summary=summarise(rows, made.cutoffs),
        latency=Latency(
            p50=metrics.percentile(samples, 0.50),
            p95=metrics.percentile(samples, 0.95),
            max=max(samples),
            samples=len(samples),
        )
        if samples
        else None,
        ingest=Ingest(documents=tally.documents, seconds=round(tally.ingest_seconds, 6)),
        statements=tuple(statements),
        digests=Digests(rankings=rankings, quality=quality_digest(task, system, rankings)),
        rows=rows,
    )


def _report_row(made: Plan, query: Query, row: Row) -> ReportRow:
    grades = made.dataset.judgements.get(query.id, {})
    ranks = metrics.judged_ranks(row.ids, grades)
    judged = tuple(
        Judged(id=name, grade=grade, rank=ranks.get(name)) for name, grade in sorted(grades.items())
    )
    scored = row.outcome == SCORED
    return ReportRow(
        id=query.id,
        text=query.text,
        meta=query.meaning(made.arm.filter_from),
        outcome=row.outcome,
        ids=tuple(row.ids[: made.cutoffs[-1]]) if scored else (),
        judged=judged,
        metrics=metrics.score([(j.grade, j.rank) for j in judged], made.cutoffs) if scored else {},
        stable=row.stable,
        detail=row.detail,
    )
