"""Snapshots of a forge's settings: the one part that asks the network, when told to."""

from __future__ import annotations

from eval_core import lazily

__all__ = ["API", "check_name", "default_file", "take"]

__getattr__ = lazily(__name__, github="API check_name default_file take")
