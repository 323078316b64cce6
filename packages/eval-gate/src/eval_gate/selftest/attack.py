"""What an attack of the self-test is, and what several of them share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from eval_core.reports.models import ReportRow
from eval_gate.selftest.bench import Bench
from eval_gate.selftest.models import Kind
from eval_gate.selftest.rebuild import found

#: What to do where an attack survives that no policy can allow.
GATE = "No policy allows it: mend or update eval-gate before you trust a verdict of it."

#: The rules that notice worse rankings.
WORSE = ("floor-breached", "baseline-drop", "net-lost", "must-pass-lost")

#: Names that no other thing has.
OTHER_RUN, OTHER_COMMIT, OTHER_DIGEST = "self-test-another-run", "5e1f" * 10, "5e1f" * 16

SEED = 20261130


@dataclass(frozen=True, slots=True)
class Attack:
    """One way to make the gate lie.

    `act` alters the files of a bench; it returns a text that the refusal must name, or None. `requirement` is what the
    policy must require for the attack to be caught. `worse` attacks only worsen the rankings: what they cost may be
    less than the policy allows to lose.
    """

    kind: Kind
    name: str
    expected: tuple[str, ...]
    act: Callable[[Bench], str | None]
    remedy: str = GATE
    requirement: str | None = None
    worse: bool = False


def failing(bench: Bench) -> list[ReportRow]:
    """The rows that keep the headline down; the last scored one where none does."""
    scored = [row for row in bench.report.rows if row.outcome == "scored"]
    headline = bench.report.dataset.headline
    bad = [row for row in scored if row.metrics.get(headline, 0.0) < 1] or scored[-1:]
    # One at least is kept, or there would be no set.
    return bad[: len(bench.report.rows) - 1]


def easy(bench: Bench) -> ReportRow:
    """A query that costs nothing: the first whose first document is relevant, else any."""
    return next((row for row in bench.report.rows if found(row) == 1), bench.report.rows[0])


def new_label(row: ReportRow) -> str | None:
    """A document that was returned for a query and is not judged relevant: the best-ranked."""
    relevant = {one.id for one in row.judged if one.grade > 0}
    return next((name for name in row.ids if name not in relevant), None)
