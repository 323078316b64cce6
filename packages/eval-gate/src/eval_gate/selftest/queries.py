"""Ways to make the gate lie by another question or a worse answer, with a sound report of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from eval_core.reports.models import Judged, Latency, ReportRow
from eval_core.scoring import metrics
from eval_gate.policy import LATENCY_SAMPLES
from eval_gate.selftest.attack import OTHER_DIGEST, SEED, WORSE, Attack, easy, failing, new_label
from eval_gate.selftest.bench import Bench, Untried
from eval_gate.selftest.rebuild import answered, found, rebuilt, relabelled

# ---------------------------------------------------------------- what was asked


def _deleted(bench: Bench) -> None:
    gone = {row.id for row in failing(bench)}
    if not gone:
        raise Untried("the set has one query")
    bench.put_report(rebuilt(bench.report, [row for row in bench.report.rows if row.id not in gone]))


def _added(bench: Bench) -> None:
    extra = easy(bench).model_copy(update={"id": "self-test-easy"})
    bench.put_report(rebuilt(bench.report, [*bench.report.rows, extra]))


def _exchanged(bench: Bench) -> None:
    """n stays: a failing query goes, an easy one comes."""
    gone = failing(bench)[-1].id if failing(bench) else bench.report.rows[-1].id
    extra = easy(bench).model_copy(update={"id": "self-test-easy"})
    bench.put_report(rebuilt(bench.report, [extra if row.id == gone else row for row in bench.report.rows]))


def _relabelled(bench: Bench) -> None:
    names = {row.id: name for row in [*failing(bench), *bench.report.rows] if (name := new_label(row))}
    if not names:
        raise Untried("nothing was returned but what is relevant")
    wanted = {row.id for row in failing(bench)} & names.keys() or set(list(names)[:1])
    rows = [relabelled(row, {names[row.id]: 1}) if row.id in wanted else row for row in bench.report.rows]
    bench.put_report(rebuilt(bench.report, rows))


def _judged_more(bench: Bench) -> None:
    row = next((row for row in bench.report.rows if new_label(row)), None)
    if row is None:
        raise Untried("nothing was returned but what is relevant")
    name = new_label(row) or ""
    judged = [one for one in row.judged if one.id != name]
    added = Judged(id=name, grade=1, rank=row.ids.index(name) + 1)
    more = row.model_copy(update={"judged": (*judged, added)})
    bench.put_report(rebuilt(bench.report, [more if one is row else one for one in bench.report.rows]))


def _reworded(bench: Bench) -> None:
    gone = failing(bench)
    worded = {row.id for row in gone or bench.report.rows[:1]}
    rows = [
        row.model_copy(update={"text": row.text + " self-test"}) if row.id in worded else row
        for row in bench.report.rows
    ]
    bench.put_report(rebuilt(bench.report, rows))


def _forgiven(bench: Bench) -> None:
    if not any(row.meta.get("must_pass") is True for row in bench.report.rows):
        raise Untried("no query must pass")
    rows = [
        row.model_copy(update={"meta": {key: v for key, v in row.meta.items() if key != "must_pass"}})
        for row in bench.report.rows
    ]
    bench.put_report(rebuilt(bench.report, rows))


def _documents_dropped(bench: Bench) -> None:
    low = bench.floors.documents[0] if bench.floors.documents else bench.report.dataset.documents
    if low < 2:
        raise Untried("the band of documents ends at one")
    bench.put_report(rebuilt(bench.report, parts={"corpus": OTHER_DIGEST}, documents=low - 1))


def _texts_swapped(bench: Bench) -> None:
    if bench.floors.corpus == "drifts":
        raise Untried("the policy lets the corpus of this arm drift")
    bench.put_report(rebuilt(bench.report, parts={"corpus": OTHER_DIGEST}))


def _part(name: str, value: Any) -> Callable[[Bench], None]:
    def act(bench: Bench) -> None:
        bench.put_report(rebuilt(bench.report, parts={name: value}))

    return act


def _higher_limit(bench: Bench) -> None:
    limit = bench.report.task.parts["limit"]
    bench.put_report(rebuilt(bench.report, parts={"limit": 2 * limit if isinstance(limit, int) else 1}))


def _other_cutoffs(bench: Bench) -> None:
    """The cut-offs that the floors need are not measured any more."""
    kept = list(bench.report.cutoffs[:1])
    held = set(metrics.names(kept))
    if bench.floors.metrics.keys() <= held and "recall@10" in held:
        raise Untried("the floors need no other cut-off")
    bench.put_report(rebuilt(bench.report, parts={"cutoffs": kept}))


def _filtered(bench: Bench) -> None:
    kept = bench.report.task.parts.get("filter")
    bench.put_report(rebuilt(bench.report, parts={"filter": [] if kept else ["kind"]}))


SET = (
    Attack("set", "the queries that fail are deleted", ("query-set-differs",), _deleted),
    Attack("set", "an easy query is added", ("query-set-differs",), _added),
    Attack("set", "a query that fails becomes an easy one", ("query-set-differs",), _exchanged),
    Attack("set", "labels become what was returned", ("judgements-differ",), _relabelled),
    Attack("set", "one more document is called relevant", ("judgements-differ",), _judged_more),
    Attack("set", "the queries that fail are reworded", ("queries-differ",), _reworded),
    Attack("set", "a query that must pass need not", ("queries-differ",), _forgiven),
    Attack("set", "documents are dropped", ("corpus-differs", "corpus-size-differs"), _documents_dropped),
    Attack("set", "the texts of two documents are swapped", ("corpus-differs",), _texts_swapped),
    Attack("set", "another recipe of the corpus", ("recipe-differs",), _part("recipe", OTHER_DIGEST)),
    Attack("set", "another split", ("split-differs",), _part("split", "self-test")),
    Attack("set", "another kind of set", ("kind-differs",), _part("kind", "self-test")),
    Attack("set", "another timeline", ("timeline-differs",), _part("timeline", OTHER_DIGEST)),
    Attack("set", "other links", ("links-differ",), _part("links", OTHER_DIGEST)),
    Attack("set", "other concepts", ("concepts-differ",), _part("concepts", OTHER_DIGEST)),
    Attack("set", "another filter", ("filter-differs",), _filtered),
    Attack("set", "another scale", ("scale-differs",), _part("scale", 5107)),
    Attack("set", "twice as many documents asked for", ("limit-differs",), _higher_limit),
    Attack(
        "set", "the measures are defined otherwise", ("metric-definitions-differ",), _part("metrics", "5e1f")
    ),
    Attack("set", "the cut-offs that floors need are gone", ("metric-missing",), _other_cutoffs),
)


# ---------------------------------------------------------------- what came back


def rearranged(bench: Bench, change: Callable[[ReportRow], Sequence[str]], *, kept: bool = False) -> None:
    """Put a report whose rankings are others; `kept` keeps the ranks of judged documents below what rows show."""

    def row_of(row: ReportRow) -> ReportRow:
        if row.outcome != "scored":
            return row
        below = {one.id: one.rank for one in row.judged if one.rank is not None and one.rank > len(row.ids)}
        return answered(row, change(row), below if kept else None)

    rows = [row_of(row) for row in bench.report.rows]
    if all(one.ids == other.ids for one, other in zip(rows, bench.report.rows, strict=True)):
        raise Untried("the rankings stay as they are")
    bench.put_report(rebuilt(bench.report, rows))


def _shuffled(bench: Bench) -> None:
    chance = random.Random(SEED)
    rearranged(bench, lambda row: chance.sample(row.ids, len(row.ids)), kept=True)


def _reversed(bench: Bench) -> None:
    rearranged(bench, lambda row: row.ids[::-1], kept=True)


def _top_one(bench: Bench) -> None:
    rearranged(bench, lambda row: row.ids[:1])


def _emptied(bench: Bench) -> None:
    rearranged(bench, lambda row: ())


def _outcome(outcome: str) -> Callable[[Bench], None]:
    """The rows that fail are not scored, so that they cannot keep the mean down."""

    def act(bench: Bench) -> None:
        bad = {row.id for row in failing(bench)}
        if not bad:
            raise Untried("the set has one query")
        rows = [
            row.model_copy(update={"outcome": outcome, "detail": "self-test"}) if row.id in bad else row
            for row in bench.report.rows
        ]
        bench.put_report(rebuilt(bench.report, rows))

    return act


def _must_pass_lost(bench: Bench) -> None:
    from eval_gate.selftest.rebuild import lost

    row = next((row for row in bench.report.rows if row.meta.get("must_pass") is True and found(row)), None)
    if row is None:
        raise Untried("no query must pass")
    bench.put_report(
        rebuilt(bench.report, [lost(row, ()) if one is row else one for one in bench.report.rows])
    )


def _slow(bench: Bench) -> None:
    budget, latency = bench.budget.p95_ms, bench.report.latency
    if budget is None or latency is None:
        raise Untried("there is no budget of latency")
    slow = Latency(p50=latency.p50, p95=2 * budget, max=max(latency.max, 2 * budget), samples=latency.samples)
    bench.put_report(rebuilt(bench.report, latency=slow))


def _few_samples(bench: Bench) -> None:
    latency = bench.report.latency
    if bench.budget.p95_ms is None or latency is None:
        raise Untried("there is no budget of latency")
    if bench.report.n >= LATENCY_SAMPLES:
        raise Untried("one pass over the queries gives samples enough")
    few = latency.model_copy(update={"samples": bench.report.n})
    bench.put_report(rebuilt(bench.report, latency=few, repetitions=1))


_SEES_RANK = 'Floor a measure that sees ranks:  eval-gate floor ARM --metric mrr --metric "recall@10" --write'
_HELD = "Floors that an empty answer passes hold nothing; make them anew:  eval-gate floor ARM --write"
_ERRORED = ("rows-errored",)

RANKINGS = (
    Attack("rankings", "rankings shuffled", WORSE, _shuffled, _SEES_RANK, worse=True),
    Attack("rankings", "rankings reversed", WORSE, _reversed, _SEES_RANK, worse=True),
    Attack("rankings", "rankings cut to one document", WORSE, _top_one, _SEES_RANK, worse=True),
    Attack("rankings", "rankings emptied", ("floor-breached",), _emptied, _HELD),
    Attack("rankings", "the queries that fail are errored", _ERRORED, _outcome("errored")),
    Attack("rankings", "the queries that fail are not asked", _ERRORED, _outcome("unscored")),
    Attack("rankings", "the queries that fail are unscorable", ("n-differs",), _outcome("unscorable")),
    Attack("rankings", "a query that must pass is lost", ("must-pass-lost",), _must_pass_lost),
    Attack("rankings", "answers twice as slow as the budget", ("latency-over-budget",), _slow),
    Attack("rankings", "too few samples for the budget", ("latency-not-measurable",), _few_samples),
)
