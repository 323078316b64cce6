"""The commands of nox sessions, from the syntax tree of a noxfile, which is not imported or run."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from eval_tier.workflow.shell import UNKNOWN
from eval_tier.workflow.tasks import Task, Unread


def nox_sessions(text: str, asked: Sequence[str], given: Sequence[str] = ()) -> Iterator[Task]:
    """The commands of nox sessions: those asked for, else the default ones. `given`: what follows `--`.

    Raises:
        Unread: it is no Python, or there is no such session.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unread(f"it is no Python that can be read: {type(error).__name__}") from error
    sessions: dict[str, ast.FunctionDef] = {}
    off: set[str] = set()
    chosen: list[str] | None = None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            for made in node.decorator_list:
                call = made.func if isinstance(made, ast.Call) else made
                if ast.unparse(call) in ("nox.session", "session"):
                    options = {k.arg: k.value for k in made.keywords} if isinstance(made, ast.Call) else {}
                    name = options.get("name")
                    key = (
                        name.value
                        if isinstance(name, ast.Constant) and isinstance(name.value, str)
                        else node.name
                    )
                    sessions[key] = node
                    default = options.get("default")
                    if isinstance(default, ast.Constant) and default.value is False:
                        off.add(key)
        elif (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.List | ast.Tuple)
            and ast.unparse(node.targets[0]) == "nox.options.sessions"
        ):
            chosen = [
                e.value for e in node.value.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)
            ]
    names = list(asked) or (chosen if chosen is not None else [name for name in sessions if name not in off])
    for one in names:
        found = sessions.get(one) or sessions.get(re.sub(r"-[\d.]+$|\(.*\)$", "", one))
        if found is None:
            raise Unread(f"there is no session {one!r}")
        yield from _Nox(tree, sessions, tuple(given)).session(found, (one,))


