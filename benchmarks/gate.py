"""The gate's whole process, start included, on one arm and on fifty, beside the smallest process that models data.

The workspaces are made by the commands that a user types: an invented set, two measurements, floors. All
that is timed finds its bytecode compiled, as that of an installed package is, wherever the sources lie.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from benchmarks.processes import MODEL

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = Path(sys.executable).parent
#: Arms, queries, and rounds of the yardstick and the gate in turn.
SHAPES = ((1, 300, 41), (50, 500, 21))
DOCUMENTS = 2_000


class Cost(NamedTuple):
    """Wall and CPU time in seconds; peak memory in bytes."""

    wall: float
    cpu: float
    peak: float


def run() -> list[tuple[str, ...]]:
    """Time `eval-gate check` and its yardstick in turn, and quote medians and the ratio of medians."""
    rows: list[tuple[str, ...]] = [
        ("process", "ms", "CPU ms", "peak MB", "time, against one pydantic model", "memory, against it")
    ]
    model = [sys.executable, "-c", MODEL]
    check = [str(SCRIPTS / "eval-gate"), "check"]
    for arms, queries, rounds in SHAPES:
        with tempfile.TemporaryDirectory(prefix="ladder-bench-") as name:
            place = Path(name)
            _say(f"{arms} × {queries}: measuring twice, floors")
            gated(place / "space", arms, queries)
            costs: dict[str, list[Cost]] = {"model": [], "gate": []}
            for number in range(rounds + 1):
                for label, command in (("model", model), ("gate", check)):
                    cost = timed(place / "space", command, place / "bytecode")
                    if number:  # the first compiles
                        costs[label].append(cost)
        yardstick, cost = (
            Cost(*map(statistics.median, zip(*found, strict=True))) for found in costs.values()
        )
        what = "one arm" if arms == 1 else f"{arms} arms"
        rows.append(("python: one pydantic model", *_figures(yardstick, yardstick)))
        rows.append((f"eval-gate check, {what} of {queries} queries", *_figures(cost, yardstick)))
    return rows


def _figures(cost: Cost, yardstick: Cost) -> tuple[str, ...]:
    return (
        f"{cost.wall * 1e3:.0f}",
        f"{cost.cpu * 1e3:.0f}",
        f"{cost.peak / 1e6:.0f}",
        f"{cost.wall / yardstick.wall:.2f}",
        f"{cost.peak / yardstick.peak:.2f}",
    )


def timed(place: Path, command: list[str], bytecode: Path) -> Cost:
    """What one process took, which must succeed: a gate that failed would have had less, or more, to do."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(bytecode)
    launcher = [sys.executable, "-I", "-S", str(ROOT / "benchmarks" / "timed.py"), os.devnull, *command]
    done = subprocess.run(launcher, cwd=place, env=environment, stdout=subprocess.PIPE, check=True)
    return Cost(**json.loads(done.stdout))


def gated(place: Path, arms: int, queries: int) -> None:
    """A workspace of arms on one invented set, which passes its own floors."""
    place.mkdir(exist_ok=True)
    write_set(place / "set", queries)
    table = '[arms.a{:02}]\ndataset = "set"\nbackend = "bm25"\nrepetitions = 1\n'
    (place / "eval.toml").write_text("".join(map(table.format, range(arms))), encoding="utf-8")
    for script, *words in (
        ("eval-core", "measure", "-q"),
        ("eval-core", "measure", "-q"),
        ("eval-gate", "floor", "--write"),
    ):
        command = [str(SCRIPTS / script), *words]
        subprocess.run(command, cwd=place, stdout=subprocess.DEVNULL, check=True)


def write_set(folder: Path, queries: int, seed: int = 5) -> None:
    """Write a BEIR folder of three categories; a query holds two words of its one relevant document, and three more."""
    chance = random.Random(seed)
    words = [f"w{number}" for number in range(2000)]
    documents = {f"d{number}": chance.choices(words, k=40) for number in range(DOCUMENTS)}
    judged = [f"d{chance.randrange(DOCUMENTS)}" for _ in range(queries)]
    texts = [[*chance.sample(documents[name], 2), *chance.choices(words, k=3)] for name in judged]
    (folder / "qrels").mkdir(parents=True)
    _write(folder / "corpus.jsonl", (_line({"_id": n, "text": " ".join(t)}) for n, t in documents.items()))
    _write(
        folder / "queries.jsonl",
        (
            _line({"_id": f"q{n}", "text": " ".join(text), "metadata": {"category": f"c{n % 3}"}})
            for n, text in enumerate(texts)
        ),
    )
    rows = (f"q{number}\t{name}\t1\n" for number, name in enumerate(judged))
    _write(folder / "qrels" / "test.tsv", ("query-id\tcorpus-id\tscore\n", *rows))


def _line(value: object) -> str:
    return json.dumps(value) + "\n"


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(lines), encoding="utf-8")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
