"""The retrieval comparison contract: its form, its figures, what it refuses, and when it is no evidence."""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from contract_support import NOTES, SINGLE, compared, has, held, legacy, manifest, tree
from core_support import Told
from jsonschema import Draft202012Validator

from eval_core.backend import BackendError, Reply
from eval_core.config import load_workspace
from eval_core.contract import as_json, as_markdown, as_table, compare_backends, exit_code, read_comparison
from eval_core.contract.models import Comparison
from eval_core.errors import CouldNot, Faults, Misuse, Refused

Register = Callable[[str, Any], None]
Queries = Mapping[str, tuple[str, list[str]]]

FORMATS = (as_json, as_table, as_markdown)
FOUR: Queries = {
    "q1": ("apple", ["a.md"]),
    "q2": ("banana", ["b.md"]),
    "q3": ("cherry", ["docs/c.txt"]),
    "q4": ("date", ["src/d.py"]),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tree(tmp_path / "root")


# R1: form and figures


def test_figures_worked_by_hand(root: Path, register: Register) -> None:
    """R1: precision is over min(|ground truth|, k), the rank that of the first relevant path."""
    register(
        "told",
        Told(
            {
                "three of four": ["src/d.py", "a.md"],  # 1 of min(3, 2); rank 2
                "just one": ["docs/c.txt", "b.md"],  # 1 of min(1, 2); rank 1
                "both": ["b.md", "a.md"],  # 2 of min(2, 2); rank 1
                "none": ["a.md"],  # nothing
            }
        ),
    )
    found = compared(
        root,
        {
            "q1": ("three of four", ["a.md", "b.md", "docs/c.txt"]),
            "q2": ("just one", ["docs/c.txt"]),
            "q3": ("both", ["a.md", "b.md"]),
            "q4": ("none", ["src/d.py"]),
        },
        "told",
    )
    [report] = found.backends
    assert [row.precision_at_k for row in report.results] == [0.5, 1.0, 1.0, 0.0]
    assert [row.first_relevant_rank for row in report.results] == [2, 1, 1, None]
    assert [row.reciprocal_rank for row in report.results] == [0.5, 1.0, 1.0, 0.0]
    assert [row.hit_paths for row in report.results] == [("a.md",), ("docs/c.txt",), ("b.md", "a.md"), ()]
    assert report.results[0].intent == "intent of q1"
    assert report.hits == 3
    assert report.any_relevant_at_k == 0.75
    assert report.avg_precision_at_k == 0.625
    assert report.mean_reciprocal_rank == 0.625
    assert exit_code(found) == 0


@pytest.mark.parametrize("names", [("bm25",), ("bm25", "random", "overlap")])
def test_the_form_of_the_contract(root: Path, names: tuple[str, ...]) -> None:
    """R1: every field of the contract with its type, for one backend and for three, and figures that fit."""
    value = held(compared(root, FOUR, *names), root, names)
    assert value["backends"][0]["hits"] == 4
    Draft202012Validator(Comparison.model_json_schema(by_alias=True)).validate(value)


def test_one_backend_is_a_superset_of_the_single_backend_form(root: Path) -> None:
    """R1: what reads the older form finds all of it at the top, equal to the only backend's."""
    value = held(compared(root, FOUR, "bm25"), root, ["bm25"])
    has(value, SINGLE)
    assert {name: value[name] for name in SINGLE} == {name: value["backends"][0][name] for name in SINGLE}


def test_more_backends_have_no_figures_at_the_top(root: Path) -> None:
    """R1: a figure at the top of several would be some backend's, and none says which."""
    value = held(compared(root, FOUR, "bm25", "random"), root, ["bm25", "random"])
    assert not (SINGLE.keys() - {"id", "manifest_path", "search_root", "queries", "k"}) & value.keys()


@pytest.mark.parametrize("names", [("bm25",), ("bm25", "random", "overlap")])
def test_the_published_manifest(
    shared_data: Callable[[str], Path], tmp_path: Path, names: tuple[str, ...]
) -> None:
    """R1: the manifest of agentops over its own notes, where its paths have them."""
    place = "cli/cmd/ao/testdata/retrieval-bench"
    root = tmp_path / "root"
    shutil.copytree(shared_data("agentops/retrieval-bench"), root / place, copy_function=shutil.copyfile)
    found = compare_backends(Path(place) / "search-eval-manifest.json", root, list(names), 5)
    value = held(found, root, names)
    assert (value["id"], value["queries"], value["k"]) == ("retrieval-ratchet-fallback-v1", 4, 5)
    assert value["backends"][0]["mean_reciprocal_rank"] == 1
    assert value["corpus"]["documents"] == len(list(root.rglob("*.md")))
    assert exit_code(found) == 0


def test_the_published_legacy_array(shared_data: Callable[[str], Path], tmp_path: Path) -> None:
    """R1: 17 of its 20 entries have a path, below `.agents/`; the two notes that are published answer five queries."""
    data = shared_data("agentops/retrieval-bench")
    root = tmp_path / "root"
    shutil.copytree(data / "ground-truth", root / ".agents/learnings", copy_function=shutil.copyfile)
    tree(root, NOTES)
    found = compare_backends(data / "eval-queries.json", root, ["bm25", "random"], 5)
    value = held(found, root, ["bm25", "random"])
    assert (value["id"], value["queries"]) == ("legacy-search-eval", 17)
    assert value["manifest"] | {"sha256": ""} == {"sha256": "", "form": "legacy", "skipped": 3, "unread": {}}
    assert value["backends"][0]["missing_ground_truth"] == 12
    assert value["backends"][0]["hits"] == 5
    assert exit_code(found) == 0


def test_a_legacy_array(tmp_path: Path) -> None:
    """R1: entries keep their numbers, those without a path are counted, `learnings/` lies below `.agents/`."""
    root = tree(tmp_path / "root", {".agents/learnings/a.md": "apple", "b.md": "banana"})
    path = legacy(tmp_path / "old.json", [("apple", ["learnings/a.md"]), ("none", []), ("banana", ["b.md"])])
    value = held(compare_backends(path, root, ["bm25"], 1), root, ["bm25"])
    assert [row["id"] for row in value["results"]] == ["q1", "q3"]
    assert value["results"][0]["hit_paths"] == [".agents/learnings/a.md"]
    assert (value["hits"], value["manifest"]["skipped"]) == (2, 1)


def test_missing_ground_truth_is_a_miss_that_is_listed(root: Path) -> None:
    """R1: never an error, never dropped; counted once a query, so that a repeat counts again."""
    (root / "folder.md").mkdir()
    (root / "dangling.md").symlink_to(root / "nowhere")
    found = compared(
        root,
        {
            "q1": ("apple", ["a.md", "gone.md"]),
            "q2": ("banana", ["gone.md", "folder.md", "dangling.md"]),
        },
        "bm25",
    )
    value = held(found, root, ["bm25"])
    assert value["missing_ground_truth"] == 4
    assert [row["missing_ground_truth"] for row in value["results"]] == [
        ["gone.md"],
        ["gone.md", "folder.md", "dangling.md"],
    ]
    assert [row["precision_at_k"] for row in value["results"]] == [0.5, 0]
    assert exit_code(found) == 0
    for form in (as_table, as_markdown):
        assert "Missing ground truth (3)" in form(found)
        assert "gone.md  of q1, q2" in form(found)


def test_ground_truth_that_nothing_can_return_is_told(root: Path) -> None:
    tree(root, {"data.json": "{}", "zero.md": b"\0"})
    (root / "link.md").symlink_to("a.md")
    found = compared(root, {"q1": ("apple", ["a.md", "data.json", "link.md", "zero.md"])}, "bm25")
    [row] = found.backends[0].results
    assert row.unsearched_ground_truth == ("data.json", "link.md", "zero.md")
    assert row.missing_ground_truth == ()
    [note] = found.notes
    assert note.endswith("data.json, link.md, zero.md")
    assert note in as_table(found)


def test_k_beyond_the_corpus(root: Path) -> None:
    found = compared(root, FOUR, "random", k=50)
    value = held(found, root, ["random"])
    assert all(len(row["result_paths"]) == 4 for row in value["results"])
    assert value["hits"] == 4
    assert found.notes == ("k = 50 reaches all of the corpus (4): any order of it is a hit",)
    assert compared(root, FOUR, "random", k=3).notes == ()


def test_paths_stay_as_they_are_written(tmp_path: Path) -> None:
    """R1: white space, percent signs and letters of any script; only inside a corpus are they encoded."""
    names = ["über uns/naïve 100%.md", "日本/メモ.md", "a\tb.md", "%20.md", "x|`y`.md"]
    root = tree(tmp_path / "root", {name: f"word{number}" for number, name in enumerate(names)})
    queries = {f"q{number}": (f"word{number}", [name]) for number, name in enumerate(names)}
    found = compared(root, queries, "bm25", k=1)
    value = held(found, root, ["bm25"])
    assert [row["hit_paths"] for row in value["results"]] == [[name] for name in names]
    assert "日本/メモ.md" in as_json(found)


def test_the_same_bytes_twice(tmp_path: Path) -> None:
    """R1: two checkouts, their files written in another order, give one comparison; so do two runs."""
    made = []
    for name, files in (("one", NOTES), ("two", dict(reversed(NOTES.items())))):
        checkout = tree(tmp_path / name, files)
        manifest(checkout / "manifest.json", FOUR)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(checkout)
            for _ in range(2):
                found = compare_backends(Path("manifest.json"), Path(), ["bm25", "random", "popularity"], 2)
                made.append(tuple(form(found) for form in FORMATS))
    assert len(set(made)) == 1
    assert (found.manifest_path, found.search_root) == ("manifest.json", ".")


def test_digests_tell_what_was_searched(root: Path) -> None:
    before = compared(root, FOUR, "bm25")
    assert compared(root, FOUR, "bm25").corpus == before.corpus
    (root / "a.md").write_text("apple pie")
    after = compared(root, FOUR, "bm25")
    assert after.corpus.sha256 != before.corpus.sha256
    assert after.manifest == before.manifest
    fewer = compared(root, {"q1": FOUR["q1"]}, "bm25")
    assert fewer.manifest.sha256 != before.manifest.sha256


# What is searched


def test_what_is_searched_and_what_is_skipped(tmp_path: Path) -> None:
    """R1: text files alone, and whatever is passed over is counted."""
    root = tree(
        tmp_path / "root",
        {
            "README": "x",
            "a.md": "x",
            ".agents/learnings/b.md": "x",
            "src/c.rs": "x",
            "data.json": "[]",
            ".git/d.md": "x",
            ".hg/e.md": "x",
            "web/node_modules/f/f.md": "x",
            "binary.md": b"a\0b",
            "latin.md": b"\xe9t\xe9",
            "large.md": b"x" * ((1 << 20) + 1),
        },
    )
    (root / "link.md").symlink_to("a.md")
    with open(os.fsencode(root) + b"/\xff.md", "wb") as stream:
        stream.write(b"x")
    told = Told({})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eval_core.backend.load", lambda name: told)
        found = compared(root, {"q1": ("x", ["a.md"])}, "told")
    assert told.indexed == [[".agents/learnings/b.md", "README", "a.md", "src/c.rs"]]
    corpus = found.corpus.model_dump(exclude={"sha256"})
    assert corpus == {
        "documents": 4,
        "bytes": 4,
        "skipped": {
            "symlink": 1,
            "submodule": 0,
            "special": 0,
            "binary": 1,
            "not_utf8": 1,
            "excluded": 3,
            "oversize": ({"path": "large.md", "bytes": (1 << 20) + 1},),
        },
        "unnamable": 1,
    }
    for form in (as_table, as_markdown):
        assert "1 symlink, 1 binary, 1 not UTF-8, 1 too large, 3 left out by globs, 1 with a name" in form(
            found
        )


@pytest.mark.parametrize("linked", [False, True])
def test_the_manifest_is_never_searched(root: Path, register: Register, linked: bool) -> None:
    """It holds every query word for word: as a document it would be the best match of each."""
    told = Told({"apple": ["a.md"]})
    register("told", told)
    own = manifest(root / "eval.md", {"q1": ("apple", ["a.md"])})
    given = own
    if linked:
        given = root.parent / "manifest.json"
        given.symlink_to(own)
    found = compare_backends(given, root, ["told"], 1)
    assert sorted(NOTES) == sorted(told.indexed[0])
    assert found.backends[0].hits == 1


def test_other_globs(root: Path) -> None:
    path = manifest(root.parent / "m.json", FOUR)
    found = compare_backends(path, root, ["bm25"], 1, include=["**/*.md"], exclude=["b*"])
    assert (found.corpus.documents, found.backends[0].hits) == (1, 1)
    with pytest.raises(Misuse, match="begins with a slash"):
        compare_backends(path, root, ["bm25"], 1, include=["/a"])


# R3: paths


def vanish(root: Path) -> None:
    (root / "a.md").unlink()


def become_a_folder(root: Path) -> None:
    (root / "a.md").unlink()
    (root / "a.md").mkdir()


def lead_out(root: Path) -> None:
    (root / "a.md").unlink()
    (root / "a.md").symlink_to(tree(root.parent / "outside") / "a.md")


def lead_out_by_a_folder(root: Path) -> None:
    (root / "docs/c.txt").unlink()
    (root / "docs").rmdir()
    (root / "docs").symlink_to(tree(root.parent / "outside") / "docs")


def loop(root: Path) -> None:
    (root / "a.md").unlink()
    (root / "a.md").symlink_to("a.md")


def become_a_pipe(root: Path) -> None:
    (root / "a.md").unlink()
    os.mkfifo(root / "a.md")


def nothing(root: Path) -> None:
    pass


def link_out(root: Path) -> None:
    (root / "link.md").symlink_to(tree(root.parent / "outside") / "a.md")


def link_within(root: Path) -> None:
    (root / "link.md").symlink_to("a.md")


def with_a_space(root: Path) -> None:
    (root / "a b.md").unlink()


@pytest.mark.parametrize(
    ("answer", "before", "meanwhile", "told"),
    [
        ("../outside/a.md", link_out, nothing, "'../outside/a.md' holds '..'"),
        ("docs/../a.md", nothing, nothing, "'docs/../a.md' holds '..'"),
        ("/etc/hostname", nothing, nothing, "'/etc/hostname' is absolute"),
        ("link.md", link_out, nothing, "'link.md' leads out of the search root"),
        ("link.md", link_within, nothing, "'link.md' is a file that is not in the corpus"),
        ("docs", nothing, nothing, "'docs' is not a file"),
        ("", nothing, nothing, "'' is not a file"),
        ("never.md", nothing, nothing, "'never.md' does not exist below the search root"),
        ("a.md\0", nothing, nothing, "'a.md\\x00' does not exist"),
        ("./a.md", nothing, nothing, "'./a.md' is a file that is not in the corpus"),
        ("a.md", nothing, vanish, "'a.md' does not exist below the search root"),
        ("a.md", nothing, become_a_folder, "'a.md' is not a file"),
        ("a.md", nothing, become_a_pipe, "'a.md' is not a file"),
        ("a.md", nothing, lead_out, "'a.md' leads out of the search root"),
        ("a.md", nothing, loop, "'a.md' does not exist below the search root"),
        ("docs/c.txt", nothing, lead_out_by_a_folder, "'docs/c.txt' leads out of the search root"),
        ("a%20b.md", nothing, with_a_space, "'a%20b.md' (a b.md) does not exist below the search root"),
    ],
)
def test_a_path_that_is_no_file_of_the_root_is_refused(
    root: Path,
    register: Register,
    answer: str,
    before: Callable[[Path], None],
    meanwhile: Callable[[Path], None],
    told: str,
) -> None:
    """R3: when it is returned, whatever it was when the corpus was made; backend, query and path are named, and the
    query is in no figure."""

    def reply(request: object) -> list[str]:
        meanwhile(root)
        return ["b.md", answer]

    tree(root, {"a b.md": "fig"})
    before(root)
    register("told", Told({"first": reply, "second": ["b.md"]}))
    found = compared(root, {"q1": ("first", ["b.md"]), "q2": ("second", ["b.md"])}, "told")
    [report] = found.backends
    [error] = report.errors
    assert error.message.startswith("backend 'told', query 'q1': id ")
    assert told in error.message
    assert [row.id for row in report.results] == ["q2"]
    assert (report.hits, report.any_relevant_at_k, report.mean_reciprocal_rank) == (1, 1.0, 1.0)
    assert (report.health.scored, report.health.errored, report.queries) == (1, 1, 2)
    assert (found.exit_code, found.reason) == (3, "queries-errored")
    for form in FORMATS:
        assert "queries-errored" in form(found).replace("\\", "")


def test_a_link_within_the_root_is_followed(root: Path, register: Register) -> None:
    """R3: a file that became a link to another file of the root is a file of the root."""

    def reply(request: object) -> list[str]:
        (root / "a.md").unlink()
        (root / "a.md").symlink_to("b.md")
        return ["a.md"]

    register("told", Told({"apple": reply}))
    assert compared(root, {"q1": ("apple", ["a.md"])}, "told").exit_code == 0


def test_the_root_may_be_reached_by_a_link(root: Path) -> None:
    """R3: it is the place that counts, not the way to it."""
    link = root.parent / "link"
    link.symlink_to(root)
    found = compared(link, FOUR, "bm25")
    assert (found.exit_code, found.backends[0].hits) == (0, 4)


@pytest.mark.parametrize(
    ("truth", "told"),
    [
        ("../outside/a.md", "holds '..'"),
        ("/etc/hostname", "is absolute"),
        ("link.md", "leads out of the search root"),
        ("linked/a.md", "leads out of the search root"),
    ],
)
def test_ground_truth_outside_of_the_root_is_refused(root: Path, truth: str, told: str) -> None:
    """R3: every one of them, before anything is measured."""
    link_out(root)
    (root / "linked").symlink_to(root.parent / "outside")
    with pytest.raises(Faults) as caught:
        compared(root, {"q1": ("apple", ["a.md"]), "q2": ("x", [truth]), "q3": ("y", [truth])}, "bm25")
    assert len(caught.value.faults) == 2
    assert all(repr(truth) in str(fault) and told in str(fault) for fault in caught.value.faults)


# R8: evidence


@pytest.mark.parametrize(
    ("queries", "words"),
    [
        ({}, "no query ran: the manifest holds none"),
        ({"q1": ("zebra", ["a.md"]), "q2": ("yak", ["b.md"])}, "every backend scores zero; queries: 2"),
        (
            {"q1": ("apple", ["gone.md"])},
            "every backend scores zero; queries: 1; 1 of 1 ground-truth paths do not",
        ),
    ],
)
def test_nothing_shown_is_no_evidence(root: Path, queries: Queries, words: str) -> None:
    """R8: exit 1 and the reason in every format."""
    found = compared(root, queries, "bm25", "overlap")
    assert exit_code(found) == 1
    assert (found.reason, (found.why or "")[: len(words)]) == ("comparison-vacuous", words)
    for form in FORMATS:
        assert "comparison-vacuous" in form(found)
        assert words in form(found)
    value = json.loads(as_json(found))
    assert (value["exit_code"], value["reason"]) == (1, "comparison-vacuous")
    assert value["backends"][1]["any_relevant_at_k"] == 0


def test_a_legacy_array_of_which_nothing_is_left(root: Path) -> None:
    """R8: entries without a path are no queries."""
    path = legacy(root.parent / "old.json", [("apple", []), ("banana", [])])
    found = compare_backends(path, root, ["bm25"], 2)
    assert exit_code(found) == 1
    assert found.why == "no query ran: the manifest holds none (2 without ground truth left out)"


def test_one_hit_of_one_backend_is_evidence(root: Path, register: Register) -> None:
    """R8: that the others score zero is the finding."""
    register("nought", Told({}))
    found = compared(root, FOUR, "nought", "bm25")
    assert [report.hits for report in found.backends] == [0, 4]
    assert (exit_code(found), found.reason) == (0, None)
    assert "reason" not in json.loads(as_json(found))


def test_an_errored_query_is_not_a_zero(root: Path, register: Register) -> None:
    """R8: it is in no mean, and exit 3 comes before exit 1."""
    register("told", Told({"apple": BackendError("no luck"), "banana": ["b.md"]}))
    found = compared(root, {name: FOUR[name] for name in ("q1", "q2")}, "told", "bm25")
    assert (found.backends[0].any_relevant_at_k, found.backends[0].health.errored) == (1.0, 1)
    assert (exit_code(found), found.why) == (3, "queries without a sound answer (told: 1 of 2)")
    assert found.health.model_dump(exclude={"duplicates", "excess", "restarts"}) == {
        "scored": 3,
        "errored": 1,
        "unscored": 0,
    }
    register("told", Told({"apple": BackendError("no luck")}))
    assert exit_code(compared(root, {"q1": FOUR["q1"]}, "told")) == 3
    for form in FORMATS:
        assert "no luck" in form(found)


@pytest.mark.parametrize(
    ("failure", "outcomes"),
    [
        (CouldNot("backend-failed", "gone"), ["errored", "unscored", "unscored", "unscored"]),
        (BackendError("no"), ["errored", "errored", "errored", "unscored"]),
        (SystemExit(1), ["errored", "errored", "errored", "unscored"]),
        (7, ["errored", "errored", "errored", "unscored"]),
    ],
)
def test_a_backend_that_is_gone_is_not_asked_again(
    root: Path, register: Register, failure: object, outcomes: list[str]
) -> None:
    told = Told(dict.fromkeys(["apple", "banana", "cherry", "date"], failure))
    register("told", told)
    found = compared(root, FOUR, "told", "bm25")
    assert [row.outcome for row in found.backends[0].errors] == outcomes
    assert len(told.asked) == outcomes.count("errored")
    assert told.closed == 1
    assert found.backends[1].hits == 4
    assert exit_code(found) == 3
    assert "–" in as_table(found)


def test_failures_that_are_not_in_a_row_do_not_end_the_asking(root: Path, register: Register) -> None:
    no = BackendError("no")
    register("told", Told({"one": no, "two": no, "three": ["a.md"], "four": no, "five": no}))
    queries = {f"q-{word}": (word, ["a.md"]) for word in ("one", "two", "three", "four", "five")}
    [report] = compared(root, queries, "told").backends
    assert (report.health.errored, report.health.unscored, report.health.scored) == (4, 0, 1)


def test_what_is_cleaned_is_counted(root: Path, register: Register) -> None:
    """Repeated and surplus ids neither raise nor fill a ranking; equal scores stand in order of their ids."""
    register(
        "told",
        Told(
            {
                "apple": ["b.md", "b.md", "a.md", "src/d.py"],
                "banana": Reply(["docs/c.txt", "b.md"], [1.0, 1.0]),
                "cherry": BackendError("again", restarted=True),
            }
        ),
    )
    [report] = compared(root, {name: FOUR[name] for name in ("q1", "q2", "q3")}, "told").backends
    assert [row.result_paths for row in report.results] == [("b.md", "a.md"), ("b.md", "docs/c.txt")]
    assert (report.health.duplicates, report.health.excess, report.health.restarts) == (1, 1, 1)


# Wrong usage


ARMS = """\
[arms."mine"]
dataset = "set"
backend = "bm25"
options.k1 = 2.0

[arms."bm25"]
dataset = "set"
backend = "bm25"
"""


def test_arms_are_compared_as_backends_are(root: Path, register: Register) -> None:
    """R1, A1: an arm of eval.toml by its name, with its options; a name that is both says which is meant."""
    (root.parent / "eval.toml").write_text(ARMS)
    workspace = load_workspace(root.parent / "eval.toml")
    path = manifest(root.parent / "manifest.json", {"q1": ("apple", ["a.md"])})
    found = compare_backends(path, root, ["mine", "arm:bm25", "backend:bm25"][:2], 2, workspace=workspace)
    assert [report.backend for report in found.backends] == ["mine", "bm25"]
    assert [report.implementation["k1"] for report in found.backends] == [2.0, 1.5]
    for name, code, told in (
        ("bm25", "backend-ambiguous", "Write  arm:bm25  or  backend:bm25"),
        ("mien", "backend-unknown", "did you mean 'mine'?"),
        ("arm:nothing", "arm-unknown", "there is no arm 'nothing'"),
        ("backend:mine", "backend-unknown", "there is no backend 'mine'"),
    ):
        with pytest.raises(Misuse) as caught:
            compare_backends(path, root, [name], 2, workspace=workspace)
        assert caught.value.code == code and told in str(caught.value)


def test_an_unknown_backend_is_told_with_the_nearest(root: Path) -> None:
    with pytest.raises(Misuse, match=r"there is no backend 'bm26'; did you mean 'bm25'\?") as caught:
        compared(root, FOUR, "random", "bm26")
    assert caught.value.code == "backend-unknown"
    with pytest.raises(Misuse, match="there is no backend 'bm26'"):  # before anything else is looked at
        compare_backends(root / "absent.json", root / "absent", ["random", "bm26"], 2)


def test_a_backend_is_compared_once(root: Path) -> None:
    """R1: case and white space aside, as in the older form."""
    found = compared(root, FOUR, "bm25", " BM25", "random", "bm25")
    assert [report.backend for report in found.backends] == ["bm25", "random"]
    assert found.notes == ("backend 'bm25' was named more than once; it is compared once",)
    for form in FORMATS:
        assert found.notes[0] in form(found)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"k": 0}, Misuse, "k = 0: should be at least 1"),
        ({"backends": []}, Misuse, "no backend was given"),
        ({"backends": [""]}, Misuse, "there is no backend ''"),
        ({"backends": ["jsonl"]}, Misuse, "the option is required"),
        ({"root": "absent"}, Misuse, "there is no such folder"),
        ({"root": "root/a.md"}, Misuse, "is not a folder"),
        ({"root": "empty"}, Misuse, "there is no text to search: gave no documents: there is no file"),
        ({"manifest": "absent.json"}, Misuse, "no such manifest"),
        ({"manifest": "root/a.md"}, Misuse, "not JSON"),
    ],
)
def test_wrong_usage_is_told(root: Path, change: dict[str, Any], error: type[Exception], words: str) -> None:
    base = root.parent
    (base / "empty").mkdir()
    manifest(base / "m.json", FOUR)
    given: dict[str, Any] = {"manifest": "m.json", "root": "root", "backends": ["bm25"], "k": 2} | change
    with pytest.raises(error, match=words):
        compare_backends(base / given["manifest"], base / given["root"], given["backends"], given["k"])


