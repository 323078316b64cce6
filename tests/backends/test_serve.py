"""`eval-backends serve` and `list`, on real processes."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from eval_backends.bm25 import BM25
from eval_backends.jsonl import JsonLines
from eval_backends.serve import MAX_LINE, parse_options, parse_request
from eval_core.backend import CAPABILITIES, BackendError, Request
from eval_core.errors import Misuse
from eval_core.sets.corpus import CorpusFile

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "eval_backends"]

Run = Callable[..., subprocess.CompletedProcess[bytes]]
Installed = Callable[[Mapping[str, str]], dict[str, str]]


def answers(done: subprocess.CompletedProcess[bytes]) -> list[Any]:
    return [json.loads(line) for line in done.stdout.splitlines()]


# ------------------------------------------------------------------ equal to the backend in the process


def test_a_served_backend_answers_as_it_does_in_the_process(facts: CorpusFile) -> None:
    """A1: the same ids and, bit for bit, the same scores through the subprocess."""
    file = facts
    inside = BM25(k1=1.2, tokenizer="words")
    outside = JsonLines(
        ["{python}", "-m", "eval_backends", "serve", "bm25", "--corpus", "{corpus}", "--option", "k1=1.2"],
        capabilities=["filter"],
    )
    try:
        inside.index(file)
        outside.index(file)
        for text in ("vpn", "the vpn on friday", "größenwahn", "c++", "", "unheard", "the " * 2000):
            for wanted in (None, {"kind": "rule"}, {"kind": "nothing"}):
                request = Request(text, 3, "memory", "q1", filter=wanted)
                assert outside.search(request) == inside.search(request)
    finally:
        outside.close()
        inside.close()


def test_one_served_process_takes_one_corpus_after_the_other(tmp_path: Path) -> None:
    """A1: the answers are those of a process a corpus; each index is that of its own documents alone."""
    files = []
    for number, texts in enumerate((["the vpn", "on friday"], ["a vpn again", "vpn vpn", "friday"]), start=1):
        path = tmp_path / f"corpus {number}.jsonl"
        documents = [{"_id": f"s{number}/{place}", "text": text} for place, text in enumerate(texts)]
        path.write_text("".join(json.dumps(document) + "\n" for document in documents))
        files.append(CorpusFile(path, "memory"))
    command = ["{python}", "-m", "eval_backends", "serve", "bm25"]
    kept = JsonLines(command, capabilities=["reindex"])
    processes = set()
    try:
        for file in [*files, files[0]]:
            kept.index(file)
            assert kept._process is not None
            processes.add(kept._process)
            anew = JsonLines([*command, "--corpus", "{corpus}"])
            with contextlib.closing(anew):
                anew.index(file)
                for text in ("vpn", "friday"):
                    assert kept.search(Request(text, 3)) == anew.search(Request(text, 3))
    finally:
        kept.close()
    assert len(processes) == 1


def test_a_corpus_that_cannot_be_indexed_is_an_error_reply_and_the_next_is_read(
    run: Run, facts: CorpusFile, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{")
    sent = [
        {"query": "vpn", "k": 1},
        {"index": str(tmp_path / "nowhere.jsonl")},
        {"index": str(broken)},
        {"query": "vpn", "k": 1},
        {"index": str(facts.path), "k": 1},
        {"index": 7},
        {"index": str(facts.path)},
        {"query": "vpn", "k": 1, "id": "q"},
    ]
    done = run(["serve", "bm25"], "".join(json.dumps(line) + "\n" for line in sent).encode())
    replies = answers(done)
    assert done.returncode == 0
    assert [sorted(reply) for reply in replies] == [["error"]] * 6 + [["indexed"], ["id", "ids", "scores"]]
    assert replies[6] == {"indexed": 5}
    for reply, said in zip(
        replies,
        ("no corpus is indexed", "nowhere.jsonl", "broken.jsonl:1", "no corpus", "malformed", "malformed"),
        strict=False,
    ):
        assert said in reply["error"]


# ------------------------------------------------------------------ requests and replies


def test_a_reply_a_request_in_order_whatever_it_is(run: Run, facts: CorpusFile) -> None:
    """A malformed request is answered with an error, and the next one is read."""
    lines: list[tuple[bytes, str]] = [
        (b'{"query": "deferred", "k": 1}', r'{"ids": ["f1"], '),
        (b"", "malformed request: not JSON"),
        (b"vpn", "malformed request: not JSON"),
        (b"\xff", "malformed request: not UTF-8 at byte 0"),
        (b"[" * 100_000, "malformed request: not JSON"),
        (b'["vpn"]', "is not a JSON object"),
        (b'{"query": "vpn"}', "has no 'k'"),
        (b'{"k": 1, "query": null}', "has no 'query'"),
        (b'{"k": 0, "query": "vpn"}', "k = 0 is not a whole number of at least 1"),
        (b'{"k": true, "query": "vpn", "id": "q1"}', "k = True"),
        (b'{"k": 1, "query": "vpn", "scope": "a"}', "cannot answer 'scope': it has no capability 'scope'"),
        (b"x" * (MAX_LINE + 1), f"longer than {MAX_LINE} bytes"),
        (b"x" * (3 * MAX_LINE), f"longer than {MAX_LINE} bytes"),
        (
            b'{"query": "loopback", "k": 1, "id": "\xc3\xbc", "kind": "memory"}',
            r'{"id": "\u00fc", "ids": ["f3"], ',
        ),
    ]
    done = run(["serve", "bm25", "--corpus", str(facts.path)], b"\n".join(line for line, _ in lines))
    replies = done.stdout.decode("ascii").splitlines()
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(replies) == len(lines)
    for reply, (line, said) in zip(replies, lines, strict=True):
        value = json.loads(reply)
        if said.startswith("{"):
            assert reply.startswith(said)
        else:
            assert said in value["error"]
            assert value.get("id") == ("q1" if b"q1" in line else None)


def test_each_reply_is_written_at_once(facts: CorpusFile) -> None:
    command = [*COMMAND, "serve", "bm25", "--corpus", str(facts.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        for _ in range(3):
            process.stdin.write(b'{"query": "deferred", "k": 1}\n')
            process.stdin.flush()
            assert process.stdout.readline().startswith(b'{"ids": ["f1"]')
        process.stdin.close()
        assert process.wait(10) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_it_without_a_word(facts: CorpusFile, number: signal.Signals) -> None:
    command = [*COMMAND, "serve", "bm25", "--corpus", str(facts.path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write(b'{"query": "vpn", "k": 1}\n')
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(number)
        assert (process.wait(10), process.stdout.read(), process.stderr.read()) == (3, b"", b"")


def test_a_reader_that_goes_away_ends_it(facts: CorpusFile) -> None:
    command = [*COMMAND, "serve", "bm25", "--corpus", str(facts.path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdout.close()
        process.stdin.write(b'{"query": "vpn", "k": 1}\n')
        process.stdin.flush()
        assert (process.wait(10), process.stderr.read()) == (3, b"")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"query": 1, "k": 1}, "query = 1 is not a text"),
        ({"query": "a", "k": 1.0}, "k = 1.0 is not a whole number"),
        ({"query": "a", "k": -1}, "k = -1"),
        ({"query": "a", "k": 1, "kind": 1}, "kind = 1 is not a text"),
        ({"query": "a", "k": 1, "id": 1}, "id = 1 is not a text"),
        ({"query": "a", "k": 1, "filters": {}}, r"unknown key 'filters'; did you mean 'filter'\?"),
        ({"query": "a", "k": 1, "filter": ["kind"]}, "filter = .* is not an object of texts"),
        ({"query": "a", "k": 1, "filter": {"kind": 1}}, "is not an object of texts"),
        ({"query": "a", "k": 1, "time": {}}, "time = {} is not"),
        ({"query": "a", "k": 1, "time": {"as_of": True}}, "time = "),
        ({"query": "a", "k": 1, "time": {"as_of": 1, "historical": True}}, "time = "),
        ({"query": "a", "k": 1, "time": {"between": [3, 1]}}, "time = "),
        ({"query": "a", "k": 1, "time": {"historical": 1}}, "time = "),
        ({"query": "a", "k": 1, "vector": [1, True]}, "vector = .* is not a list of finite numbers"),
        ({"query": "a", "k": 1, "vector": [float("nan")]}, "vector = "),
        ({"query": "a", "k": 1, "vector": [10**400]}, "vector = "),
        ({"query": "a", "k": 1, "expand": "yes"}, "expand = 'yes' is not true or false"),
    ],
)
def test_a_malformed_request_is_told_what_is_wrong(message: dict[str, Any], said: str) -> None:
    with pytest.raises(BackendError, match=said):
        parse_request(message, CAPABILITIES, "any")


@pytest.mark.parametrize(
    ("key", "value", "capability"),
    [
        ("scope", "s", "scope"),
        ("filter", {"kind": "a"}, "filter"),
        ("time", {"as_of": 1}, "temporal"),
        ("vector", [0.5], "vectors"),
        ("expand", True, "expand"),
    ],
)
def test_what_a_backend_cannot_do_is_an_error_and_never_left_out(
    key: str, value: Any, capability: str
) -> None:
    message = {"query": "a", "k": 1, key: value}
    with pytest.raises(
        BackendError, match=f"'any' cannot answer '{key}': it has no capability '{capability}'"
    ):
        parse_request(message, CAPABILITIES - {capability}, "any")
    assert getattr(parse_request(message, frozenset({capability}), "any"), key) == value


def test_null_and_empty_ask_for_nothing() -> None:
    message = {
        "query": "",
        "k": 1,
        "kind": None,
        "id": None,
        "scope": None,
        "time": None,
        "vector": None,
        "filter": {},
        "expand": False,
    }
    assert parse_request(message, frozenset(), "any", "memory") == Request("", 1, "memory", filter={})


# ------------------------------------------------------------------ options and failures


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1.2", 1.2),
        ("3", 3),
        ("true", True),
        ('"words"', "words"),
        ("'1'", "1"),
        ('["a", "b"]', ["a", "b"]),
        ("{ a = 1 }", {"a": 1}),
        ("words", "words"),
        ("bge-small-en", "bge-small-en"),
        ("1.2.3", "1.2.3"),
        ("a=b", "a=b"),
        ("2026-11-30", "2026-11-30"),
        ("", ""),
        (" x ", "x"),
        ("1\nother = 2", "1\nother = 2"),
        ("/tmp/a b", "/tmp/a b"),
    ],
)
def test_an_option_is_a_toml_value_or_a_bare_word(written: str, value: Any) -> None:
    (parsed,) = parse_options((f"key={written}",)).values()
    assert parsed == value and type(parsed) is type(value)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (("k1",), "'k1': write it as KEY=VALUE"),
        (("=1",), "'=1': write it as KEY=VALUE"),
        (("k1=1", "k1=2"), "k1 was given twice"),
        (("k1=[1",), r"'k1=\[1': is not a TOML value"),
        (('k1="a',), "not a TOML value"),
    ],
)
def test_an_option_that_cannot_be_read_is_refused(written: tuple[str, ...], said: str) -> None:
    with pytest.raises(Misuse, match=said):
        parse_options(written)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["serve", "bm52", "--corpus", "FILE"], 2, "there is no backend 'bm52'; did you mean 'bm25'?"),
        (["serve", "--corpus", "FILE"], 2, "NAME"),
        (
            ["serve", "bm25", "--corpus", "FILE", "--option", "tokeniser=words"],
            2,
            "tokeniser: there is no such option; did you mean 'tokenizer'?",
        ),
        (["serve", "bm25", "--corpus", "FILE", "--option", "k1=true"], 2, "k1 = True: give a number"),
        (["serve", "jsonl", "--corpus", "FILE"], 2, "command: the option is required"),
        (["serve", "bm25", "--corpus", "ABSENT"], 3, "cannot be read"),
        (["serve", "bm25", "--corpus", "BROKEN"], 2, "broken.jsonl:2: has no '_id'"),
        (
            ["serve", "jsonl", "--corpus", "FILE", "--option", "command=['absent']"],
            3,
            "cannot start the command",
        ),
        (["sevre"], 2, "there is no verb 'sevre'; did you mean 'serve'?"),
    ],
)
def test_what_cannot_be_served_exits_2_or_3_and_says_why(
    run: Run, facts: CorpusFile, tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    (tmp_path / "broken.jsonl").write_text('{"_id": "a", "text": "t"}\n{}\n')
    paths = {"FILE": facts.path, "ABSENT": tmp_path / "absent", "BROKEN": tmp_path / "broken.jsonl"}
    done = run([str(paths.get(argument, argument)) for argument in arguments], b'{"query": "vpn", "k": 1}\n')
    assert (done.returncode, done.stdout) == (code, b"")
    assert said in done.stderr.decode()
    assert b"Traceback" not in done.stderr


# ------------------------------------------------------------------ somebody else's backend


Ask = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def ask(run: Run, installed: Installed, facts: CorpusFile) -> Ask:
    """Serve a backend that prints wherever it can, and ask it some queries."""

    def call(*queries: str, arguments: Sequence[str] = ()) -> subprocess.CompletedProcess[bytes]:
        environment = installed({"noisy": "noisy:Noisy"})
        sent = "".join(json.dumps({"query": query, "k": 1}) + "\n" for query in queries).encode()
        return run(["serve", "noisy", "--corpus", str(facts.path), *arguments], sent, environment)

    return call


def test_nothing_but_replies_reaches_standard_output(ask: Ask) -> None:
    """What the backend or its children print goes to standard error."""
    done = ask("a", "b", arguments=["--kind", "memory"])
    assert answers(done) == [{"ids": ["memory"]}] * 2
    assert done.returncode == 0
    for text in (
        b"printed at import",
        b"printed when made",
        b"kind memory",
        b"printed by search",
        b"written to 1",
        b"closed",
    ):
        assert text in done.stderr
    assert b"query" not in done.stderr


def test_a_child_of_the_backend_cannot_take_a_request(
    installed: Installed, facts: CorpusFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would wait for the next request, and the reply with it."""
    monkeypatch.setenv("PYTHONPATH", installed({"noisy": "noisy:Noisy"})["PYTHONPATH"])
    backend = JsonLines(
        ["{python}", "-m", "eval_backends", "serve", "noisy", "--corpus", "{corpus}"], timeout=5
    )
    try:
        backend.index(facts)
        assert [backend.search(Request(query, 1, query)).ids for query in ("one", "two")] == [
            ["one"],
            ["two"],
        ]
    finally:
        backend.close()


def test_a_failing_request_is_an_error_reply_and_the_next_is_answered(ask: Ask) -> None:
    done = ask("error", "fault", "nan", "fine")
    assert answers(done) == [
        {"error": "no answer to this"},
        {"error": "ValueError: a fault"},
        {"error": "the backend gave a score that is not finite"},
        {"ids": [""]},
    ]
    assert done.returncode == 0
    assert b'raise ValueError("a fault")' in done.stderr


def test_a_backend_that_is_gone_for_good_ends_it(ask: Ask) -> None:
    done = ask("fine", "gone", "fine")
    assert (answers(done), done.returncode) == ([{"ids": [""]}], 3)
    assert b"the service has gone away" in done.stderr
    assert b"closed" in done.stderr


@pytest.mark.parametrize(
    ("fail", "said"),
    [("index", b"the model is not there"), ("index-error", b"cannot index .*: the store is down")],
)
def test_a_backend_that_cannot_index_exits_3(ask: Ask, fail: str, said: bytes) -> None:
    done = ask("a", arguments=["--option", f"fail={fail}"])
    assert (done.returncode, done.stdout) == (3, b"")
    assert re.search(said, done.stderr)
