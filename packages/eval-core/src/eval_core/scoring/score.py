"""The one scoring engine: a run and its judgements in, a value a query and measure out.

What is defined here, for files and for loaded data alike:

- Ids are opaque texts, compared as UTF-8 bytes: `1`, `01` and `1.0` are three ids, and so are the composed and the
  decomposed form of a letter. A whole number as an id in JSON is its decimal text.
- Scores order a TREC run; its rank column and the order of its lines do not matter, but queries whose rank column says
  otherwise are listed, and those with a judged document in a tie. In a ranked list the order decides, and lists whose
  scores rise are listed. Scores are compared in double
  precision: trec_eval keeps single precision, and so ties 16777216 with 16777217; that is not copied. Equal scores are
  ordered by document id, descending (`ties="trec"`, as trec_eval does) or ascending (`ties="id"`). One order of the
  documents feeds all measures. NaN is an error. Ranked lists have no scores: their order is the ranking.
- A document twice in one ranking: the better-ranked occurrence stands, and the dropped ones are counted.
- An empty ranking is an answer, and scores 0.
- A judged query that the run does not answer scores 0 and is listed as missing: leaving it out would reward silence.
  In one of our own runs it was not attempted, and so is left out.
- A row of our own run that is errored, unscored or unscorable is left out of the mean and listed; never a 0.
- A query of the run without judgements is ignored and counted.
- A query without a document of grade 1 or more cannot be scored: it is listed and not in the mean; the mean of
  trec_eval -c, in which it counts 0, is given besides. Grades below 1 are judged and not relevant. By a measure with
  `rel`, documents are relevant from that grade on, and a query without one is not in the mean of this measure.
- A ranking is scored to its end, or to `depth` (trec_eval -M); k beyond it adds nothing.
- No judgements, no ranking, no query in common, nothing to score: errors, never a value. So is a grade too large for an
  exponential gain, whether or not its document was retrieved.
- Queries are in the order of the judgements; no order of lines or queries changes a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from eval_core.errors import Misuse
from eval_core.scoring.engine import Engine
from eval_core.scoring.memory import uncollected
from eval_core.scoring.metrics import Measure
from eval_core.scoring.readers import form, read_qrels
from eval_core.scoring.readers.lists import answer_of, answers, is_own
from eval_core.scoring.readers.run import Block, Malformed, Ungrouped, explanation, gathered, grouped
from eval_core.scoring.readers.source import Listing, Progress, Source, opened
from eval_core.scoring.scores import QueryScore, Scores

__all__ = ["QueryScore", "Scores", "evaluate", "score_files"]


def evaluate(
    run: Mapping[str, Mapping[str, float]] | Mapping[str, Sequence[str]],
    qrels: Mapping[str, Mapping[str, int]],
    measures: Sequence[Measure],
    ties: str = "trec",
) -> Scores:
    """Score loaded data: for each query the score of each document, or its documents in rank order.

    Raises:
        Misuse: a NaN score, an id that is no text, or nothing to score; see the module.
    """
    engine = Engine(qrels, measures, ties)
    with uncollected():
        _take_loaded(run, engine)
    return engine.result("the run", "the judgements")


def _take_loaded(
    run: Mapping[str, Mapping[str, float]] | Mapping[str, Sequence[str]], engine: Engine
) -> Engine:
    for query, ranking in run.items():
        _all_texts(query, ranking)
        if isinstance(ranking, Mapping):
            engine.by_score(query, ranking, _rising(query, ranking))
        else:
            engine.by_rank(answer_of(query, ranking))
    return engine


def _all_texts(query: str, documents: Mapping[str, float] | Sequence[str]) -> None:
    try:
        if not isinstance(documents, str):
            "".join(documents)
            return
        told = "a list of document ids is expected, not a text"
    except TypeError as error:
        told = f"document ids should be texts: {error}"
    raise Misuse("run-malformed", told, subject=f"query {query!r}")


def _rising(query: str, scores: Mapping[str, float]) -> list[float]:
    rising = sorted(scores.values())
    # A sum is NaN where a term is, or where infinities of both signs meet.
    if (total := sum(rising)) != total:
        for document, score in scores.items():
            if score != score:
                what = f"the score of {document!r} is NaN; mend the system that gave it"
                raise Misuse("run-malformed", what, subject=f"query {query!r}")
    return rising


def score_files(
    run: Path,
    qrels: Path,
    measures: Sequence[Measure],
    ties: str = "trec",
    progress: Progress | None = None,
    processes: int | None = None,
    ranks: bool = True,
    depth: int | None = None,
    skip_own: bool = False,
) -> Scores:
    """Score a run file against a file of judgements; their forms are told by their content.

    Memory grows with the judgements and the number of queries, not with the depth of the run, where the lines of each
    of its queries lie together. A large run that is not compressed is shared among as many processes as there are
    processors, or `processes`; the result is the same.

    Args:
        progress: is told (bytes read, bytes in all) of the run, or of this process's part of it.
        ranks: whether `Scores.queries` will be asked for the ranks of judged documents; without, less is kept.
        depth: where each ranking is cut, or None.
        skip_own: leave out of each ranking the document that has the query's own id, before it is cut.

    Raises:
        Faults: lines that are malformed, with file and line.
        Misuse: a file cannot be read, or there is nothing to score.
    """
    from eval_core.scoring import shared

    with uncollected():
        judgements = read_qrels(qrels)
        kind, first = form(run)
        own = kind == "jsonl" and is_own(first)

        def engine() -> Engine:
            return Engine(judgements, measures, ties, own=own, ranks=ranks, depth=depth, skip_own=skip_own)

        def take(span: tuple[int, int] | None) -> Engine:
            if kind == "nested":
                return _take_nested(run, engine())
            if kind == "trec":
                return _take_trec(run, engine(), span, progress)
            return _take_lines(run, engine(), span, progress)

        done = shared.take(run, kind, take, processes)
        if done is None:
            try:
                done = take(None)
            except Ungrouped:
                done = _take_trec(run, engine(), None, progress, gathered)
    return done.result(str(run), str(qrels))


def _take_nested(run: Path, engine: Engine) -> Engine:
    from eval_core.scoring.readers import nested

    return _take_loaded(nested.rankings(run), engine)


def _take_trec(
    run: Path,
    engine: Engine,
    span: tuple[int, int] | None,
    progress: Progress | None,
    read: Callable[[Source], Iterator[Block]] = grouped,
) -> Engine:
    try:
        with opened(run, "run", progress, span) as source:
            for block in read(source):
                engine.duplicates += block.duplicates
                query, told = block.query.decode(), block.contradicted
                engine.by_score(query, block.scores, block.rising, encoded=True, contradicted=told)
    except Malformed:
        raise explanation(run) from None
    return engine


def _take_lines(run: Path, engine: Engine, span: tuple[int, int] | None, progress: Progress | None) -> Engine:
    fault = Listing(run)
    with opened(run, "run", progress, span) as source:
        for answer in answers(source, fault, engine.own if span and span[0] else None):
            engine.by_rank(answer)
    fault.stop()
    return engine
