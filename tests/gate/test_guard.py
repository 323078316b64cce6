"""The guard: every judged path is a file of the commit's tree, as git's objects have it."""

# long because: one fixture repository, and a case for each way that a path can be no file of it
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eval_core.sets.corpus import encode_id

if TYPE_CHECKING:
    from conftest import Done, Space

SCHEMA = Path(__file__).parents[2] / "schemas" / "guard-v1.schema.json"
ENVIRONMENT = {
    **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    **{f"GIT_{who}_DATE": "1700000000 +0000" for who in ("AUTHOR", "COMMITTER")},
}


@dataclass(frozen=True)
class Answer:
    """What the guard said."""

    code: int
    verdict: dict[str, Any]

    @property
    def found(self) -> list[tuple[str, str | None]]:
        return [(finding["code"], finding["path"]) for finding in self.verdict["findings"]]

    @property
    def only(self) -> dict[str, Any]:
        [finding] = self.verdict["findings"]
        return dict(finding)


class Repo:
    """A real repository, with the working tree it was committed from."""

    def __init__(self, path: Path, make: type[Space]) -> None:
        path.mkdir()
        self.path = path
        self.space = make(path)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.path), "-c", "protocol.file.allow=always", *arguments]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=True)
        return done.stdout.decode().strip()

    def write(self, *names: str) -> None:
        for name in names:
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_text(f"about {name!r}\n")

    def commit(self, *names: str) -> str:
        """Commit these files and all else that lies in the working tree."""
        self.write(*names)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "m")
        return self.git("rev-parse", "HEAD")

    def manifest(self, *paths: str, name: str = "m.json") -> str:
        """Write a manifest of a query a path."""
        queries = [
            {"id": f"q{number}", "query": "what", "ground_truth": [path]} for number, path in enumerate(paths)
        ]
        (self.path / name).write_text(json.dumps({"id": "notes", "queries": queries}))
        return name

    def set(self, judgements: Sequence[tuple[str, str, int]], sources: str, folder: str = "set") -> str:
        """Write a set without a corpus, as one whose corpus is rebuilt has none."""
        place = self.path / folder
        (place / "qrels").mkdir(parents=True, exist_ok=True)
        (place / "dataset.toml").write_text(f'name = "things"\n{sources}')
        rows = "".join(f"{query}\t{document}\t{grade}\n" for query, document, grade in judgements)
        (place / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + rows)
        return folder

    def run(self, *arguments: str | Path) -> Done:
        return self.space.gate("guard", *arguments)

    def guard(self, *arguments: str | Path) -> Answer:
        """What it says in JSON, which fits the schema and agrees with the exit code."""
        done = self.run("--format", "json", *arguments)
        assert done.err == ""
        verdict = json.loads(done.out)
        jsonschema.validate(verdict, json.loads(SCHEMA.read_text()), jsonschema.Draft202012Validator)
        assert done.code == verdict["exit_code"] == (1 if verdict["findings"] else 0)
        return Answer(done.code, verdict)


@pytest.fixture
def repo(tmp_path: Path, make: type[Space]) -> Repo:
    return Repo(tmp_path / "notes", make)


ODD = [
    "docs/a b.md",
    "docs/ä é.md",
    "docs/文.md",
    "a\nb/c\td.md",
    "100%.md",
    "'q\"$.md",
    "-x.md",
    ":(top).md",
]


def test_every_path_that_is_a_file_of_the_commit_passes(repo: Repo) -> None:
    """R7: whatever the name holds; neither index nor working tree has a say."""
    commit = repo.commit(*ODD)
    for name in ODD:
        (repo.path / name).unlink()
    repo.git("rm", "-q", "-r", "--cached", ".")
    found = repo.guard(repo.manifest(*ODD))
    assert (found.code, found.verdict["checked"], found.verdict["commit"]) == (0, len(ODD), commit)


