"""Floors out of measured runs: which runs carry them, what was chosen, and what nobody gave a reason for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from eval_core.errors import Misuse, Refused, did_you_mean
from eval_core.policy import (
    MARGIN,
    P95_MS,
    TOLERANCE,
    ArmFloors,
    ArmPolicy,
    Bar,
    Budget,
    Choices,
    Line,
    margin_of,
    shown_floors,
    unfit,
    unlike,
    usual_measures,
)
from eval_core.policy.faults import faults, reasons_needed
from eval_core.scoring import metrics
from eval_gate.floors.chance import by_floor, reached
from eval_gate.floors.difference import EVENTS, changes
from eval_gate.verdict import BarChange

#: Fields of both tables that people choose, which are keys of reasons.
CHOSEN = tuple(
    name
    for model in (ArmFloors, Budget)
    for name, info in model.model_fields.items()
    if isinstance(info.json_schema_extra, dict) and info.json_schema_extra.get("looser") is not None
)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asks for an arm; what is None stays as it stands, or as it is by default.

    Attributes:
        margin: misses below the worst run, or `derived`.
        measures: with a floor beside the usual ones and those that stand.
        by_category: whether categories are floored, too.
        drift: the share by which a moving corpus may change.
        p95_ms: a budget for the latency.
        max_drop: by measure, points below the baseline.
        everywhere: points below the baseline for every measure of every category.
        reasons: by key; that of a measure leaves it out.
        typed: the command that asks for it; what lacks a reason is told with this command and the options for it.
    """

    margin: int | Literal["derived"] | None = None
    measures: tuple[str, ...] = ()
    by_category: bool | None = None
    drift: float | None = None
    p95_ms: float | None = None
    max_drop: Mapping[str, float] = field(default_factory=dict)
    everywhere: float | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    typed: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands of an arm before the bar is moved.

    Attributes:
        policy: None where there is none that can be read.
        deleted: whether traces of floors are there, and the floors are not, or not with their evidence.
        default_p95: whether 300 ms hold without a budget.
        owned: whether the arm is in the owner's lane, which may have a reason.
        answers: whether it answers by default; its budget is then written.
    """

    policy: ArmPolicy | None = None
    deleted: bool = False
    default_p95: bool = True
    owned: bool = False
    answers: bool = False


@dataclass(frozen=True, slots=True)
class Proposed:
    """The policy of an arm as it would stand, how it differs, and the reasons that it needed."""

    before: ArmPolicy | None
    after: ArmPolicy
    changes: tuple[BarChange, ...]
    used: frozenset[str]

    @property
    def moved(self) -> bool:
        """Whether any number or choice would be another one; what was only measured again moves none."""
        old, new = self.before, self.after
        return (
            old is None
            or old.baseline.quality != new.baseline.quality
            or old.baseline.class_ != new.baseline.class_
            or old.bars != new.bars
            or old.provisional != new.provisional
            or old.budget != new.budget
            or old.choices != new.choices
            or old.floors.drift != new.floors.drift
            or old.floors.reasons != new.floors.reasons
            or bool(faults(old))  # what stands was edited by hand
        )


def eligible(arm: str, lines: Iterable[Line], drift: float | None = None) -> tuple[Line, ...]:
    """The runs that may carry a floor, by start.

    Args:
        arm: its name.
        lines: runs of it; the same run twice counts once.
        drift: for a corpus that moves, the share by which its documents may differ from the newest run's.

    Raises:
        Refused: fewer than two distinct runs, a run that is not whole, or runs that did not measure the same thing.
    """
    runs: dict[str, Line] = {}
    for line in lines:
        if runs.setdefault(line.run_id, line).line != line.line:
            what = "two reports of this run say different things"
            raise Refused("evidence-contradicts", what, subject=f"{arm}, run {line.run_id}")
    found = sorted(runs.values(), key=lambda line: (line.started, line.run_id))
    for line in found:
        for problem in (*unfit(line), *unlike(line, found[-1], drift)):
            mend = problem.mend and problem.mend.replace("ARM", arm)
            raise Refused(problem.code, problem.what, subject=f"{arm}, run {line.run_id}", mend=mend)
    if len(found) < 2:
        what = "one run is a dated measurement and no floor" if found else "no run was measured"
        mend = f"Measure twice:  eval-gate floor {arm} --measure"
        raise Refused("one-run" if found else "no-run", what, subject=arm, mend=mend)
    return tuple(found)


def propose(arm: str, lines: Iterable[Line], wish: Wish, standing: Standing) -> Proposed:
    """The policy that these runs give an arm.

    Raises:
        Refused: the runs carry no floor, the floors would hold nothing, or more would pass without a reason.
        Misuse: a measure or a key that is not there.
    """
    old = standing.policy
    drift = wish.drift if wish.drift is not None else old.floors.drift if old else None
    runs = eligible(arm, lines, drift)
    _check_measures(arm, wish, runs[-1])
    if drift is not None and not (runs[-1].set and runs[-1].set.moves):
        what = "no source of its corpus moves, so it cannot drift"
        raise Refused("corpus-pinned", what, subject=arm, key="corpus", mend="Leave --drifts out.")
    floors = _floors(runs, wish, old, drift, standing)
    budget = _budget(wish, old.budget if old else Budget(), answers=standing.answers)
    draft = ArmPolicy(arm, floors, budget, runs, standing.default_p95)
    if not floors.measures:
        what = "every measure is left out; whatever it scored would pass"
        raise Refused("floors-vacuous", what, subject=arm)
    needed = dict(reasons_needed(floors, budget, runs))
    moved = changes(old, draft)
    for change in moved:
        if change.looser:
            needed.setdefault(change.key, _words(change))
    if standing.deleted:
        needed["floors"] = "its floors were deleted, or the evidence under them"
    used = frozenset(wish.reasons.keys() & {*needed, *_optional(wish, old, draft, standing)})
    _check_must_pass(arm, runs[-1])
    after = _reasoned(draft, old, wish, used, needed, raised=_raised(moved))
    _check_reasons(after, changes(old, after), needed, standing, wish.typed)
    _hollow(after, wish.typed)
    for fault in faults(after):
        d = fault.details
        raise Refused(
            d.code, d.what, subject=arm, key=d.key, value=d.value, category=d.category, bar=d.bar, mend=d.mend
        )
    return Proposed(old, after, tuple(changes(old, after)), used)


def check_keys(wish: Wish) -> None:
    """Refuse a name that no run can hold, before any is measured.

    Raises:
        Misuse: a measure or a reason's key that there is not.
    """
    known = (*CHOSEN, *EVENTS)
    for name in (*wish.measures, *wish.max_drop):
        metrics.parse(name)
    for key in wish.reasons:
        try:
            if key not in known:
                metrics.parse(key)
        except Misuse as error:
            what = f"no choice has this key{did_you_mean(key, [*known, *metrics.names((1, 5, 10), 'mrr')])}"
            mend = f"Keys: {', '.join(known)}, or a measure."
            raise Misuse("reason-unneeded", what, key=f"--reason {key}", mend=mend) from error


def _check_measures(arm: str, wish: Wish, last: Line) -> None:
    for name in (*wish.measures, *wish.max_drop):
        if name not in last.measures:
            what = f"its runs hold no such measure{did_you_mean(name, last.measures)}"
            raise Misuse("measure-unknown", what, subject=arm, key=name)


def _check_must_pass(arm: str, last: Line) -> None:
    """Zero tolerance for what was never there would fail for ever, so it is said at once."""
    values = zip(last.scored, last.column(last.headline), strict=True)
    never = [entry.id for entry, value in values if entry.must_pass and value <= 0]
    if never:
        what = f"{', '.join(never[:5])} must pass and did not"
        mend = "Mend the retriever, or take must_pass from these queries."
        raise Refused("must-pass-lost", what, subject=arm, key=last.headline, mend=mend)


def _floors(
    runs: tuple[Line, ...], wish: Wish, old: ArmPolicy | None, drift: float | None, standing: Standing
) -> ArmFloors:
    """The table of floors.toml, without its reasons."""
    last = runs[-1]
    usual = usual_measures(last)
    held, known = (usual, usual) if old is None else (old.floors.measures, usual_measures(old.baseline))
    wanted = [name for name in usual if name in held or name not in known or name in wish.measures]
    wanted += [name for name in (*held, *wish.measures) if name not in usual]
    measures = [name for name in dict.fromkeys(wanted) if name in last.measures and name not in wish.reasons]
    stands = old.floors if old else None
    margin = wish.margin if wish.margin is not None else stands.margin if stands else MARGIN
    by_category = wish.by_category if wish.by_category is not None else bool(stands and stands.by_category)
    choices = Choices(margin, drift is not None, measures, by_category=by_category)
    shown = shown_floors(choices, runs)
    return ArmFloors(
        **shown._asdict(),
        margin=margin,
        corpus="pinned" if drift is None else "drifts",
        drift=drift,
        by_category=by_category,
    )


def _budget(wish: Wish, stands: Budget, *, answers: bool) -> Budget:
    p95 = wish.p95_ms if wish.p95_ms is not None else stands.p95_ms
    return Budget(
        p95_ms=P95_MS if p95 is None and answers else p95,
        max_drop={**stands.max_drop, **wish.max_drop},
        max_drop_everywhere=stands.max_drop_everywhere if wish.everywhere is None else wish.everywhere,
    )


def _optional(wish: Wish, old: ArmPolicy | None, draft: ArmPolicy, standing: Standing) -> set[str]:
    """Keys that may have a reason and need none: a measure that is left out, the owner's lane."""
    found = {"lane"} if standing.owned else set()
    held = old.floors.measures if old else usual_measures(draft.baseline)
    return found | {name for name in wish.reasons if name in held}


