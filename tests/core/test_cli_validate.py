"""`eval-core validate`: sets, reports and configurations, and everything that is wrong with them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from core_support import INLINE, Space, append, write_policy

from eval_core.reports.report import read_report

ROOT = Path(__file__).resolve().parents[2]


def test_sound_inputs_are_said_to_be_sound(shelves: Space) -> None:
    shelves.arm(backend="bm25")
    assert shelves.core("measure").code == 0
    done = shelves.core("validate", "set", "set/dataset.toml", "eval.toml", ".eval/reports/arm.json")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("set  sound: 8 documents, 6 queries, 6 judgements, corpus sha256 ")
    assert lines[1:3] == ["set/dataset.toml  sound: definition of set things", "eval.toml  sound: 1 arm"]
    assert lines[3].startswith(".eval/reports/arm.json  sound: arm arm, 6 queries scored, run 20")


def test_a_set_whose_corpus_comes_from_elsewhere_is_rebuilt_and_validated(shelves: Space) -> None:
    (shelves.root / "notes").mkdir()
    for name in range(1, 9):
        (shelves.root / "notes" / f"d{name}").write_text(f"text of {name}", "utf-8")
    (shelves.root / "set" / "dataset.toml").write_text(
        'name = "things"\n[[corpus.source]]\nname = "n"\ntype = "dir"\npath = "../notes"\nprefix = ""\n',
        "utf-8",
    )
    done = shelves.core("validate", "set")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("set  sound: 8 documents, 6 queries, 6 judgements")


SPLIT = "query-id\tcorpus-id\tscore\n"

#: Two splits beside each other: judgements, and what is said without --split and with `--split dev`.
SPLITS: dict[str, tuple[dict[str, str], list[str], list[str]]] = {
    "both sound": (
        {"dev": "q1\td1\t1\nq2\td2\t1\n", "test": "q3\td3\t1\nq4\td4\t1\nq5\td5\t1\nq6\td6\t1\n"},
        [
            "set  sound: split dev, 8 documents, 2 queries, 2 judgements, corpus",
            "set  sound: split test, 8 documents, 4 queries, 4 judgements, corpus",
        ],
        ["set  sound: 8 documents, 2 queries, 2 judgements, corpus"],
    ),
    "a fault in dev": (
        {"dev": "q1\td9\t1\nq2\td2\t1\n", "test": "q1\td1\t1\nq3\td3\t1\nq4\td4\t1\nq5\td5\t1\nq6\td6\t1\n"},
        ["set/qrels/dev.tsv:2: judges document 'd9', which is not in the corpus", "1 fault; "],
        ["set/qrels/dev.tsv:2: judges document 'd9', which is not in the corpus", "1 fault; "],
    ),
    "a fault of both": (
        {"dev": "q1\td1\t1\n", "test": "q3\td3\t1\nq4\td4\t1\nq5\td5\t1\nq6\td6\t1\n"},
        ["set/queries.jsonl:2: query 'q2' has no positive judgement; judge it, or mark it", "1 fault; "],
        ["set/queries.jsonl:2: query 'q2' has no positive judgement; judge it, or mark it", "1 fault; "],
    ),
}


@pytest.mark.parametrize("case", SPLITS)
def test_all_splits_of_a_set_are_validated_or_the_one_that_is_named(shelves: Space, case: str) -> None:
    """A fault that two splits share is told once."""
    judgements, every, dev = SPLITS[case]
    for name, rows in judgements.items():
        (shelves.root / "set" / "qrels" / f"{name}.tsv").write_text(SPLIT + rows, "utf-8")
    for words, expected in (((), every), (("--split", "dev"), dev)):
        done = shelves.core("validate", "set", *words)
        assert done.code == (0 if case == "both sound" else 2)
        lines = done.out.splitlines()
        assert len(lines) == len(expected)
        assert all(line.startswith(begin) for line, begin in zip(lines, expected, strict=True))


def test_a_split_that_is_not_there_or_belongs_to_no_set(shelves: Space) -> None:
    done = shelves.core("validate", "set", "--split", "tst")
    assert (done.code, done.out) == (
        2,
        "set/qrels/tst.tsv: there is no such split; did you mean 'test'?  (splits: test)\n",
    )
    done = shelves.core("validate", "set/dataset.toml", "--split", "test")
    assert done.code == 2
    assert "--split goes with the folder of a set" in done.err


def test_a_plain_beir_folder_is_validated_as_it_is(
    shared_data: Callable[[str], Path], shelves: Space
) -> None:
    done = shelves.core("validate", shared_data("beir/med"))
    assert done.code == 0
    assert "sound: 1,033 documents, 30 queries, 696 judgements" in done.out


@pytest.mark.parametrize(
    ("damage", "path", "code", "told"),
    [
        (
            lambda root: append(root / "set/qrels/test.tsv", "q1\td9\t1\nq1\td2\tx\n"),
            "set",
            2,
            [
                "set/qrels/test.tsv:9: grade 'x' should be a whole number of at most 9 digits; below 1 is not relevant",
                "set/qrels/test.tsv:8: judges document 'd9', which is not in the corpus",
                "2 faults; nothing was measured.",
            ],
        ),
        (
            lambda root: append(root / "eval.toml", "limt = 1\n"),
            "eval.toml",
            2,
            ["eval.toml:5: arms.arm.limt: unknown key; did you mean 'limit'?"],
        ),
        (
            lambda root: (root / ".eval/reports/arm.json").write_bytes(b"{"),
            ".eval/reports/arm.json",
            1,
            [".eval/reports/arm.json: is not whole JSON"],
        ),
        (
            lambda root: (root / ".eval/reports/arm.json").unlink(),
            ".eval/reports/arm.json",
            1,
            [".eval/reports/arm.json: there is no such report"],
        ),
        (lambda root: shutil.rmtree(root / "set"), "set", 2, ["set: there is no such file or folder"]),
        (
            lambda root: (root / "set/dataset.toml").write_text('name = "n"\nlimt = 1\n'),
            "set/dataset.toml",
            2,
            ["set/dataset.toml:2: limt: unknown key; did you mean 'limit'?"],
        ),
        (
            lambda root: (root / "set/dataset.toml").write_text(
                INLINE.replace("inline", "dir") + 'path = "p"\n'
            ),
            "set",
            3,
            ["source 'own': 'p' does not exist"],
        ),
    ],
)
def test_everything_that_is_wrong_is_said_and_the_others_are_read_too(
    shelves: Space, damage: Callable[[Path], Any], path: str, code: int, told: list[str]
) -> None:
    shelves.arm(backend="bm25")
    assert shelves.core("measure").code == 0
    damage(shelves.root)
    shutil.copytree(ROOT / "datasets" / "memory", shelves.root / "memory")
    done = shelves.core("validate", path, "memory")
    assert done.code == code
    for line in told:
        assert line in done.out
    assert "memory  sound: 50 documents" in done.out


def test_a_configuration_is_sound_only_if_measuring_would_take_it(shelves: Space) -> None:
    """Backends, their options and the sets are looked for, and each fault has its line."""
    shelves.arm(backend="bm52")
    shelves.arm("options.comand = ['x']", name="two", backend="jsonl")
    shelves.arm(name="three", backend="bm25", dataset="nowhere")
    done = shelves.core("validate", "eval.toml")
    assert done.code == 2
    assert "there is no backend 'bm52'; did you mean 'bm25'?" in done.out
    assert "comand: there is no such option; did you mean 'command'?" in done.out
    assert "arms.\"three\".dataset = 'nowhere': there is no such dataset folder" in done.out


#: A path of the workspace, what it is said to be, and how the mend begins.
OTHERS = {
    "set/queries.jsonl": ("part of a set", "eval-core validate set"),
    "set/qrels/test.tsv": ("part of a set", "eval-core validate set --split test"),
    "set/qrels": ("part of a set", "eval-core validate set"),
    "policy": ("the policy", "eval-gate check --policy policy"),
    "policy/floors.toml": ("the policy", "eval-gate check --policy policy"),
    "policy/evidence": ("not a set", "eval-core validate policy/evidence/*.jsonl"),
    ".eval/reports": ("not a set", "eval-core validate .eval/reports/*.json"),
    ".eval/runs/arm.jsonl": ("is a run", "eval-core score --run .eval/runs/arm.jsonl --qrels FILE"),
    ".eval/runs/arm.trec": ("is a run", "eval-core score --run .eval/runs/arm.trec --qrels FILE"),
    "adapter.py": ("not what `validate` checks", "Name the folder of a set"),
    "one line.txt": ("not what `validate` checks", "Name the folder of a set"),
    "other.json": ("without a schema", "Name the folder of a set"),
    "other.jsonl": ("not what `validate` checks", "Name the folder of a set"),
}


@pytest.mark.parametrize("path", OTHERS)
def test_what_is_not_validated_by_itself_says_what_it_is_and_what_to_validate(
    vouched: Space, path: str
) -> None:
    (vouched.root / "policy" / "evidence").mkdir(parents=True)
    for name in ("floors.toml", "evidence/arm.jsonl"):
        (vouched.root / "policy" / name).write_text("")
    (vouched.root / ".eval/runs/arm.trec").write_text("q1 Q0 d1 1 0.5 arm\n")
    (vouched.root / "adapter.py").write_text("import os\n")
    (vouched.root / "one line.txt").write_text("one two three four five six\n")
    for name in ("other.json", "other.jsonl"):
        (vouched.root / name).write_text('{"a": 1}\n')
    done = vouched.core("validate", path)
    (said, mend), (what, command) = done.out.splitlines(), OTHERS[path]
    assert said.startswith(f"{path}: is ")
    assert what in said
    assert mend.startswith(f"  {command}")
    assert (done.code, done.err) == (2, "")


def test_queries_that_nobody_judged_are_counted(shelves: Space) -> None:
    (shelves.root / "set" / "dataset.toml").unlink()
    (shelves.root / "set" / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\td1\t1\n", "utf-8"
    )
    done = shelves.core("validate", "set")
    assert done.code == 0
    assert "5 queries without a positive judgement" in done.out


@pytest.fixture
def vouched(shelves: Space) -> Space:
    """A report with its provenance beside it."""
    shelves.arm(backend="bm25")
    assert shelves.core("measure").code == 0
    return shelves


def test_a_report_whose_provenance_fits_is_sound_and_so_is_the_provenance(vouched: Space) -> None:
    """S4: the one is held against the other, whichever is named."""
    done = vouched.core("validate", ".eval/reports/arm.json", ".eval/reports/arm.intoto.jsonl")
    assert (done.code, done.err) == (0, "")
    first, second = done.out.splitlines()
    assert "provenance" not in first
    assert second.startswith(
        ".eval/reports/arm.intoto.jsonl  sound: provenance of arm.json: arm arm, 6 queries"
    )


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda raw: raw.replace(b'"dirty":', b'"dirty":1,"dirt":', 1), "arm.intoto.jsonl: "),
        (lambda raw: b"{", "arm.intoto.jsonl: is not whole JSON"),
        (lambda raw: raw.replace(b'"arm.json"', b'"other.json"'), "is about 'other.json', not 'arm.json'"),
        (
            lambda raw: raw.replace(b'"backend":"bm25"', b'"backend":"bm52"'),
            "says other things than the report",
        ),
    ],
)
def test_a_report_beside_provenance_that_says_otherwise_is_refused(
    vouched: Space, damage: Callable[[bytes], bytes], told: str
) -> None:
    """S4: a divergent sidecar is no sound report, by either name."""
    path = vouched.reports / "arm.intoto.jsonl"
    before = path.read_bytes()
    path.write_bytes(damage(before))
    assert path.read_bytes() != before
    for name in ("arm.json", "arm.intoto.jsonl"):
        done = vouched.core("validate", f".eval/reports/{name}")
        assert done.code == 1
        assert told in done.out
        assert "sound" not in done.out


def test_a_report_that_was_edited_since_does_not_fit_its_provenance(vouched: Space) -> None:
    """White space is no change to the report, and another file all the same."""
    path = vouched.reports / "arm.json"
    path.write_bytes(path.read_bytes() + b"\n")
    done = vouched.core("validate", path)
    assert done.code == 1
    assert "is about other bytes of arm.json" in done.out


def test_a_report_without_provenance_is_sound_and_that_is_said(vouched: Space) -> None:
    (vouched.reports / "arm.intoto.jsonl").unlink()
    done = vouched.core("validate", ".eval/reports/arm.json")
    assert done.code == 0
    assert done.out.endswith("; no provenance beside it\n")


def test_evidence_is_validated_line_by_line(vouched: Space) -> None:
    policy = vouched.root / "policy"
    write_policy(policy, {"arm": [read_report(vouched.reports / "arm.json")]})
    path = policy / "evidence" / "arm.jsonl"
    done = vouched.core("validate", path)
    assert (done.code, done.out) == (
        0,
        f"{path}  sound: 1 run of arm arm, each recomputed from its entries\n",
    )
    path.write_text(path.read_text().replace('"resumed":false', '"resumed":true'))
    done = vouched.core("validate", path)
    assert done.code == 1
    assert f"{path}:1" in done.out
    assert "line is not the digest of what the line says" in done.out
    done = vouched.core("validate", policy / "floors.toml")
    assert (done.code, "eval-gate check" in done.out) == (2, True)


def test_provenance_without_its_report_says_what_it_is(vouched: Space) -> None:
    (vouched.reports / "arm.json").unlink()
    done = vouched.core("validate", ".eval/reports/arm.intoto.jsonl")
    assert done.code == 1
    assert "is the provenance of .eval/reports/arm.json, which does not exist" in done.out


def test_a_name_that_is_not_utf8_is_told(vouched: Space) -> None:
    name = os.fsdecode(b".eval/reports/r\xff.json")
    shutil.copy(vouched.reports / "arm.json", vouched.root / name)
    done = vouched.core("validate", name, "no" + name)
    assert done.out.encode().startswith(b".eval/reports/r\\udcff.json  sound: ")
    assert done.code == 1
