"""Types of command-line values that click's own let through wrongly: its ranges take `nan`."""

from __future__ import annotations

import math
import shlex
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


#: Where a command line is kept as it was typed.
TYPED = "eval_gate.typed"


class Several(click.Command):
    """A command in which the option `--from` takes every word up to the next option; it knows how it was typed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[TYPED] = f"eval-gate {self.name} {shlex.join(args)}".strip()
        words: list[str] = []
        within = False
        for place, word in enumerate(args):
            if word.startswith("-"):
                within = word == "--from"
                if word == "--":
                    words += args[place:]
                    break
            elif within and words[-1] != "--from":
                words.append("--from")
            words.append(word)
        return super().parse_args(ctx, words)


def reasons(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Reasons by key, each of which says something: a callback of an option that is given as KEY=TEXT."""
    found: dict[str, str] = {}
    for value in values:
        key, equals, text = value.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f'{value!r}: write KEY="why"', ctx=ctx, param=param)
        _check_says(text, ctx, param)
        if key in found:
            raise click.BadParameter(f"{key!r} is given twice", ctx=ctx, param=param)
        found[key.strip()] = text.strip()
    return found


def _check_says(text: str, ctx: click.Context, param: click.Parameter) -> None:
    from eval_core.policy import says

    if not says(text):
        raise click.BadParameter(
            f"{text!r} says nothing; say why in words, since they are kept in the file", ctx=ctx, param=param
        )


def drops(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    """Points by measure: a callback of an option that is given as MEASURE=POINTS."""
    found = {}
    for value in values:
        measure, equals, points = value.partition("=")
        if not equals or not measure:
            raise click.BadParameter(f"{value!r}: write MEASURE=POINTS", ctx=ctx, param=param)
        found[measure] = Finite(0, 100).convert(points, param, ctx)
    return found


def margin(ctx: click.Context, param: click.Parameter, value: str | None) -> int | str | None:
    """Whole misses, or `derived`: a callback of an option."""
    if value is None or value == "derived":
        return value
    if not (value.isascii() and value.isdigit()) or int(value) > 1000:
        raise click.BadParameter(
            f"{value!r} is neither a number of misses from 0 to 1000 nor 'derived'", ctx=ctx, param=param
        )
    return int(value)
