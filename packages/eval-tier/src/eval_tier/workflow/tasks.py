"""The command lines of a task: Makefile targets, tox environments, npm scripts. Nothing is imported or run."""

from __future__ import annotations

import configparser
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from eval_tier.workflow.shell import HOLE


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
        return f"bash {flags} {{0}}" if flags else "recipe"

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
        doubt = f"the target {target} depends on a condition" if target in self.conditional else None
        if target not in phony and held[1] and self._stands(target):
            doubt = f"a file or folder {target} is there, so that make may not run its recipe"
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
