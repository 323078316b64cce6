"""What an arm will ask of what: the two keys that say so, and every fault of sets and arms before it is asked."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from core_support import (
    DEFINITION,
    DOCUMENTS,
    INLINE,
    JUDGEMENTS,
    QUERIES,
    Change,
    Space,
    Told,
    rewrite,
    told,
)

from eval_core.errors import CouldNot, Faults, Misuse

# --------------------------------------------------------------------------------------------- the two keys


def arm_text(text: str) -> Change:
    return lambda space: text


def renamed_split(space: Space) -> None:
    (space.root / "set/qrels/test.tsv").rename(space.root / "set/qrels/dev.tsv")


TASK_CHANGES: dict[str, tuple[Change, set[str]]] = {
    "a query's text": (rewrite(queries={**QUERIES, "q1": "query 1, differently"}), {"queries"}),
    "a note in metadata": (
        rewrite(queries={**QUERIES, "q1": {"text": "query 1", "metadata": {"note": "x"}}}),
        set(),
    ),
    "metadata with a meaning": (
        rewrite(queries={**QUERIES, "q1": {"text": "query 1", "metadata": {"category": "x"}}}),
        {"queries"},
    ),
    "queries in another order": (rewrite(queries=dict(reversed(list(QUERIES.items())))), set()),
    "judgements in another order": (rewrite(judgements=JUDGEMENTS[::-1]), set()),
    "documents in another order": (rewrite(documents=dict(reversed(list(DOCUMENTS.items())))), set()),
    "a query gone": (
        rewrite(queries=dict(list(QUERIES.items())[1:]), judgements=JUDGEMENTS[1:]),
        {"query_ids", "queries", "judgements"},
    ),
    "a query renamed": (
        rewrite(
            queries={("q9" if n == "q1" else n): t for n, t in QUERIES.items()},
            judgements=[("q9", "d1", 1), *JUDGEMENTS[1:]],
        ),
        {"query_ids", "queries", "judgements"},
    ),
    "a grade": (rewrite(judgements=[("q1", "d1", 2), *JUDGEMENTS[1:]]), {"judgements"}),
    "a label": (rewrite(judgements=[("q1", "d7", 1), *JUDGEMENTS[1:]]), {"judgements"}),
    "a judgement of grade 0": (rewrite(judgements=[*JUDGEMENTS, ("q1", "d7", 0)]), {"judgements"}),
    "a document's text": (rewrite(documents={**DOCUMENTS, "d8": "thing 8, edited"}), {"corpus"}),
    "a document's metadata": (
        rewrite(documents={**DOCUMENTS, "d8": {"text": "thing 8", "metadata": {"a": 1}}}),
        {"corpus"},
    ),
    "a document gone": (rewrite(documents={n: t for n, t in DOCUMENTS.items() if n != "d8"}), {"corpus"}),
    "the set's kind": (rewrite(definition='name = "things"\nkind = "code"\n'), {"kind"}),
    "the set's name and description": (
        rewrite(definition=DEFINITION.replace("things", "stuff") + 'version = "2"\ndescription = "d"\n'),
        set(),
    ),
    "a recipe": (rewrite(definition=INLINE), {"recipe"}),
    "a timeline": (rewrite(timeline_jsonl='{"epoch": 1, "id": "d8"}\n'), {"timeline"}),
    "links": (rewrite(links_jsonl='{"from": "d1", "to": "d2"}\n'), {"links"}),
    "concepts": (rewrite(concepts_json='{"a": ["b"]}\n'), {"concepts"}),
    "the split": (renamed_split, {"split"}),
    "the limit": (arm_text("limit = 20\n"), {"limit"}),
    "the cut-offs": (arm_text("cutoffs = [1, 10]\n"), {"cutoffs"}),
    "repetitions": (arm_text("repetitions = 1\n"), set()),
    "options": (arm_text("options.k1 = 2\n"), set()),
    "the lane": (arm_text('lane = "owner"\n'), set()),
}


@pytest.mark.parametrize("case", TASK_CHANGES)
def test_a_part_of_the_task_changes_exactly_when_what_it_stands_for_does(things: Space, case: str) -> None:
    """M7: set, cut-offs, limit, scale; a change of anything that decides the number is named."""
    things.register("told", told())
    things.config.unlink(missing_ok=True)
    things.arm()
    before = things.plans()[0].task()
    change, expected = TASK_CHANGES[case]
    text = change(things)
    if text is not None:
        things.config.unlink()
        things.arm(text)
    after = things.plans()[0].task()
    assert {part for part in before.parts if before.parts[part] != after.parts[part]} == expected
    assert (before.sha256 == after.sha256) is (not expected)


def test_a_filter_is_a_part_of_the_task(kinds: Space) -> None:
    kinds.register("told", Told({}, {"filter"}))

    def task(text: str) -> Any:
        kinds.config.unlink(missing_ok=True)
        kinds.arm(text)
        return kinds.plans()[0].task()

    plain, filtered = task(""), task('filter_from = ["kind"]\n')
    assert {p for p in plain.parts if plain.parts[p] != filtered.parts[p]} == {"filter"}
    assert task('filter_from = ["kind", "kind"]\n') == filtered


def system(space: Space, text: str, backend: Told | None = None) -> Any:
    space.register("told", backend or told())
    space.config.unlink(missing_ok=True)
    space.arm(text)
    (made,) = space.plans()
    return made.system(backend or told(), "none")


def test_the_system_changes_with_options_and_with_what_the_backend_says_of_itself(things: Space) -> None:
    plain = system(things, "")
    assert plain.parts == {
        "backend": "told",
        "options": {},
        "files": {},
        "scoping": "none",
        "expand": False,
        "implementation": {"told": 1},
    }
    assert system(things, "").sha256 == plain.sha256
    other = system(things, "options = { k1 = 2, list = [1, 'a'] }\n")
    assert other.parts["options"] == {"k1": 2, "list": [1, "a"]}
    assert other.sha256 != plain.sha256
    backend = told()
    backend.describe = lambda: {"library": "2.0"}  # type: ignore[method-assign]
    assert system(things, "", backend).parts["implementation"] == {"library": "2.0"}
    assert system(things, "limit = 30\n").sha256 == plain.sha256


def test_the_bytes_of_a_file_that_an_option_names_are_a_part_of_the_system(
    things: Space, tmp_path: Path
) -> None:
    """An adapter's own code is its system: the option stays as written, and the digest tells that it changed."""
    script, absolute = things.root / "adapter.py", tmp_path / "weights.bin"
    script.write_text("one")
    absolute.write_text("two")
    text = (
        "options.command = ['{python}', 'adapter.py', '{corpus}', 'set', 'no-such-file', '--flag']\n"
        f"options.model = {{ path = '{absolute}' }}\noptions.text = '''{'x' * 5000}'''\noptions.n = 3\n"
    )
    before = system(things, text)
    assert set(before.parts["files"]) == {"adapter.py", str(absolute)}
    script.write_text("one, changed")
    after = system(things, text)
    assert after.parts["options"] == before.parts["options"]
    assert after.parts["files"]["adapter.py"] != before.parts["files"]["adapter.py"]
    assert after.parts["files"][str(absolute)] == before.parts["files"][str(absolute)]
    assert after.sha256 != before.sha256


