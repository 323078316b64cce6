"""The guard: every file that is judged relevant is a file of the commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eval_core import lazily

if TYPE_CHECKING:
    from eval_gate.guard.inputs import Judged, read_judged
    from eval_gate.guard.judge import Finding, GuardVerdict

__all__ = [
    "Finding",
    "GuardVerdict",
    "Judged",
    "read_judged",
]

__getattr__ = lazily(
    __name__,
    inputs="Judged read_judged",
    judge="Finding GuardVerdict",
)
