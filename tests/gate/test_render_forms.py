"""One verdict in five forms, and in files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Space

FORMS = ("table", "json", "markdown", "junit", "github")


def passes(space: Space) -> None: ...


def fails(space: Space) -> None:
    assert space.measure(space.losing(6)).code == 0


def lacks_a_report(space: Space) -> None:
    space.report.unlink()


def names_no_arm(space: Space) -> None:
    space.floors.write_text('schema = "floors-v2"\n')


def has_no_policy(space: Space) -> None:
    shutil.rmtree(space.root / "policy")


STATES = [
    (passes, 0),
    (fails, 1),
    (lacks_a_report, 1),
    (names_no_arm, 1),
    (has_no_policy, 2),
]


@pytest.mark.parametrize(("state", "code"), STATES)
def test_every_form_exits_alike_and_writes_nothing(
    space: Space, state: Callable[[Space], None], code: int
) -> None:
    """K3: the exit code is the verdict's, whatever form it is told in; no form writes a file."""
    state(space)
    before = space.tree()
    for form in FORMS:
        done = space.gate("check", "--format", form)
        assert done.code == code, (form, done.out, done.err)
        assert bool(done.out) is (code != 2)
        assert done.out.count("\n") == len(done.out.splitlines())
    assert space.tree() == before


@pytest.mark.parametrize("losses", [1, 9])
def test_plain_floors_exit_alike_too(space: Space, losses: int) -> None:
    (space.root / "plain.toml").write_text(space.gate("floor", "--form", "plain").out)
    assert space.measure(space.losing(losses)).code == 0
    arguments = ("check", "--floors", "plain.toml", "--allow-unbound", "--format")
    assert {space.gate(*arguments, form).code for form in FORMS} == {int(losses > 3)}


def test_one_run_writes_several_files_and_prints(space: Space) -> None:
    fails(space)
    wanted = {form: space.gate("check", "--format", form).out for form in FORMS}
    words = [word for form in FORMS for word in ("--output", f"{form}=made/{form}.txt")]
    done = space.gate("check", "--format", "github", "--output", "own.txt", *words)
    assert (done.code, done.out, done.err) == (1, wanted["github"], "")
    assert (space.root / "own.txt").read_text() == wanted["github"]
    made = {path.stem: path.read_text() for path in (space.root / "made").iterdir()}
    assert made == wanted


