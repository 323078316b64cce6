"""Build a corpus from the sources of its recipe: the same recipe, the same bytes on every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eval_core import lazily

if TYPE_CHECKING:
    from eval_core.reconstruct import archive, folder, git
    from eval_core.reconstruct.build import CORPUS, LOCK, reconstruct, survey
    from eval_core.reconstruct.lock import NO_RECIPE, Lock, read_lock, recipe_digest, write_lock
    from eval_core.reconstruct.overrides import (
        check_overrides,
        overrides_from_environment,
        relevant_overrides,
    )
    from eval_core.reconstruct.place import corpus_of

__all__ = [
    "CORPUS",
    "LOCK",
    "NO_RECIPE",
    "Lock",
    "archive",
    "check_overrides",
    "corpus_of",
    "folder",
    "git",
    "overrides_from_environment",
    "read_lock",
    "recipe_digest",
    "reconstruct",
    "relevant_overrides",
    "survey",
    "write_lock",
]

__getattr__ = lazily(
    __name__,
    archive="",
    build="CORPUS LOCK reconstruct survey",
    folder="",
    git="",
    lock="NO_RECIPE Lock read_lock recipe_digest write_lock",
    overrides="check_overrides overrides_from_environment relevant_overrides",
    place="corpus_of",
)
