"""Every command that a text of the program prints can be typed: verb, options and values are those of the script."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from eval_backends.cli import command as backends
from eval_core.cli import cli as core
from eval_core.errors import Misuse
from eval_gate.cli import cli as gate
from eval_tier.cli import cli as tier

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS: dict[str, click.Group] = {
    "eval-core": core,
    "eval-gate": gate,
    "eval-backends": backends,
    "eval-tier": tier,
}

#: A command stands at the beginning of a line, or behind two spaces, a prompt or `&&`, and ends with two spaces or the
#: line. Elsewhere a script is only spoken of.
_COMMAND = re.compile(
    r"(?:^|  |\$ |&& |Next: )((?:eval-core|eval-gate|eval-backends|eval-tier) (?=[a-z])(?:(?!  | && | [|>]).)+)",
    re.MULTILINE,
)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a module but for docstrings, with 9 for what is put into them: a name, a number or a path."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    doc = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in inside or id(node) in doc:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = [str(part.value) if isinstance(part, ast.Constant) else "9" for part in node.values]
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def commands(text: str) -> Iterator[str]:
    for match in _COMMAND.finditer(re.sub(r"\\\n *", "", text)):
        yield match[1].strip().rstrip(";.,:)")


def printed() -> dict[str, str]:
    """Each command with the place of the text that prints it."""
    return {
        command: f"{path.relative_to(ROOT)}:{line}"
        for path in sorted(ROOT.glob("packages/*/src/**/*.py"))
        for line, text in texts(path)
        for command in commands(text)
    }


PRINTED = printed()


def test_there_are_commands_to_look_at() -> None:
    assert {command.split()[0] for command in PRINTED} == set(SCRIPTS)
    assert len(PRINTED) > 100


@pytest.mark.parametrize("command", sorted(PRINTED))
def test_round2_s2_a_printed_command_is_one_of_its_script(command: str) -> None:
    """S2: its verb and options exist and it lacks no argument, by the parser that will read it."""
    typed = re.sub(r"(--reason )(?![\w@]+=)\S+", r"\1key=9", re.sub("…|\\{\\d\\}", "9", command))
    script, *words = shlex.split(typed)
    verb: click.Command = SCRIPTS[script]
    context = click.Context(verb, info_name=script)
    while isinstance(verb, click.Group) and words and not words[0].startswith("-"):
        name, verb_found, words = verb.resolve_command(context, words)
        assert verb_found is not None
        verb = verb_found
        context = click.Context(verb, info_name=name, parent=context)
    try:
        verb.make_context(script, words)
    except click.exceptions.Exit as done:  # --help and --version
        assert done.exit_code == 0
    except click.ClickException as error:
        pytest.fail(f"{PRINTED[command]}: {command}\n{error.format_message()}")
    except Misuse as error:
        # A named eval.toml that is not here is there for whoever the command is printed for.
        assert error.code == "config-missing", error
