"""What `eval-core measure --format json` prints: an entry an arm."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from eval_core.models import Closed
from eval_core.reports.models import Health, Latency
from eval_core.reports.report import Report


class Measured(Closed):
    """One arm: where its report lies and what it says, or why there is none."""

    arm: str
    set: str
    run_id: str | None = None
    report: str | None = Field(default=None, description="The report's path.")
    n: int | None = None
    metrics: dict[str, float] = Field(default={})
    latency: Latency | None = None
    health: Health | None = None
    error: str | None = Field(default=None, description="Why the arm could not be measured.")

    @property
    def ok(self) -> bool:
        """Whether it was measured and every query that can be scored was."""
        return self.error is None and self.health is not None and self.health.ok


class Measurement(Closed):
    """All arms of one call."""

    schema_: Literal["measurement-v1"] = Field(default="measurement-v1", alias="schema")
    arms: tuple[Measured, ...]


def measured(report: Report, path: str) -> Measured:
    """The entry of a report."""
    return Measured(
        arm=report.arm,
        set=report.dataset.name,
        run_id=report.run_id,
        report=path,
        n=report.n,
        metrics=report.summary.overall.metrics,
        latency=report.latency,
        health=report.health,
    )
