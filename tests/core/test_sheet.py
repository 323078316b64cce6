"""A sheet of drafts: out of `derive`, through a spreadsheet, and into a set with `query add --sheet`."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from core_support import Done, call
from derive_support import commit, judged, queries

from eval_core.authoring.derive.drafts import Draft, Origin
from eval_core.authoring.questions.file import read_questions
from eval_core.authoring.sheet import write_sheet
from eval_core.cli import main
from eval_core.errors import Misuse

NOTES = {
    "keys.md": "Turn them.\n\n# Changing every secret\n\n# Keeping every secret\n",
    "dumps.md": "# Tables at night\n\n- [[keys]]: how each table is signed at night\n",
}


def run(where: Path, *arguments: str) -> Done:
    return call(main, *arguments, where=where)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Notes, and a sheet of the drafts from them."""
    for name, text in NOTES.items():
        (tmp_path / "notes").mkdir(exist_ok=True)
        (tmp_path / "notes" / name).write_text(text)
    done = run(tmp_path, "derive", "notes", "--path", "notes", "-o", "set", "--sheet", "d.csv")
    assert (done.code, done.err) == (0, "")
    return tmp_path


def rows(path: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))


def test_round2_d2_a_draft_is_dropped_by_one_edit_in_one_file(notes: Path) -> None:
    """D2: the sheet holds the drafts, and the set holds them once they were reviewed."""
    assert rows(notes / "d.csv") == [
        ["keep", "question", "relevant", "origin", "first line", "category", "exclude"],
        ["yes", "Tables at night", "notes/dumps.md", "dumps.md:1", "# Tables at night", "heading", ""],
        [
            "yes",
            "how each table is signed at night",
            "notes/keys.md",
            "dumps.md:3 [[keys]]",
            "Turn them.",
            "link",
            "notes/dumps.md",
        ],
        ["yes", "Changing every secret", "notes/keys.md", "keys.md:3", "Turn them.", "heading", ""],
        ["yes", "Keeping every secret", "notes/keys.md", "keys.md:5", "Turn them.", "heading", ""],
    ]
    assert queries(notes / "set") == []
    text = (notes / "d.csv").read_bytes()
    (notes / "d.csv").write_bytes(
        text.replace(b"yes,Keeping", b"no,Keeping").replace(b"Changing every", b"who changes a")
    )
    said = run(
        notes, "derive", "notes", "--path", "notes", "-o", "other", "--sheet", "e.csv"
    ).out.splitlines()
    assert "  eval-core query add other e.csv --sheet  add the rows that are kept" in said
    assert run(notes, "reconstruct", "set").code == 0
    done = run(notes, "query", "add", "set", "d.csv", "--sheet")
    assert (done.code, done.err) == (0, "")
    assert "3 questions added, source draft: 0 → 3 queries in test" in done.out
    truth = judged(notes / "set")
    assert [(q["text"], truth[q["_id"]], q["metadata"]) for q in queries(notes / "set")] == [
        (
            "Tables at night",
            ["notes/dumps.md"],
            {"category": "heading", "origin": ["dumps.md:1"], "source": "draft"},
        ),
        (
            "how each table is signed at night",
            ["notes/keys.md"],
            {
                "category": "link",
                "exclude": ["notes/dumps.md"],
                "origin": ["dumps.md:3 [[keys]]"],
                "source": "draft",
            },
        ),
        (
            "who changes a secret",
            ["notes/keys.md"],
            {"category": "heading", "origin": ["keys.md:3"], "source": "draft"},
        ),
    ]


def test_round2_d2_code_gives_a_sheet_too(tmp_path: Path) -> None:
    """D2: with the first line of the file beside each draft."""
    text = '#!/bin/sh\ndef turn():\n    """Change every secret at night."""\n'
    sha = commit(tmp_path / "lib", {"keys.py": text})
    done = run(tmp_path, "derive", "code", "--repo", "lib", "--commit", sha, "-o", "set", "--sheet", "d.csv")
    assert (done.code, done.err) == (0, "")
    assert [row[:5] for row in rows(tmp_path / "d.csv")[1:]] == [
        ["yes", "Change every secret at night", "lib/keys.py", "keys.py:2 turn", "#!/bin/sh"],
        ["yes", "turn", "lib/keys.py", "keys.py:2 turn", "#!/bin/sh"],
    ]


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "'=", "''@"])
def test_round2_d2_no_cell_of_a_sheet_is_a_formula(tmp_path: Path, begin: str) -> None:
    """D2: what a comment says must not be computed on opening; it comes back as it was."""
    text = f'{begin}cmd|" /C calc"!A0 is it'
    draft = Draft(
        text, "docstring", "semantic", (f"{begin}a.py",), (Origin(f"{begin}a.py", 1, ""),), (f"{begin}b.py",)
    )
    write_sheet(tmp_path / "d.csv", [draft], {f"{begin}a.py": f"{begin}1+1"})
    _, cells = rows(tmp_path / "d.csv")
    assert not any(cell.startswith((begin, "=", "+", "-", "@")) for cell in cells)
    (found,) = read_questions(tmp_path / "d.csv", lambda line, what: pytest.fail(what), sheet=True)
    assert (found.text, found.relevant, found.exclude) == (text, {f"{begin}a.py": 1}, (f"{begin}b.py",))
    assert found.metadata["origin"] == [f"{begin}a.py:1"]


