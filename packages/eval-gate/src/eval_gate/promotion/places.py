"""Where evidence stands: which bytes the tree of HEAD holds, and which commits are of its history, as git tells it."""

from __future__ import annotations

import contextlib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval_core.errors import CouldNot, Refused
from eval_core.policy import Line, parse_evidence
from eval_core.reconstruct.repository import Repository, find, resolved
from eval_core.reconstruct.tree import Tree, opened
from eval_gate.promotion.evidence import Arm, Paper, refused
from eval_gate.promotion.models import Endpoint
from eval_gate.verdict import Reason


@dataclass(frozen=True, slots=True)
class Places:
    """A repository as evidence is looked up in it: the tree of HEAD, and git for its history."""

    tree: Tree
    repository: Repository

    @classmethod
    @contextlib.contextmanager
    def at(cls, place: Path) -> Iterator[Places]:
        """The repository at a folder or above it.

        Raises:
            CouldNot: there is none, or it has no commit.
        """
        with opened(place, "HEAD") as tree:
            yield cls(tree, find(place, str(place), "tree"))

    def read(self, path: Path) -> bytes | None:
        """What the tree of HEAD holds under a path; None where there is no such file in it."""
        if self.tree.work is None:
            return None
        top, real = self.tree.work.resolve(), path.resolve()
        if not real.is_relative_to(top):
            return None
        return self.tree.read(os.fsencode(real.relative_to(top).as_posix()))

    def known(self, commit: str | None) -> bool:
        """Whether a commit is part of HEAD's history.

        Raises:
            CouldNot: git cannot tell.
        """
        if commit is None or re.fullmatch("[0-9a-f]{7,64}", commit) is None:
            return False
        full = resolved(self.repository, f"{commit}^{{commit}}")
        if full is None:
            return False
        code = self.repository.run("merge-base", "--is-ancestor", full, self.tree.commit).returncode
        if code not in (0, 1):
            what = f"git cannot tell whether {commit[:12]} is part of the history of HEAD"
            raise CouldNot("repository-damaged", what)
        return code == 0

    def checked_in(self, path: Path, folder: Path) -> Paper:
        """A comparison below a folder, as it is in the tree of HEAD, with the newest commit that changed it.

        Raises:
            Refused: it is not there, or not with these bytes.
        """
        mend = f"Put it below {folder}/, and commit it as it is."
        inside = path.resolve().is_relative_to(folder.resolve())
        try:
            kept = inside and self.read(path) == path.read_bytes()
        except OSError as error:
            raise Refused(
                "evidence-missing", f"cannot be read: {error.strerror or error}", file=path
            ) from error
        if not kept:
            raise Refused(
                "evidence-uncommitted", "it is not in the tree of HEAD as it is here", file=path, mend=mend
            )
        top = self.tree.work or path.parent
        inner = path.resolve().relative_to(top.resolve()).as_posix()
        log = ("--literal-pathspecs", "log", "-1", "--format=%H", self.tree.commit, "--", inner)
        commit = self.repository.run(*log).stdout.decode("ascii", "replace").strip()
        return Paper(path, path.resolve().relative_to(folder.resolve()).as_posix(), commit)


def uncommitted(places: Places, arm: str, lines: Iterable[Line], path: Path) -> Iterator[Reason]:
    """R5: the lines that are neither checked in nor of a CI run that can be reviewed.

    Args:
        places: the repository.
        arm: their arm.
        lines: that a promotion would cite.
        path: the arm's evidence file.
    """
    content = places.read(path)
    held = {line.line for line in parse_evidence(content, f"HEAD:{path}")} if content is not None else set()
    for line in lines:
        if line.ci_run is not None:
            continue
        subject = f"run {line.run_id} of {arm}"
        if line.line not in held:
            what = "its line is not in the tree of HEAD, and it names no CI run that could be reviewed"
            yield refused("evidence-uncommitted", what, f"Commit {path} first.", subject=subject, file=path)
        elif not places.known(line.commit):
            what = f"it names {f'commit {line.commit[:12]}, which' if line.commit else 'no commit, so it'} is not part "
            what += "of the history of HEAD"
            mend = "Measure at a commit of this branch, fetched whole (no shallow clone), and check that in."
            yield refused("evidence-commit-unknown", what, mend, subject=subject)


def operator_only(
    endpoints: Sequence[Endpoint], candidate: Arm, config: Path, places: Places
) -> Iterator[Reason]:
    """R6: what the repository lacks before a backend that reaches a service may be a default, all of it at once.

    Args:
        endpoints: of the rules.
        candidate: what is to be promoted.
        config: eval.toml, of which HEAD's form counts.
        places: the repository.
    """
    options = _options(places.read(config), candidate.name)
    for endpoint in endpoints:
        if endpoint.backend not in (candidate.name, candidate.backend):
            continue
        named = options.get(endpoint.option)
        missing = []
        if not isinstance(named, str) or not named.strip() or endpoint.environment in named:
            missing.append(f"its endpoint: options.{endpoint.option} of the arm in {config}")
        parts = [part for part in endpoint.documented.split("/") if part not in ("", ".")]
        if not (places.tree.read(os.fsencode("/".join(parts))) or b"").strip():
            missing.append(f"its failure behaviour, documented in {endpoint.documented}")
        if options.get(endpoint.fallback_option) != endpoint.fallback:
            missing.append(
                "the same offline fallback: "
                f"options.{endpoint.fallback_option} = {endpoint.fallback!r} of the arm in {config}"
            )
        if missing:
            what = (
                f"it reaches a service that the operator's {endpoint.environment} names, and the commit checked "
                f"out lacks {'; '.join(missing)}"
            )
            mend = "Commit each of them, measure again, and then promote."
            yield refused("endpoint-operator-only", what, mend, subject=candidate.name)


def _options(config: bytes | None, arm: str) -> dict[str, Any]:
    """An arm's options by the text of eval.toml; nothing where it cannot be read."""
    try:
        options = tomllib.loads((config or b"").decode("utf-8"))["arms"][arm]["options"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return options if isinstance(options, dict) else {}
