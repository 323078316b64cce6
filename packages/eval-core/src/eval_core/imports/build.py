"""From what an importer reads to a set on disk: documents looked up, what cannot be carried named, one writer."""

from __future__ import annotations

import functools
import json
import re
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval_core.console import utf8
from eval_core.errors import Misuse
from eval_core.files import staged
from eval_core.imports.corpus import Documents, Match, Place, locate
from eval_core.imports.importer import CONSEQUENCE, Importer, Question, Reading
from eval_core.imports.models import Imported, LeftOut, Reason
from eval_core.scoring.readers.source import Listing
from eval_core.sets import Query, load
from eval_core.sets.folder import claim, set_name, write_set

#: Characters of a query, its id or its metadata: more is a file that was read as something that it is not.
MOST_TEXT = 100_000

_SURROGATE = re.compile("[\ud800-\udfff]")


def import_set(
    importer: str,
    reader: Importer,
    path: Path,
    out: Path,
    *,
    corpus: Path | None = None,
    include: tuple[str, ...] = (),
    match: Match | None = None,
    any_of: bool | None = None,
    name: str | None = None,
    force: bool = False,
    options: Mapping[str, Any] = {},
) -> Imported:
    """Read a file by an importer and write what it holds as a dataset folder, whole or not at all.

    A query is kept where each document that it expects is exactly one of the corpus. Documents that are judged not
    relevant and not in the corpus are dropped and counted; nobody could find them.

    Args:
        importer: the name that `reader` has in the group.
        corpus: a corpus.jsonl or a folder; None where the file holds its documents.
        include: globs of the files that are documents, where it is a folder of files.
        match: how documents are named; by path where the corpus is a folder, else by id.
        any_of: whether one of several documents suffices; None is what the format means.
        force: whether a set at `out` is replaced.
        options: the importer's own.

    Raises:
        Misuse, Faults: wrong usage, or all that is wrong with the file.
        CouldNot: the corpus is not built, or the set cannot be written.
    """
    place = claim(out, replace=force)
    for given in (path, *(value for value in options.values() if isinstance(value, Path))):
        if given.resolve().is_relative_to(place):
            what = f"it holds {given}, which this command reads, and would be replaced"
            raise Misuse("output-is-input", what, key="-o", value=str(out), mend="Name another folder.")
    name = set_name(name, out)
    try:
        reading = reader.read(path, **options)
    except MemoryError as error:
        what, mend = "does not fit into memory", "Import it in parts, or with more memory."
        raise Misuse("file-malformed", what, file=path, mend=mend) from error
    if reading.documents is None and corpus is None:
        mend = "Name them: --corpus FILE or FOLDER."
        raise Misuse("corpus-unclear", "the file holds no documents", file=path, mend=mend)
    if reading.documents is not None and corpus is not None:
        what = "the file holds its own documents, and no others can be given"
        raise Misuse("corpus-unclear", what, file=path, mend="Leave out --corpus.")
    with staged(Path(tempfile.gettempdir()) / "eval-import") as beside:
        found = (
            Place(reading.documents or ()) if corpus is None else locate(corpus, include, place, beside, path)
        )
        match = match or ("path" if found.source else "id")
        below = found.source["prefix"] if found.source and reading.paths else None
        documents = Documents(found.documents, match, below)
        dropped = dict(reading.dropped)
        kept, left_out = _judged(path, reading, documents, dropped)
        if any_of is None:
            any_of = reading.any_of
        definition: dict[str, Any] = {
            "name": name,
            "description": f"Imported from {utf8(path.name)} ({importer}).",
        }
        if any_of:
            definition["headline"] = "hit@1"
        if found.source:
            definition["source"] = found.source

        write_set(
            place,
            definition,
            [Query(one.id, one.text, one.metadata) for one, _ in kept],
            {one.id: judged for one, judged in kept},
            documents=None if found.source else found.documents,
            replace=force,
            check=functools.partial(load, corpus=found.file if found.source else None),
        )
    return Imported(
        name=name,
        folder=str(out),
        importer=importer,
        file=str(path),
        fields=dict(reading.fields),
        match=match,
        truth="any" if any_of else "all",
        documents=len(documents.paths),
        queries=len(kept),
        judgements=sum(len(judged) for _, judged in kept),
        left_out=tuple(left_out),
        dropped=dropped,
        warnings=tuple(reading.warnings),
    )


def _judged(
    path: Path, reading: Reading, documents: Documents, dropped: dict[str, int]
) -> tuple[list[tuple[Question, dict[str, int]]], list[LeftOut]]:
    """The queries that are kept, with their judgements, and the others."""
    fault = Listing(path, CONSEQUENCE)
    kept: list[tuple[Question, dict[str, int]]] = []
    left_out: list[LeftOut] = []
    lost: Counter[str] = Counter()
    for one in reading.questions:
        written = {"id": one.id, "query": one.text, "expected": list(one.expected), **one.metadata}
        half = [
            key for key in written if _SURROGATE.search(json.dumps([key, written[key]], ensure_ascii=False))
        ]
        if half:
            what = f"{reading.fields.get(half[0], half[0])} holds half of a surrogate pair, which is no character"
            fault(one.line, f"query {one.id!r}: {what}")
            continue
        if long := [key for key in written if len(json.dumps(written[key])) > MOST_TEXT]:
            what = f"{reading.fields.get(long[0], long[0])} has more than {MOST_TEXT:,} characters"
            fault(one.line, f"query {one.id[:80]!r}: {what}")
            continue
        judged: dict[str, int] = {}
        wrong: tuple[Reason, str] | None = None
        for name, grade in one.expected.items():
            found = documents.find(name)
            if len(found) == 1:
                lost["grade below 0, written as 0"] += grade < 0
                if judged.setdefault(found[0], max(grade, 0)) != max(grade, 0):
                    fault(one.line, f"query {one.id!r} judges {found[0]!r} twice, with different grades")
            elif parts := documents.split(name):
                what = f"{name!r} is {len(parts)} documents in one text"
                fault(
                    one.line, f"{what}; write {json.dumps(parts, ensure_ascii=False)}, or a record for each"
                )
            elif grade < 1:
                lost["judgement below 1 of what is not one document"] += 1
            elif not found:
                wrong = wrong or ("no-match", f"{name!r} is no document of the corpus")
            else:
                some = ", ".join(found[:3]) + (", …" if len(found) > 3 else "")
                wrong = wrong or ("several-matches", f"{name!r} is {len(found):,} documents: {some}")
        if not one.expected:
            wrong = ("no-document", "expects no document")
        elif wrong is None and not any(judged.values()):
            wrong = ("no-positive", "judges no document relevant")
        if wrong is None:
            kept.append((one, judged))
        else:
            left_out.append(LeftOut(id=one.id, line=one.line, reason=wrong[0], what=wrong[1]))
    fault.stop()
    dropped.update(+lost)
    if not kept:
        first = left_out[0]
        what = f"no query is left of {len(left_out):,}; the first, {first.id!r}: {first.what}"
        raise Misuse("import-empty", what, file=path, line=first.line)
    return kept, left_out
