"""Whether a report can be graded: whole, of the baseline's task, and measured where and how the policy requires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from eval_core.errors import EvalError
from eval_core.policy import ArmPolicy, Line
from eval_core.reports import Report, task_differences
from eval_gate.check.changes import in_words, some
from eval_gate.verdict import Reason

#: A report that was read, or why it could not be.
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

#: What to do about a task that is not the baseline's: the two ways, and the command of the second.
BAR = (
    "If the change is not meant, take it back. If it is, commit it by itself, and move the bar:  "
    'eval-gate floor {0} {1} --reason task="…" --write'
)

#: How evidence of a class is made anew, where it is not measured here.
RUNS = {"ci": "--from A.zip B.zip"}

CUTOFF = "Measure with the cut-off again: cutoffs in eval.toml or dataset.toml."

AGAIN = "Measure here and now:  eval-core measure {0}"


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the gate stands, and what is known of a report beside what it says itself.

    Attributes:
        require: names of `eval_core.policy.models.REQUIREMENTS`.
        strict: in class `ci` or with a target: what is only said of a working tree is refused, and git was asked.
        named: the report was named on purpose, by `--report`.
        owner: its arm is of the owner's lane.
        head: the commit that is checked out, None where no repository can be read.
        differing: files outside policy/ that differ between the report's commit and HEAD; None where nobody asked git,
            or git does not know the commit.
        ancestor: whether HEAD descends from the report's commit, where git was asked.
        changed: files that are not committed now, None where git does not say; in a working tree, those of the set that
            are newer than the report.
        absent: files that are committed and not here, elsewhere than beside what the arm runs.
        tracked: whether git tracks the report's file, which lies in the folder for what was measured.
        current: the report is of HEAD and clean, and no run of the evidence is of a later commit. In a working tree,
            where git is not asked, the policy that HEAD holds cites them.
        now: the time here, UTC in ISO 8601.
    """

    require: frozenset[str] = frozenset()
    strict: bool = False
    named: bool = False
    owner: bool = False
    head: str | None = None
    differing: tuple[str, ...] | None = None
    ancestor: bool = False
    changed: tuple[str, ...] | None = ()
    absent: tuple[str, ...] = ()
    tracked: bool = False
    current: bool = False
    now: str = ""


def _refused(code: str, what: str, mend: str | None = None, key: str | None = None) -> Reason:
    return Reason(code=code, word="refused", what=what, mend=mend, key=key)


def unreadable(error: EvalError, arm: str) -> Reason:
    """Why there is no report to grade."""
    mend = error.details.mend or f"Measure it:  eval-core measure {arm}"
    return Reason.of(error).model_copy(update={"mend": mend})


def unfit(report: Report, named: bool) -> Iterator[Reason]:
    """What keeps a report from being graded, whatever it is held against."""
    health, again = report.health, f"A graded number is measured in one run:  eval-core measure {report.arm}"
    if health.errored or health.unscored:
        row = next(row for row in report.rows if row.outcome in ("errored", "unscored"))
        what = (
            f"{health.errored} rows errored and {health.unscored} were not asked; the first, {row.id}: "
            f"{' '.join(row.detail.split())}"
        )
        mend = "A run with errored rows is no finding. Mend the backend and measure again."
        yield _refused("rows-errored", what, mend)
    if report.resumed:
        what = "the run was resumed after an interruption: part of it was answered by another process"
        yield _refused("report-resumed", what, again)
    if report.index != "built":
        what = "the index was taken from a cache, not built in the run that is graded"
        yield _refused("index-cached", what, again)
    if report.environment.process is None and not named:
        what = "the report is a committed copy, stripped of process and timing, and no measurement"
        mend = f"{AGAIN.format(report.arm)}   (or name it on purpose: --report {report.arm}=FILE)"
        yield _refused("report-stripped", what, mend)


