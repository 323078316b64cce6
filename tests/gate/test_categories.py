"""Parts of a set: floors by category, queries that must pass, and a rule on every measure of every category."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Space

Ranks = dict[str, "int | str | None"]

TEXTS = {f"q{number:02}": f"where is thing {number} kept" for number in range(1, 28)}


def categorised(lexical: int, **more: Any) -> dict[str, Any]:
    """The 27 queries, the first of category `lexical`, the others of `graph`; `more` is metadata of some of them."""
    return {
        name: {
            "text": text,
            "metadata": {"category": "lexical" if place < lexical else "graph"} | more.get(name, {}),
        }
        for place, (name, text) in enumerate(TEXTS.items())
    }


def floored(space: Space, *options: str) -> None:
    """Measure twice, and write floors and baseline."""
    for _ in range(2):
        assert space.measure().code == 0
    for arguments in (("floor", "--write", *options), ("baseline", "--write")):
        done = space.gate(*arguments)
        assert done.code == 0, done.err


def remade(space: Space, queries: dict[str, Any]) -> None:
    """The workspace with another set, without policy and without runs."""
    shutil.rmtree(space.root / "policy")
    shutil.rmtree(space.root / ".eval")
    space.set(queries)


@pytest.fixture(scope="module")
def parts(gated: Path, make: Callable[[Path], Space], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace with 20 queries of one category and 7 of another, gated by category."""
    root = tmp_path_factory.mktemp("parts") / "space"
    shutil.copytree(gated, root)
    space = make(root)
    remade(space, categorised(20))
    floored(space, "--by-category")
    return root


@pytest.fixture
def split(parts: Path, make: Callable[[Path], Space], tmp_path: Path) -> Space:
    """A copy of the workspace that is gated by category."""
    shutil.copytree(parts, tmp_path / "split")
    return make(tmp_path / "split")


def held(space: Space) -> dict[str, Any]:
    arm: dict[str, Any] = tomllib.loads(space.floors.read_text())["arms"]["notes"]
    return arm


def lost(*numbers: int, rank: int | None = 2) -> Ranks:
    """These queries at rank 2, the others, q27 too, at rank 1: a miss of hit@1 and half of mrr, all of recall@10."""
    return {f"q{number:02}": rank for number in numbers}


# --------------------------------------------------------------------------------------------- floors by category


@pytest.mark.parametrize(
    ("lexical", "floors"), [(20, {"lexical": 20}), (19, {}), (27, {"lexical": 27}), (7, {"graph": 20})]
)
def test_a_category_is_floored_from_20_queries_on(bare: Space, lexical: int, floors: dict[str, int]) -> None:
    """K2: in a smaller one a query is more than five points; it is told by the report, and no floor of it is made."""
    bare.set(categorised(lexical))
    for _ in range(2):
        assert bare.measure().code == 0
    assert bare.gate("floor", "--by-category", "--write").code == 0
    found = held(bare).get("categories", {})
    assert {name: part["n"] for name, part in found.items()} == floors
    for name, part in found.items():
        # q27, which is missed, is of the last category.
        missed = 1 if name == "graph" or lexical == 27 else 0
        n = part["n"]
        assert part["metrics"]["hit@1"] == {"max_misses": missed + 2}
        assert part["metrics"]["recall@10"]["floor"] == pytest.approx(1 - 2 / n, abs=1e-12)
        assert part["metrics"]["mrr"]["floor"] == pytest.approx(1 - missed / 2 / n - 2 / n, abs=1e-12)
    assert bare.gate("baseline", "--write").code == 0
    assert bare.check().code == 0


