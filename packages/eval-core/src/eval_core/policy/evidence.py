"""Evidence: a line a run in `policy/evidence/ARM.jsonl`, from which floors, bars and lost queries are derived anew.

A line holds what was measured and nothing that follows from it: which run, where, of which task and system, and of each
query the grade and rank of its judged documents. `quality` is the SHA-256 over task, system and entries, equal for two
runs that cannot be told apart by quality; `line` covers the whole line. Where task, system and entries equal those of
an earlier line, they are written once: `same` names that run. That is how a line is written, not what it says.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Final, Literal, get_args

from pydantic import Field, JsonValue, ValidationError

from eval_core.errors import UNSET, Refused
from eval_core.files import digest, refuse_special
from eval_core.models import Closed
from eval_core.reports.check import quality_digest
from eval_core.reports.entries import Entry, Outcome, entries_of
from eval_core.reports.keys import digested_parts
from eval_core.reports.models import Health, cutoffs_of
from eval_core.reports.provenance import producer_of
from eval_core.reports.report import Report
from eval_core.scoring import metrics

SCHEMA: Final = "evidence-v1"

#: What a run may be called: `new_run_id` gives such ids.
RUN_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"

FOLDER = "evidence"

#: What two lines share where `same` names the other run.
SHARED = ("set", "statements", "task", "system", "entries", "quality", "fingerprint", "version")


class MeasuredSet(Closed):
    """Which set was measured."""

    name: str
    version: str
    headline: str
    documents: int = Field(ge=0)
    moves: bool = Field(
        default=False, description="Whether a source of its corpus moves: a branch, a folder."
    )


class Line(Closed):
    """One measured run of an arm."""

    schema_: Literal["evidence-v1"] = Field(alias="schema")
    run_id: str = Field(pattern=RUN_ID)
    started: str = Field(description="UTC, ISO 8601.")
    commit: str | None
    class_: str = Field(alias="class")
    ci_run: str | None = None
    clean: bool | None = Field(description="Whether the tree had no uncommitted changes; null without git.")
    resumed: bool
    index: Literal["built", "cached"]
    repetitions: int = Field(ge=0)
    health: Health
    rankings: str = Field(description="The report's digest of full rankings.")
    same: str | None = Field(
        default=None, description="The run whose task, system and entries this line repeats."
    )
    version: str = Field(default="", description="Of eval-core.")
    fingerprint: str = Field(
        default="", description="SHA-256 over what produced it; see eval_core.reports.provenance."
    )
    set: MeasuredSet | None = None
    statements: tuple[str, ...] = ()
    task: dict[str, JsonValue] = Field(default={})
    system: dict[str, JsonValue] = Field(default={})
    entries: tuple[Entry, ...] = ()
    quality: str = ""
    line: str

    @property
    def n(self) -> int:
        """Queries scored."""
        return self.health.scored

    @property
    def documents(self) -> int:
        """Documents of the corpus."""
        return self.set.documents if self.set else 0

    @property
    def headline(self) -> str:
        """The set's headline measure."""
        return self.set.headline if self.set else ""

    @cached_property
    def scored(self) -> tuple[Entry, ...]:
        """The entries that were scored, in the order of the line."""
        return tuple(entry for entry in self.entries if entry.outcome == "scored")

    @property
    def cutoffs(self) -> tuple[int, ...]:
        """The k of its measures, rising."""
        return cutoffs_of(self.task)

    @property
    def measures(self) -> list[str]:
        """The measures that a report of it holds."""
        return metrics.names(self.cutoffs, self.headline)

    @property
    def categories(self) -> dict[str, int]:
        """Scored queries by category, in the order of first appearance."""
        found: dict[str, int] = {}
        for entry in self.scored:
            if entry.category:
                found[entry.category] = found.get(entry.category, 0) + 1
        return found

    @cached_property
    def _columns(self) -> dict[str, list[float]]:
        return {}

    def column(self, measure: str) -> list[float]:
        """The value of a measure for each scored entry, in their order.

        Raises:
            Misuse: there is no such measure.
        """
        found = self._columns.get(measure)
        if found is None:
            score = metrics.scorer([metrics.parse(measure)])
            # Most queries have few judgements, so that most of them are ranked like one before.
            values = {shape: score(metrics.ranked(*shape))[0] for shape in set(self._shapes)}
            found = self._columns[measure] = [values[shape] for shape in self._shapes]
        return found

    @cached_property
    def _shapes(self) -> list[tuple[tuple[tuple[int, int | None], ...], int]]:
        """(grade, rank) of the judged documents of each scored entry, and how many documents were retrieved."""
        deepest = self.cutoffs[-1]
        return [(tuple(e.pairs()), deepest if e.retrieved is None else e.retrieved) for e in self.scored]

    def values(self, measure: str, category: str | None = None) -> list[float]:
        """The values of a measure over the scored queries, or over those of a category."""
        column = self.column(measure)
        if category is None:
            return column
        return [v for v, entry in zip(column, self.scored, strict=True) if entry.category == category]

    def mean(self, measure: str, category: str | None = None) -> float:
        """The mean of a measure over the scored queries, or over those of a category."""
        return metrics.mean(self.values(measure, category))

    def misses(self, measure: str, category: str | None = None) -> int:
        """How many queries miss a measure that is 0 or 1."""
        return sum(value < 1 for value in self.values(measure, category))


