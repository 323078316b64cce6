"""Conditions come to true, false, varies or unknown, for a fork, a branch and the merge queue."""

from __future__ import annotations

import pytest

from eval_tier.workflow.actions import parse
from eval_tier.workflow.conditions import covers, reach, truth
from eval_tier.workflow.models import EVENTS, Workflow

PULL = "github.event.pull_request"


def read(raw: str) -> Workflow:
    return parse(".github/workflows/ci.yml", raw.encode(), lambda _: None)


@pytest.mark.parametrize(
    ("condition", "fork", "branch", "queue"),
    [
        (None, "true", "true", "true"),
        ("true", "true", "true", "true"),
        ("${{ false }}", "false", "false", "false"),
        ("always()", "true", "true", "true"),
        ("!cancelled()", "true", "true", "true"),
        ("failure()", "false", "false", "false"),
        ("github.event_name == 'Pull_Request'", "true", "true", "false"),
        ("github.event_name == 'schedule' || github.event_name == 'merge_group'", "false", "false", "true"),
        (f"{PULL}.head.repo.fork == false", "false", "true", "true"),
        (f"{PULL}.head.repo.full_name == github.repository", "false", "true", "false"),
        (f"!{PULL}.draft", "varies", "varies", "true"),
        (f"contains({PULL}.labels.*.name, 'bench')", "varies", "varies", "false"),
        ("false && github.actor == 'x'", "false", "false", "false"),
        ("github.actor == 'x' && false", "false", "false", "false"),
        ("true || vars.X", "true", "true", "true"),
        ("vars.X || true", "true", "true", "true"),
        ("vars.X == 'a'", "unknown", "unknown", "unknown"),
        ("github.actor == 'x' && vars.X", "unknown", "unknown", "unknown"),
        ("secrets.KEY != ''", "false", "unknown", "unknown"),
        ("steps.x.outputs.changed == 'true'", "varies", "varies", "varies"),
        ("hashFiles('x') != ''", "varies", "varies", "varies"),
        ("github.ref == 'refs/heads/main'", "false", "false", "false"),
        ("startsWith(github.ref, 'refs/heads/gh-readonly-queue/')", "false", "false", "true"),
        ("github.base_ref == 'main'", "true", "true", "false"),
        ("contains(fromJSON('[\"merge_group\"]'), github.event_name)", "false", "false", "true"),
        ("format('{0}-{1}', 'a', 1) == 'a-1'", "true", "true", "true"),
        ("'1' == 1 && null == 0 && '' == false", "true", "true", "true"),
        ("1 < 2 == true && !(2 <= 1)", "true", "true", "true"),
        ("true || false && false", "true", "true", "true"),
        ("a ==", "unknown", "unknown", "unknown"),
        ("(" * 100_000, "unknown", "unknown", "unknown"),
        ("(" * 10_000, "unknown", "unknown", "unknown"),
        ("format('{0}{0}', " * 45 + "'x'" + ")" * 45 + " == ''", "unknown", "unknown", "unknown"),
        ("!" * 10_000 + "true", "true", "true", "true"),
        ("nosuch(1)", "unknown", "unknown", "unknown"),
        ("x ${{ true }}", "unknown", "unknown", "unknown"),
    ],
)
def test_truth(condition: str | None, fork: str, branch: str, queue: str) -> None:
    assert [truth(condition, event, branch="main")[0] for event in EVENTS] == [fork, branch, queue]


def test_the_reason_is_said() -> None:
    assert truth(f"!{PULL}.draft", "fork") == ("varies", "it depends on whether the pull request is a draft")


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ("a: {steps: []}", "true"),
        ("a: {needs: b, steps: []}\n  b: {if: false, steps: []}", "false"),
        ("a: {needs: b, steps: []}\n  b: {if: github.actor == 'x', steps: []}", "varies"),
        ("a: {needs: b, if: always(), steps: []}\n  b: {if: false, steps: []}", "true"),
        ("a: {needs: b, if: '!cancelled()', steps: []}\n  b: {if: false, steps: []}", "true"),
        (
            "a: {needs: b, steps: []}\n  b: {needs: c, if: always(), steps: []}\n  c: {if: false, steps: []}",
            "false",
        ),
        ("a: {needs: b, steps: []}\n  b: {needs: a, steps: []}", "unknown"),
        ("a: {strategy: {matrix: {x: [1, 2]}}, if: matrix.x == 2, steps: []}", "true"),
        ("a: {strategy: {matrix: {x: [1, 2]}}, if: matrix.x == 3, steps: []}", "false"),
        ("a: {runs-on: ubuntu-latest, if: runner.os == 'Linux', steps: []}", "true"),
        (
            "a: {needs: b, if: \"always() && needs.b.result == 'success'\", steps: []}\n  b: {steps: []}",
            "true",
        ),
    ],
)
def test_reach_follows_needs(jobs: str, expected: str) -> None:
    """Row 7: a job whose needed job is skipped is skipped, unless it always runs."""
    assert reach(read(f"on: pull_request\njobs:\n  {jobs}\n"), "a", "fork")[0] == expected


def test_a_long_chain_of_needs_does_not_recurse() -> None:
    jobs = (
        "".join(f"  j{i}: {{needs: [j{i + 1}], steps: []}}\n" for i in range(400)) + "  j400: {steps: []}\n"
    )
    assert reach(read(f"on: push\njobs:\n{jobs}"), "j0", "fork")[0] == "true"


@pytest.mark.parametrize(
    ("on", "fork", "branch", "queue"),
    [
        ("pull_request", "true", "true", "false"),
        ("[pull_request, merge_group]", "true", "true", "true"),
        ("push", "false", "true", "false"),
        ("{push: {branches: [main]}}", "false", "varies", "false"),
        ("schedule", "false", "false", "false"),
        ("workflow_dispatch", "false", "false", "false"),
        ("{pull_request: {branches: [main]}}", "true", "true", "false"),
        ("{pull_request: {branches: ['release/**']}}", "false", "false", "false"),
        ("{pull_request: {branches: ['**', '!main']}}", "false", "false", "false"),
        ("{pull_request: {branches-ignore: [ma*]}}", "false", "false", "false"),
        ("{pull_request: {paths: [src/**]}}", "varies", "varies", "false"),
        ("{pull_request: {paths-ignore: [docs/**]}}", "varies", "varies", "false"),
        ("{pull_request: {types: [opened]}}", "varies", "varies", "false"),
        ("{pull_request: {types: [opened, synchronize, reopened, labeled]}}", "true", "true", "false"),
    ],
)
def test_covers(on: str, fork: str, branch: str, queue: str) -> None:
    """Rows 15, 16 and 19: merge queue, paths, and events that no pull request starts."""
    workflow = read(f"on: {on}\njobs: {{a: {{steps: []}}}}\n")
    assert [covers(workflow, event, "main")[0] for event in EVENTS] == [fork, branch, queue]
    assert covers(workflow, "fork", "main")[2].file == ".github/workflows/ci.yml"


def test_an_unreadable_file_covers_nothing_that_is_known() -> None:
    assert covers(read("on: [x\n"), "fork", "main")[0] == "unknown"
