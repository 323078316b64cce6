"""Scoring a run beside other scorers: the whole process, start to printed numbers, and the call on loaded data.

One invented input for each shape, the contenders in turn on it, medians of the rounds. What each of them runs is in
`peers.py`; for the whole process ours is the script `eval-core score`. The numbers they print are compared as well.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import rankings
from benchmarks.peers import CONTENDERS, MEASURES, OURS

ROOT = Path(__file__).resolve().parent.parent
#: Queries, depth, rounds, and whether JSON lines are read as well.
SHAPES = ((1_000, 1_000, 5, False), (10_000, 100, 5, True), (10_000, 1_000, 3, False))
#: Contenders that compile themselves at the first call, and keep what they compiled on disk.
COMPILED = ("ranx", "ranx-dicts")
#: Two means further apart than this are not the same number.
EQUAL = 1e-9

Table = list[tuple[str, ...]]


class Cost(NamedTuple):
    """Wall and CPU time in seconds; peak memory in bytes, 0 where only a call was timed."""

    wall: float
    cpu: float
    peak: float


Costs = dict[str, list[Cost]]


class Bench:
    """Runs contenders as processes, and keeps what each cost and how far its numbers lie from the others'."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.means: dict[str, list[dict[str, float]]] = defaultdict(list)

    def whole(self, label: str, name: str, run: Path, qrels: Path, cache: str = "warm") -> Cost:
        """One process from its start to its printed numbers; `cache` is where ranx keeps what it compiled."""
        if name == OURS:
            words = [str(Path(sys.executable).parent / "eval-core"), "score", "--run", str(run)]
            words += ["--qrels", str(qrels), "--format", "json", *(w for m in MEASURES for w in ("-m", m))]
        else:
            words = [sys.executable, "-m", "benchmarks.peers", name, "whole", str(run), str(qrels)]
        cost, printed = self._timed(words, cache)
        means = (
            {m: value["mean"] for m, value in printed["measures"].items()}
            if name == OURS
            else printed["means"]
        )
        self.means[label].append(means)
        return Cost(**cost)

    def inner(self, label: str, name: str, run: Path, qrels: Path) -> Cost:
        """The median call of one process that has read the files before."""
        words = [sys.executable, "-m", "benchmarks.peers", name, "inner", str(run), str(qrels)]
        _, printed = self._timed(words, "warm")
        self.means[label].append(printed["means"])
        return Cost(printed["wall"], printed["cpu"], 0)

    def _timed(self, words: list[str], cache: str) -> tuple[dict[str, float], dict[str, Any]]:
        output = self.folder / "output.json"
        launcher = [sys.executable, "-I", "-S", str(ROOT / "benchmarks" / "timed.py"), str(output), *words]
        compiled = {"NUMBA_CACHE_DIR": str(self.folder / cache), "PYTHONWARNINGS": "ignore"}
        done = subprocess.run(
            launcher, cwd=ROOT, env=os.environ | compiled, stdout=subprocess.PIPE, check=True
        )
        return json.loads(done.stdout), json.loads(output.read_bytes())

    def differences(self) -> Table:
        """For each input how far apart two means of one measure are at most, and which are not the same number."""
        rows: Table = [("input", "outputs compared", "largest difference", "measures that differ")]
        for label, printed in self.means.items():
            spans = {m: max(p[m] for p in printed) - min(p[m] for p in printed) for m in MEASURES}
            differ = [m for m, span in spans.items() if not span <= EQUAL]
            rows.append((label, str(len(printed)), f"{max(spans.values()):.0e}", ", ".join(differ) or "none"))
        return rows


