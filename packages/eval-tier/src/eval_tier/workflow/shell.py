"""The commands of a shell script: each with why its failure would not fail the script, and why it may not be run."""

# long because: one walk over the syntax of a shell; taken apart, each part would need all of the others
from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from eval_tier.workflow.models import Command, Gap, Place

if TYPE_CHECKING:
    from tree_sitter import Node

#: Bytes of a script, levels within one another, and commands of one script.
MOST_BYTES, MOST_DEPTH, MOST_COMMANDS = 1_000_000, 60, 5_000

#: What stands for a value that is not known, in the words of a command.
UNKNOWN = "\0"

#: In the text of a script, what stands for a value that is not known, such as `${{ … }}`: a letter that no script has.
HOLE = "\ue000"

_EXPRESSION = re.compile(r"\$\{\{.*?\}\}", re.DOTALL)
_OUTPUT = {">", ">>", "&>", "&>>", ">|"}
#: A test that a variable is not 0.
_NONZERO = re.compile(
    r"\[{1,2}\s+\"?\$\{?(\w+)\}?\"?\s+(?:-ne|!=|-gt)\s+\"?0\"?\s+\]{1,2}|\(\(\s*(\w+)(?:\s*(?:!=|>)\s*0)?\s*\)\)"
)
#: Text of a trap that ends the script with another code than the one that it had.
_ENDS_WELL = re.compile(r"\bexit\b(?!\s+(?:[1-9]|\"?\$\?))|\bset\s+\+")
#: A PATH whose first folder is one of the repository.
_SHADOW = re.compile(r"[\"']?(?:\$\{?(?:PWD|GITHUB_WORKSPACE)\}?|\$\(pwd\)|`pwd`|\.{1,2}[/:]|[\w-]+[/:])")
_WORDLESS = ("comment", ";", "&", "\n", ";;")


@dataclass(frozen=True, slots=True)
class _Around:
    """What holds for all commands of a part: why failure is lost, why it may not be run, and whether it is last.

    `quiet`: why a failure does not end the script by itself; it counts all the same where something asks for it.
    `tested`: something asks for it, so that `set -e` is off in all of the part.
    """

    mask: str | None = None
    quiet: str | None = None
    doubt: str | None = None
    last: bool = True
    tested: bool = False
    depth: int = 0
    calls: tuple[str, ...] = ()

    def masked(self, why: str) -> _Around:
        return self if self.mask else replace(self, mask=why)

    def doubted(self, why: str) -> _Around:
        return self if self.doubt else replace(self, doubt=why)

    def asked(self) -> _Around:
        """Within what is tested: of its parts the last alone counts."""
        return replace(self, depth=self.depth + 1, quiet=None, last=True, tested=True)

    def inner(self, *, last: bool | None = None) -> _Around:
        return replace(self, depth=self.depth + 1, last=self.last if last is None else last)


@dataclass
class _State:
    stops: bool
    pipefail: bool
    values: dict[str, str]
    functions: dict[str, Node] = field(default_factory=dict)
    ended: str | None = None
    lost: str | None = None  # by a trap
    left: dict[str, str] = field(
        default_factory=dict
    )  # by what is left early (script, function, loop): the doubt
    nonzero: frozenset[str] = frozenset()  # variables that are not 0 here


def commands(
    script: str,
    file: str,
    line: int,
    shell: str | None = None,
    runner: str = "ubuntu-latest",
    env: Mapping[str, str] | None = None,
) -> tuple[list[Command], list[Gap]]:
    """The simple commands of a script in the order in which they are run, and the parts that cannot be read.

    Args:
        script: its text, whose first line is `line` of `file`.
        shell: as a step names it; None for the runner's own; `script` for a file that is run as a program, whose `#!`
            is read; `recipe` for a line of a Makefile.
        env: values that its variables have.
    """
    place = Place(file, line)
    flags = _flags(script, shell, runner)
    if isinstance(flags, str):
        return [], [Gap((place,), flags)]
    if len(script) > MOST_BYTES:
        return [], [Gap((place,), f"the script has more than {MOST_BYTES:,} characters")]
    known = {name: value for name, value in (env or {}).items() if "${{" not in value}
    reader = _Reader(file, line, _State(*flags, known))
    text = _EXPRESSION.sub(lambda one: re.sub(r"[^\n]", HOLE, one[0]), script.replace("\r\n", "\n"))
    return reader.read(text)


