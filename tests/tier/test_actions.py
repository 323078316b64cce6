"""Workflows of GitHub Actions are read whole: triggers, matrices, reusable workflows, composite actions."""

from __future__ import annotations

import pytest

from eval_tier.workflow.actions import forge, generic, parse
from eval_tier.workflow.models import Defect, Job, Workflow

FILE = ".github/workflows/ci.yml"


def read(raw: str, **files: str) -> Workflow:
    others = {name.replace("__", "/") + ".yml": text.encode() for name, text in files.items()}
    return parse(FILE, raw.encode(), lambda path: others.get(path.removeprefix(".github/")))


def job(body: str, key: str = "a") -> Job:
    return read(f"on: push\njobs:\n  a: {{{body}}}\n").jobs[key]


@pytest.mark.parametrize(
    ("on", "events"),
    [
        ("push", ["push"]),
        ("[push, pull_request]", ["push", "pull_request"]),
        ("{push: , pull_request: {branches: [main]}}", ["push", "pull_request"]),
        ("{schedule: [{cron: x}]}", ["schedule"]),
    ],
)
def test_every_form_of_on_is_read(on: str, events: list[str]) -> None:
    """Row 20: YAML 1.1 reads the key `on` as true."""
    workflow = read(f"on: {on}\njobs: {{a: {{steps: [{{run: x}}]}}}}\n")
    assert list(workflow.triggers) == events and workflow.faults == ()


@pytest.mark.parametrize(
    ("body", "checks", "template", "is_open"),
    [
        ("steps: []", ("a",), "a", False),
        ("name: Tests, steps: []", ("Tests",), "Tests", False),
        (
            "strategy: {matrix: {py: [3.10, 3.11], os: [u, w]}}, steps: []",
            ("a (3.10, u)", "a (3.10, w)", "a (3.11, u)", "a (3.11, w)"),
            "a",
            False,
        ),
        (
            "name: 't ${{ matrix.py }}', strategy: {matrix: {py: [1, 2]}}, steps: []",
            ("t 1", "t 2"),
            "t ${{ matrix.py }}",
            False,
        ),
        ("strategy: {matrix: {py: [1, 2], exclude: [{py: 1}]}}, steps: []", ("a (2)",), "a", False),
        ("strategy: {matrix: {include: [{py: 1, os: u}]}}, steps: []", ("a (1, u)",), "a", False),
        (
            "strategy: {matrix: {py: [1], include: [{py: 1, x: y}, {py: 2}]}}, steps: []",
            ("a (1, y)", "a (2)"),
            "a",
            False,
        ),
        ("strategy: {matrix: '${{ fromJSON(x) }}'}, steps: []", ("a",), "a", True),
        ("strategy: {matrix: {py: '${{ fromJSON(x) }}'}}, steps: []", ("a",), "a", True),
    ],
)
def test_checks_of_a_job(body: str, checks: tuple[str, ...], template: str, is_open: bool) -> None:
    """Row 8: a matrix that is skipped as a whole posts one check, named by its template."""
    found = job(body)
    assert (found.checks, found.template, found.open) == (checks, template, is_open)


@pytest.mark.parametrize(
    ("jobs", "what"),
    [
        ("a: []", "not a mapping"),
        ("a: {needs: b, steps: []}", "needs 'b'"),
        ("a: {needs: {b: c}, steps: []}", "`needs` is neither"),
        ("a: {steps: {run: x}}", "`steps` is not a list"),
        ("a: {steps: [x]}", "a step is not a mapping"),
        ("a: {steps: [{name: x}]}", "neither `run` nor `uses`"),
        ("a: {uses: o/r/.github/workflows/x.yml@v1}", "another repository"),
        ("a: {uses: ./.github/workflows/none.yml}", "does not exist"),
        ("a: {uses: ./.github/workflows/ci.yml}", "calls itself"),
        ("a: {steps: [{uses: ./none}]}", "does not exist"),
        (
            f"a: {{strategy: {{matrix: {{x: {list(range(100))}, y: [1, 2, 3]}}}}, steps: []}}",
            "256 legs",
        ),
    ],
)
def test_a_wrong_form_is_a_fault_of_its_job_and_the_rest_is_read(jobs: str, what: str) -> None:
    workflow = read(f"on: push\njobs:\n  {jobs}\n  ok: {{steps: [{{run: make}}]}}\n")
    assert [what in fault.what for fault in workflow.jobs["a"].faults] == [True]
    assert workflow.jobs["ok"].faults == () and workflow.jobs["ok"].steps[0].script == "make"


