"""Why a judged document stands where it stands: decided from a report, its run, and the corpus that was measured.

Who may find what is asked of the same functions as in measuring (`Plan.filter_for`, `Dataset.visible`). A corpus that
is not the one that was measured, by its digest, is never quoted: then the report alone is explained, with a note.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from eval_core.backend import Document
from eval_core.compare.models import Asked, Entry, of_report
from eval_core.config import OUTPUT, Workspace
from eval_core.errors import CouldNot, Fault, Faults, Misuse, did_you_mean
from eval_core.explain.choose import cut_of, headline_of, limit_of, lost, mean, missed, value_of
from eval_core.explain.models import (
    STATUS_OF,
    ExplainedQuery,
    Explanation,
    Hidden,
    JudgedDocument,
    Shown,
    Status,
    astray,
)
from eval_core.files import digest_file
from eval_core.measuring.plan import SCANNED_BYTES, Plan
from eval_core.measuring.run import SCORED, read_run
from eval_core.models import NAME
from eval_core.reconstruct.place import corpus_of
from eval_core.reports.keys import nested_differences, task_differences
from eval_core.reports.models import Judged, ReportRow
from eval_core.reports.report import Report
from eval_core.scoring import metrics
from eval_core.sets.corpus import CorpusFile, corpus_digest, document_digest
from eval_core.sets.dataset import Dataset, Query
from eval_core.sets.definition import Definition, read_definition
from eval_core.sets.drift import changed_documents
from eval_core.sets.timeline import Timeline, read_timeline, time_fault
from eval_core.sets.words import words

__all__ = [
    "ExplainedQuery",
    "Explanation",
    "JudgedDocument",
    "explain",
    "headline_of",
    "hidden",
    "lost",
    "missed",
]

#: Documents above, and words of a text's own, that are shown.
FEW, OWN = 3, 5

#: Characters of a text that is not shown whole; those before a shared word that lies further in than FAR.
EXCERPT, BEFORE, FAR = 400, 60, 120


@dataclass(frozen=True, slots=True)
class _Ranking:
    """What came back for a query, as far as it is known. `whole`: down to the limit."""

    ids: Sequence[str]
    scores: Sequence[float] | None
    whole: bool


def _rankings(
    report: Report, workspace: Workspace | None, notes: list[str]
) -> Callable[[ReportRow], _Ranking]:
    """A row's ranking: the run file's where it is of this very run, else the report's, which ends at a cut-off."""
    root = workspace.root if workspace else Path()
    path = root / OUTPUT / "runs" / f"{report.arm}.jsonl"
    records: dict[object, dict[str, Any]] = {}
    if re.fullmatch(NAME, report.arm) and path.is_file():
        try:
            header, lines = read_run(path)
        except (Misuse, CouldNot) as error:
            notes.append(f"no scores: {error}")
        else:
            if header.get("run_id") == report.run_id:
                records = {line["id"]: line for line in lines if isinstance(line.get("id"), str)}
    limit, depth = limit_of(report.task.parts), report.cutoffs[-1]

    def ranking(row: ReportRow) -> _Ranking:
        record = records.get(row.id, {})
        ids, scores = record.get("ids"), record.get("scores")
        # The run file is nothing that a report vouches for: it is taken where it goes on as the report begins.
        if not isinstance(ids, list) or tuple(ids[:depth]) != row.ids:
            return _Ranking(row.ids, None, len(row.ids) < depth or depth == limit)
        # A whole number beyond double precision is no score.
        given = scores if isinstance(scores, list) else []
        fits = [s for s in given if isinstance(s, float) or (isinstance(s, int) and abs(s) < 1 << 64)]
        whole = [float(s) for s in fits] if len(fits) == len(ids) else None
        return _Ranking([str(name) for name in ids], whole, True)

    return ranking


@dataclass(slots=True)
class _Corpus:
    """The corpus at hand. `documents` and `plan` are there only where it is the one that was measured."""

    state: Literal["same", "differs", "absent"] = "absent"
    ids: Collection[str] | None = None
    documents: dict[str, Document] = field(default_factory=dict)
    plan: Plan | None = None
    small: bool = True

    def knows(self, document: str) -> bool | None:
        return None if self.ids is None else document in self.ids


