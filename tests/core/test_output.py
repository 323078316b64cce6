"""Standard output that is closed, full or no longer read: the exit code is what the command found out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import click
from eval_core.cli.app import run

@click.command()
def command() -> int:
    for number in range(20000):
        click.echo(f"line {number}")
    return CODE

run(command, "prog")
"""


def started(code: int, stdout: int, **more: object) -> subprocess.CompletedProcess[bytes]:
    words = [sys.executable, "-c", PROGRAM.replace("CODE", str(code))]
    return subprocess.run(words, stdout=stdout, stderr=subprocess.PIPE, timeout=60, check=False, **more)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("code", [0, 1, 2])
def test_a_reader_that_goes_away_does_not_change_the_exit_code(code: int) -> None:
    """K3: `eval-gate check | head` says with its exit code what the verdict was, whoever is faster."""
    read, write = os.pipe()
    os.close(read)
    done = started(code, write)
    os.close(write)
    assert (done.returncode, done.stderr) == (code, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_output_that_cannot_be_written_is_said_in_one_line() -> None:
    with open("/dev/full", "wb") as full:
        done = started(0, full.fileno())
    assert done.returncode == 3
    assert done.stderr == b"prog: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize("code", [0, 1])
def test_an_output_that_was_closed_is_not_missed(code: int) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" >&-', sys.executable, PROGRAM.replace("CODE", str(code))],
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (code, b"")


def test_what_is_written_arrives_whole() -> None:
    done = started(0, subprocess.PIPE)
    assert done.stdout == b"".join(b"line %d\n" % number for number in range(20000))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("words", "code"), [(["--version"], 0), (["no-such-verb"], 2), (["validate", "nowhere"], 2)]
)
def test_a_standard_error_that_cannot_be_written_does_not_read_as_a_breach(
    words: list[str], code: int
) -> None:
    """K3: exit 1 is a verdict; a full disk behind standard error is none."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "eval_core", *words],
            stdout=subprocess.DEVNULL,
            stderr=full,
            timeout=60,
            check=False,
        )
    assert done.returncode == code


def test_a_variable_of_the_shell_does_not_stand_in_the_place_of_a_verb() -> None:
    """K3: a completion asked for by the environment must not make a gate green."""
    environment = {**os.environ, "_EVAL_CORE_COMPLETE": "bash_source"}
    words = [sys.executable, "-m", "eval_core"]
    done = subprocess.run(
        [*words, "validate", "nowhere"], capture_output=True, timeout=60, check=False, env=environment
    )
    assert done.returncode == 2
    completed = subprocess.run(words, capture_output=True, timeout=60, check=False, env=environment)
    assert (completed.returncode, b"complete" in completed.stdout) == (0, True)


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", "0.9 ≥ 0.8 − é … 漢 🙂"),
        ("cp1252", "0.9 >= 0.8 - é … \\u6f22 \\ud83d\\ude42"),
        ("latin-1", "0.9 >= 0.8 - é ... \\u6f22 \\ud83d\\ude42"),
        ("cp437", "0.9 ≥ 0.8 - é ... \\u6f22 \\ud83d\\ude42"),
    ],
)
def test_an_output_in_another_encoding_is_written_with_what_it_has(encoding: str, shown: str) -> None:
    """Every script prints through `run`: what an encoding lacks has a twin, or is escaped as JSON would."""
    program = """
import click
from eval_core.cli.app import run
run(click.command(lambda: click.echo("0.9 ≥ 0.8 − é … 漢 🙂")), "prog")
"""
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, env=environment, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode(encoding).strip() == shown
