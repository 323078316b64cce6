"""What an arm and its queries ask of a backend beyond answering a text, and what the backend lacks of it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

from eval_core import backend as backends
from eval_core.config import Arm
from eval_core.sets.corpus import read_json_lines

#: What asks for a capability. Without `scope`, each scope gets an index of its own; nothing asks by a vector.
ASKED_BY = {"filter": "filter_from", "expand": "expand = true", "temporal": "metadata.time of its queries"}


def lack(arm: Arm, capability: str) -> str:
    """Say that the arm's backend lacks a capability, by the key that would give it where there is one."""
    try:
        given = "capabilities" in inspect.signature(backends.load(arm.backend)).parameters
    except Exception:  # noqa: BLE001  # other people's code; the capability is lacking all the same
        given = False
    where = "options.capabilities" if given else f"the backend {arm.backend!r}"
    return f"{where} lacks {capability!r}, which {ASKED_BY[capability]} asks for"


def lacking(arm: Arm, folder: Path, capabilities: frozenset[str]) -> Iterator[tuple[str, str]]:
    """The keys of an arm whose wish its backend cannot fulfil, each with the capability that it lacks.

    Args:
        folder: of the arm's set, whose queries may all be about a time.
        capabilities: what the backend has.
    """
    if arm.filter_from and "filter" not in capabilities:
        yield "filter_from", "filter"
    if arm.expand and "expand" not in capabilities:
        yield "expand", "expand"
    if "temporal" not in capabilities and _all_of_a_time(arm, folder / "queries.jsonl"):
        yield "backend", "temporal"


def _all_of_a_time(arm: Arm, queries: Path) -> bool:
    """Whether every query that the arm selects is about a time; what is wrong with them is told by loading them."""
    if not queries.is_file():
        return False
    told = [value.get("metadata") for _, value in read_json_lines(queries, lambda line, what: None)]
    metadata = [found if isinstance(found, dict) else {} for found in told]
    asked = [found for found in metadata if all(found.get(key) in arm.select[key] for key in arm.select)]
    return bool(asked) and all("time" in found for found in asked)
