"""`eval-core reconstruct`: a line a set, what moves and what was skipped; or the locks as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from eval_core.cli.reconstruct import lock_line, reconstruct
from eval_core.errors import CouldNot, EvalError, Misuse
from eval_core.reconstruct import Lock
from eval_core.reconstruct.lock import LockedSource


def run(*arguments: str) -> Result:
    return CliRunner().invoke(reconstruct, list(arguments), prog_name="eval-core reconstruct")


def failed(*arguments: str) -> EvalError:
    result = run(*arguments)
    assert isinstance(result.exception, EvalError), result.output
    return result.exception


def dataset(folder: Path, recipe: str = "", documents: int = 2, name: str = "") -> Path:
    folder.mkdir(parents=True)
    lines = (json.dumps({"_id": f"d{number}", "text": "t"}) for number in range(documents))
    (folder / "corpus.jsonl").write_text("\n".join(lines))
    if recipe:
        (folder / "dataset.toml").write_text(f'name = "{name or folder.name}"\n{recipe}')
    return folder


INLINE = '[[corpus.source]]\nname = "own"\ntype = "inline"\n'
NOTES = '[[corpus.source]]\nname = "notes"\ntype = "dir"\npath = "notes"\nmax_bytes = 100\n'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_line_a_set_in_columns(here: Path) -> None:
    dataset(here / "sets/memory", INLINE, 50)
    dataset(here / "sets/kb", NOTES, 1)
    notes = here / "sets/kb/notes"
    notes.mkdir()
    for number in range(1234):
        (notes / f"{number}.md").write_text("t")
    (notes / "zero.bin").write_bytes(b"\0")
    (notes / "link").symlink_to("0.md")
    (notes / "big").write_text("x" * 1500)

    result = run("sets/memory", "sets/kb")

    assert result.exit_code == 0, result.output
    assert re.sub("[0-9a-f]{12}…", "SHA", result.stdout).splitlines() == [
        "reconstruct  memory       50 documents   inline                     sha256 SHA",
        "reconstruct  kb        1,234 documents   1 folder, unpinned         sha256 SHA",
        "  unpinned  notes: notes as it is now",
        "  skipped   notes: 1 symlink, 1 binary, 1 too large",
        "            big  1,500 bytes",
    ]
    assert max(map(len, result.stdout.splitlines())) <= 100
    for name in ("memory", "kb"):
        digest = json.loads((here / f".eval/corpora/{name}/lock.json").read_text())["digest"]
        assert f"sha256 {digest[:12]}…" in result.stdout
        assert (here / f".eval/corpora/{name}/corpus.jsonl").exists()


def test_json_is_the_list_of_locks(here: Path) -> None:
    dataset(here / "one", INLINE)
    dataset(here / "two")
    result = run("one", "two", "--format", "json", "--out", "made")
    one, two = json.loads(result.stdout)
    assert one == json.loads((here / "made/one/lock.json").read_text())
    assert (two["dataset"], two["documents"], two["recipe"]) == ("two", 2, "none")
    assert not (here / "made/two").exists()


@pytest.mark.parametrize("toml", ["", "version = '2'\n"])
def test_a_plain_set_is_taken_as_it_is_on_disk(here: Path, toml: str) -> None:
    dataset(here / "beir", toml)
    result = run("beir")
    assert re.fullmatch(
        r"reconstruct  beir        2 documents   as it is on disk           sha256 [0-9a-f]{12}…\n",
        result.stdout,
    )
    assert not (here / ".eval").exists()
    (here / "beir/corpus.jsonl").unlink()
    assert failed("beir").exit_code == 3


def test_without_arguments_all_sets_of_the_arms_are_built_once(here: Path) -> None:
    dataset(here / "w/sets/a", INLINE)
    dataset(here / "w/sets/b", INLINE)
    dataset(here / "w/sets/c", INLINE)
    arms = [("b1", "sets/b"), ("a1", "sets/a"), ("b2", "sets/b")]
    (here / "w/eval.toml").write_text(
        "".join(f'[arms."{name}"]\ndataset = "{path}"\nbackend = "bm25"\n' for name, path in arms)
    )
    result = run("--config", "w/eval.toml")
    assert result.exit_code == 0, result.output
    assert [line.split()[1] for line in result.stdout.splitlines()] == ["b", "a"]
    assert (here / "w/.eval/corpora/a/lock.json").exists()
    assert failed().code == "config-missing"


@pytest.mark.parametrize("out", [".", "kb/built", "link", "policy", "policy/evidence", ".git"])
def test_round2_s10_a_corpus_is_not_built_into_the_set_that_it_is_built_from(here: Path, out: str) -> None:
    """S10: `--out .` would put the set `kb` over its own folder, and the corpus over its inline documents."""
    dataset(here / "kb", INLINE)
    (here / "link").symlink_to(here)
    (here / "policy").mkdir()
    before = (here / "kb/corpus.jsonl").read_bytes()
    error = failed("kb", "--out", out)
    assert (error.code, error.exit_code) == ("output-is-input", 2)
    assert (here / "kb/corpus.jsonl").read_bytes() == before
    assert sorted(path.name for path in (here / "kb").iterdir()) == ["corpus.jsonl", "dataset.toml"]


def test_an_override_by_hand_or_by_the_environment(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """K4: an override replaces the configured location; a configured but absent source raises."""
    dataset(here / "kb", NOTES)
    dataset(here / "other", INLINE)
    error = failed("kb")
    assert isinstance(error, CouldNot)
    assert str(error) == (
        "source 'notes': 'notes' does not exist\n  give its place: EVAL_SOURCE_NOTES=PATH before the command"
    )
    for name in ("mine", "yours"):
        (here / name).mkdir()
        (here / name / "a.md").write_text(name)

    result = run("kb", "other", "--source", "notes=mine")
    assert "kb: source 'notes': read from" in result.stderr
    assert '"text":"mine"' in (here / ".eval/corpora/kb/corpus.jsonl").read_text()
    monkeypatch.setenv("EVAL_SOURCE_NOTES", "yours")
    assert run("kb").exit_code == 0
    assert '"text":"yours"' in (here / ".eval/corpora/kb/corpus.jsonl").read_text()
    assert run("kb", "--source", "notes=mine").exit_code == 0
    assert '"text":"mine"' in (here / ".eval/corpora/kb/corpus.jsonl").read_text()
    monkeypatch.setenv("EVAL_SOURCE_NOTES", "")
    assert failed("kb").code == "source-absent"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("kb", "--source", "note=x"),
            "there is no source 'note'; did you mean 'notes'?  (sources: notes)",
        ),
        (("kb", "--source", "notes"), "--source = 'notes': write NAME=PATH"),
        (("kb", "--source", "=x"), "--source = '=x': write NAME=PATH"),
        (("kb", "--source", "notes="), "--source = 'notes=': write NAME=PATH"),
        (("kb", "--source", "notes=a", "--source", "notes=b"), "--source = 'notes': was given twice"),
        (("gone",), "gone: there is no such dataset folder"),
        (("kb", "copy"), "copy: has the name 'kb', as kb does; give one of them another name"),
    ],
)
def test_wrong_usage_is_told(here: Path, arguments: tuple[str, ...], message: str) -> None:
    dataset(here / "kb", NOTES)
    dataset(here / "copy", NOTES, name="kb")
    error = failed(*arguments)
    assert isinstance(error, Misuse)
    assert error.message == message
    assert not (here / ".eval").exists()


def test_a_set_named_twice_is_built_once(here: Path) -> None:
    dataset(here / "kb", INLINE)
    assert len(run("kb", "./kb").stdout.splitlines()) == 1


def test_a_failure_keeps_the_lines_of_the_sets_before_it(here: Path) -> None:
    dataset(here / "good", INLINE)
    dataset(here / "bad", NOTES)
    result = run("good", "bad")
    assert isinstance(result.exception, CouldNot)
    assert result.stdout.startswith("reconstruct  good")
    assert (here / ".eval/corpora/good/lock.json").exists()


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        (["inline"], "inline "),
        (["git", "archive", "archive"], "1 git, 2 archives, pinned "),
        (["inline", "git", "git", "archive"], "1 inline, 2 git, 1 archive, pinned "),
        (["dir", "dir"], "2 folders, unpinned "),
    ],
)
def test_what_a_corpus_is_made_of(kinds: list[str], words: str) -> None:
    sources = tuple(
        LockedSource.model_validate(
            {
                "name": f"s{n}",
                "type": kind,
                "location": "",
                "pinned": kind != "dir",
                "documents": 1,
                "bytes": 1,
            }
        )
        for n, kind in enumerate(kinds)
    )
    lock = Lock(
        dataset="code",
        version="1",
        documents=1,
        digest="0" * 64,
        recipe="none",
        file_sha256="0" * 64,
        pinned=all(source.pinned for source in sources),
        sources=sources,
    )
    assert f"1 document    {words}" in lock_line(lock)


def test_help_shows_examples() -> None:
    text = run("--help").stdout
    assert "--source notes=../learning-notes" in text
    assert "NAME=PATH" in text
