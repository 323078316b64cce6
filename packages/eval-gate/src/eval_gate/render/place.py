"""Where the files lie that a verdict speaks of."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple


class Place(NamedTuple):
    """The files of a check. Reports are named by arm where they lie elsewhere."""

    config: Path = Path("eval.toml")
    policy: Path = Path("policy")
    floors: Path = Path("policy/floors.toml")
    reports: Path = Path(".eval/reports")
    named: Mapping[str, Path] = MappingProxyType({})

    def report(self, arm: str) -> Path:
        """Where an arm's report lies."""
        return self.named.get(arm, self.reports / f"{arm}.json")
