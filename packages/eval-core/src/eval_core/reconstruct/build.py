"""Building a corpus: each source is read in turn, and what it gave is locked."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from eval_core.backend import Document
from eval_core.errors import CouldNot, Fault, Faults, Misuse
from eval_core.files import atomic, digest_file
from eval_core.reconstruct import archive, folder, git
from eval_core.reconstruct.ledger import CONSEQUENCE, Ledger
from eval_core.reconstruct.lock import NO_RECIPE, Lock, LockedSource, lock_text, recipe_digest
from eval_core.reconstruct.overrides import check_overrides
from eval_core.reconstruct.selection import Entry, State, Tally, documents, prefixed, selection_faults
from eval_core.sets.corpus import CorpusFile, corpus_digest, encode_id, parse_document
from eval_core.sets.definition import Archive, Definition, Folder, Git, Inline, Recipe, Source

#: The files that reconstructing writes.
CORPUS = "corpus.jsonl"
LOCK = "lock.json"


def reconstruct(
    dataset_folder: Path,
    definition: Definition,
    out: Path,
    *,
    overrides: Mapping[str, Path] = {},
    cache: Path,
    progress: Callable[[str], None] | None = None,
) -> Lock:
    """Write `out/corpus.jsonl` and `out/lock.json`; when anything fails, neither is touched.

    Documents stand in the recipe's order of sources, within a source in byte order of their paths, inline ones in
    the file's order. The corpus is streamed: only ids and digests are held.

    Args:
        dataset_folder: holds `dataset.toml`; paths of the recipe are relative to it.
        overrides: by source name, a place to read instead of the configured one. The commit or digest must still
            fit, and the lock does not show it.
        cache: where what was fetched is kept.
        progress: told what is slow or unexpected, a line each.

    Raises:
        CouldNot: a source is absent, damaged or not the one pinned, or `out` cannot be written.
        Misuse: there is no recipe, an override of no source, a source that gives no document.
        Faults: bad globs, bad lines of an inline corpus, an unsound archive, or ids given twice.
    """
    recipe = definition.corpus
    if recipe is None:
        what = "has no recipe ([[corpus.source]]); its corpus is used as it is"
        raise Misuse("recipe-missing", what, file=dataset_folder / "dataset.toml")
    if out.resolve() == dataset_folder.resolve():
        what = "is the dataset's own folder; its corpus.jsonl would be lost"
        raise Misuse("out-is-dataset", what, file=out)
    check_overrides(overrides, [source.name for source in recipe.source])
    _check_recipe(recipe, dataset_folder / "dataset.toml")
    tell = progress or (lambda line: None)
    ledger = Ledger(dataset_folder / "dataset.toml")
    sources = []
    # The lock is renamed after the corpus, so it never describes a corpus that is not there yet.
    with atomic(out / LOCK) as lock_stream, atomic(out / CORPUS) as corpus_stream:
        for source in recipe.source:
            override = overrides.get(source.name)
            if override is not None:
                tell(f"source {source.name!r}: read from {override}, not from {_location(source)}")
            tally = Tally()
            if isinstance(source, Inline):
                state = State(pinned=True)
                for document, line in _inline(source, dataset_folder, override, tally, ledger):
                    corpus_stream.write(ledger.enter(source.name, document, line))
            else:
                with _opened(source, dataset_folder, override, cache, out, tell) as (state, entries):
                    for document in documents(source, entries, tally):
                        corpus_stream.write(ledger.enter(source.name, document))
            sources.append(_locked(source, state, tally))
        ledger.check()
        lock = Lock(
            dataset=definition.name,
            version=definition.version,
            documents=len(ledger.digests),
            digest=corpus_digest(ledger.digests.items()),
            recipe=recipe_digest(definition),
            file_sha256=ledger.file.hexdigest(),
            pinned=all(source.pinned for source in sources),
            sources=tuple(sources),
        )
        lock_stream.write(lock_text(lock).encode())
    return lock


def survey(dataset_folder: Path, name: str, version: str = "") -> Lock:
    """Describe a corpus that is used as it lies in its folder: a lock without sources, which is not written.

    Raises:
        CouldNot: there is no `corpus.jsonl`.
        Faults: bad lines, or ids given twice.
    """
    path = dataset_folder / CORPUS
    if not path.exists():
        what = "there is no such corpus, and no recipe to build it from"
        raise CouldNot("source-absent", what, file=path)
    ledger = Ledger(dataset_folder / "dataset.toml")
    for line, document in CorpusFile(path).numbered(
        lambda line, text: ledger.fault(Fault(text, file=path, line=line))
    ):
        ledger.enter(CORPUS, document, line)
    ledger.check()
    return Lock(
        dataset=name,
        version=version,
        documents=len(ledger.digests),
        digest=corpus_digest(ledger.digests.items()),
        recipe=NO_RECIPE,
        file_sha256=digest_file(path),
        pinned=True,
    )


def _check_recipe(recipe: Recipe, path: Path) -> None:
    """Refuse what can be seen to be wrong before any source is opened."""
    found: list[Fault] = []
    for source in recipe.source:
        problems = [] if isinstance(source, Inline) else selection_faults(source)
        if source.prefix and encode_id(source.prefix) != source.prefix:
            problems.append(f"prefix {source.prefix!r} holds white space, control characters or %")
        # What is read back later with its metadata must not fail there, where the recipe is far away.
        trial = parse_document({"_id": "x", "text": "", "metadata": source.metadata})
        problems += [trial] if isinstance(trial, str) else []
        found += [Fault(problem, file=path, subject=f"source {source.name!r}") for problem in problems]
    if found:
        raise Faults(found, consequence=CONSEQUENCE)


@contextlib.contextmanager
def _opened(
    source: Git | Archive | Folder,
    dataset: Path,
    override: Path | None,
    cache: Path,
    out: Path,
    tell: Callable[[str], None],
) -> Iterator[tuple[State, Iterator[Entry]]]:
    """The state of a source and what it lists."""
    if isinstance(source, Git):
        with git.opened(source, dataset, override, cache, tell) as opened:
            yield opened
    elif isinstance(source, Archive):
        with archive.opened(source, override, cache, tell) as opened:
            yield opened
    else:
        yield State(pinned=False), folder.entries(source, dataset, override, (out, cache))


def _inline(
    source: Inline, dataset: Path, override: Path | None, tally: Tally, ledger: Ledger
) -> Iterator[tuple[Document, int]]:
    """The documents of the dataset's own file, with their lines."""
    path = dataset / CORPUS
    if override is not None:
        what = f"is inline: its documents are in {path}, and no other place can be given"
        raise Misuse("override-inline", what, subject=f"source {source.name!r}")
    if not path.exists():
        raise CouldNot("source-absent", f"{path} does not exist", subject=f"source {source.name!r}")

    def fault(line: int, message: str) -> None:
        ledger.fault(Fault(message, file=path, line=line))

    for line, document in CorpusFile(path).numbered(fault):
        tally.seen += 1
        tally.documents += 1
        tally.bytes += len(document.text.encode())
        name = prefixed(source.prefix or "", document.id)
        yield Document(name, document.title, document.text, {**source.metadata, **document.metadata}), line
    if tally.documents == 0:
        what = "gave no documents: the file is empty"
        ledger.fault(Fault(what, file=path, subject=f"source {source.name!r}"))


def _location(source: Source) -> str:
    """Where a source is, as the recipe has it."""
    match source:
        case Inline():
            return CORPUS
        case Git():
            return git.location(source)
        case Archive():
            return archive.location(source)
        case Folder():
            return source.path


def _locked(source: Source, state: State, tally: Tally) -> LockedSource:
    return LockedSource(
        name=source.name,
        type=source.type,
        location=_location(source),
        pinned=state.pinned,
        branch=source.branch if isinstance(source, Git) else None,
        commit=state.commit,
        tree=state.tree,
        sha256=state.sha256,
        documents=tally.documents,
        bytes=tally.bytes,
        skipped=tally.skipped(),
    )
