"""`eval-gate power`: what a set can resolve, from its labels alone, and the odds of the policy on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_gate.cli.types import SHARE

if TYPE_CHECKING:
    from eval_core.config import Workspace
    from eval_gate.power.models import Chance, PolicyOdds, Power, Resolved, Rules, Target

_EPILOG = """\b
Examples:
  eval-gate power                               every arm of eval.toml
  eval-gate power memory-bm25                   one arm: its set, and the odds of its floors
  eval-gate power datasets/code                 a set that no arm measures yet
  eval-gate power --n 55                        what 55 queries could show, before they are written
  eval-gate power --n 27 --hits 26 --recover 0.2
                                                and four ways to judge them, side by side

Nothing is measured: labels are enough, and for the odds of a policy its baseline. A set whose corpus is rebuilt from
sources needs that done first (eval-core reconstruct).

A true drop of d points means that each query is lost with probability d / 100; the margin is the one that unchanged
code exceeds at most once in 100 runs if --flip-rate of its queries flip.

\b
Exit codes: 0 told; 2 wrong usage, configuration, set or policy file; 3 a corpus is not
built (the other arms are told all the same).
"""


@click.command(epilog=_EPILOG)
@click.argument("names", nargs=-1, metavar="[ARM|DATASET]...")
@click.option("--config", type=click.Path(path_type=Path), default=Path("eval.toml"), show_default=True)
@click.option("--policy", type=click.Path(path_type=Path), default=Path("policy"), show_default=True)
@click.option(
    "--flip-rate",
    type=SHARE,
    help="Share of queries that flip in unchanged code.  [default: the floors', else 0.01]",
)
@click.option("--n", "number", type=click.IntRange(1, 100_000), help="So many queries, of no set.")
@click.option(
    "--hits", type=click.IntRange(0, 100_000), help="With --n: of them found, to lay rules side by side."
)
@click.option("--recover", type=SHARE, help="With --hits: the share of misses that recover.")
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "markdown"]), default="table", show_default=True
)
def power(
    names: tuple[str, ...],
    config: Path,
    policy: Path,
    flip_rate: float | None,
    number: int | None,
    hits: int | None,
    recover: float | None,
    form: str,
) -> int:
    """Say what a set can resolve: the smallest change that counts, and the odds of its floors."""
    from eval_gate.power.models import Power, resolved, rules
    from eval_gate.power.odds import FLIP_RATE

    if hits is not None and (number is None or hits > number):
        raise click.UsageError(f"--hits {hits} goes with --n, and is at most as many")
    if recover is not None and hits is None:
        raise click.UsageError("--recover goes with --n and --hits")
    supposed = FLIP_RATE if flip_rate is None else flip_rate
    wanted = names or number is None
    targets, code = _targets(names, config, policy, flip_rate) if wanted else ([], 0)
    found = Power(
        flip_rate=supposed,
        targets=tuple(targets),
        queries=None if number is None else resolved(number, supposed),
        rules=None if number is None or hits is None else rules(number, hits, recover=recover),
    )
    if form == "json":
        click.echo(found.model_dump_json(by_alias=True, indent=1))
    elif found.targets or found.queries:
        click.echo("\n".join(_text(found, _markdown if form == "markdown" else _aligned)))
    return code


def _targets(
    names: tuple[str, ...], config: Path, policy: Path, flip_rate: float | None
) -> tuple[list[Target], int]:
    """What is told of each arm or folder, and the exit code: an arm without its corpus costs itself alone."""
    from eval_core.config import Arm, Workspace, load_workspace
    from eval_core.errors import CouldNot, Misuse, did_you_mean

    workspace = load_workspace(config) if config.exists() or not names else None
    arms = dict(workspace.arms) if workspace else {}
    found, code = [], 0
    for name in dict.fromkeys(names or arms):
        if workspace is not None and name in arms:
            place, arm = workspace, arms[name]
        elif Path(name).is_dir():
            arm = Arm(dataset=str(Path(name).absolute()), backend="none")
            place = Workspace(Path(), config, {name: arm})
        else:
            raise Misuse(
                f"{name!r} is no arm of {config} and no dataset folder{did_you_mean(name, arms)}"
                f"  (arms: {', '.join(arms) or 'none'})",
                reason="arm-unknown",
            )
        try:
            found.append(_target(place, name, arm is arms.get(name), policy, flip_rate))
        except CouldNot as error:
            click.echo(f"{name}: {error}", err=True)
            code = 3
    return found, code


def _target(workspace: Workspace, name: str, is_arm: bool, policy: Path, flip_rate: float | None) -> Target:
    from eval_core.config import OUTPUT
    from eval_core.measuring.candidates import counter
    from eval_core.measuring.plan import plan
    from eval_core.reconstruct.lock import NO_RECIPE
    from eval_core.reconstruct.place import corpus_of
    from eval_core.scoring import metrics
    from eval_core.sets.dataset import load
    from eval_core.sets.definition import read_definition
    from eval_gate.power.models import Chance, Target, expected, resolved
    from eval_gate.power.odds import FLIP_RATE

    arm = workspace.arms[name]
    folder = workspace.dataset_folder(arm)
    corpus = corpus_of(folder, read_definition(folder), workspace.root / OUTPUT) if folder.is_dir() else None
    dataset = load(folder, split=arm.split, corpus=corpus, keys=arm.filter_from)
    made = plan(workspace, name, arm, dataset, NO_RECIPE)
    asked = [query for query in made.queries if query.id not in dataset.unscorable]
    categories: dict[str, int] = {}
    for query in asked:
        if category := str(query.metadata.get("category", "")):
            categories[category] = categories.get(category, 0) + 1
    candidates = counter(made)
    relevant = [
        (
            [grade for grade in dataset.judgements[query.id].values() if grade > 0],
            candidates(query) or dataset.documents,
        )
        for query in asked
    ]
    chances = []
    for text in metrics.names(made.cutoffs):
        measure = metrics.parse(text)
        values = [expected(measure, grades, several, made.limit) for grades, several in relevant]
        chances.append(Chance(measure=text, binary=measure.binary, random=metrics.mean(values)))
    supposed = FLIP_RATE if flip_rate is None else flip_rate
    held, note = _policy_odds(name, policy, flip_rate) if is_arm else (None, None)
    return Target(
        name=name,
        arm=is_arm,
        set=dataset.name,
        split=dataset.split,
        filter=arm.filter_from,
        documents=dataset.documents,
        unscorable=len(made.queries) - len(asked),
        must_pass=sum(query.metadata.get("must_pass") is True for query in asked),
        overall=resolved(len(asked), supposed),
        categories={category: resolved(n, supposed) for category, n in categories.items()},
        measures=tuple(chances),
        policy=held,
        note=note,
    )


def _policy_odds(arm: str, policy: Path, flip_rate: float | None) -> tuple[PolicyOdds | None, str | None]:
    """The odds of an arm's policy by its baseline, or why there are none."""
    from eval_core.errors import EvalError
    from eval_gate.check.evidence import read_baseline
    from eval_gate.policy import BUDGETS, DEFAULT_MAX_DROP, FLOORS, Budget, read_budgets, read_floors
    from eval_gate.power.models import PolicyOdds, at_drops
    from eval_gate.power.odds import FLIP_RATE, line, of_report

    path = policy / FLOORS
    if not path.exists():
        return None, None
    every = read_floors(path)
    budgets = read_budgets(policy / BUDGETS, every)
    floors, budget = every.arms.get(arm), budgets.arms.get(arm, Budget())
    if floors is None:
        return None, f"no floors in {path}, so there are no odds to tell"
    baseline = read_baseline(policy, arm, floors)
    if isinstance(baseline, EvalError):
        return None, f"no odds of the policy: {baseline.message}"
    written = floors.flip_rate
    if written is None and floors.odds is not None:
        written = floors.odds.flip_rate
    taken = flip_rate if flip_rate is not None else written if written is not None else FLIP_RATE
    try:
        found = of_report(baseline, floors, budget, flip_rate=taken)
    except ValueError as error:
        return None, f"no odds of the policy: {error}"
    held = baseline.summary.overall.metrics
    usual = {name: points for name, points in DEFAULT_MAX_DROP.items() if name in held}
    told = PolicyOdds(
        headline=baseline.dataset.headline,
        metrics=tuple(floors.metrics),
        margin=floors.margin,
        max_net_lost=floors.margin if budget.max_net_lost is None else budget.max_net_lost,
        max_drop={**usual, **(budget.max_drop or {})},
        tracked=floors.tracked,
        flip_rate=taken,
        flip_rate_from="option" if flip_rate is not None else "assumed" if written is None else "floors",
        false_alarm=found.false_alarm,
        drops=at_drops(found.detects),
        exact=found.exact,
        standard_error=found.standard_error,
        sentence=line(found),
    )
    return told, None


