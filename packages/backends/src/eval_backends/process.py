"""One child process that is spoken to in lines: the bytes of a line in, the bytes of a line out, each by a deadline.

The child leads a session of its own, so that it and whatever it started can be ended together. Only a descendant
that moves to another session (a daemon that calls `setsid`) gets away. POSIX only: it needs `poll` on pipes.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Sequence

_CHUNK = 65536

#: Said where there is output that is no reply.
HINT = " (logs belong on standard error)"

#: How much of what the child last wrote to standard error is kept, in bytes.
TAIL = 8192

#: How long a child whose pipe has ended may take to be gone, so that its exit code can be told, in seconds.
_LAST_BREATH = 0.5


class Broken(Exception):
    """The child can no longer be spoken to and has to be stopped; the message says what it did."""


class LineProcess:
    """A running child. `ask` it any number of times, one at a time; `stop` it always.

    Raises:
        OSError: the program cannot be started.
    """

    def __init__(self, command: Sequence[str], max_line: int) -> None:
        self._max_line = max_line
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._rest = bytearray()
        self._in_flight = False
        self._stopped = False
        self._pipes = [
            pipe
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr)
            if pipe is not None
        ]
        try:
            self._in, self._out, errors = (pipe.fileno() for pipe in self._pipes)
            for descriptor in (self._in, self._out, errors):
                os.set_blocking(descriptor, False)
            self._readable = select.poll()
            self._readable.register(self._out, select.POLLIN)
            self._writable = select.poll()
            self._writable.register(self._in, select.POLLOUT)
            self._errors = _Tail(errors)
            self._errors.start()
        except BaseException:
            self._kill()
            self._close()
            raise

    def ask(self, line: bytes, timeout: float) -> bytes:
        """Send `line` (with its newline) and return the next line of output, without its newline.

        `timeout` is in seconds and covers the sending and the answer.

        Raises:
            Broken: there was output before the request, no whole line in time, one longer than `max_line` bytes,
                or the child closed a pipe or exited.
        """
        deadline = time.monotonic() + timeout
        self._expect_silence()
        self._in_flight = True
        self._send(line, deadline, timeout)
        reply = self._receive(deadline, timeout)
        self._in_flight = False
        return reply

    def _expect_silence(self) -> None:
        if self._in_flight:
            raise Broken("its last request was interrupted, so its next line would answer that one")
        if not self._rest and self._readable.poll(0):
            chunk = os.read(self._out, _CHUNK)
            if not chunk:
                raise self._ended("before this request")
            self._rest += chunk
        if self._rest:
            raise Broken(f"wrote a line that no request asked for: {_shown(self._rest)}{HINT}")

    def _send(self, line: bytes, deadline: float, timeout: float) -> None:
        rest = memoryview(line)
        while rest:
            try:
                rest = rest[os.write(self._in, rest) :]
            except BlockingIOError:
                if not _wait(self._writable, deadline):
                    raise Broken(f"did not read the request within {timeout:g} s") from None
            except BrokenPipeError:
                raise self._ended("before it read the request", closed="input") from None

    def _receive(self, deadline: float, timeout: float) -> bytes:
        while True:
            if not _wait(self._readable, min(deadline, time.monotonic() + _LAST_BREATH)):
                # A child that has ended says no more, though what it left behind may hold its output for ever.
                if time.monotonic() < deadline and not self._gone(0):
                    continue
                if self._rest and not self._gone(0):
                    raise Broken(f"wrote {len(self._rest)} bytes and no newline within {timeout:g} s")
                if self._gone(0):
                    ending = how_it_ended(self._process.returncode)
                    raise Broken(
                        f"{ending} before it replied, and left a process behind that holds its output"
                    )
                raise Broken(
                    f"gave no reply within {timeout:g} s (does it flush its output after each line?)"
                )
            chunk = os.read(self._out, _CHUNK)
            if not chunk:
                raise self._ended("in the middle of its reply" if self._rest else "before it replied")
            end = chunk.find(b"\n")
            if end >= 0:
                line = bytes(self._rest) + chunk[:end]
                self._rest = bytearray(chunk[end + 1 :])
            else:
                line = b""
                self._rest += chunk
            if len(line) > self._max_line or (end < 0 and len(self._rest) > self._max_line):
                raise Broken(f"wrote a line longer than max_line = {self._max_line} bytes")
            if end >= 0:
                return line

    def _ended(self, when: str, closed: str = "output") -> Broken:
        """What to say of a child whose pipe has ended."""
        if not self._gone(_LAST_BREATH):
            return Broken(f"closed its {closed} {when} and kept running")
        return Broken(f"{how_it_ended(self._process.returncode)} {when}")

    def tail(self) -> str:
        """The end of what the child wrote to standard error, at most `TAIL` bytes; whole once it is stopped."""
        return self._errors.text()

    def stop(self, grace: float = 0.0) -> None:
        """End the child and its process group, and free all pipes. May be called twice.

        With a `grace` (seconds) its input is closed first, so that it can end by itself; after as long again
        following SIGTERM, or at once without a grace, comes SIGKILL.
        """
        if self._stopped:
            return
        self._stopped = True
        self._pipes[0].close()
        try:
            if grace > 0 and not self._gone(grace):
                self._signal(signal.SIGTERM)
                self._gone(grace)
        finally:
            self._kill()
            self._errors.finish()
            self._close()

    def _kill(self) -> None:
        # The group is signalled even where the child has ended, for what it may have left running. Its number can
        # only be somebody else's if nothing was left and the system handed it out within the last moments.
        self._signal(signal.SIGKILL)
        self._gone(5.0)

    def _close(self) -> None:
        for pipe in self._pipes:
            pipe.close()

    def _signal(self, number: signal.Signals) -> None:
        # PermissionError: macOS says so of a group of which only zombies remain.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _gone(self, patience: float) -> bool:
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            return False
        return True


class _Tail(threading.Thread):
    """Reads standard error for as long as the child lives, so that it never blocks, and keeps the end of it."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(name="stderr-tail", daemon=True)
        self._descriptor = descriptor
        self._kept = bytearray()
        self._woken, self._wake = os.pipe()

    def run(self) -> None:
        poller = select.poll()
        poller.register(self._descriptor, select.POLLIN)
        poller.register(self._woken, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poller.poll()}
            if self._woken in ready:
                # What is in the pipe by now, and no more: a descendant that got away may write for ever.
                for _ in range(32):
                    if not self._take():
                        break
                return
            if self._take() == b"":
                return

    def _take(self) -> bytes | None:
        """Read and keep a piece; nothing of it at the end of the pipe, None where there is none yet."""
        try:
            chunk = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return None
        self._kept += chunk
        del self._kept[:-TAIL]
        return chunk

    def finish(self) -> None:
        """Take what is left and end the thread."""
        os.write(self._wake, b"x")
        self.join()
        os.close(self._woken)
        os.close(self._wake)

    def text(self) -> str:
        return bytes(self._kept).decode("utf-8", "replace").strip()


def how_it_ended(code: int) -> str:
    """An exit code of `subprocess` in words: "exited with code 3", "was killed by SIGSEGV"."""
    if code >= 0:
        return f"exited with code {code}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"


def _wait(poller: select.poll, deadline: float) -> bool:
    """Wait for the pipe until the deadline; False when that has passed."""
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        # An hour at a time: poll takes no more than 32 bits of milliseconds.
        if poller.poll(math.ceil(min(left, 3600.0) * 1000)):
            return True


def _shown(data: bytes | bytearray) -> str:
    """The start of some output, for a message."""
    return repr(bytes(data[:60]).decode("utf-8", "replace")) + ("…" if len(data) > 60 else "")
