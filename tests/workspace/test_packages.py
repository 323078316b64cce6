"""The five packages hold together: one version, one direction of imports, few rooms, one licence, no long module."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECTS: dict[str, dict[str, Any]] = {
    path.parent.name: tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    for path in sorted(ROOT.glob("packages/*/pyproject.toml"))
}
MODULES = {
    folder: next((ROOT / "packages" / folder / "src").glob("*/__init__.py")).parent for folder in PROJECTS
}
OURS = frozenset(path.name for path in MODULES.values())
CORE = "eval_core"
SOURCES = sorted(path for module in MODULES.values() for path in module.rglob("*.py"))
# What a package may use without naming it: it comes with the requirement on the right, and is a part of its interface,
# or it is what that requirement is called where it is imported.
ALONG = {"numpy": "rank-bm25", "yaml": "pyyaml"}

# A room is a module or a folder directly below a package; `__init__` and `__main__` are none (ADR 11).
MOST_ROOMS = {"eval_core": 21, "eval_gate": 12}


def short(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def package_of(path: Path) -> str:
    return path.relative_to(ROOT / "packages").parts[0]


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every module that the source names for import, with its line: statements wherever they stand (functions and
    `if TYPE_CHECKING` too), calls of `import_module` and `__import__`, and texts of the form `module:attribute`."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from ((node.lineno, alias.name) for alias in node.names)
            case ast.ImportFrom(module=str(module), level=0):
                yield node.lineno, module
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                yield node.lineno, module
            case ast.Constant(value=str(text)) if re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", text):
                yield node.lineno, text.partition(":")[0]


def foreign(source: str, own: str) -> list[tuple[int, str]]:
    """The imports of `source`, a module of the package `own`, that run against the direction."""
    allowed = {own} if own == CORE else {own, CORE}
    named = ((line, module.partition(".")[0]) for line, module in imports(ast.parse(source)))
    return [(line, top) for line, top in named if top in OURS - allowed]


def test_there_are_five_packages() -> None:
    assert {MODULES[folder].name: project["name"] for folder, project in PROJECTS.items()} == {
        "eval_core": "eval-core",
        "eval_backends": "eval-backends",
        "eval_gate": "eval-gate",
        "eval_tier": "eval-tier",
        "longmemeval_convert": "longmemeval-convert",
    }


@pytest.mark.parametrize("folder", PROJECTS)
def test_a_package_is_in_lockstep_with_the_others(folder: str) -> None:
    project, module = PROJECTS[folder], MODULES[folder]
    version = PROJECTS["eval-core"]["version"]
    assert project["version"] == version
    assert importlib.import_module(module.name).__version__ == version
    assert importlib.metadata.version(project["name"]) == version, "the environment is stale"
    pins = {canonicalize_name(r.name): str(r.specifier) for r in map(Requirement, project["dependencies"])}
    siblings = {name: pin for name, pin in pins.items() if name in {p["name"] for p in PROJECTS.values()}}
    assert siblings == ({} if folder == "eval-core" else {"eval-core": f"=={version}"})


@pytest.mark.parametrize("folder", PROJECTS)
def test_a_package_is_typed_licensed_and_says_what_it_needs(folder: str) -> None:
    project, module = PROJECTS[folder], MODULES[folder]
    assert (module / "py.typed").is_file()
    assert project["license"] == "MIT"
    assert (ROOT / "packages" / folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert project["requires-python"] == PROJECTS["eval-core"]["requires-python"] == ">=3.11"
    assert project["scripts"] == {project["name"]: f"{module.name}.cli:main"}


@pytest.mark.parametrize("path", SOURCES, ids=short)
def test_imports_run_one_way(path: Path) -> None:
    """eval_core imports no sibling; the others import eval_core and no other sibling."""
    against = foreign(path.read_text(encoding="utf-8"), MODULES[package_of(path)].name)
    assert not against, [f"{short(path)}:{line} imports {top}" for line, top in against]


@pytest.mark.parametrize(
    ("source", "own", "against"),
    [
        ("import eval_core.files", "eval_gate", []),
        ("from eval_gate import policy", "eval_core", ["eval_gate"]),
        ("import json, eval_backends.bm25", "eval_gate", ["eval_backends"]),
        ("def f() -> None:\n    import eval_tier", "eval_gate", ["eval_tier"]),
        ("if TYPE_CHECKING:\n    from eval_gate.check.judge import Verdict", "eval_tier", ["eval_gate"]),
        ("import_module('eval_backends.bm25')", "eval_core", ["eval_backends"]),
        ("importlib.import_module('eval_gate')", "eval_core", ["eval_gate"]),
        ("VERBS = {'list': 'eval_backends.cli:list_'}", "eval_core", ["eval_backends"]),
        ("from . import policy", "eval_gate", []),
        ("'eval_gate is a word here'", "eval_core", []),
    ],
)
def test_the_direction_is_read_from_every_form_of_import(source: str, own: str, against: list[str]) -> None:
    assert [top for _, top in foreign(source, own)] == against


def rooms(module: Path) -> dict[str, list[Path]]:
    """The rooms of a package, each with its sources."""
    found = {
        path.stem: sorted(path.rglob("*.py")) if path.is_dir() else [path]
        for path in sorted(module.iterdir())
        if path.is_dir() or path.suffix == ".py"
    }
    return {name: paths for name, paths in found.items() if paths and not name.startswith("__")}


def arrows(source: str, package: str) -> Iterator[str]:
    """The rooms of the package that a module of it imports from, in functions and for types alone included."""
    tree = ast.parse(source)
    named = [name for _, name in imports(tree)]
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), level=0) if module == package:
                named += [f"{package}.{alias.name}" for alias in node.names]
            case ast.ImportFrom(level=level) if level > 0:
                raise AssertionError(f"line {node.lineno}: a relative import; name the module in full")
    for name in named:
        top, _, below = name.partition(".")
        if top == package and below:
            yield below.partition(".")[0]


def circle(graph: dict[str, set[str]]) -> list[str]:
    """The rooms of one circle; none where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("folder", PROJECTS)
