"""A comparison for a person, on a terminal and in Markdown: the answer first, then why, then each query that moved."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from eval_core.compare.models import Changed, Comparison, Effect, Finding, Moved, Side, Unjoined, Versus
from eval_core.console import clip, count, paint, some, table, width

#: Columns of the terminal's text at most, but for a name that is longer by itself.
COLUMNS = 100

_WORDS: dict[Finding, tuple[str, str]] = {
    "same": ("SAME", "green"),
    "lower": ("LOWER", "red"),
    "higher": ("HIGHER", "green"),
    "unclear": ("UNCLEAR", "yellow"),
    "unresolvable": ("UNCLEAR", "yellow"),
    "none": ("NO FINDING", "red"),
}


def terminal(found: Comparison, limit: int | None = 20) -> str:
    """The whole text without a last newline; at most `limit` queries of an arm are listed, None: all."""
    lines: list[str] = []
    for versus in found.arms:
        finding = _WORDS[versus.finding]
        first, *more = _wrapped(f"{finding[0]}  {decision(versus)}", "", "  ")
        lines += [paint(*finding) + first.removeprefix(finding[0]), *more]
        lines += [_named("before", found.before), _named("after", versus.side)]
        for line in _context(found, versus):
            lines += _wrapped(line, " ", " " * 9)
        lines += ["", *_effects(versus), *_wrapped(resolution(versus), " ", "   ")]
        if versus.categories:
            lines += ["", table(_categories(found, versus), right=range(1, 8))]
        if versus.queries:
            shown = [_listed(versus, limit)] if limit != 0 else []
            lines += ["", *shown, *_left(len(versus.queries), limit)]
        lines.append("")
    return "\n".join(lines[:-1])


def decision(versus: Versus) -> str:
    """What became of the headline measure, in a sentence: always the effect with its interval, never p alone."""
    effect = versus.effects[0]
    figures = (
        f"{effect.measure} {effect.before:.3f} → {effect.after:.3f}, {_signed(effect.difference)} "
        f"(95% {_signed(effect.low)} to {_signed(effect.high)}), p {p_value(effect.p)}, "
        f"Holm {p_value(effect.p_holm)}: {effect.lost} lost, {effect.gained} gained of {effect.n}"
    )
    match versus.finding:
        case "none":
            failed = some(_failures(versus))
            return f"queries failed ({failed}), so this is no finding. Over those scored in both: {figures}"
        case "same" if versus.identical:
            return (
                f"no query differs: every judged document has the rank it had. {effect.measure} "
                f"{effect.after:.3f} over {count(effect.n, 'query', 'queries')}, difference 0, p = 1"
            )
        case "same":
            return f"{figures}; documents moved, and no query's {effect.measure} changed"
        case "unresolvable":
            return f"{figures}; unresolvable at this n"
        case "unclear":
            return f"{figures}; it can be chance"
    return figures


def resolution(versus: Versus) -> str:
    """What the set can tell at its n."""
    able = versus.resolves
    queries = count(able.n, "query", "queries")
    if not able.possible:
        return f"{queries} can resolve nothing: even all of them lost could be chance ({able.queries} are needed)."
    power = "" if able.detectable is None else f"; a loss of {able.detectable:.1f} is found 4 times in 5"
    alone = " of one measure alone" if len(versus.effects) > 1 else ""
    return f"{queries} resolve no change{alone} under {able.queries} lost ({able.points:.1f} points){power}."


def p_value(p: float) -> str:
    """Three decimals, and never 0."""
    return f"{p:.3f}" if p >= 0.0005 else "<0.001"


def _signed(value: float) -> str:
    text = f"{value:+.3f}".replace("-", "−")
    if text.strip("+−0."):
        return text
    # A limit on one side of 0 says so however near it is.
    return f"{value:+.0e}".replace("-", "−", 1) if abs(value) > 1e-9 else "0.000"


def _failures(versus: Versus) -> Iterable[str]:
    for group in versus.unjoined:
        if {group.before, group.after} & {"errored", "unscored"}:
            yield _outcomes(group)


def _outcomes(group: Unjoined) -> str:
    number = len(group.queries)
    if group.before == group.after:
        return f"{number} {group.before} in both"
    return f"{number} {group.before} before and {group.after} after"


def _named(word: str, side: Side | None) -> str:
    if side is None:
        return ""
    run = f", run {clip(side.run_id, 40)}" if side.run_id else ""
    name = clip(side.label, 60)
    # A path that is the label already is not told twice.
    place = "" if side.label.startswith(side.path) else "  " + clip(side.path, 88 - width(name + run))
    return f" {word:7} {name}{place}{run}"


def _context(found: Comparison, versus: Versus) -> Iterable[str]:
    """What a reader should know before the figures: how the systems differ, what was not joined, notes, statements."""
    yield "system  " + _system(versus.system)
    joined = f"joined  {count(versus.n, 'query', 'queries')} scored in both"
    yield joined + (f"; not compared: {_unjoined(versus)}" if versus.unjoined else "")
    for note in (*versus.notes, *found.statements):
        yield "note    " + clip(note, 1000)


def _unjoined(versus: Versus) -> str:
    return ", ".join(f"{_outcomes(group)} ({clip(some(group.queries), 60)})" for group in versus.unjoined)


def _system(changed: Sequence[Changed] | None) -> str:
    if changed is None:
        return "unknown: run files of other tools do not say what answered"
    if not changed:
        return "the same system"
    words = [f"{clip(c.part, 60)} {_value(c.before)} → {_value(c.after)}" for c in changed]
    return "changed: " + ", ".join(words[:8]) + (f", … {len(words) - 8} more" if len(words) > 8 else "")


def _value(value: object) -> str:
    return "–" if value is None else clip(repr(value), 30)


def _effects(versus: Versus) -> list[str]:
    """The measures; in a closer form where their names are long."""
    lines: list[str] = []
    for between, columns in ((" to ", 10), (" ", 10), (" ", 9)):
        heads = (
            f"n = {versus.n:,}",
            "before",
            "after",
            "change",
            "95% interval",
            "p",
            "Holm p",
            "lost",
            "gained",
            "",
        )
        rows = [heads, *(_effect(effect, between) for effect in versus.effects)]
        lines = table([row[:columns] for row in rows], right=range(1, 9)).split("\n")
        if max(map(width, lines)) <= COLUMNS:
            break
    return lines


def _effect(effect: Effect, between: str = " to ") -> tuple[str, ...]:
    return (
        effect.measure,
        f"{effect.before:.3f}",
        f"{effect.after:.3f}",
        _signed(effect.difference),
        f"{_signed(effect.low)}{between}{_signed(effect.high)}",
        p_value(effect.p),
        p_value(effect.p_holm),
        str(effect.lost),
        str(effect.gained),
        "no finding" if effect.finding == "none" else effect.finding,
    )


def _categories(found: Comparison, versus: Versus) -> list[tuple[str, ...]]:
    rows = [
        (
            clip(c.category, 40),
            str(c.n),
            f"{c.before:.3f}",
            f"{c.after:.3f}",
            _signed(c.difference),
            str(c.lost),
            str(c.gained),
            str(c.moved),
        )
        for c in versus.categories
    ]
    return [(found.headline or "", "n", "before", "after", "change", "lost", "gained", "moved"), *rows]


def _listed(versus: Versus, limit: int | None) -> str:
    """A line a query; texts and names give way where the line would be too long."""
    wide, narrow = (table(_queries(versus, limit, w), right=(1,)) for w in ((14, 32, 18), (14, 20, 14)))
    return wide if max(map(width, wide.split("\n"))) <= COLUMNS else narrow


def _queries(versus: Versus, limit: int | None, widths: tuple[int, int, int]) -> list[tuple[str, ...]]:
    """A row a query; runs hold no texts, and then there is no column of them. `widths`: of id, text and document."""
    query, text, document = widths
    texts = any(moved.text for moved in versus.queries)
    return [
        (
            moved.change,
            _signed(moved.difference),
            clip(moved.query, query),
            *([clip(moved.text, text)] if texts else []),
            *_document(moved, document),
            _unjudged(moved),
        )
        for moved in versus.queries[:limit]
    ]


def _unjudged(moved: Moved) -> str:
    """Of a lost query, how many of the answers that stand above now nobody judged."""
    if moved.change != "lost" or not moved.unjudged:
        return ""
    return f"{moved.unjudged} of {moved.above} above unjudged"


def _document(moved: Moved, columns: int) -> tuple[str, str]:
    if not moved.documents:
        return "–", ""
    first = moved.documents[0]
    return clip(first.id, columns), f"{_rank(first.before)} → {_rank(first.after)}"


def _rank(rank: int | None) -> str:
    return "–" if rank is None else str(rank)


def _left(total: int, limit: int | None) -> list[str]:
    return [f" … {total - limit} more"] if limit is not None and total > limit else []


def _wrapped(text: str, indent: str, further: str) -> list[str]:
    """A sentence over as many lines as it needs."""
    return textwrap.wrap(
        text,
        COLUMNS,
        initial_indent=indent,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )


# ------------------------------------------------------------------------------------------------- Markdown


def markdown(found: Comparison, limit: int | None = 20) -> str:
    """The same as Markdown: the decision and the measures in sight, all else folded."""
    parts: list[str] = []
    for versus in found.arms:
        effect_heads = (
            "measure",
            "n",
            "before",
            "after",
            "change",
            "95% interval",
            "p",
            "Holm p",
            "lost",
            "gained",
        )
        rows = [(e.measure, str(e.n), *_effect(e)[1:]) for e in versus.effects]
        label = f"{_code(found.before.label)} → {_code(versus.side.label)}" if found.before else ""
        parts += [
            f"**{_WORDS[versus.finding][0]}** {label}: {_text(decision(versus))}",
            _grid((*effect_heads, ""), rows),
            _text(resolution(versus)),
        ]
        if versus.categories:
            heads, *lines = _categories(found, versus)
            parts += _folded(count(len(lines), "category", "categories"), _grid(heads, lines))
        if versus.queries:
            lines = _queries(versus, limit, (40, 80, 60))
            text = ["text"] if any(moved.text for moved in versus.queries) else []
            heads = ("", "change", "query", *text, "judged document", "rank", "")
            parts += _folded(_moves(versus), _grid(heads, lines), *_left(len(versus.queries), limit))
        sides = [line for line in (_named("before", found.before), _named("after", versus.side)) if line]
        about = [line.split(maxsplit=1) for line in (*sides, *_context(found, versus))]
        parts += _folded("What was compared", "\n".join(f"- {word}: {_text(line)}" for word, line in about))
    return "\n\n".join(parts)


def refused_markdown(found: Comparison) -> str:
    """A refusal as Markdown."""
    if found.refused is None:
        return ""
    items = [
        f"- {_text(clip(one.part, 40))}{':' * bool(one.detail)} {_text(clip(one.detail, 1000))}".rstrip()
        for one in found.refused.differences
    ]
    head = f"**REFUSED** {_text(found.refused.message)}"
    return "\n".join([f"{head}:", "", *items] if items else [head])


def _moves(versus: Versus) -> str:
    words = [moved.change for moved in versus.queries]
    return (
        f"Queries: {words.count('lost')} lost, {words.count('gained')} gained, {words.count('moved')} moved"
    )


def _folded(title: str, *content: str) -> list[str]:
    return [f"<details><summary>{_text(title)}</summary>", *(part.strip() for part in content), "</details>"]


def _grid(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [_line(heads), "|" + "---|" * len(heads), *(_line(row) for row in rows)]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_text(cell) for cell in cells) + " |"


#: What means something to Markdown, in a line of text.
_MARKS = re.compile(r"([\\`*_{}\[\]|~#!$])")


_MENTION = re.compile(r"(?<![A-Za-z0-9_])@(?=[A-Za-z0-9])")


def _text(text: str) -> str:
    """Text of others as Markdown that shows it and does nothing else: no markup, no tags, no line breaks."""
    shown = clip(text, 4000)
    shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # Somebody whose name stands after an @ would be told that they were mentioned.
    return _MENTION.sub("@<!-- -->", _MARKS.sub(r"\\\1", shown))


def _code(text: str) -> str:
    return f"**{_text(clip(text, 60))}**"
