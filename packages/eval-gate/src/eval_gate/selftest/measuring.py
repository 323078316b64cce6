"""Attacks for real: a copy of the workspace in a temporary folder, its set or backend altered, measured, and graded."""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval_core.config import Arm, Workspace
from eval_core.errors import EvalError
from eval_core.reconstruct.overrides import overrides_from_environment
from eval_core.reports.provenance import write as write_provenance
from eval_core.reports.report import Report, read_report, write_report
from eval_core.sets.definition import Definition, Folder, Git, Inline, read_definition
from eval_gate.selftest.bench import Bench, Outcome, Untried, toml
from eval_gate.selftest.models import About
from eval_gate.selftest.processes import Process, Processes
from eval_gate.selftest.real import CONFIGURED, REAL, REFLOORED, SHUFFLED, Copy, Real
from eval_gate.selftest.set import SetFiles

#: The folder of the set in a copy, a name that no workspace has.
PLACE = "self-test-set"

#: What a copy of a workspace does not hold: its output, its repository, what is put there anew.
_LEFT_OUT = frozenset({".eval", ".git", PLACE})


@dataclass(slots=True)
class Job:
    """A copy that is measured, and what is expected of it; `real` is None for the untouched one."""

    bench: Bench
    folder: Path
    real: Real | None
    process: Process
    again: Process | None = None


#: Told of an attack, the arm, and what the gate said or why it was not tried.
Told = Callable[[About, str, Outcome | str], None]


