"""Tier 2, what only the forge's settings can show: the gate's check is required, and nobody passes it by."""

from __future__ import annotations

import re
from typing import ClassVar

from eval_tier.evidence.repository import Evidence, needed
from eval_tier.evidence.settings import Unknown
from eval_tier.evidence.use import Use
from eval_tier.models import Finding, Half
from eval_tier.rules.base import Rule, command_of
from eval_tier.workflow.aggregate import STATUS, carries, honest
from eval_tier.workflow.conditions import covers, reach
from eval_tier.workflow.models import Job, Workflow

#: The application that posts the checks of GitHub Actions.
ACTIONS = 15368


def posted(evidence: Evidence, name: str) -> list[tuple[Workflow, Job]]:
    """The jobs that post a check of a name on a pull request: not those that are only called, or run by the clock."""
    apart = {"workflow_call", "schedule"}
    workflows = [one for one in evidence.workflows if not one.triggers or set(one.triggers) - apart]
    return [(one, job) for one in workflows for job in one.jobs.values() if name in job.checks]


def may_post(evidence: Evidence, name: str) -> Job | None:
    """A job whose checks follow from an expression, and may have this name."""
    for job in (job for workflow in evidence.workflows for job in workflow.jobs.values()):
        pattern = ".*".join(map(re.escape, re.split(r"\$\{\{.*?\}\}", job.template)))
        if (
            job.open
            and name not in job.checks
            and "${{" in job.template
            and re.fullmatch(f"{pattern}( \\(.*\\))?", name)
        ):
            return job
    return None


class _Effect(Rule):
    tier = 2
    half: ClassVar[Half] = "effect"


class Required(_Effect):
    """A workflow cannot declare itself required: tier 2 is half a setting of the branch (K7). The check of the job that
    runs the gate, or of one that needs it, must be required, by classic protection or by a ruleset. The name that is
    required is a job's, never a workflow's or its file's."""

    id, title, requires = "T221", "the gate's check is required", ("T203",)

    def check(self, evidence: Evidence) -> Finding:
        gate = evidence.gate
        if gate is None:
            return self.says("unknown", "there is no gate")
        names = " or ".join(f'"{name}"' for name in gate.job.checks[:2])
        settings = evidence.settings
        if isinstance(settings, Unknown):
            return self.asked(settings, f"whether the check {names} is required", evidence)
        where = f"on {settings.branch}"
        if gate.workflow.file in settings.workflows:
            what = f"{gate.workflow.file} is required {where} by a ruleset"
            return self.says("proven", what, (gate.job.place,), evidence=evidence)
        if isinstance(settings.required, Unknown):
            return self.asked(settings.required, f"whether the check {names} is required {where}", evidence)
        found = evidence.producer(gate)
        if found is not None:
            through = "" if found.direct else f", which needs {gate.job.key!r}"
            what = f'"{found.context.name}" is required {where} by {found.context.source}{through}'
            return self.says("proven", what, (found.job.place,), evidence=evidence)
        if settings.partial is not None:
            return self.asked(settings.partial, f"whether the check {names} is required {where}", evidence)
        mend = f"require {names} on {settings.branch}: Settings, Rules"
        for context in settings.required:
            if not posted(evidence, context.name) and not gate.job.open:
                what = f'the required check "{context.name}" has no producer: no job posts it; the gate posts {names}'
                return self.says("refuted", what, (gate.job.place,), mend=mend, evidence=evidence)
        if gate.job.open:
            what = f"the names of the checks of {gate.job.key!r} follow from an expression"
            return self.says(
                "unknown", what, (gate.job.place,), mend="give the job a literal name", evidence=evidence
            )
        held = ", ".join(f'"{context.name}"' for context in settings.required) or "nothing"
        what = f"the check {names} is not required {where}; required: {held}"
        return self.says("refuted", what, (gate.job.place,), mend=mend, evidence=evidence)


class Single(_Effect):
    """Two jobs that post one name let one's success stand for the other's failure, and a check that is pinned to
    another application is never posted by this CI. One required name, one job, one application."""

    id, title, requires = "T222", "one job alone posts the required check", ("T221",)

    def check(self, evidence: Evidence) -> Finding:
        gate = evidence.gate
        found = evidence.producer(gate) if gate is not None else None
        if found is None:
            return self.says(
                "unknown", "which required check stands for the gate is not known", mend=_snapshot(evidence)
            )
        name = found.context.name
        jobs = posted(evidence, name)
        if len(jobs) > 1:
            what = f'"{name}" is ambiguous: {len(jobs)} jobs post it'
            places = tuple(job.place for _, job in jobs)
            return self.says(
                "refuted", what, places, mend="give each job a name of its own", evidence=evidence
            )
        if other := may_post(evidence, name):
            what = f"the checks of {other.key!r} follow from an expression, and may be {name!r}"
            return self.says(
                "unknown", what, (other.place,), mend="give it a literal name", evidence=evidence
            )
        if found.context.app not in (None, ACTIONS):
            what = (
                f'"{name}" is pinned to application {found.context.app}, not GitHub Actions: never satisfied'
            )
            return self.says(
                "refuted", what, (found.job.place,), mend="pin it to GitHub Actions", evidence=evidence
            )
        return self.says(
            "proven", f'"{name}" is posted by {found.job.key!r} alone', (found.job.place,), evidence=evidence
        )


