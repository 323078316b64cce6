"""The published files of LongMemEval, by their digests, and what their questions are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

#: SHA-256 of the file to its name. The oracle is the same in both releases; the cleaned one is of September 2025.
RELEASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "821a2034d219ab45846873dd14c14f12cfe7776e73527a483f9dac095d38620c": "oracle",
        "08d8dad4be43ee2049a22ff5674eb86725d0ce5ff434cde2627e5e8e7e117894": "S, original",
        "d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442": "S, cleaned",
        "fb5413e3b077c62927daab794836991a2fcfa61ceacab57dc679fb02daaff2d9": "M, original",
        "9d79e5524794a2e6900a3aa9cb7d9152c5a3e8319c9a87c25494ba1eacee495f": "M, cleaned",
    }
)

#: Questions of each type, with those of abstention, in the order of the files; and the latter alone.
TYPES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "single-session-user": 70,
        "multi-session": 133,
        "single-session-preference": 30,
        "temporal-reasoning": 133,
        "knowledge-update": 78,
        "single-session-assistant": 56,
    }
)
ABSTENTION: Final[Mapping[str, int]] = MappingProxyType(
    {"single-session-user": 6, "multi-session": 12, "temporal-reasoning": 6, "knowledge-update": 6}
)
QUESTIONS = sum(TYPES.values())


#: SHA-256 over the ids of their questions, sorted, a line each: all releases have the same.
_IDS = "702287feda46afbb122e7d61f8fb1530e6b571b8172e248376c4f887d0527f42"


def release(sha256: str, ids: Iterable[str]) -> str:
    """Which release a file is: a name, `edited` for the questions of the releases in other bytes, or `unknown`."""
    if sha256 in RELEASES:
        return RELEASES[sha256]
    same = hashlib.sha256("\n".join(sorted(ids)).encode("utf-8")).hexdigest() == _IDS
    return "edited" if same else "unknown"
