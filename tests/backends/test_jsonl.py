"""The JSON-lines backend, on real processes: every misbehaviour has the outcome that its module's table says."""

from __future__ import annotations

import json
import os
import re
import signal
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from eval_backends.jsonl import JsonLines, parse_reply
from eval_core.backend import BackendError, Reply, Request

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="needs POSIX pipes"),
    pytest.mark.usefixtures("nothing_left"),
]

Adapter = Callable[..., JsonLines]
BAD = Request("bad", 3, "memory", "q1")


def pid(backend: JsonLines) -> str:
    """The id of the process that answers now; it is a scored row."""
    (answer,) = backend.search(Request("pid", 1)).ids
    return answer


# ------------------------------------------------------------------ what is passed on as it is


@pytest.mark.parametrize(
    ("body", "reply"),
    [
        ('reply({"ids": ["b", "a"]})', Reply(["b", "a"])),
        ('reply({"ids": []})', Reply([])),
        ('reply({"ids": ["a", "b"], "scores": [2, 0.5]})', Reply(["a", "b"], [2.0, 0.5])),
        ('reply({"ids": ["a"], "scores": None, "error": None, "id": None})', Reply(["a"])),
        ('reply({"ids": ["a"], "error": "", "id": "q1", "took_ms": 3})', Reply(["a"])),
        ('reply({"ids": ["a"], "error": False})', Reply(["a"])),
        ('reply({"ids": ["a", "a", "nowhere", "b", "c", "d"]})', Reply(["a", "a", "nowhere", "b", "c", "d"])),
        ('reply({"ids": [str(n) for n in range(100_000)]})', Reply([str(n) for n in range(100_000)])),
        ('raw(\'{"ids": ["\u00fc"]}\\r\\n\'.encode())', Reply(["ü"])),
        (
            'raw(b\'{"ids":\'); time.sleep(0.05); raw(b\' ["slow"]}\'); time.sleep(0.05); raw(b"\\n")',
            Reply(["slow"]),
        ),
        ('sys.stderr.write("x" * 10_000_000); reply({"ids": ["a"]})', Reply(["a"])),
        ('reply({"ids": ["a"]}); sys.stderr.write("x\\n" * 1_000_000)', Reply(["a"])),
    ],
    ids=[
        "order is rank",
        "none",
        "scores",
        "nulls",
        "own id",
        "no error",
        "over-long, repeated and unknown",
        "very long",
        "CRLF and UTF-8",
        "in pieces",
        "stderr flood before",
        "stderr flood after",
    ],
)
def test_a_valid_reply_is_passed_on(adapter: Adapter, body: str, reply: Reply) -> None:
    """A1: order is rank; repeated, unknown and surplus ids reach the harness, which counts them."""
    backend = adapter(body)
    before = pid(backend)
    assert backend.search(BAD) == reply
    assert pid(backend) == before


# ------------------------------------------------------------------ errored, and the process is kept

WRONG_IDS = "ids are not a list of texts"
WRONG_SCORES = "scores are not a list of numbers"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"error": "index is loading"}', "error reply: index is loading$"),
        ('{"ids": ["a"], "error": "half of it"}', "error reply: half of it"),
        ('{"error": {"code": 7}}', r'error reply: \{"code": 7\}'),
        (r'{"error": "\ud800"}', r"error reply: \?$"),
        ('{"ids": null}', WRONG_IDS),
        ('{"ids": "a"}', WRONG_IDS),
        ('{"ids": {"a": 1}}', WRONG_IDS),
        ('{"ids": ["a", 1]}', WRONG_IDS),
        ('{"ids": ["a", null]}', WRONG_IDS),
        ('{"ids": [true]}', WRONG_IDS),
        ('{"ids": [["a"]]}', WRONG_IDS),
        (r'{"ids": ["\ud800"]}', "lone surrogate"),
        ('{"ids": ["a"], "scores": 1}', WRONG_SCORES),
        ('{"ids": ["a"], "scores": ["1"]}', WRONG_SCORES),
        ('{"ids": ["a"], "scores": [true]}', WRONG_SCORES),
        ('{"ids": ["a"], "scores": [null]}', WRONG_SCORES),
        ('{"ids": ["a"], "scores": {"a": 1}}', WRONG_SCORES),
        ('{"ids": ["a"], "scores": []}', "0 scores for 1 ids"),
        ('{"ids": ["a"], "scores": [2, 1]}', "2 scores for 1 ids"),
        ('{"ids": ["a"], "scores": [NaN]}', "not finite"),
        ('{"ids": ["a"], "scores": [-Infinity]}', "not finite"),
        ('{"ids": ["a"], "scores": [1e999]}', "not finite"),
        ('{"ids": ["a"], "scores": [1' + "0" * 400 + "]}", "not finite"),
    ],
)
def test_a_whole_line_that_is_no_answer_errors_the_row_alone(adapter: Adapter, line: str, said: str) -> None:
    """A1: error replies and wrong types: the row is errored and the process goes on."""
    backend = adapter(f"raw({line!r}.encode() + b'\\n')")
    before = pid(backend)
    for _ in range(2):
        with pytest.raises(BackendError, match=said) as caught:
            backend.search(BAD)
        assert not caught.value.restarted
        assert len(str(caught.value)) < 600
    assert pid(backend) == before


