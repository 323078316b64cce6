"""What a name on the command line stands for: a file, an arm's newest report or run, an arm's baseline in `policy/`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from eval_core.compare.models import Entry, of_line, of_report
from eval_core.config import OUTPUT
from eval_core.errors import Misuse, Refused
from eval_core.models import NAME
from eval_core.policy.evidence import path_of
from eval_core.policy.files import POLICY, read_baseline
from eval_core.reports.report import read_report

#: What stands before an arm's name for the last run that its floors stand on.
BASELINE = "baseline:"


def side_of(name: str, root: Path) -> Entry:
    """A report or a baseline, by path or by name.

    Args:
        name: a path, an arm's name for its newest report, or `baseline:NAME`.
        root: the folder of eval.toml.

    Raises:
        Refused: there is no such file, or it cannot be used.
        Misuse: it is a run, or there are no floors, or none of the arm.
    """
    if name.startswith(BASELINE) and not Path(name).exists():
        return baseline_of(name.removeprefix(BASELINE), root)
    path = file_of(name, root, "reports", ".json")
    try:
        return of_report(str(path), read_report(path))
    except Refused as error:
        if error.code == "report-malformed" and _is_run(path):
            raise Misuse(
                "run-without-qrels",
                "is a run, not a report; say --qrels FILE, the judgements to score it against",
                file=path,
            ) from error
        raise


def baseline_of(arm: str, root: Path) -> Entry:
    """The last run that an arm's floors stand on, in the policy below `root`; see `read_baseline`."""
    line = read_baseline(root / POLICY, arm)
    return of_line(str(path_of(root / POLICY, arm)), arm, line)


def file_of(name: str, root: Path, folder: str, suffix: str) -> Path:
    """The file that an argument names: itself, or what `measure` wrote for the arm of that name.

    Raises:
        Refused: there is no such file.
    """
    path = Path(name)
    if path.exists() and not path.is_dir():
        return path
    what = "is a folder, not a file" if path.is_dir() else "there is no such file"
    if not re.fullmatch(NAME, name) or name.endswith((".json", suffix)):
        raise Refused("report-missing", what, file=name)
    found = root / OUTPUT / folder / f"{name}{suffix}"
    if not found.exists():
        what = f"{what}, nor {found}, which would be that of an arm of the name"
        raise Refused("report-missing", what, file=name, mend=f"Make it:  eval-core measure {name}")
    return found


def _is_run(path: Path) -> bool:
    """Whether a file looks like a run: of six columns, or of JSON lines with ranked ids."""
    line, value = first_line(path)
    six = len(line.split()) == 6 and not line.startswith(b"{")
    return six or value.get("schema") == "run-v1" or "ids" in value


def first_line(path: Path) -> tuple[bytes, dict[str, Any]]:
    """The first line of a file that may be gzip, and the table that it is in JSON; an empty one where it is none."""
    from eval_core.scoring.readers.source import opened

    with opened(path, "run") as source:
        line = source.first_line()
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    return line, value if isinstance(value, dict) else {}
