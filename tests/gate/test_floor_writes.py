"""What `floor` writes, all of it or none, and what it says where some arms are refused."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eval_core.errors import CouldNot
from eval_core.files import atomic, write_text
from eval_core.reports.report import read_report
from eval_gate.floors.write import write_all

if TYPE_CHECKING:
    from conftest import Space


class Cut:
    """Renames that count, of which one is not made: `fatal` raises in its place."""

    def __init__(self, fatal: int, error: type[BaseException] = KeyboardInterrupt) -> None:
        self.fatal, self.error, self.taken = fatal, error, list[Path]()
        self.replace = os.replace

    def __call__(self, source: Any, target: Any) -> None:
        self.taken.append(Path(target))
        if len(self.taken) == self.fatal:
            raise self.error
        self.replace(source, target)


@contextlib.contextmanager
def small_files(most: int) -> Iterator[None]:
    """No file can grow beyond so many bytes: what a full disk is like."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="session")
def measured_twice(gated: Path, make: type[Space], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = tmp_path_factory.mktemp("two") / "space"
    shutil.copytree(gated, root, ignore=shutil.ignore_patterns("policy", ".eval"))
    config = root / "eval.toml"
    config.write_text(config.read_text() + config.read_text().replace("notes", "other"))
    for _ in range(2):
        assert make(root).measure().code == 0
    return root


@pytest.fixture
def two(measured_twice: Path, make: type[Space], tmp_path: Path) -> Space:
    """Two arms that were measured twice, and no policy."""
    shutil.copytree(measured_twice, tmp_path / "two")
    return make(tmp_path / "two")


# All or none


@pytest.mark.parametrize("fatal", range(1, 5))
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_files_are_written_all_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fatal: int, error: type[BaseException]
) -> None:
    """A5: what stood is put back byte by byte, what is new is gone, and so are the folders made for it."""
    (tmp_path / "old.toml").write_bytes(b"old\r\n")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*")}
    names = ["new/deep/a.json", "new/b.json", "old.toml", "c.json"]
    files = {tmp_path / name: name.encode() for name in names}
    cut = Cut(fatal, error)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", cut)
        with pytest.raises(error):
            write_all(files)
    order = [path.relative_to(tmp_path).as_posix() for path in cut.taken]
    assert order[:fatal] == names[:fatal]  # the last of them is what makes the change count
    assert {path: path.read_bytes() for path in tmp_path.rglob("*")} == before
    write_all(files)
    assert {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()} == set(names)
    assert all((tmp_path / name).read_text() == name for name in names)


def test_what_says_so_already_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """K5: writing again is no change."""
    (tmp_path / "a").write_text("1")
    cut = Cut(0)
    monkeypatch.setattr(os, "replace", cut)
    write_all({tmp_path / "a": b"1", tmp_path / "b": b"2"})
    assert cut.taken == [tmp_path / "b"]


INTERRUPTED = """
import os, signal, sys
from pathlib import Path
from eval_gate.floors.write import write_all
replace = os.replace
def interrupted(source, target):
    os.kill(os.getpid(), signal.SIGINT)
    replace(source, target)
os.replace = interrupted
here = Path(sys.argv[1])
try:
    write_all({here / "a": b"1", here / "b": b"2"})
except KeyboardInterrupt:
    sys.exit(7)
"""


def test_an_interrupt_waits_for_the_change(tmp_path: Path) -> None:
    """K5: Ctrl-C between two names comes after the last of them. In a process of its own, whose first thread it is."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, str(tmp_path)], capture_output=True, timeout=60)
    assert done.returncode == 7, done.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"1", "b": b"2"}


def test_what_cannot_be_put_back_is_kept_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """K5: a disk that fails altogether loses nothing."""
    (tmp_path / "a").write_text("old")
    replace = os.replace
    taken = 0

    def failing(source: Any, target: Any) -> None:
        nonlocal taken
        taken += 1
        if taken > 1:
            raise PermissionError(13, "no longer")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", failing)
        with pytest.raises(CouldNot, match="cannot be put back") as caught:
            write_all({tmp_path / "a": b"new", tmp_path / "b": b"2"})
    (kept,) = tmp_path.glob(".a.*")
    assert kept.read_text() == "old"
    assert str(kept) in caught.value.message


def test_a_folder_in_the_place_of_a_file_is_no_fault_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(CouldNot, match="cannot be written"):
        write_all({tmp_path / "b": b"1", tmp_path / "a": b"2"})
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def cut_everywhere(space: Space, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> list[str]:
    """Break the verb off at each name that it gives, at which nothing may be left; then let it be. The names, in
    order."""
    before = space.tree()
    fatal = 1
    while True:
        cut = Cut(fatal)
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", cut)
            done = space.gate(*arguments)
        if len(cut.taken) < fatal:
            assert done.code == 0, done.err
            return [path.as_posix() for path in cut.taken]
        assert done.code == 3
        assert space.tree() == before, fatal
        fatal += 1


FILES = [
    "policy/evidence/notes.jsonl",
    "policy/evidence/other.jsonl",
    "policy/budgets.toml",
    "policy/floors.toml",
]
VERB = ("floor", "--p95-ms", "100000", "--reason", "p95_ms=a slow machine", "--write")


def test_evidence_budgets_and_floors_are_written_all_or_none(
    two: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K5, A4: broken off at any file nothing stays; what stood is put back, and not only what is new taken away."""
    before = two.tree()
    with small_files(1000):
        done = two.gate(*VERB)
    assert done.code == 3 and "cannot be written" in done.err
    assert two.tree() == before
    assert cut_everywhere(two, monkeypatch, *VERB) == FILES
    assert two.check().code == 0
    shutil.rmtree(two.root / ".eval")
    for _ in range(2):
        assert two.measure({}).code == 0
    names = cut_everywhere(two, monkeypatch, "floor", "--margin", "1", "--write")
    assert names == [name for name in FILES if "budgets" not in name]


