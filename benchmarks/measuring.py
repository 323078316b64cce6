"""The measuring loop: what the harness costs a query, besides the backend's own time."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from unittest import mock

from benchmarks.sample import Ready, plan_for, ready
from eval_core import backend as backends
from eval_core.measuring import loop as measuring

QUERIES, REPETITIONS = 10_000, 3


def _stamper(stamps: list[float]) -> measuring.Progress:
    """A progress that notes when the first and the last answer were in."""

    def progress(done: int, total: int) -> None:
        if done in (1, total):
            stamps.append(time.perf_counter())

    return progress


def run() -> list[tuple[str, ...]]:
    """Measure 10,000 queries three times over and divide; then the same loop with nothing but the backend."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        made = plan_for(root, documents=2_000, queries=QUERIES, repetitions=REPETITIONS)
        loop: list[float] = []
        whole: list[float] = []
        for number in range(5):
            stamps: list[float] = []
            out = root / str(number)
            with mock.patch.object(backends, "make", ready):
                began = time.perf_counter()
                measuring.measure(made, out, out, out, progress=_stamper(stamps))
                whole.append((time.perf_counter() - began) / QUERIES)
            loop.append((stamps[1] - stamps[0]) / (QUERIES * REPETITIONS))
        backend = Ready()
        backend.index(made.dataset.corpus)
        request = backends.Request("", 10)
        began = time.perf_counter()
        for _ in range(QUERIES):
            backend.search(request)
        bare = (time.perf_counter() - began) / QUERIES
    return [
        ("what", "µs a query"),
        (
            "measuring loop (ask, check, keep on disk), a repetition",
            f"{(statistics.median(loop) - bare) * 1e6:.1f}",
        ),
        ("of that, the backend's own time taken off", f"{bare * 1e6:.2f}"),
        (
            f"everything: {REPETITIONS} repetitions, scoring, run, report",
            f"{statistics.median(whole) * 1e6:.1f}",
        ),
    ]
