"""Whether a workflow starts for every pull request of a kind, by its events and their filters."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from eval_tier.workflow.models import Event, Place, Trigger, Truth, Workflow

_STARTS = ("opened", "synchronize", "reopened")
_RANGE = r"([A-Za-z0-9])-([A-Za-z0-9])"


def covers(workflow: Workflow, event: Event, branch: str = "main") -> tuple[Truth, str, Place]:
    """Whether a workflow starts for every pull request of a kind to `branch`."""
    return started(workflow, event, branch)[:3]


def started(workflow: Workflow, event: Event, branch: str) -> tuple[Truth, str, Place, str]:
    """As `covers`, and the event that starts it."""
    names = ("merge_group",) if event == "queue" else ("pull_request", "pull_request_target", "push")
    file = Place(workflow.file)
    found: list[tuple[Truth, str, Place, str]] = []
    for trigger in (workflow.triggers[name] for name in names if name in workflow.triggers):
        if trigger.event == "push":
            result = _pushed(trigger, branch) if event == "branch" else _NO_PUSH
        else:
            result = _asked(trigger, branch)
        found.append((*result, trigger.place, trigger.event))
    for wanted in ("true", "unknown", "varies", "false"):
        for each in found:
            if each[0] == wanted:
                return each
    if any(fault.whole for fault in workflow.faults):
        return "unknown", "the file could not be read", file, names[0]
    others = ", ".join(sorted(workflow.triggers)[:9]) or "nothing"
    what = "the merge queue does not start it" if event == "queue" else "a pull request does not start it"
    return "false", f"{what}: it is started by {others} alone", file, names[0]


_NO_PUSH: tuple[Truth, str] = (
    "false",
    "it is started by a push alone: a pull request from a fork starts nothing",
)


def _asked(trigger: Trigger, branch: str) -> tuple[Truth, str]:
    """For `pull_request`, `pull_request_target` and `merge_group`."""
    for patterns, wanted in ((trigger.branches, True), (trigger.branches_ignore, False)):
        chosen = None if patterns is None else selected(patterns, branch)
        if patterns is not None and chosen is None:
            return "unknown", "a pattern of its branches cannot be read"
        if chosen is not None and chosen != wanted:
            return "false", f"its `branches{'' if wanted else '-ignore'}` leaves out `{branch}`"
    if trigger.event == "pull_request_target":
        return (
            "false",
            "pull_request_target runs over the files of the base branch, not those of the pull request",
        )
    if trigger.event == "merge_group":
        if trigger.types is not None and "checks_requested" not in trigger.types:
            return "false", "its `types` lacks checks_requested"
        return "true", "the merge queue starts it"
    if trigger.types is not None and (lacking := [name for name in _STARTS if name not in trigger.types]):
        return "varies", f"its `types` lacks {', '.join(lacking)}"
    return _paths(trigger) or ("true", "every pull request starts it")


def _paths(trigger: Trigger) -> tuple[Truth, str] | None:
    key = "paths" if trigger.paths is not None else "paths-ignore" if trigger.paths_ignore else ""
    if not key or trigger.paths == ("**",):
        return None
    return "varies", (
        f"its `{key}` leaves out some pull requests: their check stays pending, "
        "unlike that of a job that `if` skips, which is posted as skipped"
    )


def _pushed(trigger: Trigger, branch: str) -> tuple[Truth, str]:
    """For `push`, whose filters ask for the branch that a pull request comes from."""
    tagged = trigger.tags is not None or trigger.tags_ignore is not None
    if tagged and trigger.branches is None and trigger.branches_ignore is None:
        return "false", "only a push of a tag starts it"
    if trigger.branches is not None and trigger.branches != ("**",):
        if all(pattern == branch for pattern in trigger.branches):
            return "false", f"only a push to `{branch}` starts it, not one to the branch of a pull request"
        return "varies", "only a push to some branches starts it"
    if trigger.branches_ignore is not None and any(pattern != branch for pattern in trigger.branches_ignore):
        return "varies", "a push to some branches does not start it"
    return _paths(trigger) or ("true", "every push to the branch of a pull request starts it")


def selected(patterns: Sequence[str], text: str) -> bool | None:
    """Whether GitHub's filter patterns, of which the last that matches decides, take a text; None for a bad one."""
    chosen = False
    for pattern in patterns:
        found = matches(pattern.removeprefix("!"), text)
        if found is None:
            return None
        if found:
            chosen = not pattern.startswith("!")
    return chosen


def matches(pattern: str, text: str) -> bool | None:
    """Whether one filter pattern matches a whole text, in time linear in both; None for one that cannot be read."""
    if len(pattern) > 1000:
        return None
    items: list[
        tuple[Callable[[str], bool], bool, bool]
    ] = []  # a test of a character; may be absent; may be repeated
    for found in re.finditer(r"\*\*+|\*|\?|\+|\[([^\]]*)\]|\\(.)|(.)", pattern, re.DOTALL):
        if found[0] in ("?", "+"):
            if not items:
                return None
            test, absent, again = items[-1]
            items[-1] = (test, absent or found[0] == "?", again or found[0] == "+")
        elif found[0].startswith("*"):
            items.append(((lambda c: True) if len(found[0]) > 1 else (lambda c: c != "/"), True, True))
        elif found[1] is not None:
            members = {chr(c) for a, b in re.findall(_RANGE, found[1]) for c in range(ord(a), ord(b) + 1)}
            members.update(re.sub(_RANGE, "", found[1]))
            items.append((members.__contains__, False, False))
        else:
            if found[3] in ("[", "\\"):
                return None
            items.append(((found[2] or found[3]).__eq__, False, False))
    here = {0}
    for test, absent, again in items:
        after = set(here) if absent else set()
        front = here
        while front:
            front = {i + 1 for i in front if i < len(text) and test(text[i])} - after
            after |= front
            if not again:
                break
        here = after
    return len(text) in here
