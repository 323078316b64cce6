"""What attacks put in the place of a report: an edited file, or a sound report of another set or of other answers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from eval_core.policy import Bar
from eval_core.reports import Report
from eval_core.reports.models import LATENCY_SAMPLES, Judged, Latency, ReportRow
from eval_core.reports.provenance import sidecar
from eval_core.scoring import metrics
from eval_gate.selftest.bench import Bench, Untried
from eval_gate.selftest.rebuild import answered, found, lost, rebuilt, relabelled

Act = Callable[[Bench], object]

#: What no other thing is called.
OTHER, OTHER_COMMIT, OTHER_DIGEST = "self-test", "5e1f" * 10, "5e1f" * 16

SEED = 20261130


def shifted(started: str, days: int) -> str:
    """A time, so many days later."""
    moved = datetime.fromisoformat(started) + timedelta(days=days)
    return moved.isoformat(timespec="milliseconds").replace("+00:00", "Z")


# ------------------------------------------------------------------------------------------- the file, and how it came


def measured(**environment: Any) -> Act:
    """Another run, measured elsewhere or otherwise."""
    return lambda bench: bench.forge(
        run_id=OTHER, environment=bench.report.environment.model_copy(update=environment)
    )


def last_week(bench: Bench) -> None:
    measured(started=shifted(bench.floors.lines[0].started, -7), commit=OTHER_COMMIT)(bench)


def cut_short(bench: Bench) -> None:
    raw = bench.report_path.read_bytes()
    bench.put(bench.report_path, raw[: len(raw) * 3 // 4])


def without_floors(bench: Bench) -> str:
    bench.forge(arm=f"{bench.arm}-{OTHER}")
    return f"{bench.arm}-{OTHER}"


def of_another_arm(bench: Bench) -> None:
    path = bench.reports / f"{without_floors(bench)}.json"
    bench.put(bench.report_path, path.read_bytes())
    bench.put(path, None)


def renamed(bench: Bench) -> None:
    of_another_arm(bench)
    bench.edit_report(lambda report: report.update(arm=bench.arm))


def _sidecar(bench: Bench) -> bytes:
    path = sidecar(bench.report_path)
    if not path.exists():
        raise Untried("the report has no provenance")
    return path.read_bytes()


def other_provenance(bench: Bench) -> None:
    value = json.loads(_sidecar(bench))
    value["predicate"]["producer"]["tool"]["version"] += ".5e1f"
    bench.put(sidecar(bench.report_path), json.dumps(value).encode())


def replaced(bench: Bench) -> None:
    raw = _sidecar(bench)
    bench.forge(run_id=OTHER)
    bench.put(sidecar(bench.report_path), raw)


# ------------------------------------------------------------------------------------------- edited, no digest follows


def mean(value: object) -> Act:
    """Another value in the place of the headline's mean."""

    def act(bench: Bench) -> None:
        headline = bench.report.dataset.headline
        bench.edit_report(lambda report: report["summary"]["overall"]["metrics"].update({headline: value}))

    return act


def better_mean(bench: Bench) -> None:
    value, step = bench.report.summary.overall.metrics[bench.report.dataset.headline], 1 / bench.report.n
    mean(value + step if value < 1 else value - step)(bench)


def key_twice(bench: Bench) -> None:
    raw = bench.report_path.read_bytes()
    bench.put(bench.report_path, raw.replace(b"{", b'{"arm": ' + json.dumps(bench.arm).encode() + b",", 1))


def all_found(bench: Bench) -> None:
    if all(value == 1 for row in bench.report.rows for value in row.metrics.values()):
        raise Untried("every value is 1 as it is")

    def change(report: Any) -> None:
        summary = report["summary"]
        for part in (*report["rows"], summary["overall"], *summary["categories"].values()):
            part["metrics"] = dict.fromkeys(part.get("metrics", {}), 1.0)

    bench.edit_report(change)


def edited_rankings(bench: Bench) -> None:
    if all(len(row.ids) < 2 for row in bench.report.rows):
        raise Untried("there is no ranking of two documents")

    def change(report: Any) -> None:
        for row in report["rows"]:
            row["ids"] = row.get("ids", [])[::-1]

    bench.edit_report(change)


def document_twice(bench: Bench) -> None:
    """The first document of a ranking once more: where it counts twice, recall is above 1."""
    if not any(row.ids for row in bench.report.rows):
        raise Untried("there is no ranking with a document")

    def change(report: Any) -> None:
        row = next(row for row in report["rows"] if row.get("ids"))
        row["ids"] = [*row["ids"][: max(1, len(row["ids"]) - 1)], row["ids"][0]]

    bench.edit_report(change)


