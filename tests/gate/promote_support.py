"""What the tests of promotion share: arms measured at two commits of a real repository, and sides written by hand."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policy_support import resealed

from eval_core.policy.files import read_policy
from eval_gate.promotion.models import Promotion, Rule
from eval_gate.promotion.rules import Gathered, Side, View, judge
from eval_gate.promotion.state import Target, mixed

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
ARMS = ("plain", "same", "tuned", "short", "filtered")


def staged(space: Space) -> None:
    """Measure the arms at two commits, floor them, and commit that."""
    root = space.root
    root.mkdir(exist_ok=True)
    shutil.copytree(REPOSITORY / "datasets" / "memory", root / "memory")
    (root / "eval.toml").write_text(EVAL_TOML)
    (root / "policy").mkdir()
    shutil.copyfile(RULES, root / "policy" / "promotion.toml")
    for message in ("one", "two"):
        space.commit(message)
        done = space.core("measure", "-q")
        assert done.code == 0, done.err
    space.policy({arm: space.reports(arm) for arm in ARMS})
    space.commit("floors")


class Stage:
    """Such a workspace, with what the tests do to it."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.root = space.root
        self.policy = space.root / "policy"
        self.config = space.root / "eval.toml"
        self.record = self.policy / "promotions" / "0001-tuned.json"

    def promote(self, candidate: str = "tuned", *more: str | Path, over: str | None = "plain") -> Done:
        """Run the verb."""
        return self.space.gate("promote", candidate, *(("--over", over) if over else ()), *more)

    def answer(self, candidate: str = "tuned", *more: str | Path, over: str | None = "plain") -> Any:
        """What it says in JSON, for exit codes 0 and 1."""
        done = self.promote(candidate, *more, "--format", "json", over=over)
        assert done.code in (0, 1), done.err
        value = json.loads(done.out)
        assert value["exit_code"] == done.code
        assert (value["verdict"] == "refused") == bool(value["reasons"])
        return value

    def codes(self, *arguments: Any, **named: Any) -> list[str]:
        """The reason codes of that."""
        return [reason["code"] for reason in self.answer(*arguments, **named)["reasons"]]

    def change_run(self, arm: str, change: Callable[[Any], object], *, every: bool = False) -> None:
        """Change the baseline of an arm, or every run, with digests redone and the floors that follow; and commit."""
        lines = {name: self.space.lines(name) for name in ARMS}
        *others, last = lines[arm]
        lines[arm] = [*(resealed(line, change) if every else line for line in others), resealed(last, change)]
        self.space.policy(lines)
        self.space.commit("changed runs")

    def rules(self, text: str) -> None:
        """Write other rules."""
        (self.policy / "promotion.toml").write_text(f'schema = "promotion-rules-v1"\n{text}')

    def mixed(self, target: Target | None = None) -> list[str]:
        """What is mixed here, in words."""
        reasons = mixed(self.config, read_policy(self.policy), target)
        assert {(reason.code, reason.word) for reason in reasons} <= {("promotion-mixed", "refused")}
        return [reason.message for reason in reasons]


def condition_of(value: Any, text: str) -> Any:
    """The condition of a name."""
    (found,) = [one for one in value["conditions"] if one["text"] == text]
    return found


def rule(*conditions: Mapping[str, Any], over: str = "incumbent") -> Rule:
    """A rule of conditions as TOML has them."""
    return Rule.model_validate_json(json.dumps({"over": over, "conditions": list(conditions)}))


def rule_text(over: str, conditions: Iterable[Mapping[str, Any]]) -> str:
    """A rule as TOML."""
    rows = (", ".join(f"{key} = {json.dumps(value)}" for key, value in one.items()) for one in conditions)
    return f'[[rule]]\nover = "{over}"\nconditions = [{", ".join(f"{{ {row} }}" for row in rows)}]\n'


def side(ranks: Mapping[str, int | None], *, limit: int = 10, **more: Any) -> Side:
    """One side whose queries have one relevant document each, at these ranks."""
    return Side({query: ([(1, rank)], limit) for query, rank in ranks.items()}, limit, **more)


def judged(wanted: Rule, *pairs: tuple[Side, Side]) -> Promotion:
    """The answer on runs of such sides, the candidate first."""
    views = [View(f"run {number}", *pair) for number, pair in enumerate(pairs, 1)]
    return judge("new", "old", wanted, Gathered(views), "yes")