def incomparable(arm: ArmPolicy, report: Report) -> Iterator[Reason]:
    """What keeps a report from being held against the baseline: another task, another count of queries or documents."""
    baseline, bar = arm.baseline, _bar(arm)
    yield from _task(arm, report)
    if arm.documents is not None:
        low, high = arm.documents
        if not low <= report.dataset.documents <= high:
            what = f"there are {report.dataset.documents} documents, and the band is {low} to {high}"
            yield _refused("corpus-size-differs", what, bar)
    if report.dataset.headline != baseline.headline:
        what = f"the headline is {report.dataset.headline} now, and {baseline.headline} in the baseline"
        yield _refused("headline-differs", what, bar)


def _task(arm: ArmPolicy, report: Report) -> Iterator[Reason]:
    baseline, bar = arm.baseline, _bar(arm)
    exempt = {"cutoffs", "corpus"} if arm.choices.drifts else {"cutoffs"}
    found = [d for d in task_differences(baseline.task, report.task.parts) if d.part not in exempt]
    parts = {difference.part for difference in found}
    for difference in found:
        # A query that came or went changes the texts and judgements with it: one cause, said once.
        if "query_ids" in parts and difference.part in ("queries", "judgements"):
            continue
        code, what = TASK_REASONS.get(
            difference.part, (f"{difference.part}-differs", f"{difference.part} differs")
        )
        yield _refused(code, what + in_words(difference, report, baseline), bar)
    # Rows that failed are said to have failed; what they leave of n follows from it.
    asked = report.n + report.health.errored + report.health.unscored
    if asked != baseline.n:
        what = f"{report.n} queries were scored, and the floors are for exactly {baseline.n}"
        dropped = next((row for row in report.rows if row.outcome == "unscorable"), None)
        if dropped is not None:
            detail = " ".join(dropped.detail.split())
            what += f"; {report.health.unscorable} are unscorable, the first, {dropped.id}: {detail}"
        yield _refused("n-differs", what, bar)


def lacking(arm: ArmPolicy, report: Report) -> Iterator[Reason]:
    """Measures and categories with a bar that one side lacks; with `max_drop_everywhere`, any of either side."""
    baseline, held, everywhere = arm.baseline, report.summary, arm.budget.max_drop_everywhere is not None
    wanted = dict.fromkeys(bar.measure for bar in arm.bars)
    ours, theirs = set(report.measures), set(baseline.measures)
    for measure in [*wanted, *(m for m in report.measures if everywhere and m not in theirs)]:
        who = [name for name, has in (("the report", ours), ("the baseline", theirs)) if measure not in has]
        if who:
            cutoffs = f"; the report's cut-offs are {list(report.cutoffs)}"
            what = f"it is held against the baseline, and {' and '.join(who)} lacks it{cutoffs}"
            yield _refused("metric-missing", what, CUTOFF, key=measure)
    slices = {bar.category: bar.n for bar in arm.bars if bar.category is not None}
    before = baseline.categories
    for name in [*slices, *(c for c in held.categories if everywhere and c not in before)]:
        found = held.categories.get(name)
        if found is None or name not in before:
            who_lacks = "the report" if found is None else "the baseline"
            what = f"category {name!r} is held against the baseline, and {who_lacks} lacks it"
            yield _refused("category-missing", what, _bar(arm))
        elif found.n != slices.get(name, found.n):
            what = f"{found.n} queries of category {name!r} were scored, and the bar is for exactly {slices[name]}"
            yield _refused("n-differs", what, _bar(arm))


def untimely(arm: ArmPolicy, report: Report, standing: Standing) -> Iterator[Reason]:
    """A report that is older than the evidence, or of another class than is required."""
    first, started = min(line.started for line in arm.lines), report.environment.started
    if started < first and not standing.named and not standing.current:
        what = f"it was measured at {started}, before any of the runs that the floors stand on ({first})"
        mend = AGAIN.format(arm.name)
        if standing.now and first > standing.now:
            what += f", which is in the future: the clock here says {standing.now}"
            mend = (
                "Measuring again helps once that time has come. Set the clock here, or where that one was wrong, "
                f'measure the evidence again:  eval-gate floor {arm.name} --measure --reason floors="…" --write'
            )
        yield _refused("report-stale", what, mend)
    classes = _classes(arm.lines)
    if "class" in standing.require and report.environment.class_ not in classes:
        what = (
            f"it was measured in class {report.environment.class_!r}, and the floors stand on runs of "
            f"{', '.join(map(repr, classes))}"
        )
        mend = (
            "Measure where the evidence was measured (EVAL_ENV_CLASS names the class), or let the floors stand on two "
            "runs of this class:  "
            f"eval-gate floor {arm.name} {RUNS.get(report.environment.class_, '--measure')} --write"
        )
        yield _refused("class-differs", what, mend)


