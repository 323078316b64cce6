from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from eval_core.errors import EvalError
from eval_tier.cli.snapshot import snapshot
from eval_tier.evidence.settings import read_settings
from eval_tier.snapshot import take

TOKEN = "ghp_0123456789abcdefSECRET"
REPO = "/repos/o/r"
BRANCH = f"{REPO}/branches/main"
PROTECTION = f"{BRANCH}/protection"
RULES = f"{REPO}/rules/branches/main?per_page=100"
RULE = {
    "type": "required_status_checks",
    "ruleset_id": 7,
    "parameters": {"required_status_checks": [{"context": "test", "integration_id": 15368}]},
}
FORBIDDEN = {"message": "Resource not accessible by personal access token"}
SHAPES: dict[str, tuple[int, Any]] = {
    REPO: (200, {"id": 77, "default_branch": "main", "temp_clone_token": "AAAA"}),
    BRANCH: (200, {"name": "main", "protected": True, "protection": {"enabled": False}}),
    PROTECTION: (404, {"message": "Branch not protected"}),
    RULES: (200, [RULE]),
    f"{REPO}/rulesets/7": (200, {"name": "main", "enforcement": "active", "bypass_actors": []}),
}
Reply = tuple[int, Any, dict[str, str]]


@dataclass
class Fake:
    """A forge on loopback: what it answers by path, once for each entry of a list, and what it was asked."""

    port: int = 0
    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    hold: threading.Event | None = None

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]

    def reply(self, path: str, headers: dict[str, str]) -> Reply:
        given = self.answers.get(path, (404, {"message": "Not Found"}))
        if isinstance(given, list):
            given = given.pop(0) if len(given) > 1 else given[0]
        status, body, more = (*given, {})[:3]
        if (etag := more.get("ETag")) and headers.get("if-none-match") == etag:
            return 304, b"", more
        return status, body, more


@pytest.fixture
def servers() -> Iterator[Callable[[], Fake]]:
    running = []

    def start() -> Fake:
        fake = Fake(answers=dict(SHAPES))

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                fake.asked.append((self.path, headers))
                status, body, more = fake.reply(self.path, headers)
                raw = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(raw))} | more).items():
                    self.send_header(name, value)
                self.end_headers()
                if fake.hold is not None and "rulesets" in self.path:
                    fake.hold.set()
                    time.sleep(20)
                self.wfile.write(raw)

            def log_message(self, *args: Any) -> None: ...

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, *args: Any) -> None: ...

        server = Quiet(("127.0.0.1", 0), Handler)
        fake.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        running.append((server, thread))
        return fake

    yield start
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def forge(servers: Callable[[], Fake], monkeypatch: pytest.MonkeyPatch) -> Fake:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # never asked for this machine
    return servers()


def run(forge: Fake, into: Path, *more: str) -> Result:
    return CliRunner().invoke(snapshot, ["o/r", "-o", str(into), "--api", forge.api, *more])


def error_of(forge: Fake, into: Path, **more: Any) -> EvalError:
    with pytest.raises(EvalError) as error:
        take("o/r", into=into, api=forge.api, token=TOKEN, **more)
    assert TOKEN not in str(error.value)
    return error.value


def test_k7_the_settings_are_asked_for_and_said(forge: Fake, tmp_path: Path) -> None:
    """K7: the setting is observed, not read out of the workflow."""
    into = tmp_path / "policy" / "s.json"
    done = run(forge, into)
    assert (done.exit_code, done.stderr) == (0, "")
    assert [line.split() for line in done.stdout.splitlines()[1:5]] == [
        ["required", "test", "GitHub", "Actions", "ruleset", "main"],
        ["queue", "no"],
        ["admins", "bound"],
        ["bypass", "nobody"],
    ]
    assert done.stdout.splitlines()[-1].startswith("Next: eval-tier audit")
    assert forge.paths == list(SHAPES)
    assert {headers.get("authorization") for _, headers in forge.asked} == {f"Bearer {TOKEN}"}
    kept = json.loads(into.read_text())
    assert [(call["path"], call["status"]) for call in kept["calls"]] == [
        (p, s) for p, (s, _) in SHAPES.items()
    ]
    assert [call["body"] for call in kept["calls"][1:]] == [body for _, body in list(SHAPES.values())[1:]]
    assert run(forge, into, "--format", "json").stdout == into.read_text()


def test_no_token_is_kept_or_printed(forge: Fake, tmp_path: Path) -> None:
    """Neither ours, even where the forge repeats it, nor one that the forge sends along."""
    forge.answers[PROTECTION] = (403, {"message": f"bad {TOKEN}"})
    done = run(forge, tmp_path / "s.json")
    assert done.exit_code == 0
    for text in (done.output, (tmp_path / "s.json").read_text()):
        assert TOKEN not in text and "AAAA" not in text


