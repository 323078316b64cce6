"""Where the runs come from that floors stand on: the last ones of .eval, two measured now, or what CI measured."""

from __future__ import annotations

import contextlib
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from eval_core.config import Workspace
from eval_core.errors import CouldNot, Misuse, Refused
from eval_core.files import refuse_special
from eval_core.policy import Line, is_name, line_of, unfit, unlike
from eval_core.reports import Report, parse_report, read_report

#: Members of a zip file, bytes of one report and of all reports of it: far above what any job uploads.
MOST_MEMBERS, MOST_BYTES, MOST_ALL = 100_000, 256 << 20, 1 << 30

#: Where reports lie in what a job uploads.
_PLACES = ("reports", ".eval/reports")


def arms_of(output: Path) -> list[str]:
    """The arms that have a report."""
    names = (path.stem for path in (output / "reports").glob("*.json"))
    return sorted(name for name in names if is_name(name))


def history(arm: str, output: Path, drift: float | None, note: Callable[[str], None]) -> list[Line]:
    """The newest run, and every run of the history that can stand beside it.

    Args:
        arm: its name.
        output: where measuring wrote.
        drift: the share by which a corpus may have changed.
        note: hears which runs are left out, and why.

    Raises:
        Refused: there is no report, or it is malformed.
    """
    path = output / "reports" / f"{arm}.json"
    if not path.exists():
        mend = f"Measure it twice:  eval-gate floor {arm} --measure"
        raise Refused("report-missing", "there is no such report", file=path, mend=mend)
    newest = line_of(read_report(path, arm))
    found = []
    for past in sorted((output / "history" / arm).glob("*.json")):
        # What is past must not stand in the way: a file that no longer reads or a run that failed is left out.
        try:
            line = line_of(read_report(past, arm))
        except Refused as error:
            note(f"{arm}: left out: {error.message}")
            continue
        if line.run_id == newest.run_id or any(unlike(line, newest, drift)):
            continue
        problem = next(unfit(line), None)
        if problem is None:
            found.append(line)
        else:
            note(f"{arm}: run {line.run_id} is left out: {problem.what}")
    return [*found, newest]


def measured_now(
    workspace: Workspace, arms: tuple[str, ...], times: int, note: Callable[[str], None]
) -> dict[str, list[Line]]:
    """Measure arms here and now, each so many times, as `eval-core measure` does.

    Raises:
        Misuse: no such arm, or wrong configuration.
        CouldNot: a source is absent, or a backend failed.
        Refused: `evidence-dirty`: the tree has uncommitted changes, before anything is measured.
    """
    from eval_core.measuring import backend_faults, measure, observe, prepare, uncommitted

    chosen = workspace.chosen(arms)
    if not chosen:
        raise Misuse("arms-none", "no arm is in the lane of pull requests; name one", file=workspace.path)
    if observe(workspace.root).dirty:
        tree = uncommitted(workspace.root)
        files = tree.changed if tree else ()
        some = f" ({', '.join(files[:3])}{', …' if len(files) > 3 else ''})" if files else ""
        what = f"the tree has uncommitted changes{some}, so no commit would say what is measured"
        raise Refused("evidence-dirty", what, mend="Commit the changes first; nothing was measured.")
    found: dict[str, list[Line]] = {name: [] for name in chosen}
    with contextlib.chdir(workspace.root):
        here = Workspace(Path(), Path(workspace.path.name), workspace.arms)
        plans = prepare(here, chosen, found=backend_faults(here, chosen))
        for number in range(times):
            for plan in plans:
                note(f"{plan.name}: run {number + 1} of {times}")
                report = measure(plan, *(here.output(kind) for kind in ("runs", "reports", "history")))
                found[plan.name].append(line_of(report))
    return found


def uploaded(paths: Sequence[Path]) -> dict[str, list[Line]]:
    """The runs of every arm in what CI jobs uploaded: folders or zip files of `.eval`.

    Raises:
        Misuse: no such path, a file that is no zip file, or nothing in it.
        Refused: a report is malformed, a zip file is too large or names what it should not, or two paths are of one CI
            run or of none.
    """
    found: dict[str, list[Line]] = {}
    for path in paths:
        reports = dict(reports_in(path))
        if not reports:
            what = "there is no report in it"
            mend = "It should hold ARM.json, in reports/, in .eval/reports/ or by itself."
            raise Misuse("file-vacuous", what, file=path, mend=mend)
        for arm, report in sorted(reports.items()):
            found.setdefault(arm, []).append(line_of(report))
    for arm, lines in found.items():
        _check_ci_runs(arm, lines)
    return found


