"""When two questions are the same, or nearly."""

from __future__ import annotations

from collections.abc import Set

_FINAL = " .?!…:;,。？！"


def same(text: str) -> str:
    """The form in which questions that differ in case, white space or final punctuation alone are equal."""
    folded = " ".join(text.casefold().split())
    return folded.rstrip(_FINAL) or folded


def jaccard(ours: Set[str], theirs: Set[str]) -> float:
    """Size of the intersection over size of the union, 0 where both are empty."""
    union = len(ours | theirs)
    return len(ours & theirs) / union if union else 0.0
