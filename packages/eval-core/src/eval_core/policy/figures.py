"""The figures of one run: each measure's mean with its 95% interval, overall and by category, from its line alone."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from eval_core.models import Closed
from eval_core.policy.evidence import Line
from eval_core.scoring import metrics, statistics
from eval_core.scoring.models import Estimate


class Part(Closed):
    """A measured part of a set: all of it, or one category."""

    n: int = Field(ge=0, description="Queries scored.")
    measures: dict[str, Estimate] = Field(description="By measure; empty where nothing was scored.")


class RunFigures(Closed):
    """The figures of one run of an arm."""

    arm: str
    set: str
    run_id: str
    path: str = Field(description="The report, or the evidence file of a baseline.")
    overall: Part
    categories: dict[str, Part] = Field(
        description="In the order of first appearance; also those of fewer than five queries, with intervals as wide "
        "as so few allow."
    )


class Figures(Closed):
    """What `eval-core show --format json` prints: what follows from reports and is not in them."""

    schema_: Literal["figures-v1"] = Field(default="figures-v1", alias="schema")
    runs: tuple[RunFigures, ...]


def figures(line: Line, arm: str, path: str) -> RunFigures:
    """Derive the figures of a run; `path` is where it was read."""
    return RunFigures(
        arm=arm,
        set=line.set.name if line.set else "",
        run_id=line.run_id,
        path=path,
        overall=_part(line, None),
        categories={category: _part(line, category) for category in line.categories},
    )


def _part(line: Line, category: str | None) -> Part:
    entries = [entry for entry in line.scored if category in (None, entry.category)]
    if not entries:
        return Part(n=0, measures={})
    table = {name: line.values(name, category) for name in line.measures}
    most = metrics.most(
        ([grade for _, grade, _ in entry.judged] for entry in entries), list(map(metrics.parse, table))
    )
    bounds = statistics.intervals(table, dict(zip(table, most, strict=True)))
    return Part(
        n=len(entries),
        measures={
            name: Estimate(mean=metrics.mean(values), low=bounds[name].low, high=bounds[name].high)
            for name, values in table.items()
        },
    )
