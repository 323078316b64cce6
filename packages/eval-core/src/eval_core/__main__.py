"""`python -m eval_core` is `eval-core`."""

from __future__ import annotations

from eval_core.cli import main

main()
