"""Every task of the workspace is a session here: `nox -l` lists them, `nox --usage NAME` explains one.

All of them run at the root and share one virtual environment, `.nox/shared`, made once and kept while what it
was made from stays the same. It has two layers, so that measuring needs nothing that only tests need: the packages
with their dependencies, then the tools. `peers` and `bench` use `.nox/peers`, which holds other scorers of runs, and
half a gigabyte that they need; `wheels` makes an environment of its own, away from the checkout.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nox
from nox.command import CommandFailed
from nox.project import dependency_groups, load_toml

nox.needs_version = ">=2024.10"
nox.options.sessions = ["lint", "types", "schemas", "tests"]
# The sessions share an environment of their own making (below). One that needs its own says so:
# @nox.session(venv_backend="virtualenv").
nox.options.default_venv_backend = "none"
if os.environ.get("LADDER_QUIET"):
    # `make measure`: the table is the answer, so nox speaks only of what takes time or goes wrong.
    logging.getLogger("nox").setLevel(logging.WARNING)

ROOT = Path(__file__).resolve().parent
WORK = ROOT / ".nox" / "shared"
PEERS = ROOT / ".nox" / "peers"
CONSTRAINTS = ROOT / "constraints.txt"
# Installed by path in one call, so that none is ever looked up by its name in a registry.
PACKAGES = [
    "./packages/eval-core",
    "./packages/backends",
    "./packages/eval-gate",
    "./packages/eval-tier",
    "./packages/longmemeval-convert",
]
# The groups of pyproject.toml that the layers above the packages are.
TOOLS = ("test", "check")
BESIDE = ("test", "peers")


# ---------------------------------------------------------------- checking


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and formatting (ruff), and the workflows (zizmor). `nox -s format` mends what a machine can."""
    work(session, "python", "-m", "ruff", "check", ".")
    work(session, "python", "-m", "ruff", "format", "--check", ".")
    work(session, "zizmor", "--offline", "--quiet", ".github/workflows")


