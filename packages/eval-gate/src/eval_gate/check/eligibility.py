"""Whether a report can be graded: whole, of the floors' task, and measured where and how the policy asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eval_core.console import utf8
from eval_core.errors import EvalError
from eval_core.reports.keys import Difference, differences
from eval_core.reports.report import Report
from eval_gate.check.changes import told
from eval_gate.policy import ArmFloors, lowest
from eval_gate.verdict import Reason

#: A report or baseline that was read, or why it could not be.
Read = Report | EvalError

#: Reason code, and what happened, for each part of the task that differs. Cut-offs may differ: the policy's measures
#: need only be among the report's.
TASK_REASONS: Mapping[str, tuple[str, str]] = {
    "query_ids": ("query-set-differs", "the set of queries changed"),
    "queries": ("queries-differ", "the text or meaning of queries changed"),
    "judgements": ("judgements-differ", "judgements were changed"),
    "split": ("split-differs", "another split was measured"),
    "kind": ("kind-differs", "the set's kind changed"),
    "corpus": ("corpus-differs", "the corpus changed: documents came, went or were edited"),
    "recipe": ("recipe-differs", "the recipe of the corpus changed"),
    "timeline": ("timeline-differs", "the timeline changed"),
    "links": ("links-differ", "the links changed"),
    "concepts": ("concepts-differ", "the concepts changed"),
    "limit": ("limit-differs", "another number of documents was asked for"),
    "filter": ("filter-differs", "the arm filters otherwise"),
    "scale": ("scale-differs", "the set was scaled otherwise"),
    "metrics": ("metric-definitions-differ", "the measures are defined otherwise"),
}

CUTOFF = "Measure with the cut-off again: cutoffs in eval.toml or dataset.toml."

#: What to do about a task that is not the floors': the two ways, and every command of the second.
BAR = (
    "If the change is not meant, take it back. If it is, commit it by itself, measure twice, and move the bar:  "
    'eval-gate floor {0} --reason "…" --write && eval-gate baseline {0} --write'
)

#: What to do about floors that no measured runs give.
RESTORE = (
    "Restore them from git, or measure twice and write them:  "
    'eval-gate floor {0} --reason "…" --write && eval-gate baseline {0} --write'
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a report must show beyond its own digests, and where the gate stands.

    `require` holds names of `policy.REQUIREMENTS`; `head` is the commit that is checked out, None where no repository
    can be read; `snapshots` are the arms whose report was named on purpose, so that it may be a committed copy.
    """

    require: frozenset[str] = frozenset()
    head: str | None = None
    snapshots: frozenset[str] = frozenset()


def refusal(code: str, message: str, remedy: str | None = None, metric: str | None = None) -> Reason:
    return Reason(code=code, word="refused", message=message, remedy=remedy, metric=metric)


def unreadable(error: EvalError, remedy: str) -> Reason:
    return refusal(error.reason, utf8(error.message), error.remedy or remedy)


def vacuous(arm: str, floors: ArmFloors) -> list[Reason]:
    """What makes floors pass whatever is measured, or stand on nothing that was."""
    remedy = RESTORE.format(arm)
    reasons = []
    if not floors.metrics:
        message = "the arm has no floor; whatever it scored would pass"
        reasons.append(refusal("floors-vacuous", message, remedy))
    if len({evidence.run_id for evidence in floors.evidence}) < 2:
        message = "the floors stand on fewer than two measured runs"
        reasons.append(refusal("floors-without-evidence", message, remedy))
    slices = {"": (floors.metrics, floors.n)}
    slices |= {f" of {name}": (part.metrics, part.n) for name, part in floors.categories.items()}
    for where, (held, n) in slices.items():
        for name, floor in held.items():
            if lowest(floor, n) <= 0:
                message = f"the floor of {name}{where} passes a backend that finds nothing"
                reasons.append(refusal("floors-vacuous", message, remedy))
    return reasons


def bound(floors: ArmFloors, baseline: Read | None, report: Report) -> list[Reason]:
    """Everything that must be equal for the numbers to mean the same."""
    committed = baseline if isinstance(baseline, Report) else None
    reasons = _task_reasons(floors, floors.task, report, committed)
    if floors.documents is not None:
        low, high = floors.documents
        if not low <= report.dataset.documents <= high:
            reasons.append(
                refusal(
                    "corpus-size-differs",
                    f"{report.dataset.documents} documents, and the band is {low} to {high}",
                    BAR.format(report.arm),
                )
            )
    for name in floors.metrics:
        if name not in report.summary.overall.metrics:
            reasons.append(
                refusal(
                    "metric-missing",
                    f"the report has no {name}: its cut-offs are {list(report.cutoffs)}",
                    CUTOFF,
                    metric=name,
                )
            )
    if report.dataset.headline != floors.headline:
        reasons.append(
            refusal(
                "headline-differs",
                f"the set's headline measure is {report.dataset.headline} now, and {floors.headline} in the floors",
                BAR.format(report.arm),
            )
        )
    for name, category in floors.categories.items():
        found = report.summary.categories.get(name)
        if found is None or found.n != category.n:
            count = 0 if found is None else found.n
            reasons.append(
                refusal(
                    "n-differs",
                    f"{count} queries of category {name!r} were scored, and the floors are for exactly {category.n}",
                    BAR.format(report.arm),
                )
            )
    if baseline is None:
        reasons.append(
            refusal(
                "baseline-missing",
                "no baseline is committed for the arm",
                f"eval-gate baseline {report.arm} --write",
            )
        )
    elif isinstance(baseline, EvalError):
        reasons.append(unreadable(baseline, f"Make it:  eval-gate baseline {report.arm} --write"))
    else:
        between = [d.part for d in _task_differences(floors, floors.task, baseline.task.parts)]
        if between:
            reasons.append(
                refusal(
                    "policy-mixed",
                    f"floors and baseline were measured on different tasks ({', '.join(between)})",
                    "Move both in one commit:  eval-gate floor --write && eval-gate baseline --write",
                )
            )
        elif not baseline.health.ok or baseline.n != floors.n:
            reasons.append(
                refusal(
                    "baseline-incomplete",
                    f"the baseline scored {baseline.n} of {floors.n} queries",
                    f"Make it:  eval-gate baseline {report.arm} --write",
                )
            )
        elif not is_evidence(baseline, floors):
            reasons.append(
                refusal(
                    "policy-mixed",
                    f"the baseline, run {baseline.run_id}, is none of the runs that the floors stand on",
                    f"Move both in one commit:  eval-gate floor {report.arm} --write && "
                    f"eval-gate baseline {report.arm} --write",
                )
            )
    return reasons


