"""A file becomes a sound set: documents, judgements and counts worked by hand, and every oddity with its outcome."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, namedtuple
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from lme_support import Desk, conversion, judged, lines, peak, record, turn

from longmemeval_convert.sample import stratified
from longmemeval_convert.synth import Generator

ROOT = Path(__file__).resolve().parents[2]


def small(seed: int = 1, questions: int = 60, variant: str = "s") -> bytes:
    return "".join(
        Generator(variant, seed, questions, None if variant == "oracle" else (6, 9)).chunks()
    ).encode()


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# -------------------------------------------------------------------------------------------------- what is made


def test_a_record_becomes_documents_a_query_and_judgements(desk: Desk) -> None:
    """M9: sessions are documents in the question's scope, in the order of dates; the question is the query."""
    folder = desk.set([record()])
    assert lines(folder / "corpus.jsonl") == [
        {
            "_id": f"q0001/00{place}",
            "text": text,
            "metadata": {"scopes": ["q0001"], "date": iso, "date_written": date},
        }
        for place, text, iso, date in (
            (1, "How wet is dough? Thanks.", "2024-02-10T09:00", "2024/02/10 (Sat) 09:00"),
            (2, "", "2024-02-14T18:30", "2024/02/14 (Wed) 18:30"),
            (3, "I booked Lisbon.", "2024-02-20T12:15", "2024/02/20 (Tue) 12:15"),
        )
    ]
    meaning = {
        "scope": "q0001",
        "category": "single-session-user",
        "asked": "2024-03-01T10:00",
        "asked_written": "2024/03/01 (Fri) 10:00",
    }
    assert lines(folder / "queries.jsonl") == [
        {"_id": "q0001", "text": "Which city did I book?", "metadata": meaning}
    ]
    assert judged(folder) == judged(folder, "authors") == [("q0001", "q0001/003")]
    names = {"q0001/001": "ultrachat_1", "q0001/002": "sharegpt_aB_0", "q0001/003": "answer_1"}
    assert lines(desk.root / "set.ids.jsonl") == [
        {"query": "q0001", "question_id": "e47becba", "documents": names}
    ]


TEXTS: dict[tuple[str, str], list[tuple[str, str]]] = {
    ("session", "all"): [
        ("1", "user: How wet is dough?\nassistant: Seventy percent.\nuser: Thanks."),
        ("2", "assistant: Stretch."),
        ("3", "user: I booked Lisbon.\nassistant: Take a map."),
    ],
    ("session", "assistant"): [
        ("1", "assistant: Seventy percent."),
        ("2", "assistant: Stretch."),
        ("3", "assistant: Take a map."),
    ],
    ("turn", "user"): [("1/001", "How wet is dough?"), ("1/003", "Thanks."), ("3/001", "I booked Lisbon.")],
    ("turn", "all"): [
        ("1/001", "user: How wet is dough?"),
        ("1/002", "assistant: Seventy percent."),
        ("1/003", "user: Thanks."),
        ("2/001", "assistant: Stretch."),
        ("3/001", "user: I booked Lisbon."),
        ("3/002", "assistant: Take a map."),
    ],
}


@pytest.mark.parametrize(("granularity", "text"), TEXTS)
def test_granularity_and_text_say_what_a_document_is(desk: Desk, granularity: str, text: str) -> None:
    folder = desk.set([record()], "--granularity", granularity, "--text", text)
    found = [(one["_id"], one["text"]) for one in lines(folder / "corpus.jsonl")]
    assert found == [(f"q0001/00{name}", said) for name, said in TEXTS[granularity, text]]
    gold = "q0001/003/001" if granularity == "turn" else "q0001/003"
    assert judged(folder) == [("q0001", gold)]
    assert conversion(folder)["statements"][0] == f"{granularity} retrieval, not a LongMemEval score"


def marked(*marks: bool | None) -> list[dict[str, Any]]:
    """A session whose user and assistant take turns, marked so."""
    return [turn("assistant" if n % 2 else "user", f"turn {n}", mark) for n, mark in enumerate(marks)]