def test_a_bar_that_is_cut_off_for_good_does_not_pass(
    two: Space, make: type[Space], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A4: a machine that stops between two names leaves the old state, or what is refused."""
    files: dict[Path, bytes] = {}
    monkeypatch.setattr("eval_gate.floors.write.write_all", files.update)
    assert two.gate(*VERB).code == 0
    passing = []
    for count in range(len(files) + 1):
        root = tmp_path / str(count)
        shutil.copytree(two.root, root)
        for name, content in list(files.items())[:count]:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content)
        if make(root).check().code == 0:
            passing.append(count)
    assert passing == [4]


# A write that dies where it stands, at the renaming of a file
DYING = """
import os, signal, sys
from eval_gate.cli import main
left, replace = int(sys.argv.pop(1)), os.replace
def dying(*names):
    global left
    left -= 1
    replace(*names) if left else os.kill(os.getpid(), signal.SIGKILL)
os.replace = dying
main()
"""


@pytest.mark.parametrize("fatal", [1, 2, 3, 4])
def test_round2_s10_the_next_write_sweeps_what_a_killed_one_left(two: Space, fatal: int) -> None:
    """S10: hidden files that `git add policy` would commit; whatever was written of it when it was killed."""
    assert two.gate(*VERB).code == 0
    verb = ("floor", "--p95-ms", "99999", "--margin", "1", "--reason", "p95_ms=a slower machine", "--write")
    shutil.rmtree(two.root / ".eval")
    for _ in range(2):
        assert two.measure({}).code == 0
    command = [sys.executable, "-c", DYING, str(fatal), *verb]
    done = subprocess.run(command, cwd=two.root, capture_output=True, check=False)
    assert done.returncode == -9, done.stderr
    hidden = [name for name in two.tree("policy") if "/." in name]
    assert {Path(name).suffix for name in hidden} == {".kept", ".tmp"}
    (two.root / "policy" / ".floors.toml.swp").touch()  # an editor's
    said = two.gate(*verb, *(() if fatal == 1 else ("--reason", "floors=it was broken off")))
    assert said.code == 0, said.err
    assert [name for name in two.tree("policy") if "/." in name] == ["policy/.floors.toml.swp"]


def test_round2_s10_what_a_living_writer_holds_is_not_swept(tmp_path: Path) -> None:
    """S10: two commands may write at once; each removes its own, and what nobody holds."""
    path, left = tmp_path / "a.toml", tmp_path / ".a.toml.abcdefgh.tmp"
    others = [tmp_path / name for name in (".a.toml.tmp", ".b.toml.abcdefgh.tmp", ".a.toml.abcdefgh.kept")]
    for file in (left, *others):
        file.touch()
    with atomic(path) as stream:
        stream.write(b"first")
        assert not left.exists()
        write_text(path, "second")
    assert path.read_bytes() == b"first"
    assert sorted(tmp_path.iterdir()) == sorted([path, *others])


# Every arm that is refused is named


@pytest.fixture
def one_short(two: Space) -> Space:
    """`other` has one run, and so no floor; `notes` has two."""
    newest = read_report(two.root / ".eval/reports/other.json").run_id
    for path in (two.root / ".eval" / "history" / "other").glob("*.json"):
        if json.loads(path.read_text())["run_id"] != newest:
            path.unlink()
    return two


def test_an_arm_that_is_refused_leaves_the_others_by_name(one_short: Space) -> None:
    """S5: refused whole, nothing written; the last line names the arms that can be floored."""
    before = one_short.tree()
    done = one_short.gate("floor", "--margin", "1", "--write")
    assert done.code == 1
    assert one_short.tree() == before
    assert "other: one run is a dated measurement" in done.err
    assert "eval-gate floor other --measure" in done.err
    assert "1 of 2 arms is refused; nothing was written." in done.err
    assert done.err.endswith("The others can be floored by name:  notes\n")
    assert one_short.gate("floor", "notes", "--margin", "1", "--write").code == 0


def test_every_arm_that_is_refused_is_named(one_short: Space) -> None:
    """S5: with its own mend each, in the order of the command; of one arm alone there is no count."""
    done = one_short.gate("floor", "other", "nothing", "notes")
    places = [
        done.err.index(text)
        for text in ("other: one run", "there is no arm 'nothing'", "2 of 3 arms are refused")
    ]
    assert (done.code, places) == (1, sorted(places))
    assert "of 1 arms" not in one_short.gate("floor", "other").err


def test_round2_s8_one_refusal_of_several_arms_is_one_block(two: Space) -> None:
    """S8: what is said of each in the same words is said once."""
    done = two.gate("floor", "--metric", "recal@1")
    assert (done.code, done.err.count("there is no measure 'recal@1'")) == (2, 1), done.err


@pytest.mark.parametrize("state", ["edited", "untracked", "before the first commit"])
def test_a_tree_that_carries_no_evidence_is_refused_before_it_is_measured(bare: Space, state: str) -> None:
    """Minutes of measuring were spent before a refusal that was certain."""
    bare.answer()
    if state == "before the first commit":
        bare.git("init", "-q")
    else:
        bare.commit()
        (bare.root / ("adapter.py" if state == "edited" else "four.py")).write_text("")
    done = bare.gate("floor", "--measure", "--write")
    assert (done.code, done.out) == (1, "")
    assert "the tree has uncommitted changes" in done.err and "run 1 of 2" not in done.err
    assert state == "before the first commit" or "four.py" in done.err or "adapter.py" in done.err
    assert not (bare.root / ".eval").exists()


# Runs of two commits


IMPORTING = """
from lib import answers, said
import json, sys
for line in sys.stdin:
    print(json.dumps({"ids": answers.get(json.loads(line)["query"], [])}), flush=True)
"""
LIB = 'import json\nanswers = json.load(open("answers.json", encoding="utf-8"))\nsaid = 1\n'


def one_more_line(*names: str) -> Callable[[Space], None]:
    def change(space: Space) -> None:
        for name in names:
            path = space.root / name
            path.parent.mkdir(exist_ok=True)
            path.write_text((path.read_text() if path.exists() else "") + "\n")

    return change


def from_an_unknown_commit(space: Space) -> None:
    copied = space.root / ".eval" / "a" / "reports" / "notes.json"
    space.forge(copied, lambda report: report["environment"].update(commit="5e1f" * 10))


@pytest.mark.parametrize(
    ("change", "files", "said"),
    [
        (lambda space: None, "", None),
        (one_more_line("tools/lib.py"), "", "beside its command differ: tools/lib.py. Where it imports"),
        (one_more_line("tools/lib.py"), '["tools/l*.py"]', "another system"),
        (
            one_more_line(*(f"tools/m{n}.py" for n in range(1, 8))),
            "",
            "differ: tools/m1.py, tools/m2.py, tools/m3.py, tools/m4.py, tools/m5.py and 2 more. Where",
        ),
        (one_more_line("README.md", "policy/notes.md"), "", None),
        (from_an_unknown_commit, "", "its runs are of commits 5e1f5e1 and "),
    ],
)
def test_round2_b5_what_a_command_may_import_is_named_where_it_differs(
    bare: Space, change: Callable[[Space], None], files: str, said: str | None
) -> None:
    """B5: two runs of other imports were taken as one system; where nothing names them, git tells that they differ."""
    (bare.root / "tools").mkdir()
    (bare.root / "tools" / "adapter.py").write_text(IMPORTING)
    (bare.root / "tools" / "lib.py").write_text(LIB)
    named = f'"tools/adapter.py"]\noptions.files = {files or "[]"}'
    bare.edit(bare.root / "eval.toml", '"adapter.py"]', named)
    places = []
    for name in ("a", "b"):
        bare.commit(name)
        done = bare.measure()
        assert done.code == 0, done.err
        places.append(bare.root / ".eval" / name)
        shutil.copytree(bare.root / ".eval" / "reports", places[-1] / "reports")
        if name == "a":
            change(bare)
    done = bare.gate("floor", "--from", *places, "--write")
    if said == "another system":
        assert (done.code, said in done.err) == (1, True)
        return
    assert (done.code, bare.floors.exists()) == (0, True), done.err
    lines = [line for line in done.out.splitlines() if line.startswith("notes: its runs")]
    assert (said is not None) == bool(lines)
    assert said is None or said in lines[0]
