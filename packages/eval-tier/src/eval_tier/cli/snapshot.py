"""`eval-tier snapshot`: what a forge enforces on a branch, written down so that anyone can audit it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from eval_tier.evidence.settings import Settings

_EPILOG = """\b
Examples:
  eval-tier snapshot OWNER/NAME                     the default branch, to policy/settings/OWNER--NAME.json
  eval-tier snapshot OWNER/NAME --branch release    another branch
  GITHUB_TOKEN=… eval-tier snapshot OWNER/NAME      with what only its administrators may see

It only reads, and the token, from GITHUB_TOKEN or GH_TOKEN, is neither printed nor kept. What the token may not see
is said, and unknown to the audit. A snapshot is of use for 30 days; taken again, it asks only for what changed.

\b
Exit codes: 0 taken; 2 wrong usage; 3 the forge gave no answer, and nothing was written.
"""


@click.command(epilog=_EPILOG)
@click.argument("repository", metavar="OWNER/NAME")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write it.  [default: policy/settings/OWNER--NAME.json]",
)
@click.option("--branch", help="The branch.  [default: the repository's default branch]")
@click.option("--api", default="https://api.github.com", show_default=True, help="The address of the API.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def snapshot(repository: str, output: Path | None, branch: str | None, api: str, form: str) -> int:
    """Ask GitHub what it enforces on a branch, and write the answers down. Nothing is changed there."""
    import os
    import sys
    from datetime import UTC, datetime

    from eval_core.files import refuse_input
    from eval_tier.evidence.settings import read_settings
    from eval_tier.snapshot import check_name, default_file, take

    check_name(repository)
    into = output or default_file(repository)
    refuse_input("-o", into, ())
    shown = sys.stderr.isatty()

    def say(text: str) -> None:
        if shown or not text.startswith("GET "):
            click.echo(text, err=True)

    token = os.environ.get("GITHUB_TOKEN") or os.environ.get("GH_TOKEN") or None
    taken = take(repository, branch, into=into, api=api, token=token, say=say)
    raw = into.read_bytes()
    if form == "json":
        click.echo(raw.decode("utf-8"), nl=False)
        return 0
    click.echo("\n".join(_lines(read_settings(raw, str(into), datetime.now(UTC)), taken.observed)))
    return 0


def _lines(found: Settings, observed: str) -> Iterator[str]:
    from eval_core.console import clip, table
    from eval_tier.evidence.settings import Unknown

    yield f"{found.repository}, branch {clip(found.branch, 60)}, observed {observed} → {clip(found.file, 80)}"
    unknown: list[Unknown] = []

    def cell(value: Any, words: Any) -> str:
        if isinstance(value, Unknown):
            unknown.append(value)
            return "unknown"
        return str(words(value))

    rows: list[tuple[str, ...]] = []
    if isinstance(found.required, Unknown):
        rows.append(("required", cell(found.required, str)))
    elif not found.required:
        rows.append(("required", "nothing"))
    for context in () if isinstance(found.required, Unknown) else found.required:
        label = "" if rows else "required"
        rows.append((label, clip(context.name, 50), _app(context.app), clip(context.source, 50)))
    if found.partial is not None:
        rows.append(("and more", cell(found.partial, str)))
    rows += [("workflow", clip(file, 50)) for file in found.workflows]
    rows.append(("queue", cell(found.queue, lambda on: "yes" if on else "no")))
    rows.append(("admins", cell(found.admins, lambda on: "bound" if on else "not bound")))
    rows.append(("bypass", cell(found.bypass, lambda who: clip(", ".join(who), 80) or "nobody")))
    yield table(rows)
    for why, mend in dict.fromkeys((one.why, one.mend) for one in unknown):
        yield f"unknown: {clip(why, 300)}"
        yield f"  {mend}"
    yield from (f"note: {clip(note, 200)}" for note in found.notes)
    yield "Next: eval-tier audit          place the repository with these settings"


def _app(app: int | None) -> str:
    return {None: "any app", 15368: "GitHub Actions"}.get(app, f"app {app}")
