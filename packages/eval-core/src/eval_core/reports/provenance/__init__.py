"""The provenance sidecar of a report: what produced these bytes, as an in-toto statement that every reader recomputes.

`ARM.intoto.jsonl` lies beside `ARM.json`. All that it says follows from the report and from the bytes of its file,
so a reader does not believe it: it makes the statement again and compares. What was produced, and by what, is the
*producer*; the SHA-256 over it is the *fingerprint*, by which a waiver names it (SYSTEMS S4).

A sidecar binds numbers to what the report says of itself. It is no signature: whoever can rewrite a report can rewrite
its sidecar, and the answer to that is to measure in the job that gates.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from eval_core.errors import Refused
from eval_core.files import BOM, BOM_FAULT, atomic, canonical, digest, refuse_special, unreadable
from eval_core.reports.report import Report

if TYPE_CHECKING:
    from eval_core.reports.provenance.models import Statement

#: The in-toto statement layout, version 1.
STATEMENT = "https://in-toto.io/Statement/v1"

#: What the predicate is. in-toto's own test-result predicate says passed or failed, which a measurement has not.
PREDICATE = "urn:ladder:retrieval-measurement:v1"

SUFFIX = ".intoto.jsonl"

MISSING, MALFORMED = "provenance-missing", "provenance-malformed"
SUBJECT, DIVERGES = "provenance-subject-differs", "provenance-diverges"


class Finding(NamedTuple):
    """Why numbers are not vouched for. `fingerprint` is the one by which a waiver may cover it; None: none may."""

    code: str
    message: str
    fingerprint: str | None = None


def producer(report: Report) -> dict[str, Any]:
    """What produced a report's numbers, and not which run of it, when or where."""
    return producer_of(report.environment.version, report.task.parts, report.system.parts)


def producer_of(version: str, task: Mapping[str, Any], system: Mapping[str, Any]) -> dict[str, Any]:
    """The producer of a run by a version of eval-core, from the parts of its two keys."""
    return {
        "tool": {"name": "eval-core", "version": version},
        "system": system,
        "task": {name: part for name, part in task.items() if name != "cutoffs"},
    }


def fingerprint_of(report: Report) -> str:
    """SHA-256 over the producer, 64 hexadecimal digits: equal for two runs of one thing."""
    return digest(producer(report))


def statement(report: Report, report_bytes: bytes) -> dict[str, Any]:
    """The statement of a report whose file holds `report_bytes`, as JSON values; see `models.Statement`."""
    environment = report.environment.model_dump(mode="json", by_alias=True)
    made = producer(report)
    return {
        "_type": STATEMENT,
        "subject": [
            {"name": f"{report.arm}.json", "digest": {"sha256": hashlib.sha256(report_bytes).hexdigest()}}
        ],
        "predicateType": PREDICATE,
        "predicate": {
            "arm": report.arm,
            "run_id": report.run_id,
            "producer": made,
            "fingerprint": digest(made),
            "cutoffs": list(report.cutoffs),
            "environment": {
                name: environment[name]
                for name in ("started", "commit", "dirty", "class", "ci_run", "python", "platform")
            },
            "digests": {"rankings": report.digests.rankings, "quality": report.digests.quality},
        },
    }


def sidecar(report_path: Path) -> Path:
    """Where the sidecar of a report's file lies."""
    return report_path.with_name(report_path.name.removesuffix(".json") + SUFFIX)


def write(report_path: Path, report: Report) -> Path:
    """Write the sidecar of a report that was just written to `report_path`, whole or not at all; return its path.

    Raises:
        CouldNot: the report's file cannot be read, or the sidecar cannot be written.
    """
    try:
        raw = report_path.read_bytes()
    except OSError as error:
        raise unreadable(report_path, error) from error
    path = sidecar(report_path)
    with atomic(path) as stream:
        stream.write(_dump(statement(report, raw)))
    return path


def _dump(table: Mapping[str, Any]) -> bytes:
    return canonical(table) + b"\n"


def read(path: Path) -> Statement:
    """Read a sidecar, without holding it against a report.

    Raises:
        Refused: `provenance-missing`, or `provenance-malformed` (not JSON, or not this statement).
    """
    return _parsed(_bytes(path), path)


def _bytes(path: Path) -> bytes:
    try:
        refuse_special(path)
        return path.read_bytes()
    except FileNotFoundError as error:
        raise Refused(MISSING, "the report has no provenance", file=path) from error
    except OSError as error:
        raise Refused(MISSING, f"cannot be read: {error.strerror or error}", file=path) from error


