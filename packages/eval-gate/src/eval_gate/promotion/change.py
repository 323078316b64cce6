"""The one change that a promotion makes: evidence, floors, budget, record and default, all or nothing."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_core.errors import Misuse
from eval_core.policy import BUDGETS, FLOORS, ArmPolicy, Policy, line_of, path_of, says, unfit, unlike
from eval_core.reports import Report
from eval_gate.check import latency
from eval_gate.floors import policy_files
from eval_gate.promotion.evidence import refused
from eval_gate.promotion.models import FileChange, Promotion, PromotionRecord, Rule
from eval_gate.promotion.state import RECORDS, number, records
from eval_gate.verdict import Reason

if TYPE_CHECKING:
    from eval_core.config import Workspace


@dataclass(frozen=True, slots=True)
class Change:
    """The bytes of every file, in the order in which they take their names, and what each says in words.

    Whatever is cut off leaves the old default, or what the gate refuses: the record comes before the default that it
    explains, and both after the floors.
    """

    files: Mapping[Path, bytes]
    words: tuple[FileChange, ...]
    record: Path


def unmet(arm: ArmPolicy, report: Report) -> list[Reason]:
    """What keeps a budget from being measured: a report of something else, or a latency beyond it.

    Args:
        arm: the candidate with its budget.
        report: its last measurement, with timing.
    """
    line = line_of(report)
    found = [
        refused(problem.code, problem.what, problem.mend, subject=f"the report of {arm.name}")
        for problem in (*unfit(line), *unlike(line, arm.baseline, arm.floors.drift))
    ]
    return found or [reason.model_copy(update={"word": "refused"}) for reason in latency(arm, report)]


def plan(
    found: Promotion,
    rule: Rule,
    arms: Mapping[str, ArmPolicy],
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
        arms: the candidate with its budget, and the incumbent where its runs are new, too.
        report: of the candidate, in which its latency was measured.
        policy: what `policy/` says.
        workspace: eval.toml, of which the candidate is an arm.
        dataset: the key of its default that moves.
        reason: why, None for the figures.

    Raises:
        Misuse: eval.toml cannot be edited, or the reason says nothing.
        Refused: the evidence that stands cannot be added to.
    """
    if reason is not None and not says(reason):
        what = "it says nothing"
        raise Misuse("usage", what, key="--reason", value=reason, mend="Say in words why, or leave it out.")
    name, folder = found.candidate, policy.folder / RECORDS
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
    files = {
        **policy_files(policy, arms),
        path: (record.model_dump_json(by_alias=True, indent=1, exclude_none=True) + "\n").encode(),
        workspace.path: default_text(workspace.path, dataset, name),
    }
    files = {file: content for file, content in files.items() if _differs(file, content)}
    before = workspace.default.get(dataset)
    said = {path_of(policy.folder, arm): f"{len(held.lines)} runs" for arm, held in arms.items()} | {
        workspace.path: f'[default] "{dataset}" = "{name}"' + (f"  (was {before!r})" if before else ""),
        policy.folder / FLOORS: "; ".join(
            f"[arms.{arm}] on {len(held.lines)} runs, the last, {held.baseline.run_id}, its baseline"
            for arm, held in arms.items()
        ),
        policy.folder / BUDGETS: f"[arms.{name}] p95_ms = {arms[name].p95_ms:g}  ({_measured(report)})",
        path: f"{name} over {found.incumbent}, with the runs that it stands on",
    }
    words = tuple(FileChange(file=str(file), what=said[file]) for file in reversed(files))
    return Change(files, words, path)


def _differs(path: Path, content: bytes) -> bool:
    return not path.exists() or path.read_bytes() != content


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
