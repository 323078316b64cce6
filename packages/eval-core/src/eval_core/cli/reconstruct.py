"""`eval-core reconstruct`: build corpora from their pinned sources."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_core.cli.workspace import beside, config_option

if TYPE_CHECKING:
    from eval_core.reconstruct.lock import Lock
    from eval_core.sets.definition import Definition

_EXAMPLES = """\b
Examples:
  eval-core reconstruct                              all sets of eval.toml
  eval-core reconstruct datasets/code                one set
  eval-core reconstruct datasets/kb --source notes=../learning-notes
"""


@dataclass(frozen=True, slots=True)
class _Set:
    """A dataset folder and what its `dataset.toml` says, None in a plain BEIR folder."""

    folder: Path
    definition: Definition | None

    @property
    def name(self) -> str:
        return self.definition.name if self.definition else self.folder.resolve().name

    @property
    def sources(self) -> list[str]:
        recipe = self.definition.corpus if self.definition else None
        return [source.name for source in recipe.source] if recipe else []


@click.command(epilog=_EXAMPLES)
@click.argument("dataset", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--source",
    "sources",
    multiple=True,
    metavar="NAME=PATH",
    help="Read a source from another place; its commit or digest must still fit. May be repeated. "
    "The environment variable EVAL_SOURCE_NAME does the same.",
)
@config_option()
@beside("--out", place=".eval/corpora", text="Where corpora are written, a folder each.")
@beside("--cache", place=".eval/cache", text="Where what was fetched is kept.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def reconstruct(
    dataset: tuple[Path, ...],
    sources: tuple[str, ...],
    config: Path,
    out: Path,
    cache: Path,
    form: str,
) -> None:
    """Build the corpora of DATASET folders (of all arms' sets where none is named) from their sources.

    Each gets OUT/NAME/corpus.jsonl and lock.json, which tells sources, commits, counts and what was skipped. The same
    recipe gives the same bytes on every machine.
    """
    from eval_core.files import refuse_input
    from eval_core.policy import POLICY
    from eval_core.reconstruct import relevant_overrides

    given = parse_sources(sources)
    sets = _sets(dataset, config)
    overrides = relevant_overrides((found.definition for found in sets), given)
    for found in sets:
        if found.sources:
            refuse_input("--out", out / found.name, [found.folder, config.parent / POLICY])
    width = max(len(found.name) for found in sets)
    locks = []
    for found in sets:
        lock = _one(found, out, cache, overrides)
        locks.append(lock)
        if form == "table":
            click.echo("\n".join([lock_line(lock, width), *lock_details(lock)]))
    if form == "json":
        tables = [lock.model_dump(mode="json", by_alias=True, exclude_none=True) for lock in locks]
        click.echo(json.dumps(tables, indent=2, ensure_ascii=False))


def _sets(folders: tuple[Path, ...], config: Path) -> list[_Set]:
    """The sets that are asked for."""
    from eval_core.config import load_workspace
    from eval_core.errors import Misuse
    from eval_core.sets.definition import read_definition

    if not folders:
        workspace = load_workspace(config)
        folders = tuple(dict.fromkeys(workspace.dataset_folder(arm) for arm in workspace.arms.values()))
    sets: dict[str, _Set] = {}
    for folder in folders:
        if not folder.is_dir():
            raise Misuse("dataset-missing", "there is no such dataset folder", file=folder)
        found = _Set(folder, read_definition(folder))
        other = sets.setdefault(found.name, found)
        if other.folder.resolve() != folder.resolve():
            raise Misuse(
                "dataset-name-twice",
                f"has the name {found.name!r}, as {other.folder} does; give one of them another name",
                file=folder,
            )
    return list(sets.values())


def parse_sources(sources: tuple[str, ...]) -> dict[str, Path]:
    """The overrides that `--source NAME=PATH` gives, by name; relative paths are the current folder's.

    Raises:
        Misuse: one is not of that form, or a name comes twice.
    """
    from eval_core.errors import Misuse

    given: dict[str, Path] = {}
    for text in sources:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise Misuse("override-malformed", "write NAME=PATH", key="--source", value=text)
        if name in given:
            raise Misuse("override-malformed", "was given twice", key="--source", value=name)
        given[name] = Path(path).expanduser().absolute()
    return given


def _one(found: _Set, out: Path, cache: Path, overrides: Mapping[str, Path]) -> Lock:
    """The lock of one set; a set without recipe is only read, and its lock not written."""
    from eval_core.reconstruct import reconstruct as build
    from eval_core.reconstruct import survey

    if found.definition is None or found.definition.corpus is None:
        return survey(found.folder, found.name, found.definition.version if found.definition else "")
    own = {name: path for name, path in overrides.items() if name in found.sources}
    return build(
        found.folder,
        found.definition,
        out / found.name,
        overrides=own,
        cache=cache,
        progress=lambda line: click.echo(f"{found.name}: {line}", err=True),
    )


def lock_line(lock: Lock, width: int = 0) -> str:
    """The line that sums a lock up: name (padded to `width`), documents, what they come from, digest."""
    from eval_core.console import count

    documents = f"{lock.documents:>7,} {'document ' if lock.documents == 1 else 'documents'}"
    nouns = {"inline": "inline", "git": "git", "archive": "archive", "dir": "folder"}
    kinds = [source.type for source in lock.sources]
    counts = {kind: sum(1 for found in kinds if found == kind) for kind in nouns}
    words = [
        count(counts[kind], noun, "git" if kind == "git" else None)
        for kind, noun in nouns.items()
        if counts[kind]
    ]
    if set(kinds) == {"inline"}:
        words = ["inline"]
    elif kinds:
        words.append("pinned" if lock.pinned else "unpinned")
    made_of = ", ".join(words) or "as it is on disk"
    return f"reconstruct  {lock.dataset:<{width}}  {documents}   {made_of:<25}  sha256 {lock.digest[:12]}…"


def lock_details(lock: Lock) -> Iterator[str]:
    """What else a person should know of a lock: what is not pinned, and what was skipped."""
    from eval_core.console import clip
    from eval_core.reconstruct.selection import summary

    for source in lock.sources:
        if not source.pinned:
            state = (
                f"follows branch {source.branch!r}, now {source.commit}" if source.branch else "as it is now"
            )
            yield f"  unpinned  {source.name}: {source.location} {state}"
        if skipped := summary(source.skipped):
            yield f"  skipped   {source.name}: {skipped}"
        for file in source.skipped.oversize:
            yield f"            {clip(file.path, 60)}  {file.bytes:,} bytes"
