"""The rules of the ladder, ours and those that other packages register, and how they are run over one repository."""

from __future__ import annotations

import functools

from eval_tier.evidence.repository import Evidence
from eval_tier.models import Finding
from eval_tier.rules.base import Rule

GROUP = "eval.rules"

__all__ = ["GROUP", "Broken", "Rule", "findings", "registered"]


class Broken(Rule):
    """A registered rule that cannot be loaded, or is none."""

    tier, title = 0, "a rule that cannot be loaded"

    def __init__(self, name: str, why: str) -> None:
        self.id, self._why = name, why  # type: ignore[misc]  # a class's own for every other rule

    def check(self, evidence: Evidence) -> Finding:
        return self.says(
            "error", f"the rule cannot be loaded: {self._why}", mend="mend or uninstall its package"
        )


@functools.cache
def registered() -> tuple[Rule, ...]:
    """All rules in the order of their ids: the built-in ones are registered as those of other packages are."""
    from importlib.metadata import entry_points

    found: dict[str, Rule] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            rules: list[Rule] = [make() for make in point.load()]
        except Exception as error:  # noqa: BLE001  # a stranger's code: whatever it raises is its finding
            rules = [Broken(point.name, f"{type(error).__name__}: {error}")]
        for rule in rules:
            if rule.id in found:
                rule = Broken(f"{point.name}:{rule.id}", f"its id {rule.id!r} is another rule's")
            found[rule.id] = rule
    return tuple(sorted(found.values(), key=lambda rule: rule.id))


def findings(evidence: Evidence, rules: tuple[Rule, ...]) -> tuple[Finding, ...]:
    """What each rule says, in their order; one that breaks is an error finding, and the rest are still asked."""
    held: dict[str, Finding] = {}
    for rule in rules:
        try:
            finding = rule.check(evidence)
        except Exception as error:  # noqa: BLE001  # one broken rule must not end an audit
            finding = rule.says("error", f"the rule broke: {type(error).__name__}: {error}", mend="report it")
        if finding.outcome == "unknown" and rule.declarable and (said := evidence.audit.states.get(rule.id)):
            finding = rule.says("proven", f"declared: {said}", finding.places, basis="declared")
        held[rule.id] = finding
    return tuple(held.values())
