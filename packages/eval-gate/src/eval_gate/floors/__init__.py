"""Floors: proposed from runs, written, and held against those of another commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eval_core import lazily

if TYPE_CHECKING:
    from eval_gate.floors.commits import beside_the_command
    from eval_gate.floors.difference import changes
    from eval_gate.floors.proposal import Proposal
    from eval_gate.floors.propose import CHOSEN, Proposed, Wish, check_keys
    from eval_gate.floors.sources import arms_of, history, measured_now, reports_in, uploaded, without_ci_run
    from eval_gate.floors.target import Held, Promotions, against
    from eval_gate.floors.text import budgets_text, floors_text, plain
    from eval_gate.floors.write import policy_files, sweep_policy, write_all

__all__ = [
    "CHOSEN",
    "Held",
    "Promotions",
    "Proposal",
    "Proposed",
    "Wish",
    "against",
    "arms_of",
    "beside_the_command",
    "budgets_text",
    "changes",
    "check_keys",
    "floors_text",
    "history",
    "measured_now",
    "plain",
    "policy_files",
    "reports_in",
    "sweep_policy",
    "uploaded",
    "without_ci_run",
    "write_all",
]

__getattr__ = lazily(
    __name__,
    commits="beside_the_command",
    difference="changes",
    proposal="Proposal",
    propose="CHOSEN Proposed Wish check_keys",
    sources="arms_of history measured_now reports_in uploaded without_ci_run",
    target="Held Promotions against",
    text="budgets_text floors_text plain",
    write="policy_files sweep_policy write_all",
)
