"""Whether a job or a step runs for every pull request of a kind when all before it is well."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from eval_tier.workflow.expressions import (
    WHOLE,
    NotRead,
    Value,
    among,
    either,
    evaluate,
    known,
    parse,
    some,
    status_called,
)
from eval_tier.workflow.models import Event, Job, Place, Step, Truth, Workflow
from eval_tier.workflow.triggers import covers, started

__all__ = ["Scene", "covers", "reach", "step_runs", "truth"]

#: Every action of `pull_request` on one that is open: `closed` is not among them.
_ACTIONS = """
opened synchronize reopened edited labeled unlabeled assigned unassigned locked unlocked milestoned demilestoned
ready_for_review converted_to_draft review_requested review_request_removed auto_merge_enabled auto_merge_disabled
enqueued dequeued
"""
_FACTS = {
    "labels": "the labels of the pull request",
    "title": "the title of the pull request",
    "body": "the description of the pull request",
    "user": "the author of the pull request",
    "author_association": "the author of the pull request",
}
#: Larger files are not evaluated: jobs, and characters of a condition times legs.
_JOBS, _WORK = 500, 400_000
_SYSTEMS = {"ubuntu": "Linux", "windows": "Windows", "macos": "macOS"}


@dataclass(frozen=True, slots=True)
class Scene:
    """What is known of the repository and the run: `trigger` is the event that starts the workflow, `repository` is
    OWNER/NAME where it is known, `needs` says of each needed job whether it runs, `before` whether all of them do."""

    branch: str = "main"
    trigger: str = "pull_request"
    repository: str = ""
    needs: Mapping[str, Truth] = field(default_factory=dict)
    before: Truth = "true"
    drafts: tuple[bool, ...] = (True, False)


@dataclass(frozen=True, slots=True)
class _Contexts:
    event: Event
    scene: Scene
    leg: Mapping[str, str] | None
    runner: str
    env: Mapping[str, str]

    def status(self, name: str) -> Value:
        if name == "success":
            return _ran(self.scene.before, "the jobs that it needs")
        return known(name == "always")

    def look(self, root: str, parts: Sequence[str]) -> Value:
        """The value of a context at a path of names in lower case."""
        match root, *parts:
            case "github", *rest:
                return self.github(rest)
            case "matrix", *rest:
                return self.matrix(".".join(rest))
            case "env", name:
                value = next((v for k, v in self.env.items() if k.lower() == name), None)
                if value is None or "${{" in value:
                    return some(
                        "unknown", f"the variable {name.upper()}, whose value is not written in the file"
                    )
                return known(value)
            case "secrets", "github_token":
                return some("unknown", "the token of the run", "true")
            case "secrets", name:
                if self.event == "fork" and self.scene.trigger != "pull_request_target":
                    return replace(known(""), why="a pull request from a fork has no secrets")
                return some("unknown", f"whether the secret {name.upper()} is set")
            case "steps", _, ("outcome" | "conclusion"):
                return among(("success", "skipped"), "unknown", f"whether the step `{parts[0]}` runs")
            case "steps", *_:
                return some("varies", f"what the step `{parts[0] if parts else '*'}` finds")
            case "needs", "*", "result":
                return self.results()
            case "needs", key, "result":
                return self.result(key)
            case "needs", *_:
                return some("varies", f"what the job `{parts[0] if parts else '*'}` finds")
            case "runner", "os":
                return self.system()
            case "job", "status":
                return known("success")
        return some("unknown", f"`{'.'.join((root, *parts))}`, whose value is not written in the file")

    def github(self, parts: Sequence[str]) -> Value:
        pull, queue = self.scene.trigger.startswith("pull_request"), self.scene.trigger == "merge_group"
        dotted = ".".join(parts)
        if parts and parts[0] == "event":
            return self.payload(list(parts[1:]))
        match dotted:
            case "event_name":
                return known(self.scene.trigger)
            case "ref" if self.scene.trigger == "pull_request":
                return some(
                    "varies", "the number of it", "true", prefix="refs/pull/", suffix="/merge", digits=True
                )
            case "ref_name" if self.scene.trigger == "pull_request":
                return some("varies", "the number of it", "true", suffix="/merge", digits=True)
            case "ref" | "ref_name":
                start = "refs/heads/" if dotted == "ref" else ""
                if pull:
                    return known(start + self.scene.branch)
                start += f"gh-readonly-queue/{self.scene.branch}/".lower() if queue else ""
                return some("varies", "the branch", "true", prefix=start)
            case "ref_type" if not queue:
                return known("branch")
            case "base_ref":
                return known(self.scene.branch if pull else "")
            case "head_ref":
                return some("varies", "the branch that it comes from", "true") if pull else known("")
            case "repository":
                return self.named("repository")
            case "repository_owner":
                return self.named("owner")
            case "actor" | "triggering_actor":
                return some("varies", "who started the run", "true")
            case "sha" | "run_id" | "run_number" | "run_attempt":
                return some("varies", "the run", "true")
            case "token":
                return some("unknown", "the token of the run", "true")
        return some("unknown", f"`github.{dotted}`")

    def named(self, what: str) -> Value:
        if not self.scene.repository:
            return some(
                "unknown", "the name of the repository, which the file does not tell", "true", same=what
            )
        value = known(
            self.scene.repository if what == "repository" else self.scene.repository.partition("/")[0]
        )
        return replace(value, same=what)

    def payload(self, parts: list[str]) -> Value:
        """A value of `github.event`."""
        pull, queue = self.scene.trigger.startswith("pull_request"), self.scene.trigger == "merge_group"
        match parts:
            case []:
                return known(WHOLE)
            case ["repository", "default_branch"]:
                return known(self.scene.branch)
            case ["repository", "full_name"]:
                return self.named("repository")
            case ["repository", "owner", "login"]:
                return self.named("owner")
            case ["action"] if pull:
                return among(_ACTIONS.split(), "varies", "what happened to the pull request")
            case ["action"] if queue:
                return known("checks_requested")
            case ["pull_request", *rest] if pull:
                return self.pull_request(rest)
            case ["number"] if pull:
                return some("varies", "the number of it", "true")
            case ["merge_group", "base_ref"] if queue:
                return known(f"refs/heads/{self.scene.branch}")
            case ["merge_group"] if queue:
                return known(WHOLE)
            case ["pull_request" | "merge_group" | "inputs" | "schedule" | "release" | "issue" | "comment"
                  | "workflow_run" | "client_payload" | "deployment", *_]:  # fmt: skip
                return known(None)
            case ["head_commit" | "commits" | "ref" | "created" | "deleted" | "forced", *_] if pull or queue:
                return known(None)
            case ["head_commit" | "commits", *_]:
                return some("varies", "the message of the commit")
            case ["label", *_]:
                return some("varies", "the labels of the pull request")
        return some("varies", f"`github.event.{'.'.join(parts)}`")

    def pull_request(self, parts: list[str]) -> Value:
        fork = self.event == "fork"
        match parts:
            case []:
                return known(WHOLE)
            case ["head" | "base"] | ["head" | "base", "repo"]:
                return known(WHOLE)
            case ["draft"]:
                return among(self.scene.drafts, "varies", "whether it is a draft")
            case ["number" | "node_id" | "id"] | ["head", "sha" | "ref"] | ["user", "login"]:
                return some("varies", _FACTS.get(parts[0], "the pull request"), "true")
            case ["head", "repo", "fork"]:
                return known(fork)
            case ["head", "repo", "full_name"] if fork:
                return some(
                    "varies", "the fork that it comes from", "true", same="fork", unlike=("repository",)
                )
            case ["head" | "base", "repo", "full_name"]:
                return self.named("repository")
            case ["head", "repo", "owner", "login"] if fork:
                return some("varies", "the owner of the fork", "true")
            case ["head" | "base", "repo", "owner", "login"]:
                return self.named("owner")
            case ["base", "ref"]:
                return known(self.scene.branch)
        return some("varies", _FACTS.get(parts[0], f"`github.event.pull_request.{'.'.join(parts)}`"))

    def result(self, key: str) -> Value:
        truth = next((t for k, t in self.scene.needs.items() if k.lower() == key), "unknown")
        if truth in ("true", "false"):
            return known("success" if truth == "true" else "skipped")
        return among(("success", "skipped"), truth, f"whether the job `{key}` runs")

    def results(self) -> Value:
        found = [self.result(key.lower()) for key in self.scene.needs]
        if found and all(value.kind == "known" for value in found):
            return known([value.values[0] for value in found])
        lists = (["success"], ["skipped"], ["success", "skipped"])
        kind = "varies" if found and all(value.kind != "unknown" for value in found) else "unknown"
        return among(lists, kind, "which of the needed jobs run")

    def matrix(self, name: str) -> Value:
        if self.leg is None:
            return some("unknown", f"`matrix.{name}`, whose values are not listed")
        text = next((v for k, v in self.leg.items() if k.lower() == name), None)
        if text is None:
            inner = "." in name or any(k.lower().startswith(f"{name}.") for k in self.leg)
            return some("unknown", f"`matrix.{name}`") if inner or not name else known(None)
        if "${{" in text:
            return some("unknown", f"`matrix.{name}`, whose value is not written in the file")
        # The reader keeps texts: whether `false` was in quotes, which makes it true, is not told.
        plain = {"true": True, "false": False, "null": None, "~": None, "": None}
        if text.lower() in plain:
            return among((text, plain[text.lower()]), "unknown", f"whether `{text}` of the matrix is a text")
        if re.fullmatch(r"[+-]?\d{1,15}(\.\d{1,15})?", text):
            return among((text, float(text)), "unknown", f"whether `{text}` of the matrix is a text")
        return known(text)

    def system(self) -> Value:
        def put(found: re.Match[str]) -> str:
            return next((v for k, v in (self.leg or {}).items() if k.lower() == found[1].lower()), "")

        runner = re.sub(r"\$\{\{\s{0,9}matrix\.([\w.-]{1,99})\s{0,9}\}\}", put, self.runner).strip()
        found = re.fullmatch(r"(ubuntu|windows|macos)-[\w.-]+", runner)
        return known(_SYSTEMS[found[1]]) if found else some("unknown", "the system of the runner")


def _ran(truth: Truth, why: str) -> Value:
    return known(truth == "true") if truth in ("true", "false") else some(truth, f"whether {why} run")


def _bare(condition: str) -> str:
    text = condition.strip()
    if text.startswith("${{") and text.endswith("}}") and text.count("${{") == 1:
        text = text[3:-2].strip()
    return text


def truth(
    condition: str | None,
    event: Event,
    leg: Mapping[str, str] | None = None,
    runner: str = "",
    env: Mapping[str, str] | None = None,
    scene: Scene | None = None,
) -> tuple[Truth, str]:
    """What the text of an `if` comes to for every pull request of a kind, and why, in one sentence.

    `true` and `false` are said only where they are certain; `varies` where some pull requests of the kind skip it.
    """
    scene = scene or Scene(trigger="merge_group" if event == "queue" else "pull_request")
    try:
        node = parse(_bare(condition or "success()"))
        if not status_called(node):
            node = ("and", [("call", "success", []), node])
        place = _Contexts(event, scene, leg, runner, env or {})
        found = evaluate(node, place.look, place.status)
        if found.truth == "varies" and len(scene.drafts) > 1:
            draft = replace(place, scene=replace(scene, drafts=(True,)))
            if evaluate(node, draft.look, draft.status).truth == "false":
                return "varies", "a draft skips it"
    except NotRead as problem:
        return "unknown", str(problem)
    except (RecursionError, OverflowError, ValueError, TypeError):
        return "unknown", "the condition cannot be read"
    kind = {
        "fork": "a pull request from a fork",
        "branch": "a pull request from a branch",
        "queue": "the merge queue",
    }
    match found.truth:
        case "true":
            return "true", f"{kind[event]} always runs it"
        case "false":
            return "false", f"{kind[event]} never runs it" + (f": {found.why}" if found.why else "")
        case "varies":
            return "varies", f"some skip it: it depends on {found.why}"
    return "unknown", f"it depends on {found.why}"


def _best(found: Iterable[tuple[Truth, str]]) -> tuple[Truth, str]:
    """Whether one of several always runs."""
    values = list(found)
    result = some(*_valued(values[0]))
    for each in values[1:]:
        result = either(result, some(*_valued(each)))
    return result.truth, result.why


def _valued(found: tuple[Truth, str]) -> tuple[str, str, Truth]:
    return "varies" if found[0] == "varies" else "unknown", found[1], found[0]


def _legs(job: Job) -> list[Mapping[str, str] | None]:
    return list(job.matrix[:256]) or [None if job.open else {}]


def step_runs(step: Step, job: Job, event: Event, scene: Scene | None = None) -> tuple[Truth, str]:
    """Whether a step runs in its job: true where, in some leg of the matrix, it always does."""
    if step.condition is None:
        return truth(None, event, scene=scene)
    if len(step.condition) * len(job.matrix) > _WORK:
        return "unknown", "the condition and the matrix are too large"
    env = {**job.env, **step.env}
    return _best(truth(step.condition, event, leg, job.runner, env, scene) for leg in _legs(job))


def reach(
    workflow: Workflow, key: str, event: Event, branch: str = "main", repository: str = ""
) -> tuple[Truth, str, Place]:
    """Whether a job runs once its workflow has started, with the jobs that it needs.

    A job without a status function in its `if` is skipped where any job before it is, however far back.
    """
    if key not in workflow.jobs:
        return "unknown", f"there is no job `{key}`", Place(workflow.file)
    if len(workflow.jobs) > _JOBS or sum(len(job.needs) for job in workflow.jobs.values()) > 10 * _JOBS:
        return "unknown", f"the file has more than {_JOBS} jobs, or too many needs", Place(workflow.file)
    scene = Scene(branch, started(workflow, event, branch)[3], repository)
    order, circle = _order(workflow, key)
    if circle:
        return "false", f"the jobs need each other in a circle, at `{circle}`", workflow.jobs[circle].place
    done: dict[str, tuple[Truth, str, Place]] = {}
    before: dict[str, frozenset[str]] = {}
    for name in order:
        job = workflow.jobs[name]
        before[name] = frozenset(job.needs).union(*(before.get(n, frozenset()) for n in job.needs))
        done[name] = _job(
            job, sorted(before[name], key=lambda n: (n not in job.needs, n)), done, event, scene
        )
    return done[key]


def _job(
    job: Job, before: Sequence[str], done: Mapping[str, tuple[Truth, str, Place]], event: Event, scene: Scene
) -> tuple[Truth, str, Place]:
    missing: tuple[Truth, str, Place] = ("unknown", "it is not a job of the file", job.place)
    states = {name: done.get(name, missing) for name in before}
    order: tuple[Truth, ...] = ("false", "varies", "unknown", "true")
    worst = next(t for t in order if t == "true" or any(state[0] == t for state in states.values()))
    if len(job.condition or "") * len(job.matrix) > _WORK:
        return "unknown", "the condition and the matrix are too large", job.place
    here = replace(scene, needs={n: states[n][0] for n in job.needs}, before=worst)
    found, why = _best(truth(job.condition, event, leg, job.runner, job.env, here) for leg in _legs(job))
    if found != "true" and worst != "true" and truth(job.condition, event, None, scene=scene)[0] != found:
        name = next(n for n, state in states.items() if state[0] == worst)
        return found, f"it needs `{name}`: {states[name][1]}", states[name][2]
    return found, why, job.place


def _order(workflow: Workflow, key: str) -> tuple[list[str], str]:
    """The jobs before `key` and itself, each after those that it needs; and a job of a circle."""
    order: list[str] = []
    open_, closed = {key}, set[str]()
    stack = [(key, iter(workflow.jobs[key].needs))]
    while stack:
        name, needs = stack[-1]
        need = next(needs, None)
        if need is None:
            stack.pop()
            open_.discard(name)
            closed.add(name)
            order.append(name)
        elif need in open_:
            return [], need
        elif need not in closed and need in workflow.jobs:
            open_.add(need)
            stack.append((need, iter(workflow.jobs[need].needs)))
    return order, ""
