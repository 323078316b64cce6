"""`longmemeval-convert synth`: a synthetic file in the format, to try things on that must not depend on the data."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "--variant", type=click.Choice(["s", "m", "oracle"]), default="s", show_default=True, help="Its size."
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--questions", type=click.IntRange(1), default=500, show_default=True)
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="The file to write.")
@click.option("--force", is_flag=True, help="Replace the file.")
def synth(variant: str, seed: int, questions: int, out: Path, force: bool) -> int:
    """Write a synthetic LongMemEval file: S is 286 MB, M 2.9 GB, the oracle 15 MB."""
    from eval_core.errors import Misuse
    from eval_core.files import atomic
    from longmemeval_convert.synth import Generator

    if out.exists() and not force:
        raise Misuse("out-exists", "is there already", file=out, mend="Name another file, or say --force.")
    with atomic(out) as stream:
        for chunk in Generator(variant, seed, questions).chunks():
            stream.write(chunk.encode("utf-8"))
    return 0
