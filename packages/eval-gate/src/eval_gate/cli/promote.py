"""`eval-gate promote`: evidence and a rule in, every condition out; on request the change that moves the default."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_core.cli.workspace import beside, config_option
from eval_gate.cli.types import POSITIVE

if TYPE_CHECKING:
    from eval_core.config import Workspace
    from eval_core.policy import ArmPolicy, Line, Policy
    from eval_core.reports import Report
    from eval_gate.promotion import Places, Promotion, Rule
    from eval_gate.promotion.evidence import Arm
    from eval_gate.promotion.rules import Gathered
    from eval_gate.verdict import Reason

_EPILOG = """\b
Examples:
  eval-gate promote memory-dense                over the default of its dataset: what is proven, and
                                                what would change
  eval-gate promote memory-dense --p95-ms 50 --write
                                                change it: default, budget and record, all or nothing
  eval-gate promote memory-dense --from eval-8812.zip --from eval-8813.zip --write
                                                by what two CI runs uploaded, which becomes evidence
  eval-gate promote wiki-links --over local-lexical --comparison policy/promotions/1.json \\
    --comparison policy/promotions/2.json       by comparisons of backends:  eval-core compare
                                                --backends … --format json

Evidence is the last runs of both arms in policy/evidence, which  eval-gate floor  wrote: as they are
in HEAD, or of a CI run that they name. Comparisons lie below policy/promotions/, each checked in by
a commit of its own.

What must be shown is in policy/promotion.toml.

\b
Exit codes: 0 every condition is proven; 1 one is not, or the evidence is refused, and nothing is
written; 2 wrong usage, rules or policy; 3 no repository, or this program failed.
"""


@click.command(epilog=_EPILOG)
@click.argument("candidate")
@click.option("--over", "incumbent", metavar="INCUMBENT", help="Whose place it would take; the default's.")
@click.option(
    "--comparison",
    "papers",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A comparison of both backends, the oldest first. Repeatable.",
)
@click.option(
    "--from",
    "sources",
    multiple=True,
    type=click.Path(path_type=Path),
    help="New runs of both arms, as CI uploaded them: a folder or zip file of .eval. Repeatable.",
)
@click.option("--p95-ms", type=POSITIVE, help="The budget of its latency; the one that stands, else 300.")
@click.option("--reason", help="Why; kept in the record, and beside a budget of more than 300 ms.")
@click.option("--write", is_flag=True, help="Make the change, all or nothing.")
@beside("--policy", "folder", place="policy")
@config_option()
@beside("--reports", place=".eval/reports", text="Where the candidate was measured last: its latency.")
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "markdown"]), default="table", show_default=True
)
def promote(
    candidate: str,
    incumbent: str | None,
    papers: tuple[Path, ...],
    sources: tuple[Path, ...],
    p95_ms: float | None,
    reason: str | None,
    write: bool,
    folder: Path,
    config: Path,
    reports: Path,
    form: str,
) -> int:
    """Hold CANDIDATE to the rule for taking INCUMBENT's place as the default; exit 1 unless all of it is proven."""
    from eval_gate.promotion import RULES, Places, operator_only, read_rules, rule_for
    from eval_gate.promotion.rules import judge

    workspace = _workspace(config)
    dataset = _dataset(candidate, workspace, config, write)
    now = workspace.default.get(dataset) if workspace and dataset else None
    incumbent = _incumbent(candidate, incumbent or now, workspace, config)
    policy = _policy(folder, needed=not (papers or sources))
    sides = _arm(candidate, workspace), _arm(incumbent, workspace)
    rules = read_rules(folder / RULES)
    rule = rule_for(rules, folder / RULES, incumbent, sides[1].backend)
    uploads = _Uploads(sources, candidate)
    ours, theirs = _Held(candidate, policy, uploads), _Held(incumbent, policy, uploads)
    with Places.at(config.parent if config.parent.is_dir() else Path()) as places:
        if papers:
            found = _compared(papers, folder, sides, ours, rule, places)
        else:
            found = _measured(ours, theirs, folder, rule, places)
        blocked = [
            *operator_only(rules.endpoint, sides[0], config, places),
            *_not_default(dataset, now, candidate, incumbent),
        ]
    promotion = judge(candidate, incumbent, rule, found, theirs.baselined, blocked)
    promotion = promotion.model_copy(update={"dataset": dataset})
    if promotion.exit_code == 0 and workspace is not None and dataset is not None:
        report = uploads.report or reports / f"{candidate}.json"
        promotion = _changed(promotion, rule, ours, theirs, workspace, report, p95_ms, reason, write)
    _print(promotion, form)
    return promotion.exit_code


