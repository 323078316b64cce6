"""Whether a candidate may take an incumbent's place: evidence and a rule in, every condition out. Pure.

A condition is proven when it holds in every evidence run and the runs are evidence at all: comparable, distinct, and
not vacuous (R8). Nothing is proven by a measure that one side lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from eval_core.reports.keys import differences, nested_differences
from eval_core.reports.report import Report
from eval_core.scoring import metrics
from eval_gate.check.changes import some
from eval_gate.check.eligibility import refusal
from eval_gate.policy import TOLERANCE
from eval_gate.promotion.models import CONTRACT, Condition, EvidenceFacts, Figures, Promotion, Rule, Tested
from eval_gate.verdict import Reason

#: One scored query: (grade, rank) of each judged document, the rank None where it was not retrieved, and how many
#: documents were.
Scored = tuple[tuple[tuple[int, int | None], ...], int]

#: Asked of every promotion, whatever its rule says: what a candidate cannot answer must not fall out of its figures.
ALWAYS = Condition(check="every-query")


@dataclass(frozen=True, slots=True)
class Side:
    """One arm, or backend, in one evidence run.

    `limit` is how many documents were asked for, `held` the measures that its report has (None: all that ranks down to
    the limit give), `missing` judged paths at which nothing stands, `failed` queries without a sound answer. `run_id`,
    `class_` and `report` are None where the evidence is a comparison.
    """

    name: str
    backend: str
    queries: Mapping[str, Scored]
    limit: int
    task: Mapping[str, object]
    system: Mapping[str, object]
    held: frozenset[str] | None = None
    missing: int = 0
    failed: int = 0
    run_id: str | None = None
    class_: str | None = None
    report: Report | None = None


@dataclass(frozen=True, slots=True)
class View:
    """One evidence run: both sides, and what identifies it. `unsound` says in words why its own smoke failed."""

    facts: EvidenceFacts
    candidate: Side
    incumbent: Side
    unsound: str | None = None
    sha256: frozenset[str] = field(default=frozenset())

    @property
    def path(self) -> str:
        return self.facts.path


def judge(
    candidate: str,
    incumbent: str,
    rule: Rule,
    views: Sequence[View],
    reasons: Sequence[Reason] = (),
    baselined: str | Reason | None = None,
    blocked: Sequence[Reason] = (),
    notes: Sequence[str] = (),
) -> Promotion:
    """Hold the evidence to a rule.

    Args:
        candidate, incumbent: what they are called.
        rule: what must be shown.
        views: the evidence runs that could be read, in the order given.
        reasons: why the evidence is none, as far as files and commits tell; what the views tell is added here.
        baselined: the words for the incumbent's floors and baseline, or why it has none.
        blocked: why the candidate cannot be promoted whatever it scores.
        notes: what a reviewer should know.

    Returns:
        The answer, with every condition and its figures, whatever is refused.
    """
    refusals = [*reasons, *uncomparable(views)]
    tested = conditions(rule, views, refusals, baselined)
    refusals += blocked
    proven = all(one.proven for one in tested)
    return Promotion(
        verdict="refused" if refusals else "proven" if proven else "not-proven",
        exit_code=0 if proven and not refusals else 1,
        candidate=candidate,
        incumbent=incumbent,
        over=rule.over,
        conditions=tested,
        evidence=tuple(view.facts for view in views),
        reasons=tuple(refusals),
        notes=(*notes, *_notes(views), *_by_chance(tested)),
    )


def _notes(views: Sequence[View]) -> Iterator[str]:
    for place, view in enumerate(views):
        for other in views[:place]:
            if view.facts.form == "comparison" and view.sha256 == other.sha256:
                yield (
                    f"{view.path} is byte for byte {other.path}: a comparison names no run, so a copy of it cannot be "
                    "told from a second run of what answers alike each time; a reviewer must vouch for it"
                )


def _by_chance(tested: Sequence[Tested]) -> Iterator[str]:
    for one in tested:
        unsure = [run.evidence for run in one.runs if run.low is not None and run.low <= 0]
        if one.proven and one.condition.is_ == "higher" and unsure:
            where = some(unsure)
            yield f"{one.condition.metric}: higher, and chance can explain it: the 95% interval reaches to 0 in {where}"


def uncomparable(views: Sequence[View]) -> list[Reason]:
    """Why the evidence runs cannot stand beside each other: another task, system, place or form, or the same run."""
    reasons: list[Reason] = []
    for view in views:
        reasons += _apart(view)
    for place, view in enumerate(views[1:], 1):
        first = views[0]
        if view.facts.form != first.facts.form:
            message = (
                f"{view.path} is {_form(view)}, and {first.path} is {_form(first)}: they measure other tasks"
            )
            reasons.append(refusal("evidence-form-differs", message, "Give evidence of one form."))
            continue
        sides = ((first.candidate, view.candidate), (first.incumbent, view.incumbent))
        if parts := _task_parts(first.candidate, view.candidate):
            message = f"{view.path} measured another task than {first.path} ({', '.join(parts)} differ)"
            reasons.append(
                refusal("evidence-task-differs", message, "Measure both runs on one state of the set.")
            )
        for ours, theirs in sides:
            inner = nested_differences(dict(ours.system), dict(theirs.system))
            if inner:
                named = ", ".join(change.part for change in inner)
                message = (
                    f"{view.path}: {theirs.name} is another system than in {first.path} ({named} differ)"
                )
                reasons.append(
                    refusal(
                        "evidence-system-differs", message, "Measure the present state of both twice or more."
                    )
                )
        if view.candidate.class_ != first.candidate.class_:
            classes = f"{view.candidate.class_!r}, and {first.path} in {first.candidate.class_!r}"
            message = f"{view.path} was measured in class {classes}"
            reasons.append(
                refusal(
                    "evidence-class-differs",
                    message,
                    "Evidence is of one kind of place: where the gate will run.",
                )
            )
        reasons += _same_run(views[:place], view)
    return reasons


def _form(view: View) -> str:
    return "a comparison of backends" if view.facts.form == "comparison" else "reports of arms"


def _task_parts(ours: Side, theirs: Side) -> list[str]:
    return [d.part for d in differences(ours.task, theirs.task) if d.part != "cutoffs"]


def _apart(view: View) -> Iterator[Reason]:
    """Why the two sides of one run cannot be held against each other."""
    candidate, incumbent = view.candidate, view.incumbent
    if parts := _task_parts(incumbent, candidate):
        message = f"{view.path}: {candidate.name} and {incumbent.name} answered different tasks ({', '.join(parts)})"
        yield refusal(
            "evidence-task-differs",
            message,
            "Measure both on the same set, with the same limit, filter and select.",
        )
    if candidate.class_ != incumbent.class_:
        message = (
            f"{view.path}: {candidate.name} was measured in class {candidate.class_!r}, and {incumbent.name} in "
            f"{incumbent.class_!r}"
        )
        yield refusal("evidence-class-differs", message, "Measure both in one kind of place.")


def _same_run(before: Sequence[View], view: View) -> Iterator[Reason]:
    """A run that stands for two."""
    again = "Evidence is of distinct runs: measure again, after the first."
    for other in before:
        if view.facts.form == "reports":
            for ours, theirs in ((other.candidate, view.candidate), (other.incumbent, view.incumbent)):
                if ours.run_id == theirs.run_id:
                    message = (
                        f"{view.path} and {other.path} hold the same run of {theirs.name}, {theirs.run_id}"
                    )
                    yield refusal("evidence-same-run", message, again)
        elif view.facts.artefact or other.facts.artefact:
            if view.facts.artefact == other.facts.artefact:
                message = f"{view.path} and {other.path} are of one CI run, {view.facts.artefact}"
                yield refusal("evidence-same-run", message, again)
        elif view.facts.commit is not None and view.facts.commit == other.facts.commit:
            message = (
                f"{view.path} and {other.path} were checked in by one commit, {view.facts.commit[:12]}, and a "
                "comparison names no run: nothing shows that these are two"
            )
            yield refusal(
                "evidence-same-run", message, "Check each in when it is made, in a commit of its own."
            )


def conditions(
    rule: Rule, views: Sequence[View], refusals: Sequence[Reason], baselined: str | Reason | None
) -> tuple[Tested, ...]:
    """Every condition of a rule, those that are always asked first."""
    asked = [*([] if ALWAYS in rule.conditions else [ALWAYS]), *rule.conditions]
    vacuous = [why for view in views if (why := vacuity(view))]
    no_evidence = "the evidence is refused" if refusals else f"vacuous: {vacuous[0]}" if vacuous else None
    if not views:
        no_evidence = "there is no evidence to look at"
    compared = {
        condition: tuple(_figures(view, condition) for view in views)
        for condition in asked
        if condition.metric is not None
    }
    made = []
    for condition in asked:
        if condition.check == "baselined":
            made.append(_baselined(condition, baselined))
            continue
        if condition.metric is not None:
            holds, why, runs = _compared(condition, compared[condition])
        elif condition.check == "stable":
            holds, why, runs = _stable(condition, views, list(compared.values()))
        else:
            holds, why, runs = _smoke(views) if condition.check == "smoke" else _every_query(views)
        if no_evidence is not None:
            holds, why = False, no_evidence if holds else f"{why}; {no_evidence}"
        made.append(Tested(condition=condition, text=condition.text, proven=holds, why=why, runs=runs))
    return tuple(made)


Finding = tuple[bool, str, tuple[Figures, ...]]


def _compared(condition: Condition, runs: tuple[Figures, ...]) -> Finding:
    failing = [run for run in runs if not run.holds]
    if not failing:
        return True, f"holds in all {len(runs)} runs", runs
    first = failing[0]
    sides = {"candidate": first.candidate, "incumbent": first.incumbent}
    if lacking := [name for name, value in sides.items() if value is None]:
        return False, f"{' and '.join(lacking)} of {first.evidence} without {condition.metric}", runs
    return False, f"does not hold in {first.evidence}" + _more(len(failing)), runs


def _more(count: int) -> str:
    return f" and {count - 1} more" if count > 1 else ""


def _baselined(condition: Condition, baselined: str | Reason | None) -> Tested:
    proven = isinstance(baselined, str)
    why = baselined if isinstance(baselined, str) else baselined.message if baselined else "it has no floors"
    return Tested(condition=condition, text=condition.text, proven=proven, why=why)


def _stable(condition: Condition, views: Sequence[View], compared: Sequence[tuple[Figures, ...]]) -> Finding:
    holding = sum(all(runs[place].holds for runs in compared) for place in range(len(views)))
    enough = len(views) >= condition.wanted
    why = f"every measure holds in {holding} of {len(views)} runs"
    return enough and holding == len(views), why if enough else f"{why}; {condition.wanted} are needed", ()


def _smoke(views: Sequence[View]) -> Finding:
    """The runs of both sides are sound and show something (R8); the figures are queries with a relevant document."""
    runs = []
    words = []
    for view in views:
        why = view.unsound or _failed(view) or vacuity(view)
        if why:
            words.append(f"{view.path}: {why}")
        hits = [
            sum(_any_relevant(query, side.limit) for query in side.queries.values()) for side in _sides(view)
        ]
        runs.append(
            Figures(
                evidence=view.path,
                n=len(_joined(view)),
                candidate=hits[0],
                incumbent=hits[1],
                difference=hits[0] - hits[1],
                holds=not why,
            )
        )
    return not words, "; ".join(words) or "queries with a relevant document, of both", tuple(runs)


def _failed(view: View) -> str | None:
    failed = sum(side.failed for side in _sides(view))
    return f"{failed} queries without a sound answer" if failed else None


def _every_query(views: Sequence[View]) -> Finding:
    runs = []
    words = []
    for view in views:
        lost = sorted(view.incumbent.queries.keys() - view.candidate.queries.keys())
        if lost:
            words.append(f"{view.path}: the candidate does not score {some(lost)}")
        ours, theirs = len(view.candidate.queries), len(view.incumbent.queries)
        runs.append(
            Figures(
                evidence=view.path,
                n=len(_joined(view)),
                candidate=ours,
                incumbent=theirs,
                difference=ours - theirs,
                holds=not lost,
            )
        )
    return not words, "; ".join(words) or "queries scored, of both", tuple(runs)


def vacuity(view: View) -> str | None:
    """Why a run shows nothing (R8): no query ran, or neither side found anything."""
    if not _joined(view):
        return f"no query was scored on both sides of {view.path}"
    for side in _sides(view):
        if any(_any_relevant(query, side.limit) for query in side.queries.values()):
            return None
    return f"both sides of {view.path} score zero on all queries"


def _sides(view: View) -> tuple[Side, Side]:
    return view.candidate, view.incumbent


def _joined(view: View) -> list[str]:
    return sorted(view.candidate.queries.keys() & view.incumbent.queries.keys())


def _figures(view: View, condition: Condition) -> Figures:
    """A measure of both sides over the queries that both scored, the difference and its interval."""
    from eval_core.scoring.statistics import paired

    metric = condition.metric or ""
    if metric == "missing_ground_truth":
        ours, theirs = view.candidate.missing, view.incumbent.missing
        return Figures(
            evidence=view.path,
            candidate=ours,
            incumbent=theirs,
            difference=ours - theirs,
            holds=_holds(condition.is_, ours - theirs),
        )
    joined = _joined(view)
    columns = [column(side, metric, joined) for side in _sides(view)]
    means = [None if not values else metrics.mean(values) for values in columns]
    after, before = columns
    if not after or not before:
        return Figures(evidence=view.path, n=len(joined), candidate=means[0], incumbent=means[1], holds=False)
    change = paired(
        before, after, metric == "any_relevant_at_k" or (metric not in CONTRACT and metrics.is_binary(metric))
    )
    return Figures(
        evidence=view.path,
        n=change.n,
        candidate=change.after,
        incumbent=change.before,
        difference=change.difference,
        low=change.interval.low,
        high=change.interval.high,
        p=change.p,
        holds=_holds(condition.is_, change.difference),
    )


def _holds(wanted: Literal["higher", "at-least-equal", "not-higher"] | None, difference: float) -> bool:
    """Compared unrounded; a difference within 1e-9 is none."""
    if wanted == "higher":
        return difference > TOLERANCE
    return difference >= -TOLERANCE if wanted == "at-least-equal" else difference <= TOLERANCE


def column(side: Side, metric: str, queries: Sequence[str]) -> list[float] | None:
    """The values of a measure for some queries, all of them scored; None where the side does not have it."""
    rows = [side.queries[name] for name in queries]
    match metric:
        case "any_relevant_at_k":
            return [float(_any_relevant(row, side.limit)) for row in rows]
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
    try:
        return [score(metrics.ranked(pairs, retrieved))[0] for pairs, retrieved in rows]
    except OverflowError:  # a grade whose gain no number holds
        return None


def _any_relevant(query: Scored, limit: int) -> bool:
    return any(grade > 0 and rank is not None and rank <= limit for grade, rank in query[0])