def test_403_and_404_are_told_apart(forge: Fake, tmp_path: Path) -> None:
    said = []
    for status, body in ((403, FORBIDDEN), (404, {"message": "Not Found"})):
        forge.answers |= {PROTECTION: (status, body), RULES: (status, body), BRANCH: (status, body)}
        done = run(forge, tmp_path / "s.json")
        assert done.exit_code == 0
        assert " required  unknown" in done.stdout and "Administration: read" in done.stdout
        said.append(done.stdout)
    assert "403, the token lacks" in said[0] and "404, " not in said[0]
    assert "404, absent or hidden" in said[1] and "403, " not in said[1]


def test_two_pages(forge: Fake, tmp_path: Path) -> None:
    late = RULE | {"parameters": {"required_status_checks": [{"context": "late"}]}}
    forge.answers[RULES] = (200, [RULE], {"Link": '<http://evil.example/x>; rel="next"'})
    forge.answers[f"{RULES}&page=2"] = (200, [late])
    assert "late" in run(forge, tmp_path / "s.json").stdout
    assert forge.paths.count(f"{RULES}&page=2") == 1


def test_pages_end(forge: Fake, tmp_path: Path) -> None:
    more = {"Link": '<x>; rel="next"'}
    forge.answers |= {RULES: (200, [], more)} | {f"{RULES}&page={n}": (200, [], more) for n in range(99)}
    assert error_of(forge, tmp_path / "s.json").code == "forge-answer-odd"
    assert len(forge.asked) == 3 + 20


def test_what_has_not_changed_is_asked_with_its_etag(forge: Fake, tmp_path: Path) -> None:
    into = tmp_path / "s.json"
    for number, path in enumerate(list(SHAPES)):
        forge.answers[path] = (*SHAPES[path], {"ETag": f'W/"{number}"'})
    first = take("o/r", into=into, api=forge.api, now=datetime(2026, 11, 1, tzinfo=UTC))
    forge.asked.clear()
    forge.answers[f"{REPO}/rulesets/7"] = (200, {"name": "new", "enforcement": "active"}, {"ETag": '"9"'})
    second = take("o/r", into=into, api=forge.api, now=datetime(2026, 11, 30, tzinfo=UTC))
    asked = [headers.get("if-none-match") for _, headers in forge.asked]
    assert asked == ['W/"0"', 'W/"1"', None, 'W/"3"', 'W/"4"']  # a 404 is asked anew
    assert second.observed == "2026-11-30T00:00:00Z" and second.calls[:4] == first.calls[:4]
    assert second.calls[4].body == {"name": "new", "enforcement": "active"}
    assert not read_settings(into.read_bytes(), "s", datetime(2026, 11, 30, tzinfo=UTC)).stale


def test_304_that_was_not_asked_for_is_no_answer(forge: Fake, tmp_path: Path) -> None:
    forge.answers[REPO] = (304, b"")
    assert error_of(forge, tmp_path / "s.json").code == "forge-answer-odd"


def test_the_second_page_of_an_unchanged_first_is_asked_for(forge: Fake, tmp_path: Path) -> None:
    test_two_pages(forge, tmp_path)
    forge.answers[RULES] = (200, [RULE], {"ETag": '"1"'} | {"Link": '<x>; rel="next"'})
    assert run(forge, tmp_path / "s.json").exit_code == 0
    forge.answers[RULES] = (304, b"")
    forge.asked.clear()
    assert "late" in run(forge, tmp_path / "s.json").stdout
    assert dict(forge.asked)[RULES]["if-none-match"] == '"1"'


# ------------------------------------------------------------------------------------- waiting and failing


def soon() -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=9), usegmt=True)


@pytest.mark.parametrize(
    ("status", "headers", "low", "high"),
    [
        (429, {"Retry-After": "2"}, 2, 2),
        (403, {"Retry-After": "59"}, 59, 59),
        (503, {"Retry-After": "3"}, 3, 3),
        (429, {"Retry-After": soon()}, 1, 9),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 50)}, 1, 50),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}, 1, 1),
        (429, {}, 60, 60),
    ],
)
def test_a_short_wait_is_waited(
    forge: Fake, tmp_path: Path, status: int, headers: dict[str, str], low: float, high: float
) -> None:
    waits: list[float] = []
    said: list[str] = []
    forge.answers[RULES] = [(status, {"message": "slow"}, headers), SHAPES[RULES]]
    taken = take("o/r", into=tmp_path / "s.json", api=forge.api, say=said.append, wait=waits.append)
    assert len(waits) == 1 and low <= waits[0] <= high
    assert any(line.startswith("the forge asks to wait") for line in said)
    assert [call.status for call in taken.calls] == [200, 200, 404, 200, 200]


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (429, {"Retry-After": "61"}, {}),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 3000)}, {}),
        (403, {"Retry-After": "31"}, {}),  # twice is more than a run waits
        (403, {}, {"message": "You have exceeded a secondary rate limit"}),
    ],
)
def test_a_long_wait_is_an_end_with_its_time(
    forge: Fake, tmp_path: Path, status: int, headers: dict[str, str], body: Any
) -> None:
    forge.answers[RULES] = (status, body, headers)
    error = error_of(forge, tmp_path / "s.json", wait=lambda seconds: None)
    assert (error.code, error.exit_code) == ("forge-limited", 3)
    assert "until 20" in str(error) and not list(tmp_path.iterdir())


