"""The comparison JSON of the retrieval contract. Its figures follow from its rows, and are recomputed when read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, JsonValue, model_validator

from eval_core.models import Closed
from eval_core.reconstruct.lock import Skipped
from eval_core.scoring import metrics

Paths = tuple[str, ...]
Reason = Literal["comparison-vacuous", "queries-errored"]


class SearchResult(Closed):
    """One query put to one backend. Paths have slashes and are relative to the search root."""

    id: str
    backend: str
    query: str
    intent: str = ""
    ground_truth: Paths = Field(min_length=1)
    missing_ground_truth: Paths = Field(default=(), description="No file stands there: counted as a miss.")
    unsearched_ground_truth: Paths = Field(
        default=(), description="A file stands there and is not in the corpus: no backend can return it."
    )
    result_paths: Paths = Field(description="In rank order, at most k.")
    hit_paths: Paths = Field(description="The result paths that are ground truth.")
    any_relevant: bool
    precision_at_k: float = Field(ge=0, le=1, description="Hits / min(|ground truth|, k), not / k.")
    first_relevant_rank: int | None = Field(default=None, ge=1, description="From 1; left out on a miss.")
    reciprocal_rank: float = Field(ge=0, le=1, description="1 / first_relevant_rank, 0 on a miss.")


class Unanswered(Closed):
    """A query that a backend did not answer soundly: in no mean, and never a zero."""

    id: str
    query: str
    outcome: Literal["errored", "unscored"] = Field(description="unscored: not asked, the backend is gone.")
    message: str
    missing_ground_truth: Paths = ()


class Account(Closed):
    """How the asking went, apart from quality."""

    scored: int = Field(default=0, ge=0)
    errored: int = Field(default=0, ge=0)
    unscored: int = Field(default=0, ge=0)
    duplicates: int = Field(default=0, ge=0, description="Repeated ids dropped from answers.")
    excess: int = Field(default=0, ge=0, description="Ids beyond k, cut.")
    restarts: int = Field(default=0, ge=0, description="Times that the backend had to be started again.")


class BackendReport(Closed):
    """One backend over all queries. Means are over the scored ones, 0 where there is none: see `health`."""

    id: str = Field(description="The manifest's.")
    backend: str
    manifest_path: str
    search_root: str
    queries: int = Field(ge=0, description="Of the manifest.")
    k: int = Field(ge=1)
    hits: int = Field(ge=0, description="Queries with a ground-truth path in the top k.")
    missing_ground_truth: int = Field(ge=0, description="Summed over the queries: repeats count.")
    any_relevant_at_k: float = Field(ge=0, le=1, description="Hits / scored queries.")
    avg_precision_at_k: float = Field(ge=0, le=1, description="Mean of precision_at_k.")
    mean_reciprocal_rank: float = Field(ge=0, le=1)
    results: tuple[SearchResult, ...]
    errors: tuple[Unanswered, ...] = ()
    health: Account
    implementation: dict[str, JsonValue] = Field(default={}, description="What the backend says it is.")
    system: dict[str, JsonValue] | None = Field(
        default=None, description="Of an arm of eval.toml: the parts of its system key, as in a report."
    )

    @property
    def rows(self) -> tuple[SearchResult | Unanswered, ...]:
        """What became of each query, those without a sound answer last."""
        return (*self.results, *self.errors)

    @model_validator(mode="after")
    def _figures_are_of_the_rows(self) -> BackendReport:
        for row in self.results:
            sound = len(set(row.result_paths)) == len(row.result_paths) <= self.k
            wanted = {"backend": self.backend, **derived(row.ground_truth, row.result_paths, self.k)}
            if not sound or any(getattr(row, name) != value for name, value in wanted.items()):
                raise ValueError(
                    f"{self.backend}: the figures of query {row.id!r} are not those of its paths"
                )
        if any(getattr(self, n) != value for n, value in figures(self.results, self.errors).items()):
            raise ValueError(f"{self.backend}: the figures are not those of the results")
        outcomes = [row.outcome for row in self.errors]
        counts = (len(self.results), outcomes.count("errored"), outcomes.count("unscored"))
        health = self.health
        if counts != (health.scored, health.errored, health.unscored) or sum(counts) != self.queries:
            raise ValueError(f"{self.backend}: the counts are not those of the results")
        return self


class ManifestFacts(Closed):
    """Which manifest it was."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    form: Literal["search-eval", "legacy"]
    skipped: int = Field(ge=0, description="Entries of a legacy array without a relevant path, left out.")
    unread: dict[str, int] = Field(default={}, description="Keys that mean nothing here.")


