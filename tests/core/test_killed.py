"""A measurement that is killed leaves nothing half-written and can be gone on with: on real processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from core_support import INLINE, Space, append

from eval_core.reports.report import read_report

# A retriever that answers rightly, slowly enough to be killed between two answers while the file "slowly" is there.
SLOW = """
import json, os, sys, time
for line in sys.stdin:
    query = json.loads(line)["query"]
    time.sleep(0.05 if os.path.exists("slowly") else 0)
    print(json.dumps({"ids": ["d" + query.split()[-1]] if query.startswith("thing") else []}), flush=True)
"""

COUNT = 60


@pytest.fixture
def slow(space: Space) -> Space:
    """Sixty queries to a slow command."""
    space.set(
        {f"d{number}": f"thing {number}" for number in range(COUNT)},
        {f"q{number}": f"thing {number}" for number in range(COUNT)},
        [(f"q{number}", f"d{number}", 1) for number in range(COUNT)],
        INLINE,
    )
    (space.root / "slow.py").write_text(SLOW)
    (space.root / "slowly").touch()
    space.arm(
        "options.command = ['{python}', '-S', '-E', 'slow.py']\nrepetitions = 1\n",
        name="slow",
        backend="jsonl",
    )
    return space


@contextlib.contextmanager
def measuring(space: Space, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A measurement in a process group of its own, which is gone at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "eval_core", "measure", *words],
        cwd=space.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def answered(space: Space) -> int:
    partial = space.runs / "slow.partial"
    return partial.read_bytes().count(b"\n") - 1 if partial.exists() else 0


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda n: n.name)
def test_a_killed_measurement_leaves_nothing_half_written_and_can_be_gone_on_with(
    slow: Space, number: signal.Signals
) -> None:
    """On a real process. A run that was resumed ranks like an uninterrupted one, is marked, and asked nothing twice."""
    with measuring(slow) as process:
        wait_for(lambda: answered(slow) >= 3)
        # A key press reaches the whole group; a service manager or a user's kill only the process.
        (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        _, err = process.communicate(timeout=30)
    done = answered(slow)
    assert 3 <= done < COUNT
    if number == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 3
        assert "slow: interrupted; go on with  eval-core measure --resume" in err
        assert "Traceback" not in err
    corpora = [name for name in slow.left() if name.startswith("corpora/")]
    assert slow.left() == sorted([*corpora, "runs/slow.partial"])
    assert not [path for path in slow.root.rglob("*") if path.name.endswith(".tmp")]
    first_half = (slow.runs / "slow.partial").read_bytes()

    (slow.root / "slowly").unlink()
    resumed = slow.core("measure", "--resume", "--format", "json")
    assert resumed.code == 0, resumed.err
    report = read_report(slow.reports / "slow.json")
    assert (report.n, report.resumed, report.health.ok) == (COUNT, True, True)
    assert report.run_id == json.loads(first_half.splitlines()[0])["run_id"]
    assert report.statements[0] == "resumed after an interruption: whole, and no evidence for a floor"
    assert not (slow.runs / "slow.partial").exists()
    assert report.summary.overall.metrics["hit@1"] == 1
    whole = slow.core("measure")
    assert whole.code == 0
    fresh = read_report(slow.reports / "slow.json")
    assert fresh.digests.rankings == report.digests.rankings
    assert not fresh.resumed


def test_what_changed_meanwhile_is_not_resumed_and_a_new_run_sets_the_old_aside(slow: Space) -> None:
    """An adapter that was edited is another system: its answers are not mixed with the old ones."""
    with measuring(slow) as process:
        wait_for(lambda: answered(slow) >= 2)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    append(slow.root / "slow.py", "# edited\n")
    (slow.root / "slowly").unlink()
    before = (slow.runs / "slow.partial").read_bytes()
    done = slow.core("measure", "--resume")
    assert done.code == 1
    assert "slow.partial: the unfinished run had another system (files differ)" in done.err
    assert "Measure without --resume to begin again." in done.err
    assert (slow.runs / "slow.partial").read_bytes() == before
    assert slow.core("measure").code == 0
    assert (slow.runs / "slow.partial.old").read_bytes() == before
    assert not read_report(slow.reports / "slow.json").resumed


def test_the_report_of_an_earlier_run_is_gone_while_the_next_is_under_way(slow: Space) -> None:
    """Last week's report is not graded in place of one that was not made."""
    (slow.root / "slowly").unlink()
    assert slow.core("measure").code == 0
    (slow.root / "slowly").touch()
    with measuring(slow) as process:
        wait_for(lambda: answered(slow) >= 1)
        assert not (slow.reports / "slow.json").exists()
        process.kill()
        process.communicate(timeout=30)
    assert not (slow.reports / "slow.json").exists()
    assert len(list((slow.history / "slow").iterdir())) == 1
