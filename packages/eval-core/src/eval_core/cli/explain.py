"""`eval-core explain`: why a query was lost, with what stands above its judged documents, side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_core.cli.workspace import config_option

if TYPE_CHECKING:
    from eval_core.compare.models import Entry
    from eval_core.explain.models import ExplainedQuery, Explanation, Hidden, JudgedDocument, Shown
    from eval_core.reports.report import Report

_EPILOG = """\b
Examples:
  eval-core explain memory-bm25 q031            one query of the arm's newest report
  eval-core explain memory-bm25 --lost          what the baseline in policy/ scores better
  eval-core explain memory-bm25 --lost --against old.json
                                                what another report scores better
  eval-core explain memory-bm25 --missed        what is not within the cut-off
  eval-core explain report.json q031 --full     whole texts

A query is missed where a relevant document is not within the cut-off of the set's headline measure; for hit and mrr,
where none is. Texts are shown only of the corpus that was measured; of another, the report alone is explained, with a
note. The exit code is 0 whatever is found: this explains, eval-gate judges.
"""

#: Columns of the table, of a document's id in it, and of each of two texts side by side; lines of a clipped text.
WIDE, NAMED, HALF, LINES = 100, 34, 47, 4

_PLACES: Mapping[str, str] = {
    "filtered": "filtered out",
    "out-of-scope": "outside the query's scope",
    "excluded": "excluded by the query",
    "not-visible": "not visible at its time",
    "absent": "not in the corpus",
}


@click.command(epilog=_EPILOG)
@click.argument("report")
@click.argument("queries", nargs=-1, metavar="[QUERY]...")
@click.option("--lost", is_flag=True, help="The queries that the baseline scores better, worst first.")
@click.option("--missed", is_flag=True, help="The queries that are missed now, worst first.")
@click.option(
    "--against",
    metavar="REPORT",
    help="What to compare with, as compare takes it: a report or evidence, an arm's name, or baseline:ARM.  "
    "[default: the arm's baseline]",
)
@config_option()
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "markdown"]), default="table", show_default=True
)
@click.option("--full", is_flag=True, help="Whole texts, not excerpts.")
def explain(
    report: str,
    queries: tuple[str, ...],
    lost: bool,
    missed: bool,
    against: str | None,
    config: Path,
    form: str,
    full: bool,
) -> int:
    """Say why the judged documents of a query stand where they do. REPORT is a path, or an arm's name."""
    from eval_core.compare.sides import report_of
    from eval_core.config import load_workspace
    from eval_core.explain import explain as explain_report
    from eval_core.reports.report import read_report

    if not (queries or lost or missed):
        raise click.UsageError(
            "say which queries: name them (eval-core explain REPORT QUERY), or say --lost (those that the baseline "
            "scores better), or --missed (those not within the cut-off)"
        )
    workspace = load_workspace(config) if config.exists() else None
    path, arm = report_of(report, config)
    read = read_report(path, arm)
    found = explain_report(
        read,
        path,
        queries=queries,
        want_lost=lost,
        want_missed=missed,
        baseline=_baseline(read, against, config) if lost or against else None,
        workspace=workspace,
        full=full,
    )
    if form == "json":
        click.echo(_json(found))
    else:
        click.echo("\n".join(_markdown(found) if form == "markdown" else _table(found, full)))
    return 0


def _baseline(report: Report, against: str | None, config: Path) -> Entry:
    from eval_core.compare.sides import BASELINE, side_of

    return side_of(against if against is not None else f"{BASELINE}{report.arm}", config)


# --------------------------------------------------------------------------------------------- in words


def _tags(query: ExplainedQuery) -> str:
    parts = []
    if query.meta.get("category"):
        parts.append(str(query.meta["category"]))
    if query.meta.get("source"):
        parts.append(f"source {query.meta['source']}")
    return ", ".join(parts)


