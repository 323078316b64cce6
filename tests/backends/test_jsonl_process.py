"""The process behind the JSON-lines backend: how it starts, what it is sent, and that nothing of it is left behind."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eval_backends import jsonl
from eval_backends.jsonl import JsonLines
from eval_backends.process import TAIL, Broken, LineProcess, how_it_ended
from eval_core.backend import Backend, BackendError, Request, make
from eval_core.errors import CouldNot, Misuse
from eval_core.sets.corpus import CorpusFile

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


# ------------------------------------------------------------------ nothing is left behind


@pytest.mark.parametrize("end", ["time.sleep(60)", "sys.exit(2)", "raw(b'garbage\\n')"])
def test_what_the_process_started_is_ended_with_it(
    adapter: Adapter, dies: Callable[[int], bool], tmp_path: Path, end: str
) -> None:
    """A1: a hang is killed with its whole process group."""
    note = tmp_path / "pid"
    child = f"""
        child = subprocess.Popen(["sleep", "60"])
        open({str(note)!r}, "w").write(str(child.pid))
        {end}
        """
    backend = adapter(child, timeout=0.5)
    with pytest.raises(BackendError):
        backend.search(BAD)
    assert dies(int(note.read_text()))


def test_a_child_that_holds_the_output_open_is_told_from_a_hang(adapter: Adapter) -> None:
    backend = adapter('subprocess.Popen(["sleep", "60"]); sys.exit(6)', timeout=0.4)
    with pytest.raises(BackendError, match="exited with code 6 before it replied, and left a process behind"):
        backend.search(BAD)


def test_close_ends_what_the_process_started_and_left(adapter: Adapter, dies: Callable[[int], bool]) -> None:
    backend = adapter('child = subprocess.Popen(["sleep", "60"]); reply({"ids": [str(child.pid)]})')
    (child,) = backend.search(BAD).ids
    backend.close()
    assert dies(int(child))


def test_a_daemon_that_got_away_does_not_hold_up_the_close(adapter: Adapter) -> None:
    """It moved to a session of its own and holds standard error open, which nothing must wait for."""
    backend = adapter(
        """
        child = subprocess.Popen(["sleep", "60"], start_new_session=True)
        reply({"ids": [str(child.pid)]})
        """
    )
    (child,) = backend.search(BAD).ids
    try:
        began = time.monotonic()
        backend.close()
        assert time.monotonic() - began < 30  # and not the 60 s that it sleeps
    finally:
        os.kill(int(child), signal.SIGKILL)


def test_a_process_that_ends_at_the_end_of_its_input_ends_by_itself(adapter: Adapter, tmp_path: Path) -> None:
    note = tmp_path / "note"
    head = f"import atexit; atexit.register(lambda: open({str(note)!r}, 'w').write('ended in order'))"
    backend = adapter(head=head)
    assert not note.exists()
    backend.close()
    assert note.read_text() == "ended in order"


def test_a_process_that_stays_is_sent_sigterm(
    adapter: Adapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "GRACE", 0.3)
    note = tmp_path / "note"
    head = f"""
        def stop(*_):
            open({str(note)!r}, "w").write("told to stop")
            os._exit(0)
        signal.signal(signal.SIGTERM, stop)
        import atexit; atexit.register(time.sleep, 60)
        """
    backend = adapter(head=head)
    backend.close()
    assert note.read_text() == "told to stop"


def test_a_process_that_ignores_everything_is_killed(
    adapter: Adapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "GRACE", 0.2)
    backend = adapter(
        head="signal.signal(signal.SIGTERM, signal.SIG_IGN); import atexit; atexit.register(time.sleep, 60)"
    )
    process = int(pid(backend))
    began = time.monotonic()
    backend.close()
    assert 0.4 <= time.monotonic() - began < 30  # two graces, and not the 60 s that it sleeps
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_close_may_come_at_any_time_and_twice(adapter: Adapter, corpus: Callable[..., CorpusFile]) -> None:
    backend = adapter()
    backend.close()
    backend.close()
    with pytest.raises(BackendError, match="before index"):
        backend.search(BAD)
    backend.index(corpus({"d1": "again"}))
    first = pid(backend)
    backend.index(corpus({"d1": "again"}))
    assert pid(backend) != first
    JsonLines(["never started"]).close()


# ------------------------------------------------------------------ starting


def test_the_process_stays_up_over_a_whole_measurement(adapter: Adapter) -> None:
    """A1: one process, asked again and again."""
    backend = adapter()
    assert len({pid(backend) for _ in range(200)}) == 1


def test_each_start_is_followed_by_one_warm_up(adapter: Adapter, tmp_path: Path) -> None:
    log = tmp_path / "log"
    head = f"""
        def logged(lines):
            for line in lines:
                open({str(log)!r}, "a").write(line)
                yield line
        sys.stdin = logged(sys.stdin)
        """
    backend = adapter("sys.exit(1)", head)
    backend.search(Request("one", 3))
    with pytest.raises(BackendError):
        backend.search(BAD)
    backend.search(Request("two", 3))
    assert [json.loads(line)["query"] for line in log.read_text().splitlines()] == [
        *("warm up", "one", "bad"),
        *("warm up", "two"),
    ]


#: An adapter that takes corpora as lines: it answers with its process and the corpus's size, or as BODY says.
TAKES = """
        for line in sys.stdin:
            asked = json.loads(line)
            if "index" in asked:
                held = len(open(asked["index"]).readlines())
                REPLY
            elif asked["query"] == "exit":
                sys.exit(3)
            else:
                reply({"ids": [str(os.getpid()), str(held)]})
        """
INDEXED = 'reply({"indexed": held})'


@pytest.fixture
def takes(script: Callable[..., str]) -> Iterator[Callable[[str], JsonLines]]:
    made: list[JsonLines] = []

    def make(reply: str = INDEXED) -> JsonLines:
        command = ["{python}", "-S", "-E", script(head=TAKES.replace("REPLY", reply))]
        made.append(JsonLines(command, capabilities=["reindex"], start_timeout=2.0))
        return made[-1]

    yield make
    for backend in made:
        backend.close()


def test_a_command_that_reindexes_is_started_once_and_again_after_a_crash(
    takes: Callable[..., JsonLines], corpus: Callable[..., CorpusFile]
) -> None:
    """A1: `{"index": PATH}` before the warm-up and for each further corpus; a restart sends the one that counts now."""
    backend = takes()
    backend.index(corpus({"a": "x"}))
    first, held = backend.search(Request("q", 2)).ids
    assert held == "1"
    backend.index(corpus({"a": "x", "b": "y", "c": "z"}))
    assert list(backend.search(Request("q", 2)).ids) == [first, "3"]
    with pytest.raises(BackendError, match="code 3"):
        backend.search(Request("exit", 2))
    second, held = backend.search(Request("q", 2)).ids
    assert (second != first, held) == (True, "3")


@pytest.mark.parametrize("at", [1, 2], ids=["the first corpus", "a later one"])
@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ('reply({"indexed": held - 1})', r"indexed \d of \d documents"),
        ('reply({"indexed": True})', r'did not answer {"index": PATH} by {"indexed": N}'),
        ('reply({"ids": []})', "did not answer"),
        ('reply({"error": "the disk is full"})', "the disk is full"),
        ('raw(b"\\xff\\n")', "did not answer"),
        ("sys.exit(4)", "code 4"),
        ("time.sleep(60)", "within 2 s"),
    ],
    ids=["lost a document", "no number", "no such reply", "an error", "not UTF-8", "exit", "silence"],
)
def test_a_corpus_that_is_not_indexed_whole_ends_the_measuring(
    takes: Callable[..., JsonLines], corpus: Callable[..., CorpusFile], reply: str, said: str, at: int
) -> None:
    """A1: an index that lost documents would look like a worse retriever; nothing is left running."""
    backend = takes(reply if at == 1 else f"{INDEXED} if held < 2 else {reply}")
    if at == 2:
        backend.index(corpus({"a": "x"}))
    with pytest.raises(CouldNot, match=said):
        backend.index(corpus({"a": "x", "b": "y"}))
    with pytest.raises(BackendError, match="before index"):
        backend.search(Request("q", 1))


@pytest.mark.parametrize("send_id", [False, True])
def test_round2_b7_a_request_carries_what_is_set_and_no_more(adapter: Adapter, send_id: bool) -> None:
    """A1, B7: {"kind", "query", "k"} in; the optional keys only where they are set, an id only if the arm says so."""
    backend = adapter(
        send_id=send_id,
        head="for line in sys.stdin: reply({'ids': [line]})",
        capabilities=["filter", "scope", "temporal", "vectors"],
    )

    def sent(request: Request) -> Any:
        (line,) = backend.search(request).ids
        assert line.endswith("}\n")
        return json.loads(line)

    assert sent(Request("Was war\n„das“?", 7, "code")) == {"kind": "code", "query": "Was war\n„das“?", "k": 7}
    assert sent(Request("q", 1)) == {"kind": "memory", "query": "q", "k": 1}  # the corpus's kind
    assert sent(Request("q", 1, "", "", None, {}, {}, None, False)) == {
        "kind": "memory",
        "query": "q",
        "k": 1,
    }
    assert sent(Request("q", 1, "code", "q1", "s", {"kind": "a"}, {"between": [1, 2]}, [0.5, 1], True)) == {
        "kind": "code",
        "query": "q",
        "k": 1,
        **({"id": "q1"} if send_id else {}),
        "scope": "s",
        "filter": {"kind": "a"},
        "time": {"between": [1, 2]},
        "vector": [0.5, 1.0],
        "expand": True,
    }


@pytest.mark.parametrize("request_", [Request("\ud800", 1), Request("q", 1, vector=[float("nan")])])
def test_a_request_that_is_no_json_is_not_sent(adapter: Adapter, request_: Request) -> None:
    backend = adapter()
    before = pid(backend)
    with pytest.raises(BackendError, match="cannot be sent") as caught:
        backend.search(request_)
    assert not caught.value.restarted
    assert pid(backend) == before


def test_placeholders_are_filled_in_and_no_shell_reads_them(
    script: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A1: a command is an argument list, never a shell; `{corpus}` and `{python}` are filled in, once."""
    monkeypatch.chdir(tmp_path)
    folder = Path("a $(touch owned) {python};'\"")
    folder.mkdir()
    (folder / "corpus.jsonl").write_text('{"_id": "d", "text": "t"}\n')
    echo = script(head="for line in sys.stdin: reply({'ids': [sys.executable, *sys.argv[1:]]})")
    backend = JsonLines(
        ["{python}", echo, "{corpus}", "--c={corpus}", "{unknown}", "{python", "{}", "*", "$HOME"]
    )
    backend.index(CorpusFile(folder / "corpus.jsonl"))
    try:
        path = str(tmp_path / folder / "corpus.jsonl")
        assert backend.search(Request("q", 1)).ids == [
            sys.executable, path, f"--c={path}", "{unknown}", "{python", "{}", "*", "$HOME",
        ]  # fmt: skip
    finally:
        backend.close()
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    ("head", "said", "options"),
    [
        ("sys.exit(7)", r"the command exited with code 7 before it replied: .*python", {}),
        ("sys.exit('no such model')", r"(?s)code 1.*\n  stderr: no such model", {}),
        (
            "print('Loading'); sys.stdout.flush()",
            r"(that is not JSON: 'Loading'|that no request asked for: 'Loading\\n') \(logs belong on standard error\)",
            {},
        ),
        ("sys.stdin.readline(); raw(b'\\xff\\n')", "that is not UTF-8", {}),
        ("sys.stdin.readline(); reply({'event': 'ready'})", "wrote a line without 'ids' or 'error'", {}),
        ("time.sleep(60)", r"gave no reply within 0\.5 s", {"start_timeout": 0.5}),
        (
            "while True: sys.stderr.write('x' * 100_000)",
            r"gave no reply within 0\.5 s",
            {"start_timeout": 0.5},
        ),
        ("os.close(0)", "the command ", {"start_timeout": 0.5}),
    ],
)
def test_a_command_that_does_not_come_up_cannot_be_indexed(
    adapter: Adapter, head: str, said: str, options: dict[str, Any]
) -> None:
    """A1: index says the command, its exit code and the end of its standard error, and leaves nothing running."""
    with pytest.raises(CouldNot, match=said) as caught:
        adapter(head=head, **options)
    assert caught.value.code == "backend-start-failed"
    assert "adapter.py" in str(caught.value)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (
            "no-such-program-here",
            "cannot start the command: No such file or directory: no-such-program-here x",
        ),
        ("./absent/adapter", "a relative path starts at"),
        ("python adapter.py", "each argument is a text of its own"),
        ("/", "Permission denied"),
    ],
)
def test_a_program_that_is_not_there(corpus: Callable[..., CorpusFile], program: str, said: str) -> None:
    backend = JsonLines([program, "x"])
    with pytest.raises(CouldNot, match=said):
        backend.index(corpus({"d": "t"}))
    with pytest.raises(BackendError, match="before index"):
        backend.search(BAD)


