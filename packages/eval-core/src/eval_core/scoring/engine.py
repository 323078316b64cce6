"""Takes the queries of a run one by one and scores those that are judged; what is defined is told in `scoring`.

Only the ranks of judged documents are computed: by bisection in the sorted scores, and by id only where a judged
document's score is tied.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from eval_core.errors import Misuse
from eval_core.scoring import metrics
from eval_core.scoring.metrics import MOST_EXPONENT, Measure, Ranked
from eval_core.scoring.readers.lists import SCORED, Answer
from eval_core.scoring.scores import GIVEN, Found, Scores

#: How equal scores are ordered.
TIES = ("trec", "id")

Taken = tuple[set[str], dict[str, Found], set[str], set[str], int, str, int, int, bool]


class Engine:
    """Takes the queries of a run one by one, in any order, and scores those that are judged.

    Raises:
        Misuse: a grade without an exponential gain where a measure asks for it.
    """

    def __init__(
        self,
        qrels: Mapping[str, Mapping[str, int]],
        measures: Sequence[Measure],
        ties: str,
        own: bool = False,
        ranks: bool = True,
        depth: int | None = None,
        skip_own: bool = False,
    ) -> None:
        if ties not in TIES:
            raise Misuse("usage", f"should be one of {', '.join(TIES)}", key="ties", value=ties)
        self.own = own
        self.duplicates = 0
        self.skipped = 0
        self._qrels = qrels
        self._measures = tuple(measures)
        self._ties = ties
        self._keeps_ranks = ranks
        self._depth = depth
        self._skips_own = skip_own
        #: The grade from which on a document makes its query scorable by one measure at least.
        self._level = min((measure.rel for measure in measures), default=1)
        self._by_score = False
        self._values = metrics.scorer(self._measures)
        self._found: dict[str, Found] = {}
        self._queries: set[str] = set()
        self._contradicted: set[str] = set()
        self._tied: set[str] = set()
        self._strangers = 0
        self._stranger = ""
        _check_gains(qrels, self._measures)

    def by_score(
        self,
        query: str,
        scores: Mapping[Any, float],
        rising: Sequence[float],
        *,
        encoded: bool = False,
        contradicted: bool = False,
    ) -> None:
        """Take a query of which each document has a score, by its text or (`encoded`) its UTF-8 bytes; `rising` holds
        the scores, sorted. `contradicted`: ranks beside the scores say otherwise."""
        self._by_score = True
        self._queries.add(query)
        grades = self._qrels.get(query)
        if grades is None:
            self._stray(query)
            return
        if self._skips_own and (itself := query.encode() if encoded else query) in scores:
            self.skipped += 1
            scores = {document: score for document, score in scores.items() if document != itself}
            rising = sorted(scores.values())
        n = len(rising)
        ranks: dict[str, int] = {}
        tied: list[str] = []
        get = scores.get
        for document in grades:
            score = get(document.encode() if encoded else document)
            if score is not None:
                right = bisect_right(rising, score)
                ranks[document] = n - right + 1
                if right > 1 and rising[right - 2] == score:
                    tied.append(document)
        # Those have the rank of the first of their equals so far.
        places: dict[float, dict[Any, int]] = {}
        for document in tied:
            key: Any = document.encode() if encoded else document
            score = scores[key]
            if score not in places:
                equals = sorted([d for d, s in scores.items() if s == score], reverse=self._ties == "trec")
                places[score] = {d: place for place, d in enumerate(equals)}
            ranks[document] += places[score][key]
        if tied:
            self._tied.add(query)
        if contradicted:
            self._contradicted.add(query)
        self._add(query, grades, ranks, n)

    def by_rank(self, answer: Answer) -> None:
        """Take a query of ranked documents, or one that our own run did not answer."""
        self.duplicates += answer.duplicates
        self._queries.add(answer.query)
        grades = self._qrels.get(answer.query)
        if grades is None:
            self._stray(answer.query)
        elif answer.outcome == SCORED:
            if self._skips_own and answer.query in answer.unique:
                self.skipped += 1
                ids = [name for name in answer.ids if name != answer.query]
                answer = answer._replace(ids=ids, unique=answer.unique - {answer.query})
            # Few documents are judged: each is looked for, rather than all of them numbered.
            place = answer.ids.index
            ranks = {name: place(name) + 1 for name in answer.unique & grades.keys()}
            if answer.contradicted:
                self._contradicted.add(answer.query)
            self._add(answer.query, grades, ranks, len(answer.ids))

    def _stray(self, query: str) -> None:
        self._strangers += 1
        self._stranger = self._stranger or query

    def _add(self, query: str, grades: Mapping[str, int], ranks: Mapping[str, int], retrieved: int) -> None:
        """Score a query, unless nothing is relevant to it."""
        # The view of metrics.ranked, made by whole-list steps: this is run once a query.
        there = list(map(ranks.get, grades))
        if self._depth is not None and retrieved > self._depth:
            retrieved = self._depth
            there = [rank if rank and rank <= retrieved else None for rank in there]
        levels = grades.values()
        ideal = [grade for grade in levels if grade > 0]
        ideal.sort(reverse=True)
        if not ideal or ideal[0] < self._level:
            return
        found = [(rank, grade) for rank, grade in zip(there, levels, strict=True) if rank and grade > 0]
        found.sort()
        view = Ranked(found, [rank for rank, _ in found], ideal, sorted(filter(None, there)), retrieved)
        self._found[query] = (
            tuple(self._values(view)),
            tuple(there) if self._keeps_ranks else (),
            retrieved,
        )

    def taken(self) -> Taken:
        """What was taken so far, in the plain types that `marshal` carries from process to process."""
        noted = (self._contradicted, self._tied, self._strangers, self._stranger, self.duplicates)
        return (self._queries, self._found, *noted, self.skipped, self._by_score)

    def join(self, other: Taken) -> bool:
        """Take what another engine took of the same run; False where it took one of the same queries."""
        queries, found, contradicted, tied, strangers, stranger, duplicates, skipped, by_score = other
        if not queries.isdisjoint(self._queries):
            return False
        self._queries |= queries
        self._found.update(found)
        self._contradicted |= contradicted
        self._tied |= tied
        self._strangers += strangers
        self._stranger = self._stranger or stranger
        self.duplicates += duplicates
        self.skipped += skipped
        self._by_score = self._by_score or by_score
        return True

    def result(self, run: str, judgements: str) -> Scores:
        """The scores, once all queries were taken; `run` and `judgements` name the files.

        Raises:
            Misuse: there is nothing to score.
        """
        scored: dict[str, Found] = {}
        missing: list[str] = []
        unscorable: list[str] = []
        left_out: list[str] = []
        for query, grades in self._qrels.items():
            if query in self._found:
                pass
            elif max(grades.values(), default=0) < self._level:
                unscorable.append(query)
                continue
            elif self.own:
                left_out.append(query)
                continue
            else:
                missing.append(query)
                self._add(query, grades, {}, 0)
            scored[query] = self._found[query]
        if len(scored) == len(missing):
            raise self._nothing(run, judgements, unscorable, left_out)
        self._each_has_something(scored, judgements)
        return Scores(
            measures=self._measures,
            ties=self._ties if self._by_score else GIVEN,
            found=scored,
            qrels=self._qrels,
            missing=missing,
            unjudged=self._strangers,
            unscorable=unscorable,
            left_out=left_out,
            duplicates=self.duplicates,
            skipped=self.skipped,
            contradicted=[query for query in scored if query in self._contradicted],
            tied=[query for query in scored if query in self._tied],
        )

    def _each_has_something(self, scored: Mapping[str, Found], judgements: str) -> None:
        """Refuse a measure for which nothing is relevant to any query."""
        for measure in self._measures:
            if measure.rel > self._level and not any(
                max(self._qrels[query].values()) >= measure.rel for query in scored
            ):
                what = f"no query has a document of grade {measure.rel} or more, so that there is nothing to find"
                raise Misuse("nothing-relevant", what, file=judgements, key=str(measure))

    def _nothing(self, run: str, judgements: str, unscorable: list[str], left_out: list[str]) -> Misuse:
        """Why nothing was scored."""
        if not self._qrels:
            return Misuse("judgements-empty", "no query is judged", file=judgements)
        if len(unscorable) == len(self._qrels):
            what = f"no query has a document of grade {self._level} or more, so that there is nothing to find"
            return Misuse("nothing-relevant", what, file=judgements)
        if left_out and not self._strangers:
            what = f"no query was answered ({len(left_out)} errored, unscored or unscorable)"
            return Misuse("nothing-scored", what, file=run)
        if not self._strangers:
            return Misuse("run-empty", "answers no query that can be scored", file=run)
        known = next(query for query in self._qrels if query not in unscorable)
        return Misuse(
            "run-unjudged",
            f"has no query in common with {judgements} that can be scored: the run has {self._stranger!r}, the "
            f"judgements {known!r}; are they of the same set, with ids written alike?",
            file=run,
        )


def _check_gains(qrels: Mapping[str, Mapping[str, int]], measures: Sequence[Measure]) -> None:
    exponential = next((measure for measure in measures if measure.gain == "exp"), None)
    if exponential is None:
        return
    for query, grades in qrels.items():
        for document, grade in grades.items():
            if grade > MOST_EXPONENT:
                raise Misuse(
                    "grade-too-large",
                    f"the grade {grade} of {document!r} for {query!r} has no exponential gain in double "
                    f"precision (at most {MOST_EXPONENT}); use {exponential._replace(gain='lin')}, or smaller grades",
                    key=str(exponential),
                )
