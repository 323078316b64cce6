"""`eval-core derive code`: a set of drafts from doc comments and names of a commit, read from git's objects."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from core_support import Done, call
from derive_support import commit, content, drafts, git, judged, queries
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eval_core.authoring.derive.drafts import Draft, is_apart, merged, spread
from eval_core.authoring.derive.result import Drafted
from eval_core.cli import main
from eval_core.reconstruct import reconstruct
from eval_core.sets.dataset import load
from eval_core.sets.definition import Git, read_definition

READER = '''"""About reading."""

def read_lines(path):
    """Returns each line of a file without its end.

    More of it.
    """

class BoundedCache:
    """Forgets the entry that was used longest ago."""

    def close(self):
        """Writes what is held back to the disk."""

    def trim_entries(self):
        """Trim."""
'''

OTHER = """def close(): "Writes what is held back to the disk."
def _kept(): "Stays in here and is for nobody."
"""

STORE = """/** Waits until the lock file is gone. */
export function waitForLock(path) {}
"""

FILES: dict[str, str | bytes] = {
    "docs/guide.md": "# Guide\n",
    "src/broken.py": "def f(:\n",
    "src/other file.py": OTHER,
    "src/picture.bin": b"\0\1",
    "src/reader.py": READER,
    "src/store.ts": STORE,
}

#: Worked by hand: in order of path and line, of one line in order of source.
DRAFTS = [
    (
        "docstring",
        "Writes what is held back to the disk",
        ["lib/src/other%20file.py", "lib/src/reader.py"],
    ),
    ("docstring", "each line of a file without its end", ["lib/src/reader.py"]),
    ("identifier", "read_lines", ["lib/src/reader.py"]),
    ("docstring", "Forgets the entry that was used longest ago", ["lib/src/reader.py"]),
    ("identifier", "BoundedCache", ["lib/src/reader.py"]),
    ("identifier", "BoundedCache.trim_entries", ["lib/src/reader.py"]),
    ("docstring", "Waits until the lock file is gone", ["lib/src/store.ts"]),
    ("identifier", "waitForLock", ["lib/src/store.ts"]),
]


@pytest.fixture
def lib(tmp_path: Path) -> tuple[Path, str]:
    """A repository, and the commit of those files."""
    folder = tmp_path / "lib"
    return folder, commit(folder, FILES)


def derive(where: Path, *arguments: str | Path) -> Done:
    return call(main, "derive", "code", *arguments, where=where)


def derived(where: Path, sha: str, *arguments: str, out: str = "set") -> Path:
    """A drafted set of the repository `lib`."""
    done = derive(where, "--repo", "lib", "--commit", sha, "-o", out, *arguments)
    assert (done.code, done.err) == (0, ""), done
    return where / out


def test_doc_comments_and_names_become_queries(lib: tuple[Path, str], tmp_path: Path) -> None:
    folder = derived(tmp_path, lib[1])
    assert drafts(folder) == DRAFTS
    first, _, third = queries(folder)[:3]
    assert first == {
        "_id": "d0001",
        "text": "Writes what is held back to the disk",
        "metadata": {
            "category": "semantic",
            "source": "docstring",
            "origin": ["src/other file.py:1 close", "src/reader.py:12 BoundedCache.close"],
        },
    }
    assert third["metadata"] == {
        "category": "identifier",
        "source": "identifier",
        "origin": ["src/reader.py:3 read_lines"],
    }
    assert [query["_id"] for query in queries(folder)] == [f"d{number:04}" for number in range(1, 9)]
    assert sorted(content(folder)) == ["dataset.toml", "qrels/test.tsv", "queries.jsonl"]


def test_the_recipe_names_the_commit_and_the_way_from_the_set(lib: tuple[Path, str], tmp_path: Path) -> None:
    folder = derived(
        tmp_path, "main", "--root", "src", "--include", "**/*.py", "--exclude", "broken*", out="a/b"
    )
    definition = read_definition(folder)
    assert definition is not None and definition.corpus is not None
    assert (definition.name, definition.kind) == ("lib", "code")
    (source,) = definition.corpus.source
    assert source == Git(
        type="git",
        name="lib",
        path="../../lib",
        commit=lib[1],
        root="src",
        include=("**/*.py",),
        exclude=("broken*",),
    )
    assert drafts(folder)[1] == ("docstring", "each line of a file without its end", ["lib/reader.py"])
    assert queries(folder)[1]["metadata"]["origin"] == ["src/reader.py:3 read_lines"]


def test_the_set_is_reconstructed_and_loads_and_every_judged_path_is_in_the_commit(
    lib: tuple[Path, str], tmp_path: Path
) -> None:
    """A2: the truth is a file at a pinned commit, read from git objects, under the id that reconstructing gives."""
    folder = derived(tmp_path, lib[1])
    (lib[0] / "src").mkdir()
    (lib[0] / "src/reader.py").write_text("def dirty(): ...\n")
    done = call(main, "reconstruct", "set", where=tmp_path)
    assert done.code == 0, done.err
    dataset = load(folder, corpus=tmp_path / ".eval/corpora/lib/corpus.jsonl", keys=["path"])
    assert len(dataset.queries) == len(DRAFTS)
    tree = set(git(lib[0], "-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", lib[1]).splitlines())
    paths = {dataset.attributes[name]["path"] for names in judged(folder).values() for name in names}
    assert paths == {"lib/src/other file.py", "lib/src/reader.py", "lib/src/store.ts"}
    assert {path.removeprefix("lib/") for path in paths} <= tree


def test_neither_working_tree_nor_index_nor_later_commits_have_a_say(
    lib: tuple[Path, str], tmp_path: Path
) -> None:
    commit(lib[0], {"src/reader.py": "def later(): ...\n"})
    git(lib[0], "read-tree", "main")
    (lib[0] / "src").mkdir()
    (lib[0] / "src/reader.py").write_text("def dirty(): ...\n")
    assert drafts(derived(tmp_path, lib[1])) == DRAFTS


def test_a_name_of_a_commit_is_kept_as_its_full_id(lib: tuple[Path, str], tmp_path: Path) -> None:
    git(lib[0], "-c", "user.name=a", "-c", "user.email=a@example.org", "tag", "-a", "-m", "m", "v1", "main")
    for number, name in enumerate(["main", "HEAD", "v1", lib[1][:9], lib[1]]):
        derived(tmp_path, name, out=f"set{number}")
    assert len({json.dumps(sorted(map(str, content(tmp_path / f"set{n}").items()))) for n in range(5)}) == 1


NAMES = st.sampled_from(["alpha", "beta_two", "Gamma", "delta"])
DOCS = st.sampled_from(
    [
        "",
        "Holds one thing after another.",
        "Turns the wheel of the mill.",
        "Short.",
        "Ünïcode it is, all of it.",
    ]
)
BODIES = st.lists(st.tuples(NAMES, DOCS), max_size=4).map(
    lambda found: "".join(f"def {name}():\n    '''{doc}'''\n" for name, doc in found)
)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bodies=st.lists(BODIES, min_size=1, max_size=5), limit=st.sampled_from([None, 1, 3]))
def test_deriving_twice_gives_the_same_bytes(
    bodies: list[str], limit: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """And whatever is written loads, with every draft judged and none said of more than three documents."""
    where = tmp_path_factory.mktemp("derive")
    sha = commit(where / "lib", {f"m{number}.py": body for number, body in enumerate(bodies)} | {"x.md": ""})
    options = ["--limit", str(limit)] if limit else []
    done = [
        derive(where, "--repo", "lib", "--commit", sha, "-o", out, "--format", "json", *options)
        for out in ("one", "two")
    ]
    assert {one.code for one in done} in ({0}, {1})
    if done[0].code == 1:
        assert not (where / "one").exists()
        return
    assert content(where / "one") == content(where / "two")
    definition = read_definition(where / "one")
    assert definition is not None
    reconstruct(where / "one", definition, where / "corpus", cache=where / "cache")
    dataset = load(where / "one", corpus=where / "corpus/corpus.jsonl")
    assert {len(grades) for grades in dataset.judgements.values()} <= {1, 2, 3}
    assert limit is None or len(dataset.queries) <= limit


# ------------------------------------------------------------- what is left out


def test_what_is_said_of_more_than_three_files_is_dropped(tmp_path: Path) -> None:
    same = 'def {}(): "Turns the wheel of the mill."\n'
    sha = commit(
        tmp_path / "lib",
        {f"a{n}.py": same.format(f"turn_{n}") for n in range(3)}
        | {f"b{n}.py": 'def halt(): "Stops the wheel at once, now."\n' for n in range(4)},
    )
    folder = derived(tmp_path, sha)
    found = [(text, names) for source, text, names in drafts(folder) if source == "docstring"]
    assert found == [("Turns the wheel of the mill", ["lib/a0.py", "lib/a1.py", "lib/a2.py"])]
    assert "halt" not in {text for _, text, _ in drafts(folder)}, "its name stands in four files"


def test_a_name_that_another_file_defines_in_private_is_ambiguous_too(tmp_path: Path) -> None:
    sha = commit(
        tmp_path / "lib",
        {
            "a.py": "def turn_wheel(): ...\ndef only_here(): ...\n",
            "b.py": "class _Mill:\n    def turn_wheel(self): ...\n",
        },
    )
    assert drafts(derived(tmp_path, sha)) == [("identifier", "only_here", ["lib/a.py"])]


def test_a_declaration_is_documented_and_the_definition_is_looked_up(tmp_path: Path) -> None:
    sha = commit(
        tmp_path / "lib",
        {
            "net.h": "/** Sends all bytes of the buffer. */\nint send_all(int fd);\n",
            "net.c": "int send_all(int fd) { return 0; }\n",
        },
    )
    assert drafts(derived(tmp_path, sha)) == [
        ("identifier", "send_all", ["lib/net.c"]),
        ("docstring", "Sends all bytes of the buffer", ["lib/net.h"]),
    ]


@pytest.mark.parametrize(
    "files",
    [
        {"a.md": "# Only words\n"},
        {"a.py": "x = 1\n"},
        {"a.py": "def f(:\n"},
        {"a.py": "def _f():\n    '''Stays in here for nobody.'''\n"},
        {"a.py": "def same(): ...\n", "b.py": "def same(): ...\n"},
    ],
)
def test_no_draft_at_all_is_an_error_and_nothing_is_written(
    files: dict[str, str | bytes], tmp_path: Path
) -> None:
    sha = commit(tmp_path / "lib", files)
    done = derive(tmp_path, "--repo", "lib", "--commit", sha, "-o", "set")
    assert (done.code, done.out) == (1, "")
    assert "nothing to draft from" in done.err
    assert os.listdir(tmp_path) == ["lib"]


# ------------------------------------------------------------- the limit


def test_a_limit_is_spread_evenly_and_each_source_has_its_share(tmp_path: Path) -> None:
    """Doc comment and name of one function alternate: every second draft of all would be of one source alone."""
    text = "".join(f'def walk_{n}(): "Walks the {n}th mile of the way."\n' for n in range(40))
    sha = commit(tmp_path / "lib", {"a.py": text, "b.py": ""})
    folder = derived(tmp_path, sha, "--limit", "20")
    found = drafts(folder)
    assert len(found) == 20
    semantic = [int(text.split()[2][:-2]) for source, text, _ in found if source == "docstring"]
    names = [int(text.split("_")[1]) for source, text, _ in found if source == "identifier"]
    assert semantic == list(range(0, 40, 4))
    assert names == [0, 4, 8, 12, 16, 20, 24, 28, 32, 36]
    assert [query["_id"] for query in queries(folder)] == [f"d{n:04}" for n in range(1, 21)]


def some(source: str, text: str, document: str = "d") -> Draft:
    return Draft(text, source, source, (document,), ())


@given(st.lists(st.sampled_from("abc"), max_size=30), st.integers(1, 35))
def test_a_limit_takes_so_many_in_order_and_each_source_within_one_of_its_share(
    sources: list[str], limit: int
) -> None:
    given_ = [some(source, str(number)) for number, source in enumerate(sources)]
    taken = spread(given_, limit)
    assert len(taken) == min(limit, len(given_))
    places = [int(one.text) for one in taken]
    assert places == sorted(set(places))
    for source in set(sources):
        share = min(1.0, limit / len(sources)) * sources.count(source)
        assert abs(sum(one.source == source for one in taken) - share) < 1
    assert spread(given_, None) == given_


def test_merging_goes_by_words_and_source_and_keeps_what_is_excluded_out_of_the_truth() -> None:
    first = Draft("Turns it.", "link", "link", ("a",), (), ("b", "c"))
    second = Draft("turns  IT", "link", "link", ("b",), (), ("a",))
    other = Draft("Turns it", "heading", "heading", ("z",), ())
    assert merged([first, second, other]) == (
        [Draft("Turns it.", "link", "link", ("a", "b"), (), ("c",)), other],
        0,
    )


# ------------------------------------------------------------- what is printed


def test_the_answer_counts_and_says_that_drafts_are_no_questions_yet(
    lib: tuple[Path, str], tmp_path: Path
) -> None:
    done = derive(tmp_path, "--repo", "lib", "--commit", lib[1], "-o", "my set")
    lines = done.out.splitlines()
    assert lines[0] == f"derive  lib   5 documents at {lib[1][:7]}   8 drafts: 4 docstring, 4 identifier"
    assert lines[1] == " left out  1 too short, 2 names that stand in several files"
    assert lines[2] == " skipped   1 file not parsed: src/broken.py"
    assert any("d0001" in line and "Writes what is held back to the disk" in line for line in lines)
    assert "any matching of\nwords finds it" in done.out
    for command in ("reconstruct", "validate", "inspect", "query add"):
        assert f"  eval-core {command} 'my set'" in done.out
    assert max(map(len, lines)) <= 100


def test_the_commands_that_are_said_to_come_next_work(lib: tuple[Path, str], tmp_path: Path) -> None:
    (tmp_path / "asked.jsonl").write_text('{"text": "is the lock free", "relevant": ["lib/src/store.ts"]}\n')
    done = derive(tmp_path, "--repo", "lib", "--commit", lib[1], "-o", "set")
    said = [line.split("  ")[1] for line in done.out.splitlines() if line.startswith("  eval-core")]
    assert len(said) == 4
    for command in said:
        script, *arguments = command.replace("FILE", "asked.jsonl").split()
        done = call(main, *arguments, where=tmp_path)
        assert (script, done.code) == ("eval-core", 0), done
    assert len(queries(tmp_path / "set")) == len(DRAFTS) + 1
    assert re.fullmatch("d[0-9][0-9a-f]{5}", queries(tmp_path / "set")[-1]["_id"])
    assert queries(tmp_path / "set")[-1]["text"] == "is the lock free"


def test_json_is_the_contract(lib: tuple[Path, str], tmp_path: Path) -> None:
    done = derive(
        tmp_path, "--repo", "lib", "--commit", lib[1], "-o", "set", "--format", "json", "--limit", "3"
    )
    found = Drafted.model_validate_json(done.out)
    assert (found.name, found.folder, found.commit) == ("lib", "set", lib[1])
    assert (found.documents, found.queries, found.found) == (5, 3, 8)
    assert found.sources == {"docstring": 2, "identifier": 1}
    assert found.dropped == {"short": 1, "generic": 0, "cut": 0, "apart": 0, "many": 0, "ambiguous": 2}
    assert found.unparsed == ("src/broken.py",)
    assert [one.id for one in found.samples] == ["d0001", "d0002", "d0003"]


# ------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--repo", "gone", "--commit", "main"], 3, "'gone' does not exist\n  give its place: --repo PATH"),
        (
            ["--repo", ".", "--commit", "main"],
            3,
            "'.' is not a git repository\n  give its place: --repo PATH",
        ),
        (
            ["--repo", "lib", "--commit", "gone"],
            3,
            "lib: there is no commit 'gone'\n  git -C lib log --oneline",
        ),
        (["--repo", "lib", "--commit", "1" * 40], 3, "has no commit 1111111…  (not fetched?)"),
        (
            ["--repo", "lib", "--commit", "main", "--name", "My Set"],
            2,
            "--name = 'My Set': a name consists of lower-case",
        ),
        (["--repo", "lib", "--commit", "main", "--include", "/a"], 2, "the glob '/a' begins with a slash"),
        (
            ["--repo", "lib", "--commit", "main", "--include", "*.x"],
            2,
            "include ['*.x'] matched none of 6 files",
        ),
        (["--repo", "lib", "--commit", "main", "--root", "../x"], 2, "root '../x' is not a plain path"),
        (["--repo", "lib", "--commit", "main", "--limit", "0"], 2, "0 is not in the range"),
    ],
)
def test_what_cannot_be_is_refused(
    arguments: list[str], code: int, told: str, lib: tuple[Path, str], tmp_path: Path
) -> None:
    done = derive(tmp_path, *arguments, "-o", "set")
    assert (done.code, done.out) == (code, "")
    assert told in done.err
    assert os.listdir(tmp_path) == ["lib"]


def test_nothing_that_is_there_is_replaced(lib: tuple[Path, str], tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/note.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for out, why in (("full", "is not empty"), ("file", "is a file"), (".", "is not empty")):
        done = derive(tmp_path, "--repo", "lib", "--commit", lib[1], "-o", out)
        assert done.code == 2
        assert f"{out}: {why}" in done.err
    (tmp_path / "empty").mkdir()
    done = derive(tmp_path / "empty", "--repo", "../lib", "--commit", lib[1], "-o", ".")
    assert (done.code, "is the current folder" in done.err) == (2, True)
    assert drafts(derived(tmp_path, lib[1], out="empty")) == DRAFTS
    assert (tmp_path / "full/note.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["rename", "rmdir"])
def test_a_set_is_written_whole_or_not_at_all(
    name: str, lib: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "set").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(Path, name, fails)
        done = derive(tmp_path, "--repo", "lib", "--commit", lib[1], "-o", "set")
    assert done.code == 3
    assert "cannot be written: No space left on device" in done.err
    assert [path for path in os.listdir(tmp_path) if path not in ("lib", "set")] == []
    assert not (tmp_path / "set").exists() or os.listdir(tmp_path / "set") == []


def test_a_link_to_a_folder_is_followed_once(lib: tuple[Path, str], tmp_path: Path) -> None:
    """The recipe's way to the repository is the one from where the set really lies."""
    (tmp_path / "far/away").mkdir(parents=True)
    (tmp_path / "near").symlink_to(tmp_path / "far/away", target_is_directory=True)
    folder = derived(tmp_path, lib[1], out="near/set")
    definition = read_definition(folder)
    assert definition is not None and definition.corpus is not None
    (source,) = definition.corpus.source
    assert isinstance(source, Git) and source.path == "../../../lib"
    assert call(main, "reconstruct", "near/set", where=tmp_path).code == 0


