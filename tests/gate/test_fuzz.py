"""Whatever stands in the files, the gate answers 0, 1 or 2; and never 0 where one place that matters was altered."""

from __future__ import annotations

import copy
import json
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import tomlkit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eval_core.errors import Refused
from eval_core.policy.evidence import read_evidence
from eval_core.reports.report import parse_report

if TYPE_CHECKING:
    from conftest import Space

QUERIES = {f"q{number:02}": f"where is thing {number} kept" for number in range(1, 28)}

SETTINGS = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
MORE = settings(SETTINGS, max_examples=150)

# Near misses of numbers and words, and what no field is.
ODD: list[Any] = [
    None, True, False, 0, 1, -1, 27, 26, 28, 27.0, 0.0, 1.0, 0.5, 1.5, -0.0, 1e308, 10**18, 10**400, float("nan"),
    float("inf"), "", "0", "27", "0.95", "hit@1", "notes", "none", "\x1b[31m", "\u0000", "é", [], [0], {}, {"a": None},
]  # fmt: skip

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
KEYS = (
    "schema arm arms notes n runs floors misses_allowed hit@1 mrr rows id ids judged rank grade task parts sha256 "
    "margin drift corpus require retired categories lexical reasons max_drop max_drop_everywhere p95_ms entries same "
    "line"
)
words = st.sampled_from(KEYS.split())
values = st.recursive(
    scalars | st.sampled_from(ODD),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(words | st.text(max_size=6), inner, max_size=5)
    ),
    max_leaves=20,
)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to everything in a JSON value that holds nothing itself."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    empty = True
    for name, item in inner:
        empty = False
        yield from leaves(item, (*path, name))
    if empty:
        yield path


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for name in path:
        value = value[name]
    return value


def same(old: Any, new: Any) -> bool:
    """Whether a reader may take one for the other: equal, and not `true` for 1; floats to the last bits."""
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if isinstance(old, float) and isinstance(new, int | float):
        return abs(old - new) <= 1e-9 if abs(new) < 1e300 else False
    return type(old) is type(new) and bool(old == new)


