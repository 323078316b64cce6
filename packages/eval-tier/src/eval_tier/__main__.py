"""`python -m eval_tier`."""

from __future__ import annotations

from eval_tier.cli import main

main()
