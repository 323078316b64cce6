"""What a backend answered, held against what it was asked: cleaned and counted, or the reason why it is an error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real

from eval_core.backend import Reply


@dataclass(frozen=True, slots=True)
class Answer:
    """A sound answer: distinct ids in rank order, at most `limit`, and what was dropped to make it so.

    `reordered` says that equal scores put ids into another order than that of the backend.
    """

    ids: tuple[str, ...]
    scores: tuple[float, ...] | None
    duplicates: int
    excess: int
    reordered: bool = False


def vet(
    reply: Reply, limit: int, exclude: tuple[str, ...], outside: Callable[[str], str | None]
) -> Answer | str:
    """Clean an answer, or say why it is an error.

    Duplicates are dropped (the first stands) and counted; ids beyond limit + |exclude| are cut and counted; excluded
    ids are dropped; equal scores are put in ascending order of id. Scores that rise or are not finite, as many scores
    as ids not given, an id that is no text, and an id for which `outside` gives a reason make the answer an error.
    """
    if isinstance(reply.ids, str) or not isinstance(reply.ids, Iterable):
        return f"ids {reply.ids!r} are not a list"
    ids = list(reply.ids)
    scores: list[float] | None = None
    if reply.scores is not None:
        if isinstance(reply.scores, str) or not isinstance(reply.scores, Iterable):
            return f"scores {reply.scores!r} are not a list"
        given: list[object] = list(reply.scores)
        if len(given) != len(ids):
            return f"{len(ids)} ids with {len(given)} scores"
        scores = []
        for score in given:
            number = _finite(score)
            if number is None:
                return f"score {score!r} is not a finite number"
            scores.append(number)
        for before, after in pairwise(scores):
            if after > before:
                return f"scores rise from {before!r} to {after!r}; the best comes first"
    seen: dict[str, int] = {}
    for place, document in enumerate(ids):
        if not isinstance(document, str):
            return f"id {document!r} is not a text"
        if document not in seen:
            reason = outside(document)
            if reason is not None:
                return f"id {document!r} {reason}"
            seen[document] = place
    duplicates = len(ids) - len(seen)
    distinct = list(seen)
    asked = limit + len(exclude)
    excess = max(0, len(distinct) - asked)
    reordered = False
    if scores is not None:
        # Stable on the score alone would keep the backend's own order of ties; ours is by id.
        by_id = scores
        distinct.sort(key=lambda document: (-by_id[seen[document]], document))
        reordered = distinct != list(seen)
    distinct = distinct[:asked]
    if exclude:
        distinct = [document for document in distinct if document not in exclude]
    distinct = distinct[:limit]
    kept = None if scores is None else tuple([scores[seen[document]] for document in distinct])
    return Answer(tuple(distinct), kept, duplicates, excess, reordered)


def _finite(score: object) -> float | None:
    """The score in double precision, or None where it is no finite number. Numbers of numpy are numbers."""
    if type(score) is not float:
        if isinstance(score, bool) or not isinstance(score, Real):
            return None
        try:
            score = float(score)
        except OverflowError:
            return None
    return score if math.isfinite(score) else None
