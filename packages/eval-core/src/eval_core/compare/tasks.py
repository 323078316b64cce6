"""Whether two entries answered one task: each part that differs, and what may differ all the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval_core.compare.models import Changed, Entry
from eval_core.console import clip, some
from eval_core.errors import Refused
from eval_core.reports.keys import Difference, task_differences
from eval_core.sets.drift import changed_documents


class TaskDiffers(Refused):
    """Two sides did not answer the same task; `changed` names each part that differs."""

    def __init__(self, before: str, after: str, changed: tuple[Changed, ...]) -> None:
        self.changed = changed
        # Ids are other people's, and may hold what steers a terminal.
        what = f"{clip(before, 200)} and {clip(after, 200)} answered different tasks, and cannot be compared"
        super().__init__(
            "task-differs",
            f"{what} (task-differs)",
            mend="Measure both on the same set, with the same limit and filter. Cut-offs may differ.",
        )

    @property
    def message(self) -> str:
        """What is wrong, and below it each part that differs."""
        names = [clip(part.part, 40) for part in self.changed]
        lines = [
            f"  {name:{max(map(len, names))}}  {clip(part.detail, 1000)}"
            for name, part in zip(names, self.changed, strict=True)
        ]
        return "\n".join([f"{self.details.what}:", *lines])


def task_changes(before: Entry, after: Entry) -> tuple[Changed, ...]:
    """Name each part of the task that keeps two entries from being compared; none where they can be.

    Cut-offs may differ. One side may have been asked a part of the other's queries (`select`): the common ones must
    then have equal texts, metadata with a meaning and judgements. Runs are scored against the same judgements, and do
    not hold texts, so of their queries only equal ids with other texts can be told.
    """
    if before.task is None or after.task is None:
        return ()
    found = task_differences(before.task.parts, after.task.parts)
    names = {difference.part for difference in found}
    rows = "run" not in (before.kind, after.kind)
    changed = []
    for part in found:
        if part.part == "cutoffs" or (part.part == "corpus" and before.drifts_to(after)):
            continue
        detail = _plain(part, before, after)
        if part.part == "query_ids":
            detail = _query_ids(before, after) if rows else ""
        elif part.part in ("queries", "judgements") and rows:
            # Where the digests differ through absent queries alone, no common row differs.
            detail = _of_rows(part.part, before, after)
        elif part.part == "judgements" or (part.part == "queries" and "query_ids" in names):
            detail = ""
        if detail:
            changed.append(Changed(part=part.part, before=part.ours, after=part.theirs, detail=detail))
    return tuple(changed)


def _plain(part: Difference, before: Entry, after: Entry) -> str:
    detail = f"{_short(part.ours)} → {_short(part.theirs)}"
    if part.part == "corpus" and None not in (before.documents, after.documents):
        detail += f"  ({before.documents} → {after.documents} documents)"
        if before.output:
            detail += f"; {changed_documents(Path(before.output), part.ours, part.theirs)}"
    return detail


def _short(value: Any) -> str:
    """A value in at most 40 columns; a digest by its first digits."""
    if isinstance(value, str) and len(value) == 64:
        return value[:12] + "…"
    text = "–" if value is None else repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _query_ids(before: Entry, after: Entry) -> str:
    """Which queries are on one side only; empty where one side's are among the other's."""
    gone = sorted(before.queries.keys() - after.queries.keys())
    new = sorted(after.queries.keys() - before.queries.keys())
    return f"only before: {some(gone)}; only after: {some(new)}" if gone and new else ""


def _of_rows(part: str, before: Entry, after: Entry) -> str:
    """How the queries that both have differ, by name; empty where they do not."""
    words = []
    for name in sorted(before.queries.keys() & after.queries.keys()):
        ours, theirs = before.queries[name], after.queries[name]
        if part == "queries" and (ours.digest or theirs.digest):
            if ours.meaning != theirs.meaning:
                words.append(f"{name} (text or meaning)")
            continue
        old: Mapping[str, Any] = ours.grades if part == "judgements" else {"text": ours.text, **ours.meta}
        new: Mapping[str, Any] = (
            theirs.grades if part == "judgements" else {"text": theirs.text, **theirs.meta}
        )
        if old == new:
            continue
        key = next(key for key in sorted({**old, **new}) if old.get(key) != new.get(key))
        what = f"grade of {key!r}" if part == "judgements" else key
        words.append(f"{name} ({what}: {_short(old.get(key))} → {_short(new.get(key))})")
    return some(words, 3)
