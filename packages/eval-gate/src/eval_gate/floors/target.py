"""The policy here held against that of another branch, for `check --target`: git is started here, and never by judging.

A bar is looser where it lets more pass than that of the target and than that of the merge base, so that a branch is not
blamed for what the target did since. A run that either of them holds must be the same run here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from eval_core.errors import CouldNot, EvalError, Misuse, Refused
from eval_core.policy import (
    BUDGETS,
    FLOORS,
    FLOORS_SCHEMA,
    FOLDER,
    ArmPolicy,
    Budgets,
    Floors,
    Line,
    Policy,
    parse_budgets,
    parse_evidence,
    parse_floors,
    path_of,
    read_evidence,
    says,
)
from eval_core.reconstruct.repository import find, resolved
from eval_core.reconstruct.tree import Tree, opened
from eval_core.reports.provenance.configuration import Configured
from eval_gate.check.origin import without_latency
from eval_gate.floors.difference import changes, field_changes, new_reason
from eval_gate.verdict import BarChange, Reason

RULES, RECORDS, WAIVERS = "promotion.toml", "promotions", "waivers.toml"


class Promotions(NamedTuple):
    """What the branch has of promotions: its rules as they are written, its records' names, and its defaults."""

    where: str
    rules: bytes
    records: tuple[str, ...]
    defaults: Mapping[str, str]


@dataclass(frozen=True)
class Held:
    """What holding a policy against a branch gives.

    Attributes:
        changes: what this branch changes of the bar.
        reasons: what of it no reason explains, or none could.
        require: the requirements of the branch, which hold beside the policy's own.
        promotions: the branch's rules and records, which promotions here are judged by.
        notes: that nothing was changed, or what could not be looked at.
    """

    changes: tuple[BarChange, ...] = ()
    reasons: tuple[Reason, ...] = ()
    require: frozenset[str] = frozenset()
    promotions: Promotions | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _There:
    """The policy of one commit."""

    name: str
    policy: Policy | None
    evidence: Mapping[str, tuple[Line, ...]] = field(default_factory=dict)
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    records: Mapping[str, bytes] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)

    def arm(self, name: str) -> ArmPolicy | None:
        """The policy of an arm; None where it has none that can be read."""
        if self.policy is None or name not in self.policy.floors.arms:
            return None
        lines = {line.run_id: line for line in self.evidence.get(name, ())}
        try:
            return self.policy.with_lines(name, lines, f"{self.name}:{name}")
        except Refused:
            return None

    def unread(self, name: str | None) -> bool:
        """Whether an arm has floors and no evidence that can be read, so that nothing can be held against them."""
        return self.policy is not None and name in self.policy.floors.arms and self.arm(name or "") is None


def against(policy: Policy, revision: str, config: Path, parse_rules: Callable[[str, Path], object]) -> Held:
    """Hold a policy against that of a branch, and of the commit where this branch began.

    Args:
        policy: as it stands here.
        revision: the branch, or any commit.
        config: eval.toml, whose lanes and defaults are part of the bar.
        parse_rules: reads the rules of promotions, which this room knows nothing of.

    Raises:
        CouldNot: there is no repository or no such commit.
        Misuse: the policy lies outside of the repository, or that of the commit cannot be read.
    """
    place = policy.folder if policy.folder.is_dir() else Path()
    notes: list[str] = []
    with _opened(place, revision) as tree:
        target = _read(tree, revision, policy, config)
        begin, note = _merge_base(place, tree.commit)
        notes += [note] if note else []
    base = None
    if begin is not None and begin != tree.commit:
        with opened(place, begin) as tree:
            base = _read(tree, f"the merge base {begin[:12]}", policy, config)
        try:
            _sound(base.files[RULES], Path(RULES), parse_rules)
        except Misuse:  # rules that nobody could read asked for nothing
            base = dataclasses.replace(base, files={**base.files, RULES: None})
    if target.policy is None:
        change = _change("policy", None, f"{revision} has none of this form, so everything is new", False)
        return Held((change,), notes=tuple(notes))
    _sound(target.files[RULES], Path(f"{revision}:{RULES}"), parse_rules)
    here = _Here(policy, config)
    found = here.held(target)
    if base is not None:
        moved = bool(found)
        begun = here.held(base)
        found = {
            key: _both(change, begun[key]) if _known(base, change) else change
            for key, change in found.items()
            if (key in begun if _known(base, change) else here.has(change))
        }
        # What the target has lost since, the merge base may still say.
        found |= {k: c for k, c in begun.items() if target.unread(c.arm) and not base.unread(c.arm)}
        if moved and not begun and not found:
            notes.append(f"this branch changes nothing of the bar; {revision} has moved since it began")
    reasons = [
        _loosened(change, revision) for change in found.values() if change.looser and not change.reason
    ]
    rewritten = {reason.subject: reason for one in (target, base) if one for reason in here.rewritten(one)}
    return Held(
        tuple(found.values()),
        (*_once(reasons), *rewritten.values()),
        frozenset(target.policy.floors.require),
        _promotions(target),
        tuple(notes),
    )


