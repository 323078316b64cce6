"""Rankings scored against judgements: measures, their statistics, the engine and the readers of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eval_core import lazily

if TYPE_CHECKING:
    from eval_core.scoring import metrics, spelling, statistics
    from eval_core.scoring.readers.columns import GRADE_RULE, grade_of
    from eval_core.scoring.score import Scores, evaluate, score_files

__all__ = ["GRADE_RULE", "Scores", "evaluate", "grade_of", "metrics", "score_files", "spelling", "statistics"]

__getattr__ = lazily(
    __name__,
    metrics="",
    score="Scores evaluate score_files",
    spelling="",
    statistics="",
    **{"readers.columns": "GRADE_RULE grade_of"},
)
