"""The check of a report: whether it may be graded, its grades, where it comes from, and the judgement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eval_core import lazily

if TYPE_CHECKING:
    from eval_gate.check.checkout import Checkout, linked
    from eval_gate.check.eligibility import Standing, sayings
    from eval_gate.check.judge import NO_BRANCH, Seen, judge_arm
    from eval_gate.check.origin import Origins, answering, owned, sets, without_latency
    from eval_gate.check.plain import judge_plain, read_plain
    from eval_gate.check.rules import grades, latency, must_pass

__all__ = [
    "NO_BRANCH",
    "Checkout",
    "Origins",
    "Seen",
    "Standing",
    "answering",
    "grades",
    "judge_arm",
    "judge_plain",
    "latency",
    "linked",
    "must_pass",
    "owned",
    "read_plain",
    "sayings",
    "sets",
    "without_latency",
]

__getattr__ = lazily(
    __name__,
    checkout="Checkout linked",
    eligibility="Standing sayings",
    judge="NO_BRANCH Seen judge_arm",
    origin="Origins answering owned sets without_latency",
    plain="judge_plain read_plain",
    rules="grades must_pass latency",
)
