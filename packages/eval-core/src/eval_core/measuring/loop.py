"""Measuring: one arm's queries put to its backend, timed at the client, into a run and a report.

Rows are appended to `ARM.partial` as they come, so that a killed run can go on; the run and the report appear whole at
the end or not at all.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from eval_core import backend as backends
from eval_core.backend import Backend, BackendError, Reply, Request
from eval_core.console import redacted
from eval_core.errors import CouldNot, Misuse
from eval_core.files import write_lines
from eval_core.measuring.answers import Answer, vet
from eval_core.measuring.assemble import assemble
from eval_core.measuring.capabilities import lack
from eval_core.measuring.environment import new_run_id, observe
from eval_core.measuring.partial import Partial
from eval_core.measuring.partition import Partitions, View
from eval_core.measuring.plan import Plan
from eval_core.measuring.run import ERRORED, SCORED, UNSCORABLE, UNSCORED, Row, trec_lines, write_run
from eval_core.reports import provenance
from eval_core.reports.models import Environment, Ingest
from eval_core.reports.report import Report, write_report
from eval_core.sets.dataset import Query
from eval_core.sets.nearest import Nearest

#: Failures in a row after which the rest is left unscored: the backend is gone, and each more may cost a timeout.
GIVE_UP_AFTER = 3

#: Queries put once, untimed and unscored, before an arm's first index is measured, where that has more than one.
WARM_UP = 5

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class _Tally:
    """What is counted while measuring; `nearest` says what a strange id may have meant."""

    nearest: Nearest
    factory: Any = None
    warm: bool = False
    restarts: int = 0
    in_a_row: int = 0
    gone: str = ""
    documents: int = 0
    ingest_seconds: float = 0.0
    rows: dict[str, Row] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def failed(self, row: Row, detail: str) -> None:
        row.outcome, row.detail = ERRORED, detail
        row.ids, row.scores, row.stable = (), None, True
        self.in_a_row += 1
        if self.in_a_row >= GIVE_UP_AFTER and not self.gone:
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

    The report's provenance is written beside it, as `reports/ARM.intoto.jsonl`.

    Errored and unscored rows are in the report, which is written all the same.

    What an earlier run left under the arm's name is removed first, so that it is never graded as this one; its report
    stays in the history.

    Raises:
        as `ask`; the partial run stays.
    """
    # First of all, since it may be refused: nothing is removed then.
    environment = observe(made.root)
    discard(made.name, runs, reports)
    partial = runs / f"{made.name}.partial"
    report, rows, _ = ask(made, environment, partial, resume=resume, progress=progress)
    try:
        _write(report, rows, runs, history)
        write_report(reports / f"{made.name}.json", report)
        provenance.write(reports / f"{made.name}.json", report)
    except BaseException:
        # All or none: interrupted here, the partial run still holds every answer.
        (history / report.arm / f"{report.run_id}.json").unlink(missing_ok=True)
        discard(made.name, runs, reports)
        raise
    partial.unlink(missing_ok=True)
    return report


class Answered(NamedTuple):
    """The report of an arm's answers, the answers, and what the backend did beside answering, in words."""

    report: Report
    rows: Collection[Row]
    notes: Sequence[str]


