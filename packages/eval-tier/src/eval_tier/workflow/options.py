"""How a shell is started and set: what of it changes whether a failure counts, or what a program's name stands for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

_SHELLS = ("bash", "sh", "dash")
_LETTERS = (
    "euxlfvhBEPTCab"  # none of these but `e` changes which commands are run, or whether a failure counts
)
_NAMES = ("pipefail", "errexit", "nounset", "xtrace", "verbose", "noglob", "errtrace", "functrace", "noclobber",
          "allexport", "braceexpand", "hashall", "physical", "igncr")  # fmt: skip
_LONG = ("--noprofile", "--norc", "--login")

#: Variables that make a shell or a program do something else than what is written.
_STEERING = ("BASH_ENV", "SHELLOPTS", "BASHOPTS", "PATH", "LD_PRELOAD")
_OWN = re.compile(r"\$\{?(?:PWD|GITHUB_WORKSPACE)\}?|\$\(pwd\)|`pwd`|[^/$~\ue000]|\ue000+")
_INSTALLED = re.compile(r"(?:^|/)(?:\.?venv|env|\.tox|\.nox|node_modules/\.bin|\.pixi)(?:/|$)")


@dataclass(frozen=True, slots=True)
class Options:
    """What a shell does with a failure.

    Attributes:
        stops: it ends at a failure (`-e`).
        pipefail: a pipeline fails with any of its parts.
        inherits: `-e` holds inside `$(…)` as well.
    """

    stops: bool = False
    pipefail: bool = False
    inherits: bool = False


def started(script: str, shell: str | Sequence[str] | None, runner: str) -> Options | str:
    """The options that a shell starts with, or why its scripts are not read. `shell` is that of `commands`."""
    if shell is None:
        if "windows" in runner.lower():
            return "the default shell of Windows is PowerShell, which is not read"
        return Options(stops=True)
    if shell == "recipe":
        return Options(inherits=True)
    if shell == "bash":
        return Options(stops=True, pipefail=True)
    if shell == "sh":
        return Options(stops=True, inherits=True)
    if shell == "script":
        first = script.split("\n", 1)[0]
        if not first.startswith("#!"):
            return Options()
        shown = first.removeprefix("#!").strip()
        words = [word for word in shown.split() if word.rsplit("/", 1)[-1] != "env" and word != "-S"]
    elif isinstance(shell, str):
        shown, words = shell, shell.split()
        if words[-1:] != ["{0}"]:
            return f"the shell {shell!r} is not read"
        words.pop()
    else:
        shown, words = " ".join(shell), list(shell)
    name = words[0].rsplit("/", 1)[-1] if words else ""
    found = changed(words[1:], Options(inherits=name != "bash")) if name in _SHELLS else None
    return found if found is not None else f"the shell {shown!r} is not read"


def changed(words: Sequence[str], options: Options) -> Options | None:
    """The options after those of `set`, or of a shell's command line; None where one is not known."""
    left = list(words)
    while left:
        word = left.pop(0)
        if word in _LONG:
            continue
        if not re.fullmatch(r"[-+][A-Za-z]+", word):
            return None
        on = word[0] == "-"
        for letter in word[1:]:
            name = "errexit" if letter == "e" else ""
            if letter == "o":
                name = left.pop(0) if left else "?"
            elif letter not in _LETTERS:
                return None
            if name and name not in _NAMES:
                return None
            if name == "errexit":
                options = replace(options, stops=on)
            elif name == "pipefail":
                options = replace(options, pipefail=on)
    return options


def steered(env: Mapping[str, str]) -> str | None:
    """Which variable of a step's environment makes its shell or its programs do something else than is written."""
    for name, value in env.items():
        # `ENV` is a file that a shell reads; many use the name for a word such as `production`.
        if (
            name in _STEERING
            or name.startswith("BASH_FUNC_")
            or (name == "ENV" and re.search(r"[/.$]", value))
        ):
            return f"the variable {name} of its environment may change what is run"
    return None


def own_path(value: str) -> bool:
    """Whether the text of a `PATH` has a folder of the repository before the usual ones."""
    for part in value.strip("\"'").split(":"):
        part = part.strip("\"'")
        if part in ("$PATH", "${PATH}"):
            return False
        if (not part or _OWN.match(part)) and not _INSTALLED.search(part):
            return True
    return False
