"""The real commands as processes whose output is in another encoding: no encoding changes what a command finds out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Space

SIGNS = "où – … ≥ Ω 漢 🙂"

ALL = ("ascii", "latin-1", "cp1252", "cp437", "utf-8")

#: A command, its exit code in every encoding, and those that it is run in: starting so many processes takes time.
COMMANDS = {
    "eval_core validate set": (0, ["latin-1"]),
    "eval_core validate torn": (2, ["cp1252"]),
    "eval_core show": (0, ALL),
    "eval_core measure": (0, ["cp437"]),
    "eval_core explain notes --missed": (0, ["latin-1"]),
    "eval_core compare baseline:notes notes --all": (0, ["cp1252"]),
    "eval_core score --run .eval/runs/notes.jsonl --qrels set/qrels/test.tsv --per-query": (0, ["cp437"]),
    "eval_core inspect set": (0, ["cp1252"]),
    "eval_core import records asked.jsonl --corpus set/corpus.jsonl -o OUT": (0, ["latin-1"]),
    "eval_gate check": (1, ALL),
    "eval_gate floor": (0, ["cp437"]),
    "eval_gate power": (0, ["latin-1"]),
    "eval_gate demo --into OUT": (0, ["cp1252"]),
}


@pytest.fixture(scope="module")
def foreign(make: type[Space], tmp_path_factory: pytest.TempPathFactory) -> Space:
    """A workspace whose texts, ids and categories are in many scripts, with a query that is found no longer."""
    space = make(tmp_path_factory.mktemp("foreign"))
    (space.root / "eval.toml").write_text(
        '[arms.notes]\ndataset = "set"\nbackend = "bm25"\nrepetitions = 1\n'
    )
    documents = {f"d–{n}": f"thing {n} {SIGNS}" for n in range(60)}
    queries = {
        f"q…{n}": {"text": f"thing {n} {SIGNS}?", "metadata": {"category": f"größe {n % 2} 漢"}}
        for n in range(8)
    }
    judged = [(name, f"d–{n}", 1) for n, name in enumerate(queries)]
    space.set(queries, documents, judged)
    for _ in range(2):
        assert space.core("measure", "-q").code == 0
    space.policy()
    with (space.root / "eval.toml").open("a") as file:
        file.write('options.tokenizer = "whitespace"\n')
    assert space.core("measure", "-q").code == 0
    (space.root / "torn").mkdir()
    for name in ("corpus", "queries"):
        (space.root / "torn" / f"{name}.jsonl").write_text(json.dumps({"_id": SIGNS}) + "\n")
    (space.root / "torn" / "qrels").mkdir()
    (space.root / "torn" / "qrels" / "test.tsv").write_text(f"{SIGNS}\t{SIGNS}\t1\n")
    asked = [{"query": f"{name} {SIGNS}", "relevant": [name]} for name in ("d–1", "d–?")]
    (space.root / "asked.jsonl").write_text("\n".join(map(json.dumps, asked)))
    return space


CASES = [(command, name) for command, (_, names) in COMMANDS.items() for name in names]


@pytest.mark.parametrize(("command", "encoding"), CASES)
def test_round2_f5_no_encoding_of_the_output_changes_what_a_command_finds_out(
    foreign: Space, tmp_path: Path, command: str, encoding: str
) -> None:
    """F5: 8-bit outputs ended `measure`, `check`, `inspect` and `explain` in an internal error."""
    done = subprocess.run(
        [sys.executable, "-m", *command.replace("OUT", str(tmp_path / "out")).split()],
        cwd=foreign.root,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        timeout=60,
        check=False,
    )
    # Click takes ASCII for a locale that was not set, and writes UTF-8.
    out, err = (text.decode(encoding.replace("ascii", "utf-8")) for text in (done.stdout, done.stderr))
    assert done.returncode == COMMANDS[command][0], out + err
    assert out
    assert "Traceback" not in err
    assert "internal error" not in err
