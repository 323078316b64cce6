"""What a name on the command line stands for: a file, an arm's newest report or run, an arm's baseline in `policy/`."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from eval_core.compare.models import Entry, of_line, of_report
from eval_core.config import OUTPUT, arms_in
from eval_core.errors import Misuse, Refused, unknown_arm
from eval_core.models import NAME
from eval_core.policy.evidence import FOLDER, Line, path_of, read_evidence
from eval_core.policy.files import FLOORS, POLICY, read_baseline, read_floors, read_policy
from eval_core.reports.report import read_report

#: What stands before an arm's name for the last run that its floors stand on.
BASELINE = "baseline:"


def side_of(name: str, config: Path) -> Entry:
    """A report or a baseline, by path or by name.

    Args:
        name: a path of a report or of an arm's evidence, whose last run it is; an arm's name for its newest report; or
            `baseline:NAME` for the last run that its floors stand on.
        config: eval.toml, beside which reports and policy lie.

    Raises:
        Refused: there is no such file, or it cannot be used.
        Misuse: it is a run, there is no such arm, or there are no floors, or none of the arm.
    """
    return _drifting(_side(name, config), config)


def _side(name: str, config: Path) -> Entry:
    if name.startswith(BASELINE) and not Path(name).exists():
        return baseline_of(name.removeprefix(BASELINE), config)[1]
    path, arm = report_of(name, config)
    if path.suffix == ".jsonl" and path.parent.name == FOLDER:
        return of_line(str(path), path.stem, read_evidence(path)[-1])
    try:
        return of_report(str(path), read_report(path, arm))
    except Refused as error:
        if error.code == "report-malformed" and is_run(path):
            raise Misuse(
                "run-without-qrels",
                "is a run, not a report; say --qrels FILE, the judgements to score it against",
                file=path,
            ) from error
        raise


def _drifting(side: Entry, config: Path) -> Entry:
    """The side with what the floors beside eval.toml say of its corpus: whether it may drift."""
    arm = None
    if (config.parent / POLICY / FLOORS).exists():
        arm = read_floors(config.parent / POLICY / FLOORS).arms.get(side.arm)
    return replace(side, drift=arm.drift if arm else None, output=str(config.parent / OUTPUT))


def baseline_of(arm: str, config: Path) -> tuple[Line, Entry]:
    """The last run that an arm's floors stand on, in the policy beside eval.toml; see `read_baseline`.

    Raises:
        Misuse: there is no such arm.
    """
    folder = config.parent / POLICY
    try:
        line = read_baseline(folder, arm)
    except Misuse as error:
        if error.code == "baseline-missing" and arm not in (arms := arms_in(config)):
            raise unknown_arm(arm, [*arms, *read_policy(folder).floors.arms]) from error
        raise
    return line, of_line(str(path_of(folder, arm)), arm, line)


def report_of(name: str, config: Path) -> tuple[Path, str | None]:
    """The report that an argument names, and the arm that it must be of where that was named."""
    return _file_of(name, config, "report", ".json")


def run_of(name: str, config: Path) -> Path:
    """The run that an argument names."""
    return _file_of(name, config, "run", ".jsonl")[0]


def _file_of(name: str, config: Path, noun: str, suffix: str) -> tuple[Path, str | None]:
    """The file that an argument names: itself, or what `measure` wrote for the arm of that name.

    Raises:
        Refused: there is no such file.
        Misuse: it is neither a path nor an arm.
    """
    path = Path(name)
    if path.exists() and not path.is_dir():
        return path, None
    folder = config.parent / OUTPUT / f"{noun}s"
    arms: list[str] = []
    is_name = re.fullmatch(NAME, name) and not name.endswith((".json", suffix))
    if is_name:
        found = folder / f"{name}{suffix}"
        if found.is_file():
            return found, name
        if name in (arms := arms_in(config)):
            mend = f"eval-core measure {name}"
            raise Refused("report-missing", f"there is no such {noun}", file=found, mend=mend)
    if path.is_dir() or not is_name:
        what = "is a folder, not a file" if path.is_dir() else f"there is no such {noun}"
        raise Refused("report-missing", what, file=name)
    measured = sorted(path.name.removesuffix(suffix) for path in folder.glob(f"*{suffix}"))
    raise unknown_arm(name, [*arms, *measured], f"there is neither a {noun} nor an arm")


def is_run(path: Path) -> bool:
    """Whether a file looks like a run: of six columns, or of JSON lines with ranked ids."""
    from eval_core.scoring.readers.columns import is_run_line

    line, value = first_line(path)
    fields = line.split()
    six = is_run_line(fields, line) and fields[3].lstrip(b"-").isdigit()
    return six or value.get("schema") == "run-v1" or "ids" in value


def is_report(path: Path) -> bool:
    """Whether a file begins as a report does."""
    from eval_core.scoring.readers.source import opened

    with opened(path, "run") as source:
        return re.match(rb'\s*\{\s*"schema":\s*"report-v', source.read(400)) is not None


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
