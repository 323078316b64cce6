"""What the tests of the policy share: lines of evidence made from ranks, with every digest as in measuring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eval_core.files import digest
from eval_core.policy.evidence import SCHEMA, Line, MeasuredSet, line_digest
from eval_core.reports.check import quality_digest
from eval_core.reports.entries import Entry
from eval_core.reports.keys import TASK_PARTS, digested_parts
from eval_core.reports.models import Health
from eval_core.reports.provenance import producer_of

#: A query's answer: the rank of its only relevant document (None: not retrieved), or (grade, rank) of several.
Answer = int | None | Sequence[tuple[int, int | None]]


def line(
    answers: Sequence[Answer],
    run: str = "r1",
    *,
    categories: Sequence[str] = (),
    headline: str = "recall@10",
    cutoffs: Sequence[int] = (1, 5, 10),
    limit: int = 10,
    documents: int = 1000,
    rankings: str | None = None,
    moves: bool = False,
    task: Mapping[str, Any] | None = None,
    system: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Line:
    """A run whose queries q000, q001, … are answered so; `rankings` names full rankings that no judged rank shows."""
    entries = tuple(
        Entry(
            id=f"q{place:03}",
            query=digest(place)[:32],
            category=categories[place] if categories else "",
            judged=tuple(
                (f"d{place:03}-{number}", grade, rank) for number, (grade, rank) in enumerate(_pairs(answer))
            ),
        )
        for place, answer in enumerate(answers)
    )
    parts = {
        **dict.fromkeys(TASK_PARTS, "none"),
        **digested_parts(
            ((entry.id, entry.query) for entry in entries),
            ((entry.id, {document: grade for document, grade, _ in entry.judged}) for entry in entries),
        ),
        "limit": limit,
        "cutoffs": list(cutoffs),
        "filter": [],
        **(task or {}),
    }
    system = {"backend": "bm25", "options": {}, **(system or {})}
    counts: dict[str, Any] = dict.fromkeys(Health.model_fields, 0) | {"scored": len(entries), "counts": {}}
    given: dict[str, Any] = {
        "schema": SCHEMA,
        "run_id": run,
        "started": f"2026-11-30T12:00:00.000Z+{run}",
        "commit": "c" * 40,
        "class": "ci",
        "clean": True,
        "resumed": False,
        "index": "built",
        "repetitions": 3,
        "health": Health(**counts),
        "rankings": digest([answers, rankings]),
        "version": "1",
        "fingerprint": digest(producer_of("1", parts, system)),
        "set": MeasuredSet(name="things", version="1", headline=headline, documents=documents, moves=moves),
        "task": parts,
        "system": system,
        "entries": entries,
        "quality": quality_digest(parts, system, entries),
        "line": "",
    }
    made = Line(**(given | fields))
    return made.model_copy(update={"line": line_digest(made)})


def _pairs(answer: Answer) -> Sequence[tuple[int, int | None]]:
    return answer if isinstance(answer, Sequence) else [(1, answer)]


def hits(n: int, misses: int, run: str = "r1", **fields: Any) -> Line:
    """A run that finds the only relevant document at rank 1, but for the last `misses` of n queries."""
    return line([1] * (n - misses) + [None] * misses, run, **fields)
