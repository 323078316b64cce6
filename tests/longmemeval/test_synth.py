"""The synthetic file is seeded, of the published layout, and has every oddity in the counts of a release."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from lme_support import Desk, conversion

from longmemeval_convert.releases import ABSTENTION, TYPES
from longmemeval_convert.synth import FILLERS, Generator


def text(variant: str, seed: int = 0, questions: int = 500, fillers: tuple[int, int] | None = None) -> str:
    return "".join(Generator(variant, seed, questions, fillers).chunks())


@pytest.fixture(scope="module")
def whole() -> str:
    """500 questions of S with short histories."""
    return text("s", fillers=(6, 7))


def test_it_is_seeded_and_of_the_published_layout(whole: str) -> None:
    assert whole == text("s", fillers=(6, 7)) != text("s", 1, fillers=(6, 7))
    assert json.dumps(json.loads(whole), indent=4) == whole
    keys = [list(json.loads(text(variant, questions=3, fillers=(6, 6)))[0]) for variant in ("s", "oracle")]
    assert [names.index("answer_session_ids") < names.index("haystack_sessions") for names in keys] == [
        True,
        False,
    ]


def test_it_has_the_counts_of_a_release_and_every_oddity(desk: Desk, whole: str) -> None:
    """M9: a synthetic file in the format covers what the data is, which is never bundled."""
    desk.write(whole.encode())
    assert desk.convert("lme.json", "-o", "set").code == 0
    found = conversion(desk.root / "set")
    counts = found["counts"]
    assert found["origin"]["release"] == "unknown"
    assert (
        counts["types"] == dict(sorted(TYPES.items()))
        and counts["abstention"] == sum(ABSTENTION.values()) == 30
    )
    assert found["denominators"] == {"answers": 470, "authors": 419}
    named = (
        "without_user_evidence",
        "late_evidence",
        "whole_number_answers",
        "duplicates_merged",
        "blank_turns",
    )
    assert [counts[name] for name in named] == [51, 41, 32, 13, 12]
    assert (counts["empty_sessions"], counts["surrogates_replaced"]) == (4, 1)
    records: list[dict[str, Any]] = json.loads(whole)
    turns = [one for value in records for session in value["haystack_sessions"] for one in session]
    assert any(isinstance(one, str) for one in turns)
    assert any(isinstance(one, dict) and one.get("has_answer", 0) is None for one in turns)
    ids = [value["question_id"] for value in records]
    assert len(set(ids)) == 500 and sum(a[:-1] == b[:-1] for a, b in pairwise(ids)) >= 5
    abstaining = [value for value in records if "_abs" in value["question_id"]]
    assert all(value["answer_session_ids"] for value in abstaining)
    assert any(
        one.get("has_answer")
        for s in abstaining[0]["haystack_sessions"]
        for one in s
        if isinstance(one, dict)
    )
    sessions = [session for value in records for session in value["haystack_sessions"] if session]
    assert any(one[0]["role"] == "assistant" for one in sessions if isinstance(one[0], dict))
    seen = [name for value in records for name in set(value["haystack_session_ids"])]
    assert len(set(seen)) < len(seen), "sessions come again in other questions"


@pytest.mark.parametrize("variant", FILLERS)
def test_each_variant_is_told_by_its_content(desk: Desk, variant: str) -> None:
    done = desk.convert("synth", "--variant", variant, "--questions", "3", "-o", "lme.json")
    assert done.code == 0, done.err
    assert desk.convert("lme.json", "-o", "set").code == 0
    assert conversion(desk.root / "set")["origin"]["variant"] == variant
    said = desk.convert("synth", "--variant", variant, "--questions", "3", "-o", "lme.json")
    assert said.code == 2 and "lme.json: is there already" in said.err
    assert (
        desk.convert("synth", "--variant", variant, "--questions", "3", "-o", "lme.json", "--force").code == 0
    )
