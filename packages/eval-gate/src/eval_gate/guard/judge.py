"""The guard: every file that a manifest or a set judges relevant must be a file of the commit's tree."""

from __future__ import annotations

import difflib
import heapq
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from pydantic import Field

from eval_core.console import utf8
from eval_core.models import Closed
from eval_core.reconstruct.selection import shown
from eval_core.reconstruct.tree import Found, Kind, Tree
from eval_gate.guard.inputs import Form, Judged

Code = Literal["guard-vacuous", "ground-truth-missing", "ground-truth-not-a-file"]

#: For so many missing paths a like name is looked for by its letters; the others have only the same name elsewhere.
_COMPARED = 25


class Finding(Closed):
    """One judged path that is no file of the commit, or an input that judges none."""

    code: Code
    input: str = Field(description="The manifest or set; empty where all of them together are meant.")
    message: str
    path: str | None = Field(
        default=None,
        description="From the repository's top. A byte that is not UTF-8 stands as %XX.",
    )
    queries: tuple[str, ...] = Field(default=(), description="The queries that it is ground truth of.")
    found: Kind | None = Field(default=None, description="What stands there, or on the way there.")
    nearest: str | None = Field(default=None, description="A file of the commit that may be meant.")
    in_work_tree: bool = Field(default=False, description="It lies in the working tree, not in the commit.")


class Looked(Closed):
    """What was looked at in one manifest or set."""

    input: str
    form: Form
    id: str
    queries: int = Field(description="Queries with a judged path or document.")
    paths: int = Field(description="Judged paths that were looked up.")
    elsewhere: int = Field(default=0, description="Judged documents that are not paths of this repository.")
    skipped: int = Field(default=0, description="Entries of a legacy array without a relevant path.")
    unread: int = Field(default=0, description="Keys of a manifest that mean nothing here.")


class GuardVerdict(Closed):
    """What the guard found. `exit_code` is the script's."""

    schema_: Literal["guard-v1"] = Field(default="guard-v1", alias="schema")
    verdict: Literal["pass", "fail"]
    exit_code: Literal[0, 1]
    revision: str
    commit: str
    root: str = Field(description="The folder that the paths of manifests are relative to; empty: the top.")
    checked: int = Field(description="Judged paths that were looked up, over all inputs.")
    findings: tuple[Finding, ...] = Field(default=(), description="Worst first.")
    inputs: tuple[Looked, ...]


def judge(
    inputs: Sequence[Judged], tree: Tree, revision: str, root: str, at: Callable[[str], Tree]
) -> GuardVerdict:
    """Look every judged path up in the tree, or in that of the commit that its source pins.

    A manifest that names no path fails, since it is nothing but paths; so do inputs of which none has a judged path
    of this repository: a check that looked at nothing has shown nothing.

    Raises:
        CouldNot: the repository is damaged or incomplete.
    """
    findings = _vacuous(inputs)
    nearest = _Nearest(tree)
    for judged in inputs:
        for path, queries in judged.paths.items():
            pinned = judged.pinned.get(path)
            own = at(pinned) if pinned else tree
            found = own.find(path)
            if found.kind != "file" or found.at != path:
                findings.append(_finding(judged, path, queries, found, own, nearest))
    findings.sort(key=_rank)
    return GuardVerdict(
        verdict="fail" if findings else "pass",
        exit_code=1 if findings else 0,
        revision=utf8(revision),
        commit=tree.commit,
        root=root,
        checked=sum(len(judged.paths) for judged in inputs),
        findings=tuple(findings),
        inputs=tuple(
            Looked(
                input=utf8(judged.name),
                form=judged.form,
                id=utf8(judged.id),
                queries=judged.queries,
                paths=len(judged.paths),
                elsewhere=judged.elsewhere,
                skipped=judged.skipped,
                unread=judged.unread,
            )
            for judged in inputs
        ),
    )


