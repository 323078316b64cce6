"""A set looked at as a whole: counts, extremes, samples, limits, and how far simple rankers get on it."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from eval_core.config import OUTPUT, Arm, Workspace
from eval_core.errors import Fault, Faults, Misuse
from eval_core.measuring.candidates import counter
from eval_core.measuring.loop import measure
from eval_core.measuring.plan import Plan, prepare
from eval_core.measuring.statements import by_chance
from eval_core.models import Closed
from eval_core.sets.limits import Limits, NearDuplicate
from eval_core.sets.scan import look
from eval_core.sets.words import words

#: Rankers that show how much room a set has, from nothing to the lexical reference.
RANKERS = ("random", "popularity", "overlap", "bm25")


class Extreme(Closed):
    """The longest or shortest of its kind."""

    what: str
    words: int
    id: str
    text: str


class Sample(Closed):
    """A query with what is judged relevant to it."""

    id: str
    text: str
    judged: tuple[str, ...]


class Ranker(Closed):
    """What a simple ranker scores, at the set's largest cut-off."""

    name: str
    n: int = Field(ge=0)
    rank_1: float = Field(description="Share of queries with a relevant document at rank 1.")
    recall: float
    mrr: float
    ndcg: float
    statements: tuple[str, ...] = Field(default=(), description="What its report says of itself.")


class Inspection(Closed):
    """What `eval-core inspect --format json` prints."""

    schema_: Literal["inspection-v1"] = Field(default="inspection-v1", alias="schema")
    name: str
    version: str
    kind: str
    split: str
    cutoffs: tuple[int, ...]
    documents: int
    queries: int
    judgements: int
    unscorable: int = Field(description="Queries without a positive judgement.")
    corpus: str = Field(description="The corpus digest.")
    kinds: dict[str, int] = Field(default={}, description="Documents by their metadata's kind.")
    extremes: tuple[Extreme, ...]
    samples: tuple[Sample, ...]
    statements: tuple[str, ...] = Field(default=(), description="What its reports say of the set.")
    limits: Limits
    near_duplicates: tuple[NearDuplicate, ...] = Field(
        default=(),
        description="Documents that nearly are a judged one and are not judged, the first of them.",
    )
    headroom: tuple[Ranker, ...] = ()


def inspect_set(
    folder: Path,
    split: str | None,
    overrides: Mapping[str, Path],
    *,
    headroom: bool,
    samples: int,
    config: Path,
) -> Inspection:
    """Look at a dataset folder; its corpus is rebuilt from its sources where it has any.

    Raises:
        Faults, Misuse: what is wrong with the set.
        CouldNot: a source is absent, or a ranker's backend is not installed.
    """
    if not folder.is_dir():
        raise Misuse("dataset-missing", "there is no such dataset folder", file=folder)
    names = RANKERS if headroom else RANKERS[:1]
    arms = {
        name: Arm(dataset=str(folder.absolute()), backend=name, split=split, repetitions=1) for name in names
    }
    workspace = Workspace(config.parent, config, arms)
    try:
        plans = prepare(workspace, arms, overrides)
    except Faults as error:
        # There is no eval.toml here: what it would be blamed for is the folder's or the split's.
        own = [
            Fault(fault.what, code=fault.code, file=folder) if fault.file == str(workspace.path) else fault
            for fault in error.faults
        ]
        raise Faults(dict.fromkeys(own), consequence="nothing was inspected") from error
    made = plans[0]
    dataset = made.dataset
    kinds: Counter[str] = Counter()
    longest = shortest = None
    for document in dataset.corpus:
        length = len(words(document.searchable))
        kinds[str(document.metadata.get("kind", "none"))] += 1
        if longest is None or length > longest[0]:
            longest = (length, document)
        if shortest is None or length < shortest[0]:
            shortest = (length, document)
    extremes = [
        Extreme(what=f"{word} document", words=found[0], id=found[1].id, text=found[1].searchable)
        for word, found in (("longest", longest), ("shortest", shortest))
        if found is not None
    ]
    by_length = sorted(made.queries, key=lambda query: (len(words(query.text)), query.id))
    extremes += [
        Extreme(what=f"{word} query", words=len(words(query.text)), id=query.id, text=query.text)
        for word, query in (("longest", by_length[-1]), ("shortest", by_length[0]))
    ]
    candidates = counter(made)
    limits, near = look(dataset.corpus, made.queries, dataset.judgements, made.visible)
    return Inspection(
        name=dataset.name,
        version=dataset.definition.version,
        kind=dataset.definition.kind,
        split=dataset.split,
        cutoffs=made.cutoffs,
        documents=dataset.documents,
        queries=len(made.queries),
        judgements=sum(map(len, dataset.judgements.values())),
        unscorable=len(dataset.unscorable),
        corpus=dataset.corpus_digest,
        kinds={} if set(kinds) == {"none"} else dict(sorted(kinds.items())),
        extremes=tuple(extremes),
        samples=_samples(made, samples),
        statements=(
            *dataset.definition.statements,
            *dataset.blanks(),
            *by_chance(made.limit, (candidates(q) for q in made.queries if q.id not in dataset.unscorable)),
        ),
        limits=limits,
        near_duplicates=near,
        headroom=_headroom(plans) if headroom else (),
    )


def _samples(made: Plan, count: int) -> tuple[Sample, ...]:
    """Evenly spread over the file, so that a second look shows the same."""
    queries = made.queries
    step = max(1, len(queries) // count) if count else len(queries) + 1
    return tuple(
        Sample(
            id=query.id,
            text=query.text,
            judged=tuple(
                sorted(n for n, grade in made.dataset.judgements.get(query.id, {}).items() if grade > 0)
            ),
        )
        for query in queries[::step][:count]
    )


def _headroom(plans: list[Plan]) -> tuple[Ranker, ...]:
    found = []
    with tempfile.TemporaryDirectory(prefix="eval-inspect-") as name:
        out = Path(name)
        for made in plans:
            report = measure(made, out / "runs", out / "reports", out / OUTPUT)
            values, depth = report.summary.overall.metrics, made.cutoffs[-1]
            first = sum(any(j.rank == 1 and j.grade > 0 for j in row.judged) for row in report.rows)
            found.append(
                Ranker(
                    name=made.name,
                    n=report.n,
                    rank_1=first / report.n if report.n else 0.0,
                    recall=values[f"recall@{depth}"],
                    mrr=values["mrr"],
                    ndcg=values[f"ndcg@{depth}"],
                    statements=report.statements,
                )
            )
    return tuple(found)
