"""Functions, classes and methods of Python source with their docstrings, by `ast`."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from eval_core.authoring.derive.symbols import Symbol, Unparsed


def read(text: str) -> list[Symbol]:
    """The functions, classes and methods of a module, in the order of its lines.

    What stands in a function is its own matter and is left out; what stands in a class, an `if`, a `try` or a `with`
    is found. Public is what has no leading underscore in any part of its name.

    Raises:
        Unparsed: it is not Python, or not of this Python's grammar.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of someone else's escapes and comparisons
            tree = ast.parse(text.removeprefix("\ufeff"))
        return list(_below(tree.body, ()))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unparsed(str(error)) from error


def _below(body: list[ast.stmt], outer: tuple[str, ...]) -> Iterator[Symbol]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = (*outer, node.name)
            yield Symbol(
                name=node.name,
                qualified=".".join(names),
                line=node.lineno,
                doc=ast.get_docstring(node) or "",
                public=not any(name.startswith("_") for name in names),
            )
            if isinstance(node, ast.ClassDef):
                yield from _below(node.body, names)
        else:
            yield from _below(_inner(node), outer)


def _inner(node: ast.stmt) -> list[ast.stmt]:
    """The statements below one that opens no scope, in the order of their lines."""
    if isinstance(node, ast.If | ast.For | ast.While):
        return [*node.body, *node.orelse]
    if isinstance(node, ast.Try | ast.TryStar):
        handled = [statement for handler in node.handlers for statement in handler.body]
        return [*node.body, *handled, *node.orelse, *node.finalbody]
    if isinstance(node, ast.With):
        return node.body
    if isinstance(node, ast.Match):
        return [statement for case in node.cases for statement in case.body]
    return []
