"""`eval-core query`: the questions of a set, added after a review."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_core.cli.app import Verbs
from eval_core.cli.workspace import config_option

if TYPE_CHECKING:
    from eval_core.authoring.questions.result import Added
    from eval_core.config import Workspace

_ADD = """\b
Examples:
  eval-core query add datasets/memory asked.jsonl
  eval-core query add datasets/code asked.csv --source agent --dry-run
  eval-core query add sets/notes drafts.csv --sheet
                                           the rows of a sheet of drafts that say yes under keep

\b
A line of JSON, or a row of a CSV with such columns (several documents apart by spaces or semicolons):
  {"text": "who rotates the signing key?", "relevant": ["fact-12"], "category": "indirect"}
  {"text": "…", "relevant": {"fact-12": 2, "fact-30": 1}, "kind": "…", "scope": "…", "exclude": ["…"], "id": "q90"}

Every fault of the file is told with its line, and then nothing is added: unknown documents, no relevant one, what is
asked already in the same or nearly the same words, ids that are taken, documents that its kind or scope would hide.
What is there in the set stays byte for byte; the new lines come behind it.

Exit codes: 0 added, 2 faults in the file or the set, 3 no corpus, or it cannot be written.
"""


@click.group(
    cls=Verbs,
    table={"add": ("eval_core.cli.query:add", "Append questions that people or agents asked, reviewed.")},
)
def query() -> None:
    """Keep the questions of a set."""


@click.command(epilog=_ADD)
@click.argument("dataset", metavar="SET", type=click.Path(path_type=Path))
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--sheet", is_flag=True, help="FILE is a sheet of drafts, as derive --sheet writes: add its kept rows."
)
@click.option(
    "--source", help="Who asked: the queries' metadata `source`.  [default: agent; of a sheet: draft]"
)
@click.option("--split", help="qrels/SPLIT.tsv; the only one, or test.")
@click.option("--allow-similar", is_flag=True, help="Take questions of nearly the same words.")
@click.option("--dry-run", is_flag=True, help="Review and try out, write nothing.")
@config_option("Whose arms measure the set; beside it, .eval holds the corpora.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def add(
    dataset: Path,
    file: Path,
    sheet: bool,
    source: str | None,
    split: str | None,
    allow_similar: bool,
    dry_run: bool,
    config: Path,
    form: str,
) -> None:
    """Append the questions of FILE to the dataset folder SET."""
    from eval_core.authoring.questions.add import add_questions
    from eval_core.config import OUTPUT, load_workspace

    source = source if source is not None else "draft" if sheet else "agent"
    if not source.strip():
        raise click.UsageError("--source is empty; say who asked, such as agent")
    workspace = load_workspace(config) if config.exists() else None
    found = add_questions(
        dataset,
        file,
        source.strip(),
        split=split,
        sheet=sheet,
        output=workspace.root / OUTPUT if workspace else OUTPUT,
        workspace=workspace,
        allow_similar=allow_similar,
        dry_run=dry_run,
    )
    click.echo(found.model_dump_json(by_alias=True, indent=1) if form == "json" else _text(found, workspace))


def _text(found: Added, workspace: Workspace | None) -> str:
    from eval_core.console import clip, count, table

    verb = "would be added" if found.dry_run else "added"
    lines = [
        f"query add  {found.name}   {count(len(found.added), 'question')} {verb}, source {found.source}: "
        f"{found.before:,} → {found.queries:,} queries in {found.split}",
        table([(one.id, clip(one.text, 50), "→", clip(_judged(one.relevant), 34)) for one in found.added]),
    ]
    if found.warnings:
        lines += ["", "To look at: what holds a question's very words is found by any matching of words."]
        lines += [f" {clip(warning, 98)}" for warning in found.warnings]
    lines.append("")
    if not found.arms:
        where = (
            f"No arm of {workspace.path} asks"
            if workspace
            else "No eval.toml is here, so no arm is known to ask"
        )
        lines.append(f"{where} these questions; nothing is to be made anew.")
        return "\n".join(lines)
    at = "" if workspace is None or workspace.root == Path() else f" in {workspace.root}"
    lines += [
        f"The set asks more than its floors stand on, and the gate refuses it until the bar is moved{at}:",
        "commit the set, measure it twice and read what is proposed, then write it, in a commit of its own.",
        *(f"  {command}" for command in found.next),
        "The file of questions counts as an uncommitted change where it lies in the repository. A question that is not",
        'found lowers the bar, which says why:  --reason floors="…" beside the other.',
    ]
    return "\n".join(lines)


def _judged(relevant: dict[str, int]) -> str:
    return ", ".join(name if grade == 1 else f"{name} ({grade})" for name, grade in relevant.items())
