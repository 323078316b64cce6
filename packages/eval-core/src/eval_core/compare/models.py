"""The values of a comparison: entries that go in, whether they answered one task, and the model that comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel, Field, JsonValue, ValidationError

from eval_core.console import clip
from eval_core.errors import Misuse
from eval_core.models import Closed
from eval_core.policy.eligibility import band
from eval_core.policy.evidence import Line
from eval_core.reports.keys import Key, query_digest
from eval_core.reports.models import Environment, cutoffs_of
from eval_core.reports.report import Report

if TYPE_CHECKING:
    from eval_core.scoring.score import Scores

_Model = TypeVar("_Model", bound=BaseModel)

#: A query's outcome on one side; `absent`: that side was not asked it.
Outcome = Literal["scored", "errored", "unscored", "unscorable", "absent"]

Move = Literal["lost", "gained", "moved"]

#: What a difference amounts to, at 5% after Holm's correction. `unclear`: it can be chance; `unresolvable`: so small
#: that no pattern of wholly lost queries of that size could be told from chance; `none`: rows failed, so it is no
#: finding whatever the figures are.
Finding = Literal["same", "lower", "higher", "unclear", "unresolvable", "none"]


class Side(Closed):
    """One report, one line of evidence, or one run scored against the judgements."""

    label: str = Field(description="The arm's name, or the path where two have one name.")
    path: str
    kind: Literal["report", "evidence", "run"]
    arm: str
    set: str = ""
    run_id: str | None = None
    outcomes: dict[str, int] = Field(description="Queries by outcome.")


class Changed(Closed):
    """A part that differs, with its values; null where a side does not have it."""

    part: str
    before: JsonValue
    after: JsonValue
    detail: str = Field(default="", description="The same in words, where values alone say little.")


class Effect(Closed):
    """One measure over the joined queries. All values and differences are in [-1, 1]; difference is after - before."""

    measure: str
    n: int = Field(ge=1)
    before: float
    after: float
    difference: float
    low: float = Field(description="The 95% interval of the difference, by a paired bootstrap.")
    high: float
    test: str = Field(description="mcnemar-midp for measures of 0 or 1, sign-flip for others; two-sided.")
    p: float
    p_holm: float = Field(description="Adjusted by Holm over all arms and measures of this comparison.")
    lost: int = Field(ge=0, description="Queries whose value fell.")
    gained: int = Field(ge=0)
    unchanged: int = Field(ge=0)
    finding: Finding


class Resolves(Closed):
    """The smallest change that n queries can show."""

    n: int
    queries: int = Field(
        description="Fewest queries, wholly lost and none gained, that are significant at 5%."
    )
    points: float = Field(description="The same as a difference in points of 100.")
    possible: bool = Field(description="Whether there are so many queries at all.")
    detectable: float | None = Field(description="Net loss in points that is found 4 times in 5; null: none.")


class Document(Closed):
    """A judged document of a query: its ranks, null where it was not retrieved."""

    id: str
    grade: int
    before: int | None
    after: int | None


class Moved(Closed):
    """A query whose value of the headline measure changed, or whose judged documents moved without changing it."""

    query: str
    text: str
    category: str
    change: Move
    before: float
    after: float
    difference: float
    documents: tuple[Document, ...] = Field(description="That moved, the one that tells most first.")
    above: int = Field(
        default=0, description="Answers above the first of them now, down to the headline's cut-off."
    )
    unjudged: int = Field(default=0, description="Those of them that nobody judged: a loss may be none.")


class CategoryChange(Closed):
    """The headline measure in one category."""

    category: str
    n: int
    before: float
    after: float
    difference: float
    lost: int
    gained: int
    moved: int


class Unjoined(Closed):
    """Queries that were not scored in both, by what became of them; they are in no figure."""

    before: Outcome
    after: Outcome
    queries: tuple[str, ...]


class Versus(Closed):
    """One arm held against the first."""

    side: Side
    n: int = Field(ge=1, description="Queries scored in both.")
    finding: Finding = Field(description="Of the headline measure.")
    identical: bool = Field(
        description="Whether every judged document of every joined query has the same rank."
    )
    same_run: bool = Field(description="Whether both are of one run.")
    effects: tuple[Effect, ...] = Field(description="The headline measure first.")
    resolves: Resolves
    system: tuple[Changed, ...] | None = Field(
        description="What differs in the system; empty: nothing; null: unknown, for runs of other tools."
    )
    unjoined: tuple[Unjoined, ...]
    categories: tuple[CategoryChange, ...]
    queries: tuple[Moved, ...] = Field(
        description="Lost, the worst drop first, then gained, then moved; all of them."
    )
    notes: tuple[str, ...]


class Refusal(Closed):
    """Why nothing was compared."""

    reason: str
    message: str
    differences: tuple[Changed, ...] = Field(default=(), description="Parts of the task that differ.")


class Comparison(Closed):
    """The whole comparison; one that was refused holds `refused` and nothing else."""

    schema_: Literal["comparison-v1"] = Field(default="comparison-v1", alias="schema")
    headline: str | None = None
    before: Side | None = None
    arms: tuple[Versus, ...] = ()
    statements: tuple[str, ...] = Field(default=(), description="What the reports say of themselves.")
    refused: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """One query on one side.

    `judged` holds (document, grade, rank), the rank None where it was not retrieved. `digest` is of text and meaning,
    where the side holds that in place of the text.
    """

    outcome: Outcome
    judged: tuple[tuple[str, int, int | None], ...] = ()
    retrieved: int = 0
    text: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""

    @property
    def meaning(self) -> str:
        """What tells this query from one of another text or meaning."""
        return self.digest or query_digest(self.text, self.meta)

    @property
    def grades(self) -> dict[str, int]:
        """The judgements alone."""
        return {document: grade for document, grade, _ in self.judged}


@dataclass(frozen=True, slots=True)
class Entry:
    """A report, a line of evidence, or a run scored against judgements, as comparing sees it.

    `limit` is the deepest rank that was asked for and `shown` the deepest whose ids are known; None: no such bound.
    `class_` and `tool` are the class of environment and the version of eval-core. `task` and `system` are None where a
    file does not say them. `drift` is the share by which floors let the corpus drift, None where it is pinned; `output`
    is the `.eval` that knows its documents.
    """

    path: str
    kind: Literal["report", "evidence", "run"]
    arm: str
    queries: Mapping[str, Asked]
    set: str = ""
    version: str = ""
    run_id: str | None = None
    task: Key | None = None
    system: Key | None = None
    limit: int | None = None
    shown: int | None = None
    cutoffs: tuple[int, ...] = ()
    headline: str | None = None
    documents: int | None = None
    class_: str | None = None
    tool: str | None = None
    statements: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    drift: float | None = None
    output: str = ""

    def drifts_to(self, other: Entry) -> bool:
        """Whether the two are of one corpus that may drift, by so many documents at most, as the gate takes it."""
        share = self.drift if self.drift is not None else other.drift
        if share is None or self.documents is None or other.documents is None:
            return False
        low, high = band(self.documents, share)
        return low <= other.documents <= high


def of_report(path: str, report: Report) -> Entry:
    """A report as an entry."""
    limit = report.task.parts["limit"]
    return Entry(
        path=path,
        kind="report",
        arm=report.arm,
        set=report.dataset.name,
        version=report.dataset.version,
        run_id=report.run_id,
        task=report.task,
        system=report.system,
        queries={
            row.id: Asked(
                row.outcome,
                tuple([(judged.id, judged.grade, judged.rank) for judged in row.judged]),
                len(row.ids),
                row.text,
                row.meta,
            )
            for row in report.rows
        },
        limit=limit if isinstance(limit, int) else None,
        shown=report.cutoffs[-1],
        cutoffs=report.cutoffs,
        headline=report.dataset.headline,
        documents=report.dataset.documents,
        class_=report.environment.class_,
        tool=report.environment.version,
        statements=report.statements,
        notes=_notes(report.environment.dirty is True, report.index, report.health.unstable),
    )


def of_line(path: str, arm: str, line: Line) -> Entry:
    """A line of evidence as an entry. It holds no texts: another side's are shown, or ids alone."""
    limit = line.task["limit"]
    deepest = line.cutoffs[-1]
    return Entry(
        path=path,
        kind="evidence",
        arm=arm,
        set=line.set.name if line.set else "",
        version=line.set.version if line.set else "",
        run_id=line.run_id,
        task=Key.of(line.task),
        system=Key.of(line.system),
        queries={
            entry.id: Asked(
                entry.outcome,
                entry.judged,
                0 if entry.outcome != "scored" else deepest if entry.retrieved is None else entry.retrieved,
                meta={"category": entry.category} if entry.category else {},
                digest=entry.query,
            )
            for entry in line.entries
        },
        limit=limit if isinstance(limit, int) else None,
        shown=deepest,
        cutoffs=line.cutoffs,
        headline=line.headline,
        documents=line.documents,
        class_=line.class_,
        tool=line.version,
        statements=line.statements,
        notes=_notes(line.clean is False, line.index, line.health.unstable),
    )


