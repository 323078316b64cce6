"""The command lines of a task: Makefile targets, nox and tox sessions, npm scripts. Nothing is imported or run."""

from __future__ import annotations

import ast
import configparser
import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from eval_tier.workflow.shell import HOLE, UNKNOWN


@dataclass(frozen=True, slots=True)
class Task:
    """One command line of a task.

    Attributes:
        line: where it stands in its file.
        text: the line, for a shell; or empty where `words` are given.
        mask, doubt: as of a command.
        folder: where it is run, relative to the file's own; None where that is not known.
    """

    line: int
    text: str = ""
    words: tuple[str, ...] = ()
    mask: str | None = None
    doubt: str | None = None
    folder: str | None = "."


class Unread(ValueError):
    """A task that cannot be read; the message says why."""


# ------------------------------------------------------------------ make

_VARIABLE = re.compile(r"(?:(?:export|override)\s+)*([.A-Za-z_][\w.-]*)\s*(:{1,3}=|[?+!]?=)(.*)", re.DOTALL)
_USE = re.compile(r"\$(?:\$|\(([^()]*)\)|\{([^{}]*)\}|(.))")


def _rule(line: str) -> tuple[str, str, str] | None:
    """The targets, what they need, and the recipe behind a `;` of a rule."""
    head, _, recipe = line.partition(";")
    head = head.partition("#")[0]
    targets, colon, needs = head.partition(":")
    if not colon or not targets.strip() or needs.startswith("="):
        return None
    needs = needs.removeprefix(":")
    return None if "=" in needs else (targets, needs, recipe.strip())  # a variable of a target


class Makefile:
    """A Makefile, as far as recipes can be told from it."""

    def __init__(self, text: str) -> None:
        self.rules: dict[str, tuple[list[str], list[tuple[int, str]]]] = {}
        self.values: dict[str, str] = {}
        self.conditional: set[str] = set()  # targets and variables that stand inside an ifdef or ifeq
        self.weak: set[str] = set()  # variables of `?=`, which the environment overrides
        self.includes: list[str] = []
        self.unread: str | None = None
        self._stands: Callable[[str], bool] = lambda _: False
        self.default = ""
        self._parse(text)

    def _parse(self, text: str) -> None:
        targets: list[str] = []
        inside = 0
        lines = text.split("\n")
        place = 0
        while place < len(lines):
            first, line = place + 1, lines[place].rstrip("\r")
            place += 1
            recipe = line.startswith("\t")
            while line.endswith("\\") and place < len(lines):
                following = lines[place].rstrip("\r")
                line = (
                    f"{line}\n{following.removeprefix(chr(9))}"
                    if recipe
                    else f"{line[:-1]} {following.strip()}"
                )
                place += 1
            if recipe:
                for target in targets:
                    self.rules[target][1].append((first, line[1:]))
                continue
            line = line.strip()
            word = line.split(None, 1)[0] if line else ""
            if not line or word.startswith("#"):
                continue
            if word in ("ifdef", "ifndef", "ifeq", "ifneq") or word.startswith(("ifeq(", "ifneq(")):
                inside += 1
            elif word == "endif":
                inside = max(inside - 1, 0)
            elif word == "else":
                continue
            elif word in ("include", "-include", "sinclude"):
                self.includes += self._expanded(line[len(word) :]).split()
            elif word in ("define", "vpath") or line.startswith(".RECIPEPREFIX"):
                self.unread = f"`{word}` in it is not read"
            elif match := _VARIABLE.match(line):
                self._assign(match[1], match[2], match[3].strip())
                if inside:
                    self.conditional.add(match[1])
            elif rule := _rule(line):
                targets = self._expanded(rule[0]).split()
                needs = [one for one in self._expanded(rule[1]).split() if one != "|"]
                if rule[2] or (place < len(lines) and lines[place].startswith("\t")):
                    for target in targets:  # the last recipe of a target wins
                        if not line.split("#")[0].count("::") and target in self.rules:
                            del self.rules[target][1][:]
                for target in targets:
                    held = self.rules.setdefault(target, ([], []))
                    held[0].extend(needs)
                    if rule[2]:
                        held[1].append((first, rule[2]))
                    if not self.default and not target.startswith(".") and "%" not in target:
                        self.default = target
                    if inside:
                        self.conditional.add(target)

    def _assign(self, name: str, sign: str, value: str) -> None:
        value = value.partition("#")[0].strip() if "\\#" not in value else value
        (self.weak.add if sign == "?=" else self.weak.discard)(name)
        if sign == "!=":
            value = HOLE
        if sign == "?=" and name in self.values:
            return
        if sign == "+=" and self.values.get(name):
            value = f"{self.values[name]} {value}"
        self.values[name] = self._expanded(value) if sign.startswith(":") else value
        if name == ".DEFAULT_GOAL":
            self.default = self._expanded(value)

    def _expanded(self, text: str, target: str = "", depth: int = 0) -> str:
        if depth > 10 or len(text) > 100_000:
            return HOLE

        def value(found: re.Match[str]) -> str:
            if found[0] == "$$":
                return "$"
            name = found[1] or found[2] or found[3] or ""
            if name == "@":
                return target or HOLE
            if name == "MAKE":
                return "make"
            known = self.values.get(name)
            return HOLE if known is None else self._expanded(known, target, depth + 1)

        return _USE.sub(value, text)

    @property
    def shell(self) -> str:
        """The shell of the recipes, as a step names one.

        Raises:
            Unread: it is none that is read.
        """
        program, flags = self.values.get("SHELL", "sh"), self.values.get(".SHELLFLAGS", "-c")
        if program.rsplit("/", 1)[-1] not in ("sh", "bash", "dash"):
            raise Unread(f"SHELL = {program} is no shell that is read")
        if any("SHELL" in name for name in self.conditional):
            raise Unread("its SHELL depends on a condition")
        flags = " ".join(flag.replace("c", "") for flag in flags.split() if flag != "-c")
        return f"bash {flags}" if flags else "recipe"

    def recipe(
        self, target: str, given: Mapping[str, str], env: Mapping[str, str], stands: Callable[[str], bool]
    ) -> Iterator[Task]:
        """The lines of a target, those of what it needs first, each target once.

        Args:
            given: variables of the command line; `env`: those of the environment, which `?=` takes.
            stands: whether a file or folder of a name is there: of a target that is not .PHONY nothing is run then.

        Raises:
            Unread: there is no such target, or what it runs cannot be told.
        """
        if self.unread:
            raise Unread(self.unread)
        self.values.update({name: value for name, value in env.items() if name in self.weak})
        self.values.update(given)
        flags = (
            f"{self.values.get('MAKEFLAGS', '')} {env.get('MAKEFLAGS', '')} {env.get('MFLAGS', '')}".split()
        )
        if flags:
            raise Unread(f"MAKEFLAGS = {' '.join(flags)} changes how make runs")
        self._stands = stands
        done: set[str] = set()
        yield from self._recipe(target, done, ())

    def _recipe(self, target: str, done: set[str], above: tuple[str, ...]) -> Iterator[Task]:
        if target in done or target in above or len(done) > 500:
            return
        held = self.rules.get(target)
        if held is None:
            if not above:
                raise Unread(f"make {target}: it has no rule of that name")
            return  # a file, or a target of a pattern rule, as of an object
        done.add(target)
        phony = self.rules.get(".PHONY", ([], []))[0]
        if target not in phony and held[1] and self._stands(target):
            raise Unread(
                f"make {target}: a file or folder of that name is there, so that its recipe is not run"
            )
        doubt = f"the target {target} depends on a condition" if target in self.conditional else None
        for name in held[0]:
            yield from self._recipe(name, done, (*above, target))
        lines = held[1]
        if ".ONESHELL" in self.rules and lines:
            lines = [(lines[0][0], "\n".join(text for _, text in lines))]
        for line, text in lines:
            text = text.lstrip()
            ignored = False
            while text[:1] in "@-+" and text:
                ignored = ignored or text[0] == "-"
                text = text[1:].lstrip()
            mask = (
                "make ignores its failure (a - before the line)"
                if ignored or target in self.ignored
                else None
            )
            names = {found[1] or found[2] for found in _USE.finditer(text)} & self.conditional
            unsure = f"{min(names)} depends on a condition" if names else None
            yield Task(line, self._expanded(text, target), mask=mask, doubt=doubt or unsure)

    @property
    def ignored(self) -> list[str]:
        """Targets whose failures are ignored."""
        held = self.rules.get(".IGNORE")
        return [] if held is None else held[0] or list(self.rules)