# The text for a person, and the same in Markdown.

Tabled = Callable[[Sequence[Sequence[str]]], str]


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    from eval_core.console import table

    return table(rows, right=range(1, max(map(len, rows))))


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *others = rows
    lines = [head, ["---", *(["---:"] * (len(head) - 1))], *others]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _text(found: Power, tabled: Tabled) -> list[str]:
    lines: list[str] = []
    shown: list[Target] = []
    for target in found.targets:
        # Arms that ask the same of the same set are told once, with the odds of each.
        alike = [other for other in found.targets if _labels(other) == _labels(target)]
        if target in shown:
            continue
        shown += alike
        lines += ["", *_of_set(alike, found.flip_rate, tabled)]
        for arm in alike:
            lines += _of_policy(arm, tabled)
    if found.queries is not None:
        lines += ["", f"{found.queries.n:,} queries", "", *_resolution({"all": found.queries}, tabled)]
        lines += ["", _supposed(found.flip_rate)]
    if found.rules is not None:
        lines += ["", *_side_by_side(found.rules, tabled)]
    return lines[1:]


def _labels(target: Target) -> object:
    return target.model_copy(update={"name": "", "arm": True, "policy": None, "note": None})


def _of_set(targets: Sequence[Target], flip_rate: float, tabled: Tabled) -> Iterable[str]:
    from eval_core.console import clip, count

    target = targets[0]
    names = clip(", ".join(one.name for one in targets), 2000)
    facts = [count(target.overall.n, "query", "queries"), count(target.documents, "document")]
    facts += [f"filtered by {clip(', '.join(target.filter), 60)}"] if target.filter else []
    facts += [f"{target.unscorable} unscorable"] if target.unscorable else []
    facts += [f"{target.must_pass} must pass"] if target.must_pass else []
    yield f"{names}  set {clip(target.set, 60)}, split {clip(target.split, 40)}: {', '.join(facts)}"
    yield ""
    yield from _resolution({"all": target.overall, **target.categories}, tabled)
    yield ""
    yield _supposed(flip_rate)
    small = [clip(name, 40) for name, part in target.categories.items() if not part.floorable]
    if small:
        yield f" Too small for floors of their own: {', '.join(small)}."
    yield ""
    yield from _chances(target.measures, tabled)