def test_the_imports_between_rooms_form_no_circle(folder: str) -> None:
    found = rooms(MODULES[folder])
    package = MODULES[folder].name
    graph: dict[str, set[str]] = {}
    for room, paths in found.items():
        into = {to for path in paths for to in arrows(path.read_text(encoding="utf-8"), package)}
        graph[room] = (into & found.keys()) - {room}
    assert not circle(graph), f"{package}: {' <- '.join(circle(graph))}"


@pytest.mark.parametrize("folder", PROJECTS)
def test_a_package_has_few_rooms(folder: str) -> None:
    found = rooms(MODULES[folder])
    assert len(found) <= MOST_ROOMS.get(MODULES[folder].name, 12), sorted(found)


@pytest.mark.parametrize(
    ("source", "into"),
    [
        ("import eval_gate.check.judge", ["check"]),
        ("from eval_gate import __version__, policy", ["__version__", "policy"]),
        ("from eval_gate.check import judge", ["check"]),
        ("def f() -> None:\n    from eval_gate.floors.text import told", ["floors"]),
        ("if TYPE_CHECKING:\n    from eval_gate.verdict import Verdict", ["verdict"]),
        ("VERBS = {'floor': 'eval_gate.cli.floor:floor'}", ["cli"]),
        ("import eval_core.files, eval_gate", []),
    ],
)
def test_the_rooms_are_read_from_every_form_of_import(source: str, into: list[str]) -> None:
    assert list(arrows(source, "eval_gate")) == into


def test_a_circle_is_found() -> None:
    assert set(circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})) == {"a", "b", "c"}
    assert circle({"a": {"b"}, "b": {"c"}, "d": {"a"}}) == []


@pytest.mark.parametrize("folder", PROJECTS)
def test_a_package_declares_what_it_imports(folder: str) -> None:
    extras = PROJECTS[folder].get("optional-dependencies", {}).values()
    wanted = [*PROJECTS[folder]["dependencies"], *(r for extra in extras for r in extra)]
    declared = {canonicalize_name(Requirement(r).name) for r in wanted}
    modules = {name.replace("-", "_") for name in declared}
    modules |= {module for module, owner in ALONG.items() if owner in declared}
    modules |= {MODULES[folder].name} | set(sys.stdlib_module_names)
    undeclared = [
        f"{short(path)}:{line} imports {name}"
        for path in MODULES[folder].rglob("*.py")
        for line, name in imports(ast.parse(path.read_text(encoding="utf-8")))
        if name.partition(".")[0] not in modules
    ]
    assert not undeclared


@pytest.mark.parametrize("path", SOURCES, ids=short)
def test_a_long_module_says_why(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    if len(lines) > 500:
        assert any(re.match(r"# long because: \S", line) for line in lines[:20]), f"{len(lines)} lines"


def test_every_requirement_is_pinned() -> None:
    """Whatever a package or a group of the workspace asks for is installed at the version of constraints.txt."""
    pins: dict[str, list[Requirement]] = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            pin = Requirement(line)
            assert re.fullmatch(r"==[^*,]+", str(pin.specifier)), f"{line!r} is not an exact version"
            pins.setdefault(canonicalize_name(pin.name), []).append(pin)
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    wanted = [Requirement(r) for group in groups.values() for r in group]
    wanted += [Requirement(r) for project in PROJECTS.values() for r in project["dependencies"]]
    for project in PROJECTS.values():
        wanted += [
            Requirement(r) for extra in project.get("optional-dependencies", {}).values() for r in extra
        ]
    names = {project["name"] for project in PROJECTS.values()}
    for requirement in wanted:
        if (name := canonicalize_name(requirement.name)) in names:
            continue
        here = [pin for pin in pins.get(name, []) if pin.marker is None or pin.marker.evaluate()]
        assert len(here) == 1, f"{requirement} has {len(here)} pins here; run nox -s lock"
        version = str(here[0].specifier).removeprefix("==")
        assert requirement.specifier.contains(version, prereleases=True), (
            f"{requirement} is pinned at {version}"
        )