def _rank(finding: Finding) -> tuple[int, bool]:
    """Nothing looked at is worst, then what is nowhere, what is only uncommitted, and what is no file."""
    order: tuple[Code, ...] = ("guard-vacuous", "ground-truth-missing", "ground-truth-not-a-file")
    return order.index(finding.code), finding.in_work_tree


def _vacuous(inputs: Sequence[Judged]) -> list[Finding]:
    empty = [judged for judged in inputs if judged.form != "dataset" and not judged.paths]
    findings = [
        Finding(
            code="guard-vacuous",
            input=utf8(judged.name),
            message="the manifest names no judged path, so nothing of it was looked at",
        )
        for judged in empty
    ]
    if not findings and not any(judged.paths for judged in inputs):
        message = "none of the judged documents is a file of this repository, so nothing was looked at"
        findings.append(Finding(code="guard-vacuous", input="", message=message))
    return findings


def _finding(
    judged: Judged, path: bytes, queries: tuple[str, ...], found: Found, tree: Tree, nearest: _Nearest
) -> Finding:
    stands = {"folder": "a folder", "symlink": "a symbolic link", "submodule": "a submodule"}
    code: Code = "ground-truth-missing"
    near: str | None = None
    in_work = False
    if found.at == path and found.kind in stands:
        code = "ground-truth-not-a-file"
        mend = {
            "folder": "name the files of it that are meant",
            "symlink": "name the file that it leads to",
            "submodule": "its files are in another repository",
        }
        message = f"is {stands[found.kind]} in the commit; {mend[found.kind]}"
    else:
        in_work = found.at == path and tree.lies_in_work(path)
        close = None if in_work else nearest.to(path)
        near = shown(close) if close is not None else None
        if found.at != path:
            message = f"is not in the commit: {shown(found.at)!r} is {stands.get(found.kind, 'a file')} there"
        elif in_work:
            message = "is not in the commit, though it lies in the working tree"
        elif close is not None and path.replace(b".agents/", b"", 1) == close:
            message = "is not in the commit; a path that begins so is looked for below .agents/"
        else:
            message = "is not in the commit"
    return Finding(
        code=code,
        input=utf8(judged.name),
        message=message,
        path=shown(path),
        queries=queries,
        found=found.kind,
        nearest=near,
        in_work_tree=in_work,
    )


class _Nearest:
    """Finds the file of a tree that a missing path may have meant. The tree is listed at the first question."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._names: dict[str, list[bytes]] | None = None
        self._left = _COMPARED

    def to(self, path: bytes) -> bytes | None:
        """The likest path with the same file name, letter case and Unicode form aside; else one with a like name."""
        if self._names is None:
            self._names = _by_name(self._tree.files())
        key = _key(path)
        same = self._names.get(key, [])
        if not same and self._left > 0:
            self._left -= 1
            for name in difflib.get_close_matches(key, self._names, n=1, cutoff=0.75):
                same = self._names[name]
        return _likest(path, same)


def _by_name(paths: Iterable[bytes]) -> dict[str, list[bytes]]:
    names = defaultdict(list)
    for path in paths:
        names[_key(path)].append(path)
    return dict(names)


def _key(path: bytes) -> str:
    name = path.rpartition(b"/")[2].decode("utf-8", "surrogateescape")
    return unicodedata.normalize("NFC", name).casefold()


def _likest(path: bytes, others: list[bytes]) -> bytes | None:
    parts = set(path.split(b"/"))
    # Some names stand in every folder; only those that share most of the way are compared by their letters.
    few = heapq.nlargest(50, others, key=lambda other: (len(parts & set(other.split(b"/"))), other))
    by_text = {other.decode("utf-8", "surrogateescape"): other for other in few}
    best = difflib.get_close_matches(path.decode("utf-8", "surrogateescape"), by_text, n=1, cutoff=0.0)
    return by_text[best[0]] if best else None
