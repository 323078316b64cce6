"""`eval-gate power`: what a set can resolve, from labels alone, and the odds of its bars; nothing is measured."""

from __future__ import annotations

import itertools
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from scipy import stats

from eval_core.policy.chance import expected
from eval_core.policy.files import read_policy
from eval_core.scoring import metrics
from eval_gate.power.models import Power
from eval_gate.power.odds import odds_of, sentences
from eval_gate.power.resolution import resolved

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
    """A6: the smallest change that the set can resolve, worked here by hand and by scipy."""
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


@pytest.mark.parametrize("grades", [[1], [2, 1], [3, 1, 1], [1] * 6])
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
    space.set({"q1": "a", "q2": "b"}, judgements=[("q1", "d01", 1), ("q2", "d02", 1)])
    (target,) = validated(power(space, "set", "--flip-rate", "0.3", "--format", "json"))["targets"]
    whole = target["overall"]
    assert (whole["significant_points"], whole["margin"], whole["detectable_points"]) == (None, 2, None)
    text = power(space, "set", "--flip-rate", "0.3").out
    assert text.count("never") == 2
    assert "30.0% of its queries flip" in text


@pytest.mark.parametrize(("n", "margin", "points"), [(27, 2, 15), (55, 3, 9.8), (120, 4, 5.6), (300, 8, 3.8)])
def test_the_published_drops_are_what_n_queries_resolve(n: int, margin: int, points: float) -> None:
    found = resolved(n, 0.01)
    assert found.margin == margin
    assert found.detectable_points == pytest.approx(points, abs=0.25 if n == 27 else 0.1)


# The odds of a policy.


def held(space: Space, *arguments: str) -> Any:
    """What is said of the policy of the arm."""
    (target,) = validated(power(space, "notes", *arguments, "--format", "json"))["targets"]
    return target["policy"]


def test_the_bars_of_the_arm_are_shown_with_their_odds(space: Space) -> None:
    """26 of 27 at rank 1 and one at rank 2; the runs agree, so that nothing is said of flips."""
    found = held(space)
    assert (found["margin"], found["runs"], found["runs_agree"]) == (2, 2, True)
    bars = {bar["measure"]: (bar["rule"], bar["misses_allowed"], bar["queries"]) for bar in found["bars"]}
    assert bars == {
        "recall@10": ("drop", None, 0),  # one query is 3.7 points, and 2.0 may be lost
        "ndcg@10": ("floor", None, 2),
        "hit@1": ("floor", 3, 2),
        "mrr": ("floor", None, 2),
    }
    # Any query that is lost is lost of recall@10, and no query is missed there: 1 - 0.95^27 but for the one at rank 2,
    # which comes to the top with 1%.
    assert [at["points"] for at in found["drops"]] == [5, 10, 15, 20]
    assert found["drops"][0]["fails"] == pytest.approx(1 - 0.95**26 * (0.01 + 0.99 * 0.95), abs=1e-9)
    assert (found["false_alarms"], found["exact"]) == ([], True)
    arm = read_policy(space.root / "policy").arm("notes")
    assert found["sentences"] == list(sentences(arm, odds_of(arm)))
    lines = [line.strip() for line in power(space, "notes").out.splitlines()]
    assert found["sentences"][0] in lines
    assert "Its runs agree in every ranking." in lines
    assert ["hit@1", "1", "miss", "3", "of", "27", "floor", "2", "queries"] in [
        line.split() for line in lines
    ]


def test_a_flip_rate_that_is_named_is_answered_whether_the_runs_agree_or_not(space: Space) -> None:
    found = held(space, "--flip-rate", "0.02")
    (alarm,) = found["false_alarms"]
    assert alarm["flip_rate"] == 0.02
    assert found["sentences"][-1].startswith(
        "Unchanged code fails in 42% of runs"
    )  # and is not found fault with
    assert alarm["fails"] == pytest.approx(1 - 0.98**26 * (0.02 + 0.98 * 0.98), abs=1e-9)


def test_runs_that_differ_raise_false_alarms_and_a_plain_sentence(space: Space) -> None:
    """Two runs of which one loses two queries: the drop widens to 2/27 + 1/27, so that three lost are within it."""
    assert space.measure(space.losing(2) | {"q27": 2}).code == 0
    assert space.measure().code == 0
    space.policy()
    found = held(space)
    assert not found["runs_agree"]
    assert [at["flip_rate"] for at in found["false_alarms"]] == [0.01, 0.03]
    often = any(at["fails"] > 0.10 for at in found["false_alarms"])
    assert any("More than one run in ten" in one for one in found["sentences"]) == often
    assert any(one.startswith("Its runs differ in their rankings: ") for one in found["sentences"])


