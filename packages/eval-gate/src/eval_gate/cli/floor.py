"""`eval-gate floor`: the one verb that moves the bar: floors, baseline, budget and evidence together, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_core.cli.workspace import beside, config_option
from eval_gate.cli.types import POSITIVE, TYPED, Finite, Several, drops, reasons
from eval_gate.cli.types import margin as margin_of

if TYPE_CHECKING:
    from eval_core.errors import EvalError
    from eval_core.policy import Line
    from eval_core.reports.provenance.configuration import Configured
    from eval_gate.floors.propose import Proposed, Standing, Wish

_EPILOG = """\b
Examples:
  eval-gate floor                               what the last runs of .eval give, for every arm that has a report
  eval-gate floor memory-bm25 --measure --write
                                                measure twice here and now, and write
  eval-gate floor --from eval-8812.zip eval-8813.zip --write
                                                what two CI runs uploaded, for all arms at once
  eval-gate floor notes --reason recall@10="ten of twelve documents" --write
                                                leave a measure out
  eval-gate floor notes --margin 3 --reason margin="the index is random" --write
  eval-gate floor notes --drifts 0.1 --reason corpus="it follows a branch" --write
  eval-gate floor notes --max-drop mrr=5 --p95-ms 500 --reason p95_ms="a large model" --write
  eval-gate floor memory-bm25 --form plain      a plain table, rounded down, for another gate

A floor stands on two or more runs of one task and one system, the last of which is the baseline. What was chosen for an
arm stays unless an option says otherwise. What lets more pass than what stands, or than is usual, needs a reason under
its key: floors (lower numbers), task, class, lane, margin, corpus, drift, by_category, p95_ms, max_drop,
max_drop_everywhere, or the measure that is left out.

