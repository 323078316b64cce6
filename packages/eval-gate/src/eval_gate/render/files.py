"""`--output`: one verdict in several files, each in its form, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from eval_core.errors import CouldNot, did_you_mean
from eval_core.files import atomic, refuse_special
from eval_gate.render import FORMATS, rendered
from eval_gate.render.place import Place
from eval_gate.verdict import Verdict

#: The form of a file that only its name tells.
_SUFFIXES = {".json": "json", ".md": "markdown", ".xml": "junit"}


def destinations(outputs: Sequence[str], form: str) -> dict[Path, str]:
    """The form of each file that is asked for, as FORMAT=FILE, or FILE: by its suffix, else the one that is printed.

    Raises:
        click.UsageError: no such form, no file, or one file twice.
    """
    files: dict[Path, str] = {}
    for item in outputs:
        name, equals, file = item.partition("=")
        if not equals:
            name, file = _SUFFIXES.get(Path(item).suffix, form), item
        if name not in FORMATS:
            raise click.UsageError(
                f"--output {item!r}: no form {name!r}{did_you_mean(name, FORMATS)}  (forms: {', '.join(FORMATS)})"
            )
        path = Path(file)
        if not file:
            raise click.UsageError(f"--output {item!r}: write FILE or FORMAT=FILE")
        if any(os.path.abspath(path) == os.path.abspath(other) for other in files):
            raise click.UsageError(f"--output {item!r}: {file!r} is written already")
        files[path] = name
    return files


def write(files: dict[Path, str], verdict: Verdict, place: Place) -> list[CouldNot]:
    """Write each file; what cannot be written is told at the end, and keeps no other from being written."""
    failed = []
    for path, form in files.items():
        text = rendered(form, verdict, place)
        if form == "table":
            text = click.unstyle(text)
        try:
            if path.exists():
                # A name in the place of /dev/stdout, or of a pipe, would be no output of theirs.
                refuse_special(path)
            with atomic(path) as stream:
                stream.write(text.encode("utf-8") + b"\n")
        except CouldNot as error:
            failed.append(error)
        except OSError as error:
            failed.append(
                CouldNot("cannot-write", f"cannot be written: {error.strerror or error}", file=path)
            )
    return failed
