"""`python -m eval_gate` is `eval-gate`."""

from __future__ import annotations

from eval_gate.cli import main

main()
