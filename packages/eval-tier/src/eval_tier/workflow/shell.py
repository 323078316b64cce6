"""The commands of a shell script: each with why its failure would not fail the script, and why it may not be run."""

# long because: one walk over the syntax of a shell; taken apart, each part would need all of the others
from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from eval_tier.workflow.fates import STATUS, STEERS, Unsure, asked, kept, mentions, summed, text_of, used
from eval_tier.workflow.models import Command, Gap, Place
from eval_tier.workflow.options import Options, changed, own_path, started

if TYPE_CHECKING:
    from tree_sitter import Node

#: Bytes of a script, levels within one another, commands of one script, and statements that are looked at for the use
#: of one failure.
MOST_BYTES, MOST_DEPTH, MOST_COMMANDS, MOST_AFTER = 1_000_000, 60, 5_000, 300

#: What stands for a value that is not known, in the words of a command.
UNKNOWN = "\0"

#: In the text of a script, what stands for a value that is not known, such as `${{ … }}`: a letter that no script has.
HOLE = "\ue000"

_EXPRESSION = re.compile(r"\$\{\{.*?\}\}", re.DOTALL)
_OUTPUT = {">", ">>", "&>", "&>>", ">|"}
_LOOPS = ("while_statement", "until_statement", "for_statement", "c_style_for_statement")
_STATEMENTS = ("command", "list", "pipeline", "redirected_statement", "if_statement", "case_statement", "subshell",
               "compound_statement", "variable_assignment", "variable_assignments", "negated_command",
               "declaration_command", "test_command", "function_definition", *_LOOPS)  # fmt: skip
_ROOT = re.compile(r"git rev-parse --show-toplevel|\$\{?GITHUB_WORKSPACE\b|\$\{?CI_PROJECT_DIR\b")
_OWN_FOLDER = re.compile(
    r"\bdirname\b.*?(?:\$\{?0|BASH_SOURCE)|\$\{(?:0|BASH_SOURCE(?:\[0\])?)%/\*\}", re.DOTALL
)

_BUILTINS = ("exit", "return", "break", "continue", "exec", "set", "shopt", "trap", "eval", ".", "source", "alias", "cd",
             "pushd", "popd", "hash", ":", "true", "false", "test", "[", "wait", "unset", "export")  # fmt: skip

#: A statement after which a failure is still to be looked for further on.
_GOES_ON = Unsure("")

#: The statements that follow, and those that follow what they stand in.
_After = tuple[Sequence["Node"], int, Any] | None

#: The path and the text of a file that is sourced, by its path as written and the folder; None where there is none.
Sourced = Callable[[str, str], tuple[str, str] | None]


@dataclass(frozen=True, slots=True)
class _Around:
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
    after: _After = None
    depth: int = 0
    calls: tuple[str, ...] = ()

    def process(self, fate: str | None) -> _Around:
        """Inside of a process of its own, of whose failure becomes what `fate` says."""
        return replace(self, status=fate, leave=fate, exit=fate, after=None, depth=self.depth + 1)

    def asked(self, fate: str | None) -> _Around:
        """Where the status is asked for; a failure is lost for the reason `fate`."""
        return replace(self, status=fate, tested=True, failed=False, depth=self.depth + 1)

    def doubted(self, why: str) -> _Around:
        return self if self.doubt else replace(self, doubt=why)

    def inner(self) -> _Around:
        return replace(self, depth=self.depth + 1)


@dataclass(frozen=True, slots=True)
class _Function:
    body: Node
    file: str
    line: int
    doubt: str | None


@dataclass
class _State:
    """What earlier commands have set. `ends`: why what follows may not be run, by how far that holds."""

    options: Options
    values: dict[str, str]
    sources: dict[str, str] = field(default_factory=dict)  # the text of a value that is not known
    folder: str = "."
    arguments: tuple[str, ...] | None = None
    functions: dict[str, _Function] = field(default_factory=dict)
    aliases: frozenset[str] = frozenset()
    ends: dict[str, str] = field(default_factory=dict)
    lost: str | None = None  # by a trap, or by an option that may be set

    def copy(self) -> _State:
        return replace(
            self,
            values=dict(self.values),
            sources=dict(self.sources),
            functions=dict(self.functions),
            ends=dict(self.ends),
        )


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
    reader = _Reader(file, line, _State(options, known, folder=folder), sourced, called)
    reader.text(script, _Around())
    return reader.commands, reader.gaps


