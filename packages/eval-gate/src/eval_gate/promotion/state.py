"""Whether `eval.toml`'s defaults, the policy and the promotion records agree: a promotion is there whole or not.

Part of every check. What a record cites is read again and its conditions are derived anew; where there is no record,
nothing is read and no model of promotions is imported.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from eval_core.console import utf8
from eval_core.errors import EvalError, Refused
from eval_core.policy import BUDGETS, FLOORS, Line, Policy, path_of, read_evidence
from eval_gate.verdict import Reason

if TYPE_CHECKING:
    from eval_gate.floors import Promotions
    from eval_gate.promotion.models import PromotionRecord, Rules
    from eval_gate.promotion.rules import Gathered

#: Where records lie below the policy's folder.
RECORDS = "promotions"

_NAME = re.compile(r"([0-9]{4,9})-.+\.json")


class Target(NamedTuple):
    """What the branch has that a change is held against: its rules, the names of its records, and its defaults."""

    rules: Rules
    records: Collection[str] = ()
    defaults: Mapping[str, str] = {}

    @classmethod
    def of(cls, branch: Promotions) -> Target:
        """What a branch has, its rules read.

        Raises:
            Misuse, Faults: they cannot be read, or do not fit.
        """
        from eval_gate.promotion.models import parse_rules

        rules = parse_rules(branch.rules.decode("utf-8", "replace"), Path(branch.where))
        return cls(rules, branch.records, branch.defaults)


def mixed(config: Path, policy: Policy, target: Target | None = None) -> list[Reason]:
    """A5: say what is missing or unproven of a promotion, for each dataset that has a default or a record.

    The arm that is the default must have floors and a written latency budget; where the dataset has promotion records,
    the newest must name it as the candidate, and the floors must stand on a run of that record or on a later one, so
    that an older bar cannot be put back below a newer default. Each record's conditions must follow from the runs that
    it cites.

    Args:
        config: eval.toml; one that is absent, or does not read, has no default.
        policy: what `policy/` says.
        target: a record that it does not have must be by one of its rules, and over its default; None: the rule that
            a record carries is taken as it is.
    """
    arms, defaults = _config(config)
    found = records(policy.folder / RECORDS)
    reasons = []
    newest: dict[PurePosixPath, tuple[Path, PromotionRecord]] = {}
    replaced = {PurePosixPath(name): arm for name, arm in (target.defaults if target else {}).items()}
    for before, path in zip([None, *found], found, strict=False):
        try:
            record = _record(path)
        except Refused as error:
            reasons.append(Reason.of(error))
            continue
        if before is not None and number(before) == number(path):
            mend = "Two promotions met: keep the one that was merged first, and repeat the other."
            reasons.append(
                _mixed(f"it has the number of {before.name}, so neither is the newest", path, mend)
            )
        dataset = PurePosixPath(record.dataset)
        newest[dataset] = (path, record)
        wrong = [*_unproven(policy.folder, record, arms)]
        if target is not None and path.name not in target.records:
            if record.rule not in target.rules.rule:
                wrong.append(f"its rule over {record.rule.over!r} is not one of the target's")
            if replaced.get(dataset, record.incumbent) != record.incumbent:
                wrong.append(
                    f"it is over {record.incumbent!r}, and {replaced[dataset]!r} is the default there"
                )
            replaced[dataset] = record.candidate
        mend = "Restore it and what it cites from git, or promote again."
        reasons += [_mixed(what, path, mend) for what in wrong]
    for dataset, (path, record) in newest.items():
        if dataset not in {PurePosixPath(name) for name in defaults}:
            what = (
                f"it promotes {record.candidate!r} for {str(dataset)!r}, and {config} names no default for it"
            )
            reasons.append(_mixed(what, path, "Restore [default] of eval.toml from git."))
    for name, arm in defaults.items():
        lacking = [*_lacking(arm, policy), *_unrecorded(arm, policy, newest.get(PurePosixPath(name)))]
        if lacking:
            what = f"{arm!r} is the default for {name!r}, and {'; '.join(lacking)}"
            mend = (
                "A promotion moves default, floors, evidence and budget in one commit: restore it, or, for "
                f"a default that no promotion made, move the bar:  eval-gate floor {arm} --measure --write"
            )
            reasons.append(_mixed(what, config, mend))
    return reasons


def records(folder: Path) -> list[Path]:
    """The records in a folder, oldest first."""
    return sorted(
        (path for path in folder.glob("*.json") if _NAME.fullmatch(path.name)),
        key=lambda path: (number(path), path.name),
    )


def number(path: Path) -> int:
    """The number of a record."""
    return int(path.name.partition("-")[0])


def _mixed(what: str, file: Path, mend: str) -> Reason:
    return Reason.of(Refused("promotion-mixed", utf8(what), file=utf8(str(file)), mend=mend))


def _config(path: Path) -> tuple[Mapping[str, Any], dict[str, str]]:
    """The arms of eval.toml, and the default by dataset. What is wrong with it is reported by what measures."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}, {}
    arms, defaults = (
        held if isinstance(held := table.get(name), dict) else {} for name in ("arms", "default")
    )
    return arms, {name: arm if isinstance(arm, str) else repr(arm) for name, arm in defaults.items()}