def test_a_reusable_workflow_stands_in_its_callers_place() -> None:
    """Row 9: its check is `caller / validate`."""
    workflow = read(
        "on: push\njobs:\n"
        "  first: {steps: [{run: x}]}\n"
        "  caller: {needs: first, if: github.actor, uses: ./.github/workflows/w.yml, with: {target: gate}}\n"
        "  after: {needs: [caller], steps: [{run: x}]}\n",
        workflows__w="on: {workflow_call: {inputs: {target: {type: string}}}}\njobs:\n"
        "  build: {steps: [{run: x}]}\n"
        "  validate: {needs: build, steps: [{run: 'make ${{ inputs.target }}'}]}\n",
    )
    assert list(workflow.jobs) == ["first", "caller/build", "caller/validate", "after"]
    validate = workflow.jobs["caller/validate"]
    assert validate.checks == ("caller / validate",)
    assert validate.needs == ("first", "caller/build") and validate.faults == ()
    assert validate.condition == "(success() && (github.actor))"
    assert validate.steps[0].script == "make gate" and str(validate.place) == ".github/workflows/w.yml:4"
    assert workflow.jobs["after"].needs == ("caller/build", "caller/validate")


def test_a_composite_action_stands_in_its_steps_place() -> None:
    workflow = read(
        "on: push\nenv: {A: 1}\njobs:\n  a:\n    steps:\n"
        "      - {uses: ./act, if: matrix.x, continue-on-error: true, with: {go: 'yes'}}\n",
        act__action="inputs: {go: {default: 'no'}}\nruns:\n  using: composite\n  steps:\n"
        "    - {run: 'gate ${{ inputs.go }}', shell: bash, if: \"inputs.go == 'yes'\", working-directory: sub}\n",
    )
    (step,) = workflow.jobs["a"].steps
    assert (step.script, step.shell, step.folder, step.masked) == ("gate yes", "bash", "sub", "true")
    assert step.condition == "(success() && (matrix.x)) && ('yes' == 'yes')"
    assert str(step.place) == "act/action.yml:5" and step.env == {"A": "1"}


def test_masks_defaults_and_lines_are_read() -> None:
    """Rows 12 and 18: `continue-on-error` of job and step."""
    found = read(
        "on: push\ndefaults: {run: {shell: bash}}\njobs:\n  a:\n    continue-on-error: true\n"
        "    defaults: {run: {working-directory: ./x}}\n    env: {B: 2}\n    steps:\n"
        "      - run: |\n          gate\n        continue-on-error: ${{ true }}\n        if: ${{ false }}\n"
    ).jobs["a"]
    (step,) = found.steps
    assert (found.masked, step.masked, step.condition) == ("true", "${{ true }}", "false")
    assert (step.shell, step.folder, step.script_line, step.env) == ("bash", "x", 10, {"B": "2"})


def test_one_malformed_workflow_is_a_whole_fault() -> None:
    """Row 21: the file is an error finding."""
    workflow = read("on: [push\njobs: x\n")
    assert workflow.jobs == {} and [fault.whole for fault in workflow.faults] == [True]


@pytest.mark.parametrize(
    ("raw", "scripts"),
    [
        ("gate: {script: [a, b]}", ["a", "b"]),
        ("jobs: {gate: {steps: [{run: a}, {commands: [b, c]}]}}", ["a", "b", "c"]),
        ("pipeline: {gate: {commands: a}}", ["a"]),
        ("steps: [{name: gate, commands: [a]}]", ["a"]),
        ("gate: {script: [b], before_script: a}", ["a", "b"]),
    ],
)
def test_a_declared_job_of_any_ci_file_is_read(raw: str, scripts: list[str]) -> None:
    steps = generic(".akurai.yml", raw.encode(), "gate")
    assert not isinstance(steps, Defect) and [step.script for step in steps] == scripts


def test_an_absent_job_is_a_fault() -> None:
    assert isinstance(generic("x.yml", b"a: {script: b}", "gate"), Defect)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (FILE, "GitHub Actions"),
        (".gitlab-ci.yml", "GitLab CI"),
        (".github/workflows/a/b.yml", None),
        ("x.yml", None),
    ],
)
def test_forge_by_path(path: str, name: str | None) -> None:
    assert forge(path) == name


def test_actions_that_use_actions_stop_at_a_budget() -> None:
    files = {f"{i}__action": "runs: {using: composite, steps: [%s]}" for i in range(8)}
    for i, name in enumerate(files):
        files[name] %= ", ".join([f"{{uses: ./{i + 1}}}"] * 20) if i < 7 else ""
    workflow = read("on: push\njobs: {a: {steps: [{uses: ./0}]}}\n", **files)
    assert workflow.jobs["a"].faults
