"""Audit of repositories: which sits at which tier of the ladder, by evidence that a reader can point at."""

from __future__ import annotations

__version__ = "0.1.0"
