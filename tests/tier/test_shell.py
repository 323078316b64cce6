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


#: Scripts that end green though `gate` fails, or is not run: none of them may be read as if it counted.
GREEN = [
    "g() { gate; echo; }\ng || exit 1", "g() { gate; echo; }\nif ! g; then exit 1; fi",
    "g() { gate; echo; }\ng && echo",
    "( gate; echo ) || exit 1", "{ gate; echo; } && echo", "g() { set -e; gate; echo; }\ng || exit 1",
    "g() { h; echo; }\nh() { gate; }\ng || exit 1", "( set -e; gate; echo ) || exit 1", "! { gate; echo; } || true",
    "X=$(gate; true)", "X=$(gate; true) || exit 1", "X=$(gate)$(true)", "X=$(exit 0; gate)",
    "if [ -f x ]; then exit 0; fi\ngate", "[ -f no ] || exit 0\ngate", "[ -f x ] && exit 0\ngate",
    "case a in a) exit 0;; esac\ngate", "f() { [ -f x ] && exit 0; true; }\nf\ngate", "f() { exit 0; }\nf\ngate",
    "f() { [ -f x ] && return 0; gate; }\nf", "for i in a; do continue; gate; done", "${{ true }} || exit 0\ngate",
    "for i in a; do [ -f x ] && break; gate; done", "[ -f x ] && exit 256\ngate", "X=0\n[ -f x ] && exit $X\ngate",
    "if ! false; then exit $?; fi\ngate", "if true; then exec true; fi\ngate", "until false; do exit 0; done\ngate",
    "f() { [ -f no ] || return 1; gate || exit 1; }\nf || true", "for i in 1; do gate || break; exit 0; done",
    "trap 'exit 0' ERR\ngate", "trap 'exit 0' 0\ngate", "trap 'echo; exit $?' EXIT\ngate",
    "trap -- 'exit 00' EXIT\ngate",
    "f() { exit 0; }\ntrap f EXIT\ngate", "X='exit 0'\ntrap \"$X\" EXIT\ngate", "trap 'set +e' DEBUG\ngate\necho",
    "eval 'set +e'\ngate\necho", "eval \"$(echo set +e)\"\ngate\necho", "eval exit 0\ngate",
    "eval 'gate; true' || exit 1",
    "shopt -u -o errexit\ngate\necho", "shopt -uo errexit\ngate\necho",
    "shopt -s expand_aliases\nalias gate=true\ngate",
    "set -n\ngate", "set -o noexec\ngate", "X=+e\nset $X\ngate\necho", "builtin set +e\ngate\necho",
    "if true; then set +e; fi\ngate\necho", "[ -f x ] && set +e\ngate\necho", "command exit 0\ngate",
    "command trap 'exit 0' EXIT\ngate", "command -v gate", "command -V gate", "type gate", "which gate",
    "gate() { true; }\ngate", "if true; then gate() { true; }; fi\ngate", "exit() { true; }\ngate || exit 1",
    "false() { true; }\ngate || false", "hash -p /bin/true gate\ngate", "exit 0 & gate || { echo; exit $?; }",
    "gate || rc=1; rc=0; exit $rc", "gate || rc=1\nunset rc\nexit $rc",
    "gate || rc=1\nfor rc in 0; do :; done\nexit $rc",
    "gate || rc=$?\n[ $rc = 1 ] && exit 0\nexit $rc", "gate || rc=$?\nexit $((rc-1))", "( gate || rc=1 )\nexit $rc",
    "gate || rc=$?\nrc=$((rc * 0))\nexit $rc", "f() { local rc; gate || rc=1; }\nf\nexit $rc",
    "gate || { echo; exit $?; }",
    "gate || rc=$?\nif true; then exit 0; fi\nexit $rc", "gate || failed=1; if [ \"$failed\" = 2 ]; then exit 1; fi",
    "gate || { true || exit 1; }", "gate || { exit 0; exit 1; }", "if ! gate; then exit $?; fi", "gate || X=0; exit $X",
    "{ gate || { false; true; }; } && echo",
    "for i in 1 2; do [ $i = 1 ] || gate; set +e; done; true",
    "gate & true & wait $!", "gate &\nwait $! || true", "gate & wait", "set +e; true | gate; exit ${PIPESTATUS[0]}",
    "set +e; gate; ret=$?; if [ $ret -ne 1 ]; then exit 1; fi; echo", "set +e; gate; test $? = 0; echo",
    "for i in 1 2; do rc=0; [ $i = 2 ] || gate || rc=1; done; exit $rc", "gate <<EOF | tee x\nhi\nEOF\necho",
]  # fmt: skip


