"""floors.toml and budgets.toml are read strictly: a bar with a misspelt key is no bar."""

from __future__ import annotations

from pathlib import Path

import pytest
from core_support import write_policy
from evidence_support import hits
from pydantic import BaseModel

from eval_core.errors import EvalError, Faults, Misuse, Refused
from eval_core.policy.evidence import dump, path_of
from eval_core.policy.files import is_name, parse_budgets, parse_floors, read_baseline, read_policy
from eval_core.policy.models import ArmFloors, Budget, Budgets, CategoryFloors, Floors

HEAD = 'schema = "floors-v2"\n'
ARM = '[arms.a]\nruns = ["r1"]\nn = 9\n'


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    write_policy(tmp_path / "policy", {"a": [hits(27, 1, "r1"), hits(27, 0, "r2")], "b": [hits(27, 1, "r1")]})
    return tmp_path / "policy"


def test_an_arm_has_its_floors_its_budget_and_the_lines_that_it_cites(policy: Path) -> None:
    (policy / "budgets.toml").write_text('schema = "budgets-v2"\n[arms.a]\np95_ms = 5\n')
    with path_of(policy, "a").open("ab") as stream:
        stream.write(dump([hits(27, 2, "r3")]))
    read = read_policy(policy, plain=["b"])
    assert [line.run_id for line in read.arm("a").lines] == ["r1", "r2"]
    assert (read.arm("a").p95_ms, read.arm("b").p95_ms) == (5.0, None)
    assert read.arm("a").floors.misses_allowed == {"hit@1": 3}
    assert read.traces() == ["a", "b"]
    assert read_baseline(policy, "a").run_id == "r2"


def test_a_run_that_is_cited_and_has_no_line_is_refused(policy: Path) -> None:
    """ATTACKS 17."""
    path_of(policy, "a").write_bytes(dump([hits(27, 0, "r2")]))
    with pytest.raises(Refused) as caught:
        read_policy(policy).arm("a")
    assert caught.value.code == "evidence-missing"
    assert "run r1" in caught.value.message


def test_a_baseline_is_of_an_arm_that_has_floors(policy: Path) -> None:
    with pytest.raises(Misuse, match="did you mean 'a'") as caught:
        read_baseline(policy, "aa")
    assert caught.value.code == "baseline-missing"


def test_without_floors_there_is_nothing_to_gate_on(tmp_path: Path) -> None:
    with pytest.raises(Misuse) as caught:
        read_policy(tmp_path / "policy")
    assert caught.value.code == "floors-missing"
    assert "eval-gate floor --measure" in (caught.value.mend or "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + ARM + "margn = 2\n", "unknown key"),
        (HEAD + "[arms.a]\nn = 9\n", "arms.a.runs: it is missing"),
        (HEAD + ARM + "margin = -1\n", "margin"),
        (HEAD + ARM + 'margin = "wide"\n', "margin"),
        (HEAD + ARM + "margin = 2.5\n", "margin"),
        (HEAD + ARM + "drift = 0.6\n", "drift"),
        (HEAD + ARM + "floors = { mrr = nan }\n", "mrr"),
        (HEAD + ARM + 'reasons = { margin = "" }\n', "reasons"),
        (HEAD + "[arms.a]\nruns = ['../r']\nn = 9\n", "runs"),
        (HEAD + "[arms.a]\nruns = ['r']\nn = 27.0\n", "n = 27.0"),
        (HEAD + "[arms.a]\nruns = ['r']\nn = true\n", "n = True"),
        (HEAD + '[arms."../a"]\nruns = ["r"]\nn = 9\n', "a name consists of lower-case letters"),
        (HEAD + '[retired]\na = "gone"\n' + ARM, "has floors, too"),
        ('schema = "floors-v2"\nrequire = ["heads"]\n', "require"),
        ('schema = "floors-v3"\n', "schema"),
        ("", "schema: it is missing"),
    ],
)
def test_what_is_wrong_with_floors_is_a_fault_of_the_file(text: str, words: str) -> None:
    """ATTACKS 9 to 11."""
    with pytest.raises(Faults) as caught:
        parse_floors(text, Path("policy/floors.toml"))
    assert words in caught.value.message
    assert "policy/floors.toml" in caught.value.message


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ('schema = "floors-v1"\n[arms.a]\nmetrics = 3\n', "policy-outdated", "first form of floors"),
        (HEAD + 'min_gate = "99"\n', "gate-outdated", "needs eval-gate 99 or newer"),
        (HEAD + 'min_gate = "99"\nnew = 1\n', "gate-outdated", "needs eval-gate 99 or newer"),
        ("x = [", None, "not TOML"),
    ],
)
def test_floors_of_another_time_say_what_to_do(text: str, code: str | None, words: str) -> None:
    with pytest.raises(EvalError) as caught:
        parse_floors(text, Path("floors.toml"))
    assert words in caught.value.message
    assert (code is None or caught.value.code == code) and caught.value.exit_code == 2


@pytest.mark.parametrize("version", ["0", "0.1", "0.1.0", "0.1.0.0"])
def test_a_gate_that_is_new_enough_reads_on(version: str) -> None:
    assert parse_floors(HEAD + f'min_gate = "{version}"\n', Path("floors.toml")).min_gate == version


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[arms.b]\np95_ms = 5\n", "has a budget and no floors"),
        ("[arms.a]\np95_ms = 0\n", "p95_ms"),
        ("[arms.a]\np95_ms = inf\n", "p95_ms"),
        ("[arms.a]\nmax_net_lost = 9\n", "unknown key"),
        ("[arms.a.max_drop]\n'recal@10' = 1\n", "did you mean 'recall@10'"),
        ("[arms.a.max_drop]\nmrr = 101\n", "max_drop"),
        ("[arms.a.max_drop]\nmrr = -1\n", "max_drop"),
    ],
)
def test_what_is_wrong_with_budgets_is_a_fault_of_the_file(text: str, words: str) -> None:
    floors = parse_floors(HEAD + ARM, Path("floors.toml"))
    with pytest.raises(Faults) as caught:
        parse_budgets('schema = "budgets-v2"\n' + text, Path("budgets.toml"), floors)
    assert words in caught.value.message


@pytest.mark.parametrize("name", ["", "A", "../a", "a b", "-a", ".a", "a/b", "a\n"])
def test_what_cannot_be_a_file_is_no_name(name: str) -> None:
    assert not is_name(name)
    assert is_name("memory-bm25.kind_2")


@pytest.mark.parametrize("model", [Floors, ArmFloors, CategoryFloors, Budget])
def test_every_field_says_in_which_direction_it_lets_more_pass(model: type[BaseModel]) -> None:
    """POLICY.md: which choice is looser is read from the models' fields, never from a hand-kept list."""
    for name, field in model.model_fields.items():
        mark = field.json_schema_extra
        assert isinstance(mark, dict) and mark.get("looser", "") in ("higher", "fewer", "other", None), name


def test_the_schema_of_budgets_is_that_of_its_arms() -> None:
    assert Budgets(schema_="budgets-v2").arms == {}
