"""Validation errors as the fields of an error: key, value and what is wrong. Read only when there is one."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from eval_core.errors import UNSET, Details, EvalError, Faults, Misuse, did_you_mean, sentence


class Described(NamedTuple):
    """A validation error as fields of an error: where in the file, what stands there, and what is wrong with it."""

    key: str | None
    value: Any
    what: str


def describe(detail: Any, model: type[BaseModel]) -> Described:
    """One validation error of pydantic as fields."""
    key = dotted_name(keys_of(detail["loc"], model)) or None
    kind, given = detail["type"], detail["input"]
    if kind == "extra_forbidden":
        known = _known(detail["loc"][:-1], model)
        listed = f"  (known: {', '.join(known)})" if known else ""
        return Described(key, UNSET, f"unknown key{did_you_mean(str(detail['loc'][-1]), known)}{listed}")
    if kind == "missing":
        return Described(key, UNSET, "it is missing")
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        tags = [tag for place in _at(detail["loc"], model) if _is_model(place) and (tag := _tag(place))]
        written = given.get("type") if isinstance(given, dict) else given
        if kind == "union_tag_not_found" or not isinstance(written, str):
            return Described(key, UNSET, f"has no type; give one of {', '.join(tags)}")
        near = f"{did_you_mean(written, tags)}  (known: {', '.join(tags)})"
        return Described(f"{key}.type" if key else "type", written, f"there is no such type{near}")
    if kind == "value_error":
        return Described(key, UNSET, str(detail["ctx"]["error"]))
    if kind == "string_pattern_mismatch":
        return Described(key, given, f"should match '{detail['ctx']['pattern']}'")
    # pydantic's own words: "Input should be a valid string".
    _, should, wanted = detail["msg"].partition(" should ")
    return Described(key, given, f"should {wanted}" if should else detail["msg"])


def first(error: ValidationError, model: type[BaseModel]) -> Described:
    """The first validation error as fields, for a file of which one fault is enough to refuse it."""
    details = error.errors(include_url=False)
    found = describe(details[0], model)
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    return found._replace(what=found.what + more)


def first_fault(error: ValidationError, model: type[BaseModel]) -> str:
    """The first validation error in words."""
    found = first(error, model)
    return sentence(Details(code="input-invalid", what=found.what, key=found.key, value=found.value))


def dotted_name(keys: Iterable[str]) -> str:
    out = ""
    for key in keys:
        if key.startswith("["):
            out += key
        else:
            shown = key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else f'"{key}"'
            out += f".{shown}" if out else shown
    return out


def keys_of(loc: tuple[int | str, ...], model: type[BaseModel]) -> list[str]:
    """The location without the tags of unions, list places as `[2]`."""
    keys: list[str] = []
    here: list[Any] = [model]
    for part in loc:
        if isinstance(part, int):
            keys.append(f"[{part}]")
            here = [inner for place in here for inner in _items(place)]
            continue
        tagged = [place for place in here if _is_model(place) and _tag(place) == part]
        if len(here) > 1 and tagged:
            here = tagged
            continue
        keys.append(part)
        here = [inner for place in here for inner in _member(place, part)]
    return keys


def _known(loc: tuple[int | str, ...], model: type[BaseModel]) -> list[str]:
    names: list[str] = []
    for place in _at(loc, model):
        if _is_model(place):
            names += [field.alias or name for name, field in place.model_fields.items()]
    return names


def _at(loc: tuple[int | str, ...], model: type[BaseModel]) -> list[Any]:
    """The types that stand at a location of the model."""
    here: list[Any] = [model]
    for part in loc:
        if isinstance(part, int):
            here = [inner for place in here for inner in _items(place)]
        elif len(here) > 1 and any(_is_model(place) and _tag(place) == part for place in here):
            here = [place for place in here if _is_model(place) and _tag(place) == part]
        else:
            here = [inner for place in here for inner in _member(place, part)]
    return here


def _is_model(place: Any) -> bool:
    return isinstance(place, type) and issubclass(place, BaseModel)


def _tag(place: type[BaseModel]) -> str | None:
    field = place.model_fields.get("type")
    values = typing.get_args(field.annotation) if field is not None else ()
    return values[0] if values else None


def _unwrap(annotation: Any) -> list[Any]:
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _unwrap(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        return [inner for part in typing.get_args(annotation) for inner in _unwrap(part)]
    return [annotation]


def _member(place: Any, key: str) -> list[Any]:
    if _is_model(place):
        for name, field in place.model_fields.items():
            if key in (name, field.alias):
                return _unwrap(field.annotation)
        return []
    if typing.get_origin(place) is dict:
        return _unwrap(typing.get_args(place)[1])
    return []


def _items(place: Any) -> list[Any]:
    if typing.get_origin(place) in (list, tuple):
        return _unwrap(typing.get_args(place)[0])
    return []


_HEADER = re.compile(r"^\s*\[(\[?)(.+?)\]{1,2}\s*(#.*)?$")
_KEY = re.compile(
    r"""^\s*((?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+))*)\s*="""
)
_PART = re.compile(r""""([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+)""")


def _split(dotted: str) -> list[str]:
    return [a or b or c for a, b, c in _PART.findall(dotted)]


def line_of(text: str, keys: list[str]) -> int | None:
    """The line of the longest written prefix of `keys` in TOML text: the key itself, else its table's header.

    A reading of headers and `key =` lines, good enough to point at; multi-line texts could mislead it by a line.
    """
    best: tuple[int, int] | None = None
    table: list[str] = []
    counts: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header:
            table = _split(header[2])
            if header[1]:
                place = counts[header[2]] = counts.get(header[2], -1) + 1
                table = [*table, f"[{place}]"]
            found = table
        elif written := _KEY.match(line):
            found = [*table, *_split(written[1])]
        else:
            continue
        common = len(found) if keys[: len(found)] == found else 0
        if found[: len(keys)] == keys:
            # `options.k1 = 2` writes a part of `options`, and points at it as well as anything.
            common = len(keys)
        if common and (best is None or common > best[0]):
            best = (common, number)
    return best[1] if best else None


def unmerged(error: EvalError) -> Misuse | None:
    """What to tell in the place of an error where git could not merge a file that it names: all that is wrong with that
    file follows from the marks that git left."""
    from eval_core.files import conflict

    named = [fault.file for fault in error.faults] if isinstance(error, Faults) else [error.details.file]
    for file in dict.fromkeys(name for name in named if name is not None):
        if line := conflict(Path(file)):
            mend = "Take one side, or both, and remove the lines <<<<<<<, ======= and >>>>>>>."
            if "policy" in Path(file).absolute().parts:
                mend = (
                    f"Take one side:  git checkout --ours {file}   then measure the merged tree and move the bar:  "
                    "eval-gate floor --measure --write"
                )
            return Misuse(
                "merge-conflict", "holds the marks of a merge conflict", file=file, line=line, mend=mend
            )
    return None
