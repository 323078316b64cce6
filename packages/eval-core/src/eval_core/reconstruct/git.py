"""The files of one commit, read from git's objects: no working tree, no hook, no filter, no lazy fetch.

Commit, trees and contents are each compared with the id that names them: an altered store is an error, not a corpus.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import IO

from eval_core.errors import CouldNot, Misuse
from eval_core.reconstruct.overrides import elsewhere
from eval_core.reconstruct.repository import (
    Repository,
    Running,
    complaint,
    environment,
    find,
    git_needed,
    public_url,
    reachable,
    resolved,
)
from eval_core.reconstruct.selection import Entry, State
from eval_core.sets.definition import Git

_NETWORK = ("https", "http", "ssh", "git")
_SCHEME = re.compile(r"(https|http|ssh|git|file)://.")
_SCP = re.compile(r"[^/:]{2,}:(?!:|//).+")  # user@host:path; two letters at least, so that it is no drive

_ID = "[0-9a-f]{64}|[0-9a-f]{40}"

#: What git says where a partial clone lacks an object, and the network is not asked.
_PROMISED = "from promisor remote"

#: Bytes of an object that are taken at a time where not all are kept.
_PART = 1 << 20

#: Commits are shown by this many digits; the mend has them all.
_DIGITS = 7


def location(source: Git) -> str:
    """Where the recipe says the repository is."""
    return source.path if source.path is not None else public_url(source.url or "")


@contextlib.contextmanager
def opened(
    source: Git, folder: Path, override: Path | None, cache: Path, progress: Callable[[str], None]
) -> Iterator[tuple[State, Iterator[Entry]]]:
    """Yield the state of a source and the files of its commit, in byte order of their paths.

    Args:
        folder: the dataset's, which `path` is relative to.
        override: a repository to read instead of the configured one.
        cache: where fetched repositories are kept.

    Raises:
        CouldNot: the repository or the commit is not there, cannot be fetched, or is damaged.
        Misuse: the id is not a commit's, or the url or branch is none.
    """
    if override is not None:
        repository = find(override, str(override), source.name)
    elif source.path is not None:
        repository = find(folder / source.path, source.path, source.name)
    else:
        repository = _fetched(source, cache, progress)
    commit = source.commit or _branch(repository, source.branch or "")
    with _objects(repository) as objects:
        tree = _tree(repository, objects, commit)
        with contextlib.closing(_entries(repository, objects, tree)) as entries:
            yield State(pinned=source.commit is not None, commit=commit, tree=tree), entries


def _fetched(source: Git, cache: Path, progress: Callable[[str], None]) -> Repository:
    """A bare repository of the cache that holds the source's commit; without the network where it has it already."""
    url = source.url or ""
    scheme = _SCHEME.match(url)
    if scheme is None and not _SCP.fullmatch(url):
        raise Misuse(
            "url-unknown",
            "cannot be fetched: write https://, ssh://, git://, file:// or host:path, or give a folder of this "
            "machine as path",
            subject=f"source {source.name!r}",
            key="url",
            value=public_url(url),
        )
    protocols = ("file",) if scheme and scheme[1] == "file" else _NETWORK
    # The two kinds of id cannot share a repository.
    long = ["--object-format=sha256"] if source.commit and len(source.commit) == 64 else []
    name = hashlib.sha256(url.encode()).hexdigest() + ("-sha256" if long else "")
    folder = Path(os.path.abspath(cache)) / "git" / name
    repository = Repository(folder, public_url(url), source.name)
    if source.commit is not None:
        what, ref = source.commit, f"refs/eval/commits/{source.commit}"
    else:
        what, ref = _branch_ref(repository, source.branch or ""), f"refs/eval/heads/{source.branch}"
    # A ref is written after all that it needs has come, so it says more than the commit alone.
    if source.commit is not None and resolved(repository, ref):
        return repository
    progress(f"source {source.name!r}: fetching {what} from {repository.label}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = f"{folder} cannot be made: {error.strerror or error}"
        raise repository.error("cannot-write", what) from error
    made = repository.run("init", "--quiet", "--bare", "--template=", *long)
    if made.returncode != 0:
        raise repository.error("cannot-write", f"git init failed: {complaint(made.stderr)}")
    options = ("--quiet", "--depth=1", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
    done = repository.run("fetch", *options, "--", url, f"+{what}:{ref}", protocols=protocols)
    if done.returncode != 0:
        raise _not_fetched(repository, source, done.stderr)
    return repository


def _not_fetched(repository: Repository, source: Git, stderr: bytes) -> CouldNot:
    mend = f"if a clone is on this machine: {elsewhere(source.name)}"
    if source.commit is not None and b"not our ref" in stderr:
        what = f"{repository.label!r} has no commit {source.commit[:_DIGITS]}…"
        return repository.error("commit-absent", what, mend)
    if b"couldn't find remote ref" in stderr:
        what = f"{repository.label!r} has no branch {source.branch!r}"
        return repository.error("branch-absent", what, mend)
    what = f"fetching from {repository.label!r} failed: {complaint(stderr)}"
    return repository.error("source-absent", what, mend)


def _branch_ref(repository: Repository, branch: str) -> str:
    """The full name of a branch.

    Raises:
        Misuse: git takes no such name, so it could say something else than a branch.
    """
    ref = f"refs/heads/{branch}"
    with git_needed():
        command = ["git", "check-ref-format", ref]
        checked = subprocess.run(command, env=environment(), stdin=subprocess.DEVNULL, check=False)
    if checked.returncode != 0:
        what = f"{branch!r} cannot be the name of a branch"
        raise Misuse("branch-malformed", what, subject=f"source {repository.source!r}")
    return ref


def _branch(repository: Repository, branch: str) -> str:
    """The commit that a branch is at: as fetched, else the repository's own branch, else its origin's."""
    places = [_branch_ref(repository, branch), f"refs/remotes/origin/{branch}"]
    for ref in places if repository.at else [f"refs/eval/heads/{branch}"]:
        if commit := resolved(repository, f"{ref}^{{commit}}"):
            return commit
    raise repository.error(
        "branch-absent",
        f"{repository.label!r} has no branch {branch!r}",
        f"git -C {reachable(repository)} fetch origin {shlex.quote(branch)}:{shlex.quote(branch)}",
    )


class Objects:
    """One long-lived `git cat-file --batch`: objects by their full id, each compared with it."""

    def __init__(self, repository: Repository, running: Running) -> None:
        self._repository = repository
        self._running = running

    def read(self, name: str, most: int | None = None) -> tuple[str, bytes] | None:
        """The type and content of an object, or None where the repository does not have it.

        Args:
            most: the bytes of the content that are kept; all of them are compared with the id.

        Raises:
            CouldNot: it is damaged, or git gave up.
        """
        found = self._read(name, most)
        return None if found is None else found[1:]

    def commit(self, revision: str) -> tuple[str, bytes] | None:
        """The id and content of the commit that a revision names in git's words; None where it names none.

        Raises:
            CouldNot: it is damaged, or git gave up.
        """
        if not revision or "\n" in revision:
            return None
        found = self._read(f"{revision}^{{commit}}", None)
        return None if found is None else (found[0], found[2])

    def _read(self, asked: str, most: int | None) -> tuple[str, str, bytes] | None:
        """The id, type and content of what an id or another name stands for."""
        try:
            with self._running.waiting():
                found = self._answer(asked, most)
        except (BrokenPipeError, EOFError) as error:
            what = f"git could not read {asked}: {self._running.complaint()}"
            raise self._repository.error("repository-damaged", what) from error
        if found is None:
            return None
        name, kind, content, its_id = found
        if its_id != name:
            raise self._repository.error(
                "repository-damaged",
                f"object {name} of {self._repository.label!r} does not have the content that its id stands for",
                _anew(self._repository),
            )
        return name, kind, content

    def _answer(self, asked: str, most: int | None) -> tuple[str, str, bytes, str] | None:
        """Ask for one object and take the answer, with the id that its content gives; EOFError where the process
        ended before it was whole."""
        self._running.input.write(os.fsencode(f"{asked}\n"))
        self._running.input.flush()
        header = self._running.output.readline().split()
        if header[-1:] in ([b"missing"], [b"ambiguous"]):
            return None
        if len(header) != 3:
            raise EOFError
        name, kind, size = header[0].decode(), header[1].decode(), int(header[2])
        hasher = (hashlib.sha1 if len(name) == 40 else hashlib.sha256)(f"{kind} {size}\0".encode())
        content, left = b"", size
        while left:
            part = self._running.output.read(min(left, _PART if most is not None else left))
            if not part:
                raise EOFError
            hasher.update(part)
            left -= len(part)
            if most is None or len(content) < most:
                content = part if not content else content + part
        if len(self._running.output.read(1)) != 1:
            raise EOFError
        return name, kind, content if most is None else content[:most], hasher.hexdigest()

    def expect(self, name: str, kind: str, most: int | None = None) -> bytes:
        """The content of an object that a tree names, or its first `most` bytes.

        Raises:
            CouldNot: it is not there (a partial clone), of another type, or damaged.
        """
        found = self.read(name, most)
        if found is None:
            raise _lacks(self._repository, f"{kind} {name}")
        if found[0] != kind:
            raise self._repository.error("repository-damaged", f"object {name} is a {found[0]}, not a {kind}")
        return found[1]

    def file(self, name: str, most: int) -> bytes:
        """The first `most` bytes of a file's content."""
        return self.expect(name, "blob", most)


def _anew(repository: Repository) -> str:
    """How a repository gets all its objects again."""
    where = reachable(repository)
    if repository.at is None:
        return f"rm -r {where}  (it is fetched again)"
    return f"git -C {where} fetch --refetch --no-filter origin"


def _lacks(repository: Repository, what: str) -> CouldNot:
    what = f"{repository.label!r} lacks the {what}  (partial clone?)"
    return repository.error("object-absent", what, _anew(repository))


@contextlib.contextmanager
def _objects(repository: Repository) -> Iterator[Objects]:
    with repository.open("cat-file", "--batch") as running:
        yield Objects(repository, running)


def _tree(repository: Repository, objects: Objects, commit: str) -> str:
    """The id of a commit's tree."""
    found = objects.read(commit)
    if found is None:
        raise _absent(repository, commit)
    kind, content = found
    if kind != "commit":
        raise Misuse(
            "commit-wrong-type",
            f"{commit} is the id of a {kind}, not of a commit",
            subject=f"source {repository.source!r}",
            mend="git rev-parse 'NAME^{commit}'  gives the commit of a tag",
        )
    tree = re.match(rf"tree ({_ID})\n".encode(), content)
    if tree is None:
        raise repository.error("repository-damaged", f"commit {commit} names no tree")
    return tree[1].decode()


def _absent(repository: Repository, commit: str) -> CouldNot:
    shallow = repository.run("rev-parse", "--is-shallow-repository").stdout.strip() == b"true"
    depth = "--depth=1 " if shallow else ""  # on a full clone it would cut the history off
    return repository.error(
        "commit-absent",
        f"{repository.label!r} has no commit {commit[:_DIGITS]}…  ({'shallow clone?' if shallow else 'not fetched?'})",
        f"git -C {reachable(repository)} fetch {depth}origin {commit}",
    )


def _entries(repository: Repository, objects: Objects, tree: str) -> Generator[Entry, None, None]:
    """The files of a tree. Git's order of a recursive listing is the byte order of the full paths."""
    objects.expect(tree, "tree")
    # -t lists the trees too: each is read once, so that an altered one is seen.
    arguments = ("ls-tree", "-r", "-t", "-z", "-l", "--full-tree", "--end-of-options", tree)
    with repository.open(*arguments) as listing:
        for line in _records(listing.output):
            head, path = line.split(b"\t", 1)
            mode, kind, name, size = head.split()
            if kind == b"tree":
                objects.expect(name.decode(), "tree")
            elif mode in (b"120000", b"160000"):
                yield Entry(path, "symlink" if mode == b"120000" else "submodule")
            else:
                # The size is no number where the object is missing; then reading it is the error, if it is wanted.
                declared = int(size) if size.isdigit() else 0
                yield Entry(path, "file", declared, functools.partial(objects.file, name.decode()))
        if listing.ended() != 0:
            why = listing.complaint()
            if promised := re.search(rf"({_ID}) {_PROMISED}", why):
                raise _lacks(repository, f"object {promised[1]}")
            raise repository.error("repository-damaged", f"git could not list {tree}: {why}")


def _records(stream: IO[bytes]) -> Iterator[bytes]:
    """Split a stream at zero bytes; what follows the last one is a record cut off, and its process has failed."""
    rest = b""
    while chunk := stream.read(1 << 16):
        *whole, rest = (rest + chunk).split(b"\0")
        yield from whole
