"""What a promotion asks for (`policy/promotion.toml`), what it says, and the record that it leaves behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, computed_field, model_validator

from eval_core.errors import EvalError, Fault, Faults, Misuse, did_you_mean
from eval_core.files import read_text
from eval_core.models import NAME, Closed, line_in, parse_toml
from eval_core.scoring import metrics
from eval_gate.verdict import Reason, excluded

#: Below the policy's folder.
RULES = "promotion.toml"

#: Evidence runs that a promotion stands on at least: one run is a dated measurement with no noise under it.
FEWEST_RUNS = 2

#: Measures of the retrieval comparison contract, and what they are over the k documents that were asked for.
CONTRACT: Mapping[str, str] = {
    "any_relevant_at_k": "share of queries with a relevant document among the k",
    "avg_precision_at_k": "mean of relevant found / min(relevant, k)",
    "mean_reciprocal_rank": "mean of 1 / rank of the first relevant document",
    "missing_ground_truth": "judged paths at which no file stands, a count",
}

#: Counts of which fewer is better: a rule may ask that they are not higher, and nothing else of them.
FEWER = frozenset({"missing_ground_truth"})

Comparison = Literal["higher", "at-least-equal", "not-higher"]
_WORDS: Mapping[Comparison, str] = {
    "higher": "strictly higher",
    "at-least-equal": "at least equal",
    "not-higher": "not higher",
}


class Condition(Closed):
    """One thing that must be shown: a measure held against the incumbent's in every evidence run, or a check."""

    metric: str | None = Field(default=None, description="A measure, such as recall@10 or any_relevant_at_k.")
    is_: Comparison | None = Field(
        default=None, alias="is", description="With metric: the candidate's against the incumbent's."
    )
    check: Literal["smoke", "stable", "baselined", "every-query"] | None = Field(
        default=None,
        description="smoke: the runs show something. stable: all holds in `runs` consecutive runs. baselined: the "
        "incumbent has floors and a baseline. every-query, always asked: the candidate scores what the incumbent does.",
    )
    runs: Annotated[int, Field(ge=FEWEST_RUNS)] | None = Field(
        default=None, description="With check = 'stable': how many; 2."
    )

    @model_validator(mode="after")
    def _one_thing(self) -> Condition:
        if (self.metric is None) == (self.check is None):
            raise ValueError("give one of metric and check")
        if (self.metric is None) != (self.is_ is None):
            raise ValueError(
                "is = 'higher', 'at-least-equal' or 'not-higher' goes with metric, and metric with it"
            )
        if self.runs is not None and self.check != "stable":
            raise ValueError("runs goes with check = 'stable', and with nothing else")
        return self

    @property
    def wanted(self) -> int:
        """Evidence runs that a check of stability wants."""
        return self.runs or FEWEST_RUNS

    @property
    def text(self) -> str:
        """The condition in words."""
        if self.is_ is not None:
            return f"{self.metric} {_WORDS[self.is_]}"
        words = {
            "smoke": "the comparison smoke passes",
            "stable": f"stable over {self.wanted} consecutive runs",
            "baselined": "the incumbent is baselined",
            "every-query": "scores all that the incumbent does",
        }
        return words[self.check or "smoke"]


class Rule(Closed):
    """What must be shown to replace one incumbent."""

    over: str = Field(min_length=1, description="The incumbent: the name of an arm, or of its backend.")
    conditions: tuple[Condition, ...] = Field(min_length=1)

    @property
    def runs(self) -> int:
        """Evidence runs that it wants."""
        return max([FEWEST_RUNS, *(condition.wanted for condition in self.conditions)])


class Endpoint(Closed):
    """A backend that reaches a service: what the repository must say of it before it can be a default."""

    backend: str = Field(min_length=1, description="The name of a backend, or of an arm.")
    environment: str = Field(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="The operator's variable that names the endpoint."
    )
    option: str = Field(default="endpoint", description="The arm's option that names it in the repository.")
    documented: str = Field(min_length=1, description="A file of the repository: what happens when it fails.")
    fallback_option: str = Field(default="fallback", description="The arm's option that names the fallback.")
    fallback: str = Field(min_length=1, description="What answers offline, as it does today.")