@contextlib.contextmanager
def _opened(place: Path, revision: str) -> Iterator[Tree]:
    try:
        with opened(place, revision) as tree:
            yield tree
    except CouldNot as error:
        remote, slash, branch = revision.partition("/")
        if error.code != "commit-absent" or not slash or not branch:
            raise
        # A clone of one branch fetches no other one unless it is named.
        mend = f"git fetch --unshallow {remote} +refs/heads/{branch}:refs/remotes/{remote}/{branch}"
        what = f"there is no commit {revision!r} in this clone"
        if not _is_shallow(place):
            mend = mend.replace("--unshallow ", "")
        raise CouldNot("commit-absent", what, mend=mend) from error


def _is_shallow(place: Path) -> bool:
    done = find(place, str(place), "tree").run("rev-parse", "--is-shallow-repository")
    return done.stdout.strip() == b"true"


def _merge_base(place: Path, commit: str) -> tuple[str | None, str | None]:
    """Where the branch that is checked out began, or why that is not known."""
    repository = find(place, str(place), "tree")
    head = resolved(repository, "HEAD^{commit}")
    done = repository.run("merge-base", commit, head) if head else None
    if done is not None and done.returncode == 0:
        return done.stdout.decode("ascii", "replace").strip(), None
    why = "in this shallow clone; git fetch --unshallow brings it" if _is_shallow(place) else "of the two"
    return None, f"there is no merge base {why}: the bar is held against the target alone"


def _read(tree: Tree, name: str, policy: Policy, config: Path) -> _There:
    """The policy of a commit."""
    top = (tree.work or policy.folder).resolve()
    # By its own name: a link in its place is no other policy.
    here = policy.folder.parent.resolve() / policy.folder.name
    if not here.is_relative_to(top):
        raise Misuse(
            "policy-outside", f"it lies outside of the repository, so {name} has none", file=policy.folder
        )
    place = here.relative_to(top).as_posix()
    prefix = os.fsencode("" if place == "." else f"{place}/")

    def read(path: str) -> bytes | None:
        return tree.read(prefix + os.fsencode(path))

    paths = [os.fsdecode(path[len(prefix) :]) for path in tree.files() if path.startswith(prefix)]
    evidence, records = {}, {}
    for path in sorted(paths):
        folder, _, file = path.rpartition("/")
        if folder == RECORDS and file.endswith(".json"):
            records[file] = read(path) or b""
        elif folder == FOLDER and file.endswith(".jsonl"):
            with contextlib.suppress(Refused):  # what does not read there was no bar there
                evidence[file.removesuffix(".jsonl")] = parse_evidence(read(path) or b"", f"{name}:{path}")
    configured = config.parent.resolve() / config.name
    raw_config = None
    if configured.is_relative_to(top):
        raw_config = tree.read(os.fsencode(configured.relative_to(top).as_posix()))
    files = {path: read(path) for path in (FLOORS, BUDGETS, RULES, WAIVERS)}
    parsed = _parsed(files[FLOORS], files[BUDGETS], name, policy)
    table = _toml(raw_config)
    if parsed is not None and configured.is_relative_to(top):
        # The owner's lane is a change of its own, which lifts the usual budget with it.
        lane = {arm for arm, lane in _lanes(_toml(_bytes(config))).items() if lane == "owner"}
        arms = table.get("arms")
        there = Configured(config, arms if isinstance(arms, dict) else {})
        parsed = dataclasses.replace(parsed, plain=without_latency(there) | lane)
    return _There(name, parsed, evidence, files, records, table)


def _parsed(floors: bytes | None, budgets: bytes | None, name: str, policy: Policy) -> Policy | None:
    """Floors and budgets of a commit; None where it has none, or those of another form."""
    if floors is None or _toml(floors).get("schema") != FLOORS_SCHEMA:
        return None
    path = Path(f"{name}:{FLOORS}")
    try:
        read = parse_floors(floors.decode("utf-8"), path)
        found = Budgets(schema_="budgets-v2")
        if budgets is not None:
            found = parse_budgets(budgets.decode("utf-8"), Path(f"{name}:{BUDGETS}"), read)
    except (EvalError, UnicodeDecodeError) as error:
        what = f"the bar here cannot be held against it: {error}"
        raise Misuse("target-policy-malformed", what, file=path) from error
    return Policy(policy.folder, read, found, policy.plain)


Key = tuple[str | None, str, str | None, str | None]


