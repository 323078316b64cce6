"""What a set can resolve, from its labels alone, and the odds of the policy of the arm that measures it."""

from __future__ import annotations

from pathlib import Path

from eval_core.config import OUTPUT, Arm, Workspace
from eval_core.errors import Refused, unknown_arm
from eval_core.measuring import counter, resolve
from eval_core.policy import CATEGORY_QUERIES, FLOORS, Policy, derived_margin, expected
from eval_core.policy.faults import faults
from eval_core.reconstruct import NO_RECIPE, corpus_of
from eval_core.scoring import metrics
from eval_core.scoring.statistics import POWER, binomial_above, resolution
from eval_core.sets import load, read_definition
from eval_gate.power.models import Chance, PolicyOdds, Resolved, Target, arm_bar, at_drops, at_rates
from eval_gate.power.odds import odds_of, sentences

#: The flip rate of unchanged code that is supposed where none is given.
FLIP_RATE = 0.01


def place_of(name: str, workspace: Workspace | None, config: Path) -> Workspace:
    """A workspace with the arm of a name in it, or with an arm made of the dataset folder of that name.

    Raises:
        Misuse: it is neither.
    """
    arms = workspace.arms if workspace else {}
    if workspace is not None and name in arms:
        return workspace
    if Path(name).is_dir():
        return Workspace(
            config.parent, config, {name: Arm(dataset=str(Path(name).absolute()), backend="none")}
        )
    raise unknown_arm(name, arms, f"there is neither an arm of {config} nor a dataset folder")


def target(workspace: Workspace, name: str, flip_rate: float) -> Target:
    """What the set of an arm can resolve.

    Args:
        workspace: with the arm in it.
        name: the arm.
        flip_rate: of unchanged code, which margins suppose.

    Raises:
        Faults: the set is wrong.
        CouldNot: its corpus is not built.
    """
    arm = workspace.arms[name]
    folder = workspace.dataset_folder(arm)
    corpus = corpus_of(folder, read_definition(folder), workspace.root / OUTPUT) if folder.is_dir() else None
    dataset = load(folder, split=arm.split, corpus=corpus, keys=arm.filter_from)
    made = resolve(workspace, name, arm, dataset, NO_RECIPE)
    queries = [query for query in made.queries if query.id not in dataset.unscorable]
    categories: dict[str, int] = {}
    for query in queries:
        if category := str(query.metadata.get("category", "")):
            categories[category] = categories.get(category, 0) + 1
    candidates = counter(made)
    shapes = [
        (
            sorted((grade for grade in dataset.judgements[query.id].values() if grade > 0), reverse=True),
            candidates(query) or dataset.documents,
        )
        for query in queries
    ]
    chances = []
    for measure in metrics.names(made.cutoffs, made.headline):
        values = [expected(metrics.parse(measure), grades, n, made.limit) for grades, n in shapes]
        known = [value for value in values if value is not None]
        if len(known) == len(values):
            chances.append(
                Chance(measure=measure, binary=metrics.is_binary(measure), random=metrics.mean(known))
            )
    return Target(
        name=name,
        arm=False,
        set=dataset.name,
        split=dataset.split,
        filter=arm.filter_from,
        documents=dataset.documents,
        unscorable=len(made.queries) - len(queries),
        must_pass=sum(query.metadata.get("must_pass") is True for query in queries),
        overall=resolved(len(queries), flip_rate),
        categories={category: resolved(n, flip_rate) for category, n in categories.items()},
        measures=tuple(chances),
    )


def with_odds(of: Target, policy: Policy | None, flip_rate: float | None) -> Target:
    """What an arm's set can resolve, with the odds of its policy or why there are none.

    Args:
        of: of an arm.
        policy: None where there is no floors file.
        flip_rate: at which the false alarm is wanted; None: 1% and 3%, where the runs differ in their rankings.
    """
    found: dict[str, object] = {"arm": True}
    if policy is not None and of.name not in policy.floors.arms:
        found["note"] = f"no floors in {policy.folder / FLOORS}, so there are no odds"
    elif policy is not None:
        held = _policy_odds(policy, of.name, flip_rate)
        found["note" if isinstance(held, str) else "policy"] = held
    return of.model_copy(update=found)


def _policy_odds(policy: Policy, name: str, flip_rate: float | None) -> PolicyOdds | str:
    try:
        arm = policy.arm(name)
    except Refused as error:
        return f"no odds of the policy: {error.message}"
    if broken := faults(arm):
        return f"no odds, since check refuses the policy: {broken[0].message}"
    odds = odds_of(arm, flip_rates=None if flip_rate is None else (flip_rate,))
    return PolicyOdds(
        margin=arm.margin,
        bars=tuple(map(arm_bar, arm.bars)),
        runs=len(arm.lines),
        runs_agree=arm.runs_agree,
        drops=at_drops(odds.detects),
        false_alarms=at_rates(odds.alarms),
        exact=odds.exact,
        standard_error=odds.standard_error,
        sentences=sentences(arm, odds),
    )


def resolved(n: int, flip_rate: float) -> Resolved:
    """What n queries can show where a share `flip_rate` of them flips between runs of unchanged code."""
    fewest = resolution(max(1, n)).queries
    margin = derived_margin(n, flip_rate)
    return Resolved(
        n=n,
        one_query_points=100 / n if n else None,
        significant=fewest,
        significant_points=100 * fewest / n if n >= fewest else None,
        margin=margin,
        detectable_points=detectable(n, margin),
        floorable=n >= CATEGORY_QUERIES,
    )


def detectable(n: int, margin: int, power: float = POWER) -> float | None:
    """The least true drop, in points, with P(Bin(n, d / 100) > margin) >= power; None where no drop has it."""
    if n <= margin:
        return None
    low, high = 0.0, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if binomial_above(n, middle, margin) >= power else (middle, high)
    return 100 * high
