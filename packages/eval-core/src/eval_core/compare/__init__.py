"""Arms held against a first one over the queries scored in both: differences with intervals, and which queries moved.

Nothing is imputed: a query that was not scored on one side is counted apart and is in no figure. Two sides of a
different task are refused, and each part that differs is named; the cut-offs may differ, since every measure is
computed anew from the ranks of the judged documents.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

from eval_core.compare.models import (
    Asked,
    CategoryChange,
    Changed,
    Comparison,
    Document,
    Effect,
    Entry,
    Finding,
    Move,
    Moved,
    Outcome,
    Resolves,
    Side,
    Unjoined,
    Versus,
    of_line,
    of_report,
    of_run,
)
from eval_core.compare.tasks import TaskDiffers, task_changes
from eval_core.errors import Misuse, Refused
from eval_core.reports.keys import SYSTEM_PARTS, differences, nested_differences, same_documents
from eval_core.scoring import metrics, statistics
from eval_core.scoring.metrics import Measure
from eval_core.sets.drift import changed_documents

__all__ = [
    "Changed",
    "Comparison",
    "Effect",
    "Entry",
    "Moved",
    "TaskDiffers",
    "Versus",
    "compare",
    "of_line",
    "of_report",
    "of_run",
    "task_changes",
    "usual",
]

#: The cut-off of the usual measures where no report says one.
DEPTH = 10


def compare(sides: Sequence[Entry], measures: Sequence[Measure] = ()) -> Comparison:
    """Hold each further side against the first.

    Args:
        sides: two at least; the first is the one before.
        measures: what is compared, the headline first; none: the usual ones (see `usual`).

    Returns:
        The comparison. It does not depend on the order of queries or rows.

    Raises:
        Misuse: fewer than two sides.
        Refused: `task-differs` (as TaskDiffers, with the parts), `no-common-query`, `cutoff-beyond-limit`,
            `measure-undefined`.
    """
    if len(sides) < 2:
        raise Misuse("usage", "a comparison needs two at least: before and after")
    first, *others = sides
    labels = _labels(sides)
    for label, other in zip(labels[1:], others, strict=True):
        if changed := task_changes(first, other):
            raise TaskDiffers(labels[0], label, changed)
    notes: list[str] = []
    chosen = list(dict.fromkeys(measures)) if measures else usual(sides, notes)
    for side, label in zip(sides, labels, strict=True):
        _check_depth(side, label, chosen)
    drafts = [
        _draft(first, other, label, chosen, notes) for other, label in zip(others, labels[1:], strict=True)
    ]
    adjusted = iter(statistics.holm([change.p for draft in drafts for change in draft.changes]))
    arms = [draft.finished([next(adjusted) for _ in draft.changes]) for draft in drafts]
    statements = dict.fromkeys(text for side in sides for text in side.statements)
    return Comparison(
        headline=str(chosen[0]),
        before=_facts(first, labels[0]),
        arms=tuple(arms),
        statements=tuple(statements),
    )


def usual(sides: Sequence[Entry], notes: list[str]) -> list[Measure]:
    """The measures of a comparison that names none: the headline of the set, then recall and nDCG at the largest
    cut-off that all have, hit@1 where all have that, and mrr. What was passed over is added to `notes`.
    """
    held = [side.cutoffs for side in sides if side.cutoffs]
    common = set(held[0]).intersection(*held[1:]) if held else {1, DEPTH}
    limits = [side.limit for side in sides if side.limit is not None]
    depth = max(common) if common else min(cutoffs[-1] for cutoffs in held)
    depth = min([depth, *limits])
    names = [f"recall@{depth}", f"ndcg@{depth}", *(["hit@1"] if 1 in common else []), "mrr"]
    headlines = list(dict.fromkeys(side.headline for side in sides if side.headline))
    if len(headlines) > 1:
        notes.append(f"the sets name different headline measures: {', '.join(headlines)}; the first is taken")
    if headlines:
        headline = metrics.parse(headlines[0])
        if headline.cutoff is not None and any(headline.cutoff > limit for limit in limits):
            notes.append(
                f"the set's headline measure {headline} reaches past the limit of {min(limits)}; {names[0]} stands "
                "in its place"
            )
        else:
            names.insert(0, str(headline))
    return [metrics.parse(name) for name in dict.fromkeys(names)]


def _check_depth(side: Entry, label: str, measures: Iterable[Measure]) -> None:
    """Refuse what a side's ranks do not tell."""
    for measure in measures:
        k = measure.cutoff
        if k is not None and side.limit is not None and k > side.limit:
            raise Refused(
                "cutoff-beyond-limit",
                f"cannot be computed: {label} asked for {side.limit} documents a query, so nothing is known "
                f"of ranks beyond; take a cut-off of {side.limit} at most, or measure with a larger limit",
                key=str(measure),
            )
        if measure.family == "judged" and k is not None and side.shown is not None and k > side.shown:
            raise Refused(
                "cutoff-beyond-limit",
                f"cannot be computed: the rows of {label} hold the ids down to rank {side.shown}; take a "
                f"cut-off of {side.shown} at most, or measure with a larger cut-off",
                key=str(measure),
            )


