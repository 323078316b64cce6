"""What a step comes to: its commands, and those of the scripts and tasks that it calls, each with the chain to it."""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eval_tier.workflow.actions import Reader
from eval_tier.workflow.launchers import SHELLS, Stripped, strip
from eval_tier.workflow.models import Command, Gap, Job, Place, Step
from eval_tier.workflow.options import steered
from eval_tier.workflow.sessions import nox_sessions
from eval_tier.workflow.shell import MOST_BYTES, UNKNOWN, commands
from eval_tier.workflow.tasks import Makefile, Task, Unread, npm_script, tox_commands

#: Calls within one another, and commands of one step.
MOST_DEPTH, MOST_COMMANDS = 8, 5_000

#: Options of make that change nothing of what it runs.
_MAKE_OPTIONS = ("--silent", "--quiet", "--no-print-directory", "--always-make", "--print-directory", "--jobs",
                 "--output-sync", "--no-builtin-rules", "--warn-undefined-variables")  # fmt: skip

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")


@dataclass(frozen=True, slots=True)
class _Outer:
    """What a command inherits from those that call it."""

    chain: tuple[Place, ...] = ()
    mask: str | None = None
    doubt: str | None = None
    calls: tuple[str, ...] = ()

    def under(self, command: Command, stripped: Stripped, call: str) -> _Outer:
        return replace(
            self,
            chain=command.chain,
            mask=command.mask,
            doubt=command.doubt or stripped.doubt,
            calls=(*self.calls, call),
        )


def expand(
    step: Step, job: Job, read: Reader, folder: Callable[[str], bool] | None = None
) -> tuple[list[Command], list[Gap]]:
    """The commands of a step's script, launchers looked through, with all that they call inside the repository.

    What is called is followed one level at a time; masks and doubts add up on the way. `folder` tells whether a path is
    a folder.
    """
    if step.script is None:
        return [], []
    expansion = _Expansion(read, folder, step.env)
    place = posixpath.normpath(step.folder or ".")
    place = UNKNOWN if "${{" in place else place
    found, gaps = commands(step.script, step.place.file, step.script_line, step.shell, job.runner or "ubuntu-latest",
                           step.env, place, expansion.sourced)  # fmt: skip
    expansion.gaps += gaps
    expansion.take(found, _Outer(doubt=steered(step.env)))
    return expansion.commands, expansion.gaps


