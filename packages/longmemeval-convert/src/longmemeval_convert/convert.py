"""A LongMemEval file to a set on disk, in one reading, that appears whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from eval_core.errors import CouldNot, Misuse, did_you_mean
from eval_core.files import recover, staged, swap, unwritable, write_text
from eval_core.models import parse_toml
from eval_core.sets import HEADER, Definition
from longmemeval_convert.documents import GOLDS, convert_question
from longmemeval_convert.models import Choices, Conversion, Origin
from longmemeval_convert.record import identity, question
from longmemeval_convert.sample import stratified
from longmemeval_convert.stream import STDIN, Progress, Records, opened
from longmemeval_convert.tally import Taken, Whole, describe

#: The file that tells what a set was converted from, and by which a set is known to be one of ours.
CONVERSION = "conversion.json"

#: What is asked for and measured, at most so many documents.
LIMIT, CUTOFFS, HEADLINE = 10, (1, 3, 5, 10), "recall@5"

_LICENCE = "MIT (LongMemEval); histories from ShareGPT and UltraChat"


def names_of(out: Path) -> Path:
    """Where the original ids of a set lie: beside it, in no folder that a system under test is given."""
    return out.with_name(out.name + ".ids.jsonl")


def survey(path: str, progress: Progress | None = None) -> Origin:
    """What a file is, read to its end.

    Raises:
        Misuse: it is not a LongMemEval file.
    """
    whole = Whole()
    with opened(path, progress) as source:
        for place, record in Records(source):
            whole.add(question(record, place), place)
        return whole.origin(source.bytes, source.sha256)


def convert(
    path: str, out: Path, choices: Choices, *, force: bool = False, progress: Progress | None = None
) -> Conversion:
    """Convert a file, or standard input where `path` is `-`, to a set in the folder `out`.

    Nothing stands at `out` before all of it is there, and what stood there stays until then.

    Raises:
        Misuse: the file is not sound, `out` is there already, or nothing was chosen.
        CouldNot: there is not enough room, or it cannot be written.
    """
    place = _claim(out, force)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with staged(place) as beside:
            name = None
            if choices.sample is not None and path == STDIN:
                path, name = _kept(beside / "input"), "standard input"
            _check_room(path, place.parent, choices)
            made = _write(path, name, beside, place, choices, progress)
            swap(beside, place, names_of(place), replace=True)
    except OSError as error:
        raise unwritable(out, error) from error
    return made


def _claim(out: Path, force: bool) -> Path:
    """The place of the set, all links followed.

    Raises:
        Misuse: something is there, and may not be replaced.
    """
    place = Path(os.path.realpath(out))
    recover(place)
    if not place.exists() and not names_of(place).exists():
        return place
    if not force:
        there = out if place.exists() else names_of(out)
        raise Misuse(
            "out-exists", "is there already", file=there, mend="Name another folder, or say --force."
        )
    if place.exists() and not (place / CONVERSION).is_file():
        what = f"is there and holds no {CONVERSION}, so it is not a converted set, and --force does not replace it"
        raise Misuse("out-exists", what, file=out, mend="Name another folder.")
    return place


def _kept(file: Path) -> str:
    """Standard input as a file, which can be read twice."""
    with opened(STDIN) as source, file.open("wb") as stream:
        while data := source.read(1 << 20):
            stream.write(data)
    return str(file)


def _check_room(path: str, folder: Path, choices: Choices) -> None:
    """Refuse to begin what cannot end. A set of all turns is about as large as its file, one of the user's a third."""
    if path == STDIN:
        return
    with opened(path) as source:
        compressed = source.compressed
    size = os.path.getsize(path)
    if compressed:
        # The last four bytes of gzip are the size of its content, modulo 4 GB; it is never less than that.
        with open(path, "rb") as stream:
            stream.seek(-min(4, size), os.SEEK_END)
            size = max(size, int.from_bytes(stream.read(4), "little"))
    needed = size // 3 if choices.text == "user" else size
    free = shutil.disk_usage(folder).free
    if free < needed:
        what = f"there are {free >> 20:,} MB free, and the set takes about {needed >> 20:,}"
        raise CouldNot("cannot-write", what, file=folder)


