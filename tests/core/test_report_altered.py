"""A report is believed only where everything in it agrees: each value that is altered alone is noticed."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report_support import PATH, Path_, at, leaves, put, refused

from eval_core.errors import Refused
from eval_core.reports.report import Report, dump, parse_report

# --------------------------------------------------------------------------------------------- altered by hand


ROW = {name: place for place, name in enumerate(("graded", "deep", "turning", "nothing", "broken"))}
LATE, UNJUDGED = 7, 8

ALTERATIONS: dict[str, tuple[Path_, Any, str]] = {
    # Values that are no numbers.
    "n NaN": (("summary", "overall", "n"), float("nan"), "is not whole JSON"),
    "n 4.0": (("summary", "overall", "n"), 4.0, "summary.overall.n = 4.0: should be a valid integer"),
    "n a text": (("summary", "overall", "n"), "4", "summary.overall.n = '4': should be a valid integer"),
    "n true": (("summary", "overall", "n"), True, "summary.overall.n = True: should be a valid integer"),
    "n negative": (
        ("summary", "overall", "n"),
        -4,
        "summary.overall.n = -4: should be greater than or equal",
    ),
    "metric true": (
        ("summary", "overall", "metrics", "mrr"),
        True,
        "summary.overall.metrics.mrr = True: should be",
    ),
    "metric a text": (
        ("summary", "overall", "metrics", "mrr"),
        "0.4375",
        "summary.overall.metrics.mrr = '0.4375'",
    ),
    "metric NaN": (
        ("summary", "overall", "metrics", "mrr"),
        float("nan"),
        "summary.overall.metrics.mrr = nan",
    ),
    "metric infinite": (
        ("summary", "overall", "metrics", "mrr"),
        float("inf"),
        "summary.overall.metrics.mrr = inf",
    ),
    "metric null": (
        ("summary", "overall", "metrics", "mrr"),
        None,
        "summary.overall.metrics.mrr = None: should be",
    ),
    "row metric NaN": (
        ("rows", 0, "metrics", "mrr"),
        float("nan"),
        "rows[0].metrics.mrr = nan: should be a finite",
    ),
    "rank a text": (("rows", 0, "judged", 0, "rank"), "2", "rows[0].judged[0].rank = '2': should be"),
    "rank 2.0": (("rows", 0, "judged", 0, "rank"), 2.0, "rows[0].judged[0].rank = 2.0: should be"),
    "rank 0": (("rows", 0, "judged", 0, "rank"), 0, "rows[0].judged[0].rank = 0: should be greater"),
    "grade negative": (
        ("rows", 0, "judged", 0, "grade"),
        -1,
        "rows[0].judged[0].grade = -1: should be greater",
    ),
    "schema of tomorrow": (("schema",), "report-v2", "schema = 'report-v2': should be 'report-v1'"),
    "health true": (("health", "errored"), True, "health.errored = True: should be a valid integer"),
    # Values at odds with the rows.
    "metric raised": (
        ("summary", "overall", "metrics", "mrr"),
        0.95,
        "summary.overall.mrr is 0.95, and the rows give 0.4375",
    ),
    "metric above 1": (("summary", "overall", "metrics", "hit@1"), 1.5, "summary.overall.hit@1 is 1.5"),
    "metric a hair off": (
        ("summary", "overall", "metrics", "mrr"),
        0.4375 + 2e-9,
        "summary.overall.mrr is 0.437500002, and the rows give 0.4375",
    ),
    "category raised": (
        ("summary", "categories", "x", "metrics", "mrr"),
        1.0,
        "summary.categories.x.mrr is 1.0",
    ),
    "category n": (
        ("summary", "categories", "x", "n"),
        3,
        "summary.categories.x.n is 3, and the rows give 2",
    ),
    "n grown": (("summary", "overall", "n"), 5, "summary.overall.n is 5, and the rows give 4"),
    "row metric raised": (
        ("rows", 3, "metrics", "mrr"),
        1.0,
        "row 'nothing': mrr is 1.0, and its ranks give 0.0",
    ),
    "rank raised": (
        ("rows", 0, "judged", 0, "rank"),
        1,
        "row 'graded': 'd01' is given rank 1, and stands at 2",
    ),
    "rank beyond the limit": (("rows", 1, "judged", 0, "rank"), 7, "row 'deep': rank 7 of 'd04' cannot be"),
    "rank of a document that was not returned": (
        ("rows", 0, "judged", 2, "rank"),
        3,
        "row 'graded': 'd11' is given rank 3, and stands at None",
    ),
    "grade raised": (("rows", 0, "judged", 0, "grade"), 3, "row 'graded': "),
    "grade of what counts 0": (("rows", 1, "judged", 1, "grade"), 1, "row 'deep': "),
    "rank of what counts 0": (
        ("rows", 1, "judged", 1, "rank"),
        6,
        "digests.quality is not the digest of the keys and rows",
    ),
    "label moved": (
        ("rows", 2, "judged", 0, "id"),
        "d02",
        "row 'turning': 'd02' is given rank 1, and stands at 2",
    ),
    "label of an errored row": (
        ("rows", 4, "judged", 0, "id"),
        "d02",
        "task.parts.judgements is not the digest",
    ),
    "document swapped": (("rows", 1, "ids", 0), "d09", "digests.rankings is not the digest of the rows"),
    "document twice": (("rows", 1, "ids", 0), "d02", "row 'deep' holds a document twice"),
    "document that is excluded": (
        ("rows", 1, "ids", 0),
        "d12",
        "row 'deep' holds a document that its query excl",
    ),
    "query reworded": (("rows", 0, "text"), "A", "task.parts.queries is not the digest of the rows"),
    "query renamed": (("rows", 0, "id"), "grated", "task.parts.query_ids is not the digest of the rows"),
    "query doubled": (("rows", 0, "id"), "deep", "rows hold query 'deep' twice"),
    "category moved": (
        ("rows", 0, "meta", "category"),
        "y",
        "summary.categories.x.n is 2, and the rows give 1",
    ),
    "meaning dropped": (
        ("rows", 4, "meta", "must_pass"),
        False,
        "task.parts.queries is not the digest of the rows",
    ),
    "errored made unscored": (("rows", 4, "outcome"), "unscored", "health.errored is 3, and the rows give 2"),
    "errored made scored": (
        ("rows", 4, "outcome"),
        "scored",
        "row 'broken': metrics differ from those of the cut",
    ),
    "scored made errored": (("rows", 3, "outcome"), "errored", "row 'nothing' is errored and still holds"),
    "outcome of our own": (
        ("rows", 3, "outcome"),
        "skipped",
        "rows[3].outcome = 'skipped': should be 'scored', ",
    ),
    "errors denied": (("health", "errored"), 0, "health.errored is 0, and the rows give 3"),
    "unscored denied": (("health", "unscored"), 0, "health.unscored is 0, and the rows give 1"),
    "unstable denied": (("health", "unstable"), 0, "health.unstable is 0, and the rows give 1"),
    "unstable made stable": (("rows", 2, "stable"), True, "health.unstable is 1, and the rows give 0"),
    "duplicates denied": (("health", "duplicates"), 0, "digests.run is not the digest of the rest"),
    "restarts invented": (("health", "restarts"), 1, "digests.run is not the digest of the rest"),
    "queries of the set": (("dataset", "queries"), 8, "dataset.queries is 8, and there are 9 rows"),
    "documents of the set": (("dataset", "documents"), 13, "digests.quality is not the digest of the keys"),
    "name of the set": (("dataset", "name"), "other", "digests.run is not the digest of the rest"),
    "another arm": (("arm",), "other", "digests.run is not the digest of the rest"),
    "another run": (("run_id",), "20261130T000000Z-00000000", "digests.run is not the digest of the rest"),
    "no run": (("run_id",), "", "run_id = '': should have at least 1 character"),
    "resumed denied": (("resumed",), True, "digests.run is not the digest of the rest"),
    "index from a cache": (("index",), "cached", "digests.run is not the digest of the rest"),
    "measured elsewhere": (
        ("environment", "class"),
        "ci-of-another",
        "digests.run is not the digest of the rest",
    ),
    "another commit": (("environment", "commit"), "0" * 40, "digests.run is not the digest of the rest"),
    "why it errored": (("rows", 4, "detail"), "never mind", "digests.run is not the digest of the rest"),
    # Keys.
    "k": (("task", "parts", "cutoffs"), [1, 2], "task: sha256 is not the digest of the parts"),
    "corpus": (("task", "parts", "corpus"), "0" * 64, "task: sha256 is not the digest of the parts"),
    "task digest": (("task", "sha256"), "0" * 64, "task: sha256 is not the digest of the parts"),
    "options": (("system", "parts", "options"), {"k1": 2}, "system: sha256 is not the digest of the parts"),
    "system digest": (("system", "sha256"), "0" * 64, "system: sha256 is not the digest of the parts"),
    "rankings digest": (("digests", "rankings"), "0" * 64, "digests.rankings is not the digest of the rows"),
    "quality digest": (("digests", "quality"), "0" * 64, "digests.quality is not the digest of the keys"),
    "run digest": (("digests", "run"), "0" * 64, "digests.run is not the digest of the rest"),
}


@pytest.mark.parametrize("case", ALTERATIONS)
def test_a_value_altered_alone_is_noticed_and_told(value: Any, case: str) -> None:
    """K3: a malformed report is refused. The traps NaN, `true`, `"0.95"` and 27.0 are among them."""
    path, new, expected = ALTERATIONS[case]
    assert at(value, path) != new or type(at(value, path)) is not type(new), "nothing was altered"
    message = refused(put(value, path, new))
    if expected == "is not whole JSON":
        assert "should be" in message or expected in message
    else:
        assert message.startswith(expected)


def with_rows(change: Callable[[list[Any]], Any]) -> Callable[[Any], None]:
    return lambda value: change(value["rows"])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (with_rows(lambda rows: rows.pop(3)), "health.scored is 4, and the rows give 3"),
        (with_rows(lambda rows: rows.pop(LATE)), "health.unscored is 1, and the rows give 0"),
        (with_rows(lambda rows: rows.pop(UNJUDGED)), "health.unscorable is 1, and the rows give 0"),
        (with_rows(lambda rows: rows.append(rows[0])), "rows hold query 'graded' twice"),
        (with_rows(lambda rows: rows.clear()), "health.scored is 4, and the rows give 0"),
        (
            with_rows(lambda rows: rows[1]["ids"].append("d04")),
            "row 'deep' holds 4 ids, more than the largest cut-off",
        ),
        (
            with_rows(lambda rows: rows[0]["judged"].append(rows[0]["judged"][0])),
            "row 'graded' judges 'd01' twice",
        ),
        (with_rows(lambda rows: rows[0]["judged"].clear()), "row 'graded': "),
        (with_rows(lambda rows: rows[1]["ids"].clear()), "row 'deep': rank 4 of 'd04' cannot be"),
        (with_rows(lambda rows: rows[0].update(stable=False)), "health.unstable is 1, and the rows give 2"),
        (with_rows(lambda rows: rows[4].update(ids=["d02"])), "row 'broken' is errored and still holds ids"),
        (
            with_rows(
                lambda rows: rows[4].update(ids=["d01"], judged=[{"id": "d01", "grade": 1, "rank": 1}])
            ),
            "row 'broken' is errored and still holds ids, ranks or metrics",
        ),
        (with_rows(lambda rows: rows[0]["metrics"].update({"mrr@3": 1.0})), "row 'graded': metrics differ"),
        (
            with_rows(lambda rows: rows[0]["metrics"].pop("mrr")),
            "row 'graded': metrics differ from those of the",
        ),
        (with_rows(lambda rows: rows[0].update(extra=1)), "rows[0].extra: unknown key"),
        (
            lambda value: value["summary"]["categories"].pop("x"),
            "summary.categories.x is not a category of the summary",
        ),
        (
            lambda value: value["summary"]["categories"].update(z=value["summary"]["categories"]["x"]),
            "summary.categories.z is not a category of the rows",
        ),
        (
            lambda value: value["summary"]["overall"]["metrics"].pop("mrr"),
            "summary.overall: metrics differ from",
        ),
        (
            lambda value: value["summary"]["overall"]["metrics"].update({"recal@1": 1.0}),
            "summary.overall: metrics differ from those of the rows: recal@1",
        ),
        (lambda value: value.update(extra=1), "extra: unknown key"),
        (lambda value: value.pop("schema"), "schema: it is missing"),
        (lambda value: value.pop("rows"), "rows: it is missing"),
        (lambda value: value.pop("digests"), "digests: it is missing"),
        (lambda value: value["health"].pop("errored"), "health.errored: it is missing"),
        (lambda value: value["digests"].pop("run"), "digests.run: it is missing"),
        (
            lambda value: value["statements"].append("session retrieval"),
            "digests.run is not the digest of the rest",
        ),
    ],
)
def test_what_is_added_or_taken_away_is_noticed(
    value: Any, change: Callable[[Any], Any], expected: str
) -> None:
    change(value)
    assert refused(value).startswith(expected)


def resealed(value: Any) -> Any:
    """Put the digests over a task key right again."""
    from eval_core.files import digest

    value["task"]["sha256"] = digest(value["task"]["parts"])
    return value


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"limit": 0}, "task.parts.limit 0 should be a whole number of at least 1"),
        ({"limit": True}, "task.parts.limit True should be"),
        ({"limit": None}, "task.parts.limit None should be"),
        ({"cutoffs": []}, "task.parts.cutoffs [] should be a list of whole numbers"),
        ({"cutoffs": [1.0]}, "task.parts.cutoffs [1.0] should be a list of whole numbers"),
        ({"cutoffs": [True]}, "task.parts.cutoffs [True] should be a list of whole numbers"),
        ({"cutoffs": "13"}, "task.parts.cutoffs '13' should be a list of whole numbers"),
        ({"cutoffs": [3, 1]}, "task.parts.cutoffs [3, 1] should rise from 1 at least to the limit 6 at most"),
        ({"cutoffs": [0, 3]}, "task.parts.cutoffs [0, 3] should rise"),
        ({"cutoffs": [1, 7]}, "task.parts.cutoffs [1, 7] should rise"),
        ({"cutoffs": [1, 2]}, "row 'graded' holds 3 ids, more than the largest cut-off 2"),
        ({"cutoffs": [1, 3, 5]}, "row 'graded': metrics differ from those of the cut-offs"),
        ({"limit": 4}, "row 'deep': rank 5 of 'd05' cannot be"),
        ({"queries": "0" * 64}, "task.parts.queries is not the digest of the rows"),
        ({"corpus": "0" * 64}, "digests.quality is not the digest of the keys and rows"),
    ],
)
def test_a_task_that_its_rows_do_not_bear_out_is_refused_even_where_its_digest_fits(
    value: Any, parts: dict[str, Any], expected: str
) -> None:
    value["task"]["parts"].update(parts)
    assert refused(resealed(value)).removeprefix("Value error, ").startswith(expected)


def test_k_cannot_be_taken_for_another_by_an_incomplete_ranking(value: Any) -> None:
    """A rank beyond the ids that are shown needs ids down to the largest cut-off."""
    value["rows"][1]["ids"] = ["d01", "d02"]
    assert refused(value).startswith("row 'deep': rank 4 of 'd04' cannot be")


# --------------------------------------------------------------------------------------------- altered anywhere


# What may differ between two copies of one report: what a committed copy is stripped of. Nothing else.
FREE = re.compile(r"latency(\.\w+)?|ingest(\.\w+)?|environment\.(process|host)")


def tables(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    if isinstance(value, dict | list):
        yield path
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from tables(value[key], (*path, key))


def other(leaf: Any) -> list[Any]:
    """Values of the same type, and of others, that are not the leaf."""
    if isinstance(leaf, bool):
        return [not leaf, None, int(leaf)]
    if isinstance(leaf, int):
        return [leaf + 1, max(0, leaf - 1), str(leaf), None, leaf + 0.5]
    if isinstance(leaf, float):
        return [leaf + 0.01, leaf / 2 + 0.001, str(leaf), None, 0 if leaf else 1]
    if isinstance(leaf, str):
        return [leaf + "x", leaf[:-1] if leaf else "y", "0" * 64, None, 1]
    return ["x", 1, True]


def name(path: Path_) -> str:
    return ".".join(map(str, path))


def passes(value: Any, original: Report) -> bool:
    """Whether an altered report is read, and says something else than the original."""
    try:
        return parse_report(json.dumps(value).encode(), PATH) != original
    except Refused as error:
        assert error.code == "report-malformed"
        return False


def test_every_leaf_that_is_altered_alone_is_noticed_but_for_those_named(sound: Report, value: Any) -> None:
    """The list of what is free is complete and not longer than it must be."""
    found = {
        path
        for path in leaves(value)
        for new in other(at(value, path))
        if passes(put(value, path, new), sound)
    }
    uncaught = {name(path) for path in found}
    assert {path for path in uncaught if not FREE.fullmatch(path)} == set()
    assert uncaught == {
        *(f"latency.{key}" for key in ("p50", "p95", "max", "samples")),
        *("ingest.documents", "ingest.seconds", "environment.process", "environment.host"),
    }


def test_every_entry_that_is_taken_away_alone_is_noticed(sound: Report, value: Any) -> None:
    """Of a table or a list; what is optional and at its usual value says the same when it is left out."""
    found = set()
    for path in tables(value):
        here = at(value, path)
        for key in list(here) if isinstance(here, dict) else range(len(here)):
            changed = copy.deepcopy(value)
            del at(changed, path)[key]
            if passes(changed, sound):
                found.add(name((*path, key)))
    assert {path for path in found if not FREE.fullmatch(path)} == set()


def test_every_key_that_is_added_is_noticed(sound: Report, value: Any) -> None:
    found = set()
    for path in tables(value):
        changed = copy.deepcopy(value)
        here = at(changed, path)
        if isinstance(here, dict):
            here["added"] = 1
        else:
            here.append(copy.deepcopy(here[-1]) if here else "added")
        if passes(changed, sound):
            found.add(name(path))
    assert found == set()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 20)
    | st.integers(0, 200).map(lambda number: number / 100)
    | st.sampled_from(["d01", "d02", "x", "", "q"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "rank", "x"]), inner),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(st.data())
def test_anything_put_anywhere_is_refused_or_says_the_same(sound: Report, data: st.DataObject) -> None:
    value = json.loads(dump(sound))
    path = data.draw(
        st.sampled_from([p for p in [*leaves(value), *tables(value)] if p and not FREE.match(name(p))])
    )
    assert not passes(put(value, path, data.draw(JSON)), sound), name(path)
