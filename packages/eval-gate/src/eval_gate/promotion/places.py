"""Where evidence stands: which bytes the tree of HEAD holds, and which commit follows which, as git tells it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from eval_core.errors import CouldNot, Misuse
from eval_core.reconstruct.repository import Repository, find, resolved
from eval_core.reconstruct.tree import Tree, opened

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_URL = re.compile(r"https?://[^\s/@]+/\S*")
_ARTEFACT = re.compile(r"(?:([0-9a-f]{7,64})=)?(.*)", re.DOTALL)


class Artefact(NamedTuple):
    """A CI run that a reviewer can open, and the commit that it measured where the evidence does not name it."""

    url: str
    commit: str | None = None


def artefact(text: str) -> Artefact:
    """Read `RUN_URL` or `COMMIT=RUN_URL`.

    Raises:
        Misuse: it is neither, or the address holds a password.
    """
    match = _ARTEFACT.fullmatch(text.strip())
    commit, url = (match[1], match[2]) if match else (None, "")
    if not _URL.fullmatch(url) or not url.isprintable():
        raise Misuse(
            f"--artefact {text!r}: write the address of a CI run, https://…, without a password; for a comparison, "
            "which names no commit, COMMIT=https://…",
            reason="artefact-malformed",
        )
    return Artefact(url, commit)


@dataclass(frozen=True, slots=True)
class Places:
    """A repository as evidence is looked up in it: HEAD's tree, and git to ask for the order of commits.

    Git is started here, which `eval-gate check` never does.
    """

    tree: Tree
    repository: Repository

    @classmethod
    @contextlib.contextmanager
    def at(cls, place: Path) -> Iterator[Places]:
        """The repository at a folder or above it.

        Raises:
            CouldNot: there is none, or it has no commit.
        """
        with contextlib.ExitStack() as stack:
            try:
                tree = stack.enter_context(opened(place, "HEAD"))
            except CouldNot as error:
                remedy = "Evidence is looked up in the tree of HEAD: run it in a checkout."
                absent = error.reason == "source-absent"
                raise CouldNot(
                    error.message, reason=error.reason, remedy=remedy if absent else error.remedy
                ) from error
            yield cls(tree, find(place, str(place), "tree"))

    def relative(self, path: Path) -> str | None:
        """The path from the repository's top, with slashes; None outside of it."""
        if self.tree.work is None:
            return None
        top, real = self.tree.work.resolve(), path.resolve()
        return real.relative_to(top).as_posix() if real.is_relative_to(top) else None

    def holds(self, path: Path, content: bytes) -> bool:
        """Whether the tree of HEAD has a file with these bytes at the path."""
        inner = self.relative(path)
        return inner is not None and self.tree.read(os.fsencode(inner)) == content

    def known(self, commit: str | None) -> str | None:
        """The full id of a commit that is part of HEAD's history, else None."""
        if commit is None or re.fullmatch("[0-9a-f]{7,64}", commit) is None:
            return None
        full = resolved(self.repository, f"{commit}^{{commit}}")
        return full if full is not None and self.ancestor(full, self.tree.commit) else None

    def ancestor(self, one: str, other: str) -> bool:
        """Whether a commit is an ancestor of another, or the same.

        Raises:
            CouldNot: git cannot tell.
        """
        done = self.repository.run("merge-base", "--is-ancestor", one, other)
        if done.returncode not in (0, 1):
            raise CouldNot(
                f"git cannot tell whether {one[:12]} is an ancestor of {other[:12]}",
                reason="repository-damaged",
            )
        return done.returncode == 0

    def checked_in(self, path: Path) -> str | None:
        """The newest commit of HEAD's history that changed the file."""
        inner = self.relative(path)
        if inner is None:
            return None
        log = ("--literal-pathspecs", "log", "-1", "--format=%H", self.tree.commit, "--", inner)
        found = self.repository.run(*log).stdout.decode("ascii", "replace").strip()
        return found if _COMMIT.fullmatch(found) else None