class _Files:
    """The files of a set that are written line by line."""

    def __init__(self, beside: Path, place: Path, choices: Choices) -> None:
        self.set = beside / f"new-{place.name}"
        (self.set / "qrels").mkdir(parents=True)
        self._open: list[IO[bytes]] = []
        self.corpus = self._file(self.set / "corpus.jsonl")
        self.queries = self._file(self.set / "queries.jsonl")
        self.names = self._file(beside / f"new-{names_of(place).name}") if choices.ids == "opaque" else None
        self.qrels = {
            kind: self._file(self.set / "qrels" / f"{'test' if kind == choices.gold else kind}.tsv")
            for kind in GOLDS
        }
        for stream in self.qrels.values():
            stream.write("\t".join(HEADER).encode() + b"\n")

    def _file(self, path: Path) -> IO[bytes]:
        self._open.append(path.open("wb", buffering=1 << 20))
        return self._open[-1]

    def close(self, sync: bool = False) -> None:
        """Close them all, on the disk where `sync`."""
        for stream in self._open:
            if sync:
                stream.flush()
                os.fsync(stream.fileno())
            stream.close()


@contextlib.contextmanager
def _files(beside: Path, place: Path, choices: Choices) -> Iterator[_Files]:
    files = _Files(beside, place, choices)
    try:
        yield files
        files.close(sync=True)
    finally:
        with contextlib.suppress(OSError):
            files.close()


def _write(
    path: str, name: str | None, beside: Path, place: Path, choices: Choices, progress: Progress | None
) -> Conversion:
    """Write the set into a folder of its own, from where it takes its place."""
    chosen = None if choices.sample is None else _sample(path, name, choices)
    whole, taken = Whole(), Taken()
    with opened(path, progress, name) as source, _files(beside, place, choices) as files:
        for at, record in Records(source):
            asked = question(record, at)
            whole.add(asked, at)
            if choices.types and asked.type not in choices.types:
                continue
            if chosen is not None and asked.id not in chosen:
                continue
            made = convert_question(asked, at.number, choices)
            files.corpus.writelines(made.documents)
            files.queries.write(made.query)
            if files.names is not None:
                files.names.write(made.names)
            for split, ids in made.judged.items():
                files.qrels[split].writelines(f"{made.query_id}\t{name}\t1\n".encode() for name in ids)
            taken.add(asked, made)
        origin = whole.origin(source.bytes, source.sha256)
    _check_taken(name or path, choices, origin, taken)
    found = describe(choices, origin, taken)
    if not found.denominators.authors:
        (files.set / "qrels" / "authors.tsv").unlink()
    text = found.model_dump_json(by_alias=True, indent=1)
    write_text(files.set / CONVERSION, text + "\n")
    write_text(files.set / "dataset.toml", _definition(found))
    return found


def _sample(path: str, name: str | None, choices: Choices) -> set[str]:
    """The questions of a sample, for which the file is read once before."""
    with opened(path, name=name) as source:
        named = [identity(record, place) for place, record in Records(source)]
    among = [(name, kind) for name, kind in named if not choices.types or kind in choices.types]
    return stratified(among, choices.sample or 0, choices.seed)


def _check_taken(path: str, choices: Choices, origin: Origin, taken: Taken) -> None:
    """Refuse a set that cannot be measured."""
    for kind in choices.types:
        if kind not in origin.types:
            what = f"the file has no question of this type{did_you_mean(kind, origin.types)}"
            raise Misuse("usage", f"{what}  (types: {', '.join(origin.types)})", key="--types", value=kind)
    if choices.sample is not None and taken.types.total() != choices.sample:
        raise CouldNot("file-changed", "changed while it was being read", file=path)
    if choices.gold == "authors" and not taken.scored["authors"]:
        what = "no turn of the user is marked as evidence, so nothing is judged by the authors' rule"
        raise Misuse("evidence-unmarked", what, file=path, mend="Leave out --gold authors.")
    if not taken.scored["answers"]:
        what = "no document of the chosen questions is judged"
        if choices.granularity == "turn" and not taken.marked:
            what = "no turn is marked as evidence, so no turn can be judged"
        raise Misuse(
            "evidence-unmarked", what, file=path, mend="Take --granularity session, or other questions."
        )


def _definition(found: Conversion) -> str:
    """The text of dataset.toml."""
    choices = found.choices
    whose = {"user": "turns of the user", "all": "all turns", "assistant": "turns of the assistant"}
    what = f"LongMemEval, a scope a question: {choices.granularity}s, {whose[choices.text]}"
    values = {
        "name": found.name,
        "description": what,
        "licence": _LICENCE,
        "kind": "memory",
        "limit": LIMIT,
        "cutoffs": list(CUTOFFS),
        "headline": HEADLINE,
        "statements": list(found.statements),
    }
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
    parse_toml(text, Definition, Path("dataset.toml"), "dataset definition")
    return text
