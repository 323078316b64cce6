"""What the tests of loading share: a small sound set, and the faults of one that is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from core_support import write_set

from eval_core.errors import Faults
from eval_core.sets.dataset import load

DOCUMENTS = {"d1": "one", "d2": "two", "d3": "three"}
QUERIES = {"q1": "first", "q2": "second"}
JUDGEMENTS = [("q1", "d1", 1), ("q2", "d2", 2), ("q2", "d3", 0)]
DEFINITION = 'name = "notes"\n'


def sound(folder: Path, definition: str | None = DEFINITION) -> Path:
    return write_set(folder, DOCUMENTS, QUERIES, JUDGEMENTS, definition)


def faults(folder: Path, **options: Any) -> list[str]:
    """Every fault as `file:line  message`, the files relative to the set."""
    with pytest.raises(Faults) as caught:
        load(folder, **options)
    assert caught.value.exit_code == 2
    return [str(fault).replace(f"{folder}/", "") for fault in caught.value.faults]
