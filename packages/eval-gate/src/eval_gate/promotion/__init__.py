"""Promotion: a better arm takes the default's place, when every condition of its rule is proven."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eval_core import lazily

if TYPE_CHECKING:
    from eval_gate.promotion.change import plan, unmet
    from eval_gate.promotion.models import (
        RULES,
        Promotion,
        PromotionRecord,
        Rule,
        Rules,
        parse_rules,
        read_rules,
        rule_for,
    )
    from eval_gate.promotion.places import Places, operator_only, uncommitted
    from eval_gate.promotion.state import RECORDS, Target, mixed

__all__ = [
    "RECORDS",
    "RULES",
    "Places",
    "Promotion",
    "PromotionRecord",
    "Rule",
    "Rules",
    "Target",
    "mixed",
    "operator_only",
    "parse_rules",
    "plan",
    "read_rules",
    "rule_for",
    "uncommitted",
    "unmet",
]

__getattr__ = lazily(
    __name__,
    change="plan unmet",
    models="RULES Promotion PromotionRecord Rule Rules parse_rules read_rules rule_for",
    places="Places operator_only uncommitted",
    state="RECORDS Target mixed",
)
