"""`eval-core reason`: what a reason code means, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

import click

_EPILOG = """\b
Examples:
  eval-core reason                    every code, by what it is about
  eval-core reason query-set-differs  what it means, and what to do
"""


@click.command(epilog=_EPILOG)
@click.argument("codes", nargs=-1, metavar="[CODE]...")
def reason(codes: tuple[str, ...]) -> None:
    """Say what reason codes mean, as every error and every verdict carries one."""
    from eval_core.errors import Misuse, did_you_mean
    from eval_core.reasons import GROUPS, REASONS

    for code in codes:
        if code not in REASONS:
            what = f"there is no such reason{did_you_mean(code, REASONS)}"
            raise Misuse("usage", what, key="CODE", value=code, mend="eval-core reason   lists them.")
    if codes:
        click.echo("\n\n".join("\n".join(_meaning(code)) for code in codes))
        return
    for heading, group in GROUPS.items():
        click.echo(heading)
        click.echo("".join(f"  {code:<32} {entry.title}\n" for code, entry in group.items()))


def _meaning(code: str) -> Iterator[str]:
    import textwrap

    from eval_core.reasons import REASONS

    entry = REASONS[code]
    yield f"{code}   {entry.title}   " + (f"exit {entry.exit}" if entry.exit else "counted, refuses nothing")
    for text in (entry.meaning, entry.mend):
        yield from textwrap.wrap(text, 98, initial_indent=" ", subsequent_indent=" ", break_on_hyphens=False)