def _corpus(
    report: Report, workspace: Workspace | None, wanted: Collection[str], notes: list[str]
) -> _Corpus:
    """Find the corpus of a report's arm and read what is `wanted` of it."""
    arm = workspace.arms.get(report.arm) if workspace else None
    if workspace is None or arm is None:
        where = workspace.path if workspace else "eval.toml"
        notes.append(
            f"explained from the report alone, without texts: there is no arm {report.arm!r} in {where}; "
            "say --config FILE for the eval.toml that has it"
        )
        return _Corpus()
    folder = workspace.dataset_folder(arm)
    digests: dict[str, bytes] = {}
    documents: dict[str, Document] = {}
    faults: list[str] = []
    try:
        definition = read_definition(folder)
        path = corpus_of(folder, definition, workspace.root / OUTPUT)
        for _, document in CorpusFile(path).numbered(
            lambda line, told: faults.append(str(Fault(told, file=path, line=line)))
        ):
            digests[document.id] = document_digest(document)
            if document.id in wanted:
                documents[document.id] = document
        timeline = _timeline(report, folder, digests, notes)
    except (Misuse, CouldNot) as error:
        mend = f"; run  {error.details.mend}" if error.details.mend else ""
        notes.append(f"explained from the report alone, without texts: {error.message}{mend}")
        return _Corpus()
    now, then = corpus_digest(digests.items()), str(report.task.parts.get("corpus"))
    if faults or now != then:
        notes.append(
            f"CORPUS DIFFERS: {path} is not what was measured (sha256 {now[:12]}… now, {then[:12]}… then): "
            + (f"{faults[0]}; " if faults else "")
            + "explained from the report alone, without texts, filters, scopes and times; for all of it run  "
            f"eval-core measure {report.arm}"
        )
        return _Corpus("differs", digests.keys())
    dataset = Dataset(
        folder=folder,
        name=report.dataset.name,
        definition=definition or Definition(name="set"),
        split=str(report.task.parts.get("split")),
        queries=(),
        judgements={},
        corpus=CorpusFile(path),
        documents=len(digests),
        corpus_digest=now,
        ids=frozenset(digests),
        attributes={name: document.metadata for name, document in documents.items()},
        timeline=timeline,
        side_digests={},
        unscorable=frozenset(),
    )
    # The arm as it was measured: eval.toml may filter otherwise by now.
    filters = report.task.parts.get("filter")
    keys = tuple(str(key) for key in filters) if isinstance(filters, list) else ()
    made = Plan(
        name=report.arm,
        arm=arm.model_copy(update={"filter_from": keys}),
        root=workspace.root,
        dataset=dataset,
        queries=(),
        limit=limit_of(report.task.parts),
        cutoffs=report.cutoffs,
        recipe=str(report.task.parts.get("recipe")),
    )
    small = path.stat().st_size <= SCANNED_BYTES
    return _Corpus("same", dataset.ids, documents, made, small)


def _timeline(report: Report, folder: Path, ids: Collection[str], notes: list[str]) -> Timeline | None:
    """The set's timeline where it is the one that was measured."""
    path = folder / "timeline.jsonl"
    side = digest_file(path) if os.path.isfile(path) else "none"
    if side != report.task.parts.get("timeline"):
        notes.append(f"TIMELINE DIFFERS: {path} is not what was measured; times are not explained")
        return None
    return read_timeline(path, ids, lambda line, told: None) if side != "none" else None


def hidden(row: ReportRow, document: str, plan: Plan | None) -> tuple[Hidden, ...]:
    """Why the row's query may not find a document. Without the corpus, only what the query itself excludes is known."""
    found: list[Hidden] = []
    excluded = row.meta.get("exclude")
    if isinstance(excluded, list) and document in excluded:
        found.append(Hidden(by="exclude", key="exclude", asked=excluded, has=document))
    if plan is None or document not in plan.dataset.ids:
        return tuple(found)
    dataset = plan.dataset
    # One condition at a time: a query that asks nothing of time still sees only what is valid now.
    timeless, attributes = dataclasses.replace(dataset, timeline=None), dataset.attributes.get(document, {})
    scope, time = row.meta.get("scope"), row.meta.get("time")
    if not timeless.visible(document, Query(row.id, row.text, {"scope": scope}), None):
        found.append(Hidden(by="scope", key="scope", asked=scope, has=list(attributes.get("scopes", ()))))
    anything = Query(row.id, row.text)
    for key, value in (plan.filter_for(Query(row.id, row.text, row.meta)) or {}).items():
        if not timeless.visible(document, anything, {key: value}):
            found.append(Hidden(by="filter", key=key, asked=value, has=attributes.get(key)))
    timeline = dataset.timeline
    if timeline is not None and (time is None or time_fault(time, timeline.last) is None):
        asked = Query(row.id, row.text, {} if time is None else {"time": time})
        if not dataset.visible(document, asked, None):
            span = timeline.spans[document]
            found.append(Hidden(by="time", key="time", asked=time, has={"from": span.start, "to": span.end}))
    return tuple(found)


def _status(row: ReportRow, judged: Judged, cut: int, corpus: _Corpus, reasons: tuple[Hidden, ...]) -> Status:
    if judged.rank is not None:
        return "within" if judged.rank <= cut else "below"
    if row.outcome != SCORED:
        return "not-scored"
    if corpus.state == "same" and not corpus.knows(judged.id):
        return "absent"
    return STATUS_OF[reasons[0].by] if reasons else "not-retrieved"


