"""What GitHub's answers say of a branch: the union of classic protection and active rulesets."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any
from urllib.parse import quote

from eval_core.console import clip
from eval_tier.evidence.settings import Call, Context, Snapshot, Unknown

ADMINS = "repository admins"
OWNERS = "organization owners"
_ROLES = {2: "repository role maintain", 4: "repository role write", 5: ADMINS}

Answer = Any


@dataclass(frozen=True, slots=True)
class Rule:
    """What requires checks or files, and who may pass it by."""

    source: str
    contexts: tuple[Context, ...] = ()
    files: tuple[str, ...] = ()
    bypass: frozenset[str] | Unknown = frozenset()


@dataclass(slots=True)
class _Found:
    rules: list[Rule] = field(default_factory=list)
    queue: bool = False
    gaps: list[Unknown] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def branch_path(repository: str, branch: str) -> str:
    """The path of a branch, whose name may hold slashes."""
    return f"/repos/{repository}/branches/{quote(branch, safe='')}"


def rules_path(repository: str, branch: str, page: int) -> str:
    """The path of one page of the rules that are active on a branch."""
    more = f"&page={page}" if page > 1 else ""
    return f"/repos/{repository}/rules/branches/{quote(branch, safe='')}?per_page=100{more}"


def ruleset_path(repository: str, number: int) -> str:
    """The path of one ruleset."""
    return f"/repos/{repository}/rulesets/{number}"


def ruleset_ids(rules: Iterable[Any]) -> list[int]:
    """The rulesets that rules come from, in order."""
    given = (rule.get("ruleset_id") for rule in rules if isinstance(rule, dict))
    return list(dict.fromkeys(number for number in given if type(number) is int))


def interpret(snapshot: Snapshot) -> dict[str, Any]:
    """The fields of `Settings` that GitHub's answers give."""
    answers = snapshot.answers()
    found = _Found()
    _classic(snapshot, answers, found)
    rules_seen = _rulesets(snapshot, answers, found)
    queue: bool | Unknown = found.queue or rules_seen or False
    required: tuple[Context, ...] | Unknown = tuple(
        dict.fromkeys(context for rule in found.rules for context in rule.contexts)
    )
    workflows = tuple(dict.fromkeys(file for rule in found.rules for file in rule.files))
    partial = _joined(found.gaps)
    if partial is not None and not required:
        required, partial = partial, None
    bypass: tuple[str, ...] | Unknown
    admins: bool | Unknown
    if isinstance(required, Unknown) and not workflows:
        bypass = admins = required
    else:
        bypass, admins = _bypassed(found.rules)
    return {
        "required": required,
        "workflows": workflows,
        "queue": queue,
        "admins": admins,
        "bypass": bypass,
        "notes": tuple(found.notes),
        "partial": partial,
    }


def _joined(gaps: list[Unknown]) -> Unknown | None:
    if len(gaps) < 2:
        return gaps[0] if gaps else None
    mends = " ".join(dict.fromkeys(gap.mend for gap in gaps))
    return Unknown("; ".join(dict.fromkeys(gap.why for gap in gaps)), mends)


# ------------------------------------------------------------------------------------- classic protection


def _classic(snapshot: Snapshot, answers: dict[str, Call], found: _Found) -> None:
    """Classic protection: by its own call, else by what the branch says of it."""
    path = branch_path(snapshot.repository, snapshot.branch)
    own, branch = answers.get(f"{path}/protection"), answers.get(path)
    if own is not None and own.status == 200:
        checks, admins = _own(own.body)
    elif own is not None and own.status == 404 and _message(own) == "Branch not protected":
        return
    else:
        checks, admins = _of_branch(branch.body if branch is not None and branch.status == 200 else None)
    contexts = None if checks is None else _contexts(checks, "classic protection")
    if contexts is None:
        if own is not None and own.status == 200:
            found.gaps.append(_odd("classic protection", snapshot))
        else:
            found.gaps.append(unseen("classic protection", own, "Administration: read", snapshot))
    elif contexts:
        bypass = frozenset[str]() if admins else frozenset({ADMINS})
        found.rules.append(Rule("classic protection", contexts, bypass=bypass))
        found.notes.append("classic protection may have a merge queue, which GitHub's API does not show")


