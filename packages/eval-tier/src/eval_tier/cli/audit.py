"""`eval-tier audit`, `why` and `rules`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eval_tier.audit import Subject
    from eval_tier.models import Placement

_EPILOG = """\b
Examples:
  eval-tier audit                              policy/fleet.toml where it is, else this repository
  eval-tier audit ~/src/*                      several checkouts
  eval-tier audit . --min-mechanism 2          exit 1 unless its files show tier 2
  eval-tier audit . --settings settings.json   with what the forge requires
  eval-tier audit --format markdown            the fleet as a page
  eval-tier audit --against before.json        what changed since an earlier --format json

A tier is the longest prefix of rungs whose every predicate is proven; what is unknown never promotes. The mechanism
is what files show, the effect what the forge's settings make of it.

\b
Exit codes: 0 all at or above the bar (without one: something was placed); 1 some are below or undetermined, or have a
malformed file; 2 wrong usage or fleet file; 3 one could not be read (no repository, no such commit), or a rule broke.
"""

_PATHS = click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
_FLEET = click.option(
    "--fleet",
    "fleet_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The fleet; policy/fleet.toml.",
)
_REF = click.option(
    "--ref", "revision", default="HEAD", show_default=True, metavar="REV", help="The commit to read."
)
_TREE = click.option(
    "--work-tree", is_flag=True, help="Read the files of the working tree, committed or not."
)
_SETTINGS = click.option(
    "--settings",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What the forge requires, of the one PATH.",
)


@click.command(epilog=_EPILOG)
@_PATHS
@_FLEET
@_REF
@_TREE
@_SETTINGS
@click.option(
    "--min-tier", type=click.IntRange(0, 3), metavar="N", help="Exit 1 unless all are at tier N in effect."
)
@click.option(
    "--min-mechanism",
    type=click.IntRange(0, 3),
    metavar="N",
    help="Exit 1 unless the files of all show tier N.",
)
@click.option("--explain", metavar="RULE", help="Show one rule over all of them.")
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="FILE.json",
    help="An earlier audit: what changed since.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "markdown", "badge"]),
    default="table",
    show_default=True,
)
def audit(
    paths: tuple[Path, ...],
    fleet_file: Path | None,
    revision: str,
    work_tree: bool,
    settings: Path | None,
    min_tier: int | None,
    min_mechanism: int | None,
    explain: str | None,
    against: Path | None,
    form: str,
) -> int:
    """Place repositories on the ladder, by their files and by what their forge requires."""
    from eval_tier import render

    _rules(explain)
    if work_tree and revision != "HEAD":
        raise click.UsageError("--ref reads a commit and --work-tree what lies on the disk: name one of them")
    subjects = _subjects(paths, fleet_file, settings)
    if form == "badge" and len(subjects) != 1:
        raise click.UsageError(f"a badge is one repository's, and {len(subjects)} are audited")
    now = datetime.now(UTC)
    earlier = None if against is None else _earlier(against)
    placements: list[Placement] = []
    for placement in _all(subjects, revision, now, work_tree):
        if form == "json":  # as they come: a fleet's findings are many
            click.echo(render.begin(now) if not placements else ",")
            click.echo(render.one(placement, explain), nl=False)
        placements.append(placement.short(explain))
    bar, short = _bar(placements, min_tier, min_mechanism)
    if form == "json":
        click.echo(render.END)
    elif form == "markdown":
        click.echo(render.as_markdown(placements))
    elif form == "badge":
        click.echo(render.badge(placements[0]))
    elif explain is not None:
        click.echo(render.by_rule(placements, explain))
    else:
        known = {subject.title: subject.words(fleet_file) for subject in subjects}
        click.echo(render.as_table(placements, now, bar, known))
        for line in [] if earlier is None else _drift(placements, earlier):
            click.echo(line)
        _say_slow()
    if form != "json" and form != "table":
        for line in render.faults(placements):
            click.echo(line, err=True)
    return _exit(placements, short, earlier)


@click.command(
    epilog="\b\nExamples:\n  eval-tier why .\n  eval-tier why kb-agent --fleet policy/fleet.toml\n\n"
    "Exit codes: 0 placed; 1 undetermined, or a malformed file; 2 wrong usage or fleet file; 3 it could not be read."
)
@click.argument("repository", default=".", metavar="[REPO]")
@_FLEET
@_REF
@_TREE
@_SETTINGS
def why(
    repository: str, fleet_file: Path | None, revision: str, work_tree: bool, settings: Path | None
) -> int:
    """Say what keeps a repository from its next tier, where, and the one thing to do.

    REPO is a folder, or the name of a repository of the fleet.
    """
    from eval_core.errors import did_you_mean
    from eval_tier import render
    from eval_tier.fleet import FLEET

    subject = None
    if fleet_file is not None or (FLEET.is_file() and not Path(repository).is_dir()):
        subjects = _subjects((), fleet_file, None)
        known = {subject.repository.title: subject for subject in subjects}
        subject = known.get(repository)
        if subject is None and not Path(repository).is_dir():
            raise click.UsageError(
                f"there is no repository {repository!r}{did_you_mean(repository, known)}  ({', '.join(known)})"
            )
    if subject is None:
        subject = _subjects((Path(repository),), None, settings)[0]
    now = datetime.now(UTC)
    placement = _placed(subject, revision, now, work_tree)
    click.echo(render.explained(placement))
    for fault in placement.faults:
        from eval_core.console import clip

        click.echo(f"error  {clip(fault, 200)}")
    return _exit([placement], False, None)


@click.command(
    epilog="\b\nExamples:\n  eval-tier rules\n  eval-tier rules T204\n  eval-tier rules --format json"
)
@click.argument("rule", required=False)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def rules(rule: str | None, form: str) -> int:
    """List the rules of the audit; with RULE, say why it is asked and what mends it."""
    from eval_core.console import as_json, table

    held = _rules(rule)
    if rule is not None:
        held = tuple(one for one in held if one.id == rule)
    rows = [
        {
            "id": one.id,
            "tier": one.tier,
            "about": one.half,
            "title": one.title,
            "requires": list(one.requires),
            "declarable": one.declarable,
            "why": one.why,
        }
        for one in held
    ]
    if form == "json":
        click.echo(as_json(rows))
    elif rule is not None:
        import textwrap

        click.echo(f"{held[0].id}  {held[0].title}  (tier {held[0].tier}, {held[0].half})")
        click.echo(textwrap.fill(held[0].why, 100, initial_indent="  ", subsequent_indent="  "))
    else:
        click.echo(
            table(
                [("rule", "tier", "about", "title"), *((o.id, str(o.tier), o.half, o.title) for o in held)],
                indent="",
            )
        )
    return 0


def _rules(named: str | None) -> tuple[Any, ...]:
    from eval_core.errors import did_you_mean
    from eval_tier.rules import registered

    held = registered()
    if named is not None and named not in {rule.id for rule in held}:
        known = [rule.id for rule in held]
        raise click.UsageError(
            f"there is no rule {named!r}{did_you_mean(named, known)}  (eval-tier rules lists them)"
        )
    return held


def _subjects(paths: tuple[Path, ...], fleet_file: Path | None, settings: Path | None) -> list[Subject]:
    """What to audit: the folders that are named, else the fleet, else this repository."""
    from eval_tier.audit import Subject, folder
    from eval_tier.fleet import FLEET, read_fleet

    if paths and fleet_file is not None:
        raise click.UsageError("name folders or --fleet, not both")
    if not paths and (fleet_file is not None or FLEET.is_file()):
        if settings is not None:
            raise click.UsageError(
                "--settings goes with one PATH; in a fleet file it is a key of the repository"
            )
        file = fleet_file or FLEET
        base = file.absolute().parent
        base = base.parent if base.name == "policy" else base
        return [Subject(base, repository) for repository in read_fleet(file).repository]
    named = paths or (Path(),)
    if settings is not None and not settings.is_file():
        raise click.UsageError(f"--settings {str(settings)!r}: there is no such file")
    if settings is not None and len(named) > 1:
        raise click.UsageError(f"--settings is one repository's, and {len(named)} are named")
    if settings is not None:
        from eval_tier.evidence.settings import read_settings

        read_settings(settings.read_bytes(), str(settings), datetime.now(UTC))  # malformed: wrong usage
    # What the fleet declares of a folder holds however it is named.
    declared = {}
    if settings is None and FLEET.is_file():
        fleet = [Subject(Path().absolute(), repository) for repository in read_fleet(FLEET).repository]
        declared = {subject.path.resolve(): subject for subject in fleet if subject.path is not None}
    # A folder that is named twice, as by a pattern and by hand, is one repository.
    apart = {path.resolve(): path for path in named}
    return [declared.get(place) or folder(path, settings) for place, path in apart.items()]


#: Repositories for which it pays to start another process.
SHARE = 25


def _all(subjects: list[Subject], revision: str, now: datetime, work_tree: bool) -> Iterator[Placement]:
    """The placements of all subjects, in their order; many are shared among processes."""
    import gc
    import os
    import sys
    from functools import partial

    one = partial(_placed, revision=revision, now=now, work_tree=work_tree)
    workers = min(os.cpu_count() or 1, 8, len(subjects) // SHARE)
    if workers < 2:
        yield from map(one, subjects)
        return
    # The trees of a repository go with it; looking for circles among them took an eighth of the time.
    gc.freeze()
    gc.set_threshold(200_000)
    from concurrent.futures import ProcessPoolExecutor

    hidden = not sys.stderr.isatty()
    with (
        ProcessPoolExecutor(workers) as pool,
        click.progressbar(length=len(subjects), label="audited", file=sys.stderr, hidden=hidden) as bar,
    ):
        # A part at a time, so that what is finished does not wait in memory for what is not.
        for start in range(0, len(subjects), SHARE * workers):
            for placement in pool.map(one, subjects[start : start + SHARE * workers], chunksize=5):
                yield placement
                bar.update(1)


def _placed(subject: Subject, revision: str, now: datetime, work_tree: bool) -> Placement:
    from eval_core.errors import EvalError
    from eval_tier.audit import audited, broken

    try:
        return audited(subject, _rules(None), revision, now, work_tree=work_tree)
    except EvalError as error:
        return broken(subject, error)


def _bar(placements: list[Placement], tier: int | None, mechanism: int | None) -> tuple[str, bool]:
    """The line on those below the bar, and whether there is one."""
    counted = [p for p in placements if p.state != "not-applicable"]
    if tier is None and mechanism is None:
        below = sum(p.below for p in counted)
        return (f"{below} below its declared tier" if below else ""), below > 0
    short = [
        p
        for p in counted
        if p.state != "placed"
        or (tier is not None and p.effect < tier)
        or (mechanism is not None and p.mechanism < mechanism)
    ]
    asked = f"tier {tier}" if tier is not None else f"mechanism {mechanism}"
    return f"{len(short)} below {asked}" if short else f"all at {asked} or above", bool(short)


def _exit(placements: list[Placement], short: bool, earlier: dict[str, int] | None) -> int:
    broken = any(finding.outcome == "error" for p in placements for finding in p.findings)
    if broken or any(p.state == "unread" for p in placements):
        return 3
    fell = earlier is not None and any(p.effect < earlier.get(p.name, 0) for p in placements)
    if short or fell or any(p.state == "undetermined" or p.faults for p in placements):
        return 1
    return 0 if any(p.state == "placed" for p in placements) else 1


def _earlier(path: Path) -> dict[str, int]:
    """The tiers of an earlier audit, by repository."""
    from eval_core.errors import Misuse
    from eval_core.files import read_text

    try:
        held = json.loads(read_text(path, "audit"))
        if held["schema"] != "audit-v1":
            raise KeyError("schema")
        return {str(one["name"]): int(one["effect"]) for one in held["repositories"]}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        mend = "eval-tier audit --format json  writes one"
        raise Misuse("file-malformed", "it is not an audit", file=path, mend=mend) from error


def _drift(placements: list[Placement], earlier: dict[str, int]) -> list[str]:
    from eval_core.console import clip

    lines = []
    gone = dict(earlier)
    for placement in placements:
        before = gone.pop(placement.name, None)
        if placement.state != "placed":
            continue
        if before is None:
            lines.append(f"new   {clip(placement.name, 40)}: tier {placement.effect}")
        elif before != placement.effect:
            word = "rose" if placement.effect > before else "fell"
            lines.append(f"{word}  {clip(placement.name, 40)}: tier {before} → {placement.effect}")
    lines += [f"gone  {clip(name, 40)}: was at tier {tier}" for name, tier in gone.items()]
    return lines or ["no tier changed"]


def _say_slow() -> None:
    from eval_tier.workflow.yaml import has_c_loader

    if not has_c_loader():
        click.echo("PyYAML has no C loader here: reading is about ten times slower", err=True)
