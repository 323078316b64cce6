"""Shares the work on a large run file among processes: each takes a part of it, and the first joins what they found.

It never changes a result. Whatever is unusual in a part (a malformed line, a query that also lies in another part, a
process that ends early) makes the whole attempt void, and the caller reads the file alone, from its beginning.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING

from eval_core.errors import EvalError
from eval_core.scoring.readers.run import Ungrouped
from eval_core.scoring.readers.source import STDIN, is_packed

if TYPE_CHECKING:
    from eval_core.scoring.engine import Engine

#: Bytes that a process should have to do: starting one and sending what it found takes as long as some 100 kB.
PART = 4 << 20

#: The most processes: beyond, the disk and the joining bound.
MOST = 8

#: How far the end of a query is looked for.
_REACH = 16 << 20

Span = tuple[int, int]


def take(
    run: Path, kind: str, part: Callable[[Span | None], Engine], processes: int | None = None
) -> Engine | None:
    """Have `part` called for each part of a run file, in as many processes; None where one process should do it."""
    spans = parts(run, kind, processes)
    if len(spans) < 2:
        return None
    children: list[tuple[int, int]] = []
    try:
        for span in spans[1:]:
            children.append(_start(part, span))
        mine = part(spans[0])
        while children:
            data = _received(children[0][1])
            _, status = os.waitpid(children[0][0], 0)
            os.close(children.pop(0)[1])
            if status or not data or not mine.join(marshal.loads(data)):
                return None
    except (EvalError, Ungrouped, OSError):
        return None  # what is wrong is found again, and worded, by the one process that reads all
    finally:
        for child, reading in children:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            os.close(reading)
    return mine


def _start(part: Callable[[Span | None], Engine], span: Span) -> tuple[int, int]:
    """Start a process for a part: its id, and the pipe from which what it found is read."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    # The copy: it must leave by os._exit alone, whatever happens, or it would go on as the caller.
    status = 1
    try:
        with open(writing, "wb") as stream:
            stream.write(marshal.dumps(part(span).taken()))
        status = 0
    finally:
        os._exit(status)


def _received(reading: int) -> bytes:
    return b"".join(iter(lambda: os.read(reading, 1 << 20), b""))


def parts(run: Path, kind: str, processes: int | None = None) -> list[Span]:
    """The parts of a run file for that many processes, between queries; one where it cannot be parted well.

    Without `processes`: as many as there are processors for us and parts of 4 MB, 8 at most.
    """
    if kind == "nested" or run == STDIN:
        return [(0, 0)]
    size = run.stat().st_size
    if processes is None:
        processes = min(_processors(), size // PART, MOST)
    if processes < 2 or not _can_fork():
        return [(0, size)]
    with run.open("rb") as raw:
        if is_packed(raw):
            return [(0, size)]
        ends = [_between(raw, size * share // processes, kind) for share in range(1, processes)]
    places = sorted({0, size, *(end for end in ends if end is not None and end < size)})
    return list(pairwise(places))


def _processors() -> int:
    with contextlib.suppress(AttributeError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _can_fork() -> bool:
    """A process with threads cannot be copied safely, and not every system can copy one."""
    threading = sys.modules.get("threading")
    return hasattr(os, "fork") and (threading is None or threading.active_count() == 1)


def _between(raw: IO[bytes], place: int, kind: str) -> int | None:
    """The first byte at or after `place` where a line begins, and in a TREC run a query; None where it is far."""
    raw.seek(place)
    place += len(raw.readline())
    if kind != "trec":
        return place
    query: bytes | None = None
    for line in _some_lines(raw):
        words = line.split(None, 1)
        if words and query is not None and words[0] != query:
            return place
        if words:
            query = words[0]
        place += len(line)
    return None


def _some_lines(raw: IO[bytes]) -> Iterator[bytes]:
    left = _REACH
    while left > 0 and (line := raw.readline(left)):
        left -= len(line)
        yield line
