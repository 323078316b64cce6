"""Which questions a sample takes: each type, and abstention, in its share; the same ones whatever their order."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from eval_core.errors import Misuse
from longmemeval_convert.record import ABSTENTION

Key = TypeVar("Key", bool, str)


def stratified(questions: Iterable[tuple[str, str]], size: int, seed: int) -> set[str]:
    """Ids of `size` questions out of (id, type).

    Abstention first gets its share, then every type its share of each part, by largest remainders. Within a type, those
    come first whose digest with the seed is lowest, so that a smaller sample is nearly a part of a larger one.

    Raises:
        Misuse: there are fewer.
    """
    parts: dict[bool, dict[str, list[str]]] = {False: defaultdict(list), True: defaultdict(list)}
    total = 0
    for name, kind in questions:
        parts[ABSTENTION in name][kind].append(name)
        total += 1
    if size > total:
        raise Misuse("usage", f"there are only {total} questions to sample from", key="--sample", value=size)
    sizes = {part: sum(map(len, kinds.values())) for part, kinds in parts.items()}
    shares = apportion(sizes, size)
    chosen: set[str] = set()
    for part, kinds in parts.items():
        for kind, count in apportion(
            {kind: len(names) for kind, names in kinds.items()}, shares[part]
        ).items():
            chosen.update(_first(kinds[kind], count, seed))
    return chosen


def _first(names: Sequence[str], count: int, seed: int) -> list[str]:
    return sorted(names, key=lambda name: hashlib.sha256(f"{seed}\n{name}".encode()).digest())[:count]


def apportion(sizes: Mapping[Key, int], seats: int) -> dict[Key, int]:
    """Seats in proportion to sizes, by the method of largest remainders (Hamilton); ties by name."""
    total = sum(sizes.values())
    shares = {key: seats * size // total if total else 0 for key, size in sizes.items()}
    rest = sorted(sizes, key=lambda key: (-(seats * sizes[key] % total), key)) if total else []
    for key in rest[: seats - sum(shares.values())]:
        shares[key] += 1
    return shares
