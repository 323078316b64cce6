"""A document that is a copy of the queries: a fault of the set, told by whatever reads it."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from core_support import Space, write_set

from eval_core.errors import Faults
from eval_core.sets.dataset import load

#: Nine questions of five words, two of three, and the documents that answer them.
TEXTS = {f"q{n}": f"how is thing {n} mended" for n in range(9)} | {"q9": "who did it", "q10": "why is that"}
ANSWERS = {f"d{n}": f"thing {n} is mended by turning it {n} times" for n in range(11)}
RELEVANT = [(f"q{n}", f"d{n}", 1) for n in range(11)]


def golden(*names: str, **options: Any) -> str:
    """The lines that hold these queries, as another tool's golden file has them."""
    return "\n".join(json.dumps({"id": name, "q": TEXTS[name].title() + "?"}, **options) for name in names)


def told(folder: Path) -> list[str]:
    """The faults of a set, relative to it; none where it is sound."""
    try:
        load(folder)
    except Faults as error:
        return [str(fault).replace(f"{folder}/", "") for fault in error.faults]
    return []


SAID = (
    "corpus.jsonl:12: document 'gold.jsonl' holds {held} of {queries} queries of 4 words or more word for word and is "
    "relevant to none of them: it is a copy of the queries; leave it out of the corpus, or let the queries exclude it"
)


def with_document(text: str, *more: tuple[str, str, int], **metadata: Any) -> dict[str, Any]:
    """The set with one more document, further judgements, and metadata of all queries."""
    return {
        "documents": {**ANSWERS, "gold.jsonl": text},
        "queries": {name: {"text": text, "metadata": metadata} for name, text in TEXTS.items()},
        "judgements": [*RELEVANT, *more],
    }


NINE = tuple(f"q{n}" for n in range(9))
RELATED = tuple((name, "gold.jsonl", 1) for name in NINE)

