"""The bench of the self-test: a copy of a workspace's policy, reports and eval.toml, which attacks alter and which is
put back after each. It is a repository of its own, so that the gate can be asked as on a pull request."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from eval_core.errors import CouldNot, EvalError, Faults
from eval_core.files import copy
from eval_core.policy import (
    BUDGETS,
    FLOORS,
    ArmPolicy,
    Choices,
    Line,
    Policy,
    Shown,
    dump,
    line_digest,
    path_of,
    read_evidence,
    read_policy,
    shown_floors,
)
from eval_core.reports import Report, ReportRow, read_report, write_report
from eval_core.reports.provenance import sidecar
from eval_core.reports.provenance import write as write_provenance
from eval_gate.selftest.rebuild import rebuilt
from eval_gate.verdict import Reason

if TYPE_CHECKING:
    from click import Command

#: A file of the workspace that the repository of the bench does not ignore.
STRAY = "self-test-stray"

#: All but what attacks are about is ignored: links to the workspace's own files, and what measuring writes.
_IGNORED = f"/*\n!/policy/\n!/eval.toml\n!/{STRAY}\n"

_SETTINGS = (
    "user.name=self-test",
    "user.email=self-test@localhost",
    "commit.gpgsign=false",
    "core.autocrlf=false",
)
_GIT = ["git", *(word for setting in _SETTINGS for word in ("-c", setting)), "-c", "core.hooksPath=/dev/null"]


class Untried(Exception):
    """An attack that cannot be made of an arm, and why."""


class Answer(NamedTuple):
    """What the gate said: its exit code and its reasons."""

    exit_code: int
    reasons: Sequence[Reason]


class Bench:
    """The copy. Attacks are about `arm`, and alter files by the methods below alone."""

    def __init__(self, root: Path, config: Path, policy: Path, check: Command) -> None:
        """Copy a workspace to the empty folder `root`.

        Raises:
            Misuse, Faults: the policy cannot be read.
            Refused: a report cannot.
        """
        self.root, self.arm = root, ""
        self._check = check
        self._before: dict[Path, bytes | None] = {}
        self._head: str | None = None
        self._moved = False
        self._overlooked: list[Path] = []
        shutil.copytree(policy, root / "policy", copy_function=copy)
        for path in config.parent.iterdir():
            if not path.name.startswith((".git", ".eval")) and not (root / path.name).exists():
                (root / path.name).symlink_to(path.absolute())
        self.config.unlink(missing_ok=True)
        if config.exists():
            copy(config, self.config)
        self.reports.mkdir(parents=True)
        own = config.parent / ".eval" / "reports"
        for name in self.files.floors.arms:
            for path in (own / f"{name}.json", sidecar(own / f"{name}.json")):
                if path.exists():
                    copy(path, self.reports / path.name)
        self.git = shutil.which("git") is not None
        if self.git:
            self._begin()

    def _begin(self) -> None:
        """Make the repository; its first commit is where the reports were measured, as on the machine that gates."""
        self.run_git("init", "--quiet", "--template=", "--initial-branch=main")
        (self.root / ".git" / "info").mkdir(exist_ok=True)
        (self.root / ".git" / "info" / "exclude").write_text(_IGNORED, encoding="ascii")
        head = self.commit()
        for path in sorted(self.reports.glob("*.json")):
            with contextlib.suppress(EvalError):  # the control says what is wrong with it
                report = read_report(path)
                environment = report.environment.model_copy(update={"commit": head, "dirty": False})
                vouched = sidecar(path).exists()
                here = rebuilt(report, environment=environment)
                write_report(path, here)
                if vouched:
                    write_provenance(path, here)
        self._head, self._moved = head, False

    # ------------------------------------------------------------------------------------------------ what lies here

    @property
    def config(self) -> Path:
        """The copy of eval.toml."""
        return self.root / "eval.toml"

    @property
    def policy(self) -> Path:
        """The copy of the policy's folder."""
        return self.root / "policy"

    @property
    def reports(self) -> Path:
        """The folder of the reports."""
        return self.root / ".eval" / "reports"

    @property
    def report_path(self) -> Path:
        """The arm's report."""
        return self.reports / f"{self.arm}.json"

    @cached_property
    def files(self) -> Policy:
        """The untouched floors and budgets."""
        return read_policy(self.policy)

    @cached_property
    def _held(self) -> dict[str, tuple[Report, ArmPolicy]]:
        return {}

    @property
    def report(self) -> Report:
        """The arm's untouched report."""
        return self._of_arm()[0]

    @property
    def floors(self) -> ArmPolicy:
        """What the arm is held to, untouched."""
        return self._of_arm()[1]

    def _of_arm(self) -> tuple[Report, ArmPolicy]:
        if self.arm not in self._held:
            report = read_report(self.report_path, self.arm)
            self._held[self.arm] = report, self.files.arm(self.arm)
        return self._held[self.arm]

    # ------------------------------------------------------------------------------------------------------- asking

    def ask(self, *options: str) -> Answer:
        """Have the verb `check` grade what lies here now, in this process.

        Raises:
            EvalError: what the gate raised.
        """
        words = ["--policy", "policy", "--config", "eval.toml", "--format", "json", *options]
        out = io.StringIO()
        # Not check.main(), which would make of Ctrl-C an exception like any other.
        with (
            contextlib.chdir(self.root),
            contextlib.redirect_stdout(out),
            self._check.make_context("eval-gate check", words) as context,
        ):
            code = self._check.invoke(context)
        verdict = json.loads(out.getvalue())
        if code != verdict["exit_code"]:
            raise CouldNot(
                "internal-error", f"the gate says exit {verdict['exit_code']} and ends with {code}"
            )
        tables = [*verdict["reasons"], *(reason for arm in verdict["arms"] for reason in arm["reasons"])]
        for table in tables:
            del table["message"]  # it follows from the other fields
        return Answer(code, [Reason.model_validate(table) for table in tables])

    def answer(self, *options: str) -> Answer:
        """The same, where whatever is raised is an answer too: a gate that fails itself neither passed nor refused."""
        try:
            return self.ask(*options)
        except Faults as error:
            return Answer(error.exit_code, [Reason.of(fault) for fault in error.faults])
        except EvalError as error:
            return Answer(error.exit_code, [Reason.of(error)])
        except Exception as error:  # noqa: BLE001  # the gate's own fault, which a self-test is there to find
            return Answer(3, [Reason.of(CouldNot("internal-error", f"{type(error).__name__}: {error}"))])

    # ----------------------------------------------------------------------------------------------------- altering

    @contextlib.contextmanager
    def altered(self) -> Iterator[None]:
        """Put everything back at the end."""
        try:
            yield
        finally:
            for path, raw in self._before.items():
                _write(path, raw)
            self._before.clear()
            for path in self._overlooked:
                self.run_git("update-index", "--no-skip-worktree", str(path))
            self._overlooked.clear()
            if self._moved and self._head is not None:
                self.run_git("reset", "--quiet", self._head)
                self._moved = False

    def put(self, path: Path, raw: bytes | None) -> None:
        """Write a file, or remove it."""
        if path not in self._before:
            self._before[path] = path.read_bytes() if path.is_file() else None
        _write(path, raw)

    def put_report(self, report: Report) -> None:
        """Write a sound report with its provenance in the place of that of its arm."""
        path = self.reports / f"{report.arm}.json"
        self.put(path, b"")
        self.put(sidecar(path), None)
        write_report(path, report)
        write_provenance(path, report)

    def forge(self, rows: Iterable[ReportRow] | None = None, **changes: Any) -> None:
        """Write a sound report of something else; see `rebuilt`."""
        self.put_report(rebuilt(self.report, rows, **changes))

    def edit_report(self, change: Callable[[Any], object]) -> None:
        """Change the values of the report's file by hand: no digest follows."""
        value = json.loads(self.report_path.read_bytes())
        change(value)
        self.put(self.report_path, json.dumps(value).encode())

    def edit(self, path: Path, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the table of a TOML file, which need not be there."""
        import tomlkit

        table = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        change(table)
        self.put(path, tomlkit.dumps(table).encode())

    def edit_floors(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change floors.toml."""
        self.edit(self.policy / FLOORS, change)

    def edit_arm(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the arm's own table of floors.toml."""
        self.edit_floors(lambda table: change(table["arms"][self.arm]))

    def edit_budget(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the arm's own table of budgets.toml."""

        def inside(table: dict[str, Any]) -> None:
            table.setdefault("schema", "budgets-v2")
            change(table.setdefault("arms", {}).setdefault(self.arm, {}))

        self.edit(self.policy / BUDGETS, inside)

    def refloor(self, lines: Sequence[Line] = (), choices: Choices | None = None, **keys: Any) -> None:
        """Write the floors of the arm that follow from other runs or choices, and other keys of its table."""
        lines = lines or self.floors.lines
        shown = shown_floors(choices or self.floors.choices, lines)
        self.edit_arm(lambda table: table.update(_table(shown) | keys))

    @property
    def evidence_path(self) -> Path:
        """The arm's evidence."""
        return path_of(self.policy, self.arm)

    def put_lines(self, lines: Iterable[Line]) -> None:
        """Write lines of evidence in the place of those of the same runs, or beside the others."""
        held = {line.run_id: line for line in (*read_evidence(self.evidence_path), *lines)}
        self.put(self.evidence_path, dump(held.values()))

    def run_git(self, *arguments: str) -> str:
        """Run git on the bench, whatever the environment says of another repository.

        Raises:
            CouldNot: it failed.
        """
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            [*_GIT, *arguments], cwd=self.root, env=environment, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise CouldNot("git-failed", f"git {arguments[0]}: {done.stderr.strip()}", file=self.root)
        return done.stdout.strip()

    def track(self, path: Path) -> None:
        """Have git track a file that it ignores."""
        self.run_git("add", "--force", str(path))
        self._moved = True

    def overlook(self, path: Path) -> None:
        """Tell git not to look at a file."""
        self.run_git("update-index", "--skip-worktree", str(path))
        self._overlooked.append(path)

    def commit(self) -> str:
        """Commit what lies here, as the state that `--target HEAD` then names."""
        self.run_git("add", "--all")
        self.run_git("commit", "--quiet", "--allow-empty", "--message", "self-test")
        self._moved = True
        return self.run_git("rev-parse", "HEAD")


def sealed(line: Line, **changes: Any) -> Line:
    """A line that says something else, with its digest redone."""
    line = line.model_copy(update=changes)
    return line.model_copy(update={"line": line_digest(line)})


def _table(shown: Shown) -> dict[str, Any]:
    return {
        "runs": list(shown.runs),
        "n": shown.n,
        "floors": shown.floors,
        "misses_allowed": shown.misses_allowed,
        "categories": {name: part.model_dump() for name, part in shown.categories.items()},
    }


def _write(path: Path, raw: bytes | None) -> None:
    if raw is None:
        path.unlink(missing_ok=True)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