class Rules(Closed):
    """The whole of `policy/promotion.toml`."""

    schema_: Literal["promotion-rules-v1"] = Field(alias="schema")
    rule: tuple[Rule, ...] = Field(min_length=1)
    endpoint: tuple[Endpoint, ...] = ()


def parse_rules(text: str, path: Path) -> Rules:
    """Read the text of the rules, as far as their form goes; see `read_rules`.

    Raises:
        Misuse, Faults: they are not TOML, or do not fit.
    """
    return parse_toml(text, Rules, path, "promotion rules")


def read_rules(path: Path) -> Rules:
    """Read the rules.

    Raises:
        Misuse: absent, or not TOML.
        Faults: unknown keys or measures, two rules for one incumbent, or a rule that compares nothing or
            asks for a candidate that is worse.
    """
    if not path.exists():
        raise Misuse(
            "rules-missing",
            "there are no rules, so nothing says what a promotion must show",
            file=path,
            mend='Write them, such as:  schema = "promotion-rules-v1"  and, below [[rule]],  over = "bm25"  and  '
            'conditions = [{ metric = "recall@10", is = "higher" }]',
        )
    text = read_text(path, "promotion rules")
    rules = parse_rules(text, path)
    if faults := list(_faults(rules, path, text)):
        raise Faults(faults, consequence="nothing was judged")
    return rules


def _faults(rules: Rules, path: Path, text: str) -> Iterator[Fault]:
    seen: set[str] = set()
    for place, rule in enumerate(rules.rule):
        keys = ["rule", f"[{place}]"]
        if rule.over in seen:
            line = line_in(text, [*keys, "over"])
            yield Fault(
                "it stands in two rules; join them", file=path, line=line, key="over", value=rule.over
            )
        seen.add(rule.over)
        line = line_in(text, [*keys, "conditions"])
        yield from (Fault(what, file=path, line=line, key="conditions") for what in problems(rule))
    for place, endpoint in enumerate(rules.endpoint):
        parts = endpoint.documented.split("/")
        if endpoint.documented.startswith("/") or ".." in parts:
            keys = ["endpoint", f"[{place}]", "documented"]
            what = "write it relative to the repository's top, with slashes"
            line = line_in(text, keys)
            yield Fault(what, file=path, line=line, key="documented", value=endpoint.documented)


def problems(rule: Rule) -> Iterator[str]:
    """Why a rule is not what it seems: it names an unknown measure, or lets a worse candidate through."""
    compared = [condition for condition in rule.conditions if condition.metric is not None]
    for condition in compared:
        name = condition.metric or ""
        if name not in CONTRACT and (problem := _unknown(name)):
            yield problem
        if (condition.is_ == "not-higher") == (name in FEWER):
            continue
        what, asks, instead = (
            ("a count of which fewer is better", "more", "not-higher")
            if name in FEWER
            else ("a measure of quality", "one that is worse", "at-least-equal")
        )
        yield (
            f"{name!r} is {what}, and {condition.is_!r} asks for {asks}; write "
            f'{{ metric = "{name}", is = "{instead}" }}'
        )
    if all(condition.metric in FEWER for condition in compared):
        yield (
            f"none compares a measure of quality with {rule.over!r}, so that any candidate could take its place; add "
            'one such as { metric = "recall@10", is = "higher" }'
        )


def _unknown(name: str) -> str | None:
    try:
        metrics.parse(name)
    except EvalError as error:
        near = did_you_mean(name, CONTRACT)
        return (
            f"no such measure {name!r}{near}  (of comparisons: {', '.join(CONTRACT)})" if near else str(error)
        )
    return None