@pytest.mark.parametrize("name", ODD)
def test_a_path_that_is_gone_fails_though_it_lies_in_the_working_tree(repo: Repo, name: str) -> None:
    """R7: a clone would not get it; that it lies here is said."""
    repo.commit("other.md")
    repo.write(name)
    manifest = repo.manifest(name, "other.md")
    uncommitted = repo.guard(manifest)
    assert uncommitted.found == [("ground-truth-missing", name)]
    assert (uncommitted.only["in_work_tree"], uncommitted.only["queries"]) == (True, ["q0"])
    (repo.path / name).unlink()
    assert repo.guard(manifest).only["in_work_tree"] is False


def test_staged_is_not_committed(repo: Repo) -> None:
    """R7"""
    repo.commit("other.md")
    repo.write("a.md")
    repo.git("add", "a.md")
    assert repo.guard(repo.manifest("a.md")).only["in_work_tree"] is True


def test_what_is_no_file_fails(repo: Repo, tmp_path: Path, make: type[Space]) -> None:
    """R7: a folder, a link and a submodule, and what lies behind one, are not files of the tree."""
    inner = Repo(tmp_path / "inner", make)
    inner.commit("in.md")
    repo.write("docs/a.md")
    (repo.path / "link.md").symlink_to("docs/a.md")
    (repo.path / "way").symlink_to("docs")
    repo.git("submodule", "--quiet", "add", str(inner.path), "sub")
    repo.commit()
    assert (repo.path / "sub" / "in.md").is_file()
    names = ["docs/a.md", "docs", "docs/", "link.md", "sub", "way/a.md", "sub/in.md", "docs/a.md/x"]
    found = repo.guard(repo.manifest(*names[:2], *names[3:]))
    assert {
        finding["path"]: (finding["code"], finding["found"]) for finding in found.verdict["findings"]
    } == {
        "docs": ("ground-truth-not-a-file", "folder"),
        "link.md": ("ground-truth-not-a-file", "symlink"),
        "sub": ("ground-truth-not-a-file", "submodule"),
        "way/a.md": ("ground-truth-missing", "symlink"),
        "sub/in.md": ("ground-truth-missing", "submodule"),
        "docs/a.md/x": ("ground-truth-missing", "file"),
    }
    codes = [code for code, _ in found.found]
    assert codes == sorted(codes), "missing comes before what is no file"
    assert not any(finding["in_work_tree"] for finding in found.verdict["findings"])
    assert repo.guard(repo.manifest("docs/")).found == [("ground-truth-not-a-file", "docs")]


def test_an_executable_file_is_a_file(repo: Repo) -> None:
    repo.write("run.sh")
    (repo.path / "run.sh").chmod(0o755)
    repo.commit()
    assert repo.guard(repo.manifest("run.sh")).code == 0


@pytest.mark.parametrize(
    "empty",
    [{"id": "n", "queries": []}, [], [{"query": "x", "relevant": []}]],
    ids=["new", "legacy", "skipped"],
)
def test_zero_judged_paths_fail(repo: Repo, empty: object) -> None:
    """R7: a check that looked at nothing fails, also beside a manifest that passes."""
    repo.commit("a.md")
    (repo.path / "empty.json").write_text(json.dumps(empty))
    alone = repo.guard("empty.json")
    assert (alone.code, alone.found) == (1, [("guard-vacuous", None)])
    beside = repo.guard(repo.manifest("a.md", "b.md"), "empty.json")
    assert beside.found == [("guard-vacuous", None), ("ground-truth-missing", "b.md")]
    assert beside.verdict["findings"][0]["input"] == "empty.json"


@pytest.mark.parametrize("path", ["", "/a.md", "../a.md", "docs/../a.md", "docs\\a.md"])
def test_a_path_that_could_lead_out_is_wrong_input(repo: Repo, path: str) -> None:
    """R7: and is told with the faults of every other input, before anything is looked up."""
    repo.commit("a.md")
    (repo.path / "other.json").write_text("[4]")
    done = repo.run(repo.manifest("a.md", path), "other.json")
    assert (done.code, done.out) == (2, "")
    assert f"m.json:1: queries[1].ground_truth[0] = {path!r}" in done.err
    assert "other.json:1: [0] = 4" in done.err
    assert "2 faults; nothing was looked at." in done.err


