from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

import pytest
from hypothesis import given, settings

sys.path.insert(0, str(Path(__file__).resolve().parent))

from render_support import failing, grade, hostile, lost, passing, reason, refused, verdict

from eval_gate.render import Place, rendered
from eval_gate.verdict import BarChange, Verdict

if TYPE_CHECKING:
    from conftest import Space


class Annotation(NamedTuple):
    kind: str
    file: str | None
    line: int | None
    title: str
    message: str


# A workflow command as GitHub's documentation writes it: neither a colon nor a comma in a property, no line break.
_COMMAND = re.compile(
    r"::(error|warning|notice) (?:file=([^:,\r\n]+),(?:line=([0-9]+),)?)?title=([^:,\r\n]+)::([^\r\n]*)"
)


def read(text: str) -> tuple[list[Annotation], str]:
    """The annotations, and the last line. Escapes are those of URLs, which GitHub's are a part of."""
    *commands, decision = text.split("\n")
    found = []
    for command in commands:
        match = _COMMAND.fullmatch(command)
        assert match is not None, command
        kind, file, line, title, message = match.groups()
        escapes = set(re.findall("%..", command))
        assert escapes <= {"%25", "%0A", "%3A", "%2C"}, escapes
        path = None if file is None else unquote(file)
        found.append(Annotation(kind, path, int(line) if line else None, unquote(title), unquote(message)))
    return found, decision


def annotated(found: Verdict, place: Place | None = None) -> tuple[list[Annotation], str]:
    return read(rendered("github", found, place or Place()))


@pytest.fixture(autouse=True)
def away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No repository around it, and no job."""
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    monkeypatch.chdir(tmp_path)


def line_of(path: Path, text: str) -> int:
    return next(n for n, line in enumerate(path.read_text().splitlines(), 1) if line.startswith(text))


def test_a_lost_query_is_shown_at_its_judgement(space: Space) -> None:
    assert space.measure(space.losing(4)).code == 0
    done = space.gate("check", "--format", "github")
    found, decision = read(done.out.rstrip("\n"))
    assert (done.code, done.err, decision) == (1, "", "FAIL  1 of 1 arm, class local: notes")
    lost_ = [a for a in found if a.title.endswith("lost")]
    assert [a.title for a in lost_] == [f"eval-gate: query q0{n} lost" for n in (1, 2, 3, 4)]
    for number, annotation in enumerate(lost_, 1):
        assert annotation.file == "set/qrels/test.tsv"
        line = (space.root / annotation.file).read_text().splitlines()[(annotation.line or 0) - 1]
        assert line.split("\t")[:2] == [f"q0{number}", f"d0{number}"]
        assert annotation.message.startswith(
            f"recall@10 lost: where is thing {number} kept\nd0{number}  notes: rank 1 → –"
        )
    first = next(a for a in found if a.message.startswith("hit@1 = "))
    assert (first.kind, first.file, "floor-breached" in first.title) == ("error", "policy/floors.toml", True)
    assert first.line == line_of(space.floors, "misses_allowed")
    assert first.message.startswith("hit@1 = 4: 3 misses are allowed")
    assert first.message.endswith("\neval-core reason floor-breached")


def spotted(space: Space, monkeypatch: pytest.MonkeyPatch) -> Annotation:
    """Where the first lost query is shown."""
    monkeypatch.chdir(space.root)
    found, _ = annotated(verdict(failing("notes", lost=(lost(5),))))
    return found[-1]


def test_the_split_of_the_arm_is_looked_in(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    qrels = space.root / "set" / "qrels"
    assert spotted(space, monkeypatch).line == line_of(qrels / "test.tsv", "q05")
    (qrels / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq05\td05\t1\n")
    assert spotted(space, monkeypatch)[1:3] == ("set/qrels/test.tsv", 6)
    space.edit(space.root / "eval.toml", '"set"', '"set"\nsplit = "dev"')
    assert spotted(space, monkeypatch)[1:3] == ("set/qrels/dev.tsv", 2)
    # Of a document that is judged no more, the query is shown; of a query that is gone, the arm's floors.
    (qrels / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq04\td05\t1\nq05\td06\t1\n")
    assert spotted(space, monkeypatch)[1:3] == ("set/qrels/dev.tsv", 3)
    (qrels / "dev.tsv").write_text("query-id\tcorpus-id\tscore\n")
    arm = line_of(space.floors, '[arms."notes"]')
    assert spotted(space, monkeypatch)[1:3] == ("policy/floors.toml", arm)
    (qrels / "dev.tsv").unlink()
    assert spotted(space, monkeypatch)[1:3] == ("policy/floors.toml", arm)


def test_where_nothing_can_be_read_the_nearest_file_is_shown(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No fault of eval.toml or of the floors keeps the verdict from being told."""
    config = space.root / "eval.toml"
    config.write_text(config.read_text() + "unknown = 1\n")
    assert spotted(space, monkeypatch).file == "policy/floors.toml"
    space.floors.write_text('schema = "floors-v2"\n')
    assert spotted(space, monkeypatch)[1:3] == ("eval.toml", line_of(config, '[arms."notes"]'))
    config.write_text("[")
    assert spotted(space, monkeypatch)[1:3] == ("policy/floors.toml", None)
    config.unlink()
    space.floors.unlink()
    assert spotted(space, monkeypatch)[1:3] == ("policy/floors.toml", None)


