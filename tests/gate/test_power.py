"""`eval-gate power`: what a set can resolve, from labels alone, and the odds of its floors; nothing is measured."""

from __future__ import annotations

import itertools
import json
import math
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from scipy import stats

from eval_core.reports.report import read_report
from eval_core.scoring import metrics
from eval_gate.policy import FLOORS, Budget, read_floors
from eval_gate.power.models import Power, expected
from eval_gate.power.odds import line, of_report

if TYPE_CHECKING:
    from conftest import Done, Space


def power(space: Space, *arguments: str | Path) -> Done:
    return space.gate("power", *arguments)


def validated(done: Done) -> Any:
    """The JSON of a call that ended well, held against the schema of its model."""
    assert done.code == 0, done.err
    value = json.loads(done.out)
    schema = Power.model_json_schema(by_alias=True)
    jsonschema.validate(value, schema, jsonschema.Draft202012Validator)
    return value


def test_a_set_of_27_queries_can_resolve_this(space: Space) -> None:
    """A6: the smallest change that the set can resolve is told, worked here by hand and by scipy."""
    (target,) = validated(power(space, "notes", "--format", "json"))["targets"]
    assert (target["name"], target["arm"], target["set"], target["split"]) == (
        "notes",
        True,
        "things",
        "test",
    )
    assert (target["documents"], target["unscorable"], target["must_pass"]) == (40, 0, 0)
    whole = target["overall"]
    assert (whole["n"], whole["margin"], whole["floorable"]) == (27, 2, True)
    assert whole["one_query_points"] == pytest.approx(100 / 27)
    # Two-sided mid-p of L losses alone: 2 (2^-L - 2^-L / 2) = 2^-L, below 5% from 5 on.
    assert whole["significant"] == 5
    assert whole["significant_points"] == pytest.approx(500 / 27)
    assert whole["detectable_points"] == pytest.approx(15.2, abs=0.05)
    assert stats.binom.sf(2, 27, whole["detectable_points"] / 100) == pytest.approx(0.8, abs=1e-6)
    # One relevant document among 40: rank r with probability 1 / 40.
    scores = {one["measure"]: (one["binary"], one["random"]) for one in target["measures"]}
    assert list(scores) == metrics.names((1, 5, 10))
    assert scores["hit@1"] == (True, pytest.approx(1 / 40))
    assert scores["recall@10"] == (False, pytest.approx(10 / 40))
    assert scores["all@5"] == (True, pytest.approx(5 / 40))
    assert scores["precision@10"] == (False, pytest.approx(1 / 40))
    assert scores["mrr"] == (False, pytest.approx(sum(1 / rank for rank in range(1, 11)) / 40))


@pytest.mark.parametrize("grades", [[1], [2, 1], [1, 1, 3], [1] * 6])
@pytest.mark.parametrize("limit", [1, 3, 6, 9])
def test_what_a_random_ranking_scores_is_the_mean_over_all_rankings(grades: list[int], limit: int) -> None:
    """Every order of six documents, scored by the measures themselves."""
    names = metrics.names(tuple(k for k in (1, 2, 5, 9) if k <= limit))
    sums = dict.fromkeys(names, 0.0)
    for order in itertools.permutations(range(6)):
        ranks = [order[place] + 1 for place in range(len(grades))]
        pairs = [(grade, rank if rank <= limit else None) for grade, rank in zip(grades, ranks, strict=True)]
        for name, value in metrics.score(pairs, names, min(6, limit)).items():
            sums[name] += value
    for name in names:
        found = expected(metrics.parse(name), grades, 6, limit)
        assert found == pytest.approx(sums[name] / math.factorial(6)), name


@pytest.mark.parametrize(
    ("measure", "grades", "candidates"),
    [("recall@5", [1, 1], 1), ("recall@5", [], 4), ("judged@5", [1], 4), ("ndcg@5(gain=exp)", [1], 4)],
)
def test_a_chance_that_is_not_known_is_not_made_up(
    measure: str, grades: Sequence[int], candidates: int
) -> None:
    with pytest.raises(ValueError, match=r"cannot be ranked|not known"):
        expected(metrics.parse(measure), grades, candidates, 10)


