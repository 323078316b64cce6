"""Other places for sources, given by name: on the command line or in the environment."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from eval_core.errors import Misuse, did_you_mean
from eval_core.sets.definition import Definition


def variable(name: str) -> str:
    """The environment variable that overrides the location of the source `name`."""
    return "EVAL_SOURCE_" + re.sub(r"[^A-Z0-9]", "_", name.upper())


def elsewhere(name: str, path: str = "PATH") -> str:
    """How the place of a source is given to any command, by the environment; not every verb has `--source`."""
    return f"{variable(name)}={shlex.quote(path)} before the command"


def overrides_from_environment(names: Iterable[str]) -> dict[str, Path]:
    """The overrides that the environment gives for sources of these names; an empty variable is none.

    Raises:
        Misuse: a variable is set that two different names share.
    """
    found: dict[str, Path] = {}
    claimed: dict[str, str] = {}
    for name in names:
        key = variable(name)
        if not os.environ.get(key):
            continue
        other = claimed.setdefault(key, name)
        if other != name:
            what = f"stands for the sources {other!r} and {name!r}; unset it and say --source NAME=PATH"
            raise Misuse("override-ambiguous", what, key=key)
        found[name] = Path(os.environ[key])
    return found


def check_overrides(overrides: Iterable[str], names: Iterable[str]) -> None:
    """Refuse an override that no source would use.

    Raises:
        Misuse: naming the nearest source.
    """
    known = list(names)
    for name in overrides:
        if name not in known:
            raise Misuse(
                "override-unknown",
                f"there is no source {name!r}{did_you_mean(name, known)}  (sources: {', '.join(known) or 'none'})",
            )


def relevant_overrides(
    definitions: Iterable[Definition | None], given: Mapping[str, Path]
) -> dict[str, Path]:
    """All overrides for the sources of some sets: the environment's, and before them those `given` by hand.

    Raises:
        Misuse: one is given for a name that no source of these sets has.
    """
    recipes = [definition.corpus for definition in definitions if definition is not None]
    names = list(
        dict.fromkeys(source.name for recipe in recipes if recipe is not None for source in recipe.source)
    )
    check_overrides(given, names)
    return {**overrides_from_environment(name for name in names if name not in given), **given}
