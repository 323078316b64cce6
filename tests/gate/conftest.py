from __future__ import annotations

import contextlib
import io
import json
import math
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest
from pydantic import model_validator

# The helpers are modules of this folder, which the importlib mode of pytest does not find by itself.
sys.path.insert(0, str(Path(__file__).resolve().parent))

from policy_support import resealed, write_policy

from eval_core.files import digest
from eval_core.policy.evidence import Line, dump, path_of, read_evidence
from eval_core.reports import provenance
from eval_core.reports.report import Report, read_report, write_report

# A retriever that does as it is told: answers.json, which no option names, maps a query's text to the ids it returns.
ADAPTER = """
import json, sys
answers = json.load(open("answers.json", encoding="utf-8"))
for line in sys.stdin:
    answer = answers.get(json.loads(line)["query"], [])
    print(json.dumps({"ids": answer} if isinstance(answer, list) else {"error": answer}), flush=True)
"""

QUERIES = {f"q{number:02}": f"where is thing {number} kept" for number in range(1, 28)}
DOCUMENTS = {f"d{number:02}": f"thing {number} is kept on shelf {number * 7 % 40}" for number in range(1, 41)}
# Each query has one relevant document; d28 is judged, and not relevant; d29 to d40 are judged by nothing.
JUDGEMENTS = [(name, name.replace("q", "d"), 1) for name in QUERIES] + [("q05", "d28", 0)]
FILLERS = [f"d{number}" for number in range(29, 41)]
FACTS = {"q27": 2}  # the usual outcome: all at rank 1 but this one

EVAL_TOML = """
[arms."notes"]
dataset = "set"
backend = "jsonl"
options.command = ["{python}", "-S", "-E", "adapter.py"]
"""

DATASET_TOML = """
name = "things"
kind = "memory"
headline = "hit@1"

[[corpus.source]]
type = "inline"
name = "own"
"""


@dataclass(frozen=True)
class Done:
    """How a script ended."""

    code: int
    out: str
    err: str

    @property
    def verdict(self) -> Any:
        """The verdict, of `check --format json`."""
        return json.loads(self.out)

    @property
    def codes(self) -> list[str]:
        """The reason codes of the verdict: the policy's, then each arm's."""
        verdict = self.verdict
        reasons = [*verdict["reasons"], *(reason for arm in verdict["arms"] for reason in arm["reasons"])]
        return [reason["code"] for reason in reasons]


