"""`policy/waivers.toml`: divergent provenance that someone let pass, each by exact fingerprint and with a reason.

A waiver covers one producer of one arm's numbers. When that changes so does the fingerprint, and the waiver is spent:
it expires by itself (SYSTEMS S4). Read by both consumers, the gate and the publisher.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from eval_core.errors import Fault, Faults
from eval_core.files import read_text
from eval_core.models import NAME, Closed, line_in, parse_toml
from eval_core.reports.provenance import DIVERGES, Finding

WAIVERS = Path("policy") / "waivers.toml"


class Waiver(Closed):
    """One `[[waiver]]`."""

    arm: str = Field(pattern=NAME)
    fingerprint: str = Field(
        pattern=r"^[0-9a-f]{64}$", description="Of the divergent producer, whole, as the refusal says it."
    )
    reason: str = Field(description="Why its numbers may stand.")
    expires: str | None = Field(default=None, description="A date, the last day on which it covers anything.")

    @field_validator("reason")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError(f"reason = {value!r}: say why the numbers may stand")
        return value

    @field_validator("expires")
    @classmethod
    def _a_date(cls, value: str | None) -> str | None:
        try:
            if value is not None and date.fromisoformat(value).isoformat() != value:
                raise ValueError
        except ValueError:
            raise ValueError(f"expires = {value!r}: write a date, such as 2027-01-31") from None
        return value

    def expired(self, today: date | None) -> bool:
        """Whether its last day is over; never, where no day is given: a judgement that is pure has no clock."""
        return today is not None and self.expires is not None and date.fromisoformat(self.expires) < today


class Waivers(Closed):
    """The whole of the file."""

    schema_: Literal["waivers-v1"] = Field(default="waivers-v1", alias="schema")
    waiver: tuple[Waiver, ...] = ()

    def covers(self, arm: str, fingerprint: str | None, today: date | None = None) -> Waiver | None:
        """The waiver of an arm's divergence, if there is one for exactly this fingerprint. None covers None."""
        for waiver in self.waiver:
            if (waiver.arm, waiver.fingerprint) == (arm, fingerprint) and not waiver.expired(today):
                return waiver
        return None

    def settle(
        self, arm: str, findings: Iterable[Finding], today: date | None = None
    ) -> tuple[list[Finding], list[Waiver]]:
        """Part what was found of an arm's provenance: what still refuses it, and the waivers that cover the rest."""
        kept: list[Finding] = []
        used: list[Waiver] = []
        for finding in findings:
            waiver = self.covers(arm, finding.fingerprint, today) if finding.code == DIVERGES else None
            if waiver is None:
                kept.append(finding)
            elif waiver not in used:
                used.append(waiver)
        return kept, used

    def idle(self, divergent: Mapping[str, Iterable[str | None]], today: date | None = None) -> list[str]:
        """Say which waivers of the arms that were looked at cover nothing.

        Args:
            divergent: of each of those arms, the fingerprints that diverge; none for an arm whose provenance fits.
            today: the day for `expires`.
        """
        told = []
        for waiver in self.waiver:
            if waiver.arm not in divergent:
                continue
            found = [fingerprint for fingerprint in divergent[waiver.arm] if fingerprint is not None]
            name = f"the waiver of {waiver.arm} for {waiver.fingerprint[:12]}…"
            if not found:
                told.append(f"{name} is not used: nothing of the arm diverges that it could cover; remove it")
            elif waiver.fingerprint not in found:
                told.append(f"{name} is stale: what diverges now is {found[0]}")
            elif waiver.expired(today):
                told.append(f"{name} expired on {waiver.expires}")
        return told


def read(path: Path = WAIVERS) -> Waivers:
    """Read the waivers. No file, no waivers: deleting it only makes a reader stricter.

    Raises:
        Misuse: it is not TOML, or cannot be read.
        Faults: unknown keys, a fingerprint that is not whole, no reason, or two waivers of one thing.
    """
    if not path.exists():
        return Waivers()
    text = read_text(path, "waivers file")
    waivers = parse_toml(text, Waivers, path, "waivers file")
    seen: set[tuple[str, str]] = set()
    faults = []
    for place, waiver in enumerate(waivers.waiver):
        key = (waiver.arm, waiver.fingerprint)
        if key in seen:
            what = f"waives {waiver.fingerprint[:12]}… of {waiver.arm!r} again; keep one"
            faults.append(Fault(what, file=path, line=line_in(text, ["waiver", f"[{place}]"])))
        seen.add(key)
    if faults:
        raise Faults(faults)
    return waivers
