"""`eval-backends list`, and the script itself, on real processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping

Run = Callable[..., subprocess.CompletedProcess[bytes]]
Installed = Callable[[Mapping[str, str]], dict[str, str]]


def test_list_shows_what_is_installed(run: Run) -> None:
    done = run(["list"])
    assert (done.returncode, done.stderr) == (0, b"")
    table = done.stdout.decode()
    assert re.search(r"(?m)^ bm25 +eval-backends \S+ +filter +k1, b, tokenizer$", table)
    assert re.search(
        r"(?m)^ jsonl +eval-backends \S+ +by its options +command\*, capabilities, timeout", table
    )
    by_name = {
        entry["name"]: entry for entry in json.loads(run(["list", "--format", "json"]).stdout)["backends"]
    }
    version = by_name["bm25"].pop("version")
    assert version
    assert by_name["bm25"] == {
        "name": "bm25",
        "distribution": "eval-backends",
        "object": "eval_backends.bm25:BM25",
        "capabilities": ["filter"],
        "options": {"k1": "1.5", "b": "0.75", "tokenizer": "'words'"},
        "problem": None,
    }
    assert by_name["jsonl"]["capabilities"] is None
    assert by_name["jsonl"]["options"]["command"] is None


def test_list_shows_broken_backends_with_the_reason(run: Run, installed: Installed) -> None:
    points = {
        "absent": "no_such_module:Thing",
        "bm25": "noisy:Noisy",
        "exits": "noisy_exit:Thing",
        "noattr": "noisy:Absent",
        "number": "noisy:not_callable",
        "odd": "noisy:Odd",
        "plain": "noisy:broken",
    }
    environment = installed(points)
    done = run(["list", "--format", "json"], environment=environment)
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    problems = {
        (entry["name"], entry["distribution"]): entry["problem"]
        for entry in json.loads(done.stdout)["backends"]
    }
    for sound in ("jsonl", "overlap", "popularity", "random"):
        assert problems.pop((sound, "eval-backends")) is None
    assert problems.pop(("plain", "noisy")) is None
    said = {
        "absent": "ModuleNotFoundError: No module named 'no_such_module'",
        "bm25": "the name is also claimed by",
        "exits": "SystemExit: needs a licence",
        "noattr": "AttributeError: .*Absent",
        "number": "names a int, which cannot be called",
        "odd": r"declares unknown capabilities \['fliter'\]; known: ",
    }
    assert {name for name, _ in problems} == set(said)
    assert ("bm25", "eval-backends") in problems and ("bm25", "noisy") in problems
    for (name, _), problem in problems.items():
        assert re.match(said[name], problem)
    table = run(["list"], environment=environment)
    assert table.returncode == 0
    assert re.search(rb"(?m)^ absent +noisy 1.2 +broken$\n   ModuleNotFoundError", table.stdout)
    assert re.search(rb"(?m)^ plain +noisy 1.2 +known once made", table.stdout)


def test_the_module_is_the_script(run: Run) -> None:
    for arguments, starts in (
        (["--version"], b"eval-backends "),
        (["serve", "--help"], b"Usage: eval-backends serve "),
    ):
        done = run(arguments)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.startswith(starts)


def test_list_is_instant_enough_to_be_typed() -> None:
    """It imports the modules of backends and not what they wrap."""
    code = "import sys; from eval_backends.listing import find; find(); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=os.environ
    )
    loaded = set(done.stdout.split())
    assert "eval_backends.bm25" in loaded
    assert not loaded & {"numpy", "rank_bm25", "pydantic", "rich"}
