"""Whether a failure of a command fails its script: as a real shell has it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from eval_tier.workflow.launchers import strip
from eval_tier.workflow.shell import commands

#: By the shell that a step names, how the runner starts it.
SHELLS = {None: ["bash", "-e"], "bash": ["bash", "-eo", "pipefail"], "recipe": ["sh"], "bash {0}": ["bash"]}

#: Scripts in which `gate` fails; and those that are read more strictly than a shell runs them.
SCRIPTS = [
    "gate", "gate || true", "gate || exit 1", "gate || exit 0", "gate || { echo x; exit 1; }", "gate || exit $?",
    "if ! gate; then exit 1; fi", "if ! gate; then echo x; fi", "if gate; then echo y; fi",
    "if gate; then echo y; else exit 1; fi", "set +e\ngate\nrc=$?\necho d\nexit $rc", "set +e\ngate\nrc=$?\nexit 0",
    "set +e\ngate\ntrue", "set +e\ngate", "set -e\ngate\ntrue", "gate | tee x", "set -o pipefail\ngate | tee x",
    "set -euo pipefail\ngate | cat", "gate | cat || true", "cat x | gate", "gate 2>&1 | tee x\nexit ${PIPESTATUS[0]}",
    "gate &", "! gate", "true && gate", "gate && true", "gate && echo x\necho y", "x=$(gate)", "x=`gate`",
    "echo $(gate)", "export X=$(gate)", "( gate )", "( set +e; gate; true )", "{ gate; }", "f() { gate; }\nf",
    "f() { gate; }\nf || true", "for i in a b; do gate; done", "while gate; do echo x; done", "gate; true", "gate;",
    "gate > out.txt", "gate 2> /dev/null", "gate <<< text", "gate <<EOF\ntext\nEOF", "false || gate",
    "GATE=gate\n$GATE",
    'GATE="gate now"\n$GATE', "trap 'exit 0' EXIT\ngate", "trap 'rm -f x' EXIT\ngate", "gate || echo no", "gate || :",
    "gate\nexit 0", "set +e\ngate\nexit 0", "set +e; gate; exit $?", "gate || rc=$?\nexit $rc", "gate || rc=$?\necho d",
    "X=1 gate", "time gate", "gate \\\n  now", "# gate || true\ngate",
    "case a in a) gate;; esac", "if [ -n x ]; then gate; fi",
    "echo before\ngate\necho after", "until gate; do exit 1; done", "set +eu\ngate\necho x", "set -x\ngate",
]  # fmt: skip
STRICTER = {
    (None, "until gate; do exit 1; done"),
    ("bash", "until gate; do exit 1; done"),
    ("recipe", "until gate; do exit 1; done"),
    ("bash {0}", "until gate; do exit 1; done"),
    ("recipe", "for i in a b; do gate; done"),
    ("bash {0}", "for i in a b; do gate; done"),
}
_BASH_ALONE = ("pipefail", "PIPESTATUS", "<<<", "time ")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    (folder / "gate").write_text("#!/bin/sh\nexit 1\n")
    (folder / "gate").chmod(0o755)
    (folder / "x").touch()
    return folder


@pytest.mark.parametrize("shell", SHELLS)
def test_a_failure_is_masked_where_the_real_shell_exits_0(programs: Path, shell: str | None) -> None:
    """K2: a gate that cannot fail is theatre."""
    wrong = []
    for script in SCRIPTS:
        if shell == "recipe" and any(one in script for one in _BASH_ALONE):
            continue
        done = subprocess.run(
            [*SHELLS[shell], "-c", script], cwd=programs, env={"PATH": f"{programs}:{os.environ['PATH']}"},
            capture_output=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        found, gaps = commands(script, "ci.yml", 10, shell)
        gates = [one for one in found if "gate" in one.words]
        masked = bool(gates) and gates[0].mask is not None
        if gaps or masked != (done.returncode == 0 or (shell, script) in STRICTER):
            wrong.append((script, done.returncode, gates, gaps))
    assert wrong == []


@pytest.mark.parametrize(
    "script",
    ["if [ -f x ]; then gate; fi", "[ -f x ] && gate\ntrue", "[ -f x ] || gate", "for i in $X; do gate; done",
     "case $X in a) gate;; esac", "exit 0\ngate", "exec other\ngate", "while read l; do gate; done"],
)  # fmt: skip
def test_what_may_not_be_run_is_doubted(script: str) -> None:
    (gate,) = [one for one in commands(script, "f", 1)[0] if "gate" in one.words]
    assert gate.doubt


@pytest.mark.parametrize(
    "script", ["f() { gate; }", "echo gate", "# gate", "cat <<EOF\ngate\nEOF", "x='gate'"]
)
def test_what_is_no_command_is_none(script: str) -> None:
    assert [one for one in commands(script, "f", 1)[0] if one.words[0] == "gate"] == []


def test_lines_redirections_and_expressions() -> None:
    found, gaps = commands("echo a\n\ngate ${{ github.ref }} \\\n  --x > out 2>&1\n", "ci.yml", 10)
    assert gaps == []
    assert [(one.words, str(one.chain[-1]), one.writes) for one in found] == [
        (("echo", "a"), "ci.yml:10", ()),
        (("gate", "\0", "--x"), "ci.yml:12", ("out",)),
    ]


@pytest.mark.parametrize(
    ("shell", "runner"), [("pwsh", "ubuntu-latest"), ("python", "ubuntu-latest"), (None, "windows-latest")]
)
def test_other_shells_are_gaps(shell: str | None, runner: str) -> None:
    found, gaps = commands("gate", "f", 1, shell, runner)
    assert found == [] and len(gaps) == 1


def test_a_part_that_cannot_be_parsed_is_a_gap_and_the_rest_is_read() -> None:
    found, gaps = commands("first\n)) ((\nlast\n", "f", 1)
    assert "first" in [one.words[0] for one in found] and gaps


@pytest.mark.parametrize(
    "script", ["(" * 5000, "$(" * 3000 + "x", "{ " * 2000, "a; " * 20_000, "x" * 2_000_000, "\0", "if " * 900]
)
def test_a_hostile_script_ends(script: str) -> None:
    found, gaps = commands(script, "f", 1)
    assert len(found) <= 5_000 and len(gaps) <= 101


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ("uv run --frozen eval-gate check", "eval-gate check"),
        ("uv run --with x python -m eval_gate check", "eval-gate check"),
        ("python3.11 -P -m eval_core measure", "eval-core measure"),
        (".venv/bin/python -m nox -s gate", "nox -s gate"),
        ("/usr/local/bin/eval-gate check", "eval-gate check"),
        ("poetry run eval-gate check", "eval-gate check"),
        ("env A=b X=y eval-gate check", "eval-gate check"),
        ("A=b eval-gate check", "eval-gate check"),
        ("sudo -E eval-gate check", "eval-gate check"),
        ("timeout 10m eval-gate check", "eval-gate check"),
        ("npx --yes thing", "thing"),
        ("uv run python3 scripts/x.py --a", "python scripts/x.py --a"),
        ("xvfb-run -a eval-gate check", "eval-gate check"),
    ],
)
def test_launchers_are_looked_through(written: str, left: str) -> None:
    assert " ".join(strip(written.split()).words) == left


def test_what_a_launcher_hides_is_said() -> None:
    assert strip(["bash", "-ec", "gate"]).shell_text == "gate"
    assert strip(["bash", "tools/x.sh"]).script == strip(["source", "tools/x.sh"]).script == "tools/x.sh"
    assert strip(["./x.sh"]).script == "./x.sh"
    assert strip(["docker", "run", "image"]).gap and strip(["xargs", "gate"]).doubt
