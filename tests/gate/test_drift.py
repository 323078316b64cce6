from __future__ import annotations

import json
import shutil
import tomllib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Space

NOTES = """
name = "notes"
kind = "memory"
headline = "hit@1"

[[corpus.source]]
type = "dir"
name = "vault"
path = "../vault"
"""


@pytest.fixture
def vault(bare: Space) -> Space:
    """A workspace whose 40 documents are the files of a folder that people go on writing in; 20 are judged."""
    shutil.rmtree(bare.root / "set")
    for number in range(1, 41):
        write(bare, f"n{number:02}.md")
    (bare.root / "set" / "qrels").mkdir(parents=True)
    (bare.root / "set" / "dataset.toml").write_text(NOTES)
    judge(bare)
    answers = {f"where is note {number}": [f"vault/n{number:02}.md"] for number in range(1, 21)}
    (bare.root / "answers.json").write_text(json.dumps(answers))
    return bare


def write(space: Space, name: str, text: str = "a note") -> None:
    path = space.root / "vault" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{text} called {name}\n")


def judge(space: Space, *more: str) -> None:
    queries = [json.dumps({"_id": f"q{n:02}", "text": f"where is note {n}"}) for n in range(1, 21)]
    (space.root / "set" / "queries.jsonl").write_text("\n".join(queries) + "\n")
    rows = [f"q{n:02}\tvault/n{n:02}.md\t1" for n in range(1, 21)]
    lines = ["query-id\tcorpus-id\tscore", *rows, *more]
    (space.root / "set" / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n")


def measure(space: Space, times: int = 1) -> None:
    for _ in range(times):
        done = space.core("measure", "-q")
        assert done.code == 0, done.err


def gate(space: Space, *arguments: str) -> None:
    measure(space, 2)
    done = space.gate("floor", "--write", *arguments)
    assert done.code == 0, done.err


#: A corpus that drifts, with the reason that it needs.
DRIFTS = ("--drifts", "0.1", "--reason", "corpus=it follows a branch")


def grown(space: Space, count: int) -> None:
    for number in range(41, 41 + count):
        write(space, f"n{number:02}.md")


def shrunk(space: Space, count: int) -> None:
    for number in range(40, 40 - count, -1):
        (space.root / "vault" / f"n{number:02}.md").unlink()


@pytest.mark.parametrize(
    ("change", "drifting", "pinned"),
    [
        (lambda space: None, [], []),
        (lambda space: write(space, "n40.md", "another text"), [], ["corpus-differs"]),
        (lambda space: write(space, "n01.md", "a judged note, rewritten"), [], ["corpus-differs"]),
        (lambda space: grown(space, 4), [], ["corpus-differs"]),
        (lambda space: shrunk(space, 4), [], ["corpus-differs"]),
        (lambda space: grown(space, 5), ["corpus-size-differs"], ["corpus-differs"]),
        (lambda space: shrunk(space, 5), ["corpus-size-differs"], ["corpus-differs"]),
        (lambda space: judge(space, "q01\tvault/n30.md\t1"), ["judgements-differ"], ["judgements-differ"]),
        (
            lambda space: space.edit(
                space.root / "set" / "dataset.toml", '"../vault"', '"../vault"\nexclude = ["n40.md"]'
            ),
            ["recipe-differs"],
            ["corpus-differs", "recipe-differs"],
        ),
    ],
)
def test_an_arm_that_drifts_is_gated_within_its_band(
    vault: Space, change: Callable[[Space], None], drifting: list[str], pinned: list[str]
) -> None:
    """K5: edits and a tenth more or fewer documents pass; judgements, recipe and a larger move are refused.

    A pinned arm, beside it, refuses each of these.
    """
    measure(vault, 2)
    # Two policies over the same runs, before and after the change.
    assert vault.gate("floor", "--write", "--policy", "moving", *DRIFTS).code == 0
    assert vault.gate("floor", "--write").code == 0
    change(vault)
    measure(vault)
    for policy, expected in (("moving", drifting), ("policy", pinned)):
        done = vault.check("--policy", policy)
        assert (done.code, done.codes) == (1 if expected else 0, expected)


def test_a_pinned_arm_is_let_drift_with_a_reason(vault: Space) -> None:
    """K5: it loosens what is held, and so does a wider band; an arm that drifts stays so, and needs no other one."""
    gate(vault)
    before = vault.floors.read_bytes()
    done = vault.gate("floor", "--drifts", "0.1", "--write")
    assert (done.code, '--reason corpus="…"' in done.err) == (1, True)
    assert vault.floors.read_bytes() == before
    assert vault.gate("floor", "--write", *DRIFTS).code == 0
    after = tomllib.loads(vault.floors.read_text())["arms"]["notes"]
    assert (after["corpus"], after["drift"], after["reasons"]) == (
        "drifts",
        0.1,
        {"corpus": "it follows a branch"},
    )
    assert vault.gate("floor", "--write").code == 0
    assert tomllib.loads(vault.floors.read_text())["arms"]["notes"] == after
    assert vault.check().code == 0
    wider = vault.gate("floor", "--drifts", "0.2", "--write")
    assert (wider.code, '--reason drift="…"' in wider.err) == (1, True)
    assert vault.gate("floor", "--drifts", "0.2", "--reason", "drift=it grows", "--write").code == 0


def test_a_pinned_corpus_cannot_drift(space: Space) -> None:
    """Round 2, B2: where no source moves, a band would only hide a changed set."""
    done = space.gate("floor", "--write", *DRIFTS)
    assert (done.code, "no source of its corpus moves" in done.err) == (1, True)


def test_a_judged_document_that_is_gone_leaves_nothing_to_grade(vault: Space) -> None:
    """K5: the judged documents must all be there: measuring them fails, and makes no report."""
    gate(vault, *DRIFTS)
    shutil.rmtree(vault.root / ".eval")
    (vault.root / "vault" / "n07.md").unlink()
    done = vault.core("measure", "-q")
    assert (done.code, "n07.md" in done.err) == (3, True)
    assert vault.check().codes == ["report-missing"]


@pytest.mark.parametrize(
    ("drifts", "added", "carries"), [(False, 2, False), (True, 2, True), (True, 4, True), (True, 8, False)]
)
def test_evidence_may_drift_as_the_arm_may(vault: Space, drifts: bool, added: int, carries: bool) -> None:
    """K5: runs of two days, with a few documents more on the second, carry a floor of an arm that drifts: 40 of 48 is
    a sixth less than the newest run's, and more than a tenth."""
    measure(vault)
    grown(vault, added)
    measure(vault)
    done = vault.gate("floor", "--write", *(DRIFTS if drifts else ()))
    assert (done.code == 0, "one run is" in done.err) == (carries, not carries), done.err
    if carries:
        assert len(tomllib.loads(vault.floors.read_text())["arms"]["notes"]["runs"]) == 2
        assert vault.check().code == 0


@pytest.mark.parametrize(("added", "code"), [(4, 0), (5, 1)])
def test_evidence_may_have_had_more_documents_by_as_much(vault: Space, added: int, code: int) -> None:
    """K5: the band is around the newest run, whose 40 documents allow 36 to 44 before."""
    grown(vault, added)
    measure(vault)
    for number in range(41, 41 + added):
        (vault.root / "vault" / f"n{number:02}.md").unlink()
    measure(vault)
    assert vault.gate("floor", *DRIFTS).code == code


def test_a_band_without_a_corpus_that_drifts_is_refused(vault: Space) -> None:
    """Taking `drifts` away and leaving the band, or the reverse, agrees with nothing."""
    gate(vault, *DRIFTS)
    for old in ('corpus = "drifts"\n', "drift = 0.1\n"):
        text = vault.floors.read_text()
        vault.edit(vault.floors, old, "")
        done = vault.check()
        assert (done.code, "floor-not-derived" in done.codes) == (1, True)
        vault.floors.write_text(text)
    assert vault.check().code == 0


@pytest.mark.parametrize("change", ["url", "commit", "both", "a file"])
def test_round2_b14_equal_documents_are_equal_wherever_they_came_from(
    vault: Space, change: str, make: type[Space]
) -> None:
    """B14: another url, or a pin at a commit with the same files, is a note; where a file differs it is refused."""
    repository = make(vault.root / "vault")
    first = repository.commit()
    shutil.copytree(vault.root / "vault", vault.root / "mirror")
    toml = vault.root / "set" / "dataset.toml"
    source = f'type = "git"\nurl = "{(vault.root / "vault").as_uri()}"\ncommit = "{first}"'
    toml.write_text(NOTES.replace('type = "dir"', source).replace('path = "../vault"\n', ""))
    gate(vault)
    before = vault.report.read_bytes()
    (vault.root / "before.json").write_bytes(before)
    if change != "url":
        if change == "a file":
            write(vault, "n40.md", "another text")
        second = repository.commit("more")
        assert first != second
        vault.edit(toml, first, second)
    if change in ("url", "both"):
        if change == "both":
            shutil.rmtree(vault.root / "mirror")
            shutil.copytree(vault.root / "vault", vault.root / "mirror")
        vault.edit(toml, (vault.root / "vault").as_uri(), (vault.root / "mirror").as_uri())
    measure(vault)
    done, compared = vault.check(), vault.core("compare", "before.json", str(vault.report))
    if change == "a file":
        assert (done.code, done.codes) == (1, ["corpus-differs", "recipe-differs"])
        assert (compared.code, "task-differs" in compared.err) == (1, True)
        return
    assert (done.code, done.codes) == (0, [])
    said = "the recipe of the corpus changed, and its documents are those of the floors"
    assert done.verdict["arms"][0]["warnings"] == [said]
    assert f"notes: {said}." in vault.gate("check").out
    assert (compared.code, "the documents are the same, and came by another recipe" in compared.out) == (
        0,
        True,
    )
    # A run of either recipe stands beside one of the other: the history gives floors, and the bar does not loosen.
    assert vault.gate("floor", "--write").code == 0
    assert {line.task["recipe"] for line in vault.lines()} == {
        report.task.parts["recipe"] for report in vault.reports()
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda space: write(space, "n40.md", "another text"), "1 changed: vault/n40.md"),
        (lambda space: grown(space, 2), "2 new: vault/n41.md, vault/n42.md"),
        (lambda space: shrunk(space, 1), "1 gone: vault/n40.md"),
    ],
)
def test_round2_s7_compare_crosses_what_the_floors_let_drift(
    vault: Space, change: Callable[[Space], None], said: str
) -> None:
    """S7: as the gate does, and it names the documents that changed."""
    gate(vault, *DRIFTS)
    change(vault)
    measure(vault)
    done = vault.core("compare", "baseline:notes", "notes")
    assert done.code == 0, done.err
    assert f"the corpus drifted, as its floors let it: {said}" in " ".join(done.out.split())
    done = vault.core("explain", "notes", "--lost")
    assert done.code == 0 and said in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("options", "added", "said"),
    [(DRIFTS, 5, "5 new: vault/n41.md"), ((), 1, "1 new: vault/n41.md")],
    ids=["beyond its band", "pinned"],
)
def test_round2_s7_compare_refuses_another_corpus_and_names_what_changed(
    vault: Space, options: tuple[str, ...], added: int, said: str
) -> None:
    """S7: where the gate refuses, so does compare."""
    gate(vault, *options)
    grown(vault, added)
    measure(vault)
    done = vault.core("compare", "baseline:notes", "notes")
    assert done.code == 1 and "task-differs" in done.err
    assert said in " ".join(done.err.split())


@pytest.mark.parametrize(
    "name", ["baseline:notes", "notes", ".eval/reports/notes.json", "policy/evidence/notes.jsonl"]
)
def test_round2_s7_explain_and_compare_take_the_same_names(vault: Space, name: str) -> None:
    """S7: an arm's baseline, its newest report, and both by their paths."""
    gate(vault, *DRIFTS)
    for arguments in (("compare", name, "notes"), ("explain", "notes", "--lost", "--against", name)):
        done = vault.core(*arguments)
        assert (done.code, done.err) == (0, ""), done
