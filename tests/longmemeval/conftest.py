from __future__ import annotations

import sys
from pathlib import Path

import pytest

# The helpers are a module of this folder, which the importlib mode of pytest does not find by itself.
sys.path.insert(0, str(Path(__file__).resolve().parent))

from lme_support import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """An empty folder to run the scripts in."""
    root = tmp_path / "desk"
    root.mkdir()
    return Desk(root)
