"""What a CI file would do: workflows, jobs, steps, and the commands that their scripts come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

#: For whom a condition is asked: a pull request from a fork, one from a branch of the repository, the merge queue.
Event = Literal["fork", "branch", "queue"]
EVENTS: tuple[Event, ...] = ("fork", "branch", "queue")

#: What a condition comes to. `varies`: some pull requests of this kind pass it and others do not, as with a label, a
#: draft, an author, changed paths, or the output of a step. `unknown`: it could not be read.
Truth = Literal["true", "false", "varies", "unknown"]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line of a file of the repository; `line` is None for the file as a whole."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Defect:
    """What could not be read of a file, in one sentence, and where. `whole`: nothing of the file was read."""

    place: Place
    what: str
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a job, a step of a composite action included (`place` is then the action's line).

    Attributes:
        condition: the text of `if`, without `${{ }}` around all of it; None where there is none. Where a composite
            action's step runs only under its caller's condition, both are joined by `&&`.
        shell: as written by step, job or workflow; None for the runner's own.
        folder: the working directory, relative to the repository; "." by default.
        masked: `continue-on-error` as a text that is not "false"; None where there is none.
        script: the text of `run`, with its first line at `script_line` of the file.
        env: names and texts, those of workflow and job included.
        inputs: `with`.
    """

    place: Place
    name: str = ""
    key: str = ""
    condition: str | None = None
    uses: str | None = None
    script: str | None = None
    script_line: int = 0
    shell: str | None = None
    folder: str = "."
    masked: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Job:
    """One job; those of a reusable workflow of the same repository stand in their caller's place.

    Attributes:
        key: its id, `caller/called` for one of a reusable workflow.
        checks: the names under which its checks are posted, one for each leg of a matrix; `caller / called` for a
            reusable workflow.
        template: the name that is posted where the job as a whole is skipped; another one than `checks` for a matrix
            without a literal name.
        open: the checks cannot be listed, as where a matrix comes from an expression.
        condition: the text of `if`, joined with that of the caller by `&&`.
        needs: keys of the jobs that come first, in the same workflow.
        masked: `continue-on-error` as a text that is not "false".
        runner: `runs-on` as a text.
        matrix: one mapping of texts for each leg; empty without a matrix, or where it is open.
        env: names and texts, those of the workflow included.
    """

    place: Place
    key: str
    checks: tuple[str, ...]
    template: str
    open: bool = False
    condition: str | None = None
    needs: tuple[str, ...] = ()
    masked: str | None = None
    runner: str = ""
    matrix: tuple[Mapping[str, str], ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    faults: tuple[Defect, ...] = ()


@dataclass(frozen=True, slots=True)
class Trigger:
    """One event of `on`.

    Attributes:
        branches, branches_ignore, tags, tags_ignore, paths, paths_ignore, types: as written; None where the key is
            absent.
    """

    event: str
    place: Place
    branches: tuple[str, ...] | None = None
    branches_ignore: tuple[str, ...] | None = None
    paths: tuple[str, ...] | None = None
    paths_ignore: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    tags_ignore: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Workflow:
    """One workflow file of GitHub Actions. A file that could not be read has a fault with `whole`, and no jobs."""

    file: str
    name: str = ""
    triggers: Mapping[str, Trigger] = field(default_factory=dict)
    jobs: Mapping[str, Job] = field(default_factory=dict)
    faults: tuple[Defect, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command that a step comes to, launchers (`uv run`, `python -m`, …) looked through.

    Attributes:
        words: the command and its arguments; what an expression or variable of unknown value stands for is "\\0".
        chain: where it is written, from the step to the file that has it: `ci.yml:36`, `.ci/run:11`, `Makefile:29`.
        mask: why a failure of it does not fail the step, such as `|| true`; None where it does.
        doubt: why it may not be run at all, such as `inside if`; None where it is run whenever the step is.
        writes: the files that its output is redirected to.
        env: assignments before it.
        folder: where it is run, relative to the repository; "\\0" where that is not known.
    """

    words: tuple[str, ...]
    chain: tuple[Place, ...]
    mask: str | None = None
    doubt: str | None = None
    writes: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    folder: str = "."


@dataclass(frozen=True, slots=True)
class Gap:
    """A part of a script, or something that it calls, that could not be read."""

    chain: tuple[Place, ...]
    what: str
