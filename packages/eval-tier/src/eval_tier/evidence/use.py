"""A command of the harness where a CI file runs it: for which pull requests, and whether its failure counts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from eval_tier.evidence.settings import Context
from eval_tier.workflow.conditions import Scene, covers, reach, step_runs, truth
from eval_tier.workflow.models import Command, Event, Job, Place, Step, Truth, Workflow
from eval_tier.workflow.triggers import started

Kind = Literal["measure", "reconstruct", "gate", "publish", "write"]


@dataclass(frozen=True, slots=True)
class Use:
    """A command of the harness, where a CI file runs it.

    Attributes:
        kinds: what it is.
        declared: known by a declaration, and not as one of ours.
        generic: the job is one that was declared of another forge's file, whose events are not read.
        order: its place among the commands of the job.
        doubt: why what it runs may not be what the commit holds.
    """

    kinds: tuple[Kind, ...]
    command: Command
    step: Step
    job: Job
    workflow: Workflow
    order: tuple[int, int]
    declared: bool = False
    generic: bool = False
    doubt: str | None = None

    @property
    def places(self) -> tuple[Place, ...]:
        """The chain from the step to the command."""
        return self.command.chain

    def runs(self, event: Event, branch: str) -> tuple[Truth, str, tuple[Place, ...]]:
        """Whether it is run for every pull request of a kind; the first reason that keeps it from being run."""
        if self.generic:
            return "true", "its job is declared", self.places
        doubtful: tuple[Truth, str, tuple[Place, ...]] | None = None
        if self.workflow.faults:
            # The forge refuses a file that it cannot read whole, or reads it otherwise than we do.
            doubtful = "unknown", self.workflow.faults[0].what, (self.workflow.faults[0].place,)
        scene = Scene(branch, started(self.workflow, event, branch)[3])
        truths = (
            covers(self.workflow, event, branch),
            reach(self.workflow, self.job.key, event, branch),
            (*step_runs(self.step, self.job, event, scene), self.step.place),
        )
        for found, why, place in truths:
            if found == "unknown":
                doubtful = doubtful or (found, why, (place,))
            elif found != "true":
                return found, why, (place,)
        if self.job.faults:
            doubtful = doubtful or ("unknown", self.job.faults[0].what, (self.job.faults[0].place,))
        if doubtful is None and self.command.doubt is not None:
            return "unknown", f"the command may not be run: {self.command.doubt}", self.places
        if doubtful is None and self.doubt is not None:
            return "unknown", self.doubt, self.places
        return doubtful or ("true", "", self.places)

    @property
    def masks(self) -> tuple[tuple[str, Place], ...]:
        """Why its failure does not fail the job's check, or what needs the job."""
        found = []
        if self.command.mask is not None:
            found.append((self.command.mask, self.places[-1]))
        for masked, of, place in (
            (self.step.masked, "step", self.step.place),
            (self.job.masked, "job", self.job.place),
        ):
            if (
                masked is not None
                and not self._counts_in_a_leg(masked)
                and not (of == "step" and self._asked_later())
            ):
                found.append((f"continue-on-error: {masked} of the {of}", place))
        return tuple(found)

    def _asked_later(self) -> bool:
        """Whether a later step fails the job where this one did not succeed, as after a comment on the failure."""
        if not self.step.key:
            return False
        outcome = rf"steps\.{re.escape(self.step.key)}\.outcome\s*(?:!=\s*'success'|==\s*'failure')"
        later = self.job.steps[self.order[0] + 1 :]
        return any(
            step.masked is None
            and re.fullmatch(
                rf"(?:(?:always|failure|!\s*cancelled)\(\)\s*&&\s*)?{outcome}", (step.condition or "").strip()
            )
            and re.search(r"(?:^|[;\n])\s*(?:exit\s+[1-9]\d*|false)\s*$", (step.script or "").strip())
            for step in later
        )

    def _counts_in_a_leg(self, masked: str) -> bool:
        """Whether `continue-on-error` is an expression that is false in some leg of the matrix that runs the step."""
        return any(self._runs_in(leg) and self._fails_in(leg, masked) for leg in self.job.matrix)

    def _runs_in(self, leg: Mapping[str, str]) -> bool:
        env = {**self.job.env, **self.step.env}
        return truth(self.step.condition, "branch", leg, self.job.runner, env)[0] == "true"

    def _fails_in(self, leg: Mapping[str, str], masked: str | None) -> bool:
        """Whether a failure counts in a leg, by the text of `continue-on-error`."""
        if masked is None:
            return True
        text = masked.strip()
        if not (text.startswith("${{") and text.endswith("}}") and text.count("${{") == 1):
            return False
        inner = text[3:-2].strip()
        return leg.get(inner.removeprefix("matrix.")) == "false" or truth(inner, "branch", leg)[0] == "false"

    @property
    def checks(self) -> tuple[str, ...]:
        """The checks of its job that fail where it does: those of the legs that run it and whose failure counts."""
        job, masks = self.job, (self.step.masked, self.job.masked)
        counted = [
            self._runs_in(leg) and all(self._fails_in(leg, mask) for mask in masks) for leg in job.matrix
        ]
        if all(counted):
            return job.checks
        if len(job.checks) != len(counted):
            return ()
        return tuple(check for check, counts in zip(job.checks, counted, strict=True) if counts)


@dataclass(frozen=True, slots=True)
class Producer:
    """A job whose check is required and stands for a use: its own, or that of a job that needs it."""

    context: Context
    job: Job
    direct: bool
