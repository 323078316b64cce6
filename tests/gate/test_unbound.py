from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Space

FLOORS = """
# Measured floors. n is exact.
[unfiltered]
n = 27
"recall@1" = 0.88
"recall@5" = 0.92
mrr = 0.90
"""


def report(n: Any = 27, **values: Any) -> dict[str, Any]:
    scores = {"recall@1": 0.963, "recall@3": 1.0, "recall@5": 1.0, "mrr": 0.981} | {
        name.replace("_", "@"): value for name, value in values.items()
    }
    return {"summary": {"overall": {"n": n, **scores}}, "results": []}


@pytest.fixture
def plain(space: Space) -> Space:
    """A workspace with plain floors of one arm and a report of another tool that passes them."""
    (space.root / "floors.toml").write_text(FLOORS)
    put(space, report())
    return space


def put(space: Space, value: Any) -> None:
    (space.root / "ci.json").write_text(value if isinstance(value, str) else json.dumps(value))


def grade(space: Space, *arguments: str) -> Any:
    return space.check(
        "--floors", "floors.toml", "--report", "unfiltered=ci.json", "--allow-unbound", *arguments
    )


# -------------------------------------------------------------------------------------------- as published


@pytest.mark.parametrize(
    ("name", "code", "codes"),
    [
        ("pass_unfiltered.json", 0, []),
        ("n_shrink_unfiltered.json", 1, ["n-differs"]),
        ("breach_unfiltered.json", 1, ["floor-breached"] * 3),
    ],
)
def test_a_published_plain_gate_is_graded_as_unbound(
    space: Space, shared_data: Callable[[str], Path], name: str, code: int, codes: list[str]
) -> None:
    """K1, K2: its own reports pass, are refused for a shrunken n, and breach, as they did where they were published."""
    for path in ("evals/thresholds.toml", f"tests/fixtures/eval_gate/{name}"):
        shutil.copy(shared_data(f"kb-agent/{path}"), space.root)
    arguments = ["unfiltered", "--floors", "thresholds.toml", "--report", f"unfiltered={name}"]
    refused = space.check(*arguments)
    assert (refused.code, refused.out, "--allow-unbound" in refused.err) == (2, "", True)
    done = space.check(*arguments, "--allow-unbound")
    assert (done.code, done.codes) == (code, codes)
    arm = done.verdict["arms"][0]
    assert arm["unbound"] is True
    assert bool(arm["graded"]) is (codes != ["n-differs"])


@pytest.mark.parametrize(
    ("value", "code", "codes"),
    [
        (report(), 0, []),
        (report(n=26, recall_1=1.0, recall_5=1.0, mrr=1.0), 1, ["n-differs"]),
        (report(recall_1=0.70, recall_5=0.90, mrr=0.80), 1, ["floor-breached"] * 3),
        (report(recall_1=24 / 27), 0, []),
        (report(recall_1=23 / 27), 1, ["floor-breached"]),
    ],
)
def test_floors_and_reports_of_the_same_forms_are_graded_so_too(
    plain: Space, value: Any, code: int, codes: list[str]
) -> None:
    """K2: pass, a shrunken n of which no measure is graded, a breach; and the trap of 24 of 27."""
    put(plain, value)
    arguments = ["unfiltered", "--floors", "floors.toml", "--report", "unfiltered=ci.json"]
    assert plain.check(*arguments).code == 2
    done = plain.check(*arguments, "--allow-unbound")
    assert (done.code, done.codes) == (code, codes)
    arm = done.verdict["arms"][0]
    assert (arm["unbound"], arm["verdict"]) == (
        True,
        {0: "pass", 1: "refused" if codes == ["n-differs"] else "fail"}[code],
    )
    assert bool(arm["graded"]) is (codes != ["n-differs"])


# ------------------------------------------------------------------------------------------------- reports


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "0.95", -1, 1.5, None, [0.95], 10**400])
@pytest.mark.parametrize("name", ["recall@1", "mrr"])
def test_what_is_no_share_is_not_graded(plain: Space, name: str, value: Any) -> None:
    """K3's traps: NaN, infinity, true, "0.95", -1 and 1.5 are no metric."""
    changed = report()
    changed["summary"]["overall"][name] = value
    put(plain, changed)
    done = grade(plain)
    assert (done.code, done.codes, done.verdict["arms"][0]["graded"]) == (1, ["metric-invalid"], [])


@pytest.mark.parametrize("n", [26, 28, 27.0, "27", True, None, -27, 10**400])
def test_n_is_exactly_the_whole_number_declared(plain: Space, n: Any) -> None:
    """K3: n is an exact match, and 27.0 and "27" are no counts."""
    put(plain, report(n=n))
    done = grade(plain)
    assert (done.code, done.codes) == (1, ["n-differs"])


