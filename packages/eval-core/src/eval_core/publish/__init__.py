"""Publishing: the numbers of evidence put into the marked places of pages, or held against what stands there.

Every number is derived from the last run that an arm's floors stand on, and what produced that run must be what
`eval.toml` says now (SYSTEMS S4): this is the second reader of the fingerprint, beside the gate. Values of another
repository's file are asserted in the same way (S6).
"""

from __future__ import annotations

import contextlib
import html
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from eval_core.console import utf8
from eval_core.errors import EvalError, Fault, Faults, Misuse, Refused, did_you_mean, unknown_arm
from eval_core.files import atomic, refuse_special, unwritable
from eval_core.policy.evidence import Line, path_of
from eval_core.policy.files import Policy, read_policy
from eval_core.publish import figures, marks
from eval_core.publish.marks import DEFAULT_FORM, Asserted, Number, Page, Table
from eval_core.publish.models import Mark, Publication, Refusal, State, Waived
from eval_core.reports.provenance import Finding
from eval_core.reports.provenance.configuration import Configured, Run, configuration
from eval_core.reports.waivers import Waiver, Waivers
from eval_core.scoring import metrics

__all__ = ["Publication", "publish", "usual"]

CONSEQUENCE = "no page was changed"

#: Names of timing. Evidence holds none, and what is compared by hand is published by hand.
_TIMING = re.compile(r"(p[0-9]+|max|mean|latency|ingest)(_ms|_s)?")


@dataclass(slots=True)
class _Source:
    """An arm's baseline, if it may be quoted, and what was found of its provenance."""

    line: Line | None = None
    refusals: list[Refusal] = field(default_factory=list)
    waived: list[tuple[Waiver, list[str]]] = field(default_factory=list)
    divergent: list[str | None] = field(default_factory=list)


class _Sources:
    """Where values come from: baselines by arm, each read once, and the file of `--from`."""

    def __init__(
        self, folder: Path, config: Path, other: Path | None, waivers: Waivers, today: date | None
    ) -> None:
        self.folder, self.other, self.waivers, self.today = folder, other, waivers, today
        self.config = config
        self._configured: Configured | None = None
        self._policy: Policy | None = None
        self.arms: dict[str, _Source] = {}
        self._table: Any = None
        self._table_read = False

    @property
    def configured(self) -> Configured:
        """`eval.toml`, read when the first number asks for it: a page that only asserts needs none."""
        if self._configured is None:
            self._configured = configuration(self.config)
        return self._configured

    @property
    def policy(self) -> Policy:
        """Floors and evidence, read when the first number asks for them."""
        if self._policy is None:
            self._policy = read_policy(self.folder)
        return self._policy

    def table(self) -> Any:
        """The values of `--from`."""
        if self.other is not None and not self._table_read:
            self._table = figures.read(self.other)
            self._table_read = True
        return self._table

    def arm(self, name: str) -> _Source:
        """The source of an arm.

        Raises:
            Misuse: neither eval.toml nor the floors know the arm.
        """
        if name not in self.arms:
            self.arms[name] = self._arm(name)
        return self.arms[name]

    def _arm(self, name: str) -> _Source:
        if name not in self.policy.floors.arms and name not in self.configured.arms:
            known = sorted({*self.configured.arms, *self.policy.floors.arms})
            raise unknown_arm(name, known)
        source = _Source()
        try:
            line = self._baseline(name)
        except Refused as error:
            source.refusals.append(Refusal(code=error.code, message=utf8(error.message), remedy=error.mend))
            return source
        health = line.health
        if not health.ok:
            counts = f"{health.scored} rows scored, {health.errored} errored, {health.unscored} unscored"
            message = (
                f"{path_of(self.folder, name)}: {counts}; such a run is no finding, and is quoted nowhere"
            )
            refusal = Refusal(code="rows-errored", message=utf8(message), remedy="Measure again.")
            source.refusals.append(refusal)
        metas = [{"category": entry.category} for entry in line.entries if entry.category]
        about = line.set.name if line.set else ""
        findings = self.configured.against(Run(name, about, line.task, line.system, line.fingerprint, metas))
        source.divergent = [finding.fingerprint for finding in findings]
        kept, used = self.waivers.settle(name, findings, self.today)
        source.refusals += [_refused(name, finding) for finding in kept]
        source.waived = [
            (waiver, [utf8(f.message) for f in findings if f.fingerprint == waiver.fingerprint])
            for waiver in used
        ]
        source.line = line
        return source

    def _baseline(self, name: str) -> Line:
        if name in self.policy.floors.arms:
            return self.policy.arm(name).baseline
        raise Refused(
            "arm-without-floors",
            "the arm has no floors, so no run of it is evidence that a page can quote",
            subject=name,
            mend=_move(name),
        )