def _policy(folder: Path, *, needed: bool) -> Policy:
    """What `policy/` says; empty where it need not be there and is not."""
    from eval_core.policy import FLOORS, Budgets, Floors, Policy, read_policy

    if needed or (folder / FLOORS).exists():
        return read_policy(folder)
    return Policy(folder, Floors(schema_="floors-v2"), Budgets(schema_="budgets-v2"))


class _Uploads:
    """What CI measured: the runs of each arm, and the newest report of the candidate."""

    def __init__(self, sources: Sequence[Path], candidate: str) -> None:
        from eval_gate.floors import reports_in, uploaded

        self.runs = uploaded(sources) if sources else None
        reports = [report for path in sources for arm, report in reports_in(path) if arm == candidate]
        self.report = max(reports, key=lambda report: report.environment.started, default=None)


class _Held:
    """An arm as the policy has it, or as new runs of it give it, and why it is not fit for a promotion."""

    def __init__(self, name: str, policy: Policy, uploads: _Uploads) -> None:
        from eval_core.errors import Refused
        from eval_core.policy.faults import faults
        from eval_gate.floors.propose import Standing, Wish, propose
        from eval_gate.promotion.evidence import refused
        from eval_gate.verdict import Reason

        self.name, self.policy = name, policy
        self.new = uploads.runs is not None and name in uploads.runs
        self.arm: ArmPolicy | None = None
        self.reasons: list[Reason] = []
        stands = name in policy.floors.arms
        self.standing = Standing(deleted=not stands and name in policy.traces(), answers=True)
        try:
            if stands:
                self.arm = policy.arm(name)
                self.standing = Standing(policy=self.arm, answers=True)
            if uploads.runs is not None and self.new:
                self.arm = propose(name, uploads.runs[name], Wish(), self.standing).after
        except Refused as error:
            self.reasons = [Reason.of(error)]
            return
        if self.arm is None:
            mend = f"Measure it and floor it first:  eval-gate floor {name} --measure --write"
            self.reasons = [refused("arm-without-floors", "it has no floors", mend, subject=name)]
            return
        for fault in faults(self.arm):
            reason = Reason.of(fault)
            subject = f"{reason.subject} of {name}" if reason.subject else name
            self.reasons.append(reason.model_copy(update={"subject": subject}))

    @property
    def baselined(self) -> str | Reason:
        """The words for its floors and baseline, or why it has none."""
        if self.arm is None or self.reasons:
            return self.reasons[0]
        return f"floors on {len(self.arm.lines)} runs, baseline run {self.arm.baseline.run_id}"

    def last(self, count: int) -> Sequence[Line]:
        """The last runs that its floors stand on."""
        return self.arm.lines[-count:] if self.arm else ()


def _measured(ours: _Held, theirs: _Held, folder: Path, rule: Rule, places: Places) -> Gathered:
    """The last runs of both arms."""
    from eval_core.policy import path_of
    from eval_gate.promotion import uncommitted
    from eval_gate.promotion.evidence import of_runs

    runs = {held.name: held.last(rule.runs) for held in (ours, theirs)}
    found = of_runs((ours.name, runs[ours.name]), (theirs.name, runs[theirs.name]))
    for held in (ours, theirs):
        lines = runs[held.name]
        found = found.refused(
            [*held.reasons, *uncommitted(places, held.name, lines, path_of(folder, held.name))]
        )
    return found


def _compared(
    papers: Sequence[Path], folder: Path, sides: tuple[Arm, Arm], ours: _Held, rule: Rule, places: Places
) -> Gathered:
    """Comparisons of backends, each as HEAD has it."""
    from eval_core.errors import Refused
    from eval_gate.promotion import RECORDS
    from eval_gate.promotion.evidence import of_comparisons
    from eval_gate.verdict import Reason

    kept, reasons = [], []
    for path in papers:
        try:
            kept.append(places.checked_in(path, folder / RECORDS))
        except Refused as error:
            reasons.append(Reason.of(error))
    found = of_comparisons(kept, *sides, ours.last(rule.runs))
    # A backend that is no arm is held to the rule all the same; an arm needs floors to become the default.
    return found.refused([*reasons, *(ours.reasons if sides[0].table is not None else ())])