def _parsed(raw: bytes, path: Path) -> Statement:
    # Imported here: a sidecar that fits is never taken apart, and the gate's start-up is a feature.
    from pydantic import ValidationError

    from eval_core.reports.provenance.models import Statement

    if raw.startswith(BOM):
        raise Refused(MALFORMED, f"the sidecar {BOM_FAULT}", file=path)
    try:
        found = json.loads(raw, object_pairs_hook=_distinct)
        canonical(found)  # no NaN, no infinity, no lone surrogate
        if not isinstance(found, dict):
            what = f"holds {raw[:40].decode('utf-8', 'replace').strip()!r}, not a statement of provenance"
            raise Refused(MALFORMED, what, file=path)
        return Statement.model_validate_json(raw)
    except ValidationError as error:
        from eval_core.faults import first

        key, value, what = first(error, Statement)
        raise Refused(MALFORMED, what, file=path, key=key, value=value) from error
    except (ValueError, OverflowError, RecursionError) as error:
        raise Refused(MALFORMED, f"is not whole JSON: {error}", file=path) from error


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that is given twice: parsers differ in which value they take."""
    table = dict(pairs)
    if len(table) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"key {next(n for n in names if names.count(n) > 1)!r} is given twice in one table")
    return table


def check(report: Report, report_bytes: bytes, sidecar_path: Path) -> list[Finding]:
    """Hold a report's sidecar against the report and the bytes of its file; nothing where it fits.

    A sidecar with the very bytes that the report gives fits, at the cost of one digest; only another is taken apart.

    Args:
        report: as it was read from `report_bytes`.
        report_bytes: what its file holds.
        sidecar_path: where its sidecar should lie; see `sidecar`.
    """
    expected = statement(report, report_bytes)
    try:
        raw = _bytes(sidecar_path)
        if raw == _dump(expected):
            return []
        found = _parsed(raw, sidecar_path)
    except Refused as error:
        return [Finding(error.code, error.message)]
    subject, wanted = found.subject[0], expected["subject"][0]
    if subject.name != wanted["name"]:
        return [Finding(SUBJECT, f"{sidecar_path}: is about {subject.name!r}, not {wanted['name']!r}")]
    if subject.digest.sha256 != wanted["digest"]["sha256"]:
        message = (
            f"{sidecar_path}: is about other bytes of {subject.name}, sha256 {subject.digest.sha256[:12]}…, and the "
            f"report's are {wanted['digest']['sha256'][:12]}…"
        )
        return [Finding(SUBJECT, message)]
    differing = list(changes(json.loads(raw)["predicate"], expected["predicate"]))
    if not differing:
        return []
    # A waiver is for a producer that is known. One that speaks of another run, or contradicts itself, is none.
    known = all(name == "fingerprint" or name.startswith("producer.") for name, _, _ in differing)
    message = f"{sidecar_path}: says other things than the report: {told(differing)}"
    return [Finding(DIVERGES, message, found.fingerprint if known else None)]


Change = tuple[str, Any, Any]

#: Changes that one sentence tells.
MOST_TOLD = 8

#: What a side has that lacks an entry.
NOTHING = object()


def changes(before: Any, now: Any, name: str = "") -> Iterator[Change]:
    """The innermost table entries that differ: dotted name, before, now. `true`, 1 and 1.0 are three values here."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in (*now, *(key for key in before if key not in now)):
            dotted = f"{name}.{key}" if name else str(key)
            yield from changes(before.get(key, NOTHING), now.get(key, NOTHING), dotted)
    elif not _same(before, now):
        yield name, before, now


def _same(one: Any, other: Any) -> bool:
    if one is NOTHING or other is NOTHING:
        return one is other
    return _text(one) == _text(other)


def _text(value: Any) -> str:
    """A value's JSON; whatever TOML can hold that JSON cannot becomes a text."""
    return json.dumps(value, sort_keys=True, default=str)


def told(differing: Iterable[Change]) -> str:
    """Changes in words, the first few: `options.k1 1.5 → 2.0`, a lacking side as a dash."""
    words = [f"{name} {_shown(before)} → {_shown(now)}" for name, before, now in differing]
    return "; ".join(words[:MOST_TOLD] + ([f"… {len(words) - MOST_TOLD} more"] if words[MOST_TOLD:] else []))


def _shown(value: Any) -> str:
    if value is NOTHING:
        return "–"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