def test_judging_is_done_once_whatever_is_written(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    from eval_core.reports import report

    read: list[Path] = []
    parse = report.parse_report

    def counted(raw: bytes, path: Path, *rest: object, **more: object) -> report.Report:
        read.append(path)
        return parse(raw, path, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(report, "parse_report", counted)
    words = [word for form in FORMS for word in ("--output", f"{form}={form}.txt")]
    assert space.gate("check", *words).code == 0
    assert read == [Path(".eval/reports/notes.json")]


def test_a_file_takes_no_colour(space: Space) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    subprocess.run(
        [sys.executable, "-m", "eval_gate", "check", "--output", "table=out.txt"],
        cwd=space.root,
        env=environment | {"FORCE_COLOR": "1"},
        check=True,
        capture_output=True,
    )
    text = (space.root / "out.txt").read_text()
    assert text.startswith("PASS  1 arm, class local\n")
    assert "\x1b" not in text


@pytest.mark.parametrize("kind", ["below a file", "a folder", "a pipe"])
def test_an_output_that_cannot_be_written_is_told_after_the_verdict(space: Space, kind: str) -> None:
    """Exit 3; what can be written is, and nothing half-written stays."""
    target = {"below a file": "eval.toml/out.xml", "a folder": "folder", "a pipe": "pipe"}[kind]
    (space.root / "folder").mkdir()
    if kind == "a pipe":
        os.mkfifo(space.root / "pipe")
    before = space.tree()
    done = space.gate("check", "--output", f"junit={target}", "--output", "json=out.json")
    assert (done.code, done.out) == (3, space.gate("check").out)
    assert done.err.startswith(f"eval-gate: {target}: cannot be written: ")
    after = space.tree()
    assert json.loads(after.pop("out.json") or b"")["verdict"] == "pass"
    assert after == before


def test_what_stands_in_a_file_is_replaced_whole(space: Space) -> None:
    path = space.root / "out.md"
    path.write_text("old\n" * 9999)
    assert space.gate("check", "--output", "markdown=out.md").code == 0
    assert path.read_text() == space.gate("check", "--format", "markdown").out
    assert [p.name for p in space.root.iterdir() if p.name.startswith(".out")] == []


@pytest.mark.parametrize(
    ("outputs", "told"),
    [
        (["markdwon=a.md"], "no form 'markdwon'; did you mean 'markdown'?"),
        (["=a.md"], "no form ''"),
        (["junit="], "write FILE or FORMAT=FILE"),
        ([""], "write FILE or FORMAT=FILE"),
        (["a.md", "junit=./a.md"], "'./a.md' is written already"),
    ],
)
def test_outputs_are_understood_before_anything_is_judged(
    space: Space, outputs: list[str], told: str
) -> None:
    words = [word for output in outputs for word in ("--output", output)]
    before = space.tree()
    done = space.gate("check", *words)
    assert (done.code, done.out, told in done.err) == (2, "", True), done.err
    assert space.tree() == before


@pytest.mark.parametrize(
    ("output", "what"),
    [
        ("json=policy/floors.toml", "it lies in policy, which this command reads"),
        ("policy/evidence/new.json", "it lies in policy"),
        ("json=eval.toml", "it is read by this command"),
        ("json=.eval/reports/notes.json", "it lies in .eval/reports"),
        ("json=set/queries.jsonl", "it lies in set"),
        ("set/summary.md", "it lies in set"),
        ("json=alias.json", "it lies in policy"),
        ("json=named.json", "it is read by this command"),
        ("json=named.intoto.jsonl", "it is read by this command"),
        ("json=bars/floors.toml", "it is read by this command"),
        ("json=bars/evidence/notes.jsonl", "it lies in bars/evidence"),
        ("json=.git/index", "git reads it"),
        ("json=.git/refs/heads/main", "git reads it"),
        ("json=.gitignore", "git reads it"),
        ("json=adapter.py", "it is read by this command"),
        ("json=lib/helper.py", "it is read by this command"),
    ],
)
def test_round2_s10_an_output_that_is_an_input_is_refused(space: Space, output: str, what: str) -> None:
    """S10: a file that the verb reads, or one in a folder that it reads, is never overwritten by its answer."""
    (space.root / "alias.json").symlink_to("policy/floors.toml")
    shutil.copytree(space.root / "policy", space.root / "bars")
    for path in (space.report, space.sidecar):
        shutil.copy(path, space.root / path.name.replace("notes", "named"))
    (space.root / "lib").mkdir()
    (space.root / "lib" / "helper.py").write_text("")
    files = 'backend = "jsonl"\noptions.files = ["lib/**/*.py"]'
    space.edit(space.root / "eval.toml", 'backend = "jsonl"', files)
    space.commit()
    before = space.tree()
    words = ("--floors", "bars/floors.toml", "--report", "notes=named.json", "--output", output)
    done = space.gate("check", *words)
    assert (done.code, done.out) == (2, "")
    assert f"--output = '{output.removeprefix('json=')}': {what}" in done.err.replace("\n", " ")
    assert space.tree() == before


def test_a_file_may_have_an_equals_sign_in_its_name(space: Space) -> None:
    assert space.gate("check", "--output", "json=a=b.json").code == 0
    assert json.loads((space.root / "a=b.json").read_text())["verdict"] == "pass"


@pytest.mark.parametrize(
    ("form", "modules"),
    [
        ("json", {"place"}),
        ("table", {"place", "table", "words"}),
        ("markdown", {"markdown", "place", "words"}),
        ("junit", {"junit", "place", "words"}),
        ("github", {"github", "place", "spots", "words"}),
    ],
)
def test_only_the_form_that_is_chosen_is_imported(space: Space, form: str, modules: set[str]) -> None:
    """K3: starting is a feature; no form imports a library for Markdown, XML or HTML parsing."""
    body = (
        "import sys; sys.argv = ['eval-gate', 'check', '--format', sys.argv[1]]\n"
        "from eval_gate.cli import main\n"
        "try: main()\n"
        "except SystemExit as done: print(done.code, *sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", body, form], cwd=space.root, capture_output=True, text=True, check=True
    )
    code, *loaded = done.stderr.split()
    assert code == "0"
    ours = {name.removeprefix("eval_gate.render.") for name in loaded if name.startswith("eval_gate.render.")}
    assert ours == modules
    assert {"xml", "rich", "markdown_it", "numpy", "tempfile"} & set(loaded) <= {"tempfile"}
