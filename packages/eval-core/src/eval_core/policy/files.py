"""The folder `policy/`: floors.toml, budgets.toml and the evidence beside them, read strictly.

A bar with a misspelt key is no bar: unknown keys, measures and arms are faults of the file (exit 2). What the evidence
does not give, or nobody gave a reason for, is an arm's refusal (exit 1); see `eval_core.policy.arm.faults`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import eval_core
from eval_core.errors import EvalError, Fault, Faults, Misuse, Refused, did_you_mean
from eval_core.files import read_text
from eval_core.models import NAME, line_in, parse_toml
from eval_core.policy.arm import ArmPolicy
from eval_core.policy.evidence import FOLDER, Line, path_of, read_evidence
from eval_core.policy.models import Budget, Budgets, Floors
from eval_core.scoring import metrics

POLICY = Path("policy")
FLOORS, BUDGETS = "floors.toml", "budgets.toml"


@dataclass(frozen=True)
class Policy:
    """What `policy/` says.

    Attributes:
        folder: where the floors file lies, with the evidence beside it.
        floors: floors.toml.
        budgets: budgets.toml.
        plain: arms for which no p95 is supposed: services, and the owner's lane.
    """

    folder: Path
    floors: Floors
    budgets: Budgets
    plain: Collection[str] = ()

    def arm(self, name: str) -> ArmPolicy:
        """The policy of an arm, with the evidence that it cites.

        Raises:
            Refused: the evidence is missing or malformed, contradicts itself, or lacks a run that is cited.
        """
        path = path_of(self.folder, name)
        lines = {line.run_id: line for line in read_evidence(path)}
        return self.with_lines(name, lines, path)

    def with_lines(self, name: str, lines: Mapping[str, Line], path: Path | str) -> ArmPolicy:
        """The policy of an arm, given the evidence that there is; `path` is what errors name."""
        held = self.floors.arms[name]
        for run in held.runs:
            if run not in lines:
                raise Refused(
                    "evidence-missing",
                    f"the floors stand on run {run}, and there is no line of it",
                    file=path,
                    subject=name,
                    mend=f"Restore it from git, or move the bar:  eval-gate floor {name} --measure --write",
                )
        cited = tuple(lines[run] for run in held.runs)
        budget = self.budgets.arms.get(name) or Budget()
        return ArmPolicy(name, held, budget, cited, default_p95=name not in self.plain)

    def traces(self) -> list[str]:
        """The arms that have evidence, by name."""
        return sorted(path.stem for path in (self.folder / FOLDER).glob("*.jsonl"))


def read_policy(folder: Path, floors: Path | None = None, plain: Collection[str] = ()) -> Policy:
    """Read floors and budgets.

    Args:
        folder: `policy/`.
        floors: another floors file; evidence lies beside it, and budgets in `folder`.
        plain: arms for which no p95 is supposed.

    Raises:
        Misuse: no floors file, not TOML, or written for a newer gate.
        Faults: unknown keys, measures or arms.
    """
    path = floors or folder / FLOORS
    read = read_floors(path)
    return Policy(path.parent, read, read_budgets(folder / BUDGETS, read), plain)


def read_baseline(folder: Path, arm: str) -> Line:
    """The last run that an arm's floors stand on.

    Raises:
        Misuse: there are no floors, or none of the arm.
        Faults: unknown keys, measures or arms.
        Refused: its evidence is missing or malformed, contradicts itself, or lacks the run.
    """
    policy = read_policy(folder)
    arms = policy.floors.arms
    if arm not in arms:
        raise Misuse(
            "baseline-missing",
            f"the arm has no floors, and so no baseline{did_you_mean(arm, arms)}",
            file=folder / FLOORS,
            subject=arm,
            mend=f"Measure it twice and set its bar:  eval-gate floor {arm} --measure --write",
        )
    return policy.arm(arm).baseline


def read_floors(path: Path) -> Floors:
    """Read floors.toml.

    Raises:
        Misuse: absent, not TOML, or written for a newer gate.
        Faults: it does not fit the model, or names what cannot be an arm.
    """
    if not path.exists():
        here = "" if path.parent.is_dir() else f"; there is no folder {str(path.parent)!r} here"
        elsewhere = "Run in the folder that holds policy/, or name it: --policy FOLDER. " if here else ""
        raise Misuse(
            "floors-missing",
            f"there are no floors, so there is nothing to gate on{here}",
            file=path,
            mend=f"{elsewhere}Measure twice and propose them:  eval-gate floor --measure",
        )
    return parse_floors(read_text(path, "floors file"), path)


def parse_floors(text: str, path: Path) -> Floors:
    """Read the text of a floors file; see `read_floors`."""
    try:
        floors = parse_toml(text, Floors, path, "floors file")
    except Faults:
        # What a newer gate writes may not fit these models; that it is newer is then what there is to say.
        written = tomllib.loads(text)
        _check_version(path, written.get("min_gate"))
        if written.get("schema") == "floors-v1":
            raise Misuse(
                "policy-outdated",
                "it has the first form of floors, which no gate reads any more",
                file=path,
                mend="Delete policy/, measure twice, and write it anew:  eval-gate floor --measure --write",
            ) from None
        raise
    _check_version(path, floors.min_gate)
    wrong = [
        Fault(
            "a name consists of lower-case letters, digits, and . _ -",
            file=path,
            line=line_in(text, ["arms", name]),
            key=f"arms.{name!r}",
        )
        for name in floors.arms
        if not is_name(name)
    ]
    for name in floors.retired:
        if name in floors.arms:
            line = line_in(text, ["retired", name])
            what = "has floors, too; keep one of them"
            wrong.append(Fault(what, file=path, line=line, key=f"retired.{name!r}"))
    if wrong:
        raise Faults(wrong, consequence="nothing was graded")
    return floors


def read_budgets(path: Path, floors: Floors) -> Budgets:
    """Read budgets.toml; without the file there are the budgets that hold by default.

    Raises:
        Misuse: not TOML.
        Faults: unknown keys, measures or arms.
    """
    if not path.exists():
        return Budgets(schema_="budgets-v2")
    return parse_budgets(read_text(path, "budgets file"), path, floors)


def parse_budgets(text: str, path: Path, floors: Floors) -> Budgets:
    """Read the text of a budgets file; see `read_budgets`."""
    budgets = parse_toml(text, Budgets, path, "budgets file")
    wrong = []
    for name, budget in budgets.arms.items():
        if name not in floors.arms:
            line = line_in(text, ["arms", name])
            what = f"has a budget and no floors{did_you_mean(name, floors.arms)}"
            wrong.append(Fault(what, file=path, line=line, key=f"arms.{name!r}"))
        for measure in budget.max_drop:
            try:
                metrics.parse(measure)
            except EvalError as error:
                line = line_in(text, ["arms", name, "max_drop", measure])
                what = error.details.what
                wrong.append(Fault(what, file=path, line=line, key=f"arms.{name!r}.max_drop"))
    if wrong:
        raise Faults(wrong, consequence="nothing was graded")
    return budgets


def is_name(text: str) -> bool:
    """Whether a text can be an arm's name: it becomes a file's."""
    return re.fullmatch(NAME.strip("^$"), text) is not None


def _check_version(path: Path, min_gate: object) -> None:
    if isinstance(min_gate, str) and _version(min_gate) > _version(eval_core.__version__):
        raise Misuse(
            "gate-outdated",
            f"it needs eval-gate {min_gate} or newer, and this is {eval_core.__version__}",
            file=path,
            mend="Update eval-gate; an older one might overlook what the floors ask for.",
        )


def _version(text: str) -> tuple[int, ...]:
    """The release numbers of a version, for comparing; none where it is no version."""
    match = re.match(r"[0-9]{1,9}(\.[0-9]{1,9})*", text)
    parts = [int(part) for part in match[0].split(".")] if match else []
    while parts and parts[-1] == 0:  # 1.0 is 1.0.0
        parts.pop()
    return tuple(parts)