def rule_for(rules: Rules, path: Path, arm: str, backend: str | None) -> Rule:
    """The rule of an incumbent, looked for by the arm's name, then by its backend's.

    Raises:
        Misuse: there is none.
    """
    for name in (arm, backend):
        for rule in rules.rule:
            if rule.over == name:
                return rule
    known = [rule.over for rule in rules.rule]
    over = repr(arm) if backend is None else f"{arm!r} or {backend!r}"
    raise Misuse(
        "rule-missing",
        f"there is no rule for promoting over {over}{did_you_mean(arm, known)}  (rules over: {', '.join(known)})",
        file=path,
        mend="Add a [[rule]] with over and conditions, in a reviewed commit of its own.",
    )


class Figures(Closed):
    """One measure in one evidence run, over the queries scored on both sides."""

    evidence: str = Field(description="The pair of runs, or the comparison's file.")
    n: int | None = Field(default=None, description="Queries scored on both sides.")
    candidate: float | None = Field(default=None, description="null: it does not have the measure.")
    incumbent: float | None = None
    difference: float | None = Field(default=None, description="Candidate minus incumbent.")
    low: float | None = Field(default=None, description="95% interval of the difference.")
    high: float | None = None
    p: float | None = Field(
        default=None, description="Two-sided: mid-p McNemar, or sign-flip. Shown; no condition rests on it."
    )
    holds: bool

    @computed_field(description="No loss larger than this, in points, at 95%: the lower end of the interval.")  # type: ignore[prop-decorator]
    @property
    def excludes(self) -> float | None:
        return None if self.low is None else excluded(self.low)


class Tested(Closed):
    """One condition, proven or not."""

    condition: Condition
    text: str
    proven: bool
    why: str
    runs: tuple[Figures, ...] = ()


class CitedRun(Closed):
    """A run of an arm, as its line in `policy/evidence/ARM.jsonl` has it."""

    run_id: str
    line: str = Field(description="The digest of the line.")


class CitedComparison(Closed):
    """A comparison of backends that is checked in."""

    file: str = Field(
        pattern=r"^[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)*$", description="Below `policy/promotions/`."
    )
    sha256: str = Field(description="Of its bytes.")
    commit: str = Field(description="The commit that checked it in.")
    candidate: str = Field(description="The backend in it that stands for the candidate.")
    incumbent: str = Field(description="The backend in it that stands for the incumbent.")


class Evidence(Closed):
    """What a promotion stands on: runs of both arms, pair by pair, or comparisons."""

    candidate: tuple[CitedRun, ...] = Field(description="Runs of the candidate; the last is its baseline.")
    incumbent: tuple[CitedRun, ...] = Field(default=(), description="None where comparisons are cited.")
    comparisons: tuple[CitedComparison, ...] = ()


class PromotionRecord(Closed):
    """`policy/promotions/NNNN-CANDIDATE.json`: who took whose place, by which rule, and on which evidence.

    No figure is kept: `eval-gate check` derives the conditions again from what is cited.
    """

    schema_: Literal["promotion-record-v1"] = Field(default="promotion-record-v1", alias="schema")
    number: int = Field(ge=1)
    candidate: str = Field(pattern=NAME)
    incumbent: str = Field(pattern=NAME)
    dataset: str
    reason: str
    rule: Rule
    evidence: Evidence


class FileChange(Closed):
    """A file that the promotion changes, and how."""

    file: str
    what: str


class Promotion(Closed):
    """What `eval-gate promote` says. `exit_code` is the script's."""

    schema_: Literal["promotion-v1"] = Field(default="promotion-v1", alias="schema")
    verdict: Literal["proven", "not-proven", "refused"]
    exit_code: Literal[0, 1]
    candidate: str
    incumbent: str
    dataset: str | None = None
    over: str = Field(description="Of the rule that was held to.")
    conditions: tuple[Tested, ...]
    evidence: Evidence
    reasons: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()
    changes: tuple[FileChange, ...] = ()
    written: bool = False
    record: str | None = Field(default=None, description="The record's file, where there is to be one.")
