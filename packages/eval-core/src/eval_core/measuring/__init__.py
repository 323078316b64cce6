"""An arm put to its backend: the plan, the loop, the answers, and the report that comes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eval_core import lazily

if TYPE_CHECKING:
    from eval_core.measuring.candidates import counter
    from eval_core.measuring.environment import Tree, environment_class, git, iso_now, observe, uncommitted
    from eval_core.measuring.loop import ask, measure
    from eval_core.measuring.measurement import Measurement
    from eval_core.measuring.plan import Plan, backend_faults, prepare, resolve
    from eval_core.measuring.run import read_run, write_run

__all__ = [
    "Measurement",
    "Plan",
    "Tree",
    "ask",
    "backend_faults",
    "counter",
    "environment_class",
    "git",
    "iso_now",
    "measure",
    "observe",
    "prepare",
    "read_run",
    "resolve",
    "uncommitted",
    "write_run",
]

__getattr__ = lazily(
    __name__,
    candidates="counter",
    environment="Tree environment_class git iso_now observe uncommitted",
    loop="ask measure",
    measurement="Measurement",
    plan="Plan backend_faults prepare resolve",
    run="read_run write_run",
)