@pytest.mark.parametrize(
    ("missing", "there", "nearest"),
    [
        ("docs/setup.md", "guide/setup.md", "guide/setup.md"),
        ("docs/Setup.md", "docs/setup.md", "docs/setup.md"),
        ("docs/SETUP.md", "docs/setup.md", "docs/setup.md"),
        ("docs/e\u0301.md", "docs/\u00e9.md", "docs/\u00e9.md"),
        ("docs/setpu.md", "docs/setup.md", "docs/setup.md"),
        ("a/b/x.md", "c/x.md", "a/x.md"),
        ("plans/x.md", "plans/x.md", "plans/x.md"),
        ("docs/setup.md", "docs/wholly-different-name.txt", None),
    ],
)
def test_the_nearest_file_is_named(repo: Repo, missing: str, there: str, nearest: str | None) -> None:
    """R7: the same name elsewhere, letter case and Unicode form aside; else a like name."""
    repo.commit("a/x.md" if missing.startswith("a/") else "z.bin", there)
    found = repo.guard(repo.manifest(missing)).only
    assert found["nearest"] == nearest
    assert ("below .agents/" in found["message"]) == missing.startswith("plans/")


def test_paths_are_relative_to_a_root_of_the_tree(repo: Repo) -> None:
    """R7: wherever in the repository the guard is called."""
    repo.commit("docs/kb/a.md", "docs/kb/.agents/plans/p.md", "a.md")
    manifest = repo.manifest("a.md", "plans/p.md")
    assert repo.guard(manifest, "--root", "./docs/kb/").code == 0
    assert repo.guard(manifest, "--root", "docs/kb", "--repo", "docs").code == 0
    assert repo.guard(manifest, "--repo", "docs").found == [("ground-truth-missing", ".agents/plans/p.md")]
    missing = repo.guard(repo.manifest("b.md"), "--root", "docs/kb")
    assert missing.found == [("ground-truth-missing", "docs/kb/b.md")]
    for root in ("/docs", "../docs", "nowhere", "a.md"):
        assert repo.run(manifest, "--root", root).code == 2


def test_any_commit_can_be_looked_in(repo: Repo) -> None:
    """R7: a branch, a tag, a commit before; and a linked working tree has its own HEAD."""
    first = repo.commit("a.md")
    repo.git("tag", "-a", "-m", "m", "v1")
    (repo.path / "a.md").unlink()
    repo.commit("b.md")
    manifest = repo.manifest("a.md")
    assert repo.guard(manifest).code == 1
    for revision in (first, first[:10], "v1", "HEAD~1", "main~"):
        found = repo.guard(manifest, "--commit", revision)
        assert (found.code, found.verdict["commit"]) == (0, first)
    repo.git("worktree", "add", "-q", "../linked", "v1")
    assert repo.guard(manifest, "--repo", "../linked").code == 0


def test_a_bare_repository_will_do(repo: Repo, tmp_path: Path) -> None:
    """R7"""
    repo.commit("a.md")
    repo.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    assert repo.guard(repo.manifest("a.md", "b.md"), "--repo", tmp_path / "bare.git").found == [
        ("ground-truth-missing", "b.md")
    ]


def test_what_the_caller_has_set_up_has_no_say(repo: Repo, tmp_path: Path, make: type[Space]) -> None:
    """R7: within a hook git sets variables that name another index, repository or folder."""
    repo.commit("a.md")
    other = Repo(tmp_path / "other", make)
    other.commit("b.md")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_DIR", str(other.path / ".git"))
        patch.setenv("GIT_INDEX_FILE", str(tmp_path / "none"))
        patch.setenv("GIT_WORK_TREE", str(other.path))
        assert repo.guard(repo.manifest("a.md")).code == 0


