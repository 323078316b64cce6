"""Invented runs and judgements: seeded, written a query at a time, in every format that a contender reads."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import NamedTuple

#: How many documents the invented corpus holds.
CORPUS = 1_000_000


class Files(NamedTuple):
    """The files of one input: a TREC run, the same rankings as JSON lines, and TREC qrels."""

    trec: Path
    jsonl: Path
    qrels: Path


def write(folder: Path, queries: int, depth: int, seed: int = 11) -> Files:
    """Write rankings of `depth` documents for `queries` queries, and what is judged of them.

    A query has 5 to 10 relevant documents of grades 1 to 3, about two thirds of them in its ranking, more of them
    near its top, and two documents of grade 0, one of them ranked. Scores fall strictly by 64ths, which single
    precision holds exactly, so that no contender sees a tie.
    """
    chance = random.Random(seed)
    files = Files(folder / "run.trec", folder / "run.jsonl", folder / "qrels.trec")
    with (
        files.trec.open("w", encoding="ascii") as trec,
        files.jsonl.open("w", encoding="ascii") as jsonl,
        files.qrels.open("w", encoding="ascii") as qrels,
    ):
        for number in range(queries):
            query = f"q{number:05}"
            ranking = [f"d{document:06}" for document in chance.sample(range(CORPUS), depth)]
            score = depth * 9 + chance.randrange(1000)
            lines = []
            for rank, document in enumerate(ranking, 1):
                lines.append(f"{query} Q0 {document} {rank} {score / 64} bench\n")
                score -= chance.randrange(1, 9)
            trec.write("".join(lines))
            jsonl.write(json.dumps({"id": query, "ids": ranking}) + "\n")
            for document, grade in _judged(ranking, chance).items():
                qrels.write(f"{query} 0 {document} {grade}\n")
    return files


def _judged(ranking: list[str], chance: random.Random) -> dict[str, int]:
    """Grades of the judged documents of one query. Those that are not ranked have ids of their own."""
    judged: dict[str, int] = {}
    relevant = chance.randint(5, 10)
    while len(judged) < relevant:
        # The cube of a uniform number draws the top eighth of the ranking half of the time.
        found = chance.random() < 2 / 3
        document = ranking[int(len(ranking) * chance.random() ** 3)] if found else f"e{len(judged):06}"
        judged[document] = chance.randint(1, 3)
    judged.setdefault(chance.choice(ranking), 0)
    judged["e999999"] = 0
    return judged