def test_a_query_finds_only_what_its_scope_filter_time_and_exclusions_leave(space: Space) -> None:
    """k / N counts the documents that the query may find, not those of the corpus."""
    documents: dict[str, Any] = {}
    for number in range(1, 41):
        meta: dict[str, Any] = {"kind": "memo" if number <= 8 else "plan"}
        if number <= 20:
            meta["scopes"] = ["s"]
        documents[f"d{number:02}"] = {"text": "text", "metadata": meta}
    folder = space.root / "set"
    queries = {
        "free": {"text": "a"},
        "scoped": {"text": "b", "metadata": {"scope": "s"}},
        "less": {"text": "c", "metadata": {"exclude": ["d30", "d31", "d32", "d33", "d34", "d35"]}},
        "kind": {"text": "d", "metadata": {"kind": "memo"}},
        "both": {"text": "e", "metadata": {"kind": "plan", "scope": "s", "exclude": ["d10", "d11"]}},
    }
    space.set(queries, {}, [(name, "d12" if name == "both" else "d05", 1) for name in queries])
    (folder / "corpus.jsonl").write_text(
        "".join(json.dumps({"_id": name, **fields}) + "\n" for name, fields in documents.items())
    )
    chances = {}
    for filtered in ("", 'filter_from = ["kind"]'):
        (space.root / "eval.toml").write_text(
            f'[arms.own]\ndataset = "set"\nbackend = "bm25"\nlimit = 4\ncutoffs = [4]\n{filtered}\n'
        )
        (target,) = validated(power(space, "own", "--format", "json"))["targets"]
        assert target["filter"] == (["kind"] if filtered else [])
        chances[filtered] = next(one["random"] for one in target["measures"] if one["measure"] == "recall@4")
    assert chances[""] == pytest.approx((4 / 40 + 4 / 20 + 4 / 34 + 4 / 40 + 4 / 18) / 5)
    # The filter leaves 8 memos, and within the scope 12 plans, two of which are excluded.
    assert chances['filter_from = ["kind"]'] == pytest.approx((4 / 40 + 4 / 20 + 4 / 34 + 4 / 8 + 4 / 10) / 5)