@pytest.mark.parametrize(
    ("ranks", "codes", "told"),
    [
        (lost(1, 2), [], ""),
        # Three of the one category are lost, and q27 of the other is won: overall as many misses as are allowed.
        (lost(1, 2, 3), ["floor-breached"], "hit@1 of lexical: 3 misses, and 2 are allowed"),
        (lost(1, 2, 24), [], ""),  # the small one is not floored
    ],
)
def test_a_category_that_loses_breaches_where_the_whole_does_not(
    split: Space, ranks: Ranks, codes: list[str], told: str
) -> None:
    """K1, M2: what one kind of query loses is not made up for by another."""
    assert split.check().code == 0
    assert split.measure(ranks).code == 0
    done = split.check()
    assert (done.code, done.codes) == (1 if codes else 0, codes)
    arm = done.verdict["arms"][0]
    assert [reason["message"] for reason in arm["reasons"]] == ([told] if told else [])
    graded = [(grade["category"], grade["metric"], grade["passed"]) for grade in arm["graded"]]
    assert graded == [
        (None, "hit@1", True),
        (None, "recall@10", True),
        (None, "mrr", True),
        ("lexical", "hit@1", not codes),
        ("lexical", "recall@10", True),
        ("lexical", "mrr", True),
    ]


def moved(space: Space) -> None:
    """One query is said to be of the other category."""
    space.put_queries({"_id": name, **query} for name, query in categorised(19).items())


def gone(space: Space) -> None:
    space.put_queries({"_id": name, "text": text} for name, text in TEXTS.items())


def unscorable(space: Space) -> None:
    """The task is what it was, and a query of the category can no longer be asked."""
    space.forge(space.report, one_less)


def one_less(report: Any) -> None:
    from eval_core.reports.models import ReportRow
    from eval_core.reports.report import summarise

    type_of = ReportRow
    row = report["rows"][3]
    row.update(outcome="unscorable", ids=[], metrics={}, detail="needs a filter")
    row["judged"][0]["rank"] = None
    report["health"].update(scored=26, unscorable=1)
    rows = [type_of.model_validate_json(json.dumps(row)) for row in report["rows"]]
    cutoffs = tuple(report["task"]["parts"]["cutoffs"])
    report["summary"] = summarise(rows, cutoffs).model_dump(mode="json")


@pytest.mark.parametrize(
    ("change", "codes", "count"),
    [
        (moved, ["queries-differ", "n-differs"], 19),
        (gone, ["queries-differ", "n-differs"], 0),
        (unscorable, ["n-differs", "n-differs"], 19),
    ],
)
def test_a_category_that_shrank_or_is_gone_is_refused(
    split: Space, change: Callable[[Space], None], codes: list[str], count: int
) -> None:
    """K3, M2: n of a category is exact, as n of the whole is."""
    change(split)
    if change is not unscorable:
        assert split.measure().code == 0
    done = split.check()
    assert (done.code, done.codes) == (1, codes)
    reason = done.verdict["arms"][0]["reasons"][-1]
    told = "queries of category 'lexical' were scored, and the floors are for exactly 20"
    assert reason["message"] == f"{count} {told}"
    assert 'eval-gate floor notes --reason "…" --write' in reason["remedy"]


