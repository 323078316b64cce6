"""The commands of a shell script: each with why its failure would not fail the script, and why it may not be run."""

# long because: one walk over the syntax of a shell; taken apart, each part would need all of the others
from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from eval_tier.workflow.builtin import BUILTINS, Builtins, Sourced
from eval_tier.workflow.fates import nonzero
from eval_tier.workflow.models import Command, Gap, Place
from eval_tier.workflow.options import own_path, started
from eval_tier.workflow.state import (
    HOLE,
    MOST_DEPTH,
    UNKNOWN,
    After,
    Around,
    Function,
    State,
    Unsure,
    cannot_fail,
    filled,
    followers,
    in_background,
    named,
    parts,
    short,
    text_of,
)

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["HOLE", "MOST_BYTES", "UNKNOWN", "commands", "parser"]

#: Bytes of a script, and its commands.
MOST_BYTES, MOST_COMMANDS = 1_000_000, 5_000

_EXPRESSION = re.compile(r"\$\{\{.*?\}\}", re.DOTALL)
_OUTPUT = {">", ">>", "&>", "&>>", ">|"}
_LOOPS = ("while_statement", "until_statement", "for_statement", "c_style_for_statement")
_STATEMENTS = ("command", "list", "pipeline", "redirected_statement", "if_statement", "case_statement", "subshell",
               "compound_statement", "variable_assignment", "variable_assignments", "negated_command",
               "declaration_command", "test_command", "function_definition", *_LOOPS)  # fmt: skip


def commands(
    script: str,
    file: str,
    line: int,
    shell: str | Sequence[str] | None = None,
    runner: str = "ubuntu-latest",
    env: Mapping[str, str] | None = None,
    folder: str = ".",
    sourced: Sourced | None = None,
) -> tuple[list[Command], list[Gap]]:
    """The simple commands of a script in the order in which they are run, and the parts that cannot be read.

    Args:
        script: its text, whose first line is `line` of `file`.
        shell: as a step names it; None for the runner's own; `script` for a file that is run as a program, whose `#!`
            is read; `recipe` for a line of a Makefile; the words of a command line that starts a shell.
        env: values that its variables have.
        folder: where it is started, relative to the repository.
        sourced: finds the files that it sources, which are followed as if they were written in their place.
    """
    place = Place(file, line)
    options = started(script, shell, runner)
    if isinstance(options, str):
        return [], [Gap((place,), options)]
    if len(script) > MOST_BYTES:
        return [], [Gap((place,), f"the script has more than {MOST_BYTES:,} characters")]
    known = {name: value for name, value in (env or {}).items() if "${{" not in value}
    called = shell == "script" or not (shell is None or isinstance(shell, str))
    reader = _Reader(file, line, State(options, known, folder=folder), sourced, called)
    reader.text(script, Around())
    return reader.commands, reader.gaps


@functools.cache
def parser() -> Any:
    """A parser of bash."""
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