def test_an_error_reply_to_the_warm_up_is_no_fault(adapter: Adapter) -> None:
    backend = adapter(head="sys.stdin.readline(); reply({'error': 'nothing to warm'})")
    assert pid(backend)


def test_a_restart_that_fails_is_tried_again_at_each_request(adapter: Adapter, tmp_path: Path) -> None:
    """A1: the rows in between are errored; the harness gives up after three in a row."""
    gate = tmp_path / "closed"
    head = f"""
        if os.path.exists({str(gate)!r}):
            sys.exit("the gate is closed")
        """
    backend = adapter("sys.exit(1)", head)
    gate.touch()
    with pytest.raises(
        BackendError,
        match=r"(?s)exited with code 1 before it replied.*cannot be started again.*gate is closed",
    ) as caught:
        backend.search(BAD)
    assert caught.value.restarted
    for _ in range(2):
        with pytest.raises(
            BackendError, match=r"(?s)cannot be started again: the command exited.*gate is closed"
        ) as caught:
            backend.search(Request("pid", 1))
        assert caught.value.restarted
    gate.unlink()
    assert pid(backend)


# ------------------------------------------------------------------ options


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"command": "python adapter.py"},
            r"command = 'python adapter\.py': no shell is used; give the program and its arguments as a list",
        ),
        ({"command": []}, r"command = \[\]: names no program"),
        ({"command": [""]}, r"names no program"),
        ({"command": ["a", "--c={corpus}"], "capabilities": ["reindex"]}, r"each is sent as a line"),
        ({"command": ["a", 1]}, r"command = \['a', 1\]: 1 is not a text"),
        ({"command": {"a": 1}}, r"command = \{'a': 1\}: give the program"),
        ({"command": ["a\0b"]}, "NUL"),
        ({"capabilities": "filter"}, r"capabilities = 'filter': give a list such as \['filter'\]"),
        (
            {"capabilities": ["filters"]},
            r"there is no capability 'filters'; did you mean 'filter'\?  \(known: expand, filter",
        ),
        ({"capabilities": [None]}, "None is not a text"),
        ({"timeout": 0}, "timeout = 0: give a number from 0.001"),
        ({"timeout": True}, "timeout = True"),
        ({"timeout": "10"}, "timeout = '10'"),
        ({"start_timeout": float("nan")}, "start_timeout = nan"),
        ({"start_timeout": float("inf")}, "start_timeout = inf"),
        ({"max_line": 1.5}, r"max_line = 1\.5: give a whole number from 1"),
        ({"max_line": 0}, "max_line = 0"),
        ({"max_line": True}, "max_line = True"),
    ],
)
def test_a_wrong_option_is_refused_with_its_value(options: dict[str, Any], said: str) -> None:
    with pytest.raises(Misuse, match=said):
        JsonLines(**{"command": ["x"], **options})


