"""Any command as a backend: a process that stays up and is spoken to in JSON lines, one request in flight.

The request, one line: `{"kind", "query", "k"}`, and only where they are set `scope`, `filter`, `time`, `vector`,
`expand`, and `id` with the option `send_id`. The reply, one line: `{"ids"}` in rank order, and optionally `id`,
`scores`, `error`. The corpus reaches the command as `{corpus}` in its argument list, or, with the capability
`reindex`, as a line `{"index": PATH}` that is answered by `{"indexed": N}`: one process then takes one corpus after the
other. After each start one warm-up is sent that is not scored.

"Restarted" means ended with all that it started, and started again within the same request, so that no later
request's latency pays for it. "Row" is the outcome of the one query.

==========================================================  =======  =========
what the process does                                       row      process
==========================================================  =======  =========
`ids`, as many as asked for or fewer, none included         scored   kept
more ids than asked for, an id twice, an unknown id         passed   kept
                                                            on [1]_
`error` that is not null, false or empty                    errored  kept
`ids` no list of texts; `scores` no list of finite numbers  errored  kept
(`true` and NaN are none), or not one an id
`id` other than the request's                               errored  restarted
a line that is no reply: not JSON, not UTF-8, empty, no     errored  restarted
object, or an object with neither `ids` nor `error`                  [2]_
output before the request (an unsolicited line)             errored  restarted
no whole line within `timeout`; a line without its newline  errored  restarted
a line longer than `max_line`                               errored  restarted
exit, also in the middle of a reply; a closed pipe          errored  restarted
any amount of standard error                                scored   kept [3]_
SIGTERM ignored; children left behind                       –        killed
does not start: not found, exits, silent, first line no     none     none [4]_
reply; `indexed` is not the number of documents
==========================================================  =======  =========

.. [1] The harness counts duplicates and what exceeds the limit, and finds an unknown id an error.
.. [2] Something else writes there, and the true reply may still come: kept, the process could be one reply behind
       for the rest of the run without anyone noticing.
.. [3] It is read all the time, and its last 8 KiB are quoted when the process fails.
.. [4] `index` raises CouldNot. A restart that fails leaves the row errored, and the next request tries again.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from eval_backends import options
from eval_backends.process import HINT, Broken, LineProcess
from eval_core.backend import CAPABILITIES, BackendError, Corpus, Reply, Request
from eval_core.console import redacted
from eval_core.errors import CouldNot, Misuse, did_you_mean

#: How long a process may take to end by itself when its input is closed, and again after SIGTERM, in seconds.
GRACE = 1.0

#: The query of the warm-up.
WARM_UP = "warm up"

_MEND = (
    "give the program and its arguments as a list of texts, such as ['{python}', 'adapter.py', '{corpus}']"
)
_Read = TypeVar("_Read")
_PLACEHOLDER = re.compile(r"\{(corpus|python)\}")
# Not escaped to ASCII: an adapter written with text tools should see the query's own characters.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


class JsonLines:
    """A backend that is a command of one's own; this module's table says what each misbehaviour leads to.

    Options: `command`, a list of texts, never a line for a shell; `{corpus}` in an argument becomes the absolute
    path of the corpus file, `{python}` the running interpreter, and any other braces stay. `capabilities` that the
    command declares to have. `timeout` and `start_timeout` in seconds: the longest for one request, and for starting
    with the warm-up or indexing a corpus that is sent. `max_line` in bytes: the longest line that is accepted.
    `send_id`: send the query's id, which is all that a command needs to look up the judgements.

    Raises:
        Misuse: an option has a wrong type or value.
    """

    def __init__(
        self,
        command: Sequence[str],
        capabilities: Sequence[str] = (),
        timeout: float = 10.0,
        start_timeout: float = 60.0,
        max_line: int = 8 * 1024 * 1024,
        send_id: bool = False,
    ) -> None:
        if isinstance(command, str):
            options.refuse("jsonl", "command", command, f"no shell is used; {_MEND}")
        self._command = options.texts("jsonl", "command", command, _MEND)
        if not self._command or not self._command[0]:
            options.refuse("jsonl", "command", command, f"names no program; {_MEND}")
        for argument in self._command:
            if "\0" in argument:
                options.refuse("jsonl", "command", command, "no argument can hold a NUL character")
        self._capabilities = frozenset(
            options.texts("jsonl", "capabilities", capabilities, "give a list such as ['filter']")
        )
        for name in sorted(self._capabilities - CAPABILITIES):
            known = ", ".join(sorted(CAPABILITIES))
            near = f"{did_you_mean(name, CAPABILITIES)}  (known: {known})"
            what = f"there is no capability {name!r}{near}"
            raise Misuse("capability-unknown", what, subject="backend 'jsonl'", key="capabilities")
        self._reindexes = "reindex" in self._capabilities
        if self._reindexes and any("{corpus}" in argument for argument in self._command):
            what = "with the capability 'reindex' the command gets no {corpus}: each is sent as a line"
            options.refuse("jsonl", "command", command, f'{what}, {{"index": PATH}}')
        self._timeout = options.number("jsonl", "timeout", timeout, 0.001, 86400.0)
        self._start_timeout = options.number("jsonl", "start_timeout", start_timeout, 0.001, 86400.0)
        self._max_line = options.whole("jsonl", "max_line", max_line, 1, 2**31 - 1)
        self._send_id = options.flag("jsonl", "send_id", send_id)
        self._lock = threading.RLock()
        self._arguments: list[str] = []
        self._kind = self._corpus = ""
        self._documents = 0
        self._process: LineProcess | None = None

    @property
    def capabilities(self) -> frozenset[str]:
        """What the option declares."""
        return self._capabilities

    def describe(self) -> Mapping[str, Any]:
        """The protocol alone: the command stands in the options, and what it runs is not seen from here."""
        return {"protocol": "jsonl-v1"}

    def index(self, corpus: Corpus) -> None:
        """Start the command on the corpus file and send the warm-up, or send the file to the command that runs.

        Raises:
            CouldNot: it is not found, exits, or gives no reply within `start_timeout`; it did not index all documents.
        """
        with self._lock:
            if os.name != "posix":
                raise CouldNot("platform", "needs a POSIX system (pipes that can be polled)", subject="jsonl")
            self._kind, self._documents = corpus.kind, len(corpus)
            self._corpus = os.path.abspath(corpus.path)
            try:
                if self._process is not None and self._reindexes:
                    self._hand_over(self._process)
                    return
                self.close()
                values = {"corpus": self._corpus, "python": sys.executable}
                self._arguments = [_PLACEHOLDER.sub(lambda at: values[at[1]], part) for part in self._command]
                self._start()
            except BaseException:
                self.close()
                raise

    def _start(self) -> None:
        """Start the process and have the warm-up answered; nothing is left running where that fails."""
        try:
            process = LineProcess(self._arguments, self._max_line)
        except OSError as error:
            raise CouldNot(
                "backend-start-failed",
                f"cannot start the command: {error.strerror or error}: {shlex.join(self._arguments)}",
                mend=_advice(self._arguments[0]),
            ) from error
        try:
            if self._reindexes:
                self._hand_over(process)
            self._get(process, self._line(Request(WARM_UP, 1, self._kind)), read_line)
        except BaseException:
            process.stop()
            raise
        self._process = process

    def _hand_over(self, process: LineProcess) -> None:
        """Send the corpus as a line, and have all its documents indexed.

        Raises:
            CouldNot: it was not answered by the number of documents.
        """
        indexed = self._get(process, _encode({"index": self._corpus}).encode("utf-8") + b"\n", read_indexed)
        if indexed != self._documents:
            what = f"the command indexed {indexed} of {self._documents} documents"
            raise CouldNot("backend-failed", f"{what}: {shlex.join(self._arguments)}")

    def _get(self, process: LineProcess, line: bytes, read: Callable[[bytes], _Read]) -> _Read:
        """What the process replies to a line that is no request of the set, within `start_timeout`.

        Raises:
            CouldNot: there is no reply that `read` takes.
        """
        try:
            raw = process.ask(line, self._start_timeout)
            try:
                return read(raw)
            except NoReply as fault:
                raise Broken(f"{fault}{HINT}") from None
        except Broken as fault:
            process.stop()
            what = f"the command {fault}: {shlex.join(self._arguments)}{_quoted(process.tail(), 20)}"
            raise CouldNot("backend-start-failed", redacted(what)) from None

    def search(self, request: Request) -> Reply:
        """Answer one request with what the process replies, unchanged.

        Raises:
            BackendError: this module's table says when; `restarted` where the process had to be.
        """
        with self._lock:
            if not self._arguments:
                raise BackendError("jsonl: search before index")
            line = self._line(request)
            if self._process is None:
                try:
                    self._start()
                except CouldNot as error:
                    raise BackendError(f"cannot be started again: {error}", restarted=True) from None
            process = self._process
            if process is None:
                raise BackendError("jsonl: closed")
            try:
                raw = process.ask(line, self._timeout)
            except Broken as fault:
                self._again(process, f"the process {fault}")
            return self._reply(process, request, raw)

    def _reply(self, process: LineProcess, request: Request, raw: bytes) -> Reply:
        try:
            message = read_line(raw)
        except NoReply as fault:
            self._again(process, f"the process {fault}")
        if self._send_id and request.id and message.get("id") not in (None, request.id):
            answered = repr(message["id"])[:200]
            self._again(process, f"out of step: the reply is to {answered}, the request was {request.id!r}")
        return parse_reply(message, raw)

    def _again(self, process: LineProcess, fault: str) -> NoReturn:
        """End the process, start it again, and raise the error of this row."""
        self._process = None
        process.stop()
        fault += _quoted(process.tail(), 3)
        try:
            self._start()
        except CouldNot as error:
            fault += f"\nand it cannot be started again: {error}"
        raise BackendError(fault, restarted=True) from None

    def _line(self, request: Request) -> bytes:
        """The request as the line that is sent.

        Raises:
            BackendError: it cannot be written as JSON in UTF-8.
        """
        message: dict[str, Any] = {"kind": request.kind or self._kind, "query": request.text, "k": request.k}
        if self._send_id and request.id:
            message["id"] = request.id
        if request.scope is not None:
            message["scope"] = request.scope
        if request.filter:
            message["filter"] = dict(request.filter)
        if request.time:
            message["time"] = dict(request.time)
        if request.vector is not None:
            message["vector"] = [float(value) for value in request.vector]
        if request.expand:
            message["expand"] = True
        try:
            return _encode(message).encode("utf-8") + b"\n"
        except ValueError as error:
            raise BackendError(f"the request cannot be sent: {error}") from error

    def close(self) -> None:
        """Close the process's input, give it a second to end, and end it with all that it started."""
        with self._lock:
            process, self._process, self._arguments = self._process, None, []
            if process is not None:
                process.stop(GRACE)


