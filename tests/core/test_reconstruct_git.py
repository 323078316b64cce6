"""A git source: the files of one commit, from git's objects, whatever the repository or the caller has set up."""

# long because: one fixture repository, and a case for each thing that git can hold or refuse
from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from eval_core.backend import Document
from eval_core.errors import CouldNot, EvalError, Misuse
from eval_core.reconstruct import git, repository
from eval_core.reconstruct.lock import Oversize, Skipped
from eval_core.reconstruct.selection import State, Tally, documents
from eval_core.sets.definition import Git

FILE, EXECUTABLE, LINK, MODULE = "100644", "100755", "120000", "160000"
ENVIRONMENT = {
    **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_AUTHOR_DATE": "1700000000 +0000",
    "GIT_COMMITTER_DATE": "1700000000 +0000",
}


@dataclass(frozen=True)
class Repo:
    """A real repository."""

    path: Path

    @classmethod
    def make(cls, path: Path, *options: str) -> Repo:
        subprocess.run(["git", "init", "-q", "-b", "main", *options, str(path)], env=ENVIRONMENT, check=True)
        return cls(path)

    def __call__(self, *arguments: str, stdin: bytes = b"") -> str:
        return self.raw(*arguments, stdin=stdin).decode().strip()

    def raw(self, *arguments: str, stdin: bytes = b"") -> bytes:
        command = ["git", "-C", str(self.path), "-c", "protocol.file.allow=always", *arguments]
        done = subprocess.run(command, input=stdin, env=ENVIRONMENT, capture_output=True, check=True)
        return done.stdout

    def commit(
        self,
        files: Mapping[bytes, bytes],
        others: Sequence[tuple[str, bytes, bytes]] = (),
        branch: str = "main",
    ) -> str:
        """Commit exactly these files; `others` are (mode, path, content), for a submodule the commit's id."""
        lines = [
            f"commit refs/heads/{branch}\ncommitter A <a@example.org> 1700000000 +0000\ndata 1\nm\n".encode()
        ]
        lines += [b"deleteall\n"]
        for mode, path, content in [*((FILE, p, c) for p, c in files.items()), *others]:
            quoted = b'"' + b"".join(b"\\%03o" % byte for byte in path) + b'"'
            if mode == MODULE:
                lines.append(b"M 160000 " + content + b" " + quoted + b"\n")
            else:
                lines.append(
                    f"M {mode} inline ".encode() + quoted + b"\ndata %d\n" % len(content) + content + b"\n"
                )
        self("fast-import", "--quiet", "--force", stdin=b"".join(lines))
        return self("rev-parse", f"refs/heads/{branch}")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.make(tmp_path / "notes")


def source(**keys: Any) -> Git:
    return Git.model_validate_json(json.dumps({"name": "notes", "type": "git", **keys}))


@dataclass(frozen=True)
class Read:
    state: State
    documents: list[Document]
    skipped: Skipped
    told: list[str]

    @property
    def texts(self) -> dict[str, str]:
        return {document.id: document.text for document in self.documents}


def read(folder: Path, override: Path | None = None, **keys: Any) -> Read:
    """Read a source of a dataset that lies in `folder`."""
    told: list[str] = []
    tally = Tally()
    wanted = source(**keys)
    with git.opened(wanted, folder, override, folder / "cache", told.append) as (state, entries):
        found = list(documents(wanted, entries, tally))
    return Read(state, found, tally.skipped(), told)


def test_the_files_of_a_pinned_commit_are_read_from_objects(repo: Repo, tmp_path: Path) -> None:
    """A2: neither later commits, nor the index, nor the working tree has a say."""
    first = repo.commit({b"docs/a.md": b"alpha\n", b"docs/deep/b.md": b"beta\r\n", b"c.txt": b""})
    repo("read-tree", first)
    repo.commit({b"docs/a.md": b"later\n"})
    (repo.path / "docs").mkdir()
    (repo.path / "docs/a.md").write_text("dirty")

    found = read(tmp_path, path="notes", commit=first)

    assert found.state == State(pinned=True, commit=first, tree=repo("rev-parse", f"{first}^{{tree}}"))
    assert found.documents == [
        Document("notes/c.txt", "c.txt", "", {"path": "notes/c.txt"}),
        Document("notes/docs/a.md", "docs/a.md", "alpha\n", {"path": "notes/docs/a.md"}),
        Document("notes/docs/deep/b.md", "docs/deep/b.md", "beta\r\n", {"path": "notes/docs/deep/b.md"}),
    ]


