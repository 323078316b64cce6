"""Questions held against the set that they are to join: documents, ids, wording, kind and scope."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval_core.authoring.questions.file import Question, Tell
from eval_core.authoring.similarity import jaccard, same
from eval_core.backend import Document
from eval_core.errors import did_you_mean
from eval_core.sets.corpus import read_json_lines
from eval_core.sets.dataset import Dataset, Query
from eval_core.sets.nearest import Nearest
from eval_core.sets.phrases import LEAK_WORDS
from eval_core.sets.words import words

#: From this share of common words on, two questions are nearly the same.
SIMILAR = 0.9


@dataclass(frozen=True, slots=True)
class Present:
    """What a set asks already: all texts of `queries.jsonl` by id, and every id that the set uses, in any split."""

    texts: Mapping[str, str]
    taken: frozenset[str]

    @classmethod
    def of(cls, folder: Path) -> Present:
        """Read it from a folder that was found sound, and may have no query yet."""
        queries = folder / "queries.jsonl"
        texts = {
            value["_id"]: value["text"]
            for _, value in (read_json_lines(queries, lambda line, message: None) if queries.exists() else ())
            if isinstance(value.get("_id"), str) and isinstance(value.get("text"), str)
        }
        judged = {
            line.split("\t", 1)[0]
            for path in (folder / "qrels").glob("*.tsv")
            for line in path.read_text("utf-8", "replace").split("\n")[1:]
            if line.strip()
        }
        return cls(texts, frozenset({*texts, *judged}))


def review(
    dataset: Dataset,
    present: Present,
    questions: Sequence[Question],
    *,
    filters: Collection[str],
    allow_similar: bool,
    fault: Tell,
) -> None:
    """Tell everything for which the questions cannot join the set.

    Args:
        dataset: loaded with the metadata of `filters`.
        present: what it asks already.
        filters: metadata that arms filter from; a document without the question's value would be hidden.
        allow_similar: whether questions with nearly the same words may stand side by side.
        fault: told the line of the question and what is wrong.
    """
    scopes = {scope for has in dataset.attributes.values() for scope in has.get("scopes", ())}
    nearest = Nearest(lambda: dataset.ids)
    ids: dict[str, int] = {}
    for question in questions:
        for name in dict.fromkeys([*question.relevant, *question.exclude]):
            if name not in dataset.ids:
                fault(question.line, f"document {name!r} is not in the corpus{nearest.hint(name)}")
        if question.id in present.taken:
            fault(question.line, f"id {question.id!r} is taken in the set; leave it out and one is given")
        elif question.id and ids.setdefault(question.id, question.line) != question.line:
            fault(question.line, f"id {question.id!r} again (first at line {ids[question.id]})")
        _visible(dataset, question, scopes, filters, fault)
    _distinct(present, questions, allow_similar, fault)


def _visible(
    dataset: Dataset, question: Question, scopes: set[str], filters: Collection[str], fault: Tell
) -> None:
    """Tell of relevant documents that the question's own scope, time or kind would hide."""
    query = Query(question.id, question.text, question.metadata)
    scope = question.metadata.get("scope")
    known = scope is None or scope in scopes
    if scope is not None and not known:
        fault(question.line, f"scope {scope!r}: no document has it{did_you_mean(scope, scopes)}")
    for name, grade in question.relevant.items():
        if grade == 0 or name not in dataset.ids:
            continue
        if known and not dataset.visible(name, query, None):
            fault(question.line, f"judges {name!r} relevant, which is outside its scope or time")
            continue
        for key in sorted(filters):
            value = question.metadata.get(key)
            has = dataset.attributes.get(name, {})
            if isinstance(value, str) and not Document(name, "", "", has).matches({key: value}):
                fault(
                    question.line,
                    f"{key} {value!r}: {name!r} is judged relevant and has {key} {has.get(key)!r}; "
                    "a filter would hide it",
                )


def _distinct(present: Present, questions: Sequence[Question], allow_similar: bool, fault: Tell) -> None:
    """Tell of questions that are asked already, in the set or above in the file."""
    first = {same(text): f"{name!r} of the set" for name, text in present.texts.items()}
    asked = [(frozenset(words(text)), f"{name!r} of the set", text) for name, text in present.texts.items()]
    for question in questions:
        if not question.text:
            continue
        here = f"line {question.line}"
        before = first.setdefault(same(question.text), here)
        own = frozenset(words(question.text))
        if before != here:
            fault(question.line, f"text {question.text!r} is asked already, by {before}")
        elif not allow_similar and (near := _nearest(own, asked)):
            share, other, text = near
            fault(
                question.line,
                f"text {question.text!r} has {share:.0%} of its words in common with {other}, {text!r}; "
                "if both are meant, say --allow-similar",
            )
        asked.append((own, here, question.text))


def _nearest(
    own: frozenset[str], asked: Iterable[tuple[frozenset[str], str, str]]
) -> tuple[float, str, str] | None:
    """The question with most words in common, where that is nearly all."""
    best: tuple[float, str, str] | None = None
    for theirs, name, text in asked:
        # Sizes alone bound what can be in common.
        if min(len(own), len(theirs)) < SIMILAR * max(len(own), len(theirs)):
            continue
        share = jaccard(own, theirs)
        if share >= SIMILAR and (best is None or share > best[0]):
            best = (share, name, text)
    return best


def leaks(dataset: Dataset, questions: Sequence[Question]) -> list[tuple[Question, str]]:
    """Questions of four words or more that stand word for word in a document, with the first such document.

    Documents that a question excludes or cannot find do not count. One pass over the corpus.
    """
    sought = {
        question.line: f" {' '.join(tokens)} "
        for question in questions
        if len(tokens := words(question.text)) >= LEAK_WORDS
    }
    by_line = {question.line: question for question in questions}
    found: dict[int, str] = {}
    for document in dataset.corpus if sought else ():
        held = f" {' '.join(words(document.searchable))} "
        for line, phrase in sought.items():
            if line in found or phrase not in held or document.id in by_line[line].exclude:
                continue
            if dataset.visible(document.id, Query("", "", by_line[line].metadata), None):
                found[line] = document.id
    return [(by_line[line], found[line]) for line in sorted(found)]


_NUMBERED = re.compile(r"(.*?)[0-9][0-9a-f]*")


def next_ids(present: Present, questions: Sequence[Question]) -> list[str]:
    """The id of each question: its own, else one that follows from its words, so that two branches that each add a
    question choose one id for one question and two for two.

    It is the letters that most ids of the set begin with, else `q`, and six or more digits of the words' SHA-256.
    """
    beginnings = Counter(match[1] for name in present.texts if (match := _NUMBERED.fullmatch(name)))
    beginning, shared = max(beginnings.items(), key=lambda item: (item[1], item[0]), default=("q", 0))
    if shared * 2 < len(present.texts):
        beginning = "q"
    taken = {*present.taken, *(question.id for question in questions)}
    found: list[str] = []
    for question in questions:
        digits = hashlib.sha256(question.text.encode("utf-8", "surrogatepass")).hexdigest()
        # A digit first, so that it is told from the letters.
        digits = f"{int(digits[0], 16) % 10}{digits[1:]}"
        sizes = (size for size in range(6, len(digits)) if f"{beginning}{digits[:size]}" not in taken)
        name = question.id or f"{beginning}{digits[: next(sizes, len(digits))]}"
        taken.add(name)
        found.append(name)
    return found