def altered(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    changed = copy.deepcopy(value)
    at(changed, path[:-1])[path[-1]] = new
    return changed


@pytest.fixture(scope="module")
def world(gated: Path, make: type[Space], tmp_path_factory: pytest.TempPathFactory) -> Space:
    """One workspace for all examples: each writes the file that it is about anew.

    Its floors hold every key that there is but those of a corpus that drifts: two categories of which one is floored,
    a derived margin, a reason; its budgets every rule. Provenance is not required, and the sidecar is taken away: what
    the report binds by itself is what is asked here.
    """
    root = tmp_path_factory.mktemp("fuzz") / "space"
    shutil.copytree(gated, root, ignore=shutil.ignore_patterns("policy", ".eval"))
    space = make(root)
    space.set(
        {
            name: {"text": text, "metadata": {"category": "lexical" if name < "q21" else "graph"}}
            for name, text in QUERIES.items()
        }
    )
    for ranks in ({"q27": 2}, {"q27": 2}, {"q27": 3}):
        assert space.measure(ranks).code == 0
    space.policy(
        {"notes": space.reports()},
        require=["class"],
        why={"require": "r"},
        budgets={"notes": {"p95_ms": 300, "max_drop": {"mrr": 2.5}, "max_drop_everywhere": 50}},
        by_category=True,
        margin="derived",
        reasons={"margin": "r"},
    )
    assert space.check().code == 0
    space.sidecar.unlink()
    assert space.check().code == 0
    return space


@pytest.fixture
def fresh(world: Space) -> Iterator[Space]:
    """The workspace, with its files put back after all examples."""
    kept = {path: path.read_bytes() for path in (world.floors, world.budgets, world.evidence, world.report)}
    yield world
    for path, data in kept.items():
        path.write_bytes(data)
    assert world.check().code == 0


def answers(space: Space, *codes: int) -> int:
    done = space.check()
    assert done.code in codes, done
    assert "Traceback" not in done.err
    assert "internal error" not in done.err
    return done.code


@pytest.mark.parametrize("file", ["report", "evidence"])
def test_any_json_as_a_report_or_evidence_is_refused(fresh: Space, file: str) -> None:
    """K3: a malformed report is a failure, and never one of the program."""
    path: Path = getattr(fresh, file)

    @SETTINGS
    @given(values)
    def run(value: Any) -> None:
        path.write_text(json.dumps(value))
        answers(fresh, 1)

    run()


def graded(space: Space) -> list[tuple[Any, ...]]:
    """The bars that a verdict of 0 holds the arm to."""
    (arm,) = space.check().verdict["arms"]
    names = ("measure", "category", "n", "lowest", "misses_allowed")
    return [tuple(grade[name] for name in names) for grade in arm["graded"]]


@pytest.mark.parametrize("file", ["report", "evidence", "floors", "budgets"])
def test_any_bytes_as_a_file_are_refused(fresh: Space, file: str) -> None:
    """K3: cut short, padded, or not text at all; evidence says what it said, or is refused."""
    path: Path = getattr(fresh, file)
    whole = path.read_bytes()
    lines = read_evidence(fresh.evidence)

    @SETTINGS
    @given(
        st.binary(max_size=60)
        | st.integers(0, len(whole) - 3).map(lambda n: whole[:n])
        | st.tuples(st.integers(0, len(whole) - 3), st.binary(min_size=1, max_size=3)).map(
            lambda pair: whole[: pair[0]] + pair[1] + whole[pair[0] :]
        )
    )
    def run(data: bytes) -> None:
        path.write_bytes(data)
        code = answers(fresh, *((0, 1) if file in ("report", "evidence") else (0, 1, 2)))
        assert code or file != "evidence" or read_evidence(path) == lines

    run()


FREE = {("environment", "process"), ("environment", "host")}


def is_free(place: tuple[Any, ...]) -> bool:
    """Whether a value of a report says nothing of quality: timing, process and host."""
    return place in FREE or place[0] in ("latency", "ingest")


def test_every_place_of_a_report_is_bound_to_the_others(fresh: Space) -> None:
    """A4, K3: each leaf in turn is made the next like it; nothing but timing, process and host may be."""
    whole = json.loads(fresh.report.read_text())
    places = list(leaves(whole))
    assert len(places) > 800
    passed = set()
    for place in places:
        raw = json.dumps(altered(whole, place, nudged(at(whole, place)))).encode()
        try:
            parse_report(raw, fresh.report, "notes")
        except Refused as error:
            assert error.code in ("report-malformed", "report-of-another-arm")
        else:
            passed.add(place)
    assert passed
    assert {place for place in passed if not is_free(place)} == set()


def nudged(value: Any) -> Any:
    """A value of the same kind that is another one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return (
        f"{value}x" if isinstance(value, str) else ["x"] if value == [] else {"x": 1} if value == {} else "x"
    )


def test_a_report_altered_in_one_place_passes_only_where_nothing_is_at_stake(fresh: Space) -> None:
    """A4, K3: every value is bound to the others, but for timing and the names of process and host."""
    whole = json.loads(fresh.report.read_text())
    places = list(leaves(whole))
    assert len(places) > 600

    @MORE
    @given(st.sampled_from(places), st.sampled_from(ODD) | values)
    def run(place: tuple[Any, ...], new: Any) -> None:
        if same(at(whole, place), new):
            return
        fresh.report.write_text(json.dumps(altered(whole, place, new)))
        if answers(fresh, 0, 1) == 0:
            assert is_free(place), (place, at(whole, place), new)

    run()


def test_evidence_altered_in_one_place_is_refused(fresh: Space) -> None:
    """K5: of a line, no value is free."""
    whole = [json.loads(line) for line in fresh.evidence.read_text().splitlines()]
    places = list(leaves(whole))
    assert len(places) > 200

    @MORE
    @given(st.sampled_from(places), st.sampled_from(ODD) | values)
    def run(place: tuple[Any, ...], new: Any) -> None:
        if same(at(whole, place), new):
            return
        lines = altered(whole, place, new)
        fresh.evidence.write_text("".join(json.dumps(line) + "\n" for line in lines))
        answers(fresh, 1)

    run()


def test_with_its_provenance_no_byte_of_a_report_is_free(space: Space) -> None:
    """S4: nor is timing, nor the white space between values."""
    whole = json.loads(space.report.read_text())
    raw = space.report.read_bytes()
    assert answers(space, 0) == 0
    for place in [place for place in leaves(whole) if is_free(place)]:
        space.report.write_text(json.dumps(altered(whole, place, nudged(at(whole, place)))))
        answers(space, 1)
    space.report.write_bytes(raw + b"\n")
    answers(space, 1)
    space.report.write_bytes(raw)
    answers(space, 0)


def test_a_row_dropped_doubled_or_moved_is_noticed_or_means_nothing(fresh: Space) -> None:
    """A4: pairing is by id: an order means nothing, a row more or less does."""
    whole = json.loads(fresh.report.read_text())
    rows = whole["rows"]

    @SETTINGS
    @given(st.lists(st.sampled_from(range(27)), min_size=20, max_size=30) | st.permutations(range(27)))
    def run(order: list[int]) -> None:
        fresh.report.write_text(json.dumps({**whole, "rows": [rows[number] for number in order]}))
        answers(fresh, 0 if sorted(order) == list(range(27)) else 1)

    run()


@pytest.mark.parametrize("file", ["floors", "budgets"])
def test_any_toml_as_policy_is_graded_or_refused(fresh: Space, file: str) -> None:
    """K3: a policy file at fault exits 2, with words."""
    path: Path = getattr(fresh, file)
    schema = {"floors": "floors-v2", "budgets": "budgets-v2"}[file]
    toml = st.recursive(
        st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats()
        | st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8)
        | st.dates(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
        max_leaves=15,
    )

    @SETTINGS
    @given(st.dictionaries(words, toml, max_size=4), st.booleans(), toml)
    def run(table: dict[str, Any], named: bool, arm: Any) -> None:
        if named:
            table = {**table, "schema": schema, "arms": {"notes": arm}}
        path.write_text(tomlkit.dumps(table))
        answers(fresh, 1, 2) if file == "floors" else answers(fresh, 0, 1, 2)

    run()


def test_floors_altered_in_one_place_pass_only_where_the_bar_is_not_lowered(fresh: Space) -> None:
    """K2, S5: a number is what the evidence and the choices give; the bars that then pass are those that were."""
    whole = tomllib.loads(fresh.floors.read_text())
    places = list(leaves(whole))
    bars = graded(fresh)

    @MORE
    @given(
        st.sampled_from(places), st.sampled_from([v for v in ODD if v not in (None, {"a": None}, 10**400)])
    )
    def run(place: tuple[Any, ...], new: Any) -> None:
        if same(at(whole, place), new):
            return
        fresh.floors.write_text(tomlkit.dumps(altered(whole, place, new)))
        if answers(fresh, 0, 1, 2) == 0:
            assert graded(fresh) == bars, (place, at(whole, place), new)

    run()


@pytest.mark.parametrize("file", ["floors", "budgets"])
def test_a_part_of_the_policy_put_in_or_left_out_does_not_lower_the_bar_unsaid(
    fresh: Space, file: str
) -> None:
    """K2, K5: a key, table or list left out, or anything put in its place: graded as no looser bar, or refused.

    A budget is what a person writes, so that one that reads may be looser where it says why.
    """
    path: Path = getattr(fresh, file)
    whole = tomllib.loads(path.read_text())
    parts = list(inner(whole))
    bars = graded(fresh)
    toml = st.recursive(
        st.sampled_from([v for v in ODD if v not in (None, [], {"a": None}, 10**400)]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
        max_leaves=8,
    )

    @MORE
    @given(st.sampled_from(parts), st.none() | toml)
    def run(place: tuple[Any, ...], new: Any) -> None:
        changed = copy.deepcopy(whole)
        holder = at(changed, place[:-1])
        if new is None:
            del holder[place[-1]]
        else:
            holder[place[-1]] = new
        path.write_text(tomlkit.dumps(changed))
        code = answers(fresh, 0, 1, 2)
        if code == 0 and file == "floors":
            assert graded(fresh) == bars, (place, new)

    run()


def inner(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to everything below the top of a TOML value, tables and lists too."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in below:
        yield (*path, name)
        yield from inner(item, (*path, name))


@pytest.mark.parametrize("file", ["floors", "budgets"])
def test_a_line_of_the_policy_lost_doubled_or_swapped_does_no_harm(fresh: Space, file: str) -> None:
    """K2, K3: what a merge does to a file of lines: graded as no looser bar, or a fault of the file."""
    path: Path = getattr(fresh, file)
    lines = path.read_text().splitlines()
    bars = graded(fresh)
    place = st.integers(0, len(lines) - 1)

    @MORE
    @given(place, place, st.sampled_from(["lost", "doubled", "swapped"]))
    def run(one: int, other: int, how: str) -> None:
        changed = list(lines)
        if how == "lost":
            del changed[one]
        elif how == "doubled":
            changed.insert(other, lines[one])
        else:
            changed[one], changed[other] = changed[other], changed[one]
        path.write_text("\n".join(changed) + "\n")
        code = answers(fresh, 0, 1, 2)
        if code == 0 and file == "floors":
            assert sorted(graded(fresh), key=str) == sorted(bars, key=str)

    run()


def test_a_budget_altered_in_one_place_is_read_or_refused(fresh: Space) -> None:
    whole = tomllib.loads(fresh.budgets.read_text())
    places = list(leaves(whole))

    @SETTINGS
    @given(
        st.sampled_from(places), st.sampled_from([v for v in ODD if v not in (None, {"a": None}, 10**400)])
    )
    def run(place: tuple[Any, ...], new: Any) -> None:
        fresh.budgets.write_text(tomlkit.dumps(altered(whole, place, new)))
        code = answers(fresh, 0, 1, 2)
        if code == 0:
            assert isinstance(new, int | float), (place, new)
            assert not isinstance(new, bool), (place, new)

    run()


@pytest.mark.parametrize("file", ["floors", "budgets"])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("n = " + "9" * 5000, id="digits"),
        pytest.param("n = 0x" + "f" * 9000, id="hexadecimal"),
        pytest.param("a." * 3000 + "b = 1", id="dotted"),
        pytest.param("a = " + "[" * 3000 + "]" * 3000, id="lists"),
        pytest.param("a = " + "{a=" * 3000 + "1" + "}" * 3000, id="tables"),
        pytest.param('a = "\\ud800"', id="surrogate"),
        pytest.param("a = 2020-13-45", id="date"),
    ],
)
def test_toml_at_the_edge_of_its_grammar_is_a_fault_of_the_file(fresh: Space, file: str, text: str) -> None:
    """K3: numbers of thousands of digits and tables without end are no policy, and no crash."""
    path: Path = getattr(fresh, file)
    path.write_text(f'schema = "{file}-v2"\n{text}\n')
    answers(fresh, 2)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda r: r["rows"][0]["judged"][0].update(grade=10**400), id="a huge grade"),
        pytest.param(lambda r: r["rows"][0]["judged"][0].update(rank=10**400), id="a huge rank"),
        pytest.param(lambda r: r["task"]["parts"].update(limit=10**400), id="a huge limit"),
        pytest.param(lambda r: r["task"]["parts"].update(cutoffs=[1, 10**400]), id="a huge cut-off"),
        pytest.param(lambda r: r["task"]["parts"].update(limit=10**400, cutoffs=[1, 10**400]), id="both"),
    ],
)
def test_numbers_beyond_arithmetic_are_refused(fresh: Space, change: Any) -> None:
    """K3: no value of a report makes the program fail."""
    fresh.alter(fresh.report, change)
    answers(fresh, 1)


@pytest.mark.parametrize(
    "place", [(0, "task", "limit"), (0, "entries", 0, "judged", 0, 2), (0, "health", "scored")]
)
def test_numbers_of_evidence_beyond_arithmetic_are_refused(fresh: Space, place: tuple[Any, ...]) -> None:
    """K3: nor does one of evidence."""
    whole = [json.loads(line) for line in fresh.evidence.read_text().splitlines()]
    lines = altered(whole, place, 10**400)
    fresh.evidence.write_text("".join(json.dumps(line) + "\n" for line in lines))
    answers(fresh, 1)


def test_deep_json_is_refused(fresh: Space) -> None:
    fresh.report.write_text('{"rows": ' + "[" * 100_000)
    answers(fresh, 1)
    fresh.report.write_text('{"rows": ' + "[" * 100_000 + "]" * 100_000 + "}")
    answers(fresh, 1)
