"""Where a repository sits: the longest prefix of tiers whose every predicate is proven."""

from __future__ import annotations

from collections.abc import Iterable

from eval_core.errors import EvalError
from eval_tier.evidence.repository import Evidence
from eval_tier.evidence.settings import Unknown
from eval_tier.models import Finding, Placement
from eval_tier.rules import Rule, findings
from eval_tier.rules.floored import floors_of

TIERS = (1, 2, 3)


def place(
    evidence: Evidence,
    rules: tuple[Rule, ...],
    *,
    declared: int | None = None,
    final: bool = False,
) -> Placement:
    """Place one repository by its evidence.

    Args:
        declared: the tier that a fleet file says it should be at.
        final: whether it is said to rest there.
    """
    faults = tuple(f"{fault.place}: {fault.what}" for fault in evidence.faults)
    declarable = [rule.id for rule in rules if rule.declarable]
    if wrong := [key for key in evidence.audit.states if key not in declarable]:
        what = f"audit.states.{wrong[0]}: only what no file can show is declared ({', '.join(declarable)})"
        faults = (*faults, what)
    settings = evidence.settings
    observed = None if isinstance(settings, Unknown) else settings.observed
    commit = evidence.files.commit
    if not evidence.harness and evidence.known:
        why, mend = "no harness is recognised, and nothing is declared", ""
        if evidence.elsewhere is not None:
            why = f"our commands are run in {evidence.elsewhere!r}, and this is about {evidence.base!r}"
            mend = f"eval-tier audit {evidence.elsewhere}"
        return Placement(evidence.name, commit, "undetermined", why, mend, declared=declared, observed=observed,
                         faults=faults)  # fmt: skip
    held = findings(evidence, rules)
    if not evidence.known:
        why = "its files were not given, so that only its settings are known"
        return Placement(evidence.name, None, "undetermined", why, "name a checkout of it as `path`", declared=declared,
                         observed=observed, findings=held)  # fmt: skip
    reached = _reached(held, ("proven", "not-applicable"))
    return Placement(
        evidence.name,
        commit,
        "placed",
        mechanism=_reached((f for f in held if f.half == "mechanism"), ("proven", "not-applicable")),
        effect=reached,
        ceiling=_reached(held, ("proven", "not-applicable", "unknown")),
        declared=declared,
        final=final and (declared is None or reached >= declared),
        observed=observed,
        findings=held,
        ungated=tuple(_ungated(evidence)),
        faults=faults,
    )


def _reached(held: Iterable[Finding], good: tuple[str, ...]) -> int:
    """The longest prefix of tiers in which every finding is good; a tier without any finding is not reached."""
    by_tier: dict[int, list[Finding]] = {}
    for finding in held:
        by_tier.setdefault(finding.tier, []).append(finding)
    reached = 0
    for tier in TIERS:
        asked = by_tier.get(tier, [])
        if not any(f.outcome == "proven" for f in asked) and "unknown" not in good:
            break
        if not asked or not all(finding.outcome in good for finding in asked):
            break
        reached = tier
    return reached


def _ungated(evidence: Evidence) -> Iterable[str]:
    """What is measured there, and has no bar."""
    floors = floors_of(evidence)
    if evidence.ours is None or floors is None or isinstance(floors, EvalError):
        return
    bare = [name for name in evidence.ours.arms if name not in floors.arms]
    if bare:
        yield f"{', '.join(bare[:3])}{' and others' if len(bare) > 3 else ''}: no floors"
    elsewhere = [
        name for name, arm in evidence.ours.arms.items() if arm.lane == "owner" and name in floors.arms
    ]
    if elsewhere:
        yield f"{', '.join(elsewhere[:3])}: owner's lane"