# The turns of a gold session; by granularity and text whether it is judged by `answers`, and by `authors`.
GOLDS: dict[str, tuple[list[dict[str, Any]], dict[str, tuple[int, int]]]] = {
    "the user's": (marked(True, False), {"session user": (1, 1), "turn user": (1, 1), "turn all": (1, 1)}),
    # LongMemEval #16 and #10: without a turn of the user the authors leave it out, and user texts cannot be found.
    "the assistant's": (
        marked(False, True),
        {"session user": (1, 0), "turn user": (0, 0), "turn all": (1, 0)},
    ),
    "both": (marked(True, True), {"session user": (1, 1), "turn user": (1, 1), "turn all": (2, 1)}),
    "neither": (marked(False, False), {"session user": (1, 0), "turn user": (0, 0), "turn all": (0, 0)}),
    "null and absent": (marked(None), {"session user": (1, 0), "turn user": (0, 0), "turn all": (0, 0)}),
}


@pytest.mark.parametrize("case", GOLDS)
def test_both_kinds_of_gold_follow_the_marks(desk: Desk, case: str) -> None:
    turns, wanted = GOLDS[case]
    value = record("b", haystack_sessions=[turns, [turn("user", "x")], [turn("user", "y")]])
    for choice, (answers, authors) in wanted.items():
        granularity, text = choice.split()
        folder = desk.set([record("a"), value], "--granularity", granularity, "--text", text)
        found = conversion(folder)
        for split, count in (("test", answers), ("authors", authors)):
            assert Counter(query for query, _ in judged(folder, split))["q0002"] == count
        assert found["counts"]["without_evidence"] == (answers == 0)
        assert found["counts"]["without_user_evidence"] == (
            case in ("the assistant's", "neither", "null and absent")
        )
        assert found["counts"]["unjudged"] == (answers == 0)
        assert found["denominators"] == {"answers": 1 + (answers > 0), "authors": 1 + (authors > 0)}
        query = lines(folder / "queries.jsonl")[1]["metadata"]
        assert query.get("unanswerable", False) is (answers == 0) and "abstention" not in query


def test_gold_says_which_judgements_are_the_split_test(desk: Desk) -> None:
    value = record("b", haystack_sessions=[marked(False, True), [], []])
    folder = desk.set([record("a"), value], "--gold", "authors")
    assert [query for query, _ in judged(folder)] == ["q0001"]
    assert [query for query, _ in judged(folder, "answers")] == ["q0001", "q0002"]
    assert conversion(folder)["name"] == "longmemeval-other-session-user-authors"


def test_original_ids_are_encoded_and_said_to_tell_the_gold(desk: Desk) -> None:
    value = record("a b", haystack_session_ids=["answer_1", "50%", "A"])
    folder = desk.set([value, record("c")], "--ids", "original")
    assert [one["_id"] for one in lines(folder / "corpus.jsonl")][:3] == [
        "a%20b/50%25",
        "a%20b/A",
        "a%20b/answer_1",
    ]
    assert any(said.startswith("original ids tell") for said in conversion(folder)["statements"])
    assert desk.left() == ["lme.json", "set"]
    slashes = [record("a", haystack_session_ids=["answer_1", "b/c", "x"]), record("a/b")]
    slashes[1]["haystack_session_ids"][1] = "c"
    found = [one["_id"] for one in lines(desk.set(slashes, "--ids", "original") / "corpus.jsonl")]
    assert {"a/b%2Fc", "a%2Fb/c"} < set(found)
    turns = desk.set([record("c")], "--ids", "original", "--granularity", "turn")
    assert lines(turns / "corpus.jsonl")[-1]["_id"] == "c/answer_1_001"  # as the authors write it


def test_the_order_of_a_history_does_not_tell_the_gold(desk: Desk) -> None:
    """Whatever order the file has, the same documents; sessions of one moment are not in the file's order."""
    one = desk.set([record()])
    before = contents(one)
    turned: dict[str, Any] = {key: record()[key][::-1] for key in record() if key.startswith("haystack")}
    desk.set([record(**turned)])
    assert {n: d for n, d in contents(one).items() if n != "conversion.json"} == {
        n: d for n, d in before.items() if n != "conversion.json"
    }
    same = record()["haystack_dates"][:1] * 3
    first: Counter[str] = Counter()
    for number in range(30):
        name = f"answer_{number}"
        changes: dict[str, Any] = {
            "answer_session_ids": [name],
            "haystack_session_ids": [name, "x", "y"],
            "haystack_dates": same,
        }
        first[judged(desk.set([record(**changes)]))[0][1]] += 1
    assert len(first) == 3 and max(first.values()) < 22


# -------------------------------------------------------------------------------------------------- oddities


