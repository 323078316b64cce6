"""A change of the bar as a person reads it: a small table an arm, what moved in words, and the odds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eval_core.console import clip, count, table
from eval_core.policy import TOLERANCE, Bar, Line
from eval_core.reports import Entry
from eval_gate.floors.proposal import ArmProposal, BarMove, QueryMove, RunFacts
from eval_gate.floors.propose import Proposed
from eval_gate.power import odds_of, sentences
from eval_gate.verdict import BarChange

#: Queries that are named of those that were lost, and of those that were gained.
NAMED = 3


def proposal(found: Proposed) -> ArmProposal:
    """What is said of an arm, for people and machines."""
    before, after = found.before, found.after
    lost, gained = _moved(before.baseline, after.baseline) if before else ((), ())
    old = {(bar.measure, bar.category): bar for bar in before.bars} if before else {}
    return ArmProposal(
        moved=found.moved,
        runs=tuple(
            RunFacts(
                run_id=line.run_id,
                started=line.started,
                commit=line.commit,
                class_=line.class_,
                ci_run=line.ci_run,
            )
            for line in after.lines
        ),
        runs_agree=after.runs_agree,
        floors=after.floors,
        budget=after.budget,
        p95_ms=after.p95_ms,
        bars=tuple(_bar(bar, old.get((bar.measure, bar.category))) for bar in after.bars),
        changes=found.changes,
        lost=lost,
        gained=gained,
        odds=sentences(after, odds_of(after)) if found.moved else (),
    )


def _bar(bar: Bar, old: Bar | None) -> BarMove:
    return BarMove(
        measure=bar.measure,
        category=bar.category,
        n=bar.n,
        before=old.baseline if old else None,
        now=bar.baseline,
        bar_before=old.lowest if old else None,
        bar=bar.lowest,
        misses_before=_missed(old),
        misses=_missed(bar),
        allowed_before=old.misses if old else None,
        allowed=bar.misses,
        rule=bar.rule,
        queries=bar.queries,
    )


def _missed(bar: Bar | None) -> int | None:
    return None if bar is None or bar.misses is None else bar.n - round(bar.baseline * bar.n)


def _moved(old: Line, new: Line) -> tuple[tuple[QueryMove, ...], tuple[QueryMove, ...]]:
    """The queries whose headline value is worse and better, the most first."""
    was = {
        entry.id: (entry, value) for entry, value in zip(old.scored, old.column(new.headline), strict=True)
    }
    found = []
    for entry, value in zip(new.scored, new.column(new.headline), strict=True):
        if entry.id in was and abs(value - was[entry.id][1]) > TOLERANCE:
            found.append((value - was[entry.id][1], _query(was[entry.id][0], entry)))
    found.sort(key=lambda one: (-abs(one[0]), one[1].query))
    lost = tuple(move for change, move in found if change < 0)
    return lost, tuple(move for change, move in found if change > 0)


def _query(old: Entry, new: Entry) -> QueryMove:
    ranks = {document: rank for document, _, rank in old.judged}
    nowhere = 10**9

    def distance(judged: tuple[str, int, int | None]) -> int:
        return abs((ranks.get(judged[0]) or nowhere) - (judged[2] or nowhere))

    document, _, rank = max((one for one in new.judged if one[1] > 0), key=distance)
    return QueryMove(query=new.id, document=document, before=ranks.get(document), after=rank)


def text(name: str, arm: ArmProposal) -> Iterator[str]:
    """The lines that are printed of an arm."""
    yield f"{name}  {_measured(arm)}" + ("" if arm.moved else "; no number moved")
    if not arm.moved:
        return
    first = all(bar.bar_before is None for bar in arm.bars)
    head: tuple[str, ...] = ("", "now", "bar") if first else ("", "before", "now", "bar before", "bar now")
    yield table([head, *(_row(bar, first) for bar in arm.bars)])
    for word, moves in (("lost", arm.lost), ("gained", arm.gained)):
        if moves:
            yield f" {len(moves)} {word}: {_queries(moves)}"
    lower = [change for change in arm.changes if change.key == "floors" and change.measure and change.looser]
    if lower:
        named = ", ".join(dict.fromkeys(change.measure or "" for change in lower))
        yield f" {clip(f'looser: {named} ({lower[0].reason})', 180)}"
    for change in arm.changes:
        if change.key != "floors" or (change.measure is None and change.before is not None):
            yield f" {clip(change_words(change), 180)}"
    for line in arm.odds:
        yield f" {line}"


def _measured(arm: ArmProposal) -> str:
    last = arm.runs[-1]
    times = {2: "twice"}.get(len(arm.runs), f"{len(arm.runs)} times")
    where = f" at {last.commit[:7]}" if last.commit else ""
    ci = ", ".join(run.ci_run for run in arm.runs if run.ci_run)
    return f"measured {times}{where}, class {last.class_}{f' (runs {ci})' if ci else ''}"


def _row(bar: BarMove, first: bool) -> tuple[str, ...]:
    name = bar.measure if bar.category is None else f"{bar.measure} of {bar.category}"

    def value(mean: float | None, misses: int | None) -> str:
        if mean is None:
            return "–"
        return f"{mean:.3f}" if misses is None else count(misses, "miss", "misses")

    def allowed(lowest: float | None, misses: int | None) -> str:
        if lowest is None:
            return "–"
        return f"{lowest:.3f}" if misses is None else str(misses)

    now = (value(bar.now, bar.misses), allowed(bar.bar, bar.allowed))
    room = count(bar.queries, "query", "queries") if bar.queries else "no query"
    if first:
        return (name, *now, room)
    before = value(bar.before, bar.misses_before), allowed(bar.bar_before, bar.allowed_before)
    return (name, before[0], now[0], before[1], now[1], room)


def _queries(moves: Sequence[QueryMove]) -> str:
    shown = ", ".join(
        f"{clip(move.query, 30)} ({clip(move.document, 40)}, rank {move.before or '–'} → {move.after or '–'})"
        for move in moves[:NAMED]
    )
    return shown + (f" and {len(moves) - NAMED} more" if len(moves) > NAMED else "")


def change_words(change: BarChange) -> str:
    """One change in words, with its reason."""
    named = change.measure or change.key
    if change.category is not None:
        named += f" of {change.category}"
    said = f"{named}: {change.after or 'none'}" + (f", {change.before} before" if change.before else "")
    why = f" ({change.reason})" if change.reason else ""
    return f"looser: {said}{why}" if change.looser else said


def summary(policy: str, written: Sequence[str], *, moved: bool) -> str:
    """The last line: what was written, or would be."""
    if not moved:
        return "Nothing was written: no number moved."
    if not written:
        return "Nothing was written; --write writes it."
    *others, last = (path.removeprefix(f"{policy}/") for path in written)
    named = f"{', '.join(others)} and {last}" if others else last
    return f"Wrote in {policy}: {named}. Commit them by themselves:  git add {policy} && git commit"