def _own(body: Answer) -> tuple[Answer, bool]:
    """The checks that `…/protection` names, and whether they bind administrators."""
    if not isinstance(body, dict) or not ({"required_status_checks", "enforce_admins", "url"} & set(body)):
        return None, False
    admins = body.get("enforce_admins")
    bound = isinstance(admins, dict) and admins.get("enabled") is True
    return body.get("required_status_checks") or {"contexts": []}, bound


def _of_branch(body: Answer) -> tuple[Answer, bool]:
    """The same as the branch tells everybody who may read it; None where it does not."""
    if not isinstance(body, dict):
        return None, False
    if body.get("protected") is False:
        return {"contexts": []}, False
    protection = body.get("protection")
    checks = protection.get("required_status_checks") if isinstance(protection, dict) else None
    level = checks.get("enforcement_level") if isinstance(checks, dict) else None
    if level == "off":
        return {"contexts": []}, False
    return (checks, level == "everyone") if level in ("non_admins", "everyone") else (None, False)


def _contexts(checks: Answer, source: str) -> tuple[Context, ...] | None:
    """The contexts of classic protection; None where they are not of the known form."""
    if not isinstance(checks, dict) or not ({"checks", "contexts"} & set(checks)):
        return None
    with_apps = _checks(checks.get("checks") or [], "app_id", source)
    names = checks.get("contexts") or []
    if with_apps is None or not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    named = {context.name for context in with_apps}
    return (*with_apps, *(Context(name, None, source) for name in names if name not in named))


def _checks(given: Answer, key: str, source: str) -> tuple[Context, ...] | None:
    """Contexts with the app that has to post each; -1 and null are any app."""
    if not isinstance(given, list):
        return None
    out = []
    for check in given:
        if not isinstance(check, dict) or not isinstance(check.get("context"), str):
            return None
        app = check.get(key)
        if app is not None and type(app) is not int:
            return None
        out.append(Context(check["context"], None if app == -1 else app, source))
    return tuple(out)


# ------------------------------------------------------------------------------------- rulesets


def _rulesets(snapshot: Snapshot, answers: dict[str, Call], found: _Found) -> Unknown | None:
    """Rules of active rulesets; Unknown where the forge's own list of them was not observed."""
    listed, gap = _listed(snapshot, answers)
    if gap is not None:
        found.gaps.append(gap)
        for own, body in islice(_bodies(snapshot, answers), 20):
            if applies(body, snapshot.branch, default_branch(snapshot)):
                rules = body.get("rules")
                for rule in rules if isinstance(rules, list) else ():
                    _rule(rule, own, snapshot, answers, found)
        return gap
    for rule in listed:
        number = rule.get("ruleset_id") if isinstance(rule, dict) else None
        _rule(rule, number if type(number) is int else None, snapshot, answers, found)
    return None


def _listed(snapshot: Snapshot, answers: dict[str, Call]) -> tuple[list[Any], Unknown | None]:
    """All pages of the rules that are active on the branch."""
    rules: list[Any] = []
    for page in count(1):
        call = answers.get(rules_path(snapshot.repository, snapshot.branch, page))
        if call is None and page > 1:
            return rules, None
        if call is None or call.status != 200:
            return [], unseen("the list of active rules", call, "Metadata: read", snapshot)
        if not isinstance(call.body, list):
            return [], _odd("the list of active rules", snapshot)
        rules += call.body
    return rules, None


def _bodies(snapshot: Snapshot, answers: dict[str, Call]) -> Iterator[tuple[int, dict[str, Any]]]:
    own = re.compile(re.escape(f"/repos/{snapshot.repository}/rulesets/") + r"([0-9]{1,18})")
    for path, call in answers.items():
        if (match := own.fullmatch(path)) and call.status == 200 and isinstance(call.body, dict):
            yield int(match[1]), call.body