@pytest.mark.parametrize(
    ("arguments", "word", "remedy"),
    [
        (["--commit", "nowhere"], "has no commit 'nowhere'  (not fetched?)", "git -C . fetch origin"),
        (["--commit", "0" * 40], "(not fetched?)", "fetch"),
        (["--commit", "HEAD:a.md"], "has no commit", "fetch"),
        (["--commit", "--all"], "has no commit '--all'", "fetch"),
        (["--repo", "../shallow", "--commit", "v1"], "(shallow clone?)", "fetch --unshallow origin"),
        (["--repo", "../unborn"], "has no commit yet", "commit"),
        (["--repo", "../broken"], "is not a sound git repository", ""),
        (["--repo", "../plain"], "is not a git repository", "--repo DIR"),
    ],
)
def test_no_repository_or_commit_is_exit_3(
    repo: Repo, tmp_path: Path, make: type[Space], arguments: list[str], word: str, remedy: str
) -> None:
    """R7: with the way out."""
    repo.commit("a.md")
    manifest = repo.manifest("a.md")
    Repo(tmp_path / "unborn", make)
    (tmp_path / "plain").mkdir()
    (tmp_path / "broken" / ".git").mkdir(parents=True)
    if "../shallow" in arguments:
        repo.git("tag", "v1")
        repo.commit("b.md")
        url = f"file://{repo.path}"
        repo.git("clone", "-q", "--depth=1", "--no-tags", url, str(tmp_path / "shallow"))
    done = repo.run(manifest, *arguments)
    assert (done.code, done.out) == (3, "")
    assert word in done.err
    assert remedy in done.err
    assert "reconstruct" not in done.err


def test_a_tree_that_was_altered_is_no_tree(repo: Repo) -> None:
    """R7: an object that does not have the content its id stands for is exit 3, not a pass."""
    repo.commit("docs/a.md")
    tree = repo.git("rev-parse", "HEAD:docs")
    store = repo.path / ".git" / "objects"
    assert repo.guard(repo.manifest("docs/a.md")).code == 0
    altered = repo.git("hash-object", "-w", "-t", "tree", "/dev/null")
    target = store / tree[:2] / tree[2:]
    target.chmod(0o644)
    shutil.copy(store / altered[:2] / altered[2:], target)
    done = repo.run("m.json")
    assert done.code == 3
    assert "does not have the content" in done.err


def test_a_partial_clone_without_contents_will_do(repo: Repo, tmp_path: Path) -> None:
    """R7: only trees are read; without them it is exit 3 with the way out, and nothing is fetched."""
    repo.commit("docs/a.md")
    repo.git("config", "uploadpack.allowFilter", "true")
    manifest = repo.manifest("docs/a.md")
    url = f"file://{repo.path}"
    for kind in ("blob:none", "tree:0"):
        repo.git("clone", "-q", "--bare", f"--filter={kind}", url, str(tmp_path / kind))
    assert repo.guard(manifest, "--repo", tmp_path / "blob:none").code == 0
    done = repo.run(manifest, "--repo", tmp_path / "tree:0")
    assert done.code == 3
    assert "(partial clone?)" in done.err
    assert "fetch --refetch --no-filter origin" in done.err


# ---------------------------------------------------------------- sets


OWN = '[[corpus.source]]\nname = "own"\ntype = "git"\npath = ".."\nbranch = "main"\n'


def test_documents_of_this_repository_are_looked_up(repo: Repo) -> None:
    """R7: an id is the prefix and the encoded path below the root; judged not relevant is not judged here."""
    repo.commit(*(f"src/{name}" for name in ODD))
    documents = [f"own/{encode_id(name)}" for name in ODD]
    judgements = [(f"q{number}", document, 1) for number, document in enumerate(documents)]
    judgements += [("q0", "own/gone.md", 0), ("q1", documents[0], 2)]
    folder = repo.set(judgements, OWN + 'root = "src"\n')
    found = repo.guard(folder)
    assert (found.code, found.verdict["checked"]) == (0, len(ODD))
    [looked] = found.verdict["inputs"]
    assert (looked["form"], looked["id"], looked["queries"]) == ("dataset", "things", len(ODD))

    repo.set([*judgements, ("q2", "own/gé%20one.md", 1)], OWN + 'root = "src"\n')
    gone = repo.guard(folder)
    assert gone.found == [("ground-truth-missing", "src/gé one.md")]
    assert gone.only["queries"] == ["q2"]