def _score_line(query: ExplainedQuery, headline: str) -> str:
    if query.value is None:
        then = f", {headline} {query.before:.3f} in the baseline" if query.before is not None else ""
        return f"{query.outcome}{then}: {query.detail or 'the report does not say why'}"
    if query.before is not None:
        return f"{headline}  {query.before:.3f} → {query.value:.3f}"
    return f"{headline}  {query.value:.3f}"


def _place(document: JudgedDocument, found: Explanation, compared: bool) -> str:
    """Where it stands, in a few words; with a baseline, from where it came."""
    if document.status in _PLACES:
        return _PLACES[document.status]
    if document.status == "not-scored":
        return "not ranked"
    cut = f" (cut at {found.cutoff})" if document.status == "below" else ""
    if compared:
        before, now = (str(rank) if rank is not None else "–" for rank in (document.before, document.rank))
        limit = f" (limit {found.limit})" if document.rank is None else cut
        return f"rank {before} → {now}{limit}" if (before, now) != ("–", "–") else f"not retrieved{limit}"
    return f"rank {document.rank}{cut}" if document.rank else f"not retrieved (limit {found.limit})"


def _label(document: JudgedDocument) -> str:
    return "judged" if document.grade == 1 else f"grade {document.grade}"


def _shares(shown: Shown) -> str:
    if shown.shares is None:
        return ""
    return f"shares: {', '.join(shown.shares)}" if shown.shares else "shares no word"


def _score(shown: Shown) -> str:
    return "" if shown.score is None else f"{shown.score:.4g}"


def _reason(reason: Hidden) -> str:
    """Why a query cannot find a document."""
    if reason.by == "exclude":
        return "the query excludes it by its id"
    if reason.by == "time" and isinstance(reason.has, dict):
        start, end = reason.has.get("from"), reason.has.get("to")
        valid = f"from epoch {start} on" if end is None else f"from epoch {start} until before {end}"
        return f"time: the query asks {_time(reason.asked)}, the document is valid {valid}"
    has = f"has {reason.has!r}" if reason.has is not None and reason.has != [] else "has none"
    return f"{reason.key}: the query asks for {reason.asked!r}, the document {has}"


def _time(asked: object) -> str:
    if isinstance(asked, dict) and "as_of" in asked:
        return f"as of epoch {asked['as_of']}"
    if isinstance(asked, dict) and isinstance(asked.get("between"), list):
        return "between epochs " + " and ".join(map(str, asked["between"]))
    return "for what is valid now"


def _remarks(query: ExplainedQuery, found: Explanation) -> Iterator[str]:
    """What the rows do not say: reasons, absence, how much came back."""
    for document in query.judged:
        for reason in document.hidden:
            yield f"{document.id}  {_reason(reason)}"
        if document.status != "absent" and document.in_corpus is False:
            yield f"{document.id}  is not in the corpus as it is now"
    if query.retrieved is not None and query.retrieved < found.limit:
        of = f"of the {found.limit} asked for"
        yield f"the backend returned {query.retrieved or 'no document'} {of}"


def _more(query: ExplainedQuery) -> int:
    """How many more stand above the lowest document in question than are shown."""
    counts = [document.outranked or 0 for document in query.astray if document.outranked_by]
    return max(0, max(counts, default=0) - len(query.above))


def _in_common(shares: Sequence[str], total: int) -> str:
    quoted = ", ".join(f'"{word}"' for word in shares)
    if total == 1:
        return f"has the query's only word ({quoted})" if shares else "does not have the query's only word"
    if not shares:
        return f"shares none of {total} words with the query"
    return f"shares {len(shares)} of {total} words with the query ({quoted})"


def _closing(query: ExplainedQuery, found: Explanation) -> Iterator[str]:
    """What each document in question has in common with the query, and what it has of its own."""
    if query.value is None:
        return
    several = len(query.astray) > 1
    for document in query.astray:
        if document.hidden or document.shares is None:
            continue
        who = document.id if several else "The judged text"
        told = f"{who} {_in_common(document.shares, len(query.words))}"
        kind = (found.own_by or "").replace("-", " ")
        own = f"; its own {kind} words: {', '.join(document.own)}" if document.own else ""
        yield f"{told}{own}."
    if not query.astray and any(document.grade for document in query.judged):
        yield "Nothing was lost: every relevant document is where the measure wants it."


