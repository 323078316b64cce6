"""A retrieval comparison for a person: on a terminal and as Markdown, the verdict in both."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from eval_core import console
from eval_core.console import clip, count, paint, table
from eval_core.contract.models import BackendReport, Comparison
from eval_core.reconstruct.selection import summary

#: Queries, paths and errors that are shown of each kind; JSON has them all.
SHOWN = 20


def as_json(comparison: Comparison) -> str:
    """The contract's JSON. What does not apply (first_relevant_rank on a miss, reason of a sound one) is left out."""
    return console.as_json(comparison.model_dump(mode="json", by_alias=True, exclude_none=True))


def as_table(comparison: Comparison) -> str:
    """The comparison for a terminal, without a last newline."""
    rows = [_head(comparison.k), *(_row(report) for report in comparison.backends)]
    lines = [
        f"{clip(comparison.id, 60)}  {count(comparison.queries, 'query', 'queries')}, "
        f"{count(len(comparison.backends), 'backend')}",
        *(f" {line}" for line in _facts(comparison, lambda text: clip(text, 200))),
        "",
        table([[clip(cell, 60) for cell in row] for row in rows], right=range(1, 6)),
    ]
    if ranks := _ranks(comparison):
        texts = {row.id: row.query for report in comparison.backends for row in report.rows}
        heads = ("query", *(report.backend for report in comparison.backends), "")
        cells = [(clip(name, 20), *found, clip(texts[name], 60)) for name, *found in ranks[:SHOWN]]
        lines += [
            "",
            _RANKS,
            table([[clip(head, 30) for head in heads], *cells], right=range(1, len(heads) - 1)),
        ]
        lines += [f" … {len(ranks) - SHOWN} more"] if len(ranks) > SHOWN else []
    for title, items in _lists(comparison):
        lines += ["", f"{title} ({len(items)})", *(f" {clip(item, 400)}" for item in items[:SHOWN])]
        lines += [f" … {len(items) - SHOWN} more"] if len(items) > SHOWN else []
    lines += ["", _verdict(comparison, paint)]
    return "\n".join(lines)


def as_markdown(comparison: Comparison) -> str:
    """The comparison for a page or a pull request, without a last newline.

    It holds no query's text, since it may come to lie below the search root, where it would be the best match of each.
    """
    rows = [[_plain(cell) for cell in row] for row in (_row(report) for report in comparison.backends)]
    lines = [
        f"## Retrieval comparison {_plain(comparison.id)}",
        "",
        _verdict(comparison, lambda text, _: f"**{text}**", _plain),
        "",
        *_piped([*_head(comparison.k)], rows, right=range(1, 6)),
        "",
        *(f"- {line}" for line in _facts(comparison, _plain)),
    ]
    if ranks := _ranks(comparison):
        heads = ["query", *(_plain(report.backend) for report in comparison.backends)]
        cells = [[_plain(cell) for cell in row] for row in ranks[:SHOWN]]
        lines += ["", _RANKS + ":", "", *_piped(heads, cells, right=range(1, len(heads)))]
        lines += ["", f"… {len(ranks) - SHOWN} more"] if len(ranks) > SHOWN else []
    for title, items in _lists(comparison):
        lines += ["", f"{title} ({len(items)}):", "", *(f"- {_plain(item)}" for item in items[:SHOWN])]
        lines += [f"- … {len(items) - SHOWN} more"] if len(items) > SHOWN else []
    return "\n".join(lines)


_RANKS = "Rank of the first relevant path, where a backend missed or two differ"


def _head(k: int) -> tuple[str, ...]:
    return ("backend", f"any@{k}", "hits", f"precision@{k}", "mrr", "missing", "health")


def _row(report: BackendReport) -> tuple[str, ...]:
    def shown(value: float) -> str:
        return f"{value:.3f}" if report.health.scored else "–"

    health = report.health
    odd = ("errored", "unscored", "duplicates", "excess", "restarts")
    bad = [f"{getattr(health, name)} {name}" for name in odd if getattr(health, name)]
    return (
        report.backend,
        shown(report.any_relevant_at_k),
        f"{report.hits}/{health.scored}",
        shown(report.avg_precision_at_k),
        shown(report.mean_reciprocal_rank),
        str(report.missing_ground_truth),
        ", ".join(bad) or ("ok" if health.scored else "nothing scored"),
    )


def _facts(comparison: Comparison, safe: Callable[[str], str]) -> Iterator[str]:
    manifest, corpus = comparison.manifest, comparison.corpus
    told = f"manifest {safe(comparison.manifest_path)}, sha256 {manifest.sha256[:12]}…"
    if manifest.skipped:
        told += f"; legacy entries without ground truth, left out: {manifest.skipped}"
    yield told
    told = (
        f"searched {safe(comparison.search_root)}: {count(corpus.documents, 'document')}, "
        f"sha256 {corpus.sha256[:12]}…"
    )
    skipped = summary(corpus.skipped)
    if corpus.unnamable:
        skipped += f"{', ' if skipped else ''}{corpus.unnamable:,} with a name that is not UTF-8"
    yield told + (f"; skipped: {skipped}" if skipped else "")
    yield (
        f"precision@{comparison.k} is hits / min(ground truth, {comparison.k}); missing counts ground-truth paths "
        "where no file stands, each a miss"
    )


def _ranks(comparison: Comparison) -> list[list[str]]:
    """A row a query, in the manifest's order as far as backends have it, that not all found at one rank."""
    found: dict[str, dict[str, str]] = {}
    for report in comparison.backends:
        for row in report.results:
            rank = row.first_relevant_rank
            found.setdefault(row.id, {})[report.backend] = "–" if rank is None else str(rank)
        for error in report.errors:
            found.setdefault(error.id, {})[report.backend] = error.outcome
    names = [report.backend for report in comparison.backends]
    rows = [[query, *(cells[name] for name in names)] for query, cells in found.items()]
    return [row for row in rows if len(set(row[1:])) > 1 or not row[1].isdecimal()]


def _lists(comparison: Comparison) -> Iterator[tuple[str, list[str]]]:
    """Titles and lines of what must not be overlooked, those that hold anything."""
    missing: dict[str, list[str]] = {}
    for row in comparison.backends[0].rows:
        for path in row.missing_ground_truth:
            missing.setdefault(path, []).append(row.id)
    lists = (
        ("Missing ground truth", [f"{path}  of {', '.join(ids)}" for path, ids in missing.items()]),
        ("Errors", [error.message for report in comparison.backends for error in report.errors]),
        ("Notes", list(comparison.notes)),
    )
    yield from ((title, items) for title, items in lists if items)


def _verdict(
    comparison: Comparison,
    mark: Callable[[str, str], str],
    safe: Callable[[str], str] = lambda text: clip(text, 400),
) -> str:
    if comparison.reason is None:
        return (
            f"{mark('COMPARED', 'green')}  at least one backend finds something, and every query was answered"
        )
    word = "NO EVIDENCE" if comparison.exit_code == 1 else "ERRORED"
    told = f"{mark(word, 'red')}  {comparison.reason}: {safe(comparison.why or '')}"
    return f"{told}  (exit {comparison.exit_code})"


_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#|~!&])")


def _plain(text: str) -> str:
    """A text of others in a Markdown page: neither a mark, a tag, a mention nor a cell of its own."""
    return _MARKUP.sub(r"\\\1", clip(text, 400)).replace("@", "&#64;")


def _piped(head: list[str], rows: list[list[str]], right: range) -> list[str]:
    marks = ["---:" if place in right else "---" for place in range(len(head))]
    return [f"| {' | '.join(row)} |" for row in (head, marks, *rows)]
