"""The finding of a self-test in words: survivors first, then what each kind of attack met, then the smallest losses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eval_core.console import clip, count, paint, table
from eval_gate.selftest.models import Result, SelfTest, Smallest

_TITLES = {"caught": "green", "survived": "red", "control-failed": "red"}

#: Survivors that are shown one by one.
SHOWN = 20

_HEAD = ("on", "attack", "arms", "caught", "reason")


def terminal(found: SelfTest) -> str:
    """The whole text, without a last newline; the last line is the sum."""
    title = found.verdict.upper().replace("-", " ")
    lines = [f"{paint(title, _TITLES[found.verdict])}  {_lead(found)}"]
    for reason in found.control:
        lines += ["", f" {clip(reason.message, 400)}    reason: {reason.code}"]
        lines += [f"   {clip(reason.mend, 400)}"] if reason.mend else []
    for one in found.survivors[:SHOWN]:
        lines += ["", f" {one.on}: {paint(one.attack, 'red')}   {clip(one.arm, 40)}"]
        lines += [f"   {clip(one.message, 200)}", f"   expected: {' or '.join(one.expected)}"]
    if len(found.survivors) > SHOWN:
        lines += ["", f" … {count(len(found.survivors) - SHOWN, 'more')}"]
    if found.results:
        lines += ["", table([_HEAD, *_rows(found)], right=(2, 3))]
        lines += [
            "",
            " The smallest loss that each arm's bar catches",
            table([*_losses(found.smallest)], right=(1, 2)),
        ]
    return "\n".join([*lines, "", *_notes(found), last(found)])


def markdown(found: SelfTest) -> str:
    """The same for a step summary: the answer first, the tables folded."""
    lines = [f"### Self-test of the gate: {found.verdict.replace('-', ' ')}", "", last(found), ""]
    lines += [f"- {_cell(reason.message)} (`{reason.code}`)" for reason in found.control]
    lines += [
        f"- **{_cell(o.attack)}** survives on {_cell(o.arm)}: {_cell(o.message)}" for o in found.survivors
    ]
    for title, rows in (
        ("All attacks", [_HEAD, *_rows(found)]),
        ("The smallest loss that each arm's bar catches", [*_losses(found.smallest)]),
    ):
        if found.results:
            lines += ["", f"<details><summary>{title}</summary>", "", *_grid(rows), "", "</details>"]
    return "\n".join([*lines, "", *(f"- {_cell(note)}" for note in _notes(found))]).rstrip()


def last(found: SelfTest) -> str:
    """`N attacks on M arms, all caught`, or what keeps that from being said."""
    arms = count(len(found.arms), "arm")
    if found.control:
        return (
            f"No attack was made on {arms}: where the untouched copy is refused, no refusal shows anything."
        )
    tried = len({(one.on, one.attack) for one in found.results if one.outcome in ("caught", "survived")})
    end = f"{len(found.survivors)} not caught" if found.survivors else "all caught"
    return f"{count(tried, 'attack')} on {arms}, {end}."


def _lead(found: SelfTest) -> str:
    if found.control:
        return "the untouched copy does not pass"
    return count(len(found.survivors), "attack") if found.survivors else "every attack, by its own reason"


def _grouped(found: SelfTest) -> dict[tuple[str, str], list[Result]]:
    groups: dict[tuple[str, str], list[Result]] = {}
    for one in found.results:
        groups.setdefault((one.on, one.attack), []).append(one)
    return groups


def _rows(found: SelfTest) -> Iterator[tuple[str, ...]]:
    for (on, name), several in _grouped(found).items():
        made = [one for one in several if one.outcome in ("caught", "survived")]
        caught = [one for one in made if one.outcome == "caught"]
        codes = dict.fromkeys(code for one in caught for code in one.codes if code in one.expected)
        said = ", ".join(["SURVIVED"] * (len(made) > len(caught)) + [*codes])
        if made:
            yield on, name, str(len(made)), str(len(caught)), said


def _losses(found: Sequence[Smallest]) -> Iterator[tuple[str, ...]]:
    yield "arm", "queries", "points", "measure", "rule"
    for one in found:
        if one.queries is None:
            yield clip(one.arm, 40), "–", "–", "–", "the loss of every query passes"
        else:
            yield (
                clip(one.arm, 40),
                f"{one.queries} of {one.n}",
                f"{one.points:.1f}",
                one.measure or "",
                one.rule or "",
            )


def _notes(found: SelfTest) -> Iterator[str]:
    for outcome, lead in (
        ("not-required", "Not required by the policy, so these pass"),
        ("skipped", "Not made"),
    ):
        for (_, name), several in _grouped(found).items():
            if {one.outcome for one in several} == {outcome}:
                why = several[0].requirement if outcome == "not-required" else several[0].message
                yield f"{lead}: {name} ({clip(why or '', 200)})"


def _grid(rows: Sequence[Sequence[str]]) -> list[str]:
    head, *body = [[_cell(cell) for cell in row] for row in rows]
    return [f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *body)]


def _cell(text: str) -> str:
    """A text that cannot end a cell or begin a tag."""
    safe = clip(" ".join(text.split()), 400).replace("\\", "\\\\").replace("|", "\\|")
    return safe.replace("&", "&amp;").replace("<", "&lt;")