def test_root_globs_prefix_and_metadata(repo: Repo, tmp_path: Path) -> None:
    commit = repo.commit(
        {
            b"src/pkg/a.py": b"a",
            b"src/pkg/t/b.py": b"b",
            b"src/pkg/c.txt": b"c",
            b"src/pkgs/d.py": b"d",
            b"e.py": b"e",
        }
    )
    keys: dict[str, Any] = {"path": "notes", "commit": commit, "root": "src/pkg"}
    found = read(
        tmp_path, **keys, include=["**/*.py"], exclude=["t/**"], prefix="", metadata={"kind": "code"}
    )
    assert found.documents == [Document("a.py", "a.py", "a", {"path": "a.py", "kind": "code"})]
    assert found.skipped == Skipped(excluded=2)
    assert list(read(tmp_path, **keys, prefix="x/y").texts) == ["x/y/a.py", "x/y/c.txt", "x/y/t/b.py"]


@pytest.mark.parametrize(
    ("path", "name", "title"),
    [
        (b"a b.md", "a%20b.md", "a b.md"),
        ("ünï/ø.md".encode(), "ünï/ø.md", "ünï/ø.md"),
        (b'"q".md', '"q".md', '"q".md'),
        (b"'q'.md", "'q'.md", "'q'.md"),
        (b"new\nline.md", "new%0Aline.md", "new\nline.md"),
        (b"tab\tx.md", "tab%09x.md", "tab\tx.md"),
        (b"back\\slash.md", "back\\slash.md", "back\\slash.md"),
        (b"per%20cent.md", "per%2520cent.md", "per%20cent.md"),
        (b"bad\xff\xc3.md", "bad%FF%C3.md", "bad%FF%C3.md"),
        (b"--output=x", "--output=x", "--output=x"),
        (b":(glob)x", ":(glob)x", ":(glob)x"),
        ("no\u00a0break".encode(), "no%C2%A0break", "no\u00a0break"),
    ],
)
def test_a_name_of_any_bytes_becomes_an_id(
    repo: Repo, tmp_path: Path, path: bytes, name: str, title: str
) -> None:
    commit = repo.commit({path: b"text"})
    (document,) = read(tmp_path, path="notes", commit=commit, prefix="").documents
    assert document == Document(name, title, "text", {"path": title})


def test_documents_stand_in_byte_order_of_their_paths(repo: Repo, tmp_path: Path) -> None:
    paths = [b"a/z", b"d/a", b"a.b", b"a0", b"B", b"\xff", "é".encode(), b"a b"]
    commit = repo.commit(dict.fromkeys(paths, b"text"))
    found = read(tmp_path, path="notes", commit=commit, prefix="")
    assert [d.title for d in found.documents] == ["B", "a b", "a.b", "a/z", "a0", "d/a", "é", "%FF"]


def test_what_is_no_text_file_is_skipped_and_counted(repo: Repo, tmp_path: Path) -> None:
    commit = repo.commit(
        {
            b"a.md": b"x" * 100,
            b"big.md": b"x" * 101,
            b"late-zero.md": b"y" * 60 + b"\0",
            b"latin.md": "é".encode("latin-1"),
            b"zero.md": b"a\0b",
            b"left/out.md": b"",
        },
        [
            (LINK, b"link.md", b"/etc/passwd"),
            (LINK, b"left/link", b"x"),
            (MODULE, b"vendored", b"1" * 40),
            (EXECUTABLE, b"run.sh", b"#!/bin/sh\n"),
        ],
    )
    found = read(
        tmp_path, path="notes", commit=commit, prefix="", max_bytes=100, exclude=["left/**"], include=["*"]
    )
    assert list(found.texts) == ["a.md", "run.sh"]
    assert found.skipped == Skipped(
        symlink=1,
        submodule=1,
        binary=2,
        not_utf8=1,
        excluded=2,
        oversize=(Oversize(path="big.md", bytes=101),),
    )


