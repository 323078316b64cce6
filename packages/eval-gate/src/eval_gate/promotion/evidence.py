"""Evidence of a promotion: comparisons of backends and folders of reports, read into one view and placed in git."""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from eval_core.console import utf8
from eval_core.errors import EvalError, Misuse, Refused
from eval_core.files import refuse_special
from eval_core.reports.report import Report, parse_report, read_report
from eval_gate.check.eligibility import refusal
from eval_gate.check.origin import Origins
from eval_gate.floors.propose import unfit, unlike
from eval_gate.promotion.models import Endpoint, EvidenceFacts
from eval_gate.promotion.places import Artefact, Places
from eval_gate.promotion.rules import Side, View
from eval_gate.verdict import Reason

if TYPE_CHECKING:
    from eval_core.contract.models import BackendReport, Comparison

_CHECK_IN = (
    "Put the files where they are kept, such as policy/promotions/evidence/NAME/, and commit them; or name the CI run "
    "that made them: --artefact RUN_URL."
)


class Arm(NamedTuple):
    """A side as the caller names it: its name, and its table of eval.toml where it is an arm there."""

    name: str
    table: Mapping[str, Any] | None

    @property
    def backend(self) -> str | None:
        """Its backend by eval.toml."""
        written = (self.table or {}).get("backend")
        return written if isinstance(written, str) else None


@dataclass(slots=True)
class Gathered:
    """What was found: the runs that can be looked at, and why others, or these, are no evidence."""

    views: list[View] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)


def gather(
    paths: Sequence[Path],
    candidate: Arm,
    incumbent: Arm,
    places: Places,
    origins: Origins,
    artefacts: Sequence[Artefact] = (),
) -> Gathered:
    """Read the evidence runs, and hold each against the tree of HEAD and the next one's commit.

    Raises:
        Misuse: more artefacts than evidence that is not checked in.
        CouldNot: git fails.
    """
    found = Gathered()
    left = list(artefacts)
    for path in paths:
        try:
            if path.is_dir():
                view = _reports(path, candidate, incumbent, places, origins, left, found.reasons)
            else:
                view = _comparison(path, candidate, incumbent, places, left, found.reasons)
        except Refused as error:
            found.reasons.append(refusal(error.reason, utf8(error.message), error.remedy))
            continue
        found.views.append(view)
    if left and len(found.views) == len(paths):
        raise Misuse(
            f"--artefact {left[0].url}: every evidence run is checked in or has one; leave it out",
            reason="artefact-unused",
        )
    found.reasons += _order(found.views, places)
    return found


def _order(views: Sequence[View], places: Places) -> Iterator[Reason]:
    for before, after in pairwise(views):
        one, other = before.facts.commit, after.facts.commit
        # A commit that is not known was told already.
        if one and other and places.known(one) and places.known(other) and not places.ancestor(one, other):
            turned = places.ancestor(other, one)
            message = (
                f"{after.path} is of commit {other[:12]}, which does not follow {one[:12]} of {before.path}"
                f"{': they are given the wrong way round' if turned else ''}"
            )
            yield refusal("evidence-order", message, "Name consecutive runs, the oldest commit first.")


def _placed(
    path: Path, files: Mapping[Path, bytes], places: Places, left: list[Artefact], reasons: list[Reason]
) -> tuple[bool, Artefact | None]:
    """Whether the files are checked in; else the artefact that stands for them, or a reason."""
    outside = [file for file, content in files.items() if not places.holds(file, content)]
    if not outside:
        return True, None
    if left:
        return False, left.pop(0)
    inner = places.relative(outside[0])
    there = inner is not None and places.tree.find(os.fsencode(inner)).kind == "file"
    message = f"{outside[0]}: is {'not as it was committed' if there else 'not in the tree of HEAD'}"
    reasons.append(refusal("evidence-uncommitted", message, _CHECK_IN))
    return False, None


def _known(path: str, commit: str | None, places: Places) -> Iterator[Reason]:
    if places.known(commit) is None:
        named = f"names commit {utf8(commit)[:12]!r}, which is" if commit else "names no commit, so it is"
        yield refusal(
            "evidence-commit-unknown",
            f"{path}: {named} not part of the history of HEAD",
            "Measure at a commit of this branch, fetched whole (no shallow clone), and check that in.",
        )


