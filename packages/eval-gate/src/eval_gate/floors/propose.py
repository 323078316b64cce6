"""Floors out of measured runs: which runs are evidence, and how far below them a floor lies."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from eval_core.errors import Misuse, Refused, did_you_mean
from eval_core.reports.keys import SYSTEM_PARTS, TASK_PARTS, differences
from eval_core.reports.models import Slice
from eval_core.reports.report import Report, dump
from eval_core.scoring import metrics
from eval_gate.check.grading import headline
from eval_gate.policy import (
    CATEGORY_QUERIES,
    MARGIN,
    SETTLED_RUNS,
    TOLERANCE,
    ArmFloors,
    Budget,
    CategoryFloors,
    Evidence,
    Floor,
    ToldOdds,
    derive_floor,
    derived_margin,
    lowest,
)

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def eligible(arm: str, reports: Iterable[Report], drifts: float | None = None) -> list[Report]:
    """The runs that may carry a floor, oldest first.

    Args:
        arm: its name.
        reports: runs of it; the same run twice counts once.
        drifts: for a corpus whose sources move, the share by which the number of documents may differ from the newest
            run's. The corpus digest may then differ, and nothing else.

    Raises:
        Refused: fewer than two distinct runs, a run that is not whole, or runs that did not measure the same thing.
    """
    runs = {report.run_id: report for report in reports}
    found = sorted(runs.values(), key=lambda report: (report.environment.started, report.run_id))
    for report in found:
        problem = unfit(report) or unlike(report, found[-1], drifts)
        if problem is not None:
            raise Refused(
                f"{arm}: run {report.run_id!r} {problem.message}",
                reason=problem.reason,
                remedy=problem.remedy,
            )
    if len(found) < 2:
        raise Refused(
            f"{arm}: {len(found)} run is no floor: one run is a dated measurement with no noise under it"
            if found
            else f"{arm}: no run has been measured",
            reason="one-run" if found else "no-run",
            remedy=f"Measure in another run, then try again:  eval-core measure {arm}",
        )
    return found


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a run is no evidence: a sentence that goes on from "run ID", and its reason code."""

    message: str
    reason: str
    remedy: str | None = None


def unfit(report: Report) -> Problem | None:
    """What keeps a run from being evidence, whatever it is compared with."""
    health = report.health
    if not _RUN_ID.fullmatch(report.run_id):
        # It becomes a file's name below policy/evidence.
        return Problem("has an id that no measuring gives", "run-id-malformed")
    if health.errored or health.unscored:
        return Problem(
            f"has {health.errored} errored and {health.unscored} unscored rows",
            "evidence-errored",
            f"Mend the backend and measure again:  eval-core measure {report.arm}",
        )
    if not health.scored:
        return Problem(
            "scored no query", "evidence-errored", "Give the set queries that the backend can answer."
        )
    if report.environment.dirty:
        return Problem(
            "was measured on a tree with uncommitted changes, so no commit says what was measured",
            "evidence-dirty",
            f"Commit what was changed, then measure again:  eval-core measure {report.arm}",
        )
    if report.resumed:
        return Problem(
            "was resumed after an interruption, so it is no evidence",
            "evidence-resumed",
            f"Measure it in one go:  eval-core measure {report.arm}",
        )
    if report.index != "built":
        return Problem(
            "took its index from a cache", "evidence-cached", "Measure with an index built in the run."
        )
    return None


