"""A set written to disk: a dataset folder that appears whole or not at all."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from eval_core.backend import Document
from eval_core.errors import Misuse
from eval_core.files import recover, staged, swap, unwritable, write_lines, write_text
from eval_core.models import NAME, parse_toml
from eval_core.sets.corpus import document_line
from eval_core.sets.dataset import HEADER, Query
from eval_core.sets.definition import Definition

#: All that is ever written here; a folder that holds anything else is not replaced.
_WRITTEN = frozenset({"dataset.toml", "queries.jsonl", "corpus.jsonl", "qrels", "qrels/test.tsv"})


def set_name(given: str | None, folder: Path) -> str:
    """The name of a set: as given, else made of a folder's.

    Raises:
        Misuse: the given one is no name.
    """
    if given is not None:
        if not re.fullmatch(NAME.strip("^$"), given):
            what = "a name consists of lower-case letters, digits, and . _ -, and begins with a letter or a digit"
            raise Misuse("name-malformed", what, key="--name", value=given)
        return given
    made = re.sub(r"[^a-z0-9._-]+", "-", folder.resolve().name.removesuffix(".git").lower())
    return made.strip("._-") or "drafts"


def claim(out: Path, *, replace: bool | None = None) -> Path:
    """The place of a set that is to be written, all links followed.

    Args:
        replace: whether a set that is there may be replaced; None where the command has no --force.

    Raises:
        Misuse: something is there already, or something else than a set would be replaced.
    """
    place = Path(os.path.realpath(out))
    recover(place)
    if place.exists() and not place.is_dir():
        raise Misuse("out-exists", "is a file; a set is a folder", file=out)
    held = _held(place) if place.is_dir() else iter(())
    if not replace and next(held, None):
        mend = "Name another folder" + (".", ", or replace the set with --force.")[replace is not None]
        raise Misuse("out-exists", "is not empty, and a new set replaces nothing", file=out, mend=mend)
    if other := next((name for name in held if name not in _WRITTEN), None):
        what = f"holds {other}, which is no part of an imported set, so --force does not replace the folder"
        raise Misuse(
            "out-exists", what, file=out, mend="Name another folder, or remove what is there yourself."
        )
    if place == Path.cwd():
        raise Misuse("out-exists", "is the current folder; name one inside it", file=out)
    return place


def _held(folder: Path) -> Iterator[str]:
    """What lies in a folder, as it is found: nothing is sorted or walked ahead of what is asked for."""
    for here, folders, files in os.walk(folder):
        below = Path(here).relative_to(folder)
        yield from ((below / name).as_posix() for name in (*folders, *files))


def seen_from(folder: Path, target: Path) -> str:
    """A path as a recipe in `folder` writes it: relative with slashes, absolute where there is no way."""
    real = os.path.realpath(target)
    try:
        return Path(os.path.relpath(real, folder)).as_posix()
    except ValueError:  # another drive
        return Path(real).as_posix()


def write_set(
    place: Path,
    definition: Mapping[str, Any],
    queries: Iterable[Query],
    judgements: Mapping[str, Mapping[str, int]],
    *,
    documents: Iterable[Document] | None = None,
    replace: bool = False,
    check: Callable[[Path], object] | None = None,
) -> None:
    """Write a dataset folder: `dataset.toml`, `queries.jsonl`, `qrels/test.tsv`, and `corpus.jsonl` where it has one.

    Args:
        place: from `claim`.
        definition: the values of `dataset.toml`; `source`, where there is one, holds the one source of its recipe.
        judgements: by query id, {document id: grade}.
        documents: of `corpus.jsonl`; None where a recipe gives them.
        replace: whether a set may be there, which goes.
        check: looks at the folder before it takes its place; what it raises leaves nothing behind.

    Raises:
        CouldNot: it cannot be written.
        Misuse: a path holds bytes that no text can.
    """
    text = _toml(definition)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        what = "the path to its source holds bytes that are not UTF-8, which dataset.toml cannot hold"
        raise Misuse("path-malformed", what, file=place) from error
    parse_toml(text, Definition, place / "dataset.toml", "dataset definition")
    lines = []
    for query in queries:
        noted = {"metadata": dict(query.metadata)} if query.metadata else {}
        lines.append(json.dumps({"_id": query.id, "text": query.text, **noted}, ensure_ascii=False).encode())
    rows = ["\t".join(HEADER)]
    for name, judged in judgements.items():
        rows += [f"{name}\t{document}\t{grade}" for document, grade in judged.items()]
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        # Beside its place, so that it takes it in one step; below a folder of ours, so that it has usual rights.
        with staged(place) as beside:
            made = beside / f"new-{place.name}"
            write_lines(made / "queries.jsonl", lines)
            write_lines(made / "qrels" / "test.tsv", (row.encode() for row in rows))
            write_text(made / "dataset.toml", text)
            if documents is not None:
                write_lines(made / "corpus.jsonl", map(document_line, documents))
            if check is not None:
                check(made)
            swap(beside, place, replace=replace)
    except OSError as error:
        raise unwritable(place, error) from error


def _toml(definition: Mapping[str, Any]) -> str:
    """TOML of plain values, with the one source below them."""
    text = "".join(f"{key} = {_value(value)}\n" for key, value in definition.items() if key != "source")
    source = definition.get("source")
    if source is None:
        return text
    return f"{text}\n[[corpus.source]]\n" + "".join(
        f"{key} = {_value(value)}\n" for key, value in source.items()
    )


def _value(value: object) -> str:
    """A text or a list of texts. JSON's form of a text is TOML's too, but for DEL."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
