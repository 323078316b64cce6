"""Audit of repositories: which sits at which tier of the ladder. It has no commands yet."""

from __future__ import annotations

__version__ = "0.1.0"
