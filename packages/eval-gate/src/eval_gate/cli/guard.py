"""`eval-gate guard`: every judged file of a manifest or a set is a file of the commit."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_core.cli.workspace import beside, config_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from eval_core.errors import Fault
    from eval_core.reconstruct.tree import Tree
    from eval_gate.guard import Finding, GuardVerdict, Judged

_EPILOG = """\b
Examples:
  eval-gate guard eval/manifest.json           a manifest of a retrieval comparison, either form
  eval-gate guard datasets/code                a set: its documents that are files of this repository
  eval-gate guard                              every set of eval.toml
  eval-gate guard eval/manifest.json --root docs --commit v1.2 --format json

A manifest is {"id": "docs", "queries": [{"id": "q1", "query": "how to install", "ground_truth": ["docs/install.md"]}]},
or the older form [{"query": "how to install", "relevant": ["docs/install.md"]}].

Paths are looked up in the tree of the commit, not in the working tree: what another clone gets is what counts. A file
of a source that pins a commit is looked up in that one.
Zero judged paths fail.

\b
Exit codes: 0 every judged path is a file of the commit; 1 a path is not, or nothing was looked
at; 2 wrong usage, manifest or set; 3 no repository, no such commit, or a damaged one.
"""

#: Findings that a person is shown; JSON has all of them.
SHOWN = 20


@click.command(epilog=_EPILOG)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@beside(
    "--repo",
    place="",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    text="The repository, or a folder inside it.",
)
@click.option(
    "--commit", "revision", default="HEAD", show_default=True, metavar="REV", help="The commit to look in."
)
@click.option("--root", default="", metavar="DIR", help="The folder of it that manifests' paths start from.")
@config_option("Names the sets that are looked at where no PATH is given.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def guard(paths: tuple[Path, ...], repo: Path, revision: str, root: str, config: Path, form: str) -> int:
    """Check that every judged path exists as a file in a commit's tree; exit 1 unless all do.

    PATH is a manifest file or the folder of a set.
    """
    from eval_core.reconstruct.tree import opened
    from eval_gate.guard.judge import judge

    if not revision.strip():
        raise click.UsageError("--commit is empty; name a commit, a branch or a tag")
    places = _places(paths, config)
    below = _root(root)
    with contextlib.ExitStack() as stack:
        tree = stack.enter_context(opened(repo, revision))
        at = functools.cache(lambda commit: stack.enter_context(opened(repo, commit)))
        if tree.find(below.encode()).kind != "folder":
            raise click.UsageError(
                f"--root {root!r}: is not a folder of commit {tree.commit[:7]} ({revision})"
            )
        verdict = judge(_judged(places, tree, below.encode(), at), tree, revision, below, at)
    if form == "json":
        click.echo(verdict.model_dump_json(by_alias=True, indent=1))
    else:
        click.echo(_terminal(verdict))
    return verdict.exit_code


def _places(paths: tuple[Path, ...], config: Path) -> list[Path]:
    """What to look at: the paths given, else the sets of eval.toml; each once."""
    if not paths:
        if not config.exists():
            raise click.UsageError(
                f"nothing to look at: name manifests or sets, for there is no {config} here"
            )
        from eval_core.config import load_workspace

        workspace = load_workspace(config)
        paths = tuple(workspace.dataset_folder(arm) for arm in workspace.arms.values())
    return list({path.resolve(): path for path in reversed(paths)}.values())[::-1]


def _root(root: str) -> str:
    parts = [part for part in root.split("/") if part not in ("", ".")]
    if root.startswith("/") or "\\" in root or ".." in parts:
        raise click.UsageError(f"--root {root!r}: write it relative to the repository's top, with slashes")
    return "/".join(parts)


def _judged(places: list[Path], tree: Tree, root: bytes, at: Callable[[str], Tree]) -> list[Judged]:
    """Read all inputs; the faults of all of them are told at once."""
    from eval_core.errors import Faults
    from eval_gate.guard import read_judged

    found = []
    faults: list[Fault] = []
    for place in places:
        try:
            found.append(read_judged(place, tree, root, at))
        except Faults as error:
            faults += error.faults
    if faults:
        raise Faults(faults, consequence="nothing was looked at")
    return found


def _terminal(verdict: GuardVerdict) -> str:
    """The whole text: the answer, the findings, what was looked at, what to do next."""
    from eval_core.console import clip, table

    lines = [_head(verdict)]
    for finding in verdict.findings[:SHOWN]:
        lines += ["", *_finding(finding, several=len(verdict.inputs) > 1)]
    if len(verdict.findings) > SHOWN:
        lines += ["", f" … {len(verdict.findings) - SHOWN} more; --format json lists all"]
    optional = {"elsewhere": "not of this repository", "skipped": "without a path", "unread": "keys unread"}
    columns = [name for name in optional if any(getattr(looked, name) for looked in verdict.inputs)]
    rows = [("input", "form", "queries", "paths", *(optional[name] for name in columns))]
    for looked in verdict.inputs:
        counts = (looked.queries, looked.paths, *(getattr(looked, name) for name in columns))
        rows.append((_end(clip(looked.input, 2000)), looked.form, *(f"{number:,}" for number in counts)))
    lines += ["", table(rows, right=range(2, 4 + len(columns)))]
    return "\n".join([*lines, "", *_next(verdict)])


def _end(name: str) -> str:
    """The end of a name, which tells more than its beginning."""
    return name if len(name) <= 56 else f"…{name[-55:]}"


def _head(verdict: GuardVerdict) -> str:
    from eval_core.console import clip, count, paint

    revision = clip(verdict.revision, 40)
    short = verdict.commit[:7]
    commit = short if verdict.commit.startswith(verdict.revision) else f"{short} ({revision})"
    if verdict.exit_code == 0:
        each = "is a file" if verdict.checked == 1 else "all are files"
        return f"{paint('PASS', 'green')}  {count(verdict.checked, 'judged path')}, {each} of commit {commit}"
    fail = paint("FAIL", "red")
    bad = sum(finding.path is not None for finding in verdict.findings)
    if bad:
        are = "is not a file" if bad == 1 else "are not files"
        return f"{fail}  {bad:,} of {count(verdict.checked, 'judged path')} {are} of commit {commit}"
    return f"{fail}  {count(verdict.checked, 'judged path')} looked up in commit {commit}"


def _finding(finding: Finding, *, several: bool) -> list[str]:
    from eval_core.console import clip

    lines = [
        f" {finding.code}  {clip(finding.path if finding.path is not None else finding.input, 2000)}".rstrip()
    ]
    lines.append(f"   {clip(finding.message, 2000)}")
    if finding.path is None:
        return lines
    few = ", ".join(clip(query, 30) for query in finding.queries[:5])
    more = f" and {len(finding.queries) - 5} more" if len(finding.queries) > 5 else ""
    lines.append(f"   ground truth of {few}{more}")
    if several:
        lines.append(f"   in {clip(finding.input, 2000)}")
    if finding.nearest is not None:
        lines.append(f"   nearest: {clip(finding.nearest, 2000)}")
    return lines


def _next(verdict: GuardVerdict) -> list[str]:
    if verdict.exit_code == 0:
        return ["Next: nothing; another clone of this commit has every judged file."]
    steps = []
    if any(finding.code == "guard-vacuous" for finding in verdict.findings):
        steps.append(
            "name a manifest with ground truth, or a set whose documents are files of this repository"
        )
    if any(finding.in_work_tree for finding in verdict.findings):
        steps.append("commit what lies only in the working tree (git add)")
    if any(finding.path is not None and not finding.in_work_tree for finding in verdict.findings):
        steps.append("put the file back, or name what took its place in a commit of its own")
    first, *others = steps
    return [f"Next: {first}", *(f"      {step}" for step in others)]
