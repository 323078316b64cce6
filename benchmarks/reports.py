"""Reading a report of 10,000 queries: parsing alone, and with everything in it recomputed from its rows."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from benchmarks.sample import plan_for, ready
from eval_core import backend as backends
from eval_core.measuring import loop
from eval_core.reports import read_report

QUERIES = 10_000


def run() -> list[tuple[str, ...]]:
    """Time the standard library's JSON parser and our reader, in turn, on one report."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        made = plan_for(root, documents=2_000, queries=QUERIES, repetitions=1)
        with mock.patch.object(backends, "make", ready):
            loop.measure(made, root / "runs", root / "reports", root / "history")
        path = root / "reports" / "arm.json"
        size = path.stat().st_size
        timings: dict[str, list[float]] = {"json": [], "read": []}
        for _ in range(7):
            timings["json"].append(_timed(lambda: json.loads(path.read_bytes())))
            timings["read"].append(_timed(lambda: read_report(path)))
    parse, read = (statistics.median(timings[key]) for key in ("json", "read"))
    return [
        ("what", "seconds", "against json.loads"),
        (f"json.loads of {size / 1e6:.1f} MB", f"{parse:.3f}", "1.0"),
        (f"read and check a report of {QUERIES:,} queries", f"{read:.3f}", f"{read / parse:.1f}"),
    ]


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