def test_it_is_found_by_name_and_is_a_backend() -> None:
    backend = make("jsonl", {"command": ["x"], "capabilities": ["filter", "temporal"], "timeout": 1})
    assert isinstance(backend, Backend)
    assert isinstance(backend, JsonLines)
    assert backend.capabilities == {"filter", "temporal"}
    assert backend.describe() == {"protocol": "jsonl-v1"}
    with pytest.raises(Misuse, match="command: the option is required"):
        make("jsonl", {})


# ------------------------------------------------------------------ parts


def test_the_table_of_the_module_and_of_the_page_name_the_same_options() -> None:
    page = Path(__file__).parents[2] / "docs" / "backends" / "jsonl-protocol.md"
    for name in ("timeout", "start_timeout", "max_line", "capabilities"):
        assert f"`{name}`" in page.read_text(encoding="utf-8")
        assert f"`{name}`" in str(jsonl.__doc__) + str(JsonLines.__doc__)


def test_only_the_end_of_standard_error_is_kept() -> None:
    process = LineProcess(
        [sys.executable, "-c", "import sys; sys.stderr.write('x' * 1_000_000 + 'the end'); sys.exit(1)"], 100
    )
    with pytest.raises(Broken, match="exited with code 1"):
        process.ask(b"\n", 10)
    process.stop()
    assert process.tail().endswith("xthe end")
    assert len(process.tail()) == TAIL


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exited with code 0"),
        (255, "exited with code 255"),
        (-9, "was killed by SIGKILL"),
        (-250, "was killed by signal 250"),
    ],
)
def test_how_a_process_ended(code: int, words: str) -> None:
    assert how_it_ended(code) == words
