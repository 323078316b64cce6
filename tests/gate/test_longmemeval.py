"""The gate on the rankings of two systems over LongMemEval's questions, every figure of it computed a second time.

Here everything is plain Python with fractions, from the JSON of the rankings: a repeated session counts where it comes
first. p values and intervals are scipy's. The same is held of invented rankings in the same form, which lie nowhere.
"""

from __future__ import annotations

import json
import math
import random
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
import pytest
from scipy import stats

from eval_core.reports.report import Report, read_report

if TYPE_CHECKING:
    from conftest import Space

#: What is held, in the order of floors.toml; ndcg@10 is left out, of which exact fractions say nothing.
MEASURES = ("recall@10", "mrr", "hit@1")
LEFT_OUT = dict.fromkeys(("ndcg@10", *MEASURES), "counted by hand")


class Rankings(NamedTuple):
    """Questions with what two systems answered: sessions as they were ranked, repeats left in."""

    types: dict[str, str]
    gold: dict[str, list[str]]
    answers: dict[str, dict[str, list[str]]]

    def values(self, system: str, question: str) -> dict[str, Fraction]:
        """The measures of one answer, by their definitions."""
        firsts = list(dict.fromkeys(self.answers[system][question]))
        gold = set(self.gold[question])
        ranks = [place for place, session in enumerate(firsts, 1) if session in gold]
        return {
            "hit@1": Fraction(1 in ranks),
            "recall@10": Fraction(len(ranks), len(gold)),
            "mrr": Fraction(1, ranks[0]) if ranks else Fraction(0),
        }

    def means(self, system: str, category: str | None) -> dict[str, Fraction]:
        """The means of the measures over a category of questions, or over all."""
        values = [self.values(system, name) for name in self.types if category in (None, self.types[name])]
        return {measure: sum(one[measure] for one in values) / Fraction(len(values)) for measure in MEASURES}

    def count(self, category: str | None) -> int:
        return sum(category in (None, one) for one in self.types.values())

    def large(self) -> list[str]:
        """The types of question that have floors of their own, as they first appear."""
        return [name for name in dict.fromkeys(self.types.values()) if self.count(name) >= 20]


def read(paths: Mapping[str, Path]) -> Rankings:
    """Rankings in the published form, by system: the questions that have an answer."""
    types: dict[str, str] = {}
    gold: dict[str, list[str]] = {}
    answers: dict[str, dict[str, list[str]]] = {}
    for system, path in paths.items():
        rows = [row for row in json.loads(path.read_text("utf-8"))["results"] if not row["abstention"]]
        types = {row["question_id"]: row["question_type"] for row in rows}
        gold = {row["question_id"]: row["evidence_sessions"] for row in rows}
        answers[system] = {row["question_id"]: row["retrieved_sessions"] for row in rows}
    return Rankings(types, gold, answers)


def invent(folder: Path) -> dict[str, Path]:
    """Rankings of two invented systems: `dense` is better on the whole and worse at one type of question."""
    chance = random.Random(8)
    systems: dict[str, list[dict[str, Any]]] = {"bm25": [], "dense": []}
    for number in range(150):
        kind = "plain" if number % 3 else "joined" if number % 9 else "rare"
        gold = [f"s{number}-{place}" for place in range(1 + number % 2 + (kind == "joined"))]
        others = [f"x{place}" for place in chance.sample(range(500), 9)]
        for system, rows in systems.items():
            good = 0.96 if (system == "dense") == (kind != "joined") else 0.82
            ranked = others[:]
            for session in reversed(gold):
                ranked.insert(0 if chance.random() < good else chance.randint(1, 12), session)
            ranked.insert(chance.randint(1, 6), ranked[0])  # a session of several turns comes more than once
            rows.append(
                {
                    "question_id": f"{chance.randrange(16**8):08x}",
                    "question_type": kind,
                    "abstention": False,
                    "evidence_sessions": gold,
                    "retrieved_sessions": ranked[:10],
                }
            )
            rows[-1]["question_id"] = systems["bm25"][number]["question_id"]
    paths = {}
    for system, rows in systems.items():
        unanswerable = {**rows[0], "question_id": "none_abs", "abstention": True, "evidence_sessions": []}
        paths[system] = folder / f"{system}.json"
        paths[system].write_text(json.dumps({"meta": {"adapter": system}, "results": [*rows, unanswerable]}))
    return paths


#: Which runs an incumbent's floors stand on, and which run of the other system comes after them.
EVIDENCE = {"bm25": (0, 1), "dense": (2, 3)}
CANDIDATE = {"dense": 2, "bm25": 4}