@dataclass(slots=True)
class Measuring:
    """Copies of a workspace, one a set and alteration, measured beside what else is done."""

    workspace: Workspace
    folder: Path
    processes: Processes
    told: Told
    problem: Callable[[str, str, str], None]
    jobs: list[Job] = field(default_factory=list)
    gradings: int = 0

    def begin(self, benches: Mapping[str, Bench]) -> None:
        """Queue every alteration of one arm a set: the first that is measured in pull requests."""
        for bench in _one_a_set(self.workspace, benches):
            try:
                self._begin(bench)
            except (EvalError, OSError) as error:
                self.problem(bench.arm, getattr(error, "reason", "cannot-copy"), str(error))

    def _begin(self, bench: Bench) -> None:
        arm = self.workspace.arms[bench.arm]
        corpus = self._corpus(arm, read_definition(self.workspace.dataset_folder(arm)))
        free = arm.lane == "pull-request"
        for real in (None, *REAL):
            # What is dear is not measured here; a null backend costs nothing on any set.
            if not free and (real is None or real.kind != "null"):
                if real is not None:
                    self._tell(real, bench.arm, "measured in the owner's lane alone")
                continue
            place = self.folder / f"{len(self.jobs):03}"
            try:
                self._copy(bench, arm, place, corpus, real)
            except Untried as error:
                shutil.rmtree(place)
                if real is not None:
                    self._tell(real, bench.arm, str(error))
                continue
            sources = self._sources(arm, read_definition(place / PLACE))
            job = Job(bench, place, real, self.processes.measure(place, bench.arm, sources))
            if real is SHUFFLED:
                # Two runs, since floors are made of two; the second in a copy of its own.
                other = place.with_name(f"{place.name}-again")
                shutil.copytree(place, other, symlinks=True)
                job.again = self.processes.measure(other, bench.arm, sources)
            self.jobs.append(job)

    def _copy(self, bench: Bench, arm: Arm, place: Path, corpus: Path, real: Real | None) -> None:
        root = self.workspace.root.resolve()
        place.mkdir(parents=True)
        # What a backend may read stands where it stood; what self-test alters is no link.
        for entry in root.iterdir():
            if entry.name not in _LEFT_OUT and entry.name != self.workspace.path.name:
                (place / entry.name).symlink_to(entry)
        cache = self._cache()
        if cache is not None:
            (place / ".eval").mkdir()
            (place / ".eval" / "cache").symlink_to(cache)
        files = SetFiles.linked(
            self.workspace.dataset_folder(arm).resolve(),
            place / PLACE,
            str(bench.report.task.parts.get("split", "test")),
        )
        table = json.loads(arm.model_dump_json(exclude_defaults=True))
        # As few passes as give samples enough for a budget of latency: more of them show nothing here.
        copy = Copy(bench, files, {**table, "dataset": PLACE, "repetitions": arm.repetitions}, corpus)
        if real is not None:
            real.change(copy)
        (place / "eval.toml").write_bytes(toml({"arms": {bench.arm: copy.arm}}))

    def _cache(self) -> Path | None:
        """One copy, for all copies of the workspace, of what reconstructing has fetched."""
        own, copy = self.workspace.output("cache"), self.folder / "cache"
        if own.is_dir() and not copy.exists():
            shutil.copytree(own, copy, symlinks=True)
        return copy if copy.exists() else None

    def _corpus(self, arm: Arm, definition: Definition | None) -> Path:
        """The corpus of a set as it was reconstructed here.

        Raises:
            EvalError: it was not, so that measuring it would fetch its sources.
        """
        from eval_core.errors import CouldNot

        folder = self.workspace.dataset_folder(arm)
        if definition is None or definition.corpus is None or _inline(definition):
            return folder / "corpus.jsonl"
        path = self.workspace.output("corpora") / definition.name / "corpus.jsonl"
        if not path.exists():
            raise CouldNot(
                f"{path}: the corpus was not reconstructed here, and self-test fetches nothing",
                reason="source-absent",
                remedy=f"eval-core reconstruct {arm.dataset}",
            )
        return path

    def _sources(self, arm: Arm, definition: Definition | None) -> list[str]:
        """Where the sources lie whose path is relative to the set's own folder."""
        if definition is None or definition.corpus is None:
            return []
        folder = self.workspace.dataset_folder(arm).resolve()
        found = definition.corpus.source
        given = overrides_from_environment(source.name for source in found)
        return [
            f"{source.name}={(folder / source.path).resolve()}"
            for source in found
            if source.name not in given
            and (isinstance(source, Folder) or (isinstance(source, Git) and source.path is not None))
            and source.path is not None
        ]

    # What was measured.

    def finish(self) -> None:
        """Wait for every measurement, and grade it against the arm's copied policy."""
        self.processes.finish()
        sound: dict[str, bool] = {}
        for job in self.jobs:
            if not self._whole(job):
                if job.real is None:
                    sound[job.bench.arm] = False
                continue
            path = job.folder / ".eval" / "reports" / f"{job.bench.arm}.json"
            report = read_report(path, job.bench.arm)
            outcome = self._graded(job, path, report)
            if job.real is None:
                sound[job.bench.arm] = self._passes(job.bench, outcome)
                if sound[job.bench.arm]:
                    self._reconfigured(job)
            elif sound.get(job.bench.arm, True):
                self._tell(job.real, job.bench.arm, outcome)
                if job.again is not None:
                    self._refloored(job, report)

    def _whole(self, job: Job) -> bool:
        for process in (job.process, job.again):
            if process is not None and process.code != 0:
                name = "untouched" if job.real is None else job.real.name
                words = process.words()
                told = f"{name}: measuring a copy ended with code {process.code}" + (
                    f"\n{words}" if words else ""
                )
                self.problem(job.bench.arm, "measure-failed", told)
                return False
        return True

    def _graded(self, job: Job, path: Path, report: Report) -> Outcome:
        """Grade as if it had been measured where the arm's own report was: what differs is what was altered."""
        here = job.bench.report.environment
        environment = report.environment.model_copy(
            update={"commit": here.commit, "dirty": here.dirty, "class_": here.class_}
        )
        fields: dict[str, Any] = {n: getattr(report, n) for n in Report.model_fields if n != "digests"}
        moved = Report.sealed(**{**fields, "environment": environment})
        write_report(path, moved)
        write_provenance(path, moved)
        if here.commit is not None:
            head = job.folder / ".git" / "HEAD"
            head.parent.mkdir(exist_ok=True)
            head.write_text(here.commit + "\n", encoding="ascii")
        return job.bench.ask(job.folder / "eval.toml", path.parent)

    def _passes(self, bench: Bench, outcome: Outcome) -> bool:
        # Beside other measurements a machine is slow, which says nothing of the gate.
        bad = [one for one in outcome.reasons if one[1] != "latency-over-budget"]
        if not bad:
            return True
        told = f"an untouched copy, measured in a temporary folder, does not pass: {bad[0][2]}"
        self.problem(bench.arm, bad[0][1], told)
        return False

    def _reconfigured(self, job: Job) -> None:
        """The sound report, and an eval.toml that says something else by now."""
        path = job.folder / "eval.toml"
        limit = job.bench.report.task.parts["limit"]
        arm = tomllib.loads(path.read_text(encoding="utf-8"))["arms"][job.bench.arm]
        arm["limit"] = limit + 1 if isinstance(limit, int) else 1
        path.write_bytes(toml({"arms": {job.bench.arm: arm}}))
        self.told(CONFIGURED, job.bench.arm, job.bench.ask(path, job.folder / ".eval" / "reports"))

    def _refloored(self, job: Job, report: Report) -> None:
        """Floors out of two runs on shuffled labels."""
        from eval_core.errors import Refused
        from eval_gate.floors.propose import Wish, derive

        floors, arm = job.bench.floors, job.bench.arm
        other = read_report(
            job.folder.with_name(f"{job.folder.name}-again") / ".eval/reports" / f"{arm}.json"
        )
        wish = Wish(
            margin=floors.margin if floors.margin_rule == "fixed" else None,
            measures=tuple(floors.metrics),
            reason="self-test",
        )
        try:
            made = derive(arm, [report, other], wish)
        except Refused as error:
            outcome = Outcome(error.exit_code, ((arm, error.reason, error.message, error.remedy),))
        else:
            held = ", ".join(
                f"{name} {floor.model_dump(exclude_none=True)}" for name, floor in made.metrics.items()
            )
            outcome = Outcome(0, (("", "floored", f"floors would be made: {held}", None),))
        self.told(REFLOORED, arm, outcome)

    def _tell(self, real: Real, arm: str, what: Outcome | str) -> None:
        self.told(About(real.kind, real.name, real.expected, real.remedy), arm, what)


def _inline(definition: Definition) -> bool:
    return definition.corpus is not None and all(isinstance(one, Inline) for one in definition.corpus.source)


def _one_a_set(workspace: Workspace, benches: Mapping[str, Bench]) -> Iterator[Bench]:
    sets: dict[Path, list[str]] = {}
    for name in benches:
        if name in workspace.arms:
            sets.setdefault(workspace.dataset_folder(workspace.arms[name]).resolve(), []).append(name)
    for names in sets.values():
        yield benches[_cheapest(workspace, names)]


def _cheapest(workspace: Workspace, names: Sequence[str]) -> str:
    return next((name for name in names if workspace.arms[name].lane == "pull-request"), names[0])


def processors() -> int:
    """How many may be measured at a time."""
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
