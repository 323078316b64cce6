"""Files that people or tools write, read into closed models; every fault names file, line, key, value and mend."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from eval_core.errors import Fault, Faults, Misuse
from eval_core.files import read_text

#: Names of sets, arms and sources: they become file names.
NAME = r"^[a-z0-9][a-z0-9._-]*$"


class Closed(BaseModel):
    """A frozen model: types are strict (`true` and `"0.95"` are no numbers), NaN and infinity are refused, and
    unknown keys are errors. Built when first used, so that importing it costs little."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, defer_build=True, populate_by_name=True
    )


Model = TypeVar("Model", bound=BaseModel)


def read_toml(path: Path, model: type[Model], what: str) -> Model:
    """Read a TOML file into `model`.

    Raises:
        Misuse: the file is absent or is not TOML.
        Faults: it does not fit the model; every fault is listed.
    """
    text = read_text(path, what)
    return parse_toml(text, model, path, what)


def parse_toml(text: str, model: type[Model], path: Path, what: str) -> Model:
    """Read TOML text into `model`; see `read_toml`."""
    try:
        return _parsed(text, model, path, what)
    except (ValueError, OverflowError, RecursionError) as error:
        # Numbers of thousands of digits, and tables in tables in tables: TOML by its grammar, and of no use here.
        raise Misuse("file-malformed", f"the {what} cannot be read: {error}", file=path) from error


def _parsed(text: str, model: type[Model], path: Path, what: str) -> Model:
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Misuse("file-malformed", f"the {what} is not TOML: {error}", file=path) from error
    if endless := list(_endless(table)):
        from eval_core.faults import dotted_name

        raise Faults(
            Fault(
                "should be a finite number",
                file=path,
                line=line_in(text, keys),
                key=dotted_name(keys),
                value=number,
            )
            for keys, number in endless
        )
    try:
        # Through JSON, since only there do strict models take arrays for tuples; a TOML date becomes a text.
        return model.model_validate_json(json.dumps(table, default=str))
    except ValidationError as error:
        from eval_core.faults import describe, keys_of

        faults = []
        details = error.errors(include_url=False)
        for detail in details:
            # A list whose entries are wrong counts as empty, which is no fault of its own.
            around = detail["loc"]
            if detail["type"] == "too_short" and any(
                d["loc"][: len(around)] == around != d["loc"] for d in details
            ):
                continue
            key, value, wrong = describe(detail, model)
            line = line_in(text, keys_of(detail["loc"], model))
            faults.append(Fault(wrong, file=path, line=line, key=key, value=value))
        raise Faults(faults) from error


def _endless(value: object, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    """The infinities and NaNs of a TOML table, which JSON and so no key or report can hold."""
    if isinstance(value, float) and not math.isfinite(value):
        yield keys, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _endless(inner, (*keys, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _endless(inner, (*keys, f"[{place}]"))


def line_in(text: str, keys: Sequence[str]) -> int | None:
    """The line of a key in a TOML text, or of the nearest table around it; None where nothing fits."""
    from eval_core.faults import line_of

    return line_of(text, list(keys))
