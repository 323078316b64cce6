"""Whether a candidate may take an incumbent's place: evidence and a rule in, every condition out. Pure.

A condition is proven when it holds in every evidence run and the runs are evidence at all: comparable, distinct, and
not vacuous (R8). Nothing is proven by a measure that one side lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from eval_core.policy import TOLERANCE
from eval_core.scoring import metrics
from eval_gate.promotion.models import (
    Comparison,
    Condition,
    Evidence,
    Figures,
    Promotion,
    Rule,
    Tested,
)
from eval_gate.verdict import Reason

#: One scored query: (grade, rank) of each judged document, the rank None where it was not retrieved, and how many
#: documents were.
Scored = tuple[Sequence[tuple[int, int | None]], int]

#: Part of every rule: what a candidate cannot answer must not fall out of its figures.
ALWAYS = Condition(check="every-query")

#: The p value beyond which chance explains a difference.
ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Side:
    """One arm, or backend, in one evidence run.

    Attributes:
        queries: those that it scored.
        limit: how many documents were asked for.
        held: the measures that it has; None: all that ranks down to the limit give.
        missing: judged paths at which nothing stands.
        failed: queries without a sound answer.
    """

    queries: Mapping[str, Scored]
    limit: int
    held: frozenset[str] | None = None
    missing: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """One evidence run, by its name, with both sides."""

    name: str
    candidate: Side
    incumbent: Side

    @property
    def sides(self) -> tuple[Side, Side]:
        """The candidate, then the incumbent."""
        return self.candidate, self.incumbent

    @property
    def joined(self) -> list[str]:
        """The queries that both sides scored."""
        return sorted(self.candidate.queries.keys() & self.incumbent.queries.keys())

    @property
    def vacuity(self) -> str | None:
        """Why the run shows nothing (R8): no query ran, or neither side found anything."""
        if not self.joined:
            return f"no query was scored on both sides of {self.name}"
        if any(_hits(side) for side in self.sides):
            return None
        return f"both sides of {self.name} score zero on all queries"


@dataclass(frozen=True)
class Gathered:
    """The evidence that there is: what can be looked at, what cites it, and why it is refused."""

    views: Sequence[View] = ()
    cited: Evidence = field(default_factory=lambda: Evidence(candidate=()))
    reasons: Sequence[Reason] = ()
    notes: Sequence[str] = ()

    def refused(self, reasons: Sequence[Reason]) -> Gathered:
        """The same with further reasons."""
        return replace(self, reasons=(*self.reasons, *reasons))


def judge(
    candidate: str,
    incumbent: str,
    rule: Rule,
    found: Gathered,
    baselined: str | Reason,
    blocked: Sequence[Reason] = (),
) -> Promotion:
    """Hold the evidence to a rule.

    Args:
        candidate, incumbent: what they are called.
        rule: what must be shown.
        found: the evidence.
        baselined: the words for the incumbent's floors, or why it has none.
        blocked: why the candidate cannot be promoted whatever it scores.

    Returns:
        The answer, with every condition and its figures, whatever is refused.
    """
    tested = conditions(rule, found, baselined)
    refusals = (*found.reasons, *blocked)
    proven = all(one.proven for one in tested)
    return Promotion(
        verdict="refused" if refusals else "proven" if proven else "not-proven",
        exit_code=0 if proven and not refusals else 1,
        candidate=candidate,
        incumbent=incumbent,
        over=rule.over,
        conditions=tested,
        evidence=found.cited,
        reasons=refusals,
        notes=(*found.notes, *_by_chance(tested), *_excluded(tested)),
    )


def _excluded(tested: Sequence[Tested]) -> Iterator[str]:
    """What the runs rule out: the largest loss that any of their intervals holds, by measure."""
    losses = [
        f"{max(held):.1f} points of {one.condition.metric}"
        for one in tested
        if (held := [run.excludes for run in one.runs if run.excludes is not None])
    ]
    if losses:
        yield f"at 95%, no loss above {', '.join(losses)}"


def _by_chance(tested: Sequence[Tested]) -> Iterator[str]:
    for one in tested:
        unsure = [run.evidence for run in one.runs if run.p is not None and run.p > ALPHA]
        if one.proven and one.condition.is_ == "higher" and unsure:
            yield f"{one.condition.metric}: higher, and chance can explain it in {_listed(unsure)}"


def conditions(rule: Rule, found: Gathered, baselined: str | Reason) -> tuple[Tested, ...]:
    """Every condition of a rule, those of every rule first."""
    views = found.views
    vacuous = [why for view in views if (why := view.vacuity)]
    nothing = "the evidence is refused" if found.reasons else f"vacuous: {vacuous[0]}" if vacuous else None
    if len(views) < rule.runs:
        nothing = nothing or f"{len(views)} evidence runs, and {rule.runs} are needed"
    wanted = dict.fromkeys((ALWAYS, *rule.conditions))
    compared = {one: tuple(_figures(view, one) for view in views) for one in wanted if one.metric is not None}
    tested = []
    for condition in wanted:
        if condition.check == "baselined":
            holds = isinstance(baselined, str)
            finding = Proof(holds, baselined if isinstance(baselined, str) else baselined.message)
        else:
            if condition in compared:
                finding = _compared(condition, compared[condition])
            elif condition.check == "stable":
                finding = _stable(condition, views, list(compared.values()))
            else:
                finding = _smoke(views) if condition.check == "smoke" else _every_query(views)
            if nothing is not None:
                finding = Proof(
                    False, nothing if finding.holds else f"{finding.why}; {nothing}", finding.runs
                )
        tested.append(
            Tested(
                condition=condition,
                text=condition.text,
                proven=finding.holds,
                why=finding.why,
                runs=finding.runs,
            )
        )
    return tuple(tested)


class Proof(NamedTuple):
    """Whether a condition holds, why, and its figures."""

    holds: bool
    why: str
    runs: tuple[Figures, ...] = ()


def _compared(condition: Condition, runs: tuple[Figures, ...]) -> Proof:
    failing = [run for run in runs if not run.holds]
    if not failing:
        return Proof(True, f"holds in all {len(runs)} runs", runs)
    sides = {"candidate": failing[0].candidate, "incumbent": failing[0].incumbent}
    if lacking := [name for name, value in sides.items() if value is None]:
        why = f"{' and '.join(lacking)} of {failing[0].evidence} without {condition.metric}"
        return Proof(False, why, runs)
    return Proof(False, f"does not hold in {_listed([run.evidence for run in failing])}", runs)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")


def _stable(condition: Condition, views: Sequence[View], compared: Sequence[tuple[Figures, ...]]) -> Proof:
    holding = sum(all(runs[place].holds for runs in compared) for place in range(len(views)))
    why = f"every measure holds in {holding} of {len(views)} runs"
    if len(views) < condition.wanted:
        return Proof(False, f"{why}; {condition.wanted} are needed")
    return Proof(holding == len(views), why)


def _smoke(views: Sequence[View]) -> Proof:
    """The runs of both sides are sound and show something (R8); the figures are queries with a relevant document."""
    words, runs = [], []
    for view in views:
        failed = sum(side.failed for side in view.sides)
        why = f"{failed} queries of {view.name} without a sound answer" if failed else view.vacuity
        words += [why] if why else []
        runs.append(_counts(view, *map(_hits, view.sides), holds=not why))
    return Proof(not words, "; ".join(words) or "queries with a relevant document, of both", tuple(runs))


def _every_query(views: Sequence[View]) -> Proof:
    words, runs = [], []
    for view in views:
        lost = sorted(view.incumbent.queries.keys() - view.candidate.queries.keys())
        words += [f"{view.name}: the candidate does not score {_listed(lost)}"] if lost else []
        runs.append(_counts(view, *(len(side.queries) for side in view.sides), holds=not lost))
    return Proof(not words, "; ".join(words) or "queries scored, of both", tuple(runs))


def _counts(view: View, ours: int, theirs: int, *, holds: bool) -> Figures:
    return Figures(
        evidence=view.name,
        n=len(view.joined),
        candidate=ours,
        incumbent=theirs,
        difference=ours - theirs,
        holds=holds,
    )


def _hits(side: Side) -> int:
    return sum(_any_relevant(query) for query in side.queries.values())


def _figures(view: View, condition: Condition) -> Figures:
    """A measure of both sides over the queries that both scored, the difference and its interval."""
    from eval_core.scoring.statistics import paired

    metric = condition.metric or ""
    if metric == "missing_ground_truth":
        ours, theirs = (side.missing for side in view.sides)
        return _counts(view, ours, theirs, holds=_holds(condition.is_, ours - theirs))
    after, before = (column(side, metric, view.joined) for side in view.sides)
    if not after or not before:
        means = [metrics.mean(values) if values else None for values in (after, before)]
        n = len(view.joined)
        return Figures(evidence=view.name, n=n, candidate=means[0], incumbent=means[1], holds=False)
    change = paired(before, after)
    return Figures(
        evidence=view.name,
        n=change.n,
        candidate=change.after,
        incumbent=change.before,
        difference=change.difference,
        low=change.interval.low,
        high=change.interval.high,
        p=change.p,
        holds=_holds(condition.is_, change.difference),
    )


def _holds(wanted: Comparison | None, difference: float) -> bool:
    """Compared unrounded; a difference within 1e-9 is no difference."""
    if wanted == "higher":
        return difference > TOLERANCE
    return difference >= -TOLERANCE if wanted == "at-least-equal" else difference <= TOLERANCE


def column(side: Side, metric: str, queries: Sequence[str]) -> list[float] | None:
    """The values of a measure for some queries, all of them scored; None where the side does not have it."""
    rows = [side.queries[name] for name in queries]
    match metric:
        case "any_relevant_at_k":
            return [float(_any_relevant(row)) for row in rows]
        case "mean_reciprocal_rank":
            measure = metrics.Measure("mrr", side.limit)
        case "avg_precision_at_k":
            measure = metrics.Measure("recall_cap", side.limit)
        case _:
            measure = metrics.parse(metric)
            if side.held is not None and metric not in side.held:
                return None
            if measure.cutoff is not None and measure.cutoff > side.limit:
                return None
    score = metrics.scorer([measure])
    return [score(metrics.ranked(pairs, retrieved))[0] for pairs, retrieved in rows]


def _any_relevant(query: Scored) -> bool:
    return any(grade > 0 and rank is not None for grade, rank in query[0])
