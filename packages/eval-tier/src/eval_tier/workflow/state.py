"""What holds for a statement of a shell script, and what the commands before it have set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from eval_tier.workflow.options import Options

if TYPE_CHECKING:
    from tree_sitter import Node

#: Levels of a script within one another.
MOST_DEPTH = 60

#: What stands for a value that is not known, in the words of a command.
UNKNOWN = "\0"

#: In the text of a script, what stands for a value that is not known, such as `${{ … }}`: a letter that no script has.
HOLE = "\ue000"

#: The statements that follow, and those that follow what they stand in.
After = tuple[Sequence["Node"], int, Any] | None


class Unsure(str):
    """Why a failure may be lost, where it is not known whether it is."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Around:
    """What holds for a statement.

    Attributes:
        status, leave, exit: why a failure is lost that becomes the statement's status, that `return` or that `exit`
            gives away; None where it fails the script.
        tested: its status is asked for, so that `-e` does not hold inside.
        doubt: why it may not be run.
        failed: `$?` is the status of a failure, when it begins.
        failing: variables that are not 0.
    """

    status: str | None = None
    leave: str | None = None
    exit: str | None = None
    tested: bool = False
    doubt: str | None = None
    failed: bool = False
    failing: frozenset[str] = frozenset()
    after: After = None
    depth: int = 0
    calls: tuple[str, ...] = ()

    def process(self, fate: str | None) -> Around:
        """Inside of a process of its own, of whose failure becomes what `fate` says."""
        return replace(self, status=fate, leave=fate, exit=fate, after=None, depth=self.depth + 1)

    def asked(self, fate: str | None) -> Around:
        """Where the status is asked for; a failure is lost for the reason `fate`."""
        return replace(self, status=fate, tested=True, failed=False, depth=self.depth + 1)

    def doubted(self, why: str) -> Around:
        return self if self.doubt else replace(self, doubt=why)

    def inner(self) -> Around:
        return replace(self, depth=self.depth + 1)


@dataclass(frozen=True, slots=True)
class Function:
    body: Node
    file: str
    line: int
    doubt: str | None


@dataclass
class State:
    """What earlier commands have set. `ends`: why what follows may not be run, by how far that holds."""

    options: Options
    values: dict[str, str]
    sources: dict[str, str] = field(default_factory=dict)  # the text of a value that is not known
    folder: str = "."
    arguments: tuple[str, ...] | None = None
    functions: dict[str, Function] = field(default_factory=dict)
    aliases: frozenset[str] = frozenset()
    ends: dict[str, str] = field(default_factory=dict)
    lost: str | None = None  # by a trap, or by an option that may be set

    def copy(self) -> State:
        return replace(
            self,
            values=dict(self.values),
            sources=dict(self.sources),
            functions=dict(self.functions),
            ends=dict(self.ends),
        )


def text_of(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def walk(after: After) -> Iterator[tuple[Node, After]]:
    """The statements that follow, each with those that follow it."""
    while after is not None:
        held, place, outer = after
        for at in range(place, len(held)):
            yield held[at], (held, at + 1, outer)
        after = outer


def followers(after: After) -> Iterator[Node]:
    return (node for node, _ in walk(after))


def named(nodes: Sequence[Node]) -> list[Node]:
    return [node for node in nodes if node.is_named and node.type != "comment"]


def parts(node: Node | None, depth: int = 0) -> Iterator[Node]:
    """The parts of a word, but not those of a `$(…)` in it."""
    for child in node.named_children if node is not None and depth < 10 else ():
        yield child
        if child.type != "command_substitution":
            yield from parts(child, depth + 1)


def in_background(node: Node) -> bool:
    """Whether a statement is run in the background."""
    return node.next_sibling is not None and node.next_sibling.type == "&"


def cannot_fail(node: Node) -> bool:
    """Whether a statement cannot fail."""
    return node.type == "command" and text_of(node).split()[:1] in (["true"], [":"], ["echo"])


def filled(text: str) -> str:
    return re.sub(f"{HOLE}+", UNKNOWN, text) if HOLE in text else text


def short(node: Node) -> str:
    text = " ".join(filled(text_of(node)).replace(UNKNOWN, "…").split())
    return text if len(text) <= 40 else f"{text[:39]}…"