All that is asked for is written, or nothing. Nothing is written where no number moved.
"""


@click.command(cls=Several, epilog=_EPILOG)
@click.argument("arms", nargs=-1, metavar="[ARM]...")
@click.option("--measure", "measuring", is_flag=True, help="Measure the arms twice, here and now.")
@click.option(
    "--from",
    "places",
    multiple=True,
    metavar="PATH...",
    type=click.Path(path_type=Path),
    help="Folders or zip files of .eval, as CI uploaded them.",
)
@click.option(
    "--reason",
    "said",
    multiple=True,
    callback=reasons,
    metavar='KEY="..."',
    help="Why more may pass. Repeatable.",
)
@click.option(
    "--margin", callback=margin_of, metavar="MISSES|derived", help="Misses below the worst run.  [default: 2]"
)
@click.option("--metric", "measures", multiple=True, metavar="MEASURE", help="Hold it, too. Repeatable.")
@click.option(
    "--by-category/--overall", default=None, help="Floor every category of 20 queries or more, too."
)
@click.option(
    "--drifts",
    type=Finite(0, 0.5, min_open=True),
    help="The corpus moves: the number of its documents may differ by this share.",
)
@click.option("--p95-ms", type=POSITIVE, help="Most milliseconds at the 95th percentile.")
@click.option(
    "--max-drop",
    multiple=True,
    callback=drops,
    metavar="MEASURE=POINTS",
    help="How far a measure may fall below the baseline; everywhere=POINTS: all of them. Repeatable.",
)
@click.option("--form", type=click.Choice(["native", "plain"]), default="native", show_default=True)
@click.option("--write", is_flag=True, help="Write floors, budgets and evidence.")
@click.option(
    "--format", "output_format", type=click.Choice(["table", "json"]), default="table", show_default=True
)
@beside("--policy", place="policy")
@config_option()
@beside("--output", place=".eval", text="Where measuring wrote.")
@click.pass_context
def floor(
    context: click.Context,
    arms: tuple[str, ...],
    measuring: bool,
    places: tuple[Path, ...],
    said: dict[str, str],
    margin: int | str | None,
    measures: tuple[str, ...],
    by_category: bool | None,
    drifts: float | None,
    p95_ms: float | None,
    max_drop: dict[str, float],
    form: str,
    write: bool,
    output_format: str,
    policy: Path,
    config: Path,
    output: Path,
) -> int:
    """Propose the bar that measured runs give, and write it: floors, baseline, budget and evidence."""
    from eval_core.reports.provenance.configuration import configuration
    from eval_gate.check import sets
    from eval_gate.floors import Wish, beside_the_command, check_keys, plain

    if form == "plain" and write:
        raise click.UsageError("--form plain is printed, not written; redirect it to the file of your choice")
    if measuring and places:
        raise click.UsageError("--measure and --from are two sources of runs; take one of them")
    everywhere = max_drop.pop("everywhere", None)
    wish = Wish(
        margin=margin if isinstance(margin, int) else "derived" if margin else None,
        measures=measures,
        by_category=by_category,
        drift=drifts,
        p95_ms=p95_ms,
        max_drop=max_drop,
        everywhere=everywhere,
        reasons=said,
        typed=context.meta[TYPED],
    )
    check_keys(wish)
    configured = configuration(config) if config.exists() else None
    bar = _Bar(policy, configured, native=form == "native")
    source = _Runs(output, config, places, measuring, bar)
    found = _proposed(source.arms(arms), source, bar, wish)
    for name, one in found.items():
        known = (policy, config, *(path for arm, path in sets(configured).items() if arm == name))
        differing = beside_the_command(config.parent, one.after.lines, known)
        source.notes += [f"{name}: {what}" for what in differing]
    if form == "plain":
        click.echo(plain(one.after for one in found.values()), nl=False)
        return 0
    _print(found, bar, source.notes, write=write, form=output_format)
    return 0


class _Bar:
    """The policy that stands, and what eval.toml says of its arms."""

    def __init__(self, folder: Path, configured: Configured | None, *, native: bool) -> None:
        from eval_core.policy import BUDGETS, FLOORS, Budgets, Floors, Policy, read_policy
        from eval_gate.check import owned, without_latency

        self.folder = folder
        plain = without_latency(configured)
        if native and (folder / FLOORS).exists():
            self.policy = read_policy(folder, plain=plain)
        else:
            self.policy = Policy(folder, Floors(schema_="floors-v2"), Budgets(schema_="budgets-v2"), plain)
        self.native = native
        self.owned = owned(configured)
        self.answering = set((configured.default if configured else {}).values())
        self._budgets = (folder / BUDGETS).exists()

    def drift(self, name: str) -> float | None:
        """The share by which an arm's corpus may change as it stands."""
        arm = self.policy.floors.arms.get(name)
        return arm.drift if arm else None

    def standing(self, name: str) -> Standing:
        """What stands of an arm."""
        from eval_core.errors import Refused
        from eval_gate.floors.propose import Standing

        policy, deleted = None, False
        if name in self.policy.floors.arms:
            try:
                policy = self.policy.arm(name)
            except Refused as error:
                if error.code != "evidence-missing":
                    raise
                deleted = True
        elif self.native:
            deleted = name in self.policy.traces()
        return Standing(
            policy=policy,
            deleted=deleted,
            default_p95=name not in self.policy.plain,
            owned=name in self.owned,
            answers=self.native and name in self.answering,
        )


