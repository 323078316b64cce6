"""What the tests of eval_core share: sets written from tables, backends that answer as told, the scripts in process."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval_core.backend import Corpus, Reply, Request
from eval_core.config import Workspace, load_workspace
from eval_core.measuring.loop import measure
from eval_core.measuring.plan import Plan, backend_faults, prepare
from eval_core.policy.arm import shown_floors
from eval_core.policy.bars import Choices
from eval_core.policy.evidence import FOLDER, Line, dump, line_of, path_of
from eval_core.reports.report import Report

Judgement = tuple[str, str, int]

HEADER = "query-id\tcorpus-id\tscore\n"


def lines(records: Mapping[str, Any]) -> str:
    """JSON lines of `_id` to a text, or to all the other fields."""
    rows = ({"_id": name} | ({"text": f} if isinstance(f, str) else dict(f)) for name, f in records.items())
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_set(
    folder: Path,
    documents: Mapping[str, Any],
    queries: Mapping[str, Any],
    judgements: Iterable[Judgement],
    definition: str | None = None,
    **files: str,
) -> Path:
    """Write a BEIR folder. Documents and queries are texts, or all fields but `_id`; `definition` is dataset.toml;
    `files` are others, `timeline_jsonl` for timeline.jsonl."""
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    (folder / "corpus.jsonl").write_text(lines(documents), encoding="utf-8")
    (folder / "queries.jsonl").write_text(lines(queries), encoding="utf-8")
    rows = "".join(f"{query}\t{document}\t{grade}\n" for query, document, grade in judgements)
    (folder / "qrels" / "test.tsv").write_text(HEADER + rows, encoding="utf-8")
    if definition is not None:
        (folder / "dataset.toml").write_text(definition, encoding="utf-8")
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text, encoding="utf-8")
    return folder


class Told:
    """A backend that answers each query text as it is told, and nothing to others.

    An answer is a list of ids, anything else to return, an exception to raise, or a function of the request.
    """

    def __init__(self, answers: Mapping[str, Any], capabilities: Iterable[str] = ()) -> None:
        self.answers = dict(answers)
        self.capabilities = frozenset(capabilities)
        self.asked: list[Request] = []
        self.indexed: list[list[str]] = []
        self.closed = 0

    def __call__(self, **options: Any) -> Told:
        """It is its own factory, so that a test sees what was asked of it."""
        return self

    def describe(self) -> Mapping[str, Any]:
        return {"told": 1}

    def index(self, corpus: Corpus) -> None:
        self.indexed.append([document.id for document in corpus])

    def search(self, request: Request) -> Any:
        self.asked.append(request)
        answer = self.answers.get(request.text, [])
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, BaseException):
            raise answer
        return Reply(answer) if isinstance(answer, list) else answer

    def close(self) -> None:
        self.closed += 1


@dataclass(frozen=True)
class Done:
    """How a script ended."""

    code: int
    out: str
    err: str


def call(main: Callable[[], object], *arguments: str | Path, where: Path) -> Done:
    """Run a script's `main` in this process, in the folder `where`."""
    out, err = io.StringIO(), io.StringIO()
    before, handler = sys.argv, signal.getsignal(signal.SIGTERM)
    sys.argv = ["script", *map(str, arguments)]
    code: object = "did not exit"
    try:
        with contextlib.chdir(where), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as done:
        code = done.code
    finally:
        sys.argv = before
        signal.signal(signal.SIGTERM, handler)
    assert isinstance(code, int), code
    return Done(code, out.getvalue(), err.getvalue())


