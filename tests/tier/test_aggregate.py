"""Whether a job that gathers others is honest: its script is held against a real shell for every combination."""

from __future__ import annotations

import itertools
import subprocess

import pytest
from tier_support import ROOT

from eval_tier.workflow.actions import parse
from eval_tier.workflow.aggregate import _fails, honest
from eval_tier.workflow.models import Job, Place, Step

HERE = Place("ci.yml", 9)
A, B = "${{ needs.a.result }}", "${{ needs.b.result }}"
ALL, ANY = "${{ join(needs.*.result, ' ') }}", "${{ contains(needs.*.result, 'failure') }}"

SCRIPTS = {
    f'test "{A}" = success': True,
    "echo ok": False,
    f'[ "{A}" == "success" ] || exit 1': True,
    f'if [[ "{A}" != "success" ]]; then exit 1; fi': True,
    f'if [ "{A}" = "failure" ]; then exit 1; fi': False,
    f'for r in {ALL}; do if [ "$r" != success ]; then echo bad; exit 1; fi; done': True,
    f'[[ "{A}" == "success" && "{B}" == "success" ]]': True,
    f'[[ "{A}" == "success" || "{B}" == "success" ]]': False,
    f'case "{A}" in success) ;; *) exit 1;; esac': True,
    f'test "{A}" = success && echo fine': True,
    f'test "{A}" = success && echo fine\necho done': False,
    f'if [ "{ANY}" = "true" ]; then exit 1; fi': False,
    f'[ "{A}" = success ] || [ "{A}" = skipped ]': False,
    f'! [ "{A}" != success ]': True,
    f'[ "{A}" = success ]; echo done': True,
    f'R="{A}"\nif [ "$R" = success ]; then exit 0; else exit 2; fi': True,
    f'if [ "{A}" = success ]; then echo y; elif [ "{A}" = skipped ]; then exit 1; else exit 1; fi': True,
    f'[ "{A}" = success ] || {{ echo bad; exit 1; }}': True,
    f'[ "{A}" = success ] || echo bad': False,
    "false || echo x": False,
}


def job(
    script: str = "",
    *,
    needs: tuple[str, ...] = ("a", "b"),
    condition: str | None = "always()",
    **step: object,
) -> Job:
    held = Step(HERE, script=script or None, script_line=9, **step)  # type: ignore[arg-type]
    return Job(HERE, "all", ("all",), "all", condition=condition, needs=needs, steps=(held,))


@pytest.mark.parametrize(("script", "good"), SCRIPTS.items())
def test_a_script_is_honest_where_bash_fails_for_each_result_but_success(script: str, good: bool) -> None:
    needs = ("a", "b") if B in script or ALL in script or ANY in script else ("a",)
    assert honest(job(script, needs=needs))[0] is good
    for results in itertools.product(("success", "failure", "cancelled", "skipped"), repeat=len(needs)):
        named = dict(zip(needs, results, strict=True))
        text = script.replace(ALL, " ".join(results)).replace(ANY, str("failure" in results).lower())
        for name, result in named.items():
            text = text.replace(f"${{{{ needs.{name}.result }}}}", result)
        done = subprocess.run(["bash", "-e", "-c", text], capture_output=True)
        assert _fails(job(script, needs=needs), named) == (done.returncode != 0), named


@pytest.mark.parametrize(
    "script", ["jq -e all <<< '${{ toJSON(needs) }}'", "python check.py", f'[[ "{A}" == s* ]]', "$CHECK"]
)
def test_what_cannot_be_worked_out_is_unknown(script: str) -> None:
    assert honest(job(script))[0] is None


def test_the_condition_must_hold_whatever_came_before() -> None:
    """Row 7: without always() it is skipped where a job fails, and skipped passes."""
    script = f'test "{A}" = success'
    assert honest(job(script, needs=("a",), condition=None))[0] is False
    assert honest(job(script, needs=("a",), condition="!cancelled()"))[0] is True
    assert honest(job(script, needs=("a",), condition="always() && github.ref == 'x'"))[0] is None
    assert honest(job(script, needs=()))[0] is False


@pytest.mark.parametrize(
    ("condition", "good"),
    [
        ("contains(needs.*.result, 'failure')", False),
        ("contains(needs.*.result, 'failure') || contains(needs.*.result, 'cancelled')", False),
        ("contains(needs.*.result, 'failure') || contains(needs.*.result, 'cancelled') "
         "|| contains(needs.*.result, 'skipped')", True),
        ("needs.a.result != 'success' || needs.b.result != 'success'", True),
    ],
)  # fmt: skip
def test_a_step_that_fails_under_a_condition(condition: str, good: bool) -> None:
    step = Step(HERE, script="exit 1", script_line=9, condition=condition)
    held = Job(HERE, "all", ("all",), "all", condition="always()", needs=("a", "b"), steps=(step,))
    assert honest(held)[0] is good


def test_alls_green_is_known() -> None:
    inputs = {"jobs": "${{ toJSON(needs) }}"}
    assert honest(job(uses="re-actors/alls-green@release/v1", inputs=inputs))[0] is True
    assert honest(job(uses="re-actors/alls-green@v1", inputs=inputs | {"allowed-skips": "a"}))[0] is False


def test_this_repository_s_own_is_honest() -> None:
    file = ".github/workflows/ci.yml"
    workflow = parse(file, (ROOT / file).read_bytes(), lambda path: None)
    assert honest(workflow.jobs["all-green"])[0] is True