def _raised(moved: Iterable[BarChange]) -> bool:
    numbers = [change.looser for change in moved if change.key == "floors"]
    return bool(numbers) and not any(numbers)


def _reasoned(
    draft: ArmPolicy,
    old: ArmPolicy | None,
    wish: Wish,
    used: frozenset[str],
    needed: Mapping[str, str],
    *,
    raised: bool,
) -> ArmPolicy:
    """The policy with its reasons: new ones, and old ones for as long as what they explain stands."""
    said: dict[str, str] = {}
    if old is not None:
        for table in (old.floors.reasons, old.budget.reasons):
            said |= {
                key: text for key, text in table.items() if key in needed or _stands(key, old, draft, raised)
            }
    said |= {key: wish.reasons[key].strip() for key in wish.reasons if key in used}
    budget = {key: text for key, text in said.items() if key in Budget.model_fields}
    floors = {key: text for key, text in said.items() if key not in Budget.model_fields}
    return ArmPolicy(
        draft.name,
        draft.floors.model_copy(update={"reasons": floors}),
        draft.budget.model_copy(update={"reasons": budget}),
        draft.lines,
        draft.default_p95,
    )


def _stands(key: str, old: ArmPolicy, draft: ArmPolicy, raised: bool) -> bool:
    """Whether what an old reason explains is still so, though nothing asks for it."""
    if key == "floors":
        return not raised
    if key == "class":
        return old.baseline.class_ == draft.baseline.class_
    if key in ("task", "lane"):
        return True
    for before, after in ((old.floors, draft.floors), (old.budget, draft.budget)):
        if key in type(before).model_fields:
            return bool(getattr(before, key) == getattr(after, key))
    return key not in draft.floors.measures


