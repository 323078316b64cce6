"""`eval-backends serve`: any installed backend as a command that speaks JSON lines.

A request of one line is answered by one line, in order: `{"ids", "scores"}` or `{"error"}`, with the request's `id`
where it has one. A line `{"index": PATH}` puts another corpus in the place of the one before, and is answered by
`{"indexed": N}`. A line that cannot be read is answered with an error and the next is read; end of input ends it.
Standard output carries replies and nothing else: what the backend prints itself goes to standard error.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import tomllib
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import click

from eval_core.backend import BackendError, Reply, Request, make
from eval_core.errors import CouldNot, Misuse, did_you_mean

#: The longest request line that is read, in bytes.
MAX_LINE = 8 * 1024 * 1024

#: Which capability an optional key of a request needs.
NEEDS = {"scope": "scope", "filter": "filter", "time": "temporal", "vector": "vectors", "expand": "expand"}
_KEYS = ("kind", "query", "k", "id", *NEEDS)


@click.command(
    epilog="\b\nExamples:\n"
    '  echo \'{"query": "retry delays", "k": 3}\' | eval-backends serve bm25 --corpus corpus.jsonl\n'
    "  eval-backends serve bm25 --corpus corpus.jsonl --option k1=1.2 --option tokenizer=whitespace",
)
@click.argument("name")
@click.option(
    "--corpus",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The corpus.jsonl to search; without it, the first line names one.",
)
@click.option("--kind", default="", help="The dataset's kind, for backends that ask for it.")
@click.option(
    "--option",
    "written",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of the backend; VALUE as in TOML, or a bare word. Again for each option.",
)
def serve(name: str, corpus: Path | None, kind: str, written: tuple[str, ...]) -> int:
    """Answer requests in JSON lines with the backend NAME, until the input ends.

    A request is {"kind", "query", "k"}, one a line, and may hold id, filter, scope, time, vector, expand. A reply is
    {"ids", "scores"}, or {"error"} after which the next request is read. {"index": FILE} searches another corpus from
    then on, and is answered by {"indexed": N}.

    Exits 0 at the end of the input, 2 for wrong usage or a malformed corpus, 3 if the corpus cannot be indexed.
    """
    options = parse_options(written)
    with _own_pipes() as (requests, replies):
        try:
            with contextlib.closing(_Served(name, options, kind)) as served:
                if corpus is not None:
                    served.index(corpus)
                for line in _lines(requests):
                    answer = _answer(served, line)
                    try:
                        _write(replies, answer)
                    except BrokenPipeError:
                        # Nobody reads the replies any more. (Left to click, this would exit with 1.)
                        return 3
        except KeyboardInterrupt:
            # The usual way to end it on a terminal: nothing was left half-done, so nothing is said.
            return 3
    return 0


@contextlib.contextmanager
def _own_pipes() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Yield private copies of standard input and output; meanwhile the numbers 0 and 1 are the null device and
    standard error, so that neither the backend nor a process it starts can read a request or write into a reply."""
    python_stdout = sys.stdout
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb", buffering=0) as replies:
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        try:
            yield requests, replies
        finally:
            sys.stdout = python_stdout
            os.dup2(requests.fileno(), 0)
            os.dup2(replies.fileno(), 1)


class _Served:
    """A backend by name, made anew for each corpus that it is to search.

    Raises:
        Misuse: it does not take the options; raised before any request is read.
    """

    def __init__(self, name: str, options: Mapping[str, Any], kind: str) -> None:
        self.name, self.kind = name, kind
        self._options = options
        self._backend = make(name, options)
        self._indexed = False

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset(self._backend.capabilities)

    def index(self, path: Path) -> int:
        """Make the corpus searchable in the place of the one before; return how many documents it has.

        Raises:
            Misuse: the file is not a corpus.
            CouldNot: it cannot be indexed.
        """
        from eval_core.sets import CorpusFile

        if self._indexed:
            self._indexed = False
            self._backend.close()
            self._backend = make(self.name, self._options)
        corpus = CorpusFile(path, self.kind)
        try:
            self._backend.index(corpus)
        except BackendError as error:
            what = f"cannot index {path}: {error}"
            raise CouldNot("backend-failed", what, subject=f"backend {self.name!r}") from error
        self._indexed = True
        return len(corpus)

    def search(self, request: Request) -> Reply:
        if not self._indexed:
            raise BackendError(
                'no corpus is indexed: send {"index": FILE} first, or start with --corpus FILE'
            )
        return self._backend.search(request)

    def close(self) -> None:
        self._backend.close()


def parse_options(written: tuple[str, ...]) -> dict[str, Any]:
    """Read `KEY=VALUE` texts; a value is TOML (`1.2`, `true`, `"words"`, `["a"]`), else a bare word, taken as text.

    Raises:
        Misuse: no `=`, no key, a key given twice, or a value that begins like TOML and is none.
    """
    options: dict[str, Any] = {}
    for text in written:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise Misuse(
                "option-invalid", "write it as KEY=VALUE, such as k1=1.2", key="--option", value=text
            )
        if key in options:
            raise Misuse("option-invalid", f"{key} was given twice", key="--option", value=text)
        options[key] = _value(text, value.strip())
    return options


