"""Rankings and judgements that all scorers are asked about, and how each is asked."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval_backends.bm25 import BM25
from eval_core.backend import Request
from eval_core.scoring.metrics import parse
from eval_core.scoring.score import Scores, evaluate, score_files
from eval_core.sets.dataset import load

Run = dict[str, dict[str, float]]
Qrels = dict[str, dict[str, int]]
Values = dict[str, dict[str, float]]


def letter(number: int) -> str:
    """A document id of one character: ranx compiles itself anew, for a quarter of a minute, for each length of id."""
    return chr(ord("一") + number)


def generated(seed: int, queries: int = 60) -> tuple[Run, Qrels]:
    """Rankings of 1 to 40 documents without ties, grades 0 to 4; every query has a relevant document and an answer.

    Scores are multiples of an eighth, which single precision holds exactly.
    """
    chance = random.Random(seed)
    run: Run = {}
    qrels: Qrels = {}
    for number in range(queries):
        documents = [letter(n) for n in chance.sample(range(80), chance.randint(1, 40))]
        scores = sorted(chance.sample(range(1, 4000), len(documents)), reverse=True)
        run[f"q{number:03}"] = {d: s / 8 - 100 for d, s in zip(documents, scores, strict=True)}
        judged = chance.sample(range(80), chance.randint(1, 20))
        grades = {letter(n): chance.choice((0, 1, 1, 2, 3, 4)) for n in judged}
        qrels[f"q{number:03}"] = grades | {letter(judged[0]): chance.choice((1, 2))}
    return run, qrels


def ranked_by_bm25(folder: Path, depth: int) -> tuple[Run, Qrels]:
    """The judged queries of a BEIR folder that BM25 has an answer to; score is the negative rank.

    Documents are renamed: without ties a name decides nothing.
    """
    loaded = load(folder)
    backend = BM25()
    backend.index(loaded.corpus)
    names: dict[str, str] = {}

    def renamed(document: str) -> str:
        return names.setdefault(document, letter(len(names)))

    run: Run = {}
    for query in loaded.queries:
        if query.id in loaded.judgements and (ids := backend.search(Request(query.text, depth)).ids):
            run[query.id] = {renamed(document): float(-rank) for rank, document in enumerate(ids, 1)}
    backend.close()
    judged = loaded.judgements
    return run, {query: {renamed(d): grade for d, grade in judged[query].items()} for query in run}


def scored(run: Run, qrels: Qrels, *measures: str) -> Scores:
    """Our scores of a run that is in memory."""
    return evaluate(run, qrels, [parse(name) for name in measures])


def scored_files(run: Path, qrels: Path) -> Scores:
    """Our reciprocal ranks of a run and judgements that are files."""
    return score_files(run, qrels, [parse("mrr")])


def ours(run: Run, qrels: Qrels, *measures: str) -> Values:
    """Our value of each measure for each query."""
    scores = scored(run, qrels, *measures)
    return {
        query: dict(zip(measures, row.values, strict=True)) for query, row in sorted(scores.queries.items())
    }


def of_ranx(ranx: Any, run: Run, qrels: Qrels, measures: Sequence[str]) -> Values:
    """ranx's, with its own Run and Qrels, which pair by query id."""
    answered = ranx.Run(run)
    ranx.evaluate(ranx.Qrels(qrels), answered, list(measures))
    return {query: {m: float(answered.scores[m][query]) for m in measures} for query in sorted(run)}


def of_ir_measures(irm: Any, run: Run, qrels: Qrels, measures: Mapping[str, Any]) -> Values:
    """ir_measures's values under our names, a call for each gain.

    In one call its 0.4.3 puts a plain nDCG into whichever group of measures comes first, and so under the gains of
    another where that does: by the order of a set of texts, in some processes and not in others.
    """
    ours = {measure: name for name, measure in measures.items()}
    found: Values = {}
    for gains in (False, True):
        asked = [measure for name, measure in measures.items() if ("gain" in name) is gains]
        for metric in irm.iter_calc(asked, qrels, run) if asked else ():
            found.setdefault(metric.query_id, {})[ours[metric.measure]] = float(metric.value)
    return dict(sorted(found.items()))
