"""Questions appended to a set's files: as bytes behind what is there, loaded as a set, then both files or neither."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eval_core.authoring.questions.file import Question
from eval_core.errors import CouldNot, Fault, Faults
from eval_core.files import atomic, copy, unreadable, unwritable
from eval_core.sets.dataset import Dataset, load

#: What besides queries and judgements has a say in whether a set loads.
_BESIDE = ("dataset.toml", "timeline.jsonl")


@dataclass(frozen=True, slots=True)
class Grown:
    """A file and what it is to hold; `before` is what it holds and is kept as the beginning."""

    path: Path
    before: bytes
    after: bytes

    @classmethod
    def of(cls, path: Path, lines: Sequence[str]) -> Grown:
        """A file with lines behind what it holds, ended as its lines are ended.

        Raises:
            CouldNot: it cannot be read.
        """
        real = path.resolve()  # a link stays one, and what it leads to is written
        before = _held(real)
        end = b"\r\n" if before.partition(b"\n")[0].endswith(b"\r") else b"\n"
        gap = b"" if not before or before.endswith(b"\n") else end
        return cls(real, before, before + gap + b"".join(line.encode() + end for line in lines))


def grown(dataset: Dataset, questions: Sequence[tuple[str, Question]], source: str) -> tuple[Grown, Grown]:
    """The set's `queries.jsonl` and its judgements with the questions, each under its id, behind what they hold."""
    asked: list[str] = []
    judged: list[str] = []
    for name, question in questions:
        metadata: dict[str, Any] = {**question.metadata, "source": source}
        query = {"_id": name, "text": question.text, "metadata": metadata}
        asked.append(json.dumps(query, ensure_ascii=False))
        judged += [f"{name}\t{document}\t{grade}" for document, grade in question.relevant.items()]
    qrels = dataset.folder / "qrels" / f"{dataset.split}.tsv"
    head = [] if qrels.exists() else ["query-id\tcorpus-id\tscore"]
    return Grown.of(dataset.folder / "queries.jsonl", asked), Grown.of(qrels, [*head, *judged])


def try_out(dataset: Dataset, queries: Grown, judgements: Grown, keys: Sequence[str]) -> Dataset:
    """Load the set as it would be, from a place of its own.

    Raises:
        Faults: it would not load; the files are named as they would be.
    """
    with tempfile.TemporaryDirectory(prefix="eval-query-") as folder:
        trial = Path(folder)
        for other in _BESIDE:
            if (dataset.folder / other).is_file():
                copy(dataset.folder / other, trial / other)
        (trial / "qrels").mkdir()
        for split in sorted((dataset.folder / "qrels").glob("*.tsv")):
            copy(split, trial / "qrels" / split.name)
        for name, file in (("queries.jsonl", queries), (f"qrels/{dataset.split}.tsv", judgements)):
            try:
                (trial / name).write_bytes(file.after)
            except OSError as error:
                raise unwritable(trial / name, error) from error
        try:
            return load(trial, split=dataset.split, corpus=dataset.corpus.path, keys=keys)
        except Faults as error:
            found = [_in_place(fault, trial, dataset.folder) for fault in error.faults]
            raise Faults(found, consequence="nothing was added") from error


def _in_place(fault: Fault, trial: Path, folder: Path) -> Fault:
    """The fault of a file of the trial, said of the file that it stands for."""
    if fault.file is None or not Path(fault.file).is_relative_to(trial):
        return fault
    return replace(fault, file=str(folder / Path(fault.file).relative_to(trial)))


def replace_both(first: Grown, second: Grown) -> None:
    """Put both files in place. Where one cannot be, the other is as it was.

    Each is written and synced under another name before either takes its own. Between the two names no state passes
    for a sound set: a question without judgement, or a judgement without question, is a fault to every reader.

    Raises:
        CouldNot: a file cannot be written, or another process has changed it meanwhile.
    """
    for one in (first, second):
        if _held(one.path) != one.before:
            what = "was changed while the questions were reviewed; nothing was added"
            raise CouldNot("file-changed", what, file=one.path)
    try:
        for one in (first, second):
            one.path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(second.path) as judgements, atomic(first.path) as queries:
            queries.write(first.after)
            judgements.write(second.after)
    except BaseException as error:
        _put_back(first)
        if isinstance(error, OSError):
            what = f"cannot be written: {error.strerror or error}; nothing was added"
            raise CouldNot("cannot-write", what, file=second.path.parent.parent) from error
        if isinstance(error, CouldNot):
            raise error.but(what=f"{error.details.what}; nothing was added") from error
        raise


def _held(path: Path) -> bytes:
    """What a file holds; nothing where a set begins."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise unreadable(path, error) from error


def _put_back(one: Grown) -> None:
    """Give a file its content of before, where it has another."""
    if _held(one.path) == one.before:
        return
    try:
        if not one.before:
            one.path.unlink()
            return
        with atomic(one.path) as stream:
            stream.write(one.before)
    except (OSError, CouldNot) as error:
        more = one.after.count(b"\n") - one.before.count(b"\n")
        raise CouldNot(
            "half-written",
            f"holds {more} new lines whose judgements could not be written, and cannot be put back",
            file=one.path,
            mend=f"Remove its last {more} lines once it can be written.",
        ) from error