@pytest.mark.parametrize(
    ("code", "message", "file", "line"),
    [
        ("queries-differ", "q01", "set/queries.jsonl", None),
        ("judgements-differ", "q01", "set/qrels/test.tsv", None),
        ("corpus-differs", "it", "set/dataset.toml", None),
        ("links-differ", "there is no such file", "eval.toml", '[arms."notes"]'),
        ("filter-differs", "it", "eval.toml", '[arms."notes"]'),
        ("rows-errored", "it", "eval.toml", '[arms."notes"]'),
        ("evidence-contradicts", "it", "policy/evidence/notes.jsonl", None),
        ("report-missing", "there is no such report", "policy/floors.toml", '[arms."notes"]'),
        ("latency-over-budget", "it", "policy/budgets.toml", "[arms.notes]"),
    ],
)
def test_a_refused_arm_is_shown_at_the_file_concerned(
    space: Space, monkeypatch: pytest.MonkeyPatch, code: str, message: str, file: str, line: str | None
) -> None:
    monkeypatch.chdir(space.root)
    (space.root / "policy" / "budgets.toml").write_text('schema = "budgets-v2"\n\n[arms.notes]\np95_ms = 9\n')
    why = reason("refused", code, message)
    (found,), _ = annotated(verdict(refused("notes", reasons=(why,))))
    number = None if line is None else line_of(space.root / file, line)
    assert (found.kind, found.file, found.line) == ("error", file, number)


def test_the_floor_of_a_category_is_shown_where_it_stands(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(space.root)
    text = space.floors.read_text()
    category = "[arms.notes.categories.graph]\nn = 20\n[arms.notes.categories.graph.misses_allowed]\n"
    space.floors.write_text(f'{text}\n{category}"hit@1" = 2\n')
    why = reason(what="2 misses are allowed", value=3, category="graph")
    graded = (grade(), grade(False, category="graph"))
    (found,), _ = annotated(verdict(failing("notes", reasons=(why,), graded=graded)))
    assert found.line == len(space.floors.read_text().splitlines())


def test_files_are_named_from_the_top_of_the_checkout(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(space.root.parent))
    assert spotted(space, monkeypatch).file == f"{space.root.name}/set/qrels/test.tsv"
    monkeypatch.setenv("GITHUB_WORKSPACE", str(space.root / ".eval"))
    assert spotted(space, monkeypatch).file == "set/qrels/test.tsv"


def test_what_several_arms_lost_at_one_judgement_is_shown_once(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(space.root)
    config = space.root / "eval.toml"
    config.write_text(config.read_text() + config.read_text().replace('"notes"', '"twin"'))
    arms = [failing(name, lost=(lost(5),)) for name in ("notes", "twin")]
    found, _ = annotated(verdict(*arms))
    (one,) = [a for a in found if a.title.endswith("lost")]
    assert one.message.endswith("d05  notes: rank 1 → –; twin: rank 1 → –")


def test_no_more_is_written_than_github_shows() -> None:
    """Ten of a kind; some of the errors are kept for lost queries, and what is left out is counted."""
    arms = [failing(f"a{number:02}", lost=tuple(map(lost, range(7)))) for number in range(20)]
    bar = tuple(
        BarChange(arm=f"a{n:02}", key="margin", before="2", after="3", looser=True) for n in range(12)
    )
    found, decision = annotated(verdict(*arms, target="main", bar=bar))
    assert [a.kind for a in found] == ["error"] * 10 + ["warning"] * 10 + ["notice"]
    assert sum(a.title.endswith("lost") for a in found) == 5
    left = "15 more reasons, 135 more lost queries, 2 more warnings without an annotation:"
    assert found[-1].message.startswith(left)
    assert decision.endswith("a09 and 10 more")
    found, _ = annotated(verdict(*arms[:3]))
    assert [a.title.endswith("lost") for a in found] == [False] * 3 + [True] * 7 + [False]


def test_what_is_looser_is_a_warning_with_its_reason() -> None:
    changes = [
        BarChange(arm="good", key=key, before="2", after="4", looser=looser, reason="because")
        for key, looser in (("margin", True), ("n", False), ("mrr", True))
    ]
    (bar,), decision = annotated(verdict(passing(), target="main", bar=tuple(changes)))
    assert (bar.kind, bar.title) == ("warning", "eval-gate: the bar is looser for good than that of main")
    assert bar.message == "good  margin: 2 → 4  (reason: because)\ngood  mrr: 2 → 4  (reason: because)"
    assert decision == "PASS  1 arm"


def test_what_refuses_several_arms_is_one_annotation() -> None:
    (found,), _ = annotated(verdict(refused("a"), refused("b"), refused("c")))
    assert found.title == "eval-gate: a and 2 more REFUSED, query-set-differs"


@settings(max_examples=50, deadline=None)
@given(hostile())
def test_no_text_of_others_becomes_a_command(found: Verdict) -> None:
    """Every line but the last is one of ours, whole; nothing in it begins another."""
    written, decision = annotated(found)
    for kind in ("error", "warning", "notice"):
        assert sum(a.kind == kind for a in written) <= 10
    everything = decision + "".join(f"{a.file}{a.title}{a.message}" for a in written)
    assert {c for c in everything if not c.isprintable()} <= {"\n"}
    assert "##[" not in everything
    assert decision.startswith(("PASS  ", "FAIL  ", "REFUSED  "))
    assert any(a.kind == "error" for a in written) == (found.exit_code == 1)