def _heads(found: Explanation) -> Iterator[str]:
    """A line for each way in which queries were chosen."""
    if found.lost is not None:
        number = len(found.lost)
        what = f"{number or 'no'} {'query' if number == 1 else 'queries'} lost against {found.baseline}"
        yield f"{found.arm} · {what}: {found.headline} {found.baseline_mean:.3f} → {found.mean:.3f}"
    if found.missed is not None:
        what = f"{len(found.missed)} of {found.n} queries missed"
        yield f"{found.arm} · {what}: {found.headline} {found.mean:.3f}, cut at {found.cutoff}"


# --------------------------------------------------------------------------------------------- the table


def _table(found: Explanation, full: bool) -> Iterator[str]:
    from eval_core.console import clip, paint

    for note in found.notes:
        first, *rest = _wrap(f"note: {note}", WIDE)
        yield paint("note", "yellow") + first[4:]
        yield from rest
    heads = [clip(head, WIDE) for head in _heads(found)]
    yield from heads
    for place, query in enumerate(found.queries):
        if place or heads or found.notes:
            yield ""
        yield from _block(query, found, full)


def _block(query: ExplainedQuery, found: Explanation, full: bool) -> Iterator[str]:
    from eval_core.console import clip, paint, table, width

    name, tags = clip(query.id, 30), clip(_tags(query), 30)
    text = clip(f'"{query.text}"', WIDE - width(name) - width(tags) - 4)
    gap = " " * (WIDE - width(name) - width(text) - width(tags) - 4)
    yield f"{paint(name, 'cyan')}  {text}{gap}  {tags}".rstrip()
    if full and text.endswith("…"):
        yield from (f" {line}" for line in _wrap(f'"{query.text}"', WIDE - 1))
    yield from (f" {line}" for line in _wrap(_score_line(query, found.headline), WIDE - 1))
    rows = [
        (_label(d), _tail(d.id, NAMED), _place(d, found, query.before is not None), _shares(d), _score(d))
        for d in query.judged
    ]
    rows += [("above", _tail(d.id, NAMED), f"rank {d.rank}", _shares(d), _score(d)) for d in query.above]
    # What the other columns leave is for the words in common.
    taken = sum(max((width(row[i]) for row in rows), default=0) for i in (0, 1, 2, 4))
    room = max(12, WIDE - 1 - 4 * 2 - taken)
    lines = table([(*row[:3], clip(row[3], room), row[4]) for row in rows], right=(4,)).split("\n")
    yield from (line for line in lines if line)
    if more := _more(query):
        yield f"         … {more} more above"
    for remark in _remarks(query, found):
        yield from (f" {line}" for line in _wrap(remark, WIDE - 1))
    for left, right in _pairs(query):
        yield ""
        yield from _beside(left, right, found, full)
    closing = list(_closing(query, found))
    if closing:
        yield ""
    for line in closing:
        yield from (f" {part}" for part in _wrap(line, WIDE - 1))


def _pairs(query: ExplainedQuery) -> Iterator[tuple[JudgedDocument, Shown | None]]:
    """Each document in question with one that stands above it: another for each, as far as there are others."""
    for place, document in enumerate(query.astray):
        if document.text is None:
            continue
        over = [
            shown for shown in query.above if shown.id in document.outranked_by and shown.text is not None
        ]
        yield document, over[min(place, len(over) - 1)] if over else None


def _beside(left: JudgedDocument, right: Shown | None, found: Explanation, full: bool) -> Iterator[str]:
    """Two texts side by side; one alone takes the whole width."""
    from eval_core.console import width

    columns = HALF if right is not None else WIDE - 1
    ours = [f"{_tail(left.id, columns - 11)}  (judged)", *_lines(left.text or "", columns, full)]
    if right is None:
        yield from (f" {line}" for line in ours)
        return
    theirs = [
        f"{_tail(right.id, columns - 16)}  (rank {right.rank})",
        *_lines(right.text or "", columns, full),
    ]
    for place in range(max(len(ours), len(theirs))):
        one = ours[place] if place < len(ours) else ""
        other = theirs[place] if place < len(theirs) else ""
        yield f" {one}{' ' * (columns - width(one))} │ {other}".rstrip()


