"""A run in the figures of LongMemEval's own retrieval evaluation, under both of its denominators, beside our measures.

One repository of theirs divides by two counts. `run_retrieval.py` leaves out questions without a turn of the user that
is marked as evidence (419 remain); `print_retrieval_metrics.py` leaves out those of abstention alone (470 remain),
where a question without gold has recall_any 0, recall_all 1 (all of nothing) and ndcg_any 0. That 1 is counted here
alone. Source: src/retrieval and src/evaluation of github.com/xiaowu0162/LongMemEval.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from eval_core.errors import Misuse
from eval_core.files import read_text
from eval_core.scoring import Scores, metrics, score_files
from longmemeval_convert.convert import CONVERSION, LIMIT
from longmemeval_convert.models import Conversion

#: The cut-offs that they print.
CUTOFFS = (1, 3, 5, 10, 30, 50)

#: Theirs by our names, and what each is for a question without gold.
THEIRS = {"recall_any": ("hit", 0.0), "recall_all": ("all", 1.0), "ndcg_any": ("ndcg_authors", 0.0)}
OURS = ("hit", "all", "recall", "ndcg")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Means at each cut-off, by measure.

    `narrow` are theirs over the `narrow_n` questions with evidence of the user's, `wide` over all that have an answer,
    `wide_n`, and `ours` our measures over the same by the file's own judgements. `missing` counts judged questions that
    the run does not answer, which count 0.
    """

    cutoffs: tuple[int, ...]
    narrow: dict[str, list[float]]
    wide: dict[str, list[float]]
    ours: dict[str, list[float]]
    narrow_n: int
    wide_n: int
    missing: int
    statements: tuple[str, ...]


def read_conversion(folder: Path) -> Conversion:
    """What a set was converted from, and how.

    Raises:
        Misuse: the folder is not a converted set.
    """
    path = folder / CONVERSION
    try:
        return Conversion.model_validate_json(read_text(path, "conversion"))
    except ValueError as error:
        raise Misuse("file-malformed", "is not a conversion of this version", file=path) from error


def compare(run: Path, folder: Path) -> Comparison:
    """Score a run of any form that `eval-core score` reads.

    Raises:
        Misuse: the set has no judgements by the authors' rule, the run is not one of this set, or some questions of the
            run were not scored.
    """
    found = read_conversion(folder)
    if not found.denominators.authors:
        raise Misuse(
            "evidence-unmarked",
            "has no judgements by the authors' rule, since its file does not mark the user's evidence",
            file=folder,
        )
    files = {
        kind: folder / "qrels" / f"{'test' if kind == found.choices.gold else kind}.tsv"
        for kind in ("answers", "authors")
    }
    families = dict.fromkeys((*OURS, *(family for family, _ in THEIRS.values())))
    measures = [metrics.parse(f"{family}@{k}") for family in families for k in CUTOFFS]
    answers, authors = (score_files(run, files[kind], measures) for kind in ("answers", "authors"))
    if answers.left_out:
        what = f"{len(answers.left_out)} questions were not scored in the run, such as {answers.left_out[0]}"
        raise Misuse("run-malformed", what, file=run, mend="Measure again.")
    deepest = max([LIMIT, *(retrieved for _, _, retrieved in answers.found.values())])
    cutoffs = tuple(k for k in CUTOFFS if k <= deepest)
    beside = answers.n - authors.n
    narrow = {name: _means(authors, family, cutoffs) for name, (family, _) in THEIRS.items()}
    wide = {
        name: [(mean * authors.n + without * beside) / answers.n for mean in narrow[name]]
        for name, (_, without) in THEIRS.items()
    }
    return Comparison(
        cutoffs=cutoffs,
        narrow=narrow,
        wide=wide,
        ours={family: _means(answers, family, cutoffs) for family in OURS},
        narrow_n=authors.n,
        wide_n=answers.n,
        missing=len(answers.missing),
        statements=found.statements,
    )


def _means(scores: Scores, family: str, cutoffs: tuple[int, ...]) -> list[float]:
    return [scores.mean(metrics.parse(f"{family}@{k}")) for k in cutoffs]
