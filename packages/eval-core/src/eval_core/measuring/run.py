"""A run: what one arm returned, a row a query, as JSON lines and as a TREC run file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from eval_core.errors import Fault, Faults
from eval_core.files import atomic, canonical
from eval_core.sets.corpus import read_json_lines

SCHEMA = "run-v1"

Outcome = Literal["scored", "errored", "unscored", "unscorable"]
SCORED: Final = "scored"
ERRORED: Final = "errored"  # the backend failed
UNSCORED: Final = "unscored"  # not attempted
UNSCORABLE: Final = "unscorable"  # a capability is lacking, or nothing is judged relevant


@dataclass(slots=True)
class Row:
    """One query's outcome.

    `ids` are distinct, in rank order, at most the limit. `latencies` are in milliseconds, one a repetition.
    `duplicates` and `excess` count what was dropped from the backend's list, `reordered` says that equal scores put it
    into the order of the ids. `stable` is false where a repetition
    ranked otherwise. `detail` says why a row is not scored.
    """

    id: str
    outcome: Outcome
    ids: Sequence[str] = ()
    scores: Sequence[float] | None = None
    latencies: list[float] = field(default_factory=list)
    duplicates: int = 0
    excess: int = 0
    reordered: bool = False
    stable: bool = True
    detail: str = ""

    def record(self) -> dict[str, Any]:
        """The row as its line holds it; what is usual is left out."""
        record: dict[str, Any] = {"id": self.id, "outcome": self.outcome, "ids": list(self.ids)}
        if self.scores is not None:
            record["scores"] = list(self.scores)
        record["latencies"] = self.latencies
        for name in ("duplicates", "excess", "reordered", "detail"):
            if value := getattr(self, name):
                record[name] = value
        if not self.stable:
            record["stable"] = False
        return record


def write_run(path: Path, header: Mapping[str, Any], rows: Iterable[Row]) -> None:
    """Write a run: a line of what was measured (`schema`, `run_id`, `arm`, keys, environment), then a line a row."""
    with atomic(path) as stream:
        stream.write(canonical({"schema": SCHEMA, **header}) + b"\n")
        for row in rows:
            stream.write(json.dumps(row.record(), ensure_ascii=False, allow_nan=False).encode() + b"\n")


def read_run(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Read a run: its header and the records of its rows.

    Raises:
        Faults: a line is not JSON, or the first is no header of this schema.
        CouldNot: the file cannot be read.
    """
    faults: list[Fault] = []
    lines = [v for _, v in read_json_lines(path, lambda n, m: faults.append(Fault(m, file=path, line=n)))]
    if not faults and (not lines or lines[0].get("schema") != SCHEMA):
        faults.append(Fault(f"expected a run's header with schema {SCHEMA!r}", file=path, line=1))
    if faults:
        raise Faults(faults)
    return lines[0], lines[1:]


def trec_lines(rows: Iterable[Row], tag: str) -> Iterator[bytes]:
    """The lines `query Q0 document rank score tag` of a TREC run file.

    Scores fall strictly (the negative rank), so that every tool that sorts by score sees our order, whatever it does
    with ties.
    """
    for row in rows:
        if row.outcome == SCORED:
            for rank, document in enumerate(row.ids, 1):
                yield f"{row.id} Q0 {document} {rank} {-rank} {tag}".encode()