def _rule(
    rule: Answer, number: int | None, snapshot: Snapshot, answers: dict[str, Call], found: _Found
) -> None:
    """One rule of a ruleset, if it requires something before a merge."""
    kind = rule.get("type") if isinstance(rule, dict) else None
    if not isinstance(kind, str):
        found.gaps.append(_odd("the list of active rules", snapshot))
        return
    if kind not in ("required_status_checks", "workflows", "merge_queue"):
        return
    call = None if number is None else answers.get(ruleset_path(snapshot.repository, number))
    body = call.body if call is not None and call.status == 200 and isinstance(call.body, dict) else {}
    source = f"ruleset {_shown(body.get('name')) or number}"
    if body.get("enforcement", "active") != "active":
        found.notes.append(f"{source} is not enforced ({_shown(body.get('enforcement'))})")
        return
    if kind == "merge_queue":
        found.queue = True
        return
    parameters = rule.get("parameters")
    given = parameters.get(kind) if isinstance(parameters, dict) else None
    bypass = _actors(source, call, snapshot)
    if kind == "workflows":
        files = _files(given, source, answers.get(f"/repos/{snapshot.repository}"), found)
        found.rules.append(Rule(source, files=files, bypass=bypass))
        return
    contexts = _checks(given, "integration_id", source)
    if contexts is None:
        found.gaps.append(_odd(source, snapshot))
    else:
        found.rules.append(Rule(source, contexts, bypass=bypass))


def _files(given: Answer, source: str, repository: Call | None, found: _Found) -> tuple[str, ...]:
    """The workflow files that a rule requires: of this repository, since a file elsewhere is another file."""
    own = repository.body.get("id") if repository is not None and isinstance(repository.body, dict) else None
    files = []
    for one in given if isinstance(given, list) else ():
        path = one.get("path") if isinstance(one, dict) else None
        if not isinstance(path, str):
            continue
        if own is not None and one.get("repository_id") == own:
            files.append(path)
        else:
            found.notes.append(f"{source} requires the workflow {_shown(path)} of another repository")
    return tuple(files)


def _actors(source: str, call: Call | None, snapshot: Snapshot) -> frozenset[str] | Unknown:
    """Who may bypass a ruleset. The key is left out, not empty, where the reader may not see it."""
    right = "Administration: write"
    if call is None or call.status != 200:
        return unseen(source, call, right, snapshot)
    actors = call.body.get("bypass_actors") if isinstance(call.body, dict) else None
    if actors is None:
        why = f"{source} was answered without its bypass_actors, which only those who may change it see"
        return Unknown(why, _with(right, snapshot))
    if not isinstance(actors, list):
        return _odd(source, snapshot)
    names = set()
    for actor in actors:
        kind, number = (
            (actor.get("actor_type"), actor.get("actor_id")) if isinstance(actor, dict) else (None, None)
        )
        if kind == "OrganizationAdmin":
            names.add(OWNERS)
        elif kind == "RepositoryRole" and type(number) is int:
            names.add(_ROLES.get(number, f"repository role {number}"))
        else:
            names.add(_shown(f"{kind} {number}") if number is not None else _shown(f"{kind}"))
    return frozenset(names)


def _bypassed(rules: list[Rule]) -> tuple[tuple[str, ...] | Unknown, bool | Unknown]:
    """Who may pass by every rule that requires one of the checks, and whether administrators are bound by all."""
    by_check: dict[str, list[Rule]] = {}
    for rule in rules:
        for name in (*(context.name for context in rule.contexts), *(f"file {file}" for file in rule.files)):
            by_check.setdefault(name, []).append(rule)
    who: dict[str, None] = {}
    unknown: Unknown | None = None
    bound: bool | Unknown = bool(by_check)
    for together in by_check.values():
        gaps = [rule.bypass for rule in together if isinstance(rule.bypass, Unknown)]
        sets = [rule.bypass for rule in together if not isinstance(rule.bypass, Unknown)]
        if any(not some for some in sets):
            continue  # one rule that nobody may bypass enforces the check
        if not gaps:
            who.update(dict.fromkeys(_common(sets)))
        unknown = unknown or _joined(gaps)
        if any(not _has_admins(some) for some in sets):
            continue
        if not gaps:
            bound = False
        elif bound is not False:
            bound = _joined(gaps) or bound
    return (tuple(who) if who or unknown is None else unknown), bound


def _common(sets: list[frozenset[str]]) -> list[str]:
    """Who is in every set. Organization owners are admins of its repositories; groups may have members in common."""
    common = frozenset.intersection(*(some | {OWNERS} if ADMINS in some else some for some in sets))
    if ADMINS in common and not all(OWNERS in some for some in sets):
        common -= {OWNERS}
    return sorted(common) or ["whoever is in each of: " + "; ".join(", ".join(sorted(some)) for some in sets)]


def _has_admins(some: frozenset[str]) -> bool:
    return any(name == OWNERS or name.startswith("repository ") for name in some)


# ------------------------------------------------------------------------------------- conditions


