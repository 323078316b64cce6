"""What stands around a report: the commit that is checked out and, in class `ci` or with a target, what git says.

Only here does the gate start git, and only where it is strict. A working tree is read from the files of git alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from eval_core.console import utf8
from eval_core.measuring import Tree, iso_now
from eval_core.policy import Line
from eval_core.reports import Report
from eval_gate.check.eligibility import Standing
from eval_gate.check.head import head
from eval_gate.verdict import Reason


class Checkout:
    """The repository around a folder."""

    def __init__(
        self,
        root: Path,
        require: Collection[str],
        *,
        strict: bool,
        policy: Path,
        owned: Collection[str] = (),
        sets: Mapping[str, Path] = MappingProxyType({}),
    ) -> None:
        """`policy` is the folder where commits may differ in what the gate keeps, `owned` are the arms of the owner's
        lane, `sets` the folders of their sets by arm."""
        self._root = root
        self._require = frozenset(require)
        self._strict = strict
        self._owned = owned
        self._policy = policy
        self._sets = sets
        self._differing: dict[str, tuple[str, ...] | None] = {}
        self._written: dict[Path, list[tuple[str, int]]] = {}

    def standing(self, report: Report, path: Path, named: bool, evidence: Sequence[Line] = ()) -> Standing:
        """What is known of a report in the file `path`, `named` by `--report` or not, whose arm has this evidence.

        Raises:
            CouldNot: `repository-owner`: git refuses to read a repository that another user owns.
        """
        commit, owner = report.environment.commit, report.arm in self._owned
        known = Standing(
            self._require,
            named=named,
            owner=owner,
            head=self.head,
            current=self._is_current(report, evidence),
            now=iso_now(),
        )
        if not self._strict:
            return replace(known, changed=() if named else self._written_since(report.arm, path))
        changed, absent = self._uncommitted(report)
        return replace(
            known,
            strict=True,
            differing=self._differences(commit),
            ancestor=named and owner and self._is_ancestor(commit),
            changed=changed,
            absent=absent,
            tracked=self._is_tracked(path),
        )

    @cached_property
    def head(self) -> str | None:
        """The commit that is checked out."""
        return self._git("rev-parse", "--verify", "--quiet", "HEAD") if self._strict else head(self._root)

    def _differences(self, commit: str | None) -> tuple[str, ...] | None:
        """The files that differ between a commit and HEAD, but for what the gate keeps in policy/; None where git does
        not know the commit."""
        if commit is None or self.head is None:
            return None
        if commit not in self._differing:
            from eval_core.measuring.environment import KEPT

            place = re.sub(r"([*?[\\])", r"\\\1", self._place)
            beside = "" if place == "." else f"{place}/"
            without = [f":(exclude,top,glob){beside}{name}" for name in KEPT] if place else []
            # --no-renames: a file that moved out of policy/ must not be named by where it went alone.
            arguments = ("diff", "--name-only", "--no-renames", "-z", "--end-of-options", commit, self.head)
            found = self._git(*arguments, "--", ":/", *without)
            self._differing[commit] = None if found is None else _names(found)
        return self._differing[commit]

    @cached_property
    def _place(self) -> str:
        """The policy's folder below the top of the repository."""
        top = self._git("rev-parse", "--show-toplevel")
        here = self._policy.resolve()
        if top is None or not here.is_relative_to(Path(top).resolve()):
            return ""
        return here.relative_to(Path(top).resolve()).as_posix()

    def _is_current(self, report: Report, evidence: Sequence[Line]) -> bool:
        """Whether commits say that a report is not older than its evidence, where times say that it is."""
        environment = report.environment
        if environment.commit is None or environment.commit != self.head or environment.dirty is not False:
            return False
        if not self._strict or all(environment.started >= line.started for line in evidence):
            return True
        return all(self._is_ancestor(commit) for commit in {line.commit for line in evidence})

    def _is_ancestor(self, commit: str | None) -> bool:
        arguments = ("merge-base", "--is-ancestor", "--end-of-options", commit or "", "HEAD")
        return commit is not None and self._git(*arguments) is not None

    @cached_property
    def _tree(self) -> Tree | None:
        from eval_core.measuring import uncommitted

        return uncommitted(self._root)

    def _uncommitted(self, report: Report) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
        """What is not as it is committed, and what is left out elsewhere than beside the files that the arm names."""
        if self._tree is None:
            return None, ()
        changed, absent = self._tree
        if not absent:
            return changed, ()
        top, root = Path(self._git("rev-parse", "--show-toplevel") or ""), self._root.resolve()
        options, files = report.system.parts.get("options"), report.system.parts.get("files")
        named = [(root / name).resolve().parent for name in files] if isinstance(files, Mapping) else []
        folders = {folder for folder in named if folder.is_relative_to(root)}
        # A command that names no file here runs in the folder of eval.toml, as `python -m` does.
        if not folders and isinstance(options, Mapping) and "command" in options:
            folders = {root}
        beside = tuple(name for name in absent if folders.intersection((top / name).parents))
        return (*changed, *beside), tuple(name for name in absent if name not in beside)

    def _written_since(self, arm: str, report: Path) -> tuple[str, ...]:
        """Files of the arm's set that were written after its report."""
        folder = self._sets.get(arm)
        if folder is None:
            return ()
        if folder not in self._written:
            files = (*folder.glob("*.*"), *folder.glob("qrels/*.tsv"))
            # A link that leads nowhere is no file.
            there = [file for file in files if file.exists()]
            self._written[folder] = [(os.fspath(file), file.stat().st_mtime_ns) for file in there]
        measured = report.stat().st_mtime_ns
        return tuple(utf8(name) for name, written in self._written[folder] if written > measured)

    def _is_tracked(self, path: Path) -> bool:
        if path.absolute().parent.parts[-2:] != (".eval", "reports"):
            return False
        # git looks at nothing beyond a link, and says so of what lies in the repository alone: that is no "no".
        real, top = path.resolve(), self._git("rev-parse", "--show-toplevel")
        if top is None or not real.is_relative_to(Path(top).resolve()):
            return False
        return self._git("ls-files", "--", f":(top,literal){real.relative_to(Path(top).resolve())}") != ""

    def _git(self, *arguments: str) -> str | None:
        from eval_core.measuring import git

        return git(self._root, *arguments)


def linked(folder: Path, floors: Path) -> list[Reason]:
    """What of a policy is a symbolic link: a branch would change it elsewhere, where nothing is held against it."""
    from eval_core.policy import FOLDER

    beside = floors.parent / FOLDER
    kept = [*folder.glob("*.toml"), folder / "promotions", *folder.glob("promotions/*.json")]
    paths = dict.fromkeys([folder, floors.parent, floors, *kept, beside, *beside.glob("*.jsonl")])
    return [
        Reason(
            code="policy-linked",
            word="refused",
            what="it is a symbolic link, so what a branch changes of it would lie elsewhere",
            file=utf8(os.fspath(path)),
            mend="Put the file or folder itself in its place.",
        )
        for path in paths
        if path.is_symlink()
    ]


def _names(listed: str) -> tuple[str, ...]:
    return tuple(name for name in listed.split("\0") if name)
