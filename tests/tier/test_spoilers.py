"""One edit of a whole repository lowers its tier, and the rule that it breaks is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tier_support import (
    CI,
    DECLARED,
    FOREIGN,
    JOB,
    REQUIRED,
    STEPS,
    finding,
    placed,
    settings,
    whole,
    workflow,
)

from eval_core.config import Audit

MASKED = STEPS.replace("eval-gate check", "eval-gate check || true")
SECRET = STEPS.replace(
    "eval-core measure\n", "eval-core measure\n        env:\n          KEY: ${{ secrets.VENDOR }}\n"
)
HEAD = STEPS.replace(
    "actions/checkout@v4\n",
    "actions/checkout@v4\n        with:\n          ref: ${{ github.event.pull_request.head.sha }}\n",
)


def edit(name: str, old: str, new: str) -> dict[str, bytes]:
    text = whole()[name].decode()
    assert old in text
    return {name: text.replace(old, new).encode()}


@pytest.mark.parametrize(
    ("rule", "files", "tier"),
    [
        ("T101", {CI: workflow(on="on:\n  schedule:\n    - cron: '0 0 * * *'\n").encode()}, 0),
        ("T101", {CI: workflow(STEPS.replace("eval-core measure", "true")).encode()}, 0),
        ("T102", {CI: workflow(STEPS.replace("eval-core measure", "eval-core measure || true")).encode()}, 0),
        ("T103", {CI: workflow(STEPS.replace("actions/checkout@v4", "actions/cache@v4")).encode()}, 0),
        ("T103", {"datasets/dedupe/dataset.toml": b"name = 7\n"}, 0),
        ("T104", {"datasets/dedupe/queries.jsonl": b"\n"}, 0),
        ("T104", {"eval.toml": whole()["eval.toml"] + b'lane = "owner"\n'}, 0),
        ("T105", {CI: workflow(SECRET).encode()}, 0),
        ("T106", {".github/workflows/x.yml": workflow(HEAD, on="on: pull_request_target\n").encode()}, 0),
        ("T201", {"policy/floors.toml": b'schema = "floors-v2"\n'}, 1),
        ("T201", {"policy/floors.toml": b'schema = "floors-v2"\nfloor = 7\n'}, 1),
        ("T202", edit("policy/floors.toml", '"recall@10" = 0.7', '"recall@10" = 0.1'), 1),
        ("T202", {"policy/evidence/dedupe-bm25.jsonl": b""}, 1),
        ("T202", edit("policy/evidence/dedupe-bm25.jsonl", '"class":"ci"', '"class":"local"'), 1),
        ("T203", {CI: workflow("".join(sorted(STEPS.splitlines(True), key=lambda s: "check\n" not in s))).encode()}, 1),
        ("T203", {CI: workflow(STEPS.replace("eval-gate check", "eval-gate check --help")).encode()}, 1),
        ("T204", {CI: workflow(MASKED).encode()}, 1),
        ("T204", {CI: workflow(STEPS.replace("eval-gate check", "eval-gate check | tee out")).encode()}, 1),
        ("T205", {CI: workflow(STEPS.replace("run: eval-gate", "if: false\n        run: eval-gate")).encode()}, 1),
        ("T206", {".github/workflows/y.yml": workflow("      - run: eval-gate floor --from x --write\n").encode()}, 1),
        ("T206", {".github/workflows/y.yml": workflow("      - run: echo > policy/floors.toml\n").encode()}, 1),
        ("T207", {CI: workflow(job=JOB + "    env:\n      OPENAI_API_KEY: x\n").encode()}, 1),
        ("T301", {"policy/floors.toml": whole()["policy/floors.toml"].replace(
            b'"floors-v2"\n', b'"floors-v2"\nrequire = ["head"]\n', 1)}, 2),
        ("T302", {CI: workflow(STEPS.replace("eval-core publish --check README.md", "true")).encode()}, 2),
        ("T303", {"README.md": b"Recall is 0.799.\n"}, 2),
        ("T303", {"OTHER.md": whole()["README.md"]}, 2),
    ],
)  # fmt: skip
def test_a_spoiler_lowers_the_tier_and_its_rule_is_named(
    tmp_path: Path, rule: str, files: dict[str, bytes], tier: int
) -> None:
    found = placed(tmp_path, whole() | files, snapshot=REQUIRED)
    assert finding(found, rule).outcome == "refuted", finding(found, rule)
    assert finding(found, rule).mend
    assert found.mechanism == found.effect == tier
    assert rule in [one.rule for one in found.blocking()]


def test_the_whole_is_at_tier_3(tmp_path: Path) -> None:
    """S4: provenance is read by the gate and by the publisher, and every outward number is covered."""
    found = placed(tmp_path, whole(), snapshot=REQUIRED)
    assert [one for one in found.findings if not one.holds] == []
    assert (found.mechanism, found.effect, found.ceiling) == (3, 3, 3)


AGGREGATED = (
    "  all:\n    if: always()\n    needs: [gate]\n    runs-on: ubuntu-latest\n    steps:\n"
    '      - run: test "${{ needs.gate.result }}" = success\n'
)


@pytest.mark.parametrize(
    ("rule", "files", "snapshot"),
    [
        ("T221", {}, settings("lint")),
        ("T221", {}, settings()),
        ("T222", {".github/workflows/z.yml": workflow("      - run: 'true'\n").encode()}, REQUIRED),
        ("T222", {}, settings("gate", app=99)),
        ("T223", {CI: workflow(on="on: pull_request\n").encode()}, settings("gate", queue=True)),
        ("T224", {}, settings("gate", admins=False)),
        ("T225", {CI: workflow(more=AGGREGATED.replace("    if: always()\n", "")).encode()}, settings("all")),
        ("T225", {CI: workflow(more=AGGREGATED.replace("test ", "echo ")).encode()}, settings("all")),
    ],
)
def test_a_setting_that_does_not_hold_lowers_the_effect_alone(
    tmp_path: Path, rule: str, files: dict[str, bytes], snapshot: bytes
) -> None:
    """K7: tier 2 is half a setting, and the audit checks the setting."""
    found = placed(tmp_path, whole() | files, snapshot=snapshot)
    assert finding(found, rule).outcome == "refuted", finding(found, rule)
    assert finding(found, rule).observed is not None
    assert (found.mechanism, found.effect) == (3, 1)


def test_an_honest_job_that_gathers_the_gate_may_be_the_required_one(tmp_path: Path) -> None:
    files = whole() | {CI: workflow(more=AGGREGATED).encode()}
    assert placed(tmp_path, files, snapshot=settings("all")).effect == 3


OTHERS = {
    "one that is not required": workflow(job=JOB.replace("gate", "also"), more=JOB + "    steps:\n" + STEPS),
    "one that does not measure": workflow(
        "      - run: eval-gate check\n", job=JOB.replace("gate", "also"), more=JOB + "    steps:\n" + STEPS
    ),
    "one that is masked": workflow(
        MASKED, job=JOB.replace("gate", "also"), more=JOB + "    steps:\n" + STEPS
    ),
}


@pytest.mark.parametrize("other", OTHERS)
def test_of_several_jobs_that_grade_the_one_that_counts_is_asked(tmp_path: Path, other: str) -> None:
    """A second, lesser gate takes nothing from the one that is required."""
    assert placed(tmp_path, whole() | {CI: OTHERS[other].encode()}, snapshot=REQUIRED).effect == 3


@pytest.mark.parametrize("missing", ["measure", "gate", "floors", "inputs"])
def test_a_foreign_repository_is_placed_by_what_is_declared_and_found(tmp_path: Path, missing: str) -> None:
    """Each declaration counts, and only as far as the files show what it says."""
    found = placed(tmp_path, FOREIGN, snapshot=REQUIRED, audit=DECLARED)
    assert found.effect == 2, found.blocking()
    assert {one.basis for one in found.findings if one.rule in ("T101", "T201", "T203")} == {"declared"}
    less = Audit(**(DECLARED.model_dump() | {missing: ()}))
    assert placed(tmp_path, FOREIGN, snapshot=REQUIRED, audit=less).effect < 2


CHECKOUT = "      - uses: actions/checkout@v4\n"
DAILY = workflow(
    CHECKOUT + "      - run: python scripts/eval_retrieval.py\n", on="on: {schedule: [cron: '0 0 * * *']}\n"
)
REMOVE = "      - run: rm -f numbers.json\n"
ANEW = """\
      - run: |
          python make.py
          git diff --exit-code numbers.json
      - run: python scripts/eval_gate.py