def ask(
    made: Plan,
    environment: Environment,
    unfinished: Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
) -> Answered:
    """Put an arm's queries to its backend and score what it answers.

    Args:
        unfinished: the file that holds each answer as it comes, and stays.

    Raises:
        Misuse: the backend does not take the options, or lacks what the arm asks of it.
        Refused: the unfinished run that should be resumed measured something else.
        CouldNot: the backend cannot be made or cannot index.
    """
    tally = _Tally(Nearest(lambda: made.dataset.ids))
    with contextlib.ExitStack() as kept:
        first = kept.enter_context(_made(made, tally))
        capabilities = frozenset(first.capabilities)
        if made.arm.expand and "expand" not in capabilities:
            what = lack(made.arm, "expand")
            raise Misuse("capability-missing", what, key=f'arms."{made.name}".expand', value=True)
        askable = [query for query in made.queries if not _unscorable(made, query, capabilities)]
        partitions = Partitions(made.dataset, askable, capabilities)
        task, system = made.task(), made.system(first, partitions.scoping)
        reindexed = first if "reindex" in capabilities else None
        if reindexed is None:
            kept.close()
        header = {"run_id": new_run_id(), "arm": made.name, "task": task.parts, "system": system.parts}
        partial = Partial(unfinished, header, resume)
        tally.rows = {
            query.id: Row(query.id, UNSCORABLE, detail=_unscorable(made, query, capabilities) or "")
            for query in made.queries
        }
        for query in askable:
            tally.rows[query.id] = Row(query.id, UNSCORED)
        total = len(askable) * made.repetitions
        steps = 0
        # Closed here and now, also when interrupted: a view may have a folder of its own that must not stay.
        with contextlib.closing(partial), contextlib.closing(iter(partitions)) as indexes:
            for view, queries in indexes:
                for _ in _measure_index(made, view, queries, partitions.scoping, tally, partial, reindexed):
                    steps += 1
                    if progress is not None:
                        progress(steps, total)
    statements = []
    if len(partitions) > 1:
        warmed = "one question each, no warm-up" if len(partitions) == len(askable) else "one warm-up in all"
        statements.append(f"{len(partitions)} indexes, one a scope: {warmed}")
    elif partitions.scoping == "filter":
        statements.append("one index pools all scopes, and the backend keeps each question to its own")
    if made.limits is None:
        statements.append(
            "the limits of the set were not measured: its corpus is too large to be scanned for them"
        )
    if partial.resumed:
        statements.insert(0, "resumed after an interruption: whole, and no evidence for a floor")
    report = assemble(
        made,
        tally.rows,
        run_id=partial.run_id,
        task=task,
        system=system,
        environment=environment,
        ingest=Ingest(documents=tally.documents, seconds=round(tally.ingest_seconds, 6)),
        resumed=partial.resumed,
        restarts=tally.restarts,
        statements=[*statements, *tally.notes],
    )
    return Answered(report, tally.rows.values(), tally.notes)


def _write(report: Report, rows: Collection[Row], runs: Path, history: Path) -> None:
    header = {
        "run_id": report.run_id,
        "arm": report.arm,
        "task": report.task.model_dump(),
        "system": report.system.model_dump(),
        "environment": report.environment.model_dump(by_alias=True),
    }
    write_run(runs / f"{report.arm}.jsonl", header, rows)
    write_lines(runs / f"{report.arm}.trec", trec_lines(rows, report.arm))
    write_report(history / report.arm / f"{report.run_id}.json", report)


def discard(arm: str, runs: Path, reports: Path) -> None:
    """Remove the report, its provenance and the run that stand under an arm's name."""
    report = reports / f"{arm}.json"
    for path in (report, provenance.sidecar(report), runs / f"{arm}.jsonl", runs / f"{arm}.trec"):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            what = f"is of an earlier run and cannot be removed: {error.strerror or error}"
            raise CouldNot("cannot-write", what, file=path) from error


@contextlib.contextmanager
def _made(made: Plan, tally: _Tally) -> Iterator[Backend]:
    """The arm's backend, closed at the end. One that fails at closing has answered all the same, and that is told."""
    tally.factory = tally.factory or backends.load(made.arm.backend)
    backend = backends.make(made.arm.backend, made.arm.backend_options, tally.factory)
    try:
        yield backend
    finally:
        try:
            backend.close()
        except Exception as error:  # noqa: BLE001  # other people's code, and its answers stand
            note = f"the backend failed when it was closed: {told_by(error)}"
            if note not in tally.notes:
                tally.notes.append(note)


def told_by(error: BaseException) -> str:
    """What an exception says, as a text that every file can hold; never empty, never endless."""
    told = str(error)
    if not isinstance(error, BackendError | CouldNot) or not told.strip():
        told = (
            f"{type(error).__name__}: {told}" if told.strip() else f"{type(error).__name__}, without a word"
        )
    told = redacted(told.encode("utf-8", "backslashreplace").decode("utf-8"))
    return told if len(told) <= 4000 else told[:4000] + "…"


def _unscorable(made: Plan, query: Query, capabilities: frozenset[str]) -> str | None:
    if query.id in made.dataset.unscorable:
        return "no positive judgement"
    if made.filter_for(query) and "filter" not in capabilities:
        return lack(made.arm, "filter")
    if "time" in query.metadata and "temporal" not in capabilities:
        return lack(made.arm, "temporal")
    return None