def test_a_query_about_a_time_finds_what_was_valid_then(space: Space) -> None:
    space.set(
        {"now": "a", "then": {"text": "b", "metadata": {"time": {"as_of": 0}}}},
        {f"d{number}": "text" for number in range(1, 9)},
        [("now", "d8", 1), ("then", "d1", 1)],
    )
    # From epoch 1 on, d8 stands in the place of d1, and d7 is there too.
    lines = [{"epoch": 1, "id": "d8", "supersedes": "d1"}, {"epoch": 1, "id": "d7"}]
    (space.root / "set" / "timeline.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    (target,) = validated(power(space, "notes", "--format", "json"))["targets"]
    chance = next(one["random"] for one in target["measures"] if one["measure"] == "recall@5")
    assert chance == pytest.approx((5 / 7 + 5 / 6) / 2)  # now all but d1; then d1 to d6


def test_categories_are_resolved_by_themselves_and_the_small_ones_named(space: Space) -> None:
    space.put_queries(
        {**row, "metadata": {"category": "some" if place < 20 else "few", "must_pass": place == 0}}
        for place, row in enumerate(space.queries())
    )
    (target,) = validated(power(space, "set", "--format", "json"))["targets"]
    parts = {name: (part["n"], part["floorable"]) for name, part in target["categories"].items()}
    assert parts == {"some": (20, True), "few": (7, False)}
    assert target["categories"]["few"]["one_query_points"] == pytest.approx(100 / 7)
    assert target["must_pass"] == 1
    done = power(space, "set")
    assert " Too small for floors of their own: few." in done.out.splitlines()
    assert "27 queries, 40 documents, 1 must pass" in done.out


def test_fewer_queries_than_a_test_needs_show_nothing(space: Space) -> None:
    whole = validated(power(space, "--n", "2", "--flip-rate", "0.3", "--format", "json"))["queries"]
    assert (whole["significant_points"], whole["margin"], whole["detectable_points"]) == (None, 2, None)
    text = power(space, "--n", "2", "--flip-rate", "0.3").out
    assert text.count("never") == 2
    assert "30.0% of its queries flip" in text


@pytest.mark.parametrize(("n", "margin", "points"), [(27, 2, 15), (55, 3, 9.8), (120, 4, 5.6), (300, 8, 3.8)])
def test_the_published_drops_are_told(space: Space, n: int, margin: int, points: float) -> None:
    value = validated(power(space, "--n", str(n), "--format", "json"))
    assert (value["targets"], value["rules"]) == ([], None)
    assert value["queries"]["margin"] == margin
    assert value["queries"]["detectable_points"] == pytest.approx(points, abs=0.25 if n == 27 else 0.1)


def test_the_published_table_is_told(space: Space) -> None:
    arguments = ("--n", "27", "--hits", "26", "--recover", "0.2")
    value = validated(power(space, *arguments, "--format", "json"))["rules"]
    assert (value["n"], value["hits"], value["recover"]) == (27, 26, 0.2)
    rows = [line.split() for line in power(space, *arguments).out.splitlines()]
    assert ["net", "lost", "over", "2", "0.002", "0.012", "0.443", "0.729", "0.891", "0.989"] in rows
    page = power(space, *arguments, "--format", "markdown").out.splitlines()
    assert "| net lost over 2 | 0.002 | 0.012 | 0.443 | 0.729 | 0.891 | 0.989 |" in page


# The odds of a policy.


@pytest.mark.parametrize(
    ("option", "rate", "source"), [((), 0.01, None), (("--flip-rate", "0.03"), 0.03, "option")]
)
def test_the_odds_of_the_arms_policy_are_those_of_its_baseline(
    space: Space, option: tuple[str, ...], rate: float, source: str | None
) -> None:
    (target,) = validated(power(space, "notes", *option, "--format", "json"))["targets"]
    told = target["policy"]
    floors = read_floors(space.floors).arms["notes"]
    if source is None:
        source = "assumed" if floors.odds is None else "floors"
        rate = rate if floors.odds is None else floors.odds.flip_rate
    assert (told["flip_rate"], told["flip_rate_from"]) == (rate, source)
    found = of_report(read_report(space.baseline), floors, Budget(), flip_rate=rate)
    assert told["false_alarm"] == found.false_alarm
    assert {at["points"]: at["fails"] for at in told["drops"]} == found.detects
    assert (told["headline"], told["margin"], told["max_net_lost"]) == ("hit@1", 2, 2)
    assert (told["metrics"], told["max_drop"]) == (["hit@1", "recall@10", "mrr"], {"recall@10": 2.0})
    assert told["sentence"] == line(found)
    text = power(space, "notes", *option).out
    assert line(found) in text
    assert "P(fail)" in text


def test_the_odds_follow_the_budget(space: Space) -> None:
    """26 of 27 at rank 1 and one at rank 2: with recall@10 free to fall, three lost fail, and nothing else does."""

    def held() -> Any:
        (target,) = validated(power(space, "notes", "--flip-rate", "0.01", "--format", "json"))["targets"]
        return target["policy"]

    before = held()
    assert before["false_alarm"] == pytest.approx(1 - 0.99**26 * (1 - 0.01 * 0.99), abs=0.001)
    space.budgets.write_text('schema = "budgets-v1"\n[arms.notes]\nmax_drop = {"recall@10" = 100.0}\n')
    after = held()
    assert after["exact"]
    assert after["false_alarm"] < 0.003
    assert after["drops"][1]["fails"] == pytest.approx(0.49, abs=0.03)


def test_floors_that_were_derived_bring_their_flip_rate(space: Space) -> None:
    for _ in range(3):
        assert space.measure().code == 0
    done = space.gate("floor", "--margin", "derived", "--reason", "measured", "--write")
    assert done.code == 0, done.err
    assert space.gate("baseline", "--write").code == 0
    (target,) = validated(power(space, "notes", "--format", "json"))["targets"]
    rate = 1 - 0.05 ** (1 / (27 * 4))
    assert target["policy"]["flip_rate_from"] == "floors"
    assert target["policy"]["flip_rate"] == pytest.approx(rate)


def no_policy(space: Space) -> None:
    shutil.rmtree(space.root / "policy")


def no_baseline(space: Space) -> None:
    space.baseline.unlink()


def another_arm(space: Space) -> None:
    path = space.root / "eval.toml"
    path.write_text(path.read_text().replace('"notes"', '"others"'))


def unmeasured(space: Space) -> None:
    space.budgets.write_text('schema = "budgets-v1"\n[arms.notes]\nmax_drop = {"recall@7" = 1.0}\n')


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (no_policy, None),
        (no_baseline, "no odds of the policy: policy/baselines/notes.json: no such baseline"),
        (another_arm, "no floors in policy/floors.toml, so there are no odds to tell"),
        (unmeasured, "no odds of the policy: recall@7 is held by the policy, and there are no values of it"),
    ],
)
def test_without_a_whole_policy_the_labels_are_told_all_the_same(
    space: Space, change: Callable[[Space], None], note: str | None
) -> None:
    change(space)
    (target,) = validated(power(space, "--format", "json"))["targets"]
    assert (target["policy"], target["note"]) == (None, note)
    assert target["overall"]["n"] == 27
    text = power(space).out
    assert note is None or note in text
    assert "P(fail)" not in text


