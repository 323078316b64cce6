"""When a change of the bar must be explained, beyond what the floors that stand can say, and what explains nothing."""

from __future__ import annotations

from pathlib import Path

from eval_core.errors import Refused
from eval_gate.policy import BASELINES, EVIDENCE, FLOORS


def says(text: str) -> bool:
    """Whether a text has a letter or a digit in it: spaces, and characters that nobody sees, are no reason."""
    return any(character.isalnum() for character in text)


def unless_deleted(policy: Path, arm: str, reason: str | None) -> None:
    """Refuse floors for an arm whose floors were taken out: nothing would hold the new ones against the old.

    Call it where floors.toml has no table for the arm.

    Raises:
        Refused: `floors-deleted`: a baseline or evidence of it stands, and no reason is given.
    """
    if reason is not None and says(reason):
        return
    baseline = policy / BASELINES / f"{arm}.json"
    stands = [path for path in (baseline, *sorted((policy / EVIDENCE / arm).glob("*.json"))) if path.exists()]
    if stands:
        raise Refused(
            f"{arm}: {policy / FLOORS} has no floors for it, and {stands[0]} stands: they were deleted",
            reason="floors-deleted",
            remedy='Restore them from git; if another bar is meant, say why: --reason "…". It is kept in the file.',
        )
