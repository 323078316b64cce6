"""Which queries are worth an explanation: those that a baseline scores better, and those that are missed now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from eval_core.compare import usual
from eval_core.compare.models import Asked, Entry
from eval_core.reports.check import TOLERANCE
from eval_core.scoring import metrics


def headline_of(sides: Sequence[Entry], notes: list[str]) -> metrics.Measure:
    """The measure that a comparison of these leads with: the set's headline or, with a note, what replaces it."""
    return usual(sides, notes)[0]


def limit_of(task: Mapping[str, JsonValue]) -> int:
    """How many documents a query asks for, from the parts of a task key."""
    return int(str(task["limit"]))


def cut_of(side: Entry, headline: metrics.Measure) -> int:
    """The rank down to which the headline measure looks; the largest cut-off where it has none of its own."""
    cut = headline.cutoff or side.cutoffs[-1]
    return cut if side.limit is None else min(cut, side.limit)


def value_of(asked: Asked, headline: metrics.Measure) -> float | None:
    """What a query scores, or None where it is not scored."""
    if asked.outcome != "scored":
        return None
    name = str(headline)
    return metrics.score([(grade, rank) for _, grade, rank in asked.judged], [name], asked.retrieved)[name]


def mean(side: Entry, headline: metrics.Measure) -> float:
    """The mean of a measure over the scored queries."""
    values = (value_of(asked, headline) for asked in side.queries.values())
    return metrics.mean([value for value in values if value is not None])


def lost(side: Entry, baseline: Entry, headline: metrics.Measure) -> list[str]:
    """Queries that scored better in the baseline, the largest loss first; then those that are not scored any more."""
    before = {name: value_of(asked, headline) for name, asked in baseline.queries.items()}
    falls: list[tuple[float, str]] = []
    gone: list[str] = []
    for name, asked in side.queries.items():
        then, now = before.get(name), value_of(asked, headline)
        if then is not None and now is None:
            gone.append(name)
        elif then is not None and now is not None and then - now > TOLERANCE:
            falls.append((now - then, name))
    return [name for _, name in sorted(falls)] + gone


def missed(side: Entry, headline: metrics.Measure) -> list[str]:
    """Scored queries without all relevant documents within the cut-off (hit, mrr: without one), the lowest first."""
    cut = cut_of(side, headline)
    enough = any if headline.family in ("hit", "mrr") else all
    found: list[tuple[float, str]] = []
    for name, asked in side.queries.items():
        value = value_of(asked, headline)
        within = [rank is not None and rank <= cut for _, grade, rank in asked.judged if grade > 0]
        if value is not None and not enough(within):
            found.append((value, name))
    return [name for _, name in sorted(found)]
