"""What a reader of source text finds: functions and classes with their names, lines and doc comments."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function, method, class or type.

    `qualified` is the name as its language writes it, with the classes around it. `line` counts from 1. `doc` is the
    doc comment without its marks, empty where there is none. `public` says whether others may use it, as far as the
    text shows. `defined` is false for a bare declaration, such as a prototype in a header.
    """

    name: str
    qualified: str
    line: int
    doc: str = ""
    public: bool = True
    defined: bool = True


class Unparsed(ValueError):
    """A text that its language's reader cannot take."""
