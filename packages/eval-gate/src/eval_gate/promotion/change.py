"""The one change that a promotion makes: default, budget and record, all or nothing, beside the floors that stand."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_core.errors import Misuse, Refused
from eval_core.policy.arm import ArmPolicy
from eval_core.policy.eligibility import unfit, unlike
from eval_core.policy.evidence import line_of
from eval_core.policy.faults import faults, says
from eval_core.policy.files import BUDGETS, Policy
from eval_core.policy.models import P95_MS, Budget, Budgets
from eval_core.reports.report import Report
from eval_gate.check.rules import breach, grades, latency, must_pass
from eval_gate.promotion.evidence import refused
from eval_gate.promotion.models import FileChange, Promotion, PromotionRecord, Rule
from eval_gate.promotion.state import RECORDS, number, records
from eval_gate.verdict import Reason

if TYPE_CHECKING:
    from eval_core.config import Workspace


@dataclass(frozen=True, slots=True)
class Change:
    """The bytes of every file, in the order in which they take their names, and what each says in words.

    Whatever is cut off leaves the old default: the budget comes first, the default last.
    """

    files: Mapping[Path, bytes]
    words: tuple[FileChange, ...]
    record: Path


def budgeted(arm: ArmPolicy, report: Report, p95_ms: float | None, reason: str | None) -> ArmPolicy:
    """The candidate with the latency budget that it will have: the given one, or the one that stands.

    Raises:
        Refused: there is neither.
    """
    budget = arm.budget
    if p95_ms is not None:
        why = {"p95_ms": reason} if reason and p95_ms > P95_MS else {}
        budget = budget.model_copy(update={"p95_ms": p95_ms, "reasons": {**budget.reasons, **why}})
    if budget.p95_ms is None:
        what = f"no latency budget stands for it, and a promotion moves the budget too ({_measured(report)})"
        mend = "Say what must not be exceeded: --p95-ms MILLISECONDS."
        raise Refused("budget-missing", what, subject=arm.name, mend=mend)
    return replace(arm, budget=budget)


def unmet(arm: ArmPolicy, report: Report) -> list[Reason]:
    """What keeps an arm from being a default that passes its gate: a choice without a reason, a report of something
    else, or one that is below a bar or beyond the budget.

    Args:
        arm: the candidate with its budget.
        report: its last measurement, with timing.
    """
    line = line_of(report)
    found = [Reason.of(error) for error in faults(arm)]
    for problem in (*unfit(line), *unlike(line, arm.baseline, arm.floors.drift)):
        found.append(refused(problem.code, problem.what, problem.mend, subject=f"the report of {arm.name}"))
    if found:
        return found
    breaches = [breach(grade) for grade in grades(arm.bars, report) if not grade.passed]
    failing = [*breaches, *must_pass(arm, report), *latency(arm, report)]
    return [reason.model_copy(update={"word": "refused"}) for reason in failing]


def plan(
    found: Promotion,
    rule: Rule,
    arm: ArmPolicy,
    report: Report,
    policy: Policy,
    workspace: Workspace,
    dataset: str,
    reason: str | None,
) -> Change:
    """Work out the change for a promotion that is proven.

    Args:
        found: what was proven.
        rule: by which.
        arm: the candidate with its budget.
        report: of the candidate, in which its latency was measured.
        policy: what `policy/` says.
        workspace: eval.toml, of which the candidate is an arm.
        dataset: the key of its default that moves.
        reason: why, None for the figures.

    Raises:
        Misuse: eval.toml cannot be edited, or the reason says nothing.
    """
    if reason is not None and not says(reason):
        what = "it says nothing"
        raise Misuse("usage", what, key="--reason", value=reason, mend="Say in words why, or leave it out.")
    name, folder = arm.name, policy.folder / RECORDS
    last = records(folder)[-1:]
    record = PromotionRecord(
        number=number(last[0]) + 1 if last else 1,
        candidate=name,
        incumbent=found.incumbent,
        dataset=dataset,
        reason=reason or _reason(found),
        rule=rule,
        evidence=found.evidence,
    )
    path = folder / f"{record.number:04}-{name}.json"
    arms = {**policy.budgets.arms, name: arm.budget}
    files = {
        policy.folder / BUDGETS: budgets_text(arms).encode(),
        path: (record.model_dump_json(by_alias=True, indent=1, exclude_none=True) + "\n").encode(),
        workspace.path: default_text(workspace.path, dataset, name),
    }
    before = workspace.default.get(dataset)
    words = {
        workspace.path: f'[default] "{dataset}" = "{name}"' + (f"  (was {before!r})" if before else ""),
        policy.folder / BUDGETS: f"[arms.{name}] p95_ms = {arm.budget.p95_ms:g}  ({_measured(report)})",
        path: f"{name} over {found.incumbent}, with the runs that it stands on",
    }
    return Change(files, tuple(FileChange(file=str(file), what=what) for file, what in words.items()), path)


def _measured(report: Report) -> str:
    return f"p95 measured: {report.latency.p95:.2f} ms" if report.latency else "p95 not measured"


def _reason(found: Promotion) -> str:
    """Why, where nobody said: the first measure that was compared."""
    for one in found.conditions:
        if one.condition.metric is not None and one.runs:
            run = one.runs[-1]
            if run.incumbent is not None and run.candidate is not None:
                return (
                    f"{one.condition.metric} {run.incumbent:.4f} → {run.candidate:.4f} over {found.incumbent}"
                )
    return f"every condition over {found.incumbent} is proven"


def budgets_text(arms: Mapping[str, Budget]) -> str:
    """The text of a budgets file."""
    lines = [f"schema = {json.dumps(Budgets(schema_='budgets-v2').schema_)}"]
    for name, budget in arms.items():
        lines += ["", f'[arms."{name}"]']
        for key, value in budget.model_dump(exclude_none=True, exclude_defaults=True).items():
            lines += _pairs(key, value) if isinstance(value, dict) else [f"{key} = {json.dumps(value)}"]
    return "\n".join(lines) + "\n"


def _pairs(key: str, table: Mapping[str, Any]) -> Sequence[str]:
    return [
        f"{key}.{json.dumps(name)} = {json.dumps(value, ensure_ascii=False)}" for name, value in table.items()
    ]


def default_text(path: Path, dataset: str, arm: str) -> bytes:
    """The bytes of eval.toml with one default put in, everything else as it stands.

    Raises:
        Misuse: the file is so arranged that it cannot be edited.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    text = path.read_bytes().decode("utf-8")
    wanted = tomllib.loads(text)
    wanted.setdefault("default", {})[dataset] = arm
    try:
        document = tomlkit.parse(text)
        if "default" not in document:
            table = tomlkit.table()
            table.comment("By dataset, the arm that answers; moved by eval-gate promote, with its floors.")
            document["default"] = table
        defaults: Any = document["default"]
        defaults[dataset] = arm
        edited = tomlkit.dumps(document)
        same = tomllib.loads(edited) == wanted
    except (TOMLKitError, tomllib.TOMLDecodeError):
        same = False
    if not same:
        raise Misuse(
            "file-malformed",
            "it is so arranged that its default cannot be edited without harm",
            file=path,
            mend=f'Write the table yourself, then promote again:  [default]  {json.dumps(dataset)} = "…"',
        )
    return edited.encode("utf-8")
