"""What a rule is, and how one is run: a rule that breaks is a finding of its own, never the end of an audit."""

from __future__ import annotations

import inspect
from typing import ClassVar

from eval_tier.evidence.repository import Evidence
from eval_tier.evidence.settings import Unknown
from eval_tier.evidence.use import Use
from eval_tier.models import Basis, Finding, Half, Outcome
from eval_tier.workflow.models import EVENTS, Event, Place

#: The pull requests that every rung is about; the queue has a rule of its own.
PULL_REQUESTS: tuple[Event, ...] = EVENTS[:2]

WHOSE: dict[Event, str] = {
    "fork": "a pull request from a fork",
    "branch": "a pull request from a branch of the repository",
    "queue": "the merge queue",
}


class Rule:
    """One predicate of a tier. The docstring of a rule says why it is asked, and what mends it.

    Attributes:
        id: `T` and three digits, the first of which is the tier.
        title: the predicate as a short statement.
        requires: ids of rules without which this one has nothing to look at: where one of them does not hold, this one
            is unknown.
        declarable: whether a reason in `[audit.states]` stands for what no file can show.
    """

    id: ClassVar[str]
    tier: ClassVar[int]
    half: ClassVar[Half] = "mechanism"
    title: ClassVar[str]
    requires: ClassVar[tuple[str, ...]] = ()
    declarable: ClassVar[bool] = False

    def check(self, evidence: Evidence) -> Finding:
        """What the rule says of a repository."""
        raise NotImplementedError

    @property
    def why(self) -> str:
        """The docstring, as a paragraph."""
        return " ".join(inspect.cleandoc(type(self).__doc__ or "").split())

    def says(
        self,
        outcome: Outcome,
        what: str,
        places: tuple[Place, ...] = (),
        *,
        mend: str = "",
        basis: Basis = "files",
        evidence: Evidence | None = None,
    ) -> Finding:
        """A finding of this rule; with `evidence`, one that rests on the settings."""
        observed = None
        if evidence is not None and not isinstance(evidence.settings, Unknown):
            observed = evidence.settings.observed
            basis = "self-attested" if evidence.settings.self_attested else "settings"
        return Finding(self.id, self.tier, self.half, outcome, what, places, basis, observed, mend)

    def asked(self, unknown: Unknown, what: str, evidence: Evidence) -> Finding:
        """The finding where the settings do not say."""
        return self.says("unknown", f"{what}: {unknown.why}", mend=unknown.mend, evidence=evidence)

    def on_every_pull_request(self, use: Use, evidence: Evidence, what: str) -> Finding:
        """Whether a command is run for every pull request, from a fork or not."""
        doubt = None
        for event in PULL_REQUESTS:
            truth, why, places = use.runs(event, evidence.branch)
            chain = (*places, *use.places)
            if truth == "unknown":
                doubt = doubt or (f"{what} may be left out for {WHOSE[event]}: {why}", chain)
            elif truth != "true":
                skips = "is run for no" if truth == "false" else "is not run for every"
                said = f"{what} {skips} {WHOSE[event].removeprefix('a ')}: {why}"
                return self.says("refuted", said, chain, mend=f"let it run for {WHOSE[event]}, too")
        if doubt is not None:
            return self.says("unknown", *doubt, mend="write the condition so that it can be read")
        basis: Basis = "declared" if use.declared or use.generic else "files"
        return self.says("proven", f"{what} is run for every pull request", use.places, basis=basis)

    def unmasked(self, use: Use, what: str) -> Finding:
        """Whether a failure of a command fails its check."""
        if use.masks:
            why, place = use.masks[0]
            said = f"a failure of {what} does not fail the check: {why}"
            return self.says("refuted", said, (place, *use.places), mend="let its exit code be the step's")
        basis: Basis = "declared" if use.declared else "files"
        return self.says("proven", f"a failure of {what} fails its job", use.places, basis=basis)


def command_of(use: Use) -> str:
    """The command as a person would type it, shortened."""
    text = " ".join("…" if "\0" in word else word for word in use.command.words)
    return text if len(text) <= 60 else f"{text[:59]}…"