def test_a_zero_byte_past_the_first_8000_is_text(repo: Repo, tmp_path: Path) -> None:
    commit = repo.commit({b"in": b"x" * 7999 + b"\0", b"out": b"x" * 8000 + b"\0"})
    found = read(tmp_path, path="notes", commit=commit, prefix="")
    assert list(found.texts) == ["out"]
    assert found.skipped == Skipped(binary=1)


@pytest.mark.parametrize("place", ["bare", "subfolder", "git-directory", "worktree"])
def test_a_repository_is_found_in_each_of_its_forms(repo: Repo, tmp_path: Path, place: str) -> None:
    commit = repo.commit({b"deep/a.md": b"alpha"})
    (repo.path / "deep").mkdir()
    places = {
        "bare": tmp_path / "bare.git",
        "subfolder": repo.path / "deep",
        "git-directory": repo.path / ".git",
        "worktree": tmp_path / "tree",
    }
    if place == "bare":
        repo("clone", "-q", "--bare", str(repo.path), str(places[place]))
    if place == "worktree":
        repo("worktree", "add", "-q", "--detach", str(places[place]), commit)
    assert read(tmp_path, path=str(places[place]), commit=commit).texts == {"notes/deep/a.md": "alpha"}


def test_a_repository_with_sha256_ids(tmp_path: Path) -> None:
    repo = Repo.make(tmp_path / "notes", "--object-format=sha256")
    commit = repo.commit({b"a.md": b"alpha", b"b/c": b"d"})
    assert len(commit) == 64
    assert read(tmp_path, path="notes", commit=commit, prefix="").texts == {"a.md": "alpha", "b/c": "d"}
    assert read(tmp_path, url=repo.path.as_uri(), commit=commit, prefix="").texts == {
        "a.md": "alpha",
        "b/c": "d",
    }