def _flags(script: str, shell: str | None, runner: str) -> tuple[bool, bool] | str:
    """Whether the shell stops at a failure, and looks at all of a pipeline; or why its scripts are not read."""
    if shell is None:
        if "windows" in runner.lower():
            return "the default shell of Windows is PowerShell, which is not read"
        return True, False
    if shell == "recipe":
        return False, False
    if shell == "script":
        first = script.split("\n", 1)[0]
        if not first.startswith("#!"):
            return False, False
        shell = first.removeprefix("#!").strip()
        words = [w for w in shell.split() if w.rsplit("/", 1)[-1] != "env" and w != "-S"]
        if not words or words[0].rsplit("/", 1)[-1] not in ("bash", "sh", "dash"):
            return f"{shell!r} is no shell that is read"
        return _started(words[1:]) or _options(words[1:], False, False)
    words = shell.split()
    if shell == "bash":
        return True, True
    if shell == "sh":
        return True, False
    if words and words[0].rsplit("/", 1)[-1] in ("bash", "sh", "dash"):
        return _started(words[1:]) or _options(words[1:], False, False)
    return f"the shell {shell!r} is not read"


def _started(words: Sequence[str]) -> str | None:
    """Why the options of a shell are not read; None where all are known."""
    known = re.compile(
        r"-[euxl]*o?|[-+]o|pipefail|errexit|nounset|xtrace|--(?:noprofile|norc|login|posix)|\{0\}|--?|-s"
    )
    strange = next((word for word in words if not known.fullmatch(word)), None)
    return None if strange is None else f"the option {strange!r} of the shell is not read"


def _options(words: Sequence[str], stops: bool, pipefail: bool) -> tuple[bool, bool]:
    """The two flags after options of `set`, or of a shell's command line."""
    left = list(words)
    while left:
        word = left.pop(0)
        if len(word) < 2 or word[0] not in "-+" or word.startswith("--"):
            continue
        on = word[0] == "-"
        if "e" in word[1:]:
            stops = on
        if "o" in word[1:] and left:
            name = left.pop(0)
            pipefail = on if name == "pipefail" else pipefail
            stops = on if name == "errexit" else stops
    return stops, pipefail


@functools.cache
def parser() -> Any:
    """A parser of bash."""
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