def test_round2_b15_a_pinned_source_is_looked_up_in_its_own_commit(repo: Repo) -> None:
    """B15: a judged file that was renamed since is still a file of the commit that its source pins."""
    pinned = repo.commit("docs/a.md")
    (repo.path / "docs" / "a.md").unlink()
    repo.commit("docs/b.md")
    source = OWN.replace('branch = "main"', f'commit = "{pinned}"')
    folder = repo.set([("q0", "own/docs/a.md", 1)], source)
    assert (repo.guard(folder).code, repo.guard(folder).verdict["checked"]) == (0, 1)
    repo.set([("q0", "own/docs/gone.md", 1)], source)
    assert repo.guard(folder).found == [("ground-truth-missing", "docs/gone.md")]
    repo.set([("q0", "own/docs/a.md", 1)], OWN)
    assert repo.guard(folder).found == [("ground-truth-missing", "docs/a.md")]


@pytest.mark.parametrize(("prefix", "document"), [("", "docs/a.md"), ("x/y", "x/y/docs/a.md")])
def test_a_prefix_is_taken_off(repo: Repo, prefix: str, document: str) -> None:
    repo.commit("docs/a.md")
    source = OWN + f'prefix = "{prefix}"\n'
    assert repo.guard(repo.set([("q", document, 1)], source)).code == 0
    assert repo.guard(repo.set([("q", f"{document}x", 1)], source)).found == [
        ("ground-truth-missing", "docs/a.mdx")
    ]


