"""One rule for the workspace's root: every verb that reads a workspace takes the folder of `--config` for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from eval_core.cli import cli as core
from eval_gate.cli import cli as gate

if TYPE_CHECKING:
    from conftest import Done, Space

#: Of each verb, a command line and the exit code that it has in the folder of eval.toml.
COMMANDS = [
    ("eval-core measure -q", 0),
    ("eval-core validate sub/living sub/set sub/eval.toml", 0),
    ("eval-core inspect sub/living", 0),
    ("eval-core reconstruct", 0),
    ("eval-core reconstruct sub/living", 0),
    ("eval-core show notes", 0),
    ("eval-core explain notes q27", 0),
    ("eval-core compare baseline:notes notes", 0),
    ("eval-core publish --check", 0),
    ("eval-core query add sub/set asked.jsonl", 0),
    ("eval-gate floor", 0),
    ("eval-gate floor --measure", 0),
    ("eval-gate check", 0),
    ("eval-gate power", 0),
    ("eval-gate aa notes --runs 2", 0),
    ("eval-gate self-test", 0),
    ("eval-gate guard", 0),
    ("eval-gate promote notes --over other", 2),  # no promotion.toml: read, and said, before anything else
]

#: These read files that they are given, and no workspace.
APART = {"demo", "derive", "import", "reason", "score"}


@pytest.fixture
def outside(space: Space, make: type[Space]) -> Space:
    """The folder above a workspace `sub`, which is a repository and has a set whose corpus is built."""
    root = space.root.rename(space.root.with_name("sub"))
    inner = make(root)
    living = root / "living"
    (living / "qrels").mkdir(parents=True)
    (living / "dataset.toml").write_text(
        'name = "living"\n[[corpus.source]]\ntype = "git"\nname = "files"\npath = ".."\nbranch = "main"\n'
        'root = "living/files"\nprefix = ""\n'
    )
    (living / "files").mkdir()
    (living / "files" / "a.md").write_text("a shelf for jars\n")
    (living / "queries.jsonl").write_text('{"_id": "q1", "text": "where do jars go"}\n')
    (living / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta.md\t1\n")
    inner.edit(
        root / "eval.toml",
        '[arms."notes"]',
        '[arms."files"]\ndataset = "living"\nbackend = "jsonl"\nlane = "owner"\n'
        'options.command = ["{python}", "-S", "-E", "adapter.py"]\n\n[arms."notes"]',
    )
    (root / "README.md").write_text(
        "<!-- metrics notes: hit@1 -->\n| arm | hit@1 |\n|---|---|\n| notes | 0.963 |\n<!-- /metrics -->\n"
    )
    asked = {"text": "where would jam be looked for", "relevant": ["d03"]}
    (root.parent / "asked.jsonl").write_text(json.dumps(asked))
    assert inner.core("publish").code == 0
    inner.commit()
    return make(root.parent)


def run(line: str, where: Space) -> Done:
    script, *words = line.split()
    return where.core(*words) if script == "eval-core" else where.gate(*words)


@pytest.mark.parametrize(("line", "code"), COMMANDS, ids=[line for line, _ in COMMANDS])
def test_round2_s6_a_workspace_is_the_folder_of_its_configuration(
    line: str, code: int, outside: Space
) -> None:
    """S6: what is measured, floored and graded lies beside eval.toml, wherever the command is typed."""
    if line.startswith("eval-gate power"):
        run("eval-core reconstruct --config sub/eval.toml", outside)
    done = run(f"{line} --config sub/eval.toml", outside)
    assert done.code == code, done.out + done.err
    assert sorted(path.name for path in outside.root.iterdir()) == ["asked.jsonl", "sub"]


def test_round2_s6_every_verb_is_in_the_table() -> None:
    """S6: a new verb takes the folder of `--config` for its workspace, too, or says that it reads none."""
    verbs = {*core.table, *gate.table}
    assert {line.split()[1] for line, _ in COMMANDS} | APART == verbs


@pytest.mark.parametrize("line", [line for line, _ in COMMANDS])
def test_a_configuration_that_is_named_must_be_there(line: str, outside: Space) -> None:
    done = run(f"{line} --config sub/evl.toml", outside)
    assert done.code == 2
    assert "sub/evl.toml: there is no such file" in done.err
