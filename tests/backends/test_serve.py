"""`eval-backends serve` and `list`, on real processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from eval_backends.bm25 import BM25
from eval_backends.jsonl import JsonLines
from eval_backends.serve import MAX_LINE, parse_options, parse_request
from eval_core.backend import CAPABILITIES, BackendError, Request
from eval_core.corpus import CorpusFile
from eval_core.errors import Misuse

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "eval_backends"]
FACTS = {
    "f1": {"text": "the vpn is deferred until the second quarter", "metadata": {"kind": "decision"}},
    "f2": {"text": "deploys go out on tuesday and never on friday", "metadata": {"kind": "rule"}},
    "f3": {"text": "the forge listens on loopback only", "metadata": {"kind": "rule"}},
    "f4": {"text": "", "metadata": {"kind": "rule"}},
    "f5": {"text": "Über den Größenwahn: „vpn“ and C++", "metadata": {"kind": "fact"}},
}

Corpus = Callable[..., CorpusFile]
Installed = Callable[..., dict[str, str]]


def run(
    arguments: Sequence[str], sent: bytes = b"", environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*COMMAND, *arguments], input=sent, capture_output=True, timeout=60, env=environment)


def answers(done: subprocess.CompletedProcess[bytes]) -> list[Any]:
    return [json.loads(line) for line in done.stdout.splitlines()]


# ------------------------------------------------------------------ equal to the backend in the process


def test_a_served_backend_answers_as_it_does_in_the_process(corpus: Corpus) -> None:
    """A1: the same ids and, bit for bit, the same scores through the subprocess."""
    file = corpus(FACTS)
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


# ------------------------------------------------------------------ requests and replies


def test_a_reply_a_request_in_order_whatever_it_is(corpus: Corpus) -> None:
    """A malformed request is answered with an error, and the next one is read."""
    lines: list[tuple[bytes, str]] = [
        (b'{"query": "vpn", "k": 1}', r'{"ids": ["f1"], '),
        (b"", "malformed request: not JSON"),
        (b"vpn", "malformed request: not JSON"),
        (b"\xff", "malformed request: not UTF-8 at byte 0"),
        (b"[" * 100_000, "malformed request: not JSON"),
        (b'["vpn"]', "is no JSON object"),
        (b'{"query": "vpn"}', "has no 'k'"),
        (b'{"k": 1, "query": null}', "has no 'query'"),
        (b'{"k": 0, "query": "vpn"}', "k = 0 is not a whole number of at least 1"),
        (b'{"k": true, "query": "vpn", "id": "q1"}', "k = True"),
        (b'{"k": 1, "query": "vpn", "scope": "a"}', "cannot answer 'scope': it has no capability 'scope'"),
        (b"x" * (MAX_LINE + 1), f"longer than {MAX_LINE} bytes"),
        (b"x" * (3 * MAX_LINE), f"longer than {MAX_LINE} bytes"),
        (b'{"query": "loopback", "k": 1, "id": "\xc3\xbc", "kind": "memory"}', r'{"id": "\u00fc", "ids": ["f3"], '),
    ]
    done = run(["serve", "bm25", "--corpus", str(corpus(FACTS).path)], b"\n".join(line for line, _ in lines))
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


def test_each_reply_is_written_at_once(corpus: Corpus) -> None:
    command = [*COMMAND, "serve", "bm25", "--corpus", str(corpus(FACTS).path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        for _ in range(3):
            process.stdin.write(b'{"query": "vpn", "k": 1}\n')
            process.stdin.flush()
            assert process.stdout.readline().startswith(b'{"ids": ["f1"]')
        process.stdin.close()
        assert process.wait(10) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_it_without_a_word(corpus: Corpus, number: signal.Signals) -> None:
    command = [*COMMAND, "serve", "bm25", "--corpus", str(corpus(FACTS).path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write(b'{"query": "vpn", "k": 1}\n')
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(number)
        assert (process.wait(10), process.stdout.read(), process.stderr.read()) == (3, b"", b"")


def test_a_reader_that_goes_away_ends_it(corpus: Corpus) -> None:
    command = [*COMMAND, "serve", "bm25", "--corpus", str(corpus(FACTS).path)]
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
def test_what_a_backend_cannot_do_is_an_error_and_never_left_out(key: str, value: Any, capability: str) -> None:
    message = {"query": "a", "k": 1, key: value}
    with pytest.raises(BackendError, match=f"'any' cannot answer '{key}': it has no capability '{capability}'"):
        parse_request(message, CAPABILITIES - {capability}, "any")
    assert getattr(parse_request(message, frozenset({capability}), "any"), key) == value


def test_null_and_empty_ask_for_nothing() -> None:
    message = {
        **{"query": "", "k": 1, "kind": None, "id": None, "scope": None, "time": None, "vector": None},
        **{"filter": {}, "expand": False},
    }
    assert parse_request(message, frozenset(), "any", "memory") == Request("", 1, "memory", filter={})


# ------------------------------------------------------------------ options and failures


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1.2", 1.2), ("3", 3), ("true", True), ('"words"', "words"), ("'1'", "1"), ('["a", "b"]', ["a", "b"]),
        ("{ a = 1 }", {"a": 1}), ("words", "words"), ("bge-small-en", "bge-small-en"), ("1.2.3", "1.2.3"), ("a=b", "a=b"),
        ("2026-11-30", "2026-11-30"), ("", ""), (" x ", "x"), ("1\nother = 2", "1\nother = 2"), ("/tmp/a b", "/tmp/a b"),
    ],
)  # fmt: skip
def test_an_option_is_a_toml_value_or_a_bare_word(written: str, value: Any) -> None:
    (parsed,) = parse_options((f"key={written}",)).values()
    assert parsed == value and type(parsed) is type(value)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (("k1",), "'k1': write it as KEY=VALUE"),
        (("=1",), "'=1': write it as KEY=VALUE"),
        (("k1=1", "k1=2"), "k1 is given twice"),
        (("k1=[1",), r"'k1=\[1': not a TOML value"),
        (('k1="a',), "not a TOML value"),
    ],
)
def test_an_option_that_cannot_be_read_is_refused(written: tuple[str, ...], said: str) -> None:
    with pytest.raises(Misuse, match=said):
        parse_options(written)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["serve", "bm52", "--corpus", "FILE"], 2, "no such backend 'bm52'; did you mean 'bm25'?"),
        (["serve", "bm25"], 2, "--corpus"),
        (["serve", "--corpus", "FILE"], 2, "NAME"),
        (["serve", "bm25", "--corpus", "FILE", "--option", "k2=1"], 2, "has no option 'k2'; did you mean 'k1'?"),
        (["serve", "bm25", "--corpus", "FILE", "--option", "k1=true"], 2, "k1 = True: give a number"),
        (["serve", "jsonl", "--corpus", "FILE"], 2, "needs the option 'command'"),
        (["serve", "bm25", "--corpus", "ABSENT"], 3, "cannot be read"),
        (["serve", "bm25", "--corpus", "BROKEN"], 2, "broken.jsonl:2  has no '_id'"),
        (["serve", "jsonl", "--corpus", "FILE", "--option", "command=['absent']"], 3, "cannot start the command"),
        (["sevre"], 2, "no such verb 'sevre'; did you mean 'serve'?"),
    ],
)
def test_what_cannot_be_served_exits_2_or_3_and_says_why(
    corpus: Corpus, tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    (tmp_path / "broken.jsonl").write_text('{"_id": "a", "text": "t"}\n{}\n')
    paths = {"FILE": corpus(FACTS).path, "ABSENT": tmp_path / "absent", "BROKEN": tmp_path / "broken.jsonl"}
    done = run([str(paths.get(argument, argument)) for argument in arguments], b'{"query": "vpn", "k": 1}\n')
    assert (done.returncode, done.stdout) == (code, b"")
    assert said in done.stderr.decode()
    assert b"Traceback" not in done.stderr


# ------------------------------------------------------------------ somebody else's backend

NOISY = """
    import os, subprocess, sys
    from eval_core.backend import BackendError, Reply
    from eval_core.errors import CouldNot

    print("printed at import")

    class Noisy:
        capabilities = frozenset()

        def __init__(self, fail=""):
            self.fail = fail
            print("printed when made")

        def describe(self):
            return {}

        def index(self, corpus):
            print("kind", corpus.kind)
            if self.fail == "index":
                raise CouldNot("the model is not there")
            if self.fail == "index-error":
                raise BackendError("the store is down")

        def search(self, request):
            print("printed by search")
            os.write(1, b"written to 1\\n")
            subprocess.run([sys.executable, "-c", "print('said by a child', repr(input()))"], stderr=subprocess.DEVNULL)
            match request.text:
                case "error":
                    raise BackendError("no answer to this")
                case "fault":
                    raise ValueError("a fault")
                case "gone":
                    raise CouldNot("the service has gone away")
                case "nan":
                    return Reply(["a"], [float("nan")])
            return Reply((request.kind,))

        def close(self):
            print("closed")

    def broken():
        raise TypeError("never called")

    not_callable = 7