def test_documents_from_elsewhere_are_counted(repo: Repo, tmp_path: Path, make: type[Space]) -> None:
    """R7: inline ones, a wheel's and another repository's are no paths here; alone they are nothing to look at."""
    other = Repo(tmp_path / "other", make)
    other.commit("o.md")
    repo.commit("a.md")
    elsewhere = "".join(
        [
            '[[corpus.source]]\nname = "facts"\ntype = "inline"\n',
            '[[corpus.source]]\nname = "wheel"\ntype = "archive"\npackage = "x"\nversion = "1"\n',
            f'sha256 = "{"0" * 64}"\n',
            '[[corpus.source]]\nname = "other"\ntype = "git"\npath = "../../other"\nbranch = "main"\n',
            f'[[corpus.source]]\nname = "far"\ntype = "git"\nurl = "https://example.org/x"\ncommit = "{"0" * 40}"\n',
            '[[corpus.source]]\nname = "gone"\ntype = "git"\npath = "../../gone"\nbranch = "main"\n',
        ]
    )
    judged = [("q", name, 1) for name in ("f1", "own/f2", "wheel/x.py", "other/o.md", "far/x", "gone/x")]
    folder = repo.set([*judged, ("q", "own/a.md", 1)], elsewhere + OWN)
    lines = [{"_id": name, "text": "t"} for name in ("f1", "own/f2")]
    (repo.path / folder / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = repo.guard(folder)
    assert (found.code, found.verdict["checked"], found.verdict["inputs"][0]["elsewhere"]) == (0, 1, 6)

    repo.set(judged, elsewhere)
    vacuous = repo.guard(folder)
    assert (vacuous.code, vacuous.found) == (1, [("guard-vacuous", None)])
    assert vacuous.verdict["inputs"][0]["elsewhere"] == 6
    assert repo.guard(folder, repo.manifest("a.md")).code == 0


def test_sources_that_share_a_prefix_are_told_apart(repo: Repo) -> None:
    """R7: by their globs, then by which has the file; what another source could hold is not called missing."""
    repo.commit("docs/a.md", "src/b.py")

    def own(name: str, root: str, glob: str) -> str:
        return OWN.replace("own", name) + f'prefix = ""\nroot = "{root}"\ninclude = ["{glob}"]\n'

    both = own("docs", "docs", "**") + own("src", "src", "**")
    judged = [("q", "a.md", 1), ("q", "b.py", 1)]
    assert repo.guard(repo.set(judged, both)).verdict["checked"] == 2
    gone = [*judged, ("q", "c.py", 1)]
    apart = own("docs", "docs", "*.md") + own("src", "src", "*.py")
    assert repo.guard(repo.set(gone, apart)).found == [("ground-truth-missing", "src/c.py")]
    folder = '[[corpus.source]]\nname = "dir"\ntype = "dir"\npath = "x"\nprefix = ""\n'
    found = repo.guard(repo.set(gone, own("docs", "docs", "**") + folder))
    assert (found.code, found.verdict["checked"], found.verdict["inputs"][0]["elsewhere"]) == (0, 1, 2)


def test_the_longest_prefix_says_the_source(repo: Repo) -> None:
    """R7: a file of the same name below the other source's root does not stand in."""
    repo.commit("x/f.md", "x/b/g.md", "y/g.md")
    outer = OWN.replace("own", "outer") + 'prefix = "a"\nroot = "x"\n'
    inner = OWN.replace("own", "inner") + 'prefix = "a/b"\nroot = "y"\n'
    folder = repo.set([("q", "a/f.md", 1), ("q", "a/b/g.md", 1), ("q", "a/b/f.md", 1)], outer + inner)
    assert repo.guard(folder).found == [("ground-truth-missing", "y/f.md")]


def test_a_linked_working_tree_is_the_same_repository(repo: Repo) -> None:
    repo.commit("a.md")
    folder = repo.set([("q", "own/a.md", 1)], OWN)
    repo.git("worktree", "add", "-q", "../linked")
    assert repo.guard(folder, "--repo", "../linked").verdict["checked"] == 1


@pytest.mark.parametrize(
    ("row", "word"),
    [
        (
            "q\town/a%2Fb\t1",
            "test.tsv:2: judges document 'own/a%2Fb', an id that no file has; write it as 'own/a/b'",
        ),
        ("q\town/a.md", "expected 3 fields"),
        ("q\town/a.md\thigh", "grade 'high'"),
        ("q\town/a.md\t-0.5", "grade '-0.5'"),
    ],
)
def test_judgements_with_faults_are_wrong_input(repo: Repo, row: str, word: str) -> None:
    """R7: a row that cannot be read is never passed over."""
    repo.commit("a.md", "a/b")
    folder = repo.set([], OWN)
    (repo.path / folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{row}\n")
    done = repo.run(folder)
    assert (done.code, done.out) == (2, "")
    assert word in done.err


def test_every_split_counts(repo: Repo) -> None:
    repo.commit("a.md")
    folder = repo.set([("q", "own/a.md", 1)], OWN)
    (repo.path / folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq\town/b.md\t1\n")
    assert repo.guard(folder).found == [("ground-truth-missing", "b.md")]


def test_a_plain_folder_has_no_paths(repo: Repo) -> None:
    """R7: without a recipe nothing says that its documents are files."""
    repo.commit("a.md")
    folder = repo.set([("q", "a.md", 1)], "")
    (repo.path / folder / "dataset.toml").unlink()
    assert repo.guard(folder).found == [("guard-vacuous", None)]


# ---------------------------------------------------------------- calling it


ARM = '[arms."{0}"]\ndataset = "{1}"\nbackend = "bm25"\n'


def test_without_a_path_every_set_of_the_workspace_is_looked_at(repo: Repo) -> None:
    """R7: each once, however many arms measure it."""
    repo.commit("a.md")
    repo.set([("q", "own/a.md", 1)], OWN)
    repo.set([("q", "own/b.md", 1)], OWN, "more")
    (repo.path / "eval.toml").write_text(
        ARM.format("a", "set") + ARM.format("b", "set") + ARM.format("c", "more")
    )
    found = repo.guard()
    assert [looked["input"] for looked in found.verdict["inputs"]] == ["set", "more"]
    assert found.found == [("ground-truth-missing", "b.md")]
    (repo.path / "docs").mkdir()
    elsewhere = repo.guard("--config", "../notes/eval.toml")
    assert [looked["paths"] for looked in elsewhere.verdict["inputs"]] == [1, 1]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "nothing to look at"),
        (["nowhere.json"], "no such manifest"),
        (["docs"], "is neither a manifest nor a set"),
        (["set/dataset.toml"], "name a set by its folder: set"),
        (["a.md"], "not JSON"),
        (["bench.json"], "retrieval-bench"),
        (["m.json", "--repo", "nowhere"], "does not exist"),
        (["m.json", "--commit", ""], "--commit is empty"),
        (["m.json", "--format", "xml"], "xml"),
    ],
)
def test_wrong_usage_is_exit_2(repo: Repo, arguments: list[str], word: str) -> None:
    repo.commit("a.md", "docs/b.md")
    repo.manifest("a.md")
    repo.set([("q", "own/a.md", 1)], OWN)
    (repo.path / "bench.json").write_text('{"cases": [{"query": "ci", "expected": ["a.md"]}]}')
    done = repo.run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert word in done.err