def _value(text: str, value: str) -> Any:
    try:
        table = tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError as error:
        if value[:1] in ("[", "{", '"', "'"):
            what = f"is not a TOML value: {error}"
            raise Misuse("option-invalid", what, key="--option", value=text) from error
        return value
    # A date is a text to every backend, and more than one key means that the text had a line break in it.
    return table["value"] if len(table) == 1 and _is_json(table["value"]) else value


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_json(item) for item in value.values())
    if isinstance(value, list):
        return all(_is_json(item) for item in value)
    return isinstance(value, str | bool | int | float)


def _lines(stream: IO[bytes]) -> Iterator[bytes | None]:
    """Yield the lines as they come; None stands for one longer than `MAX_LINE`, which is read past, not held."""
    while line := stream.readline(MAX_LINE + 1):
        if len(line) <= MAX_LINE or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(MAX_LINE)
        yield None


def _write(stream: IO[bytes], line: bytes) -> None:
    rest = memoryview(line)
    while rest:
        rest = rest[stream.write(rest) :]


def _answer(served: _Served, line: bytes | None) -> bytes:
    """The reply line to one line, whatever that is.

    Raises:
        CouldNot: the backend is gone for good.
    """
    identity: dict[str, str] = {}
    try:
        message = _read(line)
        if isinstance(message.get("id"), str):
            identity["id"] = message["id"]
        if "index" in message:
            return _line(_indexed(served, message))
        request = parse_request(message, served.capabilities, served.name, served.kind)
        return _line({**identity, **_reply(served.search(request))})
    except BackendError as error:
        return _line({**identity, "error": str(error)})
    except CouldNot:
        raise
    except Exception as error:  # noqa: BLE001  # any backend's code runs here, and the next request may succeed
        traceback.print_exc(file=sys.stderr)
        return _line({**identity, "error": f"{type(error).__name__}: {error}"})


def _indexed(served: _Served, message: Mapping[str, Any]) -> dict[str, Any]:
    if set(message) != {"index"} or not isinstance(message["index"], str):
        raise BackendError('malformed request: a corpus is sent as {"index": FILE} and nothing else')
    try:
        return {"indexed": served.index(Path(message["index"]))}
    except (CouldNot, Misuse) as error:
        raise BackendError(str(error)) from error


def _reply(reply: Reply) -> dict[str, Any]:
    out: dict[str, Any] = {"ids": list(reply.ids)}
    if reply.scores is not None:
        out["scores"] = [float(score) for score in reply.scores]
        if not all(map(math.isfinite, out["scores"])):
            raise BackendError("the backend gave a score that is not finite")
    return out


def _line(message: Mapping[str, Any]) -> bytes:
    # Escaped to ASCII: even a lone surrogate in an error's text can be written.
    return json.dumps(message).encode("ascii") + b"\n"


def _read(line: bytes | None) -> dict[str, Any]:
    if line is None:
        raise BackendError(f"malformed request: longer than {MAX_LINE} bytes")
    try:
        value = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BackendError(f"malformed request: not UTF-8 at byte {error.start}") from None
    except (ValueError, RecursionError) as error:
        raise BackendError(f"malformed request: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise BackendError(f"malformed request: {_shown(value)} is not a JSON object")
    return value


def parse_request(
    message: Mapping[str, Any], capabilities: frozenset[str], name: str, default_kind: str = ""
) -> Request:
    """Check the JSON object of a request; an optional key that is null counts as absent.

    Raises:
        BackendError: a key is missing, unknown, of a wrong type, or asks for what the backend cannot do.
    """
    for key in message:
        if key not in _KEYS:
            near = did_you_mean(key, _KEYS)
            raise BackendError(f"malformed request: unknown key {key!r}{near}  (known: {', '.join(_KEYS)})")
    given = {key: value for key, value in message.items() if value is not None}
    for key in ("query", "k"):
        if key not in given:
            raise BackendError(f"malformed request: has no {key!r}")
    for key, (fits, wanted) in _SHAPES.items():
        if key in given and not fits(given[key]):
            raise BackendError(f"malformed request: {key} = {_shown(given[key])} is not {wanted}")
    for key, capability in NEEDS.items():
        # An empty filter and `expand: false` ask for nothing.
        if key in given and given[key] not in ({}, False) and capability not in capabilities:
            raise BackendError(f"backend {name!r} cannot answer {key!r}: it has no capability {capability!r}")
    return Request(
        text=given["query"],
        k=given["k"],
        kind=given.get("kind", default_kind),
        id=given.get("id", ""),
        scope=given.get("scope"),
        filter=given.get("filter"),
        time=given.get("time"),
        vector=given.get("vector"),
        expand=given.get("expand", False),
    )


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _filter(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_text, value.values()))


def _time(value: Any) -> bool:
    if not isinstance(value, dict) or len(value) != 1:
        return False
    if "between" in value:
        ends = value["between"]
        return isinstance(ends, list) and len(ends) == 2 and all(map(_whole, ends)) and ends[0] <= ends[1]
    return value.get("historical") is True or _whole(value.get("as_of"))


def _vector(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(part, int | float) and not isinstance(part, bool) and abs(part) <= sys.float_info.max
        for part in value
    )


_SHAPES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "query": (_text, "a text"),
    "k": (lambda value: _whole(value) and value >= 1, "a whole number of at least 1"),
    "kind": (_text, "a text"),
    "id": (_text, "a text"),
    "scope": (_text, "a text"),
    "filter": (_filter, "an object of texts"),
    "time": (_time, '{"as_of": e}, {"between": [a, b]} or {"historical": true}'),
    "vector": (_vector, "a list of finite numbers"),
    "expand": (lambda value: isinstance(value, bool), "true or false"),
}


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
