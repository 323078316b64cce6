"""`eval-gate power`: what a set can resolve, from its labels alone, and the odds of the policy on it."""

from __future__ import annotations

from pathlib import Path

import click

from eval_core.cli.workspace import beside, config_option
from eval_gate.cli.types import SHARE

_EPILOG = """\b
Examples:
  eval-gate power                     every arm of eval.toml
  eval-gate power memory-bm25         one arm: its set, its bars and their odds
  eval-gate power datasets/code       a set that no arm measures yet
  eval-gate power memory-bm25 --flip-rate 0.02
                                      how often its bars fail unchanged code, if 2% of its queries flip

Nothing is measured: labels are enough, and for the odds of a policy its evidence. A set whose corpus is rebuilt from
sources needs that done first (eval-core reconstruct).

A true drop of d points means that each query is lost with probability d / 100; the margin is the one that unchanged
code exceeds at most once in 100 runs if --flip-rate of its queries flip.

\b
Exit codes: 0 said; 2 wrong usage, configuration, set or policy file; 3 a corpus is not
built (what the other arms resolve is said all the same).
"""


@click.command(epilog=_EPILOG)
@click.argument("names", nargs=-1, metavar="[ARM|DATASET]...")
@config_option()
@beside("--policy", place="policy")
@click.option(
    "--flip-rate",
    type=SHARE,
    help="Share of queries that flip in unchanged code.  [default: 0.01; for an arm whose runs differ, 0.03 too]",
)
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "markdown"]), default="table", show_default=True
)
def power(names: tuple[str, ...], config: Path, policy: Path, flip_rate: float | None, form: str) -> int:
    """Say what a set can resolve: the smallest change that counts, and the odds of its bars."""
    from eval_core.config import load_workspace
    from eval_core.errors import CouldNot
    from eval_core.policy import FLOORS, read_policy
    from eval_gate.power import FLIP_RATE, Power, place_of, target, with_odds

    workspace = load_workspace(config) if config.exists() or not names else None
    held = read_policy(policy) if (policy / FLOORS).exists() else None
    rate = FLIP_RATE if flip_rate is None else flip_rate
    targets, code = [], 0
    for name in dict.fromkeys(names or (workspace.arms if workspace else ())):
        place = place_of(name, workspace, config)
        try:
            found = target(place, name, rate)
        except CouldNot as error:
            # An arm without its corpus costs itself alone.
            click.echo(f"{name}: {error}", err=True)
            code = 3
            continue
        targets.append(with_odds(found, held, flip_rate) if place is workspace else found)
    whole = Power(flip_rate=rate, targets=tuple(targets))
    if form == "json":
        click.echo(whole.model_dump_json(by_alias=True, indent=1))
    elif targets:
        from eval_gate.power.words import aligned, markdown, power_text

        click.echo("\n".join(power_text(whole, markdown if form == "markdown" else aligned)))
    return code