@pytest.mark.parametrize(
    ("value", "codes"),
    [
        ("", ["report-malformed"]),
        ("{", ["report-malformed"]),
        ("[]", ["report-malformed"]),
        ("27", ["report-malformed"]),
        ('{"summary": 1}', ["report-malformed"]),
        ('{"summary": {"overall": []}}', ["report-malformed"]),
        pytest.param("[" * 100_000, ["report-malformed"], id="deep"),
        pytest.param("9" * 5000, ["report-malformed"], id="long"),
        ("{}", ["n-differs", *["metric-missing"] * 3]),
        ({"n": 27, "recall@1": 1, "recall@5": 1.0, "mrr": 1.0}, []),
        ({"overall": {"n": 27, "recall@1": 1, "recall@5": 1.0, "mrr": 1.0}}, []),
        ({"schema": "report-v1"}, ["report-malformed"]),
        ({"schema": "other-v1", **report()}, ["report-malformed"]),
    ],
)
def test_a_report_without_its_summary_is_refused(plain: Space, value: Any, codes: list[str]) -> None:
    """K3: missing, cut short or of another form; a bare table of the values is one form of a summary."""
    put(plain, value)
    done = grade(plain)
    assert (done.code, done.codes) == (1 if codes else 0, codes)


@pytest.mark.parametrize(
    ("text", "told"), [("", "is empty"), (" \n", "is empty"), ("{", "is not whole JSON")]
)
def test_an_empty_report_is_told_as_that(plain: Space, text: str, told: str) -> None:
    put(plain, text)
    assert told in grade(plain).verdict["arms"][0]["reasons"][0]["message"]


@pytest.mark.parametrize("n", [1, 1_000_000_000])
def test_floors_may_be_of_one_query_and_of_very_many(plain: Space, n: int) -> None:
    plain.edit(plain.root / "floors.toml", "n = 27", f"n = {n}")
    put(plain, report(n=n))
    assert grade(plain).code == 0


def test_a_plain_table_of_no_arm_is_a_fault(plain: Space) -> None:
    """S5: also where no script stands before the reader."""
    from eval_core.errors import Faults
    from eval_gate.check.plain import read_plain

    path = plain.root / "empty.toml"
    path.write_text("")
    with pytest.raises(Faults, match="names no arm"):
        read_plain(path)


def test_a_missing_report_is_refused(plain: Space) -> None:
    (plain.root / "ci.json").unlink()
    assert grade(plain).codes == ["report-missing"]


def test_a_misspelt_metric_of_the_report_is_told(plain: Space) -> None:
    changed = report()
    overall = changed["summary"]["overall"]
    overall["recal@1"] = overall.pop("recall@1")
    put(plain, changed)
    done = grade(plain)
    assert done.codes == ["metric-missing"]
    assert (
        "recall@1: the report lacks it; did you mean 'recal@1'?"
        in done.verdict["arms"][0]["reasons"][0]["message"]
    )


# -------------------------------------------------------------------------------------------------- floors


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"recall@1" = 0.88', '"recal@1" = 0.88', "did you mean 'recall@1'"),
        ('"recall@1" = 0.88', '"recall@1" = 0', "a floor of nothing passes everything"),
        ('"recall@1" = 0.88', '"recall@1" = 0.0', "a floor of nothing passes everything"),
        ('"recall@1" = 0.88', '"recall@1" = true', "should be a number between 0 and 1"),
        ('"recall@1" = 0.88', '"recall@1" = "0.88"', "should be a number between 0 and 1"),
        ('"recall@1" = 0.88', '"recall@1" = nan', "should be a number between 0 and 1"),
        ('"recall@1" = 0.88', '"recall@1" = inf', "should be a number between 0 and 1"),
        ('"recall@1" = 0.88', '"recall@1" = 88', "should be a number between 0 and 1"),
        ('"recall@1" = 0.88', '"recall@1" = -0.1', "should be a number between 0 and 1"),
        pytest.param(
            '"recall@1" = 0.88', f'"recall@1" = 0x{"f" * 9000}', "should be a number", id="a huge floor"
        ),
        ("n = 27", "n = 27.0", "should be a whole number"),
        ("n = 27", 'n = "27"', "should be a whole number"),
        ("n = 27", "n = true", "should be a whole number"),
        ("n = 27", "n = 0", "should be a whole number"),
        pytest.param(
            "n = 27", f'n = "{"7" * 200}"', f"n = '{'7' * 58}…: should be a whole number", id="a long text"
        ),
        pytest.param("n = 27", f"n = 0x{'f' * 9000}", "should be a whole number", id="a huge n"),
        pytest.param("n = 27", f"n = {'9' * 5000}", "cannot be read", id="more digits than are read"),
        ("n = 27", "", "should be a whole number"),
        ("n = 27", "n = 27\nnote = 1", "there is no measure 'note'"),
        ("[unfiltered]", "name = 1\n[unfiltered]", "expected a table [name]"),
        ("mrr = 0.90", "mrr = 0.90\naliases = 1", "should be a table of name = measure"),
        ("mrr = 0.90", 'mrr = 0.90\naliases = { "recall@1" = 5 }', "should be the name of a measure"),
        ("mrr = 0.90", 'mrr = 0.90\naliases = { "recall@1" = "hti@1" }', "did you mean 'hit@1'"),
        ("mrr = 0.90", 'mrr = 0.90\naliases = { "recal@1" = "hit@1" }', "did you mean 'recall@1'"),
    ],
)
def test_a_plain_floor_that_says_nothing_is_a_fault_of_the_file(
    plain: Space, old: str, new: str, told: str
) -> None:
    """K2: a floor that no report can breach, or that no reader takes for a number, is no floor."""
    assert grade(plain).code == 0
    plain.edit(plain.root / "floors.toml", old, new)
    done = grade(plain)
    assert (done.code, done.out, told in done.err) == (2, "", True), done.err


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "[unfiltered]\n", "[unfiltered]\nn = 27\n", "[" * 5000, "\0"]
)
def test_plain_floors_of_nothing_pass_nothing(plain: Space, text: str) -> None:
    """S5: no arm, or an arm without a floor."""
    (plain.root / "floors.toml").write_text(text)
    done = grade(plain)
    assert (done.code, done.out) == (2, "")