def line_of(report: Report) -> Line:
    """The evidence line of a report."""
    environment, about = report.environment, report.dataset
    draft = Line(
        schema_=SCHEMA,
        run_id=report.run_id,
        started=environment.started,
        commit=environment.commit,
        class_=environment.class_,
        ci_run=environment.ci_run,
        clean=None if environment.dirty is None else not environment.dirty,
        resumed=report.resumed,
        index=report.index,
        repetitions=report.repetitions,
        health=report.health,
        rankings=report.digests.rankings,
        version=environment.version,
        fingerprint=digest(producer_of(environment.version, report.task.parts, report.system.parts)),
        set=MeasuredSet(
            name=about.name,
            version=about.version,
            headline=about.headline,
            documents=about.documents,
            moves=about.moves,
        ),
        statements=report.statements,
        task=report.task.parts,
        system=report.system.parts,
        entries=entries_of(report.rows, about.documents, report.cutoffs[-1]),
        quality=report.digests.quality,
        line="",
    )
    return draft.model_copy(update={"line": line_digest(draft)})


def line_digest(line: Line) -> str:
    """SHA-256 over all that a line says, however short it is written."""
    table = line.model_dump(mode="json", by_alias=True, exclude={"same", "line", "task", "system", "entries"})
    return digest(table)  # task, system and entries are in `quality`


