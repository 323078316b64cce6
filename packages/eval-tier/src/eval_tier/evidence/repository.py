"""The evidence of one repository: what its files and its forge's settings say, read once and asked by every rule."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from eval_core.config import CONFIG, Audit, EvalFile
from eval_core.errors import EvalError
from eval_core.models import parse_toml
from eval_tier.evidence.files import MOST, Below, Files
from eval_tier.evidence.settings import Settings, Unknown
from eval_tier.evidence.use import Kind, Producer, Use
from eval_tier.workflow.actions import forge, generic, parse
from eval_tier.workflow.chain import expand
from eval_tier.workflow.changes import hits, touched
from eval_tier.workflow.launchers import strip
from eval_tier.workflow.models import EVENTS, Command, Defect, Gap, Job, Place, Step, Workflow

WORKFLOWS = ".github/workflows"

#: CI files of other forges: they are named, and read only where a job of them is declared.
OTHER_FORGES = (
    ".gitlab-ci.yml",
    ".gitea/workflows",
    ".forgejo/workflows",
    ".woodpecker.yml",
    ".woodpecker",
    ".circleci/config.yml",
    "azure-pipelines.yml",
    "Jenkinsfile",
    ".travis.yml",
    "bitbucket-pipelines.yml",
    ".drone.yml",
    ".buildkite/pipeline.yml",
)

#: The commands of these packages, by program and verb. A verb with an option after it counts with that option alone.
OURS: dict[tuple[str, str], tuple[Kind, ...]] = {
    ("eval-core", "measure"): ("measure", "reconstruct"),
    ("eval-core", "reconstruct"): ("reconstruct",),
    ("eval-gate", "check"): ("gate",),
}


#: What runs something else, or is one of ours, or asks a model: in a script without any of it nothing is hidden.
_CALLS = (
    r"eval|[/$]|(?:^|[\s;&|(])\.\s|\b(?:make|gmake|nox|tox|npm|pnpm|yarn|bun|just|task|hatch|pdm|rye|pixi|pipenv|poe|"
    r"mise|invoke|inv|rake|doit|sh|bash|dash|zsh|ksh|source|ssh|nix|docker|podman|earthly|bazel|dagger|xargs|claude|llm|"
    r"ollama|openai|gemini|codex)\b"
)

#: A step that runs a script, where it stands, and the commands that it comes to.
Script = tuple[Workflow, Job, Step, tuple[Command, ...]]


class Evidence:
    """What is known of one repository; what is derived is derived once."""

    def __init__(
        self,
        name: str,
        files: Files,
        *,
        audit: Audit | None = None,
        settings: Settings | None = None,
        missing: Unknown | None = None,
        known: bool = True,
        branch: str | None = None,
        faults: tuple[Defect, ...] = (),
        base: str = ".",
    ) -> None:
        """
        Args:
            audit: what a fleet file declares; a table [audit] of eval.toml comes second.
            settings: what a snapshot says.
            missing: why there are no settings.
            known: whether its files are there to be read at all.
            branch: the default branch, where its clone says so.
            faults: what of its settings could not be read.
            base: the folder of the repository whose harness is asked for; workflows stand at the top in any case.
        """
        self.name = name
        self.root = files
        self.base = base
        self.files: Files = files if base == "." else Below(files, base)
        self.known = known
        self._branch = branch
        self._audit = audit
        self._by_job: dict[int, list[tuple[tuple[int, int], str, Command]]] = {}
        self._faults = faults
        self._settings = settings
        self._missing = missing or Unknown(
            "its settings were never observed",
            "eval-tier snapshot OWNER/REPO  reads what its branch requires",
        )

    # ------------------------------------------------------------------ files

    def text(self, path: str) -> str | None:
        """The text of a file below `base`; None where none stands there, where it is too large, or is not UTF-8."""
        raw = self.files.read(path)
        if raw is None or len(raw) >= MOST:
            return None
        try:
            return raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None

    def at(self, path: str, line: int | None = None) -> Place:
        """The place of a file below `base`."""
        return Place(path if self.base == "." else f"{self.base}/{path}", line)

    @functools.cached_property
    def eval_file(self) -> EvalFile | EvalError | None:
        """eval.toml, the error that reading it gives, or None."""
        raw = self.files.read(str(CONFIG))
        if raw is None:
            return None
        try:
            return parse_toml(raw.decode("utf-8-sig", "replace"), EvalFile, CONFIG, "configuration")
        except EvalError as error:
            return error

    @property
    def ours(self) -> EvalFile | None:
        """eval.toml, where it can be read."""
        return self.eval_file if isinstance(self.eval_file, EvalFile) else None

    @functools.cached_property
    def audit(self) -> Audit:
        """What is declared of it."""
        if self._audit is not None:
            return self._audit
        return (self.ours.audit if self.ours else None) or Audit()

    @functools.cached_property
    def harness(self) -> bool:
        """Whether a harness is recognised or declared at all."""
        return self.eval_file is not None or bool(self.uses) or self.audit != Audit()

    @functools.cached_property
    def other_forges(self) -> tuple[str, ...]:
        """The CI files of forges other than GitHub that it has."""
        found = []
        for path in OTHER_FORGES:
            if self.root.read(path) is not None:
                found.append(path)
            else:
                found += [f"{path}/{name}" for name in self.root.folder(path)]
        return tuple(found)

    # ------------------------------------------------------------------ workflows

    @functools.cached_property
    def workflows(self) -> tuple[Workflow, ...]:
        """Its GitHub workflows, in the order of their names."""
        names = [n for n in self.root.folder(WORKFLOWS) if n.endswith((".yml", ".yaml"))]
        paths = [f"{WORKFLOWS}/{name}" for name in names]
        return tuple(parse(path, self.root.read(path) or b"", self.root.read) for path in paths)

    @property
    def faults(self) -> Iterator[Defect]:
        """What of its files and settings could not be read."""
        yield from self._faults
        for workflow in self.workflows:
            yield from workflow.faults
        if isinstance(self.eval_file, EvalError):
            details = self.eval_file.details
            yield Defect(self.at(str(CONFIG), details.line), self.eval_file.message, whole=True)
        yield from (fault for fault in self._declared_jobs[1])

    @functools.cached_property
    def _declared_jobs(self) -> tuple[tuple[Workflow, ...], tuple[Defect, ...]]:
        """The declared jobs of any CI file, each as a workflow of one job, and the declarations that find none."""
        found, faults = [], []
        for said in self.audit.jobs:
            path, _, job = said.rpartition(":")
            raw = self.root.read(path) if path else None
            if raw is None:
                faults.append(
                    Defect(Place(path or said), f"a job of it is declared ({said}), and it is not there")
                )
                continue
            steps = generic(path, raw, job)
            if isinstance(steps, Defect):
                faults.append(steps)
                continue
            only = Job(Place(path, steps[0].place.line if steps else None), job, (job,), job, steps=steps)
            found.append(Workflow(path, forge(path) or path, jobs={job: only}))
        return tuple(found), tuple(faults)

    @functools.cached_property
    def _read(self) -> tuple[tuple[Script, ...], tuple[tuple[Gap, Workflow, Job], ...]]:
        scripts: list[Script] = []
        gaps: list[tuple[Gap, Workflow, Job]] = []
        for workflow in (*self.workflows, *self._declared_jobs[0]):
            for job in workflow.jobs.values():
                for step in job.steps:
                    if step.script is not None and self._matters(step):
                        commands, missed = expand(step, job, self.root.read, self._is_folder)
                        gaps += [(gap, workflow, job) for gap in missed]
                        scripts.append((workflow, job, step, tuple(commands)))
        return tuple(scripts), tuple(gaps)

    def _is_folder(self, path: str) -> bool:
        return next(iter(self.root.below(path)), None) is not None

    def _matters(self, step: Step) -> bool:
        """Whether a step's script can come to a command that a rule asks for: it has a word of one, of a path that is
        asked for, or of anything that runs something else. Most have none, and are not parsed."""
        text = "\n".join((step.script or "", *step.env.values()))
        return self._words.search(text) is not None

    @functools.cached_property
    def _words(self) -> re.Pattern[str]:
        said = self.audit
        paths = (*said.floors, *said.inputs, *said.provenance, "floors.toml", "policy")
        # Of a declared command the longest literal text: `python` alone would take every script of the fleet.
        commands = [
            max(part.split("*"), key=len)
            for _, patterns in self._patterns
            for part in (max(p, key=len) for p in patterns if p)
        ]
        named = {re.escape(text) for text in (*(path.rsplit("/", 1)[-1] for path in paths), *commands)}
        return re.compile(rf"{_CALLS}|{'|'.join(sorted(named))}")

    @property
    def scripts(self) -> tuple[Script, ...]:
        """Each step whose script may matter, with all the commands that it comes to."""
        return self._read[0]

    @property
    def gaps(self) -> tuple[tuple[Gap, Workflow, Job], ...]:
        """What of the jobs' scripts could not be read."""
        return self._read[1]

    @functools.cached_property
    def uses(self) -> tuple[Use, ...]:
        """Each command of the harness, in each job that runs it."""
        uses = []
        for workflow, job, step, commands in self.scripts:
            place = next(n for n, other in enumerate(job.steps) if other is step)
            for order, command in enumerate(commands):
                kinds, said = self._kinds(command)
                if kinds:
                    other = any(workflow is read for read in self._declared_jobs[0])
                    uses.append(Use(kinds, command, step, job, workflow, (place, order), said, other))
        return tuple(self._doubted(use) for use in uses)

    def _doubted(self, use: Use) -> Use:
        """A use, with the doubt that what leads to it was changed before it in its job."""
        written = {place.file for place in use.places[1:]}
        for path, command in self.changes(use) if written else ():
            if path != "." and (hit := next((file for file in written if hits(path, file)), None)):
                return replace(use, doubt=f"{hit} is changed before, at {command.chain[-1]}")
        return use

    def changes(self, until: Use, after: Use | None = None) -> Iterator[tuple[str, Command]]:
        """The paths that the job of a use changes before it (after another use of that job), each with the command."""
        start = after.order if after is not None and after.job is until.job else (-1, -1)
        for order, path, command in self._touched(until.job):
            if start < order < until.order:
                yield path, command

    def _touched(self, job: Job) -> list[tuple[tuple[int, int], str, Command]]:
        """All paths that a job's commands change, in their order."""
        held = self._by_job.get(id(job))
        if held is None:
            held = self._by_job[id(job)] = [
                ((place, order), path, command)
                for place, step in enumerate(job.steps)
                if step.script is not None
                for order, command in enumerate(expand(step, job, self.root.read, self._is_folder)[0])
                for path in touched(command)
            ]
        return held

    @functools.cached_property
    def elsewhere(self) -> str | None:
        """A folder other than `base` in which a command of ours is run."""
        return next(
            (c.folder for *_, commands in self.scripts for c in commands
             if c.folder != self.base and (c.words[:1] or ("",))[0] in ("eval-core", "eval-gate")),
            None,
        )  # fmt: skip

    def of(self, kind: Kind) -> tuple[Use, ...]:
        """The uses of a kind."""
        return tuple(use for use in self.uses if kind in use.kinds)

    def _kinds(self, command: Command) -> tuple[tuple[Kind, ...], bool]:
        words = command.words
        if not words or {"--help", "-h", "--version"} & set(words):
            return (), False
        verb = next((word for word in words[1:] if not word.startswith("-")), "")
        if words[0] in ("eval-core", "eval-gate") and command.folder != self.base:
            return (("write",), False) if "--write" in words else ((), False)
        if (words[0], verb) in OURS:
            return OURS[words[0], verb], False
        if words[0] == "eval-core" and verb == "publish" and "--check" in words:
            return ("publish",), False
        if words[0] == "eval-gate" and verb in ("floor", "promote") and "--write" in words:
            return ("write",), False
        kinds: list[Kind] = [kind for kind, patterns in self._patterns if _matches(words, patterns)]
        return tuple(kinds), bool(kinds)

    @functools.cached_property
    def _patterns(self) -> tuple[tuple[Kind, tuple[tuple[str, ...], ...]], ...]:
        said = self.audit
        return (
            ("measure", _split(said.measure)),
            ("gate", _split(said.gate)),
            ("publish", _split(said.publish)),
        )

    # ------------------------------------------------------------------ the gate and what it grades

    @property
    def branch(self) -> str:
        """The branch that pull requests go to."""
        return self._settings.branch if self._settings is not None else self._branch or "main"

    @functools.cached_property
    def gate(self) -> Use | None:
        """The gate that stands best, where several are run."""
        return max(self.of("gate"), key=self._standing, default=None)

    @functools.cached_property
    def measuring(self) -> Use | None:
        """The measuring that the gate grades where it is known, else the one that stands best."""
        measured = self.of("measure")
        if self.gate is not None:
            before = [use for use in measured if self.precedes(use, self.gate)]
            measured = tuple(before) or measured
        return max(measured, key=self._standing, default=None)

    def precedes(self, first: Use, then: Use) -> bool:
        """Whether one use comes before another: earlier in the same job, or in a job that it needs."""
        if first.workflow is not then.workflow:
            return False
        if first.job is then.job:
            return first.order < then.order
        return first.job.key in needed(then.workflow, then.job)

    def _standing(self, use: Use) -> tuple[int, ...]:
        """How well a use stands for its kind: the rules that it meets, those that the others rest on first."""
        runs = sum(use.runs(event, self.branch)[0] == "true" for event in EVENTS[:2])
        grades = "gate" in use.kinds and any(self.precedes(first, use) for first in self.of("measure"))
        return (runs, -len(use.masks), grades, self.producer(use) is not None, not use.declared)

    def producer(self, use: Use) -> Producer | None:
        """The required check that stands for a use: its own job's first, else that of a job that needs it."""
        settings = self.settings
        if isinstance(settings, Unknown) or isinstance(settings.required, Unknown):
            return None
        found: list[Producer] = []
        for context in settings.required:
            for job in use.workflow.jobs.values():
                if context.name in (use.checks if job is use.job else job.checks):
                    if job is use.job:
                        found.insert(0, Producer(context, job, True))
                    elif use.job.key in needed(use.workflow, job):
                        found.append(Producer(context, job, False))
        return found[0] if found else None

    # ------------------------------------------------------------------ settings

    @property
    def settings(self) -> Settings | Unknown:
        """What the forge's settings are, or why that is not known."""
        if self._settings is None:
            return self._missing
        forge = self._settings.forge
        if forge not in ("github", "gitea", "forgejo") and self.workflows and not self.audit.jobs:
            what = f"the snapshot is of {forge}, which does not run {WORKFLOWS}"
            return Unknown(what, 'declare the job that grades: audit.jobs = ["FILE:JOB"]')
        return self._settings


def needed(workflow: Workflow, job: Job) -> set[str]:
    """The keys of all jobs that a job needs, directly or through others."""
    found: set[str] = set()
    left = list(job.needs)
    while left:
        key = left.pop()
        if key not in found and key in workflow.jobs:
            found.add(key)
            left += workflow.jobs[key].needs
    return found


def _split(patterns: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    found = []
    for pattern in patterns:
        try:
            words = tuple(shlex.split(pattern))
        except ValueError:
            words = tuple(pattern.split())
        found.append(tuple(strip(words).words) or words)
    return tuple(found)


def _matches(words: Sequence[str], patterns: Iterable[Sequence[str]]) -> bool:
    """Whether a command begins with the words of a pattern, in which `*` stands for any text within a word."""
    return any(
        pattern
        and len(words) >= len(pattern)
        and all(fnmatchcase(word, part) for word, part in zip(words, pattern, strict=False))
        for pattern in patterns
    )


def place_of(path: Path) -> str:
    """The name of a repository that is known by its folder."""
    return path.resolve().name or str(path)