@dataclass(frozen=True, slots=True)
class _Nox:
    """The sessions of a noxfile, and what is given to them behind `--`."""

    tree: ast.Module
    sessions: Mapping[str, ast.FunctionDef]
    given: tuple[str, ...]

    def session(self, function: ast.FunctionDef, above: tuple[str, ...]) -> Iterator[Task]:
        """The commands of one session, in their order."""
        if function.args.args:
            yield from self.body(function.body, function.args.args[0].arg, above, _State())

    def body(
        self, body: Sequence[ast.stmt], name: str, above: tuple[str, ...], state: _State
    ) -> Iterator[Task]:
        """The commands of statements; `state` is what holds for those that follow."""
        for statement in body:
            if state.ended:
                return
            inner = replace(state)
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            if isinstance(statement, ast.If | ast.For | ast.While | ast.Match):
                inner.doubt = state.doubt or "it stands inside an if or a loop"
                parts = [case.body for case in statement.cases] if isinstance(statement, ast.Match) else [
                    statement.body, statement.orelse]  # fmt: skip
                for part in parts:
                    one = replace(inner)
                    yield from self.body(part, name, above, one)
                    state.folder = one.folder if one.folder == state.folder else None
                    if one.ended == "quietly":
                        state.doubt = state.doubt or "what stands before may leave the session"
            elif isinstance(statement, ast.Try):
                lost = replace(
                    state, mask=state.mask or ("an exception is caught" if statement.handlers else None)
                )
                yield from self.body(statement.body, name, above, lost)
                after = replace(state, doubt=state.doubt or "it stands after a try")
                yield from self.body(statement.orelse, name, above, after)
                yield from self.body(statement.finalbody, name, above, state)
            elif isinstance(statement, ast.With):
                for item in statement.items:
                    self._within(item.context_expr, name, inner)
                yield from self.body(statement.body, name, above, inner)
            elif isinstance(statement, ast.Return | ast.Raise):
                yield from self.calls(statement, name, above, state)
                state.ended = "quietly" if isinstance(statement, ast.Return) else "with an error"
                if isinstance(statement, ast.Raise) and "Skip" in ast.unparse(statement):
                    state.ended = "quietly"
            else:
                yield from self.calls(statement, name, above, state)

    def _within(self, context: ast.expr, name: str, inner: _State) -> None:
        text = ast.unparse(context)
        if "suppress" in text:
            inner.mask = "an exception is suppressed"
        elif isinstance(context, ast.Call) and text.startswith((f"{name}.chdir(", f"{name}.cd(")):
            inner.into(context)
        elif not text.startswith(("tempfile.", "open(", "TemporaryDirectory(")):
            inner.doubt = inner.doubt or f"it stands inside `with {text[:30]}`"

    def calls(self, node: ast.AST, name: str, above: tuple[str, ...], state: _State) -> Iterator[Task]:
        """The commands of the calls in a statement; what is not always reached is in doubt."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Lambda | ast.FunctionDef):
                continue
            unsure = isinstance(child, ast.BoolOp | ast.IfExp | ast.ListComp | ast.GeneratorExp)
            inner = replace(state, doubt=state.doubt or "it stands inside an expression") if unsure else state
            yield from self.calls(child, name, above, inner)
            if isinstance(child, ast.Call):
                yield from self.call(child, name, above, inner)

    def call(self, node: ast.Call, name: str, above: tuple[str, ...], state: _State) -> Iterator[Task]:
        """A call of `session.run`, or of a function that is handed the session: its leading texts are a command."""
        called = ast.unparse(node.func)
        arguments = list(node.args)
        if called == f"{name}.notify" and arguments and isinstance(arguments[0], ast.Constant):
            other = str(arguments[0].value)
            if other in self.sessions and other not in above and len(above) < 8:
                yield from self.session(self.sessions[other], (*above, other))
            return
        if called in (f"{name}.chdir", f"{name}.cd"):
            state.into(node)
            return
        if called in (f"{name}.skip", "sys.exit", "exit", "os._exit") and state.doubt is None:
            failed = called != f"{name}.skip" and arguments and ast.unparse(arguments[0]) not in ("0", "None")
            state.ended = "with an error" if failed else "quietly"
            return
        if called in (f"{name}.skip", "sys.exit"):
            state.ended = "quietly"
            return
        if called == f"{name}.run_install":
            state = replace(state, doubt=state.doubt or "nox leaves it out with -R")
        elif called in (f"{name}.run", f"{name}.run_always"):
            pass
        elif arguments and isinstance(arguments[0], ast.Name) and arguments[0].id == name:
            arguments = arguments[1:]
        else:
            return
        words = [word for argument in arguments for word in self.words(argument, name)]
        mask = state.mask
        for option in node.keywords:
            if option.arg is None or (option.arg == "success_codes" and ast.unparse(option.value) != "[0]"):
                mask = mask or "success_codes takes its failure for a success"
        if words and words[0] == UNKNOWN:
            yield Task(node.lineno, words=(UNKNOWN,), mask=mask, doubt=state.doubt, folder=state.folder)
        elif words:
            yield Task(node.lineno, words=tuple(words), mask=mask, doubt=state.doubt, folder=state.folder)

    def words(self, argument: ast.expr, name: str) -> list[str]:
        """The words of one argument; of a call of a function of the file, all options that it may give."""
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            return [argument.value]
        if isinstance(argument, ast.Starred):
            held = argument.value
            if isinstance(held, ast.Tuple | ast.List):
                return [word for one in held.elts for word in self.words(one, name)]
            if ast.unparse(held) == f"{name}.posargs":
                return list(self.given)
            if (
                isinstance(held, ast.Call)
                and not held.args
                and (found := self._options(ast.unparse(held.func)))
            ):
                return found
        return [UNKNOWN]

    def _options(self, function: str) -> list[str]:
        """The options that a function of the file may give: its texts, where all that it gathers are options."""
        found = next(
            (n for n in self.tree.body if isinstance(n, ast.FunctionDef) and n.name == function), None
        )
        if found is None:
            return []
        words: list[str] = []
        for node in ast.walk(found):
            held: list[ast.expr] = []
            if isinstance(node, ast.List | ast.Tuple):
                held = node.elts
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".append"):
                held = node.args
            for one in held:
                first = one.values[0] if isinstance(one, ast.JoinedStr) and one.values else one
                text = first.value if isinstance(first, ast.Constant) else None
                if (
                    not isinstance(text, str)
                    or not text.startswith("--")
                    or (first is not one and "=" not in text)
                ):
                    return [UNKNOWN]
                words.append(text)
        return words or [UNKNOWN]


@dataclass(slots=True)
class _State:
    """What holds for the statements of a session that follow."""

    mask: str | None = None
    doubt: str | None = None
    folder: str | None = "."
    ended: str = ""

    def into(self, call: ast.Call) -> None:
        """The session changes its folder."""
        first = call.args[0] if call.args else None
        text = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None
        self.folder = None if text is None or self.folder is None else posixpath.join(self.folder, text)
