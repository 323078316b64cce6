"""What a set is: its definition, documents, queries and judgements, and what it cannot show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eval_core import lazily

if TYPE_CHECKING:
    from eval_core.sets.corpus import CorpusFile, encode_id
    from eval_core.sets.dataset import HEADER, Dataset, Query, load
    from eval_core.sets.definition import Archive, Definition, Folder, Git, Inline, read_definition
    from eval_core.sets.limits import Limits, Saturation
    from eval_core.sets.nearest import Nearest
    from eval_core.sets.timeline import Timeline, read_timeline

__all__ = [
    "HEADER",
    "Archive",
    "CorpusFile",
    "Dataset",
    "Definition",
    "Folder",
    "Git",
    "Inline",
    "Limits",
    "Nearest",
    "Query",
    "Saturation",
    "Timeline",
    "encode_id",
    "load",
    "read_definition",
    "read_timeline",
]

__getattr__ = lazily(
    __name__,
    corpus="CorpusFile encode_id",
    dataset="HEADER Dataset Query load",
    definition="Archive Definition Folder Git Inline read_definition",
    limits="Limits Saturation",
    nearest="Nearest",
    timeline="Timeline read_timeline",
)