def _resolution(parts: dict[str, Resolved], tabled: Tabled) -> Iterable[str]:
    from eval_core.console import clip

    rows = [("queries", "n", "one query", "significant from", "margin", "drop found in 80%")]
    for name, part in parts.items():
        points = "" if part.significant_points is None else f" ({part.significant_points:.1f} pt)"
        rows.append(
            (
                clip(name, 40),
                f"{part.n:,}",
                "–" if part.one_query_points is None else f"{part.one_query_points:.1f} pt",
                f"{part.significant} lost{points}" if points else "never",
                str(part.margin),
                "never" if part.detectable_points is None else f"{part.detectable_points:.1f} pt",
            )
        )
    yield tabled(rows)


def _supposed(flip_rate: float) -> str:
    return (
        f" Fewer lost than that can be chance (McNemar, mid-p, 5%). The margin is what unchanged code exceeds at most\n"
        f" once in 100 runs if {flip_rate:.1%} of its queries flip; a drop is found when it loses more than the margin."
    )


def _chances(measures: Sequence[Chance], tabled: Tabled) -> Iterable[str]:
    """One line a family, its cut-offs side by side."""
    from eval_core.scoring import metrics

    parsed = [(metrics.parse(one.measure), one) for one in measures]
    cutoffs = list(dict.fromkeys(measure.cutoff for measure, _ in parsed if measure.cutoff is not None))
    rows = [("a random ranking scores", "each query", *(f"@{k}" for k in cutoffs), "whole")]
    for family in dict.fromkeys(measure.family for measure, _ in parsed):
        cells = {m.cutoff: f"{one.random:.4f}" for m, one in parsed if m.family == family}
        binary = metrics.FAMILIES[family].binary
        rows.append(
            (
                family,
                "0 or 1" if binary else "graded",
                *(cells.get(k, "") for k in cutoffs),
                cells.get(None, ""),
            )
        )
    yield tabled(rows)


def _of_policy(target: Target, tabled: Tabled) -> Iterable[str]:
    from eval_core.console import clip
    from eval_gate.policy import percent

    if target.note is not None:
        yield from ("", f"{clip(target.name, 60)}: {clip(target.note, 2000)}")
    held = target.policy
    if held is None:
        return
    source = {"option": "as asked", "floors": "as the floors say", "assumed": "assumed"}[held.flip_rate_from]
    drops = "".join(f", {name} may fall {points:g} pt" for name, points in held.max_drop.items())
    net = f"{held.max_net_lost} net lost of {held.headline} pass"
    yield ""
    yield (
        f"{clip(target.name, 60)}'s policy: floors of {', '.join(held.metrics)}, margin {held.margin}; {net}{drops}"
        + ("; tracked only, it never fails" if held.tracked else "")
    )
    yield ""
    yield tabled(
        [
            ("true drop", "none", *(f"{at.points} pt" for at in held.drops)),
            ("P(fail)", percent(held.false_alarm), *(percent(at.fails) for at in held.drops)),
        ]
    )
    yield ""
    how = "exact" if held.exact else f"simulated, within {2 * held.standard_error:.1%}"
    yield f" {held.sentence} ({held.flip_rate:.1%} flip, {source}; {how})"


def _side_by_side(found: Rules, tabled: Tabled) -> Iterable[str]:
    recover = "as many as churn" if found.recover is None else f"{found.recover:.0%} of misses"
    yield f"P(fail) by rule, {found.hits:,} of {found.n:,} found ({recover} recover)"
    yield ""
    first = found.rows[0]
    churn = [f"{at.flip_rate:.0%} churn" for at in first.churn]
    rows = [("rule", *churn, *(f"-{at.points} pt" for at in first.drops))]
    for row in found.rows:
        shares = [at.fails for at in row.churn] + [at.fails for at in row.drops]
        rows.append((row.rule, *(f"{share:.3f}" for share in shares)))
    yield tabled(rows)
