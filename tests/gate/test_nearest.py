"""What a document that is not in the corpus may have meant is said wherever that is said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Space

FILES = ("notes/my note.md", "Design.md", "deep/plan.md")

#: A document as it was named, and the id that it has.
MEANT = [
    ("notes/my note.md", "notes/my%20note.md"),
    ("my note.md", "notes/my%20note.md"),
    ("notes/my%20note.md#2", "notes/my%20note.md"),
    ("notes/my note.md::2", "notes/my%20note.md"),
    ("deep/plan.md#some-heading", "deep/plan.md"),
    ("design.md", "Design.md"),
    ("./deep/plan.md", "deep/plan.md"),
    ("deep\\plan.md", "deep/plan.md"),
    ("moved/from/plan.md", "deep/plan.md"),
    ("deep/plna.md", "deep/plan.md"),
    ("wholly/different.txt", None),
]


@pytest.fixture
def files(space: Space) -> Space:
    """A workspace whose set is about three files of its own repository, pinned to a commit."""
    for name in FILES:
        (space.root / name).parent.mkdir(exist_ok=True)
        (space.root / name).write_text(f"all about {name}\n")
    commit = space.commit()
    folder = space.root / "set"
    (folder / "corpus.jsonl").unlink()
    globs = ", ".join(f'"{name}"' for name in FILES)
    (folder / "dataset.toml").write_text(
        f'name = "things"\n[[corpus.source]]\ntype = "git"\nname = "own"\npath = ".."\ncommit = "{commit}"\n'
        f'include = [{globs}]\nprefix = ""\n'
    )
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "which design was chosen"}\n')
    judge(space, "Design.md")
    assert space.core("reconstruct").code == 0
    assert space.core("validate", "set").code == 0
    return space


def judge(space: Space, document: str) -> None:
    qrels = f"query-id\tcorpus-id\tscore\nq1\t{document}\t1\n"
    (space.root / "set" / "qrels" / "test.tsv").write_text(qrels)


def validated(space: Space, document: str) -> str:
    judge(space, document)
    return space.core("validate", "set").out


def answered(space: Space, document: str) -> str:
    (space.root / "answers.json").write_text(json.dumps({"which design was chosen": [document]}))
    return space.core("measure", "-q").out


def added(space: Space, document: str) -> str:
    (space.root / "new.jsonl").write_text(json.dumps({"text": "where to?", "relevant": [document]}))
    return space.core("query", "add", "set", "new.jsonl").err


def guarded(space: Space, document: str) -> str:
    judge(space, document)
    done = space.gate("guard", "set")
    return done.out + done.err


@pytest.mark.parametrize(("given", "meant"), MEANT, ids=[given for given, _ in MEANT])
@pytest.mark.parametrize("say", [validated, answered, added, guarded])
def test_round2_s5_a_document_by_another_spelling_is_named_by_its_id(
    files: Space, say: object, given: str, meant: str | None
) -> None:
    """S5: percent-encoded spaces, a chunk, another case, `./`, backslashes, a moved file, a slip."""
    assert callable(say)
    said = " ".join(str(say(files, given)).split())
    assert "not in the corpus" in said or say is guarded
    if meant is None:
        assert "did you mean" not in said
        assert "nearest" not in said
        return
    hints = (f"did you mean {meant!r}?", f"write it as {meant!r}", f"nearest: {meant.replace('%20', ' ')} ")
    assert any(hint in said for hint in hints), said