def _check_ci_runs(arm: str, lines: Iterable[Line]) -> None:
    runs: dict[str, str] = {}
    for line in {line.run_id: line for line in lines}.values():
        subject = f"{arm}, run {line.run_id}"
        if line.class_ == "ci" and not line.ci_run:
            what = "it was measured in class 'ci' and names no CI run"
            raise Refused("ci-run-missing", what, subject=subject, mend="Take what a CI job uploaded.")
        if line.ci_run and line.ci_run in runs:
            what = f"it is of CI run {line.ci_run}, as run {runs[line.ci_run]} is"
            mend = "Take the uploads of two CI runs: start another on the commit; one that is run again keeps its id."
            raise Refused("ci-run-twice", what, subject=subject, mend=mend)
        if line.ci_run:
            runs[line.ci_run] = line.run_id


def reports_in(path: Path) -> Iterator[tuple[str, Report]]:
    """The report of each arm in a folder or zip file of `.eval`; see `uploaded` for what it raises."""
    try:
        refuse_special(path)
        if path.is_dir():
            yield from _of_folder(path)
            return
        with zipfile.ZipFile(path) as archive:
            yield from _of_zip(path, archive)
    except FileNotFoundError:
        raise Misuse("file-missing", "there is no such folder or zip file", file=path) from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        what = f"it is neither a folder nor a sound zip file: {error}"
        raise Misuse("file-unreadable", what, file=path) from error
    except OSError as error:
        raise CouldNot("read-failed", f"cannot be read: {error.strerror or error}", file=path) from error


def _of_folder(path: Path) -> Iterator[tuple[str, Report]]:
    files = [file for place in _PLACES for file in sorted((path / place).glob("*.json"))]
    for file in files or sorted(path.glob("*.json")):
        yield file.stem, read_report(file, file.stem)


def _of_zip(path: Path, archive: zipfile.ZipFile) -> Iterator[tuple[str, Report]]:
    members = archive.infolist()
    if len(members) > MOST_MEMBERS:
        raise _unsound(path, f"it has {len(members):,} members, and {MOST_MEMBERS:,} are read at most")
    # A job that uploads the folder of reports uploads what is in it.
    places = _PLACES if any(member.filename.startswith(_PLACES) for member in members) else ("",)
    wanted: dict[str, zipfile.ZipInfo] = {}
    for member in members:
        parts = member.filename.split("/")
        if os.path.isabs(member.filename) or ".." in parts:
            raise _unsound(path, f"its member {member.filename!r} lies outside of it")
        folder, _, name = member.filename.rpartition("/")
        if folder not in places or not name.endswith(".json"):
            continue
        if stat.S_ISLNK(member.external_attr >> 16):
            raise _unsound(path, f"its member {member.filename!r} is a link")
        if name in wanted:
            raise _unsound(path, f"it holds {name!r} twice")
        wanted[name] = member
    if max((member.file_size for member in wanted.values()), default=0) > MOST_BYTES or (
        sum(member.file_size for member in wanted.values()) > MOST_ALL
    ):
        raise _unsound(path, "its reports are larger than any that is measured")
    for name, member in wanted.items():
        arm = name.removesuffix(".json")
        with archive.open(member) as stream:
            raw = stream.read(MOST_BYTES)  # zipfile reads no more than the size that was bounded above
        yield arm, parse_report(raw, path / member.filename, arm)


def _unsound(path: Path, what: str) -> Refused:
    return Refused(
        "archive-malformed", what, file=path, mend="Take what the job uploaded, as it was downloaded."
    )


def without_ci_run(runs: Mapping[str, Iterable[Line]]) -> list[str]:
    """The arms with a run of class `ci` that names no CI run, or two of one CI run: said, where that may be."""
    found = []
    for arm, lines in runs.items():
        try:
            _check_ci_runs(arm, lines)
        except Refused:
            found.append(arm)
    return found
