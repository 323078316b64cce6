"""What commands do to files: which paths of the repository a command changes, and what a job checks out."""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Iterable, Iterator

from eval_tier.workflow.models import Command, Job, Place, Step
from eval_tier.workflow.shell import UNKNOWN

#: Programs that change the files that are named last, or all files that are named.
_LAST = ("cp", "mv", "install", "rsync", "ln", "scp", "gsutil", "aws", "rclone")
_EACH = ("rm", "tee", "touch", "truncate", "shred", "unlink", "chmod", "patch")
#: Options whose value is a file or folder that is written.
_INTO = {
    "curl": ("-o", "--output"),
    "wget": ("-O", "--output-document", "-P"),
    "tar": ("-C", "--directory"),
    "unzip": ("-d",),
}
#: Verbs of git that change files of the working tree; without a path all of them.
_GIT = (
    "checkout",
    "switch",
    "restore",
    "reset",
    "stash",
    "pull",
    "merge",
    "rebase",
    "apply",
    "am",
    "clean",
    "revert",
)

_OWN = re.compile(
    r"\$\{\{\s*(github\.(sha|ref|ref_name|head_ref|event\.pull_request\.head\.(sha|ref)|event\.pull_request\.number)"
    r"|github\.event\.pull_request\.head\.sha\s*\|\|\s*github\.sha)\s*\}\}"
)

_ITSELF = re.compile(r"\$\{\{\s*github\.(repository|event\.pull_request\.head\.repo\.full_name)\s*\}\}")


def inside(path: str, folder: str) -> str | None:
    """A path as a command in `folder` writes it, relative to the top of the repository; None where it leaves it, or
    cannot be known. The workspace as an absolute path (`$PWD`, `$GITHUB_WORKSPACE`) is a value that is not known."""
    if path.startswith(f"{UNKNOWN}/"):
        path, folder = path[2:], "."
    if UNKNOWN in path or UNKNOWN in folder or path.startswith(("/", "~", "-")) or "://" in path:
        return None
    found = posixpath.normpath(posixpath.join(folder, path))
    return None if found.startswith("..") else found


def touched(command: Command) -> Iterator[str]:
    """The paths that a command changes, relative to the top; "." for any file of the working tree."""
    for path in _touched(command.words, command.writes):
        found = inside(path, command.folder)
        if found is not None:
            yield found


def _touched(words: tuple[str, ...], writes: Iterable[str]) -> Iterator[str]:
    yield from writes
    if not words:
        return
    name, rest = posixpath.basename(words[0]), words[1:]
    plain = [word for word in rest if not word.startswith("-")]
    if name in _LAST and len(plain) > 1:
        yield plain[-1]
        # Into a folder: under their own names.
        yield from (posixpath.join(plain[-1], posixpath.basename(word)) for word in plain[:-1])
        if name == "mv":
            yield from plain[:-1]
    elif name in _EACH:
        yield from plain
    elif name in ("sed", "perl", "gsed") and any(re.match(r"-\w*i|--in-place", word) for word in rest):
        yield from plain[1:]
    elif name == "dd":
        yield from (word[3:] for word in rest if word.startswith("of="))
    elif name == "git":
        yield from _git(plain, rest)
    for option, value in itertools.pairwise(rest):
        if option in _INTO.get(name, ()):
            yield value
    for word in rest:
        option, equals, value = word.partition("=")
        if equals and option in _INTO.get(name, ()):
            yield value


def _git(plain: list[str], rest: tuple[str, ...]) -> Iterator[str]:
    verb = plain[0] if plain else ""
    if verb in ("rm", "mv"):
        yield from plain[1:]
    elif verb in _GIT:
        if {"-b", "-B", "-c", "--orphan"} & set(rest) and verb in ("checkout", "switch") and len(plain) <= 2:
            return  # a new branch of what is there
        if "--" in rest:
            yield from rest[rest.index("--") + 1 :]
        else:
            yield "."


def hits(path: str, target: str) -> bool:
    """Whether a change of one path changes another: the same, or one below the other."""
    return path == target or path == "." or target.startswith(f"{path}/") or path.startswith(f"{target}/")


def foreign(job: Job, until: Step | None = None) -> tuple[str, Place] | None:
    """Why a job's files, when it comes to a step, are not those of the pull request; None where they are.

    A job that checks nothing out, before the step, has no files at all.
    """
    found: tuple[str, Place] | None = (f"the job {job.key!r} does not check the repository out", job.place)
    for step in job.steps:
        if step is until:
            break
        if (step.uses or "").startswith("actions/checkout@"):
            why = _checkout(step)
            path = step.inputs.get("path", ".")
            if posixpath.normpath(path) != "." and not why:
                why = f"it is checked out into {path!r}"
            if why and step.inputs.get("repository") and posixpath.normpath(path) != ".":
                continue  # another repository beside this one
            found = (why, step.place) if why else None
        elif "git clone" in (step.script or "") and found is not None:
            found = None
    return found


def _checkout(step: Step) -> str | None:
    ref, repository = step.inputs.get("ref", "").strip(), step.inputs.get("repository", "").strip()
    if repository and not _ITSELF.fullmatch(repository):
        return f"what is checked out is {repository!r}"
    if ref and not _OWN.fullmatch(ref):
        return f"what is checked out is {ref!r}, not the pull request"
    if step.inputs.get("sparse-checkout"):
        return "only a part of it is checked out"
    return None


__all__ = ["foreign", "hits", "inside", "touched"]
