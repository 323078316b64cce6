"""`eval-gate promote`: evidence and a rule in, every condition out; on request the change that moves the default."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_gate.cli.types import POSITIVE
from eval_gate.cli.types import reason as reason_of

if TYPE_CHECKING:
    from eval_core.config import Workspace
    from eval_core.reports.report import Report
    from eval_gate.policy import Floors
    from eval_gate.promotion.evidence import Arm
    from eval_gate.promotion.models import Promotion
    from eval_gate.promotion.rules import View
    from eval_gate.verdict import Reason

_EPILOG = """\b
Examples:
  eval-gate promote memory-dense --over memory-bm25 --evidence runs/1 --evidence runs/2
                                        what is proven, and what would change
  eval-gate promote … --p95-ms 50 --write
                                        change it: default, floors, baseline, budget and record, all or nothing
  eval-gate promote wiki-links --over local-lexical --evidence 1.json --evidence 2.json
                                        comparisons of backends:  eval-core compare --backends … --format json

Evidence is a folder with CANDIDATE.json and INCUMBENT.json, as .eval/reports has them, or the JSON of a comparison; two
or more consecutive runs, the oldest commit first, committed as they are. --artefact stands for evidence that is not
committed, in the order of that evidence: the address of the CI run that made it, or COMMIT=ADDRESS for a comparison.

What must be shown is in policy/promotion.toml.

\b
Exit codes: 0 every condition is proven; 1 one is not, or the evidence is refused, and nothing is
written; 2 wrong usage, rules or policy; 3 no repository, or this program failed.
"""


@click.command(epilog=_EPILOG)
@click.argument("candidate")
@click.option("--over", "incumbent", required=True, metavar="INCUMBENT", help="Whose place it would take.")
@click.option(
    "--evidence",
    "paths",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    help="A run. Repeatable.",
)
@click.option(
    "--artefact", "artefacts", multiple=True, metavar="RUN_URL", help="Of evidence that is not committed."
)
@click.option("--dataset", help="The dataset folder whose default moves; the candidate's.")
@click.option("--p95-ms", type=POSITIVE, help="The budget of its latency; the one that stands.")
@click.option(
    "--reason",
    callback=reason_of,
    help="Why; kept in the record, and in the floors where these are loosened.",
)
@click.option("--write", "wanted", is_flag=True, help="Make the change, all or nothing.")
@click.option("--rules", type=click.Path(path_type=Path), help="Other rules than POLICY/promotion.toml.")
@click.option("--policy", type=click.Path(path_type=Path), default=Path("policy"), show_default=True)
@click.option("--config", type=click.Path(path_type=Path), default=Path("eval.toml"), show_default=True)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path(".eval"),
    show_default=True,
    help="Where measuring wrote: floors stand on it where the evidence is comparisons.",
)
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "markdown"]), default="table", show_default=True
)
def promote(
    candidate: str,
    incumbent: str,
    paths: tuple[Path, ...],
    artefacts: tuple[str, ...],
    dataset: str | None,
    p95_ms: float | None,
    reason: str | None,
    wanted: bool,
    rules: Path | None,
    policy: Path,
    config: Path,
    output: Path,
    form: str,
) -> int:
    """Hold CANDIDATE to the rule for taking INCUMBENT's place as the default; exit 1 unless all of it is proven."""
    from eval_core.errors import did_you_mean
    from eval_gate.check.origin import Origins
    from eval_gate.policy import FLOORS, is_name, read_floors
    from eval_gate.promotion.change import Wanted, plan, write
    from eval_gate.promotion.evidence import gather, operator_only
    from eval_gate.promotion.models import FEWEST_RUNS, RULES, read_rules, rule_for
    from eval_gate.promotion.places import Places, artefact
    from eval_gate.promotion.rules import judge

    for name in (candidate, incumbent):
        if not is_name(name):
            raise click.UsageError(f"{name!r}: a name is lower-case letters, digits, . _ -")
    if candidate == incumbent:
        raise click.UsageError(f"{candidate!r} cannot take its own place; name another with --over")
    if len(paths) < FEWEST_RUNS:
        raise click.UsageError(f"--evidence is given once; a promotion stands on {FEWEST_RUNS} runs or more")
    read = read_rules(rules or policy / RULES)
    workspace = _workspace(config)
    for name in (candidate, incumbent):
        if workspace is not None and name not in workspace.arms and did_you_mean(name, workspace.arms):
            raise click.UsageError(f"no arm {name!r} in {config}{did_you_mean(name, workspace.arms)}")
    sides = _arm(candidate, workspace), _arm(incumbent, workspace)
    moved = _dataset(sides[0], workspace, dataset, wanted)
    floors = read_floors(policy / FLOORS) if (policy / FLOORS).exists() else None
    origins = Origins(policy, config, required=floors is not None and "provenance" in floors.require)
    place = config.parent if config.parent.is_dir() else Path()
    with Places.at(place) as places:
        found = gather(paths, *sides, places, origins, [artefact(text) for text in artefacts])
        backends = _backends(found.views)
        names = tuple(name for name in (incumbent, sides[1].backend, backends[1]) if name)
        rule = rule_for(read, rules or policy / RULES, tuple(dict.fromkeys(names)))
        promotion = judge(
            candidate,
            incumbent,
            rule,
            found.views,
            found.reasons,
            _baselined(incumbent, policy, floors),
            [
                *operator_only(read.endpoint, sides[0], backends[0], config, places),
                *_not_default(moved, workspace, *sides),
            ],
        )
        head = places.tree.commit
    promotion = promotion.model_copy(update={"dataset": moved})
    if promotion.exit_code == 0 and workspace is not None and moved is not None:
        from eval_core.errors import Refused

        try:
            runs = _runs(candidate, found.views, output)
            change = plan(promotion, rule, runs, workspace, moved, policy, Wanted(p95_ms, reason), head)
        except Refused as error:
            promotion = _refused(promotion, error)
        else:
            if wanted:
                write(change.files)
            promotion = promotion.model_copy(
                update={"changes": change.told, "written": wanted, "record": str(change.record)}
            )
    _print(promotion, form)
    return promotion.exit_code


