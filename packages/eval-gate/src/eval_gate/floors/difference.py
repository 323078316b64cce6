"""The bar's own diff: how floors and budgets differ from those of another commit, such as the target branch.

A floor that is lowered in the same change that needs it lowered is green; so that nobody overlooks it, the verdict says
what the change does to the bar.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from eval_core.errors import EvalError, Misuse
from eval_core.models import Model, parse_toml
from eval_gate.policy import (
    BASELINES,
    BUDGETS,
    DEFAULT_MAX_DROP,
    FLOORS,
    TOLERANCE,
    ArmFloors,
    Budget,
    Budgets,
    Floor,
    Floors,
    lowest,
)
from eval_gate.verdict import BarChange


def against(
    policy: Path, revision: str, floors: Floors, budgets: Budgets, config: Path
) -> tuple[BarChange, ...]:
    """How the policy differs from that of a commit. This starts git, which judging never does.

    Held against it: floors, budgets, baselines, waivers, the rules and records of promotions, and the defaults of
    `config`.

    Raises:
        CouldNot: there is no repository or no such commit.
        Misuse: the policy lies outside of the repository, or that of the commit cannot be read.
    """
    from eval_core.reconstruct.tree import opened

    with opened(policy if policy.is_dir() else Path(), revision) as tree:
        top = (tree.work or policy).resolve()
        # By its own name: a link in its place is no other policy.
        here = policy.parent.resolve() / policy.name
        if not here.is_relative_to(top):
            raise Misuse(f"{policy}: lies outside of the repository, so {revision} has none of it")
        place = here.relative_to(top)

        def there(name: str | Path) -> bytes | None:
            return tree.read(os.fsencode(place / name))

        old_floors = _at(there(FLOORS), Floors, f"{revision}:{place / FLOORS}")
        if old_floors is None:
            message = f"new here; {revision} has none at {place}, so nothing can be held against it"
            return (_change(None, "policy", None, message, True),)
        old_budgets = _at(there(BUDGETS), Budgets, f"{revision}:{place / BUDGETS}")
        before = old_floors, old_budgets or Budgets(schema_="budgets-v1")
        found = [*changes(before, (floors, budgets))]
        for name in floors.arms:
            baseline = there(f"{BASELINES}/{name}.json")
            old_arm, arm = old_floors.arms.get(name), floors.arms[name]
            reason = arm.reason if old_arm is None or old_arm.reason != arm.reason else None
            found += _baseline(name, baseline, _bytes(policy / BASELINES / f"{name}.json"), reason)
        for name, what in _BESIDE.items():
            old, now = there(name), _bytes(policy / name)
            if old != now:
                state = "is new" if old is None else "is gone" if now is None else "changed"
                found.append(_change(None, what, None, state, True))
        records = {
            os.fsdecode(path) for path in tree.files() if path.startswith(os.fsencode(place / "promotions/"))
        }
        for path in sorted(records):
            if not (top / path).is_file():
                found.append(_change(None, "promotion record", path, None, True))
        if config.parent.resolve().is_relative_to(top):
            named = (config.parent.resolve() / config.name).relative_to(top)
            was, is_ = _defaults(tree.read(os.fsencode(named))), _defaults(_bytes(config))
            for dataset in {**was, **is_}:
                if was.get(dataset) != is_.get(dataset):
                    found.append(
                        _change(None, f"default of {dataset}", was.get(dataset), is_.get(dataset), True)
                    )
    return tuple(found)


#: Files beside floors and budgets that decide what passes or who is promoted.
_BESIDE = {"waivers.toml": "waivers", "promotion.toml": "rules of promotion"}


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError:
        return None


def _defaults(raw: bytes | None) -> dict[str, str]:
    import tomllib

    try:
        table = tomllib.loads(raw.decode("utf-8")).get("default", {}) if raw else {}
    except ValueError:
        return {}
    return {str(name): str(arm) for name, arm in table.items()} if isinstance(table, dict) else {}


def _baseline(name: str, old: bytes | None, now: bytes | None, reason: str | None) -> Iterator[BarChange]:
    """Whether the baseline has less than that of the other commit, of any measure, overall or in a category."""
    if old is None or now is None or old == now:
        return
    before, after = means(old), means(now)
    fallen = [key for key, value in before.items() if after.get(key, 0.0) < value - TOLERANCE]
    if fallen:
        worst = max(fallen, key=lambda key: before[key] - after.get(key, 0.0))
        others = f" and {len(fallen) - 1} more fell" if len(fallen) > 1 else ""
        was, is_ = f"{worst} {_told(before[worst])}", f"{_told(after.get(worst, 0.0))}{others}"
        change = _change(name, "baseline", was, is_, True)
        yield change.model_copy(update={"reason": reason})


def means(raw: bytes) -> dict[str, float]:
    """The means of a report's file, overall and `MEASURE of CATEGORY`; none where it is no report."""
    import json

    try:
        summary = json.loads(raw)["summary"]
        found = {name: float(value) for name, value in summary["overall"]["metrics"].items()}
        for category, part in summary["categories"].items():
            found |= {f"{name} of {category}": float(value) for name, value in part["metrics"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
    return found


def _at(raw: bytes | None, model: type[Model], where: str) -> Model | None:
    if raw is None:
        return None
    try:
        return parse_toml(raw.decode("utf-8"), model, Path(where), "policy file")
    except (EvalError, UnicodeDecodeError) as error:
        raise Misuse(
            f"{where}: cannot be held against the bar here: {error}", reason="target-policy-malformed"
        ) from error


def changes(before: tuple[Floors, Budgets], after: tuple[Floors, Budgets]) -> Iterator[BarChange]:
    """Everything that decides and differs, arm by arm; what is looser says so."""
    asked, asks = set(before[0].require), set(after[0].require)
    for gone in sorted(asked - asks):
        yield _change(None, "require", gone, None, True)
    for new in sorted(asks - asked):
        yield _change(None, "require", None, new, False)
    arms = {**before[0].arms, **after[0].arms}
    for name in arms:
        old, now = before[0].arms.get(name), after[0].arms.get(name)
        if old is None or now is None:
            yield _change(name, "floors", old and f"n = {old.n}", now and f"n = {now.n}", now is None)
        else:
            # A reason that stood there before was for something else.
            reason = now.reason if now.reason != old.reason else None
            for change in (*_settings(old, now), *_measures(old, now)):
                yield change.model_copy(update={"arm": name, "reason": reason})
        budgets = (before[1].arms.get(name, Budget()), after[1].arms.get(name, Budget()))
        margins = tuple(arm.margin if arm else None for arm in (old, now))
        said = budgets[1].reason if budgets[1].reason != budgets[0].reason else None
        for change in _budget(*budgets, *margins):
            yield change.model_copy(update={"arm": name, "reason": said})


def _change(arm: str | None, what: str, before: object, after: object, looser: bool) -> BarChange:
    old, new = (None if value is None else str(value) for value in (before, after))
    return BarChange(arm=arm, what=what, before=old, after=new, looser=looser)


def _settings(old: ArmFloors, now: ArmFloors) -> Iterator[BarChange]:
    if old.n != now.n:
        yield _change(None, "n", old.n, now.n, now.n < old.n)
    parts = [part for part in {**old.task, **now.task} if old.task.get(part) != now.task.get(part)]
    if parts:
        yield _change(None, "task", None, f"{', '.join(parts)} changed", False)
    if old.margin != now.margin:
        yield _change(None, "margin", old.margin, now.margin, now.margin > old.margin)
    if old.tracked != now.tracked:
        yield _change(None, "tracked", old.tracked, now.tracked, now.tracked)
    if old.corpus != now.corpus:
        yield _change(None, "corpus", old.corpus, now.corpus, now.corpus == "drifts")
    elif old.documents != now.documents:
        (low, high), (lower, higher) = old.documents or (1, 0), now.documents or (1, 0)
        yield _change(None, "documents", old.documents, now.documents, lower < low or higher > high)


def _measures(old: ArmFloors, now: ArmFloors) -> Iterator[BarChange]:
    slices: list[tuple[str, Mapping[str, Floor], int, Mapping[str, Floor], int]] = [
        ("", old.metrics, old.n, now.metrics, now.n)
    ]
    for name in {**old.categories, **now.categories}:
        was, is_ = old.categories.get(name), now.categories.get(name)
        slices.append(
            (
                f" of {name}",
                was.metrics if was else {},
                was.n if was else 1,
                is_.metrics if is_ else {},
                is_.n if is_ else 1,
            )
        )
    for where, before, before_n, after, after_n in slices:
        for name in {**before, **after}:
            was_floor, now_floor = before.get(name), after.get(name)
            if was_floor == now_floor and before_n == after_n:
                continue
            low = None if was_floor is None else lowest(was_floor, before_n)
            high = None if now_floor is None else lowest(now_floor, after_n)
            looser = low is not None and (high is None or high < low - TOLERANCE)
            if low is None or high is None or abs(high - low) > TOLERANCE:
                yield _change(None, f"floor of {name}{where}", _told(low), _told(high), looser)


def _told(value: float | None) -> str | None:
    return None if value is None else f"{value:.4f}"


def _budget(old: Budget, now: Budget, margin: int | None, margin_now: int | None) -> Iterator[BarChange]:
    net = [b.max_net_lost if b.max_net_lost is not None else m for b, m in ((old, margin), (now, margin_now))]
    drops = [{**DEFAULT_MAX_DROP, **(budget.max_drop or {})} for budget in (old, now)]
    most: list[tuple[str, float | None, float | None]] = [
        ("p95_ms", old.p95_ms, now.p95_ms),
        ("max_drop_everywhere", old.max_drop_everywhere, now.max_drop_everywhere),
        ("max_net_lost", net[0], net[1]),
        *((f"max_drop of {n}", drops[0].get(n), drops[1].get(n)) for n in {**drops[0], **drops[1]}),
    ]
    for what, before, after in most:
        if before != after:
            yield _change(None, what, before, after, after is None or (before is not None and after > before))