def _changed(
    promotion: Promotion,
    rule: Rule,
    ours: _Held,
    theirs: _Held,
    workspace: Workspace,
    source: Report | Path,
    p95_ms: float | None,
    reason: str | None,
    write: bool,
) -> Promotion:
    """The promotion with the change that it makes, or why that cannot be made."""
    from eval_core.errors import Refused
    from eval_core.reports import read_report
    from eval_gate.floors import write_all
    from eval_gate.floors.propose import Wish, propose
    from eval_gate.promotion import plan, unmet
    from eval_gate.verdict import Reason

    if ours.arm is None or promotion.dataset is None:
        return promotion
    why = {"p95_ms": reason} if reason and p95_ms else {}
    try:
        report = read_report(source, ours.name) if isinstance(source, Path) else source
        # A default's budget is written: the given one, the one that stands, or the usual one.
        arm = propose(ours.name, ours.arm.lines, Wish(p95_ms=p95_ms, reasons=why), ours.standing).after
        reasons = unmet(arm, report)
    except Refused as error:
        reasons = [Reason.of(error)]
    if reasons:
        return promotion.model_copy(
            update={"verdict": "refused", "exit_code": 1, "reasons": (*promotion.reasons, *reasons)}
        )
    arms = {ours.name: arm} | ({theirs.name: theirs.arm} if theirs.new and theirs.arm else {})
    change = plan(promotion, rule, arms, report, ours.policy, workspace, promotion.dataset, reason)
    if write:
        write_all(change.files)
    return promotion.model_copy(
        update={"changes": change.words, "written": write, "record": str(change.record)}
    )


def _workspace(config: Path) -> Workspace | None:
    """eval.toml, where there is one: backends can be held to a rule without it."""
    from eval_core.config import load_workspace

    return load_workspace(config) if config.exists() else None


def _arm(name: str, workspace: Workspace | None) -> Arm:
    from eval_gate.promotion.evidence import Arm

    table = workspace.arms.get(name) if workspace else None
    return Arm(name, table.model_dump(mode="json", exclude_defaults=True) if table else None)


def _dataset(candidate: str, workspace: Workspace | None, config: Path, write: bool) -> str | None:
    """The key of `[default]` that moves; None where the candidate is not an arm, and nothing is to be written."""
    from eval_core.config import same_folder
    from eval_core.errors import did_you_mean, unknown_arm
    from eval_core.policy import is_name

    if not is_name(candidate):
        raise click.UsageError(f"{candidate!r}: a name is lower-case letters, digits, . _ -")
    known = workspace.arms if workspace else {}
    if candidate not in known:
        if not (write or did_you_mean(candidate, known)):
            return None
        mend = "A promotion moves the default of a dataset to an arm: add the arm, measure it, then promote."
        raise unknown_arm(candidate, known, file=config, mend=mend)
    own = known[candidate].dataset
    defaults = workspace.default if workspace else {}
    return next((key for key in defaults if same_folder(key, own)), own)


def _incumbent(candidate: str, incumbent: str | None, workspace: Workspace | None, config: Path) -> str:
    from eval_core.errors import did_you_mean, unknown_arm
    from eval_core.policy import is_name

    if incumbent is None:
        raise click.UsageError(
            "its dataset has no default yet; say whose place it would take: --over INCUMBENT"
        )
    if not is_name(incumbent):
        raise click.UsageError(f"{incumbent!r}: a name is lower-case letters, digits, . _ -")
    if candidate == incumbent:
        raise click.UsageError(f"{candidate!r} cannot take its own place; name another with --over")
    if workspace and incumbent not in workspace.arms and did_you_mean(incumbent, workspace.arms):
        raise unknown_arm(incumbent, workspace.arms, file=config)
    return incumbent


def _not_default(dataset: str | None, now: str | None, candidate: str, incumbent: str) -> Iterator[Reason]:
    """A promotion replaces what is the default now."""
    from eval_gate.promotion.evidence import refused

    if now == candidate:
        yield refused("already-default", f"{candidate!r} is the default for {dataset!r} already")
    elif now not in (None, incumbent):
        what = f"the default for {dataset!r} is {now!r}, and {incumbent!r} is not in its place"
        yield refused("not-the-default", what, f"Hold the candidate against the default:  --over {now}")


def _print(promotion: Promotion, form: str) -> None:
    from eval_gate.promotion import render

    if form == "json":
        click.echo(promotion.model_dump_json(by_alias=True, indent=1))
    else:
        click.echo(render.markdown(promotion) if form == "markdown" else render.terminal(promotion))
