"""`eval-backends list`: the installed backends, where each comes from and what it can do, without making one."""

from __future__ import annotations

import contextlib
import inspect
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import click

from eval_core.backend import CAPABILITIES, GROUP


@dataclass(frozen=True, slots=True)
class Listed:
    """One entry point. `capabilities` is None where only a made backend knows them; `options` are name and default
    (None: it must be given), or None where they cannot be told; `problem` is None of a backend that can be used."""

    name: str
    distribution: str | None
    version: str | None
    object: str
    capabilities: list[str] | None = None
    options: dict[str, str | None] | None = None
    problem: str | None = None


def find() -> list[Listed]:
    """All entry points of the group, by name; what is wrong with one is said, never raised."""
    points = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    claims: dict[str, set[str]] = {}
    for point in points:
        claims.setdefault(point.name, set()).add(point.value)
    # An editable install can be found twice; it is one backend.
    unique = {(point.name, point.value): point for point in points}
    return [_look(point, claims[point.name] - {point.value}) for point in unique.values()]


def _look(point: EntryPoint, rivals: Iterable[str]) -> Listed:
    origin = point.dist.metadata["Name"] if point.dist else None
    version = point.dist.version if point.dist else None
    problem = f"the name is also claimed by {', '.join(sorted(rivals))}; uninstall one" if rivals else None
    try:
        # What a module prints as it is imported is not a part of the list.
        with contextlib.redirect_stdout(sys.stderr):
            factory = point.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001  # anyone's module runs here, and one must not hide the rest
        first = (str(error).splitlines() or [""])[0]
        return Listed(point.name, origin, version, point.value, problem=f"{type(error).__name__}: {first}")
    return Listed(
        point.name,
        origin,
        version,
        point.value,
        _declared(factory),
        _options(factory),
        problem or _fault(factory),
    )


def _fault(factory: Any) -> str | None:
    if not callable(factory):
        return f"names a {type(factory).__name__}, which cannot be called to make a backend"
    unknown = sorted(set(_declared(factory) or ()) - CAPABILITIES)
    return f"declares unknown capabilities {unknown}; known: {sorted(CAPABILITIES)}" if unknown else None


def _declared(factory: Any) -> list[str] | None:
    """What the class itself declares; a property, which depends on the options, says nothing yet."""
    declared = getattr(factory, "capabilities", None)
    return sorted(map(str, declared)) if isinstance(declared, frozenset | set) else None


def _options(factory: Any) -> dict[str, str | None] | None:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return None
    return {
        parameter.name: None if parameter.default is inspect.Parameter.empty else repr(parameter.default)
        for parameter in parameters
        if parameter.kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    }


@click.command(
    "list",
    epilog="\b\nExamples:\n  eval-backends list\n  eval-backends list --format json | jq -r '.backends[].name'",
)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def list_(form: str) -> None:
    """List the installed backends, with capabilities and options.

    Backends come from any installed package that has entry points in the group eval.backends. One that does not
    import is listed with the reason.
    """
    found = find()
    if form == "json":
        click.echo(
            json.dumps({"backends": [asdict(listed) for listed in found]}, indent=2, ensure_ascii=False)
        )
        return
    for line in table(found):
        click.echo(line)


def table(found: list[Listed]) -> list[str]:
    """The lines of the table; a problem stands on a line of its own below its backend."""
    if not found:
        return ["No backend is installed: no package has an entry point in the group eval.backends."]
    rows = [("backend", "from", "capabilities", "options (* must be given)")]
    for listed in found:
        origin = " ".join(part for part in (listed.distribution, listed.version) if part) or "–"
        rows.append((listed.name, origin, _can(listed), _takes(listed)))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = []
    for row, about in zip(rows, [None, *found], strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append(" " + "  ".join([*cells, row[3]]).rstrip())
        if about is not None and about.problem is not None:
            lines.append(f"   {about.problem}")
    return lines


def _can(listed: Listed) -> str:
    if listed.problem is not None:
        return "broken"
    if listed.capabilities is None:
        return "by its options" if "capabilities" in (listed.options or {}) else "known once made"
    return ", ".join(listed.capabilities) or "none"


def _takes(listed: Listed) -> str:
    if not listed.options:
        return "" if listed.problem is not None else "–"
    return ", ".join(name if default is not None else f"{name}*" for name, default in listed.options.items())
