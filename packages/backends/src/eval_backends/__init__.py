"""Retrievers, and adapters to retrievers elsewhere, behind the public entry-point group `eval.backends`."""

from __future__ import annotations

__version__ = "0.1.0"
