"""Runs the demonstration: each command is shown as a person would type it, and what it prints is its own.

The verbs run in this process, since starting Python ten times would take longer than all that they do. The gate's
verdicts are read from its JSON and held against what they should be: a gate that lets a loss pass is found out.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from eval_core import backend
from eval_core.errors import CouldNot, Misuse
from eval_core.files import copy, unwritable, write_text
from eval_gate.demo.models import Demo, Step
from eval_gate.verdict import Word

#: The set and its eval.toml, as they are copied.
WORKSPACE = Path(__file__).parent / "workspace"

#: The repository's own configuration, so that a person's name, keys and hooks have no part in it, here or by hand.
GIT_CONFIG = """
[user]
	name = demo
	email = demo@localhost
[commit]
	gpgsign = false
[core]
	hooksPath = /dev/null
	autocrlf = false
"""

#: How each verdict after the first is reached: as in CI.
AGAIN = "eval-core measure > /dev/null && eval-gate check"

ELSEWHERE = "Name a new or empty folder with --into, or leave it out for a temporary one."


def run_demo(into: Path | None, verbs: Mapping[str, click.Group]) -> Demo:
    """Run it, printing as it goes, and keep its folder.

    The folder is whole, or no verb takes it for a workspace: until the end, all lies in a hidden folder inside.

    Args:
        into: where; absent or empty. None: a fresh temporary folder.
        verbs: the scripts by name, `eval-core` and `eval-gate`.

    Raises:
        Misuse: `into` holds something.
        CouldNot: git or bm25 is missing, or a command failed.
    """
    _check_installed()
    began = time.monotonic()
    folder, made = _folder(into)
    try:
        with tempfile.TemporaryDirectory(prefix=".eval-gate-demo-", dir=folder) as name:
            workspace = _Workspace(Path(name).resolve(), verbs)
            steps = workspace.steps()
            # eval.toml is what makes a workspace of a folder: it comes last.
            for path in sorted(workspace.root.iterdir(), key=lambda path: path.name == "eval.toml"):
                path.rename(folder / path.name)
    except BaseException:
        if made:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return Demo(folder=str(folder), seconds=round(time.monotonic() - began, 2), steps=steps)


def _check_installed() -> None:
    if shutil.which("git") is None:
        what = "git is not installed, and floors stand on runs of a commit"
        raise CouldNot("git-missing", what, mend="Install git.")
    if "bm25" not in backend.names():
        raise CouldNot("demo-backend-missing", "there is no backend 'bm25', which the demonstration measures")


def _folder(into: Path | None) -> tuple[Path, bool]:
    """The folder, which is empty, and whether it was made here."""
    if into is None:
        return Path(tempfile.mkdtemp(prefix="eval-gate-demo-")), True
    try:
        made = not into.exists()
        into.mkdir(parents=True, exist_ok=True)
        held = next(into.iterdir(), None)
    except FileExistsError:
        raise Misuse("out-exists", "is a file, not a folder", file=into, mend=ELSEWHERE) from None
    except OSError as error:
        raise unwritable(into, error) from error
    if held is not None:
        raise Misuse("out-exists", f"is not empty: it holds {held.name!r}", file=into, mend=ELSEWHERE)
    return into, made


class _Workspace:
    """The workspace, in which commands are shown and run."""

    def __init__(self, root: Path, verbs: Mapping[str, click.Group]) -> None:
        self.root, self.verbs = root, verbs

    def steps(self) -> tuple[Step, ...]:
        """The three verdicts; in the end all is as it was before the first of them."""
        click.echo("20 notes of a team's memory, 16 questions about them, searched by bm25.")
        shutil.copytree(WORKSPACE, self.root, copy_function=copy, dirs_exist_ok=True)
        write_text(self.root / ".gitignore", ".eval/\n*.bak\n")
        self._shell("git init -q --template= --initial-branch=main")
        with (self.root / ".git" / "config").open("a", encoding="utf-8") as stream:
            stream.write(GIT_CONFIG)
        self._shell("git add -A && git commit -qm 'A set of notes, searched by bm25'")
        with _local():
            self.run("eval-gate floor --measure --write | head -1")
            self.run("git add policy && git commit -qm 'The bar, from two measured runs'")
            passed = self.check("eval-gate check | head -1", "Nothing was changed.", "pass")
            click.echo("\nThe retriever gets worse: its words keep their case and punctuation.")
            self.run("echo 'options.tokenizer = \"whitespace\"' >> eval.toml")
            worse = "The retriever was made worse."
            failed = self.check(f"{AGAIN} | head -13", worse, "fail", "baseline-drop")
            query = failed.lost[0] if failed.lost else "q01"
            click.echo("\nIt is put right, and the query that failed is deleted instead.")
            files = "notes/queries.jsonl notes/qrels/test.tsv"
            self.run(f"git checkout -q eval.toml && sed -i.bak /{query}/d {files}")
            deleted = f"The query {query} was deleted."
            refused = self.check(f"{AGAIN} | head -5", deleted, "refused", "query-set-differs")
            self.run("git checkout -q . && eval-core measure > /dev/null")
        return passed, failed, refused

    def run(self, line: str) -> None:
        """Show a command line and run it.

        Raises:
            EvalError: one of its commands failed.
        """
        click.echo(f"$ {line}")
        for command in line.split(" && "):
            self._command(command)

    def check(self, line: str, what: str, expected: Word, reason: str | None = None) -> Step:
        """Show and run a command line that ends with the gate; its verdict should be this one, for this reason."""
        click.echo(f"$ {line}")
        *before, gate = line.split(" && ")
        for command in before:
            self._command(command)
        with tempfile.TemporaryDirectory(prefix="eval-gate-demo-") as folder:
            file = Path(folder).resolve() / "verdict.json"
            code = self._verb(gate, "--output", f"json={file}")
            found = json.loads(file.read_bytes())
        reasons = [one["code"] for part in (found, *found["arms"]) for one in part["reasons"]]
        lost = [one["query"] for arm in found["arms"] for one in arm["lost"]]
        right = found["verdict"] == expected and code == (0 if expected == "pass" else 1)
        return Step(
            what=what,
            expected=expected,
            verdict=found["verdict"],
            exit_code=code,
            reasons=tuple(reasons),
            lost=tuple(lost),
            ok=right and (reason is None or reason in reasons) and (expected != "fail" or bool(lost)),
        )

    def _command(self, command: str) -> None:
        if command.split()[0] not in self.verbs:
            self._shell(command)
        elif (code := self._verb(command)) != 0:
            raise CouldNot("internal-error", f"it ended with exit code {code}", subject=command)

    def _verb(self, command: str, *further: str) -> int:
        """Run a verb, with `further` arguments, and hand what it prints to the shell's part of the command."""
        shell = match[0] if (match := re.search("[|>].*", command)) else ""
        program, *arguments = command.removesuffix(shell).split()
        out, verb = io.StringIO(), self.verbs[program]
        with (
            contextlib.chdir(self.root),
            contextlib.redirect_stdout(out),
            # Not main(), which would make of Ctrl-C an exception like any other.
            verb.make_context(program, [*arguments, *further]) as context,
        ):
            code = int(verb.invoke(context))
        click.echo(self._shell(f"cat {shell}", out.getvalue()), nl=False)
        return code

    def _shell(self, command: str, text: str = "") -> str:
        """What a command prints that reads a text, whatever the environment says of git."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.root,
            env=environment,
            input=text,
            capture_output=True,
            encoding="utf-8",
        )
        if done.returncode != 0:
            raise CouldNot("git-failed", done.stderr.strip(), subject=command)
        return done.stdout


@contextlib.contextmanager
def _local() -> Iterator[None]:
    """Class `local`, wherever this runs: in class `ci` a changed tree would be refused, as it should be there."""
    before = os.environ.get("EVAL_ENV_CLASS")
    os.environ["EVAL_ENV_CLASS"] = "local"
    try:
        yield
    finally:
        del os.environ["EVAL_ENV_CLASS"]
        if before is not None:
            os.environ["EVAL_ENV_CLASS"] = before