@pytest.mark.parametrize(
    ("path", "apart"),
    [
        ("tests/core/test_x.py", True),
        ("src/conftest.py", True),
        ("pkg/store_test.go", True),
        ("web/list.spec.ts", True),
        ("web/__tests__/list.ts", True),
        ("java/StoreTest.java", True),
        ("unit-tests/a.py", True),
        ("docs/CHANGELOG.md", True),
        ("HISTORY.md", True),
        ("src/Store.Tests/Disk.cs", True),
        ("spec/store.rb", True),
        ("tests/notes/list.md", True),
        ("docs/release-notes/4.md", True),
        ("docs/changes/4.md", True),
        ("src/doctest.py", False),
        ("src/latest.py", False),
        ("src/contest/rank.py", False),
        ("docs/testing-conventions.md", False),
        ("docs/testing/unit.md", False),
        ("docs/specs/format.md", False),
        ("commands/npm-test.md", False),
        ("src/history.py", False),
        ("src/changes/apply.go", False),
        ("docs/history-of-the-lock.md", False),
    ],
)
def test_round2_d1_nothing_is_drafted_from_tests_and_change_logs(path: str, apart: bool) -> None:
    """D1: half of all drafts said what was tested, or what changed once."""
    assert is_apart(path) == apart


def test_round2_d1_a_test_is_left_out_and_stays_a_document(tmp_path: Path) -> None:
    """D1: its names count as written there, and it is in the corpus."""
    doc = '"""Turn the signing key every quarter."""\n'
    files = {"keys.py": f"def turn():\n    {doc}", "tests/test_keys.py": f"def test_it():\n    {doc}"}
    sha = commit(tmp_path / "lib", files)
    assert derive(tmp_path, "--repo", "lib", "--commit", sha, "-o", "set").code == 0
    assert {name for names in judged(tmp_path / "set").values() for name in names} == {"lib/keys.py"}


@pytest.mark.parametrize(
    "options", [("--include", "tests/**"), ("--include", "**/test_*.py"), ("--root", "tests")]
)
def test_round2_d1_tests_that_are_asked_for_are_drafted_from(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """D1: a glob or a root that names them says that they are meant."""
    doc = '"""Turn the signing key every quarter."""\n'
    sha = commit(tmp_path / "lib", {"tests/test_keys.py": f"def turn_it():\n    {doc}"})
    assert derive(tmp_path, "--repo", "lib", "--commit", sha, "-o", "set", *options).code == 0
    assert [text for _, text, _ in drafts(tmp_path / "set")] == [
        "Turn the signing key every quarter",
        "turn_it",
    ]
    assert derive(tmp_path, "--repo", "lib", "--commit", sha, "-o", "other", "--include", "**/*.py").code == 1
