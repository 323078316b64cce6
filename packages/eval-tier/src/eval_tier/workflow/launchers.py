"""Programs that only start another one are looked through: what is left is the command that does the work."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

#: Modules that a script of the same package stands for.
MODULES = {name.replace("-", "_"): name for name in ("eval-core", "eval-gate", "eval-tier", "eval-backends")}

_PYTHON = re.compile(r"(python|pypy)[0-9.]*(\.exe)?")
SHELLS = ("bash", "sh", "dash", "zsh", "ksh")

#: Launchers that are followed by a command, with the words that make them one, and their options that take a value.
_BEFORE: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("uv", "tool", "run"), ("--from", "--with", "-p", "--python", "--index-url")),
    (("uv", "run"), ("--with", "-p", "--python", "--extra", "--group", "--package", "--project", "--directory",
                     "--only-group", "--no-group", "--env-file", "--with-requirements", "--with-editable")),
    (("uvx",), ("--from", "--with", "-p", "--python")),
    (("pipx", "run"), ("--spec", "--python")),
    (("poetry", "run"), ()),
    (("pdm", "run"), ("-p",)),
    (("hatch", "run"), ("-e", "--env")),
    (("rye", "run"), ()),
    (("pipenv", "run"), ()),
    (("pixi", "run"), ("-e", "--environment")),
    (("conda", "run"), ("-n", "--name", "-p", "--prefix")),
    (("npx",), ("-p", "--package")),
    (("bunx",), ()),
    (("pnpm", "exec"), ()),
    (("pnpm", "dlx"), ()),
    (("yarn", "exec"), ()),
    (("sudo",), ("-u", "-g")),
    (("time",), ()),
    (("nice",), ("-n",)),
    (("nohup",), ()),
    (("setsid",), ()),
    (("unbuffer",), ()),
    (("ionice",), ("-c", "-n")),
    (("builtin",), ()),
    (("stdbuf",), ()),
    (("command",), ()),
    (("exec",), ("-a",)),
    (("xvfb-run",), ("-s", "-n", "--server-args")),
    (("coverage", "run"), ()),
)  # fmt: skip


#: Launchers whose command may be a script of a configuration of the repository, and the files that may have it.
_SCRIPTS = {"hatch": ("pyproject.toml", "hatch.toml"), "pdm": ("pyproject.toml",), "rye": ("pyproject.toml",),
            "pixi": ("pixi.toml", "pyproject.toml"), "pipenv": ("Pipfile",)}  # fmt: skip

#: Programs that run something that is not read.
_UNREAD = ("ssh", "nix", "nix-shell", "earthly", "bazel", "dagger", "su", "chroot", "flock", "parallel", "script",
           "watch", "unshare", "systemd-run", "coproc", "direnv")  # fmt: skip
_RUNNERS = ("task", "go-task", "just", "poe", "mise", "inv", "invoke", "rake", "doit", "mage")

#: Folders that an installation fills, and no commit.
_INSTALLED = re.compile(r"(?:^|/)(?:\.?venv|env|\.tox|\.nox|\.pixi|node_modules)/")


@dataclass(frozen=True, slots=True)
class Stripped:
    """What is left of a command.

    Attributes:
        words: the command itself.
        shell_text: the script of `bash -c TEXT`.
        script: a file that is run as a script, or sourced; its path as written.
        doubt: why it may not be run.
        gap: why what is run cannot be read.
        options: those of a shell, before its script or text.
        installed: `script` is a program, if the repository has no such file.
        named: files whose scripts `words[0]` may be the name of.
    """

    words: tuple[str, ...]
    shell_text: str | None = None
    script: str | None = None
    doubt: str | None = None
    gap: str | None = None
    options: tuple[str, ...] = ()
    installed: bool = False
    named: tuple[str, ...] = ()


def strip(words: Sequence[str]) -> Stripped:
    """Look through the launchers of a command."""
    left = list(words)
    doubt: str | None = None
    named: tuple[str, ...] = ()
    for _ in range(10):
        if not left or (left[0] == "command" and re.match(r"-\w*[vV]", "".join(left[1:2]))):
            break
        if re.fullmatch(r"[A-Za-z_]\w*=.*", left[0], re.DOTALL) and len(left) > 1:
            left = left[1:]
            continue
        if left[0] == "env":
            left = _after(left[1:], ("-u", "-C", "-S"))
            continue
        if left[0] == "timeout":
            left = _after(left[1:], ("-k", "-s", "--kill-after", "--signal"))[1:]
            continue
        if left[0] == "xargs":
            left, doubt = (
                _after(left[1:], ("-n", "-P", "-I", "-L", "-d")),
                "xargs runs it once for each of its inputs",
            )
            continue
        found = next((b for b in _BEFORE if tuple(left[: len(b[0])]) == b[0]), None)
        if found is not None:
            rest = _after(left[len(found[0]) :], found[1])
            if not rest:
                break
            left, named = rest, _SCRIPTS.get(found[0][0], ())
            continue
        name = posixpath.basename(left[0])
        if _PYTHON.fullmatch(name):
            run = _python(left[1:])
            if run is None:
                left = ["python", *left[1:]]
                break
            left = run
            continue
        break
    if not left:
        return Stripped(tuple(words), doubt=doubt)
    return replace(_ended(left, doubt), named=named)


def _ended(left: list[str], doubt: str | None) -> Stripped:
    name = posixpath.basename(left[0])
    if name in ("docker", "podman") and left[1:2] in (["run"], ["exec"], ["compose"]):
        return Stripped(tuple(left), doubt=doubt, gap=f"what runs inside of `{name} {left[1]}` is not read")
    if (name in _UNREAD and len(left) > 1) or name in _RUNNERS:
        return Stripped(tuple(left), doubt=doubt, gap=f"what `{name}` runs is not read")
    if name in (".", "source") and len(left) > 1:
        return Stripped(tuple(left), script=left[1], doubt=doubt)
    if name in SHELLS:
        return _shell([name, *left[1:]], doubt)
    if "/" not in left[0]:
        gap = "which program it runs follows from a value that is not known" if "\0" in left[0] else None
        return Stripped((MODULES.get(left[0], left[0]), *left[1:]), doubt=doubt, gap=gap)
    if "\0" in name:
        return Stripped(
            tuple(left), doubt=doubt, gap="which program it runs follows from a value that is not known"
        )
    installed = (
        left[0].startswith(("/", "~"))
        or "/bin/" in left[0]
        or "/Scripts/" in left[0]
        or _INSTALLED.search(left[0])
    )
    program = (MODULES.get(name, name), *left[1:]) if installed else tuple(left)
    return Stripped(program, script=left[0], doubt=doubt, installed=bool(installed))


def _shell(words: list[str], doubt: str | None) -> Stripped:
    rest, options, text = words[1:], [], False
    while rest and rest[0].startswith(("-", "+")):
        option = rest.pop(0)
        if not option.startswith("--") and "c" in option[1:]:
            text, option = True, option.replace("c", "", 1)
        if len(option) > 1:
            options.append(option)
        if not option.startswith("--") and option.endswith("o") and rest:
            options.append(rest.pop(0))
    if rest and "-s" not in options:
        found = Stripped(tuple(words), doubt=doubt, options=tuple(options))
        return replace(found, shell_text=rest[0]) if text else replace(found, script=rest[0])
    return Stripped(tuple(words), doubt=doubt, gap="a shell reads what it is given from elsewhere")


def _python(rest: list[str]) -> list[str] | None:
    """The command that `python …` stands for; None where it is a script, or nothing that is followed."""
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "-m" and rest:
            return [MODULES.get(rest[0], rest[0]), *rest[1:]]
        if option in ("-X", "-W") and rest:
            rest.pop(0)
        elif option in ("-c", "-"):
            return None
    return None


def _after(words: list[str], valued: tuple[str, ...]) -> list[str]:
    """What follows the options of a launcher."""
    left = list(words)
    while left:
        word = left[0]
        if word == "--":
            return left[1:]
        if re.fullmatch(r"[A-Za-z_]\w*=.*", word, re.DOTALL):
            left = left[1:]
        elif word.startswith("-"):
            left = left[2:] if word in valued else left[1:]
        else:
            return left
    return left