def packed(value: dict[str, Any]) -> dict[str, Any]:
    sessions = [[json.dumps(one) for one in session] for session in value["haystack_sessions"]]
    return value | {
        "haystack_sessions": [sessions[0], json.dumps(value["haystack_sessions"][1]), sessions[2]]
    }


BASE = record()
TWICE: dict[str, Any] = {
    "haystack_dates": [*BASE["haystack_dates"], "2024/01/01 (Mon) 00:00"],
    "haystack_session_ids": [*BASE["haystack_session_ids"], "ultrachat_1"],
    "haystack_sessions": [*BASE["haystack_sessions"], BASE["haystack_sessions"][1]],
}
NULLS = [[one | {"has_answer": one.get("has_answer")} for one in s] for s in BASE["haystack_sessions"]]

# A record with an oddity, and the counts in which its conversion differs from the plain one's.
ODDITIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a whole number as the answer": (record(answer=1300), {"whole_number_answers": 1}),
    "no answer": ({k: v for k, v in BASE.items() if k != "answer"}, {}),
    "a fraction as the answer": (record(answer=1.5), {}),
    "an empty session": (
        record(haystack_sessions=[BASE["haystack_sessions"][0], [], []]),
        {"empty_sessions": 2, "empty_documents": 2, "turns": 2},
    ),
    "blank turns": (
        record(haystack_sessions=[BASE["haystack_sessions"][0], [turn("user", " \n")], [turn("user", "")]]),
        {"empty_sessions": 2, "empty_documents": 2, "turns": 4, "blank_turns": 2},
    ),
    "a session twice": (record(**TWICE), {"duplicates_merged": 1}),
    "gold named twice": (record(answer_session_ids=["answer_1", "answer_1"]), {}),
    "evidence after the question": (record(question_date="2024/02/20 (Tue) 12:14"), {"late_evidence": 1}),
    "evidence a minute before the question": (record(question_date="2024/02/20 (Tue) 12:16"), {}),
    "another session after the question": (
        record(haystack_dates=["2024/02/20 (Tue) 12:15", "2025/02/10 (Mon) 09:00", "2024/02/14 (Wed) 18:30"]),
        {},
    ),
    "null marks": (record(haystack_sessions=NULLS), {}),
    "turns and sessions as texts": (packed(BASE), {}),
    "half a surrogate pair": (record(question="Which \ud83d city\udc00?"), {"surrogates_replaced": 2}),
    "a type of its own": (record(question_type="ü"), {"types": {"ü": 1}}),
    "a type of two lines": (record(question_type="a\n\u202eb"), {"types": {"a\n\u202eb": 1}}),
    "other keys": (record(note={"deep": [1]}), {}),
}


@pytest.mark.parametrize("case", ODDITIES)
def test_an_oddity_has_a_defined_outcome_and_is_counted(desk: Desk, case: str) -> None:
    value, differs = ODDITIES[case]
    plain = conversion(desk.set([BASE]))["counts"]
    assert conversion(desk.set([value]))["counts"] == plain | differs
    documents = [one["text"] for one in lines(desk.root / "set" / "corpus.jsonl")]
    assert sorted(documents)[-1] == "I booked Lisbon." and len(documents) == 3


def test_a_session_twice_has_its_first_date(desk: Desk) -> None:
    """LongMemEval #54: the same session under two dates is one document, not an overwrite nor two."""
    first = lines(desk.set([record(**TWICE)]) / "corpus.jsonl")[0]
    assert (first["text"], first["metadata"]["date"]) == ("How wet is dough? Thanks.", "2024-01-01T00:00")


def test_half_a_surrogate_is_written_as_the_replacement_character(desk: Desk) -> None:
    folder = desk.set([record(question="Which 😀 \ud83d?")])
    assert lines(folder / "queries.jsonl")[0]["text"] == "Which 😀 \ufffd?"


def test_abstention_is_told_by_the_id_alone(desk: Desk) -> None:
    """memorybench #82: not by the type, and not by empty gold, which such questions have not."""
    twisted = record("b", question_type="abstention")
    folder = desk.set(
        [record("a_abs"), twisted, record("gpt4_70e84552_abs_1"), record("c", answer_session_ids=[])]
    )
    flags = [
        (one["metadata"].get("abstention", False), one["metadata"].get("unanswerable", False))
        for one in lines(folder / "queries.jsonl")
    ]
    assert flags == [(True, True), (False, False), (True, True), (False, True)]
    assert judged(folder) == judged(folder, "authors") == [("q0002", "q0002/003")]
    # LongMemEval #7: a question without gold is not asked, instead of counting 1.
    counts = conversion(folder)["counts"]
    assert (counts["abstention"], counts["without_evidence"]) == (2, 1)