def _lines(text: str, columns: int, full: bool) -> list[str]:
    if full:
        return [line for part in text.splitlines() for line in _wrap(part, columns)] or [""]
    lines = _wrap(text, columns)
    if len(lines) > LINES:
        from eval_core.console import clip

        lines = [*lines[: LINES - 1], clip(lines[LINES - 1] + " " + lines[LINES], columns)]
    return lines


def _wrap(text: str, columns: int) -> list[str]:
    """A text in lines of so many terminal columns, broken at white space where it can be; control characters are
    shown, never sent to the terminal."""
    from eval_core.console import clip, width

    lines, line, used = [], "", 0
    for word in re.findall(r"\S+|\s+", clip(text, 1 << 60)):
        size = width(word)
        if used + size > columns and line.strip() and (word.isspace() or size <= columns):
            lines.append(line.rstrip())
            line, used = "", 0
        if word.isspace() and lines and not line:
            continue
        if used + size <= columns:
            line, used = line + word, used + size
            continue
        for character in word:
            wide = width(character)
            if used + wide > columns:
                lines.append(line)
                line, used = "", 0
            line, used = line + character, used + wide
    return [*lines, line.rstrip()] if line.strip() or not lines else lines


def _tail(text: str, columns: int) -> str:
    """A text cut from the left: of a long path, the end tells more."""
    from eval_core.console import clip, width

    safe = clip(text, 1 << 60)
    if width(safe) <= columns:
        return safe
    safe = safe[-columns:]
    while width(safe) > columns - 1:
        safe = safe[1:]
    return "…" + safe


# --------------------------------------------------------------------------------------------- for machines, pages


def _json(found: Explanation) -> str:
    from eval_core.console import as_json

    return as_json(found.model_dump(by_alias=True))


def _code(text: str) -> str:
    """A text of any content in Markdown, shown as it is: no markup, link, mention or table border comes of it."""
    import html

    from eval_core.console import clip

    safe = clip(text, 1 << 60)
    if not safe.strip():
        return ""
    if not {"`", "|", "\\"}.intersection(safe):
        return f"`{safe}`"
    marks = re.sub(r"[\\`*_\[\]|~$]", lambda m: f"&#{ord(m[0])};", html.escape(safe, quote=False))
    marks = marks.replace("://", "&#58;//").replace("www.", "www&#46;")
    return f"<code>{marks}</code>"


def _markdown(found: Explanation) -> Iterator[str]:
    for note in found.notes:
        yield f"> note: {_code(note)}"
        yield ""
    for head in _heads(found):
        yield f"**{_code(head)}**"
        yield ""
    for query in found.queries:
        yield f"### {_code(query.id)} {_code(query.text)}"
        yield ""
        yield f"{_code(_score_line(query, found.headline))}" + (
            f" · {_code(tags)}" if (tags := _tags(query)) else ""
        )
        yield ""
        yield "| | document | place | shares | score | text |"
        yield "|---|---|---|---|---|---|"
        for d in query.judged:
            place = _place(d, found, query.before is not None)
            yield _cells(_label(d), d, place, d in query.astray)
        for shown in query.above:
            yield _cells("above", shown, f"rank {shown.rank}", True)
        yield ""
        if more := _more(query):
            yield f"- … {more} more above"
        yield from (f"- {_code(told)}" for told in (*_remarks(query, found), *_closing(query, found)))
        yield ""


def _cells(label: str, shown: Shown, place: str, quoted: bool) -> str:
    """A document's line of a Markdown table."""
    text = "<br>".join(_code(line) for line in (shown.text or "").splitlines()) if quoted else ""
    shares = _code(", ".join(shown.shares or ()))
    return f"| {label} | {_code(shown.id)} | {place} | {shares} | {_score(shown)} | {text} |"