# ---------------------------------------------------------------------------------------------------------- another set


def _failing(bench: Bench) -> list[ReportRow]:
    """The rows that keep the headline down, or the last one; at least one other is left.

    Raises:
        Untried: the set has one query.
    """
    scored = [row for row in bench.report.rows if row.outcome == "scored"]
    bad = [row for row in scored if row.metrics[bench.report.dataset.headline] < 1] or scored[-1:]
    if len(bench.report.rows) < 2:
        raise Untried("the set has one query")
    return bad[: len(bench.report.rows) - 1]


def changing(
    rows: Callable[[Bench], Sequence[ReportRow]], change: Callable[[ReportRow], ReportRow | None]
) -> Act:
    """Change some rows; None leaves a row out."""

    def act(bench: Bench) -> None:
        some = {row.id for row in rows(bench)}
        changed = [change(row) if row.id in some else row for row in bench.report.rows]
        bench.forge([row for row in changed if row is not None])

    return act


failing_deleted = changing(_failing, lambda row: None)
reworded = changing(_failing, lambda row: row.model_copy(update={"text": f"{row.text} again"}))


def failing(outcome: str) -> Act:
    """The rows that fail have another outcome, so that they do not keep the mean down."""
    return changing(_failing, lambda row: row.model_copy(update={"outcome": outcome, "detail": OTHER}))


def _must_pass(bench: Bench) -> list[ReportRow]:
    rows = [row for row in bench.report.rows if row.meta.get("must_pass") is True]
    if not rows:
        raise Untried("there is no query that must pass")
    return rows[:1]


def _forgiven(row: ReportRow) -> ReportRow:
    return row.model_copy(
        update={"meta": {key: value for key, value in row.meta.items() if key != "must_pass"}}
    )


forgiven = changing(_must_pass, _forgiven)
must_pass_lost = changing(_must_pass, lost)


def _easy(bench: Bench) -> ReportRow:
    row = next((row for row in bench.report.rows if found(row) == 1), bench.report.rows[0])
    return row.model_copy(update={"id": f"{OTHER}-easy"})


def easy_added(bench: Bench) -> None:
    bench.forge([*bench.report.rows, _easy(bench)])


def failing_replaced(bench: Bench) -> None:
    bad = _failing(bench)[-1]
    bench.forge([_easy(bench) if row is bad else row for row in bench.report.rows])


def _mislabelled(bench: Bench) -> dict[str, str]:
    """By query, those that fail first, the best-ranked document that was returned and is not relevant.

    Raises:
        Untried: there is none.
    """
    names = {}
    for row in (*_failing(bench), *bench.report.rows):
        relevant = {one.id for one in row.judged if one.grade > 0}
        if name := next((name for name in row.ids if name not in relevant), None):
            names[row.id] = name
    if not names:
        raise Untried("nothing was returned but what is relevant")
    return names


def labels_rewritten(bench: Bench) -> None:
    names = _mislabelled(bench)
    bad = {row.id for row in _failing(bench)} & names.keys() or {next(iter(names))}
    bench.forge([relabelled(row, {names[row.id]: 1}) if row.id in bad else row for row in bench.report.rows])


def one_more_label(bench: Bench) -> None:
    query, name = next(iter(_mislabelled(bench).items()))

    def more(row: ReportRow) -> ReportRow:
        judged = [one for one in row.judged if one.id != name]
        judged.append(Judged(id=name, grade=1, rank=row.ids.index(name) + 1))
        return row.model_copy(update={"judged": tuple(judged)})

    bench.forge([more(row) if row.id == query else row for row in bench.report.rows])


def documents_dropped(bench: Bench) -> None:
    fewest = bench.floors.documents[0] if bench.floors.documents else bench.report.dataset.documents
    if fewest < 2:
        raise Untried("one document is enough")
    bench.forge(parts={"corpus": OTHER_DIGEST}, facts={"documents": fewest - 1})


def texts_swapped(bench: Bench) -> None:
    if bench.floors.choices.drifts:
        raise Untried("the policy lets the corpus of the arm drift")
    bench.forge(parts={"corpus": OTHER_DIGEST})


def part(**parts: Any) -> Act:
    """Another part of the task."""
    return lambda bench: bench.forge(parts=parts)


def filtered(bench: Bench) -> None:
    bench.forge(parts={"filter": [] if bench.report.task.parts.get("filter") else ["kind"]})