def _labels(sides: Sequence[Entry]) -> list[str]:
    """What to call each: its arm, its path where arms are named alike, and a number where a file is given twice."""
    arms, paths = Counter(side.arm for side in sides), Counter(side.path for side in sides)
    seen: Counter[str] = Counter()
    labels = []
    for side in sides:
        if arms[side.arm] == 1:
            labels.append(side.arm)
            continue
        seen[side.path] += 1
        labels.append(side.path if paths[side.path] == 1 else f"{side.path} ({seen[side.path]})")
    return labels


def _facts(side: Entry, label: str) -> Side:
    outcomes = Counter(asked.outcome for asked in side.queries.values())
    return Side(
        label=label,
        path=side.path,
        kind=side.kind,
        arm=side.arm,
        set=side.set,
        run_id=side.run_id,
        outcomes={name: outcomes[name] for name in dict.fromkeys((*_HEALTH, *sorted(outcomes)))},
    )


#: Outcomes whose counts are told even where they are zero.
_HEALTH: tuple[Outcome, ...] = ("scored", "errored", "unscored", "unscorable")

#: Outcomes that say that the harness or the backend failed: what is compared then is no finding.
_FAILED: frozenset[Outcome] = frozenset({"errored", "unscored"})


@dataclass(frozen=True, slots=True)
class _Draft:
    """One arm held against the first, before the p-values of all arms are adjusted together."""

    before: Entry
    after: Entry
    label: str
    measures: Sequence[Measure]
    changes: Sequence[statistics.Change]
    queries: tuple[Moved, ...]
    categories: tuple[CategoryChange, ...]
    unjoined: tuple[Unjoined, ...]
    identical: bool
    notes: tuple[str, ...]

    def finished(self, adjusted: Sequence[float]) -> Versus:
        n = self.changes[0].n
        able = statistics.resolution(n)
        failed = any(
            asked.outcome in _FAILED for side in (self.before, self.after) for asked in side.queries.values()
        )
        effects = tuple(
            Effect(
                measure=str(measure),
                n=change.n,
                before=change.before,
                after=change.after,
                difference=change.difference,
                low=change.interval.low,
                high=change.interval.high,
                test=change.test,
                p=change.p,
                p_holm=p,
                lost=change.lost,
                gained=change.gained,
                unchanged=change.unchanged,
                finding="none" if failed else _finding(change, p, able.points),
            )
            for measure, change, p in zip(self.measures, self.changes, adjusted, strict=True)
        )
        run = self.before.run_id
        return Versus(
            side=_facts(self.after, self.label),
            n=n,
            finding=effects[0].finding,
            identical=self.identical,
            same_run=run is not None and run == self.after.run_id,
            effects=effects,
            resolves=Resolves(
                n=n,
                queries=able.queries,
                points=able.points,
                possible=able.queries <= n,
                detectable=able.detectable if math.isfinite(able.detectable) else None,
            ),
            system=_system(self.before, self.after),
            unjoined=self.unjoined,
            categories=self.categories,
            queries=self.queries,
            notes=self.notes,
        )


def _finding(change: statistics.Change, adjusted: float, points: float) -> Finding:
    if not change.lost and not change.gained:
        return "same"
    if adjusted <= statistics.ALPHA and change.difference:
        return "lower" if change.difference < 0 else "higher"
    if change.p > statistics.ALPHA and abs(change.difference) * 100 < points - 1e-9:
        return "unresolvable"
    return "unclear"


