"""Converts LongMemEval and LoCoMo files to judged sets. It has no commands yet."""

from __future__ import annotations

__version__ = "0.1.0"