class _Reader:
    def __init__(self, file: str, line: int, state: _State) -> None:
        self.file, self.line, self.state = file, line, state
        self.commands: list[Command] = []
        self.gaps: list[Gap] = []

    def read(self, text: str) -> tuple[list[Command], list[Gap]]:
        tree = parser().parse(text.encode("utf-8", "replace"))
        self.block(tree.root_node.children, _Around())
        return self.commands, self.gaps

    def place(self, node: Node) -> Place:
        return Place(self.file, self.line + node.start_point[0])

    def gap(self, node: Node, what: str) -> None:
        if len(self.gaps) < 100:
            self.gaps.append(Gap((self.place(node),), what))

    # ------------------------------------------------------------------ statements

    def block(self, nodes: Sequence[Node], around: _Around) -> None:
        """Statements one after the other."""
        held = [node for node in nodes if node.type not in _WORDLESS and node.is_named]
        behind = {a.id: b.type == "&" for a, b in itertools.pairwise(nodes)}
        for place, node in enumerate(held):
            here = around.inner(last=around.last and place == len(held) - 1)
            for doubt in (self.state.ended, *self.state.left.values()):
                here = here.doubted(doubt) if doubt else here
            if self.state.lost:
                here = here.masked(self.state.lost)
            after = held[place + 1 :]
            if behind.get(node.id):
                # `wait $!` next to it has its status; where it is the last, or the shell stops at a failure, it counts.
                waits = bool(after) and re.fullmatch(r'wait "?\$!"?', _text(after[0])) is not None
                if not waits or not (self.state.stops or len(after) == 1):
                    here = here.masked("it runs in the background (&)")
            elif around.tested and not here.last:
                here = here.masked("`set -e` is off in what is tested, and it is not the last of it")
            elif not self.state.stops and not here.last and not _captured(node, after):
                here = replace(here, quiet="the script goes on after a failure (no `set -e`)")
            self.statement(node, here, held[place + 1 :])

    def statement(self, node: Node, around: _Around, after: Sequence[Node]) -> None:
        if around.depth > MOST_DEPTH:
            self.gap(node, "is nested too deeply")
            return
        kind = node.type
        if kind == "ERROR" or (
            node.has_error and kind in ("command", "redirected_statement", "pipeline", "list")
        ):
            self.gap(node, "cannot be parsed as a shell's script")
            return
        if kind == "command":
            self.command(node, around)
        elif kind == "redirected_statement":
            self.redirected(node, around, after)
        elif kind == "list":
            self.joined(node, around, after)
        elif kind == "pipeline":
            self.pipeline(node, around, after)
        elif kind == "negated_command":
            self.each(node, around.asked().masked("`!` turns its failure round"), after)
        elif kind == "if_statement":
            self.branch(node, around)
        elif kind in ("while_statement", "until_statement", "for_statement", "c_style_for_statement"):
            self.loop(node, around)
        elif kind == "case_statement":
            self.inside(node, around.doubted("it stands in a case"))
        elif kind == "function_definition":
            name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
            if name is not None and body is not None:
                self.state.functions[_text(name)] = body
        elif kind == "subshell":
            kept = replace(
                self.state,
                values=dict(self.state.values),
                functions=dict(self.state.functions),
                left=dict(self.state.left),
            )
            self.block(node.children, around.inner())
            self.state = kept
        elif kind == "compound_statement":
            self.block(node.children, around.inner())
        elif kind == "variable_assignment":
            self.assignment(node, around)
        elif kind in ("variable_assignments", "declaration_command"):
            hides = kind == "declaration_command"
            for child in node.named_children:
                if child.type == "variable_assignment":
                    inner = (
                        around.masked("inside $(…) of a declaration, its failure is lost")
                        if hides
                        else around
                    )
                    self.assignment(child, inner)
        elif kind in ("test_command", "unset_command", "heredoc_body", "arithmetic_expansion"):
            self.substitutions(node, around)
        else:
            self.inside(node, around.doubted(f"it stands in a part that is not read ({kind})"))

    def each(self, node: Node, around: _Around, after: Sequence[Node]) -> None:
        for child in node.named_children:
            if child.type not in _WORDLESS:
                self.statement(child, around.inner(), after)

    def inside(self, node: Node, around: _Around) -> None:
        """All commands somewhere inside a part, whatever leads to them."""
        for child in node.named_children:
            if child.type in ("command", "list", "pipeline", "redirected_statement", "if_statement", "subshell",
                              "compound_statement", "variable_assignment", "negated_command"):  # fmt: skip
                self.statement(child, around.inner(last=False), ())
            elif around.depth < MOST_DEPTH:
                self.inside(child, around.inner(last=False))

    def redirected(self, node: Node, around: _Around, after: Sequence[Node]) -> None:
        body = node.child_by_field_name("body")
        first = len(self.commands)
        if body is not None:
            self.statement(body, around.inner(), after)
        files = []
        for child in node.named_children:
            if child.type == "file_redirect" and _OUTPUT & {one.type for one in child.children}:
                target = child.child_by_field_name("destination")
                files += self.words(target, around) if target is not None else []
            elif child.type == "heredoc_redirect":
                for (
                    inner
                ) in child.named_children:  # `cmd <<EOF | other`: what follows on the line stands inside
                    if inner.type in ("pipeline", "command", "list"):
                        self.statement(inner, around.inner(), after)
        if files:
            for place in range(first, len(self.commands)):
                one = self.commands[place]
                self.commands[place] = replace(one, writes=(*one.writes, *files))

    def joined(self, node: Node, around: _Around, after: Sequence[Node]) -> None:
        """`left && right` and `left || right`."""
        left, right = node.named_children[0], node.named_children[-1]
        sign = next((child.type for child in node.children if child.type in ("&&", "||")), "&&")
        if sign == "||":
            honest = self.fails(right, alternative=True) or _kept(right, after)
            asked = around.asked()
            self.statement(left, asked if honest else asked.masked(f"|| {_short(right)}"), after)
            self.statement(
                right, around.inner().doubted("it is run where what stands before || fails"), after
            )
        else:
            # A failure on the left stops nothing; it is the list's own, and counts where the list is the last of all.
            quiet = around if around.last else around.masked("what stands before && may fail in silence")
            self.statement(left, quiet.asked(), after)
            behind = around.inner()
            if not around.last and not _sure(left):
                behind = behind.doubted("it is run where what stands before && succeeds")
            self.statement(right, behind, after)

    def pipeline(self, node: Node, around: _Around, after: Sequence[Node]) -> None:
        first_counts = bool(after) and "PIPESTATUS[0]" in _text(after[0]) and _captured(node, after)
        stages = [child for child in node.named_children if child.type not in _WORDLESS]
        for place, stage in enumerate(stages):
            here = around.inner()
            if place < len(stages) - 1 and not self.state.pipefail and not (first_counts and not place):
                here = here.masked(f"a pipe into {_short(stages[-1])} without pipefail")
            self.statement(stage, here, ())

    def branch(self, node: Node, around: _Around) -> None:
        """`if`: what is asked fails the script only where the branch that is taken then ends it with an error."""
        condition: list[Node] = []
        bodies: list[Node] = []
        other: Node | None = None
        seen_then = False
        for child in node.children:
            if child.type == "then":
                seen_then = True
            elif child.type in ("elif_clause", "else_clause"):
                other = other or child
            elif child.is_named and child.type != "comment":
                (bodies if seen_then else condition).append(child)
        turned = len(condition) == 1 and condition[0].type == "negated_command"
        taken = bodies if turned else (list(other.named_children) if other is not None else [])
        ends = any(self.fails(one) for one in taken) and (
            turned or (other is not None and other.type == "else_clause")
        )
        asked = around.asked() if ends else around.asked().masked("it is the condition of an if")
        for one in condition[0].named_children if turned and ends else condition:
            self.statement(one, asked, ())
        inner = around.doubted("it stands inside an if").inner()
        ended, nonzero = self.state.ended, self.state.nonzero
        if len(condition) == 1 and (match := _NONZERO.fullmatch(_text(condition[0]).strip())):
            self.state.nonzero = nonzero | {match[1] or match[2]}
        self.block(bodies, inner)
        self.state.nonzero = nonzero
        if other is not None:
            self.inside(other, inner)
        self.state.ended = ended

    def loop(self, node: Node, around: _Around) -> None:
        body = node.child_by_field_name("body")
        doubt: str | None = "it stands inside a loop"
        if node.type == "for_statement":
            values = node.children_by_field_name("value")
            literal = ("word", "number", "raw_string")
            if values and all(child.type in literal or not child.named_child_count for child in values):
                doubt = None
            name = node.child_by_field_name("variable")
            if name is not None:
                self.state.values[_text(name)] = UNKNOWN
        else:
            for child in node.children_by_field_name("condition"):
                if child.is_named:
                    self.statement(child, around.asked().masked("it is the condition of a loop"), ())
        inner = around.inner()
        if not self.state.stops:
            inner = inner.masked("a loop goes on after a failure")
        if doubt is not None:
            inner = inner.doubted(doubt)
        if body is not None:
            self.block(body.children, inner)
            self.state.left.pop("loop", None)

    def assignment(self, node: Node, around: _Around) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None:
            return
        words = self.words(value, around, own=True) if value is not None else [""]
        if _text(name) == "PATH" and _SHADOW.match(_text(value) if value is not None else ""):
            self.state.left["script"] = "PATH begins with a folder of the repository"
        sure = around.doubt is None and len(words) <= 1
        self.state.values[_text(name)] = (words[0] if words else "") if sure else UNKNOWN

    # ------------------------------------------------------------------ commands

    def command(self, node: Node, around: _Around) -> None:
        env: dict[str, str] = {}
        words: list[str] = []
        for child in node.named_children:
            if child.type == "variable_assignment":
                name, value = child.child_by_field_name("name"), child.child_by_field_name("value")
                if name is not None:
                    env[_text(name)] = " ".join(self.words(value, around)) if value is not None else ""
            elif child.type == "command_name":
                for inner in child.children:
                    words += self.words(inner, around)
            elif child.type not in ("herestring_redirect", "file_redirect", "comment"):
                words += self.words(child, around)
        if not words:
            return
        program = words[0]
        if program in self.state.functions and program not in around.calls and len(around.calls) < 8:
            body, ended = self.state.functions[program], self.state.ended
            self.statement(body, replace(around.inner(), calls=(*around.calls, program)), ())
            self.state.left.pop("function", None)
            if self.state.ended and "`return`" in self.state.ended:
                self.state.ended = ended
            return
        if self.builtin(node, words, around):
            return
        if program in self.state.values.get("alias ", "").split():
            self.gap(node, f"{program!r} is an alias")
            return
        if len(self.commands) >= MOST_COMMANDS:
            if len(self.commands) == MOST_COMMANDS:
                self.gap(node, f"there are more than {MOST_COMMANDS:,} commands")
            return
        self.commands.append(
            Command(tuple(words), (self.place(node),), around.mask or around.quiet, around.doubt, env=env)
        )

    def builtin(self, node: Node, words: list[str], around: _Around) -> bool:
        """What changes the shell itself; whether it was that."""
        program, state = words[0], self.state
        if program == "set":
            if around.doubt is None or "+" in "".join(words):
                state.stops, state.pipefail = _options(words[1:], state.stops, state.pipefail)
            if any(re.fullmatch(r"-\w*n\w*", word) for word in words) or "noexec" in words:
                state.ended = "it stands after `set -n`"
        elif program == "shopt" and {"errexit", "-u"} <= {*words}:
            state.stops = False
        elif program == "alias":
            state.values["alias "] = " ".join(
                [state.values.get("alias ", ""), *(w.split("=")[0] for w in words[1:])]
            )
        elif program == "trap" and len(words) > 2:
            text = " ".join(
                [words[1], *(_text(b) for name, b in state.functions.items() if name in words[1])]
            )
            if {"EXIT", "0", "ERR", "DEBUG", "RETURN"} & {w.removeprefix("SIG") for w in words[2:]} and (
                UNKNOWN in words[1] or _ENDS_WELL.search(text)
            ):
                state.lost = "a trap may end the script with 0"
        elif program == "eval":
            if any(UNKNOWN in word for word in words):
                self.gap(node, "what `eval` runs follows from a value that is not known")
            elif around.depth < MOST_DEPTH:
                tree = parser().parse(" ".join(words[1:]).encode("utf-8", "replace"))
                self.block(tree.root_node.children, around.inner())
        elif program in ("exit", "return", "break", "continue") or (program == "exec" and len(words) > 1):
            if around.doubt is None:
                state.ended = state.ended or f"it stands after `{program}`"
            elif not self.fails(node, alternative=around.tested):
                part = {"return": "function", "break": "loop", "continue": "loop"}.get(program, "script")
                if part == "function" and not around.calls:
                    part = "script"
                state.left.setdefault(part, f"`{_short(node)}` before it may end the {part}")
            return program != "exec"
        elif program not in (":",):
            return False
        return True

    def words(self, node: Node, around: _Around, *, own: bool = False) -> list[str]:
        """The words that an argument comes to; `own` where the failure of a $(…) in it is the statement's."""
        if node.type in ("simple_expansion", "expansion") and not own:
            value = self.value(node)
            return value.split() if value != UNKNOWN and UNKNOWN not in value else [UNKNOWN]
        return [self.word(node, around, own)]

    def word(self, node: Node, around: _Around, own: bool = False) -> str:
        kind = node.type
        if kind in ("simple_expansion", "expansion"):
            return self.value(node)
        if kind in ("command_substitution", "process_substitution"):
            here = around.asked()  # without inherit_errexit
            if not own:
                here = here.masked("inside $(…), its failure is lost")
            self.block(node.children, here)
            return UNKNOWN
        if kind == "raw_string":
            return _filled(_text(node)[1:-1])
        if kind in ("concatenation", "command_name"):
            return "".join(self.word(child, around, own) for child in node.children)
        if kind == "string":
            out, end = [], node.start_byte + 1
            raw = node.text or b""
            for child in node.named_children:
                out.append(
                    raw[end - node.start_byte : child.start_byte - node.start_byte].decode("utf-8", "replace")
                )
                out.append(_text(child) if child.type == "string_content" else self.word(child, around, own))
                end = child.end_byte
            out.append(raw[end - node.start_byte : len(raw) - 1].decode("utf-8", "replace"))
            return _filled(re.sub(r'\\(["\\$`])', r"\1", "".join(out)))
        if kind in ("word", "number", "string_content", "extglob_pattern", "regex", "variable_name"):
            return _filled(re.sub(r"\\\n", "", _text(node)).replace("\\", ""))
        if kind == "ansi_c_string":
            return UNKNOWN
        if kind in ("arithmetic_expansion", "brace_expression", "array"):
            return UNKNOWN
        return _filled(_text(node))

    def value(self, node: Node) -> str:
        text = _text(node)
        match = re.fullmatch(r"\$\{?([A-Za-z_]\w*)\}?", text)
        return self.state.values.get(match[1], UNKNOWN) if match else UNKNOWN

    def substitutions(self, node: Node, around: _Around) -> None:
        for child in node.named_children:
            if child.type in ("command_substitution", "process_substitution"):
                self.word(child, around)
            elif around.depth < MOST_DEPTH:
                self.substitutions(child, around.inner())

    def fails(self, node: Node, depth: int = 0, *, alternative: bool = False) -> bool:
        """Whether a statement always ends the script, or the list, with a failure; `alternative`: `$?` is one there."""
        if node.type in ("compound_statement", "subshell") and depth < 10:
            held = [child for child in node.named_children if child.type != "comment"]
            return bool(held) and any(self.fails(one, depth + 1, alternative=alternative and not place)
                                      for place, one in enumerate(held))  # fmt: skip
        if node.type == "redirected_statement":
            body = node.child_by_field_name("body")
            return body is not None and self.fails(body, depth + 1, alternative=alternative)
        if node.type != "command":
            return False
        words = _text(node).split()
        if words[:1] == ["false"]:
            return True
        if words and words[0] in self.state.functions and depth < 10:
            return self.fails(self.state.functions[words[0]], depth + 1)
        if words[:1] not in (["exit"], ["return"]) or len(words) > 2:
            return False
        code = words[1].strip("\"'") if len(words) == 2 else "$?"
        if code == "$?":
            return alternative
        return (code.isdigit() and int(code) % 256 != 0) or code.strip("${}") in self.state.nonzero


