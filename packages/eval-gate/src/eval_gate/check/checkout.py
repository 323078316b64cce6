"""What stands around a report: the commit that is checked out and, in class `ci` or with a target, what git says.

Only here does the gate start git, and only where it is strict. A working tree is read from the files of git alone.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from functools import cached_property
from pathlib import Path

from eval_core.reports.report import Report
from eval_gate.check.eligibility import Standing
from eval_gate.check.head import head


class Checkout:
    """The repository around a folder."""

    def __init__(
        self, root: Path, require: Collection[str], *, strict: bool, owned: Collection[str] = (), policy: Path
    ) -> None:
        """`owned` are the arms of the owner's lane; `policy` is the folder in which commits may differ."""
        self._root = root
        self._require = frozenset(require)
        self._strict = strict
        self._owned = owned
        self._policy = policy
        self._differing: dict[str, tuple[str, ...] | None] = {}

    def standing(self, report: Report, path: Path, named: bool) -> Standing:
        """What is known of a report in the file `path`, `named` by `--report` or not.

        Raises:
            CouldNot: `repository-owner`: git refuses to read a repository that another user owns.
        """
        commit, owner = report.environment.commit, report.arm in self._owned
        if not self._strict:
            return Standing(self._require, named=named, owner=owner, head=self.head)
        return Standing(
            self._require,
            strict=True,
            named=named,
            owner=owner,
            head=self.head,
            differing=self._differences(commit),
            ancestor=named and owner and self._is_ancestor(commit),
            uncommitted=self._uncommitted,
            tracked=self._is_tracked(path),
        )

    @cached_property
    def head(self) -> str | None:
        """The commit that is checked out."""
        return self._git("rev-parse", "--verify", "--quiet", "HEAD") if self._strict else head(self._root)

    def _differences(self, commit: str | None) -> tuple[str, ...] | None:
        """The files outside policy/ that differ between a commit and HEAD; None where git does not know the commit."""
        if commit is None or self.head is None:
            return None
        if commit not in self._differing:
            without = f":(exclude,top){self._place}" if self._place else ":/"
            # --no-renames: a file that moved out of policy/ must not be named by where it went alone.
            found = self._git(
                "diff", "--name-only", "--no-renames", "-z", commit, self.head, "--", ":/", without
            )
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

    def _is_ancestor(self, commit: str | None) -> bool:
        return commit is not None and self._git("merge-base", "--is-ancestor", commit, "HEAD") is not None

    @cached_property
    def _uncommitted(self) -> tuple[str, ...]:
        from eval_core.measuring.environment import uncommitted

        return tuple(line[2:].strip() for line in (uncommitted(self._root) or "").splitlines())

    def _is_tracked(self, path: Path) -> bool:
        if path.absolute().parent.parts[-2:] != (".eval", "reports"):
            return False
        return bool(self._git("ls-files", "--", os.fspath(path.absolute())))

    def _git(self, *arguments: str) -> str | None:
        from eval_core.measuring.environment import git

        return git(self._root, *arguments)


def _names(listed: str) -> tuple[str, ...]:
    return tuple(name for name in listed.split("\0") if name)