def explain(
    report: Report,
    path: Path,
    *,
    queries: Sequence[str] = (),
    want_lost: bool = False,
    want_missed: bool = False,
    baseline: Entry | None = None,
    workspace: Workspace | None = None,
    full: bool = False,
) -> Explanation:
    """Explain queries of a report: those named, and those lost or missed where that is asked.

    Args:
        report: what was measured.
        path: where it was read from.
        queries: ids of the report's queries; they come first.
        want_lost: add the queries that the baseline, which must be given, scores better.
        want_missed: add the queries whose relevant documents are not within the cut-off.
        baseline: a report or a line of evidence, to compare with.
        workspace: where the arm, its corpus and its run are looked for.
        full: give whole texts, not excerpts.

    Raises:
        Misuse: a query that the report does not have.
    """
    by_id = {row.id: row for row in report.rows}
    if strange := [name for name in dict.fromkeys(queries) if name not in by_id]:
        raise Faults(
            Fault(f"there is no query {name!r}{did_you_mean(name, by_id)}", code="query-unknown", file=path)
            for name in strange
        )
    notes: list[str] = []
    side = of_report(str(path), report)
    headline = headline_of([side, *([baseline] if baseline else [])], notes)
    fell = lost(side, baseline, headline) if want_lost and baseline else None
    short = missed(side, headline) if want_missed else None
    rows = [by_id[name] for name in dict.fromkeys([*queries, *(fell or ()), *(short or ())])]
    silent = [row.id for row in report.rows if row.outcome in ("errored", "unscored")]
    if silent and want_missed:
        notes.append(f"not among the missed: {len(silent)} errored or unscored, such as {silent[0]!r}")
    ranking = _rankings(report, workspace, notes)
    wanted = {judged.id for row in rows for judged in row.judged}
    for row in rows:
        wanted.update(_others(row, ranking(row).ids)[:FEW])
    corpus = _corpus(report, workspace, wanted, notes)
    before = baseline.queries if baseline else {}
    notes += _changed(report, baseline, by_id) if baseline else []
    cut = cut_of(side, headline)
    holding = _holding(corpus, rows)
    explained = [
        _explained(
            row, side.queries[row.id], ranking(row), cut, headline, corpus, holding, before.get(row.id), full
        )
        for row in rows
    ]
    return Explanation(
        arm=report.arm,
        report=str(path),
        run_id=report.run_id,
        headline=str(headline),
        cutoff=cut,
        limit=limit_of(report.task.parts),
        n=report.n,
        mean=mean(side, headline),
        corpus=corpus.state,
        baseline=baseline.path if baseline else None,
        baseline_mean=mean(baseline, headline) if baseline else None,
        own_by=None if corpus.plan is None else "rarest" if corpus.small else "most-frequent",
        lost=tuple(fell) if fell is not None else None,
        missed=tuple(short) if short is not None else None,
        notes=tuple(notes),
        queries=tuple(explained),
    )


def _others(row: ReportRow, ids: Sequence[str]) -> list[str]:
    """The documents of a ranking that are not judged relevant, in its order."""
    relevant = {judged.id for judged in row.judged if judged.grade > 0}
    return [name for name in ids if name not in relevant]


def _changed(report: Report, baseline: Entry, rows: Mapping[str, ReportRow]) -> list[str]:
    """What, between a baseline and a report, is not the ranking alone."""
    notes = []
    task, system = (key.parts if key else {} for key in (baseline.task, baseline.system))
    if parts := [d.part for d in task_differences(report.task.parts, task)]:
        notes.append(f"the baseline was asked something else: {', '.join(parts)} differ")
    if "corpus" in parts and baseline.output:
        what = changed_documents(Path(baseline.output), task.get("corpus"), report.task.parts["corpus"])
        notes.append(f"the documents of the baseline and of the report: {what}")
    for d in nested_differences(system, report.system.parts):
        notes.append(f"system changed since the baseline: {d.part} {_json(d.ours)} → {_json(d.theirs)}")
    if gone := [name for name in baseline.queries if name not in rows]:
        named = ", ".join(repr(name) for name in gone[:FEW]) + (", …" if len(gone) > FEW else "")
        notes.append(f"{len(gone)} of the baseline's queries are not in the report: {named}")
    return notes


def _json(value: object) -> str:
    return "unset" if value is None else json.dumps(value, ensure_ascii=False)