def _check_reasons(
    after: ArmPolicy, moved: Iterable[BarChange], needed: Mapping[str, str], standing: Standing, typed: str
) -> None:
    """Refuse what lets more pass than what stands and has no new reason.

    Raises:
        Refused: all of it in one error, with the options that would say why.
    """
    loosened: dict[str, list[str]] = {}
    for change in moved:
        if change.looser and change.reason is None:
            loosened.setdefault(change.key, []).append(_words(change))
    lacking = {
        key: said[0] + (f", and {len(said) - 1} more" if said[1:] else "") for key, said in loosened.items()
    }
    code = "bar-loosened"
    if standing.deleted and "floors" not in after.floors.reasons:
        code, lacking = "floors-deleted", {"floors": needed["floors"], **lacking}
    elif not lacking:
        # What is wider than usual says why from the first floors on.
        for key, what in needed.items():
            if key not in after.floors.reasons and key not in after.budget.reasons:
                code = "reason-missing"
                lacking[key] = what
    if lacking:
        options = " ".join(f'--reason {key}="…"' for key in lacking)
        command = typed or f"eval-gate floor {after.name} --write"
        first, *others = lacking
        what = "; ".join([lacking[first], *(f"{key}: {lacking[key]}" for key in others)])
        raise Refused(
            code,
            what,
            subject=after.name,
            key=first,
            mend=f"If that is meant, say why (it is kept in the file):  {command} {options}",
        )


def _words(change: BarChange) -> str:
    """A change in words, from before to after; its key is said beside it."""
    named = "" if change.measure in (None, change.key) else f"{change.measure}: "
    if change.category is not None:
        named = f"{change.measure} of {change.category}: "
    if change.before is None:
        return f"{named}{change.after}"
    return f"{named}{change.before} before, {change.after or 'none'} now"


def _hollow(policy: ArmPolicy, typed: str) -> None:
    """Refuse floors that a backend without answers, or a random ranking, reaches: all in one error."""
    floored = [bar for bar in policy.bars if bar.floor is not None]
    found: dict[str, tuple[Bar, str]] = {}
    fixed = ""
    for bar in floored:
        if by_floor(bar) <= TOLERANCE:
            derived = " (derived from the flips of the runs)" if policy.floors.margin == "derived" else ""
            what = f"a margin of {margin_of(policy.choices, policy.lines)} misses{derived} leaves nothing to gate on"
            what += f" of {bar.baseline:.4f}"
            fixed = "Measure more runs, or take a fixed margin: --margin 2. " if derived else fixed
            found.setdefault(bar.measure, (bar, what))
    for bar in reached(policy.baseline, floored):
        what = f"a random ranking of {_choice(policy.baseline)} reaches its floor, {by_floor(bar):.4f}, too"
        found.setdefault(bar.measure, (bar, what))
    if not found:
        return
    (bar, first), *others = found.values()
    what = "; ".join([first, *(f"{other.measure}: {told}" for other, told in others)])
    command = typed or f"eval-gate floor {policy.name} --write"
    options = " ".join(f'--reason {measure}="…"' for measure in found)
    mend = f"{fixed}Leave {'them' if others else 'it'} out:  {command} {options}"
    if len(found) == len({bar.measure for bar in floored}):
        mend = f"{fixed}No measure would be left: measure a better retriever, or judge more queries of more documents."
    raise Refused(
        "floor-vacuous",
        what,
        subject=policy.name,
        key=bar.measure,
        category=bar.category,
        bar=by_floor(bar),
        mend=mend,
    )


def _choice(line: Line) -> str:
    """What chance chooses from, in words."""
    counts = {line.documents if e.candidates is None else e.candidates for e in line.scored}
    if counts == {line.documents}:
        return f"the {line.documents} documents"
    return f"the {'–'.join(map(str, sorted({min(counts), max(counts)})))} documents that a query may find"
