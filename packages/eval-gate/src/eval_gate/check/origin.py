"""Where a report comes from, held against its provenance sidecar, against eval.toml, and against the waivers."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from eval_core.console import utf8
from eval_core.errors import Misuse, did_you_mean
from eval_core.reports import Report
from eval_core.reports.provenance import check, sidecar
from eval_core.reports.provenance.configuration import Configured
from eval_gate.verdict import Reason

#: Backends that answer in this process or behind the line protocol, whatever an option of theirs says.
_HERE = frozenset({"bm25", "jsonl", "overlap", "popularity", "random"})

#: Where the waivers lie, below the policy's folder.
WAIVERS = "waivers.toml"

_MENDS = {
    "provenance-missing": "Measure it:  eval-core measure {}   (it writes the report and its provenance)",
    "provenance-malformed": "Measure it again:  eval-core measure {}",
    "provenance-subject-differs": "The report was changed or replaced since:  eval-core measure {}",
    "provenance-diverges": "Measure what eval.toml says now:  eval-core measure {}",
}


class Origin(NamedTuple):
    """What refuses a report for where it comes from, and what is said of the waivers."""

    reasons: Sequence[Reason] = ()
    notes: Sequence[str] = ()


class Origins:
    """Looks at one report after another of a workspace; the waivers are read once, when first needed."""

    def __init__(
        self,
        policy: Path,
        configured: Configured | None,
        *,
        required: bool,
        arms: Collection[str] = (),
        today: date | None = None,
    ) -> None:
        """`configured` is eval.toml, None where there is none. `arms` are those that have floors: a waiver of another
        is a mistake. `today` is the day for waivers that expire."""
        self._policy = policy
        self._required = required
        self._arms = arms
        self._today = today
        self._configured = configured

    def of(self, report: Report, raw: bytes, path: Path) -> Origin:
        """Hold a report against its sidecar, where there is one or must be one, and against its arm in eval.toml.

        Raises:
            Misuse, Faults: the waivers cannot be read.
        """
        beside = sidecar(path)
        findings = check(report, raw, beside) if self._required or beside.exists() else []
        if self._configured is not None and (self._required or report.arm in self._configured.arms):
            findings += self._configured.against(report)
        unseen = self._unseen() if self._required else []
        waivers_path = self._policy / WAIVERS
        if not findings and not waivers_path.exists():
            return Origin(unseen)
        from eval_core.reports.waivers import read

        waivers = read(waivers_path)
        strangers = [waiver.arm for waiver in waivers.waiver if self._arms and waiver.arm not in self._arms]
        if strangers:
            raise Misuse(
                "arm-unknown",
                f"waives {strangers[0]!r}, which has no floors{did_you_mean(strangers[0], self._arms)}",
                file=waivers_path,
            )
        kept, used = waivers.settle(report.arm, findings, self._today)
        notes = [f"waived: {waiver.reason} (fingerprint {waiver.fingerprint[:12]}…)" for waiver in used]
        notes += waivers.idle({report.arm: [finding.fingerprint for finding in findings]}, self._today)
        reasons = [self._reason(report.arm, f.code, f.message, f.fingerprint) for f in kept]
        return Origin([*unseen, *reasons], notes)

    def _unseen(self) -> list[Reason]:
        """B4: what is required and cannot be looked at is refused."""
        if self._configured is not None:
            return []
        return [
            Reason(
                code="provenance-unseen",
                word="refused",
                what="there is no eval.toml here, so nothing says how the report should have been produced",
                mend="Run in the folder that holds eval.toml, or name it: --config FILE.",
            )
        ]

    def _reason(self, arm: str, code: str, message: str, fingerprint: str | None) -> Reason:
        mend = _MENDS[code].format(arm)
        if fingerprint is not None:
            mend += (
                f"   (or waive exactly this in {self._policy / WAIVERS}: [[waiver]] with "
                f'arm = "{arm}", a reason, and fingerprint = "{fingerprint}")'
            )
        return Reason(code=code, word="refused", what=utf8(message), mend=mend)


def owned(configured: Configured | None) -> frozenset[str]:
    """The arms of the owner's lane."""
    return frozenset(name for name, arm in _tables(configured) if arm.get("lane") == "owner")


def sets(configured: Configured | None) -> Mapping[str, Path]:
    """The folder of each arm's set."""
    return {
        name: configured.path.parent / arm["dataset"]
        for name, arm in _tables(configured)
        if configured and isinstance(arm.get("dataset"), str)
    }


def answering(configured: Configured | None) -> Iterator[Path]:
    """The files that options name, themselves or by the globs of `files`: what answers."""
    for _, arm in _tables(configured):
        options = arm.get("options")
        root = configured.path.parent if configured else Path()
        for word in _words(options):
            with contextlib.suppress(OSError, ValueError):
                if (root / word).is_file():
                    yield root / word
        for glob in _words(options.get("files") if isinstance(options, Mapping) else None):
            # What cannot be a glob is told by eval-core measure.
            with contextlib.suppress(OSError, ValueError, IndexError, NotImplementedError):
                yield from (path for path in root.glob(glob) if path.is_file())


def without_latency(configured: Configured | None) -> frozenset[str]:
    """The arms for which no p95 is supposed (M8): those of the owner's lane, and services, which options give an
    address or a port. A command line that holds an address is no service."""
    services = {
        name
        for name, arm in _tables(configured)
        if arm.get("backend") not in _HERE and _is_service(arm.get("options"))
    }
    return owned(configured) | services


def _tables(configured: Configured | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, arm in configured.arms.items() if configured else ():
        if isinstance(arm, Mapping):
            yield name, arm


def _is_service(options: object) -> bool:
    return any("http://" in word or "https://" in word or "{port}" in word for word in _words(options))


def _words(options: object) -> Iterator[str]:
    """The texts of an option's value, however deep."""
    if isinstance(options, Mapping):
        options = list(options.values())
    if isinstance(options, list):
        for value in options:
            yield from _words(value)
    elif isinstance(options, str):
        yield options
