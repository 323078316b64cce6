"""Converts LongMemEval files, which users download themselves, to judged sets that eval_core measures."""

from __future__ import annotations

__version__ = "0.1.0"