def test_round2_b8_a_set_without_recall_at_10_has_its_deepest_recall_and_headline_barred(
    space: Space,
) -> None:
    """B8: with limit = 5 no rule held the set. Its recall at 5 has the drop of 2.0 points, and its headline one too."""
    path = space.root / "eval.toml"
    path.write_text(path.read_text() + "limit = 5\ncutoffs = [1, 5]\n")
    for _ in range(2):
        assert space.measure().code == 0
    space.policy()
    bars = {bar["measure"]: bar for bar in held(space)["bars"]}
    assert (bars["recall@5"]["rule"], bars["recall@5"]["lowest"]) == ("drop", pytest.approx(0.98))
    assert bars["hit@1"]["misses_allowed"] == 3
    rows = [row.split() for row in power(space, "notes").out.splitlines()]
    assert ["recall@5", "1.0000", "0.9800", "drop", "none"] in rows


def test_round2_b11_the_odds_follow_the_budget_and_are_stored_nowhere(space: Space) -> None:
    """B11: after a change of the budget `check` said the odds of the old one, and `power` others. None are kept, so
    that what is said follows from the files as they stand."""
    before = held(space)
    choice = ("--max-drop", "recall@10=100", "--reason", "max_drop=a test")
    done = space.gate("floor", "notes", *choice, "--write", "--format", "json")
    assert done.code == 0, done.err
    after = held(space)
    assert json.loads(done.out)["arms"]["notes"]["odds"] == after["sentences"] != before["sentences"]
    # Three lost fail, and nothing else does: a sum of binomial terms, of 27 queries of which one is at rank 2.
    assert before["drops"][1]["fails"] > 0.9
    assert after["drops"][1]["fails"] == pytest.approx(stats.binom.sf(2, 26, 0.1), abs=0.05)
    kept = b"".join(content for content in space.tree("policy").values() if content)
    assert b"odds" not in kept
    assert b"detects" not in kept
    done = space.check()
    assert done.code == 0
    assert "detects" not in done.out
    assert "odds" not in done.out


def no_policy(space: Space) -> None:
    shutil.rmtree(space.root / "policy")


def no_evidence(space: Space) -> None:
    space.evidence.unlink()


def another_arm(space: Space) -> None:
    path = space.root / "eval.toml"
    path.write_text(path.read_text().replace('"notes"', '"others"'))


def edited(space: Space) -> None:
    text = space.floors.read_text()
    space.floors.write_text(text.replace('"hit@1" = 3', '"hit@1" = 4'))


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (no_policy, None),
        (no_evidence, "no odds of the policy: policy/evidence/notes.jsonl: there is no such evidence file"),
        (another_arm, "no floors in policy/floors.toml, so there are no odds"),
        (edited, "no odds, since check refuses the policy: misses_allowed.hit@1 = 4: the evidence gives 3"),
    ],
)
def test_without_a_whole_policy_the_labels_are_read_all_the_same(
    space: Space, change: Callable[[Space], None], note: str | None
) -> None:
    change(space)
    (target,) = validated(power(space, "--format", "json"))["targets"]
    assert (target["policy"], target["note"]) == (None, note)
    assert target["overall"]["n"] == 27
    text = power(space).out
    assert note is None or note in text
    assert "Catches" not in text


def test_a_policy_that_does_not_read_is_no_policy(space: Space) -> None:
    space.edit(space.floors, "n = 27", 'n = "27"')
    done = power(space, "notes")
    assert done.code == 2
    assert "arms.notes.n" in done.err


# Usage.


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("nots",),
            "there is neither an arm of eval.toml nor a dataset folder 'nots'; did you mean 'notes'?",
        ),
        (("adapter.py",), "there is neither an arm of eval.toml nor a dataset folder 'adapter.py'"),
        (("--config", "other.toml"), "other.toml: there is no such file"),
        (("--flip-rate", "nan"), "is not a finite number"),
        (("--flip-rate", "1.1"), "--flip-rate"),
        (("--format", "xml"), "--format"),
    ],
)
def test_wrong_usage(space: Space, arguments: tuple[str, ...], words: str) -> None:
    done = power(space, *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_the_faults_of_a_set_are_named_with_their_lines(space: Space) -> None:
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


def test_arms_that_measure_the_same_queries_share_what_they_resolve(space: Space) -> None:
    with (space.root / "eval.toml").open("a") as stream:
        stream.write('\n[arms."again"]\ndataset = "set"\nbackend = "bm25"\n')
        stream.write('\n[arms."deep"]\ndataset = "set"\nbackend = "bm25"\nlimit = 20\ncutoffs = [20]\n')
    assert len(validated(power(space, "--format", "json"))["targets"]) == 3
    heads = [row for row in power(space).out.splitlines() if "  set things" in row]
    assert [head.partition("  ")[0] for head in heads] == ["notes, again", "deep"]


def test_help_has_examples(space: Space) -> None:
    done = power(space, "--help")
    assert done.code == 0
    assert "eval-gate power memory-bm25" in done.out


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
    assert target["policy"]["margin"] == 2