class CorpusFacts(Closed):
    """What was searched: the text files below the root, without the manifest."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="The corpus digest.")
    documents: int = Field(ge=1)
    bytes: int = Field(ge=0)
    skipped: Skipped
    unnamable: int = Field(default=0, ge=0, description="Files whose name is not UTF-8, left out.")


class Comparison(Closed):
    """What `as_json` prints. Of one backend it has that backend's fields at the top too, as the single-backend form
    has them."""

    schema_: Literal["retrieval-comparison-v1"] = Field(default="retrieval-comparison-v1", alias="schema")
    id: str
    manifest_path: str = Field(description="Where it was read: from the working folder, or absolute.")
    search_root: str = Field(description="As it was given.")
    queries: int = Field(ge=0)
    k: int = Field(ge=1)
    backends: tuple[BackendReport, ...] = Field(min_length=1)
    backend: str | None = Field(default=None, description="This and the next six: of one backend only.")
    hits: int | None = None
    missing_ground_truth: int | None = None
    any_relevant_at_k: float | None = None
    avg_precision_at_k: float | None = None
    mean_reciprocal_rank: float | None = None
    results: tuple[SearchResult, ...] | None = None
    manifest: ManifestFacts
    corpus: CorpusFacts
    health: Account = Field(description="Summed over the backends.")
    notes: tuple[str, ...] = ()
    exit_code: Literal[0, 1, 3] = Field(description="The script's. 1: no evidence; 3: queries errored.")
    reason: Reason | None = None
    why: str | None = Field(default=None, description="The reason in words.")

    @model_validator(mode="after")
    def _one_task_and_one_verdict(self) -> Comparison:
        asked = _asked(self.backends[0])
        for report in self.backends:
            if _asked(report) != asked or any(getattr(report, n) != getattr(self, n) for n in _COMMON):
                raise ValueError(f"{report.backend}: was asked something else than the comparison says")
        if len({report.backend for report in self.backends}) != len(self.backends):
            raise ValueError("a backend stands twice")
        only = alone(self.backends)
        if any(getattr(self, name) != only.get(name) for name in _SINGLE):
            raise ValueError("the fields of a single backend are not those of the only one")
        if self.health != summed(self.backends):
            raise ValueError("health is not the sum of the backends'")
        if (self.exit_code, self.reason, self.why) != verdict(self.backends, self.manifest.skipped):
            raise ValueError("exit_code, reason and why are not those of the backends")
        return self


_COMMON = ("id", "manifest_path", "search_root", "queries", "k")
_SINGLE = (
    *("backend", "hits", "missing_ground_truth", "any_relevant_at_k", "avg_precision_at_k"),
    *("mean_reciprocal_rank", "results"),
)


def measures(k: int) -> tuple[str, str, str]:
    """What is called any relevant, precision and reciprocal rank here, as measures of a report."""
    return f"hit@{k}", f"recall_cap@{k}", "mrr"


def derived(truth: Sequence[str], paths: Sequence[str], k: int) -> dict[str, Any]:
    """What follows from the ranked paths of one query.

    precision_at_k is hits / min(|ground truth|, k), not hits / k: one relevant file, found, is 1 and not 1 / k.
    reciprocal_rank is 1 / the rank of the first relevant path of the top k, else 0.
    """
    ranks = metrics.judged_ranks(paths, dict.fromkeys(truth, 1))
    scored = metrics.score([(1, ranks.get(path)) for path in truth], measures(k))
    hit, precision, reciprocal = scored.values()
    return {
        "hit_paths": tuple(ranks),
        "any_relevant": hit == 1,
        "precision_at_k": precision,
        "first_relevant_rank": min(ranks.values(), default=None),
        "reciprocal_rank": reciprocal,
    }


def figures(results: Sequence[SearchResult], errors: Sequence[Unanswered]) -> dict[str, Any]:
    """The figures of one backend: means over its results, 0 where there is none."""
    hits = sum(1 for row in results if row.any_relevant)
    return {
        "hits": hits,
        "missing_ground_truth": sum(len(row.missing_ground_truth) for row in results)
        + sum(len(row.missing_ground_truth) for row in errors),
        "any_relevant_at_k": hits / len(results) if results else 0.0,
        "avg_precision_at_k": metrics.mean([row.precision_at_k for row in results]),
        "mean_reciprocal_rank": metrics.mean([row.reciprocal_rank for row in results]),
    }


def verdict(
    reports: Sequence[BackendReport], skipped: int = 0
) -> tuple[Literal[0, 1, 3], Reason | None, str | None]:
    """Exit code, reason and the reason in words: 3 where a query errored, 1 where nothing was shown, else 0."""
    bad = [f"{r.backend}: {len(r.errors)} of {r.queries}" for r in reports if r.errors]
    if bad:
        return 3, "queries-errored", f"queries without a sound answer ({'; '.join(bad)})"
    first = reports[0]
    if not first.queries:
        left = f" ({skipped} without ground truth left out)" if skipped else ""
        return 1, "comparison-vacuous", f"no query ran: the manifest holds none{left}"
    if any(report.hits for report in reports):
        return 0, None, None
    why = f"every backend scores zero; queries: {first.queries}"
    if first.missing_ground_truth:
        total = sum(len(row.ground_truth) for row in first.results)
        why += f"; {first.missing_ground_truth} of {total} ground-truth paths do not exist"
    return 1, "comparison-vacuous", why


def _asked(report: BackendReport) -> list[tuple[str, str, Paths]]:
    """What every backend was asked alike."""
    return sorted((row.id, row.query, row.missing_ground_truth) for row in report.rows)


def alone(reports: Sequence[BackendReport]) -> dict[str, Any]:
    """What one backend alone says at the top, too, as the single form has it; nothing of several."""
    return {name: getattr(reports[0], name) for name in _SINGLE} if len(reports) == 1 else {}


def summed(reports: Sequence[BackendReport]) -> Account:
    """The accounts of all backends together."""
    return Account(**{name: sum(getattr(r.health, name) for r in reports) for name in Account.model_fields})