class Queued(_Effect):
    """Where a merge queue is on, the required workflow must run on merge_group, or what is merged was never graded."""

    id, title, requires = "T223", "the merge queue is graded, too", ("T221",)

    def check(self, evidence: Evidence) -> Finding:
        gate = evidence.gate
        if gate is None:
            return self.says("unknown", "there is no gate")
        truth, why, places = gate.runs("queue", evidence.branch)
        if truth == "true":
            return self.says("proven", f"`{command_of(gate)}` is run on merge_group, too", places)
        settings = evidence.settings
        queue = settings if isinstance(settings, Unknown) else settings.queue
        if isinstance(queue, Unknown):
            return self.asked(queue, "whether a merge queue is on", evidence)
        if not queue:
            return self.says("not-applicable", "no merge queue is on", evidence=evidence)
        if truth == "unknown":
            return self.says("unknown", f"a merge queue is on, and {why}", places, evidence=evidence)
        what = f"a merge queue is on, and the gate is not run for it: {why}"
        return self.says(
            "refuted", what, places, mend="add  merge_group:  to the triggers", evidence=evidence
        )


class Bound(_Effect):
    """A check that administrators or others may bypass is advice to them. Nobody may bypass every rule that requires
    it; where two rulesets require it, one without a bypass is enough."""

    id, title, requires = "T224", "nobody may bypass the required check", ("T221",)

    def check(self, evidence: Evidence) -> Finding:
        settings = evidence.settings
        if isinstance(settings, Unknown):
            return self.asked(settings, "who may bypass the required check", evidence)
        if isinstance(settings.admins, Unknown):
            return self.asked(
                settings.admins, "whether administrators may bypass the required check", evidence
            )
        if not settings.admins:
            mend = "enforce the rule for administrators, too"
            return self.says(
                "refuted", "administrators may bypass the required check", mend=mend, evidence=evidence
            )
        if isinstance(settings.bypass, Unknown):
            return self.asked(settings.bypass, "who may bypass the required check", evidence)
        if settings.bypass:
            what = f"the required check may be bypassed by {', '.join(settings.bypass)}"
            return self.says("refuted", what, mend="take them off the bypass list", evidence=evidence)
        return self.says("proven", "nobody may bypass the required check", evidence=evidence)


class Honest(_Effect):
    """A job that gathers others must fail unless each of them succeeded. Without `if: always()` it is skipped when one
    fails, and a skipped check passes; with it, every result must be looked at, skipped and cancelled ones, too."""

    id, title, requires = "T225", "the job that gathers the results fails unless all succeeded", ("T221",)

    def check(self, evidence: Evidence) -> Finding:
        gate = evidence.gate
        found = evidence.producer(gate) if gate is not None else None
        if gate is None or found is None:
            return self.says(
                "unknown", "which required check stands for the gate is not known", mend=_snapshot(evidence)
            )
        if found.direct:
            return self._direct(evidence, gate)
        if any(place == gate.job.place for _, place in gate.masks):
            what = f"continue-on-error of {gate.job.key!r} makes its result a success for {found.job.key!r}"
            return self.says("refuted", what, (gate.job.place,), mend="take it away", evidence=evidence)
        if lost := carries(gate.workflow, found.job, gate.job.key):
            what = f"the job {lost!r} succeeds where {gate.job.key!r} fails, and {found.job.key!r} looks at it alone"
            mend = f"let {found.job.key!r} need {gate.job.key!r} itself"
            return self.says("refuted", what, (gate.workflow.jobs[lost].place,), mend=mend, evidence=evidence)
        for event in ("fork", "branch"):
            truth, why, place = reach(gate.workflow, found.job.key, event)
            if covers(gate.workflow, event, evidence.branch)[0] == "true" and truth in ("false", "varies"):
                what = f"{found.job.key!r} is not run for every pull request: {why}"
                return self.says("refuted", what, (place,), mend="if: always()", evidence=evidence)
        answer, why, place = honest(found.job)
        if answer is None:
            mend = "compare each needs.JOB.result with success, and exit 1"
            return self.says("unknown", f"{found.job.key!r}: {why}", (place,), mend=mend, evidence=evidence)
        if not answer:
            mend = "if: always(), and fail unless each result is success"
            return self.says("refuted", f"{found.job.key!r}: {why}", (place,), mend=mend, evidence=evidence)
        return self.says(
            "proven", f"{found.job.key!r} fails unless every job succeeded", (place,), evidence=evidence
        )

    def _direct(self, evidence: Evidence, gate: Use) -> Finding:
        """A job that needs others is skipped where one of them fails, unless its `if` says otherwise."""
        if STATUS.search(gate.job.condition or ""):
            return self.says("not-applicable", "the gate's own check is required", evidence=evidence)
        settings = evidence.settings
        required = (
            ()
            if isinstance(settings, Unknown) or isinstance(settings.required, Unknown)
            else settings.required
        )
        names = {context.name for context in required}
        for key in sorted(needed(gate.workflow, gate.job)):
            other = gate.workflow.jobs[key]
            if not names & set(other.checks):
                what = f"{gate.job.key!r} is skipped where {key!r} fails, and a skipped check passes"
                mend = f'require "{other.checks[0]}", too, or one job with `if: always()` that needs both'
                return self.says("refuted", what, (gate.job.place, other.place), mend=mend, evidence=evidence)
        return self.says("not-applicable", "the gate's own check is required", evidence=evidence)


def _snapshot(evidence: Evidence) -> str:
    settings = evidence.settings
    if isinstance(settings, Unknown):
        return settings.mend
    return settings.required.mend if isinstance(settings.required, Unknown) else ""


RULES = (Required, Single, Queued, Bound, Honest)
