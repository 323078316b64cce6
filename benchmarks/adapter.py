"""What the line protocol costs a request: the same backend in the process and behind `eval-backends serve`."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.sample import write_set
from eval_core.backend import Backend, Request, make
from eval_core.sets import CorpusFile

REQUESTS = 2_000
COMMAND = ["{python}", "-m", "eval_backends", "serve", "bm25", "--corpus", "{corpus}"]


def run() -> list[tuple[str, ...]]:
    """Ask both in turn, and quote medians."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "set"
        write_set(folder, documents=50, queries=1)
        corpus = CorpusFile(folder / "corpus.jsonl")
        here, there = make("bm25", {}), make("jsonl", {"command": COMMAND})
        try:
            here.index(corpus)
            there.index(corpus)
            timings = [(_timed(here, number), _timed(there, number)) for number in range(REQUESTS)]
        finally:
            there.close()
    inside, outside = (statistics.median(times) * 1e6 for times in zip(*timings, strict=True))
    return [
        ("request to bm25 over 50 documents", "µs", "against in the process"),
        ("in the process", f"{inside:.0f}", "1.0"),
        ("behind the line protocol", f"{outside:.0f}", f"{outside / inside:.1f}"),
    ]


def _timed(backend: Backend, number: int) -> float:
    began = time.perf_counter()
    backend.search(Request(f"w{number % 2000} w{(number * 7) % 2000}", 10))
    return time.perf_counter() - began