def _draft(
    before: Entry, after: Entry, label: str, measures: Sequence[Measure], notes: Sequence[str]
) -> _Draft:
    # By id: nothing may depend on the order in which rows stand.
    joined = sorted(
        name
        for name, asked in before.queries.items()
        if asked.outcome == "scored" and name in after.queries and after.queries[name].outcome == "scored"
    )
    unjoined = _unjoined(before, after)
    if not joined:
        counts = ", ".join(f"{len(u.queries)} {u.before} before and {u.after} after" for u in unjoined)
        what = (
            f"no query was scored in both {before.path} and {after.path}: {counts or 'neither holds a query'}"
        )
        raise Refused("no-common-query", what)
    pairs = [(before.queries[name], after.queries[name]) for name in joined]
    old = _columns([pair[0] for pair in pairs], measures, before.path)
    new = _columns([pair[1] for pair in pairs], measures, after.path)
    changes = [
        statistics.paired(*_scorable(measure, pairs, ours, theirs))
        for measure, ours, theirs in zip(measures, old, new, strict=True)
    ]
    queries = _moved(joined, pairs, old[0], new[0], measures[0])
    return _Draft(
        before=before,
        after=after,
        label=label,
        measures=measures,
        changes=changes,
        queries=queries,
        categories=_categories(joined, pairs, old[0], new[0], queries),
        unjoined=unjoined,
        identical=all(sorted(ours.judged) == sorted(theirs.judged) for ours, theirs in pairs),
        notes=(*notes, *_notes(before, after)),
    )


def _scorable(
    measure: Measure, pairs: Sequence[tuple[Asked, Asked]], ours: list[float], theirs: list[float]
) -> tuple[list[float], list[float]]:
    """The values of the queries to which something is relevant by a measure, before and after."""
    if measure.rel == 1:
        return ours, theirs
    kept = [any(grade >= measure.rel for _, grade, _ in before.judged) for before, _ in pairs]
    if not any(kept):
        what = f"no query scored in both has a document of grade {measure.rel} or more"
        raise Refused("no-common-query", what, key=str(measure))
    return list(compress(ours, kept)), list(compress(theirs, kept))


def _columns(rows: Sequence[Asked], measures: Sequence[Measure], path: str) -> list[list[float]]:
    """The values of each measure, in the order of the rows."""
    score = metrics.scorer(measures)
    views = [
        metrics.ranked([(grade, rank) for _, grade, rank in asked.judged], asked.retrieved) for asked in rows
    ]
    try:
        table = [score(view) for view in views]
    except OverflowError as error:
        raise Refused("measure-undefined", str(error), file=path) from error
    return [[values[place] for values in table] for place in range(len(measures))]


def _unjoined(before: Entry, after: Entry) -> tuple[Unjoined, ...]:
    """Queries that are not scored on both sides, grouped by their outcomes."""
    groups: dict[tuple[Outcome, Outcome], list[str]] = {}
    absent = Asked("absent")
    for name in sorted(before.queries.keys() | after.queries.keys()):
        outcomes = before.queries.get(name, absent).outcome, after.queries.get(name, absent).outcome
        if outcomes != ("scored", "scored"):
            groups.setdefault(outcomes, []).append(name)
    return tuple(
        Unjoined(before=ours, after=theirs, queries=tuple(names))
        for (ours, theirs), names in sorted(groups.items())
    )


def _moved(
    names: Sequence[str],
    pairs: Sequence[tuple[Asked, Asked]],
    old: Sequence[float],
    new: Sequence[float],
    headline: Measure,
) -> tuple[Moved, ...]:
    """Queries that lost or gained of the headline measure, or that moved without changing it."""
    found: list[tuple[tuple[Any, ...], Moved]] = []
    for name, (ours, theirs), before, after in zip(names, pairs, old, new, strict=True):
        change = 0.0 if abs(after - before) <= statistics.TOLERANCE else after - before
        documents = _documents(ours, theirs, headline, change)
        if not change and not any(document.before != document.after for document in documents):
            continue
        word: Move = "lost" if change < 0 else "gained" if change > 0 else "moved"
        shift = max((abs(_closeness(d.before) - _closeness(d.after)) for d in documents), default=0.0)
        order = (("lost", "gained", "moved").index(word), -abs(change), -shift, name)
        text, category = theirs.text or ours.text, str(theirs.meta.get("category", ""))
        places, first = [rank for _, _, rank in theirs.judged], documents[0].after if documents else None
        above, unjudged = metrics.unjudged_above(places, theirs.retrieved, headline.cutoff, first)
        moved = Moved(
            query=name,
            text=text,
            category=category,
            change=word,
            before=before,
            after=after,
            difference=change,
            documents=documents,
            above=above,
            unjudged=unjudged,
        )
        found.append((order, moved))
    return tuple(moved for _, moved in sorted(found, key=lambda item: item[0]))


def _closeness(rank: int | None) -> float:
    return 1 / rank if rank else 0.0


