"""What the pages print to be typed or pasted is run, in the order and the state in which it is printed."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/backends").glob("*.md")),
]

#: Fences that are not to be typed or pasted, by page and first line, and what holds them; `*`: all of a page.
SHOWN = {
    (
        "README.md",
        "$ git clone … ladder && cd ladder",
    ): "output of this repository; `make gate` holds its numbers",
    ("README.md", "$ eval-gate check memory-bm25"): "output of this repository, made worse by hand",
    (
        "docs/longmemeval.md",
        "*",
    ): "commands on a file that is downloaded; tests/longmemeval runs them on others",
    ("docs/audit.md", "*"): "commands and a fleet file; tests/tier/test_cli.py types and reads them",
    ("docs/tour.md", "*"): "outputs of this repository, line by line",
    (
        "docs/import.md",
        "*",
    ): "files, commands and outputs; tests/core/test_imports.py writes, types and compares them",
    (
        "docs/backends/jsonl-protocol.md",
        '{"kind": "notes", "query": "where are retry delays computed", "k": 10}',
    ): ("a request and a reply; tests/backends/test_protocol_page.py reads them"),
    (
        "docs/promotion.md",
        "PROVEN  memory-bm25 over memory-flat on datasets/memory, by the rule over 'bm25'",
    ): "output",
    ("docs/ci.md", "name: search quality"): "a workflow; test_workflow.py runs it step by step",
    ("docs/ci.md", "/policy/    @search-owners"): "lines for a forge's CODEOWNERS",
}

#: Sixty notes with words of their own, and thirty questions that are answered by one of them each.
NOTES = {f"n{n:02}": f"note{n} about subject{n} and matter{n} of thing{n % 7}" for n in range(1, 61)}
QUESTIONS = {f"q{n:02}": f"what of subject{n} or matter{n}" for n in range(1, 61, 2)}


@dataclass(frozen=True)
class Fence:
    """A fenced part of a page, without what its lines are indented by."""

    page: str
    line: int
    language: str
    text: str

    @property
    def first(self) -> str:
        return self.text.partition("\n")[0]

    @property
    def shown(self) -> bool:
        return (self.page, self.first) in SHOWN or (self.page, "*") in SHOWN


def fences(path: Path) -> Iterator[Fence]:
    text = path.read_text(encoding="utf-8")
    found = re.finditer(r"^( *)```(\w*)\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    assert text.count("```") == 2 * len(
        list(re.finditer(r"^ *```\w*\n.*?^ *```$", text, re.MULTILINE | re.DOTALL))
    )
    for match in found:
        indent, language, body = match.groups()
        lines = [line.removeprefix(indent) for line in body.splitlines()]
        page = path.relative_to(ROOT).as_posix()
        yield Fence(
            page, text.count("\n", 0, match.start()) + 1, language, "\n".join(lines).strip("\n") + "\n"
        )


@dataclass
class Place:
    """Where a page is followed: a repository, the arm that it names, and what stands there for what is elsewhere."""

    root: Path
    dataset: str = "evals/notes"
    local: dict[str, str] = field(default_factory=dict)
    before: dict[str, Callable[[], object]] = field(default_factory=dict)
    after: tuple[str, ...] = ()

    def run(self, script: str, **more: str) -> subprocess.CompletedProcess[str]:
        home = self.root.parent / "home"
        home.mkdir(exist_ok=True)
        here = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("GIT_", "GITHUB_", "EVAL_")) and name != "CI"
        }
        here |= {
            "HOME": str(home),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "GIT_CONFIG_GLOBAL": os.devnull,
            **{f"GIT_{who}_{what}": f"n{at}" for who in ("AUTHOR", "COMMITTER") for what, at in
               (("NAME", ""), ("EMAIL", "@example.org"))},
        }  # fmt: skip
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script], cwd=self.root, env=here | more, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, encoding="utf-8", timeout=100,
        )  # fmt: skip

    def must(self, script: str, **more: str) -> str:
        done = self.run(script, **more)
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout

    def follow(self, fence: Fence) -> None:
        """Do what a reader of the page does with the fence."""
        text = fence.text
        for printed, here in self.local.items():
            text = text.replace(printed, here)
        for begins, prepare in self.before.items():
            if text.startswith(begins):
                prepare()
        if fence.language == "toml":
            self.put(text)
        elif fence.language in ("python", "js"):
            (self.root / {"python": "adapter.py", "js": "adapter.mjs"}[fence.language]).write_text(text)
        elif fence.language in ("", "sh"):
            if text.startswith("$ "):  # a prompt: what does not begin so is output
                text = "\n".join(line[2:] for line in text.splitlines() if line.startswith("$ "))
            self.must(text)
        else:
            pytest.fail(f"{fence.page}:{fence.line}: nobody knows how to follow {fence.language!r}")

    def put(self, text: str) -> None:
        """Put a table where tables of its kind lie."""
        table = tomllib.loads(text)
        if "corpus" in table:
            (self.root / self.dataset / "dataset.toml").write_text(text)
            self.must(f"eval-core validate {self.dataset}")
        elif table.keys() <= {"arms", "default"}:
            self.add("eval.toml", text)
        elif "schema" in table:
            self.add("policy/promotion.toml", text, anew=True)
        else:
            self.add(
                {"endpoint": "policy/promotion.toml", "waiver": "policy/waivers.toml"}[next(iter(table))],
                text,
            )

    def add(self, name: str, text: str, *, anew: bool = False) -> None:
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        old = path.read_text() if path.exists() and not anew else ""
        path.write_text(f"{old}\n{text}" if old else text)


def adapter(language: str = "python") -> str:
    """The adapter of the protocol's page."""
    page = ROOT / "docs" / "backends" / "jsonl-protocol.md"
    (text,) = [fence.text for fence in fences(page) if fence.language == language]
    return text


