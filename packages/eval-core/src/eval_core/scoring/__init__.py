"""Rankings scored against judgements: measures, their statistics, the engine and the readers of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eval_core import lazily

if TYPE_CHECKING:
    from eval_core.scoring import metrics, statistics
    from eval_core.scoring.score import Scores, evaluate, score_files

__all__ = ["Scores", "evaluate", "metrics", "score_files", "statistics"]

__getattr__ = lazily(
    __name__,
    metrics="",
    score="Scores evaluate score_files",
    statistics="",
)
