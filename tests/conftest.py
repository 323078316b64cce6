"""What the tests of every package share: the way to data that is not kept here."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

#: Where files that others published may lie: what EVAL_TEST_DATA names, else a folder beside the checkout.
DATA = Path(os.environ.get("EVAL_TEST_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """Find a file or folder of published data by its path there; the test is skipped, saying so, where it is absent."""

    def find(name: str) -> Path:
        path = DATA / name
        if not path.exists():
            pytest.skip(f"{name}: not on this machine; EVAL_TEST_DATA names the folder that holds it")
        return path

    return find
