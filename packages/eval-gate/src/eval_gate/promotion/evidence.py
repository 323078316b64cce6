"""Evidence of a promotion, read into views: lines of both arms in `policy/evidence`, or comparisons of backends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from eval_core.errors import EvalError, Refused
from eval_core.files import digest_file
from eval_core.policy import MOST_DRIFT, Line, Problem, unfit, unlike
from eval_core.reports import differences, nested_differences, task_differences
from eval_gate.promotion.models import CitedComparison, CitedRun, Evidence
from eval_gate.promotion.rules import Gathered, Side, View
from eval_gate.verdict import Reason

if TYPE_CHECKING:
    from eval_core.contract import BackendReport, Comparison


class Arm(NamedTuple):
    """A side: its name, and its table of eval.toml where it is an arm there."""

    name: str
    table: Mapping[str, Any] | None = None

    @property
    def backend(self) -> str | None:
        """Its backend by eval.toml."""
        written = (self.table or {}).get("backend")
        return written if isinstance(written, str) else None


def refused(code: str, what: str, mend: str | None = None, **fields: Any) -> Reason:
    """A reason that refuses a promotion."""
    return Reason.of(Refused(code, what, mend=mend, **fields))


def of_runs(candidate: tuple[str, Sequence[Line]], incumbent: tuple[str, Sequence[Line]]) -> Gathered:
    """Runs of both arms, pair by pair, each by start.

    Args:
        candidate, incumbent: the name of the arm, and its runs: as many of one as of the other are looked at, the last.
    """
    count = min(len(candidate[1]), len(incumbent[1]))
    ours, theirs = ((name, lines[len(lines) - count :]) for name, lines in (candidate, incumbent))
    pairs = list(zip(ours[1], theirs[1], strict=True))
    reasons: list[Reason] = []
    for one, other in pairs:
        reasons += [
            refused(problem.code, problem.what, problem.mend, subject=f"run {one.run_id} of {ours[0]}")
            for problem in _apart(one, other, theirs[0])
        ]
    return Gathered(
        views=[
            View(f"run {number}", _side(one), _side(other)) for number, (one, other) in enumerate(pairs, 1)
        ],
        cited=Evidence(candidate=_cited(ours[1]), incumbent=_cited(theirs[1])),
        reasons=reasons,
    )


def _cited(lines: Sequence[Line]) -> tuple[CitedRun, ...]:
    return tuple(CitedRun(run_id=line.run_id, line=line.line) for line in lines)


def unsound(arm: str, lines: Sequence[Line]) -> Iterator[Reason]:
    """Cited runs that are no evidence, by themselves or beside the last one; `faults` says it of those below floors."""
    if len({line.run_id for line in lines}) < len(lines):
        yield refused("evidence-same-run", "one run is cited twice", "Measure again.", subject=arm)
    for line in lines:
        drift = MOST_DRIFT if line.set and line.set.moves else None
        for problem in (*unfit(line), *unlike(line, lines[-1], drift)):
            yield refused(problem.code, problem.what, problem.mend, subject=f"run {line.run_id} of {arm}")


def _apart(one: Line, other: Line, incumbent: str) -> Iterator[Problem]:
    """Why a run of the candidate cannot be held against a run of the incumbent."""
    parts = [d.part for d in task_differences(other.task, one.task) if d.part != "cutoffs"]
    if parts:
        what = f"it measured another task than run {other.run_id} of {incumbent}: {', '.join(parts)}"
        yield Problem(
            "evidence-task-differs", what, "Measure both on one set, with the same limit, filter and select."
        )
    if one.class_ != other.class_:
        what = (
            f"its class is {one.class_!r}, and that of run {other.run_id} of {incumbent} is {other.class_!r}"
        )
        yield Problem("evidence-class-differs", what, "Measure both in one class: where the gate will run.")


def _side(line: Line) -> Side:
    limit, deepest = line.task["limit"], line.cutoffs[-1]
    return Side(
        queries={
            entry.id: (entry.pairs(), deepest if entry.retrieved is None else entry.retrieved)
            for entry in line.scored
        },
        limit=limit if isinstance(limit, int) else deepest,
        held=frozenset(line.measures),
        failed=line.health.errored + line.health.unscored,
    )


class Paper(NamedTuple):
    """A comparison of backends in a file: what it is called in the record, and the commit that checked it in."""

    path: Path
    name: str
    commit: str


def of_comparisons(
    papers: Sequence[Paper], candidate: Arm, incumbent: Arm, runs: Sequence[Line] = ()
) -> Gathered:
    """Comparisons that hold both sides.

    Args:
        papers: the files, the oldest first.
        candidate, incumbent: the sides, found by name or by backend.
        runs: what the candidate's floors stand on, where it is an arm.
    """
    views: list[View] = []
    cited: list[CitedComparison] = []
    reasons: list[Reason] = []
    first: Comparison | None = None
    for paper in papers:
        try:
            found, sides = _comparison(paper.path, candidate, incumbent)
        except EvalError as error:
            reasons.append(Reason.of(error))
            continue
        first = first or found
        reasons += _beside(paper, found, sides, first, candidate, incumbent)
        if any(paper.commit == other.commit for other in cited):
            what = f"it was checked in by one commit with another, {paper.commit[:12]}, and a comparison names no run"
            mend = "Check each in when it is made, in a commit of its own."
            reasons.append(refused("evidence-same-run", what, mend, file=paper.path))
        digest, (ours, theirs) = digest_file(paper.path), sides
        cited.append(
            CitedComparison(
                file=paper.name,
                sha256=digest,
                commit=paper.commit,
                candidate=ours.backend,
                incumbent=theirs.backend,
            )
        )
        views.append(View(paper.name, _backend(found, ours), _backend(found, theirs)))
    twins = len({one.sha256 for one in cited}) < len(cited)
    vouch = (
        "comparisons are byte for byte the same: they name no run, so a copy cannot be told from a second run of what "
        "answers alike each time; a reviewer must vouch for it"
    )
    evidence = Evidence(candidate=_cited(runs), comparisons=tuple(cited))
    return Gathered(views, evidence, reasons, (vouch,) if twins else ())


def _comparison(
    path: Path, candidate: Arm, incumbent: Arm
) -> tuple[Comparison, tuple[BackendReport, BackendReport]]:
    from eval_core.contract import read_comparison

    try:
        found = read_comparison(path)
    except EvalError as error:
        raise Refused("evidence-malformed", error.message) from error
    ours, theirs = _of(found, candidate, path), _of(found, incumbent, path)
    if ours.backend == theirs.backend:
        what = f"{candidate.name} and {incumbent.name} are both its backend {ours.backend!r}"
        mend = "Give measured runs of the two arms: they have options."
        raise Refused("evidence-system-differs", what, file=path, mend=mend)
    return found, (ours, theirs)


def _of(found: Comparison, arm: Arm, path: Path) -> BackendReport:
    for name in (arm.name, arm.backend):
        for report in found.backends:
            if report.backend == name:
                ids = [row.id for row in report.rows]
                if len(set(ids)) != len(ids):
                    raise Refused("evidence-malformed", f"{name} answers a query twice", file=path)
                return report
    held = ", ".join(report.backend for report in found.backends)
    raise Refused(
        "evidence-side-missing",
        f"it compares no backend {arm.name!r}  (backends: {held})",
        file=path,
        mend="Compare both:  eval-core compare --backends CANDIDATE,INCUMBENT --manifest … --format json",
    )


def _beside(
    paper: Paper,
    found: Comparison,
    sides: Sequence[BackendReport],
    first: Comparison,
    candidate: Arm,
    incumbent: Arm,
) -> Iterator[Reason]:
    """Why a comparison is no evidence, by itself or beside the first one."""
    for arm, side in zip((candidate, incumbent), sides, strict=True):
        table, system = arm.table or {}, side.system
        if system is None:
            settings = [name for name in ("options", "filter_from", "expand", "select") if table.get(name)]
            what = f"it compares the backend as it is, and arm {arm.name!r} sets {', '.join(settings)}"
        else:
            usual: dict[str, Any] = {"backend": None, "options": {}, "expand": False}
            settings = [name for name in usual if system.get(name) != table.get(name, usual[name])]
            what = f"eval.toml has another value for {', '.join(settings)} of arm {arm.name!r}"
        if settings:
            mend = "Compare the arms as they are now, or give measured runs of them."
            yield refused("evidence-system-differs", what, mend, file=paper.path)
        if side.errors:
            what = f"{len(side.errors)} of {side.queries} queries are without a sound answer"
            mend = "Mend the backend and compare again."
            yield refused("evidence-errored", what, mend, file=paper.path, subject=side.backend)
        before = next((other for other in first.backends if other.backend == side.backend), side)
        if inner := nested_differences(before.implementation, side.implementation):
            what = f"it is another system than in the first comparison: {', '.join(d.part for d in inner)}"
            mend = "Compare the present state of both twice or more."
            yield refused("evidence-system-differs", what, mend, file=paper.path, subject=side.backend)
    if parts := [d.part for d in differences(_task(first), _task(found))]:
        what = f"it is of another task than the first comparison: {', '.join(parts)}"
        mend = "Compare twice on one state of manifest and corpus."
        yield refused("evidence-task-differs", what, mend, file=paper.path)


def _task(found: Comparison) -> dict[str, object]:
    return {
        "id": found.id,
        "manifest": found.manifest.sha256,
        "corpus": found.corpus.sha256,
        "queries": found.queries,
        "k": found.k,
    }


def _backend(found: Comparison, report: BackendReport) -> Side:
    queries = {}
    for row in report.results:
        ranks = {path: rank for rank, path in enumerate(row.result_paths, 1)}
        queries[row.id] = ([(1, ranks.get(path)) for path in dict.fromkeys(row.ground_truth)], len(ranks))
    return Side(queries, found.k, missing=report.missing_ground_truth, failed=len(report.errors))