def _refused(arm: str, finding: Finding) -> Refusal:
    remedy = _move(arm)
    if finding.fingerprint is not None:
        remedy += (
            "\nOr let it stand, in policy/waivers.toml:  [[waiver]]  "
            f'arm = "{arm}"  reason = "…"  fingerprint = "{finding.fingerprint}"'
        )
    return Refusal(code=finding.code, message=utf8(finding.message), remedy=remedy)


def _move(arm: str) -> str:
    return f"Measure it twice, and move its bar:  eval-gate floor {arm} --measure --write"


def publish(
    pages: Sequence[Path],
    *,
    check: bool,
    policy: Path,
    config: Path,
    waivers: Waivers,
    other: Path | None = None,
    today: date | None = None,
) -> Publication:
    """Render the marks of some pages, or with `check` only compare them.

    Args:
        pages: Markdown or HTML files; each is taken once.
        check: change nothing.
        policy: the folder with the floors and the evidence that they stand on.
        config: eval.toml, which the evidence must still agree with.
        waivers: what may diverge.
        other: the file that marks with `from:` are about; where given, there must be one.
        today: the day by which waivers expire; None: none does by date.

    Raises:
        Faults: pages that cannot be read, malformed marks, unknown arms and measures; all of them, and no page changes.
        Misuse: eval.toml cannot be read.
        CouldNot: a page cannot be written; then none is changed.
    """
    sources = _Sources(policy, config, other, waivers, today)
    read, faults = _pages(pages)
    for page in read:
        faults += [*page.faults, *_faults(page, sources)]
    if faults:
        raise Faults(faults, consequence=CONSEQUENCE)
    told: list[Mark] = []
    reasons = [refusal for source in sources.arms.values() for refusal in source.refusals]
    unfit: dict[str, Refusal] = {}
    after: list[tuple[Page, str]] = []
    for page in read:
        text, at = [], 0
        for mark in page.marks:
            entry, body = _mark(page, mark, sources, unfit)
            told.append(entry)
            text += [page.text[at : mark.start], body]
            at = mark.end
        after.append((page, "".join([*text, page.text[at:]])))
    reasons += unfit.values()
    targets = [mark.target for page in read for mark in page.marks]
    reasons += _vacuous(targets, read, other)
    written: list[Path] = []
    if check:
        reasons += [
            Refusal(
                code="publish-differs",
                message=f"{mark.page}:{mark.line}  {mark.target}: {mark.written!r} is written, and its source gives "
                f"{mark.given!r}",
                remedy="Render it:  eval-core publish",
            )
            for mark in told
            if mark.state == "differs"
        ]
    elif not reasons:
        changed = [(page, new) for page, new in after if new != page.text]
        _write(changed)
        written = [page.path for page, _ in changed]
    return Publication(
        checked=check,
        exit_code=1 if reasons else 0,
        pages=tuple(utf8(str(page.path)) for page in read),
        written=tuple(utf8(str(path)) for path in written),
        numbers=sum(sum(map(len, t.cells)) if isinstance(t, Table) else 1 for t in targets),
        marks=tuple(told),
        reasons=tuple(reasons),
        waived=tuple(
            Waived(arm=arm, fingerprint=waiver.fingerprint, reason=waiver.reason, findings=tuple(covered))
            for arm, source in sources.arms.items()
            for waiver, covered in source.waived
        ),
        warnings=tuple(waivers.idle({arm: source.divergent for arm, source in sources.arms.items()}, today)),
    )