def higher_limit(bench: Bench) -> None:
    bench.forge(parts={"limit": int(str(bench.report.task.parts["limit"])) * 2})


def other_cutoffs(bench: Bench) -> None:
    kept = list(bench.report.cutoffs[:1])
    if {bar.measure for bar in bench.floors.bars} <= {*metrics.names(kept, bench.report.dataset.headline)}:
        raise Untried("the bars need no other cut-off")
    bench.forge(parts={"cutoffs": kept})


def headline_of(bench: Bench) -> dict[str, str]:
    """The facts of a set with another headline."""
    held = bench.report.dataset.headline
    return {"headline": next(name for name in bench.report.measures if name != held)}


# -------------------------------------------------------------------------------------------------------- other answers


def first_breach(bench: Bench, report: Report) -> Bar | None:
    """The first bar of the arm that a report does not pass."""
    for bar in bench.floors.bars:
        rows = [r for r in report.rows if r.outcome == "scored" and bar.category in (None, r.category)]
        if not bar.passes([row.metrics[bar.measure] for row in rows]):
            return bar
    return None


def smallest(bench: Bench) -> tuple[int, Report, Bar]:
    """The smallest loss that a bar notices: how many found queries find nothing any more, those at rank 1 first; the
    report of it, and the bar.

    Raises:
        Untried: the loss of every query passes.
    """
    hits = sorted((rank, row.id) for row in bench.report.rows if (rank := found(row)) is not None)

    def losing(queries: int) -> tuple[Report, Bar | None]:
        gone = {name for _, name in hits[:queries]}
        report = rebuilt(bench.report, [lost(row) if row.id in gone else row for row in bench.report.rows])
        return report, first_breach(bench, report)

    low, high = 0, len(hits)
    while high - low > 1:  # losing more is never better, so it is halved in
        middle = (low + high) // 2
        low, high = (middle, high) if losing(middle)[1] is None else (low, middle)
    report, bar = losing(high)
    if bar is None:
        raise Untried("the loss of every query passes")
    return high, report, bar


def smallest_loss(bench: Bench) -> str:
    _, report, bar = smallest(bench)
    bench.put_report(report)
    return bar.measure


def answering(change: Callable[[ReportRow], Sequence[str]]) -> Act:
    """Other rankings in the place of those that were scored."""

    def act(bench: Bench) -> None:
        rows = [answered(row, change(row)) if row.outcome == "scored" else row for row in bench.report.rows]
        if first_breach(bench, rebuilt(bench.report, rows)) is None and any(row.ids for row in rows):
            raise Untried("it costs less than the bar allows")
        bench.forge(rows)

    return act


def shuffled(bench: Bench) -> None:
    chance = random.Random(SEED)
    answering(lambda row: chance.sample(row.ids, len(row.ids)))(bench)


def emptied_and_reordered(bench: Bench) -> None:
    bench.forge([answered(row, ()) for row in bench.report.rows[::-1]])


def timed(change: Callable[[Bench, float, Latency], dict[str, Any]]) -> Act:
    """Another latency."""

    def act(bench: Bench) -> None:
        budget, latency = bench.floors.p95_ms, bench.report.latency
        if budget is None or latency is None:
            raise Untried("there is no budget of latency")
        bench.forge(**change(bench, budget, latency))

    return act


def slow(bench: Bench, budget: float, latency: Latency) -> dict[str, Any]:
    slower = {"p95": 2 * budget, "max": max(latency.max, 2 * budget)}
    return {"latency": latency.model_copy(update=slower)}


def faster(bench: Bench, budget: float, latency: Latency) -> dict[str, Any]:
    times = {name: value / 10 for name, value in latency.model_dump().items() if isinstance(value, float)}
    return {"latency": latency.model_copy(update=times)}


def faster_by_hand(bench: Bench) -> None:
    """A better latency, which the rows do not hold, and no provenance that would say another one."""
    timed(faster)(bench)
    bench.put(sidecar(bench.report_path), None)


def few_samples(bench: Bench, budget: float, latency: Latency) -> dict[str, Any]:
    if bench.report.n >= LATENCY_SAMPLES:
        raise Untried("one pass over the queries gives enough samples")
    return {"latency": latency.model_copy(update={"samples": bench.report.n}), "repetitions": 1}


def more_repetitions(bench: Bench, budget: float, latency: Latency) -> dict[str, Any]:
    more = bench.report.repetitions + 1
    return {"latency": latency.model_copy(update={"samples": bench.report.n * more}), "repetitions": more}
