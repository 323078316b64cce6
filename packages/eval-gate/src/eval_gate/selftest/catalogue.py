"""The catalogue of the self-test: every attack that starts no process."""

from __future__ import annotations

from collections.abc import Iterator

from eval_gate.selftest.attack import Attack
from eval_gate.selftest.policy import POLICY
from eval_gate.selftest.queries import RANKINGS, SET
from eval_gate.selftest.report import REPORT


def attacks() -> Iterator[Attack]:
    """Every attack that starts no process, in the order in which they are told."""
    yield from (*REPORT, *POLICY, *SET, *RANKINGS)