def _explained(
    row: ReportRow,
    now: Asked,
    ranking: _Ranking,
    cut: int,
    headline: metrics.Measure,
    corpus: _Corpus,
    holding: Mapping[str, int],
    before: Asked | None,
    full: bool,
) -> ExplainedQuery:
    asked = tuple(dict.fromkeys(words(row.text)))
    places = {name: place for place, name in enumerate(ranking.ids)}
    then = {document: rank for document, _, rank in before.judged} if before else {}
    others = _others(row, ranking.ids)

    def shown(name: str, rank: int | None) -> dict[str, Any]:
        place, document = places.get(name), corpus.documents.get(name)
        score = ranking.scores[place] if ranking.scores is not None and place is not None else None
        told: dict[str, Any] = {"id": name, "rank": rank, "score": score}
        if document is not None:
            standing = set(words(document.searchable))
            # Stable, so that words that are as rare keep the query's order.
            shares = sorted((word for word in asked if word in standing), key=lambda word: holding[word])
            told |= {"shares": tuple(shares), "text": _excerpt(document.searchable, shares, full)}
        return told

    def above(rank: int | None) -> list[str]:
        return others if rank is None else [name for name in others if places[name] + 1 < rank]

    documents: list[JudgedDocument] = []
    # Relevant ones first, the best grade and the best rank leading.
    for judged in sorted(row.judged, key=lambda j: (-j.grade, j.rank or len(ranking.ids) + 1, j.id)):
        reasons = hidden(row, judged.id, corpus.plan)
        status = _status(row, judged, cut, corpus, reasons)
        over = above(judged.rank) if status in ("within", "below", "not-retrieved") else []
        if judged.rank is not None:
            ahead = sum(1 for j in row.judged if j.grade > 0 and j.rank is not None and j.rank < judged.rank)
            count: int | None = judged.rank - 1 - ahead
        else:
            count = len(over) if status == "not-retrieved" and ranking.whole else None
        documents.append(
            JudgedDocument(
                **shown(judged.id, judged.rank),
                grade=judged.grade,
                before=then.get(judged.id),
                status=status,
                hidden=reasons if judged.rank is None else (),
                in_corpus=corpus.knows(judged.id),
                outranked=count,
                outranked_by=tuple(over[:FEW]),
                own=_own(corpus.documents.get(judged.id), asked, holding) if judged.grade > 0 else (),
            )
        )
    value = value_of(now, headline)
    # Those in question that were outranked; one that is hidden or absent would not be found were it alone.
    low = [document for document in astray(tuple(documents), value) if document.outranked_by]
    over = max((above(document.rank) for document in low), key=len, default=[])
    return ExplainedQuery(
        id=row.id,
        text=row.text,
        meta=row.meta,
        outcome=row.outcome,
        detail=row.detail,
        value=value,
        before=value_of(before, headline) if before else None,
        words=asked,
        retrieved=len(ranking.ids) if ranking.whole and row.outcome == SCORED else None,
        judged=tuple(documents),
        above=tuple(Shown(**shown(name, places[name] + 1)) for name in over[:FEW]),
    )


def _holding(corpus: _Corpus, rows: Iterable[ReportRow]) -> Counter[str]:
    """How many documents hold each word of the queries and of their relevant documents.

    Of a corpus too large to be read for that, nothing: then every word is as rare as another.
    """
    holding: Counter[str] = Counter()
    if corpus.plan is None or not corpus.small:
        return holding
    vocabulary: set[str] = set()
    for row in rows:
        vocabulary.update(words(row.text))
        for judged in row.judged:
            if judged.grade > 0 and judged.id in corpus.documents:
                vocabulary.update(words(corpus.documents[judged.id].searchable))
    for document in corpus.plan.dataset.corpus:
        holding.update(vocabulary.intersection(words(document.searchable)))
    return holding


def _own(document: Document | None, asked: Sequence[str], holding: Mapping[str, int]) -> tuple[str, ...]:
    """The words that are a document's own and not the query's: the rarest first, of those the most repeated."""
    count = Counter(words(document.searchable)) if document else Counter[str]()
    telling = (word for word in count if word not in asked and len(word) > 1 and not word.isdigit())
    return tuple(sorted(telling, key=lambda word: (holding[word], -count[word], word))[:OWN])


def _excerpt(text: str, shares: Sequence[str], full: bool) -> str:
    """The text, or so much of it that the rarest word that it shares with the query is in sight."""
    if full:
        return text
    flat = " ".join(text.split())
    if len(flat) <= EXCERPT:
        return flat
    start = 0
    match = re.search(rf"\b{re.escape(shares[0])}\b", flat, re.IGNORECASE) if shares else None
    if match is not None and match.start() > FAR:
        start = flat.find(" ", match.start() - BEFORE) + 1
        start = start if start <= match.start() else match.start()
    head, tail = "…" if start else "", "…" if start + EXCERPT < len(flat) else ""
    return head + flat[start : start + EXCERPT] + tail
