"""The models that a report is made of: rows, counts, summary, and the fields of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import Field, JsonValue

from eval_core.models import Closed
from eval_core.reports.keys import Key
from eval_core.scoring import metrics


class Judged(Closed):
    """A judged document of a query: its grade, and its rank from 1 within the limit (null: not retrieved)."""

    id: str
    grade: int = Field(ge=0)
    rank: int | None = Field(ge=1)


class ReportRow(Closed):
    """One query: what was asked, what came back down to the largest cut-off, and how it scored."""

    id: str
    text: str
    meta: dict[str, JsonValue] = Field(description="The query's metadata with a meaning.")
    outcome: Literal["scored", "errored", "unscored", "unscorable"]
    ids: tuple[str, ...] = ()
    judged: tuple[Judged, ...] = ()
    metrics: dict[str, float] = Field(default={})
    candidates: int | None = Field(
        default=None, ge=0, description="Documents that the query may find; null: not counted."
    )
    stable: bool = True
    detail: str = ""

    @property
    def category(self) -> str:
        """The query's category; empty where it has none."""
        return str(self.meta.get("category", ""))


#: Answers whose equal scores were put into the order of the ids, among the counts of `Health`.
REORDERED: Final = "ties-reordered"


class Health(Closed):
    """The harness's own account, apart from quality. Zero counts are kept: they are the finding."""

    scored: int = Field(ge=0)
    errored: int = Field(ge=0)
    unscored: int = Field(ge=0)
    unscorable: int = Field(ge=0)
    duplicates: int = Field(ge=0, description="Repeated ids dropped from answers.")
    excess: int = Field(ge=0, description="Ids beyond what was asked for, cut.")
    restarts: int = Field(ge=0, description="Times that the backend had to be started again.")
    unstable: int = Field(ge=0, description="Queries that a repetition ranked otherwise: non-deterministic.")
    counts: dict[str, int] = Field(
        default={}, description="What else was counted, by code of docs/reasons.md."
    )

    @property
    def ok(self) -> bool:
        """Whether every query that can be scored was."""
        return self.errored == 0 and self.unscored == 0 and self.scored > 0


class Environment(Closed):
    """Where and when the run was made. `process` and `host` are null in a committed copy."""

    version: str
    started: str = Field(description="UTC, ISO 8601.")
    commit: str | None
    dirty: bool | None = Field(description="Whether the work tree had uncommitted changes; null without git.")
    changed: tuple[str, ...] = Field(
        default=(), max_length=4, strict=False, description="The first files that were uncommitted."
    )
    class_: str = Field(alias="class", description="ci, local, or EVAL_ENV_CLASS.")
    ci_run: str | None = None
    process: int | None = None
    host: str | None = None
    python: str
    platform: str


#: Samples that bound a 95th percentile: with fewer, the slowest of them says nothing of it (1 - 0.95^59 > 0.95).
LATENCY_SAMPLES: Final = 59


class Latency(Closed):
    """Milliseconds a query, timed at the client from request to answer, over all repetitions; nearest rank."""

    p50: float = Field(ge=0)
    p95: float = Field(ge=0)
    max: float = Field(ge=0)
    samples: int = Field(ge=1)


class Ingest(Closed):
    """How long indexing took."""

    documents: int = Field(ge=0)
    seconds: float = Field(ge=0)


class Slice(Closed):
    """Means over the scored queries of a slice, and how far off they may be for other queries of the kind.

    Readers do not recompute the intervals, for which a gate's start-up has no time: `digests.run` covers them, and
    `eval-core validate` recomputes them.
    """

    n: int = Field(ge=0)
    metrics: dict[str, float]
    intervals: dict[str, tuple[float, float]] = Field(
        default={},
        description="95% intervals of the means: Wilson's for measures of 0s and 1s, else bootstrapped over "
        "queries. None in a category of fewer than five queries.",
    )


class Summary(Closed):
    """The whole set, and each category."""

    overall: Slice
    categories: dict[str, Slice] = Field(default={})


class SetFacts(Closed):
    """Which set it was."""

    name: str
    version: str
    documents: int = Field(ge=0)
    queries: int = Field(ge=0)
    headline: str
    moves: bool = Field(
        default=False, description="Whether a source of the corpus moves: a branch, a folder."
    )


class Digests(Closed):
    """`rankings` covers id, outcome, ids and judgements of each row; `quality` the two keys and what decides the score
    of each row (`eval_core.reports.entries`); `run` what else was observed, timing, process and host apart."""

    rankings: str
    quality: str
    run: str


class ReportFields(Closed):
    """All that a report holds, not yet checked against its rows."""

    schema_: Literal["report-v1"] = Field(alias="schema")
    arm: str
    run_id: str = Field(min_length=1, description="Fresh at measuring; re-scoring copies it.")
    task: Key
    system: Key
    dataset: SetFacts
    environment: Environment
    index: Literal["built", "cached"]
    resumed: bool = False
    repetitions: int = Field(ge=0)
    health: Health
    summary: Summary
    latency: Latency | None = None
    ingest: Ingest | None = None
    # Tables here and models in eval_core.sets.limits: the gate never reads them, and its start-up is a feature.
    limits: dict[str, JsonValue] | None = Field(
        default=None, description="What the set's numbers cannot show (limits-v1); null: not measured."
    )
    saturation: dict[str, JsonValue] | None = Field(
        default=None, description="The room that the arm leaves to a better one (saturation-v1)."
    )
    statements: tuple[str, ...] = ()
    digests: Digests
    rows: tuple[ReportRow, ...]

    @property
    def cutoffs(self) -> tuple[int, ...]:
        """The k of its measures, rising."""
        return cutoffs_of(self.task.parts)

    @property
    def measures(self) -> list[str]:
        """The measures that its rows and summary hold."""
        return metrics.names(self.cutoffs, self.dataset.headline)

    @property
    def n(self) -> int:
        """How many queries were scored."""
        return self.summary.overall.n


def cutoffs_of(task: Mapping[str, JsonValue]) -> tuple[int, ...]:
    """The cut-offs among the parts of a task key.

    Raises:
        ValueError: they are no rising list of whole numbers of at least 1 within the limit.
    """
    cutoffs, limit = task.get("cutoffs"), task.get("limit")
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise ValueError(f"task.parts.limit {limit!r} should be a whole number of at least 1")
    whole = isinstance(cutoffs, list) and all(isinstance(k, int) and not isinstance(k, bool) for k in cutoffs)
    if not isinstance(cutoffs, list) or not cutoffs or not whole:
        raise ValueError(f"task.parts.cutoffs {cutoffs!r} should be a list of whole numbers")
    found: list[int] = [k for k in cutoffs if isinstance(k, int)]
    if found != sorted(set(found)) or found[0] < 1 or found[-1] > limit:
        raise ValueError(
            f"task.parts.cutoffs {cutoffs!r} should rise from 1 at least to the limit {limit} at most"
        )
    return tuple(found)