# ------------------------------------------------------------------ nox


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


# ------------------------------------------------------------------ tox, npm


def tox_commands(text: str, asked: Sequence[str], *, toml: bool) -> Iterator[Task]:
    """The commands of tox environments, those of `testenv` where one has none of its own.

    Raises:
        Unread: it is no configuration that is read.
    """
    if toml:
        raise Unread("tox is configured in TOML, which is not read")
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise Unread("it is no tox.ini that can be read") from error
    names = list(asked) or [
        n for n in parser.get("tox", "envlist", fallback="").replace(",", "\n").split() if n
    ]
    for name in names or [""]:
        section = f"testenv:{name}" if parser.has_option(f"testenv:{name}", "commands") else "testenv"
        if name and not parser.has_section(f"testenv:{name}") and not parser.has_section("testenv"):
            raise Unread(f"there is no environment {name!r}")
        joined = re.sub(r"\\\n\s*", " ", parser.get(section, "commands", fallback=""))
        said = {key: parser.get(f"testenv:{name}", key, fallback=parser.get("testenv", key, fallback=""))
                for key in ("ignore_outcome", "ignore_errors", "platform", "changedir", "skip")}  # fmt: skip
        doubt = f"platform = {said['platform']} may leave it out" if said["platform"] else None
        folder = said["changedir"].replace("{toxinidir}", ".").lstrip("/") or "."
        for line in filter(None, map(str.strip, joined.split("\n"))):
            mask = "tox ignores its failure (a - before the line)" if line.startswith("-") else None
            if line.startswith("!"):
                mask = "tox turns its failure round (a ! before the line)"
            if said["ignore_outcome"].lower() == "true":
                mask = mask or "ignore_outcome = true"
            plain = re.sub(r"\{[^}]*\}", HOLE, line.lstrip("-! "))
            number = next((n for n, row in enumerate(text.split("\n"), 1) if line[:20] in row), 1)
            yield Task(number, plain, mask=mask, doubt=doubt, folder=None if "{" in folder else folder)


def npm_script(text: str, name: str, *, around: bool = True) -> Iterator[Task]:
    """The command line of a script of package.json, with those that npm runs before and after it (`around`).

    Raises:
        Unread: it is no package.json, or has no such script.
    """
    try:
        scripts = json.loads(text)["scripts"]
        found = {
            key: scripts[key]
            for key in ((f"pre{name}", name, f"post{name}") if around else (name,))
            if key in scripts
        }
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unread("it has no scripts that can be read") from error
    if name not in found:
        raise Unread(f"it has no script {name!r}")
    for key, line in found.items():
        number = next((n for n, row in enumerate(text.split("\n"), 1) if f'"{key}"' in row), 1)
        yield Task(number, str(line))