def _workspace(config: Path) -> Workspace | None:
    """eval.toml, where there is one: backends can be held to a rule without it."""
    from eval_core.config import load_workspace

    return load_workspace(config) if config.exists() else None


def _arm(name: str, workspace: Workspace | None) -> Arm:
    from eval_gate.promotion.evidence import Arm

    table = workspace.arms.get(name) if workspace else None
    return Arm(name, table.model_dump(mode="json", exclude_defaults=True) if table else None)


def _dataset(candidate: Arm, workspace: Workspace | None, given: str | None, write: bool) -> str | None:
    """The key of `[default]` that moves; None where the candidate is no arm, and nothing is to be written."""
    from eval_core.config import same_folder
    from eval_core.errors import Misuse, did_you_mean

    if workspace is None or candidate.table is None:
        if not write and given is None:
            return None
        known = list(workspace.arms) if workspace else []
        raise Misuse(
            f"eval.toml has no arm {candidate.name!r}{did_you_mean(candidate.name, known)}  "
            f"(arms: {', '.join(known) or 'none'})",
            reason="arm-unknown",
            remedy="A promotion moves the default of a dataset to an arm: add the arm, measure it, then promote.",
        )
    own = workspace.arms[candidate.name].dataset
    if given is not None and not same_folder(given, own):
        raise Misuse(
            f"--dataset {given!r}: {candidate.name!r} is an arm of {own!r}; promote an arm of that dataset",
            reason="dataset-differs",
        )
    return next((key for key in workspace.default if same_folder(key, own)), own)


def _backends(views: list[View]) -> tuple[str | None, str | None]:
    """The backends of both sides, as the evidence has them."""
    return (views[0].candidate.backend, views[0].incumbent.backend) if views else (None, None)


def _not_default(
    dataset: str | None, workspace: Workspace | None, candidate: Arm, incumbent: Arm
) -> list[Reason]:
    """A promotion replaces what is the default now."""
    from eval_gate.check.eligibility import refusal

    now = workspace.default.get(dataset) if workspace and dataset else None
    if now in (None, incumbent.name):
        return []
    if now == candidate.name:
        return [refusal("already-default", f"{candidate.name!r} is the default for {dataset!r} already")]
    message = f"the default for {dataset!r} is {now!r}, and {incumbent.name!r} is not in its place"
    return [refusal("not-the-default", message, f"Hold the candidate against the default:  --over {now}")]


def _baselined(incumbent: str, policy: Path, floors: Floors | None) -> str | Reason:
    """The words for an incumbent's floors and baseline, or why it has none."""
    from eval_core.errors import EvalError
    from eval_gate.check.eligibility import refusal
    from eval_gate.check.evidence import read_baseline, uncited

    held = floors.arms.get(incumbent) if floors else None
    if held is None:
        return refusal("floors-missing", f"{incumbent} has no floors in {policy / 'floors.toml'}")
    baseline = read_baseline(policy, incumbent, held)
    if baseline is None or isinstance(baseline, EvalError):
        return refusal("baseline-missing", baseline.message if baseline else f"{incumbent} has no baseline")
    if broken := uncited(policy, incumbent, held):
        return broken[0]
    return f"floors on {len(held.evidence)} runs, baseline run {baseline.run_id}"


def _runs(candidate: str, views: list[View], output: Path) -> list[Report]:
    """What the candidate's floors will stand on: the evidence, or where that is comparisons its measured history."""
    from eval_gate.promotion.evidence import history

    runs = [view.candidate.report for view in views if view.candidate.report is not None]
    return runs or history(candidate, output)


def _refused(promotion: Promotion, error: Exception) -> Promotion:
    """What was proven, and why the change cannot be made all the same."""
    from eval_core.console import utf8
    from eval_core.errors import Refused
    from eval_gate.check.eligibility import refusal

    if not isinstance(error, Refused):
        raise error
    reason = refusal(error.reason, utf8(error.message), error.remedy)
    return promotion.model_copy(
        update={"verdict": "refused", "exit_code": 1, "reasons": (*promotion.reasons, reason)}
    )


def _print(promotion: Promotion, form: str) -> None:
    from eval_gate.promotion import render

    if form == "json":
        click.echo(promotion.model_dump_json(by_alias=True, indent=1))
    else:
        click.echo(render.markdown(promotion) if form == "markdown" else render.terminal(promotion))