def test_round2_b5_files_that_a_glob_of_the_arm_matches_are_a_part_of_the_system(things: Space) -> None:
    """B5: what a command imports is its system, where the arm says so; the backend never gets the globs."""
    (things.root / "lib" / "deep").mkdir(parents=True)
    for name in ("lib/one.mjs", "lib/deep/two.mjs", "lib/three.txt"):
        (things.root / name).write_text("one")
    text = "options.files = ['lib/**/*.mjs']\n"
    before = system(things, text)
    assert set(before.parts["files"]) == {"lib/one.mjs", "lib/deep/two.mjs"}
    (made,) = things.plans()
    assert made.arm.backend_options == {}
    (things.root / "lib/deep/two.mjs").write_text("two")
    assert system(things, text).sha256 != before.sha256


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ("['lib/*.mjs']", "matches no file"),
        ("['/lib/*.mjs']", "begins with a slash"),
        ("'lib/*.mjs'", "give a list of globs"),
        ("[1]", "give a list of globs"),
    ],
)
def test_globs_that_look_at_nothing_are_faults_of_the_arm(things: Space, files: str, said: str) -> None:
    with pytest.raises(Faults) as caught:
        system(things, f"options.files = {files}\n")
    (fault,) = caught.value.faults
    assert said in str(fault)
    assert ": :" not in str(fault)
    lines = (things.root / "eval.toml").read_text().splitlines()
    assert lines[(fault.line or 0) - 1].startswith("options.files")