class _Here:
    """The policy as it stands here, held against one commit after another."""

    def __init__(self, policy: Policy, config: Path) -> None:
        self.policy = policy
        self.config = _toml(_bytes(config))
        self.arms: dict[str, ArmPolicy] = {}
        for name in policy.floors.arms:
            with contextlib.suppress(Refused):  # refused by the check itself
                self.arms[name] = policy.arm(name)

    def held(self, there: _There) -> dict[Key, BarChange]:
        """What differs from the policy of a commit, by what it is about."""
        found = [*self._file(there), *self._lanes(there), *self._promotions(there), *self._waivers(there)]
        for name, arm in self.arms.items():
            if there.unread(name) and there.policy is not None:
                before = f"n = {there.policy.floors.arms[name].n}, whose evidence cannot be read"
                reason = new_reason("floors", there.policy.floors.arms[name].reasons, arm.floors.reasons)
                found.append(_change("floors", before, f"n = {arm.floors.n}", True, name, reason))
            else:
                found += changes(there.arm(name), arm)
        by_key: dict[Key, BarChange] = {}
        for change in found:
            key = (change.arm, change.key, change.measure, change.category)
            kept = by_key.get(key)
            if kept is None or (change.looser and not kept.looser):
                by_key[key] = change
        return by_key

    def has(self, change: BarChange) -> bool:
        """Whether what a change is about is here; where it is at the merge base neither, the target alone has it."""
        if change.key == "promotion":
            return (self.policy.folder / RULES).exists()
        return not change.key.startswith(RECORDS) or (self.policy.folder / change.key).exists()

    def _file(self, there: _There) -> Iterator[BarChange]:
        """What floors.toml says of all arms, and the arms that it no longer has."""
        if there.policy is None:
            return
        old, new = there.policy.floors, self.policy.floors
        for change in field_changes(Floors, old, new):
            yield change.model_copy(update={"reason": new_reason(change.key, old.reasons, new.reasons)})
        for name, arm in old.arms.items():
            if name not in new.arms:
                why = new.retired.get(name, "")
                yield _change("retired", f"n = {arm.n}", None, True, name, why if says(why) else None)

    def _lanes(self, there: _There) -> Iterator[BarChange]:
        old, new = _lanes(there.config), _lanes(self.config)
        for name, arm in self.policy.floors.arms.items():
            before, after = old.get(name), new.get(name)
            if before is not None and after is not None and before != after:
                known = there.policy.floors.arms.get(name) if there.policy else None
                reason = new_reason("lane", known.reasons if known else {}, arm.reasons)
                yield _change("lane", before, after, after == "owner", name, reason)

    def _promotions(self, there: _There) -> Iterator[BarChange]:
        reasons = there.policy.floors.reasons if there.policy else {}
        reason = new_reason("promotion", reasons, self.policy.floors.reasons)
        rules, own = there.files.get(RULES), _bytes(self.policy.folder / RULES)
        if rules is not None and rules != own:
            what = "weakened" if _weaker(_toml(rules), _toml(own)) else "changed"
            yield _change("promotion", None, f"its rules are {what}", what == "weakened", None, reason)
        for name, raw in there.records.items():
            now = _bytes(self.policy.folder / RECORDS / name)
            if now != raw:
                state = "gone" if now is None else "changed"
                yield _change(f"{RECORDS}/{name}", None, state, True, None, None)

    def _waivers(self, there: _There) -> Iterator[BarChange]:
        old = _list(_toml(there.files.get(WAIVERS)), "waiver")
        for waiver in _list(_toml(_bytes(self.policy.folder / WAIVERS)), "waiver"):
            if waiver not in old:
                arm, reason = str(waiver.get("arm")), str(waiver.get("reason"))
                yield _change("waivers", None, str(waiver.get("fingerprint"))[:12], True, arm, reason)

    def rewritten(self, there: _There) -> Iterator[Reason]:
        """Runs that a commit holds and that say something else here."""
        for name, lines in there.evidence.items():
            path = path_of(self.policy.folder, name)
            try:
                own = {line.run_id: line.line for line in read_evidence(path)}
            except Refused:
                continue  # refused by the check itself where floors cite it
            for line in lines:
                if own.get(line.run_id, line.line) != line.line:
                    yield Reason(
                        code="evidence-rewritten",
                        word="refused",
                        what=f"it is another run than the one of this id at {there.name}",
                        file=str(path),
                        subject=line.run_id,
                        mend="Restore it from git. A run that was measured once is never measured otherwise.",
                    )


