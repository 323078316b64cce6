"""What a retriever is to the harness, and how one is found by name.

A backend indexes a corpus and answers requests with document ids in rank order. The harness never imports a
backend's code by module path: it asks the entry-point group `eval.backends`, where built-ins stand like anyone's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from eval_core.errors import CouldNot, EvalError, Misuse, did_you_mean

#: The entry-point group that backends are published in.
GROUP = "eval.backends"

#: What a backend may be able to do beyond answering a text.
#: `filter`: honours `Request.filter`. `scope`: honours `Request.scope` within one index. `temporal`: indexes every
#: version and honours `Request.time`. `expand`: honours `Request.expand`. `vectors`: honours `Request.vector`.
#: `reindex`: may be given another corpus, which takes the place of the one before.
CAPABILITIES = frozenset({"filter", "scope", "temporal", "expand", "vectors", "reindex"})


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a corpus. Metadata with a meaning: `kind` (text), `scopes` (list of names), `path` (text)."""

    id: str
    title: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def searchable(self) -> str:
        """What the built-in backends search: the title, a newline, the text; the text alone without a title."""
        return f"{self.title}\n{self.text}" if self.title else self.text

    def matches(self, wanted: Mapping[str, str]) -> bool:
        """Whether each wanted metadata value equals the document's, or is one of them where it is a list."""
        for key, value in wanted.items():
            has = self.metadata.get(key)
            if has != value and not (isinstance(has, list | tuple) and value in has):
                return False
        return True


class Corpus(Protocol):
    """The documents of one index: iterated, never held, in one order."""

    @property
    def kind(self) -> str:
        """The dataset's kind, such as "memory"."""

    @property
    def path(self) -> Path:
        """A `corpus.jsonl` with exactly these documents, for backends that read files."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Document]: ...


@dataclass(frozen=True, slots=True)
class Request:
    """One query put to a backend.

    `k` is how many distinct documents are asked for, at least 1. `filter` maps metadata keys to the value a
    document must have. `time` is `{"as_of": e}`, `{"between": [a, b]}` or `{"historical": true}` in epochs.
    """

    text: str
    k: int
    kind: str = ""
    id: str = ""
    scope: str | None = None
    filter: Mapping[str, str] | None = None
    time: Mapping[str, Any] | None = None
    vector: Sequence[float] | None = None
    expand: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """Document ids in rank order, best first, and their scores where the backend has them (never rising)."""

    ids: Sequence[str]
    scores: Sequence[float] | None = None


class BackendError(Exception):
    """A backend failed on one request: the row is errored and counted, and measuring goes on.

    `restarted` says that the backend had to be started again, which the harness counts.
    """

    def __init__(self, message: str, *, restarted: bool = False) -> None:
        super().__init__(message)
        self.restarted = restarted


@runtime_checkable
class Backend(Protocol):
    """A retriever. Made once an arm and index (once an arm with the capability `reindex`), closed always."""

    @property
    def capabilities(self) -> frozenset[str]:
        """Which of `CAPABILITIES` it has."""

    def describe(self) -> Mapping[str, Any]:
        """JSON values that identify what answers: library versions, model and weight digest, chunking.

        They are a part of the system key, so nothing that varies between equal runs belongs here.
        """

    def index(self, corpus: Corpus) -> None:
        """Make the corpus searchable.

        Raises:
            CouldNot: the index cannot be built or the service cannot be reached.
        """

    def search(self, request: Request) -> Reply:
        """Answer one request with at most `request.k` distinct documents, equal scores in id order.

        Raises:
            BackendError: this request failed; the next may succeed.
            CouldNot: the backend is gone for good.
        """

    def close(self) -> None:
        """Free processes, files and memory; may be called twice."""


def names(group: str = GROUP) -> list[str]:
    """The names that installed packages have registered in an entry-point group, sorted."""
    from importlib.metadata import entry_points

    return sorted({point.name for point in entry_points(group=group)})


def load(name: str) -> Any:
    """Return the factory of the backend called `name`: a callable that takes the arm's options as keywords.

    Raises:
        Misuse, CouldNot: as `plugin`.
    """
    return plugin(GROUP, "backend", name)


def plugin(group: str, noun: Literal["backend", "importer"], name: str) -> Any:
    """Return what an installed package has registered under `name` in an entry-point group.

    Args:
        noun: what the group holds, for messages and reason codes.

    Raises:
        Misuse: there is no such name, or two packages claim it.
        CouldNot: it is installed and cannot be imported.
    """
    from importlib.metadata import entry_points

    points = list(entry_points(group=group, name=name))
    if not points:
        known = names(group)
        raise Misuse(
            f"{noun}-unknown",
            f"there is no {noun} {name!r}{did_you_mean(name, known)}  (installed: {', '.join(known) or 'none'})",
        )
    origins = {point.value for point in points}
    if len(origins) > 1:
        raise Misuse(
            f"{noun}-ambiguous",
            f"several packages claim the name: {', '.join(sorted(origins))}",
            subject=f"{noun} {name!r}",
            mend="Uninstall all of them but one.",
        )
    try:
        return points[0].load()
    except ImportError as error:
        raise CouldNot(
            f"{noun}-broken", f"is installed but cannot be imported: {error}", subject=f"{noun} {name!r}"
        ) from error


def make(name: str, options: Mapping[str, Any], factory: Any = None) -> Backend:
    """Make a backend of an arm's options. `factory` is what `load` gave, where one is made again and again.

    Raises:
        Misuse: no such backend, or it does not take these options.
        CouldNot: it cannot be imported, or fails in a way of its own.
    """
    import inspect

    factory = factory or load(name)
    parameters = inspect.signature(factory).parameters
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    for option in options:
        if option not in parameters and not takes_any:
            raise Misuse(
                "option-unknown",
                f"there is no such option{did_you_mean(option, parameters)}  "
                f"(options: {', '.join(parameters) or 'none'})",
                subject=f"backend {name!r}",
                key=option,
            )
    for option, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty and option not in options and not takes_any:
            raise Misuse("option-missing", "the option is required", subject=f"backend {name!r}", key=option)
    try:
        backend: Backend = factory(**options)
        unknown = frozenset(backend.capabilities) - CAPABILITIES
    except EvalError:
        raise
    except Exception as error:
        # Other people's code: what it raises is its fault, told as such, and not one of this program.
        raise CouldNot(
            "backend-broken", f"cannot be made: {type(error).__name__}: {error}", subject=f"backend {name!r}"
        ) from error
    if unknown:
        raise Misuse(
            "capability-unknown",
            f"declares unknown capabilities {sorted(unknown)}  (known: {', '.join(sorted(CAPABILITIES))})",
            subject=f"backend {name!r}",
        )
    return backend
