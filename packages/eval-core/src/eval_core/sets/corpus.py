"""`corpus.jsonl` on disk: read document by document, every fault with its line, never held in memory."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from eval_core.backend import Document
from eval_core.errors import Fault, Faults
from eval_core.files import BOM, BOM_FAULT, canonical, unreadable

_UNSAFE = re.compile(r"[\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
_FIELDS = ("_id", "title", "text", "metadata")


def encode_id(name: str) -> str:
    """Percent-encode what no format can carry in an id: control characters, white space, `%`; a byte that is not
    UTF-8 (a surrogate escape) becomes `%XX` of that byte."""
    out: list[str] = []
    for character in name:
        if character == "%" or _UNSAFE.match(character) or "\ud800" <= character <= "\udfff":
            out += [f"%{byte:02X}" for byte in character.encode("utf-8", "surrogateescape")]
        else:
            out.append(character)
    return "".join(out)


def id_fault(given: object) -> str | None:
    """Say what is wrong with an id, or None. Ids are texts without white space or control characters."""
    if not isinstance(given, str):
        return f"_id {given!r} is not a text; write it in quotes"
    if not given:
        return "_id is empty"
    if _UNSAFE.search(given):
        return f"_id {given!r} holds white space or control characters; write it as {encode_id(given)!r}"
    return None


def record(document: Document) -> dict[str, Any]:
    """The document as its line of `corpus.jsonl` holds it."""
    return {
        "_id": document.id,
        "title": document.title,
        "text": document.text,
        "metadata": dict(document.metadata),
    }


def document_line(document: Document) -> bytes:
    """The canonical line of a document, without the newline."""
    return canonical(record(document))


def document_digest(document: Document) -> bytes:
    """SHA-256 (32 bytes) of the canonical line."""
    return hashlib.sha256(document_line(document)).digest()


def corpus_digest(digests: Iterable[tuple[str, bytes]]) -> str:
    """The corpus digest: SHA-256 over (id, newline, document digest in hexadecimal, newline), sorted by id."""
    total = hashlib.sha256()
    for name, document in sorted(digests):
        total.update(f"{name}\n{document.hex()}\n".encode())
    return total.hexdigest()


def read_json_lines(path: Path, fault: Callable[[int, str], None]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number from 1, object) of a JSON-lines file; `fault` is told of each line that is not an object.

    Blank lines are passed over. A byte order mark, broken UTF-8, broken JSON, NaN, a number beyond double precision, a
    key given twice and lone surrogates are faults.

    Raises:
        CouldNot: the file cannot be read.
    """
    try:
        stream = path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from error
    with stream:
        yield from json_lines(enumerate(stream, 1), fault)


