"""Break each guard by one edit, and see a test turn red: run by `nox -s mutants`, not by `make test`.

The table is derived. A guard is the condition under which a source names a reason code: where the code stands in the
body of an `if`, the condition is made false; in its `else`, true; in an `except`, the error goes on as it was. The
tests that must turn red are those that quote its message, name the code or the module. Rows of `MORE` are guards
without a code, and two controls: one that must be killed, and one that changes nothing and must survive.

    python tools/mutants.py [--list] [--shard K/N] [CODE or FILE …]
"""

from __future__ import annotations

import argparse
import ast
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from eval_core.reasons import REASONS

ROOT = Path(__file__).resolve().parents[1]
REGISTER = "reasons.py"

#: Seconds for the tests of one mutant; one that hangs is killed, and counts as red.
PATIENCE = 300


@dataclass(frozen=True, slots=True)
class Mutant:
    """One edit of a source: `start` to `end` in its bytes become `new`. `tests`: files that must turn red by it."""

    name: str
    path: Path
    start: int
    end: int
    new: str
    tests: tuple[str, ...]
    survives: bool = False

    @property
    def place(self) -> str:
        """Where it stands, and what it makes of it."""
        text = self.path.read_bytes()
        line = text.count(b"\n", 0, self.start) + 1
        old = " ".join(text[self.start : self.end].decode().split())
        return f"{self.path.relative_to(ROOT)}:{line}  {old[:60]}  →  {self.new[:40]}"


#: Guards that no code stands for, each as file, old text, new text and the tests that see it.
MORE: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
    ("control", "eval-core/src/eval_core/scoring/metrics.py",
     "fsum(values) / len(values)", "fsum(values) / (len(values) + 1)", ("tests/core/test_metrics.py",)),
)  # fmt: skip


def guards() -> Iterator[Mutant]:
    """The mutants of all places that name a code, in the order of their files."""
    for path in sorted(ROOT.glob("packages/*/src/**/*.py")):
        if path.name == REGISTER:
            continue
        raw = path.read_bytes()
        starts = [0]
        for line in raw.split(b"\n"):
            starts.append(starts[-1] + len(line) + 1)
        tree = ast.parse(raw)
        seen: set[tuple[int, int]] = set()
        for code, chain in _codes(tree):
            found = _edit(chain)
            if found is None:
                continue
            node, new = found
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
            if (start, end) in seen:
                continue
            seen.add((start, end))
            yield Mutant(code, path, start, end, new, tests_of(code, path, _said(chain)))