def test_floors_of_a_category_stay_until_a_reason_says_otherwise(split: Space) -> None:
    """K5: they are made again without being asked for, and dropped or lowered only with a reason."""
    before = split.floors.read_bytes()
    assert split.gate("floor", "--write").code == 0
    assert split.floors.read_bytes() == before
    done = split.gate("floor", "--overall", "--write")
    assert (done.code, "notes[lexical]: the floors of the category would be dropped" in done.err) == (1, True)
    # Worse in the category, and no worse in the whole.
    for _ in range(2):
        assert split.measure(lost(1)).code == 0
    worse = split.evidence()[-4:]
    done = split.gate("floor", "notes", *worse, "--write")
    assert done.code == 1
    assert "notes[lexical]: the floor of hit@1 would fall from 0.9000 to 0.8500" in done.err
    assert split.floors.read_bytes() == before
    assert split.gate("floor", "notes", *worse, "--write", "--reason", "q01 is disputed").code == 0
    assert held(split)["categories"]["lexical"]["metrics"]["hit@1"] == {"max_misses": 3}
    assert split.gate("floor", "notes", *worse, "--overall", "--write", "--reason", "one set").code == 0
    assert "categories" not in held(split)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("{n = 20,", "{n = 28,", "n is 28, and the arm has 27 queries"),
        ("{n = 20,", "{n = 19,", 'categories."lexical".metrics."recall@10" = floor 0.9'),
        ("{n = 20,", "{n = 0,", "greater than or equal to 1"),
        ("{max_misses = 2}", "{max_misses = 3}", "gives max_misses 2"),
        ('lexical = {"hit@1" = 1.0', 'lexical = {"hit@1" = 0.95', "gives max_misses 3"),
        ('lexical = {"hit@1" = 1.0', 'lexical = {"hit@2" = 1.0', '"hit@2" has evidence and no floor'),
        ("lexical = {n = 20", "lexicla = {n = 20", 'categories."lexical" has evidence and no floor'),
    ],
)
def test_floors_of_a_category_that_were_moved_by_hand_do_not_load(
    split: Space, old: str, new: str, told: str
) -> None:
    """K2: they are what their own evidence, n and margin give."""
    text = split.floors.read_text()
    assert old in text, text
    split.floors.write_text(text.replace(old, new, 1))
    done = split.check()
    assert (done.code, told in done.err) == (2, True), done.err


@pytest.mark.parametrize("value", ["0.95", "1.0"])
def test_what_floors_say_of_a_category_is_held_against_the_copies(split: Space, value: str) -> None:
    """K5: a value and the floor that follows from it, edited together; as it was, it passes."""
    split.floors.write_text(
        split.floors.read_text().replace('lexical = {"hit@1" = 1.0', f'lexical = {{"hit@1" = {value}')
    )
    if value != "1.0":
        split.edit(split.floors, "{max_misses = 2}", "{max_misses = 3}")
    done = split.check()
    assert done.codes == ([] if value == "1.0" else ["evidence-differs"] * 2)


def test_a_category_and_its_evidence_deleted_together_are_noticed_by_the_bars_diff(split: Space) -> None:
    """K5: such floors agree with themselves; against another commit they are looser, and that is told."""
    split.commit()
    text = split.floors.read_text()
    lines = [
        line
        for line in text[: text.index("[arms.notes.categories")].splitlines()
        + text[text.index("[arms.notes.task]") :].splitlines()
        if not line.startswith("categories = ")
    ]
    split.floors.write_text("\n".join(lines) + "\n")
    done = split.check("--target", "HEAD")
    assert done.code == 0, done.out + done.err
    looser = [change["what"] for change in done.verdict["bar"] if change["looser"]]
    assert looser == [f"floor of {name} of lexical" for name in ("hit@1", "recall@10", "mrr")]


# ------------------------------------------------------------------------------------------ queries that must pass


MUST = {"must_pass": True}


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        (lost(6, 7), None),  # as many as the margin allows
        (lost(6, 27), None),
        (lost(5), "hit@1: query q05 must pass and lost; none is allowed"),
        (lost(5, 6), "hit@1: query q05 must pass and lost; none is allowed"),
        (lost(5, 9), "hit@1: 2 queries, q05, q09, must pass and lost; none is allowed"),
    ],
)
def test_a_query_that_must_pass_may_lose_nothing(bare: Space, ranks: Ranks, message: str | None) -> None:
    """K1: zero tolerance for the queries that say so, whatever margin the others have."""
    bare.set(categorised(27, q05=MUST, q09=MUST, q06={"must_pass": False}))
    floored(bare)
    assert bare.check().code == 0
    assert bare.measure(ranks).code == 0
    done = bare.check()
    (arm,) = done.verdict["arms"]
    assert [reason["message"] for reason in arm["reasons"]] == ([message] if message else [])
    assert done.codes == (["must-pass-lost"] if message else [])
    if message:
        assert {moved["query"] for moved in arm["lost"]} >= {"q05"}
        assert "must_pass" in arm["reasons"][0]["remedy"]