class NoReply(Exception):
    """A line that cannot be a reply: something else is being written, and what follows may answer nothing either."""


def read_line(raw: bytes) -> dict[str, Any]:
    """Return the JSON object of a line that is a reply at all: it has `ids` or a non-empty `error`.

    Raises:
        NoReply: it is none. Were the process kept, its true reply might come late and be taken for the next one's.
    """
    try:
        value = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise NoReply(f"wrote a line that is not UTF-8 (byte {error.start}): {_shown(raw)}") from None
    except (ValueError, RecursionError):
        raise NoReply(
            f"wrote a line that is not JSON: {_shown(raw)}" if raw.strip() else "wrote an empty line"
        ) from None
    if not isinstance(value, dict):
        raise NoReply(f"wrote a line that is not a JSON object: {_shown(raw)}")
    if "ids" not in value and not value.get("error"):
        raise NoReply(f"wrote a line without 'ids' or 'error': {_shown(raw)}")
    return value


def read_indexed(raw: bytes) -> int:
    """Return how many documents a line `{"indexed": N}` says were indexed.

    Raises:
        NoReply: it says something else.
    """
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        value = None
    indexed = value.get("indexed") if isinstance(value, dict) else None
    if isinstance(indexed, bool) or not isinstance(indexed, int):
        raise NoReply(f'did not answer {{"index": PATH}} by {{"indexed": N}}: {_shown(raw)}')
    return indexed