def _codes(tree: ast.AST, chain: tuple[ast.AST, ...] = ()) -> Iterator[tuple[str, tuple[ast.AST, ...]]]:
    """Each text that is a code, with the nodes around it from the outside in."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.Constant) and isinstance(child.value, str) and child.value in REASONS:
            if isinstance(tree, ast.Call | ast.keyword):
                yield child.value, (*chain, tree)
        else:
            yield from _codes(child, (*chain, tree))


def _said(chain: Sequence[ast.AST]) -> list[str]:
    """The pieces of the message that go with a code: the longer texts of the block that it stands in."""
    block = next(
        (n for n in reversed(chain) if isinstance(n, ast.If | ast.ExceptHandler | ast.FunctionDef)), None
    )
    texts = [] if block is None or isinstance(block, ast.FunctionDef) else [
        node.value.strip(" ,;:'()") for part in block.body for node in ast.walk(part)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]  # fmt: skip
    return [text for text in texts if len(text) >= 12 and " " in text]


def _edit(chain: Sequence[ast.AST]) -> tuple[ast.expr | ast.stmt, str] | None:
    """What guards a code: the nearest condition, or the `raise` of an `except`."""
    inner: ast.AST | None = None
    statement: ast.stmt | None = None
    for node in reversed(chain):
        if isinstance(node, ast.IfExp) and inner is not None and inner is not node.test:
            return node.test, "False" if inner is node.body else "True"
        if isinstance(node, ast.If):
            if inner in node.body:
                return node.test, "False"
            if inner in node.orelse:
                return node.test, "True"
        if isinstance(node, ast.comprehension) and node.ifs:
            return node.ifs[0], "False"
        if isinstance(node, ast.ExceptHandler) and isinstance(statement, ast.Raise):
            return statement, "raise"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return None
        if isinstance(node, ast.stmt):
            statement = statement or node
        inner = node
    return None


@functools.cache
def _tests() -> dict[Path, str]:
    """The test files with their texts, the smallest first, without those of the workspace, which look at sources."""
    found = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    apart = {"workspace", "peers"}
    return {
        path: found[path]
        for path in sorted(found, key=lambda path: len(found[path]))
        if not apart & {*path.parts}
    }


def tests_of(code: str, path: Path, said: Sequence[str] = ()) -> tuple[str, ...]:
    """The test files that quote a message or name a code; with them, those of the module."""
    by_message = [test for test, text in _tests().items() if any(piece[:20] in text for piece in said)][:4]
    by_code = [test for test, text in _tests().items() if f'"{code}"' in text][:4]
    dotted = ".".join(
        path.relative_to(next(p for p in path.parents if p.name == "src")).with_suffix("").parts
    )
    room = dotted.removesuffix(".__init__")
    stem = room.rpartition(".")[2]
    by_name = [test for test in _tests() if stem.strip("_") in test.stem][:4]
    by_import = [test for test, text in _tests().items() if room in text or f"import {stem}\n" in text][:3]
    return tuple(
        test.relative_to(ROOT).as_posix()
        for test in dict.fromkeys([*by_message, *by_code, *by_name, *by_import])
    )


def others() -> Iterator[Mutant]:
    """The rows of `MORE`, and the control that must survive."""
    for name, file, old, new, tests in MORE:
        path = ROOT / "packages" / file
        start = path.read_bytes().find(old.encode())
        if start < 0:
            raise SystemExit(f"mutants: {file} does not hold {old!r}: the row {name!r} is out of date")
        yield Mutant(name, path, start, start + len(old.encode()), new, tests)
    path = ROOT / "packages/eval-core/src/eval_core/scoring/metrics.py"
    end = len(path.read_bytes())
    yield Mutant(
        "control: a comment", path, end, end, "# nothing\n", ("tests/core/test_metrics.py",), survives=True
    )


def verdict(mutant: Mutant) -> str:
    """`killed`, `survived`, `broken` (it does not compile) or `untested` (no test names its code)."""
    if not mutant.tests:
        return "untested"
    raw = mutant.path.read_bytes()
    changed = raw[: mutant.start] + mutant.new.encode() + raw[mutant.end :]
    try:
        compile(changed, str(mutant.path), "exec")
    except SyntaxError:
        return "broken"
    package = next(folder for folder in mutant.path.parents if folder.parent.name == "src")
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        copy = Path(name) / package.name
        shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
        (copy / mutant.path.relative_to(package)).write_bytes(changed)
        words = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-n",
            "0",
            "-p",
            "no:cacheprovider",
            *mutant.tests,
        ]
        # Before the packages as they are, in the processes that tests start, too.
        paths = os.pathsep.join([name, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        environment = os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                words, cwd=ROOT, env=environment, capture_output=True, timeout=PATIENCE, check=False
            )
        except subprocess.TimeoutExpired:
            return "killed"
    return "survived" if done.returncode == 0 else "killed"


def main(given: Sequence[str] | None = None) -> int:
    """Print what became of each mutant; 0 where all but the control that must survive were killed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="CODE or FILE")
    parser.add_argument("--list", action="store_true", help="print the table, and break nothing")
    parser.add_argument("--shard", default="1/1", metavar="K/N", help="the K-th of N parts of it")
    said = parser.parse_args(given)
    part, parts = map(int, said.shard.split("/"))
    table = [*others(), *guards()][part - 1 :: parts]
    if said.names:
        table = [m for m in table if m.name in said.names or any(n in m.place for n in said.names)]
    if said.list:
        for mutant in table:
            print(f"{mutant.name:28} {mutant.place}  [{', '.join(mutant.tests) or 'no test names it'}]")
        print(f"{len(table)} mutants")
        return 0
    wrong = 0
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for mutant, found in zip(table, pool.map(verdict, table), strict=True):
            good = found == ("survived" if mutant.survives else "killed")
            wrong += not good
            print(f"{found:9} {mutant.name:28} {mutant.place}", flush=True)
    print(f"{len(table)} mutants, {wrong} not as they must be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
