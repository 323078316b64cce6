"""Writes floors from measured runs and grades reports against them, offline and without a choice."""

from __future__ import annotations

__version__ = "0.1.0"
