"""Where a report comes from, held against its provenance sidecar, against eval.toml, and against the waivers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

from eval_core.errors import Misuse, did_you_mean
from eval_core.reports.provenance import check, sidecar
from eval_core.reports.provenance.configuration import Configured, configuration
from eval_core.reports.report import Report
from eval_gate.verdict import Reason

#: Where the waivers lie, below the policy's folder.
WAIVERS = "waivers.toml"

_REMEDIES = {
    "provenance-missing": "Measure it:  eval-core measure {}   (it writes the report and its provenance)",
    "provenance-malformed": "Measure it again:  eval-core measure {}",
    "provenance-subject-differs": "The report was changed or replaced since:  eval-core measure {}",
    "provenance-diverges": "Measure what eval.toml says now:  eval-core measure {}",
}


class Origin(NamedTuple):
    """What refuses a report for where it comes from, and what should be told of the waivers."""

    reasons: Sequence[Reason] = ()
    notes: Sequence[str] = ()


class Origins:
    """Looks at one report after another of a workspace; eval.toml and the waivers are read once, when first needed."""

    def __init__(
        self,
        policy: Path,
        config: Path,
        *,
        required: bool,
        arms: Collection[str] = (),
        today: date | None = None,
    ) -> None:
        """`arms` are those that have floors: a waiver of another is a mistake. `today` is the day for waivers that
        expire."""
        self._policy = policy
        self._required = required
        self._arms = arms
        self._today = today
        self._configured: Configured | None = configuration(config) if config.exists() else None

    def of(self, report: Report, raw: bytes, path: Path) -> Origin:
        """Hold a report against its sidecar, where there is one or must be one, and against its arm in eval.toml.

        Raises:
            Misuse, Faults: the waivers cannot be read.
        """
        beside = sidecar(path)
        findings = check(report, raw, beside) if self._required or beside.exists() else []
        if self._configured is not None and (self._required or report.arm in self._configured.arms):
            findings += self._configured.against(report)
        waivers_path = self._policy / WAIVERS
        if not findings and not waivers_path.exists():
            return Origin()
        from eval_core.reports.waivers import read

        waivers = read(waivers_path)
        strangers = [waiver.arm for waiver in waivers.waiver if self._arms and waiver.arm not in self._arms]
        if strangers:
            raise Misuse(
                f"{waivers_path}: waives {strangers[0]!r}, which has no floors{did_you_mean(strangers[0], self._arms)}",
                reason="arm-unknown",
            )
        kept, used = waivers.settle(report.arm, findings, self._today)
        notes = [f"waived: {waiver.reason} (fingerprint {waiver.fingerprint[:12]}…)" for waiver in used]
        notes += waivers.idle({report.arm: [finding.fingerprint for finding in findings]}, self._today)
        return Origin([self._reason(report.arm, f.code, f.message, f.fingerprint) for f in kept], notes)

    def _reason(self, arm: str, code: str, message: str, fingerprint: str | None) -> Reason:
        remedy = _REMEDIES[code].format(arm)
        if fingerprint is not None:
            remedy += (
                f"   (or waive exactly this in {self._policy / WAIVERS}: [[waiver]] with "
                f'arm = "{arm}", a reason, and fingerprint = "{fingerprint}")'
            )
        return Reason(code=code, word="refused", message=message, remedy=remedy)