def _captured(node: Node, after: Sequence[Node]) -> bool:
    """Whether the status of a statement is kept by the next one, and the script ends with it."""
    if not after:
        return False
    first = after[0]
    if first.type == "command" and re.fullmatch(
        r"exit\s+(\"?\$\?\"?|\"?\$\{PIPESTATUS\[0\]\}\"?)", _text(first)
    ):
        return True
    return _kept(first, after[1:])


def _kept(node: Node, after: Sequence[Node]) -> bool:
    """Whether a statement is `name=$?`, and one of those after it ends the script with that."""
    match = re.fullmatch(r"([A-Za-z_]\w*)=\"?\$(?:\?|\{PIPESTATUS\[0\]\})\"?", _text(node))
    if match is None:
        return False
    name = match[1]
    for one in after:
        text = _text(one)
        if re.fullmatch(rf"exit\s+\"?\$(?:{name}|\{{{name}(?::-0)?\}})\"?", text):
            return True
        if one.type == "if_statement" and _ends_where_not_zero(one, name):
            return True
        if re.match(rf"{name}=", text):
            return False
    return False


def _ends_where_not_zero(node: Node, name: str) -> bool:
    """Whether an `if` asks whether a variable is not 0, and then ends the script with it, or another failure."""
    condition = next((child for child in node.named_children if child.type != "comment"), None)
    found = _NONZERO.fullmatch(_text(condition).strip()) if condition is not None else None
    body = re.search(r"\bthen\b(.*?)\b(?:else|elif|fi)\b", _text(node), re.DOTALL)
    return bool(
        found and (found[1] or found[2]) == name and body
        and re.search(rf"(?:^|[;\n])\s*exit\s+(?:[1-9]\d*|\"?\$\{{?{name}\}}?\"?)\s*(?:;|\n|$)", body[1])
    )  # fmt: skip


def _sure(node: Node) -> bool:
    """Whether a statement cannot fail."""
    return _text(node).split()[:1] in (["true"], [":"], ["echo"])


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _filled(text: str) -> str:
    return re.sub(f"{HOLE}+", UNKNOWN, text) if HOLE in text else text


def _short(node: Node) -> str:
    text = " ".join(_filled(_text(node)).replace(UNKNOWN, "…").split())
    return text if len(text) <= 40 else f"{text[:39]}…"
