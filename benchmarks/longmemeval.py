"""Converting and measuring synthetic LongMemEval files of the sizes of S and M, each beside the least that it could be.

`python -m benchmarks.longmemeval SET` is the yardstick of measuring: every question asked of rank_bm25 over the texts
of its scope, and nothing else.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from itertools import groupby
from pathlib import Path

#: The yardstick of converting: the file held whole.
LOAD = "import json, sys; json.load(open(sys.argv[1], 'rb'))"


def run() -> dict[str, list[tuple[str, ...]]]:
    """Convert S, half of it, and M; then measure S with bm25, a scope a question."""
    script = str(Path(sys.executable).parent / "longmemeval-convert")
    converting: list[tuple[str, ...]] = [("file", "MB", "what", "CPU s", "seconds", "peak MB")]
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for title, variant, questions in (("S", "s", 500), ("half of S", "s", 250), ("M", "m", 500)):
            file = place / f"{title}.json"
            subprocess.run(
                [script, "synth", "--variant", variant, "--questions", str(questions), "-o", str(file)],
                check=True,
            )
            size = f"{file.stat().st_size / 1e6:,.0f}"
            commands = {
                f"convert --text {text}": [script, str(file), "-o", str(place / title / text), "--text", text]
                for text in ("user", "all")
            }
            if title == "S":
                commands["json.load"] = [sys.executable, "-c", LOAD, str(file)]
            for what, command in commands.items():
                converting.append((title, size, what, *shown(timed(place, command))))
            file.unlink()
            if title != "S":
                shutil.rmtree(place / title)
        measuring: list[tuple[str, ...]] = [
            ("S, 470 questions", "text", "CPU s", "seconds", "peak MB", "CPU, of the bare loop's")
        ]
        for text in ("all", "user"):
            folder = place / "S" / text
            arm = f'[arms."bm25"]\ndataset = "{text}"\nsplit = "test"\nbackend = "bm25"\nrepetitions = 1\n'
            (place / "S" / "eval.toml").write_text(arm)
            bare = timed(place, [sys.executable, "-m", "benchmarks.longmemeval", str(folder)])
            core = str(Path(sys.executable).parent / "eval-core")
            ours = timed(place, [core, "measure", "-q", "--config", str(place / "S" / "eval.toml")])
            for what, cost in (("bare loop of rank_bm25", bare), ("eval-core measure", ours)):
                measuring.append((what, text, *shown(cost), f"{cost['cpu'] / bare['cpu']:.2f}"))
    return {"converting": converting, "measuring": measuring}


def timed(place: Path, command: list[str]) -> dict[str, float]:
    """What a command costs: CPU and wall in seconds, peak memory in bytes."""
    runner = [sys.executable, "-I", "-S", str(Path(__file__).with_name("timed.py")), str(place / "output")]
    done = subprocess.run([*runner, *command], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    cost: dict[str, float] = json.loads(done.stdout)
    return cost


def shown(cost: dict[str, float]) -> tuple[str, str, str]:
    """The three figures of a row."""
    return f"{cost['cpu']:.1f}", f"{cost['wall']:.1f}", f"{cost['peak'] / 1e6:.0f}"


def bare_loop(folder: Path) -> None:
    """An index a scope, one question each: BM25Okapi over `text.lower().split()`, `get_scores`, one sort."""
    from rank_bm25 import BM25Okapi

    with (folder / "queries.jsonl").open(encoding="utf-8") as stream:
        queries = {value["_id"]: value for value in map(json.loads, stream)}
    with (folder / "corpus.jsonl").open(encoding="utf-8") as stream:
        for scope, documents in groupby(
            map(json.loads, stream), key=lambda value: value["metadata"]["scopes"][0]
        ):
            if queries[scope]["metadata"].get("unanswerable"):
                continue
            held = list(documents)
            index = BM25Okapi([value["text"].lower().split() for value in held])
            scores = index.get_scores(queries[scope]["text"].lower().split())
            sorted(range(len(held)), key=lambda at: -scores[at])[:10]


if __name__ == "__main__":
    bare_loop(Path(sys.argv[1]))