def test_a_right_that_lacks_is_no_limit(forge: Fake, tmp_path: Path) -> None:
    forge.answers[RULES] = (403, FORBIDDEN, {"X-RateLimit-Remaining": "4999"})
    taken = take("o/r", into=tmp_path / "s.json", api=forge.api, wait=lambda seconds: pytest.fail("waited"))
    assert taken.answers()[RULES].status == 403


def test_a_failing_server_is_asked_three_times(forge: Fake, tmp_path: Path) -> None:
    into = tmp_path / "s.json"
    forge.answers[RULES] = [(502, b"<html>"), (500, {}), SHAPES[RULES]]
    assert run(forge, into).exit_code == 0
    kept = into.read_bytes()
    forge.answers[RULES] = (503, {})
    forge.asked.clear()
    error = error_of(forge, into, wait=lambda seconds: None)
    assert (error.code, error.exit_code, forge.paths.count(RULES)) == ("forge-failed", 3, 3)
    assert into.read_bytes() == kept


@pytest.mark.parametrize(
    ("path", "answer", "code"),
    [
        (REPO, (404, {"message": "Not Found"}), "repository-not-shown"),
        (REPO, (200, []), "repository-not-shown"),
        (REPO, (401, {"message": "Bad credentials"}), "token-refused"),
        (BRANCH, (404, {"message": "Branch not found"}), "branch-not-shown"),
        (RULES, (200, b"<html>sign in</html>"), "forge-answer-odd"),
        (RULES, (200, b"{"), "forge-answer-odd"),
        (RULES, (200, b"[" * 200_000), "forge-answer-odd"),
        (RULES, (200, b'[{"a": 1e999}]'), "forge-answer-odd"),
        (RULES, (200, b"[" + b" " * 6_000_000 + b"]"), "forge-answer-odd"),
        (RULES, (200, b"[]", {"Content-Length": "99"}), "forge-unreachable"),
        (RULES, (202, {}), "forge-answer-odd"),
    ],
)
def test_what_is_no_answer_is_not_written(
    forge: Fake, tmp_path: Path, path: str, answer: Any, code: str
) -> None:
    forge.answers[path] = answer
    error = error_of(forge, tmp_path / "s.json")
    assert (error.code, error.exit_code) == (code, 3)
    assert not list(tmp_path.iterdir())


def test_an_html_403_is_an_answer(forge: Fake, tmp_path: Path) -> None:
    forge.answers[PROTECTION] = (403, b"<html>")
    assert take("o/r", into=tmp_path / "s.json", api=forge.api).calls[2].body == "<html>"


def test_nobody_there(tmp_path: Path) -> None:
    assert error_of(Fake(port=9), tmp_path / "s.json").code == "forge-unreachable"


# ------------------------------------------------------------------------------------- redirects


def test_a_redirect_to_another_host_is_refused_by_name(
    forge: Fake, servers: Callable[[], Fake], tmp_path: Path
) -> None:
    other = servers()
    places = [
        f"{other.api}{REPO}",
        f"http://localhost:{forge.port}{REPO}",
        "https://evil.example/",
        "file:///x",
    ]
    for place in places:
        forge.answers[REPO] = (301, {}, {"Location": place})
        error = error_of(forge, tmp_path / "s.json")
        assert (error.code, error.exit_code) == ("redirect-refused", 3)
        if place.startswith("http"):
            assert place.split("/")[2] in str(error)
    assert other.asked == []


def test_a_redirect_within_the_host_is_followed(forge: Fake, tmp_path: Path) -> None:
    forge.answers |= {REPO: (301, {}, {"Location": "/repositories/77"}), "/repositories/77": SHAPES[REPO]}
    assert take("o/r", into=tmp_path / "s.json", api=forge.api).calls[0].path == REPO
    forge.answers["/repositories/77"] = (302, {}, {"Location": REPO})
    assert error_of(forge, tmp_path / "s.json").code == "forge-answer-odd"