def test_a_policy_that_does_not_read_is_no_policy(space: Space) -> None:
    space.edit(space.floors, "margin = 2", 'margin = "2"')
    done = power(space, "notes")
    assert done.code == 2
    assert "margin" in done.err


# What is asked for.


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nots",), "'nots' is no arm of eval.toml and no dataset folder; did you mean 'notes'?"),
        (("adapter.py",), "'adapter.py' is no arm of eval.toml and no dataset folder"),
        (("--config", "other.toml"), "other.toml: no such file"),
        (("--n", "0"), "--n"),
        (("--hits", "3"), "--hits 3 goes with --n"),
        (("--n", "3", "--hits", "4"), "is at most as many"),
        (("--n", "3", "--recover", "0.1"), "--recover goes with --n and --hits"),
        (("--flip-rate", "nan"), "is not a finite number"),
        (("--flip-rate", "1.1"), "--flip-rate"),
        (("--format", "xml"), "--format"),
    ],
)
def test_what_cannot_be_asked_is_wrong_usage(space: Space, arguments: tuple[str, ...], words: str) -> None:
    done = power(space, *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_the_faults_of_a_set_are_told_with_their_lines(space: Space) -> None:
    space.rejudge(lambda rows: [*rows, "q01\td99\t1"])
    done = power(space, "set")
    assert done.code == 2
    assert "qrels/test.tsv:30" in done.err


def test_a_folder_needs_no_workspace_and_nothing_is_written(space: Space) -> None:
    (space.root / "eval.toml").unlink()
    before = space.tree()
    (target,) = validated(power(space, "set", "--format", "json"))["targets"]
    assert (target["name"], target["arm"], target["policy"]) == ("set", False, None)
    assert target["overall"]["n"] == 27
    assert space.tree() == before


def test_a_corpus_that_is_not_built_costs_its_own_arm_alone(space: Space) -> None:
    shutil.copytree(space.root / "set", space.root / "far")
    (space.root / "far" / "dataset.toml").write_text(
        'name = "far"\n[[corpus.source]]\ntype = "dir"\nname = "own"\npath = "texts"\n'
    )
    (space.root / "far" / "corpus.jsonl").unlink()
    with (space.root / "eval.toml").open("a") as stream:
        stream.write('\n[arms."far"]\ndataset = "far"\nbackend = "bm25"\n')
    done = power(space)
    assert done.code == 3
    assert "far: .eval/corpora/far/corpus.jsonl: the corpus of 'far' is not built yet" in done.err
    assert "eval-core reconstruct far" in done.err
    assert "27 queries, 40 documents" in done.out


def test_arms_that_ask_the_same_are_told_once(space: Space) -> None:
    with (space.root / "eval.toml").open("a") as stream:
        stream.write('\n[arms."again"]\ndataset = "set"\nbackend = "bm25"\n')
        stream.write('\n[arms."deep"]\ndataset = "set"\nbackend = "bm25"\nlimit = 20\ncutoffs = [20]\n')
    assert len(validated(power(space, "--format", "json"))["targets"]) == 3
    heads = [row for row in power(space).out.splitlines() if "  set things" in row]
    assert [head.partition("  ")[0] for head in heads] == ["notes, again", "deep"]


def test_help_has_examples(space: Space) -> None:
    done = power(space, "--help")
    assert done.code == 0
    assert "eval-gate power --n 27 --hits 26 --recover 0.2" in done.out


def test_the_figures_of_470_published_questions_are_those_of_an_independent_computation(
    space: Space, shared_data: Callable[[str], Path]
) -> None:
    """The set of a published ranking: counts, resolution and chance by category, from its own file and scipy."""
    results = [
        result
        for result in json.loads(shared_data("longmemeval/rankings_bm25_n500.json").read_text())["results"]
        if not result["abstention"]
    ]
    sessions = {name for r in results for name in (*r["evidence_sessions"], *r["retrieved_sessions"])}
    folder = space.root / "sessions"
    (folder / "qrels").mkdir(parents=True)
    for name, lines in (
        ("corpus", [{"_id": name, "text": name} for name in sorted(sessions)]),
        (
            "queries",
            [
                {"_id": r["question_id"], "text": "?", "metadata": {"category": r["question_type"]}}
                for r in results
            ],
        ),
    ):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    rows = [
        f"{r['question_id']}\t{name}\t1\n" for r in results for name in sorted(set(r["evidence_sessions"]))
    ]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows))
    (target,) = validated(power(space, "sessions", "--format", "json"))["targets"]

    categories = [r["question_type"] for r in results]
    assert target["overall"]["n"] == 470
    assert {name: part["n"] for name, part in target["categories"].items()} == {
        name: categories.count(name) for name in set(categories)
    }
    for part in (target["overall"], *target["categories"].values()):
        n = part["n"]
        wanted = next(m for m in range(n) if stats.binom.sf(m, n, 0.01) <= 0.01)
        assert part["margin"] == wanted
        assert stats.binom.sf(wanted, n, part["detectable_points"] / 100) == pytest.approx(0.8, abs=1e-6)
        assert part["floorable"] == (n >= 20)
    chances = {one["measure"]: one["random"] for one in target["measures"]}
    counts = [len(set(r["evidence_sessions"])) for r in results]
    assert max(counts) > 1
    assert chances["recall@10"] == pytest.approx(10 / len(sessions))
    for measure, k in (("hit@1", 1), ("hit@10", 10)):
        none = [stats.hypergeom.pmf(0, len(sessions), relevant, k) for relevant in counts]
        assert chances[measure] == pytest.approx(1 - sum(none) / 470, rel=1e-6)
    whole = [stats.hypergeom.pmf(relevant, len(sessions), relevant, 10) for relevant in counts]
    assert chances["all@10"] == pytest.approx(sum(whole) / 470, rel=1e-6)


def test_the_policy_folder_is_the_one_that_is_named(space: Space) -> None:
    (space.root / "policy").rename(space.root / "bar")
    (target,) = validated(power(space, "notes", "--policy", "bar", "--format", "json"))["targets"]
    assert (space.root / "bar" / FLOORS).exists()
    assert target["policy"]["margin"] == 2
