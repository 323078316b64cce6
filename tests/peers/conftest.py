from __future__ import annotations

import sys
from pathlib import Path

# The helpers are a module of this folder, which the importlib mode of pytest does not find by itself.
sys.path.insert(0, str(Path(__file__).resolve().parent))
