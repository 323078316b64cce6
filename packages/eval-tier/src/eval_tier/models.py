"""What the audit says: findings of rules, and the placement of a repository that follows from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from eval_tier.workflow.models import Place

#: What a rule comes to. `unknown` never promotes and never reads as refuted; `error`: the rule itself broke.
Outcome = Literal["proven", "refuted", "unknown", "not-applicable", "error"]

#: What a predicate rests on. `mechanism`: the files of the repository. `effect`: the forge's settings, which alone make
#: a check required.
Half = Literal["mechanism", "effect"]

#: Whose word it is: that of files or settings that were read, a declaration, or a snapshot that the repository holds
#: of itself.
Basis = Literal["files", "settings", "declared", "self-attested"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule says of one repository.

    Attributes:
        rule: its id, such as T203.
        tier: the tier that the rule is a part of.
        half: what the predicate is about.
        what: one sentence: what is proven, refuted, or not known.
        places: where to look, the chain from a step to the command included.
        basis: what it rests on.
        observed: when that was seen, for settings.
        mend: the one thing to do; empty where there is nothing to do.
    """

    rule: str
    tier: int
    half: Half
    outcome: Outcome
    what: str
    places: tuple[Place, ...] = ()
    basis: Basis = "files"
    observed: datetime | None = None
    mend: str = ""

    @property
    def holds(self) -> bool:
        """Whether the rung may stand on it."""
        return self.outcome in ("proven", "not-applicable")


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a repository sits.

    Attributes:
        name: how the person knows it.
        commit: the commit whose files were read; None for a working tree, or without files.
        state: `placed`; `undetermined`, where no harness is recognised and nothing is declared; `not-applicable`, by
            declaration; `unread`, where there is no repository or no such commit. `reason` says why of all but the
            first, `mend` what would let it be read.
        mechanism: the longest prefix of tiers whose rules about files hold.
        effect: the longest prefix of tiers all of whose rules hold.
        ceiling: the effect, if all that is unknown turns out well.
        declared: the tier that the fleet file declares.
        final: declared to rest at its tier, and at it.
        observed: when its settings were seen; None without a snapshot.
        ungated: what is measured or claimed there and not gated.
        faults: what of the repository could not be read.
    """

    name: str
    commit: str | None
    state: Literal["placed", "undetermined", "not-applicable", "unread"]
    reason: str = ""
    mend: str = ""
    mechanism: int = 0
    effect: int = 0
    ceiling: int = 0
    declared: int | None = None
    final: bool = False
    observed: datetime | None = None
    findings: tuple[Finding, ...] = ()
    ungated: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def below(self) -> bool:
        """Whether it is below the tier that was declared for it."""
        return self.declared is not None and self.state == "placed" and self.effect < self.declared

    def short(self, rule: str | None = None) -> Placement:
        """The same without the findings that hold, but for one rule and the word of the audited: all that tables and
        exit codes ask for."""
        kept = tuple(f for f in self.findings if not f.holds or f.rule == rule or f.basis == "self-attested")
        return replace(self, findings=kept)

    def blocking(self, *, half: Half | None = None) -> tuple[Finding, ...]:
        """The findings that keep it from the next tier: those of the first tier that does not hold."""
        open_ = [f for f in self.findings if not f.holds and half in (None, f.half)]
        first = min((f.tier for f in open_), default=0)
        return tuple(f for f in open_ if f.tier == first)
