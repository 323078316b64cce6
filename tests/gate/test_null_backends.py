"""The memory set of this repository, measured for real: a backend that knows nothing does not reach the floors of one
that does, and labels that say nothing give no floors."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Space

ROOT = Path(__file__).resolve().parents[2]

BM25 = '[arms.plain]\ndataset = "memory"\nbackend = "bm25"\n'

#: Answers every query with no document, through the line protocol.
EMPTY = "import sys\nfor line in sys.stdin:\n    print('{\"ids\": []}', flush=True)\n"


@pytest.fixture(scope="module")
def floored(make: type[Space], tmp_path_factory: pytest.TempPathFactory) -> Space:
    """The set with floors of two runs of bm25, which pass."""
    root = tmp_path_factory.mktemp("memory")
    shutil.copytree(ROOT / "datasets" / "memory", root / "memory")
    (root / "eval.toml").write_text(BM25)
    (root / "empty.py").write_text(EMPTY)
    space = make(root)
    for _ in range(2):
        done = space.core("measure", "-q")
        assert done.code == 0, done.err
    (root / "policy").mkdir()
    space.policy({"plain": space.reports("plain")})
    done = space.check()
    assert (done.code, done.codes) == (0, [])
    return space


@pytest.mark.parametrize(
    "backend",
    ['"random"', '"popularity"', '"jsonl"\noptions.command = ["{python}", "-S", "-E", "empty.py"]'],
    ids=["random", "popularity", "empty"],
)
def test_a_backend_that_knows_nothing_does_not_reach_the_floors(floored: Space, backend: str) -> None:
    """S5: null backends are the floor below every floor."""
    (floored.root / "eval.toml").write_text(BM25.replace('"bm25"', backend))
    done = floored.core("measure", "-q")
    assert done.code == 0, done.err
    done = floored.check()
    assert done.code == 1
    assert set(done.codes) <= {"floor-breached", "baseline-drop", "must-pass-lost"}
    assert all(not grade["passed"] for grade in done.verdict["arms"][0]["graded"] if grade["rule"] == "floor")


def test_floors_are_not_made_on_labels_that_say_nothing(floored: Space, make: Any, tmp_path: Path) -> None:
    """S5: with each query's labels given to another one, what bm25 reaches is what chance does."""
    root = tmp_path / "shuffled"
    shutil.copytree(floored.root, root, ignore=shutil.ignore_patterns(".eval", "policy"))
    space = make(root)
    (root / "eval.toml").write_text(BM25)
    path = root / "memory" / "qrels" / "test.tsv"
    head, *rows = path.read_text().splitlines()
    queries = list(dict.fromkeys(row.split("\t")[0] for row in rows))
    turned = dict(zip(queries, random.Random(20261130).sample(queries, len(queries)), strict=True))
    moved = ["\t".join([turned[row.split("\t")[0]], *row.split("\t")[1:]]) for row in rows]
    path.write_text("\n".join([head, *moved]) + "\n")
    for _ in range(2):
        done = space.core("measure", "-q")
        assert done.code == 0, done.err
    done = space.gate("floor", "plain", "--write")
    assert (done.code, (root / "policy" / "floors.toml").exists()) == (1, False), done.out
    assert "a random ranking of the 50 documents reaches its floor" in done.err, done.err
