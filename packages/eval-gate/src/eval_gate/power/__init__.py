"""What a set can resolve, and how often its floors fail by chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eval_core import lazily

if TYPE_CHECKING:
    from eval_gate.power.aa import measured_again, of_evidence, of_reports
    from eval_gate.power.models import Power, Unchanged
    from eval_gate.power.odds import Odds, breaches, odds_of, sentences
    from eval_gate.power.resolution import FLIP_RATE, place_of, target, with_odds
    from eval_gate.power.words import aa_text, power_text

__all__ = [
    "FLIP_RATE",
    "Odds",
    "Power",
    "Unchanged",
    "aa_text",
    "breaches",
    "measured_again",
    "odds_of",
    "of_evidence",
    "of_reports",
    "place_of",
    "power_text",
    "sentences",
    "target",
    "with_odds",
]

__getattr__ = lazily(
    __name__,
    aa="measured_again of_evidence of_reports",
    models="Power Unchanged",
    odds="Odds breaches odds_of sentences",
    resolution="FLIP_RATE place_of target with_odds",
    words="aa_text power_text",
)