def test_a_file_without_marks_has_no_split_by_the_authors_rule_and_says_so(desk: Desk) -> None:
    bare = [
        [{k: v for k, v in one.items() if k != "has_answer"} for one in s] for s in BASE["haystack_sessions"]
    ]
    folder = desk.set([record(haystack_sessions=bare)])
    assert sorted(path.name for path in (folder / "qrels").iterdir()) == ["test.tsv"]
    found = conversion(folder)
    assert found["denominators"] == {"answers": 1, "authors": None}
    assert any("does not mark which turns are evidence" in said for said in found["statements"])


def test_the_oracle_taken_for_s_is_warned_of(desk: Desk) -> None:
    """LongMemEval #32: by its content, whatever it is called."""
    desk.write(small(variant="oracle"), "longmemeval_s.json")
    done = desk.convert("longmemeval_s.json", "-o", "set")
    assert done.code == 0 and "WARNING: this is the oracle file, whatever it is called" in done.err
    assert conversion(desk.root / "set")["origin"]["variant"] == "oracle"
    assert any(said.startswith("the oracle file") for said in conversion(desk.root / "set")["statements"])
    assert "WARNING" in desk.convert("identify", "longmemeval_s.json").err
    desk.write(small(), "longmemeval_oracle.json")
    assert "WARNING" not in desk.convert("longmemeval_oracle.json", "-o", "other").err


def test_user_text_says_how_much_cannot_be_found(desk: Desk) -> None:
    """MemPalace #242, LongMemEval #10."""
    value = [record("a"), record("b", haystack_sessions=[marked(False, True), [], []])]
    said = "only turns of the user are searched, and 1 of 2 answerable questions have no evidence in them"
    assert said in conversion(desk.set(value))["statements"]
    assert said not in conversion(desk.set(value, "--text", "all"))["statements"]


# -------------------------------------------------------------------------------------------------- a part of it


def test_the_first_rows_of_a_file_are_said_to_be_a_part(desk: Desk) -> None:
    value = [record("a"), record("b", question_type="multi-session"), record("c")]
    statements = conversion(desk.set(value))["statements"]
    assert "3 of 500 questions: multi-session 1, single-session-user 2" in statements
    statements = conversion(desk.set(value, "--types", "multi-session"))["statements"]
    assert "1 of 3 questions: multi-session 1" in statements


def test_types_and_samples_keep_the_ids_of_the_whole(desk: Desk) -> None:
    value = [record(f"{n:03}{'_abs' * (n % 10 == 0)}", question_type="xyz"[n % 3]) for n in range(1, 101)]
    whole = {one["_id"]: one for one in lines(desk.set(value) / "queries.jsonl")}
    folder = desk.set(value, "--sample", 20, "--seed", 7)
    part = {one["_id"]: one for one in lines(folder / "queries.jsonl")}
    assert len(part) == 20 and part.items() <= whole.items()
    assert sum(one["metadata"].get("abstention", False) for one in part.values()) == 2  # 10 of 100
    assert all(5 <= count <= 8 for count in conversion(folder)["counts"]["types"].values())
    assert any(
        said.startswith("20 of 100 questions, a stratified sample of seed 7:")
        for said in conversion(folder)["statements"]
    )
    typed = desk.set(value, "--types", "x,y", "--sample", 20, "--seed", 7)
    assert set(conversion(typed)["counts"]["types"]) == {"x", "y"}


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), min_size=1, max_size=120),
    st.integers(0, 5),
    st.data(),
)
def test_a_sample_has_each_share_to_less_than_one(questions: Any, seed: int, data: st.DataObject) -> None:
    """AgentEval #156: 50 of 500 without any of 30 questions of abstention."""
    named = [(f"{place}{'_abs' * abstains}", kind) for place, (kind, abstains) in enumerate(questions)]
    size = data.draw(st.integers(1, len(named)))
    chosen = stratified(named, size, seed)
    assert len(chosen) == size and chosen <= {name for name, _ in named}
    assert chosen == stratified(named[::-1], size, seed)
    abstaining = [name for name, _ in named if name.endswith("_abs")]
    assert abs(len(chosen & set(abstaining)) - size * len(abstaining) / len(named)) < 1