def repository(tmp_path: Path, dataset: str = "evals/notes") -> Place:
    """An empty repository with a set of plain BEIR files, and the page's adapter."""
    place = Place(tmp_path / "own", dataset)
    folder = place.root / dataset
    (folder / "qrels").mkdir(parents=True)
    documents = [f'{{"_id": "{name}.md", "text": "{text}"}}\n' for name, text in NOTES.items()]
    queries = [f'{{"_id": "{name}", "text": "{text}"}}\n' for name, text in QUESTIONS.items()]
    judged = [f"{name}\t{name.replace('q', 'n')}.md\t1\n" for name in QUESTIONS]
    (folder / "corpus.jsonl").write_text("".join(documents))
    (folder / "queries.jsonl").write_text("".join(queries))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(judged))
    (place.root / "adapter.py").write_text(adapter())
    place.must("git init -q -b main")
    return place


def arm(name: str) -> str:
    """README's arm, under another name."""
    (text,) = [fence.text for fence in fences(ROOT / "README.md") if fence.language == "toml"]
    return text.replace("notes-mine", name)


def uploads(place: Place, *numbers: str) -> list[Path]:
    """What CI runs of these numbers upload."""
    found = []
    for number in numbers:
        place.must("eval-core measure -q", CI="true", GITHUB_RUN_ID=number)
        folder = place.root.parent / f"upload-{number}"
        shutil.copytree(place.root / ".eval" / "reports", folder)
        found.append(folder)
    shutil.rmtree(place.root / ".eval")
    return found