@functools.cache
def parser() -> Any:
    """A parser of bash."""
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


class _Reader:
    def __init__(self, file: str, line: int, state: _State, sourced: Sourced | None, called: bool) -> None:
        self.file, self.line, self.state = file, line, state
        self.sourced, self.called = sourced, called
        self.via: tuple[Place, ...] = ()
        self.fixed: int | None = None  # the line of a text inside of a command
        self.commands: list[Command] = []
        self.gaps: list[Gap] = []

    def text(self, script: str, around: _Around) -> None:
        """Follow a text."""
        plain = _EXPRESSION.sub(lambda one: re.sub(r"[^\n]", HOLE, one[0]), script.replace("\r\n", "\n"))
        self.block(parser().parse(plain.encode("utf-8", "replace")).root_node.children, around)

    def place(self, node: Node) -> Place:
        return Place(self.file, self.fixed if self.fixed is not None else self.line + node.start_point[0])

    def gap(self, node: Node, what: str) -> None:
        if len(self.gaps) < 100:
            self.gaps.append(Gap((*self.via, self.place(node)), what))

    def fate(self, around: _Around) -> str | None:
        """Why the failure of a command is lost."""
        return around.exit if self.state.options.stops and not around.tested else around.status

    # ------------------------------------------------------------------ statements

    def block(self, nodes: Sequence[Node], around: _Around) -> None:
        """Statements one after the other."""
        held = [node for node in nodes if node.is_named and node.type != "comment"]
        for place, node in enumerate(held):
            after: _After = (held, place + 1, around.after)
            here = replace(around, after=after, depth=around.depth + 1, failed=around.failed and not place)
            for why in self.state.ends.values():
                here = here.doubted(why)
            if _behind(node):
                self.forked(node, here.process(self.waited(after, around)))
                continue
            if place < len(held) - 1:
                here = replace(here, status=self.captured(node, here))
            self.statement(node, here)

    def captured(self, node: Node, around: _Around) -> str | None:
        """What becomes of the status of a statement that is not the last one."""
        if not (self.state.options.stops and not around.tested):
            why = "`set -e` does not hold in what is tested" if self.state.options.stops else "no `set -e`"
            lost = f"the script goes on after a failure ({why})"
        elif node.type == "list":
            lost = "what stands before && may fail in silence"
        else:
            lost = "the script goes on after it"
        return self.followed("?", None, around, lost)

    def waited(self, after: _After, around: _Around) -> str | None:
        """What becomes of the failure of a command in the background, which `wait $!` gives."""
        lost = "it runs in the background (&)"
        name = "!"
        for place, node in enumerate(_following(after)):
            text = text_of(node)
            if place > 50:
                break
            found = re.fullmatch(r"([A-Za-z_]\w*)=\"?\$!\"?", text)
            if found and name == "!":
                name = found[1]
            elif (found and found[1] == name) or (name == "!" and _behind(node)):
                break
            elif re.fullmatch(rf"wait \"?\$\{{?{re.escape(name)}\}}?\"?", text):
                if self.state.options.stops and not around.tested:
                    return around.exit
                return Unsure("whether its failure counts rests on `wait`")
            elif "wait" in text:
                return Unsure("whether its failure counts rests on `wait`")
            elif name == "!" and place:
                break
        return lost

    def forked(self, node: Node | Sequence[Node], around: _Around) -> None:
        """A statement, or several, in a process of its own: what it sets is gone afterwards."""
        outer, self.state = self.state, self.state.copy()
        if isinstance(node, Sequence):
            self.block(node, around)
        else:
            self.statement(node, around)
        self.state = outer

    def statement(self, node: Node, around: _Around) -> None:
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
                if text_of(name) in _BUILTINS:
                    self.state.ends["env"] = f"a function stands for `{text_of(name)}`"
                self.state.functions[text_of(name)] = _Function(body, self.file, self.line, doubt)
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

    def inside(self, node: Node, around: _Around) -> None:
        """All commands somewhere inside a part, whatever leads to them."""
        for child in node.named_children:
            if child.type in _STATEMENTS:
                self.statement(child, around.inner())
            elif around.depth < MOST_DEPTH:
                self.inside(child, around.inner())

    def declaration(self, node: Node, around: _Around) -> None:
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

    def redirected(self, node: Node, around: _Around) -> None:
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
            lost = Unsure(f"{_short(follows[0])} follows on the line of its text") if follows else None
            self.statement(body, around.process(lost) if follows else around.inner())
        if files:
            for place in range(first, len(self.commands)):
                one = self.commands[place]
                self.commands[place] = replace(one, writes=(*one.writes, *files))
        for one in follows:
            self.statement(one, around.inner())

    def joined(self, node: Node, around: _Around) -> None:
        """`left && right` and `left || right`."""
        left, right = node.named_children[0], node.named_children[-1]
        sign = next((child.type for child in node.children if child.type in ("&&", "||")), "&&")
        if sign == "||":
            why = f"|| {_short(right)}"
            self.statement(left, around.asked(self.leads([right], replace(around, failed=True), why)))
            failing = _failing(text_of(left), turned=True)
            behind = replace(around.inner(), failed=True, failing=around.failing | failing)
            self.statement(right, behind.doubted("it is run where what stands before || fails"))
            return
        if left.type == "negated_command":
            turned = self.leads([right], around, "`!` turns its failure round")
            for child in left.named_children:
                self.statement(child, around.asked(turned))
        else:
            self.statement(left, around.asked(around.status))
        failing = _failing(text_of(left))
        behind = replace(around.inner(), failed=False, failing=around.failing | failing)
        # A failure on the left stops nothing: where it is lost, what is on the right may be left out in silence.
        if around.status is not None and not _sure(left):
            behind = behind.doubted("it is run where what stands before && succeeds")
        self.statement(right, behind)

    def pipeline(self, node: Node, around: _Around) -> None:
        stages = [child for child in node.named_children if child.type != "comment"]
        if stages and stages[0].type == "negated_command":
            around = around.asked("`!` turns its failure round")
            stages[:1] = stages[0].named_children
        self.stages(stages, around)

    def stages(self, stages: Sequence[Node], around: _Around) -> None:
        fate = self.fate(around)
        for place, stage in enumerate(stages):
            here = around.process(fate)
            if place < len(stages) - 1 and not self.state.options.pipefail:
                here = around.process(f"a pipe into {_short(stages[-1])} without pipefail")
            following = next(_following(around.after), None)
            if not place and here.status is not None and following and "PIPESTATUS[0]" in text_of(following):
                here = around.process(self.followed("PIPESTATUS[0]", None, around, here.status))
            self.forked(stage, here)

    def branch(self, node: Node, around: _Around) -> None:
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
                parts.append((_named(child.children[:where]), _named(child.children[where:])))
            elif child.type == "else_clause":
                other = _named(child.children)
            elif child.is_named and child.type != "comment":
                parts[-1][seen].append(child)
        inner = around.doubted("it stands inside an if").inner()
        for place, (condition, body) in enumerate(parts):
            rest = [body for _, body in parts[place + 1 :]]
            self.condition(condition, body, other if not rest else None, inner if place else around)
            text = " ".join(map(text_of, condition))
            self.block(body, replace(inner, failed=False, failing=around.failing | _failing(text)))
            around = replace(around, failing=around.failing | _failing(text, turned=True))
        if other:
            turned = parts[-1][0][:1] and parts[-1][0][0].type == "negated_command"
            self.block(other, replace(inner, failed=not turned, failing=around.failing))

    def condition(
        self, nodes: Sequence[Node], body: Sequence[Node], other: Sequence[Node] | None, around: _Around
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

    def case(self, node: Node, around: _Around) -> None:
        value = node.child_by_field_name("value")
        if value is not None:
            self.word(value, around)
        for item in node.named_children:
            if item.type == "case_item":
                values = {one.id for one in item.children_by_field_name("value")}
                self.block([one for one in item.children if one.id not in values], around)

    def loop(self, node: Node, around: _Around) -> None:
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
        if body is not None:
            again = [one for one in body.children if one.is_named and one.type != "comment"]
            self.block(body.children, replace(inner, after=(again, 0, around.after)))
        self.state.ends.pop("loop", None)

    def assignment(self, node: Node, around: _Around, *, several: bool = False) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None:
            return
        # The status is that of the last `$(…)`.
        own = sum(one.type == "command_substitution" for one in _inside(node.parent if several else node)) < 2
        words = self.words(value, around, own=own) if value is not None else [""]
        sure = around.doubt is None and len(words) <= 1 and "+=" not in {one.type for one in node.children}
        self.state.values[text_of(name)] = (words[0] if words else "") if sure else UNKNOWN
        self.state.sources[text_of(name)] = text_of(value) if value is not None else ""
        if text_of(name) == "PATH" and value is not None and own_path(text_of(value)):
            self.state.ends["env"] = "a folder of the repository comes first in PATH"
        elif text_of(name) in ("BASH_ENV", "LD_PRELOAD"):
            self.state.ends["env"] = f"{text_of(name)} changes what a shell or a program does"

    # ------------------------------------------------------------------ commands

    def command(self, node: Node, around: _Around) -> None:
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
            if rest[:1] and rest[0] in _BUILTINS:
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

    def function(self, node: Node, name: str, arguments: tuple[str, ...], around: _Around) -> None:
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

    def builtin(self, node: Node, program: str, words: Sequence[str], around: _Around) -> bool:
        """A command that changes the shell itself; whether it is no command of its own."""
        state = self.state
        if program in ("exit", "return", "break", "continue") or (program == "exec" and len(words) > 1):
            self.leave(node, program, words, around)
            return program != "exec"
        if program == "set":
            self.set(words[1:], around)
        elif program == "shopt" and any(re.fullmatch(r"-\w*o\w*", word) for word in words):
            flags = "".join(word for word in words[1:] if word.startswith("-"))
            on = "+o" if "u" in flags else "-o"
            self.set([x for w in words[1:] if not w.startswith("-") for x in (on, w)], around)
        elif program == "shopt" and "inherit_errexit" in words and "-s" in words and not around.doubt:
            state.options = replace(state.options, inherits=True)
        elif program == "trap":
            self.trap(words[1:], around)
        elif program == "eval" and len(words) > 1:
            script = " ".join(words[1:])
            if UNKNOWN in script:
                self.gap(node, "what `eval` runs follows from a value that is not known")
                state.ends["env"] = "`eval` of a value that is not known comes before it"
            else:
                self.within(node, script, self.file, self.place(node).line or 1, around, fixed=True)
        elif program in (".", "source") and len(words) > 1:
            found = self.sourced(words[1], state.folder) if self.sourced is not None else None
            if found is not None and len(around.calls) < 8:
                self.within(node, found[1], found[0], 1, around)
                return True
            if self.sourced is not None and words[1] == UNKNOWN:
                state.ends["env"] = "a file that is not known is sourced before it"
            return False
        elif program == "alias":
            state.aliases |= {word.split("=", 1)[0] for word in words[1:] if "=" in word}
            return False
        elif program == "cd" and len(words) > 1:
            self.cd(node, [word for word in words[1:] if word not in ("-P", "-L", "--")], around)
        elif program in ("pushd", "popd"):
            state.folder = UNKNOWN
        elif program == "hash" and "-p" in words:
            state.ends["env"] = "`hash -p` changes which program a name stands for"
        else:
            return program == ":"
        return True

    def within(
        self, node: Node, script: str, file: str, line: int, around: _Around, *, fixed: bool = False
    ) -> None:
        """A text that the same shell runs."""
        outer = self.file, self.line, self.via, self.fixed
        if not fixed:
            self.via = (*self.via, self.place(node))
        self.file, self.line, self.fixed = file, line, line if fixed else None
        calls = (*around.calls, f"\0{file if not fixed else script}")
        if around.calls.count(calls[-1]) or len(calls) > 8:
            self.state.ends["env"] = f"{file} sources itself"
        else:
            fate = self.fate(around)
            self.text(script, replace(around, status=fate, leave=around.leave if fixed else fate, calls=calls,
                                      after=None, depth=around.depth + 1))  # fmt: skip
        self.file, self.line, self.via, self.fixed = outer
        if not fixed:
            self.state.ends.pop("return", None)

    def leave(self, node: Node, program: str, words: Sequence[str], around: _Around) -> None:
        """What follows `exit` and the like is not run; nothing is in doubt where the script then fails."""
        shown = " ".join(words).replace(UNKNOWN, "…")
        scope = {"return": "return", "break": "loop", "continue": "loop"}.get(program, "exit")
        if around.doubt is None:
            self.state.ends.setdefault(scope, f"it stands after `{shown}`")
            return
        written = text_of(node).split()
        code = written[1] if len(written) == 2 else "$?" if len(words) == 1 else ""
        fails = program in ("exit", "return") and self.code(code, around)
        lost = around.exit if program == "exit" else around.leave if around.calls else self.fate(around)
        if not fails or lost is not None:
            self.state.ends.setdefault(scope, f"`{shown}` may come before it")

    def set(self, words: Sequence[str], around: _Around) -> None:
        """`set`, by itself or with arguments that are none of options."""
        if "--" in words:
            at = list(words).index("--")
            self.state.arguments = tuple(words[at + 1 :]) if not around.doubt else None
            words = words[:at]
        if not words or not words[0].startswith(("-", "+", UNKNOWN)):
            return
        found = changed(words, self.state.options)
        if found is None:
            shown = " ".join(words).replace(UNKNOWN, "…")
            self.state.ends.setdefault("env", f"`set {shown}` may change what is run")
        elif around.doubt is None:
            self.state.options = found
        elif (self.state.options.stops and not found.stops) or (
            self.state.options.pipefail and not found.pipefail
        ):
            self.state.lost = self.state.lost or Unsure("`set +e` or `+o pipefail` may come before it")

    def trap(self, words: Sequence[str], around: _Around) -> None:
        """A trap that may end the script with 0, or change what holds in it."""
        if words[:1] == ["--"]:
            words = words[1:]
        if len(words) < 2 or words[0].startswith("-"):
            if words and words[0] == "-" and not around.doubt:
                self.state.lost = None
            return
        body = words[0]
        for _ in range(3):
            body = re.sub(
                r"[\w-]+", lambda one: text_of(self.state.functions[one[0]].body) if one[0] in self.state.functions
                else one[0], body[:10_000],
            )  # fmt: skip
        saved = re.match(r"\{?\s*(?:local\s+)?(\w+)=\"?\$\?\"?\s*[;\n]", body)
        safe = r"\bexit\s+(?:[1-9]\d?\b" + (rf"|\"?\$\{{?{saved[1]}\}}?\"?" if saved else "") + ")"
        body = re.sub(safe, "", body)
        body = re.sub(r"\A[\s{]*exit(?:\s+\"?\$\?\"?)?\s*(?:;|\}|\Z)", "", body)
        if UNKNOWN not in body and not STEERS.search(body):
            return
        sure = "EXIT" in words[1:] or "0" in words[1:]
        text = "a trap may end the script with another status"
        if sure and not around.doubt and re.search(r"\bexit\s+0\b", body):
            self.state.lost = "a trap on EXIT ends the script with 0"
        else:
            self.state.lost = self.state.lost or Unsure(text)

    def cd(self, node: Node, words: Sequence[str], around: _Around) -> None:
        target, text = (words[0], text_of(node)) if words else ("~", "")
        if around.doubt is not None:
            folder = UNKNOWN
        elif UNKNOWN not in target:
            folder = (
                target if target.startswith(("/", "~", "-")) else posixpath.join(self.state.folder, target)
            )
            folder = UNKNOWN if folder[:1] in "/~-" or UNKNOWN in folder else folder
        else:
            rest = target.rsplit(UNKNOWN, 1)[-1]
            text = text if not rest else text.removesuffix('"').removesuffix(rest)
            text += "".join(self.state.sources.get(name, "") for name in re.findall(r"\$\{?(\w+)", text))
            if _ROOT.search(text):
                folder = rest.strip("/") or "."
            elif self.called and _OWN_FOLDER.search(text):
                ups = "../" * text.count("..")
                folder = posixpath.join(posixpath.dirname(self.file) or ".", ups, rest.strip("/"))
            else:
                folder = UNKNOWN
        self.state.folder = UNKNOWN if folder == UNKNOWN else posixpath.normpath(folder)

    def words(self, node: Node, around: _Around, *, own: bool = False) -> list[str]:
        """The words that an argument comes to; `own` where the failure of a $(…) in it is the statement's."""
        if text_of(node) in ('"$@"', "$@", '"${@}"') and not own:
            return list(self.state.arguments) if self.state.arguments is not None else [UNKNOWN]
        if node.type in ("simple_expansion", "expansion") and not own:
            value = self.value(node)
            return value.split() if UNKNOWN not in value else [UNKNOWN]
        return [self.word(node, around, own)]

    def word(self, node: Node, around: _Around, own: bool = False) -> str:
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
            return _filled(text_of(node)[1:-1])
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
            return _filled(re.sub(r'\\(["\\$`])', r"\1", "".join(out)))
        if kind in ("word", "number", "string_content", "extglob_pattern", "regex", "variable_name"):
            return _filled(re.sub(r"\\\n", "", text_of(node)).replace("\\", ""))
        if kind in ("ansi_c_string", "brace_expression"):
            return UNKNOWN
        if kind in ("arithmetic_expansion", "array"):
            self.substitutions(node, around)
            return UNKNOWN
        return _filled(text_of(node))

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

    def substitutions(self, node: Node, around: _Around) -> None:
        for child in node.named_children:
            if child.type in ("command_substitution", "process_substitution"):
                self.word(child, around)
            elif around.depth < MOST_DEPTH:
                self.substitutions(child, around.inner())

    # ------------------------------------------------------------------ what becomes of a failure

    def leads(self, nodes: Sequence[Node], around: _Around, lost: str) -> str | None:
        """What becomes of a failure after which these statements are run; `lost` where they take no notice of it."""
        fresh, marks = around.failed, []
        for node in nodes:
            if node.type == "comment":
                continue
            if re.match(r"(?:break|continue)\b", text_of(node)):
                break
            mark = kept(node, "?" if fresh else None)
            if mark is not None:
                marks.append(mark)
                around = replace(around, failing=around.failing | {mark[0]}) if mark[1] != "0" else around
            found = self.lead(node, replace(around, failed=fresh))
            if found is not _GOES_ON:
                return found
            fresh = fresh and node.type == "comment"
        for name, value in marks:
            found = self.followed(name, value, around, lost)
            if found is None or isinstance(found, Unsure):
                return found
        return lost

    def lead(self, node: Node, around: _Around) -> str | None:
        """What becomes of a failure after which a statement is run; `_GOES_ON` where that takes no notice of it."""
        kind, text = node.type, text_of(node)
        if around.depth > MOST_DEPTH:
            return Unsure("what follows its failure is nested too deeply")
        if kind == "redirected_statement":
            body = node.child_by_field_name("body")
            return self.lead(body, around.inner()) if body is not None else _GOES_ON
        if kind == "compound_statement":
            return self.leads(node.named_children, around.inner(), _GOES_ON)
        if kind == "subshell":
            fate = self.fate(around)
            return self.leads(node.named_children, around.process(fate), _GOES_ON)
        if kind == "list" and "||" not in {child.type for child in node.children}:
            left, right = node.named_children[0], node.named_children[-1]
            if _sure(left):
                return self.lead(right, replace(around.inner(), failed=False))
        if kind == "command":
            words = text.split()
            if words[0] == "false":
                return self.fate(around)
            if words[0] in ("exit", "return"):
                lost = (
                    around.exit if words[0] == "exit" else around.leave if around.calls else self.fate(around)
                )
                fails = self.code(words[1] if len(words) == 2 else "$?", around)
                return lost if fails else Unsure(_short(node)) if fails is None else f"|| {_short(node)}"
            if words[0] in self.state.functions and words[0] not in around.calls and len(around.calls) < 8:
                fate = self.fate(around)
                inner = replace(around.inner(), status=fate, leave=fate, calls=(*around.calls, words[0]))
                return self.lead(self.state.functions[words[0]].body, inner)
        if kind in ("variable_assignment", "declaration_command"):
            return _GOES_ON
        if STEERS.match(text) or (kind != "command" and STEERS.search(text)):
            return Unsure(f"whether its failure counts rests on {_short(node)}")
        return _GOES_ON

    def code(self, text: str, around: _Around) -> bool | None:
        """Whether an exit code is another one than 0; None if that is not known."""
        text = text.strip("\"'")
        if text == "$?":
            return around.failed
        if any(re.fullmatch(used(name), text) for name in around.failing):
            return True
        if found := re.fullmatch(r"\$\{?(\w+)\}?", text):
            text = self.state.values.get(found[1], UNKNOWN)
        return int(text) % 256 != 0 if re.fullmatch(r"-?\d{1,9}", text) else None

    def followed(self, name: str, value: str | None, around: _Around, lost: str) -> str | None:
        """What becomes of a failure that a variable keeps, by the statements that follow; `?` is its status itself."""
        for place, (node, rest) in enumerate(_walk(around.after)):
            if place >= MOST_AFTER:
                return Unsure("what becomes of its status is written too far from it")
            here = replace(around, after=rest, failing=around.failing | {name}, failed=name in STATUS)
            found = self.use(node, name, value, here)
            if found is not _GOES_ON:
                return found
            if name in STATUS:
                mark = kept(node, name) if "$" in text_of(node) else None
                return self.followed(mark[0], mark[1], here, lost) if mark is not None else lost
        if around.calls and name not in STATUS:
            return Unsure(f"what becomes of its status, kept in {name}, is not followed")
        return lost

    def use(self, node: Node, name: str, value: str | None, around: _Around) -> str | None:
        """What a statement makes of a failure that `name` keeps; `_GOES_ON` where it is still kept after it."""
        kind, text = node.type, text_of(node)
        unsure = Unsure(f"whether its failure counts rests on {_short(node)}")
        if kind == "variable_assignment" and text.split("=", 1)[0] == name:
            new = text.split("=", 1)[1]
            if re.fullmatch(used(name), new) or re.fullmatch(r"[\"']?[1-9]\d*[\"']?", new):
                return _GOES_ON if value is None or new == value else unsure
            return (
                unsure if mentions(new, name) else f"its status is kept in {name}, and {_short(node)} follows"
            )
        if kind == "command":
            words = text.split()
            if words[0] in ("exit", "return"):
                lost = (
                    around.exit if words[0] == "exit" else around.leave if around.calls else self.fate(around)
                )
                code = text[len(words[0]) :].strip()
                if value == "0" or (value is not None and not value.isdigit() and mentions(code, name)):
                    return unsure
                if re.fullmatch(used(name), code) or summed(code, name) or (not code and name == "?"):
                    return lost
                fails = (
                    None if mentions(code, name) else self.code(code or "$?", replace(around, failed=False))
                )
                return lost if fails else unsure if fails is None else f"{_short(node)} follows"
            if words[0] in self.state.functions and STEERS.search(
                text_of(self.state.functions[words[0]].body)
            ):
                return unsure
        truth = asked(text, name, value)
        if truth is not None or re.fullmatch(rf"\(\s*exit\s+{used(name)}\s*\)", text):
            last = next(_walk(around.after), None) is None
            if truth is True:
                return _GOES_ON
            if last:
                return around.leave if around.calls else around.exit
            return around.exit if self.state.options.stops and not around.tested else unsure
        if kind == "if_statement":
            types = [child.type for child in node.children]
            then = types.index("then") if "then" in types else 0
            other = next(
                (place for place, one in enumerate(types) if one in ("elif_clause", "else_clause", "fi")),
                then,
            )
            truth = asked(" ".join(text_of(one) for one in _named(node.children[:then])), name, value)
            if truth:
                return self.leads(_named(node.children[then:other]), replace(around, failed=False), _GOES_ON)
            if truth is False and types[other] != "elif_clause":
                return self.leads(
                    _named(node.children[other].children), replace(around, failed=False), _GOES_ON
                )
        elif kind == "list":
            left, right = node.named_children[0], node.named_children[-1]
            both = "&&" in {child.type for child in node.children}
            truth = asked(text_of(left), name, value)
            if truth is not None and truth == both:
                return self.leads([right], replace(around, failed=not both), _GOES_ON)
        if (STEERS.match(text) and not text.startswith("set")) or (kind != "command" and STEERS.search(text)):
            return unsure
        if re.search(
            rf"\b(?:unset|read|for|let|mapfile|readarray|getopts|printf|local|declare|typeset)\b[^;\n]*[ ,]{re.escape(name)}\b",
            text,
        ):
            return unsure
        for found in re.finditer(rf"(\|\|\s*)?\b{re.escape(name)}=(\S*)", text):
            if not (re.match(r"[\"']?[1-9]", found[2]) or (found[1] and found[2].startswith(("$?", '"$?')))):
                return unsure
        return _GOES_ON


def _walk(after: _After) -> Iterator[tuple[Node, _After]]:
    """The statements that follow, each with those that follow it."""
    while after is not None:
        held, place, outer = after
        for at in range(place, len(held)):
            yield held[at], (held, at + 1, outer)
        after = outer


def _following(after: _After) -> Iterator[Node]:
    return (node for node, _ in _walk(after))


def _named(nodes: Sequence[Node]) -> list[Node]:
    return [node for node in nodes if node.is_named and node.type != "comment"]


def _failing(text: str, *, turned: bool = False) -> frozenset[str]:
    """The variables that are not 0 where a condition holds; `turned` where it does not."""
    names = {one[0] or one[1] for one in re.findall(r"\$\{?([A-Za-z_]\w*)|\(\(\s*([A-Za-z_]\w*)", text)}
    return frozenset(
        name for name in names if (asked(text, name, None), asked(text, name, "0")) == (not turned, turned)
    )


def _inside(node: Node | None, depth: int = 0) -> Iterator[Node]:
    """The parts of a word, but not those of a `$(…)` in it."""
    for child in node.named_children if node is not None and depth < 10 else ():
        yield child
        if child.type != "command_substitution":
            yield from _inside(child, depth + 1)


def _behind(node: Node) -> bool:
    """Whether a statement is run in the background."""
    return node.next_sibling is not None and node.next_sibling.type == "&"


def _sure(node: Node) -> bool:
    """Whether a statement cannot fail."""
    return node.type == "command" and text_of(node).split()[:1] in (["true"], [":"], ["echo"])


def _filled(text: str) -> str:
    return re.sub(f"{HOLE}+", UNKNOWN, text) if HOLE in text else text


def _short(node: Node) -> str:
    text = " ".join(_filled(text_of(node)).replace(UNKNOWN, "…").split())
    return text if len(text) <= 40 else f"{text[:39]}…"