@pytest.mark.parametrize(
    ("rank", "codes"), [(1, []), (2, []), (3, ["must-pass-lost"]), (None, ["must-pass-lost"])]
)
def test_less_of_a_graded_measure_is_a_loss_too(bare: Space, rank: int | None, codes: list[str]) -> None:
    """K1: where the set's headline is mrr, from rank 2 to rank 3 is one, though the query is still answered."""
    bare.set(categorised(27, q27=MUST))
    bare.edit(bare.root / "set" / "dataset.toml", 'headline = "hit@1"', 'headline = "mrr"')
    floored(bare)
    bare.budgets.write_text('schema = "budgets-v1"\n[arms.notes.max_drop]\n"recall@10" = 100\n')
    assert bare.measure({"q27": rank}).code == 0
    done = bare.check()
    assert (done.code, done.codes) == (1 if codes else 0, codes)


def test_taking_the_mark_away_is_a_change_of_the_queries(bare: Space) -> None:
    """A4: what may lose nothing is part of what is asked."""
    bare.set(categorised(27, q05=MUST))
    floored(bare)
    bare.set(categorised(27))
    assert bare.measure(lost(5, 27)).code == 0
    assert bare.check().codes == ["queries-differ"]


def test_a_query_that_must_pass_and_never_did_gets_no_baseline(bare: Space) -> None:
    """S5: zero tolerance for what was never there would fail for ever, so it is said at once."""
    bare.set(categorised(27, q27=MUST))
    for _ in range(2):
        assert bare.measure().code == 0
    assert bare.gate("floor", "--write").code == 0
    done = bare.gate("baseline", "--write")
    assert (done.code, "query q27 must pass and lost" in done.err, "must_pass" in done.err) == (1, True, True)


# --------------------------------------------------------------------- every measure, overall and in each category


def rule(space: Space, text: str) -> None:
    space.budgets.write_text(f'schema = "budgets-v1"\n[arms.notes]\n{text}\n')


@pytest.mark.parametrize(
    ("points", "ranks", "messages"),
    [
        (2, {"q27": 2}, []),
        # One falls from rank 1 to 2: 3.70 points of hit@1 at n = 27, 1.85 of mrr; 5 and 2.5 in its category of 20.
        (
            4,
            lost(1, 27),
            [
                "hit@1 of lexical: 5.00 points below the baseline (1.0000 → 0.9500), and 4 are allowed everywhere"
            ],
        ),
        (5, lost(1, 27), []),
        (
            3.7,
            lost(1, 27),
            [
                "hit@1: 3.70 points below the baseline (0.9630 → 0.9259), and 3.7 are allowed everywhere",
                "hit@1 of lexical: 5.00 points below the baseline (1.0000 → 0.9500), and 3.7 are allowed everywhere",
            ],
        ),
        # What the whole gains does not make up for what a category loses.
        (
            4.9,
            lost(1),
            [
                "hit@1 of lexical: 5.00 points below the baseline (1.0000 → 0.9500), and 4.9 are allowed everywhere"
            ],
        ),
    ],
)
def test_every_measure_is_held_overall_and_in_each_category(
    split: Space, points: float, ranks: Ranks, messages: list[str]
) -> None:
    """M2: fail when any metric, overall or in a category, falls by more than so much; shown for hit@1."""
    assert split.check().code == 0
    assert split.measure(ranks).code == 0
    assert split.check().codes == []
    rule(split, f"max_drop_everywhere = {points}")
    done = split.check()
    arm = done.verdict["arms"][0]
    assert {reason["code"] for reason in arm["reasons"]} == ({"baseline-drop"} if messages else set())
    told = [reason["message"] for reason in arm["reasons"]]
    assert [message for message in told if message.startswith("hit@1")] == messages
    # The measures that are 1 where the document is first all fall alike; those that look deeper do not.
    fallen = {message.split(":")[0].split(" of ")[0] for message in told}
    assert fallen <= {"hit@1", "all@1", "recall@1", "precision@1", "ndcg@1", "mrr", "map"}
    assert done.code == (1 if messages else 0)