def test_the_callers_git_variables_do_not_lead_elsewhere(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook of another repository may be what runs us."""
    commit = repo.commit({b"a.md": b"alpha"})
    other = Repo.make(tmp_path / "other")
    other.commit({b"a.md": b"other"})
    for name, value in {
        "GIT_DIR": other.path / ".git",
        "GIT_WORK_TREE": other.path,
        "GIT_INDEX_FILE": other.path / "index",
        "GIT_OBJECT_DIRECTORY": other.path / ".git/objects",
        "GIT_NAMESPACE": "x",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.repositoryFormatVersion",
        "GIT_CONFIG_VALUE_0": "99",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_TRACE": "1",
    }.items():
        monkeypatch.setenv(name, str(value))
    assert read(tmp_path, path="notes", commit=commit).texts == {"notes/a.md": "alpha"}
    assert read(tmp_path, url=repo.path.as_uri(), commit=commit).texts == {"notes/a.md": "alpha"}


def trapped(repo: Repo, marker: Path) -> str:
    """A commit in a repository whose every hook, filter and setting would make `marker`."""
    trap = f"touch {marker}; exit 1"
    commit = repo.commit(
        {b".gitattributes": b"* filter=trap diff=trap text=auto eol=crlf ident\n", b"a.md": b"$Id$\n"}
    )
    for key in (
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "pager.ls-tree",
        "pager.cat-file",
        "core.alternateRefsCommand",
        "uploadpack.packObjectsHook",
        "filter.trap.smudge",
        "filter.trap.clean",
        "diff.trap.textconv",
        "diff.external",
        "credential.helper",
        "alias.ls-tree",
        "alias.cat-file",
        "core.askPass",
    ):
        repo("config", key, ("!" if key.startswith("alias") else "") + trap)
    repo("config", "core.autocrlf", "true")
    hooks = repo.path / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for hook in (
        "post-checkout",
        "reference-transaction",
        "pre-auto-gc",
        "post-index-change",
        "fsmonitor-watchman",
    ):
        (hooks / hook).write_text(f"#!/bin/sh\n{trap}\n")
        (hooks / hook).chmod(0o755)
    return commit


def test_nothing_that_a_repository_carries_is_run(repo: Repo, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    commit = trapped(repo, marker)
    expected = {
        "notes/.gitattributes": "* filter=trap diff=trap text=auto eol=crlf ident\n",
        "notes/a.md": "$Id$\n",
    }
    before = sorted(repo.path.rglob("*"))
    assert read(tmp_path, path="notes", commit=commit).texts == expected
    assert read(tmp_path, path="notes", branch="main").texts == expected
    assert read(tmp_path, url=repo.path.as_uri(), commit=commit).texts == expected
    assert sorted(repo.path.rglob("*")) == before, "no file was made in it"
    assert not marker.exists()
    subprocess.run(
        ["git", "-C", str(repo.path), "checkout", "-q", "main"], env=ENVIRONMENT, capture_output=True
    )
    assert marker.exists(), "the traps work"


def test_replaced_objects_are_not_what_a_commit_stands_for(repo: Repo, tmp_path: Path) -> None:
    commit = repo.commit({b"a.md": b"alpha"})
    other = repo("hash-object", "-w", "--stdin", stdin=b"replaced")
    repo("replace", repo("rev-parse", f"{commit}:a.md"), other)
    assert repo("show", f"{commit}:a.md") == "replaced", "the trap works"
    assert read(tmp_path, path="notes", commit=commit).texts == {"notes/a.md": "alpha"}


def test_a_partial_clone_is_not_completed_on_the_way(repo: Repo, tmp_path: Path) -> None:
    commit = repo.commit({b"a.md": b"alpha", b"b.md": b"beta"})
    repo("config", "uploadpack.allowFilter", "true")
    partial = Repo(tmp_path / "partial")
    options = ["--no-checkout", "--filter=blob:none", repo.path.as_uri()]
    subprocess.run(["git", "clone", "-q", *options, str(partial.path)], env=ENVIRONMENT, check=True)
    blob = repo("rev-parse", f"{commit}:a.md")
    before = sorted((partial.path / ".git/objects").rglob("*"))

    with pytest.raises(CouldNot, match=rf"'partial' lacks the object {blob}") as caught:
        read(tmp_path, path="partial", commit=commit)
    with pytest.raises(CouldNot, match="has no commit 1111111"):
        read(tmp_path, path="partial", commit="1" * 40)

    assert caught.value.code == "object-absent"
    assert sorted((partial.path / ".git/objects").rglob("*")) == before
    assert partial("cat-file", "-p", blob) == "alpha", "git itself would fetch it"
    subprocess.run(shlex.split(caught.value.mend or ""), env=ENVIRONMENT, check=True, capture_output=True)
    assert read(tmp_path, path="partial", commit=commit, prefix="").texts == {"a.md": "alpha", "b.md": "beta"}


def test_a_shallow_clone_says_what_to_fetch(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = repo.commit({b"a.md": b"alpha"})
    repo.commit({b"a.md": b"later"})
    clone = tmp_path / "my clones/notes"
    arguments = ["--depth=1", repo.path.as_uri(), str(clone)]
    subprocess.run(["git", "clone", "-q", *arguments], env=ENVIRONMENT, check=True)
    dataset = tmp_path / "work/datasets/kb"
    dataset.mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")

    with pytest.raises(CouldNot) as caught:
        read(dataset, path="../../../my clones/notes", commit=old)

    assert caught.value.code == "commit-absent"
    assert caught.value.message == (
        f"source 'notes': '../../../my clones/notes' has no commit {old[:7]}…  (shallow clone?)"
    )
    assert caught.value.mend == f"git -C '../my clones/notes' fetch --depth=1 origin {old}"
    subprocess.run(shlex.split(caught.value.mend), env=ENVIRONMENT, check=True, capture_output=True)
    assert read(dataset, path="../../../my clones/notes", commit=old).texts == {"notes/a.md": "alpha"}


def test_a_full_clone_that_lacks_the_commit_is_not_made_shallow_by_the_remedy(
    repo: Repo, tmp_path: Path
) -> None:
    repo.commit({b"a.md": b"alpha"})
    with pytest.raises(CouldNot, match=r"has no commit 1111111…  \(not fetched\?\)") as caught:
        read(tmp_path, path="notes", commit="1" * 40)
    assert "--depth" not in (caught.value.mend or "")


@pytest.mark.parametrize("kind", ["tree", "blob", "tag"])
def test_an_id_of_another_kind_than_a_commit_is_refused(repo: Repo, tmp_path: Path, kind: str) -> None:
    commit = repo.commit({b"a.md": b"alpha"})
    repo("tag", "-a", "-m", "m", "v1", commit)
    name = repo("rev-parse", {"tree": f"{commit}^{{tree}}", "blob": f"{commit}:a.md", "tag": "v1"}[kind])
    with pytest.raises(Misuse, match=rf"{name} is the id of a {kind}, not of a commit"):
        read(tmp_path, path="notes", commit=name)
    if kind == "tag":
        with pytest.raises(Misuse, match=r"is the id of a tag"):
            read(tmp_path, url=repo.path.as_uri(), commit=name)


def test_a_branch_is_resolved_and_reported_unpinned(repo: Repo, tmp_path: Path) -> None:
    first = repo.commit({b"a.md": b"alpha"}, branch="topic/x")
    tree = repo("rev-parse", f"{first}^{{tree}}")
    places: list[dict[str, Any]] = [{"path": "notes"}, {"url": repo.path.as_uri()}]
    for place in places:
        found = read(tmp_path, **place, branch="topic/x")
        assert found.state == State(pinned=False, commit=first, tree=tree)
    second = repo.commit({b"a.md": b"beta"}, branch="topic/x")
    for place in places:
        found = read(tmp_path, **place, branch="topic/x")
        assert (found.state.commit, found.texts) == (second, {"notes/a.md": "beta"})


def test_a_branch_may_be_the_origins(repo: Repo, tmp_path: Path) -> None:
    commit = repo.commit({b"a.md": b"alpha"}, branch="topic")
    clone = Repo(tmp_path / "clone")
    subprocess.run(
        ["git", "clone", "-q", "-b", "topic", str(repo.path), str(clone.path)], env=ENVIRONMENT, check=True
    )
    clone("checkout", "-q", "--detach")
    clone("branch", "-q", "-D", "topic")
    assert read(tmp_path, path="clone", branch="topic").state.commit == commit


@pytest.mark.parametrize("place", ["path", "url"])
def test_an_unknown_branch_is_told(repo: Repo, tmp_path: Path, place: str) -> None:
    repo.commit({b"a.md": b"alpha"})
    with pytest.raises(CouldNot, match="has no branch 'gone'"):
        read(tmp_path, None, **{place: "notes" if place == "path" else repo.path.as_uri()}, branch="gone")


@pytest.mark.parametrize(
    "branch", ["main~1", "main^{tree}", "a..b", "x:refs/heads/y", "a b", "*", "@{-1}", "x.lock"]
)
@pytest.mark.parametrize("place", ["path", "url"])
def test_what_is_no_name_of_a_branch_is_refused(repo: Repo, tmp_path: Path, place: str, branch: str) -> None:
    repo.commit({b"a.md": b"alpha"})
    with pytest.raises(Misuse, match="cannot be the name of a branch"):
        read(tmp_path, None, **{place: "notes" if place == "path" else repo.path.as_uri()}, branch=branch)


def test_a_url_is_fetched_once_and_then_needs_no_network(repo: Repo, tmp_path: Path) -> None:
    commit = repo.commit({b"a.md": b"alpha"})
    second = repo.commit({b"a.md": b"beta"})
    url = repo.path.as_uri()
    first = read(tmp_path, url=url, commit=commit)
    assert first.texts == {"notes/a.md": "alpha"}
    assert first.told == [f"source 'notes': fetching {commit} from {url}"]
    assert read(tmp_path, url=url, commit=second).texts == {"notes/a.md": "beta"}
    (cached,) = (tmp_path / "cache/git").iterdir()
    assert not [
        path for path in cached.rglob("*") if path.name in ("FETCH_HEAD", "a.md") or "hooks" in path.parts
    ]

    repo.path.rename(tmp_path / "away")
    for name, text in ((commit, "alpha"), (second, "beta")):
        again = read(tmp_path, url=url, commit=name)
        assert (again.texts, again.told) == ({"notes/a.md": text}, [])
    with pytest.raises(CouldNot, match="fetching from") as caught:
        read(tmp_path, url=url, branch="main")
    assert caught.value.code == "source-absent"
    assert str(caught.value).count("\n") <= 2


def test_a_hook_in_the_cache_is_not_run(repo: Repo, tmp_path: Path) -> None:
    """A cache may have been restored from somewhere."""
    first, second = (repo.commit({b"a.md": text}) for text in (b"alpha", b"beta"))
    url = repo.path.as_uri()
    read(tmp_path, url=url, commit=first)
    (cached,) = (tmp_path / "cache/git").iterdir()
    marker = tmp_path / "marker"
    (cached / "hooks").mkdir()
    (cached / "hooks/reference-transaction").write_text(f"#!/bin/sh\ntouch {marker}\n")
    (cached / "hooks/reference-transaction").chmod(0o755)
    assert read(tmp_path, url=url, commit=second).texts == {"notes/a.md": "beta"}
    assert not marker.exists()
    Repo(cached)("update-ref", "refs/heads/x", first)
    assert marker.exists(), "the trap works"


def test_a_url_without_the_commit(repo: Repo, tmp_path: Path) -> None:
    repo.commit({b"a.md": b"alpha"})
    with pytest.raises(CouldNot, match=r"has no commit 1111111…") as caught:
        read(tmp_path, url=repo.path.as_uri(), commit="1" * 40)
    assert caught.value.code == "commit-absent"
    assert caught.value.mend == "if a clone is on this machine: EVAL_SOURCE_NOTES=PATH before the command"


@pytest.mark.parametrize(
    "url", ["ext::sh -c 'touch marker'", "fd::17", "../notes", "notes", "ftp://h/x", "C:/notes"]
)
def test_a_url_of_another_kind_is_refused(repo: Repo, tmp_path: Path, url: str) -> None:
    commit = repo.commit({b"a.md": b"alpha"})
    with pytest.raises(Misuse, match="cannot be fetched"):
        read(tmp_path, url=url, commit=commit)


def test_a_password_in_a_url_is_neither_shown_nor_locked(tmp_path: Path) -> None:
    url = "https://someone:s3cret@127.0.0.1:1/notes.git"
    with pytest.raises(CouldNot) as caught:
        read(tmp_path, url=url, commit="1" * 40)
    assert "s3cret" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)
    for given, public in (
        (url, "https://127.0.0.1:1/notes.git"),
        ("https://t0ken@host/x.git", "https://host/x.git"),
        ("ssh://git:s3cret@host/x.git", "ssh://host/x.git"),
        ("ssh://git@host/x.git", "ssh://git@host/x.git"),
        ("git@host:x.git", "git@host:x.git"),
    ):
        assert git.location(source(url=given, commit="1" * 40)) == public


def test_an_override_must_hold_the_same_commit(repo: Repo, tmp_path: Path) -> None:
    """K4: an override replaces the configured location, and the commit must still match."""
    commit = repo.commit({b"a.md": b"alpha"})
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--bare", str(repo.path), str(clone)], env=ENVIRONMENT, check=True)
    for configured in ({"path": "gone"}, {"url": "https://127.0.0.1:1/x.git"}):
        assert read(tmp_path, clone, **configured, commit=commit).texts == {"notes/a.md": "alpha"}
    other = Repo.make(tmp_path / "other")
    other.commit({b"a.md": b"other"})
    with pytest.raises(CouldNot, match=f"{str(other.path)!r} has no commit"):
        read(tmp_path, other.path, path="notes", commit=commit)
    with pytest.raises(CouldNot, match="does not exist"):
        read(tmp_path, tmp_path / "nowhere", path="notes", commit=commit)


def test_an_absent_repository_raises(tmp_path: Path) -> None:
    """K4: a configured but absent source raises."""
    with pytest.raises(CouldNot, match=r"source 'notes': '\.\./gone' does not exist") as caught:
        read(tmp_path, path="../gone", commit="1" * 40)
    assert (caught.value.code, caught.value.exit_code) == ("source-absent", 3)
    (tmp_path / "plain").mkdir()
    with pytest.raises(CouldNot, match="'plain' is not a git repository"):
        read(tmp_path, path="plain", commit="1" * 40)


def test_round2_s4_what_git_could_not_fetch_is_said_with_its_reason(tmp_path: Path) -> None:
    """S4: the reason, and not the advice that git prints below it."""
    gone = tmp_path / "gone"
    with pytest.raises(CouldNot) as caught:
        read(tmp_path, url=gone.as_uri(), commit="1" * 40)
    assert f"failed: fatal: '{gone}' does not appear to be a git repository" in str(caught.value)
    assert "the repository exists" not in str(caught.value)


_ADVICE = "\nPlease make sure you have the correct access rights\nand the repository exists.\n"
_UNREAD = "fatal: Could not read from remote repository.\n"


@pytest.mark.parametrize(
    ("stderr", "shown"),
    [
        (f"ERROR: Repository not found.\n{_UNREAD}{_ADVICE}", "ERROR: Repository not found."),
        (
            f"Warning: added h.example to the list of known hosts.\nn@h.example: Permission denied (publickey).\n"
            f"{_UNREAD}{_ADVICE}",
            "n@h.example: Permission denied (publickey).",
        ),
        ("remote: not found\nfatal: repository 'https://h.example/x' not found\n", None),
        ("error: RPC failed; curl 56 recv failure\nfatal: early EOF\nfatal: unpack-objects failed\n", None),
        (
            "fatal: unable to access 'https://n:s3cret@h/x/': refused\n",
            "fatal: unable to access 'https://h/x/': refused",
        ),
        (f"{_UNREAD}{_ADVICE}", _UNREAD.strip()),
        ("something else\nand why\n", "and why"),
        ("\n", "no reason given"),
    ],
)
def test_round2_s4_the_first_error_of_git_is_shown(stderr: str, shown: str | None) -> None:
    """S4: for every caller; where a helper such as ssh failed, what it said itself."""
    first = next((line for line in stderr.splitlines() if line.startswith(("fatal", "error"))), "")
    assert repository.complaint(stderr.encode()) == (first if shown is None else shown)


def loose(repo: Repo, name: str) -> Path:
    return repo.path / ".git/objects" / name[:2] / name[2:]


@pytest.mark.parametrize("kind", ["commit", "tree", "subtree", "blob"])
def test_an_altered_object_is_an_error_and_no_corpus(repo: Repo, tmp_path: Path, kind: str) -> None:
    """A2: the id is checked, since git itself serves a loose object whose content was exchanged."""
    commit = repo.commit({b"d/a.md": b"alpha"})
    other = repo.commit({b"d/a.md": b"beta"})
    suffix = {"commit": "", "tree": "^{tree}", "subtree": ":d", "blob": ":d/a.md"}[kind]
    victim, stranger = (repo("rev-parse", name + suffix) for name in (commit, other))
    loose(repo, victim).chmod(0o644)
    loose(repo, victim).write_bytes(loose(repo, stranger).read_bytes())
    served = [repo.raw("cat-file", {"subtree": "tree"}.get(kind, kind), name) for name in (victim, stranger)]
    assert served[0] == served[1], "git serves it all the same"
    with pytest.raises(CouldNot, match=f"object {victim} of 'notes' does not have the content") as caught:
        read(tmp_path, path="notes", commit=commit)
    assert caught.value.code == "repository-damaged"


def test_a_broken_object_is_an_error(repo: Repo, tmp_path: Path) -> None:
    commit = repo.commit({b"a.md": b"alpha"})
    blob = loose(repo, repo("rev-parse", f"{commit}:a.md"))
    blob.chmod(0o644)
    blob.write_bytes(b"nonsense")
    with pytest.raises(EvalError) as caught:
        read(tmp_path, path="notes", commit=commit)
    assert caught.value.exit_code == 3


def test_an_object_that_is_cut_off_does_not_hang(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git announces five bytes, gives three, and waits for the next request."""
    monkeypatch.setattr(repository, "PATIENCE", 0.2)
    commit = repo.commit({b"a.md": b"alpha"})
    blob = loose(repo, repo("rev-parse", f"{commit}:a.md"))
    blob.chmod(0o644)
    blob.write_bytes(zlib.compress(b"blob 5\0alp"))
    with pytest.raises(CouldNot, match=r"no answer within 0\.2 seconds") as caught:
        read(tmp_path, path="notes", commit=commit)
    assert caught.value.code == "repository-damaged"


def test_a_commit_that_names_no_tree_is_an_error(repo: Repo, tmp_path: Path) -> None:
    repo.commit({b"a.md": b"alpha"})
    name = repo("hash-object", "-w", "-t", "commit", "--literally", "--stdin", stdin=b"tree \nHEAD\n")
    with pytest.raises(CouldNot, match="names no tree"):
        read(tmp_path, path="notes", commit=name)


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"include": ["*.rst"]}, r"include \['\*.rst'\] matched none of 3 files"),
        ({"exclude": ["**"]}, r"none of 3 files \(or exclude \['\*\*'\] took them out\)"),
        ({"root": "src"}, "there is no file below its root 'src'"),
        ({"root": "a.md"}, "there is no file below its root 'a.md'"),
        (
            {"include": ["*.bin"], "exclude": ["*.md"]},
            "all of 3 files were skipped: 1 binary, 2 left out by globs",
        ),
    ],
)
def test_a_source_that_gives_no_document_is_an_error(
    repo: Repo, tmp_path: Path, keys: dict[str, Any], why: str
) -> None:
    commit = repo.commit({b"a.md": b"alpha", b"b.md": b"beta", b"c.bin": b"\0"})
    with pytest.raises(Misuse, match=f"source 'notes': gave no documents: .*{why}"):
        read(tmp_path, path="notes", commit=commit, **keys)


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="needs to give files to another user"
)
def test_a_repository_of_another_user_is_read_where_it_is_named(repo: Repo, tmp_path: Path) -> None:
    commit = repo.commit({b"a.md": b"alpha"})
    for path in [repo.path, *repo.path.rglob("*")]:
        os.chown(path, 12345, 12345)
    plain = subprocess.run(["git", "-C", str(repo.path), "log"], env=ENVIRONMENT, capture_output=True)
    assert b"dubious ownership" in plain.stderr, "git itself would not"
    assert read(tmp_path, path="notes", commit=commit).texts == {"notes/a.md": "alpha"}


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="needs to give files to another user"
)
def test_a_repository_of_another_user_above_the_named_folder_is_refused(repo: Repo, tmp_path: Path) -> None:
    """Anyone could put one into a folder that is shared by all."""
    commit = repo.commit({b"a.md": b"alpha"})
    (repo.path / "mine").mkdir()
    os.chown(repo.path / ".git", 12345, 12345)
    with pytest.raises(CouldNot, match="belongs to another user") as caught:
        read(tmp_path, path="notes/mine", commit=commit)
    assert caught.value.mend == f"if that is the one: EVAL_SOURCE_NOTES={repo.path} before the command"
    os.chown(repo.path / "mine", 12345, 12345)
    assert read(tmp_path, path="notes/mine", commit=commit).texts == {"notes/a.md": "alpha"}, (
        "one owner for both"
    )


def test_without_git_the_error_says_so(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = repo.commit({b"a.md": b"alpha"})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CouldNot, match="git is not installed"):
        read(tmp_path, path="notes", commit=commit)