# -------------------------------------------------------------------------------------------------- the same bytes


@pytest.mark.parametrize(
    "options", [[], ["--sample", 10, "--seed", 3], ["--granularity", "turn", "--text", "all"]]
)
def test_bytes_are_the_same_on_repeat_and_from_path_stdin_gzip_and_import(
    desk: Desk, options: list[object]
) -> None:
    data = small()
    desk.write(data)
    desk.write(gzip.compress(data), "lme.json.gz")
    found = []
    for number, (file, given_) in enumerate(
        [("lme.json", b""), ("lme.json", b""), ("lme.json.gz", b""), ("-", data), ("-", gzip.compress(data))]
    ):
        done = desk.convert(file, "-o", f"set{number}", *options, data=given_)
        assert done.code == 0, done.err
        names = (desk.root / f"set{number}.ids.jsonl").read_bytes()
        found.append((contents(desk.root / f"set{number}"), names))
    assert desk.core("import", "longmemeval", "lme.json", "-o", "imported", *options).code == 0
    found.append((contents(desk.root / "imported"), (desk.root / "imported.ids.jsonl").read_bytes()))
    assert len(found[0][0]) == 6
    assert all(one == found[0] for one in found[1:])
    assert desk.core("validate", "set0").code == 0


def test_bytes_do_not_depend_on_hash_seeds_or_places(desk: Desk) -> None:
    desk.write(small(questions=20))
    for seed in ("1", "2"):
        subprocess.run(
            [
                sys.executable,
                "-c",
                "from longmemeval_convert.cli import main; main()",
                "lme.json",
                "-o",
                f"in{seed}/set",
            ],
            cwd=desk.root,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        )
    assert contents(desk.root / "in1") == contents(desk.root / "in2") != {}


def test_conversion_json_is_of_its_schema(desk: Desk) -> None:
    schema = json.loads((ROOT / "schemas" / "conversion-v1.schema.json").read_bytes())
    Draft202012Validator(schema).validate(conversion(desk.set([record()], "--types", "single-session-user")))


def test_a_file_of_twice_the_size_takes_no_more_memory(desk: Desk) -> None:
    """M9: the largest record bounds it, in the usual layout and in one line."""
    peaks = []
    for questions in (30, 60):
        value = json.loads("".join(Generator("s", 1, questions).chunks()))
        for place, indent in enumerate((4, None)):
            desk.write(value, f"{place}.json", indent=indent)
            peaks.append(
                peak(
                    "longmemeval_convert.cli", f"{place}.json", "-o", f"{questions}-{place}", where=desk.root
                )
            )
    assert peaks[2] < 1.1 * peaks[0] and peaks[3] < 1.1 * peaks[1], peaks
    assert max(peaks) < 64_000


# -------------------------------------------------------------------------------------------------- the folder


def test_what_is_there_is_not_replaced_without_force(desk: Desk) -> None:
    desk.set([record()])
    before = contents(desk.root / "set")
    done = desk.convert("lme.json", "-o", "set")
    assert done.code == 2 and "set: is there already" in done.err and "--force" in done.err
    # A file that is not sound costs nothing.
    desk.write(b"[", "bad.json")
    assert desk.convert("bad.json", "-o", "set", "--force").code == 2
    assert contents(desk.root / "set") == before
    assert desk.convert("lme.json", "-o", "set", "--force", "--ids", "original").code == 0
    assert contents(desk.root / "set") != before
    assert desk.left() == ["bad.json", "lme.json", "set"], "names of a set that is gone are gone"
    (desk.root / "mine").mkdir()
    (desk.root / "mine" / "letter.txt").write_text("dear")
    done = desk.convert("lme.json", "-o", "mine", "--force")
    assert done.code == 2 and "it is not a converted set" in done.err
    assert (desk.root / "mine" / "letter.txt").read_text() == "dear"