def test_two_points_are_0_02_of_a_metric(falling_set: Space) -> None:
    """M2: 0.02 passes, and more does not: one query of 50 passes, and of 49 not."""
    assert falling_set.check().code == 0
    rule(falling_set, 'max_drop_everywhere = 2\nmax_drop = { "recall@10" = 100 }')
    assert falling_set.core("measure", "-q").code == 0
    assert falling_set.check().code == 0
    answers = json.loads((falling_set.root / "answers.json").read_text())
    for count, code in ((1, 0), (2, 1)):
        less = {text: [] if place < count else ids for place, (text, ids) in enumerate(answers.items())}
        (falling_set.root / "answers.json").write_text(json.dumps(less))
        assert falling_set.core("measure", "-q").code == 0
        done = falling_set.check()
        assert (done.code, set(done.codes)) == (code, {"baseline-drop"} if code else set())


@pytest.fixture
def falling_set(bare: Space) -> Space:
    """A workspace of 50 queries, all found, without categories."""
    queries = {f"q{number:02}": f"where is thing {number} kept" for number in range(1, 51)}
    documents = {f"d{number:02}": f"thing {number}" for number in range(1, 62)}
    bare.set(queries, documents, [(name, name.replace("q", "d"), 1) for name in queries])
    answers = {text: [name.replace("q", "d")] for name, text in queries.items()}
    (bare.root / "answers.json").write_text(json.dumps(answers))
    for _ in range(2):
        assert bare.core("measure", "-q").code == 0
    for verb in ("floor", "baseline"):
        assert bare.gate(verb, "--write").code == 0
    return bare


@pytest.mark.parametrize(
    ("cutoffs", "told"),
    [
        ("[1, 5, 10]", None),
        ("[1, 3, 5, 10]", "hit@3 is held against the baseline, and the baseline lacks it"),
        ("[1, 10]", "hit@5 is held against the baseline, and the report lacks it"),
    ],
)
def test_a_measure_that_came_or_went_fails_where_all_are_held(
    split: Space, cutoffs: str, told: str | None
) -> None:
    """M2: missing on one side is no pass; where the rule is not asked for, it is no difference."""
    split.edit(split.root / "eval.toml", '"jsonl"', f'"jsonl"\ncutoffs = {cutoffs}')
    assert split.measure().code == 0
    assert split.check().code == 0
    rule(split, "max_drop_everywhere = 100")
    done = split.check()
    assert (done.code, set(done.codes)) == ((1, {"metric-missing"}) if told else (0, set()))
    reasons = done.verdict["arms"][0]["reasons"]
    assert not told or told in [reason["message"] for reason in reasons]
    assert all("cutoffs" in reason["remedy"] for reason in reasons)


@pytest.mark.parametrize("less", ["the report", "the baseline"])
def test_a_category_that_came_or_went_fails_where_all_are_held(split: Space, less: str) -> None:
    """M2: a category on one side alone is refused, whichever side it is."""
    from eval_core.reports.report import read_report
    from eval_gate.check.grading import drops_everywhere
    from eval_gate.policy import Budget

    whole = read_report(split.report)
    held_to = Budget(max_drop_everywhere=2)
    assert list(drops_everywhere(held_to, whole, whole)) == []
    parts = {name: part for name, part in whole.summary.categories.items() if name != "graph"}
    summary = whole.summary.model_copy(update={"categories": parts})
    other = whole.model_copy(update={"summary": summary})
    sides = (whole, other) if less == "the report" else (other, whole)
    (reason,) = drops_everywhere(held_to, *sides)
    assert (reason.code, reason.word) == ("category-missing", "refused")
    assert reason.message == f"category 'graph' is held against the baseline, and {less} lacks it"
    assert reason.remedy
    assert list(drops_everywhere(Budget(), *sides)) == []