def test_a_backend_that_cannot_index_is_closed_and_told(root: Path, register: Register) -> None:
    class Broken(Told):
        def index(self, corpus: object) -> None:
            raise RuntimeError("no room")

    broken = Broken({})
    register("broken", broken)
    with pytest.raises(CouldNot, match="backend 'broken': cannot index: RuntimeError: no room"):
        compared(root, FOUR, "broken")
    assert broken.closed == 1


def test_a_backend_that_fails_at_closing_has_answered(root: Path, register: Register) -> None:
    class Slamming(Told):
        def close(self) -> None:
            raise OSError("stuck")

    register("slamming", Slamming({"apple": ["a.md"]}))
    found = compared(root, {"q1": FOUR["q1"]}, "slamming")
    assert (exit_code(found), found.notes) == (
        0,
        ("backend 'slamming' failed when it was closed: OSError: stuck",),
    )


def test_where_a_manifest_is_looked_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R1: below the search root first, then from here; where both have one, a note says which was read."""
    monkeypatch.chdir(root.parent)
    here = manifest(root.parent / "m.json", {"here": FOUR["q1"]})

    def read() -> tuple[str, str, int]:
        found = compare_backends(Path("m.json"), Path("root"), ["bm25"], 2)
        return found.backends[0].results[0].id, found.manifest_path, len(found.notes)

    assert read() == ("here", "m.json", 0)
    manifest(root / "m.json", {"below": FOUR["q1"]})
    assert read() == ("below", "root/m.json", 1)
    found = compare_backends(here, Path("root"), ["bm25"], 2)
    assert found.manifest_path == here.as_posix()
    assert found.backends[0].results[0].id == "here"


# Read back, and shown


def test_a_comparison_reads_back(root: Path, register: Register) -> None:
    """R1"""
    register("told", Told({"apple": ["a.md"], "banana": BackendError("no"), "cherry": ["a.md"]}))
    for names in (("bm25",), ("bm25", "told")):
        found = compared(root, FOUR, *names)
        path = root.parent / "comparison.json"
        path.write_text(as_json(found), "utf-8")
        assert read_comparison(path) == found
        assert as_json(read_comparison(path)) == as_json(found)


def also_scored(value: Any) -> None:
    """A query more than there are rows, in the sum too."""
    value["backends"][0]["health"]["scored"] += 1
    value["health"]["scored"] += 1


def at(*keys: str | int, to: Any) -> Callable[[Any], None]:
    """A change of one value of the JSON."""

    def change(value: Any) -> None:
        for key in keys[:-1]:
            value = value[key]
        value[keys[-1]] = to

    return change


@pytest.mark.parametrize(
    "change",
    [
        at("hits", to=2),
        at("backends", 0, "hits", to=1),
        at("backends", 0, "mean_reciprocal_rank", to=1),
        at("backends", 0, "avg_precision_at_k", to=float("nan")),
        at("backends", 0, "missing_ground_truth", to=0),
        at("backends", 0, "results", 0, "precision_at_k", to=0.5),
        at("backends", 0, "results", 0, "result_paths", to=["a.md"]),
        at("backends", 0, "results", 0, "result_paths", to=["b.md", "b.md"]),
        at("backends", 0, "results", 0, "result_paths", to=["b.md", "a.md", "x.md"]),
        at("backends", 0, "results", 0, "first_relevant_rank", to=1),
        at("backends", 0, "results", 0, "any_relevant", to=1),
        at("backends", 0, "results", to=[]),
        at("backends", 0, "queries", to=1),
        at("backends", 0, "k", to=3),
        at("backends", 0, "health", "scored", to=3),
        also_scored,
        at("health", "errored", to=1),
        at("k", to=3),
        at("queries", to=3),
        at("exit_code", to=1),
        at("reason", to="comparison-vacuous"),
        at("backends", to=[]),
        at("extra", to=1),
        at("schema", to="retrieval-comparison-v2"),
    ],
)
def test_an_edited_comparison_does_not_load(
    root: Path, register: Register, change: Callable[[Any], None]
) -> None:
    """R1: whoever promotes by it reads what was measured, and not what was written since."""
    register("told", Told({"apple": ["b.md", "a.md"], "banana": ["b.md"]}))
    queries = {"q1": ("apple", ["a.md"]), "q2": ("banana", ["b.md", "gone.md"])}
    altered(root, compared(root, queries, "told", "bm25"), change)


@pytest.mark.parametrize(
    "change",
    [
        at("hits", to=3),
        at("mean_reciprocal_rank", to=0.5),
        at("backend", to="random"),
        at("results", 0, "query", to="other"),
        at("results", to=None),
    ],
)
def test_the_fields_of_the_older_form_are_held_too(root: Path, change: Callable[[Any], None]) -> None:
    """R1: with one backend its figures stand twice, and both are the same."""
    altered(root, compared(root, FOUR, "bm25"), change)


def altered(root: Path, found: Comparison, change: Callable[[Any], None]) -> None:
    value = json.loads(as_json(found))
    path = root.parent / "comparison.json"
    path.write_text(json.dumps(value))
    assert read_comparison(path) == found
    change(value)
    path.write_text(json.dumps(value))
    with pytest.raises(Refused) as caught:
        read_comparison(path)
    assert caught.value.code == "comparison-malformed"


def test_backends_that_were_asked_other_things_are_no_comparison(root: Path) -> None:
    """R1: each backend of a comparison answered the same queries."""
    value = json.loads(as_json(compared(root, FOUR, "bm25", "random")))
    path = root.parent / "comparison.json"
    for report, words in (
        (value["backends"][0], "a backend stands twice"),
        (copy.deepcopy(value["backends"][1]), "random: was asked something else"),
    ):
        if report["backend"] == "random":
            report["results"][0]["query"] = "something easier"
        path.write_text(json.dumps({**value, "backends": [value["backends"][0], report]}))
        with pytest.raises(Refused, match=words):
            read_comparison(path)


def test_a_page_holds_no_query(root: Path) -> None:
    """It may be kept below the search root, where it would be the best match of each."""
    page = as_markdown(compared(root, {"q1": ("apple", ["gone.md"]), "q2": ("banana", ["b.md"])}, "bm25"))
    assert "apple" not in page
    assert "| q1 | – |" in page


def test_texts_of_others_stay_texts(root: Path, register: Register) -> None:
    """Neither the terminal nor the page is steered by a path, an id or an error."""
    register("told", Told({"x": BackendError("\x1b[2J@someone <img src=x> [a](b) | c")}))
    found = compared(root, {"q|1\x1b": ("x", ["gone`|<b>.md"]), "q2": ("\x1b[2J", ["a.md"])}, "told")
    assert "\x1b[2J" not in as_table(found)
    page = as_markdown(found)
    assert "\x1b" not in page
    assert "<img" not in page.replace("\\<", "")
    assert "@someone" not in page
    assert "| q\\|1\\\\x1b | errored |" in page
    assert "gone\\`\\|\\<b\\>.md" in page


def test_many_lines_are_cut_and_counted(tmp_path: Path) -> None:
    root = tree(tmp_path / "root")
    found = compared(root, {f"q{n}": ("zebra", [f"gone{n}.md"]) for n in range(25)}, "bm25")
    for form in (as_table, as_markdown):
        text = form(found)
        assert "Missing ground truth (25)" in text
        assert text.count("… 5 more") == 2
        assert "q19" in text
        assert "q20" not in text


def test_json_sends_nothing_to_the_terminal(tmp_path: Path) -> None:
    """A query is somebody's text: what would act on a terminal is an escape, and reads back as it was."""
    (tmp_path / "a.md").write_text("apple")
    query = "apple \x9b31m \u202e"
    manifest = {"id": "m", "queries": [{"id": "q1", "query": query, "ground_truth": ["a.md"]}]}
    (tmp_path / "m.json").write_text(json.dumps(manifest))
    text = as_json(compare_backends(tmp_path / "m.json", tmp_path, ["bm25"], 1))
    assert all(line.isprintable() for line in text.split("\n"))
    assert json.loads(text)["results"][0]["query"] == query
