"""Asks one forge over HTTP: reading alone, bounded in size and time, with a token that no other host ever gets."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPResponse
from typing import Any, Final
from urllib.error import URLError
from urllib.parse import SplitResult, urljoin, urlsplit
from urllib.request import HTTPErrorProcessor, ProxyHandler, Request, build_opener

from eval_core.console import clip
from eval_core.errors import CouldNot, Misuse
from eval_core.files import canonical

#: Seconds that a connection may stay silent, that one answer may take, and that a run waits in all for its turn.
SILENT, ANSWER, PATIENCE = 20.0, 60.0, 60.0
#: Bytes of an answer; redirects of a question; how often a failing server is asked, and the pause after each time.
BODY: Final = 5_000_000
REDIRECTS: Final = 3
TRIES: Final = 3
PAUSE: Final = 0.3

_MOVED = (301, 302, 307, 308)


@dataclass(frozen=True, slots=True)
class Answer:
    """A forge's answer; `body` is None where it is what was known already (304)."""

    status: int
    body: Any
    etag: str | None
    headers: Mapping[str, str]


class _AsIs(HTTPErrorProcessor):
    """Every status is an answer; in particular, no redirect is followed by the library."""

    def http_response(self, request: Request, response: HTTPResponse) -> HTTPResponse:
        return response

    https_response = http_response


