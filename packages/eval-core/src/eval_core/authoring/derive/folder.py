"""A drafted set on disk: a dataset folder that appears whole or not at all."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from eval_core.authoring.derive.drafts import Draft
from eval_core.authoring.derive.result import draft_id
from eval_core.errors import Misuse
from eval_core.files import unwritable, write_text
from eval_core.models import NAME, parse_toml
from eval_core.sets.dataset import HEADER
from eval_core.sets.definition import Definition


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


def claim(out: Path) -> Path:
    """The place of a set that is to be written, all links followed.

    Raises:
        Misuse: something is there already.
    """
    place = Path(os.path.realpath(out))
    if place.exists() and not place.is_dir():
        raise Misuse("out-exists", "is a file; a set is a folder", file=out)
    if place.is_dir() and any(place.iterdir()):
        raise Misuse(
            "out-exists",
            "is not empty, and drafts replace nothing",
            file=out,
            mend="Name another folder.",
        )
    if place == Path.cwd():
        raise Misuse("out-exists", "is the current folder; name one inside it", file=out)
    return place


def seen_from(folder: Path, target: Path) -> str:
    """A path as a recipe in `folder` writes it: relative with slashes, absolute where there is no way."""
    real = os.path.realpath(target)
    try:
        return Path(os.path.relpath(real, folder)).as_posix()
    except ValueError:  # another drive
        return Path(real).as_posix()


def write_set(place: Path, definition: Mapping[str, Any], drafts: Iterable[Draft]) -> None:
    """Write a dataset folder: `dataset.toml`, `queries.jsonl` and `qrels/test.tsv`.

    Args:
        place: from `claim`.
        definition: the values of `dataset.toml`; `source` holds the one source of its recipe.
        drafts: in their order; their ids are given here.

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
    queries: list[str] = []
    rows = ["\t".join(HEADER)]
    for number, draft in enumerate(drafts, 1):
        metadata: dict[str, Any] = {"category": draft.category, "source": draft.source}
        if draft.exclude:
            metadata["exclude"] = list(draft.exclude)
        metadata["origin"] = [str(origin) for origin in draft.origins]
        query = {"_id": draft_id(number), "text": draft.text, "metadata": metadata}
        queries.append(json.dumps(query, ensure_ascii=False))
        rows += [f"{draft_id(number)}\t{document}\t1" for document in draft.documents]
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        # Beside its place, so that it takes it in one step; below a folder of ours, so that it has usual rights.
        with tempfile.TemporaryDirectory(prefix=f".{place.name}.", dir=place.parent) as beside:
            made = Path(beside) / "set"
            write_text(made / "queries.jsonl", "".join(f"{line}\n" for line in queries))
            write_text(made / "qrels" / "test.tsv", "".join(f"{line}\n" for line in rows))
            write_text(made / "dataset.toml", text)
            if place.exists():
                place.rmdir()  # empty, or this fails
            made.rename(place)
    except OSError as error:
        raise unwritable(place, error) from error


def _toml(definition: Mapping[str, Any]) -> str:
    """TOML of plain values, with the one source below them."""
    top = [f"{key} = {_value(value)}" for key, value in definition.items() if key != "source"]
    source = [f"{key} = {_value(value)}" for key, value in definition["source"].items()]
    return "\n".join([*top, "", "[[corpus.source]]", *source, ""])


def _value(value: object) -> str:
    """A text or a list of texts. JSON's form of a text is TOML's too, but for DEL."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