# --------------------------------------------------------------------------------------------- sets and faults


def test_the_judged_document_gone_from_a_moving_source_stops_the_measuring(things: Space) -> None:
    """K5: exit 3, `judged-document-absent`."""
    notes = things.root / "notes"
    notes.mkdir()
    for name in ("a.md", "b.md"):
        (notes / name).write_text(name)
    source = '[[corpus.source]]\ntype = "dir"\nname = "notes"\npath = "../notes"\n'
    things.set({}, {"q1": "query 1"}, [("q1", "notes/a.md", 1)], DEFINITION + source)
    backend = Told({"query 1": ["notes/a.md"]})
    report = things.measure(backend, text="")
    assert (report.dataset.documents, report.n) == (2, 1)
    (notes / "c.md").write_text("new")
    drifted = things.measure(backend)
    changed = {p for p in report.task.parts if report.task.parts[p] != drifted.task.parts[p]}
    assert changed == {"corpus"}
    (notes / "a.md").unlink()
    with pytest.raises(CouldNot) as caught:
        things.measure(backend)
    assert (caught.value.code, caught.value.exit_code) == ("judged-document-absent", 3)
    assert "judges document 'notes/a.md', which is not in the corpus" in str(caught.value)


@pytest.mark.parametrize(
    ("headline", "keys", "fault"),
    [
        (
            "recall@20",
            "limit = 10",
            ".limit: the headline of things cannot be measured: recall@20 looks at 20",
        ),
        ("recall@10", "limit = 5\ncutoffs = [1, 5]", ".limit: the headline of things cannot be measured"),
        (
            "judged@10",
            "cutoffs = [1, 5]",
            ".cutoffs: the headline of things cannot be measured: judged@10 needs",
        ),
        ("recall@20", "", None),
    ],
)
def test_round2_b9_an_arm_that_cannot_measure_the_headline_is_a_fault_with_its_line(
    things: Space, headline: str, keys: str, fault: str | None
) -> None:
    """B9: a headline that no report holds was measured without complaint, and silently not floored."""
    definition = f'name = "things"\nheadline = "{headline}"\nlimit = 20\n'
    rewrite(definition=definition)(things)
    things.register("told", told())
    things.arm(keys)
    if fault is None:
        (made,) = things.plans()
        assert made.headline == headline
        return
    with pytest.raises(Faults) as refused:
        things.plans()
    (found,) = refused.value.faults
    line = things.config.read_text().splitlines()[(found.line or 0) - 1]
    assert fault.partition(":")[0].lstrip(".") == line.split(" = ")[0]
    assert fault in str(found)


def test_round2_b9_a_set_whose_own_limit_is_below_its_headline_is_a_fault(things: Space) -> None:
    rewrite(definition='name = "things"\nheadline = "recall@20"\nlimit = 10\n')(things)
    things.register("told", told())
    things.arm()
    with pytest.raises(
        Faults, match="headline 'recall@20': recall@20 looks at 20 documents, and the limit is 10"
    ):
        things.plans()


@pytest.mark.parametrize("headline", ["rprec", "ndcg", "mrr@10"])
def test_round2_b9_a_headline_that_is_no_usual_measure_is_in_every_row_and_summary(
    things: Space, headline: str
) -> None:
    rewrite(definition=f'name = "things"\nheadline = "{headline}"\n')(things)
    report = things.measure(told(q2=["d1", "d2"], q3=[]), text="")
    # Found at 1 in four queries, at 2 in one, nowhere in one; each has one relevant document.
    value = {"rprec": 4 / 6, "mrr@10": 4.5 / 6, "ndcg": (4 + 1 / 1.584962500721156) / 6}[headline]
    assert report.summary.overall.metrics[headline] == pytest.approx(value)
    assert all(headline in row.metrics for row in report.rows)


