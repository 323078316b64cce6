"""What a step comes to: its commands, and those of the scripts and tasks that it calls, each with the chain to it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from eval_tier.workflow.actions import Reader
from eval_tier.workflow.launchers import Stripped, strip
from eval_tier.workflow.models import Command, Gap, Job, Place, Step
from eval_tier.workflow.sessions import nox_sessions
from eval_tier.workflow.shell import MOST_BYTES, UNKNOWN, commands
from eval_tier.workflow.tasks import Makefile, Task, Unread, npm_script, tox_commands

#: Calls within one another, and commands of one step.
MOST_DEPTH, MOST_COMMANDS = 8, 5_000

#: Variables that change what a shell runs, or which program a name stands for.
_CHANGES = ("BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PATH")

#: What a sourced file may do to what follows it.
_LEAVES = re.compile(r"\b(?:trap|exit|return|alias|exec|eval|shopt|unset)\b|\bset\s+\+|\bPATH=")
_FUNCTION = re.compile(
    r"^[ \t]*(?:function[ \t]+)?([\w:.-]+)[ \t]*\([ \t]*\)|^[ \t]*function[ \t]+([\w:.-]+)", re.MULTILINE
)

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
    folder: str = "."
    functions: tuple[str, ...] = ()  # of files that were sourced

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
    runner = job.runner or "ubuntu-latest"
    found, gaps = commands(step.script, step.place.file, step.script_line, step.shell, runner, step.env)
    expansion.gaps += gaps
    changed = next((name for name in _CHANGES if name in step.env), None)
    doubt = None if changed is None else f"the variable {changed} changes what is run"
    expansion.take(found, _Outer(folder=posixpath.normpath(step.folder or "."), doubt=doubt))
    return expansion.commands, expansion.gaps


class _Expansion:
    def __init__(self, read: Reader, folder: Callable[[str], bool] | None, env: Mapping[str, str]) -> None:
        self._read, self._folder, self._env = read, folder, env
        self.commands: list[Command] = []
        self.gaps: list[Gap] = []

    def take(self, found: Iterable[Command], outer: _Outer) -> None:
        """Commands that are written one after the other, in a folder that `cd` changes."""
        for command in found:
            if len(self.commands) >= MOST_COMMANDS:
                self.gap(outer.chain, f"the step comes to more than {MOST_COMMANDS:,} commands")
                return
            stripped = strip(command.words)
            first = next((word for word in command.words if "/" in word), "")
            if stripped.script is None and (own := self._own(first, outer.folder)) is not None:
                stripped = replace(stripped, words=(first, *stripped.words[1:]), script=own)
            command = replace(
                command,
                words=stripped.words,
                chain=(*outer.chain, *command.chain),
                mask=outer.mask or command.mask,
                doubt=outer.doubt or command.doubt or stripped.doubt,
                folder=outer.folder,
            )
            if command.words and command.words[0] in outer.functions:
                self.gap(command.chain, f"{command.words[0]!r} is a function of a file that is sourced")
                continue
            if stripped.words[:1] == ("cd",) and len(stripped.words) > 1:
                outer = replace(outer, folder=self._cd(outer.folder, stripped.words[1], command))
                continue
            self.commands.append(command)
            if stripped.words[:1] == (UNKNOWN,):
                self.gap(command.chain, "which program is run follows from a value that is not known")
            elif stripped.gap is not None:
                self.gap(command.chain, stripped.gap)
            else:
                self.call(command, stripped, outer)
                if stripped.words[:1] in ((".",), ("source",)) and stripped.script is not None:
                    outer = self._sourced(stripped.script, outer)

    def _own(self, word: str, folder: str) -> str | None:
        """A relative path to a program, where that is a file of the repository."""
        if (
            not word
            or word.startswith((UNKNOWN, "/", "-"))
            or UNKNOWN in folder
            or not re.search("/(bin|Scripts)/", f"/{word}")
        ):
            return None
        whole = posixpath.normpath(posixpath.join(folder, word))
        return word if not whole.startswith("..") and self._read(whole) is not None else None

    def _sourced(self, path: str, outer: _Outer) -> _Outer:
        """What holds after a file was sourced: its functions, and a doubt where it may change the shell."""
        raw = (
            None
            if UNKNOWN in path + outer.folder
            else self._read(posixpath.normpath(posixpath.join(outer.folder, path)))
        )
        text = (raw or b"").decode("utf-8", "replace")
        names = tuple(one[0] or one[1] for one in _FUNCTION.findall(text))
        doubt = f"{path}, which is sourced before, may change what is run" if _LEAVES.search(text) else None
        return replace(outer, functions=(*outer.functions, *names), doubt=outer.doubt or doubt)

    def gap(self, chain: tuple[Place, ...], what: str) -> None:
        if len(self.gaps) < 200:
            self.gaps.append(Gap(chain, what))

    def _cd(self, folder: str, target: str, command: Command) -> str:
        if UNKNOWN in target:
            # `cd "$(dirname "$0")/.."` of a script: to where it lies, and up.
            file = command.chain[-1].file
            ups = target.count("..")
            if target.replace(UNKNOWN, "").strip("/.") == "" and len(command.chain) > 1:
                return posixpath.normpath(posixpath.join(posixpath.dirname(file) or ".", *[".."] * ups))
            return folder if target == UNKNOWN else UNKNOWN
        return posixpath.normpath(posixpath.join(folder, target))

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
        elif name in ("just", "task", "mise", "invoke", "inv", "doit", "rake") and len(words) > 1:
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
        options = " ".join(word for word in stripped.words[1:] if word[:1] in "-+" and word != "-c")
        shell = f"bash {options.replace('c', '')}"
        found, gaps = commands(stripped.shell_text or "", place.file, place.line or 1, shell)
        self._add(found, gaps, replace(inner, chain=command.chain[:-1]))

    def _script(self, command: Command, stripped: Stripped, outer: _Outer) -> None:
        path = stripped.script or ""
        if path.endswith((".py", ".js", ".mjs", ".ts", ".rb", ".pl", ".R")):
            return  # a program: it is the command itself
        held = self._file(command, path, outer.folder)
        if held is None:
            return
        whole, text = held
        shell = "script"
        if stripped.words[0] in ("bash", "sh", "dash"):
            flags = " ".join(
                word for word in stripped.words[1 : stripped.words.index(path)] if word[:1] in "-+"
            )
            shell = f"bash {flags}" if flags or not text.startswith("#!") else "script"
            if not flags:
                text = re.sub(r"\A#![^\n]*", "#", text)  # `bash FILE` does not look at it
        elif (
            stripped.words[0] not in (".", "source")
            and text.startswith("#!")
            and "sh" not in text.split("\n")[0]
        ):
            return  # a program of another language
        inner = self._inner(command, stripped, outer, whole)
        if inner is not None:
            found, gaps = commands(text, whole, 1, shell)
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
        folder, file, mask = outer.folder, "", None
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
                inner = replace(inner, mask=inner.mask or mask, folder=folder)
                self._tasks(makefile.recipe(target, given, env, stands), whole, inner, shell)
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
        held = self._file(command, file, outer.folder)
        inner = self._inner(command, stripped, outer, f"{file}:{' '.join(asked)}")
        if held is None or inner is None:
            return
        if any(UNKNOWN in name for name in asked):
            self.gap(command.chain, "which task it runs follows from a value that is not known")
            return
        try:
            self._tasks(tasks(held[1]), held[0], inner, "recipe")
        except Unread as error:
            self.gap(command.chain, f"{held[0]}: {error}")

    def _tasks(self, tasks: Iterable[Task], file: str, outer: _Outer, shell: str) -> None:
        for task in tasks:
            folder = (
                UNKNOWN
                if task.folder is None
                else posixpath.normpath(posixpath.join(outer.folder, task.folder))
            )
            here = replace(
                outer, mask=outer.mask or task.mask, doubt=outer.doubt or task.doubt, folder=folder
            )
            if task.words:
                self.take([Command(task.words, (Place(file, task.line),))], here)
            else:
                found, gaps = commands(task.text, file, task.line, shell)
                self._add(found, gaps, here)

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
