"""Each room of eval_core says what is public, and asking for it imports no more than it needs."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import eval_core
from eval_core import lazily

HERE = Path(eval_core.__file__).parent
ROOMS = sorted(path.parent.name for path in HERE.glob("*/__init__.py"))


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_of_a_room_resolves(room: str) -> None:
    package = import_module(f"eval_core.{room}")
    assert package.__all__
    assert len(set(package.__all__)) == len(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is not None


@pytest.mark.parametrize("room", ROOMS)
def test_no_public_name_is_hidden_by_a_module_of_the_room(room: str) -> None:
    """`from eval_core.policy import bars` would be the module, or the function, by what was imported before."""
    for module in (HERE / room).glob("*.py"):
        if module.stem in import_module(f"eval_core.{room}").__all__:
            assert (
                getattr(import_module(f"eval_core.{room}"), module.stem).__name__
                == f"eval_core.{room}.{module.stem}"
            )


@pytest.mark.parametrize("room", ["measuring", "reports", "scoring", "sets", "authoring"])
def test_a_room_that_the_gate_passes_through_loads_nothing_by_itself(room: str) -> None:
    code = f"import sys, eval_core.{room}; print([m for m in sys.modules if m.startswith('eval_core.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"['eval_core.{room}']"


def test_an_unknown_name_is_an_attribute_error() -> None:
    get = lazily("eval_core.scoring", metrics="parse", memory="")
    assert get("parse")("mrr").family == "mrr"
    assert get("memory").__name__ == "eval_core.scoring.memory"
    with pytest.raises(AttributeError, match="has no attribute 'pars'"):
        get("pars")