class Forge:
    """The API at an address.

    Raises:
        Misuse: `api-malformed`, `token-malformed`.
    """

    def __init__(
        self, api: str, token: str | None, *, say: Callable[[str], None], wait: Callable[[float], None]
    ) -> None:
        self._api = api.rstrip("/")
        self._origin, loopback = _origin(self._api)
        if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
            what = "the token holds white space or signs that no token has"
            raise Misuse("token-malformed", what, mend="Set GITHUB_TOKEN or GH_TOKEN to the token alone.")
        self._token = token
        self._say, self._wait = say, wait
        self._patience = PATIENCE
        # A proxy of the environment is for hosts elsewhere; behind https it sees no header.
        self._opener = build_opener(ProxyHandler({}) if loopback else ProxyHandler(), _AsIs())

    def get(self, path: str, etag: str | None = None) -> Answer:
        """Ask for a path; with an ETag, whether what is known still stands.

        Raises:
            CouldNot: `forge-unreachable`, `forge-failed`, `forge-limited`, `forge-answer-odd`, `redirect-refused`,
                `token-refused`.
        """
        failures = 0
        while True:
            answer = self._followed(path, etag)
            if (seconds := _turn(answer)) is not None:
                self._await(path, seconds)
            elif answer.status < 500:
                return self._checked(path, answer, etag)
            else:
                failures += 1
                if failures == TRIES:
                    what = f"the forge failed with {answer.status} {TRIES} times"
                    raise CouldNot("forge-failed", what, subject=path)
                self._wait(PAUSE * failures)

    def _checked(self, path: str, answer: Answer, etag: str | None) -> Answer:
        if answer.status == 401:
            what = "the forge refuses the token (401)" if self._token else "the forge wants a token (401)"
            raise CouldNot("token-refused", what, subject=path)
        if answer.status == 304 and etag is not None:
            return answer
        if answer.status < 400 and answer.status != 200:
            raise CouldNot("forge-answer-odd", f"the forge answered {answer.status}", subject=path)
        if answer.status == 200 and isinstance(answer.body, str):
            what = f"the forge answered 200 with what is not JSON: {clip(answer.body, 60)!r}"
            raise CouldNot("forge-answer-odd", what, subject=path)
        return answer

    def _await(self, path: str, seconds: float) -> None:
        """Wait for the forge to take questions again, within the patience of one run."""
        if seconds > self._patience:
            until = datetime.fromtimestamp(time.time() + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            what = f"the forge takes no more questions until {until}"
            raise CouldNot("forge-limited", what, subject=path)
        self._patience -= seconds
        self._say(f"the forge asks to wait {seconds:.0f} s")
        self._wait(seconds)

    def _followed(self, path: str, etag: str | None) -> Answer:
        """The answer after redirects, which stay at the same scheme, host and port."""
        url = self._api + path
        for _ in range(REDIRECTS + 1):
            answer = self._once(path, url, etag)
            if answer.status not in _MOVED:
                return answer
            try:
                url = urljoin(url, answer.headers.get("location", ""))
                origin = _origin(url)[0]
            except (Misuse, ValueError):
                origin = ("", clip(url, 80), 0)
            if origin != self._origin:
                scheme, host, port = origin
                what = f"it redirects to another host, {clip(f'{scheme}://{host}:{port}', 100)}, which was not asked"
                raise CouldNot("redirect-refused", what, subject=path)
        raise CouldNot("forge-answer-odd", f"more than {REDIRECTS} redirects", subject=path)

    def _once(self, path: str, url: str, etag: str | None) -> Answer:
        headers = {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": "eval-tier",
        }
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if etag:
            headers["If-None-Match"] = etag
        self._say(f"GET {path}")
        started = time.monotonic()
        try:
            with self._opener.open(Request(url, headers=headers), timeout=SILENT) as response:
                found = {name.lower(): value for name, value in response.headers.items()}
                raw = bytearray()
                while block := response.read1(65_536):
                    raw += block
                    if len(raw) > BODY:
                        what = f"the answer is larger than {BODY // 10**6} MB"
                        raise CouldNot("forge-answer-odd", what, subject=path)
                    if time.monotonic() - started > ANSWER:
                        raise TimeoutError(f"the answer took more than {ANSWER:.0f} s")
                length = found.get("content-length", "")
                if response.status != 304 and length.isdecimal() and len(raw) < int(length):
                    raise ConnectionError("the answer broke off")
        except (OSError, HTTPException) as error:
            cause = error.reason if isinstance(error, URLError) else error
            what = f"{self._api}: no answer: {clip(str(cause) or type(cause).__name__, 200)}"
            raise CouldNot("forge-unreachable", what, subject=path) from error
        return Answer(response.status, self._read(bytes(raw)), found.get("etag"), found)

    def _read(self, raw: bytes) -> Any:
        """JSON, or a text where it is none; a token in it is cut out."""
        text = raw.decode("utf-8", "replace")
        if self._token:
            text = text.replace(self._token, "(redacted)")
        try:
            body = json.loads(text, parse_constant=_no_constant)
            canonical(body)  # what no digest can be taken of is not JSON here
        except (ValueError, RecursionError):
            return text
        _redact(body)
        return body


def _origin(url: str) -> tuple[tuple[str, str, int], bool]:
    """Scheme, host and port of an address, and whether it is this machine.

    Raises:
        Misuse: it is not https, or http to this machine.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    except ValueError:
        parts, port = SplitResult("", "", "", "", ""), 0
    host = parts.hostname or ""
    loopback = host == "localhost"
    with contextlib.suppress(ValueError):
        loopback = loopback or ipaddress.ip_address(host).is_loopback
    fits = parts.scheme == "https" or (parts.scheme == "http" and loopback)
    if not fits or not host or "@" in parts.netloc or any(not "!" <= sign <= "~" for sign in url):
        what = "it should be an https address without user and password; http is for this machine alone"
        raise Misuse("api-malformed", what, key="--api", value=url)
    return (parts.scheme, host, port), loopback


def _turn(answer: Answer) -> float | None:
    """Seconds until the forge takes questions again; None where it took this one."""
    if answer.status not in (403, 429, 503):
        return None
    after = answer.headers.get("retry-after", "")
    if after.isdecimal():
        return float(after[:9])
    if after:
        try:
            return max(1.0, parsedate_to_datetime(after).timestamp() - time.time())
        except (ValueError, OverflowError):
            return PATIENCE
    if answer.status == 503:
        return None
    if answer.headers.get("x-ratelimit-remaining") == "0":
        reset = answer.headers.get("x-ratelimit-reset", "")
        return max(1.0, int(reset[:12]) - time.time()) if reset.isdecimal() else PATIENCE
    message = answer.body.get("message") if isinstance(answer.body, dict) else ""
    return PATIENCE if answer.status == 429 or "rate limit" in str(message).lower() else None


def _redact(body: Any) -> None:
    """Put null for tokens that a forge sends along, as GitHub does with `temp_clone_token` of a private repository."""
    for inner in body if isinstance(body, list) else [body]:
        if isinstance(inner, dict):
            for key in inner:
                if key.endswith("_token"):
                    inner[key] = None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")