@nox.session(default=False)
def format(session: nox.Session) -> None:
    """Mend style and formatting in place (ruff)."""
    work(session, "python", "-m", "ruff", "check", "--fix", ".")
    work(session, "python", "-m", "ruff", "format", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Check types (mypy --strict): the packages, this file, tools, benchmarks and tests."""
    sources = [f"{package}/src" for package in PACKAGES]
    others = [
        name for name in ("noxfile.py", "tools", "benchmarks", "tests/conftest.py") if Path(name).exists()
    ]
    work(session, "python", "-m", "mypy", "--strict", *sources, *others)
    # Test files of two packages may share a name, which mypy refuses in one call: a call for each folder.
    for folder in sorted(path for path in Path("tests").iterdir() if any(path.glob("*.py"))):
        work(session, "python", "-m", "mypy", "--strict", str(folder))


@nox.session
def schemas(session: nox.Session) -> None:
    """Fail where schemas/ or docs/reasons.md is not what the sources give. `-- --write` writes the files anew."""
    mode = "--write" if "--write" in session.posargs else "--check"
    work(session, "python", "tools/schemas.py", mode)
    work(session, "python", "tools/reasons.py", mode)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests, warnings as errors. `nox -s tests -- tests/gate -k floor` runs some of them."""
    # All of them on all cores; some, as a person asks for them, in one process that a debugger can enter.
    spread = [] if session.posargs else ["--numprocesses=auto", "--dist=worksteal"]
    work(session, "python", "-m", "pytest", "-W", "error", *spread, *session.posargs)


# ---------------------------------------------------------------- the ladder


@nox.session(default=False)
def reconstruct(session: nox.Session) -> None:
    """Build the corpora of the datasets from their pinned sources. `-- datasets/NAME` takes some."""
    work(session, "eval-core", "reconstruct", *session.posargs, tools=False, quiet=True)


@nox.session(default=False)
def measure(session: nox.Session) -> None:
    """Measure the arms of eval.toml and print their table. `-- ARM …` takes some of them."""
    work(session, "eval-core", "measure", *session.posargs, tools=False, quiet=True)
    print("Here the gate is  make gate ; its script is in .nox/shared/bin.")


@nox.session(default=False)
def gate(session: nox.Session) -> None:
    """Measure the pull-request arms (`-- ARM …`: those), grade them, check judged paths, pages, our own tier."""
    # Measuring removes what an earlier run left, so nothing old is graded in its place.
    arms = [word for word in session.posargs if not word.startswith("-")]
    work(session, "eval-core", "measure", *arms, tools=False, quiet=True)
    work(session, "eval-gate", "check", *in_ci(), *session.posargs, tools=False, quiet=True)
    work(session, "eval-gate", "guard", tools=False, quiet=True)
    work(session, "eval-core", "publish", "--check", "README.md", tools=False, quiet=True)
    # What the README of a set says of its headroom is held to what is measured now.
    for page in sorted(Path("datasets").glob("*/README.md")):
        words = ("inspect", str(page.parent), "--headroom", "--check", "--into", str(page))
        work(session, "eval-core", *words, tools=False, quiet=True)
    # What this repository says of itself: its files show tier 3. What the forge requires is not asked here.
    work(session, "eval-tier", "audit", ".", "--min-mechanism", "3", tools=False, quiet=True)


def in_ci() -> list[str]:
    """What the gate requires in CI beyond the policy, and where a forge's runner shows it."""
    options: list[str] = []
    if os.environ.get("CI"):
        options.append("--require=class")
    if base := os.environ.get("GITHUB_BASE_REF"):
        options.append(f"--target=origin/{base}")  # what the pull request does to the bar itself
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        options += ["--format=github", f"--output=markdown={summary}"]
    return options


@nox.session(default=False)
def selftest(session: nox.Session) -> None:
    """Attack the gate with this repository's own inputs, and fail if an attack survives. After `gate`."""
    work(session, "eval-gate", "self-test", *session.posargs, tools=False, quiet=True)


# ---------------------------------------------------------------- the rest


@nox.session(default=False)
def mutants(session: nox.Session) -> None:
    """Break each guard that has a reason code, and see a test turn red. `-- --list` shows the table; half an hour."""
    work(session, "python", "tools/mutants.py", *session.posargs)


@nox.session(default=False)
def peers(session: nox.Session) -> None:
    """Hold our scores against ranx and ir-measures: where they agree, and where each is known not to."""
    # The first call compiles ranx, which takes a minute.
    options = ("-W", "error", "-o", "timeout=600")
    work(session, "python", "-m", "pytest", *options, *(session.posargs or ["tests/peers"]), place=PEERS)


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Run the benchmarks of our own speed, and beside peers. `-- NAME …` takes some of them."""
    work(session, "python", "-m", "benchmarks", *session.posargs, place=PEERS)


@nox.session(default=False)
def wheels(session: nox.Session) -> None:
    """Build all wheels, install them in a clean environment elsewhere, and use every script there."""
    # A space in the path is meant: what breaks on it should break here.
    with tempfile.TemporaryDirectory(prefix="ladder wheels ") as name:
        place = Path(name).resolve()
        built, environment, away = place / "dist", place / "environment", place / "away"
        away.mkdir()
        for package in PACKAGES:
            build_wheel(session, package, built)
        create(session, environment)
        install(session, environment, *(str(wheel) for wheel in sorted(built.glob("*.whl"))))
        shutil.copytree(ROOT / "datasets" / "memory", away / "datasets" / "memory")
        shutil.copy(ROOT / "eval.toml", away)
        # Run from `away`, without PYTHONPATH: nothing of the checkout can be imported by accident.
        with session.chdir(away):
            session.run(
                *(str(interpreter(environment)), "-I", str(ROOT / "tools" / "installed.py"), str(built)),
                *session.posargs,
                env={"PYTHONPATH": None, "PATH": search_path(environment)},
                external=True,
                log=False,
            )


@nox.session(default=False)
def lock(session: nox.Session) -> None:
    """Pin the newest versions in constraints.txt (`-- -P NAME`: of one package alone). Needs uv."""
    names = [load_toml(ROOT / package / "pyproject.toml")["project"]["name"] for package in PACKAGES]
    with tempfile.TemporaryDirectory() as name:
        wanted = Path(name) / "wanted.in"
        wanted.write_text("".join(f"-e {package}\n" for package in PACKAGES), encoding="utf-8")
        session.run(
            *(find_uv() or "uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"),
            *(session.posargs or ["--upgrade"]),
            *(f"--group={group}" for group in ("nox", "build", *TOOLS, "peers")),
            *(f"--no-emit-package={name}" for name in names),
            *("--no-emit-index-url", "--no-emit-find-links", "--no-annotate"),
            *("--custom-compile-command", "nox -s lock", "--output-file", str(CONSTRAINTS), str(wanted)),
            external=True,
        )


# ---------------------------------------------------------------- environments


def work(
    session: nox.Session, *command: str, tools: bool = True, quiet: bool = False, place: Path = WORK
) -> None:
    """Run `command`, a program of the environment at `place`, and make or complete the environment first.

    `tools` asks for the second layer. `quiet` leaves the command line out, where people read the output. Raises
    what `session.run` raises when the command fails.
    """
    prepare(session, place, tools=tools)
    program = shutil.which(command[0], path=str(interpreter(place).parent)) or command[0]
    environment = {"PATH": search_path(place), "VIRTUAL_ENV": str(place)}
    if not quiet:
        session.log(" ".join(command))
    # An interrupted command is given the time to stop its own processes and to leave nothing half-written.
    session.run(
        *(program, *command[1:]),
        env=environment,
        external=True,
        log=False,
        interrupt_timeout=10,
        terminate_timeout=5,
    )


def prepare(session: nox.Session, place: Path, *, tools: bool) -> None:
    """Make the environment at `place`, unless one is there, made from the same versions, Python and place."""
    groups = BESIDE if place == PEERS else TOOLS
    layers = {
        "packages": [word for package in PACKAGES for word in ("--editable", package)],
        "tools": list(dependency_groups(load_toml(ROOT / "pyproject.toml"), *groups)),
    }
    made_from = fingerprint(layers["tools"])
    stamps = {layer: place / f"made-from-{layer}" for layer in layers}
    found = {layer: stamp.read_text(encoding="ascii") for layer, stamp in stamps.items() if stamp.is_file()}
    if set(found.values()) != {made_from} or not interpreter(place).exists():
        session.warn(f"making .nox/{place.name}, once (under a minute)")
        create(session, place)
        found = {}
    for layer in layers if tools else ["packages"]:
        if layer not in found:
            install(session, place, *layers[layer])
            # Last of all, so that an interrupted installation is begun again.
            stamps[layer].write_text(made_from, encoding="ascii")


def fingerprint(tools: list[str]) -> str:
    """Return a digest of all that decides what an environment holds; `tools` are its second layer."""
    digest = hashlib.sha256("\0".join([sys.version, str(ROOT), *tools]).encode())
    for path in (CONSTRAINTS, *sorted(ROOT.glob("packages/*/pyproject.toml"))):
        digest.update(b"\0" + path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def create(session: nox.Session, place: Path) -> None:
    """Make an empty virtual environment at `place`, of the Python that runs nox; what was there goes."""
    shutil.rmtree(place, ignore_errors=True)
    if not with_uv(session, "venv", "--quiet", "--python", sys.executable, str(place)):
        unseen(session, sys.executable, "-m", "venv", "--clear", str(place))


def install(session: nox.Session, place: Path, *requirements: str) -> None:
    """Install `requirements` at `place` in one call, at the versions of constraints.txt."""
    python, pins = str(interpreter(place)), CONSTRAINTS.name
    options = ["--quiet", "--compile-bytecode", "--constraints", pins, "--build-constraints", pins]
    if not with_uv(session, "pip", "install", "--python", python, *options, *requirements):
        unseen(session, python, "-m", "ensurepip")
        options = ["-qq", "--disable-pip-version-check", "--constraint", pins]
        unseen(session, python, "-m", "pip", "install", *options, *requirements)


def build_wheel(session: nox.Session, package: str, folder: Path) -> None:
    """Build the wheel of `package` into `folder`."""
    options = ["--quiet", "--wheel", "--build-constraints", CONSTRAINTS.name]
    if not with_uv(session, "build", *options, "--out-dir", str(folder), package):
        options = ["-qq", "--disable-pip-version-check", "--no-deps"]
        unseen(session, sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(folder), package)


def unseen(session: nox.Session, *command: str) -> None:
    """Run `command`, whose output is of interest only when it fails."""
    session.run(*command, external=True, log=False, silent=True)


def with_uv(session: nox.Session, *arguments: str) -> bool:
    """Let uv do it, in seconds; False where it does not run, or cannot reach what pip is set up to reach."""
    if (uv := find_uv()) is None:
        return False
    try:
        unseen(session, uv, *arguments)
    except CommandFailed:
        session.warn("uv could not; trying the same with pip")
        return False
    return True


@functools.cache
def find_uv() -> str | None:
    """Return the path of a uv that runs, or None. The one installed beside nox comes first."""
    beside = str(Path(sys.executable).parent)
    uv = shutil.which("uv", path=os.pathsep.join([beside, os.environ.get("PATH", "")]))
    try:
        runs = uv is not None and subprocess.run([uv, "--version"], capture_output=True).returncode == 0
    except OSError:
        runs = False
    return uv if runs else None


def interpreter(place: Path) -> Path:
    """Return the Python of the virtual environment at `place`."""
    return place / "Scripts" / "python.exe" if os.name == "nt" else place / "bin" / "python"


def search_path(place: Path) -> str:
    """Return PATH with the programs of the virtual environment at `place` first."""
    return os.pathsep.join([str(interpreter(place).parent), os.environ.get("PATH", "")])