@pytest.mark.parametrize("shell", [None, "bash"])
def test_what_ends_green_is_never_taken_to_count(programs: Path, shell: str | None) -> None:
    """Whatever a script does so that a failing gate, or one that is not run, leaves it green."""
    wrong = []
    (programs / "x").touch()
    for script in GREEN:
        done = subprocess.run(
            [*SHELLS[shell], "-c", script.replace("${{ true }}", "false")], cwd=programs, capture_output=True,
            env={"PATH": f"{programs}:{os.environ['PATH']}"}, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        found, gaps = commands(script, "ci.yml", 10, shell)
        counts = [
            one for one in found if strip(one.words).words[:1] == ("gate",) and not (one.mask or one.doubt)
        ]
        if (shell is None and done.returncode != 0) or (counts and not gaps and done.returncode == 0):
            wrong.append((script, done.returncode, counts))
    assert wrong == []


@pytest.mark.parametrize(
    "script",
    ["set +e; gate; rc=$?; if [ $rc -ne 0 ]; then exit $rc; fi", "gate || rc=$?; exit ${rc:-0}", "gate & wait $!",
     'gate || failed=1; if [ "$failed" = 1 ]; then exit 1; fi', 'die() { echo "$1"; exit 1; }; gate || die no; echo',
     "failed=0\ngate || failed=1\n[ $failed -eq 0 ]", "ok=true\ngate || ok=false\n$ok || exit 1\necho",
     "if ! gate; then failed=1; fi\nexit ${failed:-0}", "set +e\ngate\n[ $? -eq 0 ] || exit 1\necho",
     "gate || failed=$((failed+1))\nif [ $failed -gt 0 ]; then exit 1; fi", "g() { gate && echo; }\ng\necho",
     "( gate && echo )\necho", "{ gate || exit 1; } || true", "set +e; gate; ret=$?; ((ret)) && exit 1; echo",
     'run() { "$@"; }\nrun gate\necho', "gate &\npid=$!\nwait $pid\necho", "gate && echo ok || exit 1",
     "gate || { rc=$?; echo; exit $rc; }", "set +e\ngate\na=$?\ntrue\nb=$?\nexit $((a + b))",
     "f() { gate || return 1; }\nf",
     "trap 'rc=$?; echo; exit $rc' EXIT\ngate", "[ -f no ] && exit 1\ngate", "[ -f x ] || exit 1\ngate",
     "rc=0\nif [ $rc -ne 0 ]; then exit $rc; fi\ngate", "f() { [ -f x ] || return 1; gate; }\nf\necho",
     "set +e; gate | tee y\nif [ ${PIPESTATUS[0]} -ne 0 ]; then exit 1; fi\necho", "true || exit\ngate"],
)  # fmt: skip
def test_what_fails_the_script_is_no_mask(programs: Path, script: str) -> None:
    (programs / "x").touch()
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=programs, env={"PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    (gate,) = [one for one in commands(script, "f", 1)[0] if one.words == ("gate",)]
    assert done.returncode != 0 and (gate.mask, gate.doubt) == (None, None)


@pytest.mark.parametrize(
    ("value", "own"),
    [("$PWD/bin:$PATH", True), ("bin:$PATH", True), (".:$PATH", True), ("${{ github.workspace }}/b:$PATH", True),
     ("$GITHUB_WORKSPACE/b:$PATH", True), ("$HOME/.local/bin:$PATH", False), ("$VENV/bin:$PATH", False),
     ("/usr/x:$PATH", False), ("$PATH:bin", False), ("$PWD/.venv/bin:$PATH", False)],
)  # fmt: skip
def test_a_folder_of_the_repository_before_the_programs_is_doubted(value: str, own: bool) -> None:
    for script in (f'export PATH="{value}"\ngate', f'PATH="{value}" gate', f'PATH="{value}"\ngate'):
        (gate,) = [one for one in commands(script, "f", 1)[0] if "gate" in one.words]
        assert (gate.doubt is not None) == own, script


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
    ("shell", "runner"),
    [("pwsh", "ubuntu-latest"), ("python", "ubuntu-latest"), (None, "windows-latest"),
     ("bash -n {0}", ""), ("bash -c true {0}", ""), ("bash -c 'bash {0} || true'", ""), ("bash -e", ""),
     ("bash --rcfile x {0}", "")],
)  # fmt: skip
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
