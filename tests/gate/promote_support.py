"""What the tests of promotion share: arms measured at two commits of a real repository, and sides made by hand."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_gate.promotion.models import EvidenceFacts, Rule
from eval_gate.promotion.rules import Side, View

if TYPE_CHECKING:
    from conftest import Done, Space

REPOSITORY = Path(__file__).resolve().parents[2]
RULES = REPOSITORY / "policy" / "promotion.toml"

#: `plain` is a reference that is made worse than it need be, `same` another name for it, and `tuned` is better.
EVAL_TOML = """\
# The arms of this repository.
[arms."plain"]
dataset = "memory"
backend = "bm25"
options.k1 = 0.001  # hardly any weight for repeated terms
options.b = 0.0

[arms."same"]
dataset = "memory"
backend = "bm25"
options.k1 = 0.001
options.b = 0.0

[arms."tuned"]
dataset = "memory"
backend = "bm25"

[arms."short"]
dataset = "memory"
backend = "bm25"
cutoffs = [1, 5]

[arms."filtered"]
dataset = "memory"
backend = "bm25"
filter_from = ["kind"]
"""

FIRST, SECOND = "runs/1", "runs/2"


def staged(space: Space) -> None:
    """Measure the arms at two commits, check each run in, and baseline the reference."""
    root = space.root
    root.mkdir(exist_ok=True)
    shutil.copytree(REPOSITORY / "datasets" / "memory", root / "memory")
    (root / "eval.toml").write_text(EVAL_TOML)
    (root / "policy").mkdir()
    shutil.copyfile(RULES, root / "policy" / "promotion.toml")
    for folder in (FIRST, SECOND):
        space.commit(f"before {folder}")
        done = space.core("measure", "-q")
        assert done.code == 0, done.err
        shutil.copytree(root / ".eval" / "reports", root / folder)
    for verb in ("floor", "baseline"):
        done = space.gate(verb, "plain", "--write")
        assert done.code == 0, done.err
    space.commit("the reference, baselined")


class Stage:
    """Such a workspace, with what the tests do to it."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.root = space.root
        self.policy = space.root / "policy"
        self.config = space.root / "eval.toml"

    def promote(
        self,
        candidate: str = "tuned",
        *more: str | Path,
        over: str = "plain",
        evidence: tuple[str, ...] = (FIRST, SECOND),
    ) -> Done:
        """Run the verb."""
        named = [word for path in evidence for word in ("--evidence", path)]
        return self.space.gate("promote", candidate, "--over", over, *named, *more)

    def told(self, *arguments: Any, **named: Any) -> Any:
        """What it says in JSON, which is on standard output for exit codes 0 and 1."""
        done = self.promote(*(arguments or ("tuned",)), "--format", "json", **named)
        assert done.code in (0, 1), done.err
        value = json.loads(done.out)
        assert value["exit_code"] == done.code
        return value

    def codes(self, *arguments: Any, **named: Any) -> list[str]:
        """The reason codes of that; no condition on a measure is proven beside one, where the evidence is refused."""
        value = self.told(*arguments, **named)
        assert (value["verdict"] == "refused") == bool(value["reasons"])
        return [reason["code"] for reason in value["reasons"]]

    def written(self) -> None:
        """Promote for good, and commit."""
        done = self.promote("tuned", "--p95-ms", "1000", "--write")
        assert done.code == 0, done.out + done.err
        self.space.commit("Promote tuned over plain")

    def forged(self, name: str, change: Callable[[Any], object], folder: str = SECOND) -> None:
        """Alter a checked-in report so that it is sound, and check that in."""
        self.space.forge(self.root / folder / f"{name}.json", change)
        self.space.commit("a forged report")

    def rules(self, text: str) -> None:
        """Write other rules."""
        (self.policy / "promotion.toml").write_text(f'schema = "promotion-rules-v1"\n{text}')


def condition_of(value: Any, text: str) -> Any:
    """The condition of a name."""
    (found,) = [one for one in value["conditions"] if one["text"] == text]
    return found


def rule(*conditions: Mapping[str, Any], over: str = "incumbent") -> Rule:
    """A rule of conditions as TOML has them."""
    return Rule.model_validate_json(json.dumps({"over": over, "conditions": list(conditions)}))


def side(name: str, ranks: Mapping[str, int | None], *, limit: int = 10, **more: Any) -> Side:
    """One side whose queries have one relevant document each, at these ranks."""
    fields: dict[str, Any] = {
        "name": name,
        "backend": name,
        "queries": {query: (((1, rank),), limit) for query, rank in ranks.items()},
        "limit": limit,
        "task": {"corpus": "c"},
        "system": {"backend": name},
        "class_": "ci",
        **more,
    }
    return Side(**fields)


def view(candidate: Side, incumbent: Side, number: int = 1, **more: Any) -> View:
    """One evidence run of two such sides, distinct from others by its number."""
    from dataclasses import replace

    facts = EvidenceFacts(
        path=f"runs/{number}", form="reports", files={}, commit=f"{number:040x}", checked_in=True
    )
    sides = [replace(one, run_id=one.run_id or f"{one.name}-{number}") for one in (candidate, incumbent)]
    return View(facts=facts, candidate=sides[0], incumbent=sides[1], **more)
