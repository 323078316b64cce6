"""A query of a run as evidence keeps it: what decides its score, and no text, no ranking, no timing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Literal

from pydantic import Field

from eval_core.files import digest
from eval_core.models import Closed
from eval_core.reports.keys import query_digest
from eval_core.reports.models import ReportRow

Outcome = Literal["scored", "errored", "unscored", "unscorable"]


class Entry(Closed):
    """One query of a run: outcome, labels, and each judged document with its grade and rank.

    Everything that a measure needs follows from it.
    """

    id: str
    query: str = Field(
        description="The first 32 digits of the SHA-256 over its text and its metadata with a meaning."
    )
    outcome: Outcome = "scored"
    category: str = ""
    must_pass: bool = False
    candidates: int | None = Field(
        default=None, ge=0, description="Documents that the query may find; null: all of the corpus."
    )
    retrieved: int | None = Field(
        default=None, ge=0, description="Documents retrieved, down to the largest cut-off; null: that many."
    )
    judged: tuple[tuple[str, int, int | None], ...] = Field(
        default=(), description="(document, grade, rank from 1 within the limit; null: not retrieved)."
    )

    def pairs(self) -> list[tuple[int, int | None]]:
        """(grade, rank) of each judged document."""
        return [(grade, rank) for _, grade, rank in self.judged]


#: The fields of an entry, in their order.
Fields = tuple[str, str, Outcome, str, bool, int | None, int | None, Sequence[tuple[str, int, int | None]]]


def fields_of(rows: Iterable[ReportRow], documents: int, deepest: int) -> list[Fields]:
    """The fields of the entries of a report's rows: a digest needs no more, and a model a query takes its time.

    Args:
        rows: of the report.
        documents: of the corpus.
        deepest: the largest cut-off, to which rows hold ids.
    """
    return [
        (
            row.id,
            query_digest(row.text, row.meta),
            row.outcome,
            row.category,
            row.meta.get("must_pass") is True,
            None if row.candidates == documents else row.candidates,
            None if len(row.ids) == deepest else len(row.ids),
            tuple([(judged.id, judged.grade, judged.rank) for judged in row.judged]),
        )
        for row in rows
    ]


def entries_of(rows: Iterable[ReportRow], documents: int, deepest: int) -> tuple[Entry, ...]:
    """The entries of a report's rows; see `fields_of`."""
    names = tuple(Entry.model_fields)
    return tuple(
        Entry.model_construct(**dict(zip(names, fields, strict=True)))
        for fields in fields_of(rows, documents, deepest)
    )


def fields_digest(fields: Iterable[Fields]) -> str:
    """SHA-256 over the fields of entries, in the order of their ids."""
    return digest(sorted(fields, key=itemgetter(0)))


def entries_digest(entries: Iterable[Entry]) -> str:
    """SHA-256 over the entries, in the order of their ids."""
    return fields_digest(
        (e.id, e.query, e.outcome, e.category, e.must_pass, e.candidates, e.retrieved, e.judged)
        for e in entries
    )