def parse_reply(message: Mapping[str, Any], raw: bytes = b"") -> Reply:
    """Read the object of a reply; `raw`, the line it came from, is quoted.

    Raises:
        BackendError: it is an error reply, or its values have wrong types.
    """
    error = message.get("error")
    if error:
        text = error if isinstance(error, str) else json.dumps(error)
        # A lone surrogate could not be written to the report.
        raise BackendError(f"error reply: {text[:500].encode('utf-8', 'replace').decode('utf-8')}")
    ids, scores = message["ids"], message.get("scores")
    if not isinstance(ids, list) or not set(map(type, ids)) <= {str}:
        raise BackendError(f"the reply's ids are not a list of texts: {_shown(raw)}")
    if b"\\u" in raw and any("\ud800" <= character <= "\udfff" for name in ids for character in name):
        raise BackendError(
            f"the reply's ids hold a lone surrogate escape, which is not a character: {_shown(raw)}"
        )
    if scores is None:
        return Reply(ids)
    if not isinstance(scores, list) or not set(map(type, scores)) <= {int, float}:
        raise BackendError(f"the reply's scores are not a list of numbers: {_shown(raw)}")
    if len(scores) != len(ids):
        raise BackendError(f"the reply has {len(scores)} scores for {len(ids)} ids: {_shown(raw)}")
    try:
        numbers = [float(score) for score in scores]
    except OverflowError:
        numbers = [math.inf]
    if not all(map(math.isfinite, numbers)):
        raise BackendError(f"the reply has a score that is not finite: {_shown(raw)}")
    return Reply(ids, numbers)


def _shown(raw: bytes) -> str:
    text = repr(raw[:120].decode("utf-8", "replace"))
    return text if len(raw) <= 120 else f"{text}… ({len(raw)} bytes)"


def _quoted(tail: str, lines: int) -> str:
    """The last lines of standard error, indented, or nothing."""
    kept = tail.splitlines()[-lines:]
    return "".join(f"\n  stderr: {line[:300]}" for line in kept)


def _advice(program: str) -> str | None:
    if any(blank in program for blank in " \t"):
        return "the first text is the program alone; each argument is a text of its own"
    if os.sep in program and not Path(program).exists():
        return f"a relative path starts at {os.getcwd()}" if not os.path.isabs(program) else None
    return None