def usual(root: Path = Path()) -> tuple[Path, ...]:
    """The pages of a repository that are read where none is named: README.md, and all of docs/. Folders are none."""
    found = [path for path in (root / "docs").rglob("*.md") if not path.is_dir()]
    return (*(page for page in [root / "README.md"] if page.exists() and not page.is_dir()), *sorted(found))


def _pages(paths: Iterable[Path]) -> tuple[list[Page], list[Fault]]:
    read: list[Page] = []
    faults: list[Fault] = []
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            continue
        seen.add(path.resolve())
        try:
            refuse_special(path)
            # Bytes and not text, which would turn every line end into one kind.
            read.append(marks.find(path, path.read_bytes().decode("utf-8")))
        except UnicodeDecodeError as error:
            what = f"the page is not UTF-8 text (byte {error.start})"
            faults.append(Fault(what, code="page-unreadable", file=utf8(str(path))))
        except OSError as error:
            what = f"the page cannot be read: {error.strerror or error}"
            faults.append(Fault(what, code="page-unreadable", file=utf8(str(path))))
    return read, faults


def _faults(page: Page, sources: _Sources) -> list[Fault]:
    """What the marks of a page ask for that is not there to be had."""
    faults: list[Fault] = []
    for mark in page.marks:
        target = mark.target
        if isinstance(target, Asserted):
            wrong = (
                []
                if sources.other is not None
                else [f"{target}: say  --from FILE, the file that it is about"]
            )
        else:
            cells = [cell for row in target.cells for cell in row] if isinstance(target, Table) else [target]
            wrong = [message for cell in cells if (message := _wrong(cell, sources))]
        faults += [
            Fault(message, code="mark-unknown", file=page.path, line=mark.line)
            for message in dict.fromkeys(wrong)
        ]
    return faults


def _wrong(cell: Number, sources: _Sources) -> str | None:
    if _TIMING.fullmatch(cell.measure):
        return f"{cell.measure!r} is timing, which no evidence holds and no page quotes"
    if cell.measure == "n" and cell.form is not None:
        return f"n is a count, and has no form {cell.form}"
    try:
        source = sources.arm(cell.arm)
    except Misuse as error:
        if error.code != "arm-unknown":
            raise
        return error.message
    line = source.line
    if line is None:
        return None
    if cell.category is not None and cell.category not in line.categories:
        known = list(line.categories)
        listed = ", ".join(known) or "none"
        near = did_you_mean(cell.category or "", known)
        return f"no category {cell.category!r} in {cell.arm}{near}  (it has: {listed})"
    if cell.measure != "n" and cell.measure not in line.measures:
        known = ["n", *line.measures]
        near = did_you_mean(cell.measure, known)
        return f"no measure {cell.measure!r} in {cell.arm}{near}  (it has: {', '.join(known)})"
    return None


def _mark(page: Page, mark: marks.Mark, sources: _Sources, unfit: dict[str, Refusal]) -> tuple[Mark, str]:
    """One mark: what is told of it, and the text that belongs between its tags. `unfit` takes a value's refusal."""
    target, before = mark.target, page.text[mark.start : mark.end]
    line, written, given = mark.line, page.written(mark), None
    body = before
    if isinstance(target, Table):
        rows = _rows(target, sources)
        written = ""
        if rows is not None:
            given = ""
            difference = _difference(before, rows)
            if difference is not None:
                place, written, given = difference
                line += place
                lines = [mark.indent + row if row else "" for row in rows]
                body = page.newline.join(["", *lines, mark.indent])
    else:
        if isinstance(target, Number):
            given = _number(target, sources)
        elif sources.other is not None:
            try:
                given = figures.value(sources.table(), target, sources.other)
            except Refused as error:
                unfit[error.message] = Refusal(code=error.code, message=utf8(error.message))
        if given is not None and written != given:
            # White space around a number belongs to the page.
            body = before.replace(written, given, 1) if written else given
    state: State = "refused" if given is None else "equal" if written == given else "differs"
    where = utf8(str(page.path))
    return Mark(page=where, line=line, target=str(target), written=written, given=given, state=state), body


