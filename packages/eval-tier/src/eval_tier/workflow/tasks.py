"""The command lines of a task: Makefile targets, nox and tox sessions, npm scripts. Nothing is imported or run."""

from __future__ import annotations

import ast
import configparser
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from eval_tier.workflow.shell import HOLE, UNKNOWN


@dataclass(frozen=True, slots=True)
class Task:
    """One command line of a task.

    Attributes:
        line: where it stands in its file.
        text: the line, for a shell; or empty where `words` are given.
        mask, doubt: as of a command.
    """

    line: int
    text: str = ""
    words: tuple[str, ...] = ()
    mask: str | None = None
    doubt: str | None = None


class Unread(ValueError):
    """A task that cannot be read; the message says why."""


# ------------------------------------------------------------------ make

_RULE = re.compile(r"^([^\s#:=][^#:=]*?)\s*::?(?!=)\s*([^#;]*?)\s*(?:;\s*(.*?))?\s*(#.*)?$")
_VARIABLE = re.compile(r"^\s*(?:export\s+|override\s+)?([A-Za-z_][\w.-]*)\s*(::?=|\?=|\+=|=|!=)\s*(.*)$")
_USE = re.compile(r"\$(?:\$|\(([^()]*)\)|\{([^{}]*)\}|(.))")


class Makefile:
    """A Makefile, as far as recipes can be told from it."""

    def __init__(self, text: str) -> None:
        self.rules: dict[str, tuple[list[str], list[tuple[int, str]]]] = {}
        self.values: dict[str, str] = {}
        self.included = False
        self.default = ""
        self.one_shell = False
        self._parse(text)

    def _parse(self, text: str) -> None:
        targets: list[str] = []
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
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            if re.match(r"\s*-?s?include\b", line):
                self.included = True
            elif match := _VARIABLE.match(line):
                self._assign(match[1], match[2], match[3])
            elif match := _RULE.match(line):
                targets = self._expanded(match[1]).split()
                needs = [one for one in self._expanded(match[2]).split() if one != "|"]
                for target in targets:
                    held = self.rules.setdefault(target, ([], []))
                    held[0].extend(needs)
                    if match[3]:
                        held[1].append((first, match[3]))
                    if not self.default and not target.startswith(".") and "%" not in target:
                        self.default = target
                self.one_shell = self.one_shell or ".ONESHELL" in targets

    def _assign(self, name: str, sign: str, value: str) -> None:
        value = re.sub(r"(?<!\\)\s*#.*$", "", value).strip()
        if sign == "!=":
            value = HOLE
        if sign == "?=" and name in self.values:
            return
        if sign == "+=" and self.values.get(name):
            value = f"{self.values[name]} {value}"
        self.values[name] = self._expanded(value) if sign in (":=", "::=") else value
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

    def recipe(self, target: str, given: Mapping[str, str]) -> Iterator[Task]:
        """The lines of a target, those of what it needs first, each target once.

        Raises:
            Unread: there is no such target, or it may stand in a file that is included.
        """
        self.values.update(given)
        done: set[str] = set()
        yield from self._recipe(target, done, ())

    def _recipe(self, target: str, done: set[str], above: tuple[str, ...]) -> Iterator[Task]:
        if target in done or target in above or len(done) > 500:
            return
        held = self.rules.get(target)
        if held is None:
            if not above:
                why = (
                    "it may stand in a file that is included"
                    if self.included
                    else "it has no rule of that name"
                )
                raise Unread(f"make {target}: {why}")
            return  # a file, or a target of a pattern rule, as of an object
        done.add(target)
        for name in held[0]:
            yield from self._recipe(name, done, (*above, target))
        for line, text in held[1]:
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
            yield Task(line, self._expanded(text, target), mask=mask)

    @property
    def ignored(self) -> list[str]:
        """Targets whose failures are ignored."""
        held = self.rules.get(".IGNORE")
        return [] if held is None else held[0] or list(self.rules)


# ------------------------------------------------------------------ nox


