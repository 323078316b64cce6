"""What is counted while a file is read: of the whole file, and of the questions that are taken."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from statistics import median

from eval_core.console import safe
from longmemeval_convert.documents import GOLDS, Converted
from longmemeval_convert.models import Choices, Conversion, Counts, Denominators, Origin, Variant
from longmemeval_convert.record import ABSTENTION, Question
from longmemeval_convert.releases import QUESTIONS, release
from longmemeval_convert.stream import Place

#: Sessions a history from which a file is of the size of M, or of S: these have 475 and 48.
_M, _S = 200, 20


@dataclass
class Whole:
    """Counts of all records of a file."""

    ids: dict[str, int] = field(default_factory=dict)
    types: Counter[str] = field(default_factory=Counter)
    sessions: int = 0
    beside_evidence: int = 0

    def add(self, question: Question, place: Place) -> None:
        """Count a record.

        Raises:
            Misuse: its question was there before.
        """
        if (first := self.ids.setdefault(question.id, place.number)) != place.number:
            raise place.fault(
                f"is the question of record {first} again", key="question_id", value=question.id
            )
        self.types[question.type] += 1
        self.sessions += len(question.sessions)
        self.beside_evidence += len(question.sessions) > len(question.gold)

    @property
    def variant(self) -> Variant:
        """By content: the oracle's histories hold evidence alone, whatever the file is called."""
        if self.beside_evidence * 20 <= len(self.ids):
            return "oracle"
        mean = self.sessions / len(self.ids)
        return "m" if mean >= _M else "s" if mean >= _S else "other"

    def origin(self, size: int, sha256: str) -> Origin:
        """The file in figures."""
        return Origin(
            bytes=size,
            sha256=sha256,
            release=release(sha256, self.ids),
            variant=self.variant,
            questions=len(self.ids),
            types=dict(sorted(self.types.items())),
            abstention=sum(ABSTENTION in name for name in self.ids),
        )


@dataclass
class Taken:
    """Counts of the questions that become a set."""

    types: Counter[str] = field(default_factory=Counter)
    numbers: Counter[str] = field(default_factory=Counter)
    candidates: array[int] = field(default_factory=lambda: array("I"))
    scored: Counter[str] = field(default_factory=Counter)
    marked: bool = False

    def add(self, question: Question, made: Converted) -> None:
        """Count a question and what became of it."""
        turns = [turn for session in question.sessions for turn in session.turns]
        evidence = question.evidence
        answerable = not question.abstention
        self.types[question.type] += 1
        self.candidates.append(len(made.documents))
        for kind in GOLDS:
            self.scored[kind] += bool(made.judged[kind])
        self.marked = self.marked or any(session.marked() for session in evidence)
        self.numbers.update(
            {
                "abstention": question.abstention,
                "without_evidence": answerable and not made.judged["answers"],
                "without_user_evidence": answerable and not any(s.marked("user") for s in evidence),
                "late_evidence": answerable and any(s.date.iso > question.asked.iso for s in evidence),
                "whole_number_answers": question.whole_number,
                "sessions": len(question.sessions),
                "turns": len(turns),
                "documents": len(made.documents),
                "empty_sessions": sum(
                    all(turn.blank for turn in session.turns) for session in question.sessions
                ),
                "empty_documents": made.empty_documents,
                "blank_turns": sum(turn.blank for turn in turns),
                "duplicates_merged": question.merged,
                "unjudged": made.unjudged,
                "unmarked": sum(any(turn.evidence is None for turn in s.turns) for s in evidence),
                "surrogates_replaced": made.replaced,
            }
        )

    @property
    def counts(self) -> Counts:
        """The counts, as they are written."""
        names = [name for name in Counts.model_fields if name not in ("questions", "types", "candidates")]
        return Counts(
            questions=self.types.total(),
            types=dict(sorted(self.types.items())),
            candidates=float(median(self.candidates)),
            **{name: int(self.numbers[name]) for name in names},
        )


def describe(choices: Choices, origin: Origin, taken: Taken) -> Conversion:
    """The conversion in figures and words."""
    counts = taken.counts
    authors = taken.scored["authors"] if taken.marked else None
    return Conversion(
        schema_="conversion-v1",
        name=_name(choices, origin),
        choices=choices,
        origin=origin,
        counts=counts,
        denominators=Denominators(answers=taken.scored["answers"], authors=authors),
        statements=tuple(_statements(choices, origin, counts, taken)),
    )


def _name(choices: Choices, origin: Origin) -> str:
    parts = ["longmemeval", origin.variant, choices.granularity, choices.text]
    parts += ["authors"] if choices.gold == "authors" else []
    parts += [f"{choices.sample}-of-{origin.questions}"] if choices.sample else []
    return "-".join(parts)


def _statements(choices: Choices, origin: Origin, counts: Counts, taken: Taken) -> list[str]:
    said = [f"{choices.granularity} retrieval, not a LongMemEval score"]
    if origin.variant == "oracle":
        said.append("the oracle file: histories hold the evidence alone, so hardly anything can be missed")
    if counts.questions < max(origin.questions, QUESTIONS):
        of = origin.questions if counts.questions < origin.questions else QUESTIONS
        types = ", ".join(f"{safe(kind)} {number}" for kind, number in counts.types.items())
        how = f", a stratified sample of seed {choices.seed}" if choices.sample else ""
        said.append(f"{counts.questions} of {of} questions{how}: {types}")
    if origin.release in ("edited", "unknown"):
        said.append("not a file as LongMemEval published it")
    if not taken.marked:
        said.append("the file does not mark which turns are evidence: there is no split by the authors' rule")
    elif choices.text == "user" and counts.without_user_evidence:
        said.append(
            f"only turns of the user are searched, and {counts.without_user_evidence} of "
            f"{counts.questions - counts.abstention} answerable questions have no evidence in them"
        )
    if counts.without_evidence:
        said.append(
            f"{counts.without_evidence} answerable questions have no judged document and are not asked"
        )
    if choices.ids == "original":
        said.append("original ids tell which documents are gold to a system that reads ids")
    return said