# ------------------------------------------------------------------------------------- files and usage


def test_a_kill_half_way_leaves_the_old_file_whole(forge: Fake, tmp_path: Path) -> None:
    into = tmp_path / "s.json"
    assert run(forge, into).exit_code == 0
    kept = into.read_bytes()
    forge.hold = threading.Event()
    code = "from eval_core.cli.app import run; from eval_tier.cli.snapshot import snapshot; run(snapshot, 'eval-tier')"
    line = [sys.executable, "-c", code, "o/r", "-o", str(into), "--api", forge.api]
    process = subprocess.Popen(line, env=dict(os.environ))
    try:
        assert forge.hold.wait(30)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    assert into.read_bytes() == kept and [path.name for path in tmp_path.iterdir()] == ["s.json"]


def test_a_full_disk_leaves_the_old_file_whole(
    forge: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = tmp_path / "s.json"
    assert run(forge, into).exit_code == 0
    kept = into.read_bytes()
    forge.answers[RULES] = (200, [])

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert error_of(forge, into).code == "cannot-write"
    assert into.read_bytes() == kept and [path.name for path in tmp_path.iterdir()] == ["s.json"]


def test_a_process_exits_three_without_a_traceback(forge: Fake, tmp_path: Path) -> None:
    forge.answers[REPO] = (404, {"message": "\x1b[31mNot Found"})
    code = "from eval_core.cli.app import run; from eval_tier.cli.snapshot import snapshot; run(snapshot, 'eval-tier')"
    line = [sys.executable, "-c", code, "o/r", "--api", forge.api]
    done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (3, "", 2)
    assert "\x1b" not in done.stderr and TOKEN not in done.stderr


@pytest.mark.parametrize("held", ["# README", "{}", None])
def test_what_is_not_a_snapshot_of_it_is_not_replaced(forge: Fake, tmp_path: Path, held: str | None) -> None:
    into = tmp_path / "s.json"
    if held is None:
        forge.answers |= {path.replace("/o/r", "/o/other"): answer for path, answer in SHAPES.items()}
        take("o/other", into=into, api=forge.api)
    else:
        into.write_text(held)
    before = into.read_bytes()
    error = error_of(forge, into)
    assert (error.code, error.exit_code, into.read_bytes()) == ("snapshot-place-taken", 2, before)


def test_an_edited_snapshot_is_taken_anew_without_its_etags(forge: Fake, tmp_path: Path) -> None:
    into = tmp_path / "s.json"
    forge.answers[RULES] = (*SHAPES[RULES], {"ETag": '"1"'})
    assert run(forge, into).exit_code == 0
    into.write_text(into.read_text().replace('"test"', '"none"'))
    forge.asked.clear()
    assert run(forge, into).exit_code == 0
    assert '"none"' not in into.read_text() and "if-none-match" not in dict(forge.asked)[RULES]


@pytest.mark.parametrize(
    "name", ["r", "o/r/x", "https://github.com/o/r", "o/..", "../r", "o/r\n", "o/r?x", "", "o/"]
)
def test_a_name_that_is_not_owner_and_name_is_refused(forge: Fake, tmp_path: Path, name: str) -> None:
    with pytest.raises(EvalError) as error:
        take(name, into=tmp_path / "s.json", api=forge.api)
    assert (error.value.code, error.value.exit_code, forge.asked) == ("repository-malformed", 2, [])


@pytest.mark.parametrize(
    "api",
    [
        "http://forge.example",
        "http://127.0.0.1.evil.example",
        "ftp://x",
        "file:///x",
        "https://user@x",
        "https://",
        "https://x:y",
        "https://[",
        "https://a b",
        "x",
    ],
)
def test_an_address_that_would_show_the_token_is_refused(tmp_path: Path, api: str) -> None:
    with pytest.raises(EvalError) as error:
        take("o/r", into=tmp_path / "s.json", api=api, token=TOKEN)
    assert error.value.code == "api-malformed"


@pytest.mark.parametrize("token", ["a\nb", "a b", "é"])
def test_a_malformed_token_is_not_shown(forge: Fake, tmp_path: Path, token: str) -> None:
    with pytest.raises(EvalError) as error:
        take("o/r", into=tmp_path / "s.json", api=forge.api, token=token)
    assert error.value.code == "token-malformed" and token not in str(error.value)


def test_a_branch_with_a_slash_and_another_default_place(
    forge: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    forge.answers |= {path.replace("/main", "/a%2Fb"): answer for path, answer in SHAPES.items()}
    done = CliRunner().invoke(snapshot, ["o/r", "--api", forge.api, "--branch", "a/b"])
    assert done.exit_code == 0 and "ruleset main" in done.stdout
    assert Path("policy/settings/o--r.json").is_file()