class Space:
    """A workspace: sets below it, arms in its eval.toml, output in its .eval."""

    def __init__(self, root: Path, register: Callable[[str, Any], None]) -> None:
        self.root = root
        self.register = register
        self.config = root / "eval.toml"
        self.runs, self.reports, self.history = (
            root / ".eval" / kind for kind in ("runs", "reports", "history")
        )

    def set(
        self,
        documents: Mapping[str, Any],
        queries: Mapping[str, Any],
        judgements: Iterable[Judgement],
        definition: str | None = None,
        name: str = "set",
        **files: str,
    ) -> Path:
        """Write a set; see `write_set`."""
        return write_set(self.root / name, documents, queries, judgements, definition, **files)

    def arm(self, text: str = "", name: str = "arm", backend: str = "told", dataset: str = "set") -> None:
        """Add an arm to eval.toml; `text` holds its further keys."""
        table = f'[arms."{name}"]\ndataset = "{dataset}"\nbackend = "{backend}"\n{text}\n'
        with self.config.open("a", encoding="utf-8") as stream:
            stream.write(table)

    def workspace(self) -> Workspace:
        return load_workspace(self.config)

    def plans(self) -> list[Plan]:
        """All arms, resolved."""
        workspace = self.workspace()
        return prepare(workspace, workspace.arms, found=backend_faults(workspace, workspace.arms))

    def measure(self, backend: Any = None, *, resume: bool = False, text: str | None = None) -> Report:
        """Measure the only arm, served by `backend` where one is given; `text` adds the arm first."""
        if backend is not None:
            self.register("told", backend)
        if text is not None:
            self.config.unlink(missing_ok=True)
            self.arm(text)
        (made,) = self.plans()
        return measure(made, self.runs, self.reports, self.history, resume=resume)

    def core(self, *arguments: str | Path, where: Path | None = None) -> Done:
        """Run the script eval-core, here or in another folder."""
        from eval_core.cli import main

        return call(main, *arguments, where=where or self.root)

    def left(self) -> list[str]:
        """The files below .eval, sorted."""
        folder = self.root / ".eval"
        return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def write_policy(folder: Path, runs: Mapping[str, Iterable[Report | Line]]) -> None:
    """Write `policy/` for arms, each standing on its runs: the floors that follow, and the evidence."""
    text = 'schema = "floors-v2"\n'
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    for arm, several in runs.items():
        lines = [run if isinstance(run, Line) else line_of(run) for run in several]
        path_of(folder, arm).write_bytes(dump(lines))
        shown = shown_floors(Choices(), lines)
        text += f'[arms."{arm}"]\nruns = {list(shown.runs)}\nn = {shown.n}\n'
        for name, table in (("floors", shown.floors), ("misses_allowed", shown.misses_allowed)):
            entries = ", ".join(f'"{measure}" = {value}' for measure, value in table.items())
            text += f"{name} = {{ {entries} }}\n"
    (folder / "floors.toml").write_text(text, "utf-8")


def append(path: Path, text: str) -> None:
    """Add to the end of a file."""
    path.write_text(path.read_text("utf-8") + text, "utf-8")


def outcomes(report: Report) -> dict[str, str]:
    """The outcome of each query."""
    return {row.id: row.outcome for row in report.rows}


# A set of six queries over eight documents, one relevant to each.
DOCUMENTS = {f"d{number}": f"thing {number}" for number in range(1, 9)}
QUERIES = {f"q{number}": f"query {number}" for number in range(1, 7)}
JUDGEMENTS = [(name, name.replace("q", "d"), 1) for name in QUERIES]
RIGHT = {text: [name.replace("q", "d")] for name, text in QUERIES.items()}
DEFINITION = 'name = "things"\nkind = "memory"\n'
INLINE = DEFINITION + '[[corpus.source]]\ntype = "inline"\nname = "own"\n'


#: Kinds of three of the documents.
KINDS = {"d1": "note", "d2": "plan", "d3": "note"}


def told(**answers: Any) -> Told:
    """A backend that answers rightly, but for the queries given: `q3=BackendError("no")`."""
    return Told({**RIGHT, **{QUERIES[name]: answer for name, answer in answers.items()}})


def detail(report: Report, name: str) -> str:
    """Why a query is not scored."""
    return next(row.detail for row in report.rows if row.id == name)


Change = Callable[[Space], str | None]


def rewrite(**changes: Any) -> Change:
    """A change of that set: of its documents, queries, judgements, definition, or another file."""

    def change(space: Space) -> None:
        given = {
            "documents": DOCUMENTS,
            "queries": QUERIES,
            "judgements": JUDGEMENTS,
            "definition": DEFINITION,
        }
        space.set(**{**given, **changes})

    return change
