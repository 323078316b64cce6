"""Which runs are evidence: whole, clean, of one task, system and class."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from eval_core.policy.bars import TOLERANCE
from eval_core.policy.evidence import Line
from eval_core.reports.keys import SYSTEM_PARTS, differences, task_differences


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a run is no evidence."""

    code: str
    what: str
    mend: str | None = None


def unfit(line: Line) -> Iterator[Problem]:
    """What keeps a run from being evidence, whatever it is compared with."""
    again = "Measure again:  eval-core measure ARM"
    health = line.health
    if health.errored or health.unscored:
        what = f"it has {health.errored} errored and {health.unscored} unscored queries"
        yield Problem("evidence-errored", what, f"Mend the backend. {again}")
    elif not health.scored:
        yield Problem(
            "evidence-errored", "it scored no query", "Give the set queries that the backend can answer."
        )
    if line.clean is False:
        what = "it was measured on a tree with uncommitted changes, so no commit says what was measured"
        yield Problem("evidence-dirty", what, f"Commit the changes first. {again}")
    if line.resumed:
        yield Problem("evidence-resumed", "it was resumed after an interruption", again)
    if line.index != "built":
        yield Problem(
            "evidence-cached", "its index came from a cache", "Measure with an index built in the run."
        )


def unlike(line: Line, baseline: Line, drift: float | None = None) -> Iterator[Problem]:
    """What keeps a run from standing beside the newest one: another task, system or class, or too far a drift."""
    exempt = {"corpus"} if drift is not None else set()
    task = [d.part for d in task_differences(baseline.task, line.task) if d.part not in exempt]
    system = [d.part for d in differences(baseline.system, line.system, SYSTEM_PARTS)]
    for key, parts in (("task", task), ("system", system)):
        if parts:
            what = f"it measured another {key} than run {baseline.run_id}: {', '.join(parts)}"
            yield Problem(f"evidence-{key}-differs", what, "Measure the present state at least twice.")
    if line.class_ != baseline.class_:
        what = f"its class is {line.class_!r}, and that of run {baseline.run_id} is {baseline.class_!r}"
        yield Problem(
            "evidence-class-differs", what, "Take runs of one class: the one in which the gate will run."
        )
    if line.headline != baseline.headline:
        what = f"its headline is {line.headline}, and that of run {baseline.run_id} is {baseline.headline}"
        yield Problem("evidence-task-differs", what, "Measure the present state at least twice.")
    if drift is not None:
        low, high = band(baseline.documents, drift)
        if not low <= line.documents <= high:
            what = f"it had {line.documents} documents, and the band is {low} to {high}"
            yield Problem(
                "evidence-corpus-size-differs", what, "Measure the present corpus twice, or widen --drifts."
            )


def band(documents: int, share: float) -> tuple[int, int]:
    """The fewest and the most documents within `share` of a count, at least one document wide each way."""
    room = max(1, math.floor(documents * share + TOLERANCE))
    return max(1, documents - room), documents + room
