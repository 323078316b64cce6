"""Tier 3: what produced the numbers is recorded, and both the gate and whoever publishes them refuse another."""

from __future__ import annotations

import itertools
import json
import re
from fnmatch import fnmatchcase
from pathlib import Path

from eval_core.errors import EvalError
from eval_tier.evidence.repository import Evidence
from eval_tier.models import Finding
from eval_tier.rules.base import Rule, command_of
from eval_tier.rules.floored import POLICY, floors_of
from eval_tier.workflow.models import Place

#: A number of a page that a report stands behind.
_MARK = re.compile(r"<!--\s*metrics?\b")
_PAGES = (".md", ".html", ".htm")


class Graded(Rule):
    """The gate must refuse numbers whose recorded producer (backend, configuration, task) is not the one at hand. Ours
    does where floors.toml requires provenance, which it does unless it is taken out."""

    id, tier, title, requires, declarable = "T301", 3, "the gate reads the provenance", ("T203",), True

    def check(self, evidence: Evidence) -> Finding:
        gate = evidence.gate
        if gate is None:
            return self.says("unknown", "there is no gate")
        if gate.declared:
            return _sidecars(self, evidence, gate.places)
        read = floors_of(evidence)
        words = gate.command.words
        asked = any(word == "--require=provenance" for word in words) or (
            "--require",
            "provenance",
        ) in itertools.pairwise(words)
        if asked or (not isinstance(read, EvalError) and read is not None and "provenance" in read.require):
            return self.says(
                "proven",
                "eval-gate check requires provenance",
                (evidence.at(f"{POLICY}/floors.toml"), *gate.places),
            )
        mend = 'require = ["head", "clean", "provenance"]  in policy/floors.toml'
        return self.says("refuted", "the gate does not require provenance", gate.places, mend=mend)


class Published(Rule):
    """The second reader: what is published must be generated from the graded numbers, or held against them, in a step
    whose failure counts, on every pull request. Ours is `eval-core publish --check`."""

    id, tier, title, declarable = "T302", 3, "whoever publishes the numbers reads the provenance, too", True

    def check(self, evidence: Evidence) -> Finding:
        uses = evidence.of("publish")
        if not uses:
            mend = "eval-core publish --check README.md  in the job of the gate"
            return self.says(
                "refuted", "no step of CI holds published numbers against what was graded", mend=mend
            )
        findings = []
        for use in uses:
            what = f"`{command_of(use)}`"
            finding = self.on_every_pull_request(use, evidence, what)
            if finding.holds:
                finding = self.unmasked(use, what)
            if finding.holds and use.declared:
                finding = _sidecars(self, evidence, use.places)
            findings.append(finding)
        best = {"proven": 0, "unknown": 1}
        return min(findings, key=lambda finding: best.get(finding.outcome, 2))


class Covered(Rule):
    """A number that nothing checks drifts from what was measured. Each page with marked numbers must be named by a
    publish step; numbers of other repositories' pages are covered by their declared publish command. A number without
    a mark is not seen: mark each that you quote."""

    id, tier, title, requires, declarable = (
        "T303",
        3,
        "every marked number of a page is covered",
        ("T302",),
        True,
    )

    def check(self, evidence: Evidence) -> Finding:
        uses = evidence.of("publish")
        if not uses:
            return self.says("unknown", "nothing is published under a check")
        if all(use.declared for use in uses):
            what = f"`{command_of(uses[0])}` covers the outward numbers, as declared"
            return self.says("proven", what, uses[0].places, basis="declared")
        named = {word for use in uses for word in use.command.words if word.endswith(_PAGES)}
        checked = []
        for path in evidence.files.below(""):
            text = (evidence.text(path) or "") if path.endswith(_PAGES) else ""
            if not _MARK.search(text):
                continue
            from eval_core.publish import marks

            held = marks.find(Path(path), text).marks  # a mark in code is an example
            if not held:
                continue
            if not any(fnmatchcase(path, word.removeprefix("./")) for word in named):
                what = f"{path!r} has marked numbers, and no step checks it"
                mend = f"eval-core publish --check {path}"
                return self.says("refuted", what, (evidence.at(path, held[0].line),), mend=mend)
            checked.append(path)
        if not checked:
            what = "the pages that are checked hold no marked number: the check looks at nothing"
            return self.says("refuted", what, uses[0].places, mend="mark the numbers: docs on publishing")
        return self.says(
            "proven", f"{', '.join(checked)}: marked numbers are held", tuple(map(evidence.at, checked))
        )


def _sidecars(rule: Rule, evidence: Evidence, places: tuple[Place, ...]) -> Finding:
    """Whether the declared files of provenance are there, and hold something."""
    paths = evidence.audit.provenance
    if not paths:
        return rule.says(
            "unknown", "no file of provenance is declared", places, mend='audit.provenance = ["FILE"]'
        )
    for path in paths:
        try:
            held = json.loads(evidence.text(path) or "")
        except (ValueError, RecursionError):
            what = f"the provenance file {path!r} that is declared is absent or not JSON"
            return rule.says(
                "refuted", what, (evidence.at(path),), mend="write it with the numbers, and commit it"
            )
        if not isinstance(held, dict) or not held:
            return rule.says(
                "refuted", f"{path!r} records nothing", (evidence.at(path),), mend="record what produced them"
            )
    return rule.says(
        "proven", f"{paths[0]} is read, as declared", (evidence.at(paths[0]), *places), basis="declared"
    )


RULES = (Graded, Published, Covered)
