"""The demonstration: a small set of its own is gated, the retriever made worse, and a query deleted, for all to see."""

from __future__ import annotations

from eval_gate.demo.models import Demo, Step
from eval_gate.demo.run import run_demo

__all__ = ["Demo", "Step", "run_demo"]
