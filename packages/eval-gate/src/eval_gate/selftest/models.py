"""What `eval-gate self-test` tells, in the form that machines read."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from pydantic import Field

from eval_core.models import Closed

#: What an attack changes: the report as a file, the policy, what was asked, what came back, or the set and backend for
#: real.
Kind = Literal["report", "policy", "set", "rankings", "measured", "null"]

#: The order in which they are told.
KINDS: tuple[Kind, ...] = get_args(Kind)

#: `caught`: all were; `survived`: an attack was not; `control-failed`: the workspace does not pass as it stands;
#: `could-not`: something could not be run.
Word = Literal["caught", "survived", "control-failed", "could-not"]


class About(NamedTuple):
    """An attack, and what names it."""

    kind: Kind
    name: str
    expected: tuple[str, ...]
    remedy: str


class Control(Closed):
    """Why the untouched workspace, or an untouched copy of it, does not pass."""

    arm: str = Field(description="Empty: the policy as a whole.")
    code: str
    message: str
    remedy: str | None = None


class Survivor(Closed):
    """An arm on which an attack was not caught for what it is."""

    arm: str
    codes: tuple[str, ...] = Field(description="What the gate said instead; empty: it passed.")
    message: str


class Skipped(Closed):
    """An arm, or a set, on which an attack was not tried, and why; arm is empty where it was tried on none."""

    arm: str
    why: str


class Attacked(Closed):
    """One way to make the gate lie, tried on every arm that it can be tried on."""

    kind: Kind
    name: str
    expected: tuple[str, ...] = Field(description="Reason codes, any of which names it.")
    arms: int = Field(ge=0, description="How many it was tried on and should be caught on.")
    caught: int = Field(ge=0)
    codes: tuple[str, ...] = Field(description="The codes that named it.")
    survivors: tuple[Survivor, ...] = ()
    not_asked: tuple[str, ...] = Field(
        default=(),
        description="Arms on which it passes, since the policy does not require what would catch it.",
    )
    requirement: str | None = Field(default=None, description="What the policy would have to require.")
    skipped: tuple[Skipped, ...] = ()
    remedy: str = Field(description="What to do where it survives.")


class Smallest(Closed):
    """The smallest regression of one kind that the policy catches."""

    amount: int | None = Field(
        description="Queries lost, or ranks that each hit falls by; null: even all of it passes."
    )
    points: float | None = Field(description="What it takes from the measure that failed, in points.")
    metric: str | None = Field(description="The measure that failed.")
    code: str | None = Field(description="The rule that caught it.")


class Regression(Closed):
    """How small a regression of an arm is caught."""

    arm: str
    n: int
    one_query_points: float
    easiest_first: Smallest = Field(description="Found queries lost, hits at rank 1 first.")
    deepest_first: Smallest = Field(description="Found queries lost, the deepest hit first: least harmful.")
    deeper: Smallest = Field(description="Every judged document so many ranks lower.")


class SelfTest(Closed):
    """The whole finding. `exit_code` is the script's."""

    schema_: Literal["self-test-v1"] = Field(default="self-test-v1", alias="schema")
    verdict: Word
    exit_code: Literal[0, 1, 3]
    arms: tuple[str, ...]
    quick: bool
    gradings: int = Field(description="How often the gate was asked.")
    control: tuple[Control, ...] = ()
    attacks: tuple[Attacked, ...] = ()
    regressions: tuple[Regression, ...] = ()
    problems: tuple[Control, ...] = Field(
        default=(), description="What could not be run, or an untouched copy that does not pass."
    )
    notes: tuple[str, ...] = ()
