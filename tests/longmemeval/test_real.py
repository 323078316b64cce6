"""Published records, where they are on this machine: counts and gold are those that can be read off them."""

from __future__ import annotations

import gzip
import hashlib
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lme_support import Desk, conversion, judged, lines, record

from longmemeval_convert import releases
from longmemeval_convert.synth import Generator

#: By file: release, variant, questions, abstention, sessions, turns, gold documents, the authors' n.
FILES: dict[str, tuple[str, int, int, int, int, int, int]] = {
    "longmemeval/lightmem_longmemeval_single.json": ("s", 1, 0, 53, 550, 1, 1),
    "longmemeval/adit_longmemeval_oracle_sample.json": ("oracle", 2, 1, 4, 48, 2, 1),
    "memcastle/longmemeval-synthetic.json": ("other", 3, 1, 8, 16, 3, 2),
}


@pytest.mark.parametrize("name", FILES)
def test_real_records_have_the_counts_of_their_facts(
    shared_data: Callable[[str], Path], desk: Desk, name: str
) -> None:
    """M9: sessions become documents, a scope a question; the answer sessions are the judgements."""
    variant, questions, abstention, sessions, turns, gold, authors = FILES[name]
    data = shared_data(name).read_bytes()
    folder = desk.set(data)
    found = conversion(folder)
    counts = found["counts"]
    assert (found["origin"]["variant"], found["origin"]["bytes"]) == (variant, len(data))
    assert (counts["questions"], counts["abstention"]) == (questions, abstention)
    assert (counts["sessions"], counts["turns"], counts["documents"]) == (sessions, turns, sessions)
    assert len(judged(folder)) == gold and found["denominators"]["authors"] == authors
    assert counts["duplicates_merged"] == counts["empty_sessions"] == 0
    # Through the map back to the file: the documents are its sessions, the gold its answer sessions.
    records = json.loads(data)
    maps = {one["query"]: one for one in lines(desk.root / "set.ids.jsonl")}
    texts = {one["_id"]: one["text"] for one in lines(folder / "corpus.jsonl")}
    for number, value in enumerate(records, 1):
        names = maps[f"q{number:04}"]["documents"]
        assert maps[f"q{number:04}"]["question_id"] == value["question_id"]
        users = {
            given: " ".join(one["content"] for one in session if one["role"] == "user")
            for given, session in zip(value["haystack_session_ids"], value["haystack_sessions"], strict=True)
        }
        assert {given: texts[document] for document, given in names.items()} == users
        wanted = set() if "_abs" in value["question_id"] else set(value["answer_session_ids"])
        assert {names[document] for query, document in judged(folder) if query == f"q{number:04}"} == wanted


def test_real_questions_in_other_bytes_are_an_edited_release(
    shared_data: Callable[[str], Path], desk: Desk
) -> None:
    """All 500 ids of the releases, over records made here; with one less the file is unknown."""
    rows = json.loads(shared_data("longmemeval/rankings_bm25_n500.json").read_bytes())["results"]
    for part, release in ((rows, "edited"), (rows[1:], "unknown")):
        origin = conversion(desk.set([record(row["question_id"]) for row in part]))["origin"]
        assert (origin["release"], origin["abstention"]) == (release, 30)


def test_releases_are_known_by_their_bytes(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """memory-core-eval, doobidoo: not by the name of the file, and whatever it is packed in."""
    data = json.dumps([record()]).encode()
    monkeypatch.setattr(releases, "RELEASES", {hashlib.sha256(data).hexdigest(): "S, cleaned"})
    desk.write(data, "longmemeval_m.json")
    desk.write(gzip.compress(data), "x.gz")
    for file in ("longmemeval_m.json", "x.gz"):
        done = desk.convert("identify", file)
        assert done.code == 0 and done.out.splitlines()[0].split(None, 1) == ["release", "S, cleaned"]
    said = conversion(desk.set([record()]))["statements"]
    assert "not a file as LongMemEval published it" not in said
    assert "not a file as LongMemEval published it" in conversion(desk.set([record("b")]))["statements"]


def test_real_turns_of_evidence_are_judged(shared_data: Callable[[str], Path], desk: Desk) -> None:
    """The record e47becba marks one turn of each side in its gold session, the fifth and the sixth."""
    data = shared_data("longmemeval/lightmem_longmemeval_single.json").read_bytes()
    folder = desk.set(data, "--granularity", "turn", "--text", "all")
    assert [document[-3:] for _, document in judged(folder)] == ["005", "006"]
    assert [document[-3:] for _, document in judged(folder, "authors")] == ["005"]
    assert conversion(folder)["counts"]["documents"] == 550


def test_real_records_are_measured_by_the_printed_arms(
    shared_data: Callable[[str], Path], desk: Desk
) -> None:
    """M9, M10: what convert prints is eval.toml; the arms are of the owner's lane and say what they are not."""
    desk.write(shared_data("longmemeval/lightmem_longmemeval_single.json").read_bytes())
    measured(desk, {"test": 1, "authors": 1})


def test_synthetic_records_are_measured_by_the_printed_arms(desk: Desk) -> None:
    """The same on 50 questions made here, each searched in its own scope."""
    desk.write("".join(Generator("s", 2, 50, (12, 14)).chunks()).encode())
    test, authors = measured(desk, {"test": 47, "authors": 42})
    assert len(test["summary"]["categories"]) == 6
    assert len(authors["summary"]["categories"]) == 5, (
        "none is judged of those whose evidence is the assistant's"
    )
    for report in (test, authors):
        assert sum(row["outcome"] == "unscorable" for row in report["rows"]) == 3
        for row in report["rows"]:
            assert all(name.startswith(f"{row['id']}/") for name in row.get("ids", ()))
        assert report["summary"]["overall"]["metrics"]["hit@10"] > 0.6


def measured(desk: Desk, n: dict[str, int]) -> list[dict[str, Any]]:
    """Convert lme.json, measure the arms that are printed, and return their reports."""
    done = desk.convert("lme.json", "-o", "set")
    assert done.code == 0, done.err
    (desk.root / "eval.toml").write_text(done.out, encoding="utf-8")
    assert desk.core("validate", "eval.toml").code == 0
    arms = tomllib.loads(done.out)["arms"]
    assert {arm["split"]: count for arm, count in zip(arms.values(), n.values(), strict=True)} == n
    assert all((arm["lane"], arm["repetitions"]) == ("owner", 1) for arm in arms.values())
    # A plain measure leaves them alone, and with it every required job.
    assert desk.core("measure", "-q").code == 2
    done = desk.core("measure", "-q", "--lane", "owner")
    assert done.code == 0, done.err
    reports = [json.loads((desk.root / ".eval" / "reports" / f"{name}.json").read_bytes()) for name in arms]
    for report, count in zip(reports, n.values(), strict=True):
        assert report["summary"]["overall"]["n"] == count
        assert {"hit@1", "recall@5", "mrr", "all@10"} <= report["summary"]["overall"]["metrics"].keys()
        assert "session retrieval, not a LongMemEval score" in report["statements"]
    return reports