class _Runs:
    """The runs of each arm, from one of three sources."""

    def __init__(
        self, output: Path, config: Path, places: Sequence[Path], measuring: bool, bar: _Bar
    ) -> None:
        from eval_gate.floors import uploaded

        self.output, self.config, self.bar, self.measuring = output, config, bar, measuring
        self.notes: list[str] = []
        self.runs: dict[str, list[Line]] | None = uploaded(places) if places else None

    def arms(self, named: tuple[str, ...]) -> list[str]:
        """The arms by name, else all that the source has."""
        from eval_core.errors import did_you_mean
        from eval_core.policy import is_name
        from eval_gate.floors import arms_of, measured_now, without_ci_run

        known = list(self.runs) if self.runs is not None else arms_of(self.output)
        for name in named:
            if not is_name(name):
                raise click.UsageError(
                    f"arm {name!r}: a name is lower-case letters, digits, . _ -{did_you_mean(name, known)}"
                )
        if self.measuring:
            from eval_core.config import load_workspace

            self.runs = measured_now(load_workspace(self.config), named, 2, _note)
            for name in without_ci_run(self.runs):
                self.notes.append(f"{name}: class ci, and not of two CI runs: measured here and now")
            return list(self.runs)
        if not known and not named:
            raise click.UsageError(
                f"no report in {self.output / 'reports'}; measure first:  eval-gate floor --measure"
            )
        return list(dict.fromkeys(named)) or known

    def of(self, name: str, drift: float | None) -> list[Line]:
        """The runs of an arm."""
        from eval_core.config import arms_in
        from eval_core.errors import Refused, unknown_arm
        from eval_gate.floors import arms_of, history

        known = arms_of(self.output) if self.runs is None else self.runs
        if name not in known and name not in (configured := arms_in(self.config)):
            raise unknown_arm(name, [*configured, *known])
        if self.runs is None:
            return history(name, self.output, drift, _note)
        if name not in self.runs:
            what = f"none of the paths has a report of it  (arms: {', '.join(self.runs)})"
            raise Refused("report-missing", what, subject=name)
        return self.runs[name]


def _note(text: str) -> None:
    click.echo(text, err=True)


def _proposed(names: Sequence[str], source: _Runs, bar: _Bar, wish: Wish) -> dict[str, Proposed]:
    """The policy of each arm as it would stand.

    Raises:
        EvalError: all that is refused, in one error.
    """
    from eval_core.errors import EvalError, Misuse
    from eval_gate.floors.propose import CHOSEN, propose

    found: dict[str, Proposed] = {}
    refused: dict[str, EvalError] = {}
    for name in names:
        try:
            drift = wish.drift if wish.drift is not None else bar.drift(name)
            found[name] = propose(name, source.of(name, drift), wish, bar.standing(name))
        except EvalError as error:
            refused[name] = error
    if refused:
        raise _joined(refused, list(found))
    unused = wish.reasons.keys() - {key for one in found.values() for key in one.used}
    if unused:
        keys = ", ".join(["floors", "task", "class", "lane", *CHOSEN])
        what = "nothing here lets more pass under this key, so it needs no reason"
        mend = f"Leave it out. Keys are {keys}, and a measure that is left out."
        raise Misuse("reason-unneeded", what, key=f"--reason {min(unused)}", mend=mend)
    return found


def _joined(refused: Mapping[str, EvalError], others: list[str]) -> EvalError:
    """All that is refused in one error, with the code of the first; of one arm alone, its own."""
    from eval_core.errors import CouldNot, Misuse, Refused

    first, *more = refused.values()
    if not more and not others:
        return first
    kind = next(one for one in (Misuse, CouldNot, Refused) if one.exit_code == first.exit_code)
    said: dict[str, None] = dict.fromkeys(map(str, refused.values()))
    many = f"{len(refused)} of {len(refused) + len(others)} arms {'are' if more else 'is'} refused"
    mend = f"The others can be floored by name:  {' '.join(others)}" if others else None
    return kind(first.code, "\n".join([*said, f"{many}; nothing was written."]), mend=mend)


def _print(found: Mapping[str, Proposed], bar: _Bar, notes: list[str], *, write: bool, form: str) -> None:
    from eval_gate.floors import Proposal, policy_files, sweep_policy, write_all
    from eval_gate.floors.words import proposal, summary, text

    moved = {name: one for name, one in found.items() if one.moved}
    written: list[str] = []
    said = {name: proposal(one) for name, one in found.items()}
    if write and moved:
        files = policy_files(bar.policy, {name: one.after for name, one in moved.items()})
        write_all(files)
        written = [path.as_posix() for path in files]
    elif write:
        sweep_policy(bar.policy, found)
    if form == "json":
        whole = Proposal(policy=bar.folder.as_posix(), written=tuple(written), notes=tuple(notes), arms=said)
        click.echo(whole.model_dump_json(by_alias=True, indent=1))
        return
    for name, arm in said.items():
        click.echo("\n".join(text(name, arm)))
    for note in notes:
        click.echo(note)
    click.echo(summary(bar.folder.as_posix(), written, moved=bool(moved)))