"""


def ask(installed: Installed, corpus: Corpus, *queries: str, arguments: Sequence[str] = ()) -> Any:
    environment = installed("noisy", {"noisy": "noisy:Noisy"}, NOISY)
    sent = "".join(json.dumps({"query": query, "k": 1}) + "\n" for query in queries).encode()
    return run(["serve", "noisy", "--corpus", str(corpus(FACTS).path), *arguments], sent, environment)


def test_nothing_but_replies_reaches_standard_output(installed: Installed, corpus: Corpus) -> None:
    """What the backend or its children print goes to standard error, and they cannot take a request either."""
    done = ask(installed, corpus, "a", "b", arguments=["--kind", "memory"])
    assert answers(done) == [{"ids": ["memory"]}] * 2
    assert done.returncode == 0
    for text in (b"printed at import", b"printed when made", b"kind memory", b"printed by search", b"written to 1", b"closed"):
        assert text in done.stderr
    assert b"query" not in done.stderr


def test_a_failing_request_is_an_error_reply_and_the_next_is_answered(installed: Installed, corpus: Corpus) -> None:
    done = ask(installed, corpus, "error", "fault", "nan", "fine")
    assert answers(done) == [
        {"error": "no answer to this"},
        {"error": "ValueError: a fault"},
        {"error": "the backend gave a score that is not finite"},
        {"ids": [""]},
    ]
    assert done.returncode == 0
    assert b'raise ValueError("a fault")' in done.stderr


def test_a_backend_that_is_gone_for_good_ends_it(installed: Installed, corpus: Corpus) -> None:
    done = ask(installed, corpus, "fine", "gone", "fine")
    assert (answers(done), done.returncode) == ([{"ids": [""]}], 3)
    assert b"the service has gone away" in done.stderr
    assert b"closed" in done.stderr


@pytest.mark.parametrize(
    ("fail", "said"),
    [("index", b"the model is not there"), ("index-error", b"cannot index .*: the store is down")],
)
def test_a_backend_that_cannot_index_exits_3(
    installed: Installed, corpus: Corpus, fail: str, said: bytes
) -> None:
    done = ask(installed, corpus, "a", arguments=["--option", f"fail={fail}"])
    assert (done.returncode, done.stdout) == (3, b"")
    assert re.search(said, done.stderr)


# ------------------------------------------------------------------ list


def test_list_shows_what_is_installed() -> None:
    done = run(["list"])
    assert (done.returncode, done.stderr) == (0, b"")
    table = done.stdout.decode()
    assert re.search(r"(?m)^ bm25 +eval-backends \S+ +filter +k1, b, tokenizer$", table)
    assert re.search(r"(?m)^ jsonl +eval-backends \S+ +by its options +command\*, capabilities, timeout", table)
    by_name = {entry["name"]: entry for entry in json.loads(run(["list", "--format", "json"]).stdout)["backends"]}
    version = by_name["bm25"].pop("version")
    assert version
    assert by_name["bm25"] == {
        "name": "bm25",
        "distribution": "eval-backends",
        "object": "eval_backends.bm25:BM25",
        "capabilities": ["filter"],
        "options": {"k1": "1.5", "b": "0.75", "tokenizer": "'words'"},
        "problem": None,
    }
    assert by_name["jsonl"]["capabilities"] is None
    assert by_name["jsonl"]["options"]["command"] is None


def test_list_shows_broken_backends_with_the_reason(installed: Installed) -> None:
    points = {
        "absent": "no_such_module:Thing",
        "bm25": "noisy:Noisy",
        "exits": "noisy_exit:Thing",
        "noattr": "noisy:Absent",
        "number": "noisy:not_callable",
        "odd": "noisy:Odd",
        "plain": "noisy:broken",
    }
    source = NOISY + "\n    class Odd:\n        capabilities = {'fliter'}\n"
    environment = installed("noisy", points, source)
    (Path(environment["PYTHONPATH"]) / "noisy_exit.py").write_text("raise SystemExit('needs a licence')")
    done = run(["list", "--format", "json"], environment=environment)
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    problems = {
        (entry["name"], entry["distribution"]): entry["problem"] for entry in json.loads(done.stdout)["backends"]
    }
    assert problems.pop(("jsonl", "eval-backends")) is None
    assert problems.pop(("plain", "noisy")) is None
    said = {
        "absent": "ModuleNotFoundError: No module named 'no_such_module'",
        "bm25": "the name is also claimed by",
        "exits": "SystemExit: needs a licence",
        "noattr": "AttributeError: .*Absent",
        "number": "names a int, which cannot be called",
        "odd": r"declares unknown capabilities \['fliter'\]; known: ",
    }
    assert {name for name, _ in problems} == set(said)
    assert ("bm25", "eval-backends") in problems and ("bm25", "noisy") in problems
    for (name, _), problem in problems.items():
        assert re.match(said[name], problem)
    table = run(["list"], environment=environment)
    assert table.returncode == 0
    assert re.search(rb"(?m)^ absent +noisy 1.2 +broken$\n   ModuleNotFoundError", table.stdout)
    assert re.search(rb"(?m)^ plain +noisy 1.2 +known once made", table.stdout)


def test_the_module_is_the_script() -> None:
    for arguments, starts in ((["--version"], b"eval-backends "), (["serve", "--help"], b"Usage: eval-backends serve ")):
        done = run(arguments)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.startswith(starts)


# ------------------------------------------------------------------ the page about the protocol


def examples(language: str) -> list[str]:
    page = (ROOT / "docs" / "backends" / "jsonl-protocol.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


@pytest.mark.parametrize(
    ("language", "name", "program"), [("python", "adapter.py", "{python}"), ("js", "adapter.mjs", "node")]
)
@pytest.mark.filterwarnings("error")
def test_the_adapters_of_the_page_work(
    corpus: Corpus, tmp_path: Path, language: str, name: str, program: str
) -> None:
    """A1: any command is a backend."""
    import shutil

    if program == "node" and shutil.which("node") is None:
        pytest.skip("node is not installed")
    (source,) = examples(language)
    assert len([line for line in source.splitlines() if line.strip()]) <= 12
    path = tmp_path / name
    path.write_text(source, encoding="utf-8")
    backend = JsonLines([program, str(path), "{corpus}"])
    try:
        backend.index(corpus(FACTS))
        assert backend.search(Request("the VPN on friday", 9)).ids == ["f1", "f2", "f3"]
        assert backend.search(Request("the VPN on friday", 1)).ids == ["f1"]
        assert backend.search(Request("größenwahn: über", 3)).ids == ["f5"]
        assert backend.search(Request("unheard", 3)).ids == []
    finally:
        backend.close()


def test_the_requests_and_replies_of_the_page_are_valid() -> None:
    (block,) = [text for text in examples("") if text.startswith("{")]
    request, reply = map(json.loads, block.splitlines())
    assert parse_request(request, frozenset(), "any").text == "where are retry delays computed"
    assert len(reply["ids"]) == len(reply["scores"])


def test_list_is_instant_enough_to_be_typed() -> None:
    """It imports the modules of backends and not what they wrap."""
    code = "import sys; from eval_backends.listing import find; find(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=os.environ)
    loaded = set(done.stdout.split())
    assert "eval_backends.bm25" in loaded
    assert not loaded & {"numpy", "rank_bm25", "pydantic", "rich"}


def test_time_is_not_spent_waiting(corpus: Corpus) -> None:
    """A served backend answers in far less than the pause of a polling loop."""
    backend = JsonLines(["{python}", "-m", "eval_backends", "serve", "bm25", "--corpus", "{corpus}"])
    try:
        backend.index(corpus(FACTS))
        best = 1.0
        for _ in range(50):
            began = time.perf_counter()
            backend.search(Request("vpn", 3))
            best = min(best, time.perf_counter() - began)
    finally:
        backend.close()
    assert best < 0.005
