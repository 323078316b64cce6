"""Reconstructs a judged set from pinned sources and measures retrieval on it; holds all shared models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__version__ = "0.1.0"

__all__ = ["__version__", "lazily"]


def lazily(room: str, **modules: str) -> Callable[[str], Any]:
    """The `__getattr__` of a room whose public names are imported when they are asked for: some load an engine.

    Args:
        room: the package.
        modules: by module of the room, its public names with spaces between them; a module may itself be public.
    """
    places = {name: module for module, names in modules.items() for name in names.split()}

    def get(name: str) -> Any:
        from importlib import import_module

        if name in places:
            return getattr(import_module(f"{room}.{places[name]}"), name)
        if name in modules:
            return import_module(f"{room}.{name}")
        raise AttributeError(f"module {room!r} has no attribute {name!r}")

    return get
