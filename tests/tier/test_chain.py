"""What a step comes to, through scripts, Makefiles and sessions, with the chain that leads to each command."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tier_support import ROOT

from eval_tier.workflow.actions import parse
from eval_tier.workflow.chain import expand
from eval_tier.workflow.models import Command, Gap, Job, Place, Step

HERE = Place("ci.yml", 5)


def read(path: str) -> bytes | None:
    file = ROOT / path
    return file.read_bytes() if file.is_file() else None


def expanded(script: str, files: Mapping[str, str] = {}, **step: str) -> tuple[list[Command], list[Gap]]:
    held = {name: text.encode() for name, text in files.items()}
    return expand(Step(HERE, script=script, script_line=5, **step), Job(HERE, "a", ("a",), "a"), held.get)  # type: ignore[arg-type]


def test_this_repository_s_own_chain_comes_out() -> None:
    """S1: the gate of this repository, from its workflow to the session that runs it."""
    file = ".github/workflows/ci.yml"
    workflow = parse(file, read(file) or b"", read)
    job = workflow.jobs["run"]
    found = [one for step in job.steps for one in expand(step, job, read)[0]]
    for words in (
        ("eval-core", "measure"),
        ("eval-gate", "check"),
        ("eval-core", "publish", "--check", "README.md"),
    ):
        (one,) = [one for one in found if one.words[: len(words)] == words]
        assert [place.file for place in one.chain] == [file, ".ci/run", "Makefile", "noxfile.py"]
        assert all(place.line for place in one.chain)
        assert (one.mask, one.doubt) == (None, None)


MAKE = "X := eval-gate\nall: gate\ngate: data\n\t@$(X) check $(ARGS)\ndata: ; prepare\nbad:\n\t-eval-gate check\n"
NOX = """
import nox
nox.options.sessions = ["gate"]
@nox.session(name="gate")
def any_name(session):
    helper(session, "eval-gate", "check", *more())
@nox.session
def masked(session):
    session.run("eval-gate", "check", success_codes=[0, 1])
@nox.session
def tried(session):
    try:
        session.run("eval-gate", "check")
    except Exception:
        pass
@nox.session
def maybe(session):
    if session.posargs:
        session.run("eval-gate", "check")
@nox.session
def told(session):
    session.notify("gate")
"""
TOX = """[tox]
envlist = gate
[testenv:gate]
commands =
    eval-gate check {posargs}
