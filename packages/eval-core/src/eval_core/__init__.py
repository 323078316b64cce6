"""Reconstructs a judged set from pinned sources and measures retrieval on it; holds all shared models."""

from __future__ import annotations

__version__ = "0.1.0"
