"""What `floor` and `baseline` write: all of it or none, every arm told, and no lower bar without a word."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eval_core.errors import CouldNot
from eval_core.reports import provenance
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


@pytest.fixture
def floored(two: Space) -> Space:
    """The same with floors, and no baseline."""
    assert two.gate("floor", "--write").code == 0
    return two


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


def test_floors_and_evidence_are_written_all_or_none(two: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """K5: broken off at any file, no copy of any arm stays, which the gate would take for deleted floors."""
    before = two.tree()
    with small_files(1000):
        done = two.gate("floor", "--write")
    assert done.code == 3 and "cannot be written" in done.err
    assert two.tree() == before
    names = cut_everywhere(two, monkeypatch, "floor", "--write")
    copies = [f"policy/evidence/{arm}/" for arm in ("notes", "notes", "other", "other")]
    assert [name.rpartition("/")[0] + "/" for name in names[:4]] == copies
    assert names[4:] == ["policy/budgets.toml", "policy/floors.toml"]


def test_floors_that_stand_are_put_back(floored: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """K5: and not only what is new is taken away."""
    assert floored.measure().code == 0
    names = cut_everywhere(floored, monkeypatch, "floor", "--write")
    assert len(names) == 3 and names[-1] == "policy/floors.toml"


def test_baselines_sidecars_and_budgets_are_written_all_or_none(
    floored: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A4: broken off at any file, no arm has a baseline without its sidecar, or without the budget asked for."""
    verb = ("baseline", "--p95-ms", "100000", "--write")
    before = floored.tree()
    with small_files(1000):
        done = floored.gate(*verb)
    assert done.code == 3 and "cannot be written" in done.err
    assert floored.tree() == before
    names = cut_everywhere(floored, monkeypatch, *verb)
    folder = "policy/baselines/"
    assert names == ["policy/budgets.toml"] + [
        f"{folder}{arm}.{end}" for arm in ("notes", "other") for end in ("intoto.jsonl", "json")
    ]
    for arm in ("notes", "other"):
        path = floored.root / folder / f"{arm}.json"
        raw = path.read_bytes()
        assert raw in [copy.read_bytes() for copy in floored.copies(arm)]
        assert provenance.check(read_report(path), raw, provenance.sidecar(path)) == []
    assert floored.check().code == 0


@pytest.mark.parametrize(
    ("verb", "passing"),
    [
        # There is no baseline yet, so nothing passes, with the floors or without.
        (("floor", "--write"), []),
        (("baseline", "--p95-ms", "100000", "--write"), [5]),
    ],
)
def test_a_first_bar_that_is_cut_off_for_good_is_refused(
    two: Space,
    make: type[Space],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    verb: tuple[str, ...],
    passing: list[int],
) -> None:
    """A4: a machine that stops between two names leaves what does not pass: above all no baseline without budget."""
    if verb[0] == "baseline":
        assert two.gate("floor", "--write").code == 0
    files: dict[Path, bytes] = {}
    monkeypatch.setattr("eval_gate.floors.write.write_all", files.update)
    assert two.gate(*verb).code == 0
    found = []
    for count in range(len(files) + 1):
        root = tmp_path / str(count)
        shutil.copytree(two.root, root)
        for name, content in list(files.items())[:count]:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content)
        if make(root).check().code == 0:
            found.append(count)
    assert found == passing


