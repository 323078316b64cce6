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
