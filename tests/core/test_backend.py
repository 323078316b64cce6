"""Backends are found by name among what is installed, made of an arm's options, and told apart from what they break."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from core_support import Told

from eval_core import backend as backends
from eval_core.backend import Backend, Document
from eval_core.errors import CouldNot, Misuse

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a package with an entry point on the path, as an installer would."""

    def put(name: str, value: str, module: str = "", project: str = "thing") -> None:
        site = tmp_path / f"site-{project}"
        info = site / f"{project}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[eval.backends]\n{name} = {value}\n")
        if module:
            (site / f"{value.split(':')[0]}.py").write_text(textwrap.dedent(module))
        monkeypatch.syspath_prepend(site)
        monkeypatch.delitem(sys.modules, value.split(":")[0], raising=False)

    return put


OURS = """
    class Ours:
        capabilities = frozenset({"filter"})

        def __init__(self, size: int, flavour: str = "plain") -> None:
            self.size = size

        def describe(self): return {}
        def index(self, corpus): pass
        def search(self, request): raise NotImplementedError
        def close(self): pass
"""


def test_an_installed_package_is_found_by_the_name_it_gives(install: Install) -> None:
    """A1: the harness imports no backend by itself; one of a stranger stands where the built-in ones do."""
    assert {"bm25", "jsonl"} <= set(backends.names())
    install("ours", "ours_module:Ours", OURS)
    assert "ours" in backends.names()
    made: Any = backends.make("ours", {"size": 3})
    assert made.size == 3
    assert isinstance(made, Backend)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "backend 'ours': size: the option is required"),
        (
            {"size": 1, "flavor": "x"},
            "backend 'ours': flavor: there is no such option; did you mean 'flavour'?",
        ),
    ],
)
def test_options_that_do_not_fit_are_told(install: Install, options: dict[str, Any], told: str) -> None:
    install("ours", "ours_module:Ours", OURS)
    with pytest.raises(Misuse) as caught:
        backends.make("ours", options)
    assert str(caught.value).startswith(told)


def test_an_unknown_name_is_told_with_the_nearest() -> None:
    with pytest.raises(
        Misuse, match=r"there is no backend 'bm52'; did you mean 'bm25'\?  \(installed: .*jsonl"
    ):
        backends.load("bm52")


def test_a_name_that_two_packages_claim_is_neither_of_them(install: Install) -> None:
    install("twice", "ours_module:Ours", OURS, project="one")
    install("twice", "other_module:Ours", OURS, project="two")
    with pytest.raises(Misuse, match="claim the name: other_module:Ours, ours_module:Ours"):
        backends.load("twice")


def test_a_package_that_does_not_import_is_broken_not_unknown(install: Install) -> None:
    install("lame", "lame_module:Ours", "import no_such_module_anywhere")
    with pytest.raises(
        CouldNot, match="backend 'lame': is installed but cannot be imported: No module named"
    ):
        backends.load("lame")


def test_capabilities_that_nobody_knows_are_refused(register: Callable[[str, Any], None]) -> None:
    register("told", Told({}, {"filter", "telepathy"}))
    with pytest.raises(Misuse, match=r"declares unknown capabilities \['telepathy'\]"):
        backends.make("told", {})


def test_a_factory_that_fails_is_told_as_the_backends_fault(register: Callable[[str, Any], None]) -> None:
    def factory(size: int = 1) -> Any:
        raise ValueError("no weights")

    register("failing", factory)
    with pytest.raises(CouldNot, match="backend 'failing': cannot be made: ValueError: no weights"):
        backends.make("failing", {})


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [("", "text", "text"), ("title", "text", "title\ntext"), ("title", "", "title\n"), ("", "", "")],
)
def test_the_built_ins_search_title_and_text(title: str, text: str, expected: str) -> None:
    assert Document("d", title, text).searchable == expected


@pytest.mark.parametrize(
    ("metadata", "wanted", "expected"),
    [
        ({"kind": "a"}, {"kind": "a"}, True),
        ({"kind": "a"}, {"kind": "b"}, False),
        ({}, {"kind": "a"}, False),
        ({"tags": ["a", "b"]}, {"tags": "b"}, True),
        ({"tags": ["ab"]}, {"tags": "a"}, False),
        ({"kind": "ab"}, {"kind": "a"}, False),
        ({"kind": "a", "team": "x"}, {"kind": "a", "team": "y"}, False),
        ({"kind": 1}, {"kind": "1"}, False),
        ({"kind": "a"}, {}, True),
    ],
)
def test_a_document_passes_a_filter_whose_values_it_has(
    metadata: dict[str, Any], wanted: dict[str, str], expected: bool
) -> None:
    assert Document("d", "", "", metadata).matches(wanted) is expected
