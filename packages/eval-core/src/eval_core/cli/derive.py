"""`eval-core derive`: a set of drafts out of a repository's doc comments and names, or of notes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_core.cli.app import Verbs

if TYPE_CHECKING:
    from eval_core.authoring.derive.result import Drafted

_CODE = """\b
Examples:
  eval-core derive code --repo . --commit HEAD -o sets/mine
  eval-core derive code --repo ../lib --commit 08ae892… --root src --exclude 'vendor/**' -o sets/lib
  eval-core derive code --repo ../lib --commit v2.1 --limit 200 --format json -o sets/lib

Semantic drafts are first sentences of doc comments: Python (by its grammar), JavaScript, TypeScript, Java, C, C++, C#,
PHP, Rust, Swift, Go and Ruby (by the forms of their comments). Identifier drafts are names that stand in one file.
Nothing is drafted from tests, unless --include or --root names them (--include 'tests/**').
The repository is read from its objects; what is not committed plays no part, and the same commit gives the same drafts.
"""

_NOTES = """\b
Examples:
  eval-core derive notes --path ../notes -o sets/notes
  eval-core derive notes --path ../notes --name kb --limit 100 -o sets/kb
  eval-core derive notes --path ../notes -o sets/notes --sheet drafts.csv

Headings and front matter (title, aliases) ask for their own note. A wiki link [[target#heading|alias]] asks for its
target: by its alias, or by the sentence that it begins. Nothing is drafted from change logs and tests.
The folder is read as it is now, so its set is not pinned.
"""

_EPILOG = """\b
Examples:
  eval-core derive code --repo . --commit HEAD -o sets/mine
  eval-core derive notes --path ../notes -o sets/notes

Exit codes: 0 written, 1 nothing to draft from, 2 wrong usage, 3 could not.
"""


@click.group(
    cls=Verbs,
    table={
        "code": ("eval_core.cli.derive:code", "Draft from a repository's doc comments and names."),
        "notes": ("eval_core.cli.derive:notes", "Draft from the headings and links of Markdown notes."),
    },
    epilog=_EPILOG,
)
def derive() -> None:
    """Draft a judged set out of what is written already, for a person to put in other words."""


_OUT = click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="The dataset folder to be written; refused where it holds anything.",
)
_NAME = click.option(
    "--name", help="What the set and its source are called.  [default: from the folder's name]"
)
_LIMIT = click.option("--limit", type=click.IntRange(min=1), help="Keep so many drafts, evenly spread.")
_SHEET = click.option(
    "--sheet",
    type=click.Path(path_type=Path),
    metavar="FILE.csv",
    help="Write the drafts there, to be reworded or dropped row by row; the set gets no query yet.",
)
_FORMAT = click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)


@click.command(epilog=_CODE)
@click.option("--repo", type=click.Path(path_type=Path), required=True, help="A repository on this machine.")
@click.option(
    "--commit", required=True, help="The commit: its id, or a name for it. The set gets the full id."
)
@click.option(
    "--include", multiple=True, metavar="GLOB", help="Take only such files. Repeatable.  [default: all]"
)
@click.option("--exclude", multiple=True, metavar="GLOB", help="Leave such files out. Repeatable.")
@click.option("--root", default="", help="A folder of the repository; globs and ids are below it.")
@_NAME
@_LIMIT
@_OUT
@_SHEET
@_FORMAT
def code(
    repo: Path,
    commit: str,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    root: str,
    name: str | None,
    limit: int | None,
    out: Path,
    sheet: Path | None,
    form: str,
) -> None:
    """Draft queries about the files of a commit."""
    from eval_core.authoring.derive.code import derive_code

    found = derive_code(
        repo,
        commit,
        out,
        name=name,
        include=include,
        exclude=exclude,
        root=root.strip("/"),
        limit=limit,
        sheet=sheet,
    )
    _show(found, form)


@click.command(epilog=_NOTES)
@click.option("--path", type=click.Path(path_type=Path), required=True, help="The folder of the notes.")
@_NAME
@_LIMIT
@_OUT
@_SHEET
@_FORMAT
def notes(path: Path, name: str | None, limit: int | None, out: Path, sheet: Path | None, form: str) -> None:
    """Draft queries about Markdown notes."""
    from eval_core.authoring.derive.notes import derive_notes

    _show(derive_notes(path, out, name=name, limit=limit, sheet=sheet), form)


def _show(found: Drafted, form: str) -> None:
    if form == "json":
        click.echo(found.model_dump_json(by_alias=True, indent=1))
    else:
        click.echo(_text(found))


#: Files that do not parse are named up to so many.
_NAMED = 5


def _text(found: Drafted) -> str:
    import shlex
    import textwrap

    from eval_core.authoring.derive.drafts import dropped_words
    from eval_core.console import clip, count, table

    at = f" at {found.commit[:7]}" if found.commit else ", unpinned"
    by = ", ".join(f"{number:,} {source}" for source, number in found.sources.items())
    of = f" of {found.found:,}" if found.found != found.queries else ""
    lines = [
        f"derive  {found.name}   {count(found.documents, 'document')}{at}   "
        f"{found.queries:,}{of} {'draft' if found.queries == 1 else 'drafts'}: {by}"
    ]
    if dropped := ", ".join(dropped_words(found.dropped)):
        lines.append(textwrap.fill(dropped, 98, initial_indent=" left out  ", subsequent_indent=" " * 11))
    if found.unparsed:
        more = f", … {len(found.unparsed) - _NAMED:,} more" if len(found.unparsed) > _NAMED else ""
        names = ", ".join(clip(path, 60) for path in found.unparsed[:_NAMED])
        lines.append(f" skipped   {count(len(found.unparsed), 'file')} not parsed: {names}{more}")
    rows = [
        (one.id, one.source, clip(one.text, 46), "→", _end(", ".join(one.documents), 32))
        for one in found.samples
    ]
    folder = shlex.quote(found.folder)
    lines += [
        table(rows),
        "",
        "These are drafts. Each shares its words with the document that it asks for, so any matching of",
        "words finds it, and a number measured on them says nothing. A person must put each in their own",
        "words and judge it, or "
        + ("say no under keep in its row" if found.sheet else "delete it and its judgements")
        + ". Next:",
    ]
    steps = [
        (f"eval-core reconstruct {folder}", "build the corpus"),
    ]
    if found.sheet:
        sheet = shlex.quote(found.sheet)
        steps.append((f"eval-core query add {folder} {sheet} --sheet", "add the rows that are kept"))
    steps += [
        (f"eval-core validate {folder}", "after each edit: all that is wrong"),
        (
            f"eval-core inspect {folder} --headroom",
            "words still shared; what simple rankers get",
        ),
        (f"eval-core query add {folder} FILE", "append what people or agents really asked"),
    ]
    lines.append(table(steps, indent="  "))
    return "\n".join(lines)


def _end(text: str, columns: int) -> str:
    """The end of a text in so many columns: of a path, the file's name says most."""
    from eval_core.console import clip, width

    shown = clip(text, 10_000)
    while width(shown) > columns:
        shown = "…" + shown[2:]
    return shown