class _Expansion:
    def __init__(self, read: Reader, folder: Callable[[str], bool] | None, env: Mapping[str, str]) -> None:
        self._read, self._folder, self._env = read, folder, env
        self.commands: list[Command] = []
        self.gaps: list[Gap] = []

    def take(self, found: Iterable[Command], outer: _Outer) -> None:
        """Commands that are written one after the other."""
        for command in found:
            if len(self.commands) >= MOST_COMMANDS:
                self.gap(outer.chain, f"the step comes to more than {MOST_COMMANDS:,} commands")
                return
            stripped = strip(command.words)
            doubt = self._named(stripped, command.folder)
            own = stripped.script is not None and self._found(stripped.script, command.folder) is not None
            command = replace(
                command,
                words=(stripped.script or "", *stripped.words[1:])
                if stripped.installed and own
                else stripped.words,
                chain=(*outer.chain, *command.chain),
                mask=outer.mask or command.mask,
                doubt=outer.doubt or command.doubt or stripped.doubt or doubt,
            )
            self.commands.append(command)
            if stripped.words[:1] == (UNKNOWN,) and stripped.gap is None:
                self.gap(command.chain, "which program is run follows from a value that is not known")
            elif stripped.gap is not None:
                self.gap(command.chain, stripped.gap)
            elif doubt is not None:
                self.gap(command.chain, doubt)
            else:
                self.call(command, stripped, outer)

    def gap(self, chain: tuple[Place, ...], what: str) -> None:
        if len(self.gaps) < 200:
            self.gaps.append(Gap(chain, what))

    def _named(self, stripped: Stripped, folder: str) -> str | None:
        """Why a command may be a script of a configuration, which is not read, where a launcher looks for one."""
        name = stripped.words[0].rpartition(":")[2] if stripped.words else ""
        for file in stripped.named:
            held = self._found(file, folder)
            try:
                table = tomllib.loads(held[1][:MOST_BYTES].decode("utf-8", "replace")) if held else {}
                own = _has_script(table, name)
            except (tomllib.TOMLDecodeError, RecursionError):
                own = True
            if own or ":" in stripped.words[0]:
                return f"what the script {name} of {file} runs is not read"
        return None

    def sourced(self, path: str, folder: str) -> tuple[str, str] | None:
        """The path and the text of a file of the repository that a shell sources."""
        held = self._found(path, folder)
        return (held[0], held[1].decode("utf-8", "replace")) if held and len(held[1]) <= MOST_BYTES else None

    def _found(self, path: str, folder: str) -> tuple[str, bytes] | None:
        """A file of the repository by its path as written; what stands before it may not be known."""
        _start, unknown, rest = path.rpartition(UNKNOWN)
        rest = rest.lstrip("/") if unknown or path.startswith("/") else rest
        folders = [] if UNKNOWN in folder or path.startswith("/") else [folder]
        for base in [*folders, "."] if unknown or path.startswith("/") else folders:
            whole = posixpath.normpath(posixpath.join(base, rest))
            raw = None if whole.startswith(("..", "/")) else self._read(whole)
            if raw is not None:
                return whole, raw
        return None

    def call(self, command: Command, stripped: Stripped, outer: _Outer) -> None:
        """Follow a command that runs something of the repository."""
        words = stripped.words
        name = posixpath.basename(words[0]) if words else ""
        if stripped.shell_text is not None:
            self._shell(command, stripped, outer)
        elif stripped.script is not None:
            self._script(command, stripped, outer)
        elif name in ("make", "gmake"):
            self._make(command, stripped, outer)
        elif name == "nox":
            self._nox(command, stripped, outer)
        elif name == "tox":
            self._tox(command, stripped, outer)
        elif name in ("npm", "pnpm", "yarn", "bun"):
            self._npm(command, stripped, outer)
        elif name in ("invoke", "inv", "doit", "rake") and len(words) > 1:
            self.gap(command.chain, f"what `{name}` runs is not read")

    def _inner(self, command: Command, stripped: Stripped, outer: _Outer, call: str) -> _Outer | None:
        if call in outer.calls:
            self.gap(command.chain, f"{call} calls itself")
            return None
        if len(outer.calls) >= MOST_DEPTH:
            self.gap(command.chain, f"calls are nested deeper than {MOST_DEPTH} levels")
            return None
        return outer.under(command, stripped, call)

    def _file(self, command: Command, path: str, folder: str) -> tuple[str, str] | None:
        """The path and the text of a file; a gap where it cannot be read."""
        if UNKNOWN in path or UNKNOWN in folder:
            self.gap(command.chain, "which file it runs follows from a value that is not known")
            return None
        whole = posixpath.normpath(posixpath.join(folder, path))
        raw = None if whole.startswith(("..", "/")) else self._read(whole)
        if raw is None:
            self.gap(command.chain, f"{whole} is no file of the repository")
            return None
        if len(raw) > MOST_BYTES:
            self.gap(command.chain, f"{whole} has more than {MOST_BYTES:,} bytes")
            return None
        return whole, raw.decode("utf-8", "replace")

    def _shell(self, command: Command, stripped: Stripped, outer: _Outer) -> None:
        inner = self._inner(command, stripped, outer, f"-c {stripped.shell_text}")
        if inner is None:
            return
        if UNKNOWN in (stripped.shell_text or ""):
            self.gap(command.chain, "the script that it is given follows from a value that is not known")
            return
        place = command.chain[-1]
        shell = (stripped.words[0], *stripped.options)
        found, gaps = commands(
            stripped.shell_text or "", place.file, place.line or 1, shell,
            folder=command.folder, sourced=self.sourced,
        )  # fmt: skip
        self._add(found, gaps, replace(inner, chain=command.chain[:-1]))

    def _script(self, command: Command, stripped: Stripped, outer: _Outer) -> None:
        path = stripped.script or ""
        if path.endswith((".py", ".js", ".mjs", ".ts", ".rb", ".pl", ".R")):
            return  # a program: it is the command itself
        known = self._found(path, command.folder)
        if known is None and stripped.installed:
            return  # a program that is installed
        held = self._file(command, known[0] if known else path, "." if known else command.folder)
        if held is None:
            return
        whole, text = held
        shell: str | tuple[str, ...] = "script"
        if stripped.words[0] in SHELLS:
            shell = (stripped.words[0], *stripped.options)
        elif text.startswith("#!") and "sh" not in text.split("\n")[0]:
            if stripped.installed:
                self.gap(command.chain, f"what {whole} does is not read")
            return  # a program of another language
        inner = self._inner(command, stripped, outer, whole)
        if inner is not None:
            found, gaps = commands(text, whole, 1, shell, folder=command.folder, sourced=self.sourced)
            self._add(found, gaps, inner)

    def _nox(self, command: Command, stripped: Stripped, outer: _Outer) -> None:
        options, given = _split(stripped.words[1:])
        file = "noxfile.py"
        for place, word in enumerate(options):
            if word in (
                "-l",
                "--list",
                "--list-sessions",
                "--install-only",
                "--help",
                "-h",
                "--version",
                "--usage",
            ):
                return
            if word in ("-f", "--noxfile") and place + 1 < len(options):
                file = options[place + 1]
        asked = _asked(options, ("-s", "-e", "--session", "--sessions"))
        if {"-k", "--keywords", "-t", "--tags", "-p", "--python", "--pythons"} & set(options) and not asked:
            self.gap(command.chain, "which sessions are chosen by keywords, tags or Python is not read")
            return
        self._task(command, stripped, outer, file, asked, lambda text: nox_sessions(text, asked, given))

    def _tox(self, command: Command, stripped: Stripped, outer: _Outer) -> None:
        options, _ = _split(stripped.words[1:])
        if {"-l", "--listenvs", "--notest", "-n", "list", "l", "config", "c", "devenv"} & set(options):
            return
        if "TOX_SKIP_ENV" in self._env or "-c" in options or "--conf" in options:
            self.gap(command.chain, "which environments tox runs, and by what file, is not read")
            return
        asked = [one for part in _asked(options, ("-e",)) for one in part.split(",")]
        self._task(
            command, stripped, outer, "tox.ini", asked, lambda text: tox_commands(text, asked, toml=False)
        )

    def _npm(self, command: Command, stripped: Stripped, outer: _Outer) -> None:
        name = posixpath.basename(stripped.words[0])
        options, _ = _split(stripped.words[1:])
        asked = [word for word in options if not word.startswith("-")]
        elsewhere = next(
            (w for w in options if re.match(r"-w\b|--workspaces?\b|-C\b|--prefix\b|--filter\b|--dir\b", w)),
            None,
        )
        explicit = asked[:1] in (["run"], ["run-script"])
        if explicit:
            asked = asked[1:]
        elif name == "npm" and asked[:1] not in (["test"], ["start"]) and elsewhere is None:
            return
        if not asked or asked[0] in (
            "install",
            "add",
            "ci",
            "exec",
            "dlx",
            "i",
            "x",
            "init",
            "publish",
            "version",
            "why",
        ):
            return
        if elsewhere is not None:
            self.gap(command.chain, f"which package.json is read with {elsewhere} is not followed")
            return
        around = "--ignore-scripts" not in options and name in ("npm", "yarn")
        if "--if-present" in options:
            command = replace(
                command, doubt=command.doubt or "--if-present leaves out a script that is not there"
            )
        self._task(command, stripped, outer, "package.json", asked,
                   lambda text: npm_script(text, asked[0], around=around))  # fmt: skip

    def _make(self, command: Command, stripped: Stripped, outer: _Outer) -> None:
        folder, file, mask = command.folder, "", None
        targets: list[str] = []
        given: dict[str, str] = {}
        left = list(stripped.words[1:])
        while left:
            word = left.pop(0)
            if word in ("-C", "--directory") and left:
                folder = posixpath.normpath(posixpath.join(folder, left.pop(0)))
            elif word in ("-f", "--file", "--makefile") and left:
                file = left.pop(0)
            elif word in ("-j", "-l") and left and left[0].isdigit():
                left.pop(0)
            elif re.fullmatch(r"-[jl][\d.]+|--jobs=\d+|-O\w*", word):
                continue
            elif match := re.fullmatch(r"([A-Za-z_.]\w*)[:+?]?=(.*)", word, re.DOTALL):
                given[match[1]] = match[2]
            elif not word.startswith("-"):
                targets.append(word)
            elif re.fullmatch(r"-[a-zA-Z]*[ik][a-zA-Z]*|--ignore-errors|--keep-going", word):
                mask = "make goes on after a failure"
            elif (
                re.search(r"[ntqho]", word)
                if re.fullmatch(r"-[a-zA-Z]+", word)
                else word not in _MAKE_OPTIONS
            ):
                self.gap(command.chain, f"what make runs with {word} is not read")
                return
        names = [file] if file else list(_MAKEFILES)
        paths = {
            name: posixpath.normpath(posixpath.join(folder, name)) for name in names if UNKNOWN not in folder
        }
        name = next((name for name, path in paths.items() if self._read(path) is not None), None)
        held = self._file(command, name or "Makefile", folder)
        if held is None:
            return
        whole, text = held

        def stands(target: str) -> bool:
            path = posixpath.normpath(posixpath.join(folder, target))
            return self._read(path) is not None or (self._folder is not None and self._folder(path))

        try:
            makefile = Makefile(text)
            if makefile.includes:
                raise Unread(f"it includes {makefile.includes[0]}, which may have other rules")
            env = {**self._env, **command.env, **_prefixed(command.words)}
            shell = Makefile(f"SHELL={given['SHELL']}\n").shell if "SHELL" in given else makefile.shell
            for target in targets or [makefile.default]:
                inner = self._inner(command, stripped, outer, f"{whole}:{target}")
                if inner is None:
                    return
                inner = replace(inner, mask=inner.mask or mask)
                self._tasks(makefile.recipe(target, given, env, stands), whole, inner, folder, shell)
        except (Unread, RecursionError) as error:
            self.gap(command.chain, str(error) or "the Makefile is nested too deeply")

    def _task(
        self,
        command: Command,
        stripped: Stripped,
        outer: _Outer,
        file: str,
        asked: Sequence[str],
        tasks: Callable[[str], Iterator[Task]],
    ) -> None:
        held = self._file(command, file, command.folder)
        inner = self._inner(command, stripped, outer, f"{file}:{' '.join(asked)}")
        if held is None or inner is None:
            return
        if any(UNKNOWN in name for name in asked):
            self.gap(command.chain, "which task it runs follows from a value that is not known")
            return
        try:
            self._tasks(tasks(held[1]), held[0], inner, command.folder)
        except Unread as error:
            self.gap(command.chain, f"{held[0]}: {error}")

    def _tasks(
        self, tasks: Iterable[Task], file: str, outer: _Outer, folder: str, shell: str = "recipe"
    ) -> None:
        for task in tasks:
            here = UNKNOWN if task.folder is None else posixpath.normpath(posixpath.join(folder, task.folder))
            inner = replace(outer, mask=outer.mask or task.mask, doubt=outer.doubt or task.doubt)
            if task.words:
                self.take([Command(task.words, (Place(file, task.line),), folder=here)], inner)
            else:
                found, gaps = commands(task.text, file, task.line, shell, folder=here, sourced=self.sourced)
                self._add(found, gaps, inner)

    def _add(self, found: Iterable[Command], gaps: Iterable[Gap], outer: _Outer) -> None:
        for gap in gaps:
            self.gap((*outer.chain, *gap.chain), gap.what)
        self.take(found, outer)


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words before and behind `--`."""
    held = list(words)
    return (held[: held.index("--")], held[held.index("--") + 1 :]) if "--" in held else (held, [])


def _prefixed(words: Sequence[str]) -> dict[str, str]:
    """The assignments before a command, as of `env A=b make`."""
    found = (re.fullmatch(r"([A-Za-z_]\w*)=(.*)", word, re.DOTALL) for word in words)
    return {one[1]: one[2] for one in found if one}


def _asked(words: Sequence[str], options: tuple[str, ...]) -> list[str]:
    """The values of an option that takes one or several; none after `--`."""
    found: list[str] = []
    taking = False
    for word in words:
        if word == "--":
            break
        if word.startswith("-"):
            taking = word in options
            if "=" in word and word.split("=")[0] in options:
                found.append(word.split("=", 1)[1])
        elif taking:
            found.append(word)
    return found


def _has_script(table: Mapping[str, Any], name: str) -> bool:
    """Whether a table of scripts or tasks, at any depth, has one of this name; those of the package are programs."""
    return any(
        isinstance(value, dict)
        and ((key in ("scripts", "tasks") and name in value) or _has_script(value, name))
        for key, value in table.items()
        if key != "project"
    )