def json_lines(
    lines: Iterable[tuple[int, bytes]], fault: Callable[[int, str], None]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of numbered lines; see `read_json_lines`."""
    for number, raw in lines:
        if number == 1 and raw.startswith(BOM):
            fault(1, BOM_FAULT)
            raw = raw[len(BOM) :]
        if not raw or raw.isspace():
            continue
        try:
            value = decode_json(raw.decode("utf-8").strip(" \t\r\n"))
        except UnicodeDecodeError as error:
            fault(number, f"not UTF-8: byte {error.object[error.start]:#04x} at column {error.start + 1}")
            continue
        except ValueError as error:
            fault(number, _short(error))
            continue
        if isinstance(value, dict):
            yield number, value
        else:
            fault(number, f"expected a JSON object, not {_kind(value)}")


def decode_json(text: str) -> Any:
    """Decode JSON without NaN, numbers beyond double precision, keys given twice and lone surrogates.

    Raises:
        ValueError: it is not such JSON, or nested too deeply.
    """
    try:
        value = _decoder.decode(text)
        if "\\u" in text:
            canonical(value)  # a lone surrogate cannot be written again
    except UnicodeEncodeError as error:
        what = "holds a lone surrogate escape (\\ud800 to \\udfff), which is not a character"
        raise ValueError(what) from error
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except json.JSONDecodeError:
        raise
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from error
    return value


def _short(error: ValueError) -> str:
    return (
        f"not JSON: {error.msg} at column {error.colno}"
        if isinstance(error, json.JSONDecodeError)
        else str(error)
    )


def _kind(value: object) -> str:
    return {list: "a list", str: "a text", bool: "a truth value", type(None): "null"}.get(
        type(value), "a number"
    )


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is beyond double precision")
    return number


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"key {key!r} is given twice")
            seen.add(key)
    return table


_decoder = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_no_repeats)


#: What other formats call the fields of a line.
_ELSEWHERE = {
    "_id": ("id", "doc_id", "docid", "document_id", "query_id", "qid"),
    "text": ("body", "content", "contents", "query"),
}


def lacking(field: str, value: Mapping[str, Any]) -> str:
    """That a line has no such field, with the one that is probably meant."""
    meant = next((name for name in _ELSEWHERE[field] if name in value), None)
    return f"has no {field!r}" + (f"; rename {meant!r} to it" if meant else "")


def parse_document(value: Mapping[str, Any]) -> Document | str:
    """Turn a line's object into a Document, or say what is wrong with it."""
    if "_id" not in value:
        return lacking("_id", value)
    problem = id_fault(value["_id"])
    if problem is not None:
        return problem
    title, text, metadata = value.get("title"), value.get("text"), value.get("metadata")
    if title is not None and not isinstance(title, str):
        return f"title {title!r} is not a text"
    if not isinstance(text, str):
        return lacking("text", value) if text is None else f"text {text!r} is not a text"
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, dict):
        return f"metadata {metadata!r} is not a table"
    for key in ("kind", "path"):
        if key in metadata and not isinstance(metadata[key], str):
            return f"metadata.{key} {metadata[key]!r} is not a text"
    scopes = metadata.get("scopes", [])
    if not isinstance(scopes, list) or not all(isinstance(scope, str) and scope for scope in scopes):
        return f"metadata.scopes {scopes!r} is not a list of names"
    unknown = [key for key in value if key not in _FIELDS]
    if unknown:
        # BEIR sets carry extra fields (urls, dates); they belong in metadata, where they are kept and digested.
        metadata = {**{key: value[key] for key in unknown}, **metadata}
    return Document(value["_id"], title or "", text, metadata)


def scopes_of(metadata: Mapping[str, Any]) -> tuple[str | None, ...]:
    """The scopes of the queries that can find a document with this metadata: its own, and None, since a query without
    a scope searches the whole corpus."""
    return (None, *dict.fromkeys(metadata.get("scopes", ())))


class CorpusFile:
    """A `corpus.jsonl`, as a Corpus: each iteration reads the file again."""

    def __init__(self, path: Path, kind: str = "") -> None:
        self._path = path
        self._kind = kind
        self._length: int | None = None

    @property
    def path(self) -> Path:
        return self._path

    @property
    def kind(self) -> str:
        return self._kind

    def __len__(self) -> int:
        if self._length is None:
            self._length = sum(1 for _ in self)
        return self._length

    def __iter__(self) -> Iterator[Document]:
        """Yield the documents in the file's order.

        Raises:
            Faults: at the first line that is no document.
            CouldNot: the file cannot be read.
        """
        for _, document in self.numbered(self._stop):
            yield document

    def _stop(self, line: int, message: str) -> None:
        raise Faults([Fault(message, file=self._path, line=line)])

    def numbered(self, fault: Callable[[int, str], None]) -> Iterator[tuple[int, Document]]:
        """Yield (line, document), telling `fault` of each line that is none."""
        for number, value in read_json_lines(self._path, fault):
            document = parse_document(value)
            if isinstance(document, str):
                fault(number, document)
            else:
                yield number, document