def dump(lines: Iterable[Line]) -> bytes:
    """The bytes of an evidence file: by start, a line that repeats an earlier one written short."""
    first: dict[str, str] = {}
    out = []
    for line in sorted(lines, key=lambda line: (line.started, line.run_id)):
        twin = first.setdefault(_shared(line), line.run_id)
        hidden = {"same"} if twin == line.run_id else set(SHARED)
        table = line.model_dump(mode="json", by_alias=True, exclude=hidden)
        if twin != line.run_id:
            table["same"] = twin
        else:
            table["entries"] = [
                entry.model_dump(mode="json", exclude_defaults=True) for entry in line.entries
            ]
        out.append(json.dumps(table, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n")
    return "".join(out).encode("utf-8")


def _shared(line: Line) -> str:
    parts = [line.quality, line.fingerprint, line.version, line.statements]
    return digest([*parts, line.set.model_dump(mode="json") if line.set else None])


def path_of(policy: Path, arm: str) -> Path:
    """Where the evidence of an arm lies, below the folder of the floors file."""
    return policy / FOLDER / f"{arm}.jsonl"


def read_evidence(path: Path) -> tuple[Line, ...]:
    """Read an evidence file and recompute all that its lines determine.

    Raises:
        Refused: `evidence-missing`; `evidence-malformed`, where it cannot be read; `evidence-contradicts`, where a line
            says otherwise than its own entries.
    """
    try:
        refuse_special(path)
        raw = path.read_bytes()
    except FileNotFoundError:
        mend = f"Restore it from git, or move the bar:  eval-gate floor {path.stem} --measure --write"
        raise Refused("evidence-missing", "there is no such evidence file", file=path, mend=mend) from None
    except OSError as error:
        raise Refused(
            "evidence-malformed", f"cannot be read: {error.strerror or error}", file=path
        ) from error
    return parse_evidence(raw, str(path))


def parse_evidence(raw: bytes, path: str) -> tuple[Line, ...]:
    """Read the bytes of an evidence file; see `read_evidence`. `path` is what errors name."""
    lines: dict[str, Line] = {}
    for number, text in enumerate(raw.splitlines(), 1):
        try:
            line = Line.model_validate_json(text)
        except (ValidationError, ValueError) as error:
            from eval_core.faults import first

            key, value, what = (
                first(error, Line) if isinstance(error, ValidationError) else (None, UNSET, str(error))
            )
            raise Refused("evidence-malformed", what, file=path, line=number, key=key, value=value) from error
        if line.run_id in lines:
            raise Refused(
                "evidence-malformed", "the run is there twice", file=path, line=number, subject=line.run_id
            )
        try:
            if line.same is None:
                problem = _contradiction(line)
            elif own := [name for name in SHARED if name in line.model_fields_set]:
                problem = f"repeats run {line.same!r}, and still holds {', '.join(own)}"
            elif (twin := lines.get(line.same)) is None:
                problem = f"names run {line.same!r}, and no line above is of it"
            else:
                shared = {name: getattr(twin, name) for name in SHARED}
                line = line.model_copy(update={**shared, "same": None})
                line.__dict__["scored"], line.__dict__["_columns"] = twin.scored, twin._columns
                problem = None
            if problem is None and line.line != line_digest(line):
                problem = "line is not the digest of what the line says"
            if problem is None and (wrong := _counts(line)):
                problem = wrong
        except ValueError as error:  # NaN and infinity, which no digest is taken over
            raise Refused("evidence-malformed", f"holds {error}", file=path, line=number) from error
        if problem is not None:
            raise Refused("evidence-contradicts", problem, file=path, line=number, subject=line.run_id)
        lines[line.run_id] = line
    return tuple(lines.values())


def _contradiction(line: Line) -> str | None:
    """What a line says otherwise than its entries."""
    if line.set is None or not line.entries:
        return "has neither entries nor the name of a run that has the same"
    ids = {entry.id for entry in line.entries}
    if len(ids) != len(line.entries):
        return "entries hold a query twice"
    parts = digested_parts(
        ((entry.id, entry.query) for entry in line.entries),
        ((entry.id, {document: grade for document, grade, _ in entry.judged}) for entry in line.entries),
    )
    for name, value in parts.items():
        if line.task.get(name) != value:
            return f"task.{name} is not the digest of the entries"
    try:
        cutoffs = cutoffs_of(line.task)
    except ValueError as error:
        return str(error)
    deepest, limit = cutoffs[-1], int(str(line.task["limit"]))
    if problem := metrics.headline_problem(line.headline, cutoffs, limit):
        return f"set.headline: {problem}"
    for entry in line.entries:
        ranks = [rank for _, _, rank in entry.judged if rank is not None]
        if len(set(ranks)) != len(ranks) or any(not 1 <= r <= limit for r in ranks):
            return f"entry {entry.id!r}: a rank cannot be"
        shown = deepest if entry.retrieved is None else entry.retrieved
        if shown > deepest or (shown < deepest and any(rank > shown for rank in ranks)):
            return f"entry {entry.id!r}: a rank is beyond what was retrieved"
        if entry.outcome != "scored" and ranks:
            return f"entry {entry.id!r} is {entry.outcome} and still holds ranks"
        if len({document for document, _, _ in entry.judged}) != len(entry.judged):
            return f"entry {entry.id!r} judges a document twice"
    if line.quality != quality_digest(line.task, line.system, line.entries):
        return "quality is not the digest of task, system and entries"
    if line.fingerprint != digest(producer_of(line.version, line.task, line.system)):
        return "fingerprint is not the digest of what produced it"
    return None


def _counts(line: Line) -> str | None:
    counts = Counter([entry.outcome for entry in line.entries])
    for outcome in get_args(Outcome):
        if getattr(line.health, outcome) != counts[outcome]:
            return (
                f"health.{outcome} is {getattr(line.health, outcome)}, and the entries give {counts[outcome]}"
            )
    return None