# ------------------------------------------------------------------ errored, and the process is restarted


@pytest.mark.parametrize(
    ("body", "said", "options"),
    [
        ("raw(b'loading model\\n')", "wrote a line that is not JSON: 'loading model'$", {}),
        ("raw(b'{\"ids\": [\\n')", "wrote a line that is not JSON", {}),
        ("raw(b'\\n')", "wrote an empty line", {}),
        ("raw(b'[' * 200_000 + b'\\n')", "wrote a line that is not JSON", {}),
        ('raw(b\'{"ids": ["\\xff"]}\\n\')', r"wrote a line that is not UTF-8 \(byte 10\)", {}),
        ("raw(b'\\x00\\x80\\xfe\\n')", "wrote a line that is not UTF-8", {}),
        ("raw(b'\\xef\\xbb\\xbf{}\\n')", "wrote a line that is not JSON", {}),
        ("raw(b'NaN\\n')", "wrote a line that is not a JSON object: 'NaN'", {}),
        ('reply(["a"])', "wrote a line that is not a JSON object", {}),
        ('reply("ids")', "wrote a line that is not a JSON object", {}),
        ("reply(None)", "wrote a line that is not a JSON object", {}),
        ("reply({})", r"wrote a line without 'ids' or 'error': '\{\}'", {}),
        ('reply({"Ids": []})', r"wrote a line without 'ids' or 'error': '\{\"Ids\": \[\]\}'", {}),
        ('reply({"id": "q1", "error": None})', "wrote a line without 'ids' or 'error'", {}),
        (
            'reply({"level": "info"}); time.sleep(0.1); reply({"ids": ["late"]})',
            "without 'ids' or 'error'",
            {},
        ),
        (
            'reply({"ids": [], "id": "q0"})',
            "out of step: the reply is to 'q0', the request was 'q1'",
            {"send_id": True},
        ),
        ('reply({"ids": [], "id": 1})', "out of step: the reply is to 1,", {"send_id": True}),
        ('reply({"error": "late", "id": "q0"})', "out of step", {"send_id": True}),
        ("sys.exit(3)", "exited with code 3 before it replied$", {}),
        (
            "print('why\\nbecause', file=sys.stderr); sys.exit(4)",
            r"code 4 before it replied\n  stderr: why\n  stderr: because$",
            {},
        ),
        (
            "raise RuntimeError('boom')",
            r"(?s)exited with code 1 before it replied\n.*  stderr: RuntimeError: boom$",
            {},
        ),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "was killed by SIGSEGV before it replied", {}),
        ("raw(b'{\"ids\": []'); sys.exit(0)", "exited with code 0 in the middle of its reply", {}),
        ("raw(b'{\"ids\": []}'); sys.exit(0)", "exited with code 0 in the middle of its reply", {}),
        ("os.close(1); time.sleep(60)", "closed its output before it replied and kept running", {}),
        ("time.sleep(60)", r"gave no reply within 0\.5 s \(does it flush", {"timeout": 0.5}),
        (
            "raw(b'{\"ids\": []}'); time.sleep(60)",
            r"wrote 11 bytes and no newline within 0\.5 s",
            {"timeout": 0.5},
        ),
        ("while True: raw(b' '); time.sleep(0.01)", r"bytes and no newline within 0\.5 s", {"timeout": 0.5}),
        ("raw(b'x' * 5001 + b'\\n')", "a line longer than max_line = 5000 bytes", {"max_line": 5000}),
        (
            "while True: raw(b'x' * 65536)",
            "a line longer than max_line = 500000 bytes",
            {"max_line": 500_000},
        ),
        ("signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)", "gave no reply", {"timeout": 0.5}),
    ],
)
def test_a_process_out_of_order_is_ended_and_started_again(
    adapter: Adapter, body: str, said: str, options: dict[str, Any]
) -> None:
    """A1: garbage, early exit, a hang, an endless line: the row is errored, the next is asked of a new process."""
    backend = adapter(body, **options)
    before = pid(backend)
    for _ in range(2):
        with pytest.raises(BackendError, match=said) as caught:
            backend.search(BAD)
        assert caught.value.restarted
    after = pid(backend)
    assert after != before
    assert pid(backend) == after


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('reply({"ids": ["a"]}); raw(b"done\\n")', "a line that no request asked for: 'done"),
        ('reply({"ids": ["a"]}); reply({"ids": ["b"]})', "a line that no request asked for"),
        ('raw(b\'{"ids": ["a"]}\\n\\n\')', "a line that no request asked for"),
        ('reply({"ids": ["a"]}); sys.exit(5)', "exited with code 5 before"),
        (
            'reply({"ids": ["a"]}); os.close(0); time.sleep(60)',
            "closed its input before it read the request and kept running",
        ),
        (
            'reply({"ids": ["a"]}); os.close(1); time.sleep(60)',
            "closed its output before this request and kept running",
        ),
    ],
)
def test_what_happens_between_requests_errors_the_next_row(adapter: Adapter, body: str, said: str) -> None:
    """A1: an unsolicited line would answer the next request, so that one is errored, never answered by it."""
    backend = adapter(body)
    before = pid(backend)
    assert backend.search(BAD).ids == ["a"]
    time.sleep(0.2)
    with pytest.raises(BackendError, match=said) as caught:
        backend.search(Request("pid", 1))
    assert caught.value.restarted
    assert pid(backend) != before