class _Reader(Builtins):
    def __init__(self, file: str, line: int, state: State, sourced: Sourced | None, called: bool) -> None:
        self.file, self.line, self.state = file, line, state
        self.sourced, self.called = sourced, called
        self.via: tuple[Place, ...] = ()
        self.fixed: int | None = None  # the line of a text inside of a command
        self.commands: list[Command] = []
        self.gaps: list[Gap] = []

    def text(self, script: str, around: Around) -> None:
        """Follow a text."""
        plain = _EXPRESSION.sub(lambda one: re.sub(r"[^\n]", HOLE, one[0]), script.replace("\r\n", "\n"))
        self.block(parser().parse(plain.encode("utf-8", "replace")).root_node.children, around)

    def gap(self, node: Node, what: str) -> None:
        if len(self.gaps) < 100:
            self.gaps.append(Gap((*self.via, self.place(node)), what))

    # ------------------------------------------------------------------ statements

    def block(self, nodes: Sequence[Node], around: Around) -> None:
        """Statements one after the other."""
        held = [node for node in nodes if node.is_named and node.type != "comment"]
        for place, node in enumerate(held):
            after: After = (held, place + 1, around.after)
            here = replace(around, after=after, depth=around.depth + 1, failed=around.failed and not place)
            for why in self.state.ends.values():
                here = here.doubted(why)
            if in_background(node):
                self.forked(node, here.process(self.waited(after, around)))
                continue
            if place < len(held) - 1:
                here = replace(here, status=self.captured(node, here))
            self.statement(node, here)

    def forked(self, node: Node | Sequence[Node], around: Around) -> None:
        """A statement, or several, in a process of its own: what it sets is gone afterwards."""
        outer, self.state = self.state, self.state.copy()
        if isinstance(node, Sequence):
            self.block(node, around)
        else:
            self.statement(node, around)
        self.state = outer

    def statement(self, node: Node, around: Around) -> None:
        if around.depth > MOST_DEPTH:
            self.gap(node, "is nested too deeply")
            return
        kind = node.type
        if kind == "ERROR" or (
            node.has_error and kind in ("command", "redirected_statement", "pipeline", "list")
        ):
            self.gap(node, "cannot be parsed as a shell's script")
        elif kind == "command":
            self.command(node, around)
        elif kind == "redirected_statement":
            self.redirected(node, around)
        elif kind == "list":
            self.joined(node, around)
        elif kind == "pipeline":
            self.pipeline(node, around)
        elif kind == "negated_command":
            for child in node.named_children:
                self.statement(child, around.asked("`!` turns its failure round"))
        elif kind == "if_statement":
            self.branch(node, around)
        elif kind in _LOOPS:
            self.loop(node, around)
        elif kind == "case_statement":
            self.case(node, around.doubted("it stands in a case"))
        elif kind == "function_definition":
            name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
            if name is not None and body is not None:
                doubt = around.doubt and f"which function {text_of(name)} is follows from a condition"
                if text_of(name) in BUILTINS:
                    self.state.ends["env"] = f"a function stands for `{text_of(name)}`"
                self.state.functions[text_of(name)] = Function(body, self.file, self.line, doubt)
        elif kind == "subshell":
            self.forked(node.children, around.process(self.fate(around)))
        elif kind == "compound_statement":
            self.block(node.children, around)
        elif kind == "variable_assignment":
            self.assignment(node, around)
        elif kind in ("variable_assignments", "declaration_command"):
            self.declaration(node, around)
        elif kind in (
            "test_command",
            "unset_command",
            "heredoc_body",
            "arithmetic_expansion",
            "variable_name",
        ) or (kind.endswith("_expression")):
            self.substitutions(node, around)
        else:
            self.inside(node, around.doubted(f"it stands in a part that is not read ({kind})"))

    def inside(self, node: Node, around: Around) -> None:
        """All commands somewhere inside a part, whatever leads to them."""
        for child in node.named_children:
            if child.type in _STATEMENTS:
                self.statement(child, around.inner())
            elif around.depth < MOST_DEPTH:
                self.inside(child, around.inner())

    def declaration(self, node: Node, around: Around) -> None:
        hides = node.type == "declaration_command"
        lost = "inside $(…) of a declaration, its failure is lost"
        words = text_of(node).split()
        for child in node.named_children:
            if child.type == "variable_assignment":
                self.assignment(child, around.process(lost) if hides else around, several=True)
        if hides and any(re.fullmatch(r"-\w*f\w*", word) for word in words[1:]) and words[0] != "readonly":
            self.state.ends["env"] = "functions that are exported may stand for its program"
        if hides and words[0] != "local" and re.search(r"\b(?:BASH_ENV|LD_PRELOAD)\b", text_of(node)):
            self.state.ends["env"] = f"`{words[0]}` changes what a shell or a program does"

    def redirected(self, node: Node, around: Around) -> None:
        body = node.child_by_field_name("body")
        first = len(self.commands)
        follows: list[Node] = []
        files = []
        for child in node.named_children:
            if child.type == "file_redirect" and _OUTPUT & {one.type for one in child.children}:
                target = child.child_by_field_name("destination")
                files += self.words(target, around) if target is not None else []
            elif (
                child.type == "heredoc_redirect"
            ):  # `cmd <<EOF | other`: what follows on the line stands inside
                follows += [
                    one for one in child.named_children if one.type in ("pipeline", "command", "list")
                ]
                self.substitutions(child, around)
        if body is not None:
            lost = Unsure(f"{short(follows[0])} follows on the line of its text") if follows else None
            self.statement(body, around.process(lost) if follows else around.inner())
        if files:
            for place in range(first, len(self.commands)):
                one = self.commands[place]
                self.commands[place] = replace(one, writes=(*one.writes, *files))
        for part in follows:
            self.statement(part, around.inner())

    def joined(self, node: Node, around: Around) -> None:
        """`left && right` and `left || right`."""
        left, right = node.named_children[0], node.named_children[-1]
        sign = next((child.type for child in node.children if child.type in ("&&", "||")), "&&")
        if sign == "||":
            why = f"|| {short(right)}"
            self.statement(left, around.asked(self.leads([right], replace(around, failed=True), why)))
            found = nonzero(text_of(left), turned=True)
            behind = replace(around.inner(), failed=True, failing=around.failing | found)
            self.statement(right, behind.doubted("it is run where what stands before || fails"))
            return
        if left.type == "negated_command":
            turned = self.leads([right], around, "`!` turns its failure round")
            for child in left.named_children:
                self.statement(child, around.asked(turned))
        else:
            self.statement(left, around.asked(around.status))
        found = nonzero(text_of(left))
        behind = replace(around.inner(), failed=False, failing=around.failing | found)
        # A failure on the left stops nothing: where it is lost, what is on the right may be left out in silence.
        if around.status is not None and not cannot_fail(left):
            behind = behind.doubted("it is run where what stands before && succeeds")
        self.statement(right, behind)

    def pipeline(self, node: Node, around: Around) -> None:
        stages = [child for child in node.named_children if child.type != "comment"]
        if stages and stages[0].type == "negated_command":
            around = around.asked("`!` turns its failure round")
            stages[:1] = stages[0].named_children
        self.stages(stages, around)

    def stages(self, stages: Sequence[Node], around: Around) -> None:
        fate = self.fate(around)
        for place, stage in enumerate(stages):
            here = around.process(fate)
            if place < len(stages) - 1 and not self.state.options.pipefail:
                here = around.process(f"a pipe into {short(stages[-1])} without pipefail")
            following = next(followers(around.after), None)
            if not place and here.status is not None and following and "PIPESTATUS[0]" in text_of(following):
                here = around.process(self.followed("PIPESTATUS[0]", None, around, here.status))
            self.forked(stage, here)

    def branch(self, node: Node, around: Around) -> None:
        """`if`: what is asked fails the script only where the branch that is taken then ends it with an error."""
        parts: list[tuple[list[Node], list[Node]]] = [([], [])]  # conditions and statements
        other: list[Node] = []
        seen = False
        for child in node.children:
            if child.type == "then":
                seen = True
            elif child.type == "elif_clause":
                where = [one.type for one in child.children].index("then") if "then" in [
                    one.type for one in child.children] else 0  # fmt: skip
                parts.append((named(child.children[:where]), named(child.children[where:])))
            elif child.type == "else_clause":
                other = named(child.children)
            elif child.is_named and child.type != "comment":
                parts[-1][seen].append(child)
        inner = around.doubted("it stands inside an if").inner()
        for place, (condition, body) in enumerate(parts):
            rest = [body for _, body in parts[place + 1 :]]
            self.condition(condition, body, other if not rest else None, inner if place else around)
            text = " ".join(map(text_of, condition))
            self.block(body, replace(inner, failed=False, failing=around.failing | nonzero(text)))
            around = replace(around, failing=around.failing | nonzero(text, turned=True))
        if other:
            turned = parts[-1][0][:1] and parts[-1][0][0].type == "negated_command"
            self.block(other, replace(inner, failed=not turned, failing=around.failing))

    def condition(
        self, nodes: Sequence[Node], body: Sequence[Node], other: Sequence[Node] | None, around: Around
    ) -> None:
        """The statements that an `if` asks; `other` is its `else`, None where an `elif` comes before that."""
        lost = "it is the condition of an if"
        last = nodes[-1] if nodes else None
        piped: list[Node] = []
        turned = last is not None and last.type == "negated_command"
        if last is not None and last.type == "pipeline" and last.named_children[0].type == "negated_command":
            turned, piped = True, [*last.named_children[0].named_children, *last.named_children[1:]]
        if turned:
            found = self.leads(body, replace(around, failed=False), lost)
        elif other is None:
            found = Unsure("it is asked by an if that goes on with elif")
        else:
            found = self.leads(other, replace(around, failed=True), lost)
        if last is not None:
            self.block(nodes[:-1], replace(around.asked(lost), after=None))
        if piped:
            self.stages(piped, around.asked(found))
        elif last is not None:
            for one in last.named_children if turned else [last]:
                self.statement(one, around.asked(found))

    def case(self, node: Node, around: Around) -> None:
        value = node.child_by_field_name("value")
        if value is not None:
            self.word(value, around)
        for item in node.named_children:
            if item.type == "case_item":
                values = {one.id for one in item.children_by_field_name("value")}
                self.block([one for one in item.children if one.id not in values], around)

    def loop(self, node: Node, around: Around) -> None:
        body = node.child_by_field_name("body")
        doubt: str | None = "it stands inside a loop"
        if node.type == "for_statement" and node.children[0].type == "for":
            values = node.children_by_field_name("value")
            literal = ("word", "number", "raw_string")
            if values and all(child.type in literal or not child.named_child_count for child in values):
                doubt = None
            for value in values:
                self.words(value, around)
            name = node.child_by_field_name("variable")
            if name is not None:
                self.state.values[text_of(name)] = UNKNOWN
        else:
            for child in node.children_by_field_name("condition"):
                if child.is_named:
                    self.statement(child, around.asked("it is the condition of a loop"))
        inner = around.inner()
        if not self.state.options.stops or around.tested:
            inner = replace(inner, status="a loop goes on after a failure")
        if doubt is not None:
            inner = inner.doubted(doubt)
        first, options, lost = len(self.commands), self.state.options, self.state.lost
        if body is not None:
            again = [one for one in body.children if one.is_named and one.type != "comment"]
            self.block(body.children, replace(inner, after=(again, 0, around.after)))
        if self.state.options != options or self.state.lost is not lost:
            for place in range(first, len(self.commands)):
                one = self.commands[place]
                self.commands[place] = replace(
                    one, doubt=one.doubt or "what the loop sets holds in its next turn"
                )
        self.state.ends.pop("loop", None)

    def assignment(self, node: Node, around: Around, *, several: bool = False) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None:
            return
        # The status is that of the last `$(…)`.
        own = sum(one.type == "command_substitution" for one in parts(node.parent if several else node)) < 2
        words = self.words(value, around, own=own) if value is not None else [""]
        sure = around.doubt is None and len(words) <= 1 and "+=" not in {one.type for one in node.children}
        self.state.values[text_of(name)] = (words[0] if words else "") if sure else UNKNOWN
        self.state.sources[text_of(name)] = text_of(value) if value is not None else ""
        if text_of(name) == "PATH" and value is not None and own_path(text_of(value)):
            self.state.ends["env"] = "a folder of the repository comes first in PATH"
        elif text_of(name) in ("BASH_ENV", "LD_PRELOAD"):
            self.state.ends["env"] = f"{text_of(name)} changes what a shell or a program does"

    # ------------------------------------------------------------------ commands

    def command(self, node: Node, around: Around) -> None:
        env: dict[str, str] = {}
        words: list[str] = []
        for child in node.named_children:
            if child.type == "variable_assignment":
                name, value = child.child_by_field_name("name"), child.child_by_field_name("value")
                if name is not None:
                    env[text_of(name)] = " ".join(self.words(value, around)) if value is not None else ""
                    if text_of(name) == "PATH" and value is not None and own_path(text_of(value)):
                        around = around.doubted("a folder of the repository comes first in PATH")
                    elif text_of(name) in ("BASH_ENV", "LD_PRELOAD"):
                        around = around.doubted(f"{text_of(name)} changes what a shell or a program does")
            elif child.type == "command_name":
                for inner in child.children:
                    words += self.words(inner, around)
            elif child.type not in ("herestring_redirect", "file_redirect", "comment"):
                words += self.words(child, around)
        if not words:
            return
        program = words[0]
        if program in self.state.functions:
            if program in around.calls or len(around.calls) >= 8:
                self.gap(node, f"the function {program} calls itself, or calls are nested too deeply")
            else:
                self.function(node, program, tuple(words[1:]), around)
            return
        if program in ("command", "builtin"):
            rest = words[2:] if words[1:2] == ["-p"] else words[1:]
            if rest[:1] and rest[0] in BUILTINS:
                program, words = rest[0], rest
        if program in self.state.aliases:
            around = around.doubted(f"an alias may stand for {program}")
        if self.builtin(node, program, words, around):
            return
        if len(self.commands) >= MOST_COMMANDS:
            if len(self.commands) == MOST_COMMANDS:
                self.gap(node, f"there are more than {MOST_COMMANDS:,} commands")
            return
        mask, doubt = self.fate(around), around.doubt
        if mask is None or (isinstance(mask, Unsure) and self.state.lost is not None):
            mask = self.state.lost
        if isinstance(mask, Unsure):
            mask, doubt = None, doubt or str(mask)
        self.commands.append(
            Command(
                tuple(words), (*self.via, self.place(node)), mask, doubt, env=env, folder=self.state.folder
            )
        )

    def function(self, node: Node, name: str, arguments: tuple[str, ...], around: Around) -> None:
        called, state = self.state.functions[name], self.state
        file, line, via, outer = self.file, self.line, self.via, state.arguments
        if called.file != file:
            self.via = (*via, self.place(node))
        self.file, self.line, state.arguments = called.file, called.line, arguments
        fate = self.fate(around)
        here = replace(around, status=fate, leave=fate, after=None, depth=around.depth + 1,
                       calls=(*around.calls, name))  # fmt: skip
        self.statement(called.body, here.doubted(called.doubt) if called.doubt else here)
        self.file, self.line, self.via, state.arguments = file, line, via, outer
        state.ends.pop("return", None)

    def words(self, node: Node, around: Around, *, own: bool = False) -> list[str]:
        """The words that an argument comes to; `own` where the failure of a $(…) in it is the statement's."""
        if text_of(node) in ('"$@"', "$@", '"${@}"') and not own:
            return list(self.state.arguments) if self.state.arguments is not None else [UNKNOWN]
        if node.type in ("simple_expansion", "expansion") and not own:
            value = self.value(node)
            return value.split() if UNKNOWN not in value else [UNKNOWN]
        return [self.word(node, around, own)]

    def word(self, node: Node, around: Around, own: bool = False) -> str:
        kind = node.type
        if kind in ("simple_expansion", "expansion"):
            return self.value(node)
        if kind in ("command_substitution", "process_substitution"):
            options = self.state.options
            if not options.inherits:
                self.state.options = replace(options, stops=False)
            lost = "inside $(…), its failure is lost"
            outer = around if options.inherits or own else replace(around, tested=False)
            fate = around.exit if options.stops and not around.tested else around.status
            self.forked(node.children, outer.process(fate if own else lost))
            self.state.options = options
            return UNKNOWN
        if kind == "raw_string":
            return filled(text_of(node)[1:-1])
        if kind in ("concatenation", "command_name"):
            return "".join(self.word(child, around, own) for child in node.children)
        if kind == "string":
            out, end = [], node.start_byte + 1
            raw = node.text or b""
            for child in node.named_children:
                out.append(
                    raw[end - node.start_byte : child.start_byte - node.start_byte].decode("utf-8", "replace")
                )
                out.append(
                    text_of(child) if child.type == "string_content" else self.word(child, around, own)
                )
                end = child.end_byte
            out.append(raw[end - node.start_byte : len(raw) - 1].decode("utf-8", "replace"))
            return filled(re.sub(r'\\(["\\$`])', r"\1", "".join(out)))
        if kind in ("word", "number", "string_content", "extglob_pattern", "regex", "variable_name"):
            return filled(re.sub(r"\\\n", "", text_of(node)).replace("\\", ""))
        if kind in ("ansi_c_string", "brace_expression"):
            return UNKNOWN
        if kind in ("arithmetic_expansion", "array"):
            self.substitutions(node, around)
            return UNKNOWN
        return filled(text_of(node))

    def value(self, node: Node) -> str:
        found = re.fullmatch(r"\$\{?([A-Za-z_]\w*|[1-9])\}?", text_of(node))
        if found is None:
            return UNKNOWN
        if found[1].isdigit():
            given = self.state.arguments
            return (
                UNKNOWN if given is None else given[int(found[1]) - 1] if int(found[1]) <= len(given) else ""
            )
        return self.state.values.get(found[1], UNKNOWN)

    def substitutions(self, node: Node, around: Around) -> None:
        for child in node.named_children:
            if child.type in ("command_substitution", "process_substitution"):
                self.word(child, around)
            elif around.depth < MOST_DEPTH:
                self.substitutions(child, around.inner())

    # ------------------------------------------------------------------ what becomes of a failure