def _record(path: Path) -> PromotionRecord:
    from pydantic import ValidationError

    from eval_core.faults import first_fault
    from eval_gate.promotion.models import PromotionRecord, problems

    try:
        record = PromotionRecord.model_validate_json(path.read_bytes())
        what = next(problems(record.rule), None)
    except ValidationError as error:
        what = first_fault(error, PromotionRecord)
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
    if what is not None:
        raise Refused("promotion-mixed", what, file=path, mend="Restore the record from git.")
    return record


def _unproven(folder: Path, record: PromotionRecord, arms: Mapping[str, Any]) -> Iterator[str]:
    """What a record claims and does not show."""
    from eval_gate.promotion.rules import judge

    table = arms.get(record.incumbent)
    backend = table.get("backend") if isinstance(table, dict) else None
    if (
        not record.evidence.comparisons
        and backend is not None
        and record.rule.over not in (record.incumbent, backend)
    ):
        yield f"its rule is over {record.rule.over!r}, and not over {record.incumbent!r} or {backend!r}"
    try:
        gathered = _cited(folder, record)
    except EvalError as error:
        yield error.message
        return
    derived = judge(record.candidate, record.incumbent, record.rule, gathered, "floored when it was replaced")
    yield from (reason.message for reason in derived.reasons)
    if not derived.reasons:
        for one in derived.conditions:
            if not one.proven:
                yield f"what it cites does not prove: {one.text} ({one.why})"


def _cited(folder: Path, record: PromotionRecord) -> Gathered:
    from eval_core.files import digest_file
    from eval_gate.promotion.evidence import Arm, Paper, of_comparisons, of_runs, unsound

    evidence = record.evidence
    lines: list[list[Line]] = []
    for arm, runs in ((record.candidate, evidence.candidate), (record.incumbent, evidence.incumbent)):
        path = path_of(folder, arm)
        held = {line.run_id: line for line in read_evidence(path)} if runs else {}
        for run in runs:
            if run.run_id not in held or held[run.run_id].line != run.line:
                what = f"run {run.run_id} is not there as the record cites it"
                raise Refused("promotion-mixed", what, file=path)
        lines.append([held[run.run_id] for run in runs])
    if not evidence.comparisons:
        ours, theirs = (record.candidate, lines[0]), (record.incumbent, lines[1])
        return of_runs(ours, theirs).refused([*unsound(*ours), *unsound(*theirs)])
    papers = []
    for one in evidence.comparisons:
        path = folder / RECORDS / one.file
        if not path.is_file() or digest_file(path) != one.sha256:
            raise Refused("promotion-mixed", "it is not there as the record cites it", file=path)
        papers.append(Paper(path, one.file, one.commit))
    sides = evidence.comparisons[0]
    return of_comparisons(papers, Arm(sides.candidate), Arm(sides.incumbent), lines[0])


def _lacking(arm: str, policy: Policy) -> Iterator[str]:
    if arm not in policy.floors.arms:
        yield f"has no floors in {policy.folder / FLOORS}"
    budget = policy.budgets.arms.get(arm)
    if budget is None or budget.p95_ms is None:
        yield f"has no p95_ms in {policy.folder / BUDGETS}"


def _unrecorded(arm: str, policy: Policy, last: tuple[Path, PromotionRecord] | None) -> Iterator[str]:
    if last is None:
        return
    path, record = last
    if record.candidate != arm:
        yield f"{path}, the newest record for it, promotes {record.candidate!r}"
        return
    if arm not in policy.floors.arms:
        return
    try:
        baseline = policy.arm(arm).baseline
        lines = read_evidence(path_of(policy.folder, arm))
    except Refused:  # its arm's own refusal
        return
    runs = {run.run_id for run in record.evidence.candidate}
    if baseline.started < max((line.started for line in lines if line.run_id in runs), default=""):
        yield f"its floors stand on older runs than {path} cites"