class Loose(Report):
    """A report whose digests are not held against the rest."""

    @model_validator(mode="after")
    def _holds(self) -> Self:
        return self


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
    """A workspace of one arm, `notes`, on a set of 27 queries, in a folder of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.floors = root / "policy" / "floors.toml"
        self.budgets = root / "policy" / "budgets.toml"
        self.evidence = root / "policy" / "evidence" / "notes.jsonl"
        self.report = root / ".eval" / "reports" / "notes.json"
        self.sidecar = provenance.sidecar(self.report)

    def core(self, *arguments: str | Path) -> Done:
        """Run eval-core here."""
        from eval_core.cli import main

        return call(main, *arguments, where=self.root)

    def gate(self, *arguments: str | Path) -> Done:
        """Run eval-gate here."""
        from eval_gate.cli import main

        return call(main, *arguments, where=self.root)

    def check(self, *arguments: str | Path) -> Done:
        """Grade the reports: exit code and verdict."""
        return self.gate("check", "--format", "json", *arguments)

    def set(
        self,
        queries: Mapping[str, Any] = QUERIES,
        documents: Mapping[str, str] = DOCUMENTS,
        judgements: Iterable[tuple[str, str, int]] = JUDGEMENTS,
    ) -> None:
        """Write the set; a query is its text, or all the fields of its line."""
        folder = self.root / "set"
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
        (folder / "dataset.toml").write_text(DATASET_TOML)
        lines = [
            {"_id": name} | (query if isinstance(query, dict) else {"text": query})
            for name, query in queries.items()
        ]
        (folder / "queries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        lines = [{"_id": name, "text": text} for name, text in documents.items()]
        (folder / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        rows = "".join(f"{query}\t{document}\t{grade}\n" for query, document, grade in judgements)
        (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + rows)

    def queries(self) -> list[dict[str, Any]]:
        """The lines of queries.jsonl."""
        text = (self.root / "set" / "queries.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def put_queries(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write queries.jsonl."""
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (self.root / "set" / "queries.jsonl").write_text(text)

    def rejudge(self, change: Callable[[list[str]], list[str]]) -> None:
        """Change the rows of the judgements."""
        path = self.root / "set" / "qrels" / "test.tsv"
        head, *rows = path.read_text().splitlines()
        path.write_text("\n".join([head, *change(rows)]) + "\n")

    def rewrite_documents(self, change: Callable[[list[str]], list[str]]) -> None:
        """Change the lines of the corpus."""
        path = self.root / "set" / "corpus.jsonl"
        path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")

    def answer(self, ranks: Mapping[str, int | str | None] | None = None, **others: Any) -> None:
        """Decide the answers: each query's document at a rank (1 where none is given), nowhere (None), or an error.

        `others` are answers of ids, by query, given as they are.
        """
        chosen = FACTS if ranks is None else ranks
        answers: dict[str, Any] = {}
        for name, text in QUERIES.items():
            rank = chosen.get(name, 1)
            if isinstance(rank, str):
                answers[text] = rank
            else:
                ids = FILLERS[:10] if rank is None else [*FILLERS[: rank - 1], name.replace("q", "d")]
                answers[text] = others.get(name, ids)
        (self.root / "answers.json").write_text(json.dumps(answers))

    def measure(self, ranks: Mapping[str, int | str | None] | None = None, **others: Any) -> Done:
        """Measure with these answers."""
        self.answer(ranks, **others)
        return self.core("measure", "-q")

    def forge(self, path: Path, change: Callable[[Any], object]) -> None:
        """Change the value of a report and put every digest right again, those of the provenance beside it too: a sound
        report of something else."""
        value = json.loads(path.read_text())
        change(value)
        for key in ("task", "system"):
            value[key]["sha256"] = digest(value[key]["parts"])
        loose = Loose.model_validate_json(json.dumps(value))
        fields = {name: getattr(loose, name) for name in Report.model_fields if name != "digests"}
        write_report(path, Report.sealed(**fields))
        if provenance.sidecar(path).exists():
            provenance.write(path, Report.sealed(**fields))

    def reports(self, arm: str = "notes") -> list[Report]:
        """Every run of an arm that was measured, oldest first."""
        return [read_report(path) for path in self.runs(arm)]

    def policy(self, runs: Mapping[str, Sequence[Report | Line]] | None = None, **choices: Any) -> None:
        """Write the policy that the last two runs give, or these; see `write_policy` for the choices."""
        write_policy(self.root / "policy", runs or {"notes": self.reports()[-2:]}, **choices)

    def lines(self, arm: str = "notes") -> list[Line]:
        """The evidence of an arm, oldest first."""
        return list(read_evidence(path_of(self.root / "policy", arm)))

    def put_lines(self, lines: Iterable[Line], arm: str = "notes") -> None:
        """Write the evidence of an arm, and leave its floors."""
        path_of(self.root / "policy", arm).write_bytes(dump(lines))

    def cite(self, change: Callable[[Any], object]) -> None:
        """Change the run that is the baseline, redo its digests, and write the floors that then follow."""
        *others, last = self.lines()
        self.policy({"notes": [*others, resealed(last, change)]})

    def twin(self, name: str) -> None:
        """Make another arm that was measured and floored like `notes`, byte by byte but for its name."""
        text = self.floors.read_text()
        own = text[text.index('[arms."notes"]') :].partition("\n\n")[0]
        arm = own.replace('arms."notes"', f'arms."{name}"')
        self.floors.write_text(f"{text}\n{arm}\n")
        shutil.copy(self.evidence, path_of(self.root / "policy", name))
        shutil.copy(self.report, self.report.with_name(f"{name}.json"))
        self.forge(self.report.with_name(f"{name}.json"), lambda report: report.update(arm=name))

    def git(self, *arguments: str) -> str:
        """Run git here, for one who is nobody; what it prints."""
        name = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(
            ["git", *name, "-c", "protocol.file.allow=always", *arguments],
            cwd=self.root,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def commit(self, message: str = "state") -> str:
        """Commit the workspace, in a repository that is made where there is none; what measuring writes, and what the
        retriever answers, are ignored."""
        if not (self.root / ".git").exists():
            self.git("init", "-q", "-b", "main")
            (self.root / ".gitignore").write_text(".eval/\n__pycache__/\nanswers.json\n")
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    @staticmethod
    def unscorable(report: Any, outcome: str = "unscorable") -> None:
        """Make one row of a report, q04, one that the backend could not be asked, or failed."""
        row = report["rows"][3]
        row.update(outcome=outcome, ids=[], metrics={}, detail="needs a filter")
        row["judged"][0]["rank"] = None
        report["health"].update({"scored": 26, outcome: 1})
        overall = report["summary"]["overall"]
        scored = [row["metrics"] for row in report["rows"] if row["outcome"] == "scored"]
        means = {name: math.fsum(values[name] for values in scored) / 26 for name in overall["metrics"]}
        overall.update(n=26, metrics=means)

    def tree(self, folder: str = ".") -> dict[str, bytes | None]:
        """Every path below a folder of the workspace with its bytes, None for a folder."""
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes() if path.is_file() else None
            for path in sorted((self.root / folder).rglob("*"))
        }

    @staticmethod
    def losing(count: int) -> dict[str, int | str | None]:
        """Answers in which so many of the 27 queries, the first ones, do not find their document."""
        return dict.fromkeys(list(QUERIES)[:count])

    def runs(self, arm: str = "notes") -> list[Path]:
        """The files of all runs of an arm, oldest first."""
        found = (self.root / ".eval" / "history" / arm).glob("*.json")
        return sorted(found, key=lambda path: json.loads(path.read_text())["environment"]["started"])

    def restate(self, change: Callable[[Any], object]) -> None:
        """Change what no digest of the report covers, such as its timing, and write the provenance beside it anew."""
        self.alter(self.report, change)
        provenance.write(self.report, read_report(self.report))

    def edit(self, path: Path, old: str, new: str) -> None:
        """Replace a text that stands in a file exactly once."""
        text = path.read_text()
        assert text.count(old) == 1, (text.count(old), old, text[:4000])
        path.write_text(text.replace(old, new))

    def alter(self, path: Path, change: Callable[[Any], object]) -> None:
        """Change the value that a JSON file holds, in place."""
        value = json.loads(path.read_text())
        change(value)
        path.write_text(json.dumps(value))


