"""A list of faults says what is wrong once, and how often; machines get all of it."""

from __future__ import annotations

import json

import pytest
from core_support import Space, Told

from eval_core.errors import KINDS, LISTED, Fault, Faults


def test_round2_s15_faults_of_one_kind_are_listed_once_and_counted() -> None:
    """S15: a kind is what is wrong with which key of which file, whatever ids and numbers it names."""
    faults = [
        *(Fault(f"judges 'd{n}', which is not in the corpus", file="q.tsv", line=n) for n in range(1, 101)),
        Fault("has no 'text'", file="queries.jsonl", line=2),
        *(Fault(f"hides 'd{n}' from 'q1': {{'k': 'it\\'s {n}'}}", file="q.tsv", key="k") for n in range(4)),
    ]
    error = Faults(faults)
    assert error.message.splitlines() == [
        "q.tsv:1: judges 'd1', which is not in the corpus",
        "q.tsv:2: judges 'd2', which is not in the corpus",
        "q.tsv:3: judges 'd3', which is not in the corpus",
        "  … and 97 more of this kind",
        "queries.jsonl:2: has no 'text'",
        "q.tsv: k: hides 'd0' from 'q1': {'k': 'it\\'s 0'}",
        "q.tsv: k: hides 'd1' from 'q1': {'k': 'it\\'s 1'}",
        "q.tsv: k: hides 'd2' from 'q1': {'k': 'it\\'s 2'}",
        "  … and 1 more of this kind",
        "105 faults; nothing was done.",
    ]
    assert len(error.faults) == 105


def test_round2_s15_many_kinds_are_capped_too() -> None:
    """S15: a file in which everything is wrong is as long as any other."""
    error = Faults(Fault("is wrong", file="a.toml", key=f"key-{'x' * n}") for n in range(1000))
    lines = error.message.splitlines()
    assert len(lines) == KINDS + 2
    assert lines[-2:] == [f"… and {1000 - KINDS} of other kinds", "1,000 faults; nothing was done."]


@pytest.mark.parametrize("key", ["scope", "time", "exclude"])
def test_round2_s15_a_filter_that_applies_by_itself_is_one_fault(space: Space, key: str) -> None:
    """S15: it was told for every judgement, and never why."""
    space.set({"d1": "one"}, {"q1": "one"}, [("q1", "d1", 1)])
    space.arm(f'filter_from = ["{key}"]')
    done = space.core("measure")
    assert done.code == 2
    assert done.err.splitlines() == [
        f"eval.toml:4: arms.arm.filter_from: {key!r} is no filter: a query's {key} applies by itself, to every "
        "backend; leave it out",
        "1 fault; nothing was done.",
    ]
    assert space.core("validate", "eval.toml").code == 2


def test_round2_s15_a_filter_that_no_document_knows_is_one_fault(space: Space) -> None:
    """S15: one wrong key of eval.toml is one fault, however many queries it concerns."""
    documents = {f"d{n}": f"text {n}" for n in range(100)}
    queries = {f"q{n}": {"text": f"text {n}", "metadata": {"topic": "a"}} for n in range(100)}
    space.set(documents, queries, [(f"q{n}", f"d{n}", 1) for n in range(100)])
    space.register("told", Told({}, ["filter"]))
    space.arm('filter_from = ["topic"]')
    done = space.core("measure")
    assert (done.code, len(done.err.splitlines())) == (2, 2)
    assert "no document has 'topic'" in done.err


def test_round2_s15_json_holds_all_faults(space: Space) -> None:
    """S15: what people are shown is capped, and what machines read is not."""
    space.set({"d0": "x"}, {"q0": "x"}, [("q0", f"e{n}", 1) for n in range(100)])
    space.register("told", Told({}))
    space.arm()
    done = space.core("measure", "--format", "json")
    assert done.code == 2
    assert f"  … and {100 - LISTED} more of this kind" in done.err.splitlines()
    told = json.loads(done.out)
    assert told["schema"] == "faults-v1"
    assert [fault["line"] for fault in told["faults"]] == list(range(2, 102))
    assert told["faults"][99]["what"] == "judges document 'e99', which is not in the corpus"
    assert told["faults"][99]["value"] is None