def _number(cell: Number, sources: _Sources) -> str | None:
    """A number as a page has it; None where its arm may not be quoted."""
    source = sources.arm(cell.arm)
    if source.line is None or source.refusals:
        return None
    values = source.line.values("mrr" if cell.measure == "n" else cell.measure, cell.category)
    return (
        str(len(values)) if cell.measure == "n" else format(metrics.mean(values), cell.form or DEFAULT_FORM)
    )


def _rows(target: Table, sources: _Sources) -> list[str] | None:
    """The lines of a table, and what its arms' reports say of themselves; None where one may not be quoted."""
    measures = [cell.measure for cell in target.cells[0]]
    lines = [f"| arm | {' | '.join(measures)} |", f"|---|{'---:|' * len(measures)}"]
    for row in target.cells:
        values = [value for cell in row if (value := _number(cell, sources)) is not None]
        if len(values) != len(row):
            return None
        lines.append(f"| {row[0].subject.replace('|', chr(92) + '|')} | {' | '.join(values)} |")
    return lines + _statements(dict.fromkeys(row[0].arm for row in target.cells), sources)


def _statements(arms: Iterable[str], sources: _Sources) -> list[str]:
    """A paragraph for each thing that reports of these arms state, with the arms that state it."""
    said: dict[str, list[str]] = {}
    for arm in arms:
        line = sources.arm(arm).line
        for text in dict.fromkeys(line.statements if line else ()):
            said.setdefault(text, []).append(arm)
    lines: list[str] = []
    for text, sayers in said.items():
        sentence = html.escape(f"{', '.join(sayers)}: {text.rstrip('.')}.", quote=False)
        lines += ["", *textwrap.wrap(sentence, 110, break_long_words=False, break_on_hyphens=False)]
    return lines


def _difference(before: str, rows: Sequence[str]) -> tuple[int, str, str] | None:
    """The first line in which a table is another: how far below its mark, what is written, what belongs there.

    How a formatter of Markdown pads the cells makes no difference.
    """
    lines = [line.strip() for line in re.split(r"\r\n|\n|\r", before)[1:-1]]
    for place in range(max(len(lines), len(rows))):
        ours = lines[place] if place < len(lines) else ""
        theirs = rows[place] if place < len(rows) else ""
        if _plain(ours) != _plain(theirs):
            return place + 1, ours, theirs
    return None


def _plain(line: str) -> str:
    cells = "|".join(cell.strip(" \t") for cell in line.split("|"))
    return re.sub(r"-+", "-", cells) if not line.strip("|:- \t") else cells


def _vacuous(targets: Sequence[marks.Target], read: Sequence[Page], other: Path | None) -> list[Refusal]:
    """A check that looked at nothing fails."""
    names = ", ".join(utf8(str(page.path)) for page in read) or "no page"
    if not targets:
        message, help_ = (
            f"{names}: no mark, so nothing was published and nothing checked",
            "metric ARM MEASURE",
        )
    elif other is not None and not any(isinstance(target, Asserted) for target in targets):
        if not other.exists():
            raise Misuse("file-missing", "there is no such file of published metrics", file=other)
        message, help_ = f"{names}: no mark asserts anything of {utf8(str(other))}", "metric from:KEY"
    else:
        return []
    remedy = f"Put a number between  <!-- {help_} -->  and  <!-- /metric -->"
    return [Refusal(code="publish-vacuous", message=message, remedy=remedy)]


def _write(changed: Sequence[tuple[Page, str]]) -> None:
    """Write all pages or none: what was written before one failed is put back."""
    done: list[Page] = []
    try:
        for page, new in changed:
            _put(page.path, new)
            done.append(page)
    except BaseException:
        for page in done:
            with contextlib.suppress(EvalError):
                _put(page.path, page.text)
        raise


def _put(path: Path, text: str) -> None:
    try:
        # Through a symbolic link, and not in its place.
        with atomic(path.resolve()) as stream:
            stream.write(text.encode("utf-8"))
    except OSError as error:
        raise unwritable(path, error) from error