CASES: Mapping[str, tuple[dict[str, Any], int | None]] = {
    "all": (with_document(golden(*TEXTS)), 9),
    # More than half of nine, and at least five: five; short queries are not counted on either side.
    "five": (with_document(golden(*NINE[:5])), 5),
    "four": (with_document(golden(*NINE[:4], "q9", "q10")), None),
    "judged as of no use": (with_document(golden(*NINE), *((name, "gold.jsonl", 0) for name in NINE)), 9),
    # A page of questions and answers is what its questions ask for: each is a leak, and no copy.
    "their answer": (with_document(golden(*NINE), *RELATED), None),
    "the answer of half": (with_document(golden(*NINE), *RELATED[:5]), None),
    "excluded": (with_document(golden(*NINE), exclude=["gold.jsonl"]), None),
    "answers alone": (with_document(" ".join(ANSWERS.values())), None),
    "their words in another order": (
        with_document(" ".join(" ".join(TEXTS[n].split()[::-1]) for n in NINE)),
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_round2_n7_a_document_that_holds_most_queries_is_a_fault(case: str, tmp_path: Path) -> None:
    """N7: named with its count; what answers the queries or is excluded by them is none."""
    parts, held = CASES[case]
    folder = write_set(tmp_path / "set", definition='name = "n"\n', **parts)
    assert told(folder) == ([] if held is None else [SAID.format(held=held, queries=9)])


@pytest.mark.parametrize("word", ["Äpfel", "яблоко", "林檎"])
@pytest.mark.parametrize("ascii_", [True, False])
def test_round2_n7_a_copy_in_escapes_is_a_copy(word: str, ascii_: bool, tmp_path: Path) -> None:
    """N7: JSON may write what is not ASCII as escapes."""
    queries = {f"q{n}": f"{word} {n} ist {word} gut" for n in range(6)}
    gold = json.dumps(list(queries.values()), ensure_ascii=ascii_)
    documents = {"d": "nichts", "gold.json": gold}
    folder = write_set(
        tmp_path / "set", documents, queries, [(name, "d", 1) for name in queries], 'name = "n"\n'
    )
    assert "holds 6 of 6 queries" in told(folder)[0]


@pytest.mark.parametrize(
    "between", [r"\n", r"\t", r"\r\n", r"\u0020", "&nbsp;", "&#32;", r"\"\/", "\\\\", " "]
)
def test_round2_n7_a_copy_with_escapes_or_entities_between_words_is_a_copy(
    between: str, tmp_path: Path
) -> None:
    """N7: a wrapped text in JSON glues the `n` of `\\n` to the next word; HTML writes a space as an entity."""
    gold = "; ".join(TEXTS[name].replace(" ", between) for name in NINE)
    folder = write_set(tmp_path / "set", definition='name = "n"\n', **with_document(gold))
    assert told(folder) == [SAID.format(held=9, queries=9)]


def test_round2_n7_a_path_with_backslashes_is_found_as_it_is_written(tmp_path: Path) -> None:
    """N7: undoing escapes would take the first letter of each of its folders."""
    queries = {f"q{n}": rf"open the file C:\new\table{n}" for n in range(6)}
    documents = {"d": "nothing", "gold.txt": "\n".join(queries.values())}
    judged = [(name, "d", 1) for name in queries]
    folder = write_set(tmp_path / "set", documents, queries, judged, 'name = "n"\n')
    assert "holds 6 of 6 queries" in told(folder)[0]


def test_round2_n7_one_sentence_that_many_queries_ask_is_no_copy(tmp_path: Path) -> None:
    """N7: texts are counted once: twenty people may ask the same."""
    queries = {f"q{n}": "what do I like best" for n in range(20)}
    documents = {"d": "tea", "note": "They asked: what do I like best?"}
    folder = write_set(
        tmp_path / "set", documents, queries, [(name, "d", 1) for name in queries], 'name = "n"\n'
    )
    assert told(folder) == []


@pytest.mark.parametrize(("scopes", "found"), [(["a", "b"], True), (["b"], False), ([], False)])
def test_round2_n7_only_what_the_queries_can_find_is_a_copy(
    scopes: list[str], found: bool, tmp_path: Path
) -> None:
    """N7: five of the queries ask in scope a, four in b; without a scope of its own it is not found."""
    documents: dict[str, Any] = {
        name: {"text": text, "metadata": {"scopes": ["ab"[n % 2]]}}
        for n, (name, text) in enumerate(ANSWERS.items())
    }
    documents["gold.jsonl"] = {"text": golden(*NINE), "metadata": {"scopes": scopes}}
    queries = {
        name: {"text": text, "metadata": {"scope": "ab"[n % 2]}}
        for n, (name, text) in enumerate(TEXTS.items())
    }
    folder = write_set(tmp_path / "set", documents, queries, RELEVANT, 'name = "n"\n')
    assert told(folder) == ([SAID.format(held=9, queries=9)] if found else [])


def test_round2_n7_measure_validate_and_inspect_refuse_the_set(space: Space) -> None:
    """N7: a fault of a set as others are; without the copy it is measured."""
    chance = random.Random(3)
    words = [f"w{n}" for n in range(40)]
    answers = {f"d{n}": " ".join(chance.choices(words, k=12)) for n in range(30)}
    queries = {f"q{n}": " ".join(chance.sample(answers[f"d{n}"].split(), 5)) for n in range(30)}
    judgements = [(f"q{n}", f"d{n}", 1) for n in range(30)]
    gold = "\n".join(f'{{"query": "{text}"}}' for text in queries.values())
    space.set({**answers, "eval/gold.jsonl": gold}, queries, judgements, 'name = "n"\n')
    space.arm(backend="bm25")
    for verb in (("measure",), ("validate", "set"), ("inspect", "set")):
        done = space.core(*verb)
        assert done.code == 2
        assert "document 'eval/gold.jsonl' holds 30 of 30 queries" in done.out + done.err
    space.set(answers, queries, judgements, 'name = "n"\n')
    assert space.core("measure").code == 0