def default_branch(snapshot: Snapshot) -> str | None:
    """The default branch, where the forge said it."""
    answers = snapshot.answers()
    call = answers.get(f"/repos/{snapshot.repository}")
    name = call.body.get("default_branch") if call is not None and isinstance(call.body, dict) else None
    return name if isinstance(name, str) else None


def applies(ruleset: dict[str, Any], branch: str, default: str | None) -> bool:
    """Whether a ruleset surely applies to a branch: active, of branches, with conditions that can be evaluated.

    An empty `include` with an `exclude` is every branch but the excluded. More or longer patterns than people write are
    not evaluated.
    """
    conditions = ruleset.get("conditions")
    if ruleset.get("enforcement") != "active" or ruleset.get("target", "branch") != "branch":
        return False
    if not isinstance(conditions, dict) or set(conditions) != {"ref_name"}:
        return False
    names = conditions["ref_name"]
    include, exclude = (
        (names.get(key) for key in ("include", "exclude")) if isinstance(names, dict) else (0, 0)
    )
    if (
        not isinstance(include, list)
        or not isinstance(exclude, list)
        or not 1 <= len(include + exclude) <= 25
    ):
        return False

    def named(pattern: object) -> bool | None:
        if pattern == "~ALL":
            return True
        if pattern == "~DEFAULT_BRANCH":
            return None if default is None else branch == default
        return (
            matches(pattern, f"refs/heads/{branch}")
            if isinstance(pattern, str) and len(pattern) < 100
            else None
        )

    if any(named(pattern) is not False for pattern in exclude):
        return False
    return not include or any(named(pattern) is True for pattern in include)


def matches(pattern: str, ref: str) -> bool:
    """Whether a pattern of fnmatch with path names matches a ref: `*` stops at a slash, `**/` is any folders.

    In steps of pattern times ref, whatever the pattern.
    """
    here = {0}
    for token in re.findall(r"\*\*/|\*+|\?|\[[!^]?\]?[^\]]*\]|\\.|.", pattern, re.DOTALL):
        after: set[int] = set()
        if token == "**/":
            first = min(here, default=len(ref))
            after = here | {at + 1 for at in range(first, len(ref)) if ref[at] == "/"}
        elif token[0] == "*":
            for at in sorted(here):
                while at not in after:
                    after.add(at)
                    if at == len(ref) or ref[at] == "/":
                        break
                    at += 1
        else:
            one = token.replace("[^", "[!", 1) if len(token) > 2 else token
            after = {at + 1 for at in here if at < len(ref) and _is(ref[at], one)}
        here = after
    return len(ref) in here


def _is(character: str, token: str) -> bool:
    if token == "?" or len(token) > 2:
        return character != "/" and fnmatch.fnmatchcase(character, token)
    return character == token[-1]


# ------------------------------------------------------------------------------------- what was not observed


def unseen(what: str, call: Call | None, right: str, snapshot: Snapshot) -> Unknown:
    """Why there is no answer: 403 is a missing right or plan, 404 a thing that is absent or hidden."""
    if call is None:
        return Unknown(f"{what} was not observed", _with(right, snapshot))
    told = _message(call)
    said = f' ("{_shown(told)}")' if told else ""
    if call.status == 403 and told.startswith("Upgrade to "):
        return Unknown(
            f"{what}: 403, the repository's plan does not have it{said}", "See the plan of the repository."
        )
    if call.status == 403:
        return Unknown(f"{what}: 403, the token lacks {right}{said}", _with(right, snapshot))
    if call.status == 404:
        return Unknown(
            f"{what}: 404, absent or hidden from a token without {right}{said}", _with(right, snapshot)
        )
    if call.status == 200:
        return _odd(what, snapshot)
    return Unknown(f"{what}: {call.status}{said}", _with(right, snapshot))


def _with(right: str, snapshot: Snapshot) -> str:
    return f"eval-tier snapshot {snapshot.repository}  with a token (GITHUB_TOKEN) that has {right}"


def _odd(what: str, snapshot: Snapshot) -> Unknown:
    mend = f"Look at the answer in the snapshot, or take it anew: eval-tier snapshot {snapshot.repository}"
    return Unknown(f"{what}: the answer is not of the form that GitHub documents", mend)


def _message(call: Call) -> str:
    message = call.body.get("message") if isinstance(call.body, dict) else None
    return message if isinstance(message, str) else ""


def _shown(text: object) -> str:
    return clip(text, 100) if isinstance(text, str) else ""
