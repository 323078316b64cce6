"""Invented sets for the benchmarks: seeded, so that every run times the same work."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

from eval_core.backend import Corpus, Reply, Request
from eval_core.config import Arm, Workspace
from eval_core.measuring import Plan, prepare


def write_set(folder: Path, documents: int, queries: int, seed: int = 7) -> None:
    """Write a BEIR folder with one relevant document a query."""
    chance = random.Random(seed)
    words = [f"w{number}" for number in range(2000)]
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text("".join(_lines("d", documents, words, chance, 40)), encoding="utf-8")
    (folder / "queries.jsonl").write_text("".join(_lines("q", queries, words, chance, 5)), encoding="utf-8")
    judged = (f"q{number}\td{chance.randrange(documents)}\t1\n" for number in range(queries))
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(judged), encoding="utf-8"
    )


def _lines(prefix: str, count: int, words: list[str], chance: random.Random, length: int) -> Iterator[str]:
    for number in range(count):
        text = " ".join(chance.choices(words, k=length))
        yield json.dumps({"_id": f"{prefix}{number}", "text": text}) + "\n"


class Ready:
    """A backend whose answers are made before they are asked for, so that what is timed is the harness."""

    capabilities: frozenset[str] = frozenset()

    def describe(self) -> dict[str, str]:
        """Nothing identifies it."""
        return {}

    def index(self, corpus: Corpus) -> None:
        """Make a hundred rankings of ten documents."""
        chance = random.Random(3)
        ids = [document.id for document in corpus]
        scores = [10.0 - place for place in range(10)]
        self._replies = [Reply(chance.sample(ids, 10), scores) for _ in range(100)]
        self._next = 0

    def search(self, request: Request) -> Reply:
        """The next ranking."""
        self._next = (self._next + 1) % 100
        return self._replies[self._next]

    def close(self) -> None:
        """Nothing to free."""


def ready(*_: object) -> Ready:
    """Make one whatever the arm says, in place of the registry."""
    return Ready()


def plan_for(root: Path, documents: int, queries: int, repetitions: int) -> Plan:
    """A plan that measures `Ready` on an invented set below `root`."""
    write_set(root / "set", documents, queries)
    arm = Arm(dataset="set", backend="ready", repetitions=repetitions)
    return prepare(Workspace(root, root / "eval.toml", {"arm": arm}), {"arm": arm})[0]
