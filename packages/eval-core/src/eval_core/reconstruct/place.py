"""Where the corpus of a set lies, without building it."""

from __future__ import annotations

from pathlib import Path

from eval_core.config import CONFIG, command
from eval_core.errors import CouldNot
from eval_core.sets.definition import Definition, Inline


def corpus_of(folder: Path, definition: Definition | None, output: Path) -> Path:
    """The `corpus.jsonl` of a set: its own where its documents are used as they lie there, else the one that was
    reconstructed below `output` by the recipe that the set has now.

    Args:
        folder: the dataset folder.
        definition: what its `dataset.toml` says, None in a plain BEIR folder.
        output: the workspace's `.eval`.

    Raises:
        CouldNot: it was not reconstructed, or by another recipe. The mend is the command that does it.
        Misuse, Faults: the lock beside it cannot be read.
    """
    from eval_core.reconstruct import CORPUS, LOCK
    from eval_core.reconstruct.lock import read_lock, recipe_digest

    recipe = definition.corpus if definition else None
    if definition is None or recipe is None or all(_as_it_lies(source) for source in recipe.source):
        return folder / CORPUS
    place = output / "corpora" / definition.name
    mend = command("eval-core", "reconstruct", str(folder), config=output.parent / CONFIG)
    if not (place / CORPUS).is_file() or not (place / LOCK).is_file():
        what = f"the corpus of {definition.name!r} is not built yet"
        raise CouldNot("corpus-absent", what, file=place / CORPUS, mend=mend)
    if read_lock(place / LOCK).recipe != recipe_digest(definition):
        what = f"was built by another recipe than the one in {folder / 'dataset.toml'}"
        raise CouldNot("corpus-stale", what, file=place / CORPUS, mend=mend)
    return place / CORPUS


def _as_it_lies(source: object) -> bool:
    """Whether a source's documents keep the ids and metadata that they have in the set's own file."""
    return isinstance(source, Inline) and not source.prefix and not source.metadata
