"""The whole of `eval-core query add`: read, review, try out, put in place, and say what to make anew."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_core.authoring.questions.append import grown, replace_both, try_out
from eval_core.authoring.questions.file import read_questions
from eval_core.authoring.questions.result import Added, AddedQuestion
from eval_core.authoring.questions.review import Present, leaks, next_ids, review
from eval_core.errors import Fault, Faults
from eval_core.reconstruct.place import corpus_of
from eval_core.sets.dataset import load
from eval_core.sets.definition import read_definition

if TYPE_CHECKING:
    from eval_core.config import Arm, Workspace


def add_questions(
    folder: Path,
    file: Path,
    source: str,
    *,
    split: str | None = None,
    output: Path,
    workspace: Workspace | None = None,
    sheet: bool = False,
    allow_similar: bool = False,
    dry_run: bool = False,
) -> Added:
    """Append the reviewed questions of a file to a set.

    Args:
        folder: the dataset folder.
        file: JSON lines or CSV, as `questions.file` describes.
        sheet: whether it is a sheet of drafts, of which the kept rows are added.
        source: who asked; it becomes each query's metadata `source`.
        split: the judgements to append to; the set's only ones, or `test`.
        output: the workspace's `.eval`, where reconstructed corpora lie.
        workspace: whose arms measure the set; None where there is no eval.toml.
        allow_similar: whether nearly the same wording may be asked twice.
        dry_run: whether to do all but the writing.

    Raises:
        Faults: all that is wrong with the file, or with the set; nothing was added.
        Misuse: set, split or file are not there.
        CouldNot: the corpus is not built, or the set cannot be written.
    """
    arms = _using(workspace, folder)
    filters = {key for arm in arms.values() for key in arm.filter_from}
    keys = tuple(sorted({"kind", *filters}))
    # A folder that is not there is for loading to tell of.
    definition = read_definition(folder) if folder.is_dir() else None
    corpus = corpus_of(folder, definition, output)
    dataset = load(folder, split=split, corpus=corpus, keys=keys, begins=True)
    if any("kind" in has for has in dataset.attributes.values()):
        filters.add("kind")
    faults: list[Fault] = []

    def fault(line: int, message: str) -> None:
        faults.append(Fault(message, file=file, line=line))

    questions = read_questions(file, fault, sheet=sheet)
    present = Present.of(folder)
    review(dataset, present, questions, filters=filters, allow_similar=allow_similar, fault=fault)
    if faults:
        raise Faults(sorted(faults, key=lambda one: one.line or 0), consequence="nothing was added")
    named = list(zip(next_ids(present, questions), questions, strict=True))
    queries, judgements = grown(dataset, named, source)
    after = try_out(dataset, queries, judgements, keys)
    if not dry_run:
        replace_both(queries, judgements)
    splits = sorted(path.stem for path in (folder / "qrels").glob("*.tsv"))
    default = splits[0] if len(splits) == 1 else "test"
    metadata = [{**question.metadata, "source": source} for question in questions]
    asked = [
        name for name, arm in arms.items() if (arm.split or default) == dataset.split and _asks(arm, metadata)
    ]
    return Added(
        name=dataset.name,
        folder=str(folder),
        split=dataset.split,
        source=source,
        dry_run=dry_run,
        before=len(dataset.queries),
        queries=len(after.queries),
        added=tuple(
            AddedQuestion(id=name, text=question.text, relevant=dict(question.relevant), line=question.line)
            for name, question in named
        ),
        warnings=tuple(
            f"{file}:{question.line}: stands word for word in {document!r}"
            f"{'' if question.relevant.get(document, 0) else ', not judged relevant'}: {question.text!r}"
            for question, document in leaks(dataset, questions)
        ),
        arms=tuple(asked),
        next=tuple(_next(tuple(asked), _beside(folder, workspace), len(named), source)),
    )


def _using(workspace: Workspace | None, folder: Path) -> dict[str, Arm]:
    """The arms that measure a set."""
    if workspace is None:
        return {}
    place = folder.resolve()
    return {
        name: arm for name, arm in workspace.arms.items() if workspace.dataset_folder(arm).resolve() == place
    }


def _beside(folder: Path, workspace: Workspace | None) -> str:
    """The folder of the set as it is called in the folder of eval.toml, where the commands are run."""
    return os.path.relpath(folder, workspace.root) if workspace is not None else str(folder)


def _asks(arm: Arm, metadata: Iterable[Mapping[str, Any]]) -> bool:
    """Whether an arm selects a query of any such metadata."""
    return any(all(has.get(key) in values for key, values in arm.select.items()) for has in metadata)


def _next(arms: tuple[str, ...], folder: str, count: int, source: str) -> list[str]:
    """The commands that move the bar of the arms that ask the set."""
    if not arms:
        return []
    names = shlex.join(arms)
    what = f"{count} {'question' if count == 1 else 'questions'} added, source {source}"
    reason = shlex.quote(f"task={what}")
    return [
        f"git add {shlex.quote(folder)}",
        f"git commit -m {shlex.quote(what)}",
        f"eval-gate floor {names} --measure --reason {reason}",
        f"eval-gate floor {names} --reason {reason} --write",
    ]
