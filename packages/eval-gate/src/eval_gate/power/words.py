"""What `power` and `aa` say to a person, and the same in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from eval_core.console import clip, count, paint, table
from eval_core.scoring import metrics
from eval_gate.power.models import Chance, Power, Resolved, Target, Unchanged
from eval_gate.power.odds import percent

#: Flipped queries that a person is shown; JSON has all of them.
SHOWN = 10

Tabled = Callable[[Sequence[Sequence[str]]], str]


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """A table for a terminal."""
    return table(rows, right=range(1, max(map(len, rows))))


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    head, *others = rows
    lines = [head, ["---", *(["---:"] * (len(head) - 1))], *others]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def power_text(found: Power, tabled: Tabled) -> list[str]:
    """The lines of `power`. Arms that measure the same queries of a set share what it can resolve."""
    lines: list[str] = []
    shown: list[Target] = []
    for one in found.targets:
        if one in shown:
            continue
        alike = [other for other in found.targets if _labels(other) == _labels(one)]
        shown += alike
        lines += ["", *_of_set(alike, found.flip_rate, tabled)]
        for arm in alike:
            lines += _of_policy(arm, tabled)
    return lines[1:]


def _labels(of: Target) -> object:
    return of.model_copy(update={"name": "", "arm": True, "policy": None, "note": None})


def _of_set(targets: Sequence[Target], flip_rate: float, tabled: Tabled) -> Iterator[str]:
    one = targets[0]
    names = clip(", ".join(other.name for other in targets), 2000)
    facts = [count(one.overall.n, "query", "queries"), count(one.documents, "document")]
    facts += [f"filtered by {clip(', '.join(one.filter), 60)}"] if one.filter else []
    facts += [f"{one.unscorable} unscorable"] if one.unscorable else []
    facts += [f"{one.must_pass} must pass"] if one.must_pass else []
    yield f"{names}  set {clip(one.set, 60)}, split {clip(one.split, 40)}: {', '.join(facts)}"
    yield ""
    yield tabled(list(_resolution({"all": one.overall, **one.categories})))
    yield ""
    yield " Fewer lost than that can be chance (McNemar, mid-p, 5%). The margin is what unchanged code exceeds at most"
    yield (
        f" once in 100 runs if {flip_rate:.1%} of its queries flip; a drop is found when it loses more than the margin."
    )
    small = [clip(name, 40) for name, part in one.categories.items() if not part.floorable]
    if small:
        yield f" Too small for floors of their own: {', '.join(small)}."
    yield ""
    yield tabled(list(_chances(one.measures)))


def _resolution(parts: Mapping[str, Resolved]) -> Iterator[Sequence[str]]:
    yield "queries", "n", "one query", "significant from", "margin", "drop found in 80%"
    for name, part in parts.items():
        points = "" if part.significant_points is None else f" ({part.significant_points:.1f} pt)"
        yield (
            clip(name, 40),
            f"{part.n:,}",
            "–" if part.one_query_points is None else f"{part.one_query_points:.1f} pt",
            f"{part.significant} lost{points}" if points else "never",
            str(part.margin),
            "never" if part.detectable_points is None else f"{part.detectable_points:.1f} pt",
        )


def _chances(measures: Sequence[Chance]) -> Iterator[Sequence[str]]:
    """One line a family, its cut-offs side by side."""
    parsed = [(metrics.parse(one.measure), one) for one in measures]
    cutoffs = list(dict.fromkeys(measure.cutoff for measure, _ in parsed if measure.cutoff is not None))
    yield "a random ranking scores", "each query", *(f"@{k}" for k in cutoffs), "whole"
    for family in dict.fromkeys(measure.family for measure, _ in parsed):
        cells = {measure.cutoff: f"{one.random:.4f}" for measure, one in parsed if measure.family == family}
        kind = "0 or 1" if metrics.FAMILIES[family].binary else "graded"
        yield family, kind, *(cells.get(k, "") for k in cutoffs), cells.get(None, "")


def _of_policy(of: Target, tabled: Tabled) -> Iterator[str]:
    name = clip(of.name, 60)
    if of.note is not None:
        yield from ("", f"{name}: {clip(of.note, 2000)}")
    held = of.policy
    if held is None:
        return
    yield ""
    yield f"{name}: its bars, on {count(held.runs, 'run')} with a margin of {held.margin}"
    yield ""
    rows = [("bar", "baseline", "passes from", "rule", "may be lost")]
    for bar in held.bars:
        named = bar.measure if bar.category is None else f"{bar.measure} of {clip(bar.category, 40)}"
        if bar.misses_allowed is None:
            values = f"{bar.baseline:.4f}", f"{bar.lowest:.4f}"
        else:
            missed = bar.n - round(bar.baseline * bar.n)
            values = count(missed, "miss", "misses"), f"{bar.misses_allowed} of {bar.n}"
        rows.append(
            (named, *values, bar.rule, count(bar.queries, "query", "queries") if bar.queries else "none")
        )
    yield tabled(rows)
    yield ""
    first, *others = held.sentences
    yield f" {first}" + (
        "" if held.exact else f" (Simulated, within {200 * held.standard_error:.1f} points.)"
    )
    for sentence in others:
        yield f" {sentence}"


def aa_text(found: Unchanged) -> list[str]:
    """The lines of `aa`."""
    queries = count(found.n, "query", "queries")
    lines = [f"{clip(found.arm, 60)}  set {clip(found.set, 60)}: {queries}, {len(found.runs)} runs", ""]
    moving = [one for one in found.measures if one.flips or one.measure == found.headline]
    rows = [("measure", "mean", "flips", "queries", "rate", "at most", "margin")]
    for one in moving:
        low, high = min(one.means), max(one.means)
        mean = f"{low:.4f}" if high - low < 1e-9 else f"{low:.4f} to {high:.4f}"
        counts = (f"{one.flips} of {found.trials}", str(one.queries), f"{one.rate:.2%}", f"{one.upper:.2%}")
        rows.append((one.measure, mean, *counts, str(one.margin)))
    lines += [table(rows, right=range(2, 7)), ""]
    still = len(found.measures) - len(moving)
    if still:
        lines.append(f" {count(still, 'other measure')} did not flip once.")
    lines.append(
        " The bound is optimistic: flips cluster by query. The margin is what a run exceeds once in 100 at it."
    )
    if found.flipped:
        shown = [("query", "text", "measure", "run by run")]
        for moved in found.flipped[:SHOWN]:
            values = clip(" ".join(f"{value:.3g}" for value in moved.values), 60)
            shown.append((clip(moved.query, 24), clip(moved.text or "", 36), moved.measure, values))
        lines += ["", table(shown)]
        if len(found.flipped) > SHOWN:
            lines.append(f" … {len(found.flipped) - SHOWN} more; --format json lists all")
    return [*lines, "", *_verdict(found), *(f"Note: {note}" for note in found.notes), _next(found)]


def _verdict(found: Unchanged) -> Iterator[str]:
    held = found.policy
    if held is None:
        return
    word = paint("FAIL", "red") if held.failed else paint("PASS", "green")
    yield f"{word}  {held.failed} of {len(found.runs)} runs of unchanged code do not pass the present policy"
    for run in found.runs:
        for message in run.messages[:3]:
            yield f" {run.run_id}: {clip(message, 200)}"
    if held.false_alarms:
        rate, upper = held.false_alarms[0], held.false_alarms[-1]
        yield (
            f" Its false alarm by the model: {percent(rate.fails)} at the measured rate of {held.measure} "
            f"({rate.flip_rate:.2%}), {percent(upper.fails)} at its bound ({upper.flip_rate:.2%})."
        )


def _next(found: Unchanged) -> str:
    floor = f"eval-gate floor {found.arm}"
    if found.policy is None:
        return f"Next: {floor} --margin derived    floors from these runs"
    if found.policy.failed:
        derived = f'{floor} --margin derived --reason margin="…" --reason floors="…"'
        return f"Next: {derived}    a margin that these runs explain, or make the arm deterministic"
    return "Next: nothing; the bar holds for unchanged code."