def unlike(report: Report, newest: Report, drifts: float | None = None) -> Problem | None:
    """What keeps a run from standing beside the newest one: another task, system, class, or too far a drift."""
    exempt = {"corpus"} if drifts is not None else set()
    for key, order in (("task", TASK_PARTS), ("system", SYSTEM_PARTS)):
        ours, theirs = getattr(newest, key).parts, getattr(report, key).parts
        parts = [d.part for d in differences(ours, theirs, order) if key != "task" or d.part not in exempt]
        if parts:
            return Problem(
                f"measured another {key} than {newest.run_id!r} ({', '.join(parts)} differ)",
                f"evidence-{key}-differs",
                "Measure the present state at least twice, or name the runs with --evidence.",
            )
    if report.environment.class_ != newest.environment.class_:
        return Problem(
            f"was measured in class {report.environment.class_!r}, and {newest.run_id!r} in "
            f"{newest.environment.class_!r}",
            "evidence-class-differs",
            "A floor stands on runs of one kind of place: the one where the gate will run.",
        )
    if drifts is not None:
        low, high = band(newest.dataset.documents, drifts)
        if not low <= report.dataset.documents <= high:
            return Problem(
                f"had {report.dataset.documents} documents, and the band around {newest.run_id!r} is {low} to {high}",
                "evidence-corpus-size-differs",
                "Measure the present corpus at least twice, or widen --drifts.",
            )
    return None


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asks of the floors of an arm, beyond the evidence.

    `margin` counts misses below the worst evidence; None derives it from how much the runs differ. `measures` are what
    to floor: the set's headline, hit@1, recall at the largest cut-off and mrr where none is named. `by_category` floors
    every category of enough queries too. `tracked` takes the arm out of the gate. `drifts` is, for a corpus whose
    sources move, the share by which the number of documents may differ. `reason` says why the bar is loosened, or why
    another task is measured now; it is kept in the file. `budget` is what else the gate holds the arm to: the odds that
    are told with the floors are of both.
    """

    margin: int | None = MARGIN
    measures: Sequence[str] = ()
    by_category: bool = False
    tracked: bool = False
    drifts: float | None = None
    reason: str | None = None
    budget: Budget = field(default_factory=Budget)


def derive(
    arm: str, reports: Iterable[Report], wish: Wish | None = None, previous: ArmFloors | None = None
) -> ArmFloors:
    """Derive an arm's floors from measured runs, every one of which must be evidence.

    Raises:
        Refused: the evidence does not carry a floor, the floor would pass anything, or the bar is loosened, or moved
            to another task than that of the floors that stand (`previous`), without a reason.
        Misuse: a measure that the reports do not hold.
    """
    wish = wish or Wish()
    reason = (wish.reason or "").strip() or None
    found = eligible(arm, reports, wish.drifts)
    last = found[-1]
    chosen = _chosen(arm, last, wish.measures)
    flip_rate = None if wish.margin is not None else _flip_rate(found, chosen)
    margin = wish.margin if wish.margin is not None else derived_margin(last.n, flip_rate or 0.0)
    floors = _floors(arm, chosen, [run.summary.overall for run in found], margin, flip_rate)
    categories: dict[str, CategoryFloors] = {}
    if wish.by_category:
        for name, part in last.summary.categories.items():
            if part.n >= CATEGORY_QUERIES:
                slices = [run.summary.categories[name] for run in found]
                made_of = _floors(f"{arm}[{name}]", chosen, slices, margin, flip_rate)
                categories[name] = CategoryFloors(n=part.n, metrics=made_of)
    made = ArmFloors(
        n=last.n,
        margin=margin,
        margin_rule="fixed" if flip_rate is None else "derived",
        flip_rate=flip_rate,
        provisional=len(found) < SETTLED_RUNS,
        tracked=wish.tracked,
        headline=last.dataset.headline,
        corpus="pinned" if wish.drifts is None else "drifts",
        documents=None if wish.drifts is None else band(last.dataset.documents, wish.drifts),
        task=last.task.parts,
        metrics=floors,
        categories=categories,
        evidence=tuple(evidence(report, chosen, categories) for report in found),
    )
    _not_by_chance(arm, last, made)
    told_odds = _odds(last, made, wish.budget)
    made = made.model_copy(update={"reason": reason or _kept_reason(previous, made), "odds": told_odds})
    _not_loosened(arm, made, previous, reason)
    return made


def _chosen(arm: str, report: Report, measures: Sequence[str]) -> tuple[str, ...]:
    held = report.summary.overall.metrics
    for name in measures:
        metrics.parse(name)
        if name not in held:
            raise Misuse(
                f"{arm}: its reports have no {name}{did_you_mean(name, held)}  (cut-offs: {list(report.cutoffs)})",
                reason="metric-missing",
            )
    return tuple(measures) or headline(report)


def _floors(
    where: str, chosen: Iterable[str], runs: Sequence[Slice], margin: int, flip_rate: float | None
) -> dict[str, Floor]:
    """A floor for each measure, below the worst of the runs; refused where it would pass anything."""
    floors: dict[str, Floor] = {}
    n = runs[-1].n
    for name in chosen:
        worst = min(run.metrics[name] for run in runs)
        floors[name] = floor = derive_floor(name, worst, n, margin)
        if lowest(floor, n) <= 0:
            derived = flip_rate is not None
            source = f" (derived from a flip rate of at most {flip_rate:.3f})" if derived else ""
            raise Refused(
                f"{where}: {name} is {worst:.4f} at n = {n}, and a margin of {margin} misses{source} leaves nothing "
                "to gate on",
                reason="floor-vacuous",
                remedy="Measure more runs, or take a fixed margin: --margin 2."
                if derived
                else "Floor other measures with --metric, or improve the retriever first.",
            )
    return floors


def _odds(report: Report, made: ArmFloors, budget: Budget) -> ToldOdds | None:
    """What the floors will catch, and how often they will cry wolf at the rate of flips that is known or supposed."""
    from eval_gate.power.odds import FLIP_RATE, of_report, told

    rate = FLIP_RATE if made.flip_rate is None else made.flip_rate
    try:
        return told(of_report(report, made, budget, flip_rate=rate))
    except ValueError:  # a budget on a measure that the report does not hold: the gate will say so
        return None


def _not_by_chance(arm: str, report: Report, made: ArmFloors) -> None:
    """Refuse floors that a random ranking would reach."""
    from eval_gate.floors.chance import reached

    slices: list[tuple[str, str | None, Mapping[str, Floor], int]] = [(arm, None, made.metrics, made.n)]
    slices += [(f"{arm}[{name}]", name, part.metrics, part.n) for name, part in made.categories.items()]
    for where, category, floors, n in slices:
        by_chance = reached(report, floors, category)
        if not by_chance:
            continue
        name, others = by_chance[0], [name for name in made.metrics if name not in by_chance]
        options = " ".join(f"--metric {name}" for name in others)
        raise Refused(
            f"{where}: the floor of {', '.join(by_chance)} would hold nothing: {lowest(floors[name], n):.4f} of {name} "
            f"is what a random ranking of {_choice(report)} reaches too",
            reason="floor-vacuous",
            remedy=f"Floor the others:  eval-gate floor {arm} {options}"
            if others
            else "Floor a measure at a smaller k with --metric, or improve the retriever first.",
        )


def _choice(report: Report) -> str:
    """What chance chooses from, in words."""
    documents = report.dataset.documents
    counts = {row.candidates or documents for row in report.rows if row.outcome == "scored"}
    if counts == {documents}:
        return f"the {documents} documents"
    return f"the {'–'.join(map(str, sorted({min(counts), max(counts)})))} documents that a query may find"


def _flip_rate(runs: Sequence[Report], measures: Iterable[str]) -> float:
    """The upper bound of the rate at which a query's value changes between runs of the same thing, of the measure that
    changes most. Flips cluster by query, so it is optimistic."""
    from eval_core.scoring.statistics import flip_rate_upper

    tables = [{row.id: row.metrics for row in run.rows if row.outcome == "scored"} for run in runs]
    most = max(len(flips(tables, name)) for name in measures)
    return flip_rate_upper(most, runs[-1].n * (len(runs) - 1))


def flips(tables: Sequence[Mapping[str, Mapping[str, float]]], measure: str) -> list[str]:
    """The queries whose value of a measure is not what it was in the run before, once for each time.

    `tables` hold a run each, oldest first: by query, the values of its measures.
    """
    return [
        query
        for before, after in pairwise(tables)
        for query, values in after.items()
        if query in before and abs(values[measure] - before[query][measure]) > TOLERANCE
    ]


def _kept_reason(previous: ArmFloors | None, made: ArmFloors) -> str | None:
    """A reason is kept for as long as the bar that it explains stands; a bar that is raised needs none."""
    if previous is None:
        return None
    bars = [
        (bar.metrics, bar.n, bar.margin, bar.tracked, bar.documents, bar.headline) for bar in (previous, made)
    ]
    return previous.reason if bars[0] == bars[1] else None


def band(documents: int, share: float) -> tuple[int, int]:
    """Fewest and most documents: within `share` of the count, at least one document wide each way."""
    room = max(1, math.floor(documents * share + 1e-9))
    return max(1, documents - room), documents + room


def evidence(report: Report, measures: Iterable[str], categories: Iterable[str] = ()) -> Evidence:
    """What floors say of a run that they stand on."""
    chosen = tuple(measures)
    parts = report.summary.categories
    return Evidence(
        run_id=report.run_id,
        started=report.environment.started,
        digest=report.digests.quality,
        sha256=hashlib.sha256(dump(report.stripped())).hexdigest(),
        commit=report.environment.commit,
        class_=report.environment.class_,
        values={name: report.summary.overall.metrics[name] for name in chosen},
        categories={
            category: {name: parts[category].metrics[name] for name in chosen} for category in categories
        },
    )


def _not_loosened(arm: str, made: ArmFloors, previous: ArmFloors | None, reason: str | None) -> None:
    """A bar is loosened, or moved to another task, only with a reason."""
    if made.reason is None and made.tracked:
        raise _unreasoned(arm, "it would be tracked only, and no longer gate")
    if made.reason is None and made.margin_rule == "fixed" and made.margin > MARGIN:
        raise _unreasoned(arm, f"a margin of {made.margin} misses is wider than {MARGIN}")
    if previous is None or reason:
        return
    if made.corpus == "drifts" != previous.corpus:
        raise _unreasoned(arm, "its corpus would be pinned no longer")
    if previous.documents is not None and made.documents is not None:
        (low, high), (fewest, most) = previous.documents, made.documents
        if most - fewest > high - low:
            raise _unreasoned(arm, f"{fewest} to {most} documents would pass, and {low} to {high} did")
    if made.headline != previous.headline:
        raise _unreasoned(arm, f"the headline would be {made.headline}, and it was {previous.headline}")
    exempt = {"cutoffs", "corpus"} if made.corpus == "drifts" == previous.corpus else {"cutoffs"}
    parts = [d.part for d in differences(previous.task, made.task) if d.part not in exempt]
    if parts:
        raise Refused(
            f"{arm}: another task is measured now than the floors are for ({', '.join(parts)} differ)",
            reason="moved-without-reason",
            remedy='If the change is meant, say what it was: --reason "…". It is kept in the file.',
        )
    _not_lowered(arm, made.metrics, made.n, previous.metrics, previous.n)
    for name in made.metrics:
        # Whatever the margin says: the baseline that goes with these runs would be worse.
        before = [run.values[name] for run in previous.evidence if name in run.values]
        after = min(run.values[name] for run in made.evidence)
        if before and after < min(before) - TOLERANCE:
            raise _unreasoned(
                arm, f"its runs have {name} = {after:.4f}, and those before had {min(before):.4f}"
            )
    for name, category in previous.categories.items():
        now = made.categories.get(name)
        if now is None:
            raise _unreasoned(f"{arm}[{name}]", "the floors of the category would be dropped")
        _not_lowered(f"{arm}[{name}]", now.metrics, now.n, category.metrics, category.n)


def _not_lowered(
    where: str, made: Mapping[str, Floor], n: int, previous: Mapping[str, Floor], before_n: int
) -> None:
    for name, old in previous.items():
        new = made.get(name)
        if new is None:
            raise Refused(
                f"{where}: the floor of {name} would be dropped",
                reason="lowered-without-reason",
                remedy=f'Keep it with --metric "{name}", or say why with --reason "…".',
            )
        before, after = lowest(old, before_n), lowest(new, n)
        if after < before - TOLERANCE:
            raise _unreasoned(where, f"the floor of {name} would fall from {before:.4f} to {after:.4f}")


def _unreasoned(where: str, what: str) -> Refused:
    return Refused(
        f"{where}: {what}",
        reason="lowered-without-reason",
        remedy='If that is meant, say why: --reason "…". It is kept in the file.',
    )