def _notes(dirty: bool, index: str, unstable: int) -> tuple[str, ...]:
    notes = ["was measured from a work tree with uncommitted changes"] if dirty else []
    if index == "cached":
        notes.append("was measured on an index taken from a cache")
    if unstable:
        notes.append(f"is non-deterministic: queries that a repetition ranked otherwise: {unstable}")
    return tuple(notes)


def of_run(path: str, scores: Scores, header: Mapping[str, Any], outcomes: Mapping[str, str]) -> Entry:
    """A run that was scored, as an entry.

    Args:
        path: the file's.
        scores: what it scored.
        header: the first line of one of our own runs; empty for those of other tools.
        outcomes: by query, of the rows that `scores` left out. One that is not there was not asked.

    Raises:
        Misuse: the header does not hold what a run of ours says of itself.
    """
    from pathlib import PurePath

    task = system = environment = limit = None
    cutoffs: tuple[int, ...] = ()
    if header:
        try:
            task, system, environment = _said(header)
            limit, cutoffs = task.parts["limit"], cutoffs_of(task.parts)
        except (KeyError, ValueError, RecursionError) as error:
            told = f"has no {error}" if isinstance(error, KeyError) else error
            what = f"is not a sound header of a run: {told}; measure again"
            raise Misuse("run-malformed", what, file=path, line=1) from error
    queries = {name: Asked("scored", found.judged, found.retrieved) for name, found in scores.queries.items()}
    known: Mapping[str, Outcome] = {"errored": "errored", "unscored": "unscored", "unscorable": "unscorable"}
    queries |= {name: Asked(known[outcomes[name]]) for name in scores.left_out if name in outcomes}
    queries |= {name: Asked("unscorable") for name in scores.unscorable}
    counts = (
        (len(scores.missing), "judged queries that are not in the run and count 0, as in trec_eval -c"),
        (scores.unjudged, "queries of the run without a judgement, which are ignored"),
        (scores.duplicates, "documents that came again in an answer, which are dropped"),
        (len(scores.tied), "queries with a judged document in a tie, which document ids decide"),
    )
    return Entry(
        path=path,
        kind="run",
        arm=str(header.get("arm") or PurePath(path).name.partition(".")[0] or path),
        run_id=header.get("run_id"),
        task=task,
        system=system,
        queries=queries,
        limit=limit if isinstance(limit, int) else None,
        cutoffs=cutoffs,
        class_=environment.class_ if environment else None,
        tool=environment.version if environment else None,
        notes=(
            *(
                ["was measured from a work tree with uncommitted changes"]
                if environment and environment.dirty
                else []
            ),
            *(f"has {what}: {number:,}" for number, what in counts if number),
            *filter(None, [scores.advice()]),
        ),
    )


def _said(header: Mapping[str, Any]) -> tuple[Key, Key, Environment]:
    """What the first line of a run of ours says of itself: task, system, environment.

    Raises:
        KeyError: one of them is not there.
        ValueError: one has not its shape, in words.
        RecursionError: one is nested too deeply to be read.
    """
    for name in ("run_id", "arm"):
        if not isinstance(header.get(name), str | None):
            raise ValueError(f"{name} = {clip(repr(header[name]), 60)}: should be a text")
    return (
        _of(Key, header, "task"),
        _of(Key, header, "system"),
        _of(Environment, header, "environment"),
    )


def _of(model: type[_Model], header: Mapping[str, Any], name: str) -> _Model:
    try:
        return model.model_validate(header[name])
    except ValidationError as error:
        from eval_core.faults import first_fault

        raise ValueError(f"{name}: {first_fault(error, model)}") from error