def _reports(
    path: Path,
    candidate: Arm,
    incumbent: Arm,
    places: Places,
    origins: Origins,
    left: list[Artefact],
    reasons: list[Reason],
) -> View:
    """A folder with the report of each side.

    Raises:
        Refused: a report is missing or does not load.
    """
    files = {arm.name: path / f"{arm.name}.json" for arm in (candidate, incumbent)}
    raw = {name: _bytes(file) for name, file in files.items()}
    reports = {name: parse_report(raw[name], file, name) for name, file in files.items()}
    shown = places.relative(path) or path.name
    kept, by_ci = _placed(
        path, {files[name]: content for name, content in raw.items()}, places, left, reasons
    )
    for name, report in reports.items():
        if problem := unfit(report):
            message = f"{files[name]}: run {report.run_id} {problem.message}"
            reasons.append(refusal(problem.reason, message, problem.remedy))
        reasons += origins.of(report, raw[name], files[name]).reasons
        if by_ci is not None:
            reasons += _of_ci(files[name], report, by_ci)
    commits = {name: report.environment.commit for name, report in reports.items()}
    if len(set(commits.values())) > 1:
        named = ", ".join(f"{name} at {(commit or 'no commit')[:12]}" for name, commit in commits.items())
        message = f"{path}: its two sides were measured at different commits ({named})"
        reasons.append(refusal("evidence-commit-differs", message, "Measure both at one commit."))
    commit = commits[candidate.name]
    reasons += _known(str(path), commit, places)
    facts = EvidenceFacts(
        path=utf8(shown),
        form="reports",
        files={
            utf8(f"{shown}/{name}.json"): hashlib.sha256(content).hexdigest() for name, content in raw.items()
        },
        commit=commit,
        checked_in=kept,
        artefact=by_ci.url if by_ci else None,
        runs={name: report.run_id for name, report in reports.items()},
        digests={name: report.digests.quality for name, report in reports.items()},
    )
    return View(
        facts=facts,
        candidate=_side(reports[candidate.name]),
        incumbent=_side(reports[incumbent.name]),
        sha256=frozenset(facts.files.values()),
    )


def _of_ci(file: Path, report: Report, by_ci: Artefact) -> Iterator[Reason]:
    """A report that an artefact stands for names the CI run that the address is of."""
    run = report.environment.ci_run
    if run is None:
        message = f"{file}: --artefact names a CI run, and the report names none"
        yield refusal("evidence-not-ci", message, _CHECK_IN)
    elif not re.search(rf"(?<![0-9A-Za-z]){re.escape(run)}(?![0-9A-Za-z])", by_ci.url):
        message = f"{file}: is of CI run {utf8(run)}, and --artefact is {by_ci.url}"
        yield refusal("evidence-not-ci", message, "Name the address of that run.")


def _bytes(path: Path) -> bytes:
    try:
        refuse_special(path)
        return path.read_bytes()
    except FileNotFoundError as error:
        raise Refused(
            f"{path}: no such file",
            reason="evidence-missing",
            remedy="Evidence is a folder with CANDIDATE.json and INCUMBENT.json, or the JSON of a comparison.",
        ) from error
    except OSError as error:
        raise Refused(
            f"{path}: cannot be read: {error.strerror or error}", reason="evidence-missing"
        ) from error


def _side(report: Report) -> Side:
    limit = report.task.parts["limit"]
    return Side(
        name=report.arm,
        backend=str(report.system.parts.get("backend")),
        queries={
            row.id: (tuple([(judged.grade, judged.rank) for judged in row.judged]), len(row.ids))
            for row in report.rows
            if row.outcome == "scored"
        },
        limit=limit if isinstance(limit, int) else 0,
        task=report.task.parts,
        system=report.system.parts,
        held=frozenset(report.summary.overall.metrics),
        # A set that judges a document which is not in its corpus is not measured.
        missing=0,
        failed=report.health.errored + report.health.unscored,
        run_id=report.run_id,
        class_=report.environment.class_,
        report=report,
    )


def _comparison(
    path: Path, candidate: Arm, incumbent: Arm, places: Places, left: list[Artefact], reasons: list[Reason]
) -> View:
    """A comparison of backends that holds both sides.

    Raises:
        Refused: it does not load, or lacks a side.
    """
    from eval_core.contract import read_comparison

    raw = _bytes(path)
    if b'"report-v1"' in raw[:200]:
        message = f"{path}: is the report of one arm; name the folder that holds those of both"
        raise Refused(message, reason="evidence-malformed")
    try:
        found = read_comparison(path)
    except EvalError as error:
        raise Refused(error.message, reason="evidence-malformed") from error
    sides = [_of(found, arm, path) for arm in (candidate, incumbent)]
    if sides[0].backend == sides[1].backend:
        message = f"{path}: {candidate.name} and {incumbent.name} are both its backend {sides[0].backend!r}"
        raise Refused(
            message,
            reason="evidence-system-differs",
            remedy="Give reports of the two arms: they have options.",
        )
    shown = places.relative(path) or path.name
    kept, by_ci = _placed(path, {path: raw}, places, left, reasons)
    for arm in (candidate, incumbent):
        settings = [
            name for name in ("options", "filter_from", "expand", "select") if (arm.table or {}).get(name)
        ]
        if settings:
            message = (
                f"{path}: compares backends as they are, and arm {arm.name!r} sets {', '.join(settings)}"
            )
            reasons.append(refusal("evidence-system-differs", message, "Give reports of the two arms."))
    failed = [f"{side.backend}: {len(side.errors)} of {side.queries}" for side in sides if side.errors]
    if failed:
        message = f"{path}: queries without a sound answer ({'; '.join(failed)})"
        reasons.append(refusal("evidence-errored", message, "Mend the backend and compare again."))
    commit = by_ci.commit if by_ci else places.checked_in(path) if kept else None
    if kept or by_ci:
        reasons += _known(str(path), commit, places)
    digest = hashlib.sha256(raw).hexdigest()
    facts = EvidenceFacts(
        path=utf8(shown),
        form="comparison",
        files={utf8(shown): digest},
        commit=(places.known(commit) or commit) if commit else None,
        checked_in=kept,
        artefact=by_ci.url if by_ci else None,
    )
    made = [
        _backend_side(found, side, arm.name) for side, arm in zip(sides, (candidate, incumbent), strict=True)
    ]
    return View(
        facts=facts, candidate=made[0], incumbent=made[1], unsound=found.why, sha256=frozenset({digest})
    )


