"""Whether a workflow starts, and a job or step runs, for every pull request of a kind, by their conditions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from eval_tier.workflow.expressions import Open, Symbol, Unreadable, evaluate, truth_of
from eval_tier.workflow.models import Event, Job, Place, Truth, Workflow

_STATUS = re.compile(r"\b(always|success|failure|cancelled)\s*\(", re.IGNORECASE)
_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_REPOSITORY, _HEAD, _DEFAULT = Symbol("the repository"), Symbol("the fork"), Symbol("the default branch")

#: What differs between pull requests of one kind, in words that follow "depends".
_VARIES = {
    "draft": "on whether the pull request is a draft",
    "labels": "on the labels of the pull request",
    "user": "on the author of the pull request",
    "author_association": "on the author of the pull request",
    "title": "on the title of the pull request",
    "body": "on the text of the pull request",
    "head": "on the branch of the pull request",
}
_SYSTEMS = {"ubuntu": "Linux", "linux": "Linux", "macos": "macOS", "windows": "Windows"}


class _World:
    """What the contexts of an expression come to for one kind of event."""

    def __init__(
        self,
        event: Event,
        job: Job | None,
        leg: Mapping[str, str] | None,
        branch: str | None,
        name: str | None,
        results: Mapping[str, Truth] | None,
    ) -> None:
        self.event, self.job, self.leg = event, job, leg
        self.branch: Any = branch if branch is not None else _DEFAULT
        self.name = name or ("merge_group" if event == "queue" else "pull_request")
        self.results = results
        self.depth = 0

    def __call__(self, parts: tuple[str, ...]) -> Any:
        head, rest = parts[0], parts[1:]
        if head == "github":
            return self.github(rest)
        if head == "matrix" and self.leg is not None and rest:
            by = {key.lower(): value for key, value in self.leg.items()}
            return by.get(".".join(rest), "")
        if head == "runner" and rest == ("os",) and self.job is not None:
            named = next((v for k, v in _SYSTEMS.items() if k in self.job.runner.lower()), None)
            return named if named and "${{" not in self.job.runner else Open("unknown", "on the runner")
        if head == "secrets" and rest and rest[0] != "github_token":
            fork = self.event == "fork" and self.name != "pull_request_target"
            return "" if fork else Open("unknown", f"on whether the secret {rest[0].upper()} is set")
        if head == "env" and len(rest) == 1:
            return self.env(rest[0])
        if head == "needs" and len(rest) == 2 and rest[1] == "result":
            return self.result(rest[0])
        if head in ("steps", "needs"):
            return Open("varies", f"on the outputs of {rest[0] if rest else head!r}")
        return Open("unknown", f"on the value of {'.'.join(parts)}")

    def github(self, rest: tuple[str, ...]) -> Any:
        name = rest[0] if rest else ""
        pull = self.name in ("pull_request", "pull_request_target")
        target = self.name == "pull_request_target"
        if name == "event_name":
            return self.name
        if name == "repository":
            return _REPOSITORY
        if name in ("actor", "triggering_actor", "actor_id", "head_ref", "sha", "run_number", "run_attempt"):
            if name == "head_ref" and not pull:
                return ""
            what = "branch" if name == "head_ref" else "author" if "actor" in name else name
            return Open("varies", f"on the {what} of the pull request" if pull else f"on github.{name}")
        if name == "base_ref":
            return self.branch if pull else ""
        if name == "ref_type":
            return "branch"
        if name in ("ref", "ref_name"):
            prefix = "refs/heads/" if name == "ref" else ""
            if pull and not target:
                return "refs/pull/1/merge" if name == "ref" else "1/merge"
            if target:
                return (
                    prefix + self.branch if isinstance(self.branch, str) else Open("unknown", "on the branch")
                )
            if self.name == "merge_group" and isinstance(self.branch, str):
                return f"{prefix}gh-readonly-queue/{self.branch}/pr-1-0"
            return (
                prefix + "gh-readonly-queue/"
                if self.name == "merge_group"
                else Open("varies", "on the branch")
            )
        return (
            self.payload(rest[1:], pull)
            if name == "event"
            else Open("unknown", f"on github.{'.'.join(rest)}")
        )

    def payload(self, rest: tuple[str, ...], pull: bool) -> Any:
        if rest == ("repository", "full_name"):
            return _REPOSITORY
        if rest == ("repository", "default_branch"):
            return self.branch
        if rest == ("repository", "fork"):
            return Open("unknown", "on whether this repository is a fork")
        if rest[:1] == ("pull_request",):
            if not pull:
                return None
            inner = rest[1:]
            if inner == ("base", "ref"):
                return self.branch
            if inner == ("base", "repo", "full_name"):
                return _REPOSITORY
            if inner == ("head", "repo", "fork"):
                return self.event == "fork"
            if inner == ("head", "repo", "full_name"):
                return _HEAD if self.event == "fork" else _REPOSITORY
            if not inner:
                return {"number": 1.0}
            return Open("varies", _VARIES.get(inner[0], f"on github.event.pull_request.{'.'.join(inner)}"))
        if pull and rest and rest[0] in ("inputs", "schedule", "release", "issue", "comment", "workflow_run"):
            return None
        return Open("varies", f"on github.event.{'.'.join(rest)}")

    def env(self, name: str) -> Any:
        given = {key.lower(): value for key, value in (self.job.env if self.job else {}).items()}.get(name)
        self.depth += 1
        try:
            if given is None or self.depth > 5:
                return Open("unknown", f"on the value of env.{name}")
            if "${{" not in given:
                return given
            whole = _EXPRESSION.fullmatch(given.strip())
            if whole is None or "${{" in whole[1]:
                return Open("unknown", f"on the value of env.{name}")
            return evaluate(whole[1], self, self.status)
        finally:
            self.depth -= 1

    def result(self, need: str) -> Any:
        if self.results is None:
            return "success"
        known = {key.lower(): value for key, value in self.results.items()}
        group = [value for key, value in known.items() if key == need or key.startswith(need + "/")]
        if group and all(value == "true" for value in group):
            return "success"
        if group and all(value == "false" for value in group):
            return "skipped"
        return Open("unknown", f"on whether {need!r} runs")

    def status(self, name: str) -> Any:
        if name in ("failure", "cancelled"):
            return False
        if name == "always" or self.results is None:
            return True
        found = set(self.results.values())
        if "false" in found:
            return False
        kind = next((kind for kind in ("unknown", "varies") if kind in found), None)
        return (
            True
            if kind is None
            else Open("unknown" if kind == "unknown" else "varies", "on a job that it needs")
        )


def truth(
    condition: str | None,
    event: Event,
    job: Job | None = None,
    leg: Mapping[str, str] | None = None,
    *,
    branch: str | None = None,
    name: str | None = None,
    results: Mapping[str, Truth] | None = None,
) -> tuple[Truth, str]:
    """What an `if` comes to while all is well, and why.

    Args:
        leg: the values of the matrix.
        branch: the default branch, where its name is known.
        name: the event's name where it is not the usual one of its kind.
        results: whether the needed jobs run; without them, they do.
    """
    source = (condition or "").strip()
    if "${{" in source:
        whole = _EXPRESSION.fullmatch(source)
        if whole is None or "${{" in whole[1]:
            return ("unknown", "the condition mixes text and expressions")
        source = whole[1].strip()
    world = _World(event, job, leg, branch, name, results)
    try:
        bare = re.sub(r"'(?:[^']|'')*'", "''", source)
        implied = not _STATUS.search(bare)
        value: Any = evaluate(source, world, world.status) if source else True
        if implied:
            before = world.status("success")
            value = (
                value
                if before is True
                else evaluate("a && b", lambda p: before if p == ("a",) else value, bool)
            )
    except Unreadable as error:
        return ("unknown", f"the condition could not be read: {error}")
    found = truth_of(value)
    if isinstance(value, Open) and value.truth is None:
        return (found, f"it depends {value.why}")
    return (found, "no condition" if not source else f"`{source[:80]}` is {found}")


def reach(
    workflow: Workflow, key: str, event: Event, *, branch: str | None = None
) -> tuple[Truth, str, Place]:
    """Whether a job runs, its chain of `needs` included; with a matrix, whether some leg always does."""
    name = next((n for n in _NAMES[event] if n in workflow.triggers), None)
    known: dict[str, tuple[Truth, str, Place]] = {}
    ancestors: dict[str, set[str]] = {}
    stack, path = [key], {key}
    while stack:
        job = workflow.jobs.get(stack[-1])
        if job is None:
            known[stack.pop()] = ("unknown", "the job does not exist", Place(workflow.file))
            continue
        later = [need for need in job.needs if need not in known]
        if any(need in path for need in later):
            return ("unknown", "the jobs need each other", job.place)
        if later:
            stack.append(later[0])
            path.add(later[0])
            continue
        before = set(job.needs).union(*(ancestors.get(need, set()) for need in job.needs))
        ancestors[job.key] = before
        known[job.key] = _runs(job, event, branch, name, {need: known[need] for need in sorted(before)})
        path.discard(stack.pop())
    return known[key]


def _runs(
    job: Job,
    event: Event,
    branch: str | None,
    name: str | None,
    before: Mapping[str, tuple[Truth, str, Place]],
) -> tuple[Truth, str, Place]:
    results = {key: found for key, (found, _, _) in before.items()}
    every = [
        truth(job.condition, event, job, leg, branch=branch, name=name, results=results)
        for leg in job.matrix or (None,)
    ]
    for wanted in ("true", "unknown", "varies", "false"):
        for found, why in every:
            if found != wanted:
                continue
            if (
                found != "true"
                and truth(
                    job.condition, event, job, job.matrix[0] if job.matrix else None, branch=branch, name=name
                )[0]
                == "true"
            ):
                for need, (state, reason, place) in before.items():
                    if state != "true":
                        return (found, f"it needs {need!r}: {reason}", place)
            return (found, why, job.place)
    raise AssertionError  # pragma: no cover - the loop above covers every Truth


_NAMES: dict[Event, tuple[str, ...]] = {
    "fork": ("pull_request", "pull_request_target"),
    "branch": ("pull_request", "pull_request_target", "push"),
    "queue": ("merge_group",),
}


def covers(workflow: Workflow, event: Event, branch: str) -> tuple[Truth, str, Place]:
    """Whether the workflow starts for every pull request of a kind to `branch`."""
    best: tuple[Truth, str, Place] | None = None
    for name in _NAMES[event]:
        trigger = workflow.triggers.get(name)
        if trigger is None:
            continue
        found: tuple[Truth, str] = ("true", f"it starts on {name}")
        if name == "push":
            if trigger.branches is not None or trigger.branches_ignore is not None:
                found = ("varies", "it starts on pushes to some branches only")
        elif not _matches(trigger.branches, trigger.branches_ignore, branch):
            found = ("false", f"its branches leave {branch!r} out")
        kinds = {"opened", "synchronize", "reopened"} if name.startswith("pull") else {"checks_requested"}
        if (
            found[0] == "true"
            and trigger.types is not None
            and name != "push"
            and not kinds <= set(trigger.types)
        ):
            found = ("varies", f"its types leave out {', '.join(sorted(kinds - set(trigger.types)))}")
        filtered = trigger.paths not in (None, ("**",)) or trigger.paths_ignore is not None
        if found[0] == "true" and filtered:
            found = ("varies", "it starts for some paths only; elsewhere its checks stay pending")
        if best is None or _RANK.index(found[0]) < _RANK.index(best[0]):
            best = (*found, trigger.place)
    if best is not None:
        return best
    wanted = "merge_group" if event == "queue" else "pull_request"
    whole = any(fault.whole for fault in workflow.faults)
    why = "the file could not be read" if whole else f"it does not start on {wanted}"
    if event == "fork" and "push" in workflow.triggers:
        why += "; a push to the repository starts it, a pull request from a fork does not"
    return ("unknown" if whole else "false", why, Place(workflow.file))


_RANK: tuple[Truth, ...] = ("true", "unknown", "varies", "false")


def _matches(branches: tuple[str, ...] | None, ignored: tuple[str, ...] | None, branch: str) -> bool:
    if ignored is not None and any(_glob(pattern, branch) for pattern in ignored):
        return False
    if branches is None:
        return True
    kept = False
    for pattern in branches:
        if _glob(pattern.removeprefix("!"), branch):
            kept = not pattern.startswith("!")
    return kept


def _glob(pattern: str, branch: str) -> bool:
    """GitHub's filter patterns: `*` stays within a folder, `**` does not; `?` and `+` repeat what is before."""
    parts = re.findall(r"\*\*+|\*|\[[^\]]*\]|[?+]|.", pattern[:200], re.DOTALL)
    wild = sum(part[0] in "*?+" for part in parts)
    if wild > 8:
        return False
    text = "".join(
        ".*"
        if p.startswith("**")
        else "[^/]*"
        if p == "*"
        else p
        if p in "?+" or len(p) > 1
        else re.escape(p)
        for p in parts
    )
    try:
        return re.fullmatch(text, branch[:200]) is not None
    except re.error:
        return False