def nox_sessions(text: str, asked: Sequence[str]) -> Iterator[Task]:
    """The commands of nox sessions: those asked for, else the default ones.

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
        yield from _session(found, sessions, (one,))


def _session(
    function: ast.FunctionDef, sessions: Mapping[str, ast.FunctionDef], above: tuple[str, ...]
) -> Iterator[Task]:
    if not function.args.args:
        return
    given = function.args.args[0].arg
    yield from _body(function.body, given, sessions, above, None, None)


def _body(
    body: Sequence[ast.stmt],
    given: str,
    sessions: Mapping[str, ast.FunctionDef],
    above: tuple[str, ...],
    mask: str | None,
    doubt: str | None,
) -> Iterator[Task]:
    for statement in body:
        if isinstance(statement, ast.If | ast.For | ast.While):
            what = "it stands inside an if" if isinstance(statement, ast.If) else "it stands inside a loop"
            yield from _body(statement.body, given, sessions, above, mask, doubt or what)
            yield from _body(statement.orelse, given, sessions, above, mask, doubt or what)
        elif isinstance(statement, ast.Try):
            lost = mask or ("an exception is caught" if statement.handlers else None)
            yield from _body(statement.body, given, sessions, above, lost, doubt)
            yield from _body(statement.orelse, given, sessions, above, mask, doubt or "it stands after a try")
            yield from _body(statement.finalbody, given, sessions, above, mask, doubt)
        elif isinstance(statement, ast.With):
            caught = any("suppress" in ast.unparse(item.context_expr) for item in statement.items)
            inner = "an exception is suppressed" if caught else mask
            yield from _body(statement.body, given, sessions, above, inner, doubt)
        elif isinstance(statement, ast.Return | ast.Raise):
            return
        else:
            for node in ast.walk(statement):
                if isinstance(node, ast.Call):
                    yield from _call(node, given, sessions, above, mask, doubt)


def _call(
    node: ast.Call,
    given: str,
    sessions: Mapping[str, ast.FunctionDef],
    above: tuple[str, ...],
    mask: str | None,
    doubt: str | None,
) -> Iterator[Task]:
    """A call of `session.run`, or of a function that is handed the session: its leading texts are a command."""
    name = ast.unparse(node.func)
    arguments = list(node.args)
    if name == f"{given}.notify" and arguments and isinstance(arguments[0], ast.Constant):
        other = str(arguments[0].value)
        if other in sessions and other not in above and len(above) < 8:
            yield from _session(sessions[other], sessions, (*above, other))
        return
    if name in (f"{given}.run", f"{given}.run_always", f"{given}.run_install"):
        pass
    elif arguments and isinstance(arguments[0], ast.Name) and arguments[0].id == given:
        arguments = arguments[1:]
    else:
        return
    words: list[str] = []
    for argument in arguments:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            words.append(argument.value)
        elif isinstance(argument, ast.Starred) and isinstance(argument.value, ast.Tuple | ast.List):
            words += [
                e.value if isinstance(e, ast.Constant) and isinstance(e.value, str) else UNKNOWN
                for e in argument.value.elts
            ]
        else:
            words.append(UNKNOWN)
    for option in node.keywords:
        if option.arg == "success_codes" and ast.unparse(option.value) != "[0]":
            mask = mask or "success_codes takes its failure for a success"
    if words and words[0] != UNKNOWN:
        yield Task(node.lineno, words=tuple(words), mask=mask, doubt=doubt)


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
        for line in filter(None, map(str.strip, joined.split("\n"))):
            mask = "tox ignores its failure (a - before the line)" if line.startswith("-") else None
            plain = re.sub(r"\{[^}]*\}", HOLE, line.lstrip("-! "))
            number = next((n for n, row in enumerate(text.split("\n"), 1) if line[:20] in row), 1)
            yield Task(number, plain, mask=mask)


def npm_script(text: str, name: str) -> Iterator[Task]:
    """The command line of a script of package.json, with those that npm runs before and after it.

    Raises:
        Unread: it is no package.json, or has no such script.
    """
    try:
        scripts = json.loads(text)["scripts"]
        found = {key: scripts[key] for key in (f"pre{name}", name, f"post{name}") if key in scripts}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unread("it has no scripts that can be read") from error
    if name not in found:
        raise Unread(f"it has no script {name!r}")
    for key, line in found.items():
        number = next((n for n, row in enumerate(text.split("\n"), 1) if f'"{key}"' in row), 1)
        yield Task(number, str(line))
