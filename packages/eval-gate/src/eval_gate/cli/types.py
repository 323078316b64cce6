"""Types of command-line values that click's own let through wrongly: its ranges take `nan`."""

from __future__ import annotations

import math
from typing import Any

import click


class Finite(click.FloatRange):
    """A finite number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


SHARE = Finite(0, 1)
POSITIVE = Finite(min=0, min_open=True)


def reason(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """A reason that says something: a callback of an option."""
    from eval_gate.reasons import says

    if value is not None and not says(value):
        raise click.BadParameter(
            f"{value!r} says nothing; say why in words, since they are kept in the file", ctx=ctx, param=param
        )
    return value


def margin(ctx: click.Context, param: click.Parameter, value: str | None) -> int | str | None:
    """Whole misses, or `derived`: a callback of an option."""
    if value is None or value == "derived":
        return value
    if not (value.isascii() and value.isdigit()) or int(value) > 1000:
        raise click.BadParameter(
            f"{value!r} is neither a number of misses from 0 to 1000 nor 'derived'", ctx=ctx, param=param
        )
    return int(value)