def test_what_a_person_reads(repo: Repo) -> None:
    """R7: the answer and its counts first, the worst next, at last what to do."""
    commit = repo.commit("docs/a.md", "guide/setup.md")
    repo.write("new.md")
    manifest = repo.manifest("docs", "new.md", "docs/setup.md", "docs/a.md", "bad\x1b[31m\nname.md")
    done = repo.run(manifest)
    assert done.code == 1
    assert done.out == (
        f"FAIL  4 of 5 judged paths are not files of commit {commit[:7]} (HEAD)\n"
        "\n"
        " ground-truth-missing  docs/setup.md\n"
        "   is not in the commit\n"
        "   ground truth of q2\n"
        "   nearest: guide/setup.md\n"
        "\n"
        " ground-truth-missing  bad\\x1b[31m\\nname.md\n"
        "   is not in the commit\n"
        "   ground truth of q4\n"
        "\n"
        " ground-truth-missing  new.md\n"
        "   is not in the commit, though it lies in the working tree\n"
        "   ground truth of q1\n"
        "\n"
        " ground-truth-not-a-file  docs\n"
        "   is a folder in the commit; name the files of it that are meant\n"
        "   ground truth of q0\n"
        "\n"
        " input   form         queries  paths\n"
        " m.json  search-eval        5      5\n"
        "\n"
        "Next: commit what lies only in the working tree (git add)\n"
        "      put the file back, or name what took its place in a commit of its own\n"
    )
    passed = repo.run(repo.manifest("docs/a.md"), "--commit", commit[:9])
    assert passed.out.startswith(f"PASS  1 judged path, is a file of commit {commit[:7]}\n")
    assert "Next: nothing" in passed.out
    assert "guard-vacuous\n" in repo.run(repo.set([], OWN)).out
    many = repo.run(repo.manifest(*(f"{number}.md" for number in range(50))))
    assert "… 30 more; --format json lists all" in many.out


def test_one_path_wanted_by_many_queries_is_one_finding(repo: Repo) -> None:
    repo.commit("a.md")
    done = repo.guard(repo.manifest(*["b.md"] * 9))
    assert done.only["queries"] == [f"q{number}" for number in range(9)]
    assert "ground truth of q0, q1, q2, q3, q4 and 4 more" in repo.run("m.json").out


def test_it_reads_and_imports_little(repo: Repo) -> None:
    """R7, K3: no backend, no numpy, nothing of measuring; not a byte of the repository changes."""
    repo.commit("a.md")
    folder = repo.set([("q", "own/a.md", 1), ("q", "own/b.md", 1)], OWN)
    manifest = repo.manifest("a.md", "b.md")
    before = repo.space.tree()
    script = (
        "import os, sys\n"
        "sys.addaudithook(lambda event, _: os._exit(99) if event.startswith('socket.') else None)\n"
        "from eval_gate.cli import main\n"
        f"sys.argv = ['eval-gate', 'guard', {folder!r}, {manifest!r}]\n"
        "try: main()\n"
        "except SystemExit as done: print(done.code, *sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", script], cwd=repo.path, capture_output=True, text=True, check=True
    )
    code, *modules = done.stdout.splitlines()[-1].split()
    assert code == "1", done.stdout
    heavy = {"asyncio", "eval_backends", "numpy", "rank_bm25", "rich", "scipy", "ssl", "tomlkit"}
    assert heavy & {name.partition(".")[0] for name in modules} == set()
    assert {"eval_core.measuring.loop", "eval_core.measuring.plan", "eval_core.reports.report"} & set(
        modules
    ) == set()
    assert repo.space.tree() == before


# ---------------------------------------------------------------- published data and fuzz


