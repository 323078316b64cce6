"""Each room says what is public, and asking for it imports no more than it needs."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import eval_core
import eval_gate
from eval_core import lazily

#: The folders of the two packages that have rooms; verbs are found by their table, and are nobody's to import.
ROOMS = sorted(
    f"{path.parent.parent.name}.{path.parent.name}"
    for package in (eval_core, eval_gate)
    for path in Path(package.__file__ or "").parent.glob("*/__init__.py")
    if (package, path.parent.name) != (eval_gate, "cli")
)


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_of_a_room_resolves(room: str) -> None:
    package = import_module(room)
    assert package.__all__
    assert len(set(package.__all__)) == len(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is not None


@pytest.mark.parametrize("room", ROOMS)
def test_no_public_name_is_hidden_by_a_module_of_the_room(room: str) -> None:
    """`from eval_core.policy import bars` would be the module, or the function, by what was imported before."""
    package = import_module(room)
    for module in Path(package.__file__ or "").parent.glob("*.py"):
        if module.stem in package.__all__:
            assert getattr(package, module.stem).__name__ == f"{room}.{module.stem}"


@pytest.mark.parametrize(
    "room",
    ["eval_core.measuring", "eval_core.reports", "eval_core.scoring", "eval_core.sets", "eval_gate.check"],
)
def test_a_room_that_the_gate_passes_through_loads_nothing_by_itself(room: str) -> None:
    code = (
        f"import sys, {room}; print([m for m in sys.modules if m.startswith(('eval_core.', 'eval_gate.'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"['{room}']"


def test_an_unknown_name_is_an_attribute_error() -> None:
    get = lazily("eval_core.scoring", metrics="parse", memory="")
    assert get("parse")("mrr").family == "mrr"
    assert get("memory").__name__ == "eval_core.scoring.memory"
    with pytest.raises(AttributeError, match="has no attribute 'pars'"):
        get("pars")