def _bar(arm: ArmPolicy) -> str:
    return BAR.format(arm.name, RUNS.get(arm.baseline.class_, "--measure"))


def _classes(lines: Sequence[Line]) -> list[str]:
    return sorted({line.class_ for line in lines})


def misplaced(report: Report, standing: Standing) -> Iterator[tuple[str, Reason]]:
    """Where commit and tree of a report are not those that stand here, by the requirement that asks for it.

    `""` asks always, `said` never. A person at work is answered all the same; see `refusals` and `sayings`.
    """
    yield from _at_another_commit(report, standing)
    environment = report.environment
    again = f"Commit the changes, then measure again:  eval-core measure {report.arm}"
    if environment.dirty is not False:
        what = "outside of git" if environment.dirty is None else "on a tree with uncommitted changes"
        if environment.changed:
            what += f": {', '.join(environment.changed[:3])}{', …' if len(environment.changed) > 3 else ''}"
        yield "clean", _refused("tree-dirty", f"it was measured {what}", again)
    elif standing.named and standing.owner:
        pass
    elif standing.changed is None:
        what = "git does not say whether the tree is as it was when the report was measured"
        mend = f"See what  git status  says, mend it, and measure again:  eval-core measure {report.arm}"
        yield "clean", _refused("tree-unseen", what, mend)
    elif standing.changed:
        what = f"the tree changed after it was measured: {some(list(standing.changed))}"
        yield "clean", _refused("tree-changed", what, again)
    if standing.absent:
        yield "said", _refused("tree-changed", f"not checked out here: {some(list(standing.absent))}")
    if standing.tracked:
        what = "git tracks the report, or cannot say that it does not, so that a checkout may have brought it"
        mend = f"git rm --cached .eval/reports/{report.arm}.json   and let .gitignore hold .eval/"
        yield "", _refused("report-tracked", what, mend)


def _at_another_commit(report: Report, standing: Standing) -> Iterator[tuple[str, Reason]]:
    commit, head = report.environment.commit, standing.head
    if commit is None or head is None:
        what = "it was measured outside of git" if commit is None else "no commit can be read here"
    elif commit == head:
        return
    elif standing.differing == ():
        what = f"it was measured at {commit[:12]}, and HEAD is {head[:12]}; they differ in the policy alone"
        yield "said", _refused("commit-differs", what)
        return
    elif standing.strict and standing.named and standing.owner:
        # K6: what costs money is measured elsewhere, and an ancestor's report stands while its keys do.
        if standing.ancestor:
            return
        what = f"it was measured at {commit[:12]}, which is no ancestor of HEAD ({head[:12]})"
    else:
        lane = ", and its lane is 'owner', which eval-core measure leaves out" if standing.owner else ""
        what = f"it was measured at {commit[:12]}, and HEAD is {head[:12]}{lane}"
        if standing.differing:
            what += f"; what differs: {some(list(standing.differing))}"
    yield "head", _refused("commit-differs", what, AGAIN.format(report.arm))


def refusals(report: Report, standing: Standing) -> list[Reason]:
    """What of `misplaced` refuses the report: what is required, in class `ci` or with a target."""
    wanted = standing.require | {""} if standing.strict else frozenset()
    return [reason for requirement, reason in misplaced(report, standing) if requirement in wanted]


def sayings(report: Report, standing: Standing) -> list[str]:
    """What of `misplaced` is only said."""
    refused = refusals(report, standing)
    said = [reason.what for _, reason in misplaced(report, standing) if reason not in refused]
    return list(dict.fromkeys(said))