def test_the_published_manifest(shared_data: Callable[[str], Path], repo: Repo) -> None:
    """R7: the manifest of agentops passes in a tree laid out as it names it, and fails once a truth is gone; its
    legacy array names learnings that its public tree does not hold."""
    home = "cli/cmd/ao/testdata/retrieval-bench"
    shutil.copytree(shared_data("agentops/retrieval-bench"), repo.path / home)
    repo.commit()
    manifest = f"{home}/search-eval-manifest.json"
    found = repo.guard(manifest)
    assert (found.code, found.verdict["checked"], found.verdict["inputs"][0]["queries"]) == (0, 2, 4)

    [truth] = (repo.path / home).rglob("*yagni*")
    truth.rename(repo.path / "moved.md")
    repo.commit()
    truth.write_text("back, and uncommitted")
    assert repo.guard(manifest).only["in_work_tree"] is True
    truth.unlink()
    gone = repo.guard(manifest).only
    assert (gone["queries"], gone["path"]) == (["q3", "q4"], truth.relative_to(repo.path).as_posix())

    legacy = repo.guard(f"{home}/eval-queries.json")
    assert (legacy.verdict["checked"], len(legacy.found), legacy.verdict["inputs"][0]["skipped"]) == (9, 9, 3)
    assert any(finding["nearest"] for finding in legacy.verdict["findings"])
    assert repo.run(f"{home}/benchmark.json").code == 2


def test_a_manifest_laid_out_like_a_published_one(repo: Repo) -> None:
    """R7: both forms over one tree, with what is published missing in neither."""
    repo.commit(".agents/learnings/one.md", "testdata/truth/2026 two.md")
    manifest = repo.manifest("learnings/one.md", "./testdata/truth/2026 two.md", ".agents/learnings/one.md")
    rows = [{"query": "a", "relevant": ["learnings/one.md"], "category": "x"}, {"query": "b", "relevant": []}]
    (repo.path / "legacy.json").write_text(json.dumps(rows))
    found = repo.guard(manifest, "legacy.json")
    assert (found.code, [looked["paths"] for looked in found.verdict["inputs"]]) == (0, [2, 1])


@pytest.fixture(scope="module")
def lasting(make: type[Space]) -> Iterator[Repo]:
    with tempfile.TemporaryDirectory() as folder:
        repo = Repo(Path(folder).resolve() / "notes", make)
        repo.commit("a", "d/b", "é", "plans/p")
        yield repo


NAMES = st.sampled_from(
    ["a", "d", "d/b", "./a", "é", "plans/p", "e\u0301", "..", "/a", "", "a/b", "d//b", "\n"]
)
ANY = st.none() | st.integers() | NAMES | st.text(max_size=5)
QUERIES = st.fixed_dictionaries(
    {
        "id": st.text(min_size=1, max_size=2),
        "query": st.just("x"),
        "ground_truth": st.lists(NAMES, max_size=3),
    },
    optional={"intent": ANY, "other": ANY},
)
MANIFESTS: st.SearchStrategy[Mapping[str, Any] | list[Any]] = st.one_of(
    st.fixed_dictionaries({"id": ANY, "queries": st.lists(QUERIES, max_size=4)}),
    st.lists(st.fixed_dictionaries({"query": ANY, "relevant": st.lists(NAMES, max_size=3)}), max_size=4),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(manifest=MANIFESTS | st.lists(st.tuples(NAMES.filter(bool), st.just(1)), min_size=1))
def test_any_manifest_gets_an_answer(lasting: Repo, manifest: Any) -> None:
    """R7: 0, 1 or 2, never a traceback; and 0 only where each path, asked of git itself, is a file."""
    if manifest and isinstance(manifest, list) and isinstance(manifest[0], tuple):
        manifest = [{"query": "x", "relevant": [name]} for name, _ in manifest]
    (lasting.path / "fuzz.json").write_text(json.dumps(manifest))
    done = lasting.run("fuzz.json", "--format", "json")
    assert done.code in (0, 1, 2)
    assert "internal error" not in done.err
    if done.code == 0:
        rows = manifest if isinstance(manifest, list) else manifest["queries"]
        paths = {path for row in rows for path in row.get("relevant", row.get("ground_truth"))}
        assert paths
        assert {os.path.normpath(path) for path in paths} <= {"a", "d/b", "é"}
