"""Conditions of real workflows, what they need and what starts them, against answers worked by hand."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_tier.workflow.conditions import Scene, covers, reach, step_runs, truth
from eval_tier.workflow.models import EVENTS, Job, Place, Step, Trigger, Workflow
from eval_tier.workflow.triggers import matches

AT = Place("ci.yml", 1)
LETTERS = {"t": "true", "f": "false", "v": "varies", "u": "unknown"}
PULL = "github.event.pull_request"

# One letter each for a fork, a branch and the merge queue.
CONDITIONS = [
    ("", "ttt"),
    ("true", "ttt"),
    ("false", "fff"),
    ("${{ false }}", "fff"),
    ("${{ !false }}", "ttt"),
    ("always()", "ttt"),
    ("success()", "ttt"),
    ("failure()", "fff"),
    ("cancelled()", "fff"),
    ("!cancelled()", "ttt"),
    ("!failure() && !cancelled()", "ttt"),
    ("success() || failure()", "ttt"),
    ("ALWAYS()", "ttt"),
    ("always() && github.event_name == 'pull_request'", "ttf"),
    ("github.event_name == 'pull_request'", "ttf"),
    ("github.event_name == 'PULL_REQUEST'", "ttf"),
    ("github.event_name != 'pull_request'", "fft"),
    ("github['event_name'] == 'push'", "fff"),
    ("github.event_name == 'push' || github.event_name == 'workflow_dispatch'", "fff"),
    ("github.event_name == 'merge_group'", "fft"),
    ('contains(fromJSON(\'["push", "pull_request"]\'), github.event_name)', "ttf"),
    ("github.event_name == 'push' && github.ref == 'refs/heads/main'", "fff"),
    ("github.ref == 'refs/heads/main'", "fff"),
    ("github.ref != 'refs/heads/main'", "ttt"),
    ("github.ref_name == 'main'", "fff"),
    ("startsWith(github.ref, 'refs/tags/')", "fff"),
    ("startsWith(github.ref, 'refs/tags/v') && github.repository == 'o/r'", "fff"),
    ("startsWith(github.ref, 'refs/pull/')", "ttf"),
    ("startsWith(github.ref, 'refs/heads/gh-readonly-queue')", "fft"),
    ("endsWith(github.ref, '/merge')", "ttv"),
    ("contains(github.ref, 'refs/tags')", "ffv"),
    ("contains(github.ref, 'pull')", "ttv"),
    ("github.ref_type == 'tag'", "ffu"),
    ("github.base_ref == 'main'", "ttf"),
    ("github.base_ref == 'develop'", "fff"),
    ("github.base_ref", "ttf"),
    ("github.head_ref != ''", "ttf"),
    ("github.head_ref == 'develop'", "vvf"),
    ("startsWith(github.head_ref, 'renovate/')", "vvf"),
    ("!startsWith(github.head_ref, 'dependabot/')", "vvt"),
    (f"{PULL}.base.ref == 'main'", "ttf"),
    (f"{PULL}.base.ref == github.event.repository.default_branch", "ttf"),
    (f"{PULL}.head.repo.fork", "tff"),
    (f"!{PULL}.head.repo.fork", "ftt"),
    (f"{PULL}.head.repo.fork == false", "ftt"),
    (f"{PULL}.head.repo.full_name == github.repository", "ftf"),
    (f"{PULL}.head.repo.full_name != github.repository", "tft"),
    (f"github.repository == {PULL}.head.repo.full_name", "ftf"),
    (f"github.event_name != 'pull_request' || {PULL}.head.repo.full_name == github.repository", "ftt"),
    (f"{PULL}.head.repo.owner.login == github.repository_owner", "utu"),
    ("github.repository == 'owner/project'", "uuu"),
    ("github.repository_owner == 'owner'", "uuu"),
    (f"{PULL} != null", "ttf"),
    (f"{PULL}", "ttf"),
    (f"{PULL}.number", "ttf"),
    ("github.event.number == 7", "vvv"),
    (f"{PULL}.draft == false", "vvt"),
    (f"!{PULL}.draft", "vvt"),
    (f"github.event_name != 'pull_request' || !{PULL}.draft", "vvt"),
    (f"{PULL}.draft != true", "vvt"),
    (f"contains({PULL}.labels.*.name, 'run-evals')", "vvf"),
    (f"!contains({PULL}.labels.*.name, 'skip-ci')", "vvt"),
    (f"contains({PULL}.title, '[skip]')", "vvf"),
    (f"{PULL}.user.login != 'dependabot[bot]'", "vvt"),
    (f"{PULL}.user.login == 'octocat'", "vvf"),
    (f"{PULL}.author_association == 'MEMBER'", "vvf"),
    (f'contains(fromJSON(\'["OWNER","MEMBER"]\'), {PULL}.author_association)', "vvf"),
    ("github.actor != 'dependabot[bot]'", "vvv"),
    ("github.triggering_actor == 'renovate[bot]'", "vvv"),
    ("github.event.action != 'closed'", "ttt"),
    ("github.event.action == 'closed'", "fff"),
    ("github.event.action == 'opened'", "vvf"),
    ("github.event.action == 'labeled' && github.event.label.name == 'eval'", "vvf"),
    (f"{PULL}.merged == true", "vvf"),
    ("!contains(github.event.head_commit.message, '[skip ci]')", "ttt"),
    ("github.event.inputs.full == 'true'", "fff"),
    ("inputs.full", "uuu"),
    ("vars.RUN_EVALS == 'true'", "uuu"),
    ("secrets.OPENAI_API_KEY != ''", "fuu"),
    ("secrets.OPENAI_API_KEY == ''", "tuu"),
    ("secrets.GITHUB_TOKEN != ''", "ttt"),
    ("env.KEY != ''", "uuu"),
    ("env.MODE == 'full'", "ttt"),
    ("env.MODE == 'fast'", "fff"),
    ("env.TOKEN != ''", "uuu"),
    ("steps.filter.outputs.src == 'true'", "vvv"),
    ("steps.cache.outputs.cache-hit != 'true'", "vvv"),
    ("steps.test.outcome == 'failure'", "fff"),
    ("always() && steps.test.outcome != 'failure'", "ttt"),
    ("steps.test.outcome == 'success'", "uuu"),
    ("needs.changes.outputs.code == 'true'", "vvv"),
    ("needs.changes.outputs.code == 'true' || github.event_name == 'merge_group'", "vvt"),
    ("hashFiles('**/poetry.lock') != ''", "vvv"),
    ("matrix.python == '3.11'", "ttt"),
    ("matrix.python == 3.11", "ttt"),
    ("matrix.python != '3.11'", "fff"),
    ("matrix.os == 'ubuntu-latest' && matrix.python == '3.12'", "fff"),
    ("startsWith(matrix.os, 'ubuntu')", "ttt"),
    ("matrix.coverage", "ttt"),
    ("matrix.experimental", "uuu"),
    ("matrix.absent", "fff"),
    ("!matrix.absent", "ttt"),
    ("runner.os == 'Linux'", "ttt"),
    ("runner.os != 'Windows'", "ttt"),
    ("runner.os == 'macOS'", "fff"),
    ("job.status == 'success'", "ttt"),
    ("1 < 2", "ttt"),
    ("2 >= '3'", "fff"),
    ("'' == 0", "ttt"),
    ("null == false", "ttt"),
    ("'a' < 'B'", "ttt"),
    ("'abc' == 0", "fff"),
    ("'0x10' == 16", "ttt"),
    ("true == '1'", "ttt"),
    ("'it''s' == 'IT''S'", "ttt"),
    ("!(1 == 2) && 3 > 2 == true", "ttt"),
    ("true || false && false", "ttt"),
    ("(true || false) && false", "fff"),
    ("! true == false", "ttt"),
    ("format('{0}-{1}', 'a', 1) == 'a-1'", "ttt"),
    ("format('{{0}}') == '{0}'", "ttt"),
    ("join(fromJSON('[1, 2]'), '-') == '1-2'", "ttt"),
    ("toJSON('a') == '\"a\"'", "ttt"),
    ("fromJSON('{\"a\": [false, true]}').A[1]", "ttt"),
    ("contains('Hello', 'ELL')", "ttt"),
    ("endsWith('a.PY', '.py')", "ttt"),
    (f"false && {PULL}.draft", "fff"),
    ("vars.X && false", "fff"),
    ("vars.X || true", "ttt"),
    ("true || vars.X", "ttt"),
    ("github.actor == 'x' && vars.X", "vvv"),
    ("vars.X && github.actor == 'x'", "vvv"),
    ("github.actor == 'x' || vars.X", "uuu"),
    ("!vars.X", "uuu"),
    ("(vars.X && '') == ''", "uuu"),
    # What GitHub would not take, or what is not followed.
    ("github.event_name = 'push'", "uuu"),
    ("&& true", "uuu"),
    ("'open", "uuu"),
    ("(true", "uuu"),
    ("nosuch()", "uuu"),
    ("contains('a')", "uuu"),
    ("fromJSON('{')", "uuu"),
    ('github.event_name == "push"', "uuu"),
    ("${{ true }} && ${{ false }}", "uuu"),
    ("\x00", "uuu"),
]


@pytest.mark.parametrize(("condition", "expected"), CONDITIONS, ids=[c for c, _ in CONDITIONS])
def test_a_condition_comes_to_what_github_says(condition: str, expected: str) -> None:
    leg = {"python": "3.11", "os": "ubuntu-22.04", "coverage": "true", "experimental": "false"}
    env = {"MODE": "full", "TOKEN": "${{ secrets.TOKEN }}"}
    found = [truth(condition or None, event, leg, "${{ matrix.os }}", env) for event in EVENTS]
    assert [each[0] for each in found] == [LETTERS[letter] for letter in expected], found
    assert all(why for _, why in found)


def test_the_reason_names_the_fact() -> None:
    assert truth(f"!{PULL}.draft", "fork") == ("varies", "a draft skips it")
    assert truth(f"contains({PULL}.labels.*.name, 'x')", "branch")[1].endswith(
        "the labels of the pull request"
    )
    assert "a pull request from a fork has no secrets" in truth("secrets.KEY", "fork")[1]
    assert "RUN_EVALS" in truth("vars.run_evals", "fork")[1].upper()


def test_what_is_known_of_the_run_is_used() -> None:
    assert truth("github.repository == 'O/R'", "branch", scene=Scene(repository="o/r"))[0] == "true"
    assert truth("github.repository_owner == 'other'", "branch", scene=Scene(repository="o/r"))[0] == "false"
    target = Scene(trigger="pull_request_target")
    assert truth("github.event_name == 'pull_request'", "fork", scene=target)[0] == "false"
    assert truth("secrets.KEY != ''", "fork", scene=target)[0] == "unknown"


HOSTILE = [
    "(" * 100_000,
    "(" * 40 + "true" + ")" * 40 + "&&" * 9,
    "!" * 100_000 + "true",
    "!" * 60 + "true",
    "true" + " == true" * 2_000,
    "a" + "[a" * 2_000,
    "x" * 1_000_000,
    "true" + " && true" * 3_000,
    " " * 1_000_000 + "'",
    "fromJSON('" + "[" * 20_000 + "')",
    "0x" + "f" * 20_000 + " == 1 && vars.X",
    "9" * 20_000 + " == '" + "9" * 400 + "' && vars.X",
    "format('" + "{0}" * 6_000 + "', '" + "x" * 2_000 + "')",
]
NEST = "'xxxxxxxxxx'"
for _ in range(20):
    NEST = f"format('{{0}}{{0}}{{0}}', {NEST})"
HOSTILE.append(NEST)


@pytest.mark.parametrize("condition", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_condition_is_unknown_at_once(condition: str) -> None:
    start = time.process_time()
    assert truth(condition, "fork")[0] == "unknown"
    assert time.process_time() - start < 0.5


PIECES = """
( ) [ ] . , * ! && || == != < >= 'a' '' 1 -2.5 null true github event matrix steps contains( format( '{0}' join( toJSON(
github.event.pull_request.draft github.ref vars.X fromJSON( '[1]' ${{ }} needs.*.result
"""


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES.split()), max_size=14).map(" ".join)))
def test_no_text_raises(condition: str) -> None:
    for event in EVENTS:
        found, why = truth(condition, event, {"a": "1"})
        assert found in LETTERS.values() and why


ATOMS = {"true": "t", "false": "f", "github.actor == 'x'": "v", "vars.X": "u"}


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.sampled_from(sorted(ATOMS)), lambda s: st.tuples(st.sampled_from(["&&", "||", "!"]), s, s)
    )
)
def test_true_and_false_hold_whatever_the_rest_is(tree: Any) -> None:
    """Both doubtful values are replaced by every constant: a certain answer must be that of each."""

    def text(node: Any, values: dict[str, str]) -> str:
        if isinstance(node, str):
            return values.get(node, node)
        sign, left, right = node
        return (
            f"!({text(left, values)})"
            if sign == "!"
            else f"({text(left, values)} {sign} {text(right, values)})"
        )

    def plain(node: Any, values: dict[str, str]) -> bool:
        expression = text(node, values).replace("&&", " and ").replace("||", " or ").replace("!", " not ")
        return bool(eval(f"({expression})", {"true": True, "false": False}))

    whole = text(tree, {})
    if whole.count("!") > 40 or whole.count("(") > 40:
        return
    found = truth(whole, "fork")[0]
    answers = {
        plain(tree, {"github.actor == 'x'": a, "vars.X": b})
        for a in ("true", "false")
        for b in ("true", "false")
    }
    if found in ("true", "false"):
        assert answers == {found == "true"}


def job(key: str, condition: str | None = None, *needs: str, **more: object) -> Job:
    return Job(AT, key, (key,), key, condition=condition, needs=needs, **more)  # type: ignore[arg-type]


def flow(*jobs: Job, **triggers: dict[str, tuple[str, ...]]) -> Workflow:
    on = {name: Trigger(name, AT, **keys) for name, keys in (triggers or {"pull_request": {}}).items()}
    return Workflow("ci.yml", triggers=on, jobs={each.key: each for each in jobs})


FORK = f"{PULL}.head.repo.fork == false"
NEEDS = [
    ("row 7: skipped with what it needs", [job("test", "false"), job("results", None, "test")], "f"),
    ("success is implied", [job("test", "false"), job("results", "github.base_ref == 'main'", "test")], "f"),
    ("an aggregator that always runs", [job("test", "false"), job("results", "always()", "test")], "t"),
    ("not cancelled", [job("test", FORK), job("results", "!cancelled()", "test")], "t"),
    ("not failed", [job("test", FORK), job("results", "!failure()", "test")], "t"),
    ("success is asked for", [job("test", FORK), job("results", "success()", "test")], "f"),
    ("varies", [job("test", f"!{PULL}.draft"), job("results", None, "test")], "v"),
    ("unknown", [job("test", "vars.X"), job("results", None, "test")], "u"),
    ("false before unknown", [job("a", "vars.X"), job("b", "false"), job("results", None, "a", "b")], "f"),
    ("far back", [job("a", "false"), job("b", "always()", "a"), job("results", None, "b")], "f"),
    ("all well", [job("a"), job("b", None, "a"), job("results", None, "a", "b")], "t"),
    ("its result", [job("a"), job("results", "always() && needs.a.result == 'success'", "a")], "t"),
    (
        "a skip is not a success",
        [job("a", "false"), job("results", "always() && needs.a.result == 'success'", "a")],
        "f",
    ),
    (
        "of all",
        [job("a", "false"), job("results", "always() && !contains(needs.*.result, 'failure')", "a")],
        "t",
    ),
    (
        "skipped among all",
        [job("a", "false"), job("results", "always() && contains(needs.*.result, 'skipped')", "a")],
        "t",
    ),
    ("a circle", [job("a", None, "results"), job("results", None, "a")], "f"),
    ("of itself", [job("results", None, "results")], "f"),
    ("nothing of the name", [job("results", None, "gone")], "u"),
    ("row 8: a matrix with an if", [job("results", f"!{PULL}.draft", matrix=({"a": "1"}, {"a": "2"}))], "v"),
    ("one leg", [job("results", "matrix.a == '2'", matrix=({"a": "1"}, {"a": "2"}))], "t"),
    (
        "a long chain",
        [job("0"), *(job(str(i), None, str(i - 1)) for i in range(1, 400)), job("results", None, "399")],
        "t",
    ),
    ("too many jobs", [*(job(str(i)) for i in range(2_000)), job("results")], "u"),
]


@pytest.mark.parametrize(("jobs", "expected"), [n[1:] for n in NEEDS], ids=[n[0] for n in NEEDS])
def test_a_job_runs_if_what_it_needs_runs(jobs: list[Job], expected: str) -> None:
    start = time.process_time()
    found = reach(flow(*jobs), "results", "fork")
    assert found[0] == LETTERS[expected], found
    assert time.process_time() - start < 1


def test_the_reason_of_a_skip_names_the_needed_job_and_its_line() -> None:
    first = Job(Place("ci.yml", 7), "test", ("test",), "test", condition="false")
    _, why, place = reach(flow(first, job("results", None, "test")), "results", "branch")
    assert "`test`" in why and place == Place("ci.yml", 7)


def test_a_job_is_asked_about_the_event_that_starts_it() -> None:
    target = flow(job("a", "github.event_name == 'pull_request_target'"), pull_request_target={})
    assert reach(target, "a", "fork")[0] == "true"


TRIGGERS = [
    ({"pull_request": {}}, "ttf"),
    ({"pull_request_target": {}}, "fff"),
    ({"pull_request": {}, "merge_group": {}}, "ttt"),  # row 15 mended
    ({"push": {}}, "ftf"),
    ({"push": {"branches": ("main",)}}, "fff"),
    ({"push": {"branches": ("**",)}}, "ftf"),
    ({"push": {"branches": ("feature/*",)}}, "fvf"),
    ({"push": {"branches_ignore": ("main",)}}, "ftf"),
    ({"push": {"branches_ignore": ("docs/**",)}}, "fvf"),
    ({"push": {"paths": ("src/**",)}}, "fvf"),
    ({"push": {"branches": ("main",)}, "pull_request": {}}, "ttf"),
    ({"schedule": {}, "workflow_dispatch": {}}, "fff"),  # row 19
    ({"workflow_call": {}}, "fff"),
    ({"pull_request": {"branches": ("main",)}}, "ttf"),
    ({"pull_request": {"branches": ("develop", "release/**")}}, "fff"),
    ({"pull_request": {"branches": ("**", "!main")}}, "fff"),
    ({"pull_request": {"branches": ("!main", "**")}}, "ttf"),
    ({"pull_request": {"branches": ("!develop",)}}, "fff"),
    ({"pull_request": {"branches": ("[",)}}, "uuf"),
    ({"pull_request": {"branches_ignore": ("main",)}}, "fff"),
    ({"pull_request": {"branches_ignore": ("docs",)}}, "ttf"),
    ({"pull_request": {"paths": ("src/**",)}}, "vvf"),  # row 16
    ({"pull_request": {"paths_ignore": ("docs/**",)}}, "vvf"),
    ({"pull_request": {"types": ("opened", "synchronize", "reopened", "labeled")}}, "ttf"),
    ({"pull_request": {"types": ("opened",)}}, "vvf"),
    ({"pull_request": {"types": ("labeled",)}}, "vvf"),
    ({"pull_request": {}, "merge_group": {"branches": ("develop",)}}, "ttf"),
]


@pytest.mark.parametrize(("triggers", "expected"), TRIGGERS, ids=[str(t) for t, _ in TRIGGERS])
def test_a_workflow_starts_for_every_pull_request_of_a_kind(
    triggers: dict[str, dict[str, tuple[str, ...]]], expected: str
) -> None:
    found = [covers(flow(**triggers), event) for event in EVENTS]
    assert [each[0] for each in found] == [LETTERS[letter] for letter in expected], found


def test_a_filter_of_paths_says_that_the_check_stays_pending() -> None:
    assert "pending" in covers(flow(pull_request={"paths": ("a",)}), "fork")[1]
    assert "a pull request from a fork starts nothing" in covers(flow(push={}), "fork")[1]


# From GitHub's own table of filter patterns.
PATTERNS = [
    ("feature/*", "feature/my-branch", True),
    ("feature/*", "feature/beta-a/my-branch", False),
    ("feature/**", "feature/beta-a/my-branch", True),
    ("*", "main", True),
    ("*", "all/the/branches", False),
    ("**", "all/the/branches", True),
    ("*feature", "ver-10-feature", True),
    ("v2*", "v2.0", True),
    ("v[12].[0-9]+.[0-9]+", "v1.10.1", True),
    ("v[12].[0-9]+.[0-9]+", "v3.1.1", False),
    ("*.jsx?", "page.js", True),
    ("*.jsx?", "page.jsx", True),
    ("mai\\n", "main", True),
    ("main", "Main", False),
    ("[ab", "a", None),
    ("+", "+", None),
    ("**a" * 300 + "b", "a" * 300, False),
]


@pytest.mark.parametrize(("pattern", "text", "expected"), PATTERNS)
def test_a_filter_pattern_matches_as_on_github(pattern: str, text: str, expected: bool | None) -> None:
    assert matches(pattern, text) is expected


def test_a_step_runs_if_it_does_in_some_leg() -> None:
    legs = ({"py": "3.11"}, {"py": "3.12"})
    two = job("a", matrix=legs, env={"MODE": "full"})
    for condition, expected in {
        None: "true",
        "false": "false",  # row 14
        "matrix.py == '3.12'": "true",
        "matrix.py == '3.13'": "false",
        f"matrix.py == '3.12' && !{PULL}.draft": "varies",
        "matrix.py == '3.12' && vars.X": "unknown",
        "env.MODE == 'full'": "true",
    }.items():
        assert step_runs(Step(AT, condition=condition), two, "branch")[0] == expected, condition
    assert step_runs(Step(AT, condition="matrix.py == '3.12'"), job("a", open=True), "branch")[0] == "unknown"