@pytest.mark.parametrize(("cutoffs", "headline"), [("[1, 5, 10]", "recall@10"), ("[1, 5]", "recall@5")])
def test_a_set_that_names_no_headline_takes_recall_at_10_or_at_its_largest_cutoff(
    things: Space, cutoffs: str, headline: str
) -> None:
    things.register("told", told())
    things.arm(f"cutoffs = {cutoffs}")
    (made,) = things.plans()
    assert made.headline == headline


def test_faults_of_sets_and_arms_are_told_together(space: Space) -> None:
    """The configuration's and both sets', each with its line, before anything is measured."""
    space.set(DOCUMENTS, QUERIES, [*JUDGEMENTS, ("q1", "d99", 1)], INLINE, name="one")
    space.set(
        {**DOCUMENTS, "a b": "t"},
        QUERIES,
        [*JUDGEMENTS, ("q1", "d1", 2)],
        INLINE.replace("things", "two"),
        name="two",
    )
    space.set(DOCUMENTS, QUERIES, JUDGEMENTS, name="three")
    space.arm(name="a", backend="bm52", dataset="one")
    space.arm("options.k11 = 1", name="b", backend="bm25", dataset="one")
    space.arm("options.k1 = 'x'", name="c", backend="bm25", dataset="two")
    space.arm("split = 'tset'", name="d", backend="bm25", dataset="three")
    space.arm(name="e", backend="bm25", dataset="thre")
    with pytest.raises(Faults) as caught:
        space.plans()
    told_ = [str(fault).replace(f"{space.root}/", "").split("  (")[0] for fault in caught.value.faults]
    assert told_ == [
        "eval.toml:3: arms.\"a\".backend: there is no backend 'bm52'; did you mean 'bm25'?",
        "eval.toml:8: arms.\"b\".options: backend 'bm25': k11: there is no such option; did you mean 'k1'?",
        "eval.toml:12: arms.\"c\".options: backend 'bm25': k1 = 'x': give a number from 0.001 to 1000",
        "two/corpus.jsonl:9: _id 'a b' holds white space or control characters; write it as 'a%20b'",
        "one/qrels/test.tsv:8: judges document 'd99', which is not in the corpus",
        "two/qrels/test.tsv:8: judges 'd1' for 'q1' again (first at line 2)",
        "eval.toml:16: arms.\"d\".split: three/qrels/tset.tsv: there is no such split; did you mean 'test'?",
        "eval.toml:18: arms.\"e\".dataset: thre: there is no such dataset folder; did you mean 'three'?",
    ]


def test_a_fault_at_hand_comes_before_a_source_that_is_absent(things: Space) -> None:
    source = '[[corpus.source]]\ntype = "dir"\nname = "notes"\npath = "../absent"\n'
    things.set(DOCUMENTS, QUERIES, JUDGEMENTS, DEFINITION + source)
    things.arm(backend="bm52")
    with pytest.raises(Faults, match="there is no backend"):
        things.plans()
    things.config.unlink()
    things.arm(backend="bm25")
    with pytest.raises(CouldNot):
        things.plans()


def test_two_sets_of_one_name_are_refused(space: Space) -> None:
    for name in ("one", "two"):
        space.set(DOCUMENTS, QUERIES, JUDGEMENTS, INLINE, name=name)
        space.arm(name=name, backend="bm25", dataset=name)
    with pytest.raises(Misuse, match=r"has the name 'things', as .*; give one of them another name"):
        space.plans()


@pytest.mark.parametrize(
    ("queries", "text", "passes"),
    [(1, "", 59), (15, "", 4), (27, "", 3), (59, "", 3), (60, "", 3), (60, "repetitions = 1\n", 1)],
)
def test_a_small_set_is_timed_until_it_has_the_samples_of_a_p95(
    things: Space, queries: int, text: str, passes: int
) -> None:
    """M8: 59 samples bound it; the arm's own number holds whatever it is."""
    things.arm(text, backend="random")
    (plan,) = things.plans()
    many = dataclasses.replace(plan, queries=(plan.queries * 60)[:queries])
    assert many.repetitions == passes