def test_a_reply_without_an_id_is_no_fault(adapter: Adapter) -> None:
    backend = adapter('reply({"ids": [], "id": "own numbering"})')
    assert backend.search(Request("bad", 1)) == Reply([])


def test_a_long_request_is_sent_whole(adapter: Adapter) -> None:
    backend = adapter(head="sys.stdin.reconfigure(newline='\\n')")
    assert len(backend.search(Request("ü" * 1_000_000, 1)).ids) == 1


def test_a_process_that_stops_reading_is_timed_out(adapter: Adapter) -> None:
    backend = adapter('reply({"ids": []}); time.sleep(60)', timeout=0.5)
    backend.search(BAD)
    with pytest.raises(BackendError, match=r"did not read the request within 0\.5 s") as caught:
        backend.search(Request("x" * 1_000_000, 1))
    assert caught.value.restarted


def test_an_endless_line_is_not_held_in_memory(adapter: Adapter) -> None:
    backend = adapter("while True: raw(b'x' * 65536)", max_line=1_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(BackendError, match="longer than max_line"):
            backend.search(BAD)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_line_of_exactly_max_line_is_accepted(adapter: Adapter) -> None:
    backend = adapter("raw(b'{\"ids\": []}'.ljust(5000) + b'\\n')", max_line=5000)
    assert backend.search(BAD) == Reply([])


def test_a_request_that_was_interrupted_is_not_answered_by_the_next(adapter: Adapter) -> None:
    """Ctrl-C in the middle of a request leaves a reply on its way; the next request must not take it for its own."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    backend = adapter('time.sleep(0.4); reply({"ids": ["late"]})')
    earlier = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            backend.search(BAD)
    finally:
        signal.signal(signal.SIGALRM, earlier)
    with pytest.raises(BackendError, match="interrupted") as caught:
        backend.search(Request("pid", 1))
    assert caught.value.restarted
    assert pid(backend) != "late"


def test_a_reply_is_quoted_but_not_in_full() -> None:
    line = json.dumps({"ids": "x" * 5000}).encode()
    with pytest.raises(BackendError) as caught:
        parse_reply(json.loads(line), line)
    assert re.search(r"xxx'… \(5011 bytes\)$", str(caught.value))