def _measure_index(
    made: Plan,
    view: View,
    queries: list[Query],
    scoping: str,
    tally: _Tally,
    partial: Partial,
    reindexed: Backend | None,
) -> Iterator[None]:
    """Index one view and ask its queries in `repetitions` passes; yields after each answer.

    `reindexed` is the backend that takes one corpus after the other; without it one is made for this index.
    """
    passes = made.repetitions
    todo = {(p, query.id) for p in range(passes) for query in queries} - partial.done.keys()
    if todo and not tally.gone:
        opened = contextlib.nullcontext(reindexed) if reindexed is not None else _made(made, tally)
        with opened as backend:
            began = time.perf_counter()
            try:
                backend.index(view)
            except (Misuse, CouldNot):
                raise
            except Exception as error:
                raise CouldNot(
                    "backend-failed",
                    f"cannot index: {told_by(error)}",
                    subject=f"backend {made.arm.backend!r}",
                ) from error
            tally.ingest_seconds += time.perf_counter() - began
            tally.documents += len(view)
            requests = {query.id: _request(made, query, scoping) for query in queries}
            if made.timed and not tally.warm and len(queries) > 1:
                # A single question would be asked twice, and its second answer can come from the backend's cache.
                tally.warm = True
                _warm_up(backend, [requests[query.id] for query in queries[:WARM_UP]], tally)
            yield from _passes(made, queries, requests, backend, tally, partial)
    else:
        yield from _passes(made, queries, {}, None, tally, partial)


def _warm_up(backend: Backend, requests: list[Request], tally: _Tally) -> None:
    """Put some requests unscored. The first that fails ends it: the pass that counts will tell of it."""
    for request in requests:
        try:
            backend.search(request)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # other people's code, as in _ask
            tally.restarts += getattr(error, "restarted", False) is True
            return


def _request(made: Plan, query: Query, scoping: str) -> Request:
    return Request(
        text=query.text,
        k=made.limit + len(query.exclude),
        kind=made.dataset.definition.kind,
        id=query.id,
        scope=query.scope if scoping == "filter" else None,
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
    for number in range(made.repetitions):
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
    record: dict[str, Any] = {"id": query.id}
    began = time.perf_counter_ns()
    try:
        reply = backend.search(request)
        elapsed = (time.perf_counter_ns() - began) / 1e6
        answer = _vet(made, query, request, reply, tally.nearest)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # other people's code: the row is errored
        # The boundary to other people's code: whatever a backend raises is a failed row, not a failed harness.
        record["error"] = told_by(error)
        if isinstance(error, BackendError) and error.restarted:
            record["restarted"] = True
        if isinstance(error, CouldNot):
            tally.gone = f"not asked: the backend is gone: {record['error']}"
    else:
        if isinstance(answer, str):
            record["error"] = answer
        else:
            record["ids"] = answer.ids
            record["scores"] = answer.scores
            record["duplicates"] = answer.duplicates
            record["excess"] = answer.excess
            record["reordered"] = answer.reordered
            record["latency"] = elapsed
    _take(row, number, record, tally)
    partial.add(number, record)


def _vet(made: Plan, query: Query, request: Request, reply: object, nearest: Nearest) -> Answer | str:
    if not isinstance(reply, Reply):
        return f"the backend answered {type(reply).__name__}, not a Reply"
    dataset = made.dataset
    narrow = bool(dataset.attributes) or dataset.timeline is not None

    if made.outside is not None:
        return vet(reply, made.limit, query.exclude, made.outside)

    def outside(document: str) -> str | None:
        if document not in dataset.ids:
            return f"is not in the corpus{nearest.hint(document)}"
        if narrow and not dataset.visible(document, query, request.filter):
            return "is outside the query's scope, filter or time"
        return None

    return vet(reply, made.limit, query.exclude, outside)


def _take(row: Row, number: int, record: Mapping[str, Any], tally: _Tally) -> None:
    """Fold one answer into its row: the first pass is scored, the others are timed and held against it."""
    if "error" in record:
        tally.restarts += record.get("restarted", False) is True
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
        row.reordered = bool(record["reordered"])
    elif row.ids != ids:
        row.stable = False
    row.latencies.append(record["latency"])