def test_floors_that_are_moved_and_cut_off_leave_the_old_bar(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K5: copies that no floors cite change no verdict."""
    assert space.measure().code == 0
    files: dict[Path, bytes] = {}
    monkeypatch.setattr("eval_gate.floors.write.write_all", files.update)
    assert space.gate("floor", "--write").code == 0
    before = space.check().verdict
    for name, content in list(files.items())[:-1]:
        (space.root / name).write_bytes(content)
        assert space.check().verdict == before
    assert [name.name for name in files][-1] == "floors.toml"


# Every arm is told


@pytest.fixture
def one_short(two: Space) -> Space:
    """`other` has one run, and so no floor; `notes` has two."""
    for path in (two.root / ".eval" / "history" / "other").glob("*.json"):
        if (
            json.loads(path.read_text())["run_id"]
            != read_report(two.root / ".eval/reports/other.json").run_id
        ):
            path.unlink()
    return two


def test_an_arm_that_is_refused_leaves_a_command_for_the_others(one_short: Space) -> None:
    """S5: refused whole, nothing written, and the last line is what floors the rest, with the options given."""
    before = one_short.tree()
    done = one_short.gate("floor", "--margin", "1", "--metric", "hit@1", "--policy", "policy", "--write")
    assert done.code == 1
    assert one_short.tree() == before
    lines = done.err.splitlines()
    assert "other: 1 run is no floor" in lines[0]
    assert lines[1].strip() == "Measure in another run, then try again:  eval-core measure other"
    assert lines[2] == "1 of 2 arms is refused; nothing was written."
    said, _, command = lines[3].partition(":  ")
    assert said.strip() == "The others can be floored"
    assert command == "eval-gate floor notes --policy policy --metric hit@1 --margin 1 --write"
    assert one_short.gate(*shlex.split(command)[1:]).code == 0
    arms = tomllib.loads(one_short.floors.read_text())["arms"]
    assert {name: (arm["margin"], list(arm["metrics"])) for name, arm in arms.items()} == {
        "notes": (1, ["hit@1"])
    }


def test_every_arm_that_is_refused_is_told(one_short: Space) -> None:
    """S5: with its own remedy each, in the order asked; the exit code is the first one's."""
    done = one_short.gate("floor", "other", "nothing", "notes")
    assert done.code == 1
    told = ["1 run is no floor", "nothing.json: no such report", "2 of 3 arms are refused"]
    places = [done.err.index(text) for text in told]
    assert places == sorted(places)
    assert done.err.count("eval-core measure other") == done.err.count("eval-core measure nothing") == 1
    assert done.err.endswith("The others can be floored:  eval-gate floor notes --write\n")
    alone = one_short.gate("floor", "other", "nothing")
    assert "2 of 2 arms are refused" in alone.err and "The others" not in alone.err


def test_one_arm_that_is_refused_is_told_as_ever(one_short: Space) -> None:
    """S5: no count, and no others."""
    done = one_short.gate("floor", "other")
    assert done.code == 1
    assert "of 1 arms" not in done.err and "The others" not in done.err


def test_a_measure_that_there_is_not_is_told_once(two: Space) -> None:
    """S5: it is wrong usage, and no fault of each arm."""
    done = two.gate("floor", "--metric", "recal@1")
    assert (done.code, done.err.count("no such measure")) == (2, 1)


# A lower bar needs a word


def without_table(space: Space) -> None:
    """Take the arm out of the floors by hand."""
    text = space.floors.read_text()
    space.floors.write_text(text[: text.index("[arms.notes]")])


def no_baseline(space: Space) -> None:
    shutil.rmtree(space.baseline.parent)


def no_evidence(space: Space) -> None:
    shutil.rmtree(space.root / "policy" / "evidence")


def nothing(space: Space) -> None:
    """Take nothing more away."""


def no_floors_file(space: Space) -> None:
    space.floors.unlink()


@pytest.mark.parametrize("more", [nothing, no_baseline, no_evidence, no_floors_file])
def test_floors_that_were_deleted_are_made_anew_only_with_a_reason(
    space: Space, more: Callable[[Space], None]
) -> None:
    """K5: or deleting the table would be the way to a lower bar without a word."""
    for _ in range(2):
        assert space.measure({"q01": None, "q27": 2}).code == 0
    worse = space.evidence()[-4:]
    assert "would fall" in space.gate("floor", "notes", *worse, "--write").err
    without_table(space)
    more(space)
    before = space.tree()
    done = space.gate("floor", "notes", *worse, "--write")
    assert done.code == 1
    assert "policy/floors.toml has no floors for it, and policy/" in done.err and "were deleted" in done.err
    assert space.tree() == before
    assert space.gate("floor", "notes", *worse, "--write", "--reason", "q01 is disputed").code == 0
    assert tomllib.loads(space.floors.read_text())["arms"]["notes"]["reason"] == "q01 is disputed"


def test_an_arm_that_never_had_floors_needs_no_reason(space: Space) -> None:
    """K5: nor has the plain form, which is no bar of this gate, anything to do with floors.toml."""
    without_table(space)
    assert space.gate("floor", "notes", "--form", "plain").code == 0
    no_baseline(space)
    no_evidence(space)
    assert space.gate("floor", "notes", "--write").code == 0


@pytest.mark.parametrize("reason", ["", "  ", "\u200b", "\u00a0\u2060", "-", "…"])
def test_a_reason_says_something(space: Space, reason: str) -> None:
    """K5: what nobody can read is no reason."""
    before = space.tree()
    done = space.gate("floor", "notes", "--track", "--write", "--reason", reason)
    assert (done.code, "says nothing" in done.err) == (2, True), done.err
    assert space.tree() == before


@pytest.mark.parametrize("reason", ["q01", "7", "é", "理由"])
def test_a_reason_of_any_script_is_one(space: Space, reason: str) -> None:
    assert space.gate("floor", "notes", "--track", "--write", "--reason", reason).code == 0
    assert tomllib.loads(space.floors.read_text())["arms"]["notes"]["reason"] == reason
