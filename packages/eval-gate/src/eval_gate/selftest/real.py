"""What is altered for real: the set and the backend of a copied workspace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval_gate.policy import LATENCY_SAMPLES
from eval_gate.selftest.attack import GATE, easy, failing, new_label
from eval_gate.selftest.bench import Bench, Untried
from eval_gate.selftest.models import About, Kind
from eval_gate.selftest.set import SetFiles

#: Answers every query with no document, through the line protocol.
EMPTY = "import sys\nfor line in sys.stdin:\n    print('{\"ids\": []}', flush=True)\n"

_REACHED = "A null backend reaches these floors: raise them, or floor a measure at a smaller k."
_BY_CHANCE = "The set does not tell sense from chance: floors at a smaller k, or more documents."


@dataclass(frozen=True, slots=True)
class Real:
    """One alteration of a copied workspace. `change` gets the set's files and the arm's table of eval.toml."""

    kind: Kind
    name: str
    expected: tuple[str, ...]
    change: Callable[[Copy], None]
    remedy: str = GATE


@dataclass(slots=True)
class Copy:
    """A copied workspace: the files of its set, and its arm as eval.toml will have it."""

    bench: Bench
    files: SetFiles
    arm: dict[str, Any]
    corpus: Path


# ---------------------------------------------------------------- alterations


def _delete(copy: Copy) -> None:
    gone = {row.id for row in failing(copy.bench)}
    if not gone:
        raise Untried("the set has one query")
    copy.files.keep_queries(lambda name: name not in gone)


def _add(copy: Copy) -> None:
    copy.files.repeat_query(easy(copy.bench).id, "self-test-easy")


def _relabel(copy: Copy) -> None:
    rows = {row.id: name for row in failing(copy.bench) if (name := new_label(row))}
    if not rows:
        row = next((row for row in copy.bench.report.rows if new_label(row)), None)
        if row is None:
            raise Untried("nothing was returned but what is relevant")
        rows = {row.id: new_label(row) or ""}
    copy.files.judge({name: {document: 1} for name, document in rows.items()})


def _drop(copy: Copy) -> None:
    _pinned(copy)
    copy.files.drop_document(copy.corpus)


def _swap(copy: Copy) -> None:
    _pinned(copy)
    copy.files.swap_texts(copy.corpus)


def _pinned(copy: Copy) -> None:
    if copy.bench.floors.corpus == "drifts":
        raise Untried("the policy lets the corpus of this arm drift")


def _deeper(copy: Copy) -> None:
    limit = copy.bench.report.task.parts["limit"]
    copy.arm["limit"] = 2 * limit if isinstance(limit, int) else 1


def _once(copy: Copy) -> None:
    if copy.bench.budget.p95_ms is None:
        raise Untried("there is no budget of latency")
    if copy.bench.report.n >= LATENCY_SAMPLES:
        raise Untried("one pass over the queries gives samples enough")
    copy.arm["repetitions"] = 1


def _null(backend: str, **options: Any) -> Callable[[Copy], None]:
    def change(copy: Copy) -> None:
        from eval_core.backend import names

        if backend not in names():
            raise Untried(f"the backend {backend!r} is not installed")
        copy.arm.update(backend=backend, options=options, expand=False)

    return change


def _shuffle(copy: Copy) -> None:
    copy.files.shuffle_labels(copy.arm.get("filter_from", ()))


#: A backend that cannot be asked about time or in a scope leaves queries out, and is refused for that.
_BREACH = ("floor-breached", "n-differs")

SHUFFLED = Real("null", "labels shuffled", ("judgements-differ",), _shuffle)

REAL = (
    Real("measured", "the queries that fail are deleted", ("query-set-differs",), _delete),
    Real("measured", "an easy query is added", ("query-set-differs",), _add),
    Real("measured", "labels become what was returned", ("judgements-differ",), _relabel),
    Real("measured", "a document is dropped", ("corpus-differs",), _drop),
    Real("measured", "the texts of two documents are swapped", ("corpus-differs",), _swap),
    Real("measured", "twice as many documents asked for", ("limit-differs",), _deeper),
    Real("measured", "too few samples for the budget", ("latency-not-measurable",), _once),
    Real("null", "random backend", _BREACH, _null("random"), _REACHED),
    Real("null", "popularity backend", _BREACH, _null("popularity"), _REACHED),
    Real(
        *("null", "empty backend", _BREACH),
        _null("jsonl", command=["{python}", "-S", "-E", "-c", EMPTY], capabilities=["filter"]),
        _REACHED,
    ),
    SHUFFLED,
)

#: Told of what was measured, not alterations of it.
CONFIGURED = About("measured", "eval.toml changed after measuring", ("provenance-diverges",), GATE)
REFLOORED = About("null", "floors made on shuffled labels", ("floor-vacuous",), _BY_CHANCE)
