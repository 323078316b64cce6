"""Tries the installed wheels away from the checkout: where they came from, every script, and one use.

Called by `nox -s wheels` with the clean environment's Python: `installed.py DIST`, in a folder that holds a copy
of `eval.toml` and `datasets/memory`. Uses the standard library alone. Exits 1 at the first thing that is wrong.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

# Distribution → (module, script).
PACKAGES = {
    "eval-core": ("eval_core", "eval-core"),
    "eval-backends": ("eval_backends", "eval-backends"),
    "eval-gate": ("eval_gate", "eval-gate"),
    "eval-tier": ("eval_tier", "eval-tier"),
    "longmemeval-convert": ("longmemeval_convert", "longmemeval-convert"),
}
# Arms of eval.toml in the process, each with its like through a subprocess that speaks JSON lines.
ARMS = {"memory-bm25": "memory-bm25-jsonl", "memory-bm25-kind": "memory-bm25-kind-jsonl"}


class NotAsPromisedError(Exception):
    """Something about the installed wheels is wrong; the message says what."""


def main(arguments: list[str]) -> int:
    """Run every check and print a line for each; return the exit code."""
    built = Path(arguments[0]).resolve()
    try:
        print("contents ", *check_contents(built))
        print("origin   ", *(check_origin(name, built) for name in PACKAGES))
        print("scripts  ", *(check_script(script, name) for name, (_, script) in PACKAGES.items()))
        print("measured ", *check_measure(ARMS))
    except NotAsPromisedError as error:
        print(f"wheels: {error}", file=sys.stderr)
        return 1
    return 0


def check_contents(built: Path) -> list[str]:
    """Every package is one wheel that holds its module alone, its type marker and its licence."""
    wheels = sorted(built.glob("*.whl"))
    if len(wheels) != len(PACKAGES):
        found = ", ".join(wheel.name for wheel in wheels) or "none"
        raise NotAsPromisedError(f"{len(PACKAGES)} wheels expected in {built}, found {found}")
    modules = {name.replace("-", "_"): module for name, (module, _) in PACKAGES.items()}
    for wheel in wheels:
        module = modules[wheel.name.split("-")[0]]
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
        tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
        if tops != {module}:
            raise NotAsPromisedError(f"{wheel.name} holds {sorted(tops)}, expected {module!r} alone")
        if f"{module}/py.typed" not in names:
            raise NotAsPromisedError(f"{wheel.name} lacks {module}/py.typed")
        if not any(name.endswith(".dist-info/licenses/LICENSE") for name in names):
            raise NotAsPromisedError(f"{wheel.name} lacks its LICENSE")
    return [wheel.name for wheel in wheels]


def check_origin(name: str, built: Path) -> str:
    """The distribution was installed from its wheel in `built`, and its module is the installed one."""
    origin = metadata.distribution(name).read_text("direct_url.json")
    url = urlsplit(json.loads(origin)["url"]) if origin else None
    if url is None or url.scheme != "file":
        raise NotAsPromisedError(f"{name} did not come from a file: {origin!r}")
    source = Path(url2pathname(unquote(url.path)) if sys.platform == "win32" else unquote(url.path)).resolve()
    if source.parent != built:
        raise NotAsPromisedError(f"{name} came from {source}, not from {built}")
    module = PACKAGES[name][0]
    spec = find_spec(module)
    imported = Path(spec.origin).resolve() if spec is not None and spec.origin is not None else None
    if imported is None or Path(sys.prefix).resolve() not in imported.parents:
        raise NotAsPromisedError(f"{module} is imported from {imported}, not from {sys.prefix}")
    return f"{name}={metadata.version(name)}"


def check_script(script: str, name: str) -> str:
    """The script answers --help and --version."""
    answer = call(script, "--help")
    if not answer.startswith(f"Usage: {script} "):
        raise NotAsPromisedError(f"{script} --help begins {answer[:60]!r}, expected 'Usage: {script} '")
    answer, expected = call(script, "--version"), f"{name} {metadata.version(name)}\n"
    if answer != expected:
        raise NotAsPromisedError(f"{script} --version says {answer!r}, expected {expected!r}")
    return script


def check_measure(arms: dict[str, str]) -> list[str]:
    """`eval-core measure` works here on the copied dataset, in this process and through a subprocess alike."""
    call("eval-core", "measure", *arms, *arms.values())
    measured = []
    for arm, through_subprocess in arms.items():
        one, other = read_report(arm), read_report(through_subprocess)
        if one["digests"]["rankings"] != other["digests"]["rankings"]:
            raise NotAsPromisedError(f"{arm} and {through_subprocess} rank differently")
        measured += [f"{arm}={one['health']['scored']}", f"{through_subprocess}={other['health']['scored']}"]
    return measured


def read_report(arm: str) -> Any:
    """Return the report that measuring `arm` has just written; none, or one without scored queries, is an error."""
    path = Path(".eval", "reports", f"{arm}.json")
    if not path.is_file():
        raise NotAsPromisedError(f"eval-core measure {arm} wrote no {path}")
    report = json.loads(path.read_text(encoding="utf-8"))
    if report["health"]["scored"] < 1:
        raise NotAsPromisedError(f"{path}: no query was scored")
    return report


def call(script: str, *arguments: str) -> str:
    """Run a script of this environment; return what it printed. Any exit code but 0 is an error."""
    program = shutil.which(script, path=str(Path(sys.executable).parent))
    if program is None:
        raise NotAsPromisedError(f"no script {script!r} was installed beside {sys.executable}")
    command = [program, *arguments]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8", timeout=300
    )
    if done.returncode != 0:
        spoken = " ".join([script, *arguments])
        raise NotAsPromisedError(f"{spoken} exited {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
