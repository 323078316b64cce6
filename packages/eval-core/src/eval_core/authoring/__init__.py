"""What helps to write a set: inspecting one, deriving drafts, adding questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eval_core import lazily

if TYPE_CHECKING:
    from eval_core.authoring import derive, questions
    from eval_core.authoring.inspect import Inspection, inspect_set

__all__ = ["Inspection", "derive", "inspect_set", "questions"]

__getattr__ = lazily(
    __name__,
    derive="",
    inspect="Inspection inspect_set",
    questions="",
)
