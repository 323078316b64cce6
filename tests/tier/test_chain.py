"""What a step comes to, through scripts, Makefiles and sessions, with the chain that leads to each command."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from tier_support import ROOT

from eval_tier.evidence.files import Working
from eval_tier.workflow.actions import parse
from eval_tier.workflow.chain import expand
from eval_tier.workflow.models import Command, Gap, Job, Place, Step
from eval_tier.workflow.tasks import Makefile

HERE = Place("ci.yml", 5)


read = Working(ROOT).read


def expanded(script: str, files: Mapping[str, str] = {}, **step: object) -> tuple[list[Command], list[Gap]]:
    held = {name: text.encode() for name, text in files.items()}
    made = Step(HERE, script=script, script_line=5, **step)  # type: ignore[arg-type]
    folder = {name.rsplit("/", 1)[0] for name in held if "/" in name}
    return expand(made, Job(HERE, "a", ("a",), "a"), held.get, folder.__contains__)


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


GATED = "gate:\n\teval-gate check\n"


#: A Makefile, how it is called, and whether a failure of the gate is seen: `make` itself is asked, too.
MAKES = [
    (GATED, "make gate"), (GATED, "make"), (GATED, "make -s -j4 gate"), (GATED, "make --no-print-directory gate"),
    ("MAKEFLAGS += -i\n" + GATED, "make gate"), ("MAKEFLAGS = --ignore-errors\n" + GATED, "make gate"),
    ("MAKEFLAGS += -n\n" + GATED, "make gate"), (GATED, "MAKEFLAGS=-i make gate"), (GATED, "make -i gate"),
    (".IGNORE:\n" + GATED, "make gate"), (GATED, "make -n gate"), (GATED, "make -Bn gate"),
    (GATED, "make --touch gate"),
    (GATED, "make --question gate || true"), ("other:\n\ttrue\n" + GATED, "make -o gate gate"),
    (GATED + "gate:\n\ttrue\n", "make gate"), ("gate:\n\ttrue\n" + GATED, "make gate"),
    (".ONESHELL:\ngate:\n\teval-gate check\n\techo done\n", "make gate"),
    (".ONESHELL:\ngate:\n\teval-gate check\n", "make gate"), ("SHELL = /bin/true\n" + GATED, "make gate"),
    (GATED, "make SHELL=/bin/true gate"),
    ("SHELL = /bin/bash\n.SHELLFLAGS = -eo pipefail -c\ngate:\n\teval-gate check | cat\n", "make gate"),
    ("gate:\n\teval-gate check | cat\n", "make gate"),
    ("ifdef RUN\ngate:\n\teval-gate check\nelse\ngate:\n\ttrue\nendif\n", "make gate"),
    ("GATE ?= eval-gate check\ngate:\n\t$(GATE)\n", "make gate"),
    ("GATE ?= eval-gate check\ngate:\n\t$(GATE)\n", "GATE=true make gate"),
    ("GATE ?= eval-gate check\ngate:\n\t$(GATE)\n", "make gate GATE=true"),
    ("GATE = eval-gate check\ngate:\n\t$(GATE)\n", "GATE=true make gate"),
    (GATED + "include more.mk\n", "make gate"), ("gate:\n\t-eval-gate check\n", "make gate"),
    ("gate: ; eval-gate check\n", "make gate"), ("gate:\n\teval-gate check || true\n", "make gate"),
    ("x: y=1\n" + GATED, "make gate"), ("gate:: ; true\ngate:: ; eval-gate check\n", "make gate"),
    (".PHONY: folder\nfolder:\n\teval-gate check\n", "make folder"), ("folder:\n\teval-gate check\n", "make folder"),
    ("define X\neval-gate check\nendef\ngate:\n\t$(X)\n", "make gate"),
]  # fmt: skip


@pytest.mark.parametrize(("makefile", "call"), MAKES)
def test_what_make_loses_is_never_proven(tmp_path: Path, makefile: str, call: str) -> None:
    """Where real make exits 0 with a gate that fails, the gate is masked, in doubt, not there, or not read."""
    (tmp_path / "Makefile").write_text(makefile)
    (tmp_path / "more.mk").write_text("gate:\n\ttrue\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "eval-gate").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin" / "eval-gate").chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-ec", call], cwd=tmp_path, env={"PATH": path}, capture_output=True)
    found, gaps = expanded(call, {"Makefile": makefile, "folder/x": ""})
    gates = [one for one in found if one.words[:2] == ("eval-gate", "check")]
    counts = [one for one in gates if one.mask is None and one.doubt is None] if not gaps else []
    assert not (done.returncode == 0 and counts), (done, found)
    if done.returncode and "define" not in makefile and "include" not in makefile and "ifdef" not in makefile:
        assert counts, (done, found, gaps)


def test_a_rule_is_read_in_time_linear_in_its_line() -> None:
    """Twice the line takes less than three times as long, where a square takes four."""

    def cost(line: str) -> float:
        start = time.process_time()
        for _ in range(3):
            Makefile(line)
        return time.process_time() - start

    for line in ("a{}b", "a {}:{}b#", "{}=", "a:{};{}#"):
        small, large = (cost(line.format(*[" b" * size] * 2)) for size in (50_000, 100_000))
        assert large < 3 * small + 0.05


SESSION = "import nox\n@nox.session\ndef gate(session):\n"


@pytest.mark.parametrize(
    ("body", "options", "sign"),
    [
        ("    session.run('eval-gate', 'check', **{'success_codes': [0, 1]})", "", "mask"),
        ("    session.run('eval-gate', 'check', **more)", "", "mask"),
        ("    session.posargs and session.run('eval-gate', 'check')", "", "doubt"),
        ("    session.run('eval-gate', 'check') if x else None", "", "doubt"),
        ("    match x:\n        case 1:\n            session.run('eval-gate', 'check')", "", "doubt"),
        ("    if 'K' not in os.environ:\n        return\n    session.run('eval-gate', 'check')", "", "doubt"),
        ("    if not x:\n        session.skip('no')\n    session.run('eval-gate', 'check')", "", "doubt"),
        ("    if not x:\n        raise ValueError\n    session.run('eval-gate', 'check')", "", ""),
        ("    session.skip('no')\n    session.run('eval-gate', 'check')", "", "absent"),
        ("    sys.exit(0)\n    session.run('eval-gate', 'check')", "", "absent"),
        ("    def f():\n        session.run('eval-gate', 'check')", "", "absent"),
        ("    x = lambda: session.run('eval-gate', 'check')", "", "absent"),
        ("    session.chdir('demo')\n    session.run('eval-gate', 'check')", "", "demo"),
        ("    with session.chdir('demo'):\n        session.run('eval-gate', 'check')", "", "demo"),
        ("    with session.chdir('demo'):\n        pass\n    session.run('eval-gate', 'check')", "", ""),
        ("    with ignoring():\n        session.run('eval-gate', 'check')", "", "doubt"),
        ("    args = ['eval-gate', 'check']\n    session.run(*args)", "", "gap"),
        ("    session.run('eval-gate', 'check', *session.posargs)", "", ""),
        ("    session.run_install('eval-gate', 'check')", "", "doubt"),
        ("    session.run('eval-gate', 'check')", "-l", "absent"),
        ("    session.run('eval-gate', 'check')", "--list", "absent"),
        ("    session.run('eval-gate', 'check')", "--install-only", "absent"),
        ("    session.run('eval-gate', 'check')", "-f other.py", "gap"),
        ("    session.run('eval-gate', 'check')", "-t tag", "gap"),
        ("    session.run('eval-gate', 'check')", "", ""),
    ],
)
def test_what_a_nox_session_may_leave_out(body: str, options: str, sign: str) -> None:
    found, gaps = expanded(f"nox {options}", {"noxfile.py": f"{SESSION}{body}\n"})
    gates = [one for one in found if one.words[:2] == ("eval-gate", "check")]
    if sign in ("gap", "absent"):
        assert gates == [] and bool(gaps) == (sign == "gap")
        return
    (one,) = gates
    assert gaps == [] and one.folder == ("demo" if sign == "demo" else ".")
    assert (one.mask is not None, one.doubt is not None) == (sign == "mask", sign == "doubt"), one


def test_the_options_that_a_function_of_the_noxfile_gives_are_read() -> None:
    more = "def more():\n    options = ['--require=class']\n    options.append(f'--target={x}')\n    return options\n"
    run = "    session.run('eval-gate', 'check', *more(), *session.posargs)\n"
    (_, one), _ = expanded("nox -- --format json", {"noxfile.py": f"{SESSION}{run}{more}"})
    assert one.words == ("eval-gate", "check", "--require=class", "--target=", "--format", "json")
    (_, one), _ = expanded("nox", {"noxfile.py": f"{SESSION}{run}" + more.replace("'--require=class'", "x")})
    assert "\0" in one.words


@pytest.mark.parametrize(
    ("section", "options", "sign"),
    [
        ("ignore_outcome = true\ncommands = eval-gate check", "", "mask"),
        ("platform = win32\ncommands = eval-gate check", "", "doubt"),
        ("commands = ! eval-gate check", "", "mask"),
        ("changedir = demo\ncommands = eval-gate check", "", "demo"),
        ("commands = eval-gate check", "-l", "absent"),
        ("commands = eval-gate check", "--notest", "absent"),
        ("commands = eval-gate check", "-c other.ini", "gap"),
        ("commands = eval-gate check", "", ""),
    ],
)
def test_what_tox_may_leave_out(section: str, options: str, sign: str) -> None:
    found, gaps = expanded(
        f"tox {options}", {"tox.ini": f"[tox]\nenvlist = gate\n[testenv:gate]\n{section}\n"}
    )
    gates = [one for one in found if one.words[:2] == ("eval-gate", "check")]
    if sign in ("gap", "absent"):
        assert gates == [] and bool(gaps) == (sign == "gap")
        return
    (one,) = gates
    assert (one.mask is not None, one.doubt is not None, one.folder) == (
        sign == "mask", sign == "doubt", "demo" if sign == "demo" else "."
    )  # fmt: skip


@pytest.mark.parametrize(
    ("call", "seen"),
    [("npm run gate", True), ("npm run gate --ignore-scripts", False), ("npm test", True), ("pnpm gate", False),
     ("yarn gate", True), ("npm run gate -w web", False), ("npm --prefix web run gate", False), ("npm ci", False)],
)  # fmt: skip
def test_what_npm_runs(call: str, seen: bool) -> None:
    scripts = '{"scripts": {"pregate": "eval-gate check", "gate": "true", "test": "eval-gate check"}}'
    found, gaps = expanded(call, {"package.json": scripts})
    assert any(one.words[:2] == ("eval-gate", "check") for one in found) == seen
    assert bool(gaps) == ("web" in call)


@pytest.mark.parametrize(
    ("lib", "sure"),
    [("log() { echo $1; }\nX=1\nset -e\n", True), ("trap 'exit 0' EXIT\n", False), ("set +e\n", True),
     ("exit 0\n", False),     ("eval-gate() { true; }\n", False), ("export PATH=$PWD/fake:$PATH\n", False)],
)  # fmt: skip
def test_what_a_sourced_file_leaves_behind(lib: str, sure: bool) -> None:
    found, gaps = expanded(". ./lib.sh\neval-gate check", {"lib.sh": lib})
    gates = [one for one in found if one.words[:2] == ("eval-gate", "check")]
    assert (bool(gates) and gates[0].doubt is None and gates[0].mask is None and not gaps) == sure


@pytest.mark.parametrize("name", ["BASH_ENV", "SHELLOPTS", "PATH"])
def test_an_environment_that_changes_the_shell_is_a_doubt(name: str) -> None:
    (one,), _ = expanded("eval-gate check", env={name: "x.sh"})
    assert one.doubt and name in one.doubt


def test_a_program_of_the_repository_is_a_script_of_it() -> None:
    files = {"tools/bin/eval-gate": "#!/bin/sh\nexit 0\n"}
    assert expanded("./tools/bin/eval-gate check", files)[0][0].words[0] != "eval-gate"
    for call in (".venv/bin/eval-gate check", '"$VENV/bin/eval-gate" check'):
        assert expanded(call, files)[0][0].words == ("eval-gate", "check")


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