"""
OTHER = ".github/workflows/daily.yml"
KEPT = FOREIGN | {
    "numbers.json": b"{}\n",
    CI: workflow(CHECKOUT + REMOVE + ANEW).encode(),
    OTHER: DAILY.encode(),
}
SNAPSHOT = DECLARED.model_copy(update={"mode": "snapshot", "provenance": ("numbers.json",)})


@pytest.mark.parametrize(
    ("rule", "file", "text"),
    [
        ("T209", CI, workflow(CHECKOUT + ANEW)),
        ("T209", CI, workflow(CHECKOUT + ANEW, job=JOB.replace("gate", "a") + "    steps:\n" + REMOVE + JOB)),
        ("T209", CI, workflow(CHECKOUT + ANEW + REMOVE)),
        ("T210", OTHER, DAILY.replace("eval_retrieval", "other")),
        ("T210", OTHER, DAILY.replace("{schedule: [cron: '0 0 * * *']}", "push")),
    ],
)
def test_a_committed_snapshot_is_made_anew_and_compared_for_good(
    tmp_path: Path, rule: str, file: str, text: str
) -> None:
    """A gate that grades a committed snapshot: measured anew on a schedule, and deleted before it is compared."""
    good = placed(tmp_path / "good", KEPT, snapshot=REQUIRED, audit=SNAPSHOT)
    assert good.effect == 2 and finding(good, rule).outcome == "proven", good.blocking()
    found = placed(tmp_path / "spoiled", KEPT | {file: text.encode()}, snapshot=REQUIRED, audit=SNAPSHOT)
    assert finding(found, rule).outcome == "refuted" and found.effect == 1


@pytest.mark.parametrize("rule", ["T202", "T208"])
def test_what_no_file_can_show_is_unknown_unless_it_is_declared(tmp_path: Path, rule: str) -> None:
    states = {key: why for key, why in DECLARED.states.items() if key != rule}
    found = placed(tmp_path, FOREIGN, snapshot=REQUIRED, audit=DECLARED.model_copy(update={"states": states}))
    assert finding(found, rule).outcome == "unknown"
    assert (found.effect, found.ceiling) == (1, 2)
    assert re.search(rf"audit\.states\.{rule}", finding(found, rule).mend)