def _documents(before: Asked, after: Asked, headline: Measure, change: float) -> tuple[Document, ...]:
    """The relevant documents that moved, the one that explains the change first: it crossed the cut-off the way that
    the value went, else it moved most near the top. Where none moved: the judged ones, or the first of all.
    """
    ranks = {name: rank for name, _, rank in before.judged}
    every = [Document(id=name, grade=g, before=ranks.get(name), after=rank) for name, g, rank in after.judged]
    moved = [document for document in every if document.before != document.after]
    shown = [d for d in moved if d.grade > 0] or moved or sorted(every, key=lambda d: (-d.grade, d.id))[:1]
    cutoff = headline.cutoff or math.inf

    def order(document: Document) -> tuple[bool, float, str]:
        up = _closeness(document.after) - _closeness(document.before)
        crossed = ((document.before or math.inf) <= cutoff) != ((document.after or math.inf) <= cutoff)
        told = abs(up) if not change else up if change > 0 else -up
        return not (crossed and told > 0), -told, document.id

    return tuple(sorted(shown, key=order))


def _categories(
    names: Sequence[str],
    pairs: Sequence[tuple[Asked, Asked]],
    old: Sequence[float],
    new: Sequence[float],
    queries: Iterable[Moved],
) -> tuple[CategoryChange, ...]:
    groups: dict[str, list[int]] = {}
    for place, (_, asked) in enumerate(pairs):
        if category := str(asked.meta.get("category", "")):
            groups.setdefault(category, []).append(place)
    changes = {moved.query: moved.change for moved in queries}
    out = []
    for category, places in sorted(groups.items()):
        before, after = (metrics.mean([column[place] for place in places]) for column in (old, new))
        counts = Counter(changes.get(names[place]) for place in places)
        out.append(
            CategoryChange(
                category=category,
                n=len(places),
                before=before,
                after=after,
                difference=metrics.mean([new[place] - old[place] for place in places]),
                lost=counts["lost"],
                gained=counts["gained"],
                moved=counts["moved"],
            )
        )
    return tuple(out)


def _system(before: Entry, after: Entry) -> tuple[Changed, ...] | None:
    """The innermost parts of the system that differ, such as `options.k1`."""
    if before.system is None or after.system is None:
        return None
    return tuple(
        Changed(part=inner.part, before=inner.ours, after=inner.theirs)
        for part in differences(before.system.parts, after.system.parts, SYSTEM_PARTS)
        for inner in nested_differences(part.ours, part.theirs, part.part)
    )


def _notes(before: Entry, after: Entry) -> list[str]:
    """What else a reader should know before believing a difference."""
    notes = []
    if before.run_id is not None and before.run_id == after.run_id:
        notes.append(f"both are of run {before.run_id}: the same run twice")
    notes += [
        f"{word} {note}" for word, side in (("before", before), ("after", after)) for note in side.notes
    ]
    for what, ours, theirs in (
        ("environment class", before.class_, after.class_),
        ("version of eval-core", before.tool, after.tool),
    ):
        if None not in (ours, theirs) and ours != theirs:
            notes.append(f"another {what}: {ours} before, {theirs} after")
    for what, ours, theirs in (
        ("name", before.set, after.set),
        ("version", before.version, after.version),
    ):
        if ours != theirs:
            notes.append(f"the set has another {what}: {ours or 'none'} before, {theirs or 'none'} after")
    tasks = [side.task.parts for side in (before, after) if side.task is not None]
    if len(tasks) == 2 and tasks[0].get("recipe") != tasks[1].get("recipe") and same_documents(*tasks):
        notes.append("the documents are the same, and came by another recipe")
    if len(tasks) == 2 and not same_documents(*tasks):
        what = changed_documents(Path(before.output), *(task.get("corpus") for task in tasks))
        notes.append(f"the corpus drifted, as its floors let it: {what}")
    asked, answered = len(before.queries), len(after.queries)
    if before.queries.keys() != after.queries.keys():
        common = len(before.queries.keys() & after.queries.keys())
        texts = (
            "with equal texts and judgements"
            if "run" not in (before.kind, after.kind)
            else "by their ids: runs hold no texts"
        )
        notes.append(
            f"before was asked {asked} queries and after {answered}; {common} are common, {texts}, and only these are "
            "compared"
        )
    if before.task is None or after.task is None:
        notes.append(
            "run files of other tools do not say what was asked of what; that both answered the same queries over the "
            "same corpus is taken on trust"
        )
    return notes