@pytest.fixture(scope="session", autouse=True)
def unsynced() -> Iterator[None]:
    """Files are written whole as ever, and not waited for until they are on the disk: half of the time of a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def local() -> Iterator[None]:
    """Tests are of class `local` wherever they run; a test of another class says so."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CI", "EVAL_ENV_CLASS", "GITHUB_RUN_ID", "CI_PIPELINE_ID", "CI_JOB_ID", "BUILD_ID"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def make() -> type[Space]:
    """Turn a folder into a workspace."""
    return Space


@pytest.fixture(scope="session")
def gated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace of class `local`, outside git: measured twice with the usual outcome, and its policy written."""
    space = Space(tmp_path_factory.mktemp("gated"))
    (space.root / "eval.toml").write_text(EVAL_TOML)
    (space.root / "adapter.py").write_text(ADAPTER)
    space.set()
    for _ in range(2):
        done = space.measure()
        assert done.code == 0, done.err
    space.policy()
    return space.root


@pytest.fixture
def space(gated: Path, tmp_path: Path) -> Iterator[Space]:
    """A copy of the workspace, which passes its gate as it stands."""
    shutil.copytree(gated, tmp_path / "space")
    yield Space(tmp_path / "space")


@pytest.fixture
def passes(space: Space) -> None:
    """The control beside an attack: before it, the gate passes."""
    done = space.check()
    assert (done.code, done.codes) == (0, [])


@pytest.fixture
def bare(space: Space) -> Space:
    """A workspace without policy and without runs."""
    shutil.rmtree(space.root / "policy")
    shutil.rmtree(space.root / ".eval")
    return space