@pytest.mark.parametrize(
    ("value", "passes"),
    [(0.88, True), (0.88 - 1e-10, True), (0.88 - 1e-8, False), (0.8799, False), (1, True), (1.0, True)],
)
def test_a_plain_floor_is_compared_unrounded(plain: Space, value: float, passes: bool) -> None:
    """K2's trap: 0.8799 shows as 0.880 and does not reach 0.88."""
    put(plain, report(recall_1=value))
    done = grade(plain)
    assert (done.code, done.codes) == ((0, []) if passes else (1, ["floor-breached"]))


def test_an_alias_says_what_a_published_name_means(plain: Space) -> None:
    """K2: some publish hit@k as recall@k; the verdict calls it what it is."""
    alias = '\naliases = { "recall@1" = "hit@1" }\n'
    (plain.root / "floors.toml").write_text(FLOORS + alias)
    done = grade(plain)
    assert done.code == 0
    assert [graded["measure"] for graded in done.verdict["arms"][0]["graded"]] == ["hit@1", "recall@5", "mrr"]


def test_plain_floors_grade_a_report_of_ours_too(plain: Space) -> None:
    """K6: checked whole before its values are believed, and by the measure that an alias means."""
    text = FLOORS.replace("unfiltered", "notes")
    (plain.root / "floors.toml").write_text(text)
    arguments = ["--floors", "floors.toml", "--allow-unbound"]
    assert plain.check(*arguments).code == 0
    # Two judgements, one of them found: hit@1 is 1 and recall@1 is 1/2.
    judged = plain.root / "set" / "qrels" / "test.tsv"
    judged.write_text(judged.read_text() + "".join(f"q{n:02}\td{n + 1:02}\t1\n" for n in range(6, 26)))
    assert plain.measure().code == 0
    assert plain.check(*arguments).codes == ["floor-breached", "floor-breached"]
    (plain.root / "floors.toml").write_text(text + '\naliases = { "recall@1" = "hit@1" }\n')
    done = plain.check(*arguments)
    assert [(graded["measure"], graded["passed"]) for graded in done.verdict["arms"][0]["graded"]] == [
        ("hit@1", True),
        ("recall@5", False),
        ("mrr", True),
    ]
    plain.alter(plain.report, lambda value: value["summary"]["overall"]["metrics"].update({"mrr": 1.0}))
    assert plain.check(*arguments).codes == ["report-malformed"]
    assert plain.measure({"q03": "broken"}).code == 3
    assert plain.check(*arguments).codes == ["rows-errored"]
    plain.forge(plain.report, lambda value: value.update(arm="other"))
    assert plain.check(*arguments).codes == ["report-of-another-arm"]


def test_bound_floors_take_no_report_without_a_schema(plain: Space) -> None:
    """--allow-unbound opens plain floors, and loosens nothing of bound ones."""
    done = plain.check("--report", "notes=ci.json", "--allow-unbound")
    assert (done.code, done.codes) == (1, ["report-malformed"])


def test_an_arm_of_a_plain_file_may_have_any_name(plain: Space) -> None:
    for name in ("a b/c", "\\u0000", "\\u001b[31mx", "x" * 300):
        (plain.root / "floors.toml").write_text(FLOORS.replace("[unfiltered]", f'["{name}"]'))
        done = plain.check("--floors", "floors.toml", "--allow-unbound")
        assert (done.code, done.codes) == (1, ["report-missing"])
        text = plain.gate("check", "--floors", "floors.toml", "--allow-unbound").out
        assert not {"\x1b", "\0"} & set(text)
