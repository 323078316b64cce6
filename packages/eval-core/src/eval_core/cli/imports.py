"""`eval-core import`: judged queries of another tool's file as a set, by the importers that are installed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from eval_core.imports import Imported, Importer

_EPILOG = """\b
Examples:
  eval-core import records asked.csv --corpus docs -o sets/support
  eval-core import records cases.json --corpus corpus.jsonl --expected source --match substring -o sets/cases
  eval-core import gold gold_set.yaml --corpus ../notes -o sets/notes
  eval-core import trec topics.txt --qrels qrels.txt --corpus corpus.jsonl -o sets/trec

Exit codes: 0 imported, 2 wrong usage or input, 3 could not. What was left out is named, and is no failure.
"""

#: Queries that are left out are named up to so many.
_NAMED = 10


class _Formats(click.Group):
    """A verb an importer, found by the entry points of the installed packages."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from eval_core.backend import names
        from eval_core.imports import GROUP

        return names(GROUP)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        from eval_core.imports import load

        found = load(cmd_name)
        return found if isinstance(found, click.Command) else _command(cmd_name, found)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from eval_core.errors import EvalError
        from eval_core.imports import load

        rows = []
        for name in self.list_commands(ctx):
            try:
                found = load(name)
                says = found.get_short_help_str(90) if isinstance(found, click.Command) else found.SUMMARY
                rows.append((name, says))
            except EvalError as error:
                rows.append((name, error.message))
        with formatter.section("Formats"):
            formatter.write_dl(rows)


@click.group("import", cls=_Formats, subcommand_metavar="FORMAT PATH -o FOLDER [OPTION]...", epilog=_EPILOG)
def import_() -> None:
    """Turn judged queries in another tool's file into a set: queries, judgements, and the corpus they are about."""


def _command(name: str, importer: Importer) -> click.Command:
    @click.command(name, help=importer.SUMMARY)
    @click.argument("path", type=click.Path(path_type=Path))
    @click.option(
        "-o",
        "--out",
        metavar="FOLDER",
        required=True,
        type=click.Path(path_type=Path),
        help="The set to be written.",
    )
    @click.option(
        "--corpus",
        type=click.Path(path_type=Path),
        help="The documents: a corpus.jsonl, a set's folder, or a folder of files, which stay where they are.",
    )
    @click.option(
        "--include",
        multiple=True,
        metavar="GLOB",
        help="Which files of that folder. Repeatable.  [default: all]",
    )
    @click.option(
        "--match",
        type=click.Choice(["id", "path", "prefix", "substring"]),
        help="How documents are named: by id, by the end of the path, or by a beginning or part of either.  "
        "[default: path for a folder of files, else id]",
    )
    @click.option(
        "--any/--all",
        "any_of",
        default=None,
        help="Whether any expected document suffices (headline hit@1) or each counts.  [default: any for gold]",
    )
    @click.option("--name", help="What the set is called.  [default: from the folder's name]")
    @click.option("--force", is_flag=True, help="Replace the set that is at FOLDER.")
    @click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
    def command(path: Path, out: Path, form: str, **options: Any) -> None:
        from eval_core.console import as_json
        from eval_core.imports import import_set

        common = {key: options.pop(key) for key in ("corpus", "include", "match", "any_of", "name", "force")}
        found = import_set(name, importer, path, out, **common, options=options)
        click.echo(as_json(found.model_dump(by_alias=True)) if form == "json" else _text(found))

    command.params += importer.OPTIONS
    return command


def _text(found: Imported) -> str:
    import shlex

    from eval_core.console import clip, count, safe, table

    lines = [
        f"import  {found.name}   {count(found.queries, 'query', 'queries')}, {count(found.judgements, 'judgement')}, "
        f"{count(found.documents, 'document')}, found by {found.match}",
        " read      " + safe(", ".join(f"{role} from {name!r}" for role, name in found.fields.items())),
        " relevant  "
        + (
            "any of the expected documents; headline hit@1"
            if found.truth == "any"
            else "each expected document"
        ),
    ]
    if found.left_out:
        total = found.queries + len(found.left_out)
        lines.append(f" left out  {len(found.left_out):,} of {count(total, 'query', 'queries')}")
        rows = [
            (f"{safe(found.file)}:{one.line}", clip(one.id, 24), clip(one.what, 100))
            for one in found.left_out[:_NAMED]
        ]
        lines.append(table(rows, indent="   "))
        if (more := len(found.left_out) - _NAMED) > 0:
            lines.append(f"   … {more:,} more: --format json")
    if found.dropped:
        dropped = ", ".join(f"{name} ({number:,})" for name, number in found.dropped.items())
        lines.append(f" dropped   {safe(dropped)}")
    lines += [f" warning   {safe(warning)}" for warning in found.warnings]
    lines += ["", f"Next: eval-core validate {shlex.quote(found.folder)}"]
    return "\n".join(lines)