def test_a_move_that_fails_puts_back_what_was_there(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.set([record()])
    before = contents(desk.root)
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if Path(target).name == "set.ids.jsonl" and self.name == "new-set.ids.jsonl":
            raise PermissionError(13, "Permission denied", str(self))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    done = desk.convert("lme.json", "-o", "set", "--force", "--text", "all")
    assert done.code == 3 and "cannot be written" in done.err
    assert contents(desk.root) == before


#: Runs a script of ours, and kills it at its N-th renaming of a path.
KILLED = """
import os, signal, sys
from pathlib import Path
rename, left = Path.rename, [int(sys.argv.pop(1))]
def counted(self, target):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(self, target)
Path.rename = counted
module = sys.argv.pop(1)
if module == "eval_core":
    from eval_core.cli import main
else:
    from longmemeval_convert.cli import main
main()
"""


@pytest.mark.parametrize("number", [1, 2, 3, 4])
@pytest.mark.parametrize("module", ["eval_core", "longmemeval_convert"])
def test_a_writer_that_is_killed_between_two_moves_is_made_good_by_the_next(
    desk: Desk, module: str, number: int
) -> None:
    """A set lies nowhere but in a hidden folder after a kill between two moves: whoever comes next finishes them."""
    desk.set([record()])
    desk.write(b"query,expected\nwhat?,d1\n", "asked.csv")
    desk.write(b'{"_id": "d1", "text": "this"}\n', "docs.jsonl")
    if module == "eval_core":
        words = ["import", "records", "asked.csv", "--corpus", "docs.jsonl", "-o", "made", "--force"]
        place = desk.root / "made"
        assert desk.core(*words).code == 0
    else:
        words = ["lme.json", "-o", "set", "--force", "--ids", "original", "--text", "all"]
        place = desk.root / "set"
    before = contents(desk.root)
    child = subprocess.run(
        [sys.executable, "-c", KILLED, str(number), module, *words], cwd=desk.root, capture_output=True
    )
    killed = child.returncode == -signal.SIGKILL
    assert killed == (number <= (2 if module == "eval_core" else 3)), child.stderr
    # Without --force: refused, for the set is there, and nothing else is.
    words.remove("--force")
    done = desk.core(*words) if module == "eval_core" else desk.convert(*words)
    assert done.code == 2 and place.is_dir()
    after = contents(desk.root)
    assert [name for name in after if name.split("/")[0].startswith(".")] == []
    if module == "eval_core":
        assert after == before
    else:
        assert after.keys() == before.keys() - {"set.ids.jsonl"}
        assert after["set/corpus.jsonl"] != before["set/corpus.jsonl"]
        assert all(after[name] == before[name] for name in after if not name.startswith("set/"))


Usage = namedtuple("Usage", "total used free")


@pytest.mark.parametrize("compressed", [False, True])
def test_room_is_checked_first(desk: Desk, monkeypatch: pytest.MonkeyPatch, compressed: bool) -> None:
    data = small()
    desk.write(gzip.compress(data) if compressed else data)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(0, 0, len(data) // 3 + 10))
    assert desk.convert("lme.json", "-o", "set").code == 0  # of the user's turns alone
    done = desk.convert("lme.json", "-o", "all", "--text", "all")
    assert done.code == 3 and "MB free, and the set takes about" in done.err
    assert desk.left() == ["lme.json", "set", "set.ids.jsonl"]


def test_a_disk_that_fills_up_leaves_nothing(desk: Desk) -> None:
    pytest.importorskip("resource")
    desk.write(small())
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from longmemeval_convert.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "lme.json", "-o", "set"], cwd=desk.root, capture_output=True, text=True
    )
    assert done.returncode == 3 and "cannot be written" in done.stderr and "Traceback" not in done.stderr
    assert desk.left() == ["lme.json"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_conversion_leaves_nothing(desk: Desk, number: signal.Signals) -> None:
    read, write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", "from longmemeval_convert.cli import main; main()", "-", "-o", "set"],
        cwd=desk.root,
        stdin=read,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(read)
    with os.fdopen(write, "wb") as stream:
        stream.write(small(questions=5)[:-1])
        stream.flush()
        began = time.monotonic()
        while not any(name.startswith(".set.") for name in desk.left()):
            assert time.monotonic() - began < 60
            time.sleep(0.02)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (3, "longmemeval-convert: interrupted\n")
    assert desk.left() == []


def test_progress_has_a_rate_and_an_estimate_on_a_terminal(desk: Desk) -> None:
    pty = pytest.importorskip("pty")
    desk.write(small())
    code = (
        "import time; from longmemeval_convert import stream; stream.CHUNK = 200_000\n"
        "read = stream.Source.read\n"
        "stream.Source.read = lambda self, size: (time.sleep(0.25), read(self, size))[1]\n"
        "from longmemeval_convert.cli import main; main()"
    )
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code, "lme.json", "-o", "set"],
        cwd=desk.root,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait(60) == 0
    assert b"MB/s" in shown and b"s left" in shown and b"%" in shown