def _known(base: _There, change: BarChange) -> bool:
    """Whether the merge base has what a change is about; what it has not is held against the target alone."""
    if change.key == "promotion":
        return base.files.get(RULES) is not None
    if change.key.startswith(RECORDS):
        return change.key.rpartition("/")[2] in base.records
    if change.key == "waivers":
        return True
    if change.key == "lane":
        return change.arm in _lanes(base.config)
    if change.arm is None or change.key == "retired":
        return base.policy is not None
    return base.arm(change.arm) is not None


def _both(change: BarChange, begun: BarChange) -> BarChange:
    """A change from the target, which is this branch's own where it is one from the merge base, too."""
    looser = change.looser and begun.looser
    # The reason must be new to both.
    return change.model_copy(update={"looser": looser, "reason": begun.reason and change.reason})


def _loosened(change: BarChange, revision: str) -> Reason:
    named = change.measure or change.key
    if change.category is not None:
        named += f" of {change.category}"
    before, after = change.before or "none", change.after or "none"
    if change.key == "retired":
        return Reason(
            code="floors-deleted",
            word="refused",
            subject=change.arm,
            what=f"{revision} has floors for it, and there are none here",
            mend=f'Restore them; or say that it is gone, in floors.toml:  [retired]  {change.arm} = "why"',
        )
    mend = f'If that is meant, say why:  eval-gate floor {change.arm} --reason {change.key}="…" --write'
    if change.arm is None:
        mend = f'If that is meant, say why, in floors.toml:  [reasons]  {change.key} = "…"'
    if change.key.startswith(RECORDS):
        mend = "Restore it from git."
    return Reason(
        code="promotion-rules-differ" if change.key == "promotion" else "bar-loosened",
        word="fail",
        subject=change.arm,
        key=change.key,
        what=f"looser than at {revision} without a new reason: {named}, {before} → {after}",
        mend=mend,
    )


def _once(reasons: list[Reason]) -> list[Reason]:
    """One reason a key of an arm: the first, and how many more there are."""
    groups: dict[tuple[str | None, str | None, str], list[Reason]] = {}
    for reason in reasons:
        groups.setdefault((reason.subject, reason.key, reason.code), []).append(reason)
    return [
        first if not more else first.model_copy(update={"what": f"{first.what}, and {len(more)} more"})
        for first, *more in groups.values()
    ]


def _promotions(there: _There) -> Promotions | None:
    raw = there.files.get(RULES)
    if raw is None:
        return None
    defaults = there.config.get("default", {})
    table = defaults if isinstance(defaults, Mapping) else {}
    named = {str(dataset): str(arm) for dataset, arm in table.items()}
    return Promotions(f"{there.name}:{RULES}", raw, tuple(there.records), named)


def _sound(rules: bytes | None, path: Path, parse: Callable[[str, Path], object]) -> None:
    """Refuse rules of the target that do not read: nothing could be held against them."""
    if rules is None:
        return
    try:
        parse(rules.decode("utf-8"), path)
    except (EvalError, UnicodeDecodeError) as error:
        what = f"the rules here cannot be held against it: {error}"
        raise Misuse("target-policy-malformed", what, file=path) from error


def _weaker(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a condition of a rule, or what is required of a service, is gone or asks for less."""
    own = {str(rule.get("over")): _list(rule, "conditions") for rule in _list(new, "rule")}
    for rule in _list(old, "rule"):
        conditions = own.get(str(rule.get("over")), [])
        for wanted in _list(rule, "conditions"):
            if not any(_covers(condition, wanted) for condition in conditions):
                return True
    endpoints = _list(new, "endpoint")
    return any(endpoint not in endpoints for endpoint in _list(old, "endpoint"))


def _covers(condition: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a condition asks for as much as another one."""
    if "metric" in wanted:
        enough = {"at-least-equal": {"at-least-equal", "higher"}}.get(
            wanted.get("is", ""), {wanted.get("is")}
        )
        return condition.get("metric") == wanted["metric"] and condition.get("is") in enough
    same = condition.get("check") == wanted.get("check")
    return same and int(condition.get("runs", 2)) >= int(wanted.get("runs", 2))


def _list(table: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = table.get(key)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _lanes(config: Mapping[str, Any]) -> dict[str, str]:
    arms = config.get("arms")
    return {
        name: str(arm.get("lane", "pull-request"))
        for name, arm in (arms.items() if isinstance(arms, dict) else ())
        if isinstance(arm, dict)
    }


def _toml(raw: bytes | None) -> dict[str, Any]:
    try:
        return tomllib.loads(raw.decode("utf-8")) if raw else {}
    except (ValueError, RecursionError):
        return {}


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError:
        return None


def _change(
    key: str,
    before: str | None,
    after: str | None,
    looser: bool,
    arm: str | None = None,
    reason: str | None = None,
) -> BarChange:
    return BarChange(arm=arm, key=key, before=before, after=after, looser=looser, reason=reason)