def _of(found: Comparison, arm: Arm, path: Path) -> BackendReport:
    for name in (arm.name, arm.backend):
        for report in found.backends:
            if report.backend == name:
                ids = [row.id for row in report.rows]
                if len(set(ids)) != len(ids):
                    raise Refused(f"{path}: {name} answers a query twice", reason="evidence-malformed")
                return report
    held = ", ".join(report.backend for report in found.backends)
    raise Refused(
        f"{path}: compares no backend {arm.name!r}  (backends: {held})",
        reason="evidence-side-missing",
        remedy="Compare both:  eval-core compare --backends CANDIDATE,INCUMBENT --manifest … --format json",
    )


def _backend_side(found: Comparison, report: BackendReport, name: str) -> Side:
    queries = {}
    for row in report.results:
        ranks = {path: rank for rank, path in enumerate(row.result_paths, 1)}
        truth = dict.fromkeys(row.ground_truth)
        queries[row.id] = (tuple([(1, ranks.get(path)) for path in truth]), len(ranks))
    return Side(
        name=name,
        backend=report.backend,
        queries=queries,
        limit=found.k,
        task={
            "id": found.id,
            "manifest": found.manifest.sha256,
            "corpus": found.corpus.sha256,
            "queries": found.queries,
            "k": found.k,
        },
        system={"backend": report.backend, "implementation": report.implementation},
        missing=report.missing_ground_truth,
        failed=len(report.errors),
    )


def operator_only(
    endpoints: Sequence[Endpoint], candidate: Arm, backend: str | None, config: Path, places: Places
) -> list[Reason]:
    """R6: what the repository lacks before a backend that reaches a service may be a default, all of it at once."""
    reasons = []
    for endpoint in endpoints:
        if endpoint.backend not in (candidate.name, candidate.backend, backend):
            continue
        options = _committed_options(config, candidate.name, places)
        missing = []
        named = options.get(endpoint.option)
        if not isinstance(named, str) or not named.strip() or endpoint.environment in named:
            missing.append(
                f"its endpoint in the repository: options.{endpoint.option} of the arm in {config}"
            )
        parts = [part for part in endpoint.documented.split("/") if part not in ("", ".")]
        document = places.tree.read(os.fsencode("/".join(parts)))
        if document is None or not document.strip():
            missing.append(f"its failure behaviour, documented in {endpoint.documented}")
        if options.get(endpoint.fallback_option) != endpoint.fallback:
            missing.append(
                f"the same offline fallback: options.{endpoint.fallback_option} = {endpoint.fallback!r} of the arm in "
                f"{config}"
            )
        if missing:
            only = (
                f"{candidate.name}: its endpoint is only the operator's {endpoint.environment}"
                if len(missing) == 3
                else f"{candidate.name}: reaches a service ({endpoint.environment}), and cannot be promoted as it is"
            )
            reasons.append(
                refusal(
                    "endpoint-operator-only",
                    f"{only}. Missing from the commit that is checked out: {'; '.join(missing)}",
                    "Commit each of them, measure again, and then promote.",
                )
            )
    return reasons


def _committed_options(config: Path, arm: str, places: Places) -> Mapping[str, Any]:
    """An arm's options by the eval.toml of HEAD; nothing where it cannot be read."""
    inner = places.relative(config)
    content = places.tree.read(os.fsencode(inner)) if inner is not None else None
    try:
        table: Any = tomllib.loads((content or b"").decode("utf-8"))
        options = table["arms"][arm]["options"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return options if isinstance(options, dict) else {}


def history(arm: str, output: Path) -> list[Report]:
    """The runs of an arm that floors can stand on where the evidence is a comparison: the newest, and those like it.

    Raises:
        Refused: there is no report of it.
    """
    newest = read_report(output / "reports" / f"{arm}.json", arm)
    found = []
    for path in sorted((output / "history" / arm).glob("*.json")):
        try:
            report = read_report(path, arm)
        except Refused:  # what is past must not stand in the way
            continue
        if report.run_id != newest.run_id and unlike(report, newest) is None and unfit(report) is None:
            found.append(report)
    return [*found, newest]