class Measured(NamedTuple):
    """Rankings, a workspace that answers with them, and what measuring wrote: BM25 twice, dense twice, BM25 again.

    `gated` are copies of the workspace with a policy, by incumbent and by the name of the case.
    """

    rankings: Rankings
    space: Space
    runs: list[Path]
    gated: dict[tuple[str, ...], Space]

    def bar(self, incumbent: str, name: str) -> Space:
        """The workspace with the bar of an incumbent, whose second report lies in it."""
        key = (incumbent, name)
        if key not in self.gated:
            root = self.space.root.with_name(f"gated-{len(self.gated)}")
            shutil.copytree(self.space.root, root)
            self.gated[key] = space = type(self.space)(root)
            put(space, self.runs[EVIDENCE[incumbent][-1]])
            runs = [read_report(self.runs[number] / "notes.json") for number in EVIDENCE[incumbent]]
            CASES[name].write(space, runs)
        return self.gated[key]


@pytest.fixture(scope="module", params=["invented", "published"])
def measured(
    request: pytest.FixtureRequest,
    make: type[Space],
    gated: Path,
    shared_data: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Measured:
    folder = tmp_path_factory.mktemp("rankings")
    if request.param == "published":
        paths = {
            system: shared_data(f"longmemeval/rankings_{system}_n500.json") for system in ("bm25", "dense")
        }
    else:
        paths = invent(folder)
    rankings = read(paths)
    space = make(folder / "space")
    space.root.mkdir()
    for name in ("eval.toml", "adapter.py"):
        shutil.copy(gated / name, space.root)
    lists = [rankings.gold, *rankings.answers.values()]
    sessions = sorted({session for table in lists for ids in table.values() for session in ids})
    space.set(
        {
            name: {"text": asked(name), "metadata": {"category": kind}}
            for name, kind in rankings.types.items()
        },
        {session: f"what was said in {session}" for session in sessions},
        [(name, session, 1) for name, gold in rankings.gold.items() for session in gold],
    )
    runs = []
    for number, system in enumerate(("bm25", "bm25", "dense", "dense", "bm25")):
        table = {asked(name): ids for name, ids in rankings.answers[system].items()}
        (space.root / "answers.json").write_text(json.dumps(table))
        done = space.core("measure", "-q")
        assert done.code == 0, done.err
        runs.append(folder / str(number))
        shutil.copytree(space.report.parent, runs[-1])
    return Measured(rankings, space, runs, {})


def put(space: Space, run: Path) -> None:
    """Make a run the present one: its report, with the provenance beside it."""
    shutil.copytree(run, space.report.parent, dirs_exist_ok=True)


def asked(name: str) -> str:
    return f"question {name}"


class Case(NamedTuple):
    """What is chosen, and the verdicts that come of it.

    `worse` is the verdict on BM25 held to the dense baseline, `better` the one of the other direction.
    """

    worse: str
    better: str
    by_category: bool = False
    measures: tuple[str, ...] = MEASURES
    margin: int | None = 2  # None: derived
    drops: Mapping[str, float] = {}

    def write(self, space: Space, runs: list[Report]) -> None:
        """The policy of these runs."""
        reasons = {name: why for name, why in LEFT_OUT.items() if name not in self.measures}
        space.policy(
            {"notes": runs},
            measures=self.measures,
            by_category=self.by_category,
            margin="derived" if self.margin is None else self.margin,
            reasons={**reasons, "margin": "for show"},
            budgets={"notes": {"max_drop": dict(self.drops), "reasons": {"max_drop": "for show"}}},
        )


CASES = {
    "as usual": Case(worse="fail", better="pass"),
    # What the whole set hides: the better system is the worse one at some types of question.
    "by category": Case(worse="fail", better="fail", by_category=True),
    "derived": Case(worse="fail", better="pass", margin=None),
    "derived, by category": Case(worse="fail", better="pass", by_category=True, margin=None),
    "a graded measure": Case(worse="fail", better="pass", measures=("mrr",)),
    "drops": Case(
        worse="fail", better="pass", margin=12, drops={"recall@10": 0.01, "mrr": 1.5, "hit@1": 1.0}
    ),
    "room for all of it": Case(
        worse="pass", better="pass", margin=30, drops={"recall@10": 20, "mrr": 20, "hit@1": 20}
    ),
}


@pytest.fixture(params=CASES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("incumbent", ["bm25", "dense"])
def test_every_figure_of_the_verdict_is_that_of_the_rankings(
    measured: Measured, make: type[Space], tmp_path: Path, name: str, incumbent: str
) -> None:
    """A4, K2: the same system passes at its own baseline; the other one gets the verdict that counting gives."""
    rankings, case = measured.rankings, CASES[name]
    candidate = "dense" if incumbent == "bm25" else "bm25"
    shutil.copytree(measured.bar(incumbent, name).root, tmp_path / "space")
    space = make(tmp_path / "space")
    margin = held_margin(space, rankings, case)

    # The runs that the bar stands on pass it, and nothing has moved.
    done = space.check()
    (arm,) = done.verdict["arms"]
    assert (done.code, done.codes, arm["lost"], arm["gained"], arm["significance"]) == (0, [], [], [], None)
    held(arm, rankings, case, margin, incumbent, incumbent)

    put(space, measured.runs[CANDIDATE[candidate]])
    done = space.check()
    (arm,) = done.verdict["arms"]
    assert done.code == done.verdict["exit_code"] == (done.verdict["verdict"] != "pass")
    repeats = sum(len(ids) - len(set(ids)) for ids in rankings.answers[candidate].values())
    assert json.loads(space.report.read_bytes())["health"]["duplicates"] == repeats > 100
    held(arm, rankings, case, margin, incumbent, candidate)
    assert done.verdict["verdict"] == (case.worse if candidate == "bm25" else case.better)


def held_margin(space: Space, rankings: Rankings, case: Case) -> int:
    """The margin of the floors; a derived one is what so many unflipped queries leave possible."""
    floors = tomllib.loads(space.floors.read_text())["arms"]["notes"]
    n = rankings.count(None)
    assert floors["n"] == n
    wanted = {name: rankings.count(name) for name in rankings.large()} if case.by_category else {}
    assert {name: part["n"] for name, part in floors.get("categories", {}).items()} == wanted
    if case.margin is not None:
        assert floors.get("margin", 2) == case.margin
        return case.margin
    assert floors["margin"] == "derived"
    rate = stats.beta.ppf(0.95, 1, n)  # Clopper and Pearson's bound of no flips among n
    return next(m for m in range(n) if stats.binom.sf(m, n, rate) <= 0.01)


def held(arm: Any, rankings: Rankings, case: Case, margin: int, incumbent: str, candidate: str) -> None:
    """Hold the verdict on a candidate against what its rankings and the incumbent's give."""
    n = rankings.count(None)
    assert (arm["n"], arm["provisional"], arm["system_changes"]) == (n, True, [])
    graded = list(expected_grades(rankings, case, margin, incumbent, candidate))
    names = ("category", "measure", "rule", "passed", "misses", "misses_allowed", "n")
    assert [[one[name] for name in names] for one in arm["graded"]] == [
        [one[name] for name in names] for one in graded
    ]
    for found, wanted in zip(arm["graded"], graded, strict=True):
        for name in ("value", "lowest", "baseline"):
            assert found[name] == pytest.approx(float(wanted[name]), abs=1e-12), (name, found)
    assert held_slack(arm) == {
        named(one): pytest.approx(float(one["room"]), abs=0.051)
        for one in graded
        if one["room"] is not None and one["room"] > margin + 2
    }
    failing = [one for one in graded if not one["passed"]]
    assert [(reason["code"], reason["key"], reason["category"]) for reason in arm["reasons"]] == [
        ("floor-breached" if one["rule"] == "floor" else "baseline-drop", one["measure"], one["category"])
        for one in failing
    ]
    for reason, one in zip(arm["reasons"], failing, strict=True):
        assert reason["value"] == (
            one["misses"] if one["misses"] is not None else round(float(one["value"]), 4)
        )
    assert arm["verdict"] == ("fail" if failing else "pass")
    measure = failing[0]["measure"] if failing else "hit@1"
    assert arm["measure"] == measure
    held_changes(arm, rankings, measure, incumbent, candidate, weighed=bool(failing))


def expected_grades(
    rankings: Rankings, case: Case, margin: int, incumbent: str, candidate: str
) -> Iterator[dict[str, Any]]:
    """The bar of each measure by POLICY: the floor, or the drop below the baseline where that is tighter."""
    usual = {
        "recall@10": Fraction(2),
        "hit@1": max(Fraction(2), Fraction(100 * margin, rankings.count(None))),
    }
    points = usual | {name: Fraction(str(value)) for name, value in case.drops.items()}
    for category in (None, *(rankings.large() if case.by_category else ())):
        n = rankings.count(category)
        before, after = (rankings.means(system, category) for system in (incumbent, candidate))
        drops = points if category is None else {}
        for measure in dict.fromkeys((*case.measures, *drops)):
            floor = before[measure] - Fraction(margin, n)
            drop = before[measure] - drops[measure] / 100 if measure in drops else None
            if measure == "hit@1" and drop is not None:
                # Whole queries: of the points, as many as they hold; the worst run and the margin hold without a floor.
                drop = before[measure] - Fraction(math.floor(n * drops[measure] / 100), n)
            by_floor = measure in case.measures or measure == "hit@1"
            lowest = max(bar for bar in (floor if by_floor else None, drop) if bar is not None)
            counted = measure == "hit@1"
            yield {
                "category": category,
                "measure": measure,
                "n": n,
                "value": after[measure],
                "baseline": before[measure],
                "lowest": lowest,
                "rule": "floor" if by_floor and floor == lowest else "drop",
                "misses": n - after[measure] * n if counted else None,
                "misses_allowed": n - lowest * n if counted else None,
                "passed": after[measure] >= lowest,
                "room": (after[measure] - floor) * n if measure in case.measures else None,
            }


def named(grade: Mapping[str, Any]) -> str:
    measure: str = grade["measure"]
    return measure if grade["category"] is None else f"{measure} of {grade['category']}"


def held_slack(arm: Any) -> dict[str, float]:
    """The floors that the verdict warns are beaten by far, and by how many queries."""
    warnings = [one for one in arm["warnings"] if one.startswith("beats its floors")]
    found = re.findall(r"(?:: |, )([^,:]+) by ([0-9.]+) queries", "".join(warnings))
    return {name: float(room) for name, room in found}


def held_changes(
    arm: Any, rankings: Rankings, measure: str, incumbent: str, candidate: str, *, weighed: bool
) -> None:
    """Hold which queries moved (B10: whatever the verdict), and beside a failure whether chance explains it."""
    changes = {
        name: rankings.values(candidate, name)[measure] - rankings.values(incumbent, name)[measure]
        for name in rankings.types
    }
    lost = {name for name, change in changes.items() if change < 0}
    gained = {name for name, change in changes.items() if change > 0}
    for side, names in (("lost", lost), ("gained", gained)):
        assert sorted(one["query"] for one in arm[side]) == sorted(names)
        sizes = [abs(changes[one["query"]]) for one in arm[side]]
        assert sizes == sorted(sizes, reverse=True), "the most first"
    for one in (*arm["lost"], *arm["gained"]):
        name = one["query"]
        assert (one["metric"], one["text"]) == (measure, asked(name))
        assert one["change"] == pytest.approx(float(changes[name]), abs=1e-12)
        places = [
            {session: place for place, session in enumerate(dict.fromkeys(answers[name]), 1)}
            for answers in (rankings.answers[incumbent], rankings.answers[candidate])
        ]
        assert one["document"] in rankings.gold[name]
        assert [one["before"], one["after"]] == [place.get(one["document"]) for place in places]
        assert one["before"] != one["after"]

    n, differences = len(changes), tuple(map(float, changes.values()))
    found = arm["significance"]
    if not weighed:
        assert found is None
        return
    assert found["metric"] == measure
    assert found["difference"] == pytest.approx(math.fsum(differences) / n, abs=1e-12)
    # Five lost and none gained are the fewest of p below 0.05: 2 / 2^5 - 1 / 2^5.
    assert found["resolvable"] == (abs(sum(changes.values(), Fraction())) >= 5)
    if measure == "hit@1":
        both, most = len(lost) + len(gained), max(len(lost), len(gained))
        p = 2 * stats.binom.sf(most - 1, both, 0.5) - stats.binom.pmf(most, both, 0.5)
        assert (found["test"], found["p"]) == ("mcnemar-midp", pytest.approx(p, rel=1e-9))
    else:
        p, room = flipped(differences)
        assert (found["test"], found["p"]) == ("sign-flip", pytest.approx(p, abs=room))
    low, high, room = bootstrapped(differences)
    assert (found["low"], found["high"]) == (pytest.approx(low, abs=room), pytest.approx(high, abs=room))


@lru_cache
def flipped(differences: tuple[float, ...]) -> tuple[float, float]:
    """scipy's p value of random signs, both tails, and five standard errors of it and one of 10,000 patterns."""
    done = stats.permutation_test(
        (numpy.array(differences),),
        lambda values, axis: abs(numpy.mean(values, axis=axis)),
        alternative="greater",
        permutation_type="samples",
        n_resamples=20_000,
        vectorized=True,
        batch=2_000,
        random_state=numpy.random.default_rng(3),
    )
    p = float(done.pvalue)
    return p, 5 * math.sqrt(p * (1 - p) * (1 / 10_000 + 1 / 20_000)) + 1 / 10_000


@lru_cache
def bootstrapped(differences: tuple[float, ...]) -> tuple[float, float, float]:
    """scipy's percentile interval of the mean, and five standard errors of such a bound of 1,000 samples."""
    done = stats.bootstrap(
        (numpy.array(differences),),
        numpy.mean,
        n_resamples=20_000,
        batch=2_000,
        method="percentile",
        random_state=numpy.random.default_rng(5),
    )
    # A quantile q of N draws has the standard error √(q (1 - q) / N) / density: 0.085 of the mean's for the 2.5th.
    error = math.sqrt(0.025 * 0.975 / 1_000) / stats.norm.pdf(1.96)
    interval = done.confidence_interval
    return float(interval.low), float(interval.high), 5 * error * float(done.standard_error)
