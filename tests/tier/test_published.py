"""Two repositories that use none of our tools, placed by their published floors and sidecars.

Their workflows are written here after what their decision records say of them. test_spoilers.py has the same on files
of our own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tier_support import CI, finding, placed, settings, workflow

from eval_core.config import Audit

Published = Callable[[str], Path]
PULL = "on: [pull_request]\n"

AGENT_STEPS = """\
      - uses: actions/checkout@v4
      - run: git clone --depth 1 https://github.com/OWNER/learning-notes notes
      - run: uv run python scripts/index.py
      - run: uv run python scripts/eval_retrieval.py --json eval/ci_unfiltered.json
      - run: uv run python scripts/eval_retrieval.py --kind-filter --json eval/ci_kind_filter.json
      - name: Retrieval eval gate
        run: uv run python scripts/eval_gate.py
"""
AGENT_JOB = "  test:\n    runs-on: ubuntu-latest\n"
AGENT = Audit(
    measure=("python scripts/eval_retrieval.py",),
    gate=("python scripts/eval_gate.py",),
    floors=("evals/thresholds.toml",),
    inputs=("evals/thresholds.toml",),
    states={"T202": "runs 30772268815 and 34365627772 of CI", "T208": "it exits 1 where n is not 27"},
)

CLASSIFIER_STEPS = """\
      - uses: actions/checkout@v4
      - run: python src/eval_gate.py
      - run: |
          rm evals/metrics.json
          python scripts/gen_metrics_artifact.py
          git diff --exit-code -- evals/metrics.json
"""
LIVE = """\
on:
  schedule:
    - cron: '0 6 * * 1'
  workflow_dispatch:
jobs:
  live:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: python src/gold_eval.py
        env:
          ANTHROPIC_API_KEY: ${{ secrets.ANTHROPIC_API_KEY }}
"""
CLASSIFIER = Audit(
    mode="snapshot",
    measure=("python src/gold_eval.py",),
    gate=("python src/eval_gate.py",),
    publish=("python scripts/gen_metrics_artifact.py",),
    floors=("evals/thresholds.toml",),
    inputs=("evals/metrics.json",),
    provenance=("evals/gold_predictions_v3.provenance.json",),
    states={
        "T201": "the gate refuses any n but 54",
        "T202": "floors cite the live run of 2026-07-18 and the one before",
        "T208": "a row that failed is a missing prediction, which the gate refuses",
    },
)


@pytest.fixture
def agent(shared_data: Published) -> dict[str, bytes]:
    floors = shared_data("kb-agent/evals/thresholds.toml").read_bytes()
    steps = workflow(AGENT_STEPS, on=PULL, job=AGENT_JOB)
    return {"evals/thresholds.toml": floors, CI: steps.encode()}


@pytest.fixture
def classifier(shared_data: Published) -> dict[str, bytes]:
    names = ("thresholds.toml", "metrics.json", "gold_predictions_v3.provenance.json")
    files = {f"evals/{name}": shared_data(f"classifier/evals/{name}").read_bytes() for name in names}
    files[CI] = workflow(CLASSIFIER_STEPS, on=PULL, job=AGENT_JOB).encode()
    files[".github/workflows/live.yml"] = LIVE.encode()
    return files


def test_the_agent_is_at_tier_2_by_mechanism_and_at_1_until_its_check_is_required(
    tmp_path: Path, agent: dict[str, bytes]
) -> None:
    found = placed(tmp_path, agent, audit=AGENT)
    assert (found.mechanism, found.effect, found.ceiling) == (2, 1, 2), found.blocking()
    assert placed(tmp_path, agent, audit=AGENT, snapshot=settings("test", "Analyze (Python)")).effect == 2


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("eval_gate.py\n", "eval_gate.py || echo report only\n", "T204"),
        ("run: uv run python scripts/eval_gate.py", "continue-on-error: true\n        run: uv run python "
         "scripts/eval_gate.py", "T204"),
        ("      - name: Retrieval eval gate\n        run: uv run python scripts/eval_gate.py\n", "", "T203"),
        ("name: Retrieval eval gate", "if: github.event_name == 'push'", "T205"),
        ("[pull_request]", "{pull_request: {paths: [scripts/**]}}", "T205"),
    ],
)  # fmt: skip
def test_one_edit_of_the_agent_s_workflow_lowers_it(
    tmp_path: Path, agent: dict[str, bytes], old: str, new: str, rule: str
) -> None:
    text = agent[CI].decode()
    assert old in text
    found = placed(
        tmp_path, agent | {CI: text.replace(old, new).encode()}, audit=AGENT, snapshot=settings("test")
    )
    assert finding(found, rule).outcome == "refuted" and found.effect < 2


def test_the_classifier_is_at_tier_3(tmp_path: Path, classifier: dict[str, bytes]) -> None:
    """S4: a committed snapshot is graded, measured anew on a schedule, and its sidecar has two readers."""
    found = placed(tmp_path, classifier, audit=CLASSIFIER, snapshot=settings("test"))
    assert (found.mechanism, found.effect) == (3, 3), found.blocking()
    assert finding(found, "T203").basis == finding(found, "T210").basis == "declared"


@pytest.mark.parametrize(
    ("edit", "rule", "tier"),
    [
        ({"evals/gold_predictions_v3.provenance.json": b""}, "T301", 2),
        ({"evals/thresholds.toml": b"[baseline]\n"}, "T201", 1),
        ({".github/workflows/live.yml": b"on: push\njobs: {}\n"}, "T210", 1),
        (
            {
                CI: workflow(
                    CLASSIFIER_STEPS.replace("          rm evals/metrics.json\n", ""), on=PULL
                ).encode()
            },
            "T209",
            1,
        ),
    ],
)
def test_one_edit_of_the_classifier_lowers_it(
    tmp_path: Path, classifier: dict[str, bytes], edit: dict[str, bytes], rule: str, tier: int
) -> None:
    found = placed(tmp_path, classifier | edit, audit=CLASSIFIER, snapshot=settings("test", "gate"))
    assert finding(found, rule).outcome == "refuted", finding(found, rule)
    assert found.mechanism == tier