[testenv:bad]
commands = - eval-gate check
"""
NPM = '{"scripts": {"gate": "eval-gate check", "bad": "eval-gate check || true", "pregate": "prepare"}}'
FILES = {"Makefile": MAKE, "noxfile.py": NOX, "tox.ini": TOX, "package.json": NPM, "sub/Makefile": MAKE,
         "x.sh": "#!/bin/sh\nset -e\neval-gate check\necho\n",
         "lax.sh": "#!/bin/sh\neval-gate check\necho\n"}  # fmt: skip


@pytest.mark.parametrize(
    ("script", "place", "mask", "doubt"),
    [
        ("make", "Makefile:4", False, False),
        ("make gate ARGS=-q", "Makefile:4", False, False),
        ("make -C sub gate", "sub/Makefile:4", False, False),
        ("cd sub\nmake gate", "sub/Makefile:4", False, False),
        ("make -k gate", "Makefile:4", True, False),
        ("make gate || true", "Makefile:4", True, False),
        ("if [ -f x ]; then make gate; fi", "Makefile:4", False, True),
        ("make bad", "Makefile:7", True, False),
        ("nox", "noxfile.py:6", False, False),
        ("python -m nox -s gate -- -q", "noxfile.py:6", False, False),
        ("nox -s told", "noxfile.py:6", False, False),
        ("nox -s masked", "noxfile.py:9", True, False),
        ("nox -s tried", "noxfile.py:13", True, False),
        ("nox -s maybe", "noxfile.py:19", False, True),
        ("tox -e gate", "tox.ini:5", False, False),
        ("tox -e bad", "tox.ini:7", True, False),
        ("npm run gate", "package.json:1", False, False),
        ("yarn bad", "package.json:1", True, False),
        ("./x.sh", "x.sh:3", False, False),
        ("bash x.sh", "x.sh:3", False, False),
        ("bash lax.sh", "lax.sh:2", True, False),
        ("bash -e lax.sh", "lax.sh:2", False, False),
        ("bash -c 'eval-gate check'", "ci.yml:5", False, False),
    ],
)
def test_a_call_is_followed_to_its_command(script: str, place: str, mask: bool, doubt: bool) -> None:
    found, gaps = expanded(script, FILES)
    assert gaps == []
    (one,) = [one for one in found if one.words[:2] == ("eval-gate", "check")]
    assert (str(one.chain[-1]), one.mask is not None, one.doubt is not None) == (place, mask, doubt)
    assert str(one.chain[0]).startswith("ci.yml:")


@pytest.mark.parametrize(
    "script",
    ["make nothing", "nox -s nothing", "tox -e nothing", "npm run nothing", "./nothing.sh", "bash $FILE",
     "docker run x", "make $TARGET", "just gate", "../x.sh", "curl x | bash"],
)  # fmt: skip
def test_what_cannot_be_followed_is_a_gap_with_its_chain(script: str) -> None:
    files = {
        name: text for name, text in FILES.items() if not (script.startswith("tox") and name == "tox.ini")
    }
    _, gaps = expanded(script, files)
    assert gaps and gaps[0].chain[0].file == "ci.yml"


def test_circles_and_floods_end() -> None:
    found, gaps = expanded("./a.sh", {"a.sh": "#!/bin/sh\n./b.sh\n", "b.sh": "#!/bin/sh\n./a.sh\n"})
    assert any("calls itself" in gap.what for gap in gaps)
    flood = {f"{n}.sh": "#!/bin/sh\n" + f"./{n + 1}.sh\n" * 50 for n in range(8)} | {"8.sh": "#!/bin/sh\nx\n"}
    found, gaps = expanded("./0.sh", flood)
    assert len(found) <= 5_000


@pytest.mark.parametrize(
    "library",
    [
        "trap 'exit 0' EXIT",
        "set +e",
        "exit 0",
        "alias eval-gate=true",
        "[ -f x ] && exit 0",
        "exec true",
        'eval "$X"',
    ],
)
def test_a_file_that_is_sourced_changes_what_follows(library: str) -> None:
    for script in (". ./lib.sh", "source lib.sh", 'source "$ROOT/lib.sh"'):
        found, _ = expanded(f"{script}\neval-gate check\necho", {"lib.sh": library})
        (gate,) = [one for one in found if one.words[0] == "eval-gate"]
        assert gate.mask or gate.doubt
        if gate.doubt and "alias" not in gate.doubt:
            assert "lib.sh" in gate.doubt


def test_a_function_of_a_file_that_is_sourced_is_followed() -> None:
    lib = "log() { echo; }\nrun_gate() {\n  eval-gate check\n}\n"
    found, gaps = expanded("source lib.sh\nrun_gate\necho", {"lib.sh": lib})
    (gate,) = [one for one in found if one.words[0] == "eval-gate"]
    assert (list(map(str, gate.chain)), gate.mask, gate.doubt, gaps) == (
        ["ci.yml:6", "lib.sh:3"],
        None,
        None,
        [],
    )
    assert expanded("source lib.sh\neval-gate check", {"lib.sh": "eval-gate() { :; }"})[0] == []


@pytest.mark.parametrize("name", ["BASH_ENV", "SHELLOPTS", "PATH", "BASH_FUNC_gate%%", "LD_PRELOAD"])
def test_an_environment_that_steers_the_shell_is_doubted(name: str) -> None:
    found, _ = expanded("eval-gate check", env={name: "x"})
    assert name in (found[0].doubt or "")
    assert expanded("eval-gate check", env={"ENV": "production", "OTHER": "x"})[0][0].doubt is None


@pytest.mark.parametrize("path", ["./tools/bin/eval-gate", "tools/bin/eval-gate", "$PWD/tools/bin/eval-gate"])
def test_a_script_of_the_repository_is_no_program(path: str) -> None:
    for text in ("true", "#!/usr/bin/python3\n", "#!/bin/sh\nexit 0\n"):
        found, _ = expanded(f"{path} check", {"tools/bin/eval-gate": text})
        assert "eval-gate" not in [one.words[0] for one in found]
    for program in ("$VENV/bin/eval-gate", ".venv/bin/eval-gate", "/usr/bin/eval-gate"):
        assert expanded(f"{program} check")[0][0].words == ("eval-gate", "check")


@pytest.mark.parametrize(
    "script",
    ['"$GATE" check', "$CMD", "task gate", "just gate", "bash <<EOF\neval-gate check\nEOF", 'eval "$X"',
     "hatch run x:gate", "hatch run gate", "pdm run gate", "bash -n x.sh", "bash -s x.sh", "eval-$X check"],
)  # fmt: skip
def test_what_runs_something_unknown_is_a_gap(script: str) -> None:
    scripts = '[tool.hatch.envs.a.scripts]\ngate = "true"\n[tool.pdm.scripts]\ngate = "true"\n'
    found, gaps = expanded(script, FILES | {"pyproject.toml": scripts})
    assert gaps and not [one for one in found if one.words[0] == "eval-gate"]


@pytest.mark.parametrize(
    ("script", "folder"),
    [("eval-gate check", "."), ("cd sub && eval-gate check", "sub"), ("(cd sub)\neval-gate check", "."),
     ("make -C sub", "sub"),
     ("cd $X\neval-gate check", "\0"), ("cd sub\ncd ..\neval-gate check", "."), ("cd sub; ../in.sh", "sub"),
     ("if x; then cd sub; fi\neval-gate check", "\0"), ('cd "$GITHUB_WORKSPACE/sub"\neval-gate check', "sub"),
     ("tools/up.sh", "sub"), ("setsid eval-gate check", "."), ("pushd sub\neval-gate check", "\0")],
)  # fmt: skip
def test_a_command_has_its_folder(script: str, folder: str) -> None:
    up = '#!/bin/bash\nROOT="$(cd "$(dirname "$0")/.." && pwd)"\ncd "$ROOT/sub"\neval-gate check\n'
    found, _ = expanded(script, FILES | {"tools/up.sh": up, "in.sh": "eval-gate check\n"})
    assert [one.folder for one in found if one.words[0] == "eval-gate"] == [folder]