def is_evidence(baseline: Report, floors: ArmFloors) -> bool:
    """Whether the baseline is one of the floors' runs, or cannot be told from one by quality.

    Otherwise a baseline of a worse system could be taken by itself, and then another, down to the floor.
    """
    return any(
        run.run_id == baseline.run_id or run.digest == baseline.digests.quality for run in floors.evidence
    )


def _task_differences(
    floors: ArmFloors, ours: Mapping[str, Any], theirs: Mapping[str, Any]
) -> list[Difference]:
    exempt = {"cutoffs", "corpus"} if floors.corpus == "drifts" else {"cutoffs"}
    return [difference for difference in differences(ours, theirs) if difference.part not in exempt]


def _task_reasons(
    floors: ArmFloors, wanted: Mapping[str, Any], report: Report, baseline: Report | None
) -> list[Reason]:
    found = _task_differences(floors, wanted, report.task.parts)
    reasons = []
    parts = {difference.part for difference in found}
    for difference in found:
        # A query that came or went changes the texts and judgements with it: one cause, told once.
        if "query_ids" in parts and difference.part in ("queries", "judgements"):
            continue
        code, message = TASK_REASONS.get(
            difference.part, (f"{difference.part}-differs", f"{difference.part} differs")
        )
        reasons.append(refusal(code, message + told(difference, report, baseline), BAR.format(report.arm)))
    # Rows that failed are told as that; what they leave of n follows from it.
    asked = report.n + report.health.errored + report.health.unscored
    if asked != floors.n:
        message = f"{report.n} queries were scored, and the floors are for exactly {floors.n}"
        dropped = next((row for row in report.rows if row.outcome == "unscorable"), None)
        if dropped is not None:
            detail = " ".join(dropped.detail.split())
            message += f"; {report.health.unscorable} are unscorable, the first, {dropped.id}: {detail}"
        reasons.append(refusal("n-differs", message, BAR.format(report.arm)))
    return reasons


def healthy(report: Report) -> list[Reason]:
    health = report.health
    reasons = []
    if health.errored or health.unscored:
        row = next(row for row in report.rows if row.outcome in ("errored", "unscored"))
        counts = f"{health.errored} rows errored and {health.unscored} were not asked"
        reasons.append(
            refusal(
                "rows-errored",
                f"{counts}; the first, {row.id}: {' '.join(row.detail.split())}",
                "A run with errored rows is no finding. Mend the backend and measure again.",
            )
        )
    if report.resumed:
        reasons.append(
            refusal(
                "report-resumed",
                "the run was resumed after an interruption: part of it was answered by another process",
                f"A graded number is measured in one run:  eval-core measure {report.arm}",
            )
        )
    if report.index != "built":
        reasons.append(
            refusal(
                "index-cached",
                "the index was taken from a cache, not built in the run that is graded",
                f"Measure with an index built in the run:  eval-core measure {report.arm}",
            )
        )
    return reasons


def asked_for(asked: Asked, floors: ArmFloors, report: Report) -> list[Reason]:
    """What the policy asks for beyond the report's own digests, and a copy in the place of a measurement."""
    environment = report.environment
    again = f"Measure here and now:  eval-core measure {report.arm}"
    reasons = []
    if environment.process is None and report.arm not in asked.snapshots:
        reasons.append(
            refusal(
                "report-stripped",
                "the report is a committed copy, stripped of process and timing, and no measurement",
                f"{again}   (or name it on purpose: --report {report.arm}=FILE)",
            )
        )
    before = min((run.started for run in floors.evidence), default="")
    if environment.started < before and report.arm not in asked.snapshots:
        reasons.append(
            refusal(
                "report-stale",
                f"it was measured at {environment.started}, before any of the runs that the floors stand on ({before})",
                again,
            )
        )
    if "head" in asked.require and (asked.head is None or environment.commit != asked.head):
        here = "no commit can be read here" if asked.head is None else f"HEAD is {asked.head[:12]}"
        commit = (environment.commit or "no commit")[:12]
        reasons.append(refusal("commit-differs", f"it was measured at {commit}, and {here}", again))
    if "clean" in asked.require and environment.dirty is not False:
        state = "with uncommitted changes" if environment.dirty else "without git"
        reasons.append(refusal("tree-dirty", f"it was measured on a tree {state}", f"Commit, then:  {again}"))
    classes = sorted({run.class_ for run in floors.evidence})
    if "class" in asked.require and environment.class_ not in classes:
        reasons.append(
            refusal(
                "class-differs",
                f"it was measured in class {environment.class_!r}, and the floors stand on runs of "
                f"{', '.join(map(repr, classes))}",
                "Measure where the evidence was measured, or name the class: EVAL_ENV_CLASS.",
            )
        )
    return reasons