HEADER = "keep,question,relevant"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{HEADER}\nyes,why so?,a.md b.md\n", [("why so?", ["a.md", "b.md"])]),
        (f"\ufeff{HEADER}\r\nYES,why so?,a.md\r\n", [("why so?", ["a.md"])]),
        ("keep;question;relevant\r\nx;why, so?;a.md\r\n", [("why, so?", ["a.md"])]),
        ("keep\tquestion\trelevant\n1\twhy so?\ta.md\n", [("why so?", ["a.md"])]),
        (
            f'{HEADER}\r\ny,"why\r\nso?","a.md\r\nb.md"\r\nTRUE,how?,c.md',
            [("why\r\nso?", ["a.md", "b.md"]), ("how?", ["c.md"])],
        ),
        (f"{HEADER}\nyes,'=x is what?,'@a.md\n", [("=x is what?", ["@a.md"])]),
        (f"{HEADER}\nyes,'tis what?,a.md\n", [("'tis what?", ["a.md"])]),
        (f"{HEADER}\nno,a b?,a.md\n,c d?,a.md\nFALSE,e f?,\n0,,\nyes,g h?,a.md\n", [("g h?", ["a.md"])]),
        ("Note,Relevant,KEEP,Question\nmine,a.md,yes,why so?\n", [("why so?", ["a.md"])]),
        ("relevant,question,keep\na.md,why so?\nb.md,how?,x\n", [("how?", ["b.md"])]),
    ],
    ids=[
        "plain",
        "bom and CRLF",
        "semicolons",
        "tabs",
        "newlines",
        "formulas",
        "apostrophe",
        "not kept",
        "columns",
        "short rows",
    ],
)
def test_round2_d2_what_spreadsheets_make_of_a_sheet_is_read(
    tmp_path: Path, text: str, found: list[tuple[str, list[str]]]
) -> None:
    """D2: byte order marks, semicolons, CRLF, quoted line ends, other columns in another order."""
    (tmp_path / "d.csv").write_bytes(text.encode())
    read = read_questions(tmp_path / "d.csv", lambda line, message: pytest.fail(message), sheet=True)
    assert [(question.text, list(question.relevant)) for question in read] == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "question,relevant\nwhy so?,a.md\n",
            "1: has no column 'keep', or has it twice; a sheet has keep, question",
        ),
        (f"{HEADER},Keep\nyes,why so?,a.md,no\n", "1: has no column 'keep', or has it twice"),
        (f"{HEADER}\nyes,why so?,a.md\nmaybe,how?,a.md\n", "3: keep 'maybe' should be yes or no"),
        (f"{HEADER}\nyes,why so?,\n", "2: has no 'relevant'"),
        (f"{HEADER}\nyes,,a.md\n", "2: has no 'question'"),
        ("", "1: has no column 'keep'"),
    ],
)
def test_round2_d2_a_faulty_sheet_is_told_with_its_row(tmp_path: Path, text: str, said: str) -> None:
    """D2: nothing is dropped in silence that a person wanted to keep."""
    (tmp_path / "d.csv").write_text(text)
    faults: list[str] = []
    read_questions(tmp_path / "d.csv", lambda line, message: faults.append(f"{line}: {message}"), sheet=True)
    assert any(fault.startswith(said) for fault in faults), faults


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("d.csv", f"{HEADER}\nno,a?,a.md\n", "keeps no question: each row says no"),
        ("d.jsonl", "{}\n", "a sheet is CSV"),
    ],
)
def test_round2_d2_what_is_no_sheet_is_refused(tmp_path: Path, name: str, text: str, said: str) -> None:
    """D2: JSON lines have no column to keep by."""
    (tmp_path / name).write_text(text)
    with pytest.raises(Misuse, match=re.escape(said)):
        read_questions(tmp_path / name, lambda line, message: None, sheet=True)


@pytest.mark.parametrize(
    ("name", "said"), [("d.csv", "a sheet replaces nothing"), ("d.tsv", "a sheet is CSV")]
)
def test_round2_d2_a_sheet_replaces_nothing(notes: Path, name: str, said: str) -> None:
    """D2: a reviewed sheet is hours of work."""
    before: Any = (notes / "d.csv").read_bytes()
    done = run(notes, "derive", "notes", "--path", "notes", "-o", "other", "--sheet", name)
    assert done.code == 2 and said in done.err
    assert (notes / "d.csv").read_bytes() == before and not (notes / "other").exists()