def zipped(folder: Path, path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for file in folder.iterdir():
            archive.write(file, file.name)


def readme(tmp_path: Path) -> Place:
    return repository(tmp_path)


def protocol(tmp_path: Path) -> Place:
    place = repository(tmp_path, "datasets/notes")
    (place.root / "adapter.py").unlink()
    shutil.copy(place.root / "datasets/notes/corpus.jsonl", place.root)
    place.after = ("eval-core measure -q",)
    if shutil.which("node"):
        place.after += (
            """sed -i 's/"{python}", "adapter.py"/"node", "adapter.mjs"/' eval.toml && eval-core measure -q""",
        )
    return place


def floors(tmp_path: Path) -> Place:
    place = repository(tmp_path)
    place.add("eval.toml", arm("memory-bm25"))
    place.add(".gitignore", ".eval/\n*.zip\n")
    place.must("git add . && git commit -qm begin")
    for folder, name in zip(uploads(place, "8812", "8813"), "AB", strict=True):
        zipped(folder, place.root / f"{name}.zip")
    place.local["…64 digits, as the refusal prints them…"] = "0" * 64
    place.after = ("eval-gate floor --measure --write", "eval-core measure -q && eval-gate check")
    return place


def scoring(tmp_path: Path) -> Place:
    place = floors(tmp_path)
    place.after = ()
    place.must("eval-gate floor --measure --write && eval-core measure -q")
    run = place.root / ".eval" / "runs" / "memory-bm25.trec"
    for name in ("run", "before", "after"):
        shutil.copy(run, place.root / f"{name}.trec")
    shutil.copytree(place.root / "evals/notes/qrels", place.root / "qrels")
    asked = '{"id": "q", "query": "adapter", "ground_truth": ["adapter.py"]}'
    place.add("manifest.json", f'{{"id": "m", "queries": [{asked}]}}')
    return place


def promotion(tmp_path: Path) -> Place:
    place = Place(tmp_path / "own", "datasets/memory")
    shutil.copytree(ROOT / "datasets" / "memory", place.root / "datasets" / "memory")
    for name, worse in (("memory-flat", "options.k1 = 0.001\noptions.b = 0.0\n"), ("memory-bm25", "")):
        place.add("eval.toml", f'[arms."{name}"]\ndataset = "datasets/memory"\nbackend = "bm25"\n{worse}')
    rules, *_ = [f.text for f in fences(ROOT / "docs/promotion.md") if f.text.startswith("schema = ")]
    place.add("policy/promotion.toml", rules)
    place.add(".gitignore", ".eval/\n*.zip\n")
    commit = "git init -q -b main && git add . && git commit -qm begin"

    def committed() -> None:
        place.must(commit)

    def uploaded() -> None:
        place.must("git checkout -q -- . && git clean -qfd && git checkout -q HEAD~1")
        for folder in uploads(place, "8812", "8813"):
            zipped(folder, place.root / f"{folder.name.replace('upload', 'eval')}.zip")

    place.before = {
        "eval-gate floor memory-flat": committed,
        "eval-gate promote memory-bm25 --from": uploaded,
    }
    place.after = ("git add -A && git commit -qm moved && eval-core measure -q && eval-gate check",)
    return place


def corpus(tmp_path: Path) -> Place:
    place = repository(tmp_path)
    place.add("eval.toml", arm("notes-mine"))
    place.add(".gitignore", ".eval/\n")

    def written(folder: Path) -> Path:
        folder.mkdir(parents=True)
        for name, text in NOTES.items():
            (folder / f"{name}.md").write_text(text)
        return folder

    handbook = written(tmp_path / "handbook" / "docs").parent
    wiki = written(tmp_path / "wiki")
    written(tmp_path / "vault")
    written(tmp_path / "home" / "checkouts" / "vault")
    for folder in (handbook, wiki):
        place.must(f"cd {folder} && git init -q -b main && git add . && git commit -qm notes")
    commit = place.must(f"git -C {handbook} rev-parse HEAD").strip()
    wheel = tmp_path / "example-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in NOTES.items():
            archive.writestr(f"example/{name}.md", text)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    place.local = {
        "0123456789abcdef" * 4: digest,
        ("0123456789abcdef" * 3)[:40]: commit,
        "https://example.org/handbook.git": f"file://{handbook}",
    }
    kept = place.root / ".eval" / "cache" / "archives"
    kept.mkdir(parents=True)
    shutil.copy(wheel, kept / f"{digest}.whl")
    place.after = ("eval-gate check",)
    return place


def ci(tmp_path: Path) -> Place:
    place = repository(tmp_path)
    place.add("eval.toml", arm("notes-mine"))
    place.add(".gitignore", ".eval/\nA/\nB/\n")
    place.must("git add . && git commit -qm begin")
    for folder in uploads(place, "8812", "8813"):
        number = folder.name.removeprefix("upload-")
        place.local[f"gh run download {number} --name eval-{number} --dir"] = f"cp -r {folder}"
    return place


STATES: Mapping[str, Callable[[Path], Place]] = {
    "README.md": readme,
    "docs/backends/jsonl-protocol.md": protocol,
    "docs/ci.md": ci,
    "docs/corpus.md": corpus,
    "docs/floors.md": floors,
    "docs/promotion.md": promotion,
    "docs/scoring.md": scoring,
}


def test_round2_s1_what_is_only_shown_is_there_to_be_shown() -> None:
    """S1: an entry of the table that no page has any more would let another snippet go by."""
    every = [fence for path in PAGES for fence in fences(path)]
    assert (
        set(SHOWN) - {key for fence in every for key in ((fence.page, fence.first), (fence.page, "*"))}
        == set()
    )
    assert {fence.page for fence in every if not fence.shown} == set(STATES)


@pytest.mark.parametrize("page", sorted(STATES))
def test_round2_s1_the_snippets_of_a_page_work_in_the_order_in_which_they_are_printed(
    page: str, tmp_path: Path
) -> None:
    """S1: commands, tables and adapters, from one state of a small repository to the next."""
    place = STATES[page](tmp_path)
    for fence in fences(ROOT / page):
        if not fence.shown:
            place.follow(fence)
    for command in place.after:
        place.must(command)
    if page.endswith("protocol.md") and not shutil.which("node"):
        pytest.skip("all but the adapter in JavaScript: node is not installed")


def test_the_pages_link_to_each_other() -> None:
    """S13: README leads to the pages about the corpus and about CI."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for page in ("docs/corpus.md", "docs/ci.md"):
        assert f"]({page})" in text
        assert (ROOT / page).is_file()