def run() -> dict[str, Table]:
    """Measure all shapes. Minutes: the largest has ten million lines."""
    whole: dict[str, Costs] = {}
    inner: dict[str, Costs] = {}
    cold: Table = [("contender", "seconds", "CPU s")]
    with tempfile.TemporaryDirectory(prefix="ladder-bench-") as name:
        bench = Bench(Path(name))
        for queries, depth, rounds, jsonl in SHAPES:
            label = f"{queries:,} × {depth:,}"
            _say(f"{label}: writing the input")
            files = rankings.write(bench.folder, queries, depth)
            if len(cold) == 1:
                cold += _cold(bench, label, files)
            inputs = {f"{label}, TREC run": files.trec} | (
                {f"{label}, JSON lines": files.jsonl} if jsonl else {}
            )
            for number in range(rounds):
                for title, path in inputs.items():
                    costs = whole.setdefault(title, defaultdict(list))
                    for contender in _turn(number):
                        cost = bench.whole(label, contender, path, files.qrels)
                        costs[contender].append(cost)
                        _say(f"{title}, {number + 1} of {rounds}, {contender}: {cost.wall:.2f} s")
                costs = inner.setdefault(label, defaultdict(list))
                for contender in _turn(number):
                    cost = bench.inner(label, contender, files.trec, files.qrels)
                    costs[contender].append(cost)
                    _say(f"{label}, {number + 1} of {rounds}, call of {contender}: {cost.wall:.4f} s")
        differences = bench.differences()
    return {
        "whole process: start, read, compute, print": _whole_table(whole),
        "the call on loaded data": _inner_table(inner),
        "ranx before anything is compiled, once, on the first input": cold,
        "do they print the same numbers?": differences,
    }


def _turn(number: int) -> list[str]:
    """The contenders in an order of its own for each round, so that none always follows the same."""
    names = list(CONTENDERS)
    start = number % len(names)
    return names[start:] + names[:start]


def _cold(bench: Bench, label: str, files: rankings.Files) -> Table:
    """What a fresh machine pays. The font list that ranx has made at its import is made before."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", "import ranx"], check=True)
    rows: Table = []
    for name in COMPILED:
        cost = bench.whole(label, name, files.trec, files.qrels, cache=f"cold-{name}")
        _say(f"{label}, nothing compiled, {name}: {cost.wall:.1f} s")
        rows.append((name, f"{cost.wall:.1f}", f"{cost.cpu:.1f}"))
        # Both compile in the common place too, before anything is timed there.
        bench.whole(label, name, files.trec, files.qrels)
    return rows


def _medians(costs: Costs) -> dict[str, Cost]:
    return {name: Cost(*map(statistics.median, zip(*costs[name], strict=True))) for name in CONTENDERS}


def _whole_table(inputs: dict[str, Costs]) -> Table:
    rows: Table = [
        ("input", "contender", "seconds", "CPU s", "peak MB", "our time, of its", "our CPU", "our memory")
    ]
    for title, costs in inputs.items():
        medians = _medians(costs)
        ours, fastest = medians[OURS], _fastest(medians)
        for name, cost in medians.items():
            share = tuple(f"{mine / its:.3f}" for mine, its in zip(ours, cost, strict=True))
            figures = (f"{cost.wall:.2f}", f"{cost.cpu:.2f}", f"{cost.peak / 1e6:.0f}")
            rows.append((title, name + " (fastest peer)" * (name == fastest), *figures, *share))
    return rows


def _inner_table(inputs: dict[str, Costs]) -> Table:
    rows: Table = [("input", "contender", "ms", "CPU ms", "queries a second", "our time, of its", "our CPU")]
    for title, costs in inputs.items():
        medians = _medians(costs)
        ours, fastest = medians[OURS], _fastest(medians)
        queries = int(title.split(" ")[0].replace(",", ""))
        for name, cost in medians.items():
            figures = (f"{cost.wall * 1e3:.1f}", f"{cost.cpu * 1e3:.1f}", f"{queries / cost.wall:,.0f}")
            share = (f"{ours.wall / cost.wall:.3f}", f"{ours.cpu / cost.cpu:.3f}")
            rows.append((title, name + " (fastest peer)" * (name == fastest), *figures, *share))
    return rows


def _fastest(medians: dict[str, Cost]) -> str:
    return min((name for name in medians if name != OURS), key=lambda name: medians[name].wall)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
