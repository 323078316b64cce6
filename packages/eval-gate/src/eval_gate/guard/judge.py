"""The guard: every file that a manifest or a set judges relevant must be a file of the commit's tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import Field

from eval_core.console import utf8
from eval_core.models import Closed
from eval_core.reconstruct.selection import shown
from eval_core.reconstruct.tree import Found, Kind, Tree
from eval_core.sets import Nearest
from eval_gate.guard.inputs import Form, Judged

#: Paths are bytes, and any of them comes back from being a text.
_AS_TEXT = ("utf-8", "surrogateescape")

Code = Literal["guard-vacuous", "ground-truth-missing", "ground-truth-not-a-file"]


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
    nearest = Nearest(lambda: (path.decode(*_AS_TEXT) for path in tree.files()))
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
    judged: Judged, path: bytes, queries: tuple[str, ...], found: Found, tree: Tree, nearest: Nearest
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
        likest = None if in_work else nearest.to(path.decode(*_AS_TEXT))
        close = None if likest is None else likest.encode(*_AS_TEXT)
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
